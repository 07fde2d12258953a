# SPDX-License-Identifier: Apache-2.0
"""The Debian packages of this build: what is in them, and what installing and removing them changes. tests/package runs
installed programs."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from support import deb, host
from support.daemon import BUILD, ROOT, is_sanitized
from support.root import CLONE, entered

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not host.is_root(), reason="only root installs packages"),
    pytest.mark.skipif(is_sanitized(), reason="programs with sanitizers are not packaged"),
    pytest.mark.skipif(not shutil.which("dh_python3"), reason="debhelper or dh-python is not installed: tools/setup package"),
]

VERSION = "0.1.0~test"


def stage(folder):
    """What this build installs, as if its prefix were /usr. (Its programs would not find each other there.)"""
    subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet", "--destdir", str(folder / "raw")], check=True,
                   stdout=subprocess.DEVNULL)
    options = json.loads(subprocess.check_output(["meson", "introspect", str(BUILD), "--buildoptions"]))
    (prefix,) = [option["value"] for option in options if option["name"] == "prefix"]
    staged = folder / "staged"
    staged.mkdir()
    shutil.move(f"{folder}/raw{prefix}", staged / "usr")
    shutil.move(staged / "usr/etc" if prefix != "/usr" else folder / "raw/etc", staged / "etc")
    unit = staged / "usr/lib/systemd/system/milliboxd.service"
    unit.write_text(unit.read_text().replace(f"{prefix}/etc/", "/etc/").replace(f"{prefix}/bin/", "/usr/bin/"))
    return staged


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deb")
    source = folder / "source"
    source.mkdir()
    for name in ("debian", "tools", "meson.build", "README.md", "CHANGELOG.md"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, source / name)
    shutil.copytree(ROOT / "sdk/python", source / "sdk/python", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    return deb.build(folder / "out", source, DEB_VERSION=VERSION, STAGED=str(stage(folder)), SOURCE_DATE_EPOCH="1700000000",
                     HOME=str(folder))


def test_four_packages_with_their_dependencies(packages):
    assert tuple(packages) == deb.NAMES
    for path in packages.values():
        assert deb.field(path, "Version") == VERSION
    depends = {name: re.split(r" \(.*?\)|, ", deb.field(path, "Depends")) for name, path in packages.items()}
    assert {"libc6", "libmicrohttpd12", "libuv1", "libsqlite3-0", "adduser", "python3"} <= set(depends["millibox"])
    assert "uidmap" in deb.field(packages["millibox"], "Recommends")
    assert "python3-httpx" in depends["python3-millibox"]
    assert deb.field(packages["libmillibox-dev"], "Depends").startswith(f"libmillibox0 (= {VERSION})")
    assert deb.field(packages["python3-millibox"], "Architecture") == "all"


def test_files_and_modes(packages):
    files = {name: deb.contents(path) for name, path in packages.items()}
    assert {"/usr/bin/millibox", "/usr/bin/milliboxd", "/lib/systemd/system/milliboxd.service", "/etc/millibox/millibox.yaml",
            "/usr/share/man/man1/millibox.1.gz", "/usr/share/man/man8/milliboxd.8.gz", "/usr/libexec/millibox/millibox-engine",
            "/usr/share/bash-completion/completions/millibox.bash", "/usr/share/zsh/vendor-completions/_millibox",
            "/usr/share/fish/vendor_completions.d/millibox.fish", "/usr/share/millibox/runners/python/manifest.yaml"} <= files["millibox"].keys()
    assert any(path.startswith("/usr/bin/sandbox-run -> ") for path in files["millibox"])
    assert "/usr/include/millibox.h" in files["libmillibox-dev"]
    assert "/usr/lib/python3/dist-packages/millibox/__init__.py" in files["python3-millibox"]
    for path, (mode, owner) in ((p, what) for listed in files.values() for p, what in listed.items()):
        # Nothing is set-id, and nothing belongs to, or can be written by, anybody but root.
        assert owner == "root/root" and "s" not in mode.lower() and (mode[0] == "l" or (mode[5], mode[8]) == ("-", "-")), (path, mode, owner)


def test_the_unit_and_the_settings_are_debians(packages, tmp_path):
    subprocess.run(["dpkg-deb", "-R", packages["millibox"], tmp_path], check=True)
    unit = (tmp_path / "lib/systemd/system/milliboxd.service").read_text()
    assert "ExecStart=/usr/bin/milliboxd --config /etc/millibox/millibox.yaml\n" in unit
    assert (tmp_path / "DEBIAN/conffiles").read_text() == "/etc/millibox/millibox.yaml\n"
    assert "\nsocket_group: millibox\n" in (tmp_path / "etc/millibox/millibox.yaml").read_text()
    for script in ("postinst", "prerm", "postrm"):
        subprocess.run(["sh", "-n", str(tmp_path / "DEBIAN" / script)], check=True)


#: What dpkg and its helpers keep for themselves.
BOOKKEEPING = re.compile(r"/(var/(lib/(dpkg|systemd|misc)|cache|log)|run/adduser|mnt)(/|$)")


def added(root):
    """Paths that the host does not have, without those that belong to dpkg."""
    paths = root.shell("cd /mnt && find . -mindepth 1 | while read -r path; do [ ! -e \"/$path\" ] || echo \"$path\"; done").splitlines()
    return [path for path in sorted(path.removeprefix(".") for path in paths)
            if not BOOKKEEPING.match(path) and not os.path.lexists(path)]


def has_own_system():
    """Another installed millibox would be replaced, and the test could not tell whose file is left."""
    return pathlib.Path("/usr/bin/milliboxd").exists()


@pytest.mark.skipif(has_own_system(), reason="millibox is installed on this host")
def test_installing_upgrading_removing(packages, tmp_path):
    """In a copy of the host's root, without systemd: nothing is started."""
    newer = deb.with_version(packages["millibox"], "0.1.1", tmp_path)
    place = tmp_path / "clone"
    place.mkdir()
    os.chmod(tmp_path, 0o755)
    with entered(place, CLONE) as root:
        groups = root.shell("cat /etc/group")
        root.run("dpkg", "-i", *packages.values())
        assert root.shell("getent group millibox").startswith("millibox:x:")
        assert root.shell("millibox version; sandbox-run --help | head -n 1").splitlines()[0].startswith("millibox 0.")
        assert "libmillibox.so.0" in root.shell("/sbin/ldconfig -p")
        assert root.shell("pkg-config --modversion millibox")
        assert root.shell("/usr/bin/python3 -c 'import millibox; print(millibox.__file__)'").startswith("/usr/lib/python3/")
        assert not root.run("pgrep", "milliboxd", ok=False).stdout
        # An operator's settings and the daemon's state stay, through upgrade and removal.
        root.shell("echo 'log_level: warn' >> /etc/millibox/millibox.yaml; mkdir -p /var/lib/millibox; echo > /var/lib/millibox/millibox.db")
        root.run("dpkg", "-i", newer)
        assert root.shell("dpkg-query -Wf '${Version}' millibox") == "0.1.1"
        root.run("dpkg", "-r", *packages)
        kept = added(root)
        assert "/etc/millibox/millibox.yaml" in kept and "/var/lib/millibox/millibox.db" in kept and "/usr/bin/milliboxd" not in kept, kept
        assert "log_level: warn" in root.shell("cat /etc/millibox/millibox.yaml")
        root.run("dpkg", "-P", *packages)
        assert (added(root), root.shell("cat /etc/group")) == ([], groups)
