# SPDX-License-Identifier: Apache-2.0
"""What tests of a box's network need: a server that records what reaches it, a name server with a script, ClientHellos,
and a daemon whose policies open them."""

import errno
import ipaddress
import json
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

from support import host
from support.daemon import Daemon

#: The rules of tests open this address of the server and no other.
OPEN = "127.0.0.1"
#: The server listens there, too; no rule opens them.
CLOSED = ("127.0.0.2", "::1")


def read_all(sock):
    """What the peer sends until it ends."""
    data = b""
    try:
        while part := sock.recv(65536):
            data += part
    except OSError:
        pass
    return data


def free_port(opened):
    """What @opened returns. It needs one port for several sockets, which another program may have for one of them."""
    for _ in range(20):
        try:
            return opened()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    return opened()


class Server:
    """Answers every connection, ends it, and keeps what came: the bytes of an HTTP request and all that follow it, or of
    anything else. A path /redirect?URL leads there, /endless sends until the reader leaves, /size?N sends N bytes."""

    def __init__(self):
        self.seen = []  # (address that was reached, bytes), of connections that have ended
        self.opened = 0
        self.open = set()
        self._lock = threading.Lock()
        self._stopped = False
        self._listeners = []
        self.port = 0
        self._listeners = free_port(self._open)
        self.port = self._listeners[0].getsockname()[1]
        for listener, address in zip(self._listeners, (OPEN, *CLOSED)):
            threading.Thread(target=self._accept, args=(listener, address), daemon=True).start()

    @staticmethod
    def _open():
        opened = []
        try:
            for address in (OPEN, *CLOSED):
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                port = opened[0].getsockname()[1] if opened else 0
                opened.append(socket.create_server((address, port), family=family, backlog=4096))
        except OSError:
            for listener in opened:
                listener.close()
            raise
        return opened

    def _accept(self, listener, address):
        while not self._stopped:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self.opened += 1
                self.open.add(sock)
                number = self.opened
            threading.Thread(target=self._serve, args=(sock, number, address), daemon=True).start()

    def _serve(self, sock, number, address):
        data = b""
        try:
            sock.settimeout(60)
            data = self._read_request(sock)
            self._answer(sock, data)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        data += read_all(sock)
        sock.close()
        with self._lock:
            self.open.discard(sock)
            self.seen.append((number, address, data))

    @staticmethod
    def _read_request(sock):
        data = sock.recv(65536)
        if not data[:1].isalpha():
            return data
        while b"\r\n\r\n" not in data and (part := sock.recv(65536)):
            data += part
        return data

    @staticmethod
    def _answer(sock, data):
        path = data.split(b" ")[1] if data[:4] == b"GET " else b""
        if path.startswith(b"/redirect?"):
            sock.sendall(b"HTTP/1.1 302 Found\r\nLocation: " + path[10:] + b"\r\nContent-Length: 0\r\n\r\n")
        elif path == b"/endless":
            sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                sock.sendall(b"x" * 65536)
        elif path.startswith(b"/size?"):
            size = int(path[6:])
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
        elif data[:1].isalpha():
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nreached")
        elif data:
            sock.sendall(b"reached")

    def take(self):
        """What came since the last call, once every connection has ended, in the order in which they began."""
        host.wait_until(lambda: not self.open, 20, "connections to the server ended")
        with self._lock:
            seen, self.seen = self.seen, []
        return [(address, data) for _, address, data in sorted(seen)]

    def close(self):
        self._stopped = True
        for sock in [*self._listeners, *self.open]:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for listener in self._listeners:
            listener.close()


A, AAAA = 1, 28


class Resolver:
    """A name server. @script: {name: answers}, where answers is a list of lists of addresses, one for each time that a
    client asks for the name, the last for all further times; None: it never answers. A name that is not there does not exist."""

    def __init__(self):
        self.script = {}
        self.asked = []  # (name, type)
        self._udp, self._tcp = free_port(self._open)
        self.port = self._udp.getsockname()[1]
        threading.Thread(target=self._serve_udp, daemon=True).start()
        threading.Thread(target=self._serve_tcp, daemon=True).start()

    @staticmethod
    def _open():
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind((OPEN, 0))
        try:
            return udp, socket.create_server((OPEN, udp.getsockname()[1]), backlog=64)
        except OSError:
            udp.close()
            raise

    def _answer(self, query, limit):
        """Return: the answer, cut off with the bit that says so if it is longer than @limit; None: none is given."""
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        name, kind = ".".join(labels).lower(), struct.unpack("!H", query[at + 1 : at + 3])[0]
        self.asked.append((name, kind))
        question = query[12 : at + 5]
        if name not in self.script:
            return query[:2] + b"\x81\x83" + struct.pack("!4H", 1, 0, 0, 0) + question
        answers = self.script[name]
        if answers is None:
            return None
        turn = self.asked.count((name, kind)) - 1
        found = [ipaddress.ip_address(text) for text in answers[min(turn, len(answers) - 1)]]
        packed = [a.packed for a in found if (a.version == 4) == (kind == A)]
        records = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(p)) + p for p in packed)
        if 12 + len(question) + len(records) > limit:
            return query[:2] + b"\x83\x80" + struct.pack("!4H", 1, 0, 0, 0) + question
        return query[:2] + b"\x81\x80" + struct.pack("!4H", 1, len(packed), 0, 0) + question + records

    def _serve_udp(self):
        while True:
            try:
                query, peer = self._udp.recvfrom(4096)
            except OSError:
                return
            if not query:  # shut down
                return
            if answer := self._answer(query, 512):
                self._udp.sendto(answer, peer)

    def _serve_tcp(self):
        while True:
            try:
                sock, _ = self._tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_stream, args=(sock,), daemon=True).start()

    def _serve_stream(self, sock):
        with sock, sock.makefile("rb") as stream:
            while len(head := stream.read(2)) == 2:
                answer = self._answer(stream.read(struct.unpack("!H", head)[0]), 65535)
                if answer:
                    sock.sendall(struct.pack("!H", len(answer)) + answer)

    def resolve(self, name, kind=A):
        """Ask as any client does. Return: the addresses."""
        query = b"\x00\x01\x01\x00" + struct.pack("!4H", 1, 0, 0, 0)
        query += b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0" + struct.pack("!HH", kind, 1)
        with socket.create_connection((OPEN, self.port), host.HANG_S) as sock, sock.makefile("rb") as stream:
            sock.sendall(struct.pack("!H", len(query)) + query)
            answer = stream.read(struct.unpack("!H", stream.read(2))[0])
        size = 16 if kind == A else 28
        records = answer[len(query) :]
        return [str(ipaddress.ip_address(records[i + 12 : i + size])) for i in range(0, len(records), size)]

    def close(self):
        for sock in (self._udp, self._tcp):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()


SNI, ECH = 0, 0xFE0D


def extension(kind, body):
    return struct.pack("!HH", kind, len(body)) + body


def server_names(*names):
    listed = b"".join(b"\0" + struct.pack("!H", len(name)) + name for name in names)
    return extension(SNI, struct.pack("!H", len(listed)) + listed)


def hello(*extensions, record=16384):
    """A ClientHello in records of at most @record bytes."""
    joined = b"".join(extensions)
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0" + struct.pack("!H", len(joined)) + joined
    message = b"\x01" + struct.pack("!I", len(body))[1:] + body
    parts = [message[i : i + record] for i in range(0, len(message), record)]
    return b"".join(b"\x16\x03\x01" + struct.pack("!H", len(part)) + part for part in parts)


def get(url, *headers, version="1.1", method="GET"):
    """A request to a proxy; Host is that of the URL."""
    authority = url.split("://", 1)[-1].split("/", 1)[0]
    lines = [f"{method} {url} HTTP/{version}", f"Host: {authority}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def connect(target, *headers):
    return "\r\n".join([f"CONNECT {target} HTTP/1.1", f"Host: {target}", *headers, "", ""]).encode()


GREETING = b"\x05\x01\0"


def socks_name(name, port):
    name = name.encode()
    return b"\x05\x01\0\x03" + bytes([len(name)]) + name + struct.pack("!H", port)


def socks_address(text, port):
    packed = ipaddress.ip_address(text).packed
    return b"\x05\x01\0" + (b"\x01" if len(packed) == 4 else b"\x04") + packed + struct.pack("!H", port)


#: Code for a box, and for the control outside of one. talk() sends parts one after the other, each once the former was
#: answered, and returns the answers; the last with all that comes until the end. An error ends the list.
TALK = """
import json, os, socket, sys, time
def talk(parts, address=('127.0.0.1', 3128), seconds=20):
    answers = []
    try:
        with socket.create_connection(address, seconds) as s:
            for i, part in enumerate(parts):
                s.sendall(bytes.fromhex(part))
                data = b''
                while (more := s.recv(65536)):
                    data += more
                    if i + 1 < len(parts):
                        break
                answers.append(data.decode('latin-1'))
    except OSError as e:
        answers.append('!' + type(e).__name__)
    return answers
"""


def code_of(talks):
    """Code that holds each of @talks, lists of byte strings, and prints the list of their answers."""
    parts = json.dumps([[part.hex() for part in talk] for talk in talks])
    return f"{TALK}\nprint(json.dumps([talk(parts) for parts in json.loads({parts!r})]))"


def run_outside(code):
    """What code for a box prints outside of one: the control of a probe."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    return json.loads(done.stdout)


def send_outside(data, address):
    """Send bytes to a server, without a proxy. Return: its answer."""
    with socket.create_connection(address, host.HANG_S) as sock:
        sock.sendall(data)
        return read_all(sock)


class Result:
    """What came of talks: one list of answers for each, and the denials as {what: rule}."""

    def __init__(self, result):
        assert result["exit_code"] == 0, result
        self.answers = json.loads(result["stdout"])
        self.denials = {denial["what"]: denial["rule"] for denial in result["denials"] if denial["kind"] == "network"}


class Network:
    """A daemon with a server and a name server. Boxes get the policy "net"; @rules: {policy: rules}, where PORT is the
    server's."""

    def __init__(self, rules, settings=None, more=""):
        self.server = Server()
        self.resolver = Resolver()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=Daemon.prefix_of_homes))
        self.folder.chmod(0o755)
        for name, texts in rules.items():
            allow = json.dumps([text.replace("PORT", str(self.port)) for text in texts])
            self.write_policy(name, f"network: {{mode: allowlist, allow: {allow}}}")
        self.write_policy("offline", "network: {mode: none}")
        # Tests that flood would wait for the rate.
        egress = {"resolver": f"{OPEN}:{self.resolver.port}", "max_new_connections_per_tenant": 100000, **(settings or {})}
        selectable = ", ".join([*rules, "offline"])
        self.daemon = Daemon(config=f"policy: {{dir: {self.folder}, default: net, selectable: [{selectable}]}}\n"
                                    f"sessions: {{survive: 30s}}\negress: {json.dumps(egress)}\n{more}")

    def write_policy(self, name, text):
        path = self.folder / f"{name}.yaml"
        path.write_text(f"name: {name}\ndescription: Of a test\n{text}\n")
        path.chmod(0o644)

    def __enter__(self):
        self.daemon.start()
        host.wait_until(self.proxy_pid, 10, "the proxy has started")
        return self

    def __exit__(self, *exc):
        code = self.daemon.stop() if self.daemon.process.poll() is None else 0
        log = self.daemon.log()
        self.daemon.remove()
        self.server.close()
        self.resolver.close()
        shutil.rmtree(self.folder)
        assert code == 0, log

    @property
    def port(self):
        return self.server.port

    def talk(self, *talks, **fields):
        """Hold each of @talks with the proxy, in a new box."""
        with self.daemon.client() as client:
            return Result(client.python(code_of(talks), **fields))

    def proxy_pid(self):
        """The process that serves; its starter is its parent, and a child of the daemon."""
        starters = [pid for pid in host.children(self.daemon.pid) if host.comm(pid).startswith("millibox-egress")]
        served = [pid for starter in starters for pid in host.children(starter)]
        return served[0] if served else None


def status_of(answer):
    """The status of an HTTP answer."""
    assert answer.startswith("HTTP/1.1 "), answer
    return int(answer.split()[1])
