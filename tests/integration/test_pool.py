# SPDX-License-Identifier: Apache-2.0
"""Boxes made ahead: programs cannot detect them, and none is left."""

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from support import host
from support.daemon import BUILD, Daemon

pytestmark = pytest.mark.phases("system", "user")

ON = {"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_POOLS_MAX": "16", "MILLIBOX_POOLS_SESSION_FLOOR": "0"}  # see test_pool_sessions.py
OFF = {"MILLIBOX_POOLS_ENABLED": "false", "MILLIBOX_ZYGOTES_ENABLED": "false"}


def pools(client):
    answer = client.get("/api/v1/pools")
    assert answer.status == 200
    return answer.json


def of_python(client):
    return next((pool for pool in pools(client)["pools"] if pool["language"] == "python"), None)


def wait_for_member(client, count=1):
    def is_there():
        pool = of_python(client)
        return pool and pool["ready"] >= count

    host.wait_until(is_there, 20, "a box in the pool")


def execute(client, **body):
    body = {"language": "python", "receipt": "plain", **body}
    answer = client.post("/api/v1/execute", body)
    assert answer.status == 200, answer.json
    return answer.json


def hit(client, **body):
    """Run in a pooled box; the floor is for the usual shape, others must be requested twice before."""
    for _ in range(6):
        if body.get("language", "python") == "python" and not set(body) - {"language", "code", "stdin", "args", "files"}:
            wait_for_member(client)
        result = execute(client, **body)
        if result["isolation"]["pooled"]:
            return result
        host.wait_until(lambda: pools(client)["making"] == 0, 20, "pools rest")
    raise AssertionError(f"never in a box of a pool: {pools(client)}")


@pytest.fixture(scope="module", autouse=True)
def spares():
    """Pooled boxes are not left over."""
    before, host.POOLED = host.POOLED, True
    yield
    host.POOLED = before


@pytest.fixture(scope="module", params=["executed", "zygote"])
def warm(request, spares):
    d = Daemon(env={**ON, "MILLIBOX_ZYGOTES_ENABLED": "true" if request.param == "zygote" else "false"}).start()
    yield d
    d.stop()
    d.remove()


@pytest.fixture(scope="module")
def cold():
    d = Daemon(env=OFF).start()
    yield d
    d.stop()
    d.remove()


#: Programs, compared by all of the result but times, memory sizes and names.
PROGRAMS = {
    "value": {"code": "x = 20\nx * 2 + 2"},
    "output": {"code": "import sys\nprint('out')\nprint('err', file=sys.stderr)"},
    "nothing": {"code": "pass"},
    "exit code": {"code": "import sys\nsys.exit(7)"},
    "exit with words": {"code": "import sys\nsys.exit('no more')"},
    "exit with None": {"code": "raise SystemExit"},
    "os._exit": {"code": "import os\nprint('unflushed', end='')\nos._exit(5)"},
    "exception": {"code": "def f():\n    return 1 / 0\nprint('before')\nf()"},
    "chained exception": {"code": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e"},
    "syntax error": {"code": "def f(:\n"},
    "signal": {"code": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)"},
    "abort": {"code": "import os\nos.abort()"},
    "stdin": {"code": "import sys\nprint(repr(sys.stdin.read()), sys.stdin)", "stdin": "a\r\nb\n"},
    "input": {"code": "print(input(), input())", "stdin": "one\ntwo\n"},
    "no stdin": {"code": "import os, stat, sys\nprint(repr(sys.stdin.read()), stat.S_ISCHR(os.fstat(0).st_mode))"},
    "argv": {"code": "import sys\nprint(sys.argv, sys.orig_argv)", "args": ["a", "b c", "\u00e4"]},
    "names": {"code": "print(__name__, __file__, sorted(globals()))"},
    "modules": {"code": "import sys\nprint(sorted(sys.modules))\nprint(sys.path)\nprint(sys.flags)"},
    "environment": {"code": "import os\nprint(sorted(os.environ.items()))"},
    "streams": {"code": "import sys\nfor s in sys.stdin, sys.stdout, sys.stderr, sys.__stdout__:\n"
                        "    print(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.isatty(), s.seekable(), s.fileno())"},
    "descriptors": {"code": "import os\nprint(os.open('/dev/null', 0), os.dup(1), os.pipe())"},
    "directory": {"code": "import os\nprint(os.getcwd(), os.listdir())"},
    "ids": {"code": "import os\nprint(os.getuid(), os.getgid(), os.getgroups(), os.umask(0), os.getpgid(0) == os.getpid(),"
                    " os.getsid(0) == os.getpid())"},
    "signals": {"code": "import signal\nprint([(s.name, signal.getsignal(s)) for s in signal.valid_signals()"
                        " if isinstance(s, signal.Signals) and signal.getsignal(s) != signal.SIG_DFL],"
                        " signal.pthread_sigmask(signal.SIG_BLOCK, ()))"},
    "limits": {"code": "import resource\nprint([(n, resource.getrlimit(getattr(resource, n))) for n in dir(resource)"
                       " if n.startswith('RLIMIT_')])"},
    "status": {"code": "print([l for l in open('/proc/self/status') if l.split(':')[0] in"
                       " ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'Seccomp_filters')])"},
    "atexit": {"code": "import atexit\natexit.register(print, 'at exit')\nprint('body')"},
    "finalizers": {"code": "class A:\n    def __del__(self):\n        print('gone')\na = A()\nprint('body')"},
    "finalizer without cycles": {"code": "class A(int):\n    __slots__ = ()\n    def __del__(self):\n        print('gone')\na = A()"},
    "generator": {"code": "def g():\n    try:\n        yield\n    finally:\n        print('closed')\nx = g()\nnext(x)"},
    "weak reference": {"code": "import weakref\nclass A: pass\na = A()\nr = weakref.ref(a, lambda _: print('died'))"},
    "open file": {"code": "f = open('left.txt', 'w')\nf.write('not closed')"},
    "file in a module": {"code": "import builtins\nbuiltins.f = open('left.txt', 'w')\nbuiltins.f.write('not closed')"},
    "files": {"code": "open('a.txt', 'w').write('a')\nprint(open('given.txt').read())",
              "files": {"given.txt": "given"}},
    "threads": {"code": "import threading, time\nt = threading.Thread(target=lambda: (time.sleep(0.05), print('late')))\nt.start()\nprint('body')"},
    "daemon thread": {"code": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint('body')"},
    "raw thread": {"code": "import _thread, time\n_thread.start_new_thread(time.sleep, (60,))\nprint('body')"},
    "fork": {"code": "import os\npid = os.fork()\nif pid: print(os.waitpid(pid, 0)[1])\n"
                     "print('child' if pid == 0 else 'parent')"},
    "child that stays": {"code": "import subprocess\nsubprocess.Popen(['sleep', '60'])\nprint('body')"},
    "replaced stdout": {"code": "import io, sys\nsys.stdout = io.StringIO()\nprint('not shown')"},
    "stdout that wraps": {"code": "import sys\nclass W:\n    def write(self, t): sys.__stdout__.write('<' + t + '>')\n"
                                  "    def flush(self): sys.__stdout__.write('!')\nsys.stdout = W()\nprint('x')"},
    "closed stdout": {"code": "import sys\nsys.stdout.close()"},
    "partial line": {"code": "import sys\nsys.stdout.write('no newline')"},
    "bytes": {"code": "import sys\nsys.stdout.buffer.write(b'\\xff\\x00ok')"},
    "surrogates": {"code": "import os\nprint(os.fsdecode(b'\\xff'))"},
    "excepthook": {"code": "import sys\nsys.excepthook = lambda *a: print('hooked', a[0].__name__)\n1 / 0"},
    "recursion": {"code": "def f(n):\n    return f(n + 1)\nf(0)"},
    "exec": {"code": "import os\nos.execv('/bin/echo', ['echo', 'another'])"},
    "C output": {"code": "import ctypes\nctypes.CDLL(None).printf(b'from C\\n')"},
    "libraries": {"code": "import json, re, random, datetime, collections, hashlib\nprint(json.dumps({'a': re.sub('b', 'c', 'abb')}))"},
    "sqlite": {"code": "import sqlite3\nc = sqlite3.connect('x.db')\nc.execute('pragma journal_mode=wal')\nc.execute('create table t(a)')\nc.commit()\nprint('body')"},
    "gc": {"code": "import gc\nclass A:\n    def __del__(self):\n        print('gone')\na = A()\na.a = a\ndel a\nprint(gc.isenabled(), gc.get_threshold())"},
    "gc freeze": {"code": "import gc\nclass A:\n    def __del__(self):\n        print('gone')\na = A()\ngc.freeze()"},
    "trace": {"code": "import sys\nsys.settrace(lambda *a: None)\nprint('traced')"},
    "time-out": {"code": "import time\nprint('begin')\ntime.sleep(60)", "timeout": 3},  # time enough to start on a busy host
    "output limit": {"code": "print('x' * 100000)", "resources": {"max_output": 1000}},
    "memory limit": {"code": "print('begin')\nx = bytearray(1 << 30)", "resources": {"memory": "64Mi"}},
    "own variable": {"code": "import os\nprint(os.environ['MINE'])", "env_vars": {"MINE": "1"}},
    "refused call": {"code": "import os\ntry:\n    os.chroot('/')\nexcept OSError as e:\n    print(e)"},
    "shell": {"language": "shell", "code": "echo $0 $#; exit 3"},
    "shell stdin": {"language": "shell", "code": "read x; echo got $x", "stdin": "line\n"},
    "shell signal": {"language": "shell", "code": "kill -9 $$"},
}
SAME = ("status", "exit_code", "signal", "stdout", "stderr", "stdout_truncated", "stderr_truncated", "result", "results",
        "error", "limit", "denials")


def seen(result):
    files = [(a["path"], a["size"], a["sha256"]) for a in result["artifacts"]]
    return {**{name: result.get(name) for name in SAME}, "files": sorted(files)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_the_same_in_a_box_of_a_pool(warm, cold, name):
    with warm.client() as ahead, cold.client() as own:
        first = execute(own, **PROGRAMS[name])
        second = hit(ahead, **PROGRAMS[name])
    assert not first["isolation"]["pooled"]
    assert seen(second) == seen(first)
    assert set(second["isolation"]["layers"]) == set(first["isolation"]["layers"])


@pytest.fixture
def own():
    """Daemons of one test."""
    made = []

    def start(config=None, **env):
        made.append(Daemon(env={**ON, "MILLIBOX_ZYGOTES_ENABLED": "false", **env}, config=config).start())
        return made[-1]

    yield start
    for d in made:
        if d.process.poll() is None:
            d.stop()
        d.remove()


def agents_of(daemon):
    return [pid for pid in host.children(daemon.engine_pid) if host.cmdline(pid)[:1] == ["millibox-agent"]]


def waiting(daemon):
    """Processes that wait for their program."""
    return [pid for agent in agents_of(daemon) for pid in host.children(agent)]


def takes(client):
    """Hits and misses, from the metrics."""
    lines = client.get("/metrics").body.decode().splitlines()
    return tuple(sum(float(line.split()[-1]) for line in lines if line.startswith(f'sandbox_pool_takes_total{{result="{result}"'))
                 for result in ("hit", "miss"))


def parents(pids):
    return [stat[0] for pid in pids if (stat := host.proc_stat(pid))]  # none, if others end


ROUNDS = 6
#: Which process is killed, of those that wait for their program.
VICTIMS = {"runner": lambda pids: pids, "agent": parents, "both": lambda pids: [*pids, *parents(pids)]}


@pytest.fixture(params=["executed", "zygote"])
def killed(request, own):
    return own(MILLIBOX_ZYGOTES_ENABLED="true" if request.param == "zygote" else "false", MILLIBOX_POOLS_FLOOR="2")


@pytest.mark.skipif(not host.is_root(), reason="kills processes of other ids")
@pytest.mark.parametrize("look_first", [True, False], ids=["noticed", "at once"])
@pytest.mark.parametrize("whom", VICTIMS)
def test_a_dead_member_is_not_used(killed, whom, look_first):
    """Dead, noticed or not, or dying: requested in the moment in which they are killed."""
    with killed.client() as client:
        for _ in range(1 if look_first else ROUNDS):
            wait_for_member(client, 2)
            before = of_python(client)["failures"]
            victims = VICTIMS[whom](waiting(killed))
            assert len(victims) >= 2
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):  # an agent whose box ended with its runner
                    os.kill(pid, signal.SIGKILL)
            if look_first:
                host.wait_until(lambda: of_python(client)["failures"] >= before + 2, 10, "their death noticed")
            for _ in range(3):
                result = execute(client, code="print('alive')")
                assert (result["status"], result["stdout"]) == ("success", "alive\n")
            host.wait_until(lambda: not any(host.is_alive(pid) for pid in victims), 10, "them dead")
        assert sum(takes(client)) == 3 * (1 if look_first else ROUNDS)
        wait_for_member(client, 2)


@pytest.mark.skipif(not host.is_root(), reason="stops processes of other ids")
@pytest.mark.parametrize("language", ["executed", "zygote"])
def test_unread_code_runs_in_another_box(own, language):
    """The process had received it, but not read it."""
    d = own(MILLIBOX_ZYGOTES_ENABLED="true" if language == "zygote" else "false", MILLIBOX_POOLS_FLOOR="1")
    with d.client() as client, concurrent.futures.ThreadPoolExecutor(1) as threads:
        wait_for_member(client)
        (victim,) = waiting(d)
        os.kill(victim, signal.SIGSTOP)
        answer = threads.submit(lambda: d.client().post("/api/v1/execute", {
            "language": "python", "code": "print(open('given').read(), input())", "stdin": "line\n", "files": {"given": "x"}, "receipt": "plain"}))
        host.wait_until(lambda: of_python(client)["hits"] == 1, 10, "it was handed out")
        wait_for_member(client)  # another; by then it has its request
        os.kill(victim, signal.SIGKILL)
        result = answer.result(20 * host.PATIENCE).json
        assert (result["status"], result["stdout"]) == ("success", "x line\n")
        assert not result["isolation"]["pooled"]
        assert takes(client) == (0, 1)
        pool = of_python(client)
        assert (pool["hits"], pool["misses"], pool["failures"]) == (0, 1, 1)


@pytest.mark.skipif(not host.is_root(), reason="kills processes of other ids")
def test_code_that_has_started_is_never_run_again(own):
    d = own(MILLIBOX_POOLS_FLOOR="1")
    with d.client() as client, concurrent.futures.ThreadPoolExecutor(1) as threads:
        wait_for_member(client)
        (victim,) = waiting(d)
        begun = pathlib.Path(f"/proc/{victim}/root/workspace/begun")
        answer = threads.submit(lambda: d.client().post("/api/v1/execute", {
            "language": "python", "code": "import time\nopen('begun', 'w').close()\ntime.sleep(60)", "receipt": "plain"}))
        host.wait_until(begun.exists, 10, "its first line")
        os.kill(victim, signal.SIGKILL)
        result = answer.result(20 * host.PATIENCE).json
        assert (result["status"], result["signal"]) == ("failed", 9), result
        assert result["isolation"]["pooled"]
        assert takes(client) == (1, 0)


def test_a_member_that_is_too_old_is_replaced(own):
    d = own(MILLIBOX_POOLS_MAX_AGE="1s", MILLIBOX_POOLS_FLOOR="1")
    with d.client() as client:
        wait_for_member(client)
        first = set(waiting(d))
        host.wait_until(lambda: (now := set(waiting(d))) and not now & first, 20, "another one")
        assert of_python(client)["hits"] == 0


def test_a_shape_requested_twice_gets_a_pool_until_idle(own):
    d = own(MILLIBOX_POOLS_IDLE="8s", MILLIBOX_POOLS_FLOOR="1")
    with d.client() as client:
        host.wait_until(lambda: pools(client)["total"] == 2, 10, "the usual ones")
        body = {"code": "print(1)", "resources": {"memory": "100Mi"}}
        assert not execute(client, **body)["isolation"]["pooled"]
        assert pools(client)["total"] == 2, "one request is no demand"
        execute(client, **body)
        host.wait_until(lambda: any(p["limits"]["memory_bytes"] == 100 << 20 and p["ready"] for p in pools(client)["pools"]),
                        10, "a pool of its own")
        assert execute(client, **body)["isolation"]["pooled"]
        host.wait_until(lambda: pools(client)["total"] == 2 and pools(client)["ready"] == 2, 20, "only the floor is left")


@pytest.mark.alone
def test_target_follows_the_demand(own):
    d = own(MILLIBOX_POOLS_FLOOR="1", MILLIBOX_POOLS_IDLE="8s")  # longer than a busy host needs to make a box
    with d.client() as client:
        wait_for_member(client)
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            assert all(threads.map(lambda _: burst_one(d), range(24)))
        host.wait_until(lambda: of_python(client)["ready"] > 1, 10, "more than the floor")
        host.wait_until(lambda: of_python(client)["ready"] == 1, 20, "the floor again")


def burst_one(daemon):
    with daemon.client(timeout=600) as client:  # hundreds of others come first
        answer = client.post("/api/v1/execute", {"language": "python", "code": "print(6 * 7)"})
    if answer.status == 429:
        return "refused"
    return answer.status == 200 and answer.json["stdout"] == "42\n" and answer.json["status"] == "success"


@pytest.mark.alone
def test_burst_on_an_empty_pool(own):
    d = own(MILLIBOX_POOLS_FLOOR="0", MILLIBOX_ADMISSION_MAX_QUEUED="450", MILLIBOX_HTTP_MAX_CONNECTIONS="600",
            MILLIBOX_HTTP_MAX_CONNECTIONS_PER_PEER="600")
    with d.client() as client:
        assert pools(client)["ready"] == 0
    with concurrent.futures.ThreadPoolExecutor(500) as threads:
        answers = list(threads.map(lambda _: burst_one(d), range(500)))
    assert all(answers) and answers.count(True) >= 450
    with d.client() as client:  # a new one: a slow burst outlasts the idle timeout of a connection
        host.wait_until(lambda: pools(client)["making"] == 0, 20, "pools rest")


def test_one_kind_leaves_room_for_another(own):
    d = own(MILLIBOX_POOLS_FLOOR="1", MILLIBOX_POOLS_MAX="4")
    with d.client() as client:
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            assert all(threads.map(lambda _: burst_one(d), range(32)))
        host.wait_until(lambda: all(p["ready"] >= 1 for p in pools(client)["pools"]), 20, "each has its floor")
        assert pools(client)["ready"] <= 4


@pytest.mark.parametrize("victim", ["daemon", "engine"])
def test_nothing_is_left_of_a_full_pool(own, victim):
    d = own(MILLIBOX_POOLS_FLOOR="4")
    with d.client() as client:
        wait_for_member(client, 4)
        members = agents_of(d) + waiting(d)
    engine = d.engine_pid
    assert len(members) >= 8
    os.kill(d.pid if victim == "daemon" else engine, signal.SIGKILL)
    d.process.wait(20 * host.PATIENCE)
    host.wait_until(lambda: not [pid for pid in members if host.is_alive(pid)], 10, "members gone")
    host.wait_until(lambda: not host.is_alive(engine), 10, "engine gone")


def test_stopping_ends_the_members(own):
    d = own(MILLIBOX_POOLS_FLOOR="3")
    with d.client() as client:
        wait_for_member(client, 3)
        members = agents_of(d) + waiting(d)
    assert d.stop() == 0
    assert not [pid for pid in members if host.is_alive(pid)]


def test_a_policy_that_changes_empties_the_pool(own):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=Daemon.prefix_of_homes))
    try:
        change_policy(own, folder)
    finally:
        shutil.rmtree(folder)


def change_policy(own, folder):
    folder.chmod(0o755)  # the daemon runs as its own user
    policy = folder / "default.yaml"
    policy.write_text("name: default\nlimits:\n  memory: {default: 256Mi}\n")
    policy.chmod(0o644)
    d = own(MILLIBOX_POLICY_DIR=str(folder))
    with d.client() as client:
        wait_for_member(client, 2)
        assert of_python(client)["limits"]["memory_bytes"] == 256 << 20
        before = set(waiting(d))
        policy.write_text("name: default\nlimits:\n  memory: {default: 128Mi}\n")
        d.process.send_signal(signal.SIGHUP)
        host.wait_until(lambda: {p["limits"]["memory_bytes"] for p in pools(client)["pools"] if p["ready"]} == {128 << 20},
                        20, "members as they are decided now")
        host.wait_until(lambda: not before & set(waiting(d)), 10, "the others gone")


def test_metrics_and_command_show_the_pools(own):
    d = own()
    with d.client() as client:
        result = hit(client, code="print(1)")
        assert result["metrics"]["start_ms"] >= 0 and result["metrics"]["queue_ms"] >= 0
        assert not execute(client, code="print(1)", resources={"memory": "100Mi"})["isolation"]["pooled"]
        assert takes(client) == (1, 1)
        text = client.get("/metrics").body.decode()
        pool = of_python(client)
        assert pool["made"] >= 1 and pool["fill_ms"] > 0
    assert 'sandbox_pool_takes_total{result="hit"} 1' in text
    filled = next(line for line in text.splitlines() if line.startswith("sandbox_pool_fill_seconds_count "))
    assert int(filled.split()[1]) >= 1
    assert "sandbox_warm_start_duration_count 1" in text
    listed = subprocess.run([str(BUILD / "millibox"), "pool", "list", "--socket", d.socket], capture_output=True, text=True)
    assert listed.returncode == 0 and "python" in listed.stdout, listed


def test_a_trace_lists_every_step_in_order(own):
    d = own()
    with d.client() as client:
        wait_for_member(client)
        result = client.post("/api/v1/execute?trace=1", {"language": "python", "code": "print(1)"}).json
        assert "trace" not in execute(client, code="print(1)")
        assert client.post("/api/v1/execute?trace=maybe", {"language": "python", "code": "1"}).status == 400
    steps = ["received", "parsed", "decided", "admitted", "box", "sent", "started", "first_output", "done", "judged", "rendered"]
    assert list(result["trace"]) == steps and result["trace"]["received"] == 0
    times = [result["trace"][step] for step in steps]
    assert times == sorted(times)
