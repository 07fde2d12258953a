/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/msg.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/*
 * Theory of operation. One writer and one reader per field type; msg.def generates each message's
 * functions from its fields. Both keep the first failure and ignore what follows, so a message
 * needs one check at its end.
 */

struct writer {
	struct buf *out;
	size_t start; /* length of @out before the frame */
	int error;
};

struct reader {
	const uint8_t *pos;
	size_t left;
	bool bad;
};

static void put_raw(struct writer *w, const void *data, size_t len)
{
	if (w->error)
		return;
	if (len > FRAME_MAX_LEN - (w->out->len - w->start))
		w->error = -EMSGSIZE;
	else
		w->error = buf_add(w->out, data, len);
}

static void put_number(struct writer *w, uint64_t value, size_t width)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < width; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	put_raw(w, bytes, width);
}

static void put_bytes(struct writer *w, struct wire_bytes value)
{
	put_number(w, value.len, 4);
	put_raw(w, value.data, value.len);
}

static bool has_nul(struct wire_bytes value)
{
	return value.len > 0 && memchr(value.data, '\0', value.len);
}

static void put_str(struct writer *w, struct wire_bytes value)
{
	if (!w->error && has_nul(value))
		w->error = -EINVAL;
	put_bytes(w, value);
}

/* From items to send, or received bytes. */
static void put_strs(struct writer *w, const struct wire_strs *strs)
{
	if (!w->error && strs->count > WIRE_STRS_MAX)
		w->error = -EMSGSIZE;
	put_number(w, strs->count, 4);
	if (!strs->items)
		put_raw(w, strs->encoded, strs->encoded_len);
	for (uint32_t i = 0; strs->items && i < strs->count && !w->error; i++)
		put_bytes(w, wire_str(strs->items[i]));
}

static struct writer begin_frame(struct buf *out)
{
	struct writer w = {.out = out, .start = out->len};
	static const uint8_t header[FRAME_HEADER_LEN]; /* filled in later */

	put_raw(&w, header, sizeof(header));
	return w;
}

/* Bytes before a failed frame stay good. */
static int end_frame(struct writer *w, enum msg_type type, uint32_t id)
{
	struct buf *out = w->out;

	if (w->error) {
		out->len = w->start;
		if (out->data)
			out->data[out->len] = '\0';
		return w->error;
	}
	frame_put_header(&(struct frame){.type = (uint16_t)type,
	                                 .id = id,
	                                 .len = (uint32_t)(out->len - w->start - FRAME_HEADER_LEN)},
	                 (uint8_t *)out->data + w->start);
	return 0;
}

static const uint8_t *take_raw(struct reader *r, size_t len)
{
	const uint8_t *p = r->pos;

	if (r->bad || len > r->left) {
		r->bad = true;
		return NULL;
	}
	r->pos += len;
	r->left -= len;
	return p;
}

static uint64_t take_number(struct reader *r, size_t width)
{
	const uint8_t *p = take_raw(r, width);
	uint64_t value = 0;

	for (size_t i = 0; p && i < width; i++)
		value |= (uint64_t)p[i] << (8 * i);
	return value;
}

static struct wire_bytes take_bytes(struct reader *r)
{
	uint32_t len = (uint32_t)take_number(r, 4);
	const uint8_t *p = take_raw(r, len);

	return (struct wire_bytes){.data = (const char *)p, .len = p ? len : 0};
}

static struct wire_bytes take_str(struct reader *r)
{
	struct wire_bytes value = take_bytes(r);

	/* One side could check the path up to the NUL and the other use it beyond. */
	if (has_nul(value))
		r->bad = true;
	return value;
}

static struct wire_strs take_strs(struct reader *r)
{
	struct wire_strs strs = {.count = (uint32_t)take_number(r, 4)};

	if (strs.count > WIRE_STRS_MAX)
		r->bad = true;
	strs.encoded = r->pos;
	for (uint32_t i = 0; i < strs.count && !r->bad; i++)
		(void)take_str(r);
	strs.encoded_len = r->bad ? 0 : (uint32_t)(r->pos - strs.encoded);
	return strs;
}

static struct reader open_frame(const struct frame *frame, enum msg_type type)
{
	bool bad = frame->type != type || frame->len > FRAME_MAX_PAYLOAD;

	return (struct reader){.pos = frame->payload, .left = frame->len, .bad = bad};
}

static int close_frame(const struct reader *r)
{
	return r->bad || r->left > 0 ? -EPROTO : 0;
}

#define U8(n)    put_number(&w, msg->n, 1);
#define U16(n)   put_number(&w, msg->n, 2);
#define U32(n)   put_number(&w, msg->n, 4);
#define U64(n)   put_number(&w, msg->n, 8);
#define I32(n)   put_number(&w, (uint32_t)msg->n, 4);
#define STR(n)   put_str(&w, msg->n);
#define BYTES(n) put_bytes(&w, msg->n);
#define STRS(n)  put_strs(&w, &msg->n);
#define MSG(NAME, name, direction, ...)                                                            \
	int msg_##name##_encode(struct buf *out, uint32_t id, const struct msg_##name *msg)        \
	{                                                                                          \
		struct writer w = begin_frame(out);                                                \
		__VA_ARGS__                                                                        \
		return end_frame(&w, MSG_##NAME, id);                                              \
	}
#include "wire/msg.def"
#undef MSG
#undef U8
#undef U16
#undef U32
#undef U64
#undef I32
#undef STR
#undef BYTES
#undef STRS

#define U8(n)    ret_msg->n = (uint8_t)take_number(&r, 1);
#define U16(n)   ret_msg->n = (uint16_t)take_number(&r, 2);
#define U32(n)   ret_msg->n = (uint32_t)take_number(&r, 4);
#define U64(n)   ret_msg->n = take_number(&r, 8);
#define I32(n)   ret_msg->n = (int32_t)take_number(&r, 4);
#define STR(n)   ret_msg->n = take_str(&r);
#define BYTES(n) ret_msg->n = take_bytes(&r);
#define STRS(n)  ret_msg->n = take_strs(&r);
#define MSG(NAME, name, direction, ...)                                                            \
	int msg_##name##_decode(const struct frame *frame, struct msg_##name *ret_msg)             \
	{                                                                                          \
		struct reader r = open_frame(frame, MSG_##NAME);                                   \
		__VA_ARGS__                                                                        \
		return close_frame(&r);                                                            \
	}
#include "wire/msg.def"
#undef MSG
#undef U8
#undef U16
#undef U32
#undef U64
#undef I32
#undef STR
#undef BYTES
#undef STRS

int wire_strs_next(const struct wire_strs *strs, uint32_t *pos, struct wire_bytes *ret_item)
{
	struct reader r;

	if (*pos >= strs->encoded_len)
		return 0;
	r = (struct reader){.pos = strs->encoded + *pos, .left = strs->encoded_len - *pos};
	*ret_item = take_bytes(&r);
	assert(!r.bad);
	*pos = (uint32_t)(r.pos - strs->encoded);
	return 1;
}

struct wire_bytes wire_str(const char *s)
{
	size_t len = strlen(s);

	/* Too long for any frame; a wrapped length would not be rejected. */
	return (struct wire_bytes){.data = s, .len = len > UINT32_MAX ? UINT32_MAX : (uint32_t)len};
}

const char *msg_name(unsigned type)
{
	static const char *const names[] = {
		[MSG_NONE] = "?",
#define MSG(NAME, name, direction, ...) [MSG_##NAME] = #NAME,
#include "wire/msg.def"
#undef MSG
	};

	static_assert(ARRAY_SIZE(names) == MSG_COUNT, "every message has a name");
	return type < MSG_COUNT ? names[type] : "?";
}
