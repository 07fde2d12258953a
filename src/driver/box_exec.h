/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what is given to a box to be run, and what it tells of the end. Part of driver.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a box keeps for its agent until it can be sent. */
#define BOX_FILES_MAX (64u * 1024 * 1024) /* files and commands */
#define BOX_STDIN_MAX (64u * 1024 * 1024) /* per execution */
#define BOX_EXECS_MAX 64                  /* executions at the same time */
#define BOX_LABEL_MAX 64
/* Executions of a kept box whose end may be unacknowledged before it is given more. */
#define BOX_UNACKED_MAX 200

enum output_stream {
	OUTPUT_STDOUT,
	OUTPUT_STDERR,
	OUTPUT_COUNT
};

/* A file to be there before the program starts. Borrowed for the call. */
struct exec_file {
	const char *path; /* relative to the workspace, or to /run/millibox when @source */
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
	bool keep; /* a runner that stays: box_run may name its id until its on_done */
	/* In a box that is kept: 1 to BOX_LABEL_MAX characters, told to the next daemon. */
	const char *label;
};

/* A program whose code is still to come. Borrowed for the call of box_prepare. */
struct prepare_plan {
	uint32_t id;             /* as in struct exec_plan */
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* NULL-terminated */
	bool report;             /* it may report */
};

/* One execution by a runner that stays, or by one that was prepared. Borrowed for the call of
 * box_run. */
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

/* What is in a box that an earlier daemon made. @label is the agent's word, printable. */
struct box_resumed {
	uint32_t id;
	bool keep;       /* a runner that stays */
	uint32_t runner; /* a run: of whom; it may have ended */
	const char *label;
	bool stdin_open;
	uint64_t stdin_bytes; /* of it that came already */
};

/* What it may say once more, from its start. */
struct box_grant {
	uint64_t stdout_max;
	uint64_t stderr_max;
	uint32_t report_max;
	bool forget; /* none of it is of interest any more but that it ends: on_forgotten alone
	                comes, and box_ack is not needed */
};

/* How the main process ended: the agent's and the kernel's word. */
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
	bool runner_lost; /* of a run: the runner ended instead of answering; its on_done follows */
	bool untaken;     /* its runner, or the process that was prepared, ended before it took the
	                     code, of which nothing has run, whatever on_started said */
	uint64_t
		changed_since_ns; /* there are files in the workspace; those with a change time of
	                             at least this (wall clock) are of the run. 0: there are none */
};
