/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by the files of lib/http. One http_listener per listening socket, one http_conn per
 * connection, at most one http_request per connection.
 *
 * Ownership: the server owns listeners, peers and lingering sockets; connections and requests are
 * freed only when microhttpd reports their end (conn_closed, request_free).
 */

#include "base/buf.h"
#include "base/list.h"
#include "http/framing.h"
#include "http/server.h"
#include <microhttpd.h>
#include <sys/socket.h>

#define REQUEST_LINE_MAX 8192
/* Connections that are kept for a moment after a refusal; fewer where descriptors are few. */
#define REFUSED_MAX 2048

/* What a connection waits for. Each wait has a fixed length, so a list in order of entry is in
 * order of deadlines: O(1). */
enum conn_wait {
	WAIT_REQUEST, /* rest of a request, or the client's reading */
	WAIT_IDLE,    /* for the next request */
	WAIT_CROWD,   /* for the first request of a connection beyond the limits */
	WAIT_LEAVE,   /* turned away: for the client to read why */
	WAIT_COUNT
};

/* Connections that a new one may replace, in order of preference. */
enum conn_spare {
	SPARE_STRANGER, /* never authenticated, and its client is awaited */
	SPARE_IDLE,     /* authenticated, between requests */
	SPARE_CROWDED,  /* accepted for an error response only: replaced by another such */
	SPARE_COUNT
};

/* Counted together, each oldest first. */
struct conn_room {
	size_t count; /* without those that were evicted but are not closed yet */
	struct list spares[SPARE_COUNT];
};

struct http_server {
	struct http_server_config config;
	struct list listeners;
	struct list conns;
	struct list waits[WAIT_COUNT];
	struct list lingering;
	struct conn_room tcp, local; /* the Unix socket has room of its own */
	size_t conns_count;
	size_t evicted_count; /* since http_server_take_evicted */
	size_t refused_max;   /* of those, and of connections that leave */
	size_t lingering_count;
	size_t leaving_count;    /* in waits[WAIT_LEAVE] */
	size_t bodies_bytes;     /* of all requests */
	size_t responses_bytes;  /* of all responses in memory */
	struct map *peers;       /* address -> struct http_peer */
	struct map *body_quotas; /* name -> struct body_quota */
	size_t body_quotas_busy;
	struct timer *timer;
	struct timer *starved_timer; /* looks for descriptors for starved listeners */
	uint64_t timer_at_us;        /* 0: not running */
	int hangup_fd;               /* epoll: disconnected clients */
	int diag_fd;                 /* for tcp_owner.h; -1: none */
	struct watch *hangup_watch;
	bool quiescing;
	void (*on_quiet)(void *ctx);
	void *quiet_ctx;
};

struct http_listener {
	struct list node;
	struct http_server *server;
	struct MHD_Daemon *mhd; /* owned */
	int fd;                 /* owned; -1 after quiesce or retirement */
	size_t conns_count;
	struct watch *watch; /* of microhttpd's epoll descriptor */
	struct timer *timer;
	bool is_unix;
	bool is_tls;
	bool retired; /* another listener has its socket; ends with its last connection */
	bool run_deferred;
	bool starved; /* microhttpd has stopped accepting: no descriptor was left */
};

/* A peer, or one account of it. */
struct http_peer {
	char name[64];                       /* of the peer */
	char key[64 + 1 + HTTP_ACCOUNT_MAX]; /* name, account */
	bool is_local;                       /* on this host */
	size_t count;                        /* of connections */
	struct conn_room room;
};

/* Body bytes in progress, charged to one name. */
struct body_quota {
	char *key; /* owned */
	size_t requests;
	size_t bytes;
};

struct http_conn {
	struct list node;
	struct list wait;              /* in server->waits, or on no list */
	struct list spare, peer_spare; /* in the rooms of server and peer, or on no list */
	struct http_server *server;
	struct http_listener *listener;
	struct MHD_Connection *mhd;
	struct http_peer *peer;
	struct http_request *req; /* NULL between requests */
	uint64_t deadline_us;
	struct framing framing; /* of the bytes that microhttpd has read */
	uint64_t heads;         /* that microhttpd has parsed */
	int fd;                 /* owned by microhttpd */
	unsigned uid;           /* valid with has_uid */
	bool has_uid;
	bool uid_asked; /* of the kernel, for TCP */
	bool suspended;
	bool hung_up;
	bool served; /* not its first request */
	bool crowded;
	bool known;         /* a request was authenticated */
	bool evicted;       /* no longer counted: made room, or found none */
	bool leaving;       /* turned away; in waits[WAIT_LEAVE] */
	bool refused;       /* answered out of turn; nothing more is read */
	bool unread;        /* answered before the body was read */
	struct http_ws *ws; /* NULL: not upgraded to a WebSocket */
};

enum request_phase {
	REQUEST_HEAD,
	REQUEST_BODY,
	REQUEST_WAITING,  /* with the handler */
	REQUEST_ANSWERED, /* @response set, microhttpd does not have it */
	REQUEST_SENDING,
	REQUEST_REFUSED, /* by its request line; ignore headers */
};

struct http_request {
	struct http_conn *conn;
	enum request_phase phase;
	char id[64];
	const char *method; /* owned by microhttpd */
	size_t target_len;
	uint64_t began_us;
	uintptr_t tags[HTTP_TAGS];
	struct {
		const char *name;
		char *value; /* owned */
	} added[HTTP_HEADERS_ADDED];
	size_t added_count;
	char *note;               /* owned; NULL: none */
	struct body_quota *quota; /* NULL: not charged to a quota */
	char *path;               /* owned */
	char **texts;             /* owned; decoded query values, NULL-terminated */
	struct buf body;
	bool close; /* after the response */
	bool gone;
	void (*gone_fn)(void *ctx);
	void *gone_ctx;

	struct MHD_Response *response; /* owned until queued */
	int status;                    /* 0: not answered */
	uint64_t sent_bytes;
	size_t answer_bytes; /* in memory; part of server->responses_bytes */
	uint64_t answer_since_us;
	bool cut;           /* by response_quota.c */
	struct buf pending; /* of a stream; not yet taken */
	size_t pending_off;
	bool stream;
	bool sized; /* has a Content-Length */
	bool stream_ended;
	void (*taken_fn)(void *ctx, size_t bytes); /* NULL: no flow control */
	void *taken_ctx;
	uint64_t length;   /* of a stream; HTTP_LENGTH_UNKNOWN */
	size_t step_bytes; /* since the client's timeout restarted */
	bool takes_body;
	bool body_held; /* microhttpd keeps what the sink left */
	struct http_body_events sink;
	struct http_ws *ws; /* owned: will become a WebSocket; NULL: will not, or has */
};

/** server_check_quiet - after a connection of a quiescing server ended. */
void server_check_quiet(struct http_server *s);
void listener_run_soon(struct http_listener *l);
/** server_refuse_framing - from the loop: answer a connection whose framing is bad, if it is its
 * turn. */
void server_refuse_framing(void *conn);
/** server_refuse_crowd - the same for one that is turned away, if its client can read it now. */
void server_refuse_crowd(void *conn);
bool server_can_refuse(const struct http_conn *c);
/** listener_check_retired - after a connection ended. */
void listener_check_retired(struct http_listener *l);

struct http_conn *conn_opened(struct http_listener *l, struct MHD_Connection *mhd);
void conn_closed(struct http_conn *c);
/** conn_make_way - have one idle connection of @l end, so that microhttpd accepts again. */
void conn_make_way(struct http_listener *l);
void conn_wait(struct http_conn *c, enum conn_wait wait);
void conn_wait_end(struct http_conn *c);
void conn_cut(struct http_conn *c);
/** conn_bad_framing - refuse what the client sent, after the requests before it. */
void conn_bad_framing(struct http_conn *c);
/** conn_can_answer - one that is turned away: its client can perhaps read now. */
void conn_can_answer(struct http_conn *c);
/** conn_set_known - see http_set_known. */
void conn_set_known(struct http_conn *c, const char *account);
void room_init(struct conn_room *room);
/** conn_peer_key - the peer that @addr belongs to: see http_peer. */
int conn_peer_key(const struct sockaddr *addr, char *ret_key, size_t size) attr_must_check;
void conn_suspend(struct http_conn *c);
void conn_resume(struct http_conn *c);
void conn_expire(void *server);
void conn_hangups(void *server, int events);

struct http_request *request_new(struct http_conn *c, const char *target);
void request_free(struct http_request *req);
/** request_gone - tell the handler, once, of the disconnect. */
void request_gone(struct http_request *req);
/** request_check_line - before microhttpd parses it: size, number of arguments. */
int request_check_line(const struct http_request *req, const char *target,
                       struct error *err) attr_must_check;
/** request_check - of a complete header: framing, sizes, names, path. */
int request_check(struct http_request *req, const char *target, struct error *err) attr_must_check;
/** request_add_body - Return: 0, or -1 with *err: over a limit. */
int request_add_body(struct http_request *req, const char *data, size_t len,
                     struct error *err) attr_must_check;
bool request_has_body(const struct http_request *req);
/** http_decode_path - once. Return: owned, or NULL: bad escape, NUL or control. */
char *http_decode_path(const char *target) attr_must_check;

/** body_quota_add - Return: 0, or -EBUSY: over the limit of all and over this one's share. */
int body_quota_add(struct http_request *req, size_t bytes) attr_must_check;
void body_quota_drop(struct http_request *req, size_t bytes);
void body_quota_release(struct http_request *req);

/** response_quota_set - bytes of the response that wait in memory; cuts others off for room. */
void response_quota_set(struct http_request *req, size_t bytes);
void response_quota_drop(struct http_request *req);

enum MHD_Result response_queue(struct http_request *req) attr_must_check;

/** response_upgrade - with 101; microhttpd then hands the socket over. */
void response_upgrade(struct http_request *req, MHD_UpgradeHandler handler, void *ctx);

/** ws_abort - at once, without a close frame. */
void ws_abort(struct http_ws *ws);
void ws_hung_up(struct http_ws *ws);
/** ws_unborn - the client disconnected before the upgrade. */
void ws_unborn(struct http_ws *ws);

/** tls_send - bypassing microhttpd, as much as the socket takes at once; nothing before the end of
 * the handshake. */
void tls_send(struct http_conn *c, const void *data, size_t len);
/** tls_is_ready - the handshake is over, or there is no TLS. */
bool tls_is_ready(const struct http_conn *c);

void linger_start(struct http_server *s, int fd);
void linger_end_all(struct http_server *s);
