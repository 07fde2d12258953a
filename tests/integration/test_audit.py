# SPDX-License-Identifier: Apache-2.0
"""The audit log: complete, and verifiably so."""

import contextlib
import hashlib
import json
import os
import signal
import sqlite3
import stat
import subprocess

import pytest
from support import host
from support.client import Client
from support.daemon import BUILD
from support.sessions import V1, Session

pytestmark = pytest.mark.phases("system")

SMALL = "audit: {max_size: 64Ki, keep: 2}\n"


def log_of(daemon):
    return daemon.home / "state" / "audit.log"


def records(daemon, action=None):
    # Whole lines: the last one may just be being written.
    found = [json.loads(line) for line in log_of(daemon).read_bytes().split(b"\n")[:-1]]
    return [r for r in found if action in (None, r["action"])]


def wait_for(daemon, action, count=1):
    host.wait_until(lambda: len(records(daemon, action)) >= count, 10, f"{count} of {action}: {records(daemon)}")
    return records(daemon, action)


def verify(path):
    return subprocess.run([str(BUILD / "millibox"), "audit", "verify", str(path)], capture_output=True, text=True)


@pytest.fixture
def audited(make_daemon):
    return make_daemon(tcp=True).start()


@pytest.fixture
def used(make_daemon):
    """A log with some records of a daemon that has ended, and the daemon."""
    daemon = make_daemon().start()
    with daemon.client() as client:
        for i in range(5):
            client.shell(f"echo {i}")
    assert daemon.stop() == 0
    assert verify(log_of(daemon)).returncode == 0
    return daemon


def test_events_are_recorded_without_code_or_output(audited):
    code = "print('hush-code')"
    with audited.client() as client:
        answer = client.post(
            f"{V1}/execute",
            {"language": "python", "code": code, "stdin": "hush-in", "env_vars": {"T": "hush-env"}, "timeout": 7},
            headers={"X-Request-ID": "one-shot"},
        )
        session = Session(client, agent_id="an-agent", mode="persistent")
        session.run("raise SystemExit(3)")
        session.delete()
    wait_for(audited, "session.end")
    assert audited.stop() == 0
    shot, inside = records(audited, "execution.end")
    assert shot["object"] == answer.json["execution_id"] and shot["request_id"] == "one-shot"
    assert shot["tenant"] == "default" and shot["result"] == "success" and shot["key_id"] is None
    assert shot["detail"]["code_sha256"] == hashlib.sha256(code.encode()).hexdigest()
    assert shot["detail"]["language"] == "python" and shot["detail"]["timeout_ms"] == 7000
    assert shot["detail"]["limits"]["memory_bytes"] == 512 << 20 and shot["detail"]["exit_code"] == 0
    assert inside["detail"]["session_id"] == session.id and inside["result"] == "failed"
    (made,), (ended,) = records(audited, "session.create"), records(audited, "session.end")
    assert made["object"] == ended["object"] == session.id and made["detail"]["agent_id"] == "an-agent"
    assert ended["detail"]["reason"] == "it was deleted"
    assert [r["action"] for r in records(audited)][0] == "daemon.start"
    assert [r["action"] for r in records(audited)][-1] == "daemon.stop"
    assert "hush" not in log_of(audited).read_text()
    assert verify(log_of(audited)).returncode == 0


@pytest.mark.phases("system", "user")
def test_only_its_owner_may_read_it(audited):
    for path in (log_of(audited), audited.home / "state" / "audit.log.head"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_rejected_callers_are_recorded_but_cannot_fill_the_disk(audited):
    with contextlib.closing(Client(audited.tcp_address())) as client:
        for _ in range(200):
            assert client.get("/healthz", headers={"Origin": "https://evil.example"}).status == 403
    wait_for(audited, "request.refuse")
    audited.stop()
    refused = records(audited, "request.refuse")
    assert refused[0]["result"] == "Sandbox.Forbidden" and refused[0]["detail"]["method"] == "GET"
    assert 1 <= len(refused) < 200
    drop_pending = sum(r["detail"].get("untold_before", 0) for r in refused)
    assert len(refused) + drop_pending <= 200


def test_a_policy_reload_is_recorded(audited):
    audited.process.send_signal(signal.SIGHUP)
    (record,) = wait_for(audited, "config.reload")
    assert record["result"] == "ok"
    audited.stop()


def test_changes_of_keys_and_tenants_are_recorded_with_their_author(audited):
    with audited.client() as client:
        assert client.post(f"{V1}/tenants", {"name": "acme"}).status == 201
        key = client.post(f"{V1}/keys", {"tenant": "acme"}).json
        assert client.post(f"{V1}/tenants", {"name": "acme"}).status == 409
    with contextlib.closing(Client(audited.tcp_address())) as stranger:
        assert stranger.get(f"{V1}/sessions").status == 401
    (made,) = wait_for(audited, "key.create")
    first, second = wait_for(audited, "tenant.create", 2)
    (failure,) = wait_for(audited, "auth.failure")
    # A created object is recorded by its id.
    assert made["object"] == key["id"] and first["object"] == "acme"
    assert made["result"] == first["result"] == "ok" and second["result"] == "Sandbox.StateConflict"
    assert failure["result"] == "Internal.Unauthorized" and failure["tenant"] is None
    secret = next(v for v in key.values() if isinstance(v, str) and v.startswith("mb_") and len(v) > 20)
    assert secret.rsplit("_", 1)[1] not in log_of(audited).read_text()
    audited.stop()


def test_denials_are_recorded(audited):
    with audited.client() as client:
        assert client.shell("mount -t tmpfs none /tmp || unshare -U true; true")["status"] == "success"
    (record,) = wait_for(audited, "execution.end")
    assert all(d["kind"] in ("syscall", "limit") for d in record["detail"].get("denials", []))
    audited.stop()


# Changes by an attacker who can write the file. Each is detected and its first record named.

def edit_value(lines):
    lines[2] = lines[2].replace(b'"result":"success"', b'"result":"failed!"')
    return lines, 3


def edit_hash(lines):
    at = lines[2].rindex(b'"hash":"') + 8
    lines[2] = lines[2][:at] + (b"0" if lines[2][at : at + 1] != b"0" else b"1") + lines[2][at + 1 :]
    return lines, 3


def edit_prev(lines):
    at = lines[2].rindex(b'"prev":"') + 8
    lines[2] = lines[2][:at] + (b"0" if lines[2][at : at + 1] != b"0" else b"1") + lines[2][at + 1 :]
    return lines, 3


def edit_seq(lines):
    lines[2] = lines[2].replace(b'"seq":3', b'"seq":4')
    return lines, 3


def swap(lines):
    lines[2], lines[3] = lines[3], lines[2]
    return lines, 3


def leave_out(lines):
    del lines[2]
    return lines, 3


def double(lines):
    lines.insert(2, lines[1])
    return lines, 3


def insert(lines):
    lines.insert(2, b'{"seq":3,"action":"forged"}\n')
    return lines, 3


def blank(lines):
    lines.insert(2, b"\n")
    return lines, 3


def nul(lines):
    lines[2] = lines[2].replace(b"time", b"ti\0e")
    return lines, 3


def cut_one(lines):
    return lines[:-1], None


def cut_all(lines):
    return [], None


def tear(lines):
    lines[-1] = lines[-1][:-20]
    return lines, len(lines)


@pytest.mark.parametrize(
    "change",
    [edit_value, edit_hash, edit_prev, edit_seq, swap, leave_out, double, insert, blank, nul, cut_one, cut_all, tear],
)
def test_changes_are_detected(used, change):
    path = log_of(used)
    lines, bad = change(path.read_bytes().splitlines(keepends=True))
    path.write_bytes(b"".join(lines))
    said = verify(path)
    assert said.returncode == 1 and "NOT intact" in said.stdout, said
    if bad:
        assert f"line {bad} " in said.stdout, said.stdout


def test_a_head_of_another_log_is_detected(used):
    head = used.home / "state" / "audit.log.head"
    good = head.read_text()
    assert verify(log_of(used)).returncode == 0
    number, digest = good.split()
    head.write_text(f"{number} {'0' * 64}\n")
    assert verify(log_of(used)).returncode == 1
    head.write_text("nonsense")
    assert verify(log_of(used)).returncode != 0


def forge(path, keep):
    """Cut the log after @keep records and make its head fit: the files alone are consistent."""
    lines = path.read_bytes().splitlines(keepends=True)[:keep]
    path.write_bytes(b"".join(lines))
    last = json.loads(lines[-1])
    path.with_name("audit.log.head").write_text(f"{last['seq']:020d} {last['hash']}\n")


def test_a_log_cut_together_with_its_head_is_detected_by_the_database(used, tmp_path):
    path = log_of(used)
    whole = verify(path)
    assert whole.returncode == 0 and f"anchor: record {len(records(used))}, in the database" in whole.stdout
    forge(path, len(records(used)) - 2)
    said = verify(path)
    assert said.returncode == 1 and "missing at the end" in said.stdout, said
    # Only the database can detect it.
    for name in ("audit.log", "audit.log.head"):
        (tmp_path / name).write_bytes(path.with_name(name).read_bytes())
    assert verify(tmp_path / "audit.log").returncode == 0
    used.start()
    (record,) = wait_for(used, "audit.damage")
    used.stop()
    assert record["result"] == "records are missing at the end"
    assert path.with_name(path.name + "." + record["object"]).exists()
    assert verify(path).returncode == 0, verify(path)


def test_a_log_without_a_proved_end_is_not_called_intact(used, tmp_path):
    """Cut at the end, and the head is gone: what is left is a whole chain."""
    path, copy = log_of(used), tmp_path / "audit.log"
    lines = path.read_bytes().splitlines(keepends=True)
    copy.write_bytes(b"".join(lines[:-2]))
    said = verify(copy)
    assert said.returncode == 1 and said.stdout.startswith("NOT proved to be intact: "), said
    assert "no head file and no anchor: records may be missing at the end" in said.stdout
    told = subprocess.run([str(BUILD / "millibox"), "audit", "verify", "--json", str(copy)], capture_output=True, text=True)
    answer = json.loads(told.stdout)
    assert told.returncode == 1 and answer["intact"] is answer["end_is_proved"] is False and answer["records"] == len(lines) - 2, answer
    # The control: with its head the whole log is intact.
    copy.write_bytes(path.read_bytes())
    copy.with_name("audit.log.head").write_bytes(path.with_name("audit.log.head").read_bytes())
    assert verify(copy).stdout.startswith("intact: ")


def test_a_rewritten_log_is_detected_by_the_database(used, make_daemon):
    other = make_daemon().start()
    with other.client() as client:
        for _ in range(8):
            client.shell("true")
    other.stop()
    assert len(records(other)) > len(records(used))
    for name in ("audit.log", "audit.log.head"):
        (used.home / "state" / name).write_bytes((other.home / "state" / name).read_bytes())
    said = verify(log_of(used))
    assert said.returncode == 1 and "belongs to another log" in said.stdout, said
    used.env["MILLIBOX_AUDIT_REQUIRED"] = "true"
    before = log_of(used).read_bytes()
    used.start(ready=False)
    assert used.process.wait(20 * host.PATIENCE) == 4
    assert "millibox audit verify" in used.log() and log_of(used).read_bytes() == before


def test_a_log_is_verified_against_a_named_database(used, tmp_path):
    command = [str(BUILD / "millibox"), "audit", "verify", "--database"]
    copy = tmp_path / "audit.log"
    copy.write_bytes(log_of(used).read_bytes())
    named = subprocess.run([*command, used.home / "state" / "millibox.db", copy], capture_output=True, text=True)
    assert named.returncode != 0 and "has no anchor of the log" in named.stderr
    none = subprocess.run([*command, tmp_path / "none.db", copy], capture_output=True, text=True)
    assert none.returncode != 0 and "anchor" in none.stderr


def test_the_database_follows_a_log_that_was_ahead_of_it(used):
    """As after a crash between the two writes: a longer log is not a fault."""
    path = log_of(used)
    with contextlib.closing(sqlite3.connect(path.with_name("millibox.db"))) as db:
        first = json.loads(path.read_bytes().splitlines()[0])
        db.execute("UPDATE audit SET head = ?", (f"{first['seq']:020d} {first['hash']}\n",))
        db.commit()
    assert "anchor: record 1," in verify(path).stdout
    used.start()
    used.stop()
    assert not records(used, "audit.damage")
    said = verify(path)
    assert said.returncode == 0 and f"anchor: record {len(records(used))}," in said.stdout


def test_a_kill_during_a_write_is_repaired_and_recorded(used):
    path = log_of(used)
    with open(path, "ab") as file:
        file.write(b'{"seq":99,"time":"2026')
    assert verify(path).returncode == 1
    used.start()
    (repair,) = wait_for(used, "audit.repair")
    assert repair["detail"]["torn_bytes"] == 22
    used.stop()
    assert verify(path).returncode == 0, verify(path)


def test_a_log_killed_while_writing_continues_and_verifies(make_daemon):
    daemon = make_daemon().start()
    for starts in range(1, 4):
        with daemon.client() as client:
            for _ in range(10):
                client.shell("true")
        wait_for(daemon, "daemon.start", starts)  # a thread of the daemon writes the log
        daemon.kill()
        # The engine of a killed daemon releases the directory after its cleanup.
        host.wait_until(lambda: _starts(daemon), 30, "a new start")
    assert daemon.stop() == 0
    assert verify(log_of(daemon)).returncode == 0, verify(log_of(daemon))
    assert len(records(daemon, "daemon.start")) == 4


def _starts(daemon):
    try:
        daemon.start()
        return True
    except AssertionError:
        return False


def test_a_damaged_log_is_set_aside_and_recorded(used):
    path = log_of(used)
    path.write_bytes(path.read_bytes().replace(b'"success"', b'"SUCCESS"'))
    used.start()
    (record,) = wait_for(used, "audit.damage")
    used.stop()
    aside = path.with_name(path.name + "." + record["object"])
    assert aside.exists() and b"SUCCESS" in aside.read_bytes()
    assert "is damaged" in used.log()
    assert verify(path).returncode == 0


def test_a_damaged_required_log_prevents_the_start(used):
    path = log_of(used)
    path.write_bytes(path.read_bytes().replace(b'"success"', b'"SUCCESS"'))
    before = path.read_bytes()
    used.env["MILLIBOX_AUDIT_REQUIRED"] = "true"
    used.start(ready=False)
    assert used.process.wait(20 * host.PATIENCE) != 0
    assert "millibox audit verify" in used.log() and path.read_bytes() == before


def test_a_full_file_is_rotated_and_the_chain_continues(make_daemon):
    daemon = make_daemon(config=SMALL).start()
    path = log_of(daemon)
    with daemon.client() as client:
        host.wait_until(lambda: _fill(client) and len(list(path.parent.glob("audit.log.0*"))) >= 2, 60, "two full files")
    daemon.stop()
    said = verify(path)
    assert said.returncode == 0 and "head:" in said.stdout, said
    first = sorted(path.parent.glob("audit.log.0*"))[0]
    assert verify(path).stdout.startswith("intact:")
    # Without the file in between the chain has a gap.
    sorted(path.parent.glob("audit.log.0*"))[1].unlink()
    assert verify(path).returncode == 1
    assert first.exists()


def _fill(client):
    for i in range(40):
        assert client.post(f"{V1}/sessions", {"session_id": f"s{i}", "mode": "ephemeral"}).status == 201
        assert client.request("DELETE", f"{V1}/sessions/s{i}").status == 200
    return True


@pytest.mark.parametrize("required", [True, False])
def test_an_unwritable_log_refuses_work_only_if_required(make_daemon, required):
    daemon = make_daemon()
    folder = daemon.home / "audit"
    folder.mkdir()
    folder.chmod(0o777)
    daemon.env = {
        "MILLIBOX_AUDIT_REQUIRED": str(required).lower(),
        "MILLIBOX_AUDIT_PATH": str(folder / "audit.log"),
        "MILLIBOX_AUDIT_MAX_SIZE": "64Ki",
    }
    daemon.start()
    with daemon.client() as client:
        # No new file can be created: the next full one cannot be rotated.
        folder.chmod(0o555)
        host.wait_until(lambda: _is_stuck(daemon, client, required), 60, "the log is stuck")
        assert client.get(f"{V1}/sessions").status == 200
        made = client.post(f"{V1}/sessions", {"mode": "ephemeral"})
        assert made.status == (503 if required else 201), made
        folder.chmod(0o777)
        host.wait_until(lambda: client.post(f"{V1}/sessions", {"mode": "ephemeral"}).status == 201, 10, "served again")
        host.wait_until(lambda: list(folder.glob("audit.log.0*")), 10, "a full file")
    assert daemon.stop() == 0
    assert "cannot be written" in daemon.log()
    assert verify(folder / "audit.log").returncode == 0, verify(folder / "audit.log")


def _is_stuck(daemon, client, required):
    made = client.post(f"{V1}/sessions", {"mode": "ephemeral"})
    if made.status == 201:
        client.request("DELETE", f"{V1}/sessions/{made.json['session_id']}")
    return made.status == 503 if required else "cannot be written" in daemon.log()


def test_it_can_be_turned_off(make_daemon):
    daemon = make_daemon(config="audit: {enabled: false}\n").start()
    with daemon.client() as client:
        client.shell("true")
    daemon.stop()
    assert not log_of(daemon).exists()


def test_the_last_records_are_shown(used):
    run = [str(BUILD / "millibox"), "audit", "tail", "-n", "2", str(log_of(used))]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert said == "".join(line + "\n" for line in log_of(used).read_text().splitlines()[-2:])


def test_a_missing_log(tmp_path):
    said = verify(tmp_path / "none.log")
    assert said.returncode == 125 and "none.log" in said.stderr
    assert os.listdir(tmp_path) == []


# The command line finds the log


def audit(*words, **env):
    command = [str(BUILD / "millibox"), "audit", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **env})


def test_the_log_is_that_of_the_daemon_that_answers(audited, client):
    log = log_of(audited)
    wait_for(audited, "daemon.start")  # a thread of the daemon writes the log
    for words, env in ((["--socket", audited.socket], {}), ([], {"MILLIBOX_SOCKET": audited.socket})):
        said = audit("tail", *words, **env)
        assert said.returncode == 0 and said.stdout.splitlines()[-1] in log.read_text().splitlines(), said
        said = audit("verify", *words, **env)
        assert said.returncode == 0 and said.stdout.startswith("intact"), said
    with audited.client() as own:
        assert own.get("/api/v1/audit").json == {"enabled": True, "path": str(log)}


def test_a_daemon_without_a_log_says_so(make_daemon):
    own = make_daemon(env={"MILLIBOX_AUDIT_ENABLED": "false"}).start()
    said = audit("tail", "--socket", own.socket)
    assert said.returncode == 125 and "audit.enabled" in said.stderr


def test_a_daemon_that_is_not_there_has_no_log(tmp_path):
    said = audit("tail", "--socket", f"{tmp_path}/none")
    assert said.returncode == 125 and f"{tmp_path}/none" in said.stderr
