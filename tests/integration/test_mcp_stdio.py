# SPDX-License-Identifier: Apache-2.0
"""MCP on standard input and output: 'millibox mcp'."""

import contextlib
import json
import os
import signal
import subprocess

import pytest
from support import host, metrics
from support.daemon import BUILD
from support.identity import make_key, make_tenant
from support.mcp import LATEST, VERSIONS

pytestmark = pytest.mark.phases("system")


class Stdio:
    def __init__(self, *flags, **env):
        own = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **env}
        self.process = subprocess.Popen(
            [str(BUILD / "millibox"), "mcp", *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own,
        )  # fmt: skip
        self.last = 0
        self.heard = []

    def send(self, message):
        self.process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params=None, number=None):
        self.last += 1
        number = self.last if number is None else number
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        return number

    def read(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def answer(self, number):
        while True:
            message = self.read()
            if message.get("id") == number and "method" not in message:
                return message
            self.heard.append(message)

    def result(self, method, params=None):
        answer = self.answer(self.ask(method, params))
        assert "result" in answer, answer
        return answer["result"]

    def initialize(self, version=LATEST):
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        number = self.ask("initialize", params)
        # A client may send this before it reads the response.
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self.answer(number)["result"]

    def call(self, name, **arguments):
        return self.result("tools/call", {"name": name, "arguments": arguments})

    def finish(self):
        self.process.stdin.close()
        rest = [json.loads(line) for line in self.process.stdout]
        err = self.process.stderr.read()
        return self.process.wait(host.HANG_S), rest, err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


@pytest.fixture
def stdio(daemon):
    with Stdio("--socket", daemon.socket) as s:
        yield s


@pytest.mark.parametrize("version", VERSIONS)
def test_every_protocol_version(stdio, version):
    assert stdio.initialize(version)["protocolVersion"] == version
    assert stdio.call("execute_code", code="print(6*7)", language="python")["content"][0]["text"] == "42\n"
    status, rest, err = stdio.finish()
    assert status == 0 and not rest and not err


@pytest.mark.smoke
def test_requests_overtake_each_other(stdio):
    stdio.initialize()
    code = "import time\nprint('on', flush=True)\ntime.sleep(60)"
    slow = stdio.ask("tools/call", {"name": "execute_code", "arguments": {"code": code, "language": "python"}, "_meta": {"progressToken": 1}})
    while not stdio.heard or stdio.heard[-1]["method"] != "notifications/progress":
        stdio.heard.append(stdio.read())
    assert stdio.result("ping") == {}
    stdio.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}})
    assert stdio.call("execute_code", code="print(1)", language="python")["content"][0]["text"] == "1\n"
    status, rest, _ = stdio.finish()
    assert status == 0 and not [m for m in rest if m.get("id") == slow]


def test_more_requests_than_may_be_in_flight(stdio):
    """They are queued; a cancellation is not, and removes a request that was not sent yet."""
    stdio.initialize()
    code = "import time\nprint('on', flush=True)\ntime.sleep(60)"
    arguments = {"code": code, "language": "python", "timeout": 60}
    slow = [stdio.ask("tools/call", {"name": "execute_code", "arguments": arguments}) for _ in range(40)]
    last = stdio.ask("ping")
    for number in reversed(slow):
        stdio.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    assert stdio.answer(last)["result"] == {}
    status, rest, err = stdio.finish()
    assert status == 0 and not err, err
    assert not [m for m in stdio.heard + rest if m.get("id") in slow]


def test_errors_are_answered_on_the_same_connection(stdio):
    number = stdio.ask("tools/list")
    answer = stdio.answer(number)
    assert answer["error"]["code"] == -32600 and "initialized" in answer["error"]["message"]
    stdio.initialize()
    stdio.send("{garbage")
    assert stdio.answer(None)["error"]["code"] == -32700
    stdio.send("[]")
    assert stdio.answer(None)["error"]["code"] == -32600
    stdio.send("")
    assert stdio.answer(stdio.ask("no/such"))["error"]["code"] == -32601
    huge = stdio.ask("ping", {"x": "y" * (9 << 20)})
    assert stdio.answer(huge)["error"]["code"] < 0
    assert stdio.result("ping") == {}


def test_messages_of_the_daemon_arrive_unrequested(stdio):
    stdio.initialize()
    sid = stdio.call("create_sandbox")["structuredContent"]["sandbox_id"]
    assert stdio.result("resources/subscribe", {"uri": f"sandbox://{sid}/"}) == {}
    stdio.call("write_file", sandbox_id=sid, path="a", content="b")
    while not any(m["method"].endswith("/updated") for m in stdio.heard):
        stdio.heard.append(stdio.read())
    stdio.call("terminate_sandbox", sandbox_id=sid)


def test_requests_before_eof_are_answered(daemon):
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": LATEST}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"code": "print(42)", "language": "python"}}},
    ]
    done = subprocess.run(
        [str(BUILD / "millibox"), "mcp", "--socket", daemon.socket],
        input="\n".join(json.dumps(m) for m in lines), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    answers = {m["id"]: m for m in map(json.loads, done.stdout.splitlines()) if "id" in m}
    assert done.returncode == 0 and answers[2]["result"]["content"][0]["text"] == "42\n"


def test_the_mcp_session_ends_with_the_bridge(daemon, client):
    def sessions():
        return metrics.read(client).total("sandbox_mcp_sessions")

    before = sessions()
    with Stdio("--socket", daemon.socket) as s:
        s.initialize()
        assert sessions() == before + 1
        s.finish()
    host.wait_until(lambda: sessions() == before, 10, "the session to end")  # the bridge waits for that 2 s at most
    with Stdio("--socket", daemon.socket) as s:
        s.initialize()
        s.process.send_signal(signal.SIGTERM)
        s.process.wait(host.HANG_S)
    host.wait_until(lambda: sessions() == before, 10, "the session to end")


def test_several_bridges_and_misbehaving_clients(daemon, client):
    before = metrics.read(client).total("sandbox_mcp_sessions")
    with contextlib.ExitStack() as stack:
        every = [stack.enter_context(Stdio("--socket", daemon.socket)) for _ in range(12)]
        deaf, noisy, *good = every
        for s in every:
            s.initialize()
        # One requests more than a pipe holds and reads nothing, one sends garbage.
        for _ in range(20):
            deaf.ask("tools/list")
        for line in ("{", "[]", "\0", '{"jsonrpc":"2.0","id":{},"method":"ping"}', '{"jsonrpc":"2.0","id":' + "9" * 999 + ',"method":"ping"}') * 20:
            noisy.send(line)
        for i, s in enumerate(good):
            assert s.call("execute_code", code=f"print({i})", language="python")["structuredContent"]["output"] == f"{i}\n"
            assert len(s.result("tools/list")["tools"]) == 8
        codes = [noisy.read()["error"]["code"] for _ in range(100)]
        assert set(codes) <= {-32700, -32600}, codes
        assert noisy.result("ping") == {}
        # A late reader gets everything, in any order: several requests are in flight.
        came = set()
        while len(came) < 20:
            message = deaf.read()
            if "method" not in message:
                assert "result" in message and message["id"] not in came, message
                came.add(message["id"])
        assert came == set(range(2, 22))
        assert metrics.read(client).total("sandbox_mcp_sessions") == before + len(every)
        for s in every:
            assert s.finish()[0] == 0
    host.wait_until(lambda: metrics.read(client).total("sandbox_mcp_sessions") == before, 10, "the sessions to end")


def test_a_revoked_key_is_rejected(make_daemon):
    daemon = make_daemon(tcp=True).start()
    host_name, port = daemon.tcp_address()
    with daemon.client() as admin:
        make_tenant(admin, "one")
        key = make_key(admin, "one")
        with Stdio("--url", f"http://{host_name}:{port}", MILLIBOX_API_KEY=key) as s:
            s.initialize()
            assert s.result("ping") == {}
            ident = next(k["id"] for k in admin.get("/api/v1/keys").json["keys"] if k["tenant"] == "one")
            assert admin.request("DELETE", f"/api/v1/keys/{ident}").status == 200
            answer = s.answer(s.ask("ping"))
            assert "error" in answer, answer


@pytest.mark.parametrize("is_removed", [False, True], ids=["refused", "removed"])
def test_a_lost_daemon_is_reported(make_daemon, is_removed):
    """Its guard removes its socket, soon after its end."""
    daemon = make_daemon().start()
    with Stdio("--socket", daemon.socket) as s:
        s.initialize()
        daemon.process.kill()
        daemon.process.wait()
        if is_removed:
            host.wait_until(lambda: not os.path.exists(daemon.socket), 20, "the socket is removed")
        number = s.ask("ping")
        status, rest, _ = s.finish()
        assert status == 0 and [m["error"]["message"] for m in rest if m.get("id") == number] == ["No daemon answers. Nothing was run; try again later."]


def test_without_a_daemon_it_starts_its_own(tmp_path):
    env = {"XDG_RUNTIME_DIR": str(tmp_path), "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    # A daemon at the system's socket would be used.
    if os.path.exists("/run/millibox/millibox.sock"):
        pytest.skip("a system daemon is running")
    with Stdio(**env) as s:
        s.initialize()
        assert s.call("execute_code", code="echo hi")["content"][0]["text"] == "hi\n"
        status, rest, err = s.finish()
        assert status == 0 and not rest and "started one for this command" in err


def test_the_bridge_reconnects_when_the_daemon_returns(make_daemon):
    daemon = make_daemon().start()
    with Stdio("--socket", daemon.socket) as s:
        s.initialize()
        sid = s.call("manage_session", action="create")["structuredContent"]["session_id"]
        slow = s.ask("tools/call", {"name": "exec_command", "arguments": {"session_id": sid, "command": "echo on > on; sleep 300"}})
        while "on " not in s.call("list_files", session_id=sid)["content"][0]["text"]:
            pass
        daemon.process.kill()
        daemon.process.wait()
        # It was sent, and no daemon knows what became of it.
        assert "may have taken effect" in s.answer(slow)["error"]["message"]
        early = [s.ask("tools/call", {"name": "execute_code", "arguments": {"code": f"print({i})"}}) for i in range(20)]
        daemon.start()
        came = {}
        while len(came) < len(early):  # asked while there was no daemon; answered in any order
            message = s.read()
            if message.get("id") in early:
                came[message["id"]] = message["result"]["structuredContent"]["output"]
            else:
                s.heard.append(message)
        assert [came[number] for number in early] == [f"{i}\n" for i in range(20)]
        assert any(m.get("method") == "notifications/resources/list_changed" for m in s.heard)
        assert s.call("execute_code", code="print(6 * 7)")["structuredContent"]["output"] == "42\n"
        # Again, with nothing asked meanwhile.
        assert daemon.stop() == 0
        daemon.start()
        assert s.call("exec_command", command="echo 42")["structuredContent"]["output"] == "42\n"
        assert s.finish()[0] == 0
