/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the smallest limits a box can run with, for requests, templates and policies. */

#include "base/size.h"

#define LIMIT_MEMORY_MIN     (16 * MIB)
#define LIMIT_DISK_MIN       MIB
#define LIMIT_CPU_MIN        10 /* thousandths of a core */
#define LIMIT_PROCESSES_MIN  16
#define LIMIT_TIMEOUT_MIN_US 1000

/* Environment of a program: variables, and total bytes. */
#define LIMIT_ENV_MAX   256
#define LIMIT_ENV_BYTES (32 * 1024)
