/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: millibox-import turns the archive of an image or of a root into a directory. It parses
 * untrusted archives, compressed streams and JSON, so it is a separate, unprivileged program, and
 * the parser is a child that confines itself with Landlock, seccomp and rlimits before it reads the
 * first byte.
 *
 *   main.c     options; a single import, or requests of a daemon
 *   order.h    protocol between daemon and importer
 *   serve.c    the parent: makes a directory for the child, waits, renames the result
 *   confine.c  the child's confinement
 *   input.c    the archive; recognises a plain root file system
 *   spool.c    stores the files of the outer archive, with their digests
 *   image.c    finds index, manifest, configuration and layers
 *   layer.c    applies a layer to the root
 *   plain.c    a single tar, as a box sends a directory
 *   tree.c     paths beneath the root: resolve, make parents, remove
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

struct import_limits import_limits_default(void);
/** import_exceeds - set ERR_TOO_LARGE, with @limit (IMPORT_LIMIT_*) as the field. Return: -1. */
int import_exceeds(struct error *err, const char *limit, const char *fmt, ...) attr_printf(3, 4);

/* tree.c */

/** tree_check - Return: @path without leading "./" and "/", or NULL if it is not allowed. */
const char *tree_check(const char *path, struct error *err);
/**
 * tree_parent - open the directory of @path, created if missing and @make. Links are followed as
 * inside the root, never out of it. *ret_name: the last component. Return: a descriptor.
 */
int tree_parent(int root, const char *path, bool make, const char **ret_name,
                struct error *err) attr_must_check;
/** tree_remove - remove @name in @dir and everything beneath it; follows no link. */
int tree_remove(int dir, const char *name) attr_must_check;
/* What tree_clear leaves alone: files by path, and directories with all they contain by inode. */
struct tree_kept {
	bool (*is_file)(void *ctx, const char *path);
	bool (*is_dir)(void *ctx, uint64_t inode);
	void *ctx;
};

/** tree_clear - remove the content of @dir, whose path is @path, except what is @kept. */
int tree_clear(int dir, const char *path, const struct tree_kept *kept) attr_must_check;
/** tree_measure - disk usage of @dir in bytes; a file with N links counts 1/N per link. */
int tree_measure(int dir, uint64_t *ret_bytes) attr_must_check;

/* layer.c */

struct import_counts {
	uint64_t bytes, entries, dropped;
	uint64_t layers, layer; /* number of layers; the current one, from 1 */
	int out;                /* for progress lines; -1: none */
	uint64_t reported_bytes, reported_entries;
};
/** layer_report - a progress line: always if @now, else after enough work. */
void layer_report(struct import_counts *counts, bool now);

struct layer {
	int root; /* directory to apply to */
	const struct import_limits *limits;
	struct import_counts *counts; /* of all layers so far */
	/* Reads the uncompressed archive. Return: bytes, 0 at EOF, or a negative errno. */
	ptrdiff_t (*read)(void *ctx, void *data, size_t size);
	void *ctx;
};
/** layer_apply - apply all entries. Devices, pipes and sockets are dropped and counted. */
int layer_apply(const struct layer *l, struct error *err) attr_must_check;

/* input.c */

struct archive;
struct input;
void input_free(struct input *in);
/** input_new - the archive @fd, whose beginning is read now. */
struct input *input_new(int fd, struct error *err) attr_owned(input_free);
/** input_is_root - whether it begins like a plain root file system. */
bool input_is_root(const struct input *in);
/** input_open - let @a read it from the beginning; once. Return: libarchive's. */
int input_open(struct input *in, struct archive *a) attr_must_check;

/* spool.c */

struct spool;
struct spool_file {
	char *name;
	char *target; /* of a link: name of another file; else NULL */
	unsigned number;
	uint64_t size;
	char digest[IMPORT_DIGEST_LEN];
};
void spool_free(struct spool *s);
/** spool_read - store the files of the archive @from in the directory @dir. */
struct spool *spool_read(struct input *from, int dir, const struct import_limits *limits,
                         struct error *err) attr_owned(spool_free);
const struct spool_file *spool_find(const struct spool *s, const char *name);
int spool_open(const struct spool *s, const struct spool_file *file) attr_must_check;

/* image.c */

struct image_source {
	int fd;       /* the archive */
	int root;     /* directory to fill */
	int blobs;    /* directory for temporary files */
	int progress; /* for progress lines; -1: none */
	const struct import_limits *limits;
};
/** image_import - Return: the result as JSON, owned, or NULL. */
char *image_import(const struct image_source *source, struct error *err) attr_must_check;

/* plain.c */

/** plain_import - apply one tar; @source.blobs is not used. Return: as image_import. */
char *plain_import(const struct image_source *source, struct error *err) attr_must_check;

/* confine.c */

/** confine - restrict this process to @dir and its open descriptors, for good. */
int confine(int dir, const struct import_limits *limits, struct error *err) attr_must_check;

/* serve.c */

struct serve_job {
	const char *name; /* of the root */
	int in, out;      /* archive; result */
	bool progress;    /* write progress lines */
	bool plain;       /* the archive is one tar, not an image */
	struct import_limits limits;
};
/** serve_one - import into the directory @roots. */
int serve_one(int roots, const struct serve_job *job) attr_must_check;
/** serve - serve the daemon's requests until EOF. Return: exit status. */
int serve(int roots, int sock);
bool import_is_name(const char *name);
