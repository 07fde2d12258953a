/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: files of a box's workspace. Operations run in the box with the payload's rights, at most
 * BOX_FILE_OPS_MAX at a time, beside executions. Part of driver.h.
 */

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct box;

#define BOX_FILE_OPS_MAX 8
#define BOX_FILE_WINDOW  (256u * 1024) /* in flight per direction and operation */
#define BOX_SHA256_LEN   32

struct box_file;

enum box_file_op {
	BOX_FILE_STAT,
	BOX_FILE_LIST,
	BOX_FILE_READ,
	BOX_FILE_WRITE,
	BOX_FILE_MKDIR,
	BOX_FILE_MOVE,
	BOX_FILE_REMOVE,
	BOX_FILE_TAR,     /* directory to archive */
	BOX_FILE_UNTAR,   /* archive to directory */
	BOX_FILE_CHANGES, /* changed regular, non-hidden files, with digests */
	BOX_FILE_OP_COUNT
};

enum box_file_type {
	BOX_FILE_REGULAR,
	BOX_FILE_DIRECTORY,
	BOX_FILE_LINK,
	BOX_FILE_OTHER,
	BOX_FILE_TYPE_COUNT
};

/* Borrowed for the call. */
struct box_file_request {
	enum box_file_op op;
	const char *path; /* in the workspace; "": itself */
	const char *to;   /* MOVE: new path. LIST: names after this. NULL: "" */
	uint64_t offset;  /* READ: start. CHANGES: since (wall clock, ns) */
	uint64_t length;  /* READ: at most. WRITE, (UN)TAR: reject more. CHANGES: bytes to hash */
	uint32_t mode;    /* WRITE: permission bits */
	uint32_t limit;   /* LIST, TAR, UNTAR, CHANGES: most entries */
	bool recursive;   /* LIST, REMOVE */
	bool parents;     /* WRITE, MKDIR, MOVE, UNTAR: create missing directories */
	bool replace;     /* MOVE: overwrite a file */
};

/* Untrusted: names of any bytes but NUL. Borrowed for the call. */
struct box_file_entry {
	enum box_file_type type;
	const char *path; /* below the request's path; "": that path */
	uint64_t size, mtime_ns, ctime_ns, inode;
	uint32_t mode;
	const char *target;    /* of a link, else "" */
	const uint8_t *sha256; /* BOX_SHA256_LEN bytes, or NULL */
};

struct box_file_summary {
	bool truncated; /* more entries than the limit */
	uint64_t entries, bytes;
};

/*
 * From the loop, never inside a call. on_done or on_failed is the last; after it, and after
 * box_file_cancel, the operation is freed. All are required.
 */
struct box_file_events {
	void *ctx;
	void (*on_entry)(void *ctx, const struct box_file_entry *entry);
	/* READ and TAR. At most BOX_FILE_WINDOW without box_file_grant. */
	void (*on_data)(void *ctx, const char *data, size_t len);
	/* box_file_write accepts bytes again. */
	void (*on_room)(void *ctx);
	void (*on_done)(void *ctx, const struct box_file_summary *summary);
	void (*on_failed)(void *ctx, const struct error *err);
};

/**
 * box_file_open - if the box is lost, on_failed precedes its on_lost; cancel all operations before
 * destroying the box.
 */
int box_file_open(struct box *box, const struct box_file_request *request,
                  const struct box_file_events *events, struct box_file **ret_file,
                  struct error *err) attr_must_check;
/** box_file_write - WRITE and UNTAR. Return: bytes accepted; if not all, on_room follows. */
size_t box_file_write(struct box_file *file, const char *data, size_t len);
/** box_file_end - without it nothing is written. */
void box_file_end(struct box_file *file);
/** box_file_grant - @bytes of on_data were consumed; as many more may come. */
void box_file_grant(struct box_file *file, size_t bytes);
void box_file_cancel(struct box_file *file);
