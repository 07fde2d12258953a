/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver.h"
#include <assert.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
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

/*
 * Network host is granted by name, so what it lacks is not asked for, unless the policy names that
 * layer too. Landlock is: it closes the abstract Unix sockets of the host.
 */
uint32_t driver_required(const struct driver *d, const struct box_spec *spec)
{
	uint32_t required = d->caps.required_layers;

	if (spec->network == BOX_NETWORK_HOST)
		required = (required & ~LAYER_BIT(LAYER_NET)) | LAYER_BIT(LAYER_LANDLOCK);
	return required | spec->required_layers;
}

struct driver *driver_at(const struct driver *d, size_t index)
{
	if (!d->set)
		return index == 0 ? (struct driver *)(uintptr_t)d : NULL;
	return index < d->set->count ? d->set->list[index] : NULL;
}

enum box_grade driver_best_grade(const struct driver *d)
{
	enum box_grade best = BOX_GRADE_NAMESPACE;
	const struct driver *one;

	for (size_t i = 0; (one = driver_at(d, i)); i++)
		if (one->caps.has_roots && one->caps.grade > best)
			best = one->caps.grade;
	return best;
}

struct driver *driver_find(const struct driver *d, const char *name)
{
	struct driver *found;

	if (!name[0])
		return (struct driver *)(uintptr_t)d;
	for (size_t i = 0; (found = driver_at(d, i)); i++)
		if (str_equal(found->name, name))
			return found;
	return NULL;
}

int driver_check(const struct driver *d, struct error *err)
{
	return d->breaker.state == BREAKER_CLOSED
	               ? 0
	               : breaker_check(&d->breaker, d->name, clock_us(), err);
}

/* Exactly what was decided. */
static int check_features(const struct driver *d, const struct box_spec *spec, struct error *err)
{
	if (spec->network != BOX_NETWORK_NONE &&
	    !(d->caps.networks & BOX_NETWORK_BIT(spec->network)))
		return error_set(err, ERR_UNAVAILABLE, 0, "engine '%s' does not support network %s",
		                 d->name, box_network_name(spec->network));
	if (spec->root[0] && !d->caps.has_roots)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "only the host's root is supported: no overlayfs");
	return 0;
}

static int find_engine(const struct driver *d, const struct box_spec *spec,
                       struct driver **ret_driver, struct error *err)
{
	*ret_driver = driver_find(d, spec->engine);
	return *ret_driver ? 0
	                   : error_set(err, ERR_UNAVAILABLE, 0,
	                               "engine '%s' is not configured any more", spec->engine);
}

int box_create(struct driver *d, const struct box_spec *spec, const struct box_events *events,
               struct box **ret_box, struct error *err)
{
	if (box_spec_check(spec, err) < 0)
		return error_wrap(err, "box");
	if (find_engine(d, spec, &d, err) < 0 || driver_check(d, err) < 0 ||
	    driver_check_layers(d->caps.layers, driver_required(d, spec), err) < 0 ||
	    check_features(d, spec, err) < 0)
		return -1;
	return d->ops->create(d, spec, events, ret_box, err);
}

int box_adopt(struct driver *d, const struct box_spec *spec, const struct box_events *events,
              struct box **ret_box, bool *ret_frozen, struct error *err)
{
	if (box_spec_check(spec, err) < 0)
		return error_wrap(err, "box");
	if (find_engine(d, spec, &d, err) < 0)
		return -1;
	if (!d->ops->adopt)
		return error_set(err, ERR_NOT_FOUND, 0,
		                 "boxes of engine '%s' do not outlive the daemon", d->name);
	return d->ops->adopt(d, spec, events, ret_box, ret_frozen, err);
}

static void serve_one(struct driver *d, const struct services *services)
{
	const uint32_t allowlist = BOX_NETWORK_BIT(BOX_NETWORK_ALLOWLIST);

	d->services = services;
	d->caps.networks &= ~allowlist;
	if (d->caps.can_egress && services_have_egress(services))
		d->caps.networks |= allowlist;
	d->caps.has_mcp = d->caps.can_gateway && services_have_gateway(services);
	if (d->ops->serve)
		d->ops->serve(d, services);
}

void driver_serve(struct driver *d, const struct services *services)
{
	struct driver *one;

	for (size_t i = 0; (one = driver_at(d, i)); i++)
		serve_one(one, services);
}

void box_open_egress(struct box *box, int listener)
{
	const struct box_spec *spec = &box->spec;

	if (listener >= 0 && spec->network == BOX_NETWORK_ALLOWLIST)
		box->egress = services_open_egress(box->driver->services, listener, spec->tenant,
		                                   spec->rules);
}

void box_open_gateway(struct box *box, int listener)
{
	const struct box_spec *spec = &box->spec;
	const struct gateway_caller who = {spec->tenant, spec->id, spec->request_id};

	if (listener >= 0 && spec->tools)
		box->gateway =
			services_open_gateway(box->driver->services, listener, &who, spec->tools);
}

void driver_settle(struct driver *d)
{
	struct driver *one;

	for (size_t i = 0; (one = driver_at(d, i)); i++)
		if (one->ops->settle)
			one->ops->settle(one);
}

void driver_leave(struct driver *d)
{
	struct driver *one;

	for (size_t i = 0; (one = driver_at(d, i)); i++)
		if (one->ops->leave)
			one->ops->leave(one);
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

/* The first program of a box that uses secrets finds the certificates there. */
static int exec_with_bundle(struct box *box, const struct exec_plan *plan, struct error *err)
{
	const char *bundle = box->spec.rules->bundle;
	cleanup_free struct exec_file *files = xcalloc(plan->files_count + 1, sizeof(*files));
	struct exec_plan more = *plan;

	files[0] = (struct exec_file){.path = BOX_BUNDLE_NAME,
	                              .data = bundle,
	                              .len = strlen(bundle),
	                              .mode = 0444,
	                              .source = true};
	if (plan->files_count > 0)
		memcpy(&files[1], plan->files, plan->files_count * sizeof(*files));
	more.files = files;
	more.files_count++;
	if (link_exec(box->link, &more, err) < 0)
		return -1;
	box->has_bundle = true;
	return 0;
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
	return box->spec.rules && box->spec.rules->bundle && !box->has_bundle
	               ? exec_with_bundle(box, plan, err)
	               : link_exec(box->link, plan, err);
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

size_t box_stdin_waiting(struct box *box, uint32_t exec_id)
{
	return link_stdin_waiting(box->link, exec_id);
}

int box_signal(struct box *box, uint32_t exec_id, int signo, struct error *err)
{
	if (signo < 1 || signo > SIGRTMAX)
		return error_field(err, "signal", "%d is not a signal", signo);
	return link_signal(box->link, exec_id, signo, err);
}

int box_resize(struct box *box, uint32_t exec_id, uint16_t rows, uint16_t cols, struct error *err)
{
	if (rows == 0 || cols == 0)
		return error_field(err, "tty", "rows and cols must not be 0");
	return link_resize(box->link, exec_id, rows, cols, err);
}

void box_take_output(struct box *box, uint32_t exec_id, size_t bytes)
{
	link_take_output(box->link, exec_id, bytes);
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

static uint16_t proxy_port(const struct box *box)
{
	return box->spec.network == BOX_NETWORK_ALLOWLIST ? BOX_PROXY_PORT : 0;
}

static int refuse_ports(struct error *err)
{
	return error_set(err, ERR_DENIED, 0,
	                 "a box with network host has no ports of its own: its programs listen on "
	                 "addresses of the host");
}

int box_port_open(struct box *box, uint16_t port, const struct box_port_events *events,
                  struct box_port **ret_port, struct error *err)
{
	if (port == 0)
		return error_field(err, "port", "must be 1 to 65535");
	/* Those of its loopback are the host's. */
	if (box->spec.network == BOX_NETWORK_HOST)
		return refuse_ports(err);
	/* It leads out of the box, with the box's rules and secrets. */
	if (port == proxy_port(box))
		return error_set(err, ERR_DENIED, 0,
		                 "port %u is that of the box's proxy, which is not forwarded",
		                 port);
	return link_port_open(box->link, port, events, ret_port, err);
}

int box_port_list(struct box *box, box_port_list_fn *on_listed, void *ctx,
                  struct box_port_list **ret_list, struct error *err)
{
	if (box->spec.network == BOX_NETWORK_HOST)
		return refuse_ports(err);
	return link_port_list(box->link, proxy_port(box), on_listed, ctx, ret_list, err);
}

void box_counters(struct box *box, enum counters_for purpose, struct box_counters *ret_counters)
{
	box->driver->ops->counters(box, purpose, ret_counters);
}

int box_freeze(struct box *box, bool frozen, struct error *err)
{
	const struct driver *d = box->driver;

	if (!d->caps.can_freeze || !d->ops->freeze)
		return error_set(err, ERR_UNAVAILABLE, 0, "engine '%s' cannot freeze boxes",
		                 d->name);
	return d->ops->freeze(box, frozen, err);
}

void box_set_rules(struct box *box, struct box_rules *rules)
{
	box_rules_unref(box->spec.rules);
	box->spec.rules = box_rules_ref(rules);
	if (box->egress)
		egress_port_change(box->egress, rules);
}

void box_set_ranges(struct box *box, uint16_t ranges)
{
	assert(box->spec.network == BOX_NETWORK_BRIDGE && box->driver->ops->reach);
	box->spec.ranges = ranges;
	box->driver->ops->reach(box);
}

void box_disconnect(struct box *box)
{
	assert(box->spec.network == BOX_NETWORK_BRIDGE && box->driver->ops->reach);
	box->spec.network = BOX_NETWORK_NONE;
	box->spec.ranges = 0;
	box->driver->ops->reach(box);
}

void box_set_tools(struct box *box, struct box_rules *tools)
{
	box_rules_unref(box->spec.tools);
	box->spec.tools = box_rules_ref(tools);
	if (box->gateway)
		gateway_port_change(box->gateway, tools);
}

size_t box_tool_denials(struct box *box, struct box_tool_denial *ret, size_t max)
{
	return box->gateway ? gateway_port_denials(box->gateway, ret, max) : 0;
}

size_t box_denials(struct box *box, struct box_denial *ret, size_t max)
{
	const struct driver_ops *ops = box->driver->ops;

	if (box->egress)
		return egress_port_denials(box->egress, ret, max);
	return ops->denials ? ops->denials(box, ret, max) : 0;
}

void box_ask_network(struct box *box)
{
	if (box->egress)
		egress_port_ask(box->egress);
	else if (box->driver->ops->ask_denials)
		box->driver->ops->ask_denials(box);
}

bool box_settle_network(struct box *box, uint64_t wait_us)
{
	const struct driver_ops *ops = box->driver->ops;

	if (box->egress)
		return egress_port_settle(box->egress, wait_us);
	return !ops->settle_denials || ops->settle_denials(box, wait_us);
}

bool box_network_usage(struct box *box, struct box_network_usage *ret)
{
	if (!box->egress)
		return box->driver->ops->traffic && box->driver->ops->traffic(box, ret);
	egress_port_usage(box->egress, ret);
	return true;
}

void box_network_growth(struct box *box, const struct box_network_usage *now,
                        struct box_network_usage *ret)
{
	*ret = (struct box_network_usage){
		.sent = now->sent - box->seen.sent,
		.received = now->received - box->seen.received,
		.connections = now->connections - box->seen.connections,
		.denied = now->denied - box->seen.denied,
	};
	box->seen = *now;
}

void box_destroy(struct box *box)
{
	box->driver->ops->destroy(box);
}

const char *box_id(const struct box *box)
{
	return box->spec.id;
}

const struct box_spec *box_applied(const struct box *box)
{
	return &box->spec;
}

enum box_start box_start(const struct box *box)
{
	return box->start;
}

uint32_t box_layers(const struct box *box)
{
	return box->layers;
}

uint32_t box_vouched(const struct box *box)
{
	return box->vouched;
}

const struct driver *box_driver(const struct box *box)
{
	return box->driver;
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
