/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: resident runners stay between executions: EXEC with keep starts one, RUN gives it code.
 * Descriptor 3 is one end of a SOCK_SEQPACKET pair, the request channel (docs/protocol.md).
 *
 *   agent -> runner  "run ID PATH\0" "ARG\0"...   with stdin, stdout, stderr as descriptors
 *   runner -> agent  "report ID\n" and bytes      any number
 *                    "done ID CODE"               the end of the run
 *
 * The payload holds the other end: nothing here waits or buffers for it, its descriptors are not
 * received, and an unexpected message kills the runner, which could otherwise answer for another
 * run.
 */

#include "base/attr.h"
#include "base/error.h"
#include "guest/denials.h"
#include "guest/spawn.h"
#include "wire/msg.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RESIDENT_MAX         4
#define RESIDENT_SOURCES     (2 * RESIDENT_MAX)
#define RESIDENT_REQUEST_MAX (72 * 1024)
#define RESIDENT_PIECE_MAX   (60 * 1024) /* bytes of one report message */
#define RESIDENT_SOURCE_MAX  255
/* Per round: a flood must not starve other work. */
#define RESIDENT_BATCH 32

struct agent;
struct pollfd;

enum resident_state {
	RESIDENT_NONE,
	RESIDENT_STARTING, /* forked; until exec or failure */
	RESIDENT_ALIVE,    /* until it exits */
	RESIDENT_ENDED,    /* draining its last run; until DONE */
};

struct resident {
	enum resident_state state;
	uint32_t id;
	struct spawned child;
	int channel; /* owned; -1 after the runner broke the protocol */
	struct denials denials;
	uint64_t start_us;
	uint64_t end_us;
	int wait_status;
};

void resident_init(struct agent *a);
int resident_start(struct agent *a, uint32_t id, const struct msg_exec *msg,
                   struct error *err) attr_must_check;
/** resident_find - NULL: unknown, or ended. */
struct resident *resident_find(struct agent *a, uint32_t id);
/** resident_any - whether one has not ended. */
bool resident_any(const struct agent *a);
/** resident_cpu_us - of all threads; 0: exited. */
uint64_t resident_cpu_us(const struct resident *r);

/** resident_check_source - @source must be a name in the RUN place. */
int resident_check_source(const struct wire_bytes *source, char ret_name[RESIDENT_SOURCE_MAX + 1],
                          struct error *err) attr_must_check;
/** resident_ask - send the request of run @id; kills a runner that cannot take it. */
int resident_ask(struct agent *a, struct resident *r, uint32_t id, const struct msg_run *msg,
                 const int stdio[3], struct error *err) attr_must_check;
/** resident_send - the request of run @id, to a prepared program, which has its stdio. */
int resident_send(int channel, uint32_t id, const struct msg_run *msg,
                  struct error *err) attr_must_check;
/** resident_settle - its run is over: if the runner has exited, send DONE and free it. */
int resident_settle(struct agent *a, struct resident *r) attr_must_check;

/** resident_signal - to its process group; SIGKILL to the whole box if nothing else should stay. */
void resident_signal(const struct agent *a, const struct resident *r, int signo);
void resident_kill_all(const struct agent *a);
/** resident_has - @pid is the main process of a live one. */
bool resident_has(const struct agent *a, pid_t pid);
int resident_reaped(struct agent *a, pid_t pid, int wait_status) attr_must_check;
/** resident_watch - unused entries get fd -1. */
void resident_watch(const struct agent *a, struct pollfd *fds);
int resident_pump(struct agent *a, const struct pollfd *fds) attr_must_check;
