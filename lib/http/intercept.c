/* SPDX-License-Identifier: Apache-2.0 */
#include "http/intercept.h"

#include "base/alloc.h"
#include "http/internal.h"
#include <dlfcn.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <sys/socket.h>

/*
 * Theory of operation. microhttpd 0.9.75 accepts lines that end with CR or LF alone, in headers and
 * between chunks, ends a header at a NUL, and joins folded lines; MHD_OPTION_STRICT_FOR_CLIENT
 * changes none of that, and no callback sees the bytes before they are parsed. So this file defines
 * the two functions that microhttpd reads with: recv, and gnutls_record_recv. Both are resolved at
 * run time, and a definition in the program comes before those of the libraries. Any other caller,
 * and any other descriptor, gets what it would get without this file.
 *
 * The alternatives were a relay, which copies every byte once more and hides the client's address
 * from microhttpd, and peeking before each read, which cannot know how much is read.
 *
 * If a reader that is not defined here is used, nothing is checked; then take_header, which counts
 * the headers that were, refuses every request.
 */

/* By descriptor. One table for each thread that runs a server: no other thread's recv finds any. */
static _Thread_local struct {
	struct http_conn **conns;
	size_t size;
	size_t used;
} checked;

#define GROW_STEP 64u

void intercept_start(struct http_conn *c)
{
	size_t slot = (size_t)c->fd;

	if (slot >= checked.size) {
		size_t size = (slot / GROW_STEP + 1) * GROW_STEP;

		checked.conns = xrealloc_array(checked.conns, size, sizeof(struct http_conn *));
		while (checked.size < size)
			checked.conns[checked.size++] = NULL;
	}
	checked.conns[slot] = c;
	checked.used++;
}

void intercept_stop(const struct http_conn *c)
{
	size_t slot = (size_t)c->fd;

	assert(slot < checked.size && checked.conns[slot] == c);
	checked.conns[slot] = NULL;
	if (--checked.used > 0)
		return;
	free(TAKE_PTR(checked.conns));
	checked.size = 0;
}

/* The connection at @fd if its requests are read from there, with or without TLS; else NULL. */
static struct http_conn *find_checked(int fd, bool is_tls)
{
	struct http_conn *c = fd >= 0 && (size_t)fd < checked.size ? checked.conns[fd] : NULL;

	/* A WebSocket has frames of its own. */
	return c && c->listener->is_tls == is_tls && !c->ws ? c : NULL;
}

/* Return: what microhttpd may have of @n bytes; -1: nothing yet. 0: the end, after a refusal. */
static ssize_t check_bytes(struct http_conn *c, const void *data, ssize_t n)
{
	size_t valid;

	if (n <= 0)
		return n;
	if (c->refused)
		return 0;
	if (c->leaving) {
		conn_can_answer(c);
		return -1;
	}
	if (c->framing.bad)
		return -1;
	valid = framing_feed(&c->framing, data, (size_t)n);
	if (c->framing.bad)
		conn_bad_framing(c);
	return valid > 0 ? (ssize_t)valid : -1;
}

/* Other names in C: with fortification, libc's header defines an inline recv. */
ssize_t intercept_recv(int fd, void *buf, size_t len, int flags) __asm__("recv");
ssize_t intercept_record(gnutls_session_t session, void *data,
                         size_t size) __asm__("gnutls_record_recv");

__attribute__((visibility("default"), used)) ssize_t intercept_recv(int fd, void *buf, size_t len,
                                                                    int flags)
{
	ssize_t n = recvfrom(fd, buf, len, flags, NULL, NULL); /* the same system call */
	struct http_conn *c = find_checked(fd, false);

	if (!c || flags & MSG_PEEK || n < 0)
		return n;
	n = check_bytes(c, buf, n);
	if (n < 0)
		errno = EAGAIN;
	return n;
}

typedef ssize_t record_recv_fn(gnutls_session_t session, void *data, size_t size);

__attribute__((visibility("default"), used)) ssize_t intercept_record(gnutls_session_t session,
                                                                      void *data, size_t size)
{
	/* POSIX guarantees the conversion, ISO C does not: hence the union. */
	static union {
		void *address;
		record_recv_fn *call;
	} real;
	struct http_conn *c;
	ssize_t n;

	if (!real.address)
		real.address = dlsym(RTLD_NEXT, "gnutls_record_recv");
	assert(real.address);
	n = real.call(session, data, size);
	c = find_checked(gnutls_transport_get_int(session), true);
	if (!c || n < 0)
		return n;
	n = check_bytes(c, data, n);
	return n < 0 ? GNUTLS_E_AGAIN : n;
}
