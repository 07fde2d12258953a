/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what the adapters share: libuv's loop. */

#include <uv.h>

struct loop;

uv_loop_t *loop_uv(struct loop *loop);
