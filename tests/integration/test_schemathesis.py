# SPDX-License-Identifier: Apache-2.0
"""Requests that an outside tool makes up from the description, valid and invalid ones, for our own paths: the server
accepts what the description allows, refuses the rest, and answers as described. tools/setup installs the tool.
MILLIBOX_SCHEMATHESIS_SECONDS=300 runs it for longer."""

import json
import os
import re
import subprocess

import pytest
from support.daemon import ROOT, Daemon
from support.identity import make_key

TOOL = ROOT / ".cache/schemathesis"
pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not (TOOL / "complete").exists(), reason="schemathesis is not installed: tools/setup test"),
]

SECONDS = int(os.environ.get("MILLIBOX_SCHEMATHESIS_SECONDS", "45"))
# Small boxes and short programs: most requests run something that was made up.
CONFIG = """
limits: {timeout: 2s, timeout_max: 2s, memory: 64Mi, memory_max: 128Mi, disk: 16Mi}
http: {request_timeout: 5s}
"""
# WebSockets; an upload, which is no JSON; and what takes the key away that the tool uses.
LEFT_OUT = ("connectPort", "executionAttach", "importTemplate", "revokeKey")
SCOPES = ["read", "execute", "sessions", "files", "templates", "policy", "metrics", "secrets", "admin"]


@pytest.fixture
def daemon():
    d = Daemon(config=CONFIG, tcp=True).start()
    yield d
    assert d.stop() == 0, d.log()
    d.remove()


@pytest.fixture
def calls(daemon, tmp_path):
    """Run the tool with a key, always with the same seed. Return: its exit status, and what it said."""
    with daemon.client() as client:
        key = make_key(client, "default", scopes=SCOPES)
        (tmp_path / "openapi.json").write_bytes(client.get("/openapi.json", headers={"X-API-Key": key}).body)

    def run(*words, description="openapi.json"):
        command = [
            str(TOOL / "bin/schemathesis"), "--config-file", str(ROOT / "tests/support/schemathesis.toml"), "run", description,
            "--url", "http://127.0.0.1:%d" % daemon.tcp_address()[1], "--header", f"X-API-Key: {key}", "--include-tag", "millibox",
            "--seed", "1", "--max-time", str(SECONDS), "--workers", "1", "--phases", "coverage,fuzzing", "--exclude-checks", "ignored_auth",
            "--generation-with-security-parameters", "false", "--generation-database", "none", "--continue-on-failure", "--no-shrink",
            "--no-color", *(word for name in LEFT_OUT for word in ("--exclude-operation-id", name)), *words,
        ]  # fmt: skip
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=20 * SECONDS, check=False)
        return done.returncode, done.stdout + done.stderr

    yield run
    # The tool makes sessions that keep their boxes, and deletes none on purpose.
    with daemon.client() as client:
        end_sessions(client, {"X-API-Key": key})


def end_sessions(client, headers):
    while sessions := client.get("/api/v1/sessions?limit=200", headers=headers).json["sessions"]:
        for session in sessions:
            answer = client.request("DELETE", f"/api/v1/sessions/{session['session_id']}", headers=headers)
            assert answer.status in (200, 204, 404), answer


def test_our_own_paths_do_what_they_say(calls):
    """As many requests as the time allows; the first ones are the same each time."""
    status, said = calls()
    assert status == 0, said[-20000:]
    assert int(re.search(r"(\d+) generated, ", said).group(1)) > 100, said[-2000:]


def test_control_a_false_description_is_detected(calls, tmp_path):
    document = json.loads((tmp_path / "openapi.json").read_bytes())
    document["components"]["schemas"]["Identity"]["properties"]["tenant"]["type"] = "integer"
    (tmp_path / "false.json").write_text(json.dumps(document))
    status, said = calls("--include-operation-id", "identity", description="false.json")
    assert status == 1 and "Response violates schema" in said, said[-5000:]
