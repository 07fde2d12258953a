/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the compile step of a run whose language has a compile_command. The compiler is a program of
 * its own, with its own limits, before the run's:
 *
 *   fresh box        it has a box of its own, without network, which ends with it. The artifact
 *                    comes out of that box, goes into the cache, and into the box of the run
 *   session's box    it runs in that box, where it sees the session's files; the artifact stays
 *                    there. Nothing is cached: the result depends on more than the request
 *
 * Only an exit code of 0 leads to the second step. Otherwise the run ends with the compiler's exit
 * code, its messages on stderr, and outcome.compile.failed.
 */

#include "base/buf.h"
#include "core/run/build_cache.h"
#include "driver/driver.h"
#include <stdbool.h>

struct run;

#define BUILD_ARTIFACT_MAX (48u << 20)
#define BUILD_FILE         ".millibox/main" /* in the workspace; hidden: no artifact of the run */

enum build_state {
	BUILD_DUE,
	BUILD_COMPILING,
	BUILD_DONE,
	BUILD_STATE_COUNT
};

struct build {
	enum build_state state;
	bool keeps;   /* the artifact stays in the box: a session's */
	bool cached;  /* it was known */
	bool too_big; /* the artifact */
	bool has_key;
	uint32_t id; /* of the compiler in a session's box */
	struct build_key key;
	struct buf out; /* the artifact, of a fresh box */
	struct buf err; /* messages */
	uint64_t started_us, duration_us;
};

void build_free(struct build *b);
/** build_new - for @r's request, which must still be there. NULL: nothing to compile. @keeps: in a
 * session's box. */
struct build *build_new(const struct run *r, bool keeps);
/** build_is_due - the program of @r that runs, or runs next, is the compiler. */
bool build_is_due(const struct run *r);
/** build_find - look into the cache. Return: whether nothing must be compiled. */
bool build_find(struct run *r);
/** build_artifact - of a finished build in a fresh box; borrowed for the call. NULL: it is no
 * longer known. */
const void *build_artifact(const struct run *r, size_t *ret_len);
void build_begin(struct run *r);
void build_add_output(struct run *r, enum output_stream stream, const char *data, size_t len);
/** build_end - Return: whether the program may run; else the run has the messages. @facts NULL: the
 * compiler was stopped. */
bool build_end(struct run *r, const struct exec_facts *facts);
