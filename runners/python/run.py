# SPDX-License-Identifier: Apache-2.0
"""Runs one Python program as `python3 main.py` would, and reports its last value or its exception.

This file is compiled at every start, so it holds what every program needs and no more; report.py is
read only when there is something to tell. It runs in isolated mode: nothing the program's author can
write is imported before the program itself runs.
"""

import sys


class _Source:
    """What traceback, inspect, warnings and pdb ask for the program's lines."""

    def __init__(self, text):
        self._text = text

    def get_source(self, name):
        return self._text.decode("utf-8-sig", "replace")

    def is_package(self, name):
        return False


def _compile(source, name):
    """The program as code, and its last expression as code of its own if it ends in one."""
    try:
        tree = compile(source, name, "exec", 0x400, True)  # ast.PyCF_ONLY_AST
        if not tree.body or type(tree.body[-1]).__name__ != "Expr":
            return compile(tree, name, "exec", 0, True), None
        from _ast import Expression

        last = Expression(tree.body.pop().value)
        body = compile(tree, name, "exec", 0, True)
        # Futures of the program hold for its last line too.
        return body, compile(last, name, "eval", body.co_flags & 0x1FE0000, True)
    except (RecursionError, MemoryError):
        return compile(source, name, "exec", 0, True), None  # deeper than trees can be


def _tell(kind, *args):
    """Reporting never changes what the program does: whatever goes wrong here is nobody's concern."""
    from posix import getpid

    if getpid() != _pid:  # a forked child that ran to the end of the program
        return None
    try:
        path = _here + "report.py"
        with open(path, "rb") as file:
            names = {"__name__": "millibox_report"}
            exec(compile(file.read(), path, "exec", 0, True), names)
        return names[kind](*args)
    except BaseException:
        return None


def _hook(kind, value, trace):
    """The program's exception: shown without our own frames, as if we were not there."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    value.__traceback__ = trace  # which is what is printed, whatever is passed
    if _tell("error", kind, value, trace, _path) is None:
        sys.__excepthook__(kind, value, trace)
    if kind is KeyboardInterrupt:
        # The interpreter ends itself by SIGINT if that was the last exception of a program text;
        # texts that were run for printing (named tuples are one) made it forget.
        try:
            exec("raise KeyboardInterrupt")
        except KeyboardInterrupt:
            pass


def _main(path, arguments):
    name = path[path.rfind("/") + 1 :]
    module = type(sys)("__main__")
    with open(path, "rb") as file:
        source = file.read()
    module.__dict__.update(
        __builtins__=sys.modules["builtins"],
        __file__="/workspace/" + name,
        __loader__=_Source(source),
    )
    sys.argv[:] = [name, *arguments]
    sys.path.insert(0, "/workspace")
    sys.modules["__main__"] = module
    # As on a terminal: a caller who watches sees lines as they are written.
    sys.stdout.reconfigure(line_buffering=True)
    sys.excepthook = _hook
    body, last = _compile(source, name)
    exec(body, module.__dict__)
    if last is not None:
        value = eval(last, module.__dict__)
        if value is not None:
            _tell("result", value)


_self = sys.modules["__main__"]  # keeps these globals alive
_here = __file__[: __file__.rfind("/") + 1]
_pid = sys.modules["posix"].getpid()
_path = sys.argv[1]
_main(_path, sys.argv[2:])
