/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by the files of mcp/. A session owns its requests and streams; a request is freed
 * when answered or cancelled.
 *
 * Limits: sessions of the daemon and of a tenant (mcp.max_sessions, mcp.max_tenant_sessions),
 * requests and subscriptions of a session, kept events (mcp.max_buffers), message size
 * (http.max_body).
 */

#include "api/internal.h"
#include "api/mcp/mcp.h"
#include "api/mcp/rpc.h"
#include "api/tools/call.h"
#include "base/buf.h"
#include "base/list.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_request;
struct map;
struct timer;

/* Oldest first: they are compared. */
enum mcp_version {
	MCP_2024_11_05,
	MCP_2025_03_26,
	MCP_2025_06_18,
	MCP_2025_11_25,
	MCP_VERSION_COUNT
};

#define MCP_ID_LEN            36 /* "mcp_" and 32 characters */
#define MCP_PENDING_MAX       64
#define MCP_SUBSCRIPTIONS_MAX 256

/* Kept for clients that reconnect. */
struct mcp_event {
	struct list node; /* in mcp_stream.events */
	struct list own;  /* in mcp_session.events */
	struct list same; /* in mcp_tenant.events */
	struct mcp_stream *stream;
	uint64_t number;
	size_t len, cost; /* of @text, in memory */
	char text[];      /* a server-sent event */
};

/* A client may disconnect and resume. */
struct mcp_stream {
	struct list node;
	struct mcp_session *session;
	uint64_t number; /* within the session */
	uint64_t next;
	uint64_t lost;            /* last dropped event; 0: none */
	struct list events;       /* oldest first */
	struct http_request *req; /* NULL: disconnected */
	size_t open;              /* unanswered requests */
	bool standing;            /* for messages of no request */
	bool ended;
	uint64_t ended_us;
};

/* Of a WebSocket session. */
struct mcp_sink {
	void (*send)(void *ctx, const char *text, size_t len);
	void (*close)(void *ctx);
	void (*check)(void *ctx); /* end the session if its key is invalid */
	void *ctx;
};

struct mcp_subscription {
	struct list node; /* in mcp_session.subscriptions */
	struct list same; /* in mcp.watched: of the same object */
	struct mcp_session *session;
	char *uri;
	char *key; /* in mcp.watched; NULL: not there */
};

/* Freed with its last session. */
struct mcp_tenant {
	struct list node; /* in mcp.tenants */
	struct mcp *mcp;
	struct list sessions; /* least recently used first */
	size_t count;
	struct list events; /* of all its streams, oldest first */
	size_t bytes;
	bool list_changed; /* notification pending */
	char name[];
};

struct mcp_session {
	struct list node; /* in mcp.sessions */
	struct list same; /* in mcp_tenant.sessions */
	struct mcp *mcp;
	struct mcp_tenant *of;
	char id[MCP_ID_LEN + 1];
	const char *tenant; /* @of->name */
	enum mcp_version version;
	bool ready; /* initialize was answered */
	int log_level;
	uint64_t used_us;
	struct list requests;
	size_t requests_count;
	struct list streams;
	uint64_t last_stream;
	struct list events; /* of all its streams, oldest first */
	size_t bytes;
	struct mcp_stream *standing; /* NULL: never opened */
	struct mcp_sink sink;        /* functions NULL: HTTP */
	struct list subscriptions;
	size_t subscriptions_count;
};

struct mcp {
	struct router *router;
	struct map *by_id;
	struct list sessions;
	size_t count;
	size_t sockets;
	struct map *by_tenant; /* name -> struct mcp_tenant */
	struct list tenants;
	size_t tenants_count;
	size_t bytes;          /* of all events */
	struct map *watched;   /* key -> list of subscriptions; see subscribe.c */
	struct timer *timer;   /* expiry, keep-alive */
	struct timer *changes; /* delays list_changed */
	bool tools_changed;    /* that of tools is pending, for all */
	bool stopped;
};

/* While dispatched; on the stack. */
struct mcp_post {
	struct mcp *mcp;
	struct http_request *req;
	const struct principal *who;
	struct mcp_session *session;
	bool takes_events;
	bool array; /* a batch: so is the answer */
	bool invalid;
	struct buf answers; /* comma-separated */
	size_t answers_count;
	size_t messages; /* dispatched */
	size_t pending;  /* unanswered requests */
};

/* Until answered. */
struct mcp_request {
	struct call call; /* cancelled with the request */
	struct list node;
	struct mcp_session *session;
	json_t *id;     /* owned */
	json_t *params; /* owned; never NULL */
	json_t *token;  /* owned; NULL: no progress wanted */
	uint64_t progress;
	/* Where the answer goes; all NULL: the sink, or nowhere. */
	struct mcp_post *post; /* while dispatched */
	struct mcp_stream *stream;
	struct http_request *http;
};

void mcp_tenant_enter(struct mcp_session *s, const char *name);
void mcp_tenant_leave(struct mcp_session *s);
/**
 * mcp_tenant_hog - a tenant over its share of kept events, @first if possible. Exists while the
 * limit is exceeded.
 */
struct mcp_tenant *mcp_tenant_hog(struct mcp_tenant *first);
/** mcp_tenant_take_message - counts as a request; ERR_QUOTA. */
int mcp_tenant_take_message(const struct mcp *mcp, const char *tenant,
                            struct error *err) attr_must_check;
/** mcp_tenant_key_is_valid - @key_id NULL: authenticated without a key. */
bool mcp_tenant_key_is_valid(const struct mcp *mcp, const char *key_id);

struct mcp_session *mcp_session_new(struct mcp *mcp, const char *tenant, struct error *err);
void mcp_session_free(struct mcp_session *s);
/** mcp_session_find - NULL: unknown, or another tenant's. */
struct mcp_session *mcp_session_find(const struct mcp *mcp, const char *tenant, const char *id);
void mcp_session_touch(struct mcp_session *s);
/** mcp_session_notify - of no request; dropped without a stream for these. Takes @params. */
void mcp_session_notify(struct mcp_session *s, const char *method, json_t *params);
const char *mcp_session_version_name(enum mcp_version version);
/** mcp_session_version_find - MCP_VERSION_COUNT: unknown. */
enum mcp_version mcp_session_version_find(const char *name);

struct mcp_stream *mcp_stream_new(struct mcp_session *s);
/**
 * mcp_stream_attach - send the events after @after, then new ones, to @req. Disconnects the
 * previous reader.
 */
void mcp_stream_attach(struct mcp_stream *t, struct http_request *req, uint64_t after);
void mcp_stream_send(struct mcp_stream *t, const char *text, size_t len);
/** mcp_stream_answered - one request. The last one ends the stream and may free it. */
void mcp_stream_answered(struct mcp_stream *t);
/** mcp_stream_release - end the response; the reader may resume. */
void mcp_stream_release(struct mcp_stream *t);
/** mcp_stream_free - @answer: end the response too. */
void mcp_stream_free(struct mcp_stream *t, bool answer);
/**
 * mcp_stream_find - by event id; *ret_number: the event. NULL: unknown, or later events were
 * dropped.
 */
struct mcp_stream *mcp_stream_find(struct mcp_session *s, const char *event_id,
                                   uint64_t *ret_number);
/** mcp_stream_beat - a comment: proxies close idle connections. */
void mcp_stream_beat(struct mcp_stream *t);

void mcp_post_answer(struct mcp_post *post, const char *text, size_t len);

/**
 * mcp_dispatch - start a request. @post gets the answer while dispatched; later the place that the
 * request names. @post NULL: the sink.
 */
void mcp_dispatch(struct mcp_session *s, struct mcp_post *post, const struct principal *who,
                  const char *request_id, const struct rpc_message *message);
void mcp_dispatch_notification(struct mcp_session *s, const struct rpc_message *message);
/** mcp_request_drop - without an answer. */
void mcp_request_drop(struct mcp_request *q);
/** mcp_request_text - of params; NULL: absent, or not a string without NUL. */
const char *mcp_request_text(const struct mcp_request *q, const char *name);

/* Answer at once. Return: owned, or NULL with *err. */
typedef json_t *mcp_answer_fn(struct mcp_request *q, struct error *err);
mcp_answer_fn mcp_resources_subscribe, mcp_resources_unsubscribe; /* subscribe.c */
mcp_answer_fn mcp_complete;                                       /* complete.c */

void mcp_subscription_free(struct mcp_subscription *sub);
void mcp_flush_changes(void *ctx);
/** mcp_watch_begin - watch sandboxes, templates and languages until mcp_watch_end. */
void mcp_watch_begin(struct mcp *mcp);
void mcp_watch_end(struct mcp *mcp);
