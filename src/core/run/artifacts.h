/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: regular, non-hidden files that a run made or changed in the workspace, found by change time.
 * Bounded in number, hashed bytes and time; an incomplete list is marked truncated.
 */

#include "driver/driver.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARTIFACTS_MAX     256
#define ARTIFACTS_HASHED  (16u * 1024 * 1024) /* bytes in total */
#define ARTIFACTS_TIME_US (2 * 1000 * 1000ULL)

struct artifact {
	char *path;                /* owned; valid UTF-8, the rest is replaced */
	uint64_t size, changed_ms; /* wall clock */
	uint64_t inode, ctime_ns;  /* identity and state; not stored */
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
/** artifacts_add - @path is copied. Return: NULL if there are too many. */
struct artifact *artifacts_add(struct artifacts *a, const char *path);

/* Files sent with a run. */
struct given_file {
	char *path; /* owned */
	size_t size;
	bool hashed;
	uint8_t sha256[BOX_SHA256_LEN];
};

struct given_files {
	struct given_file *list; /* owned */
	size_t count;
	size_t budget; /* bytes still hashed; bounds the time */
};

#define GIVEN_HASHED (256u * 1024)
/** given_add - copies @path, not @data. Start with {.budget = GIVEN_HASHED}. */
void given_add(struct given_files *given, const char *path, const void *data, size_t len);
void given_done(struct given_files *given);

/* The search for artifacts. Embedded in the run. */
struct gather {
	struct box_file *file; /* NULL: not running */
	struct artifacts *into;
	/* Change times tick every few milliseconds, so files of the tick in which the run began
	 * look new. Skip files that an earlier search found in the same state. */
	struct artifacts *seen; /* NULL: none; replaced by @now */
	struct artifacts now;
	uint64_t since_ns;
	/* Skip files sent with the run and unchanged. */
	const struct given_files *given; /* borrowed; NULL: none */
	void (*on_over)(void *ctx);      /* from the loop */
	void *ctx;
};

/** gather_start - Return: whether the search began; if not, the list is marked truncated. */
bool gather_start(struct gather *g, struct box *box, uint64_t since_ns);
/** gather_cancel - no-op if none is running. */
void gather_cancel(struct gather *g);
