/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "io/loop.h"
#include "remote/docker.h"
#include "remote/docker_config.h"
#include "remote/docker_groups.h"

/*
 * A box, one call after the other:
 *
 *   IMAGE ──▶ CREATE ──▶ ATTACH ──▶ START ──▶ UP ──▶ REMOVE ──▶ gone
 *
 * Any step may lead to REMOVE. The container has a name that only this box has, so that a call
 * whose answer was lost can be undone: REMOVE removes by name, and tries until the server says that
 * there is none. CREATE and START are never repeated.
 *
 * Beside the steps a call to /wait is open from before START on. Its answer is the end.
 */

#define CREATE_US (60 * USEC_PER_SEC)
#define START_US  (60 * USEC_PER_SEC)
#define LOOK_US   (10 * USEC_PER_SEC)
#define FREEZE_US (10 * USEC_PER_SEC)
#define REMOVE_US (30 * USEC_PER_SEC)
/* Between attempts to remove; doubles. */
#define RETRY_US     (100 * USEC_PER_MS)
#define RETRY_MAX_US (10 * USEC_PER_SEC)

enum step {
	STEP_IMAGE,
	STEP_CREATE,
	STEP_ATTACH,
	STEP_START,
	STEP_UP,
	STEP_REMOVE,
};

struct docker_box {
	struct docker *docker;
	struct remote_box *box;
	enum step step;
	bool is_second_try; /* with an image made again */
	bool may_exist;     /* the container */
	bool has_ended;     /* before START was answered */
	struct docker_image *image;
	struct docker_image_wait image_wait;
	struct docker_call *call, *wait, *freeze; /* owned; NULL: none */
	struct docker_attach *attach;
	struct timer *retry;
	uint64_t retry_us;
	char packages[4096]; /* "": none */
	char name[DOCKER_NAME_LEN];
};

static struct docker_box *docker_box(struct remote_box *box)
{
	return box->place;
}

static void begin_create(void *ctx, const char *tag, const struct error *err);
static void begin_remove(void *ctx);

static struct docker_call *call(struct docker_box *b, const char *method, const char *what,
                                uint64_t timeout_us, docker_done_fn *on_done)
{
	cleanup_free char *path = xasprintf("/containers/%s%s", b->name, what);

	return docker_call(b->docker, &(struct docker_request){
					      .method = method,
					      .path = path,
					      .timeout_us = timeout_us,
					      .on_done = on_done,
					      .ctx = b,
				      });
}

/* Drops what is in progress; nothing calls back after this. */
static void cancel_all(struct docker_box *b)
{
	docker_call_cancel(TAKE_PTR(b->call));
	docker_call_cancel(TAKE_PTR(b->wait));
	docker_call_cancel(TAKE_PTR(b->freeze));
	docker_attach_cancel(TAKE_PTR(b->attach));
	timer_stop(b->retry);
	docker_image_put(&b->image_wait);
}

void docker_box_free(struct remote_box *box)
{
	struct docker_box *b = docker_box(box);

	if (!b)
		return;
	cancel_all(b);
	timer_free(b->retry);
	free(b);
	box->place = NULL;
}

static void fail(struct docker_box *b, const struct docker_answer *answer, const char *what)
{
	struct error err = {0};

	(void)docker_refusal(answer, what, &err);
	box_has_failed(b->box, &err);
}

/* A directory of --roots, as its path: only the server can mount it. */
static int find_packages(struct docker_box *b, struct error *err)
{
	const struct remote_options *o = b->docker->options;
	const char *name = b->box->request.packages;

	for (size_t i = 0; i < o->bases_count; i++) {
		cleanup_close int base = fd_open(o->bases[i], O_PATH | O_DIRECTORY, 0);
		cleanup_close int dir =
			base < 0 ? base : fd_open_beneath(base, name, O_PATH | O_DIRECTORY, 0);

		if (dir >= 0 &&
		    str_format(b->packages, sizeof(b->packages), "%s/%s", o->bases[i], name) >= 0)
			return 0;
	}
	return error_set(err, ERR_BOX_FAILED, 0, "there are no packages '%s'", name);
}

/* Frozen processes cannot end; the server thaws what it kills. */
static void on_removed(void *ctx, const struct docker_answer *answer)
{
	struct docker_box *b = ctx;
	struct remote_box *box = b->box;

	b->call = NULL;
	if (!answer->err && (answer->status < 300 || answer->status == 404)) {
		docker_box_free(box);
		box_is_gone(box);
		return;
	}
	/* 409: it is being removed already. */
	if (answer->status != 409 && b->retry_us == RETRY_MAX_US)
		log_warn("container %s cannot be removed (%s, status %d), trying on", b->name,
		         answer->err ? answer->err->msg : "refused", answer->status);
	timer_start(b->retry, b->retry_us);
	b->retry_us = b->retry_us * 2 > RETRY_MAX_US ? RETRY_MAX_US : b->retry_us * 2;
}

static void begin_remove(void *ctx)
{
	struct docker_box *b = ctx;

	b->call = call(b, "DELETE", "?force=1&v=1", REMOVE_US, on_removed);
}

void docker_box_destroy(void *server, struct remote_box *box)
{
	struct docker_box *b = docker_box(box);

	(void)server;
	if (!b) {
		box_is_gone(box);
		return;
	}
	/* The server would go on, and make the container after it was not found: on_created goes
	 * on. */
	if (b->step == STEP_CREATE && b->call) {
		b->step = STEP_REMOVE;
		return;
	}
	cancel_all(b);
	b->step = STEP_REMOVE;
	if (b->may_exist) {
		begin_remove(b);
		return;
	}
	docker_box_free(box);
	box_is_gone(box);
}

/* The container is no more, or the server is away: then REMOVE waits for it. */
static void on_end(void *ctx, const struct docker_answer *answer)
{
	struct docker_box *b = ctx;
	bool is_known = !answer->err && answer->status == 200;
	int status = is_known ? docker_read_exit(answer->json) : b->box->wait_status;

	b->wait = NULL;
	b->has_ended = true;
	b->box->wait_status = status;
	/* Else the answer to START says why. */
	if (b->step == STEP_UP)
		box_has_ended(b->box, status);
}

/* Without an answer the box has no counters, but it runs. */
static void on_inspected(void *ctx, const struct docker_answer *answer)
{
	struct docker_box *b = ctx;
	const struct docker *d = b->docker;
	uint32_t uid = d->first_uid + b->box->slot;
	const struct engine_created created = {
		.layers = d->facts.layers,
		.vouched = d->facts.layers,
		.host_uid = d->facts.maps_ids ? 0 : uid,
		.uid = uid,
		.gid = uid,
	};
	int fds[ENGINE_FD_COUNT];

	b->call = NULL;
	for (unsigned i = 0; i < ENGINE_FD_COUNT; i++)
		fds[i] = -1;
	if (!answer->err && answer->status == 200)
		docker_groups_open(answer->json, fds);
	b->step = STEP_UP;
	box_is_up(b->box, &created, fds);
	if (b->has_ended)
		box_has_ended(b->box, b->box->wait_status);
}

static void on_started(void *ctx, const struct docker_answer *answer)
{
	struct docker_box *b = ctx;

	b->call = NULL;
	if (answer->err || answer->status >= 300)
		fail(b, answer, "start the container");
	else
		b->call = call(b, "GET", "/json", LOOK_US, on_inspected);
}

static void on_attached(void *ctx, struct remote_stream *far, const struct error *err)
{
	struct docker_box *b = ctx;
	struct error failed = {0};
	int r;

	b->attach = NULL;
	if (!far) {
		box_has_failed(b->box, err);
		return;
	}
	b->step = STEP_START;
	r = box_connect(b->box, far);
	if (r < 0) {
		(void)error_set(&failed, ERR_SYSTEM, -r, "socket for the agent");
		box_has_failed(b->box, &failed);
		return;
	}
	b->wait = call(b, "POST", "/wait?condition=removed", 0, on_end);
	b->call = call(b, "POST", "/start", START_US, on_started);
}

/* Return: whether the image was removed behind our back and is made again. */
static bool make_image_again(struct docker_box *b, const struct docker_answer *answer)
{
	struct error err = {0};

	if (answer->err || answer->status != 404 || b->is_second_try)
		return false;
	b->is_second_try = true;
	b->step = STEP_IMAGE;
	docker_image_is_lost(b->image);
	docker_image_put(&b->image_wait);
	b->image = docker_image_get(b->docker, &b->box->request, &b->image_wait, &err);
	if (!b->image)
		box_has_failed(b->box, &err);
	return true;
}

static void on_created(void *ctx, const struct docker_answer *answer)
{
	struct docker_box *b = ctx;

	b->call = NULL;
	if (b->step == STEP_REMOVE) {
		begin_remove(b);
		return;
	}
	if (make_image_again(b, answer))
		return;
	if (answer->err || answer->status != 201) {
		fail(b, answer, "create the container");
		return;
	}
	b->step = STEP_ATTACH;
	b->attach = docker_attach(b->docker, b->name, on_attached, b);
}

static void begin_create(void *ctx, const char *tag, const struct error *err)
{
	struct docker_box *b = ctx;
	const struct docker *d = b->docker;
	const struct engine_request *req = &b->box->request;
	bool is_host = !(req->flags & ENGINE_FLAG_IMAGE) && !d->options->image;
	json_t *config;
	cleanup_free char *path = NULL;

	if (!tag) {
		box_has_failed(b->box, err);
		return;
	}
	config = docker_config(&(struct docker_plan){
		.image = tag,
		.instance = d->instance,
		.box_id = req->box_id,
		/* By name: the server's own choice may change, and with it the grade. */
		.runtime = d->facts.runtime[0] ? d->facts.runtime : NULL,
		.limits = &req->limits,
		.flags = req->flags,
		.uid = d->first_uid + b->box->slot,
		.cpus = d->facts.cpus,
		.lacks = d->grade->lacks,
		.is_host = is_host,
		.own_pids = d->grade->own_pids,
		.own_memory = d->grade->own_memory,
		.mounts = d->mounts,
		.mounts_count = d->mounts_count,
		.more_mounts = d->host_mounts,
		.more_mounts_count = is_host ? d->host_count : 0,
		.packages = b->packages[0] ? b->packages : NULL,
	});
	path = xasprintf("/containers/create?name=%s", b->name);
	b->step = STEP_CREATE;
	b->may_exist = true;
	b->call = docker_call(b->docker, &(struct docker_request){
						 .method = "POST",
						 .path = path,
						 .body = config,
						 .timeout_us = CREATE_US,
						 .on_done = on_created,
						 .ctx = b,
					 });
	json_decref(config);
}

/* Less would be refused by the server, in other words. */
#define MEMORY_LEAST (6ULL << 20)

static int check_box(struct docker_box *b, struct error *err)
{
	const struct engine_request *req = &b->box->request;
	const uint32_t counted = LAYER_BIT(LAYER_CGROUP_MEMORY) | LAYER_BIT(LAYER_CGROUP_PIDS) |
	                         LAYER_BIT(LAYER_CGROUP_CPU);

	if ((req->flags & ENGINE_FLAG_REQUIRE_CGROUP) &&
	    (b->docker->facts.layers & counted) != counted)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "Docker has no control groups for memory, processes and CPU here");
	if (req->limits.memory_bytes < MEMORY_LEAST)
		return error_field(err, "limits.memory_bytes", "Docker gives at least %llu",
		                   MEMORY_LEAST);
	if (req->flags & ENGINE_FLAG_PACKAGES)
		return find_packages(b, err);
	return 0;
}

void docker_box_create(void *server, struct remote_box *box)
{
	struct docker_box *b = NEW(struct docker_box);
	struct error err = {0};

	box->place = b;
	b->docker = server;
	b->box = box;
	b->retry_us = RETRY_US;
	b->retry = timer_new(b->docker->loop, begin_remove, b);
	b->image_wait = (struct docker_image_wait){.on_done = begin_create, .ctx = b};
	list_init(&b->image_wait.node);
	(void)snprintf(b->name, sizeof(b->name), "millibox-%s-%s", b->docker->instance,
	               box->request.box_id);
	if (check_box(b, &err) == 0)
		b->image = docker_image_get(b->docker, &box->request, &b->image_wait, &err);
	if (!b->image)
		box_has_failed(box, &err);
}

static void on_frozen(void *ctx, const struct docker_answer *answer)
{
	struct docker_box *b = ctx;
	struct error err = {0};

	b->freeze = NULL;
	/* 304 and 409: it is so already. */
	if (!answer->err &&
	    (answer->status < 300 || answer->status == 304 || answer->status == 409)) {
		box_is_frozen(b->box, NULL);
		return;
	}
	(void)docker_refusal(answer, "pause the container", &err);
	box_is_frozen(b->box, &err);
}

void docker_box_freeze(void *server, struct remote_box *box)
{
	struct docker_box *b = docker_box(box);

	(void)server;
	b->freeze =
		call(b, "POST", box->wants_frozen ? "/pause" : "/unpause", FREEZE_US, on_frozen);
}
