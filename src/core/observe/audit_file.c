/* SPDX-License-Identifier: Apache-2.0 */
#include "core/observe/audit_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"

/*
 * Lines are written as they arrive and settled periodically: fdatasync, then the head. So the head
 * never refers to a line that is not on disk: a log shorter than its head was cut. After a crash a
 * log may be longer.
 *
 * A failed write is truncated before anything else is written: no file has half a line in the
 * middle, and the lines are written again with the same numbers. A failed settle truncates all
 * lines since the last one: what the kernel shows of them need not be on disk, and it reports the
 * error only once.
 */

#define FILE_MODE   0600
#define HEAD_SUFFIX ".head"
#define SUFFIX_LEN  20 /* of a sequence number */
#define BATCH_MAX   (64u << 20)
#define NAME_LEN    256

static int open_file(const struct audit_file *f, const char *suffix, int flags)
{
	char name[NAME_LEN];
	int r = str_format(name, sizeof(name), "%s%s", f->name, suffix);
	cleanup_close int fd = -1;

	if (r < 0)
		return r;
	/* A planted link of either kind would redirect our writes. */
	fd = fd_open_at(f->dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | flags, FILE_MODE);
	if (fd >= 0 && !file_is_sole(fd))
		return -EMLINK;
	return TAKE_FD(fd);
}

static int move_away(const struct audit_file *f, const char *suffix)
{
	char name[NAME_LEN];
	int r = str_format(name, sizeof(name), "%s.%s", f->name, suffix);

	if (r < 0)
		return r;
	return renameat(f->dir, f->name, f->dir, name) < 0 ? -errno : 0;
}

/* Count rotated files and find the oldest. */
static size_t count_full(const struct audit_file *f, char ret_oldest[NAME_LEN])
{
	int fd = fd_open_at(f->dir, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	size_t count = 0, len = strlen(f->name);

	ret_oldest[0] = '\0';
	if (!dir) {
		fd_close(fd);
		return 0;
	}
	while ((entry = readdir(dir))) {
		const char *suffix = entry->d_name + len + 1;

		if (strncmp(entry->d_name, f->name, len) != 0 || entry->d_name[len] != '.' ||
		    strspn(suffix, "0123456789") != SUFFIX_LEN || suffix[SUFFIX_LEN])
			continue;
		count++;
		if (!ret_oldest[0] || strcmp(entry->d_name, ret_oldest) < 0)
			(void)!str_copy(ret_oldest, NAME_LEN, entry->d_name);
	}
	(void)closedir(dir);
	return count;
}

static int rotate_file(struct audit_file *f)
{
	char number[SUFFIX_LEN + 1], oldest[NAME_LEN];
	int fd, r;

	(void)snprintf(number, sizeof(number), "%020" PRIu64, f->head.seq);
	r = move_away(f, number);
	/* Moved by an earlier attempt that could not create the next file. */
	if (r < 0 && r != -ENOENT)
		return r;
	fd = open_file(f, "", O_CREAT | O_EXCL | O_APPEND);
	if (fd < 0)
		return fd;
	fd_close(f->fd);
	f->fd = fd;
	f->size = f->settled_size = 0;
	while (count_full(f, oldest) > f->keep)
		if (unlinkat(f->dir, oldest, 0) < 0)
			break; /* the next rotation retries */
	return fsync(f->dir) < 0 ? -errno : 0;
}

/* Return: 0 or a negative errno with @head unchanged. */
static int chain_lines(struct chain_head *head, const char *data, size_t len, struct buf *b)
{
	struct chain_head next = *head;

	while (len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t line = end ? (size_t)(end - data) : len;
		int r = chain_add(&next, data, line, b);

		if (r < 0)
			return r;
		data += line + (end != NULL);
		len -= line + (end != NULL);
	}
	*head = next;
	return 0;
}

/* Truncate to @size. Until that succeeds nothing else is written. */
static int take_back(struct audit_file *f, uint64_t size)
{
	int r = ftruncate(f->fd, (off_t)size) < 0 ? -errno : 0;

	f->size = size;
	f->is_longer = r < 0;
	return r;
}

static int append_lines(struct audit_file *f, const struct buf *b)
{
	int r = f->is_longer ? take_back(f, f->size) : 0;

	if (r == 0)
		r = fd_write_all(f->fd, b->data, b->len);
	if (r < 0) {
		(void)!take_back(f, f->size);
		return r;
	}
	f->size += b->len;
	return 0;
}

/* The rollback point. */
static void note_settled(struct audit_file *f)
{
	f->settled_head = f->head;
	f->settled_size = f->size;
}

int audit_file_write(struct audit_file *f, const char *data, size_t len, size_t *ret_taken)
{
	cleanup_buf struct buf b = BUF_INIT(BATCH_MAX);
	struct chain_head next = f->head;
	int r = 0;

	*ret_taken = 0;
	/* Not while a settle may roll back lines. */
	if (f->size >= f->max_bytes && f->size == f->settled_size)
		r = rotate_file(f);
	if (r == 0)
		r = chain_lines(&next, data, len, &b);
	if (r == 0)
		r = append_lines(f, &b);
	if (r < 0)
		return r;
	f->head = next;
	*ret_taken = len;
	return 0;
}

int audit_file_settle(struct audit_file *f, bool *ret_undone)
{
	char text[CHAIN_HEAD_LEN + 1];
	ssize_t n;

	*ret_undone = fdatasync(f->fd) < 0;
	if (*ret_undone) {
		int r = -errno;

		(void)!take_back(f, f->settled_size);
		f->head = f->settled_head;
		return r;
	}
	note_settled(f);
	chain_head_print(&f->head, text);
	n = pwrite(f->head_fd, text, CHAIN_HEAD_LEN, 0);
	if (n != CHAIN_HEAD_LEN)
		return n < 0 ? -errno : -ENOSPC;
	return fdatasync(f->head_fd) < 0 ? -errno : 0;
}

/* An empty file is the first, or a crash followed a rotation. */
static bool can_be_empty(const struct audit_file *f, const struct chain_head *head)
{
	char name[NAME_LEN];
	struct stat st;

	return head->seq == 0 ||
	       (str_format(name, sizeof(name), "%s.%020" PRIu64, f->name, head->seq) >= 0 &&
	        fstatat(f->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
}

static int verify_file(struct audit_file *f, struct chain_verdict *v, struct error *err)
{
	struct chain_head head = {0};
	char text[CHAIN_HEAD_LEN + 1];
	ssize_t n = pread(f->head_fd, text, sizeof(text), 0);
	int r;

	if (n < 0 || (n > 0 && chain_head_parse(text, (size_t)n, &head) < 0)) {
		v->fault = CHAIN_BAD_HEAD;
		return 0;
	}
	v->watch_seq[0] = head.seq;
	r = chain_verify_fd(f->fd, v);
	if (r < 0)
		return error_set(err, ERR_CONFIG, -r, "read the audit log %s", f->path);
	if (v->records == 0) {
		v->head = head;
		if ((v->fault == CHAIN_FINE || v->fault == CHAIN_TORN) && !can_be_empty(f, &head))
			v->fault = CHAIN_CUT;
		return 0;
	}
	/* The very first lines may precede their head. */
	if (n == 0 && v->first_seq != 1)
		v->fault = CHAIN_BAD_HEAD;
	else
		chain_verify_head(&head, v);
	if (head.seq > v->head.seq)
		v->head = head;
	return 0;
}

static int set_aside(struct audit_file *f, const struct chain_verdict *v, struct audit_found *found,
                     struct error *err)
{
	int r;

	(void)snprintf(found->aside, sizeof(found->aside), "damaged-%" PRIu64, clock_real_ms());
	found->damage = v->fault;
	found->bad_line = v->bad_line;
	r = move_away(f, found->aside);
	if (r < 0)
		return error_set(err, ERR_CONFIG, -r, "set %s aside", f->path);
	fd_close(f->fd);
	f->fd = open_file(f, "", O_CREAT | O_EXCL | O_APPEND);
	if (f->fd < 0)
		return error_set(err, ERR_CONFIG, -f->fd, "make %s", f->path);
	return 0;
}

static int refuse_damaged(const struct audit_file *f, const struct chain_verdict *v,
                          struct error *err)
{
	return error_set(err, ERR_CONFIG, 0,
	                 "the audit log %s is damaged (line %" PRIu64 ": %s) and audit.required is "
	                 "set: run 'millibox audit verify', move the files elsewhere, "
	                 "and start again",
	                 f->path, v->bad_line, chain_fault_text(v->fault));
}

static int accept_verdict(struct audit_file *f, bool strict, const struct chain_verdict *v,
                          struct audit_found *found, struct error *err)
{
	struct stat st;

	f->head = v->head;
	if (v->fault == CHAIN_TORN) {
		if (fstat(f->fd, &st) < 0 || ftruncate(f->fd, (off_t)v->good_bytes) < 0)
			return error_set(err, ERR_CONFIG, errno, "repair %s", f->path);
		found->torn_bytes = (uint64_t)st.st_size - v->good_bytes;
	} else if (v->fault != CHAIN_FINE) {
		if (strict)
			return refuse_damaged(f, v, err);
		return set_aside(f, v, found, err);
	}
	f->size = v->good_bytes;
	return 0;
}

static int open_files(struct audit_file *f, struct error *err)
{
	cleanup_free char *copy = xstrdup(f->path);

	f->folder = xstrdup(dirname(copy));
	f->name = strrchr(f->path, '/') ? strrchr(f->path, '/') + 1 : f->path;
	f->dir = fd_open(f->folder, O_RDONLY | O_DIRECTORY, 0);
	if (f->dir < 0)
		return error_set(err, ERR_CONFIG, -f->dir, "open folder %s of the audit log",
		                 f->folder);
	f->fd = open_file(f, "", O_CREAT | O_APPEND);
	f->head_fd = open_file(f, HEAD_SUFFIX, O_CREAT);
	if (f->fd < 0 || f->head_fd < 0)
		return error_set(err, ERR_CONFIG, f->fd < 0 ? -f->fd : -f->head_fd,
		                 "open the audit log %s", f->path);
	return 0;
}

int audit_file_open(struct audit_file *f, bool strict, struct audit_found *ret_found,
                    struct error *err)
{
	struct chain_verdict verdict = {0};

	f->dir = f->fd = f->head_fd = -1;
	if (open_files(f, err) < 0 || verify_file(f, &verdict, err) < 0)
		return -1;
	if (accept_verdict(f, strict, &verdict, ret_found, err) < 0)
		return -1;
	/* Lines of a killed daemon may be in memory only. */
	if (fdatasync(f->fd) < 0 && strict)
		return error_set(err, ERR_CONFIG, errno, "sync the audit log %s", f->path);
	note_settled(f);
	return 0;
}

static int compare_anchor(struct audit_file *f, const struct chain_head *anchor,
                          struct chain_verdict *verdict, struct error *err)
{
	int r;

	if (anchor->seq > f->head.seq) {
		verdict->fault = CHAIN_CUT;
		return 0;
	}
	verdict->watch_seq[0] = anchor->seq;
	r = chain_verify_fd(f->fd, verdict);
	if (r < 0)
		return error_set(err, ERR_CONFIG, -r, "read the audit log %s", f->path);
	/* If the anchor is in a rotated file, the first line here chains to it. */
	if (verdict->records > 0 && anchor->seq >= verdict->first_seq)
		chain_verify_head(anchor, verdict);
	return 0;
}

static int hold_to(struct audit_file *f, bool strict, const struct chain_head *anchor,
                   struct audit_found *found, struct error *err)
{
	struct chain_verdict verdict = {0};

	/* Already set aside: continue after the highest number known. */
	if (found->damage) {
		if (anchor->seq > f->head.seq)
			f->head = *anchor;
		return 0;
	}
	if (anchor->seq == f->head.seq) {
		if (memcmp(anchor->hash, f->head.hash, CHAIN_HASH_LEN) != 0)
			verdict.fault = CHAIN_BAD_HEAD;
	} else if (compare_anchor(f, anchor, &verdict, err) < 0) {
		return -1;
	}
	if (verdict.fault == CHAIN_FINE)
		return 0;
	if (strict)
		return refuse_damaged(f, &verdict, err);
	if (anchor->seq > f->head.seq)
		f->head = *anchor;
	f->size = 0;
	return set_aside(f, &verdict, found, err);
}

int audit_file_anchor(struct audit_file *f, bool strict, const struct chain_head *anchor,
                      struct audit_found *found, struct error *err)
{
	if (hold_to(f, strict, anchor, found, err) < 0)
		return -1;
	note_settled(f);
	return 0;
}

void audit_file_close(struct audit_file *f)
{
	fd_close(f->dir);
	fd_close(f->fd);
	fd_close(f->head_fd);
	free(f->path);
	free(f->folder);
}
