/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <fcntl.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/size.h"
#include "cli/client/exec_call.h"
#include "cli/client/interrupt.h"
#include "cli/exit_status.h"
#include "cli/message.h"
#include "cli/package.h"
#include "cli/resource.h"
#include "client/millibox.h"

/* Packages are installed by one request whose stream is the package manager's output; it goes to
 * stderr. The daemon then finds their layer for whatever asks for the same packages. */

#define LOCK_MAX (1 * MIB)

static const struct resource_column columns[] = {
	{"ID", "id", NULL, 26},        {"MANAGER", "manager", NULL, 9},
	{"BYTES", "bytes", NULL, 12},  {"USERS", "users", NULL, 7},
	{"USED", "used_at", NULL, 26}, {"PACKAGES", "packages", NULL, 0},
};

static const struct resource layers = {
	.base = PACKAGE_LAYERS,
	.what = "layer id",
	.list = "layers",
	RESOURCE_COLUMNS(columns),
};

static const struct resource_field fields[] = {
	{"language", RESOURCE_TEXT, offsetof(struct package_options, language), "language", NULL},
	{"manager", RESOURCE_TEXT, offsetof(struct package_options, manager), "manager", NULL},
	{"template", RESOURCE_TEXT, offsetof(struct package_options, template_id), "template_id",
         NULL},
	{"packages", RESOURCE_WORDS, offsetof(struct package_options, packages), "packages", NULL},
	{"lock", RESOURCE_TEXT, offsetof(struct package_options, lock_text), "lock", NULL},
	{"run", RESOURCE_TEXT, offsetof(struct package_options, run), "run", NULL},
};

int package_install(const struct package_options *options, json_t **ret_installed,
                    struct error *err)
{
	cleanup_close int interrupt_fd = interrupt_open(err);
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	cleanup_session struct millibox_session *session = NULL;
	cleanup_request struct millibox_request *request = NULL;
	cleanup_exec_call struct exec_call call = {0};
	json_auto_t *object = json_object();
	int signo;

	if (interrupt_fd < 0 ||
	    resource_add_fields(object, fields, ARRAY_SIZE(fields), options, err) < 0 ||
	    (options->session && daemon_session(client, options->session, &session, err) < 0))
		return -1;
	request = daemon_request(object);
	exec_call_init(&call, interrupt_fd, false);
	if (exec_call_install(&call, client, session, request, err) < 0) {
		signo = exec_call_signal(&call);
		if (signo <= 0)
			return -1;
		error_clear(err);
		return CLI_SIGNAL + signo;
	}
	if (call.problem) {
		if (options->common.json)
			message_print_json(call.problem);
		else
			message_show_problem(call.problem);
		return exit_status_of_problem(call.problem);
	}
	*ret_installed = json_incref(call.result);
	return CLI_OK;
}

static int add_lock(struct buf *to, const char *path, bool named, struct error *err)
{
	cleanup_buf struct buf text = BUF_INIT(LOCK_MAX);
	const char *slash = strrchr(path, '/');
	int r = file_read_at(AT_FDCWD, path, &text);

	if (r < 0)
		return error_set(err, ERR_INVALID, -r, "--lock '%s'", path);
	if ((named && buf_addf(to, "==> %s <==\n", slash ? slash + 1 : path) < 0) ||
	    buf_add(to, text.data ? text.data : "", text.len) < 0 ||
	    (named && buf_add_str(to, "\n") < 0))
		return error_set(err, ERR_INVALID, 0, "--lock: more than %llu bytes",
		                 (unsigned long long)LOCK_MAX);
	return 0;
}

int package_read_lock(const char *files, char **ret_text, struct error *err)
{
	cleanup_buf struct buf text = BUF_INIT(LOCK_MAX);
	cleanup_free char *names = files ? xstrdup(files) : NULL;
	bool several = files && strchr(files, ',');
	char *rest = NULL;

	*ret_text = NULL;
	for (char *name = names ? strtok_r(names, ",", &rest) : NULL; name;
	     name = strtok_r(NULL, ",", &rest))
		if (add_lock(&text, name, several, err) < 0)
			return -1;
	if (files)
		*ret_text = xmemdup0(text.data ? text.data : "", text.len);
	return 0;
}

/* Packages are @args from @first on. Return: as package_install. */
static int install_words(struct package_options *options, const struct args *args, size_t first,
                         json_t **ret_installed, struct error *err)
{
	cleanup_free char *lock = NULL;
	cleanup_free char *packages = NULL;

	if (args->words_count <= first && !options->lock)
		return error_set(err, ERR_INVALID, 0,
		                 "expected a package, like numpy==2.1, or --lock");
	for (size_t i = first; i < args->words_count; i++) {
		cleanup_free char *before = packages;

		packages = xasprintf("%s%s%s", before ? before : "", before ? "," : "",
		                     args->words[i]);
	}
	options->packages = packages;
	if (package_read_lock(options->lock, &lock, err) < 0)
		return -1;
	options->lock_text = lock;
	return package_install(options, ret_installed, err);
}

static int run_install(const void *values, const struct args *args, struct error *err)
{
	struct package_options options = *(const struct package_options *)values;
	json_auto_t *layer = NULL;
	int status = install_words(&options, args, 0, &layer, err);

	if (status != CLI_OK || !layer)
		return status;
	if (options.common.json) {
		message_print_json(layer);
	} else {
		message_print_safe(stdout, message_text(layer, "id"));
		(void)putchar('\n');
	}
	return CLI_OK;
}

static int run_session_install(const void *values, const struct args *args, struct error *err)
{
	struct package_options options = *(const struct package_options *)values;
	json_auto_t *installed = NULL;
	int status;

	if (args->words_count == 0)
		return error_set(err, ERR_INVALID, 0, "expected a session id");
	options.session = args->words[0];
	status = install_words(&options, args, 1, &installed, err);
	if (status != CLI_OK || !installed)
		return status;
	if (options.common.json)
		message_print_json(installed);
	else if (json_is_null(json_object_get(installed, "lock")))
		message_show("the session has these packages already");
	return CLI_OK;
}

/* The lock is the word of packages' authors: its lines stay, control characters do not. */
static void print_lines(const char *text)
{
	cleanup_free char *copy = xstrdup(text);
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n"))) {
		message_print_safe(stdout, line);
		if (rest)
			(void)putchar('\n');
	}
}

static int run_show(const void *values, const struct args *args, struct error *err)
{
	json_auto_t *answer = NULL;
	int status = resource_show(&layers, values, args, &answer, err);

	if (answer)
		print_lines(message_text(answer, "lock"));
	return status;
}

#define AT(member) offsetof(struct package_options, member)
/* clang-format off */
static const struct option_row rows[] = {
	{"language", 'l', OPTION_TEXT, AT(language),    "LANGUAGE", "language whose package manager is used; default: python"},
	{"manager",  0,   OPTION_TEXT, AT(manager),     "NAME",     "another package manager: pip, npm, cargo, go, maven, nuget, apt"},
	{"lock",     0,   OPTION_TEXT, AT(lock),        "FILE",     PACKAGE_LOCK_HELP},
	{"template", 0,   OPTION_TEXT, AT(template_id), "TEMPLATE", "install for the root of this template"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

/* clang-format off */
static const struct option_row session_rows[] = {
	{"language", 'l', OPTION_TEXT, AT(language), "LANGUAGE", "language whose package manager is used; default: the session's"},
	{"lock",     0,   OPTION_TEXT, AT(lock),     "FILE",     PACKAGE_LOCK_HELP},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(session_install, "session install", "SESSION (PACKAGE... | --lock FILE)",
        "Install packages into a session", run_session_install, session_rows,
        struct package_options,
        .text = "Programs of the session find them at once, also an interpreter that runs. What a "
                "program has already imported stays as it is. The package manager's output goes to "
                "stderr.\n");
COMMAND(package_install, "package install", "(PACKAGE... | --lock FILE)",
        "Install packages into a layer, ahead of use", run_install, rows, struct package_options,
        .text = "A PACKAGE is a name, perhaps with a version: numpy pandas==2.2. The package "
                "manager's output goes to stderr, the id of the layer to stdout.\n");
COMMAND(package_list, "package list", "", "List layers of installed packages", resource_run_list,
        resource_rows, struct common_options, .data = &layers);
COMMAND(package_show, "package show", "LAYER", "Show the lock of a layer of packages", run_show,
        resource_rows, struct common_options);
COMMAND(package_rm, "package rm", "LAYER", "Remove an unused layer of packages",
        resource_run_delete, resource_rows, struct common_options, .data = &layers);
