# SPDX-License-Identifier: Apache-2.0
"""The TypeScript SDK: the package that npm makes of it, installed into a directory of its own beside the suites of node:test."""

import os
import shutil
import subprocess

import pytest

from support.daemon import ROOT

SDK = ROOT / "sdk/typescript"
SUITES = ROOT / "tests/sdk/typescript"


class Workshop:
    """A directory in which the package is installed as users install it."""

    def __init__(self, path):
        self.path = path

    def run(self, *command, timeout=400, cwd=None, **env):
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout,
                              cwd=cwd or self.path, env={**os.environ, "NO_COLOR": "1", **env})

    def node(self, *words, timeout=400, **env):
        """Run Node.js. Return: what it printed."""
        done = self.run("node", *words, timeout=timeout, **env)
        assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def tsc(self, *words, cwd=None):
        """Run the compiler. Return: its complaints."""
        done = self.run("node", SDK / "node_modules/typescript/bin/tsc", *words, cwd=cwd)
        return done.stdout + done.stderr


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """The package is built from a copy of the sources: nothing is written beside them."""
    if not (SDK / "node_modules/.package-lock.json").exists():
        pytest.skip("the compiler is not installed: tools/setup test")
    made = Workshop(tmp_path_factory.mktemp("typescript"))
    source = made.path / "source"
    shutil.copytree(SDK, source, ignore=shutil.ignore_patterns("node_modules", "dist"))
    (source / "node_modules").symlink_to(SDK / "node_modules")
    # prepack compiles.
    done = made.run("npm", "pack", "--silent", "--pack-destination", made.path, cwd=source)
    assert done.returncode == 0, done.stdout + done.stderr
    archive, = made.path.glob("millibox-*.tgz")
    (made.path / "package.json").write_text('{"private": true, "type": "module"}\n')
    done = made.run("npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", "--legacy-peer-deps", archive)
    assert done.returncode == 0, done.stdout + done.stderr
    (made.path / "node_modules/ai").symlink_to(SDK / "node_modules/ai")
    for suite in [*SUITES.glob("*.mjs"), *SUITES.glob("*.ts")]:
        shutil.copy(suite, made.path)
    return made
