-- SPDX-License-Identifier: Apache-2.0
-- Templates of tenants; the built-in ones are in the program.

CREATE TABLE templates (
	tenant TEXT NOT NULL DEFAULT 'default',
	id TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL,
	root TEXT,                         -- name of the directory of an imported image
	config TEXT,                       -- JSON: what the image said of itself
	spec TEXT NOT NULL,                -- JSON: what its owner said
	PRIMARY KEY (tenant, id)
);
