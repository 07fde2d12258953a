/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/config.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/config/default_paths.h"
#include "core/config/engines.h"
#include "core/config/servers.h"
#include "core/config/settings.h"
#include "core/config/yamldoc.h"

#define KEY_LEN   160 /* two YAML keys and a dot */
#define LIST_LEN  4096
#define WHERE_LEN 128
/* Users of this host that it takes to use up all connections, by default. */
#define LOCAL_PEERS 4

/* Defaults, file, environment and flags override each other in this order. Each source checks its
 * own values, so that the error names the place; rules about two settings are checked last. */

void config_free(struct config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < settings_count(); i++)
		setting_done(settings_at(i), c);
	servers_done(c);
	engines_done(c);
	free(c);
}

static int set_from(const struct setting *s, struct config *c, const char *text, const char *where,
                    struct error *err)
{
	char why[SETTING_WHY_LEN];

	if (setting_set(s, c, text, why) < 0)
		return error_set(err, ERR_CONFIG, 0, "%s: '%s' %s", where, s->key, why);
	c->given[s - settings_at(0)] = true;
	return 0;
}

bool config_is_given(const struct config *c, size_t offset)
{
	for (size_t i = 0; i < settings_count(); i++)
		if (settings_at(i)->offset == offset)
			return c->given[i];
	return false;
}

uint64_t config_local_connections(const struct config *c)
{
	uint64_t part = c->max_connections / LOCAL_PEERS;

	if (c->max_connections_per_local_peer > 0)
		return c->max_connections_per_local_peer;
	return part > c->max_connections_per_peer ? part : c->max_connections_per_peer;
}

static int unknown_key(const char *where, const char *key, struct error *err)
{
	const char *meant = settings_suggest(key);

	if (meant)
		return error_set(err, ERR_CONFIG, 0, "%s: unknown key '%s', did you mean '%s'?",
		                 where, key, meant);
	return error_set(err, ERR_CONFIG, 0, "%s: unknown key '%s'", where, key);
}

static int apply_defaults(struct config *c, struct error *err)
{
	cleanup_free char *exe_dir = default_paths_exe_dir();
	const struct default_paths_who who = {
		.uid = getuid(),
		.runtime = getenv("XDG_RUNTIME_DIR"),
		.state = getenv("XDG_STATE_HOME"),
		.home = getenv("HOME"),
		.exe_dir = exe_dir,
	};

	for (size_t i = 0; i < settings_count(); i++) {
		const struct setting *s = settings_at(i);
		cleanup_free char *place = s->fallback ? NULL : default_paths_value(&who, s->key);

		if (set_from(s, c, s->fallback ? s->fallback : place, "default", err) < 0)
			return -1;
	}
	memset(c->given, 0, sizeof(c->given));
	return 0;
}

static void at_line(char ret_where[WHERE_LEN], const char *file, unsigned line)
{
	/* The path may be too long. */
	if (str_format(ret_where, WHERE_LEN, "%s:%u", file, line) < 0)
		(void)snprintf(ret_where, WHERE_LEN, "line %u", line);
}

/* set_from takes lists as comma-separated text. */
static int join_list(const struct yamldoc_node *list, const char *where, struct buf *ret_text,
                     struct error *err)
{
	for (const struct yamldoc_node *n = list->first; n; n = n->next) {
		if (n->kind != YAMLDOC_SCALAR || !*n->value || strchr(n->value, ','))
			return error_set(err, ERR_CONFIG, 0,
			                 "%s: '%s' must be a list of plain names", where,
			                 list->key);
		if ((n != list->first && buf_add(ret_text, ",", 1) < 0) ||
		    buf_add_str(ret_text, n->value) < 0)
			return error_set(err, ERR_CONFIG, 0, "%s: '%s' is too long", where,
			                 list->key);
	}
	return 0;
}

static int apply_node(struct config *c, const struct setting *s, const struct yamldoc_node *node,
                      const char *where, struct error *err)
{
	cleanup_buf struct buf text = BUF_INIT(LIST_LEN);

	if (str_equal(s->key, "engines") && node->kind == YAMLDOC_MAPPING) {
		if (engines_join(node, where, &text, err) < 0)
			return -1;
		return set_from(s, c, text.data ? text.data : "", where, err);
	}
	if (s->type == SETTING_LIST && node->kind == YAMLDOC_LIST) {
		if (join_list(node, where, &text, err) < 0)
			return -1;
		return set_from(s, c, text.data ? text.data : "", where, err);
	}
	if (node->kind != YAMLDOC_SCALAR || s->type == SETTING_LIST)
		return error_set(err, ERR_CONFIG, 0, "%s: '%s' must be %s, not %s", where, s->key,
		                 s->type == SETTING_LIST ? "a list" : "a value",
		                 yamldoc_kind_name(node->kind));
	/* "key:" without a value is probably a mistake. */
	if (!*node->value && !node->quoted)
		return error_set(err, ERR_CONFIG, 0, "%s: '%s' has no value", where, s->key);
	return set_from(s, c, node->value, where, err);
}

static int apply_group(struct config *c, const struct yamldoc_node *group, const char *file,
                       struct error *err)
{
	char where[WHERE_LEN], key[KEY_LEN];

	at_line(where, file, group->line);
	if (group->kind == YAMLDOC_SCALAR && !*group->value && !group->quoted)
		return 0;
	if (group->kind != YAMLDOC_MAPPING)
		return error_set(err, ERR_CONFIG, 0, "%s: '%s' must be a mapping, not %s", where,
		                 group->key, yamldoc_kind_name(group->kind));
	for (const struct yamldoc_node *n = group->first; n; n = n->next) {
		const struct setting *s;

		at_line(where, file, n->line);
		if (str_format(key, sizeof(key), "%s.%s", group->key, n->key) < 0)
			return error_set(err, ERR_CONFIG, 0, "%s: the key is too long", where);
		s = settings_find(key);
		if (str_equal(key, "gateway.servers")) {
			if (servers_read(c, n, file, err) < 0)
				return -1;
			continue;
		}
		if (!s)
			return unknown_key(where, key, err);
		if (apply_node(c, s, n, where, err) < 0)
			return -1;
	}
	return 0;
}

static int apply_tree(struct config *c, const struct yamldoc_node *root, const char *file,
                      struct error *err)
{
	char where[WHERE_LEN];

	for (const struct yamldoc_node *n = root->first; n; n = n->next) {
		const struct setting *s = settings_find(n->key);
		int r;

		at_line(where, file, n->line);
		if (s)
			r = apply_node(c, s, n, where, err);
		else if (settings_has_group(n->key))
			r = apply_group(c, n, file, err);
		else
			r = unknown_key(where, n->key, err);
		if (r < 0)
			return -1;
	}
	return 0;
}

/* Reject misspelled variables (MILLIBOX_LIMITS_TIMEOUU). Names outside our groups may belong to
 * other programs. */
static int check_variable(const char *variable, struct error *err)
{
	cleanup_free char *name = xstrndup(variable, strcspn(variable, "="));
	char key[SETTING_ENV_LEN];
	char *group_end;

	if (!str_has_prefix(name, SETTING_ENV_PREFIX) || settings_find_env(name) ||
	    str_copy(key, sizeof(key), name + strlen(SETTING_ENV_PREFIX)) < 0)
		return 0;
	for (char *c = key; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	group_end = strchr(key, '_');
	if (!group_end)
		return 0;
	*group_end = '\0';
	if (!settings_has_group(key))
		return 0;
	*group_end = '.';
	return unknown_key(name, key, err);
}

static int apply_environment(struct config *c, struct error *err)
{
	char name[SETTING_ENV_LEN];

	for (char **variable = environ; *variable; variable++)
		if (check_variable(*variable, err) < 0)
			return -1;
	for (size_t i = 0; i < settings_count(); i++) {
		const char *value;

		setting_env(settings_at(i), name);
		value = getenv(name);
		if (value && set_from(settings_at(i), c, value, name, err) < 0)
			return -1;
	}
	return 0;
}

static int apply_overrides(struct config *c, const struct config_override *overrides, size_t count,
                           struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct setting *s = settings_find(overrides[i].key);

		if (!s)
			return unknown_key("command line", overrides[i].key, err);
		if (set_from(s, c, overrides[i].value, "command line", err) < 0)
			return -1;
	}
	return 0;
}

#define PAIR(small, large)                                                                         \
	{                                                                                          \
		offsetof(struct config, small), offsetof(struct config, large)                     \
	}
static const struct {
	size_t small, large;
} pairs[] = {
	PAIR(timeout_us, timeout_max_us),
	PAIR(background_us, background_max_us),
	PAIR(memory_bytes, memory_max_bytes),
	PAIR(disk_bytes, disk_max_bytes),
	PAIR(cpu_millicores, cpu_max_millicores),
	PAIR(processes, processes_max),
	PAIR(output_bytes, output_max_bytes),
	PAIR(max_code_bytes, max_body_bytes),
	PAIR(max_connections_per_peer, max_connections),
	PAIR(max_connections_per_local_peer, max_connections),
	PAIR(session_idle_us, session_lifetime_us),
	PAIR(output_max_bytes, max_answers_bytes),
};

static const char *key_at(size_t offset)
{
	for (size_t i = 0; i < settings_count(); i++)
		if (settings_at(i)->offset == offset)
			return settings_at(i)->key;
	return "?";
}

static uint64_t number_at(const struct config *c, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)c + offset, sizeof(value));
	return value;
}

static int check_whole(const struct config *c, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		uint64_t large = number_at(c, pairs[i].large);

		/* 0 is no number: all cores, or as long as the session. */
		if (large != 0 && number_at(c, pairs[i].small) > large)
			return error_set(err, ERR_CONFIG, 0, "'%s' is above '%s'",
			                 key_at(pairs[i].small), key_at(pairs[i].large));
	}
	if (!*c->listen && !*c->socket)
		return error_set(err, ERR_CONFIG, 0,
		                 "both 'listen' and 'socket' are empty: no client could connect");
	return 0;
}

struct config *config_parse(const char *data, size_t len, const char *name,
                            const struct config_override *overrides, size_t overrides_count,
                            struct error *err)
{
	attr_cleanup(config_freep) struct config *c = NEW(struct config);
	attr_cleanup(yamldoc_freep) struct yamldoc_node *root = NULL;

	if (data) {
		root = yamldoc_parse(data, len, name, err);
		if (!root)
			return NULL;
	}
	if (apply_defaults(c, err) < 0 || (root && apply_tree(c, root, name, err) < 0) ||
	    apply_environment(c, err) < 0 ||
	    apply_overrides(c, overrides, overrides_count, err) < 0 || check_whole(c, err) < 0)
		return NULL;
	servers_settle(c);
	if (engines_settle(c, err) < 0)
		return NULL;
	return TAKE_PTR(c);
}

struct config *config_load(const char *path, const struct config_override *overrides,
                           size_t overrides_count, struct error *err)
{
	cleanup_buf struct buf text = BUF_INIT(YAMLDOC_BYTES_MAX);

	if (!path)
		return config_parse(NULL, 0, "", overrides, overrides_count, err);
	if (yamldoc_read(path, &text, err) < 0)
		return NULL;
	return config_parse(text.data ? text.data : "", text.len, path, overrides, overrides_count,
	                    err);
}

void config_dump(const struct config *c, FILE *out)
{
	const char *group = "";

	for (size_t i = 0; i < settings_count(); i++) {
		const struct setting *s = settings_at(i);
		const char *dot = strchr(s->key, '.');
		size_t len = dot ? (size_t)(dot - s->key) : 0;
		const char *indent = len ? "  " : "";

		if (len && strncmp(s->key, group, len + 1) != 0)
			(void)fprintf(out, "\n%.*s:\n", (int)len, s->key);
		group = s->key;
		(void)fprintf(out, "%s# %s\n%s%s: ", indent, s->help, indent,
		              s->key + len + (len > 0));
		setting_print(s, c, out);
		(void)fputc('\n', out);
	}
}

void config_dump_json(const struct config *c, FILE *out)
{
	const char *group = "";
	size_t open = 0; /* length of the section's name; 0: none is open */

	(void)fputs("{", out);
	for (size_t i = 0; i < settings_count(); i++) {
		const struct setting *s = settings_at(i);
		const char *dot = strchr(s->key, '.');
		size_t len = dot ? (size_t)(dot - s->key) : 0;
		bool is_new = open && strncmp(s->key, group, open + 1) != 0;

		if (is_new)
			(void)fputs("}", out);
		(void)fputs(i > 0 ? ", " : "", out);
		if (len && (!open || is_new))
			(void)fprintf(out, "\"%.*s\": {", (int)len, s->key);
		group = s->key;
		open = len;
		(void)fprintf(out, "\"%s\": ", s->key + len + (len > 0));
		setting_print_json(s, c, out);
	}
	(void)fputs(open ? "}}\n" : "}\n", out);
}

void config_help(FILE *out)
{
	char env[SETTING_ENV_LEN];

	for (size_t i = 0; i < settings_count(); i++) {
		const struct setting *s = settings_at(i);
		const char *fallback = s->fallback ? s->fallback : default_paths_hint(s->key);

		setting_env(s, env);
		(void)fprintf(out, "%s (%s, %s): %s.\n", s->key, *fallback ? fallback : "none", env,
		              s->help);
	}
}
