/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

int channel_init(struct channel *ch, int fd, int output)
{
	int r = output < 0 ? 0 : fd_set_nonblock(output, true);

	ch->fd = fd;
	ch->output = output;
	ch->in_off = ch->in_len = ch->out_off = ch->noted = 0;
	buf_init(&ch->out, CHANNEL_MAX_BYTES);
	return r < 0 ? r : fd_set_nonblock(fd, true);
}

void channel_done(struct channel *ch)
{
	buf_done(&ch->out);
}

void channel_close(struct channel *ch)
{
	ch->fd = fd_close(ch->fd);
	ch->output = fd_close(ch->output);
	ch->in_off = ch->in_len = ch->out_off = ch->noted = 0;
	buf_done(&ch->out);
	buf_init(&ch->out, CHANNEL_MAX_BYTES);
}

static size_t unsent_bytes(const struct channel *ch)
{
	return ch->out.len - ch->out_off;
}

bool channel_is_full(const struct channel *ch)
{
	return unsent_bytes(ch) >= CHANNEL_HIGH_BYTES;
}

bool channel_has_output(const struct channel *ch)
{
	return unsent_bytes(ch) > 0;
}

bool channel_has_room(const struct channel *ch)
{
	return ch->in_len - ch->in_off < sizeof(ch->in);
}

int channel_fill(struct channel *ch)
{
	ssize_t n = 0;

	if (ch->in_off > 0) {
		memmove(ch->in, ch->in + ch->in_off, ch->in_len - ch->in_off);
		ch->in_len -= ch->in_off;
		ch->in_off = 0;
	}
	n = ch->output >= 0
	            ? read(ch->fd, ch->in + ch->in_len, sizeof(ch->in) - ch->in_len)
	            : recv(ch->fd, ch->in + ch->in_len, sizeof(ch->in) - ch->in_len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	ch->in_len += (size_t)n;
	return n > 0;
}

int channel_next(struct channel *ch, struct frame *ret_frame)
{
	int r = frame_parse(ch->in + ch->in_off, ch->in_len - ch->in_off, ret_frame);

	if (r <= 0)
		return r;
	ch->in_off += (size_t)r;
	return 1;
}

static ssize_t send_some(const struct channel *ch)
{
	const char *data = ch->out.data + ch->out_off;

	if (ch->output >= 0)
		return write(ch->output, data, unsent_bytes(ch));
	return send(ch->fd, data, unsent_bytes(ch), MSG_DONTWAIT | MSG_NOSIGNAL);
}

int channel_flush(struct channel *ch)
{
	if (ch->fd < 0)
		ch->out_off = ch->out.len;
	while (unsent_bytes(ch) > 0) {
		ssize_t n = send_some(ch);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return -errno;
		ch->out_off += (size_t)n;
	}
	/* Keeping sent bytes is cheaper than moving a few often. */
	if (ch->out_off == ch->out.len) {
		buf_reset(&ch->out);
		ch->out_off = 0;
	} else if (ch->out_off >= CHANNEL_HIGH_BYTES / 2) {
		buf_consume(&ch->out, ch->out_off);
		ch->out_off = 0;
	}
	return 0;
}
