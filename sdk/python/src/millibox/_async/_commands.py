# SPDX-License-Identifier: Apache-2.0
"""Shell commands in a sandbox."""

from __future__ import annotations

import shlex
from typing import Any, Mapping, Optional, Sequence, Union

from .. import _calls
from .._calls import Data
from .._models import Result
from ._execution import AsyncExecution, OnOutput
from ._runner import AsyncRunner


class AsyncCommands:
    """Shell commands in a sandbox. Its shell keeps variables and the working directory from one command to the
    next."""

    def __init__(self, runner: AsyncRunner) -> None:
        self._runner = runner

    async def run(
        self,
        command: Union[str, Sequence[str]],
        *,
        stdin: Optional[Data] = None,
        env: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        on_stdout: OnOutput = None,
        on_stderr: OnOutput = None,
    ) -> Result:
        """Run a command line, or a program with arguments, and wait for its end. A command that fails is a result;
        see `Result.raise_for_status`."""
        body = _calls.program(as_line(command), language="shell", stdin=stdin, env=env, timeout=timeout)
        return await self._runner.run(body, on_stdout, on_stderr, None)

    async def start(
        self,
        command: Union[str, Sequence[str]],
        *,
        env: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        stdin: bool = False,
    ) -> AsyncExecution:
        """Start a command in the background and return a handle: `wait`, `events`, `output`, `stdin` (with @stdin),
        `kill`; iterating over it yields its output. It runs in a shell of its own beside everything else, at most 16 at
        a time, and ends with the sandbox. Without @timeout it may run as long as the sandbox."""
        body = _calls.program(as_line(command), language="shell", env=env, timeout=timeout)
        body["background"] = True
        if stdin:
            body["stdin_open"] = True
        return await self._runner.start(body)

    async def detach(
        self, command: Union[str, Sequence[str]], *, log: str = "/dev/null", env: Optional[Mapping[str, Any]] = None
    ) -> int:
        """Start a command that runs beside all others until it or the sandbox ends, as `start` does, but without a
        handle: its output goes to the file @log. Return: its process group, for `kill`."""
        line = f"setsid bash -c {shlex.quote(as_line(command))} >{shlex.quote(log)} 2>&1 </dev/null & echo $!"
        body = _calls.program(line, language="shell", env=env)
        result = (await self._runner.run(body, None, None, None)).raise_for_status()
        return int(result.stdout)

    async def kill(self, group: int, signal: int = 9) -> bool:
        """Send a signal to a command of `detach` and all that it started. Return: whether it was there."""
        body = _calls.program(f"kill -{int(signal)} -- -{int(group)}", language="shell")
        return (await self._runner.run(body, None, None, None)).ok


def as_line(command: Union[str, Sequence[str]]) -> str:
    """A command line; a sequence of words is quoted."""
    return command if isinstance(command, str) else " ".join(shlex.quote(word) for word in command)
