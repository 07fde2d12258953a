/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/resource.h"

#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "cli/message.h"

#define ID_MAX     64
#define PAGE_LIMIT 200

const struct option_row resource_rows[] = {COMMON_ROWS(0)};

int resource_call(const struct common_options *options, const struct api_call *call,
                  json_t **ret_answer, struct error *err)
{
	cleanup_endpoint struct endpoint endpoint = {0};
	json_auto_t *answer = NULL;
	int status = 0;

	if (api_endpoint(&options->at, &endpoint, err) < 0 ||
	    api_call(&endpoint, call, &answer, &status, err) < 0)
		return -1;
	if (options->json)
		message_print_json(answer);
	else if (status < 300)
		*ret_answer = TAKE_PTR(answer);
	else
		message_show_problem(answer);
	return status < 300 ? CLI_OK : CLI_ERROR;
}

/* Of the one item in @args. Return: owned, or NULL (ERR_INVALID). */
static char *item_path(const struct resource *resource, const struct args *args, struct error *err)
{
	if (args->words_count != 1)
		(void)error_set(err, ERR_INVALID, 0, "expected one %s", resource->what);
	else if (!id_is_valid(args->words[0], ID_MAX))
		(void)error_set(err, ERR_INVALID, 0, "'%s' is not a valid %s", args->words[0],
		                resource->what);
	else
		return xasprintf("%s/%s", resource->base, args->words[0]);
	return NULL;
}

/* Return: bytes printed. */
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

void resource_print_cell(const json_t *object, const char *key, int width)
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

int resource_create(const struct resource *resource, const void *values, const struct args *args,
                    json_t **ret_answer, struct error *err)
{
	cleanup_free char *path =
		resource->name_key ? item_path(resource, args, err) : xstrdup(resource->base);
	const char *name = path && resource->name_key ? args->words[0] : NULL;
	cleanup_free char *body = path ? resource_body(resource, values, name, err) : NULL;
	const struct api_call call = {.method = "POST", .path = resource->base, .body = body};

	return body ? resource_call(values, &call, ret_answer, err) : -1;
}

int resource_update(const struct resource *resource, const char *method, const void *values,
                    const struct args *args, json_t **ret_answer, struct error *err)
{
	cleanup_free char *path = item_path(resource, args, err);
	cleanup_free char *body = path ? resource_body(resource, values, NULL, err) : NULL;
	const struct api_call call = {.method = method, .path = path, .body = body};

	return body ? resource_call(values, &call, ret_answer, err) : -1;
}

int resource_show(const struct resource *resource, const void *values, const struct args *args,
                  json_t **ret_answer, struct error *err)
{
	cleanup_free char *path = item_path(resource, args, err);
	const struct api_call call = {.method = "GET", .path = path};

	return path ? resource_call(values, &call, ret_answer, err) : -1;
}

int resource_run_delete(const void *values, const struct args *args, struct error *err)
{
	cleanup_free char *path = item_path(args->data, args, err);
	const struct api_call call = {.method = "DELETE", .path = path};
	json_auto_t *answer = NULL;

	return path ? resource_call(values, &call, &answer, err) : -1;
}

void resource_print_list(const struct resource *resource, const json_t *answer, bool titles)
{
	const struct resource_column *columns = resource->columns;
	const json_t *list = json_object_get(answer, resource->list);

	for (size_t i = 0; titles && i < resource->columns_count; i++)
		(void)printf("%-*s", columns[i].width, columns[i].title);
	(void)fputs(titles ? "\n" : "", stdout);
	for (size_t row = 0; row < json_array_size(list); row++) {
		const json_t *item = json_array_get(list, row);

		for (size_t i = 0; i < resource->columns_count; i++)
			resource_print_cell(
				columns[i].within ? json_object_get(item, columns[i].within) : item,
				columns[i].key, columns[i].width);
		(void)putchar('\n');
	}
}

int resource_run_list(const void *values, const struct args *args, struct error *err)
{
	const struct resource *resource = args->data;
	bool more = true;
	int status = CLI_OK;

	for (unsigned offset = 0; more && status == CLI_OK; offset += PAGE_LIMIT) {
		cleanup_free char *path =
			xasprintf("%s?limit=%d&offset=%u", resource->base, PAGE_LIMIT, offset);
		const struct api_call call = {.method = "GET", .path = path};
		json_auto_t *answer = NULL;

		status = resource_call(values, &call, &answer, err);
		if (answer)
			resource_print_list(resource, answer, offset == 0);
		more = json_is_true(json_object_get(answer, "has_more"));
	}
	return status;
}
