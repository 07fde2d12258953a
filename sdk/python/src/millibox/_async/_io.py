# SPDX-License-Identifier: Apache-2.0
"""What differs between the two clients: httpx's transport, pauses, threads, cancellation. _sync/_io.py is the other
one."""

from __future__ import annotations

import asyncio
import inspect
import urllib.parse
from typing import Any, AsyncIterator, Awaitable, Callable, Generic, Iterator, Optional, Tuple, Type, TypeVar, Union

import httpx

from .._base_errors import ConnectError
from .._calls import Call, Content
from .._endpoint import Endpoint
from .._transport_options import pool_limits, ssl_context

T = TypeVar("T")

#: What is done for a call.
Work = Callable[[Call[Any]], Awaitable[T]]

#: What interrupts a caller that waits for a program.
INTERRUPTS: Tuple[Type[BaseException], ...] = (asyncio.CancelledError, KeyboardInterrupt)


def open_transport(endpoint: Endpoint) -> httpx.AsyncHTTPTransport:
    return httpx.AsyncHTTPTransport(verify=ssl_context(endpoint), uds=endpoint.socket, limits=pool_limits())


#: anyio before 4 repeats the start of a piece that a Unix socket took only in part. The kernel takes one of this
#: size whole or not.
_PIECE = 32 * 1024


def body(content: Content) -> Union[bytes, AsyncIterator[bytes]]:
    """A body as httpx takes it."""
    return content if isinstance(content, bytes) and len(content) <= _PIECE else _pieces_of(content)


def stream_of(response: httpx.Response) -> httpx.AsyncByteStream:
    assert isinstance(response.stream, httpx.AsyncByteStream)
    return response.stream


async def _pieces_of(content: Content) -> AsyncIterator[bytes]:
    """Those of an iterator are made in a thread, because they may come from a disk."""
    if isinstance(content, bytes):
        for piece in _cut(content):
            yield piece
        return
    pieces = iter(content)
    while True:
        whole = await asyncio.to_thread(_next_of, pieces)
        if whole is None:
            return
        for piece in _cut(whole):
            yield piece


def _cut(whole: bytes) -> Iterator[bytes]:
    return (whole[start : start + _PIECE] for start in range(0, len(whole), _PIECE))


def _next_of(pieces: Iterator[bytes]) -> Optional[bytes]:
    """None at the end: StopIteration cannot leave a thread."""
    return next(pieces, None)


class closing(Generic[T]):
    """Close an asynchronous generator at the end of a block, also where its reader stops early.
    (contextlib.aclosing, which Python 3.9 lacks.)"""

    def __init__(self, generator: AsyncIterator[T]) -> None:
        self._generator = generator

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._generator

    async def __aexit__(self, *exc: Any) -> None:
        await self._generator.aclose()  # type: ignore[attr-defined]


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Run what waits for a disk."""
    return await asyncio.to_thread(work, *args)


async def notify(callback: Optional[Callable[[Any], Any]], value: Any) -> None:
    """Call a callback, which may be a coroutine function."""
    if callback is not None:
        answer = callback(value)
        if inspect.isawaitable(answer):
            await answer


async def finish(work: Awaitable[Any]) -> None:
    """Complete @work although the caller is being cancelled."""
    await asyncio.shield(asyncio.ensure_future(work))


Lock = asyncio.Lock


class Turns:
    """At most @count at a time; further ones wait."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._semaphore: Optional[asyncio.Semaphore] = None

    def take(self) -> asyncio.Semaphore:
        # A client may be used by several loops, one after the other.
        loop = asyncio.get_running_loop()
        if self._semaphore is None or loop is not self._loop:
            self._loop, self._semaphore = loop, asyncio.Semaphore(self._count)
        return self._semaphore


class Connection:
    """A connection of its own to the daemon."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout: float) -> None:
        self._reader, self._writer = reader, writer
        self._timeout: Optional[float] = timeout

    async def relax(self) -> None:
        """No time-out from now on."""
        self._timeout = None

    async def read(self) -> bytes:
        """Empty at the end."""
        return await asyncio.wait_for(self._reader.read(1 << 16), self._timeout)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def aclose(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            pass


async def connect(endpoint: Endpoint, timeout: float) -> Connection:
    url = urllib.parse.urlsplit(endpoint.url)
    try:
        if endpoint.socket:
            opening = asyncio.open_unix_connection(endpoint.socket)
        else:
            tls = ssl_context(endpoint) or None
            opening = asyncio.open_connection(url.hostname, url.port or (443 if tls else 80), ssl=tls)
        return Connection(*await asyncio.wait_for(opening, timeout), timeout)
    except (OSError, asyncio.TimeoutError) as e:
        raise ConnectError(f"could not reach the daemon at {endpoint}: {e}") from e
