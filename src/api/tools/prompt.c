/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/prompt.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include <string.h>

#define ARGUMENTS_MAX 4 /* the last row of each table is empty */
#define VALUE_MAX     (256u << 10)
#define TEXT_MAX      (2u << 20)

struct prompt_argument {
	const char *name, *help;
	bool required;
	const char *fallback; /* used where it is not given */
};

/* clang-format off */
static const char analyse_text[] =
	"Analyse the data file {path} in the sandbox {sandbox_id}.\n\n"
	"1. Call execute_code with session_id {sandbox_id}: load the file with pandas (or the csv "
	"module if pandas is missing), print its shape, column types, first rows and the number of "
	"missing values. Do not print the whole file.\n"
	"2. Describe the data in a few sentences, and what looks wrong with it.\n"
	"3. {question}\n"
	"4. Draw one or two figures with matplotlib that show the answer; they are returned as "
	"images. Label the axes.\n"
	"5. Summarise the findings, with numbers, and what is uncertain. If a step fails, read "
	"the error, fix the code and run it again.";

static const char debug_text[] =
	"This {language} program fails:\n\n```\n{code}\n```\n\n"
	"Known about the failure: {error}\n\n"
	"1. Create a sandbox (create_sandbox), write the program to /workspace (write_file) and "
	"run it to reproduce the failure. Do not guess before that.\n"
	"2. Find the smallest input that still fails.\n"
	"3. Name the cause and the line.\n"
	"4. Fix only that; run the program again, and the smallest failing input too.\n"
	"5. Show the diff and explain why it is right. Terminate the sandbox at the end.";

static const char tests_text[] =
	"Write tests for this {language} code and run them:\n\n```\n{code}\n```\n\n"
	"1. List the behaviours that matter: ordinary cases, limits, empty and invalid input.\n"
	"2. Create a sandbox, write the code and a test file beside it (write_file). For Python "
	"use unittest, or pytest if it can be imported.\n"
	"3. Run the tests (exec_command) and read their output.\n"
	"4. A failing test is a bug in the code or in the test: decide which and say so. Do not "
	"change the code silently.\n"
	"5. Report what is tested, what failed and what remains untested. Terminate the sandbox at "
	"the end.";

#define LANGUAGE {"language", "The programming language", false, "(find out which language)"}

static const struct prompt {
	const char *name, *title, *description, *text;
	struct prompt_argument arguments[ARGUMENTS_MAX];
} prompts[] = {
	{"analyse_data_file", "Analyse a data file",
	 "Explore a data file in a sandbox and answer a question about it with figures.",
	 analyse_text,
	 {{"path", "Path of the file in /workspace", true, NULL},
	  {"sandbox_id", "The sandbox with the file", true, NULL},
	  {"question", "What you want to know", false,
	   "Find the three most interesting facts in the data."}}},
	{"debug_program", "Debug a failing program",
	 "Reproduce a failure in a sandbox, find its cause, fix it and verify the fix.",
	 debug_text,
	 {{"code", "The program", true, NULL},
	  LANGUAGE,
	  {"error", "The error message or symptom", false, "nothing yet: run the program."}}},
	{"write_and_run_tests", "Write and run tests",
	 "Write tests for some code, run them in a sandbox, and report the results.",
	 tests_text,
	 {{"code", "The code", true, NULL}, LANGUAGE}},
};
/* clang-format on */

static json_t *view_prompt(const struct prompt *p)
{
	json_t *j = json_object(), *list = json_array();

	for (const struct prompt_argument *a = p->arguments; a->name; a++) {
		json_t *argument = json_object();

		json_set(argument, "name", json_string(a->name));
		json_set(argument, "description", json_string(a->help));
		json_set(argument, "required", json_boolean(a->required));
		(void)!json_array_append_new(list, argument);
	}
	json_set(j, "name", json_string(p->name));
	json_set(j, "title", json_string(p->title));
	json_set(j, "description", json_string(p->description));
	json_set(j, "arguments", list);
	return j;
}

json_t *prompt_list(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(prompts); i++)
		(void)!json_array_append_new(list, view_prompt(&prompts[i]));
	return list;
}

static const struct prompt_argument *find_argument(const struct prompt *p, const char *name,
                                                   size_t len)
{
	for (const struct prompt_argument *a = p->arguments; a->name; a++)
		if (strlen(a->name) == len && strncmp(a->name, name, len) == 0)
			return a;
	return NULL;
}

static int check_arguments(const struct prompt *p, json_t *given, struct error *err)
{
	const char *name;
	json_t *value;

	if (given && !json_is_object(given))
		return error_set(err, ERR_INVALID, 0, "arguments must be an object");
	for (const struct prompt_argument *a = p->arguments; a->name; a++)
		if (a->required && !json_object_get(given, a->name))
			return error_set(err, ERR_INVALID, 0, "argument %s is missing", a->name);
	json_object_foreach (given, name, value) {
		if (!find_argument(p, name, strlen(name)))
			return error_set(err, ERR_INVALID, 0, "the prompt has no argument '%.64s'",
			                 name);
		if (!json_is_string(value) || json_string_length(value) > VALUE_MAX)
			return error_set(err, ERR_INVALID, 0,
			                 "arguments must be strings of at most 256 KiB");
	}
	return 0;
}

/* {names} in values are not replaced. */
static void fill_text(struct buf *b, const struct prompt *p, const json_t *given)
{
	const char *at = p->text;

	while (*at) {
		size_t plain = strcspn(at, "{"), len;
		const struct prompt_argument *a;
		const json_t *value;

		(void)!buf_add(b, at, plain);
		at += plain;
		if (!*at)
			return;
		len = strcspn(at + 1, "}");
		a = find_argument(p, at + 1, len);
		assert(a);
		value = json_object_get(given, a->name);
		if (value)
			(void)!buf_add(b, json_string_value(value), json_string_length(value));
		else
			(void)!buf_add_str(b, a->fallback);
		at += len + 2;
	}
}

json_t *prompt_fill(const char *name, json_t *arguments, struct error *err)
{
	const struct prompt *p = NULL;
	cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
	json_t *result, *message, *content, *list;

	for (size_t i = 0; name && i < ARRAY_SIZE(prompts) && !p; i++)
		if (str_equal(prompts[i].name, name))
			p = &prompts[i];
	if (!p)
		(void)error_set(err, ERR_INVALID, 0, "no such prompt");
	if (!p || check_arguments(p, arguments, err) < 0)
		return NULL;
	fill_text(&text, p, arguments);
	content = json_object();
	json_set(content, "type", json_string("text"));
	json_set(content, "text", json_text(text.data, text.len));
	message = json_object();
	json_set(message, "role", json_string("user"));
	json_set(message, "content", content);
	list = json_array();
	(void)!json_array_append_new(list, message);
	result = json_object();
	json_set(result, "description", json_string(p->description));
	json_set(result, "messages", list);
	return result;
}
