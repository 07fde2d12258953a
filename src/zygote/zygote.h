/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: functions for the zygote's script, runners/python/zygote.py, exported to it by python.c. */

#include "base/attr.h"
#include <stdbool.h>

struct fill;

/**
 * zygote_move_text - once, before zygote_harden(): move the program's code into huge pages, so that
 * children need not fault it in page by page.
 */
void zygote_move_text(void);
/**
 * zygote_harden - once, before the first child: become untraceable and install the zygote's seccomp
 * filter. Return: 0 or a negative errno.
 */
int zygote_harden(void) attr_must_check;
/**
 * zygote_serve - report READY to the engine and fork children until EOF. Returns only in children,
 * each in its own box; pass *ret_box to become().
 */
void zygote_serve(struct fill *ret_box);
/**
 * zygote_leaving - tell the agent that this process is about to exit with @code, so that the answer
 * need not wait until the kernel has freed its memory.
 */
void zygote_leaving(int code);
/** zygote_has_usual_streams - 0, 1 and 2 are what most programs get: /dev/null and two pipes. */
bool zygote_has_usual_streams(void);
