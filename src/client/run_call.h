/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a request that runs a program, and the events of the program while it runs. If the stream of
 * a program in a session breaks, it can be followed further: nothing is lost or repeated.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "client/events.h"
#include "client/retry.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct endpoint;

struct run_call {
	int cancel_fd;       /* readable: stop; 0: none */
	uint64_t timeout_us; /* 0: none */
	/* For how long a daemon that does not answer is tried again, once the execution has an id;
	 * 0: not at all. */
	uint64_t patience_us;
	struct retry retry; /* while the daemon has begun nothing */
	bool stream;        /* request events, not one object */
	bool partial;       /* the stream may end before the program does */
	/* Output and values. Return: < 0 to stop, a negative errno. NULL: ignored. */
	int (*on_event)(void *ctx, const struct event *event);
	void *ctx;
	struct events events;
	struct buf body;       /* for a single object */
	int status;            /* of the response */
	json_t *result;        /* owned */
	json_t *problem;       /* owned: the API's error object */
	int failure;           /* negative errno of on_event or the parser; 0: none */
	char execution_id[64]; /* "": not received */
	uint64_t last;         /* number of the last event that has one */
	/* Events without a number since @last; how many of them a new stream will repeat. */
	unsigned loose, repeated;
	uint64_t deadline_us; /* by the clock; 0: none */
	bool progress;        /* an event came */
};

void run_call_init(struct run_call *call);
void run_call_done(struct run_call *call);
#define cleanup_run_call attr_cleanup(run_call_done)
/**
 * run_call_send - POST JSON; GET if @body is NULL. Return: 0 with result or problem set, or -1: no
 * complete response.
 */
int run_call_send(struct run_call *call, const struct endpoint *endpoint, const char *path,
                  const char *body, struct error *err) attr_must_check;
/**
 * run_call_cancel - cancel an execution whose result did not come: closing the stream does not end
 * that of a session. Nothing, if @execution_id is "". Return: 0, or -1.
 */
int run_call_cancel(const struct endpoint *endpoint, const char *execution_id,
                    struct error *err) attr_must_check;
