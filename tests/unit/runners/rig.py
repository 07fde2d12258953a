# SPDX-License-Identifier: Apache-2.0
"""The agent's end of a request channel: drives a persistent runner without an agent."""

import array
import json
import os
import select
import signal
import socket
import subprocess
import textwrap
import threading
import time


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
        """Wait until done; None if the runner exited instead."""
        kept, left = {out: b"", err: b""}, {out, err}

        def read(ready):
            for fd in left.intersection(ready):
                piece = os.read(fd, 1 << 20)  # the capacity of a pipe
                kept[fd] += piece
                if not piece:
                    left.remove(fd)
                    os.close(fd)

        report, code = b"", None
        while code is None:
            ready, _, _ = select.select([self.channel, *left], [], [], 20)
            assert ready, "the runner says nothing"
            read(ready)
            if self.channel not in ready:
                continue
            data = self.channel.recv(1 << 17)
            if not data:
                self._discard(left)
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
        # The run's output is in the pipes by now. A background process may still hold them open.
        read(select.select(list(left), [], [], 0)[0])
        end = time.monotonic() + 0.3
        while left and (pause := end - time.monotonic()) > 0:
            read(select.select(list(left), [], [], pause)[0])
        self._discard(left)
        return Done(code, kept[out], kept[err], report)

    @staticmethod
    def _discard(fds):
        """As an agent handles output after the end."""
        def read(fd):
            while os.read(fd, 1 << 16):
                pass
            os.close(fd)

        for fd in fds:
            threading.Thread(target=read, args=(fd,), daemon=True).start()

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
