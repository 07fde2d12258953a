/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the files of MCP share. A session owns its requests and streams; a request is freed by
 * its answer, or with its session.
 *
 * What is bounded, and by what: sessions of the daemon and of a tenant (mcp.max_sessions,
 * mcp.max_tenant_sessions), requests under way and subscriptions of a session, events that are kept
 * for clients that come back (of a session, of all: mcp.max_buffers), a message (http.max_body).
 */

#include "api/internal.h"
#include "api/mcp/mcp.h"
#include "api/mcp/rpc.h"
#include "base/list.h"
#include "core/tenant/principal.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct http_request;
struct map;
struct sandbox_uri;
struct timer;
struct tool_call;

/* Oldest first, so that they can be compared. */
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
#define MCP_URI_MAX           4096
#define MCP_PAGE              50

/* What is kept of a stream for a client that was cut off. */
struct mcp_event {
	struct list node; /* of its stream, the oldest first */
	struct list own;  /* of its session */
	struct list same; /* of its tenant's sessions */
	struct mcp_stream *stream;
	uint64_t number;
	size_t len;
	char text[]; /* as it is sent */
};

/* Messages in order, with numbers; a client may leave and come back. */
struct mcp_stream {
	struct list node;
	struct mcp_session *session;
	uint64_t number; /* which of the session's */
	uint64_t next;   /* of its next event */
	uint64_t lost;   /* events up to this one are not kept any more; 0: all are */
	struct list events;
	struct http_request *req; /* who reads; NULL: nobody at the moment */
	size_t open;              /* requests that it will have the answers of */
	bool standing;            /* of no request: what the server says by itself */
	bool ended;
	uint64_t ended_us;
};

/* How messages reach a session that has one connection of its own. */
struct mcp_sink {
	void (*send)(void *ctx, const char *text, size_t len);
	void (*close)(void *ctx); /* the session is over; nothing more is sent */
	void (*check)(void *ctx); /* end it if its key is no longer valid */
	void *ctx;
};

struct mcp_subscription {
	struct list node; /* of the session */
	struct list same; /* of all that are about the same sandbox or template */
	struct mcp_session *session;
	char *uri;
	char *key; /* of mcp->watched; NULL: it is not looked for there */
};

/* What the sessions of one tenant have in common; there while it has any. */
struct mcp_tenant {
	struct list node; /* of mcp->tenants */
	struct mcp *mcp;
	struct list sessions; /* in the order of their last use */
	size_t count;
	struct list events; /* of their streams, the oldest first */
	size_t bytes;
	bool list_changed; /* its sessions were not told yet */
	char name[];
};

struct mcp_session {
	struct list node; /* of all, in the order of their last use */
	struct list same; /* of its tenant's, likewise */
	struct mcp *mcp;
	struct mcp_tenant *of;
	char id[MCP_ID_LEN + 1];
	const char *tenant; /* the name of @of */
	enum mcp_version version;
	bool ready; /* initialize was answered */
	int log_level;
	uint64_t used_us;
	struct list requests;
	size_t requests_count;
	struct list streams;
	uint64_t last_stream;
	struct list events; /* of its streams, the oldest first */
	size_t bytes;
	struct mcp_stream *standing;
	struct mcp_sink sink; /* its functions NULL: HTTP */
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
	size_t bytes;        /* of events, of all of them */
	struct map *watched; /* what changes -> struct list of subscriptions; see mcp_subscribe.c */
	struct timer *timer; /* expiry, signs of life */
	struct timer *changes;
	bool stopped;
};

/* A question that is being answered. */
struct mcp_request {
	struct list node;
	struct mcp_session *session;
	json_t *id;     /* owned */
	json_t *params; /* owned; never NULL */
	json_t *token;  /* for progress; owned; NULL: none is wanted */
	uint64_t progress;
	const struct principal *principal; /* while it is dispatched */
	char *request_id;
	/* Where the answer goes; none of them while it is dispatched, see mcp_request_answer. */
	struct mcp_stream *stream;
	struct http_request *http;
	bool starting;
	/* Who has not yet said where the answer goes; set to NULL when the request is freed. */
	struct mcp_request **holder;
	char *answer; /* owned: given while starting, or while it is held */
	size_t answer_len;
	/* What it waits for; @cancel ends that. NULL: nothing. */
	void *work;
	void (*cancel)(void *work);
};

/* mcp_tenant.c */
/** mcp_tenant_enter - @s is one of @name's from now on; mcp_tenant_leave ends that. */
void mcp_tenant_enter(struct mcp_session *s, const char *name);
void mcp_tenant_leave(struct mcp_session *s);
/** mcp_tenant_hog - who has more than its part of what may be kept; @first is asked before others.
 * One is there where more is kept than may be. */
struct mcp_tenant *mcp_tenant_hog(struct mcp_tenant *first);
/** mcp_take_message - a message counts for its tenant's rate as a request does; ERR_QUOTA. */
int mcp_take_message(const struct mcp *mcp, const char *tenant, struct error *err) attr_must_check;
/** mcp_key_is_valid - whether who came with it would still be let in; NULL: came without one. */
bool mcp_key_is_valid(const struct mcp *mcp, const char *key_id);

/* mcp_session.c */
struct mcp_session *mcp_session_new(struct mcp *mcp, const char *tenant, struct error *err);
/** mcp_session_once - for a request of another dialect, which lasts no longer: it is ready, and
 * takes nobody's place. */
struct mcp_session *mcp_session_once(struct mcp *mcp, const char *tenant);
void mcp_session_free(struct mcp_session *s);
/** mcp_session_find - NULL: none of this id, or another tenant's. */
struct mcp_session *mcp_session_find(const struct mcp *mcp, const char *tenant, const char *id);
void mcp_session_touch(struct mcp_session *s);
/** mcp_session_tell - what belongs to no request; dropped where nobody has ever listened. */
void mcp_session_tell(struct mcp_session *s, const char *method, json_t *params);
const char *mcp_version_name(enum mcp_version version);
/** mcp_version_find - MCP_VERSION_COUNT: unknown. */
enum mcp_version mcp_version_find(const char *name);

/* mcp_stream.c */
struct mcp_stream *mcp_stream_new(struct mcp_session *s);
/** mcp_stream_attach - @req reads what comes; who read before is let go. Begins the answer. */
void mcp_stream_attach(struct mcp_stream *t, struct http_request *req, uint64_t after);
void mcp_stream_send(struct mcp_stream *t, const char *text, size_t len);
/** mcp_stream_answered - one of its requests is; after the last it ends, and may be gone. */
void mcp_stream_answered(struct mcp_stream *t);
/** mcp_stream_release - whoever reads is let go, and may come back; nothing else ends. */
void mcp_stream_release(struct mcp_stream *t);
/** mcp_stream_free - whoever reads is let go; @answer: properly. */
void mcp_stream_free(struct mcp_stream *t, bool answer);
/** mcp_stream_find - that of an event's id; *ret_number is the event. NULL: none, or not all of
 * what came after it is kept. */
struct mcp_stream *mcp_stream_find(struct mcp_session *s, const char *event_id,
                                   uint64_t *ret_number);
/** mcp_stream_beat - a sign of life, so that nothing on the way takes it for dead. */
void mcp_stream_beat(struct mcp_stream *t);

/* mcp_dispatch.c */
/**
 * mcp_dispatch - begin to answer @message, a request. Return: the request where its answer is yet
 * to come (give it a stream or @http), or NULL with *ret_answer, owned.
 */
struct mcp_request *mcp_dispatch(struct mcp_session *s, const struct principal *who,
                                 const char *request_id, const struct rpc_message *message,
                                 struct buf *ret_answer);
/**
 * mcp_request_hold - until mcp_request_let_go *@holder is @q, or NULL once it was dropped; an
 * answer that comes meanwhile is kept. Between two messages of one batch anything may happen to the
 * first.
 */
void mcp_request_hold(struct mcp_request *q, struct mcp_request **holder);
/** mcp_request_let_go - Return: whether it was answered: then @ret_answer has it, and @q is gone.
 */
bool mcp_request_let_go(struct mcp_request *q, struct buf *ret_answer);
/** mcp_notify - a notification of the client. */
void mcp_notify(struct mcp_session *s, const struct rpc_message *message);
/** mcp_request_result - the end of @q; @result is released. */
void mcp_request_result(struct mcp_request *q, json_t *result);
void mcp_request_error(struct mcp_request *q, int code, const char *message, json_t *data);
void mcp_request_fail(struct mcp_request *q, const struct error *err);
/** mcp_request_tell - a notification that belongs to it. */
void mcp_request_tell(struct mcp_request *q, const char *method, json_t *params);
/** mcp_request_drop - without an answer. */
void mcp_request_drop(struct mcp_request *q);
/** mcp_request_text - a member of params; NULL: not there, or no text. */
const char *mcp_request_text(const struct mcp_request *q, const char *name);

#define MCP_CURSOR_LEN 32
/** mcp_cursor_read - where a page begins, 0 for the first. Return: 0, or -1: answered. */
int mcp_cursor_read(struct mcp_request *q, uint64_t *ret_offset);
void mcp_cursor_set(json_t *page, uint64_t offset);

/* Methods. */
typedef void mcp_method_fn(struct mcp_request *q);
mcp_method_fn mcp_tools_list, mcp_tools_call;                     /* mcp_tool.c */
mcp_method_fn mcp_resources_list, mcp_resources_read;             /* mcp_resource.c */
mcp_method_fn mcp_resource_templates_list;                        /* mcp_resource.c */
mcp_method_fn mcp_resources_subscribe, mcp_resources_unsubscribe; /* mcp_subscribe.c */
mcp_method_fn mcp_prompts_list, mcp_prompts_get;                  /* mcp_prompt.c */
mcp_method_fn mcp_complete;                                       /* mcp_complete.c */

/** mcp_resource_check - whether who asks may know what is in it: ERR_NO_SCOPE, ERR_NOT_FOUND. */
int mcp_resource_check(const struct mcp_request *q, const struct sandbox_uri *uri,
                       struct error *err) attr_must_check;

/* mcp_subscribe.c */
void mcp_subscription_free(struct mcp_subscription *sub);
/** mcp_flush_changes - tell the sessions whose lists have changed. */
void mcp_flush_changes(void *ctx);
/** mcp_watch_begin - from now on changes of sandboxes and templates are seen. */
void mcp_watch_begin(struct mcp *mcp);
void mcp_watch_end(struct mcp *mcp);
