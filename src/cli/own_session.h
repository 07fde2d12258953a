/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a session that a command makes for itself. */

#include "base/attr.h"
#include "base/error.h"
#include "cli/client/daemon.h"
#include "cli/run_request.h"
#include "client/millibox.h"

/** own_session_options - of the session in which one program with @options runs. */
struct run_options own_session_options(const struct run_options *options);
/** own_session_program - of that program: without what the session has. */
struct run_options own_session_program(const struct run_options *options);
/**
 * own_session_create - persistent, with the limits and the language of @options. Return: CLI_OK
 * with its owned handle, another status: the daemon's refusal was shown, or -1.
 */
int own_session_create(struct millibox_client *client, const struct run_options *options,
                       struct millibox_session **ret_session, struct error *err) attr_must_check;
/** own_session_delete - and free the handle; shows errors. */
void own_session_delete(struct millibox_client *client, struct millibox_session *session);
