/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: files that the host puts into a box. In /run/millibox the agent creates them, in a directory
 * that no other process can write. In the workspace, where the payload may have planted links, a
 * child with the payload's ids does.
 *
 * One file at a time. While put_is_busy() no frame may be handled: data wait for the child, or the
 * end for its answer.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "guest/spawn.h"
#include "wire/msg.h"
#include <stdbool.h>
#include <stdint.h>

#define PUT_PATH_MAX       4096
#define PUT_COMPONENTS_MAX 32

struct agent;

enum put_state {
	PUT_IDLE,
	PUT_OPEN,
	PUT_CLOSING, /* waiting for the child's answer */
};

struct put {
	enum put_state state;
	uint32_t id;
	int fd;               /* owned: the file, or the pipe to the child */
	struct spawned child; /* status -1: the agent writes itself */
	struct buf pending;   /* owned: one frame's data at most */
};

/** put_check_path - relative, plain components, within the limits. Pure. */
int put_check_path(const struct wire_bytes *path, struct error *err) attr_must_check;

void put_init(struct put *p);
void put_close(struct put *p);
/** put_reaped - @pid has ended: its number may become another process's. */
void put_reaped(struct put *p, pid_t pid);
int put_begin(struct agent *a, uint32_t id, const struct msg_put_begin *msg,
              struct error *err) attr_must_check;
int put_data(struct put *p, const struct wire_bytes *data, struct error *err) attr_must_check;
int put_end(struct put *p, struct error *err) attr_must_check;
bool put_is_busy(const struct put *p);
/** put_pump - Return: 0, or -1 with @err: the file failed. */
int put_pump(struct put *p, struct error *err) attr_must_check;
