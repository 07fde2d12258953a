/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin_call.h"

#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "cli/say.h"

#define ID_MAX 64

int admin_call(const struct admin_options *options, const struct api_call *call,
               json_t **ret_answer, struct error *err)
{
	cleanup_endpoint struct endpoint endpoint = {0};
	json_t *answer = NULL;
	int status = 0;

	if (api_endpoint(options->socket, options->url, &endpoint, err) < 0)
		return err->code == ERR_INVALID ? CLI_USAGE : CLI_OURS;
	if (api_call(&endpoint, call, &answer, &status, err) < 0)
		return CLI_OURS;
	if (options->json)
		say_json(answer);
	else if (status >= 300)
		say_problem(answer);
	if (!options->json && status < 300) {
		*ret_answer = answer;
		return CLI_OK;
	}
	json_decref(answer);
	return status < 300 ? CLI_OK : CLI_OURS;
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

void admin_print_cell(const json_t *object, const char *key, int width)
{
	const json_t *value = json_object_get(object, key);
	cleanup_free char *number =
		json_is_integer(value) ? xasprintf("%lld", (long long)json_integer_value(value))
				       : NULL;
	const char *text = number ? number : json_string_value(value);

	text = text && *text ? text : "-";
	say_print(stdout, text);
	(void)printf("%*s", width > (int)strlen(text) ? width - (int)strlen(text) : 1, "");
}
