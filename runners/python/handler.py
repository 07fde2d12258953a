# SPDX-License-Identifier: Apache-2.0
"""Calls handler(event, context) of a program, or reads its variables after a run.

Such a request is JSON after the code in the source file (docs/protocol.md, "The source"):

    {"event": OBJECT, "context": OBJECT}    call handler; its value is the result
    {..., "optional": true}                 only if the code defines one and is not a script
    {"outputs": [NAME...]}                  the result is an object of these variables
    {..., "name": NAME}                     the program's own name, in argv and tracebacks

Loaded into the namespace of report.py, which it uses.
"""

RETURN_MAX = 3 << 20  # bytes of JSON that a handler may return
RETURN_VALUES_MAX = 49000
RETURN_DEPTH_MAX = 60
OUTPUTS_MAX = RETURN_MAX // 2
# Exit codes of a program with a handler.
NOT_LOADED, RAISED, NOT_JSON = 1, 2, 3
# Defined by report.py.
quote, cut, words, error, is_ours, send, render, shown_by_run = [
    globals()[name] for name in "quote cut words error is_ours send render shown_by_run".split()]


class HandlerNotFound(Exception):
    """The program defines no handler."""


class ResultNotJson(Exception):
    """The return value cannot be sent."""


HandlerNotFound.__module__ = ResultNotJson.__module__ = "builtins"  # shown without a module


class Reading:
    """Attributes that the C scanner needs."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(lambda name: None)  # NaN and infinities are not JSON


def small(digits):
    value = int(digits)
    if not -(1 << 63) <= value < 1 << 63:
        raise ResultNotJson("an integer of more than 64 bits")
    return value


class ReadingBack(Reading):
    parse_int = staticmethod(small)


def read_json(text, how=Reading):
    from _json import make_scanner

    return make_scanner(how)(text, 0)[0]


def encode(value):
    from _json import make_encoder

    def refuse(item):
        raise ResultNotJson("an object of type " + type(item).__name__ + " is no JSON")

    return "".join(make_encoder({}, refuse, quote, None, ":", ",", False, False, True)(value, 0))


def measure(value, depth=1):
    """Approximate number of values in @value, which was parsed from JSON."""
    if depth > RETURN_DEPTH_MAX:
        raise ResultNotJson("it is nested deeper than %d levels" % RETURN_DEPTH_MAX)
    if type(value) is dict and any(["\0" in key for key in value]):
        raise ResultNotJson("a key contains NUL")
    items, each = (value.values(), 2) if type(value) is dict else (value, 1) if type(value) is list else ((), 0)
    return 1 + each * len(items) + sum(
        [measure(item, depth + 1) for item in items if type(item) is dict or type(item) is list])


def json_of(value):
    """Strict JSON of any value that json.dumps accepts."""
    try:
        plain = read_json(encode(value), ReadingBack)
    except (TypeError, ValueError) as error:  # invalid keys, cycles
        raise ResultNotJson(cut(str(error), 1000)) from None
    except RecursionError:
        raise ResultNotJson("it is nested too deeply") from None
    if measure(plain) > RETURN_VALUES_MAX:
        raise ResultNotJson("it has more than %d values" % RETURN_VALUES_MAX)
    text = encode(plain)
    if len(text) > RETURN_MAX:
        raise ResultNotJson("it is longer than %d bytes" % RETURN_MAX)
    return text


def outputs(names, wanted):
    """The variables @wanted by name, as JSON or else as text; missing ones are left out."""
    found, left = [], OUTPUTS_MAX
    for name in wanted:
        if name not in names:
            continue
        try:
            text = json_of(names[name])
        except ResultNotJson:
            text = quote(cut(words(names[name])))
        left -= len(text)
        if left > 0:
            found.append(quote(name) + ":" + text)
    return "{" + ",".join(found) + "}"


class Context:
    """The second argument of a handler."""

    def __init__(self, given):
        from time import monotonic

        self.__dict__.update(given)
        self._clock = monotonic
        self._end = monotonic() + self.remaining_time_in_millis / 1000

    def get_remaining_time_in_millis(self):
        return max(0, int((self._end - self._clock()) * 1000))


def takes_context(handler):
    """Whether a handler takes two arguments, by its signature."""
    given = 0
    for _ in range(100):
        if hasattr(handler, "func") and hasattr(handler, "keywords"):  # functools.partial
            given += len(handler.args)
            if "context" in handler.keywords:
                given += 1
            handler = handler.func
        elif hasattr(handler, "__wrapped__"):
            handler = handler.__wrapped__
        else:
            break
    if hasattr(handler, "__func__"):  # a method
        given, handler = given + 1, handler.__func__
    elif isinstance(handler, type):
        given, handler = given + 1, handler.__init__
    elif not hasattr(handler, "__code__"):  # an object that can be called
        given, handler = given + 1, type(handler).__call__
    code = getattr(handler, "__code__", None)
    return code is None or bool(code.co_flags & 0x04) or code.co_argcount - given >= 2


def is_handler(names, file):
    """Whether the program in @file itself defines a function `handler` that takes an event, and perhaps a context."""
    handler = names.get("handler")
    code = getattr(handler, "__code__", None)
    if code is None or code.co_filename != file or code.co_argcount < 1:
        return False
    return code.co_argcount - len(handler.__defaults__ or ()) <= 2


def call(names, asked):
    """Return: exit code, returned value as JSON, exception."""
    handler = names.get("handler")
    if not callable(handler):
        return NOT_LOADED, None, HandlerNotFound("the code defines no function 'handler'")
    try:
        if takes_context(handler):
            value = handler(asked["event"], Context(asked["context"]))
        else:
            value = handler(asked["event"])
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        return RAISED, None, error
    try:
        return 0, json_of(value), None
    except ResultNotJson as error:
        return NOT_JSON, None, ResultNotJson("the handler's return value: " + str(error))


def answer(names, asked):
    """Call the handler or read variables. Return: exit code, value as JSON, exception."""
    if "outputs" in asked:
        return 0, outputs(names, asked["outputs"]), None
    return call(names, asked)


HANDLER = answer.__code__.co_filename  # report.py hides frames of this file


def handle(names, asked, source):
    """For run.py. Return: exit code."""
    code, data, failure = answer(names, asked)
    if failure is not None:
        error(type(failure), failure, failure.__traceback__, source)
    elif is_ours():
        send(render(None, None, data, None, shown_by_run()))
    return code
