/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/risky_path.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/attr.h"

/*
 * Patterns, in any letter case:
 *
 *   NAME       an entry of that name, anywhere
 *   DIR/NAME   an entry of that name in such a directory
 *   DIR/       everything below such a directory
 *
 * A file or link in place of such a directory counts, too: it could lead to another.
 */
/* clang-format off */
static const struct {
	const char *reason;
	const char *patterns[40];
} rows[] = {
	{"a hook manager would run it as you",
         {".githooks/", ".husky/", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml",
          "lefthook*.yml", "lefthook*.yaml", "lefthook*.toml", "lefthook*.json", ".lefthook*",
          ".overcommit.yml", ".lintstagedrc*", ".huskyrc*", ".simple-git-hooks*", ".commitlintrc*",
          ".hooks/", "prek.toml"}},
	{"git would run it as you",
         {".gitconfig", ".gitmodules", ".config/git/", ".git-credentials"}},
	{"hg would run it as you",
         {".hgrc", ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".hg/shared",
          ".hg/requires", ".hg/store/requires", ".hgsub"}},
	{"a version control program would run it as you",
         {".jj/", ".bzr/", ".sl/", ".svn/", ".pijul/config*", ".fslckout", "_darcs/prefs/",
          ".repo/"}},
	{"a shell would run it as you",
         {".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
          ".bash_completion", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
          ".kshrc", ".mkshrc", ".shrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc",
          ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".config/fish/", ".config/nushell/",
          ".config/powershell/", ".oh-my-zsh/", "*profile.ps1", ".screenrc", ".tmux.conf",
          ".config/tmux/", ".pam_environment"}},
	{"a shell would run it as you, on entering the directory",
         {".envrc", ".direnvrc", ".config/direnv/", ".autoenv*", ".env.leave", ".env.enter", ".in",
          ".out", ".ondirrc", ".shadowenv.d/", ".mise.toml", ".mise.*.toml", "mise.toml",
          "mise.*.toml", "mise/config.toml", ".mise/", ".config/mise*", ".rtx.toml", ".rvmrc",
          ".powrc", ".powenv", ".sdkmanrc", "flake.nix", "shell.nix", "default.nix", "devenv.nix",
          "devenv.yaml", "devbox.json", ".flox/", "hermit.hcl", ".lorri/"}},
	{"an editor would run it as you",
         {".vscode/", "*.code-workspace", ".vscodium/", ".theia/", ".idea/", "*.iml", "*.ipr",
          ".fleet/", ".zed/", ".helix/", ".settings/", ".classpath", ".factorypath", ".vimrc",
          "_vimrc", ".gvimrc", ".exrc", ".nexrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".vim/",
          ".config/nvim/", ".dir-locals.el", ".dir-locals-2.el", ".emacs", ".emacs.el",
          ".emacs.d/", ".spacemacs", ".config/emacs/", "*.sublime-project", "*.sublime-build",
          ".kakrc", ".kak/", ".nanorc", ".vs/", ".projections.json"}},
	{"an editor would run it as you",
         {".devcontainer/", ".devcontainer.json", "devcontainer.json", ".gitpod.yml", ".mcp.json",
          "mcp.json", ".cursor/", ".claude/", ".gemini/", ".codex/", ".continue/", ".windsurf/",
          ".roo/", ".kiro/", ".amazonq/", ".opencode/", "opencode.json", ".aider.conf.yml",
          ".neoconf.json", ".luarc.json", "pyrightconfig.json", ".ycm_extra_conf.py", ".clangd",
          ".ccls", ".vimspector.json", ".lsp/", "rust-analyzer.toml", ".rust-analyzer.toml"}},
	{"a debugger or an interactive shell would run it as you",
         {".gdbinit", ".gdbearlyinit", "*-gdb.py", "*-gdb.gdb", "*-gdb.scm", ".lldbinit",
          ".lldbinit-*", ".pdbrc", ".pdbrc.py", ".pythonrc", ".pythonrc.py", ".ipython/",
          ".jupyter/", ".irbrc", ".pryrc", ".Rprofile", ".Renviron", ".ghci", ".ocamlinit",
          ".iex.exs", ".sqliterc", ".psqlrc", ".my.cnf", ".perldb", ".octaverc", ".juliarc.jl",
          "startup.jl", ".dbxrc", ".scalarc"}},
	{"Python would run it as you",
         {"*.pth", "sitecustomize.py", "usercustomize.py", "sitecustomize/", "usercustomize/",
          "conftest.py", "setup.py", "setup.cfg", "pyproject.toml", "tox.ini", "pytest.ini",
          ".pytest.ini", "noxfile.py", "pyvenv.cfg", ".pydistutils.cfg", "pip.conf", ".pip/",
          ".config/pip/", "uv.toml", ".pylintrc", "pylintrc", "mypy.ini", ".mypy.ini", "tasks.py",
          "fabfile.py", "dodo.py", ".condarc", "hatch_build.py", "_distutils_hack/", "*.egg-link"}},
	{"npm or a tool of JavaScript would run it as you",
         {".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/", ".pnpmfile.*", "pnpmfile.*",
          "pnpm-workspace.yaml", ".pnp.*", "bunfig.toml", "binding.gyp", ".*rc.js", ".*rc.cjs",
          ".*rc.mjs", ".*rc.ts", "*.config.js", "*.config.cjs", "*.config.mjs", "*.config.ts",
          "*.config.cts", "*.config.mts", "*.conf.js", "*.conf.ts", "Gruntfile.*", "gulpfile.*",
          "Gulpfile.*", "Jakefile*", ".eslintrc*", ".babelrc*", ".swcrc", ".stylelintrc*",
          ".prettierrc*", ".mocharc*", "nx.json", "project.json", "turbo.json", "lerna.json"}},
	{"make or another build would run it as you",
         {"Makefile", "Makefile.*", "GNUmakefile", "GNUmakefile.*", "BSDmakefile", "*.mk", "*.mak",
          "*.make", "CMakeLists.txt", "*.cmake", "CMakePresets.json", "CMakeUserPresets.json",
          "configure", "configure.ac", "configure.in", "autogen.sh", "*.m4", "meson.build",
          "meson_options.txt", "meson.options", "build.ninja", "SConstruct", "SConscript",
          "wscript", "Justfile", ".justfile", "Taskfile*", "Tiltfile", "Earthfile", "Tupfile",
          "premake*.lua", "xmake.lua"}},
	{"make or another build would run it as you",
         {"BUILD", "BUILD.bazel", "WORKSPACE", "WORKSPACE.*", "MODULE.bazel", "*.bzl", ".bazelrc",
          "*.bazelrc", ".buckconfig*", "BUCK", "pants.toml", "build.gradle*", "settings.gradle*",
          "init.gradle*", "gradle.properties", "gradlew", "gradlew.bat", "gradle/", "pom.xml",
          ".mvn/", "mvnw", "mvnw.cmd", "build.xml", "ivy.xml", "build.sbt", "project/*.sbt",
          "project/*.scala", "project/build.properties", "build.sc", "build.mill", ".sbtopts",
          ".jvmopts", "deps.edn", "project.clj", "build.boot", ".lein-env", "shadow-cljs.edn"}},
	{"cargo, go, dotnet or another build would run it as you",
         {"build.rs", ".cargo/", "rust-toolchain", "rust-toolchain.toml", "Cargo.toml", "go.work",
          "Directory.*.props", "Directory.*.targets", "*.props", "*.targets", "*.csproj",
          "*.fsproj", "*.vbproj", "*.vcxproj", "*.sln", "*.rsp", "nuget.config", "global.json",
          "dotnet-tools.json", "Rakefile", "rakefile", "Gemfile", ".bundle/", "*.gemspec",
          "Vagrantfile", "Guardfile", "Capfile", "composer.json", "Makefile.PL", "Build.PL", "dune",
          "dune-project", "Setup.hs", "cabal.project*", "stack.yaml", "mix.exs"}},
	{"a build or a server would run it as you",
         {"rebar.config*", "Package.swift", "Podfile", "*.podspec", "*.xcscheme", "*.pbxproj",
          "*.xcconfig", "build.zig", "*.nimble", "config.nims", "shard.yml", "dub.json",
          "dub.sdl", "pubspec.yaml", "build.yaml", "elm.json", ".user.ini", ".htaccess", "php.ini",
          "docker-compose*", "compose*.y*ml", "Procfile*",
          "skaffold.yaml", ".terraformrc", "terragrunt.hcl", "ansible.cfg",
          "Jenkinsfile*"}},
	{"a build service would run it with your rights",
         {".github/", ".gitlab-ci*.yml", ".gitlab/", ".gitea/", ".forgejo/", ".circleci/",
          ".travis.yml", ".travis/", "azure-pipelines*.y*ml", ".azure-pipelines/", ".azuredevops/",
          "bitbucket-pipelines.yml", ".drone.yml", ".drone.star", ".woodpecker*", "appveyor.yml",
          ".appveyor.yml", ".buildkite/", ".teamcity/", "cloudbuild*.y*ml", ".cirrus.*",
          "buildspec*.y*ml", ".semaphore/", "wercker.yml", "codemagic.yaml", ".builds/",
          ".build.yml", ".zuul*", "zuul.d/", "netlify.toml", "vercel.json", ".readthedocs*",
          ".dagger/", "dagger.json", "renovate.json*", ".renovaterc*", ".releaserc*",
          ".goreleaser*",
          ".scrutinizer.yml"}},
	{"the desktop or a service manager would run it as you",
         {"*.desktop", ".config/autostart/", ".config/systemd/", ".local/share/systemd/",
          ".local/bin/", ".local/share/applications/", ".config/environment.d/", ".directory",
          "autorun.inf", "desktop.ini", "*.lnk", "*.service", "*.timer", "LaunchAgents/",
          "*.plist", ".config/i3/", ".config/sway/", ".config/hypr/", ".config/awesome/",
          ".xmonad/", ".i3/", ".fluxbox/", ".config/bspwm/", ".dmrc", "crontab", ".crontab"}},
	{"ssh, gpg or another program would run it as you",
         {".ssh/", ".gnupg/", ".mailcap", ".procmailrc", ".forward", ".muttrc", ".mutt/",
          ".config/mutt/", ".lessfilter", ".lesskey", ".config/mpv/", ".mpv/", ".config/yt-dlp/",
          ".curlrc", ".wgetrc", ".aws/", ".kube/", ".docker/", ".gradle/", ".m2/", ".ant/",
          ".sbt/", ".config/containers/", ".config/ranger/", ".config/lf/", ".vagrant.d/",
          ".terraform.d/", ".ansible.cfg", ".netrc", ".rpmmacros", ".quiltrc", ".devscripts",
          ".gbp.conf", ".pbuilderrc", ".sbuildrc"}},
};
/* clang-format on */

#define PATTERN_MAX 64

/* Parts that are not terminated. */
static bool name_matches(const char *pattern, size_t pattern_len, const char *name, size_t len)
{
	char p[PATTERN_MAX], n[NAME_MAX + 1];

	if ((*pattern != '*' && strncasecmp(pattern, name, 1) != 0) || pattern_len >= sizeof(p) ||
	    len >= sizeof(n))
		return false;
	memcpy(p, pattern, pattern_len);
	p[pattern_len] = '\0';
	memcpy(n, name, len);
	n[len] = '\0';
	return fnmatch(p, n, FNM_CASEFOLD) == 0;
}

/* The parts of @pattern against those of @path from its start. */
static bool matches_here(const char *pattern, const char *path, bool is_dir)
{
	for (;;) {
		size_t want = strcspn(pattern, "/"), has = strcspn(path, "/");

		if (!name_matches(pattern, want, path, has))
			return false;
		if (!pattern[want]) /* the entry itself */
			return !path[has] && !is_dir;
		if (!path[has]) /* something else in place of a directory */
			return !is_dir;
		pattern += want + 1;
		path += has + 1;
		if (!*pattern)
			return true;
	}
}

static bool matches(const char *pattern, const char *path, bool is_dir)
{
	while (!matches_here(pattern, path, is_dir)) {
		path += strcspn(path, "/");
		if (!*path++)
			return false;
	}
	return true;
}

static const char *match_rows(const char *path, bool is_dir)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t k = 0; k < ARRAY_SIZE(rows[i].patterns) && rows[i].patterns[k]; k++)
			if (matches(rows[i].patterns[k], path, is_dir))
				return rows[i].reason;
	return NULL;
}

const char *risky_path_reason(const struct risky_change *change)
{
	const char *reason = risky_git_reason(change);

	/* What is gone runs no more. */
	if (!reason && change->new_mode)
		reason = match_rows(change->path, S_ISDIR(change->new_mode));
	return reason || !change->new_mode ? reason : risky_npm_reason(change);
}
