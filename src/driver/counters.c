/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/counters.h"

#include "base/attr.h"
#include "base/file.h"
#include <errno.h>
#include <stddef.h>

/*
 * Both versions of cgroups say the same things under different names and in different units. Which
 * version a directory is of is not asked: names do not overlap, and the first row of a counter that
 * can be read gives it.
 */

enum counter_dir {
	DIR_MEMORY,
	DIR_PIDS,
	DIR_CPU,
	DIR_COUNT
};

struct source {
	size_t counter; /* offset in struct box_counters */
	enum counter_dir dir;
	const char *file;
	const char *key;  /* "key value" line; NULL: the file is the number */
	uint64_t divisor; /* to the counter's unit */
};

#define COUNTER(name) offsetof(struct box_counters, name)

static const struct source sources[] = {
	{COUNTER(memory_peak_bytes), DIR_MEMORY, "memory.peak",               NULL,         1   },
	{COUNTER(memory_peak_bytes), DIR_MEMORY, "memory.max_usage_in_bytes", NULL,         1   },
	{COUNTER(memory_bytes),      DIR_MEMORY, "memory.current",            NULL,         1   },
	{COUNTER(memory_bytes),      DIR_MEMORY, "memory.usage_in_bytes",     NULL,         1   },
	{COUNTER(oom_kills),         DIR_MEMORY, "memory.events",             "oom_kill",   1   },
	{COUNTER(oom_kills),         DIR_MEMORY, "memory.oom_control",        "oom_kill",   1   },
	{COUNTER(cpu_us),            DIR_CPU,    "cpu.stat",                  "usage_usec", 1   },
	{COUNTER(cpu_us),            DIR_CPU,    "cpuacct.usage",             NULL,         1000}, /* ns */
	{COUNTER(pids_peak),         DIR_PIDS,   "pids.peak",                 NULL,         1   },
	{COUNTER(pids_denied),       DIR_PIDS,   "pids.events",               "max",        1   },
};

static int read_source(int dir, const struct source *source, uint64_t *ret_value)
{
	uint64_t value;
	int r = source->key ? file_read_key_at(dir, source->file, source->key, &value)
	                    : file_read_u64_at(dir, source->file, &value);

	if (r < 0)
		return r;
	*ret_value = value / source->divisor;
	return 0;
}

/* Of a counter that one name has given, names that were not there never will be. Of one that none
 * has given that is not known: the group may be gone. */
static void learn(uint32_t missed, const struct box_counters *c, struct counters_absent *absent)
{
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		const uint64_t *at = (const void *)((const char *)c + sources[i].counter);

		if ((missed & (1U << i)) && *at != COUNTER_UNKNOWN)
			absent->rows |= 1U << i;
	}
}

void counters_read(int memory_dir, int pids_dir, int cpu_dir, struct counters_absent *absent,
                   struct box_counters *ret_counters)
{
	const int dirs[DIR_COUNT] = {
		[DIR_MEMORY] = memory_dir, [DIR_PIDS] = pids_dir, [DIR_CPU] = cpu_dir};
	uint32_t missed = 0;

	static_assert(ARRAY_SIZE(sources) <= 32, "every row has its bit");
	*ret_counters = (struct box_counters){COUNTER_UNKNOWN, COUNTER_UNKNOWN, COUNTER_UNKNOWN,
	                                      COUNTER_UNKNOWN, COUNTER_UNKNOWN, COUNTER_UNKNOWN};
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		uint64_t *at = (void *)((char *)ret_counters + sources[i].counter);
		int dir = dirs[sources[i].dir];

		/* A name of the other version, or a kernel too old for it: stays unknown. */
		if (*at == COUNTER_UNKNOWN && dir >= 0 && !(absent->rows & (1U << i)) &&
		    read_source(dir, &sources[i], at) == -ENOENT)
			missed |= 1U << i;
	}
	learn(missed, ret_counters, absent);
}
