# SPDX-License-Identifier: Apache-2.0
# Runs one Python program as `python3 main.py` would, and reports its last value or its exception.
#
# This file is compiled at every start, so it has only what every program needs; report.py and its
# siblings are read on demand. Isolated mode: nothing that the program's author can write is imported
# before the program itself runs.
#
# If the path of the program is "-", prepare.py waits for it.
import sys


class _Site:
    # `import site` takes a third of Python's start-up, for files that few programs need. As the last
    # finder, this one runs it for the first module that no other finder knows. It adds the user's site
    # directory as soon as there is one: the program may run pip.
    is_done = False

    @staticmethod
    def find_spec(name, path=None, target=None):
        user = "/workspace/.local/lib/python%d.%d/site-packages" % sys.version_info[:2]
        has_user = sys.modules["posix"].access(user, 0)
        if _Site.is_done and not has_user:
            return None
        import site

        if not _Site.is_done:
            _Site.is_done = True
            site.main()
        if has_user and _Site in sys.meta_path:  # else a search by site itself did it
            sys.meta_path.remove(_Site)
            sys.path.append(user)  # without its .pth files, which run code
        for finder in sys.meta_path:
            if finder is not _Site and (spec := finder.find_spec(name, path, target)) is not None:
                return spec


def _add_site():
    # The parts of site that programs use directly: Debian's package directories, exit(), quit(), help().
    if not sys.executable.startswith("/usr/"):  # perhaps a virtual environment, which has only its own
        import site

        return site.main()
    import _sitebuiltins

    places = "/usr/local/lib/python%d.%d/dist-packages" % sys.version_info[:2], "/usr/lib/python3/dist-packages"
    sys.path += [p for p in places if sys.modules["posix"].access(p, 0)]
    sys.meta_path.append(_Site)
    names = sys.modules["builtins"].__dict__
    names["exit"] = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    names["quit"] = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
    names["help"] = _sitebuiltins._Helper()


def _add_layer():
    # Packages that were installed for this box precede those of the host, or hide them. Isolated mode ignores the
    # variable; what a caller set is searched before the library, see _follow.
    places = sys.modules["posix"].environ[b"PYTHONPATH"].decode("utf-8", "surrogateescape").split(":")
    if _layer in places:
        names = {"__name__": "millibox_layer"}
        exec(_read("layer/sitecustomize.py"), names)
        names["hide"]()
        _Site.is_done = True
    known = [i for i, entry in enumerate(sys.path) if entry.endswith("-packages")] or [len(sys.path)]
    sys.path[known[0] : known[0]] = [p for p in places if p.startswith("/opt/millibox/") and p != _layer]


class _Source:  # loader that gives traceback, inspect, warnings and pdb the program's lines
    def get_source(self, name):
        return _source.decode("utf-8-sig", "replace")


def _call_part(task, *args, also=()):
    names = {"__name__": "millibox_report", "PID": _pid, "RUN": __file__, "NAME": _name, "SHOWN": _shown}
    for part in ("report.py", *also):
        exec(_parts[part] if part in _parts else _read(part), names)
    return names[task](*args)


def _read(part):
    with open(_here + part, "rb") as file:
        return compile(file.read(), _here + part, "exec", 0, True)


def _report(task, *args):
    # A failed report must not change what the program does.
    try:
        return _call_part(task, *args)
    except BaseException:
        return None


def display(*values):
    """Show values among the results of this program, each as the value of a last expression."""
    if not _shown:
        _shown.append(_call_part("Shown"))
    _shown[0].add(values)


display.__module__ = "builtins"


def _hook(kind, value, trace):
    if _report("error", kind, value, trace, _path) is None:
        sys.__excepthook__(kind, value, trace)


def _compile(name):
    # Fast path: the last line is the last statement if it is an expression and the lines before it
    # are a program. Otherwise report.py builds a syntax tree, which costs half a millisecond.
    end = _source.rstrip()
    start = end.rfind(b"\n") + 1
    try:
        if end.isascii():
            last = compile(b"\n" * end.count(b"\n") + end[start:], name, "eval", 0, True)
            return compile(_source[:start], name, "exec", 0, True) if start else None, last
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return _call_part("split", _source, name)


def _prepare():
    # Everything that does not depend on the program.
    _add_site()
    sys.path.insert(0, "/workspace")
    sys.modules["__main__"] = _main
    names = _main.__dict__
    names["__builtins__"] = sys.modules["builtins"]
    sys.modules["builtins"].display = display
    # Not where the source is: programs look for data and store results beside __file__. The price is
    # that multiprocessing's "spawn", unlike "fork", does not find the program.
    names["__file__"] = "/workspace/main.py"
    names["__loader__"] = _Source()
    # As on a terminal: a streaming caller sees lines as they are written.
    sys.stdout.reconfigure(line_buffering=True)
    sys.excepthook = _hook


def _follow(environ):
    # Isolated mode ignores these variables, which callers set for their programs.
    places = environ.get(b"PYTHONPATH", b"").decode("utf-8", "surrogateescape").split(":")
    sys.path[1:1] = [place for place in places if place and place != _layer and place not in sys.path]
    if environ.get(b"PYTHONDONTWRITEBYTECODE"):
        sys.dont_write_bytecode = True
    if environ.get(b"PYTHONUNBUFFERED"):
        import _io

        raw = _io.open(1, "wb", 0, None, None, None, False)
        raw.name = "<stdout>"
        sys.stdout.flush()
        sys.stdout = sys.__stdout__ = _io.TextIOWrapper(raw, "utf-8", "surrogateescape", "\n", True, True)
        sys.stdout.mode = "w"


def _load(path):
    # Faster than open(), whose overhead is as long as most programs run.
    posix = sys.modules["posix"]
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    parts = []
    while part := posix.read(fd, 1 << 16):
        parts.append(part)
    posix.close(fd)
    return b"".join(parts)


def _run(path, args):
    # Return: exit code.
    global _name, _path, _pid, _source
    tools = sys.modules["posix"].environ.get(b"MILLIBOX_TOOLS")  # not known in _prepare: a zygote's is not the box's
    if tools is not None:
        sys.path.append(tools.decode())
    _path, _pid = path, sys.modules["posix"].getpid()
    if not _VARIABLES.isdisjoint(sys.modules["posix"].environ):
        _follow(sys.modules["posix"].environ)
    _source, _, asked = _load(path).partition(b"\0")  # docs/protocol.md, "The source"
    asked = _call_part("read_json", asked.decode(), also=("handler.py",)) if asked else {}
    _name = asked.pop("name", path[path.rfind("/") + 1 :])
    sys.argv[:] = [_name, *args]
    names, modules = _main.__dict__, sys.modules  # the program may replace sys.modules
    names["__file__"] = "/workspace/" + _name
    body, last = _compile(_name)
    if body is not None:
        exec(body, names)
    if "optional" in asked and (last is not None or not _call_part("is_handler", names, _name, also=("handler.py",))):
        asked = {}
    if last is not None:
        last = eval(last, names)
    pyplot = modules.get("matplotlib.pyplot")  # may have open figures
    if not asked and (last is not None or pyplot is not None or _shown):
        _report("result", last, pyplot)
    return _call_part("handle", names, asked, path, also=("handler.py",)) if asked else 0


_self = sys.modules["__main__"]  # keeps these globals alive
_here = __file__[: __file__.rfind("/") + 1]
_layer = _here + "layer"
_main = type(sys)("__main__")
_parts = {}  # compiled
_VARIABLES = {b"PYTHONPATH", b"PYTHONUNBUFFERED", b"PYTHONDONTWRITEBYTECODE"}
_pid = 0
_name = ""  # as the program and its tracebacks know it
_leave = _undo = None
_shown = []  # of display()
_prepare()
if b"MILLIBOX_ZYGOTE" in sys.modules["posix"].environ:
    _leave, _undo = _call_part("serve", globals(), also=("prepare.py", "zygote.py"))
if b"/opt/millibox/" in sys.modules["posix"].environ.get(b"PYTHONPATH", b""):
    _add_layer()
if sys.argv[1] == "-":
    _path, _args, _leave, _undo = _call_part("wait", globals(), also=("prepare.py",))
else:
    _path, _args = sys.argv[1], sys.argv[2:]
try:
    try:
        _code = _run(_path, _args)
    except SystemExit:
        if _shown:
            _report("result", None, None)
        raise
    if _leave:
        _leave(_code)
finally:
    if _undo:
        _undo()
if _code:
    sys.exit(_code)
