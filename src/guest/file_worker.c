/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/file_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"

#define DIR_MODE  0755
#define MODE_MASK 0777
#define NSEC      1000000000ULL
#define OUT_MAX   (2 * FRAME_MAX_LEN)
/* musl has neither the flag nor the call. */
#define NO_REPLACE 1u

static int copy_path(const struct wire_bytes *path, char ret_path[PUT_PATH_MAX + 1],
                     struct error *err)
{
	ret_path[0] = '\0';
	if (path->len == 0)
		return 0;
	if (put_check_path(path, err) < 0)
		return -1;
	memcpy(ret_path, path->data, path->len);
	ret_path[path->len] = '\0';
	return 0;
}

int file_worker_check_job(const struct msg_file_open *msg, struct file_job *ret_job,
                          struct error *err)
{
	*ret_job = (struct file_job){
		.op = (enum wire_file_op)msg->op,
		.flags = msg->flags,
		.offset = msg->offset,
		.length = msg->length,
		.mode = msg->mode & MODE_MASK,
		.limit = msg->limit,
	};
	if (copy_path(&msg->path, ret_job->path, err) < 0)
		return -1;
	return copy_path(&msg->to, ret_job->to, err);
}

int file_worker_error(struct error *err, int sys, const char *what, const char *path)
{
	static const struct {
		int sys;
		enum error_code code;
		const char *text; /* NULL: strerror */
	} codes[] = {
		{ENOENT, ERR_FILE_NOT_FOUND, NULL},
		{ENOSPC, ERR_DISK_FULL, "the disk of the box is full"},
		{EDQUOT, ERR_DISK_FULL, "the disk of the box is full"},
		{EFBIG, ERR_TOO_LARGE, "more bytes than allowed"},
		{ENOTDIR, ERR_INVALID, NULL},
		{EISDIR, ERR_INVALID, NULL},
		{ELOOP, ERR_INVALID, "a symbolic link that is not followed"},
		{EXDEV, ERR_INVALID, "points outside the workspace"},
		{EINVAL, ERR_INVALID, "not possible"},
		{ENXIO, ERR_INVALID, "not a regular file"},
		{ENAMETOOLONG, ERR_INVALID, NULL},
		{EACCES, ERR_DENIED, "file permissions in the box deny it"},
		{EPERM, ERR_DENIED, "file permissions in the box deny it"},
		{EEXIST, ERR_CONFLICT, "already exists"},
		{ENOTEMPTY, ERR_CONFLICT, "the directory is not empty"},
		{EBUSY, ERR_CONFLICT, "in use"},
		{EAGAIN, ERR_CONFLICT, "changes too fast to be removed"},
	};
	enum error_code code = ERR_BOX_FAILED;
	const char *text = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].sys == sys) {
			code = codes[i].code;
			text = codes[i].text;
		}
	return error_set(err, code, sys, "%s '%.100s': %s", what, path,
	                 text ? text : strerror(sys));
}

static int send_out(struct file_out *out, int r, struct error *err)
{
	if (r >= 0)
		r = fd_write_all(STDOUT_FILENO, out->b.data, out->b.len);
	buf_reset(&out->b);
	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "write to the agent") : 0;
}

static uint64_t time_ns(const struct timespec *t)
{
	return t->tv_sec < 0 ? 0 : (uint64_t)t->tv_sec * NSEC + (uint64_t)t->tv_nsec;
}

static enum wire_file_type type_of(mode_t mode)
{
	if (S_ISREG(mode))
		return WIRE_FILE_REGULAR;
	if (S_ISDIR(mode))
		return WIRE_FILE_DIRECTORY;
	return S_ISLNK(mode) ? WIRE_FILE_LINK : WIRE_FILE_OTHER;
}

int file_worker_send_entry(struct file_out *out, const struct file_found *found, struct error *err)
{
	const struct stat *st = found->st;
	const struct msg_file_entry msg = {
		.type = (uint8_t)type_of(st->st_mode),
		.path = wire_str(found->path),
		.size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
		.mtime_ns = time_ns(&st->st_mtim),
		.ctime_ns = time_ns(&st->st_ctim),
		.inode = st->st_ino,
		.mode = st->st_mode & 07777,
		.target = wire_str(found->target ? found->target : ""),
		.sha256 = {(const char *)found->sha256, found->sha256 ? 32 : 0},
	};

	out->done.entries++;
	return send_out(out, msg_file_entry_encode(&out->b, 1, &msg), err);
}

int file_worker_send_bytes(struct file_out *out, const void *data, size_t len, struct error *err)
{
	const struct msg_file_bytes msg = {.data = {data, (uint32_t)len}};

	out->done.bytes += len;
	return send_out(out, msg_file_bytes_encode(&out->b, 1, &msg), err);
}

static int early_end(struct error *err)
{
	return error_set(err, ERR_AGENT_LOST, 0, "the upload is incomplete");
}

/* The agent checked the frame. Return: 1, or -1 at an early EOF. */
static int read_frame(struct file_in *in, struct frame *ret_frame, struct error *err)
{
	for (;;) {
		int r = frame_parse(in->data + in->off, in->len - in->off, ret_frame);
		ssize_t n = 0;
		if (r > 0) {
			in->off += (size_t)r;
			return 1;
		}
		if (r < 0)
			return early_end(err);
		memmove(in->data, in->data + in->off, in->len - in->off);
		in->len -= in->off;
		in->off = 0;
		n = read(STDIN_FILENO, in->data + in->len, sizeof(in->data) - in->len);
		if (n <= 0)
			return early_end(err);
		in->len += (size_t)n;
	}
}

int file_worker_receive(struct file_in *in, struct wire_bytes *ret_piece, struct error *err)
{
	struct msg_file_data data;
	struct frame frame;

	if (in->ended)
		return 0;
	if (read_frame(in, &frame, err) < 0)
		return -1;
	if (msg_file_data_decode(&frame, &data) < 0) {
		in->ended = true; /* FILE_END: no other type is passed on */
		return 0;
	}
	*ret_piece = data.data;
	return 1;
}

void file_worker_temp_name(char ret_name[FILE_TEMP_LEN])
{
	uint64_t random[2] = {0, 0};

	/* Against collisions only: created with O_EXCL. */
	(void)!getrandom(random, sizeof(random), 0);
	(void)snprintf(ret_name, FILE_TEMP_LEN, ".millibox-%016llx.part",
	               (unsigned long long)(random[0] ^ random[1]));
}

int file_worker_open_dir(const char *path)
{
	return fd_open_inside(AT_FDCWD, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK,
	                      0);
}

/* Create, then enter by descriptor: no swapped-in link is followed. */
static int make_dirs(char *path)
{
	int dir = fd_open(".", O_PATH | O_DIRECTORY, 0);

	for (char *part = path, *slash = NULL; part && dir >= 0; part = slash) {
		int next = 0;
		slash = strchr(part, '/');
		if (slash)
			*slash++ = '\0';
		if (mkdirat(dir, part, DIR_MODE) < 0 && errno != EEXIST)
			next = -errno;
		else
			next = fd_open_beneath(dir, part, O_PATH | O_DIRECTORY, 0);
		(void)fd_close(dir);
		dir = next;
	}
	return dir;
}

int file_worker_open_parent(const char *path, bool make, const char **ret_name)
{
	char parent[PUT_PATH_MAX + 1] = "";
	const char *slash = strrchr(path, '/');
	int dir = 0;

	*ret_name = slash ? slash + 1 : path;
	if (!slash)
		return fd_open(".", O_PATH | O_DIRECTORY, 0);
	memcpy(parent, path, (size_t)(slash - path));
	dir = fd_open_inside(AT_FDCWD, parent, O_PATH | O_DIRECTORY, 0);
	return dir == -ENOENT && make ? make_dirs(parent) : dir;
}

static int must_name(const struct file_job *job, struct error *err)
{
	return job->path[0]
	               ? 0
	               : error_set(err, ERR_INVALID, 0, "path: must not be the workspace itself");
}

static int read_target(int fd, const struct stat *st, char *ret_target, size_t size)
{
	ssize_t n = S_ISLNK(st->st_mode) ? readlinkat(fd, "", ret_target, size - 1) : 0;

	ret_target[n > 0 ? n : 0] = '\0';
	return n < 0 ? -errno : 0;
}

/* Does not follow a final link. */
static int file_stat(const struct file_job *job, struct file_out *out, struct error *err)
{
	cleanup_close int fd =
		fd_open_inside(AT_FDCWD, job->path[0] ? job->path : ".", O_PATH | O_NOFOLLOW, 0);
	char target[PUT_PATH_MAX + 1] = "";
	struct stat st = {0};
	int r = fd < 0 ? fd : 0;

	if (r >= 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r >= 0)
		r = read_target(fd, &st, target, sizeof(target));
	if (r < 0)
		return file_worker_error(err, -r, "get the attributes of", job->path);
	return file_worker_send_entry(out, &(struct file_found){"", &st, target, NULL}, err);
}

static int send_content(const struct file_job *job, int fd, struct file_out *out, struct error *err)
{
	char *data = xmalloc(FRAME_CHUNK);
	uint64_t at = job->offset, left = job->length;
	int r = 0;

	/* Read to EOF: the size may change meanwhile. */
	while (r == 0 && left > 0) {
		size_t want = left < FRAME_CHUNK ? (size_t)left : FRAME_CHUNK;
		ssize_t n = pread(fd, data, want, (off_t)at);
		if (n == 0)
			break;
		if (n < 0) {
			r = file_worker_error(err, errno, "read", job->path);
			break;
		}
		r = file_worker_send_bytes(out, data, (size_t)n, err);
		at += (uint64_t)n;
		left -= (uint64_t)n;
	}
	free(data);
	return r;
}

/* O_NONBLOCK: a FIFO planted here must not block us. */
static int file_read(const struct file_job *job, struct file_out *out, struct error *err)
{
	cleanup_close int fd = -1;
	struct stat st = {0};

	if (must_name(job, err) < 0)
		return -1;
	fd = fd_open_inside(AT_FDCWD, job->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return file_worker_error(err, -fd, "read", job->path);
	if (fstat(fd, &st) < 0)
		return file_worker_error(err, errno, "read", job->path);
	if (!S_ISREG(st.st_mode))
		return file_worker_error(err, S_ISDIR(st.st_mode) ? EISDIR : ENXIO, "read",
		                         job->path);
	if (file_worker_send_entry(out, &(struct file_found){"", &st, NULL, NULL}, err) < 0)
		return -1;
	out->done.entries = 0;
	if (job->offset > INT64_MAX)
		return 0;
	return send_content(job, fd, out, err);
}

static int take_content(const struct file_job *job, int fd, struct error *err)
{
	struct file_in *in = NEW(struct file_in);
	uint64_t left = job->length;
	struct wire_bytes piece;
	int r = 0;

	while ((r = file_worker_receive(in, &piece, err)) > 0) {
		int n = piece.len > left ? -EFBIG : fd_write_all(fd, piece.data, piece.len);
		if (n < 0) {
			r = file_worker_error(err, -n, "write", job->path);
			break;
		}
		left -= piece.len;
	}
	free(in);
	return r;
}

static int rename_over(const struct file_job *job, int dir, const char *temp, const char *name)
{
	struct stat st = {0};

	/* Clearer than the kernel's error. */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return -EISDIR;
	(void)job;
	return renameat(dir, temp, dir, name) < 0 ? -errno : 0;
}

/* Readers see the old file or the new one; an interrupted upload leaves none. */
static int write_at(const struct file_job *job, int dir, const char *name, struct file_out *out,
                    struct error *err)
{
	char temp[FILE_TEMP_LEN];
	struct stat st = {0};
	int r = 0;

	file_worker_temp_name(temp);
	cleanup_close int fd = fd_open_beneath(dir, temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return file_worker_error(err, -fd, "write", job->path);
	r = take_content(job, fd, err);
	if (r == 0 && (fchmod(fd, job->mode) < 0 || fstat(fd, &st) < 0))
		r = file_worker_error(err, errno, "write", job->path);
	if (r == 0) {
		int n = rename_over(job, dir, temp, name);
		if (n < 0)
			r = file_worker_error(err, -n, "write", job->path);
	}
	if (r < 0) {
		(void)unlinkat(dir, temp, 0);
		return r;
	}
	out->done.bytes = (uint64_t)st.st_size;
	r = file_worker_send_entry(out, &(struct file_found){"", &st, NULL, NULL}, err);
	out->done.entries = 1;
	return r;
}

static int file_write(const struct file_job *job, struct file_out *out, struct error *err)
{
	const char *name = NULL;
	cleanup_close int dir = -1;

	if (must_name(job, err) < 0)
		return -1;
	dir = file_worker_open_parent(job->path, job->flags & WIRE_FILE_PARENTS, &name);
	if (dir < 0)
		return file_worker_error(err, -dir, "write", job->path);
	return write_at(job, dir, name, out, err);
}

static int file_mkdir(const struct file_job *job, struct file_out *out, struct error *err)
{
	bool parents = job->flags & WIRE_FILE_PARENTS;
	const char *name = NULL;
	struct stat st = {0};
	int r = 0;

	if (must_name(job, err) < 0)
		return -1;
	cleanup_close int dir = file_worker_open_parent(job->path, parents, &name);
	if (dir < 0)
		return file_worker_error(err, -dir, "make", job->path);
	if (mkdirat(dir, name, DIR_MODE) < 0)
		r = -errno;
	/* As mkdir -p. */
	if ((r == 0 || (r == -EEXIST && parents)) &&
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	else if (r == -EEXIST && parents)
		r = S_ISDIR(st.st_mode) ? 0 : -EEXIST;
	if (r < 0)
		return file_worker_error(err, -r, "make", job->path);
	return file_worker_send_entry(out, &(struct file_found){"", &st, NULL, NULL}, err);
}

static int file_move(const struct file_job *job, struct file_out *out, struct error *err)
{
	bool replaces = job->flags & WIRE_FILE_REPLACE;
	const char *from_name = NULL, *to_name = NULL;
	struct stat st = {0};

	if (must_name(job, err) < 0)
		return -1;
	if (!job->to[0])
		return error_set(err, ERR_INVALID, 0, "to: must not be the workspace itself");
	cleanup_close int from = file_worker_open_parent(job->path, false, &from_name);
	if (from < 0)
		return file_worker_error(err, -from, "move", job->path);
	cleanup_close int to =
		file_worker_open_parent(job->to, job->flags & WIRE_FILE_PARENTS, &to_name);
	if (to < 0)
		return file_worker_error(err, -to, "move to", job->to);
	if (syscall(SYS_renameat2, from, from_name, to, to_name, replaces ? 0 : NO_REPLACE) < 0)
		return file_worker_error(err, errno, "move", errno == EEXIST ? job->to : job->path);
	if (fstatat(to, to_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return file_worker_error(err, errno, "get the attributes of", job->to);
	return file_worker_send_entry(out, &(struct file_found){"", &st, NULL, NULL}, err);
}

static int (*const operations[WIRE_FILE_OP_COUNT])(const struct file_job *job, struct file_out *out,
                                                   struct error *err) = {
	[WIRE_FILE_STAT] = file_stat,          [WIRE_FILE_LIST] = file_tree_list,
	[WIRE_FILE_READ] = file_read,          [WIRE_FILE_WRITE] = file_write,
	[WIRE_FILE_MKDIR] = file_mkdir,        [WIRE_FILE_MOVE] = file_move,
	[WIRE_FILE_REMOVE] = file_tree_remove, [WIRE_FILE_TAR] = file_tar_pack,
	[WIRE_FILE_UNTAR] = file_tar_unpack,   [WIRE_FILE_CHANGES] = file_tree_changes,
};

int file_worker_run(const void *arg, int status, struct error *err)
{
	const struct file_job *job = arg;
	struct file_out out = {.b = BUF_INIT(OUT_MAX)};

	(void)status;
	(void)signal(SIGXFSZ, SIG_IGN); /* get EFBIG instead */
	if (operations[job->op](job, &out, err) < 0)
		return -1;
	return send_out(&out, msg_file_done_encode(&out.b, 1, &out.done), err);
}
