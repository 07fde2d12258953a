/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_label.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/str.h"

#define NUMBER_LEN 17 /* sixteen digits and the end */

static const char *format(uint64_t value, char ret_text[NUMBER_LEN])
{
	if (value == COUNTER_UNKNOWN)
		return "-";
	(void)snprintf(ret_text, NUMBER_LEN, "%" PRIx64, value);
	return ret_text;
}

void session_label_make(const struct session_label *label, char ret_text[BOX_LABEL_MAX + 1])
{
	const struct box_counters *b = &label->before;
	char queue[NUMBER_LEN], cpu[NUMBER_LEN], oom[NUMBER_LEN], pids[NUMBER_LEN];

	if (str_format(ret_text, BOX_LABEL_MAX + 1, "%s %s %s %s %s", label->id,
	               format(label->queue_us, queue), format(b->cpu_us, cpu),
	               format(b->oom_kills, oom), format(b->pids_denied, pids)) < 0)
		(void)!str_copy(ret_text, BOX_LABEL_MAX + 1,
		                label->id); /* is no longer than that */
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number at *@pos, which goes behind it. */
static uint64_t take_number(const char **pos)
{
	const char *start = *pos + strspn(*pos, " ");
	size_t len = strcspn(start, " ");
	uint64_t value = 0;

	*pos = start + len;
	if (len == 0 || len >= NUMBER_LEN)
		return COUNTER_UNKNOWN;
	for (size_t i = 0; i < len; i++) {
		int digit = digit_of(start[i]);

		if (digit < 0)
			return COUNTER_UNKNOWN;
		value = value << 4 | (uint64_t)digit;
	}
	return value;
}

void session_label_read(const char *text, struct session_label *ret_label)
{
	size_t len = strcspn(text, " ");
	const char *pos = text + len;

	*ret_label = (struct session_label){0};
	memset(&ret_label->before, 0xff, sizeof(ret_label->before));
	if (len >= sizeof(ret_label->id))
		len = sizeof(ret_label->id) - 1;
	memcpy(ret_label->id, text, len);
	ret_label->queue_us = take_number(&pos);
	ret_label->before.cpu_us = take_number(&pos);
	ret_label->before.oom_kills = take_number(&pos);
	ret_label->before.pids_denied = take_number(&pos);
}
