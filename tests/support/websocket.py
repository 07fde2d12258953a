# SPDX-License-Identifier: Apache-2.0
"""A WebSocket client for tests that makes its frames itself, valid or not."""

import base64
import hashlib
import json
import os
import socket
import ssl
import struct

from support.host import HANG_S

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The answer was not 101: its status, headers and body."""

    def __init__(self, status, headers, body):
        super().__init__(f"{status} {body[:500]}")
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Closed(Exception):
    def __init__(self, code):
        super().__init__(str(code))
        self.code = code


class WebSocket:
    """@address: the path of a socket, or (host, port)."""

    def __init__(self, address, path="/mcp/ws", headers=None, timeout=HANG_S, tls=None, early=b"", **changed):
        if isinstance(address, tuple):
            self.sock = socket.create_connection(address, timeout)
        else:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(timeout)
            self.sock.connect(address)
        if tls:
            self.sock = tls.wrap_socket(self.sock, server_hostname="localhost")
        key = base64.b64encode(os.urandom(16)).decode()
        fields = {"Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key,
                  "Sec-WebSocket-Version": "13", **(headers or {})}
        fields.update({k.replace("_", "-"): v for k, v in changed.items()})
        head = f"GET {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items() if v is not None) + "\r\n"
        self.sock.sendall(head.encode() + early)
        self.buffer = b""
        self.id = 0
        status, self.headers = self._head()
        if status != 101:
            body = self._take(int(self.headers.get("content-length", 0)))
            self.close()
            raise Refused(status, self.headers, body)
        proof = base64.b64encode(hashlib.sha1(key.encode() + MAGIC).digest()).decode()
        assert self.headers["sec-websocket-accept"] == proof

    def _more(self):
        data = self.sock.recv(65536)
        if not data:
            raise Closed(None)
        self.buffer += data

    def _take(self, n):
        while len(self.buffer) < n:
            self._more()
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def _head(self):
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        return int(lines[0].split()[1]), {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}

    @staticmethod
    def frame(data, opcode=TEXT, fin=True, masked=True):
        data = data.encode() if isinstance(data, str) else data
        first = (0x80 if fin else 0) | opcode
        bit = 0x80 if masked else 0
        if len(data) < 126:
            head = struct.pack("!BB", first, bit | len(data))
        elif len(data) < 65536:
            head = struct.pack("!BBH", first, bit | 126, len(data))
        else:
            head = struct.pack("!BBQ", first, bit | 127, len(data))
        if not masked:
            return head + data
        mask = os.urandom(4)
        pad = (mask * (len(data) // 4 + 1))[: len(data)]
        return head + mask + (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(len(data), "big")

    def send(self, data, **kw):
        self.sock.sendall(self.frame(data, **kw))

    def receive(self):
        """The next frame: opcode and payload."""
        first, second = self._take(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", self._take(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self._take(8))
        assert not second & 0x80, "a server masks nothing"
        data = self._take(length)
        if first & 0x0F == CLOSE:
            raise Closed(struct.unpack("!H", data[:2])[0] if data else None)
        return first & 0x0F, data

    def message(self):
        opcode, data = self.receive()
        assert opcode == TEXT, opcode
        return json.loads(data)

    def ask(self, method, params=None, ident=None):
        """The answer to a request; notifications that come first go to .notifications."""
        self.id += 1
        ident = self.id if ident is None else ident
        self.send(json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, **({"params": params} if params is not None else {})}))
        self.notifications = []
        while True:
            message = self.message()
            if message.get("id") == ident and "method" not in message:
                return message
            self.notifications.append(message)

    def initialize(self, version="2025-11-25"):
        answer = self.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return answer["result"]

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def trusting():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
