# SPDX-License-Identifier: Apache-2.0
"""A file on a disk that boxes can read and that can be dropped from the page cache."""

import contextlib
import os
import pathlib
import subprocess
import tempfile

import pytest

from support import oci
from support.daemon import BUILD


def _is_on_disk(path):
    return os.major(os.stat(path).st_dev) != 0


class DiskFile:
    """@inside: where a box sees it; @roots: the directory of its root, None for the host's."""

    def __init__(self, path, inside, roots=None):
        self.path, self.inside, self.roots = path, inside, roots

    def make_cold(self):
        fd = os.open(self.path, os.O_RDONLY)
        with contextlib.suppress(OSError):  # nothing to write on a read-only file system
            os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)

    def disk(self):
        """Its number: that of the whole disk, if the file system is on a partition."""
        dev = os.stat(self.path).st_dev
        node = pathlib.Path(f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}").resolve()
        return ((node.parent if (node / "partition").exists() else node) / "dev").read_text().strip()

    def config(self):
        return f"templates:\n  dirs: [{self.roots}]\n" if self.roots else ""

    def prepare(self, client):
        """Once per daemon, before run()."""
        if self.roots:
            assert client.post("/api/v1/templates", {"id": "bb", "name": "bb", "image": "bb"}).status == 201

    def run(self, client, code):
        """The result of a shell program that can read it."""
        body = {"language": "shell", "code": code, **({"template_id": "bb"} if self.roots else {})}
        answer = client.post("/api/v1/execute", body)
        assert answer.status == 200, answer
        return answer.json


@contextlib.contextmanager
def disk_file(size):
    """A new one in an image's root, or a library of the host, where /var/tmp is in memory."""
    if not _is_on_disk("/var/tmp"):
        libraries = (p for p in pathlib.Path("/usr/lib").rglob("*.so*") if not p.is_symlink() and p.is_file())
        largest = max(libraries, key=lambda p: p.stat().st_size)
        if not _is_on_disk(largest) or largest.stat().st_size < size:
            pytest.skip("needs a file on a disk")
        yield DiskFile(largest, largest)
        return
    with tempfile.TemporaryDirectory(prefix="mbxroots-", dir="/var/tmp") as directory:
        roots = pathlib.Path(directory)
        roots.chmod(0o755)
        subprocess.run([BUILD / "millibox-import", "--roots", roots, "--name", "bb"], check=True, capture_output=True,
                       input=oci.Image([oci.busybox_layer()]).bytes())
        path = roots / "bb/root/data"
        path.write_bytes(os.urandom(size))
        path.chmod(0o644)
        yield DiskFile(path, "/root/data", roots)
