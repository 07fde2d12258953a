/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the payload's filter refused. The kernel hands each refused call to the listener; the
 * answer is always EPERM, the number is counted. Nothing the payload passes is looked at: its
 * memory could change under our eyes. The one exception is a number in a register: the code of an
 * exit_group() that is refused only to be heard (INJECT_LEAVING).
 */

#include "base/attr.h"
#include "guest/channel.h"
#include <stdint.h>

#define DENIALS_KINDS_MAX 32
/* Answers per round: a flood must not keep the agent from its other work. */
#define DENIALS_BATCH 64

struct denial_count {
	uint32_t number;
	uint64_t count;
};

struct denials {
	int fd; /* owned: the listener, or -1 */
	unsigned kinds;
	struct denial_count counts[DENIALS_KINDS_MAX];
	int leaver;     /* who said last that it ends, or 0 */
	int leave_code; /* and with what */
};

/** denials_open - take the listener @fd, or -1 when there is none. */
void denials_open(struct denials *d, int fd);
void denials_close(struct denials *d);
/** denials_count - note one refusal; beyond DENIALS_KINDS_MAX kinds new ones are not kept. */
void denials_count(struct denials *d, uint32_t number);
/** denials_pump - answer what waits, at most DENIALS_BATCH. */
void denials_pump(struct denials *d);
/** denials_send - one DENIAL per kind. */
int denials_send(const struct denials *d, struct channel *ch, uint32_t id) attr_must_check;
