/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the files that an execution made or changed, in the store: rows that go with its row. */

#include "core/run/artifacts.h"
#include "db/db.h"

/* What the statements of some files point to. */
struct store_file_steps {
	struct db_statement *steps; /* owned; the first one is the caller's to set */
	size_t count;               /* with the first */
	struct store_file_row *rows;
};

/** store_file_steps - to be written behind the row of @execution_id, which is the first step. */
void store_file_steps(const struct artifacts *files, const char *execution_id,
                      struct store_file_steps *ret_steps);
void store_file_steps_done(struct store_file_steps *steps);
#define cleanup_file_steps attr_cleanup(store_file_steps_done)

/* A column with all files of the execution e, for store_file_read. */
#define STORE_FILES                                                                                \
	"(SELECT json_group_array(json_array(f.path, f.size, f.changed_ms, f.sha256))"             \
	" FROM files f WHERE f.execution = e.no)"
/** store_file_read - adds them to @ret_files. */
void store_file_read(const char *column, struct artifacts *ret_files);
