# SPDX-License-Identifier: Apache-2.0
"""Part of run.py: a process that is started before its program is known.

It waits on descriptor 3 (docs/protocol.md, "A prepared program") and then behaves as run.py does with a program
that is known from the start: the same names, modules, streams, exit codes. Optimisations are undone before the
program runs, or are not observable:

    channel   moves to the highest descriptor, so that the program's first one is 3
    gc        objects that exist before the program are frozen, so that leave() sees only the program's
    exit      if the program leaves nothing whose finalisation could be observed, the process reports "done" instead
              of finalising the interpreter, which takes longer than most programs run. See leave().
"""

import sys

CHANNEL = 3
STDIN = 4
REQUEST_MAX = 72 << 10
OBJECTS_MAX = 20000  # checking more objects is no faster than a regular exit
SAMPLE = b"import sys\ndef f(x):\n    return [x, str(x)]\nfor i in range(3):\n    f(i)\nprint(f(42), file=out)\nf(1)\n"
# With these modules a program may have filled buffers that only exit() flushes, or changed what gc reports.
OPAQUE = "_ctypes", "_cffi_backend", "readline", "_curses", "gc"
posix = sys.modules["posix"]


def preload(names):
    """Import the template's modules. A failing import fails again, and is reported, in the program that needs it."""
    for name in names:
        try:
            __import__(name)
        except BaseException:
            pass


def warm(run):
    """Run a sample program once, so that everything a program needs is loaded and in memory."""
    import _io

    parts = run["_parts"]
    for part in "report.py", "handler.py", "prepare.py":
        if part not in parts:
            parts[part] = run["_read"](part)
    names = {"out": _io.TextIOWrapper(_io.BytesIO(), line_buffering=True)}
    run["_source"] = SAMPLE
    for code in run["_compile"]("main.py"):
        exec(code, names)
    run["_load"](run["__file__"])


def make_stdin():
    """Make sys.stdin as the interpreter does at start."""
    import _io

    posix.dup2(STDIN, 0)
    raw = _io.open(0, "rb", -1, None, None, None, False)
    raw.raw.name = "<stdin>"
    sys.stdin = sys.__stdin__ = _io.TextIOWrapper(raw, "utf-8", "surrogateescape", "\n")
    sys.stdin.mode = "r"


def bind_leave(tell, gc, atexit):
    """Return begin(), leave() and undo() as closures: they use no name that a program can change. @tell reports the
    exit code. Call begin() right before the program runs."""
    getpid, close, end = posix.getpid, posix.close, posix._exit
    get_objects, exits = gc.get_objects, atexit._ncallbacks
    opaque = [name for name in OPAQUE if name not in sys.modules]
    threads, get_trace, get_profile = sys.modules["_thread"]._count, sys.gettrace, sys.getprofile
    modules, module, reference = sys.modules, type(sys), sys.modules["_weakref"].ref
    is_type, kind_of, has, show = isinstance, type, hasattr, str
    thaw = gc.unfreeze
    before, pid, streams = [], [], []

    def is_plain(thing):
        kind = kind_of(thing)
        if kind is module:
            return not show(thing.__dict__.get("__file__")).endswith(".so")
        return kind is not reference or thing.__callback__ is None

    def has_end(objects):
        """Whether the finalisation of an object could be observed: a finaliser or a weakref callback."""
        for kind in {*map(kind_of, objects)}:
            if has(kind, "__del__"):
                return True
        for thing in objects:
            if is_type(thing, kind_of) and "__del__" in thing.__dict__ or not is_plain(thing):
                return True
        return False

    def is_quiet():
        """No threads, no exit handlers, no trace or profile function, unchanged streams."""
        for name in opaque:
            if name in modules:
                return False
        return ([getpid()] == pid and threads() == 0 and [exits()] == before
                and get_trace() is None and get_profile() is None
                and sys.stdout is streams[0] and sys.stderr is streams[1])

    def leave(code):
        """Exit at once, or return if the interpreter must exit the regular way."""
        try:
            if not is_quiet():
                return
            objects = get_objects()
            if len(objects) > OBJECTS_MAX or has_end(objects):
                return
            for stream in streams:
                stream.flush()
            close(1)
            close(2)
            tell(code)
        except BaseException:
            return
        end(code)

    def begin():
        pid[:] = (getpid(),)
        before[:] = (exits(),)
        streams[:] = sys.stdout, sys.stderr

    def undo():
        """Before a regular exit: unfreeze objects, and keep no stream alive."""
        streams.clear()
        thaw()

    return begin, leave, undo


def receive(channel, wait_for):
    """Return: path of the code, arguments, whether there is a stdin."""
    # A request that was read counts as started. A process killed in read() may still have read it; in poll() not.
    wait_for()
    data = posix.read(channel, REQUEST_MAX)
    if not data:
        posix._exit(0)
    head, *words = data.split(b"\0")[:-1]
    verb, _, path = head.split(b" ", 2)
    args = words[words.index(b"") + 1 :]
    return path.decode(), [arg.decode("utf-8", "surrogateescape") for arg in args], verb == b"stdin"


def wait(run):
    """Return: path of the code, its arguments, leave() and undo() of bind_leave()."""
    known = len(sys.modules)
    import atexit
    import gc
    import select

    channel = posix.sysconf("SC_OPEN_MAX") - 1
    posix.dup2(CHANNEL, channel, False)
    posix.close(CHANNEL)
    wanted = sys.argv[2:]
    first = len(sys.orig_argv) - len(sys.argv) + 1  # index of the program's path
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    warm(run)
    # Only the modules added last: iterating over all names would write to the page of each.
    for name, _ in [*zip(reversed(sys.modules), range(len(sys.modules) - known))]:
        del sys.modules[name]
    preload(wanted)
    write, said = posix.write, b"done %d"
    begin, leave, undo = bind_leave(lambda code: write(channel, said % code), gc, atexit)
    gc.collect()
    gc.freeze()
    posix.write(channel, b"ready")
    path, args, has_stdin = receive(channel, poll.poll)
    if has_stdin:
        make_stdin()
    posix.close(STDIN)
    sys.orig_argv[first:] = path, *args
    begin()
    return path, args, leave, undo
