/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what a box is given to run, and what it reports at the end. Part of driver.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a box queues for its agent until it can be sent. */
#define BOX_FILES_MAX (64u * 1024 * 1024) /* files and commands */
#define BOX_STDIN_MAX (64u * 1024 * 1024) /* per execution */
#define BOX_EXECS_MAX 64                  /* executions at the same time */
#define BOX_LABEL_MAX 64
/* A kept box gets no more executions while so many ends are unacknowledged. */
#define BOX_UNACKED_MAX 200

enum output_stream {
	OUTPUT_STDOUT,
	OUTPUT_STDERR,
	OUTPUT_COUNT
};

/* A file to create before the program starts. Borrowed for the call. */
struct exec_file {
	const char *path; /* relative to the workspace, or to /run/millibox if @source */
	const void *data;
	size_t len;
	uint32_t mode;
	bool source; /* the program's text: not writable by the payload */
};

/* One program to run. Borrowed for the call of box_exec. */
struct exec_plan {
	uint32_t id;             /* chosen by the caller, not 0, unique in the box */
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* NULL-terminated */
	const char *cwd;         /* relative to the workspace */
	const struct exec_file *files;
	size_t files_count;
	uint64_t stdout_max;
	uint64_t stderr_max;
	uint32_t report_max;
	bool stdin_open;
	bool keep; /* a resident runner: box_run may name its id until its on_done */
	/* In a kept box: 1 to BOX_LABEL_MAX characters, reported to the next daemon. */
	const char *label;
};

/* A program whose code follows later. Borrowed for the call of box_prepare. */
struct prepare_plan {
	uint32_t id;             /* as in struct exec_plan */
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* NULL-terminated */
	bool report;             /* reports are accepted */
};

/* One execution by a resident runner or in a prepared program. Borrowed for the call of box_run. */
struct run_plan {
	uint32_t id;             /* chosen by the caller, not 0, unique in the box */
	uint32_t runner;         /* id of the exec_plan with keep; @id itself: it was prepared */
	const char *source;      /* name of the code's file, unique in the box; one of @files */
	const char *const *args; /* NULL-terminated */
	const struct exec_file *files;
	size_t files_count;
	uint64_t stdout_max;
	uint64_t stderr_max;
	uint32_t report_max;
	bool stdin_open;
	const char *label; /* as in struct exec_plan */
};

/* An execution or runner of a kept box. @label comes from the agent; printable. */
struct box_resumed {
	uint32_t id;
	bool keep;       /* a resident runner */
	uint32_t runner; /* a run: id of its runner, which may have ended */
	const char *label;
	bool stdin_open;
	uint64_t stdin_bytes; /* bytes already received */
};

/* What it may send again, from its start. */
struct box_grant {
	uint64_t stdout_max;
	uint64_t stderr_max;
	uint32_t report_max;
	bool forget; /* only its end matters: on_forgotten alone follows, without box_ack */
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
