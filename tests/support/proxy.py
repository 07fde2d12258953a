# SPDX-License-Identifier: Apache-2.0
"""millibox-egress without a daemon, for tests that give its orders."""

import os
import socket
import struct
import subprocess

from support import host
from support.daemon import BUILD
from support.egress import OPEN

OPEN_BOX, RULES, CLOSE, AUTHORITY, DENIED, USED, CLOSED_BOX = range(1, 8)
ORDER = "=IIIIIIQ" + 2 * "IIIIQQ"
EVENT = "=IIIIHH254s256s256s6xQQQQ"


class Proxy:
    """One millibox-egress, and a listener for each box that it serves."""

    def __init__(self, resolver, *more):
        """@more: options."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        def place():
            os.dup2(theirs.fileno(), 3)
            os.set_inheritable(3, True)

        command = [BUILD / "millibox-egress", "--resolver", f"{OPEN}:{resolver.port}", *more]
        self.process = subprocess.Popen(command, close_fds=False, preexec_fn=place, stderr=subprocess.DEVNULL)
        theirs.close()
        self.starter = ours
        self.listeners = []
        self.take()

    def take(self):
        """The socket of the proxy that serves now."""
        self.starter.settimeout(host.HANG_S)
        _, fds, _, _ = socket.recv_fds(self.starter, 1, 1)
        self.control = socket.socket(fileno=fds[0])
        self.control.settimeout(host.HANG_S)

    def order(self, op, number, rules=(), connections=64, listener=None, count=None, cut=None, secrets=0, more=b"", tenant=1):
        limits = (connections, 60000, 0, 0, 0, 0)
        data = struct.pack(ORDER, op, number, tenant, len(rules) if count is None else count, secrets, 0, 0, *limits, *limits)
        data += b"".join(rule.encode() + b"\0" for rule in rules) + more
        socket.send_fds(self.control, [data[:cut]], [listener.fileno()] if listener else [])

    def open(self, number, rules, **kw):
        """Return: the address of a new box's listener."""
        listener = socket.create_server((OPEN, 0), backlog=2048)
        self.listeners.append(listener)
        self.order(OPEN_BOX, number, rules, listener=listener, **kw)
        return listener.getsockname()

    def denial(self):
        """(reason, host, detail) of the next event DENIED."""
        while True:
            op, _, reason, _, _, _, name, detail = struct.unpack(EVENT, self.control.recv(4096))[:8]
            if op == DENIED:
                return reason, name.split(b"\0")[0].decode(), detail.split(b"\0")[0].decode()

    def pid(self):
        return host.children(self.process.pid)[0]

    def close(self):
        for sock in [self.starter, self.control, *self.listeners]:
            sock.close()
        assert self.process.wait(host.HANG_S) == 0
