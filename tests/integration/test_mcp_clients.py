# SPDX-License-Identifier: Apache-2.0
"""Third-party MCP clients: the official conformance suite, the Inspector, the TypeScript SDK, LangChain's adapter, Vercel's client."""

import json
import os
import re
import shutil
import subprocess

import pytest
from support.daemon import BUILD, ROOT, Daemon
from support.mcp_proxy import Proxy

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


def test_the_suites_scenario_of_polled_streams(daemon, tmp_path):
    """It calls a tool of the suite's own server, without which it checks nothing: a proxy puts one of ours in its place."""
    with Proxy(daemon.tcp_address()) as proxy:
        done = run([BIN / "conformance", "server", "--url", proxy.url, "--scenario", "server-sse-polling"], tmp_path)
        assert proxy.calls == 1
    assert "Passed: 3/3, 0 failed, 0 warnings" in done.stdout, done.stdout[-3000:] + done.stderr[-1000:]
    passed = {m[1] for m in re.finditer(r"\[([\w-]+) *\] \S*SUCCESS", done.stdout)}
    assert passed == {"server-sse-priming-event", "server-sse-retry-field", "server-sse-disconnect-resume"}, done.stdout


DEFAULT = {"execute_code", "exec_command", "read_file", "write_file", "list_files", "manage_session", "read_output", "more_tools"}


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


def test_the_inspector_holds_a_conversation(daemon, url, tmp_path):
    """As conversation.mjs. Each call is a client and a session of MCP of its own; Millibox's session stays."""
    where = [url, "--transport", "http"]
    assert {t["name"] for t in inspect(where, "tools/list", tmp_path)["tools"]} == DEFAULT

    def say(tool, **arguments):
        return call(where, tool, arguments, tmp_path)["content"][0]["text"]

    assert say("execute_code", code="print(6*7)") == "42\n"
    sid = re.search(r"sess_\w+", say("manage_session", action="create"))[0]
    assert "NameError" in say("execute_code", session_id=sid, code="sum(values)")
    assert "42" in say("execute_code", session_id=sid, code="values = [1, 41]; sum(values)")
    say("write_file", session_id=sid, path="main.py", content="for i in range(9000): print('line', i)")
    long = say("exec_command", session_id=sid, command="python3 main.py")
    ident, offset = re.search(r"exec_\d+_\w+", long)[0], re.search(r"left out at offset (\d+)", long)[1]
    assert "line 2000\n" in say("read_output", execution_id=ident, offset=offset)
    assert "run_python" in say("more_tools", query="packages")
    assert "42" in say("more_tools", call="run_python", arguments=json.dumps({"sandbox_id": sid, "code": "print(6*7)"}))
    forget_sessions(daemon)


def test_the_inspector_uses_stdio(daemon, tmp_path):
    where = [BUILD / "millibox", "mcp"]
    assert call(where, "exec_command", {"command": "echo 42"}, tmp_path, MILLIBOX_SOCKET=daemon.socket)["content"][0]["text"] == "42\n"


def test_vercels_client_holds_a_conversation(daemon, url, tmp_path):
    done = run(["node", CLIENTS / "vercel.mjs", url], tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert json.loads(done.stdout)["tools"] == len(DEFAULT)


@pytest.mark.skipif(not (CLIENTS / "venv/complete").exists(), reason="the adapter is not installed: tools/setup test")
def test_langchains_adapter_holds_a_conversation(daemon, url, tmp_path):
    done = run([CLIENTS / "venv/bin/python", CLIENTS / "langchain_conversation.py", url], tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert json.loads(done.stdout)["tools"] == len(DEFAULT)


def configurations():
    """The client settings of docs/mcp.md."""
    return [json.loads(text) for text in re.findall(r"```json\n(.*?)```", (ROOT / "docs/mcp.md").read_text(), re.DOTALL)]


def test_the_configurations_in_the_docs_start_it(daemon, tmp_path):
    desktop, option, variable, cursor, code = configurations()
    assert desktop["mcpServers"]["millibox"] == cursor["mcpServers"]["millibox"]
    assert code["servers"]["millibox"] == {"type": "stdio", **desktop["mcpServers"]["millibox"]}
    remote = cursor["mcpServers"]["millibox-remote"]
    assert code["servers"]["millibox-remote"] == {"type": "http", **remote}
    assert remote["url"].endswith("/mcp") and remote["headers"] == {"Authorization": "Bearer KEY"}
    own = {"PATH": f"{BUILD}:{os.environ['PATH']}", "MILLIBOX_SOCKET": daemon.socket}
    for name, servers in (("desktop.json", desktop), ("option.json", option), ("variable.json", variable), ("cursor.json", cursor)):
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
