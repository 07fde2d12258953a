/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any request against the policy: rejected with a field, or decided within the operator's limits.
 * The input is a list of lines: "t1000" sets a limit, "aTEXT" adds an argument, "eTEXT" a variable,
 * "fTEXT" a file, "cTEXT" the code, "lTEXT" the language.
 */
#include "core/policy/policy.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/run/run.h"
#include "fuzz.h"
#include "wire/layer.h"

#define LINES_MAX 600

static struct runners *load_runners(void)
{
	static const char manifest[] = "name: demo\ntitle: D\nsource: m\nreport: true\n"
				       "command: [/bin/sh, '{source}']\nprogram: /bin/sh\n";
	char dir[] = "/tmp/millibox-fuzz-XXXXXX";
	struct error err = {0};
	struct runners *r;
	cleanup_free char *folder = NULL;
	cleanup_free char *path = NULL;

	require(mkdtemp(dir));
	folder = xasprintf("%s/demo", dir);
	path = xasprintf("%s/manifest.yaml", folder);
	require(file_mkdir_parents(folder, 0700) == 0);
	require(file_create_at(AT_FDCWD, path, 0600, manifest, strlen(manifest)) == 0);
	r = runners_load(dir, NULL, &err);
	require(unlink(path) == 0 && rmdir(folder) == 0 && rmdir(dir) == 0);
	require(r);
	return r;
}

struct lists {
	char **args, **env;
	size_t args_count, env_count;
};

static void add_file(struct run_request *r, char *name)
{
	r->files[r->files_count++] =
		(struct run_request_file){.name = name, .len = strlen(name) * 1000};
}

static uint64_t *limit_of(struct run_request *r, char letter)
{
	const struct {
		char letter;
		uint64_t *place;
	} limits[] = {{'t', &r->timeout_us},    {'m', &r->memory_bytes},
	              {'d', &r->disk_bytes},    {'u', &r->cpu_millicores},
	              {'p', &r->max_processes}, {'o', &r->max_output_bytes}};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (limits[i].letter == letter)
			return limits[i].place;
	return NULL;
}

static void take_line(struct run_request *r, struct lists *l, char *line)
{
	char *text = *line ? line + 1 : line;
	uint64_t *limit = limit_of(r, *line);

	if (limit) {
		(void)!parse_u64(text, limit); /* not a number: no request */
	} else if (*line == 'a') {
		l->args[l->args_count++] = text;
	} else if (*line == 'e') {
		l->env[l->env_count++] = text;
	} else if (*line == 'f') {
		add_file(r, text);
	} else if (*line == 'l') {
		r->language = text;
	} else if (*line == 'c') {
		r->code = text;
		r->code_len = strlen(text);
	}
}

/* Of the variables that change a loader or an interpreter, only search paths and output modes. */
static bool is_harmless(const char *variable)
{
	static const char *const accepted[] = {
		"LD_LIBRARY_PATH=", "PYTHONPATH=", "PYTHONUNBUFFERED=", "PYTHONDONTWRITEBYTECODE="};

	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++)
		if (str_has_prefix(variable, accepted[i]))
			return true;
	return !str_has_prefix(variable, "LD_") && !str_has_prefix(variable, "PYTHON");
}

static void check_decision(const struct config *c, const struct run_request *r,
                           struct policy_decision *d)
{
	const struct box_limits *l = &d->spec.limits;
	struct error err = {0};

	(void)!str_copy(d->spec.id, sizeof(d->spec.id), "b1");
	require(box_spec_check(&d->spec, &err) == 0);
	require(d->timeout_us > 0 && d->timeout_us <= c->timeout_max_us);
	require(d->output_bytes > 0 && d->output_bytes <= c->output_max_bytes);
	require(l->memory_bytes <= c->memory_max_bytes && l->pids <= c->processes_max);
	require(l->cpu_millicores <= 2000);
	require(l->workspace_bytes + l->tmp_bytes + l->shm_bytes < l->memory_bytes);
	require(str_list_count(d->argv) == 2 + str_list_count(r->args));
	for (char **v = d->env; *v; v++)
		require(is_harmless(*v) && strchr(*v, '=') && **v != '=');
	for (size_t i = 0; i < r->files_count; i++)
		require(r->files[i].name[0] != '/' && !strstr(r->files[i].name, "/../") &&
		        !str_has_prefix(r->files[i].name, "../"));
}

static void decide(const struct policy_rules *rules, const struct run_request *r)
{
	const struct policy_stack stack = {0};
	struct policy_decision d = {0};
	struct error err = {0};

	if (policy_decide(rules, &stack, r, &d, &err) < 0) {
		require(err.code == ERR_TOO_LARGE || (err.code == ERR_INVALID && err.field[0]));
		require(!d.argv && !d.env);
		return;
	}
	check_decision(rules->config, r, &d);
	policy_decision_done(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct driver driver = {.name = "native", .caps = {.layers = LAYERS_ALL}};
	static struct config *config; /* made once: the same for every input */
	static struct runners *runners;
	struct error err = {0};
	struct run_request r = {.language = (char *)"demo", .code = (char *)"x", .code_len = 1};
	cleanup_free char *text = xmemdup0(data, size);
	cleanup_free char **args = xcalloc(LINES_MAX + 1, sizeof(*args));
	cleanup_free char **env = xcalloc(LINES_MAX + 1, sizeof(*env));
	cleanup_free struct run_request_file *files = xcalloc(LINES_MAX, sizeof(*files));
	struct lists lists = {.args = args, .env = env};
	char *rest = text;

	if (!config) {
		config = config_parse(NULL, 0, "", NULL, 0, &err);
		runners = load_runners();
	}
	require(config);
	r.args = args;
	r.env = env;
	r.files = files;
	for (int i = 0; i < LINES_MAX && rest; i++)
		take_line(&r, &lists, strsep(&rest, "\n"));
	decide(&(struct policy_rules){config, runners, &driver, 2, NULL}, &r);
	return 0;
}
