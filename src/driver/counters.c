/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "base/attr.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"

#define TEXT_MAX 8192

/*
 * Both cgroup versions have the same counters under different names and units. Names do not
 * overlap, so the version is not tested: a counter's first readable row wins.
 */

struct source {
	size_t counter;
	unsigned uses; /* mask of enum counters_for */
	enum counters_dir dir;
	const char *file;
	const char *key;  /* "key value" line; NULL: the file is a number */
	uint64_t divisor; /* to the counter's unit */
};

#define COUNTER(name) offsetof(struct box_counters, name)
#define HELD          (COUNTERS_FOR_VIEW | COUNTERS_FOR_MEMORY)
#define PEAK          (COUNTERS_FOR_RESULT | COUNTERS_FOR_VIEW)
#define GROWS         (COUNTERS_FOR_BASELINE | COUNTERS_FOR_RESULT | COUNTERS_FOR_VIEW)

static const struct source sources[] = {
	{COUNTER(memory_peak_bytes), PEAK, COUNTERS_MEMORY, "memory.peak", NULL, 1},
	{COUNTER(memory_peak_bytes), PEAK, COUNTERS_MEMORY, "memory.max_usage_in_bytes", NULL, 1},
	{COUNTER(memory_bytes), HELD, COUNTERS_MEMORY, "memory.current", NULL, 1},
	{COUNTER(memory_bytes), HELD, COUNTERS_MEMORY, "memory.usage_in_bytes", NULL, 1},
	{COUNTER(cache_bytes), COUNTERS_FOR_MEMORY, COUNTERS_MEMORY, "memory.stat", "inactive_file",
         1},
	{COUNTER(oom_kills), GROWS, COUNTERS_MEMORY, "memory.events", "oom_kill", 1},
	{COUNTER(oom_kills), GROWS, COUNTERS_MEMORY, "memory.oom_control", "oom_kill", 1},
	{COUNTER(cpu_us), GROWS, COUNTERS_CPU, "cpu.stat", "usage_usec", 1},
	{COUNTER(cpu_us), GROWS, COUNTERS_CPU, "cpuacct.usage", NULL, 1000},
	{COUNTER(pids_peak), PEAK, COUNTERS_PIDS, "pids.peak", NULL, 1},
	{COUNTER(pids_denied), GROWS, COUNTERS_PIDS, "pids.events", "max", 1},
};
static_assert(ARRAY_SIZE(sources) == COUNTERS_ROWS, "every row has a file");

void counters_files_init(struct counters_files *files)
{
	for (size_t i = 0; i < COUNTERS_ROWS; i++)
		files->fds[i] = -1;
}

void counters_files_close(struct counters_files *files)
{
	for (size_t i = 0; i < COUNTERS_ROWS; i++)
		files->fds[i] = fd_close(files->fds[i]);
}

static int read_text(int dir, const char *name, int *kept, char ret_text[TEXT_MAX])
{
	if (!kept)
		return file_read_text_at(dir, name, ret_text, TEXT_MAX);
	if (*kept < 0) {
		int fd = fd_open_at(dir, name, O_RDONLY, 0);

		if (fd < 0)
			return fd;
		*kept = fd;
	}
	return file_read_again(*kept, ret_text, TEXT_MAX);
}

static int read_source(int dir, const struct source *source, int *kept, uint64_t *ret_value)
{
	char text[TEXT_MAX];
	uint64_t value;
	int r = read_text(dir, source->file, kept, text);

	if (r < 0)
		return r;
	/* Without the line: another kernel. */
	r = source->key ? file_find_key(text, source->key, &value) : parse_u64(text, &value);
	if (r >= 0)
		*ret_value = value / source->divisor;
	return r;
}

/* Once one name of a counter is found, its others are absent. If none is, the group may be gone. */
static void learn_absent(uint32_t missed, const struct box_counters *c,
                         struct counters_absent *absent)
{
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		const uint64_t *at = (const void *)((const char *)c + sources[i].counter);

		if ((missed & (1U << i)) && *at != COUNTER_UNKNOWN)
			absent->rows |= 1U << i;
	}
}

void counters_read(const int dirs[COUNTERS_DIRS], struct counters_files *files,
                   enum counters_for purpose, struct counters_absent *absent,
                   struct box_counters *ret_counters)
{
	uint32_t missed = 0;

	static_assert(COUNTERS_ROWS <= 32, "every row has a bit");
	memset(ret_counters, 0xff, sizeof(*ret_counters)); /* COUNTER_UNKNOWN is all ones */
	for (size_t i = 0; i < COUNTERS_ROWS; i++) {
		const struct source *source = &sources[i];
		uint64_t *at = (void *)((char *)ret_counters + source->counter);

		if ((source->uses & purpose) && *at == COUNTER_UNKNOWN && dirs[source->dir] >= 0 &&
		    !(absent->rows & (1U << i)) &&
		    read_source(dirs[source->dir], source, files ? &files->fds[i] : NULL, at) ==
		            -ENOENT)
			missed |= 1U << i;
	}
	learn_absent(missed, ret_counters, absent);
}
