/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: starts millibox-import, with the daemon's own ids, while it can still start programs. */

#include "base/attr.h"
#include "base/error.h"
#include <sys/types.h>

struct importer {
	pid_t pid; /* 0: none */
	int sock;  /* until somebody takes it; -1: none */
};

/** importer_start - found beside @engine_path; makes roots in @roots. */
int importer_start(struct importer *i, const char *engine_path, const char *roots,
                   struct error *err) attr_must_check;
/** importer_end - after its socket was closed: waits for it. */
void importer_end(struct importer *i);
