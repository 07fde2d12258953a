/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/journal.h"

#include <errno.h>
#include <string.h>

#include "wire/frame.h"

void journal_init(struct journal *j, bool on)
{
	j->on = on;
	buf_init(&j->frames, JOURNAL_MAX_BYTES);
}

void journal_done(struct journal *j)
{
	buf_done(&j->frames);
}

static struct journal_entry *find_entry(struct journal *j, uint32_t id)
{
	for (size_t i = 0; i < j->count; i++)
		if (j->entries[i].id == id)
			return &j->entries[i];
	return NULL;
}

int journal_label(struct journal *j, uint32_t id, const struct wire_bytes *text)
{
	struct journal_entry *e = NULL;

	if (!j->on || text->len == 0 || text->len > WIRE_LABEL_MAX || j->count == WIRE_KEPT_MAX ||
	    find_entry(j, id))
		return -EPROTO;
	e = &j->entries[j->count++];
	*e = (struct journal_entry){.id = id};
	memcpy(e->label, text->data, text->len);
	return 0;
}

int journal_begin(struct journal *j, uint32_t id, uint32_t runner, bool keep)
{
	struct journal_entry *e = find_entry(j, id);

	if (!j->on)
		return 0;
	/* Without a label no daemon can tell whose it is. */
	if (!e || e->begun)
		return -EPROTO;
	e->begun = true;
	e->keep = keep;
	e->runner = runner;
	return 0;
}

void journal_skip_output(struct journal *j, uint32_t id)
{
	struct journal_entry *e = find_entry(j, id);

	if (e)
		e->fleeting = true;
}

/* Also moves the cursor. */
static void remove_frames(struct journal *j, uint32_t id)
{
	char *data = j->frames.data;
	size_t from = 0, to = 0, cursor = j->cursor;
	struct frame frame;

	while (from < j->frames.len) {
		/* Complete frames of our own. */
		size_t len = (size_t)frame_parse(data + from, j->frames.len - from, &frame);
		if (frame.id == id) {
			cursor -= from < j->cursor ? len : 0;
		} else {
			memmove(data + to, data + from, len);
			to += len;
		}
		from += len;
	}
	j->cursor = cursor;
	j->replaying = j->replaying && cursor < to;
	if (to > 0) {
		j->frames.len = to;
		return;
	}
	/* Free the memory of a large output. */
	buf_done(&j->frames);
	buf_init(&j->frames, JOURNAL_MAX_BYTES);
}

static void forget_entry(struct journal *j, struct journal_entry *e)
{
	size_t index = (size_t)(e - j->entries);

	remove_frames(j, e->id);
	memmove(e, e + 1, (j->count - index - 1) * sizeof(*e));
	j->count--;
}

int journal_ack(struct journal *j, uint32_t id)
{
	struct journal_entry *e = find_entry(j, id);

	if (!j->on || (e && !e->ended))
		return -EPROTO;
	if (e)
		forget_entry(j, e);
	return 0;
}

void journal_detach(struct journal *j)
{
	for (size_t i = j->count; i-- > 0;)
		if (!j->entries[i].begun && !j->entries[i].ended)
			forget_entry(j, &j->entries[i]);
	j->replaying = false;
	j->cursor = 0;
}

/* For example, stdin's room does not matter for a replay. */
static bool is_kept(const struct frame *frame)
{
	static const bool kept[MSG_COUNT] = {
		[MSG_STARTED] = true, [MSG_OUTPUT] = true, [MSG_REPORT] = true,
		[MSG_DENIAL] = true,  [MSG_DONE] = true,   [MSG_FAILED] = true,
		[MSG_CHANGED] = true,
	};

	return frame->id != 0 && frame->type < MSG_COUNT && kept[frame->type];
}

static int note_frame(struct journal *j, const struct frame *frame, const char *data, size_t len)
{
	struct journal_entry *e = is_kept(frame) ? find_entry(j, frame->id) : NULL;
	int r = 0;

	if (!e || (e->fleeting && frame->type == MSG_OUTPUT))
		return 0;
	r = buf_add(&j->frames, data, len);
	if (r < 0)
		return r;
	if (frame->type == MSG_DONE || frame->type == MSG_FAILED)
		e->ended = true;
	return 1;
}

int journal_note(struct journal *j, struct channel *ch)
{
	char *data = ch->out.data;
	size_t from = ch->noted, to = from;
	struct frame frame;

	while (j->on && from < ch->out.len) {
		size_t len = (size_t)frame_parse(data + from, ch->out.len - from, &frame);
		int noted = note_frame(j, &frame, data + from, len);
		if (noted < 0)
			return noted;
		/* A replay sends it from the journal. */
		if (!noted || !j->replaying) {
			memmove(data + to, data + from, len);
			to += len;
		}
		from += len;
	}
	if (j->on)
		ch->out.len = to;
	ch->noted = ch->out.len;
	return 0;
}

void journal_replay(struct journal *j)
{
	j->cursor = 0;
	j->replaying = j->frames.len > 0;
}

int journal_pump(struct journal *j, struct channel *ch)
{
	struct frame frame;

	while (j->replaying && !channel_is_full(ch)) {
		size_t len = (size_t)frame_parse(j->frames.data + j->cursor,
		                                 j->frames.len - j->cursor, &frame);
		int r = buf_add(&ch->out, j->frames.data + j->cursor, len);
		if (r < 0)
			return r;
		j->cursor += len;
		j->replaying = j->cursor < j->frames.len;
	}
	ch->noted = ch->out.len;
	return 0;
}
