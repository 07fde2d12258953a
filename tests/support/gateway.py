# SPDX-License-Identifier: Apache-2.0
"""What tests of the MCP gateway need: a daemon with outside servers, and code that speaks the socket's protocol."""

import contextlib
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import tempfile
import threading
import time

from support import host
from support.daemon import Daemon

#: A small server of ours, as a command. The daemon's own user must be able to read it.
TOY = pathlib.Path(__file__).with_name("toy_mcp.py")

#: A program for a box: one frame each way, without any module of ours.
SPEAK = """
import json, socket
def speak(data, end=False):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect("/tmp/mcp.sock")
    try:
        s.sendall(data)
        if end:
            s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    answer = b""
    while part := s.recv(1 << 20):
        answer += part
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4, answer
    return json.loads(answer[4:])
def frame(message):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    return len(data).to_bytes(4, "big") + data
def ask(url, tool, arguments=None):
    return speak(frame({"url": url, "tool": tool, "arguments": arguments or {}}))
"""


class Gateway:
    """A daemon with outside MCP servers. @policies: {name: text}; the first is the default."""

    def __init__(self, servers, policies=None, settings=None, more=""):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=Daemon.prefix_of_homes))
        self.folder.chmod(0o755)
        self.toy = self.folder / "toy_mcp.py"
        shutil.copy(TOY, self.toy)
        self.toy.chmod(0o644)
        policies = policies or {"tools": 'mcp: {servers: ["*"]}', "without": "mcp: {servers: []}"}
        for name, text in policies.items():
            self.write_policy(name, text)
        gateway = {"servers": {name: self.server(spec) for name, spec in servers.items()}, **(settings or {})}
        self.daemon = Daemon(
            config=f"policy: {{dir: {self.folder}, default: {next(iter(policies))}, "
            f"selectable: [{', '.join(policies)}]}}\n"
            f"sessions: {{survive: 30s}}\ngateway: {json.dumps(gateway)}\n{more}"
        )

    def server(self, spec):
        """@spec: the settings of a server; "toy" stands for our own."""
        if spec == "toy":
            spec = {}
        if "command" not in spec and "url" not in spec:
            spec = {**spec, "command": ["/usr/bin/python3", str(self.toy)]}
        return spec

    def write_policy(self, name, text):
        path = self.folder / f"{name}.yaml"
        path.write_text(f"name: {name}\ndescription: Of a test\n{text}\n")
        path.chmod(0o644)

    def __enter__(self):
        self.daemon.start()
        return self

    def __exit__(self, *exc):
        code = self.daemon.stop() if self.daemon.process.poll() is None else 0
        log = self.daemon.log()
        self.daemon.remove()
        shutil.rmtree(self.folder)
        assert code == 0, log

    def run(self, code, mcp=("toy",), **fields):
        """Run Python in a new box. Return: the result of the execution."""
        with self.daemon.client() as client:
            return client.python(code, **({"mcp": list(mcp)} if mcp else {}), **fields)

    def value(self, code, **fields):
        """Run code that prints JSON. Return: the value."""
        result = self.run(code, **fields)
        assert result["exit_code"] == 0, result
        return json.loads(result["stdout"])

    def ask(self, *request, mcp=("toy",), **fields):
        """What the socket answers to one request of a new box."""
        return self.value(SPEAK + f"print(json.dumps(ask(*{request!r})))", mcp=mcp, **fields)

    def change_policy(self, name, text):
        """As an operator does: live sessions get the new list."""
        before = self.daemon.log().count("reloaded")
        self.write_policy(name, text)
        os.kill(self.daemon.pid, signal.SIGHUP)
        host.wait_until(lambda: self.daemon.log().count("reloaded") > before, 10, "reloaded")

    def starter(self):
        """The process that runs commands; the gateway and the servers are its children."""
        return host.child_named(self.daemon.pid, "millibox-gatewa")

    def gateway_pid(self):
        served = [pid for pid in host.children(self.starter()) if host.comm(pid).startswith("millibox-gatewa")]
        return served[0] if served else None

    def server_pids(self):
        return [pid for pid in host.children(self.starter()) if not host.comm(pid).startswith("millibox-gatewa")]

    def info(self, name):
        """What the API says of a server."""
        with self.daemon.client() as client:
            answer = client.get(f"/api/v1/mcp/servers/{name}")
        assert answer.status == 200, answer
        return answer.json

    def calls(self, name):
        return self.info(name)["calls"]


class HttpServer:
    """MCP over HTTP, with the tools of toy_mcp.py that matter here."""

    def __init__(self, stream):
        self.stream, self.sessions, self.authorizations = stream, set(), set()
        self.lingering = self.sleeping = 0
        self.is_dead = False
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if owner.is_dead or message.get("params", {}).get("name") == "reset":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                else:
                    owner.answer(self, message)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/mcp"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def forget(self):
        self.sessions.clear()

    def reply(self, request, status, body=b"", kind="application/json", headers=()):
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    def linger(self, request, data):
        """An answer, and a stream that does not end."""
        event = f"data: {data}\r\n\r\n".encode()
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        request.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.lingering += 1
        with contextlib.suppress(OSError):
            request.rfile.read(1)  # until the client closes it
        self.lingering -= 1
        request.close_connection = True

    def answer(self, request, message):
        self.authorizations.add(request.headers.get("Authorization"))
        method, headers = message.get("method"), []
        if method == "initialize":
            session = os.urandom(8).hex()
            self.sessions.add(session)
            headers = [("Mcp-Session-Id", session)]
            result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "http", "version": "1"}}
        elif request.headers.get("Mcp-Session-Id") not in self.sessions:
            self.reply(request, 404)
            return
        elif "id" not in message:
            self.reply(request, 202)
            return
        elif method == "ping":
            result = {}
        elif method == "tools/list":
            names = ("echo", "fail", "http-error")
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names] + [{"name": "bare"}]}
        else:
            name, arguments = message["params"]["name"], message["params"].get("arguments", {})
            if name == "http-error":
                self.reply(request, 500, b"<html>secret of the server</html>", "text/html")
                return
            result = {"content": [{"type": "text", "text": arguments.get("text", "")}]}
            if name == "fail":
                result["isError"] = True
            if name == "sleep":
                self.sleeping += 1
                time.sleep(arguments["seconds"])
        data = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        if message["method"] == "tools/call" and message["params"]["name"] == "linger":
            self.linger(request, data)
        elif self.stream:
            note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
            body = f": hello\r\n\r\nevent: message\r\ndata: {note}\r\n\r\nid: 1\r\ndata: {data}\r\n\r\n".encode()
            self.reply(request, 200, body, "text/event-stream", headers)
        else:
            self.reply(request, 200, data.encode(), "application/json; charset=utf-8", headers)


@contextlib.contextmanager
def serve_http(stream=False):
    server = HttpServer(stream)
    server.thread.start()
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()
