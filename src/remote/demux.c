/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/demux.h"

#include <assert.h>
#include <errno.h>

/* Return: 0, 1: an empty frame, or -EPROTO. */
static int open_frame(struct demux *d)
{
	const uint8_t *h = d->head;

	if (h[0] >= DEMUX_COUNT || h[1] || h[2] || h[3])
		return -EPROTO;
	d->left = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
	if (d->left > 0)
		return 0;
	d->have = 0;
	return 1;
}

int demux_next(struct demux *d, const char *data, size_t len, struct demux_piece *ret_piece)
{
	size_t at = 0;

	while (d->left == 0 && at < len) {
		d->head[d->have++] = (uint8_t)data[at++];
		if (d->have == DEMUX_HEAD && open_frame(d) < 0)
			return -EPROTO;
	}
	*ret_piece = (struct demux_piece){
		.skip = at,
		.stream = d->left > 0 ? (enum demux_stream)d->head[0] : DEMUX_STDOUT,
		.len = len - at < d->left ? len - at : d->left,
	};
	return 0;
}

void demux_take(struct demux *d, size_t len)
{
	assert(len <= d->left);
	d->left -= (uint32_t)len;
	if (len > 0 && d->left == 0)
		d->have = 0;
}
