-- SPDX-License-Identifier: Apache-2.0
-- What executions made or changed, a row each; they go with their execution.

CREATE TABLE files (
	execution INTEGER NOT NULL REFERENCES executions (no) ON DELETE CASCADE,
	place INTEGER NOT NULL,            -- in the order in which they were found
	path TEXT NOT NULL,                -- in the workspace
	size INTEGER NOT NULL,
	changed_ms INTEGER NOT NULL,
	sha256 TEXT,                       -- 64 digits; NULL: it was too large, or too many
	PRIMARY KEY (execution, place)
) WITHOUT ROWID;

-- Before, they were members of the outcome; those stay there, and are not looked at any more.
INSERT INTO files (execution, place, path, size, changed_ms, sha256)
	SELECT e.no, a.key, json_extract(a.value, '$.path'),
		ifnull(json_extract(a.value, '$.size'), 0),
		ifnull(json_extract(a.value, '$.changed_ms'), 0), json_extract(a.value, '$.sha256')
	FROM executions e,
		json_each(CASE WHEN json_valid(e.outcome) THEN e.outcome ELSE '{}' END,
			'$.artifacts') a
	WHERE json_extract(a.value, '$.path') IS NOT NULL;
