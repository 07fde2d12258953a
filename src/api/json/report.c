/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/report.h"

#include "api/json/json.h"
#include "base/str.h"
#include <errno.h>
#include <stdbool.h>

static bool is_text_list(const json_t *list, size_t max)
{
	if (!json_is_array(list) || json_array_size(list) > max)
		return false;
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!json_is_string(json_array_get(list, i)))
			return false;
	return true;
}

static bool is_error(const json_t *error)
{
	if (json_is_null(error))
		return true;
	return json_is_object(error) && json_object_size(error) == 3 &&
	       json_is_string(json_object_get(error, "name")) &&
	       json_is_string(json_object_get(error, "value")) &&
	       is_text_list(json_object_get(error, "traceback"), REPORT_MAX_FRAMES);
}

static bool is_bundle(json_t *bundle)
{
	const char *key;
	json_t *value;

	if (!json_is_object(bundle))
		return false;
	json_object_foreach (bundle, key, value) {
		if (!json_is_string(value))
			return false;
	}
	return true;
}

static bool is_bundle_list(const json_t *list)
{
	if (json_is_null(list))
		return true;
	if (!json_is_array(list) || json_array_size(list) > REPORT_MAX_RESULTS)
		return false;
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!is_bundle(json_array_get(list, i)))
			return false;
	return true;
}

static bool is_report(json_t *object)
{
	json_t *results = json_object_get(object, "results");
	json_t *error = json_object_get(object, "error");
	size_t known =
		(json_object_get(object, "result") != NULL) + (results != NULL) + (error != NULL);

	return json_object_size(object) == known && (!results || is_bundle_list(results)) &&
	       (!error || is_error(error));
}

static json_t *member_or(json_t *object, const char *name, json_t *fallback)
{
	json_t *value = json_object_get(object, name);

	if (!value || json_is_null(value))
		return fallback;
	json_decref(fallback);
	return json_incref(value);
}

int report_read(const char *text, size_t len, struct report *ret_report)
{
	cleanup_json json_t *object = NULL;
	struct error err = {0};
	int r = 0;

	if (len > REPORT_MAX_BYTES) {
		r = -EINVAL;
	} else if (len > 0) {
		object = json_read_object(text, len, &err);
		r = object && is_report(object) ? 0 : -EINVAL;
	}
	if (r < 0) {
		json_decref(object);
		object = NULL;
	}
	ret_report->result = member_or(object, "result", json_null());
	ret_report->results = member_or(object, "results", json_array());
	ret_report->error = member_or(object, "error", json_null());
	return r;
}

void report_done(struct report *report)
{
	json_decref(report->result);
	json_decref(report->results);
	json_decref(report->error);
	*report = (struct report){0};
}
