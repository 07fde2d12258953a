/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: callbacks of a box as one line of text, so that a test states what must happen, in which
 * order, and that nothing else did: "ready started(1) out(1,hi) done(1,exit 0) ".
 */

#include "unit.h"

#include "base/buf.h"
#include "driver/driver.h"
#include <string.h>

struct recorder {
	struct buf text;
	struct exec_facts facts; /* of the last on_done */
	struct error err;        /* of the last on_lost or on_exec_failed */
	struct box *box;
	const char *destroy_on; /* destroy @box from inside the callback of this name */
};

attr_printf(3, 4) static inline void record(struct recorder *r, const char *name, const char *fmt,
                                            ...)
{
	char args[200];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(args, sizeof(args), fmt, ap);
	va_end(ap);
	assert_int_equal(buf_addf(&r->text, "%s%s ", name, args), 0);
	if (r->destroy_on && strcmp(r->destroy_on, name) == 0)
		box_destroy(r->box);
}

static inline void record_ready(void *ctx)
{
	record(ctx, "ready", "%s", "");
}

static inline void record_prepared(void *ctx, uint32_t id)
{
	record(ctx, "prepared", "(%u)", id);
}

static inline void record_started(void *ctx, uint32_t id)
{
	record(ctx, "started", "(%u)", id);
}

static inline void record_output(void *ctx, uint32_t id, enum output_stream stream,
                                 const char *data, size_t len)
{
	record(ctx, stream == OUTPUT_STDOUT ? "out" : "err", "(%u,%.*s)", id,
	       len > 40 ? 40 : (int)len, data);
}

static inline void record_report(void *ctx, uint32_t id, const char *data, size_t len)
{
	record(ctx, "report", "(%u,%.*s)", id, len > 40 ? 40 : (int)len, data);
}

static inline void record_denial(void *ctx, uint32_t id, const char *what, uint64_t count)
{
	record(ctx, "denial", "(%u,%s,%llu)", id, what, (unsigned long long)count);
}

static inline void record_done(void *ctx, uint32_t id, const struct exec_facts *facts)
{
	struct recorder *r = ctx;

	r->facts = *facts;
	record(r, "done", "(%u,%s %d)", id, facts->signalled ? "signal" : "exit", facts->status);
}

static inline void record_exec_failed(void *ctx, uint32_t id, const struct error *err)
{
	struct recorder *r = ctx;

	r->err = *err;
	record(r, "failed", "(%u,%s)", id, error_name(err->code));
}

static inline void record_lost(void *ctx, const struct error *err)
{
	struct recorder *r = ctx;

	r->err = *err;
	record(r, "lost", "(%s)", error_name(err->code));
}

static inline void record_frozen(void *ctx)
{
	record(ctx, "frozen", "%s", "");
}

static inline void record_gone(void *ctx)
{
	record(ctx, "gone", "%s", "");
}

static inline void recorder_init(struct recorder *r)
{
	*r = (struct recorder){.text = BUF_INIT(1000000)};
}

static inline struct box_events recorder_events(struct recorder *r)
{
	return (struct box_events){.ctx = r,
	                           .on_ready = record_ready,
	                           .on_prepared = record_prepared,
	                           .on_started = record_started,
	                           .on_output = record_output,
	                           .on_report = record_report,
	                           .on_denial = record_denial,
	                           .on_done = record_done,
	                           .on_exec_failed = record_exec_failed,
	                           .on_lost = record_lost,
	                           .on_gone = record_gone,
	                           .on_frozen = record_frozen};
}

/** recorder_expect - exactly @text happened since the last call. */
#define recorder_expect(r, expected)                                                               \
	do {                                                                                       \
		assert_string_equal((r)->text.data ? (r)->text.data : "", expected);               \
		buf_reset(&(r)->text);                                                             \
	} while (0)

/* A spec that every driver accepts. */
static inline struct box_spec sample_spec(const char *id)
{
	struct box_spec spec = {.limits = {.memory_bytes = 64 << 20,
	                                   .workspace_bytes = 8 << 20,
	                                   .tmp_bytes = 16 << 20,
	                                   .shm_bytes = 1 << 20,
	                                   .workspace_inodes = 1000,
	                                   .tmp_inodes = 2000,
	                                   .pids = 32,
	                                   .cpu_millicores = 500,
	                                   .nofile = 256}};

	assert_true(strlen(id) < sizeof(spec.id));
	memcpy(spec.id, id, strlen(id) + 1);
	return spec;
}

static const char *const sample_argv[] = {"/usr/bin/python3", "-c", "pass", NULL};
static const char *const sample_env[] = {"PATH=/usr/bin", NULL};

static inline struct exec_plan sample_plan(uint32_t id)
{
	return (struct exec_plan){.id = id,
	                          .argv = sample_argv,
	                          .env = sample_env,
	                          .cwd = "",
	                          .stdout_max = 100,
	                          .stderr_max = 10,
	                          .report_max = 50};
}
