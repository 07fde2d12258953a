# SPDX-License-Identifier: Apache-2.0
"""The persistent Python runner: executes pieces of code one after another in one namespace.

Requests arrive on descriptor 3 (docs/protocol.md, "The request channel"): the file with the code, the
arguments, and stdin, stdout and stderr of the run as descriptors. The answer is a report (see report.py)
and the exit code that `python3 main.py` would have.

The code runs in this process and can break all of it, so nothing here is a security boundary: answers
are only as trustworthy as the program. But ordinary misuse, such as patched builtins, closed streams,
hooks, threads and forks, must not cost the session. So everything that the loop needs is bound before the
first request: it uses its own copies of builtins and modules, and is never the module __main__.
"""

import _signal
import _socket
import _thread
import array
import builtins
import io
import linecache
import os
import posix
import sys
import traceback

CHANNEL = 3
PACKAGES = "/opt/millibox/packages/"  # a layer
REQUEST_MAX = 72 << 10
PIECE_MAX = 60 << 10
SOURCES_MAX = 8 << 20  # characters of earlier runs that are kept for tracebacks
RECURSION_MIN = 1000  # for our own code
INTERRUPTED = 130
CLOEXEC = 0x40000000  # MSG_CMSG_CLOEXEC
PEEK = 0x2  # MSG_PEEK
SAMPLE = b"import sys\ndef f(x):\n    return [x, str(x)]\nfor i in range(3):\n    f(i)\nprint(f(42), file=out)\nf(1)\n"

KEPT = {name: __import__(name) for name in (
    "_ast", "_json", "binascii", "io", "posix", "reprlib", "sys", "time")}


def import_kept(name, *given, load=__import__):
    """__import__ of our own code: only modules that were loaded before the first request. The compiler, which we call,
    loads unicodedata for the first name that is not ASCII."""
    return load(name, *given) if name == "unicodedata" else KEPT[name]


# Functions defined from here on use this copy of the builtins, whatever the program does to the originals.
__builtins__ = {**builtins.__dict__, "__import__": import_kept}
BUILTINS = builtins
HERE = __file__[: __file__.rfind("/") + 1]
LAYER = HERE + "layer"


def load_report():
    names = {"__builtins__": __builtins__, "__name__": "millibox_report"}
    for part in ("report.py", "handler.py"):
        with io.open(HERE + part, "rb") as file:
            exec(compile(file.read(), HERE + part, "exec", 0, True), names)
    return names


def load(part, name):
    """Return: the names of a file that uses the builtins as they are."""
    path = HERE + part
    names = {"__builtins__": BUILTINS, "__name__": name}
    with io.open(path, "rb") as file:
        exec(compile(file.read(), path, "exec", 0, True), names)
    return names


def bind_user_site():
    """Return a function that adds the user's site directory to the module path as soon as there is one, before
    a layer's and the host's packages, and whether it did. A program may run pip at any time, and packages that are
    installed into the session come there."""
    folder = "/workspace/.local/lib/python%d.%d/site-packages" % sys.version_info[:2]
    exists = posix.access

    def add_user_site():
        if folder in sys.path or not exists(folder, 0):
            return False
        known = len(sys.path)
        first = ([i for i, entry in enumerate(sys.path) if is_place_of_packages(str(entry))] or [known])[0]
        sys.path.append(folder)  # without its .pth files, which would run in the runner
        sys.path[first:] = sys.path[known:] + sys.path[first:known]
        return True

    return add_user_site


def is_place_of_packages(entry):
    return entry.endswith("-packages") or entry.startswith(PACKAGES)


ADD_USER_SITE = bind_user_site()


def add_layer():
    """Packages that were installed for this box precede those of the host, or hide them. Isolated mode ignores the
    variable; what a caller set is searched before the library, see search()."""
    places = posix.environ.get(b"PYTHONPATH", b"").decode("utf-8", "surrogateescape").split(":")
    if LAYER in places:
        load("layer/sitecustomize.py", "millibox_layer")["hide"]()
    known = [i for i, entry in enumerate(sys.path) if str(entry).endswith("-packages")] or [len(sys.path)]
    sys.path[known[0] : known[0]] = [place for place in places if place.startswith(PACKAGES)]


class UserSite:
    """The last finder: searches again if a run added the directory since it began."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if ADD_USER_SITE():
            for finder in sys.meta_path:
                if finder is not UserSite and (spec := finder.find_spec(name, path, target)) is not None:
                    return spec


def bind_loop(report):
    """Return the loop as a closure: it uses no global of any module."""
    dup2, close, read, getpid, leave = posix.dup2, posix.close, posix.read, posix.getpid, posix._exit
    open_file, listdir, write = posix.open, posix.listdir, posix.write
    for_null, for_reading = posix.O_RDWR | posix.O_CLOEXEC, posix.O_RDONLY | posix.O_CLOEXEC
    set_signal, set_mask, whole_mask = _signal.signal, _signal.pthread_sigmask, _signal.SIG_SETMASK
    hold_back = _signal.SIG_BLOCK
    int_handler, sigint = _signal.default_int_handler, int(_signal.SIGINT)
    get_limit, set_limit, frames = sys.getrecursionlimit, sys.setrecursionlimit, sys._current_frames
    set_trace, set_profile = sys.settrace, sys.setprofile
    native_id = _thread.get_native_id
    modules, lines_cache = sys.modules, linecache.cache
    format_exception = traceback.format_exception
    split, render, error_form, words, read_json, answer, is_handler, new_shown = (
        report[name]
        for name in ("split", "render", "error_form", "words", "read_json", "answer", "is_handler", "Shown"))
    ours = (__file__, split.__code__.co_filename, report["HANDLER"])
    channel = _socket.socket(fileno=CHANNEL)
    wait_for, receive_message, send = channel.recv, channel.recvmsg, channel.send
    space = _socket.CMSG_SPACE(3 * 4)
    fds_array = array.array
    add_user_site = ADD_USER_SITE
    raw_file, reader, writer, text_file = io.FileIO, io.BufferedReader, io.BufferedWriter, io.TextIOWrapper
    string_file = io.StringIO
    pid = 0
    posix.set_inheritable(CHANNEL, False)
    main = type(sys)("__main__")
    space_of_main = main.__dict__
    null = []
    sources = {}
    pending = []  # [id, exit code or None] of the run that is not answered yet
    report_text = []  # its report
    shown = [new_shown()]  # what it displayed
    count = [0, 0]  # runs, characters in sources
    late = set()  # threads of earlier runs
    streams = []
    failures = []
    replaced = []  # variables set for this run, with their earlier values
    searched = []  # places on the module path for this run
    variables_of_os = os.environ._data  # as bytes; putenv alone would not change os.environ
    put_variable, unset_variable = posix.putenv, posix.unsetenv

    class Output(text_file):
        """sys.stdout of a run: discards what threads of earlier runs write."""

        __slots__ = ()

        def write(self, text):
            if late and native_id() in late:
                return len(text)
            return super().write(text)

    Output.__module__, Output.__qualname__ = "_io", "TextIOWrapper"

    def display(*values):
        """Show values among the results of this run, each as the value of a last expression."""
        if not late or native_id() not in late:
            shown[0].add(values)

    display.__module__, display.__qualname__ = "builtins", "display"

    def ignore(*_):
        """A handler instead of SIG_IGN, which child processes would inherit."""

    def point_at_null():
        try:
            for fd in (0, 1, 2):
                dup2(null[0], fd)
        except OSError:  # closed by the program
            null[0] = open_file("/dev/null", for_null)
            for fd in (0, 1, 2):
                dup2(null[0], fd)

    def receive():
        try:
            # A received request counts as started. A process killed in recvmsg() may have received it; in a peek not.
            wait_for(1, PEEK)
            data, ancillary, _, _ = receive_message(REQUEST_MAX, space, CLOEXEC)
        except OSError:
            leave(1)
        if not data:
            leave(0)
        fds = fds_array("i")
        for _, _, packed in ancillary:
            fds.frombytes(packed)
        head, *words = data.split(b"\0")[:-1]
        _, ident, path = head.split(b" ", 2)
        border = words.index(b"")
        variables = [word.partition(b"=")[::2] for word in words[:border]]
        return int(ident), path, variables, [arg.decode("utf-8", "surrogateescape") for arg in words[border + 1 :]], fds

    def set_variable(name, value):
        """In os.environ and in libc's environment. None: unset."""
        if value is None:
            variables_of_os.pop(name, None)
            unset_variable(name)
        else:
            variables_of_os[name] = value
            put_variable(name, value)

    def search(value):
        """Follow PYTHONPATH, which isolated mode ignores. Return: what was added to the module path."""
        places = value.decode("utf-8", "surrogateescape").split(":")
        places = [place for place in places if place and place != LAYER and place not in sys.path]
        sys.path[1:1] = places
        return places

    def set_variables(variables):
        """Set environment variables for this run only."""
        for name, value in variables:
            before = variables_of_os.get(name)
            replaced.append((name, before))
            if name == b"PYTHONPATH":
                searched.extend(search(value))
                value = value + b":" + before if before else value
            set_variable(name, value)

    def restore_variables():
        while searched:
            try:
                sys.path.remove(searched.pop())
            except Exception:
                pass  # the program changed sys.path
        while replaced:
            name, value = replaced.pop()
            try:
                set_variable(name, value)
            except Exception:
                pass  # the program broke os.environ

    def make_stream(fd, name, errors):
        raw = raw_file(fd, "w" if fd else "r", closefd=False)
        raw.name = name
        if fd == 0:
            return text_file(reader(raw), "utf-8", errors)
        at_once = fd == 1 and bool(variables_of_os.get(b"PYTHONUNBUFFERED"))
        return Output(raw if at_once else writer(raw), "utf-8", errors, line_buffering=True, write_through=at_once)

    def make_streams(fds):
        for fd in (0, 1, 2):
            dup2(fds[fd], fd)
            close(fds[fd])
        streams[:] = (make_stream(0, "<stdin>", "surrogateescape"), make_stream(1, "<stdout>", "surrogateescape"),
                      make_stream(2, "<stderr>", "backslashreplace"))
        sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams

    def note_threads():
        now = set()
        if len(frames()) > 1:
            now.update([int(name) for name in listdir("/proc/self/task")])
            now.discard(native_id())
        late.update(now)  # in this order, so that live threads are never missing from it
        late.intersection_update(now)

    def read_source(path):
        fd = open_file(path, for_reading)
        parts = []
        while part := read(fd, 1 << 20):
            parts.append(part)
        close(fd)
        return b"".join(parts)

    def keep_source(name, source):
        text = source.decode("utf-8-sig", "replace")
        count[1] -= len(sources.pop(name, ""))  # an earlier run of a file with this name
        sources[name] = text
        count[1] += len(text)
        while count[1] > SOURCES_MAX and len(sources) > 1:
            old = next(iter(sources))
            count[1] -= len(sources.pop(old))
            lines_cache.pop(old, None)
        # Each line ends with a newline, as linecache's own do: traceback places carets by that.
        lines_cache[name] = (len(text), None, list(string_file(text + "\n", None)), name)

    def flush():
        for stream in {id(s): s for s in (*streams[1:], sys.stdout, sys.stderr)}.values():
            try:
                stream.flush()
            except Exception:
                pass  # closed, or without a reader

    def send_report(ident):
        """Send the report in pieces, right before the answer, so that the reader wakes up once."""
        head = b"report %d\n" % ident
        while report_text:
            data = report_text.pop().encode()
            for start in range(0, len(data), PIECE_MAX):
                send(head + data[start : start + PIECE_MAX])

    def write_stderr(text):
        """Write to the run's stderr, even if the program replaced sys.stderr."""
        try:
            sys.stdout.flush()
        except Exception:
            pass
        try:
            streams[2].write(text)
        except Exception:
            write(2, text.encode("utf-8", "backslashreplace")[:PIECE_MAX])

    def show(error):
        """Print an exception as the interpreter would, without our own frames. Return: error for the report."""
        kind, trace = type(error), error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in ours:
            trace = trace.tb_next
        said = words(error)  # an endless __str__ is interrupted here; the handler below would swallow it
        try:
            text = "".join(format_exception(kind, error, trace))
        except Exception:  # it uses builtins that the program may have changed
            text = kind.__name__ + "\n"
        write_stderr(text)
        return error_form(kind, said, text)

    def exit_code(error):
        code = error.code
        if code is None:
            return 0
        if isinstance(code, int):
            return int(code) & 0xFF
        write_stderr(str(code) + "\n")
        return 1

    def run_code(source, name):
        """Return: value of the last expression."""
        keep_source(name, source)
        body, last = split(source, name)
        exec(body, space_of_main)
        return None if last is None else eval(last, space_of_main)

    def answer_more(asked):
        """Call the handler or read variables, as requested. Return: as execute()."""
        code, data, failure = answer(space_of_main, asked)
        return code, None, None if failure is None else show(failure), data

    def execute(path):
        """Run the code. Return: exit code, value of the last expression, error for the report, and the
        result of a handler or of variables as JSON."""
        count[0] += 1
        try:
            add_user_site()
            source, _, asked = read_source(path).partition(b"\0")
            asked = read_json(asked.decode()) if asked else None
            file = asked.pop("name", None) if asked else None
            asked = asked or None
            name = file or "<cell %d>" % count[0]
            sys.argv[0] = file or "main.py"
            space_of_main["__file__"] = "/workspace/" + sys.argv[0]
            optional = asked and "optional" in asked
            if asked and "event" in asked and not optional:
                space_of_main.pop("handler", None)  # of an earlier run
            before = space_of_main.get("handler")  # may be of a file with the same name
            value = run_code(source, name)
            if optional and (value is not None or before is not None and space_of_main.get("handler") is before
                             or not is_handler(space_of_main, name)):
                asked = None
            return (0, value, None, None) if asked is None else answer_more(asked)
        except SystemExit as error:
            return exit_code(error), None, None, None
        except KeyboardInterrupt as error:
            return INTERRUPTED, None, show(error), None
        except BaseException as error:
            return 1, None, show(error), None

    def prepare(variables, args, fds):
        space_of_main.setdefault("__builtins__", BUILTINS)
        space_of_main.setdefault("__name__", "__main__")
        modules["__main__"] = main
        sys.argv = ["main.py", *args]
        set_variables(variables)
        note_threads()  # before there is a stream that old threads could write to
        make_streams(fds)

    def reset():
        """Remove the program's hooks, which could break the loop."""
        set_trace(None)
        set_profile(None)
        if get_limit() < RECURSION_MIN:
            set_limit(RECURSION_MIN)

    def preload(names):
        """Import the template's modules. A failure is reported on stderr of the first execution."""
        for name in names:
            try:
                BUILTINS.__import__(name)
            except BaseException as error:
                failures.append(f"preload: cannot import {name}: {type(error).__name__}\n")

    def perform(path, variables, args, fds):
        prepare(variables, args, fds)
        while failures:
            write_stderr(failures.pop(0))
        set_mask(whole_mask, ())
        set_signal(sigint, int_handler)  # from here on KeyboardInterrupt may be raised anywhere
        pending[1], value, error, answered = execute(path)
        reset()
        flush()
        if (value is not None or error is not None or answered is not None or shown[0].bundles
                or "matplotlib.pyplot" in modules):
            try:
                # An error in the report must not be raised.
                text = render(value, error, answered, modules.get("matplotlib.pyplot"), shown[0])
                report_text[:] = (text,) if text else ()
            except KeyboardInterrupt:
                pending[1] = INTERRUPTED
            except Exception:
                pass  # answer with the exit code alone
            flush()

    def conclude():
        ident, code = pending[0], 1 if pending[1] is None else pending[1]
        set_signal(sigint, ignore)  # raises a pending interrupt; then conclude() runs once more
        reset()
        restore_variables()
        if getpid() != pid:  # a forked child that returned from the program
            flush()
            leave(code)
        point_at_null()
        flush()  # unwritten output must not end up in the next run
        try:
            send_report(ident)
        except OSError:
            report_text.clear()  # answer with the exit code alone
        try:
            send(b"done %d %d" % (ident, code))
        except OSError:
            leave(1)
        pending.clear()

    def step():
        if pending:
            conclude()
            return
        ident, path, variables, args, fds = receive()
        pending[:] = ident, None
        report_text.clear()
        shown[0] = new_shown()
        perform(path, variables, args, fds)

    def note_error(error):
        """Record an exception that ended a step: the interrupted run still needs its answer."""
        if pending and pending[1] is None and isinstance(error, KeyboardInterrupt):
            pending[1] = INTERRUPTED

    def serve():
        while True:
            try:
                step()
            except BaseException as error:
                set_mask(hold_back, (sigint,))  # until the next run; raises a pending interrupt
                note_error(error)

    def loop():
        nonlocal pid
        pid = getpid()
        null.append(open_file("/dev/null", for_null))
        set_signal(sigint, ignore)
        space_of_main["__file__"] = "/workspace/main.py"
        sys.path.insert(0, "/workspace")
        add_layer()
        search(variables_of_os.get(b"PYTHONPATH", b""))
        sys.dont_write_bytecode = bool(variables_of_os.get(b"PYTHONDONTWRITEBYTECODE"))
        sys.meta_path.append(UserSite)
        if b"MILLIBOX_TOOLS" in posix.environ:
            sys.path.append(posix.environ[b"MILLIBOX_TOOLS"].decode())
        BUILTINS.display = display
        preload(sys.argv[1:])
        while True:
            try:
                serve()
            except BaseException as error:  # an interrupt during the handling of another one
                note_error(error)

    return loop


def warm(report):
    """For a zygote: run a sample, so that everything a run needs is loaded and in memory."""
    body, last = report["split"](SAMPLE, "<cell 0>")
    names = {"out": io.TextIOWrapper(io.BytesIO(), line_buffering=True)}
    exec(body, names)
    report["forms"](eval(last, names))


def start():
    report = load_report()
    loop = bind_loop(report)
    if b"MILLIBOX_ZYGOTE" in posix.environ:
        zygote = load("zygote.py", "millibox_zygote")["serve"]  # kept: freeing it costs a child more than keeping it
        zygote(lambda: warm(report))
    loop()


start()
