# SPDX-License-Identifier: Apache-2.0
"""How every statement of the daemon finds its rows: none scans what grows with use."""

import contextlib
import pathlib
import re
import sqlite3

import pytest

from support.daemon import BUILD, Daemon

pytestmark = pytest.mark.phases("system")

VERBS = ("SELECT ", "INSERT INTO ", "UPDATE ", "DELETE FROM ", "WITH ")
# A row of constants; rows that another part of the statement has found.
SMALL = re.compile(r"SCAN (CONSTANT ROW|\(subquery-\d+\)|json_each)|^SCAN \d+ CONSTANT ROWS")
# By retention: a row for each tenant; deleted tenants that are not removed yet.
CLEANED = re.compile(r"SCAN (usage|d|departed)$|SCAN \w+ USING .*INDEX sessions_deleted")
# Once, at the start, before any request: all rows are needed.
AT_THE_START = (
    r"FROM tenants ORDER BY created_ms, name$", r"^SELECT id, tenant, .* FROM api_keys WHERE \?1 ORDER BY no$",
    r"^SELECT 1 FROM api_keys WHERE \?1 LIMIT 1$",  # one row, for --check-config
    r"^SELECT name FROM departed$", r"FROM templates ORDER BY root IS NULL", r"FROM package_layers ORDER BY", r"FROM secrets WHERE \?1 ORDER BY",
    r"buckets FROM metrics$",
    r"WHERE (e\.)?completed_ms IS NULL", r"ended_ms IS NULL", r"FROM sqlite_schema$",
)  # fmt: skip


@pytest.fixture(scope="module")
def schema():
    """As the daemon creates it."""
    daemon = Daemon().start()
    db = sqlite3.connect(":memory:")
    try:
        with contextlib.closing(sqlite3.connect(f"file:{daemon.home / 'state' / 'millibox.db'}?mode=ro", uri=True)) as made:
            made.backup(db)
    finally:
        daemon.stop()
        daemon.remove()
    yield db
    db.close()


def statements():
    """All statements are literals: each is in the program as a whole."""
    program = (pathlib.Path(BUILD) / "milliboxd").read_bytes()
    texts = {t.decode() for t in program.split(b"\0") if t.startswith(tuple(v.encode() for v in VERBS)) and t.isascii()}
    return sorted(t for t in texts if not t.endswith((":", ",")))


def plan(db, sql):
    count = max((int(n) for n in re.findall(r"\?(\d+)", sql)), default=sql.count("?"))
    return [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * count)]


def walks(db, sql):
    """Parts of its plan that scan a table, or sort what an index could order."""
    steps = [s for s in plan(db, sql) if s.startswith("SCAN") and not SMALL.search(s)]
    bad = [s for s in steps if not CLEANED.search(s)]
    # Retention chooses among the rows of one batch, or among tenants.
    if "OVER (" not in sql.split("OFFSET")[0] and "FROM usage" not in sql:
        bad += [s for s in plan(db, sql) if "TEMP B-TREE" in s]
    return bad


def is_at_the_start(sql):
    return any(re.search(p, sql) for p in AT_THE_START)


def test_no_statement_scans_a_growing_table(schema):
    found = statements()
    about = {name: sum(name in s for s in found) for name in (
        "sessions", "executions", "files", "tenants", "api_keys", "templates", "metrics", "audit", "usage", "departed")}
    assert len(found) > 40 and all(about.values()), about
    bad = {s: walks(schema, s) for s in found if not is_at_the_start(s)}
    assert not {s: w for s, w in bad.items() if w}
    # Each exception exists.
    assert all(any(re.search(p, s) for s in found) for p in AT_THE_START)


def test_no_trigger_scans_a_growing_table(schema):
    count = 0
    for name, sql in schema.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall():
        body = sql[sql.index("BEGIN") + 5 : sql.rindex("END")]
        for step in filter(None, (s.strip() for s in body.split(";"))):
            count += 1
            assert not walks(schema, re.sub(r"\b(NEW|OLD)\.\w+", "?", step)), name
    assert count > 10


@pytest.mark.parametrize("sql", [
    "SELECT count(*) FROM executions WHERE language = ?1",
    "SELECT id FROM sessions WHERE tenant = ?1 ORDER BY reason LIMIT 1",
    "DELETE FROM templates WHERE root = ?1",
    "SELECT id FROM api_keys ORDER BY name",
    "UPDATE audit SET head = ?1 WHERE written_ms = ?2",
])  # fmt: skip
def test_control_a_scan_is_detected(schema, sql):
    assert walks(schema, sql) and not is_at_the_start(sql)
