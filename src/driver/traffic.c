/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/traffic.h"

#include "base/parse.h"
#include "driver/counters.h"
#include "engine/engine.h"
#include <string.h>
#include <unistd.h>

/* Two lines of titles, one for each of few interfaces. */
#define TABLE_MAX 4096

/* The columns of bytes: eight numbers of what arrived, then eight of what left. */
enum {
	COLUMN_RECEIVED = 0,
	COLUMN_SENT = 8,
};

/* Return: false: no number follows. */
static bool take_number(const char **at, uint64_t *ret)
{
	char digits[24] = "";
	size_t len;

	*at += strspn(*at, " ");
	len = strspn(*at, "0123456789");
	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, *at, len);
	*at += len;
	return parse_u64(digits, ret) >= 0;
}

static bool take_columns(const char *at, struct box_network_usage *ret)
{
	struct box_network_usage usage = {.connections = COUNTER_UNKNOWN};

	for (int column = 0; column <= COLUMN_SENT; column++) {
		uint64_t value;

		if (!take_number(&at, &value))
			return false;
		if (column == COLUMN_RECEIVED)
			usage.received = value;
		usage.sent = value; /* the last one stays */
	}
	*ret = usage;
	return true;
}

bool traffic_parse(const char *text, const char *name, struct box_network_usage *ret)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += strspn(line, " \n");
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			return take_columns(line + len + 1, ret);
	}
	return false;
}

bool traffic_read(int file, struct box_network_usage *ret)
{
	char text[TABLE_MAX];
	ssize_t n = file < 0 ? -1 : pread(file, text, sizeof(text) - 1, 0);

	if (n < 0)
		return false;
	text[n] = '\0';
	return traffic_parse(text, ENGINE_INTERFACE, ret);
}
