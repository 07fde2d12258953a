# SPDX-License-Identifier: Apache-2.0
"""Programs that listen in a sandbox, reached with the Python SDK."""

import concurrent.futures
import os
import socket
import threading
import urllib.error
import urllib.request

import pytest

import millibox
from millibox import errors

from support.ports import SERVE

pytestmark = pytest.mark.phases("system")

WEB = """
import http.server
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello " + self.path.encode())
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8080), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
"""


@pytest.fixture
def server(box):
    """A sandbox that echoes on port 8000 and serves pages on 8080."""
    assert box.run_code(f"{SERVE}\nlistener = serve(8000, echo)\n{WEB}").ok
    return box


def test_bytes_go_both_ways(server):
    with server.open_port(8000) as port:
        port.write(b"hello")
        assert port.read(2) + port.read() == b"hello"
        port.write(b"\0\xff")
        port.finish()
        assert port.read_all() == b"\0\xff"
        assert port.read() == b""


def test_ten_megabytes(kind, server):
    data = os.urandom(10 << 20)
    if kind.is_async:
        with server.forward(8000) as local, socket.create_connection((local.host, local.port)) as s:
            threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
            assert b"".join(iter(lambda: s.recv(65536), b"")) == data
        return
    with server.open_port(8000) as port:
        writer = threading.Thread(target=lambda: (port.write(data), port.finish()))
        writer.start()
        assert port.read_all() == data
        writer.join()


def test_a_web_server_is_reached_by_any_client(server):
    with server.forward(8080) as local:
        def get(i):
            with urllib.request.urlopen(f"{local.url}/{i}", timeout=60) as answer:
                return answer.read()

        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            assert list(pool.map(get, range(20))) == [f"hello /{i}".encode() for i in range(20)]
    with socket.socket() as holder:  # no other program can listen there
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((local.host, local.port))
        with pytest.raises(urllib.error.URLError):
            get(0)


def test_ports_are_listed(server):
    assert server.ports() == [millibox.PortInfo(8000, "loopback"), millibox.PortInfo(8080, "loopback")]
    assert server.ports()[0].is_reachable


def test_nothing_listens(box):
    with pytest.raises(errors.NotFoundError, match="port 8000: nothing listens"):
        box.open_port(8000)
    with box.forward(8000) as local:
        with socket.create_connection((local.host, local.port)) as s, pytest.raises(ConnectionResetError):
            s.recv(1)
        assert isinstance(local.last_error, errors.NotFoundError)


def test_the_end_of_the_sandbox_ends_a_connection(server):
    with server.open_port(8000) as port:
        port.write(b"x")
        assert port.read() == b"x"
        server.kill()
        with pytest.raises(millibox.ConnectionLost, match="its sandbox has ended"):
            port.read()


def test_a_reset_is_an_error(box):
    assert box.run_code(f"{SERVE}\ndef reset(c):\n    c.recv(1)\n    c.close()\nlistener = serve(8000, reset)").ok
    with box.open_port(8000) as port:
        port.write(b"more than one byte")
        with pytest.raises(millibox.ConnectionLost, match="the program reset it"):
            port.read_all()


def test_no_daemon(kind):
    box = kind.attach("sess_0000000000000000", kind.Client(socket="/nonexistent/socket"))
    with pytest.raises(millibox.ConnectError):
        box.open_port(8000)


def test_over_tcp(kind, daemon):
    host, number = daemon.tcp_address()
    with kind.Client(url=f"http://{host}:{number}") as client, kind.Sandbox(client) as box:
        assert box.run_code(f"{SERVE}\nlistener = serve(8000, echo)").ok
        with box.open_port(8000) as port:
            port.write(b"x")
            assert port.read() == b"x"
