# SPDX-License-Identifier: Apache-2.0
"""Debian packages that a test makes and looks into."""

import os
import subprocess

from support.daemon import ROOT

NAMES = ("libmillibox-dev", "libmillibox0", "millibox", "python3-millibox")


def build(out, source=ROOT, **env):
    """{name: path} of packages that tools/make-deb makes."""
    done = subprocess.run([str(source / "tools/make-deb"), str(out)], capture_output=True, text=True, timeout=3600, env={**os.environ, **env})
    assert done.returncode == 0, (done.stdout[-4000:], done.stderr[-4000:])
    return by_name(done.stdout.split())


def by_name(paths):
    return {path.rsplit("/", 1)[1].partition("_")[0]: path for path in sorted(map(str, paths))}


def field(path, name):
    return subprocess.check_output(["dpkg-deb", "-f", path, name], text=True).strip()


def with_version(path, version, folder):
    """A copy of a package that says another version."""
    tree = folder / f"tree-{version}"
    subprocess.run(["dpkg-deb", "-R", path, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace(field(path, "Version"), version))
    copy = folder / f"{field(path, 'Package')}_{version}.deb"
    subprocess.run(["dpkg-deb", "-b", "--root-owner-group", "-Znone", tree, copy], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["rm", "-r", tree], check=True)
    return str(copy)


def contents(path):
    """{path: (mode, owner)}, without a leading dot."""
    lines = subprocess.check_output(["dpkg-deb", "-c", path], text=True).splitlines()
    return {words[5].removeprefix("."): (words[0], words[1]) for words in (line.split(None, 5) for line in lines)}
