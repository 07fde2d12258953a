# SPDX-License-Identifier: Apache-2.0
"""API-3, XT-1, XT-2: a key cannot bypass its scopes, and one tenant does not crowd out others."""

import contextlib
import http.client
import json

import pytest

from support import host
from support.daemon import Daemon
from support.identity import V1, KeyClient, make_key, make_tenant
from support.sessions import Session

pytestmark = pytest.mark.phases("system")

SE = "/workspace/se"


@pytest.fixture(scope="module")
def keyed():
    daemon = Daemon(tcp=True).start()
    with daemon.client() as admin:
        for name in ("alice", "bob"):
            make_tenant(admin, name)
        yield daemon, admin
    assert daemon.stop() == 0, daemon.log()
    daemon.remove()


def client_for(keyed, tenant, *scopes):
    daemon, admin = keyed
    return contextlib.closing(KeyClient(daemon.tcp_address(), make_key(admin, tenant, scopes=list(scopes))))


MAKERS = [
    ("files", "create/new4", {"filename": "a.txt", "content": "a"}),
    ("execute", "execute/new5", {"command": "true"}),
    ("execute", "execute_code/new6", {"code": "1"}),
]


@pytest.mark.parametrize("scope, path, body", MAKERS)
def test_no_route_creates_a_session_without_the_scope(keyed, scope, path, body):
    def ask(client):
        return client.post(f"{SE}/{path}", body)

    def sessions():
        with client_for(keyed, "alice", "read") as reader:
            return reader.get(f"{V1}/sessions").json["total"]

    before = sessions()
    with client_for(keyed, "alice", scope) as client:
        answer = ask(client)
    assert answer.status == 403 and "scope sessions" in str(answer.json), answer
    assert sessions() == before
    with client_for(keyed, "alice", scope, "sessions") as client:  # the control
        assert ask(client).status in (200, 404)
        assert sessions() == before + 1
        assert client.request("DELETE", f"{SE}/session/{path.split('/')[1]}").status == 200


def test_box_counts_are_per_tenant(keyed):
    with client_for(keyed, "alice", "sessions", "execute") as alice, client_for(keyed, "bob", "sessions") as bob:
        session = Session(alice, mode="persistent")
        assert session.run("1")["result"] == 1
        assert bob.post(f"{V1}/health/sync", {}).json["total"] == 0
        assert alice.post(f"{V1}/health/sync", {}).json["total"] == 1  # the control
        assert session.delete().status == 200


def test_a_page_written_by_a_program_has_no_privileges(keyed):
    with client_for(keyed, "alice", "sessions", "files") as alice:
        session = Session(alice, mode="persistent")
        made = alice.request("PUT", f"{session.path}/files/page.html", body=b"<script>1</script>",
                             headers={"Content-Type": "text/html"})
        assert made.status == 201, made
        page = alice.get(f"{session.path}/files/page.html")
        assert page.headers["Content-Type"].startswith("text/html")
        assert page.headers["Content-Security-Policy"] == "sandbox"
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert session.delete().status == 200


def begin_import(daemon, key, name):
    """An import whose archive never arrives."""
    connection = http.client.HTTPConnection(*daemon.tcp_address(), timeout=30)
    connection.putrequest("POST", f"{V1}/templates/import?id={name}")
    connection.putheader("Authorization", f"Bearer {key}")
    connection.putheader("Content-Length", "100000")
    connection.endheaders(b"x" * 512)
    return connection


def test_slow_imports_of_one_tenant_leave_room_for_others(keyed):
    daemon, admin = keyed
    alice, bob = (make_key(admin, name, scopes=["templates"]) for name in ("alice", "bob"))
    with contextlib.ExitStack() as stack:
        for i in range(2):
            stack.enter_context(contextlib.closing(begin_import(daemon, alice, f"slow{i}")))

        def ask(key):
            with contextlib.closing(KeyClient(daemon.tcp_address(), key)) as client:
                return client.request("POST", f"{V1}/templates/import?id=next", body=b"no archive",
                                      headers={"Content-Type": "application/x-tar"}).status

        # A third one of the same tenant waits for its turn; another tenant's is looked at, and found to be none.
        stack.enter_context(contextlib.closing(begin_import(daemon, alice, "third")))
        assert ask(bob) == 400
    assert ask(alice) == 400


def audit_of(daemon, action, **members):
    lines = (daemon.home / "state" / "audit.log").read_bytes().split(b"\n")[:-1]  # whole lines
    return [r for r in map(json.loads, lines) if r["action"] == action and members.items() <= r.items()]


def test_the_audit_log_names_the_key(keyed):
    daemon, admin = keyed
    made = admin.post(f"{V1}/keys", {"tenant": "alice", "scopes": ["sessions", "execute"]}).json
    with contextlib.closing(KeyClient(daemon.tcp_address(), made["key"])) as alice:
        assert alice.get(f"{V1}/templates").status == 403
        assert alice.post(f"{SE}/execute/named", {"command": "true"}).json["exit_code"] == 0
        handler = {"handler_code": "def handler(event, context):\n    return 1", "event": {}, "context": {}}
        assert alice.post(f"{SE}/v2/execute_code", handler).status == 200
        assert alice.request("DELETE", f"{SE}/session/named").status == 200
    whose = {"tenant": "alice", "key_id": made["id"]}
    for action, count in (("request.refuse", 1), ("session.create", 1), ("execution.end", 2)):
        host.wait_until(lambda a=action, n=count: len(audit_of(daemon, a, **whose)) == n, 10,
                        f"{action}: {audit_of(daemon, action)}")
    assert not audit_of(daemon, "session.create", key_id=None)
    assert all(r["request_id"] for r in audit_of(daemon, "session.create"))


@pytest.mark.alone
def test_queued_bytes_of_one_tenant_leave_room_for_others(keyed):
    with client_for(keyed, "alice", "sessions", "execute") as alice, \
            client_for(keyed, "bob", "sessions", "execute") as bob:
        greedy, modest = Session(alice, mode="persistent"), Session(bob, mode="persistent")
        greedy.start("import time; time.sleep(100)", timeout=120)
        body, taken = {"code": "1", "stdin": "x" * (7 << 20)}, []

        def is_full():
            """The store may be busy for a moment, which is refused differently."""
            answer = alice.post(f"{greedy.path}/execute", body)
            assert answer.status in (200, 429), answer
            taken.append(answer.status)
            return answer.status == 429 and "hold too many bytes" in str(answer.json)

        host.wait_until(is_full, 60, "no room for more of the same tenant")
        assert taken.count(200) > 10  # the control: there is room for many
        assert modest.run("len(input())", stdin="x" * (6 << 20))["result"] == 6 << 20
        assert greedy.delete().status == 200 and modest.delete().status == 200
