/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: one call that runs or follows a program and copies its output to our streams. */

#include "base/attr.h"
#include "base/error.h"
#include "client/millibox.h"
#include <jansson.h>
#include <stdbool.h>

struct exec_call {
	int interrupt_fd;
	bool quiet;      /* do not copy output; @result is whole */
	bool values;     /* print the text of results, such as the last expression's */
	bool in_line;    /* stdout is not at the start of a line */
	json_t *result;  /* owned; unless @quiet, without streams */
	json_t *problem; /* owned: the API's error object */
	int failure;     /* negative errno of write; 0: none */
};

/** exec_call_init - @interrupt_fd is from interrupt_open. */
void exec_call_init(struct exec_call *call, int interrupt_fd, bool quiet);
void exec_call_done(struct exec_call *call);
#define cleanup_exec_call attr_cleanup(exec_call_done)

/* Return: 0 with result or problem set, or -1: no complete response, see exec_call_signal. */

/** exec_call_run - in @session; NULL: in a new box. */
int exec_call_run(struct exec_call *call, struct millibox_client *client,
                  struct millibox_session *session, struct millibox_request *request,
                  struct error *err) attr_must_check;
/** exec_call_follow - an execution until it ends; @wait false: what there is, perhaps no result. */
int exec_call_follow(struct exec_call *call, struct millibox_client *client,
                     const char *execution_id, bool wait, struct error *err) attr_must_check;
/** exec_call_install - packages into @session; NULL: into a layer, which is the result. */
int exec_call_install(struct exec_call *call, struct millibox_client *client,
                      struct millibox_session *session, struct millibox_request *request,
                      struct error *err) attr_must_check;
/** exec_call_signal - take the interrupting signal; SIGPIPE: our output closed; 0: none. */
int exec_call_signal(const struct exec_call *call);
