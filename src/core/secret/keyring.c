/* SPDX-License-Identifier: Apache-2.0 */
#include "core/secret/keyring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"

#define KEY_LEN   crypto_aead_xchacha20poly1305_ietf_KEYBYTES
#define NONCE_LEN crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_LEN   crypto_aead_xchacha20poly1305_ietf_ABYTES
#define LINE_LEN  (2 * KEY_LEN)
#define FILE_NEW  KEYRING_FILE ".new"
#define FILE_MODE 0600
#define FILE_MAX  (KEYRING_MAX * (LINE_LEN + 1))
#define LABEL_MAX 256

static_assert(KEYRING_MORE == NONCE_LEN + TAG_LEN, "a sealed value is so much longer");

struct key {
	uint8_t bytes[KEY_LEN];
	char name[KEYRING_NAME_LEN];
};

struct keyring {
	struct key *keys; /* of sodium_malloc */
	size_t count;
	char *dir; /* of a file that is ours; NULL: none */
};

struct keyring *keyring_new(void)
{
	struct keyring *k = NEW(struct keyring);

	k->keys = sodium_malloc(KEYRING_MAX * sizeof(*k->keys));
	assert(k->keys);
	return k;
}

void keyring_free(struct keyring *k)
{
	if (!k)
		return;
	sodium_free(k->keys); /* wipes */
	free(k->dir);
	free(k);
}

static void name_key(struct key *key)
{
	uint8_t hash[crypto_generichash_BYTES_MIN];

	/* Cannot fail for these lengths. */
	(void)crypto_generichash(hash, sizeof(hash), key->bytes, sizeof(key->bytes), NULL, 0);
	(void)sodium_bin2hex(key->name, sizeof(key->name), hash, KEYRING_NAME_LEN / 2);
}

void keyring_make(struct keyring *k)
{
	struct key *key = &k->keys[k->count++];

	assert(k->count == 1);
	randombytes_buf(key->bytes, sizeof(key->bytes));
	name_key(key);
}

static int parse_line(struct keyring *k, const char *line, size_t len)
{
	struct key *key = &k->keys[k->count];
	size_t bytes = 0;

	if (k->count == KEYRING_MAX || len != LINE_LEN ||
	    sodium_hex2bin(key->bytes, sizeof(key->bytes), line, len, NULL, &bytes, NULL) < 0 ||
	    bytes != KEY_LEN)
		return -EINVAL;
	name_key(key);
	k->count++;
	return 0;
}

static int parse_keys(struct keyring *k, const struct buf *text, const char *path,
                      struct error *err)
{
	const char *at = text->data, *end = text->data + text->len;

	for (unsigned number = 1; at < end; number++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);

		if (parse_line(k, at, len) < 0)
			return error_set(err, ERR_CONFIG, 0,
			                 "%s:%u: a key is %d hexadecimal digits, and there are at "
			                 "most %d",
			                 path, number, (int)LINE_LEN, KEYRING_MAX);
		at += len + 1;
	}
	return k->count > 0 ? 0 : error_set(err, ERR_CONFIG, 0, "%s has no key", path);
}

static void wipe_buf(struct buf *b)
{
	if (b->data)
		sodium_memzero(b->data, b->cap);
	buf_done(b);
}

static int read_keys(struct keyring *k, int dir, const char *path, struct error *err)
{
	attr_cleanup(wipe_buf) struct buf text = BUF_INIT(FILE_MAX + 1);
	int r;

	/* All at once: growing would leave copies behind. */
	if (buf_reserve(&text, FILE_MAX + 1) < 0)
		return error_set(err, ERR_SYSTEM, ENOMEM, "read %s", path);
	r = file_read_at(dir, path, &text);
	if (r < 0)
		return error_set(err, ERR_CONFIG, -r, "read the key of secrets, %s", path);
	return parse_keys(k, &text, path, err);
}

int keyring_read(struct keyring *k, const char *path, struct error *err)
{
	return read_keys(k, AT_FDCWD, path, err);
}

/* The file replaces the former one at once. */
static int write_keys(const struct keyring *k, int dir, struct error *err)
{
	attr_cleanup(wipe_buf) struct buf text = BUF_INIT(FILE_MAX + 1);
	char line[LINE_LEN + 1];
	int r = buf_reserve(&text, FILE_MAX + 1);

	for (size_t i = 0; i < k->count && r >= 0; i++) {
		(void)sodium_bin2hex(line, sizeof(line), k->keys[i].bytes, KEY_LEN);
		line[LINE_LEN] = '\n';
		r = buf_add(&text, line, sizeof(line));
	}
	sodium_memzero(line, sizeof(line));
	if (r >= 0 && unlinkat(dir, FILE_NEW, 0) < 0 && errno != ENOENT)
		r = -errno;
	if (r >= 0)
		r = file_create_at(dir, FILE_NEW, FILE_MODE, text.data, text.len);
	return r < 0 ? error_set(err, ERR_SYSTEM, -r, "write " FILE_NEW) : 0;
}

static int replace_file(int dir, struct error *err)
{
	if (renameat(dir, FILE_NEW, dir, KEYRING_FILE) < 0 || fsync(dir) < 0)
		return error_set(err, ERR_SYSTEM, errno, "rename " FILE_NEW);
	return 0;
}

static int open_dir(const char *path, struct error *err)
{
	int dir = fd_open(path, O_RDONLY | O_DIRECTORY, 0);

	return dir < 0 ? error_set(err, ERR_CONFIG, -dir, "%s", path) : dir;
}

int keyring_open(struct keyring *k, const char *dir, struct error *err)
{
	cleanup_close int fd = open_dir(dir, err);

	if (fd < 0)
		return -1;
	k->dir = xstrdup(dir);
	if (faccessat(fd, KEYRING_FILE, F_OK, 0) == 0)
		return read_keys(k, fd, KEYRING_FILE, err);
	keyring_make(k);
	return write_keys(k, fd, err) < 0 ? -1 : replace_file(fd, err);
}

size_t keyring_count(const struct keyring *k)
{
	return k->count;
}

int keyring_settle(struct keyring *k, struct error *err)
{
	cleanup_close int dir = -1;

	if (k->count <= 1)
		return 0;
	sodium_memzero(&k->keys[1], (k->count - 1) * sizeof(*k->keys));
	k->count = 1;
	if (!k->dir)
		return 0;
	dir = open_dir(k->dir, err);
	return dir < 0 || write_keys(k, dir, err) < 0 ? -1 : replace_file(dir, err);
}

/* Root may do this for a daemon with another id. */
static int keep_owner(int dir, struct error *err)
{
	struct stat st;

	if (fstatat(dir, KEYRING_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchownat(dir, FILE_NEW, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return error_set(err, ERR_SYSTEM, errno, "keep the owner of " KEYRING_FILE);
	return 0;
}

int keyring_rotate(const char *dir, struct error *err)
{
	cleanup_close int fd = open_dir(dir, err);
	struct keyring *k = keyring_new();
	int r = fd < 0 ? -1 : read_keys(k, fd, KEYRING_FILE, err);

	if (r >= 0 && k->count == KEYRING_MAX)
		r = error_set(err, ERR_CONFLICT, 0,
		              "the key was rotated %d times without a restart of the daemon; "
		              "restart it first",
		              KEYRING_MAX - 1);
	if (r >= 0) {
		memmove(&k->keys[1], &k->keys[0], k->count * sizeof(*k->keys));
		randombytes_buf(k->keys[0].bytes, KEY_LEN);
		k->count++;
		r = write_keys(k, fd, err) < 0 || keep_owner(fd, err) < 0 ? -1
		                                                          : replace_file(fd, err);
	}
	keyring_free(k);
	return r;
}

const char *keyring_name(const struct keyring *k)
{
	return k->keys[0].name;
}

/* Kinds have no slash, tenants and names neither. Return: the length. */
static unsigned long long print_label(const struct keyring_label *l, char ret_text[LABEL_MAX])
{
	int n = snprintf(ret_text, LABEL_MAX, "%s/%s/%s", l->kind, l->tenant, l->name);

	assert(n > 0 && n < LABEL_MAX);
	return (unsigned long long)n;
}

int keyring_seal(const struct keyring *k, const struct keyring_label *label, const void *data,
                 size_t len, struct buf *to)
{
	char text[LABEL_MAX];
	unsigned long long text_len = print_label(label, text), sealed_len = 0;
	uint8_t *nonce;
	int r = buf_reserve(to, len + KEYRING_MORE);

	if (r < 0)
		return r;
	nonce = (uint8_t *)to->data + to->len;
	randombytes_buf(nonce, NONCE_LEN);
	/* Cannot fail. */
	(void)crypto_aead_xchacha20poly1305_ietf_encrypt(nonce + NONCE_LEN, &sealed_len, data, len,
	                                                 (const uint8_t *)text, text_len, NULL,
	                                                 nonce, k->keys[0].bytes);
	to->len += NONCE_LEN + (size_t)sealed_len;
	return 0;
}

int keyring_unseal(const struct keyring *k, const char *name, const struct keyring_label *label,
                   const struct buf *sealed, struct buf *to)
{
	const uint8_t *nonce = (const uint8_t *)sealed->data;
	char text[LABEL_MAX];
	unsigned long long text_len = print_label(label, text), plain_len = 0;
	const struct key *key = NULL;

	for (size_t i = 0; i < k->count; i++)
		if (str_equal(k->keys[i].name, name))
			key = &k->keys[i];
	if (!key)
		return -ENOKEY;
	if (sealed->len < KEYRING_MORE)
		return -EBADMSG;
	if (buf_reserve(to, sealed->len - KEYRING_MORE + 1) < 0)
		return -ENOBUFS;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(
		    (uint8_t *)to->data + to->len, &plain_len, NULL, nonce + NONCE_LEN,
		    sealed->len - NONCE_LEN, (const uint8_t *)text, text_len, nonce,
		    key->bytes) < 0)
		return -EBADMSG;
	to->len += (size_t)plain_len;
	return 0;
}
