/* SPDX-License-Identifier: Apache-2.0 */
#include "core/install/install.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/install/internal.h"
#include "core/language/manager.h"
#include "core/language/runners.h"
#include "core/observe/metrics.h"
#include "core/run/run_internal.h"
#include "core/template/images.h"
#include "core/template/layers.h"
#include "core/template/template.h"
#include "driver/driver.h"
#include "io/loop.h"

/* Installations that wait, of all tenants; one tenant has at most half of them. */
#define QUEUE_MAX 64
#define KNOWN_MAX 128
#define TURN_US   (5 * USEC_PER_SEC) /* one of those that wait begins, roughly */

struct installs *installs_new(const struct installs_config *config)
{
	struct installs *all = NEW(struct installs);

	all->config = *config;
	list_init(&all->packings);
	return all;
}

void installs_free(struct installs *all)
{
	struct packing *b;

	if (!all)
		return;
	LIST_FOREACH (b, &all->packings, struct packing, node)
		packing_free(b);
	free(all);
}

void installs_stop(struct installs *all)
{
	struct error err = {0};
	struct packing *b;

	if (!all)
		return;
	all->stopping = true;
	(void)error_set(&err, ERR_UNAVAILABLE, 0, "the daemon is stopping");
	LIST_FOREACH (b, &all->packings, struct packing, node)
		if (b->state != PACKING_ENDED)
			packing_fail(b, &err);
}

struct layers *installs_layers(const struct installs *all)
{
	return all->config.layers;
}

const char *install_registry(const struct installs *all, const struct manager *m)
{
	for (size_t i = 0; manager_at(i); i++)
		if (manager_at(i) == m)
			return all->config.registries[i];
	return m->registry;
}

static bool is_enabled(const struct installs *all, const struct manager *m)
{
	return m && str_list_has(all->config.config->packages_managers, m->name);
}

bool installs_can(const struct installs *all, const char *language)
{
	const struct runner *r = language ? runners_find(all->config.runners, language) : NULL;

	return r && is_enabled(all, manager_of(r));
}

static void refuse_manager(const char *name, struct error *err)
{
	cleanup_buf struct buf known = BUF_INIT(KNOWN_MAX);
	const struct manager *m;

	for (size_t i = 0; (m = manager_at(i)); i++)
		(void)!buf_addf(&known, "%s%s", i ? ", " : "", m->name);
	(void)error_field(err, "manager", "'%.40s' is not a package manager; known: %.*s", name,
	                  (int)known.len, known.data);
}

static const struct manager *
choose_manager(const struct installs *all, const struct install_request *request, struct error *err)
{
	const struct runner *r = runners_find(all->config.runners, request->language);
	const struct manager *m = request->manager ? manager_find(request->manager) : manager_of(r);

	if (!m && request->manager)
		refuse_manager(request->manager, err);
	else if (!m)
		(void)error_field(err, "packages", "language '%.40s' has no package manager here",
		                  request->language);
	else if (!is_enabled(all, m))
		(void)error_set(err, ERR_DENIED, 0,
		                "setting: packages.managers: packages of %s are not installed here",
		                m->name);
	else
		return m;
	return NULL;
}

struct packing *install_find(const struct installs *all, const char *tenant, const char *key)
{
	struct packing *b;

	LIST_FOREACH (b, &all->packings, struct packing, node)
		if (b->state != PACKING_ENDED && !b->sink.open && str_equal(b->tenant, tenant) &&
		    str_equal(b->wanted.key, key))
			return b;
	return NULL;
}

static size_t count_packings(const struct installs *all, const char *tenant, bool queued)
{
	struct packing *b;
	size_t count = 0;

	LIST_FOREACH (b, &all->packings, struct packing, node)
		count += b->state != PACKING_ENDED && (b->state == PACKING_QUEUED) == queued &&
		         (!tenant || str_equal(b->tenant, tenant));
	return count;
}

/* One tenant leaves a place for others, if there are two. */
static bool may_run(const struct installs *all, const char *tenant)
{
	size_t max = all->config.config->packages_installs;

	return all->running < max && (max == 1 || count_packings(all, tenant, false) < max - 1);
}

static int grant_packages(const struct installs *all, const struct install_request *request,
                          const struct manager *m, struct install_grant *ret_grant,
                          struct error *err)
{
	const struct run_service *runs = all->config.runs;

	if (run_service_choose(runs, run_service_tenant(runs, request->tenant), request->policy,
	                       &ret_grant->stack, err) < 0)
		return -1;
	return policy_decide_packages(&runs->rules, &ret_grant->stack, m->name, &ret_grant->limits,
	                              err);
}

int install_check_size(const struct image *image, uint64_t max_bytes, struct error *err)
{
	if (image->bytes <= max_bytes)
		return 0;
	return error_set(err, ERR_TOO_LARGE, 0,
	                 "the packages take %llu bytes, packages.max_size is %llu",
	                 (unsigned long long)image->bytes, (unsigned long long)max_bytes);
}

/* Scripts of packages are as isolated as the programs that will use them, at least. */
static enum box_grade least_grade(const struct run_service *runs,
                                  const struct install_request *request)
{
	const struct driver *d =
		request->engine ? driver_find(runs->rules.driver, request->engine) : NULL;

	return d && d->caps.grade > request->min_isolation ? d->caps.grade : request->min_isolation;
}

static int decide(const struct installs *all, const struct install_request *request,
                  const struct install_grant *grant, struct packing *b, struct error *err)
{
	const struct run_service *runs = all->config.runs;
	const char *language = b->wanted.manager->language;
	struct run_request run = {
		.tenant = request->tenant,
		/* Without a runner for it, the installer itself is a script. */
		.language =
			(char *)(uintptr_t)(runners_find(all->config.runners, language) ? language
	                                                                                : "shell"),
		.code = (char *)(uintptr_t) " ",
		.code_len = 1,
		.template = (struct template *)(uintptr_t)request->template,
		.network_asked = true, /* its own follows */
		.network = BOX_NETWORK_NONE,
		.min_isolation = least_grade(runs, request),
	};

	if (policy_decide(&runs->rules, &grant->stack, &run, &b->decision, err) < 0)
		return -1;
	/* Not the packages of the template, but what a compiler needs. */
	b->decision.spec.packages[0] = '\0';
	if (!b->is_library)
		b->library = run_service_library(all->config.runs,
		                                 (struct template *)(uintptr_t)request->template,
		                                 b->decision.runner, &b->decision.spec);
	b->timeout_us = grant->limits.timeout_us;
	b->max_bytes = grant->limits.max_bytes;
	return 0;
}

static struct packing *new_packing(struct installs *all, const struct install_request *request,
                                   struct wanted *wanted)
{
	struct packing *b = NEW(struct packing);

	*b = (struct packing){.owner = all, .wanted = *wanted, .started_us = clock_us()};
	*wanted = (struct wanted){0};
	list_init(&b->waiters);
	(void)!str_copy(b->tenant, sizeof(b->tenant), request->tenant);
	b->request_id = request->request_id ? xstrdup(request->request_id) : NULL;
	b->key_id = request->key_id ? xstrdup(request->key_id) : NULL;
	b->account = run_service_tenant(all->config.runs, request->tenant);
	tenant_hold(b->account);
	if (request->sink)
		b->sink = *request->sink;
	b->image = image_ref(request->template ? request->template->image : NULL);
	b->is_library = request->is_library;
	b->hides_host = template_hides_host(request->template, b->wanted.manager);
	buf_init(&b->log, INSTALL_LOG_MAX);
	buf_init(&b->lock, INSTALL_LOCK_MAX);
	buf_init(&b->rest, BOX_FILE_WINDOW);
	list_append(&all->packings, &b->node);
	return b;
}

int install_add(struct installs *all, const struct install_request *request,
                const struct install_grant *grant, struct wanted *wanted,
                struct packing **ret_packing, struct error *err)
{
	size_t queued = count_packings(all, NULL, true);
	size_t own = count_packings(all, request->tenant, true);
	struct packing *b;

	if (queued >= QUEUE_MAX || own >= QUEUE_MAX / 2)
		return error_later(err, ERR_BUSY, TURN_US, "%zu installations of packages wait",
		                   queued);
	b = new_packing(all, request, wanted);
	if (decide(all, request, grant, b, err) < 0 ||
	    (may_run(all, b->tenant) && packing_start(b, err) < 0)) {
		packing_free(b);
		return -1;
	}
	*ret_packing = b;
	return 0;
}

void install_next(struct installs *all)
{
	struct packing *b, *next = NULL;
	struct error err = {0};

	if (all->stopping)
		return;
	LIST_FOREACH (b, &all->packings, struct packing, node)
		if (!next && b->state == PACKING_QUEUED && may_run(all, b->tenant))
			next = b;
	if (next && packing_start(next, &err) < 0)
		packing_fail(next, &err);
}

static void count_lookup(const struct installs *all, const char *result)
{
	metrics_count_for(all->config.metrics, METRIC_PACKAGE_LOOKUPS, METRIC_LABELS(result), 1);
}

static int make_wanted(const struct installs *all, const struct install_request *request,
                       struct wanted *ret_wanted, struct error *err)
{
	const struct manager *m = choose_manager(all, request, err);
	const struct runner *r = m ? runners_find(all->config.runners, m->language) : NULL;
	const struct wanted_source source = {
		.manager = m,
		.packages = request->packages,
		.lock = request->lock,
		.run = request->run,
		.registry = m ? install_registry(all, m) : "",
		.template = request->template,
		.program = r ? runner_place(r) : NULL,
	};

	return m ? wanted_make(&source, ret_wanted, err) : -1;
}

int installs_begin(struct installs *all, const struct install_request *request,
                   const struct install_events *events, struct install **ret_install,
                   struct layer **ret_layer, struct error *err)
{
	attr_cleanup(wanted_done) struct wanted wanted = {0};
	struct install *install;
	struct layer *layer;
	struct packing *b;
	struct install_grant grant;

	if (all->stopping)
		return error_stopping(err);
	/* What is there already was perhaps installed under another policy. */
	if (make_wanted(all, request, &wanted, err) < 0 ||
	    grant_packages(all, request, wanted.manager, &grant, err) < 0)
		return -1;
	layer = request->sink ? NULL : layers_find(all->config.layers, request->tenant, wanted.key);
	if (layer) {
		count_lookup(all, "hit");
		if (install_check_size(layer->image, grant.limits.max_bytes, err) < 0)
			return -1;
		*ret_layer = layer;
		return 1;
	}
	b = request->sink ? NULL : install_find(all, request->tenant, wanted.key);
	count_lookup(all, b ? "joined" : "miss");
	if (!b && install_add(all, request, &grant, &wanted, &b, err) < 0)
		return -1;
	assert(b);
	install = NEW(struct install);
	*install = (struct install){
		.packing = b, .events = *events, .max_bytes = grant.limits.max_bytes};
	list_append(&b->waiters, &install->node);
	*ret_install = install;
	return 0;
}

void install_cancel(struct install *install)
{
	struct packing *b = install->packing;

	list_remove(&install->node);
	free(install);
	if (list_is_empty(&b->waiters))
		packing_drop(b);
}

void install_room(struct install *install)
{
	packing_push(install->packing);
}

void install_sunk(struct install *install, const struct error *err)
{
	packing_sunk(install->packing, err);
}

void install_done(struct packing *b, struct layer *layer)
{
	struct install *install;

	while ((install = LIST_FIRST(&b->waiters, struct install, node))) {
		const struct install_events events =
			install->events; // NOLINT: it has left the list
		uint64_t max_bytes = install->max_bytes;
		struct error err = {0};

		list_remove(&install->node);
		free(install);
		if (layer && install_check_size(layer->image, max_bytes, &err) < 0)
			events.on_failed(events.ctx, &err, "");
		else
			events.on_done(events.ctx, layer);
	}
}

void installs_fill(const struct layer *layer, struct template_spec *ret_spec)
{
	ret_spec->manager = xstrdup(layer->manager->name);
	ret_spec->layer = xstrdup(layer->image->name);
	ret_spec->layer_bytes = layer->image->bytes;
}

void installs_measure(void *ctx, struct metrics *m)
{
	const struct installs *all = ctx;

	metrics_set(m, METRIC_PACKAGE_RUNNING, (double)all->running);
	layers_measure(all->config.layers, m);
}
