/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what "status" and "up" show of a daemon. */

#include "base/attr.h"
#include "base/error.h"
#include "client/millibox.h"
#include <jansson.h>
#include <stdbool.h>

/**
 * daemon_status_read - of the daemon of @client: "running", "ready", "socket" or "url", "pid", and
 * what it says of itself ("version", "started_at", "uptime_seconds", "isolation", "log"), unless it
 * refuses to, which is shown. Return: 0 with an owned object, or -1 with *err.
 */
int daemon_status_read(struct millibox_client *client, json_t **ret_status,
                       struct error *err) attr_must_check;
/** daemon_status_show - Return: exit status: is it ready? */
int daemon_status_show(const json_t *status, bool as_json);
