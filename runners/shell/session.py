# SPDX-License-Identifier: Apache-2.0
"""Gives one piece of shell code after another to one bash: the runner that stays.

Bash cannot receive descriptors, so this small program holds the request channel (docs/protocol.md) and
tells a bash, line by line, what to do. Bash opens what it needs by name, /proc/PID/fd/N of this process,
and inherits nothing from it.

The state is that of the bash: variables, functions, directory, options, background jobs. When bash ends
by `exit`, `set -e` or an interrupt, its EXIT trap writes the state down and a new bash goes on with it
(jobs, open files and the trap of a program are lost). If it could not, this process ends as bash did.
"""

import os
import select
import signal
import socket

CHANNEL = 3
REQUEST_MAX = 72 << 10
BASH = "/bin/bash"
INTERRUPT_AGAIN_S = 0.2
ME = f"/proc/{os.getpid()}/fd"
# First what decides how the rest is read, last what would end a shell that goes on reading.
SAVE = "{ shopt -p; alias -p; declare -p; declare -f; printf 'cd -- %%q\\n' \"$PWD\"; set +o; } >%s 2>/dev/null"


def quote(text):
    return b"'" + text.replace(b"'", b"'\\''") + b"'"


class Bash:
    """One bash, and the pipe from which it reads its script."""

    def __init__(self, state, env):
        script, self.script = os.pipe()
        self.pid = os.posix_spawn(
            BASH, ["bash", "--noprofile", "--norc", f"{ME}/{script}"], env,
            # What bash finds ignored it can't change.
            setsigdef=[signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ])
        self.end = os.pidfd_open(self.pid)
        self.reader = script
        # No names of ours: all that differs between runs is in the lines themselves.
        kept = f"{ME}/{state}"
        self.tell(f". {kept} 2>/dev/null; : >{kept}; BASH_ARGV0=bash; trap -- ".encode()
                  + quote((SAVE % kept).encode()) + b" EXIT\n")

    def tell(self, line):
        while line:
            line = line[os.write(self.script, line) :]

    def close(self):
        """After its end. Return: what wait says."""
        for fd in (self.script, self.reader, self.end):
            os.close(fd)
        return os.waitpid(self.pid, 0)[1]


def nameless_file():
    try:
        return os.memfd_create("state")
    except OSError:  # where nobody would count its memory
        return os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o600)


def own_environment():
    """As it was given: Python adds to its copy."""
    with open("/proc/self/environ", "rb") as file:
        return dict(item.split(b"=", 1) for item in file.read().split(b"\0") if b"=" in item)


class Runner:
    def __init__(self):
        self.channel = socket.socket(fileno=CHANNEL)
        os.set_inheritable(CHANNEL, False)
        self.answers, self.answers_end = os.pipe()
        self.state = nameless_file()
        self.saved, self.lent = nameless_file(), b""
        self.bash = Bash(self.state, own_environment())
        self.patient = False  # an interrupt may be repeated
        signal.signal(signal.SIGINT, self.on_interrupt)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(0, signal.SIGINT))

    def on_interrupt(self, *_):
        """It is for what runs, and comes to all of it. But a bash that is just starting something waits
        for that, which did not get it: hence once more."""
        if self.patient:
            self.patient = False
            signal.setitimer(signal.ITIMER_REAL, INTERRUPT_AGAIN_S)

    def receive(self):
        # What was received counts as begun. Who is killed while it waits to receive may still do so; here it may not.
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

    def comes(self, fd):
        """Wait for @fd. Return: False when bash ended instead."""
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(self.bash.end, select.POLLIN)
        return fd in [ready for ready, _ in poll.poll()]

    def replace(self):
        """Bash has ended: another one, if the state was saved. Return: how it ended, as a shell says it."""
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

    def lend(self, variables):
        """For this run only: bash writes down what they were."""
        self.lent = b" ".join(variable.partition(b"=")[0] for variable in variables)
        if not variables:
            return
        os.ftruncate(self.saved, 0)
        words = b" ".join(quote(variable) for variable in variables)
        self.bash.tell(b"builtin declare -p " + self.lent + f" >{ME}/{self.saved} 2>/dev/null; ".encode()
                       + b"builtin export -- " + words + b" 2>/dev/null\n")

    def take_back(self):
        """Also by a new bash: the state that it began with has them."""
        if self.lent:
            self.bash.tell(b"builtin unset -v " + self.lent
                           + f" 2>/dev/null; . {ME}/{self.saved} 2>/dev/null\n".encode())

    def run(self, words, fds):
        names = " ".join(f"{sign}{ME}/{fd}" for sign, fd in zip(("<", ">", "2>"), fds))
        self.bash.tell(b". " + b" ".join(map(quote, words)) + b" " + names.encode()
                       + f"; builtin printf '%d\\n' $? >{ME}/{self.answers_end}\n".encode())
        self.patient = True
        answered = self.comes(self.answers)
        self.patient = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        if not answered:
            return self.replace()
        return int(os.read(self.answers, 100)) & 0xFF

    def serve(self):
        while True:
            while not self.comes(CHANNEL):
                self.replace()
            ident, variables, words, fds = self.receive()
            self.lend(variables)
            code = self.run(words, fds)
            self.take_back()
            for fd in fds:
                os.close(fd)
            self.channel.send(f"done {ident} {code}".encode())


signal.signal(signal.SIGINT, signal.SIG_IGN)
Runner().serve()
