# SPDX-License-Identifier: Apache-2.0
"""Hosts that need a key, a daemon whose boxes may use it, and a search for a value where it must not be."""

import contextlib
import http.server
import json
import pathlib
import shutil
import tempfile
import threading

from support.daemon import Daemon
from support.egress import Resolver
from support.sites import make_certificate, serve

VALUE = "sk-live-0123456789abcdef-not-for-code"
API, OTHER = "api.test", "other.test"


class Host:
    """Answers 200 if the key is right, else 401, and keeps each request. /echo: the request in the body, /headers: in a header,
    /redirect?URL leads there, /chunks: the key in two pieces with a pause in between."""

    def __init__(self, certificates=None):
        self.requests = []  # (method, path, headers, body)
        self.key = VALUE
        self.size = 0
        self._certificates = certificates
        self._lock = threading.Lock()

    def handler(self):
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_one(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with owner._lock:
                    owner.requests.append((self.command, self.path, dict(self.headers.items()), body))
                owner.answer(self)

            do_GET = do_POST = do_PUT = handle_one

        return Handler

    def answer(self, h):
        right = h.headers.get("Authorization") == f"Bearer {self.key}"
        echo = json.dumps(list(h.headers.items())).encode()
        headers = {}
        if h.path.startswith("/redirect?"):
            headers = {"Location": h.path[10:]}
        elif h.path == "/headers":
            headers = {"X-Echo": h.headers.get("Authorization", "")}
        if h.path == "/chunks":
            h.send_response(200)
            h.send_header("Connection", "close")
            h.end_headers()
            text = echo
            at = text.find(self.key.encode())
            h.wfile.write(text[: at + 5])
            h.wfile.flush()
            h.wfile.write(text[at + 5 :])
            return
        body = b"y" * self.size if h.path == "/size" else echo if h.path == "/echo" else (b"accepted" if right else b"refused")
        h.send_response(302 if "Location" in headers else 200 if right else 401)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            h.send_header(name, value)
        h.end_headers()
        h.wfile.write(body)

    def take(self):
        with self._lock:
            requests, self.requests = self.requests, []
        return requests

    def keys(self):
        """The Authorization of each request since the last call."""
        return [headers.get("Authorization") for _, _, headers, _ in self.take()]


class Vault:
    """A daemon with an API host in plain HTTP and one with TLS, both under the name API, and one more host. The policy "net"
    allows every secret."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=Daemon.prefix_of_homes))
        self.folder.chmod(0o755)
        (self.folder / "tls").mkdir()
        make_certificate(self.folder / "tls", API)
        self.ca = self.folder / "tls/cert.pem"
        for path in (self.folder / "tls", self.ca):
            path.chmod(0o755)
        self.resolver = Resolver()
        for name in (API, OTHER):
            self.resolver.script[name] = [["127.0.0.1"]]
        self.plain, self.secure, self.other = Host(), Host(), Host()
        self._exit = contextlib.ExitStack()
        self.plain_port = self._exit.enter_context(serve(self.plain.handler()))
        self.secure_port = self._exit.enter_context(serve(self.secure.handler(), self.folder / "tls"))
        self.other_port = self._exit.enter_context(serve(self.other.handler()))
        ports = f"{self.plain_port},{self.secure_port},{self.other_port}"
        self.allow = [f"{API}:{ports}", f"{OTHER}:{ports}", f"127.0.0.1/32:{ports}"]
        self.write_policy("net")
        self.write_policy("plain", intercept=False)
        self.write_policy("none", secrets=[])
        self.daemon = Daemon(config=f"policy: {{dir: {self.folder}, default: net, selectable: [net, plain, none]}}\n"
                                    "sessions: {survive: 30s}\n"
                                    f"egress: {{resolver: '127.0.0.1:{self.resolver.port}', ca_file: {self.ca}}}\n")

    def write_policy(self, name, secrets=("*",), intercept=True):
        text = (f"name: {name}\nnetwork:\n  mode: allowlist\n  allow: {json.dumps(self.allow)}\n  secrets: {json.dumps(list(secrets))}\n"
                f"  intercept: {'true' if intercept else 'false'}\n")
        path = self.folder / f"{name}.yaml"
        path.write_text(text)
        path.chmod(0o644)

    @property
    def plain_url(self):
        return f"http://{API}:{self.plain_port}"

    @property
    def secure_url(self):
        return f"https://{API}:{self.secure_port}"

    def set(self, name, hosts=None, value=VALUE, **fields):
        hosts = hosts or [self.plain_url, self.secure_url]
        with self.daemon.client() as client:
            answer = client.request("PUT", f"/api/v1/secrets/{name}", {"value": value, "hosts": hosts, **fields})
        assert answer.status == 200, answer
        return answer.json

    def delete(self, name):
        with self.daemon.client() as client:
            assert client.request("DELETE", f"/api/v1/secrets/{name}").status == 204

    def __enter__(self):
        self.daemon.start()
        return self

    def __exit__(self, *exc):
        code = self.daemon.stop() if self.daemon.process.poll() is None else 0
        log = self.daemon.log()
        self.daemon.remove()
        self._exit.close()
        self.resolver.close()
        shutil.rmtree(self.folder)
        assert code == 0, log
        assert VALUE not in log


#: For a box: requests without a library that adds headers of its own. fetch(url) gives status and body.
FETCH = """
import json, os, sys, urllib.request, urllib.error
def fetch(url, headers={}, data=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as r:
            return [r.status, r.read().decode(), dict(r.headers)]
    except urllib.error.HTTPError as e:
        return [e.code, e.read().decode(), dict(e.headers)]
    except OSError as e:
        return [0, str(e), {}]
"""
