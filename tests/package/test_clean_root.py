# SPDX-License-Identifier: Apache-2.0
"""The Debian packages in a clean Debian: programs run, an upgrade keeps state, a purge leaves nothing."""

import json
import os
import shutil
import subprocess

import pytest

from support import deb, host
from support.root import entered

pytestmark = pytest.mark.phases("package")

#: What belongs to dpkg, to apt and to the C library's cache of libraries.
NOT_OURS = ("/var/lib/dpkg", "/var/lib/apt", "/var/lib/systemd", "/var/cache", "/var/log", "/run/adduser", "/dev", "/proc", "/sys",
            "/etc/group-", "/etc/gshadow-", "/etc/ld.so.cache", "/tmp")


def tree(root):
    """{path: first 12 of its checksum, or what it is}"""
    found = {}
    for path, folders, files in os.walk(root):
        for name in (*folders, *files):
            inside = os.path.join(path, name).removeprefix(str(root))
            if not inside.startswith(NOT_OURS):
                full = f"{root}{inside}"
                found[inside] = os.readlink(full) if os.path.islink(full) else "directory" if os.path.isdir(full) else _content(full)
    return found


def _content(path):
    with open(path, "rb") as file:
        return file.read() if path.endswith(("/group", "/gshadow", "/passwd")) else os.fstat(file.fileno()).st_size


def install(root, folder, paths):
    """As the README says."""
    names = []
    for path in paths:
        shutil.copy(path, folder / "tmp")
        names.append("/tmp/" + os.path.basename(path))
    root.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *names)
    for name in names:
        os.unlink(f"{folder}{name}")


def millibox(root, *words, ok=True):
    return root.run("millibox", *words, ok=ok).stdout.strip()


def group_of_socket(root):
    return root.shell("stat -c %G /run/millibox/millibox.sock").strip()


def status(root):
    return json.loads(millibox(root, "status", "--json"))


@pytest.fixture
def root(clean_root):
    with entered(clean_root) as root:
        yield root
        root.run("millibox", "down", "--now", ok=False) if (clean_root / "usr/bin/millibox").exists() else None


def test_installed_used_upgraded_removed_purged(packages, clean_root, root, tmp_path):
    before = tree(clean_root)
    older = deb.with_version(packages["millibox"], "0.0.9", tmp_path)
    install(root, clean_root, [older, *(path for name, path in packages.items() if name != "millibox")])
    assert not root.run("pgrep", "milliboxd", ok=False).stdout, "nothing is started where systemd does not run"
    assert millibox(root, "doctor"), "it exits with 0: all required layers are there"
    # Without a daemon, and with one.
    assert millibox(root, "run", "-c", "print(6 * 7)") == "42"
    millibox(root, "up", "-d")
    assert status(root)["isolation"] == {"mode": "strict", "missing": []} and status(root)["log"] == "/var/log/milliboxd.log"
    assert millibox(root, "run", "-l", "shell", "-c", "echo $((6 * 7))") == "42"
    assert root.shell('python3 -c "import millibox\nwith millibox.Sandbox() as box: print(box.run_code(\'6 * 7\').text)"') == "42\n"
    assert root.shell("python3 -c 'import ctypes; f = ctypes.CDLL(\"libmillibox.so.0\").millibox_version; f.restype = ctypes.c_char_p; print(f())'")
    # State and settings of the older one.
    millibox(root, "template", "create", "kept", "--memory", "96Mi")
    session = millibox(root, "session", "create", "--mode", "ephemeral").split()[0]
    root.shell("echo 'log_level: warn' >> /etc/millibox/millibox.yaml")
    first = status(root)["pid"]
    install(root, clean_root, [packages["millibox"]])
    assert root.shell("dpkg-query -Wf '${Version}' millibox") == deb.field(packages["millibox"], "Version")
    assert "log_level: warn" in root.shell("cat /etc/millibox/millibox.yaml")
    assert status(root)["pid"] == first, "who started it without systemd restarts it, too"
    millibox(root, "down")
    millibox(root, "up", "-d")
    assert "96Mi" in millibox(root, "template", "show", "kept") and session in millibox(root, "session", "list")
    assert group_of_socket(root) == "millibox"
    assert millibox(root, "run", "-c", "print(6 * 7)") == "42"
    millibox(root, "down")
    # Control of the group above: it comes from the settings of the system, which "up" reads unless another file is given.
    millibox(root, "up", "-d", "--config", "/dev/null")
    assert group_of_socket(root) != "millibox"
    millibox(root, "down")
    host.wait_until(lambda: not root.run("pgrep", "millibox", ok=False).stdout, host.HANG_S, "every process has ended")
    # What the operator made stays until the purge.
    root.run("dpkg", "-r", *packages)
    assert (clean_root / "var/lib/millibox/millibox.db").exists() and (clean_root / "etc/millibox/millibox.yaml").exists()
    assert not (clean_root / "usr/bin/milliboxd").exists() and not (clean_root / "usr/libexec/millibox").exists()
    root.run("dpkg", "-P", *packages)
    after = tree(clean_root)
    assert {path: (before.get(path), after.get(path)) for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == {}


def test_an_ordinary_user_runs_programs(packages, clean_root, root):
    """Without subordinate ids and cgroups: strict says what is missing, and best effort works."""
    install(root, clean_root, packages.values())
    root.run("useradd", "--create-home", "alice")
    as_alice = ["setpriv", "--reuid=alice", "--regid=alice", "--clear-groups", "env", "HOME=/home/alice"]
    done = root.run(*as_alice, "millibox", "run", "-c", "print(6 * 7)", ok=False)
    assert done.returncode == 125 and "--isolation best-effort" in done.stderr.splitlines()[-1], done
    done = root.run(*as_alice, "MILLIBOX_ISOLATION=best-effort", "millibox", "run", "-c", "print(6 * 7)")
    assert done.stdout == "42\n"
    # The daemon of the system is for the members of its group.
    millibox(root, "up", "-d")
    assert root.run(*as_alice, "millibox", "status", "--json", ok=False).returncode == 1
    root.run("usermod", "-aG", "millibox", "alice")
    member = ["setpriv", "--reuid=alice", "--regid=alice", "--init-groups", "env", "HOME=/home/alice"]
    assert root.run(*member, "millibox", "run", "-c", "print(6 * 7)").stdout == "42\n"
    millibox(root, "down")


def test_lintian_finds_nothing(packages):
    if not shutil.which("lintian"):
        pytest.skip("not installed: lintian; run tools/setup package")
    done = subprocess.run(["lintian", "--allow-root", "--profile", "debian", "--tag-display-limit", "0", *packages.values()],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and not done.stdout, done.stdout
