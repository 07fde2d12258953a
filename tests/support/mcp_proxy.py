# SPDX-License-Identifier: Apache-2.0
"""A proxy between the conformance suite and the daemon. The suite calls a tool of its own test server; the proxy
calls one of ours instead, and ends the response after its first event, as a lost connection would. All that the suite
then checks is the daemon's: the first event, the time to wait, and the rest of the response to a GET."""

import contextlib
import http.client
import http.server
import json
import socket
import threading

from support.host import HANG_S

TOOL = "test_reconnection"
CALL = {"name": "execute_code", "arguments": {"language": "python", "code": "import time\ntime.sleep(1)\nprint('back')"}}
HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}


class Handler(http.server.BaseHTTPRequestHandler):
    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        message = json.loads(body) if body else {}
        ours = isinstance(message, dict) and message.get("method") == "tools/call" and message["params"]["name"] == TOOL
        if ours:
            message["params"] = CALL
            body = json.dumps(message).encode()
            self.server.calls += 1
        host, port = self.server.daemon
        upstream = http.client.HTTPConnection(host, port, timeout=HANG_S)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP | {"host"}}
        upstream.request(self.command, self.path, body or None, headers)
        self.server.upstream.append(upstream.sock)
        answer = upstream.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            while data := answer.read1(65536):
                first, end, _ = data.partition(b"\n\n")
                self.wfile.write(first + end if ours else data)
                self.wfile.flush()
                if ours and end:
                    break
        except OSError:
            pass  # the client left
        upstream.close()
        self.close_connection = True

    do_GET = do_POST = do_DELETE = forward

    def log_message(self, *_):
        pass


class Proxy:
    """with Proxy(daemon.tcp_address()) as proxy: proxy.url"""

    def __init__(self, daemon):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon, self.server.calls, self.server.upstream = daemon, 0, []
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/mcp"

    @property
    def calls(self):
        return self.server.calls

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        """A stream that the client has left would end with its next event only."""
        self.server.shutdown()
        self.server.server_close()
        for one in self.server.upstream:
            with contextlib.suppress(OSError):  # it has ended
                one.shutdown(socket.SHUT_RDWR)
