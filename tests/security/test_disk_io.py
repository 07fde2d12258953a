# SPDX-License-Identifier: Apache-2.0
"""CG-6: what all boxes of a tenant together read from a disk is limited."""

import contextlib
import pathlib
import time

import pytest

from support import host
from support.daemon import is_sanitized
from support.disk_file import disk_file
from support.identity import KeyClient, make_key, make_tenant
from support.sessions import Session

SIZE = 8 << 20
RATE = SIZE // 2  # so that reading the file takes about two seconds

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not host.is_root(), reason="needs root: an ordinary user has no I/O controller by default"),
    pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries"),
]


@pytest.fixture(scope="module")
def file():
    with disk_file(SIZE) as found:
        yield found


def time_to_read(client, file):
    """Seconds that a box takes for all of it."""
    file.make_cold()
    begin = time.monotonic()
    assert file.run(client, f"head -c {SIZE} {file.inside} | wc -c")["stdout"] == f"{SIZE}\n"
    return time.monotonic() - begin


def io_groups(daemon):
    """The groups with limits of disk I/O, by name."""
    found = {}
    for top in host.cgroup_tops():
        for group in pathlib.Path(top, daemon.instance()).glob("*"):
            if (group / "io.max").exists() or (group / "blkio.throttle.read_bps_device").exists():
                found[group.name] = group
    return found


def limit_of(group, disk):
    """(bytes per second, operations per second) that it may read."""
    if (group / "io.max").exists():
        line = next((words for line in (group / "io.max").read_text().splitlines() if (words := line.split())[0] == disk), [])
        values = dict(word.split("=") for word in line[1:])
        return values.get("rbps"), values.get("riops")
    lines = [(group / f"blkio.throttle.read_{unit}_device").read_text().splitlines() for unit in ("bps", "iops")]
    return tuple(next((line.split()[1] for line in some if line.split()[0] == disk), None) for some in lines)


def bytes_read(group, disk):
    if (group / "io.stat").exists():
        line = next(line for line in (group / "io.stat").read_text().splitlines() if line.startswith(f"{disk} "))
        return int(dict(word.split("=") for word in line.split()[1:])["rbytes"])
    lines = (group / "blkio.throttle.io_service_bytes").read_text().splitlines()
    return next(int(line.split()[2]) for line in lines if line.startswith(f"{disk} Read "))


def has_layer(client):
    return "cgroup.io" in client.shell("true")["isolation"]["layers"]


@pytest.mark.vm
def test_reads_of_a_tenant_are_limited(make_daemon, file):
    daemon = make_daemon(config=f"limits: {{io: {RATE}, io_ops: 5000}}\n{file.config()}").start()
    with daemon.client() as client:
        if not has_layer(client):
            pytest.skip("needs a controller of disk I/O")
        file.prepare(client)
        limited = time_to_read(client, file)
        group = io_groups(daemon)["t-default"]
        assert limit_of(group, file.disk()) == (str(RATE), "5000")
        assert bytes_read(group, file.disk()) >= SIZE
        assert limit_of(io_groups(daemon)["import"], file.disk()) == (str(RATE), "5000")
    daemon.stop()
    daemon = make_daemon(config=f"limits: {{io: 0, io_ops: 0}}\n{file.config()}").start()
    with daemon.client() as client:
        assert "cgroup.io" in client.shell("true")["isolation"]["missing"]
        assert not io_groups(daemon)
        file.prepare(client)
        # A busy host may delay some of them.
        assert any(time_to_read(client, file) < limited for _ in range(10)), "control: without the limit it is faster"
    assert limited > 1


def commands(group):
    """Names of the processes in the group and in those beneath."""
    names = []
    for path in [group, *group.glob("box-*")]:
        with contextlib.suppress(OSError):  # it is gone
            names += [host.comm(pid) for pid in (path / "cgroup.procs").read_text().split()]
    return names


@pytest.mark.vm
def test_every_tenant_has_its_own_limit(make_daemon, file):
    """Programs of a zygote are in the group of its tenant, too."""
    daemon = make_daemon(config=f"limits: {{io: {RATE}}}\n", env={"MILLIBOX_ZYGOTES_ENABLED": "true"}).start()
    with daemon.client() as client:
        if not has_layer(client):
            pytest.skip("needs a controller of disk I/O")
        for name in ("alice", "bob"):
            make_tenant(client, name)
            with contextlib.closing(KeyClient(daemon.socket, make_key(client, name))) as own:
                host.wait_until(lambda c=own: c.python("0")["isolation"]["start"] == "zygote", 60, "a zygote")
                group = io_groups(daemon)[f"t-{name}"]
                assert limit_of(group, file.disk()) == (str(RATE), "10000")
                host.wait_until(lambda g=group: not any("python" in command for command in commands(g)), 10, "control: nothing runs yet")
                session = Session(own, mode="persistent")
                session.run("1")
                assert any("python" in command for command in commands(group))
                session.delete()
