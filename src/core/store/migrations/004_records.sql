-- SPDX-License-Identifier: Apache-2.0
-- What was known of sessions and executions and went with the daemon.

-- 0: it is certain that it has not begun, because the mark is on the disk before it does. What an
-- earlier version wrote may have.
ALTER TABLE executions ADD COLUMN begun INTEGER NOT NULL DEFAULT 1;
ALTER TABLE executions ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
ALTER TABLE executions ADD COLUMN key_id TEXT;
ALTER TABLE sessions ADD COLUMN dependencies TEXT; -- JSON: packages that were asked for, and found
