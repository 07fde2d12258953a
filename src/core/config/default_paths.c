/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/default_paths.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/install_paths.h"
#include "base/log.h"
#include "base/str.h"

#define ROOT_RUNTIME "/run/millibox"
#define ROOT_STATE   "/var/lib/millibox"
#define IN_PLACE_MAX 2

/* Ignore paths relative to the start directory. */
static bool is_usable(const char *dir)
{
	return dir && dir[0] == '/';
}

static char *runtime_dir(const struct default_paths_who *who)
{
	if (who->uid == 0)
		return xstrdup(ROOT_RUNTIME);
	if (is_usable(who->runtime))
		return xasprintf("%s/millibox", who->runtime);
	return xasprintf("/tmp/millibox-%u", (unsigned)who->uid);
}

static char *socket_path(const struct default_paths_who *who)
{
	cleanup_free char *dir = runtime_dir(who);

	return xasprintf("%s/millibox.sock", dir);
}

static char *state_dir(const struct default_paths_who *who)
{
	if (who->uid == 0)
		return xstrdup(ROOT_STATE);
	if (is_usable(who->state))
		return xasprintf("%s/millibox", who->state);
	if (is_usable(who->home))
		return xasprintf("%s/.local/state/millibox", who->home);
	/* Without a home, state lasts as long as the runtime directory. */
	return runtime_dir(who);
}

/* A program or folder that ships with the daemon. A build directory has the programs side by side
 * and is often inside the source tree, beside the runners. @probe must exist, to ignore an empty
 * folder of the same name. */
struct companion {
	const char *installed;
	const char *probe;
	const char *in_place[IN_PLACE_MAX]; /* NULL: end */
	bool optional;                      /* "" if missing */
};

static const struct companion engine = {
	MILLIBOX_LIBEXECDIR "/millibox-engine", "", {"millibox-engine"}};
static const struct companion agent = {
	MILLIBOX_LIBEXECDIR "/millibox-agent", "", {"millibox-agent"}};
static const struct companion zygote = {
	MILLIBOX_LIBEXECDIR "/millibox-zygote.so", "", {"millibox-zygote.so"}};
static const struct companion addon = {
	MILLIBOX_LIBEXECDIR "/millibox-addon.node", "", {"millibox-addon.node"}};
static const struct companion runners = {
	MILLIBOX_RUNNERSDIR, "/shell/manifest.yaml", {"runners", "../runners"}};
/* If missing, the built-in policies apply; a configured folder must exist. */
static const struct companion policies = {
	MILLIBOX_POLICIESDIR, "/default.yaml", {"policies", "../data/policies"}, true};

/* Reject files that other users own or anyone can write: a build directory may be in /tmp. */
static bool is_ours(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	return (st.st_uid == 0 || st.st_uid == geteuid()) && !(st.st_mode & S_IWOTH);
}

static bool is_there(const char *path, const char *probe)
{
	cleanup_free char *file = xasprintf("%s%s", path, probe);

	return is_ours(path) && is_ours(file) && access(file, R_OK) == 0;
}

static char *find_companion(const struct default_paths_who *who, const struct companion *c)
{
	/* An installed daemon ignores folders beside its own. */
	bool installed = !who->exe_dir || str_equal(who->exe_dir, MILLIBOX_BINDIR) ||
	                 str_equal(who->exe_dir, MILLIBOX_SBINDIR);

	for (size_t i = 0; !installed && i < IN_PLACE_MAX && c->in_place[i]; i++) {
		cleanup_free char *beside = xasprintf("%s/%s", who->exe_dir, c->in_place[i]);
		/* Resolve links: the path checked is the path used. */
		cleanup_free char *path = realpath(beside, NULL);

		if (path && is_there(path, c->probe))
			return TAKE_PTR(path);
		if (path && !is_ours(path))
			log_warn("%s is not used: its owner is neither this user nor root, or "
			         "anyone may change it; chown it, or install Millibox",
			         path);
	}
	return xstrdup(c->optional && !is_there(c->installed, c->probe) ? "" : c->installed);
}

static const struct place {
	const char *key;
	char *(*value)(const struct default_paths_who *who);
	const struct companion *companion; /* if @value is NULL */
	const char *hint;
} table[] = {
	{"socket", socket_path, NULL, "millibox.sock in the default runtime_dir"},
	{"state_dir", state_dir, NULL, ROOT_STATE ", or ~/.local/state/millibox"},
	{"runtime_dir", runtime_dir, NULL, ROOT_RUNTIME ", or $XDG_RUNTIME_DIR/millibox"},
	{"engine_path", NULL, &engine, "beside the daemon, or as installed"},
	{"agent_path", NULL, &agent, "beside the daemon, or as installed"},
	{"zygote_path", NULL, &zygote, "beside the daemon, or as installed"},
	{"addon_path", NULL, &addon, "beside the daemon, or as installed"},
	{"runners_dir", NULL, &runners, "beside the daemon, or as installed"},
	{"policy.dir", NULL, &policies, "beside the daemon, or as installed"},
};

char *default_paths_value(const struct default_paths_who *who, const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (str_equal(table[i].key, key))
			return table[i].value ? table[i].value(who)
			                      : find_companion(who, table[i].companion);
	return NULL;
}

const char *default_paths_hint(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (str_equal(table[i].key, key))
			return table[i].hint;
	return "";
}

char *default_paths_exe_dir(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (n <= 0 || (size_t)n >= sizeof(path) - 1)
		return NULL;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	return xstrdup(*path ? path : "/");
}
