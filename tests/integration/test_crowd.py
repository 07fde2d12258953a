# SPDX-License-Identifier: Apache-2.0
"""Connections beyond the limits: every client reads why, and no request is lost or run unseen."""

import contextlib
import json
import select
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


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connect_slowly(address):
    """A client that reads little: small segments, so that the daemon's buffer is small, too."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)
    sock.connect(address)
    return sock


def send_all_it_takes(sock):
    """Return: the number of requests, the last one perhaps in part."""
    sent, is_full = 0, False
    while not is_full:
        _, ready, _ = select.select([], [sock], [], 1)
        is_full = not ready
        with contextlib.suppress(BlockingIOError):
            sent += sock.send((HEALTH * 1000)[sent % len(HEALTH):], socket.MSG_DONTWAIT)
    return -(-sent // len(HEALTH))


def count_answers(sock, most):
    """Until there are so many, or the connection ends."""
    word, count, tail = b"HTTP/1.1 200 ", 0, b""
    with contextlib.suppress(ConnectionError):
        while count < most and (piece := sock.recv(65536)):
            count += (tail + piece).count(word)
            tail = (tail + piece)[1 - len(word):]
    return count


@pytest.mark.parametrize("crowded", [True, False], ids=["crowded", "control"])
def test_requests_that_were_sent_ahead_do_not_keep_a_connection(make_daemon, crowded):
    """One that gives way is counted no more: if it could stay, an address could have any number."""
    d = make_daemon(tcp=True, config=f"http: {{max_connections: {4 * LIMIT}, max_connections_per_local_peer: {LIMIT},"
                                     f" max_connections_per_peer: {LIMIT}}}\n").start()
    with contextlib.ExitStack() as stack:
        slow = stack.enter_context(contextlib.closing(connect_slowly(d.tcp_address())))
        whole = send_all_it_takes(slow) - 1
        for _ in range(LIMIT if crowded else LIMIT - 1):
            stack.enter_context(contextlib.closing(socket.create_connection(d.tcp_address())))

        def has_given_way():
            with contextlib.closing(Client(d.socket)) as client:
                return "connections_evicted_total 1\n" in client.get("/metrics").body.decode()

        if crowded:
            host.wait_until(has_given_way, host.HANG_S, "the slow client has given way")
        else:
            assert not has_given_way()
        slow.settimeout(host.HANG_S)
        answers = count_answers(slow, whole)
        assert answers > 0 and (answers < whole) == crowded
