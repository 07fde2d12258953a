# SPDX-License-Identifier: Apache-2.0
"""An executor of smolagents: its CodeAgent runs what a model writes in a sandbox. Needs smolagents.

with millibox.Sandbox() as box:
    agent = CodeAgent(tools=[], model=model, executor=MilliboxExecutor(box))
"""

from __future__ import annotations

import io
from typing import Any, List, Optional

import smolagents
from smolagents.remote_executors import RemotePythonExecutor

from .._sync._sandbox import Sandbox
from ._box import check_box


class MilliboxExecutor(RemotePythonExecutor):  # type: ignore[misc]  # the framework is not typed
    """Runs code in a `Sandbox`; smolagents has no asynchronous executors. Tools are sent as source, values as JSON;
    nothing that comes out of the box is unpickled. Packages that tools import are installed into the sandbox; those
    of `additional_authorized_imports` are not: give the sandbox `packages`."""

    def __init__(self, box: Sandbox, *, timeout: Optional[float] = None, logger: Any = None) -> None:
        check_box("MilliboxExecutor", box, (Sandbox,), "smolagents runs code synchronously")
        super().__init__([], logger or smolagents.AgentLogger(level=smolagents.LogLevel.ERROR), allow_pickle=False)
        self.box = box
        self._timeout = timeout

    def run_code_raise_errors(self, code: str) -> Any:
        """The value, what was printed, and whether it is the final answer; an exception of the code is an
        AgentError."""
        result = self.box.run_code(code, language="python", timeout=self._timeout)
        if result.error and result.error.name == self.FINAL_ANSWER_EXCEPTION:
            answer = self._deserialize_final_answer(result.error.value, False)
            return smolagents.local_python_executor.CodeOutput(
                output=answer, logs=result.stdout, is_final_answer=True
            )
        if not result.ok:
            reason = (
                "\n".join(result.error.traceback)
                if result.error
                else f"{result.status}: {result.limit or result.stderr}"
            )
            raise smolagents.AgentError(f"{result.stdout}\nThe code failed:\n{reason}", self.logger)
        output: Any = result.json
        if result.png is not None:
            import PIL.Image

            output = PIL.Image.open(io.BytesIO(result.png))
        elif output is None:
            output = result.find("text/plain")
        return smolagents.local_python_executor.CodeOutput(output=output, logs=result.stdout, is_final_answer=False)

    def install_packages(self, additional_imports: List[str]) -> List[str]:
        """Those that tools import and the sandbox lacks, from the registry."""
        lacking = f"[name for name in {additional_imports!r} if importlib.util.find_spec(name) is None]"
        code = f"import importlib.util\n{lacking}"
        missing = self.box.run_code(code, language="python").raise_for_status().value
        if missing:
            self.box.install(*missing, language="python")
        return list(additional_imports)

    def cleanup(self) -> None:
        """The caller ends the sandbox."""
