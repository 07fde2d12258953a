/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: programs whose terminal is ours: "millibox run --interactive", and what "shell" starts. */

#include "base/attr.h"
#include "base/error.h"
#include "client/millibox.h"

struct args;
struct run_input;
struct run_options;

/** run_terminal - Return: exit status, or -1 with *err. */
int run_terminal(const struct run_options *options, const struct run_input *input,
                 const struct args *args, struct error *err);
/**
 * run_terminal_start - start @request on a terminal of the size of ours. Return: CLI_OK with the
 * id of its execution, which is freed with millibox_free; another status: the daemon's refusal was
 * shown; or -1.
 */
int run_terminal_start(struct millibox_client *client, struct millibox_session *session,
                       struct millibox_request *request, char **ret_id,
                       struct error *err) attr_must_check;
