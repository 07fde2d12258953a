/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a native driver whose engine is the test: requests are read from, and replies written to,
 * the other end of its socket. Counts the descriptors of the process before and after each test, so
 * that a leak fails the test that caused it.
 */

#include "recorder.h"

#include "base/fd.h"
#include "driver/engine_internal.h"
#include "io/loop.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#define RIG_ENGINE_LAYERS (LAYERS_ALL & ~LINK_AGENT_LAYERS)

struct engine_rig {
	struct loop *loop;
	struct driver *driver;
	int engine; /* the test's end */
	struct recorder rec;
	struct box_events events;
	struct engine_probe probe;
	struct engine_config config;
	int engine_losses;
	uint32_t vouched; /* of the boxes that rig_created answers */
	struct error engine_err;
	struct error err;
	size_t fds_before;
	/* Of the last box created by rig_created. */
	int agent;
	int kill_file;
};

static inline size_t count_fds(void)
{
	size_t count = 0;
	DIR *dir;

	loop_free(loop_new()); /* the first loop of a process creates descriptors that stay */
	dir = opendir("/proc/self/fd");
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

static inline void rig_on_engine_lost(void *ctx, const struct error *err)
{
	struct engine_rig *rig = ctx;

	rig->engine_losses++;
	rig->engine_err = *err;
	record(&rig->rec, "engine_lost", "(%s)", error_name(err->code));
}

static inline int rig_setup(void **state)
{
	static struct engine_rig rig;
	int pair[2];

	rig = (struct engine_rig){.fds_before = count_fds(), .agent = -1, .kill_file = -1};
	rig.loop = loop_new();
	recorder_init(&rig.rec);
	rig.events = recorder_events(&rig.rec);
	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	rig.engine = pair[1];
	rig.probe = (struct engine_probe){.layers = LAYERS_ALL,
	                                  .cgroup = ENGINE_CGROUP_HYBRID,
	                                  .ids = ENGINE_IDS_RANGE,
	                                  .landlock_abi = 4,
	                                  .daemon_uid = 77,
	                                  .features = ENGINE_CAN_ALL & ~ENGINE_CAN_BRIDGE,
	                                  .runtime = "native",
	                                  .boxes_max = 3};
	rig.config = (struct engine_config){.name = "native",
	                                    .is_native = true,
	                                    .strict = true,
	                                    .agent_path = "/nonexistent/agent",
	                                    .on_engine_lost = rig_on_engine_lost,
	                                    .ctx = &rig};
	rig.driver = engine_driver_new(&rig.config, pair[0], 0, &rig.probe);
	assert_int_equal(engine_driver_attach_loop(rig.driver, rig.loop, &rig.err), 0);
	*state = &rig;
	return 0;
}

static inline int rig_teardown(void **state)
{
	struct engine_rig *rig = *state;

	driver_free(rig->driver);
	loop_free(rig->loop);
	(void)fd_close(rig->engine);
	(void)fd_close(rig->agent);
	(void)fd_close(rig->kill_file);
	buf_done(&rig->rec.text);
	assert_int_equal(count_fds(), rig->fds_before);
	return 0;
}

/* Let everything in flight arrive. */
static inline void rig_run(struct engine_rig *rig)
{
	for (int i = 0; i < 4; i++)
		loop_run_once(rig->loop, false);
}

static inline struct box *rig_create(struct engine_rig *rig, const char *id)
{
	struct box_spec spec = sample_spec(id);
	struct box *box = NULL;

	assert_int_equal(box_create(rig->driver, &spec, &rig->events, &box, &rig->err), 0);
	rig->rec.box = box;
	return box;
}

/* The next request must be @op. */
static inline struct engine_request rig_hear(struct engine_rig *rig, enum engine_op op)
{
	struct engine_request request = {0};

	assert_int_equal(recv(rig->engine, &request, sizeof(request), MSG_DONTWAIT),
	                 sizeof(request));
	assert_int_equal(request.op, op);
	assert_int_not_equal(request.seq, 0);
	return request;
}

static inline void rig_hear_nothing(struct engine_rig *rig)
{
	char c;

	assert_int_equal(recv(rig->engine, &c, 1, MSG_DONTWAIT | MSG_PEEK), -1);
	assert_int_equal(errno, EAGAIN);
}

static inline struct engine_reply reply_to(enum engine_op op, const struct engine_request *request)
{
	struct engine_reply reply = {.op = op, .seq = request->seq};

	memcpy(reply.box_id, request->box_id, sizeof(reply.box_id));
	return reply;
}

static inline void rig_reply(struct engine_rig *rig, const struct engine_reply *reply)
{
	assert_int_equal(fd_send(rig->engine, reply, sizeof(*reply), NULL, 0), 0);
	rig_run(rig);
}

static inline void rig_failed(struct engine_rig *rig, const struct engine_request *request,
                              uint32_t seq, const char *msg)
{
	struct engine_reply reply = reply_to(ENGINE_FAILED, request);

	reply.seq = seq;
	(void)error_set(&reply.error, ERR_BOX_FAILED, EPERM, "%s", msg);
	rig_reply(rig, &reply);
}

static inline void rig_gone(struct engine_rig *rig, const struct engine_request *request,
                            uint32_t seq)
{
	struct engine_reply reply = reply_to(ENGINE_GONE, request);

	reply.seq = seq;
	reply.gone.wait_status = 9; /* SIGKILL */
	reply.gone.leftovers = 1;
	rig_reply(rig, &reply);
}

/* CREATED with a socket, a file in place of cgroup.kill, and / in place of cgroup directories. */
static inline void rig_created(struct engine_rig *rig, const struct engine_request *request,
                               uint32_t layers)
{
	struct engine_reply reply = reply_to(ENGINE_CREATED, request);
	int fds[4], pair[2];

	assert_int_equal(fd_socketpair(SOCK_STREAM, pair), 0);
	(void)fd_close(rig->agent);
	(void)fd_close(rig->kill_file);
	rig->agent = pair[1];
	rig->kill_file = fd_memfd("cgroup.kill", 0);
	fds[0] = pair[0];
	fds[1] = rig->kill_file;
	fds[2] = fd_open("/", O_DIRECTORY | O_PATH, 0);
	fds[3] = fd_open("/", O_DIRECTORY | O_PATH, 0);
	reply.created =
		(struct engine_created){.fds = 1U << ENGINE_FD_AGENT | 1U << ENGINE_FD_KILL |
	                                       1U << ENGINE_FD_MEMORY | 1U << ENGINE_FD_CPU,
	                                .layers = layers,
	                                .vouched = rig->vouched,
	                                .uid = 1000,
	                                .gid = 1001};
	assert_int_equal(fd_send(rig->engine, &reply, sizeof(reply), fds, 4), 0);
	(void)fd_close(fds[0]);
	(void)fd_close(fds[2]);
	(void)fd_close(fds[3]);
	rig_run(rig);
}

static inline bool rig_was_killed(struct engine_rig *rig)
{
	char c = 0;

	return pread(rig->kill_file, &c, 1, 0) == 1 && c == '1';
}

/* Messages of the agent. */
static inline void rig_hello(struct engine_rig *rig, uint32_t layers)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_hello hello = {.version = WIRE_VERSION, .layers = layers};

	assert_int_equal(msg_hello_encode(&b, 0, &hello), 0);
	assert_int_equal(fd_write_all(rig->agent, b.data, b.len), 0);
	rig_run(rig);
}

/* What the agent received; the frame is borrowed until the next call. */
static inline struct frame rig_agent_hear(struct engine_rig *rig, unsigned type)
{
	static char payload[4096];
	struct frame frame = {0};
	ssize_t n = recv(rig->agent, payload, sizeof(payload), MSG_DONTWAIT | MSG_PEEK);
	int used;

	assert_true(n > 0);
	used = frame_parse(payload, (size_t)n, &frame);
	assert_true(used > 0);
	assert_string_equal(msg_name(frame.type), msg_name(type));
	assert_int_equal(recv(rig->agent, payload, (size_t)used, MSG_DONTWAIT), used);
	return frame;
}

/* A box that is ready; its CREATE request is returned. */
static inline struct engine_request rig_ready(struct engine_rig *rig, const char *id,
                                              struct box **ret_box)
{
	struct engine_request request;

	*ret_box = rig_create(rig, id);
	request = rig_hear(rig, ENGINE_CREATE);
	rig_created(rig, &request, RIG_ENGINE_LAYERS);
	rig_hello(rig, LINK_AGENT_LAYERS);
	recorder_expect(&rig->rec, "ready ");
	return request;
}
