/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/install.h"

#include "api/internal.h"
#include "api/json/json.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/manager.h"
#include "core/language/runners.h"
#include "core/template/layers.h"
#include "core/template/template.h"
#include "core/template/templates.h"
#include "http/server.h"
#include "http/status.h"
#include <string.h>
#include <strings.h>

struct waiting {
	struct pending pending;
	struct install *install;
	struct op_install how;
	struct install_stream stream;
};

static void on_output(void *ctx, const char *data, size_t len)
{
	struct waiting *w = ctx;

	install_stream_output(&w->stream, data, len);
}

static void on_done(void *ctx, struct layer *layer)
{
	cleanup_free struct waiting *w = ctx;

	w->how.then(w->how.ctx, pending_resume(&w->pending), layer, &w->stream);
}

static void answer_failure(struct http_request *req, const struct error *err, const char *log)
{
	if (err->code == ERR_INSTALL_FAILED)
		reply_error_body(req, err, install_failure(req, err, log));
	else
		reply_error(req, err);
}

static void on_failed(void *ctx, const struct error *err, const char *log)
{
	cleanup_free struct waiting *w = ctx;
	struct http_request *req = pending_resume(&w->pending);

	if (w->stream.began)
		install_stream_fail(&w->stream, err, log);
	else if (!w->how.failed || !w->how.failed(w->how.ctx, req, err))
		answer_failure(req, err, log);
	w->how.drop(w->how.ctx);
}

static void on_left(struct pending *p)
{
	cleanup_free struct waiting *w = CONTAINER_OF(p, struct waiting, pending);

	install_cancel(w->install);
	w->how.drop(w->how.ctx);
}

void op_install(struct router *r, struct http_request *req, const struct install_request *request,
                const struct op_install *how)
{
	cleanup_free struct waiting *w = NEW(struct waiting);
	const struct install_events events = {
		.ctx = w,
		.on_output = how->form == EVENT_FORM_NONE ? NULL : on_output,
		.on_done = on_done,
		.on_failed = on_failed,
	};
	struct layer *layer = NULL;
	struct error err = {0};
	int state;

	*w = (struct waiting){
		.how = *how,
		.stream = {.req = req,
	                   .form = how->form,
	                   .max_bytes = r->config->max_answers_bytes},
	};
	state = installs_begin(r->parts.installs, request, &events, &w->install, &layer, &err);
	if (state < 0) {
		reply_error(req, &err);
		how->drop(how->ctx);
	} else if (state > 0) {
		how->then(how->ctx, req, layer, &w->stream);
	} else {
		pending_wait(&w->pending, req, on_left);
		(void)TAKE_PTR(w); /* owned by the callbacks */
	}
}

static const struct manager *manager_for(const struct router *r, const char *language)
{
	return language ? manager_of(runners_find(r->parts.runners, language)) : NULL;
}

ssize_t op_root_lacks(const struct router *r, const char *language, const struct template *t,
                      char *const *packages)
{
	const struct manager *m = manager_for(r, language);

	if (m && !m->in_root)
		return packages && packages[0] ? 0 : -1;
	return templates_lack(r->parts.templates, t, packages);
}

/* Whether its layer is one of @m. */
static bool has_layer(const struct template *t, const struct manager *m)
{
	return t && t->packages && m && str_equal(t->spec.manager, m->name);
}

bool op_hides_host(const struct router *r, const char *language, const struct template *t)
{
	const struct manager *m = manager_for(r, language);

	return has_layer(t, m) && template_hides_host(t, m);
}

ssize_t op_box_lacks(const struct router *r, const char *language, const struct template *t,
                     char *const *packages)
{
	if (op_hides_host(r, language, t))
		return packages && packages[0] ? 0 : -1;
	return op_root_lacks(r, language, t, packages);
}

/* "numpy==2.1" and "numpy[x]>1", "left-pad@1" and "left-pad"; "@scope/x@1" has its "@" first. */
static bool is_same_package(const char *a, const char *b)
{
	size_t len = 1 + strcspn(a + 1, "=<>!~[@");

	return len == 1 + strcspn(b + 1, "=<>!~[@") && strncasecmp(a, b, len) == 0;
}

static bool names_package(char *const *packages, size_t count, const char *package)
{
	for (size_t i = 0; i < count; i++)
		if (packages[i][0] && is_same_package(packages[i], package))
			return true;
	return false;
}

const char *op_packages_join(const struct router *r, const struct op_packages *wanted,
                             char ***packages)
{
	const struct manager *m = manager_for(r, wanted->language);
	const struct template *t = wanted->template;
	size_t own = *packages ? str_list_count(*packages) : 0, count = own;

	/* A lock names all. */
	if (!t || !m || wanted->lock || t->spec.lock || !t->spec.packages ||
	    !(has_layer(t, m) || (!t->packages && template_hides_host(t, m))))
		return NULL;
	*packages = xrealloc_array(*packages, own + str_list_count(t->spec.packages) + 1,
	                           sizeof(**packages));
	for (char **package = t->spec.packages; *package; package++)
		if (**package && !names_package(*packages, own, *package))
			(*packages)[count++] = xstrdup(*package);
	(*packages)[count] = NULL;
	return t->packages ? t->spec.run : NULL;
}

int op_packages_lacking(const struct router *r, const struct op_packages *wanted, struct error *err)
{
	char field[32];
	ssize_t missing;

	if (wanted->lock)
		return 1;
	if (!wanted->packages || !wanted->packages[0])
		return 0;
	missing = op_box_lacks(r, wanted->language, wanted->template, wanted->packages);
	if (missing < 0)
		return 0;
	if (installs_can(r->parts.installs, wanted->language))
		return 1;
	(void)snprintf(field, sizeof(field), "packages[%zd]", missing);
	return error_field(err, field,
	                   "'%.60s' is not in the root, and packages of %.40s are not installed "
	                   "here (packages.managers)",
	                   wanted->packages[missing], wanted->language);
}

struct template *op_template_with(const struct router *r, const char *tenant,
                                  const struct template *base, char *const *packages,
                                  const struct layer *layer)
{
	struct template_spec spec = {0};
	struct template *t;

	installs_fill(layer, &spec);
	spec.packages = packages ? str_list_copy(packages) : NULL;
	t = templates_with_layer(r->parts.templates, base, tenant, &spec);
	template_spec_done(&spec);
	return t;
}
