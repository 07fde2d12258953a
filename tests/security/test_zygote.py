# SPDX-License-Identifier: Apache-2.0
"""A program forked from a zygote equals an executed one: no more privileges, nothing shared, nothing left."""

import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import re
import signal

import pytest
from support import host
from support.daemon import Daemon
from support.identity import KeyClient, make_key, make_tenant
from support.sessions import Session

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")

ON = {"MILLIBOX_ZYGOTES_ENABLED": "true"}
OFF = {"MILLIBOX_ZYGOTES_ENABLED": "false"}

LOOK = r"""
import json, os, sys
def read(path):
    with open(path) as f:
        return f.read()
def lines(path, *drop):
    return [l for l in read(path).splitlines() if not l.startswith(drop)] if drop else read(path).splitlines()
status = dict(l.split(":\t", 1) for l in lines("/proc/self/status") if ":\t" in l)
def limits():
    return read("/proc/self/limits")
def stat(fd):
    s = os.fstat(fd)
    import stat
    return [stat.S_IFMT(s.st_mode), s.st_uid]
def try_open(path, flags):
    try:
        os.close(os.open(path, flags))
        return "opened"
    except OSError as e:
        return e.errno
fds = {}
for name in os.listdir("/proc/self/fd"):
    try:
        fds[name] = stat(int(name))
    except OSError:
        pass  # the listing's own descriptor
print(json.dumps({
    "status": {k: status[k].strip() for k in ("Umask", "Uid", "Gid", "Groups", "NSpid", "NSsid", "SigBlk", "SigIgn",
               "SigCgt", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters",
               "Threads", "PPid", "Name", "TracerPid") if k in status},
    "ids": [os.getresuid(), os.getresgid(), os.getgroups()],
    "limits": limits(),
    "uid_map": read("/proc/self/uid_map").split()[0::3], "gid_map": read("/proc/self/gid_map").split()[0::3],
    "setgroups": read("/proc/self/setgroups"),
    "mounts": [l.split(" - ")[0].split()[3:6] + l.split(" - ")[1].split()[:1] for l in lines("/proc/self/mountinfo")],
    "cgroup": read("/proc/self/cgroup"),
    "oom": read("/proc/self/oom_score_adj"),
    "fds": fds, "cwd": os.getcwd(), "root": os.readlink("/proc/self/root"), "exe": os.readlink("/proc/self/exe"),
    "host": os.uname().nodename, "parent": os.getppid(), "session": os.getsid(0) == os.getpid(),
    "group": os.getpgrp() == os.getpid(), "nice": os.getpriority(os.PRIO_PROCESS, 0),
    "affinity": sorted(os.sched_getaffinity(0)), "scheduler": os.sched_getscheduler(0),
    "maps": {n: try_open(n, os.O_RDONLY) for n in ("/proc/self/maps", "/proc/self/mem", "/proc/1/maps", "/proc/1/ns/mnt",
             "/dev/kmsg", "/etc/shadow")},
    "writes": {n: try_open(n, os.O_WRONLY | os.O_CREAT) for n in ("/etc/x", "/usr/x", "/opt/x", "/proc/self/oom_score_adj",
               "/run/millibox/x", "/workspace/x", "/tmp/x", "/dev/shm/x", "/x")},
}))
"""

NAMESPACES = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup", "time")


def started(client, seconds=30):
    """Wait until programs are forked from the zygote."""
    def warm():
        return client.python("1")["isolation"]["start"] == "zygote"

    host.wait_until(warm, seconds, "a program of the zygote")


@pytest.fixture(scope="module")
def daemon():
    d = Daemon(env=ON).start()
    with d.client() as c:
        started(c)
        host.wait_until(lambda: fresh_session_start(c) == "zygote", 30, "a runner of the zygote")
    yield d
    assert d.process.poll() is None, f"the daemon died: {d.log()}"
    assert d.stop() == 0, d.log()
    d.remove()


@pytest.fixture(scope="module", autouse=True)
def odd_signals():
    """The daemon's parent may ignore signals that libc reserves; programs inherit that."""
    libc, RT_SIGACTION, IGNORE, DEFAULT = ctypes.CDLL(None), 13, 1, 0

    def put(handler):
        for number in (32, 33):
            assert libc.syscall(RT_SIGACTION, number, (ctypes.c_ulong * 4)(handler, 0, 0, 0), None, 8) == 0

    put(IGNORE)
    yield
    put(DEFAULT)


@pytest.fixture(scope="module")
def cold_daemon():
    d = Daemon(env=OFF).start()
    yield d
    assert d.stop() == 0, d.log()
    d.remove()


def look(client, how, **fields):
    r = first(client, how, LOOK, **fields)
    assert r["exit_code"] == 0, r
    return json.loads(r["stdout"])


def first(client, how, code, **fields):
    """The result of a program started this way; retries while a zygote is being replaced."""
    reasons = []

    def run():
        r = client.python(code, **fields)
        reasons.append(r["isolation"]["start_reason"])
        return r if r["isolation"]["start"] == how else None

    try:
        return host.wait_until(run, 30, f"a program that is started {how}")
    finally:
        print(f"{how}: {reasons}")  # seen when the test fails


def test_both_ways_have_the_same_layers(client, cold_daemon):
    with cold_daemon.client() as cold_client:
        warm, cold = first(client, "zygote", "1"), first(cold_client, "cold", "1")
    for result in (warm, cold):
        del result["isolation"]["start"], result["isolation"]["pooled"]
    assert warm["isolation"] == cold["isolation"]


def without_numbers(seen):
    """What differs between any two boxes, zygote or not."""
    seen["status"].pop("NSpid"), seen["status"].pop("NSsid")
    seen["mounts"] = sorted(re.sub(r"(uid|gid)=\d+", r"\1", " ".join(m)) for m in seen["mounts"])
    return seen


@pytest.mark.smoke
def test_everything_seen_from_inside_is_the_same(client, cold_daemon):
    with cold_daemon.client() as cold_client:
        warm, cold = without_numbers(look(client, "zygote")), without_numbers(look(cold_client, "cold"))
    assert warm == cold
    assert set(warm["status"]["CapBnd"]) == {"0"} and warm["status"]["Seccomp"] == "2"


@pytest.mark.parametrize("script", ["run", "session"])
def test_a_zygote_has_the_environment_that_most_programs_get(cold_daemon, script):
    """In this order, so that children need not set it. The zygote's own variables come last; no child has them."""
    said = pathlib.Path(__file__).parents[2].joinpath(f"runners/python/{script}.zygote").read_text()
    variables = [line for line in said.splitlines() if "=" in line and not line.startswith("#")]
    with cold_daemon.client() as c:
        seen = json.loads(first(c, "cold", "import json, os\nprint(json.dumps([f'{k}={v}' for k, v in os.environ.items()]))")["stdout"])
    assert variables[: len(seen)] == seen
    assert {x.partition("=")[0] for x in variables[len(seen) :]} == {
        "LD_BIND_NOW", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}  # fmt: skip


@pytest.mark.parametrize("variables", [{}, {"LANG": "C"}, {"LC_ALL": "POSIX", "TZ": "Asia/Tokyo", "A": "1"}])
def test_the_environment_is_the_same_both_ways(client, cold_daemon, variables):
    code = "import json, locale, os, time\nprint(json.dumps([list(os.environ.items()), locale.setlocale(locale.LC_CTYPE), time.tzname]))"
    with cold_daemon.client() as c:
        cold = json.loads(first(c, "cold", code, env_vars=variables)["stdout"])
    assert json.loads(first(client, "zygote", code, env_vars=variables)["stdout"]) == cold


def look_in_session(client, how):
    def run():
        session = Session(client, mode="persistent")
        r = session.run(LOOK)
        client.request("DELETE", session.path)
        return r if r["isolation"]["start"] == how else None

    return json.loads(host.wait_until(run, 30, f"a runner that is started {how}")["stdout"])


def test_everything_seen_from_inside_is_the_same_in_sessions(client, cold_daemon):
    with cold_daemon.client() as cold_client:
        warm, cold = look_in_session(client, "zygote"), look_in_session(cold_client, "cold")
    assert without_numbers(warm) == without_numbers(cold)


def fresh_session_start(client):
    session = Session(client, mode="persistent")
    start = session.run("1")["isolation"]["start"]
    client.request("DELETE", session.path)
    return start


def outside(daemon):
    """What the host sees of a running program and its agent."""
    code = "import time\nprint('here', flush=True)\ntime.sleep(600)\n"
    before = set(daemon.box_pids())
    with daemon.client() as other:
        session = Session(other, mode="persistent")
        session.run("1")  # starts the runner
        session.wait_for_output(session.start(code, timeout=600), "here")

        def programs():
            return [p for p in daemon.box_pids() if p not in before and host.comm(p) == "python3"]

        # One that runs is always among them; those of boxes that are being made for a pool are there for a moment.
        [pid] = host.wait_until(lambda: (found := programs()) and len(found) == 1 and found, 20, "one program")
        status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)
        agent = int(status["PPid"])
        facts = {
            "agent": host.comm(agent),
            "same": {n: os.readlink(f"/proc/{pid}/ns/{n}") == os.readlink(f"/proc/{agent}/ns/{n}") for n in NAMESPACES},
            "own": {n: os.readlink(f"/proc/{pid}/ns/{n}") != os.readlink(f"/proc/self/ns/{n}") for n in NAMESPACES},
            "groups": open(f"/proc/{pid}/cgroup").read() == open(f"/proc/{agent}/cgroup").read(),
            "caps": {k: v for k, v in status.items() if k.startswith("Cap")},
            "uids": len(set(status["Uid"].split())), "not_root": "0" not in status["Uid"].split(),
            "seccomp": status["Seccomp"], "nnp": status["NoNewPrivs"], "oom": open(f"/proc/{pid}/oom_score_adj").read(),
            "fds": sorted(os.listdir(f"/proc/{pid}/fd")),
            "map": [line.split()[0::2] for line in open(f"/proc/{pid}/uid_map")],
            "mounts": sorted(re.sub(r"(uid|gid)=\d+", r"\1", " ".join(line.split()[3:6])) for line in open(f"/proc/{pid}/mountinfo")),
        }
        start = session.info()
        other.request("DELETE", session.path)
    return facts, start


@pytest.mark.skipif(not host.is_root(), reason="an ordinary user may not look at undumpable processes")
def test_everything_seen_from_the_host_is_the_same(daemon, cold_daemon):
    warm, cold = outside(daemon)[0], outside(cold_daemon)[0]
    assert warm == cold
    assert "millibox" in warm["agent"] and all(warm["same"].values()) and all(warm["own"].values())
    assert warm["groups"] and warm["not_root"] and warm["seccomp"] == "2"


@pytest.mark.skipif(not host.is_root(), reason="needs to look at root's processes")
def test_control_the_zygote_itself_is_privileged(daemon):
    """Control: on the zygote itself, the checks above find everything that they must not find."""
    pid = host.wait_until(daemon.zygote_pids, 20, "a zygote")[0]
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) != 0 and status["Uid"].split()[0] not in ("0", "1000")
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) == sum(1 << n for n in (6, 7, 8, 18, 21))
    for name in ("user", "pid"):
        assert os.readlink(f"/proc/{pid}/ns/{name}") == os.readlink(f"/proc/{daemon.engine_pid}/ns/{name}"), name
    for name in ("user", "pid", "mnt", "net", "ipc", "uts"):
        assert os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}"), name


SAY_LEAVING = """
import ctypes, os, sys, time
def say(code):
    return ctypes.CDLL(None).syscall(ctypes.c_long(231), ctypes.c_long(code), ctypes.c_long(0x6c6c62646f6e65))
"""


@pytest.mark.skipif(not host.is_root(), reason="where nothing counts what a box uses its process is waited for")
def test_a_program_that_announces_its_exit_is_ended(client):
    """As if it had exited: it may report any code, and the daemon does not wait for what it does afterwards."""
    r = first(client, "zygote", SAY_LEAVING + "print('here', flush=True)\nsay(7)\ntime.sleep(60)\n")
    assert (r["exit_code"], r["stdout"], r["denials"]) == (7, "here\n", []), r
    assert r["metrics"]["duration_ms"] < 30_000


def test_a_child_cannot_announce_the_programs_exit(client):
    r = first(client, "zygote", SAY_LEAVING + "if os.fork() == 0:\n    say(7)\n    os._exit(0)\nos.wait()\nprint('here')\n")
    assert (r["exit_code"], r["stdout"]) == (0, "here\n"), r


UNIQUE = {
    "random": "import random; print(random.random(), random.getrandbits(64))",
    "secrets": "import secrets; print(secrets.token_hex(16))",
    "urandom": "import os; print(os.urandom(16).hex())",
    "uuid1": "import uuid; print(uuid.uuid1(), uuid.getnode() >> 0)",
    "uuid4": "import uuid; print(uuid.uuid4())",
    "openssl": "import ssl; print(ssl.RAND_bytes(16).hex())",
    "tempfile": "import tempfile; print(tempfile.mktemp(), tempfile.mkstemp()[1])",
    "time": "import time; print('name-%d' % time.time_ns())",
    "multiprocessing": "import multiprocessing; print(multiprocessing.current_process().authkey.hex())",
    "numpy": "import numpy; print(numpy.random.random(), numpy.random.randint(1 << 62), numpy.random.default_rng().random())",
    "getpid": "import os, time; print('pid-%d-%d' % (os.getpid(), time.time_ns()))",
    "object": "import random; print(random.SystemRandom().random(), random.Random().random())",
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """A daemon whose zygotes have imported every module with state; otherwise each child would create its own."""
    runners = tmp_path_factory.mktemp("runners")
    runners.chmod(0o755)
    source = pathlib.Path(__file__).resolve().parents[2] / "runners"
    for path in source.rglob("*"):
        if "__pycache__" in path.parts:
            continue
        target = runners / path.relative_to(source)
        target.mkdir() if path.is_dir() else target.write_bytes(path.read_bytes())
    names = [n for n in ("random", "secrets", "uuid", "ssl", "tempfile", "multiprocessing.process", "numpy.random") if has(n)]
    script = runners / "python" / "zygote.py"
    text = script.read_text()
    # As an operator's template would; every generator has been used, so that it has state.
    text = text.replace("    renewed = [", f"    preload({names!r})\n    use_all()\n    renewed = [")
    text += USED
    script.write_text(text)
    d = Daemon(env={**ON, "MILLIBOX_RUNNERS_DIR": str(runners)}).start()
    with d.client() as c:
        started(c)
    yield d
    assert d.stop() == 0, d.log()
    d.remove()


USED = '''

def use_all():
    import random, uuid, tempfile, ssl, multiprocessing.process
    random.random(), uuid.uuid1(), uuid.getnode(), ssl.RAND_bytes(4), tempfile.mktemp()
    multiprocessing.process.current_process().authkey
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.random()
'''


def has(name):
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@pytest.mark.parametrize("what", UNIQUE)
def test_children_of_one_zygote_differ(loaded, what):
    if what == "numpy" and not has("numpy"):
        pytest.skip("no numpy here")
    with loaded.client() as c:
        made = [first(c, "zygote", UNIQUE[what]) for _ in range(3)]
    assert all(r["exit_code"] == 0 for r in made), made
    words = [word for r in made for word in r["stdout"].split()]
    if what == "uuid1":
        assert len({w for w in words if "-" in w}) == 3
    else:
        assert len(set(words)) == len(words), words


def test_control_state_that_is_not_reseeded_is_the_same(loaded):
    """Control: state that zygote.py does not know is shared."""
    with loaded.client() as c:
        made = [first(c, "zygote", "print(hash('millibox'))")["stdout"] for _ in range(3)]
    assert len(set(made)) == 1


@pytest.mark.skipif(not host.is_root(), reason="the zygote is the engine's")
def test_a_killed_zygote_is_replaced_and_nothing_fails_meanwhile(daemon, client):
    old = daemon.zygote_pids()
    for pid in old:
        os.kill(pid, signal.SIGKILL)
        r = client.python("print(42)")
        assert r["stdout"] == "42\n", r
    host.wait_until(lambda: daemon.zygote_pids() and not set(old) & set(daemon.zygote_pids()), 20, "another zygote")
    started(client)


@pytest.mark.skipif(not host.is_root(), reason="the zygote is the engine's")
def test_killed_at_any_moment_every_request_is_answered(daemon):
    """Requests continue while zygotes die: each result is right, either way."""
    import threading

    results, stop = [], threading.Event()

    def ask():
        with daemon.client() as c:
            while not stop.is_set():
                results.append(c.python("print(6 * 7)"))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for i in range(15):
            seen = len(results)
            # Most are killed as soon as they start. The engine waits longer after each that was never ready, so every
            # third may work first.
            if i % 3 == 0:
                host.wait_until(lambda: any(r["isolation"]["start"] == "zygote" for r in results[seen:]), 30, "a zygote at work")
            else:
                host.wait_until(daemon.zygote_pids, 30, "a zygote")
            seen = len(results)
            for pid in daemon.zygote_pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            host.wait_until(lambda: len(results) > seen, 20, "answers go on")
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert len(results) > 15
    assert all(r["stdout"] == "42\n" and r["status"] == "success" for r in results), [
        r for r in results if r["stdout"] != "42\n"][:3]


def test_a_zygote_is_replaced_after_its_last_child(make_daemon):
    d = make_daemon(env={**ON, "MILLIBOX_ZYGOTES_MAX_CHILDREN": "3"}).start()
    with d.client() as c:
        started(c)
        seen = set()
        for _ in range(12):
            started(c)
            r = c.python("print(hash('a'))")
            if r["isolation"]["start"] == "zygote":
                seen.add(r["stdout"])
    assert len(seen) > 1


def hash_of(client):
    """Children of one zygote have one hash seed."""
    def warm():
        r = client.python("print(hash('a'))")
        return r["stdout"] if r["isolation"]["start"] == "zygote" else None

    return host.wait_until(warm, 30, "a program of the zygote")


def test_every_tenant_has_its_own_zygote(make_daemon):
    d = make_daemon(env=ON).start()
    with d.client() as admin:
        keys = [make_key(admin, make_tenant(admin, name)["name"]) for name in ("one", "two")]
    one, two = (KeyClient(d.socket, key) for key in keys)
    with contextlib.closing(one), contextlib.closing(two):
        assert hash_of(one) == hash_of(one)  # control: it is the zygote's
        assert hash_of(one) != hash_of(two)
    host.wait_until(lambda: len(d.zygote_pids()) >= 2, 20, "two zygotes")  # pools have one more, of the tenant "default"


def test_an_old_zygote_is_replaced(make_daemon):
    d = make_daemon(env={**ON, "MILLIBOX_ZYGOTES_MAX_AGE": "1s"}).start()
    with d.client() as c:
        started(c)
        first = host.wait_until(d.zygote_pids, 30, "a zygote, or the next one")[0]
        host.wait_until(lambda: d.zygote_pids() and first not in d.zygote_pids(), 30, "another zygote")
        started(c)


def test_a_zygote_that_grows_is_replaced(make_daemon):
    d = make_daemon(env={**ON, "MILLIBOX_ZYGOTES_MAX_MEMORY": "1Mi"}).start()
    with d.client() as c:
        started(c)
        before = set(d.zygote_pids())

        def another():
            assert c.python("print(42)")["stdout"] == "42\n"
            return d.zygote_pids() and set(d.zygote_pids()) != before

        host.wait_until(another, 60, "another zygote")


COLLAPSE = 25  # MADV_COLLAPSE, Linux 6.1
HUGE = 2 << 20


def has_huge_pages():
    room = mmap.mmap(-1, 2 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        room[:] = b"1" * len(room)
        room.madvise(COLLAPSE)
        return True
    except OSError:
        return False


# Executable mappings without file or name, and writable ones: protections and sizes.
TEXT = r"""
for line in open("/proc/self/maps"):
    place, rights, _, _, inode, *name = line.split()
    start, end = (int(word, 16) for word in place.split("-"))
    if "x" in rights and (inode == "0" and not name or "w" in rights):
        print(rights, end - start)
"""


@pytest.mark.skipif(not has_huge_pages(), reason="this kernel gives no huge pages on demand")
@pytest.mark.skipif(os.sysconf("SC_PAGESIZE") != 4096, reason="pages of another size")
def test_the_interpreter_of_a_zygote_is_in_huge_pages(client, cold_daemon):
    """Code is copied only into huge pages. Control: an executed interpreter maps its file."""
    with cold_daemon.client() as cold_client:
        warm, cold = first(client, "zygote", TEXT), first(cold_client, "cold", TEXT)
    found = [line.split() for line in warm["stdout"].splitlines()]
    assert {rights for rights, _ in found} == {"r-xp"} and sum(int(size) for _, size in found) >= HUGE, warm
    assert cold["stdout"] == "", cold


def test_disabled_zygotes_are_not_reported_as_missing(make_daemon):
    """For roots without zygotes see test_templates.py."""
    d = make_daemon(env=OFF).start()
    with d.client() as c:
        r = c.python("1")
    assert r["isolation"]["start"] == "cold" and r["isolation"]["start_reason"] is None


NAMES = r"""
import sys, json
print(json.dumps({
    "modules": sorted(sys.modules), "path": sys.path, "argv": sys.argv, "orig": sys.orig_argv, "flags": list(sys.flags),
    "executable": sys.executable, "prefix": sys.prefix, "meta": [getattr(m, "__name__", str(type(m))) for m in sys.meta_path],
    "hooks": [str(sys.excepthook.__name__), str(sys.displayhook.__name__)], "dont_write": sys.dont_write_bytecode,
    "names": sorted(globals()), "stdin": [sys.stdin.encoding, sys.stdin.errors, sys.stdin.name, sys.stdin.mode, sys.stdin.line_buffering,
        sys.stdin.newlines, sys.stdin.isatty(), sys.stdin.fileno()],
    "stdout": [sys.stdout.encoding, sys.stdout.errors, sys.stdout.name, sys.stdout.mode, sys.stdout.line_buffering,
        sys.stdout.write_through, sys.stdout.seekable(), sys.stdout.fileno(), type(sys.stdout.buffer).__name__, sys.stdout.buffer.raw.name],
    "stderr": [sys.stderr.encoding, sys.stderr.errors, sys.stderr.name, sys.stderr.mode, sys.stderr.line_buffering,
        sys.stderr.write_through, sys.stderr.seekable(), sys.stderr.fileno(), type(sys.stderr.buffer).__name__],
    "warn": sys.warnoptions, "x": sys._xoptions, "recursion": sys.getrecursionlimit(), "switch": sys.getswitchinterval(),
    "thread": __import__("_thread").get_native_id() == __import__("posix").getpid(),
    "signals": [str(__import__("_signal").getsignal(n)) for n in range(1, 32)],
    "environ": {k.decode(): v.decode() for k, v in __import__("posix").environ.items()},
    "os_environ": dict(__import__("os").environ), "cwd": __import__("os").getcwd(),
}))
"""


@pytest.mark.parametrize("fields", [
    {}, {"args": ["a", "b c", "\u00e4"]}, {"env_vars": {"X": "1", "LANG": "C", "EMPTY": ""}}, {"stdin": "some\nlines\n"},
])
def test_the_interpreter_looks_as_if_it_was_executed(client, cold_daemon, fields):
    with cold_daemon.client() as cold_client:
        warm, cold = first(client, "zygote", NAMES, **fields), first(cold_client, "cold", NAMES, **fields)
    warm, cold = (json.loads(r["stdout"]) for r in (warm, cold))
    for name in cold:
        assert warm[name] == cold[name], name


PROGRAMS = {
    "exit": "import sys\nsys.exit(3)", "exit_text": "import sys\nsys.exit('bye')", "hard": "import os\nos._exit(4)",
    "raise": "def f():\n    raise ValueError('x')\nf()", "syntax": "def", "signal": "import os\nos.kill(os.getpid(), 15)",
    "atexit": "import atexit\natexit.register(print, 'late')\nprint('early')", "input": "print(input() + '!')",
    "thread": "import threading\nthreading.Thread(target=lambda: print('t')).start()",
    "child": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(7)'], capture_output=True, text=True).stdout)",
    "fork": "import os\nif os.fork() == 0:\n    print('c', flush=True); os._exit(0)\nos.wait()\nprint('p')",
    "pool": "import multiprocessing\nif __name__ == '__main__':\n    with multiprocessing.get_context('fork').Pool(2) as p:\n        print(p.map(abs, [-1, -2]))",
    "ctypes": "import ctypes\nprint(ctypes.CDLL(None).abs(-5), ctypes.sizeof(ctypes.c_long))",
    "ssl": "import ssl, hashlib\nprint(hashlib.sha256(b'x').hexdigest(), ssl.OPENSSL_VERSION > '')",
    "sqlite": "import sqlite3\nprint(sqlite3.connect(':memory:').execute('select 1+1').fetchone())",
    "asyncio": "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 5\nprint(asyncio.run(f()))",
    "value": "[1, 2, 3]", "file": "open('f', 'w').write('x')\nprint(__file__, __name__)", "del": "class A:\n    def __del__(self): print('gone')\na = A()",
    "pipe": "import os, signal\nprint(signal.getsignal(signal.SIGPIPE))\nr, w = os.pipe()\nos.close(r)\ntry:\n    os.write(w, b'x')\nexcept BrokenPipeError:\n    print('broken')",
    "denied": "import os\ntry:\n    os.setns(0, 0) if hasattr(os, 'setns') else __import__('ctypes').CDLL(None).unshare(0x10000000)\nexcept OSError as e:\n    print(e.errno)",
    "clock": "import time\nprint(time.monotonic() < 3600, time.process_time() < 5)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_end_the_same_both_ways(client, cold_daemon, name):
    fields = {"stdin": "line\n"} if name == "input" else {}
    with cold_daemon.client() as cold_client:
        warm, cold = first(client, "zygote", PROGRAMS[name], **fields), first(cold_client, "cold", PROGRAMS[name], **fields)
    for field in ("status", "exit_code", "signal", "stdout", "stderr", "result", "results", "error", "limit", "denials"):
        assert warm[field] == cold[field], field
    assert [a["path"] for a in warm["artifacts"]] == [a["path"] for a in cold["artifacts"]]


TIMED = """
import resource, time
def private():
    rows = dict(l.split(":") for l in open("/proc/self/smaps_rollup").read().splitlines()[1:])
    return int(rows["Private_Dirty"].split()[0])
import sys
there = "pandas" in sys.modules
import pandas
print(there, private())
print(len(pandas.DataFrame({"a": [1, 2]})))
"""


@pytest.mark.skipif(not has("pandas"), reason="no pandas here")
def test_modules_of_a_template_are_preloaded_and_shared(make_daemon):
    """Modules that the template preloads and the operator lists are imported once; boxes share their memory."""
    d = make_daemon(env=ON).start()
    with d.client() as client:
        made = client.post("/api/v1/templates", {"id": "frames", "name": "frames", "image": "host", "preload": ["pandas"]})
        assert made.status == 201, made
        r = first(client, "zygote", TIMED, template_id="frames")
        there, private, _ = r["stdout"].split()
        plain = first(client, "zygote", TIMED.replace("import pandas", "").replace("pandas.DataFrame", "dict"))
        assert there == "True" and r["exit_code"] == 0, r
        assert int(private) < 3 * int(plain["stdout"].split()[1]), (private, plain["stdout"])


def test_modules_not_listed_by_the_operator_are_not_preloaded(daemon, client):
    """A tenant's template cannot make the privileged zygote import arbitrary modules."""
    made = client.post("/api/v1/templates", {"id": "odd", "name": "odd", "image": "host", "preload": ["antigravity", "this"]})
    assert made.status == 201, made
    try:
        r = first(client, "zygote", "import sys\nprint('this' in sys.modules, 'antigravity' in sys.modules)", template_id="odd")
        assert r["stdout"] == "False False\n", r
    finally:
        assert client.request("DELETE", "/api/v1/templates/odd").status in (200, 204)


@pytest.mark.skipif(not host.is_root(), reason="the zygote is the engine's")
@pytest.mark.parametrize("who", ["daemon", "engine"])
def test_zygotes_do_not_outlive_their_engine(make_daemon, who):
    d = make_daemon(env=ON).start()
    with d.client() as c:
        started(c)
    zygotes, engine, number = host.wait_until(d.zygote_pids, 20, "a zygote"), d.engine_pid, d.instance()
    os.kill(d.pid if who == "daemon" else engine, signal.SIGKILL)
    host.wait_until(lambda: not any(host.is_alive(p) for p in (*zygotes, engine)), 20, "all of them gone")
    d.process.wait(20 * host.PATIENCE)
    # The next engine removes the groups of a killed one, including those of zygotes.
    left = zygote_groups(number)
    d.start()
    host.wait_until(lambda: not left & zygote_groups(number), 20, lambda: f"gone: {left & zygote_groups(number)}")
    assert d.stop() == 0 and not left & zygote_groups(number)


def zygote_groups(number):
    found = set()
    for top in host.cgroup_tops():
        try:
            # By inode: the next engine's groups have the same names.
            found.update((str(path), path.stat().st_ino) for path in pathlib.Path(top, number).iterdir() if path.name.startswith("zygote-"))
        except OSError:
            pass  # no such tree, or already removed
    return found
