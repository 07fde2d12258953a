# SPDX-License-Identifier: Apache-2.0
"""The agent's end of a request channel: drives a runner that stays, without an agent."""

import array
import json
import os
import signal
import socket
import subprocess
import textwrap
import threading


class Done:
    def __init__(self, code, out, err, report):
        self.code, self.out, self.err = code, out.decode(), err.decode()
        self.report = json.loads(report) if report else {}

    @property
    def result(self):
        return self.report.get("result")


class Session:
    """@command: the runner's; @env: its environment."""

    def __init__(self, folder, command, env):
        self.folder = folder
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(20)

        def place():
            os.dup2(theirs.fileno(), 3)

        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=place, pass_fds=[3], cwd=folder, env=env,
            start_new_session=True)
        theirs.close()
        self.ident = 0

    def begin(self, code, *args, stdin=b"", env=()):
        """Send a request. Return: our ends of its pipes."""
        self.ident += 7
        path = self.folder / f"run{self.ident}"
        path.write_bytes(code if isinstance(code, bytes) else textwrap.dedent(code).encode())
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        words = [f"run {self.ident} {path}", *env, "", *args, ""]
        request = b"\0".join([word.encode() for word in words])
        self.channel.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", theirs))])
        for fd in theirs:
            os.close(fd)
        os.write(pipes[0][1], stdin)
        os.close(pipes[0][1])
        return pipes[1][0], pipes[2][0]

    def finish(self, out, err):
        """Until done; None when the runner ended instead."""
        kept = {out: b"", err: b""}

        def read(fd):
            while piece := os.read(fd, 1 << 16):
                kept[fd] += piece
            os.close(fd)

        readers = [threading.Thread(target=read, args=(fd,), daemon=True) for fd in kept]
        for reader in readers:
            reader.start()
        report, code = b"", None
        while code is None:
            data = self.channel.recv(1 << 17)
            if not data:
                return None
            word, _, rest = data.partition(b" ")
            if word == b"report":
                ident, _, piece = rest.partition(b"\n")
                assert int(ident) == self.ident and len(piece) <= 60 << 10
                report += piece
            else:
                assert word == b"done", data
                ident, code = map(int, rest.split())
                assert ident == self.ident
        for reader in readers:
            reader.join(0.3)
        return Done(code, kept[out], kept[err], report)

    def run(self, code, *args, stdin=b"", env=()):
        return self.finish(*self.begin(code, *args, stdin=stdin, env=env))

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def close(self):
        self.channel.close()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
