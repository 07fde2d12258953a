/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what a box runs, and what it reports at the end. Part of driver.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Queued for the agent, at most: */
#define BOX_FILES_MAX (64u * 1024 * 1024)
#define BOX_STDIN_MAX (64u * 1024 * 1024) /* per execution */
#define BOX_EXECS_MAX 64                  /* concurrent */
#define BOX_LABEL_MAX 64
/* A kept box with this many unacknowledged ends gets no executions. */
#define BOX_UNACKED_MAX 200

enum output_stream {
	OUTPUT_STDOUT,
	OUTPUT_STDERR,
	OUTPUT_COUNT
};

/* A file created before the program starts. Borrowed for the call. */
struct exec_file {
	const char *path; /* relative to the workspace, or to /run/millibox if @source */
	const void *data;
	size_t len;
	uint32_t mode;
	bool source; /* code: the payload cannot write it */
};

/* One program. Borrowed for box_exec. */
struct exec_plan {
	uint32_t id;             /* the caller's, not 0, unique in the box */
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* NULL-terminated */
	const char *cwd;         /* relative to the workspace */
	const struct exec_file *files;
	size_t files_count;
	uint64_t stdout_max;
	uint64_t stderr_max;
	uint32_t report_max;
	bool stdin_open;
	bool keep; /* a resident runner: box_run may name it until its on_done */
	/* Beside others: its end ends no other. Without a report. */
	bool beside;
	const char *source;  /* beside: file in /run/millibox to remove at its end; NULL: none */
	uint16_t rows, cols; /* beside: of its terminal; 0: none. stdout_max is ignored */
	/* In a kept box: 1 to BOX_LABEL_MAX characters, reported to the next daemon. */
	const char *label;
};

/* A program whose code follows. Borrowed for box_prepare. */
struct prepare_plan {
	uint32_t id;
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* NULL-terminated */
	bool report;
};

/* One execution in a resident runner or prepared program. Borrowed for box_run. */
struct run_plan {
	uint32_t id;             /* the caller's, not 0, unique in the box */
	uint32_t runner;         /* exec_plan.id with keep; @id itself: it was prepared */
	const char *source;      /* the code's file, unique in the box; one of @files */
	const char *const *args; /* NULL-terminated */
	const struct exec_file *files;
	size_t files_count;
	uint64_t stdout_max;
	uint64_t stderr_max;
	uint32_t report_max;
	bool stdin_open;
	const char *label; /* as in struct exec_plan */
};

/* An execution or runner of a kept box. @label is the agent's; printable. */
struct box_resumed {
	uint32_t id;
	bool keep;
	uint32_t runner; /* a run's runner, which may have ended */
	const char *label;
	bool stdin_open;
	uint64_t stdin_bytes; /* already received */
};

/* What it may repeat, from its start. */
struct box_grant {
	uint64_t stdout_max;
	uint64_t stderr_max;
	uint32_t report_max;
	bool terminal; /* it is on one: stdout_max is ignored */
	bool forget;   /* only on_forgotten follows, without box_ack */
};

struct exec_facts {
	bool signalled;
	int status; /* exit code or signal */
	uint64_t duration_us;
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	uint64_t max_rss_kib;
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t stdout_bytes;
	uint64_t stderr_bytes;
	bool disk_full;
	bool runner_lost; /* a run: the runner exited without an answer; its on_done follows */
	bool untaken; /* its runner, or the prepared process, exited before it read the code: none
	                 of it has run, even after on_started */
	uint64_t changed_since_ns; /* the workspace has files; those with a change time of at least
	                              this (wall clock) are the run's. 0: it is empty */
};
