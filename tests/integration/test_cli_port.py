# SPDX-License-Identifier: Apache-2.0
"""millibox port: local ports that lead to programs in a session."""

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import urllib.request

import pytest

from support import host
from support.daemon import BUILD
from support.ports import serve

pytestmark = pytest.mark.phases("system")

HTTP = """
import http.server, functools
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.answer(f"hello {self.path}".encode())
    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))
    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # 5 by default: of more at once the kernel drops some, and they try again after seconds
server = Server(("127.0.0.1", 8080), Page)
import threading
threading.Thread(target=server.serve_forever, daemon=True).start()
"""


def command(daemon, *args):
    return [str(BUILD / "millibox"), "port", "--socket", daemon.socket, *map(str, args)]


def run(daemon, *args):
    return subprocess.run(command(daemon, *args), capture_output=True, text=True, timeout=60)


@contextlib.contextmanager
def forwarding(daemon, session, *words):
    """The process, and the local port of each word."""
    process = subprocess.Popen(command(daemon, session.id, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        lines = [process.stdout.readline() for word in words if word[0] != "-"]
        yield process, [int(re.match(r"(?:127\.0\.0\.1|\[::1\]):(\d+) -> port \d+ of session ", line)[1]) for line in lines]
    finally:
        process.kill()
        process.wait(20 * host.PATIENCE)
        process.stdout.close()
        process.stderr.close()


def get(port, path="/", data=None):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data, timeout=host.HANG_S) as answer:
        return answer.read()


def test_a_web_server_is_reached(daemon, py):
    assert py.run(HTTP)["status"] == "success"
    data = os.urandom(10 << 20)
    with forwarding(daemon, py, "8080:0") as (process, [port]):
        assert get(port, "/a?b") == b"hello /a?b"
        assert get(port, "/", data) == data
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            assert list(pool.map(lambda i: get(port, f"/{i}"), range(50))) == [f"hello /{i}".encode() for i in range(50)]
        process.send_signal(signal.SIGINT)
        assert process.wait(20 * host.PATIENCE) == 0


def test_ends_are_passed_on(daemon, py):
    serve(py, 8000)
    with forwarding(daemon, py, "8000:0") as (_, [port]), socket.create_connection(("127.0.0.1", port), host.HANG_S) as s:
        s.sendall(b"abc")
        s.shutdown(socket.SHUT_WR)
        assert b"".join(iter(lambda: s.recv(100), b"")) == b"abc"


def test_several_ports_and_addresses(daemon, py):
    serve(py, 8000)
    serve(py, 8001)
    with forwarding(daemon, py, "8000:0", "8001:0") as (_, found):
        for port in found:
            with socket.create_connection(("127.0.0.1", port), host.HANG_S) as s:
                s.sendall(b"x")
                assert s.recv(1) == b"x"
    with forwarding(daemon, py, "8000:0", "--address=::1") as (_, [port]):
        with socket.create_connection(("::1", port), host.HANG_S) as s:
            s.sendall(b"x")
            assert s.recv(1) == b"x"


def test_nothing_listens(daemon, py):
    with forwarding(daemon, py, "8000:0") as (process, [port]):
        # The reset may arrive while the connection is being made.
        with pytest.raises(ConnectionResetError), socket.create_connection(("127.0.0.1", port), host.HANG_S) as s:
            s.recv(1)
        assert "port 8000: nothing listens" in process.stderr.readline()
        serve(py, 8000)
        with socket.create_connection(("127.0.0.1", port), host.HANG_S) as s:
            s.sendall(b"x")
            assert s.recv(1) == b"x"


def test_a_deleted_session_ends_the_command(daemon, make):
    session = make()
    serve(session, 8000)
    with forwarding(daemon, session, "8000:0") as (process, [port]):
        with socket.create_connection(("127.0.0.1", port), host.HANG_S) as s:
            s.sendall(b"x")
            assert s.recv(1) == b"x"
            assert session.delete().status == 200
            with pytest.raises(ConnectionResetError):
                s.recv(1)
        # The reset may arrive while the connection is being made.
        with pytest.raises(ConnectionResetError), socket.create_connection(("127.0.0.1", port), host.HANG_S) as s:
            s.recv(1)
        assert process.wait(20 * host.PATIENCE) == 125
        assert "session" in process.stderr.read().lower()


def test_its_processes_end_with_it(daemon, py):
    serve(py, 8000)
    with forwarding(daemon, py, "8000:0") as (process, [port]):
        with socket.create_connection(("127.0.0.1", port), host.HANG_S) as s:
            s.sendall(b"x")
            assert s.recv(1) == b"x"
            process.kill()
            process.wait(20 * host.PATIENCE)
            assert s.recv(1) == b""


def test_a_slow_reader_gets_everything(daemon, py):
    burst = "def burst(c):\n    c.sendall(bytes(4 << 20))\n    c.close()"
    serve(py, 8000, "burst", burst)
    with forwarding(daemon, py, "8000:0") as (_, [port]), socket.create_connection(("127.0.0.1", port), host.HANG_S) as s:
        first = s.recv(1)
        serve(py, 8001)
        assert len(first + b"".join(iter(lambda: s.recv(65536), b""))) == 4 << 20


def test_lists(daemon, py):
    assert run(daemon, py.id).stdout.split() == ["PORT", "ADDRESS"]
    serve(py, 8000)
    serve(py, 8001, host="0.0.0.0")
    lines = run(daemon, py.id).stdout.splitlines()
    assert [line.split() for line in lines] == [["PORT", "ADDRESS"], ["8000", "loopback"], ["8001", "any"]]
    assert len(json.loads(run(daemon, py.id, "--json").stdout)["ports"]) == 2


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        ([], 2, "expected a session id"),
        (["SESSION", "http"], 2, "'http' is not PORT or PORT:LOCALPORT"),
        (["SESSION", "0"], 2, "'0' is not PORT"),
        (["SESSION", "80:70000"], 2, "'80:70000' is not PORT"),
        (["SESSION", "80:"], 2, "'80:' is not PORT"),
        (["SESSION", "8000", "--address", "localhost"], 2, "--address: 'localhost' is not an IP address"),
        (["../x", "8000:0"], 2, "'../x'"),
        (["nobody", "8000:0"], 125, "ession"),
    ],
)
def test_wrong_use_is_explained(daemon, py, words, status, text):
    done = run(daemon, *[py.id if word == "SESSION" else word for word in words])
    assert (done.returncode, text in done.stderr) == (status, True), done


def test_a_local_port_in_use_is_named(daemon, py):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(daemon, py.id, f"8000:{port}")
        assert done.returncode == 125 and f"cannot listen on port {port} of 127.0.0.1" in done.stderr and "8000:0" in done.stderr
