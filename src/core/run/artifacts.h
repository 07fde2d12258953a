/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: files that a run made or changed in the workspace: regular, not hidden, found by change time
 * after the run. Bounded in number, hashed bytes and time; an incomplete list is marked truncated.
 */

#include "driver/driver.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARTIFACTS_MAX     256
#define ARTIFACTS_HASHED  (16u * 1024 * 1024) /* bytes of all of them together */
#define ARTIFACTS_TIME_US (2 * 1000 * 1000ULL)

struct artifact {
	char *path;                /* owned; UTF-8, what was none is replaced */
	uint64_t size, changed_ms; /* wall clock */
	uint64_t inode, ctime_ns;  /* which file, in which state; not of one from the store */
	bool hashed;
	uint8_t sha256[BOX_SHA256_LEN];
};

struct artifacts {
	struct artifact *list; /* owned */
	size_t count;
	bool truncated;
};

void artifacts_done(struct artifacts *a);
/** artifacts_copy - deep. */
void artifacts_copy(const struct artifacts *from, struct artifacts *ret_to);
/** artifacts_add - @path is copied. Return: the new one, or NULL: there are too many. */
struct artifact *artifacts_add(struct artifacts *a, const char *path);

/* What was given with an execution. */
struct given_file {
	char *path; /* owned */
	size_t size;
	bool hashed;
	uint8_t sha256[BOX_SHA256_LEN];
};

struct given_files {
	struct given_file *list; /* owned */
	size_t count;
	size_t budget; /* bytes that are still hashed; bounds the time it takes */
};

#define GIVEN_HASHED (256u * 1024)
/** given_add - @path is copied, @data is not. Start with {.budget = GIVEN_HASHED}. */
void given_add(struct given_files *given, const char *path, const void *data, size_t len);
void given_done(struct given_files *given);

/* The search for them. Embedded in the run. */
struct gather {
	struct box_file *file; /* NULL: not under way */
	struct artifacts *into;
	/* Change times tick every few milliseconds: files of the tick in which the run began look
	 * new. Files that an earlier search found in the same state are left out. */
	struct artifacts *seen; /* NULL: none; replaced by what is there now */
	struct artifacts now;
	uint64_t since_ns;
	/* So are files that came with the run and have not changed. */
	const struct given_files *given; /* borrowed; NULL: none */
	void (*on_over)(void *ctx);      /* from the loop */
	void *ctx;
};

/** gather_start - Return: whether the search has begun; if not, the list is marked truncated. */
bool gather_start(struct gather *g, struct box *box, uint64_t since_ns);
/** gather_cancel - end a search; nothing if none is under way. */
void gather_cancel(struct gather *g);
