/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: connections of the host to TCP ports of the box's own loopback: 127.0.0.1, then ::1. The
 * host names a port and never an address, so nothing else can be reached.
 *
 * The agent connects itself. Unlike a file's name, a port carries no rights: TCP shows no
 * credentials, and a child would only use up a process of the program's. The peer is hostile: its
 * bytes are forwarded unread, and what the host may send ahead (WIRE_PORT_WINDOW) is all that is
 * stored for it.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "wire/msg.h"
#include <stdbool.h>
#include <stdint.h>

#define PORTS_SOURCES WIRE_PORTS_MAX

struct agent;
struct pollfd;

struct port_stream {
	uint32_t id; /* 0: free slot */
	uint16_t port;
	int family; /* of the present attempt */
	int fd;     /* owned */
	bool opened;
	bool finished;      /* PORT_FINISH was received */
	bool shut;          /* and passed on */
	bool ended;         /* PORT_FINISHED was sent */
	struct buf pending; /* for the program */
	uint32_t owed;      /* window bytes not yet returned to the host */
	uint32_t granted;   /* what the host accepts */
};

struct ports {
	struct port_stream streams[WIRE_PORTS_MAX];
	size_t first; /* the first to read from in the next round: each has its turn */
};

void ports_init(struct agent *a);
/** ports_drop - reset all: there is a new host. */
void ports_drop(struct agent *a);
/** ports_watch - unused entries get fd -1. */
void ports_watch(const struct agent *a, struct pollfd *fds);
int ports_pump(struct agent *a, const struct pollfd *fds) attr_must_check;

/* For dispatch.c. */
int ports_open(struct agent *a, const struct frame *frame) attr_must_check;
int ports_send(struct agent *a, const struct frame *frame) attr_must_check;
int ports_finish(struct agent *a, const struct frame *frame) attr_must_check;
int ports_grant(struct agent *a, const struct frame *frame) attr_must_check;
int ports_reset(struct agent *a, const struct frame *frame) attr_must_check;
/* port_list.c */
int port_list(struct agent *a, const struct frame *frame) attr_must_check;

struct port_found {
	uint16_t port;
	uint8_t bound; /* mask of enum wire_port_bound */
};

struct port_table {
	struct port_found rows[WIRE_LISTED_MAX];
	size_t count;
	bool truncated;
};

/** port_list_line - add the socket in a line of /proc/net/tcp or tcp6 if it listens. Pure. */
void port_list_line(struct port_table *table, const char *line);
