/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: functions that python.c exports to the zygote's script, runners/python/zygote.py. */

#include "base/attr.h"
#include <stdbool.h>

struct fill;

/**
 * zygote_move_text - once, before zygote_harden(): move the program's code into huge pages, which
 * children need not fault in page by page.
 */
void zygote_move_text(void);
/**
 * zygote_harden - once, before the first child: become untraceable, leave the filesystem, install
 * the zygote's filter.
 * Return: 0 or a negative errno.
 */
int zygote_harden(void) attr_must_check;
/**
 * zygote_serve - report READY and fork children until EOF. Returns only in children, each in its
 * box; pass *ret_box to become().
 */
void zygote_serve(struct fill *ret_box);
/**
 * zygote_leaving - announce the exit with @code to the agent, so that the answer need not wait
 * until the kernel has freed memory.
 */
void zygote_leaving(int code);
/** zygote_has_usual_streams - 0, 1 and 2 are /dev/null and two pipes. */
bool zygote_has_usual_streams(void);
