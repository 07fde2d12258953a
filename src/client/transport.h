/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the command line needs of a client beyond millibox.h: the daemon's address and key for
 * connections that the library does not make (WebSockets, MCP), and its own words in messages.
 */

#include "client/endpoint.h"
#include "client/millibox.h"

/**
 * transport_endpoint - Return: borrowed until the next millibox_set_ function; NULL with the
 * client's error.
 */
const struct endpoint *transport_endpoint(struct millibox_client *client);
/** transport_set_words - remedies in messages; not copied. */
void transport_set_words(struct millibox_client *client, const struct endpoint_words *words);
/** transport_on_busy - @fn is called when a call begins to wait for its turn. */
void transport_on_busy(struct millibox_client *client, void (*fn)(void *ctx));
