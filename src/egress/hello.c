/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/hello.h"

#include <string.h>

/* RFC 8446, 4.1.2 and 5.1; RFC 6066, 3. */
#define RECORD_HEADER      5
#define RECORD_HANDSHAKE   22
#define RECORD_MAJOR       3
#define RECORD_MINOR_MAX   4
#define RECORD_MAX         16384
#define MESSAGE_HEADER     4
#define CLIENT_HELLO       1
#define RANDOM_LEN         32
#define SESSION_ID_MAX     32
#define EXTENSION_NAME     0
#define NAME_TYPE_HOST     0
#define EXTENSION_ECH      0xfe0d
#define EXTENSION_ECH_OLD  0xfe08 /* the drafts, up to EXTENSION_ECH */
#define EXTENSION_ESNI     0xffce /* its predecessor */
#define CIPHER_SUITE_BYTES 2

/* Bytes that remain. Once an element is longer than the rest, all that follow are empty. */
struct reader {
	const unsigned char *at;
	size_t left;
	bool bad;
};

static struct reader take_bytes(struct reader *r, size_t len)
{
	struct reader part = {.at = r->at, .left = len};

	if (r->bad || len > r->left) {
		r->bad = true;
		return (struct reader){.at = r->at, .bad = true};
	}
	r->at += len;
	r->left -= len;
	return part;
}

static size_t take_number(struct reader *r, size_t bytes)
{
	struct reader part = take_bytes(r, bytes);
	size_t value = 0;

	for (size_t i = 0; i < part.left; i++)
		value = value << 8 | part.at[i];
	return value;
}

/* Bytes behind their length. */
static struct reader take_vector(struct reader *r, size_t length_bytes)
{
	size_t len = take_number(r, length_bytes);

	return take_bytes(r, len);
}

/* One name of the only type there is: what a server does with several is not known. */
static int parse_name(struct reader body, struct target *ret)
{
	struct reader list = take_vector(&body, 2);
	size_t type = take_number(&list, 1);
	struct reader name = take_vector(&list, 2);
	struct target target;
	struct error err = {0};

	if (body.bad || body.left || list.bad || list.left || type != NAME_TYPE_HOST)
		return -1;
	if (name.left == 0 || name.at[name.left - 1] == '.')
		return -1;
	if (target_parse_host((const char *)name.at, name.left, false, &target, &err) < 0 ||
	    target.is_address)
		return -1;
	*ret = target;
	return 0;
}

static bool hides_name(size_t type)
{
	return (type >= EXTENSION_ECH_OLD && type <= EXTENSION_ECH) || type == EXTENSION_ESNI;
}

static enum hello_result parse_extensions(struct reader r, struct target *ret)
{
	bool named = false, hidden = false;

	while (r.left > 0 && !r.bad) {
		size_t type = take_number(&r, 2);
		struct reader body = take_vector(&r, 2);

		if (r.bad)
			break;
		hidden = hidden || hides_name(type);
		if (type != EXTENSION_NAME)
			continue;
		if (named || parse_name(body, ret) < 0)
			return HELLO_MALFORMED;
		named = true;
	}
	if (r.bad)
		return HELLO_MALFORMED;
	if (hidden)
		return HELLO_ENCRYPTED;
	return named ? HELLO_NAME : HELLO_NO_NAME;
}

static enum hello_result parse_message(struct reader r, struct target *ret)
{
	size_t version = take_number(&r, 2);
	struct reader session_id, suites, compression, extensions;

	(void)take_bytes(&r, RANDOM_LEN);
	session_id = take_vector(&r, 1);
	suites = take_vector(&r, 2);
	compression = take_vector(&r, 1);
	if (r.bad || version >> 8 != RECORD_MAJOR || session_id.left > SESSION_ID_MAX ||
	    suites.left == 0 || suites.left % CIPHER_SUITE_BYTES || compression.left == 0)
		return HELLO_MALFORMED;
	if (r.left == 0)
		return HELLO_NO_NAME;
	extensions = take_vector(&r, 2);
	if (r.bad || r.left)
		return HELLO_MALFORMED;
	return parse_extensions(extensions, ret);
}

/* Return: HELLO_NAME with the length of the record, or why there is none. */
static enum hello_result parse_record(const struct reader *r, bool first, size_t *ret_len)
{
	const unsigned char *h = r->at;
	size_t len;

	if ((r->left > 0 && h[0] != RECORD_HANDSHAKE) || (r->left > 1 && h[1] != RECORD_MAJOR) ||
	    (r->left > 2 && h[2] > RECORD_MINOR_MAX))
		return first ? HELLO_NOT_TLS : HELLO_MALFORMED;
	if (r->left < RECORD_HEADER)
		return HELLO_MORE;
	len = (size_t)h[3] << 8 | h[4];
	if (len == 0 || len > RECORD_MAX)
		return HELLO_MALFORMED;
	*ret_len = len;
	return HELLO_NAME;
}

/* The bytes of a message as they are gathered from its records. */
struct message {
	unsigned char bytes[HELLO_MAX];
	size_t len;
	size_t expected; /* 0: not known yet */
};

/* @missing: bytes of the current record that are not here yet. */
static bool message_is_sound(struct message *m, size_t missing)
{
	struct reader r = {.at = m->bytes, .left = m->len};

	if (m->len > 0 && m->bytes[0] != CLIENT_HELLO)
		return false;
	if (m->len < MESSAGE_HEADER)
		return true;
	(void)take_number(&r, 1);
	m->expected = MESSAGE_HEADER + take_number(&r, 3);
	/* A second message in the record could be another ClientHello. */
	return m->expected <= HELLO_MAX && m->len + missing <= m->expected;
}

/* Return: HELLO_NAME if @m is complete, or why not. @r has at most HELLO_MAX bytes. */
static enum hello_result gather(struct reader r, struct message *m)
{
	bool first = true;

	while (m->expected == 0 || m->len < m->expected) {
		size_t len = 0, have;
		enum hello_result result = parse_record(&r, first, &len);

		if (result != HELLO_NAME)
			return result;
		first = false;
		(void)take_bytes(&r, RECORD_HEADER);
		have = len < r.left ? len : r.left;
		memcpy(m->bytes + m->len, take_bytes(&r, have).at, have);
		m->len += have;
		if (!message_is_sound(m, len - have))
			return HELLO_MALFORMED;
		if (have < len)
			return HELLO_MORE;
	}
	return HELLO_NAME;
}

enum hello_result hello_parse(const void *data, size_t len, char ret_name[TARGET_HOST_LEN])
{
	struct reader r = {.at = data, .left = len < HELLO_MAX ? len : HELLO_MAX};
	struct message message;
	struct target target;
	enum hello_result result;

	message.len = message.expected = 0;
	result = gather(r, &message);
	if (result == HELLO_MORE && len >= HELLO_MAX)
		return HELLO_MALFORMED;
	if (result != HELLO_NAME)
		return result;
	result = parse_message((struct reader){.at = message.bytes + MESSAGE_HEADER,
	                                       .left = message.len - MESSAGE_HEADER},
	                       &target);
	if (result == HELLO_NAME)
		memcpy(ret_name, target.host, TARGET_HOST_LEN);
	return result;
}
