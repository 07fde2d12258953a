# SPDX-License-Identifier: Apache-2.0
"""Keys, scopes, tenants and quotas, through the API."""

import contextlib
import json
import os
import pathlib
import socket
import sqlite3
import subprocess
import time

import pytest

from support import host
from support.client import Client
from support.daemon import BUILD
from support.identity import V1, KeyClient, make_key, make_tenant
from support.sessions import Session

pytestmark = pytest.mark.phases("system")

CLI = str(BUILD / "millibox")
DAEMON = str(BUILD / "milliboxd")


def cli(daemon, *words, key=None, **env):
    env = {"PATH": "/usr/bin:/bin", "MILLIBOX_SOCKET": daemon.socket, **env}
    if key:
        env["MILLIBOX_API_KEY"] = key
    return subprocess.run([CLI, *words], capture_output=True, text=True, env=env, timeout=60)


@pytest.fixture
def keyed(make_daemon):
    """A daemon with one tenant, "alice", and one key."""
    d = make_daemon(tcp=True).start()
    with d.client() as admin:
        make_tenant(admin, "alice")
        d.key = make_key(admin, "alice")
    return d


@contextlib.contextmanager
def as_key(daemon, key):
    with contextlib.closing(KeyClient(daemon.tcp_address(), key)) as client:
        yield client


# Without and with keys.


def test_without_keys_authentication_is_off_and_no_caller_is_admin(make_daemon):
    d = make_daemon(tcp=True).start()
    with contextlib.closing(Client(d.tcp_address())) as anybody:
        assert anybody.get(f"{V1}/sessions").status == 200
        who = anybody.get(f"{V1}/identity").json
        assert (who["tenant"], who["key_id"]) == ("default", None)
        assert "admin" not in who["scopes"]
        refused = anybody.post(f"{V1}/keys", {"tenant": "default"})
        assert refused.status == 403
        assert "scope admin; without a key" in refused.json["error_detail"]  # no key could have it
        assert "Unix socket" in refused.json["error_detail"]
        # Clients of other daemons may send their key.
        assert anybody.get(f"{V1}/sessions", headers={"Authorization": "Bearer anything"}).status == 200
    with d.client() as owner:
        assert "admin" in owner.get(f"{V1}/identity").json["scopes"]


@pytest.mark.smoke
def test_the_first_key_turns_authentication_on(keyed):
    with contextlib.closing(Client(keyed.tcp_address())) as anybody:
        for path in (f"{V1}/sessions", f"{V1}/identity", "/metrics", "/no/such/path"):
            answer = anybody.get(path)
            assert answer.status == 401, path
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert answer.json["error_code"] == "Internal.Unauthorized"
        for path in ("/healthz", "/readyz"):
            assert anybody.get(path).status == 200
    with as_key(keyed, keyed.key) as alice:
        who = alice.get(f"{V1}/identity").json
        assert who["tenant"] == "alice"
        assert alice.python("print(6 * 7)")["stdout"] == "42\n"
        assert alice.get("/no/such/path").status == 404


@pytest.mark.boxes
def test_callers_see_only_their_own_counts(keyed):
    """Callers see their own runs; the operator sees all."""
    runtimes = (f"{V1}/runtimes/native", f"{V1}/runtimes/native/metrics")
    with keyed.client() as admin:
        make_tenant(admin, "bob")
        bobs = make_key(admin, "bob")
        operators = make_key(admin, "default", scopes=["admin"])
        with as_key(keyed, keyed.key) as alice:
            session = alice.post(f"{V1}/sessions", {"mode": "persistent", "language": "python"}).json["id"]
            held = alice.post(f"{V1}/sessions/{session}/execute", {"code": "import time\ntime.sleep(60)"})
            assert held.status in (200, 202)
            host.wait_until(lambda: admin.get("/readyz").json["running"] == 1, 10, "it runs")
            assert alice.get("/readyz").json["running"] == 1
            numbers = alice.get(runtimes[1]).json
            assert (numbers["sessions"], numbers["running_containers"], numbers["running_executions"]) == (1, 1, 1)
        with as_key(keyed, bobs) as bob:
            assert (bob.get("/readyz").json["running"], bob.get("/readyz").json["queued"]) == (0, 0)
            numbers = bob.get(runtimes[1]).json
            assert (numbers["sessions"], numbers["running_containers"], numbers["running_executions"]) == (0, 0, 0)
            assert numbers["queued_executions"] == 0
            assert bob.get(runtimes[0]).json["running_containers"] == 0
            assert bob.get(f"{V1}/runtimes").json["items"][0]["running_containers"] == 0
            assert bob.python("print(1)")["stdout"] == "1\n"
        with as_key(keyed, operators) as operator:
            assert operator.get("/readyz").json["running"] == 1
            assert operator.get(runtimes[0]).json["running_containers"] >= 1
        for key in (None, "mb_wrong"):
            with contextlib.closing(Client(keyed.tcp_address())) as stranger:
                headers = {"X-API-Key": key} if key else {}
                answer = stranger.get("/readyz", headers=headers)
                assert answer.status == 200 and answer.json["running"] is None and answer.json["queued"] is None
        with as_key(keyed, keyed.key) as alice:
            assert alice.request("DELETE", f"{V1}/sessions/{session}").status in (200, 202, 204)
            host.wait_until(lambda: alice.get(runtimes[0]).json["running_containers"] == 0, 10, "its box is gone")


def test_either_header_carries_a_key(keyed):
    other = keyed.key[:-1] + ("a" if keyed.key[-1] != "a" else "b")
    cases = (
        ({"Authorization": f"Bearer {keyed.key}"}, 200),
        ({"authorization": f"bearer  {keyed.key}"}, 200),
        ({"X-API-Key": keyed.key}, 200),
        ({"X-API-Key": keyed.key, "Authorization": f"Bearer {keyed.key}"}, 200),
        ({"X-API-Key": other, "Authorization": f"Bearer {keyed.key}"}, 400),
        ({"X-API-Key": other}, 401),
        ({"Authorization": keyed.key}, 401),
        ({"Authorization": f"Basic {keyed.key}"}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"X-API-Key": keyed.key.upper()}, 401),
        ({"X-API-Key": keyed.key[:20]}, 401),
    )
    for headers, status in cases:
        with contextlib.closing(Client(keyed.tcp_address())) as client:
            assert client.get(f"{V1}/identity", headers=headers).status == status, headers


def test_two_headers_of_a_name_are_refused(keyed):
    request = (
        f"GET {V1}/identity HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {keyed.key}\r\n"
        f"Authorization: Bearer {keyed.key}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(keyed.tcp_address(), timeout=host.HANG_S) as sock:
        sock.sendall(request.encode())
        assert sock.makefile("rb").readline().split()[1] == b"400"


def test_an_unauthenticated_body_is_not_read(keyed):
    """The response follows the header: a 401 does not wait for eight megabytes."""
    with socket.create_connection(keyed.tcp_address(), timeout=host.HANG_S) as sock:
        sock.sendall(
            b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 8000000\r\n\r\n{"
        )
        assert sock.makefile("rb").readline().split()[1] == b"401"


# Life of a key.


def test_revoked_and_expired_keys_are_rejected(keyed):
    with keyed.client() as admin:
        brief = make_key(admin, "alice", expires_in=6)  # time enough for one request
        ident = keyed.key.split("_")[1]
        with as_key(keyed, brief) as client:
            assert client.get(f"{V1}/identity").status == 200
            host.wait_until(lambda: client.get(f"{V1}/identity").status == 401, 10, "expiry")
        assert admin.request("DELETE", f"{V1}/keys/{ident}").json["status"] == "revoked"
        with as_key(keyed, keyed.key) as client:
            answer = client.get(f"{V1}/identity")
            assert answer.status == 401 and "revoked" in answer.json["error_detail"]
        again = admin.request("DELETE", f"{V1}/keys/{ident}")
        assert again.status == 200
        states = {k["id"]: k["status"] for k in admin.get(f"{V1}/keys").json["keys"]}
        assert states == {ident: "revoked", brief.split("_")[1]: "expired"}
        assert [k["id"] for k in admin.get(f"{V1}/keys?status=revoked").json["keys"]] == [ident]
        assert admin.request("DELETE", f"{V1}/keys/nobody").status == 404
    # Without a valid key left, authentication stays on.
    with contextlib.closing(Client(keyed.tcp_address())) as anybody:
        assert anybody.get(f"{V1}/identity").status == 401


def test_revoking_the_last_key_locks_tcp_and_says_so(make_daemon):
    d = make_daemon(tcp=True).start()
    first, last = (cli(d, "key", "create").stdout.strip() for _ in range(2))
    url = "http://127.0.0.1:%d" % d.tcp_address()[1]

    def refused():
        with contextlib.closing(Client(d.tcp_address())) as anybody:
            answer = anybody.get(f"{V1}/identity")
        assert answer.status == 401, answer
        return answer.json["error_detail"]

    done = cli(d, "key", "revoke", first.split("_")[1])
    assert (done.returncode, done.stderr) == (0, "")
    assert refused() == "send a key"
    with d.client() as admin:  # the revoked one is no longer the last
        assert "warnings" not in admin.request("DELETE", f"{V1}/keys/{first.split('_')[1]}").json
    done = cli(d, "key", "revoke", last.split("_")[1])
    assert done.returncode == 0 and "warning: no valid key is left" in done.stderr and "'millibox key create'" in done.stderr
    assert "all were revoked or have expired" in refused() and "'millibox key create'" in refused()
    assert "no key is valid" in cli(d, "session", "list", MILLIBOX_SOCKET="", MILLIBOX_URL=url).stderr
    again = cli(d, "key", "create").stdout.strip()
    assert refused() == "send a key"
    assert cli(d, "session", "list", key=again, MILLIBOX_SOCKET="", MILLIBOX_URL=url).returncode == 0


def test_keys_and_tenants_survive_a_restart(keyed):
    with keyed.client() as admin:
        answer = admin.request("PATCH", f"{V1}/tenants/alice", body={"policy": "strict", "quotas": {"sessions": 3}})
        assert answer.status == 200, answer
        before = admin.get(f"{V1}/tenants/alice").json
        dead = make_key(admin, "alice")
        assert admin.request("DELETE", f"{V1}/keys/{dead.split('_')[1]}").status == 200
    assert keyed.stop() == 0
    keyed.log_path.unlink()
    keyed.start()
    with keyed.client() as admin:
        assert admin.get(f"{V1}/tenants/alice").json == before
    with as_key(keyed, keyed.key) as alice:
        assert alice.get(f"{V1}/identity").json["limits"]["sessions"] == 3
    with as_key(keyed, dead) as client:
        assert client.get(f"{V1}/identity").status == 401


def test_the_secret_is_not_stored_or_logged(make_daemon):
    """Not in a debug log, not in the database, not in lists."""
    d = make_daemon(tcp=True, flags=["--log-level", "debug"]).start()
    with d.client() as admin:
        key = make_key(admin, "default")
        lists = admin.get(f"{V1}/keys").body.decode() + admin.get(f"{V1}/keys/{key.split('_')[1]}").body.decode()
    for headers in ({"Authorization": f"Bearer {key}"}, {"X-API-Key": key}, {"X-API-Key": key + "x"}):
        with contextlib.closing(Client(d.tcp_address())) as client:
            client.get(f"{V1}/sessions?key={key}", headers=headers)
    assert d.stop() == 0
    secret = key.split("_")[2]
    assert secret not in lists
    for path in pathlib.Path(d.home).rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    with sqlite3.connect(f"file:{d.home}/state/millibox.db?mode=ro", uri=True) as db:
        row = db.execute("SELECT hash, last_used_ms FROM api_keys").fetchone()
    assert len(row[0]) == 32 and row[1] is not None


def test_failures_are_slowed_down_and_counted(keyed):
    bad = "mb_" + "a" * 12 + "_" + "b" * 32
    with contextlib.closing(Client(keyed.tcp_address())) as client:
        answers = [client.get(f"{V1}/identity", headers={"X-API-Key": bad}) for _ in range(30)]
    statuses = [a.status for a in answers]
    assert statuses[0] == 401 and statuses[-1] == 429, statuses
    # A key does not become valid with time.
    assert answers[-1].headers["Should-Retry"] == "false" and "Retry-After" not in answers[-1].headers
    # A caller with a valid key is not locked out with them.
    with as_key(keyed, keyed.key) as alice:
        assert alice.get(f"{V1}/identity").status == 200
    with keyed.client() as admin:
        lines = admin.get("/metrics").body.decode().splitlines()
    failures = [line for line in lines if line.startswith("sandbox_auth_failures_total")]
    assert float(failures[0].split()[-1]) >= statuses.count(401)


# Scopes.

SCOPES = (
    ("read", "GET", f"{V1}/sessions", None),
    ("execute", "POST", f"{V1}/execute", {"language": "python", "code": "1"}),
    ("sessions", "POST", f"{V1}/sessions", {"mode": "ephemeral"}),
    ("policy", "POST", f"{V1}/policy/explain", {"language": "python", "code": "1"}),
    ("templates", "POST", f"{V1}/templates", {"id": "t", "name": "t", "image": "host"}),
    ("metrics", "GET", "/metrics", None),
    ("admin", "GET", f"{V1}/tenants", None),
)


@pytest.mark.boxes
def test_scopes_limit_a_key(keyed):
    with keyed.client() as admin:
        keys = {scope: make_key(admin, "alice", scopes=[scope]) for scope, *_ in SCOPES}
    for scope, key in keys.items():
        with as_key(keyed, key) as client:
            for needed, method, path, body in SCOPES:
                answer = client.request(method, path, body=body)
                if scope in (needed, "admin"):
                    assert answer.status not in (401, 403), (scope, path, answer)
                else:
                    assert answer.status == 403, (scope, path, answer)
                    assert needed in answer.json["error_detail"]
    with keyed.client() as admin:
        for bad in ([], ["root"], "read", ["read", 1], [""]):
            answer = admin.post(f"{V1}/keys", {"tenant": "alice", "scopes": bad})
            assert answer.status == 400 and answer.json["field"] == "scopes", bad


@pytest.mark.parametrize(
    "body,field",
    [
        ({}, "tenant"),
        ({"tenant": "nobody"}, "tenant"),
        ({"tenant": "no/name"}, "tenant"),
        ({"tenant": "default", "name": "a\nb"}, "name"),
        ({"tenant": "default", "name": "x" * 101}, "name"),
        ({"tenant": "default", "expires_in": 0}, "expires_in"),
        ({"tenant": "default", "expires_in": -1}, "expires_in"),
        ({"tenant": "default", "secret": "mine"}, "secret"),
    ],
)
def test_invalid_keys_are_not_created(make_daemon, body, field):
    d = make_daemon().start()
    with d.client() as admin:
        answer = admin.post(f"{V1}/keys", body)
        assert answer.status == 400 and answer.json["field"] == field, answer
        assert admin.get(f"{V1}/keys").json["total"] == 0


# Tenants and quotas.


def test_life_of_a_tenant(keyed):
    with keyed.client() as admin:
        assert admin.post(f"{V1}/tenants", {"name": "alice"}).status == 409
        for body, field in (
            ({"name": "a b"}, "name"),
            ({"name": "b", "quotas": {"sessions": -1}}, "quotas.sessions"),
            ({"name": "b", "quotas": {"memory": "much"}}, "quotas.memory"),
            ({"name": "b", "policy": "no/such"}, "policy"),
        ):
            answer = admin.post(f"{V1}/tenants", body)
            assert answer.status == 400 and answer.json["field"] == field, answer
        made = make_tenant(admin, "bob", quotas={"memory": "2Gi", "sessions": 0})
        assert made["limits"]["memory"] == "2Gi" and made["limits"]["sessions"] == 0
        assert made["quotas"]["queued"] is None and made["limits"]["queued"] > 0
        assert [t["name"] for t in admin.get(f"{V1}/tenants").json["tenants"]] == ["default", "alice", "bob"]
        changed = admin.request("PATCH", f"{V1}/tenants/bob", body={"quotas": {"memory": None}}).json
        assert changed["quotas"]["memory"] is None and changed["quotas"]["sessions"] == 0
        assert admin.request("DELETE", f"{V1}/tenants/alice").status == 409  # has a key
        assert admin.request("DELETE", f"{V1}/tenants/default").status == 409
        assert admin.request("DELETE", f"{V1}/tenants/bob").status == 200
        assert admin.get(f"{V1}/tenants/bob").status == 404


@pytest.mark.boxes
def test_a_recreated_tenant_has_nothing_of_the_old_one(keyed):
    with as_key(keyed, keyed.key) as alice:
        session = Session(alice, mode="ephemeral", id="old")
        execution = session.run("print('old')")["execution_id"]
        with keyed.client() as admin:
            assert admin.request("DELETE", f"{V1}/keys/{keyed.key.split('_')[1]}").status == 200
            refused = admin.request("DELETE", f"{V1}/tenants/alice")
            assert refused.status == 409, refused
            key = make_key(admin, "alice")
        with as_key(keyed, key) as again:
            assert again.request("DELETE", f"{V1}/sessions/old").status == 200
    with keyed.client() as admin:
        assert admin.request("DELETE", f"{V1}/keys/{key.split('_')[1]}").status == 200
        host.wait_until(lambda: admin.request("DELETE", f"{V1}/tenants/alice").status == 200, 10, "tenant deleted")
        make_tenant(admin, "alice")
        key = make_key(admin, "alice")
        assert [k["tenant"] for k in admin.get(f"{V1}/keys?tenant=alice").json["keys"]] == ["alice"]
    with as_key(keyed, key) as fresh:
        assert fresh.get(f"{V1}/sessions").json["total"] == 0
        assert fresh.get(f"{V1}/executions/{execution}").status == 404


def expect_quota(answer, name):
    assert answer.status == 429, answer
    assert answer.json["error_code"] == "Sandbox.QuotaExceeded"
    assert answer.json["field"] == f"quota.{name}"
    # Only these become free without the caller.
    frees_itself = name in ("requests_per_second", "queued")
    assert answer.headers["Should-Retry"] == str(frees_itself).lower()
    seconds = answer.headers["Retry-After"]
    assert (int(seconds) >= 1 and answer.json["retry_after"] == int(seconds)) if frees_itself else seconds is None


@pytest.mark.boxes
def test_quotas_are_enforced_and_released(keyed):
    with keyed.client() as admin, as_key(keyed, keyed.key) as alice:

        def quotas(**values):
            answer = admin.request("PATCH", f"{V1}/tenants/alice", body={"quotas": values})
            assert answer.status == 200, answer

        def usage():
            return admin.get(f"{V1}/tenants/alice").json["usage"]

        quotas(sessions=2, memory="1Gi", queued=1)
        one = Session(alice, mode="persistent", resources={"memory": "512Mi"})
        two = Session(alice, mode="ephemeral")
        expect_quota(alice.post(f"{V1}/sessions", {"mode": "ephemeral"}), "sessions")
        assert usage()["sessions"] == 2
        assert two.delete().status == 200
        expect_quota(alice.post(f"{V1}/sessions", {"mode": "persistent", "resources": {"memory": "600Mi"}}), "memory")
        assert usage() == {"sessions": 1, "executions": 0, "queued": 0, "memory": "512Mi", "templates": 0, "images": 0,
                           "secrets": 0}  # fmt: skip
        # An execution that does not fit beside the session is refused at once, one that fits runs.
        expect_quota(
            alice.post(f"{V1}/execute", {"language": "python", "code": "1", "resources": {"memory": "600Mi"}}), "memory"
        )
        assert alice.python("print(1)", resources={"memory": "256Mi"})["stdout"] == "1\n"
        running = one.start("input()", stdin_open=True)
        host.wait_until(lambda: usage()["executions"] == 1, 10, "it runs")
        waiting = one.start("2")
        expect_quota(alice.post(f"{one.path}/execute", {"code": "3"}), "queued")
        assert usage()["queued"] == 1
        for execution in (waiting, running):
            assert alice.post(f"{V1}/executions/{execution}/cancel", {}).status == 200
        host.wait_until(lambda: usage()["executions"] == 0, 10, "cancelled")
        assert one.delete().status == 200
        host.wait_until(lambda: set(usage().values()) == {0}, 10, "all back")


def test_requests_per_second_are_bounded_per_tenant(keyed):
    with keyed.client() as admin:
        body = {"quotas": {"requests_per_second": 1, "burst": 3}}
        assert admin.request("PATCH", f"{V1}/tenants/alice", body=body).status == 200
        make_tenant(admin, "bob")
        bobs = make_key(admin, "bob")
    answers = []
    while len(answers) < 60 and (not answers or answers[-1].status == 200):  # some come back while a busy host asks
        with as_key(keyed, keyed.key) as alice:
            answers.append(alice.get(f"{V1}/identity"))
    assert [a.status for a in answers[:3]] == [200, 200, 200]
    expect_quota(answers[-1], "requests_per_second")
    with as_key(keyed, bobs) as bob:
        assert bob.get(f"{V1}/identity").status == 200
    time.sleep(int(answers[-1].headers["Retry-After"]))  # Retry-After is correct
    with as_key(keyed, keyed.key) as alice:
        assert alice.get(f"{V1}/identity").status == 200


@pytest.mark.alone
@pytest.mark.boxes
def test_one_tenants_queue_does_not_delay_another(make_daemon):
    d = make_daemon(tcp=True, env={"MILLIBOX_ADMISSION_MAX_RUNNING": "1"}).start()
    with d.client() as admin:
        for name in ("alice", "bob"):
            make_tenant(admin, name, quotas={"sessions": 0, "memory": 0})
        keys = {name: make_key(admin, name) for name in ("alice", "bob")}
    with as_key(d, keys["alice"]) as alice, as_key(d, keys["bob"]) as bob:
        session = Session(alice, mode="ephemeral")
        queued = [session.start("import time; time.sleep(2)") for _ in range(20)]
        assert bob.python("print('bob')")["stdout"] == "bob\n"
        # The whole queue takes forty seconds: with bob behind it none would be left.
        left = [e for e in queued if alice.get(f"{V1}/executions/{e}/status").json["status"] == "pending"]
        assert len(left) > 5
        assert session.delete().status == 200


# The command line.


def test_keys_and_tenants_from_the_command_line(make_daemon):
    d = make_daemon(tcp=True).start()
    assert cli(d, "tenant", "create", "alice", "--sessions", "2", "--memory", "1Gi").returncode == 0
    made = cli(d, "key", "create", "--tenant", "alice", "--name", "for ci", "--scopes", "read,execute", "--expires", "1h")
    assert made.returncode == 0 and "once" in made.stderr
    key = made.stdout.strip()
    listed = cli(d, "key", "list").stdout
    assert key.split("_")[1] in listed and key.split("_")[2] not in listed and "for ci" in listed
    url = "http://127.0.0.1:%d" % d.tcp_address()[1]
    by_key = {"MILLIBOX_SOCKET": "", "MILLIBOX_URL": url}
    ran = cli(d, "run", "-c", "print(42)", key=key, **by_key)
    assert (ran.returncode, ran.stdout) == (0, "42\n")
    refused = cli(d, "session", "create", key=key, **by_key)
    assert refused.returncode != 0 and "sessions" in refused.stderr
    assert "valid API key" in cli(d, "session", "list", **by_key).stderr
    shown = cli(d, "tenant", "show", "alice").stdout
    assert "1Gi" in shown
    # A burst follows the rate, unless it is given.
    for options, expected in ((["--rate", "5"], (5, 10)), (["--burst", "7"], (5, 7)), (["--burst", "default", "--rate", "default"], (200, 400))):
        assert cli(d, "tenant", "set", "alice", *options).returncode == 0
        limits = json.loads(cli(d, "tenant", "show", "alice", "--json").stdout)["limits"]
        assert (limits["requests_per_second"], limits["burst"]) == expected, options
    assert cli(d, "tenant", "set", "alice", "--memory", "default", "--policy", "strict").returncode == 0
    assert json.loads(cli(d, "tenant", "show", "alice", "--json").stdout)["policy"] == "strict"
    assert "alice" in cli(d, "tenant", "list").stdout
    assert cli(d, "tenant", "delete", "alice").returncode != 0
    assert cli(d, "key", "revoke", key.split("_")[1]).returncode == 0
    assert cli(d, "tenant", "delete", "alice").returncode == 0
    assert cli(d, "key", "revoke", "nobody").returncode != 0
    assert cli(d, "key", "create", "--scopes", "root").returncode != 0
    key_file = d.home / "key"
    key_file.write_text("not a key!\n")
    assert "does not contain a valid key" in cli(d, "session", "list", MILLIBOX_API_KEY_FILE=str(key_file)).stderr


# Access.


def test_without_trust_socket_the_unix_socket_needs_a_key(make_daemon):
    d = make_daemon(env={"MILLIBOX_AUTH_TRUST_SOCKET": "false"})

    def create():
        return subprocess.run(
            [DAEMON, "--create-key", "--state-dir", str(d.home / "state")],
            capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=60,
        )

    def check(key):
        with d.client() as client:
            assert client.get(f"{V1}/identity").status == 401
            who = client.get(f"{V1}/identity", headers={"X-API-Key": key}).json
            assert who["tenant"] == "default" and "admin" in who["scopes"]

    made = create()
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()
    d.start()
    check(key)
    busy = create()
    assert busy.returncode != 0 and "millibox key create" in busy.stderr and busy.stdout == ""
    with d.client() as client:
        warning, = client.request("DELETE", f"{V1}/keys/{key.split('_')[1]}", headers={"X-API-Key": key}).json["warnings"]
        refusal = client.get(f"{V1}/identity")
    for text in (warning, refusal.json["error_detail"]):  # the socket is no way in
        assert "'milliboxd --create-key'" in text and "socket" not in text and "'millibox key" not in text, text
    assert d.stop() == 0
    made = create()
    assert made.returncode == 0, made.stderr
    d.start()
    check(made.stdout.strip())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_another_user_at_the_socket_needs_a_key(make_daemon):
    d = make_daemon().start()
    os.chmod(d.socket, 0o666)
    code = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        "s.sendall(b'GET /api/v1/identity HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n'); "
        "print(s.makefile('rb').read().decode())"
    )

    def ask():
        command = ["/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        return subprocess.run(
            [*command, "/usr/bin/python3", "-c", code, d.socket], capture_output=True, text=True, timeout=30
        ).stdout

    assert "200" in ask().split("\r\n")[0]
    assert "admin" not in ask()
    with d.client() as admin:
        make_key(admin, "default")
    assert "401" in ask().split("\r\n")[0]


def test_beyond_loopback_with_keys(make_daemon):
    d = make_daemon(flags=["--listen", "0.0.0.0:0"])
    made = subprocess.run(
        [DAEMON, "--create-key", "--state-dir", str(d.home / "state")],
        capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=60,
    )
    key = made.stdout.strip()
    d.start()
    assert "without TLS" in d.log()
    line = next(line for line in d.log().splitlines() if "http://0.0.0.0:" in line)
    port = int(line.split("http://0.0.0.0:")[1].split()[0].strip('"'))
    with contextlib.closing(KeyClient(("127.0.0.1", port), key)) as client:
        assert client.get(f"{V1}/identity").status == 200
        # A foreign name is refused as before; an address cannot be rebound.
        assert client.get(f"{V1}/identity", headers={"Host": "evil.example"}).status == 403
        assert client.get(f"{V1}/identity", headers={"Host": "192.0.2.7:8000"}).status == 200
