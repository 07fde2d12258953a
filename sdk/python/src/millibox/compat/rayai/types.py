# SPDX-License-Identifier: Apache-2.0
"""What the functions return."""

from __future__ import annotations

from typing import TypedDict


class ExecutionResult(TypedDict):
    """A program ended; a failed one has the status `error`."""

    status: str
    stdout: str
    stderr: str
    exit_code: int
    execution_id: str


class ExecutionError(TypedDict):
    """A program could not run, or took too long."""

    status: str
    error: str
    error_type: str
    execution_id: str


class UploadResult(TypedDict):
    """A file is written."""

    status: str
    path: str
    size: int


class UploadError(TypedDict):
    """A file could not be written."""

    status: str
    error: str
    error_type: str


class SessionStats(TypedDict):
    """What is known of a session."""

    session_id: str
    execution_count: int
    created_at: float
    uptime: float
    container_status: str


class CleanupResult(TypedDict):
    """A session is gone."""

    status: str
    session_id: str


class CleanupError(TypedDict):
    """A session could not be ended."""

    status: str
    error: str
    session_id: str
