/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "cli/resource.h"

struct pool_options {
	struct common_options common;
};

#define AT(member) offsetof(struct pool_options, member)

static const struct resource_column columns[] = {
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

static const struct resource pools = {
	.base = "/api/v1/pools",
	.what = "pool id",
	.list = "pools",
	.columns = columns,
	.columns_count = ARRAY_SIZE(columns),
};

static int run_list(const void *values, const struct args *args attr_unused, struct error *err)
{
	return resource_list(&pools, values, err);
}

/* A row is one option, however long its line. */
/* clang-format off */
static const struct option_row rows[] = {
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

const struct command command_pool_list = {
	.name = "pool list",
	.arguments = "",
	.summary = "List the pools of prepared boxes",
	.text = "A pool holds boxes of one kind: language, mode, root, limits and environment.\n"
		"--json adds totals, limits, memory and failures.\n",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct pool_options),
	.run = run_list,
};
