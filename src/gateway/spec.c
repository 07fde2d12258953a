/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/spec.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include <errno.h>
#include <string.h>

#define TEXTS_MAX 1024

struct head {
	uint32_t op;
	uint32_t calls;
	uint32_t argc, envc, headerc;
	uint32_t timeout_ms;
};

struct server_spec *spec_new(void)
{
	struct server_spec *s = NEW(struct server_spec);

	s->name = xstrdup("");
	s->url = xstrdup("");
	s->problem = xstrdup("");
	s->argv = xcalloc(1, sizeof(*s->argv));
	s->env = xcalloc(1, sizeof(*s->env));
	s->headers = xcalloc(1, sizeof(*s->headers));
	return s;
}

void spec_wipe_list(char **list)
{
	for (char **item = list; item && *item; item++)
		explicit_bzero(*item, strlen(*item));
	str_list_free(list);
}

static void clear(struct server_spec *s)
{
	free(s->name);
	free(s->url);
	free(s->problem);
	str_list_free(s->argv);
	spec_wipe_list(s->env);
	spec_wipe_list(s->headers);
}

void spec_free(struct server_spec *s)
{
	if (!s)
		return;
	clear(s);
	free(s);
}

char *spec_url(const struct server_spec *s)
{
	return s->url[0] ? xstrdup(s->url) : xasprintf("mcp://%s", s->name);
}

bool spec_is_name(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len < GATEWAY_SERVER_LEN && text[0] >= 'a' && text[0] <= 'z' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

static int add_text(struct buf *b, const char *text)
{
	return buf_add(b, text, strlen(text) + 1);
}

static int add_list(struct buf *b, char *const *list)
{
	int r = 0;

	for (; *list && r >= 0; list++)
		r = add_text(b, *list);
	return r;
}

int spec_write(const struct server_spec *s, struct buf *ret_message)
{
	const struct head head = {
		.op = GATEWAY_SERVER,
		.calls = s->calls,
		.argc = (uint32_t)str_list_count(s->argv),
		.envc = (uint32_t)str_list_count(s->env),
		.headerc = (uint32_t)str_list_count(s->headers),
		.timeout_ms = (uint32_t)(s->timeout_us / USEC_PER_MS),
	};

	*ret_message = BUF_INIT(GATEWAY_MESSAGE_MAX);
	if (buf_add(ret_message, &head, sizeof(head)) < 0 || add_text(ret_message, s->name) < 0 ||
	    add_text(ret_message, s->url) < 0 || add_text(ret_message, s->problem) < 0 ||
	    add_list(ret_message, s->argv) < 0 || add_list(ret_message, s->env) < 0 ||
	    add_list(ret_message, s->headers) < 0)
		return -ENOBUFS;
	return 0;
}

struct reader {
	const char *at, *end;
};

/* Return: owned, or NULL if it is cut off. */
static char *read_text(struct reader *r)
{
	const char *nul = memchr(r->at, '\0', (size_t)(r->end - r->at));
	char *text = nul ? xstrdup(r->at) : NULL;

	r->at = nul ? nul + 1 : r->end;
	return text;
}

static char **read_list(struct reader *r, uint32_t count)
{
	cleanup_str_list char **list = xcalloc((size_t)count + 1, sizeof(*list));

	for (uint32_t i = 0; i < count; i++) {
		list[i] = read_text(r);
		if (!list[i])
			return NULL;
	}
	return TAKE_PTR(list);
}

static int read_texts(struct reader *r, const struct head *head, struct server_spec *s)
{
	*s = (struct server_spec){.calls = head->calls,
	                          .timeout_us = head->timeout_ms * USEC_PER_MS};
	s->name = read_text(r);
	s->url = read_text(r);
	s->problem = read_text(r);
	s->argv = read_list(r, head->argc);
	s->env = read_list(r, head->envc);
	s->headers = read_list(r, head->headerc);
	if (!s->name || !s->url || !s->problem || !s->argv || !s->env || !s->headers)
		return -EINVAL;
	return spec_is_name(s->name) && (s->url[0] || s->argv[0]) ? 0 : -EINVAL;
}

struct server_spec *spec_read(const void *message, size_t len, struct error *err)
{
	attr_cleanup(spec_freep) struct server_spec *s = spec_new();
	struct head head;
	struct reader r = {(const char *)message + sizeof(head), (const char *)message + len};

	if (len < sizeof(head)) {
		error_set(err, ERR_INVALID, 0, "server of %zu bytes", len);
		return NULL;
	}
	memcpy(&head, message, sizeof(head));
	if (head.argc > TEXTS_MAX || head.envc > TEXTS_MAX || head.headerc > TEXTS_MAX) {
		error_set(err, ERR_INVALID, 0, "server with too many texts");
		return NULL;
	}
	clear(s);
	if (read_texts(&r, &head, s) < 0) {
		error_set(err, ERR_INVALID, 0, "server is cut off, or lacks a name or a way");
		return NULL;
	}
	return TAKE_PTR(s);
}
