/* SPDX-License-Identifier: Apache-2.0 */
#include "core/gateway/catalog.h"

#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/observe/audit.h"
#include "core/observe/metrics.h"
#include "gateway/allow.h"
#include "gateway/spec.h"

#define NO_SERVER "none"

struct entry {
	char *name, *url; /* owned */
	const char *kind;
	enum gateway_state state;
	char detail[GATEWAY_DETAIL_LEN];
	uint32_t starts;
	uint64_t calls, errors;
	json_t *tools; /* owned; NULL: not known */
};

struct catalog {
	struct metrics *metrics;
	struct audit *audit;
	struct gateway_events events;
	size_t count;
	struct entry entries[GATEWAY_SERVERS_MAX];
};

static const char *const outcome_names[] = {
	[GATEWAY_OK] = "ok",
	[GATEWAY_TOOL_FAILED] = "tool_error",
	[GATEWAY_REFUSED] = "refused",
	[GATEWAY_DENIED] = "denied",
	[GATEWAY_INVALID] = "invalid",
	[GATEWAY_TOO_LARGE] = "too_large",
	[GATEWAY_BUSY] = "busy",
	[GATEWAY_TIMEOUT] = "timeout",
	[GATEWAY_UNAVAILABLE] = "unavailable",
	[GATEWAY_CANCELLED] = "cancelled",
};
static_assert(ARRAY_SIZE(outcome_names) == GATEWAY_OUTCOME_COUNT, "every outcome has a name");

static const char *const state_names[] = {
	[GATEWAY_STARTING] = "starting",
	[GATEWAY_READY] = "ready",
	[GATEWAY_WAITING] = "waiting",
	[GATEWAY_BROKEN] = "broken",
};
static_assert(ARRAY_SIZE(state_names) == GATEWAY_STATE_COUNT, "every state has a name");

const char *catalog_outcome_name(enum gateway_outcome outcome)
{
	return outcome_names[outcome];
}

struct catalog *catalog_new(const struct config *config, struct metrics *metrics,
                            struct audit *audit)
{
	struct catalog *c = NEW(struct catalog);

	c->metrics = metrics;
	c->audit = audit;
	for (struct server_spec *const *s = config->servers; s && *s; s++)
		c->entries[c->count++] = (struct entry){
			.name = xstrdup((*s)->name),
			.url = spec_url(*s),
			.kind = (*s)->url[0] ? "http" : "stdio",
			.state = GATEWAY_STARTING,
		};
	return c;
}

void catalog_free(struct catalog *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++) {
		free(c->entries[i].name);
		free(c->entries[i].url);
		json_decref(c->entries[i].tools);
	}
	free(c);
}

void catalog_mute(struct catalog *c)
{
	if (!c)
		return;
	c->metrics = NULL;
	c->audit = NULL;
}

static struct entry *find_entry(struct catalog *c, const char *name)
{
	for (size_t i = 0; i < c->count; i++)
		if (str_equal(c->entries[i].name, name))
			return &c->entries[i];
	return NULL;
}

static void on_called(void *ctx, const struct gateway_caller *who,
                      const struct gateway_event *event)
{
	struct catalog *c = ctx;
	struct entry *entry = find_entry(c, event->server);
	const char *outcome = outcome_names[event->outcome];
	const char *server = entry ? entry->name : NO_SERVER;
	cleanup_free char *object = xasprintf("%s/%s", server, event->tool);

	metrics_count_for(c->metrics, METRIC_MCP_CALLS, METRIC_LABELS(server, outcome), 1);
	/* A list of tools is no call. */
	if (!event->tool[0] && event->outcome == GATEWAY_OK)
		return;
	metrics_observe_for(c->metrics, METRIC_MCP_DURATION, METRIC_LABELS(server),
	                    (double)event->duration_us / (double)USEC_PER_SEC);
	if (entry) {
		entry->calls++;
		entry->errors += event->outcome != GATEWAY_OK;
	}
	if (!c->audit)
		return;
	audit_write(c->audit, &(struct audit_event){
				      .action = "mcp.call",
				      .tenant = who->tenant,
				      .object = object,
				      .result = outcome,
				      .request_id = who->request_id[0] ? who->request_id : NULL,
				      .detail = json_pack("{s:s}", "box", who->box),
			      });
}

static void set_state(struct catalog *c, struct entry *entry, enum gateway_state state)
{
	entry->state = state;
	metrics_set_for(c->metrics, METRIC_MCP_READY, METRIC_LABELS(entry->name),
	                state == GATEWAY_READY);
}

static void on_state(void *ctx, const struct gateway_event *event)
{
	struct catalog *c = ctx;
	struct entry *entry = find_entry(c, event->server);

	if (!entry)
		return;
	set_state(c, entry, (enum gateway_state)event->state);
	entry->starts = event->starts;
	memcpy(entry->detail, event->detail, sizeof(entry->detail));
}

static json_t *read_tools(int fd)
{
	cleanup_buf struct buf text = BUF_INIT(2 * (size_t)GATEWAY_CATALOG_MAX);
	struct stat st;
	ssize_t n = 1;

	/* A gateway that an outside server took over must not block the loop with a pipe. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	while (n > 0) {
		if (buf_reserve(&text, 64 * 1024) < 0)
			return NULL;
		n = pread(fd, text.data + text.len, 64 * 1024, (off_t)text.len);
		if (n > 0)
			text.len += (size_t)n;
	}
	return n < 0 ? NULL : json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
}

static void on_catalog(void *ctx, const struct gateway_event *event, int fd)
{
	struct catalog *c = ctx;
	struct entry *entry = find_entry(c, event->server);
	json_t *tools = entry ? read_tools(fd) : NULL;

	if (!json_is_array(tools)) {
		log_warn("the tools of MCP server %s cannot be read, ignoring", event->server);
		json_decref(tools);
		return;
	}
	json_decref(entry->tools);
	entry->tools = tools;
}

static void on_lost(void *ctx, bool is_last)
{
	struct catalog *c = ctx;

	for (size_t i = 0; i < c->count; i++) {
		struct entry *entry = &c->entries[i];

		set_state(c, entry, is_last ? GATEWAY_BROKEN : GATEWAY_STARTING);
		if (is_last)
			(void)!str_copy(entry->detail, sizeof(entry->detail),
			                "millibox-gateway has ended: restart the daemon");
	}
}

const struct gateway_events *catalog_events(struct catalog *c)
{
	c->events = (struct gateway_events){.ctx = c,
	                                    .on_called = on_called,
	                                    .on_state = on_state,
	                                    .on_catalog = on_catalog,
	                                    .on_lost = on_lost};
	return &c->events;
}

size_t catalog_count(const struct catalog *c)
{
	return c ? c->count : 0;
}

void catalog_at(const struct catalog *c, size_t index, struct catalog_server *ret)
{
	const struct entry *entry = &c->entries[index];

	*ret = (struct catalog_server){
		.name = entry->name,
		.kind = entry->kind,
		.url = entry->url,
		.state = state_names[entry->state],
		.detail = entry->detail,
		.starts = entry->starts,
		.calls = entry->calls,
		.errors = entry->errors,
		.tools = entry->tools,
	};
}

bool catalog_may(const struct box_rules *allowed, const char *server, const char *tool)
{
	char **texts = xcalloc(allowed->count + 1, sizeof(*texts));
	bool may;

	memcpy(texts, allowed->texts, allowed->count * sizeof(*texts));
	may = tool ? !allow_tool(texts, server, tool) : allow_server(texts, server);
	free(texts);
	return may;
}
