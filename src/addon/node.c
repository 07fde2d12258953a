/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "addon/napi.h"

/*
 * Theory of operation. Node.js can neither receive descriptors, nor replace its own, nor stop a
 * program that never returns to its event loop. This module adds just that; runners/javascript has
 * the rest. It runs as the payload: nothing here is a defence.
 *
 * It names no library: the process that loads it has a libc, GNU's or musl, and the functions used
 * here are the same in both. Node-API and libuv's handles are stable interfaces. Two functions of
 * V8 are called by their C++ names, which have not changed in ten years; without them a program
 * that never returns cannot be interrupted, and its session is killed.
 *
 * Interrupts. A signal handler writes to a pipe and a thread reads it. The thread wakes the event
 * loop, which tells the runner. If the loop does not come round in time the program is computing,
 * and the thread has V8 terminate it: V8 throws what no program can catch, and the loop comes
 * round.
 */

#define REQUEST_MAX  (72 * 1024)
#define FDS_MAX      3
#define PATIENCE_MS  30
#define REPORT_MS    2000
#define HANDLE_BYTES 512 /* libuv's are 160 and 128 */

typedef struct isolate isolate;
isolate *current_isolate(void) __asm__("_ZN2v87Isolate10GetCurrentEv") __attribute__((weak));
void terminate_execution(isolate *) __asm__("_ZN2v87Isolate18TerminateExecutionEv")
	__attribute__((weak));
void cancel_termination(isolate *) __asm__("_ZN2v87Isolate24CancelTerminateExecutionEv")
	__attribute__((weak));

union handle {
	char room[HANDLE_BYTES];
	long long aligned;
};

struct callback {
	napi_env env;
	napi_ref function;
};

static struct {
	union handle poll, wake;
	struct callback on_request, on_interrupt;
	isolate *isolate;
	int pipe[2];
	atomic_bool is_armed; /* what runs may be terminated */
	atomic_flag lock;     /* for the rest; held for an instant */
	bool is_waiting;      /* for the loop to take an interrupt */
	bool is_terminated;   /* until the loop has taken it */
} self = {.pipe = {-1, -1}, .lock = ATOMIC_FLAG_INIT};

static void lock_state(void)
{
	while (atomic_flag_test_and_set(&self.lock))
		continue;
}

static void unlock_state(void)
{
	atomic_flag_clear(&self.lock);
}

static napi_value throw_error(napi_env env, const char *what)
{
	napi_throw_error(env, NULL, what);
	return NULL;
}

/* Return: whether there are exactly @count arguments. */
static bool take_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *ret)
{
	size_t given = count;

	return napi_get_cb_info(env, info, &given, ret, NULL, NULL) == 0 && given == count;
}

static napi_value make_number(napi_env env, int value)
{
	napi_value made = NULL;

	napi_create_int32(env, value, &made);
	return made;
}

/* replace(FROM, TO): as dup3; TO is closed when another program is executed, except 0, 1 and 2. */
static napi_value replace_fd(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	int from = -1, to = -1;

	if (!take_arguments(env, info, 2, argv) || napi_get_value_int32(env, argv[0], &from) ||
	    napi_get_value_int32(env, argv[1], &to))
		return throw_error(env, "replace(from, to)");
	if (from == to ? fcntl(from, F_SETFD, FD_CLOEXEC) < 0
	               : dup3(from, to, to > 2 ? O_CLOEXEC : 0) < 0)
		return throw_error(env, strerror(errno));
	return make_number(env, to);
}

/* copy(FD, LOWEST): Return: a new descriptor. */
static napi_value copy_fd(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	int fd = -1, lowest = 0, made;

	if (!take_arguments(env, info, 2, argv) || napi_get_value_int32(env, argv[0], &fd) ||
	    napi_get_value_int32(env, argv[1], &lowest))
		return throw_error(env, "copy(fd, lowest)");
	made = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
	return made < 0 ? throw_error(env, strerror(errno)) : make_number(env, made);
}

static void wait_for(int fd, short events)
{
	struct pollfd ready = {.fd = fd, .events = events};

	while (poll(&ready, 1, -1) < 0 && errno == EINTR)
		continue;
}

/* wait(FD, WRITABLE): until it is readable, or writable. */
static napi_value wait_ready(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	bool to_write = false;
	int fd = -1;

	if (!take_arguments(env, info, 2, argv) || napi_get_value_int32(env, argv[0], &fd) ||
	    napi_get_value_bool(env, argv[1], &to_write))
		return throw_error(env, "wait(fd, writable)");
	wait_for(fd, to_write ? POLLOUT : POLLIN);
	return NULL;
}

static int take_fds(struct msghdr *msg, int *ret_fds)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int count;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(ret_fds, CMSG_DATA(c), (size_t)count * sizeof(int));
	return count;
}

/* receive(FD): Return: [bytes, descriptor...]; no bytes: the end; undefined: nothing yet. */
static napi_value receive_request(napi_env env, napi_callback_info info)
{
	static char data[REQUEST_MAX];
	union {
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr aligned;
	} control;
	struct iovec piece = {.iov_base = data, .iov_len = sizeof(data)};
	struct msghdr msg = {.msg_iov = &piece,
	                     .msg_iovlen = 1,
	                     .msg_control = control.room,
	                     .msg_controllen = sizeof(control.room)};
	napi_value argv[1], list = NULL, item = NULL;
	int fd = -1, fds[FDS_MAX], count;
	ssize_t len;

	if (!take_arguments(env, info, 1, argv) || napi_get_value_int32(env, argv[0], &fd))
		return throw_error(env, "receive(fd)");
	len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? NULL : throw_error(env, strerror(errno));
	count = take_fds(&msg, fds);
	napi_create_array_with_length(env, (size_t)count + 1, &list);
	napi_create_buffer_copy(env, (size_t)len, data, NULL, &item);
	napi_set_element(env, list, 0, item);
	for (int i = 0; i < count; i++)
		napi_set_element(env, list, (uint32_t)i + 1, make_number(env, fds[i]));
	return list;
}

static bool send_all(int fd, const char *data, size_t len, bool is_message)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			wait_for(fd, POLLOUT);
		else if (n < 0 && errno != EINTR)
			return false;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
		if (n > 0 && is_message)
			return true;
	}
	return true;
}

/* send(FD, BYTES): one message. Return: undefined, or throws. */
static napi_value send_message(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	void *data = NULL;
	size_t len = 0;
	int fd = -1;

	if (!take_arguments(env, info, 2, argv) || napi_get_value_int32(env, argv[0], &fd) ||
	    napi_get_buffer_info(env, argv[1], &data, &len))
		return throw_error(env, "send(fd, bytes)");
	return send_all(fd, data, len, true) ? NULL : throw_error(env, strerror(errno));
}

static bool send_report(int fd, const char *path, const char *data, size_t len)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = REPORT_MS / 1000};

	memcpy(to.sun_path, path, strlen(path) + 1);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return false;
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n <= 0 && errno != EINTR)
			return false;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return true;
}

/* report(PATH, BYTES): to a stream socket. Return: undefined; a report may fail. */
static napi_value report_bytes(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)] = "";
	void *data = NULL;
	size_t len = 0, path_len = 0;
	int fd;

	if (!take_arguments(env, info, 2, argv) ||
	    napi_get_value_string_utf8(env, argv[0], path, sizeof(path), &path_len) ||
	    napi_get_buffer_info(env, argv[1], &data, &len))
		return throw_error(env, "report(path, bytes)");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return throw_error(env, strerror(errno));
	(void)send_report(fd, path, data, len);
	(void)close(fd);
	return NULL;
}

static void call_back(const struct callback *to)
{
	napi_handle_scope scope = NULL;
	napi_value function = NULL, global = NULL, thrown = NULL;

	if (napi_open_handle_scope(to->env, &scope) != 0)
		return;
	if (napi_get_reference_value(to->env, to->function, &function) == 0 &&
	    napi_get_global(to->env, &global) == 0)
		(void)napi_make_callback(to->env, NULL, global, function, 0, NULL, NULL);
	/* Of a terminated program. It would keep the next callback from running. */
	(void)napi_get_and_clear_last_exception(to->env, &thrown);
	napi_close_handle_scope(to->env, scope);
}

static void on_readable(uv_poll_t *poll_handle, int status, int events)
{
	(void)poll_handle;
	(void)status;
	(void)events;
	call_back(&self.on_request);
}

static void on_wake(uv_async_t *async)
{
	(void)async;
	lock_state();
	/* If the program was not computing after all, the next callback must not die instead. */
	if (self.is_terminated && cancel_termination)
		cancel_termination(self.isolate);
	self.is_terminated = false;
	self.is_waiting = false;
	unlock_state();
	call_back(&self.on_interrupt);
}

static bool keep_function(napi_env env, napi_value function, struct callback *ret)
{
	ret->env = env;
	return napi_create_reference(env, function, 1, &ret->function) == 0;
}

static bool has_room_for_handles(void)
{
	return uv_handle_size(UV_POLL) <= HANDLE_BYTES && uv_handle_size(UV_ASYNC) <= HANDLE_BYTES;
}

/* watch(FD, FUNCTION): called from the event loop whenever FD is readable. */
static napi_value watch_fd(napi_env env, napi_callback_info info)
{
	uv_poll_t *handle = (uv_poll_t *)self.poll.room;
	napi_value argv[2];
	uv_loop_t *loop = NULL;
	int fd = -1;

	if (!take_arguments(env, info, 2, argv) || napi_get_value_int32(env, argv[0], &fd) ||
	    !keep_function(env, argv[1], &self.on_request) || !has_room_for_handles() ||
	    napi_get_uv_event_loop(env, &loop))
		return throw_error(env, "watch(fd, function)");
	if (uv_poll_init(loop, handle, fd) < 0 ||
	    uv_poll_start(handle, UV_READABLE, on_readable) < 0)
		return throw_error(env, "cannot watch the channel");
	return NULL;
}

static void on_signal(int number)
{
	int before = errno; // NOLINT: is kept as it was

	(void)number;
	(void)!write(self.pipe[1], "", 1);
	errno = before; // NOLINT
}

/* Return: whether the loop has not taken the interrupt. */
static bool terminate_program(bool now)
{
	bool waiting;

	lock_state();
	waiting = self.is_waiting;
	if (waiting && now && terminate_execution && atomic_load(&self.is_armed)) {
		self.is_terminated = true;
		terminate_execution(self.isolate);
	}
	unlock_state();
	return waiting;
}

static void *watch_interrupts(void *unused)
{
	sigset_t all;
	char byte;

	(void)unused;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (;;) {
		ssize_t n = read(self.pipe[0], &byte, 1);

		if (n == 0 || (n < 0 && errno != EINTR))
			return NULL;
		if (n < 0)
			continue;
		lock_state();
		self.is_waiting = true;
		unlock_state();
		(void)uv_async_send((uv_async_t *)self.wake.room);
		for (int ms = 1; terminate_program(ms % PATIENCE_MS == 0); ms++)
			(void)poll(NULL, 0, 1);
	}
}

/* interrupts(FUNCTION): called from the event loop after each SIGINT. */
static napi_value begin_interrupts(napi_env env, napi_callback_info info)
{
	uv_async_t *wake = (uv_async_t *)self.wake.room;
	napi_value argv[1];
	uv_loop_t *loop = NULL;
	pthread_t thread;

	if (!take_arguments(env, info, 1, argv) ||
	    !keep_function(env, argv[0], &self.on_interrupt) || !has_room_for_handles() ||
	    napi_get_uv_event_loop(env, &loop))
		return throw_error(env, "interrupts(function)");
	if (current_isolate)
		self.isolate = current_isolate();
	if (pipe2(self.pipe, O_CLOEXEC) < 0 || uv_async_init(loop, wake, on_wake) < 0 ||
	    pthread_create(&thread, NULL, watch_interrupts, NULL) != 0)
		return throw_error(env, "cannot watch for interrupts");
	uv_unref(wake);
	return NULL;
}

/* arm(BOOLEAN): whether an interrupt may terminate what runs from now on. */
static napi_value arm_interrupts(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	bool on = false;

	if (!take_arguments(env, info, 1, argv) || napi_get_value_bool(env, argv[0], &on))
		return throw_error(env, "arm(boolean)");
	/* The program may have changed it. */
	(void)signal(SIGINT, on_signal);
	atomic_store(&self.is_armed, on);
	return NULL;
}

/* terminate(): end the program that calls this, as an interrupt does. */
static napi_value terminate_self(napi_env env, napi_callback_info info)
{
	(void)info;
	if (!terminate_execution || !self.isolate)
		return throw_error(env, "this Node.js cannot be interrupted");
	lock_state();
	self.is_terminated = true;
	terminate_execution(self.isolate);
	unlock_state();
	(void)uv_async_send((uv_async_t *)self.wake.room);
	return NULL;
}

static const struct {
	const char *name;
	napi_callback function;
} table[] = {
	{"arm", arm_interrupts},
	{"copy", copy_fd},
	{"interrupts", begin_interrupts},
	{"receive", receive_request},
	{"replace", replace_fd},
	{"report", report_bytes},
	{"send", send_message},
	{"terminate", terminate_self},
	{"wait", wait_ready},
	{"watch", watch_fd},
};

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		napi_value function = NULL;

		napi_create_function(env, table[i].name, strlen(table[i].name), table[i].function,
		                     NULL, &function);
		napi_set_named_property(env, exports, table[i].name, function);
	}
	return exports;
}
