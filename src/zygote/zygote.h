/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a zygote's script asks for, through python.c. See runners/python/zygote.py, the only
 * caller.
 */

#include "base/attr.h"
#include <stdbool.h>

struct fill;

/**
 * zygote_settle_text - once, before zygote_harden(): have the program's own code in huge pages,
 * where there are any, so that children need not find it page by page.
 */
void zygote_settle_text(void);
/**
 * zygote_harden - once, before the first child: not traceable, and only the system calls that a
 * zygote needs. Return: 0 or a negative errno.
 */
int zygote_harden(void) attr_must_check;
/**
 * zygote_serve - tell the engine that children can be had, and make them until it goes away.
 * Returns only in children, each a process of a box of its own; *ret_box is for become(). What the
 * script does until then is still its own: nothing of a request is there.
 */
void zygote_serve(struct fill *ret_box);
/**
 * zygote_leaving - tell the agent that this process ends now, with @code: so that whoever waits for
 * that does not wait for its memory to be cleared away. The caller does end.
 */
void zygote_leaving(int code);
/**
 * zygote_has_usual_streams - whether 0, 1 and 2 are what most programs get: the null device and two
 * pipes. What an interpreter makes of them does not depend on which pipes.
 */
bool zygote_has_usual_streams(void);
