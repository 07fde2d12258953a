/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the engine's interface to millibox-bridge, over a SOCK_SEQPACKET socket that the program has
 * as descriptor BRIDGE_SOCKET_FD. Both programs come from the same build.
 *
 * BRIDGE_CONNECT comes with two descriptors, a network namespace of the engine's user namespace and
 * a SOCK_SEQPACKET socket, and numbers of ranges. The answer, a struct bridge_reply, is sent when
 * the namespace has an interface BRIDGE_BOX_NAME with number BRIDGE_BOX_INDEX, down and without
 * address, whose other end is up on the host. The engine gives its end the address of the reply.
 * The pair disappears with the namespace.
 *
 * Over that socket the daemon gets a struct bridge_refusal for each connection or datagram of the
 * box that the rules refuse: as many as are noted (BRIDGE_NOTED_RATE) and as the socket has room
 * for. A question of one byte is answered by BRIDGE_NOTED_ALL after what was refused before
 * it.
 *
 * BRIDGE_CHANGE gives the box of an address other ranges, which hold for its next packet; its open
 * connections are cut.
 *
 * The first message, without a request and with .seq 0, reports whether the program could start.
 * When the engine closes its end, the program removes everything it made and exits.
 */

#include "base/error.h"
#include <stdint.h>

#define BRIDGE_SOCKET_FD 3
#define BRIDGE_BOX_NAME  "eth0"
/* Above those of devices that some kernels add to every namespace. */
#define BRIDGE_BOX_INDEX 1000

/* Which of --allow a box reaches: all, or those of the first BRIDGE_RANGES_NAMED whose bit is set.
 */
#define BRIDGE_RANGES_ALL   0x8000U
#define BRIDGE_RANGES_NAMED 15
#define BRIDGE_RANGES_MASK  0xffffU

enum bridge_op {
	BRIDGE_CONNECT,
	BRIDGE_CHANGE,
};

struct bridge_request {
	uint32_t seq; /* echoed; not 0 */
	uint32_t op;
	uint32_t ranges;  /* 0: none */
	uint32_t address; /* CHANGE: of a reply */
};

struct bridge_reply {
	uint32_t seq;
	uint32_t address; /* of the box; network byte order */
	uint32_t gateway; /* of the box; network byte order */
	struct error error;
};

/* Why an address is refused. */
enum bridge_noted {
	BRIDGE_NOTED_ALL,     /* the answer to a question */
	BRIDGE_NOTED_ADDRESS, /* it is not public, and not opened for the box */
	BRIDGE_NOTED_HOST,    /* it is the host's own */
	BRIDGE_NOTED_BOX,     /* it is of the subnet of boxes */
	BRIDGE_NOTED_COUNT
};

struct bridge_refusal {
	uint32_t address; /* in network byte order */
	uint16_t port;    /* in host byte order, as the next */
	uint16_t from;    /* the box's: a program's second try has another one, the kernel's not */
	uint8_t is_udp;   /* else TCP */
	uint8_t why;      /* enum bridge_noted */
	uint8_t unused[2];
};
