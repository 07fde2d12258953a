# SPDX-License-Identifier: Apache-2.0
"""NET-1, NET-3, NET-6 for boxes with network bridge: what they reach, and what they never reach, over interfaces and rules
of the host. The host and the outside world are network namespaces of the test's own."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import struct

import pytest
from support import host, outside
from support.daemon import BUILD
from support.outside import BOX_GATEWAY, METADATA, OPENED, OTHER, OWN, PORT, PRIVATE, PUBLIC, Outside, daemons, inside
from support.sessions import Session

pytestmark = [pytest.mark.phases("system"), pytest.mark.skipif(bool(outside.missing()), reason=str(outside.missing()))]

CLONE_NEWUSER = 0x10000000

#: Prints one JSON object: what became of a TCP connection and a datagram to each address.
PROBE = """
import json, socket
def tcp(address):
    with socket.create_connection((address, PORT), 10) as s:
        return s.recv(100).decode()
def udp(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(SECONDS)
        s.connect((address, PORT))
        s.send(b"x")
        return s.recv(100).decode()
def outcome(way, address):
    try:
        return way(address)
    except OSError as e:
        return type(e).__name__ + " " + str(e.errno)
print(json.dumps({a: [outcome(tcp, a), outcome(udp, a)] for a in ADDRESSES}))
"""
OWN_ADDRESS = """
import fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print(socket.inet_ntoa(fcntl.ioctl(s, 0x8915, struct.pack("256s", b"eth0"))[20:24]))
"""
SERVER = """
import socket, threading
server = socket.create_server(("", PORT))
def serve():
    while True:
        c, peer = server.accept()
        c.sendall(b"reached from " + peer[0].encode())
        c.close()
threading.Thread(target=serve, daemon=True).start()
""".replace("PORT", str(PORT))


@pytest.fixture(scope="module")
def pair():
    with daemons() as (world, start):
        yield world, start()


@pytest.fixture
def world(pair):
    return pair[0]


@pytest.fixture
def net(pair):
    return pair[1]


def probe(*addresses, seconds=1):
    """@seconds: how long to wait for the answer to a datagram."""
    return PROBE.replace("ADDRESSES", repr(addresses)).replace("PORT", str(PORT)).replace("SECONDS", str(seconds))


def ask(daemon, code, **more):
    answer = daemon.execute(code, **more)
    assert answer.status == 200 and answer.json["exit_code"] == 0, answer
    return answer.json


def reach(daemon, *addresses, **more):
    return json.loads(ask(daemon, probe(*addresses, **more))["stdout"])


@contextlib.contextmanager
def live_box(daemon):
    """A function that runs code in the box of a session, and the box's address."""
    daemon.settle()  # in_box() takes the one that is left
    with daemon.client() as client:
        session = Session(client, language="python", mode="persistent")

        def run(code):
            result = session.run(code)
            assert result["exit_code"] == 0, result
            return result["stdout"]

        try:
            yield run, run(OWN_ADDRESS).strip()
        finally:
            session.delete()
    daemon.settle()


def connects_from(pid, address, seconds=20):
    """Whether a program in the network namespace of @pid reaches @address."""
    with inside(pid):
        try:
            with socket.create_connection((address, PORT), seconds) as s:
                return s.recv(100).startswith(b"reached")
        except OSError:
            return False


def test_public_and_opened_addresses_are_reached(net, world):
    """The control of the next test. The host's address is the source."""
    assert reach(net, PUBLIC, OPENED, seconds=10) == {a: [f"reached from {OWN}"] * 2 for a in (PUBLIC, OPENED)}


def test_nothing_else_is_reached(net, world):
    """Private addresses, the metadata service, the host under each of its addresses."""
    refused = (PRIVATE, OTHER, METADATA, OWN, BOX_GATEWAY)
    world.seen.clear()
    got = reach(net, *refused)
    # EHOSTUNREACH: the refusal is answered, though the kernel limits how often. No datagram gets another answer.
    assert [got[a][0] for a in refused] == ["OSError 113"] * len(refused), got
    assert not any("reached" in text for pair in got.values() for text in pair), got
    assert world.seen == []
    # They exist, and listen.
    assert all(connects_from(world.host, address) for address in (PRIVATE, OTHER, METADATA))
    assert connects_from(world.world, OWN)


def test_boxes_do_not_reach_each_other_nor_can_they_be_reached(net, world):
    with live_box(net) as (first, address):
        first(SERVER)
        assert "reached" in json.loads(first(probe(address).replace("[outcome(tcp, a), outcome(udp, a)]", "outcome(tcp, a)")))[address]
        assert reach(net, address)[address][0] == "OSError 113"
        assert not connects_from(world.host, address, 2)
        world.ip(world.world, "route", "add", "100.96.0.0/24", "via", OWN)
        assert not connects_from(world.world, address, 2)


#: Flows to as many ports, until a connection is refused: the rate of new ones alone keeps them below the limit for a while.
FLOOD = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end, port, errno = time.monotonic() + 30, 10000, 0
while not errno and time.monotonic() < end:
    for _ in range(20000):
        try:
            s.sendto(b"x", ("ADDRESS", port))
        except OSError:
            pass  # a refusal of an earlier one
        port = port + 1 if port < 60000 else 10000
    try:
        socket.create_connection(("ADDRESS", PORT), 20).close()
    except OSError as e:
        errno = e.errno
print(errno or "connected")
""".replace("ADDRESS", PUBLIC).replace("PORT", str(PORT))


def test_a_box_cannot_fill_the_hosts_table_of_connections():
    """It is one for the whole host. Entries of an ended box go with it."""
    with daemons() as (world, start):
        daemon = start()
        with live_box(daemon) as (run, _):
            assert run(FLOOD).strip() == "113"
            # The control: the limit was reached. A few entries are the host's own.
            assert 500 <= world.entries() <= 530
            # It is each box's own.
            assert "reached" in reach(daemon, PUBLIC)[PUBLIC][0]
        host.wait_until(lambda: world.entries() < 20, 10, lambda: f"entries gone: {world.entries()}")


def send_raw(source, to):
    """A datagram with a source of our choice, and with that source as its bytes, as root."""
    payload = source.encode()
    udp = struct.pack("!HHHH", PORT, PORT, 8 + len(payload), 0) + payload
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(to))
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
        s.sendto(head + udp, (to, 0))


@contextlib.contextmanager
def in_box(daemon):
    """This thread in the network namespace of the one live box."""
    pid = daemon.box_pids()[0]
    with open("/proc/thread-self/ns/net") as home, open(f"/proc/{pid}/ns/net") as there:
        assert outside.libc.setns(there.fileno(), outside.CLONE_NEWNET) == 0
        try:
            yield
        finally:
            if outside.libc.setns(home.fileno(), outside.CLONE_NEWNET) < 0:
                os._exit(1)


@contextlib.contextmanager
def without_guard(daemon):
    """A function after which millibox-bridge does not notice that rules change."""
    pid = daemon.helper_pid()
    try:
        yield lambda: os.kill(pid, signal.SIGSTOP)
    finally:
        os.kill(pid, signal.SIGCONT)


def test_forged_sources_and_ipv6_are_dropped():
    """Programs cannot send either; here root does it for them. Without the rules both arrive."""
    with daemons() as (world, start), without_guard(daemon := start()) as stop_watching, live_box(daemon) as (_, address):
        link = world.links()[0]
        world.ip(world.host, "addr", "add", "fd77::1/64", "dev", link, "nodad")
        with inside(world.host):
            six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            six.bind(("fd77::1", PORT))
            six.settimeout(host.HANG_S)
        with in_box(daemon):
            outside.run("ip", "addr", "add", "fd77::2/64", "dev", "eth0", "nodad")
            sender = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)

        forged = ("9.9.9.77", "100.96.0.77", PRIVATE)

        def arrived():
            return {data.decode() for data, _ in world.seen if isinstance(data, bytes)}

        def send():
            with in_box(daemon):
                for source in forged:
                    send_raw(source, PUBLIC)
                sender.sendto(b"x", ("fd77::1", PORT))
                # After them on the same way: when it has arrived, they would have.
                send_raw(address, PUBLIC)
            host.wait_until(lambda: address in arrived(), 10, lambda: f"the true source arrives: {world.seen}")

        send()
        assert arrived() == {address}
        six.setblocking(False)
        with pytest.raises(BlockingIOError):
            six.recv(10)
        stop_watching()
        # The second would keep the host from answering "who has this address".
        for chain in ("from_box", "output"):
            world.nft("flush", "chain", "inet", "millibox", chain)
        send()
        host.wait_until(lambda: "9.9.9.77" in arrived(), 10, lambda: f"a forged source arrives: {world.seen}")

        def arrives_over_six():
            """Sent again each time: what waits for an address that was asked for in vain while the rules were there is dropped."""
            sender.sendto(b"x", ("fd77::1", PORT))
            with contextlib.suppress(TimeoutError):
                return six.recv(10) == b"x"

        six.settimeout(1)
        host.wait_until(arrives_over_six, 10, "a datagram over IPv6 arrives")
        sender.close()
        six.close()


def test_programs_have_no_raw_sockets_and_cannot_change_their_network(net):
    code = """
import socket, struct
def attempt(what):
    try:
        what()
        return "done"
    except OSError as e:
        return e.errno
def up(flags):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.send(struct.pack("=IHHII", 32, 19, 5, 1, 0) + struct.pack("=BxHiII", 0, 0, 1000, flags, 1))
        answer = s.recv(4096)
        error = -struct.unpack_from("=i", answer, 16)[0]
        if error:
            raise OSError(error, "netlink")
print(attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)),
      attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)),
      attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)),
      attempt(lambda: up(0)))
"""
    answers = ask(net, code)["stdout"].split()
    assert answers[3] == "1" and "done" not in answers, answers
    # The same message of root in that namespace is valid.
    with live_box(net) as (run, _), in_box(net):
        scope = {}
        exec(code.split("print(attempt")[0], scope)
        assert scope["attempt"](lambda: scope["up"](1)) == "done"


def test_a_namespace_of_the_hosts_own_is_not_connected(net, world):
    """What a taken-over engine could send to millibox-bridge beyond its job."""
    status = pathlib.Path(f"/proc/{net.helper_pid()}/status").read_text()
    assert "CapEff:\t0000000000001000" in status and "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with Outside() as second, ours, theirs:
        os.set_inheritable(theirs.fileno(), True)
        pid = os.fork()
        if pid == 0:
            os.dup2(theirs.fileno(), 3)
            os.closerange(4, 256)
            os.execv("/usr/bin/nsenter", ["nsenter", f"--net=/proc/{second.host}/ns/net", str(BUILD / "millibox-bridge"), "--subnet", outside.SUBNET])
        theirs.close()
        ours.settimeout(host.HANG_S)
        assert ours.recv(1024)[12:16] == bytes(4), "it could start"

        def connect(path, descriptors=2):
            reader, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with open(path) as name, reader:
                socket.send_fds(ours, [struct.pack("=IIII", 1, 0, 0, 0)], [name.fileno(), reader.fileno()][:descriptors])
            return struct.unpack_from("=I", ours.recv(1024), 12)[0]

        def change(address, ranges=1, op=1):
            ours.send(struct.pack("=III4s", 1, op, ranges, socket.inet_aton(address)))
            return struct.unpack_from("=I", ours.recv(1024), 12)[0]

        assert connect(f"/proc/{second.world}/ns/net") != 0
        assert connect("/proc/self/ns/uts") != 0
        assert second.links() == []
        # A box's namespace belongs to another user namespace.
        with live_box(net):
            assert connect(f"/proc/{net.box_pids()[0]}/ns/net") != 0, "it has an interface of that number already"
            child = os.fork()
            if child == 0:
                outside.libc.unshare(CLONE_NEWUSER | outside.CLONE_NEWNET)
                os.kill(os.getpid(), signal.SIGSTOP)
                os._exit(0)
            os.waitpid(child, os.WUNTRACED)
            assert connect(f"/proc/{child}/ns/net", 1) != 0, "without a reader of refusals"
            assert second.links() == []
            assert connect(f"/proc/{child}/ns/net") == 0
            assert second.links() == ["millibox0"]
            group = lambda: second.ip(second.host, "-o", "link", "show", "millibox0").split(" group ")[1].split()[0]
            assert group() == str(0x6D620000) and change(address_of(second, "millibox0")) == 0
            assert group() == str(0x6D620001), "control"
            for address in ("100.96.0.0", "100.96.0.1", "100.96.0.3", "100.96.0.255", "100.96.1.2", "127.0.0.1", "9.9.9.1"):
                assert change(address) != 0, address
            assert change("100.96.0.2", ranges=0x10000) != 0 and change("100.96.0.2", op=2) != 0
            assert group() == str(0x6D620001)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        ours.close()
        os.waitpid(pid, 0)
        assert second.traces() == []


def address_of(world, link):
    """Of the box behind an interface of the host."""
    return world.ip(world.host, "-o", "addr", "show", link).split(" peer ")[1].split("/")[0]


def reached(daemon, **more):
    """Which of the addresses a box reaches."""
    code = f"""
import socket
for address in {[PUBLIC, OPENED, OTHER, PRIVATE]!r}:
    try:
        socket.create_connection((address, {PORT}), 10).close()
        print(address)
    except OSError:
        pass
"""
    answer = daemon.execute(code, **more)
    assert answer.status == 200 and answer.json["exit_code"] == 0, answer
    return answer.json["stdout"].split()


def explained(daemon, **more):
    """The private ranges that a request would get, and the rule."""
    with daemon.client() as client:
        reach = client.post("/api/v1/policy/explain", {"language": "python", **more}).json["grants"]["reach"]
    assert list(reach) == ["ranges"], reach
    return reach["ranges"]["granted"], reach["ranges"]["rule"]["text"]


def test_a_policy_narrows_the_private_ranges():
    def policy(name, ranges=None):
        return f"name: {name}\nnetwork: {{mode: bridge{'' if ranges is None else f', ranges: [{ranges}]'}}}\n"

    narrow = {"first": "10.2.0.0/16", "second": "192.168.7.0/24", "both": "192.168.7.0/24, 10.2.0.0/16", "none": "", "wrong": "10.2.0.0/24"}
    policies = {"all": policy("all"), **{name: policy(name, ranges) for name, ranges in narrow.items()}}
    with daemons() as (world, start):
        daemon = start(policies=policies, env={"MILLIBOX_BRIDGE_ALLOW": "10.2.0.0/16,192.168.7.0/24"})
        assert reached(daemon) == [PUBLIC, OPENED, OTHER], "control: what the operator opened"
        assert reached(daemon, policy="first") == [PUBLIC, OPENED]
        assert reached(daemon, policy="second") == [PUBLIC, OTHER]
        assert reached(daemon, policy="both") == [PUBLIC, OPENED, OTHER]
        assert reached(daemon, policy="none") == [PUBLIC]
        answer = daemon.execute("1", policy="wrong")
        assert answer.status == 503 and "10.2.0.0/24 is not among the first 15 ranges" in answer.json["error_detail"], answer
        assert explained(daemon) == (["10.2.0.0/16", "192.168.7.0/24"], "setting: bridge.allow")
        assert explained(daemon, policy="second") == (["192.168.7.0/24"], "policy second: network.ranges")
        assert explained(daemon, policy="none") == ([], "policy none: network.ranges")
        # Boxes of several groups at once; they outlive their daemon, and nothing is left after the engine.
        code = f"import socket\nfor a in ({OPENED!r}, {OTHER!r}):\n    print(socket.socket().connect_ex((a, {PORT})) == 0)"
        with daemon.client() as client:
            sessions = [Session(client, mode="persistent", policy=name) for name in ("all", "first", "none")]
            assert [s.run(code)["stdout"].split() for s in sessions] == [["True"] * 2, ["True", "False"], ["False"] * 2]
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            for session in sessions:
                session.client = client
            assert [s.run(code)["stdout"].split() for s in sessions] == [["True"] * 2, ["True", "False"], ["False"] * 2]
        assert len(world.links()) == 3
        os.kill(daemon.engine_pid, signal.SIGKILL)
        daemon.process.wait(host.HANG_S)
        host.wait_until(lambda: world.traces() == [], 20, lambda: f"nothing left: {world.traces()}")


def test_interfaces_of_all_groups_go_at_the_start_and_the_end():
    """As if a killed program had left them."""
    with daemons() as (world, start):
        for i, group in enumerate((0x6D626F78, 0x6D620000, 0x6D620003, 0x6D628000)):
            world.ip(world.host, "link", "add", f"millibox{i}", "group", str(group), "type", "veth", "peer", "name", f"peer{i}")
        world.ip(world.host, "link", "add", "another", "group", str(0x6D630000), "type", "veth", "peer", "name", "others")
        daemon = start()
        assert world.links() == [] and "another" in world.ip(world.host, "-o", "link", "show")
        assert reached(daemon) == [PUBLIC, OPENED]


def test_the_policy_decides():
    policies = {"host": "name: host\nnetwork: {mode: host}\n", "net": "name: net\nnetwork: {mode: bridge}\n", "none": "name: none\n"}
    with daemons() as (_, start):
        daemon = start(policies=policies)
        assert daemon.execute("1", policy="none", network="bridge").status == 403
        assert ask(daemon, "1", policy="net", network="bridge")["isolation"]["network"] == "bridge"
        assert ask(daemon, "1", policy="net", network="none")["isolation"]["network"] == "none"
        assert daemon.execute("1", policy="net", network="host").status == 403
        answer = daemon.execute("1", network="host")
        assert answer.status == 503 and "allowlist" in answer.body.decode(), answer
