/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/servers.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/str.h"
#include "gateway/spec.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define VALUE_MAX    8192
#define FILE_MAX     4096
#define TIMEOUT_MIN  (100 * USEC_PER_MS)
#define TIMEOUT_MAX  (3600 * USEC_PER_SEC)
#define CALLS_MAX    1024
#define PLACE_SECRET "${secret:"
#define PLACE_FILE   "${file:"

/* Where an error is. */
struct reading {
	const char *file;
	const struct yamldoc_node *node;
	struct server_spec *spec;
	struct error *err;
};

static int complain(const struct reading *in, const char *what)
{
	return error_set(in->err, ERR_CONFIG, 0, "%s:%u: gateway.servers.%s: '%s' %s", in->file,
	                 in->node->line, in->spec->name, in->node->key ? in->node->key : "", what);
}

static void append(char ***list, char *item)
{
	size_t count = str_list_count(*list);

	*list = xrealloc_array(*list, count + 2, sizeof(**list));
	(*list)[count] = item;
	(*list)[count + 1] = NULL;
}

/* The content of a file without its last line break, in place of ${file:PATH}. */
static int add_file(const struct reading *in, const char *path, struct buf *to)
{
	cleanup_buf struct buf text = BUF_INIT(FILE_MAX);
	int r = path[0] == '/' ? file_read_at(AT_FDCWD, path, &text) : -EINVAL;

	if (r < 0)
		return error_set(in->err, ERR_CONFIG, -r, "%s:%u: gateway.servers.%s: %s%s}",
		                 in->file, in->node->line, in->spec->name, PLACE_FILE, path);
	while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.len--;
	r = buf_add(to, text.data ? text.data : "", text.len);
	if (text.data)
		explicit_bzero(text.data, text.len);
	return r < 0 ? complain(in, "is too long") : 0;
}

static int fill_places(const struct reading *in, const char *value, struct buf *to)
{
	const char *place;

	while ((place = strstr(value, PLACE_FILE))) {
		const char *path = place + sizeof(PLACE_FILE) - 1;
		cleanup_free char *name = xstrndup(path, strcspn(path, "}"));

		if (path[strlen(name)] != '}')
			return complain(in, "has a ${ without }");
		if (buf_add(to, value, (size_t)(place - value)) < 0)
			return complain(in, "is too long");
		if (add_file(in, name, to) < 0)
			return -1;
		value = path + strlen(name) + 1;
	}
	place = strstr(value, PLACE_SECRET);
	if (place && !strchr(place, '}'))
		return complain(in, "has a ${ without }");
	return buf_add_str(to, value) < 0 ? complain(in, "is too long") : 0;
}

static bool has_controls(const struct buf *b)
{
	for (size_t i = 0; i < b->len; i++)
		if (iscntrl((unsigned char)b->data[i]))
			return true;
	return false;
}

/* NAME=value or "Name: value". */
static int read_pairs(struct reading *in, const char *between, char ***ret)
{
	const struct yamldoc_node *map = in->node;

	if (map->kind != YAMLDOC_MAPPING)
		return complain(in, "must be a mapping of names to values");
	for (in->node = map->first; in->node; in->node = in->node->next) {
		cleanup_buf struct buf text = BUF_INIT(VALUE_MAX);

		if (in->node->kind != YAMLDOC_SCALAR)
			return complain(in, "must be a value");
		if (buf_add_str(&text, in->node->key) < 0 || buf_add_str(&text, between) < 0)
			return complain(in, "is too long");
		if (fill_places(in, in->node->value, &text) < 0)
			return -1;
		if (has_controls(&text))
			return complain(in, "must not have control characters");
		append(ret, xstrdup(text.data));
	}
	in->node = map;
	return 0;
}

static int read_command(struct reading *in)
{
	const struct yamldoc_node *list = in->node;

	if (list->kind != YAMLDOC_LIST || !list->first)
		return complain(in, "must be a list: a program and its arguments");
	for (const struct yamldoc_node *n = list->first; n; n = n->next) {
		if (n->kind != YAMLDOC_SCALAR)
			return complain(in, "must be a list of words");
		append(&in->spec->argv, xstrdup(n->value));
	}
	return in->spec->argv[0][0] ? 0 : complain(in, "must begin with a program");
}

static int read_url(struct reading *in)
{
	const char *url = in->node->kind == YAMLDOC_SCALAR ? in->node->value : "";

	if (!str_has_prefix(url, "https://") && !str_has_prefix(url, "http://"))
		return complain(in, "must begin with https:// or http://");
	if (strpbrk(url, " \t\r\n"))
		return complain(in, "must not have spaces");
	free(in->spec->url);
	in->spec->url = xstrdup(url);
	return 0;
}

static int read_env(struct reading *in)
{
	return read_pairs(in, "=", &in->spec->env);
}

static int read_headers(struct reading *in)
{
	return read_pairs(in, ": ", &in->spec->headers);
}

static int read_timeout(struct reading *in)
{
	uint64_t *us = &in->spec->timeout_us;

	if (in->node->kind != YAMLDOC_SCALAR || parse_duration(in->node->value, us) < 0 ||
	    *us < TIMEOUT_MIN || *us > TIMEOUT_MAX)
		return complain(in, "must be a time like 30s, from 100ms to 1h");
	return 0;
}

static int read_calls(struct reading *in)
{
	uint64_t calls = 0;

	if (in->node->kind != YAMLDOC_SCALAR || parse_u64(in->node->value, &calls) < 0 ||
	    calls < 1 || calls > CALLS_MAX)
		return complain(in, "must be a number from 1 to 1024");
	in->spec->calls = (uint32_t)calls;
	return 0;
}

static const struct {
	const char *key;
	int (*read)(struct reading *in);
} keys[] = {
	{"command", read_command}, {"url", read_url},         {"env", read_env},
	{"headers", read_headers}, {"timeout", read_timeout}, {"max_calls", read_calls},
};

static int read_key(struct reading *in)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (str_equal(keys[i].key, in->node->key))
			return keys[i].read(in);
	return complain(in, "is unknown; known: command, url, env, headers, timeout, max_calls");
}

static int check_server(struct reading *in)
{
	const struct server_spec *s = in->spec;

	if (!s->url[0] == !s->argv[0])
		return complain(in, "needs either a command or a url");
	if (s->url[0] && s->env[0])
		return complain(in, "has env, which only a command has");
	if (!s->url[0] && s->headers[0])
		return complain(in, "has headers, which only a url has");
	return 0;
}

static int read_server(struct reading *in)
{
	const struct yamldoc_node *server = in->node;

	free(in->spec->name);
	in->spec->name = xstrdup(server->key);
	if (!spec_is_name(server->key))
		return complain(in,
		                "must be of a-z, 0-9, _ and -, begin with a letter, and have at "
		                "most 63 of them");
	if (server->kind != YAMLDOC_MAPPING)
		return complain(in, "must be a mapping");
	for (in->node = server->first; in->node; in->node = in->node->next)
		if (read_key(in) < 0)
			return -1;
	in->node = server;
	return check_server(in);
}

int servers_read(struct config *c, const struct yamldoc_node *node, const char *file,
                 struct error *err)
{
	size_t count = 0;

	if (node->kind == YAMLDOC_SCALAR && !*node->value && !node->quoted)
		return 0;
	if (node->kind != YAMLDOC_MAPPING || node->count > GATEWAY_SERVERS_MAX)
		return error_set(err, ERR_CONFIG, 0,
		                 "%s:%u: 'gateway.servers' must be a mapping of at most %u servers",
		                 file, node->line, GATEWAY_SERVERS_MAX);
	c->servers = xcalloc(node->count + 1, sizeof(struct server_spec *));
	for (const struct yamldoc_node *n = node->first; n; n = n->next) {
		struct reading in = {.file = file, .node = n, .spec = spec_new(), .err = err};

		c->servers[count++] = in.spec;
		if (read_server(&in) < 0)
			return -1;
	}
	return 0;
}

void servers_settle(struct config *c)
{
	for (struct server_spec **s = c->servers; s && *s; s++) {
		if (!(*s)->timeout_us)
			(*s)->timeout_us = c->gateway_timeout_us;
		if (!(*s)->calls)
			(*s)->calls = (uint32_t)c->gateway_calls_server;
	}
}

void servers_done(struct config *c)
{
	for (struct server_spec **s = c->servers; s && *s; s++)
		spec_free(*s);
	free(c->servers);
}
