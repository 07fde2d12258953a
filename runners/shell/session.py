# SPDX-License-Identifier: Apache-2.0
"""The persistent shell runner: feeds pieces of shell code one after another to one bash.

Bash cannot receive descriptors, so this program holds the request channel (docs/protocol.md) and writes
commands to a bash, line by line. Bash opens files by name, /proc/PID/fd/N of this process, and inherits
nothing from it.

The state is that of the bash: variables, functions, directory, options, background jobs. When bash exits
by `exit`, `set -e` or an interrupt, its EXIT trap saves the state and a new bash restores it (jobs, open
files and the program's own trap are lost). If saving failed, this process exits as bash did.
"""

import os
import select
import signal
import socket

CHANNEL = 3
REQUEST_MAX = 72 << 10
BASH = "/bin/bash"
INTERRUPT_AGAIN_S = 0.2
SIGNALS_MAX = 64
ME = f"/proc/{os.getpid()}/fd"
# First what affects parsing of the rest, last the options, which could end the reading shell.
SAVE = "{ shopt -p; alias -p; declare -p; declare -f; printf 'cd -- %%q\\n' \"$PWD\"; set +o; } >%s 2>/dev/null"


def quote(text):
    return b"'" + text.replace(b"'", b"'\\''") + b"'"


class Bash:
    """One bash, and the pipe from which it reads its script."""

    def __init__(self, state, env):
        script, self.script = os.pipe()
        self.pid = os.posix_spawn(
            BASH, ["bash", "--noprofile", "--norc", f"{ME}/{script}"], env,
            # Bash cannot reset signals that are ignored when it starts.
            setsigdef=[signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ])
        try:
            self.end = os.pidfd_open(self.pid)
        except OSError:  # gVisor has none
            self.end = self.watch_signals()
        self.reader = script
        # Defines no names of its own: everything that differs between runs is in the lines themselves.
        kept = f"{ME}/{state}"
        self.write_line(f". {kept} 2>/dev/null; : >{kept}; BASH_ARGV0=bash; trap -- ".encode()
                  + quote((SAVE % kept).encode()) + b" EXIT\n")

    @staticmethod
    def watch_signals():
        """Return: a descriptor that is readable after a signal, of which one says that bash has exited."""
        end, other = os.pipe()
        os.set_blocking(other, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        before = signal.set_wakeup_fd(other, warn_on_full_buffer=False)
        if before >= 0:
            os.close(before)
        return end

    def has_exited(self):
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def write_line(self, line):
        while line:
            line = line[os.write(self.script, line) :]

    def close(self):
        """After it has exited. Return: wait status."""
        for fd in (self.script, self.reader, self.end):
            os.close(fd)
        return os.waitpid(self.pid, 0)[1]


def make_unnamed_file():
    try:
        return os.memfd_create("state")
    except OSError:  # rejected where no cgroup would count its memory
        return os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o600)


def own_environment():
    """The environment as passed to exec; Python adds to its own copy."""
    with open("/proc/self/environ", "rb") as file:
        return dict(item.split(b"=", 1) for item in file.read().split(b"\0") if b"=" in item)


class Runner:
    def __init__(self):
        self.channel = socket.socket(fileno=CHANNEL)
        os.set_inheritable(CHANNEL, False)
        self.answers, self.answers_end = os.pipe()
        self.state = make_unnamed_file()
        self.saved, self.replaced = make_unnamed_file(), b""
        self.bash = Bash(self.state, own_environment())
        self.may_interrupt_again = False
        signal.signal(signal.SIGINT, self.on_interrupt)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(0, signal.SIGINT))

    def on_interrupt(self, *_):
        """The whole process group gets SIGINT. But a child that bash is just forking misses it, and bash
        waits for that child. So send it once more."""
        if self.may_interrupt_again:
            self.may_interrupt_again = False
            signal.setitimer(signal.ITIMER_REAL, INTERRUPT_AGAIN_S)

    def receive(self):
        # A received request counts as started. A process killed in recvmsg() may have received it; in a peek not.
        self.channel.recv(1, socket.MSG_PEEK)
        data, fds, _, _ = socket.recv_fds(self.channel, REQUEST_MAX, 3)
        if not data:
            os._exit(0)
        for fd in fds:
            os.set_inheritable(fd, False)
        head, *words = data.split(b"\0")[:-1]
        _, ident, path = head.split(b" ", 2)
        border = words.index(b"")
        return int(ident), words[:border], [path, *words[border + 1 :]], fds

    def wait_for(self, fd):
        """Wait until @fd is readable. Return: False if bash exited instead."""
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(self.bash.end, select.POLLIN)
        while True:
            found = [ready for ready, _ in poll.poll()]
            if fd in found or self.bash.has_exited():
                return fd in found
            os.read(self.bash.end, SIGNALS_MAX)

    def replace(self):
        """Bash exited: start a new one if the state was saved. Return: exit code in shell notation."""
        status = self.bash.close()
        code = os.waitstatus_to_exitcode(status)
        if os.fstat(self.state).st_size == 0:
            if code < 0:
                if -code != signal.SIGKILL:
                    signal.signal(-code, signal.SIG_DFL)
                os.kill(os.getpid(), -code)
            os._exit(code if code >= 0 else 128 - code)
        self.bash = Bash(self.state, {})
        return code if code >= 0 else 128 - code

    def set_variables(self, variables):
        """Set variables for this run only; bash saves the old values."""
        self.replaced = b" ".join(variable.partition(b"=")[0] for variable in variables)
        if not variables:
            return
        os.ftruncate(self.saved, 0)
        words = b" ".join(quote(variable) for variable in variables)
        self.bash.write_line(b"builtin declare -p " + self.replaced + f" >{ME}/{self.saved} 2>/dev/null; ".encode()
                       + b"builtin export -- " + words + b" 2>/dev/null\n")

    def restore_variables(self):
        """Also in a new bash: its restored state has the run's values."""
        if self.replaced:
            self.bash.write_line(b"builtin unset -v " + self.replaced
                           + f" 2>/dev/null; . {ME}/{self.saved} 2>/dev/null\n".encode())

    def run(self, words, fds):
        names = " ".join(f"{sign}{ME}/{fd}" for sign, fd in zip(("<", ">", "2>"), fds))
        self.bash.write_line(b". " + b" ".join(map(quote, words)) + b" " + names.encode()
                       + f"; builtin printf '%d\\n' $? >{ME}/{self.answers_end}\n".encode())
        self.may_interrupt_again = True
        answered = self.wait_for(self.answers)
        self.may_interrupt_again = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        if not answered:
            return self.replace()
        return int(os.read(self.answers, 100)) & 0xFF

    def serve(self):
        while True:
            while not self.wait_for(CHANNEL):
                self.replace()
            ident, variables, words, fds = self.receive()
            self.set_variables(variables)
            code = self.run(words, fds)
            self.restore_variables()
            for fd in fds:
                os.close(fd)
            self.channel.send(f"done {ident} {code}".encode())


signal.signal(signal.SIGINT, signal.SIG_IGN)
Runner().serve()
