# SPDX-License-Identifier: Apache-2.0
"""Runs in the sandbox of a notebook, before its first cell. IPython, at the kernel's side, translates `!command` and
`%magic` to calls of get_ipython(); this is what they find. Only the standard library is there.
"""

import builtins
import inspect
import os
import pkgutil
import re
import rlcompleter
import shlex
import subprocess
import sys
import time
import timeit
from typing import Any, Callable, Dict, List, Match, Tuple

SHELL = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
#: "{expression}", "$$", "$name".
EXPANDED = re.compile(r"\{([^{}]+)\}|\$(\$|[A-Za-z_]\w*)")
#: Commands that are magics, too.
ALIASES = ("cat", "cp", "head", "ls", "mkdir", "mv", "rm", "rmdir", "tail")


class UsageError(Exception):
    """A magic that is unknown, or wrongly used."""


UsageError.__module__ = "builtins"  # shown without a module


class Lines(List[str]):
    """The output of `names = !ls`."""

    @property
    def n(self) -> str:
        return "\n".join(self)

    @property
    def s(self) -> str:
        return " ".join(self)


def expand(text: str, names: Dict[str, Any]) -> str:
    """With values of the caller's variables. What is none of them is the shell's."""

    def value(found: Match[str]) -> str:
        expression, name = found.groups()
        if name == "$":
            return "$"
        if name is not None:
            return str(names[name]) if name in names else found[0]
        try:
            return str(eval(expression, names))
        except Exception:
            return found[0]

    return EXPANDED.sub(value, text)


def names_of_caller() -> Dict[str, Any]:
    """Of the code that called a method of Notebook."""
    frame = sys._getframe(2)
    return {**frame.f_globals, **frame.f_locals}


def main_names() -> Dict[str, Any]:
    return vars(sys.modules["__main__"])


def run_statement(code: str, names: Dict[str, Any]) -> Any:
    """Return: the value, if it is an expression."""
    try:
        return eval(compile(code, "<magic>", "eval"), names)
    except SyntaxError:
        exec(compile(code, "<magic>", "exec"), names)
        return None


class Notebook:
    """What get_ipython() returns."""

    def system(self, command: str) -> None:
        self._run(expand(command, names_of_caller()))

    def getoutput(self, command: str) -> Lines:
        expanded = expand(command, names_of_caller())
        done = subprocess.run([SHELL, "-c", expanded], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        main_names()["_exit_code"] = done.returncode
        return Lines(done.stdout.decode(errors="replace").splitlines())

    def run_line_magic(self, name: str, line: str, *_: Any) -> Any:
        magic = self._find("line", "%", name)
        return magic(expand(line, names_of_caller()))

    def run_cell_magic(self, name: str, line: str, cell: str) -> Any:
        return self._find("cell", "%%", name)(line, cell)

    def _run(self, command: str) -> None:
        sys.stdout.flush()
        main_names()["_exit_code"] = subprocess.call([SHELL, "-c", command])

    def _find(self, kind: str, sign: str, name: str) -> Callable[..., Any]:
        if kind == "line" and name in ALIASES:
            return lambda line: self._run(name + " " + line)
        found = getattr(self, "_" + kind + "_" + name, None)
        if found is None:
            raise UsageError("there is no magic %s%s here; there are: %s" % (sign, name, " ".join(self._list())))
        return found  # type: ignore[no-any-return]

    def _list(self) -> List[str]:
        line = [name[6:] for name in dir(self) if name.startswith("_line_") and not name.startswith("_line_pinfo")]
        cells = [name[6:] for name in dir(self) if name.startswith("_cell_")]
        return ["%" + name for name in sorted([*line, *ALIASES])] + [
            "%%" + name for name in sorted([*cells, *KERNEL_CELLS])
        ]

    # Magics.

    def _line_cd(self, line: str) -> None:
        words = shlex.split(line)
        if len(words) > 1:
            raise UsageError("%cd takes one directory")
        where = words[0] if words else "~"
        before = os.getcwd()
        os.chdir(main_names().get("_previous_directory", before) if where == "-" else os.path.expanduser(where))
        main_names()["_previous_directory"] = before
        print(os.getcwd())

    def _line_pwd(self, line: str) -> str:
        return os.getcwd()

    def _line_env(self, line: str) -> Any:
        name, given, value = re.match(r"\s*([^\s=]*)\s*(=?)\s*(.*)", line, re.S).groups()  # type: ignore[union-attr]
        if not name:
            return dict(os.environ)
        if not given and not value:
            if name not in os.environ:
                raise UsageError("the variable %s is not set" % name)
            return os.environ[name]
        os.environ[name] = value.rstrip()
        print("env: %s=%s" % (name, os.environ[name]))
        return None

    def _line_set_env(self, line: str) -> Any:
        return self._line_env(line)

    def _line_matplotlib(self, line: str) -> None:
        """Figures are always part of the results."""

    def _line_pip(self, line: str) -> None:
        if line.split()[:1] == ["install"]:
            raise UsageError("%pip install must be a line of its own, outside of blocks")
        self._run("%s -m pip %s" % (shlex.quote(sys.executable), line))

    def _line_time(self, line: str) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        value = run_statement(line, main_names())
        print("CPU time: %.3g s, wall time: %.3g s" % (time.process_time() - cpu, time.perf_counter() - wall))
        return value

    def _line_timeit(self, line: str) -> None:
        timer = timeit.Timer(line, globals=main_names())
        loops, taken = timer.autorange()
        best = min([taken, *timer.repeat(4, loops)]) / loops
        print("%.3g s per loop (best of 5 runs, %d loops each)" % (best, loops))

    def _line_pinfo(self, line: str) -> None:
        print(self.inspect(line.strip()) or "%s: not found" % line.strip())

    _line_pinfo2 = _line_pinfo

    def _cell_writefile(self, line: str, cell: str) -> None:
        words = shlex.split(expand(line, main_names()))
        append = words[:1] in (["-a"], ["--append"])
        if len(words) != 1 + append:
            raise UsageError("%%writefile takes a file, and -a to append to it")
        with open(words[-1], "a" if append else "w") as file:
            file.write(cell)
        print("Appended to" if append else "Wrote", words[-1])

    # For the kernel.

    def complete(self, line: str) -> Tuple[List[str], int]:
        """What may follow the end of @line, and where that begins."""
        word = re.search(r"[\w.]*$", line)
        start = word.start() if word else len(line)
        part = line[start:]
        from_module = re.match(r"\s*from\s+([\w.]+)\s+import\s+(?:[\w\s]+,\s*)*(\w*)$", line)
        if from_module:
            return names_in(from_module[1], part), start
        if re.match(r"\s*(?:from|import)\s+(?:[\w.\s]+,\s*)*[\w.]*$", line):
            return modules(part), start
        if line.lstrip().startswith("%") and " " not in line.lstrip():
            given = line.lstrip()
            return [name for name in self._list() if name.startswith(given)], len(line) - len(given)
        return python_names(part), start

    def inspect(self, name: str) -> str:
        """Signature and documentation of an expression without calls; "": not found."""
        if not re.match(r"[A-Za-z_][\w.]*$", name):
            return ""
        try:
            value = eval(name, main_names())
        except Exception:
            return ""
        try:
            head = name + str(inspect.signature(value))
        except (TypeError, ValueError):
            head = "%s: %s" % (name, type(value).__name__)
        return head + "\n\n" + (inspect.getdoc(value) or "(no documentation)")


#: Those that the kernel handles.
KERNEL_CELLS = ("bash", "sh", "time")


def python_names(part: str) -> List[str]:
    completer = rlcompleter.Completer(main_names())
    found: List[str] = []
    while part and len(found) < 2000:
        one = completer.complete(part, len(found))
        if one is None:
            break
        found.append(one)
    return sorted({one.rstrip(" (:)") for one in found})


def modules(part: str) -> List[str]:
    """Names of modules, also below a package that is loaded."""
    package, dot, begin = part.rpartition(".")
    if dot:
        path = getattr(sys.modules.get(package), "__path__", [])
        found = {package + "." + module.name for module in pkgutil.iter_modules(path)}
    else:
        found = {*sys.builtin_module_names, *(module.name for module in pkgutil.iter_modules())}
    return sorted(name for name in found if name.startswith(part) and (part or not name.startswith("_")))


def names_in(module: str, part: str) -> List[str]:
    try:
        found = __import__(module, fromlist=["*"])
    except Exception:
        return []
    public = [name for name in dir(found) if name.startswith(part) and (part or not name.startswith("_"))]
    return sorted({*public, *(name[len(module) + 1 :] for name in modules(module + "." + part))})


_notebook = Notebook()
builtins.get_ipython = lambda: _notebook  # type: ignore[attr-defined]
