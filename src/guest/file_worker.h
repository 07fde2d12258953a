/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the child that does one file operation, as the payload (drop.h), in the workspace: it meets
 * what the payload planted there with only the payload's rights. FILE_DATA and FILE_END come on
 * descriptor 0; FILE_ENTRY, FILE_BYTES and FILE_DONE go to descriptor 1: pipes to the agent, which
 * enforces sizes and credit. Errors go over the status socket.
 *
 * Paths are resolved by openat2 beneath the workspace. Links in the caller's path are followed
 * while they stay inside; a tree walk follows none.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "guest/put.h"
#include "wire/msg.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define FILE_DEPTH_MAX PUT_COMPONENTS_MAX
/* Names and targets of one listing, which the host keeps and formats several times. */
#define FILE_LIST_BYTES (1024 * 1024)

/* Copied: outlives the frame. */
struct file_job {
	enum wire_file_op op;
	uint32_t flags;
	char path[PUT_PATH_MAX + 1];
	char to[PUT_PATH_MAX + 1];
	uint64_t offset, length;
	uint32_t mode, limit;
};

struct file_out {
	struct buf b;
	struct msg_file_done done;
};

struct file_in {
	size_t off, len; /* of @data, not consumed */
	struct wire_bytes piece;
	bool ended;
	uint8_t data[FRAME_MAX_LEN];
};

/** file_worker_check_job - validate @msg and copy it. */
int file_worker_check_job(const struct msg_file_open *msg, struct file_job *ret_job,
                          struct error *err) attr_must_check;
/** file_worker_run - a spawn_work_fn; @arg is a struct file_job. */
int file_worker_run(const void *arg, int status, struct error *err) attr_must_check;

/** file_worker_error - set @err from errno @sys. Return: always -1. */
int file_worker_error(struct error *err, int sys, const char *what, const char *path);
/** file_worker_open_dir - for reading. Return: descriptor or negative errno. */
int file_worker_open_dir(const char *path) attr_must_check;
/**
 * file_worker_open_parent - @path must not be ""; *ret_name is its last component. Return: a
 * descriptor or a negative errno.
 */
int file_worker_open_parent(const char *path, bool make, const char **ret_name) attr_must_check;

struct file_found {
	const char *path;
	const struct stat *st;
	const char *target;    /* NULL: not a link */
	const uint8_t *sha256; /* NULL: none */
};
int file_worker_send_entry(struct file_out *out, const struct file_found *found,
                           struct error *err) attr_must_check;
int file_worker_send_bytes(struct file_out *out, const void *data, size_t len,
                           struct error *err) attr_must_check;
/**
 * file_worker_receive - *ret_piece is borrowed until the next call. Return: 1; 0 at FILE_END; -1 at
 * an early EOF: the host gave up.
 */
int file_worker_receive(struct file_in *in, struct wire_bytes *ret_piece,
                        struct error *err) attr_must_check;

#define FILE_TEMP_LEN 40
void file_worker_temp_name(char ret_name[FILE_TEMP_LEN]);

/* file_tree.c */
struct file_tree_walk {
	/* For each object below the top. Return: 0; 1: stop; -1 with @err. */
	int (*visit)(struct file_tree_walk *w, int dir, const char *name,
	             const struct file_found *found, struct error *err);
	void *ctx;
	bool strict;       /* unreadable objects are errors */
	bool results_only; /* skip dot names, __pycache__ and everything below */
	bool cut;          /* something was too deep */
};
/** file_tree_walk - everything below @top, which it closes; directories first. */
int file_tree_walk(struct file_tree_walk *w, int top, struct error *err) attr_must_check;

int file_tree_list(const struct file_job *job, struct file_out *out,
                   struct error *err) attr_must_check;
int file_tree_changes(const struct file_job *job, struct file_out *out,
                      struct error *err) attr_must_check;
int file_tree_remove(const struct file_job *job, struct file_out *out,
                     struct error *err) attr_must_check;
/* file_tar.c */
int file_tar_pack(const struct file_job *job, struct file_out *out,
                  struct error *err) attr_must_check;
int file_tar_unpack(const struct file_job *job, struct file_out *out,
                    struct error *err) attr_must_check;
