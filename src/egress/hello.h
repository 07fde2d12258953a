/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the server name in the first bytes of a TLS connection. Pure; every length is checked
 * against what has been received. Only the first ClientHello is read: a second one, after a
 * HelloRetryRequest, passes unseen.
 */

#include "egress/target.h"

enum hello_result {
	HELLO_NAME,      /* ret_name has it, lower case */
	HELLO_MORE,      /* not all of the ClientHello is there */
	HELLO_NOT_TLS,   /* the first bytes are no handshake record */
	HELLO_MALFORMED, /* a handshake that does not parse, or is longer than HELLO_MAX */
	HELLO_NO_NAME,   /* no server_name */
	HELLO_ENCRYPTED, /* has encrypted_client_hello (0xfe0d): the inner name is hidden */
	HELLO_COUNT
};

/* Of the ClientHello with the headers of its records: HELLO_MAX bytes never give HELLO_MORE. */
#define HELLO_MAX 16384

/**
 * hello_parse - @data: the connection from its first byte. A ClientHello may span several TLS
 * records. A result other than HELLO_MORE does not change with more bytes. A name that is an
 * address, ends with a dot or fails target_parse_host() is HELLO_MALFORMED. @ret_name: written
 * with HELLO_NAME only.
 */
enum hello_result hello_parse(const void *data, size_t len, char ret_name[TARGET_HOST_LEN]);
