/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/receipt.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "core/run/facts.h"
#include "core/run/markers.h"
#include "core/run/run_record_internal.h"
#include "core/run/run_report.h"
#include "seal/seal.h"
#include "wire/layer.h"
#include "json/json_dump.h"

#define TIME_LEN 32

static void set(json_t *j, const char *key, json_t *value)
{
	int r = json_object_set_new(j, key, value);

	assert(r == 0); /* values are ours, in ASCII */
	(void)r;
}

static json_t *text_or_null(const char *text)
{
	return text && text[0] ? json_string(text) : json_null();
}

static json_t *layers(uint32_t mask)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (mask & LAYER_BIT(i))
			(void)json_array_append_new(list,
			                            json_string(layer_name((enum wire_layer)i)));
	return list;
}

static json_t *isolation_brief(const struct outcome *o)
{
	json_t *j = json_object();

	set(j, "engine", text_or_null(o->engine));
	set(j, "grade",
	    o->engine[0] ? json_string(box_grade_name((enum box_grade)o->grade)) : json_null());
	set(j, "mode", text_or_null(o->isolation));
	set(j, "missing", layers(o->layers_missing));
	return j;
}

static json_t *isolation_head(const struct outcome *o)
{
	json_t *j = isolation_brief(o);

	set(j, "layers", layers(o->layers & ~o->layers_vouched));
	set(j, "layers_vouched", layers(o->layers_vouched));
	set(j, "start", json_string(o->start == BOX_START_ZYGOTE ? "zygote" : "cold"));
	set(j, "start_reason", text_or_null(box_start_reason((enum box_start)o->start)));
	set(j, "pooled", json_boolean(o->pooled));
	return j;
}

/* What is signed: all of it. */
static json_t *isolation_whole(const struct outcome *outcome)
{
	struct facts *none = outcome->facts ? NULL : facts_read(NULL);
	json_t *j = isolation_head(outcome);
	int r = json_object_update(j, outcome->facts ? outcome->facts->object : none->object);

	assert(r == 0);
	(void)r;
	facts_unref(none);
	return j;
}

json_t *receipt_isolation(const struct outcome *outcome)
{
	return outcome->receipt_form == RECEIPT_NONE ? isolation_brief(outcome)
	                                             : isolation_whole(outcome);
}

int receipt_isolation_add(struct buf *b, const struct outcome *outcome)
{
	bool shared = outcome->facts && outcome->receipt_form != RECEIPT_NONE;
	json_t *j = shared ? isolation_head(outcome) : receipt_isolation(outcome);
	int r = json_dump_to(b, j);

	json_decref(j);
	if (r < 0 || !shared)
		return r;
	b->len--; /* replaces the brace */
	r = buf_add(b, ",", 1);
	if (r == 0)
		r = buf_add_str(b, outcome->facts->members);
	return r < 0 ? r : buf_add(b, "}", 1);
}

static json_t *hash_of(const char *data, size_t len)
{
	char hex[RUN_REPORT_HASH_LEN];

	run_report_hash(data ? data : "", len, hex);
	return json_string(hex);
}

/*
 * Of the text that a result has: a reader of the result does not have the bytes, so their hash
 * cannot tell a changed text from replaced bytes.
 */
static json_t *text_hash_of(const struct buf *printed, bool marked)
{
	const char *text = printed->data ? printed->data : "";
	size_t len = printed->len;
	cleanup_free char *stripped = marked ? markers_strip(text, len, &len) : NULL;
	cleanup_free char *clean = NULL;

	text = stripped ? stripped : text;
	if (!utf8_is_valid(text, len)) {
		clean = utf8_sanitize(text, len, &len);
		text = clean;
	}
	return hash_of(text, len);
}

static json_t *moment(uint64_t real_ms)
{
	char text[TIME_LEN];

	clock_format_utc(real_ms, text, sizeof(text));
	return real_ms ? json_string(text) : json_null();
}

static json_t *denials(const struct outcome *o)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < o->denials_count; i++) {
		const struct denial *d = &o->denials[i];

		(void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I}", "kind", d->kind,
		                                            "what", d->what, "rule", d->rule,
		                                            "count", (json_int_t)d->count));
	}
	return list;
}

static json_t *outcome_of(const struct run_record *e, const struct outcome *o)
{
	const struct buf *out = run_record_printed(e, OUTPUT_STDOUT);
	const struct buf *errors = run_record_printed(e, OUTPUT_STDERR);
	json_t *j = json_object();

	set(j, "status", json_string(outcome_status_name(o->status)));
	set(j, "exit_code", o->exited ? json_integer(o->exit_code) : json_null());
	set(j, "signal", o->signal ? json_integer(o->signal) : json_null());
	set(j, "limit", text_or_null(outcome_limit_name(o->limit)));
	set(j, "stdout_sha256", hash_of(out->data, out->len));
	set(j, "stderr_sha256", hash_of(errors->data, errors->len));
	set(j, "stdout_text_sha256", text_hash_of(out, o->handler));
	set(j, "stderr_text_sha256", text_hash_of(errors, false));
	set(j, "denials", denials(o));
	return j;
}

json_t *receipt_sign(const struct seal_key *key, const struct run_record *record,
                     const struct outcome *outcome)
{
	const struct run_record *e = record;
	json_t *j = json_object();

	set(j, "execution_id", json_string(e->id));
	set(j, "session_id", text_or_null(e->session_id));
	set(j, "tenant", json_string(e->tenant));
	set(j, "language", json_string(e->language));
	set(j, "code_sha256", e->code ? hash_of(e->code, e->code_len) : text_or_null(e->code_hash));
	set(j, "created_at", moment(e->created_ms));
	set(j, "started_at", moment(e->started_ms));
	set(j, "completed_at", moment(e->completed_ms));
	set(j, "outcome", outcome_of(e, outcome));
	set(j, "isolation", isolation_whole(outcome));
	return seal_make(key, RECEIPT_FORMAT, j);
}
