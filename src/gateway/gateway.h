/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the objects of the gateway, shared by its files.
 *
 *   control.c  receives orders and makes boxes; sends events
 *   box.c      the socket of a box and what it may call; accepts connections within the limits
 *   client.c   one connection, which is one call: read, decide, call, answer
 *   answer.c   the texts of answers
 *   server.c   one outside server: its life; call.c: its calls; tools.c: its tools
 *   stdio.c    a server that is a program; http.c: one that is a URL
 *
 * What boxes and servers send is hostile: it is bounded, checked by scan.h, and passed on as text.
 */

#include "base/attr.h"
#include "base/budget.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "gateway/order.h"
#include "gateway/scan.h"
#include "gateway/spec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct timer;
struct watch;
struct server;
struct fetcher;

struct gateway {
	struct loop *loop;
	int control_fd; /* to the daemon */
	struct watch *control;
	int starter_fd; /* to the starter, which runs programs */
	struct watch *starter;
	struct fetcher *fetcher; /* NULL: no server has a URL */
	struct list boxes, tenants;
	struct list unsent; /* events that wait for room in the socket; no call is accepted then */
	struct server *servers[GATEWAY_SERVERS_MAX];
	size_t servers_count;
	uint32_t clients, clients_max;
	struct budget memory; /* of requests and answers */
	bool is_shedding;     /* calls end, as memory is full */
};

struct tenant {
	struct list node;
	uint32_t id;
	uint32_t boxes;
	struct gateway_limits limits;
	uint32_t calls;
	struct budget_holder memory;
};

struct box {
	struct gateway *gateway;
	struct list node;
	struct list clients;
	uint32_t id;
	struct tenant *tenant;
	char **allowed; /* allow.h */
	struct gateway_limits limits;
	uint32_t calls;
	uint64_t bytes;
	int listener;
	struct watch *watch;
};

/* box.c */
void box_free(struct box *box);
struct box *box_new(struct gateway *g, const struct gateway_order *order, char **allowed,
                    int listener) attr_owned(box_free);
/** box_resume - accept again if limits permit it. */
void box_resume(struct box *box);
/** box_resume_all - after a call within a limit that boxes share. */
void box_resume_all(struct gateway *g);

/* client.c */
struct client;
void client_free(struct client *c);
/** client_has_memory - whether @box may begin a call now. */
bool client_has_memory(const struct box *box);
/** client_free_all - of @box. */
void client_free_all(struct box *box);
/** client_start - takes @fd. */
void client_start(struct box *box, int fd);

/* control.c */
void control_open(struct gateway *g, int fd);
void control_close(struct gateway *g);
/** control_send - now, or when the daemon receives again. @fd: borrowed; -1: none. */
void control_send(struct gateway *g, const struct gateway_event *event, int fd);

/* server.c: calls */
struct call;

struct call_result {
	enum gateway_outcome outcome;
	struct scan_value value; /* GATEWAY_OK and _TOOL_FAILED: what the server answered */
	const char *text;        /* else: what went wrong, for the caller */
};
/* Once per call, never inside server_call; not after call_cancel. The call is freed afterwards. */
typedef void call_fn(void *ctx, const struct call_result *result);

struct server {
	struct gateway *gateway;
	struct server_spec *spec;
	char *url; /* spec_url */
	size_t index;
	enum gateway_state state;
	bool is_starting;
	bool is_open;        /* the transport is */
	struct timer *timer; /* of the next start or list, or bounds the present start */
	bool is_pinged;      /* it was asked for a sign of life */
	bool is_doubted;     /* a call did not reach it: no other is sent until it answers */
	uint64_t heard_us;   /* when it sent something */
	bool is_listing;     /* it was asked for its tools */
	bool is_list_due;    /* the timer asks for them */
	uint64_t listed_us;  /* when it sent them */
	uint32_t starts, failures;
	char detail[GATEWAY_DETAIL_LEN]; /* of the last failure */
	struct list waiting, active;     /* struct call */
	uint32_t active_count;
	uint32_t last_id, last_tenant; /* of what was sent to it */
	/* Its tools: names, and each as it was received. */
	struct tool *tools;
	size_t tools_count;
	struct tool *listed; /* being received */
	size_t listed_count, listed_bytes, pages;
	struct stdio *stdio;   /* a program */
	struct remote *remote; /* a URL */
};

struct tool {
	char *name; /* owned */
	char *text; /* owned: the object of tools/list */
	size_t len;
};

void server_free(struct server *s);
/** server_new - takes @spec and starts the server. */
struct server *server_new(struct gateway *g, struct server_spec *spec, size_t index)
	attr_owned(server_free);
struct server *server_find(struct gateway *g, const char *url);
const char *server_state_name(enum gateway_state state);
/** server_call - @tenant: takes turns with others. @arguments is copied; absent: none. Return: the
 * call, which its @fn ends. */
struct call *server_call(struct server *s, uint32_t tenant, const char *tool,
                         const struct scan_value *arguments, call_fn *fn, void *ctx);
/** server_wait - until the server is ready, or cannot be. */
struct call *server_wait(struct server *s, call_fn *fn, void *ctx);
/** call_cancel - the server learns it; its answer is dropped. */
void call_cancel(struct call *c);

/* call.c */
/** call_request - for the protocol itself: sent at once, whatever the state of the server.
 * @params: JSON, copied. */
void call_request(struct server *s, const char *method, const char *params, uint64_t timeout_us,
                  call_fn *fn);
/** call_notify - @params: JSON. */
void call_notify(struct server *s, const char *method, const char *params);
/** call_pump - send what may be sent. */
void call_pump(struct server *s);
/** call_fail_active, call_fail_waiting - end calls with @text. */
void call_fail_active(struct server *s, const char *text);
void call_fail_waiting(struct server *s, const char *text);
/** call_is_active - call @id was sent and has no answer. */
bool call_is_active(const struct server *s, uint32_t id);
/** call_is_own - such a call is of the protocol itself. */
bool call_is_own(const struct server *s, uint32_t id);

/* tools.c */
/** tools_request - ask for the tools; they replace those known. */
void tools_request(struct server *s);
/** tools_changed - as tools_request, but not more often than once a second. */
void tools_changed(struct server *s);
void tools_free(struct tool *tools, size_t count);
/** tools_is_name - can be called by a box. */
bool tools_is_name(const char *text);
/** tools_add - ",{...}" for each tool of @s that @allowed names, as received. Return: 0 or
 * -ENOBUFS.
 */
int tools_add(const struct server *s, char *const *allowed, struct buf *to) attr_must_check;

/* server.c, for its parts */
/** server_ready - its tools are known. */
void server_ready(struct server *s);
/** server_suspect - it did not answer a call in time. */
void server_suspect(struct server *s);
/** server_well - it has answered a call. */
void server_well(struct server *s);
/** server_send - @id: of a call, or 0. Return: 0 or a negative errno. */
int server_send(struct server *s, uint32_t id, const char *text, size_t len) attr_must_check;

/* server.c, for transports */
/** server_opened - messages can be sent. */
void server_opened(struct server *s);
/** server_received - one message of the server. */
void server_received(struct server *s, const char *text, size_t len);
/** server_lost_message - an answer to call @id was too long. */
void server_lost_message(struct server *s, uint32_t id);
/** server_lost_call - call @id got no answer. */
void server_lost_call(struct server *s, uint32_t id, enum gateway_outcome outcome,
                      const char *text);
/** server_doubt - a message, of call @id or 0, did not reach it. */
void server_doubt(struct server *s, uint32_t id, const char *reason);
/** server_fail - it has ended, or does not follow the protocol. It is started again later. */
void server_fail(struct server *s, const char *fmt, ...) attr_printf(2, 3);

/* stdio.c */
void stdio_free(struct stdio *t);
struct stdio *stdio_new(struct server *s) attr_owned(stdio_free);
/** stdio_start - ask the starter; server_opened or server_fail follows. */
void stdio_start(struct stdio *t);
void stdio_stop(struct stdio *t);
/** stdio_send - one message. Return: 0, or -ENOBUFS: the server does not read. */
int stdio_send(struct stdio *t, const char *text, size_t len) attr_must_check;
/** stdio_control - receive from the starter. */
void stdio_control(struct gateway *g, int fd);

/* http.c */
void remote_free(struct remote *t);
struct remote *remote_new(struct server *s) attr_owned(remote_free);
void remote_start(struct remote *t);
void remote_stop(struct remote *t);
/** remote_send - @id: of a call, 0: a notification or an answer. */
int remote_send(struct remote *t, uint32_t id, const char *text, size_t len) attr_must_check;
void remote_cancel(struct remote *t, uint32_t id);

/* confine.c */
#define GATEWAY_MEMORY_BYTES (2ULL << 30) /* unless told */
/* Of it, the part for requests and answers: a call has its bytes twice while it is sent, and so do
 * servers that read slowly. */
#define GATEWAY_CALLS_PART 4

/** confine - no new privilege, no program, no signal, files to read only, at most @memory_bytes.
 * @ret_files: how many descriptors the process may have. */
int confine(uint64_t memory_bytes, uint32_t *ret_files, struct error *err) attr_must_check;
