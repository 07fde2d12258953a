# SPDX-License-Identifier: Apache-2.0
"""run.py behaves like `python3 main.py`, and reports values and exceptions."""

import json
import pathlib
import re
import signal
import socket
import subprocess
import textwrap
import threading

import pytest

RUNNERS = pathlib.Path(__file__).parents[3] / "runners"
PYTHON = "/usr/bin/python3"
# In a box the agent has this socket; here report.py gets another address.
REPORT_LINE = 'SOCKET = "/run/millibox/report.sock"'


@pytest.fixture
def runner(tmp_path):
    folder = tmp_path / "python"
    folder.mkdir()
    (folder / "run.py").write_text((RUNNERS / "python/run.py").read_text())
    (folder / "handler.py").write_text((RUNNERS / "python/handler.py").read_text())
    report = (RUNNERS / "python/report.py").read_text()
    assert REPORT_LINE in report
    (folder / "report.py").write_text(report.replace(REPORT_LINE, f'SOCKET = "{tmp_path}/sock"'))
    return folder / "run.py"


class Run:
    def __init__(self, process, report):
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr
        self.report = json.loads(report) if report else None


def run(runner, code, *args, stdin="", listen=True, **options):
    folder = runner.parent.parent
    program = folder / "main.py"
    program.write_bytes(code if isinstance(code, bytes) else textwrap.dedent(code).encode())
    listener = socket.socket(socket.AF_UNIX)
    if listen:
        listener.bind(f"{folder}/sock")
        listener.listen(4)
        listener.settimeout(0.2)
    options.setdefault("timeout", 30)
    # Reads reports, like the agent.
    received = []

    def serve():
        while True:
            was_done = done.is_set()
            try:
                conn, _ = listener.accept()
            except OSError:
                if was_done:
                    return
                continue
            data = b""
            while piece := conn.recv(1 << 16):
                data += piece
            received.append(data)

    done = threading.Event()
    thread = threading.Thread(target=serve)
    if listen:
        thread.start()
    try:
        process = subprocess.run([PYTHON, "-I", "-S", "-X", "utf8", runner, program, *args], input=stdin,
                                 capture_output=True, text=True, cwd=folder, **options)
    finally:
        done.set()
        if listen:
            thread.join()
            (folder / "sock").unlink()
        listener.close()
    assert len(received) <= 1
    return Run(process, received[0] if received else b"")


def plain(runner, code):
    """The same program without run.py."""
    program = runner.parent.parent / "plain" / "main.py"
    program.parent.mkdir(exist_ok=True)
    program.write_text(textwrap.dedent(code))
    return subprocess.run([PYTHON, "main.py"], capture_output=True, text=True, cwd=program.parent)


def test_program_is_main_with_its_arguments(runner):
    done = run(runner, """
        import sys
        print(__name__, sys.argv, sys.path[0], __file__, sys.modules['__main__'].sys is sys)
        print(sorted(k for k in globals() if not k.startswith('__')))
        if __name__ == '__main__':
            print(input())
        """, "a", "-b", stdin="typed\n")
    assert done.out.splitlines() == [
        "__main__ ['main.py', 'a', '-b'] /workspace /workspace/main.py True", "['sys']", "typed"]
    assert done.code == 0 and done.report is None


@pytest.mark.parametrize("code", [
    "pass", "", "import sys; sys.exit()", "import sys; sys.exit(3)", "import sys; sys.exit('words')",
    "import sys; sys.exit(None)", "import sys; sys.exit(True)", "import sys; sys.exit([1])",
    "raise SystemExit(256 + 7)", "raise SystemExit", "import os; os._exit(9)", "exit(4)",
    "raise ValueError('x')", "1/0", "def f(:", "x = ", "import nothing_there", "raise KeyError('k') from OSError(2)",
    "import sys; sys.exit(-1)", "raise BaseException('base')", "import signal, os; os.kill(os.getpid(), 9)",
    "raise KeyboardInterrupt", "import sys\ntry: 1/0\nfinally: sys.exit(5)",
    "def f():\n  f()\nf()", "import atexit; atexit.register(print, 'bye'); 1/0",
    "import threading; threading.Thread(target=lambda: print('t')).start(); raise OSError(1)",
    "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])", "assert False, 'no'",
    "import sys; sys.excepthook = lambda *a: print('mine', a[0].__name__); 1/0",
    "pritn(1)", "import os; os.getpit", "x = 1\n\n\nraise ValueError(\n  x)", "\tx = 1", "if 1:\nx", "'\\ud800'.encode()", "async def f(): await x\nf() if 0 else None",
])
def test_ends_exactly_as_without_us(runner, code):
    ours, theirs = run(runner, code), plain(runner, code)
    assert ours.code == theirs.returncode
    assert ours.out == theirs.stdout
    expected = theirs.stderr.replace(f'"{runner.parent.parent}/plain/main.py"', '"main.py"')
    # run.py's own frames count, too.
    repeated = re.compile(r"repeated \d+ more")
    assert repeated.sub("repeated", ours.err) == repeated.sub("repeated", expected)


def test_interrupt_ends_it_by_signal(runner):
    code = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)"
    done = run(runner, code)
    assert done.code == -signal.SIGINT and "KeyboardInterrupt" in done.err


def test_traceback_shows_the_users_lines_only(runner):
    done = run(runner, """
        def inner():
            return {}['missing']  # here

        inner()
        """)
    assert 'File "main.py", line 5' in done.err and "# here" in done.err
    assert "run.py" not in done.err
    error = done.report["error"]
    assert (error["name"], error["value"]) == ("KeyError", "'missing'")
    assert error["traceback"][0].startswith("Traceback") and error["traceback"][-1] == "KeyError: 'missing'"
    assert "\n".join(error["traceback"]) + "\n" == done.err


def test_file_of_the_same_name_in_the_workspace_is_not_mistaken_for_the_program(runner):
    program = runner.parent.parent / "main.py"
    elsewhere = runner.parent.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "main.py").write_text("wrong line\n")
    program.write_text("1/0  # right line\n")
    done = subprocess.run([PYTHON, "-I", "-S", runner, program], capture_output=True, text=True, cwd=elsewhere)
    assert "# right line" in done.stderr and "wrong" not in done.stderr


def test_lines_are_visible_to_the_programs_own_tools(runner):
    done = run(runner, """
        import inspect, traceback
        def f():
            raise ValueError  # marked
        try: f()
        except ValueError: print(traceback.format_exc())
        print(inspect.getsource(f))
        """)
    assert done.out.count("# marked") == 2


@pytest.mark.parametrize("code, value", [
    ("1 + 1", 2), ("x = 5\nx", 5), ("'text'", "text"), ("[1, 2.5, None, True, {'a': 'b'}]", [1, 2.5, None, True, {"a": "b"}]),
    ("(1, 2)", [1, 2]), ("{'k': [1]}", {"k": [1]}), ("'\\u00e9\\U0001f600\\n'", "\u00e9\U0001f600\n"),
    ("{1, }", "{1}"), ("object", "<class 'object'>"), ("float('nan')", "nan"), ("2 ** 70", str(2**70)),
    ("{1: 2}", "{1: 2}"), ("b'x'", "b'x'"), ("'\\ud800'", "?"), ("{'a\\0b': 1}", "{'a\\x00b': 1}"),
    ("{'x\\ud800': 1, 'x\\udc00': 2}", "{'x\\ud800': 1, 'x\\udc00': 2}"), ("{'é': 'a\\0b'}", {"é": "a\0b"}), ("print", "<built-in function print>"),
    ("from __future__ import annotations\n3", 3), ("lambda: 0", None),
])
def test_value_of_the_last_expression_is_reported(runner, code, value):
    done = run(runner, code)
    assert done.code == 0 and done.out == ""
    if value is not None:
        assert done.report["result"] == value
    bundle = done.report["results"][0]
    assert bundle.pop("text/plain")
    if isinstance(value, (list, dict)):
        assert json.loads(bundle.pop("application/json")) == value
    assert bundle == {}


@pytest.mark.parametrize("code", ["print(1)", "None", "x = 1", "for i in range(3): i", "", "# nothing"])
def test_without_a_value_nothing_is_reported(runner, code):
    assert run(runner, code).report is None


def test_rich_forms_are_reported(runner):
    done = run(runner, """
        class Table:
            def __repr__(self): return 'Table'
            def _repr_html_(self): return '<b>t</b>'
            def _repr_png_(self): return b'\\x89PNG'
            def _repr_svg_(self): raise RuntimeError
            def _repr_latex_(self): return None
        Table()
        """)
    assert done.report == {"result": "Table", "results": [
        {"text/plain": "Table", "text/html": "<b>t</b>", "image/png": "iVBORw=="}]}


@pytest.mark.parametrize("code", [
    "list(range(10**6))", "'x' * 10**7", "x = []\nx.append(x)\nx", "[[[['y' * 1000] * 100] * 10] * 10] * 10",
    "x = 1\nfor i in range(2000): x = [x]\nx", "{str(i): i for i in range(10**5)}",
])
def test_huge_and_endless_values_are_bounded(runner, code):
    done = run(runner, code)
    assert done.code == 0 and done.err == ""
    if done.report is not None:
        assert len(json.dumps(done.report)) < 1 << 20


def test_broken_repr_does_not_break_the_program(runner):
    done = run(runner, """
        class Bad:
            def __repr__(self): raise ValueError('no')
            def __getattr__(self, name): raise RuntimeError(name)
        Bad()
        """)
    assert done.code == 0 and done.err == ""
    assert "unprintable Bad" in done.report["result"]


def test_a_missing_report_socket_changes_nothing(runner):
    done = run(runner, "print(1)\n'value'", listen=False)
    assert (done.code, done.out, done.err) == (0, "1\n", "")
    done = run(runner, "1/0", listen=False)
    assert done.code == 1 and done.err.endswith("ZeroDivisionError: division by zero\n")


def test_sabotaged_modules_change_nothing(runner):
    done = run(runner, """
        import sys
        for name in ('traceback', '_socket', '_json', 'posix', 'io'): sys.modules[name] = None
        raise ValueError('reported all the same')
        """)
    assert done.code == 1 and "ValueError: reported all the same" in done.err


def test_forked_child_does_not_report(runner):
    done = run(runner, """
        import os
        pid = os.fork()
        if pid: os.waitpid(pid, 0)
        'parent' if pid else 'child'
        """)
    assert done.report["result"] == "parent"


def test_output_comes_line_by_line(runner):
    program = runner.parent.parent / "main.py"
    program.write_text("import time\nprint('first')\ntime.sleep(600)")
    with subprocess.Popen([PYTHON, "-I", "-S", runner, program], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"first\n"
        assert process.poll() is None  # without the line's own write it would come with the end
        process.kill()


def test_source_may_be_in_any_encoding_python_takes(runner):
    assert run(runner, b"# -*- coding: latin-1 -*-\nprint(len('\xe9'))").out == "1\n"
    assert run(runner, b"\xef\xbb\xbfprint('bom')").out == "bom\n"
    assert run(runner, b"print('\xff')").code == 1


def test_deep_source_runs_as_it_would(runner):
    done = run(runner, "print(" + "+".join(["1"] * 900) + ")")
    assert done.code == 0 and done.out == "900\n"


def test_only_little_is_imported_before_the_program(runner):
    done = run(runner, "import sys\nprint(*sorted(sys.modules))")
    bare = subprocess.run([PYTHON, "-I", "-X", "utf8", "-c", "import sys\nprint(*sorted(sys.modules))"],
                          capture_output=True, text=True)
    assert set(done.out.split()) - set(bare.stdout.split()) <= {"_ast"}


def test_site_is_imported_when_needed(runner):
    """-S skips site to save time; run.py provides its features."""
    done = run(runner, "import sys\nprint('site' in sys.modules, exit, quit, help)\nexit(4)")
    assert done.code == 4 and done.out.startswith("False Use exit()")
    bare = subprocess.run([PYTHON, "-I", "-c", "import sys\nprint(*[p for p in sys.path if 'packages' in p])"],
                          capture_output=True, text=True)
    done = run(runner, "import sys\ntry: import not_there\nexcept ImportError as e: print(e)\n"
                       "print(*[p for p in sys.path if 'packages' in p])\nprint('site' in sys.modules)")
    assert done.out == f"No module named 'not_there'\n{bare.stdout}True\n"


def test_packages_are_found_and_listed(runner):
    done = run(runner, "import importlib.metadata as m, pytest\nprint(m.version('pytest') == pytest.__version__)")
    assert done.out == "True\n"


def test_manifests_name_the_files_beside_them():
    for folder in RUNNERS.iterdir():
        # "tools" has modules of several languages, "packages" installers.
        if not folder.is_dir() or folder.name.startswith("__") or folder.name in ("tools", "packages"):
            continue
        if not (folder / "manifest.yaml").exists():  # shared by several languages
            continue
        text = (folder / "manifest.yaml").read_text()
        for word in text.replace('"', " ").replace(",", " ").split():
            if word.startswith("{runner}/"):
                assert (folder / word.removeprefix("{runner}/")).is_file()
        assert f"name: {folder.name}" in text
