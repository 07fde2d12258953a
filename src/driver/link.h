/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the host end of the wire: calls become frames for the agent, its frames become callbacks. A
 * backend provides a connected socket and SETUP.
 *
 * The agent's bytes are hostile: a program may have taken it over. Any protocol violation ends the
 * link (on_lost, ERR_PROTOCOL); nothing is guessed or repaired. All buffers are bounded: one frame
 * of input, LINK_QUEUE_MAX bytes of output, BOX_STDIN_MAX per execution.
 *
 * Programs may be passed before the socket exists; they are sent after SETUP, without waiting for
 * HELLO. Callbacks run inside no call of this header but link_input and link_drain.
 */

#include "driver/box_port.h"
#include "driver/driver.h"
#include "wire/layer.h"
#include "wire/msg.h"

struct link;
struct loop;

#define LINK_QUEUE_MAX (BOX_FILES_MAX + BOX_FILES_MAX / 8)
/* Sizes of terminals are refused while more than this is unread: the box is frozen. */
#define LINK_RESIZE_MAX (64 * 1024)
/* How long an execution's pipes are read after its main process exited: they are empty, unless a
 * process it left behind holds them open. */
#define LINK_DRAIN_MS 100
/* More than there are system calls; more than a healthy agent logs. */
#define LINK_DENIALS_MAX 1024
#define LINK_LOGS_MAX    1024
/* Bytes accepted of a forgotten execution: above any limit. */
#define LINK_FORGOTTEN_MAX ((size_t)8 * 1024 * 1024 * 1024)

/*
 * The agent's layers, and all it may claim: a hijacked agent must not put the engine's into the
 * receipt.
 */
#define LINK_AGENT_LAYERS                                                                          \
	(LAYER_BIT(LAYER_CAPS) | LAYER_BIT(LAYER_NO_NEW_PRIVS) | LAYER_BIT(LAYER_SECCOMP) |        \
	 LAYER_BIT(LAYER_LANDLOCK) | LAYER_BIT(LAYER_RLIMITS))

struct link_events {
	void *ctx;
	/* Layers and version are only claimed; the backend checks them. May close the link. */
	void (*on_hello)(void *ctx, const struct msg_hello *hello);
	/* May be NULL. A program started; whether from a zygote. */
	void (*on_injected)(void *ctx, bool injected);
	/* The stream ended (ERR_AGENT_LOST), or the agent broke the protocol (ERR_PROTOCOL) or gave
	 * up (its own code). Nothing follows. */
	void (*on_lost)(void *ctx, const struct error *err);
};

void link_free(struct link *l);
/**
 * link_new - @events are the link's, @box those of executions; these and @box_id are borrowed and
 * must outlive the link.
 */
struct link *link_new(struct loop *loop, const char *box_id, const struct link_events *events,
                      const struct box_events *box) attr_owned(link_free);
/** link_set_request - for log lines; borrowed. */
void link_set_request(struct link *l, const char *request_id);
/**
 * link_open - takes ownership of @fd. Sends SETUP, then what was queued. @fd -1: bytes stay in
 * link_output, for tests.
 */
void link_open(struct link *l, int fd, const struct msg_setup *setup);
/** link_adopt - link_open for an earlier daemon's box. */
void link_adopt(struct link *l, int fd);
/** link_close - no more sends or callbacks. Idempotent. */
void link_close(struct link *l);
/** link_drain - the agent is dead: read its last messages, then on_lost unless it came. */
void link_drain(struct link *l);
/** link_input - the agent's bytes. Return: bytes used; less than @len only for a partial frame. */
size_t link_input(struct link *l, const char *data, size_t len);
/** link_output - unsent bytes, for tests. */
struct buf *link_output(struct link *l);

/* As in driver.h. */
int link_exec(struct link *l, const struct exec_plan *plan, struct error *err) attr_must_check;
int link_prepare(struct link *l, const struct prepare_plan *plan,
                 struct error *err) attr_must_check;
int link_run(struct link *l, const struct run_plan *plan, struct error *err) attr_must_check;
int link_stdin(struct link *l, uint32_t exec_id, const void *data, size_t len,
               struct error *err) attr_must_check;
int link_stdin_end(struct link *l, uint32_t exec_id, struct error *err) attr_must_check;
size_t link_stdin_waiting(struct link *l, uint32_t exec_id);
void link_ack(struct link *l, uint32_t exec_id);
int link_signal(struct link *l, uint32_t exec_id, int signo, struct error *err) attr_must_check;
int link_resize(struct link *l, uint32_t exec_id, uint16_t rows, uint16_t cols,
                struct error *err) attr_must_check;
void link_take_output(struct link *l, uint32_t exec_id, size_t bytes);
int link_file_open(struct link *l, const struct box_file_request *request,
                   const struct box_file_events *events, struct box_file **ret_file,
                   struct error *err) attr_must_check;
int link_port_open(struct link *l, uint16_t number, const struct box_port_events *events,
                   struct box_port **ret_port, struct error *err) attr_must_check;
/** link_port_list - @hidden: a port to leave out; 0: none. */
int link_port_list(struct link *l, uint16_t hidden, box_port_list_fn *on_listed, void *ctx,
                   struct box_port_list **ret_list, struct error *err) attr_must_check;
