/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: where a WebSocket to the daemon goes, and with which key. */

#include "client/endpoint.h"
#include "http/ws_client.h"

static inline void ws_request_fill(const struct endpoint *endpoint,
                                   struct ws_client_request *ret_request)
{
	ret_request->socket_path = endpoint->socket;
	ret_request->url = endpoint->url;
	ret_request->bearer = endpoint->key;
	ret_request->ca_file = endpoint->ca_file;
	ret_request->untrusted = endpoint_words(endpoint)->untrusted;
	ret_request->unreached = endpoint_words(endpoint)->unreached;
}
