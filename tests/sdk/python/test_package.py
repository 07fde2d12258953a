# SPDX-License-Identifier: Apache-2.0
"""The Python package itself: what is generated is current, the README is true, the wheel works in a clean environment."""

import os
import re
import shutil
import subprocess
import sys

import pytest

import millibox

from support.daemon import ROOT

pytestmark = pytest.mark.phases("system")

SDK = ROOT / "sdk/python"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.M | re.S)


def snippets(path):
    """Python blocks, and the text blocks after them: what they print."""
    blocks = BLOCK.findall(path.read_text())
    for (kind, code), following in zip(blocks, [*blocks[1:], ("", "")]):
        if kind == "python":
            yield code, following[1] if following[0] == "text" else None


def test_generated_files_are_current():
    done = subprocess.run([sys.executable, str(SDK / "generate.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_error_code_has_a_class():
    listed = re.findall(r'ERROR_CODE\(\w+, \d+, -?\d+, "([^"]+)"', (ROOT / "lib/base/error_codes.def").read_text())
    assert sorted(millibox.errors.CLASSES) == sorted(set(listed) - {"Sandbox.None"})
    for code, made in millibox.errors.CLASSES.items():
        error = millibox.errors.from_answer(millibox.errors.STATUS[code], {"error_code": code, "error_detail": "why"})
        assert type(error) is made and error.code == code and "why" in str(error)


def test_the_version_is_the_daemons():
    assert f"version: '{millibox.__version__}'" in (ROOT / "meson.build").read_text()


@pytest.mark.parametrize("code, expected", snippets(SDK / "README.md"), ids=lambda text: str(text).splitlines()[-1][:40])
def test_the_readme(daemon, code, expected):
    env = {**os.environ, "MILLIBOX_SOCKET": daemon.socket, "PYTHONPATH": str(SDK / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected


def test_the_wheel_in_a_clean_environment(daemon, tmp_path):
    """pip fetches httpx; what the wheel lacks would show here."""
    def run(*command):
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, cwd=tmp_path)

    # setuptools leaves files beside the sources.
    shutil.copytree(SDK, tmp_path / "source")
    done = run("/usr/bin/python3", "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, tmp_path / "source")
    assert done.returncode == 0, done.stderr
    wheel, = tmp_path.glob("millibox-*.whl")
    done = run("/usr/bin/python3", "-m", "venv", tmp_path / "venv")
    assert done.returncode == 0, done.stderr
    done = run(tmp_path / "venv/bin/pip", "install", "-q", "--no-input", "--disable-pip-version-check", wheel)
    if done.returncode and re.search(r"NewConnectionError|No matching distribution found for httpx|Temporary failure", done.stderr):
        pytest.skip(f"the package index does not answer: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    code = f"""
import asyncio, sys, millibox, millibox.errors
with millibox.Client(socket={daemon.socket!r}) as client, millibox.Sandbox(client) as box:
    print(client.run_code("print(1)").text, box.run_code("x = 2; x").json, millibox.__file__.startswith({str(tmp_path)!r}))
async def main():
    async with millibox.AsyncClient(socket={daemon.socket!r}) as client, millibox.AsyncSandbox(client) as box:
        await box.files.write("a", bytes(2_000_000))
        print((await box.files.stat("a")).size)
asyncio.run(main())
"""
    done = run(tmp_path / "venv/bin/python", "-I", "-c", code)
    assert done.stdout == "1\n 2 True\n2000000\n", done.stderr
    assert list((tmp_path / "venv/lib").rglob("py.typed"))
