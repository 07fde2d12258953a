/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of any bytes onto a root in a scratch directory: whatever they contain, nothing beside the
 * root changes, the root has only files, directories and links without special bits, within the
 * limits, and all of it can be removed.
 *
 * Checksums of headers are hard to guess. So only an input that starts with 'R' is an archive as it
 * is; others are a list of entries from which archives are built: type, mode, name, target, size.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "fuzz.h"
#include "import/import.h"

#define BLOCK    512
#define ENTRIES  64
#define BYTES    (64u << 10)
#define TAR_MAX  (1u << 20)
#define SECRET   "untouched"
#define NEW_PART 0xff /* as a type: the next layer begins */

static char scratch[64];
static int outside = -1;
static uint64_t seen_bytes;

static void end_scratch(void)
{
	(void)!tree_remove(outside, "victim");
	(void)!tree_remove(outside, "root");
	(void)rmdir(scratch);
}

/* The files beside the root must not change. */
static void begin_scratch(void)
{
	const char *dir = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

	(void)snprintf(scratch, sizeof(scratch), "%s/fuzz-layer-XXXXXX", dir);
	require(setlocale(LC_CTYPE, "C.UTF-8"));
	require(mkdtemp(scratch));
	outside = fd_open(scratch, O_RDONLY | O_DIRECTORY, 0);
	require(outside >= 0);
	{
		cleanup_close int fd = fd_open_at(outside, "victim", O_WRONLY | O_CREAT, 0644);

		require(fd >= 0 && fd_write_all(fd, SECRET, strlen(SECRET)) == 0);
	}
	(void)atexit(end_scratch);
}

/* Nothing was added beside the root. */
static void check_names(void)
{
	DIR *dir = opendir(scratch);
	const struct dirent *entry;

	require(dir);
	while ((entry = readdir(dir)))
		require(entry->d_name[0] == '.' || strcmp(entry->d_name, "root") == 0 ||
		        strcmp(entry->d_name, "victim") == 0);
	(void)closedir(dir);
}

static void check_outside(void)
{
	char text[32] = "";
	cleanup_close int fd = fd_open_at(outside, "victim", O_RDONLY | O_NOFOLLOW, 0);
	struct stat st;

	require(fd >= 0 && fd_read_all(fd, text, sizeof(text) - 1) == (ssize_t)strlen(SECRET));
	require(strcmp(text, SECRET) == 0);
	require(fstat(fd, &st) == 0 && st.st_nlink == 1 && (st.st_mode & 07777) == 0644);
	check_names();
}

static int check_inside(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)type;
	(void)ftw;
	require(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode));
	require((st->st_mode & 07000) == 0);
	if (S_ISREG(st->st_mode))
		seen_bytes += (uint64_t)st->st_size / st->st_nlink;
	return 0;
}

struct source {
	const char *data;
	size_t len, step;
};

static ptrdiff_t read_source(void *ctx, void *data, size_t size)
{
	struct source *s = ctx;
	size_t n = size < s->step ? size : s->step;

	n = n < s->len ? n : s->len;
	memcpy(data, s->data, n);
	s->data += n;
	s->len -= n;
	return (ptrdiff_t)n;
}

static void put_octal(char *field, size_t size, unsigned long value)
{
	(void)snprintf(field, size, "%0*lo", (int)size - 1, value);
}

/* A header as it should be, whatever its fields are. */
static void put_header(struct buf *tar, char type, unsigned mode, const char *name,
                       const char *target, size_t size)
{
	char block[BLOCK] = {0};
	unsigned long sum = 0;

	(void)snprintf(block, 100, "%s", name);
	put_octal(block + 100, 8, mode);
	put_octal(block + 108, 8, 0);
	put_octal(block + 116, 8, 0);
	put_octal(block + 124, 12, size);
	put_octal(block + 136, 12, 0);
	memset(block + 148, ' ', 8);
	block[156] = type;
	(void)snprintf(block + 157, 100, "%s", target);
	memcpy(block + 257, "ustar\00000", 8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += (unsigned char)block[i];
	put_octal(block + 148, 7, sum);
	(void)!buf_add(tar, block, BLOCK);
}

struct input {
	const uint8_t *data;
	size_t len;
};

static uint8_t take(struct input *in)
{
	if (in->len == 0)
		return 0;
	in->len--;
	return *in->data++;
}

static void take_text(struct input *in, char *text, size_t size)
{
	size_t len = take(in) % size;

	len = len < in->len ? len : in->len;
	fuzz_text(in->data, len, text, size);
	in->data += len;
	in->len -= len;
}

/* Return: whether there is one more. */
static bool build_layer(struct input *in, struct buf *tar)
{
	static const char types[] = "0123456LKxg7S";
	static const char zeros[BLOCK];
	char name[100], target[100];

	while (in->len > 0) {
		uint8_t kind = take(in);
		unsigned mode = (unsigned)take(in) << 4 | kind >> 4;
		size_t size;

		if (kind == NEW_PART)
			return true;
		take_text(in, name, sizeof(name));
		take_text(in, target, sizeof(target));
		size = (size_t)take(in) * 37;
		put_header(tar, types[kind % (sizeof(types) - 1)], mode, name, target, size);
		/* The announced content follows, with a few exceptions. */
		for (size_t n = 0; n < size && kind % 16 != 15; n += BLOCK)
			(void)!buf_add(tar, zeros, BLOCK);
	}
	return false;
}

static int apply(int root, struct import_counts *counts, const char *data, size_t len)
{
	static const struct import_limits limits = {
		.root_bytes = BYTES, .file_bytes = BYTES / 2, .entries = ENTRIES, .layers = 8};
	struct source source = {data, len, 4096};
	const struct layer layer = {root, &limits, counts, read_source, &source};
	struct error err = {0};
	int r = layer_apply(&layer, &err);

	require((r < 0) == (error_is_set(&err) != 0));
	require(r < 0 || counts->bytes <= limits.root_bytes);
	require(r < 0 || counts->entries <= limits.entries);
	return r;
}

static void apply_all(int root, struct import_counts *counts, const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	bool more = true;

	if (size > 0 && data[0] == 'R') {
		(void)apply(root, counts, (const char *)data + 1, size - 1);
		return;
	}
	while (more) {
		cleanup_buf struct buf tar = BUF_INIT(TAR_MAX);

		more = build_layer(&in, &tar);
		if (apply(root, counts, tar.data ? tar.data : "", tar.len) < 0)
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct import_counts counts = {.out = -1};
	char path[96];
	uint64_t bytes;

	if (outside < 0)
		begin_scratch();
	require(mkdirat(outside, "root", 0700) == 0);
	(void)umask(0);
	{
		cleanup_close int root = fd_open_at(outside, "root", O_RDONLY | O_DIRECTORY, 0);

		require(root >= 0);
		apply_all(root, &counts, data, size);
		require(tree_measure(root, &bytes) == 0);
	}
	check_outside();
	seen_bytes = 0;
	(void)snprintf(path, sizeof(path), "%s/root", scratch);
	require(nftw(path, check_inside, 32, FTW_PHYS) == 0);
	require(seen_bytes <= counts.bytes);
	require(tree_remove(outside, "root") == 0);
	require(faccessat(outside, "root", F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT);
	return 0;
}
