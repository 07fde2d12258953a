-- SPDX-License-Identifier: Apache-2.0
-- Sessions and their executions. Times are milliseconds since the epoch; NULL: not yet.

CREATE TABLE sessions (
	no INTEGER PRIMARY KEY,
	tenant TEXT NOT NULL DEFAULT 'default',
	id TEXT NOT NULL,
	created_ms INTEGER NOT NULL,       -- an id may be used again: together they name one session
	updated_ms INTEGER NOT NULL,
	active_ms INTEGER NOT NULL,
	ended_ms INTEGER,
	deleted INTEGER NOT NULL DEFAULT 0, -- by its owner: unreadable, until the clean-up comes by
	state TEXT NOT NULL,
	mode TEXT NOT NULL,
	language TEXT NOT NULL,
	agent_id TEXT,
	box_id TEXT,
	driver TEXT NOT NULL,
	reason TEXT,
	executions INTEGER NOT NULL,
	idle_us INTEGER NOT NULL,
	lifetime_us INTEGER NOT NULL,
	history TEXT NOT NULL,             -- "ready 1763190000000" per line, oldest first
	env BLOB NOT NULL,                 -- NAME=value, each followed by a NUL
	spec TEXT NOT NULL,                -- JSON: what else describes its box
	UNIQUE (tenant, id, created_ms)
);
CREATE INDEX sessions_by_age ON sessions (tenant, created_ms, no) WHERE deleted = 0;
CREATE INDEX sessions_live ON sessions (no) WHERE ended_ms IS NULL;
CREATE INDEX sessions_ended ON sessions (ended_ms, no) WHERE ended_ms IS NOT NULL;
CREATE INDEX sessions_deleted ON sessions (no) WHERE deleted = 1;

CREATE TABLE executions (
	no INTEGER PRIMARY KEY,
	id TEXT NOT NULL UNIQUE,
	tenant TEXT NOT NULL DEFAULT 'default',
	session_id TEXT NOT NULL,
	session_ms INTEGER NOT NULL,       -- sessions.created_ms
	created_ms INTEGER NOT NULL,
	started_ms INTEGER,
	completed_ms INTEGER,
	status TEXT NOT NULL,              -- pending, running, or how it ended
	language TEXT NOT NULL,
	timeout_us INTEGER NOT NULL,
	bytes INTEGER NOT NULL,            -- of code, output, report and events
	outcome TEXT,                      -- JSON: what was measured and decided
	failure TEXT,                      -- why it could not be run
	report BLOB,
	code BLOB,
	request TEXT,                      -- JSON, until it has ended: what else was asked for
	out BLOB,
	err BLOB,
	events BLOB                        -- kind and length of each, in order
);
CREATE INDEX executions_of ON executions (tenant, session_id, session_ms, no);
CREATE INDEX executions_live ON executions (no) WHERE completed_ms IS NULL;
CREATE INDEX executions_ended ON executions (completed_ms, no, bytes) WHERE completed_ms IS NOT NULL;
