/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the objects of the proxy, shared by its files.
 *
 *   control.c  receives orders and makes boxes; sends events
 *   box.c      one listener and its rules; accepts connections within the limits
 *   client.c   one connection: read the request, decide, answer
 *   dial.c     the way to the server: resolve, check every address, connect
 *   relay.c    bytes both ways, within the limits
 *   cost.c     what connections hold, and whose end when memory is short
 *
 * A connection goes through READ, DIAL, then RELAY; a tunnel through HELLO before RELAY, where the
 * server name of TLS is compared. A refusal goes through DRAIN, so that the answer arrives.
 */

#include "base/attr.h"
#include "base/budget.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "egress/account.h"
#include "egress/channel.h"
#include "egress/flow.h"
#include "egress/head.h"
#include "egress/order.h"
#include "egress/resolve.h"
#include "egress/rules.h"
#include "egress/target.h"
#include "egress/vault.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct timer;
struct watch;

struct egress {
	struct loop *loop;
	struct resolver *resolver;
	int control_fd;
	struct watch *control;
	struct list boxes, tenants;
	struct list paused; /* connections that wait for their rate */
	struct flow_pipes pipes;
	struct timer *accept; /* boxes wait for their rate of new connections */
	struct timer *resume;
	struct timer *report; /* sends USED */
	uint32_t connections, connections_max;
	struct budget memory;
	bool is_shedding;            /* connections end, as memory is full */
	const char *ca_file;         /* PEM: authorities of hosts */
	struct authority *authority; /* owned; NULL: not sent yet */
	struct tls_trust *trust;     /* owned; NULL: not read yet */
};

struct tenant {
	struct list node;
	uint32_t id;
	uint32_t boxes;
	struct account account;
	struct budget_holder memory;
};

struct box {
	struct egress *egress;
	struct list node;
	struct list clients;
	uint32_t id;
	struct tenant *tenant;
	struct rules *rules;
	struct vault *vault; /* owned */
	struct account account;
	int listener;
	struct watch *watch;
	uint64_t sent, received, connections, denied;
	bool is_changed;             /* USED is due */
	struct egress_event *unsent; /* owned: denials that the socket had no room for */
	size_t unsent_count;
};

enum client_state {
	CLIENT_READ,   /* the request */
	CLIENT_DIAL,   /* resolving and connecting */
	CLIENT_HELLO,  /* the first bytes of a tunnel */
	CLIENT_SECURE, /* handshakes of a tunnel that is intercepted; then READ again */
	CLIENT_RELAY,
	CLIENT_DRAIN, /* refused or over: until the peer has read the answer */
};

struct dial {
	struct lookup *lookup;
	struct in6_addr addresses[RESOLVE_MAX];
	size_t count, next;
	int fd; /* connecting */
	struct watch *watch;
	struct timer *timer;       /* of an address that is not the last */
	enum egress_reason reason; /* of the last address that failed */
	char detail[EGRESS_RULE_LEN];
};

struct client {
	struct box *box;
	struct list node;
	struct list paused;
	enum client_state state;
	bool is_socks, is_greeted; /* SOCKS5; its greeting was answered */
	bool is_tunnel, is_raw;    /* a tunnel; one that need not be TLS */
	bool is_intercepted;       /* a tunnel that ends here, for its secrets */
	bool is_inner;             /* the same, from its handshakes on */
	bool is_untrusted;         /* the server of it did not prove its name: dial.detail */
	struct channel in, out;    /* to the box, to the server */
	struct watch *in_watch, *out_watch;
	struct timer *timer;
	struct buf input; /* what was read and not passed on */
	size_t head_len;  /* of it, the head of a plain request; the rest is its body */
	struct target target;
	char method[HEAD_METHOD_MAX + 1]; /* of a plain request; with its path */
	char *path;
	bool is_chunked; /* its body */
	struct chunks chunks;
	uint64_t body_left;
	struct dial dial;
	struct flow up, down;
	bool is_deaf;        /* the box has sent more than its request */
	bool has_secrets;    /* its request has secrets of the box */
	struct scrub *scrub; /* of those, until the answer; owned */
	size_t cost;         /* cost.c */
};

/* box.c */
void box_pause(struct box *box);
/** box_accept_again - some boxes may have waited long enough. */
void box_accept_again(void *egress);
/** box_resume - accept again if limits permit it. */
void box_resume(struct box *box);
/** box_resume_all - the same for every box, after a connection within a limit that they share. */
void box_resume_all(struct egress *e);
/** box_is_below_shared_limits - those of the tenant and of the proxy. */
bool box_is_below_shared_limits(const struct box *box);
void box_free(struct box *box);
/** box_new - takes @rules, @vault and @listener. */
struct box *box_new(struct egress *e, const struct egress_order *order, struct rules *rules,
                    struct vault *vault, int listener) attr_owned(box_free);

/* client.c */
void client_free(struct client *c);
/** client_start - takes @fd. */
void client_start(struct box *box, int fd);
/** client_dialed - dial.c is done. @fd: connected, or -1 with c->dial.reason. */
void client_dialed(struct client *c, int fd);
/** client_drain - no more is sent to the box; what it still sends is read, as a connection that is
 * closed with unread bytes is reset, and the box would lose the answer. */
void client_drain(struct client *c);
/** client_recheck - the rules have changed: end what they refuse now. */
void client_recheck(struct client *c);

/** client_read_inner - the tunnel is open for a request. May free @c. */
void client_read_inner(struct client *c);

/* A request, a connection to a server, the first bytes of a tunnel and each handshake have this
 * long each. */
#define CLIENT_STEP_US (15 * USEC_PER_SEC)

/* intercept.c */
/** intercept_start - the input has the ClientHello for the host of the tunnel. May free @c. */
void intercept_start(struct client *c);
/** intercept_step - go on with the handshake of the box. May free @c. */
void intercept_step(struct client *c);

/* relay.c */
/** relay_start - may free @c. */
void relay_start(struct client *c);
void relay_pump(struct client *c);
/** relay_resume_paused - continue the connections that waited for their rate. */
void relay_resume_paused(void *egress);

/* dial.c */
void dial_start(struct client *c);
void dial_stop(struct client *c);
/** dial_refusal - the class of the address that @c is connected or connecting to, if the rules do
 * not allow it any more, or NULL. */
const char *dial_refusal(const struct client *c);

/* cost.c */
/** cost_count - after a change of @c's kind or buffers. */
void cost_count(struct client *c);
/** cost_drop - @c ends. */
void cost_drop(struct client *c);

/* control.c */
void control_open(struct egress *e, int fd);
void control_close(struct egress *e);
void control_denied(struct client *c, enum egress_reason reason, const char *detail);
void control_used(struct box *box, enum egress_op op);

/* confine.c */
#define EGRESS_MEMORY_BYTES (1ULL << 30) /* unless told */

/** confine - no new privilege, no file but those of name resolution, no call but the loop's, at
 * most @memory_bytes. @ca_file: may be read, too; NULL: none. @ret_files: how many descriptors the
 * process may have. */
int confine(const char *ca_file, uint64_t memory_bytes, uint32_t *ret_files,
            struct error *err) attr_must_check;
