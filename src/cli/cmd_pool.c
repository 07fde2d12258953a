/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "cli/resource.h"

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
	RESOURCE_COLUMNS(columns),
};

COMMAND(pool_list, "pool list", "", "List the pools of prepared boxes", resource_run_list,
        resource_rows, struct common_options, .data = &pools,
        .text = "A pool holds boxes of one kind: language, mode, root, limits and "
                "environment.\n"
                "--json adds totals, limits, memory and failures.\n");
