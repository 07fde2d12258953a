/* SPDX-License-Identifier: Apache-2.0 */
#include "seal/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"

/* The file has the seed, from which the pair follows, in hex and a newline. */
#define SEED_HEX (2 * crypto_sign_SEEDBYTES)

/* Complete or not at all: a daemon that dies meanwhile leaves no half of a key. */
static int make_file(const char *dir, const char *name, struct error *err)
{
	unsigned char seed[crypto_sign_SEEDBYTES];
	char text[SEED_HEX + 2];
	cleanup_close int dir_fd = fd_open(dir, O_RDONLY | O_DIRECTORY, 0);
	cleanup_close int fd = -1;
	char draft[64];
	int r;

	(void)snprintf(draft, sizeof(draft), "%.40s.new", name);
	randombytes_buf(seed, sizeof(seed));
	(void)sodium_bin2hex(text, sizeof(text), seed, sizeof(seed));
	text[SEED_HEX] = '\n';
	text[SEED_HEX + 1] = '\0';
	if (dir_fd < 0)
		return error_set(err, ERR_CONFIG, -dir_fd, "open %s", dir);
	(void)unlinkat(dir_fd, draft, 0); /* of a daemon that died */
	fd = fd_open_at(dir_fd, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	r = fd < 0 ? fd : fd_write_all(fd, text, SEED_HEX + 1);
	if (r >= 0 &&
	    (fsync(fd) < 0 || renameat(dir_fd, draft, dir_fd, name) < 0 || fsync(dir_fd) < 0))
		r = -errno;
	sodium_memzero(seed, sizeof(seed));
	sodium_memzero(text, sizeof(text));
	return r < 0 ? error_set(err, ERR_CONFIG, -r, "write %s/%s", dir, name) : 0;
}

static int read_file(int fd, const char *path, struct seal_key *ret_key, struct error *err)
{
	unsigned char seed[crypto_sign_SEEDBYTES];
	char text[SEED_HEX + 2] = "";
	struct stat st = {0};
	size_t n = 0;
	bool ok;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 077))
		return error_set(err, ERR_CONFIG, 0,
		                 "%s must be a file of the daemon's own user with mode 0600", path);
	ok = fd_read_all(fd, text, sizeof(text) - 1) == SEED_HEX + 1 && text[SEED_HEX] == '\n' &&
	     sodium_hex2bin(seed, sizeof(seed), text, SEED_HEX, NULL, &n, NULL) == 0 &&
	     n == sizeof(seed);
	if (ok)
		(void)crypto_sign_seed_keypair(ret_key->public, ret_key->secret, seed);
	sodium_memzero(seed, sizeof(seed));
	sodium_memzero(text, sizeof(text));
	/* A new key would silently end the trust in the old one. */
	return ok ? 0
	          : error_set(err, ERR_CONFIG, 0,
	                      "%s is damaged: restore it, or remove it for a new key", path);
}

int seal_key_load(const char *dir, const char *name, struct seal_key *ret_key, struct error *err)
{
	cleanup_free char *path = dir ? xasprintf("%s/%s", dir, name) : NULL;
	cleanup_close int fd = -1;

	if (sodium_init() < 0)
		return error_set(err, ERR_SYSTEM, 0, "set up libsodium");
	if (!dir)
		return crypto_sign_keypair(ret_key->public, ret_key->secret);
	fd = fd_open(path, O_RDONLY | O_NOFOLLOW, 0);
	if (fd == -ENOENT) {
		if (make_file(dir, name, err) < 0)
			return -1;
		fd = fd_open(path, O_RDONLY | O_NOFOLLOW, 0);
	}
	if (fd < 0)
		return error_set(err, ERR_CONFIG, -fd, "open %s", path);
	return read_file(fd, path, ret_key, err);
}
