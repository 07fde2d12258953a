# SPDX-License-Identifier: Apache-2.0
"""What outlives a daemon: acknowledged executions, results, events, sessions; and files that a daemon refuses to open.
"""

import contextlib
import hashlib
import os
import random
import re
import sqlite3
import stat
import subprocess
import threading
import time

import pytest

from support import host, metrics
from support.daemon import Daemon
from support.sessions import V1, Session, events

pytestmark = pytest.mark.phases("system")

BAD_PLACE = 4


@pytest.fixture
def own():
    """Daemons of one test, which may be killed."""
    made = []

    def make(**kw):
        made.append(Daemon(**kw))
        return made[-1].start()

    yield make
    for daemon in made:
        if daemon.process.poll() is None:
            daemon.stop()  # killed, it would leave its boxes to the next one
        daemon.remove()


def again(daemon):
    """Another daemon in the same home."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(daemon.socket)
    return daemon.start()


def database(daemon):
    return daemon.home / "state" / "millibox.db"


def picture(daemon):
    """Names and contents of everything in the state directory but the lock."""
    files = sorted(p for p in (daemon.home / "state").iterdir() if p.name.startswith("millibox.db"))
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


@pytest.mark.phases("system", "user")
def test_files_belong_to_the_daemon_alone(own):
    daemon = own()
    state = daemon.home / "state"
    uid = int(open(f"/proc/{daemon.pid}/status").read().split("Uid:\t")[1].split()[0])
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    for name in ("millibox.db", "millibox.db-wal", "millibox.db-shm"):
        st = (state / name).stat()
        assert stat.S_IMODE(st.st_mode) == 0o600 and st.st_uid == uid
    if host.is_root():
        assert uid != 0


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_ended_objects_are_readable_after_a_restart(own, how):
    daemon = own()
    with daemon.client() as client:
        session = Session(client, mode="persistent", env_vars={"A": "b"})
        code = "import sys\nfor i in range(3):\n    print(i, flush=True)\n    print('e', i, file=sys.stderr, flush=True)\n6 * 7"
        first = session.run(code)
        failed = session.run("1/0")
        before = list(events(client, first["execution_id"]))
        session.act("terminate")
        host.wait_until(lambda: not session.info()["container_id"], 10, "its box is gone")
        shown = session.info()
        listed = client.get(f"{V1}/sessions").json
        executions = client.get(f"{session.path}/executions").json
        # An asynchronous execution is on disk when it is acknowledged, with all that was queued before it.
        other = Session(client, mode="ephemeral")
        other.start("1")
    daemon.stop() if how == "stop" else daemon.kill()
    again(daemon)
    with daemon.client() as client:
        result = client.get(f"{V1}/executions/{first['execution_id']}/result")
        assert result.status == 200
        assert result.json == first
        assert client.get(f"{V1}/executions/{failed['execution_id']}/result").json == failed
        assert list(events(client, first["execution_id"])) == before
        assert list(events(client, first["execution_id"], after=2)) == [e for e in before if e.get("id", 99) > 2]
        assert client.get(session.path).json == shown
        latest = client.get(f"{session.path}/result").json
        assert latest["execution_id"] == failed["execution_id"]
        answer = client.post(f"{session.path}/execute", {"code": "1"})
        assert answer.status == 409 and answer.json["error_code"] == "Sandbox.StateConflict"
        now = client.get(f"{session.path}/executions").json
        assert now == executions
        assert [s for s in client.get(f"{V1}/sessions").json["sessions"] if s["id"] == session.id] == [
            s for s in listed["sessions"] if s["id"] == session.id
        ]


def test_unknown_ids_are_unknown_to_the_store_too(own):
    daemon = own()
    with daemon.client() as client:
        assert client.get(f"{V1}/executions/exec_20200101_aaaaaaaa").status == 404
        assert client.get(f"{V1}/sessions/nobody").status == 404
        assert client.get(f"{V1}/sessions/nobody/result").status == 404
        assert client.post(f"{V1}/sessions/nobody/execute", {"code": "1"}).status == 404


@pytest.mark.smoke
def test_a_deleted_session_stays_deleted(own):
    daemon = own()
    with daemon.client() as client:
        session = Session(client, mode="persistent")
        execution = session.run("1")["execution_id"]
        assert session.delete().status == 200
        assert client.get(f"{V1}/executions/{execution}").status == 404
    daemon.stop()
    again(daemon)
    with daemon.client() as client:
        assert client.get(session.path).status == 404
        assert client.get(f"{V1}/executions/{execution}").status == 404
        assert session.id not in [s["id"] for s in client.get(f"{V1}/sessions").json["sessions"]]


def test_old_executions_are_read_from_the_store(own):
    daemon = own(env={"MILLIBOX_EXECUTIONS_KEEP": "2", "MILLIBOX_SESSIONS_MAX": "2"})
    with daemon.client() as client:
        sessions = []
        for i in range(5):
            session = Session(client, mode="ephemeral", language="shell")
            sessions.append((session, session.run(f"echo {i}")))
            session.act("terminate")
        for i, (session, result) in enumerate(sessions):
            got = client.get(f"{V1}/executions/{result['execution_id']}/result")
            assert got.status == 200 and got.json == result
            assert client.get(session.path).json["status"] == "terminated"
        listed = [s["id"] for s in client.get(f"{V1}/sessions").json["sessions"]]
        assert listed == [s.id for s, _ in reversed(sessions)]
        assert client.get(f"{V1}/sessions?limit=2&offset=1").json["total"] == 5


def test_an_acknowledged_execution_is_never_lost(own):
    """Killed at random moments under load: every acknowledged execution is known afterwards."""
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    daemon = own()
    acknowledged = []
    lock = threading.Lock()

    def submit(count):
        with contextlib.suppress(OSError, ConnectionError, AssertionError), daemon.client() as client:
            session = Session(client, mode="ephemeral", language="shell")
            for _ in range(count):
                answer = client.post(f"{session.path}/execute", {"code": "echo here"})
                if answer.status == 200:
                    with lock:
                        acknowledged.append(answer.json["execution_id"])

    for _ in range(4):
        before = len(acknowledged)
        threads = [threading.Thread(target=submit, args=(60,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        target = before + rng.randrange(1, 60)
        host.wait_until(lambda: len(acknowledged) >= target or not any(t.is_alive() for t in threads), 30, "some")
        daemon.kill()
        for thread in threads:
            thread.join()
        again(daemon)
    assert len(acknowledged) > 4
    with daemon.client() as client:
        for execution in acknowledged:
            path = f"{V1}/executions/{execution}/result"
            # Accepted executions that had not started are run by the next daemon.
            host.wait_until(lambda: client.get(path).status != 409, 30, f"end of {execution}, seed {seed}")
            answer = client.get(path)
            assert answer.status == 200, (seed, execution, answer)
            assert answer.json["status"] in ("success", "crashed", "cancelled"), (seed, answer)


def test_a_synchronous_run_is_on_disk_with_the_next_acknowledged_one(own):
    """Alone it promises only its result; but no acknowledgement overtakes it, in rows or in counts."""
    daemon = own()
    for life in range(3):
        with daemon.client() as client:
            session = Session(client, mode=("ephemeral", "persistent")[life % 2], language="shell")
            ids = [session.run(f"echo {i}")["execution_id"] for i in range(5)] + [session.start("echo last")]
            daemon.kill()
        again(daemon)
        with daemon.client() as client:
            session.client = client
            assert client.get(session.path).json["executions"] == len(ids)
            assert [client.get(f"{V1}/executions/{i}").status for i in ids] == [200] * len(ids)
            assert client.get(f"{session.path}/executions").json["total"] == len(ids)
            assert session.delete().status == 200


def killed(daemon, change):
    """The response to one request, after which the daemon was killed at once and restarted."""
    with daemon.client() as client:
        answer = change(client)
        daemon.kill()
    again(daemon)
    return answer


def test_successful_changes_survive_a_kill(own):
    """Each change is followed by a kill at once: a 2xx means that it is on disk."""
    daemon = own()
    wanted = {"mode": "ephemeral", "language": "python", "dependencies": [{"name": "pip-is-not-there"}]}
    lacking = killed(daemon, lambda c: c.post(f"{V1}/sessions", wanted))
    assert lacking.status == 201
    with daemon.client() as client:
        failed = client.get(f"{V1}/sessions/{lacking.json['id']}").json
        assert failed["status"] == "failed" and "pip-is-not-there" in failed["dependency_install_error"]
    made = killed(daemon, lambda c: c.post(f"{V1}/sessions", {"mode": "ephemeral", "session_id": "one"}))
    assert made.status == 201
    shared = killed(daemon, lambda c: c.post("/workspace/se/session/two", {}))
    assert shared.status == 200
    with daemon.client() as client:
        assert client.get(f"{V1}/sessions/one").json["state"] == "ready"
        assert client.get(f"{V1}/sessions/two").status == 200
    assert killed(daemon, lambda c: c.post(f"{V1}/sessions/one/terminate", {})).status == 200
    with daemon.client() as client:
        assert client.get(f"{V1}/sessions/one").json["status"] == "terminated"
    assert killed(daemon, lambda c: c.request("DELETE", f"{V1}/sessions/one")).status == 200
    assert killed(daemon, lambda c: c.request("DELETE", "/workspace/se/session/two")).status == 200
    with daemon.client() as client:
        assert client.get(f"{V1}/sessions/one").status == 404
        assert client.get(f"{V1}/sessions/two").status == 404


def test_successful_template_changes_survive_a_kill(own):
    daemon = own()
    path = f"{V1}/templates"
    template = {"id": "mine", "name": "Mine", "image": "host", "default_env_vars": {"A": "1"}}
    assert killed(daemon, lambda c: c.post(path, template)).status == 201
    assert killed(daemon, lambda c: c.request("PUT", f"{path}/mine", {"name": "Renamed"})).status == 200
    with daemon.client() as client:
        shown = client.get(f"{path}/mine").json
        assert shown["name"] == "Renamed" and shown["default_env_vars"] == {"A": "1"}
    assert killed(daemon, lambda c: c.request("DELETE", f"{path}/mine")).status == 204
    with daemon.client() as client:
        assert client.get(f"{path}/mine").status == 404


def test_ended_sessions_keep_neither_variables_nor_template(own):
    daemon = own()
    with daemon.client() as client:
        large = {f"V{i}": "t" * 1000 for i in range(20)}
        made = client.post(f"{V1}/templates", {"id": "large", "name": "x", "image": "host", "default_env_vars": large})
        assert made.status == 201, made.json
        wide = {"template_id": "large", "env_vars": {"OWN": "s" * 1000}}
        ended = [Session(client, mode="ephemeral", **wide) for _ in range(3)]
        for session in ended[:2]:
            session.act("terminate")
        assert client.request("DELETE", ended[2].path).status in (200, 204)
        lives = Session(client, mode="persistent", **wide)
        lives.start("1")  # acknowledged: on disk, with all that was queued before it
        shown = client.get(ended[0].path).json
        assert shown["env_vars"] == {} and shown["template_id"] == "large"
        assert lives.info()["env_vars"] == wide["env_vars"]
        with contextlib.closing(sqlite3.connect(f"file:{database(daemon)}?mode=ro", uri=True)) as db:
            rows = dict(db.execute("SELECT id, length(env) + length(spec) FROM sessions").fetchall())
    assert rows.pop(lives.id) > 21000
    assert rows.keys() >= {s.id for s in ended[:2]}
    assert all(size < 1000 for size in rows.values()), rows


def test_an_execution_that_may_have_started_is_not_run_again(own):
    """Killed as soon as it is acknowledged: it ran or it crashed, and runs at most once."""
    daemon = own()
    with daemon.client() as client:
        session = Session(client, mode="ephemeral", language="shell")
        # The second waits for the first, which sleeps: it has certainly not started.
        first, second = session.start("sleep 60"), session.start("echo second")
        host.wait_until(lambda: client.get(f"{V1}/executions/{first}").json["status"] == "running", 10, "it runs")
        daemon.kill()
    again(daemon)
    with daemon.client() as client:
        session.client = client
        assert session.result(first)["status"] == "crashed"
        result = session.result(second)
        assert result["status"] == "success" and result["stdout"] == "second\n"
        # Acknowledged, and killed with the daemon in the same moment.
        third = session.start("sleep 60")
        daemon.kill()
    again(daemon)
    with daemon.client() as client:
        session.client = client
        assert session.result(third, seconds=10)["status"] == "crashed"


def test_packages_of_a_session_are_known_after_a_restart(own):
    daemon = own()
    with daemon.client() as client:
        wanted = [{"name": "surely-not-there", "version": "1.0"}]
        fields = {"mode": "ephemeral", "dependencies": wanted, "fail_on_dependency_error": False}
        answer = client.post(f"{V1}/sessions", fields)
        assert answer.status == 201, answer
        shown = client.get(f"{V1}/sessions/{answer.json['session_id']}").json
    daemon.kill()
    again(daemon)
    with daemon.client() as client:
        after = client.get(f"{V1}/sessions/{shown['id']}").json
        assert after["requested_dependencies"] == wanted and after["dependency_install_status"] == "failed"
        assert after == shown


def test_files_of_an_execution_are_removed_with_it(own):
    daemon = own()
    with daemon.client() as client:
        session = Session(client, mode="ephemeral")
        result = session.run("open('a.txt', 'w').write('one'); open('b.bin', 'wb').write(bytes(9)); 1")
        assert sorted(f["path"] for f in result["artifacts"]) == ["a.txt", "b.bin"]
        session.start("1")  # on disk with all before it
        with contextlib.closing(sqlite3.connect(f"file:{database(daemon)}?mode=ro", uri=True)) as db:
            rows = db.execute(
                "SELECT f.path, f.size, f.sha256 FROM files f JOIN executions e ON e.no = f.execution WHERE e.id = ?",
                (result["execution_id"],),
            ).fetchall()
        assert sorted(rows) == sorted((f["path"], f["size"], f["sha256"]) for f in result["artifacts"])
    daemon.kill()
    again(daemon)
    with daemon.client() as client:
        after = client.get(f"{V1}/executions/{result['execution_id']}/result").json
        assert after["artifacts"] == result["artifacts"]
        assert client.request("DELETE", session.path).status == 200
        host.wait_until(lambda: count(daemon, "files") == 0, 90, "they went with it")


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_counters_do_not_go_back(own, how):
    daemon = own()
    with daemon.client() as client:
        session = Session(client, mode="ephemeral", language="shell")
        for _ in range(3):
            session.run("echo 1")
        reported = metrics.read(client)
        assert reported.value("sandbox_executions_total", language="shell", status="success") == 3
        # Reported totals are written after the response; this waits for the disk after that.
        session.start("true")
    daemon.stop() if how == "stop" else daemon.kill()
    again(daemon)
    with daemon.client() as client:
        after = metrics.read(client)
    kept = {n for n, kind in reported.types.items() if kind != "gauge" and not n.startswith("process_")}
    grows = [k for k in reported.samples if re.sub(r"_(bucket|sum|count)$", "", k[0]) in kept or k[0] in kept]
    assert len(grows) > 20
    assert not [k for k in grows if after.samples.get(k, 0) < reported.samples[k]]
    assert after.value("process_cpu_seconds_total") < 60  # another process


def refused(daemon, words):
    before = picture(daemon)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(daemon.socket)
    daemon.log_path.unlink()
    daemon.start(ready=False)
    assert daemon.process.wait(20 * host.PATIENCE) == BAD_PLACE
    assert words in daemon.log() and "nothing was changed" in daemon.log()
    assert picture(daemon) == before


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_newer_database_is_refused_untouched(own, how):
    daemon = own()
    daemon.stop()
    with contextlib.closing(sqlite3.connect(database(daemon))) as db:
        db.execute("PRAGMA user_version = 999")
        if how == "stop":
            db.commit()
        else:
            # Only in the log: as if the newer daemon had been killed.
            db.execute("CREATE TABLE of_the_future (x)")
            db.commit()
            copies = {s: database(daemon).with_name(f"millibox.db{s}").read_bytes() for s in ("", "-wal")}
    if how == "kill":
        for suffix, data in copies.items():
            database(daemon).with_name(f"millibox.db{suffix}").write_bytes(data)
    refused(daemon, "newer version")


def test_a_damaged_database_is_refused_untouched(own):
    daemon = own()
    daemon.stop()
    with open(database(daemon), "r+b") as f:
        f.seek(4096 * 3)
        f.write(os.urandom(4096 * 4))
    refused(daemon, "is damaged")
    # Moved away, as the message advises, the daemon starts.
    database(daemon).rename(database(daemon).with_name("away"))
    again(daemon)


def test_a_foreign_file_is_refused_untouched(own):
    daemon = own()
    daemon.stop()
    database(daemon).write_text("this is not a database, but it was important to somebody\n" * 100)
    refused(daemon, "is not a database")


def test_a_backup_can_be_made_while_the_daemon_works(own, tmp_path):
    daemon = own()
    with daemon.client() as client:
        session = Session(client, mode="ephemeral", language="shell")
        execution = session.start("echo in the backup")
        with contextlib.closing(sqlite3.connect(database(daemon))) as source:
            with contextlib.closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
                source.backup(copy)
                rows = copy.execute("SELECT id FROM executions").fetchall()
        assert (execution,) in rows
        assert session.result(execution)["stdout"] == "in the backup\n"


# Retention


def count(daemon, table):
    with contextlib.closing(sqlite3.connect(f"file:{database(daemon)}?mode=ro", uri=True)) as db:
        return db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_retention_removes_old_rows(own):
    daemon = own(env={"MILLIBOX_RETENTION_SESSIONS": "5s", "MILLIBOX_RETENTION_EXECUTIONS": "1s"})
    with daemon.client() as client:
        session = Session(client, mode="ephemeral", language="shell")
        execution = session.run("echo here")["execution_id"]
        host.wait_until(lambda: client.get(f"{V1}/executions/{execution}").status == 404, 20, "too old")
        # A live session is kept whatever its age.
        assert session.info()["state"] == "ready"
        session.act("terminate")
        assert client.get(session.path).status == 200
        host.wait_until(lambda: client.get(session.path).status == 404, 20, "too old, too")
        host.wait_until(lambda: count(daemon, "sessions") == count(daemon, "executions") == 0, 20, "nothing is stored")


def test_retention_removes_the_oldest_first(own):
    daemon = own(env={"MILLIBOX_RETENTION_MAX_COUNT": "3", "MILLIBOX_RETENTION_SESSIONS": "2s"})
    with daemon.client() as client:
        session = Session(client, mode="ephemeral", language="shell")
        ids = [session.run(f"echo {i}")["execution_id"] for i in range(6)]
        host.wait_until(lambda: count(daemon, "executions") == 3, 20, "the newest three")
        # The daemon drops them after the database has.
        there = [404, 404, 404, 200, 200, 200]
        host.wait_until(lambda: [client.get(f"{V1}/executions/{i}").status for i in ids] == there, 20, "only these")


def test_deleted_rows_free_disk_space(own):
    daemon = own(env={"MILLIBOX_RETENTION_SESSIONS": "2s"})
    with daemon.client() as client:
        session = Session(client, mode="ephemeral", language="shell")
        session.run("echo here")
        session.start("echo there")
        assert session.delete().status == 200
        host.wait_until(lambda: count(daemon, "executions") == count(daemon, "sessions") == 0, 20, "gone")


@pytest.mark.alone
def test_requests_are_answered_during_a_large_cleanup(own):
    daemon = own()
    with daemon.client() as client:
        session = Session(client, mode="ephemeral", language="shell")
        session.run("echo one")
        session.act("terminate")
    daemon.stop()
    with contextlib.closing(sqlite3.connect(database(daemon))) as db:
        db.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
            " INSERT INTO executions (id, session_id, session_ms, created_ms, completed_ms, status, language,"
            " timeout_us, bytes, out) SELECT 'exec_20200101_' || i, 'old', 1, 1, i, 'success', 'shell', 1, 4096,"
            " zeroblob(4096) FROM n"
        )
        db.commit()
    many = count(daemon, "executions")
    assert many > 20000
    again(daemon)
    answered = 0
    slowest = 0
    begun = time.monotonic()
    with daemon.client() as client:
        session = Session(client, mode="ephemeral", language="shell")
        while count(daemon, "executions") > 1000:
            left = count(daemon, "executions")
            start = time.monotonic()
            execution = session.start("echo here")  # waits for the disk
            assert client.get(f"{V1}/executions/exec_20200101_20000/status").status in (200, 404)  # and reads
            slowest = max(slowest, time.monotonic() - start)
            answered += 1000 < left < many
            assert session.result(execution)["status"] == "success"
    # One that waited for the cleanup would take as long.
    assert answered > 3 and slowest < (time.monotonic() - begun) / 2, (answered, slowest)


MANY = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
    " INSERT INTO executions (id, tenant, session_id, session_ms, created_ms, completed_ms, status, language, timeout_us,"
    " bytes) SELECT 'exec_20200101_' || ?2 || i, ?2, 'past', ?4, i, ?3, 'success', 'shell', 1, 1 FROM n"
)


def test_a_tenant_with_much_history_is_deleted_at_once(own):
    """Its rows are removed in pieces, in the background, across kills; until then its name is taken."""
    daemon = own()
    path, now = f"{V1}/tenants", int(time.time() * 1000)

    def of(name):
        with contextlib.closing(sqlite3.connect(f"file:{database(daemon)}?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM executions WHERE tenant = ?", (name,)).fetchone()[0]

    with daemon.client() as client:
        for name in ("long", "short"):
            assert client.post(path, {"name": name}).status == 201
    daemon.stop()
    with contextlib.closing(sqlite3.connect(database(daemon))) as db:
        db.execute(MANY, (50000, "long", now, 1))  # more than is removed while this test asks and kills
        db.execute(MANY, (50, "short", now, 1))
        db.commit()
    again(daemon)
    with daemon.client() as client:
        assert client.request("DELETE", f"{path}/short").status == 200
        assert of("short") == 0 and client.post(path, {"name": "short"}).status == 201
        assert client.request("DELETE", f"{path}/long").status == 200
        assert 0 < of("long") < 50000
        assert client.get(f"{path}/long").status == 404
        refused = client.post(path, {"name": "long"})
        assert refused.status == 409 and "still being removed" in refused.json["error_detail"], refused
    daemon.kill()
    left = of("long")
    assert left > 0
    again(daemon)
    with daemon.client() as client:
        answer = client.post(path, {"name": "long"})
        assert answer.status == 409 or of("long") == 0
        host.wait_until(lambda: answer.status == 201 or client.post(path, {"name": "long"}).status == 201, 60, "its name is free")
        assert of("long") == 0 and count(daemon, "departed") == 0


def test_every_page_of_a_long_list_is_exact(own):
    daemon = own()
    now = int(time.time() * 1000)
    with daemon.client() as client:
        session = Session(client, mode="ephemeral", language="shell", id="past")
        session.run("true")
    daemon.kill()
    with contextlib.closing(sqlite3.connect(database(daemon))) as db:
        made = db.execute("SELECT created_ms FROM sessions WHERE id = 'past'").fetchone()[0]
        db.execute(MANY, (6000, "default", now, made))
        db.execute("UPDATE executions SET status = 'failed' WHERE no % 3 = 0")
        db.execute("DELETE FROM executions WHERE no BETWEEN 3000 AND 3500")
        db.commit()
        wanted = {s: [r[0] for r in db.execute(
            "SELECT id FROM executions WHERE ?1 IS NULL OR status = ?1 ORDER BY no DESC", (s,))] for s in (None, "failed")}
    again(daemon)
    with daemon.client() as client:
        for status, ids in wanted.items():
            for offset in (0, 1, 1000, 1800, 2047, 2048, 2049, 2600, 4000, len(ids) - 1, len(ids), 100_000):
                query = f"limit=3&offset={offset}" + (f"&status={status}" if status else "")
                page = client.get(f"{V1}/sessions/past/executions?{query}").json
                reported = [e["execution_id"] for e in page["executions"]]
                assert page["total"] == len(ids) and reported == ids[offset : offset + 3], (status, offset)


# A full disk


@pytest.fixture
def small():
    """A daemon whose state is on a file system of a few megabytes, and a way to fill it."""
    daemon = Daemon()
    state = daemon.home / "state"
    state.mkdir(mode=0o700)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M,mode=700", "none", state], capture_output=True)
    if mounted.returncode != 0:
        daemon.remove()
        pytest.skip("no right to mount")
    yield daemon.start(), state / "ballast"
    if daemon.process.poll() is None:
        daemon.stop()
    subprocess.run(["umount", "-l", state], check=True)
    daemon.remove()


def fill(ballast):
    with open(ballast, "wb", buffering=0) as f, contextlib.suppress(OSError):
        while True:
            f.write(bytes(4096))


def test_a_full_disk_refuses_only_what_must_be_persisted(small):
    daemon, ballast = small
    with daemon.client() as client:
        session = Session(client, mode="persistent")
        session.run("x = 1")
        execution = session.start("x")
        assert session.result(execution)["result"] == 1
        fill(ballast)
        # More than fits into pages that the log already has.
        answer = client.post(f"{session.path}/execute", {"code": "x = 2\n" + "#" * 900_000})
        assert answer.status == 507 and answer.json["error_code"] == "Sandbox.StorageFailed"

        def says_so():
            # A small write that still fits makes it ready again, for small ones.
            large = client.post(f"{session.path}/execute", {"code": "x = 2\n" + "#" * 900_000})
            ready = client.get("/readyz")
            parts = client.get("/api/v1/health/detailed").json["dependencies"]
            return (
                large.status == 507 and ready.status == 503 and "store" in ready.json["reasons"]
                and parts["database"]["status"] == "unhealthy" and parts["runtime_nodes"]["status"] == "healthy"
            )  # fmt: skip

        host.wait_until(says_so, 20, "not ready")
        assert client.get("/healthz").status == 200
        # It did not run; synchronous executions still do.
        assert session.run("x")["result"] == 1
        listed = client.get(f"{session.path}/executions").json["executions"]
        assert answer.json.get("execution_id") is None and len(listed) == 3
        ballast.unlink()
        host.wait_until(lambda: client.get("/readyz").status == 200, 20, "ready again")
        execution = session.start("x + 1")
        assert session.result(execution)["result"] == 2
    daemon.kill()
    again(daemon)
    with daemon.client() as client:
        # Executions that ran meanwhile were written when there was room.
        assert client.get(f"{session.path}/executions").json["total"] == 4
