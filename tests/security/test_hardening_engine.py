# SPDX-License-Identifier: Apache-2.0
"""What a box could do to others through what the host counts, shares or reports."""

import fcntl
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import uuid

import pytest
from support import host
from support.daemon import BUILD, ROOT

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")

needs_root = pytest.mark.skipif(not host.is_root(), reason="needs root: only then boxes have host ids and groups")

DIE_SLOWLY = """
import mmap, os, time
m = mmap.mmap(-1, 128 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000)
for k in range(120):
    if os.fork() == 0:
        time.sleep(3000)
time.sleep(3000)
"""


def background(fn):
    """Runs @fn in a thread; the returned object has the result after join()."""
    got = []
    thread = threading.Thread(target=lambda: got.append(fn()))
    thread.start()
    thread.got = got
    return thread


def starve(group):
    """A thousandth of a core: below the minimum of a request, to keep the test short."""
    for name, text in (("cpu.cfs_period_us", "1000000"), ("cpu.cfs_quota_us", "1000"), ("cpu.max", "1000 1000000")):
        if os.path.exists(f"{group}/{name}"):
            with open(f"{group}/{name}", "w") as f:
                f.write(text)


@pytest.mark.alone
@needs_root
def test_a_box_with_little_cpu_dies_as_quickly_as_others(make_daemon):
    """Dying costs CPU time: under its quota a box of many processes would take minutes."""
    d = make_daemon().start()
    with d.client() as c:
        run = background(lambda: c.python(DIE_SLOWLY, timeout=6, resources={"memory": "1Gi", "max_processes": 300}))
        host.wait_until(lambda: len(d.box_pids()) > 100, 6, "many processes")
        for group in d.groups():
            starve(group)
        run.join()
        assert run.got[0]["status"] == "timeout"
        begun = time.monotonic()
        d.settle(30)
        assert time.monotonic() - begun < 20  # far from both: a second, and minutes
        assert c.shell("echo fine")["stdout"] == "fine\n"


@needs_root
def test_a_device_that_is_not_what_its_name_says_is_refused(tmp_path):
    """Boxes would share a writable file of the host under the name of a device."""
    script = (f"mount --bind {tmp_path}/file /dev/full && exec {BUILD}/milliboxd --listen '' --socket {tmp_path}/sock "
              f"--state-dir {tmp_path}/state")
    (tmp_path / "file").write_text("")
    env = {**os.environ, "MILLIBOX_RUNTIME_DIR": str(tmp_path / "run")}
    run = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, env=env, timeout=60,
                         check=False)
    assert run.returncode != 0 and "/dev/full is not the device 1:7" in run.stderr, run


OP_CREATE, OP_FAILED = 2, 8


def ask_engine(build, request, *options):
    """One request to a separate engine, as a compromised daemon would send it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    runtime = tempfile.mkdtemp(prefix="mbxengine-")
    engine = subprocess.Popen(
        [build / "millibox-engine", "--fd", str(theirs.fileno()), "--agent", build / "millibox-agent"]
        + ["--runners", ROOT / "runners", "--runtime-dir", runtime, "--uid-base", "1879048192", *options],
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    try:
        ours.settimeout(host.HANG_S)
        ours.send(request)
        return ours.recv(4096)
    finally:
        ours.close()
        engine.wait(host.HANG_S)
        shutil.rmtree(runtime)


@pytest.mark.parametrize("over", ["memory", "tmp", "disk", "pids", "cpu"])
def test_the_engine_holds_the_daemon_to_the_maxima(build, over):
    most = {"memory": 64 << 20, "disk": 32 << 20, "pids": 100, "cpu": 500}
    asked = {**most, "tmp": 1 << 20}
    asked[over] = (asked[over] if over != "tmp" else most["memory"]) + 4096
    limits = struct.pack(
        "=QQQQIIII", asked["memory"], asked["disk"], asked["tmp"], 1 << 20, 100, 100, asked["pids"], asked["cpu"]
    )
    request = struct.pack("=II32s", OP_CREATE, 7, b"bmaxima") + limits + struct.pack("=II65s65s65s5x", 0, 0, b"", b"", b"")
    options = [word for name, value in most.items() for word in (f"--max-{name}", str(value))]
    op, seq = struct.unpack_from("=II", ask_engine(build, request, *options))
    assert (op, seq) == (OP_FAILED, 7)
    if over == "memory":  # control: accepted without maxima
        assert struct.unpack_from("=I", ask_engine(build, request))[0] != OP_FAILED


HOLD = {
    "tcp": """
import socket, time
keep, server = [], socket.socket()
server.bind(("127.0.0.1", 0)); server.listen(1000); server.settimeout(1)
end = time.monotonic() + 3
try:
    while len(keep) < 450 and time.monotonic() < end:
        a = socket.socket(); a.settimeout(1); a.connect(server.getsockname()); keep.append((a, server.accept()))
        a.setblocking(False)
        try:
            while True: a.send(bytes(65536))
        except BlockingIOError: pass
except OSError: pass
print(len(keep), flush=True); time.sleep(2)
""",
    "udp": """
import socket, time
keep = []
for i in range(900):
    a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(("127.0.0.1", 0)); a.setblocking(False); keep.append(a)
    try:
        for k in range(5): a.sendto(bytes(60000), a.getsockname())
    except OSError: pass
print(len(keep), flush=True); time.sleep(2)
""",
}


def socket_memory(protocol):
    """Bytes in all socket buffers of the kernel, in all namespaces."""
    for line in open("/proc/net/sockstat"):
        if line.startswith(protocol.upper() + ":"):
            words = line.split()
            return int(words[words.index("mem") + 1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


@pytest.mark.alone  # what is counted is the whole host's
@needs_root
@pytest.mark.parametrize("protocol", sorted(HOLD))
def test_bytes_in_sockets_count_as_memory(client, protocol):
    limit = 64 << 20
    before, most = socket_memory(protocol), 0
    run = background(lambda: client.python(HOLD[protocol], timeout=15, resources={"memory": "64Mi"}))
    while run.is_alive():
        most = max(most, socket_memory(protocol) - before)
        time.sleep(0.01)
    assert limit / 4 < most < 2 * limit, run.got  # lower bound: the program really filled the buffers


def test_socket_buffers_are_small(client):
    seen = client.shell("cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_wmem")["stdout"].split()
    assert [int(n) for n in (seen[2], seen[5])] == [262144, 262144]


def test_the_boot_id_is_not_the_hosts(client):
    with open("/proc/sys/kernel/random/boot_id") as f:
        outside = f.read()
    inside = client.shell("cat /proc/sys/kernel/random/boot_id; cat /proc/sys/kernel/random/boot_id")["stdout"]
    first, second = inside.splitlines()
    assert str(uuid.UUID(first)) == first == second
    assert uuid.UUID(first).version == 4
    assert first != outside.strip()


needs_subids = pytest.mark.skipif(
    not shutil.which("newuidmap") or not os.path.exists("/etc/subuid") or not os.path.exists("/etc/subgid"),
    reason="no newuidmap, /etc/subuid or /etc/subgid: nothing can give an ordinary user subordinate ids")
# A mount namespace with its own /etc and getent, from which the engine gets the user's name.
AS_NOBODY = """set -e
mount --make-rprivate /
mount --bind "$1/subuid" /etc/subuid
mount --bind "$1/subuid" /etc/subgid
[ -z "$2" ] || mount --bind "$2" /usr/bin/getent
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$3" --probe
"""


def probe_as_nobody(home, getent, fd=None):
    """Lines of --probe by name, run as nobody with subordinate ids."""
    with open(home / "subuid", "w") as f:
        f.write("nobody:300000:65536\n")
    run = subprocess.run(
        ["unshare", "--mount", "sh", "-c", AS_NOBODY, "sh", home, getent, home / "engine"],
        capture_output=True, text=True, check=True, pass_fds=() if fd is None else (fd,))
    return dict(line.split("\t", 1) for line in run.stdout.splitlines())


@pytest.fixture
def for_nobody():
    with tempfile.TemporaryDirectory(prefix="mbxget-") as name:
        home = pathlib.Path(name)
        home.chmod(0o777)
        shutil.copy(BUILD / "millibox-engine", home / "engine")
        yield home


def script(home, text):
    path = home / "getent"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


@needs_root
@needs_subids
@pytest.mark.parametrize("how, found", [
    (None, "ok\tsubordinate ids of the user"),
    ("echo nobody:x:65534:65534::/:", "ok\tsubordinate ids of the user"),
    ("exit 2", "missing\tno subordinate ids"),  # no such user: a valid answer
])
def test_the_user_name_comes_from_getent(for_nobody, how, found):
    facts = probe_as_nobody(for_nobody, script(for_nobody, how) if how else "")
    assert facts["uid_range"].startswith(found), facts["uid_range"]


@needs_root
@needs_subids
@pytest.mark.parametrize("how", ["/dev/null", "exit 1", "kill -9 $$"])
def test_a_failed_lookup_is_not_a_user_without_ids(for_nobody, how):
    """If the user's name is unknown, boxes would share the user's own id."""
    facts = probe_as_nobody(for_nobody, how if how.startswith("/") else script(for_nobody, how))
    assert facts["user"].startswith("missing\t/usr/bin/getent failed for user 65534"), facts["user"]


@needs_root
@needs_subids
def test_programs_of_the_host_get_no_descriptor_of_the_engine(for_nobody):
    look = script(for_nobody, f'ls -l /proc/$$/fd > {for_nobody}/seen\necho nobody:x:65534:65534::/:')
    read, write = os.pipe()
    high = fcntl.fcntl(write, fcntl.F_DUPFD, 77)  # a number that nothing of this process has
    try:
        facts = probe_as_nobody(for_nobody, look, fd=high)
    finally:
        for fd in read, write, high:
            os.close(fd)
    assert facts["uid_range"].startswith("ok"), facts
    seen = (for_nobody / "seen").read_text()
    assert " 1 -> " in seen and f" {high} -> " not in seen, seen
