/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "gateway/allow.h"
#include "gateway/gateway.h"
#include "io/timer.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIST_TIMEOUT_US (30 * USEC_PER_SEC)
#define LIST_PAUSE_US   USEC_PER_SEC /* the daemon parses each list */
#define PAGES_MAX       64
#define CURSOR_MAX      1024

void tools_free(struct tool *tools, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(tools[i].name);
		free(tools[i].text);
	}
	free(tools);
}

bool tools_is_name(const char *text)
{
	size_t len =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-");

	return len > 0 && len < GATEWAY_TOOL_LEN && !text[len];
}

int tools_add(const struct server *s, char *const *allowed, struct buf *to)
{
	bool is_first = true;
	int r = 0;

	for (size_t i = 0; i < s->tools_count && r >= 0; i++) {
		const struct tool *t = &s->tools[i];

		if (allowed && allow_tool(allowed, s->spec->name, t->name))
			continue;
		if (!is_first)
			r = buf_add(to, ",", 1);
		if (r >= 0)
			r = buf_add(to, t->text, t->len);
		is_first = false;
	}
	return r;
}

/* The daemon learns what there is. */
static void publish_tools(struct server *s)
{
	struct gateway_event event = {.op = GATEWAY_CATALOG, .tools = (uint32_t)s->tools_count};
	cleanup_buf struct buf text = BUF_INIT(2 * (size_t)GATEWAY_CATALOG_MAX);
	cleanup_close int fd = fd_memfd("tools", MFD_ALLOW_SEALING);
	int r = fd;

	(void)!str_copy(event.server, sizeof(event.server), s->spec->name);
	if (r >= 0)
		r = buf_add(&text, "[", 1);
	if (r >= 0)
		r = tools_add(s, NULL, &text);
	if (r >= 0)
		r = buf_add(&text, "]", 1);
	if (r >= 0)
		r = fd_write_all(fd, text.data, text.len);
	if (r >= 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		log_warn("tools of %s: %s, ignoring", s->spec->name, strerror(-r));
	else
		control_send(s->gateway, &event, fd);
}

static void accept_list(struct server *s)
{
	tools_free(s->tools, s->tools_count);
	s->tools = TAKE_PTR(s->listed);
	s->tools_count = s->listed_count;
	s->listed_count = s->listed_bytes = s->pages = 0;
	s->is_listing = false;
	s->listed_us = clock_us();
	publish_tools(s);
	server_ready(s);
}

static void add_tool(struct server *s, const char *name, const struct scan_value *tool)
{
	size_t count = s->listed_count;

	/* Of two with one name, neither the box nor its operator could say which is meant. */
	for (size_t i = 0; i < count; i++)
		if (str_equal(s->listed[i].name, name))
			return;
	s->listed = xrealloc_array(s->listed, count + 1, sizeof(*s->listed));
	s->listed[count] = (struct tool){xstrdup(name), xmemdup0(tool->at, tool->len), tool->len};
	s->listed_count++;
	s->listed_bytes += tool->len + 1;
}

static bool read_name(const struct scan_value *tool, char ret_name[GATEWAY_TOOL_LEN])
{
	static const char *const names[] = {"name"};
	struct scan_value member;

	return tool->kind == SCAN_OBJECT && scan_members(tool, names, 1, &member) >= 0 &&
	       scan_string(&member, ret_name, GATEWAY_TOOL_LEN) >= 0 && tools_is_name(ret_name);
}

/* Return: 0, or -E2BIG. */
static int take_page(struct server *s, const struct scan_value *tools)
{
	char name[GATEWAY_TOOL_LEN];
	struct scan_value tool;
	size_t pos = 0, unnamed = 0;

	while (scan_next(tools, &pos, &tool)) {
		if (!read_name(&tool, name)) {
			unnamed++;
			continue;
		}
		if (s->listed_count == GATEWAY_TOOLS_MAX ||
		    s->listed_bytes + tool.len > GATEWAY_CATALOG_MAX - 2)
			return -E2BIG;
		add_tool(s, name, &tool);
	}
	if (unnamed > 0)
		log_warn("%s has %zu tools without a usable name, ignoring", s->spec->name,
		         unnamed);
	return 0;
}

static call_fn on_page;

static void request_page(struct server *s, const struct scan_value *cursor)
{
	cleanup_free char *params =
		cursor->kind == SCAN_STRING
			? xasprintf("{\"cursor\":%.*s}", (int)cursor->len, cursor->at)
			: xstrdup("{}");

	call_request(s, "tools/list", params, LIST_TIMEOUT_US, on_page);
}

static void on_page(void *ctx, const struct call_result *result)
{
	static const char *const names[] = {"tools", "nextCursor"};
	struct server *s = ctx;
	struct scan_value part[2];

	if (!s->is_open) /* it failed, and the list with it */
		return;
	if (result->outcome != GATEWAY_OK ||
	    scan_members(&result->value, names, ARRAY_SIZE(names), part) < 0) {
		server_fail(s, "tools/list: %s", result->text ? result->text : "no list of tools");
		return;
	}
	if (take_page(s, &part[0]) < 0 || ++s->pages == PAGES_MAX || part[1].len > CURSOR_MAX) {
		server_fail(s, "has more than %u tools, or more than %u bytes of them",
		            GATEWAY_TOOLS_MAX, GATEWAY_CATALOG_MAX);
		return;
	}
	if (part[1].kind == SCAN_STRING && part[1].len > 2)
		request_page(s, &part[1]);
	else
		accept_list(s);
}

void tools_request(struct server *s)
{
	const struct scan_value none = {.kind = SCAN_ABSENT};

	if (s->is_listing)
		return;
	s->is_listing = true;
	tools_free(TAKE_PTR(s->listed), s->listed_count);
	s->listed_count = s->listed_bytes = s->pages = 0;
	request_page(s, &none);
}

void tools_changed(struct server *s)
{
	if (s->is_list_due)
		return;
	if (clock_us() - s->listed_us >= LIST_PAUSE_US) {
		tools_request(s);
		return;
	}
	s->is_list_due = true;
	timer_start(s->timer, LIST_PAUSE_US);
}
