/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode.h"

#include "api/json/json.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "wire/layer.h"
#include <string.h>

json_t *encode_text(const char *s)
{
	return s ? json_text(s, strlen(s)) : json_null();
}

json_t *encode_moment(uint64_t real_ms)
{
	char buf[40];

	if (real_ms == 0)
		return json_null();
	clock_format_utc(real_ms, buf, sizeof(buf));
	return json_string(buf);
}

json_t *encode_seconds(uint64_t us)
{
	if (us % USEC_PER_SEC == 0)
		return json_integer((json_int_t)(us / USEC_PER_SEC));
	return json_real((double)us / USEC_PER_SEC);
}

json_t *encode_resources(const struct box_limits *limits)
{
	json_t *j = json_object();
	char buf[32];

	format_cpu(limits->cpu_millicores, buf, sizeof(buf));
	json_set(j, "cpu", json_string(buf));
	format_size(limits->memory_bytes, buf, sizeof(buf));
	json_set(j, "memory", json_string(buf));
	format_size(limits->workspace_bytes, buf, sizeof(buf));
	json_set(j, "disk", json_string(buf));
	json_set(j, "max_processes", json_integer(limits->pids));
	return j;
}

json_t *encode_texts(char *const *items)
{
	json_t *j = json_array();

	for (; items && *items; items++)
		json_append(j, encode_text(*items));
	return j;
}

json_t *encode_layers(uint32_t mask)
{
	json_t *list = json_array();

	for (int layer = 0; layer < LAYER_COUNT; layer++)
		if (mask & LAYER_BIT(layer))
			json_append(list, json_string(layer_name((enum wire_layer)layer)));
	return list;
}

json_t *encode_variables(char *const *env)
{
	json_t *j = json_object();
	char name[256];

	for (; env && *env; env++) {
		const char *equals = strchr(*env, '=');
		size_t len = equals ? (size_t)(equals - *env) : sizeof(name);

		if (len >= sizeof(name)) /* policy refuses such names */
			continue;
		memcpy(name, *env, len);
		name[len] = '\0';
		json_set(j, name, encode_text(equals + 1));
	}
	return j;
}
