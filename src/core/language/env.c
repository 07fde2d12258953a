/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/env.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/config/limits.h"

/* The program can write to no directory in PATH. */
static const char *const base_env[] = {
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"HOME=/workspace",
	"LANG=C.UTF-8",
	"TMPDIR=/tmp",
	"USER=sandbox",
};

/* Programs differ in which of these they read, and in which case. */
#define PROXY_PORT "3128"
#define PROXY      "http://127.0.0.1:" PROXY_PORT
#define NO_PROXY   "localhost,127.0.0.1,::1"
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

/* They make a loader, an interpreter or libc run or read something before the program. Our runners
 * start first: the caller must not choose what they are. */
/* clang-format off */
static const char *const denied[] = {
	/* loader and libc */
	"LD_*", "DYLD_*", "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES",
	"LOCALDOMAIN", "LOCPATH", "MALLOC_*", "NIS_PATH", "NLSPATH", "RESOLV_HOST_CONF",
	"RES_OPTIONS", "TZDIR", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES",
	/* shells */
	"BASH_ENV", "BASH_FUNC_*", "BASHOPTS", "SHELLOPTS", "ENV", "IFS", "PS4",
	"PROMPT_COMMAND", "CDPATH", "GLOBIGNORE", "ZDOTDIR",
	/* interpreters */
	"PYTHON*", "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "PERL5OPT",
	"PERL5LIB", "PERL5DB", "PERLLIB", "PERLIO_DEBUG", "RUBYOPT", "RUBYLIB", "LUA_INIT*",
	"LUA_PATH*", "LUA_CPATH*", "PHPRC", "PHP_INI_SCAN_DIR", "JAVA_TOOL_OPTIONS",
	"JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "DENO_*", "BUN_*", "R_PROFILE*",
	"R_ENVIRON*", "GOFLAGS",
	/* ours */
	"MILLIBOX_*",
};
/* clang-format on */

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
	for (size_t i = 0; i < ARRAY_SIZE(denied); i++)
		if (fnmatch(denied[i], name, 0) == 0)
			return -EPERM;
	return 0;
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

/* Bounded lists (LIMIT_ENV_MAX): a linear search is enough. */
static void put_variable(char **env, const char *variable)
{
	while (*env && !same_name(*env, variable))
		env++;
	free(*env);
	*env = xstrdup(variable);
}

char **env_make(char *const *runner, char *const *caller, bool proxied)
{
	size_t most = ARRAY_SIZE(base_env) + ARRAY_SIZE(proxy_env) +
	              (runner ? str_list_count(runner) : 0) + (caller ? str_list_count(caller) : 0);
	char **env = xcalloc(most + 1, sizeof(*env));

	for (size_t i = 0; i < ARRAY_SIZE(base_env); i++)
		put_variable(env, base_env[i]);
	for (size_t i = 0; proxied && i < ARRAY_SIZE(proxy_env); i++)
		put_variable(env, proxy_env[i]);
	for (; runner && *runner; runner++)
		put_variable(env, *runner);
	for (; caller && *caller; caller++)
		put_variable(env, *caller);
	return env;
}
