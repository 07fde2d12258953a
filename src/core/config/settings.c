/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/suggest.h"
#include "base/utf8.h"

#define KI        (1024ULL)
#define MI        (1024 * KI)
#define GI        (1024 * MI)
#define TI        (1024 * GI)
#define MSEC      USEC_PER_MS
#define SEC       USEC_PER_SEC
#define HOUR      (3600 * SEC)
#define AT(field) offsetof(struct config, field)
#define LIST_MAX  64
#define TEXT_MAX  4096

/* A row is one setting, however long its line. */
/* clang-format off */
static const struct setting table[] = {
	{"listen",      SETTING_ADDR, AT(listen),      "127.0.0.1:8000", 0, 0, "TCP address of the API; \"\" for none. Another than loopback only where there are keys"},
	{"socket",      SETTING_PATH, AT(socket),      NULL, 0, 0, "Unix socket of the API; \"\" for none"},
	{"state_dir",   SETTING_PATH, AT(state_dir),   NULL, 0, 0, "What must survive a restart"},
	{"runtime_dir", SETTING_PATH, AT(runtime_dir), NULL, 0, 0, "Locks of the engine"},
	{"user",        SETTING_TEXT, AT(user),        "",   0, 0, "Who the daemon becomes when started as root; \"\" for an id of its own"},
	{"engine_path", SETTING_PATH, AT(engine_path), NULL, 0, 0, "Program millibox-engine"},
	{"agent_path",  SETTING_PATH, AT(agent_path),  NULL, 0, 0, "Program millibox-agent"},
	{"zygote_path", SETTING_PATH, AT(zygote_path), NULL, 0, 0, "Library of zygotes; where the file is not there, there are none"},
	{"runners_dir", SETTING_PATH, AT(runners_dir), NULL, 0, 0, "Folder of the languages"},
	{"tls.cert",    SETTING_PATH, AT(tls_cert),    "",   0, 0, "Certificate of the TCP address, and those that signed it (PEM); \"\" for no TLS"},
	{"tls.key",     SETTING_PATH, AT(tls_key),     "",   0, 0, "Private key of the certificate (PEM); nobody else may read it"},
	{"auth.trust_socket", SETTING_BOOL, AT(auth_trust_socket), "true", 0, 0, "Ask no key of root, nor of the user who started the daemon, at the Unix socket: they are tenant \"default\" and may do everything"},
	{"allowed_hosts",   SETTING_LIST, AT(allowed_hosts),   "", 0, 0, "Further names accepted in Host headers"},
	{"allowed_origins", SETTING_LIST, AT(allowed_origins), "", 0, 0, "Web origins that may call the API"},
	{"log_level",   SETTING_LOG_LEVEL,  AT(log_level),  "info", 0, 0, "error, warn, info or debug"},
	{"log_format",  SETTING_LOG_FORMAT, AT(log_format), "text", 0, 0, "text or json"},
	{"log_requests", SETTING_LOG_LEVEL, AT(log_requests), "debug", 0, 0, "Level at which each request that is over is logged: info to see them all"},
	{"strict",      SETTING_BOOL, AT(strict),      "true", 0, 0, "Refuse to run anything while a required layer of isolation is missing"},
	{"uid_base",    SETTING_UINT, AT(uid_base),    "1879048192", 65536, UINT32_MAX - 64ULL * 65536, "First host id given to boxes, when started as root"},

	{"http.max_connections",          SETTING_UINT, AT(max_connections),          "512",  1, 65536, "Connections at the same time"},
	{"http.max_connections_per_peer", SETTING_UINT, AT(max_connections_per_peer), "128",  1, 65536, "Of which from one address"},
	{"http.max_body",   SETTING_SIZE, AT(max_body_bytes),   "8Mi",  1 * KI, 64 * MI, "Body of a request"},
	{"http.max_header", SETTING_SIZE, AT(max_header_bytes), "16Ki", 1 * KI, 1 * MI,  "Headers of a request"},
	{"http.max_code",   SETTING_SIZE, AT(max_code_bytes),   "1Mi",  1,      64 * MI, "Code of an execution"},
	{"http.max_answers", SETTING_SIZE, AT(max_answers_bytes), "256Mi", 1 * MI, 1 * TI, "Answers that wait for their readers, all together; beyond that the slowest are cut off"},
	{"http.max_upload", SETTING_SIZE, AT(max_upload_bytes), "100Mi", 1 * KI, 1 * TI, "File in a form (multipart/form-data); the body of a PUT is bounded by the disk of its box"},
	{"http.request_timeout", SETTING_DURATION, AT(request_timeout_us), "30s", 100 * MSEC, HOUR, "From the first byte of a request to its last"},
	{"http.idle_timeout",    SETTING_DURATION, AT(idle_timeout_us),    "60s", 100 * MSEC, HOUR, "A connection without a request"},

	{"admission.max_running", SETTING_UINT, AT(max_running), "0",  0, 4096,  "Executions at the same time; 0 for twice the cores"},
	{"admission.max_queued",  SETTING_UINT, AT(max_queued),  "256", 0, 65536, "Executions waiting for their turn"},
	{"admission.drain_timeout", SETTING_DURATION, AT(drain_timeout_us), "10s", 0, HOUR, "How long running executions may take to end when the daemon is stopped"},

	{"zygotes.enabled",    SETTING_BOOL, AT(zygotes_enabled), "true", 0, 0, "Keep warm interpreters whose children become programs of boxes; otherwise each is executed"},
	{"zygotes.modules",    SETTING_LIST, AT(zygotes_modules), "numpy,pandas,scipy,sympy,matplotlib,matplotlib.pyplot,PIL,lxml,bs4,yaml,requests", 0, 0, "Modules that zygotes may import for templates that preload them; they run with power over boxes. Others are imported in the box"},
	{"zygotes.max_children", SETTING_UINT, AT(zygotes_children), "5000", 1, 1000000000, "Programs made by a zygote before it is replaced; they share one seed of hashes and one layout of memory"},
	{"zygotes.max_memory", SETTING_SIZE, AT(zygotes_memory), "512Mi", 1 * MI, 64 * GI, "A zygote that has grown to this is replaced"},

	{"pools.enabled",    SETTING_BOOL, AT(pools_enabled), "true",  0, 0,    "Make boxes before they are asked for"},
	{"pools.floor",      SETTING_UINT, AT(pools_floor),   "2",     0, 64,   "Boxes of each usual kind that always wait: of each language with the default limits"},
	{"pools.session_floor", SETTING_UINT, AT(pools_session_floor), "1", 0, 64, "Boxes with a runner that always wait for persistent sessions of the usual kind: with the default template, language and limits; 0: sessions get no boxes that waited"},
	{"pools.max",        SETTING_UINT, AT(pools_max),     "32",    1, 1024, "Boxes that wait, of all kinds"},
	{"pools.max_memory", SETTING_SIZE, AT(pools_memory_bytes), "512Mi", 1 * MI, 1 * TI, "Memory that they use, together; no more are made beyond that"},
	{"pools.max_age",    SETTING_DURATION, AT(pools_age_us),  "10m", SEC, 24 * HOUR, "One that has waited for so long is made anew"},
	{"pools.idle",       SETTING_DURATION, AT(pools_idle_us), "60s", SEC, 24 * HOUR, "Of a kind that nobody asks for so long only the floor is kept"},

	{"sessions.max",          SETTING_UINT,     AT(sessions_max),        "1024", 1, 65536, "Sessions at the same time, and as many ended ones that are remembered"},
	{"sessions.idle_timeout", SETTING_DURATION, AT(session_idle_us),     "15m",  SEC, 24 * HOUR, "A session that nobody uses for so long ends; the most that may be asked for is the lifetime"},
	{"sessions.lifetime",     SETTING_DURATION, AT(session_lifetime_us), "4h",   SEC, 30 * 24 * HOUR, "A session this old ends; the most that may be asked for"},
	{"sessions.queue",        SETTING_UINT,     AT(session_queue),       "64",   1, 4096,  "Executions of one session waiting for their turn"},

	{"sessions.survive",      SETTING_DURATION, AT(session_survive_us),  "60s",  0, HOUR, "How long persistent sessions wait for another daemon when theirs dies; 0: they end with it"},
	{"sessions.keep_on_stop", SETTING_BOOL,     AT(sessions_keep_on_stop), "false", 0, 0, "A daemon that is stopped leaves its persistent sessions to the next one, as if it had died"},

	{"executions.keep",       SETTING_UINT, AT(executions_keep),       "10000", 1, 1000000, "Ended executions that are kept in memory; others are read from the store"},
	{"executions.keep_bytes", SETTING_SIZE, AT(executions_keep_bytes), "256Mi", 1 * MI, 64 * GI, "Code and output of those, together"},

	{"store.volatile", SETTING_BOOL, AT(store_volatile), "false", 0, 0, "Keep nothing on disk: what is known of sessions, executions, keys and templates is gone with the daemon"},
	{"retention.sessions",   SETTING_DURATION, AT(retention_sessions_us),   "168h", SEC, 3650 * 24 * HOUR, "An ended session can be read for so long, restarts or not"},
	{"retention.executions", SETTING_DURATION, AT(retention_executions_us), "720h", SEC, 3650 * 24 * HOUR, "An ended execution can be read for so long, restarts or not"},
	{"retention.max_count",  SETTING_UINT, AT(retention_count), "1000000", 1, 1000000000, "Ended executions that are stored; beyond that whoever has most loses the oldest"},
	{"retention.max_bytes",  SETTING_SIZE, AT(retention_bytes), "4Gi", 1 * MI, 64 * TI, "Code and output of those, together"},

	{"policy.dir",        SETTING_PATH, AT(policy_dir),        NULL,      0, 0, "Folder of policies, read again on SIGHUP; \"\" for those that are built in"},
	{"policy.default",    SETTING_TEXT, AT(policy_default),    "default", 0, 0, "Policy of a tenant that has none of its own"},
	{"policy.selectable", SETTING_LIST, AT(policy_selectable), "strict",  0, 0, "Policies that a request may name, to be held to them as well as to its tenant's"},

	{"templates.dirs", SETTING_LIST, AT(template_dirs), "",     0, 0,     "Directories whose subdirectories may be roots of templates; absolute paths, at most 7"},
	{"templates.max",  SETTING_UINT, AT(templates_max), "1000", 1, 65536, "Templates of all tenants together, without the built-in ones"},
	{"mcp.enabled",        SETTING_BOOL, AT(mcp_enabled),        "true", 0, 0, "Serve the Model Context Protocol at /mcp, and what is below it"},
	{"mcp.enabled_tools",  SETTING_LIST, AT(mcp_enabled_tools),  "",     0, 0, "Tools that agents may call; none named: all"},
	{"mcp.disabled_tools", SETTING_LIST, AT(mcp_disabled_tools), "",     0, 0, "Tools that they may not, whatever is enabled"},
	{"mcp.max_sessions",        SETTING_UINT, AT(mcp_sessions),        "1024", 1, 65536, "MCP sessions at the same time; an idle one of the same tenant makes room for a new one"},
	{"mcp.max_tenant_sessions", SETTING_UINT, AT(mcp_tenant_sessions), "512",  1, 65536, "Of which of one tenant"},
	{"mcp.session_timeout",     SETTING_DURATION, AT(mcp_session_us),  "1h",   SEC, 30 * 24 * HOUR, "An MCP session that nobody uses for so long ends; its sandboxes do not"},
	{"mcp.max_buffers",         SETTING_SIZE, AT(mcp_buffers_bytes),   "128Mi", 64 * KI, 64 * GI, "Messages kept for agents that were cut off and come back; shared out among tenants; one session has at most a sixteenth"},
	{"mcp.max_text",       SETTING_SIZE, AT(mcp_text_bytes),     "16Ki", 256, 1 * MI, "Text of a tool's result: of longer output an agent gets head and tail, and reads the rest as a resource"},
	{"audit.enabled",  SETTING_BOOL, AT(audit_enabled),  "true",  0, 0, "Keep a log of who did what"},
	{"audit.path",     SETTING_PATH, AT(audit_path),     "",      0, 0, "Where; \"\" for audit.log in the state directory"},
	{"audit.required", SETTING_BOOL, AT(audit_required), "false", 0, 0, "Refuse work while the log cannot be written, and to start when it is damaged"},
	{"audit.max_size", SETTING_SIZE, AT(audit_max_bytes), "64Mi", 64 * KI, 64 * GI, "A file this large is put aside and a new one begun"},
	{"audit.keep",     SETTING_UINT, AT(audit_keep),     "16",    0, 65536, "Files put aside that are kept"},

	{"limits.timeout",        SETTING_DURATION, AT(timeout_us),     "30s",   1 * MSEC, 24 * HOUR, "Wall time of an execution that asks for none"},
	{"limits.timeout_max",    SETTING_DURATION, AT(timeout_max_us), "3600s", 1 * MSEC, 24 * HOUR, "The most it may ask for"},
	{"limits.memory",         SETTING_SIZE, AT(memory_bytes),       "512Mi", 16 * MI,  1 * TI,    "Memory of a box, all of its processes and files together"},
	{"limits.memory_max",     SETTING_SIZE, AT(memory_max_bytes),   "8Gi",   16 * MI,  1 * TI,    "The most it may ask for"},
	{"limits.disk",           SETTING_SIZE, AT(disk_bytes),         "256Mi", 1 * MI,   1 * TI,    "Workspace of a box; at most half of its memory, which holds it"},
	{"limits.disk_max",       SETTING_SIZE, AT(disk_max_bytes),     "4Gi",   1 * MI,   1 * TI,    "The most it may ask for"},
	{"limits.cpu",            SETTING_CPU,  AT(cpu_millicores),     "1",     10,       1024000,   "Cores, or parts of one"},
	{"limits.cpu_max",        SETTING_CPU,  AT(cpu_max_millicores), "0",     0,        1024000,   "The most it may ask for; 0 for all cores"},
	{"limits.processes",      SETTING_UINT, AT(processes),          "128",   16,       32768,     "Processes and threads"},
	{"limits.processes_max",  SETTING_UINT, AT(processes_max),      "1024",  16,       32768,     "The most it may ask for"},
	{"limits.output",         SETTING_SIZE, AT(output_bytes),       "1Mi",   1,        256 * MI,  "Bytes kept of stdout, and as many of stderr"},
	{"limits.output_max",     SETTING_SIZE, AT(output_max_bytes),   "4Mi",   1,        256 * MI,  "The most it may ask for"},

	{"imports.max",            SETTING_UINT, AT(imports_max),          "4",      1, 64,        "Imports of images at the same time; more are refused"},
	{"imports.max_per_tenant", SETTING_UINT, AT(imports_max_tenant),   "2",      1, 64,        "Of which of one tenant"},
	{"imports.archive",  SETTING_SIZE, AT(import_archive_bytes), "8Gi",    1 * MI, 64 * TI,   "Archive of an image"},
	{"imports.root",     SETTING_SIZE, AT(import_root_bytes),    "16Gi",   1 * MI, 64 * TI,   "Files of an image, all layers together"},
	{"imports.file",     SETTING_SIZE, AT(import_file_bytes),    "4Gi",    1 * KI, 64 * TI,   "One file of an image"},
	{"imports.entries",  SETTING_UINT, AT(import_entries),       "500000", 1, 100000000, "Files, directories and links in the layers of an image"},
	{"imports.layers",   SETTING_UINT, AT(import_layers),        "127",    1, 512,       "Layers of an image"},
	{"imports.memory",   SETTING_SIZE, AT(import_memory_bytes),  "1Gi",    64 * MI, 64 * GI, "Memory of whoever unpacks an image"},
	{"imports.cpu_time", SETTING_DURATION, AT(import_cpu_us),    "15m",    SEC, 24 * HOUR,  "Processor time that an import may take"},

	{"quota.sessions",   SETTING_UINT, AT(quota_sessions),     "64",   0, 65536,   "Sessions of one tenant at the same time; 0 for no bound of its own. Tenant \"default\" has no quotas unless they are set for it"},
	{"quota.executions", SETTING_UINT, AT(quota_executions),   "16",   0, 65536,   "Executions of one tenant at the same time; more of them wait. 0 for no bound"},
	{"quota.queued",     SETTING_UINT, AT(quota_queued),       "256",  0, 1000000, "Executions of one tenant that wait; more are refused. 0 for no bound"},
	{"quota.memory",     SETTING_SIZE, AT(quota_memory_bytes), "16Gi", 0, 1024 * TI, "Memory limits of the boxes of one tenant, together; 0 for no bound"},
	{"quota.requests_per_second", SETTING_UINT, AT(quota_requests), "200", 0, 1000000, "Requests of one tenant per second, on average; 0 for no bound"},
	{"quota.burst",      SETTING_UINT, AT(quota_burst),        "400",  0, 1000000, "Requests of one tenant at once; 0 for as many as there may be in a second"},
	{"quota.templates",  SETTING_UINT, AT(quota_templates),    "64",   0, 65536,   "Templates of one tenant, without the built-in ones; 0 for no bound of its own"},
	{"quota.images",     SETTING_SIZE, AT(quota_images_bytes), "32Gi", 0, 1024 * TI, "Imported images of one tenant on the disk, together; 0 for no bound"},
};
/* clang-format on */

size_t settings_count(void)
{
	return ARRAY_SIZE(table);
}

const struct setting *settings_at(size_t index)
{
	return index < ARRAY_SIZE(table) ? &table[index] : NULL;
}

const struct setting *settings_find(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (str_equal(table[i].key, key))
			return &table[i];
	return NULL;
}

bool settings_has_group(const char *group)
{
	size_t len = strlen(group);

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strncmp(table[i].key, group, len) == 0 && table[i].key[len] == '.')
			return true;
	return false;
}

static const char *last_part(const char *key)
{
	const char *dot = strrchr(key, '.');

	return dot ? dot + 1 : key;
}

const char *settings_suggest(const char *key)
{
	struct suggest s = {.word = key};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		suggest_offer(&s, table[i].key);
	/* The right name in the wrong group is as good a guess as one typing error. */
	for (size_t i = 0; i < ARRAY_SIZE(table) && !s.best; i++)
		if (str_equal(last_part(key), last_part(table[i].key)))
			s.best = table[i].key;
	return s.best;
}

static char env_letter(char c)
{
	if (c == '.')
		return '_';
	return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

void setting_env(const struct setting *s, char ret_name[SETTING_ENV_LEN])
{
	size_t n = strlen(SETTING_ENV_PREFIX);

	memcpy(ret_name, SETTING_ENV_PREFIX, n);
	for (const char *c = s->key; *c && n < SETTING_ENV_LEN - 1; c++)
		ret_name[n++] = env_letter(*c);
	ret_name[n] = '\0';
}

const struct setting *settings_find_env(const char *name)
{
	char env[SETTING_ENV_LEN];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		setting_env(&table[i], env);
		if (str_equal(env, name))
			return &table[i];
	}
	return NULL;
}

/* What YAML takes for a line's end or for nothing at all, though it is valid UTF-8. */
static const char *const invisible[] = {
	"\xe2\x80\xa8", /* U+2028 */
	"\xe2\x80\xa9", /* U+2029 */
	"\xef\xbb\xbf", /* U+FEFF */
	"\xef\xbf\xbe", /* U+FFFE */
	"\xef\xbf\xbf", /* U+FFFF */
};

static bool is_control(const unsigned char *c)
{
	/* U+0000 to U+001F, U+007F, and U+0080 to U+009F in two bytes */
	return c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0);
}

/* Text that can be dumped, read back and logged. */
static bool is_clean(const char *text)
{
	size_t len = strlen(text);

	if (len > TEXT_MAX || !utf8_is_valid(text, len))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(invisible); i++)
		if (strstr(text, invisible[i]))
			return false;
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (is_control(c))
			return false;
	return true;
}

static void put_text(void *field, const char *text)
{
	char **place = field;

	free(*place);
	*place = xstrdup(text);
}

static int set_text(void *field, const char *text)
{
	put_text(field, text);
	return 0;
}

static int set_path(void *field, const char *text)
{
	if (*text && *text != '/')
		return -EINVAL;
	put_text(field, text);
	return 0;
}

/* Keys cannot be configured, so whoever reaches the address may run code: only this host may. */
static bool is_address(const char *host)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, host, &v4) == 1)
		return true;
	return inet_pton(AF_INET6, host, &v6) == 1;
}

static int set_addr(void *field, const char *text)
{
	char host[INET6_ADDRSTRLEN + 2];
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	uint64_t port = 0;
	bool brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';

	if (!*text) {
		put_text(field, text);
		return 0;
	}
	if (len == 0 || len >= sizeof(host) || parse_u64(colon + 1, &port) < 0 || port > UINT16_MAX)
		return -EINVAL;
	memcpy(host, text + brackets, len - 2 * (size_t)brackets);
	host[len - 2 * (size_t)brackets] = '\0';
	if (!is_address(host) || brackets != (strchr(host, ':') != NULL))
		return -EINVAL;
	put_text(field, text);
	return 0;
}

static int add_item(char **list, size_t *count, const char *item, size_t len)
{
	while (len > 0 && *item == ' ') {
		item++;
		len--;
	}
	while (len > 0 && item[len - 1] == ' ')
		len--;
	if (len == 0 || *count == LIST_MAX)
		return -EINVAL;
	list[(*count)++] = xstrndup(item, len);
	return 0;
}

static int set_list(void *field, const char *text)
{
	cleanup_str_list char **list = xcalloc(LIST_MAX + 1, sizeof(*list));
	char ***place = field;
	size_t count = 0;

	for (const char *item = text; *text;) {
		size_t len = strcspn(item, ",");

		if (add_item(list, &count, item, len) < 0)
			return -EINVAL;
		if (!item[len])
			break;
		item += len + 1;
	}
	str_list_free(*place);
	*place = TAKE_PTR(list);
	return 0;
}

static int set_bool(void *field, const char *text)
{
	return parse_bool(text, field);
}

static int set_log_level(void *field, const char *text)
{
	int r = log_level_parse(text);

	if (r >= 0)
		*(enum log_level *)field = (enum log_level)r;
	return r < 0 ? r : 0;
}

static int set_log_format(void *field, const char *text)
{
	int r = log_format_parse(text);

	if (r >= 0)
		*(enum log_format *)field = (enum log_format)r;
	return r < 0 ? r : 0;
}

static void print_quoted(const char *text, FILE *out)
{
	(void)fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			(void)fputc('\\', out);
		(void)fputc(*text, out);
	}
	(void)fputc('"', out);
}

static void print_text(const void *field, FILE *out)
{
	print_quoted(*(char *const *)field, out);
}

static void print_list(const void *field, FILE *out)
{
	char *const *list = *(char *const *const *)field;

	(void)fputc('[', out);
	for (size_t i = 0; list[i]; i++) {
		(void)fputs(i ? ", " : "", out);
		print_quoted(list[i], out);
	}
	(void)fputc(']', out);
}

static void print_bool(const void *field, FILE *out)
{
	(void)fputs(*(const bool *)field ? "true" : "false", out);
}

static void print_uint(const void *field, FILE *out)
{
	(void)fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)field);
}

static void print_size(const void *field, FILE *out)
{
	char text[32];

	format_size(*(const uint64_t *)field, text, sizeof(text));
	(void)fputs(text, out);
}

static void print_cpu(const void *field, FILE *out)
{
	char text[32];

	format_cpu(*(const uint64_t *)field, text, sizeof(text));
	(void)fputs(text, out);
}

static void print_duration(const void *field, FILE *out)
{
	uint64_t us = *(const uint64_t *)field;

	if (us % SEC == 0)
		(void)fprintf(out, "%llus", (unsigned long long)(us / SEC));
	else if (us % MSEC == 0)
		(void)fprintf(out, "%llums", (unsigned long long)(us / MSEC));
	else
		(void)fprintf(out, "%llu.%06llu", (unsigned long long)(us / SEC),
		              (unsigned long long)(us % SEC));
}

static void print_log_level(const void *field, FILE *out)
{
	(void)fputs(log_level_name(*(const enum log_level *)field), out);
}

static void print_log_format(const void *field, FILE *out)
{
	static const char *const names[] = {"text", "json"};

	static_assert(ARRAY_SIZE(names) == LOG_FORMAT_COUNT, "every format has a name");
	(void)fputs(names[*(const enum log_format *)field], out);
}

static void done_text(void *field)
{
	free(TAKE_PTR(*(char **)field));
}

static void done_list(void *field)
{
	str_list_free(TAKE_PTR(*(char ***)field));
}

/* A type is either a number in a range (@number) or something else (@set). */
struct setting_ops {
	const char *what; /* "must be ..." */
	int (*set)(void *field, const char *text);
	int (*number)(const char *text, uint64_t *ret_value);
	void (*print)(const void *field, FILE *out);
	void (*done)(void *field);
};

/* clang-format off */
static const struct setting_ops types[] = {
	[SETTING_TEXT]       = {"text without control characters", set_text, NULL, print_text, done_text},
	[SETTING_PATH]       = {"an absolute path, or \"\"", set_path, NULL, print_text, done_text},
	[SETTING_ADDR]       = {"an address in numbers and a port, such as 127.0.0.1:8000 or [::1]:8000, or \"\"", set_addr, NULL, print_text, done_text},
	[SETTING_LIST]       = {"a list of at most 64 names, none of them empty", set_list, NULL, print_list, done_list},
	[SETTING_BOOL]       = {"true or false", set_bool, NULL, print_bool, NULL},
	[SETTING_UINT]       = {"a whole number", NULL, parse_u64, print_uint, NULL},
	[SETTING_SIZE]       = {"a size such as 512Mi", NULL, parse_size, print_size, NULL},
	[SETTING_DURATION]   = {"a time such as 30s or 500ms", NULL, parse_duration, print_duration, NULL},
	[SETTING_CPU]        = {"a number of cores such as 1, 0.5 or 500m", NULL, parse_cpu, print_cpu, NULL},
	[SETTING_LOG_LEVEL]  = {"error, warn, info or debug", set_log_level, NULL, print_log_level, NULL},
	[SETTING_LOG_FORMAT] = {"text or json", set_log_format, NULL, print_log_format, NULL},
};
/* clang-format on */
static_assert(ARRAY_SIZE(types) == SETTING_TYPE_COUNT, "every type has a row");

static void *field_of(const struct setting *s, struct config *c)
{
	return (char *)c + s->offset;
}

/* "must be between 16Mi and 1Ti": the ends in the words of the type. */
static void say_range(const struct setting *s, char ret_why[SETTING_WHY_LEN])
{
	char ends[2][48] = {"", ""};
	const uint64_t values[2] = {s->min, s->max};

	for (size_t i = 0; i < 2; i++) {
		FILE *out = fmemopen(ends[i], sizeof(ends[i]), "w");

		if (!out)
			break;
		types[s->type].print(&values[i], out);
		(void)fclose(out);
	}
	(void)snprintf(ret_why, SETTING_WHY_LEN, "must be between %s and %s", ends[0], ends[1]);
}

static int set_number(const struct setting *s, struct config *c, const char *text,
                      char ret_why[SETTING_WHY_LEN])
{
	uint64_t value = 0;
	int r = types[s->type].number(text, &value);

	if (r == -ERANGE || (r >= 0 && (value < s->min || value > s->max))) {
		say_range(s, ret_why);
		return -EINVAL;
	}
	if (r < 0) {
		(void)snprintf(ret_why, SETTING_WHY_LEN, "must be %s", types[s->type].what);
		return -EINVAL;
	}
	memcpy(field_of(s, c), &value, sizeof(value));
	return 0;
}

int setting_set(const struct setting *s, struct config *c, const char *text,
                char ret_why[SETTING_WHY_LEN])
{
	if (types[s->type].number)
		return set_number(s, c, text, ret_why);
	if (is_clean(text) && types[s->type].set(field_of(s, c), text) >= 0)
		return 0;
	(void)snprintf(ret_why, SETTING_WHY_LEN, "must be %s", types[s->type].what);
	return -EINVAL;
}

void setting_print(const struct setting *s, const struct config *c, FILE *out)
{
	types[s->type].print((const char *)c + s->offset, out);
}

void setting_done(const struct setting *s, struct config *c)
{
	if (types[s->type].done)
		types[s->type].done(field_of(s, c));
}
