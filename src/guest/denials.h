/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: system calls that the payload's filter refused. The kernel passes each to the listener; the
 * answer is always EPERM, and the number is counted. Arguments are not examined: the payload's
 * memory could change meanwhile. Except a register: the code of an exit_group() that is refused
 * only to learn of it (INJECT_LEAVING).
 */

#include "base/attr.h"
#include "guest/channel.h"
#include <stdint.h>

#define DENIALS_KINDS_MAX 32
/* Per round: a flood must not starve other work. */
#define DENIALS_BATCH 64

struct denial_count {
	uint32_t number;
	uint64_t count;
};

struct denials {
	int fd; /* owned: the listener, or -1 */
	unsigned kinds;
	struct denial_count counts[DENIALS_KINDS_MAX];
	int leaver; /* last pid that announced its exit, or 0 */
	int leave_code;
};

/** denials_open - take ownership of the listener; -1: none. */
void denials_open(struct denials *d, int fd);
void denials_close(struct denials *d);
/** denials_count - drops new kinds beyond DENIALS_KINDS_MAX. */
void denials_count(struct denials *d, uint32_t number);
/** denials_pump - at most DENIALS_BATCH. */
void denials_pump(struct denials *d);
/** denials_send - one DENIAL per kind. */
int denials_send(const struct denials *d, struct channel *ch, uint32_t id) attr_must_check;
