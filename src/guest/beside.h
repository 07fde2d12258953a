/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: programs beside the execution: each is a process with pipes or a terminal, from BESIDE to
 * DONE. They neither wait for the execution nor for each other, and the end of one ends no other:
 * what is killed with it is its own session (kill_all.h).
 *
 * Memory is allocated when one starts: most boxes never have any.
 */

#include "base/attr.h"
#include "base/error.h"
#include "guest/denials.h"
#include "guest/input.h"
#include "guest/output.h"
#include "guest/resident.h"
#include "guest/spawn.h"
#include "wire/msg.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

struct agent;
struct pollfd;

enum beside_state {
	BESIDE_STARTING, /* forked; until exec or failure */
	BESIDE_RUNNING,  /* until the main process exits */
	BESIDE_DRAINING, /* until DONE */
};

enum beside_source {
	BESIDE_STATUS,
	BESIDE_OUT,
	BESIDE_ERR,
	BESIDE_IN,
	BESIDE_DENIALS,
	BESIDE_SOURCES
};

struct beside {
	enum beside_state state;
	uint32_t id;
	struct spawned child;
	struct output out[WIRE_STREAM_COUNT];
	struct input in;
	struct denials denials;
	int terminal; /* owned: its controlling end; -1: it has pipes */
	uint32_t drain_ms;
	uint64_t start_us;
	uint64_t end_us;
	uint64_t drained; /* since the end */
	int wait_status;
	struct rusage usage; /* of the process and what it waited for */
	char source[RESIDENT_SOURCE_MAX + 1];
};

int beside_start(struct agent *a, uint32_t id, const struct msg_beside *msg,
                 struct error *err) attr_must_check;
/** beside_find - NULL: unknown, or ended. */
struct beside *beside_find(struct agent *a, uint32_t id);
bool beside_any(const struct agent *a);
/** beside_resize - nothing without a terminal. */
void beside_resize(const struct beside *b, uint16_t rows, uint16_t cols);
/** beside_grant - Return: 0, or -EPROTO: beyond the window. */
int beside_grant(struct beside *b, uint32_t bytes) attr_must_check;
/** beside_signal - to its process group, on a terminal to what is in the foreground; SIGKILL to its
 * whole session. */
void beside_signal(const struct agent *a, const struct beside *b, int signo);
void beside_kill_all(const struct agent *a);
/** beside_detach - the host is gone: a terminal shows what comes next to another one. */
void beside_detach(struct agent *a);
int beside_reaped(struct agent *a, pid_t pid, int wait_status,
                  const struct rusage *usage) attr_must_check;
/** beside_watch - of all up to agent.besides_end. */
void beside_watch(const struct agent *a, struct pollfd *fds);
int beside_timeout_ms(const struct agent *a);
int beside_pump(struct agent *a, const struct pollfd *fds) attr_must_check;
