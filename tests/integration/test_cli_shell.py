# SPDX-License-Identifier: Apache-2.0
"""millibox shell in a real terminal (tmux), and session exec --background."""

import json
import os
import re
import shlex
import signal

import pytest

from support import host, tmux
from support.daemon import BUILD
from support.sessions import V1
from test_cli import millibox

pytestmark = pytest.mark.phases("system")

needs_tmux = pytest.mark.skipif(not tmux.is_installed(), reason="tmux is not installed")


class Shell(tmux.Tmux):
    """A terminal of 70 columns and 14 lines, with a plain shell in it."""

    def __init__(self, folder):
        super().__init__(folder, "bash", "--noprofile", "--norc", "-i", size=(70, 14), env={"PS1": "outside> "})
        self.wait(lambda screen: screen == "outside>")

    def wait(self, condition, seconds=20):
        host.wait_until(lambda: condition(self.screen().rstrip("\n")), seconds, lambda: f"the screen, which is:\n{self.screen()}")

    def clear(self, prompt):
        """Clear the screen. The next text comes at the prompt: what is typed earlier appears on the screen twice."""
        self.type("clear; echo cleared", "Enter")
        self.wait(lambda screen: screen == f"cleared\n{prompt}")


@pytest.fixture
def shell(tmp_path):
    terminal = Shell(tmp_path)
    yield terminal
    terminal.close()


def command(daemon, *words):
    return shlex.join([str(BUILD / "millibox"), "shell", "--socket", str(daemon.socket), *words])


@needs_tmux
def test_a_shell_in_tmux(daemon, client, shell):
    before = client.get(f"{V1}/sessions").json["total"]
    shell.type("clear; " + command(daemon), "Enter")
    shell.wait(lambda s: s == "~$")
    shell.clear("~$")
    shell.type("stty size; tty", "Enter")
    shell.wait(lambda s: s == "cleared\n~$ stty size; tty\n14 70\n/dev/pts/0\n~$")
    # A new size reaches the program, and Ctrl-C what is in the foreground.
    shell.resize(60, 10)
    shell.type("until [ \"$(stty size)\" = '10 60' ]; do sleep 0.1; done; clear; echo $LINES $COLUMNS; stty size", "Enter")
    shell.wait(lambda s: re.match(r"10 60\n10 60\n~\$$", s))
    shell.type("clear; sh -c 'printf going; exec sleep 1000'", "Enter")
    shell.wait(lambda s: s == "going")
    shell.type("C-c")
    shell.wait(lambda s: s == "going^C\n~$")
    shell.type("clear; printf '\\033[3;5Hhere\\033[1;1H'; exit 7", "Enter")
    shell.wait(lambda s: "outside>" in s)
    shell.type("s=$?; clear; echo status $s; stty -a | grep -o ' .\\?icanon'", "Enter")
    shell.wait(lambda s: s == "status 7\n icanon\noutside>")
    host.wait_until(lambda: client.get(f"{V1}/sessions").json["total"] == before, 10, "its session is deleted")


@needs_tmux
def test_a_full_screen_program_in_tmux(daemon, shell, sh):
    sh.run("seq 100 > lines")
    shell.type("clear; " + command(daemon, sh.id, "--", "less", "lines"), "Enter")
    shell.wait(lambda s: s == "\n".join(str(i) for i in range(1, 14)) + "\nlines")
    shell.type("G")
    shell.wait(lambda s: s == "\n".join(str(i) for i in range(88, 101)) + "\n(END)")
    shell.type("q")
    shell.wait(lambda s: s.endswith("outside>"))
    assert sh.run("cat lines | wc -l")["stdout"] == "100\n"


@needs_tmux
def test_a_closed_terminal_ends_the_program_and_restores_the_modes(daemon, client, shell, sh):
    shell.type("clear; " + command(daemon, sh.id, "--", "sh", "-c", "echo going; exec sleep 1000"), "Enter")
    shell.wait(lambda s: s == "going")
    execution = client.get(f"{sh.path}/executions").json["executions"][0]["execution_id"]
    bash = host.child_named(shell.pid(), "bash")
    os.kill(host.child_named(bash, "millibox"), signal.SIGTERM)
    shell.wait(lambda s: "outside>" in s)
    shell.type("s=$?; clear; echo status $s; stty -a | grep -o ' .\\?icanon'", "Enter")
    shell.wait(lambda s: s == "status 143\n icanon\noutside>")
    assert sh.result(execution)["status"] == "cancelled"
    assert sh.run("echo on")["stdout"] == "on\n"


def test_without_a_terminal_it_says_so(daemon):
    done = millibox("shell", "--socket", daemon.socket)
    assert done.returncode == 2 and b"needs a terminal" in done.stderr, done


def test_a_background_execution_of_the_command_line(daemon, sh):
    done = millibox("session", "exec", "--socket", daemon.socket, "--background", sh.id, "-c", "echo up; sleep 1000")
    execution = done.stdout.decode().strip()
    assert done.returncode == 0 and execution.startswith("exec_"), done
    sh.wait_for_output(execution, "up")
    listed = millibox("execution", "list", "--socket", daemon.socket, sh.id).stdout.decode()
    assert re.search(rf"{execution} +running .* yes ", listed), listed
    shown = json.loads(millibox("execution", "show", "--socket", daemon.socket, "--json", execution).stdout)
    assert shown["background"] is True
    assert millibox("execution", "cancel", "--socket", daemon.socket, execution).returncode == 0
    assert sh.result(execution)["status"] == "cancelled"
