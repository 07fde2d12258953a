/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_rig.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/str.h"

/* Finding an engine that answers to our name, as a separate process. */

#define NAME "handover-test"

/* How it behaves. Its exit status is the request it received. */
enum manner {
	WORKS,    /* answers PROBE, then waits for END or EOF */
	BUSY,     /* likewise, but boxes of its last daemon end meanwhile */
	STRANGE,  /* likewise, but it has another identity */
	SILENT,   /* exits as soon as it was found */
	NONSENSE, /* sends an unexpected reply */
	STATUS_END = 10,
	STATUS_EOF = 11,
	STATUS_BAD = 12,
};

struct old_engine {
	char dir[64];
	struct engine_config config;
	pid_t pid;
};

static struct engine_config config_in(const char *dir)
{
	static const struct engine_option options[] = {
		{.name = "--agent", .word = "/proc/self/exe", .is_file = true},
		{.name = "--runners", .word = "/runners"},
	};

	return (struct engine_config){.program = "/proc/self/exe",
	                              .options = options,
	                              .options_count = ARRAY_SIZE(options),
	                              .agent_path = "/proc/self/exe",
	                              .runtime_dir = dir,
	                              .handover = NAME,
	                              .lease_us = 1000000};
}

/* Messages that the last daemon did not read. */
static void tell_of_past(int sock)
{
	struct engine_reply gone = {.op = ENGINE_GONE, .box_id = "b1"};
	struct engine_reply failed = {.op = ENGINE_FAILED, .seq = 7, .box_id = "b2"};

	if (fd_send(sock, &gone, sizeof(gone), NULL, 0) < 0 ||
	    fd_send(sock, &failed, sizeof(failed), NULL, 0) < 0)
		_exit(STATUS_BAD);
}

static void attr_noreturn play(int listener, const struct old_engine *c, enum manner manner)
{
	struct engine_request request = {0};
	struct engine_reply reply = {.op = ENGINE_PROBED, .seq = ENGINE_PROBE_SEQ};
	int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ssize_t n;

	if (manner == SILENT || sock < 0)
		_exit(0);
	n = recv(sock, &request, sizeof(request), 0);
	if (n != sizeof(request) || request.op != ENGINE_PROBE)
		_exit(STATUS_BAD);
	reply.probe = (struct engine_probe){.layers = LAYERS_ALL,
	                                    .boxes_max = 3,
	                                    .identity = engine_identity(&c->config) +
	                                                (manner == STRANGE)};
	if (manner == NONSENSE)
		reply.op = ENGINE_KEPT;
	if (manner == BUSY)
		tell_of_past(sock);
	if (fd_send(sock, &reply, sizeof(reply), NULL, 0) < 0)
		_exit(STATUS_BAD);
	if (manner == NONSENSE)
		_exit(0);
	n = recv(sock, &request, sizeof(request), 0);
	if (n == 0)
		_exit(STATUS_EOF);
	_exit(request.op == ENGINE_END ? STATUS_END : STATUS_BAD);
}

static int setup_old_engine(void **state)
{
	static struct old_engine c;

	c = (struct old_engine){.dir = "/tmp/millibox-handover-XXXXXX"};
	assert_non_null(mkdtemp(c.dir));
	c.config = config_in(c.dir);
	*state = &c;
	return 0;
}

/* It listens itself: the kernel reports the listener's credentials. */
static void appoint(struct old_engine *c, enum manner manner)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int ready[2];
	char byte = 0;

	assert_true(str_format(addr.sun_path, sizeof(addr.sun_path), "%s/" NAME, c->dir) >= 0);
	assert_int_equal(fd_pipe(ready, 0), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0) {
		int listener = fd_socket(AF_UNIX, SOCK_SEQPACKET, 0);

		if (bind(listener, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ||
		    listen(listener, 1) < 0 || write(ready[1], "r", 1) != 1)
			_exit(STATUS_BAD);
		play(listener, c, manner);
	}
	(void)fd_close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)fd_close(ready[0]);
}

static int status_of(struct old_engine *c)
{
	int status = 0;

	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	c->pid = 0;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int teardown_old_engine(void **state)
{
	struct old_engine *c = *state;
	cleanup_free char *path = xasprintf("%s/" NAME, c->dir);

	if (c->pid > 0)
		(void)kill(c->pid, SIGKILL);
	(void)unlink(path);
	return rmdir(c->dir);
}

static void old_engine_that_is_ours_is_taken_over(void **state)
{
	struct old_engine *c = *state;
	struct engine_process engine = {.sock = -1, .pidfd = -1};

	appoint(c, WORKS);
	assert_true(engine_handover_find(&c->config, &engine));
	assert_int_equal(engine.pid, 0);
	assert_int_equal(engine.probe.boxes_max, 3);
	assert_true(engine.sock >= 0 && engine.pidfd >= 0);
	(void)fd_close(engine.sock);
	assert_int_equal(status_of(c), STATUS_EOF);
	/* The descriptor refers to that process, which has exited. */
	assert_int_equal(engine_wait_readable(engine.pidfd, 0), 0);
	(void)fd_close(engine.pidfd);
}

/* Another configuration would enforce other rules. It is ordered to end before ours starts. */
static void old_engine_with_late_replies_is_taken_over(void **state)
{
	struct old_engine *c = *state;
	struct engine_process engine = {.sock = -1, .pidfd = -1};

	appoint(c, BUSY);
	assert_true(engine_handover_find(&c->config, &engine));
	assert_int_equal(engine.probe.boxes_max, 3);
	(void)fd_close(engine.sock);
	(void)fd_close(engine.pidfd);
	assert_int_equal(status_of(c), STATUS_EOF);
}

static void old_engine_of_other_settings_is_told_to_end(void **state)
{
	struct old_engine *c = *state;
	struct engine_process engine = {.sock = -1, .pidfd = -1};

	appoint(c, STRANGE);
	assert_false(engine_handover_find(&c->config, &engine));
	assert_int_equal(status_of(c), STATUS_END);
	assert_int_equal(engine.sock, -1);
}

static void old_engine_that_ends_meanwhile_is_not_used(void **state)
{
	struct old_engine *c = *state;
	struct engine_process engine = {.sock = -1, .pidfd = -1};

	appoint(c, SILENT);
	assert_false(engine_handover_find(&c->config, &engine));
	assert_int_equal(status_of(c), 0);
}

static void old_engine_that_sends_garbage_is_not_used(void **state)
{
	struct old_engine *c = *state;
	struct engine_process engine = {.sock = -1, .pidfd = -1};

	appoint(c, NONSENSE);
	assert_false(engine_handover_find(&c->config, &engine));
	assert_int_equal(status_of(c), 0);
}

static void without_a_listener_there_is_no_old_engine(void **state)
{
	struct old_engine *c = *state;
	struct engine_process engine = {.sock = -1, .pidfd = -1};
	cleanup_free char *path = xasprintf("%s/" NAME, c->dir);

	assert_false(engine_handover_find(&c->config, &engine));
	assert_int_equal(fd_close(fd_open(path, O_CREAT | O_WRONLY, 0600)), -1);
	assert_false(engine_handover_find(&c->config, &engine)); /* a file is not an engine */
	c->config.handover = NULL;
	assert_false(engine_handover_find(&c->config, &engine));
	c->config = config_in("/nonexistent");
	assert_false(engine_handover_find(&c->config, &engine));
}

/* Listing boxes: the engine's replies are written before they are read. */

static struct engine_driver *engine_of_rig(struct engine_rig *rig)
{
	return CONTAINER_OF(rig->driver, struct engine_driver, base);
}

static struct engine_reply kept_reply(const char *id)
{
	struct engine_reply reply = {.op = ENGINE_KEPT};

	memcpy(reply.box_id, id, strlen(id));
	reply.created = (struct engine_created){.fds = 1U << ENGINE_FD_AGENT,
	                                        .layers = RIG_ENGINE_LAYERS,
	                                        .uid = 1000,
	                                        .gid = 1000};
	return reply;
}

/* @reply, with one end of a stream; the other is the rig's agent. */
static void say_kept(struct engine_rig *rig, const struct engine_reply *reply)
{
	int pair[2];

	assert_int_equal(fd_socketpair(SOCK_STREAM, pair), 0);
	(void)fd_close(rig->agent);
	rig->agent = pair[1];
	assert_int_equal(fd_send(rig->engine, reply, sizeof(*reply), &pair[0], 1), 0);
	(void)fd_close(pair[0]);
}

static void say(struct engine_rig *rig, enum engine_op op)
{
	struct engine_reply reply = {.op = op};

	assert_int_equal(fd_send(rig->engine, &reply, sizeof(reply), NULL, 0), 0);
}

static void say_of_another(struct engine_rig *rig, enum engine_op op)
{
	struct engine_reply reply = {.op = op, .box_id = "b9"};

	assert_int_equal(fd_send(rig->engine, &reply, sizeof(reply), NULL, 0), 0);
}

static int ask(struct engine_rig *rig)
{
	error_clear(&rig->err);
	return engine_handover_list(engine_of_rig(rig), &rig->err);
}

static void boxes_are_listed_adopted_and_unclaimed_ones_end(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_reply first = kept_reply("b1"), second = kept_reply("b2");
	struct box_spec spec = sample_spec("b2");
	struct engine_request request;
	struct box *box = NULL;
	bool frozen = false;

	second.created.frozen = 1;
	say_kept(rig, &first);
	say_of_another(rig, ENGINE_GONE); /* sent before our request */
	say_of_another(rig, ENGINE_FAILED);
	say_kept(rig, &second);
	say(rig, ENGINE_ADOPTED);
	assert_int_equal(ask(rig), 0);
	(void)rig_hear(rig, ENGINE_ADOPT);
	assert_int_equal(box_adopt(rig->driver, &spec, &rig->events, &box, &frozen, &rig->err), 0);
	assert_true(frozen);
	assert_string_equal(box_id(box), "b2");
	/* Once only, and no other box. */
	assert_int_equal(box_adopt(rig->driver, &spec, &rig->events, &box, &frozen, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_NOT_FOUND);
	driver_settle(rig->driver);
	request = rig_hear(rig, ENGINE_DESTROY);
	assert_string_equal(request.box_id, "b1");
	rig_hear_nothing(rig);
}

static void box_that_lacks_what_is_required_now_is_not_adopted(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_reply reply = kept_reply("b1");
	struct box_spec spec = sample_spec("b1");
	struct box *box = NULL;
	bool frozen = false;

	reply.created.layers &= ~LAYER_BIT(LAYER_PID);
	say_kept(rig, &reply);
	say(rig, ENGINE_ADOPTED);
	assert_int_equal(ask(rig), 0);
	assert_int_equal(box_adopt(rig->driver, &spec, &rig->events, &box, &frozen, &rig->err), -1);
	assert_null(box);
}

/* Any invalid reply makes the engine unusable, and no descriptor leaks (see the rig). */
static void bad_descriptions_are_refused(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_reply cases[5];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cases[i] = kept_reply("b1");
	cases[0].created.fds = 1U << ENGINE_FD_KILL;  /* no agent */
	cases[1].created.fds |= 1U << ENGINE_FD_KILL; /* more than came */
	cases[2].created.layers = ~0U;
	cases[3].created.frozen = 2;
	memset(cases[4].box_id, 'x', sizeof(cases[4].box_id));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		say_kept(rig, &cases[i]);
		assert_int_equal(ask(rig), -1);
		assert_int_equal(rig->err.code, ERR_PROTOCOL);
		assert_true(list_is_empty(&engine_of_rig(rig)->kept));
	}
}

static void other_answers_are_refused(void **state)
{
	struct engine_rig *rig = *state;

	say(rig, ENGINE_FAILED);
	assert_int_equal(ask(rig), -1);
	assert_int_equal(rig->err.code, ERR_PROTOCOL);
	say(rig, ENGINE_PROBED);
	assert_int_equal(ask(rig), -1);
	assert_int_equal(rig->err.code, ERR_PROTOCOL);
	assert_int_equal(fd_send(rig->engine, "short", 5, NULL, 0), 0);
	assert_int_equal(ask(rig), -1);
	assert_int_equal(rig->err.code, ERR_PROTOCOL);
}

static void identity_follows_the_contents_of_the_programs(void **state)
{
	char path[] = "/tmp/millibox-test-XXXXXX";
	int fd = mkstemp(path);
	struct engine_config config = config_in("/run");
	uint64_t before, after;

	(void)state;
	assert_int_equal(write(fd, "one", 3), 3);
	config.program = path;
	before = engine_identity(&config);
	assert_true(before == engine_identity(&config));
	assert_int_equal(pwrite(fd, "two", 3, 0), 3);
	after = engine_identity(&config);
	assert_true(before != after);
	(void)fd_close(fd);
	assert_int_equal(unlink(path), 0);
	/* What cannot be read is never the same. */
	before = engine_identity(&config);
	(void)usleep(10);
	assert_true(before != engine_identity(&config));
}

/* The second engine lives on when the first gets other ids. */
static void identity_does_not_follow_the_id_of_the_daemon(void **state)
{
	struct engine_option options[] = {
		{.name = "--host-network", .number = 1},
		{.name = "--log-level", .word = "info", .may_differ = true},
	};
	struct engine_config config = config_in("/run");
	uint64_t before;

	(void)state;
	config.options = options;
	config.options_count = ARRAY_SIZE(options);
	config.daemon_uid = 1;
	before = engine_identity(&config);
	config.daemon_uid = 2;
	options[1].word = "debug";
	assert_true(before == engine_identity(&config));
	options[0].number = 0;
	assert_true(before != engine_identity(&config));
}

#define FIND(fn) cmocka_unit_test_setup_teardown(fn, setup_old_engine, teardown_old_engine)
#define ASK(fn)  cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIND(old_engine_that_is_ours_is_taken_over),
		FIND(old_engine_with_late_replies_is_taken_over),
		FIND(old_engine_of_other_settings_is_told_to_end),
		FIND(old_engine_that_ends_meanwhile_is_not_used),
		FIND(old_engine_that_sends_garbage_is_not_used),
		FIND(without_a_listener_there_is_no_old_engine),
		cmocka_unit_test(identity_follows_the_contents_of_the_programs),
		cmocka_unit_test(identity_does_not_follow_the_id_of_the_daemon),
		ASK(boxes_are_listed_adopted_and_unclaimed_ones_end),
		ASK(box_that_lacks_what_is_required_now_is_not_adopted),
		ASK(bad_descriptions_are_refused),
		ASK(other_answers_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
