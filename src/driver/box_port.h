/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: connections to TCP ports of a box's own loopback, over its agent. Both directions have a
 * window of BOX_PORT_WINDOW bytes, so that a slow peer delays only itself. Nothing of the box can
 * open one.
 */

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct box;
struct box_port;
struct box_port_list;

#define BOX_PORTS_MAX   64            /* concurrent connections of a box */
#define BOX_PORT_WINDOW (128u * 1024) /* in flight per direction, frames included */
#define BOX_LISTED_MAX  256

/*
 * From the loop, never inside a call. on_closed is the last; after it, and after box_port_reset,
 * the connection is freed. All are required.
 */
struct box_port_events {
	void *ctx;
	void (*on_opened)(void *ctx);
	/* Untrusted. At most BOX_PORT_WINDOW without box_port_grant. */
	void (*on_data)(void *ctx, const char *data, size_t len);
	/* box_port_write accepts bytes again. */
	void (*on_room)(void *ctx);
	/* The program sends no more. */
	void (*on_finished)(void *ctx);
	/* @err NULL: both sides have finished. ERR_NOT_FOUND: nothing listens on the port. */
	void (*on_closed)(void *ctx, const struct error *err);
};

/**
 * box_port_open - if the box is lost, on_closed precedes its on_lost; reset all connections before
 * destroying the box. ERR_DENIED: the port is that of the box's proxy, or the box
 * has the network of the host.
 */
int box_port_open(struct box *box, uint16_t port, const struct box_port_events *events,
                  struct box_port **ret_port, struct error *err) attr_must_check;
/** box_port_write - Return: bytes accepted; if not all, on_room follows. */
size_t box_port_write(struct box_port *port, const char *data, size_t len);
/** box_port_finish - no more is written; the program's bytes still arrive. */
void box_port_finish(struct box_port *port);
/** box_port_grant - @bytes of on_data were consumed; as many more may come. */
void box_port_grant(struct box_port *port, size_t bytes);
void box_port_reset(struct box_port *port);

enum box_port_bound {
	BOX_BOUND_LOOPBACK = 1u << 0,
	BOX_BOUND_ANY = 1u << 1,
	BOX_BOUND_OTHER = 1u << 2, /* not reached by box_port_open */
};

struct box_port_row {
	uint16_t port;
	uint8_t bound; /* mask of enum box_port_bound */
};

/* Borrowed for the call. */
struct box_port_rows {
	const struct box_port_row *rows; /* by port */
	size_t count;
	bool truncated;
};

/** box_port_list_fn - once, from the loop. @err: NULL, or why @rows is empty. */
typedef void box_port_list_fn(void *ctx, const struct box_port_rows *rows, const struct error *err);

/** box_port_list - TCP ports that programs listen on; without the proxy's. */
int box_port_list(struct box *box, box_port_list_fn *on_listed, void *ctx,
                  struct box_port_list **ret_list, struct error *err) attr_must_check;
void box_port_list_cancel(struct box_port_list *list);
