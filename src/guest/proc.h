/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one execution: a program with its pipes, from EXEC to DONE.
 *
 * It is over when its main process has ended, whoever else still holds its pipes. Those are then
 * read for a short while, the facts are sent, and everything that is left in the box is killed.
 */

#include "base/attr.h"
#include "base/error.h"
#include "guest/denials.h"
#include "guest/output.h"
#include "guest/report.h"
#include "guest/spawn.h"
#include "guest/stdin.h"
#include "wire/msg.h"
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Read at most this much after the end; a background process could otherwise go on for ever. */
#define PROC_DRAIN_MAX_BYTES (8 * 1024 * 1024)

struct agent;
struct pollfd;

enum proc_state {
	PROC_IDLE,     /* none; EXEC is allowed */
	PROC_STARTING, /* forked; left when the child executed its program or failed */
	PROC_RUNNING,  /* STARTED was sent; left when the main process ends */
	PROC_DRAINING, /* the main process ended; left by DONE */
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
	uint64_t end_us;
	uint64_t drained; /* bytes read since the end */
	int wait_status;
};

void proc_init(struct proc *p);
int proc_start(struct agent *a, uint32_t id, const struct msg_exec *msg,
               struct error *err) attr_must_check;
/** proc_signal - to everything in the box but the agent. */
void proc_signal(const struct agent *a, int signo);
/** proc_reaped - a child of the agent ended. */
int proc_reaped(struct agent *a, pid_t pid, int wait_status) attr_must_check;
/** proc_watch - fill PROC_SOURCES entries for poll; unused ones get fd -1. */
void proc_watch(const struct agent *a, struct pollfd *fds);
/** proc_timeout_ms - how long poll may sleep; -1: for ever. */
int proc_timeout_ms(const struct agent *a);
/** proc_pump - go on with what poll found (@fds), or with the end of the execution. */
int proc_pump(struct agent *a, const struct pollfd *fds) attr_must_check;
