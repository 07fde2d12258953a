# SPDX-License-Identifier: Apache-2.0
"""Runs beside a session's queue, with pipes or on a terminal, through a real daemon."""

import contextlib

import pytest

from support import host
from support.client import Client
from support.daemon import Daemon, is_sanitized
from support.sessions import V1, Session, events, needs_freezer

pytestmark = pytest.mark.phases("system")


def cancel(session, execution):
    answer = session.client.post(f"{V1}/executions/{execution}/cancel", {})
    assert answer.status == 200, answer


def write(session, execution, data, status=200, **fields):
    answer = session.client.post(f"{V1}/executions/{execution}/stdin", {"data": data, **fields})
    assert answer.status == status, answer


def status_of(session, execution):
    return session.client.get(f"{V1}/executions/{execution}/status").json


def background(session, code, **fields):
    return session.start(code, background=True, **fields)


def test_the_queue_goes_on_beside_it(sh):
    execution = background(sh, "echo up; read line; echo got $line; exit 3", stdin_open=True)
    sh.wait_for_output(execution, "up")
    assert sh.info()["state"] == "ready"
    assert sh.run("x=1; echo one")["stdout"] == "one\n"
    assert sh.run("echo $x")["stdout"] == "1\n"
    status = status_of(sh, execution)
    assert (status["status"], status["background"], status["tty"]) == ("running", True, False)
    write(sh, execution, "hello\n")
    result = sh.result(execution)
    assert (result["status"], result["exit_code"], result["stdout"]) == ("failed", 3, "up\ngot hello\n")
    assert [e["event"] for e in events(sh.client, execution)][-1] == "end"
    listed = sh.client.get(f"{sh.path}/executions").json["executions"]
    assert [e["background"] for e in listed if e["execution_id"] == execution] == [True]


def test_a_server_serves_later_executions(py):
    server = background(py, "import http.server, os\nos.chdir('/tmp')\nopen('page', 'w').write('served')\n"
                        "s = http.server.HTTPServer(('127.0.0.1', 8321), http.server.SimpleHTTPRequestHandler)\n"
                        "print('listening', flush=True)\ns.serve_forever()")
    py.wait_for_output(server, "listening")
    code = "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:8321/page').read().decode()"
    assert py.run(code)["result"] == "served"
    assert py.run(code)["result"] == "served"
    cancel(py, server)
    assert py.result(server)["status"] == "cancelled"
    assert "refused" in py.run(code)["stderr"]
    assert py.info()["state"] == "ready"


FORGE = """
import os, socket
while True:
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect('/run/millibox/report.sock')
            s.sendall(b'{"result": "forged"}')
            s.shutdown(socket.SHUT_WR)
            s.recv(1)
        except (FileNotFoundError, ConnectionRefusedError):
            continue
        except OSError:
            pass
        open('/workspace/tried', 'w').close()
"""


def test_it_cannot_report_for_an_execution_that_is_a_process_of_its_own(py):
    forger = background(py, FORGE)
    # An option of the interpreter needs another process than the one that keeps the variables.
    run = py.run("import os\nwhile not os.path.exists('/workspace/tried'): pass\n6 * 7", options={"python_cmd": "python3"})
    assert (run["status"], run["result"]) == ("success", 42), run
    cancel(py, forger)


def test_the_end_of_one_ends_no_other(make):
    """Neither of a process of its own in the queue, nor of a background run, with all that it started."""
    sh = make(language="shell")
    other = background(sh, "echo up; (trap '' HUP; sleep 1000) & wait")
    sh.wait_for_output(other, "up")
    # Programs cannot signal each other: a lock shows whether the child lives.
    held = "flock -n lock true && echo gone || echo alive"
    gone = background(sh, "(flock 9; echo up; sleep 1000) 9>lock & read", stdin_open=True)
    sh.wait_for_output(gone, "up")
    assert sh.run(held)["stdout"] == "alive\n"
    # Options make it a process of its own.
    assert sh.run("echo fresh", options={"set_flags": "-e"})["stdout"] == "fresh\n"
    assert sh.run(held)["stdout"] == "alive\n"
    write(sh, gone, "\n")
    assert sh.result(gone)["status"] == "success"
    # Its child was killed before the result was sent, and ends when the kernel lets it run.
    host.wait_until(lambda: sh.run(held)["stdout"] == "gone\n", 10, "the child is gone")
    assert status_of(sh, other)["status"] == "running"
    cancel(sh, other)
    assert sh.result(other)["status"] == "cancelled"


def test_its_deadline_is_its_own(sh):
    short = background(sh, "sleep 1000", timeout=1)
    result = sh.result(short)
    assert (result["status"], result["limit"]) == ("timeout", "time")
    assert sh.run("echo on")["stdout"] == "on\n"


def test_output_is_limited_as_ever(make):
    sh = make(language="shell")
    execution = background(sh, "yes | head -c 30000000; echo end >&2")
    result = sh.result(execution)
    assert result["limit"] == "output" and len(result["stdout"]) < 30000000
    assert result["stderr"] == "end\n"


def test_sixteen_at_a_time(sh):
    many = [background(sh, "sleep 1000") for _ in range(16)]
    answer = sh.client.post(f"{sh.path}/execute", {"code": "true", "background": True})
    assert answer.status == 429 and "16 executions run in the background" in repr(answer), answer
    assert sh.run("echo on")["stdout"] == "on\n"
    cancel(sh, many[0])
    sh.result(many[0])
    last = background(sh, "echo room")
    assert sh.result(last)["stdout"] == "room\n"


@pytest.mark.parametrize("fields, named", [
    ({"background": 1}, "background"),
    ({"tty": True}, "tty"),
    ({"tty": {"rows": 0}}, "tty.rows"),
    ({"tty": {"cols": 1001}}, "tty.cols"),
    ({"tty": {"height": 3}}, "tty"),
])
def test_wrong_fields_are_named(sh, fields, named):
    answer = sh.client.post(f"{sh.path}/execute", {"code": "true", **fields})
    assert answer.status == 400 and named in repr(answer), answer


def test_it_needs_a_session_with_a_box(make):
    session = make(mode="ephemeral", language="shell")
    for fields in ({"background": True}, {"tty": {}}):
        answer = session.client.post(f"{session.path}/execute", {"code": "true", **fields})
        assert answer.status == 400 and "workspace or persistent" in repr(answer), answer
    kept = make(mode="workspace", language="shell")
    execution = kept.start("echo beside", background=True)
    assert kept.result(execution)["stdout"] == "beside\n"


@pytest.mark.parametrize("fields", [{"background": True}, {}], ids=["background", "queue"])
def test_input_that_is_not_read_is_bounded(daemon, sh, fields):
    before = host.rss_kib(daemon.pid)
    execution = sh.start("echo up; sleep 1000", stdin_open=True, **fields)
    sh.wait_for_output(execution, "up")
    piece, path = {"data": "y" * (1 << 20)}, f"{V1}/executions/{execution}/stdin"
    answers = [sh.client.post(path, piece) for _ in range(24)]
    assert answers[0].status == 200 and answers[-1].status == 429, answers[-1]
    assert "has not read" in repr(answers[-1])
    assert is_sanitized() or host.rss_kib(daemon.pid) - before < 20 * 1024
    cancel(sh, execution)
    assert sh.result(execution)["status"] == "cancelled"


def test_input_that_is_read_has_no_bound(sh):
    execution = background(sh, "wc -c", stdin_open=True)
    path, piece = f"{V1}/executions/{execution}/stdin", {"data": "y" * (6 << 20)}
    for _ in range(2):
        host.wait_until(lambda: sh.client.post(path, piece).status == 200, 30, "the program has read")
    write(sh, execution, "", end=True)
    assert sh.result(execution)["stdout"].strip() == str(12 << 20)


@needs_freezer
def test_a_pause_stops_it(sh, make):
    execution = background(sh, "echo up; read; echo down", stdin_open=True, timeout=60)
    sh.wait_for_output(execution, "up")
    sh.act("pause")
    write(sh, execution, "\n")
    make(language="shell").run("sleep 2")
    assert status_of(sh, execution)["status"] == "running"
    sh.act("resume")
    assert sh.result(execution)["stdout"] == "up\ndown\n"


def test_deleting_the_session_ends_it(client):
    session = Session(client, mode="persistent", language="shell")
    execution = background(session, "echo up; sleep 1000")
    session.wait_for_output(execution, "up")
    assert session.client.post(f"{session.path}/terminate", {}).status == 200
    assert session.result(execution)["status"] == "cancelled"
    assert session.delete().status == 200


def test_it_outlives_a_killed_daemon():
    daemon = Daemon(config="sessions:\n  survive: 30s\n")
    daemon.start()
    try:
        session = Session(Client(daemon.socket), mode="persistent", language="shell")
        first = background(session, "echo up; read line; echo got $line", stdin_open=True)
        terminal = session.start("echo up; read line; echo saw $line", tty={"rows": 5, "cols": 40})
        ended = background(session, "echo up; sleep 1000")
        for execution in (first, terminal, ended):
            session.wait_for_output(execution, "up")
        assert session.run("x=1")["status"] == "success"
        daemon.kill()
        daemon.start()
        session.client = Client(daemon.socket)
        assert session.run("echo $x")["stdout"] == "1\n"
        for execution in (first, terminal, ended):
            assert status_of(session, execution)["status"] == "running"
        write(session, first, "hello\n")
        write(session, terminal, "you\n")
        assert session.result(first)["stdout"] == "up\ngot hello\n"
        assert "saw you" in session.result(terminal)["stdout"]
        cancel(session, ended)
        assert session.result(ended)["status"] == "cancelled"
        assert session.delete().status == 200
        daemon.settle(30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            daemon.stop()
        host.wait_until(lambda: daemon.engine_pid is None, 45, "the engine has ended")
        daemon.remove()


# Terminals

#: Waits in select(), at a pipe too: a signal that comes just before read() blocks would be handled only after it.
CURIOUS = """import os, select, signal
def note(what):
    def on_signal(*_):
        size = os.get_terminal_size()
        os.write(1, f'{what} {size.lines} {size.columns}\\n'.encode())  # print() may be what the signal interrupts
    return on_signal
signals, wakeup = os.pipe()
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup)
signal.signal(signal.SIGWINCH, note('resized'))
signal.signal(signal.SIGINT, note('interrupted'))
print('up', flush=True)
while True:
    ready = select.select([0, signals], [], [])[0]
    if signals in ready:
        os.read(signals, 100)
    elif line := os.read(0, 1000):
        print('line', line.decode().strip(), flush=True)
    else:
        break
print('eof')
"""


def test_a_terminal_is_one(sh):
    execution = sh.start("tty; stty size; echo $TERM; ps -o tty= -p $$; test -t 0 -a -t 1 -a -t 2 && echo three",
                         tty={"rows": 33, "cols": 101})
    result = sh.result(execution)
    lines = result["stdout"].replace("\r", "").splitlines()
    assert lines[0].startswith("/dev/pts/") and lines[1:3] == ["33 101", "xterm-256color"], result
    assert lines[-1] == "three" and result["stderr"] == "", result
    assert (result["background"], result["tty"]) == (True, True)


def test_a_terminal_echoes_resizes_and_interrupts(sh):
    execution = sh.start(CURIOUS, language="python", tty={})
    sh.wait_for_output(execution, "up")
    answer = sh.client.post(f"{V1}/executions/{execution}/resize", {"rows": 40, "cols": 90})
    assert answer.status == 200, answer
    sh.wait_for_output(execution, "resized 40 90\r\n")
    write(sh, execution, "ab\n")
    sh.wait_for_output(execution, "line ab\r\n")
    write(sh, execution, "\x03")
    sh.wait_for_output(execution, "interrupted")
    write(sh, execution, "", end=True)
    shown = sh.result(execution)["stdout"].replace("\r", "")
    assert "resized 40 90\n" in shown and "ab\nline ab\n" in shown and "^C" in shown and shown.endswith("eof\n"), shown


def test_only_a_terminal_has_a_size(sh):
    execution = background(sh, "sleep 1000")
    for body, status in (({"rows": 1, "cols": 1}, 409), ({"rows": 1}, 400), ({"rows": 0, "cols": 1}, 400)):
        answer = sh.client.post(f"{V1}/executions/{execution}/resize", body)
        assert answer.status == status, answer
    cancel(sh, execution)
    sh.result(execution)
    assert sh.client.post(f"{V1}/executions/{execution}/resize", {"rows": 1, "cols": 1}).status == 409


def test_a_terminal_has_no_limit_on_output(make):
    """Its record keeps the end of what it showed."""
    sh = make(language="shell")
    execution = sh.start("for i in $(seq 40); do head -c 1000000 /dev/zero | tr '\\0' x; done; echo; echo the end",
                         tty={})
    result = sh.result(execution, 60)
    assert result["status"] == "success" and result["limit"] is None, result["limit"]
    assert result["stdout"].endswith("the end\r\n")
    assert result["metrics"]["stdout_bytes"] > 40_000_000 > len(result["stdout"])


def test_the_operator_bounds_its_time(make_daemon):
    """A run that asks for more is cut, and its answer says so; one that asks for nothing gets the default."""
    settings = "limits: {background_time: 1s, background_time_max: 2s, timeout: 30s}\n"
    with make_daemon(config=settings).start().client() as client:
        session = Session(client, mode="persistent", language="shell")
        cut = client.post(f"{session.path}/execute", {"code": "sleep 1000", "background": True, "timeout": 100}).json
        assert cut["limits"] == {"timeout": {"requested": "100", "granted": "2",
                                             "reason": "the operator's maximum (limits.background_time_max)"}}
        by_default = client.post(f"{session.path}/execute", {"code": "sleep 1000", "background": True}).json
        assert "limits" not in by_default
        terminal = client.post(f"{session.path}/execute", {"code": "sleep 1000", "tty": {"rows": 24, "cols": 80}}).json
        results = [session.result(one["execution_id"]) for one in (cut, by_default, terminal)]
        assert [(r["status"], r["limit"]) for r in results] == [("timeout", "time")] * 3
        rows = [r["denials"][0] for r in results]
        assert rows[0]["remedy"]["settings"] == {"limits.background_time_max": 4}, rows[0]
        assert rows[1]["remedy"]["request"] == {"timeout": 2}, rows[1]
        # Executions of the queue have their own limit.
        assert session.run("sleep 2.5; echo done")["stdout"] == "done\n"
        session.delete()


def test_its_time_is_within_the_lifetime_of_its_session(client):
    session = Session(client, mode="persistent", language="shell", lifetime=60)
    answer = client.post(f"{session.path}/execute", {"code": "sleep 1000", "background": True, "timeout": 3000}).json
    cut = answer["limits"]["timeout"]
    assert cut["reason"] == "not more than the rest of the session's lifetime" and 0 < float(cut["granted"]) <= 60, cut
    session.delete()
