# SPDX-License-Identifier: Apache-2.0
"""millibox-egress without a daemon: this test gives the orders. Rules change under open connections, orders that make no
sense are refused, and idle connections cost little."""

import contextlib
import os
import socket
import struct

import pytest
from support import host
from support.daemon import is_sanitized
from support.egress import OPEN, Resolver, Server, connect, get, read_all
from support.proxy import AUTHORITY, CLOSE, OPEN_BOX, RULES, Proxy

pytestmark = pytest.mark.phases("system", "user")

ADDRESS, NO_HOST, NO_TLS, MEMORY = 8, 3, 9, 18
MIB = 1 << 20


@pytest.fixture
def place():
    """A proxy, and a server that it may reach."""
    with contextlib.ExitStack() as stack:
        resolver, server = Resolver(), Server()
        stack.callback(server.close)
        stack.callback(resolver.close)
        resolver.script.update({"a.test": [[OPEN]], "b.test": [[OPEN]]})
        proxy = Proxy(resolver)
        stack.callback(proxy.close)
        yield proxy, server


def ask(address, data):
    with socket.create_connection(address, 20) as sock:
        sock.sendall(data)
        return read_all(sock)


def tunnel(address, target):
    sock = socket.create_connection(address, 20)
    sock.sendall(connect(target))
    assert sock.recv(100).startswith(b"HTTP/1.1 200"), target
    return sock


def test_an_event_has_the_size_that_this_test_expects(place):
    proxy, _ = place
    address = proxy.open(1, [])
    assert ask(address, get("http://a.test/")).startswith(b"HTTP/1.1 403")
    assert proxy.denial() == (NO_HOST, "a.test", "")


@pytest.mark.parametrize("left, reason", [(["TCP b.test:PORT", "127.0.0.1/32:PORT"], NO_HOST), (["a.test:PORT", "TCP b.test:PORT",
                         "127.0.0.1/32:PORT"], NO_TLS), (["TCP a.test:PORT", "TCP b.test:PORT"], ADDRESS)])  # fmt: skip
def test_connections_that_new_rules_refuse_end(place, left, reason):
    """The host is gone from the rules, may be reached with TLS only, or its address is open no more."""
    proxy, server = place
    rules = ["TCP a.test:PORT", "TCP b.test:PORT", "127.0.0.1/32:PORT"]
    with_port = [rule.replace("PORT", str(server.port)) for rule in rules]
    address, other = proxy.open(1, with_port), proxy.open(2, with_port)
    changed, neighbour = tunnel(address, f"a.test:{server.port}"), tunnel(other, f"a.test:{server.port}")
    kept = tunnel(address, f"b.test:{server.port}")
    proxy.order(RULES, 1, [rule.replace("PORT", str(server.port)) for rule in left])
    assert read_all(changed) == b""
    assert proxy.denial()[0] == reason
    for sock in (neighbour, *([kept] if reason != ADDRESS else [])):
        sock.sendall(b"\0")
        assert read_all(sock) == b"reached"
    for sock in (changed, neighbour, kept):
        sock.close()
    server.take()


def test_a_box_that_is_closed_is_served_no_more(place):
    proxy, server = place
    rules = [f"TCP a.test:{server.port}", f"127.0.0.1/32:{server.port}"]
    address, other = proxy.open(1, rules), proxy.open(2, rules)
    held = tunnel(address, f"a.test:{server.port}")
    proxy.order(CLOSE, 1)
    assert read_all(held) == b""
    held.close()
    tunnel(other, f"a.test:{server.port}").close()
    proxy.order(CLOSE, 1)  # again: no harm
    tunnel(other, f"a.test:{server.port}").close()
    server.take()


def test_orders_that_make_no_sense_are_refused(place):
    proxy, server = place
    address = proxy.open(1, [f"{OPEN}:{server.port}"])
    before = proxy.pid()
    with socket.create_server((OPEN, 0)) as listener:
        proxy.order(OPEN_BOX, 2, ["a.test"])  # no socket
        proxy.order(OPEN_BOX, 1, ["a.test"], listener=listener)  # is open
        proxy.order(OPEN_BOX, 0, ["a.test"], listener=listener)
        proxy.order(OPEN_BOX, 3, ["a.test"], listener=listener, count=5)
        proxy.order(OPEN_BOX, 3, ["a.test"], listener=listener, count=2**32 - 1)
        proxy.order(OPEN_BOX, 3, ["a.test"], listener=listener, cut=-1)
        proxy.order(OPEN_BOX, 3, ["not a rule!"], listener=listener)
        proxy.order(OPEN_BOX, 3, ["a.test"], listener=listener, secrets=1)
        proxy.order(OPEN_BOX, 3, ["a.test"], listener=listener, secrets=2**32 - 1)
        proxy.order(OPEN_BOX, 3, ["a.test"], listener=listener, more=b"more")
        proxy.order(AUTHORITY, 0, more=b"\xff" * 8)
        proxy.order(AUTHORITY, 0, more=bytes(8))
        proxy.order(AUTHORITY, 0)
        proxy.order(RULES, 9, ["a.test"])
        proxy.order(RULES, 1, ["not a rule!"])  # the old ones stay
        proxy.order(99, 1)
        proxy.order(OPEN_BOX, 1, cut=3)
    assert ask(address, get(f"http://{OPEN}:{server.port}/")).endswith(b"reached")
    assert proxy.pid() == before
    server.take()


def test_a_proxy_that_dies_is_replaced_and_ends_with_its_daemon(place):
    proxy, server = place
    proxy.open(1, [])
    before = proxy.pid()
    os.kill(before, 9)
    proxy.take()
    address = proxy.open(1, [f"{OPEN}:{server.port}"])
    assert ask(address, get(f"http://{OPEN}:{server.port}/")).endswith(b"reached")
    assert proxy.pid() != before
    server.take()


def test_a_thousand_idle_connections_cost_little(place):
    proxy, server = place
    address = proxy.open(1, [f"{OPEN}:{server.port}"], connections=2000)
    tunnel(address, f"{OPEN}:{server.port}").close()
    pid = proxy.pid()
    before = host.rss_kib(pid)
    held = [tunnel(address, f"{OPEN}:{server.port}") for _ in range(1000)]
    assert is_sanitized() or host.rss_kib(pid) - before <= 20 << 10, (before, host.rss_kib(pid))
    for sock in held:
        sock.close()
    server.take()


@pytest.mark.parametrize("rule, passes", [("a.test:PORT", True), ("GET a.test:PORT", False), ("a.test:PORT/a/*", False)])
def test_a_header_does_not_change_what_a_rule_has_seen(place, rule, passes):
    """A server may take a header for the method or the path; where rules look at them, it gets none."""
    proxy, server = place
    address = proxy.open(1, [rule.replace("PORT", str(server.port)), f"{OPEN}/32:{server.port}"])
    headers = b"X-HTTP-Method-Override: DELETE\r\nx_original_url: /admin\r\nX-Other: 1\r\n"
    request = get(f"http://a.test:{server.port}/a/b").replace(b"\r\n\r\n", b"\r\n" + headers + b"\r\n")
    assert ask(address, request).endswith(b"reached")
    ((_, seen),) = server.take()
    assert b"X-Other: 1" in seen, "control"
    assert (b"DELETE" in seen) == (b"/admin" in seen) == passes, seen


@pytest.fixture
def small():
    """A proxy with 32 MiB and a server that it may reach."""
    with contextlib.ExitStack() as stack:
        resolver, server = Resolver(), Server()
        stack.callback(server.close)
        stack.callback(resolver.close)
        resolver.script.update({"a.test": [[OPEN]]})
        proxy = Proxy(resolver, "--memory", str(32 * MIB))
        stack.callback(proxy.close)
        yield proxy, server


def secrets(port):
    """Eight secrets for a.test, as an order has them."""
    texts = ["name", "Authorization", "Bearer {value}", "placeholder", "v" * 4096, f"http://a.test:{port}"]
    return 8 * (struct.pack("=II", 0, 1) + b"".join(text.encode() + b"\0" for text in texts))


def hold(address, data, count):
    """Connections that send @data and read nothing."""
    held = []
    for _ in range(count):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(address)
        sock.sendall(data)
        held.append(sock)
    return held


def hold_answers(address, server, count):
    """Answers without an end: the proxy holds up to 128 KiB of each."""
    return hold(address, get(f"http://a.test:{server.port}/endless"), count)


def test_tenants_within_their_limits_do_not_end_the_proxy(small):
    """Three of them hold more answers to requests with secrets than fit into its memory: who holds little is served as before."""
    proxy, server = small
    rules = [f"a.test:{server.port}", f"{OPEN}/32:{server.port}"]
    before = proxy.pid()
    address = proxy.open(9, rules, tenant=9)
    assert ask(address, get(f"http://{OPEN}:{server.port}/")).endswith(b"reached"), "control"
    held = []
    for tenant in (1, 2, 3):
        opened = proxy.open(tenant, rules, connections=1000, tenant=tenant, secrets=8, more=secrets(server.port))
        held += hold_answers(opened, server, 150)
        host.await_rest(before, "the proxy")
        assert ask(address, get(f"http://{OPEN}:{server.port}/")).endswith(b"reached"), tenant
    assert proxy.pid() == before
    assert server.opened > 30, "control: there were such requests"
    for sock in held:
        sock.close()
    server.take()


def test_who_holds_most_waits_and_goes_on_when_there_is_room(small):
    proxy, server = small
    rules = [f"a.test:{server.port}", f"{OPEN}/32:{server.port}"]
    first, second = proxy.open(1, rules, connections=1000, tenant=1), proxy.open(2, rules, connections=1000, tenant=2)
    held = hold_answers(first, server, 300)
    host.await_rest(proxy.pid(), "the proxy")
    opened = server.opened
    waits = socket.create_connection(first, 20)
    waits.sendall(get(f"http://a.test:{server.port}/"))
    assert ask(second, get(f"http://a.test:{server.port}/")).endswith(b"reached")
    host.await_rest(proxy.pid(), "the proxy")
    assert server.opened == opened + 1, "that of the other tenant"
    for sock in held:
        sock.close()
    assert read_all(waits).endswith(b"reached")
    server.take()
