/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: everybody in the box but the agent and the children that do its file operations. Whoever
 * started a program wants all of it to end, also what left its process group and its parents; an
 * upload that goes on meanwhile is nobody's program.
 */

struct agent;

/**
 * crowd_signal - to all of them; the agent must be PID 1. After SIGKILL nobody of them can run or
 * fork any more. When they fork faster than they can be found, the file operations end with them.
 */
void crowd_signal(const struct agent *a, int signo);
