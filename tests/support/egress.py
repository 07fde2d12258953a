# SPDX-License-Identifier: Apache-2.0
"""Daemons whose boxes may reach what a test names, and servers to be reached."""

import contextlib
import functools
import http.server
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading

from support.daemon import Daemon


def policy(rules, mode="allowlist"):
    """The text of a policy "net" with these rules."""
    items = "".join(f"    - {rule!r}\n" for rule in rules)
    return f"name: net\nnetwork:\n  mode: {mode}\n  allow:\n{items}" if items else f"name: net\nnetwork: {{mode: {mode}}}\n"


@contextlib.contextmanager
def daemon_with(rules, config="", env=None):
    """A daemon whose default policy is "net"."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=Daemon.prefix_of_homes))
    folder.chmod(0o755)
    (folder / "net.yaml").write_text(policy(rules))
    (folder / "net.yaml").chmod(0o644)
    daemon = Daemon(config=f"policy: {{dir: {folder}, default: net}}\n{config}", env=env)
    try:
        yield daemon.start()
        assert daemon.stop() == 0, daemon.log()
    finally:
        daemon.remove()
        shutil.rmtree(folder)


@contextlib.contextmanager
def resolver():
    """A name server by which every name has the address 127.0.0.1 and no other. Gives its address."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))

    def answer():
        while True:
            query, peer = sock.recvfrom(512)
            if not query:
                return
            question = query[12 : query.index(b"\0", 12) + 5]
            is_a = question[-4:-2] == b"\0\1"
            head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
            record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_a else b""
            sock.sendto(head + question + record, peer)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    address, port = sock.getsockname()
    try:
        yield f"{address}:{port}"
    finally:
        sock.sendto(b"", (address, port))
        thread.join()
        sock.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)


def make_certificate(folder, name):
    """A certificate of its own authority, as cert.pem with key.pem in @folder."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"), "-subj", f"/CN={name}",
            "-addext", f"subjectAltName=DNS:{name}", "-addext", "basicConstraints=critical,CA:TRUE")


@contextlib.contextmanager
def serve(handler, certificates=None):
    """A server on loopback. Gives its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if certificates:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def files_of(folder):
    """A handler that serves the files of a folder."""
    return functools.partial(_Quiet, directory=str(folder))
