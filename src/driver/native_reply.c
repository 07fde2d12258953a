/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include <string.h>

/*
 * Every descriptor that arrives is in @fds of native_reply, and leaves it either into a box or by
 * being closed at the end: there is no third way, so none can be forgotten.
 */

static int nonsense(struct error *err, const char *what)
{
	return error_set(err, ERR_PROTOCOL, 0, "millibox-engine %s", what);
}

/* Spread the descriptors that came over the places their mask names. */
static int sort_fds(uint32_t mask, int *fds, size_t count, int ret_fds[ENGINE_FD_COUNT])
{
	size_t next = 0;

	if ((mask >> ENGINE_FD_COUNT) || (size_t)__builtin_popcount(mask) != count)
		return -1;
	for (unsigned i = 0; i < ENGINE_FD_COUNT; i++)
		ret_fds[i] = mask & (1U << i) ? TAKE_FD(fds[next++]) : -1;
	return 0;
}

static int take_created(struct native_box *b, struct engine_reply *reply, int *fds, size_t count,
                        struct error *err)
{
	int sorted[ENGINE_FD_COUNT];

	if (!b || b->created || reply->seq != b->create_seq)
		return nonsense(err, "made a box that nobody asked for");
	if (!(reply->created.fds & (1U << ENGINE_FD_AGENT)) ||
	    (reply->created.layers & ~LAYERS_ALL) ||
	    sort_fds(reply->created.fds, fds, count, sorted) < 0)
		return nonsense(err, "described a box badly");
	native_box_created(b, &reply->created, sorted);
	return 0;
}

static int take_frozen(struct native_box *b, struct engine_reply *reply, int *fds, size_t count,
                       struct error *err)
{
	(void)fds;
	(void)count;
	if (b && reply->seq != b->freeze_seq && b->state != NATIVE_DESTROYING)
		return nonsense(err, "froze a box that nobody asked it to");
	if (b)
		b->freeze_seq = 0;
	return 0;
}

static int take_failed(struct native_box *b, struct engine_reply *reply, int *fds, size_t count,
                       struct error *err)
{
	struct error *failure = &reply->error;

	(void)fds;
	(void)count;
	(void)err;
	failure->msg[sizeof(failure->msg) - 1] = '\0';
	failure->field[sizeof(failure->field) - 1] = '\0';
	/* As an unsigned number, because an enum may be either. */
	if (failure->code == ERR_NONE || (unsigned)failure->code >= ERR_COUNT)
		failure->code = ERR_BOX_FAILED;
	if (b)
		native_box_failed(b, reply->seq, failure);
	return 0;
}

static int take_gone(struct native_box *b, struct engine_reply *reply, int *fds, size_t count,
                     struct error *err)
{
	(void)fds;
	(void)count;
	(void)err;
	if (b)
		native_box_gone(b, &reply->gone);
	return 0;
}

/*
 * GONE and FAILED of a box that is no longer known are in order: our DESTROY and the engine's own
 * GONE may cross, and then both sides have already let go when the answer to DESTROY comes.
 */
static const struct {
	int (*take)(struct native_box *b, struct engine_reply *reply, int *fds, size_t count,
	            struct error *err);
	bool has_fds;
} replies[ENGINE_OP_COUNT] = {
	[ENGINE_CREATED] = {take_created, true },
	[ENGINE_FROZEN] = {take_frozen,  false},
	[ENGINE_FAILED] = {take_failed,  false},
	[ENGINE_GONE] = {take_gone,    false},
};

static int dispatch(struct native *n, struct engine_reply *reply, int *fds, size_t count,
                    struct error *err)
{
	if (reply->op >= ENGINE_OP_COUNT || !replies[reply->op].take)
		return nonsense(err, "answered something that is no answer");
	if (strnlen(reply->box_id, sizeof(reply->box_id)) == sizeof(reply->box_id))
		return nonsense(err, "named a box without an end");
	if (count > 0 && !replies[reply->op].has_fds)
		return nonsense(err, "sent descriptors where none belong");
	return replies[reply->op].take(map_get(n->by_id, reply->box_id), reply, fds, count, err);
}

int native_reply(struct native *n, const void *data, size_t len, int *fds, size_t fds_count,
                 struct error *err)
{
	struct engine_reply reply;
	int r;

	if (len == sizeof(reply)) {
		memcpy(&reply, data, sizeof(reply));
		r = dispatch(n, &reply, fds, fds_count, err);
	} else {
		r = nonsense(err, "sent an answer of the wrong size");
	}
	for (size_t i = 0; i < fds_count; i++)
		fds[i] = fd_close(fds[i]);
	return r;
}
