# SPDX-License-Identifier: Apache-2.0
"""A zygote's child may arrive late, in a box where untrusted code already runs. It still has privileges and exits,
because it is not needed any more; until then nothing in the box may touch it."""

import contextlib
import json
import os
import signal
import threading

import pytest

from support import host
from support.daemon import Daemon
from support.sessions import Session

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")

ON = {"MILLIBOX_ZYGOTES_ENABLED": "true", "MILLIBOX_POOLS_ENABLED": "false"}

#: Tries everything on every pid that is not its own; tells what succeeded, what was refused, and who was met.
PROBE = r"""
import ctypes, json, os, resource, signal, time
libc = ctypes.CDLL(None, use_errno=True)
own, met, won = {os.getpid(), os.getppid(), 1}, set(), set()
def call(number, *args):
    if libc.syscall(number, *args) < 0:
        raise OSError(ctypes.get_errno(), "")
def tries(p):
    yield "kill", lambda: os.kill(p, signal.SIGSTOP)
    yield "interrupt", lambda: os.kill(p, signal.SIGINT)
    yield "prlimit", lambda: resource.prlimit(p, resource.RLIMIT_NOFILE, (3, 3))
    yield "affinity", lambda: os.sched_setaffinity(p, {0})
    yield "attach", lambda: call(101, 16, p, 0, 0)
    yield "seize", lambda: call(101, 0x4206, p, 0, 0)
    yield "read", lambda: call(310, p, 0, 0, 0, 0, 0)
    for name in "environ", "maps", "mem", "status":
        yield name, lambda: open(f"/proc/{p}/{name}", "rb").read(1)
    for name in "root", "fd", "task":
        yield name, lambda: os.listdir(f"/proc/{p}/{name}/")
    for name in "cwd", "exe", "ns/mnt", "ns/user":
        yield name, lambda: os.readlink(f"/proc/{p}/{name}")
end = time.monotonic() + 20
while time.monotonic() < end:
    for p in range(2, 64):
        if p in own:
            continue
        try:
            os.kill(p, 0)
        except ProcessLookupError:
            continue
        except PermissionError:
            pass
        if not met:
            end = time.monotonic() + 1  # longer than it lives
        met.add(p)
        for name, attempt in tries(p):
            try:
                attempt()
                won.add(name)
            except OSError:
                pass
print(json.dumps([sorted(met), sorted(won)]))
"""


SANDBOXES = "/api/v1/sandboxes"
START_TICKS = 20


def ticks(pid):
    """CPU time."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[11]) + int(fields[12])


def start_of_runner(client):
    """How the runner of a new session was started."""
    session = Session(client, mode="persistent")
    start = session.run("1")["isolation"]["start"]
    client.request("DELETE", session.path)
    return start


@pytest.fixture
def daemon():
    d = Daemon(env=ON).start()
    with d.client() as client:
        host.wait_until(lambda: start_of_runner(client) == "zygote", 30, "a runner of the zygote")
    yield d
    assert d.stop() == 0, d.log()
    d.remove()


def late_arrival(daemon, client):
    """The probe's report about a child that is forked while the probe runs."""
    # The engine replaces a zygote that an earlier attempt stopped for too long.
    host.wait_until(lambda: start_of_runner(client) == "zygote", 30, "a runner of the zygote")
    zygotes, before = daemon.zygote_pids(), set(daemon.box_pids())
    for pid in zygotes:
        os.kill(pid, signal.SIGSTOP)
    path = f"{SANDBOXES}/{client.post(SANDBOXES, {'image': 'python-basic'}).json['id']}"

    def looks_around():
        """Whether the probe has used more CPU time than its start takes. Reads no file of the box: a file worker runs as the
        payload's user, and the probe would find it too."""
        probes = [p for p in set(daemon.box_pids()) - before if host.comm(p) == "python3"]
        return any(ticks(p) >= START_TICKS for p in probes)

    def let_go():
        try:
            host.wait_until(looks_around, 4, "the probe")
        finally:
            for pid in zygotes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    helper = threading.Thread(target=let_go)
    helper.start()
    result = client.post(f"{path}/exec", {"command": f"python3 - <<'END'\n{PROBE}\nEND"}).json
    helper.join()
    client.request("DELETE", path)
    return json.loads(result["stdout"])


def test_a_late_child_is_out_of_reach(daemon):
    with daemon.client() as client:
        for _ in range(5):
            met, won = late_arrival(daemon, client)
            # With one id for all in the box, signals and limits reach it, but not its memory, descriptors and capabilities.
            harmless = set() if host.is_root() else {"kill", "interrupt", "prlimit", "affinity"}
            assert not set(won) - harmless
            if met:
                return
    pytest.fail("none of five children was ever met: the probe tells nothing")
