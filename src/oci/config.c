/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/spec.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "oci/runtimes.h"
#include "json/json_dump.h"

/* The agent needs these to become the payload and to kill it; payloads do not get them. */
static const char *const caps[] = {"CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SETPCAP"};
static const char *const sets[] = {"bounding", "effective", "permitted", "inheritable", "ambient"};
/* User, network, cgroup and time namespaces are those of the runtime. */
static const char *const namespaces[] = {"pid", "mount", "ipc", "uts"};

static json_t *list_of(const char *const *words, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_string(words[i]));
	return list;
}

static json_t *agent_words(const struct spec *spec)
{
	size_t count = 0;

	while (spec->agent[count])
		count++;
	return list_of(spec->agent, count);
}

static json_t *process_of(const struct spec *spec)
{
	json_t *capabilities = json_object();
	int id = spec->is_single ? BOX_PAYLOAD_ID : BOX_AGENT_ID;

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		json_object_set_new(capabilities, sets[i], list_of(caps, ARRAY_SIZE(caps)));
	return json_pack("{s:b, s:{s:i, s:i}, s:o, s:[], s:s, s:o, s:b}", "terminal", 0, "user",
	                 "uid", id, "gid", id, "args", agent_words(spec), "env", "cwd", "/",
	                 "capabilities", capabilities, "noNewPrivileges", 1);
}

/* A runtime sees only the mount of the root: gVisor would put its own, without limits, on some. */
static const char *const guest_places[] = {"/tmp", "/dev/shm"};

static json_t *bind_mount(const char *place)
{
	char source[64];

	(void)snprintf(source, sizeof(source), PLACE_ROOT "%s", place);
	return json_pack("{s:s, s:s, s:s, s:[s, s]}", "destination", place, "type", "bind",
	                 "source", source, "options", "rbind", "rprivate");
}

/* The root has all other mounts already. In its /dev a runtime of the host's kernel must make
 * nothing; gVisor has a /dev of its own. */
static json_t *mounts(const struct spec *spec)
{
	json_t *list = json_pack("[{s:s, s:s, s:s, s:[s, s, s, s, s]}]", "destination", "/proc",
	                         "type", "proc", "source", "proc", "options", "nosuid", "noexec",
	                         "nodev", "ro", "hidepid=invisible");

	if (!spec->is_guest)
		json_array_append_new(list, bind_mount("/dev"));
	for (size_t i = 0; i < ARRAY_SIZE(guest_places) && spec->is_guest; i++)
		json_array_append_new(list, bind_mount(guest_places[i]));
	return list;
}

static json_t *masked_paths(const struct spec *spec)
{
	json_t *list = json_array();
	char path[80];

	for (size_t i = 0; i < spec->mask_count; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%s", spec->masks[i].name);
		json_array_append_new(list, json_string(path));
	}
	return list;
}

static json_t *mapping(const struct spec *spec)
{
	if (!spec->is_single)
		return NULL;
	return json_pack("[{s:i, s:i, s:i}]", "containerID", BOX_PAYLOAD_ID, "hostID", 0, "size",
	                 1);
}

static json_t *linux_of(const struct spec *spec)
{
	json_t *kinds = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		json_array_append_new(kinds, json_pack("{s:s}", "type", namespaces[i]));
	if (spec->is_single)
		json_array_append_new(kinds, json_pack("{s:s}", "type", "user"));
	return json_pack("{s:o, s:o, s:[s, s], s:o*, s:o*}", "namespaces", kinds, "maskedPaths",
	                 masked_paths(spec), "readonlyPaths", "/proc/sys", "/proc/sysrq-trigger",
	                 "uidMappings", mapping(spec), "gidMappings", mapping(spec));
}

int spec_write_config(const struct spec *spec, struct buf *ret_text)
{
	json_t *config =
		json_pack("{s:s, s:o, s:{s:s, s:b}, s:s, s:o, s:o}", "ociVersion", "1.0.2",
	                  "process", process_of(spec), "root", "path", PLACE_ROOT, "readonly", 0,
	                  "hostname", "millibox", "mounts", mounts(spec), "linux", linux_of(spec));
	int r = config && json_dump_to(ret_text, config) == 0 ? 0 : -ENOMEM;

	json_decref(config);
	return r;
}
