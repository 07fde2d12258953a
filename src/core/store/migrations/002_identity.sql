-- SPDX-License-Identifier: Apache-2.0
-- Tenants and their keys. Times are milliseconds since the epoch; NULL: never.

CREATE TABLE tenants (
	name TEXT PRIMARY KEY,
	policy TEXT NOT NULL DEFAULT '',   -- '': the daemon's default one
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL,
	sessions INTEGER,                  -- quotas; NULL: as the settings say, 0: none
	executions INTEGER,
	queued INTEGER,
	memory_bytes INTEGER,
	requests_per_second INTEGER,
	burst INTEGER
);
INSERT INTO tenants (name, created_ms, updated_ms) VALUES ('default', 0, 0);

CREATE TABLE api_keys (
	no INTEGER PRIMARY KEY,            -- in the order of their making
	id TEXT NOT NULL UNIQUE,
	tenant TEXT NOT NULL REFERENCES tenants (name),
	name TEXT NOT NULL,
	hash BLOB NOT NULL,                -- BLAKE2b-256 of the whole key; the secret itself is nowhere
	scopes TEXT NOT NULL,              -- names, with commas between them
	created_ms INTEGER NOT NULL,
	expires_ms INTEGER,
	revoked_ms INTEGER,
	last_used_ms INTEGER               -- to the minute
);
