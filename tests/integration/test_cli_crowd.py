# SPDX-License-Identifier: Apache-2.0
"""Many commands at once: each waits for its turn, and nothing is lost or run twice."""

import json
import os
import signal
import subprocess

import pytest

from support import crowd, host
from support.daemon import BUILD

pytestmark = pytest.mark.phases("system")

COMMANDS = 60


def start(daemon, *words, stderr=subprocess.PIPE):
    return subprocess.Popen([BUILD / "millibox", "run", "--socket", daemon.socket, *words], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=stderr, text=True)


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["stream", "object"])
def test_nothing_is_lost_in_a_crowd(make_daemon, words):
    served = make_daemon(config=crowd.CROWDED).start()
    commands = [start(served, *words, "-c", f"print({number} * 3)") for number in range(COMMANDS)]
    shown = [command.communicate(timeout=host.HANG_S * 4) for command in commands]
    assert [command.returncode for command in commands] == [0] * COMMANDS, shown
    printed = [json.loads(out)["stdout"] if words else out for out, _ in shown]
    assert printed == [f"{number * 3}\n" for number in range(COMMANDS)]
    assert [err for _, err in shown] == [""] * COMMANDS


def waiting(daemon):
    """A command that waits for its turn, and has said so on its terminal."""
    ours, theirs = os.openpty()
    command = start(daemon, "-c", "print(1)", stderr=theirs)
    os.close(theirs)
    said = os.read(ours, 1000).decode()
    os.close(ours)
    assert "waiting for a turn" in said
    return command


def test_a_command_waits_for_its_turn_and_says_so(make_daemon):
    served = make_daemon(config=crowd.FULL).start()
    with crowd.busy(served):
        waits = waiting(served)
    assert waits.communicate(timeout=host.HANG_S)[0] == "1\n" and waits.returncode == 0


def test_ctrl_c_ends_the_wait(make_daemon):
    served = make_daemon(config=crowd.FULL).start()
    with crowd.busy(served):
        waits = waiting(served)
        waits.send_signal(signal.SIGINT)
        assert waits.communicate(timeout=host.HANG_S)[0] == "" and waits.returncode == 128 + signal.SIGINT
