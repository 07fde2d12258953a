# SPDX-License-Identifier: Apache-2.0
"""Where a reader of events is, so that it can continue after a broken connection without a loss or a repetition."""

from __future__ import annotations

from typing import Iterator, Optional, Union

from . import _calls
from ._models import Event, Result, parse_event


class Cursor:
    """Follows one execution. Events have numbers; those without are part of the end, and are sent again with it."""

    def __init__(self, execution_id: Optional[str] = None, after: int = 0) -> None:
        self.execution_id = execution_id
        self.result: Optional[Result] = None
        self.was_resumed = False
        self._last = after
        self._loose = 0  # events without a number that were delivered since the last number
        self._repeated = 0  # of these, how many the new stream will send again
        self._in_session = execution_id is not None

    @property
    def can_resume(self) -> bool:
        """Whether the daemon keeps the events: it does in sessions, once it has given the execution an id."""
        return self._in_session and self.execution_id is not None and self.result is None

    def resume(self) -> _calls.Call[bytes]:
        """The request for what is missing."""
        assert self.execution_id is not None
        self.was_resumed = True
        self._repeated = self._loose
        return _calls.execution_events(self.execution_id, self._last)

    def take(self, line: Union[str, bytes]) -> Optional[Event]:
        """The event of a line, or None if its reader has it already."""
        event = parse_event(line)
        if event.kind == "pending":
            # Only executions in sessions have it.
            self._in_session = True
        self.execution_id = self.execution_id or event.execution_id
        if event.number is not None:
            self._last, self._loose, self._repeated = event.number, 0, 0
        elif event.kind in ("stdout", "stderr", "result"):
            if self._repeated:
                self._repeated -= 1
                return None
            self._loose += 1
        self.result = event.result or self.result
        return event


#: Seconds before each attempt to reach a daemon again.
_FIRST_DELAY, _LAST_DELAY = 0.05, 1.0


def delays(patience: float) -> Iterator[float]:
    """Growing pauses that add up to about @patience."""
    delay, spent = _FIRST_DELAY, 0.0
    while spent < patience:
        yield delay
        spent += delay
        delay = min(delay * 2, _LAST_DELAY)
