# SPDX-License-Identifier: Apache-2.0
"""The sandbox of rayai as plain functions; `millibox.compat.rayai.remote` has them as Ray tasks, and its actor.

A session keeps variables, imports, functions and files, and ends with `cleanup_session` or after an hour without use.
Differences: a session ends a program at its time limit, and the limit does not include the start of the box. Nothing
is mounted and nothing is built: `volumes` and `dockerfile` are errors, `image` names a template.
"""

from __future__ import annotations

import secrets
import threading
import time
from datetime import datetime
from typing import Any, Callable, Dict, List, Mapping, Optional, TypeVar, Union

from ... import errors
from ..._base_errors import MilliboxError
from ..._models import Result
from ..._sync._client import Client
from ..._sync._sandbox import Sandbox
from .types import (
    CleanupError,
    CleanupResult,
    ExecutionError,
    ExecutionResult,
    SessionStats,
    UploadError,
    UploadResult,
)

__all__ = ["cleanup_session", "connect", "execute_code", "execute_shell", "get_session_stats", "upload_file"]

T = TypeVar("T")

DEFAULT_IMAGE = "python:3.12-slim"
DEFAULT_TIMEOUT = 30
MEMORY_LIMIT = "512m"
SESSION_TIMEOUT = 3600

_lock = threading.Lock()
_clients: List[Client] = []
#: Executions of each session so far, for their ids.
_counts: Dict[str, int] = {}


def connect(client: Optional[Client] = None) -> Client:
    """The client that all functions use: the given one from now on, or one with the settings of the environment."""
    with _lock:
        if client is not None:
            _clients[:] = [client]
        elif not _clients:
            _clients.append(Client())
        return _clients[0]


class _Refused(MilliboxError):
    """What a box cannot be given."""


def _open(
    session_id: str,
    image: str,
    dockerfile: Optional[str],
    environment: Optional[Mapping[str, str]],
    volumes: Optional[Mapping[str, Any]],
    mcp_allowlist: Optional[List[str]],
) -> Sandbox:
    """The session of this id, which is created if it does not exist."""
    if volumes:
        raise _Refused("volumes: nothing of the host is mounted into a box; copy files with upload_file")
    if dockerfile:
        raise _Refused("dockerfile: images are not built on request; import one as a template, and name it as image")
    if mcp_allowlist:
        raise _Refused("mcp_allowlist: which hosts a box reaches is decided by a policy of the daemon")
    client = connect()
    template = None if image == DEFAULT_IMAGE else image
    box = Sandbox(
        client, id=session_id, template=template, env=environment, memory=MEMORY_LIMIT, idle_timeout=SESSION_TIMEOUT
    )
    try:
        return box.start()
    except errors.StateConflictError:
        return Sandbox.connect(session_id, client)


def _next_id(session_id: str, kind: str) -> str:
    with _lock:
        _counts[session_id] = _counts.get(session_id, 0) + 1
        return f"{session_id}_{kind}{_counts[session_id]}"


def _new_session() -> str:
    return f"session-{secrets.token_hex(4)}-{int(time.time())}"


def _run(
    session_id: Optional[str],
    kind: str,
    words: str,
    timeout: float,
    opening: Callable[[str], Sandbox],
    run: Callable[[Sandbox], Result],
) -> Union[ExecutionResult, ExecutionError]:
    session = session_id or _new_session()
    execution = _next_id(session, kind)
    try:
        result = run(opening(session))
    except MilliboxError as e:
        return {
            "status": "error",
            "error": str(e),
            "error_type": type(e).__name__.lstrip("_"),
            "execution_id": execution,
        }
    if result.status == "timeout":
        text = f"{words} timed out after {timeout:g} seconds"
        return {"status": "error", "error": text, "error_type": "TimeoutError", "execution_id": execution}
    return {
        "status": "success" if result.ok else "error",
        "stdout": result.stdout,
        "stderr": result.stderr,
        "exit_code": -1 if result.exit_code is None else result.exit_code,
        "execution_id": execution,
    }


def execute_code(
    code: str,
    session_id: Optional[str] = None,
    image: str = DEFAULT_IMAGE,
    dockerfile: Optional[str] = None,
    environment: Optional[Dict[str, str]] = None,
    volumes: Optional[Dict[str, Dict[str, str]]] = None,
    mcp_allowlist: Optional[List[str]] = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Union[ExecutionResult, ExecutionError]:
    """Run Python code in a session, which is created if it does not exist. Never raises."""
    return _run(
        session_id,
        "",
        "Execution",
        timeout,
        lambda session: _open(session, image, dockerfile, environment, volumes, mcp_allowlist),
        lambda box: box.run_code(code, timeout=timeout, env=environment),
    )


def execute_shell(
    command: str,
    session_id: Optional[str] = None,
    image: str = DEFAULT_IMAGE,
    dockerfile: Optional[str] = None,
    environment: Optional[Dict[str, str]] = None,
    volumes: Optional[Dict[str, Dict[str, str]]] = None,
    mcp_allowlist: Optional[List[str]] = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Union[ExecutionResult, ExecutionError]:
    """Run a shell command in a session; it shares its files with `execute_code`. Never raises."""
    return _run(
        session_id,
        "shell_",
        "Shell execution",
        timeout,
        lambda session: _open(session, image, dockerfile, environment, volumes, mcp_allowlist),
        lambda box: box.run(command, timeout=timeout, env=environment),
    )


def upload_file(path: str, content: bytes, session_id: str) -> Union[UploadResult, UploadError]:
    """Write a file of a session, which must exist."""
    try:
        written = Sandbox.connect(session_id, connect()).files.write(path, content)
    except errors.SessionNotFoundError:
        return {"status": "error", "error": f"Session {session_id} not found", "error_type": "ValueError"}
    except MilliboxError as e:
        return {"status": "error", "error": str(e), "error_type": type(e).__name__}
    return {"status": "success", "path": path, "size": written.size}


def get_session_stats(session_id: str) -> SessionStats:
    """Executions and age of a session; `container_status` is `none` for one that does not exist."""
    try:
        info = Sandbox.connect(session_id, connect()).info()
    except errors.SessionNotFoundError:
        return {
            "session_id": session_id,
            "execution_count": 0,
            "created_at": 0.0,
            "uptime": 0.0,
            "container_status": "none",
        }
    created = datetime.fromisoformat(info.created_at.replace("Z", "+00:00")).timestamp()
    ended = info.state in ("terminated", "failed")
    return {
        "session_id": session_id,
        "execution_count": int(info.raw["executions"]),
        "created_at": created,
        "uptime": max(time.time() - created, 0.0),
        "container_status": "exited" if ended else "paused" if info.state == "paused" else "running",
    }


def cleanup_session(session_id: str) -> Union[CleanupResult, CleanupError]:
    """End a session and delete what is in it. One that does not exist is cleaned up already."""
    try:
        connect().request("DELETE", f"/api/v1/sessions/{session_id}")
    except errors.SessionNotFoundError:
        pass
    except MilliboxError as e:
        return {"status": "error", "error": str(e), "session_id": session_id}
    with _lock:
        _counts.pop(session_id, None)
    return {"status": "success", "session_id": session_id}
