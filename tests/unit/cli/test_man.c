/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "cli/command.h"

/* The manual page and the tables say the same: each command that has options has a section, and
 * the section has an entry for each option, and for no other. */

struct page {
	struct buf text;
};

static void page_read(struct page *page)
{
	buf_init(&page->text, 1 << 20);
	assert_int_equal(file_read_at(AT_FDCWD, MAN_PAGE, &page->text), 0);
}

/* The text below "# NAME IN CAPITALS", up to the next heading; NULL: no such section. Owned. */
static char *section(const struct page *page, const char *name)
{
	char *heading = xasprintf("\n# %s\n", name);
	const char *start, *end;

	for (char *c = heading; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	start = strstr(page->text.data, heading);
	if (start)
		start += strlen(heading);
	free(heading);
	if (!start)
		return NULL;
	end = strstr(start, "\n# ");
	return end ? xstrndup(start, (size_t)(end - start)) : xstrdup(start);
}

/* The first line of an option's entry. */
static char *entry(const struct option_row *row)
{
	cleanup_free char *letter = row->letter ? xasprintf("*-%c*, ", row->letter) : xstrdup("");
	cleanup_free char *value = row->value ? xasprintf(" _%s_", row->value) : xstrdup("");

	return xasprintf("\n%s*--%s*%s\n", letter, row->name, value);
}

/* Counts the lines of a section that begin with an option. */
static size_t count_entries(const char *text)
{
	size_t count = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, "*-", 2) == 0 &&
		    isalpha((unsigned char)line[2 + (line[2] == '-')]))
			count++;
	}
	return count;
}

static void every_option_has_exactly_one_entry(void **state)
{
	const struct command *command;
	struct page page;

	(void)state;
	page_read(&page);
	for (size_t i = 0; (command = commands_at(i)); i++) {
		cleanup_free char *text = section(&page, command->name);

		if (command->options.count == 0)
			continue;
		assert_non_null(text);
		for (size_t j = 0; j < command->options.count; j++) {
			cleanup_free char *line = entry(&command->options.rows[j]);

			if (!strstr(text, line))
				fail_msg("section '%s' has no entry%s", command->name, line);
		}
		assert_int_equal(count_entries(text), command->options.count);
	}
	buf_done(&page.text);
}

static void every_command_is_in_the_synopsis(void **state)
{
	const struct command *command;
	struct page page;
	char *text;

	(void)state;
	page_read(&page);
	text = section(&page, "synopsis");
	assert_non_null(text);
	for (size_t i = 0; (command = commands_at(i)); i++) {
		cleanup_free char *line = xasprintf("*millibox* *%s*", command->name);

		if (!strstr(text, line))
			fail_msg("the synopsis lacks %s", line);
	}
	free(text);
	buf_done(&page.text);
}

static void every_exit_status_has_an_entry(void **state)
{
	const struct exit_row *row;
	struct page page;
	char *text;

	(void)state;
	page_read(&page);
	text = section(&page, "exit status");
	assert_non_null(text);
	for (size_t i = 0; (row = exit_status_row(i)); i++) {
		cleanup_free char *entry_text =
			xasprintf("\n*%s*\n\t%s\n", row->status, row->meaning);

		if (!strstr(text, entry_text))
			fail_msg("the exit statuses lack%s", entry_text);
	}
	free(text);
	buf_done(&page.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_has_exactly_one_entry),
		cmocka_unit_test(every_command_is_in_the_synopsis),
		cmocka_unit_test(every_exit_status_has_an_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
