# SPDX-License-Identifier: Apache-2.0
"""CG-6: what all boxes of a tenant together read from a disk is limited."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import time

import pytest

from support import host, oci
from support.daemon import BUILD, is_sanitized
from support.identity import KeyClient, make_key, make_tenant

SIZE = 8 << 20
RATE = SIZE // 2  # so that reading the file takes about two seconds

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not host.is_root(), reason="needs root: an ordinary user has no I/O controller by default"),
    pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries"),
]


def is_on_disk(path):
    return os.major(os.stat(path).st_dev) != 0


class File:
    """A file that is on a disk, and where a box sees it."""

    def __init__(self, path, inside, roots=None):
        self.path, self.inside, self.roots = path, inside, roots

    def make_cold(self):
        fd = os.open(self.path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)

    def disk(self):
        """Its number: that of the whole disk, if the file system is on a partition."""
        dev = os.stat(self.path).st_dev
        node = pathlib.Path(f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}").resolve()
        return ((node.parent if (node / "partition").exists() else node) / "dev").read_text().strip()

    def config(self):
        return f"templates:\n  dirs: [{self.roots}]\n" if self.roots else ""

    def prepare(self, client):
        if self.roots:
            assert client.post("/api/v1/templates", {"id": "bb", "name": "bb", "image": "bb"}).status == 201

    def read(self, client):
        """Return: seconds that a box takes to read it."""
        self.make_cold()
        begin = time.monotonic()
        code = f"head -c {SIZE} {self.inside} | wc -c"
        body = {"language": "shell", "code": code, **({"template_id": "bb"} if self.roots else {})}
        answer = client.post("/api/v1/execute", body)
        assert answer.status == 200 and answer.json["stdout"] == f"{SIZE}\n", answer
        return time.monotonic() - begin


@pytest.fixture(scope="module")
def file():
    if not is_on_disk("/var/tmp"):
        libraries = (p for p in pathlib.Path("/usr/lib").rglob("*.so*") if not p.is_symlink() and p.is_file())
        largest = max(libraries, key=lambda p: p.stat().st_size)
        if not is_on_disk(largest) or largest.stat().st_size < SIZE:
            pytest.skip("needs a file on a disk")
        yield File(largest, largest)
        return
    with tempfile.TemporaryDirectory(prefix="mbxroots-", dir="/var/tmp") as directory:
        roots = pathlib.Path(directory)
        roots.chmod(0o755)
        subprocess.run([BUILD / "millibox-import", "--roots", roots, "--name", "bb"], check=True, capture_output=True,
                       input=oci.Image([oci.busybox_layer()]).bytes())
        path = roots / "bb/root/data"
        path.write_bytes(os.urandom(SIZE))
        path.chmod(0o644)
        yield File(path, "/root/data", roots)


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
        limited = file.read(client)
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
        assert file.read(client) < limited, "control: without the limit it is faster"
    assert limited > 1


def commands(group):
    """Names of the processes in the group and in those beneath."""
    pids = [pid for path in [group, *group.glob("box-*")] for pid in (path / "cgroup.procs").read_text().split()]
    names = []
    for pid in pids:
        with contextlib.suppress(OSError):  # it is gone
            names.append(host.comm(pid))
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
                assert not any("python" in command for command in commands(group)), "control: nothing runs yet"
                session = own.post("/api/v1/sessions", {"language": "python", "mode": "persistent"})
                assert session.status == 201, session
                host.wait_until(lambda g=group: any("python" in c for c in commands(g)), 60, "the session's program in the group")
                assert own.request("DELETE", f"/api/v1/sessions/{session.json['id']}").status in (200, 204)
