/* SPDX-License-Identifier: Apache-2.0 */
#include "core/imports.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "core/templates.h"
#include "io/loop.h"

/*
 * Theory of operation. Two pipes per import: the archive goes into the one, the answer comes out of
 * the other, a JSON object. A newline behind it is the word of the importer's parent that the root
 * has its name. What parsed the archive could write one too; then the root is not there, which is
 * found out when the template is settled.
 */

#define IMPORTS_MAX 4
/* Of one tenant: a slow one must not keep the others out. */
#define IMPORTS_OF_TENANT 2
#define ANSWER_MAX        (64u * 1024 + 16)
#define ROOT_PREFIX       "img-"

/* As in import/import.h: one struct per message. */
enum {
	OP_IMPORT = 1,
	OP_REMOVE = 2
};
struct order {
	uint32_t op;
	char name[BOX_ROOT_LEN];
};

struct imports {
	struct imports_config config;
	struct list all;
	size_t count;
};

struct import {
	struct list node;
	struct imports *owner;
	struct import_events events;
	char *tenant, *id, *name;
	char root[BOX_ROOT_LEN];
	int in, out; /* owned: the archive goes to @in; the answer comes from @out */
	struct watch *in_watch, *out_watch;
	struct buf answer;
	struct kept *kept; /* its template is being written; NULL: not yet */
};

/* A template whose import is over when it is on the disk. */
struct kept {
	struct import *import;     /* NULL: nobody waits any more */
	struct template *template; /* a reference */
};

static int give_order(struct imports *all, uint32_t op, const char *name, const int *fds,
                      size_t count)
{
	struct order order = {.op = op};
	int r = str_copy(order.name, sizeof(order.name), name);

	if (all->config.sock < 0)
		return -ENOENT;
	return r < 0 ? r : fd_send(all->config.sock, &order, sizeof(order), fds, count);
}

static void import_free(struct import *i)
{
	list_remove(&i->node);
	i->owner->count--;
	if (i->kept)
		i->kept->import = NULL;
	watch_free(i->in_watch);
	watch_free(i->out_watch);
	(void)fd_close(i->in);
	(void)fd_close(i->out);
	buf_done(&i->answer);
	free(i->tenant);
	free(i->id);
	free(i->name);
	free(i);
}

void import_end(struct import *i)
{
	watch_free(TAKE_PTR(i->in_watch));
	i->in = fd_close(i->in);
}

void import_cancel(struct import *i)
{
	import_free(i);
}

static void on_room(void *ctx, int events attr_unused)
{
	struct import *i = ctx;

	watch_set(i->in_watch, 0);
	i->events.on_room(i->events.ctx);
}

size_t import_write(struct import *i, const char *data, size_t len)
{
	size_t taken = 0;

	while (i->in >= 0 && taken < len) {
		ssize_t n = write(i->in, data + taken, len - taken);

		if (n > 0) {
			taken += (size_t)n;
		} else if (errno == EAGAIN) {
			watch_set(i->in_watch, WATCH_WRITE);
			return taken;
		} else if (errno != EINTR) {
			/* It has given up: its answer says why. */
			import_end(i);
		}
	}
	return len;
}

/* What an image says about variables is kept as far as callers may say it, too. */
static char **take_env(const json_t *list)
{
	char **env = xcalloc(json_array_size(list) + 1, sizeof(*env));
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *variable = json_string_value(json_array_get(list, i));

		if (variable && template_env_is_good(variable))
			env[n++] = xstrdup(variable);
	}
	return env;
}

static void end(struct import *i, struct template *t, const struct error *err)
{
	const struct import_events events = i->events;

	import_free(i);
	if (err)
		events.on_failed(events.ctx, err);
	else
		events.on_done(events.ctx, t);
}

static void on_kept(void *ctx, const struct error *err)
{
	struct kept *kept = ctx;
	struct import *i = kept->import;

	/* Nobody will ever name its root. */
	if (i && err)
		(void)!give_order(i->owner, OP_REMOVE, i->root, NULL, 0);
	if (i) {
		i->kept = NULL;
		end(i, kept->template, err);
	}
	template_unref(kept->template);
	free(kept);
}

/* Return: 0: on_kept follows; 1: it is done; -1. */
static int adopt(struct import *i, const json_t *answer, struct template **ret_template,
                 struct error *err)
{
	cleanup_free char *config = json_dumps(answer, JSON_COMPACT);
	struct template_record record = {
		.tenant = i->tenant, .root = i->root, .config = config ? config : "{}"};
	struct kept *kept = NEW(struct kept);
	const struct templates_done done = {on_kept, kept};
	int r;

	record.spec.id = xstrdup(i->id);
	record.spec.name = xstrdup(i->name);
	record.spec.image = xstrdup(i->id);
	record.spec.env = take_env(json_object_get(answer, "env"));
	r = templates_adopt(i->owner->config.templates, &record, &done, ret_template, err);
	template_spec_done(&record.spec);
	if (r == 0) {
		kept->import = i;
		kept->template = template_ref(*ret_template);
		i->kept = kept;
	} else {
		free(kept);
	}
	return r;
}

static int conclude(struct import *i, struct template **ret_template, struct error *err)
{
	bool whole = i->answer.len > 0 && i->answer.data[i->answer.len - 1] == '\n';
	json_t *answer = json_loadb(i->answer.data ? i->answer.data : "", i->answer.len, 0, NULL);
	const char *why = json_string_value(json_object_get(answer, "error"));
	const char *code = json_string_value(json_object_get(answer, "code"));
	int r;

	if (why)
		r = error_set(err,
		              code && str_equal(code, error_text(ERR_TOO_LARGE)) ? ERR_TOO_LARGE
		                                                                 : ERR_INVALID,
		              0, "%.200s", why);
	else if (!answer || !whole)
		r = error_set(err, ERR_UNAVAILABLE, 0, "the importer ended before it was done");
	else
		r = adopt(i, answer, ret_template, err);
	/* Nobody will ever name it. */
	if (r < 0 && whole)
		(void)!give_order(i->owner, OP_REMOVE, i->root, NULL, 0);
	json_decref(answer);
	return r;
}

static void finish(struct import *i)
{
	struct template *t = NULL;
	struct error err = {0};
	int r = conclude(i, &t, &err);

	watch_free(TAKE_PTR(i->out_watch));
	if (r != 0)
		end(i, t, r < 0 ? &err : NULL);
}

static void on_answer(void *ctx, int events attr_unused)
{
	struct import *i = ctx;
	char data[4096];
	ssize_t n = read(i->out, data, sizeof(data));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* More than was agreed makes it no JSON, and so a failure. */
	if (n > 0)
		(void)buf_add_some(&i->answer, data, (size_t)n);
	else
		finish(i);
}

static int open_pipes(struct import *i, struct error *err)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	int r = fd_pipe(in, 0);

	if (r >= 0)
		r = fd_pipe(out, 0);
	if (r >= 0) {
		const int fds[] = {in[0], out[1]};

		i->in = TAKE_FD(in[1]);
		i->out = TAKE_FD(out[0]);
		r = give_order(i->owner, OP_IMPORT, i->root, fds, ARRAY_SIZE(fds));
	}
	for (size_t n = 0; n < 2; n++) {
		(void)fd_close(in[n]);
		(void)fd_close(out[n]);
	}
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "the importer cannot be reached");
	return 0;
}

static size_t count_of(const struct imports *all, const char *tenant)
{
	const struct import *i;
	size_t count = 0;

	LIST_FOREACH (i, &all->all, struct import, node)
		count += str_equal(i->tenant, tenant) ? 1 : 0;
	return count;
}

static int check(const struct imports *all, const struct import_request *request, struct error *err)
{
	if (!id_is_valid(request->id, TEMPLATE_ID_MAX))
		return error_field(err, "id", "must be 1 to %d of A-Z a-z 0-9 _ -",
		                   TEMPLATE_ID_MAX);
	if (templates_find(all->config.templates, request->tenant, request->id))
		return error_set(err, ERR_CONFLICT, 0, "there is a template '%s'", request->id);
	if (all->count >= IMPORTS_MAX)
		return error_set(err, ERR_BUSY, 0, "%zu imports are under way", all->count);
	if (count_of(all, request->tenant) >= IMPORTS_OF_TENANT)
		return error_set(err, ERR_BUSY, 0, "%d imports of this tenant are under way",
		                 IMPORTS_OF_TENANT);
	return 0;
}

int imports_begin(struct imports *all, const struct import_request *request,
                  const struct import_events *events, struct import **ret_import, struct error *err)
{
	struct import *i;

	if (check(all, request, err) < 0)
		return -1;
	i = NEW(struct import);
	*i = (struct import){.owner = all, .events = *events, .in = -1, .out = -1};
	buf_init(&i->answer, ANSWER_MAX);
	i->tenant = xstrdup(request->tenant);
	i->id = xstrdup(request->id);
	i->name = xstrdup(request->name ? request->name : request->id);
	memcpy(i->root, ROOT_PREFIX, strlen(ROOT_PREFIX));
	id_random(i->root + strlen(ROOT_PREFIX), 20);
	list_append(&all->all, &i->node);
	all->count++;
	if (open_pipes(i, err) < 0) {
		import_free(i);
		return -1;
	}
	i->in_watch = watch_new(all->config.loop, i->in, on_room, i);
	i->out_watch = watch_new(all->config.loop, i->out, on_answer, i);
	watch_set(i->out_watch, WATCH_READ);
	*ret_import = i;
	return 0;
}

static void on_unused(void *ctx, const char *root)
{
	struct imports *all = ctx;

	if (give_order(all, OP_REMOVE, root, NULL, 0) < 0)
		log_warn("the root %s stays until the next start, ignoring", root);
}

/* Roots of imports that nobody knows of. */
static void sweep(struct imports *all)
{
	int fd = fd_open(all->config.roots, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (str_has_prefix(entry->d_name, ROOT_PREFIX) &&
		    !templates_uses_root(all->config.templates, entry->d_name))
			on_unused(all, entry->d_name);
	if (dir)
		(void)closedir(dir);
	else
		(void)fd_close(fd);
}

struct imports *imports_new(const struct imports_config *config)
{
	struct imports *all = NEW(struct imports);

	all->config = *config;
	list_init(&all->all);
	templates_set_unused(config->templates, on_unused, all);
	sweep(all);
	return all;
}

void imports_free(struct imports *all)
{
	struct import *i;

	if (!all)
		return;
	LIST_FOREACH (i, &all->all, struct import, node)
		import_free(i);
	templates_set_unused(all->config.templates, NULL, NULL);
	(void)fd_close(all->config.sock);
	free(all);
}
