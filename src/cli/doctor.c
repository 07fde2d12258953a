/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

/* A probe prints dozens of lines. */
#define CHECKS_MAX 256

static const char *const state_names[] = {
	[CHECK_OK] = "ok",
	[CHECK_MISSING] = "missing",
	[CHECK_INFO] = "info",
};
static_assert(ARRAY_SIZE(state_names) == CHECK_STATE_COUNT, "one name per state");

void checks_done(struct checks *checks)
{
	for (size_t i = 0; i < checks->count; i++) {
		free(checks->items[i].name);
		free(checks->items[i].value);
	}
	free(checks->items);
	*checks = (struct checks){0};
}

void checks_add(struct checks *checks, const char *name, enum check_state state, const char *value)
{
	size_t size = sizeof(*checks->items);

	checks->items = xrealloc_array(checks->items, checks->count + 1, size);
	checks->items[checks->count++] = (struct check){
		.name = xstrdup(name),
		.value = xstrdup(value),
		.state = state,
	};
}

const struct check *checks_find(const struct checks *checks, const char *name)
{
	for (size_t i = 0; i < checks->count; i++) {
		if (str_equal(checks->items[i].name, name))
			return &checks->items[i];
	}
	return NULL;
}

const char *check_state_name(enum check_state state)
{
	return state_names[state];
}

static int parse_line(struct checks *checks, char *line)
{
	char *rest = line;
	const char *name = strsep(&rest, "\t");
	const char *state = strsep(&rest, "\t");

	if (!*name || !state || checks->count == CHECKS_MAX)
		return -EPROTO;
	for (size_t i = 0; i < ARRAY_SIZE(state_names); i++) {
		if (!str_equal(state, state_names[i]))
			continue;
		checks_add(checks, name, (enum check_state)i, rest ? rest : "");
		return 0;
	}
	return -EPROTO;
}

int checks_parse(struct checks *checks, char *text)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (*line && parse_line(checks, line) < 0)
			return -EPROTO;
	}
	return 0;
}
