# SPDX-License-Identifier: Apache-2.0
"""A local port that leads to a program in a sandbox. Threads of its own serve it, for both clients."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Any, Callable, Set

from ._base_errors import MilliboxError
from ._sync._port import Port

_PIECE = 64 * 1024


class Forward:
    """Local connections that lead to a port of a sandbox, until `close` or the end of a `with` block (also `async
    with`). A connection that cannot be made, or breaks, is reset; `last_error` says why."""

    def __init__(self, open_port: Callable[[], Port], local_port: int, address: str) -> None:
        self._open_port = open_port
        self._listener = socket.create_server((address, local_port), family=_family(address), backlog=128)
        self._connections: Set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        #: Why the latest failed connection failed.
        self.last_error: Any = None
        #: Where it listens.
        self.host: str = address
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="millibox-forward", daemon=True).start()

    @property
    def url(self) -> str:
        """Of a web server behind it."""
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    def close(self) -> None:
        """Listen no more, and end the connections."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                local, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                continue
            threading.Thread(target=self._serve, args=(local,), name="millibox-forward", daemon=True).start()

    def _serve(self, local: socket.socket) -> None:
        with self._lock:
            self._connections.add(local)
        with local:
            try:
                self._pass(local)
            except (MilliboxError, OSError) as e:
                self.last_error = e
                # A reset: the client must not take a part for the whole.
                local.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with self._lock:
                self._connections.discard(local)

    def _pass(self, local: socket.socket) -> None:
        with self._open_port() as port:
            outward = threading.Thread(target=_send, args=(local, port), name="millibox-forward", daemon=True)
            outward.start()
            while data := port.read(_PIECE):
                local.sendall(data)
            with contextlib.suppress(OSError):
                local.shutdown(socket.SHUT_WR)
            outward.join()

    def __enter__(self) -> Forward:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    async def __aenter__(self) -> Forward:
        return self

    async def __aexit__(self, *exc: Any) -> None:
        self.close()


def _send(local: socket.socket, port: Port) -> None:
    with contextlib.suppress(MilliboxError, OSError):
        while data := local.recv(_PIECE):
            port.write(data)
        port.finish()


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
