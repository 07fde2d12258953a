# SPDX-License-Identifier: Apache-2.0
"""The part of run.py and session.py for an interpreter that is warm before there is a box.

The engine executes the script with MILLIBOX_ZYGOTE in its environment (docs/internals/zygote.md). What is
here prepares it, and then serves: serve() returns in children only, each in a box of its own, as the
payload, with everything as if the interpreter had been executed there. What it can't be told from:

    names         sys.modules, sys.argv, sys.orig_argv, os.environ, sys.stdin and its kin are those of a start
    randomness    every generator that this process has a state of is seeded anew: see RENEWED
    what is left  memory of what was imported and dropped again; strings hash as in the other children of
                  this zygote; /proc/self/environ is the zygote's and /proc/self/cmdline ends with the script

The zygote itself never sees a byte of a request. All that it does with its power is in C (src/zygote).
"""

import sys

VARIABLE = b"MILLIBOX_ZYGOTE"
OWN_VARIABLES = b"LD_BIND_NOW", b"OPENBLAS_NUM_THREADS", b"OMP_NUM_THREADS", b"MKL_NUM_THREADS"
KEPT = []  # what a child would otherwise take apart, page by page, when it goes on to its program
posix = sys.modules["posix"]


def load(fd):
    """The module, by its descriptor: it has no name here."""
    import _imp

    module = _imp.create_dynamic(type(sys.implementation)(name="millibox_zygote", origin="/proc/self/fd/%d" % fd))
    posix.close(fd)
    return module


def preload(names):
    """Modules of the template. What fails fails again in the program that wants it, and is told there; what they say
    meanwhile, of fonts that are not there and the like, is no operator's concern."""
    stderr = posix.dup(2)
    posix.dup2(1, 2)  # /dev/null, from the engine
    for name in names:
        try:
            __import__(name)
        except BaseException:
            pass
    posix.dup2(stderr, 2)
    posix.close(stderr)


def renew_numpy(module):
    module.seed()


def renew_openssl(module):
    # Its generators look at the number of the process, which in a box may be the zygote's own.
    module.RAND_add(posix.urandom(48), 48.0)


def renew_uuid(module):
    module._node = module._last_timestamp = None


def renew_tempfile(module):
    module._name_sequence = None
    module.tempdir = None


def renew_multiprocessing(module):
    module.current_process()._config["authkey"] = module.AuthenticationString(posix.urandom(32))


def renew_torch(module):
    module.seed()


def renew_random(module):
    module.seed()


# What keeps a state that was seeded once. Those that ask the system each time (secrets, SystemRandom,
# numpy's default_rng) need nothing.
RENEWED = {
    "random": renew_random,
    "numpy.random": renew_numpy,
    "_ssl": renew_openssl,
    "uuid": renew_uuid,
    "tempfile": renew_tempfile,
    "multiprocessing.process": renew_multiprocessing,
    "torch": renew_torch,
}


def be_usual(locale, ctype):
    """Leave the environment that most programs get, so that their children need not make it: *.zygote has it, and
    variables for what is imported here. Return: it as a child is told it."""
    for name in OWN_VARIABLES:
        if posix.environ.pop(name, None) is not None:
            posix.unsetenv(name)
    words = [(name + b"=" + value).decode("utf-8", "surrogateescape") for name, value in posix.environ.items()]
    # An import may have changed either, and the C library's variables without a word to Python.
    locale.setlocale(locale.LC_CTYPE, ctype)
    set_environment(words)
    return "".join(word + "\0" for word in words).encode("utf-8", "surrogateescape")


def set_environment(words):
    environ = posix.environ  # os.environ has the same dictionary
    for name in environ:
        posix.unsetenv(name)
    environ.clear()
    for word in words:
        name, _, value = word.encode("utf-8", "surrogateescape").partition(b"=")
        environ[name] = value
        posix.putenv(name, value)


def settle_locale(time, locale):
    """What the interpreter makes of the environment when it starts."""
    environ = posix.environ
    said = environ.get(b"LC_ALL") or environ.get(b"LC_CTYPE") or environ.get(b"LANG") or b"C"
    if said in (b"C", b"POSIX") and not environ.get(b"LC_ALL"):
        environ[b"LC_CTYPE"] = b"C.UTF-8"
        posix.putenv(b"LC_CTYPE", b"C.UTF-8")
    try:
        locale.setlocale(locale.LC_CTYPE, "")
    except ValueError:
        pass  # one that is not here
    if b"TZ" in environ:
        time.tzset()


def make_stream(io, fd, mode, name, errors, lines):
    """As the interpreter makes it at its start."""
    binary = io.open(fd, mode + "b", -1, None, None, None, False)
    binary.raw.name = name
    stream = io.TextIOWrapper(binary, "utf-8", errors, "\n", lines)
    stream.mode = mode
    return stream


def make_streams(io, lines):
    sys.stdin = sys.__stdin__ = make_stream(io, 0, "r", "<stdin>", "surrogateescape", False)
    sys.stdout = sys.__stdout__ = make_stream(io, 1, "w", "<stdout>", "surrogateescape", lines)
    sys.stderr = sys.__stderr__ = make_stream(io, 2, "w", "<stderr>", "backslashreplace", True)


def make_usual_streams(io, lines, are_usual):
    """Before there is a child, on pipes like those that it gets: that spares it a sixth of its way. Return: whether
    they are."""
    own, ends = [posix.dup(fd) for fd in (1, 2)], posix.pipe()
    for fd in 1, 2:
        posix.dup2(ends[1], fd)
    made = bool(are_usual())
    if made:
        make_streams(io, lines)
    for fd in 1, 2:
        posix.dup2(own[fd - 1], fd)
    for fd in *own, *ends:
        posix.close(fd)
    return made


def bind_run(run):
    """Of run.py, whose prepare.py is here too: what goes the way of a program once, and what ends one quickly, of a
    process of which there is nothing to see at its end."""
    names = run["_zygote"] = globals()  # as KEPT
    warm_up, bind_leave = names["warm"], names["bind_leave"]
    return lambda: warm_up(run), bind_leave


def serve(way):
    """Become a zygote. @way: run.py's names, or session.py's way of a run. Returns in a child, as the payload,
    what ends its process quickly and what is to be done where it does not."""
    warm_up, bind_end = bind_run(way) if isinstance(way, dict) else (way, None)
    fd, *wanted = posix.environ.pop(VARIABLE).decode().split()
    posix.unsetenv(VARIABLE)
    first = len(sys.orig_argv) - len(sys.argv)
    words = [*sys.orig_argv, *sys.argv]  # as KEPT
    lines = sys.stdout.line_buffering
    before = dict(sys.modules)
    library = load(int(fd))
    import _io, _locale, atexit, gc, time  # noqa: E401  children use them, and programs find them as at a start

    ctype = _locale.setlocale(_locale.LC_CTYPE)
    warm_up()
    own = {name: module for name, module in sys.modules.items() if name not in before}
    for name in own:
        del sys.modules[name]
    preload(wanted)
    renewed = [(renew, sys.modules[name]) for name, renew in RENEWED.items() if name in sys.modules]
    usual = be_usual(_locale, ctype)
    are_usual = library.has_usual_streams
    made = make_usual_streams(_io, lines, are_usual)
    begin, leave, undo = bind_end(library.leaving, gc, atexit) if bind_end else (None, None, None)
    KEPT.append(locals())
    gc.collect()
    gc.freeze()
    library.move_text()
    # A fork has one thread only, and would wait for ever for what the others held.
    if len(posix.listdir("/proc/self/task")) > 1 or library.harden() < 0:
        posix._exit(1)
    library.serve()
    for renew, module in renewed:
        renew(module)
    # Pages that every program writes to, while there is nothing to do but wait for the box.
    compile(b"0", "", "eval", 0, True)
    sys.stdout.flush()
    sys.stderr.flush()
    arguments, variables = library.become(usual)
    sys.orig_argv[:] = arguments
    sys.argv[:] = arguments[first:]
    if variables is not None:
        set_environment(variables)
        settle_locale(time, _locale)
    if not made or not are_usual():
        make_streams(_io, lines)
    gc.freeze()  # all this is no part of the program
    # One that waits for its program first (prepare.py) has another way to say its end.
    if not begin or sys.argv[1] == "-":
        return None, None
    begin()
    return leave, undo
