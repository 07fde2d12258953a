/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/docker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/size.h"
#include "base/str.h"
#include "confine/confine.h"
#include "http/fetch.h"
#include "io/loop.h"
#include "remote/root_names.h"
#include "wire/layer.h"

/*
 * Start: /version, /info, then the containers of an earlier life of this daemon, found by their
 * label, are removed; then PROBE is answered. Later the same sweep runs from time to time: a call
 * whose answer was lost may have made something after its box was removed.
 */

#define DOCKER_SOCKET "/var/run/docker.sock"
#define PROBE_US      (10 * USEC_PER_SEC)
#define SWEEP_US      (60 * USEC_PER_SEC)
/* Where ids in containers are not those of the host, only the first 65536 exist. */
#define MAPPED_FIRST_UID 1000

#define AGENT_LAYERS                                                                               \
	(LAYER_BIT(LAYER_CAPS) | LAYER_BIT(LAYER_NO_NEW_PRIVS) | LAYER_BIT(LAYER_SECCOMP) |        \
	 LAYER_BIT(LAYER_RLIMITS))

/* A kernel in user space is itself processes in the groups of its box, and has no Landlock. */
static const struct docker_grade grades[ENGINE_GRADE_COUNT] = {
	[ENGINE_GRADE_NAMESPACE] = {.agent_layers = AGENT_LAYERS},
	[ENGINE_GRADE_GVISOR] = {.agent_layers = AGENT_LAYERS,
                                 .lacks = LAYER_BIT(LAYER_LANDLOCK),
                                 .own_pids = 256,
                                 .own_memory = 64 * MIB},
	[ENGINE_GRADE_VM] = {.agent_layers = AGENT_LAYERS,
                             .lacks = LAYER_BIT(LAYER_LANDLOCK),
                             .own_memory = 256 * MIB},
};

/* Boxes share this kernel only if they run on the same. */
static void find_landlock(struct docker *d)
{
	struct utsname here;

	d->landlock_abi = 0;
	if (d->facts.grade == ENGINE_GRADE_NAMESPACE && uname(&here) == 0 &&
	    str_equal(here.release, d->facts.kernel))
		d->landlock_abi = confine_landlock_abi();
}

static void answer_probe(struct docker *d)
{
	struct engine_probe probe = {
		.layers = d->facts.layers | d->grade->agent_layers,
		.cgroup = ENGINE_CGROUP_NONE,
		.ids = ENGINE_IDS_SINGLE,
		.landlock_abi = d->landlock_abi,
		.uid = d->first_uid,
		.gid = d->first_uid,
		.features = ENGINE_CAN_IMAGE | ENGINE_CAN_PACKAGES | ENGINE_CAN_FREEZE,
		.grade = d->facts.grade,
		.runtime = "docker",
	};

	if (d->landlock_abi > 0)
		probe.layers |= LAYER_BIT(LAYER_LANDLOCK);
	memcpy(probe.release, d->facts.release, sizeof(probe.release));
	remote_probed(d->remote, &probe);
}

static void on_sweep_due(void *ctx)
{
	struct docker *d = ctx;

	timer_start(d->sweep, SWEEP_US);
	docker_sweep(d, NULL);
}

static void on_swept(struct docker *d)
{
	timer_start(d->sweep, SWEEP_US);
	answer_probe(d);
}

static void give_up(struct docker *d, const struct docker_answer *answer, struct error *err)
{
	if (!error_is_set(err))
		(void)docker_refusal(answer, "describe itself", err);
	remote_is_unusable(d->remote, err);
}

static void on_info(void *ctx, const struct docker_answer *answer)
{
	struct docker *d = ctx;
	struct error err = {0};

	if (answer->err || answer->status != 200 ||
	    docker_read_info(answer->json, d->options->container_runtime, &d->facts, &err) < 0) {
		give_up(d, answer, &err);
		return;
	}
	d->grade = &grades[d->facts.grade];
	find_landlock(d);
	d->first_uid = d->facts.maps_ids ? MAPPED_FIRST_UID : remote_uids(d->options).boxes;
	docker_sweep(d, on_swept);
}

static void ask(struct docker *d, const char *path, docker_done_fn *on_done)
{
	(void)docker_call(d, &(struct docker_request){
				     .method = "GET",
				     .path = path,
				     .timeout_us = PROBE_US,
				     .on_done = on_done,
				     .ctx = d,
			     });
}

static void on_version(void *ctx, const struct docker_answer *answer)
{
	struct docker *d = ctx;
	struct error err = {0};

	if (answer->err || answer->status != 200 ||
	    docker_read_version(answer->json, &d->facts, &err) < 0) {
		give_up(d, answer, &err);
		return;
	}
	(void)snprintf(d->version, sizeof(d->version), "/v%.12s", d->facts.api);
	ask(d, "/info", on_info);
}

static void docker_probe(void *server)
{
	struct docker *d = server;

	d->version[0] = '\0';
	ask(d, "/version", on_version);
}

static void add_mount(struct docker_mount **list, size_t *count, const char *source,
                      const char *target)
{
	*list = xrealloc_array(*list, *count + 1, sizeof(**list));
	(*list)[(*count)++] = (struct docker_mount){xstrdup(source), xstrdup(target)};
}

static void add_host_mount(void *ctx, const char *path)
{
	struct docker *d = ctx;

	add_mount(&d->host_mounts, &d->host_count, path, path);
}

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* Each folder by itself, as several directories may have some; two with the same name fail at the
 * first box: neither may replace the other's runner. */
static int add_runners(struct docker *d, const char *path, struct error *err)
{
	cleanup_close int fd = fd_open(path, O_RDONLY | O_DIRECTORY, 0);
	attr_cleanup(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return error_set(err, ERR_UNAVAILABLE, fd < 0 ? -fd : errno, "--runners '%.128s'",
		                 path);
	(void)TAKE_FD(fd);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		cleanup_free char *source = xasprintf("%s/%s", path, entry->d_name);
		cleanup_free char *target = xasprintf(REMOTE_RUNNERS "/%s", entry->d_name);

		if (entry->d_name[0] != '.')
			add_mount(&d->mounts, &d->mounts_count, source, target);
	}
	return 0;
}

/* The server resolves these paths: they must not depend on our directory. */
static int add_file(struct docker *d, const char *path, const char *target, struct error *err)
{
	char *full = realpath(path, NULL);

	if (!full)
		return error_set(err, ERR_UNAVAILABLE, errno, "'%.128s'", path);
	add_mount(&d->mounts, &d->mounts_count, full, target);
	free(full);
	return 0;
}

static int add_mounts(struct docker *d, struct error *err)
{
	const struct remote_options *o = d->options;

	if (add_file(d, o->agent, REMOTE_AGENT, err) < 0)
		return -1;
	for (size_t i = 0; i < o->runners_count; i++) {
		cleanup_free char *full = realpath(o->runners[i], NULL);

		if (add_runners(d, full ? full : o->runners[i], err) < 0)
			return -1;
	}
	if (o->addon && add_file(d, o->addon, REMOTE_ADDON, err) < 0)
		return -1;
	root_host_dirs(add_host_mount, d);
	return 0;
}

/* Of a daemon: what it keeps its state in has one name on this host. */
static void name_instance(struct docker *d)
{
	const struct remote_options *o = d->options;
	const char *names[] = {o->runtime_dir, o->handover ? o->handover : "",
	                       o->container_runtime ? o->container_runtime : ""};
	uint8_t digest[SHA256_LEN];
	struct sha256 hash;

	sha256_init(&hash);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		sha256_add(&hash, names[i], strlen(names[i]) + 1);
	sha256_end(&hash, digest);
	for (size_t i = 0; i < DOCKER_INSTANCE_LEN / 2; i++)
		(void)snprintf(d->instance + 2 * i, 3, "%02x", digest[i]);
}

static int check_image_name(const char *name, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._/:@-";

	if (!name || (name[0] && strspn(name, allowed) == strlen(name)))
		return 0;
	return error_set(err, ERR_CONFIG, 0, "'%.80s' is not the name of an image", name);
}

static void docker_close(void *server)
{
	struct docker *d = server;

	docker_images_free(d);
	docker_calls_cancel(d);
	fetcher_free(d->fetcher);
	timer_free(d->sweep);
	for (size_t i = 0; i < d->mounts_count + d->host_count; i++) {
		struct docker_mount *m =
			i < d->mounts_count ? &d->mounts[i] : &d->host_mounts[i - d->mounts_count];

		free(m->source);
		free(m->target);
	}
	free(d->mounts);
	free(d->host_mounts);
	free(d->socket);
	free(d);
}

static void *docker_open(struct remote *r, const struct remote_options *options, struct error *err)
{
	struct docker *d = NEW(struct docker);

	*d = (struct docker){
		.remote = r,
		.options = options,
		.loop = remote_loop(r),
		.socket = xstrdup(options->socket ? options->socket : DOCKER_SOCKET),
	};
	list_init(&d->images);
	list_init(&d->calls);
	name_instance(d);
	d->sweep = timer_new(d->loop, on_sweep_due, d);
	d->fetcher = fetcher_new(d->loop, err);
	if (d->fetcher && check_image_name(options->image, err) == 0 && add_mounts(d, err) == 0 &&
	    privilege_drop(d->socket, remote_uids(options).own, err) == 0)
		return d;
	docker_close(d);
	return NULL;
}

const struct remote_ops docker_ops = {
	.name = "docker",
	.open = docker_open,
	.close = docker_close,
	.probe = docker_probe,
	.create = docker_box_create,
	.freeze = docker_box_freeze,
	.destroy = docker_box_destroy,
	.forget = docker_box_free,
};
