# SPDX-License-Identifier: Apache-2.0
"""MCP over a WebSocket: the handshake, messages, close codes, and misbehaving clients."""

import contextlib
import json
import re
import threading

import pytest

from support import host, metrics
from support.daemon import Daemon
from support.identity import KeyClient, V1, make_key, make_tenant
from support.websocket import BINARY, CLOSE, PING, PONG, TEXT, Closed, Refused, WebSocket

pytestmark = pytest.mark.phases("system")


def address(daemon):
    return daemon.socket


@pytest.fixture
def ws(daemon):
    with WebSocket(address(daemon)) as socket:
        yield socket


def call(ws, tool, **arguments):
    return ws.ask("tools/call", {"name": tool, "arguments": arguments})["result"]


def open_sockets(client):
    return metrics.read(client).total("websocket_connections")


def wait_for_rest(client):
    """Sockets of earlier tests are gone, and so are their sessions."""
    host.wait_until(lambda: open_sockets(client) == 0, 20, "no socket is left")


def test_a_whole_conversation(ws):
    reply = ws.initialize()
    assert reply["protocolVersion"] == "2025-11-25" and reply["serverInfo"]["name"] == "millibox"
    assert ws.ask("ping")["result"] == {}
    names = {t["name"] for t in ws.ask("tools/list")["result"]["tools"]}
    assert "manage_session" in names
    made = call(ws, "create_sandbox", image="python:3.11")["structuredContent"]["sandbox_id"]
    reply = call(ws, "run_python", sandbox_id=made, code="print(6 * 7)")
    assert reply["structuredContent"]["stdout"] == "42\n" and not reply["isError"]
    reply = ws.ask("resources/read", {"uri": f"log://{made}"})["result"]
    assert "42" in reply["contents"][0]["text"]
    assert not call(ws, "terminate_sandbox", sandbox_id=made)["isError"]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_version(ws, version):
    assert ws.initialize(version)["protocolVersion"] == version
    tools = {t["name"]: t for t in ws.ask("tools/list")["result"]["tools"]}
    assert ("outputSchema" in tools["execute_code"]) == (version >= "2025-06-18")
    answer = call(ws, "execute_code", language="shell", code="echo 42")
    assert answer["content"][0]["text"] == "42\n" and ("structuredContent" in answer) == (version >= "2025-06-18")


def test_progress_arrives_during_a_call(ws):
    ws.initialize()
    answer = ws.ask("tools/call", {"name": "execute_code", "_meta": {"progressToken": "t"},
                                   "arguments": {"language": "shell", "code": "echo one; sleep 0.3; echo two"}})
    assert answer["result"]["structuredContent"]["output"] == "one\ntwo\n"
    assert any(m["method"] == "notifications/progress" and m["params"]["progressToken"] == "t" for m in ws.notifications), ws.notifications


def test_requests_overlap_and_are_cancelled(ws):
    ws.initialize()
    ws.send(json.dumps({"jsonrpc": "2.0", "id": "slow", "method": "tools/call",
                        "params": {"name": "execute_code", "arguments": {"language": "shell", "code": "sleep 300"}}}))
    assert ws.ask("ping")["result"] == {}
    ws.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}}))
    assert ws.ask("ping")["result"] == {} and ws.notifications == []


def test_bytes_sent_with_the_handshake_are_not_lost(daemon):
    first = b"".join(WebSocket.frame(json.dumps({"jsonrpc": "2.0", "id": i, "method": "ping"})) for i in range(60))
    with WebSocket(address(daemon), early=first) as ws:
        assert [ws.message() for _ in range(60)] == [{"jsonrpc": "2.0", "id": i, "result": {}} for i in range(60)]


def test_messages_in_pieces_and_large_ones(ws):
    ws.initialize()
    text = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "ping"})
    ws.send(text[:10], fin=False)
    ws.send("", opcode=PING)
    ws.send(text[10:20], opcode=0, fin=False)
    ws.send(text[20:], opcode=0)
    frames = [ws.receive(), ws.receive()]
    assert (PONG, b"") in frames and any(op == TEXT and json.loads(data)["id"] == 77 for op, data in frames)
    code = "print(len('" + "x" * 300000 + "'))"
    assert call(ws, "execute_code", language="python", code=code)["structuredContent"]["output"] == "300000\n"
    assert "of 348894 bytes left out" in call(ws, "execute_code", language="shell", code="seq 60000")["structuredContent"]["output"]


@pytest.mark.parametrize("bad, code", [
    ("nonsense", -32700),
    ("[]", -32600),
    ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    ('{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', -32600),
])
def test_invalid_messages(ws, bad, code):
    ws.send(bad)
    assert ws.message()["error"]["code"] == code
    assert ws.ask("ping")["result"] == {}  # it continues


@pytest.mark.parametrize("bad", [
    {"Upgrade": None}, {"Upgrade": "h2c"}, {"Connection": "close"}, {"Sec_WebSocket_Version": "8"}, {"Sec_WebSocket_Version": None},
    {"Sec_WebSocket_Key": None}, {"Sec_WebSocket_Key": "short"}, {"Sec_WebSocket_Key": "!" * 24},
])
def test_invalid_handshakes(daemon, client, bad):
    wait_for_rest(client)
    with pytest.raises(Refused) as refused:
        WebSocket(address(daemon), **bad)
    assert refused.value.status == 426 and refused.value.headers["sec-websocket-version"] == "13"
    assert refused.value.json["field"] in ("Upgrade", "Sec-WebSocket-Version", "Sec-WebSocket-Key")
    assert open_sockets(client) == 0


def test_a_subprotocol_is_chosen(daemon):
    with WebSocket(address(daemon), Sec_WebSocket_Protocol="other, mcp") as ws:
        assert ws.headers["sec-websocket-protocol"] == "mcp"
    with WebSocket(address(daemon), Sec_WebSocket_Protocol="other") as ws:
        assert "sec-websocket-protocol" not in ws.headers


def closing(ws):
    with pytest.raises(Closed) as closed:
        while True:
            ws.receive()
    return closed.value.code


def test_close_codes(daemon):
    def after(*frames):
        with WebSocket(address(daemon)) as ws:
            for data in frames:
                ws.sock.sendall(data)
            return closing(ws)

    frame = WebSocket.frame
    assert after(frame(b"\x00", opcode=BINARY)) == 1003
    assert after(frame(b"\xff\xfe")) == 1007
    assert after(frame("{}", masked=False)) == 1002
    assert after(frame("{}", opcode=3)) == 1002
    assert after(frame(b"\x03\xe8", opcode=CLOSE)) == 1000
    assert after(frame("x", opcode=PING, fin=False)) is None  # an empty close frame
    huge = frame(b" " * (9 << 20))
    assert after(huge) == 1009  # whatever part was not read


def test_closing_ends_the_session_and_its_runs(daemon, client):
    wait_for_rest(client)
    sockets, sessions = 0, metrics.read(client).total("sandbox_mcp_sessions")
    ws = WebSocket(address(daemon))
    ws.initialize()
    assert open_sockets(client) == sockets + 1 and metrics.read(client).total("sandbox_mcp_sessions") == sessions + 1
    made = call(ws, "create_sandbox")["structuredContent"]["sandbox_id"]
    ws.send(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call",
                        "params": {"name": "exec_command", "arguments": {"sandbox_id": made, "command": "sleep 300"}}}))
    status = lambda: client.get(f"{V1}/sessions/{made}/status")
    host.wait_until(lambda: status().status == 200 and status().json["status"] == "running", 20, "it runs")
    ws.close()
    host.wait_until(lambda: status().json["status"] == "cancelled", 20, "it was ended")
    host.wait_until(lambda: open_sockets(client) == sockets, 20, "the socket is gone")
    assert metrics.read(client).total("sandbox_mcp_sessions") == sessions
    assert client.request("DELETE", f"{V1}/sessions/{made}").status == 200


def test_a_client_that_does_not_read_is_cut_off(daemon, client):
    wait_for_rest(client)
    with WebSocket(address(daemon)) as ws, WebSocket(address(daemon)) as other:
        ws.initialize()
        other.initialize()
        # The daemon stops reading when much is unsent: only long answers to short requests exceed the limit.
        printed = call(other, "execute_code", language="python", code="print('x' * 900000)")["structuredContent"]["output"]
        uri = f"""execution://{re.search('execution_id "([a-z0-9_]+)"', printed)[1]}/stdout"""
        ask = WebSocket.frame(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}})) * 50
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            for _ in range(200):
                ws.sock.sendall(ask)
                assert other.ask("ping")["result"] == {}  # a client that sends without pause delays no other
        host.wait_until(lambda: open_sockets(client) == 1, 30, "it was cut off")
        assert other.ask("ping")["result"] == {}


class Garbage(threading.Thread):
    """Connects again and again, and sends garbage until it is stopped."""

    FRAMES = [
        WebSocket.frame(b"\xff\xfe"), WebSocket.frame("{}", masked=False), WebSocket.frame("{}", opcode=3), WebSocket.frame(b"\x00" * 999, opcode=BINARY),
        WebSocket.frame("[" * 5000), WebSocket.frame("[]"), WebSocket.frame('{"jsonrpc":"2.0","id":' + "9" * 5000 + ',"method":"x"}'),
        WebSocket.frame('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'), b"\x81\xff" + b"\xff" * 8, bytes(range(256)) * 8,
    ]  # fmt: skip

    def __init__(self, where):
        super().__init__()
        self.where, self.done, self.rounds, self.failure = where, threading.Event(), 0, None

    def run(self):
        try:
            while not self.done.is_set():
                for data in self.FRAMES:
                    with WebSocket(self.where) as ws, contextlib.suppress(OSError, Closed):
                        ws.sock.sendall(data)
                        ws.receive()
                self.rounds += 1
        except Exception as e:  # noqa: BLE001 - reported by the test, not lost in a thread
            self.failure = repr(e)

    def stop(self):
        self.done.set()
        self.join()
        assert self.failure is None and self.rounds > 0, self.failure


def test_two_hundred_at_once_beside_misbehaving_clients(make_daemon):
    d = make_daemon(config="http: {max_connections: 1024, max_connections_per_peer: 1024}\n").start()
    with contextlib.ExitStack() as stack, d.client() as client:
        deaf = stack.enter_context(WebSocket(d.socket))  # requests much and reads nothing
        deaf.initialize()
        deaf.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):  # the last two: already cut off
            deaf.sock.sendall(WebSocket.frame(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})) * 8000)
        garbage = Garbage(d.socket)
        garbage.start()
        stack.callback(garbage.done.set)
        every = [stack.enter_context(WebSocket(d.socket)) for _ in range(200)]
        for ws in every:
            assert ws.initialize()["protocolVersion"] == "2025-11-25"
        for round in range(3):
            for ws in every:
                ws.send(json.dumps({"jsonrpc": "2.0", "id": round, "method": "tools/list"}))
            for ws in every:
                answer = ws.message()
                assert answer["id"] == round and len(answer["result"]["tools"]) == 8
        # All of them are notified of what one of them does, and each runs something of its own.
        made = call(every[0], "create_sandbox")["structuredContent"]["sandbox_id"]
        for ws in every[1:]:
            assert ws.message()["method"] == "notifications/resources/list_changed"
        for i, ws in enumerate(every[1:21]):
            ws.send(json.dumps({"jsonrpc": "2.0", "id": "run", "method": "tools/call", "params": {
                "name": "execute_code", "arguments": {"language": "shell", "code": f"echo {i}"}}}))
        for i, ws in enumerate(every[1:21]):
            while (answer := ws.message()).get("id") != "run":
                pass
            assert answer["result"]["structuredContent"]["output"] == f"{i}\n"
        call(every[0], "terminate_sandbox", sandbox_id=made)
        garbage.stop()
        assert open_sockets(client) >= 200
    with d.client() as client:
        host.wait_until(lambda: open_sockets(client) == 0, 20, "all are gone")
        assert metrics.read(client).total("sandbox_mcp_sessions") == 0


def test_the_daemon_announces_its_shutdown():
    d = Daemon().start()
    ws = WebSocket(d.socket)
    ws.initialize()
    idle = WebSocket(d.socket)
    d.process.terminate()
    assert closing(ws) == 1001 and closing(idle) == 1001
    ws.close()
    idle.close()
    assert d.process.wait(20 * host.PATIENCE) == 0, d.log()
    assert d.stop() == 0
    d.remove()


def test_it_can_be_disabled():
    d = Daemon(config="mcp: {enabled: false}\n").start()
    with pytest.raises(Refused) as refused:
        WebSocket(d.socket)
    assert refused.value.status == 404
    assert d.stop() == 0, d.log()
    d.remove()


@pytest.fixture
def keyed():
    d = Daemon(tcp=True).start()
    with d.client() as admin:
        make_tenant(admin, "alice")
        yield d, admin
    assert d.stop() == 0, d.log()
    d.remove()


def test_keys_and_tenants(keyed):
    d, admin = keyed
    key = make_key(admin, "alice")
    where = d.tcp_address()
    for headers in ({}, {"Authorization": "Bearer mb_wrong"}):
        with pytest.raises(Refused) as refused:
            WebSocket(where, headers={"Host": "127.0.0.1", **headers})
        assert refused.value.status == 401
    with pytest.raises(Refused) as refused:
        WebSocket(where, headers={"Host": "127.0.0.1", "Origin": "http://evil.example", "X-API-Key": key})
    assert refused.value.status == 403
    with WebSocket(where, headers={"Host": "127.0.0.1", "X-API-Key": key}) as ws:
        ws.initialize()
        made = call(ws, "create_sandbox")["structuredContent"]["sandbox_id"]
        assert admin.get(f"{V1}/sessions/{made}").status == 404  # of another tenant
        with contextlib.closing(KeyClient(where, key)) as alice:
            assert alice.get(f"{V1}/sessions/{made}").status == 200
        ident = next(k["id"] for k in admin.get(f"{V1}/keys").json["keys"] if k["tenant"] == "alice")
        sessions = metrics.read(admin).total("sandbox_mcp_sessions")
        assert admin.request("DELETE", f"{V1}/keys/{ident}").status in (200, 204)
        assert metrics.read(admin).total("sandbox_mcp_sessions") == sessions - 1  # at once
        assert closing(ws) == 1008  # and without a request of the client


def test_a_key_that_expires_closes_it(keyed):
    d, admin = keyed
    made = admin.post(f"{V1}/keys", {"tenant": "alice", "expires_in": 6})  # time enough to connect
    assert made.status == 201, made
    with WebSocket(d.tcp_address(), headers={"Host": "127.0.0.1", "X-API-Key": made.json["key"]}) as ws:
        ws.initialize()
        assert closing(ws) == 1008


def test_scopes_are_enforced(keyed):
    d, admin = keyed
    key = make_key(admin, "alice", scopes=["read"])
    with WebSocket(d.tcp_address(), headers={"Host": "127.0.0.1", "Authorization": f"Bearer {key}"}) as ws:
        ws.initialize()
        reply = ws.ask("tools/call", {"name": "create_sandbox", "arguments": {}})
        assert reply["result"]["isError"] and "scope sessions" in reply["result"]["content"][0]["text"]
        assert call(ws, "list_sandboxes")["structuredContent"]["total_count"] == 0


def test_messages_count_for_the_rate(keyed):
    d, admin = keyed
    make_tenant(admin, "slow", quotas={"requests_per_second": 2, "burst": 5})
    key = make_key(admin, "slow")
    with WebSocket(d.tcp_address(), headers={"Host": "127.0.0.1", "X-API-Key": key}) as ws:
        ws.initialize()
        answers = [ws.ask("ping") for _ in range(50)]
        assert any(a.get("error", {}).get("data", {}).get("error_code") == "Sandbox.QuotaExceeded" for a in answers), answers[-1]


