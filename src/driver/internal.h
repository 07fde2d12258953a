/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: shared by the files of this directory only. */

#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "driver/driver.h"
#include "driver/link.h"

/* First member of every backend's box. */
struct box {
	struct driver *driver;
	struct link *link; /* owned; lives as long as the box */
	struct box_events events;
	struct box_spec spec;
	uint32_t layers; /* mask of enum wire_layer; grows until HELLO */
	enum box_start start;
	bool has_started; /* its first program */
};

#define BOX_CTX_LEN (BOX_ID_LEN + BOX_REQUEST_LEN + 32)
const char *box_log_ctx(const struct box *box, char ret_ctx[BOX_CTX_LEN]);
#define box_log(box, level, ...)                                                                   \
	do {                                                                                       \
		char box_ctx_[BOX_CTX_LEN];                                                        \
		if (log_is_on(level))                                                              \
			log_write(level, box_log_ctx(box, box_ctx_), __VA_ARGS__);                 \
	} while (0)

/** driver_check_layers - ERR_UNAVAILABLE with the names of the missing ones. */
int driver_check_layers(uint32_t have, uint32_t required, struct error *err) attr_must_check;

/* From link_exec or link_run until DONE or FAILED. */
struct link_exec {
	struct list node; /* link.execs */
	uint32_t id;
	uint32_t runner;        /* a run: id of its runner, which may have ended; else 0 */
	bool keep;              /* a resident runner */
	bool prepared;          /* has no code yet and must not start */
	bool waits;             /* prepared, and reported so */
	bool given;             /* was prepared and has received its code */
	bool resumed;           /* from an earlier daemon */
	bool forget;            /* its messages are not passed on */
	size_t forgotten_bytes; /* bytes of them */
	bool started;
	uint64_t output_max[OUTPUT_COUNT];
	uint64_t output_bytes[OUTPUT_COUNT]; /* never more than granted */
	uint32_t report_left;
	bool reported;
	uint32_t denials;
	uint64_t changed_since_ns; /* from CHANGED */
	bool stdin_open;           /* stdin may still be written */
	bool stdin_ended;          /* STDIN_END is sent after the last byte */
	uint32_t stdin_room;       /* bytes the agent accepts now */
	struct buf stdin_kept;     /* bytes without room */
	size_t stdin_sent;         /* of those already sent, at the front */
};

/* From box_file_open until FILE_DONE or FILE_FAILED. */
struct box_file {
	struct list node; /* link.files */
	struct link *link;
	uint32_t id;
	enum box_file_op op;
	struct box_file_events events;
	uint32_t room;    /* bytes of frames the agent accepts now */
	bool starved;     /* a write was refused for lack of room */
	bool ended;       /* box_file_end */
	uint32_t granted; /* bytes of frames the agent may send now */
	size_t passed_on; /* bytes of the grant not yet reported to the agent */
	uint64_t entries, bytes, entries_max;
};

struct link {
	const char *box_id, *request_id; /* borrowed */
	const struct link_events *events;
	const struct box_events *box;
	struct stream *stream; /* owned */
	struct buf early;      /* queued before link_open */
	struct list execs;     /* struct link_exec, owned */
	size_t execs_count;
	struct list files; /* struct box_file, owned */
	size_t files_count;
	uint32_t last_file;
	uint64_t strays; /* bytes that cancelled file operations may still send */
	uint32_t logs;
	bool opened;
	bool closed;
	bool greeted;       /* HELLO was received */
	bool resuming;      /* adopted: RESUME and all DESCRIBEs are to come */
	uint32_t described; /* DESCRIBEs still to come, after RESUME */
	uint32_t last_id;   /* of an adopted box */
};

struct link_exec *link_find(struct link *l, uint32_t id);
struct link_exec *link_add(struct link *l, uint32_t id);
void link_forget(struct link *l, struct link_exec *e);
void link_pump_stdin(struct link *l, struct link_exec *e);
struct buf *link_out(struct link *l);
void link_flush(struct link *l);

/* link_input.c */
/** link_violation - ERR_PROTOCOL: "... @frame's type @what". Return: always -1. */
int link_violation(struct error *err, const struct frame *frame, const char *what);
/** link_plain_text - @text as one line of printable characters. */
void link_plain_text(struct wire_bytes text, char *ret_text, size_t size);

/* link_file.c */
/**
 * link_file_take - a frame of a file operation. Return: 0, or -1 with *err: a protocol violation.
 */
int link_file_take(struct link *l, const struct frame *frame, struct error *err) attr_must_check;
/** link_files_fail - the link has ended. */
void link_files_fail(struct link *l, const struct error *err);
void link_file_forget(struct box_file *file);

/** link_fail - close the stream and call on_lost. */
void link_fail(struct link *l, const struct error *err);
