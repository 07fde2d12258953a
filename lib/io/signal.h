/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: process signals as loop events. */

#include "base/attr.h"

struct loop;
struct signal_watch;

typedef void signal_fn(void *ctx, int signo);

void signal_watch_free(struct signal_watch *s);
struct signal_watch *signal_watch_new(struct loop *loop, int signo, signal_fn *fn, void *ctx)
	attr_owned(signal_watch_free);
