# SPDX-License-Identifier: Apache-2.0
"""session.py, driven over its request channel as the agent would, without an agent."""

import json
import os
import pathlib
import subprocess
import threading
import time

import pytest

from rig import Session

RUNNER = pathlib.Path(__file__).parents[3] / "runners/python/session.py"
PYTHON = "/usr/bin/python3"


class Python(Session):
    def __init__(self, folder):
        super().__init__(folder, [PYTHON, "-I", "-X", "utf8", RUNNER],
                         {"PATH": "/usr/bin:/bin", "MPLBACKEND": "Agg", "HOME": str(folder)})

    def works(self):
        done = self.run("print('out'); 6 * 7")
        return (done.code, done.out, done.err, done.result) == (0, "out\n", "", 42)


@pytest.fixture
def session(tmp_path):
    made = Python(tmp_path)
    yield made
    made.close()


def test_everything_stays_between_runs(session):
    session.run("""
        import math as m
        x = 1
        def f(): return x + 1
        class C:
            pass
        file = open('/dev/null')
        """)
    assert session.run("x += 1").report == {}
    done = session.run("f(), m.pi > 3, C.__module__, file.closed")
    assert done.result == [3, True, "__main__", False] and done.out == done.err == ""


def test_main_is_a_module_with_arguments(session):
    done = session.run("import sys\n[__name__, sys.argv, sys.modules['__main__'].__dict__ is globals(), __file__]",
                       "a", "", "b c\nd")
    assert done.result == ["__main__", ["main.py", "a", "", "b c\nd"], True, "/workspace/main.py"]
    assert session.run("sys.argv").result == ["main.py"]
    done = session.run("sorted(k for k in globals() if not k.startswith('__'))")
    assert done.result == ["sys"]


def test_modules_are_found_in_the_workspace_only_after_the_runner_has_its_own(session):
    assert session.run("import sys; sys.path[0]").result == "/workspace"
    (session.folder / "reprlib.py").write_text("raise SystemExit(99)")
    session.run(f"sys.path.insert(0, {str(session.folder)!r}); del sys.modules['reprlib']")
    assert session.run("list(range(20000))").code == 0 and session.works()


def test_stdin_is_of_the_run(session):
    assert session.run("a = input(); b = input('?'); (a, b)", stdin=b"one\ntwo\nthree").result == ["one", "two"]
    done = session.run("input()")
    assert done.code == 1 and done.report["error"]["name"] == "EOFError"
    assert session.run("import sys; sys.stdin.read()", stdin=b"new").result == "new"


def test_values_are_reported_in_their_forms(session):
    done = session.run("[1, {'a': None}]")
    assert done.report == {"result": [1, {"a": None}], "results": [
        {"text/plain": "[1, {'a': None}]", "application/json": '[1,{"a":null}]'}]}
    done = session.run("""
        class Table:
            def __repr__(self): return 'T'
            def _repr_html_(self): return '<b>t</b>'
            def _repr_png_(self): return b'png'
        Table()
        """)
    assert done.report["results"] == [{"text/plain": "T", "text/html": "<b>t</b>", "image/png": "cG5n"}]
    assert session.run("None").report == {} and session.run("x = 1").report == {} and session.run("").report == {}


def test_open_figures_are_reported(session):
    # Replaces matplotlib, which need not be installed.
    session.run("""
        import sys, types
        class Figure:
            def __init__(self, n): self.n = n
            def __repr__(self): return f'<Figure {self.n}>'
            def savefig(self, out, **options): out.write(b'png%d' % self.n)
        Figure.__module__ = 'matplotlib.figure'
        plt = types.ModuleType('matplotlib.pyplot')
        open_figures = {}
        plt.get_fignums = lambda: list(open_figures)
        plt.figure = lambda n: open_figures.setdefault(n, Figure(n))
        plt.close = lambda what: open_figures.clear()
        sys.modules['matplotlib.pyplot'] = plt
        """)
    done = session.run("plt.figure(1); plt.figure(2); None")
    assert done.report == {"results": [{"text/plain": "<Figure 1>", "image/png": "cG5nMQ=="},
                                       {"text/plain": "<Figure 2>", "image/png": "cG5nMg=="}]}
    assert session.run("x = 1").report == {}
    done = session.run("plt.figure(3)")  # as the value, not twice
    assert done.report["results"] == [{"text/plain": "<Figure 3>", "image/png": "cG5nMw=="}]
    session.run("def broken(): raise OSError\nplt.get_fignums = broken")
    assert session.works()


@pytest.mark.skipif(subprocess.run([PYTHON, "-c", "import matplotlib"], capture_output=True).returncode != 0,
                    reason="matplotlib is not installed")
def test_real_figures_are_reported(session):
    done = session.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone")
    assert done.report["results"][0]["image/png"].startswith("iVBORw0KGgo"), done.err


def test_traceback_has_the_lines_of_the_run_that_wrote_them(session):
    session.run("def f(x):\n    return 1 / x  # of the first\n")
    session.run("def g(x):\n    return f(x)  # of the second\n")
    done = session.run("\n\ng(0)  # of the third")
    assert done.code == 1 and done.report["error"]["name"] == "ZeroDivisionError"
    lines = done.report["error"]["traceback"]
    assert "\n".join(lines) + "\n" == done.err
    for wanted in ('  File "<cell 3>", line 3, in <module>', "    g(0)  # of the third",
                   '  File "<cell 2>", line 2, in g', "    return f(x)  # of the second",
                   '  File "<cell 1>", line 2, in f', "    return 1 / x  # of the first"):
        assert wanted in lines
    assert "session.py" not in done.err and "report.py" not in done.err
    done = session.run("import inspect; inspect.getsource(g)")
    assert done.result.endswith("# of the second\n")


def test_a_syntax_error_is_reported(session):
    done = session.run("x = 1\ndef f(:\n")
    assert done.code == 1 and 'File "<cell 1>", line 2' in done.err and "def f(:" in done.err
    assert session.run("x").report["error"]["name"] == "NameError"


@pytest.mark.parametrize("code, status, err", [
    ("raise SystemExit", 0, ""), ("import sys; sys.exit(3)", 3, ""), ("exit(4)", 4, ""), ("raise SystemExit(-1)", 255, ""),
    ("raise SystemExit('words')", 1, "words\n"), ("raise SystemExit(True)", 1, ""),
])
def test_exit_ends_the_run_only(session, code, status, err):
    session.run("x = 5")
    done = session.run(code)
    assert (done.code, done.err, done.report) == (status, err, {})
    assert session.run("x").result == 5


@pytest.mark.parametrize("code", [
    "import time; print('up', flush=True); time.sleep(30)",
    "print('up')\nwhile True: pass",
    "print('up')\nclass R:\n  def __repr__(self):\n    while True: pass\nR()",
    "print('up'); input()",
    "import threading; print('up'); threading.Event().wait()",
    "import asyncio; print('up'); asyncio.run(asyncio.sleep(30))",
    "import subprocess; print('up'); subprocess.run(['sleep', '30'])",
    "class E(Exception):\n  def __str__(self):\n    print('up')\n    while True: pass\nraise E",
])
def test_interrupt_ends_the_run_only(session, code):
    session.run("x = 5")
    stdin = os.pipe()
    out, err = session.begin(code) if "input" not in code else begin_with_open_stdin(session, code, stdin)
    assert os.read(out, 3) == b"up\n"
    time.sleep(0.05)
    session.interrupt()
    done = session.finish(out, err)  # which times out before the code would end
    assert done.code == 130
    assert session.run("x").result == 5 and session.works()
    for fd in stdin:
        os.close(fd)


def begin_with_open_stdin(session, code, stdin):
    return session.begin(f"import os; os.dup2(os.open('/proc/{os.getpid()}/fd/{stdin[0]}', 0), 0)\n" + code)


def test_interrupt_between_runs_is_ignored(session):
    assert session.works()
    for _ in range(20):
        session.interrupt()
        assert session.run("1").code in (0, 130)
    session.interrupt()
    time.sleep(0.05)
    assert session.works()


def test_interrupts_at_any_moment_leave_exactly_one_answer(session):
    session.run("x = 0")
    stop = threading.Event()

    def shoot():
        while not stop.is_set():
            session.interrupt()
            time.sleep(0.0003)

    shooter = threading.Thread(target=shoot)
    shooter.start()
    try:
        codes = {session.run("x += 1\nx").code for _ in range(150)}
    finally:
        stop.set()
        shooter.join()
    assert codes <= {0, 130}
    assert session.works()


@pytest.mark.parametrize("code", [
    "import sys; sys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
    "import sys; sys.stdout = sys.stderr = sys.stdin = None",
    "import os; os.close(0); os.close(1); os.close(2)",
    "import os; os.closerange(4, 64)",
    "import sys\nclass Bad:\n  def __getattr__(self, name): raise RuntimeError\nsys.stdout = sys.stderr = Bad()",
    "import builtins\nfor name in dir(builtins):\n  if name not in ('delattr', 'builtins'): delattr(builtins, name)",
    "import builtins\nfor n in ('len', 'repr', 'isinstance', 'type', 'print', 'open', 'str', 'exec', 'compile', 'super', "
    "'__import__', 'BaseException', 'KeyboardInterrupt'): setattr(builtins, n, None)\n{}",
    "import os, posix, io, _io, signal, _signal, sys\nfor m in (os, posix, io, _io, signal, _signal):\n"
    "  for n in list(vars(m)):\n    if not n.startswith('__'): setattr(m, n, None)",
    "import sys\nfor n in list(sys.modules):\n  if n != 'sys': del sys.modules[n]",
    "import sys\nfor n in ('traceback', 'linecache', 'io', 'posix', '_json', 'binascii', 'reprlib'): sys.modules[n] = None\n1/0",
    "import sys; sys.settrace(lambda *a: 1/0)", "import sys; sys.setprofile(lambda *a: 1/0)",
    "import sys; sys.setrecursionlimit(60)\n1/0",
    "def f(): f()\nf()",
    "globals().clear()", "import sys; del sys.modules['__main__']", "del __builtins__, __name__",
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); signal.pthread_sigmask(0, range(1, 65))",
    "class R:\n  def __repr__(self): raise KeyboardInterrupt\nR()",
    "class R:\n  def __repr__(self): raise SystemExit(3)\nR()",
    "class R:\n  def __repr__(self): return 5\nR()",
    "class R:\n  def __repr__(self): return 'x' * 10**7\nR()",
    "class R:\n  def __repr__(self): return repr(self)\nR()",
    "class R:\n  @property\n  def __class__(self): raise OSError\n  def __getattr__(self, n): raise OSError\nR()",
    "class E(BaseException):\n  def __str__(self): raise OSError\nraise E",
    "class E(Exception):\n  @property\n  def __traceback__(self): raise OSError\nraise E",
    "class S(SystemExit):\n  @property\n  def code(self): raise OSError\nraise S",
    "class C:\n  def __str__(self): raise OSError\nraise SystemExit(C())",
    "x = 'a' * 10**6\nx * 50",
    "import atexit, sys; atexit.register(print, 'bye'); sys.excepthook = sys.displayhook = None; 1/0",
    "import threading, time\nfor i in range(20): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "import threading, time\ndef f():\n  while True: time.sleep(0.001); print('late')\nthreading.Thread(target=f).start()",
    "import gc; gc.disable(); gc.freeze()",
    "import faulthandler; faulthandler.enable()", "raise MemoryError", "raise GeneratorExit",
    "import sys; sys.stdout.reconfigure(encoding='utf-16'); print('x')", "'\\ud800'", "print('\\ud800')",
])
def test_misuse_does_not_end_the_session(session, code):
    session.run("kept = 1")
    done = session.run(code)
    assert done is not None, "the runner ended"
    if "delattr" in code or "'len'" in code or "vars(m)" in code or "del sys.modules[n]" in code:
        return_value = session.run("6 * 7")
        assert (return_value.code, return_value.result) == (0, 42), return_value.err
        return
    assert session.works()
    if "clear" not in code:
        assert session.run("kept").result == 1


def test_output_of_late_threads_is_in_no_other_answer(session):
    done = session.run("""
        import threading, time, sys
        go = threading.Event()
        def late():
            go.wait()
            print('late', flush=True); print('late', file=sys.stderr, flush=True)
            said.set()
        said = threading.Event()
        threading.Thread(target=late).start()
        """)
    assert done.code == 0
    done = session.run("go.set(); said.wait(5); print('mine')\nt = threading.Thread(target=print, args=('new',)); t.start(); t.join()")
    assert (done.out, done.err) == ("mine\nnew\n", "")


def test_output_that_was_not_written_is_in_no_other_answer(session):
    session.run("import sys; sys.stdout.reconfigure(line_buffering=False); keep = sys.stdout; keep.write('first')")
    done = session.run("keep.flush(); print('second')")
    assert done.out == "second\n"


def test_logging_set_up_once_keeps_working(session):
    session.run("import logging; logging.basicConfig(format='%(message)s'); logging.warning('one')")
    assert session.run("logging.warning('two')").err == "two\n"


def test_forks_that_return_exit(session):
    done = session.run("""
        import os
        pid = os.fork()
        if pid == 0: print('child')
        else: status = os.waitpid(pid, 0)[1]
        'parent' if pid else 'child'
        """)
    assert done.result == "parent" and sorted(done.out.split()) == ["child"]
    assert session.run("status").result == 0
    done = session.run("pid = os.fork()\nif pid == 0: raise SystemExit(7)\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])")
    assert done.result == 7
    done = session.run("pid = os.fork()\nif pid == 0: 1/0\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])")
    assert done.result == 1 and "ZeroDivisionError" in done.err
    assert session.works()


@pytest.mark.parametrize("code, status", [
    ("import os; os._exit(9)", 9), ("import os, signal; os.kill(os.getpid(), 9)", -9),
    ("import ctypes; ctypes.string_at(0)", -11),
])
def test_end_of_the_process_is_the_end(session, code, status):
    assert session.run(code) is None
    assert session.process.wait(5) == status


@pytest.mark.parametrize("code", ["import os; os.close(3)", "import os; os.dup2(0, 3)"])
def test_runner_without_its_channel_ends(session, code):
    session.begin(code)
    assert session.process.wait(5) != 0


def test_end_of_the_channel_ends_the_runner(session):
    assert session.works()
    session.channel.close()
    assert session.process.wait(5) == 0


def test_children_do_not_have_the_channel(session):
    done = session.run("import subprocess; subprocess.run(['ls', '/proc/self/fd'], close_fds=False, capture_output=True, text=True).stdout")
    assert done.result.split() == ["0", "1", "2", "3"]  # the last one is the listing itself
    done = session.run("import os; sorted(os.listdir('/proc/self/fd'), key=int)")
    assert len(done.result) == 6  # stdio, channel, /dev/null, the listing


def test_huge_results_are_bounded(session):
    for code in ("list(range(10**6))", "'x' * 10**7", "{str(i): i for i in range(10**5)}", "raise ValueError('x' * 10**6)"):
        done = session.run(code)
        assert len(json.dumps(done.report)) < 1 << 20


def test_sources_of_long_sessions_are_bounded(session):
    for _ in range(12):
        session.run(b"#" * (1 << 20) + b"\nx = 1")
    assert session.run("import linecache; sum(len(''.join(e[2])) for n, e in linecache.cache.items() "
                       "if n.startswith('<cell'))").result <= 8 << 20


def test_source_may_be_in_any_encoding_python_takes(session):
    assert session.run(b"# -*- coding: latin-1 -*-\nprint(len('\xe9'))").out == "1\n"
    assert session.run(b"\xef\xbb\xbfprint('bom')").out == "bom\n"
    assert session.run(b"print('\xff')").code == 1


def test_run_is_quick(session):
    """Measures CPU time: the runner waits for nothing."""
    session.run("x = 0; import time")
    before = session.run("time.process_time()").result
    for _ in range(100):
        out, err = session.begin("x += 1")
        assert session.channel.recv(100).startswith(b"done")
        os.close(out)
        os.close(err)
    assert session.run("x").result == 100
    assert session.run("time.process_time()").result - before < 100 * 0.005


def test_variables_of_a_run_are_set_for_that_run_only(session):
    show = "import os, subprocess\n[os.environ.get('A'), os.getenv('HOME'), subprocess.run(['printenv', 'A'], capture_output=True).stdout]"
    home = str(session.folder)
    assert session.run(show).result == f"[None, '{home}', b'']"
    assert session.run(show, env=["A=1 =x", "HOME=/h"]).result == "['1 =x', '/h', b'1 =x\\n']"
    assert session.run(show).result == f"[None, '{home}', b'']"
    assert session.run("os.environ['A'] = 'mine'; os.environ['B'] = 'kept'", env=["A=1"]).code == 0
    assert session.run("os.environ.get('A'), os.environ['B']").result == [None, "kept"]
    assert session.run("del os.environ['A']; raise ValueError", env=["A=1"]).code == 1
    assert session.run("os.environ.get('A')", env=["A=2"]).result == "2"
