/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/head.h"

#include "base/parse.h"
#include "base/str.h"
#include <string.h>
#include <strings.h>

#define HTTP_PORT       80
#define HTTPS_PORT      443
#define SCHEME          "http://"
#define LENGTH_TEXT_LEN 20 /* 19 digits and NUL */

/* A part of the input. */
struct span {
	const char *at;
	size_t len;
};

struct parser {
	struct head head;
	bool has_host, has_upgrade;
};

static int refuse(struct error *err, const char *why)
{
	return error_set(err, ERR_INVALID, 0, "%s", why);
}

static bool is_token_char(char c)
{
	return c > ' ' && c < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

static bool is_token(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_token_char(s.at[i]))
			return false;
	return s.len > 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct span trim(struct span s)
{
	while (s.len > 0 && is_blank(s.at[0]))
		s = (struct span){s.at + 1, s.len - 1};
	while (s.len > 0 && is_blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

static bool span_is(struct span s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

static bool span_has_prefix(struct span s, const char *prefix)
{
	size_t len = strlen(prefix);

	return s.len >= len && strncasecmp(s.at, prefix, len) == 0;
}

/* Cuts the part before @separator off; the whole and nothing left if there is none. */
static struct span cut(struct span *s, char separator)
{
	const char *at = s->len ? memchr(s->at, separator, s->len) : NULL;
	struct span part = {s->at, at ? (size_t)(at - s->at) : s->len};
	size_t used = part.len + (at ? 1 : 0);

	*s = (struct span){s->at + used, s->len - used};
	return part;
}

/* The request line. */

static int parse_method(struct parser *p, struct span method, struct error *err)
{
	static const char *const echoing[] = {"TRACE", "TRACK"};

	if (method.len == 0 || method.len > HEAD_METHOD_MAX)
		return refuse(err, "the method has no letters, or more than 20");
	for (size_t i = 0; i < method.len; i++)
		if ((method.at[i] < 'A' || method.at[i] > 'Z') && method.at[i] != '-')
			return refuse(err, "the method is not upper-case letters and hyphens");
	memcpy(p->head.method, method.at, method.len);
	p->head.method[method.len] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(echoing); i++)
		if (str_equal(p->head.method, echoing[i]))
			return refuse(err, "TRACE and TRACK are not supported");
	p->head.is_connect = str_equal(p->head.method, "CONNECT");
	return 0;
}

static int parse_path(struct parser *p, struct span path, struct error *err)
{
	if (path.len == 0)
		path = (struct span){"/", 1};
	if (path.at[0] != '/')
		return refuse(err, "the URL has no slash behind the host");
	for (size_t i = 0; i < path.len; i++) {
		if (path.at[i] <= ' ' || path.at[i] >= 0x7f)
			return refuse(err, "the URL has a byte outside of visible ASCII");
		if (path.at[i] == '#')
			return refuse(err, "the URL has a fragment");
	}
	p->head.path = path.at;
	p->head.path_len = path.len;
	return 0;
}

static int parse_url(struct parser *p, struct span url, struct error *err)
{
	size_t len = 0;

	if (url.len > 0 && url.at[0] == '/')
		return refuse(err, "this is a proxy: the request needs a whole URL");
	if (!span_has_prefix(url, SCHEME))
		return refuse(err, "the URL does not begin with http:// (https needs CONNECT)");
	url = (struct span){url.at + strlen(SCHEME), url.len - strlen(SCHEME)};
	while (len < url.len && !strchr("/?#", url.at[len]))
		len++;
	if (len > 0 && memchr(url.at, '@', len))
		return refuse(err, "the URL has user information");
	if (target_parse(url.at, len, HTTP_PORT, &p->head.target, err) < 0)
		return error_wrap(err, "URL");
	return parse_path(p, (struct span){url.at + len, url.len - len}, err);
}

static uint16_t default_port(const struct head *head)
{
	return head->is_inside ? HTTPS_PORT : HTTP_PORT;
}

static int parse_inside(struct parser *p, struct span target, struct error *err)
{
	if (p->head.is_connect)
		return refuse(err, "a tunnel inside of a tunnel");
	if (target.len == 0)
		return refuse(err, "the request has no path");
	return parse_path(p, target, err);
}

static int parse_request_line(struct parser *p, struct span line, struct error *err)
{
	struct span method = cut(&line, ' '), target = cut(&line, ' ');

	if (parse_method(p, method, err) < 0)
		return -1;
	p->head.is_http10 = line.len == 8 && memcmp(line.at, "HTTP/1.0", 8) == 0;
	if (!p->head.is_http10 && (line.len != 8 || memcmp(line.at, "HTTP/1.1", 8) != 0))
		return refuse(err, "the request line does not end with HTTP/1.1 or HTTP/1.0");
	if (p->head.is_inside)
		return parse_inside(p, target, err);
	if (!p->head.is_connect)
		return parse_url(p, target, err);
	if (target_parse(target.at, target.len, 0, &p->head.target, err) < 0)
		return error_wrap(err, "CONNECT");
	return 0;
}

/* The fields that the proxy acts on. */

static int take_host(struct parser *p, struct span value, struct error *err)
{
	const struct target *target = &p->head.target;
	struct target host;

	if (p->has_host)
		return refuse(err, "Host is repeated");
	p->has_host = true;
	if (target_parse(value.at, value.len,
	                 p->head.is_connect ? target->port : default_port(&p->head), &host,
	                 err) < 0)
		return error_wrap(err, "Host");
	if (!target_equal(&host, target))
		return refuse(err, "Host differs from the target of the request");
	return 0;
}

static int take_length(struct parser *p, struct span value, struct error *err)
{
	char text[LENGTH_TEXT_LEN];

	if (p->head.has_length || p->head.chunked)
		return refuse(err, "the length of the body is given more than once");
	p->head.has_length = true;
	if (value.len == 0 || value.len >= sizeof(text) || (value.at[0] == '0' && value.len > 1))
		return refuse(err, "Content-Length is not a decimal number");
	memcpy(text, value.at, value.len);
	text[value.len] = '\0';
	if (strlen(text) != value.len || parse_u64(text, &p->head.length) < 0 ||
	    p->head.length > INT64_MAX)
		return refuse(err, "Content-Length is not a decimal number");
	return 0;
}

static int take_coding(struct parser *p, struct span value, struct error *err)
{
	if (p->head.has_length || p->head.chunked)
		return refuse(err, "the length of the body is given more than once");
	if (p->head.is_http10)
		return refuse(err, "HTTP/1.0 has no Transfer-Encoding");
	if (!span_is(value, "chunked"))
		return refuse(err, "Transfer-Encoding is not chunked");
	p->head.chunked = true;
	return 0;
}

static int take_upgrade(struct parser *p, struct span value, struct error *err)
{
	if (p->has_upgrade || !span_is(value, "h2c"))
		return refuse(err, "Upgrade is not supported; use CONNECT");
	p->has_upgrade = true;
	return 0;
}

/* Dropping the length would turn the body into a request of its own. */
static int take_connection(struct parser *p attr_unused, struct span value, struct error *err)
{
	static const char *const kept[] = {"Host", "Content-Length", "Transfer-Encoding"};
	size_t count = 0;

	while (value.len > 0) {
		struct span name = trim(cut(&value, ','));

		if (++count > HEAD_CONNECTION)
			return refuse(err, "Connection has too many names");
		if (name.len > 0 && !is_token(name))
			return refuse(err, "Connection is not a list of names");
		for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
			if (span_is(name, kept[i]))
				return refuse(err, "Connection names Host or the length");
	}
	return 0;
}

static const struct {
	const char *name;
	int (*take)(struct parser *p, struct span value, struct error *err);
} known_fields[] = {
	{"Host", take_host},
	{"Content-Length", take_length},
	{"Transfer-Encoding", take_coding},
	{"Upgrade", take_upgrade},
	{"Connection", take_connection},
};

static struct span field_name(const struct head_field *f)
{
	return (struct span){f->name, f->name_len};
}

static struct span field_value(const struct head_field *f)
{
	return (struct span){f->value, f->value_len};
}

static int parse_field(struct parser *p, struct span line, struct error *err)
{
	struct span name, value = line;

	if (is_blank(line.at[0]))
		return refuse(err, "a header is folded");
	if (!memchr(line.at, ':', line.len))
		return refuse(err, "a header has no colon");
	name = cut(&value, ':');
	value = trim(value);
	if (!is_token(name))
		return refuse(err, "the name of a header is not a token");
	if (p->head.field_count == HEAD_FIELDS)
		return refuse(err, "the request has more than 128 headers");
	p->head.fields[p->head.field_count++] =
		(struct head_field){name.at, value.at, name.len, value.len};
	for (size_t i = 0; i < ARRAY_SIZE(known_fields); i++)
		if (span_is(name, known_fields[i].name))
			return known_fields[i].take(p, value, err);
	return 0;
}

/* Lines. */

/* A bare LF is found before the head is complete: who ends lines so never completes it. */
static int check_line_ends(struct span s, struct error *err)
{
	const char *end = s.at + s.len;

	for (const char *at = s.at; at < end; at++) {
		at = memchr(at, '\n', (size_t)(end - at));
		if (!at)
			break;
		if (at == s.at || at[-1] != '\r')
			return refuse(err, "a line ends with LF, not CRLF");
	}
	return 0;
}

static int check_bytes(struct span line, struct error *err)
{
	for (size_t i = 0; i < line.len; i++) {
		unsigned char c = (unsigned char)line.at[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return refuse(err, "the request has a control character");
	}
	return 0;
}

static int check_whole(const struct parser *p, struct error *err)
{
	const struct head *h = &p->head;

	if (!p->has_host && !h->is_connect && !h->is_http10)
		return refuse(err, "Host is missing");
	if (h->is_connect && (h->chunked || h->length > 0))
		return refuse(err, "CONNECT has no body");
	return 0;
}

/* @head: up to and with the CRLF of its last line, without the empty one. */
static int parse_lines(struct parser *p, struct span head, struct error *err)
{
	bool first = true;

	while (head.len > 0) {
		struct span line = cut(&head, '\n');

		line.len--; /* check_line_ends() found CR there */
		if (check_bytes(line, err) < 0)
			return -1;
		if (first ? parse_request_line(p, line, err) < 0 : parse_field(p, line, err) < 0)
			return -1;
		first = false;
	}
	return check_whole(p, err);
}

int head_parse(const char *data, size_t len, const struct target *inside, struct head *ret,
               struct error *err)
{
	struct span input = {data, len < HEAD_MAX ? len : HEAD_MAX};
	struct parser p;
	const char *end;

	if (len == 0)
		return 0;
	end = memmem(input.at, input.len, "\r\n\r\n", 4);
	if (end)
		input.len = (size_t)(end - data) + 2;
	if (check_line_ends(input, err) < 0)
		return -1;
	if (!end && len >= HEAD_MAX)
		return error_set(err, ERR_TOO_LARGE, 0, "the head has more than %d bytes",
		                 HEAD_MAX);
	if (!end)
		return 0;
	p = (struct parser){.head.is_inside = inside != NULL};
	if (inside)
		p.head.target = *inside;
	if (parse_lines(&p, input, err) < 0)
		return -1;
	p.head.size = input.len + 2;
	*ret = p.head;
	return 1;
}

/* Written anew, or only between the client and the proxy. */
static bool is_dropped_always(struct span name)
{
	static const char *const names[] = {
		"Connection", "Content-Length",    "Host",    "HTTP2-Settings", "Keep-Alive", "TE",
		"Trailer",    "Transfer-Encoding", "Upgrade",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (span_is(name, names[i]))
			return true;
	return span_has_prefix(name, "Proxy-");
}

/* Servers, and frameworks on them, that take one of these for the method or the path would do what
 * no rule has seen. */
static const char *const overrides[] = {
	"X-HTTP-Method",      "X-HTTP-Method-Override", "X-Method-Override", "X-Method",
	"X-Original-Method",  "X-Forwarded-Method",     "X-Original-URL",    "X-Original-URI",
	"X-Original-Path",    "X-Rewrite-URL",          "X-Rewrite-URI",     "X-Override-URL",
	"X-Forwarded-URI",    "X-Forwarded-URL",        "X-Forwarded-Path",  "X-Forwarded-Prefix",
	"X-Forwarded-Script", "X-Request-URI",          "X-Proxy-URL",       "Script-Name",
	"Path-Info",
};

/* CGI makes one of hyphen and underscore. */
static bool names_equal(struct span name, const char *word)
{
	size_t i = 0;

	for (; i < name.len && word[i]; i++) {
		char c = name.at[i];

		if (c == '_')
			c = '-';
		if (strncasecmp(&c, &word[i], 1) != 0)
			return false;
	}
	return i == name.len && !word[i];
}

static bool is_override(struct span name)
{
	for (size_t i = 0; i < ARRAY_SIZE(overrides); i++)
		if (names_equal(name, overrides[i]))
			return true;
	return false;
}

static bool connection_names(const struct head *head, struct span name)
{
	for (size_t i = 0; i < head->field_count; i++) {
		struct span list = field_value(&head->fields[i]);

		if (!span_is(field_name(&head->fields[i]), "Connection"))
			continue;
		while (list.len > 0) {
			struct span item = trim(cut(&list, ','));

			if (item.len == name.len && strncasecmp(item.at, name.at, name.len) == 0)
				return true;
		}
	}
	return false;
}

static int write_framing(const struct head *head, struct buf *to)
{
	if (head->chunked)
		return buf_add_str(to, "Transfer-Encoding: chunked\r\n");
	if (head->has_length)
		return buf_addf(to, "Content-Length: %" PRIu64 "\r\n", head->length);
	return 0;
}

static int write_field(const struct head_field *f, const struct head_edit *edit, struct buf *to)
{
	int r = edit ? edit->field(edit->ctx, f, to) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	return buf_addf(to, "%.*s: %.*s\r\n", (int)f->name_len, f->name, (int)f->value_len,
	                f->value);
}

int head_write_origin(const struct head *head, const struct head_edit *edit, struct buf *to)
{
	char host[TARGET_TEXT_LEN];
	int r;

	assert(!head->is_connect);
	target_format(&head->target, default_port(head), host);
	r = buf_addf(to, "%s %.*s HTTP/1.%c\r\nHost: %s\r\nConnection: close\r\n", head->method,
	             (int)head->path_len, head->path, head->is_http10 ? '0' : '1', host);
	for (size_t i = 0; i < head->field_count && r == 0; i++) {
		const struct head_field *f = &head->fields[i];

		if (is_dropped_always(field_name(f)) || connection_names(head, field_name(f)) ||
		    (head->is_judged && is_override(field_name(f))))
			continue;
		r = write_field(f, edit, to);
	}
	if (r == 0 && edit)
		r = edit->end(edit->ctx, to);
	if (r == 0)
		r = write_framing(head, to);
	return r < 0 ? r : buf_add_str(to, "\r\n");
}
