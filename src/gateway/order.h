/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: messages between the daemon and millibox-gateway, one per packet of a SOCK_SEQPACKET socket.
 * Both programs come from the same build.
 *
 * To the starter, at descriptor GATEWAY_SOCKET_FD: RESET, one SERVER per configured server
 * (spec.h), then START; or RESET again, if a secret changed in between. The starter sends a packet
 * with a descriptor: the socket of a gateway that runs.
 *
 * To a gateway: a struct gateway_order, followed by .text_count texts (allow.h), each ended by NUL.
 * OPEN carries one descriptor: the socket that listens at the path of one box. What connects there
 * is that box, whatever it says. The daemon keeps a copy, so that a gateway that starts anew serves
 * the same boxes.
 *
 * From a gateway: a struct gateway_event. A denied call is sent before the program in the box gets
 * its answer: when the program ends, the event can be received. CATALOG carries a descriptor: a
 * file with the tools of a server, a JSON array as in the answer to tools/list.
 */

#include <stdint.h>

#define GATEWAY_SOCKET_FD   3
#define GATEWAY_MESSAGE_MAX (144u * 1024) /* less than a socket of this kind holds */
#define GATEWAY_SERVER_LEN  64            /* names of servers and NUL */
#define GATEWAY_TOOL_LEN    129           /* names of tools and NUL */
#define GATEWAY_DETAIL_LEN  200
#define GATEWAY_CATALOG_MAX (1u << 20)
#define GATEWAY_TOOLS_MAX   1024 /* of a server */
#define GATEWAY_SERVERS_MAX 64
#define GATEWAY_FRAME_MAX   (10u * 1024 * 1024) /* of the protocol in a box */

enum gateway_op {
	GATEWAY_OP_NONE,
	GATEWAY_RESET, /* all servers follow */
	GATEWAY_SERVER,
	GATEWAY_START,
	GATEWAY_OPEN,  /* serve a box */
	GATEWAY_ALLOW, /* replace what it may call, and its limits; calls in progress go on */
	GATEWAY_CLOSE, /* its calls are cancelled */
	GATEWAY_CALLED,
	GATEWAY_STATE,
	GATEWAY_CATALOG,
	GATEWAY_OP_COUNT
};

struct gateway_limits {
	uint32_t calls; /* at the same time; more connections wait */
	uint32_t unused;
	uint64_t bytes; /* of requests and answers in memory; a request beyond is refused */
};

struct gateway_order {
	uint32_t op;
	uint32_t box;    /* the daemon's number of the box; not 0 */
	uint32_t tenant; /* OPEN: the daemon's number of the tenant; not 0 */
	uint32_t text_count;
	struct gateway_limits limits;
	struct gateway_limits tenant_limits; /* all boxes of the tenant together */
};

enum gateway_outcome {
	GATEWAY_OK,
	GATEWAY_TOOL_FAILED, /* the tool says so in its result */
	GATEWAY_REFUSED,     /* the server answered with an error */
	GATEWAY_DENIED,      /* not on the list of the box */
	GATEWAY_INVALID,     /* no request as the protocol has it */
	GATEWAY_TOO_LARGE,
	GATEWAY_BUSY,
	GATEWAY_TIMEOUT,
	GATEWAY_UNAVAILABLE, /* the server is not there; the caller reads why */
	GATEWAY_CANCELLED,   /* the caller went away */
	GATEWAY_OUTCOME_COUNT
};

enum gateway_state {
	GATEWAY_STARTING,
	GATEWAY_READY,
	GATEWAY_WAITING, /* it failed; it is started again after a while, calls wait */
	GATEWAY_BROKEN,  /* it failed too often: calls are refused until a start succeeds */
	GATEWAY_STATE_COUNT
};

struct gateway_event {
	uint32_t op;
	uint32_t box;                         /* CALLED */
	uint32_t outcome;                     /* CALLED: enum gateway_outcome */
	uint32_t state;                       /* STATE: enum gateway_state */
	uint32_t starts;                      /* STATE: how often it was started */
	uint32_t tools;                       /* CATALOG: how many */
	uint64_t duration_us, sent, received; /* CALLED; bytes as the box sees it */
	char server[GATEWAY_SERVER_LEN];      /* as configured; CALLED: "" if none was meant */
	char tool[GATEWAY_TOOL_LEN];          /* CALLED; what the box wrote, of [A-Za-z0-9._/-] */
	char detail[GATEWAY_DETAIL_LEN];      /* STATE: of the last failure. CALLED, DENIED: rule */
};
