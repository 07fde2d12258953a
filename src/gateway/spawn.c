/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/spawn.h"

#include "base/alloc.h"
#include "base/core_limit.h"
#include "base/fd.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where names of programs are found, and what every server has in its environment. */
static const char *const base_env[] = {
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"HOME=/",
	"LANG=C.UTF-8",
};

struct child {
	pid_t pid; /* also of its group; 0: none */
	uint32_t generation;
};

struct spawner {
	struct server_spec *const *specs;
	size_t count;
	int sock;
	struct child children[GATEWAY_SERVERS_MAX];
};

struct spawner *spawner_new(struct server_spec *const *specs, size_t count, int sock)
{
	struct spawner *s = NEW(struct spawner);

	*s = (struct spawner){.specs = specs, .count = count, .sock = sock};
	return s;
}

static void stop_child(struct child *c)
{
	if (c->pid > 0)
		(void)kill(-c->pid, SIGKILL);
}

void spawner_free(struct spawner *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++) {
		stop_child(&s->children[i]);
		while (s->children[i].pid > 0 && waitpid(s->children[i].pid, NULL, 0) < 0 &&
		       errno == EINTR)
			;
	}
	free(s);
}

static char **make_env(const struct server_spec *spec)
{
	char **env = xcalloc(ARRAY_SIZE(base_env) + str_list_count(spec->env) + 1, sizeof(*env));
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(base_env); i++) {
		size_t name = strcspn(base_env[i], "=") + 1;
		bool is_set = false;

		for (char **v = spec->env; *v; v++)
			is_set = is_set || strncmp(*v, base_env[i], name) == 0;
		if (!is_set)
			env[n++] = xstrdup(base_env[i]);
	}
	for (char **v = spec->env; *v; v++)
		env[n++] = xstrdup(*v);
	return env;
}

/* In the child: nothing of ours but its three pipes. @fds: its own ends. */
attr_noreturn static void become_server(const struct server_spec *spec, char **env,
                                        const int fds[SPAWN_FD_COUNT])
{
	static const int usual[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};
	sigset_t none;

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		(void)signal(usual[i], SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setrlimit(RLIMIT_CORE, &core);
	if (setpgid(0, 0) < 0 || chdir("/") < 0)
		_exit(127);
	for (int i = 0; i < SPAWN_FD_COUNT; i++)
		if (dup2(fds[i], i) < 0)
			_exit(127);
	if (close_range(SPAWN_FD_COUNT, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		_exit(127);
	/* The name is searched in the server's PATH. */
	environ = env;
	(void)execvp(spec->argv[0], spec->argv);
	_exit(errno == ENOENT ? 127 : 126);
}

static void answer(const struct spawner *s, const struct spawn_message *m, const int *fds,
                   size_t count)
{
	/* A gateway that is gone needs no answer: it is noticed at the next order. */
	(void)!fd_send(s->sock, m, sizeof(*m), fds, count);
}

static void close_pipes(int pipes[SPAWN_FD_COUNT][2])
{
	for (int i = 0; i < SPAWN_FD_COUNT; i++)
		for (int j = 0; j < 2; j++)
			pipes[i][j] = fd_close(pipes[i][j]);
}

static int open_pipes(int pipes[SPAWN_FD_COUNT][2])
{
	for (int i = 0; i < SPAWN_FD_COUNT; i++)
		pipes[i][0] = pipes[i][1] = -1;
	for (int i = 0; i < SPAWN_FD_COUNT; i++) {
		int r = fd_pipe(pipes[i], 0);

		if (r < 0) {
			close_pipes(pipes);
			return r;
		}
	}
	return 0;
}

/* Return: 0 or a negative errno. @ret_fds: our ends, owned. */
static int start_child(const struct server_spec *spec, struct child *c, int ret_fds[SPAWN_FD_COUNT])
{
	cleanup_str_list char **env = make_env(spec);
	int pipes[SPAWN_FD_COUNT][2];
	int r = open_pipes(pipes);
	const int theirs[] = {pipes[0][0], pipes[1][1], pipes[2][1]};

	if (r < 0)
		return r;
	c->pid = fork();
	if (c->pid == 0)
		become_server(spec, env, theirs);
	r = c->pid < 0 ? -errno : 0;
	if (r < 0) {
		c->pid = 0;
		close_pipes(pipes);
		return r;
	}
	/* The child does it too; whichever comes first. */
	(void)setpgid(c->pid, c->pid);
	ret_fds[SPAWN_FD_IN] = TAKE_FD(pipes[0][1]);
	ret_fds[SPAWN_FD_OUT] = TAKE_FD(pipes[1][0]);
	ret_fds[SPAWN_FD_ERR] = TAKE_FD(pipes[2][0]);
	close_pipes(pipes);
	return 0;
}

static void start_server(struct spawner *s, struct spawn_message m)
{
	struct child *c = &s->children[m.server];
	int fds[SPAWN_FD_COUNT];

	stop_child(c);
	*c = (struct child){.generation = m.generation};
	m.status = start_child(s->specs[m.server], c, fds);
	m.op = m.status < 0 ? SPAWN_FAILED : SPAWN_STARTED;
	answer(s, &m, fds, m.status < 0 ? 0 : SPAWN_FD_COUNT);
	for (int i = 0; m.status >= 0 && i < SPAWN_FD_COUNT; i++)
		(void)fd_close(fds[i]);
}

bool spawner_obey(struct spawner *s)
{
	struct spawn_message m;
	ssize_t n = fd_recv(s->sock, &m, sizeof(m), NULL, NULL);

	if (n == -EINTR || n == -EAGAIN)
		return true;
	if (n != sizeof(m) || m.server >= s->count)
		return false;
	/* A server with a URL has no command. */
	if (m.op == SPAWN_START && s->specs[m.server]->argv[0])
		start_server(s, m);
	else if (m.op == SPAWN_STOP && m.generation == s->children[m.server].generation)
		stop_child(&s->children[m.server]);
	return true;
}

void spawner_ended(struct spawner *s, pid_t pid, int status)
{
	for (size_t i = 0; i < s->count; i++) {
		struct child *c = &s->children[i];
		const struct spawn_message m = {.op = SPAWN_ENDED,
		                                .server = (uint32_t)i,
		                                .generation = c->generation,
		                                .status = status};

		if (c->pid != pid)
			continue;
		/* Those that it started. */
		(void)kill(-pid, SIGKILL);
		c->pid = 0;
		answer(s, &m, NULL, 0);
	}
}
