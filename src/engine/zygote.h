/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: zygotes: interpreters that are warm, have imported what they were told to, and never run
 * anybody's code. A box's first program can be a child of one instead of being executed
 * (docs/internals/zygote.md). Owned by struct boxes; nothing here blocks.
 *
 * A zygote is the engine's child and the only other process with power over boxes, so what it is
 * comes from the operator alone: a command from the directory of runners, on the host's root. It is
 * replaced when it ends, when it has made many children and when it has grown; boxes that are made
 * meanwhile start cold.
 */

#include "engine/internal.h"

#define ZYGOTE_WORDS_MAX 24 /* of a command, its end included */
#define ZYGOTE_TEXT_MAX  2048

enum zygote_state {
	/* Nobody asked for it. */
	ZYGOTE_NONE,
	/* There is no process; one is started when its time has come. */
	ZYGOTE_DOWN,
	/* The process runs. Left by its word that it is ready, its end, or its deadline. */
	ZYGOTE_STARTING,
	/* Children can be had. Left by its end, which the engine may bring about. */
	ZYGOTE_READY,
	/* It was told to die; waiting until it and its groups are gone. */
	ZYGOTE_ENDING,
	ZYGOTE_STATE_COUNT
};

struct zygote {
	enum zygote_state state;
	unsigned number;
	char command[ENGINE_COMMAND_LEN];
	char modules[ENGINE_MODULES_LEN];
	char text[ZYGOTE_TEXT_MAX]; /* what @argv and @env are made of */
	char variable[ENGINE_MODULES_LEN + 64];
	char *argv[ZYGOTE_WORDS_MAX]; /* NULL-terminated */
	char *env[ZYGOTE_WORDS_MAX];
	struct build build;  /* its process and groups; no box */
	int sock;            /* owned; -1: none */
	uint32_t forks;      /* children asked for */
	uint32_t unanswered; /* of them */
	unsigned failures;   /* since it was ready last */
	uint64_t lives;      /* processes so far */
	uint64_t due_us;     /* DOWN: start; STARTING: give up; ENDING: look again */
	bool dropped;        /* not wanted any more */
};

struct zygotes {
	const struct host *host;
	struct netns_pool *nets;  /* borrowed */
	struct cgroup_pool *pool; /* borrowed, and not used: a build wants one */
	int epoll;                /* borrowed */
	uint64_t watch;           /* value of the first for epoll */
	struct zygote all[ENGINE_ZYGOTES_MAX];
};

/** zygotes_init - events of number N come with the epoll value @watch + N - 1. */
void zygotes_init(struct zygotes *zygotes, const struct host *host, int epoll, uint64_t watch);
/** zygotes_close - ends all, waits for them. */
void zygotes_close(struct zygotes *zygotes);
/** zygotes_drop - nobody asks for any of them any more. */
void zygotes_drop(struct zygotes *zygotes);
/** zygotes_define - as ENGINE_ZYGOTE says. The same once more changes nothing. */
int zygotes_define(struct zygotes *zygotes, const struct engine_zygote *req,
                   struct error *err) attr_must_check;
/** zygotes_find - the one that @req of a box names, if it is ready; else NULL and why. */
struct zygote *zygotes_find(struct zygotes *zygotes, const struct engine_request *req,
                            enum engine_start *ret_start);
void zygotes_on_event(struct zygotes *zygotes, uint64_t value);
/** zygotes_work - what is due by time. Return: when to come again (clock_us), or UINT64_MAX. */
uint64_t zygotes_work(struct zygotes *zygotes, uint64_t now);

/** step_inject - of apply.c: ask the zygote of the build for a child. */
int step_inject(struct build *b, struct error *err);

/* zygote_start.c */
/** zygote_read_command - @z's argv and env from the directory of runners. */
int zygote_read_command(struct zygote *z, struct error *err) attr_must_check;
/** zygote_start - its process. After a failure zygote_clear() clears away. */
int zygote_start(struct zygote *z, struct error *err) attr_must_check;
