/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/language_install.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "cli/start_daemon.h"
#include "client/millibox.h"
#include <stddef.h>

static const struct resource_column columns[] = {
	{"NAME", "name", NULL, 14},           {"TITLE", "title", NULL, 22},
	{"AVAILABLE", "available", NULL, 11}, {"VERSION", "version", NULL, 12},
	{"STATE", "keeps_state", NULL, 8},    {"INSTALL", "install", NULL, 0},
};

static const struct resource languages = {
	.base = "/api/v1/languages",
	.what = "language",
	.list = "languages",
	RESOURCE_COLUMNS(columns),
};

struct languages_options {
	struct common_options common;
	const char *template_id;
	const char *engine;
	bool check, install;
};

#define AT(member)   offsetof(struct languages_options, member)
#define PATH_MAX_LEN 8192

/* The daemon of one call of this command. */
struct asked {
	struct millibox_client *client;
	struct own_daemon *own; /* NULL: it is not ours */
	const char *address;    /* of the client; NULL: it is ours */
};

static void asked_done(struct asked *a)
{
	daemon_closep(&a->client);
	own_daemon_end(a->own);
}

/* Languages are of interest before a daemon runs. */
static int find_daemon(struct asked *a, const struct daemon_options *at, struct error *err)
{
	a->client = daemon_open(at);
	if (start_daemon_find(at, a->client, -1, &a->own, err) < 0)
		return -1;
	if (!a->own && millibox_find(a->client, &a->address) < 0)
		return daemon_fail(a->client, err);
	return 0;
}

static void add_query(struct buf *path, const char *name, const char *value)
{
	cleanup_free char *escaped = value ? millibox_escape(value) : NULL;

	if (escaped)
		(void)!buf_addf(path, "%s%s=%s", strchr(path->data, '?') ? "&" : "?", name,
		                escaped);
}

/* Return: owned. */
static char *path_of(const struct languages_options *options)
{
	cleanup_buf struct buf path = BUF_INIT(PATH_MAX_LEN);

	(void)!buf_addf(&path, "%s", languages.base);
	add_query(&path, "check", options->check ? "all" : NULL);
	add_query(&path, "template_id", options->template_id);
	add_query(&path, "engine", options->engine);
	return xstrdup(path.data);
}

/* Return: as resource_finish. */
static int ask_daemon(const struct asked *a, const struct languages_options *options,
                      json_t **ret_answer, struct error *err)
{
	cleanup_free char *path = path_of(options);
	const struct daemon_call call = {.method = "GET", .path = path};

	return resource_finish(&options->common, a->client, daemon_send(a->client, &call),
	                       ret_answer, err);
}

static void print_failure(const json_t *language)
{
	message_print_safe(stdout, message_text(language, "name"));
	(void)fputs(" does not work: ", stdout);
	message_print_safe(stdout, message_text(language, "missing"));
	(void)putchar('\n');
}

/* What was run and failed, and one command for all that is missing. */
static int print_advice(const json_t *list, struct error *err)
{
	cleanup_language_packages struct language_packages packages = {0};
	cleanup_free char *command = NULL;
	const json_t *language;
	size_t i;

	json_array_foreach (list, i, language) {
		if (language_is_there(language))
			continue;
		if (json_is_true(json_object_get(language, "checked")))
			print_failure(language);
		if (language_packages_add(&packages, language, err) < 0)
			return -1;
	}
	if (packages.count == 0)
		return 0;
	command = language_packages_command(&packages);
	(void)printf("\n'millibox languages --install' installs what is missing here:\n%s\n",
	             command);
	return 0;
}

static int list_languages(const struct asked *a, const struct languages_options *options,
                          struct error *err)
{
	json_auto_t *answer = NULL;
	int status = ask_daemon(a, options, &answer, err);

	if (!answer)
		return status;
	resource_print_list(&languages, answer, true);
	if (!options->template_id && print_advice(json_object_get(answer, languages.list), err) < 0)
		return -1;
	return status;
}

/* A URL of this host's own addresses, or a socket. */
static bool is_here(const char *address)
{
	static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]"};
	const char *host = address ? strstr(address, "://") : NULL;

	if (!host)
		return true;
	host += strlen("://");
	/* In http://localhost:x@example.com, the host comes behind. */
	if (strchr(host, '@'))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		if (str_has_prefix(host, hosts[i]) && strchr(":/", host[strlen(hosts[i])]))
			return true;
	return false;
}

static int refuse_name(const json_t *list, const char *name, struct error *err)
{
	struct suggest suggest = {.word = name};
	const json_t *language;
	size_t i;

	json_array_foreach (list, i, language)
		suggest_offer(&suggest, message_text(language, "name"));
	return error_set(err, ERR_INVALID, 0, "unknown language '%s'%s%s%s", name,
	                 suggest.best ? "; did you mean '" : "; 'millibox languages' lists them",
	                 suggest.best ? suggest.best : "", suggest.best ? "'?" : "");
}

static bool is_wanted(const json_t *list, const json_t *language, const struct args *args)
{
	for (size_t i = 0; i < args->words_count; i++)
		if (language_find(list, args->words[i]) == language)
			return true;
	return args->words_count == 0 && !language_is_there(language);
}

/* Of those that are missing. Languages without packages are named, unless others are asked for. */
static int gather_packages(const json_t *list, const struct args *args,
                           struct language_packages *packages, struct error *err)
{
	const json_t *language;
	size_t i;

	for (i = 0; i < args->words_count; i++)
		if (!language_find(list, args->words[i]))
			return refuse_name(list, args->words[i], err);
	json_array_foreach (list, i, language) {
		const char *name = message_text(language, "name");

		if (!is_wanted(list, language, args))
			continue;
		if (language_is_there(language)) {
			message_show("%s is available already", name);
			continue;
		}
		if (json_array_size(json_object_get(language, "debian_packages")) == 0)
			message_show("%s: no package of Debian has it%s%s", name,
			             *message_text(language, "install") ? "; " : "",
			             message_text(language, "install"));
		else if (language_packages_add(packages, language, err) < 0)
			return -1;
	}
	return 0;
}

/* Return: whether all that were wanted work now. */
static bool report_installed(const json_t *before, const json_t *list, const struct args *args)
{
	const json_t *language;
	bool all = true, fails = false;
	size_t i;

	json_array_foreach (before, i, language) {
		const char *name = message_text(language, "name");
		const json_t *now = language_find(list, name);

		if (!is_wanted(before, language, args) || language_is_there(language))
			continue;
		if (language_is_there(now)) {
			message_show("%s %s is available", name, message_text(now, "version"));
			continue;
		}
		all = false;
		fails |= json_is_true(json_object_get(now, "checked"));
		message_show("%s is not available to the daemon: it %s %s", name,
		             json_is_true(json_object_get(now, "checked")) ? "says" : "lacks",
		             message_text(now, "missing"));
	}
	/* The engine has left the host's tree: it cannot mount directories that are new. */
	if (fails)
		message_show("restart the daemon: its boxes see parts of /etc, those of Java, Mono "
		             "and R, only if they were there when it started");
	return all;
}

static int install_languages(const struct asked *a, const struct languages_options *options,
                             const struct args *args, struct error *err)
{
	struct languages_options quiet = *options;
	cleanup_language_packages struct language_packages packages = {0};
	json_auto_t *before = NULL, *after = NULL;
	const json_t *list;
	int status;

	quiet.common.json = false;
	status = ask_daemon(a, &quiet, &before, err);
	if (!before)
		return status;
	list = json_object_get(before, languages.list);
	if (gather_packages(list, args, &packages, err) < 0)
		return -1;
	if (packages.count > 0 && !is_here(a->address)) {
		cleanup_free char *command = language_packages_command(&packages);

		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "the daemon at %s is on another host; there run: %s", a->address,
		                 command);
	}
	if (packages.count > 0 && language_packages_install(&packages, err) < 0)
		return -1;
	status = ask_daemon(a, &quiet, &after, err);
	if (!after)
		return status;
	if (options->common.json)
		message_print_json(after);
	return report_installed(list, json_object_get(after, languages.list), args) ? CLI_OK
	                                                                            : CLI_FAILED;
}

static int run_languages(const void *values, const struct args *args, struct error *err)
{
	const struct languages_options *options = values;
	attr_cleanup(asked_done) struct asked asked = {0};

	if (args->words_count > 0 && !options->install)
		return error_set(err, ERR_INVALID, 0, "names of languages require --install");
	if (options->install && options->template_id)
		return error_set(err, ERR_INVALID, 0,
		                 "--install is for this host; add the packages to the image of the "
		                 "template, and import that");
	if (find_daemon(&asked, &options->common.at, err) < 0)
		return -1;
	return options->install ? install_languages(&asked, options, args, err)
	                        : list_languages(&asked, options, err);
}

/* clang-format off */
static const struct option_row rows[] = {
	{"engine", 0, OPTION_TEXT, AT(engine), "ENGINE", "languages of boxes of this engine; default: the default engine's"},
	{"template", 0, OPTION_TEXT, AT(template_id), "TEMPLATE", "languages of boxes of this template; default: the host's"},
	{"check", 0, OPTION_FLAG, AT(check), NULL, "run a program of each language again, also where the daemon knows the answer; with a key, it needs scope admin"},
	{"install", 0, OPTION_FLAG, AT(install), NULL, "install these languages, or all that are missing, with apt-get"},
	ISOLATION_ROW(AT(common.at)),
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(languages, "languages", "[--install [LANGUAGE...]]",
        "List the languages that work, and install others", run_languages, rows,
        struct languages_options,
        .text = "A language is available if a small program of it runs in a box. The daemon "
                "remembers that until the toolchain or the host's packages change.\n"
                "STATE is yes for languages whose variables persist in a session.\n"
                "--install prints the command, and runs it as root or through sudo. The daemon "
                "need not be restarted.\n"
                "--json adds aliases, extensions and the options of each language.\n"
                "If no daemon listens at the default socket, one is started for this command.\n");
