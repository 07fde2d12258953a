# Made by sdk/python/generate.py from _async/_client.py; do not edit.
# SPDX-License-Identifier: Apache-2.0
"""A daemon: single executions, and everything that is not a sandbox."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Iterator, Callable, Dict, List, Mapping, Optional, Sequence, Type, Union
from urllib.parse import quote

from .. import _calls
from .._calls import Data
from .._endpoint import find_endpoint
from .._follow import Cursor
from .._models import Event, JsonObject, Result, SandboxInfo
from . import _io
from ._execution import Execution, OnResult, OnOutput, collect
from ._transport import Transport

Size = Union[None, str, int]
Names = Union[None, str, Sequence[str]]
_PAGE = 200


class Client:
    """A client of one daemon. It keeps connections; close it, or use it as a context manager.

    - @url: such as `http://127.0.0.1:8000`; @socket: the path of a Unix socket. By default MILLIBOX_SOCKET,
      MILLIBOX_URL, or the socket of the user's or the system's daemon.
    - @api_key: by default MILLIBOX_API_KEY, or the content of the file MILLIBOX_API_KEY_FILE. @ca_file: authorities
      for https.
    - @timeout: seconds until a request that waits for no program is given up.
    - @busy_timeout: seconds for which a request is sent again that the daemon refused because it was busy; nothing
      was begun then.
    - @retries: how often a request is sent again after a failed connection where that has no second effect: nothing
      was sent, or the request is idempotent.
    - @reattach: seconds for which a broken stream of a sandbox is tried again; a daemon that restarts keeps
      sandboxes.
    - @connections: how many programs may be on their way at a time; further calls wait for their turn. Streams and
      calls with callbacks are not counted, because their readers could wait for each other.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        socket: Optional[str] = None,
        api_key: Optional[str] = None,
        ca_file: Optional[str] = None,
        timeout: float = 60.0,
        retries: int = 3,
        reattach: float = 60.0,
        busy_timeout: float = 300.0,
        connections: int = 64,
    ) -> None:
        endpoint = find_endpoint(url, socket, api_key, ca_file)
        self._transport = Transport(endpoint, timeout, retries, reattach, busy_timeout, connections)
        self._on_close: List[Callable[[], None]] = []

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()
        while self._on_close:
            self._on_close.pop()()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def run_code(
        self,
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
        cpu: Union[None, str, float] = None,
        memory: Size = None,
        disk: Size = None,
        max_processes: Optional[int] = None,
        max_output: Size = None,
        template: Optional[str] = None,
        packages: Names = None,
        lock: Optional[str] = None,
        engine: Optional[str] = None,
        min_isolation: Optional[str] = None,
        network: Optional[str] = None,
        allow: Names = None,
        secrets: Names = None,
        mcp: Names = None,
        policy: Optional[str] = None,
        receipt: Optional[str] = None,
        on_stdout: OnOutput = None,
        on_stderr: OnOutput = None,
        on_result: OnResult = None,
        on_install: OnOutput = None,
    ) -> Result:
        """Run code once in a new box, and wait for its end. Callbacks get output while it runs. If the caller is
        interrupted, the program is killed.

        - @file_name: its extension selects the language where @language is not given.
        - @options: those of the language, such as `{"std": "c++20"}`; `languages` lists them.
        - @packages: of the language's registry, like `numpy==2.1`, or @lock: the text of a lock file. What the box
          lacks is installed first; @on_install gets the output of the package manager. A failure is an
          `errors.InstallFailedError`, whose `log` has its last output.
        - @engine: who makes the box, or `auto`. @min_isolation: `namespace`, `gvisor` or `vm`, the least grade.
        - @network: `none` or `allowlist`. @allow: the hosts that it reaches, and no others, like `api.example.com` or
          `pypi`; more than the policy grants or lets requests name is an `errors.PolicyDeniedError`.
        - @secrets: names of secrets that the proxy adds to requests.
        - @mcp: tools of outside MCP servers that the code may call, like `github/search`.
        - @policy: applies besides that of the tenant.
        - @receipt: `plain` for all of `Result.isolation`; `signed` for `Result.receipt` besides.
        """
        program = _calls.program(
            code,
            language=language,
            file_name=file_name,
            options=options,
            stdin=stdin,
            args=args,
            files=files,
            env=env,
            timeout=timeout,
            receipt=receipt,
        )
        box = _calls.box(
            template=template,
            packages=packages,
            lock=lock,
            engine=engine,
            min_isolation=min_isolation,
            network=network,
            allow=allow,
            secrets=secrets,
            mcp=mcp,
            policy=policy,
            limits=_calls.resources(cpu, memory, disk, max_processes, max_output),
        )
        if on_stdout is None and on_stderr is None and on_result is None and on_install is None:
            return self._transport.call(_calls.execute({**program, **box}))
        with _io.closing(self._follow({**program, **box})) as events:
            return collect(events, on_stdout, on_stderr, on_result, on_install)

    def stream(
        self,
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
        cpu: Union[None, str, float] = None,
        memory: Size = None,
        disk: Size = None,
        max_processes: Optional[int] = None,
        max_output: Size = None,
        template: Optional[str] = None,
        packages: Names = None,
        lock: Optional[str] = None,
        engine: Optional[str] = None,
        min_isolation: Optional[str] = None,
        network: Optional[str] = None,
        allow: Names = None,
        secrets: Names = None,
        mcp: Names = None,
        policy: Optional[str] = None,
        receipt: Optional[str] = None,
    ) -> Iterator[Event]:
        """Run code once in a new box and yield its events; arguments as of `run_code`. A reader that stops early ends
        the program."""
        program = _calls.program(
            code,
            language=language,
            file_name=file_name,
            options=options,
            stdin=stdin,
            args=args,
            files=files,
            env=env,
            timeout=timeout,
            receipt=receipt,
        )
        box = _calls.box(
            template=template,
            packages=packages,
            lock=lock,
            engine=engine,
            min_isolation=min_isolation,
            network=network,
            allow=allow,
            secrets=secrets,
            mcp=mcp,
            policy=policy,
            limits=_calls.resources(cpu, memory, disk, max_processes, max_output),
        )
        with _io.closing(self._follow({**program, **box})) as events:
            for event in events:
                yield event

    def _follow(self, body: JsonObject) -> Iterator[Event]:
        with _io.closing(self._transport.follow(_calls.execute_stream(body), Cursor())) as events:
            for event in events:
                yield event

    def call(
        self,
        handler_code: str,
        event: Mapping[str, Any],
        *,
        context: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        cpu: Union[None, str, float] = None,
        memory: Size = None,
        disk: Size = None,
        max_processes: Optional[int] = None,
        template: Optional[str] = None,
        packages: Names = None,
        lock: Optional[str] = None,
        engine: Optional[str] = None,
        min_isolation: Optional[str] = None,
        network: Optional[str] = None,
        allow: Names = None,
        secrets: Names = None,
        mcp: Names = None,
        policy: Optional[str] = None,
    ) -> Any:
        """Call `handler(event)` or `handler(event, context)` that the code defines, in a new box; arguments as of
        `run_code`. Return: its value. An exception of the handler is a `ProgramError`."""
        box = _calls.box(
            template=template,
            packages=packages,
            lock=lock,
            engine=engine,
            min_isolation=min_isolation,
            network=network,
            allow=allow,
            secrets=secrets,
            mcp=mcp,
            policy=policy,
            limits=_calls.resources(cpu, memory, disk, max_processes),
        )
        body = {**_calls.handler(handler_code, event, context, timeout), **box}
        return (self._transport.call(_calls.execute(body))).raise_for_status().value

    def sandboxes(self, state: Optional[str] = None) -> List[SandboxInfo]:
        """All sandboxes of the caller, newest first; with @state only those in it."""
        found: List[SandboxInfo] = []
        while True:
            answer = self._transport.call(_calls.session_list(state, _PAGE, len(found)))
            found += [SandboxInfo.of(raw) for raw in _calls.items(answer)]
            if not answer.get("has_more"):
                return found

    def execution(self, id: str) -> Execution:
        """A handle of an execution by its id."""
        return Execution(self._transport, id)

    def languages(self, *, template: Optional[str] = None, check: Optional[str] = None) -> List[JsonObject]:
        """Languages, whether they work, what installs them, and their options. @template: in boxes of this template.
        @check: of which languages a program is run first: `unknown` (default), `none`, or `all`, which needs scope
        `admin`."""
        answer = self._transport.call(_calls.languages(template, check))
        return list(answer.get("languages") or [])

    def templates(self) -> List[JsonObject]:
        """What boxes can be made of."""
        return self._all("/api/v1/templates")

    def secrets(self) -> List[JsonObject]:
        """Secrets that the proxy adds to requests of boxes, without their values."""
        return self._all("/api/v1/secrets")

    def set_secret(self, name: str, value: str, hosts: Sequence[str], **settings: Any) -> JsonObject:
        """Create or change a secret for requests to @hosts; @settings are the API's: `mode`, `header`, `format`, `env`.
        Programs never see its value."""
        body = {"value": value, "hosts": list(hosts), **settings}
        return self.request("PUT", f"/api/v1/secrets/{quote(name, safe='')}", body)

    def delete_secret(self, name: str) -> None:
        """Delete a secret."""
        self.request("DELETE", f"/api/v1/secrets/{quote(name, safe='')}")

    def policies(self) -> List[JsonObject]:
        """The policies of the daemon."""
        answer = self._transport.call(_calls.show("/api/v1/policies"))
        return list(answer.get("policies") or [])

    def explain(self, **request: Any) -> JsonObject:
        """What a request would be granted, and by which rule; the fields are those of the API."""
        return self.request("POST", "/api/v1/policy/explain", request)

    def identity(self) -> JsonObject:
        """Who the caller is to the daemon."""
        return self._transport.call(_calls.show("/api/v1/identity"))

    def health(self) -> JsonObject:
        """State and version of the daemon."""
        return self._transport.call(_calls.show("/api/v1/health"))

    def pools(self) -> List[JsonObject]:
        """Boxes that are made ahead."""
        answer = self._transport.call(_calls.show("/api/v1/pools"))
        return list(answer.get("pools") or [])

    def request(self, method: str, path: str, body: Optional[Dict[str, Any]] = None) -> JsonObject:
        """Any other request of the API: JSON in, JSON out."""
        return self._transport.call(_calls.any_request(method, path, body))

    def _all(self, path: str) -> List[JsonObject]:
        found: List[JsonObject] = []
        while True:
            answer = self._transport.call(_calls.page(path, _PAGE, len(found)))
            found += _calls.items(answer)
            if not answer.get("has_more"):
                return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._transport.endpoint}>"
