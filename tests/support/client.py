# SPDX-License-Identifier: Apache-2.0
"""A small HTTP client for tests: TCP or Unix socket, whole answers or event streams."""

import http.client
import json
import socket

from support.host import HANG_S


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=HANG_S):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:2000]!r}>"


class Client:
    """One keep-alive connection."""

    def __init__(self, address, timeout=HANG_S):
        self.address = address
        self.timeout = timeout
        self.connection = self._connect()

    def _connect(self):
        if isinstance(self.address, tuple):
            return http.client.HTTPConnection(*self.address, timeout=self.timeout)
        return UnixConnection(self.address, timeout=self.timeout)

    def request(self, method, path, body=None, headers=None):
        headers = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        self.connection.request(method, path, body=body, headers=headers)
        response = self.connection.getresponse()
        return Answer(response.status, response.headers, response.read())

    def get(self, path, **kw):
        return self.request("GET", path, **kw)

    def post(self, path, body, **kw):
        return self.request("POST", path, body=body, **kw)

    def execute(self, language, code, **fields):
        """The result object of a request that must succeed, with all that it says of its isolation."""
        answer = self.post("/api/v1/execute", {"language": language, "code": code, "receipt": "plain", **fields})
        assert answer.status == 200, answer
        return answer.json

    def python(self, code, **fields):
        return self.execute("python", code, **fields)

    def shell(self, code, **fields):
        return self.execute("shell", code, **fields)

    def stream(self, language, code, accept="application/x-ndjson", **fields):
        """Events, one by one."""
        body = json.dumps({"language": language, "code": code, **fields})
        self.connection.request(
            "POST",
            "/api/v1/execute",
            body=body.encode(),
            headers={"Content-Type": "application/json", "Accept": accept},
        )
        response = self.connection.getresponse()
        assert response.status == 200, response.read()
        for line in response:
            if line.strip():
                yield json.loads(line)

    def close(self):
        self.connection.close()


def raw_exchange(address, data, timeout=25):
    """Send raw bytes, read until the peer closes: earlier than it would for http.request_timeout, 30 seconds."""
    family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
    with socket.socket(family) as sock:
        sock.settimeout(timeout)
        sock.connect(address)
        try:
            sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        received = b""
        try:
            while chunk := sock.recv(65536):
                received += chunk
        except ConnectionResetError:
            pass
        return received
