/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/risky_path.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/attr.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/tree_entry.h"

/*
 * Theory of operation. git takes any directory with a HEAD for a repository, and runs what the
 * settings of a repository name. Several runs, each of them applied, can make one piece by piece,
 * of entries of any type. So a directory counts if its parts are there before the change or after
 * it: no run may add a setting where there is a HEAD, or a HEAD where there are settings.
 */

#define RUN_BY_GIT "git would run it as you"
#define CONFIG_MAX (256 * 1024)

/* What git runs, reads settings or commands from, or finds such places by. */
static const char *const settings[] = {
	"branches", "commondir",    "config",       "config.worktree", "gitdir",    "hooks",
	"modules",  "rebase-apply", "rebase-merge", "remotes",         "sequencer", "worktrees",
};

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

static bool is_setting(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (is_word(name, len, settings[i]))
			return true;
	return false;
}

/* The first @len bytes of the path name a directory. */
static bool has_entry(const struct risky_change *c, size_t len, const char *name)
{
	cleanup_free char *path =
		xasprintf("%.*s%s%s", (int)len, c->path, len > 0 ? "/" : "", name);

	return tree_entry_mode(c->before, path) != 0 || tree_entry_mode(c->after, path) != 0;
}

static bool has_settings(const struct risky_change *c, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (has_entry(c, len, settings[i]))
			return true;
	return false;
}

static bool is_repository(const struct risky_change *c, size_t len)
{
	const char *name = c->path + len;

	while (name > c->path && name[-1] != '/')
		name--;
	return is_word(name, (size_t)(c->path + len - name), ".git") || has_entry(c, len, "HEAD");
}

/* One name of the path, at @at, in a directory that its first @parent bytes name. */
static bool is_risky_name(const struct risky_change *c, const char *at, size_t len, size_t parent)
{
	bool is_last = !at[len];

	if (is_setting(at, len))
		return is_repository(c, parent);
	/* A file or link .git leads to a repository that is elsewhere. */
	if (is_word(at, len, ".git"))
		return is_last && c->new_mode && !S_ISDIR(c->new_mode);
	/* That of a repository changes with its branch. */
	return is_word(at, len, "HEAD") && is_last && c->new_mode && !S_ISREG(c->old_mode) &&
	       has_settings(c, parent);
}

/* Settings of a repository. */

static char *read_config(int root, const char *dir, size_t len)
{
	cleanup_free char *path = xasprintf("%.*s%s.git/config", (int)len, dir, len > 0 ? "/" : "");
	cleanup_close int fd = fd_open_beneath(root, path, O_RDONLY | O_NONBLOCK, 0);
	char *text = fd < 0 ? NULL : xcalloc(1, CONFIG_MAX + 1);

	if (text && fd_read_all(fd, text, CONFIG_MAX) < 0)
		text[0] = '\0';
	return text;
}

/* Without what may surround a path of this tree in a setting: quotes, "./", "../" of the
 * repository's own directory. */
static const char *skip_ahead(const char *value)
{
	while (*value == '"' || *value == ' ' || *value == '\t')
		value++;
	while (str_has_prefix(value, "./") || str_has_prefix(value, "../"))
		value += strcspn(value, "/") + 1;
	return value;
}

/* Whether @value leads to @path, which is below the repository's directory, or to a directory that
 * it is in. */
static bool leads_to(const char *value, const char *path)
{
	size_t len;

	value = skip_ahead(value);
	len = strcspn(value, "\" \t\r\n;#");
	/* A whole path of the host: its end is the one of this tree. */
	if (len > 0 && (value[0] == '/' || value[0] == '~')) {
		for (size_t at = len; at-- > 0;)
			if (value[at] == '/' && at + 1 < len &&
			    strncmp(path, value + at + 1, len - at - 1) == 0 &&
			    (path[len - at - 1] == '/' || !path[len - at - 1]))
				return true;
		return false;
	}
	while (len > 0 && value[len - 1] == '/')
		len--;
	return len > 0 && strncmp(path, value, len) == 0 && (path[len] == '/' || !path[len]);
}

/* Whether @line, of a config, has @path as a word. */
static bool names_path(const char *line, const char *path)
{
	size_t len = strlen(path);

	for (const char *at = strstr(line, path); at; at = strstr(at + 1, path))
		if (strchr("/ \t\"'=!", at > line ? at[-1] : ' ') &&
		    strchr(" \t\"'\r;#&|)", at[len]))
			return true;
	return false;
}

/* Of remotes and branches, and who the user is: they name no program. */
static bool is_harmless(const char *line)
{
	static const char *const keys[] = {"url",   "pushurl", "fetch", "push",
	                                   "merge", "remote",  "name",  "email"};
	size_t len;

	line += strspn(line, " \t");
	len = strcspn(line, " \t=");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (is_word(line, len, keys[i]))
			return true;
	return false;
}

/* A setting "KEY = VALUE", also behind its "[section]". */
static bool is_risky_line(const char *line, const char *path)
{
	const char *equals = strchr(line, '=');

	if (!equals || is_harmless(line))
		return false;
	/* core.hooksPath, include.path. */
	return (strcasestr(line, "path") && leads_to(equals + 1, path)) || names_path(equals, path);
}

static bool is_named_by(char *config, const char *path)
{
	char *rest = config;

	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
		if (is_risky_line(line, path))
			return true;
	return false;
}

/* Hooks may be anywhere; so may programs that other settings name. */
static bool is_named(const struct risky_change *c)
{
	size_t len = 0;

	for (;;) {
		cleanup_free char *config = read_config(c->before, c->path, len);

		if (config && is_named_by(config, c->path + len + (len > 0)))
			return true;
		len += (len > 0) + strcspn(c->path + len + (len > 0), "/");
		if (!c->path[len])
			return false;
	}
}

const char *risky_git_reason(const struct risky_change *change)
{
	const char *at = change->path;

	while (*at) {
		size_t len = strcspn(at, "/");
		size_t parent = at > change->path ? (size_t)(at - change->path) - 1 : 0;

		if (is_risky_name(change, at, len, parent))
			return RUN_BY_GIT;
		at += len + (at[len] == '/');
	}
	return change->new_mode && !S_ISDIR(change->new_mode) && is_named(change) ? RUN_BY_GIT
	                                                                          : NULL;
}
