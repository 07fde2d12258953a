# SPDX-License-Identifier: Apache-2.0
"""What the daemon answers: results, events, sessions, files."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Type, Union

from . import errors
from ._base_errors import ProgramCancelled, ProgramCrashed, ProgramError, ProgramFailed, ProgramTimeout

JsonObject = Dict[str, Any]

_PROGRAM_ERRORS: Dict[str, Type[ProgramError]] = {
    "failed": ProgramFailed,
    "timeout": ProgramTimeout,
    "crashed": ProgramCrashed,
    "cancelled": ProgramCancelled,
}
#: Media types whose content is base64 in a bundle.
_BINARY = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")


@dataclass(frozen=True)
class ErrorInfo:
    """The exception that ended a program."""

    name: str
    value: str
    traceback: List[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.name}: {self.value}" if self.value else self.name


class Result:
    """How a program ended. `raw` is the daemon's whole object."""

    __slots__ = ("raw",)

    def __init__(self, raw: JsonObject) -> None:
        self.raw = raw

    @property
    def execution_id(self) -> str:
        """Id of the execution."""
        return str(self.raw["execution_id"])

    @property
    def status(self) -> str:
        """`success`, `failed`, `timeout`, `crashed` or `cancelled`."""
        return str(self.raw["status"])

    @property
    def ok(self) -> bool:
        """Whether the program succeeded."""
        return bool(self.raw["status"] == "success")

    @property
    def exit_code(self) -> Optional[int]:
        """Exit status; 128 and the number of the signal that ended the program."""
        return self.raw.get("exit_code")

    @property
    def stdout(self) -> str:
        """What the program printed, up to the limit."""
        return str(self.raw.get("stdout") or "")

    @property
    def stderr(self) -> str:
        """What it wrote to standard error."""
        return str(self.raw.get("stderr") or "")

    @property
    def truncated(self) -> bool:
        """Whether output was left out."""
        return bool(self.raw.get("stdout_truncated") or self.raw.get("stderr_truncated"))

    @property
    def value(self) -> Any:
        """Value of the last expression, or of a handler, as JSON; None if there is none."""
        return self.raw.get("result")

    @property
    def results(self) -> List[Dict[str, str]]:
        """Rich results in their order: media type to content, base64 for images."""
        return list(self.raw.get("results") or [])

    @property
    def error(self) -> Optional[ErrorInfo]:
        """The exception that ended the program."""
        found = self.raw.get("error")
        if not found:
            return None
        return ErrorInfo(found["name"], found["value"], list(found.get("traceback") or []))

    @property
    def limit(self) -> Optional[str]:
        """The limit that ended it or cut its output: `time`, `memory`, `processes`, `output`, `disk` ..."""
        return self.raw.get("limit")

    @property
    def denials(self) -> List[JsonObject]:
        """What rules refused it: `kind`, `what`, `rule`, `count`, and `remedy`, the smallest change that allows it."""
        return list(self.raw.get("denials") or [])

    @property
    def why(self) -> List[str]:
        """How it ended, by which rule, and what to change, a line each. Empty after a success without denials."""
        return list(self.raw.get("why") or [])

    @property
    def metrics(self) -> Dict[str, Optional[float]]:
        """What it used: `duration_ms`, `cpu_time_ms`, `memory_peak_mb` ..."""
        return dict(self.raw.get("metrics") or {})

    @property
    def artifacts(self) -> List[JsonObject]:
        """Files that it created or changed."""
        return list(self.raw.get("artifacts") or [])

    @property
    def isolation(self) -> JsonObject:
        """What isolated it: `engine`, `mode`, `missing`; all of it with `receipt="plain"` or `"signed"`."""
        return dict(self.raw.get("isolation") or {})

    @property
    def receipt(self) -> Optional[JsonObject]:
        """What it was, how it ended and how it was isolated, signed; with `receipt="signed"`. `millibox receipt verify`
        checks it."""
        return self.raw.get("receipt")

    @property
    def warnings(self) -> List[str]:
        """What the daemon granted or understood otherwise than requested."""
        return list(self.raw.get("warnings") or [])

    @property
    def text(self) -> str:
        """The value of the last expression as text; without one, what the program printed."""
        found = self.find("text/plain")
        return self.stdout if found is None else found

    @property
    def png(self) -> Optional[bytes]:
        """The last figure."""
        return self.find_bytes("image/png")

    @property
    def html(self) -> Optional[str]:
        """The last result that has HTML, such as a table."""
        return self.find("text/html")

    @property
    def json(self) -> Any:
        """The last result that is JSON; without one, the value of the last expression."""
        found = self.find("application/json")
        return self.value if found is None else json.loads(found)

    def find(self, media: str) -> Optional[str]:
        """Content of the last rich result that has this media type."""
        for bundle in reversed(self.raw.get("results") or []):
            if media in bundle:
                return str(bundle[media])
        return None

    def find_bytes(self, media: str) -> Optional[bytes]:
        """The same, decoded from base64."""
        found = self.find(media)
        return None if found is None else base64.b64decode(found)

    def raise_for_status(self) -> Result:
        """Return the result itself, or raise `ProgramError` if the program did not succeed."""
        if self.ok:
            return self
        raise _PROGRAM_ERRORS.get(self.status, ProgramFailed)(self, self._describe())

    def _describe(self) -> str:
        if self.limit and self.status != "success":
            reason = f"the {self.limit.replace('_', ' ')} limit ended it"
        elif self.error:
            reason = str(self.error)
        else:
            reason = f"exit status {self.exit_code}"
        tail = self.stderr.strip().splitlines()[-1:] if not self.error else []
        return ": ".join([f"the program's status is {self.status}", reason, *tail])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        """For notebooks: the last rich result, with what was printed before it in the text."""
        bundle: Dict[str, Any] = {}
        for rich in reversed(self.results):
            bundle = {media: _shown(media, content) for media, content in rich.items()}
            break
        parts = [self.stdout.rstrip("\n"), bundle.get("text/plain", ""), "" if self.ok else self._describe()]
        bundle["text/plain"] = "\n".join(part for part in parts if part)
        return bundle

    def __repr__(self) -> str:
        return f"<Result {self.status}: {self.text[:80]!r}>" if self.ok else f"<Result {self._describe()}>"


def _shown(media: str, content: str) -> Any:
    """Content as notebooks expect it: base64 of images without newlines, JSON as an object."""
    if media in _BINARY:
        return "".join(content.split())
    return json.loads(content) if media == "application/json" else content


@dataclass(frozen=True)
class Event:
    """One event of an execution: `install`, `pending`, `paused`, `start`, `stdout`, `stderr`, `result` or `end`."""

    kind: str
    raw: JsonObject

    @property
    def number(self) -> Optional[int]:
        """Its number in the execution; None for events that are part of the end."""
        return self.raw.get("id")

    @property
    def execution_id(self) -> Optional[str]:
        """With `pending` and `start`."""
        return self.raw.get("execution_id")

    @property
    def text(self) -> str:
        """With `stdout`, `stderr` and `install` (a package manager's output): text; invalid UTF-8 is replaced."""
        data = self.raw.get("data")
        return data if isinstance(data, str) else ""

    @property
    def data(self) -> bytes:
        """With `stdout` and `stderr`: the unchanged bytes."""
        exact = self.raw.get("base64")
        return base64.b64decode(exact) if exact is not None else self.text.encode()

    @property
    def bundle(self) -> Dict[str, str]:
        """With `result`: media type to content."""
        data = self.raw.get("data")
        return dict(data) if isinstance(data, dict) else {}

    @property
    def result(self) -> Optional[Result]:
        """With `end`: the result."""
        found = self.raw.get("result")
        return Result(found) if self.kind == "end" and isinstance(found, dict) else None


def parse_event(line: Union[str, bytes]) -> Event:
    """An event from a line of NDJSON. Raise `ApiError` for an `error` event."""
    raw = json.loads(line)
    if raw["event"] == "error":
        body: Mapping[str, Any] = raw.get("error") or {}
        raise errors.from_answer(errors.STATUS.get(str(body.get("error_code")), 500), body)
    return Event(raw["event"], raw)


@dataclass(frozen=True)
class FileInfo:
    """A file, directory or link of a sandbox."""

    name: str
    path: str
    type: str
    size: int
    mode: int
    modified: str
    etag: str
    target: Optional[str]

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> FileInfo:
        return cls(
            raw["name"],
            raw["path"],
            raw["type"],
            raw["size"],
            int(raw["mode"], 8),
            raw["modified_time"],
            raw["etag"],
            raw.get("target"),
        )

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self.type == "directory"


@dataclass(frozen=True)
class PortInfo:
    """A TCP port on which a program of a sandbox listens."""

    port: int
    #: "loopback", "any", or "other": an address that `open_port` does not reach.
    address: str

    @property
    def is_reachable(self) -> bool:
        """Whether `open_port` and `forward` reach it."""
        return self.address != "other"


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox as the daemon has it: a session. `raw` is the whole object."""

    id: str
    state: str
    language: Optional[str]
    template: Optional[str]
    created_at: str
    raw: JsonObject = field(repr=False)

    @classmethod
    def of(cls, raw: JsonObject) -> SandboxInfo:
        return cls(
            raw["session_id"], raw["state"], raw.get("language"), raw.get("template_id"), raw["created_at"], raw
        )
