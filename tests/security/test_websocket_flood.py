# SPDX-License-Identifier: Apache-2.0
"""A client floods a WebSocket and never reads: others are served, and memory does not grow."""

import base64
import json
import socket
import struct

import pytest

from support import host
from support.daemon import is_sanitized

pytestmark = [pytest.mark.phases("system"), pytest.mark.alone]

PING, PONG, TEXT = 9, 10, 1
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
FLOOD = 24 << 20


def frame(opcode, payload):
    """Masked with zeros, which is a valid mask."""
    return bytes([0x80 | opcode, 0x80 | len(payload)] if len(payload) < 126 else [0x80 | opcode, 0xFE, *struct.pack(">H", len(payload))]) + bytes(4) + payload


def connect(daemon):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20 * host.PATIENCE)
    s.connect(daemon.socket)
    key = base64.b64encode(bytes(16)).decode()
    s.sendall(
        f"GET /mcp/ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
    )
    reader = s.makefile("rb")
    assert b" 101 " in reader.readline()
    while reader.readline() != b"\r\n":
        pass
    return s, reader


def read_frame(reader):
    opcode, length = reader.read(2)
    if length == 126:
        (length,) = struct.unpack(">H", reader.read(2))
    return opcode & 15, reader.read(length)


def flood(s, data):
    """Write until the daemon accepts no more, or a lot. Return: bytes accepted."""
    sent, patience = 0, s.gettimeout()
    s.settimeout(3)
    try:
        while sent < FLOOD:
            sent += s.send(data[sent % len(data) :])
    except TimeoutError:
        pass
    s.settimeout(patience)
    return sent


@pytest.mark.parametrize("payload", [b"", b"x" * 16], ids=["empty", "short"])
def test_pings_with_unread_answers(daemon, client, payload):
    one = frame(PING, payload)
    before = host.rss_kib(daemon.pid)
    s, reader = connect(daemon)
    sent = flood(s, one * (120000 // len(one)))
    assert client.get("/healthz").status == 200
    assert is_sanitized() or host.rss_kib(daemon.pid) - before < 16 << 10
    assert sent < FLOOD, "it reads on, whatever waits to be sent"
    # A client that reads then gets every answer and is served on.
    for _ in range(sent // len(one)):
        assert read_frame(reader) == (PONG, payload)
    s.sendall(one[sent % len(one) :] if sent % len(one) else b"")
    s.sendall(frame(TEXT, json.dumps(HELLO).encode()))
    opcode, text = read_frame(reader)
    if opcode == PONG:
        opcode, text = read_frame(reader)
    assert opcode == TEXT and json.loads(text)["id"] == 1
    s.close()


def test_messages_with_unread_answers(daemon, client):
    before = host.rss_kib(daemon.pid)
    s, reader = connect(daemon)
    sent = flood(s, frame(TEXT, json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping"}).encode()) * 2000)
    assert client.get("/healthz").status == 200
    assert sent < FLOOD and (is_sanitized() or host.rss_kib(daemon.pid) - before < 16 << 10)
    assert json.loads(read_frame(reader)[1])["id"] == 7
    s.close()
