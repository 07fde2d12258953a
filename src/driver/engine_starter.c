/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine_starter.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "driver/engine_internal.h"
#include "io/loop.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* To fork; the engine's own start is awaited by its driver. */
#define ANSWER_TIMEOUT_US (20 * USEC_PER_SEC)

/* One per order, in the order of the orders. With a socket and a pidfd, unless .sys is set. */
struct answer {
	uint32_t number;
	int32_t sys;
};

void engine_command_done(struct engine_command *c)
{
	free(c->program);
	str_list_free(c->argv);
	*c = (struct engine_command){0};
}

/* The child of an earlier order: two engines of one number would want the same names. */
static void end_child(pid_t *pid)
{
	if (*pid <= 0)
		return;
	if (waitpid(*pid, NULL, WNOHANG) == 0) {
		(void)kill(*pid, SIGKILL); /* not reaped: its pid is its own */
		while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*pid = 0;
}

static int send_answer(int link, uint32_t number, int sys, const int fds[2])
{
	const struct answer answer = {.number = number, .sys = sys};

	return fd_send(link, &answer, sizeof(answer), sys ? NULL : fds, sys ? 0 : 2);
}

static int obey(const struct engine_command *command, uint32_t number, pid_t *pid, int link)
{
	struct error err = {0};
	int fds[2] = {-1, -1};
	int r;

	end_child(pid);
	if (engine_fork(command->program, command->argv, &fds[0], pid, &err) < 0)
		return send_answer(link, number, err.sys ? err.sys : EIO, NULL);
	fds[1] = fd_pidfd_open(*pid);
	r = send_answer(link, number, fds[1] < 0 ? -fds[1] : 0, fds);
	(void)fd_close(fds[0]);
	(void)fd_close(fds[1]);
	return r;
}

void engine_starter_run(const struct engine_command *commands, size_t count, int link)
{
	pid_t pids[ENGINE_COMMANDS_MAX] = {0};

	for (;;) {
		uint32_t number = 0;
		ssize_t n = fd_recv(link, &number, sizeof(number), NULL, NULL);

		if (n == -EINTR)
			continue;
		if (n != (ssize_t)sizeof(number) || number >= count ||
		    obey(&commands[number], number, &pids[number], link) < 0)
			_exit(n != 0);
	}
}

struct engine_starter {
	int link;            /* owned; -1: the starter is gone */
	struct loop *loop;   /* NULL: not attached */
	struct watch *watch; /* owned */
	struct {
		engine_started_fn *fn; /* NULL: nobody waits */
		void *ctx;
	} waiting[ENGINE_COMMANDS_MAX];
};

struct engine_starter *engine_starter_new(int link)
{
	struct engine_starter *s = NEW(struct engine_starter);

	s->link = link;
	return s;
}

void engine_starter_free(struct engine_starter *s)
{
	if (!s)
		return;
	watch_free(s->watch);
	(void)fd_close(s->link);
	free(s);
}

bool engine_starter_is_gone(const struct engine_starter *s)
{
	return s->link < 0;
}

void engine_starter_forget(struct engine_starter *s, uint32_t number)
{
	s->waiting[number].fn = NULL;
}

static int refuse(struct error *err)
{
	return error_set(err, ERR_UNAVAILABLE, 0, "the starter of engines has ended");
}

/* Return: 1: one was taken; 0: none is there; -1: the starter is gone. */
static int receive(struct engine_starter *s, struct answer *ret_answer,
                   struct engine_started *ret_started)
{
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t n = fd_recv(s->link, ret_answer, sizeof(*ret_answer), fds, &count);

	*ret_started = (struct engine_started){.sock = -1, .pidfd = -1};
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n == (ssize_t)sizeof(*ret_answer) && ret_answer->number < ENGINE_COMMANDS_MAX &&
	    count == (ret_answer->sys ? 0 : 2)) {
		if (count == 2)
			*ret_started = (struct engine_started){.sock = fds[0], .pidfd = fds[1]};
		return 1;
	}
	for (size_t i = 0; i < count; i++)
		(void)fd_close(fds[i]);
	return -1;
}

static int describe(const struct answer *answer, struct error *err)
{
	return answer->sys ? error_set(err, ERR_UNAVAILABLE, answer->sys, "start it") : 0;
}

int engine_starter_wait(struct engine_starter *s, uint32_t number,
                        struct engine_started *ret_started, struct error *err)
{
	struct answer answer = {0};
	int r = fd_send(s->link, &number, sizeof(number), NULL, 0);

	if (r >= 0)
		r = engine_wait_readable(s->link, clock_us() + ANSWER_TIMEOUT_US);
	if (r < 0 || receive(s, &answer, ret_started) != 1)
		return refuse(err);
	return describe(&answer, err);
}

static void lose_starter(struct engine_starter *s)
{
	struct error err = {0};

	log_err("the starter of engines has ended: engines that end stay away until a restart");
	watch_free(TAKE_PTR(s->watch));
	s->link = fd_close(s->link);
	(void)refuse(&err);
	for (size_t i = 0; i < ENGINE_COMMANDS_MAX; i++) {
		engine_started_fn *fn = TAKE_PTR(s->waiting[i].fn);

		if (fn)
			fn(s->waiting[i].ctx, NULL, &err);
	}
}

static void on_answer(void *ctx, int events attr_unused)
{
	struct engine_starter *s = ctx;
	struct engine_started started;
	struct answer answer = {0};
	struct error err = {0};
	engine_started_fn *fn;
	int r = receive(s, &answer, &started);

	if (r == 0)
		return;
	if (r < 0) {
		lose_starter(s);
		return;
	}
	fn = TAKE_PTR(s->waiting[answer.number].fn);
	if (!fn) { /* forgotten: without its socket it ends */
		(void)fd_close(started.sock);
		(void)fd_close(started.pidfd);
		return;
	}
	r = describe(&answer, &err);
	fn(s->waiting[answer.number].ctx, &started, r < 0 ? &err : NULL);
}

void engine_starter_attach(struct engine_starter *s, struct loop *loop)
{
	(void)!fd_set_nonblock(s->link, true);
	s->loop = loop;
	s->watch = watch_new(loop, s->link, on_answer, s);
	watch_set(s->watch, WATCH_READ);
}

void engine_starter_ask(struct engine_starter *s, uint32_t number, engine_started_fn *fn, void *ctx)
{
	struct error err = {0};

	s->waiting[number].fn = fn;
	s->waiting[number].ctx = ctx;
	if (s->link >= 0 && fd_send(s->link, &number, sizeof(number), NULL, 0) >= 0)
		return;
	s->waiting[number].fn = NULL;
	(void)refuse(&err);
	fn(ctx, NULL, &err);
}
