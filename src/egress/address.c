/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/address.h"

#include "base/parse.h"
#include "base/str.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define V4_BITS 96 /* of the prefix ::ffff:0:0 */

/* clang-format off */
#define V4(a, b, c, d, bits) \
	{{.s6_addr = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}}, V4_BITS + (bits)}
/* The first six groups and the last one, which are all that the table needs. */
#define V6(a, b, c, d, e, f, last, bits) \
	{{.s6_addr = {(a) >> 8, (a) & 0xff, (b) >> 8, (b) & 0xff, (c) >> 8, (c) & 0xff, \
	              (d) >> 8, (d) & 0xff, (e) >> 8, (e) & 0xff, (f) >> 8, (f) & 0xff, \
	              0, 0, (last) >> 8, (last) & 0xff}}, (bits)}
/* clang-format on */

enum kind {
	NEVER,     /* no rule opens it */
	ON_REQUEST /* a CIDR rule opens it */
};

/*
 * The special-purpose registries of IANA (RFC 6890 and later) and the metadata services of the
 * large clouds. The first row that contains an address decides.
 */
static const struct row {
	struct cidr range;
	const char *word;
	enum kind kind;
} rows[] = {
	{V4(169, 254, 169, 254, 32), "metadata", NEVER},
	{V4(100, 100, 100, 200, 32), "metadata", NEVER},
	{V4(168, 63, 129, 16, 32), "metadata", NEVER}, /* Azure; looks public */
	{V6(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 32), "metadata", NEVER},
	{V6(0xfd20, 0x00ce, 0, 0, 0, 0, 0x0254, 128), "metadata", NEVER},

	{V4(0, 0, 0, 0, 8), "unspecified", NEVER}, /* connect() to 0.0.0.0 reaches loopback */
	{V4(10, 0, 0, 0, 8), "private", ON_REQUEST},
	{V4(100, 64, 0, 0, 10), "shared", ON_REQUEST},
	{V4(127, 0, 0, 0, 8), "loopback", ON_REQUEST},
	{V4(169, 254, 0, 0, 16), "link-local", NEVER},
	{V4(172, 16, 0, 0, 12), "private", ON_REQUEST},
	{V4(192, 0, 0, 0, 24), "reserved", NEVER},
	{V4(192, 0, 2, 0, 24), "documentation", ON_REQUEST},
	{V4(192, 88, 99, 0, 24), "6to4", NEVER},
	{V4(192, 168, 0, 0, 16), "private", ON_REQUEST},
	{V4(198, 18, 0, 0, 15), "benchmarking", ON_REQUEST},
	{V4(198, 51, 100, 0, 24), "documentation", ON_REQUEST},
	{V4(203, 0, 113, 0, 24), "documentation", ON_REQUEST},
	{V4(224, 0, 0, 0, 4), "multicast", NEVER},
	{V4(255, 255, 255, 255, 32), "broadcast", NEVER},
	{V4(240, 0, 0, 0, 4), "reserved", NEVER},

	{V6(0, 0, 0, 0, 0, 0, 0, 128), "unspecified", NEVER},
	{V6(0, 0, 0, 0, 0, 0, 1, 128), "loopback", ON_REQUEST},
	{V6(0, 0, 0, 0, 0, 0, 0, 96), "IPv4-compatible", NEVER},
	{V6(0x0064, 0xff9b, 0, 0, 0, 0, 0, 96), "NAT64", NEVER},
	{V6(0x0064, 0xff9b, 1, 0, 0, 0, 0, 48), "NAT64", NEVER},
	{V6(0x0100, 0, 0, 0, 0, 0, 0, 64), "discard", NEVER},
	{V6(0x2001, 0, 0, 0, 0, 0, 0, 32), "Teredo", NEVER},
	{V6(0x2001, 2, 0, 0, 0, 0, 0, 48), "benchmarking", ON_REQUEST},
	{V6(0x2001, 0, 0, 0, 0, 0, 0, 23), "reserved", NEVER},
	{V6(0x2001, 0x0db8, 0, 0, 0, 0, 0, 32), "documentation", ON_REQUEST},
	{V6(0x2002, 0, 0, 0, 0, 0, 0, 16), "6to4", NEVER},
	{V6(0x3fff, 0, 0, 0, 0, 0, 0, 20), "documentation", ON_REQUEST},
	{V6(0xfc00, 0, 0, 0, 0, 0, 0, 7), "unique-local", ON_REQUEST},
	{V6(0xfe80, 0, 0, 0, 0, 0, 0, 10), "link-local", NEVER},
	{V6(0xfec0, 0, 0, 0, 0, 0, 0, 10), "site-local", NEVER},
	{V6(0xff00, 0, 0, 0, 0, 0, 0, 8), "multicast", NEVER},
};

/* What is neither here nor above has not been assigned. */
static const struct cidr assigned[] = {
	V4(0, 0, 0, 0, 0),
	V6(0x2000, 0, 0, 0, 0, 0, 0, 3),
};
static const struct row unassigned = {.word = "reserved", .kind = NEVER};

int address_from(const struct sockaddr *sa, struct in6_addr *ret)
{
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)sa;

		*ret = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
		memcpy(ret->s6_addr + 12, &in->sin_addr, sizeof(in->sin_addr));
		return 0;
	}
	if (sa->sa_family == AF_INET6) {
		*ret = ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
		return 0;
	}
	return -EAFNOSUPPORT;
}

int address_parse(const char *text, size_t len, struct in6_addr *ret)
{
	char copy[INET6_ADDRSTRLEN];
	struct in6_addr v6;
	struct sockaddr_in v4 = {.sin_family = AF_INET};

	/* inet_pton() would stop at a NUL. Its IPv4 form is the strict one, unlike inet_aton(). */
	if (len == 0 || len >= sizeof(copy) || memchr(text, '\0', len))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (inet_pton(AF_INET, copy, &v4.sin_addr) == 1)
		return address_from((const struct sockaddr *)(const void *)&v4, ret);
	if (inet_pton(AF_INET6, copy, &v6) != 1 || IN6_IS_ADDR_V4MAPPED(&v6))
		return -EINVAL;
	*ret = v6;
	return 0;
}

const struct cidr *address_range(size_t i, bool *ret_never)
{
	if (i >= ARRAY_SIZE(rows))
		return NULL;
	*ret_never = rows[i].kind == NEVER;
	return &rows[i].range;
}

/* NULL: public. */
static const struct row *find_row(const struct in6_addr *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (cidr_contains(&rows[i].range, a))
			return &rows[i];
	for (size_t i = 0; i < ARRAY_SIZE(assigned); i++)
		if (cidr_contains(&assigned[i], a))
			return NULL;
	return &unassigned;
}

const char *address_refusal(const struct in6_addr *a)
{
	const struct row *row = find_row(a);

	return row ? row->word : NULL;
}

static bool is_within(const struct cidr *inner, const struct cidr *outer)
{
	return inner->bits >= outer->bits && cidr_contains(outer, &inner->base);
}

bool address_opened_by(const struct in6_addr *a, const struct cidr *c)
{
	const struct row *row = find_row(a);

	return row && row->kind == ON_REQUEST && is_within(c, &row->range) && cidr_contains(c, a);
}

const char *cidr_refusal(const struct cidr *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (is_within(c, &rows[i].range))
			return rows[i].kind == NEVER ? rows[i].word : NULL;
	return NULL;
}

/* The bit is one of the prefix. */
static unsigned char byte_mask(unsigned bits, size_t byte)
{
	if (bits >= 8 * (byte + 1))
		return 0xff;
	return bits <= 8 * byte ? 0 : (unsigned char)(0xff00U >> (bits - 8 * byte));
}

static bool is_v4(const struct cidr *c)
{
	return c->bits >= V4_BITS && IN6_IS_ADDR_V4MAPPED(&c->base);
}

bool cidr_contains(const struct cidr *c, const struct in6_addr *a)
{
	if (is_v4(c) != (bool)IN6_IS_ADDR_V4MAPPED(a))
		return false;
	for (size_t i = 0; i < sizeof(a->s6_addr); i++)
		if ((c->base.s6_addr[i] ^ a->s6_addr[i]) & byte_mask(c->bits, i))
			return false;
	return true;
}

static int parse_bits(const char *text, unsigned max, unsigned *ret_bits)
{
	uint64_t bits;

	if (parse_u64(text, &bits) < 0 || bits > max || (text[0] == '0' && text[1] != '\0'))
		return -EINVAL;
	*ret_bits = (unsigned)bits;
	return 0;
}

int cidr_parse(const char *text, struct cidr *ret, struct error *err)
{
	size_t len = strcspn(text, "/");
	struct cidr c;
	unsigned max, bits;

	if (address_parse(text, len, &c.base) < 0)
		return error_set(err, ERR_INVALID, 0,
		                 "not an IPv4 or IPv6 address (or an IPv4-mapped one)");
	max = IN6_IS_ADDR_V4MAPPED(&c.base) ? 32 : 128;
	bits = max;
	if (text[len] == '/' && parse_bits(text + len + 1, max, &bits) < 0)
		return error_set(err, ERR_INVALID, 0,
		                 "the length of the prefix is not a number up to %u", max);
	c.bits = 128 - max + bits;
	for (size_t i = 0; i < sizeof(c.base.s6_addr); i++)
		if (c.base.s6_addr[i] & ~byte_mask(c.bits, i) & 0xff)
			return error_set(err, ERR_INVALID, 0,
			                 "the address has bits beyond the prefix of %u", bits);
	*ret = c;
	return 0;
}
