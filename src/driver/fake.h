/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: an in-memory driver for tests: boxes without processes, whose agent is played by the test.
 * It has the ops of every driver and a real link, so that what core hands over is encoded, bounded
 * and decoded as in earnest. Linked into tests only.
 *
 * Callbacks that the test causes with a fake_* function come from inside that function; those that
 * core causes (on_gone after box_destroy) come from the loop.
 */

#include "driver/driver.h"

struct loop;

/** fake_driver_new - all layers, none required, 1000 boxes; freed with driver_free. */
struct driver *fake_driver_new(struct loop *loop);
/** fake_refuse_next - the next box_create fails with @err. */
void fake_refuse_next(struct driver *d, const struct error *err);
/** fake_hold_gone - while on, on_gone waits for fake_gone. Off at first: it follows by itself. */
void fake_hold_gone(struct driver *d, bool hold);

/** fake_keep - an earlier daemon has left a box: box_adopt finds it. */
void fake_keep(struct driver *d, const char *id, bool frozen);
/** fake_kept - boxes that were left and not adopted. */
size_t fake_kept(const struct driver *d);
/** fake_has_left - driver_leave was called. */
bool fake_has_left(const struct driver *d);

/** fake_box_count - boxes that are not gone. */
size_t fake_box_count(const struct driver *d);
/** fake_box_at - by age, the oldest first; NULL past the end. */
struct box *fake_box_at(const struct driver *d, size_t index);
const struct box_spec *fake_spec(const struct box *box);
bool fake_is_destroyed(const struct box *box);
bool fake_is_frozen(const struct box *box);
void fake_set_counters(struct box *box, const struct box_counters *counters);
/** fake_set_layers - what box_layers says. */
void fake_set_layers(struct box *box, uint32_t layers);

struct fake_file {
	char *path; /* owned */
	char *data; /* owned, NUL-terminated */
	size_t len;
	uint32_t mode;
	bool source;
};

/* What the agent was told of one execution, runner or run. All owned. */
struct fake_exec {
	uint32_t id;
	bool keep;       /* a runner that stays */
	bool prepared;   /* it was prepared; argv is that of PREPARE until RUN came */
	uint32_t runner; /* a run: who is to run it; else 0 */
	char *source;    /* a run: its code */
	char **argv;     /* NULL-terminated; arguments of a run; NULL before EXEC or RUN came */
	char **env;
	char *cwd;
	struct fake_file *files;
	size_t files_count;
	char *stdin_data; /* NUL-terminated; so far */
	size_t stdin_len;
	bool stdin_open; /* asked for, and no end came */
	char *label;     /* owned; NULL: none */
	bool acked;
	int signo;        /* last signal sent to it, 0: none */
	unsigned signals; /* how many came */
	uint64_t stdout_max;
	uint64_t stderr_max;
	uint32_t report_max;
};

/** fake_exec_last - the newest execution the box was given, with all that came until now; NULL:
 * none. Borrowed until the box is gone. */
const struct fake_exec *fake_exec_last(struct box *box);

/** fake_exec_of - the same of one execution; NULL: it was given none of this id. */
const struct fake_exec *fake_exec_of(struct box *box, uint32_t exec_id);

/* The agent's part. */
void fake_ready(struct box *box);
/** fake_resume - of an adopted box: HELLO, then @count of fake_describe will follow. */
void fake_resume(struct box *box, uint32_t last_id, uint32_t count);
void fake_describe(struct box *box, const struct box_resumed *what);
void fake_prepared(struct box *box, uint32_t exec_id);
void fake_started(struct box *box, uint32_t exec_id);
void fake_output(struct box *box, uint32_t exec_id, enum output_stream stream, const char *data,
                 size_t len);
void fake_report(struct box *box, uint32_t exec_id, const char *json);
void fake_denial(struct box *box, uint32_t exec_id, uint32_t syscall_number, uint64_t count);
void fake_done(struct box *box, uint32_t exec_id, const struct exec_facts *facts);
void fake_exec_failed(struct box *box, uint32_t exec_id, const struct error *err);
/** fake_lost - the box ends by itself. */
void fake_lost(struct box *box, const struct error *err);
/** fake_gone - the box was destroyed and fake_hold_gone is on: let go of it. */
void fake_gone(struct box *box);
