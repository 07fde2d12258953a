# SPDX-License-Identifier: Apache-2.0
"""The same request has the same result on every engine. Each promise is a test that runs on all of them; what an engine says it
cannot do must be refused before anything starts, and docs/engines.md must say so."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import threading

import pytest

from support import host
from support.client import Client
from support.daemon import ROOT, Daemon
from support.egress import Network, get
from support.ports import Port, serve
from support.registry import Registry, daemon_of, sdist
from support.sessions import V1, Session, text_of

pytestmark = pytest.mark.phases("system")

#: Engine -> the program that it needs; None: nothing.
ENGINES = {"native": None, "bwrap": "bwrap", "runc": "runc", "crun": "crun", "gvisor": "runsc"}
GRADES = {"gvisor": "gvisor"}
CONFIG = "engines:\n" + "".join(f"  {name}:\n" for name in ENGINES) + "sessions: {survive: 60s}\n"
#: Rows of "What differs" in docs/engines.md, and the feature of GET /api/v1/runtimes that each is about.
ROWS = {
    "images, packages": "packages",
    "network allowlist (egress)": "allowlist",
    "tools of MCP servers (gateway)": "mcp",
    "pause and resume": "pause",
    "sessions that outlive the daemon": "survival",
}
#: Processes of the runtime that count, beside the program's own: docs/engines.md says how many. gVisor's threads do, too.
MORE_PROCESSES = {"bwrap": 2, "runc": 1, "crun": 1, "gvisor": 256}


def there(name):
    program = ENGINES[name]
    return program is None or shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is not None


def of(name):
    return pytest.param(name, marks=pytest.mark.skipif(not there(name), reason=f"{ENGINES[name]} is not installed"))


@pytest.fixture(scope="module")
def daemon():
    """One daemon with all engines."""
    made = Daemon(config=CONFIG).start()
    yield made
    code = made.stop()
    log = made.log()
    made.remove()
    assert code == 0, log


@pytest.fixture
def client(daemon):
    with daemon.client() as c:
        yield c


@pytest.fixture(params=[of(name) for name in ENGINES])
def engine(request):
    return request.param


@pytest.fixture
def execute(client, engine):
    def run(code, language="python", **fields):
        return client.execute(language, code, engine=engine, **fields)

    return run


@pytest.fixture
def session(client, engine):
    """Python, persistent."""
    made = Session(client, mode="persistent", language="python", engine=engine)
    yield made
    assert made.delete().status in (200, 204, 404)


def runtime(client, engine):
    return {item["id"]: item for item in client.get(f"{V1}/runtimes").json["items"]}[engine]


def can(client, engine, feature):
    return feature in runtime(client, engine)["features"]


def refused(client, engine, feature, **fields):
    """A request for what the engine lacks names the engine, and starts nothing."""
    answer = client.post(f"{V1}/sessions", {"mode": "persistent", "engine": engine, **fields})
    assert 400 <= answer.status < 600 and answer.status != 500, (feature, answer)
    assert engine in answer.json["error_detail"], (feature, answer)


# Programs.


def test_a_result_names_engine_and_grade(client, execute, engine):
    isolation = execute("print(42)")["isolation"]
    assert isolation["engine"] == engine and isolation["grade"] == GRADES.get(engine, "namespace")
    item = runtime(client, engine)
    assert item["grade"] == isolation["grade"] and item["breaker"]["state"] == "closed" and item["release"]


def test_output_status_input_and_arguments(execute):
    done = execute("import sys; print(sys.stdin.read(), sys.argv[1:]); print('e', file=sys.stderr); sys.exit(7)",
                   stdin="in", args=["a", "b c"])
    assert (done["stdout"], done["stderr"], done["exit_code"], done["status"]) == ("in ['a', 'b c']\n", "e\n", 7, "failed")


def test_a_signal_is_named(execute):
    done = execute("kill -SEGV $$", "shell")
    assert (done["signal"], done["status"]) == (signal.SIGSEGV, "failed")


def test_files_of_a_request_and_files_that_it_made(execute):
    done = execute("import os\nopen('made.txt', 'w').write(open('given.txt').read() * 2)\nprint(sorted(os.listdir()))",
                   files={"given.txt": "ab"})
    assert "given.txt" in done["stdout"], done
    assert [file["path"] for file in done["artifacts"]] == ["made.txt"], done


@pytest.mark.parametrize("language, code, said", [
    ("shell", "echo $((6 * 7))", "42\n"),
    ("javascript", "console.log(6 * 7)", "42\n"),
    ("c", '#include <stdio.h>\nint main(void) { printf("%d\\n", 6 * 7); }', "42\n"),
    ("perl", 'print 6 * 7, "\\n"', "42\n"),
])  # fmt: skip
def test_languages(execute, language, code, said):
    done = execute(code, language)
    assert done["stdout"] == said, done


# Limits: the same cause, exactly.


def test_the_time_limit(execute):
    done = execute("import time; print('begun', flush=True); time.sleep(600)", timeout=8)
    assert (done["status"], done["limit"], done["stdout"]) == ("timeout", "time", "begun\n"), done


def test_the_memory_limit(execute):
    done = execute("x = bytearray(10**6)\nwhile True: x += bytearray(10**7)", resources={"memory": "256Mi"})
    assert (done["status"], done["limit"]) == ("failed", "memory"), done


def test_the_limit_of_processes(execute, engine):
    code = ("import os, time\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: time.sleep(600)\n    n += 1\n"
            "except OSError as e: print(n, e.errno, flush=True)")
    done = execute(code, resources={"max_processes": 32}, timeout=120)
    count, number = done["stdout"].split()
    assert 8 <= int(count) < 32 + MORE_PROCESSES.get(engine, 0) and number == "11", done


def test_the_limit_of_the_disk(execute):
    done = execute("try:\n  with open('big', 'wb') as f:\n    while True: f.write(bytes(1 << 20)); f.flush()\nexcept OSError as e: print(e.errno)",
                   resources={"disk": "16Mi"})
    assert done["stdout"] == "28\n", done


def test_the_limit_of_output(execute):
    done = execute("import sys\nfor _ in range(64): sys.stdout.write('x' * (1 << 16))", timeout=60)
    assert done["stdout_truncated"] and len(done["stdout"]) <= 1 << 20, {k: v for k, v in done.items() if k != "stdout"}


def test_usage_is_counted(client, execute, engine):
    metrics = execute("x = bytearray(b'x' * (64 << 20))\nfor i in range(3000000): pass")["metrics"]
    assert metrics["cpu_time_ms"] > 20, metrics
    if can(client, engine, "usage"):
        assert metrics["memory_peak_mb"] > 60, metrics


def test_events_come_in_order(client, engine):
    stream = list(client.stream("python", "for i in range(50): print(i, flush=True)", engine=engine))
    assert text_of(stream) == "".join(f"{i}\n" for i in range(50))
    assert stream[-1]["event"] == "end"


def test_a_cancelled_program_ends(client, session):
    execution = session.start("import time; print('up', flush=True); time.sleep(600)", background=True)
    session.wait_for_output(execution, "up", 30)
    assert client.post(f"{V1}/executions/{execution}/cancel", {}).status == 200
    assert session.result(execution, 30)["status"] == "cancelled"


# Sessions.


def test_variables_stay(session):
    session.run("x = 41")
    assert session.run("x + 1")["result"] == 42


def test_an_exception_keeps_variables_and_is_told(session):
    session.run("x = 1")
    failed = session.run("1 / 0")
    assert failed["error"]["name"] == "ZeroDivisionError", failed
    assert session.run("x")["result"] == 1


def test_an_interrupted_line_keeps_variables(session):
    session.run("x = 3")
    done = session.run("import time\nprint('in', flush=True)\nwhile True: time.sleep(0.05)", timeout=4)
    assert done["status"] == "timeout", done
    assert session.run("x")["result"] == 3


def test_files_of_a_session(client, session):
    path = f"{session.path}/files"
    data = os.urandom(300_000)
    put = client.request("PUT", f"{path}/folder/a.bin", body=data, headers={"Content-Type": "application/octet-stream"})
    assert put.status in (200, 201), put
    assert session.run("len(open('folder/a.bin', 'rb').read())")["result"] == len(data)
    assert client.get(f"{path}/folder/a.bin").body == data
    listed = client.get(f"{path}?recursive=true").json["files"]
    assert "folder/a.bin" in [file["path"] for file in listed], listed
    assert client.request("DELETE", f"{path}/folder/a.bin").status in (200, 204)
    assert session.run("import os; os.path.exists('folder/a.bin')")["result"] is False


def test_a_background_program_and_its_input(session):
    execution = session.start("print('up', flush=True)\nprint('got', input())", background=True, stdin_open=True)
    session.wait_for_output(execution, "up", 30)
    assert session.run("1 + 1")["result"] == 2
    assert session.client.post(f"{V1}/executions/{execution}/stdin", {"data": "line\n"}).status == 200
    assert session.result(execution, 30)["stdout"] == "up\ngot line\n"


def test_a_terminal(client, engine):
    shell = Session(client, mode="persistent", language="shell", engine=engine)
    execution = shell.start("test -t 0 && test -t 1 && stty size", background=True, tty={"rows": 30, "cols": 90})
    assert "30 90" in shell.result(execution, 30)["stdout"]
    assert shell.delete().status in (200, 204)


def test_a_port(daemon, session):
    serve(session, 8000)
    data = os.urandom(200_000)
    with Port(daemon.socket, session.id, 8000) as port:
        writer = threading.Thread(target=lambda: (port.write(data), port.finish()))
        writer.start()
        assert port.read_all() == data
        writer.join()


def test_a_pause(client, session, engine):
    session.run("x = 5")
    if not can(client, engine, "pause"):
        answer = client.post(f"{session.path}/pause", {})
        assert 400 <= answer.status < 500 or answer.status == 501, answer
        return
    session.act("pause")
    assert session.info()["status"] == "paused"
    session.act("resume")
    assert session.run("x")["result"] == 5


def test_a_session_survives_a_killed_daemon(engine):
    mortal = Daemon(config=CONFIG).start()
    with contextlib.closing(Client(mortal.socket)) as client:
        keeps = can(client, engine, "survival")
        session = Session(client, mode="persistent", language="python", engine=engine)
        assert session.run("x = 42")["status"] == "success"
    host.wait_until(lambda: _is_stored(mortal, session.id), 20, "the session is on disk")
    mortal.kill()
    mortal.start()
    session.client = Client(mortal.socket)
    if keeps:
        host.wait_until(lambda: session.info()["state"] == "ready", 30, lambda: str(session.info()))
        assert session.run("x")["result"] == 42
    else:
        host.wait_until(lambda: session.info()["state"] == "failed", 30, lambda: str(session.info()))
    assert session.delete().status in (200, 204, 404)
    session.client.close()
    assert mortal.stop() == 0, mortal.log()
    mortal.remove()


def _is_stored(daemon, ident):
    with contextlib.closing(sqlite3.connect(daemon.home / "state" / "millibox.db")) as db:
        return db.execute("SELECT count(*) FROM sessions WHERE id = ? AND state = 'ready'", (ident,)).fetchone()[0] == 1


# What a box reaches.


def test_no_network_by_default(execute):
    done = execute("import socket\ns = socket.socket(); s.settimeout(3)\ntry: s.connect(('127.0.0.1', 22)); print('in')\n"
                   "except OSError as e: print('out')\ntry: s2 = socket.socket(); s2.settimeout(3); s2.connect(('10.0.0.1', 80)); print('in')\n"
                   "except OSError as e: print('out')")  # fmt: skip
    assert done["stdout"] == "out\nout\n", done


def test_named_hosts_are_reached_and_no_others(client, engine):
    if not can(client, engine, "allowlist"):
        refused(client, engine, "allowlist", network="allowlist", network_allow=["open.test"])
        return
    with Network({"net": ["127.0.0.1:PORT", "127.0.0.1/32:PORT"]}, more=f"engine: {engine}\n") as net:
        opened = net.talk([get(f"http://127.0.0.1:{net.port}/")])
        assert "reached" in str(opened.answers), opened.answers
        closed = net.talk([get(f"http://127.0.0.2:{net.port}/")])
        assert "reached" not in str(closed.answers), closed.answers


# Who the program is.

STATUS = """
import json, os
s = dict(l.split(':\\t', 1) for l in open('/proc/self/status').read().splitlines() if ':\\t' in l)
print(json.dumps({'uid': os.getresuid(), 'gid': os.getresgid(), 'status': s, 'pid': os.getpid(), 'pids': [p for p in os.listdir('/proc') if p.isdigit()]}))
"""


@pytest.fixture
def me(execute):
    done = execute(STATUS)
    assert done["exit_code"] == 0, done
    return json.loads(done["stdout"])


def test_the_payload_is_nobody(me):
    assert me["uid"] == [1000] * 3 and me["gid"] == [1000] * 3
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert me["status"].get(name, "0").strip("0") == "", (name, me["status"])


def test_it_sees_no_process_but_its_own(me):
    assert len(me["pids"]) <= 3, me["pids"]


def test_new_privileges_are_impossible(me, engine):
    if "NoNewPrivs" in me["status"] or engine != "gvisor":
        assert me["status"]["NoNewPrivs"] == "1"


ATTEMPTS = {
    "write /usr": "open('/usr/x', 'w')",
    "write /etc": "open('/etc/x', 'w')",
    "read shadow": "open('/etc/shadow').read()",
    "setuid": "import os; os.setuid(0)",
    "mount": "import ctypes, os; l = ctypes.CDLL(None, use_errno=True)\nif l.mount(b'none', b'/tmp', b'tmpfs', 0, None): raise OSError(ctypes.get_errno(), '')",
    "chroot": "import os; os.chroot('/tmp')",
    "signal the agent": "import os; os.kill(1, 9)",
    "the agent's memory": "open('/proc/1/mem', 'rb').read(1)",
    "the agent's descriptors": "open('/proc/1/fd/3')",
    "raw socket": "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "device": "import os, stat; os.mknod('/tmp/d', stat.S_IFBLK | 0o600, os.makedev(8, 0)); open('/tmp/d', 'rb')",
    "host name": "import socket; socket.sethostname('x')",
    "kernel setting": "open('/proc/sys/kernel/hostname', 'w').write('x')",
    "sysrq": "open('/proc/sysrq-trigger', 'w').write('h')",
    "cgroup": "import os\nwith open('/sys/fs/cgroup/cgroup.procs', 'w') as f: f.write('0')",
}


@pytest.mark.parametrize("what", ATTEMPTS)
def test_an_attempt_fails(execute, what):
    code = "\n  ".join(ATTEMPTS[what].split("\n"))
    done = execute(f"try:\n  {code}\n  print('DONE')\nexcept (OSError, PermissionError) as e:\n  print('refused', e.errno)")
    assert done["stdout"].startswith("refused"), done


def test_control_the_attempts_work_where_nothing_confines():
    """As root in namespaces of its own, all but a few succeed: the code itself is right."""
    if not host.is_root():
        pytest.skip("needs root")
    succeeded = []
    for what in ("setuid", "mount", "chroot", "raw socket", "host name", "read shadow"):
        code = "try:\n  " + "\n  ".join(ATTEMPTS[what].split("\n")) + "\n  print('DONE')\nexcept OSError as e: print(e)"
        done = subprocess.run(["unshare", "-m", "-u", "-n", "--propagation", "private", "/usr/bin/python3", "-c", code],
                              capture_output=True, text=True, timeout=60)
        if "DONE" in done.stdout:
            succeeded.append(what)
    assert len(succeeded) == 6, succeeded


def test_boxes_share_nothing(client, engine):
    one, two = (Session(client, mode="persistent", language="python", engine=engine) for _ in range(2))
    one.run("open('/tmp/mine', 'w').write('x'); open('mine', 'w').write('x')")
    assert two.run("import os; (os.path.exists('/tmp/mine'), os.path.exists('mine'))")["result"] == [False, False]
    for session in (one, two):
        assert session.delete().status in (200, 204)


# Receipts.


def test_a_receipt_names_engine_and_runtime(client, engine):
    done = client.execute("python", "print(1)", engine=engine, receipt="signed")
    text = json.dumps(done)
    assert done["receipt"], done
    assert runtime(client, engine)["release"] in text, done
    isolation = done["isolation"]
    assert isolation["engine"] == engine


def test_the_documents_say_what_each_engine_can(client, engine):
    """The table of differences is what the engines themselves answer."""
    lines = (ROOT / "docs/engines.md").read_text(encoding="utf-8").splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    head = next(row for row in table if row[0] == "" and "runsc" in row)
    column = head.index({"gvisor": "runsc"}.get(engine, engine))
    for row, feature in ROWS.items():
        said = next(cells for cells in table if cells[0] == row)[column]
        assert said == ("yes" if can(client, engine, feature) else "no"), (engine, row)


@pytest.mark.skipif(not there("gvisor"), reason="runsc is not installed")
def test_packages_are_installed_as_isolated_as_the_box_that_gets_them():
    """A script of a package is the tenant's code. The control: without the wish for gVisor it sees the host's kernel."""
    registry = Registry()
    registry.add(sdist("kernel", "raise SystemExit('kernel: ' + open('/proc/version').read())"))
    try:
        with daemon_of(registry, config="engines: [gvisor]\n") as made, made.client(timeout=300) as client:
            said = [client.post(f"{V1}/execute", {"language": "python", "code": "1", "packages": ["kernel"], **fields}).body.decode()
                    for fields in ({}, {"min_isolation": "gvisor"})]  # fmt: skip
    finally:
        registry.close()
    assert all("kernel: Linux version" in text for text in said), said
    assert [os.uname().release in text for text in said] == [True, False], said
