/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: requests of the daemon to millibox-import, one message each on a SOCK_SEQPACKET socket, with
 * descriptors. Both programs come from the same build.
 *
 * The result is written to the second descriptor. Lines "P LAYERS LAYER ENTRIES BYTES" report
 * progress: the number of layers, the current one (from 1), and total entries and bytes so far.
 * Then follows a JSON object, and a newline once the root has been renamed. EOF without that
 * newline is a failure. The importer's first message, IMPORT_READY, says that it accepts requests.
 */

#include <stdint.h>

#define IMPORT_READY        'r'
#define IMPORT_NAME_LEN     65 /* of roots, as ENGINE_ROOT_LEN */
#define IMPORT_RESULT_MAX   (64u * 1024)
#define IMPORT_LAYERS_MAX   512
#define IMPORT_PROGRESS     "P "
#define IMPORT_PROGRESS_LEN 96

/* An import that exceeds a limit fails; nothing is truncated. */
struct import_limits {
	uint64_t archive_bytes; /* compressed, and uncompressed */
	uint64_t root_bytes;    /* files of all layers together */
	uint64_t file_bytes;
	uint64_t entries;
	uint64_t layers; /* at most IMPORT_LAYERS_MAX */
	uint64_t memory_bytes, cpu_seconds;
};

/* Values of "limit" in the result of a failed import. */
#define IMPORT_LIMIT_ARCHIVE "archive"
#define IMPORT_LIMIT_ROOT    "root"
#define IMPORT_LIMIT_FILE    "file"
#define IMPORT_LIMIT_ENTRIES "entries"
#define IMPORT_LIMIT_LAYERS  "layers"

enum import_op {
	IMPORT_OP_NONE,
	IMPORT_OP_IMPORT, /* descriptors: archive, result */
	IMPORT_OP_REMOVE, /* remove a root */
	IMPORT_OP_TREE,   /* the archive is one plain tar; descriptors as above */
	IMPORT_OP_COUNT
};

struct import_order {
	uint32_t op;
	char name[IMPORT_NAME_LEN];  /* of the root: [a-z0-9._-]{1,64}, no dot first */
	struct import_limits limits; /* IMPORT_OP_IMPORT, IMPORT_OP_TREE */
};
