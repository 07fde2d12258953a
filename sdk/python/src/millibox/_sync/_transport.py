# Made by sdk/python/generate.py from _async/_transport.py; do not edit.
# SPDX-License-Identifier: Apache-2.0
"""Sends calls: errors become exceptions, what may be repeated is."""

from __future__ import annotations

from typing import Any, Iterator, Dict, TypeVar

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


class Transport:
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

    def close(self) -> None:
        self._http.close()

    def call(self, call: Call[T]) -> T:
        """Send a call and read its whole answer, again if that is safe."""
        return call.parse(self._repeat(call, self._answer))

    def _answer(self, call: Call[Any]) -> bytes:
        # No code of the caller runs meanwhile, so that calls cannot wait for each other.
        with self._turns[call.waits].take():
            return self._read(self._send(call))

    def _read(self, response: httpx.Response) -> bytes:
        # Nothing is compressed: httpx's decoders would only cost time.
        try:
            return b"".join([piece for piece in _io.stream_of(response)])
        except httpx.TransportError as e:
            raise translate(e, self.endpoint) from e
        finally:
            response.close()

    def pieces(self, call: Call[bytes]) -> Iterator[bytes]:
        """The answer of a call, piece by piece."""
        response = self._repeat(call, self._send)
        try:
            for piece in _io.stream_of(response):
                yield piece
        except httpx.TransportError as e:
            raise translate(e, self.endpoint) from e
        finally:
            response.close()

    def lines(self, call: Call[bytes]) -> Iterator[bytes]:
        """The lines of an answer. The end of the answer ends the last one."""
        rest = b""
        with _io.closing(self.pieces(call)) as pieces:
            for piece in pieces:
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    if line:
                        yield line

    def follow(self, call: Call[bytes], cursor: Cursor) -> Iterator[Event]:
        """The events of an execution up to its end. A broken connection is made again, and nothing is lost or
        repeated."""
        waiting = delays(self._patience)
        while True:
            try:
                with _io.closing(self.lines(call)) as lines:
                    for line in lines:
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
            _io.sleep(delay)
            call = cursor.resume()

    def _repeat(self, call: Call[Any], work: _io.Work[T]) -> T:
        """Do @work for a call, again if that is safe."""
        attempts = Attempts(call, self._retries, self._busy_timeout)
        while True:
            try:
                return work(call)
            except MilliboxError as e:
                pause = attempts.pause(e)
                if pause is None:
                    raise
            _io.sleep(pause)

    def _send(self, call: Call[Any]) -> httpx.Response:
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
            response = self._http.handle_request(request)
            response.request = request
            if response.status_code < 400:
                return response
            try:
                raise api_error(response.status_code, response.headers, self._read(response))
            finally:
                response.close()
        except httpx.TransportError as e:
            raise translate(e, self.endpoint) from e
