# Made by sdk/python/generate.py from _async/_port.py; do not edit.
# SPDX-License-Identifier: Apache-2.0
"""Connections to programs that listen in a sandbox."""

from __future__ import annotations

import urllib.parse
from types import TracebackType
from typing import List, Optional, Type

import httpx

from .. import _websocket
from .._base_errors import ConnectionLost
from .._endpoint import Endpoint, check_trusted
from .._transport_options import api_error, base_headers
from . import _io

#: The daemon takes messages of 256 KiB.
_PIECE = 64 * 1024


class Port:
    """A TCP connection to a program in a sandbox. `read` and `write` may be used at the same time."""

    def __init__(self, connection: _io.Connection, frames: _websocket.Frames, port: int) -> None:
        self.port = port
        self._connection = connection
        self._frames = frames
        self._lock = _io.Lock()
        self._unread: List[bytes] = []
        self._ended = False  # the program's bytes
        self._finished = False  # ours
        self._closed = False

    def read(self, limit: int = _PIECE) -> bytes:
        """At most @limit bytes, as soon as there are some; empty at the end of what the program sends."""
        while not self._unread and not self._ended:
            self._receive()
        if not self._unread:
            return b""
        data = self._unread.pop(0)
        if len(data) > limit:
            self._unread.insert(0, data[limit:])
        return data[:limit]

    def read_all(self) -> bytes:
        """Everything up to the end."""
        pieces: List[bytes] = []
        while True:
            piece = self.read()
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)

    def write(self, data: bytes) -> None:
        """Send all bytes. Waits while the program does not read."""
        for start in range(0, len(data), _PIECE):
            self._send(_websocket.BINARY, data[start : start + _PIECE])

    def finish(self) -> None:
        """Send no more: the program reads the end of its input. `read` goes on."""
        if not self._finished:
            self._finished = True
            self._send(_websocket.BINARY, b"")

    def close(self) -> None:
        """End the connection; what the program still sends is dropped."""
        if self._closed:
            return
        self._closed = True
        try:
            self._send(_websocket.CLOSE, _websocket.NORMAL.to_bytes(2, "big"))
        except ConnectionLost:
            pass
        self._connection.close()

    def _send(self, opcode: int, data: bytes) -> None:
        with self._lock:
            try:
                self._connection.write(_websocket.encode(opcode, data))
            except OSError as e:
                raise ConnectionLost(f"the connection to port {self.port} broke: {e}") from e

    def _receive(self) -> None:
        try:
            data = self._connection.read()
            self._frames.feed(data)
            frames = self._frames.take()
        except (OSError, ValueError) as e:
            raise ConnectionLost(f"the connection to port {self.port} broke: {e}") from e
        for opcode, payload in frames:
            self._take(opcode, payload)
        if not data and not self._ended:
            raise ConnectionLost(f"the connection to port {self.port} broke: the daemon closed it")

    def _take(self, opcode: int, payload: bytes) -> None:
        if opcode == _websocket.PING:
            self._send(_websocket.PONG, payload)
        elif opcode == _websocket.CLOSE:
            code = _websocket.close_code(payload)
            if code != _websocket.NORMAL:
                raise ConnectionLost(
                    f"the connection to port {self.port} ended early: "
                    + ("its sandbox has ended, or the daemon stops" if code == 1001 else "the program reset it")
                )
            self._ended = True
        elif opcode in (_websocket.BINARY, _websocket.MORE):
            self._ended = self._ended or (opcode == _websocket.BINARY and not payload)
            if payload:
                self._unread.append(payload)

    def __enter__(self) -> Port:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def open_port(endpoint: Endpoint, path: str, port: int, timeout: float) -> Port:
    """Upgrade a connection of its own. An answer without an upgrade is an exception."""
    check_trusted(endpoint)
    connection = _io.connect(endpoint, timeout)
    path = urllib.parse.urlsplit(endpoint.url).path.rstrip("/") + path
    try:
        key = _websocket.new_key()
        connection.write(_websocket.request_head(path, base_headers(endpoint), key))
        status, headers, rest = _read_head(connection, endpoint)
        if _websocket.is_upgrade(status, headers, key):
            connection.relax()
            return Port(connection, _websocket.Frames(rest), port)
        while len(rest) < int(headers.get("content-length", "0")):
            piece = connection.read()
            if not piece:
                break
            rest += piece
        raise api_error(status, httpx.Headers(headers), rest)
    except BaseException as e:
        connection.close()
        if isinstance(e, (OSError, ValueError)):
            raise ConnectionLost(f"the connection to the daemon at {endpoint} broke: {e}") from e
        raise


def _read_head(connection: _io.Connection, endpoint: Endpoint) -> _websocket.Head:
    data = b""
    while True:
        piece = connection.read()
        data += piece
        head = _websocket.parse_head(data)
        if head is not None:
            return head
        if not piece:
            raise ConnectionLost(f"the daemon at {endpoint} closed the connection without an answer")
