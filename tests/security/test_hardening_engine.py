# SPDX-License-Identifier: Apache-2.0
"""What a box could do to others by way of what the host counts, shares or tells."""

import ctypes
import os
import threading
import time

import pytest
from support import host

needs_root = pytest.mark.skipif(not host.is_root(), reason="needs root: only then boxes have host ids and groups")

DIE_SLOWLY = """
import mmap, os, time
m = mmap.mmap(-1, 128 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000)
for k in range(120):
    if os.fork() == 0:
        time.sleep(3000)
    print(k, flush=True)
time.sleep(3000)
"""


def background(fn):
    """Runs @fn in a thread; the result is in what is returned, after its join()."""
    got = []
    thread = threading.Thread(target=lambda: got.append(fn()))
    thread.start()
    thread.got = got
    return thread


def test_a_box_with_little_cpu_dies_as_quickly_as_others(daemon):
    """Dying costs CPU time; under a quota of a hundredth of a core it would take seconds."""
    if not host.is_root():
        pytest.skip("needs root: without groups there is no quota")
    with daemon.client() as c:
        resources = {"cpu": 0.01, "memory": "1Gi", "max_processes": 300}
        c.python(DIE_SLOWLY, timeout=6, resources=resources)
        begun = time.monotonic()
        daemon.settle(30)
        assert time.monotonic() - begun < 1.5
        assert c.shell("echo fine")["stdout"] == "fine\n"
