# SPDX-License-Identifier: Apache-2.0
"""What the kernel knows about processes, mounts, cgroups, namespaces and descriptors of our daemons.

Tests compare two looks. Nothing here asks the daemon. Every test looks several times at all processes of the host, so the
reading is done with system calls: pathlib takes five times as long.
"""

import contextlib
import ctypes
import errno
import os
import pathlib
import sys
import time

CGROUP_ROOT = pathlib.Path("/sys/fs/cgroup")

#: An emulated machine, where everything takes many times as long.
SLOW = os.environ.get("MILLIBOX_SLOW") == "1"
#: How much longer than on an idle host an event may take: a busy host is no failure.
PATIENCE = 16 if SLOW else 4
#: The time-out of what only a hang can take: connections, programs of the host.
HANG_S = 15 * PATIENCE


def is_root():
    return os.geteuid() == 0


def landlock_abi():
    """0 or less: the kernel has no Landlock."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1)  # landlock_create_ruleset(NULL, 0, VERSION)


#: How the kernel reports that a process or a group is gone.
GONE = {errno.ENOENT, errno.ESRCH, errno.ENODEV}


def _read(path, is_short=False):
    """The bytes of a file of /proc or /sys; none when it is gone. One that @is_short comes with one read."""
    fd = -1
    try:
        fd = os.open(path, os.O_RDONLY)
        data = part = os.read(fd, 4096)
        while part and not is_short:
            part = os.read(fd, 4096)
            data += part
        return data
    except OSError as error:
        if error.errno not in GONE:
            raise
        return b""
    finally:
        if fd >= 0:
            os.close(fd)


def proc_stat(pid):
    """(ppid, state) of a process, or None when it is gone."""
    text = _read(f"/proc/{pid}/stat", is_short=True)
    if not text:
        return None
    state, ppid = text[text.rindex(b")") + 2 :].split(None, 2)[:2]
    return int(ppid), state.decode()


def is_alive(pid):
    """Whether this process exists and is no zombie."""
    stat = proc_stat(pid)
    return stat is not None and stat[1] != "Z"


def all_pids():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def parents():
    """{pid: ppid} of all processes but zombies."""
    stats = ((pid, proc_stat(pid)) for pid in all_pids())
    return {pid: stat[0] for pid, stat in stats if stat and stat[1] != "Z"}


def turns(pid):
    """How often a process was put on a core."""
    return int(_read(f"/proc/{pid}/schedstat", is_short=True).split()[2])


def await_rest(pid, what):
    """Wait until a process has done all that it can do now: it is on no core between several looks."""
    looks = []

    def rests():
        looks.append(turns(pid))
        return len(looks) > 8 and len(set(looks[-8:])) == 1

    wait_until(rests, 20, f"{what} rests")


def descendants(pid, table=None):
    """Processes below @pid, without zombies. @table: parents(), if the caller has it."""
    below = {}
    for child, parent in (parents() if table is None else table).items():
        below.setdefault(parent, []).append(child)
    found, todo = [], [pid]
    while todo:
        for child in below.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def children(pid):
    """Processes that @pid itself has started, without zombies."""
    return [child for child, parent in parents().items() if parent == pid]


def child_named(pid, name):
    """The child of @pid whose program's name begins with @name; waits until it has executed it."""
    return wait_until(lambda: next((c for c in children(pid) if comm(c).startswith(name)), None), 10, f"{name} has started")


def listed_children(pid):
    """As children() of a process with one thread, without reading every process of the host. While some end, others may
    be missing."""
    try:
        return [int(child) for child in _read(f"/proc/{pid}/task/{pid}/children").split()]
    except OSError:
        return []


def cmdline(pid):
    """Arguments of a process; none when it is gone."""
    try:
        return _read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")
    except OSError:
        return []


def comm(pid):
    return _read(f"/proc/{pid}/comm", is_short=True).decode(errors="replace").strip()


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
        return "keep" not in words and all(_waits(child) for child in listed_children(pid))
    return _waits(pid)


def count_spares(engine):
    """Boxes below an engine that wait in a pool."""
    return sum(is_spare(pid) for pid in listed_children(engine) if cmdline(pid)[:1] == ["millibox-agent"])


def is_spare_group(group):
    """Whether a group is that of a box in a pool."""
    if not POOLED:
        return False
    return all(is_spare(int(pid)) for pid in _read(f"{group}/cgroup.procs").split())


def ids(pid):
    """(real uid, real gid) of a process seen from the host."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("Uid:"):
            uid = int(line.split()[1])
        if line.startswith("Gid:"):
            gid = int(line.split()[1])
    return uid, gid


def fd_count(pid):
    """Open descriptors, but for those of groups that exist: of boxes that live, or made ahead, of zygotes and tenants."""
    names = os.listdir(f"/proc/{pid}/fd")
    return len(names) - sum(_is_group(f"/proc/{pid}/fd/{name}") for name in names)


def _is_group(fd):
    try:
        target = os.readlink(fd)
    except OSError:
        return False
    return ("/box-" in target or "/zygote-" in target or "/t-" in target) and not target.endswith(" (deleted)")


def rss_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def available_memory():
    """Bytes that the host has free."""
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


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


def box_cgroups(instances, engine_lives):
    """Groups of these instances' boxes in every hierarchy: millibox/<instance>/<group>, or
    millibox/<instance>/t-<tenant>/<group>. Where engine_lives(instance), groups of tenants and as many empty groups as an
    engine keeps ready do not count."""
    found = []
    for instance in instances:
        ahead = GROUPS_AHEAD if engine_lives(instance) else 0
        for top in cgroup_tops():
            groups = [group for group in instance_groups(f"{top}/{instance}")
                      if "/zygote-" not in group and not (ahead and (group.endswith(("/engine", "/import")) or is_tenant_group(group)))]
            used = [group for group in groups if _read(f"{group}/cgroup.procs")]
            found += groups if len(groups) - len(used) > ahead else used
    return sorted(found)


def is_tenant_group(group):
    return os.path.basename(group).startswith("t-")


def instance_groups(home):
    """Groups in the directory of an instance, those in groups of tenants included."""
    groups = _directories(home)
    return groups + [inner for group in groups if is_tenant_group(group) for inner in _directories(group)]


def is_claimed(number):
    """Whether an engine has this instance: one that can make groups holds its directories locked. It has swept what an
    earlier one left there, or has taken another number."""
    return any(_is_locked_directory(f"{top}/{number}") for top in cgroup_tops())


def cgroup_tops():
    """The groups of all daemons, one path for each tree."""
    tops = [f"{CGROUP_ROOT}/millibox", *(f"{hierarchy}/millibox" for hierarchy in _directories(CGROUP_ROOT))]
    return [top for top in tops if os.path.isdir(top)]


def is_locked(path):
    """Whether a process holds the lock of this file. Not tried by locking it: that could take it from an engine that
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
    lines = _read("/proc/locks").decode().splitlines()
    return [line.split()[5] for line in lines if "FLOCK" in line and "->" not in line]


def _directories(path):
    """Paths of subdirectories; a group may vanish meanwhile."""
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
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
            number = str((uid - UID_BASE) // UIDS_PER_INSTANCE)
            if number not in instances if is_root() else uid != os.getuid():
                continue
            if (uid - UID_BASE) % UIDS_PER_INSTANCE == 0 if is_root() else _is_zygote(pid):  # or, of root, engine and helper
                continue
            net = os.readlink(f"/proc/{pid}/ns/net")
        except OSError:
            continue
        if net != mine and not is_spare(pid) and (is_root() or not _has_other_engine(pid, homes)):
            found.add((pid, net))
    # A daemon in a network of its own starts its helpers there, some of them late.
    theirs = _networks_of_daemons() if found else set()
    return {(pid, net) for pid, net in found if net not in theirs}


def _is_zygote(pid):
    """Whether it is a zygote of an engine that lives: some start long after their daemon."""
    return comm(pid) == "millibox-zygote" and comm((proc_stat(pid) or (0,))[0]) == "millibox-engine"


def _networks_of_daemons():
    found = set()
    for pid in all_pids():
        if "".join(cmdline(pid)[:1]).endswith("/milliboxd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/ns/net"))
    return found


def _has_other_engine(pid, homes):
    while pid > 1:
        words = cmdline(pid)
        if words[0].endswith("millibox-engine") and not any(homes in word for word in words):
            return True
        pid = (proc_stat(pid) or (0,))[0]
    return False


def wait_until(condition, seconds=10.0, what="condition"):
    """Poll until @condition() is true, less often as time passes. @what, or its result, goes into the failure."""
    seconds *= PATIENCE
    deadline, pause = time.monotonic() + seconds, 0.005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(pause)
        pause = min(pause * 1.2, 0.05)
