-- SPDX-License-Identifier: Apache-2.0
-- Secrets of tenants, and the authority whose certificates boxes with secrets trust. Values are encrypted
-- with a key that is not in this file; what they belong to is authenticated with them.

CREATE TABLE secrets (
	tenant TEXT NOT NULL,
	name TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL,
	mode TEXT NOT NULL,
	hosts TEXT NOT NULL,               -- one per line
	header TEXT NOT NULL,
	format TEXT NOT NULL,
	env TEXT,                          -- NULL: none
	placeholder TEXT NOT NULL,
	key TEXT NOT NULL,                 -- name of the key
	sealed BLOB NOT NULL,
	PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

CREATE TABLE authority (
	no INTEGER PRIMARY KEY CHECK (no = 1),
	created_ms INTEGER NOT NULL,
	certificate BLOB NOT NULL,
	key TEXT NOT NULL,
	sealed BLOB NOT NULL
);

-- NULL: as the settings say, 0: none.
ALTER TABLE tenants ADD COLUMN secrets INTEGER;
