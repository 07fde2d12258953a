# SPDX-License-Identifier: Apache-2.0
"""Every request: an id that follows it through the log, a time, and rules for web pages."""

import contextlib
import json
import re

import pytest
from support import host
from support.client import Client, raw_exchange
from support.sessions import V1, Session

pytestmark = pytest.mark.phases("system")

PAGE = "https://app.example"
JSON_LOG = ["--log-format", "json", "--log-level", "debug"]


def lines(daemon, request_id):
    """Lines of the log that belong to a request."""
    found = []
    for line in daemon.log().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.get("request_id") == request_id:
            found.append(entry)
    return found


def test_an_id_is_accepted_or_generated(client):
    assert client.get("/healthz", headers={"X-Request-ID": "a-B_9"}).headers["X-Request-ID"] == "a-B_9"
    first = client.get("/healthz").headers["X-Request-ID"]
    second = client.get("/healthz").headers["X-Request-ID"]
    assert first != second and re.fullmatch("[A-Za-z0-9_-]{20}", first)


@pytest.mark.parametrize("bad", ["", " ", "a b", "x" * 64, "a;b", 'a"b', "\u00e9", "a=b", "../x", "{}"])
def test_a_malformed_id_is_replaced(client, bad):
    headers = {"X-Request-ID": bad.encode("latin-1", "replace")}
    answer = client.get("/nowhere", headers=headers)
    assert answer.headers["X-Request-ID"] != bad
    assert re.fullmatch("[A-Za-z0-9_-]{20}", answer.headers["X-Request-ID"])
    assert answer.json["request_id"] == answer.headers["X-Request-ID"]


def test_the_longest_id_is_accepted(client):
    assert client.get("/healthz", headers={"X-Request-ID": "x" * 63}).headers["X-Request-ID"] == "x" * 63


def test_every_response_has_its_process_time(client):
    answer = client.post(f"{V1}/execute", {"language": "shell", "code": "sleep 0.2"})
    assert 0.2 <= float(answer.headers["X-Process-Time"]) < 5 * host.PATIENCE
    assert float(client.get("/nowhere").headers["X-Process-Time"]) < 1 * host.PATIENCE


def test_a_request_can_be_followed_through_the_log(make_daemon):
    daemon = make_daemon(flags=JSON_LOG).start()
    with daemon.client() as client:
        answer = client.post(
            f"{V1}/execute", {"language": "shell", "code": "echo hi"}, headers={"X-Request-ID": "follow-me"}
        )
        host.wait_until(lambda: [e for e in lines(daemon, "follow-me") if e["msg"] == "request"])
        found = lines(daemon, "follow-me")
        states = [e for e in found if "execution" in e]
        assert {e["execution"] for e in states} == {answer.json["execution_id"]}
        assert [e["msg"] for e in states][-1] == "running -> ended"
        assert all(e["box"] for e in states)
        done = [e for e in found if e["msg"] == "request"]
        assert len(done) == 1
        assert done[0]["route"] == f"{V1}/execute" and done[0]["method"] == "POST"
        assert done[0]["status"] == 200 and done[0]["bytes"] == len(answer.body)
        assert done[0]["complete"] is True and done[0]["duration_ms"] > 0
    daemon.stop()


def test_an_execution_of_a_session_carries_the_id_of_its_own_request(make_daemon):
    daemon = make_daemon(flags=JSON_LOG).start()
    with daemon.client() as client:
        client.connection.request(
            "POST", f"{V1}/sessions", body=b"{}",
            headers={"Content-Type": "application/json", "X-Request-ID": "makes-it"},
        )
        session_id = json.loads(client.connection.getresponse().read())["session_id"]
        client.post(
            f"{V1}/sessions/{session_id}/execute", {"code": "1", "wait": True}, headers={"X-Request-ID": "uses-it"}
        )
        assert {e.get("session") for e in lines(daemon, "makes-it") if "session" in e} == {session_id}
        assert [e for e in lines(daemon, "uses-it") if e.get("session") == session_id]
        client.request("DELETE", f"{V1}/sessions/{session_id}")
    daemon.stop()


@pytest.mark.parametrize("level, seen", [("info", True), ("debug", False)])
def test_requests_are_logged_at_the_configured_level(make_daemon, level, seen):
    daemon = make_daemon(config=f"log_requests: {level}\nlog_format: json\n").start()
    with daemon.client() as client:
        client.get("/healthz", headers={"X-Request-ID": "look"})
        refused = client.get(f"{V1}/sessions/nobody", headers={"X-Request-ID": "look"})
        assert refused.status == 404
    daemon.stop()
    found = lines(daemon, "look")
    assert len(found) == (2 if seen else 0)
    if seen:
        assert found[1]["error"] == "Sandbox.SessionNotFound" and found[1]["status"] == 404
        assert all(type(line["duration_ms"]) is float and type(line["bytes"]) is int and line["complete"] is True for line in found)


def test_secrets_and_code_are_in_no_line(make_daemon):
    daemon = make_daemon(flags=JSON_LOG).start()
    with daemon.client() as client:
        session = Session(client, env_vars={"TOKEN": "hush-env"})
        session.run("print('hush-code', input())", stdin="hush-stdin\n")
        client.get("/healthz?key=hush-query", headers={"Authorization": "Bearer hush-key", "X-API-Key": "hush-key"})
        session.delete()
    daemon.stop()
    assert "hush" not in daemon.log()


@pytest.fixture
def page_daemon(make_daemon):
    return make_daemon(tcp=True, config=f"allowed_origins: ['{PAGE}']\n").start()


def preflight(client, path, origin, method="POST"):
    return client.request(
        "OPTIONS", path, headers={"Origin": origin, "Access-Control-Request-Method": method,
                                  "Access-Control-Request-Headers": "content-type"},
    )


def cors_headers(answer):
    return [name for name in answer.headers if name.lower().startswith("access-control-")]


def test_without_settings_no_origin_is_allowed(client):
    for answer in (preflight(client, f"{V1}/execute", PAGE), client.get("/healthz", headers={"Origin": PAGE})):
        assert answer.status == 403 and not cors_headers(answer)
    assert not cors_headers(client.get("/healthz"))


def test_a_listed_origin_gets_its_preflight_and_its_answers(page_daemon):
    with contextlib.closing(Client(page_daemon.tcp_address())) as client:
        asked = preflight(client, f"{V1}/sessions", PAGE)
        assert asked.status == 204 and asked.body == b""
        assert asked.headers["Access-Control-Allow-Origin"] == PAGE
        assert asked.headers["Access-Control-Allow-Methods"] == "POST, GET, HEAD"
        assert "authorization" in asked.headers["Access-Control-Allow-Headers"].lower()
        assert asked.headers["Vary"] == "Origin"
        assert "Access-Control-Allow-Credentials" not in asked.headers
        good = client.post(f"{V1}/execute", {"language": "shell", "code": "echo hi"}, headers={"Origin": PAGE})
        bad = client.post(f"{V1}/execute", {"language": 1}, headers={"Origin": PAGE})
        for answer, status in ((good, 200), (bad, 400)):
            assert answer.status == status
            assert answer.headers["Access-Control-Allow-Origin"] == PAGE
            assert "X-Request-ID" in answer.headers["Access-Control-Expose-Headers"]
        assert not cors_headers(client.get("/healthz"))


def test_other_origins_get_nothing(page_daemon):
    with contextlib.closing(Client(page_daemon.tcp_address())) as client:
        for origin in ("https://evil.example", "null", PAGE + ".evil.example", "http://app.example"):
            for answer in (preflight(client, f"{V1}/execute", origin), client.get("/healthz", headers={"Origin": origin})):
                assert answer.status == 403 and not cors_headers(answer), origin


def test_a_preflight_of_an_unknown_path(page_daemon):
    with contextlib.closing(Client(page_daemon.tcp_address())) as client:
        assert preflight(client, "/nowhere", PAGE).status == 404
        # Without a preflight header OPTIONS is a method that no path has.
        assert client.request("OPTIONS", "/healthz", headers={"Origin": PAGE}).status == 405


def test_an_origin_cannot_break_the_header(page_daemon):
    raw = raw_exchange(
        page_daemon.tcp_address(),
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: " + PAGE.encode() + b"\r\n X: y\r\nConnection: close\r\n\r\n",
    )
    assert b"\r\nX: y" not in raw


def test_a_wrong_host_is_told_which_setting_lists_names(make_daemon):
    """Load balancers check by names of their own: only what tells nothing is answered."""
    daemon = make_daemon(tcp=True, config="allowed_hosts: [box.example]\n").start()
    with contextlib.closing(Client(daemon.tcp_address())) as client:
        for path in ("/readyz", "/api/v1/health", "/metrics", "/healthz/", "/nothing"):
            refused = client.get(path, headers={"Host": "evil.example:8000"})
            assert refused.status == 403, refused
            assert "'evil.example:8000'" in refused.json["error_detail"] and "allowed_hosts" in refused.json["solution"]
            assert client.get(path, headers={"Host": "box.example"}).status != 403, "control"
        for name in ("evil.example", "10.0.0.7:8000", ""):
            healthy = client.get("/healthz", headers={"Host": name})
            assert healthy.status == 200 and healthy.json == {"status": "ok"}, healthy
        assert client.request("POST", "/healthz", headers={"Host": "evil.example"}).status == 403
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert client.get("/healthz", headers={"Host": "evil.example", **headers}).status == 403


def test_a_wrong_media_type_is_told_the_right_one(client):
    session = Session(client, mode="persistent")
    for path, wanted in ((f"{session.path}/files/upload", "multipart/form-data"), (f"{V1}/execute", "application/json")):
        refused = client.request("POST", path, body=b"x", headers={"Content-Type": "text/x-python"})
        assert refused.status == 415 and wanted in refused.json["error_detail"], refused
        assert "names" in refused.json["solution"] and "json" not in refused.json["solution"]
    session.delete()
