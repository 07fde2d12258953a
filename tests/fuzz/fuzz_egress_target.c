/* SPDX-License-Identifier: Apache-2.0 */
/* Lines: a target, then rules. A target has one form, which is parsed back to the same; a rule that
 * allows it has its name, or contains its address. */
#include <string.h>

#include "base/str.h"
#include "egress/address.h"
#include "egress/rules.h"
#include "egress/target.h"
#include "fuzz.h"

#define LINES_MAX 16

static void check_host(const struct target *t)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
	size_t len = strlen(t->host);
	struct in6_addr a;

	if (t->is_address) {
		require(address_parse(t->host, len, &a) == 0);
		require(memcmp(&a, &t->address, sizeof(a)) == 0);
		return;
	}
	require(len > 0 && strspn(t->host, allowed) == len && t->host[len - 1] != '.');
	require(address_parse(t->host, len, &a) < 0);
}

static bool parse_target(const char *text, size_t len, struct target *ret)
{
	struct error err = {0};
	struct target again;
	char form[TARGET_TEXT_LEN];

	if (target_parse(text, len, 443, ret, &err) < 0) {
		require(error_is_set(&err));
		return false;
	}
	require(!error_is_set(&err) && ret->port > 0);
	check_host(ret);
	target_format(ret, 443, form);
	require(target_parse(form, strlen(form), 443, &again, &err) == 0);
	require(target_equal(ret, &again) && ret->is_address == again.is_address);
	return true;
}

/* By the text of the rule, in another way than the parser does. */
static void check_allowed(const char *rule, const struct target *t)
{
	const char *space = strchr(rule, ' ');
	const char *host = space ? space + 1 : rule;
	bool below = host[0] == '*';
	size_t len, end;

	if (t->is_address) {
		require(host[0] == '[' || (host[0] >= '0' && host[0] <= '9'));
		return;
	}
	host += below ? 2 : 0;
	end = strcspn(host, ":/");
	end -= end > 0 && host[end - 1] == '.';
	len = strlen(t->host);
	require(below ? len > end + 1 && t->host[len - end - 1] == '.' : len == end);
	require(strncasecmp(t->host + len - end, host, end) == 0);
}

static void check_range(const char *text)
{
	struct error err = {0};
	struct cidr c;

	if (cidr_parse(text, &c, &err) < 0) {
		require(error_is_set(&err));
		return;
	}
	require(c.bits <= 128 && cidr_contains(&c, &c.base));
	require(!address_opened_by(&c.base, &c) || address_refusal(&c.base));
}

static void check_rules(const char *const *texts, size_t count, const struct target *t)
{
	struct error err = {0};
	const char *rule = NULL, *path = "/a/b";
	struct rules *r = rules_parse(texts, count, &err);

	require((r == NULL) == error_is_set(&err));
	if (!r)
		return;
	if (rules_match(r, t, "GET", path, strlen(path), &rule) == RULES_ALLOWED)
		check_allowed(rule, t);
	if (rules_match(r, t, NULL, NULL, 0, &rule) == RULES_ALLOWED) {
		check_allowed(rule, t);
		require(!strchr(rule, ' '));
	}
	if (rules_allow_address(r, &t->address, t->port, false))
		require(address_refusal(&t->address));
	rules_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *lines[LINES_MAX];
	size_t count = 0, first = 0;
	char text[2048], *rest = text;
	struct target t;
	bool has_target;

	while (first < size && data[first] != '\n')
		first++;
	has_target = parse_target((const char *)data, first, &t);
	if (first == size)
		return 0;
	fuzz_text(data + first + 1, size - first - 1, text, sizeof(text));
	while (count < LINES_MAX && rest) {
		lines[count++] = strsep(&rest, "\n");
		check_range(lines[count - 1]);
	}
	if (has_target)
		check_rules(lines, count, &t);
	return 0;
}
