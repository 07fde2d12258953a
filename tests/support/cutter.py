# SPDX-License-Identifier: Apache-2.0
"""Connections that break."""

import contextlib
import socket
import threading


class Cutter:
    """A proxy for the daemon's socket that cuts connections after some bytes of the daemon; afterwards it cuts none."""

    def __init__(self, target, path, limits):
        self.target, self.limits, self.cuts = target, list(limits), 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            limit = self.limits.pop(0) if self.limits else None
            threading.Thread(target=self.copy, args=(client, server, None), daemon=True).start()
            threading.Thread(target=self.copy, args=(server, client, limit), daemon=True).start()

    def copy(self, source, sink, limit):
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                if limit is not None and len(data) >= limit:
                    sink.sendall(data[:limit])
                    self.cuts += 1
                    break
                limit = None if limit is None else limit - len(data)
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
