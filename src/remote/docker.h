/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the Docker Engine as a server of boxes (also Podman's service, which speaks the same API).
 *
 *   docker.c         struct remote_ops; probe
 *   docker_sweep.c   what an earlier life left
 *   docker_box.c     a box: image, create, attach, start, wait, remove
 *   docker_call.c    one call of the API: bounded, with a time limit, behind the circuit breaker
 *   docker_config.c  the description of a container; pure
 *   docker_reply.c   what the server says, as values; pure
 *   docker_groups.c  the groups of a container, for counters
 *   docker_image.c   images made of roots
 *   docker_stream.c  the upgraded connection to an agent
 *   demux.c          its frames; pure
 */

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include "remote/breaker.h"
#include "remote/docker_reply.h"
#include "remote/remote.h"
#include <jansson.h>

struct buf;
struct docker_call;
struct docker_image;
struct fetcher;
struct root_tar;

#define DOCKER_LABEL        "millibox.instance"
#define DOCKER_LABEL_BOX    "millibox.box"
#define DOCKER_NAME_LEN     96
#define DOCKER_INSTANCE_LEN 17 /* hexadecimal, and NUL */
#define DOCKER_TAG_LEN      129
/* Answers, which only the server bounds. */
#define DOCKER_ANSWER_MAX (4u * 1024 * 1024)

/* What a kind of runtime changes. */
struct docker_grade {
	uint32_t agent_layers; /* that every agent applies there: enum wire_layer */
	uint32_t lacks;        /* that it may lack */
	uint32_t own_pids;     /* of the runtime, in the groups of the box */
	uint64_t own_memory;
};

struct docker_mount {
	char *source, *target; /* owned */
};

struct docker {
	struct remote *remote;
	const struct remote_options *options;
	struct loop *loop;
	struct fetcher *fetcher;
	struct breaker breaker;
	char *socket;     /* owned */
	char version[16]; /* "/v1.41"; "": the server's own */
	char instance[DOCKER_INSTANCE_LEN];
	struct docker_facts facts;
	const struct docker_grade *grade;
	uint32_t landlock_abi; /* of the boxes, if the server has this kernel; else 0 */
	uint32_t first_uid;    /* of the boxes */
	size_t mounts_count;
	struct docker_mount *mounts; /* of every box: agent, runners; owned */
	size_t host_count;
	struct docker_mount *host_mounts; /* of boxes without a root of their own; owned */
	struct list images;               /* struct docker_image */
	struct list calls;                /* struct docker_call */
	struct timer *sweep;
};

/* docker_call.c */

struct docker_answer {
	int status;              /* HTTP; 0: none */
	const json_t *json;      /* NULL: none, or @err */
	const struct error *err; /* there is no answer of a Docker Engine; NULL: there is */
};

typedef void docker_done_fn(void *ctx, const struct docker_answer *answer);

/* Borrowed for the call, except @ctx. */
struct docker_request {
	const char *method;
	const char *path;   /* "/containers/json?all=1" */
	const json_t *body; /* NULL: none */
	/* Instead of @body, a tar. */
	ssize_t (*on_body)(void *ctx, char *data, size_t size);
	uint64_t timeout_us; /* 0: none */
	bool is_stream;      /* of JSON values: the last one counts */
	docker_done_fn *on_done;
	void *ctx;
};

/** docker_call - @on_done comes later, once, unless cancelled. */
struct docker_call *docker_call(struct docker *d, const struct docker_request *request);
void docker_call_cancel(struct docker_call *c);
void docker_calls_cancel(struct docker *d);
/** docker_refusal - what @answer says went wrong: "create the container: ...". Return: -1. */
int docker_refusal(const struct docker_answer *answer, const char *what, struct error *err);
/** docker_connect - Return: a connection, or -1 with what to do about it. */
int docker_connect(const struct docker *d, struct error *err) attr_must_check;

/* docker_stream.c */

struct docker_attach;
/** @far NULL: *err says why. */
typedef void docker_attached_fn(void *ctx, struct remote_stream *far, const struct error *err);
struct docker_attach *docker_attach(struct docker *d, const char *container,
                                    docker_attached_fn *on_done, void *ctx);
void docker_attach_cancel(struct docker_attach *a);

/* docker_image.c */

/** @tag NULL: *err says why. */
typedef void docker_image_fn(void *ctx, const char *tag, const struct error *err);
struct docker_image_wait {
	struct list node; /* on no list: does not wait */
	docker_image_fn *on_done;
	void *ctx;
};
/** docker_image_get - of the request of a box; @wait stays until it is called or put back. */
struct docker_image *docker_image_get(struct docker *d, const struct engine_request *request,
                                      struct docker_image_wait *wait, struct error *err);
/** docker_image_put - no callback follows. */
void docker_image_put(struct docker_image_wait *wait);
/** docker_image_is_lost - somebody removed it: it is made again. */
void docker_image_is_lost(struct docker_image *image);
void docker_images_free(struct docker *d);
/** docker_image_tag - of a root, as it is now; "": the host's. Return: 0, or -1 with *err. */
int docker_image_tag(const struct docker *d, const char *root, char ret_tag[DOCKER_TAG_LEN],
                     struct error *err) attr_must_check;

/* docker_sweep.c */
/** docker_sweep - remove containers that belong to no box, then images of roots that are gone or
 * have changed. @on_done: NULL, or called once the containers are gone. */
void docker_sweep(struct docker *d, void (*on_done)(struct docker *d));

/* docker_box.c */
void docker_box_create(void *server, struct remote_box *box);
void docker_box_freeze(void *server, struct remote_box *box);
void docker_box_destroy(void *server, struct remote_box *box);
void docker_box_free(struct remote_box *box);
