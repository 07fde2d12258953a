# SPDX-License-Identifier: Apache-2.0
"""What differs between the two clients: httpx's transport, pauses, threads, cancellation. _async/_io.py is the
other one."""

from __future__ import annotations

import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable, Generic, Iterator, Optional, Tuple, Type, TypeVar, Union

import httpx

from .._base_errors import ConnectError
from .._calls import Call, Content
from .._endpoint import Endpoint
from .._transport_options import pool_limits, ssl_context

T = TypeVar("T")

#: What is done for a call.
Work = Callable[[Call[Any]], T]

#: What interrupts a caller that waits for a program.
INTERRUPTS: Tuple[Type[BaseException], ...] = (KeyboardInterrupt,)


def open_transport(endpoint: Endpoint) -> httpx.HTTPTransport:
    return httpx.HTTPTransport(verify=ssl_context(endpoint), uds=endpoint.socket, limits=pool_limits())


def body(content: Content) -> Union[bytes, Iterator[bytes]]:
    """A body as httpx takes it."""
    return content if isinstance(content, bytes) else iter(content)


def stream_of(response: httpx.Response) -> httpx.SyncByteStream:
    assert isinstance(response.stream, httpx.SyncByteStream)
    return response.stream


class closing(Generic[T]):
    """Close a generator at the end of a block, also where its reader stops early."""

    def __init__(self, generator: Iterator[T]) -> None:
        self._generator = generator

    def __enter__(self) -> Iterator[T]:
        return self._generator

    def __exit__(self, *exc: Any) -> None:
        self._generator.close()  # type: ignore[attr-defined]


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Run what waits for a disk: here, as it is."""
    return work(*args)


def notify(callback: Optional[Callable[[Any], Any]], value: Any) -> None:
    if callback is not None:
        callback(value)


def finish(work: Any) -> None:
    """The call itself was the work."""


Lock = threading.Lock


class Turns:
    """At most @count at a time; further ones wait."""

    def __init__(self, count: int) -> None:
        self._semaphore = threading.Semaphore(count)

    def take(self) -> threading.Semaphore:
        return self._semaphore


class Connection:
    """A connection of its own to the daemon."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def relax(self) -> None:
        """No time-out from now on."""
        self._sock.settimeout(None)

    def read(self) -> bytes:
        """Empty at the end."""
        return self._sock.recv(1 << 16)

    def write(self, data: bytes) -> None:
        self._sock.sendall(data)

    def close(self) -> None:
        """Also wakes a reader in another thread."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._sock.close()


def connect(endpoint: Endpoint, timeout: float) -> Connection:
    url = urllib.parse.urlsplit(endpoint.url)
    try:
        if endpoint.socket:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout)
            sock.connect(endpoint.socket)
            return Connection(sock)
        tls = ssl_context(endpoint)
        sock = socket.create_connection((url.hostname, url.port or (443 if tls else 80)), timeout)
        if isinstance(tls, ssl.SSLContext):
            sock = tls.wrap_socket(sock, server_hostname=url.hostname)
        return Connection(sock)
    except OSError as e:
        raise ConnectError(f"could not reach the daemon at {endpoint}: {e}") from e
