# SPDX-License-Identifier: Apache-2.0
# Runs one Python program as `python3 main.py` would, and reports its last value or its exception.
#
# This file is compiled at every start, so it holds what every program needs and no more; the rest is
# in report.py, read when it is needed. Isolated mode: nothing that the program's author can write is
# imported before the program itself runs.
import sys


class _Site:
    # A third of Python's start-up is `import site`, for files that few programs need. It is done for
    # the first module that is found nowhere else: this is the last finder, so that is when it is asked.
    @staticmethod
    def find_spec(name, path=None, target=None):
        sys.meta_path.remove(_Site)
        import site

        site.main()
        for finder in sys.meta_path:
            if (spec := finder.find_spec(name, path, target)) is not None:
                return spec


def _add_site():
    # What a program sees of it at once: the places of Debian's packages, and exit() and its kin.
    import _sitebuiltins

    places = "/usr/local/lib/python%d.%d/dist-packages" % sys.version_info[:2], "/usr/lib/python3/dist-packages"
    sys.path += [p for p in places if sys.modules["posix"].access(p, 0)]
    sys.meta_path.append(_Site)
    names = sys.modules["builtins"].__dict__
    names["exit"] = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    names["quit"] = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
    names["help"] = _sitebuiltins._Helper()


class _Source:  # what traceback, inspect, warnings and pdb ask for the program's lines
    def get_source(self, name):
        return _source.decode("utf-8-sig", "replace")


def _later(task, *args, also=()):
    names = {"__name__": "millibox_report", "PID": _pid, "RUN": __file__}
    for part in ("report.py", *also):
        with open(_here + part, "rb") as file:
            exec(compile(file.read(), _here + part, "exec", 0, True), names)
    return names[task](*args)


def _tell(task, *args):
    # Reporting never changes what the program does: whatever goes wrong is nobody's concern.
    try:
        return _later(task, *args)
    except BaseException:
        return None


def _hook(kind, value, trace):
    if _tell("error", kind, value, trace, _path) is None:
        sys.__excepthook__(kind, value, trace)


def _compile(name):
    # The last line is the last statement exactly if it is an expression, and what comes before it
    # is a program too. Trees tell it for all others; the first tree costs half a millisecond.
    end = _source.rstrip()
    start = end.rfind(b"\n") + 1
    try:
        if end.isascii():
            last = compile(b"\n" * end.count(b"\n") + end[start:], name, "eval", 0, True)
            return compile(_source[:start], name, "exec", 0, True), last
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return _later("split", _source, name)


_self = sys.modules["__main__"]  # keeps these globals alive
_here = __file__[: __file__.rfind("/") + 1]
_pid = sys.modules["posix"].getpid()
if b"MILLIBOX_ZYGOTE" in sys.modules["posix"].environ:
    _later("serve", lambda: None, also=("zygote.py",))
    _pid = sys.modules["posix"].getpid()
_path = sys.argv[1]
with open(_path, "rb") as _file:
    _source, _, _asked = _file.read().partition(b"\0")  # docs/protocol.md, "The source"
sys.argv[:] = [_path[_path.rfind("/") + 1 :], *sys.argv[2:]]
_add_site()
sys.path.insert(0, "/workspace")
sys.modules["__main__"] = _main = type(sys)("__main__")
_main = _main.__dict__
_main["__builtins__"] = sys.modules["builtins"]
# Not where the source lies: programs look for their data and leave results beside __file__. The price
# is that multiprocessing's "spawn", unlike "fork", does not find the program.
_main["__file__"] = "/workspace/" + sys.argv[0]
_main["__loader__"] = _Source()
# As on a terminal: a caller who watches sees lines as they are written.
sys.stdout.reconfigure(line_buffering=True)
sys.excepthook = _hook
_body, _last = _compile(sys.argv[0])
exec(_body, _main)
if _last is not None:
    _last = eval(_last, _main)
    if _last is not None and not _asked:
        _tell("result", _last)
if _asked:
    sys.exit(_later("handle", _main, _asked, _path, also=("handler.py",)))
