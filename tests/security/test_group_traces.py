# SPDX-License-Identifier: Apache-2.0
"""LC-4: groups of v1 may serve one box after another; what a box did in them must not be found by the next."""

import pathlib
import threading

import pytest

from support import host
from support.daemon import Daemon

# More than rest at a time, so that those which were given back are among those that follow.
BOXES_AFTER = 40
SMALL = {"memory": "96Mi"}
TREE = pathlib.Path("/sys/fs/cgroup/memory")

pytestmark = pytest.mark.skipif(
    not host.is_root() or not (TREE / "memory.usage_in_bytes").exists(),
    reason="groups rest only in trees of v1 that belong to root",
)

MEMORY = "x = b'x' * 70_000_000"
CPU = "import time\nwhile time.process_time() < 0.6: pass"
PROCESSES = "import os, time\nfor i in range(20):\n  if os.fork() == 0: time.sleep(0.2); os._exit(0)\nfor i in range(20): os.wait()"
KILLED = "x = bytearray(10**6)\nwhile True: x += bytearray(10**7)"
# The most that each of them does in a group shows in what is told of it.
USES = {
    "memory": (MEMORY, lambda r: r["metrics"]["memory_peak_mb"] > 60),
    "cpu": (CPU, lambda r: r["metrics"]["cpu_time_ms"] > 500),
    "processes": (PROCESSES, lambda r: r["metrics"]["processes_peak"] > 20),
    "killed": (KILLED, lambda r: r["limit"] == "memory"),
}


@pytest.mark.parametrize("use", USES)
def test_the_next_box_is_told_nothing_of_it(daemon, use):
    code, shows = USES[use]
    with daemon.client() as client:
        assert shows(client.python(code, resources=SMALL)), "control: what was done is told where it was done"
        for _ in range(BOXES_AFTER):
            result = client.python("print(42)", resources=SMALL)
            assert result["stdout"] == "42\n"
            assert not any(tells(result) for _, tells in USES.values()), result["metrics"]


def resting(daemon):
    """{inode: name} of the memory groups of a daemon in which nobody is."""
    home = TREE / "millibox" / daemon.instance()
    return {d.stat().st_ino: d.name for d in home.iterdir() if d.is_dir() and not (d / "cgroup.procs").read_text()}


def group_of(daemon, code, **fields):
    """Inode of the memory group in which @code runs, which must take its time."""
    thread = threading.Thread(target=lambda: daemon.client().python(code, **fields))
    thread.start()
    host.wait_until(lambda: mine(daemon), 30, "a box with a program")
    found = mine(daemon)
    thread.join()
    daemon.settle()
    return found[0]


def mine(daemon):
    groups = [pathlib.Path(g) for g in daemon.groups() if g.startswith(str(TREE))]
    return [g.stat().st_ino for g in groups if (g / "cgroup.procs").read_text()]


def test_one_in_which_nothing_happened_serves_again(daemon):
    inode = group_of(daemon, "import time; time.sleep(1)", resources=SMALL)
    name = resting(daemon)[inode]
    names = set()
    with daemon.client() as client:
        for _ in range(BOXES_AFTER):
            client.python("0", resources=SMALL)
            names.add(resting(daemon).get(inode, name))
    assert len(names) > 1, "never used again, under no other name"


def test_one_that_counts_a_kill_is_removed(daemon):
    code = "import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', 'x = bytearray(200_000_000)'])\ntime.sleep(1)"
    assert group_of(daemon, code, resources=SMALL) not in resting(daemon)


def test_other_limits_get_another(daemon):
    inode = group_of(daemon, "import time; time.sleep(1)", resources=SMALL)
    name = resting(daemon)[inode]
    with daemon.client() as client:
        for _ in range(5):
            client.python("0", resources={"memory": "128Mi"})
    assert resting(daemon)[inode] == name


def test_they_go_with_the_daemon():
    daemon = Daemon().start()
    with daemon.client() as client:
        for _ in range(5):
            client.python("0")
    assert resting(daemon)
    home = TREE / "millibox" / daemon.instance()
    daemon.stop()
    assert not home.exists()
    daemon.remove()
