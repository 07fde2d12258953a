# SPDX-License-Identifier: Apache-2.0
"""Receipts: what isolated an execution, its signature, and 'millibox receipt verify'; 'why' in three lines."""

import hashlib
import json
import os
import subprocess

import pytest

from support import host
from support.daemon import BUILD
from support.sessions import Session

pytestmark = pytest.mark.phases("system")

CODE = "print('hello')"


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def cli(daemon, tmp_path):
    """'millibox' of a user with an empty home, which is the working directory; @lonely: without a daemon."""
    def run(*words, lonely=False, input=None):
        env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(tmp_path)}
        if not lonely:
            env["MILLIBOX_SOCKET"] = str(daemon.socket)
        return subprocess.run([BUILD / "millibox", *words], env=env, cwd=tmp_path, input=input, capture_output=True, text=True, timeout=60)

    return run


def test_a_result_says_what_was_applied(make_daemon):
    # A daemon of its own: its pools learn of boxes with these limits.
    with make_daemon().start().client() as client:
        isolation = client.python(CODE, timeout=7, resources={"memory": "64Mi", "max_processes": 20})["isolation"]
        again = client.python("1")["isolation"]
    assert isolation["policies"][0]["name"] == "default" and len(isolation["policies"][0]["sha256"]) == 64
    assert len(isolation["filter_sha256"]) == 64
    assert isolation["limits"]["memory_bytes"] == 64 << 20
    assert isolation["limits"]["timeout_ms"] == 7000 and isolation["limits"]["processes"] == 20
    assert isolation["versions"]["kernel"] == os.uname().release
    assert isolation["network"] == "none" and isolation["network_rules_sha256"] is None
    assert again["policies"] == isolation["policies"] and again["filter_sha256"] == isolation["filter_sha256"]


def test_another_policy_has_another_hash(make_daemon, tmp_path_factory):
    seen = []
    for name in ("default", "strict"):
        with make_daemon(config=f"policy: {{default: {name}}}\n").start().client() as client:
            seen.append(client.python("1")["isolation"]["policies"][0])
    assert [p["name"] for p in seen] == ["default", "strict"] and seen[0]["sha256"] != seen[1]["sha256"]


def test_a_receipt_binds_the_execution(client, cli, tmp_path):
    result = client.python(CODE, receipt="signed")
    payload = result["receipt"]["payload"]
    assert payload["execution_id"] == result["execution_id"] and payload["code_sha256"] == sha(CODE)
    assert payload["outcome"]["stdout_sha256"] == sha(result["stdout"]) and payload["outcome"]["status"] == "success"
    assert payload["isolation"] == result["isolation"]

    key = cli("receipt", "key").stdout.strip()
    assert client.get("/api/v1/receipts/key").json["public_key"] == key
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result))
    good = cli("receipt", "verify", "--key", key, str(path), lonely=True)
    assert good.returncode == 0 and result["execution_id"] in good.stdout, good
    assert good.stdout.splitlines()[0].split() == ["receipt", "valid"]
    (tmp_path / "job.py").write_text(CODE)
    alone = json.dumps(result["receipt"], indent=1)
    good = cli("receipt", "verify", "-k", key, "-c", str(tmp_path / "job.py"), "-x", result["execution_id"], "-", lonely=True, input=alone)
    assert good.returncode == 0, good


def test_a_pinned_key(client, cli):
    receipt = json.dumps(client.python(CODE, receipt="signed")["receipt"])
    refused = cli("receipt", "verify", "-", lonely=True, input=receipt)
    assert refused.returncode == 2 and "--pin" in refused.stderr
    assert cli("receipt", "key", "--pin").returncode == 0
    assert cli("receipt", "verify", "-", lonely=True, input=receipt).returncode == 0


def test_only_who_asks_gets_one(client):
    assert "receipt" not in client.python(CODE)
    assert "receipt" not in client.python(CODE, receipt="plain")
    answer = client.post("/api/v1/execute", {"language": "python", "code": "1", "receipt": "golden"})
    assert answer.status == 400 and answer.json["field"] == "receipt"


def test_the_key_stays_and_is_private(make_daemon):
    daemon = make_daemon().start()
    with daemon.client() as client:
        session = Session(client, mode="persistent")
        before = client.get("/api/v1/receipts/key").json
        result = session.run(CODE, receipt="signed")
        seen = client.shell("find / -name receipt.key 2>/dev/null; env")["stdout"]
        assert "receipt.key" not in seen
    assert daemon.stop() == 0
    files = [path for path in daemon.home.rglob("receipt.key")]
    assert len(files) == 1 and files[0].stat().st_mode & 0o7777 == 0o600
    daemon.start()
    with daemon.client() as client:
        assert client.get("/api/v1/receipts/key").json == before
        again = client.get(f"/api/v1/executions/{result['execution_id']}").json
        assert again["receipt"] == result["receipt"] and again["isolation"] == result["isolation"]
    assert daemon.stop() == 0
    files[0].write_text("no key\n")
    with pytest.raises(AssertionError, match="damaged"):
        daemon.start()


def test_the_command_line_asks_for_one(cli):
    made = cli("run", "--json", "--receipt", "signed", "-l", "python", "-c", CODE)
    assert made.returncode == 0, made
    assert cli("receipt", "key", "--pin").returncode == 0
    assert cli("receipt", "verify", "-", lonely=True, input=made.stdout).returncode == 0


# Why.


@pytest.mark.parametrize("language, code, fields, words", [
    ("python", "1/0", {}, ("ZeroDivisionError", "No rule", "program")),
    ("shell", "exit 3", {}, ("exit code 3", "No rule", "program")),
    ("python", "import time; time.sleep(9)", {"timeout": 0.3}, ("stopped after", "The time limit was reached (rule deadline, 1 time).", "timeout of the request")),
    ("shell", "mount -t tmpfs x /mnt", {}, ("exit code", "seccomp refused mount with EPERM", "No policy")),
    ("shell", "echo curl: Could not resolve host >&2; exit 6", {}, ("exit code 6", "network.mode: the box has no network, and the error output looks like", "allowlist")),
    ("shell", "echo getaddrinfo ENOTFOUND a.test >&2; exit 1", {}, ("exit code 1", "network.mode: the box has no network", "allowlist")),
    ("shell", "echo java.net.UnknownHostException: a.test >&2; exit 1", {}, ("exit code 1", "network.mode: the box has no network", "allowlist")),
    ("shell", "touch /usr/x", {}, ("exit code 1", "read-only", "/workspace")),
    ("shell", "kill -9 $$", {}, ("signal 9", "No rule", "program")),
])
def test_three_lines(client, language, code, fields, words):
    result = client.execute(language, code, **fields)
    assert len(result["why"]) == 3
    for line, word in zip(result["why"], words):
        assert word in line, result["why"]


def test_success_needs_no_explanation(client):
    assert client.python("1")["why"] is None


def test_why_of_a_session(client, cli, tmp_path):
    session = Session(client, mode="persistent", language="shell")
    try:
        result = session.run("mount -t tmpfs x /mnt; exit 4")
        answer = client.get(f"/api/v1/executions/{result['execution_id']}/why")
        assert answer.status == 200 and answer.json["why"] == result["why"], answer.json
        shown = cli("why", result["execution_id"])
        assert shown.stdout.splitlines() == result["why"], shown
        assert "seccomp" in shown.stdout
        (tmp_path / result["execution_id"]).write_text(json.dumps({"why": ["a file"]}))
        assert cli("why", result["execution_id"]).stdout == shown.stdout
        assert cli("why", "./" + result["execution_id"]).stdout == "a file\n"
    finally:
        session.delete()
    assert cli("why", "exec_20200101_00000000").returncode != 0
    piped = cli("why", "-", lonely=True, input=json.dumps(result))
    assert piped.stdout.splitlines() == result["why"]
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert cli("why", str(tmp_path / "result.json"), lonely=True).stdout == piped.stdout
    (tmp_path / "result.json").write_text("{}")
    assert "result.json is not a result" in cli("why", str(tmp_path / "result.json"), lonely=True).stderr


def test_why_while_it_runs(client):
    session = Session(client, mode="persistent", language="shell")
    try:
        execution = session.start("sleep 30")
        host.wait_until(lambda: client.get(f"/api/v1/executions/{execution}/status").json["status"] == "running", 10)
        assert client.get(f"/api/v1/executions/{execution}/why").json["why"][0] == "It is running."
    finally:
        session.delete()
