# SPDX-License-Identifier: Apache-2.0
"""Third-party MCP clients: the official conformance suite, the Inspector, the TypeScript SDK."""

import json
import os
import re
import shutil
import subprocess

import pytest
from support.daemon import BUILD, ROOT, Daemon

CLIENTS = ROOT / "tests/mcp"
BIN = CLIENTS / "node_modules/.bin"

pytestmark = [pytest.mark.phases("system"), pytest.mark.skipif(
    not shutil.which("node") or not BIN.is_dir(), reason="the clients are not installed: tools/setup test"
)]


@pytest.fixture(scope="module")
def daemon():
    d = Daemon(tcp=True).start()
    yield d
    assert d.stop() == 0, d.log()
    d.remove()


@pytest.fixture
def url(daemon):
    host, port = daemon.tcp_address()
    return f"http://{host}:{port}/mcp"


def run(command, cwd, **env):
    # A separate home: clients store files there.
    own = {"PATH": os.environ["PATH"], "HOME": str(cwd), **env}
    return subprocess.run([str(c) for c in command], cwd=cwd, env=own, capture_output=True, text=True, timeout=300)


def test_the_conformance_suite_passes_where_it_brings_no_fixtures(url, tmp_path):
    baseline = CLIENTS / "conformance.yaml"
    done = run([BIN / "conformance", "server", "--url", url, "--expected-failures", baseline], tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    passed = {line.split()[1].rstrip(":") for line in done.stdout.splitlines() if line.startswith("✓")}
    assert passed >= {
        "server-initialize", "logging-set-level", "ping", "completion-complete", "tools-list", "resources-list",
        "server-sse-multiple-streams", "prompts-list", "dns-rebinding-protection",
    }  # fmt: skip


def test_the_suites_scenario_of_polled_streams(url, tmp_path):
    done = run([BIN / "conformance", "server", "--url", url, "--scenario", "server-sse-polling"], tmp_path)
    assert "0 failed" in done.stdout, done.stdout[-3000:]


#: Arguments of each tool; SID stands for a sandbox.
ARGUMENTS = {
    "execute_code": {"code": "print(6*7)"},
    "manage_session": {"action": "list"},
    "read_output": {"execution_id": "exec_none"},  # no such execution, and the result says so
    "more_tools": {"query": "list_languages"},
    "create_sandbox": {},
    "list_sandboxes": {},
    "exec_command": {"sandbox_id": "SID", "command": "echo 42"},
    "run_code": {"sandbox_id": "SID", "code": "print(6*7)", "language": "python"},
    "upload_file": {"sandbox_id": "SID", "path": "u.txt", "content": "42"},
    "write_file": {"sandbox_id": "SID", "path": "w.txt", "content": "42"},
    "download_file": {"sandbox_id": "SID", "path": "w.txt"},
    "read_file": {"sandbox_id": "SID", "path": "w.txt"},
    "list_files": {"sandbox_id": "SID"},
    "run_python": {"sandbox_id": "SID", "code": "print(6*7)"},
    "run_shell": {"sandbox_id": "SID", "code": "echo 42"},
    "run_generic": {"sandbox_id": "SID", "code": "echo 42", "language": "bash"},
    "list_languages": {},
    "interrupt": {"sandbox_id": "SID"},  # nothing runs, and the result says so
    "terminate_sandbox": {"sandbox_id": "SID"},
}
REFUSED = {"interrupt": "StateConflict", "read_output": "ExecutionNotFound"}
#: Not in the list: the default profile is shorter, and the host lacks the languages.
DEFAULT = {"execute_code", "exec_command", "read_file", "write_file", "list_files", "manage_session", "read_output", "more_tools"}
COMPILED = {f"run_{name}": {"sandbox_id": "SID", "code": "x"} for name in ("javascript", "typescript", "go", "rust", "java", "cpp", "csharp")}


def forget_sessions(daemon):
    with daemon.client() as client:
        for session in client.get("/api/v1/sessions").json["items"]:
            assert client.request("DELETE", f"/api/v1/sessions/{session['id']}").status == 200


def inspect(where, method, tmp_path, arguments=(), **env):
    command = [BIN / "mcp-inspector", "--cli", *where, "--method", method, *arguments]
    done = run(command, tmp_path, **env)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(done.stdout)


def call(where, name, arguments, tmp_path, **env):
    words = ["--tool-name", name]
    for key, value in arguments.items():
        words += ["--tool-arg", f"{key}={value}"]
    return inspect(where, "tools/call", tmp_path, words, **env)


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_the_inspector_lists_tools_and_calls_every_one(daemon, url, tmp_path, transport):
    where = [url, "--transport", "http"] if transport == "http" else [BUILD / "millibox", "mcp"]
    env = {} if transport == "http" else {"MILLIBOX_SOCKET": daemon.socket}
    listed = {t["name"] for t in inspect(where, "tools/list", tmp_path, **env)["tools"]}
    assert listed == DEFAULT
    sid = f"insp-{transport}"
    with daemon.client() as client:
        made = client.post("/api/v1/sessions", {"id": sid, "mode": "persistent"})
        assert made.status == 201, made
    for name, arguments in {**COMPILED, **ARGUMENTS}.items():
        arguments = {k: v.replace("SID", sid) for k, v in arguments.items()}
        result = call(where, name, arguments, tmp_path, **env)
        text = result["content"][0]["text"]
        if name in COMPILED:
            assert result["isError"] and ("not supported" in text or "does not have" in text) or not result["isError"], (name, result)
        elif name in REFUSED:
            assert result["isError"] and REFUSED[name] in result["structuredContent"]["code"], result
        else:
            assert not result["isError"], (name, result)
            assert "42" in text or name in ("create_sandbox", "list_sandboxes", "manage_session", "more_tools", "upload_file", "write_file", "list_files", "list_languages", "terminate_sandbox"), (name, text)
    forget_sessions(daemon)


def configurations():
    """The client settings of docs/mcp.md."""
    return [json.loads(text) for text in re.findall(r"```json\n(.*?)```", (ROOT / "docs/mcp.md").read_text(), re.DOTALL)]


def test_the_configurations_in_the_docs_start_it(daemon, tmp_path):
    desktop, cursor, code = configurations()
    assert desktop["mcpServers"]["millibox"] == cursor["mcpServers"]["millibox"]
    assert code["servers"]["millibox"] == {"type": "stdio", **desktop["mcpServers"]["millibox"]}
    remote = cursor["mcpServers"]["millibox-remote"]
    assert code["servers"]["millibox-remote"] == {"type": "http", **remote}
    assert remote["url"].endswith("/mcp") and remote["headers"] == {"Authorization": "Bearer KEY"}
    own = {"PATH": f"{BUILD}:{os.environ['PATH']}", "MILLIBOX_SOCKET": daemon.socket}
    for name, servers in (("desktop.json", desktop), ("cursor.json", cursor)):
        (tmp_path / name).write_text(json.dumps(servers))
        done = run([BIN / "mcp-inspector", "--cli", "--config", tmp_path / name, "--server", "millibox", "--method", "tools/list"], tmp_path, **own)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        assert "execute_code" in {t["name"] for t in json.loads(done.stdout)["tools"]}


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_the_sdk_works_end_to_end(daemon, url, tmp_path, transport):
    words = ["http", url] if transport == "http" else ["stdio", BUILD / "millibox", "mcp"]
    done = run(["node", CLIENTS / "agent.mjs", *words], tmp_path, MILLIBOX_SOCKET=daemon.socket)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert json.loads(done.stdout)["tools"] == len(DEFAULT)
    forget_sessions(daemon)
