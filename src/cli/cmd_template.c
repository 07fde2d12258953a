/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/parse.h"
#include "cli/admin_call.h"
#include "cli/say.h"

#define TEMPLATES  "/api/v1/templates"
#define PAGE_LIMIT 200

struct template_options {
	struct admin_options common;
	const char *id, *name, *description, *image, *language;
	uint64_t memory_bytes, disk_bytes, cpu_millicores, processes, timeout_us;
	struct option_list env, packages, preload;
};

#define AT(member) offsetof(struct template_options, member)

/* NULL is left out. */
static int set_text(json_t *body, const char *key, const char *text, struct error *err)
{
	if (text && json_object_set_new(body, key, json_string(text)) < 0)
		return error_set(err, ERR_INVALID, 0, "%s: not UTF-8 text", key);
	return 0;
}

static int set_list(json_t *body, const char *key, const struct option_list *list,
                    struct error *err)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->count; i++)
		if (json_array_append_new(array, json_string(list->items[i])) < 0) {
			json_decref(array);
			return error_set(err, ERR_INVALID, 0, "%s: not UTF-8 text", key);
		}
	if (list->count > 0)
		(void)json_object_set(body, key, array);
	json_decref(array);
	return 0;
}

static int set_env(json_t *body, const struct option_list *env, struct error *err)
{
	json_t *object = json_object();
	int r = 0;

	for (size_t i = 0; i < env->count && r == 0; i++) {
		const char *equals = strchr(env->items[i], '=');
		cleanup_free char *name =
			equals ? xmemdup0(env->items[i], (size_t)(equals - env->items[i])) : NULL;

		if (!name || json_object_set_new(object, name, json_string(equals + 1)) < 0)
			r = error_set(err, ERR_INVALID, 0, "--env: '%s' is not NAME=VALUE",
			              env->items[i]);
	}
	if (r == 0 && env->count > 0)
		(void)json_object_set(body, "env_vars", object);
	json_decref(object);
	return r;
}

static void set_resources(json_t *body, const struct template_options *o)
{
	json_t *resources = json_object();
	char cpu[32];

	format_cpu(o->cpu_millicores, cpu, sizeof(cpu));
	if (o->memory_bytes)
		(void)json_object_set_new(resources, "memory",
		                          json_integer((json_int_t)o->memory_bytes));
	if (o->disk_bytes)
		(void)json_object_set_new(resources, "disk",
		                          json_integer((json_int_t)o->disk_bytes));
	if (o->cpu_millicores)
		(void)json_object_set_new(resources, "cpu", json_string(cpu));
	if (o->processes)
		(void)json_object_set_new(resources, "max_processes",
		                          json_integer((json_int_t)o->processes));
	if (json_object_size(resources) > 0)
		(void)json_object_set(body, "default_resources", resources);
	if (o->timeout_us)
		(void)json_object_set_new(body, "default_timeout",
		                          json_real((double)o->timeout_us / USEC_PER_SEC));
	json_decref(resources);
}

/* @id NULL: of a template that is there. */
static char *build(const char *id, const struct template_options *o, struct error *err)
{
	json_t *body = json_object();
	char *text = NULL;

	/* Who makes one and says no more means the host. */
	if (set_text(body, "id", id, err) == 0 &&
	    set_text(body, "name", o->name || !id ? o->name : id, err) == 0 &&
	    set_text(body, "description", o->description, err) == 0 &&
	    set_text(body, "image", o->image || !id ? o->image : "host", err) == 0 &&
	    set_text(body, "language", o->language, err) == 0 &&
	    set_list(body, "packages", &o->packages, err) == 0 &&
	    set_list(body, "preload", &o->preload, err) == 0 && set_env(body, &o->env, err) == 0) {
		set_resources(body, o);
		text = json_dumps(body, JSON_COMPACT);
		if (!text)
			(void)error_set(err, ERR_SYSTEM, ENOMEM, "make the request");
	}
	json_decref(body);
	return text;
}

/* Silence is success. */
static int ask(const struct template_options *options, const struct api_call *call,
               struct error *err)
{
	json_t *answer = NULL;
	int status = admin_call(&options->common, call, &answer, err);
	const char *reason = json_string_value(json_object_get(answer, "reason"));

	if (reason)
		say("it cannot be used yet: %s", reason);
	json_decref(answer);
	return status;
}

static int run_create(const void *values, const struct args *args, struct error *err)
{
	const struct template_options *options = values;
	cleanup_free char *path = admin_path(TEMPLATES, args, "id of a template", err);
	cleanup_free char *body = path ? build(args->words[0], options, err) : NULL;
	const struct api_call call = {.method = "POST", .path = TEMPLATES, .body = body};

	return body ? ask(options, &call, err) : CLI_USAGE;
}

static int run_update(const void *values, const struct args *args, struct error *err)
{
	const struct template_options *options = values;
	cleanup_free char *path = admin_path(TEMPLATES, args, "id of a template", err);
	cleanup_free char *body = path ? build(NULL, options, err) : NULL;
	const struct api_call call = {.method = "PUT", .path = path, .body = body};

	return body ? ask(options, &call, err) : CLI_USAGE;
}

static int run_delete(const void *values, const struct args *args, struct error *err)
{
	const struct template_options *options = values;
	cleanup_free char *path = admin_path(TEMPLATES, args, "id of a template", err);
	const struct api_call call = {.method = "DELETE", .path = path};

	return path ? ask(options, &call, err) : CLI_USAGE;
}

static void print_words(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *word = json_string_value(json_array_get(list, i));

		(void)fputs(i ? "," : "", stdout);
		say_print(stdout, word ? word : "?");
	}
	if (json_array_size(list) == 0)
		(void)putchar('-');
}

static int run_show(const void *values, const struct args *args, struct error *err)
{
	static const char *const keys[] = {"id",   "name",     "description", "image",
	                                   "root", "language", "reason"};
	static const char *const lists[] = {"languages", "packages", "preload"};
	const struct template_options *options = values;
	cleanup_free char *path = admin_path(TEMPLATES, args, "id of a template", err);
	const struct api_call call = {.method = "GET", .path = path};
	json_t *answer = NULL;
	int status = path ? admin_call(&options->common, &call, &answer, err) : CLI_USAGE;

	if (!answer)
		return status;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		(void)printf("%-14s", keys[i]);
		admin_print_cell(answer, keys[i], 1);
		(void)putchar('\n');
	}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		(void)printf("%-14s", lists[i]);
		print_words(json_object_get(answer, lists[i]));
		(void)putchar('\n');
	}
	json_decref(answer);
	return status;
}

static void print_list(const json_t *answer)
{
	const json_t *list = json_object_get(answer, "templates");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *t = json_array_get(list, i);
		bool can = json_is_true(json_object_get(t, "available"));

		admin_print_cell(t, "id", 24);
		admin_print_cell(t, "root", 12);
		print_words(json_object_get(t, "languages"));
		(void)fputs(can ? "" : "  (", stdout);
		if (!can)
			admin_print_cell(t, "reason", 0);
		(void)puts(can ? "" : ")");
	}
}

static int run_list(const void *values, const struct args *args, struct error *err)
{
	const struct template_options *options = values;
	bool more = true;
	int status = CLI_OK;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "takes no arguments");
		return CLI_USAGE;
	}
	if (!options->common.json)
		(void)printf("%-24s%-12s%s\n", "ID", "ROOT", "LANGUAGES");
	for (unsigned offset = 0; more && status == CLI_OK; offset += PAGE_LIMIT) {
		cleanup_free char *path =
			xasprintf(TEMPLATES "?limit=%d&offset=%u", PAGE_LIMIT, offset);
		const struct api_call call = {.method = "GET", .path = path};
		json_t *answer = NULL;

		status = admin_call(&options->common, &call, &answer, err);
		if (answer)
			print_list(answer);
		more = json_is_true(json_object_get(answer, "has_more"));
		json_decref(answer);
	}
	return status;
}

/* Mapped, not read: images are large. */
static const char *map_file(const char *path, size_t *ret_len, struct error *err)
{
	cleanup_close int fd = fd_open(path, O_RDONLY, 0);
	struct stat st = {0};
	void *data;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
		(void)error_set(err, ERR_INVALID, fd < 0 ? -fd : 0,
		                "'%s' is not the archive of an image", path);
		return NULL;
	}
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED) {
		(void)error_set(err, ERR_INVALID, errno, "read '%s'", path);
		return NULL;
	}
	*ret_len = (size_t)st.st_size;
	return data;
}

/* "debian-12.tar.gz" is debian-12. */
static char *id_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *id = xstrdup(slash ? slash + 1 : path);
	char *end = strstr(id, ".tar");

	if (end)
		*end = '\0';
	return id;
}

static bool is_plain(const char *text)
{
	return text[strspn(text,
	                   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-. ")] ==
	       '\0';
}

static char *import_path(const struct template_options *o, const char *file, struct error *err)
{
	cleanup_free char *id = o->id ? xstrdup(o->id) : id_of(file);
	cleanup_free char *name = o->name ? xstrdup(o->name) : xstrdup(id);

	if (!id_is_valid(id, 64)) {
		(void)error_set(err, ERR_INVALID, 0, "'%s' is no id of a template: give --id", id);
		return NULL;
	}
	/* It goes into a query; everything else can be set later. */
	if (!is_plain(name)) {
		(void)error_set(err, ERR_INVALID, 0,
		                "--name: letters, digits, space, '.', '_' and '-'");
		return NULL;
	}
	for (char *c = name; *c; c++)
		if (*c == ' ')
			*c = '+';
	return xasprintf(TEMPLATES "/import?id=%s&name=%s", id, name);
}

static int run_import(const void *values, const struct args *args, struct error *err)
{
	const struct template_options *options = values;
	const char *file = args->words_count == 1 ? args->words[0] : NULL;
	struct api_call call = {.method = "POST"};
	cleanup_free char *path = NULL;
	int status = CLI_USAGE;

	if (!file)
		(void)error_set(err, ERR_INVALID, 0, "give the file of one image");
	else
		call.path = path = import_path(options, file, err);
	if (path)
		call.body = map_file(file, &call.body_len, err);
	if (call.body) {
		status = ask(options, &call, err);
		(void)munmap((void *)(uintptr_t)call.body, call.body_len);
	}
	return status;
}

/* A row is one option, however long its line. */
/* clang-format off */
static const struct option_row set_rows[] = {
	{"name",        'n', OPTION_TEXT,     AT(name),           "NAME",       "for people; default: the id"},
	{"description", 0,   OPTION_TEXT,     AT(description),    "TEXT",       "for people"},
	{"image",       'i', OPTION_TEXT,     AT(image),          "IMAGE",      "the root: host, a directory the operator allowed, or an imported template; default: host"},
	{"language",    'l', OPTION_TEXT,     AT(language),       "LANGUAGE",   "of executions that say none"},
	{"memory",      'm', OPTION_SIZE,     AT(memory_bytes),   "SIZE",       "default memory limit: 512Mi, 1Gi"},
	{"cpu",         0,   OPTION_CPU,      AT(cpu_millicores), "CORES",      "default processor share: 1, 0.5, 500m"},
	{"disk",        0,   OPTION_SIZE,     AT(disk_bytes),     "SIZE",       "default room for files: 256Mi"},
	{"processes",   0,   OPTION_NUMBER,   AT(processes),      "N",          "default for processes and threads"},
	{"timeout",     't', OPTION_DURATION, AT(timeout_us),     "TIME",       "idle time-out of its sessions: 60s to 1h"},
	{"env",         'e', OPTION_LIST,     AT(env),            "NAME=VALUE", "set an environment variable; may be repeated"},
	{"package",     'p', OPTION_LIST,     AT(packages),       "NAME",       "a package that must be in the root; may be repeated"},
	{"preload",     0,   OPTION_LIST,     AT(preload),        "MODULE",     "a module that Python imports first; may be repeated"},
	ADMIN_ROWS(AT),
};
static const struct option_row import_rows[] = {
	{"id",   0,   OPTION_TEXT, AT(id),   "ID",   "of the template; default: by the file's name"},
	{"name", 'n', OPTION_TEXT, AT(name), "NAME", "for people; default: the id"},
	ADMIN_ROWS(AT),
};
static const struct option_row rows[] = {
	ADMIN_ROWS(AT),
};
/* clang-format on */

const struct command command_template_list = {
	.name = "template list",
	.arguments = "",
	.summary = "List templates",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct template_options),
	.run = run_list,
};

const struct command command_template_show = {
	.name = "template show",
	.arguments = "TEMPLATE",
	.summary = "Tell about a template",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct template_options),
	.run = run_show,
};

const struct command command_template_create = {
	.name = "template create",
	.arguments = "TEMPLATE",
	.summary = "Make a template",
	.options = {set_rows, ARRAY_SIZE(set_rows)},
	.values_size = sizeof(struct template_options),
	.run = run_create,
};

const struct command command_template_update = {
	.name = "template update",
	.arguments = "TEMPLATE",
	.summary = "Change a template",
	.options = {set_rows, ARRAY_SIZE(set_rows)},
	.values_size = sizeof(struct template_options),
	.run = run_update,
};

const struct command command_template_import = {
	.name = "template import",
	.arguments = "FILE",
	.summary = "Make a template of an image: an OCI layout or 'docker save' as tar",
	.options = {import_rows, ARRAY_SIZE(import_rows)},
	.values_size = sizeof(struct template_options),
	.run = run_import,
};

const struct command command_template_delete = {
	.name = "template delete",
	.arguments = "TEMPLATE",
	.summary = "Delete a template that nobody uses",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct template_options),
	.run = run_delete,
};
