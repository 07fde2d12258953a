/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: messages between the gateway and its starter, one per packet. The gateway, which reads what
 * hostile code writes, cannot execute anything; it names a server by its number, and the starter
 * runs the command that the operator configured for it.
 */

#include "base/attr.h"
#include "gateway/spec.h"
#include <stdint.h>

enum spawn_op {
	SPAWN_OP_NONE,
	SPAWN_START,   /* order: answered by STARTED or FAILED */
	SPAWN_STOP,    /* order: kill the server and all that it started */
	SPAWN_STARTED, /* carries its stdin, stdout and stderr */
	SPAWN_FAILED,  /* .status is a negative errno */
	SPAWN_ENDED,   /* .status is that of waitpid */
	SPAWN_OP_COUNT
};

enum spawn_fd {
	SPAWN_FD_IN,
	SPAWN_FD_OUT,
	SPAWN_FD_ERR,
	SPAWN_FD_COUNT
};

struct spawn_message {
	uint32_t op;
	uint32_t server;     /* its number */
	uint32_t generation; /* of the gateway, echoed: tells one start from the next */
	int32_t status;
};

struct spawner;

void spawner_free(struct spawner *s);
/** spawner_new - @specs are borrowed. */
struct spawner *spawner_new(struct server_spec *const *specs, size_t count, int sock)
	attr_owned(spawner_free);
/** spawner_obey - one order of the gateway. Return: false if there is none any more. */
bool spawner_obey(struct spawner *s);
/** spawner_ended - a child of ours that is no gateway. */
void spawner_ended(struct spawner *s, pid_t pid, int status);
