-- SPDX-License-Identifier: Apache-2.0
-- How much of what is kept is whose, and in what order it goes. Kept up to date by triggers, so that
-- nothing is ever counted: a clean-up costs the same however much there is.

CREATE TABLE usage (
	tenant TEXT PRIMARY KEY,
	executions INTEGER NOT NULL,       -- that have ended
	bytes INTEGER NOT NULL             -- of those
) WITHOUT ROWID;
INSERT INTO usage SELECT tenant, count(*), sum(bytes) FROM executions
	WHERE completed_ms IS NOT NULL GROUP BY tenant;

CREATE TRIGGER usage_insert AFTER INSERT ON executions WHEN NEW.completed_ms IS NOT NULL BEGIN
	INSERT INTO usage (tenant, executions, bytes) VALUES (NEW.tenant, 1, NEW.bytes)
		ON CONFLICT (tenant) DO UPDATE SET executions = executions + 1,
		bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER usage_end AFTER UPDATE OF completed_ms ON executions
WHEN OLD.completed_ms IS NULL AND NEW.completed_ms IS NOT NULL BEGIN
	INSERT INTO usage (tenant, executions, bytes) VALUES (NEW.tenant, 1, NEW.bytes)
		ON CONFLICT (tenant) DO UPDATE SET executions = executions + 1,
		bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER usage_change AFTER UPDATE OF bytes ON executions
WHEN OLD.completed_ms IS NOT NULL AND NEW.bytes <> OLD.bytes BEGIN
	UPDATE usage SET bytes = bytes + NEW.bytes - OLD.bytes WHERE tenant = NEW.tenant;
END;
CREATE TRIGGER usage_delete AFTER DELETE ON executions WHEN OLD.completed_ms IS NOT NULL BEGIN
	UPDATE usage SET executions = executions - 1, bytes = bytes - OLD.bytes
		WHERE tenant = OLD.tenant;
	DELETE FROM usage WHERE tenant = OLD.tenant AND executions = 0;
END;

CREATE INDEX executions_kept ON executions (tenant, completed_ms, no, bytes)
	WHERE completed_ms IS NOT NULL;
CREATE INDEX executions_by_status ON executions (tenant, session_id, session_ms, status, no);
CREATE INDEX sessions_by_state ON sessions (tenant, state, created_ms, no) WHERE deleted = 0;
