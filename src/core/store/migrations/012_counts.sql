-- SPDX-License-Identifier: Apache-2.0
-- How many rows a list has, and where each of its pages begins, without walking through what was: the
-- rows of a list are counted in blocks of 1024 numbers each, by triggers. A page is found by a walk
-- over blocks and within one of them. In the word '' all are counted, whatever their word is.

CREATE TABLE session_counts (
	tenant TEXT NOT NULL,
	state TEXT NOT NULL,
	block INTEGER NOT NULL,            -- no >> 10
	count INTEGER NOT NULL,            -- of those that are not deleted
	PRIMARY KEY (tenant, state, block)
) WITHOUT ROWID;
CREATE TABLE execution_counts (
	tenant TEXT NOT NULL,
	session_id TEXT NOT NULL,
	session_ms INTEGER NOT NULL,
	status TEXT NOT NULL,
	block INTEGER NOT NULL,
	count INTEGER NOT NULL,
	PRIMARY KEY (tenant, session_id, session_ms, status, block)
) WITHOUT ROWID;

INSERT INTO session_counts SELECT tenant, state, no >> 10, count(*) FROM sessions
	WHERE deleted = 0 GROUP BY tenant, state, no >> 10;
INSERT INTO session_counts SELECT tenant, '', no >> 10, count(*) FROM sessions
	WHERE deleted = 0 GROUP BY tenant, no >> 10;
INSERT INTO execution_counts SELECT tenant, session_id, session_ms, status, no >> 10, count(*)
	FROM executions GROUP BY tenant, session_id, session_ms, status, no >> 10;
INSERT INTO execution_counts SELECT tenant, session_id, session_ms, '', no >> 10, count(*)
	FROM executions GROUP BY tenant, session_id, session_ms, no >> 10;

CREATE TRIGGER session_counts_insert AFTER INSERT ON sessions WHEN NEW.deleted = 0 BEGIN
	INSERT INTO session_counts (tenant, state, block, count)
		VALUES (NEW.tenant, NEW.state, NEW.no >> 10, 1), (NEW.tenant, '', NEW.no >> 10, 1)
		ON CONFLICT (tenant, state, block) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER session_counts_state AFTER UPDATE OF state ON sessions
WHEN NEW.deleted = 0 AND OLD.deleted = 0 AND NEW.state <> OLD.state BEGIN
	UPDATE session_counts SET count = count - 1
		WHERE tenant = OLD.tenant AND state = OLD.state AND block = OLD.no >> 10;
	DELETE FROM session_counts WHERE tenant = OLD.tenant AND state = OLD.state
		AND block = OLD.no >> 10 AND count = 0;
	INSERT INTO session_counts (tenant, state, block, count)
		VALUES (NEW.tenant, NEW.state, NEW.no >> 10, 1)
		ON CONFLICT (tenant, state, block) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER session_counts_deleted AFTER UPDATE OF deleted ON sessions
WHEN NEW.deleted = 1 AND OLD.deleted = 0 BEGIN
	UPDATE session_counts SET count = count - 1
		WHERE tenant = OLD.tenant AND state IN (OLD.state, '') AND block = OLD.no >> 10;
	DELETE FROM session_counts WHERE tenant = OLD.tenant AND state IN (OLD.state, '')
		AND block = OLD.no >> 10 AND count = 0;
END;
CREATE TRIGGER session_counts_delete AFTER DELETE ON sessions WHEN OLD.deleted = 0 BEGIN
	UPDATE session_counts SET count = count - 1
		WHERE tenant = OLD.tenant AND state IN (OLD.state, '') AND block = OLD.no >> 10;
	DELETE FROM session_counts WHERE tenant = OLD.tenant AND state IN (OLD.state, '')
		AND block = OLD.no >> 10 AND count = 0;
END;

CREATE TRIGGER execution_counts_insert AFTER INSERT ON executions BEGIN
	INSERT INTO execution_counts (tenant, session_id, session_ms, status, block, count)
		VALUES (NEW.tenant, NEW.session_id, NEW.session_ms, NEW.status, NEW.no >> 10, 1),
			(NEW.tenant, NEW.session_id, NEW.session_ms, '', NEW.no >> 10, 1)
		ON CONFLICT (tenant, session_id, session_ms, status, block)
		DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER execution_counts_status AFTER UPDATE OF status ON executions
WHEN NEW.status <> OLD.status BEGIN
	UPDATE execution_counts SET count = count - 1
		WHERE tenant = OLD.tenant AND session_id = OLD.session_id
		AND session_ms = OLD.session_ms AND status = OLD.status AND block = OLD.no >> 10;
	DELETE FROM execution_counts WHERE tenant = OLD.tenant AND session_id = OLD.session_id
		AND session_ms = OLD.session_ms AND status = OLD.status AND block = OLD.no >> 10
		AND count = 0;
	INSERT INTO execution_counts (tenant, session_id, session_ms, status, block, count)
		VALUES (NEW.tenant, NEW.session_id, NEW.session_ms, NEW.status, NEW.no >> 10, 1)
		ON CONFLICT (tenant, session_id, session_ms, status, block)
		DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER execution_counts_delete AFTER DELETE ON executions BEGIN
	UPDATE execution_counts SET count = count - 1
		WHERE tenant = OLD.tenant AND session_id = OLD.session_id
		AND session_ms = OLD.session_ms AND status IN (OLD.status, '')
		AND block = OLD.no >> 10;
	DELETE FROM execution_counts WHERE tenant = OLD.tenant AND session_id = OLD.session_id
		AND session_ms = OLD.session_ms AND status IN (OLD.status, '')
		AND block = OLD.no >> 10 AND count = 0;
END;

-- Lists are in the order of numbers, which is that of making.
DROP INDEX sessions_by_age;
DROP INDEX sessions_by_state;
CREATE INDEX sessions_by_no ON sessions (tenant, no) WHERE deleted = 0;
CREATE INDEX sessions_by_state ON sessions (tenant, state, no) WHERE deleted = 0;

-- Tenants that were deleted, until nothing is left of what they had: that takes its time.
CREATE TABLE departed (
	name TEXT PRIMARY KEY
) WITHOUT ROWID;
CREATE INDEX api_keys_of ON api_keys (tenant);
