/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/tls_files.h"

#include "base/buf.h"
#include "base/fd.h"
#include "core/config/config.h"
#include "http/server.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM_MAX (1u << 20)

/* A reader of the key can impersonate the daemon; a writer can replace its identity. A group
 * with read access is the usual way to share it. */
#define KEY_MODE_BAD (S_IRWXO | S_IWGRP | S_IXGRP)

static int check_mode(int fd, const char *path, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(err, ERR_CONFIG, errno, "tls.key: stat %s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERR_CONFIG, 0, "tls.key: %s is not a regular file", path);
	if (st.st_mode & KEY_MODE_BAD)
		return error_set(err, ERR_CONFIG, 0,
		                 "tls.key: other users may access %s (mode %04o): chmod 0600 it",
		                 path, (unsigned)st.st_mode & 07777);
	return 0;
}

/* By descriptor: the file checked is the file read. */
static int read_all(int fd, struct buf *b)
{
	char piece[4096];
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = read(fd, piece, sizeof(piece))) > 0)
		r = buf_add(b, piece, (size_t)n);
	if (r == 0 && n < 0)
		r = -errno;
	explicit_bzero(piece, sizeof(piece));
	return r;
}

static int read_pem(const char *key, const char *path, int fd, char **ret_text, struct error *err)
{
	cleanup_buf struct buf b = BUF_INIT(PEM_MAX);
	size_t len;
	int r;

	if (fd < 0)
		return error_set(err, ERR_CONFIG, -fd, "%s: open %s", key, path);
	r = read_all(fd, &b);
	if (r < 0)
		return error_set(err, ERR_CONFIG, -r, "%s: read %s", key, path);
	if (b.len == 0 || memchr(b.data, '\0', b.len))
		return error_set(err, ERR_CONFIG, 0, "%s: %s is not a PEM file", key, path);
	*ret_text = buf_take(&b, &len);
	return 0;
}

void tls_files_open(const struct config *config, int ret_fds[TLS_FILES_COUNT])
{
	const char *const paths[] = {config->tls_cert, config->tls_key};

	for (size_t i = 0; i < TLS_FILES_COUNT; i++)
		ret_fds[i] = fd_open(paths[i], O_RDONLY | O_NONBLOCK, 0);
}

int tls_files_read(const struct config *config, int fds[TLS_FILES_COUNT],
                   struct tls_files *ret_files, struct error *err)
{
	struct tls_files files = {0};
	int r = read_pem("tls.cert", config->tls_cert, fds[0], &files.cert, err);

	if (r == 0 && fds[1] >= 0)
		r = check_mode(fds[1], config->tls_key, err);
	if (r == 0)
		r = read_pem("tls.key", config->tls_key, fds[1], &files.key, err);
	if (r == 0)
		r = http_tls_check(&(struct http_tls){files.cert, files.key}, err);
	for (size_t i = 0; i < TLS_FILES_COUNT; i++)
		fds[i] = fds[i] >= 0 ? fd_close(fds[i]) : -1;
	if (r < 0)
		tls_files_done(&files);
	else
		*ret_files = files;
	return r;
}

int tls_files_load(const struct config *config, struct tls_files *ret_files, struct error *err)
{
	int fds[TLS_FILES_COUNT];

	*ret_files = (struct tls_files){0};
	if (!config->tls_cert[0])
		return 0;
	tls_files_open(config, fds);
	return tls_files_read(config, fds, ret_files, err);
}

void tls_files_done(struct tls_files *files)
{
	if (files->key)
		explicit_bzero(files->key, strlen(files->key));
	free(files->key);
	free(files->cert);
	*files = (struct tls_files){0};
}
