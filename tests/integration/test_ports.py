# SPDX-License-Identifier: Apache-2.0
"""Connections to ports of a session: GET /api/v1/sessions/{id}/ports/{port}."""

import json
import os
import threading

import pytest

from support import host
from support.daemon import Daemon
from support.ports import Port, serve
from support.sessions import Session
from support.websocket import TEXT, Refused

pytestmark = pytest.mark.phases("system")


@pytest.fixture
def session(py):
    return py


def connect(daemon, session, port, **kw):
    return Port(daemon.socket, session.id, port, **kw)


def refusal(daemon, session, port, **kw):
    with pytest.raises(Refused) as caught:
        connect(daemon, session, port, **kw)
    return caught.value


def ports(daemon, session):
    return daemon.client().get(f"/api/v1/sessions/{session.id}/ports").json


def test_bytes_go_both_ways_and_both_ends_end(daemon, session):
    serve(session, 8000)
    with connect(daemon, session, 8000) as c:
        c.write(b"hello")
        assert c.read(5) == b"hello"
        c.write(b"\0\xff")
        c.finish()
        assert c.read_all() == b"\0\xff"
        assert c.closed() == 1000


def test_the_program_may_end_first(daemon, session):
    half = """
def half(connection):
    connection.sendall(b"bye")
    connection.shutdown(socket.SHUT_WR)
    globals()["heard"] = b"".join(iter(lambda: connection.recv(1000), b""))
    connection.close()
"""
    serve(session, 8000, "half", half)
    with connect(daemon, session, 8000) as c:
        assert c.read_all() == b"bye"
        c.write(b"still ")
        c.write(b"heard")
        c.finish()
        assert c.closed() == 1000
    host.wait_until(lambda: session.run("heard.decode()")["result"] == "still heard", 10)


def test_ten_megabytes_both_ways(daemon, session):
    serve(session, 8000)
    data = os.urandom(10 << 20)
    with connect(daemon, session, 8000) as c:
        writer = threading.Thread(target=lambda: (c.write(data), c.finish()))
        writer.start()
        assert c.read_all() == data
        writer.join()
        assert c.closed() == 1000


def test_a_program_that_does_not_read_stops_only_its_client(daemon, session):
    serve(session, 8000, "stuck", "stop = threading.Event()\ndef stuck(c):\n    stop.wait()\n    c.close()")
    serve(session, 8001)
    with connect(daemon, session, 8000) as slow, connect(daemon, session, 8001) as fast:
        slow.sock.settimeout(1)
        with pytest.raises(TimeoutError):
            slow.write(bytes(64 << 20))
        fast.write(b"x")
        assert fast.read(1) == b"x"
        assert session.run("1 + 1")["status"] == "success"


def test_a_client_that_does_not_read_stops_only_its_program(daemon, session):
    flood = "sent = [0]\ndef flood(c):\n    while True:\n        sent[0] += c.send(bytes(65536))"
    serve(session, 8000, "flood", flood)
    with connect(daemon, session, 8000) as slow:
        assert slow.read(1000) == bytes(1000)
        assert session.run("1 + 1")["status"] == "success"
        count = host.wait_until(lambda: is_steady(session), 20)
        assert count < 16 << 20


def is_steady(session):
    """How much was sent, once that no longer grows."""
    first = session.run("sent[0]")["result"]
    return first if first == session.run("import time; time.sleep(0.2); sent[0]")["result"] else None


def test_fifty_connections_at_a_time(daemon, session):
    serve(session, 8000)
    clients = [connect(daemon, session, 8000) for _ in range(50)]
    for i, c in enumerate(clients):
        c.write(f"{i}:".encode() * 1000)
    for i, c in enumerate(clients):
        expected = f"{i}:".encode() * 1000
        assert c.read(len(expected)) == expected
        c.close()


def test_too_many_connections_are_refused(daemon, session):
    serve(session, 8000)
    clients = [connect(daemon, session, 8000) for _ in range(60)]
    refused = refusal(daemon, session, 8000)
    assert refused.status == 429 and "60 connections" in refused.json["error_detail"]
    for c in clients:
        c.finish()
        assert c.closed() == 1000
        c.close()
    connect(daemon, session, 8000).close()


def test_ipv6_and_any_address(daemon, session):
    for port, address in ((8001, "::1"), (8002, "0.0.0.0"), (8003, "::")):
        serve(session, port, host=address)
        with connect(daemon, session, port) as c:
            c.write(b"x")
            assert c.read(1) == b"x"
    assert ports(daemon, session)["ports"] == [
        {"port": 8001, "address": "loopback", "reachable": True},
        {"port": 8002, "address": "any", "reachable": True},
        {"port": 8003, "address": "any", "reachable": True},
    ]


def test_the_list_follows_the_programs(daemon, session):
    assert ports(daemon, session) == {"session_id": session.id, "ports": [], "truncated": False}
    serve(session, 8000)
    serve(session, 8100, host="127.0.0.9")
    assert ports(daemon, session)["ports"] == [
        {"port": 8000, "address": "loopback", "reachable": True},
        {"port": 8100, "address": "other", "reachable": False},
    ]
    session.run("[x.close() for x in listeners]")
    assert refusal(daemon, session, 8100).status == 404


def test_nothing_listens(daemon, session):
    refused = refusal(daemon, session, 8000)
    assert refused.status == 404 and refused.json["error_code"] == "Sandbox.NotFound"
    assert "port 8000: nothing listens" in refused.json["error_detail"]


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http", "80x", "8000%20", "99999999999999999999"])
def test_bad_ports_are_named(daemon, session, port):
    refused = refusal(daemon, session, port)
    assert refused.status == 400 and "is not a port: 1 to 65535" in refused.json["error_detail"]


def test_a_plain_request_is_told_to_upgrade(daemon, session):
    answer = daemon.client().get(f"/api/v1/sessions/{session.id}/ports/8000")
    assert answer.status == 426 and answer.headers["Upgrade"] == "websocket"


def test_sessions_that_have_no_ports(daemon, session):
    client = session.client
    ephemeral = Session(client, language="python", mode="ephemeral")
    refused = refusal(daemon, ephemeral, 8000)
    assert refused.status == 409 and "ephemeral" in refused.json["error_detail"]
    assert client.get(f"/api/v1/sessions/{ephemeral.id}/ports").status == 409
    ephemeral.delete()
    session.act("terminate")
    assert refusal(daemon, session, 8000).status == 409
    with pytest.raises(Refused) as caught:
        Port(daemon.socket, "nobody", 8000)
    assert caught.value.status == 404 and caught.value.json["error_code"] == "Sandbox.SessionNotFound"


def test_a_pause_stops_the_bytes(daemon, session):
    serve(session, 8000)
    with connect(daemon, session, 8000) as c:
        session.act("pause")
        c.write(b"x")
        refused = refusal(daemon, session, 8000)
        assert refused.status == 409 and "paused" in refused.json["error_detail"]
        session.act("resume")
        assert c.read(1) == b"x"


def test_a_session_that_ends_ends_its_connections(daemon, session):
    serve(session, 8000)
    with connect(daemon, session, 8000) as c:
        session.act("terminate")
        assert c.closed() == 1001


def test_a_reset_by_the_program_is_reported(daemon, session):
    reset = "def reset(c):\n    c.recv(1)\n    c.close()"
    serve(session, 8000, "reset", reset)
    with connect(daemon, session, 8000) as c:
        c.write(b"two unread bytes reset it")
        assert c.closed() == 1011


def test_a_lost_client_resets_and_a_closed_one_does_not(daemon, session):
    watch = """
seen = []
def watch(c):
    try:
        seen.append(b"".join(iter(lambda: c.recv(1000), b"")))
    except OSError as error:
        seen.append(type(error).__name__)
"""
    serve(session, 8000, "watch", watch)
    with connect(daemon, session, 8000) as c:
        c.write(b"lost")
    host.wait_until(lambda: session.run("repr(seen)")["result"] == repr(["ConnectionResetError"]), 10)
    with connect(daemon, session, 8000) as c:
        c.write(b"whole")
        c.send(b"\x03\xe8", opcode=8)
        assert c.closed() == 1000
    host.wait_until(lambda: "b'whole'" in session.run("repr(seen)")["result"], 10)


def test_violations_close_it(daemon, session):
    serve(session, 8000)
    with connect(daemon, session, 8000) as c:
        c.send("text", opcode=TEXT)
        assert c.closed() == 1003
    with connect(daemon, session, 8000) as c:
        c.finish()
        c.write(b"after the end")
        assert c.closed() in (1008, 1000)
    with connect(daemon, session, 8000) as c:
        c.write(bytes(300000), piece=300000)
        assert c.closed() == 1009


def test_messages_count_as_requests(make_daemon):
    """A client over its tenant's quota waits; nothing that it sent is lost."""
    daemon = make_daemon().start()
    with daemon.client() as client:
        session = Session(client, mode="persistent")
        serve(session, 8000)
        with connect(daemon, session, 8000) as c:
            quotas = {"quotas": {"requests_per_second": 5, "burst": 10}}
            assert client.request("PATCH", "/api/v1/tenants/default", quotas).status == 200
            for i in range(30):
                c.write(b"%02d" % i)
            assert c.read(60) == b"".join(b"%02d" % i for i in range(30))
            host.wait_until(lambda: client.get(session.path).status == 429, 10, "they have used the quota")
            c.finish()
            assert c.closed() == 1000


def test_the_end_of_a_client_over_its_quota_is_passed_on_once(make_daemon):
    """The daemon looks at the connection again when the quota allows it, while the program has not closed its side."""
    daemon = make_daemon().start()
    with daemon.client() as client:
        session = Session(client, mode="persistent")
        serve(session, 8000, "keep", before="kept, ended = [], []\ndef keep(connection):\n    kept.append(connection)\n"
                                            "    while connection.recv(65536): pass\n    ended.append(1)")
        with connect(daemon, session, 8000) as c:
            quotas = {"quotas": {"requests_per_second": 5, "burst": 10}}
            assert client.request("PATCH", "/api/v1/tenants/default", quotas).status == 200
            for _ in range(20):
                c.write(b"x")
            c.finish()
            # Longer than the messages cost.
            host.wait_until(lambda: client.get(session.path).status == 429, 10, "they have used the quota")
            host.wait_until(lambda: client.get(session.path).status == 200, 20, "they are paid for")
            plenty = {"quotas": {"requests_per_second": 0}}
            host.wait_until(lambda: client.request("PATCH", "/api/v1/tenants/default", plenty).status == 200, 20, "no limit")
            host.wait_until(lambda: session.run("len(ended)").get("result") == 1, 20, "the program sees the end")
            assert session.run("kept.pop().close()")["status"] == "success"
            assert c.closed() == 1000
        assert daemon.process.poll() is None, daemon.log()


def test_connections_are_counted_and_logged(daemon, session):
    serve(session, 8000)
    with connect(daemon, session, 8000) as c:
        c.write(b"xyz")
        assert c.read(3) == b"xyz"
        text = daemon.client().get("/metrics").body.decode()
        assert "sandbox_port_connections 1" in text
        c.finish()
        assert c.closed() == 1000
    refusal(daemon, session, 8009)
    text = daemon.client().get("/metrics").body.decode()
    assert "sandbox_port_connections 0" in text  # counted out before the close was sent
    assert 'sandbox_port_connections_total{result="ok"}' in text
    assert 'sandbox_port_bytes_total{direction="in"}' in text
    records = host.wait_until(lambda: found(daemon, session.id, 2), 10)
    assert [(r["result"], r["detail"]) for r in records] == [("ok", {"port": 8000}), ("Sandbox.NotFound", {"port": 8009})]


def found(daemon, session_id, count):
    path = daemon.client().get("/api/v1/audit").json["path"]
    with open(path) as f:
        records = [json.loads(line) for line in f.read().split("\n")[:-1]]  # whole lines
    records = [r for r in records if r["action"] == "session.connect" and r["object"] == session_id]
    return records if len(records) >= count else None


@pytest.fixture
def mortal():
    """A daemon that may be killed; nothing of it is left afterwards."""
    made = Daemon(config="sessions: {survive: 30s}\n")
    made.start()
    yield made
    if made.process.poll() is None:
        made.stop()
    host.wait_until(lambda: made.engine_pid is None, 45, "the engine has ended")
    host.wait_until(lambda: not list((made.home / "run").iterdir()), 10, "the guard has removed the names")
    made.remove()


def test_a_killed_daemon_ends_connections_and_the_port_stays(mortal):
    session = Session(mortal.client(), mode="persistent", language="python")
    serve(session, 8000)
    with connect(mortal, session, 8000) as c:
        c.write(b"x")
        assert c.read(1) == b"x"
        mortal.kill()
        assert c.closed() is None
    mortal.start()
    session.client = mortal.client()
    # A run waits until the box has described itself; a connection is refused until then.
    assert session.run("1")["status"] == "success"
    with connect(mortal, session, 8000) as c:
        c.write(b"y")
        assert c.read(1) == b"y"
        mortal.process.terminate()
        assert c.closed() == 1001
    mortal.process.wait(20 * host.PATIENCE)
    mortal.start()
    mortal.client().request("DELETE", session.path)
