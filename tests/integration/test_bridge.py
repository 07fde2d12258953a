# SPDX-License-Identifier: Apache-2.0
"""Network bridge from start to end: what must be there, what is left after any death, many boxes, names."""

import concurrent.futures
import os
import signal
import socket
import struct
import subprocess
import threading

import pytest
from support import host, outside
from support.daemon import BUILD
from support.outside import PORT, PRIVATE, PUBLIC, daemons, inside
from support.sessions import Session

pytestmark = [pytest.mark.phases("system"), pytest.mark.skipif(bool(outside.missing()), reason=str(outside.missing()))]

REACH = f"""
import socket
with socket.create_connection(("{PUBLIC}", {PORT}), 20) as s:
    print(s.getsockname()[0], s.recv(100).decode())
"""


@pytest.fixture(scope="module")
def pair():
    with daemons() as made:
        yield made[0], made[1]()


def ends_with(start, text, **more):
    """A daemon that refuses to start, and says @text."""
    daemon = start(ready=False, **more)
    assert daemon.process.wait(30 * host.PATIENCE) != 0
    assert text in daemon.log(), daemon.log()


def test_fifty_boxes_at_once(pair):
    """Each has its own address, and nothing of them is left."""
    world, daemon = pair

    def reach(_):
        with daemon.client(timeout=300) as client:
            return client.post("/api/v1/execute", {"language": "python", "code": REACH, "timeout": 200})

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(reach, range(50)))
    assert [a.json["exit_code"] for a in answers] == [0] * 50, answers
    assert len({a.json["stdout"].split()[0] for a in answers}) == 50
    daemon.settle()
    host.wait_until(lambda: world.links() == [], 20, lambda: f"interfaces gone: {world.links()}")


def test_a_dialect_asks_for_it(pair):
    """SandboxRunner's word for it means the same here, if the policy permits it."""
    _, daemon = pair
    with daemon.client() as client:
        made = client.post("/api/v1/sandboxes", {"image": "python:3.11", "network_mode": "bridge"})
        assert made.status == 201 and made.json["config"]["network_mode"] == "bridge" and not made.json.get("warnings"), made
        client.request("DELETE", f"/api/v1/sandboxes/{made.json['id']}")
    daemon.settle()


def test_doctor_and_engine_know_it(pair):
    plan = subprocess.run([BUILD / "millibox-engine", "--plan", "--with-bridge"], capture_output=True, text=True, check=True).stdout
    steps = [line.split("\t")[1] for line in plan.splitlines()]
    assert steps.index("net") < steps.index("bridge") < steps.index("clone") < steps.index("resolver") < steps.index("pivot")


DATAGRAMS = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
for i in range(10):
    s.sendto(bytes(1000), ("{PUBLIC}", {PORT}))
    s.recv(100)
"""


def bytes_of(result):
    """What the run sent and received."""
    assert result["exit_code"] == 0, result
    metrics = result["metrics"]
    assert metrics.get("network_connections") is None, metrics
    return metrics.get("network_sent_bytes", 0), metrics.get("network_received_bytes", 0)


def is_ten_datagrams(counts):
    """With headers of IP and below; questions for the address of the gateway come along."""
    sent, received = counts
    return 10280 <= sent < 11500 and 280 <= received < 2000


def test_bytes_are_counted():
    """For each run its own, also after a restart of the daemon."""
    with daemons() as (_, start):
        daemon = start()
        assert is_ten_datagrams(bytes_of(daemon.execute(DATAGRAMS).json))
        assert max(bytes_of(daemon.execute("1").json)) < 1000, "control: a run that sends nothing"
        with daemon.client() as client:
            session = Session(client, mode="persistent")
            for _ in range(2):
                assert is_ten_datagrams(bytes_of(session.run(DATAGRAMS)))
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            session.client = client
            assert is_ten_datagrams(bytes_of(session.run(DATAGRAMS)))
            assert max(bytes_of(session.run("1"))) < 1000
            session.delete()
            metrics = client.get("/metrics").body.decode()
        sent = next(line for line in metrics.splitlines() if line.startswith("sandbox_egress_bytes_total") and 'direction="sent"' in line)
        assert 10280 <= float(sent.split()[-1]) < 12500, sent
        none = daemon.execute("1", network="none").json["metrics"]
        assert not [name for name in none if name.startswith("network_")], none


def test_what_must_be_there():
    with daemons() as (world, start):
        world.forward(False)
        ends_with(start, "net.ipv4.ip_forward=1")
        world.forward(True)
        world.ip(world.host, "route", "add", "100.96.0.128/25", "via", outside.GATEWAY)
        ends_with(start, "the host has a route to 100.96.0.128/25")
        world.ip(world.host, "route", "del", "100.96.0.128/25")
        ends_with(start, "CAP_NET_ADMIN is missing", before=["setpriv", "--bounding-set=-net_admin"])
        first = start()
        ends_with(start, "another daemon has the bridge")
        assert first.execute(REACH).json["exit_code"] == 0


@pytest.mark.parametrize("setting, value, text", [
    ("BRIDGE_SUBNET", "8.8.8.0/24", "not a range of private addresses"), ("BRIDGE_SUBNET", "10.0.0.0/8", "must be a /16 to a /24"),
    ("BRIDGE_ALLOW", "169.254.169.254", "never"), ("BRIDGE_ALLOW", "0.0.0.0/0", "bridge.allow"),
    ("BRIDGE_RESOLVERS", "127.0.0.53", "bridge.resolvers"), ("BRIDGE_RESOLVERS", "10.0.0.0/24", "not one address")])  # fmt: skip
def test_wrong_settings(setting, value, text):
    env = {"PATH": "/usr/bin:/bin", f"MILLIBOX_{setting}": value}
    done = subprocess.run([BUILD / "milliboxd", "--check-config"], env=env, capture_output=True, text=True)
    assert done.returncode != 0 and text in done.stderr, done


def test_only_root_can_enable_it():
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", BUILD / "milliboxd", "--check-config"],
                          env={"PATH": "/usr/bin:/bin", "MILLIBOX_BRIDGE_ENABLED": "true"}, capture_output=True, text=True)  # fmt: skip
    assert done.returncode != 0 and "use network mode allowlist" in done.stderr, done


def test_the_helper_is_killed():
    """Boxes that live lose their interface, because nothing watches the rules; no new one gets one; the next start cleans up."""
    with daemons() as (world, start):
        daemon = start()
        with daemon.client() as client:
            session = Session(client, language="python", mode="persistent")
            assert session.run(REACH)["exit_code"] == 0
            helper = daemon.helper_pid()
            os.kill(helper, signal.SIGKILL)
            host.wait_until(lambda: daemon.helper_pid() is None, 10, "helper gone")
            host.wait_until(lambda: world.links() == [], 10, lambda: f"interfaces gone: {world.links()}")
            host.wait_until(lambda: "table inet millibox-lock" not in world.traces(), 10, lambda: f"the lock is gone: {world.traces()}")
            assert "table inet millibox" in world.traces()
            assert session.run(REACH)["exit_code"] != 0
            answer = daemon.execute(REACH)
            assert answer.status == 503 and "millibox-bridge has ended" in answer.body.decode(), answer
            assert daemon.execute("1", network="none").status == 200
            session.delete()
        daemon.settle()
        daemon.stop()
        assert world.traces() != []
        assert start().execute(REACH).json["exit_code"] == 0


@pytest.mark.parametrize("who", ["engine", "daemon"])
def test_others_are_killed(who):
    """The helper removes everything when the engine is gone."""
    with daemons() as (world, start):
        daemon = start()
        assert daemon.execute(REACH).json["exit_code"] == 0
        if who == "daemon":
            daemon.kill()
        else:
            os.kill(daemon.engine_pid, signal.SIGKILL)
            daemon.process.wait(30 * host.PATIENCE)
        host.wait_until(lambda: world.traces() == [], 20, lambda: f"nothing left: {world.traces()}")
        assert start().execute(REACH).json["exit_code"] == 0


def test_a_session_outlives_its_daemon():
    """With its interface: the helper belongs to the engine, and the next daemon starts no other."""
    with daemons() as (world, start):
        daemon = start()
        with daemon.client() as client:
            session = Session(client, language="python", mode="persistent")
            before = session.run(REACH)["stdout"]
        helper = daemon.helper_pid()
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            session.client = client
            assert session.run(REACH)["stdout"] == before and daemon.helper_pid() == helper
            assert daemon.execute(REACH).json["exit_code"] == 0
            session.delete()
        daemon.settle()


@pytest.mark.parametrize("change", [
    "flush ruleset", "flush chain inet millibox from_box", "flush set inet millibox refused",
    "add table inet millibox { flags dormant; }"])  # fmt: skip
def test_rules_changed_by_others_end_the_network(change):
    with daemons() as (world, start):
        daemon = start()
        with daemon.client() as client:
            session = Session(client, language="python", mode="persistent")
            assert session.run(REACH)["exit_code"] == 0
            # The control: rules of others may change.
            world.nft("add", "table", "inet", "other")
            world.nft("delete", "table", "inet", "other")
            assert session.run(REACH)["exit_code"] == 0 and world.links()
            world.nft(*change.split())
            host.wait_until(lambda: world.traces() == [], 10, lambda: f"interfaces gone: {world.traces()}")
            assert session.run(REACH)["exit_code"] != 0
            session.delete()
        assert daemon.execute(REACH).status == 503
        assert "removed or changed the rules" in daemon.log()


LATE = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5555))
s.settimeout(10)
"""


def test_late_answers_reach_no_other_box():
    """The first box of each daemon has the same address."""
    with daemons() as (world, start):
        with inside(world.world):
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            server.bind((PUBLIC, 5000))
            server.settimeout(host.HANG_S)
        first = start()
        with first.client() as client:
            session = Session(client, language="python", mode="persistent")
            assert session.run(LATE + f's.sendto(b"x", ("{PUBLIC}", 5000))')["exit_code"] == 0
            _, peer = server.recvfrom(10)
            # The control: it has an entry, so this arrives.
            server.sendto(b"answer", peer)
            assert session.run("print(s.recv(10))")["stdout"] == "b'answer'\n"
            # Killed, it removes nothing.
            os.kill(first.helper_pid(), signal.SIGKILL)
            session.delete()
        first.settle()
        first.stop()
        assert world.entries() > 0
        second = start()
        with second.client() as client:
            session = Session(client, language="python", mode="persistent")
            assert session.run(LATE)["exit_code"] == 0
            server.sendto(b"late", peer)
            # After it on the same way.
            session.run(f's.sendto(b"x", ("{PUBLIC}", {PORT}))')
            assert session.run("print(s.recv(100)[:7])")["stdout"] == "b'reached'\n"
            session.delete()
        server.close()


def test_the_search_for_an_address_leaves_live_boxes_alone():
    """Connections of a box survive that its number is tried for another."""
    with daemons() as (world, start):
        with inside(world.world):
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            server.bind((PUBLIC, 5000))
            server.settimeout(host.HANG_S)
        daemon = start()
        with daemon.client() as client:
            session = Session(client, language="python", mode="persistent")
            assert session.run(LATE + f's.sendto(b"x", ("{PUBLIC}", 5000))')["exit_code"] == 0
            _, peer = server.recvfrom(10)
            # All numbers of the subnet but the first and the last two are taken.
            taken = range(1, 251, 2)
            world.batch(*(f"link add millibox{n} type veth peer name millibox{n + 1}" for n in taken))
            held = world.links()

            def address():
                """Of a box whose interface is gone afterwards: that follows its answer."""
                found = daemon.execute(REACH).json["stdout"].split()[0]
                host.wait_until(lambda: world.links() == held, 20, lambda: f"its interface gone: {world.links()}")
                return found

            addresses = [address() for _ in range(3)]
            assert addresses == ["100.96.0.253", "100.96.0.254", "100.96.0.253"]
            server.sendto(b"answer", peer)
            assert session.run("print(s.recv(10))")["stdout"] == "b'answer'\n"
            world.batch(*(f"link del millibox{n}" for n in taken))
            session.delete()
        server.close()


def answer_names(sock, address):
    """A name server that knows one address."""
    while True:
        try:
            query, peer = sock.recvfrom(512)
        except OSError:
            return
        if not peer:
            return
        end = query.index(b"\0", 12) + 5
        kind = struct.unpack("!H", query[end - 4 : end - 2])[0]
        records = struct.pack("!HHHIH4s", 0xC00C, 1, 1, 1, 4, socket.inet_aton(address)) if kind == 1 else b""
        sock.sendto(query[:2] + struct.pack("!HHHHH", 0x8180, 1, len(records) > 0, 0, 0) + query[12:end] + records, peer)


def test_names(pair):
    """Without a resolver there are no names; with one, names and nothing else of that address."""
    look = 'import json, socket\ntry:\n    print(socket.gethostbyname("name.test"))\nexcept OSError as e:\n    print("none")\n'
    assert pair[1].execute(look).json["stdout"] == "none\n"
    with daemons() as (world, start):
        with inside(world.world):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind((PRIVATE, 53))
        threading.Thread(target=answer_names, args=(sock, "9.8.7.6"), daemon=True).start()
        daemon = start(env={"MILLIBOX_BRIDGE_RESOLVERS": PRIVATE})
        answer = daemon.execute(look).json
        assert answer["stdout"] == "9.8.7.6\n", answer
        refused = daemon.execute(REACH.replace(PUBLIC, PRIVATE)).json
        assert refused["exit_code"] != 0 and "No route to host" in refused["stderr"], refused
        sock.close()
