/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/policies.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/size.h"
#include "base/str.h"
#include "base/suggest.h"
#include "core/config/yamldoc.h"
#include "core/policy/policy.h"
#include "egress/address.h"
#include "egress/rules.h"
#include "wire/layer.h"

/* Each row of the table is one key. The file's tree is walked in order: a node whose path has a row
 * is read by it, one whose path is the prefix of a row is entered, any other is rejected. */

#define HOUR     (3600 * USEC_PER_SEC)
#define DAY      (24 * HOUR)
#define PATH_LEN 200 /* three YAML keys and two dots */
#define TEXT_MAX 1000
#define ITEM_MAX 255
#define WHY_LEN  160

enum key_type {
	KEY_UINT,
	KEY_SIZE,
	KEY_DURATION,
	KEY_CPU,
	KEY_WORD,
	KEY_LIST,
	KEY_TYPE_COUNT
};

struct policy_key {
	const char *path;
	enum key_type type;
	size_t offset;                     /* in struct policy */
	uint64_t min, max;                 /* numbers */
	const char *const *words;          /* KEY_WORD; NULL-terminated */
	const char *letters;               /* of KEY_LIST items */
	bool (*is_item)(const char *text); /* if @letters is NULL */
	const char *help;
};

static const char *const exceed_words[] = {
	[POLICY_EXCEED_CLAMP] = "clamp", [POLICY_EXCEED_REFUSE] = "refuse", NULL};
static const char *const overflow_words[] = {
	[POLICY_OVERFLOW_TRUNCATE] = "truncate", [POLICY_OVERFLOW_KILL] = "kill", NULL};
static const char *const share_words[] = {
	[POLICY_SHARE_TENANT] = "tenant", [POLICY_SHARE_ALL] = "all", NULL};
static const char *const min_words[] = {[POLICY_MIN_NONE] = "none",
                                        [POLICY_MIN_STANDARD] = "standard",
                                        [POLICY_MIN_FULL] = "full",
                                        NULL};
static const char *const grade_words[] = {"namespace", "gvisor", "vm", NULL};
static_assert(ARRAY_SIZE(grade_words) == BOX_GRADE_COUNT + 1, "every grade has a word");
static const char *const network_words[] = {"none", "allowlist", "bridge", "host", NULL};

static const char *const flag_words[] = {"false", "true", NULL};

static bool is_made_of(const char *text, const char *letters)
{
	size_t len = strlen(text);

	return len > 0 && len <= ITEM_MAX && strspn(text, letters) == len;
}

#define LOWER  "abcdefghijklmnopqrstuvwxyz0123456789"
#define LETTER LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* '*' matches any part. */
#define NAME_LETTERS     LETTER "._+#-*"
#define VARIABLE_LETTERS LETTER "_*"
#define TOOL_LETTERS     LETTER "._/-*"

/* "/from:/to" or "/from:/to:rw" */
static bool is_mount(const char *text)
{
	const char *to = strchr(text, ':');
	const char *how = to ? strchr(to + 1, ':') : NULL;

	if (strlen(text) > ITEM_MAX || text[0] != '/' || !to || to[1] != '/')
		return false;
	return !how || str_equal(how, ":ro") || str_equal(how, ":rw");
}

/* A rule of the proxy, or the name of a set, which is a host by its letters. */
static bool is_network_rule(const char *text)
{
	struct error err = {0};
	struct rules *rules = rules_parse(&text, 1, &err);

	rules_free(rules);
	return rules != NULL;
}

static bool is_network_request(const char *text)
{
	return str_equal(text, "*") || is_network_rule(text);
}

static bool is_range(const char *text)
{
	struct error err = {0};
	struct cidr ignored;

	return cidr_parse(text, &ignored, &err) >= 0;
}

static bool is_layer(const char *text)
{
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (str_equal(text, layer_name((enum wire_layer)i)))
			return true;
	return false;
}

static bool is_mode(const char *text)
{
	/* An unknown word is SESSION_EPHEMERAL, which has another name. */
	return str_equal(text, session_mode_name(session_mode_find(text)));
}

/* clang-format off */
#define AT(field) offsetof(struct policy, field)
#define WORD(path, field, words, help) {path, KEY_WORD, AT(field), 0, 0, words, NULL, NULL, help}
#define LIST(path, field, letters, help) {path, KEY_LIST, AT(field), 0, 0, NULL, letters, NULL, help}
#define LIST_OF(path, field, is_item, help) {path, KEY_LIST, AT(field), 0, 0, NULL, NULL, is_item, help}
#define NUMBER(path, type, field, least, most, help) {path, type, AT(field), least, most, NULL, NULL, NULL, help}
#define LIMIT(path, id, type, least, most, what) \
	NUMBER(path ".default", type, limits[id].fallback, least, most, what " if the request asks for none"), \
	NUMBER(path ".max", type, limits[id].max, least, most, what ": maximum"), \
	WORD(path ".on_exceed", limits[id].on_exceed, exceed_words, "A request for more gets the maximum (clamp) or is refused (refuse)")

static const struct policy_key keys[] = {
	LIST("languages.allow", languages.allow, NAME_LETTERS, "Languages that may be requested; default: all"),
	LIST("languages.deny", languages.deny, NAME_LETTERS, "Exceptions to the allow list"),
	LIMIT("limits.timeout", POLICY_TIMEOUT, KEY_DURATION, LIMIT_TIMEOUT_MIN_US, DAY, "Wall time of an execution"),
	LIMIT("limits.background_time", POLICY_BACKGROUND, KEY_DURATION, LIMIT_TIMEOUT_MIN_US, 30 * DAY, "Wall time of a background run or terminal"),
	LIMIT("limits.memory", POLICY_MEMORY, KEY_SIZE, LIMIT_MEMORY_MIN, TIB, "Memory of a box"),
	LIMIT("limits.disk", POLICY_DISK, KEY_SIZE, LIMIT_DISK_MIN, TIB, "Workspace of a box"),
	LIMIT("limits.cpu", POLICY_CPU, KEY_CPU, LIMIT_CPU_MIN, 1024000, "Cores of a box"),
	LIMIT("limits.processes", POLICY_PROCESSES, KEY_UINT, LIMIT_PROCESSES_MIN, 32768, "Processes and threads of a box"),
	LIMIT("limits.output", POLICY_OUTPUT, KEY_SIZE, 1, 256 * MIB, "Bytes kept of stdout, and of stderr"),
	WORD("limits.output.on_overflow", on_overflow, overflow_words, "A program that writes more continues (truncate) or is killed (kill)"),
	WORD("network.mode", network_mode, network_words, "Network of a box, and the maximum a request may ask for"),
	LIST_OF("network.allow", network_allow, is_network_rule, "What a box with network allowlist can reach: hosts (api.example.com, *.example.com:8443), addresses (10.1.0.0/16:5432), methods and paths of plain HTTP (GET deb.example.com/debian/*), or a set: pypi, npm, crates, golang, maven, nuget, debian, github"),
	LIST_OF("network.request", network_request, is_network_request, "What a request may name besides network.allow, whatever the mode: rules as there, or \"*\" for all hosts with public addresses; default: nothing"),
	LIST_OF("network.ranges", network_ranges, is_range, "Of the setting bridge.allow, the ranges that a box with network bridge reaches; default: all"),
	LIST("network.secrets", network_secrets, NAME_LETTERS, "Secrets that may be requested; default: none"),
	WORD("network.intercept", network_intercept, flag_words, "Whether the proxy may intercept TLS to the hosts of requested secrets, to add them"),
	LIST_OF("mounts", mounts, is_mount, "Folders of the host in a box, FROM:TO or FROM:TO:rw"),
	LIST("mcp.servers", mcp_servers, NAME_LETTERS, "MCP servers that code in a box may call"),
	LIST("mcp.tools", mcp_tools, TOOL_LETTERS, "Tools of those servers, as SERVER/TOOL"),
	LIST_OF("isolation.require", isolation_require, is_layer, "Isolation layers without which nothing runs"),
	WORD("isolation.min", isolation_min, min_words, "More required layers: none, the driver's (standard), or all (full)"),
	LIST("engines", engines, NAME_LETTERS, "Engines that may make boxes; default: all"),
	WORD("min_isolation", min_isolation, grade_words, "Least grade of isolation: namespace, gvisor (a kernel in user space) or vm; nothing runs without an engine that has it"),
	WORD("builds.share", share_builds, share_words, "Compiled programs are cached for the tenant (tenant), or shared with all tenants whose policy says so (all)"),
	LIST("env.allow", env.allow, VARIABLE_LETTERS, "Variables that may be set; default: all except those always refused"),
	LIST("env.deny", env.deny, VARIABLE_LETTERS, "Exceptions to the allow list"),
	LIST("templates.allow", templates.allow, NAME_LETTERS, "Templates that may be requested ('host': no template); default: all"),
	LIST("templates.deny", templates.deny, NAME_LETTERS, "Exceptions to the allow list"),
	LIST("packages.allow", packages.allow, NAME_LETTERS, "Package managers whose packages may be installed; default: those of the setting packages.managers"),
	LIST("packages.deny", packages.deny, NAME_LETTERS, "Exceptions to the allow list"),
	NUMBER("packages.timeout", KEY_DURATION, packages_timeout, USEC_PER_SEC, DAY, "Time of one installation: maximum"),
	NUMBER("packages.max_size", KEY_SIZE, packages_bytes, MIB, TIB, "Packages of one installation on disk: maximum"),
	LIST_OF("sessions.modes", session_modes, is_mode, "Session modes that may be created: ephemeral, workspace, persistent (which allows workspace, too); an empty list: no sessions"),
	LIMIT("sessions.idle_timeout", POLICY_IDLE, KEY_DURATION, USEC_PER_SEC, 30 * DAY, "Idle time after which a session ends"),
	LIMIT("sessions.lifetime", POLICY_LIFETIME, KEY_DURATION, USEC_PER_SEC, 30 * DAY, "Age at which a session ends"),
};
/* clang-format on */

const struct policy_key *policy_key_at(size_t index)
{
	return index < ARRAY_SIZE(keys) ? &keys[index] : NULL;
}

const char *policy_key_path(const struct policy_key *key)
{
	return key->path;
}

const char *policy_key_help(const struct policy_key *key)
{
	return key->help;
}

static_assert(offsetof(struct policy_number, by) == 0 && offsetof(struct policy_list, by) == 0,
              "a source is where a rule begins");

static void *rule_of(const struct policy_key *key, const struct policy *policy)
{
	return (char *)(uintptr_t)policy + key->offset;
}

struct policy_source policy_key_source(const struct policy_key *key, const struct policy *policy)
{
	return *(const struct policy_source *)rule_of(key, policy);
}

char *const *policy_key_list(const struct policy_key *key, const struct policy *policy)
{
	const struct policy_list *list = rule_of(key, policy);

	return key->type == KEY_LIST ? list->items : NULL;
}

static void print_duration(uint64_t us, char *ret_text, size_t size)
{
	(void)snprintf(ret_text, size, "%.10gs", (double)us / (double)USEC_PER_SEC);
}

static void print_uint(uint64_t value, char *ret_text, size_t size)
{
	(void)snprintf(ret_text, size, "%llu", (unsigned long long)value);
}

/* Numbers. */
static const struct {
	int (*parse)(const char *text, uint64_t *ret_value);
	void (*print)(uint64_t value, char *ret_text, size_t size);
	const char *what;
} types[] = {
	[KEY_UINT] = {parse_u64, print_uint, "a whole number"},
	[KEY_SIZE] = {parse_size, format_size, "a size like 512Mi"},
	[KEY_DURATION] = {parse_duration, print_duration, "a time like 30s, 5m or 1h"},
	[KEY_CPU] = {parse_cpu, format_cpu, "a number of cores like 1, 0.5 or 500m"},
	[KEY_WORD] = {NULL, NULL, ""},
	[KEY_LIST] = {NULL, NULL, ""},
};
static_assert(ARRAY_SIZE(types) == KEY_TYPE_COUNT, "every type has a row");

void policy_key_print(const struct policy_key *key, const struct policy *policy, char *ret_text,
                      size_t size)
{
	const struct policy_number *number = rule_of(key, policy);

	assert(key->type != KEY_LIST);
	if (key->type == KEY_WORD)
		(void)snprintf(ret_text, size, "%s", key->words[number->value]);
	else
		types[key->type].print(number->value, ret_text, size);
}

/* The file being parsed, for error messages. */
struct reading {
	const char *file;
	const struct yamldoc_node *node;
	const char *path;
	struct policy *policy;
	struct error *err;
};

static int attr_printf(2, 3) reject_key(const struct reading *in, const char *fmt, ...)
{
	char why[WHY_LEN];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	return error_set(in->err, ERR_CONFIG, 0, "%s:%u: '%s' %s", in->file, in->node->line,
	                 in->path, why);
}

static bool is_nothing(const struct yamldoc_node *node)
{
	return node->kind == YAMLDOC_SCALAR && !*node->value && !node->quoted;
}

static int read_number(const struct reading *in, const struct policy_key *key)
{
	struct policy_number *number = rule_of(key, in->policy);
	char min[32], max[32];
	uint64_t value = 0;
	int r = types[key->type].parse(in->node->value, &value);

	if (r == -ERANGE || (r >= 0 && (value < key->min || value > key->max))) {
		types[key->type].print(key->min, min, sizeof(min));
		types[key->type].print(key->max, max, sizeof(max));
		return reject_key(in, "must be between %s and %s", min, max);
	}
	if (r < 0)
		return reject_key(in, "must be %s", types[key->type].what);
	number->value = value;
	return 0;
}

static int read_word(const struct reading *in, const struct policy_key *key)
{
	struct policy_number *number = rule_of(key, in->policy);
	char what[WHY_LEN - 16];
	size_t n = 0;

	for (size_t i = 0; key->words[i]; i++) {
		int added =
			snprintf(what + n, sizeof(what) - n, "%s%s", i ? ", " : "", key->words[i]);

		if (str_equal(key->words[i], in->node->value)) {
			number->value = i;
			return 0;
		}
		n += (size_t)added; /* they fit */
	}
	return reject_key(in, "must be one of %s", what);
}

static bool is_item(const struct policy_key *key, const char *text)
{
	return key->letters ? is_made_of(text, key->letters) : key->is_item(text);
}

static int read_list(const struct reading *in, const struct policy_key *key)
{
	struct policy_list *list = rule_of(key, in->policy);
	size_t count = 0;

	if (in->node->kind != YAMLDOC_LIST || in->node->count > POLICIES_LIST_MAX)
		return reject_key(in, "must be a list of at most 256 values");
	list->items = xcalloc(in->node->count + 1, sizeof(*list->items));
	for (const struct yamldoc_node *n = in->node->first; n; n = n->next) {
		if (n->kind != YAMLDOC_SCALAR || !is_item(key, n->value))
			return reject_key(in, "cannot have '%.40s' in its list",
			                  n->kind == YAMLDOC_SCALAR ? n->value
			                                            : yamldoc_kind_name(n->kind));
		list->items[count++] = xstrdup(n->value);
	}
	return 0;
}

static int read_rule(const struct reading *in, const struct policy_key *key)
{
	struct policy_source *by = rule_of(key, in->policy);
	int r;

	if (key->type == KEY_LIST)
		r = read_list(in, key);
	else if (in->node->kind != YAMLDOC_SCALAR || is_nothing(in->node))
		return reject_key(in, "must be a value");
	else
		r = key->type == KEY_WORD ? read_word(in, key) : read_number(in, key);
	if (r < 0)
		return -1;
	by->line = in->node->line;
	return 0;
}

static int read_text(const struct reading *in, char **ret_text)
{
	if (in->node->kind != YAMLDOC_SCALAR || is_nothing(in->node))
		return reject_key(in, "must be a value");
	if (strlen(in->node->value) > TEXT_MAX)
		return reject_key(in, "is too long");
	*ret_text = xstrdup(in->node->value);
	return 0;
}

bool policy_is_name(const char *name)
{
	return is_made_of(name, LOWER "_-") && strlen(name) <= POLICY_ID_MAX && name[0] != '-' &&
	       name[0] != '_';
}

static int read_name(const struct reading *in, char **ret_name)
{
	if (read_text(in, ret_name) < 0)
		return -1;
	return policy_is_name(*ret_name) ? 0 : reject_key(in, "must be 1 to 63 of a-z 0-9 _ -");
}

static const struct {
	const char *key;
	int (*read)(const struct reading *in, char **ret_text);
	size_t offset;
} texts[] = {
	{"name", read_name, AT(name)},
	{"description", read_text, AT(description)},
	{"extends", read_name, AT(extends)},
};

static const struct policy_key *find_key(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (str_equal(keys[i].path, path))
			return &keys[i];
	return NULL;
}

static bool is_group(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strncmp(keys[i].path, path, len) == 0 && keys[i].path[len] == '.')
			return true;
	return false;
}

static int refuse_key(const struct reading *in)
{
	struct suggest s = {.word = in->path};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		suggest_offer(&s, keys[i].path);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		suggest_offer(&s, texts[i].key);
	if (!s.best)
		return reject_key(in, "is not a key of a policy");
	return reject_key(in, "is not a key of a policy, did you mean '%s'?", s.best);
}

/* Return: 1: enter the node, 0: done, or -1. */
static int read_node(const struct reading *in)
{
	const struct policy_key *key = find_key(in->path);
	if (key)
		return read_rule(in, key);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		void *slot = (char *)in->policy + texts[i].offset;

		if (str_equal(texts[i].key, in->path))
			return texts[i].read(in, slot);
	}
	if (!is_group(in->path))
		return refuse_key(in);
	if (is_nothing(in->node))
		return 0;
	if (in->node->kind != YAMLDOC_MAPPING)
		return reject_key(in, "must be a mapping");
	return 1;
}

/* In file order. NULL: the end. */
static const struct yamldoc_node *next_node(const struct yamldoc_node *node, bool enter)
{
	if (enter && node->first)
		return node->first;
	while (node && !node->next)
		node = node->parent;
	return node ? node->next : NULL;
}

static int make_path(const struct yamldoc_node *node, char ret_path[PATH_LEN])
{
	const struct yamldoc_node *up = node->parent;
	const char *first = up && up->parent && up->parent->key ? up->parent->key : NULL;
	const char *second = up && up->key ? up->key : NULL;

	return str_format(ret_path, PATH_LEN, "%s%s%s%s%s", first ? first : "", first ? "." : "",
	                  second ? second : "", second ? "." : "", node->key);
}

static int read_nodes(struct policy *policy, const struct yamldoc_node *root, const char *file,
                      struct error *err)
{
	const struct yamldoc_node *node = root->first;
	char path[PATH_LEN];
	int r = 0;

	for (; node && r >= 0; node = r < 0 ? NULL : next_node(node, r > 0)) {
		const struct reading in = {file, node, path, policy, err};

		r = make_path(node, path) < 0
		            ? error_set(err, ERR_CONFIG, 0, "%s:%u: the key is too long", file,
		                        node->line)
		            : read_node(&in);
		if (r >= 0 && str_equal(path, "extends"))
			policy->extends_line = node->line;
	}
	return r < 0 ? -1 : 0;
}

/* A file must not contradict itself; a maximum lowers an inherited default. */
static int check_limits(const struct policy *policy, const char *file, struct error *err)
{
	for (size_t i = 0; i < POLICY_LIMIT_COUNT; i++) {
		const struct policy_number *fallback = &policy->limits[i].fallback;
		const struct policy_number *max = &policy->limits[i].max;

		if (fallback->by.line && max->by.line && fallback->value > max->value)
			return error_set(err, ERR_CONFIG, 0,
			                 "%s:%u: the default is above the maximum of line %u", file,
			                 fallback->by.line, max->by.line);
	}
	return 0;
}

struct policy *policy_parse(const char *data, size_t len, const char *name, struct error *err)
{
	attr_cleanup(yamldoc_freep) struct yamldoc_node *root = yamldoc_parse(data, len, name, err);
	attr_cleanup(policy_unrefp) struct policy *policy = NEW(struct policy);

	policy->refs = 1;
	policy->file = xstrdup(name);
	if (!root || read_nodes(policy, root, name, err) < 0 || check_limits(policy, name, err) < 0)
		return NULL;
	if (!policy->name) {
		(void)error_set(err, ERR_CONFIG, 0, "%s: 'name' is missing", name);
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct policy_source *by = rule_of(&keys[i], policy);

		if (by->line)
			by->policy = policy->name;
	}
	return TAKE_PTR(policy);
}

void policy_inherit(struct policy *policy, const struct policy *parent)
{
	assert(!policy->parent);
	policy->parent = policy_ref(parent);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct policy_source *to = rule_of(&keys[i], policy);
		const struct policy_source *from = rule_of(&keys[i], parent);
		const struct policy_list *list = (const void *)from;

		if (to->line != 0 || from->line == 0)
			continue;
		if (keys[i].type == KEY_LIST)
			*(struct policy_list *)(void *)to =
				(struct policy_list){list->by, str_list_copy(list->items)};
		else
			*(struct policy_number *)(void *)to =
				*(const struct policy_number *)(const void *)from;
	}
}

struct policy *policy_ref(const struct policy *policy)
{
	struct policy *counted = (struct policy *)(uintptr_t)policy;

	counted->refs++;
	return counted;
}

void policy_unref(struct policy *policy)
{
	/* No recursion: a child may hold its parent's last reference. */
	while (policy && --policy->refs == 0) {
		struct policy *parent = policy->parent;

		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			if (keys[i].type == KEY_LIST)
				str_list_free(
					((struct policy_list *)rule_of(&keys[i], policy))->items);
		free(policy->name);
		free(policy->file);
		free(policy->description);
		free(policy->extends);
		free(policy);
		policy = parent;
	}
}
