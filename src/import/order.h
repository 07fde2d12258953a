/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the daemon asks of millibox-import: one message each on a SOCK_SEQPACKET, with
 * descriptors. Both come from the same build; what is in between is a process, no network.
 *
 * The answer of an import comes through the second descriptor. Lines "P LAYERS LAYER ENTRIES BYTES"
 * tell how far it is: how many layers there are, which one is being applied (1: the first), and how
 * much all of them have had so far. Then a JSON object follows, and a newline once the root has its
 * name. The end without that newline is a failure.
 */

#include <stdint.h>

#define IMPORT_NAME_LEN     65 /* of roots, as the engine's */
#define IMPORT_RESULT_MAX   (64u * 1024)
#define IMPORT_LAYERS_MAX   512
#define IMPORT_PROGRESS     "P "
#define IMPORT_PROGRESS_LEN 96

/* How much is taken; what exceeds is refused, not cut. */
struct import_limits {
	uint64_t archive_bytes; /* as it comes, and uncompressed */
	uint64_t root_bytes;    /* as it is then, all layers together */
	uint64_t file_bytes;
	uint64_t entries;
	uint64_t layers; /* at most IMPORT_LAYERS_MAX */
	uint64_t memory_bytes, cpu_seconds;
};

/* By what names a failure tells which of them it was ("limit" of the answer). */
#define IMPORT_LIMIT_ARCHIVE "archive"
#define IMPORT_LIMIT_ROOT    "root"
#define IMPORT_LIMIT_FILE    "file"
#define IMPORT_LIMIT_ENTRIES "entries"
#define IMPORT_LIMIT_LAYERS  "layers"

enum import_op {
	IMPORT_OP_NONE,
	IMPORT_OP_IMPORT, /* descriptors: the archive to read, where the answer is written */
	IMPORT_OP_REMOVE, /* a root, and what an import left of itself */
	IMPORT_OP_COUNT
};

struct import_order {
	uint32_t op;
	char name[IMPORT_NAME_LEN];  /* of the root: [a-z0-9._-]{1,64}, no dot first */
	struct import_limits limits; /* of an import */
};
