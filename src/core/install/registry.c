/* SPDX-License-Identifier: Apache-2.0 */
#include "core/install/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/install/internal.h"
#include "core/language/manager.h"

#define FILE_MAX_BYTES (64u * 1024)
#define URL_MAX_BYTES  500
#define SPACE          " \t\r"

int registry_rule(const char *url, char *ret_rule, size_t size)
{
	bool tls = str_has_prefix(url, "https://");
	const char *host = url + strlen(tls ? "https://" : "http://");
	size_t len, name;

	if ((!tls && !str_has_prefix(url, "http://")) || strlen(url) > URL_MAX_BYTES)
		return -EINVAL;
	len = strcspn(host, "/?#");
	name = strcspn(host, ":/?#");
	/* Credentials would be readable by every install script. */
	if (name == 0 || memchr(host, '@', len) ||
	    strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") !=
	            name)
		return -EINVAL;
	if (len > name)
		return str_format(ret_rule, size, "%.*s", (int)len, host);
	return str_format(ret_rule, size, "%.*s:%d", (int)len, host, tls ? 443 : 80);
}

bool registry_is_public(const struct manager *m, const char *rule)
{
	char built_in[URL_MAX_BYTES + 8];

	return registry_rule(m->registry, built_in, sizeof(built_in)) >= 0 &&
	       strcasecmp(built_in, rule) == 0;
}

/* "KEY = VALUE" of a line. Return: the value, owned; NULL: another line. */
static char *value_of(const char *line, size_t len, const char *key)
{
	size_t at = strspn(line, SPACE), end = len;

	if (len <= at + strlen(key) || strncmp(line + at, key, strlen(key)) != 0)
		return NULL;
	at += strlen(key);
	at += strspn(line + at, SPACE);
	if (at >= len || line[at] != '=')
		return NULL;
	at++;
	at += strspn(line + at, SPACE "\"'");
	while (end > at && strchr(SPACE "\"'", line[end - 1]))
		end--;
	return end > at ? xmemdup0(line + at, end - at) : NULL;
}

static char *read_setting(const char *path, const char *key)
{
	cleanup_buf struct buf text = BUF_INIT(FILE_MAX_BYTES);
	const char *home = getenv("HOME");
	cleanup_free char *whole =
		str_has_prefix(path, "~/") && home ? xasprintf("%s%s", home, path + 1) : NULL;
	char *found = NULL;

	if ((path[0] == '~' && !whole) || file_read_at(AT_FDCWD, whole ? whole : path, &text) < 0 ||
	    buf_add(&text, "\n", 2) < 0)
		return NULL;
	for (const char *line = text.data; *line && !found;) {
		size_t len = strcspn(line, "\n");

		found = value_of(line, len, key);
		line += len + (line[len] == '\n' ? 1 : 0);
	}
	return found;
}

static char *host_setting(const struct manager *m)
{
	const char *variable = m->host_variable ? getenv(m->host_variable) : NULL;
	const char *prefix = m->host_prefix ? m->host_prefix : "";
	cleanup_free char *found = variable && *variable ? xstrdup(variable) : NULL;

	for (size_t i = 0; !found && i < ARRAY_SIZE(m->host_files) && m->host_files[i]; i++)
		found = read_setting(m->host_files[i], m->host_key);
	if (!found || !str_has_prefix(found, prefix))
		return NULL;
	if (m->host_end)
		found[strcspn(found, m->host_end)] = '\0';
	return xstrdup(found + strlen(prefix));
}

static char *find_one(const struct config *config, const struct manager *m)
{
	const char *set = *(char *const *)((const char *)config + m->url_offset);
	cleanup_free char *host = set[0] ? NULL : host_setting(m);
	char rule[URL_MAX_BYTES + 8];

	if (set[0])
		return xstrdup(set);
	if (!host)
		return xstrdup(m->registry);
	if (registry_rule(host, rule, sizeof(rule)) >= 0)
		return TAKE_PTR(host);
	log_warn("the host's registry for %s is not a plain http(s) URL without a password, using "
	         "%s; packages.%s_url names another",
	         m->name, m->registry, m->name);
	return xstrdup(m->registry);
}

char **registries_find(const struct config *config)
{
	const struct manager *m;
	char **urls;
	size_t count = 0;

	while (manager_at(count))
		count++;
	urls = xcalloc(count + 1, sizeof(*urls));
	for (size_t i = 0; (m = manager_at(i)); i++)
		urls[i] = find_one(config, m);
	return urls;
}
