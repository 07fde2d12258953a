/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/docker_reply.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/parse.h"
#include "base/str.h"
#include "wire/layer.h"

/* The calls used here are the same from the first of these to the last known version; a newer
 * server may have given up old ones. */
#define API_WANTED "1.41"
#define API_LEAST  "1.40"
#define DEPTH_MAX  32
#define CPUS_MAX   100000

/* Brackets nest; those in strings count too, so that nothing needs to be known about strings. */
static bool is_shallow(const char *text, size_t len)
{
	size_t depth = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '[' || text[i] == '{')
			depth++;
		else if ((text[i] == ']' || text[i] == '}') && depth > 0)
			depth--;
		if (depth > DEPTH_MAX)
			return false;
	}
	return true;
}

json_t *docker_parse(const char *text, size_t len)
{
	return is_shallow(text, len) ? json_loadb(text, len, JSON_DECODE_ANY, NULL) : NULL;
}

json_t *docker_parse_last(const char *text, size_t len)
{
	json_t *last = NULL;
	json_error_t at;

	if (!is_shallow(text, len))
		return NULL;
	while (len > 0) {
		json_t *next = json_loadb(text, len, JSON_DISABLE_EOF_CHECK, &at);

		if (!next)
			break;
		json_decref(last);
		last = next;
		text += at.position;
		len -= (size_t)at.position;
	}
	return last;
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* "1.41" as 1041; 0: not a version. */
static unsigned number_of(const char *version)
{
	const char *dot = strchr(version, '.');
	char major[8];
	uint64_t a, b;

	if (!dot || str_format(major, sizeof(major), "%.*s", (int)(dot - version), version) < 0)
		return 0;
	if (parse_u64(major, &a) < 0 || parse_u64(dot + 1, &b) < 0 || a > 1000 || b > 999)
		return 0;
	return (unsigned)(a * 1000 + b);
}

static void copy_printable(char *dst, size_t size, const char *src)
{
	size_t len = 0;

	for (; src[len] && len + 1 < size; len++) {
		bool is_printable = src[len] >= ' ' && src[len] <= '~';

		dst[len] = '?';
		if (is_printable)
			dst[len] = src[len];
	}
	dst[len] = '\0';
}

int docker_read_version(const json_t *answer, struct docker_facts *facts, struct error *err)
{
	const char *most = text_of(answer, "ApiVersion");
	const char *least = text_of(answer, "MinAPIVersion");
	const char *use = API_WANTED;

	if (number_of(most) == 0)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "what answers there is not a Docker Engine");
	if (number_of(most) < number_of(API_LEAST))
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "its API is %.8s; at least " API_LEAST " (Docker 19.03) is needed",
		                 most);
	if (number_of(most) < number_of(use))
		use = most;
	if (number_of(least) > number_of(use))
		use = least;
	if (str_copy(facts->api, sizeof(facts->api), use) < 0)
		return error_set(err, ERR_UNAVAILABLE, 0, "its API has no version");
	copy_printable(facts->release, sizeof(facts->release), text_of(answer, "Version"));
	return 0;
}

/* What a container of any server has; the network and the groups are asked for at each create. */
#define LAYERS_OF_CONTAINERS                                                                       \
	(LAYER_BIT(LAYER_PID) | LAYER_BIT(LAYER_MNT) | LAYER_BIT(LAYER_NET) |                      \
	 LAYER_BIT(LAYER_IPC) | LAYER_BIT(LAYER_UTS))

static uint32_t layers_of(const json_t *info, bool maps_ids)
{
	static const struct {
		const char *name;
		enum wire_layer layer;
	} rows[] = {
		{"MemoryLimit", LAYER_CGROUP_MEMORY},
		{"PidsLimit", LAYER_CGROUP_PIDS},
		{"CpuCfsQuota", LAYER_CGROUP_CPU},
		{"CPUCfsQuota", LAYER_CGROUP_CPU}, /* of the same in older and newer releases */
	};
	uint32_t layers = LAYERS_OF_CONTAINERS | (maps_ids ? LAYER_BIT(LAYER_USER) : 0);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (json_is_true(json_object_get(info, rows[i].name)))
			layers |= LAYER_BIT(rows[i].layer);
	return layers;
}

static bool has_security_option(const json_t *info, const char *name)
{
	const json_t *options = json_object_get(info, "SecurityOptions");
	char prefix[32];

	(void)snprintf(prefix, sizeof(prefix), "name=%s", name);
	for (size_t i = 0; i < json_array_size(options); i++) {
		const char *option = json_string_value(json_array_get(options, i));

		if (option && str_has_prefix(option, prefix))
			return true;
	}
	return false;
}

/* By the program, where the server names it: its name in the settings of the server is free. */
static enum engine_grade grade_of(const json_t *runtime, const char *name)
{
	static const struct {
		const char *word;
		enum engine_grade grade;
	} rows[] = {
		{"runsc", ENGINE_GRADE_GVISOR},
		{"kata", ENGINE_GRADE_VM},
	};
	const char *path = text_of(runtime, "path");
	const char *slash = strrchr(path, '/');
	const char *program = *path ? (slash ? slash + 1 : path) : name;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strstr(program, rows[i].word))
			return rows[i].grade;
	return ENGINE_GRADE_NAMESPACE;
}

int docker_read_info(const json_t *answer, const char *runtime, struct docker_facts *facts,
                     struct error *err)
{
	const json_t *runtimes = json_object_get(answer, "Runtimes");
	const char *name = runtime ? runtime : text_of(answer, "DefaultRuntime");
	json_int_t cpus = json_integer_value(json_object_get(answer, "NCPU"));

	if (!json_is_object(answer) || cpus < 1 || cpus > CPUS_MAX)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "what answers there is not a Docker Engine");
	if (runtime && !json_object_get(runtimes, runtime))
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "it has no runtime '%.40s': name the program in 'runtimes' of "
		                 "/etc/docker/daemon.json, then systemctl restart docker",
		                 runtime);
	facts->maps_ids =
		has_security_option(answer, "userns") || has_security_option(answer, "rootless");
	facts->layers = layers_of(answer, facts->maps_ids);
	/* Older servers ignore the wish for a namespace of groups. */
	if (number_of(facts->api) >= number_of(API_WANTED))
		facts->layers |= LAYER_BIT(LAYER_CGROUP_NS);
	facts->cpus = (uint32_t)cpus;
	copy_printable(facts->kernel, sizeof(facts->kernel), text_of(answer, "KernelVersion"));
	facts->grade = grade_of(json_object_get(runtimes, name), name);
	if (str_copy(facts->runtime, sizeof(facts->runtime), name) < 0)
		return error_set(err, ERR_UNAVAILABLE, 0, "the name of its runtime is too long");
	return 0;
}

void docker_read_message(const json_t *answer, char *ret_text, size_t size)
{
	const json_t *detail = json_object_get(answer, "errorDetail");
	const char *text = text_of(answer, "message");

	if (!*text)
		text = text_of(detail, "message");
	copy_printable(ret_text, size, text);
}

int docker_read_exit(const json_t *answer)
{
	json_int_t code = json_integer_value(json_object_get(answer, "StatusCode"));

	if (code > 128 && code <= 128 + SIGRTMAX)
		return (int)(code - 128);
	return W_EXITCODE((int)(code & 0xff), 0);
}

const char *docker_read_name(const json_t *answer, size_t i)
{
	const json_t *names = json_object_get(json_array_get(answer, i), "Names");
	const char *name = json_string_value(json_array_get(names, 0));

	return name && name[0] == '/' ? name + 1 : name;
}

const char *docker_read_tag(const json_t *answer, size_t i)
{
	const json_t *tags = json_object_get(json_array_get(answer, i), "RepoTags");

	return json_string_value(json_array_get(tags, 0));
}

bool docker_has_volumes(const json_t *image)
{
	return json_object_size(json_object_get(json_object_get(image, "Config"), "Volumes")) > 0;
}
