# SPDX-License-Identifier: Apache-2.0
"""What a tool call costs beyond the same call over REST: one line in one live session, in turns."""

import contextlib
import json
import os
import socket
import subprocess

import raw
from measure import Failure, interleave, summary
from rows_session import Sessions
from support.daemon import BUILD
from support.websocket import WebSocket

CODE = "x += 1\nx"
HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
BOTH, ONE = "application/json, text/event-stream", "application/json"


class Counter:
    """Counts in the session: every answer must be the previous number plus one, over any transport."""

    def __init__(self, session_id):
        self.session_id = session_id
        self.value = 0

    def call(self):
        arguments = {"session_id": self.session_id, "code": CODE}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "execute_code", "arguments": arguments}}

    def check(self, body):
        self.value += 1
        # REST has the value, a tool's answer its text.
        if b'"result":%d,' % self.value not in body and b"[result] %d\\n" % self.value not in body:
            raise Failure(f"expected {self.value}: {body[:400]!r}")


class Streamed(raw.Connection):
    """A connection that also reads chunked answers, as event streams are."""

    def take(self):
        chunk = self.sock.recv(1 << 18)
        if not chunk:
            raise Failure(f"connection closed after {self.received[:200]!r}")
        self.received += chunk
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = self.received[:end].lower()
        if b"transfer-encoding: chunked" in head:
            return (int(head[9:12]), self.received[end + 4 :]) if self.received.endswith(b"\r\n0\r\n\r\n") else None
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        return (int(head[9:12]), self.received[end + 4 :]) if len(self.received) >= end + 4 + length else None


def rest(stack, daemon, counter):
    connection = stack.enter_context(contextlib.closing(raw.Connection(daemon.socket)))
    data = Sessions.line(counter.session_id, CODE)
    return lambda: counter.check(connection.exchange(data)[1])


def message(body, accept, session=None):
    """An MCP POST, as bytes."""
    data = json.dumps(body).encode()
    own = f"Mcp-Session-Id: {session}\r\nMcp-Protocol-Version: 2025-11-25\r\n" if session else ""
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: {accept}\r\n{own}Content-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def http(stack, daemon, counter, accept):
    connection = stack.enter_context(contextlib.closing(Streamed(daemon.socket)))
    status, body = connection.exchange(message(HELLO, accept))
    if status != 200:
        raise Failure(f"initialize: {status} {body[:300]!r}")
    session = next(line.split(b": ")[1].decode() for line in connection.received.split(b"\r\n") if line.lower().startswith(b"mcp-session-id"))
    connection.exchange(message(READY, accept, session))
    data = message(counter.call(), accept, session)
    return lambda: counter.check(connection.exchange(data)[1])


def websocket(stack, daemon, counter):
    ws = stack.enter_context(WebSocket(daemon.socket))
    ws.sock.settimeout(None)
    ws.initialize()
    data = WebSocket.frame(json.dumps(counter.call()))

    def once():
        ws.sock.sendall(data)
        while b'"id":1' not in (body := ws.receive()[1]):
            pass
        counter.check(body)

    return once


def stdio(stack, daemon, counter):
    """Through 'millibox mcp', one more process."""
    ours, theirs = socket.socketpair()
    bridge = subprocess.Popen([BUILD / "millibox", "mcp", "--socket", daemon.socket], stdin=theirs, stdout=theirs, env=dict(os.environ))
    theirs.close()
    stack.enter_context(ours)
    lines = stack.enter_context(ours.makefile("rb"))
    stack.callback(bridge.wait)
    stack.callback(ours.shutdown, socket.SHUT_WR)
    for body in (HELLO, READY):
        ours.sendall(json.dumps(body).encode() + b"\n")
    lines.readline()
    data = json.dumps(counter.call()).encode() + b"\n"

    def once():
        ours.sendall(data)
        while b'"id":1' not in (body := lines.readline()):
            if not body:
                raise Failure("the bridge has ended")
        counter.check(body)

    return once


def row_mcp(daemon, rounds=1000):
    sessions = Sessions(daemon)
    sessions.grow(1)
    counter = Counter(sessions.ids[0])
    with contextlib.ExitStack() as stack:
        contestants = {
            "rest": rest(stack, daemon, counter),
            "http": http(stack, daemon, counter, BOTH),
            "http, one answer": http(stack, daemon, counter, ONE),
            "websocket": websocket(stack, daemon, counter),
            "stdio": stdio(stack, daemon, counter),
        }
        samples = interleave(contestants, rounds, warm=50)
    sessions.end()
    found = {name: summary(s) for name, s in samples.items()}
    over = {name: round(s["p50_ms"] - found["rest"]["p50_ms"], 3) for name, s in found.items() if name != "rest"}
    return {"in_turns": found, "overhead_ms": over}
