# SPDX-License-Identifier: Apache-2.0
"""Network host (NET-1, NET-6, ID-7): a box has the network of the host only if a setting and a policy name it, and nothing
else of the host. A second engine makes these boxes. The host is a network namespace of the test's own where its state
matters."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading

import pytest
from support import host, oci
from support.daemon import BUILD, Daemon, is_sanitized
from support.foreign_daemon import SubidDaemon
from support.gateway import Gateway
from support.ports import Port
from support.sessions import V1, Session
from support.websocket import Refused

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not host.is_root(), reason="needs root: it looks into namespaces"),
    pytest.mark.skipif(host.landlock_abi() < 6, reason="needs Landlock of Linux 6.12"),
]

NAMESPACES = ("user", "pid", "mnt", "ipc", "uts")
POLICIES = {
    "open": "name: open\nnetwork: {mode: host}\n",
    "closed": "name: closed\n",
    "layered": "name: layered\nnetwork: {mode: host}\nisolation: {require: [net]}\n",
    "standard": "name: standard\nnetwork: {mode: host}\nisolation: {min: standard}\n",
}
ON = {"MILLIBOX_HOST_NETWORK_ENABLED": "true"}


@contextlib.contextmanager
def running(kind=Daemon, env=None, **more):
    """A daemon with all POLICIES; `open` is its default."""
    daemon = kind(env={"MILLIBOX_POLICY_DEFAULT": "open", "MILLIBOX_POLICY_SELECTABLE": ",".join(POLICIES), **(env or {})}, **more)
    folder = daemon.home / "policies"
    folder.mkdir(mode=0o755)
    for name, text in POLICIES.items():
        (folder / f"{name}.yaml").write_text(text)
    daemon.env["MILLIBOX_POLICY_DIR"] = str(folder)
    try:
        daemon.start()
        yield daemon
        assert daemon.stop() == 0, daemon.log()
    finally:
        daemon.remove()


@pytest.fixture(scope="module")
def daemon():
    with running(env={**ON, "MILLIBOX_HOST_NETWORK_RESOLVERS": "127.0.0.53,2001:db8::53"}, tcp=True) as made:
        yield made


@pytest.fixture
def client(daemon):
    with daemon.client() as made:
        yield made


@pytest.fixture(scope="module")
def server():
    """Says hello on the host's loopback. Its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=greet, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]


def greet(listener):
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"hello")


def reach(port):
    return f"""
import socket
try:
    with socket.create_connection(("127.0.0.1", {port}), 20) as s:
        print(s.recv(100).decode())
except OSError as e:
    print(type(e).__name__)
"""


@contextlib.contextmanager
def session_of(client, **fields):
    session = Session(client, mode="persistent", **fields)
    try:
        yield session
    finally:
        session.delete()


def run(client, code, **fields):
    answer = client.post(f"{V1}/execute", {"language": "python", "code": code, "receipt": "plain", **fields})
    assert answer.status == 200, answer
    return answer.json


def unconfined(code, *before):
    """The same code as root on the host: the control of a probe."""
    return subprocess.run([*before, sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


# Who gets it.


def test_it_reaches_the_loopback_of_the_host(client, server):
    result = run(client, reach(server))
    assert result["stdout"] == "hello\n", result
    receipt = result["isolation"]
    assert (receipt["network"], receipt["mode"], receipt["missing"]) == ("host", "strict", ["net"]), receipt
    assert "net" not in receipt["layers"] and {"user", "pid", "mnt", "seccomp", "landlock", "caps"} <= set(receipt["layers"])
    assert (receipt["start"], receipt["pooled"]) == ("cold", False)
    control = run(client, reach(server), network="none")
    assert control["stdout"] == "ConnectionRefusedError\n" and control["isolation"]["missing"] == [], control


def test_both_a_setting_and_a_policy_must_name_it(client):
    for fields in ({"policy": "closed", "network": "host"}, {"policy": "layered"}, {"policy": "standard"}):
        answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", **fields})
        assert answer.status == 403 and "host" in answer.json["error_detail"], (fields, answer.json)
    assert run(client, "1", policy="closed")["isolation"]["network"] == "none"
    with running() as off, off.client() as other:
        answer = other.post(f"{V1}/execute", {"language": "python", "code": "1"})
        assert answer.status == 503 and "host_network.enabled" in answer.json["error_detail"], answer.json
        assert run(other, "1", network="none")["exit_code"] == 0
        assert off.host_engine_pid is None


def test_less_that_was_requested_is_not_extended(client):
    """Bridge is another system's word for a network; where there is none, it is not that of the host."""
    asked = {"image": "python:3.11", "network_mode": "bridge"}
    answer = client.post("/api/v1/sandboxes", asked)
    assert answer.status == 503 and "bridge.enabled" in answer.json["error_detail"], answer.json
    control = client.post("/api/v1/sandboxes", {**asked, "network_mode": "host"})
    assert control.status == 201 and control.json["config"]["network_mode"] == "host", control
    assert client.request("DELETE", f"/api/v1/sandboxes/{control.json['id']}").status == 204


def test_a_restart_does_not_extend_it(server):
    """What a session requested holds for its life: the next daemon decides again, from the policy and its row."""
    with running(env=ON) as daemon:
        with daemon.client() as client:
            less = [Session(client, mode=mode, network=network)
                    for mode in ("persistent", "ephemeral") for network in ("none", "allowlist")]
            networks = [session.run("x = 41")["isolation"]["network"] for session in less]
            assert networks == ["none", "allowlist"] * 2
            most = Session(client, mode="persistent")
            most.run("x = 41")
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            for session in (*less, most):
                session.client = client
            results = [session.run(reach(server)) for session in less]
            assert [result["isolation"]["network"] for result in results] == networks, results
            assert "hello\n" not in [result["stdout"] for result in results]
            assert most.run(reach(server))["stdout"] == "hello\n", "control"
            assert [session.run("print(x + 1)")["stdout"] for session in less[:2]] == ["42\n"] * 2


def test_its_name_servers_are_those_of_the_setting(client):
    lines = run(client, "print(open('/etc/resolv.conf').read())")["stdout"].split("\n")
    assert lines[:2] == ["nameserver 127.0.0.53", "nameserver 2001:db8::53"], lines
    assert run(client, "print(open('/etc/resolv.conf').read())", network="none")["stdout"].strip() == ""


def test_a_wrong_name_server_is_refused_at_the_start():
    daemon = Daemon(env={**ON, "MILLIBOX_HOST_NETWORK_RESOLVERS": "ns.example.com"})
    try:
        daemon.start(ready=False).process.wait(20 * host.PATIENCE)
        assert "host_network.resolvers: 'ns.example.com' is not an address" in daemon.log()
    finally:
        daemon.remove()


def test_audit_and_log_name_it():
    with running(env=ON) as daemon, daemon.client() as client:
        assert "network host is enabled" in daemon.log()
        run(client, "1")

        def objects():
            events = [json.loads(line) for line in (daemon.home / "state" / "audit.log").read_text().splitlines()]
            return [e["object"] for e in events if e.get("action") == "daemon.host_network"]

        assert host.wait_until(objects, 10, "a record, which a thread writes") == ["enabled"]


def test_engine_knows_it():
    def steps(*options):
        plan = subprocess.run([BUILD / "millibox-engine", "--plan", *options], capture_output=True, text=True, check=True).stdout
        return [line.split("\t")[1] for line in plan.splitlines()]

    assert set(steps()) - set(steps("--with-host-network")) == {"net"}
    assert set(steps("--with-host-network")) - set(steps()) == {"resolver"}


# What it cannot do with it.

ABSTRACT = """
import socket
def attempt(what, kind, name):
    with socket.socket(socket.AF_UNIX, kind) as s:
        try:
            what(s, name)
            print("reached")
        except OSError as e:
            print(e.errno)
attempt(lambda s, name: s.connect(name), socket.SOCK_STREAM, "\\0{stream}")
attempt(lambda s, name: s.connect(name), socket.SOCK_DGRAM, "\\0{datagram}")
attempt(lambda s, name: s.sendto(b"x", name), socket.SOCK_DGRAM, "\\0{datagram}")
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
try:
    a.sendto(b"x", "\\0{datagram}")
    print("reached")
except OSError as e:
    print(e.errno)
"""


def test_abstract_sockets_of_the_host_are_closed(client):
    names = {"stream": f"mbx-stream-{os.getpid()}", "datagram": f"mbx-datagram-{os.getpid()}"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram:
        stream.bind("\0" + names["stream"])
        stream.listen(8)
        datagram.bind("\0" + names["datagram"])
        code = ABSTRACT.format(**names)
        assert unconfined(code).split() == ["reached"] * 4, "control"
        for result in (run(client, code), run(client, f"cat > p.py <<'END'\n{code}\nEND\npython3 p.py", language="shell")):
            assert result["stdout"].split() == ["1"] * 4, result  # EPERM
        with session_of(client) as session:
            assert session.run(code)["stdout"].split() == ["1"] * 4


ADMIN = """
import errno, fcntl, os, socket, struct
def attempt(name, what):
    try:
        what()
        print(name, "done")
    except OSError as e:
        print(name, errno.errorcode[e.errno])
def set_up():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        link = struct.pack("BxHiII", 0, 0, 1, 1, 1)  # lo up
        s.send(struct.pack("IHHII", 16 + len(link), 16, 5, 1, 0) + link)
        result = -struct.unpack("i", s.recv(4096)[16:20])[0]
        if result:
            raise OSError(result, "")
def ioctl():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sH22x", b"lo", 1))  # SIOCSIFFLAGS
def write():
    with open("/proc/sys/net/ipv4/ip_default_ttl", "r+") as f:
        f.write("64")
def bind():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 7))
def device():
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 7)
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close())
attempt("netfilter", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).close())
attempt("netlink", set_up)
attempt("ioctl", ioctl)
attempt("sysctl", write)
attempt("port", bind)
attempt("mark", device)
"""


def test_it_changes_nothing_of_the_network(client):
    control = dict(line.split(" ", 1) for line in unconfined(ADMIN, "unshare", "--net").splitlines())
    assert set(control.values()) == {"done"}, control
    done = dict(line.split(" ", 1) for line in run(client, ADMIN)["stdout"].splitlines())
    assert done.keys() == control.keys() and "done" not in done.values(), done


def test_with_its_ids_it_is_unknown_to_the_api(daemon, client):
    """Without keys the daemon serves root and its own user on TCP. A box is neither."""
    address, port = daemon.tcp_address()
    code = f"""
import urllib.error, urllib.request
try:
    print(urllib.request.urlopen("http://{address}:{port}/api/v1/sessions", timeout=20).status)
except urllib.error.HTTPError as e:
    print(e.code)
"""
    assert unconfined(code) == "200\n", "control"
    assert run(client, code)["stdout"] in ("401\n", "403\n")


def refusal(daemon, session, port):
    with pytest.raises(Refused) as refused:
        Port(daemon.socket, session.id, port)
    return refused.value.status


def test_clients_reach_no_port_through_it(daemon, client, server):
    """They would be ports of the host."""
    with session_of(client) as session, session_of(client, network="none") as control:
        for one in (session, control):
            one.run("1")
        listing = client.get(f"{session.path}/ports")
        assert listing.status == 403 and "network host" in listing.json["error_detail"], listing
        assert client.get(f"{control.path}/ports").status == 200
        assert refusal(daemon, session, server) == 403
        assert refusal(daemon, control, server) == 404, "control: nothing listens there"


def test_tools_and_reports_work(client):
    """Unix sockets with a path are the box's own, and lead where they lead in other boxes."""
    with session_of(client) as session:
        assert session.run("6 * 7")["result"] == 42
    policies = {"tools": 'network: {mode: host}\nmcp: {servers: ["*"]}'}
    with Gateway({"toy": "toy"}, policies=policies, more="host_network: {enabled: true}\n") as gateway:
        with gateway.daemon.client() as other, session_of(other, mcp=["toy"]) as session:
            result = session.run("from millibox_tools import toy\ntoy.echo(text='hi')")
            assert "hi" in result["result"] and result["isolation"]["network"] == "host", result


# The second engine.


def test_the_engine_is_confined_like_the_first(daemon, client):
    second, first = daemon.host_engine_pid, daemon.engine_pid
    assert second and first and second != first
    own = {name: os.readlink(f"/proc/self/ns/{name}") for name in (*NAMESPACES, "net")}
    ends = {pid: {name: os.readlink(f"/proc/{pid}/ns/{name}") for name in own} for pid in (first, second)}
    assert ends[second]["net"] == own["net"] != ends[first]["net"]
    for name in NAMESPACES:
        assert len({own[name], ends[first][name], ends[second][name]}) == 3, name
    states = {pid: dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
              for pid in (first, second)}
    for key in ("CapEff", "CapPrm", "CapBnd", "NoNewPrivs", "Seccomp"):
        assert states[first][key] == states[second][key], key
    uids = {pid: int(states[pid]["Uid"].split()[0]) for pid in states}
    assert min(uids.values()) >= host.UID_BASE and uids[first] != uids[second], uids
    maps = {pid: pathlib.Path(f"/proc/{pid}/uid_map").read_text().split() for pid in states}
    ranges = {pid: {(int(m[i]), int(m[i]) + int(m[i + 1])) for i in range(1, len(m), 3)} for pid, m in maps.items()}
    assert all(b <= c or d <= a for a, b in ranges[first] for c, d in ranges[second]), ranges


def test_each_engine_makes_one_kind(daemon, client):
    """Boxes of the first keep their own network while the second is there."""
    found = {}
    for network in ("none", "host"):
        engine = daemon.host_engine_pid if network == "host" else daemon.engine_pid
        host.wait_until(lambda pid=engine: not programs(pid), 20, "boxes of earlier tests are gone")
        with session_of(client, network=network) as session:
            session.run("1")
            [found[network]] = {os.readlink(f"/proc/{pid}/ns/net") for pid in programs(engine)}
    assert found["host"] == os.readlink("/proc/self/ns/net") != found["none"]


def programs(engine):
    return [pid for pid in host.descendants(engine) if host.comm(pid) == "python3"]


def test_nothing_is_left_of_its_boxes(daemon, client):
    for _ in range(3):
        run(client, "import os, time\nif os.fork() == 0:\n    time.sleep(1000)")
    engine = daemon.host_engine_pid
    host.wait_until(lambda: not host.children(engine), 20, lambda: f"children gone: {host.children(engine)}")


def test_sessions_survive_the_daemon_but_not_the_setting(server):
    with running(env=ON) as daemon:
        with daemon.client() as client:
            session = Session(client, mode="persistent")
            session.run("x = 41")
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            session.client = client
            assert session.run("print(x + 1)")["stdout"] == "42\n"
            assert session.run(reach(server))["stdout"] == "hello\n"
        engine = daemon.host_engine_pid
        daemon.kill()
        daemon.env["MILLIBOX_HOST_NETWORK_ENABLED"] = "false"
        daemon.start()
        assert not host.is_alive(engine) and "do not allow network host any more" in daemon.log()
        with daemon.client() as client:
            answer = client.post(f"{session.path}/execute", {"code": "1", "wait": True})
            assert answer.status != 200 or answer.json["session_reset"], answer


@contextlib.contextmanager
def holding_the_id(uid):
    """Other daemons, until one has the id that a killed daemon had."""
    with contextlib.ExitStack() as others:
        for _ in range(8):
            other = others.enter_context(running())
            if os.stat(f"/proc/{other.pid}").st_uid == uid:
                break
        yield os.stat(f"/proc/{other.pid}").st_uid == uid


def test_sessions_survive_a_daemon_with_another_id(server):
    """The first engine has no box to keep, so its ids are free when its daemon is killed."""
    with running(env=ON) as daemon:
        with daemon.client() as client:
            session = Session(client, mode="persistent")
            session.run("x = 41")
        uid = os.stat(f"/proc/{daemon.pid}").st_uid
        daemon.kill()
        with holding_the_id(uid) as is_held:
            if not is_held:
                pytest.skip("another engine of this host has the ids")
            daemon.start()
            with daemon.client() as client:
                session.client = client
                assert session.run("print(x + 1)")["stdout"] == "42\n"
                assert session.run(reach(server))["stdout"] == "hello\n"
                data = oci.Image([oci.busybox_layer()]).bytes()
                client.request("POST", f"{V1}/templates/import?id=img", body=data, headers={"Content-Type": "application/x-tar"})
                answers = [client.post(f"{V1}/execute", {"language": "shell", "code": "echo 1", "template_id": "img", "network": network})
                           for network in ("none", "host")]
                assert [a.status for a in answers] == [200, 503], answers


def test_when_the_second_engine_is_killed_the_daemon_ends():
    """As with the first: its supervisor starts it anew."""
    with running(env=ON) as daemon:
        os.kill(daemon.host_engine_pid, signal.SIGKILL)
        daemon.process.wait(20 * host.PATIENCE)
        assert daemon.process.returncode != 0
        daemon.start()
        with daemon.client() as client:
            assert run(client, "1")["isolation"]["network"] == "host"


@pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries")
def test_a_box_on_an_image(daemon, client, server):
    data = oci.Image([oci.busybox_layer() + [oci.folder("srv/"), oci.entry("srv/file", b"image")]]).bytes()
    made = client.request("POST", f"{V1}/templates/import?id=himg", body=data, headers={"Content-Type": "application/x-tar"})
    assert made.status == 201, made
    code = f"cat /srv/file; echo changed > /srv/file; cat /srv/file; nc 127.0.0.1 {server} </dev/null"
    for network, end in (("none", ""), ("host", "hello")):
        answer = client.post(f"{V1}/execute", {"language": "shell", "code": code, "template_id": "himg", "network": network})
        assert answer.status == 200 and answer.json["stdout"] == f"imagechanged\n{end}", (network, answer.json)


# Other users.


@pytest.mark.skipif(is_sanitized(), reason="a sanitized program needs libraries beside it")
def test_with_subordinate_ids(server):
    with running(SubidDaemon, env={**ON, "MILLIBOX_ISOLATION": "best-effort"}) as daemon, daemon.client() as client:
        result = run(client, reach(server))
        assert result["stdout"] == "hello\n" and "net" in result["isolation"]["missing"], result
        assert run(client, reach(server), network="none")["stdout"] == "ConnectionRefusedError\n"


@pytest.mark.skipif(is_sanitized(), reason="a sanitized program needs libraries beside it")
def test_not_with_the_id_of_the_user():
    """For services that ask the kernel who connects it would be the user."""

    class SingleDaemon(SubidDaemon):
        def __init__(self, **more):
            super().__init__(**more)
            for name in ("subuid", "subgid"):
                (self.etc / name).write_text("")

    daemon = SingleDaemon(env={**ON, "MILLIBOX_ISOLATION": "best-effort"})
    try:
        daemon.start(ready=False).process.wait(30 * host.PATIENCE)
        assert "network host needs root or subordinate ids" in daemon.log(), daemon.log()
    finally:
        daemon.remove()
