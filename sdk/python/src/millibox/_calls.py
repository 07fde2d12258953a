# SPDX-License-Identifier: Apache-2.0
"""Every request as a value: what to send, how to read the answer, whether it may be repeated. Pure functions, used
by both clients."""

from __future__ import annotations

import base64
import json
from collections import abc
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Generic, Iterable, List, Mapping, Optional, Sequence, TypeVar, Union
from urllib.parse import quote, urlencode

from ._base_errors import MilliboxError
from ._models import FileInfo, JsonObject, PortInfo, Result, SandboxInfo

T = TypeVar("T")
V1 = "/api/v1"
NDJSON = "application/x-ndjson"
_JSON = {"Content-Type": "application/json"}
_BYTES = {"Content-Type": "application/octet-stream"}

Data = Union[str, bytes]
Content = Union[bytes, Iterable[bytes]]


def _nothing(body: bytes) -> None:
    return None


def _object(body: bytes) -> JsonObject:
    found = json.loads(body)
    return found if isinstance(found, dict) else {"value": found}


def _result(body: bytes) -> Result:
    return Result(json.loads(body))


def _sandbox(body: bytes) -> SandboxInfo:
    return SandboxInfo.of(json.loads(body))


def _ports(body: bytes) -> List[PortInfo]:
    return [PortInfo(row["port"], row["address"]) for row in json.loads(body)["ports"]]


def _file(body: bytes) -> FileInfo:
    return FileInfo.of(json.loads(body))


def _same(body: bytes) -> bytes:
    return body


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request and the reader of its answer."""

    method: str
    path: str
    parse: Callable[[bytes], T]
    content: Optional[Content] = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: A repetition has no further effect.
    repeatable: bool = False
    #: The answer comes when a program has ended: no time limit for it.
    waits: bool = False


def _get(url: str, parse: Callable[[bytes], T], **query: Any) -> Call[T]:
    return Call("GET", url + _query(query), parse, repeatable=True)


def _post(
    path: str,
    parse: Callable[[bytes], T],
    body: Optional[JsonObject] = None,
    *,
    repeatable: bool = False,
    waits: bool = False,
    headers: Optional[Mapping[str, str]] = None,
) -> Call[T]:
    content = json.dumps({} if body is None else body, separators=(",", ":")).encode()
    return Call("POST", path, parse, content, {**_JSON, **(headers or {})}, repeatable, waits)


def _query(fields: Mapping[str, Any]) -> str:
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in fields.items()
        if value is not None
    }
    return "?" + urlencode(given, quote_via=quote) if given else ""


def _given(**fields: Any) -> JsonObject:
    """Fields that have a value: others have the daemon's defaults."""
    return {name: value for name, value in fields.items() if value is not None}


def encode_bytes(name: str, data: Data) -> Union[str, Dict[str, str]]:
    """Text as it is; bytes, and text with NUL, as base64."""
    if isinstance(data, str) and "\0" not in data:
        return data
    # bytes(5) would be five NULs.
    if not isinstance(data, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"{name}: must be text or bytes, not {type(data).__name__}")
    exact = data.encode() if isinstance(data, str) else bytes(data)
    return {"base64": base64.b64encode(exact).decode()}


def resources(
    cpu: Union[None, str, float] = None,
    memory: Union[None, str, int] = None,
    disk: Union[None, str, int] = None,
    max_processes: Optional[int] = None,
    max_output: Union[None, str, int] = None,
) -> Optional[JsonObject]:
    """The field `resources`, or None without any."""
    return _given(cpu=cpu, memory=memory, disk=disk, max_processes=max_processes, max_output=max_output) or None


def words(given: Union[None, str, Sequence[str]]) -> Optional[List[str]]:
    """A list of names; one name alone is a list, too."""
    return None if given is None else [given] if isinstance(given, str) else list(given)


def mapping(name: str, given: Optional[Mapping[str, T]]) -> Optional[Dict[str, T]]:
    """A copy of it; None stays None."""
    if given is not None and not isinstance(given, abc.Mapping):
        raise TypeError(f"{name}: must be a mapping of names to values, not {type(given).__name__}")
    return None if given is None else dict(given)


def box(
    *,
    template: Optional[str] = None,
    packages: Union[None, str, Sequence[str]] = None,
    lock: Optional[str] = None,
    engine: Optional[str] = None,
    min_isolation: Optional[str] = None,
    network: Optional[str] = None,
    allow: Union[None, str, Sequence[str]] = None,
    secrets: Union[None, str, Sequence[str]] = None,
    mcp: Union[None, str, Sequence[str]] = None,
    policy: Optional[str] = None,
    limits: Optional[JsonObject] = None,
) -> JsonObject:
    """The fields of a request that say what a box is made of, and what it may reach and use."""
    return _given(
        template_id=template,
        packages=words(packages),
        lock=lock,
        engine=engine,
        min_isolation=min_isolation,
        network=network,
        network_allow=words(allow),
        secrets=words(secrets),
        mcp=words(mcp),
        policy=policy,
        resources=limits,
    )


def program(
    code: str,
    *,
    language: Optional[str] = None,
    file_name: Optional[str] = None,
    options: Optional[Mapping[str, Any]] = None,
    stdin: Optional[Data] = None,
    args: Optional[Sequence[str]] = None,
    files: Optional[Mapping[str, Data]] = None,
    env: Optional[Mapping[str, Any]] = None,
    timeout: Optional[float] = None,
    receipt: Optional[str] = None,
) -> JsonObject:
    """The fields of a request that runs code."""
    given = mapping("files", files)
    return _given(
        code=code,
        language=language,
        file_name=file_name,
        options=mapping("options", options),
        timeout=timeout,
        stdin=None if stdin is None else encode_bytes("stdin", stdin),
        args=words(args),
        files=None if given is None else {path: encode_bytes(f"files.{path}", data) for path, data in given.items()},
        env_vars=mapping("env", env),
        receipt=receipt,
    )


def handler(
    code: str, event: Mapping[str, Any], context: Optional[Mapping[str, Any]], timeout: Optional[float]
) -> JsonObject:
    """The fields of a request that calls a handler."""
    return _given(
        handler_code=code, event=dict(event), timeout=timeout, context=None if context is None else dict(context)
    )


# One execution in a new box.


def _snippet(body: JsonObject) -> JsonObject:
    """Code whose language is not certain is Python, as everywhere but in plain REST."""
    return body if "language" in body else {**body, "default_language": "python"}


def execute(body: JsonObject) -> Call[Result]:
    return _post(f"{V1}/execute", _result, _snippet(body), waits=True)


def execute_stream(body: JsonObject) -> Call[bytes]:
    return _post(f"{V1}/execute", _same, _snippet(body), waits=True, headers={"Accept": NDJSON})


# Sessions.


def session_body(
    box: JsonObject,
    *,
    id: Optional[str],
    language: Optional[str],
    env: Optional[Mapping[str, Any]],
    idle_timeout: Optional[float],
    lifetime: Optional[float],
) -> JsonObject:
    own = _given(
        mode="persistent",
        id=id,
        language=language,
        env_vars=mapping("env", env),
        timeout=idle_timeout,
        lifetime=lifetime,
    )
    return {**own, **box}


def session_create(body: JsonObject) -> Call[SandboxInfo]:
    # Packages are installed first.
    return _post(f"{V1}/sessions", _sandbox, body, waits="packages" in body or "lock" in body)


def session_show(id: str) -> Call[SandboxInfo]:
    return _get(_session(id), _sandbox)


def session_list(state: Optional[str], limit: int, offset: int) -> Call[JsonObject]:
    return _get(f"{V1}/sessions", _object, status=state, limit=limit, offset=offset)


def session_delete(id: str) -> Call[None]:
    return Call("DELETE", _session(id), _nothing, repeatable=True)


def session_act(id: str, verb: str) -> Call[SandboxInfo]:
    """pause, resume and keepalive have no further effect when repeated; a second interrupt has."""
    return _post(f"{_session(id)}/{verb}", _sandbox, repeatable=verb != "interrupt")


def session_install(
    id: str, packages: Sequence[str], language: Optional[str], lock: Optional[str]
) -> Call[bytes]:
    body = _given(packages=list(packages) or None, language=language, lock=lock, stream=True)
    return _post(f"{_session(id)}/packages", _same, body, waits=True)


def session_ports(id: str) -> Call[List[PortInfo]]:
    return _get(f"{_session(id)}/ports", _ports)


def session_port(id: str, port: int) -> str:
    """The path of a WebSocket."""
    return f"{_session(id)}/ports/{int(port)}"


def session_stats(id: str) -> Call[JsonObject]:
    return _get(f"{_session(id)}/stats", _object)


def session_executions(id: str, limit: int, offset: int) -> Call[JsonObject]:
    return _get(f"{_session(id)}/executions", _object, limit=limit, offset=offset)


def session_start(id: str, body: JsonObject) -> Call[JsonObject]:
    return _post(f"{_session(id)}/execute", _object, body)


def session_stream(id: str, body: JsonObject) -> Call[bytes]:
    return _post(f"{_session(id)}/execute", _same, body, waits=True, headers={"Accept": NDJSON})


def _session(id: str) -> str:
    return f"{V1}/sessions/{quote(id, safe='')}"


# Executions.


def execution_show(id: str) -> Call[JsonObject]:
    return _get(_execution(id), _object)


def execution_events(id: str, after: int = 0, follow: bool = True) -> Call[bytes]:
    path = f"{_execution(id)}/events" + _query({"after": after, "follow": None if follow else False})
    return Call("GET", path, _same, headers={"Accept": NDJSON}, repeatable=True, waits=True)


def execution_result(id: str) -> Call[Result]:
    return _get(f"{_execution(id)}/result", _result)


def execution_cancel(id: str) -> Call[JsonObject]:
    return _post(f"{_execution(id)}/cancel", _object, repeatable=True)


def execution_stdin(id: str, data: Data, end: bool) -> Call[JsonObject]:
    body: JsonObject = {"end": end}
    if data:
        body["data"] = encode_bytes("data", data)
    return _post(f"{_execution(id)}/stdin", _object, body)


def execution_resize(id: str, rows: int, cols: int) -> Call[JsonObject]:
    return _post(f"{_execution(id)}/resize", _object, {"rows": rows, "cols": cols})


def _execution(id: str) -> str:
    return f"{V1}/executions/{quote(id, safe='')}"


# Files. Paths are those of the workspace; /workspace/x and x are the same file.


def file_path(path: str) -> str:
    """A path below the workspace, as the daemon wants it."""
    text = str(path)
    if text == "/workspace" or text.startswith("/workspace/"):
        text = text[len("/workspace") :].lstrip("/")
    while text.startswith("./"):
        text = text[2:].lstrip("/")
    if ".." in text.split("/"):
        raise MilliboxError(f"a path in a sandbox must not contain '..': {text!r}")
    return "" if text == "." else text


def _file_url(id: str, path: str, **query: Any) -> str:
    return f"{_session(id)}/files/{quote(file_path(path), safe='/')}{_query(query)}"


def file_read(id: str, path: str, offset: int = 0, length: Optional[int] = None) -> Call[bytes]:
    headers: Dict[str, str] = {}
    if offset or length is not None:
        last = "" if length is None else str(offset + length - 1)
        headers["Range"] = f"bytes={offset}-{last}"
    return Call("GET", _file_url(id, path), _same, headers=headers, repeatable=True)


def file_write(id: str, path: str, content: Content, mode: Optional[int]) -> Call[FileInfo]:
    url = _file_url(id, path, mode=None if mode is None else f"{mode:04o}")
    return Call("PUT", url, _file, content, _BYTES, repeatable=isinstance(content, bytes))


def file_stat(id: str, path: str) -> Call[FileInfo]:
    return _get(_file_url(id, path, stat=True), _file)


def file_list(id: str, path: str, recursive: bool, after: Optional[str]) -> Call[JsonObject]:
    return _get(f"{_session(id)}/files", _object, path=file_path(path), recursive=recursive or None, after=after)


def file_move(id: str, path: str, to: str, replace: bool) -> Call[FileInfo]:
    return _post(
        f"{_session(id)}/files/move", _file, {"path": file_path(path), "to": file_path(to), "replace": replace}
    )


def file_mkdir(id: str, path: str, parents: bool) -> Call[FileInfo]:
    # Without parents, a directory that exists is an error: a repetition would fail.
    return _post(
        f"{_session(id)}/files/mkdir", _file, {"path": file_path(path), "parents": parents}, repeatable=parents
    )


def file_remove(id: str, path: str, recursive: bool) -> Call[None]:
    return Call("DELETE", _file_url(id, path, recursive=recursive or None), _nothing, repeatable=True)


def tar_read(id: str, path: str) -> Call[bytes]:
    return Call("GET", _file_url(id, path, format="tar"), _same, repeatable=True)


def tar_write(id: str, path: str, content: Content) -> Call[JsonObject]:
    return Call("PUT", _file_url(id, path, format="tar"), _object, content, {"Content-Type": "application/x-tar"})


# The rest of the daemon.


def show(path: str) -> Call[JsonObject]:
    return _get(path, _object)


def languages(template: Optional[str], check: Optional[str]) -> Call[JsonObject]:
    return _get("/api/v1/languages", _object, template_id=template, check=check)


def page(path: str, limit: int, offset: int) -> Call[JsonObject]:
    return _get(path, _object, limit=limit, offset=offset)


def any_request(method: str, path: str, body: Optional[JsonObject]) -> Call[JsonObject]:
    def parse(answer: bytes) -> JsonObject:
        return _object(answer) if answer else {}

    content = None if body is None else json.dumps(body).encode()
    return Call(
        method, path, parse, content, _JSON if content else {}, repeatable=method in ("GET", "HEAD", "PUT", "DELETE")
    )


def items(answer: JsonObject) -> List[JsonObject]:
    """The entries of a page."""
    return list(answer.get("items") or [])
