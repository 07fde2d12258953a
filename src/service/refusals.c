/* SPDX-License-Identifier: Apache-2.0 */
#include "service/refusals.h"

#include "base/clock.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static const enum box_refused_by reasons[BRIDGE_NOTED_COUNT] = {
	[BRIDGE_NOTED_ADDRESS] = BOX_REFUSED_ADDRESS,
	[BRIDGE_NOTED_HOST] = BOX_REFUSED_HOST,
	[BRIDGE_NOTED_BOX] = BOX_REFUSED_BOX,
};

/* The kernel repeats the first packet of a TCP connection: that is no other connection. */
static bool is_repeated(uint16_t ports[REFUSALS_PORTS], uint16_t port)
{
	for (size_t i = 0; i < REFUSALS_PORTS; i++)
		if (ports[i] == port)
			return true;
	memmove(ports, ports + 1, (REFUSALS_PORTS - 1) * sizeof(*ports));
	ports[REFUSALS_PORTS - 1] = port;
	return false;
}

/* Return: its row, or REFUSALS_MAX: there is no room. */
static size_t find_row(struct refusals *r, const struct bridge_refusal *what)
{
	size_t i = 0;

	while (i < r->count && memcmp(&r->rows[i].what, what, sizeof(*what)) != 0)
		i++;
	if (i == r->count && r->count < REFUSALS_MAX) {
		memset(&r->rows[i], 0, sizeof(r->rows[i]));
		r->rows[i].what = *what;
		r->count++;
	}
	return i;
}

static void add(struct refusals *r, const struct bridge_refusal *refusal)
{
	struct bridge_refusal what = *refusal;
	size_t i;

	what.from = 0;
	i = find_row(r, &what);
	if (i < REFUSALS_MAX && (what.is_udp || !is_repeated(r->rows[i].from, refusal->from)))
		r->rows[i].times++;
}

/* Return: whether there may be more. */
static bool receive(struct refusals *r)
{
	struct bridge_refusal what;
	ssize_t n = r->sock < 0 ? 0 : recv(r->sock, &what, sizeof(what), MSG_DONTWAIT);

	/* Reset: the other end was closed with a question in it; what it sent follows. */
	if (n < 0)
		return errno == EINTR || errno == ECONNRESET;
	if (n == 0) {
		r->sock = -1;
		r->is_asked = false;
	} else if (n == sizeof(what) && what.why == BRIDGE_NOTED_ALL) {
		r->is_asked = false;
	} else if (n == sizeof(what) && what.why < BRIDGE_NOTED_COUNT) {
		add(r, &what);
	}
	return n > 0;
}

static void receive_all(struct refusals *r)
{
	while (receive(r))
		;
}

void refusals_ask(struct refusals *r)
{
	receive_all(r); /* an earlier answer is not this one; and there must be room */
	r->is_asked = r->sock >= 0 && send(r->sock, "?", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

bool refusals_settle(struct refusals *r, uint64_t wait_us)
{
	uint64_t until = clock_us() + wait_us;

	receive_all(r);
	while (r->is_asked && clock_us() < until) {
		struct pollfd fd = {.fd = r->sock, .events = POLLIN};

		if (poll(&fd, 1, 1) > 0)
			receive_all(r);
	}
	return !r->is_asked;
}

static struct box_denial denial_of(const struct bridge_refusal *what, uint64_t times)
{
	struct box_denial d = {.by = reasons[what->why],
	                       .port = what->port,
	                       .is_udp = what->is_udp,
	                       .count = times};

	(void)inet_ntop(AF_INET, &what->address, d.host, sizeof(d.host)); /* fits */
	return d;
}

size_t refusals_take(struct refusals *r, struct box_denial *ret, size_t max)
{
	size_t count;

	receive_all(r);
	count = r->count < max ? r->count : max;
	for (size_t i = 0; i < count; i++)
		ret[i] = denial_of(&r->rows[i].what, r->rows[i].times);
	r->count -= count;
	memmove(r->rows, r->rows + count, r->count * sizeof(*r->rows));
	return count;
}
