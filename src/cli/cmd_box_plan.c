/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "cli/program.h"
#include "cli/say.h"

#define PLAN_OUTPUT_MAX (256 * 1024)

struct plan_options {
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint64_t cpu_millicores;
	uint64_t processes;
	bool json;
};

/* The engine takes numbers in its own units. */
struct limit {
	const char *option; /* of millibox-engine --plan */
	size_t offset;
};

#define AT(member) offsetof(struct plan_options, member)

static const struct limit limits[] = {
	{"--memory", AT(memory_bytes)  },
	{"--disk",   AT(disk_bytes)    },
	{"--cpu",    AT(cpu_millicores)},
	{"--pids",   AT(processes)     },
};

static char **make_argv(const char *engine, const struct plan_options *options)
{
	char **argv = xcalloc(2 * ARRAY_SIZE(limits) + 3, sizeof(*argv));
	size_t n = 0;

	argv[n++] = xstrdup(engine);
	argv[n++] = xstrdup("--plan");
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		uint64_t value =
			*(const uint64_t *)(const void *)((const char *)options + limits[i].offset);

		if (value == 0)
			continue;
		argv[n++] = xstrdup(limits[i].option);
		argv[n++] = xasprintf("%llu", (unsigned long long)value);
	}
	return argv;
}

/* The lines as they are: each is one step, in order. */
static void print_json(char *text)
{
	json_t *steps = json_array();
	cleanup_free char *out = NULL;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (*line)
			(void)json_array_append_new(steps, json_string(line));
	}
	out = json_dumps(steps, JSON_INDENT(2));
	(void)puts(out ? out : "[]");
	json_decref(steps);
}

static int run(const void *values, const struct args *args, struct error *err)
{
	const struct plan_options *options = values;
	cleanup_buf struct buf out = BUF_INIT(PLAN_OUTPUT_MAX);
	cleanup_free char *engine = NULL;
	cleanup_free char *text = NULL;
	cleanup_str_list char **argv = NULL;
	int status = 0;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "'%s' is one word too many", args->words[0]);
		return CLI_USAGE;
	}
	engine = program_find("millibox-engine", err);
	if (!engine)
		return CLI_OURS;
	argv = make_argv(engine, options);
	if (program_read((const char *const *)argv, &out, &status, err) < 0)
		return CLI_OURS;
	/* It has said why on stderr, which is ours. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return CLI_OURS;
	text = buf_take(&out, NULL);
	if (options->json)
		print_json(text);
	else
		(void)fputs(text, stdout);
	return CLI_OK;
}

static const struct option_row rows[] = {
	{"memory",    'm', OPTION_SIZE,   AT(memory_bytes),   "SIZE",  "memory limit: 512Mi, 1Gi"     },
	{"cpu",       0,   OPTION_CPU,    AT(cpu_millicores), "CORES", "processor share: 1, 0.5, 500m"},
	{"disk",      0,   OPTION_SIZE,   AT(disk_bytes),     "SIZE",  "room for files: 256Mi"        },
	{"processes", 0,   OPTION_NUMBER, AT(processes),      "N",     "processes and threads"        },
	{"json",      0,   OPTION_FLAG,   AT(json),           NULL,    "print the steps as JSON"      },
};

const struct command command_box_plan = {
	.name = "box plan",
	.arguments = "",
	.summary = "Print the ordered steps by which a box would be built",
	.text = "Nothing is built, and no privilege is needed.\n",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct plan_options),
	.run = run,
};
