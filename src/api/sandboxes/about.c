/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/json.h"
#include "api/openapi.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "core/config/config.h"
#include "core/run/run.h"
#include "http/status.h"

#define DOCS_MAX (4u << 20)

static json_t *uptime(const struct router *r)
{
	return json_real((double)(clock_us() - r->started_us) / USEC_PER_SEC);
}

void sandboxes_health(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *j = json_object();
	struct run_service_stats stats;
	bool well;

	(void)args;
	run_service_stats(r->runs, &stats);
	well = !stats.draining && !r->unready;
	json_set(j, "status", json_string(well ? "ok" : "unhealthy"));
	json_set(j, "timestamp", sandboxes_now());
	json_set(j, "version", json_string(MILLIBOX_VERSION));
	json_set(j, "uptime", uptime(r));
	reply_json(req, well ? HTTP_OK : HTTP_SERVICE_UNAVAILABLE, j);
}

void sandboxes_info(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *j = json_object();
	json_int_t tools = 0;
	const struct tool *tool;

	(void)args;
	for (size_t i = 0; (tool = tool_at(i)); i++)
		tools += tool_is_listed(r, tool);
	json_set(j, "name", json_string("Millibox"));
	json_set(j, "version", json_string(MILLIBOX_VERSION));
	json_set(j, "timestamp", sandboxes_now());
	json_set(j, "uptime", uptime(r));
	json_set(j, "api_versions", json_pack("[s, s]", "v1", "v2"));
	json_set(j, "tools", json_integer(tools));
	json_set(j, "endpoints",
	         json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "mcp", "/mcp", "tools",
	                   "/mcp/tools", "api", "/api", "health", "/health", "metrics", "/metrics",
	                   "openapi", "/api/openapi.json", "docs", "/api/docs"));
	reply_json(req, HTTP_OK, j);
}

/* No scripts or external content. */

static int add_escaped(struct buf *b, const char *text)
{
	for (; text && *text; text++) {
		const char *entity = *text == '<'   ? "&lt;"
		                     : *text == '>' ? "&gt;"
		                     : *text == '&' ? "&amp;"
		                     : *text == '"' ? "&quot;"
		                                    : NULL;

		if ((entity ? buf_add_str(b, entity) : buf_add(b, text, 1)) < 0)
			return -1;
	}
	return 0;
}

static int add_operation(struct buf *b, const char *method, const char *path,
                         const json_t *operation)
{
	const char *summary = json_string_value(json_object_get(operation, "summary"));

	if (!summary)
		return 0; /* parameters of the path, not an operation */
	return buf_addf(b, "<tr><td>%s</td><td><code>", method) < 0 || add_escaped(b, path) < 0 ||
	                       buf_add_str(b, "</code></td><td>") < 0 || add_escaped(b, summary) < 0
	               ? -1
	               : buf_add_str(b, "</td></tr>\n");
}

static int add_page(struct buf *b, json_t *paths)
{
	const char *path, *method;
	json_t *item, *operation;

	if (buf_add_str(b,
	                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	                "<title>Millibox API</title></head><body>\n<h1>Millibox API</h1>\n"
	                "<p>The whole description, for OpenAPI (Swagger) tools: "
	                "<a href=\"/api/openapi.json\">/api/openapi.json</a></p>\n<table>\n") < 0)
		return -1;
	json_object_foreach (paths, path, item) {
		json_object_foreach (item, method, operation) {
			if (add_operation(b, method, path, operation) < 0)
				return -1;
		}
	}
	return buf_add_str(b, "</table></body></html>\n");
}

void sandboxes_docs(struct router *r, struct http_request *req, const struct route_args *args)
{
	static const struct http_header headers[] = {
		{"Content-Security-Policy", "default-src 'none'"},
		{"X-Content-Type-Options", "nosniff"},
	};
	cleanup_json json_t *all =
		json_loadb((const char *)openapi_json, openapi_json_len, 0, NULL);
	cleanup_buf struct buf page = BUF_INIT(DOCS_MAX);
	struct error err = {0};

	(void)r;
	(void)args;
	if (add_page(&page, json_object_get(all, "paths")) == 0) {
		http_reply(req, &(struct http_answer){HTTP_OK, "text/html", page.data, page.len,
		                                      headers, ARRAY_SIZE(headers)});
		return;
	}
	(void)error_set(&err, ERR_SYSTEM, 0, "the page exceeds %u bytes", DOCS_MAX);
	reply_error(req, &err);
}
