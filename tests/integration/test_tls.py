# SPDX-License-Identifier: Apache-2.0
"""TLS with files: certificates come from the test's own authority."""

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest

from support import host
from support.daemon import BUILD
from support.identity import V1
from support.metrics import Metrics
from support.websocket import WebSocket

pytestmark = [pytest.mark.phases("system"), pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")]


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)


CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def sign(d, cert, key):
    """A new @key and a certificate of it for this host, as names in @d."""
    openssl("req", *CURVE, "-keyout", str(d / key), "-out", str(d / "csr.pem"), "-subj", "/CN=localhost")
    (d / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl(
        "x509", "-req", "-in", str(d / "csr.pem"), "-CA", str(d / "ca.pem"), "-CAkey", str(d / "ca.key"),
        "-CAcreateserial", "-out", str(d / cert), "-days", "2", "-extfile", str(d / "ext"),
    )
    (d / key).chmod(0o600)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """ca.pem, and cert.pem with key.pem that it has signed for this host."""
    d = tmp_path_factory.mktemp("tls")
    d.chmod(0o755)
    openssl("req", "-x509", *CURVE, "-keyout", str(d / "ca.key"), "-out", str(d / "ca.pem"), "-days", "2", "-subj", "/CN=Test CA")
    sign(d, "cert.pem", "key.pem")
    return d


def settings(authority, **more):
    return {"MILLIBOX_TLS_CERT": str(authority / "cert.pem"), "MILLIBOX_TLS_KEY": str(authority / "key.pem"), **more}


def serve(make_daemon, authority):
    d = make_daemon(tcp=True, env=settings(authority)).start()
    d.await_proxy()
    line = next(line for line in d.log().splitlines() if "https://127.0.0.1:" in line)
    d.port = int(line.split("https://127.0.0.1:")[1].split()[0].strip('"'))
    d.url = f"https://localhost:{d.port}"
    return d


@pytest.fixture
def served(make_daemon, authority):
    return serve(make_daemon, authority)


def connect(d, authority):
    """A persistent connection, and the certificate that the daemon presented."""
    context = ssl.create_default_context(cafile=str(authority / "ca.pem"))
    connection = http.client.HTTPSConnection("localhost", d.port, context=context, timeout=host.HANG_S)
    connection.connect()
    return connection, connection.sock.getpeercert()["serialNumber"]


def serial(d, authority):
    connection, number = connect(d, authority)
    connection.close()
    return number


def ask(connection):
    connection.request("GET", "/healthz")
    return json.loads(connection.getresponse().read())["status"]


def reload(d, *, expect):
    """SIGHUP, and wait until the log reports the result."""
    before = d.log().count(expect)
    os.kill(d.process.pid, signal.SIGHUP)
    host.wait_until(lambda: d.log().count(expect) > before, 20, expect)


TAKEN = "reloaded the TLS certificate and key"
REFUSED = "the old TLS certificate and key stay"


def test_a_new_certificate_is_loaded_without_a_restart(make_daemon, tmp_path, authority):
    for name in ("ca.pem", "ca.key", "cert.pem", "key.pem"):
        shutil.copy(authority / name, tmp_path / name)
    tmp_path.chmod(0o755)
    d = serve(make_daemon, tmp_path)
    old_connection, old = connect(d, tmp_path)
    assert ask(old_connection) == "ok"

    # A certificate without its key: nothing is loaded, and the daemon continues.
    sign(tmp_path, "next.pem", "next.key")
    os.replace(tmp_path / "next.pem", tmp_path / "cert.pem")
    reload(d, expect=REFUSED)
    assert serial(d, tmp_path) == old

    # One that others may read, and a missing one.
    os.replace(tmp_path / "next.key", tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(0o644)
    reload(d, expect=REFUSED)
    assert "chmod 0600" in d.log()
    (tmp_path / "key.pem").rename(tmp_path / "away.pem")
    reload(d, expect=REFUSED)
    assert "No such file" in d.log()
    assert serial(d, tmp_path) == old

    (tmp_path / "away.pem").rename(tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(0o600)
    reload(d, expect=TAKEN)
    new = serial(d, tmp_path)
    assert new != old
    # Existing connections are not disturbed, and count until they end.
    assert ask(old_connection) == "ok"
    with d.client() as client:
        def gauge(name):
            return Metrics(client.get("/metrics").body.decode()).value(name)

        host.wait_until(lambda: gauge("active_connections") == 2, 10, "this one and the old one are there")
        old_connection.close()
        host.wait_until(lambda: gauge("active_connections") == 1, 10, "the old one is gone")
        fds = gauge("process_open_fds")
        for _ in range(5):
            reload(d, expect=TAKEN)
            assert serial(d, tmp_path) == new
        host.wait_until(lambda: gauge("process_open_fds") <= fds, 10, "nothing is left of what was")

    def reloads():
        # A line is written by another thread after the log reports the reload; the last may still be incomplete.
        lines = (d.home / "state/audit.log").read_text().split("\n")[:-1]
        return [r["result"] for r in map(json.loads, lines) if r["action"] == "config.reload"]

    host.wait_until(lambda: len(reloads()) >= 9, 10, reloads)
    assert reloads() == ["failed"] * 3 + ["ok"] * 6


def curl(authority, *words, ok=True):
    r = subprocess.run(
        ["curl", "-sS", "--noproxy", "*", "--max-time", "30", "--cacert", str(authority / "ca.pem"), *words],
        capture_output=True, text=True, timeout=60,
    )
    assert not ok or r.returncode == 0, r.stderr
    return r


POST = ("-H", "Content-Type: application/json", "-d")


@pytest.mark.boxes
def test_requests_run_over_tls(served, authority):
    body = json.dumps({"language": "python", "code": "print('x' * 500000)"})
    result = json.loads(curl(authority, f"{served.url}{V1}/execute", *POST, body).stdout)
    assert len(result["stdout"]) == 500001
    # The Unix socket is unchanged.
    with served.client() as client:
        assert client.get("/healthz").status == 200


@pytest.mark.boxes
def test_a_websocket_over_tls(served, authority):
    context = ssl.create_default_context(cafile=str(authority / "ca.pem"))
    with WebSocket(("localhost", served.port), tls=context) as ws:
        ws.initialize()
        answer = ws.ask("tools/call", {"name": "execute_code", "arguments": {"language": "shell", "code": "seq 50000"}})
        assert answer["result"]["structuredContent"]["status"] == "success"
        assert ws.ask("ping")["result"] == {}
    with served.client() as client:
        host.wait_until(lambda: Metrics(client.get("/metrics").body.decode()).value("websocket_connections") == 0, 10, "it is gone")
    # An open WebSocket does not delay the stop.
    ws = WebSocket(("localhost", served.port), tls=context)
    ws.initialize()
    assert served.stop() == 0, served.log()
    ws.close()


@pytest.mark.boxes
def test_a_stream_arrives_as_it_is_written(served, authority):
    body = json.dumps({"language": "python", "code": "import time\nfor i in range(4):\n print(i, flush=True); time.sleep(1)"})
    process = subprocess.Popen(
        ["curl", "-sSN", "--noproxy", "*", "--cacert", str(authority / "ca.pem"), f"{served.url}{V1}/execute",
         "-H", "Accept: application/x-ndjson", *POST, body],
        stdout=subprocess.PIPE, text=True,
    )
    times = {}
    for line in process.stdout:
        event = json.loads(line)
        times.setdefault(event["event"], time.monotonic())
    assert process.wait(host.HANG_S) == 0
    assert times["end"] - times["stdout"] > 1


@pytest.mark.boxes
def test_a_disconnect_ends_the_run(served, authority):
    body = json.dumps({"language": "python", "code": "import time\ntime.sleep(60)"})
    process = subprocess.Popen(
        ["curl", "-sSN", "--noproxy", "*", "--cacert", str(authority / "ca.pem"), f"{served.url}{V1}/execute",
         "-H", "Accept: application/x-ndjson", *POST, body],
        stdout=subprocess.PIPE, text=True,
    )
    assert "start" in process.stdout.readline()
    process.kill()
    process.wait(host.HANG_S)
    process.stdout.close()
    with served.client() as client:
        host.wait_until(lambda: client.get("/readyz").json["running"] == 0, 10, "the execution ended")


def test_refusals_are_encrypted_too(served, authority, tmp_path):
    """Some responses are sent outside microhttpd."""
    big = tmp_path / "big"
    big.write_bytes(b"a" * 20_000_000)
    for words in (
        (f"{served.url}{V1}/execute", "-H", "Content-Type: application/json", "--data-binary", f"@{big}"),
        (f"{served.url}{V1}/execute", "-H", "Content-Type: application/json", "-H", "Transfer-Encoding: chunked", "--data-binary", f"@{big}"),
        (f"{served.url}/healthz?{'a' * 9000}",),
    ):
        r = curl(authority, "-w", "\n%{http_code}", *words)
        body, status = r.stdout.rsplit("\n", 1)
        assert status == "413"
        assert json.loads(body)["error_code"] == "Sandbox.PayloadTooLarge"


def test_old_versions_and_plain_text_get_nothing(served, authority):
    assert curl(authority, "--tls-max", "1.1", f"{served.url}/healthz", ok=False).returncode != 0
    assert curl(authority, f"http://localhost:{served.port}/healthz", ok=False).stdout == ""
    context = ssl.create_default_context(cafile=str(authority / "ca.pem"))
    with socket.create_connection(("127.0.0.1", served.port), timeout=host.HANG_S) as raw:
        with context.wrap_socket(raw, server_hostname="localhost") as tls:
            assert tls.version() in ("TLSv1.2", "TLSv1.3")
    # And it still serves.
    assert json.loads(curl(authority, f"{served.url}/healthz").stdout)["status"] == "ok"


def test_requests_are_answered_while_the_files_are_opened(served, authority):
    """Another process opens them, which takes time."""
    if not host.is_root():
        pytest.skip("an ordinary user opens them itself")
    guard = host.child_named(served.pid, "milliboxd-tls")
    before = served.log().count(TAKEN)
    os.kill(guard, signal.SIGSTOP)
    try:
        os.kill(served.process.pid, signal.SIGHUP)
        with served.client() as client:
            assert [client.get("/healthz").status for _ in range(3)] == [200] * 3
        assert served.log().count(TAKEN) == before and REFUSED not in served.log()
    finally:
        os.kill(guard, signal.SIGCONT)
    host.wait_until(lambda: served.log().count(TAKEN) == before + 1, 20, served.log)


def millibox(*words, **env):
    return subprocess.run(
        [str(BUILD / "millibox"), *words], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **env}, timeout=60
    )


def test_the_other_kind_of_address_is_named(served, make_daemon):
    """https:// on a port without TLS, http:// on one with TLS only."""
    plain = make_daemon(tcp=True).start()
    port = int(plain.log().split("http://127.0.0.1:")[1].split()[0].strip('"'))
    said = millibox("session", "list", "--url", f"https://127.0.0.1:{port}")
    assert said.returncode != 0 and "starts with http://" in said.stderr, said
    for command in (("session", "list"), ("status",)):
        said = millibox(*command, "--url", f"http://127.0.0.1:{served.port}")
        assert said.returncode != 0 and "starts with https://" in said.stderr, said
    # A request with a body, which the server does not read.
    said = millibox("run", "--url", f"http://127.0.0.1:{served.port}", "-c", "1 # " + "x" * 100000)
    assert said.returncode != 0 and "starts with https://" in said.stderr, said



def executions(d):
    with d.client() as client:
        return Metrics(client.get("/metrics").body.decode()).total("http_requests_total", route="/api/v1/execute")


@pytest.mark.boxes
def test_the_command_line_verifies_the_daemon(served, authority, tmp_path):
    ca, code = str(authority / "ca.pem"), ("run", "-c", "print(42)")
    assert millibox(*code, MILLIBOX_URL=served.url, MILLIBOX_CA_FILE=ca).stdout == "42\n"
    assert millibox(*code, "--url", served.url, "--ca-file", ca).stdout == "42\n"
    # The option overrides the environment.
    openssl("req", "-x509", *CURVE, "-keyout", str(tmp_path / "other.key"), "-out", str(tmp_path / "other.pem"), "-subj", "/CN=Other")
    other = str(tmp_path / "other.pem")
    assert millibox(*code, "--url", served.url, "--ca-file", ca, MILLIBOX_CA_FILE=other).stdout == "42\n"
    requests = executions(served)
    assert requests > 0
    for command in (code, ("session", "list"), ("tenant", "list"), ("template", "list"), ("policy", "list")):
        for words, env in (((), {}), (("--ca-file", other), {"MILLIBOX_CA_FILE": ca})):
            r = millibox(*command, "--url", served.url, *words, **env)
            assert r.returncode == 125 and r.stdout == "", command
            assert f"the certificate of {served.url}" in r.stderr and "is not trusted" in r.stderr, r.stderr
            assert "--ca-file" in r.stderr
    assert executions(served) == requests
    for command in (code, ("session", "list")):
        bad = millibox(*command, "--url", served.url, "--ca-file", str(tmp_path / "none.pem"))
        assert bad.returncode == 2 and "none.pem" in bad.stderr, bad
    # Nor does it count as missing.
    assert "is not trusted" in millibox("doctor", "--url", served.url).stdout
    assert "ready at" in millibox("doctor", "--url", served.url, "--ca-file", ca).stdout


@pytest.mark.parametrize(
    "change,why",
    [
        ({"MILLIBOX_TLS_KEY": ""}, "both or neither"),
        ({"MILLIBOX_TLS_KEY": "{dir}/open.pem"}, "chmod"),
        ({"MILLIBOX_TLS_KEY": "{dir}/none.pem"}, "none.pem"),
        ({"MILLIBOX_TLS_KEY": "{dir}/ca.key"}, "tls.cert and tls.key"),
        ({"MILLIBOX_TLS_CERT": "{dir}/ext"}, "tls.cert and tls.key"),
    ],
)
def test_invalid_files_are_reported_and_nothing_is_served(make_daemon, authority, change, why):
    shutil.copy(authority / "key.pem", authority / "open.pem")
    (authority / "open.pem").chmod(0o644)
    change = {k: v.replace("{dir}", str(authority)) for k, v in change.items()}
    env = {**settings(authority, **change), "MILLIBOX_STATE_DIR": str(authority / "none"), "PATH": "/usr/bin:/bin"}
    checked = subprocess.run([BUILD / "milliboxd", "--check-config"], env=env, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 3 and why in checked.stderr, checked
    good = subprocess.run([BUILD / "milliboxd", "--check-config"], env={**env, **settings(authority)}, capture_output=True, text=True, timeout=60)
    assert good.returncode == 0, good
    d = make_daemon(tcp=True, env=settings(authority, **change)).start(ready=False)
    assert d.process.wait(20 * host.PATIENCE) == 3, d.log()
    assert why in d.log()


@pytest.mark.parametrize(
    "data, why",
    [
        (b"GET /healthz HTTP/1.1\nHost: localhost\n\n", b"LF"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n", b"NUL"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n", b"folded"),
        (b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n", b"LF"),
    ],
    ids=["lf", "nul", "fold", "chunk"],
)  # fmt: skip
def test_lax_framing_is_400_over_tls(make_daemon, authority, data, why):
    d = serve(make_daemon, authority)
    context = ssl.create_default_context(cafile=str(authority / "ca.pem"))
    for sent, status in ((data, b"400"), (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"200")):
        with context.wrap_socket(socket.create_connection(("127.0.0.1", d.port), timeout=host.HANG_S), server_hostname="localhost") as sock:
            sock.sendall(sent)
            received = b""
            while piece := sock.recv(65536):
                received += piece
        assert received.split(b" ")[1] == status, received
        assert status == b"200" or why in received, received
