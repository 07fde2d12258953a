# SPDX-License-Identifier: Apache-2.0
"""Part of run.py and session.py: an interpreter that is warm before there is a box.

The engine executes the script with MILLIBOX_ZYGOTE in its environment (docs/internals/zygote.md). serve() warms
the interpreter up and then returns only in children, each in its own box, as the payload, as if the interpreter had
been executed there:

    names         sys.modules, sys.argv, sys.orig_argv, os.environ, sys.stdin, stdout, stderr are those of a cold start
    randomness    every generator with state in this process is seeded again: see RENEWED
    differences   memory of modules that were imported and dropped; strings hash as in the other children of this
                  zygote; /proc/self/environ is the zygote's, and /proc/self/cmdline ends with the script

The zygote itself never sees a byte of a request. Everything it does with its privileges is in C (src/zygote).
"""

import sys

VARIABLE = b"MILLIBOX_ZYGOTE"
OWN_VARIABLES = b"LD_BIND_NOW", b"OPENBLAS_NUM_THREADS", b"OMP_NUM_THREADS", b"MKL_NUM_THREADS"
KEPT = []  # references that spare a child from freeing these objects, page by page, before its program
posix = sys.modules["posix"]


def load(fd):
    """Load the C module by descriptor; it has no path here."""
    import _imp

    module = _imp.create_dynamic(type(sys.implementation)(name="millibox_zygote", origin="/proc/self/fd/%d" % fd))
    posix.close(fd)
    return module


def preload(names):
    """Import the template's modules. A failing import fails again, and is reported, in the program that needs it.
    Warnings that modules print meanwhile, about missing fonts and the like, are discarded."""
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
    # Its generators reseed when the pid changes, but a child's pid in the box may equal the zygote's.
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


# Modules with seeded state. Those that ask the kernel each time (secrets, SystemRandom, numpy's default_rng) need
# nothing.
RENEWED = {
    "random": renew_random,
    "numpy.random": renew_numpy,
    "_ssl": renew_openssl,
    "uuid": renew_uuid,
    "tempfile": renew_tempfile,
    "multiprocessing.process": renew_multiprocessing,
    "torch": renew_torch,
}


def set_usual_environment(locale, ctype):
    """Set the environment that most programs get, so that children need not: *.zygote has it, plus OWN_VARIABLES for
    the imports. Return: the environment in the form in which the agent sends it."""
    for name in OWN_VARIABLES:
        if posix.environ.pop(name, None) is not None:
            posix.unsetenv(name)
    words = [(name + b"=" + value).decode("utf-8", "surrogateescape") for name, value in posix.environ.items()]
    # An import may have changed the locale, or libc's environment behind Python's back.
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
    """Set locale and time zone from the environment, as the interpreter does at start."""
    environ = posix.environ
    said = environ.get(b"LC_ALL") or environ.get(b"LC_CTYPE") or environ.get(b"LANG") or b"C"
    if said in (b"C", b"POSIX") and not environ.get(b"LC_ALL"):
        environ[b"LC_CTYPE"] = b"C.UTF-8"
        posix.putenv(b"LC_CTYPE", b"C.UTF-8")
    try:
        locale.setlocale(locale.LC_CTYPE, "")
    except ValueError:
        pass  # not installed
    if b"TZ" in environ:
        time.tzset()


def make_stream(io, fd, mode, name, errors, lines):
    """Make a stream as the interpreter does at start."""
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
    """Make the streams in the zygote, on pipes like those of most children: saves a sixth of a child's start. Return:
    whether they were made."""
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
    """For run.py: its warm-up and bind_leave(), from prepare.py in the same namespace."""
    names = run["_zygote"] = globals()  # as KEPT
    warm_up, bind_leave = names["warm"], names["bind_leave"]
    return lambda: warm_up(run), bind_leave


def serve(way):
    """Become a zygote. @way: run.py's names, or session.py's warm-up function. Returns in a child, as the payload:
    leave() and undo() of bind_leave(), or None."""
    warm_up, bind_end = bind_run(way) if isinstance(way, dict) else (way, None)
    fd, *wanted = posix.environ.pop(VARIABLE).decode().split()
    posix.unsetenv(VARIABLE)
    first = len(sys.orig_argv) - len(sys.argv)
    words = [*sys.orig_argv, *sys.argv]  # as KEPT
    lines = sys.stdout.line_buffering
    before = dict(sys.modules)
    library = load(int(fd))
    import _io, _locale, atexit, gc, time  # noqa: E401  children use them; removed from sys.modules below

    ctype = _locale.setlocale(_locale.LC_CTYPE)
    warm_up()
    own = {name: module for name, module in sys.modules.items() if name not in before}
    for name in own:
        del sys.modules[name]
    preload(wanted)
    renewed = [(renew, sys.modules[name]) for name, renew in RENEWED.items() if name in sys.modules]
    usual = set_usual_environment(_locale, ctype)
    are_usual = library.has_usual_streams
    made = make_usual_streams(_io, lines, are_usual)
    begin, leave, undo = bind_end(library.leaving, gc, atexit) if bind_end else (None, None, None)
    KEPT.append(locals())
    gc.collect()
    gc.freeze()
    library.move_text()
    # fork() copies one thread; locks held by others would stay locked.
    if len(posix.listdir("/proc/self/task")) > 1 or library.harden() < 0:
        posix._exit(1)
    library.serve()
    for renew, module in renewed:
        renew(module)
    # Touch pages that every program writes, while waiting for the box.
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
    gc.freeze()  # these objects are not the program's
    # A prepared process (prepare.py) binds its own leave().
    if not begin or sys.argv[1] == "-":
        return None, None
    begin()
    return leave, undo
