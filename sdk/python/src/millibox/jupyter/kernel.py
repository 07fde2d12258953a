# SPDX-License-Identifier: Apache-2.0
"""The kernel: one sandbox, in which all cells run."""

from __future__ import annotations

import codeop
import sys
from typing import Any, Dict, Optional

from ipykernel.kernelbase import Kernel

from .._base_errors import MilliboxError
from .._local import local
from .._models import Result, _shown
from .._sync._sandbox import Sandbox
from .._version import __version__


class MilliboxKernel(Kernel):  # type: ignore[misc]  # the framework is not typed
    """Cells run in a sandbox of the daemon, or of one that the kernel starts. `%%bash` at the top makes a cell a
    shell script."""

    implementation = "millibox"
    implementation_version = __version__
    banner = "Millibox: cells run in an isolated sandbox"
    language_info = {
        "name": "python",
        "version": ".".join(map(str, sys.version_info[:3])),
        "mimetype": "text/x-python",
        "file_extension": ".py",
        "pygments_lexer": "python3",
        "codemirror_mode": {"name": "python", "version": 3},
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._box: Optional[Sandbox] = None

    def _open_box(self) -> Sandbox:
        if self._box is None:
            self._box = Sandbox(local()).start()
        return self._box

    def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: Optional[Dict[str, Any]] = None,
        allow_stdin: bool = False,
        **more: Any,
    ) -> Dict[str, Any]:
        """Run a cell."""
        body, language = (code.split("\n", 1)[1], "shell") if code.startswith("%%bash\n") else (code, None)
        if not body.strip():
            return self._success()
        try:
            result = self._open_box().run_code(
                body,
                language=language,
                timeout=3600,
                on_stdout=lambda text: self._stream("stdout", text, silent),
                on_stderr=lambda text: self._stream("stderr", text, silent),
            )
        except KeyboardInterrupt:
            return self._failure("KeyboardInterrupt", "", ["KeyboardInterrupt"], silent)
        except MilliboxError as e:
            return self._failure(type(e).__name__, str(e), [str(e)], silent)
        self._show(result, silent)
        if result.ok:
            return self._success()
        error = result.error
        name = error.name if error else result.status
        value = error.value if error else str(result.limit or f"exit status {result.exit_code}")
        return self._failure(name, value, error.traceback if error else [f"{name}: {value}"], silent)

    def _stream(self, name: str, text: str, silent: bool) -> None:
        if not silent:
            self.send_response(self.iopub_socket, "stream", {"name": name, "text": text})

    def _show(self, result: Result, silent: bool) -> None:
        """Figures and tables in their order; the last one is the value of the cell if there is a value."""
        results = [] if silent else result.results
        for bundle in results:
            data = {media: _shown(media, content) for media, content in bundle.items()}
            content = {"data": data, "metadata": {}}
            if bundle is results[-1] and "image/png" not in bundle:
                content["execution_count"] = self.execution_count
                self.send_response(self.iopub_socket, "execute_result", content)
            else:
                self.send_response(self.iopub_socket, "display_data", content)

    def _success(self) -> Dict[str, Any]:
        return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}

    def _failure(self, name: str, value: str, traceback: Any, silent: bool) -> Dict[str, Any]:
        error = {"ename": name, "evalue": value, "traceback": list(traceback)}
        if not silent:
            self.send_response(self.iopub_socket, "error", error)
        return {"status": "error", "execution_count": self.execution_count, **error}

    def do_is_complete(self, code: str) -> Dict[str, str]:
        """For consoles: whether more lines must follow."""
        try:
            done = codeop.compile_command(code) is not None
        except (SyntaxError, ValueError, OverflowError):
            return {"status": "invalid"}
        return {"status": "complete"} if done else {"status": "incomplete", "indent": ""}

    def do_shutdown(self, restart: bool) -> Dict[str, Any]:
        """End the sandbox; after a restart the next cell makes a new one."""
        if self._box is not None:
            try:
                self._box.kill()
            except MilliboxError as e:
                self.log.warning("could not end the sandbox: %s", e)
            self._box = None
        return {"status": "ok", "restart": restart}
