/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: RLIMIT_CORE of every process of ours. Not 0: a core_pattern with a program ("|handler")
 * ignores 0 and gets the memory of a crashed process on the host. The kernel treats 1 as "no dump"
 * in both cases.
 */

#define CORE_LIMIT 1
