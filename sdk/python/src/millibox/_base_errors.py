# SPDX-License-Identifier: Apache-2.0
"""What can go wrong: the roots of all exceptions. errors.py adds one class for each code of the daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional

if TYPE_CHECKING:
    from ._models import Result


class MilliboxError(Exception):
    """Root of all exceptions of this package."""


class ConnectError(MilliboxError):
    """The daemon could not be reached. Nothing was sent."""


class ConnectionLost(MilliboxError):
    """The connection broke, or the daemon did not answer in time. It may have served the request."""


def _seconds(value: Any) -> Optional[float]:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


class ApiError(MilliboxError):
    """The daemon refused a request, or failed to serve it. Subclasses are in `millibox.errors`, one for each code."""

    #: The code in the daemon's list that this class stands for.
    code: str = ""

    def __init__(self, status: int, body: Mapping[str, Any], retry_after: Optional[float] = None) -> None:
        self.status = status
        self.code = str(body.get("error_code") or type(self).code)
        self.description = str(body.get("description") or "")
        self.detail = str(body.get("error_detail") or "")
        self.solution = str(body.get("solution") or "")
        self.request_id = str(body.get("request_id") or "")
        self.field: Optional[str] = body.get("field")
        #: The last output of a package manager that failed.
        self.log: Optional[str] = body.get("log")
        #: Seconds after which the daemon wants the request again.
        self.retry_after = _seconds(body.get("retry_after")) if retry_after is None else retry_after
        #: Nothing was begun, and the same request may succeed later. Clients have tried it again for a while.
        self.should_retry = _seconds(body.get("retry_after")) is not None
        super().__init__(self._text())

    def _text(self) -> str:
        text = self.detail or self.description or f"HTTP status {self.status}"
        text = f"{self.code}: {text}" if self.code else text
        return f"{text} ({self.solution})" if self.solution else text


class ProgramError(MilliboxError):
    """A program did not succeed. Only `Result.raise_for_status` and handlers raise it."""

    def __init__(self, result: Result, text: str) -> None:
        self.result = result
        super().__init__(text)


class ProgramFailed(ProgramError):
    """It ended with an exception, another exit status than 0, or a signal."""


class ProgramTimeout(ProgramError):
    """It exceeded its time limit."""


class ProgramCrashed(ProgramError):
    """Its box was lost."""


class ProgramCancelled(ProgramError):
    """It was cancelled."""
