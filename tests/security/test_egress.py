# SPDX-License-Identifier: Apache-2.0
"""NET-1 to NET-6: a box with network allowlist reaches what its rules name, by no other way and under no other name."""

import contextlib
import json
import os
import socket
import ssl

import pytest
from support import host
from support.egress import (A, CLOSED, ECH, GREETING, OPEN, TALK, Network, connect, extension, get, hello, read_all,
                            run_outside, send_outside, server_names, socks_address, socks_name, status_of)  # fmt: skip

pytestmark = pytest.mark.phases("system")
#: What depends on how the daemon makes boxes and starts the proxy.
every_phase = pytest.mark.phases("system", "user", "subid")

RULES = {
    "net": [f"{OPEN}/32:PORT", "*.test:PORT", "GET *.plain:PORT/open/*", "TCP *.raw:PORT"],
    "other": ["other.test:PORT"],
}


@pytest.fixture(scope="module")
def net():
    with Network(RULES) as n:
        for name in ("open.test", "host.plain", "host.raw"):
            n.resolver.script[name] = [[OPEN]]
        yield n


def tunnel(name, first, port):
    return [connect(f"{name}:{port}"), first]


def ways(target, port):
    """A target by each protocol of the proxy."""
    bare = target.strip("[]")
    first = hello(server_names(bare.encode()))
    return [[get(f"http://{target}:{port}/")], tunnel(target, first, port), [GREETING, socks_name(bare, port), first]]


def refused(net, talks, *rules, status=403):
    """Each of @talks is refused by one of @rules, and nothing reaches the server. An HTTP answer has @status."""
    opened = net.server.opened
    got = net.talk(*talks)
    if rules == ("network.tls",):  # each has connected; else one that the server accepts late is counted for the next test
        host.wait_until(lambda: net.server.opened >= opened + len(talks), 20, "every connection accepted")
    for talk, answers in zip(talks, got.answers, strict=True):
        assert "reached" not in answers[-1], (talk, answers)
        if answers[-1].startswith("HTTP/"):
            assert status_of(answers[-1]) == status, (talk, answers)
    seen = net.server.take()
    assert [data for _, data in seen if data] == []
    assert seen == [] or rules == ("network.tls",), "a tunnel is open before its first bytes are there"
    assert set(got.denials.values()) == set(rules), got.denials
    return got


def reached(net, talks, address=OPEN):
    """Each of @talks gets to the server. Return: what the server got."""
    got = net.talk(*talks)
    assert [answers[-1][-7:] for answers in got.answers] == ["reached"] * len(talks), got.answers
    assert got.denials == {}
    seen = net.server.take()
    assert [to for to, _ in seen] == [address] * len(talks)
    return [data for _, data in seen]


@every_phase
def test_every_way_leads_to_what_is_allowed(net):
    """The control of most tests below."""
    reached(net, [*ways("open.test", net.port), [get(f"http://{OPEN}:{net.port}/")],
                  [GREETING, socks_address(OPEN, net.port), hello()],
                  [get(f"http://host.plain:{net.port}/open/a")], tunnel("host.raw", b"\0not TLS", net.port)])  # fmt: skip


@every_phase
def test_what_no_rule_names_is_refused(net):
    """Another host, port, method and path; a tunnel where rules look into requests; plain requests where they do not."""
    got = refused(net, [*ways("open.example", net.port), *ways("open.test", net.port + 1), *ways("test", net.port),
                        *ways("xopen.testx", net.port), *ways("open.test.example", net.port),
                        [get(f"http://host.plain:{net.port}/shut")], [get(f"http://host.plain:{net.port}/open/../shut")],
                        [get(f"http://host.plain:{net.port}/open/%2e%2e/shut")],
                        [get(f"http://host.plain:{net.port}/open/a", method="POST")], tunnel("host.plain", hello(), net.port),
                        [get(f"http://host.raw:{net.port}/")]], "network.allow")  # fmt: skip
    assert got.denials[f"open.example:{net.port}"] == got.denials[f"open.test:{net.port + 1}"] == "network.allow"
    assert all(name.rpartition(".")[2] != "example" for name, _ in net.resolver.asked), "names are resolved once allowed"


# NET-1: there is no way but the proxy.

DIRECT = """
import errno, json, socket
def attempt(family, kind, address, protocol=0, data=b'\\0'):
    try:
        with socket.socket(getattr(socket, family), getattr(socket, kind), protocol) as s:
            s.settimeout(20)
            s.connect(address) if address else None
            s.send(data) if address else None
            return 'reached' if not address or s.recv(100) else 'closed'
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
"""


@contextlib.contextmanager
def host_socket(name):
    """An abstract socket of the host that answers."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        listener.settimeout(0.05)
        yield listener


@every_phase
def test_no_connection_passes_the_proxy_by(net):
    tries = [f"attempt('AF_INET', 'SOCK_STREAM', ({OPEN!r}, {net.port}))"]
    tries += [f"attempt('AF_INET{'6' if ':' in a else ''}', 'SOCK_STREAM', ({a!r}, {net.port}))" for a in CLOSED]
    code = f"{DIRECT}\nprint(json.dumps([{', '.join(tries)}]))"
    with net.daemon.client() as client:
        assert json.loads(client.python(code)["stdout"]) == ["ECONNREFUSED"] * 3
    assert net.server.take() == []
    assert run_outside(code) == ["reached"] * 3
    assert len(net.server.take()) == 3


@every_phase
def test_no_name_server_answers_a_box(net):
    """NET-5: names are resolved outside; a box cannot even ask."""
    query = b"\0\1\1\0\0\1\0\0\0\0\0\0\4open\4test\0\0\1\0\1"
    ask = f"attempt('AF_INET', 'SOCK_DGRAM', ({OPEN!r}, {net.resolver.port}), 0, bytes.fromhex({query.hex()!r}))"
    lookup = "[line for line in open('/etc/resolv.conf') if 'nameserver' in line] if __import__('os').path.exists('/etc/resolv.conf') else []"
    code = f"{DIRECT}\nprint(json.dumps([{ask}, {lookup}]))"
    with net.daemon.client() as client:
        assert json.loads(client.python(code)["stdout"]) == ["ECONNREFUSED", []]
    assert run_outside(code)[0] == "reached"


@every_phase
def test_sockets_below_tcp_do_not_exist(net):
    kinds = [("AF_INET", "SOCK_RAW", 1), ("AF_INET6", "SOCK_RAW", 58), ("AF_PACKET", "SOCK_RAW", 768), ("AF_PACKET", "SOCK_DGRAM", 768)]
    code = f"{DIRECT}\nprint(json.dumps([{', '.join(f'attempt({f!r}, {k!r}, None, {p})' for f, k, p in kinds)}]))"
    with net.daemon.client() as client:
        inside = json.loads(client.python(code)["stdout"])
    assert set(inside) <= {"EPERM", "EACCES", "EAFNOSUPPORT"} and len(inside) == 4, inside
    if host.is_root():
        assert run_outside(code) == ["reached"] * 4


@every_phase
def test_an_abstract_socket_of_the_host_is_out_of_reach(net):
    """NET-6."""
    name = f"\0egress-{os.getpid()}"
    code = f"{DIRECT}\nprint(json.dumps(attempt('AF_UNIX', 'SOCK_STREAM', {name!r}, 0, b'')))"
    with host_socket(name) as listener:
        with net.daemon.client() as client:
            assert json.loads(client.python(code)["stdout"]) == "ECONNREFUSED"
        with pytest.raises(TimeoutError):
            listener.accept()
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(name)
            listener.accept()[0].close()


# NET-3: the target.

#: Forms of 127.0.0.2 and ::1 that libc and other clients understand, and of the address that a rule opens.
NUMBERS = ["2130706434", "0x7f000002", "0177.0.0.2", "0x7f.0.0.2", "127.2", "127.0.2", "017700000002", "[::ffff:127.0.0.2]",
           "[::ffff:7f00:2]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"]  # fmt: skip
LITERALS = [*(f"[{a}]" if ":" in a else a for a in CLOSED), "[0:0:0:0:0:0:0:1]", "[::0001]", "169.254.169.254", "10.0.0.1"]


@pytest.mark.parametrize("form", NUMBERS)
def test_a_number_is_no_host(net, form):
    refused(net, ways(form, net.port), "network.request", status=400)
    with socket.create_connection((form.strip("[]"), net.port), 20) as control:
        control.sendall(b"\0")
        assert read_all(control) == b"reached"
    assert len(net.server.take()) == 1


def test_an_address_that_no_rule_has_is_refused(net):
    talks = [talk for text in LITERALS for talk in ways(text, net.port)[:2]]
    talks += [[GREETING, socks_address(text.strip("[]"), net.port), hello()] for text in LITERALS]
    refused(net, talks, "network.allow")
    for address in CLOSED:
        assert b"reached" in send_outside(b"\0", (address, net.port))
    net.server.take()


def test_a_mapped_address_in_socks_is_refused(net):
    packed = bytes(10) + b"\xff\xff\x7f\0\0\1"
    refused(net, [[GREETING, b"\5\1\0\4" + packed + net.port.to_bytes(2, "big"), hello()]], "network.request")


TRICKS = ["open.test@127.0.0.2", "user:pass@open.test", "127.0.0.2%2f@open.test", "127.0.0.2\\@open.test", "127.0.0.2#.open.test",
          "open.test%00.example", "open.test%2eexample", "open..test", ".open.test", "-a.test", "open.test..", "open\u3002test",
          "\u24de\u24df\u24d4\u24dd.test", "[open.test]", "[::1%25lo]", "a" * 64 + ".test"]  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS)
def test_a_host_that_parsers_read_in_two_ways_is_refused(net, trick):
    talks = [[f"GET http://{trick}:{net.port}/ HTTP/1.1\r\nHost: {host}:{net.port}\r\n\r\n".encode()] for host in ("open.test", trick)]
    talks += [[f"CONNECT {trick}:{net.port} HTTP/1.1\r\n\r\n".encode(), hello(server_names(b"open.test"))],
              [GREETING, socks_name(trick, net.port), hello(server_names(b"open.test"))]]  # fmt: skip
    refused(net, talks, "network.request", status=400)


def test_case_and_one_dot_at_the_end_make_no_other_host(net):
    seen = reached(net, [[get(f"http://OPEN.test.:{net.port}/")], tunnel("Open.TEST.", hello(server_names(b"oPen.test")), net.port)])
    assert any(f"Host: open.test:{net.port}\r\n".encode() in data for data in seen)


# NET-3: what a name leads to.

NOT_PUBLIC = ["127.0.0.2", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "169.254.0.1", "100.100.100.200",
              "0.0.0.0", "192.0.0.8", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
              "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001::1", "fd00:ec2::254", "fd00::1", "fe80::1",
              "fec0::1", "ff02::1"]  # fmt: skip


@every_phase
def test_a_name_of_an_address_that_is_not_public_is_refused(net):
    names = {f"n{i}.test": address for i, address in enumerate(NOT_PUBLIC)}
    net.resolver.script.update({name: [[address]] for name, address in names.items()})
    got = refused(net, [[get(f"http://{name}:{net.port}/")] for name in names], "network.address")
    for address, answers in zip(NOT_PUBLIC, got.answers, strict=True):
        assert "X-Millibox-Denied: address" in answers[0], (address, answers)
    assert len(got.denials) >= len(NOT_PUBLIC) - 4
    net.resolver.script.update({name: [[OPEN]] for name in names})
    reached(net, [[get(f"http://{name}:{net.port}/")] for name in names])


def test_a_tunnel_to_a_private_name_is_refused(net):
    net.resolver.script["inside.test"] = [["10.0.0.1", "127.0.0.2"]]
    refused(net, ways("inside.test", net.port)[1:], "network.address")


def test_of_several_addresses_only_the_allowed_is_tried(net):
    net.resolver.script["mixed.test"] = [["127.0.0.2", "169.254.169.254", "::1", OPEN]]
    reached(net, ways("mixed.test", net.port))


def test_an_answer_that_changes_leads_nowhere_else(net):
    """DNS rebinding: the name passes the check with one answer, and the next is another."""
    net.resolver.script["rebind.test"] = [[OPEN], ["127.0.0.2"]]
    request = get(f"http://rebind.test:{net.port}/")
    got = net.talk([request], [request], [request])
    assert [status_of(answers[0]) for answers in got.answers] == [200, 403, 403]
    assert [address for address, _ in net.server.take()] == [OPEN]
    assert net.resolver.asked.count(("rebind.test", A)) == 3, "one connection, one lookup"
    # Control: a client that checks one answer and connects to the next.
    net.resolver.script["naive.test"] = [[OPEN], ["127.0.0.2"]]
    assert net.resolver.resolve("naive.test") == [OPEN]
    assert b"reached" in send_outside(b"\0", (net.resolver.resolve("naive.test")[0], net.port))
    assert [address for address, _ in net.server.take()] == ["127.0.0.2"]


def test_a_name_with_a_thousand_addresses(net):
    many = [f"127.1.{i // 256}.{i % 256}" for i in range(999)]
    net.resolver.script["last.test"] = [[*many, OPEN]]
    net.resolver.script["first.test"] = [[OPEN, *many]]
    refused(net, [[get(f"http://last.test:{net.port}/")]], "network.address")
    assert len(net.resolver.resolve("first.test")) == 1000
    reached(net, [[get(f"http://first.test:{net.port}/")]])


REDIRECT = """
import json, urllib.error, urllib.request
def follow(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return [answer.status, answer.read().decode()]
    except urllib.error.HTTPError as e:
        return [e.code, e.read().decode()]
"""


def test_a_redirect_is_a_new_request(net):
    begin = f"http://open.test:{net.port}/redirect?"
    for target in ("http://169.254.169.254/latest/meta-data/", f"http://127.0.0.2:{net.port}/", "http://open.test:1/"):
        with net.daemon.client() as client:
            result = client.python(f"{REDIRECT}\nprint(json.dumps(follow({begin + target!r})))")
        assert json.loads(result["stdout"])[0] == 403, result
        assert [denial["rule"] for denial in result["denials"]] == ["network.allow"]
        assert len(net.server.take()) == 1
    with net.daemon.client() as client:
        result = client.python(f"{REDIRECT}\nprint(json.dumps(follow({begin + f'http://open.test:{net.port}/next'!r})))")
    assert json.loads(result["stdout"]) == [200, "reached"]
    assert len(net.server.take()) == 2
    control = f"http://{OPEN}:{net.port}/redirect?http://127.0.0.2:{net.port}/"
    assert run_outside(f"{REDIRECT}\nprint(json.dumps(follow({control!r})))") == [200, "reached"]
    assert [address for address, _ in net.server.take()] == [OPEN, "127.0.0.2"]


# NET-4: tunnels.

def openssl_hello(name):
    """The first bytes of a client of OpenSSL."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


RIGHT = server_names(b"open.test")
HELLOS = {
    "another name": hello(server_names(b"other.test")),
    "another name, by openssl": openssl_hello("other.test"),
    "no name": hello(),
    "no name, other extensions": hello(extension(43, b"\2\3\4")),
    "empty name": hello(server_names(b"")),
    "an address": hello(server_names(b"127.0.0.2")),
    "a dot at the end": hello(server_names(b"open.test.")),
    "two names": hello(server_names(b"open.test", b"other.test")),
    "two extensions": hello(RIGHT, server_names(b"other.test")),
    "a NUL in the name": hello(server_names(b"open.test\0.example")),
    "ech": hello(RIGHT, extension(ECH, b"\0" * 40)),
    "ech of a draft": hello(RIGHT, extension(0xFE0A, b"\0" * 40)),
    "esni": hello(RIGHT, extension(0xFFCE, b"\0" * 40)),
    "another name in records of 1 byte": hello(server_names(b"other.test"), record=1),
    "http": b"GET / HTTP/1.1\r\nHost: 127.0.0.2\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "ssl 2": b"\x80\x2e\x01\x03\x01" + bytes(60),
    "an alert first": b"\x15\x03\x01\0\2\1\0" + hello(RIGHT),
    "two messages": hello(RIGHT)[:3] + b"\0\4" + b"\1\0\0\0" + hello(RIGHT),
    "too long": hello(RIGHT, *[extension(21, bytes(8000))] * 3),
}


@pytest.mark.parametrize("name", HELLOS)
def test_a_tunnel_without_the_right_server_name_ends(net, name):
    got = refused(net, [tunnel("open.test", HELLOS[name], net.port), [GREETING, socks_name("open.test", net.port), HELLOS[name]],
                        [connect(f"open.test:{net.port}") + HELLOS[name]]], "network.tls", status=200)  # fmt: skip
    assert set(got.denials) == {f"open.test:{net.port}"}


def test_a_tunnel_with_the_right_server_name_opens(net):
    """The control; the first bytes may come with the request, and in pieces."""
    right = [hello(RIGHT), hello(RIGHT, record=1), hello(RIGHT, extension(43, b"\2\3\4")), openssl_hello("open.test")]
    seen = reached(net, [*(tunnel("open.test", first, net.port) for first in right), [connect(f"open.test:{net.port}") + right[0]]])
    assert sorted(seen) == sorted([*right, right[0]]), "the server gets what the client sent"


# NET-4: requests.

def at(net, path, *headers, body=b"", version="1.1", method="POST"):
    return get(f"http://open.test:{net.port}{path}", *headers, version=version, method=method) + body


SECOND = b"GET http://open.test:PORT/smuggled HTTP/1.1\r\nHost: open.test:PORT\r\n\r\n"
AMBIGUOUS = {
    "two lengths": (["Content-Length: 0", "Content-Length: %d"], SECOND),
    "a list of lengths": (["Content-Length: 0, %d"], SECOND),
    "length and coding": (["Content-Length: %d", "Transfer-Encoding: chunked"], b"0\r\n\r\n" + SECOND),
    "coding and length": (["Transfer-Encoding: chunked", "Content-Length: 5"], b"0\r\n\r\n" + SECOND),
    "two codings": (["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], b"0\r\n\r\n" + SECOND),
    "a list of codings": (["Transfer-Encoding: identity, chunked"], b"0\r\n\r\n" + SECOND),
    "an odd coding": (["Transfer-Encoding: xchunked"], b"0\r\n\r\n" + SECOND),
    "a space before the colon": (["Transfer-Encoding : chunked"], b"0\r\n\r\n" + SECOND),
    "a folded coding": (["X: a", " Transfer-Encoding: chunked"], b"0\r\n\r\n" + SECOND),
    "a length with a sign": (["Content-Length: +0"], SECOND),
    "a length in hex": (["Content-Length: 0x0"], SECOND),
    "a length that overflows": (["Content-Length: 18446744073709551616"], SECOND),
    "a length that Connection drops": (["Connection: Content-Length", "Content-Length: %d"], SECOND),
    "a bare LF": (["X: a\nTransfer-Encoding: chunked"], b"0\r\n\r\n" + SECOND),
    "a bare CR": (["X: a\rTransfer-Encoding: chunked"], b"0\r\n\r\n" + SECOND),
    "a NUL": (["X: a\0b"], SECOND),
    "an upgrade": (["Connection: Upgrade", "Upgrade: websocket"], SECOND),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_a_request_of_unclear_length_is_refused(net, case):
    headers, body = AMBIGUOUS[case]
    body = body.replace(b"PORT", str(net.port).encode())
    data = at(net, "/first", *(line.replace("%d", str(len(body))) for line in headers), body=body)
    refused(net, [[data]], "network.request", status=400)
    # Control: without a proxy the server gets both.
    send_outside(data, (OPEN, net.port))
    assert b"/smuggled" in net.server.take()[0][1]


def test_a_second_request_does_not_pass(net):
    """Behind a request without body, with one of a known length, and with chunks; and with an open end."""
    second = SECOND.replace(b"PORT", str(net.port).encode())
    first = [at(net, "/first", method="GET"), at(net, "/first", "Content-Length: 4", body=b"body"),
             at(net, "/first", "Transfer-Encoding: chunked", body=b"4\r\nbody\r\n0\r\n\r\n"),
             at(net, "/first", "Connection: keep-alive", method="GET"), at(net, "/first", "Content-Length: 2", version="1.0", body=b"ab")]  # fmt: skip
    net.talk(*([data + second] for data in first), *([data, second] for data in first))
    seen = [data for _, data in net.server.take()]
    assert len(seen) == 2 * len(first) and all(b"/first" in data for data in seen)
    assert not any(b"smuggled" in data or b"keep-alive" in data for data in seen), seen
    assert all(b"Connection: close\r\n" in data for data in seen)
    send_outside(first[0] + second, (OPEN, net.port))
    assert b"/smuggled" in net.server.take()[0][1]


def test_chunks_that_are_malformed_end_the_connection(net):
    second = SECOND.replace(b"PORT", str(net.port).encode())
    chunks = [b"4;a=b\r\nbody\r\n0\r\n\r\n", b"0x4\r\nbody\r\n0\r\n\r\n", b"-1\r\n", b"4\nbody\n0\n\n", b"4\r\nbodyX0\r\n\r\n",
              b"0\r\nTrailer: x\r\n\r\n", b"ffffffffffffffffff\r\n", b" 4\r\nbody\r\n0\r\n\r\n"]  # fmt: skip
    opened = net.server.opened
    got = net.talk(*([at(net, "/first", "Transfer-Encoding: chunked", body=body + second)] for body in chunks))
    assert not any("reached" in answers[0] for answers in got.answers), got.answers
    host.wait_until(lambda: net.server.opened == opened + len(chunks), 20, "the server accepts every connection")
    assert not any(b"smuggled" in data for _, data in net.server.take())
    assert set(got.denials.values()) == {"network.request"}


REQUESTS = {
    "origin form": "GET / HTTP/1.1\r\nHost: 127.0.0.2:PORT\r\n\r\n",
    "asterisk form": "OPTIONS * HTTP/1.1\r\nHost: open.test:PORT\r\n\r\n",
    "absolute form for another host": "GET http://open.test:PORT/ HTTP/1.1\r\nHost: 127.0.0.2:PORT\r\n\r\n",
    "another port in Host": "GET http://open.test:PORT/ HTTP/1.1\r\nHost: open.test:1\r\n\r\n",
    "two Hosts": "GET http://open.test:PORT/ HTTP/1.1\r\nHost: open.test:PORT\r\nHost: 127.0.0.2:PORT\r\n\r\n",
    "a list in Host": "GET http://open.test:PORT/ HTTP/1.1\r\nHost: open.test:PORT, 127.0.0.2\r\n\r\n",
    "no Host": "GET http://open.test:PORT/ HTTP/1.1\r\n\r\n",
    "a Host behind a space": "GET http://open.test:PORT/ HTTP/1.1\r\n Host: 127.0.0.2\r\nHost: open.test:PORT\r\n\r\n",
    "CONNECT for another Host": "CONNECT open.test:PORT HTTP/1.1\r\nHost: 127.0.0.2:PORT\r\n\r\n",
    "CONNECT with a body": "CONNECT open.test:PORT HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /",
    "CONNECT without a port": "CONNECT open.test HTTP/1.1\r\n\r\n",
    "CONNECT with a path": "CONNECT open.test:PORT/ HTTP/1.1\r\n\r\n",
    "another scheme": "GET https://open.test:PORT/ HTTP/1.1\r\nHost: open.test:PORT\r\n\r\n",
    "a file": "GET file:///etc/passwd HTTP/1.1\r\nHost: open.test:PORT\r\n\r\n",
    "CRLF in the path": "GET http://open.test:PORT/a\r\nHost: 127.0.0.2\r\nX: HTTP/1.1\r\nHost: open.test:PORT\r\n\r\n",
    "LF in the path": "GET http://open.test:PORT/a\nX: b HTTP/1.1\r\nHost: open.test:PORT\r\n\r\n",
    "a space in the path": "GET http://open.test:PORT/a b HTTP/1.1\r\nHost: open.test:PORT\r\n\r\n",
    "a fragment": "GET http://open.test:PORT/#@127.0.0.2/ HTTP/1.1\r\nHost: open.test:PORT\r\n\r\n",
    "HTTP 2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP 0.9": "GET http://open.test:PORT/\r\n\r\n",
    "another version": "GET http://open.test:PORT/ HTTP/1.2\r\nHost: open.test:PORT\r\n\r\n",
    "a method in lower case": "get http://open.test:PORT/ HTTP/1.1\r\nHost: open.test:PORT\r\n\r\n",
    "TRACE": "TRACE http://open.test:PORT/ HTTP/1.1\r\nHost: open.test:PORT\r\n\r\n",
    "a line too many": "\r\nGET http://open.test:PORT/ HTTP/1.1\r\nHost: open.test:PORT\r\n\r\n",
    "an endless header": "GET http://open.test:PORT/ HTTP/1.1\r\nHost: open.test:PORT\r\nX: " + "a" * 33000 + "\r\n\r\n",
    "a thousand headers": "GET http://open.test:PORT/ HTTP/1.1\r\nHost: open.test:PORT\r\n" + "a: b\r\n" * 1000 + "\r\n",
    "SOCKS 4": "\x04\x01\x00\x50\x7f\x00\x00\x02\x00",
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_that_is_not_strict_is_refused(net, case):
    refused(net, [[REQUESTS[case].replace("PORT", str(net.port)).encode("latin-1")]], "network.request", status=400)


def test_what_is_for_the_proxy_does_not_reach_the_server(net):
    data = at(net, "/first", "Proxy-Authorization: Basic c2VjcmV0", "Proxy-Connection: keep-alive", "Connection: X-Mine, close",
              "X-Mine: 1", "Keep-Alive: 5", "TE: trailers", "X-Kept: 2", method="GET")  # fmt: skip
    (seen,) = reached(net, [[data]])
    assert seen == f"GET /first HTTP/1.1\r\nHost: open.test:{net.port}\r\nConnection: close\r\nX-Kept: 2\r\n\r\n".encode()


# NET-2, NET-6: the proxy itself.

LOOK = """
import json, os
def read(path):
    try:
        return open(path).read()
    except OSError:
        return ''
found = {
    'processes': [p for p in os.listdir('/proc') if p.isdigit() and 'millibox-egress' in read(f'/proc/{p}/comm') + read(f'/proc/{p}/cmdline')],
    'listening': [line.split()[1] for line in read('/proc/self/net/tcp').splitlines()[1:] if line.split()[3] == '0A'],
    'unix': [line.split()[7] for line in read('/proc/self/net/unix').splitlines()[1:] if len(line.split()) > 7],
    'sockets': sum(os.readlink(f'/proc/self/fd/{fd}').startswith('socket:') for fd in os.listdir('/proc/self/fd') if os.path.lexists(f'/proc/self/fd/{fd}')),
}
print(json.dumps(found))
"""


@every_phase
def test_nothing_of_the_proxy_but_its_listener_is_in_a_box(net):
    with net.daemon.client() as client:
        inside = json.loads(client.python(LOOK)["stdout"])
        offline = json.loads(client.python(LOOK, policy="offline")["stdout"])
    assert inside == {**offline, "listening": ["0100007F:0C38"]}
    assert offline["processes"] == [] and offline["listening"] == [] and offline["unix"] == ["/run/millibox/report.sock"]
    outside = run_outside(LOOK)
    assert outside["processes"], "control"


def test_the_proxy_is_no_way_to_itself_or_the_daemon(net):
    """Its network is the host's: the listener of a box is not there, and no rule opens the host's own ports."""
    refused(net, [*ways(OPEN, 3128)[:2], [get(f"http://open.test:{net.resolver.port}/")]], "network.allow")


@every_phase
def test_a_listener_is_its_box(net):
    """Another box with other rules gets other answers at the same address, and a box without network none."""
    request = get(f"http://open.test:{net.port}/")
    other = net.talk([request], policy="other")
    assert status_of(other.answers[0][0]) == 403 and other.denials == {f"open.test:{net.port}": "network.allow"}
    assert net.talk([request], policy="offline").answers == [["!ConnectionRefusedError"]]
    forged = get(f"http://open.test:{net.port}/", "Proxy-Authorization: Basic bmV0OnNlY3JldA==", "X-Policy: net", "X-Forwarded-For: 127.0.0.1")
    assert status_of(net.talk([forged], policy="other").answers[0][0]) == 403, "what a box says about itself is not believed"
    assert net.server.take() == []
    reached(net, [[request]])


BOXES_AFTER = 40

LEAVE = """
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(bytes.fromhex(PART))
print(s.recv(100)[:15].decode())
if os.fork() == 0:
    time.sleep(60)
"""


@every_phase
def test_the_next_boxes_find_no_listener(net):
    """A box ends while its connection is open: its network namespace is not used again."""
    part = connect(f"host.raw:{net.port}").hex()
    with net.daemon.client() as client:
        result = client.python(TALK + LEAVE.replace("PART", repr(part)))
        assert result["stdout"].startswith("HTTP/1.1 200"), result
        for _ in range(BOXES_AFTER):
            assert json.loads(client.python(LOOK, policy="offline")["stdout"])["listening"] == []
    assert [data for _, data in net.server.take()] == [b""], "its connection has ended with it"
