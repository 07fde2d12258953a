# SPDX-License-Identifier: Apache-2.0
"""LC-4: no cgroup of a box outlives it or serves another box; the only empty groups are the engine's spares."""

import pathlib

import pytest

from support import host
from support.daemon import Daemon
from support.sessions import Session

BOXES_AFTER = 20
SMALL = {"memory": "96Mi"}
ROOT = pathlib.Path("/sys/fs/cgroup")

pytestmark = [pytest.mark.phases("system", "pool", "user", "subid"), pytest.mark.skipif(
    not host.is_root() or not (ROOT / "cpu" / "cpu.shares").exists(),
    reason="reads groups in v1 trees, which only root has",
)]

MEMORY = "x = b'x' * 70_000_000"
CPU = "import time\nwhile time.process_time() < 0.6: pass"
PROCESSES = "import os\nr, w = os.pipe()\nfor i in range(20):\n  if os.fork() == 0: os.close(w); os.read(r, 1); os._exit(0)\nos.close(w)\nfor i in range(20): os.wait()"
KILLED = "x = bytearray(10**6)\nwhile True: x += bytearray(10**7)"
# Each shows in the result of the box that did it.
USES = {
    "memory": (MEMORY, lambda r: r["metrics"]["memory_peak_mb"] > 60),
    "cpu": (CPU, lambda r: r["metrics"]["cpu_time_ms"] > 500),
    "processes": (PROCESSES, lambda r: r["metrics"]["processes_peak"] > 20),
    "killed": (KILLED, lambda r: r["limit"] == "memory"),
}


@pytest.mark.parametrize("use", USES)
def test_the_next_box_learns_nothing(daemon, use):
    code, shows = USES[use]
    with daemon.client() as client:
        assert shows(client.python(code, resources=SMALL)), "control: the use shows in the box's own result"
        for _ in range(BOXES_AFTER):
            result = client.python("print(42)", resources=SMALL)
            assert result["stdout"] == "42\n"
            assert not any(tells(result) for _, tells in USES.values()), result["metrics"]


@pytest.fixture(scope="module")
def still():
    """A daemon without pools: its groups change only when the test makes a box."""
    d = Daemon(env={"MILLIBOX_POOLS_ENABLED": "false"}).start()
    yield d
    assert d.stop() == 0, d.log()
    d.remove()


def groups_in(daemon, tree):
    """{inode: path} of all groups of a daemon, spares included."""
    found = {}
    for group in (ROOT / tree / "millibox" / daemon.instance()).glob("**/box-*"):
        try:
            found[group.stat().st_ino] = group
        except OSError:
            pass  # removed meanwhile
    return found


def groups_of(daemon, look=lambda group: group.stat().st_ino):
    """{tree: what look() returns} for the groups of a live box, which has ended on return."""
    with daemon.client() as client:
        session = Session(client, mode="persistent", resources=SMALL)
        session.run("0")
        found = {tree: look(group) for tree, group in occupied(daemon).items()}
        assert session.delete().status in (200, 204)
    daemon.settle()
    return found


def read(path):
    """The text of a file of a group; "" when it was removed meanwhile."""
    try:
        return path.read_text()
    except OSError:
        return ""


def occupied(daemon):
    groups = [pathlib.Path(g) for g in daemon.groups()]
    return {g.relative_to(ROOT).parts[0]: g for g in groups if read(g / "cgroup.procs")}


def test_no_group_outlives_its_box(still):
    groups = groups_of(still)
    assert "cpu" in groups
    for tree, inode in groups.items():
        host.wait_until(lambda tree=tree, inode=inode: inode not in groups_in(still, tree), 20, f"the group in {tree} is removed")


def test_no_group_serves_two_boxes(still):
    seen = [groups_of(still, lambda group: (group.stat().st_ino, group.name)) for _ in range(5)]
    for tree in seen[0]:
        assert len({groups[tree][0] for groups in seen}) == len(seen), tree
        assert len({groups[tree][1] for groups in seen}) == len(seen), tree


def test_spares_have_the_limits_of_the_latest_box(still):
    inode = groups_of(still)["cpu"]
    with still.client() as client:
        for _ in range(5):
            client.python("0", resources={"cpu": "0.7"})
    still.settle()

    def quotas():
        return {found: read(group / "cpu.cfs_quota_us") for found, group in groups_in(still, "cpu").items()}

    host.wait_until(lambda: set(quotas().values()) == {"70000\n"}, 10, lambda: f"spares: {quotas()}")
    assert inode not in quotas()


def test_a_quota_lifted_to_kill_a_box_limits_the_next(still):
    """The engine lifts the quota of a box that it kills, so that the processes can die at once."""
    with still.client() as client:
        for _ in range(BOXES_AFTER):
            client.python("0", resources=SMALL)
    still.settle()
    for _ in range(host.GROUPS_AHEAD + 1):
        quota = groups_of(still, lambda group: [int(f.read_text()) for f in group.glob("cpu.cfs_quota_us")])["cpu"]
        assert quota[0] > 0


def test_only_spares_are_left_and_they_go_with_the_daemon():
    daemon = Daemon(env={"MILLIBOX_POOLS_ENABLED": "false"}).start()
    with daemon.client() as client:
        for i in range(BOXES_AFTER):
            client.python("0", resources={"memory": f"{100 + i}Mi"})
    daemon.settle()
    for tree in ("cpu", "memory"):
        host.wait_until(lambda tree=tree: len(groups_in(daemon, tree)) <= host.GROUPS_AHEAD, 10, lambda tree=tree: groups_in(daemon, tree))
    homes = [ROOT / tree / "millibox" / daemon.instance() for tree in ("cpu", "memory")]
    made = [home.stat().st_ino for home in homes]
    daemon.stop()
    host.wait_until(lambda: not any(is_same(home, inode) for home, inode in zip(homes, made)), 10, "the groups go with the daemon")
    daemon.remove()


def is_same(home, inode):
    """Whether the group is still there. Another daemon that gets the number makes one of the same name."""
    try:
        return home.stat().st_ino == inode
    except FileNotFoundError:
        return False
