/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: millibox-import turns the archive of an image into a directory. It reads what strangers
 * made: archives, compressed streams, JSON. So it is a program of its own, without privilege, and
 * what parses is a child of it that has put itself under Landlock, a filter of system calls and
 * limits before the first byte.
 *
 *   main.c     options; one import, or a daemon's requests one after the other
 *   order.h    what the daemon says and hears
 *   serve.c    the parent: a directory for the child, its end, the last rename
 *   confine.c  what the child gives up
 *   spool.c    the outer archive: its files, kept beside the root, with their digests
 *   image.c    which of them make the image: index, manifest, configuration, layers
 *   layer.c    a layer onto the root
 *   tree.c     names beneath the root: resolve, make parents, remove
 */

#include "base/attr.h"
#include "base/error.h"
#include "import/order.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMPORT_PATH_MAX   4096
#define IMPORT_DIGEST_LEN 65 /* hex of SHA-256, and NUL */
#define IMPORT_JSON_MAX   (4u * 1024 * 1024)
#define IMPORT_SOCKET_FD  3

/* Of who is not told otherwise. */
struct import_limits import_limits_default(void);
/** import_exceeds - ERR_TOO_LARGE, with @limit (IMPORT_LIMIT_*) as the field. Return: always -1. */
int import_exceeds(struct error *err, const char *limit, const char *fmt, ...) attr_printf(3, 4);

/* tree.c */

/** tree_check - whether @path of an archive may be used; "./" and "/" in front are taken away. */
const char *tree_check(const char *path, struct error *err);
/**
 * tree_parent - a descriptor of the directory that @path is to be in, made where it is missing;
 * links are followed as inside the root, never out of it. *ret_name: the last part of @path.
 */
int tree_parent(int root, const char *path, bool make, const char **ret_name,
                struct error *err) attr_must_check;
/** tree_remove - @name in @dir and everything beneath it; no link is followed. */
int tree_remove(int dir, const char *name) attr_must_check;
typedef bool tree_keep_fn(void *ctx, const char *path);
/** tree_clear - what is in @dir, called @path, but for what @keep says is to stay. */
int tree_clear(int dir, const char *path, tree_keep_fn *keep, void *ctx) attr_must_check;
/** tree_measure - bytes that all in @dir takes on the disk; one of several links counts its part.
 */
int tree_measure(int dir, uint64_t *ret_bytes) attr_must_check;

/* layer.c */

struct import_counts {
	uint64_t bytes, entries, dropped;
	uint64_t layers, layer; /* how many there are, and the one that is being applied */
	int out;                /* where it is told how far this is; -1: nobody listens */
	uint64_t told_bytes, told_entries;
};
/** counts_tell - a line for whoever listens: always with @now, else when much was done since. */
void counts_tell(struct import_counts *counts, bool now);

struct layer {
	int root; /* directory to apply to */
	const struct import_limits *limits;
	struct import_counts *counts; /* of all layers so far */
	/* Bytes of the uncompressed archive. Return: how many, 0 at the end, or a negative errno.
	 */
	ptrdiff_t (*read)(void *ctx, void *data, size_t size);
	void *ctx;
};
/** layer_apply - everything @l reads. What it drops it counts: devices, pipes, sockets. */
int layer_apply(const struct layer *l, struct error *err) attr_must_check;

/* spool.c */

struct spool;
struct spool_file {
	char *name;
	char *target; /* a link: the name of another file; NULL */
	unsigned number;
	uint64_t size;
	char digest[IMPORT_DIGEST_LEN];
};
void spool_free(struct spool *s);
/** spool_read - the archive at @fd into files in the directory @dir. */
struct spool *spool_read(int fd, int dir, const struct import_limits *limits, struct error *err)
	attr_owned(spool_free);
const struct spool_file *spool_find(const struct spool *s, const char *name);
int spool_open(const struct spool *s, const struct spool_file *file) attr_must_check;

/* image.c */

struct image_source {
	int fd;       /* the archive */
	int root;     /* directory to make */
	int blobs;    /* directory for what is in between */
	int progress; /* where it is told how far this is; -1: nowhere */
	const struct import_limits *limits;
};
/** image_import - Return: JSON for the daemon. */
char *image_import(const struct image_source *source, struct error *err) attr_must_check;

/* confine.c */

/** confine - for the rest of this process: nothing but @dir and what is open. */
int confine(int dir, const struct import_limits *limits, struct error *err) attr_must_check;

/* serve.c */

struct serve_job {
	const char *name; /* of the root */
	int in, out;      /* the archive; where the answer goes */
	bool progress;    /* tell how far it is */
	struct import_limits limits;
};
/** serve_one - an import into the directory @roots. */
int serve_one(int roots, const struct serve_job *job) attr_must_check;
/** serve - requests of the daemon, until it is gone. Return: exit status. */
int serve(int roots, int sock);
bool import_is_name(const char *name);
