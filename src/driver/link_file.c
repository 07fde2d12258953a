/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/link.h"

#include "base/alloc.h"
#include "driver/internal.h"

/*
 * Theory of operation. File operations have their own ids, never reused in a box: late frames of a
 * cancelled operation are dropped. An id never assigned is a protocol violation.
 *
 * Both directions have a window that counts whole frames, so that neither bytes nor many small
 * frames fill the memory of daemon or agent, and a slow client delays only itself.
 */

/* Avoids a message per few bytes. */
#define GRANT_STEP (BOX_FILE_WINDOW / 4)
/* Overhead of FILE_DATA and FILE_BYTES. */
#define DATA_EXTRA (FRAME_HEADER_LEN + 4)

/* FILE_ROOM and end of a cancelled operation. */
#define LAST_WORDS 4096

static_assert(BOX_FILE_WINDOW == WIRE_FILE_WINDOW, "one window");
static_assert(BOX_FILE_OPS_MAX == WIRE_FILES_MAX, "one number of operations");
static_assert((int)BOX_FILE_OP_COUNT == (int)WIRE_FILE_OP_COUNT &&
                      (int)BOX_FILE_CHANGES == (int)WIRE_FILE_CHANGES,
              "the same order of operations");
static_assert((int)BOX_FILE_TYPE_COUNT == (int)WIRE_FILE_TYPE_COUNT &&
                      (int)BOX_FILE_OTHER == (int)WIRE_FILE_OTHER,
              "the same order of types");

void link_file_forget(struct box_file *file)
{
	list_remove(&file->node);
	file->link->files_count--;
	free(file);
}

void link_files_fail(struct link *l, const struct error *err)
{
	struct box_file *file;

	while ((file = LIST_FIRST(&l->files, struct box_file, node))) {
		/* The analyzer does not see that removing the first changes the head. */
		const struct box_file_events events = file->events; // NOLINT

		link_file_forget(file);
		events.on_failed(events.ctx, err);
	}
}

static struct box_file *new_file(struct link *l, const struct box_file_request *request,
                                 const struct box_file_events *events)
{
	struct box_file *file = NEW(struct box_file);

	file->link = l;
	file->id = l->last_file;
	file->op = request->op;
	file->events = *events;
	file->room = file->granted = BOX_FILE_WINDOW;
	file->entries_max = request->op == BOX_FILE_LIST || request->op == BOX_FILE_CHANGES
	                            ? request->limit
	                            : 1;
	list_append(&l->files, &file->node);
	l->files_count++;
	return file;
}

int link_file_open(struct link *l, const struct box_file_request *request,
                   const struct box_file_events *events, struct box_file **ret_file,
                   struct error *err)
{
	struct msg_file_open msg = {.op = (uint8_t)request->op,
	                            .flags = (request->recursive ? WIRE_FILE_RECURSIVE : 0u) |
	                                     (request->parents ? WIRE_FILE_PARENTS : 0u) |
	                                     (request->replace ? WIRE_FILE_REPLACE : 0u),
	                            .path = wire_str(request->path ? request->path : ""),
	                            .to = wire_str(request->to ? request->to : ""),
	                            .offset = request->offset,
	                            .length = request->length,
	                            .mode = request->mode,
	                            .limit = request->limit};

	if (l->closed)
		return error_set(err, ERR_AGENT_LOST, 0, "box %s has ended", l->box_id);
	if (l->files_count == BOX_FILE_OPS_MAX || l->last_file == UINT32_MAX)
		return error_set(err, ERR_BUSY, 0,
		                 "a box runs at most %d file operations at a time",
		                 BOX_FILE_OPS_MAX);
	if (msg_file_open_encode(link_out(l), l->last_file + 1, &msg) < 0)
		return error_set(err, ERR_BUSY, 0, "the agent of box %s does not read commands",
		                 l->box_id);
	l->last_file++;
	*ret_file = new_file(l, request, events);
	link_flush(l);
	return 0;
}

size_t box_file_write(struct box_file *file, const char *data, size_t len)
{
	struct link *l = file->link;
	size_t taken = 0;

	assert(!file->ended);
	while (!l->closed && taken < len && file->room > DATA_EXTRA) {
		size_t n = len - taken;
		struct msg_file_data msg;

		if (n > file->room - DATA_EXTRA)
			n = file->room - DATA_EXTRA;
		if (n > FRAME_CHUNK)
			n = FRAME_CHUNK;
		msg.data = (struct wire_bytes){data + taken, (uint32_t)n};
		if (msg_file_data_encode(link_out(l), file->id, &msg) < 0)
			break;
		file->room -= (uint32_t)n + DATA_EXTRA;
		taken += n;
	}
	file->starved = taken < len;
	if (taken > 0)
		link_flush(l);
	return taken;
}

/* The queue has room for small messages beyond all windows; an agent that still fills it is stuck,
 * and its box will be ended. */
void box_file_end(struct box_file *file)
{
	const struct msg_file_end end = {0};

	assert(!file->ended);
	file->ended = true;
	if (!file->link->closed && msg_file_end_encode(link_out(file->link), file->id, &end) == 0)
		link_flush(file->link);
}

void box_file_grant(struct box_file *file, size_t bytes)
{
	struct msg_file_grant msg;

	file->passed_on += bytes;
	if (file->passed_on < GRANT_STEP || file->link->closed)
		return;
	msg.bytes = (uint32_t)file->passed_on;
	if (msg_file_grant_encode(link_out(file->link), file->id, &msg) < 0)
		return; /* goes with the next grant */
	file->granted += msg.bytes;
	file->passed_on = 0;
	link_flush(file->link);
}

void box_file_cancel(struct box_file *file)
{
	const struct msg_file_cancel cancel = {0};
	struct link *l = file->link;

	if (!l->closed && msg_file_cancel_encode(link_out(l), file->id, &cancel) == 0)
		link_flush(l);
	l->strays += file->granted + LAST_WORDS;
	link_file_forget(file);
}

static int take_room(struct box_file *file, const struct frame *frame, struct error *err)
{
	struct msg_file_room room;

	if (msg_file_room_decode(frame, &room) < 0)
		return link_violation(err, frame, "is malformed");
	if (room.bytes == 0 || room.bytes > BOX_FILE_WINDOW - file->room)
		return link_violation(err, frame, "grants 0 bytes or more than the window");
	file->room += room.bytes;
	if (!file->starved || file->ended)
		return 0;
	file->starved = false;
	file->events.on_room(file->events.ctx);
	return 0;
}

/* Header included. Return: false: exceeded. */
static bool use_grant(struct box_file *file, const struct frame *frame)
{
	uint32_t bytes = FRAME_HEADER_LEN + frame->len;

	if (bytes > file->granted)
		return false;
	file->granted -= bytes;
	return true;
}

static int take_entry(struct box_file *file, const struct frame *frame, struct error *err)
{
	cleanup_free char *path = NULL, *target = NULL;
	struct box_file_entry entry;
	struct msg_file_entry msg;

	if (msg_file_entry_decode(frame, &msg) < 0 || msg.type >= WIRE_FILE_TYPE_COUNT ||
	    (msg.sha256.len != 0 && msg.sha256.len != BOX_SHA256_LEN))
		return link_violation(err, frame, "is malformed");
	/* The reader's answer begins with the entry, or with the bytes of a tar. */
	if (file->op == BOX_FILE_TAR || file->bytes > 0)
		return link_violation(err, frame, "is out of order");
	if (!use_grant(file, frame) || file->entries++ == file->entries_max)
		return link_violation(err, frame, "exceeds the grant");
	/* Consumed at once: return the credit. */
	box_file_grant(file, FRAME_HEADER_LEN + frame->len);
	path = xmemdup0(msg.path.data, msg.path.len);
	target = xmemdup0(msg.target.data, msg.target.len);
	entry = (struct box_file_entry){
		.type = (enum box_file_type)msg.type,
		.path = path,
		.size = msg.size,
		.mtime_ns = msg.mtime_ns,
		.ctime_ns = msg.ctime_ns,
		.inode = msg.inode,
		.mode = msg.mode & 07777,
		.target = target,
		.sha256 = msg.sha256.len ? (const uint8_t *)msg.sha256.data : NULL,
	};
	file->events.on_entry(file->events.ctx, &entry);
	return 0;
}

static int take_bytes(struct box_file *file, const struct frame *frame, struct error *err)
{
	struct msg_file_bytes msg;

	if (msg_file_bytes_decode(frame, &msg) < 0 || msg.data.len == 0)
		return link_violation(err, frame, "is malformed");
	if ((file->op != BOX_FILE_READ && file->op != BOX_FILE_TAR) || !use_grant(file, frame))
		return link_violation(err, frame, "exceeds the grant");
	file->bytes += msg.data.len;
	file->passed_on += DATA_EXTRA;
	file->events.on_data(file->events.ctx, msg.data.data, msg.data.len);
	return 0;
}

static int take_done(struct box_file *file, const struct frame *frame, struct error *err)
{
	const struct box_file_events events = file->events;
	struct box_file_summary summary;
	struct msg_file_done msg;

	if (msg_file_done_decode(frame, &msg) < 0 || msg.truncated > 1)
		return link_violation(err, frame, "is malformed");
	/* Not before the end was sent. */
	if ((file->op == BOX_FILE_WRITE || file->op == BOX_FILE_UNTAR) && !file->ended)
		return link_violation(err, frame, "arrives before the end");
	summary = (struct box_file_summary){msg.truncated, msg.entries, msg.bytes};
	link_file_forget(file);
	events.on_done(events.ctx, &summary);
	return 0;
}

/* Any other code is a failure of the box. */
static enum error_code accepted_code(uint32_t code)
{
	static const enum error_code codes[] = {
		ERR_INVALID,  ERR_FILE_NOT_FOUND, ERR_DISK_FULL, ERR_TOO_LARGE,
		ERR_CONFLICT, ERR_DENIED,         ERR_BUSY,
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i] == code)
			return codes[i];
	return ERR_BOX_FAILED;
}

/* The agent prefixes the field's name; only known names are accepted. */
static void set_failure(const struct msg_file_failed *msg, const char *text, struct error *failure)
{
	static const char *const fields[] = {"path", "to"};
	enum error_code code = accepted_code(msg->code);

	for (size_t i = 0; code == ERR_INVALID && i < ARRAY_SIZE(fields); i++) {
		size_t len = strlen(fields[i]);

		if (strncmp(text, fields[i], len) != 0 || strncmp(text + len, ": ", 2) != 0)
			continue;
		(void)error_field(failure, fields[i], "%s", text + len + 2);
		return;
	}
	(void)error_set(failure, code, msg->sys > 0 && msg->sys < 4096 ? msg->sys : 0, "%s", text);
}

static int take_failed(struct box_file *file, const struct frame *frame, struct error *err)
{
	const struct box_file_events events = file->events;
	struct error failure = {0};
	struct msg_file_failed msg;
	char text[200];

	if (msg_file_failed_decode(frame, &msg) < 0)
		return link_violation(err, frame, "is malformed");
	link_plain_text(msg.text, text, sizeof(text));
	set_failure(&msg, text, &failure);
	link_file_forget(file);
	events.on_failed(events.ctx, &failure);
	return 0;
}

static struct box_file *find_file(struct link *l, uint32_t id)
{
	struct box_file *file;

	LIST_FOREACH (file, &l->files, struct box_file, node)
		if (file->id == id)
			return file;
	return NULL;
}

int link_file_take(struct link *l, const struct frame *frame, struct error *err)
{
	static int (*const takers[MSG_COUNT])(struct box_file * file, const struct frame *frame,
	                                      struct error *err) = {
		[MSG_FILE_ROOM] = take_room,     [MSG_FILE_ENTRY] = take_entry,
		[MSG_FILE_BYTES] = take_bytes,   [MSG_FILE_DONE] = take_done,
		[MSG_FILE_FAILED] = take_failed,
	};
	struct box_file *file = find_file(l, frame->id);

	if (file)
		return takers[frame->type](file, frame, err);
	if (frame->id == 0 || frame->id > l->last_file || FRAME_HEADER_LEN + frame->len > l->strays)
		return link_violation(err, frame, "names an unknown operation");
	l->strays -= FRAME_HEADER_LEN + frame->len;
	return 0;
}
