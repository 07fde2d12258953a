/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin_call.h"

#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "cli/message.h"

#define ID_MAX     64
#define PAGE_LIMIT 200

int admin_call(const struct admin_options *options, const struct api_call *call,
               json_t **ret_answer, struct error *err)
{
	cleanup_endpoint struct endpoint endpoint = {0};
	json_t *answer = NULL;
	int status = 0;

	if (api_endpoint(&options->at, &endpoint, err) < 0)
		return err->code == ERR_INVALID ? CLI_USAGE : CLI_ERROR;
	if (api_call(&endpoint, call, &answer, &status, err) < 0)
		return CLI_ERROR;
	if (options->json)
		message_print_json(answer);
	else if (status >= 300)
		message_show_problem(answer);
	if (!options->json && status < 300) {
		*ret_answer = answer;
		return CLI_OK;
	}
	json_decref(answer);
	return status < 300 ? CLI_OK : CLI_ERROR;
}

char *admin_path(const char *base, const struct args *args, const char *what, struct error *err)
{
	if (args->words_count != 1)
		(void)error_set(err, ERR_INVALID, 0, "give one %s", what);
	else if (!id_is_valid(args->words[0], ID_MAX))
		(void)error_set(err, ERR_INVALID, 0, "'%s' is no %s", args->words[0], what);
	else
		return xasprintf("%s/%s", base, args->words[0]);
	return NULL;
}

/* Return: how many bytes were printed. */
static int print_words(const json_t *list)
{
	int len = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *word = json_string_value(json_array_get(list, i));

		(void)fputs(i ? "," : "", stdout);
		message_print_safe(stdout, word ? word : "?");
		len += (i > 0) + (int)strlen(word ? word : "?");
	}
	return len;
}

void admin_print_cell(const json_t *object, const char *key, int width)
{
	const json_t *value = json_object_get(object, key);
	cleanup_free char *number =
		json_is_integer(value) ? xasprintf("%lld", (long long)json_integer_value(value))
				       : NULL;
	const char *text = number ? number : json_string_value(value);
	int len = print_words(value);

	if (len == 0) {
		text = text && *text ? text : "-";
		message_print_safe(stdout, text);
		len = (int)strlen(text);
	}
	if (width > 0)
		(void)printf("%*s", width > len ? width - len : 1, "");
}

/* Return: owned path of one thing, or of all where the daemon gives the names; NULL: *err. */
static char *create_path(const struct admin_noun *noun, const struct args *args, struct error *err)
{
	if (noun->name_key)
		return admin_path(noun->base, args, noun->what, err);
	if (args->words_count == 0)
		return xstrdup(noun->base);
	(void)error_set(err, ERR_INVALID, 0, "takes no arguments");
	return NULL;
}

int admin_create(const struct admin_noun *noun, const void *values, const struct args *args,
                 json_t **ret_answer, struct error *err)
{
	cleanup_free char *path = create_path(noun, args, err);
	const char *name = path && noun->name_key ? args->words[0] : NULL;
	cleanup_free char *body = path ? admin_body(noun, values, name, err) : NULL;
	const struct api_call call = {.method = "POST", .path = noun->base, .body = body};

	return body ? admin_call(values, &call, ret_answer, err) : CLI_USAGE;
}

int admin_update(const struct admin_noun *noun, const char *method, const void *values,
                 const struct args *args, json_t **ret_answer, struct error *err)
{
	cleanup_free char *path = admin_path(noun->base, args, noun->what, err);
	cleanup_free char *body = path ? admin_body(noun, values, NULL, err) : NULL;
	const struct api_call call = {.method = method, .path = path, .body = body};

	return body ? admin_call(values, &call, ret_answer, err) : CLI_USAGE;
}

int admin_show(const struct admin_noun *noun, const void *values, const struct args *args,
               json_t **ret_answer, struct error *err)
{
	cleanup_free char *path = admin_path(noun->base, args, noun->what, err);
	const struct api_call call = {.method = "GET", .path = path};

	return path ? admin_call(values, &call, ret_answer, err) : CLI_USAGE;
}

int admin_delete(const struct admin_noun *noun, const void *values, const struct args *args,
                 struct error *err)
{
	cleanup_free char *path = admin_path(noun->base, args, noun->what, err);
	const struct api_call call = {.method = "DELETE", .path = path};
	json_t *answer = NULL;
	int status = path ? admin_call(values, &call, &answer, err) : CLI_USAGE;

	json_decref(answer);
	return status;
}

static void print_titles(const struct admin_noun *noun)
{
	for (size_t i = 0; i < noun->columns_count; i++)
		(void)printf("%-*s", noun->columns[i].width, noun->columns[i].title);
	(void)putchar('\n');
}

static void print_row(const struct admin_noun *noun, const json_t *thing)
{
	for (size_t i = 0; i < noun->columns_count; i++) {
		const struct admin_column *c = &noun->columns[i];

		admin_print_cell(c->within ? json_object_get(thing, c->within) : thing, c->key,
		                 c->width);
	}
	(void)putchar('\n');
}

static void print_page(const struct admin_noun *noun, const json_t *answer, bool first)
{
	const json_t *list = json_object_get(answer, noun->list);

	if (first)
		print_titles(noun);
	for (size_t i = 0; i < json_array_size(list); i++)
		print_row(noun, json_array_get(list, i));
}

int admin_list(const struct admin_noun *noun, const void *values, const struct args *args,
               struct error *err)
{
	bool more = true;
	int status = CLI_OK;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "takes no arguments");
		return CLI_USAGE;
	}
	for (unsigned offset = 0; more && status == CLI_OK; offset += PAGE_LIMIT) {
		cleanup_free char *path =
			xasprintf("%s?limit=%d&offset=%u", noun->base, PAGE_LIMIT, offset);
		const struct api_call call = {.method = "GET", .path = path};
		json_t *answer = NULL;

		status = admin_call(values, &call, &answer, err);
		if (answer)
			print_page(noun, answer, offset == 0);
		more = json_is_true(json_object_get(answer, "has_more"));
		json_decref(answer);
	}
	return status;
}
