# SPDX-License-Identifier: Apache-2.0
"""A box that floods its proxy harms itself only; limits hold; the proxy may die, and it is confined (NET-2, NET-4)."""

import contextlib
import json
import os
import pathlib
import signal
import socket

import pytest
from support import host
from support.client import Client
from support.daemon import is_sanitized
from support.egress import OPEN, TALK, Network, code_of, connect, get, status_of
from support.sessions import Session

pytestmark = pytest.mark.phases("system")
#: What depends on how the daemon makes boxes and starts the proxy.
every_phase = pytest.mark.phases("system", "user", "subid")

RULES = {"net": [f"{OPEN}/32:PORT", "*.test:PORT", "TCP *.raw:PORT"]}
MIB = 1 << 20


@contextlib.contextmanager
def network(**settings):
    with Network(RULES, settings) as n:
        n.resolver.script.update({"open.test": [[OPEN]], "host.raw": [[OPEN]], "silent.test": None})
        yield n


@pytest.fixture(scope="module")
def net():
    with network() as n:
        yield n


@contextlib.contextmanager
def box(net):
    """A session that may be left in the middle of an execution."""
    with net.daemon.client() as client:
        session = Session(client, mode="persistent", language="python")
        session.run(TALK)
        try:
            yield session
        finally:
            with net.daemon.client() as other:
                other.request("DELETE", session.path)


def passes(net):
    """Whether a neighbour's request reaches the server."""
    return net.talk([get(f"http://open.test:{net.port}/")]).answers[0][0].endswith("reached")


# Floods. Each begins with a box that holds what it can, and prints how much that is.

HOLD = """
import resource, select
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
def hold(count, data=b'', seconds=0):
    # With seconds: every one sends its data, and so waits for its connection.
    for _ in range(count):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(('127.0.0.1', 3128))
        held.append(s)
        if seconds:
            select.select([], [s], [], seconds)
        try:
            s.send(data)
        except OSError:
            pass
"""


def flood(net, session, code, seconds=30, least=0):
    """Run code that prints "held", and go on when it has, and the proxy has @least descriptors more. Return: growth of the
    proxy's descriptors and KiB."""
    proxy = net.proxy_pid()
    # Its daemon's and the listener of this box: those of earlier boxes are being closed.
    host.wait_until(lambda: sockets(proxy) in (None, 2), 20, lambda: f"two sockets: {sockets(proxy)}")
    before = descriptors(proxy), host.rss_kib(proxy)
    execution = session.start(code + "\nprint('held', flush=True)\ntime.sleep(600)", timeout=600)
    session.wait_for_output(execution, "held", seconds)
    if least and host.is_root():
        host.wait_until(lambda: descriptors(proxy) - before[0] >= least, 20, lambda: f"{least}: {descriptors(proxy) - before[0]}")
    assert passes(net)
    grown = 0 if is_sanitized() else host.rss_kib(proxy) - before[1]
    return descriptors(proxy) - before[0], grown


def descriptors(pid):
    """0: an ordinary user does not see those of a process that is not dumpable."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        return 0


def links(pid):
    """What its descriptors are."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def sockets(pid):
    """How many it has; None: an ordinary user does not see them."""
    try:
        return sum(link.startswith("socket") for link in links(pid))
    except PermissionError:
        return None


#: Connections of a box, and some descriptors of boxes that are being closed.
MOST = 64 + 8


@pytest.mark.parametrize("data", [b"", b"GET http://open.test/ HTTP/1.1\r\nX: " + b"a" * 20000, b"\5", b"\5\1\0\5\1\0\3\xff"],
                         ids=["nothing", "http", "greeting", "socks"])  # fmt: skip
def test_half_open_connections(net, data):
    """Connections without a request, or with a part of one: a box gets as many as its limit says; the others wait outside
    of the proxy."""
    with box(net) as session:
        session.run(HOLD)
        more, kib = flood(net, session, f"hold(900, {data!r})", least=64)
        assert more <= MOST, more
        assert kib < 16 << 10, kib
    assert passes(net)


@every_phase
def test_ten_thousand_connections(net):
    """Twelve processes hold 10,000 at the same time, as far as the kernel lets them."""
    with box(net) as session:
        session.run(HOLD)
        more, kib = flood(net, session, "for _ in range(12):\n    if os.fork() == 0:\n        hold(834)\n        time.sleep(600)\nhold(1)", 60)
        assert more <= MOST and kib < 16 << 10, (more, kib)
    assert passes(net)


def test_ten_thousand_requests(net):
    """One after the other, each refused: the same box still gets through, and nothing stays with the proxy."""
    proxy = net.proxy_pid()
    before = descriptors(proxy)
    with box(net) as session:
        request = get("http://nobody.example/").hex()
        code = f"done = sum('403' in talk([{request!r}])[0] for _ in range(10000))\nprint(done)"
        result = session.result(session.start(code, timeout=600), 60)
        assert result["stdout"] == "10000\n", result
        assert {d["what"]: d["count"] for d in result["denials"]} == {"nobody.example:80": 10000}
        result = session.run(f"print(talk([{get(f'http://open.test:{net.port}/').hex()!r}])[0][-7:])")
        assert result["stdout"] == "reached\n"
    host.wait_until(lambda: descriptors(proxy) <= before, 20, "descriptors of the proxy given back")
    net.server.take()


def test_denials_of_a_stopped_daemon_are_counted(net):
    """A daemon that does not receive fills its socket: the proxy keeps the count, and later ones are not lost either."""
    with box(net) as session:
        request = get("http://nobody.example/").hex()
        code = f"print('ready', flush=True)\nprint(sum('403' in talk([{request!r}])[0] for _ in range(5000)))"
        execution = session.start(code, timeout=600)
        session.wait_for_output(execution, "ready", 30)
        proxy = net.proxy_pid()
        os.kill(net.daemon.pid, signal.SIGSTOP)
        try:
            before = host.turns(proxy)
            # More denials than the socket holds: each wakes the proxy at least once, and the program waits for each.
            host.wait_until(lambda: host.turns(proxy) - before >= 2000, 20, lambda: f"denials: {host.turns(proxy) - before}")
        finally:
            os.kill(net.daemon.pid, signal.SIGCONT)
        result = session.result(execution, 60)
        assert result["stdout"] == "ready\n5000\n", result
        assert {d["what"]: d["count"] for d in result["denials"]} == {"nobody.example:80": 5000}


def test_slow_readers(net):
    """Answers that are not read: the proxy holds a part of each and no more."""
    with box(net) as session:
        session.run(HOLD)
        data = get(f"http://open.test:{net.port}/endless")
        _, kib = flood(net, session, f"hold(64, {data!r}, 20)\nwhile len(select.select(held, [], [], 20)[0]) < 64: time.sleep(0.05)")
        assert kib < 40 << 10, kib
    assert passes(net)
    net.server.take()


def test_slow_writers(net):
    """Requests of one byte at a time, and a server that reads nothing."""
    with box(net) as session:
        session.run(HOLD)
        data = connect(f"host.raw:{net.port}")
        fill = "for _ in range(200):\n    for s in held:\n        try: s.send(bytes(65536))\n        except OSError: pass"
        _, kib = flood(net, session, f"hold(60, {data!r}, 20)\n{fill}")
        assert kib < 40 << 10, kib
    net.server.take()


def test_a_name_server_that_never_answers(net):
    """Requests for such a name fail with a reason; other names and other boxes do not wait for them."""
    with box(net) as session:
        request = get(f"http://silent.test:{net.port}/").hex()
        # Each asks again: on a busy host the first answers may come before the other requests are made.
        session.run(f"""
import threading
found, is_over = [], False
def ask():
    while not is_over:
        begin = time.monotonic()
        found.append([talk([{request!r}])[0], time.monotonic() - begin])
threads = [threading.Thread(target=ask) for _ in range(40)]
for thread in threads: thread.start()
""")
        assert passes(net)
        open_ = session.run(f"print(talk([{get(f'http://open.test:{net.port}/').hex()!r}])[0][-7:])")
        assert open_["stdout"] == "reached\n"
        session.result(session.start("is_over = True\nfor thread in threads: thread.join()", timeout=600), 60)
        answers = json.loads(session.run("print(json.dumps(found))")["stdout"])
        assert len(answers) >= 40 and all(seconds > 1 for _, seconds in answers), "control: they waited"
        assert all(status_of(answer) == 502 and "did not answer" in answer for answer, _ in answers), answers[0]
    net.server.take()


# Limits.

def tunnels(net, session, count):
    """Ask for tunnels, and keep them."""
    session.run(HOLD + f"hold({count}, {connect(f'host.raw:{net.port}')!r}, 20)")


@every_phase
def test_the_limits_on_connections():
    """Of a box and of its tenant; what is more waits, and is served when another ends."""
    with network(max_connections=4, max_connections_per_tenant=6) as net, box(net) as first, box(net) as second:

        def opened(count):
            host.wait_until(lambda: net.server.opened >= count, 20, lambda: f"{count}: {net.server.opened}")
            host.await_rest(net.proxy_pid(), "the proxy")
            assert net.server.opened == count

        tunnels(net, first, 6)
        opened(4)
        tunnels(net, second, 4)
        opened(6)  # of the tenant
        second.run("held.pop(0).close()")
        opened(7)
        # A connection of the one box was what the other box waited for. While the first box ends, its own two that
        # waited may be served too: its program's sockets close one after the other.
        assert first.delete().status in (200, 204)
        answered = second.run("while len(select.select(held, [], [], 1)[0]) < 3: time.sleep(0.05)", timeout=25)
        assert answered["status"] == "success", answered
        host.wait_until(lambda: net.server.opened >= 8, 20, "the eighth connection")
        assert net.server.opened <= 10


def test_a_box_without_a_connection_gets_one_when_its_tenant_has_room():
    with network(max_connections=4, max_connections_per_tenant=4) as net, box(net) as first, box(net) as second:
        tunnels(net, first, 4)
        host.wait_until(lambda: net.server.opened == 4, 20, "four connections")
        tunnels(net, second, 1)
        first.run("for s in held: s.close()")
        host.wait_until(lambda: net.server.opened == 5, 20, "the fifth")


def test_the_limit_on_bytes():
    """Counts both directions, is not forgotten with the proxy that counted, and is of one box."""
    with network(max_bytes=256 << 10) as net, box(net) as session:
        request = get(f"http://open.test:{net.port}/size?{MIB}")
        result = session.run(code_of([[request]]))
        received = json.loads(result["stdout"])[0][0]
        assert len(received) <= 256 << 10 < len(received) + (64 << 10), len(received)
        assert [(d["what"], d["rule"]) for d in result["denials"]] == [(f"open.test:{net.port}", "egress.max_bytes")]
        for _ in range(2):
            (answers,) = json.loads(session.run(code_of([[request]]))["stdout"])
            assert status_of(answers[0]) == 403 and "X-Millibox-Denied: bytes" in answers[0]
            kill_proxy(net)
        assert passes(net), "another box"


def test_the_limit_on_the_rate():
    """At no time a box has got more than the rate since it began, and one second's worth ahead."""
    rate = 256 << 10
    with network(max_rate=rate) as net, net.daemon.client() as client:
        code = TALK + f"""
s = socket.create_connection(('127.0.0.1', 3128))
begin, got = time.monotonic(), 0
s.sendall(bytes.fromhex({get(f"http://open.test:{net.port}/size?{2 * rate}").hex()!r}))
most = 0
while (data := s.recv(65536)):
    got += len(data)
    most = max(most, got / ({rate} * (1 + time.monotonic() - begin)))
print(json.dumps([got, most]))
"""
        got, most = json.loads(client.python(code)["stdout"])
        assert got > 2 * rate and most <= 1.01, (got, most)


# The proxy's end.

def kill_proxy(net):
    """Return once another serves."""
    old = net.proxy_pid()
    os.kill(old, signal.SIGKILL)
    host.wait_until(lambda: net.proxy_pid() not in (None, old), 20, "another proxy")


@every_phase
def test_sessions_outlive_the_proxy(net):
    with box(net) as session:
        request = code_of([[get(f"http://open.test:{net.port}/")]])
        denied = code_of([[get("http://nobody.example/")]])
        session.run(HOLD + f"x = 7\nhold(1, {connect(f'host.raw:{net.port}')!r}, 20)")
        assert session.run("held[0].setblocking(True); print(held[0].recv(100)[:12].decode())")["stdout"] == "HTTP/1.1 200\n"
        os.kill(net.proxy_pid(), signal.SIGKILL)
        # At once: the request waits for the next proxy.
        assert json.loads(session.run(request)["stdout"])[0][0].endswith("reached")
        assert [d["what"] for d in session.run(denied)["denials"]] == ["nobody.example:80"]
        assert session.run("x")["result"] == 7
        gone = "try:\n    print(held[0].recv(10))\nexcept ConnectionResetError:\n    print(b'')"
        assert session.run(gone)["stdout"] == "b''\n", "a connection ends with its proxy"
    assert passes(net)
    net.server.take()


@every_phase
def test_a_session_keeps_its_network_over_the_end_of_the_daemon():
    with network() as net:
        session = Session(Client(net.daemon.socket), mode="persistent")
        request = "x = 7\n" + code_of([[get(f"http://open.test:{net.port}/")], [get("http://nobody.example/")]])

        def check():
            result = session.run(request)
            (allowed,), (denied,) = json.loads(result["stdout"])
            assert allowed.endswith("reached") and status_of(denied) == 403
            assert [d["what"] for d in result["denials"]] == ["nobody.example:80"]

        check()
        old = net.proxy_pid()
        net.daemon.kill()
        host.wait_until(lambda: not host.is_alive(old), 20, "the proxy has ended with its daemon")
        net.daemon.start()
        session.client = Client(net.daemon.socket)
        check()
        assert session.run("x")["result"] == 7
        session.delete()
        assert passes(net)
        net.daemon.settle()


# Its confinement. What its filters refuse: tests/unit/egress/test_egress_confine.c.

def status(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


@every_phase
def test_the_proxy_has_no_privilege(net):
    proxy = net.proxy_pid()
    starter = host.proc_stat(proxy)[0]
    for pid in (proxy, starter):
        now = status(pid)
        assert now["NoNewPrivs"] == "1"
        assert [int(now[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [0] * 4, now
        assert "0" not in now["Uid"].split() + now["Gid"].split() and now["Groups"].strip() in ("", now["Gid"].split()[0])
    assert status(proxy)["Seccomp"] == "2"
    if host.is_root():
        assert int(status(os.getpid())["CapEff"], 16) and status(os.getpid())["Uid"].split()[0] == "0", "control"


def test_the_proxy_has_only_sockets(net):
    """No file, no directory, and no socket of another box than those that are open."""
    proxy = net.proxy_pid()
    # Without a box it has its daemon's; those of earlier tests are being closed.
    host.wait_until(lambda: sockets(proxy) == 1, 20, lambda: f"one socket: {links(proxy)}")
    found = links(proxy)
    assert {link.split(":")[0] for link in found} <= {"socket", "anon_inode", "pipe", "/dev/null", str(net.daemon.log_path)}, found


@every_phase
def test_the_proxy_hides_from_its_own_user(net):
    """Not dumpable: no other process of the daemon's user can trace it or read its memory."""
    owner = os.stat(f"/proc/{net.proxy_pid()}/mem").st_uid
    assert owner == 0, "as for every process that is not dumpable"
    assert os.stat(f"/proc/{os.getpid()}/mem").st_uid == os.geteuid(), "control"


@every_phase
def test_nothing_of_a_box_stays_with_the_proxy(net):
    proxy = net.proxy_pid()
    before = descriptors(proxy)
    for _ in range(5):
        assert passes(net)
    net.daemon.settle()
    host.wait_until(lambda: descriptors(proxy) <= before, 20, "descriptors given back")
    with socket.socket() as control:
        assert control.connect_ex((OPEN, 3128)) != 0, "the listener of a box is not on the host"
