# SPDX-License-Identifier: Apache-2.0
"""The part of run.py for a process that is started before its program is known.

It waits at descriptor 3 (docs/protocol.md, "A prepared program"), and what it then does is what run.py does with
a program that is there from the start: the same names, modules, streams, exit codes. What only makes it quicker
is taken back before the program runs, or can't be told from outside:

    the channel   moves to the highest descriptor, so that a program's first is 3
    gc            what was there before the program is frozen: that is how leave() sees what came since
    the end       where a program leaves nothing behind whose end can be seen, the process says "done" instead
                  of taking itself apart, which takes longer than most programs run. See leave().
"""

import sys

CHANNEL = 3
STDIN = 4
REQUEST_MAX = 72 << 10
OBJECTS_MAX = 20000  # beyond that looking at them is no better than a proper end
SAMPLE = b"import sys\ndef f(x):\n    return [x, str(x)]\nfor i in range(3):\n    f(i)\nprint(f(42), file=out)\nf(1)\n"
# Modules with which a program may have filled buffers that only exit() writes, or changed what gc shows.
OPAQUE = "_ctypes", "_cffi_backend", "readline", "_curses", "gc"
posix = sys.modules["posix"]


def preload(names):
    """Modules of the template. What fails fails again in the program that wants it, and is told there."""
    for name in names:
        try:
            __import__(name)
        except BaseException:
            pass


def warm(run):
    """Go the way of a program once, so that what it needs has been read and touched."""
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
    """As the interpreter makes it, for a stdin that is there from the start."""
    import _io

    posix.dup2(STDIN, 0)
    raw = _io.open(0, "rb", -1, None, None, None, False)
    raw.raw.name = "<stdin>"
    sys.stdin = sys.__stdin__ = _io.TextIOWrapper(raw, "utf-8", "surrogateescape", "\n")
    sys.stdin.mode = "r"


def bind_leave(tell, gc, atexit):
    """leave() as a closure: it uses no name that a program can change. @tell: says with what code it ends. Call
    begin() when all is as the program finds it."""
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
        """Whether the end of one of them could be seen: it has a finalizer, or others wait for it."""
        for kind in {*map(kind_of, objects)}:
            if has(kind, "__del__"):
                return True
        for thing in objects:
            if is_type(thing, kind_of) and "__del__" in thing.__dict__ or not is_plain(thing):
                return True
        return False

    def is_quiet():
        """No thread, nothing to be called at the end, nobody who watches, the streams as they were."""
        for name in opaque:
            if name in modules:
                return False
        return ([getpid()] == pid and threads() == 0 and [exits()] == before
                and get_trace() is None and get_profile() is None
                and sys.stdout is streams[0] and sys.stderr is streams[1])

    def leave(code):
        """End here, unless the interpreter has to do it: then this returns."""
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
        """The interpreter ends as ever: nothing is spared from it, and nothing of ours keeps a stream alive."""
        streams.clear()
        thaw()

    return begin, leave, undo


def receive(channel, wait_for):
    """Return: path of the code, arguments, whether there is a stdin."""
    # What was read counts as begun. Who is killed while it waits in read() may still read; in poll() it may not.
    wait_for()
    data = posix.read(channel, REQUEST_MAX)
    if not data:
        posix._exit(0)
    head, *words = data.split(b"\0")[:-1]
    verb, _, path = head.split(b" ", 2)
    args = words[words.index(b"") + 1 :]
    return path.decode(), [arg.decode("utf-8", "surrogateescape") for arg in args], verb == b"stdin"


def wait(run):
    """Return: path of the code, its arguments, what ends the process after it, and what is to be done where it
    does not."""
    known = len(sys.modules)
    import atexit
    import gc
    import select

    channel = posix.sysconf("SC_OPEN_MAX") - 1
    posix.dup2(CHANNEL, channel, False)
    posix.close(CHANNEL)
    wanted = sys.argv[2:]
    first = len(sys.orig_argv) - len(sys.argv) + 1  # of what the program's own would replace
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    warm(run)
    # The last ones. To look at the names of all writes to each of them.
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
