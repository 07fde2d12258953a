# Made by sdk/python/generate.py from _async/_sandbox.py; do not edit.
# SPDX-License-Identifier: Apache-2.0
"""A sandbox: a box that stays, with its files, variables and processes."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Type, Union

from .. import _calls, errors
from .._base_errors import ConnectionLost, MilliboxError
from .._calls import Data
from .._follow import Cursor
from .._forward import Forward
from .._models import Event, JsonObject, PortInfo, Result, SandboxInfo, parse_event
from .._sync import _port as _sync_port
from . import _io
from ._client import Client
from ._commands import Commands, as_line
from ._execution import Execution, Terminal, OnResult, OnOutput
from ._files import Files
from ._port import Port, open_port
from ._runner import Runner

Size = Union[None, str, int]
Names = Union[None, str, Sequence[str]]


class Sandbox:
    """A box that stays. Use it as a context manager: it is made on entry and ended on exit. `start` and `kill` do
    the same without one. `connect` attaches to a sandbox that exists and leaves it alive on exit.

    - @client: by default one of its own, with the settings of the environment.
    - @language: of programs that name none, and of @packages.
    - @packages: of the language's registry, like `numpy==2.1`, or @lock: the text of a lock file. What the box lacks
      is installed before it is made; `install` adds more later. A failure is an `errors.InstallFailedError`, whose
      `log` has the last output of the package manager.
    - @engine: who makes the box, or `auto`. @min_isolation: `namespace`, `gvisor` or `vm`, the least grade.
    - @network: `none` or `allowlist`. @allow: the hosts that it reaches, and no others, like `api.example.com` or
      `pypi`; more than the policy grants or lets requests name is an `errors.PolicyDeniedError`.
    - @secrets: names of secrets that the proxy adds to requests.
    - @mcp: tools of outside MCP servers that programs may call, like `github/search`.
    - @policy: applies besides that of the tenant.
    - @idle_timeout, @lifetime: seconds without use, and in all, after which it ends.
    """

    def __init__(
        self,
        client: Optional[Client] = None,
        *,
        id: Optional[str] = None,
        language: Optional[str] = None,
        template: Optional[str] = None,
        env: Optional[Mapping[str, Any]] = None,
        cpu: Union[None, str, float] = None,
        memory: Size = None,
        disk: Size = None,
        max_processes: Optional[int] = None,
        packages: Names = None,
        lock: Optional[str] = None,
        engine: Optional[str] = None,
        min_isolation: Optional[str] = None,
        network: Optional[str] = None,
        allow: Names = None,
        secrets: Names = None,
        mcp: Names = None,
        policy: Optional[str] = None,
        idle_timeout: Optional[float] = None,
        lifetime: Optional[float] = None,
    ) -> None:
        self._client = client
        self._owns_client = client is None
        self._owns_session = True
        self._runner: Optional[Runner] = None
        self._info: Optional[SandboxInfo] = None
        self._body = _calls.session_body(
            _calls.box(
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
            ),
            id=id,
            language=language,
            env=env,
            idle_timeout=idle_timeout,
            lifetime=lifetime,
        )

    @classmethod
    def connect(cls, id: str, client: Optional[Client] = None) -> Sandbox:
        """Attach to a sandbox that exists. It is not ended on exit."""
        box = cls(client)
        box._owns_session = False
        transport = box._open_client()._transport
        box._attach(transport.call(_calls.session_show(id)))
        return box

    def start(self) -> Sandbox:
        """Make the sandbox, unless it is there."""
        if self._runner is None:
            transport = self._open_client()._transport
            self._attach(transport.call(_calls.session_create(self._body)))
        return self

    def _open_client(self) -> Client:
        if self._client is None:
            self._client = Client()
        return self._client

    def _attach(self, info: SandboxInfo) -> None:
        self._info = info
        self._runner = Runner(self._open_client()._transport, info.id)

    def __enter__(self) -> Sandbox:
        try:
            return self.start()
        except BaseException:
            self._leave_client()
            raise

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            if self._owns_session and self._runner is not None:
                self.kill()
        finally:
            self._leave_client()

    def _leave_client(self) -> None:
        if self._owns_client and self._client is not None:
            self._client.close()
            self._client = None

    @property
    def _running(self) -> Runner:
        if self._runner is None:
            raise MilliboxError("the sandbox is not started: use it as a context manager, or call start()")
        return self._runner

    @property
    def id(self) -> str:
        """Id of the session, for `connect`."""
        return self._running.id

    @property
    def warnings(self) -> List[str]:
        """What the daemon granted or understood otherwise than requested."""
        return list((self._info.raw if self._info else {}).get("warnings") or [])

    @property
    def files(self) -> Files:
        """Its files."""
        return Files(self._running.transport, self.id)

    @property
    def commands(self) -> Commands:
        """Shell commands in it."""
        return Commands(self._running)

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
        receipt: Optional[str] = None,
        on_stdout: OnOutput = None,
        on_stderr: OnOutput = None,
        on_result: OnResult = None,
    ) -> Result:
        """Run code and wait for its end. Variables stay for the next call. Callbacks get output while the program
        runs. If the caller is interrupted, so is the program. A broken connection is made again; a daemon that is
        killed loses the program, see `start_code`. @file_name, @options, @receipt: as of `Client.run_code`."""
        body = _calls.program(
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
        return self._running.run(body, on_stdout, on_stderr, on_result)

    def run(
        self,
        command: Union[str, Sequence[str]],
        *,
        stdin: Optional[Data] = None,
        env: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        on_stdout: OnOutput = None,
        on_stderr: OnOutput = None,
    ) -> Result:
        """Run a shell command; the same as `commands.run`."""
        return self.commands.run(
            command, stdin=stdin, env=env, timeout=timeout, on_stdout=on_stdout, on_stderr=on_stderr
        )

    def pty(
        self,
        command: Union[str, Sequence[str]] = "exec bash --norc -i",
        *,
        rows: int = 24,
        cols: int = 80,
        env: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Terminal:
        """Start a shell command on a terminal, beside everything else, and return a handle: `send`, `resize`, `kill`,
        `wait`; iterating over it yields what it shows."""
        body = _calls.program(as_line(command), language="shell", env=env, timeout=timeout)
        body["tty"] = {"rows": rows, "cols": cols}
        return Terminal(self._running.transport, (self._running.start(body)).id)

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
        receipt: Optional[str] = None,
    ) -> Iterator[Event]:
        """Run code and yield its events. A broken connection is made again without a loss. A reader that stops
        early does not end the program."""
        body = _calls.program(
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
        with _io.closing(self._running.stream(body, Cursor())) as events:
            for event in events:
                yield event

    def start_code(
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
        receipt: Optional[str] = None,
        stdin_open: bool = False,
    ) -> Execution:
        """Start code and return a handle once the daemon has written it down: the program survives a daemon that is
        killed and started again. With @stdin_open, `send_stdin` of the handle writes to its input."""
        body = _calls.program(
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
        if stdin_open:
            body["stdin_open"] = True
        return self._running.start(body)

    def call(
        self,
        handler_code: str,
        event: Mapping[str, Any],
        *,
        context: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        """Call `handler(event)` or `handler(event, context)` that the code defines. Return: its value. An exception
        of the handler is a `ProgramError`."""
        body = _calls.handler(handler_code, event, context, timeout)
        return (self._running.run(body, None, None, None)).raise_for_status().value

    def executions(self, limit: int = 50) -> List[JsonObject]:
        """The latest executions, newest first."""
        return _calls.items(self._running.transport.call(_calls.session_executions(self.id, limit, 0)))

    def upload(self, local: Union[str, "os.PathLike[str]"], path: Optional[str] = None) -> None:
        """Copy a local file or directory into the sandbox; the same as `files.upload`."""
        self.files.upload(local, path)

    def download(self, path: str, local: Union[str, "os.PathLike[str]"]) -> None:
        """Copy a file or directory out of the sandbox; the same as `files.download`."""
        self.files.download(path, local)

    def install(
        self,
        *packages: str,
        language: Optional[str] = None,
        lock: Optional[str] = None,
        on_output: OnOutput = None,
    ) -> JsonObject:
        """Install packages into the running sandbox, like `numpy==2.1`, or what @lock names, the text of a lock file.
        Programs find them at once, also in interpreters that run; what a program has already imported stays as it is.
        @language: whose package manager is used; by default the sandbox's. @on_output gets what it prints. Return:
        `manager`, `packages`, `lock` and `path`; the latter two are None if the box had all of them. A failure is an
        `errors.InstallFailedError`, whose `log` has its last output. An interrupted caller gives up."""
        call = _calls.session_install(self.id, packages, language, lock)
        installed: Optional[JsonObject] = None
        with _io.closing(self._running.transport.lines(call)) as lines:
            for line in lines:
                event = parse_event(line)
                if event.kind == "install":
                    _io.notify(on_output, event.text)
                elif event.kind == "end":
                    installed = event.raw["result"]
        if installed is None:
            raise ConnectionLost("the daemon ended a stream before the packages were installed")
        return installed

    def info(self) -> SandboxInfo:
        """The sandbox as the daemon has it now."""
        return self._running.transport.call(_calls.session_show(self.id))

    def stats(self) -> JsonObject:
        """What it uses: `memory_mb`, `cpu_time_ms`, `executions` ..."""
        return self._running.transport.call(_calls.session_stats(self.id))

    def ports(self) -> List[PortInfo]:
        """TCP ports on which its programs listen, by number."""
        return self._running.transport.call(_calls.session_ports(self.id))

    def open_port(self, port: int) -> Port:
        """Connect to a program that listens on its own loopback, also if it has no network. Nothing listens there:
        `errors.NotFoundError`."""
        transport = self._running.transport
        return open_port(transport.endpoint, _calls.session_port(self.id, port), port, transport.timeout)

    def forward(self, port: int, local_port: int = 0, address: str = "127.0.0.1") -> Forward:
        """Listen on a local port, a free one by default, and forward each connection to @port of the sandbox. Use
        it as a context manager; `url` and `port` of it say where it listens."""
        transport = self._running.transport
        endpoint, path, timeout = transport.endpoint, _calls.session_port(self.id, port), transport.timeout
        return Forward(lambda: _sync_port.open_port(endpoint, path, port, timeout), local_port, address)

    def pause(self) -> SandboxInfo:
        """Freeze it: nothing runs, and time limits stand still."""
        return self._act("pause")

    def resume(self) -> SandboxInfo:
        """Let a paused sandbox continue."""
        return self._act("resume")

    def interrupt(self) -> SandboxInfo:
        """Send SIGINT to the running program; variables stay."""
        return self._act("interrupt")

    def keepalive(self) -> SandboxInfo:
        """Start its idle time again."""
        return self._act("keepalive")

    def _act(self, verb: str) -> SandboxInfo:
        return self._running.transport.call(_calls.session_act(self.id, verb))

    def kill(self) -> bool:
        """End it and delete what is in it. Return: False if it had ended before."""
        try:
            self._running.transport.call(_calls.session_delete(self.id))
        except errors.SessionNotFoundError:
            return False
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._runner.id if self._runner else 'not started'}>"
