/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/resource.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "cli/exit_status.h"
#include "cli/message.h"
#include "client/millibox.h"
#include "json/json_dump.h"

#define ID_MAX     64
#define PAGE_LIMIT 200

const struct option_row resource_rows[] = {COMMON_ROWS(0)};

int resource_finish(const struct common_options *options, struct millibox_client *client, int r,
                    json_t **ret_answer, struct error *err)
{
	json_auto_t *answer = NULL;
	int status = 0;

	if (daemon_answer(client, r, &answer, &status, err) < 0)
		return -1;
	if (options->json)
		message_print_json(answer);
	else if (r < 0)
		message_show_problem(answer);
	if (r < 0)
		return exit_status_of_problem(answer);
	if (!options->json) {
		message_show_warnings(answer);
		*ret_answer = TAKE_PTR(answer);
	}
	return CLI_OK;
}

int resource_call(const struct common_options *options, const struct daemon_call *call,
                  json_t **ret_answer, struct error *err)
{
	cleanup_daemon struct millibox_client *client = daemon_open(&options->at);

	return resource_finish(options, client, daemon_send(client, call), ret_answer, err);
}

unsigned resource_limit(uint64_t limit, unsigned fallback)
{
	if (limit == 0)
		return fallback;
	return limit < UINT_MAX ? (unsigned)limit : UINT_MAX;
}

char *resource_path(const struct resource *resource, const char *id, const char *suffix,
                    struct error *err)
{
	if (id_is_dotted(id, ID_MAX))
		return xasprintf("%s/%s%s", resource->base, id, suffix);
	(void)error_set(err, ERR_INVALID, 0, "'%s' is not a valid %s", id, resource->what);
	return NULL;
}

/* Of the one item in @args. Return: owned, or NULL (ERR_INVALID). */
static char *item_path(const struct resource *resource, const struct args *args, struct error *err)
{
	if (args->words_count == 1)
		return resource_path(resource, args->words[0], "", err);
	(void)error_set(err, ERR_INVALID, 0, "expected one %s", resource->what);
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
		: json_is_real(value)  ? xasprintf("%.3f", json_real_value(value))
				       : NULL;
	const char *text = number                 ? number
	                   : json_is_true(value)  ? "yes"
	                   : json_is_false(value) ? "no"
	                                          : json_string_value(value);
	int len = print_words(value);

	if (len == 0) {
		text = text && *text ? text : "-";
		message_print_safe(stdout, text);
		len = (int)strlen(text);
	}
	if (width > 0)
		(void)printf("%*s", width > len ? width - len : 1, "");
}

static void print_value(const json_t *value)
{
	cleanup_free char *text = json_is_string(value) ? xstrdup(json_string_value(value))
	                                                : json_dump_text(value, 0);

	message_print_safe(stdout, text ? text : "?");
}

/* Of a list. Programs name files: a comma in a name must not look like the end of it. */
static void print_part(const json_t *value)
{
	cleanup_free char *quoted = NULL;
	const char *text = json_string_value(value);

	if (text && (*text == '"' || strchr(text, ',')))
		quoted = json_dump_text(value, 0);
	if (quoted)
		message_print_safe(stdout, quoted);
	else
		print_value(value);
}

static void print_members(const json_t *object, const char *between)
{
	const char *name, *comma = "";
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)object, name, value) {
		if (json_is_null(value))
			continue;
		(void)fputs(comma, stdout);
		message_print_safe(stdout, name);
		(void)fputs(between, stdout);
		print_part(value);
		comma = ", ";
	}
}

static void print_items(const json_t *list, const char *member)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		(void)fputs(i ? ", " : "", stdout);
		print_part(json_object_get(json_array_get(list, i), member));
	}
}

static bool has_line(const struct resource_line *line, const json_t *value)
{
	if (line->between)
		return json_object_size(value) > 0;
	if (line->member)
		return json_array_size(value) > 0;
	return value && !json_is_null(value);
}

void resource_print_object(const json_t *object, const struct resource_line *lines, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct resource_line *line = &lines[i];
		const json_t *value = json_object_get(object, line->key);

		if (!has_line(line, value))
			continue;
		(void)printf("%-18s", line->key);
		if (line->between)
			print_members(value, line->between);
		else if (line->member)
			print_items(value, line->member);
		else
			print_value(value);
		(void)putchar('\n');
	}
}

int resource_create(const struct resource *resource, const void *values, const struct args *args,
                    json_t **ret_answer, struct error *err)
{
	cleanup_free char *path =
		resource->name_key ? item_path(resource, args, err) : xstrdup(resource->base);
	const char *name = path && resource->name_key ? args->words[0] : NULL;
	cleanup_free char *body = path ? resource_body(resource, values, name, err) : NULL;
	const struct daemon_call call = {.method = "POST", .path = resource->base, .body = body};

	return body ? resource_call(values, &call, ret_answer, err) : -1;
}

int resource_update(const struct resource *resource, const char *method, const void *values,
                    const struct args *args, json_t **ret_answer, struct error *err)
{
	cleanup_free char *path = item_path(resource, args, err);
	cleanup_free char *body = path ? resource_body(resource, values, NULL, err) : NULL;
	const struct daemon_call call = {.method = method, .path = path, .body = body};

	return body ? resource_call(values, &call, ret_answer, err) : -1;
}

int resource_show(const struct resource *resource, const void *values, const struct args *args,
                  json_t **ret_answer, struct error *err)
{
	cleanup_free char *path = item_path(resource, args, err);
	const struct daemon_call call = {.method = "GET", .path = path};

	return path ? resource_call(values, &call, ret_answer, err) : -1;
}

int resource_run_delete(const void *values, const struct args *args, struct error *err)
{
	cleanup_free char *path = item_path(args->data, args, err);
	const struct daemon_call call = {.method = "DELETE", .path = path};
	json_auto_t *answer = NULL;

	return path ? resource_call(values, &call, &answer, err) : -1;
}

void resource_print_titles(const struct resource *resource)
{
	for (size_t i = 0; i < resource->columns_count; i++)
		(void)printf("%-*s", resource->columns[i].width, resource->columns[i].title);
	(void)putchar('\n');
}

void resource_print_row(const struct resource *resource, const json_t *item)
{
	for (size_t i = 0; i < resource->columns_count; i++) {
		const struct resource_column *c = &resource->columns[i];

		resource_print_cell(c->within ? json_object_get(item, c->within) : item, c->key,
		                    c->width);
	}
	(void)putchar('\n');
}

void resource_print_list(const struct resource *resource, const json_t *answer, bool titles)
{
	const json_t *list = json_object_get(answer, resource->list);

	if (titles)
		resource_print_titles(resource);
	for (size_t row = 0; row < json_array_size(list); row++)
		resource_print_row(resource, json_array_get(list, row));
}

int resource_run_list(const void *values, const struct args *args, struct error *err)
{
	const struct resource *resource = args->data;
	bool more = true;
	int status = CLI_OK;

	for (unsigned offset = 0; more && status == CLI_OK; offset += PAGE_LIMIT) {
		cleanup_free char *path =
			xasprintf("%s?limit=%d&offset=%u", resource->base, PAGE_LIMIT, offset);
		const struct daemon_call call = {.method = "GET", .path = path};
		json_auto_t *answer = NULL;

		status = resource_call(values, &call, &answer, err);
		if (answer)
			resource_print_list(resource, answer, offset == 0);
		more = json_is_true(json_object_get(answer, "has_more"));
	}
	return status;
}
