/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include <string.h>

/*
 * Theory of operation. A prompt is a text with {names} of arguments in it. An argument that may be
 * left out has a text for that. What is put in is not looked at again.
 */

#define ARGUMENTS_MAX 4
#define VALUE_MAX     (256u << 10)
#define TEXT_MAX      (2u << 20)

struct prompt_argument {
	const char *name, *help;
	bool required;
	const char *fallback; /* where it is not given */
};

/* Texts, however long their lines. */
/* clang-format off */
static const char analyse_text[] =
	"Analyse the data file {path} in the sandbox {sandbox_id}.\n\n"
	"1. Call execute_code with session_id {sandbox_id}: load the file with pandas (or the csv "
	"module where there is no pandas), print its shape, the types of its columns, the first "
	"rows, and how many values are missing. Do not print the whole file.\n"
	"2. Say in a few sentences what the data is and what looks wrong with it.\n"
	"3. {question}\n"
	"4. Draw one or two figures with matplotlib that show the answer; they come back as "
	"images. Label the axes.\n"
	"5. Sum up what was found, with the numbers, and what is uncertain. If a step fails, read "
	"the error, correct the code and run it again.";

static const char debug_text[] =
	"This {language} program fails:\n\n```\n{code}\n```\n\n"
	"What is known of the failure: {error}\n\n"
	"1. Create a sandbox (create_sandbox), write the program to /workspace (write_file) and "
	"run it, so that you see the failure yourself. Do not guess before.\n"
	"2. Make the smallest input that still fails.\n"
	"3. Name the cause, and the line.\n"
	"4. Correct it, and only it; run the program again, and the smallest failing input too.\n"
	"5. Show the difference and say why it is right. Terminate the sandbox at the end.";

static const char tests_text[] =
	"Write tests for this {language} code and run them:\n\n```\n{code}\n```\n\n"
	"1. List the behaviours that matter: ordinary cases, limits, empty and wrong input.\n"
	"2. Create a sandbox, write the code and a test file beside it (write_file). For Python "
	"use unittest, or pytest where a trial import shows that it is there.\n"
	"3. Run the tests (exec_command) and read what they print.\n"
	"4. A test that fails shows an error in the code or in the test: decide which, and say "
	"so. Do not change the code without saying it.\n"
	"5. Report: what is tested, what failed, what remains untested. Terminate the sandbox at "
	"the end.";

#define LANGUAGE {"language", "What it is written in", false, "(find out which language)"}

static const struct prompt {
	const char *name, *title, *description, *text;
	struct prompt_argument arguments[ARGUMENTS_MAX];
} prompts[] = {
	{"analyse_data_file", "Analyse a data file",
	 "Look at a data file in a sandbox, find out what it holds, and answer a question about "
	 "it with figures.",
	 analyse_text,
	 {{"path", "The file, in /workspace", true, NULL},
	  {"sandbox_id", "The sandbox that has it", true, NULL},
	  {"question", "What you want to know", false,
	   "Find the three most interesting things that the data says."}}},
	{"debug_program", "Debug a failing program",
	 "Reproduce a failure in a sandbox, find its cause, correct it and show that it is gone.",
	 debug_text,
	 {{"code", "The program", true, NULL},
	  LANGUAGE,
	  {"error", "What happens, or the message", false, "nothing yet: run it to see."}}},
	{"write_and_run_tests", "Write and run tests",
	 "Write tests for a piece of code, run them in a sandbox, and report what they found.",
	 tests_text,
	 {{"code", "The code", true, NULL}, LANGUAGE}},
};
/* clang-format on */

static json_t *view_argument(const struct prompt_argument *a)
{
	json_t *j = json_object();

	json_set(j, "name", json_string(a->name));
	json_set(j, "description", json_string(a->help));
	json_set(j, "required", json_boolean(a->required));
	return j;
}

static json_t *view(const struct prompt *p, enum mcp_version version)
{
	json_t *j = json_object(), *list = json_array();

	for (size_t i = 0; i < ARGUMENTS_MAX && p->arguments[i].name; i++)
		(void)!json_array_append_new(list, view_argument(&p->arguments[i]));
	json_set(j, "name", json_string(p->name));
	if (version >= MCP_2025_06_18)
		json_set(j, "title", json_string(p->title));
	json_set(j, "description", json_string(p->description));
	json_set(j, "arguments", list);
	return j;
}

void mcp_prompts_list(struct mcp_request *q)
{
	json_t *result, *list;
	uint64_t offset;

	if (mcp_cursor_read(q, &offset) < 0)
		return;
	result = json_object();
	list = json_array();
	for (; offset < ARRAY_SIZE(prompts); offset++)
		(void)!json_array_append_new(list, view(&prompts[offset], q->session->version));
	json_set(result, "prompts", list);
	mcp_request_result(q, result);
}

static const struct prompt *find(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(prompts); i++)
		if (str_equal(prompts[i].name, name))
			return &prompts[i];
	return NULL;
}

static const struct prompt_argument *find_argument(const struct prompt *p, const char *name,
                                                   size_t len)
{
	for (size_t i = 0; i < ARGUMENTS_MAX && p->arguments[i].name; i++)
		if (strlen(p->arguments[i].name) == len &&
		    strncmp(p->arguments[i].name, name, len) == 0)
			return &p->arguments[i];
	return NULL;
}

/* Return: why not; NULL: they are good. */
static const char *check(const struct prompt *p, json_t *given)
{
	const char *name;
	json_t *value;

	for (size_t i = 0; i < ARGUMENTS_MAX && p->arguments[i].name; i++)
		if (p->arguments[i].required && !json_object_get(given, p->arguments[i].name))
			return "an argument that is required is missing";
	json_object_foreach (given, name, value) {
		if (!find_argument(p, name, strlen(name)))
			return "there is an argument that the prompt has not";
		if (!json_is_string(value) || json_string_length(value) > VALUE_MAX)
			return "arguments must be strings of at most 256 KiB";
	}
	return NULL;
}

static void fill(struct buf *b, const struct prompt *p, const json_t *given)
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
		assert(a); /* the table is ours */
		value = json_object_get(given, a->name);
		if (value)
			(void)!buf_add(b, json_string_value(value), json_string_length(value));
		else
			(void)!buf_add_str(b, a->fallback);
		at += len + 2;
	}
}

void mcp_prompts_get(struct mcp_request *q)
{
	const char *name = mcp_request_text(q, "name");
	const struct prompt *p = find(name);
	json_t *given = json_object_get(q->params, "arguments");
	const char *wrong = p ? check(p, given) : "no such prompt";
	cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
	json_t *result, *message, *content, *list;

	if (wrong || (given && !json_is_object(given))) {
		mcp_request_error(q, RPC_INVALID_PARAMS,
		                  wrong ? wrong : "arguments must be an object", NULL);
		return;
	}
	fill(&text, p, given);
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
	mcp_request_result(q, result);
}
