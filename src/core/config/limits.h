/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the smallest limits a box can run with. Requests, templates and policies are checked
 * against them.
 */

#include "base/size.h"

#define LIMIT_MEMORY_MIN     (16 * MIB)
#define LIMIT_DISK_MIN       MIB
#define LIMIT_CPU_MIN        10 /* thousandths of a core: 1 ms of every 100 */
#define LIMIT_PROCESSES_MIN  16
#define LIMIT_TIMEOUT_MIN_US 1000

/* The largest environment of a program: number of variables, and bytes in total. */
#define LIMIT_ENV_MAX   256
#define LIMIT_ENV_BYTES (32 * 1024)
