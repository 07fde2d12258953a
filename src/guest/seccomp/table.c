/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/seccomp/table.h"

#include <ctype.h>
#include <limits.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>

#include "guest/seccomp/names.h"

struct word {
	const char *text;
	enum action_kind kind;
};

static const struct word actions[] = {
	{"allow", ACTION_ALLOW},
	{"refuse", ACTION_REFUSE},
	{"agent", ACTION_AGENT},
	{"zygote", ACTION_ZYGOTE},
};

static int digit_value(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : INT_MAX;
}

/* A name, or a number in C notation. */
static uint64_t parse_value(unsigned line, const char *text)
{
	uint64_t value = 0;
	const char *digits = text;
	int base = 10;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i].name, text) == 0)
			return names[i].value;
	if (text[0] == '0' && text[1] != '\0') {
		base = text[1] == 'x' ? 16 : 8;
		digits += text[1] == 'x' ? 2 : 1;
	}
	if (*digits == '\0')
		fail(line, "expected a name or a number");
	for (; *digits != '\0'; digits++) {
		int digit = digit_value(*digits);
		if (digit >= base || value > (UINT64_MAX >> 5))
			fail(line, "neither a known name nor a number: '%s'", text);
		value = value * (uint64_t)base + (uint64_t)digit;
	}
	return value;
}

/* "int1&0170000=S_IFIFO" */
static void parse_condition(unsigned line, char *text, struct condition *ret)
{
	char *value = strchr(text, '=');
	char *mask = NULL;
	size_t prefix = 0;

	if (!value)
		fail(line, "'%s' has no '='", text);
	*value++ = '\0';
	mask = strchr(text, '&');
	if (mask)
		*mask++ = '\0';
	ret->wide = strncmp(text, "long", 4) == 0;
	prefix = ret->wide ? 4 : 3;
	if (!ret->wide && strncmp(text, "int", 3) != 0)
		fail(line, "'%s' is neither intN nor longN", text);
	if (text[prefix] < '0' || text[prefix] > '5' || text[prefix + 1] != '\0')
		fail(line, "'%s' names no argument", text);
	ret->arg = (unsigned)(text[prefix] - '0');
	ret->mask = mask ? parse_value(line, mask) : UINT64_MAX;
	ret->value = parse_value(line, value);
	if (!ret->wide) {
		if (ret->value > UINT32_MAX || (mask && ret->mask > UINT32_MAX))
			fail(line, "'%s' does not fit an int", value);
		ret->mask &= UINT32_MAX;
	}
	if ((ret->value & ~ret->mask) != 0)
		fail(line, "can never hold: value has bits outside of the mask");
}

static void parse_action(unsigned line, const char *text, struct rule *ret)
{
	const char *name = strchr(text, ':');

	if (name && (strncmp(text, "error:", 6) == 0 || strncmp(text, "uncharged:", 10) == 0)) {
		ret->kind = text[0] == 'e' ? ACTION_ERRNO : ACTION_UNCHARGED;
		ret->sys = (uint32_t)parse_value(line, name + 1);
		return;
	}
	if (strcmp(text, "ignore") == 0) {
		ret->kind = ACTION_ERRNO;
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (strcmp(actions[i].text, text) == 0) {
			ret->kind = actions[i].kind;
			return;
		}
	}
	fail(line, "unknown action '%s'", text);
}

/* Return: the number; negative: this architecture lacks it. */
static int parse_call(unsigned line, char *text)
{
	char *given = strchr(text, '=');
	int number = 0;

	if (given)
		*given++ = '\0';
	number = seccomp_syscall_resolve_name(text);
	if (number == __NR_SCMP_ERROR) {
		if (!given)
			fail(line, "unknown call '%s'", text);
		number = (int)parse_value(line, given);
	}
	if (number >= NUMBERS_MAX)
		fail(line, "call '%s' has number %d, beyond the table", text, number);
	return number;
}

static void parse_line(unsigned line, char *text, struct table *table)
{
	char *reason = strstr(text, " -- ");
	char *save = NULL;
	struct rule rule = {0};

	if (!reason || reason[4] == '\0' || reason[4] == '\n')
		fail(line, "a rule without a reason");
	*reason = '\0';

	char *action = strtok_r(text, " \t", &save);
	char *call = strtok_r(NULL, " \t", &save);
	if (!action || !call)
		fail(line, "expected ACTION CALL");
	parse_action(line, action, &rule);
	rule.number = parse_call(line, call);
	for (char *word = strtok_r(NULL, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
		if (rule.count == CONDITIONS_MAX)
			fail(line, "more than %d conditions", CONDITIONS_MAX);
		parse_condition(line, word, &rule.conditions[rule.count++]);
	}
	if (rule.number < 0)
		return;
	if (table->count == RULES_MAX)
		fail(line, "more than %d rules", RULES_MAX);
	table->rules[table->count++] = rule;
}

/* Can both be in one program? */
static bool compete(const struct rule *a, const struct rule *b)
{
	return a->number == b->number &&
	       (a->kind == ACTION_UNCHARGED) == (b->kind == ACTION_UNCHARGED);
}

/* A rule after an unconditional one is a mistake. */
static void check_reachable(const struct table *table)
{
	for (unsigned i = 0; i < table->count; i++) {
		const struct rule *r = &table->rules[i];
		if (r->count > 0 || r->kind == ACTION_AGENT || r->kind == ACTION_ZYGOTE)
			continue;
		for (unsigned j = i + 1; j < table->count; j++)
			if (compete(r, &table->rules[j]))
				fail(0, "rule %u of call %d hides rule %u", i, r->number, j);
	}
}

void table_read(FILE *f, struct table *table)
{
	char text[512];
	unsigned line = 0;

	while (fgets(text, sizeof(text), f)) {
		line++;
		if (!strchr(text, '\n'))
			fail(line, "line too long");
		size_t start = strspn(text, " \t\n");
		if (text[start] == '\0' || text[start] == '#')
			continue;
		parse_line(line, text + start, table);
	}
	check_reachable(table);
}
