/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a container runtime whose program makes the container in which the agent runs, in the place
 * of the last steps of a native box. src/oci implements it; the engine knows only this table. A
 * struct host without one makes native boxes.
 *
 * The program runs with the ids and namespaces of one box and sees no file of the host but its
 * system directories: it has no privilege that the box does not have.
 */

#include "base/error.h"
#include "engine/engine.h"
#include <stdbool.h>
#include <stdint.h>

struct build;
struct host;
struct options;

struct runtime {
	char name[ENGINE_RUNTIME_LEN];
	char release[ENGINE_RELEASE_LEN]; /* filled by check() */
	enum engine_grade grade;
	uint32_t features; /* mask of enum engine_feature: what it can, if the host can */
	uint32_t vouched;  /* mask of enum wire_layer: in its boxes only its word shows them */
	uint32_t lacks;    /* those of the agent that do not exist there */
	/* Added to the limits of a box's groups, in which the program's own processes are: until
	 * the agent runs, and from then on. */
	uint32_t pids_starting, pids_running;
	uint64_t memory_bytes;
	bool is_tracer;   /* needs ptrace */
	bool has_time_ns; /* works in a time namespace */
	bool nests;       /* makes user namespaces */

	/** open - on the host: find the program. ERR_UNAVAILABLE with the remedy. */
	int (*open)(const struct options *options, struct host *host, struct error *err);
	/** build - before template_enter(): what its program sees instead of the host. */
	int (*build)(struct host *host, struct error *err);
	/** check - without privileges: what program it is; sets .release. */
	int (*check)(struct host *host, struct error *err);

	/* Steps of a box. */
	int (*describe)(struct build *b, struct error *err);
	int (*enclose)(struct build *b, struct error *err);
	int (*launch)(struct build *b, struct error *err);
};
