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
#include "core/template/templates.h"
#include "http/server.h"
#include "http/status.h"
#include <string.h>

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

ssize_t op_root_lacks(const struct router *r, const char *language, const struct template *t,
                      char *const *packages)
{
	const struct manager *m =
		language ? manager_of(runners_find(r->parts.runners, language)) : NULL;

	if (m && !m->in_root)
		return packages && packages[0] ? 0 : -1;
	return templates_lack(r->parts.templates, t, packages);
}

int op_packages_lacking(const struct router *r, const struct op_packages *wanted, struct error *err)
{
	char field[32];
	ssize_t missing;

	if (wanted->lock)
		return 1;
	if (!wanted->packages || !wanted->packages[0])
		return 0;
	missing = op_root_lacks(r, wanted->language, wanted->template, wanted->packages);
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
