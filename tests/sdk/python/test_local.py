# SPDX-License-Identifier: Apache-2.0
"""millibox.local(): a daemon of the process, which leaves nothing behind however the process ends."""

import os
import signal
import subprocess
import sys

import pytest

import millibox

from support.daemon import ROOT
from support.own_daemon import home, ours

pytestmark = pytest.mark.phases("system")
__all__ = ["home"]


def start(code):
    """Another Python process with the SDK."""
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "sdk/python/src")})


def test_a_daemon_with_settings_ends_with_its_client(home):
    with millibox.local(settings={"limits.timeout": "200ms"}) as client:
        assert client.run_code("print(1)", timeout=20).text == "1\n"
        assert client.run_code("while True: pass").status == "timeout"
        with millibox.Sandbox(client) as box:
            assert box.run_code("2", timeout=20).json == 2


def test_it_ends_with_the_process(home):
    process = start("import millibox\nfor i in 1, 2: print(millibox.local().run_code('print(42)').text, end='')")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "42\n42\n"), err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_leaves_no_daemon(home, number):
    process = start("import millibox; c = millibox.local(); c.run_code('1'); print('up', flush=True); input()")
    assert process.stdout.readline() == "up\n", process.communicate()
    assert "milliboxd" in ours(home)
    process.send_signal(number)
    process.communicate(timeout=60)


def test_asynchronously(home):
    process = start("""
import asyncio, millibox
async def main():
    async with millibox.async_local() as client:
        print((await client.run_code("print(42)")).text, end="")
asyncio.run(main())""")
    assert process.communicate(timeout=60)[0] == "42\n"


def test_a_running_daemon_is_used(home, make_daemon, monkeypatch):
    served = make_daemon().start()
    monkeypatch.setenv("MILLIBOX_SOCKET", served.socket)
    with millibox.local() as client:
        assert client._transport.endpoint.socket == served.socket and client.health()["status"] == "healthy"


def test_a_daemon_that_cannot_start_explains_why(home):
    with pytest.raises(millibox.MilliboxError, match="did not start(.|\n)*limits.memory"):
        millibox.local(settings={"limits.memory": "lots"})
    with pytest.raises(millibox.MilliboxError, match="did not start"):
        millibox.local(program="/bin/false")
    with pytest.raises(millibox.MilliboxError, match="did not start:\n/nonexistent/milliboxd: No such file"):
        millibox.local(program="/nonexistent/milliboxd")


def test_no_daemon_is_installed(home, monkeypatch):
    monkeypatch.delenv("MILLIBOX_DAEMON")
    monkeypatch.setenv("PATH", str(home))
    monkeypatch.setattr("millibox._local._FOLDERS", str(home))
    with pytest.raises(millibox.MilliboxError, match="not installed"):
        millibox.local()
