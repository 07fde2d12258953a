/* SPDX-License-Identifier: Apache-2.0 */
#include "http/sse.h"

#include <errno.h>

int sse_open(struct buf *b, const struct sse *e)
{
	if ((e->id && buf_addf(b, "id: %s\n", e->id) < 0) ||
	    (e->name && buf_addf(b, "event: %s\n", e->name) < 0) ||
	    (e->retry_ms && buf_addf(b, "retry: %u\n", e->retry_ms) < 0))
		return -ENOBUFS;
	return buf_add_str(b, "data: ");
}

int sse_close(struct buf *b)
{
	return buf_add_str(b, "\n\n");
}
