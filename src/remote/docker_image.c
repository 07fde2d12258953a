/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/str.h"
#include "io/loop.h"
#include "remote/docker.h"
#include "remote/root_names.h"
#include "remote/root_tar.h"

/*
 * Theory of operation. A root becomes an image once: its tag names what it was made of, so another
 * box, and the next life of this program, find it there. A directory is known by its name, inode
 * and times, not by all it contains: what is changed deep inside is imported again after `touch` of
 * the root itself.
 *
 *   UNKNOWN ──▶ LOOKING ──▶ READY
 *                  └──▶ IMPORTING ──▶ LOOKING
 *
 * Boxes wait meanwhile. A failure is told to all that wait; the next box tries again. An image by
 * name is the operator's: it is looked for, never made.
 */

#define LOOK_US   (30 * USEC_PER_SEC)
#define IMPORT_US (1800 * USEC_PER_SEC)
#define KEY_LEN   33

enum image_state {
	IMAGE_UNKNOWN,
	IMAGE_LOOKING,
	IMAGE_IMPORTING,
	IMAGE_READY,
};

struct docker_image {
	struct list node; /* docker.images */
	struct docker *docker;
	enum image_state state;
	bool is_named;              /* by the operator */
	bool was_made;              /* in this attempt */
	char root[ENGINE_ROOT_LEN]; /* "": the host's */
	char tag[DOCKER_TAG_LEN];
	struct list waiting; /* struct docker_image_wait */
	struct docker_call *call;
	struct root_tar *tar;
};

static void tell(struct docker_image *image, const struct error *err)
{
	struct docker_image_wait *wait;

	while ((wait = LIST_FIRST(&image->waiting, struct docker_image_wait, node))) {
		list_remove(&wait->node);
		wait->on_done(wait->ctx, err ? NULL : image->tag, err);
	}
}

static void be_ready(struct docker_image *image)
{
	image->state = IMAGE_READY;
	tell(image, NULL);
}

static void fail(struct docker_image *image, const struct error *err)
{
	image->state = IMAGE_UNKNOWN;
	root_tar_free(TAKE_PTR(image->tar));
	tell(image, err);
}

static void look(struct docker_image *image);

static void on_imported(void *ctx, const struct docker_answer *answer)
{
	struct docker_image *image = ctx;
	char message[120];
	struct error err = {0};

	image->call = NULL;
	root_tar_free(TAKE_PTR(image->tar));
	docker_read_message(answer->json, message, sizeof(message));
	if (!answer->err && answer->status < 300 && !message[0]) {
		log_info("root '%s' is image %s", image->root, image->tag);
		look(image);
		return;
	}
	(void)docker_refusal(answer, "import the root", &err);
	fail(image, &err);
}

static ssize_t on_tar(void *ctx, char *data, size_t size)
{
	struct docker_image *image = ctx;

	return root_tar_read(image->tar, data, size);
}

/* Return: the directory of a root, -1: the host's, or -1 with *err. */
static int open_root(const struct docker *d, const char *name, struct error *err)
{
	const struct remote_options *o = d->options;
	int dir = -ENOENT;

	if (!name[0])
		return -1;
	for (size_t i = 0; i < o->bases_count && dir == -ENOENT; i++) {
		cleanup_close int base = fd_open(o->bases[i], O_PATH | O_DIRECTORY, 0);

		dir = base < 0 ? base : fd_open_beneath(base, name, O_RDONLY | O_DIRECTORY, 0);
	}
	if (dir >= 0)
		return dir;
	(void)error_set(err, ERR_BOX_FAILED, -dir, "root '%s'", name);
	return -1;
}

static void import_root(struct docker_image *image)
{
	const struct docker *d = image->docker;
	cleanup_buf struct buf names = BUF_INIT(ROOT_NAMES_MAX);
	cleanup_free char *path = NULL;
	struct error err = {0};
	int dir = open_root(d, image->root, &err);
	int r = root_names(&names, d->first_uid, dir < 0);

	if (!error_is_set(&err) && r < 0)
		(void)error_set(&err, ERR_SYSTEM, -r, "names of the root");
	if (error_is_set(&err)) {
		(void)fd_close(dir);
		fail(image, &err);
		return;
	}
	image->state = IMAGE_IMPORTING;
	image->was_made = true;
	image->tar = root_tar_new(dir, &names, root_names_has);
	path = xasprintf("/images/create?fromSrc=-&repo=%.*s&tag=%s&changes=LABEL%%20" DOCKER_LABEL
	                 "%%3D%s",
	                 (int)strcspn(image->tag, ":"), image->tag, strchr(image->tag, ':') + 1,
	                 d->instance);
	image->call = docker_call(image->docker, &(struct docker_request){
							 .method = "POST",
							 .path = path,
							 .on_body = on_tar,
							 .timeout_us = IMPORT_US,
							 .is_stream = true,
							 .on_done = on_imported,
							 .ctx = image,
						 });
}

static int check_named(const struct docker_image *image, const struct docker_answer *answer,
                       struct error *err)
{
	if (answer->status == 404)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "Docker has no image '%.80s': docker pull %.80s, or docker load",
		                 image->tag, image->tag);
	if (docker_has_volumes(answer->json))
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "image '%.80s' declares a VOLUME, which would be written to "
		                 "without a limit: build it without",
		                 image->tag);
	return 0;
}

static void on_looked(void *ctx, const struct docker_answer *answer)
{
	struct docker_image *image = ctx;
	struct error err = {0};

	image->call = NULL;
	if (answer->err || (answer->status != 200 && answer->status != 404))
		(void)docker_refusal(answer, "look for the image", &err);
	else if (image->is_named)
		(void)!check_named(image, answer, &err);
	else if (answer->status == 404 && image->was_made)
		(void)error_set(&err, ERR_BOX_FAILED, 0, "Docker lost the image of root '%s'",
		                image->root);
	if (error_is_set(&err))
		fail(image, &err);
	else if (answer->status == 200)
		be_ready(image);
	else
		import_root(image);
}

static void look(struct docker_image *image)
{
	cleanup_free char *path = xasprintf("/images/%s/json", image->tag);

	image->state = IMAGE_LOOKING;
	image->call = docker_call(image->docker, &(struct docker_request){
							 .method = "GET",
							 .path = path,
							 .timeout_us = LOOK_US,
							 .on_done = on_looked,
							 .ctx = image,
						 });
}

static void tell_ready(void *arg)
{
	tell(arg, NULL);
}

/* Of what the image is made: another root, or other names of ours, get another key. */
static int key_of(const struct docker *d, const char *root, char ret_key[KEY_LEN],
                  struct error *err)
{
	cleanup_buf struct buf names = BUF_INIT(ROOT_NAMES_MAX);
	cleanup_close int dir = open_root(d, root, err);
	uint8_t digest[SHA256_LEN];
	struct sha256 hash;
	struct stat st = {0};
	char about[ENGINE_ROOT_LEN + 128];
	int r;

	if (error_is_set(err))
		return -1;
	r = root_names(&names, d->first_uid, dir < 0);
	if (r >= 0 && dir >= 0 && fstat(dir, &st) < 0)
		r = -errno;
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "root '%s'", root);
	(void)snprintf(about, sizeof(about), "%s %llu %lld.%ld %lld.%ld", root,
	               (unsigned long long)st.st_ino, (long long)st.st_mtim.tv_sec,
	               st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	sha256_init(&hash);
	sha256_add(&hash, about, strlen(about) + 1);
	sha256_add(&hash, names.data, names.len);
	sha256_end(&hash, digest);
	for (size_t i = 0; i < KEY_LEN / 2; i++)
		(void)snprintf(ret_key + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

int docker_image_tag(const struct docker *d, const char *root, char ret_tag[DOCKER_TAG_LEN],
                     struct error *err)
{
	char key[KEY_LEN];

	if (key_of(d, root, key, err) < 0)
		return -1;
	(void)snprintf(ret_tag, DOCKER_TAG_LEN, "millibox/%s:%s", d->instance, key);
	return 0;
}

static int tag_of(const struct docker *d, const char *root, bool is_named,
                  char ret_tag[DOCKER_TAG_LEN], struct error *err)
{
	if (!is_named)
		return docker_image_tag(d, root, ret_tag, err);
	if (str_copy(ret_tag, DOCKER_TAG_LEN, d->options->image) < 0)
		return error_set(err, ERR_CONFIG, 0, "the name of the image is too long");
	return 0;
}

static struct docker_image *find_image(struct docker *d, const char *tag)
{
	struct docker_image *image;

	LIST_FOREACH (image, &d->images, struct docker_image, node)
		if (str_equal(image->tag, tag))
			return image;
	image = NEW(struct docker_image);
	image->docker = d;
	list_init(&image->waiting);
	(void)!str_copy(image->tag, sizeof(image->tag), tag);
	list_append(&d->images, &image->node);
	return image;
}

struct docker_image *docker_image_get(struct docker *d, const struct engine_request *request,
                                      struct docker_image_wait *wait, struct error *err)
{
	const char *root = request->flags & ENGINE_FLAG_IMAGE ? request->root : "";
	bool is_named = !root[0] && d->options->image;
	char tag[DOCKER_TAG_LEN];
	struct docker_image *image;

	if (tag_of(d, root, is_named, tag, err) < 0)
		return NULL;
	image = find_image(d, tag);
	(void)!str_copy(image->root, sizeof(image->root), root);
	image->is_named = is_named;
	list_append(&image->waiting, &wait->node);
	if (image->state == IMAGE_READY) {
		loop_cancel(d->loop, tell_ready, image);
		loop_defer(d->loop, tell_ready, image);
	} else if (image->state == IMAGE_UNKNOWN) {
		image->was_made = false;
		look(image);
	}
	return image;
}

void docker_image_put(struct docker_image_wait *wait)
{
	list_remove(&wait->node);
}

void docker_image_is_lost(struct docker_image *image)
{
	if (image->state == IMAGE_READY)
		image->state = IMAGE_UNKNOWN;
}

void docker_images_free(struct docker *d)
{
	struct docker_image *image;

	LIST_FOREACH (image, &d->images, struct docker_image, node) {
		loop_cancel(d->loop, tell_ready, image);
		docker_call_cancel(image->call);
		root_tar_free(image->tar);
		list_remove(&image->node);
		free(image);
	}
}
