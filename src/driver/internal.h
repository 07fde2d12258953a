/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: internal to this directory. */

#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "driver/driver.h"
#include "driver/link.h"
#include "service/services.h"

/* First member of a backend's box. */
struct box {
	struct driver *driver;
	struct link *link; /* owned; as long as the box */
	struct box_events events;
	struct box_spec spec;
	uint32_t layers;  /* mask of enum wire_layer; grows until HELLO */
	uint32_t vouched; /* of those, what only the runtime's word shows */
	enum box_start start;
	bool has_started;
	bool has_bundle;               /* BOX_BUNDLE_PATH was written */
	struct egress_port *egress;    /* owned; NULL: no network, or not built yet */
	struct box_network_usage seen; /* by box_network_growth */
	struct gateway_port *gateway;  /* owned; NULL: no tools, or not ready yet */
};

#define BOX_CTX_LEN (BOX_ID_LEN + BOX_REQUEST_LEN + 32)
const char *box_log_ctx(const struct box *box, char ret_ctx[BOX_CTX_LEN]);
#define box_log(box, level, ...)                                                                   \
	do {                                                                                       \
		char box_ctx_[BOX_CTX_LEN];                                                        \
		if (log_is_on(level))                                                              \
			log_write(level, box_log_ctx(box, box_ctx_), __VA_ARGS__);                 \
	} while (0)

/** box_open_egress - give @listener (-1: none) to the proxy, if the box has network allowlist. */
void box_open_egress(struct box *box, int listener);
/** box_open_gateway - give @listener (-1: none) to the gateway, if the box has tools. */
void box_open_gateway(struct box *box, int listener);
/** driver_required - layers that a box with @spec must have. */
uint32_t driver_required(const struct driver *d, const struct box_spec *spec);
/** driver_check_layers - ERR_UNAVAILABLE names the missing ones. */
int driver_check_layers(uint32_t have, uint32_t required, struct error *err) attr_must_check;

/* From link_exec or link_run to DONE or FAILED. */
struct link_exec {
	struct list node; /* link.execs */
	uint32_t id;
	uint32_t runner; /* a run's runner, which may have ended; else 0 */
	bool keep;
	bool prepared; /* no code yet: must not start */
	bool waits;    /* prepared, and reported */
	bool given;    /* prepared, and has its code */
	bool resumed;
	bool forget;            /* its messages are dropped */
	size_t forgotten_bytes; /* their size */
	bool started;
	uint64_t output_max[OUTPUT_COUNT];
	uint64_t output_bytes[OUTPUT_COUNT]; /* never more than granted */
	bool terminal;                       /* output_max grows with link_take_output */
	uint64_t signals_sent;               /* a bit each; since the agent had read everything */
	uint32_t report_left;
	bool reported;
	uint32_t denials;
	uint64_t changed_since_ns; /* from CHANGED */
	bool stdin_open;           /* may still be written */
	bool stdin_ended;          /* STDIN_END follows */
	uint32_t stdin_room;       /* bytes the agent accepts */
	struct buf stdin_kept;     /* bytes without room */
	size_t stdin_sent;         /* sent bytes at its front */
};

/* From box_file_open to FILE_DONE or FILE_FAILED. */
struct box_file {
	struct list node; /* link.files */
	struct link *link;
	uint32_t id;
	enum box_file_op op;
	struct box_file_events events;
	uint32_t room; /* bytes of frames the agent accepts */
	bool starved;  /* a write found no room */
	bool ended;
	uint32_t granted; /* bytes of frames the agent may send */
	size_t passed_on; /* granted, not yet reported to the agent */
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
	uint64_t strays;             /* bytes that cancelled file operations may still send */
	struct list ports, listings; /* struct box_port, struct box_port_list; owned */
	size_t ports_count;          /* of both */
	uint32_t last_port;
	uint64_t port_strays; /* bytes that connections which were given up may still send */
	uint32_t logs;
	bool opened;
	bool closed;
	bool greeted;
	bool resuming;      /* adopted: RESUME and DESCRIBEs are due */
	uint32_t described; /* DESCRIBEs due after RESUME */
	uint32_t last_id;   /* adopted box */
};

struct link_exec *link_find(struct link *l, uint32_t id);
struct link_exec *link_add(struct link *l, uint32_t id);
void link_set_terminal(struct link_exec *e);
void link_forget(struct link *l, struct link_exec *e);
void link_pump_stdin(struct link *l, struct link_exec *e);
struct buf *link_out(struct link *l);
void link_flush(struct link *l);

/** link_violation - ERR_PROTOCOL: "... @frame's type @what". Return: -1. */
int link_violation(struct error *err, const struct frame *frame, const char *what);
/** link_plain_text - as one printable line. */
void link_plain_text(struct wire_bytes text, char *ret_text, size_t size);

/** link_file_take - a frame of a file operation. Return: 0, or -1 with *err: protocol violation. */
int link_file_take(struct link *l, const struct frame *frame, struct error *err) attr_must_check;
void link_files_fail(struct link *l, const struct error *err);
void link_file_forget(struct box_file *file);
/** link_port_take - a frame of a connection or listing. Return: as link_file_take. */
int link_port_take(struct link *l, const struct frame *frame, struct error *err) attr_must_check;
void link_ports_fail(struct link *l, const struct error *err);
void link_ports_free(struct link *l);

/** link_fail - close the stream and call on_lost. */
void link_fail(struct link *l, const struct error *err);
