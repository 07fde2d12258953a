# SPDX-License-Identifier: Apache-2.0
"""Static C probes: compiled once, run inside a box and, as the negative control, outside."""

import base64
import pathlib
import subprocess
import tempfile

from support import host

SOURCES = pathlib.Path(__file__).resolve().parents[1] / "security" / "probes"
HEADERS = ["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"]


class Probe:
    def __init__(self, name, directory):
        self.name = name
        self.path = pathlib.Path(directory) / name
        subprocess.run(
            ["musl-gcc", "-static", "-Os", "-Wall", "-Werror", *HEADERS, "-o", str(self.path), str(SOURCES / f"{name}.c")],
            check=True,
        )

    def inside(self, client, *args, prefix="", **fields):
        """Runs it in a fresh box. Return: the result object."""
        code = f"chmod +x {self.name} && {prefix} ./{self.name} \"$@\""
        files = {self.name: {"base64": base64.b64encode(self.path.read_bytes()).decode()}}
        return client.shell(code, files=files, args=list(args), **fields)

    def outside(self, *args):
        """Runs it unconfined, in its own mount and network namespaces so that it does no harm."""
        wrap = ["unshare", "--mount", "--net", "--uts", "--fork"]
        if not host.is_root():
            wrap = ["unshare", "--user", "--map-root-user", "--mount", "--net", "--uts", "--fork"]
        with tempfile.TemporaryDirectory(prefix="mbxprobe-") as cwd:
            run = subprocess.run([*wrap, str(self.path), *args], capture_output=True, text=True, cwd=cwd)
        return run.stdout


def parse(stdout):
    """{'mount': 'EPERM', ...} of a probe's lines."""
    return dict(line.split(" ", 1) for line in stdout.splitlines())
