/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/runtimes.h"

#include <string.h>

#include "base/str.h"
#include "oci/steps.h"
#include "wire/container.h"
#include "wire/reattach.h"

#define MIB (1024ULL * 1024)

/* Made by the runtime, inside those that the engine made for the runtime itself. */
#define VOUCHED                                                                                    \
	(LAYER_BIT(LAYER_PID) | LAYER_BIT(LAYER_MNT) | LAYER_BIT(LAYER_IPC) | LAYER_BIT(LAYER_UTS))
/* Of a kernel in user space, everything inside is its word. */
#define VOUCHED_GUEST                                                                              \
	(VOUCHED | LAYER_BIT(LAYER_CAPS) | LAYER_BIT(LAYER_NO_NEW_PRIVS) |                         \
	 LAYER_BIT(LAYER_SECCOMP) | LAYER_BIT(LAYER_RLIMITS))
#define FEATURES                                                                                   \
	(ENGINE_CAN_IMAGE | ENGINE_CAN_PACKAGES | ENGINE_CAN_EGRESS | ENGINE_CAN_GATEWAY |         \
	 ENGINE_CAN_FREEZE | ENGINE_CAN_KEEP)
#define LACKS_GUEST LAYER_BIT(LAYER_LANDLOCK)

#define STEPS                                                                                      \
	.open = program_open, .build = enclose_build, .check = program_check,                      \
	.describe = step_describe, .enclose = step_enclose, .launch = step_launch

#define WORD(word)                                                                                 \
	{                                                                                          \
		.text = (word)                                                                     \
	}

/*
 * The runtime is root of the box's user namespace and of nothing else: it is told to make neither
 * user nor network namespace (they are there) nor cgroups (it is in them).
 */
static struct runtime_row rows[] = {
	{
		.runtime = {.name = "bwrap",
                            .grade = ENGINE_GRADE_NAMESPACE,
                            .features = FEATURES,
                            .vouched = VOUCHED,
                            /* It waits for the agent, and so does launch.c. */
                            .pids_starting = 4,
                            .pids_running = 2,
                            .has_time_ns = true,
                            STEPS},
		.paths = {"/usr/bin/bwrap"},
		.package = "bubblewrap",
		.says = "bubblewrap ",
		.describe = spec_write_arguments,
		.words = {WORD("bwrap"),
                          WORD("--args"),
                          WORD("6"),
                          WORD("--"),
                          WORD(SPEC_AGENT_PATH),
                          {.text = REATTACH_ARG, .with = ENGINE_FLAG_KEEP},
                          WORD(CONTAINER_WORD)},
	},
	{
		.runtime = {.name = "runc",
                            .grade = ENGINE_GRADE_NAMESPACE,
                            .features = FEATURES,
                            .vouched = VOUCHED,
                            /* Threads of a Go program and of its two helpers. */
                            .pids_starting = 64,
                            .pids_running = 1,
                            .has_time_ns = true,
                            STEPS},
		.paths = {"/usr/sbin/runc", "/usr/bin/runc"},
		.package = "runc",
		.says = "runc version ",
		.needs_root = true,
		.describe = spec_write_config,
		.bundle_file = "config.json",
		.words = {WORD("runc"), WORD("--root"), WORD(PLACE_STATE), WORD("--rootless"),
                          WORD("true"), WORD("run"), WORD("--detach"), WORD("--no-new-keyring"),
                          WORD("--preserve-fds"), WORD("3"), WORD("--bundle"), WORD(PLACE_BUNDLE),
                          WORD("box")},
	},
	{
		.runtime = {.name = "crun",
                            .grade = ENGINE_GRADE_NAMESPACE,
                            .features = FEATURES,
                            .vouched = VOUCHED,
                            .pids_starting = 16,
                            .pids_running = 1,
                            .has_time_ns = true,
                            STEPS},
		.paths = {"/usr/bin/crun"},
		.package = "crun",
		.says = "crun version ",
		.describe = spec_write_config,
		.bundle_file = "config.json",
		.words = {WORD("crun"), WORD("--root"), WORD(PLACE_STATE), WORD("--cgroup-manager"),
                          WORD("disabled"), WORD("run"), WORD("--detach"), WORD("--no-new-keyring"),
                          WORD("--preserve-fds"), WORD("3"), WORD("--bundle"), WORD(PLACE_BUNDLE),
                          WORD("box")},
	},
	{
		.runtime = {.name = "runsc",
                            .grade = ENGINE_GRADE_GVISOR,
                            .features =
                                    FEATURES & ~(uint32_t)(ENGINE_CAN_GATEWAY | ENGINE_CAN_KEEP),
                            .vouched = VOUCHED_GUEST,
                            .lacks = LACKS_GUEST,
                            .pids_starting = 256,
                            .pids_running = 256,
                            .memory_bytes = 64 * MIB,
                            .is_tracer = true,
                            .nests = true,
                            STEPS},
		.alias = "gvisor",
		.paths = {"/usr/bin/runsc", "/usr/local/bin/runsc"},
		.package = "runsc",
		.says = "runsc version ",
		.by_stdio = true,
		.needs_root = true,
		.describe = spec_write_config,
		.bundle_file = "config.json",
		.words = {WORD("runsc"),
                          WORD("--root"),
                          WORD(PLACE_STATE),
                          WORD("--rootless"),
                          WORD("--ignore-cgroups"),
                          /* Its own network stack would not reach the socket that listens in the
                           * box's network namespace. */
                          {.text = "--network=host", .with = ENGINE_FLAG_EGRESS},
                          {.text = "--network=none", .without = ENGINE_FLAG_EGRESS},
                          WORD("run"),
                          WORD("--detach"),
                          WORD("--bundle"),
                          WORD(PLACE_BUNDLE),
                          WORD("box")},
	},
};

struct runtime_row *runtime_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (str_equal(rows[i].runtime.name, name) ||
		    (rows[i].alias && str_equal(rows[i].alias, name)))
			return &rows[i];
	return NULL;
}

const struct runtime_row *runtime_row_of(const struct host *host)
{
	return CONTAINER_OF(host->runtime, struct runtime_row, runtime);
}

void runtime_names(char *ret_text, size_t size)
{
	size_t len = 0;

	*ret_text = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (str_format(ret_text + len, size - len, "%s%s", i > 0 ? ", " : "",
		               rows[i].runtime.name) < 0)
			return;
		len = strlen(ret_text);
	}
}

void runtime_command(const struct runtime_row *row, uint32_t flags,
                     const char *ret_argv[RUNTIME_WORDS_MAX])
{
	size_t count = 0;

	for (const struct runtime_word *word = row->words; word->text; word++)
		if ((!word->with || (word->with & flags)) && !(word->without & flags))
			ret_argv[count++] = word->text;
	ret_argv[count] = NULL;
}
