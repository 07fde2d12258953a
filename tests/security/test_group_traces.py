# SPDX-License-Identifier: Apache-2.0
"""LC-4: v1's group for processors may serve one box after another; nothing else of a box may."""

import pathlib

import pytest

from support import host
from support.daemon import Daemon
from support.sessions import Session

# More than rest at a time, so that those which were given back are among those that follow.
BOXES_AFTER = 20
SMALL = {"memory": "96Mi"}
ROOT = pathlib.Path("/sys/fs/cgroup")

pytestmark = pytest.mark.skipif(
    not host.is_root() or not (ROOT / "cpu" / "cpu.shares").exists(),
    reason="groups rest only in a tree of v1 that belongs to root",
)

MEMORY = "x = b'x' * 70_000_000"
CPU = "import time\nwhile time.process_time() < 0.6: pass"
PROCESSES = "import os\nr, w = os.pipe()\nfor i in range(20):\n  if os.fork() == 0: os.close(w); os.read(r, 1); os._exit(0)\nos.close(w)\nfor i in range(20): os.wait()"
KILLED = "x = bytearray(10**6)\nwhile True: x += bytearray(10**7)"
# Each shows in what is told of the box that did it.
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


@pytest.fixture(scope="module")
def still():
    """A daemon whose groups are left alone while they are looked at: no pool is filled."""
    d = Daemon(env={"MILLIBOX_POOLS_ENABLED": "false"}).start()
    yield d
    assert d.stop() == 0, d.log()
    d.remove()


def empty(daemon, tree):
    """{inode: path} of the groups of a daemon in which nobody is."""
    found = {}
    for group in (ROOT / tree / "millibox" / daemon.instance()).glob("box-*"):
        try:
            if not (group / "cgroup.procs").read_text():
                found[group.stat().st_ino] = group
        except OSError:
            pass  # has another name by now, or is gone
    return found


def groups_of(daemon, look=lambda group: group.stat().st_ino):
    """{tree: what look() says} of the groups of a box that lives."""
    with daemon.client() as client:
        session = Session(client, mode="persistent", resources=SMALL)
        session.run("0")
        found = {tree: look(group) for tree, group in occupied(daemon).items()}
        assert session.delete().status in (200, 204)
    daemon.settle()
    return found


def occupied(daemon):
    groups = [pathlib.Path(g) for g in daemon.groups()]
    return {g.relative_to(ROOT).parts[0]: g for g in groups if (g / "cgroup.procs").read_text()}


def test_only_the_group_for_processors_rests(still):
    for tree, inode in groups_of(still).items():
        assert (inode in empty(still, tree)) == (tree == "cpu"), tree


def test_it_serves_again_under_another_name(still):
    inode = groups_of(still)["cpu"]
    name = empty(still, "cpu")[inode].name
    names = set()
    with still.client() as client:
        for _ in range(BOXES_AFTER):
            client.python("0", resources=SMALL)
            names |= {path.name for found, path in empty(still, "cpu").items() if found == inode}
    assert names - {name}, "never used again"


def test_other_limits_get_another(still):
    inode = groups_of(still)["cpu"]
    with still.client() as client:
        for _ in range(5):
            client.python("0", resources={"cpu": "0.7"})
    still.settle()
    quotas = {found: (group / "cpu.cfs_quota_us").read_text() for found, group in empty(still, "cpu").items()}
    assert "70000\n" in quotas.values()
    assert quotas.get(inode) != "70000\n"


def test_a_quota_that_was_lifted_is_back(still):
    """Boxes that have to be killed may use all there is for it."""
    with still.client() as client:
        for _ in range(BOXES_AFTER):
            client.python("0", resources=SMALL)
    still.settle()
    ahead = {group.name for group in empty(still, "memory").values()}
    resting = [group for group in empty(still, "cpu").values() if group.name not in ahead]
    assert resting
    for group in resting:
        (group / "cpu.cfs_quota_us").write_text("-1")
    for _ in range(host.GROUPS_AHEAD + 1):
        quota = groups_of(still, lambda group: [int(f.read_text()) for f in group.glob("cpu.cfs_quota_us")])["cpu"]
        assert quota[0] > 0


def test_no_more_than_so_many_rest_and_they_go_with_the_daemon():
    daemon = Daemon().start()
    with daemon.client() as client:
        for i in range(host.GROUPS_RESTING + 8):
            client.python("0", resources={"memory": f"{100 + i}Mi"})
    daemon.settle()
    assert len(empty(daemon, "cpu")) <= host.GROUPS_RESTING + host.GROUPS_AHEAD
    homes = [ROOT / tree / "millibox" / daemon.instance() for tree in ("cpu", "memory")]
    daemon.stop()
    assert not any(home.exists() for home in homes)
    daemon.remove()
