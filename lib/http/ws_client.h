/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the client's end of a WebSocket (RFC 6455), for a program that polls its own descriptors:
 * libcurl connects (TCP, Unix socket, TLS), wslay reads and writes frames.
 *
 * Only ws_client_open blocks. Then: poll ws_client_fd for ws_client_wants, call ws_client_pump,
 * which calls the callbacks; send what the callbacks and others produce. Bound the queue with
 * ws_client_waiting, the input with ws_client_hold.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ws_client;

/* Borrowed for the call. */
struct ws_client_request {
	const char *socket_path; /* NULL: TCP */
	const char *url;         /* "http://localhost", without a path */
	const char *path;        /* "/api/v1/...", with the query */
	const char *bearer;      /* NULL: none */
	const char *ca_file;     /* https: trusted authorities; NULL: the system's */
	const char *untrusted;   /* hint when verification fails; NULL: none */
	const char *unreached;   /* hint when nothing listens; NULL: none */
	size_t max_message;      /* of one received message */
	uint64_t timeout_us;     /* until the upgrade; 0: none */
	int cancel_fd;           /* readable: stop (ERR_UNAVAILABLE, ECANCELED); 0: none */
};

/* NULL: such messages are dropped. */
struct ws_client_events {
	void *ctx;
	void (*on_text)(void *ctx, const char *text, size_t len);
	void (*on_binary)(void *ctx, const char *data, size_t len);
};

/* An answer that is not an upgrade. */
struct ws_client_refusal {
	int status; /* 0: there was none */
	char *body; /* owned; its first bytes */
	size_t body_len;
};

void ws_client_free(struct ws_client *c);
/**
 * ws_client_open - connect and upgrade. Return: NULL with *err (ERR_UNAVAILABLE, ERR_UNTRUSTED,
 * ERR_TIMEOUT, ERR_PROTOCOL: the server's proof is wrong); if the server answered something else,
 * *ret_refusal has it.
 */
struct ws_client *ws_client_open(const struct ws_client_request *request,
                                 const struct ws_client_events *events,
                                 struct ws_client_refusal *ret_refusal,
                                 struct error *err) attr_must_check;
int ws_client_fd(const struct ws_client *c);
/** ws_client_wants - events to poll for. */
short ws_client_wants(const struct ws_client *c);
/** ws_client_pump - Return: 0; 1: the connection has ended; or a negative errno: it broke. */
int ws_client_pump(struct ws_client *c) attr_must_check;
/** ws_client_send_text - copies. */
void ws_client_send_text(struct ws_client *c, const char *text, size_t len);
void ws_client_send_binary(struct ws_client *c, const char *data, size_t len);
/** ws_client_waiting - bytes that are not in the socket yet. */
size_t ws_client_waiting(const struct ws_client *c);
/** ws_client_hold - read no more messages, or go on; then call ws_client_pump without a poll. */
void ws_client_hold(struct ws_client *c, bool hold);
/** ws_client_close - after what waits; ws_client_pump returns 1 when the server has answered. */
void ws_client_close(struct ws_client *c, unsigned code);
/** ws_client_code - the server's close code; 0: none came. */
unsigned ws_client_code(const struct ws_client *c);
