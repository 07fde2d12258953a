/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: an in-memory driver for tests: boxes without processes; the test plays the agent over a real
 * link.
 *
 * Callbacks caused by a fake_* function run inside it; those caused by core (on_gone after
 * box_destroy) run on the loop.
 */

#include "driver/driver.h"

struct loop;

/** fake_driver_new - all layers, none required, 1000 boxes; freed with driver_free. */
struct driver *fake_driver_new(struct loop *loop);
void fake_refuse_next(struct driver *d, const struct error *err);
/** fake_hold_gone - while on, on_gone waits for fake_gone. Off by default. */
void fake_hold_gone(struct driver *d, bool hold);

/** fake_hold_freeze - while on, box_freeze is finished by fake_frozen. Off by default. */
void fake_hold_freeze(struct driver *d, bool hold);

/** fake_hold_report - while on, the report of box_ask_network is due. Off by default. */
void fake_hold_report(struct driver *d, bool hold);

/** fake_keep - for box_adopt. */
void fake_keep(struct driver *d, const char *id, bool frozen);
size_t fake_kept(const struct driver *d);
bool fake_has_left(const struct driver *d);

size_t fake_box_count(const struct driver *d);
/** fake_box_at - oldest first; NULL past the end. */
struct box *fake_box_at(const struct driver *d, size_t index);
const struct box_spec *fake_spec(const struct box *box);
bool fake_is_destroyed(const struct box *box);
bool fake_is_frozen(const struct box *box);
/** fake_frozen - on_frozen. */
void fake_frozen(struct box *box);
void fake_set_counters(struct box *box, const struct box_counters *counters);
void fake_set_layers(struct box *box, uint32_t layers);

struct fake_file {
	char *path; /* owned */
	char *data; /* owned, NUL-terminated */
	size_t len;
	uint32_t mode;
	bool source;
};

/* What the agent received for an execution, runner or run. Owned. */
struct fake_exec {
	uint32_t id;
	bool keep;
	bool prepared; /* argv is PREPARE's until RUN */
	bool beside;
	uint16_t rows, cols; /* of its terminal; 0: none */
	uint64_t granted;    /* output of the terminal, since its start */
	uint32_t runner;     /* a run's runner; else 0 */
	char *source;        /* a run: its code */
	char **argv;         /* NULL-terminated; a run's arguments; NULL before EXEC or RUN */
	char **env;
	char *cwd;
	struct fake_file *files;
	size_t files_count;
	char *stdin_data; /* NUL-terminated; so far */
	size_t stdin_len;
	bool stdin_open; /* requested and not ended */
	char *label;     /* owned; NULL: none */
	bool acked;
	int signo; /* last signal; 0: none */
	unsigned signals;
	uint64_t stdout_max;
	uint64_t stderr_max;
	uint32_t report_max;
};

/** fake_exec_last - the newest; NULL: none. Borrowed until the box is gone. */
const struct fake_exec *fake_exec_last(struct box *box);

/** fake_exec_of - NULL: unknown id. */
const struct fake_exec *fake_exec_of(struct box *box, uint32_t exec_id);

void fake_ready(struct box *box);
/** fake_resume - HELLO of an adopted box; @count calls of fake_describe follow. */
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
void fake_lost(struct box *box, const struct error *err);
/** fake_gone - release a destroyed box held by fake_hold_gone. */
void fake_gone(struct box *box);
