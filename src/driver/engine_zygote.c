/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine_internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include <string.h>

/*
 * Every tenant has its own: children of one zygote share its memory layout and hash seed. The
 * engine has room for some. The least recently used is replaced unless in use; a box without one
 * starts cold.
 */

#define IN_USE_US (60 * USEC_PER_SEC)

static struct zygote_slot *find_zygote(struct engine_driver *e, const struct box_spec *spec)
{
	for (size_t i = 0; i < ENGINE_ZYGOTES_MAX; i++) {
		struct zygote_slot *z = &e->zygotes[i];

		if (str_equal(z->command, spec->zygote) && str_equal(z->modules, spec->modules) &&
		    str_equal(z->tenant, spec->tenant))
			return z;
	}
	return NULL;
}

static struct zygote_slot *find_slot(struct engine_driver *e)
{
	struct zygote_slot *oldest = &e->zygotes[0];

	for (size_t i = 0; i < ENGINE_ZYGOTES_MAX; i++) {
		if (!e->zygotes[i].command[0])
			return &e->zygotes[i];
		if (e->zygotes[i].used_us < oldest->used_us)
			oldest = &e->zygotes[i];
	}
	return clock_us() - oldest->used_us > IN_USE_US ? oldest : NULL;
}

static uint32_t number_of(const struct engine_driver *e, const struct zygote_slot *z)
{
	return (uint32_t)(z - e->zygotes) + 1;
}

static struct zygote_slot *define_zygote(struct engine_driver *e, const struct box_spec *spec)
{
	struct zygote_slot *z = find_slot(e);
	struct engine_zygote request = {.op = ENGINE_ZYGOTE};

	static_assert(sizeof(request.command) == sizeof(spec->zygote) &&
	                      sizeof(request.modules) == sizeof(spec->modules) &&
	                      sizeof(request.tenant) == sizeof(spec->tenant),
	              "passed through");
	if (!z)
		return NULL;
	/* NUL-padded, for the engine. */
	memcpy(request.command, spec->zygote, strlen(spec->zygote));
	memcpy(request.modules, spec->modules, strlen(spec->modules));
	memcpy(request.tenant, spec->tenant, strlen(spec->tenant));
	request.zygote = number_of(e, z);
	request.seq = ++e->seq;
	/* Socket full, or engine gone: the next box retries. */
	if (e->sock < 0 || fd_send(e->sock, &request, sizeof(request), NULL, 0) < 0)
		return NULL;
	memcpy(z->command, request.command, sizeof(z->command));
	memcpy(z->modules, request.modules, sizeof(z->modules));
	memcpy(z->tenant, request.tenant, sizeof(z->tenant));
	return z;
}

uint32_t engine_zygote_of(struct engine_driver *e, const struct box_spec *spec)
{
	struct zygote_slot *z;

	/* Only the host's root has zygotes: another root's content is not the operator's. */
	if (!spec->zygote[0] || !e->has_zygotes)
		return 0;
	z = find_zygote(e, spec);
	if (!z && !spec->root[0])
		z = define_zygote(e, spec);
	if (!z)
		return 0;
	z->used_us = clock_us();
	return number_of(e, z);
}

enum box_start engine_start_of(const struct box_spec *spec, uint32_t start)
{
	static const enum box_start starts[] = {
		[ENGINE_START_COLD] = BOX_START_COLD,
		[ENGINE_START_ZYGOTE] = BOX_START_ZYGOTE,
		[ENGINE_START_NOT_YET] = BOX_START_NOT_YET,
		[ENGINE_START_BROKEN] = BOX_START_UNAVAILABLE,
		[ENGINE_START_ROOT] = BOX_START_ROOT,
		[ENGINE_START_QUOTA] = BOX_START_QUOTA,
	};

	static_assert(ARRAY_SIZE(starts) == ENGINE_START_COUNT, "every start has a row");
	if (spec->zygote[0] && spec->root[0])
		return BOX_START_ROOT;
	return start < ENGINE_START_COUNT ? starts[start] : BOX_START_COLD;
}
