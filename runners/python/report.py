# SPDX-License-Identifier: Apache-2.0
"""Part of run.py that is loaded on demand: reports values and exceptions. session.py uses it too.

A report goes to the agent as one JSON object:

    {"result": VALUE, "results": [{"text/plain": TEXT, "text/html": TEXT, "image/png": BASE64}],
     "error": {"name": TEXT, "value": TEXT, "traceback": [LINE...]}}

The results are what display() was given, then open figures, then the value of the last expression.

All sizes are bounded. The C modules of json and socket are used directly: importing the Python ones
would take longer than most programs run. run.py sets PID, its process id, RUN, its file name, NAME, the program's, and
SHOWN, a list of one Shown after display() was called; session.py sends reports itself. handler.py is loaded into the
same namespace if needed.
"""

import sys

HANDLER = None  # file name of handler.py, if loaded
SOCKET = "/run/millibox/report.sock"
TIMEOUT_S = 2.0
REPORT_MAX = 1 << 20
TEXT_MAX = 64 << 10
NODES_MAX = 10000
DEPTH_MAX = 32
TRACE_LINES_MAX = 200
FIGURES_MAX = 16
SHOWN_MAX = 200  # by display(), in a run
SHOWN_SIZE_MAX = 1 << 20
BIG = 10000  # containers beyond this are abbreviated before they are rendered

RICH = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_latex_", "text/latex"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
)


def split(source, name):
    """Return: code of the program without its last expression, and code of that expression or None."""
    try:
        tree = compile(source, name, "exec", 0x400, True)  # ast.PyCF_ONLY_AST
    except (RecursionError, MemoryError):
        return compile(source, name, "exec", 0, True), None  # too deep for a syntax tree
    if not tree.body or type(tree.body[-1]).__name__ != "Expr":
        return compile(tree, name, "exec", 0, True), None
    from _ast import Expression

    last = Expression(tree.body.pop().value)
    body = compile(tree, name, "exec", 0, True)
    # __future__ flags of the program apply to its last expression too.
    return body, compile(last, name, "eval", body.co_flags & 0x1FE0000, True)


def is_ours():
    """False in a forked child that ran to the end of the program."""
    from posix import getpid

    return getpid() == globals()["PID"]  # set by run.py


class NotPlain(Exception):
    """The value is not JSON data, or too large."""


def quote(text):
    from _json import encode_basestring_ascii

    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates
        text = text.encode("utf-8", "replace").decode()
    return encode_basestring_ascii(text)


class Plain:
    """Renders data that JSON represents exactly; raises NotPlain for all other values."""

    def __init__(self):
        self.nodes = 0
        self.size = 0

    def scalar(self, value):
        kind = type(value)
        if value is None or kind is bool:
            return {None: "null", True: "true", False: "false"}[value]
        if kind is str:
            return quote(value) if len(value) <= TEXT_MAX else self.refuse()
        if kind is int and -(1 << 63) <= value < 1 << 63:
            return str(value)
        if kind is float and value - value == 0.0:  # neither infinite nor NaN
            return repr(value)
        return self.refuse()

    def refuse(self):
        raise NotPlain

    def count(self, text):
        self.size += len(text)
        if self.size > REPORT_MAX // 4:
            raise NotPlain
        return text

    def render(self, value, depth=0):
        self.nodes += 1
        if self.nodes > NODES_MAX or depth > DEPTH_MAX:
            raise NotPlain
        kind = type(value)
        if kind is list or kind is tuple:
            return "[" + ",".join([self.render(item, depth + 1) for item in value]) + "]"
        if kind is dict:
            return "{" + ",".join([self.pair(k, v, depth) for k, v in value.items()]) + "}"
        return self.count(self.scalar(value))

    def pair(self, key, value, depth):
        # The reader refuses NUL in a key. Two keys with lone surrogates could become the same one.
        if type(key) is not str or "\0" in key or not key.isascii() and key.encode("utf-8", "replace").decode() != key:
            raise NotPlain
        return self.count(self.scalar(key)) + ":" + self.render(value, depth + 1)


def cut(text, limit=TEXT_MAX):
    return text if len(text) <= limit else text[: limit - 3] + "..."


def describe(value):
    """repr() of bounded length; an exception in __repr__ is described, not raised."""
    try:
        if isinstance(value, (list, tuple, dict, set, frozenset, str, bytes)) and len(value) > BIG:
            import reprlib

            short = reprlib.Repr()
            short.maxlist = short.maxtuple = short.maxdict = short.maxset = 1000
            short.maxstring = short.maxother = TEXT_MAX
            return cut(short.repr(value))
        return cut(repr(value))
    except Exception as error:
        return f"<unprintable {type(value).__name__} object: {type(error).__name__}>"


def base64(data):
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).decode()


def picture(value):
    """PNG of a matplotlib figure, or None."""
    module = type(value).__module__  # may be of any type
    if type(module) is not str or not module.startswith("matplotlib.") or not hasattr(value, "savefig"):
        return None
    from io import BytesIO

    out = BytesIO()
    value.savefig(out, format="png", bbox_inches="tight")
    return out.getvalue()


def rich(value):
    """The value's rich representations, as pairs of MIME type and text."""
    found = []
    if isinstance(value, type):  # the class has the methods of its instances
        return found
    for method, mime in RICH:
        try:
            function = getattr(value, method, None)
            data = function() if function is not None else None
            if mime == "image/png" and data is None:
                data = picture(value)
        except Exception:
            continue
        if isinstance(data, tuple):  # data and metadata
            data = data[0]
        if isinstance(data, bytes):
            data = base64(data)
        if isinstance(data, str):
            found.append((mime, data))
    return found


def bundle(value, plain, data=None):
    """The value's MIME bundle; @data is the value as JSON, or None."""
    forms = [("text/plain", plain)]
    if data is not None and type(value) in (list, tuple, dict):
        forms.append(("application/json", data))
    left = REPORT_MAX // 2
    for mime, text in rich(value):
        if len(text) <= left:
            left -= len(text)
            forms.append((mime, text))
    return "{" + ",".join([quote(mime) + ":" + quote(text) for mime, text in forms]) + "}"


def send(text):
    import _socket

    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.settimeout(TIMEOUT_S)
        sock.connect(SOCKET)
        sock.sendall(text.encode())
    finally:
        sock.close()


def forms(value):
    """The value as JSON, and its MIME bundle."""
    plain = describe(value)
    try:
        data = Plain().render(value)
    except (NotPlain, RecursionError):
        return quote(plain), bundle(value, plain)
    return data, bundle(value, plain, data)


class Shown:
    """What display() was given in a run: MIME bundles."""

    def __init__(self):
        self.bundles, self.size = [], 0
        self.figures = []

    def add(self, values):
        for value in values:
            data = forms(value)[1]
            if len(self.bundles) >= SHOWN_MAX or self.size + len(data) > SHOWN_SIZE_MAX:
                print(describe(value))
                continue
            self.bundles.append(data)
            self.size += len(data)
            if str(type(value).__module__).startswith("matplotlib."):
                self.figures.append(value)


def shown_by_run():
    return (globals()["SHOWN"] or [None])[0]


def figures(hidden, pyplot):
    """MIME bundles of the open figures, which are closed; without @hidden."""
    found = []
    for number in pyplot.get_fignums()[:FIGURES_MAX]:
        figure = pyplot.figure(number)
        if not any([figure is other for other in hidden]):
            found.append("{" + quote("text/plain") + ":" + quote(describe(figure)) + "," + quote("image/png") + ":"
                        + quote(base64(picture(figure))) + "}")
    pyplot.close("all")
    return found


def render(value, error, answered, pyplot, shown):
    """The report of a run, or "". @error, @answered: JSON, or None; @pyplot: the module, or None; @shown: a Shown, or
    None."""
    members, last, size = [], [], 0
    if answered is not None:
        members.append('"result":' + answered)
        size = len(answered)
    elif value is not None:
        data, value_shown = forms(value)
        members.append('"result":' + data)
        last.append(value_shown)
        size = len(data) + len(value_shown)
    try:
        pictures = figures([value, *(shown.figures if shown else ())], pyplot) if pyplot is not None else []
    except Exception:
        pictures = []
    results = list(shown.bundles) if shown else []
    for picture_shown in pictures:
        if size + len(picture_shown) < REPORT_MAX - (200 << 10):  # room for an error
            results.append(picture_shown)
            size += len(picture_shown)
    results += last
    if results:
        members.append('"results":[' + ",".join(results) + "]")
    if error is not None:
        members.append('"error":' + error)
    return "{" + ",".join(members) + "}" if members else ""


def result(value, pyplot):
    if is_ours() and (text := render(value, None, None, pyplot, shown_by_run())):
        send(text)


class Screen:
    """A stream that stores what the interpreter prints about an exception."""

    def __init__(self):
        self.parts = []

    def write(self, text):
        self.parts.append(text)

    def flush(self):
        pass


def show(kind, value, trace, source):
    """The text that the interpreter prints. Does not import traceback, which costs more than most
    programs. The interpreter reads source lines with io.open, under the displayed name."""
    import io

    name = globals()["NAME"]  # set by run.py
    real = io.open
    screen, stderr = Screen(), sys.stderr
    io.open = lambda file, *args, **named: real(source if file == name else file, *args, **named)
    sys.stderr = screen
    try:
        sys.__excepthook__(kind, value, trace)
    finally:
        io.open = real
        sys.stderr = stderr
    return "".join(screen.parts)


def words(error):
    try:
        return cut(str(error))
    except Exception:
        return "<exception str() failed>"


def error_form(kind, said, text):
    lines = cut(text).splitlines()
    if len(lines) > TRACE_LINES_MAX:
        half = TRACE_LINES_MAX // 2
        lines = lines[:half] + ["..."] + lines[-half:]
    return ('{"name":' + quote(kind.__name__) + ',"value":' + quote(said)
            + ',"traceback":[' + ",".join([quote(line) for line in lines]) + "]}")


def send_error(kind, value, text):
    try:
        send(render(None, error_form(kind, words(value), text), None, None, shown_by_run()))
    except Exception:
        pass  # no agent listens; the exception has been printed


def error(kind, value, trace, source):
    """Print without our own frames, as the interpreter would, and report.
    Return: True when it was printed."""
    ours = globals()["RUN"], error.__code__.co_filename, HANDLER  # RUN is set by run.py
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    value.__traceback__ = trace  # the interpreter prints this one, not the argument
    text = show(kind, value, trace, source)
    sys.stdout.flush()
    sys.stderr.write(text)
    sys.stderr.flush()
    if is_ours():
        send_error(kind, value, text)
    return True
