/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: messages between the daemon and millibox-egress, one per packet of a SOCK_SEQPACKET socket.
 * Both programs come from the same build.
 *
 * The daemon sends a struct egress_order, followed by .rule_count rules (rules.h), each ended by
 * NUL, and .secret_count secrets: a struct egress_secret, then its name, header, format,
 * placeholder and value, and its hosts as "https://NAME:PORT" or "http://NAME:PORT", each ended by
 * NUL. Both ends wipe what they sent or received. OPEN carries one descriptor: a socket that
 * listens in the network namespace of a box. What connects there is that box, whatever it says. The
 * daemon keeps a copy of the descriptor, so that a proxy that starts anew serves the same boxes.
 *
 * The proxy sends a struct egress_event. It sends DENIED before the program in the box gets its
 * answer: when the program ends, the event can be received. While the socket is full it counts
 * equal denials together and sends them when there is room, at the latest before it answers REPORT.
 */

#include <stdint.h>

#define EGRESS_SOCKET_FD   3
#define EGRESS_MESSAGE_MAX (204u * 1024) /* less than a socket of this kind holds */
#define EGRESS_HOST_LEN    254
#define EGRESS_RULE_LEN    256
#define EGRESS_REQUEST_LEN 256

enum egress_op {
	EGRESS_OP_NONE,
	EGRESS_OPEN,  /* serve a box; answered by USED when something changes */
	EGRESS_RULES, /* replace rules and limits; connections that the new rules refuse end */
	EGRESS_CLOSE, /* stop serving a box; answered by CLOSED, the last event of a box */
	/* The authority whose certificates boxes with secrets trust: a struct egress_authority, its
	 * key and its certificate follow the order. Before the first secret for TLS. */
	EGRESS_AUTHORITY,
	EGRESS_DENIED,
	EGRESS_USED,
	EGRESS_CLOSED,
	EGRESS_REPORT, /* answered by USED at once */
	EGRESS_OP_COUNT
};

/* 0: not limited, except for connections. */
struct egress_limits {
	uint32_t connections; /* at the same time; at least 1 */
	uint32_t idle_ms;     /* without a byte in either direction */
	uint32_t opened;      /* new connections per second; ten times as many at once */
	uint32_t unused;
	uint64_t bytes; /* both directions together, over the life of the box */
	uint64_t rate;  /* bytes per second, both directions together */
};

struct egress_order {
	uint32_t op;
	uint32_t box;    /* the daemon's number of the box; not 0, except for AUTHORITY */
	uint32_t tenant; /* OPEN: the daemon's number of the tenant; not 0 */
	uint32_t rule_count;
	uint32_t secret_count;
	uint32_t unused;
	uint64_t used; /* OPEN: bytes that count already, those of a proxy that died */
	struct egress_limits limits;
	struct egress_limits tenant_limits; /* all boxes of the tenant together; .bytes is unused */
};

struct egress_authority {
	uint32_t key_len, cert_len; /* bytes, in DER */
};

#define EGRESS_SECRETS_MAX 8

enum egress_secret_mode {
	EGRESS_SECRET_HEADER,      /* add the header */
	EGRESS_SECRET_PLACEHOLDER, /* replace the placeholder in the header */
	EGRESS_SECRET_MODE_COUNT
};

struct egress_secret {
	uint32_t mode;
	uint32_t host_count;
};

/* Why the proxy refused something. */
enum egress_reason {
	EGRESS_REASON_NONE,
	EGRESS_BAD_REQUEST, /* no HTTP proxy request, no SOCKS5, or ambiguous */
	EGRESS_BAD_NAME,    /* the host is not a plain name */
	EGRESS_NO_HOST,     /* no rule names the host */
	EGRESS_PORT,        /* a rule names the host, not the port */
	EGRESS_TUNNEL,      /* rules allow only some methods or paths, which a tunnel hides */
	EGRESS_METHOD,
	EGRESS_PATH,
	EGRESS_ADDRESS,   /* the name leads to an address that is not public */
	EGRESS_NO_TLS,    /* a tunnel without TLS */
	EGRESS_NO_SNI,    /* TLS without a server name */
	EGRESS_OTHER_SNI, /* the server name differs from the host of the request */
	EGRESS_ECH,       /* the server name is encrypted */
	EGRESS_UNRESOLVED,
	EGRESS_UNREACHABLE,
	EGRESS_BYTES,       /* the box has used up its bytes */
	EGRESS_UNTRUSTED,   /* the host did not prove its name to the proxy */
	EGRESS_SECRET_GONE, /* a secret of the connection was deleted, or is not allowed any more */
	EGRESS_MEMORY,      /* the proxy is short of it, and the tenant holds most */
	EGRESS_REASON_COUNT
};

/** egress_reason_is_denial - a rule refused it; otherwise it failed. */
static inline int egress_reason_is_denial(uint32_t reason)
{
	return reason != EGRESS_UNRESOLVED && reason != EGRESS_UNREACHABLE &&
	       reason != EGRESS_UNTRUSTED && reason != EGRESS_MEMORY;
}

struct egress_event {
	uint32_t op;
	uint32_t box;
	uint32_t reason; /* DENIED: enum egress_reason */
	uint32_t count;  /* DENIED: how often */
	uint16_t port;
	uint16_t unused;
	char host[EGRESS_HOST_LEN];   /* as parsed; "" if it could not be */
	char detail[EGRESS_RULE_LEN]; /* the rule that decided, an address and its class, a server
	                                 name */
	char request[EGRESS_REQUEST_LEN]; /* "GET /path", as far as it fits; "": a tunnel */
	/* USED and CLOSED, since OPEN: */
	uint64_t sent, received; /* bytes, as the box sees it */
	uint64_t connections;    /* that were allowed */
	uint64_t denied;
};
