-- SPDX-License-Identifier: Apache-2.0
-- How long an execution that has not ended has stood still so far: none of it counts for its deadline.

ALTER TABLE executions ADD COLUMN paused_ms INTEGER NOT NULL DEFAULT 0;
