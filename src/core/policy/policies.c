/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/policies.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/config/embedded.h"
#include "core/config/yamldoc.h"

#define SUFFIX   ".yaml"
#define BUILT_IN "built in"
/* More than all keys with full lists. */
#define HASH_MAX       (16u << 20)
#define HASH_VALUE_LEN 64

/* Files are read into a new set; a later one replaces one of the same name (built in, then the
 * folder, then single files). Then they inherit from what they extend, and the set is adopted or
 * dropped as a whole. */

struct policy_set {
	struct policy *items[POLICIES_MAX]; /* references; sorted when complete */
	size_t count;
};

struct policies {
	char *dir, *fallback; /* owned, like all */
	char **selectable, **files;
	struct policy_set *set;
};

static void set_freep(struct policy_set **set)
{
	for (size_t i = 0; *set && i < (*set)->count; i++)
		policy_unref((*set)->items[i]);
	free(*set);
}

void policies_free(struct policies *p)
{
	if (!p)
		return;
	free(p->dir);
	free(p->fallback);
	str_list_free(p->selectable);
	str_list_free(p->files);
	set_freep(&p->set);
	free(p);
}

static struct policy *find_policy(const struct policy_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (str_equal(set->items[i]->name, name))
			return set->items[i];
	return NULL;
}

/* Takes the reference. */
static int put_policy(struct policy_set *set, struct policy *policy, struct error *err)
{
	for (size_t i = 0; i < set->count; i++) {
		if (str_equal(set->items[i]->name, policy->name)) {
			policy_unref(set->items[i]);
			set->items[i] = policy;
			return 0;
		}
	}
	if (set->count == POLICIES_MAX) {
		(void)error_set(err, ERR_CONFIG, 0, "%s: more than %d policies", policy->file,
		                POLICIES_MAX);
		policy_unref(policy);
		return -1;
	}
	set->items[set->count++] = policy;
	return 0;
}

static int add_embedded(struct policy_set *set, struct error *err)
{
	for (const struct embedded_file *f = embedded_policies; f->name; f++) {
		struct policy *policy = policy_parse(f->data, f->len, f->name, err);

		if (!policy)
			return -1;
		free(policy->file);
		policy->file = xstrdup(BUILT_IN);
		if (put_policy(set, policy, err) < 0)
			return -1;
	}
	return 0;
}

static int add_file(struct policy_set *set, const char *path, struct error *err)
{
	cleanup_buf struct buf text = BUF_INIT(YAMLDOC_BYTES_MAX);
	const char *slash = strrchr(path, '/');
	cleanup_free char *expected = NULL;
	struct policy *policy;

	if (yamldoc_read(path, &text, err) < 0)
		return -1;
	policy = policy_parse(text.data ? text.data : "", text.len, path, err);
	if (!policy)
		return -1;
	/* Policies are found by file name. */
	expected = xasprintf("%s" SUFFIX, policy->name);
	if (!str_equal(slash ? slash + 1 : path, expected)) {
		(void)error_set(err, ERR_CONFIG, 0, "%s: 'name' is '%s', so the file must be %s",
		                path, policy->name, expected);
		policy_unref(policy);
		return -1;
	}
	return put_policy(set, policy, err);
}

static int is_candidate(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > strlen(SUFFIX) &&
	       str_equal(entry->d_name + len - strlen(SUFFIX), SUFFIX);
}

static int add_dir(struct policy_set *set, const char *dir, struct error *err)
{
	struct dirent **entries = NULL;
	/* Sorted: the same error comes first every time. */
	int count = *dir ? scandir(dir, &entries, is_candidate, alphasort) : 0;
	int r = 0;

	if (count < 0)
		return error_set(err, ERR_CONFIG, errno, "read the policies in '%s'", dir);
	for (int i = 0; i < count; i++) {
		cleanup_free char *path = xasprintf("%s/%s", dir, entries[i]->d_name);

		if (r >= 0)
			r = add_file(set, path, err);
		free(entries[i]);
	}
	free(entries);
	return r;
}

/* Top down: each inherits from a complete policy. */
static int inherit_ancestors(const struct policy_set *set, struct policy *policy, struct error *err)
{
	struct policy *chain[POLICIES_CHAIN_MAX];
	size_t depth = 0;

	for (struct policy *p = policy; p->extends;) {
		struct policy *parent = find_policy(set, p->extends);

		if (!parent)
			return error_set(err, ERR_CONFIG, 0,
			                 "%s:%u: 'extends' names a policy that does not exist",
			                 p->file, p->extends_line);
		if (depth == POLICIES_CHAIN_MAX)
			return error_set(err, ERR_CONFIG, 0,
			                 "%s:%u: 'extends' is circular or too long", policy->file,
			                 policy->extends_line);
		chain[depth++] = p;
		p = parent;
	}
	while (depth-- > 0)
		if (!chain[depth]->parent) /* done in another chain */
			policy_inherit(chain[depth], find_policy(set, chain[depth]->extends));
	return 0;
}

/* "name NAME", then "PATH VALUE" for every rule that is set, in the order of the keys; a list has a
 * line for each item, and one without a value if it is empty. */
static void hash_rules(struct policy *policy)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	cleanup_buf struct buf text = BUF_INIT(HASH_MAX);
	const struct policy_key *key;
	int r = buf_addf(&text, "name %s\n", policy->name);

	for (size_t i = 0; (key = policy_key_at(i)); i++) {
		char *const *items = policy_key_list(key, policy);
		char value[HASH_VALUE_LEN];

		if (policy_key_source(key, policy).line == 0)
			continue;
		if (!items)
			policy_key_print(key, policy, value, sizeof(value));
		r |= buf_addf(&text, "%s %s\n", policy_key_path(key), items ? "" : value);
		for (; items && *items; items++)
			r |= buf_addf(&text, "%s %s\n", policy_key_path(key), *items);
	}
	assert(r == 0); /* lists and items are bounded */
	(void)crypto_hash_sha256(hash, (const unsigned char *)text.data, text.len);
	(void)sodium_bin2hex(policy->sha256, sizeof(policy->sha256), hash, sizeof(hash));
}

static int compare_names(const void *a, const void *b)
{
	return strcmp((*(struct policy *const *)a)->name, (*(struct policy *const *)b)->name);
}

int policies_reload(struct policies *p, struct error *err)
{
	attr_cleanup(set_freep) struct policy_set *set = NEW(struct policy_set);

	if (add_embedded(set, err) < 0 || add_dir(set, p->dir, err) < 0)
		return -1;
	for (char **file = p->files; *file; file++)
		if (add_file(set, *file, err) < 0)
			return -1;
	for (size_t i = 0; i < set->count; i++)
		if (inherit_ancestors(set, set->items[i], err) < 0)
			return -1;
	for (size_t i = 0; i < set->count; i++)
		hash_rules(set->items[i]);
	if (!find_policy(set, p->fallback))
		return error_set(err, ERR_CONFIG, 0, "policy.default: there is no policy '%s'",
		                 p->fallback);
	for (char **name = p->selectable; *name; name++)
		if (!find_policy(set, *name))
			return error_set(err, ERR_CONFIG, 0,
			                 "policy.selectable: there is no policy '%s'", *name);
	qsort(set->items, set->count, sizeof(struct policy *), compare_names);
	set_freep(&p->set);
	p->set = TAKE_PTR(set);
	return 0;
}

struct policies *policies_load(const struct policies_config *config, struct error *err)
{
	attr_cleanup(policies_freep) struct policies *p = NEW(struct policies);

	p->dir = xstrdup(config->dir);
	p->fallback = xstrdup(config->fallback);
	p->selectable = str_list_copy(config->selectable);
	p->files = str_list_copy((char *const *)config->files);
	return policies_reload(p, err) < 0 ? NULL : TAKE_PTR(p);
}

const struct policy *policies_find(const struct policies *p, const char *name)
{
	return find_policy(p->set, name);
}

const struct policy *policies_at(const struct policies *p, size_t index)
{
	return index < p->set->count ? p->set->items[index] : NULL;
}

const char *policies_default(const struct policies *p)
{
	return p->fallback;
}

bool policies_can_select(const struct policies *p, const char *name)
{
	return str_list_has(p->selectable, name);
}
