# SPDX-License-Identifier: Apache-2.0
"""Sends calls: errors become exceptions, what may be repeated is."""

from __future__ import annotations

from typing import Any, AsyncIterator, Dict, TypeVar

import httpx

from .._base_errors import ConnectError, ConnectionLost, MilliboxError
from .._calls import Call
from .._endpoint import Endpoint, check_trusted
from .._follow import Cursor, delays
from .._models import Event
from .._transport_options import Attempts, api_error, base_headers, call_limit, make_url, time_limits, translate
from .. import errors
from . import _io

T = TypeVar("T")


class AsyncTransport:
    """A pool of connections to one daemon."""

    def __init__(
        self, endpoint: Endpoint, timeout: float, retries: int, patience: float, busy_timeout: float, connections: int
    ) -> None:
        check_trusted(endpoint)
        self.endpoint = endpoint
        self.timeout = timeout
        self._retries = retries
        self._patience = patience
        self._busy_timeout = busy_timeout
        self._turns = {waits: _io.Turns(call_limit(connections, waits)) for waits in (False, True)}
        self._headers = base_headers(endpoint)
        self._http = _io.open_transport(endpoint)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def call(self, call: Call[T]) -> T:
        """Send a call and read its whole answer, again if that is safe."""
        return call.parse(await self._repeat(call, self._answer))

    async def _answer(self, call: Call[Any]) -> bytes:
        # No code of the caller runs meanwhile, so that calls cannot wait for each other.
        async with self._turns[call.waits].take():
            return await self._read(await self._send(call))

    async def _read(self, response: httpx.Response) -> bytes:
        # Nothing is compressed: httpx's decoders would only cost time.
        try:
            return b"".join([piece async for piece in _io.stream_of(response)])
        except httpx.TransportError as e:
            raise translate(e, self.endpoint) from e
        finally:
            await response.aclose()

    async def pieces(self, call: Call[bytes]) -> AsyncIterator[bytes]:
        """The answer of a call, piece by piece."""
        response = await self._repeat(call, self._send)
        try:
            async for piece in _io.stream_of(response):
                yield piece
        except httpx.TransportError as e:
            raise translate(e, self.endpoint) from e
        finally:
            await response.aclose()

    async def lines(self, call: Call[bytes]) -> AsyncIterator[bytes]:
        """The lines of an answer. The end of the answer ends the last one."""
        rest = b""
        async with _io.closing(self.pieces(call)) as pieces:
            async for piece in pieces:
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    if line:
                        yield line

    async def follow(self, call: Call[bytes], cursor: Cursor) -> AsyncIterator[Event]:
        """The events of an execution up to its end. A broken connection is made again, and nothing is lost or
        repeated."""
        waiting = delays(self._patience)
        while True:
            try:
                async with _io.closing(self.lines(call)) as lines:
                    async for line in lines:
                        waiting = delays(self._patience)
                        event = cursor.take(line)
                        if event is not None:
                            yield event
                # The stream was read to its end, so that its connection can be used again.
                if cursor.result is not None:
                    return
                raise ConnectionLost(f"the daemon at {self.endpoint} ended a stream before its program had ended")
            except (ConnectionLost, ConnectError, errors.UnavailableError):
                if cursor.result is not None:
                    return
                delay = next(waiting, None)
                if delay is None or not cursor.can_resume:
                    raise
            except errors.ExecutionNotFoundError as e:
                if not cursor.was_resumed:
                    raise
                raise ConnectionLost(
                    f"the daemon at {self.endpoint} was killed and lost {cursor.execution_id}; programs that are"
                    " started with start_code() survive that"
                ) from e
            await _io.sleep(delay)
            call = cursor.resume()

    async def _repeat(self, call: Call[Any], work: _io.Work[T]) -> T:
        """Do @work for a call, again if that is safe."""
        attempts = Attempts(call, self._retries, self._busy_timeout)
        while True:
            try:
                return await work(call)
            except MilliboxError as e:
                pause = attempts.pause(e)
                if pause is None:
                    raise
            await _io.sleep(pause)

    async def _send(self, call: Call[Any]) -> httpx.Response:
        """Return: an answer without an error whose body is to be read."""
        headers: Dict[str, str] = {**self._headers, **call.headers}
        if isinstance(call.content, bytes):
            headers["Content-Length"] = str(len(call.content))
        request = httpx.Request(
            call.method,
            make_url(self.endpoint.url + call.path),
            headers=headers,
            content=None if call.content is None else _io.body(call.content),
            extensions={"timeout": time_limits(call, self.timeout)},
        )
        try:
            response = await self._http.handle_async_request(request)
            response.request = request
            if response.status_code < 400:
                return response
            try:
                raise api_error(response.status_code, response.headers, await self._read(response))
            finally:
                await response.aclose()
        except httpx.TransportError as e:
            raise translate(e, self.endpoint) from e
