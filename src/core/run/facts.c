/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/facts.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "core/policy/policies.h"
#include "wire/msg.h"
#include "json/json_dump.h"

#define KEPT 8

/* What facts are made of, except rules of the network, which may be long. */
struct source {
	struct policy_stack stack; /* references: the same policy is at the same address */
	uint64_t timeout_us;
	uint64_t output_bytes;
	struct box_limits limits;
	enum box_network network;
	const struct driver *driver;
	uint64_t trips; /* of its breaker: when it is back it may be another release */
};

struct kept {
	struct source source;
	struct facts *facts; /* a reference; NULL: unused */
};

struct facts_maker {
	/* Owned, of this engine. */
	json_t *versions;
	const struct driver *driver;
	uint64_t trips;
	struct kept kept[KEPT];
	size_t next; /* is replaced next */
};

static const char *const names[] = {"policies", "filter_sha256", "network", "network_rules_sha256",
                                    "limits",   "versions"};

static void set(json_t *j, const char *key, json_t *value)
{
	int r = json_object_set_new(j, key, value);

	assert(r == 0); /* values are ours, in ASCII */
	(void)r;
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *policies(const struct policy_stack *stack)
{
	const struct policy *const both[] = {stack->own, stack->chosen};
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		if (both[i])
			(void)json_array_append_new(list,
			                            json_pack("{s:s, s:s}", "name", both[i]->name,
			                                      "sha256", both[i]->sha256));
	return list;
}

static json_t *limits(const struct source *s)
{
	const struct box_limits *l = &s->limits;
	json_t *j = json_object();

	set(j, "timeout_ms", number(s->timeout_us / USEC_PER_MS));
	set(j, "output_bytes", number(s->output_bytes));
	set(j, "memory_bytes", number(l->memory_bytes));
	set(j, "disk_bytes", number(l->workspace_bytes));
	set(j, "tmp_bytes", number(l->tmp_bytes));
	set(j, "cpu_millicores", number(l->cpu_millicores));
	set(j, "processes", number(l->pids));
	set(j, "open_files", number(l->nofile));
	return j;
}

/* Every rule and a newline, in order. */
static json_t *rules_hash(const struct box_rules *rules)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(hash) + 1];
	crypto_hash_sha256_state state;

	if (!rules)
		return json_null();
	(void)crypto_hash_sha256_init(&state);
	for (size_t i = 0; i < rules->count; i++) {
		(void)crypto_hash_sha256_update(&state, (const unsigned char *)rules->texts[i],
		                                strlen(rules->texts[i]));
		(void)crypto_hash_sha256_update(&state, (const unsigned char *)"\n", 1);
	}
	(void)crypto_hash_sha256_final(&state, hash);
	(void)sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	return json_string(hex);
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *versions(const struct driver_caps *caps)
{
	struct utsname host = {0};
	json_t *j = json_object();

	(void)uname(&host);
	set(j, "runtime", text_or_null(caps->runtime));
	set(j, "release", text_or_null(caps->release));
	set(j, "millibox", json_string(MILLIBOX_VERSION));
	set(j, "kernel", json_string(host.release));
	set(j, "protocol", number(WIRE_VERSION));
	set(j, "landlock", number(caps->landlock_abi));
	return j;
}

/* Takes @object. */
static struct facts *facts_new(json_t *object)
{
	struct facts *f = NEW(struct facts);
	cleanup_free char *text = json_dump_text(object, JSON_COMPACT);

	assert(text);
	*f = (struct facts){
		.refs = 1, .object = object, .members = xstrndup(text + 1, strlen(text) - 2)};
	return f;
}

static struct facts *facts_ref(struct facts *f)
{
	f->refs++;
	return f;
}

struct facts *facts_read(const json_t *stored)
{
	json_t *j = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *value = json_object_get(stored, names[i]);

		set(j, names[i], value ? json_incref(value) : json_null());
	}
	return facts_new(j);
}

void facts_unref(struct facts *f)
{
	if (!f || --f->refs > 0)
		return;
	json_decref(f->object);
	free(f->members);
	free(f);
}

struct facts_maker *facts_maker_new(void)
{
	return NEW(struct facts_maker);
}

static void forget(struct kept *k)
{
	policy_stack_unref(&k->source.stack);
	facts_unref(k->facts);
	*k = (struct kept){0};
}

void facts_maker_free(struct facts_maker *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < KEPT; i++)
		forget(&m->kept[i]);
	json_decref(m->versions);
	free(m);
}

static bool is_same(const struct source *a, const struct source *b)
{
	const struct box_limits *l = &a->limits, *m = &b->limits;

	return a->stack.own == b->stack.own && a->stack.chosen == b->stack.chosen &&
	       a->timeout_us == b->timeout_us && a->output_bytes == b->output_bytes &&
	       a->network == b->network && a->driver == b->driver && a->trips == b->trips &&
	       l->memory_bytes == m->memory_bytes && l->workspace_bytes == m->workspace_bytes &&
	       l->tmp_bytes == m->tmp_bytes && l->cpu_millicores == m->cpu_millicores &&
	       l->pids == m->pids && l->nofile == m->nofile;
}

static json_t *versions_of(struct facts_maker *m, const struct source *s)
{
	if (m->driver != s->driver || m->trips != s->trips) {
		json_decref(m->versions);
		m->versions = versions(&s->driver->caps);
		m->driver = s->driver;
		m->trips = s->trips;
	}
	return json_incref(m->versions);
}

static struct facts *make(struct facts_maker *m, const struct source *s,
                          const struct box_rules *rules)
{
	const char *filter = s->driver->caps.filter_sha256;
	json_t *j = json_object();

	set(j, "policies", policies(&s->stack));
	set(j, "filter_sha256", text_or_null(filter));
	set(j, "network", json_string(box_network_name(s->network)));
	set(j, "network_rules_sha256", rules_hash(rules));
	set(j, "limits", limits(s));
	set(j, "versions", versions_of(m, s));
	return facts_new(j);
}

static struct facts *keep(struct facts_maker *m, const struct source *s, struct facts *facts)
{
	struct kept *k = &m->kept[m->next];

	m->next = (m->next + 1) % KEPT;
	forget(k);
	policy_stack_ref(&s->stack);
	*k = (struct kept){.source = *s, .facts = facts_ref(facts)};
	return facts;
}

struct facts *facts_make(struct facts_maker *m, const struct policy_decision *decision,
                         const struct driver *driver, const struct box_spec *applied,
                         enum box_network network)
{
	const struct source s = {
		.stack = decision->stack,
		.timeout_us = decision->timeout_us,
		.output_bytes = decision->output_bytes,
		.limits = applied->limits,
		.network = network,
		.driver = driver,
		.trips = driver->breaker.trips,
	};

	if (applied->rules)
		return make(m, &s, applied->rules);
	for (size_t i = 0; i < KEPT; i++)
		if (m->kept[i].facts && is_same(&m->kept[i].source, &s))
			return facts_ref(m->kept[i].facts);
	return keep(m, &s, make(m, &s, NULL));
}
