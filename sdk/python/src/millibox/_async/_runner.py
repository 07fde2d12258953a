# SPDX-License-Identifier: Apache-2.0
"""Runs programs in one sandbox."""

from __future__ import annotations

from typing import AsyncIterator

from .. import _calls
from .._follow import Cursor
from .._models import Event, JsonObject, Result
from . import _io
from ._execution import AsyncExecution, OnResult, OnOutput, collect
from ._transport import AsyncTransport


class AsyncRunner:
    """Starts programs in a session and follows them."""

    def __init__(self, transport: AsyncTransport, id: str) -> None:
        self.transport = transport
        self.id = id

    async def start(self, body: JsonObject) -> AsyncExecution:
        """Start a program without waiting for it."""
        ticket = await self.transport.call(_calls.session_start(self.id, body))
        return AsyncExecution(self.transport, ticket["execution_id"])

    async def stream(self, body: JsonObject, cursor: Cursor) -> AsyncIterator[Event]:
        """Start a program and yield its events."""
        async with _io.closing(self.transport.follow(_calls.session_stream(self.id, body), cursor)) as events:
            async for event in events:
                yield event

    async def run(self, body: JsonObject, on_stdout: OnOutput, on_stderr: OnOutput, on_result: OnResult) -> Result:
        """Start a program and wait for its end. An interrupted caller cancels it."""
        cursor = Cursor()
        try:
            async with _io.closing(self.transport.follow(_calls.session_stream(self.id, body), cursor)) as events:
                return await collect(events, on_stdout, on_stderr, on_result)
        except _io.INTERRUPTS:
            if cursor.execution_id and cursor.result is None:
                await _io.finish(AsyncExecution(self.transport, cursor.execution_id).kill())
            raise
