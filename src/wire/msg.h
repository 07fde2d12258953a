/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: typed messages, listed in msg.def. Encoding appends a frame to a buffer; decoding borrows
 * strings and bytes from the frame (not NUL-terminated), and accepts exactly what encoding
 * produces: no trailing bytes, no NUL in strings, counts that fit.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "wire/frame.h"
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION      5
#define WIRE_STDIN_WINDOW (256 * 1024)
#define WIRE_FILE_WINDOW  (256 * 1024)
#define WIRE_FILES_MAX    8 /* concurrent file operations */
#define WIRE_PORT_WINDOW  (128 * 1024)
#define WIRE_PORTS_MAX    64   /* concurrent connections to ports */
#define WIRE_LISTED_MAX   256  /* ports of a listing */
#define WIRE_STRS_MAX     1024 /* per list */
#define WIRE_LABEL_MAX    64   /* bytes of a LABEL */
#define WIRE_KEPT_MAX     256  /* executions and runners with an unacknowledged end */
#define WIRE_BESIDE_MAX   16   /* programs beside the execution */
/* Output of a terminal that may be on its way; at its end as much more may come. */
#define WIRE_TERMINAL_WINDOW (256 * 1024)

enum wire_place {
	WIRE_PLACE_RUN,       /* /run/millibox: owned by the agent, read-only for the payload */
	WIRE_PLACE_WORKSPACE, /* /workspace, as the payload */
	WIRE_PLACE_COUNT
};

enum wire_stream {
	WIRE_STDOUT,
	WIRE_STDERR,
	WIRE_STREAM_COUNT
};

enum wire_denial {
	WIRE_DENIAL_SYSCALL,
	WIRE_DENIAL_COUNT
};

enum wire_file_op {
	WIRE_FILE_STAT,
	WIRE_FILE_LIST,
	WIRE_FILE_READ,
	WIRE_FILE_WRITE,
	WIRE_FILE_MKDIR,
	WIRE_FILE_MOVE,
	WIRE_FILE_REMOVE,
	WIRE_FILE_TAR,     /* directory to archive */
	WIRE_FILE_UNTAR,   /* archive to directory */
	WIRE_FILE_CHANGES, /* changed regular files, with digests */
	WIRE_FILE_OP_COUNT
};

enum wire_file_flag {
	WIRE_FILE_RECURSIVE = 1u << 0, /* LIST, REMOVE */
	WIRE_FILE_PARENTS = 1u << 1,   /* WRITE, MKDIR, MOVE: create missing directories */
	WIRE_FILE_REPLACE = 1u << 2,   /* MOVE: overwrite a file */
	WIRE_FILE_FLAGS_ALL = (1u << 3) - 1
};

enum wire_file_type {
	WIRE_FILE_REGULAR,
	WIRE_FILE_DIRECTORY,
	WIRE_FILE_LINK,
	WIRE_FILE_OTHER, /* FIFOs, sockets */
	WIRE_FILE_TYPE_COUNT
};

/* Addresses that a listening port is bound to. */
enum wire_port_bound {
	WIRE_BOUND_LOOPBACK = 1u << 0, /* of either family */
	WIRE_BOUND_ANY = 1u << 1,
	WIRE_BOUND_OTHER = 1u << 2, /* an address that no connection is made to */
	WIRE_BOUND_ALL = (1u << 3) - 1
};

struct wire_bytes {
	const char *data; /* borrowed, not NUL-terminated */
	uint32_t len;
};

/*
 * Decoded: the borrowed encoded list; walk it with wire_strs_next. To encode: items, or a decoded
 * list.
 */
struct wire_strs {
	uint32_t count;
	const uint8_t *encoded; /* decoding */
	uint32_t encoded_len;
	const char *const *items; /* encoding: @count NUL-terminated strings */
};

enum msg_type {
	MSG_NONE,
#define MSG(NAME, name, direction, ...) MSG_##NAME,
#include "wire/msg.def"
#undef MSG
	MSG_COUNT
};

/* struct msg_setup, struct msg_exec ... */
#define U8(n)    uint8_t n;
#define U16(n)   uint16_t n;
#define U32(n)   uint32_t n;
#define U64(n)   uint64_t n;
#define I32(n)   int32_t n;
#define STR(n)   struct wire_bytes n;
#define BYTES(n) struct wire_bytes n;
#define STRS(n)  struct wire_strs n;
#define MSG(NAME, name, direction, ...)                                                            \
	struct msg_##name {                                                                        \
		__VA_ARGS__                                                                        \
	};
#include "wire/msg.def"
#undef MSG
#undef U8
#undef U16
#undef U32
#undef U64
#undef I32
#undef STR
#undef BYTES
#undef STRS

/*
 * msg_<name>_encode - append a frame. Return: 0, -EMSGSIZE over FRAME_MAX_PAYLOAD, -ENOBUFS if @out
 * is full, -EINVAL for a NUL in a string. msg_<name>_decode - Return: 0, or -EPROTO with *ret_msg
 * undefined.
 */
#define MSG(NAME, name, direction, ...)                                                            \
	int msg_##name##_encode(struct buf *out, uint32_t id, const struct msg_##name *msg)        \
		attr_must_check;                                                                   \
	int msg_##name##_decode(const struct frame *frame, struct msg_##name *ret_msg)             \
		attr_must_check;
#include "wire/msg.def"
#undef MSG

/** wire_strs_next - walk a decoded list from *pos 0. Return: 1, or 0 at the end. */
int wire_strs_next(const struct wire_strs *strs, uint32_t *pos, struct wire_bytes *ret_item);
struct wire_bytes wire_str(const char *s);
/** msg_name - "EXEC", for logs; "?" for an unknown type. */
const char *msg_name(unsigned type);
