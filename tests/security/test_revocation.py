# SPDX-License-Identifier: Apache-2.0
"""AU: revoking a key ends everything started with it, including a request in progress."""

import http.client
import json
import socket

import pytest
from support import host
from support.daemon import Daemon
from support.identity import V1, KeyClient, make_key, make_tenant

pytestmark = pytest.mark.phases("system")


@pytest.fixture
def own():
    d = Daemon(tcp=True).start()
    yield d
    d.stop()
    d.remove()


class Slow:
    """A request whose body arrives in two parts."""

    def __init__(self, daemon, key, path, body):
        data = json.dumps(body).encode()
        self.rest = data[10:]
        self.sock = socket.create_connection(daemon.tcp_address(), 20)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        self.sock.sendall(head.encode() + data[:10])

    def finish(self):
        self.sock.sendall(self.rest)
        answer = b""
        while b"\r\n\r\n" not in answer and (piece := self.sock.recv(65536)):
            answer += piece
        self.sock.close()
        return int(answer.split()[1])


def revoke_all(admin, tenant):
    for key in admin.get(f"{V1}/keys?tenant={tenant}").json["keys"]:
        if key["tenant"] == tenant:
            assert admin.request("DELETE", f"{V1}/keys/{key['id']}").status in (200, 204)


def test_a_request_in_transfer_does_not_outlive_its_key(own):
    with own.client() as admin:
        make_tenant(admin, "acme")
        key = make_key(admin, "acme")
        code = {"language": "python", "code": "print(1)"}
        control = Slow(own, key, f"{V1}/execute", code)
        assert control.finish() == 200
        begun = Slow(own, key, f"{V1}/execute", code), Slow(own, key, f"{V1}/sessions", {"mode": "persistent", "session_id": "mine"})
        assert KeyClient(own.tcp_address(), key).get(f"{V1}/sessions").status == 200  # what was sent before is there
        revoke_all(admin, "acme")
        assert [request.finish() for request in begun] == [401, 401]


def test_the_next_tenant_of_a_name_gets_nothing_of_the_last(own):
    with own.client() as admin:
        make_tenant(admin, "acme")
        old = make_key(admin, "acme")
        begun = Slow(own, old, f"{V1}/sessions", {"mode": "persistent", "session_id": "default"})
        assert KeyClient(own.tcp_address(), old).get(f"{V1}/sessions").status == 200
        revoke_all(admin, "acme")
        assert admin.request("DELETE", f"{V1}/tenants/acme").status in (200, 204)
        make_tenant(admin, "acme")
        new = make_key(admin, "acme")
        assert begun.finish() == 401
        assert KeyClient(own.tcp_address(), new).get(f"{V1}/sessions/default").status == 404


def test_a_stream_does_not_outlive_its_key(own):
    with own.client() as admin:
        make_tenant(admin, "acme")
        make_tenant(admin, "other")
        code = "import time\nfor i in range(600):\n    print(i, flush=True)\n    time.sleep(0.1)"
        streams = {}
        for tenant in ("acme", "other"):
            key = make_key(admin, tenant)
            client = KeyClient(own.tcp_address(), key)
            session = client.post(f"{V1}/sessions", {"mode": "persistent"}).json["session_id"]
            execution = client.post(f"{V1}/sessions/{session}/execute", {"code": code, "timeout": 600}).json["execution_id"]
            streams[tenant] = socket.create_connection(own.tcp_address(), 20)
            head = f"GET {V1}/executions/{execution}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
            streams[tenant].sendall(head.encode())
            assert b"stdout" in read_until(streams[tenant], b"stdout")
        revoke_all(admin, "acme")
        rest = read_to_end(streams["acme"])
        assert b'"end"' not in rest and b'"data":"599' not in rest
        assert b"stdout" in read_until(streams["other"], b"stdout")  # other callers are not disturbed


def read_until(sock, word):
    got = b""
    while word not in got and (piece := sock.recv(65536)):
        got += piece
    return got


def read_to_end(sock):
    got = b""
    try:
        while piece := sock.recv(65536):
            got += piece
    except ConnectionResetError:
        pass
    return got


def test_an_expired_key_ends_its_streams(own):
    """As if it had been revoked at that moment; a stream with another key goes on."""
    with own.client() as admin:
        make_tenant(admin, "acme")
        # Long enough for a busy host to begin the stream.
        short, long = make_key(admin, "acme", expires_in=2 * host.PATIENCE), make_key(admin, "acme")
        body = json.dumps({"language": "shell", "code": "echo up; sleep 600", "stream": True, "timeout": 600})
        streams, connections = {}, []
        for key in (short, long):
            connection = http.client.HTTPConnection(*own.tcp_address(), timeout=30 * host.PATIENCE)
            connections.append(connection)
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            connection.request("POST", f"{V1}/execute", body, headers)
            streams[key] = connection.getresponse()
            assert json.loads(streams[key].readline())["event"] == "start"
            assert json.loads(streams[key].readline())["data"] == "up\n"
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            streams[short].read()
        assert KeyClient(own.tcp_address(), short).get(f"{V1}/sessions").status == 401
        assert KeyClient(own.tcp_address(), long).get(f"{V1}/sessions").status == 200
        streams[long].close()
        for connection in connections:
            connection.close()
    own.settle()
