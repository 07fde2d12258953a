/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/box_spec.h"

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"
#include <stdio.h>

#include "base/size.h"
#include "wire/layer.h"
#include <stddef.h>
#include <string.h>

#define BOX_ID_RANDOM 25 /* 129 bits */

/*
 * Wider than any policy, no wider than any backend accepts: a value outside is a bug or a lost
 * unit, and 0 means "no limit" to some kernel interfaces.
 */
static const struct {
	const char *field;
	size_t offset;
	bool wide; /* uint64_t, else uint32_t */
	uint64_t min, max;
} ranges[] = {
#define WIDE(name)   "limits." #name, offsetof(struct box_limits, name), true
#define NARROW(name) "limits." #name, offsetof(struct box_limits, name), false
	{WIDE(memory_bytes), 4 * MIB, 16 * TIB},
	{WIDE(workspace_bytes), 64 * KIB, 16 * TIB},
	{WIDE(tmp_bytes), 64 * KIB, 16 * TIB},
	{WIDE(shm_bytes), 64 * KIB, 16 * TIB},
	{NARROW(workspace_inodes), 16, 100000000},
	{NARROW(tmp_inodes), 16, 100000000},
	{NARROW(pids), 2, 4194304},
	{NARROW(cpu_millicores), 10, 1024000},
	{NARROW(nofile), 16, 1048576},
#undef WIDE
#undef NARROW
};

static uint64_t limit_value(const struct box_limits *limits, size_t row)
{
	const char *at = (const char *)limits + ranges[row].offset;
	uint64_t wide;
	uint32_t narrow;

	if (ranges[row].wide) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

/* It names cgroup directories. */
static bool is_id(const char *id)
{
	size_t len = strnlen(id, BOX_ID_LEN);

	if (len == 0 || len == BOX_ID_LEN)
		return false;
	return strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == len;
}

static const char *const network_names[] = {
	[BOX_NETWORK_NONE] = "none",
	[BOX_NETWORK_ALLOWLIST] = "allowlist",
	[BOX_NETWORK_BRIDGE] = "bridge",
	[BOX_NETWORK_HOST] = "host",
};
static_assert(ARRAY_SIZE(network_names) == BOX_NETWORK_COUNT, "every network has a name");

const char *box_network_name(enum box_network network)
{
	return (unsigned)network < BOX_NETWORK_COUNT ? network_names[network] : "?";
}

static const char *const grade_names[] = {
	[BOX_GRADE_NAMESPACE] = "namespace",
	[BOX_GRADE_GVISOR] = "gvisor",
	[BOX_GRADE_VM] = "vm",
};
static_assert(ARRAY_SIZE(grade_names) == BOX_GRADE_COUNT, "every grade has a name");

const char *box_grade_name(enum box_grade grade)
{
	return (unsigned)grade < BOX_GRADE_COUNT ? grade_names[grade] : "?";
}

enum box_grade box_grade_find(const char *name)
{
	unsigned i = 0;

	while (i < BOX_GRADE_COUNT && !str_equal(grade_names[i], name))
		i++;
	return (enum box_grade)i;
}

static const char *const start_reasons[] = {
	[BOX_START_COLD] = NULL,
	[BOX_START_ZYGOTE] = NULL,
	[BOX_START_NOT_YET] = "zygote_starting",
	[BOX_START_UNAVAILABLE] = "zygote_unavailable",
	[BOX_START_ROOT] = "root_has_no_zygote",
	[BOX_START_LOST] = "zygote_lost",
	[BOX_START_QUOTA] = "small_cpu_quota",
};
static_assert(ARRAY_SIZE(start_reasons) == BOX_START_COUNT, "every start has a row");

const char *box_start_reason(enum box_start start)
{
	return (unsigned)start < BOX_START_COUNT ? start_reasons[start] : NULL;
}

/* It names an operator's directory. */
static bool is_root(const char *name)
{
	size_t len = strnlen(name, BOX_ROOT_LEN);

	return len < BOX_ROOT_LEN && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

/* It names cgroup directories, too. */
static bool is_tenant(const char *tenant)
{
	size_t len = strnlen(tenant, BOX_TENANT_LEN);

	return len < BOX_TENANT_LEN &&
	       strspn(tenant, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") ==
	               len;
}

int box_spec_check(const struct box_spec *spec, struct error *err)
{
	if (!is_id(spec->id))
		return error_field(err, "id", "must be 1 to %d characters of [a-z0-9]",
		                   BOX_ID_LEN - 1);
	if (!is_root(spec->root))
		return error_field(err, "root", "must be at most %d characters of [a-z0-9._-]",
		                   BOX_ROOT_LEN - 1);
	if (!is_root(spec->packages))
		return error_field(err, "packages", "must be at most %d characters of [a-z0-9._-]",
		                   BOX_ROOT_LEN - 1);
	if (!is_tenant(spec->tenant))
		return error_field(err, "tenant", "must be at most %d characters of [A-Za-z0-9_-]",
		                   BOX_TENANT_LEN - 1);
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		uint64_t value = limit_value(&spec->limits, i);

		if (value < ranges[i].min || value > ranges[i].max)
			return error_field(err, ranges[i].field, "must be %llu to %llu",
			                   (unsigned long long)ranges[i].min,
			                   (unsigned long long)ranges[i].max);
	}
	if (spec->required_layers & ~LAYERS_ALL)
		return error_field(err, "required_layers", "names a layer that does not exist");
	return 0;
}

static bool has_same_limits(const struct box_limits *a, const struct box_limits *b)
{
	return a->memory_bytes == b->memory_bytes && a->workspace_bytes == b->workspace_bytes &&
	       a->tmp_bytes == b->tmp_bytes && a->shm_bytes == b->shm_bytes &&
	       a->workspace_inodes == b->workspace_inodes && a->tmp_inodes == b->tmp_inodes &&
	       a->pids == b->pids && a->cpu_millicores == b->cpu_millicores &&
	       a->nofile == b->nofile;
}

bool box_spec_is_like(const struct box_spec *a, const struct box_spec *b)
{
	return has_same_limits(&a->limits, &b->limits) && strcmp(a->root, b->root) == 0 &&
	       strcmp(a->engine, b->engine) == 0 && strcmp(a->packages, b->packages) == 0 &&
	       strcmp(a->tenant, b->tenant) == 0 && a->required_layers == b->required_layers &&
	       a->network == b->network && a->ranges == b->ranges && a->tools == b->tools &&
	       a->exec_tmp == b->exec_tmp && a->keep == b->keep &&
	       strcmp(a->zygote, b->zygote) == 0 && strcmp(a->modules, b->modules) == 0;
}

void box_spec_make_id(char ret_id[BOX_ID_LEN])
{
	char random[BOX_ID_RANDOM + 1];

	id_random(random, BOX_ID_RANDOM);
	(void)snprintf(ret_id, BOX_ID_LEN, "b%s", random);
}
