/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/put.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/agent.h"

#define DIR_MODE  0755
#define MODE_MASK 0777

/* Copied for the child: outlives the frame. */
struct put_job {
	char path[PUT_PATH_MAX + 1];
	unsigned mode;
};

static int fail_put(struct error *err, int sys, const char *path)
{
	static const struct {
		int sys;
		enum error_code code;
	} codes[] = {
		{ENOSPC, ERR_TOO_LARGE}, {EDQUOT, ERR_TOO_LARGE},     {EFBIG, ERR_TOO_LARGE},
		{ENOTDIR, ERR_INVALID},  {EISDIR, ERR_INVALID},       {ELOOP, ERR_INVALID},
		{EXDEV, ERR_INVALID},    {EEXIST, ERR_INVALID},       {ENXIO, ERR_INVALID},
		{EACCES, ERR_INVALID},   {ENAMETOOLONG, ERR_INVALID},
	};
	enum error_code code = ERR_BOX_FAILED;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].sys == sys)
			code = codes[i].code;
	return error_set(err, code, sys, "write '%.128s': %s", path, strerror(sys));
}

static int bad_path(struct error *err, const char *why)
{
	return error_field(err, "files.path", "%s", why);
}

static int check_component(const char *name, size_t len, struct error *err)
{
	if (len == 0)
		return bad_path(err, "has an empty component or is not relative");
	if (len > 255)
		return bad_path(err, "has a component of more than 255 bytes");
	if ((len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.'))
		return bad_path(err, "has '.' or '..' as a component");
	return 0;
}

int put_check_path(const struct wire_bytes *path, struct error *err)
{
	const char *pos = path->data;
	const char *end = path->data + path->len;
	unsigned count = 0;

	if (path->len == 0 || path->len > PUT_PATH_MAX)
		return bad_path(err, "must have 1 to 4096 bytes");
	if (memchr(path->data, '\0', path->len))
		return bad_path(err, "a NUL byte");
	for (;;) {
		const char *slash = memchr(pos, '/', (size_t)(end - pos));
		const char *stop = slash ? slash : end;
		if (check_component(pos, (size_t)(stop - pos), err) < 0)
			return -1;
		if (++count > PUT_COMPONENTS_MAX)
			return bad_path(err, "has more than 32 components");
		if (!slash)
			return 0;
		pos = slash + 1;
	}
}

void put_init(struct put *p)
{
	*p = (struct put){.fd = -1, .child = {.status = -1}};
	buf_init(&p->pending, FRAME_MAX_PAYLOAD);
}

void put_reaped(struct put *p, pid_t pid)
{
	if (p->child.pid == pid)
		p->child.pid = 0;
}

void put_close(struct put *p)
{
	(void)fd_close(p->fd);
	(void)fd_close(p->child.status);
	buf_done(&p->pending);
	put_init(p);
}

/* Each parent is created, then entered by descriptor: no swapped-in link is followed. */
static int open_parent(char *path, char **ret_name)
{
	int dir = fd_open(".", O_PATH | O_DIRECTORY, 0);

	for (char *slash = strchr(path, '/'); slash && dir >= 0; slash = strchr(path, '/')) {
		int next = 0;
		*slash = '\0';
		if (mkdirat(dir, path, DIR_MODE) < 0 && errno != EEXIST) {
			next = -errno;
			(void)fd_close(dir);
			return next;
		}
		next = fd_open_beneath(dir, path, O_PATH | O_DIRECTORY, 0);
		(void)fd_close(dir);
		dir = next;
		path = slash + 1;
	}
	*ret_name = path;
	return dir;
}

/* Regular, one link, emptied. O_NONBLOCK: a FIFO planted here must not block us. */
static int open_target(int dir, const char *name, unsigned mode)
{
	cleanup_close int fd = fd_open_beneath(
		dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return -EEXIST;
	if (ftruncate(fd, 0) < 0 || fchmod(fd, mode) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int copy_stdin(int to)
{
	char data[16 * 1024];

	for (;;) {
		ssize_t n = read(STDIN_FILENO, data, sizeof(data));
		int r = 0;
		if (n == 0)
			return 0;
		if (n < 0)
			return -errno;
		r = fd_write_all(to, data, (size_t)n);
		if (r < 0)
			return r;
	}
}

/* In the child, as the payload. */
static int write_file(const void *arg, int status, struct error *err)
{
	const struct put_job *job = arg;
	char path[PUT_PATH_MAX + 1];
	char *name = NULL;
	int r = 0;

	(void)status;
	(void)signal(SIGXFSZ, SIG_IGN); /* get EFBIG instead */
	memcpy(path, job->path, sizeof(path));
	cleanup_close int dir = open_parent(path, &name);
	if (dir < 0)
		return fail_put(err, -dir, job->path);
	cleanup_close int fd = open_target(dir, name, job->mode);
	if (fd < 0)
		return fail_put(err, -fd, job->path);
	r = copy_stdin(fd);
	return r < 0 ? fail_put(err, -r, job->path) : 0;
}

static int begin_run(struct agent *a, const struct put_job *job, struct error *err)
{
	int fd = 0;
	int r = 0;

	if (strchr(job->path, '/'))
		return bad_path(err, "has a directory, which is not allowed here");
	r = agent_open_run_dir(a, true);
	if (r < 0)
		return fail_put(err, -r, job->path);
	fd = fd_open_at(a->run_dir, job->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, job->mode);
	if (fd < 0)
		return fail_put(err, -fd, job->path);
	a->put.fd = fd;
	return 0;
}

static int begin_workspace(struct agent *a, const struct put_job *job, struct error *err)
{
	int ends[2] = {-1, -1};
	int r = fd_pipe(ends, 0);

	if (r < 0)
		return fail_put(err, -r, job->path);
	cleanup_close int from = ends[0];
	cleanup_close int to = ends[1];
	struct drop_plan plan = {
		.setup = &a->setup,
		.stdio = {from, a->null, a->null},
		.workspace = a->workspace,
		.ruleset = a->ruleset,
	};
	r = fd_set_nonblock(to, true);
	if (r < 0)
		return fail_put(err, -r, job->path);
	if (spawn_payload(&plan, write_file, job, &a->put.child, err) < 0)
		return -1;
	a->put.fd = TAKE_FD(to);
	return 0;
}

int put_begin(struct agent *a, uint32_t id, const struct msg_put_begin *msg, struct error *err)
{
	struct put_job job = {.mode = msg->mode & MODE_MASK};
	int r = 0;

	if (put_check_path(&msg->path, err) < 0)
		return -1;
	memcpy(job.path, msg->path.data, msg->path.len);
	r = msg->place == WIRE_PLACE_RUN ? begin_run(a, &job, err) : begin_workspace(a, &job, err);
	if (r < 0)
		return -1;
	a->put.id = id;
	a->put.state = PUT_OPEN;
	return 0;
}

int put_data(struct put *p, const struct wire_bytes *data, struct error *err)
{
	int r = 0;

	if (p->child.status < 0)
		r = fd_write_all(p->fd, data->data, data->len);
	else
		r = buf_add(&p->pending, data->data, data->len);
	if (r < 0)
		return fail_put(err, -r, "file");
	return put_pump(p, err);
}

int put_end(struct put *p, struct error *err)
{
	p->state = PUT_CLOSING;
	if (p->child.status < 0) {
		put_close(p);
		return 0;
	}
	return put_pump(p, err);
}

bool put_is_busy(const struct put *p)
{
	return p->pending.len > 0 || p->state == PUT_CLOSING;
}

static int read_child(struct put *p, struct error *err)
{
	int listener = -1;

	switch (spawn_read(p->child.status, &listener, err)) {
	case SPAWN_WAIT:
		return 0;
	case SPAWN_DONE:
		put_close(p);
		return 0;
	case SPAWN_ERROR:
		return -1;
	case SPAWN_LISTENER:
	case SPAWN_END:
		break;
	}
	(void)fd_close(listener);
	return error_set(err, ERR_BOX_FAILED, 0, "write a file: the writer was killed");
}

int put_pump(struct put *p, struct error *err)
{
	if (p->state == PUT_IDLE || p->child.status < 0)
		return 0;
	if (p->pending.len > 0) {
		ssize_t n = write(p->fd, p->pending.data, p->pending.len);
		if (n > 0)
			buf_consume(&p->pending, (size_t)n);
		/* EPIPE: the writer exited early and reports why. */
		else if (n < 0 && errno != EAGAIN && errno != EINTR)
			buf_reset(&p->pending);
	}
	if (p->state == PUT_CLOSING && p->pending.len == 0)
		p->fd = fd_close(p->fd);
	return read_child(p, err);
}
