/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/env.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/config/limits.h"
#include "driver/box_spec.h"

/* The program can write to no directory in PATH. */
static const char *const base_env[] = {
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"HOME=/workspace",
	"LANG=C.UTF-8",
	"TMPDIR=/tmp",
	"USER=sandbox",
};

/* Programs differ in which of these they read, and in which case. */
#define TEXT(number)   #number
#define TEXT_OF(macro) TEXT(macro)
#define PROXY_PORT     TEXT_OF(BOX_PROXY_PORT)
#define PROXY          "http://127.0.0.1:" PROXY_PORT
#define NO_PROXY       "localhost,127.0.0.1,::1"
static const char *const proxy_env[] = {
	"HTTP_PROXY=" PROXY,
	"HTTPS_PROXY=" PROXY,
	"ALL_PROXY=" PROXY,
	"NO_PROXY=" NO_PROXY,
	"http_proxy=" PROXY,
	"https_proxy=" PROXY,
	"all_proxy=" PROXY,
	"no_proxy=" NO_PROXY,
	"NODE_USE_ENV_PROXY=1", /* fetch() of Node.js */
	"MAVEN_OPTS=-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=" PROXY_PORT
	" -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=" PROXY_PORT,
};

/* Where programs find the functions of tools, and the socket as its clients know it. */
#define TOOLS_DIR "/opt/millibox/runners/tools"
static const char *const tools_env[] = {
	"MCP_SOCKET_PATH=/tmp/mcp.sock",
	"MILLIBOX_TOOLS=" TOOLS_DIR "/python",
	"PYTHONPATH=" TOOLS_DIR "/python",
	"NODE_PATH=" TOOLS_DIR "/javascript",
};

/* They make a loader, an interpreter or libc run or read something before the program. Our runners
 * start first: the caller must not choose what they are. Search paths are another matter: programs
 * of other systems are given them, what they find has the rights of the program, and the box is the
 * boundary. */
/* clang-format off */
static const char *const denied[] = {
	/* loader and libc */
	"LD_*", "DYLD_*", "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES",
	"LOCALDOMAIN", "LOCPATH", "NIS_PATH", "NLSPATH", "RESOLV_HOST_CONF",
	"RES_OPTIONS", "TZDIR", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES",
	/* shells */
	"BASH_ENV", "BASH_FUNC_*", "BASHOPTS", "SHELLOPTS", "ENV", "IFS", "PS4",
	"PROMPT_COMMAND", "CDPATH", "GLOBIGNORE", "ZDOTDIR",
	/* interpreters */
	"PYTHON*", "NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE", "PERL5OPT", "PERL5DB",
	"PERLIO_DEBUG", "RUBYOPT", "LUA_INIT*", "PHPRC", "PHP_INI_SCAN_DIR",
	"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "DENO_*", "BUN_*",
	"R_PROFILE*", "R_ENVIRON*",
	/* ours */
	"MILLIBOX_*",
};
/* Of the families above. The Python runners follow the PYTHON ones. */
static const char *const accepted[] = {
	"LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE",
};
/* clang-format on */

static bool is_denied(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++)
		if (str_equal(accepted[i], name))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(denied); i++)
		if (fnmatch(denied[i], name, 0) == 0)
			return true;
	return false;
}

int env_check_variable(const char *variable)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
	size_t len = strcspn(variable, "=");
	char name[64];

	if (!variable[len] || len == 0 || strspn(variable, letters) != len ||
	    (variable[0] >= '0' && variable[0] <= '9'))
		return -EINVAL;
	/* Truncation is harmless: no denied name is as long. */
	(void)snprintf(name, sizeof(name), "%.*s", (int)(len < sizeof(name) ? len : sizeof(name)),
	               variable);
	return is_denied(name) ? -EPERM : 0;
}

static bool same_name(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return len == strcspn(b, "=") && memcmp(a, b, len) == 0;
}

static int check_one(char *const *env, size_t index, struct error *err)
{
	const char *variable = env[index];
	size_t len = strcspn(variable, "=");
	int shown = len < 48 ? (int)len : 48;
	int r = env_check_variable(variable);

	if (r == -EPERM)
		return error_field(err, "env_vars",
		                   "'%.*s' changes how programs are loaded and can't be set", shown,
		                   variable);
	if (r < 0)
		return error_field(err, "env_vars",
		                   "variable %zu: a name is letters, digits and '_', and does not "
		                   "begin with a digit",
		                   index + 1);
	for (size_t i = 0; i < index; i++)
		if (same_name(env[i], variable))
			return error_field(err, "env_vars", "'%.*s' is given twice", shown,
			                   variable);
	return 0;
}

int env_check(char *const *env, struct error *err)
{
	size_t count = 0;
	size_t bytes = 0;

	for (; env && env[count]; count++)
		bytes += strlen(env[count]) + 1;
	if (count > LIMIT_ENV_MAX || bytes > LIMIT_ENV_BYTES)
		return error_field(err, "env_vars",
		                   "at most %d variables and %d bytes are accepted", LIMIT_ENV_MAX,
		                   LIMIT_ENV_BYTES);
	for (size_t i = 0; i < count; i++)
		if (check_one(env, i, err) < 0)
			return -1;
	return 0;
}

/* Search paths of modules: a caller adds to what leads to a layer of packages and to tools. */
static bool is_joined(const char *variable)
{
	static const char *const names[] = {"PYTHONPATH=", "NODE_PATH=", "MONO_PATH="};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_has_prefix(variable, names[i]))
			return true;
	return false;
}

static bool has_place(const char *variable, const char *place, size_t len)
{
	for (const char *at = strchr(variable, '=') + 1;; at++) {
		size_t own = strcspn(at, ":");

		if (own == len && memcmp(at, place, len) == 0)
			return true;
		at += own;
		if (!*at)
			return false;
	}
}

/* Return: @variable, then the places of @old that it lacks; owned. */
static char *join_places(const char *old, const char *variable)
{
	char *all = xstrdup(variable);

	for (const char *at = strchr(old, '=') + 1; *at;) {
		size_t len = strcspn(at, ":");

		if (len > 0 && !has_place(all, at, len)) {
			char *longer =
				xasprintf("%s%s%.*s", all, all[strlen(all) - 1] == '=' ? "" : ":",
			                  (int)len, at);

			free(all);
			all = longer;
		}
		at += len + (at[len] ? 1 : 0);
	}
	return all;
}

/* Bounded lists (LIMIT_ENV_MAX): a linear search is enough. */
static void put_variable(char **env, const char *variable)
{
	char *value;

	while (*env && !same_name(*env, variable))
		env++;
	value = *env && is_joined(variable) ? join_places(*env, variable) : xstrdup(variable);
	free(*env);
	*env = value;
}

char **env_make(char *const *runner, char *const *caller, unsigned extras, char *const *secrets)
{
	size_t most = ARRAY_SIZE(base_env) + ARRAY_SIZE(proxy_env) + ARRAY_SIZE(tools_env) +
	              (secrets ? str_list_count(secrets) : 0) +
	              (runner ? str_list_count(runner) : 0) + (caller ? str_list_count(caller) : 0);
	char **env = xcalloc(most + 1, sizeof(*env));

	for (size_t i = 0; i < ARRAY_SIZE(base_env); i++)
		put_variable(env, base_env[i]);
	for (size_t i = 0; (extras & ENV_PROXY) && i < ARRAY_SIZE(proxy_env); i++)
		put_variable(env, proxy_env[i]);
	for (; secrets && *secrets; secrets++)
		put_variable(env, *secrets);
	for (size_t i = 0; (extras & ENV_TOOLS) && i < ARRAY_SIZE(tools_env); i++)
		put_variable(env, tools_env[i]);
	for (; runner && *runner; runner++)
		put_variable(env, *runner);
	for (; caller && *caller; caller++)
		put_variable(env, *caller);
	return env;
}
