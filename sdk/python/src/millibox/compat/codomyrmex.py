# SPDX-License-Identifier: Apache-2.0
"""codomyrmex's code execution: `execute_code` and its relatives. They never raise for a program, and keep nothing.

Differences: a program gets the time that was requested; the original adds slack for the start of a container.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from .. import errors
from .._base_errors import MilliboxError
from .._models import Result
from .._sync._client import Client

DEFAULT_TIMEOUT = 30
MAX_TIMEOUT = 300
MAX_OUTPUT = 100_000
#: The original's names, which are case-sensitive, and the daemon's.
LANGUAGES = {
    "python": "python",
    "javascript": "javascript",
    "bash": "shell",
    "java": "java",
    "c": "c",
    "cpp": "cpp",
    "go": "go",
    "rust": "rust",
}
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_lock = threading.Lock()
_clients: List[Client] = []


def connect(client: Optional[Client] = None) -> Client:
    """The client that all functions use: the given one from now on, or one with the settings of the environment."""
    with _lock:
        if client is not None:
            _clients[:] = [client]
        elif not _clients:
            _clients.append(Client())
        return _clients[0]


@dataclass(frozen=True)
class ExecutionLimits:
    """Limits of a program. Values out of range are a ValueError."""

    time_limit: int = DEFAULT_TIMEOUT
    memory_limit: int = 256
    cpu_limit: float = 0.5
    max_output_chars: int = MAX_OUTPUT

    def __post_init__(self) -> None:
        if not 1 <= self.time_limit <= MAX_TIMEOUT:
            raise ValueError(f"time_limit must be 1 to {MAX_TIMEOUT} seconds")
        if self.memory_limit < 1:
            raise ValueError("memory_limit must be at least 1 MB")
        if not 0 < self.cpu_limit <= 4:
            raise ValueError("cpu_limit must be above 0 and at most 4 cores")
        if self.max_output_chars < 1000:
            raise ValueError("max_output_chars must be at least 1000")


def validate_timeout(timeout: Optional[float]) -> int:
    """None is the default; other values are clamped to 1 to 300 seconds."""
    return DEFAULT_TIMEOUT if timeout is None else max(1, min(int(timeout), MAX_TIMEOUT))


def validate_session_id(session_id: Any) -> Optional[str]:
    """Letters, digits, _ and -, at most 64; anything else is None."""
    return session_id if isinstance(session_id, str) and _SESSION.fullmatch(session_id) else None


def validate_language(language: Any) -> bool:
    """Whether the original knows the language."""
    return language in LANGUAGES


def execute_code(
    language: str,
    code: str,
    stdin: Optional[str] = None,
    timeout: Optional[float] = None,
    session_id: Optional[str] = None,
) -> Dict[str, Any]:
    """Run a program in a new box. `session_id` is accepted and has no effect, as in the original."""
    validate_session_id(session_id)
    limits = ExecutionLimits(time_limit=validate_timeout(timeout))
    return _execute(language, code, stdin, limits)[0]


def execute_with_limits(
    language: str, code: str, limits: ExecutionLimits, stdin: Optional[str] = None, session_id: Optional[str] = None
) -> Dict[str, Any]:
    """The same with limits; the answer has `resource_usage` and `limits_applied`."""
    validate_session_id(session_id)
    answer, result = _execute(language, code, stdin, limits)
    used = result.metrics if result else {}
    seconds = answer["execution_time"]
    cpu = (used.get("cpu_time_ms") or 0.0) / 1000 / seconds * 100 if seconds else 0.0
    answer["resource_usage"] = {
        "execution_time_seconds": seconds,
        "memory_start_mb": 0.0,
        "memory_peak_mb": used.get("memory_peak_mb") or 0.0,
        "cpu_samples": 1 if result else 0,
        "cpu_average_percent": round(cpu, 1),
        "cpu_peak_percent": round(cpu, 1),
    }
    answer["limits_applied"] = {
        "time_limit_seconds": limits.time_limit,
        "memory_limit_mb": limits.memory_limit,
        "cpu_limit_cores": limits.cpu_limit,
        "max_output_chars": limits.max_output_chars,
    }
    return answer


sandbox_process_isolation = execute_with_limits


def _execute(
    language: str, code: Any, stdin: Optional[str], limits: ExecutionLimits
) -> "tuple[Dict[str, Any], Optional[Result]]":
    if not validate_language(language):
        known = ", ".join(sorted(LANGUAGES))
        return (
            _setup_error(f"Unsupported language: {language}", f"Language '{language}' is not supported: {known}"),
            None,
        )
    if not isinstance(code, str) or not code.strip():
        return _setup_error("Code must be a non-empty string", "Code must be a non-empty string"), None
    begin = time.monotonic()
    try:
        result = connect().run_code(
            code,
            language=LANGUAGES[language],
            stdin=stdin,
            timeout=limits.time_limit,
            cpu=limits.cpu_limit,
            # A box needs some for itself.
            memory=f"{max(limits.memory_limit, 16)}Mi",
            max_output=limits.max_output_chars * 4,
        )
    except errors.InvalidParameterError as e:
        if e.field != "language":
            return _setup_error(e.detail, str(e)), None
        return (
            _setup_error(f"Unsupported language: {language}", f"Language '{language}' is not supported: {e.detail}"),
            None,
        )
    except MilliboxError as e:
        return _setup_error(str(e), str(e)), None
    return _answer(result, time.monotonic() - begin, limits), result


def _setup_error(stderr: str, message: str) -> Dict[str, Any]:
    return {
        "stdout": "",
        "stderr": stderr,
        "exit_code": -1,
        "execution_time": 0.0,
        "status": "setup_error",
        "error_message": message,
    }


def _answer(result: Result, seconds: float, limits: ExecutionLimits) -> Dict[str, Any]:
    answer = {
        "stdout": _cut(result.stdout, limits.max_output_chars),
        "stderr": _cut(result.stderr, limits.max_output_chars),
        "exit_code": -1 if result.exit_code is None else result.exit_code,
        "execution_time": round(seconds, 3),
        "status": "success" if result.ok else "execution_error",
        "error_message": None,
    }
    if result.status == "timeout":
        text = f"Execution timed out after {limits.time_limit} seconds."
        answer.update(status="timeout", exit_code=-1, error_message=text)
    elif not result.ok:
        answer["error_message"] = (
            str(result.error) if result.error else f"The program ended with exit code {result.exit_code}"
        )
    return answer


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + f"\n... [output cut at {limit} characters]"
