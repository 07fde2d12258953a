/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/netns_check.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

/* sockstat counts sockets of all families, including those in flight. Flow labels outlive their
 * socket. */
static const struct {
	const char *path;
	bool optional;   /* missing without IPv6 */
	bool first_line; /* other lines cover other namespaces too */
} TRACES[] = {
	{"/proc/thread-self/net/sockstat", false, true},
	{"/proc/thread-self/net/dev", false, false},
	{"/proc/thread-self/net/snmp", false, false},
	{"/proc/thread-self/net/netstat", false, false},
	{"/proc/thread-self/net/snmp6", true, false},
	{"/proc/thread-self/net/ip6_flowlabel", true, false},
	{"/proc/thread-self/net/rt6_stats", true, false},
	{"/proc/thread-self/net/ipv6_route", true, false},
	{"/proc/thread-self/net/igmp", true, false},
	{"/proc/thread-self/net/igmp6", true, false},
};

static_assert(ARRAY_SIZE(TRACES) == NETNS_CHECK_FILES, "a descriptor for each");

int netns_check_open(struct netns_check *traces)
{
	for (size_t i = 0; i < NETNS_CHECK_FILES; i++)
		traces->files[i] = -1;
	for (size_t i = 0; i < NETNS_CHECK_FILES; i++) {
		int fd = fd_open(TRACES[i].path, O_RDONLY, 0);

		if (fd < 0 && !(fd == -ENOENT && TRACES[i].optional)) {
			netns_check_close(traces);
			return fd;
		}
		traces->files[i] = fd < 0 ? -1 : fd;
	}
	return 0;
}

void netns_check_close(struct netns_check *traces)
{
	for (size_t i = 0; i < NETNS_CHECK_FILES; i++)
		traces->files[i] = fd_close(traces->files[i]);
}

static void cut_after_line(struct buf *text, size_t start)
{
	const char *end = memchr(text->data + start, '\n', text->len - start);

	if (end)
		text->len = (size_t)(end - text->data) + 1;
}

/*
 * At offset 0 the kernel generates the text anew. Reads until 0 bytes: a short read may only mean a
 * full page buffer.
 */
static int read_again(int fd, struct buf *text)
{
	size_t start = text->len;

	while (text->len < text->max) {
		ssize_t n = pread(fd, text->data + text->len, text->max - text->len,
		                  (off_t)(text->len - start));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		text->len += n < 0 ? 0 : (size_t)n;
	}
	return -EFBIG;
}

int netns_check_read(const struct netns_check *traces, struct buf *ret)
{
	int r;

	buf_reset(ret);
	r = buf_reserve(ret, ret->max);
	for (size_t i = 0; r >= 0 && i < NETNS_CHECK_FILES; i++) {
		size_t start = ret->len;

		if (traces->files[i] < 0)
			continue;
		r = read_again(traces->files[i], ret);
		if (TRACES[i].first_line)
			cut_after_line(ret, start);
	}
	if (r < 0)
		buf_reset(ret);
	return r;
}
