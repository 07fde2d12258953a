# SPDX-License-Identifier: Apache-2.0
"""The commands of a person at a terminal: repl and top, on a pty; config."""

import base64
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from support import host
from support.daemon import BUILD
from test_cli import environment, millibox

pytestmark = pytest.mark.phases("system")

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


class Terminal:
    """A command on its own pty; what it shows, as text."""

    def __init__(self, home, *words):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(str(BUILD / "millibox"), ["millibox", *words], {**environment(), "TERM": "xterm", "HOME": home, "LANG": "C.UTF-8"})

    def read(self, until, patience=60):
        """Return what came up to the pattern, and forget it."""
        end = time.monotonic() + patience
        while not re.search(until, self.text):
            assert time.monotonic() < end, self.text
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    data = b""
                assert data, f"ended: {self.text}"
                self.text += data.decode(errors="replace")
        found = re.search(until, self.text)
        before, self.text = self.text[: found.end()], self.text[found.end() :]
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def leave(self):
        """Ctrl-D at the prompt: earlier it would be lost with the terminal's other mode."""
        self.read(">>> ")
        self.type("\x04")

    def wait(self, patience=60):
        while True:
            if not select.select([self.fd], [], [], patience)[0]:
                os.kill(self.pid, signal.SIGKILL)
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def repl(daemon, tmp_path):
    (tmp_path / ".local/state").mkdir(parents=True)
    terminal = Terminal(str(tmp_path), "repl", "--socket", daemon.socket, "--figures", str(tmp_path))
    terminal.read(">>> ")
    return terminal


def test_a_conversation_keeps_its_variables_and_blocks(repl):
    repl.type("x = 41\n")
    repl.read(">>> ")
    repl.type("x + 1\n")
    assert "42" in repl.read("\n42\r\n.*>>> ")
    repl.type("def f():\n")
    repl.read(r"\.\.\. ")
    repl.type("    return 'seven'\n")
    repl.read(r"\.\.\. ")
    repl.type("\n")
    repl.read(">>> ")
    repl.type("f()\n")
    repl.read("'seven'\r\n")
    repl.leave()
    assert repl.wait() == 0


def test_a_traceback_marks_the_right_columns(repl):
    repl.type("1/0\n")
    assert "    1/0\r\n    ~^~\r\nZeroDivisionError" in repl.read("ZeroDivisionError: division")
    repl.leave()
    assert repl.wait() == 0


def test_ctrl_c_drops_what_was_typed_and_interrupts_a_program(repl):
    repl.type("x = 5\n")
    repl.read(">>> ")
    repl.type("junk(")
    repl.read(r"junk\(")
    repl.type("\x03")
    repl.read(">>> ")
    repl.type("print('going', flush=True); import time; time.sleep(600)\n")
    repl.read("going\r\n")
    repl.type("\x03")
    repl.read(">>> ")
    repl.type("x\n")
    repl.read("\n5\r\n")
    repl.leave()
    assert repl.wait() == 0


def test_the_history_is_there_the_next_time(daemon, repl, tmp_path):
    repl.type("'first' + 'line'\n")
    repl.read("'firstline'\r\n.*>>> ")
    repl.type("\x04")
    assert repl.wait() == 0
    again = Terminal(str(tmp_path), "repl", "--socket", daemon.socket)
    again.read(">>> ")
    again.type("\x1b[A\n")
    again.read("'firstline'\r\n")
    again.leave()
    assert again.wait() == 0


def test_a_figure_is_saved(repl, tmp_path):
    repl.type(f"class F:\n    def _repr_png_(self): import base64; return base64.b64decode('{PNG}')\n\nF()\n")
    repl.read("figure-1.png")
    repl.leave()
    assert repl.wait() == 0
    assert (tmp_path / "figure-1.png").read_bytes().startswith(b"\x89PNG")


def test_the_session_ends_with_the_conversation(daemon, repl):
    with daemon.client() as c:
        (session,) = c.get("/api/v1/sessions").json["sessions"]
        assert session["mode"] == "persistent"
        repl.type("\x04")
        assert repl.wait() == 0
        assert c.get("/api/v1/sessions").json["sessions"] == []


def test_a_pipe_is_read_as_programs(daemon):
    done = millibox("repl", "--socket", daemon.socket, stdin=b"x = 3\nfor i in range(x):\n    print(i)\n\nx * 2\n1 / 0\n'after'\n")
    assert done.returncode == 0 and done.stdout == b"0\n1\n2\n6\n'after'\n", done
    assert b"ZeroDivisionError" in done.stderr


def test_top_shows_sessions_and_pools(daemon, py):
    py.run("x = 1")
    done = millibox("top", "-n", "2", "-d", "0.2", "--socket", daemon.socket)
    assert done.returncode == 0, done
    assert done.stdout.decode().count(py.id) == 2 and "CPU %" in done.stdout.decode()


def test_top_ends_with_its_reader(daemon, py):
    for form in ([], ["--json"]):
        with subprocess.Popen([f"{BUILD}/millibox", "top", "-d", "0.1", *form, "--socket", daemon.socket], stdout=subprocess.PIPE) as top:
            assert top.stdout.readline()
            top.stdout.close()
            assert top.wait(host.HANG_S) == 128 + signal.SIGPIPE


def test_top_prints_screens_as_lines_of_json(daemon, py):
    py.run("x = 1")
    done = millibox("top", "--json", "-n", "2", "-d", "0.2", "--socket", daemon.socket)
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    rows = [{row["session_id"]: row for row in screen["sessions"]}[py.id] for screen in (first, second)]
    assert rows[0]["cpu_percent"] is None and rows[1]["cpu_percent"] >= 0 and rows[1]["memory_mb"] > 0, rows
    assert rows[1]["executions"] == 1 and isinstance(first["pools"], list), (rows, first)


def test_top_on_a_terminal_ends_with_ctrl_c(daemon, py, tmp_path):
    terminal = Terminal(str(tmp_path), "top", "--socket", daemon.socket)
    terminal.read(re.escape(py.id))
    terminal.type("\x03")
    assert terminal.wait() == 0


def test_logs_are_those_of_the_execution(daemon, py):
    done = py.run("print('hello')")
    assert millibox("logs", "--socket", daemon.socket, done["execution_id"]).stdout == b"hello\n"


def test_generated_settings_are_valid_and_change_nothing(tmp_path):
    generated = millibox("config", "generate", env=environment(MILLIBOX_LOG_LEVEL="debug")).stdout
    assert b"#listen:" in generated and b"#log_level: info\n" in generated
    path = tmp_path / "millibox.yaml"
    path.write_bytes(generated)
    assert millibox("config", "validate", str(path)).stdout == f"{path}: ok\n".encode()
    assert millibox("config", "show", "--config", str(path)).stdout == millibox("config", "show").stdout


def test_a_wrong_setting_is_named(tmp_path):
    path = tmp_path / "millibox.yaml"
    path.write_text("listen: 5x\n")
    done = millibox("config", "validate", str(path))
    assert done.returncode == 1 and b"listen" in done.stderr and b"millibox.yaml:1" in done.stderr
    assert millibox("config", "validate").returncode == 2
    assert millibox("repl", "a", "b").returncode == 2
