# SPDX-License-Identifier: Apache-2.0
"""FS-1..7, FD-1..3: what the payload sees, may write, and holds open."""

import json
import os
import pathlib

import pytest
from support import host
from support.sessions import Session

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")


def test_only_the_documented_places_are_writable(client):
    code = """
import os, json
found = []
for top, dirs, files in os.walk('/'):
    dirs[:] = [d for d in dirs if os.path.join(top, d) not in ('/proc', '/usr')]
    if os.access(top, os.W_OK): found.append(top); dirs[:] = []
    found += [os.path.join(top, f) for f in files if not os.path.islink(os.path.join(top, f)) and os.access(os.path.join(top, f), os.W_OK)]
for top, dirs, files in os.walk('/usr'):
    if os.access(top, os.W_OK): found.append(top)
print(json.dumps(sorted(found)))
"""
    found = set(json.loads(client.python(code, timeout=60)["stdout"]))
    devices = {f"/dev/{n}" for n in ("null", "zero", "full", "random", "urandom", "tty")}
    assert found - devices == {"/dev/shm", "/tmp", "/workspace"} or found - devices == {"/dev/shm", "/tmp", "/workspace", "/run/millibox/report.sock"}


def test_writing_anywhere_else_fails(client):
    code = """
import os
for p in ('/x', '/etc/x', '/usr/x', '/usr/bin/x', '/bin/x', '/dev/x', '/run/x', '/run/millibox/x', '/opt/x', '/opt/millibox/x', '/proc/x', '/var/x', '/root/x', '/home/x', '/lib/x', '/sys/x'):
    try: open(p, 'w'); print('WROTE', p)
    except OSError: pass
for p in ('/etc/passwd', '/usr/bin/python3', '/opt/millibox/runners/python/run.py', '/run/millibox/main.py', '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/self/oom_score_adj', '/proc/self/uid_map'):
    try: os.close(os.open(p, os.O_WRONLY)); print('OPENED', p)
    except OSError: pass
"""
    r = client.python(code)
    assert r["stdout"] == "" and r["exit_code"] == 0, r


def test_host_files_are_not_there(client):
    marker = pathlib.Path(f"/var/tmp/mbx-marker-{os.getpid()}")  # other test runs have their own
    marker.write_text("host")
    try:
        code = f"""
import os
for p in ('{marker}', '/etc/shadow', '/etc/machine-id', '/root', '/home', '/var/log', '/boot', '/run/dbus', '/run/systemd', '/srv', '/mnt', '/media', '/sys/kernel', '/var/lib', '/etc/ssh'):
    try:
        os.stat(p); print('THERE', p)
    except FileNotFoundError: pass
"""
        assert client.python(code)["stdout"] == ""
        assert marker.exists()  # the control: the path is right
    finally:
        marker.unlink()


def test_mount_table_reveals_nothing_of_the_host(client):
    r = client.shell("cat /proc/self/mountinfo")
    for word in ("upperdir", "/home", "/root", str(pathlib.Path(__file__).parents[2])):
        assert word not in r["stdout"], word
    types = {line.split(" - ")[1].split()[0] for line in r["stdout"].splitlines()}
    assert not types & {"overlay", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "bpf"}
    points = [line.split()[4] for line in r["stdout"].splitlines()]
    options = {line.split()[4]: line.split()[5].split(",") for line in r["stdout"].splitlines()}
    for point in points:
        assert "nosuid" in options[point], point
        if not point.startswith("/dev/") or point == "/dev/shm":
            assert "nodev" in options[point], point
        if point not in ("/workspace", "/tmp", "/dev/shm"):
            assert "ro" in options[point] or point.startswith("/dev/") or point == "/run/millibox", (point, options[point])
    assert not any("shared:" in line or "master:" in line for line in r["stdout"].splitlines())


SENSITIVE = ["kcore", "keys", "key-users", "kallsyms", "kpagecount", "kpageflags", "timer_list", "sched_debug", "latency_stats", "interrupts", "sysrq-trigger", "kmsg", "scsi", "acpi", "bus", "irq"]


@pytest.mark.parametrize("name", SENSITIVE)
def test_sensitive_proc_is_masked_under_every_spelling(client, name):
    code = f"""
import os
for p in ('/proc/{name}', '/proc/./{name}', '//proc//{name}', '/proc/self/../{name}', '/proc/self/root/proc/{name}', '/proc/1/../{name}', '/proc/thread-self/../../{name}'):
    try:
        if os.path.isdir(p): data = os.listdir(p)
        else:
            fd = os.open(p, os.O_RDONLY | os.O_NONBLOCK); data = os.read(fd, 100)
        if data: print('READ', p, data[:40])
    except OSError: pass
"""
    r = client.python(code)
    assert r["stdout"] == "" and r["exit_code"] == 0, r


def test_control_sensitive_proc_is_readable_outside():
    if not host.is_root():
        pytest.skip("needs root: the kernel hides it from an ordinary user by itself")
    assert any(pathlib.Path(f"/proc/{n}").exists() for n in SENSITIVE)
    assert pathlib.Path("/proc/interrupts").read_text()


def test_proc_shows_own_processes_only(client):
    r = client.python("import os; print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()) == [os.getpid()], os.path.exists('/proc/1'))")
    assert r["stdout"] == "True False\n"


def test_kernel_settings_are_not_writable(client):
    code = """
import os
for top, dirs, files in os.walk('/proc/sys'):
    for f in files:
        p = os.path.join(top, f)
        try: os.close(os.open(p, os.O_WRONLY)); print('OPEN', p)
        except OSError: pass
"""
    assert client.python(code, timeout=60)["stdout"] == ""


def test_no_sysfs_nor_cgroupfs(client):
    r = client.shell("ls -A /sys 2>/dev/null | wc -l; cut -d' ' -f3 /proc/self/mounts | grep -cE 'sysfs|cgroup'")
    assert r["stdout"].split() == ["0", "0"]


def test_devices_are_the_harmless_few(client):
    r = client.python("""
import os, stat
for top, dirs, files in os.walk('/dev'):
    for f in files:
        s = os.lstat(os.path.join(top, f))
        if stat.S_ISCHR(s.st_mode) or stat.S_ISBLK(s.st_mode): print(os.path.join(top, f))
for op in (lambda: os.rename('/dev/null', '/dev/x'), lambda: os.unlink('/dev/null'), lambda: os.symlink('/x', '/dev/x'), lambda: os.chmod('/dev/null', 0)):
    try: op(); print('CHANGED')
    except OSError: pass
os.write(os.open('/dev/null', os.O_WRONLY), b'x'); assert len(os.urandom(5)) == 5
""")
    assert set(r["stdout"].split()) <= {f"/dev/{n}" for n in ("null", "zero", "full", "random", "urandom", "tty")}


@pytest.mark.parametrize("language,code", [
    ("python", "import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd')), [os.readlink(f'/proc/self/fd/{i}').split(':')[0] for i in (0,1,2)], os.getcwd())"),
    ("shell", "exec python3 -c \"import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd')), [os.readlink(f'/proc/self/fd/{i}').split(':')[0] for i in (0,1,2)], os.getcwd())\""),
])  # fmt: skip
def test_descriptors_are_stdio_only(client, language, code):
    """FD-1. The listing itself holds one more while it is read. A program whose process waited in a pool has the channel
    over which its request came, as runners of sessions have: its number is the last that a process may have."""
    result = client.execute(language, code)
    fds, rest = result["stdout"].split("]", 1)
    fds = json.loads(fds + "]")
    if result["isolation"]["pooled"] and language == "python":
        assert fds.pop() == int(client.execute("python", "import os; print(os.sysconf('SC_OPEN_MAX') - 1)")["stdout"])
    assert fds[:3] == [0, 1, 2] and len(fds) <= 4
    assert "'pipe', 'pipe'" in rest and rest.strip().endswith("/workspace")


def environ(pid):
    return pathlib.Path(f"/proc/{pid}/environ").read_bytes()


def test_environment_is_built_from_nothing(make_daemon):
    daemon = make_daemon(env={"MBX_SECRET": "leak"}).start()
    with daemon.client() as c:
        env = dict(l.split("=", 1) for l in c.shell("env -0 | tr '\\0' '\\n'")["stdout"].splitlines())
        if host.is_root():
            assert b"MBX_SECRET=leak" in environ(daemon.pid)  # control: the daemon has it
            daemon.settle()  # a process of the first box may be gone before it is looked at
            session = Session(c, mode="persistent")
            session.run("0")
            boxes = daemon.box_pids()
            assert boxes and not any(b"MBX_SECRET" in environ(pid) for pid in boxes)
            session.delete()
    allowed = {"PATH", "HOME", "LANG", "TMPDIR", "USER", "PWD", "SHLVL", "_", "OLDPWD", "LC_ALL", "LOGNAME", "SHELL"}
    assert set(env) <= allowed, env
    assert env["HOME"] == "/workspace"
    for part in env["PATH"].split(":"):
        assert part.startswith("/usr") or part == "/bin"


def test_agent_program_cannot_be_reached(client):
    """FD-3, CVE-2019-5736."""
    code = """
import os, glob
for p in ['/proc/1/exe', '/proc/self/exe'] + glob.glob('/proc/[0-9]*/exe'):
    try: os.close(os.open(p, os.O_WRONLY)); print('OPEN', p)
    except OSError: pass
try: os.readlink('/proc/1/exe'); print('SAW')
except OSError: pass
"""
    assert client.python(code)["stdout"] == ""


def test_dot_dot_of_root_is_root(client):
    r = client.python("import os; print(os.stat('/').st_ino == os.stat('/..').st_ino, os.listdir('/') == os.listdir('/../../..'))")
    assert r["stdout"] == "True True\n"


def test_workspace_is_private_and_empty(client):
    client.shell("echo secret > /workspace/s; echo secret > /tmp/s; echo secret > /dev/shm/s")
    r = client.shell("ls -A /workspace /tmp /dev/shm | grep -v : | grep . | wc -l; ls -ld /workspace | cut -c1-10")
    assert r["stdout"].split()[0] == "0"


def test_files_of_a_request_follow_no_link(client):
    session = Session(client, mode="persistent")
    assert session.run("open('d/f').read()", files={"d/f": "inside"})["result"] == "inside"  # control: without a link
    session.run("import os, shutil; shutil.rmtree('d'); os.symlink('/tmp', 'd')")
    answer = client.post(f"{session.path}/execute", {"code": "1", "wait": True, "files": {"d/f": "x"}})
    assert answer.status != 200 or answer.json["status"] != "success", answer
    assert session.run("os.listdir('/tmp')")["result"] == []
    session.delete()


def test_every_writable_area_has_room_for_few_bytes_and_inodes(client):
    code = """
import json, os
print(json.dumps([[s.f_blocks * s.f_frsize, s.f_files] for s in map(os.statvfs, ('/workspace', '/tmp', '/dev/shm'))]))
"""
    areas = json.loads(client.python(code, resources={"memory": "256Mi"})["stdout"])
    assert len(areas) == 3
    for size, inodes in areas:
        assert 0 < size < 256 << 20 and 0 < inodes <= 100_000, areas
    assert sum(size for size, _ in areas) < 256 << 20  # a full disk is not an OOM kill


def test_no_socket_of_the_host_is_visible(client):
    code = """
import os, socket, stat
own = [socket.socket(socket.AF_UNIX) for _ in range(2)]
own[0].bind('/tmp/own'); own[1].bind('\\0own')
for top, dirs, files in os.walk('/'):
    dirs[:] = [d for d in dirs if os.path.join(top, d) not in ('/proc', '/usr')]
    for name in files:
        if stat.S_ISSOCK(os.lstat(os.path.join(top, name)).st_mode): print(os.path.join(top, name))
print(*(line.split()[-1] for line in list(open('/proc/net/unix'))[1:] if '/' in line or '@' in line))
"""
    seen = set(client.python(code)["stdout"].split())
    assert {"/tmp/own", "@own"} <= seen <= {"/tmp/own", "@own", "/run/millibox/report.sock"}


@pytest.mark.parametrize("target", ["/etc", "/proc/self/fd", "/"])
def test_the_working_directory_is_in_the_workspace(client, target):
    session = Session(client, mode="persistent")
    session.run(f"import os; os.mkdir('real'); os.symlink({target!r}, 'link')")

    def where(directory):
        answer = client.post(f"/api/v1/sandboxes/{session.id}/exec", {"command": "pwd", "working_dir": directory})
        return answer.json.get("stdout", "").strip() if answer.status == 200 else None

    assert where("/workspace/real") == "/workspace/real"  # control
    for directory in ("/workspace/link", "link", target, "/workspace/../etc", "../etc"):
        assert where(directory) in (None, ""), directory
    session.delete()
