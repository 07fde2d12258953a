/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: zygotes: warm interpreters that have imported modules and never run a caller's code. A box's
 * first program can be forked from one instead of being executed (docs/internals/zygote.md).
 * Nothing here blocks.
 *
 * A zygote is the engine's child and the only other process with privileges over boxes, so only the
 * operator defines it: a command from the runners directory, on the host's root. The engine
 * replaces it when it exits, after a number of children, and when it has grown. Boxes made
 * meanwhile start cold.
 */

#include "engine/internal.h"

#define ZYGOTE_WORDS_MAX 24 /* of a command, the NULL included */
#define ZYGOTE_TEXT_MAX  2048

enum zygote_state {
	/* Not defined. */
	ZYGOTE_NONE,
	/* Started at due_us. */
	ZYGOTE_DOWN,
	/* Until it reports READY, exits or times out. */
	ZYGOTE_STARTING,
	/* Forks children, until it exits or the engine ends it. */
	ZYGOTE_READY,
	/* Killed; waiting until it and its groups are gone. */
	ZYGOTE_ENDING,
	ZYGOTE_STATE_COUNT
};

struct zygote {
	enum zygote_state state;
	unsigned number;
	char command[ENGINE_COMMAND_LEN];
	char modules[ENGINE_MODULES_LEN];
	char tenant[ENGINE_TENANT_LEN];
	char text[ZYGOTE_TEXT_MAX]; /* storage of @argv and @env */
	char variable[ENGINE_MODULES_LEN + 64];
	char *argv[ZYGOTE_WORDS_MAX]; /* NULL-terminated */
	char *env[ZYGOTE_WORDS_MAX];
	struct build build;  /* only for its process and groups */
	int sock;            /* owned; -1: none */
	int files;           /* owned: the mount namespace of its interpreter; -1: none */
	uint32_t forks;      /* children requested of this process */
	uint32_t unanswered; /* requests without an answer */
	unsigned failures;   /* since it was last ready */
	uint64_t starts;     /* processes so far */
	uint64_t due_us;     /* DOWN: start; STARTING, READY: time out; ENDING: check again */
	uint64_t old_us;     /* READY: replace it */
	bool dropped;        /* do not start it again */
};

struct zygotes {
	const struct host *host;
	struct cgroup_pool *groups; /* borrowed */
	int epoll;                  /* borrowed */
	uint64_t watch;             /* epoll value of the first zygote */
	struct zygote all[ENGINE_ZYGOTES_MAX];
};

/** zygotes_init - zygote number N uses the epoll value @watch + N - 1. */
void zygotes_init(struct zygotes *zygotes, const struct host *host, struct cgroup_pool *groups,
                  int epoll, uint64_t watch);
/** zygotes_have_child - whether @pid is a zygote that was not reaped yet. */
bool zygotes_have_child(const struct zygotes *zygotes, pid_t pid);
/** zygotes_close - end all zygotes and wait for them. */
void zygotes_close(struct zygotes *zygotes);
/** zygotes_drop - end all zygotes; they are not started again until they are defined. */
void zygotes_drop(struct zygotes *zygotes);
/** zygotes_define - no-op if the definition is unchanged. */
int zygotes_define(struct zygotes *zygotes, const struct engine_zygote *req,
                   struct error *err) attr_must_check;
/** zygotes_find - Return: the zygote that @req names, if ready; else NULL, reason in *ret_start. */
struct zygote *zygotes_find(struct zygotes *zygotes, const struct engine_request *req,
                            enum engine_start *ret_start);
void zygotes_on_event(struct zygotes *zygotes, uint64_t value);
/** zygotes_work - handle timers. Return: time of the next one (clock_us), or UINT64_MAX. */
uint64_t zygotes_work(struct zygotes *zygotes, uint64_t now);

/** step_inject - ask the build's zygote for a child. */
int step_inject(struct build *b, struct error *err);

/* zygote_start.c */
/** zygote_read_command - read @z's argv and env from the runners directory. */
int zygote_read_command(struct zygote *z, struct error *err) attr_must_check;
/** zygote_start - on failure the groups may remain to be removed. */
int zygote_start(struct zygote *z, struct error *err) attr_must_check;
