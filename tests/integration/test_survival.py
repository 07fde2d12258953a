# SPDX-License-Identifier: Apache-2.0
"""What outlives a killed daemon: sessions, running and queued executions, streams."""

import concurrent.futures
import contextlib
import http.client
import os
import shutil
import signal
import sqlite3
import threading
import time

import pytest

from support import host
from support.client import Client
from support.daemon import BUILD, Daemon
from support.sessions import V1, Session, events

pytestmark = pytest.mark.phases("system", "pool", "user")

# CI runs fifty; one host must handle MILLIBOX_SCALE=1000.
SESSIONS = int(os.environ.get("MILLIBOX_SCALE", "50"))


@pytest.fixture
def mortal():
    """A daemon that may be killed; nothing of it is left afterwards."""
    made = Daemon(config="sessions:\n  max: 2048\n  survive: 120s\nadmission:\n  max_running: 64\n")
    made.start()
    yield made
    if made.process.poll() is None:
        made.stop()
    host.wait_until(lambda: made.engine_pid is None, 45, "the engine has ended")
    host.wait_until(lambda: not list((made.home / "run").iterdir()), 10, "the guard has removed the names")
    made.remove()


def reborn(mortal, *sessions):
    """kill -9, and another daemon on the same directory. Return: its client, which @sessions use."""
    mortal.kill()
    mortal.start()
    client = Client(mortal.socket)
    for session in sessions:
        session.client = client
    return client


@pytest.mark.alone
def test_fifty_sessions_outlive_a_killed_daemon(mortal):
    client = Client(mortal.socket)
    made = [Session(client, mode="persistent", language="shell" if i % 5 else "python") for i in range(SESSIONS)]
    py, sh = [s for i, s in enumerate(made) if i % 5 == 0], [s for i, s in enumerate(made) if i % 5]
    for i, session in enumerate(py):
        assert session.run(f"x = {i}")["status"] == "success"
    for i, session in enumerate(sh):
        assert session.run(f"x={i}")["status"] == "success"
    running = {s: s.start("echo up; sleep 1; echo down $x") for s in sh[:4]}
    waiting = {s: [s.start("echo first $x"), s.start("x=new; echo second $x")] for s in running}
    for session, execution in running.items():
        session.wait_for_output(execution, "up")
    client = reborn(mortal, *made)
    assert {s.info()["state"] for s in made} <= {"ready", "running"}
    for i, session in enumerate(sh):
        if session not in running:
            assert session.run("echo $x")["stdout"] == f"{i}\n"
    for i, session in enumerate(py):
        assert session.run("x")["result"] == i
    for i, session in enumerate(running):
        assert session.result(running[session])["stdout"] == f"up\ndown {i}\n"
        assert [session.result(e)["stdout"] for e in waiting[session]] == [f"first {i}\n", "second new\n"]
        assert session.run("echo $x")["stdout"] == "new\n"
    for session in made:
        assert session.delete().status == 200
    mortal.settle(60)


@pytest.mark.alone
def test_many_python_sessions_survive_and_end(mortal, capsys):
    """All of them resident interpreters: the heavy kind. One host must handle MILLIBOX_SCALE=1000."""
    count, took = max(SESSIONS // (1 if SESSIONS > 50 else 5), 1), {}
    fds = host.fd_count(mortal.pid) if host.is_root() else 0  # only root can read them
    before = memory_available()

    def each(what, work, items):
        """A few at a time, over separate connections. Prints the time for a large scale."""
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            done = list(pool.map(work, items))
        took[what] = time.monotonic() - begin
        return done

    local = threading.local()

    def client():
        if getattr(local, "daemon", None) != mortal.pid:
            local.daemon, local.client = mortal.pid, Client(mortal.socket, timeout=120)
        return local.client

    def use(item, code):
        item[1].client = client()
        answer = client().post(f"{item[1].path}/execute", {"code": code.format(i=item[0]), "wait": True})
        assert answer.status == 200, (answer, item[1].info()["reason"], mortal.log()[-2000:])
        return answer.json

    def delete(item):
        item[1].client = client()
        return item[1].delete().status

    made = list(enumerate(each("make", lambda i: Session(client(), mode="persistent", language="python"), range(count))))
    assert {r["status"] for r in each("use", lambda s: use(s, "x = {i}"), made)} == {"success"}
    used, rss = before - memory_available(), (host.rss_kib(mortal.pid), host.rss_kib(mortal.engine_pid))
    begin = time.monotonic()
    mortal.kill()
    mortal.start()
    took["restart"] = time.monotonic() - begin
    results = each("use again", lambda s: use(s, "x += 1; x"), made)
    assert [r["result"] for r in results] == [i + 1 for i in range(count)]
    assert not any(r["session_reset"] for r in results)
    assert set(each("delete", delete, made)) == {200}
    begin = time.monotonic()
    mortal.settle(120)
    took["settle"] = time.monotonic() - begin
    if host.is_root():
        host.wait_until(lambda: host.fd_count(mortal.pid) <= fds + 16, 20, lambda: f"{fds}, now {host.fd_count(mortal.pid)}")
    if SESSIONS > 50:
        with capsys.disabled():
            print(f"\n{count} sessions: " + ", ".join(f"{k} {v:.1f} s" for k, v in took.items())
                  + f"; {used // count} KiB of the host each; daemon {rss[0]} KiB, engine {rss[1]} KiB")


def memory_available():
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("MemAvailable:"))


def test_unfinished_sessions_are_created_by_the_next_daemon(mortal):
    """Their boxes end with the daemon that requested them; the next daemon makes others."""
    for _ in range(8):
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            made = list(pool.map(lambda _: Session(Client(mortal.socket), mode="persistent"), range(6)))
        mortal.kill()
        mortal.start()
        for session in made:
            session.client = Client(mortal.socket)
            answer = session.client.post(f"{session.path}/execute", {"code": "6 * 7", "wait": True})
            assert answer.status == 200 and answer.json["result"] == 42, (answer, session.info(), mortal.log())
            assert session.delete().status == 200
        assert mortal.process.poll() is None


@pytest.mark.parametrize("obeys", [True, False])
def test_unacknowledged_runs_end_before_newer_requests(mortal, obeys):
    """A synchronous run whose daemon is killed before it was written: it still runs in the box, unknown."""
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 5")
    code = "" if obeys else "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    code += "import time\nopen('up', 'w').close()\nwhile True: time.sleep(0.05)"

    def wait_for_it():
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(Client(mortal.socket)) as client:
            client.post(f"{session.path}/execute", {"code": code, "wait": True, "timeout": 300})

    waiting = threading.Thread(target=wait_for_it)
    waiting.start()
    host.wait_until(lambda: session.client.get(f"{session.path}/files/up").status == 200, 20, "it runs")
    with contextlib.closing(sqlite3.connect(mortal.home / "state" / "millibox.db")) as db:
        # Nothing waits for the row of a run without a ticket: it may come later than the run's own file.
        host.wait_until(lambda: db.execute("SELECT count(*) FROM executions WHERE completed_ms IS NULL").fetchone() == (1,),
                        20, "its row")
    mortal.kill()
    waiting.join()
    with contextlib.closing(sqlite3.connect(mortal.home / "state" / "millibox.db")) as db:
        assert db.execute("DELETE FROM executions WHERE completed_ms IS NULL").rowcount == 1
        db.commit()
    mortal.start()
    session.client = Client(mortal.socket)
    first = session.start("x")  # acknowledged, and therefore run
    result = session.result(first)
    assert session.run("6 * 7")["result"] == 42
    if obeys:
        assert result["result"] == 5 and result["session_reset"] is False
    else:
        assert result["error"]["name"] == "NameError" and result["session_reset"] is True
    assert session.delete().status == 200


@pytest.mark.parametrize("runs", [1, 2, 3, 5])
def test_runs_that_were_just_answered_cost_no_session(mortal, runs):
    """The store lags behind: it has begun the first and does not know the last when the daemon is killed."""
    session = Session(Client(mortal.socket), mode="persistent")
    for i in range(runs):
        assert session.run(f"x = {i}; print(x)")["stdout"] == f"{i}\n"
    mortal.kill()
    mortal.start()
    session.client = Client(mortal.socket)
    assert session.run("print(x)")["stdout"] == f"{runs - 1}\n"
    session.delete()


def test_a_stream_continues_where_it_was_cut(mortal):
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 5")
    execution = session.start(
        "import time\nfor i in range(40):\n    print(i, flush=True)\n    time.sleep(0.05)\nx", timeout=60)
    seen = []
    with contextlib.closing(Client(mortal.socket)) as reader:
        for event in events(reader, execution):
            seen.append(event)
            # Lines come together from a busy host: all of them may be there before the eighth event.
            if len(seen) == 8 or "39\n" in event.get("data", ""):
                break
    client = reborn(mortal, session)
    last = max(event["id"] for event in seen if event.get("id"))
    seen += events(client, execution, after=last)
    assert "".join(e["data"] for e in seen if e["event"] == "stdout") == "".join(f"{i}\n" for i in range(40))
    numbers = [e["id"] for e in seen if e.get("id")]
    assert numbers == list(range(1, len(numbers) + 1)) and seen[-1]["event"] == "end"
    # A reader of all events finds the same numbers on the same texts.
    again = [(e.get("id"), e["event"], e.get("data")) for e in events(client, execution)]
    assert again == [(e.get("id"), e["event"], e.get("data")) for e in seen]
    result = session.result(execution)
    assert result["status"] == "success" and result["result"] == 5 and not result["session_reset"]


def test_runs_that_ended_meanwhile_are_readable(mortal):
    session = Session(Client(mortal.socket), mode="persistent")
    execution = session.start("import subprocess\nlast = subprocess.Popen(['sleep', '1.0625'])\nprint('up', flush=True)\nlast.wait()\nprint('down')\n7")
    session.wait_for_output(execution, "up")
    mortal.kill()
    # No daemon can tell that it is over: what it waits for was there before its output, and has ended.
    host.wait_until(lambda: not init_of(mortal, "1.0625"), 10, "the end of what it waits for")
    mortal.start()
    session.client = Client(mortal.socket)
    result = session.result(execution)
    assert (result["status"], result["stdout"], result["result"]) == ("success", "up\ndown\n", 7)
    # And once more, after a kill while nothing runs.
    reborn(mortal, session)
    assert session.result(execution)["stdout"] == "up\ndown\n"
    assert session.run("1 + 1")["result"] == 2


def test_deadlines_count_from_the_start(mortal):
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 1")
    execution = session.start("import time\nprint('up', flush=True)\ntime.sleep(60)", timeout=5)
    session.wait_for_output(execution, "up")
    started = time.monotonic()
    reborn(mortal, session)
    result = session.result(execution)
    assert result["status"] == "timeout" and time.monotonic() - started < 10 * host.PATIENCE
    assert not result["session_reset"] and session.run("x")["result"] == 1


def test_what_was_cancelled_in_the_queue_does_not_run_after_a_kill(mortal):
    session = Session(Client(mortal.socket), mode="persistent", language="shell")
    first, *waiting = [session.start(code) for code in ("echo up; sleep 60", "touch cancelled", "touch kept")]
    session.wait_for_output(first, "up")  # a box that is not ready yet would be lost with the daemon
    cancelled = session.client.post(f"{V1}/executions/{waiting[0]}/cancel", {})
    client = reborn(mortal, session)
    assert cancelled.json["status"] == session.result(waiting[0])["status"] == "cancelled"
    client.post(f"{V1}/executions/{first}/cancel", {})
    assert session.result(waiting[1])["status"] == "success"
    assert session.run("ls")["stdout"] == "kept\n"


def test_cancel_and_stdin_reach_an_earlier_daemons_run(mortal):
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 1")
    execution = session.start("print(input(), flush=True)\nimport time\ntime.sleep(60)", stdin_open=True)
    session.wait_for("running")
    client = reborn(mortal, session)
    host.wait_until(lambda: client.post(f"{V1}/executions/{execution}/stdin", {"data": "word\n"}).status == 200, 10, "stdin")
    session.wait_for_output(execution, "word")
    assert client.post(f"{V1}/executions/{execution}/cancel", {}).status == 200
    assert session.result(execution)["status"] == "cancelled"
    assert session.run("x")["result"] == 1


@pytest.mark.skipif(not host.is_root(), reason="ids of a box are not an ordinary user's to kill")
def test_a_lost_box_is_not_silent(mortal):
    client = Client(mortal.socket)
    lost, kept = Session(client, mode="persistent", language="shell"), Session(client, mode="persistent")
    kept.run("x = 2")
    execution = lost.start("echo up; sleep 76543")
    queued = lost.start("echo never")
    lost.wait_for_output(execution, "up")
    box = host.wait_until(lambda: init_of(mortal, "76543"), 10, "the box")
    mortal.kill()
    os.kill(box, signal.SIGKILL)
    host.wait_until(lambda: not os.path.exists(f"/proc/{box}"), 10, "its end")
    mortal.start()
    lost.client = kept.client = Client(mortal.socket)
    assert lost.info()["status"] == "failed"
    assert [lost.result(e)["status"] for e in (execution, queued)] == ["crashed", "crashed"]
    assert kept.run("x")["result"] == 2


def init_of(mortal, word):
    """PID 1 of the box in which a process has @word as an argument."""
    engine = mortal.engine_pid
    for init in host.children(engine):
        if any(word in host.cmdline(pid) for pid in host.descendants(init)):
            return init
    return None


def test_a_dead_idle_runner_is_reported(mortal):
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 1")

    def programs():
        return [pid for agent in mortal.box_pids() if "keep" in host.cmdline(agent) for pid in host.children(agent)]

    # What has listed the run's files may still be about to exit.
    host.wait_until(lambda: len(programs()) == 1, 10, "only its runner")
    (runner,) = programs()
    # Long enough for the daemon to be killed first.
    session.run("import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(3), os._exit(1))).start()")
    mortal.kill()
    host.wait_until(lambda: not host.is_alive(runner), 10, "its end")
    mortal.start()
    session.client = Client(mortal.socket)
    result = session.run("'x' in globals()")
    assert result["session_reset"] and result["result"] is False
    assert not session.run("1")["session_reset"]


@pytest.mark.skipif(not host.is_root(), reason="an ordinary user has no freezer of his own")
def test_a_paused_session_stays_paused(mortal):
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 3")
    execution = session.start("print('up', flush=True)\nprint(input())\nx", stdin_open=True)
    session.wait_for_output(execution, "up")
    session.act("pause")
    other = Session(session.client, mode="persistent")
    fence = other.start("print('up', flush=True)\nprint(input())", stdin_open=True)
    other.wait_for_output(fence, "up")
    client = reborn(mortal, session, other)
    assert session.info()["status"] == "paused"
    for each in (execution, fence):
        path = f"{V1}/executions/{each}/stdin"
        host.wait_until(lambda path=path: client.post(path, {"data": "down\n"}).status == 200, 10, "stdin")
    # One that is not paused has ended, although its line came later.
    assert other.result(fence)["stdout"] == "up\ndown\n"
    assert session.client.get(f"{V1}/executions/{execution}/status").json["status"] in ("pending", "running")
    session.act("resume")
    result = session.result(execution)
    assert (result["status"], result["stdout"], result["result"]) == ("success", "up\ndown\n", 3)


@pytest.mark.skipif(not host.is_root(), reason="an ordinary user has no freezer of his own")
def test_a_paused_session_is_not_taken_for_a_new_one(mortal):
    """The store lags behind: it has not written yet that the session was ready, let alone paused."""
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 3")
    session.act("pause")
    mortal.kill()
    with contextlib.closing(sqlite3.connect(mortal.home / "state" / "millibox.db")) as db:
        assert db.execute("UPDATE sessions SET state = 'creating' WHERE state = 'paused'").rowcount == 1
        db.commit()
    mortal.start()
    session.client = Client(mortal.socket)
    assert session.info()["status"] == "paused"
    session.act("resume")
    assert session.run("x")["result"] == 3


@pytest.mark.skipif(not host.is_root(), reason="an ordinary user has no freezer of his own")
def test_a_pause_across_a_restart_does_not_count_as_running_time(mortal):
    """Ten seconds to run, paused for longer, first by one daemon and then by its death."""
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 3")
    execution = session.start("import time\nprint('up', flush=True)\nend = time.monotonic() + 60\n"
                              "print(input())\nx", timeout=10, stdin_open=True)
    session.wait_for_output(execution, "up")
    session.act("pause")
    time.sleep(6)
    session.act("resume")
    session.act("pause")
    mortal.kill()
    time.sleep(6)
    mortal.start()
    session.client = Client(mortal.socket)
    assert session.info()["status"] == "paused"
    session.act("resume")
    answer = session.client.post(f"{V1}/executions/{execution}/stdin", {"data": "word\n"})
    host.wait_until(lambda: answer.status == 200 or session.client.post(
        f"{V1}/executions/{execution}/stdin", {"data": "word\n"}).status == 200, 2, "stdin")
    result = session.result(execution)
    assert (result["status"], result["stdout"], result["result"]) == ("success", "up\nword\n", 3), result


@pytest.mark.skipif(not host.is_root(), reason="an ordinary user has no freezer of his own")
@pytest.mark.parametrize("last", ["pause", "resume"])
def test_no_answer_is_ahead_of_the_engine(mortal, last):
    """The daemon is killed while its engine has done nothing of a resume and a pause. What was answered must be true."""
    session = Session(Client(mortal.socket), mode="persistent", language="shell")
    verbs = ["resume", "pause"] if last == "pause" else ["pause", "resume"]
    states = {"resume": "ready", "pause": "paused"}
    session.run("x=3")
    if last == "pause":
        session.act("pause")
    engine, answers = mortal.engine_pid, {}

    def act(verb):
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(Client(mortal.socket)) as client:
            answers[verb] = client.post(f"{session.path}/{verb}", {}).status

    acts = [threading.Thread(target=act, args=(verb,)) for verb in verbs]
    os.kill(engine, signal.SIGSTOP)
    try:
        for verb, thread in zip(verbs, acts, strict=True):
            thread.start()
            session.wait_for(states[verb])  # the daemon has the request
        # A daemon that does not wait for its engine has answered before it serves these; what it sent outlives it.
        for _ in range(3):
            session.info()
        mortal.kill()
    finally:
        os.kill(engine, signal.SIGCONT)
    for thread in acts:
        thread.join()
    assert answers == {}
    mortal.start()
    session.client = Client(mortal.socket)
    assert session.info()["state"] == states[verbs[0]]  # the second was never sent
    session.act(last)
    reborn(mortal, session)
    assert session.info()["state"] == states[last]
    if last == "pause":
        session.act("resume")
    assert session.run("echo $x")["stdout"] == "3\n"


@pytest.mark.alone
@pytest.mark.skipif(not host.is_root(), reason="an ordinary user has no groups that count")
def test_earlier_usage_does_not_count_for_a_resumed_run(mortal):
    """The counters are the box's. An execution gets its own share, whichever daemon saw its start."""
    session = Session(Client(mortal.socket), mode="persistent")
    burn = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"
    session.run(burn.format(0.8))
    execution = session.start(burn.format(0.2) + "print('up', flush=True)\ntime.sleep(1)\ninput()", stdin_open=True)
    session.wait_for_output(execution, "up")
    client = reborn(mortal, session)
    assert client.get(f"{V1}/executions/{execution}/status").json["status"] == "running"
    host.wait_until(lambda: client.post(f"{V1}/executions/{execution}/stdin", {"data": "\n"}).status == 200, 10, "stdin")
    metrics = session.result(execution)["metrics"]
    assert 200 <= metrics["cpu_time_ms"] < 800, metrics
    assert metrics["duration_ms"] >= 1000


def test_a_resumed_run_counts_as_running():
    """One may run at a time: an earlier daemon's run is that one."""
    config = "admission: {max_running: 1}\nsessions: {survive: 30s}\n"
    mortal = Daemon(config=config)
    mortal.start()
    try:
        first, second = (Session(Client(mortal.socket), mode="persistent", language="shell") for _ in range(2))
        execution = first.start("echo up; read x; echo $x", stdin_open=True)
        first.wait_for_output(execution, "up")
        reborn(mortal, first, second)
        first.wait_for_output(execution, "up")
        waiting = second.start("echo there")
        gauges = Client(mortal.socket).get("/metrics").body.decode()
        assert metric(gauges, "sandbox_executions_running") == 1, gauges
        assert second.client.get(f"{V1}/executions/{waiting}/status").json["status"] == "pending"
        assert first.client.post(f"{V1}/executions/{execution}/stdin", {"data": "word\n"}).status == 200
        assert first.result(execution)["stdout"] == "up\nword\n"
        assert second.result(waiting)["stdout"] == "there\n"
        assert mortal.stop() == 0
    finally:
        mortal.remove()


def metric(text, name):
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + " "))


def test_a_workspace_survives(mortal):
    session = Session(Client(mortal.socket))
    session.run("open('kept', 'w').write('kept')")
    running = session.start("import time\nprint('up', flush=True)\nwhile not __import__('os').path.exists('go'): time.sleep(0.05)\nprint('end')")
    session.wait_for_output(running, "up")
    reborn(mortal, session)
    assert session.info()["mode"] == "workspace"
    assert session.client.request("PUT", f"{session.path}/files/go", b"", {"Content-Type": "application/octet-stream"}).status == 201
    assert session.result(running)["stdout"] == "up\nend\n"
    assert session.run("print(open('kept').read())")["stdout"] == "kept\n"


def test_ephemeral_sessions_continue_and_report_losses(mortal):
    session = Session(Client(mortal.socket), mode="ephemeral")
    execution = session.start("import time\nprint('up', flush=True)\ntime.sleep(60)")
    queued = session.start("6 * 7")
    session.wait_for_output(execution, "up")
    with contextlib.closing(sqlite3.connect(mortal.home / "state" / "millibox.db")) as db:
        # One of which the store has no start would be run anew.
        host.wait_until(lambda: db.execute("SELECT status FROM executions WHERE id = ?", (execution,)).fetchone() == ("running",),
                        20, "its start is written")
    reborn(mortal, session)
    assert session.result(execution)["status"] == "crashed"
    assert session.result(queued)["result"] == 42
    assert session.run("1")["status"] == "success"


def test_without_a_next_daemon_nothing_is_left():
    mortal = Daemon(env={"MILLIBOX_SESSIONS_SURVIVE": "4s"})
    mortal.start()
    Session(Client(mortal.socket), mode="persistent").run("1")
    engine = mortal.engine_pid
    mortal.kill()
    assert mortal.engine_pid == engine
    host.wait_until(lambda: mortal.engine_pid is None, 15, "the lease has ended")
    host.wait_until(lambda: not list((mortal.home / "run").iterdir()), 10, "the guard has removed the names")
    # A later daemon finds the session and its end.
    mortal.start()
    with mortal.client() as client:
        listed = client.get(f"{V1}/sessions").json["sessions"]
    assert [s["status"] for s in listed] == ["failed"]
    assert mortal.stop() == 0
    mortal.remove()


def test_an_unreachable_engine_ends_before_its_lease():
    """A supervisor that removes the runtime directory announces that no daemon will come."""
    d = Daemon(config="sessions: {survive: 600s}\n").start()
    Session(Client(d.socket), mode="persistent").wait_for("ready")
    d.kill()
    engine = d.engine_pid
    assert engine and d.box_pids()
    shutil.rmtree(d.home / "run", ignore_errors=True)  # the engine removes its socket when its lock is gone
    assert not (d.home / "run").exists()
    host.wait_until(lambda: not host.is_alive(engine), 20, "the engine has ended")
    d.remove()


def test_without_survival_everything_ends_with_the_daemon():
    mortal = Daemon(env={"MILLIBOX_SESSIONS_SURVIVE": "0"})
    mortal.start()
    Session(Client(mortal.socket), mode="persistent").run("1")
    mortal.kill()
    host.wait_until(lambda: mortal.engine_pid is None, 15, "the engine has ended")
    mortal.remove()


def test_another_user_cannot_take_over_the_engine(mortal):
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 9")
    mortal.kill()
    other = Daemon(env={"MILLIBOX_RUNTIME_DIR": str(mortal.home / "run")})
    try:
        other.start()
        with other.client() as client:
            assert client.get(f"{V1}/sessions").json["sessions"] == []
            assert Session(client, mode="persistent").run("1 + 1")["result"] == 2
        assert other.stop() == 0
    finally:
        other.remove()
    mortal.start()
    session.client = Client(mortal.socket)
    assert session.run("x")["result"] == 9


def test_other_settings_are_another_engine(mortal):
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 1")
    engine = mortal.engine_pid
    mortal.kill()
    mortal.env["MILLIBOX_LIMITS_MEMORY_MAX"] = "4Gi"
    mortal.start()
    session.client = Client(mortal.socket)
    assert mortal.engine_pid not in (None, engine) and not os.path.exists(f"/proc/{engine}/exe")
    assert session.info()["status"] == "failed"


@pytest.mark.parametrize("updated", [False, True], ids=["same", "updated"])
def test_an_engine_is_taken_over_only_if_its_binary_is_the_same(updated):
    """After an update in the same place. Negative control: the same bytes in a new file are the same engine."""
    d = Daemon()
    programs = d.home / "programs"
    programs.mkdir()
    for name in ("millibox-engine", "millibox-import", "millibox-egress"):
        shutil.copy(BUILD / name, programs / name)
    d.env["MILLIBOX_ENGINE_PATH"] = str(programs / "millibox-engine")
    d.env["MILLIBOX_AGENT_PATH"] = str(BUILD / "millibox-agent")
    try:
        d.start()
        session = Session(Client(d.socket), mode="persistent")
        session.run("x = 1")
        engine = d.engine_pid
        d.kill()
        # Bytes behind the end of the program change nothing else.
        (programs / "new").write_bytes((BUILD / "millibox-engine").read_bytes() + b"\0" * updated)
        (programs / "new").chmod(0o755)
        (programs / "new").rename(programs / "millibox-engine")
        d.start()
        session.client = Client(d.socket)
        assert (d.engine_pid == engine) == (not updated)
        assert (session.info()["status"] == "failed") == updated
        assert ("has another binary or other settings" in d.log()) == updated
        d.stop()
        host.wait_until(lambda: d.engine_pid is None, 45, "the engine has ended")
    finally:
        d.remove()


def test_a_stop_ends_sessions_or_leaves_them():
    mortal = Daemon()
    mortal.start()
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 4")
    assert mortal.stop() == 0 and mortal.engine_pid is None
    mortal.env["MILLIBOX_SESSIONS_KEEP_ON_STOP"] = "true"
    mortal.start()
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("x = 4")
    execution = session.start("import time\nprint('up', flush=True)\ntime.sleep(1)\nx")
    session.wait_for_output(execution, "up")
    assert mortal.stop() == 0 and mortal.engine_pid
    mortal.start()
    session.client = Client(mortal.socket)
    assert session.result(execution)["result"] == 4
    assert session.run("x")["result"] == 4
    assert session.delete().status == 200
    assert mortal.stop() == 0 and mortal.engine_pid is None
    mortal.remove()


def test_an_engine_killed_without_a_daemon_leaves_nothing(mortal):
    session = Session(Client(mortal.socket), mode="persistent")
    session.run("1")
    engine = mortal.engine_pid
    mortal.kill()
    os.kill(engine, signal.SIGKILL)
    host.wait_until(lambda: mortal.engine_pid is None, 10, "gone")
    mortal.start()
    session.client = Client(mortal.socket)
    assert session.info()["status"] == "failed"
    mortal.settle()
