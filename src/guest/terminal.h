/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a pseudo terminal of a program, from the box's own devpts. The agent has the controlling
 * end; the program has the other, and no right to make one itself.
 */

#include "base/attr.h"
#include <stdint.h>
#include <sys/types.h>

/** terminal_open - Return: the controlling end, or a negative errno; both ends are the caller's. */
int terminal_open(uint16_t rows, uint16_t cols, int *ret_end) attr_must_check;
/** terminal_resize - the kernel sends SIGWINCH to what is in the foreground. */
int terminal_resize(int fd, uint16_t rows, uint16_t cols) attr_must_check;
/** terminal_foreground - its process group, which is of the program's session; 0: none. */
pid_t terminal_foreground(int fd);
