/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/install/internal.h"
#include "core/language/manager.h"
#include "core/language/runners.h"
#include "core/template/layers.h"
#include "core/template/template.h"
#include "driver/driver.h"

/*
 * Theory of operation. The library of a compiler (library in its manifest) is a layer like others,
 * except that its installer takes it from the root: the standard library of Go, compiled. It is
 * made when a compiler is first used without it, which does not wait, and remembered in the store.
 * It belongs to the default tenant, or to that of the image whose toolchain made it.
 */

#define AGAIN_US (10 * 60 * USEC_PER_SEC)

static bool has_failed(const struct installs *all, const char *key)
{
	for (size_t i = 0; i < LIBRARY_FAILURES; i++) {
		const struct library_failure *f = &all->failures[i];

		if (f->at_us && clock_us() - f->at_us < AGAIN_US && str_equal(f->key, key))
			return true;
	}
	return false;
}

void library_failed(const struct packing *b, const struct error *err)
{
	struct installs *all = b->owner;
	struct library_failure *f = &all->failures[all->failures_next];

	if (all->stopping)
		return;
	log_warn("the compiled library of %s was not made, programs compile it themselves: %s",
	         b->wanted.manager->language, err->msg);
	all->failures_next = (all->failures_next + 1) % LIBRARY_FAILURES;
	memcpy(f->key, b->wanted.key, sizeof(f->key));
	f->at_us = clock_us();
}

static const char *owner_of(const struct template *t)
{
	return t && t->kind == TEMPLATE_ON_IMAGE && t->tenant[0] ? t->tenant : TENANT_DEFAULT;
}

static void begin(struct installs *all, const struct install_request *request,
                  struct wanted *wanted)
{
	const struct config *c = all->config.config;
	const struct install_grant grant = {.limits = {.timeout_us = c->packages_timeout_us,
	                                               .max_bytes = c->packages_layer_bytes}};
	struct error err = {0};
	struct packing *b = NULL;

	/* A full queue: the next program asks again. */
	if (install_add(all, request, &grant, wanted, &b, &err) < 0)
		log_debug("the compiled library of %s: %s", request->language, err.msg);
	else
		log_info("making the compiled library of %s", request->language);
}

struct image *installs_library(void *ctx, struct template *t, const struct runner *r)
{
	attr_cleanup(wanted_done) struct wanted wanted = {0};
	struct installs *all = ctx;
	/* On the host's root nothing of a template matters. */
	struct template *root = template_has_own_root(t) ? t : NULL;
	char *packages[] = {r->library, NULL};
	const struct install_request request = {
		.tenant = owner_of(root),
		.language = r->name,
		.packages = packages,
		.template = root,
		/* The compiler of a tenant's root is the tenant's:
	         * see decide() of language_check.c. */
		.min_isolation = root ? driver_best_grade(all->config.driver) : BOX_GRADE_NAMESPACE,
		.is_library = true};
	const struct wanted_source source = {.manager = manager_of(r),
	                                     .packages = packages,
	                                     .registry = "",
	                                     .template = root,
	                                     .program = runner_place(r)};
	const struct layer *layer;
	struct error err = {0};

	if (!source.manager || wanted_make(&source, &wanted, &err) < 0)
		return NULL;
	layer = layers_find(all->config.layers, request.tenant, wanted.key);
	if (layer)
		return layer->image;
	if (!all->stopping && !install_find(all, request.tenant, wanted.key) &&
	    !has_failed(all, wanted.key))
		begin(all, &request, &wanted);
	return NULL;
}
