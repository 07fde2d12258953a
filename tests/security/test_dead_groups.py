# SPDX-License-Identifier: Apache-2.0
"""CG-6: what a box read first does not keep the kernel's part of its group."""

import os
import pathlib
import subprocess
import tempfile

import pytest

from support import host, oci
from support.daemon import BUILD, Daemon, is_sanitized

BOXES = 60
STEP = 1 << 20  # further apart than the kernel reads ahead
V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup/cgroup.stat")

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not host.is_root(), reason="needs root: makes a group of its own as a control"),
    pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries"),
]


def dead_groups():
    """Groups with a memory controller that the kernel still has; others on the host count too."""
    if V2.exists():
        return int(next(line for line in V2.read_text().splitlines() if line.startswith("nr_dying_descendants")).split()[1])
    known = next(line for line in pathlib.Path("/proc/cgroups").read_text().splitlines() if line.startswith("memory"))
    return int(known.split()[2]) - sum(1 for _ in os.walk(V1))  # unlike rglob() it allows that groups vanish meanwhile


def make_cold(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


@pytest.fixture(scope="module")
def pages():
    """A directory for roots; one has a file with a page for every box."""
    with tempfile.TemporaryDirectory(prefix="mbxroots-", dir="/var/tmp") as directory:
        path = pathlib.Path(directory)
        path.chmod(0o755)
        subprocess.run([BUILD / "millibox-import", "--roots", path, "--name", "bb"], check=True, capture_output=True,
                       input=oci.Image([oci.busybox_layer()]).bytes())
        with open(path / "bb/root/pages", "wb") as file:
            file.truncate(2 * BOXES * STEP)
        (path / "bb/root/pages").chmod(0o644)
        yield path


def read_in_a_group(path, number):
    group = (V1 if V1.exists() else V2.parent) / f"mbxtest-{os.getpid()}-{number}"
    group.mkdir()
    code = f'echo 0 > {group}/cgroup.procs; exec dd if={path} of=/dev/null bs=4096 count=1 skip={number * STEP // 4096}'
    subprocess.run(["sh", "-c", code], check=True, capture_output=True)
    host.wait_until(lambda: not (group / "cgroup.procs").read_text(), 5, "the reader is gone")
    group.rmdir()


def test_boxes_that_read_a_cold_page_leave_no_dead_group(pages):
    file = pages / "bb/root/pages"
    make_cold(file)
    before = dead_groups()
    for number in range(BOXES, 2 * BOXES):
        read_in_a_group(file, number)
    assert dead_groups() - before > BOXES // 2, "control: removed groups that own a page stay"
    daemon = Daemon(config=f"templates:\n  dirs: [{pages}]\n").start()
    try:
        with daemon.client() as client:
            assert client.post("/api/v1/templates", {"id": "bb", "name": "bb", "image": "bb"}).status == 201

            def read(number):
                code = f"dd if=/root/pages bs=4096 count=1 skip={number * STEP // 4096} | wc -c"
                return client.post("/api/v1/execute", {"language": "shell", "code": code, "template_id": "bb"}).json

            assert read(0)["stdout"] == "4096\n"
            daemon.settle()
            before = dead_groups()
            for number in range(1, BOXES):
                assert read(number)["stdout"] == "4096\n"
            daemon.settle()
            host.wait_until(lambda: dead_groups() - before < BOXES // 2, 10, lambda: f"{dead_groups() - before} dead groups")
    finally:
        daemon.stop()
        daemon.remove()


def negative_names():
    """Names that do not exist and that the kernel remembers."""
    return int(pathlib.Path("/proc/sys/fs/dentry-state").read_text().split()[4])


def test_the_engine_does_not_free_what_a_box_looked_up(pages):
    """It would take seconds for millions of names, and other boxes would wait."""
    names, file = 100_000, pages / "bb/root/pages"
    code = f"dd if=/root/pages bs=4096 count=1 | wc -c; i=0; while [ $i -lt {names} ]; do [ -e /nx-$i ]; i=$((i+1)); done"
    daemon = Daemon(config=f"templates:\n  dirs: [{pages}]\n").start()
    try:
        with daemon.client() as client:
            assert client.post("/api/v1/templates", {"id": "bb", "name": "bb", "image": "bb"}).status == 201
            make_cold(file)
            before = negative_names()
            answer = client.post("/api/v1/execute", {"language": "shell", "code": code, "template_id": "bb"}).json
            assert answer["stdout"] == "4096\n"
            daemon.settle()
            assert negative_names() - before > names // 2
    finally:
        assert daemon.stop() == 0, daemon.log()
        daemon.remove()
