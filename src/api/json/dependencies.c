/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/dependencies.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/template/packages.h"
#include <ctype.h>
#include <string.h>

#define KEPT_MAX  500
#define COUNT_MAX 50
#define LETTERS   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS    "0123456789"
#define LOCATION  "/usr/lib/python3/dist-packages"

/* "pandas2.3.3": a forgotten "==". */
static bool is_glued(const char *name)
{
	size_t letters = strspn(name, LETTERS "_-");
	const char *rest = name + letters;

	return letters > 0 && strchr(rest, '.') && isdigit((unsigned char)*rest) &&
	       strspn(rest, DIGITS ".") == strlen(rest);
}

static int check_name(const char *path, const json_t *value, struct error *err)
{
	const char *name = json_string_value(value);
	size_t len = json_string_length(value);

	if (!name || len == 0 || len > PACKAGE_NAME_MAX ||
	    strspn(name, LETTERS DIGITS "._-") != len || strstr(name, ".."))
		return error_field(err, path,
		                   "must be the name of a package: letters, digits, '.', '_', '-'");
	if (is_glued(name))
		return error_field(err, path,
		                   "must not include the version: use the field version");
	return 0;
}

static int check_version(const char *path, const json_t *value, struct error *err)
{
	const char *version = json_string_value(value);
	size_t len = json_string_length(value);

	if (!value || json_is_null(value))
		return 0;
	if (!version || len > PACKAGE_VERSION_MAX ||
	    strspn(version, LETTERS DIGITS ".*+!<>=~, ") != len || strstr(version, ".."))
		return error_field(err, path, "must be a version like \"1.2\" or \">=1.2,<2\"");
	return 0;
}

static int check_item(const char *path, const json_t *item, struct error *err)
{
	json_t *name = json_object_get(item, "name"), *version = json_object_get(item, "version");
	char at[64];

	if (!json_is_object(item) ||
	    json_object_size(item) != (size_t)(name != NULL) + (version != NULL))
		return error_field(err, path, "must be {\"name\": ..., \"version\": ...}");
	(void)snprintf(at, sizeof(at), "%.40s.name", path);
	if (check_name(at, name, err) < 0)
		return -1;
	(void)snprintf(at, sizeof(at), "%.40s.version", path);
	return check_version(at, version, err);
}

/* The last one wins. */
static void put_item(json_t *list, const json_t *item)
{
	cleanup_free char *name = xstrdup(json_string_value(json_object_get(item, "name")));
	const char *version = json_string_value(json_object_get(item, "version"));
	json_t *made = json_object();
	size_t i = 0;

	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	while (i < json_array_size(list) &&
	       !str_equal(json_string_value(json_object_get(json_array_get(list, i), "name")),
	                  name))
		i++;
	json_set(made, "name", json_string(name));
	json_set(made, "version", version ? json_string(version) : json_null());
	if (i < json_array_size(list))
		(void)!json_array_set_new(list, i, made);
	else
		json_append(list, made);
}

json_t *dependencies_read(const char *path, const json_t *list, struct error *err)
{
	cleanup_json json_t *made = json_array();

	if (!json_is_array(list) || json_array_size(list) > COUNT_MAX) {
		(void)error_field(err, path, "must be a list of at most %d packages", COUNT_MAX);
		return NULL;
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		char at[64];

		(void)snprintf(at, sizeof(at), "%.40s[%zu]", path, i);
		if (check_item(at, json_array_get(list, i), err) < 0)
			return NULL;
		put_item(made, json_array_get(list, i));
	}
	return TAKE_PTR(made);
}

static json_t *view_installed(const char *name, const char *version, const char *now)
{
	json_t *j = json_object();

	json_set(j, "name", json_string(name));
	json_set(j, "version", json_string(version));
	json_set(j, "install_location", json_string(LOCATION));
	json_set(j, "install_time", json_string(now));
	json_set(j, "is_from_template", json_true());
	return j;
}

/* Return: whether it is installed; *err names the first that is not. */
static bool resolve_package(const struct packages *packages, const json_t *item, size_t index,
                            const char **ret_version, struct error *err)
{
	const char *name = json_string_value(json_object_get(item, "name"));
	const char *wanted = json_string_value(json_object_get(item, "version"));
	char at[48];

	*ret_version = packages_find(packages, name);
	if (*ret_version && package_version_fits(*ret_version, wanted ? wanted : ""))
		return true;
	if (error_is_set(err))
		return false;
	(void)snprintf(at, sizeof(at), "dependencies[%zu]", index);
	(void)error_field(err, at,
	                  "'%s%s%s' is not in the box%s%s, and the operator's setting "
	                  "packages.managers lacks pip: use a template that has it, or have "
	                  "pip added to the setting",
	                  name, wanted && !strchr("=<>!~", wanted[0]) ? "==" : "",
	                  wanted ? wanted : "", *ret_version ? ", which has " : "",
	                  *ret_version ? *ret_version : "");
	return false;
}

json_t *dependencies_resolve(struct packages *packages, const json_t *wanted, struct error *err)
{
	json_t *j = json_object(), *installed = json_array();
	char now[40];

	clock_format_utc(clock_real_ms(), now, sizeof(now));
	packages_refresh(packages);
	for (size_t i = 0; i < json_array_size(wanted); i++) {
		const json_t *item = json_array_get(wanted, i);
		const char *name = json_string_value(json_object_get(item, "name"));
		const char *version;

		if (resolve_package(packages, item, i, &version, err))
			json_append(installed, view_installed(name, version, now));
	}
	json_set(j, "requested_dependencies", json_incref((json_t *)(uintptr_t)wanted));
	json_set(j, "installed_dependencies", installed);
	json_set(j, "dependency_install_status",
	         json_string(error_is_set(err) ? "failed" : "completed"));
	json_set(j, "dependency_install_error",
	         error_is_set(err) ? json_string(err->msg) : json_null());
	json_set(j, "dependency_install_started_at", json_string(now));
	json_set(j, "dependency_install_completed_at", json_string(now));
	return j;
}

json_t *dependencies_of(char *const *packages)
{
	json_t *list = json_array();

	for (; packages && *packages; packages++) {
		size_t len = strcspn(*packages, "=<>!~@[ ");
		json_t *item = json_object();

		len = len ? len : strlen(*packages); /* "@scope/name" */
		json_set(item, "name", json_stringn(*packages, len));
		json_set(item, "version",
		         (*packages)[len] ? json_string(*packages + len) : json_null());
		json_append(list, item);
	}
	return list;
}

char **dependencies_list(const json_t *wanted)
{
	char **list = xcalloc(json_array_size(wanted) + 1, sizeof(*list));

	for (size_t i = 0; i < json_array_size(wanted); i++) {
		const json_t *item = json_array_get(wanted, i);
		const char *name = json_string_value(json_object_get(item, "name"));
		const char *version = json_string_value(json_object_get(item, "version"));
		char *at;

		list[i] = xasprintf("%s%s%s", name,
		                    version && *version && !strchr("=<>!~", version[0]) ? "==" : "",
		                    version ? version : "");
		/* Spaces may surround operators. */
		for (char *c = at = list[i];; c++) {
			if (*c != ' ')
				*at++ = *c;
			if (!*c)
				break;
		}
	}
	return list;
}

/* Of "NAME==VERSION --hash=..." in a lock. Return: owned; NULL: not there. */
static char *version_in(const char *lock, const char *name)
{
	char wanted[PACKAGE_NAME_MAX + 1], found[PACKAGE_NAME_MAX + 1];

	if (package_normalise(name, wanted) < 0)
		return NULL;
	for (const char *line = lock; *line;) {
		size_t len = strcspn(line, "\n");
		const char *equals = memmem(line, len, "==", 2);
		cleanup_free char *own = equals ? xmemdup0(line, (size_t)(equals - line)) : NULL;

		if (own && package_normalise(own, found) == 0 && str_equal(found, wanted))
			return xmemdup0(equals + 2, strcspn(equals + 2, " \n"));
		line += len + (line[len] == '\n');
	}
	return NULL;
}

json_t *dependencies_installed(const json_t *wanted, const char *lock, const char *folder)
{
	json_t *j = json_object(), *installed = json_array();
	char now[40];

	clock_format_utc(clock_real_ms(), now, sizeof(now));
	for (size_t i = 0; i < json_array_size(wanted); i++) {
		const char *name =
			json_string_value(json_object_get(json_array_get(wanted, i), "name"));
		cleanup_free char *version = version_in(lock, name);
		json_t *item = json_object();

		json_set(item, "name", json_string(name));
		json_set(item, "version", version ? json_string(version) : json_null());
		json_set(item, "install_location",
		         json_sprintf("%s%s", folder[0] == '/' ? "" : "/workspace/", folder));
		json_set(item, "install_time", json_string(now));
		json_set(item, "is_from_template", json_false());
		json_append(installed, item);
	}
	json_set(j, "requested_dependencies", json_incref((json_t *)(uintptr_t)wanted));
	json_set(j, "installed_dependencies", installed);
	json_set(j, "dependency_install_status", json_string("completed"));
	json_set(j, "dependency_install_error", json_null());
	json_set(j, "dependency_install_started_at", json_string(now));
	json_set(j, "dependency_install_completed_at", json_string(now));
	return j;
}

static bool has_name(const json_t *list, const char *name)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (str_equal(json_string_value(json_object_get(json_array_get(list, i), "name")),
		              name))
			return true;
	return false;
}

static json_t *joined(const json_t *before, const json_t *now)
{
	json_t *all = json_array();

	for (size_t i = 0; i < json_array_size(before); i++) {
		json_t *item = json_array_get(before, i);
		const char *name = json_string_value(json_object_get(item, "name"));

		if (name && !has_name(now, name))
			json_append(all, json_incref(item));
	}
	(void)!json_array_extend(all, (json_t *)(uintptr_t)now);
	while (json_array_size(all) > KEPT_MAX)
		(void)!json_array_remove(all, 0);
	return all;
}

char *dependencies_add(const char *before, json_t *now)
{
	static const char *const lists[] = {"requested_dependencies", "installed_dependencies"};
	cleanup_json json_t *old = before ? json_loads(before, 0, NULL) : NULL;
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		json_set(now, lists[i],
		         joined(json_object_get(old, lists[i]), json_object_get(now, lists[i])));
	return json_write(now, &len);
}

bool dependencies_have(const char *text, const char *package)
{
	cleanup_json json_t *j = text ? json_loads(text, 0, NULL) : NULL;
	char *const one[] = {(char *)(uintptr_t)package, NULL};
	cleanup_json json_t *wanted = dependencies_of(one);
	const json_t *all = json_object_get(j, "requested_dependencies");

	if (!str_equal(json_string_value(json_object_get(j, "dependency_install_status"))
	                       ? json_string_value(json_object_get(j, "dependency_install_status"))
	                       : "",
	               "completed"))
		return false;
	for (size_t i = 0; i < json_array_size(all); i++)
		if (json_equal(json_array_get(all, i), json_array_get(wanted, 0)))
			return true;
	return false;
}

json_t *dependencies_failed(const json_t *wanted, const char *why)
{
	json_t *j = dependencies_installed(wanted, "", "");

	json_set(j, "installed_dependencies", json_array());
	json_set(j, "dependency_install_status", json_string("failed"));
	json_set(j, "dependency_install_error", json_text(why, strlen(why)));
	return j;
}
