/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the smallest limits that a box can run with. Requests, templates and policies are checked
 * against them. */

#define LIMIT_MEMORY_MIN     (16ULL * 1024 * 1024)
#define LIMIT_DISK_MIN       (1024ULL * 1024)
#define LIMIT_CPU_MIN        10 /* thousandths of a core: 1 ms of every 100 */
#define LIMIT_PROCESSES_MIN  16
#define LIMIT_TIMEOUT_MIN_US 1000

/* The largest environment of a program: variables, and bytes together. */
#define LIMIT_ENV_MAX   256
#define LIMIT_ENV_BYTES (32 * 1024)
