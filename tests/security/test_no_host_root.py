# SPDX-License-Identifier: Apache-2.0
"""After start no process that serves has a privilege on the host (ID-7): engine, helper and zygotes live in a user
namespace that maps only ids of their instance, and in a pid namespace without a process of the host."""

import contextlib
import ctypes
import errno
import json
import os
import pathlib
import signal

import pytest
from support import host
from support.daemon import Daemon, is_sanitized
from support.foreign_daemon import SubidDaemon
from support.sessions import Session

pytestmark = [pytest.mark.phases("system"), pytest.mark.vm,
              pytest.mark.skipif(not host.is_root(), reason="needs root: only root can enter the engine's namespaces")]

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
ALL = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
SYS_CAPSET, SYS_INIT_MODULE, SYS_BPF, SYS_KEXEC_LOAD = 126, 175, 321, 246
SYS_PIDFD_GETFD, SYS_MOUNT_SETATTR = 438, 442
ROLES = ("engine", "helper", "zygote")

libc = ctypes.CDLL(None, use_errno=True)


def start_of_runner(client):
    """How the runner of a new session was started."""
    session = Session(client, mode="persistent")
    start = session.run("1")["isolation"]["start"]
    session.delete()
    return start


@contextlib.contextmanager
def running(d):
    try:
        d.start()
        with d.client() as c:
            assert c.python("print(42)")["stdout"] == "42\n"
            host.wait_until(lambda: start_of_runner(c) == "zygote", 30, "a zygote for sessions")
        host.wait_until(d.zygote_pids, 20, "a zygote")
        yield d
        assert d.stop() == 0, d.log()
    finally:
        d.remove()


@pytest.fixture(scope="module")
def daemon():
    with running(Daemon(env={"MILLIBOX_ZYGOTES_ENABLED": "true"})) as d:
        yield d


@pytest.fixture(scope="module")
def subid_daemon():
    """It lacks cgroups."""
    if is_sanitized():
        pytest.skip("a sanitized program needs libraries beside it")
    with running(SubidDaemon(env={"MILLIBOX_ZYGOTES_ENABLED": "true", "MILLIBOX_ISOLATION": "best-effort"})) as d:
        yield d


def processes(d):
    helper = next(pid for pid in host.children(d.engine_pid) if host.comm(pid) == "millibox-nets")
    # One that serves: an interpreter that starts has another name. None may be listed while boxes end.
    zygotes = host.wait_until(lambda: [pid for pid in d.zygote_pids() if host.comm(pid) == "millibox-zygote"], 20, "a zygote")
    return {"engine": d.engine_pid, "helper": helper, "zygote": zygotes[0]}


def status(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def call(number, *args):
    """Return: the result, or the negative errno."""
    r = libc.syscall(number, *args)
    return r if r >= 0 else -ctypes.get_errno()


def readable(path):
    try:
        with open(path, "rb") as f:
            return bool(f.read(1))
    except OSError:
        return False


def writable(path):
    """Whether it can be opened for writing; nothing is written."""
    try:
        os.close(os.open(path, os.O_WRONLY))
        return True
    except OSError:
        return False


def leads_out(fd):
    """Whether the host's files can be reached from a directory that the process has open."""
    for up in range(1, 9):
        try:
            os.close(os.open("../" * up + "etc/passwd", os.O_RDONLY, dir_fd=fd))
            return True
        except OSError:
            pass
    return False


def can_unlock(path):
    """Whether a mount can be made writable again."""
    clear = (ctypes.c_uint64 * 4)(0, 1 | 2 | 4, 0, 0)  # RDONLY, NOSUID, NODEV
    result = call(SYS_MOUNT_SETATTR, -100, path, 0, clear, 32)
    assert result in (0, -errno.EPERM, -errno.ENOENT), result  # ENOENT: a zygote has no roots
    return result == 0


def look_around(descriptors):
    # A zygote's root is empty.
    pids = [name for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []
    roots = ["", *(f"/proc/{pid}/root" for pid in pids)]
    device = "probe-device"
    made = call(133, device.encode(), 0o60600, os.makedev(7, 0)) == 0  # mknod
    if made:
        os.unlink(device)
    return {
        "secrets": any(readable(f"{root}/etc/shadow") for root in roots),
        "settings": any(writable(f"/proc/{name}") for name in ("sys/kernel/core_pattern", "sysrq-trigger")),
        "host process": any(host.comm(int(pid)) == "milliboxd" for pid in pids),
        "device": made,
        "descriptor": any(leads_out(fd) for fd in descriptors),
        "roots": can_unlock(b"/roots/0"),
        "module": call(SYS_INIT_MODULE, None, 0, b"") not in (-1, -38),  # EPERM, ENOSYS; EFAULT or ENOEXEC: allowed
        "bpf": call(SYS_BPF, 5, None, 0) not in (-1, -38),
        "kexec": call(SYS_KEXEC_LOAD, 0, 1 << 20, None, 0) not in (-1, -38),
    }


def take_caps(effective):
    """Keep only these capabilities, as the process that is imitated."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    low, high = effective & 0xFFFFFFFF, effective >> 32
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    assert libc.syscall(SYS_CAPSET, header, data) == 0, ctypes.get_errno()


def probe(pid=None, effective=None):
    """look_around() with the ids, namespaces and capabilities of process @pid, or of this process without."""
    effective = effective if effective is not None else int(status(pid)["CapEff"], 16)
    target = os.pidfd_open(pid) if pid else -1
    if pid:
        taken = [call(SYS_PIDFD_GETFD, target, int(fd), 0) for fd in os.listdir(f"/proc/{pid}/fd")]
        descriptors = [fd for fd in taken if fd >= 0]  # it may close one meanwhile
        assert descriptors and set(taken) - set(descriptors) <= {-errno.EBADF}, taken
    else:
        descriptors = [os.open("/var", os.O_PATH)]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if pid:
                assert libc.setns(target, ALL) == 0, ctypes.get_errno()
                os.setgroups([])
                os.setresgid(0, 0, 0)
                os.setresuid(0, 0, 0)
            inner = os.fork()  # only a child is in the pid namespace
            if inner == 0:
                take_caps(effective)
                os.write(writer, json.dumps(look_around(descriptors)).encode())
                os._exit(0)
            os.waitpid(inner, 0)
        except BaseException as e:  # pylint: disable=broad-except
            os.write(writer, json.dumps({"failed": repr(e)}).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    for fd in [*descriptors, *([target] if pid else [])]:
        os.close(fd)
    with os.fdopen(reader, "rb") as f:
        return json.loads(f.read())


def test_control_the_probe_finds_everything_with_root_on_the_host(daemon):
    assert host.is_alive(daemon.pid)
    found = probe(effective=int(status(os.getpid())["CapEff"], 16))
    # A kernel without loadable modules, bpf or kexec answers ENOSYS to root, too.
    assert {name for name, there in found.items() if there} >= {"secrets", "settings", "host process", "descriptor"}, found


@pytest.mark.parametrize("role", ROLES)
def test_a_process_that_serves_can_do_nothing_to_the_host(daemon, role):
    assert not any(probe(processes(daemon)[role]).values()), role


@pytest.mark.parametrize("role", ROLES)
def test_with_subordinate_ids_it_can_do_nothing_either(subid_daemon, role):
    """The same, started by an ordinary user: root of its namespace is that user on the host."""
    pid = processes(subid_daemon)[role]
    maps = pathlib.Path(f"/proc/{pid}/uid_map").read_text().split()
    assert maps[:3] == ["0", str(SubidDaemon.UID), "1"] and int(maps[5]) > 1, "control: it has subordinate ids"
    found = {name for name, there in probe(pid).items() if there}
    # The user's own: the engine mounts them itself, so it can also change their mount (docs/threat-model.md).
    assert found <= (set() if role == "zygote" else {"roots"}), found


@pytest.mark.skipif(host.landlock_abi() < 6, reason="needs Landlock of Linux 6.12")
def test_the_engine_of_network_host_can_do_nothing_either(make_daemon):
    """It differs from the other in its network only (see test_host_network.py)."""
    d = make_daemon(env={"MILLIBOX_HOST_NETWORK_ENABLED": "true"}).start()
    assert d.host_engine_pid and not any(probe(d.host_engine_pid).values())


def test_the_engine_has_the_roots_that_it_cannot_unlock(daemon):
    """Otherwise the probe above would look for nothing."""
    assert os.path.isdir(f"/proc/{daemon.engine_pid}/root/roots/0")


@pytest.mark.parametrize("role", ROLES)
def test_a_process_that_serves_is_not_root_of_the_host(daemon, role):
    pid = processes(daemon)[role]
    now = status(pid)
    assert all(int(uid) >= host.UID_BASE for uid in now["Uid"].split()), now["Uid"]
    assert all(int(gid) >= host.UID_BASE for gid in now["Gid"].split()), now["Gid"]
    assert now["NoNewPrivs"] == "1" and now["Seccomp"] == "2"
    maps = pathlib.Path(f"/proc/{pid}/uid_map").read_text().split()
    assert all(int(first) >= host.UID_BASE for first in maps[1::3]), maps
    for name in ("user", "pid", "mnt", "net", "ipc", "uts"):
        assert os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}"), name


def test_a_zygote_reaches_no_file_at_all(daemon):
    pid = processes(daemon)["zygote"]
    assert not os.listdir(f"/proc/{pid}/root") and os.statvfs(f"/proc/{pid}/root").f_flag & os.ST_RDONLY
    assert len(pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()) == 1
    assert os.listdir(f"/proc/{processes(daemon)['engine']}/root")  # control


def is_dropped(now):
    """Of a zygote's child: it has no capability, and is the agent's child."""
    return not any(int(now[name], 16) for name in now if name.startswith("Cap")) and host.comm(int(now["PPid"])) != "millibox-zygote"


def test_what_waits_in_a_box_has_no_capability(daemon):
    """The zygote's child for a session that has not run a program."""
    with daemon.client() as c:
        before = set(daemon.box_pids())
        session = Session(c, mode="persistent")
        assert c.request("PUT", f"{session.path}/files/f", body=b"x",
                         headers={"Content-Type": "application/octet-stream"}).status == 201
        child = host.wait_until(lambda: [pid for pid in daemon.box_pids() if pid not in before
                                         and host.comm(pid) == "python3"], 20, "a child that waits")[0]
        host.wait_until(lambda: is_dropped(status(child)), 20, lambda: str(status(child)))
        now, agent = status(child), status(int(status(child)["PPid"]))
        assert not any(int(now[name], 16) for name in now if name.startswith("Cap")), now
        assert len(set(now["Uid"].split())) == 1 and now["Uid"].split()[0] != agent["Uid"].split()[0]
        assert int(agent["CapEff"], 16) != 0  # control
        for name in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"):
            assert os.readlink(f"/proc/{child}/ns/{name}") == os.readlink(f"/proc/{now['PPid']}/ns/{name}"), name
        assert session.run("1 + 1")["isolation"]["start"] == "zygote"
        assert host.is_alive(child)  # it was the one
        session.delete()


def test_only_guards_stay_root_and_they_hold_nothing(daemon):
    roots = {pid: host.comm(pid) for pid in host.descendants(daemon.pid) if host.ids(pid)[0] == 0}
    assert set(roots.values()) <= {"millibox-guard", "milliboxd-guard"}, roots
    guard = next(pid for pid, name in roots.items() if name == "millibox-guard")
    now = status(guard)
    assert int(now["CapEff"], 16) == int(now["CapPrm"], 16) == int(now["CapBnd"], 16) == 0
    assert now["NoNewPrivs"] == "1" and now["Seccomp"] == "2"


def test_when_the_guard_is_killed_the_engine_and_its_boxes_end(make_daemon):
    d = make_daemon().start()
    with d.client() as c:
        c.python("print(1)")
    engine = d.engine_pid
    os.kill(host.proc_stat(engine)[0], signal.SIGKILL)
    host.wait_until(lambda: not host.is_alive(engine), 10, "the engine has ended")
    d.process.wait(20 * host.PATIENCE)
    assert d.process.returncode != 0
    # No process was left to remove the groups; the next start does.
    assert d.start().stop() == 0
