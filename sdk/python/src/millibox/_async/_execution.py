# SPDX-License-Identifier: Apache-2.0
"""A program that runs in a sandbox, or has run there."""

from __future__ import annotations

from typing import Any, AsyncIterator, Callable, Optional

from .. import _calls, errors
from .._calls import Data
from .._follow import Cursor
from .._models import Event, JsonObject, Result, parse_event
from . import _io
from ._transport import AsyncTransport

OnOutput = Optional[Callable[[str], Any]]
OnResult = Optional[Callable[[Any], Any]]


class AsyncExecution:
    """A handle of an execution. It holds no connection: the program runs on without it."""

    def __init__(self, transport: AsyncTransport, id: str) -> None:
        self._transport = transport
        #: Id of the execution.
        self.id = id

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Its events after the one with this number: past ones, then new ones, up to `end`."""
        call = _calls.execution_events(self.id, after)
        async with _io.closing(self._transport.follow(call, Cursor(self.id, after))) as events:
            async for event in events:
                yield event

    async def wait(
        self, on_stdout: OnOutput = None, on_stderr: OnOutput = None, on_result: OnResult = None
    ) -> Result:
        """Wait for its end. Callbacks get the output from its start on. An interrupted wait does not end the
        program."""
        async with _io.closing(self.events()) as events:
            return await collect(events, on_stdout, on_stderr, on_result)

    async def result(self) -> Result:
        """The result of an ended execution; `StateConflictError` while it runs."""
        return await self._transport.call(_calls.execution_result(self.id))

    async def info(self) -> JsonObject:
        """The request and what is known of the result so far."""
        return await self._transport.call(_calls.execution_show(self.id))

    async def status(self) -> str:
        """`pending`, `running`, or how it ended."""
        return str((await self.info())["status"])

    async def send_stdin(self, data: Data, end: bool = False) -> None:
        """Write to its standard input, which `stdin_open` must have kept open; @end closes it."""
        await self._transport.call(_calls.execution_stdin(self.id, data, end))

    async def stdin(self, data: Data) -> None:
        """Write to its standard input; the same as `send_stdin`."""
        await self.send_stdin(data)

    async def output(self) -> str:
        """What it has printed so far, both streams in their order."""
        text = ""
        call = _calls.execution_events(self.id, 0, follow=False)
        async with _io.closing(self._transport.lines(call)) as lines:
            async for line in lines:
                event = parse_event(line)
                text += event.text if event.kind in ("stdout", "stderr") else ""
        return text

    async def _texts(self) -> AsyncIterator[str]:
        async with _io.closing(self.events()) as events:
            async for event in events:
                if event.kind in ("stdout", "stderr"):
                    yield event.text

    def __aiter__(self) -> AsyncIterator[str]:
        """Its output, both streams in their order, until it ends."""
        return self._texts()

    async def close_stdin(self) -> None:
        """Close its standard input."""
        await self.send_stdin(b"", end=True)

    async def kill(self) -> bool:
        """Cancel it. Return: False if it had ended before."""
        try:
            await self._transport.call(_calls.execution_cancel(self.id))
        except errors.StateConflictError:
            return False
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class AsyncTerminal(AsyncExecution):
    """A program on a terminal: `send` types, iterating yields what it has shown, of which the daemon keeps the latest
    part, and what it shows. A broken connection is made again without a loss; for that reason it reads events and not
    the WebSocket, whose messages have no numbers."""

    async def send(self, data: Data) -> None:
        """Type. A line ends with `\\n`; Ctrl-C is `\\x03`, Ctrl-D `\\x04`."""
        await self.send_stdin(data)

    async def resize(self, rows: int, cols: int) -> None:
        """Change the size of the terminal."""
        await self._transport.call(_calls.execution_resize(self.id, rows, cols))


async def collect(
    events: AsyncIterator[Event],
    on_stdout: OnOutput,
    on_stderr: OnOutput,
    on_result: OnResult,
    on_install: OnOutput = None,
) -> Result:
    """Pass events to callbacks. Return: the result at the end."""
    result = None
    async for event in events:
        if event.kind == "stdout":
            await _io.notify(on_stdout, event.text)
        elif event.kind == "stderr":
            await _io.notify(on_stderr, event.text)
        elif event.kind == "result":
            await _io.notify(on_result, event.bundle)
        elif event.kind == "install":
            await _io.notify(on_install, event.text)
        result = event.result or result
    assert result is not None, "a stream ends with an end event or an exception"
    return result
