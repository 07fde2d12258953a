# SPDX-License-Identifier: Apache-2.0
"""The kernel: one sandbox, in which all cells run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from ipykernel.kernelbase import Kernel

from .. import errors
from .._base_errors import MilliboxError
from .._local import local
from .._models import Result, _shown
from .._sync._sandbox import Sandbox
from .._version import __version__
from ._cell import Installation, Piece, Program, UsageError, check_complete, hides_value, pieces

#: What defines get_ipython() in the sandbox, and leaves no other name there.
_PRELUDE = "exec(compile({source!r}, 'millibox_notebook', 'exec'), {{'__name__': 'millibox_notebook'}})"
#: Beginnings of what Python prints about an exception.
_TRACEBACK = re.compile(r'Traceback \(most recent call last\):|^  File "|^  \+ Exception Group', re.M)
_HELP_S = 10.0


class Stderr:
    """Standard error of a cell, without the traceback that the message of its error has."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._held = ""

    def write(self, text: str) -> None:
        # What is followed by more was not the end of the cell.
        self.release()
        found = _TRACEBACK.search(text)
        if found:
            text, self._held = text[: found.start()], text[found.start() :]
        if text:
            self._emit(text)

    def release(self) -> None:
        held, self._held = self._held, ""
        if held:
            self._emit(held)

    def end(self, traceback: List[str]) -> None:
        """@traceback is shown elsewhere. Of a long one the middle is left out there."""
        head = "\n".join(traceback).split("\n...\n")[0]
        if head and head in self._held and traceback[-1] in self._held:
            self._held = self._held[: self._held.rindex(head)]
        self.release()


class MilliboxKernel(Kernel):  # type: ignore[misc]  # the framework is not typed
    """Cells run in a sandbox of the daemon, or of one that the kernel starts. `!command`, `%cd` and other magics run
    there, `%pip install` uses the daemon's packages, and `%%bash` at the top makes a cell a shell script."""

    implementation = "millibox"
    implementation_version = __version__
    banner = "Millibox: cells run in an isolated sandbox"
    language_info = {
        "name": "python",
        "version": ".".join(map(str, sys.version_info[:3])),
        "mimetype": "text/x-python",
        "file_extension": ".py",
        "pygments_lexer": "ipython3",
        "codemirror_mode": {"name": "ipython", "version": 3},
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._box: Optional[Sandbox] = None

    def _open_box(self) -> Sandbox:
        if self._box is None:
            box = Sandbox(local()).start()
            self._prepare(box)
            self._box = box
        return self._box

    def _prepare(self, box: Sandbox) -> None:
        source = Path(__file__).with_name("_in_box.py").read_text()
        box.run_code(_PRELUDE.format(source=source), language="python").raise_for_status()

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
        try:
            for number, piece in enumerate(pieces(code)):
                failure = self._run(piece, number, silent)
                if failure is not None:
                    return failure
        except KeyboardInterrupt:
            return self._failure("KeyboardInterrupt", "", ["KeyboardInterrupt"], silent)
        except (MilliboxError, UsageError) as e:
            if self._box is None or not self._has_ended(e, self._box):
                return self._failure(type(e).__name__, str(e), [str(e)], silent)
            self._box = None
            said = "the sandbox has ended, and its variables and files are lost; the next cell gets a new one"
            return self._failure("SandboxEnded", said, [f"SandboxEnded: {said}"], silent)
        return self._success()

    def _has_ended(self, error: Exception, box: Sandbox) -> bool:
        """It does after its idle time, for example."""
        if isinstance(error, errors.StateConflictError):
            return box.info().state in ("terminated", "failed")
        return isinstance(error, errors.SessionNotFoundError)

    def _run(self, piece: Piece, number: int, silent: bool) -> Optional[Dict[str, Any]]:
        """Return: the reply to a cell that failed."""
        if isinstance(piece, Installation):
            self._install(piece, silent)
            return None
        if not piece.code.strip():
            return None
        stderr = Stderr(lambda text: self._stream("stderr", text, silent))
        result = None
        try:
            result = self._open_box().run_code(
                piece.code,
                language=piece.language,
                file_name=self._name_of(piece, number),
                timeout=3600,
                on_stdout=lambda text: self._stream("stdout", text, silent),
                on_stderr=stderr.write,
            )
        finally:
            stderr.end(result.error.traceback if result and result.error else [])
        self._show(result, silent, piece.language == "python" and hides_value(piece.code))
        if piece.is_timed:
            used = {name: (result.metrics.get(name) or 0) / 1000 for name in ("cpu_time_ms", "duration_ms")}
            text = "CPU time: {cpu_time_ms:.3g} s, wall time: {duration_ms:.3g} s\n"
            self._stream("stdout", text.format(**used), silent)
        if result.raw.get("session_reset"):
            text = "the interpreter was lost, and with it all variables; files are still there\n"
            self._stream("stderr", text, silent)
            self._prepare(self._open_box())
        if result.ok:
            return None
        error = result.error
        name = error.name if error else result.status
        value = error.value if error else str(result.limit or f"exit status {result.exit_code}")
        return self._failure(name, value, error.traceback if error else [f"{name}: {value}"], silent)

    def _name_of(self, piece: Program, number: int) -> Optional[str]:
        """In tracebacks. A part of a cell has a name of its own, because its source does."""
        if piece.language != "python":
            return None
        return f"In[{self.execution_count}]" + (f".{number + 1}" if number else "")

    def _install(self, wanted: Installation, silent: bool) -> None:
        """A quiet failure shows what the package manager said."""
        box = self._open_box()
        show = None if wanted.is_quiet else lambda text: self._stream("stdout", text, silent)
        try:
            for path in wanted.requirements:
                box.install(lock=box.files.read(path).decode(), language="python", on_output=show)
            if not wanted.packages:
                return
            done = box.install(*wanted.packages, language="python", on_output=show)
        except errors.InstallFailedError as e:
            if wanted.is_quiet and e.log:
                self._stream("stderr", e.log, silent)
            raise
        if done["lock"] is None and not wanted.is_quiet:
            there = " ".join(wanted.packages)
            hint = "; to get another version, name it: NAME==VERSION" if wanted.upgrades else ""
            self._stream("stdout", f"the sandbox has these packages already: {there}{hint}\n", silent)

    def _stream(self, name: str, text: str, silent: bool) -> None:
        if not silent:
            self.send_response(self.iopub_socket, "stream", {"name": name, "text": text})

    def _show(self, result: Result, silent: bool, is_hidden: bool) -> None:
        """What was displayed and figures, in their order; the value of the cell comes last, unless it is hidden."""
        results = [] if silent else result.results
        for bundle in results:
            data = {media: _shown(media, content) for media, content in bundle.items()}
            content = {"data": data, "metadata": {}}
            if bundle is results[-1] and result.value is not None:
                if is_hidden:
                    continue
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

    def _ask(self, method: str, text: str) -> Any:
        """Call a method of the notebook in the sandbox. Return: None where that fails."""
        try:
            code = f"get_ipython().{method}({text!r})"
            return self._open_box().run_code(code, language="python", timeout=_HELP_S).value
        except MilliboxError as e:
            self.log.warning("%s: %s", method, e)
            return None

    def do_complete(self, code: str, cursor_pos: int) -> Dict[str, Any]:
        """Names that may follow."""
        line = code[:cursor_pos].rpartition("\n")[2]
        matches, start = self._ask("complete", line) or ([], len(line))
        return {
            "status": "ok",
            "matches": matches,
            "cursor_start": cursor_pos - len(line) + start,
            "cursor_end": cursor_pos,
            "metadata": {},
        }

    def do_inspect(
        self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()
    ) -> Dict[str, Any]:
        """Signature and documentation of what is at the cursor, or of the function whose arguments are there."""
        before = re.sub(r"\([^()]*$", "", code[:cursor_pos])
        begin = re.search(r"[\w.]*$", before)
        rest = re.match(r"\w*", code[len(before) :])
        name = (begin[0] if begin else "") + (rest[0] if rest else "")
        found = self._ask("inspect", name) if name else None
        return {"status": "ok", "found": bool(found), "data": {"text/plain": found} if found else {}, "metadata": {}}

    def do_is_complete(self, code: str) -> Dict[str, str]:
        """For consoles: whether more lines must follow."""
        status, indent = check_complete(code)
        return {"status": status, "indent": " " * (indent or 0)} if status == "incomplete" else {"status": status}

    def do_shutdown(self, restart: bool) -> Dict[str, Any]:
        """End the sandbox; after a restart the next cell makes a new one."""
        if self._box is not None:
            try:
                self._box.kill()
            except MilliboxError as e:
                self.log.warning("could not end the sandbox: %s", e)
            self._box = None
        return {"status": "ok", "restart": restart}
