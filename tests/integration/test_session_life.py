# SPDX-License-Identifier: Apache-2.0
"""Sessions through the API of a real daemon: start, end, refusals, the command line."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading

import pytest

from support import host
from support.client import Client
from support.daemon import BUILD
from support.sessions import V1, Session, events, needs_freezer

pytestmark = pytest.mark.phases("system")

# Life


def test_sessions_of_a_daemon_that_keeps_none(make_daemon):
    with make_daemon(config="sessions: {survive: 0}\n").start().client() as client:
        for language, code in (("python", "x = 1; print(x)"), ("shell", "x=1; echo $x")):
            session = Session(client, mode="persistent", language=language)
            assert session.run(code)["stdout"] == "1\n"
            session.delete()


@needs_freezer
def test_a_paused_session_does_not_run(py, make):
    running = py.start("import time\nprint('go', flush=True)\nend = time.monotonic() + 60\nn = 0\n"
                       "while n < 20:\n    time.sleep(0.05); n += 1; print(n, flush=True)", timeout=6)
    py.wait_for_output(running, "go")
    assert py.act("pause")["status"] == "paused"
    queued = py.start("'after'")
    before = text_of_now(py, running)
    # As much time has passed as it has: another one's, which began later, is over.
    assert make().run("import time; time.sleep(60)", timeout=6)["status"] == "timeout"
    assert text_of_now(py, running) == before
    assert py.act("pause", 409)["error_code"] == "Sandbox.StateConflict"
    assert py.client.get(f"{V1}/executions/{queued}/status").json["status"] == "pending"
    assert py.act("resume")["state"] in ("running", "ready")
    # More time than its timeout has passed, but not while it ran.
    r = py.result(running)
    assert r["status"] == "success" and r["stdout"].endswith("20\n")
    assert py.result(queued)["result"] == "after"
    assert py.act("resume", 409)["error_code"] == "Sandbox.StateConflict"


@needs_freezer
def test_a_pause_is_answered_when_every_process_has_stopped(make_daemon):
    """Processes that share a twentieth of a core: the kernel can stop each only when it is its turn to run."""
    daemon = make_daemon().start()
    session = Session(daemon.client(), mode="persistent", language="shell", resources={"cpu": 0.05})
    running = session.start("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do while :; do :; done & done; echo up; wait")
    session.wait_for_output(running, "up", seconds=60)
    for _ in range(3):
        session.act("pause")
        assert set(frozen_groups(daemon.groups())) == {True}
        session.act("resume")
    assert session.delete().status == 200


@needs_freezer
def test_a_pause_may_come_before_the_engine_knows_that_the_box_runs(make_daemon):
    """An engine that is stopped when the agent starts: the agent serves the daemon before the engine has read that it runs. Some
    rounds are too late for that."""
    daemon = make_daemon().start()
    with daemon.client() as client:
        Session(client, mode="persistent", language="shell").run("true")
    engine = daemon.engine_pid
    for _ in range(10):
        pause_early(daemon, engine)


def pause_early(daemon, engine):
    before, statuses = set(host.listed_children(engine)), []

    def use():
        with daemon.client() as client:
            session = Session(client, mode="persistent", language="shell")
            session.run("true")
            statuses.extend(client.post(f"{session.path}/{verb}", {}).status for verb in ("pause", "resume"))
            statuses.append(session.delete().status)

    thread = threading.Thread(target=use)
    thread.start()
    while thread.is_alive() and not any(host.cmdline(pid)[:1] == ["millibox-agent"]
                                        for pid in host.listed_children(engine) if pid not in before):
        pass  # it takes less time than a pause between two looks
    os.kill(engine, signal.SIGSTOP)
    try:
        thread.join(0.3)  # up to the pause, or to what needs the engine
    finally:
        os.kill(engine, signal.SIGCONT)
    thread.join()
    assert statuses == [200, 200, 200], daemon.log()


def frozen_groups(groups):
    """[whether all its processes have stopped] of those groups that are in the tree with the freezer."""
    unified = [group for group in groups if os.path.exists(f"{group}/cgroup.freeze")]
    if unified:
        return ["frozen 1" in read_text(f"{group}/cgroup.events") for group in unified]
    return [read_text(f"{group}/freezer.state") == "FROZEN\n" for group in groups if os.path.exists(f"{group}/freezer.state")]


def read_text(path):
    with open(path) as f:
        return f.read()


@needs_freezer
def test_a_waiter_learns_that_the_session_is_paused(py, client):
    py.run("1")
    py.act("pause")
    for wait in ({"wait": True}, {"async_mode": False}):
        refused = client.post(f"{py.path}/execute", {"code": "1", **wait})
        assert refused.status == 409 and f"POST {py.path}/resume" in refused.json["error_detail"], refused
    assert py.info()["queued"] == 0
    connection = http.client.HTTPConnection("localhost", timeout=host.HANG_S)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(host.HANG_S)
    connection.sock.connect(client.address)
    body = json.dumps({"code": "6 * 7", "stream": True})
    connection.request("POST", f"{py.path}/execute", body, {"Content-Type": "application/json", "Host": "localhost"})
    stream = connection.getresponse()
    names = [json.loads(stream.readline())["event"] for _ in range(2)]
    assert names == ["pending", "paused"]
    py.act("resume")
    assert [json.loads(line)["event"] for line in stream][-1] == "end"
    connection.close()


def text_of_now(session, execution_id):
    """The output of an execution so far."""
    return session.client.get(f"{V1}/executions/{execution_id}").json["stdout"]


@needs_freezer
def test_a_paused_session_can_be_ended(py):
    py.run("1")
    py.act("pause")
    assert py.act("terminate")["status"] == "terminated"


def test_an_unused_session_ends(make):
    session = make(timeout=3)
    assert session.info()["timeout"] == 3
    session.run("1")
    session.wait_for("terminated")
    ended = session.info()
    assert ended["completed_at"] and ended["reason"]
    answer = session.client.post(f"{session.path}/execute", {"code": "1"})
    assert answer.status == 409


def test_use_and_keepalive_postpone_the_end(make):
    unused, session = make(timeout=4), make(timeout=4)

    def is_over():
        session.act("keepalive")
        return unused.info()["state"] == "terminated"

    host.wait_until(is_over, 10, "the end of the unused session")
    assert session.info()["state"] == "ready"
    session.run("import time; time.sleep(5)")
    assert session.info()["state"] == "ready"


def test_a_busy_session_ends_with_its_lifetime(make):
    session = make(lifetime=3)
    running = session.start("import time; time.sleep(60)", timeout=60)
    session.wait_for("terminated")
    assert session.result(running)["status"] == "cancelled"


def test_terminate_is_idempotent_and_results_stay(py):
    r = py.run("1")
    waiting = py.start("import time; time.sleep(60)")
    assert py.act("terminate")["status"] == "terminated"
    assert py.act("terminate")["status"] == "terminated"
    assert py.client.get(f"{V1}/executions/{r['execution_id']}/result").json["result"] == 1
    assert py.result(waiting)["status"] == "cancelled"
    for verb in ("pause", "resume", "interrupt", "keepalive"):
        assert py.act(verb, 409)["error_code"] == "Sandbox.StateConflict"


@pytest.mark.phases("system", "user")
def test_a_deleted_session_leaves_nothing(py):
    r = py.run("1")
    running = py.start("import time; time.sleep(60)")
    answer = py.delete()
    assert answer.status == 200 and answer.json["message"]
    assert py.client.get(py.path).json["error_code"] == "Sandbox.SessionNotFound"
    for execution_id in (r["execution_id"], running):
        answer = py.client.get(f"{V1}/executions/{execution_id}")
        assert answer.status == 404 and answer.json["error_code"] == "Sandbox.ExecutionNotFound"
    assert py.delete().status == 404


def test_a_deleted_session_ends_its_streams(py):
    running = py.start("print('go', flush=True)\nimport time; time.sleep(60)")
    py.wait_for_output(running, "go")
    with contextlib.closing(Client(py.client.address)) as other:
        stream = events(other, running)
        assert next(stream)["event"] == "start"
        py.delete()
        assert [e["event"] for e in stream][-1] in ("end", "error")


def test_an_id_is_unique(make, client):
    session = make(id="mine_1")
    assert session.id == "mine_1"
    answer = client.post(f"{V1}/sessions", {"id": "mine_1"})
    assert answer.status == 409 and answer.json["error_code"] == "Sandbox.StateConflict"
    session.delete()
    assert make(id="mine_1").created.status == 201


def test_an_agents_idle_session_is_reused(make):
    first = make(agent_id="bob")
    first.run("x = 1")
    again = make(agent_id="bob")
    assert again.created.status == 200 and again.id == first.id
    assert again.run("x")["result"] == 1
    other = make(agent_id="alice")
    assert other.created.status == 201 and other.id != first.id
    running = first.start("print('go', flush=True)\nimport time; time.sleep(60)")
    first.wait_for_output(running, "go")
    assert make(agent_id="bob").id != first.id


def test_an_ephemeral_session_keeps_settings_and_nothing_else(make):
    session = make(mode="ephemeral", env_vars={"A": "1"})
    assert session.run("x = 1; open('f', 'w').write('f')")["status"] == "success"
    r = session.run("import os; print('x' in globals(), os.path.exists('f'), os.environ['A'])")
    assert r["stdout"] == "False False 1\n"
    assert r["session_id"] == session.id
    assert session.info()["mode"] == "ephemeral"


@pytest.mark.phases("system", "user", "subid", "pool")
def test_a_session_without_a_mode_keeps_its_workspace(make):
    """As sessions of the control plane do: what an execution gets and makes stays, nothing of its process does."""
    session = make(mode=None, env_vars={"A": "1"})
    assert session.info()["mode"] == "workspace"
    assert session.client.post(f"{session.path}/files/upload?path=data.csv", {"a": 1}).status == 415  # a form; PUT sends bytes
    assert session.client.request("PUT", f"{session.path}/files/data.csv", b"1,2\n", {"Content-Type": "application/octet-stream"}).status == 201
    first = session.run("import os, subprocess\nx = 1\nprint(open('data.csv').read(), end='')\nopen('made.txt', 'w').write('made')\n"
                        "open('/tmp/t', 'w').write('t')\nsubprocess.Popen(['sleep', '987'])")  # fmt: skip
    assert first["stdout"] == "1,2\n", first
    (made,) = first["artifacts"]
    assert session.client.get(made["download_url"]).body == b"made"
    second = session.run("import os\nprint('x' in globals(), sorted(os.listdir('.')), os.path.exists('/tmp/t'), os.environ['A'])\n"
                         "print([p for p in os.listdir('/proc') if p.isdigit() and b'987' in open(f'/proc/{p}/cmdline', 'rb').read()])")  # fmt: skip
    assert second["stdout"] == "False ['data.csv', 'made.txt'] True 1\n[]\n", second
    assert session.client.get(made["download_url"]).body == b"made"
    # A module that changed is imported anew, as in a new process.
    for value in (1, 22):  # Python tells files of one second apart by their size
        assert session.run(f"open('m.py', 'w').write('v = {value}')\nimport m\nprint(m.v)")["stdout"] == f"{value}\n"
    session.act("terminate")
    # After the end no link is given that cannot work.
    kept = session.client.get(f"{V1}/executions/{first['execution_id']}/result").json
    assert [a["download_url"] for a in kept["artifacts"]] == [None], kept
    assert session.client.get(made["download_url"]).status in (404, 409)


def test_an_ephemeral_session_gives_no_link(make):
    session = make(mode="ephemeral")
    (made,) = session.run("open('made.txt', 'w').write('made')")["artifacts"]
    assert made["path"] == "made.txt" and made["download_url"] is None


@pytest.mark.phases("system", "user")
def test_a_new_session_looks_as_clients_expect(client):
    answer = client.post(f"{V1}/sessions", {})
    assert answer.status == 201
    s = answer.json
    assert s["session_id"].startswith("sess_") and len(s["session_id"]) == 21 and s["id"] == s["session_id"]
    assert s["state"] in ("creating", "ready") and s["mode"] == "workspace" and s["runtime_type"] == "native"
    assert s["resources"] == s["resource_limit"] and set(s["resources"]) == {"cpu", "memory", "disk", "max_processes"}
    assert client.request("DELETE", f"{V1}/sessions/{s['id']}").status == 200


@pytest.mark.phases("system", "user")
def test_resources_are_set_per_session(make):
    session = make(resources={"memory": "64Mi", "max_processes": 20})
    assert session.info()["resources"]["memory"] == "64Mi"
    assert session.info()["resources"]["max_processes"] == 20
    r = session.run("b = bytearray(200 << 20)")
    assert r["status"] == "failed" and (r["limit"] == "memory" or r["error"]["name"] == "MemoryError")
    r = session.run("1")
    assert r["result"] == 1


def test_listing_sessions(make, client):
    ids = [make().id for _ in range(3)]
    make(id="over").act("terminate")
    listed = client.get(f"{V1}/sessions?limit=300").json
    assert listed["limit"] == 200 and listed["items"] == listed["sessions"]
    assert [s["id"] for s in listed["sessions"]][:4] == ["over", *reversed(ids)]
    page = client.get(f"{V1}/sessions?limit=2&offset=1").json
    assert [s["id"] for s in page["sessions"]] == [ids[2], ids[1]]
    assert page["has_more"] is True and page["offset"] == 1
    ended = client.get(f"{V1}/sessions?status=terminated").json
    assert "over" in [s["id"] for s in ended["sessions"]]
    assert not set(ids) & {s["id"] for s in ended["sessions"]}


@pytest.mark.phases("system", "user")
def test_usage_is_counted(py):
    py.run("sum(range(10 ** 6))")
    stats = py.client.get(f"{py.path}/stats").json
    assert stats["executions"] == 1 and stats["queued"] == 0 and stats["uptime_seconds"] >= 0
    if host.is_root():
        assert stats["memory_mb"] > 0 and stats["cpu_time_ms"] > 0


@pytest.mark.phases("system", "user")
@pytest.mark.skipif(not host.is_root(), reason="an agent of another id cannot be killed by an ordinary user")
def test_a_lost_box_fails_its_session(daemon, py):
    running = py.start("print('go', flush=True)\nimport time; time.sleep(60)")
    waiting = py.start("1")
    py.wait_for_output(running, "go")
    agents = [pid for pid in daemon.box_pids() if host.comm(pid).startswith("millibox-agent")] or daemon.box_pids()[:1]
    os.kill(agents[0], signal.SIGKILL)
    py.wait_for("failed")
    assert py.result(running)["status"] == "crashed"
    assert py.result(waiting)["status"] == "crashed"
    assert py.client.post(f"{py.path}/execute", {"code": "1"}).status == 409
    assert py.act("terminate")["status"] == "failed"


@pytest.mark.phases("system", "user")
def test_stopping_the_daemon_ends_its_sessions(make_daemon):
    d = make_daemon(config="admission: {drain_timeout: 600s}\n").start()
    with d.client() as c:
        session = Session(c, mode="persistent")
        running = session.start("print('go', flush=True)\nimport time; time.sleep(600)", timeout=600)
        session.wait_for_output(running, "go")
        answers = []

        def follow():
            with d.client() as other:
                answers.extend(events(other, running))

        thread = threading.Thread(target=follow)
        thread.start()
        host.wait_until(lambda: len(answers) >= 2, 10, "events")
        assert d.stop() == 0, d.log()  # long before the program would end
        thread.join(host.HANG_S)
    assert answers[-1]["event"] == "end" and answers[-1]["result"]["status"] == "cancelled"


def test_the_number_of_sessions_is_limited(make_daemon):
    d = make_daemon(env={"MILLIBOX_SESSIONS_MAX": "2"}).start()
    with d.client() as c:
        for _ in range(2):
            assert c.post(f"{V1}/sessions", {}).status == 201
        answer = c.post(f"{V1}/sessions", {})
        # No session ends by itself soon: a repetition would be refused, too.
        assert answer.status == 429 and answer.headers["Should-Retry"] == "false" and "Retry-After" not in answer.headers


# Bad input


@pytest.mark.parametrize(
    "body, field",
    [
        ({"id": "a b"}, "id"),
        ({"id": "x" * 65}, "id"),
        ({"id": 1}, "id"),
        ({"mode": "other"}, "mode"),
        ({"language": "cobol"}, "language"),
        ({"language": 1}, "language"),
        ({"agent_id": ""}, "agent_id"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": "60"}, "timeout"),
        ({"lifetime": 10**9}, "lifetime"),
        ({"env_vars": {"LD_PRELOAD": "x"}}, None),
        ({"env_vars": {"A": []}}, "env_vars.A"),
        ({"resources": {"memory": "lots"}}, "resources.memory"),
    ],
)
def test_invalid_sessions_are_refused_and_not_created(client, body, field):
    before = client.get(f"{V1}/sessions").json["total"]
    answer = client.post(f"{V1}/sessions", body)
    assert answer.status in (400, 403, 422), answer
    if field:
        assert answer.json["field"] == field, answer
    assert client.get(f"{V1}/sessions").json["total"] == before


@pytest.mark.parametrize(
    "body, field",
    [
        ({}, "code"),
        ({"code": ""}, "code"),
        ({"code": 1}, "code"),
        ({"code": "1", "language": "cobol"}, "language"),
        ({"code": "1", "timeout": 0.5}, "timeout"),
        ({"code": "1", "timeout": 3601}, "timeout"),
        ({"code": "1", "wait": "yes"}, "wait"),
        ({"code": "1", "stdin_open": 1}, "stdin_open"),
        ({"code": "1", "args": "x"}, "args"),
        ({"code": "1", "files": {"../x": "y"}}, None),
    ],
)
def test_invalid_executions_are_refused_and_not_queued(py, body, field):
    # The later spelling does not use the session's language, and has another status.
    later = f"{V1}/executions/sessions/{py.id}/execute-sync"
    for path, more, status in ((f"{py.path}/execute", {}, 400), (later, {"language": "python"}, 422)):
        answer = py.client.post(path, more | body)
        assert answer.status == status, answer
        if field:
            assert answer.json["field"] == field, answer
    assert py.client.get(f"{py.path}/executions").json["total"] == 0


@pytest.mark.parametrize(
    "query, field",
    [("limit=0", "limit"), ("limit=-1", "limit"), ("limit=1e3", "limit"), ("offset=x", "offset"), ("status=odd", "status")],
)
def test_invalid_queries_are_refused(py, query, field):
    for path in (f"{V1}/sessions", f"{py.path}/executions"):
        answer = py.client.get(f"{path}?{query}")
        assert answer.status == 400 and answer.json["field"] == field


@pytest.mark.parametrize("bad", ["nobody", "a%20b", "..", "x" * 65, "%F0%9F%98%80"])
def test_unknown_ids_are_all_alike(client, bad):
    paths = [("GET", ""), ("DELETE", ""), ("GET", "/stats"), ("GET", "/status"), ("GET", "/result"), ("GET", "/executions")]
    paths += [("POST", f"/{verb}") for verb in ("terminate", "pause", "resume", "interrupt", "keepalive")]
    for method, tail in paths:
        answer = client.request(method, f"{V1}/sessions/{bad}{tail}")
        assert (answer.status, answer.json["error_code"]) == (404, "Sandbox.SessionNotFound"), (method, tail)
        assert answer.json["error_detail"] == "no session has this id"
    answer = client.post(f"{V1}/sessions/{bad}/execute", {"code": "1"})
    assert answer.json["error_code"] == "Sandbox.SessionNotFound"
    for tail in ("", "/status", "/result", "/events"):
        answer = client.get(f"{V1}/executions/{bad}{tail}")
        assert (answer.status, answer.json["error_code"]) == (404, "Sandbox.ExecutionNotFound")
    assert client.post(f"{V1}/executions/{bad}/cancel", {}).status == 404
    assert client.post(f"{V1}/executions/{bad}/stdin", {"data": ""}).status == 404


def test_a_wrong_method_lists_the_allowed_ones(py):
    answer = py.client.request("PUT", py.path)
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD, DELETE"
    answer = py.client.get(f"{py.path}/execute")
    assert answer.status == 405 and answer.headers["Allow"] == "POST"


# The command line


def millibox(daemon, *args, **kw):
    command = [str(BUILD / "millibox"), *args[:2], "--socket", daemon.socket, *args[2:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **kw)


@pytest.fixture
def named(daemon):
    done = millibox(daemon, "session", "create", "--id", "cli")
    assert (done.returncode, done.stdout, done.stderr) == (0, "cli\n", "")
    yield "cli"
    millibox(daemon, "session", "delete", "cli")


def test_the_command_line_uses_sessions(daemon, named):
    assert millibox(daemon, "session", "exec", named, "-c", "x = 5").returncode == 0
    done = millibox(daemon, "session", "exec", named, "-c", "import sys\nprint(x)\nprint('e', file=sys.stderr)\nsys.exit(3)")
    assert (done.returncode, done.stdout, done.stderr) == (3, "5\n", "e\n")
    done = millibox(daemon, "session", "exec", named, "--json", "-c", "x + 1")
    assert json.loads(done.stdout)["result"] == 6
    done = millibox(daemon, "session", "exec", named, "-t", "1", "-c", "while True: pass")
    assert done.returncode == 124 and "time limit" in done.stderr
    done = millibox(daemon, "session", "list", "--status", "ready")
    assert named in done.stdout.split()
    done = millibox(daemon, "session", "show", named)
    assert "persistent" in done.stdout.split() and done.returncode == 0
    assert json.loads(millibox(daemon, "session", "show", named, "--json").stdout)["id"] == named
    assert millibox(daemon, "session", "terminate", named).returncode == 0
    done = millibox(daemon, "session", "exec", named, "-c", "1")
    assert done.returncode == 125 and "terminated" in done.stderr
    assert millibox(daemon, "session", "delete", named).returncode == 0
    done = millibox(daemon, "session", "show", named)
    assert done.returncode == 125 and "no session has this id" in done.stderr


def test_the_command_line_reports_a_lost_runner(daemon, named):
    done = millibox(daemon, "session", "exec", named, "-c", "import os; os._exit(7)")
    assert done.returncode == 7 and "variables are lost" in done.stderr


@needs_freezer
def test_waiting_for_a_paused_session_reports_the_pause(daemon, named):
    assert millibox(daemon, "session", "exec", named, "-c", "x = 1").stderr == ""
    assert millibox(daemon, "session", "pause", named).returncode == 0
    command = [str(BUILD / "millibox"), "session", "exec", "--socket", daemon.socket, named, "-c", "print(x)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        said = p.stderr.readline()
        assert "the session is paused" in said and f"millibox session resume {named}" in said
        assert millibox(daemon, "session", "resume", named).returncode == 0
        assert p.communicate(timeout=host.HANG_S) == ("1\n", "") and p.returncode == 0


@pytest.mark.phases("system", "user")
def test_ctrl_c_ends_the_execution_and_not_the_session(daemon, named):
    command = [str(BUILD / "millibox"), "session", "exec", "--socket", daemon.socket, named]
    with subprocess.Popen([*command, "-c", "print('go', flush=True)\nimport time; time.sleep(60)"], stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"go\n"
        p.send_signal(signal.SIGINT)
        assert p.wait(host.HANG_S) == 130
    done = millibox(daemon, "session", "exec", named, "-c", "print('alive')")
    assert done.stdout == "alive\n"


@pytest.mark.parametrize("verb", ["show", "interrupt", "pause", "resume", "terminate", "delete"])
def test_the_command_line_requires_one_id(daemon, verb):
    assert millibox(daemon, "session", verb).returncode == 2
    assert millibox(daemon, "session", verb, "a", "b").returncode == 2
    assert millibox(daemon, "session", verb, "../x").returncode == 2


def test_sessions_need_a_running_daemon(tmp_path):
    env = {"PATH": "/usr/bin:/bin", "HOME": "/", "XDG_RUNTIME_DIR": str(tmp_path)}
    env["MILLIBOX_SOCKET"] = str(tmp_path / "none")
    done = subprocess.run([str(BUILD / "millibox"), "session", "list"], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 125 and done.stderr
