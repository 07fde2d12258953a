# SPDX-License-Identifier: Apache-2.0
"""Without keys, a TCP port on loopback serves only root and the user who started the daemon (API-9)."""

import contextlib
import json
import os
import socket
import subprocess

import pytest
from support import host, second_user
from support.client import Client, raw_exchange
from support.identity import KeyClient, make_key, make_tenant

pytestmark = pytest.mark.phases("system")
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

JSON = {"Content-Type": "application/json"}
CODE = json.dumps({"language": "shell", "code": "echo served"})
INITIALIZE = json.dumps({
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
})  # fmt: skip
UPGRADE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip
#: One request of each dialect that does something, and what a served caller gets.
DIALECTS = {
    "v1": (("POST", "/api/v1/execute", CODE, JSON), 200),
    "v1 list": (("GET", "/api/v1/sessions", None, {}), 200),
    "se": (("GET", "/workspace/se/workspaces", None, {}), 200),
    "sandboxes": (("GET", "/api/sandboxes", None, {}), 200),
    "mcp": (("POST", "/mcp", INITIALIZE, {**JSON, "Accept": "application/json, text/event-stream"}), 200),
    "mcp tools": (("GET", "/mcp/tools", None, {}), 200),
    "websocket": (("GET", "/mcp/ws", None, UPGRADE), 101),
    "metrics": (("GET", "/metrics", None, {}), 200),
    "unknown": (("GET", "/no/such/path", None, {}), 404),
}
#: Served to anyone: they say that the daemon is there, which the open port says too.
PUBLIC = ["/healthz", "/readyz"]


@only_root
def test_another_user_is_refused_over_tcp_in_every_dialect(daemon):
    answers = second_user.ask(daemon.tcp_address(), [request for request, _ in DIALECTS.values()])
    assert {name: status for name, (status, _) in zip(DIALECTS, answers)} == {name: 401 for name in DIALECTS}
    for _, text in answers:
        assert f"this is user {second_user.UID}" in text and "POST /api/v1/keys" in text, text
        assert daemon.socket in text


@only_root
def test_the_probe_is_served_as_the_daemons_user(daemon):
    """The control: the same requests, as root."""
    answers = second_user.ask(daemon.tcp_address(), [request for request, _ in DIALECTS.values()], uid=0)
    assert {name: status for name, (status, _) in zip(DIALECTS, answers)} == {name: status for name, (_, status) in DIALECTS.items()}
    assert "served" in answers[0][1]


@pytest.mark.phases("system", "user", "subid")
def test_the_user_who_started_the_daemon_is_served(daemon):
    client = Client(daemon.tcp_address())
    assert client.shell("echo served")["stdout"] == "served\n"
    # On the same connection: asked for once.
    assert client.shell("echo served")["stdout"] == "served\n"
    client.close()


@only_root
def test_another_user_learns_no_numbers(daemon):
    answers = second_user.ask(daemon.tcp_address(), [("GET", path, None, {}) for path in PUBLIC])
    ours = second_user.ask(daemon.tcp_address(), [("GET", path, None, {}) for path in PUBLIC], uid=0)
    assert [status for status, _ in answers] == [200, 200]
    theirs, known = json.loads(answers[0][1]), json.loads(ours[0][1])
    for name, value in theirs.items():
        assert not isinstance(value, (int, float)) or isinstance(value, bool) or name not in known, (name, value)


@only_root
def test_a_socket_that_is_closed_at_once_is_not_roots(daemon):
    """A closed socket has no user, which older kernels report as 0."""
    request = "POST /workspace/se/session/closed-race HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(second_user.UID, second_user.UID, second_user.UID)
            os.setresuid(second_user.UID, second_user.UID, second_user.UID)
            for _ in range(200):
                with socket.create_connection(daemon.tcp_address()) as sock:
                    sock.sendall(request.encode())
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    # A later request of ours is served after all of theirs.
    client = Client(daemon.tcp_address())
    assert client.get("/workspace/se/status/closed-race").status == 404
    client.close()


@only_root
def test_with_keys_another_user_needs_one(make_daemon):
    d = make_daemon(tcp=True).start()
    with d.client() as admin:
        key = make_key(admin, "default", scopes=["read", "execute"])
    request = DIALECTS["v1"][0]
    keyed = (*request[:3], {**JSON, "Authorization": f"Bearer {key}"})
    (refused, _), (served, text) = second_user.ask(d.tcp_address(), [request, keyed])
    assert (refused, served) == (401, 200), text
    # Root too, from now on.
    assert raw_exchange(d.tcp_address(), b"GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").startswith(
        b"HTTP/1.1 401 "
    )
    client = KeyClient(d.tcp_address(), key)
    assert client.get("/api/v1/sessions").status == 200
    client.close()


def connect_from(address, source):
    return socket.create_connection(address, timeout=10, source_address=(source, 0))


@pytest.mark.parametrize("first", [b"", b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nX: "], ids=["silent", "unfinished"])
def test_idle_connections_without_a_key_lock_nobody_out(make_daemon, first):
    """768 of them, from eight addresses that have 96 each; the daemon serves 512, and 128 of an address."""
    d = make_daemon(tcp=True, config="http: {max_connections: 512, max_connections_per_local_peer: 128}\n").start()
    with d.client() as admin:
        key = make_key(admin, "default", scopes=["read", "execute", "metrics"])
    kept = KeyClient(d.tcp_address(), key)
    assert kept.get("/api/v1/sessions").status == 200
    socks = []
    for i in range(768):
        socks.append(connect_from(d.tcp_address(), f"127.0.0.{2 + i % 8}"))
        if first:
            socks[-1].sendall(first)
    # From another address, from the busiest, on a connection that was idle, and at the socket.
    assert KeyClient(d.tcp_address(), key).get("/api/v1/sessions").status == 200
    for _ in range(40):
        with connect_from(d.tcp_address(), "127.0.0.2") as sock:
            sock.sendall(f"GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert kept.get("/api/v1/sessions").status == 200
    with d.client() as local:
        assert local.get("/api/v1/sessions").status == 200
    evicted = [line for line in kept.get("/metrics").body.decode().splitlines() if line.startswith("connections_evicted_total ")]
    assert float(evicted[0].split()[1]) >= 768 - 512, evicted
    for sock in socks:
        sock.close()


def waiting_request(d, key):
    body = json.dumps({"language": "shell", "code": "sleep 300", "timeout": 300}).encode()
    sock = socket.create_connection(d.tcp_address(), timeout=60)
    sock.sendall(f"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 f"Authorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    return sock


def test_a_tenant_does_not_use_up_the_connections_of_an_address(make_daemon):
    """Tenants behind one proxy have one address. No connection of the first can make room: all wait for an answer."""
    count = 8
    d = make_daemon(tcp=True, config=f"http: {{max_connections: 64, max_connections_per_peer: {count}, max_connections_per_local_peer: {count}}}\n").start()
    with d.client() as admin, contextlib.ExitStack() as stack:
        for name in ("alice", "bob"):
            make_tenant(admin, name)
        alice, bob = make_key(admin, "alice"), make_key(admin, "bob")
        for _ in range(count):
            stack.enter_context(contextlib.closing(waiting_request(d, alice)))
        host.wait_until(lambda: admin.get("/readyz").json["running"] == count, 60, "all of them run")
        refused = KeyClient(d.tcp_address(), alice).get("/api/v1/sessions")
        assert refused.status == 429 and b"too many connections" in refused.body, "control: the limit holds for the tenant"
        assert KeyClient(d.tcp_address(), bob).get("/api/v1/sessions").status == 200
        # Nor do callers without a key notice: they are refused for that, not for the crowd.
        assert raw_exchange(d.tcp_address(), b"GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").startswith(
            b"HTTP/1.1 401 "
        )


GROUP = 61986


@only_root
def test_the_group_of_the_socket_is_a_setting(make_daemon):
    d = make_daemon(config=f"socket_group: {GROUP}\n").start()
    found = os.stat(d.socket)
    assert (found.st_gid, found.st_mode & 0o777) == (GROUP, 0o660)
    request = DIALECTS["v1"][0]
    ((stranger, why),) = second_user.ask(d.socket, [request])
    assert (stranger, why) == (0, "PermissionError")
    member, admin = second_user.ask(d.socket, [request, ("GET", "/api/v1/keys", None, {})], groups=[GROUP])
    assert member[0] == 200 and "served" in member[1], member
    assert admin[0] == 403, admin


def test_a_group_that_does_not_exist_is_refused_by_name(make_daemon):
    for value, why in (("no-such-group", "there is no group 'no-such-group'"), ("4294967295", "4294967295 is not a group id")):
        d = make_daemon(config=f"socket_group: '{value}'\n").start(ready=False)
        assert d.process.wait(host.HANG_S) == 3 and f"socket_group: {why}" in d.log(), d.log()


@pytest.mark.phases("user")
@pytest.mark.skipif(os.geteuid() == 0, reason="root may give a socket to any group")
def test_an_ordinary_user_cannot_take_a_group_that_is_not_its_own(make_daemon):
    d = make_daemon(config="socket_group: 0\n").start(ready=False)
    assert d.process.wait(host.HANG_S) != 0
    assert "socket_group: user" in d.log() and "is not a member of group 0" in d.log()


@only_root
def test_the_command_line_finds_the_systems_daemon(make_daemon, build):
    """At /run/millibox, in a mount namespace where that is the daemon's directory."""
    d = make_daemon(config=f"socket_group: {GROUP}\n").start()
    shell = f"mount -t tmpfs none /run && mkdir /run/millibox && mount --bind {d.home} /run/millibox && ln -s sock {d.home}/millibox.sock && exec " + (
        f"setpriv --reuid {second_user.UID} --regid {second_user.UID} --groups $1 {build}/millibox session list"
    )

    def list_sessions(group):
        try:
            return subprocess.run(
                ["unshare", "-m", "sh", "-c", shell, "sh", str(group)],
                env={"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": "/nonexistent"}, capture_output=True, text=True, timeout=60,
            )  # fmt: skip
        finally:
            (d.home / "millibox.sock").unlink(missing_ok=True)

    served = list_sessions(GROUP)
    assert served.returncode == 0, served
    barred = list_sessions(second_user.UID)
    assert barred.returncode != 0 and "serves members of its group" in barred.stderr, barred
    # Somebody else's directory is not the system's.
    os.chown(d.home, second_user.UID, second_user.UID)
    planted = list_sessions(GROUP)
    os.chown(d.home, 0, 0)
    assert planted.returncode != 0 and "no daemon listens at /nonexistent" in planted.stderr, planted


@only_root
def test_the_remedy_without_a_unix_socket(make_daemon):
    d = make_daemon(tcp=True)
    d.socket = ""
    d.start(ready=False)
    host.wait_until(lambda: "listening on" in d.log(), 20, lambda: d.log())
    ((status, text),) = second_user.ask(d.tcp_address(), [DIALECTS["v1"][0]])
    assert status == 401 and "milliboxd --create-key" in text
