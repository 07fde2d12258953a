/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OCTAL_SIZE_MAX 077777777777ULL /* eleven digits */
#define PARTS_MAX      32
#define PART_MAX       255

struct field {
	size_t off, len;
};

static const struct field NAME = {0, 100}, MODE = {100, 8}, UID = {108, 8}, GID = {116, 8},
			  SIZE = {124, 12}, MTIME = {136, 12}, SUM = {148, 8}, TYPE = {156, 1},
			  LINK = {157, 100}, MAGIC = {257, 6}, VERSION = {263, 2},
			  PREFIX = {345, 155};

static const struct {
	char type;
	enum tar_kind kind;
} kinds[] = {
	{'0', TAR_FILE},      {'\0', TAR_FILE},     {'7', TAR_FILE}, {'5', TAR_DIR},
	{'2', TAR_SYMLINK},   {'1', TAR_HARDLINK},  {'x', TAR_PAX},  {'g', TAR_PAX_ALL},
	{'L', TAR_LONG_NAME}, {'K', TAR_LONG_LINK},
};

size_t tar_padding(uint64_t size)
{
	return (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

static void put_octal(uint8_t *block, struct field f, uint64_t value)
{
	size_t at = f.off + f.len - 1;

	block[at] = '\0';
	while (at-- > f.off) {
		block[at] = (uint8_t)('0' + (value & 7));
		value >>= 3;
	}
}

static void put_text(uint8_t *block, struct field f, const char *text)
{
	size_t len = strlen(text);

	memcpy(block + f.off, text, len < f.len ? len : f.len);
}

static unsigned sum_of(const uint8_t *block)
{
	unsigned sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= SUM.off && i < SUM.off + SUM.len ? ' ' : block[i];
	return sum;
}

static void put_header(uint8_t *block, const struct tar_entry *e, char type, uint64_t size)
{
	memset(block, 0, TAR_BLOCK);
	put_text(block, NAME, e->name);
	put_text(block, LINK, e->link);
	put_octal(block, MODE, e->mode & 0777);
	put_octal(block, UID, e->owner);
	put_octal(block, GID, e->owner);
	put_octal(block, SIZE, size <= OCTAL_SIZE_MAX ? size : 0);
	put_octal(block, MTIME, e->mtime <= OCTAL_SIZE_MAX ? e->mtime : 0);
	block[TYPE.off] = (uint8_t)type;
	put_text(block, MAGIC, "ustar");
	put_text(block, VERSION, "00");
	put_octal(block, (struct field){SUM.off, SUM.len - 1}, sum_of(block));
	block[SUM.off + SUM.len - 1] = ' ';
}

static size_t digits(size_t n)
{
	size_t count = 1;

	for (; n >= 10; n /= 10)
		count++;
	return count;
}

/* "LEN key=value\n"; LEN includes itself. Return: the new end, or 0: no room. */
static size_t add_record(char *records, size_t at, const char *key, const char *value)
{
	size_t body = strlen(key) + strlen(value) + 3;
	size_t total = body + digits(body);

	if (digits(total) != digits(body))
		total++;
	if (total > TAR_EXTRA_MAX - at - 1)
		return 0;
	(void)snprintf(records + at, total + 1, "%zu %s=%s\n", total, key, value);
	return at + total;
}

static bool needs_pax(const struct tar_entry *e)
{
	return strlen(e->name) > NAME.len || strlen(e->link) > LINK.len || e->size > OCTAL_SIZE_MAX;
}

size_t tar_write(const struct tar_entry *e, uint8_t ret_blocks[TAR_HEADERS_MAX])
{
	static const char types[] = {
		[TAR_FILE] = '0', [TAR_DIR] = '5', [TAR_SYMLINK] = '2', [TAR_HARDLINK] = '1'};
	static const struct tar_entry pax = {
		.kind = TAR_PAX, .mode = 0644, .name = "././@PaxHeader"};
	char *records = (char *)ret_blocks + TAR_BLOCK;
	char size[24];
	size_t len = 0, used = 0;

	if (needs_pax(e)) {
		(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)e->size);
		len = add_record(records, 0, "path", e->name);
		if (len > 0 && e->link[0])
			len = add_record(records, len, "linkpath", e->link);
		if (len > 0)
			len = add_record(records, len, "size", size);
		if (len == 0)
			return 0;
		memset(records + len, 0, tar_padding(len));
		put_header(ret_blocks, &pax, 'x', len);
		used = TAR_BLOCK + len + tar_padding(len);
	}
	put_header(ret_blocks + used, e, types[e->kind], e->size);
	return used + TAR_BLOCK;
}

bool tar_is_end(const uint8_t block[TAR_BLOCK])
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

/* Octal digits within blanks and NULs, or GNU's binary form. Return: 0 or -EINVAL. */
static int get_number(const uint8_t *block, struct field f, uint64_t *ret_value)
{
	const uint8_t *p = block + f.off, *end = p + f.len;
	uint64_t value = 0;

	if (*p & 0x80) {
		value = *p++ & 0x3f; /* 0x40: negative */
		for (; p < end; value = value << 8 | *p++)
			if (value >> 55 || (block[f.off] & 0x40))
				return -EINVAL;
		*ret_value = value;
		return 0;
	}
	while (p < end && *p == ' ')
		p++;
	for (; p < end && *p >= '0' && *p <= '7'; p++)
		value = value << 3 | (uint64_t)(*p - '0');
	for (; p < end; p++)
		if (*p != ' ' && *p != '\0')
			return -EINVAL;
	*ret_value = value;
	return 0;
}

static size_t get_text(const uint8_t *block, struct field f, char *ret_text)
{
	size_t len = 0;

	while (len < f.len && block[f.off + len])
		len++;
	memcpy(ret_text, block + f.off, len);
	ret_text[len] = '\0';
	return len;
}

static void get_name(const uint8_t *block, struct tar_entry *e)
{
	bool posix = memcmp(block + MAGIC.off, "ustar\0", MAGIC.len) == 0;
	size_t len = posix ? get_text(block, PREFIX, e->name) : 0;

	if (len > 0)
		e->name[len++] = '/';
	(void)get_text(block, NAME, e->name + len);
	(void)get_text(block, LINK, e->link);
}

int tar_read(const uint8_t block[TAR_BLOCK], struct tar_entry *ret_entry)
{
	struct tar_entry *e = ret_entry;
	uint64_t mode = 0, sum = 0;

	if (get_number(block, SUM, &sum) < 0 || sum != sum_of(block) ||
	    get_number(block, SIZE, &e->size) < 0 || get_number(block, MODE, &mode) < 0 ||
	    get_number(block, MTIME, &e->mtime) < 0)
		return -EINVAL;
	e->mode = (uint32_t)(mode & 0777);
	e->kind = TAR_OTHER;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == (char)block[TYPE.off])
			e->kind = kinds[i].kind;
	get_name(block, e);
	/* A trailing slash: a directory in old archives. */
	if (e->kind == TAR_FILE && e->name[0] && e->name[strlen(e->name) - 1] == '/')
		e->kind = TAR_DIR;
	return 0;
}

static int take_text(const char *value, size_t len, char ret_text[TAR_NAME_MAX + 1])
{
	if (len > TAR_NAME_MAX)
		return -ENAMETOOLONG;
	/* It could be checked up to the NUL and used beyond it. */
	if (memchr(value, '\0', len))
		return -EINVAL;
	memcpy(ret_text, value, len);
	ret_text[len] = '\0';
	return 0;
}

static int take_digits(const char *value, size_t len, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (len == 0 || len > 18)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (value[i] < '0' || value[i] > '9')
			return -EINVAL;
		number = number * 10 + (uint64_t)(value[i] - '0');
	}
	*ret_number = number;
	return 0;
}

static bool is_key(const char *key, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(key, word, len) == 0;
}

static int take_record(const char *key, size_t key_len, const char *value, size_t len,
                       struct tar_entry *e)
{
	if (is_key(key, key_len, "path"))
		return take_text(value, len, e->name);
	if (is_key(key, key_len, "linkpath"))
		return take_text(value, len, e->link);
	if (is_key(key, key_len, "size"))
		return take_digits(value, len, &e->size);
	/* A sparse file's content is encoded. */
	if (key_len >= 10 && memcmp(key, "GNU.sparse", 10) == 0)
		return -EINVAL;
	return 0;
}

int tar_read_pax(const char *records, size_t len, struct tar_entry *entry)
{
	while (len > 0) {
		const char *space = memchr(records, ' ', len < 8 ? len : 8);
		const char *equals = NULL;
		uint64_t size = 0;
		int r = space ? take_digits(records, (size_t)(space - records), &size) : -EINVAL;

		if (r < 0 || size > len || size < (size_t)(space - records) + 4 ||
		    records[size - 1] != '\n')
			return -EINVAL;
		space++;
		equals = memchr(space, '=', (size_t)(records + size - space));
		if (!equals)
			return -EINVAL;
		r = take_record(space, (size_t)(equals - space), equals + 1,
		                (size_t)(records + size - 1 - (equals + 1)), entry);
		if (r < 0)
			return r;
		records += size;
		len -= (size_t)size;
	}
	return 0;
}

static bool is_dot(const char *part, size_t len)
{
	return len == 0 || (len == 1 && part[0] == '.');
}

static bool is_up(const char *part, size_t len)
{
	return len == 2 && part[0] == '.' && part[1] == '.';
}

int tar_clean_name(char *name)
{
	char *to = name;
	const char *from = name;
	unsigned parts = 0;

	if (name[0] == '/')
		return -EINVAL;
	while (*from) {
		size_t len = strcspn(from, "/");
		if (is_up(from, len) || len > PART_MAX)
			return -EINVAL;
		if (!is_dot(from, len)) {
			if (++parts > PARTS_MAX)
				return -EINVAL;
			if (to > name)
				*to++ = '/';
			memmove(to, from, len);
			to += len;
		}
		from += len + (from[len] == '/');
	}
	*to = '\0';
	return 0;
}

bool tar_link_stays(const char *name, const char *target)
{
	long depth = 0;

	if (target[0] == '/' || target[0] == '\0')
		return false;
	for (; *name; name++)
		depth += *name == '/';
	while (*target) {
		size_t len = strcspn(target, "/");
		if (is_up(target, len))
			depth--;
		else if (!is_dot(target, len))
			depth++;
		if (depth < 0)
			return false;
		target += len + (target[len] == '/');
	}
	return true;
}
