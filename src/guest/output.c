/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/output.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"

int output_open(struct output *o, enum wire_stream stream, uint64_t max, int *ret_end)
{
	int ends[2] = {-1, -1};
	int r = fd_pipe(ends, 0);

	if (r < 0)
		return r;
	/* Only our end: the program expects a blocking pipe. */
	r = fd_set_nonblock(ends[0], true);
	if (r < 0) {
		(void)fd_close(ends[0]);
		(void)fd_close(ends[1]);
		return r;
	}
	*o = (struct output){.fd = ends[0], .stream = stream, .max = max};
	*ret_end = ends[1];
	return 0;
}

void output_close(struct output *o)
{
	o->fd = fd_close(o->fd);
}

bool output_wants(const struct output *o, const struct channel *ch)
{
	if (o->fd < 0)
		return false;
	return o->produced >= o->max ? !o->waits : !channel_is_full(ch);
}

uint32_t output_account(struct output *o, uint32_t len)
{
	uint64_t room = o->produced < o->max ? o->max - o->produced : 0;

	o->produced += len;
	return room < len ? (uint32_t)room : len;
}

int output_pump(struct output *o, struct channel *ch, uint32_t id)
{
	struct msg_output msg = {.stream = (uint8_t)o->stream};
	uint64_t room = o->waits ? o->max - o->produced : sizeof(ch->scratch);
	size_t most = room < sizeof(ch->scratch) ? (size_t)room : sizeof(ch->scratch);
	ssize_t n = read(o->fd, ch->scratch, most);
	int r = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		output_close(o);
		return 0;
	}
	msg.data = (struct wire_bytes){ch->scratch, output_account(o, (uint32_t)n)};
	if (msg.data.len > 0)
		r = msg_output_encode(&ch->out, id, &msg);
	return r < 0 ? r : (int)n;
}
