/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/parse.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/client/program.h"
#include "cli/common_options.h"
#include "cli/message.h"

#define PLAN_OUTPUT_MAX (256 * KIB)

struct plan_options {
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint64_t cpu_millicores;
	uint64_t processes;
	bool json;
};

/* In the engine's units. */
struct limit {
	const char *option; /* of millibox-engine --plan */
	size_t offset;
	uint64_t min; /* as for a request; the engine accepts less */
	const char *least;
	const char *name; /* our option */
};

#define AT(member) offsetof(struct plan_options, member)

static const struct limit limits[] = {
	{"--memory", AT(memory_bytes), 16 * MIB, "16Mi", "--memory"},
	{"--workspace", AT(disk_bytes), MIB, "1Mi", "--disk"},
	{"--cpu", AT(cpu_millicores), 10, "0.01", "--cpu"},
	{"--pids", AT(processes), 16, "16", "--processes"},
};

/* Return: owned, or NULL (ERR_INVALID). */
static char **make_argv(const char *engine, const struct plan_options *options, struct error *err)
{
	cleanup_str_list char **argv = xcalloc(2 * ARRAY_SIZE(limits) + 3, sizeof(*argv));
	size_t n = 0;

	argv[n++] = xstrdup(engine);
	argv[n++] = xstrdup("--plan");
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		const void *slot = (const char *)options + limits[i].offset;
		uint64_t value = *(const uint64_t *)slot;

		if (value == 0)
			continue;
		if (value < limits[i].min) {
			(void)error_set(err, ERR_INVALID, 0, "%s: must be at least %s",
			                limits[i].name, limits[i].least);
			return NULL;
		}
		argv[n++] = xstrdup(limits[i].option);
		argv[n++] = xasprintf("%llu", (unsigned long long)value);
	}
	return TAKE_PTR(argv);
}

/* The engine's output: number, name, what it does, why not earlier. */
struct step {
	const char *fields[4];
};

static const char *const field_names[] = {"step", "name", "what", "why"};

static int split_step(char *line, struct step *ret_step)
{
	for (size_t i = 0; i < ARRAY_SIZE(ret_step->fields); i++) {
		ret_step->fields[i] = strsep(&line, "\t");
		if (!ret_step->fields[i])
			return -EPROTO;
	}
	return line ? -EPROTO : 0;
}

static json_t *step_json(const struct step *step)
{
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(field_names); i++) {
		uint64_t number = 0;
		bool is_number = i == 0 && parse_u64(step->fields[i], &number) == 0;

		(void)json_object_set_new(object, field_names[i],
		                          is_number ? json_integer((json_int_t)number)
		                                    : json_string(step->fields[i]));
	}
	return object;
}

/* @list NULL: print text. */
static int show_steps(char *text, json_t *list, struct error *err)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		struct step step;

		if (!*line)
			continue;
		if (split_step(line, &step) < 0)
			return error_set(err, ERR_PROTOCOL, 0,
			                 "cannot parse the plan of millibox-engine");
		if (list)
			(void)json_array_append_new(list, step_json(&step));
		else
			(void)printf("%2s. %-14s %s\n", step.fields[0], step.fields[1],
			             step.fields[2]);
		if (!list && step.fields[3][0])
			(void)printf("%18s (%s)\n", "", step.fields[3]);
	}
	return 0;
}

static int run_plan(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct plan_options *options = values;
	cleanup_buf struct buf out = BUF_INIT(PLAN_OUTPUT_MAX);
	cleanup_free char *engine = NULL, *text = NULL;
	cleanup_str_list char **argv = NULL;
	json_auto_t *list = options->json ? json_array() : NULL;
	int status = 0;

	engine = program_find_engine(err);
	argv = engine ? make_argv(engine, options, err) : NULL;
	if (!argv || program_read((const char *const *)argv, &out, &status, err) < 0)
		return -1;
	/* The engine printed the reason to stderr. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return CLI_ERROR;
	text = buf_take(&out, NULL);
	if (show_steps(text, list, err) < 0)
		return -1;
	if (list)
		message_print_json(list);
	return CLI_OK;
}

static const struct option_row rows[] = {
	LIMIT_ROWS(AT),
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print the steps as JSON"},
};

COMMAND(box_plan, "box plan", "", "Print the steps that build a box, in order", run_plan, rows,
        struct plan_options,
        .text = "The plan is for a host with every layer of isolation. Nothing is built, and "
                "no privilege is needed.\n");
