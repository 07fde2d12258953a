# SPDX-License-Identifier: Apache-2.0
"""Daemons whose boxes may reach what a test names, and servers to be reached."""

import contextlib
import functools
import http.server
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import threading

from support.daemon import Daemon
from support.egress import Resolver


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
def resolver(name):
    """A name server that knows @name, at 127.0.0.1. Gives its address."""
    server = Resolver()
    server.script[name] = [["127.0.0.1"]]
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        server.close()


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
