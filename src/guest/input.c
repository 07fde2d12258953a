/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/input.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"

/* Not a message for every few bytes. */
#define ROOM_STEP (WIRE_STDIN_WINDOW / 4)

int input_open(struct input *in, int *ret_end)
{
	int ends[2] = {-1, -1};
	int r = fd_pipe(ends, 0);

	if (r < 0)
		return r;
	r = fd_set_nonblock(ends[1], true);
	if (r < 0) {
		(void)fd_close(ends[0]);
		(void)fd_close(ends[1]);
		return r;
	}
	input_take(in, ends[1]);
	*ret_end = ends[0];
	return 0;
}

void input_take(struct input *in, int fd)
{
	*in = (struct input){.fd = fd, .opened = true};
	buf_init(&in->pending, WIRE_STDIN_WINDOW);
}

void input_close(struct input *in)
{
	in->fd = fd_close(in->fd);
	in->ended = true;
	buf_done(&in->pending);
}

int input_add(struct input *in, const struct wire_bytes *data)
{
	if (in->pending.len + in->room + data->len > WIRE_STDIN_WINDOW)
		return -EPROTO;
	in->taken += data->len;
	if (in->fd < 0) {
		in->room += data->len; /* no reader: discard */
		return 0;
	}
	return buf_add(&in->pending, data->data, data->len);
}

void input_end(struct input *in)
{
	in->ended = true;
	if (in->pending.len == 0)
		in->fd = fd_close(in->fd);
}

bool input_wants(const struct input *in)
{
	return in->fd >= 0 && in->pending.len > 0;
}

static void write_some(struct input *in)
{
	ssize_t n = write(in->fd, in->pending.data, in->pending.len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) { /* EPIPE: the program closed its stdin */
		in->room += (uint32_t)in->pending.len;
		buf_reset(&in->pending);
		in->fd = fd_close(in->fd);
		return;
	}
	in->room += (uint32_t)n;
	buf_consume(&in->pending, (size_t)n);
}

int input_pump(struct input *in, struct channel *ch, uint32_t id)
{
	int r = 0;

	if (input_wants(in))
		write_some(in);
	if (in->ended && in->pending.len == 0)
		in->fd = fd_close(in->fd);
	if (in->room > 0 && (in->room >= ROOM_STEP || in->pending.len == 0)) {
		r = msg_stdin_room_encode(&ch->out, id,
		                          &(struct msg_stdin_room){.bytes = in->room});
		in->room = 0;
	}
	return r;
}
