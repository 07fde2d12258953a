# Made by sdk/python/generate.py from _async/_runner.py; do not edit.
# SPDX-License-Identifier: Apache-2.0
"""Runs programs in one sandbox."""

from __future__ import annotations

from typing import Iterator

from .. import _calls
from .._follow import Cursor
from .._models import Event, JsonObject, Result
from . import _io
from ._execution import Execution, OnResult, OnOutput, collect
from ._transport import Transport


class Runner:
    """Starts programs in a session and follows them."""

    def __init__(self, transport: Transport, id: str) -> None:
        self.transport = transport
        self.id = id

    def start(self, body: JsonObject) -> Execution:
        """Start a program without waiting for it."""
        ticket = self.transport.call(_calls.session_start(self.id, body))
        return Execution(self.transport, ticket["execution_id"])

    def stream(self, body: JsonObject, cursor: Cursor) -> Iterator[Event]:
        """Start a program and yield its events."""
        with _io.closing(self.transport.follow(_calls.session_stream(self.id, body), cursor)) as events:
            for event in events:
                yield event

    def run(self, body: JsonObject, on_stdout: OnOutput, on_stderr: OnOutput, on_result: OnResult) -> Result:
        """Start a program and wait for its end. An interrupted caller cancels it."""
        cursor = Cursor()
        try:
            with _io.closing(self.transport.follow(_calls.session_stream(self.id, body), cursor)) as events:
                return collect(events, on_stdout, on_stderr, on_result)
        except _io.INTERRUPTS:
            if cursor.execution_id and cursor.result is None:
                _io.finish(Execution(self.transport, cursor.execution_id).kill())
            raise
