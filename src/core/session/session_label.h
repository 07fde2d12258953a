/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a box that is kept remembers of an execution for the next daemon: its id, and what the
 * counters of the box had counted when it began, which is stored nowhere else. Text of at
 * most BOX_LABEL_MAX characters: "exec_20261115_ab12cd34 1f4 2dc6c0 0 -", numbers in base 16, "-"
 * for what is not known. It comes back as the agent's word: numbers of its own executions, which is
 * all they can harm.
 */

#include "driver/driver.h"
#include <stddef.h>
#include <stdint.h>

struct session_label {
	char id[BOX_LABEL_MAX + 1];
	uint64_t queue_us;          /* COUNTER_UNKNOWN: not known */
	struct box_counters before; /* of it cpu_us, oom_kills, pids_denied */
};

/** session_label_make - the id alone where the numbers do not fit. */
void session_label_make(const struct session_label *label, char ret_text[BOX_LABEL_MAX + 1]);
/** session_label_read - never fails: what is not there, or no number, is unknown. */
void session_label_read(const char *text, struct session_label *ret_label);
