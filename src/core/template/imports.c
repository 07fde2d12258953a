/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/imports.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/list.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/observe/metrics.h"
#include "core/template/images.h"
#include "core/template/templates.h"
#include "core/tenant/tenant.h"
#include "import/order.h"
#include "io/loop.h"
#include "json/json_dump.h"

/* Two pipes per import: the archive goes into one, progress lines and a JSON object come out of the
 * other (import/order.h). A final newline from the importer's parent means that the root has its
 * final name. A compromised parser could write one too; settling the template then finds no root.
 * Progress is only displayed. */

#define ANSWER_MAX (IMPORT_RESULT_MAX + 16)
#define TURN_US    (5 * USEC_PER_SEC) /* one of those that wait begins, roughly */

static_assert(IMPORT_NAME_LEN == BOX_ROOT_LEN, "roots have the same names everywhere");

struct imports {
	struct imports_config config;
	struct list all; /* of a tenant: oldest first; of tenants: the next turn first */
	size_t count, waiting;
};

struct import {
	struct list node;
	struct imports *owner;
	struct import_events events;
	char *tenant, *id, *name;
	char root[BOX_ROOT_LEN];
	int in, out; /* owned */
	struct watch *in_watch, *out_watch;
	bool tree;
	bool ended; /* import_end came while it waited */
	struct buf answer;
	struct import_limits limits;
	bool quota_bound; /* the tenant's quota is below the setting */
	struct import_info info;
	struct kept *kept; /* NULL: its template is not being written */
};

/* A template whose import ends when it is on disk. */
struct kept {
	struct import *import;     /* NULL: cancelled or gone */
	struct template *template; /* a reference */
};

static const char *const state_names[] = {
	[IMPORT_WAITING] = "waiting",
	[IMPORT_RECEIVING] = "receiving",
	[IMPORT_UNPACKING] = "unpacking",
};
static_assert(ARRAY_SIZE(state_names) == IMPORT_STATE_COUNT, "every state has its name");

const char *import_state_name(enum import_state state)
{
	return state_names[state];
}

static int give_order(struct imports *all, const struct import_order *order, const int *fds,
                      size_t count)
{
	if (all->config.sock < 0)
		return -ENOENT;
	return fd_send(all->config.sock, order, sizeof(*order), fds, count);
}

static void remove_root(void *ctx, const char *root)
{
	struct imports *all = ctx;
	struct import_order order = {.op = IMPORT_OP_REMOVE};

	if (str_copy(order.name, sizeof(order.name), root) < 0 ||
	    give_order(all, &order, NULL, 0) < 0)
		log_warn("cannot remove the root %s before the next start, ignoring", root);
}

static void count_result(const struct imports *all, const char *result)
{
	metrics_count_for(all->config.metrics, METRIC_IMPORTS, METRIC_LABELS(result), 1);
}

static struct tenant *tenant_of(const struct imports *all, const char *name)
{
	return all->config.tenants ? tenants_find(all->config.tenants, name) : NULL;
}

static bool is_waiting(const struct import *i)
{
	return i->info.state == IMPORT_WAITING;
}

static void start_waiting(void *ctx);

static void import_free(struct import *i)
{
	list_remove(&i->node);
	i->owner->count--;
	i->owner->waiting -= is_waiting(i);
	if (i->owner->waiting > 0) /* not from inside a caller's event */
		loop_defer(i->owner->config.loop, start_waiting, i->owner);
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
	if (is_waiting(i)) {
		i->ended = true;
		return;
	}
	watch_free(TAKE_PTR(i->in_watch));
	i->in = fd_close(i->in);
	i->info.state = IMPORT_UNPACKING;
}

void import_cancel(struct import *i)
{
	/* Too late: the write is queued. */
	count_result(i->owner, i->kept ? "done" : "cancelled");
	import_free(i);
}

static void on_room(void *ctx, int events attr_unused)
{
	struct import *i = ctx;

	watch_set(i->in_watch, 0);
	i->events.on_room(i->events.ctx);
}

static void end_import(struct import *i, struct template *t, const struct error *err)
{
	const struct import_events events = i->events;

	count_result(i->owner, err ? "failed" : "done");
	import_free(i);
	if (err)
		events.on_failed(events.ctx, err);
	else
		events.on_done(events.ctx, t);
}

static int refuse_length(uint64_t max, struct error *err)
{
	(void)error_set(err, ERR_TOO_LARGE, 0, "the archive has more than %llu bytes",
	                (unsigned long long)max);
	(void)!str_copy(err->field, sizeof(err->field), "imports." IMPORT_LIMIT_ARCHIVE);
	return -1;
}

static size_t write_some(struct import *i, const char *data, size_t len)
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
			/* The importer gave up: its answer says why. */
			import_end(i);
		}
	}
	return len;
}

size_t import_write(struct import *i, const char *data, size_t len)
{
	struct error err = {0};
	size_t taken;

	if (is_waiting(i))
		return 0;
	/* Nothing else bounds an archive that unpacks to nothing. */
	if (len > i->limits.archive_bytes - i->info.received) {
		(void)refuse_length(i->limits.archive_bytes, &err);
		end_import(i, NULL, &err);
		return 0;
	}
	taken = write_some(i, data, len);
	i->info.received += taken;
	i->info.updated_ms = clock_real_ms();
	return taken;
}

/* Keep an image's variables only if callers could set them too. */
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

static void on_kept(void *ctx, const struct error *err)
{
	struct kept *kept = ctx;
	struct import *i = kept->import;

	if (i) {
		i->kept = NULL;
		end_import(i, kept->template, err);
	}
	template_unref(kept->template);
	free(kept);
}

/* Return: 0: on_kept follows; 1: done; -1. */
static int adopt_root(struct import *i, const json_t *answer, struct template **ret_template,
                      struct error *err)
{
	cleanup_free char *config = json_dump_text(answer, JSON_COMPACT);
	const struct image_record root = {
		.tenant = i->tenant, .name = i->root, .bytes = image_config_bytes(config)};
	attr_cleanup(image_unrefp) struct image *image =
		images_hold(templates_images(i->owner->config.templates), &root, err);
	struct template_record record = {.tenant = i->tenant,
	                                 .root = i->root,
	                                 .image = image,
	                                 .config = config ? config : "{}"};
	struct kept *kept = NEW(struct kept);
	const struct templates_done done = {on_kept, kept};
	int r;

	if (!image) {
		remove_root(i->owner, i->root); /* no template will */
		free(kept);
		return -1;
	}
	record.spec.id = xstrdup(i->id);
	record.spec.name = xstrdup(i->name);
	record.spec.image = xstrdup(i->id);
	record.spec.env = take_env(json_object_get(answer, "env"));
	/* On failure, dropping @image releases the root. */
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

/* Like adopt_root, without a template. */
static int hand_out_tree(struct import *i, const json_t *answer, struct error *err)
{
	cleanup_free char *config = json_dump_text(answer, JSON_COMPACT);
	const struct image_record root = {
		.tenant = i->tenant, .name = i->root, .bytes = image_config_bytes(config)};
	struct image *image = images_hold(templates_images(i->owner->config.templates), &root, err);
	const struct import_events events = i->events;

	if (!image) {
		remove_root(i->owner, i->root);
		return -1;
	}
	count_result(i->owner, "done");
	import_free(i);
	events.on_tree(events.ctx, image, config ? config : "{}");
	return 0;
}

static int report_failure(const struct import *i, const json_t *answer, struct error *err)
{
	static const char *const limits[] = {IMPORT_LIMIT_ARCHIVE, IMPORT_LIMIT_ROOT,
	                                     IMPORT_LIMIT_FILE, IMPORT_LIMIT_ENTRIES,
	                                     IMPORT_LIMIT_LAYERS};
	const char *limit = json_string_value(json_object_get(answer, "limit"));
	size_t n = 0;

	while (limit && n < ARRAY_SIZE(limits) && !str_equal(limit, limits[n]))
		n++;
	if (!limit || n == ARRAY_SIZE(limits))
		return error_set(err, ERR_INVALID, 0, "%.200s",
		                 json_string_value(json_object_get(answer, "error")));
	if (i->quota_bound && str_equal(limit, IMPORT_LIMIT_ROOT))
		return tenant_refuse_image(tenant_of(i->owner, i->tenant), err);
	(void)error_set(err, ERR_TOO_LARGE, 0, "%.200s",
	                json_string_value(json_object_get(answer, "error")));
	(void)!str_format(err->field, sizeof(err->field), "imports.%s", limit);
	return -1;
}

static int conclude_import(struct import *i, struct template **ret_template, struct error *err)
{
	bool whole = i->answer.len > 0 && i->answer.data[i->answer.len - 1] == '\n';
	json_auto_t *answer =
		json_loadb(i->answer.data ? i->answer.data : "", i->answer.len, 0, NULL);

	if (json_is_string(json_object_get(answer, "error")))
		return report_failure(i, answer, err);
	if (whole && answer && i->tree)
		return hand_out_tree(i, answer, err);
	if (whole && answer)
		return adopt_root(i, answer, ret_template, err);
	return error_set(err, ERR_UNAVAILABLE, 0, "the importer ended unexpectedly");
}

/* "P LAYERS LAYER ENTRIES BYTES"; ignore anything else. */
static void take_progress(struct import *i, char *line)
{
	uint64_t *const places[] = {&i->info.layers, &i->info.layer, &i->info.entries,
	                            &i->info.bytes};
	uint64_t values[ARRAY_SIZE(places)];
	char *word = line + strlen(IMPORT_PROGRESS);

	for (size_t n = 0; n < ARRAY_SIZE(places); n++) {
		char *stop = word + strcspn(word, " ");
		bool last = *stop == '\0';

		*stop = '\0';
		if (parse_u64(word, &values[n]) < 0 || values[n] > INT64_MAX ||
		    last != (n + 1 == ARRAY_SIZE(places)))
			return;
		word = stop + 1;
	}
	for (size_t n = 0; n < ARRAY_SIZE(places); n++)
		*places[n] = values[n];
	i->info.updated_ms = clock_real_ms();
}

static void on_answer(void *ctx, int events attr_unused)
{
	struct import *i = ctx;
	struct buf *b = &i->answer;
	char data[4096], *stop;
	ssize_t n = read(i->out, data, sizeof(data));
	struct template *t = NULL;
	struct error err = {0};
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		watch_free(TAKE_PTR(i->out_watch));
		r = conclude_import(i, &t, &err); /* a tree's @i may be gone */
		if (r != 0)
			end_import(i, t, r < 0 ? &err : NULL);
		return;
	}
	/* Excess makes it invalid JSON: a failure. */
	(void)buf_add_some(b, data, (size_t)n);
	/* Remove complete progress lines. */
	while (b->len > strlen(IMPORT_PROGRESS) && str_has_prefix(b->data, IMPORT_PROGRESS) &&
	       (stop = memchr(b->data, '\n', b->len))) {
		*stop = '\0';
		take_progress(i, b->data);
		buf_consume(b, (size_t)(stop + 1 - b->data));
	}
}

static int open_pipes(struct import *i, struct error *err)
{
	struct import_order order = {.op = i->tree ? IMPORT_OP_TREE : IMPORT_OP_IMPORT,
	                             .limits = i->limits};
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	int r = fd_pipe(in, 0);

	if (r >= 0)
		r = fd_pipe(out, 0);
	if (r >= 0) {
		const int fds[] = {in[0], out[1]};

		i->in = TAKE_FD(in[1]);
		i->out = TAKE_FD(out[0]);
		memcpy(order.name, i->root, sizeof(order.name));
		r = give_order(i->owner, &order, fds, ARRAY_SIZE(fds));
	}
	for (size_t n = 0; n < 2; n++) {
		(void)fd_close(in[n]);
		(void)fd_close(out[n]);
	}
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "the importer cannot be reached");
	return 0;
}

/* Quota left if all current imports use all they may. */
static uint64_t room_of(const struct imports *all, const char *tenant)
{
	uint64_t room = tenant_image_room(tenant_of(all, tenant));
	const struct import *i;

	if (room == UINT64_MAX)
		return room;
	LIST_FOREACH (i, &all->all, struct import, node)
		/* With @kept, the image is already counted. */
		if (str_equal(i->tenant, tenant) && !i->kept)
			room -= i->limits.root_bytes < room ? i->limits.root_bytes : room;
	return room;
}

static size_t count_of(const struct imports *all, const char *tenant, bool waiting)
{
	const struct import *i;
	size_t count = 0;

	LIST_FOREACH (i, &all->all, struct import, node)
		count += is_waiting(i) == waiting && str_equal(i->tenant, tenant) ? 1 : 0;
	return count;
}

static bool may_run(const struct imports *all, const char *tenant)
{
	const struct config *c = all->config.config;

	return all->count - all->waiting < c->imports_max &&
	       count_of(all, tenant, false) < c->imports_max_tenant;
}

static struct import *next_waiting(const struct imports *all)
{
	struct import *i;

	LIST_FOREACH (i, &all->all, struct import, node)
		if (is_waiting(i) && may_run(all, i->tenant))
			return i;
	return NULL;
}

/* No overtaking: one whose turn it is starts soon. */
static bool must_wait(const struct imports *all, const char *tenant)
{
	return !may_run(all, tenant) || next_waiting(all);
}

static const struct import *first_waiting(const struct imports *all, const char *tenant)
{
	const struct import *i;

	LIST_FOREACH (i, &all->all, struct import, node)
		if (is_waiting(i) && str_equal(i->tenant, tenant))
			return i;
	return NULL;
}

/* As in scheduler.c: a full queue rejects a tenant that has its equal share of it. */
static bool is_full(const struct imports *all, const char *tenant)
{
	size_t max = all->config.config->imports_queued;
	size_t own = count_of(all, tenant, true);
	size_t others = 0; /* tenants that wait */
	const struct import *i;

	if (all->waiting < max)
		return false;
	LIST_FOREACH (i, &all->all, struct import, node)
		others += first_waiting(all, i->tenant) == i && !str_equal(i->tenant, tenant);
	return max == 0 || own >= (max > others + 1 ? max / (others + 1) : 1);
}

static int check_template(const struct imports *all, const struct import_request *request,
                          struct error *err)
{
	struct tenant *tenant = tenant_of(all, request->tenant);

	if (templates_check_names(request->id, request->name ? request->name : request->id, err) <
	    0)
		return -1;
	if (templates_find(all->config.templates, request->tenant, request->id))
		return error_set(err, ERR_CONFLICT, 0, "template '%s' already exists", request->id);
	/* There must be room for it. */
	if (tenant_take_template(tenant, err) < 0)
		return -1;
	tenant_drop_template(tenant);
	return 0;
}

/* Called before the body is read, to spare the caller a useless upload. */
static int check_request(const struct imports *all, const struct import_request *request,
                         bool waits, struct error *err)
{
	const struct config *c = all->config.config;
	struct tenant *tenant = tenant_of(all, request->tenant);
	uint64_t room;

	if (!request->tree && check_template(all, request, err) < 0)
		return -1;
	if (waits && is_full(all, request->tenant))
		return error_later(err, ERR_BUSY, TURN_US,
		                   "%zu imports are running and %zu waiting",
		                   all->count - all->waiting, all->waiting);
	if (request->length != IMPORT_LENGTH_UNKNOWN && request->length > c->import_archive_bytes)
		return refuse_length(c->import_archive_bytes, err);
	/* There must be room for a byte of image. */
	/* One that waits needs its room later. */
	room = waits ? tenant_image_room(tenant) : room_of(all, request->tenant);
	return room > 0 ? 0 : tenant_refuse_image(tenant, err);
}

static void set_limits(struct import *i)
{
	const struct config *c = i->owner->config.config;
	uint64_t room = room_of(i->owner, i->tenant);

	i->limits = (struct import_limits){
		.archive_bytes = c->import_archive_bytes,
		.root_bytes = c->import_root_bytes,
		.file_bytes = c->import_file_bytes,
		.entries = c->import_entries,
		.layers = c->import_layers,
		.memory_bytes = c->import_memory_bytes,
		.cpu_seconds = c->import_cpu_us / USEC_PER_SEC,
	};
	i->quota_bound = room < i->limits.root_bytes;
	if (i->quota_bound)
		i->limits.root_bytes = room;
}

static int start_import(struct import *i, struct error *err)
{
	struct imports *all = i->owner;

	set_limits(i);
	if (i->limits.root_bytes == 0) /* used up while it waited */
		return tenant_refuse_image(tenant_of(all, i->tenant), err);
	if (open_pipes(i, err) < 0)
		return -1;
	i->info.state = IMPORT_RECEIVING;
	i->info.updated_ms = clock_real_ms();
	i->in_watch = watch_new(all->config.loop, i->in, on_room, i);
	i->out_watch = watch_new(all->config.loop, i->out, on_answer, i);
	watch_set(i->out_watch, WATCH_READ);
	if (i->ended)
		import_end(i);
	return 0;
}

/* The others of its tenant go behind those of other tenants. */
static void pass_turn(struct imports *all, const char *tenant)
{
	struct list passed;
	struct import *i;

	list_init(&passed);
	LIST_FOREACH (i, &all->all, struct import, node)
		if (is_waiting(i) && str_equal(i->tenant, tenant)) {
			list_remove(&i->node);
			list_append(&passed, &i->node);
		}
	LIST_FOREACH (i, &passed, struct import, node) {
		list_remove(&i->node);
		list_append(&all->all, &i->node);
	}
}

static void start_waiting(void *ctx)
{
	struct imports *all = ctx;
	struct error err = {0};
	struct import *i = next_waiting(all);

	if (!i)
		return;
	if (start_import(i, &err) < 0) {
		end_import(i, NULL, &err); /* the next one follows */
		return;
	}
	all->waiting--;
	pass_turn(all, i->tenant);
	if (all->waiting > 0)
		loop_defer(all->config.loop, start_waiting, all);
	i->events.on_room(i->events.ctx);
}

int imports_begin(struct imports *all, const struct import_request *request,
                  const struct import_events *events, struct import **ret_import, struct error *err)
{
	bool waits = must_wait(all, request->tenant);
	struct import *i;

	if (check_request(all, request, waits, err) < 0)
		return -1;
	i = NEW(struct import);
	*i = (struct import){
		.owner = all, .events = *events, .in = -1, .out = -1, .tree = request->tree};
	buf_init(&i->answer, ANSWER_MAX);
	i->tenant = xstrdup(request->tenant);
	i->id = xstrdup(request->id);
	i->name = xstrdup(request->name ? request->name : request->id);
	i->info = (struct import_info){.id = i->id,
	                               .name = i->name,
	                               .length = request->length,
	                               .started_ms = clock_real_ms()};
	i->info.updated_ms = i->info.started_ms;
	static_assert(sizeof(IMAGE_ROOT_PREFIX) == sizeof(LAYER_ROOT_PREFIX), "one length");
	memcpy(i->root, i->tree ? LAYER_ROOT_PREFIX : IMAGE_ROOT_PREFIX, strlen(IMAGE_ROOT_PREFIX));
	id_random(i->root + strlen(IMAGE_ROOT_PREFIX), 20);
	list_append(&all->all, &i->node);
	all->count++;
	all->waiting++;
	if (!waits) {
		if (start_import(i, err) < 0) {
			import_free(i);
			return -1;
		}
		all->waiting--;
	}
	*ret_import = i;
	return 0;
}

size_t imports_count(const struct imports *all)
{
	return all->count;
}

bool imports_at(const struct imports *all, const char *tenant, size_t index,
                struct import_info *ret_info)
{
	const struct import *i;

	LIST_FOREACH (i, &all->all, struct import, node) {
		if (i->tree || !str_equal(i->tenant, tenant) || index-- > 0)
			continue;
		*ret_info = i->info;
		return true;
	}
	return false;
}

bool imports_find(const struct imports *all, const char *tenant, const char *id,
                  struct import_info *ret_info)
{
	const struct import *i;

	LIST_FOREACH (i, &all->all, struct import, node) {
		if (i->tree || !str_equal(i->tenant, tenant) || !str_equal(i->id, id))
			continue;
		*ret_info = i->info;
		return true;
	}
	return false;
}

void imports_measure(void *ctx, struct metrics *m)
{
	const struct imports *all = ctx;
	const struct images *images = templates_images(all->config.templates);

	metrics_set(m, METRIC_IMPORTS_RUNNING, (double)(all->count - all->waiting));
	metrics_set(m, METRIC_IMPORTS_WAITING, (double)all->waiting);
	metrics_set(m, METRIC_TEMPLATES, (double)templates_made(all->config.templates));
	metrics_set(m, METRIC_IMAGES, (double)images_count(images));
	metrics_set(m, METRIC_IMAGE_BYTES, (double)images_bytes(images));
}

void imports_sweep(struct imports *all)
{
	const struct images *images = templates_images(all->config.templates);
	int fd = fd_open(all->config.roots, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if ((str_has_prefix(entry->d_name, IMAGE_ROOT_PREFIX) ||
		     str_has_prefix(entry->d_name, LAYER_ROOT_PREFIX)) &&
		    !images_find(images, entry->d_name))
			remove_root(all, entry->d_name);
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
	images_set_unused(templates_images(config->templates), remove_root, all);
	return all;
}

void imports_free(struct imports *all)
{
	struct import *i;

	if (!all)
		return;
	LIST_FOREACH (i, &all->all, struct import, node)
		import_free(i);
	loop_cancel(all->config.loop, start_waiting, all);
	images_set_unused(templates_images(all->config.templates), NULL, NULL);
	(void)fd_close(all->config.sock);
	free(all);
}
