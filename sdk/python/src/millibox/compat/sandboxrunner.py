# SPDX-License-Identifier: Apache-2.0
"""SandboxRunner's Python client: the same classes and answers, over the daemon's `/mcp/tools`.

Difference: without `base_url` the daemon is found like by `millibox.Client`; the original uses port 8080.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from typing import Any, Callable, Dict, List, Optional

from .. import errors
from .._base_errors import MilliboxError
from .._sync._client import Client

_log = logging.getLogger(__name__)
_RUN_SECONDS = {"run_go": 60, "run_rust": 60}


class NetworkMode(Enum):
    """Network of a sandbox; more than a policy allows is refused."""

    NONE = "none"
    BRIDGE = "bridge"
    HOST = "host"


class SandboxStatus(Enum):
    """Values of `Sandbox.status`."""

    CREATING = "creating"
    RUNNING = "running"
    STOPPED = "stopped"
    ERROR = "error"


@dataclass
class ExecutionResult:
    """How a program ended."""

    text: str
    is_error: bool
    language: str
    exit_code: int
    stdout: str
    stderr: str
    duration: float
    timed_out: bool
    metadata: Optional[Dict[str, Any]] = None

    @property
    def success(self) -> bool:
        """Whether it succeeded."""
        return not self.is_error and self.exit_code == 0

    def print_output(self) -> None:
        """Print both streams, each below its name."""
        for name, text in (("STDOUT:", self.stdout), ("STDERR:", self.stderr)):
            if text:
                print(f"{name}\n{text}")
        if self.timed_out:
            print("WARNING: Execution timed out")


@dataclass
class FileInfo:
    """A file or directory."""

    name: str
    path: str
    size: int
    is_dir: bool
    mode: Optional[str] = None
    modified: Optional[str] = None


@dataclass
class SandboxInfo:
    """A sandbox as the daemon lists it."""

    id: str
    container_id: str
    status: str
    working_dir: str
    created_at: str
    updated_at: Optional[str] = None
    config: Optional[Dict[str, Any]] = None
    metadata: Optional[Dict[str, Any]] = None


class SandboxRunnerError(Exception):
    """Root of the exceptions."""

    def __init__(self, message: str, code: Optional[str] = None, details: Optional[str] = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class SandboxNotFoundError(SandboxRunnerError):
    """The sandbox is gone."""


class ExecutionError(SandboxRunnerError):
    """A tool failed."""


class APIError(SandboxRunnerError):
    """The daemon refused a request, or could not be reached."""


def _runner(tool: str) -> Callable[..., ExecutionResult]:
    """The method of the client that runs code with a tool."""

    def run(
        self: SandboxRunner,
        sandbox_id: str,
        code: str,
        packages: Optional[List[str]] = None,
        files: Optional[Dict[str, str]] = None,
        options: Optional[Dict[str, str]] = None,
        environment: Optional[Dict[str, str]] = None,
        working_dir: Optional[str] = None,
        timeout: int = _RUN_SECONDS.get(tool, 30),
        stdin: Optional[str] = None,
    ) -> ExecutionResult:
        more = {"working_dir": working_dir, "stdin": stdin}
        arguments = {
            "sandbox_id": sandbox_id,
            "code": code,
            "packages": packages or [],
            "files": files or {},
            "options": options or {},
            "environment": environment or {},
            "timeout": timeout,
            **{name: value for name, value in more.items() if value},
        }
        return self._execute(tool, arguments)

    run.__name__, run.__doc__ = tool, f"Run code with the tool {tool}. Failed code is a result."
    return run


def _bound(tool: str) -> Callable[..., ExecutionResult]:
    """The method of a sandbox that runs code with a tool."""

    def run(
        self: Sandbox,
        code: str,
        packages: Optional[List[str]] = None,
        files: Optional[Dict[str, str]] = None,
        options: Optional[Dict[str, str]] = None,
        environment: Optional[Dict[str, str]] = None,
        timeout: int = _RUN_SECONDS.get(tool, 30),
        stdin: Optional[str] = None,
    ) -> ExecutionResult:
        found: Callable[..., ExecutionResult] = getattr(self.client, tool)
        return found(self.id, code, packages, files, options, environment, None, timeout, stdin)

    run.__name__, run.__doc__ = tool, f"Run code with the tool {tool}. Failed code is a result."
    return run


class SandboxRunner:
    """A client of the tools."""

    def __init__(
        self,
        base_url: Optional[str] = None,
        api_key: Optional[str] = None,
        timeout: float = 30,
        verify_ssl: bool = True,
    ) -> None:
        if not verify_ssl:
            raise SandboxRunnerError("certificates are always verified: name the authority with MILLIBOX_CA_FILE")
        self.base_url = base_url
        self.timeout = timeout
        # A request that runs code may take as long as the code: its own limit is at most 300 s.
        self._client = Client(base_url, api_key=api_key, timeout=max(timeout, 330))

    def _call(self, tool: str, arguments: Dict[str, Any]) -> Dict[str, Any]:
        try:
            return self._client.request("POST", f"/mcp/tools/{tool}", arguments)
        except errors.ApiError as e:
            raise APIError(f"Request failed: {e}", e.code, e.detail) from e
        except MilliboxError as e:
            raise APIError(f"Request failed: {e}") from e

    def _ask(self, tool: str, arguments: Dict[str, Any]) -> Dict[str, Any]:
        """The metadata of an answer that is no error."""
        answer = self._call(tool, arguments)
        metadata: Dict[str, Any] = answer.get("metadata") or {}
        if answer.get("is_error"):
            raise ExecutionError(answer.get("text") or "Unknown error", metadata.get("code"), metadata.get("details"))
        return metadata

    def _execute(self, tool: str, arguments: Dict[str, Any]) -> ExecutionResult:
        answer = self._call(tool, arguments)
        found = answer.get("metadata") or {}
        return ExecutionResult(
            answer.get("text", ""),
            bool(answer.get("is_error")),
            found.get("language", ""),
            found.get("exit_code", 0),
            found.get("stdout", ""),
            found.get("stderr", ""),
            found.get("duration", 0.0),
            bool(found.get("timed_out")),
            found,
        )

    def create_sandbox(
        self,
        image: str = "ubuntu:22.04",
        workspace_dir: str = "/workspace",
        environment: Optional[Dict[str, str]] = None,
        cpu_limit: Optional[str] = None,
        memory_limit: Optional[str] = None,
        disk_limit: Optional[str] = None,
        network_mode: NetworkMode = NetworkMode.NONE,
    ) -> Sandbox:
        """Create a sandbox; `image` names a template or a common image that maps to one."""
        given = {
            "environment": environment,
            "cpu_limit": cpu_limit,
            "memory_limit": memory_limit,
            "disk_limit": disk_limit,
        }
        arguments = {"image": image, "workspace_dir": workspace_dir, "network_mode": network_mode.value}
        found = self._ask("create_sandbox", {**arguments, **{name: value for name, value in given.items() if value}})
        info = SandboxInfo(
            found["sandbox_id"],
            found.get("container_id") or "",
            found.get("status", "unknown"),
            workspace_dir,
            found.get("created_at", ""),
            config=found.get("config"),
            metadata=found,
        )
        _log.info("Created sandbox %s", info.id)
        return Sandbox(self, info)

    def list_sandboxes(self) -> List[SandboxInfo]:
        """All sandboxes."""
        return [
            SandboxInfo(
                found["id"],
                found.get("container_id") or "",
                found.get("status", "unknown"),
                found.get("working_dir", "/workspace"),
                found.get("created_at", ""),
                metadata=found,
            )
            for found in self._ask("list_sandboxes", {}).get("sandboxes", [])
        ]

    def terminate_sandbox(self, sandbox_id: str) -> None:
        """End a sandbox."""
        self._ask("terminate_sandbox", {"sandbox_id": sandbox_id})
        _log.info("Terminated sandbox %s", sandbox_id)

    run_python = _runner("run_python")
    run_javascript = _runner("run_javascript")
    run_typescript = _runner("run_typescript")
    run_go = _runner("run_go")
    run_rust = _runner("run_rust")
    run_shell = _runner("run_shell")

    def exec_command(
        self,
        sandbox_id: str,
        command: str,
        working_dir: Optional[str] = None,
        environment: Optional[Dict[str, str]] = None,
        timeout: int = 30,
    ) -> ExecutionResult:
        """Run a shell command."""
        arguments: Dict[str, Any] = {"sandbox_id": sandbox_id, "command": command, "timeout": timeout}
        if working_dir:
            arguments["working_dir"] = working_dir
        if environment:
            arguments["environment"] = environment
        return self._execute("exec_command", arguments)

    def upload_file(self, sandbox_id: str, path: str, content: str, encoding: str = "utf8") -> None:
        """Write a file: text, or base64."""
        self._ask("upload_file", {"sandbox_id": sandbox_id, "path": path, "content": content, "encoding": encoding})

    def write_file(self, sandbox_id: str, path: str, content: str, encoding: str = "utf8") -> None:
        """The same."""
        self._ask("write_file", {"sandbox_id": sandbox_id, "path": path, "content": content, "encoding": encoding})

    def download_file(self, sandbox_id: str, path: str, encoding: str = "utf8") -> str:
        """The content of a file."""
        return str(
            self._ask("download_file", {"sandbox_id": sandbox_id, "path": path, "encoding": encoding})["content"]
        )

    def read_file(self, sandbox_id: str, path: str, encoding: str = "utf8", max_size: Optional[int] = None) -> str:
        """The content of a file, up to a size."""
        arguments: Dict[str, Any] = {"sandbox_id": sandbox_id, "path": path, "encoding": encoding}
        if max_size:
            arguments["max_size"] = max_size
        return str(self._ask("read_file", arguments)["content"])

    def list_files(self, sandbox_id: str, path: str = "/workspace", recursive: bool = False) -> List[FileInfo]:
        """Entries of a directory."""
        found = self._ask("list_files", {"sandbox_id": sandbox_id, "path": path, "recursive": recursive})
        return [
            FileInfo(
                entry["name"], entry["path"], entry["size"], entry["is_dir"], entry.get("mode"), entry.get("modified")
            )
            for entry in found.get("files", [])
        ]


class Sandbox:
    """A sandbox; as a context manager it terminates at the end."""

    def __init__(self, client: SandboxRunner, sandbox_info: SandboxInfo) -> None:
        self.client = client
        self.info = sandbox_info

    @property
    def id(self) -> str:
        """Its id."""
        return self.info.id

    @property
    def status(self) -> str:
        """Its status now."""
        for found in self.client.list_sandboxes():
            if found.id == self.id:
                self.info = found
                return found.status
        raise SandboxNotFoundError(f"Sandbox {self.id} not found")

    run_python = _bound("run_python")
    run_javascript = _bound("run_javascript")
    run_typescript = _bound("run_typescript")
    run_go = _bound("run_go")
    run_rust = _bound("run_rust")
    run_shell = _bound("run_shell")

    def exec_command(
        self,
        command: str,
        working_dir: Optional[str] = None,
        environment: Optional[Dict[str, str]] = None,
        timeout: int = 30,
    ) -> ExecutionResult:
        """Run a shell command."""
        return self.client.exec_command(self.id, command, working_dir, environment, timeout)

    def upload_file(self, path: str, content: str, encoding: str = "utf8") -> None:
        """Write a file: text, or base64."""
        self.client.upload_file(self.id, path, content, encoding)

    def write_file(self, path: str, content: str, encoding: str = "utf8") -> None:
        """The same."""
        self.client.write_file(self.id, path, content, encoding)

    def download_file(self, path: str, encoding: str = "utf8") -> str:
        """The content of a file."""
        return self.client.download_file(self.id, path, encoding)

    def read_file(self, path: str, encoding: str = "utf8", max_size: Optional[int] = None) -> str:
        """The content of a file, up to a size."""
        return self.client.read_file(self.id, path, encoding, max_size)

    def list_files(self, path: str = "/workspace", recursive: bool = False) -> List[FileInfo]:
        """Entries of a directory."""
        return self.client.list_files(self.id, path, recursive)

    def terminate(self) -> None:
        """End it."""
        self.client.terminate_sandbox(self.id)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self.terminate()
        except SandboxRunnerError as e:
            _log.warning("Failed to terminate sandbox %s: %s", self.id, e)


def create_sandbox(image: str = "ubuntu:22.04", **settings: Any) -> Sandbox:
    """A sandbox of a client with default settings."""
    return SandboxRunner().create_sandbox(image, **settings)


def quick_python(code: str, packages: Optional[List[str]] = None, image: str = "python:3.11") -> ExecutionResult:
    """Run Python code in a sandbox of its own."""
    with create_sandbox(image) as sandbox:
        return sandbox.run_python(code, packages)


def quick_javascript(code: str, packages: Optional[List[str]] = None, image: str = "node:18") -> ExecutionResult:
    """Run JavaScript code in a sandbox of its own."""
    with create_sandbox(image) as sandbox:
        return sandbox.run_javascript(code, packages)
