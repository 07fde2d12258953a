/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what a program in a box reads when the proxy refuses. Pure. */

#include "egress/order.h"
#include "egress/socks.h"
#include "egress/target.h"
#include <stddef.h>

#define ANSWER_MAX 2048

/** answer_http - Return: the length of @ret_text. */
size_t answer_http(enum egress_reason reason, const struct target *target, const char *detail,
                   char ret_text[ANSWER_MAX]);
enum socks_reply answer_socks(enum egress_reason reason);
