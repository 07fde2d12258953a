# SPDX-License-Identifier: Apache-2.0
"""For tests of daemons that a process starts for itself."""

import os
import pathlib
import tempfile

import pytest

from support import host, isolation
from support.daemon import BUILD


@pytest.fixture
def home(monkeypatch):
    """A host without a daemon, and a directory with a path short enough for sockets."""
    if pathlib.Path("/run/millibox/millibox.sock").exists():
        pytest.skip("a daemon may listen at the default socket")
    with tempfile.TemporaryDirectory(prefix="mbxsdk-") as path:
        home = pathlib.Path(path)
        home.chmod(0o755)
        (home / "tmp").mkdir()
        for name, value in {**isolation.environment(), "HOME": path, "TMPDIR": f"{path}/tmp", "XDG_RUNTIME_DIR": path,
                            "MILLIBOX_RUNTIME_DIR": f"{path}/run", "MILLIBOX_DAEMON": str(BUILD / "milliboxd"),
                            "MILLIBOX_POOLS_ENABLED": "false", "MILLIBOX_ZYGOTES_ENABLED": "false",
                            "MILLIBOX_RUNNERS_CHECK": "false"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(tempfile, "tempdir", f"{path}/tmp")
        yield home
        host.wait_until(lambda: not list((home / "tmp").iterdir()), 20, "no file left")
        host.wait_until(lambda: not ours(home), 20, lambda: f"no process left: {ours(home)}")


def ours(home):
    """Processes with this test's directory in their arguments or environment."""
    found = []
    for pid in host.all_pids():
        words = b""
        for name in ("cmdline", "environ"):
            try:
                words += pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                pass
        if str(home).encode() in words and pid != os.getpid():
            found.append(host.comm(pid))
    return sorted(found)
