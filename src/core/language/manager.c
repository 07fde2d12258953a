/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/manager.h"

#include <string.h>

#include "base/attr.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/runners.h"

#define NAME_MAX_BYTES 200
#define RUNNERS        "/opt/millibox/runners/"
#define SCRIPTS        RUNNERS "packages/"
#define BASH           "/bin/bash", "--noprofile", "--norc"
#define SESSION_DIR    ".local/share/millibox/" /* in the workspace of a session */
#define APT            MANAGER_PATH "/apt"
/* Of the architectures that Debian and we have. */
#define APT_LIBRARIES                                                                              \
	APT "/usr/lib/x86_64-linux-gnu:" APT "/lib/x86_64-linux-gnu:" APT                          \
	    "/usr/lib/aarch64-linux-gnu:" APT "/lib/aarch64-linux-gnu:" APT "/usr/lib"
#define ALNUM          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define PATH_WITH(dir) "PATH=" dir ":/usr/local/bin:/usr/bin:/bin"

static const struct manager managers[] = {
	{
		.name = "pip",
		.language = "python",
		.set = "pypi",
		.command = {"/usr/bin/python3", "-I", SCRIPTS "pip.py"},
		/* Programs that the runners do not start find them by this variable. */
		.env = {"PYTHONPATH=" MANAGER_PATH "/pip", PATH_WITH(MANAGER_PATH "/pip/bin"),
                        /* The runner's is Debian's. */
                        "MATPLOTLIBRC=" MANAGER_PATH "/pip/matplotlib/mpl-data/matplotlibrc"},
		.alone = "PYTHONPATH=" RUNNERS "python/layer",
		.registry = "https://pypi.org/simple",
		.tree = "layer/pip",
		.session_dir = ".local/lib/python%/site-packages",
		.letters = "._-[],=<>!~*+",
		.in_root = true,
		.url_offset = offsetof(struct config, packages_pip_url),
		.host_variable = "PIP_INDEX_URL",
		.host_files = {"~/.config/pip/pip.conf", "~/.pip/pip.conf", "/etc/pip.conf"},
		.host_key = "index-url",
	},
	{
		.name = "npm",
		.language = "javascript",
		.set = "npm",
		.command = {BASH, SCRIPTS "npm.sh"},
		.env = {"NODE_PATH=" MANAGER_PATH "/npm/node_modules",
                        PATH_WITH(MANAGER_PATH "/npm/node_modules/.bin")},
		.alone = "NODE_PATH=" RUNNERS "javascript/layer",
		.registry = "https://registry.npmjs.org/",
		.tree = "layer/npm/node_modules",
		.session_dir = "node_modules",
		.letters = "._-@/=^~<>*+",
		.url_offset = offsetof(struct config, packages_npm_url),
		.host_variable = "npm_config_registry",
		.host_files = {"~/.npmrc", "/etc/npmrc"},
		.host_key = "registry",
	},
	/* The runners of these languages look for their packages themselves: below MANAGER_PATH,
         * and where a session has them. */
	{
		.name = "cargo",
		.language = "rust",
		.set = "crates",
		.command = {BASH, SCRIPTS "cargo.sh"},
		.registry = "https://index.crates.io/",
		.tree = "layer/cargo",
		.session_dir = SESSION_DIR "cargo",
		.letters = "._-[],=<>^~*+@",
		.url_offset = offsetof(struct config, packages_cargo_url),
		.host_files = {"~/.cargo/config.toml", "~/.cargo/config"},
		.host_key = "registry",
		.host_prefix = "sparse+",
	},
	{
		.name = "go",
		.language = "go",
		.set = "golang",
		.command = {BASH, SCRIPTS "go.sh"},
		.registry = "https://proxy.golang.org",
		.tree = "layer/go",
		.session_dir = SESSION_DIR "go",
		.letters = "._-/~@=+",
		.url_offset = offsetof(struct config, packages_go_url),
		.host_variable = "GOPROXY",
		.host_files = {"~/.config/go/env"},
		.host_key = "GOPROXY",
		.host_end = ",|",
	},
	{
		.name = "maven",
		.language = "java",
		.set = "maven",
		.command = {BASH, SCRIPTS "maven.sh"},
		.registry = "https://repo.maven.apache.org/maven2/",
		.tree = "layer/maven",
		.session_dir = SESSION_DIR "maven",
		.letters = "._-:=@",
		.url_offset = offsetof(struct config, packages_maven_url),
	},
	{
		.name = "nuget",
		.language = "csharp",
		.set = "nuget",
		.command = {"/usr/bin/python3", "-I", SCRIPTS "nuget.py"},
		.env = {"MONO_PATH=" MANAGER_PATH "/nuget/lib"},
		.registry = "https://api.nuget.org/v3/index.json",
		.tree = "layer/nuget",
		.session_dir = SESSION_DIR "nuget",
		.letters = "._-=@+",
		.url_offset = offsetof(struct config, packages_nuget_url),
	},
	{
		.name = "apt",
		.language = "shell",
		.set = "debian",
		.command = {BASH, SCRIPTS "apt.sh"},
		.env = {PATH_WITH(APT "/usr/bin:" APT "/bin:" APT "/usr/sbin"),
                        "LD_LIBRARY_PATH=" APT_LIBRARIES, "LIBRARY_PATH=" APT_LIBRARIES,
                        "CPATH=" APT "/usr/include"},
		.registry = "http://deb.debian.org/debian",
		.tree = "layer/apt",
		.letters = "+-.=:~",
		.in_root = true,
		.url_offset = offsetof(struct config, packages_apt_url),
	},
};

const struct manager *manager_at(size_t index)
{
	return index < ARRAY_SIZE(managers) ? &managers[index] : NULL;
}

const struct manager *manager_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(managers); i++)
		if (str_equal(managers[i].name, name))
			return &managers[i];
	return NULL;
}

const struct manager *manager_of(const struct runner *r)
{
	return r && r->package_manager ? manager_find(r->package_manager) : NULL;
}

/* It becomes an argument of the manager: neither an option, nor a path or URL. */
bool manager_check(const struct manager *m, const char *package)
{
	size_t len = strlen(package);

	if (len == 0 || len > NAME_MAX_BYTES || (package[0] != '@' && !strchr(ALNUM, package[0])))
		return false;
	for (const char *c = package; *c; c++)
		if (!strchr(ALNUM, *c) && !strchr(m->letters, *c))
			return false;
	return !strstr(package, "..") && !strstr(package, "//");
}
