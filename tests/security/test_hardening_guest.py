# SPDX-License-Identifier: Apache-2.0
"""What the agent grants to a program and withholds, tested through a daemon."""

import subprocess
import sys

import pytest
from support import host

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")


def test_shell_opens_its_stdio_by_name(client):
    r = client.shell(
        "cat /dev/stdin > /dev/stdout; echo err > /dev/stderr; echo a > /proc/self/fd/1; echo b | tee /dev/stderr",
        stdin="in\n",
    )
    assert (r["stdout"], r["stderr"]) == ("in\na\nb\n", "err\nb\n"), r


def test_python_opens_its_stdio_by_name(client):
    r = client.python(
        "d=open('/dev/stdin').read()\nopen('/dev/stdout','w').write(d)\nopen('/dev/stderr','w').write('e')", stdin="x"
    )
    assert (r["stdout"], r["stderr"]) == ("x", "e"), r


def test_stdin_that_is_empty_can_be_opened_by_name(client):
    r = client.shell("cat /dev/stdin; echo $?")
    assert r["stdout"] == "0\n", r


SHARED = """
import ctypes, mmap, os
l = ctypes.CDLL(None)
l.mmap.restype = l.shmat.restype = ctypes.c_ssize_t
got = 0
def take(address):
    global got
    if address not in (-1, 0):
        ctypes.memset(address, 1, 24 << 20)
        got += 24
size, none = ctypes.c_size_t(24 << 20), ctypes.c_size_t(0)
for _ in range(4):
    take(l.mmap(None, size, 3, 0x21, -1, none))
    take(l.mmap(None, size, 3, 0x122, -1, none))
    i = l.shmget(0, size, 0o1600)
    if i >= 0:
        take(l.shmat(i, None, 0))
    for make in (lambda: os.memfd_create('x'), lambda: os.open('/dev/zero', os.O_RDWR)):
        try:
            fd = make()
            if os.fstat(fd).st_rdev == 0:
                os.ftruncate(fd, 24 << 20)
            take(l.mmap(None, size, 3, 1, fd, none))
        except OSError:
            pass
print(got)
"""


def test_shared_memory_does_not_escape_the_memory_limit(client):
    """CG-1. With a controller the box is killed above the limit; without one such memory is refused."""
    r = client.python(SHARED, resources={"memory": "64Mi"})
    assert r["status"] != "success" or int(r["stdout"]) <= 64, r


def test_programs_fall_back_without_shared_memory(client):
    if host.is_root():
        pytest.skip("root has a memory controller: nothing is refused")
    r = client.python(
        "import multiprocessing as m\n"
        "from multiprocessing import shared_memory\n"
        "v = m.Value('i', 0)\n"
        "def add():\n  with v.get_lock(): v.value += 1\n"
        "p = [m.Process(target=add) for _ in range(3)]\n[x.start() for x in p]; [x.join() for x in p]\n"
        "s = shared_memory.SharedMemory(create=True, size=4096); s.buf[0] = 7; s.close(); s.unlink()\n"
        "print(v.value)"
    )
    assert r["stdout"] == "3\n", r


QUEUE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
attributes = (ctypes.c_long * 8)(0, 1, 16)  # one message of 16 bytes: within RLIMIT_MSGQUEUE
fd = libc.syscall(240, b"probe", 0o102, 0o600, attributes)  # mq_open: O_CREAT | O_RDWR
print("opened" if fd >= 0 else ctypes.get_errno())
libc.syscall(241, b"probe")  # mq_unlink
"""


def test_landlock_refuses_what_nothing_else_does(client):
    """LL-1. No mount, mode or filter forbids a message queue; without Landlock it opens."""
    wrap = ["unshare", "--ipc", *([] if host.is_root() else ["--user", "--map-root-user"])]
    outside = subprocess.run([*wrap, sys.executable, "-c", QUEUE], capture_output=True, text=True, check=True)
    assert outside.stdout == "opened\n"
    result = client.python(QUEUE)
    assert result["stdout"] == ("13\n" if "landlock" in result["isolation"]["layers"] else "opened\n"), result
