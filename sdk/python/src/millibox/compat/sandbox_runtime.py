# SPDX-License-Identifier: Apache-2.0
"""sandbox-runtime's asynchronous SDK: `SharedEnvSandbox`, and the simple `SandboxClient` of its guide, over
`/workspace/se`.

Differences: without `servers` the daemon is found like by `millibox.Client`. `list_files(recursive=True)` is
recursive. Code is sent as it is: the original replaces literal backslash sequences in code without a newline.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import secrets
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union
from urllib.parse import quote, urlencode

from .._async._client import AsyncClient
from .._base_errors import ApiError, MilliboxError
from .._calls import Call, file_path

_PREFIX = "/workspace/se"
_TIMEOUT_S = 300.0
_turns = itertools.count()


class SandboxError(Exception):
    """A request failed."""

    def __init__(
        self,
        message: str,
        original_error: Optional[Exception] = None,
        context: Optional[Dict[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.original_error = original_error
        self.context = context or {}

    def to_dict(self) -> Dict[str, Any]:
        """As an object."""
        return {"message": self.message, "original_error": str(self.original_error), "context": self.context}

    def __str__(self) -> str:
        return json.dumps(self.to_dict(), indent=2)


def _choose(servers: Sequence[str], how: str, session_id: str) -> str:
    """One of several servers. A session must stay on its server: mod always chooses the same one."""
    if how == "random":
        return random.choice(servers)
    if how == "round_robin":
        return servers[next(_turns) % len(servers)]
    return servers[zlib.crc32(session_id.encode()) % len(servers)]


class _Dialect:
    """Requests of one server."""

    def __init__(self, url: Optional[str]) -> None:
        self.client = AsyncClient(url, timeout=_TIMEOUT_S)

    async def ask(self, method: str, path: str, body: Optional[Dict[str, Any]] = None) -> Any:
        """The answer's `result`, or the answer."""
        answer = await self._guard(method, path, self.client.request(method, _PREFIX + path, body))
        return answer.get("result", answer)

    async def send(self, call: Call[Any]) -> Any:
        return await self._guard(call.method, call.path, self.client._transport.call(call))

    @staticmethod
    async def _guard(method: str, path: str, answer: Any) -> Any:
        context: Dict[str, Any] = {"method": method, "path": path}
        try:
            return await answer
        except ApiError as e:
            context.update(status=e.status, err_msg=e.detail)
            raise SandboxError(
                f"HTTP request failed: {method} {path} - Status: {e.status}, Message: {e}", e, context
            ) from e
        except MilliboxError as e:
            raise SandboxError(f"Network request failed: {method} {path} - {e}", e, context) from e


class SharedEnvSandbox:
    """A workspace with a name. Every call creates it if it does not exist."""

    def __init__(
        self,
        session_id: str,
        server_selector_type: str = "static",
        server_selector_params: Optional[Mapping[str, Any]] = None,
        servers: Optional[Sequence[str]] = None,
        **options: Any,
    ) -> None:
        if not session_id:
            raise ValueError("session_id is required")
        if server_selector_type != "static":
            raise ValueError(
                f"server_selector_type '{server_selector_type}' is not supported: list the servers (static)"
            )
        params = {**(server_selector_params or {}), **options}
        known = servers or params.get("servers") or []
        self.session_id = session_id
        url = _choose(known, str(params.get("strategy", "mod")), session_id) if known else None
        self._dialect = _Dialect(url)
        self._id = quote(session_id, safe="")

    async def create_session(self, size: str = "50M") -> str:
        """Create the workspace. Return: its id. One that exists is an error."""
        return str(await self._dialect.ask("POST", f"/session/{self._id}", {"size": size}))

    async def delete_session(self) -> bool:
        """Delete it."""
        await self._dialect.ask("DELETE", f"/session/{self._id}")
        return True

    async def upload_file(self, file_path: Union[str, Path], target_filename: Optional[str] = None) -> Dict[str, Any]:
        """Copy a local file into it."""
        source = Path(file_path)
        if not source.is_file():
            raise SandboxError(
                f"File not found: {source}", context={"file_path": str(source), "session_id": self.session_id}
            )
        target = target_filename or source.name
        boundary = secrets.token_hex(16)
        path = f"{_PREFIX}/upload/{self._id}?" + urlencode({"filename": target}, quote_via=quote)
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        call = Call("POST", path, json.loads, _form(source, boundary), headers)
        answer = await self._dialect.send(call)
        return dict(answer.get("result", answer))

    async def download_file(self, filename: str, target_path: Union[str, Path]) -> bool:
        """Copy a file out of it."""
        target = Path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        call = Call("GET", f"{_PREFIX}/download/{self._id}/{quote(filename)}", _bytes, repeatable=True)
        data = await self._dialect.send(call)
        target.write_bytes(data)
        return True

    async def create_file(self, content: str, filename: str, mode: int = 0o644) -> Dict[str, Any]:
        """Write a file."""
        body = {"content": content, "filename": filename, "mode": mode}
        return dict(await self._dialect.ask("POST", f"/create/{self._id}", body))

    async def execute(self, command: str, *args: str) -> Dict[str, Any]:
        """Run a command."""
        return dict(await self._dialect.ask("POST", f"/execute/{self._id}", {"command": command, "args": list(args)}))

    async def execute_code(
        self,
        code: str,
        filename: Optional[str] = None,
        args: Optional[List[str]] = None,
        script_type: str = "python",
        output_params: Optional[List[str]] = None,
    ) -> Dict[str, Any]:
        """Run code as a file; `output_params` are variables whose values come back in `output_variables`."""
        body: Dict[str, Any] = {
            "code": code,
            "args": args or [],
            "script_type": script_type,
            "output_params": output_params or [],
        }
        if filename:
            body["filename"] = filename
        return dict(await self._dialect.ask("POST", f"/execute_code/{self._id}", body))

    async def list_files(self, directory: str = "", recursive: bool = False) -> List[Dict[str, Any]]:
        """Entries of a directory."""
        path = f"/files/{self._id}" + (f"/{quote(file_path(directory))}" if directory else "")
        answer = await self._dialect.ask("GET", f"{path}?recursive={'true' if recursive else 'false'}")
        return list(answer["files"])

    async def read_file(self, filename: str, offset: int = 0, buffer_size: int = 4096) -> Dict[str, Any]:
        """A part of a file: `content`, `is_binary`, `offset` of the next part, `size`, `is_eof`."""
        query = urlencode({"offset": offset, "buffer_size": buffer_size})
        return dict(await self._dialect.ask("GET", f"/readfile/{self._id}/{quote(filename)}?{query}"))

    async def get_status(self) -> Dict[str, Any]:
        """What is known of the workspace."""
        return dict(await self._dialect.ask("GET", f"/status/{self._id}"))

    async def download_from_efast(self, **body: Any) -> Dict[str, Any]:
        """Documents of an external store; the daemon reports that it reaches none."""
        return dict(await self._dialect.ask("POST", f"/download_from_efast/{self._id}", body))

    async def close(self) -> None:
        """Close the connections; the workspace stays."""
        await self._dialect.client.aclose()

    async def __aenter__(self) -> SharedEnvSandbox:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


def _bytes(body: bytes) -> bytes:
    return body


def _form(source: Path, boundary: str) -> Iterator[bytes]:
    """A form with one file, piece by piece."""
    yield (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="file"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    with open(os.fspath(source), "rb") as file:
        while True:
            piece = file.read(65536)
            if not piece:
                break
            yield piece
    yield f"\r\n--{boundary}--\r\n".encode()


class SandboxClient:
    """The simple client of the guide. Results have `exit_code`, `stdout`, `stderr` as attributes."""

    def __init__(self, base_url: Optional[str] = None) -> None:
        self._dialect = _Dialect(base_url)

    async def create_session(self, session_id: str, size: str = "100M", **settings: Any) -> SimpleNamespace:
        """Create a workspace."""
        await self._dialect.ask("POST", f"/session/{quote(session_id, safe='')}", {"size": size, **settings})
        return SimpleNamespace(session_id=session_id)

    async def execute_code(self, session_id: str, code: str, **options: Any) -> SimpleNamespace:
        """Run code in a workspace."""
        answer = await self._dialect.ask(
            "POST", f"/execute_code/{quote(session_id, safe='')}", {"code": code, **options}
        )
        return SimpleNamespace(**answer)

    async def close_session(self, session_id: str) -> None:
        """Delete a workspace."""
        await self._dialect.ask("DELETE", f"/session/{quote(session_id, safe='')}")

    async def close(self) -> None:
        """Close the connections."""
        await self._dialect.client.aclose()
