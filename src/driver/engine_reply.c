/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine_internal.h"

#include "base/fd.h"
#include "base/map.h"
#include <string.h>

/* Each received descriptor is either moved to a box or closed at the end. */

int engine_bad_reply(struct error *err, const char *what)
{
	return error_set(err, ERR_PROTOCOL, 0, "millibox-engine %s", what);
}

struct message {
	struct engine_reply reply;
	int *fds; /* -1 once taken */
	size_t fds_count;
};

int engine_sort_fds(int *fds, size_t count, uint32_t mask, int ret_fds[ENGINE_FD_COUNT])
{
	size_t next = 0;

	if ((mask >> ENGINE_FD_COUNT) || (size_t)__builtin_popcount(mask) != count)
		return -1;
	for (unsigned i = 0; i < ENGINE_FD_COUNT; i++) {
		ret_fds[i] = -1;
		if (!(mask & (1U << i)))
			continue;
		ret_fds[i] = fds[next];
		fds[next++] = -1;
	}
	return 0;
}

static int take_created(struct engine_driver *e, struct engine_box *b, struct message *m,
                        struct error *err)
{
	const struct engine_created *created = &m->reply.created;
	int sorted[ENGINE_FD_COUNT];

	(void)e;
	if (!b || b->created || m->reply.seq != b->create_seq)
		return engine_bad_reply(err, "created a box that was not requested");
	if (!(created->fds & (1U << ENGINE_FD_AGENT)) || (created->layers & ~LAYERS_ALL) ||
	    (created->vouched & ~LAYERS_ALL) ||
	    engine_sort_fds(m->fds, m->fds_count, created->fds, sorted) < 0)
		return engine_bad_reply(err, "sent an invalid description of a box");
	engine_box_created(b, created, sorted);
	return 0;
}

static int take_frozen(struct engine_driver *e, struct engine_box *b, struct message *m,
                       struct error *err)
{
	(void)e;
	if (b && m->reply.seq != b->freeze_seq && b->state != ENGINE_BOX_DESTROYING)
		return engine_bad_reply(err, "froze a box without a request");
	if (b)
		engine_box_frozen(b);
	return 0;
}

static int take_failed(struct engine_driver *e, struct engine_box *b, struct message *m,
                       struct error *err)
{
	struct error *failure = &m->reply.error;

	failure->msg[sizeof(failure->msg) - 1] = '\0';
	failure->field[sizeof(failure->field) - 1] = '\0';
	/* An enum may be signed. */
	if (failure->code == ERR_NONE || (unsigned)failure->code >= ERR_COUNT)
		failure->code = ERR_BOX_FAILED;
	/* Only the daemon knows what has begun. */
	failure->retry_s = 0;
	/* It cannot start. */
	if (e->is_probing && m->reply.seq == ENGINE_PROBE_SEQ) {
		*err = *failure;
		return -1;
	}
	/* An engine that cannot remove a box is unusable. */
	if (b && b->destroy_seq && m->reply.seq == b->destroy_seq) {
		*err = *failure;
		return error_wrap(err, "millibox-engine cannot remove box %s", b->base.spec.id);
	}
	if (b)
		engine_box_failed(b, failure);
	return 0;
}

static int take_gone(struct engine_driver *e, struct engine_box *b, struct message *m,
                     struct error *err)
{
	(void)e;
	(void)err;
	if (b)
		engine_box_gone(b, &m->reply.gone);
	return 0;
}

static int take_probed(struct engine_driver *e, struct engine_box *b attr_unused, struct message *m,
                       struct error *err)
{
	return engine_return_probed(e, &m->reply.probe, err);
}

/* GONE and FAILED of an unknown box are fine: our DESTROY and the engine's GONE may cross. */
static const struct {
	int (*take)(struct engine_driver *e, struct engine_box *b, struct message *m,
	            struct error *err);
	bool has_fds;
} replies[ENGINE_OP_COUNT] = {
	[ENGINE_PROBED] = {take_probed, true},  [ENGINE_CREATED] = {take_created, true},
	[ENGINE_FROZEN] = {take_frozen, false}, [ENGINE_FAILED] = {take_failed, false},
	[ENGINE_GONE] = {take_gone, false},
};

static int dispatch_reply(struct engine_driver *e, struct message *m, struct error *err)
{
	const struct engine_reply *reply = &m->reply;

	if (reply->op >= ENGINE_OP_COUNT || !replies[reply->op].take)
		return engine_bad_reply(err, "sent an unknown reply");
	if (strnlen(reply->box_id, sizeof(reply->box_id)) == sizeof(reply->box_id))
		return engine_bad_reply(err, "sent an unterminated box id");
	if (m->fds_count > 0 && !replies[reply->op].has_fds)
		return engine_bad_reply(err, "sent unexpected descriptors");
	return replies[reply->op].take(e, map_get(e->by_id, reply->box_id), m, err);
}

int engine_reply(struct engine_driver *e, const void *data, size_t len, int *fds, size_t fds_count,
                 struct error *err)
{
	struct message m = {.fds = fds, .fds_count = fds_count};
	int r;

	if (len == sizeof(m.reply)) {
		memcpy(&m.reply, data, sizeof(m.reply));
		r = dispatch_reply(e, &m, err);
	} else {
		r = engine_bad_reply(err, "sent a reply of the wrong size");
	}
	for (size_t i = 0; i < fds_count; i++)
		fds[i] = fd_close(fds[i]);
	return r;
}
