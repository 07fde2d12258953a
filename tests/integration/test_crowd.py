# SPDX-License-Identifier: Apache-2.0
"""Connections beyond the limits: every client reads why, and no request is lost or run unseen."""

import contextlib
import json
import shutil
import socket
import ssl
import subprocess

import pytest

from support import host
from support.client import Client

pytestmark = pytest.mark.phases("system")

LIMIT = 4
#: More than the daemon keeps for the time of a request.
CROWD = 40
WAITING = json.dumps({"language": "shell", "code": "sleep 300", "timeout": 300}).encode()
#: Larger than what is read at once, so that some of it is unread when the daemon answers.
LARGE = json.dumps({"language": "shell", "code": "true", "stdin": "x" * 150_000}).encode()


def request_of(body):
    return (f"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


class Full:
    """A daemon all of whose connections of one kind wait for programs."""

    def __init__(self, daemon, kind, stack):
        self.daemon, self.kind, self.stack = daemon, kind, stack
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        self.busy = [self.connect() for _ in range(LIMIT)]
        for sock in self.busy:
            sock.sendall(request_of(WAITING))
        host.wait_until(lambda: self.state()["running"] == LIMIT, host.HANG_S, "all of them run")

    def state(self):
        """Over a connection of another kind: one of the same kind takes the place of a client whose request was not read yet."""
        with contextlib.closing(Client(self.daemon.tcp_address() if self.kind == "unix" else self.daemon.socket)) as client:
            return client.get("/readyz").json

    def connect(self):
        sock = self.stack.enter_context(socket.socket(socket.AF_UNIX if self.kind == "unix" else socket.AF_INET))
        sock.settimeout(host.HANG_S)
        if self.kind == "unix":
            sock.connect(self.daemon.socket)
            return sock
        sock.connect(("127.0.0.1", self.daemon.port))
        return sock if self.kind == "tcp" else self.stack.enter_context(self.tls.wrap_socket(sock))


def read_all(sock):
    """Up to the end of the connection. A reset is an error."""
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


def expect_refusal(sock):
    head, _, body = read_all(sock).partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0].startswith("http/1.1 429 "), head
    assert "retry-after: 1" in lines and "should-retry: true" in lines and "connection: close" in lines, head
    problem = json.loads(body)
    assert (problem["error_code"], problem["error_detail"]) == ("Sandbox.TooManyRequests", "too many connections")
    assert problem["retry_after"] == 1


@pytest.fixture(params=["unix", "tcp", "tls"])
def full(request, make_daemon, tmp_path):
    env = {}
    if request.param == "tls":
        if not shutil.which("openssl"):
            pytest.skip("needs openssl")
        env = {"MILLIBOX_TLS_CERT": str(tmp_path / "cert.pem"), "MILLIBOX_TLS_KEY": str(tmp_path / "key.pem")}
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-out", env["MILLIBOX_TLS_CERT"], "-keyout", env["MILLIBOX_TLS_KEY"]],
                       check=True, capture_output=True)
    config = f"http: {{max_connections: {LIMIT}, max_connections_per_peer: {LIMIT}}}\n"
    d = make_daemon(tcp=True, env=env, config=config).start()
    d.port = int(d.log().split("://127.0.0.1:")[1].split()[0].strip('"'))
    with contextlib.ExitStack() as stack:
        yield Full(d, request.param, stack)


def test_clients_that_send_first_read_the_refusal(full):
    crowd = []
    for _ in range(CROWD):
        crowd.append(full.connect())
        crowd[-1].sendall(request_of(LARGE))
    for sock in crowd:
        expect_refusal(sock)
    state = full.state()
    assert (state["running"], state["queued"]) == (LIMIT, 0), "no request of theirs was begun"
    # A health check is answered in the crowd, too.
    health = full.connect()
    health.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert read_all(health).startswith(b"HTTP/1.1 200 ")
    # Control: the same request is served where there is room.
    full.busy.pop().close()
    host.wait_until(lambda: full.state()["running"] == LIMIT - 1, host.HANG_S, "one has left")
    served = full.connect()
    served.sendall(request_of(LARGE).replace(b"Host:", b"Connection: close\r\nHost:"))
    assert read_all(served).startswith(b"HTTP/1.1 200 ")


def test_clients_that_read_first_read_the_refusal(full):
    """They send nothing: some were kept for a request, and are answered when none comes."""
    for sock in [full.connect() for _ in range(CROWD)]:
        expect_refusal(sock)
