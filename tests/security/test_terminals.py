# SPDX-License-Identifier: Apache-2.0
"""Terminals of boxes: their own, made by the agent only, without a way to type into them."""

import errno
import json
import os
import pty
import sys

import pytest

from support.sessions import Session

pytestmark = pytest.mark.phases("system")

# What a program on a terminal finds, as JSON after a mark.
PROBE = r"""
import errno, fcntl, json, os, sys, termios
def attempt(call, *args):
    try:
        call(*args)
    except OSError as e:
        return errno.errorcode[e.errno]
    return "done"
found = {
    "devices": sorted(os.listdir("/dev/pts")),
    "tty": os.ttyname(0),
    "reopened": attempt(os.open, os.ttyname(0), os.O_RDWR | os.O_NOCTTY),
    "controlling": attempt(os.open, "/dev/tty", os.O_RDWR),
    "ptmx": attempt(os.open, "/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY),
    "ptmx_mode": oct(os.stat("/dev/pts/ptmx").st_mode & 0o777) if os.path.exists("/dev/pts/ptmx") else None,
    "modes": attempt(termios.tcgetattr, 0),
    "size": attempt(fcntl.ioctl, 0, termios.TIOCGWINSZ, b"\0" * 8),
    "group": attempt(os.tcgetpgrp, 0),
    "type": attempt(fcntl.ioctl, 0, termios.TIOCSTI, b"x"),
    "exclusive": attempt(fcntl.ioctl, 0, termios.TIOCEXCL),
}
if len(sys.argv) < 2:  # unconfined these would change the machine
    found["console"] = attempt(fcntl.ioctl, 0, 0x541C, b"\x03")
    found["take_console"] = attempt(fcntl.ioctl, 0, 0x541D)
    found["discipline"] = attempt(fcntl.ioctl, 0, termios.TIOCSETD, b"\x02\0\0\0")
print("FOUND" + json.dumps(found) + "DNUOF")
"""


def found_in(text):
    return json.loads(text.split("FOUND")[1].split("DNUOF")[0])


@pytest.fixture
def session(client):
    made = Session(client, mode="persistent")
    yield made
    made.delete()


def probe(session):
    result = session.result(session.start(PROBE, tty={"rows": 24, "cols": 2000 // 2}))
    assert result["status"] == "success", result
    return found_in(result["stdout"].replace("\r\n", ""))


def test_a_terminal_allows_what_programs_need_and_no_injection(session):
    found = probe(session)
    assert found["tty"] == "/dev/pts/0" and found["devices"] == ["0", "ptmx"]
    for needed in ("reopened", "controlling", "modes", "size", "group"):
        assert found[needed] == "done", found
    for refused in ("type", "console", "take_console", "discipline"):
        assert found[refused] == "EPERM", found
    # Only the agent makes terminals.
    assert found["ptmx"] == "EACCES" and found["ptmx_mode"] == "0o600", found


def test_control_unconfined_it_can_be_done():
    """Outside a box the same probe types into its terminal and makes another."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", PROBE, "unconfined"])
    text = b""
    try:
        while data := os.read(fd, 65536):
            text += data
    except OSError as e:
        assert e.errno == errno.EIO
    os.waitpid(pid, 0)
    os.close(fd)
    found = found_in(text.decode().replace("\r\n", ""))
    assert found["type"] in ("done", "EIO"), found  # EIO: dev.tty.legacy_tiocsti is 0
    assert found["reopened"] == "done", found
    assert found["ptmx"] == "done" or not os.access("/dev/pts/ptmx", os.R_OK), found


def test_terminals_of_two_sessions_are_apart(client, session):
    with_terminal = session.start("print('up', flush=True); input()", tty={}, timeout=300)
    session.wait_for_output(with_terminal, "up")
    other = Session(client, mode="persistent")
    try:
        assert probe(other)["devices"] == ["0", "ptmx"]  # its own, not two
        assert sorted(probe(session)["devices"]) == ["0", "1", "ptmx"]
    finally:
        other.delete()
    # Nor are they the host's.
    assert session.run("import os; os.stat('/dev/pts').st_dev")["result"] != os.stat("/dev/pts").st_dev


def test_a_box_of_one_execution_has_none(client):
    answer = client.python("import os; print(os.listdir('/dev/pts'))")
    assert answer["stdout"] == "[]\n", answer


def test_a_program_without_a_terminal_has_no_controlling_one(session):
    code = "import os\ntry:\n    os.open('/dev/tty', os.O_RDWR)\nexcept OSError as e:\n    print(e.errno)"
    held = session.start("print('up', flush=True); input()", tty={}, timeout=300)
    session.wait_for_output(held, "up")
    assert session.result(session.start(code, background=True))["stdout"] == f"{errno.ENXIO}\n"
    # Nor can it make another's its own.
    steal = ("import os, fcntl, termios\nfd = os.open('/dev/pts/0', os.O_RDWR | os.O_NOCTTY)\n"
             "try:\n    fcntl.ioctl(fd, termios.TIOCSCTTY, 1)\n    print('stolen')\nexcept OSError as e:\n    print(e.errno)")
    assert session.result(session.start(steal, background=True))["stdout"] == f"{errno.EPERM}\n"
