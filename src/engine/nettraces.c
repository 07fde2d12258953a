/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/nettraces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/file.h"

/* Sockets: of all families, the ones on their way in messages of others too. Flow labels linger
 * after their socket. */
static const struct {
	const char *path;
	bool optional;   /* not there without IPv6 */
	bool first_line; /* what follows is about other namespaces too */
} TRACES[] = {
	{"/proc/thread-self/net/sockstat",      false, true },
	{"/proc/thread-self/net/dev",           false, false},
	{"/proc/thread-self/net/snmp",          false, false},
	{"/proc/thread-self/net/netstat",       false, false},
	{"/proc/thread-self/net/snmp6",         true,  false},
	{"/proc/thread-self/net/ip6_flowlabel", true,  false},
	{"/proc/thread-self/net/rt6_stats",     true,  false},
	{"/proc/thread-self/net/ipv6_route",    true,  false},
	{"/proc/thread-self/net/igmp",          true,  false},
	{"/proc/thread-self/net/igmp6",         true,  false},
};

static void cut_after_line(struct buf *text, size_t start)
{
	const char *end = memchr(text->data + start, '\n', text->len - start);

	if (end)
		text->len = (size_t)(end - text->data) + 1;
}

int nettraces_read(struct buf *ret)
{
	buf_reset(ret);
	for (size_t i = 0; i < ARRAY_SIZE(TRACES); i++) {
		size_t start = ret->len;
		int r = file_read_at(AT_FDCWD, TRACES[i].path, ret);

		if (r == -ENOENT && TRACES[i].optional)
			continue;
		if (r < 0) {
			buf_reset(ret);
			return r;
		}
		if (TRACES[i].first_line && ret->len > start)
			cut_after_line(ret, start);
	}
	return 0;
}
