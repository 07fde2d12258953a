/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/language_install.h"

#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/client/program.h"
#include "cli/message.h"

#define LISTS     "/var/lib/apt/lists"
#define LISTS_AGE (24 * 3600) /* s: then they may name versions that the mirror no longer has */
#define LINE_MAX  (64 * KIB)
/* sudo, the words of the command, NULL. */
#define WORDS 8

static const char *const install_words[] = {"install", "-y", "--no-install-recommends"};

const json_t *language_find(const json_t *list, const char *name)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *language = json_array_get(list, i);
		const json_t *aliases = json_object_get(language, "aliases");

		if (str_equal(message_text(language, "name"), name))
			return language;
		for (size_t k = 0; k < json_array_size(aliases); k++) {
			const char *alias = json_string_value(json_array_get(aliases, k));

			if (alias && str_equal(alias, name))
				return language;
		}
	}
	return NULL;
}

bool language_is_there(const json_t *language)
{
	return json_is_true(json_object_get(language, "available"));
}

void language_packages_done(struct language_packages *packages)
{
	free(packages->names);
	*packages = (struct language_packages){0};
}

/* Neither an option, nor a path, nor a package to remove ("name-"). */
static bool is_package(const char *name)
{
	size_t len = name ? strlen(name) : 0;

	return len >= 2 && !strchr("+-.", *name) && name[len - 1] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == len;
}

static bool has_package(const struct language_packages *packages, const char *name)
{
	for (size_t i = 0; i < packages->count; i++)
		if (str_equal(packages->names[i], name))
			return true;
	return false;
}

int language_packages_add(struct language_packages *packages, const json_t *language,
                          struct error *err)
{
	const json_t *names = json_object_get(language, "debian_packages");
	size_t count = packages->count + json_array_size(names);

	packages->names = xrealloc_array(packages->names, count + 1, sizeof(*packages->names));
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));

		if (!is_package(name))
			return error_set(err, ERR_PROTOCOL, 0,
			                 "the daemon says a package of %s is '%s', which is none",
			                 message_text(language, "name"), name ? name : "");
		if (!has_package(packages, name))
			packages->names[packages->count++] = name;
	}
	return 0;
}

static char *join_words(const char *const *words)
{
	cleanup_buf struct buf line = BUF_INIT(LINE_MAX);

	for (size_t i = 0; words[i]; i++)
		(void)!buf_addf(&line, "%s%s", i ? " " : "", words[i]);
	return xmemdup0(line.data ? line.data : "", line.len);
}

#define APT_WORDS (1 + ARRAY_SIZE(install_words)) /* before the names of packages */

/* With room for sudo in front. Return: owned. */
static const char **install_argv(const struct language_packages *packages, const char *apt)
{
	const char **argv = xcalloc(WORDS + packages->count, sizeof(*argv));
	size_t n = 0;

	argv[n++] = apt;
	for (size_t i = 0; i < ARRAY_SIZE(install_words); i++)
		argv[n++] = install_words[i];
	for (size_t i = 0; i < packages->count; i++)
		argv[n++] = packages->names[i];
	return argv;
}

char *language_packages_command(const struct language_packages *packages)
{
	cleanup_free const char **argv = install_argv(packages, "apt-get");

	return join_words(argv);
}

static bool has_lists(void)
{
	glob_t found;
	int r = glob(LISTS "/*_Packages*", GLOB_NOSORT, NULL, &found);

	if (r == 0)
		globfree(&found);
	return r == 0;
}

static bool lists_are_old(void)
{
	struct stat st;

	return stat(LISTS, &st) < 0 || time(NULL) - st.st_mtime > LISTS_AGE || !has_lists();
}

struct apt {
	char *program; /* owned */
	char *sudo;    /* owned: it makes apt-get root; NULL: we are root */
};

static void apt_done(struct apt *apt)
{
	free(apt->program);
	free(apt->sudo);
}

static int find_apt(const struct language_packages *packages, struct apt *ret_apt,
                    struct error *err)
{
	cleanup_free const char **argv = install_argv(packages, "apt-get");
	cleanup_free char *command = join_words(argv), *names = join_words(argv + APT_WORDS);

	ret_apt->program = program_search("apt-get");
	if (!ret_apt->program)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "there is no apt-get on this host; install what these packages of "
		                 "Debian have: %s",
		                 names);
	if (geteuid() == 0)
		return 0;
	ret_apt->sudo = program_search("sudo");
	return ret_apt->sudo ? 0
	                     : error_set(err, ERR_UNAVAILABLE, 0,
	                                 "you are not root, and there is no sudo; as root, run: %s",
	                                 command);
}

/* @argv ends with free places. */
static int run_apt(const struct apt *apt, const char **argv, struct error *err)
{
	cleanup_free char *line = NULL;
	size_t count = 0;
	int status = 0;

	if (apt->sudo) {
		while (argv[count])
			count++;
		memmove(argv + 1, argv, count * sizeof(*argv));
		argv[0] = apt->sudo;
	}
	line = join_words(argv);
	message_show("%s", line);
	if (program_run(argv, &status, err) < 0)
		return -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return error_set(err, ERR_INSTALL_FAILED, 0, "apt-get %s: %s %d", argv[apt->sudo ? 2 : 1],
	                 WIFSIGNALED(status) ? "signal" : "exit status",
	                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

int language_packages_install(const struct language_packages *packages, struct error *err)
{
	attr_cleanup(apt_done) struct apt apt = {0};
	cleanup_free const char **install = NULL;

	if (find_apt(packages, &apt, err) < 0)
		return -1;
	if (lists_are_old()) {
		const char *update[WORDS] = {apt.program, "update"};

		if (run_apt(&apt, update, err) < 0)
			return -1;
	}
	install = install_argv(packages, apt.program);
	return run_apt(&apt, install, err);
}
