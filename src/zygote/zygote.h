/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a zygote's script calls. See runners/python/zygote.py, the only caller.
 */

#include "base/attr.h"
#include <stddef.h>

#define zygote_export __attribute__((visibility("default")))

/**
 * zygote_settle_text - once, before zygote_harden(): have the program's own code in huge pages,
 * where there are any, so that children need not find it page by page.
 */
zygote_export void zygote_settle_text(void);
/**
 * zygote_harden - once, before the first child: not traceable, and only the system calls that a
 * zygote needs. Return: 0 or a negative errno.
 */
zygote_export int zygote_harden(void);
/**
 * zygote_serve - tell the engine that children can be had, and make them until it goes away.
 * Returns only in children, each a process of a box of its own; *ret_box (zygote_box_size bytes) is
 * for zygote_become. What the script does until then is still its own: nothing of a request is
 * there.
 */
zygote_export void zygote_serve(void *ret_box);
/**
 * zygote_become - wait for the agent's order and be the payload that it describes: returns with no
 * power left, or not at all. *ret_order (zygote_order_size bytes): struct inject_order, and at
 * zygote_words_offset the words.
 */
zygote_export void zygote_become(const void *box, void *ret_order);
/**
 * zygote_leaving - tell the agent that this process ends now, with @code: so that whoever waits for
 * that does not wait for its memory to be cleared away. The caller does end.
 */
zygote_export void zygote_leaving(int code);
/**
 * zygote_has_usual_streams - whether 0, 1 and 2 are what most programs get: the null device and two
 * pipes. What an interpreter makes of them does not depend on which pipes.
 */
zygote_export int zygote_has_usual_streams(void);
zygote_export size_t zygote_box_size(void);
zygote_export size_t zygote_order_size(void);
zygote_export size_t zygote_words_offset(void);
