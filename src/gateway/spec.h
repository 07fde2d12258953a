/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: an outside MCP server, as an operator configures it, and the message that takes it to
 * millibox-gateway. Pure.
 */

#include "base/buf.h"
#include "base/error.h"
#include "gateway/order.h"
#include <stdint.h>

/* Everything is owned. Lists are NULL-terminated and never NULL. */
struct server_spec {
	char *name;  /* [a-z0-9_-]{1,63} */
	char *url;   /* of an HTTP server; "": argv is a program that speaks on stdin and stdout */
	char **argv; /* an absolute path, or a name to find in the usual places */
	char **env;  /* NAME=value; may hold secrets */
	char **headers;      /* "Name: value"; may hold secrets */
	char *problem;       /* why it cannot be called; "": none */
	uint64_t timeout_us; /* of a call */
	uint32_t calls;      /* at the same time; more wait */
};

void spec_free(struct server_spec *s);
static inline void spec_freep(struct server_spec **s)
{
	spec_free(*s);
}
/** spec_wipe_list - overwrite and free a list that may hold secrets; NULL: nothing. */
void spec_wipe_list(char **list);
/** spec_new - empty. */
struct server_spec *spec_new(void) attr_owned(spec_free);
/** spec_url - what requests in a box call the server: its URL, or "mcp://NAME". Owned. */
char *spec_url(const struct server_spec *s) attr_must_check;
/** spec_is_name - can be a server's. */
bool spec_is_name(const char *text);
/** spec_write - a whole message. Return: 0, or -ENOBUFS: longer than GATEWAY_MESSAGE_MAX. */
int spec_write(const struct server_spec *s, struct buf *ret_message) attr_must_check;
/** spec_read - Return: owned, or NULL with *err. */
struct server_spec *spec_read(const void *message, size_t len, struct error *err)
	attr_owned(spec_free);
