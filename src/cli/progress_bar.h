/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: how much of a transfer is done, on stderr, if that is a terminal. */

#include <stdbool.h>
#include <stdint.h>

struct progress_bar {
	const char *name;
	uint64_t total; /* 0: unknown */
	uint64_t done;
	uint64_t shown_us; /* when it was last drawn; 0: never */
	bool on;
};

/** progress_bar_start - @name is borrowed; of a path, the last part is shown. */
void progress_bar_start(struct progress_bar *bar, const char *name, uint64_t total);
void progress_bar_add(struct progress_bar *bar, uint64_t bytes);
/** progress_bar_end - removes it from the screen. */
void progress_bar_end(struct progress_bar *bar);
