# SPDX-License-Identifier: Apache-2.0
"""NET-8: a connection to a port of a session reaches its own loopback and nothing else, for its owner alone."""

import contextlib
import socket

import pytest

from support.identity import V1, KeyClient, make_key, make_tenant
from support.ports import Port, serve
from support.sessions import Session
from support.websocket import Refused

pytestmark = pytest.mark.phases("system")
PROXY = 3128


@pytest.fixture
def make(client):
    made = []

    def create(**fields):
        made.append(Session(client, mode="persistent", **fields))
        return made[-1]

    yield create
    for session in made:
        session.delete()


def refusal(address, session_id, port, **kw):
    with pytest.raises(Refused) as caught:
        Port(address, session_id, port, **kw)
    return caught.value


def echoes(address, session_id, port, **kw):
    with Port(address, session_id, port, **kw) as c:
        c.write(b"x")
        return c.read(1) == b"x"


@contextlib.contextmanager
def listening_outside(family, address):
    with socket.create_server((address, 0), family=family) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1")])
def test_the_hosts_loopback_is_not_reached(daemon, make, family, address):
    session = make()
    with listening_outside(family, address) as port:
        # Control: it is there, for the host.
        socket.create_connection((address, port), 5).close()
        refused = refusal(daemon.socket, session.id, port)
        assert refused.status == 404 and "nothing listens" in refused.json["error_detail"]
        # Control: the same number inside is reached.
        serve(session, port)
        assert echoes(daemon.socket, session.id, port)


def test_the_daemons_own_port_is_not_reached(daemon, make):
    _, port = daemon.tcp_address()
    socket.create_connection(("127.0.0.1", port), 5).close()
    assert refusal(daemon.socket, make().id, port).status == 404


def test_another_box_is_not_reached(daemon, make):
    one, other = make(), make()
    serve(one, 8000)
    assert echoes(daemon.socket, one.id, 8000)
    assert refusal(daemon.socket, other.id, 8000).status == 404
    assert other.client.get(f"{other.path}/ports").json["ports"] == []


@pytest.mark.parametrize(
    "port", ["127.0.0.1:80", "169.254.169.254", "80@host", "80%40host", "localhost", "0x50", "+80", "080 ", "80.0", "65616"])
def test_no_spelling_names_an_address(daemon, make, port):
    assert refusal(daemon.socket, make().id, port.replace(" ", "%20")).status == 400


def test_the_program_gains_no_way_out(daemon, make):
    """It is connected to; its own attempts end in its namespace as before."""
    session = make()
    serve(session, 8000)
    with listening_outside(socket.AF_INET, "127.0.0.1") as port, Port(daemon.socket, session.id, 8000) as c:
        c.write(b"x")
        assert c.read(1) == b"x"
        code = f"""
import socket
def attempt(address):
    try:
        socket.create_connection(address, 5)
    except OSError as error:
        return error.errno
[attempt(("127.0.0.1", {port})), attempt(("192.0.2.1", 80)), socket.socket().connect_ex(("127.0.0.1", 8000))]
"""
        refused, unreachable, own = session.run(code)["result"]
        assert (refused, unreachable, own) == (111, 101, 0)


def test_peer_and_own_address_tell_nothing_of_the_client(daemon, make):
    session = make()
    serve(session, 8000, "show", "def show(c):\n    c.sendall(repr((c.getpeername()[0], c.getsockname()[0])).encode())\n    c.close()")
    with Port(daemon.socket, session.id, 8000) as c:
        assert c.read_all() == b"('127.0.0.1', '127.0.0.1')"


def test_only_the_owner_with_the_scope_connects(daemon):
    with daemon.client() as admin:
        for tenant in ("porta", "portb"):
            make_tenant(admin, tenant)
        owner, reader, stranger = (make_key(admin, "porta"), make_key(admin, "porta", scopes=["read"]), make_key(admin, "portb"))
        with contextlib.closing(KeyClient(daemon.tcp_address(), owner)) as client:
            session = Session(client, mode="persistent", language="python")
            serve(session, 8000)
            try:
                check_callers(daemon, session, owner, reader, stranger)
            finally:
                session.delete()


def check_callers(daemon, session, owner, reader, stranger):
    address = daemon.tcp_address()

    def bearer(key):
        return {"Authorization": f"Bearer {key}"}

    assert echoes(address, session.id, 8000, headers=bearer(owner))
    assert refusal(address, session.id, 8000, headers=bearer("none")).status == 401
    assert refusal(address, session.id, 8000, headers=bearer(reader)).json["error_code"] == "Sandbox.ScopeMissing"
    foreign = refusal(address, session.id, 8000, headers=bearer(stranger))
    unknown = refusal(address, "nobody", 8000, headers=bearer(stranger))
    assert (foreign.status, foreign.json["error_code"]) == (unknown.status, unknown.json["error_code"]) == (404, "Sandbox.SessionNotFound")
    for key, status in ((reader, 200), (stranger, 404)):
        with contextlib.closing(KeyClient(address, key)) as client:
            assert client.get(f"{V1}/sessions/{session.id}/ports").status == status
    for origin in ("https://evil.example", "null"):
        assert refusal(address, session.id, 8000, headers={**bearer(owner), "Origin": origin}).status == 403
    assert refusal(address, session.id, 8000, headers={**bearer(owner), "Host": "evil.example"}).status == 403


def test_a_revoked_key_ends_its_connections(make_daemon):
    daemon = make_daemon(tcp=True).start()
    with daemon.client() as admin:
        make_tenant(admin, "acme")
        key = make_key(admin, "acme")
        client = KeyClient(daemon.tcp_address(), key)
        session = Session(client, mode="persistent", language="python")
        serve(session, 8000)
        with Port(daemon.tcp_address(), session.id, 8000, headers={"Authorization": f"Bearer {key}"}) as c:
            c.write(b"x")
            assert c.read(1) == b"x"
            for found in admin.get(f"{V1}/keys?tenant=acme").json["keys"]:
                assert admin.request("DELETE", f"{V1}/keys/{found['id']}").status in (200, 204)
            assert c.closed() == 1008


def test_the_proxy_of_a_box_is_not_reached(make_daemon, tmp_path):
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "net.yaml").write_text("name: net\nnetwork:\n  mode: allowlist\n  allow: [example.com]\n")
    daemon = make_daemon(config=f"policy: {{dir: {policies}, default: net}}\n").start()
    with daemon.client() as client:
        session = Session(client, mode="persistent", language="python", network="allowlist")
        # Control: it listens, for the program.
        assert session.run(f"import socket; socket.create_connection(('127.0.0.1', {PROXY}), 5).close()")["status"] == "success"
        refused = refusal(daemon.socket, session.id, PROXY)
        assert refused.status == 403 and "proxy" in refused.json["error_detail"]
        assert client.get(f"{session.path}/ports").json["ports"] == []
        session.delete()
        # Control: without a proxy it is a port like others.
        plain = Session(client, mode="persistent", language="python", network="none")
        serve(plain, PROXY)
        assert echoes(daemon.socket, plain.id, PROXY)
        plain.delete()
