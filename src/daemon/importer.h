/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: starts millibox-import with the daemon's ids while the daemon can still start programs. It
 * is opened earlier, by the user who started the daemon: the daemon's ids may have no access to its
 * path.
 */

#include "base/attr.h"
#include "base/error.h"
#include "driver/helper_group.h"
#include <sys/types.h>

struct importer {
	int exe;   /* owned until started; -1: none */
	pid_t pid; /* 0: none */
	int sock;  /* until taken over; -1: none */
};

/** importer_find - looks beside @engine_path. */
int importer_find(struct importer *i, const char *engine_path, struct error *err) attr_must_check;
/** importer_start - unpacks roots into @roots, limited by @group, which it closes. */
int importer_start(struct importer *i, const char *roots, struct helper_group *group,
                   struct error *err) attr_must_check;
/** importer_check - wait until it accepts requests. */
int importer_check(struct importer *i, struct error *err) attr_must_check;
/** importer_end - wait for it, after closing its socket. */
void importer_end(struct importer *i);
