-- SPDX-License-Identifier: Apache-2.0
-- Layers of installed packages: a cache of trees on disk (core/template/layers.h).

CREATE TABLE package_layers (
	tenant TEXT NOT NULL,
	key TEXT NOT NULL,                 -- hash of all that decides what is installed
	manager TEXT NOT NULL,
	root TEXT NOT NULL,                -- name of the directory
	bytes INTEGER NOT NULL,            -- on disk
	packages TEXT NOT NULL,            -- JSON: as requested
	lock TEXT NOT NULL,                -- as resolved
	created_ms INTEGER NOT NULL,
	used_ms INTEGER NOT NULL,
	PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
