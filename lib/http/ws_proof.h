/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: Sec-WebSocket-Accept (RFC 6455, 4.2.2): the server's proof that it has read the key of an
 * upgrade, and is no cache that repeats an old response. Pure.
 */

#include "base/attr.h"

/** ws_proof - for a Sec-WebSocket-Key of any length up to 64 characters. Return: owned. */
char *ws_proof(const char *key) attr_must_check;
