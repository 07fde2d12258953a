/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver.h"

#include "base/buf.h"
#include "base/str.h"
#include "driver/internal.h"
#include "wire/layer.h"
#include <signal.h>
#include <string.h>

static void append_layer_names(uint32_t layers, struct buf *b)
{
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if ((layers & LAYER_BIT(i)) &&
		    buf_addf(b, "%s%s", b->len ? ", " : "", layer_name(i)) < 0)
			return; /* the message is full */
}

int driver_check_layers(uint32_t have, uint32_t required, struct error *err)
{
	cleanup_buf struct buf names = BUF_INIT(200);

	if ((required & ~have) == 0)
		return 0;
	append_layer_names(required & ~have, &names);
	return error_set(err, ERR_UNAVAILABLE, 0, "required isolation is missing: %.180s",
	                 names.data);
}

int box_create(struct driver *d, const struct box_spec *spec, const struct box_events *events,
               struct box **ret_box, struct error *err)
{
	uint32_t required = spec->required_layers | d->caps.required_layers;

	if (box_spec_check(spec, err) < 0)
		return error_wrap(err, "box");
	if (driver_check_layers(d->caps.layers, required, err) < 0)
		return -1;
	/* Exactly what was decided. */
	if (spec->network != BOX_NETWORK_NONE &&
	    !(d->caps.networks & BOX_NETWORK_BIT(spec->network)))
		return error_set(err, ERR_UNAVAILABLE, 0, "driver '%s' does not support network %s",
		                 d->ops->name, box_network_name(spec->network));
	if (spec->root[0] && !d->caps.has_roots)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "only the host's root is supported: no overlayfs");
	return d->ops->create(d, spec, events, ret_box, err);
}

int box_adopt(struct driver *d, const struct box_spec *spec, const struct box_events *events,
              struct box **ret_box, bool *ret_frozen, struct error *err)
{
	if (box_spec_check(spec, err) < 0)
		return error_wrap(err, "box");
	if (!d->ops->adopt)
		return error_set(err, ERR_NOT_FOUND, 0,
		                 "boxes of driver '%s' do not outlive the daemon", d->ops->name);
	return d->ops->adopt(d, spec, events, ret_box, ret_frozen, err);
}

void driver_settle(struct driver *d)
{
	if (d->ops->settle)
		d->ops->settle(d);
}

void driver_leave(struct driver *d)
{
	if (d->ops->leave)
		d->ops->leave(d);
}

void box_ack(struct box *box, uint32_t exec_id)
{
	if (box->spec.keep)
		link_ack(box->link, exec_id);
}

/* The agent resolves paths beneath their directory itself; this check names the field. */
static bool is_path_beneath(const char *path)
{
	size_t len;

	for (const char *at = path;; at += len + 1) {
		len = strcspn(at, "/");
		if (len == 0 || (len == 1 && at[0] == '.') ||
		    (len == 2 && memcmp(at, "..", 2) == 0))
			return false;
		if (at[len] == '\0')
			return true;
	}
}

static int check_files(const struct exec_file *files, size_t count, struct error *err)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++) {
		const struct exec_file *file = &files[i];

		if (!is_path_beneath(file->path))
			return error_field(err, "files", "'%.80s' is not a path in the workspace",
			                   file->path);
		if (file->mode & ~0777U)
			return error_field(err, "files", "'%.80s' has mode %o", file->path,
			                   file->mode);
		if (file->len > BOX_FILES_MAX - total)
			return error_set(err, ERR_TOO_LARGE, 0,
			                 "files of a program exceed %u bytes", BOX_FILES_MAX);
		total += file->len;
	}
	return 0;
}

static int check_label(const struct box *box, const char *label, struct error *err)
{
	if (!box->spec.keep)
		return 0;
	if (!label || !*label || strlen(label) > BOX_LABEL_MAX)
		return error_field(err, "label", "must be 1 to %d characters", BOX_LABEL_MAX);
	return 0;
}

static bool has_source(const struct run_plan *plan)
{
	for (size_t i = 0; i < plan->files_count; i++)
		if (plan->files[i].source && str_equal(plan->files[i].path, plan->source))
			return true;
	return false;
}

int box_exec(struct box *box, const struct exec_plan *plan, struct error *err)
{
	if (plan->id == 0)
		return error_field(err, "id", "must not be 0");
	if (!plan->argv[0] || plan->argv[0][0] != '/')
		return error_field(err, "argv", "must start with an absolute path");
	if (plan->cwd[0] && !is_path_beneath(plan->cwd))
		return error_field(err, "cwd", "'%.80s' is not a path in the workspace", plan->cwd);
	if (check_files(plan->files, plan->files_count, err) < 0 ||
	    check_label(box, plan->label, err) < 0)
		return -1;
	return link_exec(box->link, plan, err);
}

int box_run(struct box *box, const struct run_plan *plan, struct error *err)
{
	if (plan->id == 0)
		return error_field(err, "id", "must not be 0");
	if (!has_source(plan))
		return error_field(err, "source", "'%.80s' is not one of the files", plan->source);
	if (check_files(plan->files, plan->files_count, err) < 0 ||
	    check_label(box, plan->label, err) < 0)
		return -1;
	return link_run(box->link, plan, err);
}

int box_prepare(struct box *box, const struct prepare_plan *plan, struct error *err)
{
	if (plan->id == 0)
		return error_field(err, "id", "must not be 0");
	if (!plan->argv[0] || plan->argv[0][0] != '/')
		return error_field(err, "argv", "must start with an absolute path");
	if (box->spec.keep)
		return error_set(err, ERR_CONFLICT, 0, "a kept box cannot prepare programs");
	return link_prepare(box->link, plan, err);
}

void box_give(struct box *box, const struct box_events *events, const char *request_id)
{
	box->events = *events;
	box->spec.request_id[0] = '\0';
	if (request_id)
		(void)!str_copy(box->spec.request_id, BOX_REQUEST_LEN, request_id);
	if (box->spec.spare && box->driver->ops->claim)
		box->driver->ops->claim(box);
	box->spec.spare = false;
}

int box_stdin(struct box *box, uint32_t exec_id, const void *data, size_t len, struct error *err)
{
	return link_stdin(box->link, exec_id, data, len, err);
}

int box_stdin_end(struct box *box, uint32_t exec_id, struct error *err)
{
	return link_stdin_end(box->link, exec_id, err);
}

int box_signal(struct box *box, uint32_t exec_id, int signo, struct error *err)
{
	if (signo < 1 || signo > SIGRTMAX)
		return error_field(err, "signal", "%d is not a signal", signo);
	return link_signal(box->link, exec_id, signo, err);
}

static bool is_file_path(const char *path)
{
	return !path || !path[0] || is_path_beneath(path);
}

int box_file_open(struct box *box, const struct box_file_request *request,
                  const struct box_file_events *events, struct box_file **ret_file,
                  struct error *err)
{
	if (!is_file_path(request->path))
		return error_field(err, "path", "'%.80s' is not a path in the workspace",
		                   request->path);
	if (!is_file_path(request->to))
		return error_field(err, "to", "'%.80s' is not a path in the workspace",
		                   request->to);
	return link_file_open(box->link, request, events, ret_file, err);
}

void box_counters(struct box *box, enum counters_for purpose, struct box_counters *ret_counters)
{
	box->driver->ops->counters(box, purpose, ret_counters);
}

int box_freeze(struct box *box, bool frozen, struct error *err)
{
	const struct driver *d = box->driver;

	if (!d->caps.can_freeze || !d->ops->freeze)
		return error_set(err, ERR_UNAVAILABLE, 0, "driver '%s' cannot freeze boxes",
		                 d->ops->name);
	return d->ops->freeze(box, frozen, err);
}

void box_set_rules(struct box *box, struct box_rules *rules)
{
	box_rules_unref(box->spec.rules);
	box->spec.rules = box_rules_ref(rules);
	if (box->egress)
		egress_port_change(box->egress, rules);
}

size_t box_denials(struct box *box, struct box_denial *ret, size_t max)
{
	return box->egress ? egress_port_denials(box->egress, ret, max) : 0;
}

void box_destroy(struct box *box)
{
	box->driver->ops->destroy(box);
}

const char *box_id(const struct box *box)
{
	return box->spec.id;
}

enum box_start box_start(const struct box *box)
{
	return box->start;
}

uint32_t box_layers(const struct box *box)
{
	return box->layers;
}

void driver_free(struct driver *d)
{
	if (!d)
		return;
	helper_group_close(&d->import_group);
	d->ops->free(d);
}

const char *box_log_ctx(const struct box *box, char ret_ctx[BOX_CTX_LEN])
{
	/* Both are short: it fits. */
	(void)snprintf(ret_ctx, BOX_CTX_LEN, "request_id=%s box=%s", box->spec.request_id,
	               box->spec.id);
	return ret_ctx;
}
