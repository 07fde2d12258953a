/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run_audit.h"

#include <assert.h>
#include <jansson.h>
#include <sodium.h>

#include "base/clock.h"
#include "core/run/outcome.h"

void run_audit_hash(const char *code, size_t len, char ret_hex[RUN_AUDIT_HASH_LEN])
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	static_assert(RUN_AUDIT_HASH_LEN == 2 * crypto_hash_sha256_BYTES + 1, "it fits");
	(void)crypto_hash_sha256(hash, (const unsigned char *)code, len); /* cannot fail */
	(void)sodium_bin2hex(ret_hex, RUN_AUDIT_HASH_LEN, hash, sizeof(hash));
}

static void set(json_t *object, const char *key, json_t *value)
{
	(void)json_object_set_new(object, key, value); /* takes @value also when it fails */
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *text(const char *s)
{
	return s ? json_string(s) : json_null();
}

json_t *run_audit_limits(const struct box_limits *l)
{
	json_t *j = json_object();

	set(j, "memory_bytes", number(l->memory_bytes));
	set(j, "disk_bytes", number(l->workspace_bytes));
	set(j, "cpu_millicores", number(l->cpu_millicores));
	set(j, "processes", number(l->pids));
	return j;
}

/* What was refused, and how often; names are ours or the kernel's. */
static json_t *denials_of(const struct outcome *o)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < o->denials_count && i < DENIALS_MAX; i++)
		(void)json_array_append_new(list,
		                            json_pack("{s:s, s:s, s:I}", "kind", o->denials[i].kind,
		                                      "what", o->denials[i].what, "count",
		                                      (json_int_t)o->denials[i].count));
	return list;
}

static void add_outcome(json_t *j, const struct outcome *o)
{
	set(j, "exit_code", o->exited ? json_integer(o->exit_code) : json_null());
	set(j, "signal", o->signal ? json_integer(o->signal) : json_null());
	set(j, "limit", text(outcome_limit_name(o->limit)));
	set(j, "duration_ms", json_real((double)o->duration_us / USEC_PER_MS));
	if (o->denials_count > 0)
		set(j, "denials", denials_of(o));
}

void run_audit_end(struct audit *a, const struct run_audit *what)
{
	json_t *detail;

	if (!a)
		return;
	detail = json_object();
	set(detail, "session_id", text(what->session_id));
	set(detail, "language", text(what->language));
	set(detail, "code_sha256", text(what->code_hash));
	set(detail, "timeout_ms", number(what->timeout_us / USEC_PER_MS));
	if (what->limits)
		set(detail, "limits", run_audit_limits(what->limits));
	if (what->outcome)
		add_outcome(detail, what->outcome);
	audit_write(a, &(struct audit_event){
			       .action = "execution.end",
			       .tenant = what->tenant,
			       .key_id = what->key_id,
			       .object = what->id,
			       .result = what->outcome ? outcome_status_name(what->outcome->status)
	                                               : error_text(what->failure->code),
			       .request_id = what->request_id,
			       .detail = detail,
		       });
}
