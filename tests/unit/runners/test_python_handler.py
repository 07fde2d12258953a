# SPDX-License-Identifier: Apache-2.0
"""Handlers, and reading variables after a run, in both Python runners."""

import json
import pathlib
import select
import socket
import subprocess
import textwrap
import threading

import pytest

from rig import Done, Session

RUNNERS = pathlib.Path(__file__).parents[3] / "runners"
PYTHON = "/usr/bin/python3"
CONTEXT = {"function_name": "f", "remaining_time_in_millis": 3000, "memory_limit_in_mb": 256, "request_id": "r1"}


class Once:
    """run.py with a report socket."""

    def __init__(self, folder):
        self.folder = folder
        made = folder / "python"
        made.mkdir()
        for name in ("run.py", "handler.py", "report.py"):
            text = (RUNNERS / "python" / name).read_text()
            (made / name).write_text(text.replace("/run/millibox/report.sock", f"{folder}/sock"))

    def run(self, source):
        (self.folder / "main.py").write_bytes(source)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{self.folder}/sock")
        listener.listen(1)
        got = []
        ended, end = socket.socketpair()

        def read():
            # A program that has ended without a report sends none later.
            if listener not in select.select([listener, ended], [], [])[0]:
                return
            peer, _ = listener.accept()
            with peer:
                while piece := peer.recv(1 << 16):
                    got.append(piece)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            done = subprocess.run([PYTHON, "-I", "-S", "-X", "utf8", self.folder / "python/run.py", self.folder / "main.py"],
                                  capture_output=True, timeout=30, cwd=self.folder)
        finally:
            end.close()
            reader.join()
            ended.close()
            listener.close()
            (self.folder / "sock").unlink()
        return Done(done.returncode, done.stdout, done.stderr, b"".join(got))

    def close(self):
        pass


class Staying(Session):
    def __init__(self, folder):
        super().__init__(folder, [PYTHON, "-I", "-X", "utf8", RUNNERS / "python/session.py"],
                         {"PATH": "/usr/bin:/bin", "HOME": str(folder)})


@pytest.fixture(params=[Once, Staying])
def runner(request, tmp_path):
    made = request.param(tmp_path)
    yield made
    made.close()


def ask(runner, code, asked):
    return runner.run(textwrap.dedent(code).encode() + b"\0" + json.dumps(asked).encode())


def handle(runner, code, event=None, context=CONTEXT):
    return ask(runner, code, {"event": event or {}, "context": context})


@pytest.mark.parametrize("code", [
    "def handler(event): return event['a'] + 1",
    "def handler(event, context): return event['a'] + 1",
    "def handler(event, context=None): return event['a'] + 1",
    "def handler(*args): return args[0]['a'] + len(args) - 1",
    "handler = lambda event: event['a'] + 1",
    "class C:\n    def __call__(self, event): return event['a'] + 1\nhandler = C()",
    "class C:\n    def go(self, event, context): return event['a'] + 1\nhandler = C().go",
    "import functools\ndef f(x, event): return event['a'] + x\nhandler = functools.partial(f, 1)",
    "import functools\ndef f(event): return event['a'] + 1\n"
    "@functools.wraps(f)\ndef handler(*a, **k): return f(*a, **k)",
])
def test_a_handler_is_called_with_as_much_as_it_takes(runner, code):
    done = handle(runner, code, {"a": 1})
    assert (done.code, done.result, done.err) == (0, 2, "")


def test_the_context_has_its_values_and_counts_down(runner):
    done = handle(runner, """
        import time
        def handler(event, context):
            first = context.get_remaining_time_in_millis()
            time.sleep(0.02)
            return [context.function_name, context.memory_limit_in_mb, context.request_id,
                    2000 < first <= 3000, context.get_remaining_time_in_millis() < first]
        """)
    assert done.result == ["f", 256, "r1", True, True]


@pytest.mark.parametrize("value, wanted", [
    ("None", None), ("'\\u20ac \\ud800'", "€ ?"), ("(1, [2])", [1, [2]]), ("{1: 'a', None: 2}", {"1": "a", "null": 2}),
    ("float('nan')", None), ("[float('inf'), -float('inf'), 1.5]", [None, None, 1.5]),
    ("__import__('collections').OrderedDict(a=1)", {"a": 1}), ("{1: 'a', '1': 'b'}", {"1": "b"}),
    ("list(range(400))", list(range(400))), ("-2 ** 63", -2 ** 63), ("'x' * 100000", "x" * 100000),
])
def test_a_value_is_returned_as_json(runner, value, wanted):
    done = handle(runner, f"def handler(event): return {value}")
    assert done.code == 0 and done.report == {"result": wanted}


@pytest.mark.parametrize("value, word", [
    ("object()", "type object"), ("{(1, 2): 3}", "keys"), ("{'a': {1}}", "type set"), ("2 ** 64", "64 bits"),
    ("[0] * 60000", "49000 values"), ("'x' * (4 << 20)", "bytes"),
    ("__import__('functools').reduce(lambda a, b: [a], range(100), 1)", "nested"),
    ("(lambda a: a.append(a) or a)([])", "ircular"),
])
def test_a_value_that_is_not_json_fails_with_a_message(runner, value, word):
    done = handle(runner, f"def handler(event): return {value}")
    assert done.code == 3 and done.report["error"]["name"] == "ResultNotJson"
    assert word in done.report["error"]["value"] and "result" not in done.report
    assert "ResultNotJson: the handler's return value" in done.err


def test_a_raising_handler_differs_from_raising_code(runner):
    done = handle(runner, "def handler(event):\n    return 1 / 0")
    assert done.code == 2 and done.report["error"]["name"] == "ZeroDivisionError"
    assert "in handler" in done.err and "/python/" not in done.err
    done = handle(runner, "1 / 0\ndef handler(event): pass")
    assert done.code == 1 and done.report["error"]["name"] == "ZeroDivisionError"
    done = handle(runner, "def handler(event:")
    assert done.code == 1 and done.report["error"]["name"] == "SyntaxError"


def test_no_handler_is_a_clear_error(runner):
    for code in ("x = 1", "handler = 5"):
        done = handle(runner, code)
        assert done.code == 1 and done.report["error"]["name"] == "HandlerNotFound"
        assert "'handler'" in done.report["error"]["value"] and done.err.startswith("HandlerNotFound")


def test_exit_in_a_handler_is_its_own_code(runner):
    assert handle(runner, "import sys\ndef handler(event): sys.exit(9)").code == 9


def test_output_of_a_handler_is_output(runner):
    done = handle(runner, "print('load')\ndef handler(event):\n    print('run')\n    return 5\n'value'")
    assert (done.out, done.report) == ("load\nrun\n", {"result": 5})


def test_variables_are_read_after_a_run(runner):
    done = ask(runner, "a = 1\nb = {'x': [1.5, None]}\nc = object\nclass D:\n    def __str__(self): return 'dee'\nd = D()\n7",
               {"outputs": ["a", "b", "d", "missing"]})
    assert (done.code, done.report) == (0, {"result": {"a": 1, "b": {"x": [1.5, None]}, "d": "dee"}})


def test_a_handler_of_an_earlier_run_is_not_called(tmp_path):
    session = Staying(tmp_path)
    try:
        assert handle(session, "state = 1\ndef handler(event): return state").result == 1
        assert handle(session, "state += 1").report["error"]["name"] == "HandlerNotFound"
        assert handle(session, "def handler(event): return state").result == 2
    finally:
        session.close()
