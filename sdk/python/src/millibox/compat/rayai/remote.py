# SPDX-License-Identifier: Apache-2.0
"""The functions of `millibox.compat.rayai` as Ray tasks, and its actor. Needs ray.

    ray.get(execute_code.remote("print(1)", session_id="a"))

Workers find the daemon by MILLIBOX_SOCKET or MILLIBOX_URL in their environment.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

import ray

from .. import rayai

execute_code: Any = ray.remote(rayai.execute_code)
execute_shell: Any = ray.remote(rayai.execute_shell)
upload_file: Any = ray.remote(rayai.upload_file)
get_session_stats: Any = ray.remote(rayai.get_session_stats)
cleanup_session: Any = ray.remote(rayai.cleanup_session)

_NAMESPACE = "sandbox"


class Executor:
    """One session: what the actor `code-executor-SESSION` does."""

    def __init__(self, session_id: str, **options: Any) -> None:
        self._session = session_id
        self._options = options

    def execute_code(self, code: str, timeout: float = rayai.DEFAULT_TIMEOUT) -> Dict[str, Any]:
        """Run Python code."""
        return dict(rayai.execute_code(code, self._session, timeout=timeout, **self._options))

    def execute_shell(self, command: str, timeout: float = rayai.DEFAULT_TIMEOUT) -> Dict[str, Any]:
        """Run a shell command."""
        return dict(rayai.execute_shell(command, self._session, timeout=timeout, **self._options))

    def upload_file(self, path: str, content: bytes) -> Dict[str, Any]:
        """Write a file of the session, which must exist."""
        return dict(rayai.upload_file(path, content, self._session))

    def get_session_stats(self) -> Dict[str, Any]:
        """Executions and age."""
        return dict(rayai.get_session_stats(self._session))

    def cleanup(self) -> Dict[str, Any]:
        """End the session."""
        return dict(rayai.cleanup_session(self._session))


CodeInterpreterExecutor: Any = ray.remote(Executor)


def get_executor(session_id: str, lifetime: Optional[str] = "detached", **options: Any) -> Any:
    """The actor of a session, which is started if it does not run."""
    made = CodeInterpreterExecutor.options(
        name=f"code-executor-{session_id}", namespace=_NAMESPACE, get_if_exists=True, lifetime=lifetime, num_cpus=0
    )
    return made.remote(session_id, **options)
