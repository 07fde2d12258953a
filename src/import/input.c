/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"

/*
 * The archive may be a pipe. So its beginning is read ahead, looked at, and read again by who needs
 * it. A zstd block must be complete to be read, and has up to 128 KiB.
 */

#define AHEAD   (256u << 10)
#define CHUNK   65536u
#define ENTRIES 8

struct input {
	int fd;
	size_t len, pos; /* of @data */
	char data[AHEAD];
	char chunk[CHUNK];
};

struct input *input_new(int fd, struct error *err)
{
	struct input *in = NEW(struct input);
	ssize_t n;

	in->fd = fd;
	n = fd_read_all(fd, in->data, sizeof(in->data));
	if (n < 0) {
		(void)error_set(err, ERR_UNAVAILABLE, (int)-n, "read the archive");
		free(in);
		return NULL;
	}
	in->len = (size_t)n;
	return in;
}

void input_free(struct input *in)
{
	free(in);
}

static la_ssize_t read_input(struct archive *a, void *ctx, const void **ret_data)
{
	struct input *in = ctx;
	ssize_t n;

	if (in->pos < in->len) {
		*ret_data = in->data + in->pos;
		n = (ssize_t)(in->len - in->pos);
		in->pos = in->len;
		return n;
	}
	*ret_data = in->chunk;
	do
		n = read(in->fd, in->chunk, sizeof(in->chunk));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		archive_set_error(a, errno, "read the archive");
	return n;
}

int input_open(struct input *in, struct archive *a)
{
	return archive_read_open(a, in, NULL, read_input, NULL);
}

/* Directories and files at the top of a root; no image archive has them. */
static bool is_of_root(const char *name)
{
	static const char *const names[] = {
		"bin",    "boot",  "dev", "etc", "home", "lib",  "lib32",      "lib64",
		"libx32", "media", "mnt", "opt", "proc", "root", "run",        "sbin",
		"srv",    "sys",   "tmp", "usr", "var",  "nix",  ".dockerenv",
	};
	size_t len = strcspn(name, "/");

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
			return true;
	return false;
}

bool input_is_root(const struct input *in)
{
	struct archive *a = archive_read_new();
	struct archive_entry *entry;
	struct error ignored = {0};
	bool found = false;

	(void)archive_read_support_format_tar(a);
	(void)archive_read_support_filter_gzip(a);
	(void)archive_read_support_filter_zstd(a);
	/* The first name decides; "./" has none. */
	if (archive_read_open_memory(a, in->data, in->len) == ARCHIVE_OK)
		for (int i = 0; i < ENTRIES; i++) {
			int r = archive_read_next_header(a, &entry);
			const char *given, *name;

			if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
				break;
			given = archive_entry_pathname(entry);
			name = given ? tree_check(given, &ignored) : NULL;
			found = name && is_of_root(name);
			if (!name || (*name && !str_equal(name, ".")))
				break;
		}
	(void)archive_read_free(a);
	return found;
}
