# SPDX-License-Identifier: Apache-2.0
"""Connections of the host to ports inside: bytes, windows, ends, and hosts that break the rules."""

import errno
import os

import pytest

from harness import Agent, frame, text, u8, u16, u32
from test_agent import AGENT, IDS, can_make_namespaces

pytestmark = pytest.mark.skipif(not can_make_namespaces(), reason="no user namespaces here")

WINDOW, EXTRA = 128 * 1024, 16
SERVER = """
import socket, threading
listener = socket.create_server((%(host)r, 8000), family=socket.AF_INET6 if ":" in %(host)r else socket.AF_INET)
print("up", flush=True)
while True:
    connection, _ = listener.accept()
    %(serve)s
"""
ECHO = """
    def echo(c):
        while data := c.recv(65536): c.sendall(data)
        c.close()
    threading.Thread(target=echo, args=(connection,)).start()"""


@pytest.fixture
def agent():
    made = Agent(AGENT, IDS)
    made.expect("HELLO")
    made.send(made.setup())
    yield made
    made.close()


def serve(agent, code=ECHO.strip(), host="127.0.0.1"):
    agent.send(agent.exec(["/usr/bin/python3", "-I", "-c", SERVER % {"host": host, "serve": code}]))
    agent.expect("STARTED")
    assert agent.expect("OUTPUT")["data"] == b"up\n"


def open_port(agent, ident=1, port=8000):
    agent.send(frame("PORT_OPEN", u16(port), ident))
    agent.expect("PORT_OPENED")


def send(data, ident=1):
    return frame("PORT_SEND", text(data), ident)


def bytes_of(agent, count):
    found = b""
    while len(found) < count:
        name, _, fields = agent.receive()
        if name != "PORT_ROOM":
            assert name == "PORT_BYTES", (name, fields)
            found += fields["data"]
    return found


def test_bytes_and_both_ends(agent):
    serve(agent)
    open_port(agent)
    agent.send(send(b"abc"), frame("PORT_FINISH", u8(0), 1))
    assert bytes_of(agent, 3) == b"abc"
    agent.expect("PORT_FINISHED")
    assert agent.expect("PORT_CLOSED")["sys"] == 0
    # It is over: what crossed its end is ignored.
    agent.send(send(b"late"), frame("PORT_GRANT", u32(5), 1), frame("PORT_RESET", u8(0), 1))
    open_port(agent, 2)


def test_bytes_may_be_sent_before_the_answer(agent):
    serve(agent)
    agent.send(frame("PORT_OPEN", u16(8000), 1), send(b"early"), frame("PORT_FINISH", u8(0), 1))
    agent.expect("PORT_OPENED")
    assert bytes_of(agent, 5) == b"early"


def test_ipv6_is_tried(agent):
    serve(agent, host="::1")
    open_port(agent)


def test_nothing_listens(agent):
    agent.send(frame("PORT_OPEN", u16(8000), 1))
    assert agent.expect("PORT_CLOSED")["sys"] == errno.ECONNREFUSED


def test_a_connection_never_meets_itself(agent):
    """Without a listener, a port of the ephemeral range must be refused, whichever port the kernel chooses."""
    for ident in range(1, 3001):
        agent.send(frame("PORT_OPEN", u16(40000 + ident % 3), ident))
        assert agent.expect("PORT_CLOSED")["sys"] == errno.ECONNREFUSED


def test_the_agent_stops_at_the_grant(agent):
    serve(agent, "connection.sendall(bytes(1 << 20))")
    open_port(agent)
    total = 0
    while total < WINDOW - EXTRA:
        name, _, fields = agent.receive()
        assert name == "PORT_BYTES"
        total += len(fields["data"]) + EXTRA
    assert total <= WINDOW
    # Nothing more, until it is granted: the next message is another's.
    agent.send(frame("PORT_OPEN", u16(1), 2))
    agent.expect("PORT_CLOSED")
    agent.send(frame("PORT_GRANT", u32(1000), 1))
    assert len(agent.expect("PORT_BYTES")["data"]) <= 1000 + EXTRA


def test_a_reset_is_a_reset(agent):
    serve(agent, """
    try:
        print(connection.recv(10), connection.recv(10), flush=True)
    except ConnectionResetError:
        print("reset", flush=True)""".strip())
    open_port(agent)
    agent.send(send(b"x"), frame("PORT_RESET", u8(0), 1))
    assert agent.expect("OUTPUT")["data"] == b"reset\n"


def test_a_program_that_does_not_read_holds_one_window(agent):
    serve(agent, "threading.Event().wait(60)")
    open_port(agent)
    room = WINDOW
    for probe in range(1000, 1200):
        piece = min(room - EXTRA, 60000)
        if piece < 1000:
            break
        agent.send(send(bytes(piece)))
        room -= piece + EXTRA
        # Its answer comes after what the agent has to say about the bytes.
        agent.send(frame("PORT_OPEN", u16(1), probe))
        while (got := agent.receive())[0] != "PORT_CLOSED":
            assert got[0] == "PORT_ROOM", got
            room += got[2]["bytes"]
    else:
        raise AssertionError("the agent took everything")


def test_the_list_is_the_kernels(agent):
    serve(agent)
    agent.send(frame("PORT_LIST", u8(0), 7))
    assert agent.expect("PORT_FOUND") == {"port": 8000, "bound": 1}
    assert agent.expect("PORT_LISTED") == {"truncated": 0}


@pytest.mark.parametrize(
    "frames",
    [
        [frame("PORT_OPEN", u16(0), 2)],
        [frame("PORT_OPEN", u16(1), 0)],
        [frame("PORT_OPEN", u16(8000), 1)],
        [frame("PORT_OPEN", u32(8000), 2)],
        [send(b"")],
        [send(bytes(128 * 1024 - 4))],
        [frame("PORT_FINISH", u8(0), 1), send(b"x")],
        [frame("PORT_FINISH", u8(0), 1), frame("PORT_FINISH", u8(0), 1)],
        [frame("PORT_GRANT", u32(1), 1)],
        [frame("PORT_GRANT", u32(WINDOW + 1), 5)],
        [frame("PORT_OPENED", u8(0), 1)],
        [frame("PORT_LIST", u8(0), 0)],
    ],
    ids=range(12),
)
def test_violations_end_the_agent(agent, frames):
    serve(agent, "threading.Event().wait(60)")
    open_port(agent)
    agent.send(*frames)
    while (got := agent.receive()) is not None:
        assert got[0] in ("LOG", "PORT_ROOM"), got
    assert agent.wait() == 1


def test_connections_end_with_their_stream():
    agent = Agent(AGENT, IDS, kept=True)
    agent.expect("HELLO")
    agent.send(agent.setup(), frame("LABEL", text("a"), 1))
    serve(agent, """
    try:
        connection.recv(1)
        connection.recv(1)
    except ConnectionResetError:
        print("reset", flush=True)""".strip())
    open_port(agent)
    agent.send(send(b"x"))
    agent.reattach()
    name, output = None, b""
    while b"reset" not in output:
        name, _, fields = agent.receive()
        assert name in ("STARTED", "OUTPUT"), name
        output += fields.get("data", b"")
    open_port(agent, 2)
    agent.close()


def test_many_connections(agent):
    serve(agent)
    limit = min(64, os.sysconf("SC_OPEN_MAX"))
    for ident in range(1, limit + 1):
        open_port(agent, ident)
    agent.send(frame("PORT_OPEN", u16(8000), 100))
    assert agent.expect("PORT_CLOSED")["sys"] == errno.EMFILE
    agent.send(*[send(f"{ident:04}".encode(), ident) for ident in range(1, limit + 1)])
    found = {}
    while len(found) < limit:
        name, ident, fields = agent.receive()
        assert name == "PORT_BYTES"
        found[ident] = fields["data"]
    assert all(found[ident] == f"{ident:04}".encode() for ident in found)
