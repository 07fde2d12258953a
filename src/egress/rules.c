/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/rules.h"

#include "base/parse.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/utf8.h"
#include "egress/address.h"
#include "egress/head.h"
#include <string.h>

#define CIDR_TEXT_LEN 64

struct rule {
	char *text; /* owned */
	bool is_cidr;
	bool below;                 /* *.host */
	char host[TARGET_HOST_LEN]; /* unless is_cidr */
	struct cidr cidr;
	uint16_t ports[RULES_PORTS];
	size_t port_count;
	const char *methods; /* into text: with commas between; NULL: all */
	size_t methods_len;
	const char *path; /* into text; NULL: all */
	size_t path_len;
	bool prefix; /* the path is one */
	bool raw;    /* tunnels without TLS */
};

struct rules {
	size_t count;
	struct rule rules[];
};

void rules_free(struct rules *r)
{
	for (size_t i = 0; r && i < r->count; i++)
		free(r->rules[i].text);
	free(r);
}

void rules_freep(struct rules **r)
{
	rules_free(*r);
}

static int refuse(struct error *err, const char *why)
{
	return error_set(err, ERR_INVALID, 0, "%s", why);
}

/* Paths. */

#define ESCAPE_LEN 3

/* Return: the byte that the escape at @p stands for, or -1. */
static int read_escape(const char *p, size_t len)
{
	int high = len >= ESCAPE_LEN && p[0] == '%' ? parse_hex_digit(p[1]) : -1;
	int low = high >= 0 ? parse_hex_digit(p[2]) : -1;

	return low < 0 ? -1 : high * 16 + low;
}

/* Servers agree on one character of a name: a plain one, or one of UTF-8 as a whole. What they make
 * of other bytes differs. Return: the length of its escapes, or 0: there is none. */
static size_t plain_escapes(const char *p, size_t len)
{
	char bytes[4];
	size_t count = 0, used;
	bool is_valid = true;
	int c = 0;

	while (count < sizeof(bytes) &&
	       (c = read_escape(p + count * ESCAPE_LEN, len - count * ESCAPE_LEN)) >= 0)
		bytes[count++] = (char)c;
	if (count == 0)
		return 0;
	used = utf8_next(bytes, count, &is_valid);
	c = (unsigned char)bytes[0];
	if (!is_valid || c < ' ' || c == 0x7f || (c < 0x80 && strchr("./\\;%", c)))
		return 0;
	return used * ESCAPE_LEN;
}

/* Without what some servers cut off: parameters behind a semicolon. */
static bool segment_is_plain(const char *p, size_t len, bool last)
{
	const char *parameters = len ? memchr(p, ';', len) : NULL;
	size_t name = parameters ? (size_t)(parameters - p) : len;

	for (size_t i = 0, step = 1; i < len; i += step) {
		step = p[i] == '%' ? plain_escapes(p + i, len - i) : 1;
		if (p[i] == '\\' || step == 0)
			return false;
	}
	if (name == 0)
		return last && len == 0;
	return !(p[0] == '.' && (name == 1 || (name == 2 && p[1] == '.')));
}

/* All servers agree which resource it names. */
static bool path_is_plain(const char *path, size_t len)
{
	const char *end = path + len, *at = path;

	if (len == 0 || path[0] != '/')
		return false;
	while (at < end) {
		const char *start = at + 1;
		const char *slash = start < end ? memchr(start, '/', (size_t)(end - start)) : NULL;

		at = slash ? slash : end;
		if (!segment_is_plain(start, (size_t)(at - start), !slash))
			return false;
	}
	return true;
}

static bool path_matches(const struct rule *rule, const char *path, size_t len)
{
	const char *query = len ? memchr(path, '?', len) : NULL;

	if (query)
		len = (size_t)(query - path);
	if (!path_is_plain(path, len) || len < rule->path_len)
		return false;
	return (rule->prefix || len == rule->path_len) &&
	       memcmp(path, rule->path, rule->path_len) == 0;
}

/* Parsing. Each function gets the text at its part and leaves it behind. */

static int parse_methods(struct rule *rule, const char **text, struct error *err)
{
	const char *end = strchr(*text, ' ');
	size_t len = 0;

	if (!end)
		return 0;
	rule->methods = *text;
	rule->methods_len = (size_t)(end - *text);
	for (const char *p = *text; p <= end; p++) {
		if (p < end && *p != ',') {
			len++;
			if ((*p < 'A' || *p > 'Z') && *p != '-')
				return refuse(err, "a method is not upper-case letters");
			continue;
		}
		if (len == 0 || len > HEAD_METHOD_MAX)
			return refuse(err, "a method is empty or longer than 20 characters");
		if (len == strlen("CONNECT") && memcmp(p - len, "CONNECT", len) == 0)
			return refuse(err, "CONNECT is not a method of plain HTTP");
		len = 0;
	}
	*text = end + 1;
	rule->raw = rule->methods_len == strlen("TCP") && memcmp(rule->methods, "TCP", 3) == 0;
	if (rule->raw)
		rule->methods = NULL;
	return 0;
}

static int parse_range(struct rule *rule, const char *text, size_t len, struct error *err)
{
	char copy[CIDR_TEXT_LEN];
	const char *refusal;

	if (len >= sizeof(copy))
		return refuse(err, "the address is too long");
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (cidr_parse(copy, &rule->cidr, err) < 0)
		return -1;
	refusal = cidr_refusal(&rule->cidr);
	if (refusal)
		return error_set(err, ERR_INVALID, 0,
		                 "addresses of this kind (%s) are always refused", refusal);
	rule->is_cidr = true;
	return 0;
}

static int parse_name(struct rule *rule, const char *text, size_t len, struct error *err)
{
	struct target target;

	rule->below = len >= 2 && memcmp(text, "*.", 2) == 0;
	if (rule->below) {
		text += 2;
		len -= 2;
	}
	if (target_parse_host(text, len, false, &target, err) < 0)
		return -1;
	if (target.is_address)
		return refuse(err, "an address has no names below it");
	memcpy(rule->host, target.host, sizeof(rule->host));
	return 0;
}

static int parse_host(struct rule *rule, const char **text, struct error *err)
{
	const char *p = *text;
	size_t len = strcspn(p, ":/");

	if (*p == '[') {
		len = strcspn(p, "]");
		if (p[len] == '\0')
			return refuse(err, "a bracket is not closed");
		if (!memchr(p, ':', len))
			return refuse(err, "no IPv6 address in the brackets");
		*text = p + len + 1;
		return parse_range(rule, p + 1, len - 1, err);
	}
	/* A range, or a name that target_parse_host() refuses for its last label. */
	if (len > 0 && strspn(p, "0123456789.") == len) {
		if (p[len] == '/')
			len += 1 + strcspn(p + len + 1, ":/");
		*text = p + len;
		return parse_range(rule, p, len, err);
	}
	*text = p + len;
	return parse_name(rule, p, len, err);
}

static int parse_ports(struct rule *rule, const char **text, struct error *err)
{
	const char *p = *text;

	if (*p != ':') {
		rule->ports[rule->port_count++] = 80;
		rule->ports[rule->port_count++] = 443;
		return 0;
	}
	do {
		size_t len = strcspn(++p, ",/");

		if (rule->port_count == RULES_PORTS)
			return refuse(err, "more than 16 ports");
		if (target_parse_port(p, len, &rule->ports[rule->port_count++]) < 0)
			return refuse(err, "a port is not a number from 1 to 65535");
		p += len;
	} while (*p == ',');
	*text = p;
	return 0;
}

static int parse_path(struct rule *rule, const char *text, struct error *err)
{
	size_t len = strlen(text);

	if (len == 0)
		return 0;
	rule->path = text;
	rule->prefix = text[len - 1] == '*';
	rule->path_len = len - rule->prefix;
	if (strcspn(text, "?#") != len || memchr(text, '*', rule->path_len))
		return refuse(err,
		              "the path has a query, a fragment or an asterisk before its end");
	if (!path_is_plain(text, rule->path_len))
		return refuse(err, "the path has an empty or dot segment, a backslash, or an "
		                   "escape that no request may have");
	return 0;
}

static int parse_rule(struct rule *rule, struct error *err)
{
	const char *text = rule->text;

	if (strstr(text, "://"))
		return refuse(err, "a rule names a host, like example.org: leave out the scheme, "
		                   "which ends with ://");
	if (parse_methods(rule, &text, err) < 0 || parse_host(rule, &text, err) < 0 ||
	    parse_ports(rule, &text, err) < 0)
		return -1;
	if (*text != '\0' && *text != '/')
		return refuse(err, "more text behind the host");
	if (parse_path(rule, text, err) < 0)
		return -1;
	if (rule->raw && rule->path)
		return refuse(err, "a rule for TCP has no path");
	if (rule->is_cidr && (rule->methods || rule->path))
		return refuse(err, "a rule for addresses has no methods and no path");
	return 0;
}

static bool is_printable(const char *text)
{
	while (*text >= ' ' && *text < 0x7f)
		text++;
	return *text == '\0';
}

struct rules *rules_parse(const char *const *texts, size_t count, struct error *err)
{
	cleanup_rules struct rules *r = NULL;

	if (count > RULES_MAX) {
		(void)error_set(err, ERR_INVALID, 0, "more than %d egress rules", RULES_MAX);
		return NULL;
	}
	r = xcalloc(1, sizeof(*r) + count * sizeof(r->rules[0]));
	for (size_t i = 0; i < count; i++) {
		struct rule *rule = &r->rules[r->count];

		if (strnlen(texts[i], RULES_TEXT_MAX + 1) > RULES_TEXT_MAX ||
		    !is_printable(texts[i])) {
			(void)error_set(err, ERR_INVALID, 0,
			                "egress rule %zu is not text of up to %d characters of "
			                "ASCII",
			                i + 1, RULES_TEXT_MAX);
			return NULL;
		}
		rule->text = xstrdup(texts[i]);
		r->count++;
		if (parse_rule(rule, err) < 0) {
			(void)error_wrap(err, "egress rule '%.100s'", texts[i]);
			return NULL;
		}
	}
	return TAKE_PTR(r);
}

/* Matching. */

static bool host_matches(const struct rule *rule, const struct target *target)
{
	size_t len = strlen(target->host), end = strlen(rule->host);

	if (rule->is_cidr != target->is_address)
		return false;
	if (rule->is_cidr)
		return cidr_contains(&rule->cidr, &target->address);
	if (!rule->below)
		return str_equal(rule->host, target->host);
	return len > end + 1 && target->host[len - end - 1] == '.' &&
	       str_equal(target->host + len - end, rule->host);
}

static bool port_matches(const struct rule *rule, uint16_t port)
{
	for (size_t i = 0; i < rule->port_count; i++)
		if (rule->ports[i] == port)
			return true;
	return false;
}

static bool method_matches(const struct rule *rule, const char *method)
{
	const char *p = rule->methods, *end = p + rule->methods_len;
	size_t len = strlen(method);

	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *stop = comma ? comma : end;

		if ((size_t)(stop - p) == len && memcmp(p, method, len) == 0)
			return true;
		p = stop + 1;
	}
	return false;
}

static enum rules_verdict match_rule(const struct rule *rule, const struct target *target,
                                     const char *method, const char *path, size_t path_len)
{
	if (!host_matches(rule, target))
		return target->is_address ? RULES_ADDRESS : RULES_NO_HOST;
	if (!port_matches(rule, target->port))
		return RULES_PORT;
	if ((rule->methods || rule->path) && !method)
		return RULES_TUNNEL;
	if (rule->raw && method)
		return RULES_METHOD;
	if (rule->methods && !method_matches(rule, method))
		return RULES_METHOD;
	if (rule->path && !path_matches(rule, path, path_len))
		return RULES_PATH;
	return RULES_ALLOWED;
}

enum rules_verdict rules_match(const struct rules *r, const struct target *target,
                               const char *method, const char *path, size_t path_len,
                               const char **ret_rule)
{
	enum rules_verdict best = target->is_address ? RULES_ADDRESS : RULES_NO_HOST;

	*ret_rule = NULL;
	for (size_t i = 0; i < r->count && best != RULES_ALLOWED; i++) {
		enum rules_verdict v = match_rule(&r->rules[i], target, method, path, path_len);

		if (v > best) {
			best = v;
			*ret_rule = r->rules[i].text;
		}
	}
	return best;
}

bool rules_look_inside(const struct rules *r, const struct target *target)
{
	const char *rule;

	return rules_match(r, target, NULL, NULL, 0, &rule) != RULES_ALLOWED;
}

bool rules_allow_address(const struct rules *r, const struct in6_addr *a, uint16_t port,
                         bool by_itself)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct rule *rule = &r->rules[i];

		if (rule->is_cidr && port_matches(rule, port) &&
		    (!by_itself || rule->cidr.bits == 128) && address_opened_by(a, &rule->cidr))
			return true;
	}
	return false;
}

bool rules_allow_raw(const struct rules *r, const struct target *target)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct rule *rule = &r->rules[i];

		if ((rule->raw || rule->is_cidr) && host_matches(rule, target) &&
		    port_matches(rule, target->port))
			return true;
	}
	return false;
}

bool rules_have_address(const struct rules *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->rules[i].is_cidr)
			return true;
	return false;
}

static bool is_plain(const struct rule *rule)
{
	return !rule->is_cidr && !rule->methods && !rule->path && !rule->raw;
}

static bool host_covers(const struct rule *rule, const struct rule *one)
{
	size_t len = strlen(one->host), end = strlen(rule->host);
	bool same = str_equal(rule->host, one->host);

	if (!rule->below || same)
		return same && rule->below == one->below;
	return len > end + 1 && one->host[len - end - 1] == '.' &&
	       str_equal(one->host + len - end, rule->host);
}

static bool covers_port(const struct rules *r, const struct rule *asked, uint16_t port)
{
	for (size_t i = 0; i < r->count; i++)
		if (is_plain(&r->rules[i]) && host_covers(&r->rules[i], asked) &&
		    port_matches(&r->rules[i], port))
			return true;
	return false;
}

bool rules_cover(const struct rules *r, const struct rules *one)
{
	const struct rule *asked = &one->rules[0];

	if (one->count != 1 || !is_plain(asked))
		return false;
	for (size_t i = 0; i < asked->port_count; i++)
		if (!covers_port(r, asked, asked->ports[i]))
			return false;
	return true;
}
