/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "cli/admin_call.h"

struct pool_options {
	struct admin_options common;
};

#define AT(member) offsetof(struct pool_options, member)

static const struct admin_column columns[] = {
	{"ID", "id", NULL, 18},
	{"LANGUAGE", "language", NULL, 10},
	{"MODE", "mode", NULL, 12},
	{"ROOT", "root", NULL, 12},
	{"READY", "ready", NULL, 7},
	{"MAKING", "making", NULL, 8},
	{"TARGET", "target", NULL, 8},
	{"FLOOR", "floor", NULL, 7},
	{"HITS", "hits", NULL, 9},
	{"MISSES", "misses", NULL, 9},
	{"FAILURES", "failures", NULL, 0},
};

static const struct admin_noun noun = {
	.base = "/api/v1/pools",
	.what = "id of a pool",
	.list = "pools",
	.columns = columns,
	.columns_count = ARRAY_SIZE(columns),
};

static int run_list(const void *values, const struct args *args, struct error *err)
{
	return admin_list(&noun, values, args, err);
}

/* A row is one option, however long its line. */
/* clang-format off */
static const struct option_row rows[] = {
	ADMIN_ROWS(AT),
};
/* clang-format on */

const struct command command_pool_list = {
	.name = "pool list",
	.arguments = "",
	.summary = "List the pools of boxes that were made before they were asked for",
	.text = "A pool has boxes of one kind: of one language, mode, root, set of "
		"limits and environment.\n"
		"--json tells more: what all pools have together, limits, memory and failures.\n",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct pool_options),
	.run = run_list,
};
