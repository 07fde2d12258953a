/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "remote/docker.h"

/*
 * Theory of operation. Two lists, one after the other: containers, then images. Of each, what has
 * the label of this instance and a name that only it gives is removed, unless it is in use: a
 * container by a box; an image by a root that is still there, or by any container, which the server
 * knows.
 *
 * At start this removes what a killed engine left. Later it removes what was made by a call whose
 * answer was lost, after its box was gone.
 */

#define LIST_US   (30 * USEC_PER_SEC)
#define REMOVE_US (30 * USEC_PER_SEC)

struct sweep;

struct kind {
	const char *path;
	const char *all, *force; /* words for the list, and for the removal */
	/* Return: the name of the @i-th to remove, or NULL: not this one. */
	const char *(*find)(const struct sweep *s, size_t i);
	const struct kind *next;
};

struct sweep {
	struct docker *docker;
	const struct kind *kind;
	json_t *found; /* owned */
	size_t at;
	struct map *tags; /* of roots that are there */
	void (*on_done)(struct docker *d);
};

static void list_kind(struct sweep *s, const struct kind *kind);
static void remove_next(struct sweep *s);

/* Return: what follows @prefix in @name, if nothing else could be meant; else NULL. */
static const char *own_part(const char *name, const char *prefix)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789";

	if (!name || !str_has_prefix(name, prefix))
		return NULL;
	name += strlen(prefix);
	return name[0] && strspn(name, allowed) == strlen(name) ? name : NULL;
}

/* A label can be given to anything: name and label must fit. */
static const char *find_container(const struct sweep *s, size_t i)
{
	const char *name = docker_read_name(s->found, i);
	char prefix[DOCKER_NAME_LEN];
	const char *box;

	(void)snprintf(prefix, sizeof(prefix), "millibox-%s-", s->docker->instance);
	box = own_part(name, prefix);
	return box && !remote_has_box(s->docker->remote, box) ? name : NULL;
}

static const char *find_image(const struct sweep *s, size_t i)
{
	const char *tag = docker_read_tag(s->found, i);
	char prefix[DOCKER_NAME_LEN];

	(void)snprintf(prefix, sizeof(prefix), "millibox/%s:", s->docker->instance);
	return own_part(tag, prefix) && !map_get(s->tags, tag) ? tag : NULL;
}

static const struct kind images = {"images", "", "", find_image, NULL};
static const struct kind containers = {"containers", "all=1&", "force=1&v=1", find_container,
                                       &images};

static void end_sweep(struct sweep *s)
{
	json_decref(s->found);
	map_free(s->tags);
	free(s);
}

static void tell_done(struct sweep *s)
{
	void (*on_done)(struct docker * d) = s->on_done;

	s->on_done = NULL;
	if (on_done)
		on_done(s->docker);
}

static void end_kind(struct sweep *s)
{
	const struct kind *next = s->kind->next;

	json_decref(s->found);
	s->found = NULL;
	tell_done(s);
	if (next)
		list_kind(s, next);
	else
		end_sweep(s);
}

/* 404: gone meanwhile. 409: an image in use. */
static void on_removed(void *ctx, const struct docker_answer *answer)
{
	struct sweep *s = ctx;

	if (answer->err ||
	    (answer->status >= 300 && answer->status != 404 && answer->status != 409))
		log_warn("some %s of an earlier life are not removed yet, trying later",
		         s->kind->path);
	remove_next(s);
}

static void remove_next(struct sweep *s)
{
	while (s->at < json_array_size(s->found)) {
		const char *name = s->kind->find(s, s->at++);
		cleanup_free char *path = NULL;

		if (!name)
			continue;
		log_info("removing %s of an earlier life", name);
		path = xasprintf("/%s/%s?%s", s->kind->path, name, s->kind->force);
		(void)docker_call(s->docker, &(struct docker_request){
						     .method = "DELETE",
						     .path = path,
						     .timeout_us = REMOVE_US,
						     .on_done = on_removed,
						     .ctx = s,
					     });
		return;
	}
	end_kind(s);
}

static void on_listed(void *ctx, const struct docker_answer *answer)
{
	struct sweep *s = ctx;

	if (!answer->err && answer->status == 200)
		s->found = json_incref((json_t *)answer->json);
	else
		log_warn("the %s of an earlier life are not found yet, trying later",
		         s->kind->path);
	s->at = 0;
	remove_next(s);
}

static void list_kind(struct sweep *s, const struct kind *kind)
{
	cleanup_free char *path =
		xasprintf("/%s/json?%sfilters=%%7B%%22label%%22%%3A%%5B%%22" DOCKER_LABEL
	                  "%%3D%s%%22%%5D%%7D",
	                  kind->path, kind->all, s->docker->instance);

	s->kind = kind;
	(void)docker_call(s->docker, &(struct docker_request){
					     .method = "GET",
					     .path = path,
					     .timeout_us = LIST_US,
					     .on_done = on_listed,
					     .ctx = s,
				     });
}

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static void add_tag(struct sweep *s, const char *root)
{
	char tag[DOCKER_TAG_LEN];
	struct error err = {0};

	/* Gone meanwhile, or no root: there is no image of it to keep. */
	if (docker_image_tag(s->docker, root, tag, &err) == 0)
		(void)!map_put(s->tags, tag, s);
}

static void add_roots(struct sweep *s, const char *base)
{
	int fd = fd_open(base, O_RDONLY | O_DIRECTORY, 0);
	attr_cleanup(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		(void)fd_close(fd);
		return;
	}
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < ENGINE_ROOT_LEN)
			add_tag(s, entry->d_name);
}

void docker_sweep(struct docker *d, void (*on_done)(struct docker *d))
{
	struct sweep *s = NEW(struct sweep);

	s->docker = d;
	s->on_done = on_done;
	s->tags = map_new();
	add_tag(s, "");
	for (size_t i = 0; i < d->options->bases_count; i++)
		add_roots(s, d->options->bases[i]);
	list_kind(s, &containers);
}
