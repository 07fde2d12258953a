/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: starts millibox-import, with the daemon's own ids, while it can still start programs. It is
 * found before, by whoever started the daemon: those ids may not be able to get to where it is, as
 * in the home of root.
 */

#include "base/attr.h"
#include "base/error.h"
#include <sys/types.h>

struct importer {
	int exe;   /* owned until it is started; -1: none */
	pid_t pid; /* 0: none */
	int sock;  /* until somebody takes it; -1: none */
};

/** importer_find - beside @engine_path. */
int importer_find(struct importer *i, const char *engine_path, struct error *err) attr_must_check;
/** importer_start - makes roots in @roots. */
int importer_start(struct importer *i, const char *roots, struct error *err) attr_must_check;
/** importer_end - after its socket was closed: waits for it. */
void importer_end(struct importer *i);
