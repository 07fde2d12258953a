/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon's end of a process that serves boxes from outside: the proxy (egress_link.c) and
 * the gateway (gateway_link.c). A port is the listening socket of one box. The process may die at
 * any time: its starter sends a socket to the next one, which gets all ports again. Connections
 * that come meanwhile wait.
 *
 * A port has at most one order due, the latest: orders never overtake each other, and a full socket
 * costs no memory. A port that is closed lives until its last order is sent.
 *
 * Both structs are embedded by their users; the callbacks get them back.
 */

#include "base/list.h"
#include "service/reach.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct map;
struct service_link;
struct service_port;
struct watch;

#define SERVICE_EVENT_MAX 2048

struct service_ops {
	const char *program;
	const char *loss;     /* what boxes lack when the starter has ended */
	uint32_t open, close; /* orders; 0 is none */
	size_t event_size;    /* at most SERVICE_EVENT_MAX */
	/* Send the order that is due to link->process. Return: 0 or a negative errno; -EAGAIN: the
	 * socket is full. */
	int (*send)(const struct service_port *port);
	/* @fd: borrowed; -1: none. */
	void (*on_event)(struct service_link *link, void *event, int fd);
	/* The process that knew @port is gone; NULL: nothing to do. */
	void (*on_forgotten)(struct service_port *port);
	/* There is no process now; the starter starts another, or @is_last. */
	void (*on_ended)(struct service_link *link, bool is_last);
	void (*free_port)(struct service_port *port);
};

struct service_link {
	const struct service_ops *ops;
	struct loop *loop;
	int starter; /* owned; -1: gone, there will be no other process */
	struct watch *starter_watch;
	int process; /* owned; -1: none now */
	struct watch *process_watch;
	uint32_t generation; /* of the process */
	struct list ports;
	struct map *tenants; /* by name: their numbers, owned */
	uint32_t last_port, last_tenant;
};

struct service_port {
	struct service_link *link;
	struct list node;
	uint32_t number;
	int listener; /* borrowed; -1: closed */
	char tenant[BOX_TENANT_LEN];
	uint32_t due;   /* order that waits for room in the socket; 0: none */
	bool is_closed; /* only its last order is due */
};

/** service_link_init - takes @starter: each message carries the socket of a new process. */
void service_link_init(struct service_link *l, const struct service_ops *ops, struct loop *loop,
                       int starter);
/** service_link_done - its ports are closed. */
void service_link_done(struct service_link *l);
/** service_link_send - all orders that are due, as far as they fit. */
void service_link_send(struct service_link *l);
/** service_link_receive - one event. Return: whether there may be more. */
bool service_link_receive(struct service_link *l);
/** service_link_receive_all - what the process has sent. */
void service_link_receive_all(struct service_link *l);
/** service_link_find - NULL: closed. */
struct service_port *service_link_find(const struct service_link *l, uint32_t number);

/** service_port_open - @listener is borrowed as long as the port. */
void service_port_open(struct service_port *p, struct service_link *l, int listener,
                       const char *tenant);
/** service_port_order - @op replaces what is due, except the order to open. */
void service_port_order(struct service_port *p, uint32_t op);
/** service_port_close - @p is freed when the process knows, possibly now. */
void service_port_close(struct service_port *p);
/** service_port_tenant - the tenant's number. */
uint32_t service_port_tenant(const struct service_port *p);
