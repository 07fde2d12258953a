# SPDX-License-Identifier: Apache-2.0
"""Networks bridge and host are taken from live sessions when their policy allows them no longer (NET-1, NET-6): at a reload,
when a tenant gets another policy, and when policies changed while no daemon ran. Each test has a session beside it whose policy
still allows the network."""

import json
import os
import signal
import socket
import threading

import pytest
from support import host, outside
from support.daemon import Daemon
from support.outside import OPENED, PORT, PUBLIC, daemons, inside
from support.sessions import V1, Session

pytestmark = [pytest.mark.phases("system"), pytest.mark.skipif(bool(outside.missing()), reason=str(outside.missing()))]

BRIDGE = "name: {0}\nnetwork: {{mode: bridge}}\n"
POLICIES = {name: BRIDGE.format(name) for name in ("wide", "kept", "taken")}
REACH = f"""
import socket
for address in {[PUBLIC, OPENED]!r}:
    try:
        socket.create_connection((address, {PORT}), 10).close()
        print(address)
    except OSError as e:
        print(type(e).__name__, e.errno)
"""


def write(daemon, name, text):
    (daemon.home / "policies" / f"{name}.yaml").write_text(text)


def reload(daemon):
    before = daemon.log().count("reloaded the policies")
    os.kill(daemon.pid, signal.SIGHUP)
    host.wait_until(lambda: daemon.log().count("reloaded the policies") > before, 10, daemon.log)


def reached(session):
    """Which addresses a program of the session reaches."""
    result = session.run(REACH)
    assert result["exit_code"] == 0, result
    return [line for line in result["stdout"].splitlines() if line in (PUBLIC, OPENED)]


def losses(daemon, count):
    """Session, network and reason of the audit's records, once there are @count."""
    found = []

    def are_written():
        events = [json.loads(line) for line in (daemon.home / "state" / "audit.log").read_text().split("\n")[:-1]]
        found[:] = [(e["object"], e["detail"]["lost"], e["detail"]["reason"]) for e in events if e.get("action") == "session.network"]
        return len(found) >= count

    host.wait_until(are_written, 10, lambda: f"{count} records of lost networks: {found}")
    return found


@pytest.fixture
def pair():
    """A daemon, and a session of each of two policies with network bridge."""
    with daemons() as (world, start):
        daemon = start(policies=POLICIES)
        with daemon.client() as client:
            sessions = [Session(client, mode="persistent", policy=name) for name in ("kept", "taken")]
            assert [reached(s) for s in sessions] == [[PUBLIC, OPENED]] * 2, "control"
            yield world, daemon, client, *sessions


TALK = f"""
import socket
s = socket.create_connection(("{PUBLIC}", 7100), 30)
s.settimeout(SECONDS)
print("connected", flush=True)
try:
    print("received", s.recv(100).decode(), flush=True)
except OSError as e:
    print("cut", flush=True)
"""


def test_a_reload_takes_the_interface(pair):
    """An open connection too, in the middle of a program."""
    world, daemon, client, kept, taken = pair
    accepted = []
    with inside(world.world):
        server = socket.create_server((PUBLIC, 7100))
    with server:
        # Nothing tells a cut connection that it is cut.
        ids = [s.start(TALK.replace("SECONDS", seconds), timeout=300) for s, seconds in ((kept, "120"), (taken, "8"))]
        for session, execution in zip((kept, taken), ids):
            session.wait_for_output(execution, "connected")
        server.settimeout(host.HANG_S)
        accepted += [server.accept()[0] for _ in ids]
        write(daemon, "taken", "name: taken\n")
        reload(daemon)
        host.wait_until(lambda: len(world.links()) == 1, 10, lambda: f"one interface: {world.links()}")
        for connection in accepted:
            connection.sendall(b"hello")
        results = [session.result(execution, 60) for session, execution in zip((kept, taken), ids)]
        for connection in accepted:
            connection.close()
    assert results[0]["stdout"].splitlines() == ["connected", "received hello"], results[0]
    assert results[1]["stdout"].splitlines() == ["connected", "cut"], results[1]
    assert results[1]["isolation"]["network"] == "bridge", "it began with it"
    assert results[1]["metrics"]["network_sent_bytes"] > 0
    assert reached(kept) == [PUBLIC, OPENED] and reached(taken) == []
    assert (kept.info()["network"], taken.info()["network"]) == ("bridge", "none")
    assert taken.run("1")["isolation"]["network"] == "none"
    reason = "policy taken: network.mode: network 'bridge' is not allowed; allowed: none"
    assert losses(daemon, 1) == [(taken.id, "bridge", reason)]
    assert f"loses network bridge: {reason}" in daemon.log()
    # It does not come back, neither with the policy nor with another daemon.
    write(daemon, "taken", POLICIES["taken"])
    reload(daemon)
    taken.result(taken.start("1"))  # a ticket promises that it and what came before it are on disk
    daemon.kill()
    daemon.start()
    with daemon.client() as other:
        kept.client = taken.client = other
        assert reached(kept) == [PUBLIC, OPENED] and reached(taken) == [] and taken.info()["network"] == "none"
        assert reached(Session(other, mode="persistent", policy="taken")) == [PUBLIC, OPENED], "a new session has it"


def test_the_tenants_policy_takes_it(pair):
    """Although the policies that the sessions named still allow it."""
    world, daemon, client, kept, taken = pair
    (daemon.home / "policies" / "wide.yaml").write_text("name: wide\n")
    reload(daemon)
    host.wait_until(lambda: world.links() == [], 10, lambda: f"no interface: {world.links()}")
    assert reached(kept) == reached(taken) == []
    assert {reason for _, _, reason in losses(daemon, 2)} == {"policy wide: network.mode: network 'bridge' is not allowed; allowed: none"}


def test_an_ephemeral_session_has_none_in_its_next_box(pair):
    world, daemon, client, _, _ = pair
    kept, taken = (Session(client, mode="ephemeral", policy=name) for name in ("kept", "taken"))
    assert reached(kept) == reached(taken) == [PUBLIC, OPENED]
    write(daemon, "taken", "name: taken\nnetwork: {mode: allowlist}\n")
    reload(daemon)
    assert reached(kept) == [PUBLIC, OPENED] and reached(taken) == [] and taken.info()["network"] == "none"


def test_a_reload_changes_the_ranges(pair):
    """Also for connections that are open."""
    world, daemon, client, kept, taken = pair
    code = f"import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(30)\ns.connect(('{OPENED}', {PORT}))"
    ask = "try:\n    s.send(b'x')\n    s.recv(100)\n    print('answered')\nexcept OSError as e:\n    print(e.errno)"
    for session in (kept, taken):
        session.run(code)
        assert session.run(ask)["stdout"] == "answered\n"
    write(daemon, "taken", "name: taken\nnetwork: {mode: bridge, ranges: []}\n")
    reload(daemon)
    host.wait_until(lambda: groups(world) == {0x6D620000, 0x6D628000}, 10, lambda: f"another group: {groups(world)}")
    assert kept.run(ask)["stdout"] == "answered\n" and taken.run(ask)["stdout"] == "113\n"
    assert reached(kept) == [PUBLIC, OPENED] and reached(taken) == [PUBLIC]
    write(daemon, "taken", POLICIES["taken"])
    reload(daemon)
    host.wait_until(lambda: groups(world) == {0x6D628000}, 10, lambda: f"the first group: {groups(world)}")
    assert reached(taken) == [PUBLIC, OPENED]
    # A later loss, which is the only one.
    write(daemon, "taken", "name: taken\n")
    reload(daemon)
    assert [(session, lost) for session, lost, _ in losses(daemon, 1)] == [(taken.id, "bridge")]


def groups(world):
    """Of the interfaces of boxes."""
    lines = [line for line in world.ip(world.host, "-o", "link", "show").splitlines() if ": millibox" in line]
    return {int(line.split(" group ")[1].split()[0]) for line in lines}


def test_policies_that_changed_while_no_daemon_ran(pair):
    world, daemon, client, kept, taken = pair
    third = Session(client, mode="persistent", policy="wide")
    assert reached(third) == [PUBLIC, OPENED]
    daemon.kill()
    write(daemon, "taken", "name: taken\nnetwork: {mode: allowlist, allow: [example.com]}\n")
    write(daemon, "kept", "name: kept\nnetwork: {mode: bridge, ranges: []}\n")
    daemon.start()
    with daemon.client() as other:
        for session in (kept, taken, third):
            session.client = other
        host.wait_until(lambda: groups(world) == {0x6D620000, 0x6D628000}, 10, lambda: f"another group: {groups(world)}")
        assert [reached(s) for s in (third, kept, taken)] == [[PUBLIC, OPENED], [PUBLIC], []]
        assert [s.info()["network"] for s in (third, kept, taken)] == ["bridge", "bridge", "none"]
    assert [(session, lost) for session, lost, _ in losses(daemon, 1)] == [(taken.id, "bridge")]
    host.wait_until(lambda: len(world.links()) == 2, 10, lambda: f"two interfaces: {world.links()}")


def test_a_tenant_gets_another_policy():
    with daemons() as (world, start):
        daemon = start(policies={**POLICIES, "none": "name: none\n"})
        with daemon.client() as client:
            sessions = [tenant_with(client, name, "wide") for name in ("acme", "umbrella")]
            assert [s.reached() for s in sessions] == [[PUBLIC, OPENED]] * 2
            assert client.request("PATCH", f"{V1}/tenants/acme", {"policy": "none"}).status == 200
            host.wait_until(lambda: len(world.links()) == 1, 10, lambda: f"one interface: {world.links()}")
            assert [s.reached() for s in sessions] == [[], [PUBLIC, OPENED]]
            assert [(session, lost) for session, lost, _ in losses(daemon, 1)] == [(sessions[0].id, "bridge")]


def test_a_policy_that_is_gone_takes_it():
    with daemons() as (world, start):
        # One that requests may name has to exist.
        daemon = start(policies=POLICIES, env={"MILLIBOX_POLICY_SELECTABLE": "wide"})
        with daemon.client() as client:
            kept, taken = (tenant_with(client, name, name) for name in ("kept", "taken"))
            assert kept.reached() == taken.reached() == [PUBLIC, OPENED], "control"
            (daemon.home / "policies" / "taken.yaml").unlink()
            reload(daemon)
            host.wait_until(lambda: len(world.links()) == 1, 10, lambda: f"one interface: {world.links()}")
            assert kept.reached() == [PUBLIC, OPENED] and taken.reached() == []
            assert losses(daemon, 1) == [(taken.id, "bridge", "the tenant's policy 'taken' does not exist")]
            wide = Session(client, mode="persistent")
            assert reached(wide) == [PUBLIC, OPENED]
        daemon.kill()
        (daemon.home / "policies" / "kept.yaml").unlink()
        daemon.start()
        with daemon.client() as client:
            for session, name in ((kept, "kept"), (taken, "taken")):
                info = client.get(f"{V1}/sessions/{session.id}", headers=session.headers).json
                assert info["status"] == "failed", info
                assert f"session={session.id} cannot go on: the tenant's policy '{name}' does not exist" in daemon.log()
            wide.client = client
            assert reached(wide) == [PUBLIC, OPENED], "control"
            host.wait_until(lambda: len(world.links()) == 1, 10, lambda: f"one interface: {world.links()}")


def tenant_with(client, name, policy):
    """A session of a new tenant."""
    assert client.post(f"{V1}/tenants", {"name": name, "policy": policy}).status == 201
    return OtherTenant(client, client.post(f"{V1}/keys", {"tenant": name}).json["key"])


class OtherTenant:
    """A session of the tenant that has a key."""

    def __init__(self, client, key):
        self.client, self.headers = client, {"Authorization": f"Bearer {key}"}
        self.id = client.post(f"{V1}/sessions", {"mode": "persistent", "language": "python"}, headers=self.headers).json["id"]

    def reached(self):
        answer = self.client.post(f"{V1}/sessions/{self.id}/execute", {"code": REACH, "wait": True}, headers=self.headers)
        assert answer.status == 200, answer.json
        return [line for line in answer.json["stdout"].splitlines() if line in (PUBLIC, OPENED)]


# Host.


@pytest.mark.skipif(host.landlock_abi() < 6, reason="needs Landlock of Linux 6.12")
@pytest.mark.parametrize("text", ["name: taken\n", "name: taken\nnetwork: {mode: host}\nisolation: {require: [net]}\n"])
@pytest.mark.parametrize("stopped", [False, True])
def test_a_session_with_the_network_of_the_host_ends(text, stopped):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=greet, args=(listener,), daemon=True).start()
        port = listener.getsockname()[1]
        code = f"import socket\nprint(socket.create_connection(('127.0.0.1', {port}), 20).recv(100).decode())"
        daemon = Daemon(env={"MILLIBOX_HOST_NETWORK_ENABLED": "true", "MILLIBOX_POLICY_DEFAULT": "wide",
                             "MILLIBOX_POLICY_SELECTABLE": "kept,taken"})  # fmt: skip
        (daemon.home / "policies").mkdir(mode=0o755)
        daemon.env["MILLIBOX_POLICY_DIR"] = str(daemon.home / "policies")
        for name in POLICIES:
            write(daemon, name, f"name: {name}\nnetwork: {{mode: host}}\n")
        try:
            check_host(daemon.start(), code, text, stopped)
            assert daemon.stop() == 0, daemon.log()
        finally:
            daemon.remove()


def greet(listener):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.sendall(b"hello")


def check_host(daemon, code, text, stopped):
    with daemon.client() as client:
        kept, taken = (Session(client, mode="persistent", policy=name) for name in ("kept", "taken"))
        assert [s.run(code)["stdout"] for s in (kept, taken)] == ["hello\n"] * 2
        waits = None if stopped else taken.start("import time\ntime.sleep(1000)")
    if stopped:
        daemon.kill()
        write(daemon, "taken", text)
        daemon.start()
    else:
        write(daemon, "taken", text)
        reload(daemon)
    with daemon.client() as client:
        kept.client = taken.client = client
        ended = taken.info()
        rule = "isolation.require" if "require" in text else "network.mode"
        assert ended["status"] == "terminated" and f"policy taken: {rule}: " in ended["reason"], ended
        if waits:
            assert taken.result(waits)["status"] == "cancelled"
        assert [(session, lost) for session, lost, _ in losses(daemon, 1)] == [(taken.id, "host")]
        assert kept.run(code)["stdout"] == "hello\n", "control"
        engine = daemon.host_engine_pid
        host.wait_until(lambda: len(host.children(engine)) == 1, 20, lambda: f"one box: {host.children(engine)}")
