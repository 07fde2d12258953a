# SPDX-License-Identifier: Apache-2.0
"""CG-6: what a box read first does not keep the kernel's part of its group."""

import os
import pathlib
import subprocess

import pytest

from support import host
from support.daemon import Daemon, is_sanitized
from support.disk_file import disk_file

BOXES = 40
STEP = 1 << 18  # further apart than the kernel reads ahead
V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup/cgroup.stat")

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.alone,  # what is counted is the whole host's
    pytest.mark.skipif(not host.is_root(), reason="needs root: makes a group of its own as a control"),
    pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries"),
]


def dead_groups():
    """Groups with a memory controller that the kernel still has; others on the host count too."""
    if V2.exists():
        return int(next(line for line in V2.read_text().splitlines() if line.startswith("nr_dying_descendants")).split()[1])
    known = next(line for line in pathlib.Path("/proc/cgroups").read_text().splitlines() if line.startswith("memory"))
    return int(known.split()[2]) - sum(1 for _ in os.walk(V1))  # unlike rglob() it allows that groups vanish meanwhile


@pytest.fixture(scope="module")
def file():
    """With a page for every box, and as many for the control."""
    with disk_file(2 * BOXES * STEP) as found:
        yield found


def read_in_a_group(path, number):
    group = (V1 if V1.exists() else V2.parent) / f"mbxtest-{os.getpid()}-{number}"
    group.mkdir()
    code = f'echo 0 > {group}/cgroup.procs; exec dd if={path} of=/dev/null bs=4096 count=1 skip={number * STEP // 4096}'
    subprocess.run(["sh", "-c", code], check=True, capture_output=True)
    host.wait_until(lambda: not (group / "cgroup.procs").read_text(), 5, "the reader is gone")
    group.rmdir()


@pytest.mark.vm
def test_boxes_that_read_a_cold_page_leave_no_dead_group(file):
    daemon = Daemon(config=file.config()).start()
    try:
        # Here, because a daemon enables the memory controller on v2.
        file.make_cold()
        before = dead_groups()
        for number in range(BOXES, 2 * BOXES):
            read_in_a_group(file.path, number)
        assert dead_groups() - before > BOXES // 2, "control: removed groups that own a page stay"
        with daemon.client() as client:
            file.prepare(client)

            def read(number):
                return file.run(client, f"dd if={file.inside} bs=4096 count=1 skip={number * STEP // 4096} | wc -c")

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


def test_the_engine_does_not_free_what_a_box_looked_up(file):
    """It would take seconds for millions of names, and other boxes would wait."""
    names = 100_000
    code = f"dd if={file.inside} bs=4096 count=1 | wc -c; i=0; while [ $i -lt {names} ]; do [ -e /nx-$i ]; i=$((i+1)); done"
    daemon = Daemon(config=file.config()).start()
    try:
        with daemon.client() as client:
            file.prepare(client)
            file.make_cold()
            before = negative_names()
            assert file.run(client, code)["stdout"] == "4096\n"
            daemon.settle()
            assert negative_names() - before > names // 2
    finally:
        assert daemon.stop() == 0, daemon.log()
        daemon.remove()
