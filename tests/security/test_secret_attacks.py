# SPDX-License-Identifier: Apache-2.0
"""Code that uses a secret tries everything to read it, and never sees it, while the host that it is for accepts it. Every probe has
a control that shows that it would find what is there, or that the secret was really sent."""

import contextlib
import json
import pathlib
import shutil
import subprocess

import pytest
from support import host
from support.daemon import BUILD
from support.sessions import Session
from support.vault import API, FETCH, OTHER, VALUE, Vault

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl"),
]

#: What the value begins with, in two parts: code that searches for it must not contain it.
PARTS = (VALUE[:7], VALUE[7:24])
NEEDLE = f"({PARTS[0]!r} + {PARTS[1]!r}).encode()"


@pytest.fixture(scope="module")
def vault():
    with Vault() as v:
        v.set("api")
        v.set("mark", [v.plain_url.replace(API, OTHER), f"{OTHER}:{v.secure_port}"], mode="placeholder", env="API_KEY")
        yield v


@pytest.fixture(autouse=True)
def no_requests_before(vault):
    for server in (vault.plain, vault.secure, vault.other):
        server.take()


@pytest.fixture
def client(vault):
    with vault.daemon.client() as client:
        yield client


def both(vault):
    return (vault.plain_url, vault.plain), (vault.secure_url, vault.secure)


def run(client, code, secrets=("api",), **fields):
    """What code prints as JSON; nothing of its result has the value."""
    result = client.python(f"{FETCH}\n{code}", secrets=list(secrets), timeout=60, **fields)
    assert VALUE not in json.dumps(result)
    assert result["exit_code"] == 0, result["stderr"]
    return json.loads(result["stdout"])


#: Talk bytes to the proxy, or through a tunnel with TLS to API. An answer ends with the connection.
RAW = """
import socket, ssl
def talk(data, tunnel=None, name=None, ca='/run/millibox/ca.pem'):
    try:
        s = socket.create_connection(('127.0.0.1', 3128), 20)
        if tunnel:
            s.sendall(f'CONNECT {tunnel} HTTP/1.1\\r\\nHost: {tunnel}\\r\\n\\r\\n'.encode())
            first = s.recv(4096)
            if b' 200 ' not in first:
                return first.decode('latin-1')
            s = ssl.create_default_context(cafile=ca).wrap_socket(s, server_hostname=name or tunnel.split(':')[0])
        s.sendall(data)
        answer = b''
        while part := s.recv(65536):
            answer += part
        return answer.decode('latin-1')
    except (OSError, ssl.SSLError) as e:
        return '!' + str(e)
"""


def raw(client, talks, **fields):
    """The answers to @talks: (bytes) to the proxy, or (bytes, tunnel[, name])."""
    items = [[talk[0].hex(), *talk[1:]] for talk in talks]
    code = f"{RAW}\nprint(json.dumps([talk(bytes.fromhex(t[0]), *t[1:]) for t in json.loads({json.dumps(items)!r})]))"
    answers = run(client, code, **fields)
    assert not any(VALUE in answer for answer in answers)
    return answers


def request(path="/a", *headers, name=API, port=None, method="GET", body=b""):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {name}:{port}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


# The control of all: the host gets it, from a program that does not have it.


def test_the_real_hosts_accept_it(vault, client):
    for url, server in both(vault):
        assert run(client, f"print(json.dumps(fetch({url + '/a'!r})[:2]))") == [200, "accepted"]
        assert server.keys() == [f"Bearer {VALUE}"]


# In the box.

SEARCH = """
import re
def memory(pid):
    found = []
    try:
        with open(f'/proc/{pid}/maps') as maps, open(f'/proc/{pid}/mem', 'rb', 0) as mem:
            for line in maps:
                begin, end = (int(x, 16) for x in line.split()[0].split('-'))
                if 'r' in line.split()[1] and end - begin < 1 << 28 and '[v' not in line:
                    try:
                        mem.seek(begin)
                        data = mem.read(end - begin)
                    except (OSError, ValueError, OverflowError):
                        continue
                    found += [pid] if needle + tail in data else []
    except OSError:
        pass
    return found
def files():
    found = []
    for root, folders, names in os.walk('/'):
        folders[:] = [f for f in folders if (root, f) not in {('/', 'sys'), ('/', 'usr'), ('/', 'lib'), ('/', 'lib64'), ('/', 'opt')}]
        for name in names:
            path = os.path.join(root, name)
            if path.endswith(('/mem', '/kmsg', '/pagemap', '/clear_refs', '/trace_pipe')) or not os.access(path, os.R_OK):
                continue
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                try:
                    data = os.read(fd, 1 << 22)
                finally:
                    os.close(fd)
            except OSError:
                continue
            found += [path] if needle + tail in data else []
    return found
"""


def test_neither_environment_nor_files_nor_memory_have_it(vault, client):
    """After a request with it. Control: the same search finds a value that the code puts there."""
    tail = VALUE[24:]
    code = (f"{SEARCH}\nneedle, tail = {NEEDLE}, {tail!r}.encode()\n"
            f"status = [fetch({vault.plain_url + '/echo'!r})[0], fetch({vault.secure_url + '/echo'!r})[0]]\n"
            "env = [k for k, v in os.environ.items() if (needle + tail).decode() in v]\n"
            "del_me = None\n"
            "first = [env, [p for p in files() if '/mem' not in p], status]\n"
            "seen = [pid for pid in os.listdir('/proc') if pid.isdigit() and pid != str(os.getpid()) and memory(pid)]\n"
            "open('/tmp/planted', 'wb').write(needle + tail)\n"
            "print(json.dumps([*first, seen, files(), memory('self')]))")  # fmt: skip
    env, found, status, seen, planted, own = run(client, code)
    assert (env, found, status, seen) == ([], [], [200, 200], [])
    assert "/tmp/planted" in planted and own == ["self"], "the control"
    assert len(vault.plain.keys()) == len(vault.secure.keys()) == 1


def test_the_authority_has_no_key_in_a_box(vault, client):
    code = ("text = open('/run/millibox/ca.pem').read()\n"
            "print(json.dumps([text.count('BEGIN CERTIFICATE') > 1, 'PRIVATE' in text, os.access('/run/millibox/ca.pem', os.W_OK),"
            " sorted(os.listdir('/run/millibox'))]))")  # fmt: skip
    several, private, writable, names = run(client, code)
    assert (several, private, writable) == (True, False, False)
    assert not any("key" in name for name in names)


def test_a_placeholder_is_all_that_a_variable_has(vault, client):
    [value] = run(client, "print(json.dumps([os.environ['API_KEY']]))", secrets=["mark"])
    assert value.startswith("mbx-") and value != VALUE


# Through the proxy.


def test_errors_of_the_proxy_do_not_show_it(vault, client):
    """Each of these is refused, or fails, after the request was read. Control: the last one is answered by the host."""
    inside, port = f"{API}:{vault.secure_port}", vault.secure_port
    url = vault.plain_url
    talks = [
        (b"GET %s/a HTTP/1.1\r\nHost: other\r\n\r\n" % url.encode(),),
        (b"GET %s/a HTTP/1.1\r\nHost: %s\r\nContent-Length: x\r\n\r\n" % (url.encode(), url[7:].encode()),),
        (b"GET %s/a HTTP/1.1\r\nHost: %s\r\nX: %s\r\n\r\n" % (url.encode(), url[7:].encode(), b"y" * 40000),),
        (b"TRACE %s/a HTTP/1.1\r\nHost: %s\r\n\r\n" % (url.encode(), url[7:].encode()),),
        (b"GET http://%s:1/a HTTP/1.1\r\nHost: %s:1\r\n\r\n" % (API.encode(), API.encode()),),
        (request("/a", "Content-Length: 5", "Content-Length: 6", port=port), inside),
        (request("/a", "X: " + "y" * 40000, port=port), inside),
        (request("/a", method="TRACE", port=port), inside),
        (request("/a", "Transfer-Encoding: chunked", port=port, method="POST", body=b"zz\r\n"), inside),
        (b"\x00\x01\x02", inside),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", inside),
        (request("/a", "Upgrade: websocket", "Connection: Upgrade", port=port), inside),
        (request("/a", port=port), inside),
    ]
    answers = raw(client, talks)
    assert all("accepted" not in answer for answer in answers[:-1]), answers
    assert answers[-1].endswith("accepted")
    assert vault.plain.keys() == [] and vault.secure.keys()[-1] == f"Bearer {VALUE}"


def test_a_redirect_does_not_carry_it(vault, client):
    """To a server of the code's, to another port of the host, and from TLS to plain HTTP."""
    targets = [f"http://{OTHER}:{vault.other_port}/x", f"http://{API}:{vault.other_port}/x"]
    for url, server in both(vault):
        for target in targets:
            assert run(client, f"print(json.dumps(fetch({f'{url}/redirect?{target}'!r})[:2]))") == [401, "refused"]
        assert server.keys() == [f"Bearer {VALUE}"] * 2, "the host that redirects has it"
    assert vault.other.keys() == [None] * 4


def test_an_unlisted_host_that_echoes_gets_nothing(vault, client):
    urls = [f"http://{OTHER}:{vault.other_port}/echo", f"http://{API}:{vault.other_port}/echo",
            f"http://{OTHER}:{vault.plain_port}/echo"]  # fmt: skip
    got = run(client, f"print(json.dumps([fetch(u, {{'Authorization': 'Bearer mine'}}) for u in {urls!r}]))")
    assert all("Bearer mine" in body for _, body, _ in got), "the control: these hosts echo"
    assert vault.other.keys() + vault.plain.keys() == ["Bearer mine"] * 3
    literal = f"127.0.0.1:{vault.plain_port}"
    [answer] = raw(client, [(f"GET http://{literal}/echo HTTP/1.1\r\nHost: {literal}\r\n\r\n".encode(),)])
    assert "Host" in answer and vault.plain.keys() == [None]


def test_a_listed_host_that_echoes_is_overwritten(vault, client):
    """In a body, in a header, and in two pieces. Control: the host has it, and what is around it arrives."""
    for url, server in both(vault):
        got = run(client, f"print(json.dumps([fetch({url!r} + path) for path in ('/echo', '/headers', '/chunks')]))")
        stars = "Bearer " + "*" * len(VALUE)
        assert stars in got[0][1] and got[1][2]["X-Echo"] == stars and stars in got[2][1]
        assert server.keys() == [f"Bearer {VALUE}"] * 3


def test_requests_cannot_be_split(vault, client):
    """A second request in the same connection would go where the code wants, as the proxy had judged the first."""
    inside, port = f"{API}:{vault.secure_port}", vault.secure_port
    second = request("/second", name=OTHER, port=vault.other_port)
    plain = f"GET {vault.plain_url}/first HTTP/1.1\r\nHost: {API}:{vault.plain_port}\r\n".encode()
    answers = raw(client, [
        (plain + b"\r\n" + second,),
        (plain + b"Content-Length: 0\r\n\r\n" + second,),
        (plain + b"X: y\r\n z: folded\r\n\r\n",),
        (plain + b"X: y\nInjected: z\r\n\r\n",),
        (plain + b"X: y\rInjected: z\r\n\r\n",),
        (request("/first", port=port) + request("/second", port=port), inside),
        (request("/first", "Content-Length: 3", method="POST", port=port, body=b"abc") + request("/second", port=port), inside),
        (request("/first", "X: y\n Injected: z", port=port), inside),
        (request("/first", name=OTHER, port=port), inside),
        (request(f"http://{OTHER}:{vault.other_port}/first", port=port), inside),
    ])  # fmt: skip
    paths = [path for server in (vault.plain, vault.secure, vault.other) for _, path, _, _ in server.take()]
    assert set(paths) == {"/first"} and len(paths) == 4, paths
    assert [a.count("HTTP/1.1 200") for a in answers] == [1, 1, 0, 0, 0, 1, 1, 0, 0, 0]


def test_a_placeholder_works_nowhere_else(vault, client):
    """In another header, the path, the body, an encoded header, or at another host it stays what it is. Control: in its own header
    it is the value."""
    url = vault.plain_url.replace(API, OTHER)
    code = ("key = os.environ['API_KEY']\nimport base64\n"
            f"url = {url!r}\n"
            "basic = base64.b64encode(b'u:' + key.encode()).decode()\n"
            "fetch(url + '/' + key, {'X-Other': key, 'Cookie': key}, key.encode())\n"
            "fetch(url + '/b', {'Authorization': 'Basic ' + basic})\n"
            f"fetch({vault.plain_url + '/c'!r}, {{'Authorization': key}})\n"
            "fetch(url + '/d', {'Authorization': 'Bearer ' + key})\nprint('[]')")  # fmt: skip
    run(client, code, secrets=["mark"])
    seen = vault.plain.take()
    assert [VALUE in json.dumps([path, headers, body.decode()]) for _, path, headers, body in seen] == [False, False, False, True]
    assert seen[-1][2]["Authorization"] == f"Bearer {VALUE}"
    # Without the secret it is just text.
    mark = client.get("/api/v1/secrets/mark").json["placeholder"]
    run(client, f"fetch({url + '/e'!r}, {{'Authorization': {mark!r}}})\nprint('[]')", secrets=[])
    assert vault.plain.keys() == [mark]


def test_tls_must_be_for_the_host_of_the_tunnel(vault, client):
    """Another server name is refused. A plain request to the port of TLS has no secret."""
    answers = raw(client, [(request(port=vault.secure_port), f"{API}:{vault.secure_port}", OTHER)])
    assert answers[0].startswith("!")
    run(client, f"print(json.dumps(fetch({f'http://{API}:{vault.secure_port}/a'!r})[0]))")
    assert vault.secure.keys() == []


def test_a_name_that_leads_elsewhere_gets_nothing(vault, client):
    """Should the name of the host lead to a server of the code's, its certificate gives it away."""
    url = f"https://{OTHER}:{vault.secure_port}/a"  # its certificate is for API
    code = f"print(json.dumps(fetch({url!r}, {{'Authorization': os.environ['API_KEY']}})[:2]))"
    status, text = run(client, code, secrets=["mark"])
    assert status == 502 and "cannot prove its name" in text
    assert vault.secure.keys() == []


# Outside of the box.


def test_records_and_processes_do_not_have_it(vault, client):
    """Results, sessions, the audit log; arguments and environments of our processes; what any user can read of them."""
    session = Session(client, mode="persistent", secrets=["api"])
    result = session.run(f"{FETCH}\nprint(fetch({vault.secure_url + '/echo'!r}))")
    shown = [client.get(f"/api/v1/executions/{result['execution_id']}"), client.get(session.path),
             client.get(f"/api/v1/executions/{result['execution_id']}/events?follow=false"), client.get("/api/v1/secrets"),
             client.post("/api/v1/policy/explain", {"language": "python", "secrets": ["api"]}), client.get("/metrics")]  # fmt: skip
    assert [answer.status for answer in shown] == [200] * len(shown)
    assert not any(VALUE.encode() in answer.body for answer in shown)
    log = pathlib.Path(client.get("/api/v1/audit").json["path"])
    assert VALUE not in log.read_text() and "secret.set" in log.read_text()
    pids = [vault.daemon.pid, *[p for child in host.children(vault.daemon.pid) for p in (child, *host.children(child))]]
    for pid in pids:
        for name in ("cmdline", "environ"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just gone
                assert VALUE.encode() not in pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    # Control: the records are where they are looked for.
    assert result["execution_id"].encode() in shown[0].body
    session.delete()


def test_processes_that_have_it_cannot_be_read_or_dumped(vault):
    """The daemon and the proxy: not dumpable, and without core files."""
    proxies = [p for child in host.children(vault.daemon.pid) if host.comm(child).startswith("millibox-egress")
               for p in host.children(child)]  # fmt: skip
    assert proxies
    for pid in (vault.daemon.pid, *proxies):
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        [core] = [line for line in limits.splitlines() if line.startswith("Max core file size")]
        assert int(core.split()[4]) <= 1, core
        owner = pathlib.Path(f"/proc/{pid}/mem").stat().st_uid
        assert owner == 0, "a process that is not dumpable belongs to root in /proc"
    done = subprocess.run([str(BUILD / "millibox"), "secret", "list", "--json", "--socket", vault.daemon.socket], capture_output=True,
                          text=True, timeout=60, check=True)  # fmt: skip
    assert VALUE not in done.stdout
