# SPDX-License-Identifier: Apache-2.0
"""An API client cannot use up the daemon's memory or time."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import time

import pytest
from support import host
from support.client import Client, raw_exchange
from support.daemon import Daemon, is_sanitized

pytestmark = pytest.mark.phases("system")

#: Each byte of it is six of JSON.
FLOOD = "head -c {0} /dev/zero; head -c {0} /dev/zero >&2"


def ask(daemon, code, **resources):
    """A request whose answer is not read."""
    body = json.dumps({"language": "shell", "code": code, "resources": resources}).encode()
    sock = socket.socket(socket.AF_UNIX)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(daemon.socket)
    head = "POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return sock


def wait_for_answer(sock):
    sock.settimeout(host.HANG_S)
    assert sock.recv(1, socket.MSG_PEEK)


def test_unread_responses_are_bounded(make_daemon):
    """Eight unread answers of 24 MB each; 64 MiB are allowed."""
    if is_sanitized():
        pytest.skip("the address sanitizer keeps what was freed")
    d = make_daemon(config="http:\n  max_answers: 64Mi\n").start()
    before = host.rss_kib(d.pid)
    socks = []
    for _ in range(8):
        socks.append(ask(d, FLOOD.format(2 << 20), max_output="2Mi"))
        wait_for_answer(socks[-1])
        assert host.rss_kib(d.pid) < before + 64 * 1024 + 40 * 1024
    # Clients that read are served completely meanwhile.
    with d.client() as c:
        result = c.shell(FLOOD.format(1 << 20), resources={"max_output": "1Mi"})
    assert len(result["stdout"]) == len(result["stderr"]) == 1 << 20
    assert "others need the room" in d.log()
    for sock in socks:
        sock.close()


def loop_seconds(daemon):
    """CPU time of the event loop's thread, which does not depend on the host's load."""
    return int(pathlib.Path(f"/proc/{daemon.pid}/schedstat").read_text().split()[0]) / 1e9


def answer_largely(daemon, feed):
    """The largest output allowed by default. Return: CPU time of the loop for it."""
    before = loop_seconds(daemon)
    with daemon.client() as c:
        answer = c.post(
            "/api/v1/execute",
            {
                "language": "shell",
                "code": f"{feed} | head -c 4194304; {feed} | head -c 4194304 >&2",
                "resources": {"max_output": "4Mi"},
            },
        )
    assert len(answer.json["stdout"]) > 1 << 20
    return loop_seconds(daemon) - before


@pytest.mark.parametrize("source", ["/dev/zero", "/dev/urandom"])
def test_a_large_answer_does_not_stop_the_others(daemon, source):
    """The loop serves no request while it serialises: escaped output costs a few times as much as text, not the dozens of
    times of one call per character."""
    text = answer_largely(daemon, "yes 'a line of text'")
    # Others on a busy host take the caches away: some of them cost more.
    assert any(answer_largely(daemon, f"cat {source}") < 10 * text for _ in range(3))


def test_many_arguments_are_refused_at_once(daemon):
    start = time.monotonic()
    received = raw_exchange(
        daemon.tcp_address(),
        b"GET /healthz?" + b"a=1&" * 600 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        timeout=60,
    )
    assert received.startswith(b"HTTP/1.1 413 "), received[:200]
    assert time.monotonic() - start < 5 * host.PATIENCE


@pytest.mark.parametrize("cookie", [b"x" * 12_000, b"a=1; " * 1000], ids=["long", "many"])
def test_a_header_within_its_limit_is_accepted(daemon, cookie):
    received = raw_exchange(
        daemon.tcp_address(),
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: " + cookie + b"\r\n\r\n",
    )
    assert received.startswith(b"HTTP/1.1 200 "), received[:200]


def test_open_files_shrink_with_the_number_of_processes(client):
    assert client.shell("ulimit -n")["stdout"] == "1024\n"
    assert client.shell("ulimit -n", resources={"max_processes": 1024})["stdout"] == "128\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_root_does_not_listen_in_another_users_directory(make_daemon):
    d = make_daemon()
    os.chown(d.home, 12345, 12345)
    d.start(ready=False)
    assert d.process.wait(host.HANG_S) != 0
    assert "belongs to user 12345" in d.log()


class FewDescriptors(Daemon):
    def command(self):
        return ["prlimit", "--nofile=100:100", *super().command()]


def test_running_out_of_descriptors_ends_nothing():
    """API-5: a connected client is answered; later ones are answered once there are descriptors again."""
    d = FewDescriptors(tcp=True, config="http:\n  max_connections: 4000\n  max_connections_per_peer: 4000\n").start()
    with d.client() as c:
        assert c.get("/healthz").status == 200
        late = [socket.create_connection(d.tcp_address()) for _ in range(120)]  # the kernel queues what is not accepted
        host.wait_until(lambda: len(os.listdir(f"/proc/{d.pid}/fd")) >= 99, 20, "no descriptor left")
        for _ in range(5):
            assert c.get("/healthz").status == 200
        for s in late:
            s.close()
        with d.client() as other:
            assert other.get("/healthz").status == 200
            assert other.shell("echo fine")["stdout"] == "fine\n"
    assert d.stop() == 0, d.log()
    d.remove()


def test_descriptors_that_return_elsewhere_are_used():
    """API-5: a listener out of descriptors accepts again, even if its own only connection stays and another's end."""
    d = FewDescriptors(tcp=True, config="http:\n  max_connections: 4000\n  max_connections_per_peer: 4000\n").start()
    with d.client() as c:
        assert c.get("/healthz").status == 200
        many = [socket.create_connection(d.tcp_address()) for _ in range(120)]
        host.wait_until(lambda: len(os.listdir(f"/proc/{d.pid}/fd")) >= 99, 20, "no descriptor left")
        with d.client() as other:
            other.connection.connect()  # the kernel queues it
            for _ in range(3):
                assert c.get("/healthz").status == 200  # by now the daemon has tried to accept it
            for s in many:
                s.close()
            assert other.get("/healthz").status == 200
        with contextlib.closing(Client(d.tcp_address())) as late:
            assert late.get("/healthz").status == 200
    assert d.stop() == 0, d.log()
    d.remove()


def test_no_program_of_ours_can_start_a_shell(build):
    """API-8: none of them is linked with a function that has a shell or a search path behind it."""
    shells = {"system", "popen", "wordexp", "execlp", "execvp", "execvpe", "posix_spawnp"}
    for name in ("milliboxd", "millibox-engine", "millibox-import", "millibox-egress", "millibox"):
        listed = subprocess.run(["nm", build / name], capture_output=True, text=True, check=True).stdout
        symbols = {line.split()[-1].split("@")[0] for line in listed.splitlines()}
        assert {"write", "close"} <= symbols, name  # control
        assert not shells & symbols, name
