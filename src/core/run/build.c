/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/build.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/language/options.h"
#include "core/language/runners.h"
#include "core/observe/metrics.h"
#include "core/run/run_internal.h"
#include "core/run/run_record_internal.h"
#include "core/template/template.h"

#define MESSAGES_MAX (1u << 20)
#define KEY_VERSION  "millibox build 1"

void build_free(struct build *b)
{
	if (!b)
		return;
	buf_done(&b->out);
	buf_done(&b->err);
	free(b);
}

bool build_is_due(const struct run *r)
{
	return r->build && r->build->state != BUILD_DONE;
}

/* With its length: no two lists of parts have the same bytes. */
static void add_part(struct sha256 *h, const void *data, size_t len)
{
	uint64_t size = len;

	sha256_add(h, &size, sizeof(size));
	sha256_add(h, data, len);
}

static void add_text(struct sha256 *h, const char *text)
{
	add_part(h, text, strlen(text));
}

static void add_list(struct sha256 *h, char *const *list)
{
	uint64_t count = list ? str_list_count(list) : 0;

	sha256_add(h, &count, sizeof(count));
	for (; list && *list; list++)
		add_text(h, *list);
}

/* A file of a toolchain: an update changes it. */
static void add_file(struct sha256 *h, const char *path)
{
	struct stat st = {0};
	uint64_t facts[4] = {0};

	if (path && stat(path, &st) == 0) {
		facts[0] = (uint64_t)st.st_ino;
		facts[1] = (uint64_t)st.st_size;
		facts[2] = (uint64_t)st.st_mtim.tv_sec;
		facts[3] = (uint64_t)st.st_mtim.tv_nsec;
	}
	add_text(h, path ? path : "");
	sha256_add(h, facts, sizeof(facts));
}

static void add_toolchain(struct sha256 *h, const struct run *r)
{
	const struct runner *runner = r->decision.runner;

	add_text(h, r->decision.spec.root);
	add_text(h, r->decision.spec.packages); /* a layer never changes */
	add_file(h, runner_place(runner));
	for (char **need = runner->needs; need && *need; need++)
		add_file(h, *need);
}

/* The root of a directory may change at any time; an image's never does. */
static bool can_have_key(const struct run *r)
{
	const struct template *t = r->request->template;

	return !t || t->kind == TEMPLATE_ON_HOST || t->kind == TEMPLATE_ON_IMAGE;
}

static void make_key(const struct run *r, struct build_key *ret_key)
{
	const struct run_request *request = r->request;
	const struct exec_source source = run_code(r, r->decision.runner->source);
	struct sha256 h;

	sha256_init(&h);
	add_text(&h, KEY_VERSION);
	add_text(&h, r->decision.share_builds ? "" : r->record->tenant);
	add_text(&h, r->decision.runner->name);
	add_list(&h, r->decision.compile_argv);
	add_list(&h, r->decision.compile_env);
	add_toolchain(&h, r);
	add_part(&h, source.code, source.len);
	for (size_t i = 0; i < request->files_count; i++) {
		add_text(&h, request->files[i].name);
		add_part(&h, request->files[i].data, request->files[i].len);
	}
	sha256_end(&h, ret_key->digest);
}

struct build *build_new(const struct run *r, bool keeps)
{
	struct build *b;

	if (!options_compile(r->decision.runner, r->request->options))
		return NULL;
	b = NEW(struct build);
	b->keeps = keeps;
	buf_init(&b->out, BUILD_ARTIFACT_MAX);
	buf_init(&b->err, MESSAGES_MAX);
	b->has_key = !keeps && can_have_key(r);
	if (b->has_key)
		make_key(r, &b->key);
	return b;
}

bool build_find(struct run *r)
{
	struct build *b = r->build;
	size_t len;

	if (!b->has_key || !build_cache_get(r->service->builds, &b->key, &len))
		return false;
	b->state = BUILD_DONE;
	b->cached = true;
	r->outcome.compile.used = r->outcome.compile.cached = true;
	metrics_count_for(r->service->config.metrics, METRIC_BUILDS, METRIC_LABELS("cached"), 1);
	return true;
}

const void *build_artifact(const struct run *r, size_t *ret_len)
{
	const struct build *b = r->build;

	if (!b->cached) {
		*ret_len = b->out.len;
		return b->out.data;
	}
	return build_cache_get(r->service->builds, &b->key, ret_len);
}

void build_begin(struct run *r)
{
	r->build->state = BUILD_COMPILING;
	r->build->cached = false;
	r->outcome.compile.cached = false;
	r->build->started_us = clock_us();
	r->outcome.compile.used = true;
}

void build_add_output(struct run *r, enum output_stream stream, const char *data, size_t len)
{
	struct build *b = r->build;

	if (stream == OUTPUT_STDOUT && !b->keeps)
		b->too_big |= buf_add(&b->out, data, len) < 0;
	else if (buf_add(&b->err, data, len) < 0)
		return; /* the rest is not read either */
}

/* The run ends with them. */
static void show_messages(struct run *r)
{
	struct build *b = r->build;
	size_t len;

	if (b->too_big)
		(void)!buf_addf(&b->err, "the program exceeds %u bytes\n", BUILD_ARTIFACT_MAX);
	len = b->err.len < r->left[OUTPUT_STDERR] ? b->err.len : r->left[OUTPUT_STDERR];
	if (len < b->err.len)
		r->evidence.err_truncated = true;
	r->left[OUTPUT_STDERR] -= len;
	r->outcome.stderr_bytes += b->err.len;
	if (len > 0)
		run_record_add_output(r->record, OUTPUT_STDERR, b->err.data, len);
}

bool build_end(struct run *r, const struct exec_facts *facts)
{
	struct build *b = r->build;
	struct outcome_compile *out = &r->outcome.compile;
	bool good = facts && !facts->signalled && facts->status == 0 && !b->too_big;

	b->state = BUILD_DONE;
	b->duration_us = clock_us() - b->started_us;
	out->duration_us = b->duration_us;
	out->failed = !good;
	diagnostics_read(r->decision.runner->diagnostics, b->err.data ? b->err.data : "",
	                 b->err.len, &out->diagnostics);
	metrics_count_for(r->service->config.metrics, METRIC_BUILDS,
	                  METRIC_LABELS(good ? "compiled" : "failed"), 1);
	if (!good)
		show_messages(r);
	else if (b->has_key)
		build_cache_put(r->service->builds, &b->key, r->record->tenant, b->out.data,
		                b->out.len);
	return good;
}

bool run_built(struct run *r, const struct exec_facts *facts)
{
	struct exec_facts ended = *facts;

	if (r->state < RUN_STARTING || r->state > RUN_KILLING)
		return false;
	if (build_end(r, facts) && r->state == RUN_RUNNING)
		return true;
	ended.changed_since_ns = 0; /* it has made no files */
	ended.stdout_bytes = 0;
	run_done(r, &ended, NULL);
	return false;
}
