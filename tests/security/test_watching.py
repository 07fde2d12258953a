# SPDX-License-Identifier: Apache-2.0
"""A box cannot watch files that the host or other boxes use, nor read counters of their work (XT-5)."""

import os
import pathlib
import subprocess
import sys

import pytest
from support import host

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")

# Each prints one word per way that works. Run outside, it is the control.
WATCH = """
import ctypes, fcntl, os, signal
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
if fd >= 0:
    print("instance")
    if libc.inotify_add_watch(fd, b"/usr/bin", 0xfff) >= 0:
        print("watch")
signal.signal(signal.SIGIO, signal.SIG_IGN)
directory = os.open("/usr/bin", os.O_RDONLY)
try:
    fcntl.fcntl(directory, 1026, 0x80000001)
    print("dnotify")
except OSError:
    pass
try:
    fcntl.fcntl(os.open("/usr/bin/env", os.O_RDONLY), 1024, fcntl.F_RDLCK)  # F_SETLEASE
    print("lease")
except OSError:
    pass
"""

CACHE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/usr/bin/env", os.O_RDONLY)
os.pread(fd, 4096, 0)
for name, flag in (("nowait", 8), ("dontcache", 0x80)):  # RWF_NOWAIT, RWF_DONTCACHE
    try:
        os.preadv(fd, [bytearray(16)], 0, flag)
        print(name)
    except OSError:
        pass
"""

# In a box only: outside it would take the file from the cache of tests that run at the same time.
FORGET = CACHE + "os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # succeeds and does nothing\n"

COUNTERS = """
for name in ("cgroups", "diskstats", "schedstat", "pressure/cpu", "softirqs", "vmstat", "zoneinfo", "buddyinfo"):
    try:
        if open("/proc/" + name).read(1):
            print(name)
    except OSError:
        pass
"""


def outside(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


# A lease on a file of another user needs a capability.
WATCHES = {"instance", "watch", "dnotify"} | ({"lease"} if host.is_root() else set())


@pytest.mark.parametrize("code, least", [(WATCH, WATCHES), (CACHE, {"nowait"})], ids=["watches", "page cache"])
def test_control_it_works_outside(code, least):
    assert set(outside(code)) >= least


@pytest.mark.parametrize("code", [WATCH, FORGET, COUNTERS], ids=["watches", "page cache", "counters"])
def test_it_does_not_work_in_a_box(client, code):
    result = client.python(code)
    assert result["status"] == "success" and result["stdout"].split() == [], result


def test_a_refused_watch_is_reported(client):
    result = client.python(WATCH)
    assert {"inotify_init1", "fcntl"} <= {denial["what"] for denial in result["denials"]}, result["denials"]


def test_the_page_cache_of_others_stays(client):
    """What a box asks the kernel to forget is still there for the host."""
    path = "/usr/bin/env"
    with open(path, "rb") as f:
        f.read()
    assert client.python(FORGET)["status"] == "success"
    fd = os.open(path, os.O_RDONLY)
    try:
        assert os.preadv(fd, [bytearray(16)], 0, os.RWF_NOWAIT) == 16
    finally:
        os.close(fd)


RESIDENT = """
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
fd = os.open(%r, os.O_RDONLY)
pages = (os.fstat(fd).st_size + 4095) // 4096
at = libc.mmap(None, pages * 4096, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
seen = ctypes.create_string_buffer(pages)
assert libc.mincore(at, pages * 4096, seen) == 0
print("absent" if any(not byte & 1 for byte in seen.raw[:pages]) else "present")
"""


@pytest.mark.skipif(not host.is_root(), reason="needs root: the kernel hides it from others than the owner")
def test_mincore_does_not_show_the_page_cache_of_the_host(client):
    """A page that is not in the cache looks present. Control: outside it looks absent."""
    for path in sorted(pathlib.Path("/usr/share").glob("*/*")):
        if not path.is_file() or path.stat().st_size < 1 << 16:
            continue
        with open(path, "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if outside(RESIDENT % str(path)) == ["absent"]:
            break
    else:
        pytest.fail("no file of /usr/share could be dropped from the page cache")
    result = client.python(RESIDENT % str(path))
    assert result["stdout"] == "present\n", result


def test_boxes_have_different_boot_ids(client):
    ids = [client.shell("cat /proc/sys/kernel/random/boot_id")["stdout"] for _ in range(2)]
    with open("/proc/sys/kernel/random/boot_id") as f:
        assert len({*ids, f.read()}) == 3


def test_no_core_dump_reaches_a_handler_of_the_host(client):
    """A core_pattern with a program ignores a limit of 0; 1 means none for it, too."""
    assert client.shell("ulimit -Hc; ulimit -c; grep core /proc/self/limits")["stdout"].split()[-3:-1] == ["1", "1"]


@pytest.mark.skipif(not host.is_root(), reason="needs root: looks at processes of other users")
def test_nothing_of_ours_dumps_core(daemon, client):
    client.python("print(1)")
    for pid in [daemon.pid, *host.descendants(daemon.pid)]:
        try:
            with open(f"/proc/{pid}/limits") as f:
                core = next(line.split() for line in f if line.startswith("Max core"))
        except (OSError, StopIteration):
            continue
        assert core[4:6] == ["1", "1"], (host.comm(pid), core)
