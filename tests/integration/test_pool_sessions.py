# SPDX-License-Identifier: Apache-2.0
"""Persistent sessions in pooled boxes, with their runner."""

import concurrent.futures
import contextlib
import os
import signal

import pytest

from support import host
from support.client import Client
from support.daemon import Daemon
from support.sessions import V1, Session

pytestmark = pytest.mark.phases("system", "user")

ON = {"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_POOLS_FLOOR": "0", "MILLIBOX_POOLS_SESSION_FLOOR": "1"}
COLD = {"MILLIBOX_POOLS_ENABLED": "false", "MILLIBOX_ZYGOTES_ENABLED": "false"}
MODES = {"executed": {"MILLIBOX_ZYGOTES_ENABLED": "false"}, "zygote": {"MILLIBOX_ZYGOTES_ENABLED": "true"}}


@pytest.fixture
def own():
    """Daemons of one test; all that waits in them ends with them."""
    made = []

    def start(config=None, **env):
        made.append(Daemon(env={**ON, **env}, config=config).start())
        return made[-1]

    yield start
    for d in made:
        if d.process.poll() is None:
            d.stop()
        d.remove()


@pytest.fixture(params=MODES)
def warm(request, own):
    return own(**MODES[request.param])


def of_sessions(client, **fields):
    """The pool of the usual shape, or of these fields."""
    pools = client.get(f"{V1}/pools").json["pools"]
    return next((p for p in pools if p["mode"] == "persistent" and all(p[name] == fields[name] for name in fields)), None)


def wait_for_member(client, count=1, **fields):
    def is_there():
        pool = of_sessions(client, **fields)
        return pool and pool["ready"] >= count

    host.wait_until(is_there, 20, lambda: f"a box in the pool: {client.get(f'{V1}/pools').json}")


def agents_of(daemon):
    return [pid for pid in host.children(daemon.engine_pid) if host.cmdline(pid)[:1] == ["millibox-agent"]]


def agents_at_rest(daemon, count):
    """The agents, once there are @count: where boxes take long to make, demand enlarges the pool for a while."""
    def found():
        agents = agents_of(daemon)
        return agents if len(agents) == count else None

    return host.wait_until(found, 10, lambda: f"{count} boxes: {agents_of(daemon)}")


def waiting(daemon):
    """Runners of boxes."""
    return [pid for agent in agents_of(daemon) for pid in host.children(agent)]


def create(client, **fields):
    return Session(client, mode="persistent", **fields)


def test_a_session_gets_a_pooled_box(warm):
    with warm.client() as client:
        wait_for_member(client)
        before = set(waiting(warm))
        session = create(client)
        assert session.info()["state"] == "ready"
        assert session.run("x = 42")["status"] == "success"
        assert session.run("x")["result"] == 42
        assert before & set(waiting(warm)), "its runner is the one that waited"
        pool = of_sessions(client)
        assert (pool["hits"], pool["misses"]) == (1, 0)
        wait_for_member(client)
        assert session.delete().status == 200


SEEN = """
import os, sys
{"modules": sorted(sys.modules), "argv": sys.argv, "path": sys.path, "flags": list(sys.flags), "environ": dict(os.environ),
 "fds": [fd for fd in range(64) if os.path.exists(f"/proc/self/fd/{fd}")], "names": sorted(globals()), "cwd": os.getcwd(),
 "files": os.listdir(), "ids": (os.getuid(), os.getgid(), os.getgroups()), "parent": os.getppid(), "tmp": os.listdir("/tmp"),
 "status": [l for l in open("/proc/self/status") if l.split(":")[0] in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
            "NoNewPrivs", "Seccomp", "Seccomp_filters", "NSpid")]}
"""


def test_programs_cannot_detect_a_pooled_box(warm, own):
    with warm.client() as ahead, own(**COLD).client() as new:
        wait_for_member(ahead)
        first, second = (create(client) for client in (ahead, new))
        assert of_sessions(ahead)["hits"] == 1
        results = [session.run(SEEN) for session in (first, second)]
        assert results[0]["result"] == results[1]["result"]
        layers = [set(result["isolation"]["layers"]) for result in results]
        assert layers[0] == layers[1]
        for code in ("import sys; sys.exit(3)", "1 / 0", "def f(:", "input()", "import os; os.kill(os.getpid(), 15)", "1 + 1"):
            one, other = (session.run(code) for session in (first, second))
            for name in ("status", "exit_code", "signal", "stdout", "stderr", "result", "error", "runner_reset"):
                assert one.get(name) == other.get(name), (code, name)


def test_a_session_has_its_own_variables_and_no_others(warm):
    with warm.client() as client:
        wait_for_member(client)
        for i in range(4):
            session = create(client, env_vars={"SECRET": f"value {i}"})
            assert session.run("import os; os.environ['SECRET']")["result"] == f"value {i}"
        other = create(client)
        assert other.run("import os; os.environ.get('SECRET')")["result"] is None
        live = host.descendants(warm.engine_pid)
        assert live
        assert of_sessions(client, language="python")["hits"] == 1, "only who asked for nothing special has had one with a runner"


def test_a_template_gets_a_pool_of_its_own(warm):
    with warm.client() as client:
        answer = client.post(f"{V1}/templates", {"id": "mine", "name": "mine", "image": "host", "preload": ["colorsys"]})
        assert answer.status == 201, answer
        look = "import sys; 'colorsys' in sys.modules"
        made = [create(client, template_id="mine") for _ in range(2)]
        assert all(session.run(look)["result"] is True for session in made)
        host.wait_until(lambda: [p for p in client.get(f"{V1}/pools").json["pools"] if p["mode"] == "persistent" and p["floor"] == 0
                                 and p["ready"]], 20, "one of its own")
        made.append(create(client, template_id="mine"))
        assert made[-1].run(look)["result"] is True
        assert sum(p["hits"] for p in client.get(f"{V1}/pools").json["pools"]) == 1
        assert create(client).run(look)["result"] is False, "others have it not"
        assert all(session.delete().status == 200 for session in made)
        assert client.request("DELETE", f"{V1}/templates/mine").status in (200, 204)
        host.wait_until(lambda: [p["floor"] for p in client.get(f"{V1}/pools").json["pools"] if p["mode"] == "persistent"] == [1], 10,
                        "its pool went with it")


def test_a_taken_box_is_not_given_to_another(warm):
    with warm.client() as client:
        wait_for_member(client)
        first = create(client)
        first.run("open('mine', 'w').write('x'); open('/tmp/mine', 'w').write('x'); import os; os.environ['A'] = 'x'")
        assert first.delete().status == 200
        for _ in range(3):
            wait_for_member(client)
            found = create(client).run("import os; os.listdir(), os.listdir('/tmp'), 'A' in os.environ")
            assert found["result"] == [[], [], False]


def test_a_session_from_a_pool_outlives_a_killed_daemon_and_the_pool_does_not(own):
    d = own(config="sessions:\n  survive: 30s\n")
    client = Client(d.socket)
    wait_for_member(client)
    session = create(client)
    assert session.run("x = 'kept'")["status"] == "success"
    wait_for_member(client)  # without one, the box of an unused session is made by its first run
    fresh = create(client)
    wait_for_member(client)
    before = set(agents_at_rest(d, 3))
    d.kill()
    d.start()
    session.client = fresh.client = client = Client(d.socket)
    assert of_sessions(client)["hits"] == 0
    assert session.run("x")["result"] == "kept"
    assert fresh.run("6 * 7")["result"] == 42
    host.wait_until(lambda: len(before & set(agents_of(d))) == 2, 10, "those that waited are gone, and no other")
    wait_for_member(client)
    for s in (session, fresh):
        assert s.delete().status == 200


def test_an_engine_does_not_stay_for_pooled_boxes(own):
    """Pooled boxes belong to no session: without a session the engine ends with its daemon."""
    d = own(config="sessions:\n  survive: 600s\n")
    wait_for_member(Client(d.socket))
    engine = d.engine_pid
    d.kill()
    host.wait_until(lambda: not host.is_alive(engine), 20, "the engine has ended")
    d.start()
    client = Client(d.socket)
    wait_for_member(client)
    session = create(client)  # it is kept from here on, though unused
    wait_for_member(client)
    engine, before = d.engine_pid, agents_at_rest(d, 2)
    d.kill()
    host.wait_until(lambda: sum(host.is_alive(pid) for pid in before) == 1, 20, "one of them is left")
    assert host.is_alive(engine)
    d.start()
    session.client = Client(d.socket)
    assert session.run("6 * 7")["result"] == 42
    assert session.delete().status == 200


def test_a_daemon_that_leaves_its_sessions_leaves_no_pool(own):
    d = own(config="sessions:\n  survive: 30s\n  keep_on_stop: true\n")
    client = Client(d.socket)
    wait_for_member(client)
    session = create(client)
    assert session.run("x = 'kept'")["status"] == "success"
    wait_for_member(client)
    agents_at_rest(d, 2)
    assert d.stop() == 0
    host.wait_until(lambda: len(agents_of(d)) == 1, 10, "one box is left")
    d.start()
    session.client = Client(d.socket)
    assert session.run("x")["result"] == "kept"
    assert session.delete().status == 200


@pytest.mark.skipif(not host.is_root(), reason="kills processes of other ids")
@pytest.mark.parametrize("whom", ["runner", "agent"])
def test_a_dead_member_is_not_used(warm, whom):
    """Killed in the moment in which a session is created, or just before its first run."""
    with warm.client() as client:
        for early in (True, False) * 3:
            wait_for_member(client)
            session = None if early else create(client)
            victims = waiting(warm)
            if whom == "agent":
                victims = [stat[0] for pid in victims if (stat := host.proc_stat(pid))]
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            session = session or create(client)
            result = session.run("x = 6 * 7; x")
            assert (result["status"], result["result"]) == ("success", 42)
            assert session.run("x")["result"] == 42
            assert session.delete().status == 200


@pytest.mark.skipif(not host.is_root(), reason="kills processes of other ids")
def test_a_used_box_is_not_replaced(own):
    """The negative of the above: files and variables would be lost silently."""
    d = own()
    with d.client() as client:
        for use in (lambda s: s.run("x = 1"), lambda s: client.request("PUT", f"{s.path}/files/a.txt", body=b"x")):
            wait_for_member(client)
            session = create(client)
            use(session)
            wait_for_member(client)
            for pid in agents_of(d):  # its own, whichever of several that waited it was, and the others
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            session.wait_for("failed")


def test_many_at_once(own):
    d = own(MILLIBOX_POOLS_SESSION_FLOOR="4")
    with d.client() as client:
        wait_for_member(client, 4)

    def use(i):
        with d.client() as own_client:
            session = create(own_client)
            session.run(f"x = {i}")
            assert session.run("x")["result"] == i
            assert session.delete().status == 200

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(24)))
    with d.client() as client:
        pool = of_sessions(client)
        assert pool["hits"] >= 4 and pool["hits"] + pool["misses"] == 24


# A thread that an earlier run left: once that run is answered, it keeps the interpreter to itself, peeks at the next run
# without reading it, and ends.
ROGUE = """
import ctypes, os, sys, threading, time
libc = ctypes.PyDLL(None)
def rogue():
    while not os.path.exists('/workspace/answered'):
        time.sleep(0.01)
    sys.setswitchinterval(1000)
    libc.open(b'/workspace/held', 0o101, 0o600)
    seen, until = ctypes.create_string_buffer(1), time.time() + 30
    while libc.recv(3, seen, 1, 2 | 0x40) <= 0 and time.time() < until:
        pass
    libc.write(libc.open(b'/workspace/seen', 0o2101, 0o600), b'x', 1)
    libc._exit(1)
threading.Thread(target=rogue, daemon=True).start()
"""


def test_code_with_visible_effects_is_not_run_again(warm):
    session = Session(Client(warm.socket), mode="persistent")
    session.run(ROGUE)
    assert session.client.request("PUT", f"{session.path}/files/answered", body=b"x").status in (200, 201, 204)
    host.wait_until(lambda: session.client.get(f"{session.path}/files/held").status == 200, 20, "it has the interpreter")
    done = session.run("open('/workspace/seen', 'a').write('y')")
    assert done["status"] != "success" and done["session_reset"] is True
    assert session.run("open('/workspace/seen').read()")["result"] == "x"
    assert session.delete().status == 200
