/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/install_parts.h"

#include "base/alloc.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/install/install.h"
#include "core/install/registry.h"
#include "core/observe/metrics.h"
#include "core/pool/pool.h"
#include "core/run/run_service.h"
#include "core/template/imports.h"
#include "core/template/layer_row.h"
#include "core/template/layers.h"
#include "core/template/template_row.h"
#include "core/template/templates.h"

void install_parts_find(struct install_parts *p, const struct config *config)
{
	p->registries = registries_find(config);
}

static void on_put(void *ctx, const struct layer *layer)
{
	const struct install_parts *p = ctx;

	layer_row_put(p->store, layer);
}

static void on_delete(void *ctx, const struct layer *layer)
{
	const struct install_parts *p = ctx;

	layer_row_delete(p->store, layer);
}

static void on_used(void *ctx, const struct layer *layer)
{
	const struct install_parts *p = ctx;

	layer_row_used(p->store, layer);
}

/* Boxes made ahead have its tree mounted. */
static void on_forget(void *ctx, const struct layer *layer)
{
	const struct install_parts *p = ctx;

	if (p->runs)
		pools_forget(run_service_pools(p->runs), layer->tenant);
}

int install_parts_load(struct install_parts *p, const struct config *config, struct store *store,
                       struct templates *templates, struct error *err)
{
	const struct layers_events events = {p, on_put, on_delete, on_used, on_forget};

	p->store = store;
	p->layers = layers_new(config->packages_total_bytes, config->packages_tenant_bytes);
	if (layer_row_keep(store, p->layers, templates_images(templates), err) < 0)
		return -1;
	layers_set_events(p->layers, &events);
	return template_row_keep(store, templates, err);
}

void install_parts_start(struct install_parts *p, const struct installs_config *config)
{
	struct installs_config whole = *config;

	whole.layers = p->layers;
	whole.registries = (const char *const *)p->registries;
	p->runs = config->runs;
	p->installs = installs_new(&whole);
	metrics_add_source(config->metrics, installs_measure, p->installs);
	run_service_set_library(p->runs, installs_library, p->installs);
}

void install_parts_end(struct install_parts *p, struct imports *imports)
{
	if (p->runs)
		run_service_set_library(p->runs, NULL, NULL);
	installs_free(TAKE_PTR(p->installs));
	imports_free(imports);
	if (p->layers)
		layers_set_events(p->layers, &(struct layers_events){0});
}

void install_parts_done(struct install_parts *p)
{
	layers_free(TAKE_PTR(p->layers));
	str_list_free(TAKE_PTR(p->registries));
}
