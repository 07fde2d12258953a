/* SPDX-License-Identifier: Apache-2.0 */
#include "client/transport.h"

#include "client/handle.h"

const struct endpoint *transport_endpoint(struct millibox_client *client)
{
	struct error err = {0};

	/* Begin finds the daemon; nothing is sent. */
	if (client_begin(client) < 0)
		return NULL;
	(void)client_end(client, 0, &err);
	return &client->endpoint;
}

void transport_set_words(struct millibox_client *client, const struct endpoint_words *words)
{
	client->words = words;
}

void transport_on_busy(struct millibox_client *client, void (*fn)(void *ctx))
{
	client->on_busy = fn;
}
