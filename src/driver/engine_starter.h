/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the starter of engines: a child of the daemon, forked before it gives up its rights. It can
 * execute a fixed table of command lines by number, and nothing else: the daemon, which parses what
 * strangers send, can ask for an engine that it was configured with, and only that.
 *
 * It remembers the process of each number and ends the old one before it starts another. It ends
 * with the daemon; engines that keep boxes do not.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct engine_starter;
struct loop;

#define ENGINE_COMMANDS_MAX 16

/* Owned by whoever made it. */
struct engine_command {
	char *program; /* path */
	char **argv;   /* NULL-terminated */
};

void engine_command_done(struct engine_command *c);

/** engine_starter_run - in the child: serve @link until the daemon closes its end. */
attr_noreturn void engine_starter_run(const struct engine_command *commands, size_t count,
                                      int link);

/* A process that was started. */
struct engine_started {
	int sock;  /* owned; -1: it failed */
	int pidfd; /* owned */
};
/* @err: why there is none; else NULL. @started is taken. */
typedef void engine_started_fn(void *ctx, const struct engine_started *started,
                               const struct error *err);

void engine_starter_free(struct engine_starter *s);
/** engine_starter_new - takes @link. */
struct engine_starter *engine_starter_new(int link) attr_owned(engine_starter_free);
/** engine_starter_wait - start command @number and wait for it; before engine_starter_attach. */
int engine_starter_wait(struct engine_starter *s, uint32_t number,
                        struct engine_started *ret_started, struct error *err) attr_must_check;
/** engine_starter_attach - from now on on @loop. */
void engine_starter_attach(struct engine_starter *s, struct loop *loop);
/** engine_starter_ask - start command @number; @fn follows, once, from the loop. */
void engine_starter_ask(struct engine_starter *s, uint32_t number, engine_started_fn *fn,
                        void *ctx);
/** engine_starter_forget - @fn of that number is not called any more. */
void engine_starter_forget(struct engine_starter *s, uint32_t number);
/** engine_starter_is_gone - nothing can be started until the daemon is. */
bool engine_starter_is_gone(const struct engine_starter *s);
