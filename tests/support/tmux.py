# SPDX-License-Identifier: Apache-2.0
"""A real terminal: programs in tmux, their screens as text."""

import os
import re
import shlex
import shutil
import subprocess

from support import host

#: What differs from run to run keeps its width, or its place on the right.
MASKS = [
    (re.compile(r"\bsess_[a-z0-9]{16}\b"), lambda m: "sess_" + "X" * 16),
    (re.compile(r" *\b\d+\.\d\b"), lambda m: "#.#".rjust(len(m[0]))),
]


def is_installed():
    return shutil.which("tmux") is not None


def mask(screen):
    for pattern, replace in MASKS:
        screen = pattern.sub(replace, screen)
    return "\n".join(line.rstrip() for line in screen.rstrip().splitlines()) + "\n"


class Tmux:
    """One program in one terminal, with a tmux server of its own."""

    def __init__(self, folder, *words, size=(80, 24), env=None):
        self.socket, self.result = str(folder / "tmux"), folder / "tmux.status"
        variables = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8", **(env or {})}
        command = shlex.join(["env", "-i", "TERM=screen", *(f"{k}={v}" for k, v in variables.items()), *map(str, words)])
        # The screen stays after the program; tmux itself may miss its status.
        command += f"; echo $? > {shlex.quote(str(self.result))}; exec cat"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), command, ";",
                   "set-option", "-g", "status", "off")

    def _tmux(self, *words):
        env = {**os.environ, "LANG": "C.UTF-8", "TERM": "screen"}
        env.pop("TMUX", None)
        return subprocess.run(["tmux", "-S", self.socket, *words], check=True, capture_output=True, text=True, timeout=host.HANG_S, env=env).stdout

    def screen(self):
        return mask(self._tmux("capture-pane", "-p"))

    def type(self, *keys):
        """Text as it is, or names of keys: "Enter", "C-c"."""
        self._tmux("send-keys", *keys)

    def wait_for(self, pattern, seconds=20):
        host.wait_until(lambda: re.search(pattern, self.screen()), seconds, lambda: f"{pattern!r} on the screen:\n{self.screen()}")

    def resize(self, width, height):
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def pid(self):
        """The shell that has started the program."""
        return int(self._tmux("list-panes", "-F", "#{pane_pid}"))

    def status(self):
        """Wait for the end of the program. Return: its exit status."""
        host.wait_until(lambda: self.result.exists() and self.result.read_text().endswith("\n"), 20,
                        lambda: f"the program ends:\n{self.screen()}")
        return int(self.result.read_text())

    def close(self):
        self._tmux("kill-server")
