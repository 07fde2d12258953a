/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/json.h"
#include "api/lookup.h"
#include "api/op/port.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/parse.h"
#include "core/observe/audit.h"
#include "core/session/session.h"
#include "core/session/session_ports.h"
#include "http/status.h"

#define REACHED (BOX_BOUND_LOOPBACK | BOX_BOUND_ANY)

static int parse_port(const char *text, uint16_t *ret_port, struct error *err)
{
	uint64_t value = 0;

	if (parse_u64(text, &value) < 0 || value < 1 || value > UINT16_MAX)
		return error_field(err, "port", "'%.20s' is not a port: 1 to 65535", text);
	*ret_port = (uint16_t)value;
	return 0;
}

void v1_port_connect(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};
	struct session *session = lookup_session(r, args, &err);
	uint16_t port = 0;

	/* A connection changes what happens in the box: it must be logged where that is required.
	 */
	if (session && parse_port(args->rest, &port, &err) == 0 &&
	    audit_check(r->parts.audit, &err) == 0)
		op_port_connect(r, req, session, port, args->principal);
	else
		reply_error(req, &err);
}

struct listing {
	struct pending pending;
	struct port_listing *list;
	char *session_id; /* owned */
};

static void listing_free(struct listing *l)
{
	free(l->session_id);
	free(l);
}

static json_t *encode_row(const struct box_port_row *row)
{
	const char *address = row->bound & BOX_BOUND_ANY        ? "any"
	                      : row->bound & BOX_BOUND_LOOPBACK ? "loopback"
	                                                        : "other";
	json_t *j = json_object();

	json_set(j, "port", json_integer(row->port));
	json_set(j, "address", json_string(address));
	json_set(j, "reachable", json_boolean(row->bound & REACHED));
	return j;
}

static void on_listed(void *ctx, const struct box_port_rows *rows, const struct error *err)
{
	struct listing *l = ctx;
	struct http_request *req = pending_resume(&l->pending);
	json_t *j, *ports;

	if (err) {
		reply_error(req, err);
		listing_free(l);
		return;
	}
	j = json_object();
	ports = json_array();
	for (size_t i = 0; i < rows->count; i++)
		json_append(ports, encode_row(&rows->rows[i]));
	json_set(j, "session_id", json_string(l->session_id));
	json_set(j, "ports", ports);
	json_set(j, "truncated", json_boolean(rows->truncated));
	listing_free(l);
	reply_json(req, HTTP_OK, j);
}

static void on_left(struct pending *p)
{
	struct listing *l = CONTAINER_OF(p, struct listing, pending);

	port_list_cancel(l->list);
	listing_free(l);
}

void v1_port_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};
	struct session *session = lookup_session(r, args, &err);
	struct listing *l;

	if (!session) {
		reply_error(req, &err);
		return;
	}
	l = NEW(struct listing);
	l->session_id = xstrdup(args->id);
	if (port_list(session, on_listed, l, &l->list, &err) < 0) {
		listing_free(l);
		reply_error(req, &err);
		return;
	}
	pending_wait(&l->pending, req, on_left);
}
