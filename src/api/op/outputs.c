/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/outputs.h"

#include "base/alloc.h"
#include "base/list.h"
#include "base/str.h"

/* Entries are longer than a result's text, so a few thousand at most: a list will do. */
struct entry {
	struct list node; /* oldest first */
	char *tenant, *id;
	struct buf streams[OUTPUT_COUNT];
};

struct outputs {
	struct list entries;
	size_t bytes;
};

static size_t size_of(const struct buf streams[OUTPUT_COUNT])
{
	return streams[OUTPUT_STDOUT].len + streams[OUTPUT_STDERR].len;
}

static void drop_entry(struct outputs *o, struct entry *e)
{
	o->bytes -= size_of(e->streams);
	list_remove(&e->node);
	for (size_t i = 0; i < OUTPUT_COUNT; i++)
		buf_done(&e->streams[i]);
	free(e->tenant);
	free(e->id);
	free(e);
}

struct outputs *outputs_new(void)
{
	struct outputs *o = NEW(struct outputs);

	list_init(&o->entries);
	return o;
}

void outputs_free(struct outputs *o)
{
	struct entry *e;

	if (!o)
		return;
	LIST_FOREACH (e, &o->entries, struct entry, node)
		drop_entry(o, e);
	free(o);
}

static size_t bytes_of(const struct outputs *o, const char *tenant, struct entry **ret_oldest)
{
	size_t bytes = 0;
	struct entry *e;

	*ret_oldest = NULL;
	LIST_FOREACH (e, &o->entries, struct entry, node) { // NOLINT: as below
		if (!str_equal(e->tenant, tenant))
			continue;
		bytes += size_of(e->streams);
		*ret_oldest = *ret_oldest ? *ret_oldest : e;
	}
	return bytes;
}

/* Make room for @more bytes. Return: whether one was dropped. */
static bool drop_one(struct outputs *o, const char *tenant, size_t more)
{
	struct entry *oldest;

	if (bytes_of(o, tenant, &oldest) + more <= OUTPUTS_TENANT_BYTES)
		oldest = o->bytes + more > OUTPUTS_MAX_BYTES
		                 ? LIST_FIRST(&o->entries, struct entry, node)
		                 : NULL;
	if (oldest)
		drop_entry(o, oldest); // NOLINT: one that was freed has left the list
	return oldest;
}

void outputs_keep(struct outputs *o, const char *tenant, const char *execution_id,
                  const struct buf streams[OUTPUT_COUNT])
{
	size_t more = size_of(streams);
	struct entry *e;

	if (more > OUTPUTS_TENANT_BYTES)
		return;
	while (drop_one(o, tenant, more))
		; /* until there is room */
	e = NEW(struct entry);
	e->tenant = xstrdup(tenant);
	e->id = xstrdup(execution_id);
	for (size_t i = 0; i < OUTPUT_COUNT; i++) {
		buf_init(&e->streams[i], streams[i].len);
		(void)!buf_add(&e->streams[i], streams[i].data ? streams[i].data : "",
		               streams[i].len);
	}
	list_append(&o->entries, &e->node);
	o->bytes += more;
}

const struct buf *outputs_find(const struct outputs *o, const char *tenant,
                               const char *execution_id, enum output_stream stream)
{
	struct entry *e;

	LIST_FOREACH (e, &o->entries, struct entry, node)
		if (str_equal(e->tenant, tenant) && str_equal(e->id, execution_id))
			return &e->streams[stream];
	return NULL;
}
