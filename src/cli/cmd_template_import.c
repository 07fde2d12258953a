/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/size.h"
#include "cli/color.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "client/millibox.h"

/*
 * One request, answered when the import is complete. Meanwhile a terminal shows progress: first
 * bytes sent, then the daemon's report.
 */

#define TEMPLATES "/api/v1/templates"
#define IMPORTS   "/api/v1/imports"

struct import_options {
	struct common_options common;
	const char *id, *name;
	bool progress;
};

#define AT(member) offsetof(struct import_options, member)

/* Images are large. Return: munmap it, or NULL. */
static const char *map_file(const char *path, size_t *ret_len, struct error *err)
{
	cleanup_close int fd = fd_open(path, O_RDONLY, 0);
	struct stat st = {0};
	void *data;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
		(void)error_set(err, ERR_INVALID, fd < 0 ? -fd : 0,
		                fd < 0 ? "read '%s'" : "'%s' is not an archive", path);
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

/* "debian-12.tar.gz" -> "debian-12" */
static char *default_id(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path, *end = strstr(name, ".tar");

	return xstrndup(name, end ? (size_t)(end - name) : strlen(name));
}

static char *import_path(const struct import_options *o, const char *id, struct error *err)
{
	static const char safe[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-. ";
	cleanup_free char *name = xstrdup(o->name ? o->name : id);

	if (!id_is_dotted(id, 64)) {
		(void)error_set(err, ERR_INVALID, 0, "'%s' is not a valid template id; give --id",
		                id);
		return NULL;
	}
	/* It becomes part of a query. */
	if (name[strspn(name, safe)] != '\0') {
		(void)error_set(err, ERR_INVALID, 0,
		                "--name: only letters, digits, spaces, '.', '_' and '-'");
		return NULL;
	}
	for (char *c = name; *c; c++)
		if (*c == ' ')
			*c = '+';
	return xasprintf(TEMPLATES "/import?id=%s&name=%s", id, name);
}

/* One line, overwritten. */
struct progress {
	const struct import_options *options;
	const char *id;
	size_t total;
};

static double mib(uint64_t bytes)
{
	return (double)bytes / MIB;
}

static uint64_t number_of(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

/* Return: owned, or NULL: errors are ignored. */
static json_t *get_state(const struct progress *p)
{
	cleanup_daemon struct millibox_client *client = daemon_open(&p->options->common.at);
	cleanup_free char *path = xasprintf(IMPORTS "/%s", p->id);
	const struct daemon_call call = {.method = "GET", .path = path};
	struct error err = {0};
	json_t *answer = NULL;
	int status = 0;

	/* A client of its own: the other one sends. */
	return daemon_ask(client, &call, &answer, &status, &err) < 0 ? NULL : answer;
}

static void on_progress(void *ctx, uint64_t sent)
{
	const struct progress *p = ctx;
	json_auto_t *seen = sent < p->total ? NULL : get_state(p);

	if (number_of(seen, "layers") > 0)
		(void)fprintf(stderr, "\runpacking layer %llu of %llu, %.1f MiB\033[K",
		              (unsigned long long)number_of(seen, "layer"),
		              (unsigned long long)number_of(seen, "layers"),
		              mib(number_of(seen, "unpacked_bytes")));
	else
		(void)fprintf(stderr, "\rsent %.1f of %.1f MiB\033[K", mib(sent), mib(p->total));
}

static int send_archive(const struct import_options *options, const struct daemon_call *archive,
                        const char *id, struct error *err)
{
	bool shows =
		!options->common.json && (options->progress || color_has_escapes(STDERR_FILENO));
	struct progress progress = {options, id, archive->body_len};
	struct daemon_call call = *archive;
	json_auto_t *answer = NULL;
	const json_t *config;
	const char *reason;
	int status;

	call.on_progress = shows ? on_progress : NULL;
	call.ctx = &progress;
	status = resource_call(&options->common, &call, &answer, err);
	reason = json_string_value(json_object_get(answer, "reason"));
	config = json_object_get(answer, "image_config");
	(void)fputs(shows ? "\r\033[K" : "", stderr);
	if (shows && config)
		message_show("imported %llu layers, %llu entries, %.1f MiB on disk",
		             (unsigned long long)number_of(config, "layers"),
		             (unsigned long long)number_of(config, "entries"),
		             mib(number_of(config, "disk_bytes")));
	if (reason)
		message_show("the template cannot be used yet: %s", reason);
	if (config && !options->common.json) /* the default comes from the name of the file */
		(void)puts(id);
	return status;
}

static int run_import(const void *values, const struct args *args, struct error *err)
{
	const struct import_options *options = values;
	const char *file = args->words_count == 1 ? args->words[0] : NULL;
	cleanup_free char *id = NULL, *path = NULL;
	struct daemon_call call = {.method = "POST"};
	int status = -1;

	if (!file)
		return error_set(err, ERR_INVALID, 0, "expected one image file");
	id = options->id ? xstrdup(options->id) : default_id(file);
	call.path = path = import_path(options, id, err);
	if (path)
		call.body = map_file(file, &call.body_len, err);
	if (call.body) {
		status = send_archive(options, &call, id, err);
		(void)munmap((void *)(uintptr_t)call.body, call.body_len);
	}
	return status;
}

static const struct resource_column columns[] = {
	{"ID", "id", NULL, 24},
	{"STATE", "state", NULL, 12},
	{"RECEIVED", "received_bytes", NULL, 16},
	{"TOTAL", "total_bytes", NULL, 16},
	{"LAYER", "layer", NULL, 8},
	{"LAYERS", "layers", NULL, 8},
	{"UNPACKED", "unpacked_bytes", NULL, 0},
};

static const struct resource imports = {
	.base = IMPORTS,
	.what = "template id",
	.list = "imports",
	RESOURCE_COLUMNS(columns),
};

/* clang-format off */
static const struct option_row import_rows[] = {
	{"id",       0,   OPTION_TEXT, AT(id),       "ID",   "id of the template; default: from the file name"},
	{"name",     'n', OPTION_TEXT, AT(name),     "NAME", "display name; default: the id"},
	{"progress", 0,   OPTION_FLAG, AT(progress), NULL,   "show progress even if stderr is not a terminal"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(template_import, "template import", "FILE",
        "Create a template from a tar: an OCI layout, 'docker save', or a root file system",
        run_import, import_rows, struct import_options);
COMMAND(template_imports, "template imports", "", "List running imports and their progress",
        resource_run_list, resource_rows, struct import_options, .data = &imports);
