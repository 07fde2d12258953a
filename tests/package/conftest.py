# SPDX-License-Identifier: Apache-2.0
"""What the tests of packages, images and releases share: the packages of this tree, and a clean Debian to install them in."""

import contextlib
import hashlib
import json
import platform
import re
import shutil
import subprocess
import time

import pytest

from support import deb, host
from support.daemon import ROOT

CACHE = ROOT / ".cache/package"
#: A root is made anew after a day, as the mirror's packages change.
ROOT_AGE_S = 86400
SUITE = platform.freedesktop_os_release()["VERSION_CODENAME"]


def need(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip(f"not installed: {' '.join(missing)}; run tools/setup package")


def skip_without_mirror(done):
    if done.returncode and re.search("Temporary failure|Could not (resolve|connect)|Unable to (connect|fetch)|Failed to fetch", done.stderr):
        pytest.skip(f"Debian's mirror is out of reach: {done.stderr.strip().splitlines()[-1]}")


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """{name: path} of the packages of this tree, as "make deb" makes them."""
    if not host.is_root():
        pytest.skip("only root makes roots and installs packages")
    need("dh_python3")
    return deb.build(tmp_path_factory.mktemp("packages"))


def dependencies(packages):
    """What the packages need from Debian, in names of packages."""
    words = ", ".join(deb.field(path, "Depends") for path in packages.values()).split(",")
    names = {re.sub(r"\(.*\)|:any", "", word.partition("|")[0]).strip() for word in words}
    return sorted(names - packages.keys())


def make_root(names):
    """A tar of a Debian with these packages, at most a day old."""
    path = CACHE / f"root-{hashlib.sha256(json.dumps(names).encode()).hexdigest()[:16]}.tar"
    if path.exists() and time.time() - path.stat().st_mtime < ROOT_AGE_S:
        return path
    CACHE.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.tar")
    done = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(names)}", SUITE, str(part)],
                          capture_output=True, text=True, timeout=1800)
    skip_without_mirror(done)
    assert done.returncode == 0, done.stderr
    part.rename(path)
    return path


@pytest.fixture(scope="session")
def clean_tar(packages):
    need("mmdebstrap")
    return make_root(dependencies(packages))


@pytest.fixture(scope="session")
def image(packages, tmp_path_factory):
    need("mmdebstrap")
    path = tmp_path_factory.mktemp("image") / "millibox.tar"
    done = subprocess.run([ROOT / "tools/make-image", path, *packages.values()], capture_output=True, text=True, timeout=1800)
    skip_without_mirror(done)
    assert done.returncode == 0, done.stderr
    return path


@contextlib.contextmanager
def unpacked(tar, folder):
    """A directory with the root file system of a tar."""
    path = folder / "root"
    path.mkdir()
    # The daemon drops root and must get through.
    for above in (path, *list(path.parents)[:3]):
        above.chmod(above.stat().st_mode | 0o055)
    subprocess.run(["tar", "-C", str(path), "-xf", str(tar)], check=True)
    # The root is thrown away: waiting for the disk after each file would take most of the time of an installation.
    if (path / "etc/dpkg/dpkg.cfg.d").is_dir():
        (path / "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n")
    yield path
    subprocess.run(["rm", "-rf", "--one-file-system", str(path)], check=True)


@pytest.fixture
def clean_root(clean_tar, tmp_path_factory):
    """A directory with a Debian that has what the packages depend on, and nothing of Millibox."""
    with unpacked(clean_tar, tmp_path_factory.mktemp("root")) as path:
        yield path
