# SPDX-License-Identifier: Apache-2.0
"""What of ours is on the host: processes, mounts, cgroups, namespaces, descriptors.

Tests compare two looks. Nothing here asks the daemon: the kernel is the witness.
"""

import ctypes
import os
import pathlib
import sys
import time

CGROUP_ROOT = pathlib.Path("/sys/fs/cgroup")

#: An emulated machine, where all takes many times as long.
SLOW = os.environ.get("MILLIBOX_SLOW") == "1"


def is_root():
    return os.geteuid() == 0


def proc_stat(pid):
    """(ppid, state) of a process, or None when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return int(fields[1]), fields[0]


def is_alive(pid):
    """Whether this process is there and no zombie."""
    stat = proc_stat(pid)
    return stat is not None and stat[1] != "Z"


def all_pids():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def descendants(pid):
    """Living (not zombie) processes below @pid."""
    parents = {}
    for p in all_pids():
        stat = proc_stat(p)
        if stat and stat[1] != "Z":
            parents.setdefault(stat[0], []).append(p)
    found, todo = [], [pid]
    while todo:
        for child in parents.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def children(pid):
    """Living processes that @pid itself has started."""
    return [p for p in descendants(pid) if (proc_stat(p) or (0, ""))[0] == pid]


def cmdline(pid):
    """Arguments of a process; none when it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def comm(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


#: Whether the daemons of this run make boxes ahead.
POOLED = os.environ.get("MILLIBOX_TEST_POOL") == "1"


def _waits(pid):
    """Whether a process waits for its program: in poll(), at the channel, which has a high number."""
    try:
        words = pathlib.Path(f"/proc/{pid}/syscall").read_text().split()
        if words[0] != "7" or int(words[2], 16) != 1:
            return False
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(int(words[1], 16))
            return int.from_bytes(memory.read(4), sys.byteorder) > 100
    except PermissionError:
        return "-" in cmdline(pid)
    except OSError:
        return True  # it has just gone


def is_spare(pid):
    """Whether a process is of a box that waits in a pool: its agent, which has nothing to do, or what waits in it."""
    if not POOLED:
        return False
    words = cmdline(pid)
    if words[:1] == ["millibox-agent"]:
        # Those of sessions are kept over the end of a daemon, and no daemon of these tests has a pool of such.
        return "keep" not in words and all(_waits(child) for child in _children(pid))
    return _waits(pid)


def count_spares(engine):
    """Boxes below an engine that wait in a pool."""
    return sum(is_spare(pid) for pid in _children(engine) if cmdline(pid)[:1] == ["millibox-agent"])


def _children(pid):
    """As children(), without a look at every process of the host."""
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_spare_group(group):
    """Whether a group is that of a box in a pool."""
    if not POOLED:
        return False
    try:
        pids = pathlib.Path(group, "cgroup.procs").read_text().split()
    except OSError:
        return True
    return all(is_spare(int(pid)) for pid in pids)


def ids(pid):
    """(real uid, real gid) of a process seen from the host."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("Uid:"):
            uid = int(line.split()[1])
        if line.startswith("Gid:"):
            gid = int(line.split()[1])
    return uid, gid


def fd_count(pid):
    """Open descriptors, but for those of groups that exist: of boxes that live, or made ahead, and of zygotes."""
    names = os.listdir(f"/proc/{pid}/fd")
    return len(names) - sum(_is_group(f"/proc/{pid}/fd/{name}") for name in names)


def _is_group(fd):
    try:
        target = os.readlink(fd)
    except OSError:
        return False
    return ("/box-" in target or "/zygote-" in target) and not target.endswith(" (deleted)")


def rss_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def mounts():
    """Lines of mountinfo, as this process sees it."""
    return pathlib.Path("/proc/self/mountinfo").read_text().splitlines()


CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_SHARED = 0x20000, 0x4000, 1 << 18, 1 << 20


def separate_mounts():
    """Move this process to a mount namespace of its own, so that mounts() lists nothing that other programs mount
    from here on. Its mounts are shared, as systemd has them: what a box mounts must not propagate even then."""
    libc = ctypes.CDLL(None, use_errno=True)
    for result in (libc.unshare(CLONE_NEWNS),
                   libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None),
                   libc.mount(None, b"/", None, MS_REC | MS_SHARED, None)):
        if result < 0:
            raise OSError(ctypes.get_errno(), "cannot separate mounts")


GROUPS_AHEAD = 2  # a living engine keeps this many sets of empty groups ready


def box_cgroups(engine_lives):
    """Groups of boxes, of every instance and hierarchy: millibox/<instance>/<group>. Where engine_lives(instance),
    as many empty groups as an engine keeps ready do not count."""
    found = []
    for top in _trees():
        for instance in _directories(top):
            groups = [str(box) for box in _directories(instance) if not box.name.startswith("zygote-")]
            used = [group for group in groups if _has_processes(group)]
            ahead = GROUPS_AHEAD if engine_lives(instance.name) else 0
            found += groups if len(groups) - len(used) > ahead else used
    return sorted(found)


def is_claimed(number):
    """Whether an engine has this instance: one that can make groups holds its directories locked, and what an
    earlier one has left in there it has swept, or has taken another number."""
    return any(_is_locked_directory(top / number) for top in _trees())


def _trees():
    return [CGROUP_ROOT / "millibox", *CGROUP_ROOT.glob("*/millibox")]


def _has_processes(group):
    try:
        return bool(pathlib.Path(group, "cgroup.procs").read_text())
    except OSError:
        return False


def is_locked(path):
    """Whether somebody holds the lock of this file; looking at it must not take it from an engine that
    starts just now."""
    try:
        inode = f":{os.stat(path).st_ino}"
    except OSError:
        return False
    return any(lock.endswith(inode) for lock in _locks())


def _is_locked_directory(path):
    """Numbers of inodes are not unique among the trees of groups."""
    try:
        st = os.stat(path)
    except OSError:
        return False
    return f"{os.major(st.st_dev):02x}:{os.minor(st.st_dev):02x}:{st.st_ino}" in _locks()


def _locks():
    lines = pathlib.Path("/proc/locks").read_text().splitlines()
    return [line.split()[5] for line in lines if "FLOCK" in line and "->" not in line]


def _directories(path):
    """Subdirectories; a group may vanish while it is looked at."""
    try:
        return [p for p in path.iterdir() if p.is_dir()]
    except OSError:
        return []


UID_BASE, UIDS_PER_INSTANCE = 1879048192, 65536


def strays(instances, homes=""):
    """Processes of our boxes, as (pid, network namespace): their namespace is another one, and their id is one of these
    instances' when we are root, our own otherwise. An ordinary user may run tests twice at once: processes below an engine
    whose runtime directory does not begin with @homes are not ours."""
    mine = os.readlink("/proc/self/ns/net")
    found = set()
    for pid in all_pids():
        try:
            uid = os.stat(f"/proc/{pid}").st_uid
            net = os.readlink(f"/proc/{pid}/ns/net")
        except OSError:
            continue
        number = str((uid - UID_BASE) // UIDS_PER_INSTANCE)
        ours = number in instances if is_root() else uid == os.getuid()
        if ours and net != mine and not is_spare(pid) and (is_root() or not _has_other_engine(pid, homes)):
            found.add((pid, net))
    return found


def _has_other_engine(pid, homes):
    while pid > 1:
        words = cmdline(pid)
        if words[0].endswith("millibox-engine") and not any(homes in word for word in words):
            return True
        pid = (proc_stat(pid) or (0,))[0]
    return False


def wait_until(condition, seconds=10.0, what="condition"):
    """Poll until @condition() is true. @what goes into the failure; a function is only then asked."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.005)
