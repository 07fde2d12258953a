/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/yamldoc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"

/* libyaml's events are attached to the tree without recursion: a counter bounds the depth, not the
 * stack. Keys and values alternate in a mapping; builder.key keeps a key for its value. */

struct builder {
	const char *name; /* of the file */
	struct error *err;
	struct yamldoc_node *root;
	struct yamldoc_node *open; /* being filled; NULL before and after */
	char *key;                 /* owned; waits for its value */
	unsigned key_line;
	unsigned depth;
	unsigned nodes;
	bool done;
};

static const char *const kind_names[] = {
	[YAMLDOC_SCALAR] = "a value",
	[YAMLDOC_LIST] = "a list",
	[YAMLDOC_MAPPING] = "a mapping",
};
static_assert(ARRAY_SIZE(kind_names) == YAMLDOC_KIND_COUNT, "every kind has a name");

const char *yamldoc_kind_name(enum yamldoc_kind kind)
{
	return kind_names[kind];
}

void yamldoc_free(struct yamldoc_node *root)
{
	struct yamldoc_node *node = root, *next;

	/* Free children before their parent. */
	for (; node; node = next) {
		while (node->first)
			node = node->first;
		next = node->next ? node->next : node->parent;
		if (node->parent && !node->next)
			node->parent->first = NULL;
		free(node->key);
		free(node->value);
		free(node);
	}
}

static unsigned line_of(const yaml_mark_t *mark)
{
	return mark->line >= UINT_MAX ? UINT_MAX : (unsigned)mark->line + 1;
}

static int attr_printf(3, 4)
	refuse_line(const struct builder *b, unsigned line, const char *fmt, ...)
{
	char what[160];
	va_list args;

	va_start(args, fmt);
	/* May truncate a long key: only people read it. */
	(void)vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	return error_set(b->err, ERR_CONFIG, 0, "%s:%u: %s", b->name, line, what);
}

static bool is_key(const char *key, size_t len)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

	return len > 0 && len <= 64 && strspn(key, letters) >= len;
}

/* The documentation writes nested settings with dots. */
static int refuse_key(const struct builder *b, unsigned line, const char *key)
{
	const char *dot = strchr(key, '.');

	if (dot && is_key(key, (size_t)(dot - key)))
		return refuse_line(
			b, line,
			"a dot means nesting: write '%.*s:' and, indented below it, '%.40s:'",
			(int)(dot - key), key, dot + 1);
	return refuse_line(b, line, "a key is 1 to 64 letters, digits, '_' or '-'");
}

static int take_key(struct builder *b, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	unsigned line = line_of(&event->start_mark);

	if (!is_key(text, event->data.scalar.length))
		return refuse_key(b, line, text);
	for (const struct yamldoc_node *n = b->open->first; n; n = n->next)
		if (str_equal(n->key, text))
			return refuse_line(b, line, "'%s' is given twice (first in line %u)", text,
			                   n->line);
	b->key = xstrdup(text);
	b->key_line = line;
	return 0;
}

static void attach_node(struct builder *b, struct yamldoc_node *node)
{
	node->parent = b->open;
	node->key = TAKE_PTR(b->key);
	if (node->key)
		node->line = b->key_line;
	if (!b->open) {
		b->root = node;
		return;
	}
	if (b->open->last)
		b->open->last->next = node;
	else
		b->open->first = node;
	b->open->last = node;
	b->open->count++;
}

static int add_node(struct builder *b, enum yamldoc_kind kind, const yaml_event_t *event)
{
	struct yamldoc_node *node;
	unsigned line = line_of(&event->start_mark);

	if (++b->nodes > YAMLDOC_NODES_MAX)
		return refuse_line(b, line, "more than %d values", YAMLDOC_NODES_MAX);
	if (!b->open && kind != YAMLDOC_MAPPING)
		return refuse_line(b, line, "expected 'key: value' at the top, found %s",
		                   yamldoc_kind_name(kind));
	node = NEW(struct yamldoc_node);
	node->kind = kind;
	node->line = line;
	attach_node(b, node);
	if (kind == YAMLDOC_SCALAR) {
		node->value = xstrdup((const char *)event->data.scalar.value);
		node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
		return 0;
	}
	if (++b->depth > YAMLDOC_DEPTH_MAX)
		return refuse_line(b, line, "nested deeper than %d", YAMLDOC_DEPTH_MAX);
	b->open = node;
	return 0;
}

static int on_alias(struct builder *b, const yaml_event_t *event)
{
	return refuse_line(b, line_of(&event->start_mark), "anchors and tags are not supported");
}

static int on_scalar(struct builder *b, const yaml_event_t *event)
{
	unsigned line = line_of(&event->start_mark);

	if (event->data.scalar.anchor || event->data.scalar.tag)
		return on_alias(b, event);
	/* A NUL would make the value shorter than the checked one. */
	if (memchr(event->data.scalar.value, 0, event->data.scalar.length))
		return refuse_line(b, line, "a value contains NUL");
	if (b->open && b->open->kind == YAMLDOC_MAPPING && !b->key)
		return take_key(b, event);
	return add_node(b, YAMLDOC_SCALAR, event);
}

static int on_collection(struct builder *b, const yaml_event_t *event)
{
	bool is_list = event->type == YAML_SEQUENCE_START_EVENT;
	enum yamldoc_kind kind = is_list ? YAMLDOC_LIST : YAMLDOC_MAPPING;

	if (is_list ? event->data.sequence_start.anchor || event->data.sequence_start.tag
	            : event->data.mapping_start.anchor || event->data.mapping_start.tag)
		return on_alias(b, event);
	if (b->open && b->open->kind == YAMLDOC_MAPPING && !b->key)
		return refuse_line(b, line_of(&event->start_mark), "a key can't be %s",
		                   yamldoc_kind_name(kind));
	return add_node(b, kind, event);
}

static int on_close(struct builder *b, const yaml_event_t *event attr_unused)
{
	b->open = b->open->parent;
	b->depth--;
	return 0;
}

static int on_document(struct builder *b, const yaml_event_t *event)
{
	if (b->root)
		return refuse_line(b, line_of(&event->start_mark), "more than one document");
	return 0;
}

static int on_end(struct builder *b, const yaml_event_t *event attr_unused)
{
	b->done = true;
	return 0;
}

typedef int event_fn(struct builder *b, const yaml_event_t *event);

/* Other events are ignored. */
static event_fn *const handlers[] = {
	[YAML_STREAM_END_EVENT] = on_end,
	[YAML_DOCUMENT_START_EVENT] = on_document,
	[YAML_ALIAS_EVENT] = on_alias,
	[YAML_SCALAR_EVENT] = on_scalar,
	[YAML_SEQUENCE_START_EVENT] = on_collection,
	[YAML_SEQUENCE_END_EVENT] = on_close,
	[YAML_MAPPING_START_EVENT] = on_collection,
	[YAML_MAPPING_END_EVENT] = on_close,
};

static int parse_event(struct builder *b, yaml_parser_t *parser)
{
	yaml_event_t event;
	bool is_empty;
	int r = 0;

	if (!yaml_parser_parse(parser, &event))
		return refuse_line(b, line_of(&parser->problem_mark), "not YAML: %s",
		                   parser->problem ? parser->problem : "unreadable");
	/* A document without content yields a scalar without a position. */
	is_empty = !b->open && event.type == YAML_SCALAR_EVENT && event.data.scalar.length == 0 &&
	           event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (!is_empty && (size_t)event.type < ARRAY_SIZE(handlers) && handlers[event.type])
		r = handlers[event.type](b, &event);
	yaml_event_delete(&event);
	return r;
}

struct yamldoc_node *yamldoc_parse(const char *data, size_t len, const char *name,
                                   struct error *err)
{
	attr_cleanup(yaml_parser_delete) yaml_parser_t parser = {0};
	struct builder b = {.name = name, .err = err};
	int r = 0;

	if (!yaml_parser_initialize(&parser)) {
		error_set(err, ERR_SYSTEM, ENOMEM, "%s: cannot start the YAML parser", name);
		return NULL;
	}
	/* Do not detect the encoding: UTF-16 would reach the values re-encoded. */
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)data, len);
	while (r >= 0 && !b.done)
		r = parse_event(&b, &parser);
	free(b.key);
	if (r < 0) {
		yamldoc_free(b.root);
		return NULL;
	}
	if (!b.root) {
		b.root = NEW(struct yamldoc_node);
		b.root->kind = YAMLDOC_MAPPING;
		b.root->line = 1;
	}
	return b.root;
}

int yamldoc_read(const char *path, struct buf *ret_text, struct error *err)
{
	int r = file_read_at(AT_FDCWD, path, ret_text);

	if (r < 0)
		return error_set(err, ERR_CONFIG, -r, "read '%s'", path);
	return 0;
}

struct yamldoc_node *yamldoc_load(const char *path, struct error *err)
{
	cleanup_buf struct buf text = BUF_INIT(YAMLDOC_BYTES_MAX);

	if (yamldoc_read(path, &text, err) < 0)
		return NULL;
	return yamldoc_parse(text.data ? text.data : "", text.len, path, err);
}
