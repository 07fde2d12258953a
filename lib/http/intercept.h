/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what microhttpd reads from a connection passes framing.h first, in the clear also with TLS.
 * For the thread that runs the server's loop.
 */

struct http_conn;

/** intercept_start - check what is read from @c from now on, and tell conn_bad_framing. */
void intercept_start(struct http_conn *c);
/** intercept_stop - before the connection's descriptor is closed. */
void intercept_stop(const struct http_conn *c);
