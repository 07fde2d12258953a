/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one execution: a program with its pipes, from EXEC to DONE.
 *
 * It is over when its main process exits, even if others hold its pipes. The pipes are drained
 * briefly, the facts are sent, and everything left in the box is killed.
 *
 * A prepared program (PREPARE) waits; RUN makes it an ordinary execution. See prepared.c.
 *
 * Any other RUN is an execution in a resident runner (resident.h): it has its own pipes, the runner
 * announces its end, and nothing is killed.
 */

#include "base/attr.h"
#include "base/error.h"
#include "guest/denials.h"
#include "guest/input.h"
#include "guest/output.h"
#include "guest/report.h"
#include "guest/resident.h"
#include "guest/spawn.h"
#include "wire/msg.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* A background process could write for ever. */
#define PROC_DRAIN_MAX_BYTES (8 * 1024 * 1024)

struct agent;
struct pollfd;

enum proc_state {
	PROC_IDLE,      /* none; EXEC and PREPARE are allowed */
	PROC_PREPARING, /* forked by PREPARE; until exec or failure */
	PROC_PREPARED,  /* until its RUN, or it exits */
	PROC_STARTING,  /* forked; until exec or failure */
	PROC_RUNNING,   /* until the main process exits */
	PROC_DRAINING,  /* until DONE */
};

enum proc_source {
	PROC_STATUS,
	PROC_OUT,
	PROC_ERR,
	PROC_IN,
	PROC_REPORT,
	PROC_DENIALS,
	PROC_SOURCES
};

struct proc {
	enum proc_state state;
	uint32_t id;
	struct spawned child;
	struct output out[WIRE_STREAM_COUNT];
	struct input in;
	struct report report;
	struct denials denials;
	uint32_t drain_ms;
	uint64_t start_us;
	uint64_t start_real_ns; /* of the clock that stamps files */
	uint64_t end_us;
	uint64_t drained; /* since the end */
	int wait_status;
	int channel;    /* owned; of a prepared program: to its process; else -1 */
	bool announced; /* may still be exiting */
	bool untaken;   /* ended with its request unread */
	/* Only for a RUN in a resident runner. */
	struct resident *runner; /* NULL: no such RUN */
	uint32_t report_left;    /* bytes to forward */
	bool runner_lost;        /* exited instead of answering */
	uint64_t cpu_us;         /* before the run, then during it */
	char source[RESIDENT_SOURCE_MAX + 1];
};

/* Owned; -1: none. */
struct child_ends {
	int fds[3];
};

void child_ends_close(struct child_ends *ends);
void proc_init(struct proc *p);
int proc_start(struct agent *a, uint32_t id, const struct msg_exec *msg,
               struct error *err) attr_must_check;
/** proc_run - in a resident runner. */
int proc_run(struct agent *a, uint32_t id, const struct msg_run *msg,
             struct error *err) attr_must_check;
/** proc_open_pipes - stdio and report socket; the program's ends go to @ends. */
int proc_open_pipes(struct agent *a, const struct msg_exec *msg,
                    struct child_ends *ends) attr_must_check;
void proc_close(struct proc *p);
/** proc_cpu_us - of all threads of a process not yet reaped; 0: unknown. */
uint64_t proc_cpu_us(pid_t pid);
/** proc_note_start - file changes are the execution's from now on. */
void proc_note_start(struct agent *a);
/** proc_run_started - the RUN's runner has started: tell the host. */
int proc_run_started(struct agent *a) attr_must_check;
/** proc_run_report - from the runner; drops bytes beyond the maximum. */
int proc_run_report(struct agent *a, const char *data, size_t len) attr_must_check;
/** proc_run_over - the runner answered, or exited (@lost). */
void proc_run_over(struct agent *a, int wait_status, bool lost);
int proc_run_failed(struct agent *a, const struct error *err) attr_must_check;
/** proc_exit_announced - with @code: do not wait for the exit. */
void proc_exit_announced(struct agent *a, int code);
/** proc_fill_done - what the kernel knows; the caller adds the rest. */
void proc_fill_done(struct msg_done *msg, int wait_status, uint64_t duration_us);
/**
 * proc_signal - to the box except the agent and its file workers; beside resident runners or other
 * programs to the execution's process group.
 */
void proc_signal(const struct agent *a, int signo);
/** proc_input - stdin of execution or program @id; NULL: it has ended. */
struct input *proc_input(struct agent *a, uint32_t id);
int proc_reaped(struct agent *a, pid_t pid, int wait_status) attr_must_check;
/** proc_watch - unused entries get fd -1. */
void proc_watch(const struct agent *a, struct pollfd *fds);
int proc_timeout_ms(const struct agent *a);
/** proc_pump - what poll found (@fds), or the end of the execution. */
int proc_pump(struct agent *a, const struct pollfd *fds) attr_must_check;
