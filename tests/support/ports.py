# SPDX-License-Identifier: Apache-2.0
"""Connections to ports of sessions, and programs in a session that listen."""

from support.websocket import BINARY, Closed, WebSocket

#: Runs in a session of Python: a server in a thread of the runner, which stays.
SERVE = """
import socket, threading
def serve(port, handle, host="127.0.0.1"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=128)
    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=handle, args=(connection,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return listener
def echo(connection):
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)
"""


def serve(session, port, handler="echo", before="", host="127.0.0.1"):
    answer = session.run(f"{SERVE}\n{before}\nlisteners = globals().setdefault('listeners', [])\n"
                         f"listeners.append(serve({port}, {handler}, {host!r}))")
    assert answer["status"] == "success", answer
    return port


class Port(WebSocket):
    """A connection; bytes without their division into messages."""

    def __init__(self, address, session_id, port, **kw):
        super().__init__(address, f"/api/v1/sessions/{session_id}/ports/{port}", **kw)
        self.bytes = b""
        self.ended = False

    def write(self, data, piece=60000):
        for at in range(0, len(data), piece):
            self.send(data[at : at + piece], opcode=BINARY)

    def finish(self):
        self.send(b"", opcode=BINARY)

    def read(self, count):
        """@count bytes; fewer at the end."""
        while len(self.bytes) < count and not self.ended:
            opcode, data = self.receive()
            if opcode == BINARY:
                self.bytes += data
                self.ended = not data
        data, self.bytes = self.bytes[:count], self.bytes[count:]
        return data

    def read_all(self):
        return self.read(1 << 40)

    def closed(self):
        """The code with which the daemon closes; bytes before it are dropped."""
        try:
            while True:
                self.receive()
        except Closed as end:
            return end.code
