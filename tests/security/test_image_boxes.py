# SPDX-License-Identifier: Apache-2.0
"""FS-8: no program in a box on an image can change its system directories; its overlay belongs to the box and names no path
of the host."""

import ctypes
import errno
import os
import pathlib
import subprocess
import tempfile

import pytest

from support import host, oci
from support.daemon import BUILD, Daemon, is_sanitized
from support.sessions import Session

pytestmark = [
    pytest.mark.phases("system", "user", "subid"),
    pytest.mark.vm,
    pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries"),
]

CLONE_NEWNS, CLONE_NEWUSER, MS_RDONLY, MS_REMOUNT = 0x00020000, 0x10000000, 1, 32
NAME = f"named-{os.getpid()}"
LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture(scope="module")
def boxes():
    """A daemon with an imported image and a directory of the operator as the templates `img` and `dir`."""
    layer = oci.busybox_layer() + [oci.folder("lib/"), oci.entry("lib/loaded.so", b"library"), oci.folder("opt/tool/"),
                                   oci.symlink("sbin", "usr/sbin"), oci.folder("usr/sbin/"), oci.folder("var/lib/")]
    data = oci.Image([layer]).bytes()
    with tempfile.TemporaryDirectory(prefix="mbxroots-", dir="/var/tmp") as directory:
        path = pathlib.Path(directory)
        path.chmod(0o755)
        subprocess.run([BUILD / "millibox-import", "--roots", path, "--name", NAME], check=True, capture_output=True, input=data)
        daemon = Daemon(config=f"templates:\n  dirs: [{path}]\n").start()
        try:
            with daemon.client() as client:
                made = client.request("POST", "/api/v1/templates/import?id=img", body=data, headers={"Content-Type": "application/x-tar"})
                assert made.status == 201, made
            with daemon.client() as client:
                assert client.post("/api/v1/templates", {"id": "dir", "name": "dir", "image": NAME}).status == 201
            yield daemon
        finally:
            daemon.stop()
            daemon.remove()


def run(daemon, template, code):
    with daemon.client() as client:
        answer = client.post("/api/v1/execute", {"language": "shell", "code": code, "template_id": template})
        assert answer.status == 200, answer
        return answer.json


def is_subid():
    return os.environ.get("MILLIBOX_TEST_PHASE") == "subid"


CHANGES = [
    "echo x > /etc/ld.so.preload", "echo x >> /etc/passwd", "rm /etc/passwd", "mv /etc /old",
    "echo x > /bin/new", "rm /bin/pwd", "cp /bin/sh /bin/busybox", "mv /bin /old", "chmod 777 /bin",
    "echo x > /lib/loaded.so", "rm /lib/loaded.so", "mkdir /lib/new", "chmod 777 /lib/loaded.so",
    "mkdir /usr/lib", "mkdir /usr/sbin/x", "rm /sbin", "mkdir /lib64", "ln -s /workspace /lib32",
    "mv /opt/millibox /opt/old", "mkdir /opt/tool/x", "mkdir /run/x", "touch /new",
]


@pytest.mark.parametrize("template", ["img", "dir"])
def test_system_directories_cannot_be_changed(boxes, template):
    script = "".join(f"if {change}; then echo 'CHANGED {change}'; fi\n" for change in CHANGES)
    r = run(boxes, template, "mkdir() { busybox mkdir \"$@\"; }\n" + script + "cat /etc/passwd /lib/loaded.so; pwd")
    assert "CHANGED" not in r["stdout"], r["stdout"]
    assert "user:x:1000" in r["stdout"] and r["stdout"].endswith("library/workspace\n"), r


@pytest.mark.parametrize("template", ["img", "dir"])
def test_control_other_directories_can(boxes, template):
    code = "for d in /workspace /tmp /root /var /var/lib; do echo mine > $d/new && echo $d; done; echo more >> /root/secret && cat /root/secret"
    r = run(boxes, template, code)
    wanted = "/workspace\n/tmp\n" if is_subid() else "/workspace\n/tmp\n/root\n/var\n/var/lib\nof root\nmore\n"
    assert r["stdout"] == wanted, r
    if is_subid():
        assert "Read-only file system" in r["stderr"], r


@pytest.mark.parametrize("template", ["img", "dir"])
def test_mounts_name_no_path_of_the_host(boxes, template):
    lines = run(boxes, template, "cat /proc/self/mountinfo")["stdout"].splitlines()
    overlays = [line.split(" - ")[1].split() for line in lines if " - overlay " in line]
    assert overlays
    for _, source, options in overlays:
        assert source == "overlay"
        names = [n for o in options.split(",") if o.startswith(("lowerdir", "upperdir", "workdir")) for n in o.split("=")[1].split(":")]
        assert set(names) <= {"skeleton", "lower", "area/upper", "area/work"}, options
    for line in lines:
        root, point = line.split()[3:5]
        assert "mbxroots" not in line and "img" not in root and NAME not in root, line


def remount_errno(pid):
    """The error when root of a process's user namespace makes the filesystem at / read-only: EPERM if it is another's."""
    child = os.fork()
    if child == 0:
        status = 255
        try:
            for name, kind in (("user", CLONE_NEWUSER), ("mnt", CLONE_NEWNS)):
                fd = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
                if LIBC.setns(fd, kind) < 0:
                    os._exit(254)
            status = 0 if LIBC.mount(None, b"/", None, MS_REMOUNT | MS_RDONLY, None) == 0 else ctypes.get_errno()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not host.is_root(), reason="needs root: enters the namespaces of a box")
def test_the_overlay_belongs_to_the_box(boxes):
    boxes.settle()  # the groups of earlier boxes are looked at, too
    with boxes.client() as client:
        session = Session(client, template_id="img", language="shell", mode="persistent")
        try:
            session.run("0")
            pids = [int(p) for g in boxes.groups() for p in (pathlib.Path(g) / "cgroup.procs").read_text().split()]
            agent = max(pids, key=lambda pid: os.stat(f"/proc/{pid}/ns/user").st_ino)
            assert remount_errno(agent) == 0
        finally:
            session.delete()
        boxes.settle()
        session = Session(client, language="shell", mode="persistent")
        try:
            session.run("0")
            pids = [int(p) for g in boxes.groups() for p in (pathlib.Path(g) / "cgroup.procs").read_text().split()]
            assert remount_errno(max(pids)) == errno.EPERM, "control: the host's root belongs to the engine"
        finally:
            session.delete()


def test_errors_name_no_path_of_the_host(boxes):
    """A root that vanished: the daemon's log has the reason, the client does not."""
    directory = next(pathlib.Path("/var/tmp").glob(f"mbxroots-*/{NAME}")).parent
    (directory / NAME).rename(directory / "gone")
    try:
        with boxes.client() as client:
            run_once = client.post("/api/v1/execute", {"language": "shell", "code": "0", "template_id": "dir"})
        with boxes.client() as client:
            session = client.post("/api/v1/sessions", {"template_id": "dir", "mode": "persistent"})
        for answer in (run_once, session):
            assert answer.status >= 400 or answer.json["status"] == "failed", answer
            for secret in (str(directory), NAME, str(boxes.home)):
                assert secret not in answer.body.decode(), answer
        assert f"root '{NAME}'" in boxes.log()
    finally:
        (directory / "gone").rename(directory / NAME)
