# SPDX-License-Identifier: Apache-2.0
"""A small MCP client for tests, which can also break the rules."""

import http.client
import json
import socket

from support.client import UnixConnection

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST = VERSIONS[-1]
BOTH = "application/json, text/event-stream"


class Event:
    def __init__(self, number, data):
        self.id = number
        self.data = data

    @property
    def json(self):
        return json.loads(self.data)


def events(response):
    """Server-sent events, including those that carry only an id."""
    number, data = None, None
    for raw in response:
        line = raw.decode().rstrip("\n")
        if not line:
            if data is not None:
                yield Event(number, data)
            number, data = None, None
        elif line.startswith("id: "):
            number = line[4:]
        elif line.startswith("data:"):
            data = line[5:].lstrip(" ")


class Mcp:
    """One session over Streamable HTTP; every message has a connection of its own."""

    def __init__(self, address, version=LATEST, headers=None, start=True):
        self.address = address
        self.version = version
        self.headers = dict(headers or {})
        self.session = None
        self.last = 0
        self.open = []
        if start:
            self.initialized = self.initialize()

    def connect(self):
        if isinstance(self.address, tuple):
            connection = http.client.HTTPConnection(*self.address, timeout=60)
        else:
            connection = UnixConnection(self.address, timeout=60)
        self.open.append(connection)
        return connection

    def send(self, method, body=None, accept=BOTH, headers=None):
        """The response, its body not yet read."""
        connection = self.connect()
        sent = {"Accept": accept, **self.headers}
        if self.session:
            sent["Mcp-Session-Id"] = self.session
            sent["Mcp-Protocol-Version"] = self.version
        if body is not None:
            sent["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent.update(headers or {})
        sent = {name: value for name, value in sent.items() if value is not None}
        connection.request(method, "/mcp", body=body, headers=sent)
        return connection.getresponse()

    def post(self, message, **kw):
        return self.send("POST", message, **kw)

    def message(self, method, params=None, number=None):
        self.last += 1
        made = {"jsonrpc": "2.0", "id": self.last if number is None else number, "method": method}
        if params is not None:
            made["params"] = params
        return made

    def ask(self, method, params=None, **kw):
        """The answer to a request, as JSON or from a stream; notifications go to .heard."""
        message = self.message(method, params)
        response = self.post(message, **kw)
        self.heard = []
        try:
            return self._answer(response, message["id"])
        finally:
            self.hang_up()

    def _answer(self, response, number):
        if response.headers["Content-Type"] != "text/event-stream":
            body = response.read()
            return json.loads(body) if body else {"status": response.status}
        for event in events(response):
            if event.data and event.json.get("id") == number:
                return event.json
            if event.data:
                self.heard.append(event.json)
        raise AssertionError(f"the stream ended without an answer: {self.heard}")

    def hang_up(self):
        """Close the connection that was opened last."""
        self.open.pop().close()

    def result(self, method, params=None, **kw):
        answer = self.ask(method, params, **kw)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method, params=None, **kw):
        answer = self.ask(method, params, **kw)
        assert "error" in answer, answer
        return answer["error"]

    def notify(self, method, params=None):
        response = self.post({"jsonrpc": "2.0", "method": method, "params": params or {}})
        response.read()
        self.hang_up()
        return response.status

    def initialize(self):
        params = {
            "protocolVersion": self.version,
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"},
        }
        response = self.post(self.message("initialize", params))
        body = response.read()
        assert response.status == 200, body
        self.hang_up()
        self.session = response.headers["Mcp-Session-Id"]
        assert self.notify("notifications/initialized") == 202
        return json.loads(body)["result"]

    def call(self, name, progress=None, **arguments):
        """The result of a tool."""
        params = {"name": name, "arguments": arguments}
        if progress is not None:
            params["_meta"] = {"progressToken": progress}
        return self.result("tools/call", params)

    def listen(self, last=None, headers=None):
        """Open the event stream, or resume another one."""
        more = {"Last-Event-ID": last} if last else {}
        return self.send("GET", accept="text/event-stream", headers={**more, **(headers or {})})

    def end(self):
        response = self.send("DELETE")
        response.read()
        self.hang_up()
        return response.status

    def close(self):
        if self.session:
            self.end()
        for connection in self.open:
            connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def cut(response):
    """Disconnect without reading the rest."""
    sock = response.fp.raw._sock
    sock.shutdown(socket.SHUT_RDWR)
    response.close()
