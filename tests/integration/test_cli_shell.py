# SPDX-License-Identifier: Apache-2.0
"""millibox shell in a real terminal (tmux), and session exec --background."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import uuid

import pytest

from support import host
from support.daemon import BUILD
from support.sessions import V1
from test_cli import environment, millibox

pytestmark = pytest.mark.phases("system")

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Tmux:
    """A terminal of 70 columns and 14 lines, with a plain shell in it."""

    def __init__(self, tmp_path):
        self.name = f"millibox-{uuid.uuid4().hex[:8]}"
        self.env = {**environment(), "TMUX_TMPDIR": str(tmp_path), "HOME": str(tmp_path), "PS1": "outside> ", "LANG": "C.UTF-8"}
        self.run("-f", "/dev/null", "new-session", "-d", "-x", "70", "-y", "14", "env", "-i",
                 *[f"{k}={v}" for k, v in self.env.items()], "TERM=screen", "bash", "--noprofile", "--norc", "-i")
        self.wait(lambda screen: screen.endswith("outside>"))

    def run(self, *words):
        return subprocess.run(["tmux", "-L", self.name, *words], env=self.env, check=True, capture_output=True, text=True).stdout

    def type(self, *keys):
        self.run("send-keys", *keys)

    def screen(self):
        return self.run("capture-pane", "-p").rstrip("\n")

    def wait(self, condition, seconds=20):
        last = ""

        def seen():
            nonlocal last
            last = self.screen()
            return condition(last)

        try:
            host.wait_until(seen, seconds, "the screen")
        except AssertionError as e:
            raise AssertionError(f"{e}\n{last}") from e
        return last

    def end(self):
        subprocess.run(["tmux", "-L", self.name, "kill-server"], env=self.env, check=False, capture_output=True)


@pytest.fixture
def tmux(tmp_path):
    terminal = Tmux(tmp_path)
    yield terminal
    terminal.end()


def command(daemon, *words):
    return shlex.join([str(BUILD / "millibox"), "shell", "--socket", str(daemon.socket), *words])


@needs_tmux
def test_a_shell_in_tmux(daemon, client, tmux):
    before = client.get(f"{V1}/sessions").json["total"]
    tmux.type("clear; " + command(daemon), "Enter")
    tmux.wait(lambda s: s.endswith("~$"))
    tmux.type("clear", "Enter")
    tmux.wait(lambda s: s == "~$")
    tmux.type("stty size; tty", "Enter")
    tmux.wait(lambda s: s.count("~$") == 2)
    assert tmux.screen() == "~$ stty size; tty\n14 70\n/dev/pts/0\n~$"
    # A new size reaches the program, and Ctrl-C what is in the foreground.
    tmux.run("resize-window", "-x", "60", "-y", "10")
    tmux.type("until [ \"$(stty size)\" = '10 60' ]; do sleep 0.1; done; clear; echo $LINES $COLUMNS; stty size", "Enter")
    tmux.wait(lambda s: re.match(r"10 60\n10 60\n~\$$", s))
    tmux.type("clear; sh -c 'echo going; exec sleep 1000'", "Enter")
    tmux.wait(lambda s: s == "going")
    tmux.type("C-c")
    tmux.wait(lambda s: s == "going\n^C\n~$")
    tmux.type("clear; printf '\\033[3;5Hhere\\033[1;1H'; exit 7", "Enter")
    tmux.wait(lambda s: "outside>" in s)
    tmux.type("s=$?; clear; echo status $s; stty -a | grep -o ' .\\?icanon'", "Enter")
    tmux.wait(lambda s: s == "status 7\n icanon\noutside>")
    host.wait_until(lambda: client.get(f"{V1}/sessions").json["total"] == before, 10, "its session is deleted")


@needs_tmux
def test_a_full_screen_program_in_tmux(daemon, tmux, sh):
    sh.run("seq 100 > lines")
    tmux.type("clear; " + command(daemon, sh.id, "--", "less", "lines"), "Enter")
    tmux.wait(lambda s: s == "\n".join(str(i) for i in range(1, 14)) + "\nlines")
    tmux.type("G")
    tmux.wait(lambda s: s == "\n".join(str(i) for i in range(88, 101)) + "\n(END)")
    tmux.type("q")
    tmux.wait(lambda s: s.endswith("outside>"))
    assert sh.run("cat lines | wc -l")["stdout"] == "100\n"


@needs_tmux
def test_a_closed_terminal_ends_the_program_and_restores_the_modes(daemon, client, tmux, sh):
    tmux.type("clear; " + command(daemon, sh.id, "--", "sh", "-c", "echo going; exec sleep 1000"), "Enter")
    tmux.wait(lambda s: s.endswith("going"))
    execution = client.get(f"{sh.path}/executions").json["executions"][0]["execution_id"]
    pid = int(tmux.run("list-panes", "-F", "#{pane_pid}"))
    (child,) = host.children(pid)
    os.kill(child, signal.SIGTERM)
    tmux.wait(lambda s: "outside>" in s)
    tmux.type("s=$?; clear; echo status $s; stty -a | grep -o ' .\\?icanon'", "Enter")
    tmux.wait(lambda s: s == "status 143\n icanon\noutside>")
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
