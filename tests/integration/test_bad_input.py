# SPDX-License-Identifier: Apache-2.0
"""Invalid requests: each is a 4xx that names the field; never a crash, a hang or a box."""

import json
import re
import socket
import time

import pytest
from support import host
from support.client import raw_exchange
from support.daemon import Daemon

pytestmark = pytest.mark.phases("system")

GOOD = {"language": "shell", "code": "true"}


@pytest.fixture(scope="module")
def daemon():
    """At debug level it logs every box that it starts to build."""
    d = Daemon(tcp=True, flags=["--log-level", "debug"]).start()
    yield d
    assert d.stop() == 0, d.log()
    d.remove()


@pytest.fixture(autouse=True)
def no_box_is_made(request, daemon):
    """A refused request starts nothing."""
    before = daemon.log().count("-> starting")
    yield
    if "boxes" not in request.keywords:
        assert daemon.log().count("-> starting") == before


def refused(client, body, status=400, **kw):
    answer = client.post("/api/v1/execute", body, **kw)
    assert answer.status == status, answer
    error = answer.json
    assert {"error_code", "description", "error_detail", "solution", "request_id"} <= set(error)
    assert error["error_code"] and error["request_id"]
    return error


@pytest.mark.parametrize(
    "body",
    [
        "", "{", "[", "null", "1", '"x"', "[]", "{}x", '{"language":"shell","code":"true"', '{"a":1,}',
        '{"language":"shell","language":"shell","code":"true"}',
        '{"language":"shell","code":"true","resources":{"cpu":1,"cpu":2}}',
        "[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000,
        '{"language":"shell","code":"a\\u0000b"}', '{"language":"shell","code":"\\ud800"}',
        '{"language":"shell","code":"true","timeout":1e999}', '{"language":"shell","code":"true","timeout":NaN}',
        '{"language":"shell","code":"true","timeout":99999999999999999999999}',
        "{'language':'shell'}", '{"language":"shell","code":"true"} {}', "\ufeff{}",
    ],
)  # fmt: skip
def test_malformed_json_is_refused(client, body):
    refused(client, body)


def test_a_truncated_body_names_no_field(client):
    error = refused(client, '{"language":"shell","code":"true"')
    assert error["field"] is None
    assert error["error_detail"].startswith("line 1, column 33: '}' expected")


def test_invalid_utf8_is_refused(client):
    refused(client, b'{"language":"shell","code":"\xff\xfe"}')
    refused(client, b'{"language":"shell","code":"\xed\xa0\x80"}')


def test_nul_bytes_in_the_body_are_refused(client):
    refused(client, b'{"language":"shell","code":"tr\x00ue"}')


@pytest.mark.parametrize(
    "field,value",
    [
        ("language", None), ("language", 1), ("language", ""), ("language", "cobol"), ("language", ["shell"]),
        ("language", "shell\u0001"), ("language", "x" * 10_000), ("language", "../python"),
        ("code", None), ("code", ""), ("code", 5), ("code", ["true"]), ("code", {}),
        ("timeout", 0), ("timeout", -1), ("timeout", "soon"), ("timeout", None), ("timeout", True), ("timeout", []),
        ("stdin", 5), ("stdin", {"base64": "%%%"}), ("stdin", {"base64": 1}), ("stdin", {"hex": "00"}),
        ("args", "x"), ("args", [1]), ("args", {"a": 1}), ("args", ["x"] * 10_000), ("args", ["x" * 200_000]),
        ("env_vars", []), ("env_vars", {"A B": "x"}), ("env_vars", {"": "x"}), ("env_vars", {"1A": "x"}),
        ("env_vars", {"LD_PRELOAD": "/x"}), ("env_vars", {"PYTHONSTARTUP": "/x"}), ("env_vars", {"BASH_ENV": "/x"}),
        ("env_vars", {"NODE_OPTIONS": "-r x"}), ("env_vars", {"A=B": "x"}), ("env_vars", {"A": {}}),
        ("env_vars", {"A": "x" * 1_000_000}), ("env_vars", {f"V{i}": "x" for i in range(5000)}),
        ("files", []), ("files", {"/etc/passwd": "x"}), ("files", {"../x": "x"}), ("files", {"a/../../x": "x"}),
        ("files", {"": "x"}), ("files", {".": "x"}), ("files", {"a//b": "x"}), ("files", {"a/": "x"}),
        ("files", {"x" * 300: "x"}), ("files", {"/".join("a" * 40): "x"}), ("files", {"a": 1}),
        ("files", {"a": {"base64": "!"}}), ("files", {"a\u0000b": "x"}),
        ("stream", "yes"), ("stream", 1), ("network", "lan"), ("network", ""), ("network", 5),
        ("policy", "No"), ("policy", 5), ("policy", ""),
    ],
)  # fmt: skip
def test_wrong_field_is_named(client, field, value):
    error = refused(client, {**GOOD, field: value})
    assert field in json.dumps(error), error


@pytest.mark.parametrize("field", ["cpu", "memory", "disk", "max_processes", "max_output"])
@pytest.mark.parametrize("value", [0, -1, "", "x", "-5Mi", "1Xi", " 1", "1 ", "1e3", None, [], {}, True, 2**70, "9" * 40])
def test_wrong_resource_is_named(client, field, value):
    error = refused(client, {**GOOD, "resources": {field: value}})
    assert f"resources.{field}" in json.dumps(error), error


@pytest.mark.parametrize("value", [5, "x", [], None])
def test_resources_must_be_an_object(client, value):
    assert "resources" in json.dumps(refused(client, {**GOOD, "resources": value}))


@pytest.mark.boxes
def test_disk_that_memory_cannot_hold_is_cut_and_named(client):
    answer = client.post("/api/v1/execute", {**GOOD, "resources": {"memory": "64Mi", "disk": "1Gi"}})
    assert answer.status == 200
    reason = "files are kept in memory, at most half of resources.memory"
    assert answer.json["limits"] == {"disk": {"requested": "1Gi", "granted": "32Mi", "reason": reason}}
    assert answer.json["warnings"] == [f"resources.disk: 1Gi was requested, 32Mi is granted: {reason}"]


@pytest.mark.parametrize("field", ["codee", "Language", "privileged", "uid", "seccomp", "handler_code", "__proto__"])
def test_unknown_field_is_refused_by_name(client, field):
    error = refused(client, {**GOOD, field: "x"})
    assert field in error["error_detail"]


def test_unknown_resource_is_refused_by_name(client):
    assert "resources.gpu" in json.dumps(refused(client, {**GOOD, "resources": {"gpu": 1}}))


def test_missing_fields_are_named(client):
    assert "code" in json.dumps(refused(client, {"language": "shell"}))


def test_unknown_language_lists_the_known(client):
    error = refused(client, {"language": "brainfuck", "code": "+"})
    assert "python" in error["error_detail"] and "shell" in error["error_detail"]


def test_code_over_its_limit_is_413(client):
    refused(client, {"language": "shell", "code": "#" * (1 << 20) + "x"}, status=413)


def test_hundred_megabytes_are_refused_unread(daemon):
    """A body announced as too large is refused before it is sent; one that is sent anyway is cut off."""
    head = b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 104857600\r\n\r\n"
    before = host.rss_kib(daemon.pid)
    received = raw_exchange(daemon.tcp_address(), head + b"x" * 104_857_600, timeout=host.HANG_S)
    assert b" 413 " in received.split(b"\r\n")[0]
    assert host.rss_kib(daemon.pid) < before + 20_000


def test_chunked_body_over_the_limit_is_413(daemon):
    head = b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    received = raw_exchange(daemon.tcp_address(), head + chunk * 20, timeout=host.HANG_S)
    assert b" 413 " in received.split(b"\r\n")[0]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"])
def test_other_media_types_are_415(client, kind):
    refused(client, json.dumps(GOOD), status=415, headers={"Content-Type": kind})


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_405(client, method):
    answer = client.request(method, "/api/v1/execute", headers={"X-HTTP-Method-Override": "POST"})
    assert answer.status == 405
    assert "POST" in answer.headers["Allow"]


@pytest.mark.parametrize("path", ["/nothing", "/api", "/api/v1/execute/", "/api/v1/execute/x", "/API/V1/EXECUTE", "//api/v1/execute", "/api/v1/../v1/execute", "/%2e%2e/etc/passwd", "/" + "a" * 4000])
def test_unknown_paths_are_404(client, path):
    answer = client.post(path, GOOD)
    assert answer.status == 404, answer
    assert answer.json["error_code"] == "Sandbox.NotFound"


def test_nul_in_the_path_is_refused(client):
    assert client.post("/api/v1/execute%00", GOOD).status == 400


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:9999", "file://"])
def test_foreign_origin_is_403(client, origin):
    refused(client, GOOD, status=403, headers={"Origin": origin})


@pytest.mark.parametrize("site, status", [("cross-site", 403), ("same-site", 403), ("none", 200), ("same-origin", 200)])
def test_a_page_of_another_site_gets_nothing(client, site, status):
    """Links and images have no Origin, but browsers say where they come from."""
    assert client.get("/api/v1/sessions", headers={"Sec-Fetch-Site": site}).status == status


@pytest.mark.parametrize("name", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "169.254.169.254", ""])
def test_foreign_host_is_refused(daemon, name):
    """A web page whose name was rebound to loopback reaches nothing."""
    data = (
        f"POST /api/v1/execute HTTP/1.1\r\nHost: {name}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(json.dumps(GOOD))}\r\nConnection: close\r\n\r\n{json.dumps(GOOD)}"
    )
    status = raw_exchange(daemon.tcp_address(), data.encode()).split(b"\r\n")[0]
    assert b" 403 " in status or b" 400 " in status, status


@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
        b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\nzz\r\n",
    ],
)  # fmt: skip
def test_broken_http_is_answered_with_4xx_or_cut(daemon, data):
    received = raw_exchange(daemon.tcp_address(), data, timeout=45)
    if received:
        status = received.split(b" ")[1]
        assert status[:1] == b"4" or status == b"505", received[:200]
    with daemon.client() as c:
        assert c.get("/healthz").status == 200


HEAD = b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
#: Each would be the start of a request that two parsers read differently, and what the refusal says of it.
LAX = {
    "lf": (b"GET /api/v1/sessions HTTP/1.1\nHost: localhost\n\n", b"LF"),
    "lf header": (b"GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n", b"LF"),
    "lf end": (b"GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\n\n", b"LF"),
    "cr": (b"GET /api/v1/sessions HTTP/1.1\rHost: localhost\r\r", b"CR"),
    "nul value": (b"GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n", b"NUL"),
    "nul name": (b"GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nX\0: b\r\n\r\n", b"NUL"),
    "nul target": (b"GET /api/v1/sessions\0 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"NUL"),
    "fold": (b"GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n", b"folded"),
    "first fold": (b"GET /api/v1/sessions HTTP/1.1\r\n Host: localhost\r\n\r\n", b"folded"),
    "chunk lf": (CHUNKED + b"2\n{}\n0\n\n", b"LF"),
    "chunk end lf": (CHUNKED + b"2\r\n{}\n0\r\n\r\n", b"LF"),
    "trailer lf": (CHUNKED + b"2\r\n{}\r\n0\r\n\n", b"LF"),
    "query": (b"GET /api/v1/sessions?limit=%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"query"),
    "query nul": (b"GET /api/v1/sessions?limit=1%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"query"),
    "query cut": (b"GET /api/v1/sessions?limit=1&x=%4 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"query"),
}


@pytest.mark.parametrize("name", LAX)
def test_lax_framing_is_400(daemon, name):
    data, why = LAX[name]
    for address in (daemon.tcp_address(), daemon.socket):
        received = raw_exchange(address, data)
        assert received.startswith(b"HTTP/1.1 400 ") and received.count(b"HTTP/1.1 ") == 1, received[:300]
        assert why in received and b"X-Request-ID" in received, received


def test_strict_framing_is_served(daemon):
    """Control of test_lax_framing_is_400: the same requests, well-formed, one after the other on one connection."""
    get = b"GET /api/v1/sessions?limit=%31 HTTP/1.1\r\nHost: localhost\r\nX: a\tb\r\n"
    body = json.dumps(GOOD).replace("shell", "cobol").encode()
    post = CHUNKED + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\nX: y\r\n\r\n"
    received = raw_exchange(daemon.tcp_address(), get + b"\r\n" + post + get + b"Connection: close\r\n\r\n")
    assert re.findall(rb"HTTP/1.1 (\d+) ", received) == [b"200", b"400", b"200"], received
    assert b"cobol" in received


@pytest.mark.boxes
def test_a_badly_framed_upload_leaves_no_file(client, daemon):
    """The handler of a streamed body has the request when its framing turns out to be bad."""
    session = client.post("/api/v1/sessions", {"mode": "persistent", "language": "shell"}).json["session_id"]
    path = f"/api/v1/sessions/{session}/files/x"
    head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    received = raw_exchange(daemon.tcp_address(), head + b"5\r\nhello\r\n5\nworld\n0\n\n")
    assert received.startswith(b"HTTP/1.1 400 ") and b"LF" in received, received
    assert client.get(path).status == 404
    assert raw_exchange(daemon.tcp_address(), head + b"5\r\nhello\r\n0\r\n\r\n").split(b" ")[1][:1] == b"2"
    assert client.get(path).body == b"hello"
    assert client.request("DELETE", f"/api/v1/sessions/{session}").status == 200


@pytest.mark.boxes
@pytest.mark.parametrize("length", range(76, 82))
def test_a_warning_that_cuts_a_text_within_a_character(daemon, client, length):
    """Warnings quote 80 bytes of what was requested."""
    image = "sandbox-template-python-basic:" + "a" * (length - 30) + "\u00e9\u20ac"
    made = client.post("/api/v1/templates", {"id": f"cut-{length}", "name": f"cut-{length}", "image": image})
    assert made.status == 201 and any("nothing is pulled" in text for text in made.json["warnings"]), made
    made = client.post("/mcp/tools/create_sandbox", {"workspace_dir": "/" + "a" * (length - 1) + "\u00e9\u20ac"})
    assert made.status == 200, made
    client.request("DELETE", f"/api/v1/sessions/{made.json['metadata']['sandbox_id']}")
    assert client.request("DELETE", f"/api/v1/templates/cut-{length}").status in (200, 204)
    assert daemon.process.poll() is None, daemon.log()


def test_endless_bytes_that_are_not_http_are_cut_in_time(make_daemon):
    """The first bytes of TLS on a port without it."""
    d = make_daemon(tcp=True, config="http:\n  request_timeout: 1s\n  idle_timeout: 2s\n").start()
    # Earlier than the default of http.request_timeout, 30 seconds.
    received = raw_exchange(d.tcp_address(), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", timeout=host.HANG_S)
    assert not received or received.split(b" ")[1][:1] == b"4", received[:200]
    with d.client() as c:
        assert c.get("/healthz").status == 200


def test_slow_client_is_cut_in_time(make_daemon):
    d = make_daemon(tcp=True, config="http:\n  request_timeout: 1s\n  idle_timeout: 2s\n").start()
    with socket.create_connection(d.tcp_address()) as sock:
        sock.settimeout(host.HANG_S)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for byte in b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 350:  # 20 seconds
                sock.send(bytes([byte]))
                time.sleep(0.05)
    with d.client() as c:
        assert c.get("/healthz").status == 200


def test_connections_are_bounded(make_daemon):
    d = make_daemon(tcp=True, config="http:\n  max_connections: 64\n  max_connections_per_peer: 16\n").start()
    socks = []
    for _ in range(100):
        try:
            socks.append(socket.create_connection(d.tcp_address(), timeout=host.HANG_S))
        except OSError:
            break
    with d.client() as c:
        assert c.get("/healthz").status == 200
    for s in socks:
        s.close()


def test_a_full_queue_answers_429_with_retry_after(make_daemon):
    import threading

    d = make_daemon(config="admission:\n  max_running: 1\n  max_queued: 1\n").start()
    answers, threads = [], []

    def work(code):
        with d.client() as c:
            answers.append(c.post("/api/v1/execute", {"language": "shell", "code": code}))

    def counts():
        state = client.get("/readyz").json
        return state["running"], state["queued"]

    with d.client() as client:
        for code, expected in (("sleep 8", (1, 0)), ("true", (1, 1))):
            threads.append(threading.Thread(target=work, args=(code,)))
            threads[-1].start()
            host.wait_until(lambda: counts() == expected, 10, lambda: f"{counts()} become {expected}")
        for _ in range(4):
            refusal = client.post("/api/v1/execute", {"language": "shell", "code": "true"})
            assert refusal.status == 429 and int(refusal.headers["Retry-After"]) >= 1, refusal
            assert refusal.json["error_code"] == "Sandbox.TooManyRequests"
    for t in threads:
        t.join()
    assert [a.status for a in answers] == [200, 200], answers


@pytest.mark.boxes
def test_the_log_names_boxes(client, daemon):
    """Control of no_box_is_made."""
    before = daemon.log().count("-> starting")
    client.shell("true")
    assert daemon.log().count("-> starting") == before + 1


@pytest.mark.boxes
def test_a_client_that_never_reads_does_not_delay_others(daemon):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(daemon.socket)
    body = json.dumps({"language": "python", "code": "print('x'*1000000)"})
    sock.sendall(
        f"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    with daemon.client() as c:
        for _ in range(5):
            assert c.shell("echo ok")["stdout"] == "ok\n"
    sock.close()


def test_health_and_readiness_are_200(client):
    assert client.get("/healthz").json["status"] == "ok"
    assert client.get("/readyz").status == 200


def test_request_id_is_generated_or_accepted(client):
    assert client.get("/healthz").headers["X-Request-ID"]
    assert client.get("/healthz", headers={"X-Request-ID": "abc-123"}).headers["X-Request-ID"] == "abc-123"
    assert client.get("/healthz", headers={"X-Request-ID": "a b\tc"}).headers["X-Request-ID"] != "a b\tc"
