# SPDX-License-Identifier: Apache-2.0
"""repl, top and cp in a real terminal (tmux): their screens are those in screens/. MILLIBOX_WRITE_SCREENS=1 writes them."""

import os
import pathlib
import shutil
import socket
import threading

import pytest

from support import host, tmux
from support.daemon import BUILD

pytestmark = [pytest.mark.phases("system"), pytest.mark.skipif(not tmux.is_installed(), reason="tmux is not installed")]

SCREENS = pathlib.Path(__file__).parent / "screens"


@pytest.fixture
def terminal(tmp_path):
    made = []

    def start(*words, **kw):
        made.append(tmux.Tmux(tmp_path, *words, **kw))
        return made[-1]

    yield start
    for one in made:
        one.close()


def assert_screen(terminal, name, seconds=20):
    """The screen becomes the one that the file has."""
    path = SCREENS / f"{name}.txt"
    if os.environ.get("MILLIBOX_WRITE_SCREENS") == "1":
        path.write_text(terminal.screen())
    wanted = path.read_text()
    host.wait_until(lambda: terminal.screen() == wanted, seconds, lambda: f"the screen of {path}; it is:\n{terminal.screen()}")


def test_repl(daemon, terminal, tmp_path):
    (tmp_path / ".local/state").mkdir(parents=True)
    repl = terminal(BUILD / "millibox", "repl", "--socket", daemon.socket, "--figures", tmp_path)
    repl.wait_for(r"(?m)^>>>")
    repl.type("x = 41", "Enter")
    repl.wait_for(r"x = 41\n>>>")
    repl.type("x + 1", "Enter")
    repl.wait_for(r"(?m)^42\n>>>")
    repl.type("def f(n):", "Enter")
    repl.wait_for(r"f\(n\):\n\.\.\.")
    repl.type("    return n * 'ab'", "Enter")
    repl.wait_for(r"'ab'\n\.\.\.")
    repl.type("Enter")
    repl.wait_for(r"(?m)^\.\.\.\n>>>")
    repl.type("f(2)", "Enter")
    repl.wait_for(r"'abab'\n>>>")
    repl.type("1 / 0", "Enter")
    repl.wait_for(r"ZeroDivisionError: .*\n>>>")
    # The line above, edited: to its beginning, one character deleted, another one typed.
    repl.type("Up", "C-a", "C-d", "8", "Enter")
    repl.wait_for(r"8 / 0(.*\n)+.*ZeroDivisionError: .*\n>>>")
    repl.type("junk(")
    repl.wait_for(r">>> junk\(")
    repl.type("C-c")
    repl.wait_for(r"junk\(.*\n>>>")
    assert_screen(repl, "repl")
    repl.type("C-d")
    assert repl.status() == 0


def test_top(daemon, py, terminal):
    py.run("x = 1")
    top = terminal(BUILD / "millibox", "top", "-d", "0.2", "--socket", daemon.socket)
    top.wait_for(py.id[:5])
    assert_screen(top, "top")
    top.resize(60, 12)
    top.wait_for(r"sess_")
    top.type("C-c")
    assert top.status() == 0


def test_q_ends_top_and_leaves_the_terminal_as_it_was(daemon, terminal):
    """The shell after it shows what is typed, line by line."""
    top = terminal("sh", "-c", f"{BUILD}/millibox top -d 60 --socket {daemon.socket}; echo status $?; read line; echo got $line")
    top.wait_for("SESSION")
    top.type("q")
    top.wait_for("status 0")
    top.type("typed", "Enter")
    top.wait_for("typed\ngot typed")


def test_a_program_reads_what_is_typed(daemon, terminal):
    code = "name = input('name? '); print('hello', name); raise SystemExit(7)"
    run = terminal(BUILD / "millibox", "run", "--socket", daemon.socket, "-i", "-c", code)
    run.wait_for(r"name\?")
    run.type("bob", "Enter")
    run.wait_for(r"name\? bob\nhello bob")
    assert run.status() == 7
    daemon.settle()


def test_the_language_of_an_interactive_program_is_guessed(daemon, terminal):
    """As without --interactive."""
    code = "#include <stdio.h>\nint main(void) { char s[9]; puts(\"name?\"); scanf(\"%8s\", s); printf(\"hello %s\\n\", s); return 7; }"
    if not shutil.which("gcc"):
        code = "read name; echo \"hello $name\"; exit 7"
    run = terminal(BUILD / "millibox", "run", "--socket", daemon.socket, "-i", "-c", code)
    run.type("bob", "Enter")
    run.wait_for("(?m)^hello bob")
    assert run.status() == 7
    daemon.settle()


def test_ctrl_c_is_a_key_of_an_interactive_program(daemon, terminal):
    run = terminal(BUILD / "millibox", "run", "--socket", daemon.socket, "-i", "-l", "shell", "-c", "echo on; exec sleep 600")
    run.wait_for("(?m)^on")
    run.type("C-c")
    assert run.status() == 130
    daemon.settle()


def test_without_interactive_the_input_is_empty_and_the_message_says_so(daemon, terminal):
    run = terminal(BUILD / "millibox", "run", "--socket", daemon.socket, "-c", "input()")
    run.wait_for("add '-i' to type at it")
    assert run.status() == 1


class Throttle:
    """A socket in front of the daemon's, slow until it is released."""

    BLOCK = 256 * 1024

    def __init__(self, path, target):
        self.path, self.target, self.released = str(path), target, threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            threading.Thread(target=self._copy, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._copy, args=(server, client, False), daemon=True).start()

    def _copy(self, source, target, slowly):
        try:
            while data := source.recv(self.BLOCK):
                if slowly and len(data) > 4096:
                    self.released.wait(0.1)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.released.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def test_cp(daemon, sh, terminal, tmp_path):
    (tmp_path / "data.bin").write_bytes(bytes(32 << 20))
    slow = Throttle(tmp_path / "slow", daemon.socket)
    try:
        cp = terminal(BUILD / "millibox", "cp", "--socket", slow.path, tmp_path / "data.bin", f"{sh.id}:in/")
        cp.wait_for(r"data.bin \[#+ +\] +\d+ % ")
        slow.released.set()
        assert cp.status() == 0
        # The bar is gone; the terminal reads that it is later than the end of the program.
        host.wait_until(lambda: "data.bin" not in cp.screen(), 10, cp.screen)
    finally:
        slow.close()
    assert sh.run("wc -c < in/data.bin")["stdout"].strip() == str(32 << 20)


def test_cp_names_what_is_wrong(daemon, terminal, tmp_path):
    cp = terminal(BUILD / "millibox", "cp", "--socket", daemon.socket, "/nonexistent", "sess_0000000000000000:a")
    assert cp.status() == 2
    assert_screen(cp, "cp-missing")
