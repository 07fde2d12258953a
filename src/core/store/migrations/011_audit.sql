-- SPDX-License-Identifier: Apache-2.0
-- Where each audit log ended when it was last looked at: its records are in the file, and one that
-- ends before this was cut.

CREATE TABLE audit (
	path TEXT PRIMARY KEY,             -- of the file that is written
	head TEXT NOT NULL,                -- number and hash of its last record, as in its .head
	written_ms INTEGER NOT NULL
) WITHOUT ROWID;
