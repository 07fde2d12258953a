/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: file operations of the host, each done by a child with the payload's rights (file_worker.h),
 * several at a time. The agent forwards frames between the host and the child's pipes and buffers
 * what the host may send ahead (WIRE_FILE_WINDOW) and one frame of the child's. It resolves no
 * name.
 *
 * A program can stop or kill a child, which has its uid. Then the operation fails or the host's
 * timeout ends it; nothing else waits.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "guest/spawn.h"
#include "wire/msg.h"
#include <stdbool.h>
#include <stdint.h>

#define FILES_SOURCES (3 * WIRE_FILES_MAX)

struct agent;
struct pollfd;

struct file_stream {
	uint32_t id; /* 0: free slot */
	struct spawned child;
	bool reaped;         /* its pid may be reused */
	bool writes;         /* removes a partial file at early EOF */
	bool changes;        /* files or their names */
	bool ended;          /* FILE_END was received */
	int to;              /* owned: pipe to the child; -1: closed */
	int from;            /* owned: pipe from the child; -1: at EOF */
	struct buf pending;  /* for the child */
	uint32_t owed;       /* window bytes not yet returned to the host */
	struct buf received; /* from the child; may end in a partial frame */
	uint32_t granted;    /* what the host accepts */
};

void files_init(struct agent *a);
/** files_any - an operation is in progress, or a cancelled one cleans up. */
bool files_any(const struct agent *a);
/** files_has - @pid is a child of one of those. */
bool files_has(const struct agent *a, pid_t pid);
/** files_reset - drop all: there is a new host. */
void files_reset(struct agent *a);
void files_reaped(struct agent *a, pid_t pid);
/** files_watch - unused entries get fd -1. */
void files_watch(const struct agent *a, struct pollfd *fds);
int files_pump(struct agent *a, const struct pollfd *fds) attr_must_check;

/* For dispatch.c. */
int files_open(struct agent *a, const struct frame *frame) attr_must_check;
int files_data(struct agent *a, const struct frame *frame) attr_must_check;
int files_end(struct agent *a, const struct frame *frame) attr_must_check;
int files_grant(struct agent *a, const struct frame *frame) attr_must_check;
int files_cancel(struct agent *a, const struct frame *frame) attr_must_check;
