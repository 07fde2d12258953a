# SPDX-License-Identifier: Apache-2.0
"""MCP over Streamable HTTP: versions, sessions, messages, resumed streams."""

import json
import os
import pathlib
import signal
import tempfile
import threading

import pytest
from support import host, metrics
from support.daemon import Daemon
from support.identity import make_key, make_tenant
from support.mcp import LATEST, VERSIONS, Mcp, cut, events

pytestmark = pytest.mark.phases("system")


@pytest.fixture
def mcp(daemon):
    with Mcp(daemon.socket) as m:
        yield m


# Versions.


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_supported(daemon, version):
    with Mcp(daemon.socket, version=version) as m:
        assert m.initialized["protocolVersion"] == version
        assert m.initialized["serverInfo"]["name"] == "millibox"
        tools = {t["name"]: t for t in m.result("tools/list")["tools"]}
        assert ("outputSchema" in tools["execute_code"]) == (version >= "2025-06-18")
        assert ("annotations" in tools["execute_code"]) == (version >= "2025-03-26")
        result = m.call("execute_code", code="print(6 * 7)", language="python", progress="p")
        assert result["content"][0] == {"type": "text", "text": "42\n"} and result["isError"] is False
        assert ("structuredContent" in result) == (version >= "2025-06-18")
        progress = [h["params"] for h in m.heard if h["method"] == "notifications/progress"]
        assert [t["progressToken"] for t in progress] == ["p"]
        assert progress[0].get("message") == ("42\n" if version >= "2025-03-26" else None)


@pytest.mark.smoke
def test_an_unknown_version_is_answered_with_the_newest(daemon):
    with Mcp(daemon.socket, start=False) as m:
        m.version = "2099-01-01"
        m.session = None
        response = m.post(m.message("initialize", {"protocolVersion": "2099-01-01"}))
        assert json.loads(response.read())["result"]["protocolVersion"] == LATEST
        m.session, m.version = response.headers["Mcp-Session-Id"], LATEST


def test_an_unknown_version_in_the_header_is_refused(mcp):
    response = mcp.post(mcp.message("ping"), headers={"Mcp-Protocol-Version": "1999-01-01"})
    assert response.status == 400 and json.loads(response.read())["error"]["code"] == -32600
    assert mcp.result("ping") == {}


def test_batches_work_in_the_versions_that_have_them(daemon):
    with Mcp(daemon.socket, version="2025-03-26") as m:
        batch = [m.message("ping"), {"jsonrpc": "2.0", "method": "notifications/x"}, m.message("nope"), 7]
        response = m.post(batch)
        answers = {a["id"]: a for a in json.loads(response.read())}
        assert answers[batch[0]["id"]]["result"] == {}
        assert answers[batch[2]["id"]]["error"]["code"] == -32601
        assert answers[None]["error"]["code"] == -32600
        # A slow batch is a stream with all of its answers.
        slow = [m.message("tools/call", {"name": "execute_code", "arguments": {"code": f"print({i})", "language": "python"}}) for i in range(2)]
        came = [e.json for e in events(m.post([m.message("ping"), *slow])) if e.data]
        assert {c["id"] for c in came if "id" in c} == {m.last, *(s["id"] for s in slow)}
        assert json.loads(m.post([]).read())["error"]["code"] == -32600
    with Mcp(daemon.socket) as m:
        response = m.post([m.message("ping")])
        assert response.status == 400 and json.loads(response.read())["error"]["code"] == -32600


# Sessions.


def test_nothing_works_without_a_session(daemon):
    with Mcp(daemon.socket, start=False) as m:
        response = m.post(m.message("tools/list"))
        body = json.loads(response.read())
        assert response.status == 400 and body["error"]["code"] == -32600, body
        # Only ping is allowed before.
        response = m.post(m.message("ping"))
        assert response.status == 200 and json.loads(response.read()) == {"jsonrpc": "2.0", "id": m.last, "result": {}}
        assert m.post({"jsonrpc": "2.0", "id": None, "method": "ping"}).status == 400
        assert m.post(m.message("ping"), headers={"Mcp-Session-Id": "mcp_none"}).status == 404
        response = m.listen()
        assert response.status == 400, response.read()


def test_a_session_starts_once_and_ends_once(daemon):
    with Mcp(daemon.socket) as m:
        again = m.post(m.message("initialize", {"protocolVersion": LATEST}))
        assert again.status == 400 and "already" in json.loads(again.read())["error"]["message"]
        assert m.end() == 204
        response = m.post(m.message("ping"))
        assert response.status == 404, response.read()
        assert m.end() == 404
        m.session = None


def test_a_malformed_initialize_creates_no_session(daemon, client):
    before = sessions(client)
    with Mcp(daemon.socket, start=False) as m:
        response = m.post(m.message("initialize", {}))
        assert json.loads(response.read())["error"]["code"] == -32602
        assert "Mcp-Session-Id" not in response.headers
    assert sessions(client) == before


def sessions(client):
    return metrics.read(client).total("sandbox_mcp_sessions")


def locked(make_daemon, tenants):
    """The TCP address of a daemon with keys, and the headers of each tenant."""
    daemon = make_daemon(tcp=True).start()
    keys = {}
    with daemon.client() as admin:
        for name, scopes in tenants.items():
            make_tenant(admin, name)
            key = make_key(admin, name, **({"scopes": scopes} if scopes else {}))
            keys[name] = {"Authorization": f"Bearer {key}"}
    return daemon.tcp_address(), keys


def test_sessions_belong_to_their_tenant(make_daemon):
    address, keys = locked(make_daemon, {"one": None, "other": None})
    with Mcp(address, headers=keys["one"]) as a, Mcp(address, headers=keys["other"]) as b:
        made = a.call("create_sandbox")["structuredContent"]["sandbox_id"]
        assert [s["id"] for s in a.call("list_sandboxes")["structuredContent"]["sandboxes"]] == [made]
        assert b.call("list_sandboxes")["structuredContent"]["total_count"] == 0
        refused = b.call("exec_command", sandbox_id=made, command="id")
        assert refused["isError"] and refused["structuredContent"]["code"] == "Sandbox.SessionNotFound"
        assert b.error("resources/read", {"uri": f"sandbox://{made}/"})["code"] == -32002
        # Another tenant's session does not exist.
        response = b.post(b.message("ping"), headers={"Mcp-Session-Id": a.session})
        assert response.status == 404, response.read()
        stranger = Mcp(address, start=False)
        assert stranger.post(stranger.message("initialize", {"protocolVersion": LATEST})).status == 401
        a.call("terminate_sandbox", sandbox_id=made)


def test_scopes_limit_what_a_key_sees_and_calls(make_daemon):
    address, keys = locked(make_daemon, {"reader": ["read"]})
    with Mcp(address, headers=keys["reader"]) as m:
        names = {t["name"] for t in m.result("tools/list")["tools"]}
        assert names == {"manage_session", "read_output", "more_tools"}
        *more, _ = m.call("more_tools")["structuredContent"]["output"].splitlines()
        assert {line.split(":")[0] for line in more} == {"manage_session", "read_output", "list_sandboxes", "list_languages"}
        ending = m.call("manage_session", action="end", session_id="x")
        assert ending["isError"] and ending["structuredContent"]["code"] == "Sandbox.ScopeMissing"
        by_name = m.call("more_tools", call="execute_code", arguments={"code": "print(1)"})
        assert by_name["isError"] and by_name["structuredContent"]["code"] == "Sandbox.ScopeMissing"
        refused = m.call("execute_code", code="print(1)", language="python")
        assert refused["isError"] and refused["structuredContent"]["code"] == "Sandbox.ScopeMissing"
        assert "execute" in refused["content"][0]["text"]


def revoke(admin, tenant):
    for key in admin.get("/api/v1/keys").json["keys"]:
        if key["tenant"] == tenant:
            assert admin.request("DELETE", f"/api/v1/keys/{key['id']}").status == 200


def test_a_revoked_key_receives_nothing_more(make_daemon):
    daemon = make_daemon(tcp=True).start()
    with daemon.client() as admin:
        make_tenant(admin, "one")
        first, second = ({"Authorization": f"Bearer {make_key(admin, 'one')}"} for _ in range(2))
        make_tenant(admin, "other")
        third = {"Authorization": f"Bearer {make_key(admin, 'other')}"}
        m, n, o = (Mcp(daemon.tcp_address(), headers=h) for h in (first, second, third))
        sid = m.call("create_sandbox")["structuredContent"]["sandbox_id"]
        standing, running, others = events(m.listen()), started(m, "import time; print('on', flush=True); time.sleep(60)", session_id=sid), events(o.listen())
        for stream in (standing, others):
            next(stream)
        came = events(running[1])
        next(e for e in came if e.data)
        revoke(admin, "one")
        # Both streams end now, without a request of the client. The new sandbox may have been announced before.
        assert {e.json["method"] for e in standing if e.data} <= {"notifications/resources/list_changed"}
        assert [e for e in came if e.data] == []
        assert m.post(m.message("ping")).status == n.post(n.message("ping")).status == 401
        # Another tenant's stream continues.
        made = o.call("create_sandbox")["structuredContent"]["sandbox_id"]
        assert next(e for e in others if e.data).json["method"] == "notifications/resources/list_changed"
        o.call("terminate_sandbox", sandbox_id=made)
        # The run belongs to the tenant: a new key can resume the stream.
        m.headers = {"Authorization": f"Bearer {make_key(admin, 'one')}"}
        assert m.result("ping") == {}
        m.call("terminate_sandbox", sandbox_id=sid)
        for one in (m, o):
            one.close()


def test_every_message_of_a_batch_counts_for_the_rate(make_daemon):
    daemon = make_daemon(tcp=True).start()
    with daemon.client() as admin:
        make_tenant(admin, "slow", quotas={"requests_per_second": 1, "burst": 20})
        key = make_key(admin, "slow")
    with Mcp(daemon.tcp_address(), headers={"Authorization": f"Bearer {key}"}, version="2025-03-26") as m:
        batch = [m.message("ping") for _ in range(100)]
        answers = json.loads(m.post(batch).read())
        assert [a["id"] for a in answers] == [b["id"] for b in batch]
        refused = [a for a in answers if a.get("error", {}).get("data", {}).get("error_code") == "Sandbox.QuotaExceeded"]
        served = [a for a in answers if a.get("result") == {}]
        assert len(refused) + len(served) == 100 and 1 <= len(served) <= 25, (len(served), answers[-1])
        # One more each second: as often as a busy host needs.
        assert 429 in (m.post(m.message("ping")).status for _ in range(100))
        m.session = None


def test_two_hundred_sessions_at_once(make_daemon):
    daemon = make_daemon(config="http: {max_connections: 1024, max_connections_per_peer: 1024}\n").start()
    many = [Mcp(daemon.socket) for _ in range(200)]
    with daemon.client() as client:
        assert sessions(client) == len({m.session for m in many}) == 200
        streams = [events(m.listen()) for m in many]
        for stream in streams:
            next(stream)
        failures = []

        def use(m):
            try:
                assert m.result("ping") == {}
                assert len(m.result("tools/list")["tools"]) == 8
            except Exception as e:  # noqa: BLE001 - reported by the test, not lost in a thread
                failures.append(repr(e))

        threads = [threading.Thread(target=use, args=(m,)) for m in many]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failures, failures[:3]
        # All of them are notified of what one of them does.
        sid = many[0].call("create_sandbox")["structuredContent"]["sandbox_id"]
        for stream in streams:
            assert next(e for e in stream if e.data).json["method"] == "notifications/resources/list_changed"
        many[0].call("terminate_sandbox", sandbox_id=sid)
        for m in many:
            m.close()
        assert sessions(client) == 0


def test_an_idle_session_makes_room_for_a_new_one(make_daemon):
    daemon = make_daemon(config="mcp: {max_sessions: 3}\n").start()
    first, second, third = (Mcp(daemon.socket) for _ in range(3))
    listening = first.listen()  # not idle: it has a listener
    with Mcp(daemon.socket) as fourth:
        assert fourth.result("ping") == {}
        assert second.post(second.message("ping")).status == 404
        assert first.result("ping") == third.result("ping") == {}
    cut(listening)
    for m in (first, third):
        m.close()


# Invalid messages.


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100 + b"]" * 100, -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', -32700),
        (b"7", -32700),
        (b"{}", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32600),
        (b'{"jsonrpc": "2.0", "id": "' + b"x" * 257 + b'", "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": ' + b"9" * 400 + b', "method": "ping"}', -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"m" * 200 + b'"}', -32600),
    ],
)
def test_malformed_messages_get_the_right_error(mcp, body, code):
    response = mcp.post(body)
    answer = json.loads(response.read())
    assert response.status == 400 and answer["error"]["code"] == code, answer
    assert mcp.result("ping") == {}


def test_unknown_methods_and_tools(mcp):
    assert mcp.error("no/such")["code"] == -32601
    assert mcp.error("tools/call", {"name": "no_such"})["code"] == -32602
    assert mcp.error("tools/call", {"name": "execute_code", "arguments": []})["code"] == -32602
    assert mcp.error("prompts/get", {"name": "no_such"})["code"] == -32602
    assert mcp.error("tools/list", {"cursor": "x"})["code"] == -32602
    assert mcp.error("logging/setLevel", {"level": "loud"})["code"] == -32602
    assert mcp.notify("notifications/unheard-of") == 202


def test_an_unrequested_response_is_accepted(mcp):
    response = mcp.post({"jsonrpc": "2.0", "id": 4711, "result": {}})
    assert response.status == 202 and not response.read()


def test_bodies_and_media_types(mcp):
    response = mcp.post(mcp.message("ping"), headers={"Content-Type": "text/plain"})
    assert response.status == 415, response.read()
    response = mcp.post(mcp.message("ping"), accept="text/html")
    assert response.status == 406, response.read()
    response = mcp.send("GET", accept="application/json")
    assert response.status == 406, response.read()
    response = mcp.post(b" " * (9 << 20))
    assert response.status == 413, response.read()


def test_an_id_in_flight_cannot_be_reused(mcp):
    slow = mcp.message("tools/call", {"name": "execute_code", "arguments": {"code": "input()", "language": "python", "timeout": 60}})
    # stdin is empty and would end at once, so it sleeps.
    slow["params"]["arguments"]["code"] = "import time; print('on', flush=True); time.sleep(60)"
    slow["params"]["_meta"] = {"progressToken": 1}
    stream = events(mcp.post(slow))
    assert next(e for e in stream if e.data).json["method"] == "notifications/progress"
    again = mcp.post({**mcp.message("ping"), "id": slow["id"]})
    assert json.loads(again.read())["error"]["code"] == -32600
    assert mcp.notify("notifications/cancelled", {"requestId": slow["id"]}) == 202
    assert [e for e in stream if e.data] == []  # cancelled: no answer


# Streams.

COUNT = "import sys\nfor i in range(20):\n    print(i, flush=True)\n    sys.stdin.readline()\n"


def started(m, code, **fields):
    message = m.message("tools/call", {"name": "execute_code", "arguments": {"code": code, "language": "python", **fields}, "_meta": {"progressToken": "t"}})
    response = m.post(message)
    assert response.headers["Content-Type"] == "text/event-stream"
    return message["id"], response


def texts(came):
    return "".join(c["params"]["message"] for c in came if c.get("method") == "notifications/progress")


def test_a_disconnected_client_misses_nothing(mcp, tmp_path):
    sid = mcp.call("create_sandbox")["structuredContent"]["sandbox_id"]
    code = "import os, time\nfor i in range(50):\n    print('line', i, flush=True)\n    while i == 9 and not os.path.exists('go'): time.sleep(0.01)\n"
    number, response = started(mcp, code, session_id=sid)
    came, last = [], None
    for event in events(response):
        last = event.id
        if event.data:
            came.append(event.json)
        if "line 9" in texts(came):
            break
    cut(response)
    # Meanwhile the program continues and ends.
    mcp.call("write_file", sandbox_id=sid, path="go", content="")
    host.wait_until(lambda: "line 49" in mcp.result("resources/read", {"uri": f"log://{sid}"})["contents"][0]["text"], 20, "the program's end")
    rest = [e for e in events(mcp.listen(last=last)) if e.data]
    came += [e.json for e in rest]
    assert texts(came) == "".join(f"line {i}\n" for i in range(50))
    assert came[-1]["id"] == number and came[-1]["result"]["structuredContent"]["status"] == "success"
    # And again, from the same event: kept events are still there.
    assert [e.id for e in events(mcp.listen(last=last)) if e.data] == [e.id for e in rest]
    mcp.call("terminate_sandbox", sandbox_id=sid)


def test_a_stream_begins_with_an_event_id(mcp):
    number, response = started(mcp, "import time; time.sleep(0.5); print('late')")
    first = next(events(response))
    assert first.data == "" and first.id
    cut(response)
    came = [e.json for e in events(mcp.listen(last=first.id)) if e.data]
    assert came[-1]["id"] == number and "late" in came[-1]["result"]["content"][0]["text"]


def test_dropped_events_are_not_skipped_silently(make_daemon):
    daemon = make_daemon(config="mcp: {max_buffers: 64Ki}\n").start()
    with Mcp(daemon.socket) as m:
        number, response = started(m, "for i in range(2000): print(str(i) * 20, flush=True)")
        first = next(events(response))
        for event in events(response):
            if event.data and event.json.get("id") == number:
                break
        assert m.listen(last=first.id).status == 404
        for bad in ("x", "1", "999-1", "1-99999", "-", "1-1-1"):
            assert m.listen(last=bad).status == 404, bad


def test_a_tenant_loses_no_events_to_another(make_daemon):
    daemon = make_daemon(tcp=True, config="mcp: {max_buffers: 128Ki}\n").start()
    with daemon.client() as admin:
        keys = {}
        for name in ("quiet", "loud"):
            make_tenant(admin, name)
            keys[name] = {"Authorization": f"Bearer {make_key(admin, name)}"}
    quiet = Mcp(daemon.tcp_address(), headers=keys["quiet"])
    number, response = started(quiet, "for i in range(5): print(i, flush=True)")
    first, *rest = events(response)
    assert rest[-1].json["id"] == number
    # Many sessions, each with as much as one may keep: together far more than fits.
    loud = [Mcp(daemon.tcp_address(), headers=keys["loud"]) for _ in range(40)]
    heads = []
    for m in loud:
        _, response = started(m, "for i in range(20): print(str(i) * 100, flush=True)")
        heads.append(next(events(response)))
        assert [e for e in events(response) if e.data]
    assert loud[0].listen(last=heads[0].id).status == 404, "there was room for all: nothing is shown"
    assert [(e.id, e.data) for e in events(quiet.listen(last=first.id)) if e.data] == [(e.id, e.data) for e in rest]
    for m in (quiet, *loud):
        m.close()


def test_only_an_explicit_cancel_cancels(mcp):
    sid = mcp.call("create_sandbox")["structuredContent"]["sandbox_id"]
    number, response = started(mcp, "import time; print('on', flush=True)\ntry: time.sleep(60)\nexcept KeyboardInterrupt: pass", session_id=sid)
    next(e for e in events(response) if e.data)
    assert mcp.notify("notifications/cancelled", {"requestId": number, "reason": "enough"}) == 202
    assert not [e for e in events(response) if e.data]
    # The session is free: cancelled code does not run on.
    assert mcp.call("execute_code", session_id=sid, code="print(1)")["content"][0]["text"] == "1\n"
    mcp.call("terminate_sandbox", sandbox_id=sid)


def test_one_response_for_a_client_without_event_streams(mcp):
    message = mcp.message("tools/call", {"name": "execute_code", "arguments": {"code": "print(3)", "language": "python"}})
    response = mcp.post(message, accept="application/json")
    assert response.headers["Content-Type"] == "application/json"
    assert json.loads(response.read())["result"]["content"][0]["text"] == "3\n"


def test_a_client_that_never_reads_disturbs_no_other(daemon, mcp):
    quiet = Mcp(daemon.socket)
    held = [started(quiet, "print('x' * 900000)") for _ in range(8)]
    held.append(quiet.listen())
    for i in range(5):
        assert mcp.call("execute_code", code=f"print({i})", language="python")["content"][0]["text"] == f"{i}\n"
    assert quiet.result("ping") == {}
    del held
    quiet.close()


def test_the_server_sends_change_notifications(mcp):
    stream = events(mcp.listen())
    next(stream)  # it is open
    sid = mcp.call("create_sandbox")["structuredContent"]["sandbox_id"]
    assert next(e for e in stream if e.data).json["method"] == "notifications/resources/list_changed"
    watched = f"sandbox://{sid}/data.csv"
    assert mcp.result("resources/subscribe", {"uri": watched}) == {}
    assert mcp.result("resources/subscribe", {"uri": f"log://{sid}"}) == {}
    mcp.call("write_file", sandbox_id=sid, path="other.csv", content="1")
    mcp.call("write_file", sandbox_id=sid, path="data.csv", content="1")
    update = next(e.json for e in stream if e.data and "updated" in e.data)
    assert update["params"] == {"uri": watched}  # the other file was not subscribed
    mcp.call("run_python", sandbox_id=sid, code="open('data.csv', 'a').write('2')")
    both = {next(e.json for e in stream if e.data and "updated" in e.data)["params"]["uri"] for _ in range(2)}
    assert both == {watched, f"log://{sid}"}
    assert mcp.result("resources/unsubscribe", {"uri": watched}) == {}
    mcp.call("write_file", sandbox_id=sid, path="data.csv", content="3")
    mcp.call("execute_code", session_id=sid, code="1")
    assert next(e.json for e in stream if e.data and "updated" in e.data)["params"]["uri"] == f"log://{sid}"
    mcp.call("terminate_sandbox", sandbox_id=sid)


def updates(stream):
    return (e.json["params"]["uri"] for e in stream if e.data and "resources/updated" in e.data)


def lists(stream):
    return next(e for e in stream if e.data and "list_changed" in e.data)


def test_template_changes_are_announced(client, mcp):
    stream = events(mcp.listen())
    next(stream)
    assert mcp.result("resources/subscribe", {"uri": "template://mine"}) == {}
    assert mcp.result("resources/subscribe", {"uri": "template://other"}) == {}
    for name in ("other", "mine"):
        assert client.post("/api/v1/templates", {"id": name, "name": name, "image": "host", "runtime_type": "python3.11"}).status == 201
        assert next(updates(stream)) == f"template://{name}"
    lists(stream)
    assert "template://mine" in [r["uri"] for r in mcp.result("resources/list")["resources"]]
    assert client.request("PUT", "/api/v1/templates/mine", {"description": "new"}).status == 200
    assert next(updates(stream)) == "template://mine"
    assert json.loads(mcp.result("resources/read", {"uri": "template://mine"})["contents"][0]["text"])["description"] == "new"
    for name in ("mine", "other"):
        assert client.request("DELETE", f"/api/v1/templates/{name}").status in (200, 204)
        assert next(updates(stream)) == f"template://{name}"
    lists(stream)
    assert mcp.error("resources/read", {"uri": "template://mine"})["code"] == -32002


@pytest.fixture
def folder():
    """A directory that the daemon can still read as its own user."""
    with tempfile.TemporaryDirectory(prefix=Daemon.prefix_of_homes) as made:
        os.chmod(made, 0o755)
        yield pathlib.Path(made)


def test_policy_reloads_are_announced(make_daemon, folder):
    own = folder / "own.yaml"
    own.write_text("name: own\nextends: default\ndescription: before\n")
    own.chmod(0o644)
    daemon = make_daemon(config=f"policy: {{dir: {folder}, default: own}}\n").start()
    with Mcp(daemon.socket) as m:
        stream = events(m.listen())
        next(stream)
        assert m.result("resources/subscribe", {"uri": "policy://own"}) == {}
        assert m.error("resources/subscribe", {"uri": "policy://none"})["code"] == -32002
        own.write_text("name: own\nextends: default\ndescription: after\n")
        os.kill(daemon.pid, signal.SIGHUP)
        assert next(updates(stream)) == "policy://own"
        assert json.loads(m.result("resources/read", {"uri": "policy://own"})["contents"][0]["text"])["description"] == "after"
        lists(stream)


def test_file_changes_are_announced_only_to_readers(make_daemon):
    address, keys = locked(make_daemon, {"reader": ["read"], "user": ["read", "files", "sessions"]})
    with Mcp(address, headers=keys["reader"]) as reader, Mcp(address, headers=keys["user"]) as user:
        sid = user.call("create_sandbox")["structuredContent"]["sandbox_id"]
        for method in ("resources/read", "resources/subscribe"):
            error = reader.error(method, {"uri": f"sandbox://{sid}/a"})
            assert error["data"]["error_code"] == "Sandbox.ScopeMissing" and "files" in json.dumps(error), error
        assert reader.result("resources/subscribe", {"uri": f"log://{sid}"}) == {}
        assert user.result("resources/subscribe", {"uri": f"sandbox://{sid}/a"}) == {}
        user.call("terminate_sandbox", sandbox_id=sid)


def test_open_streams_do_not_delay_the_shutdown(make_daemon):
    daemon = make_daemon().start()
    m = Mcp(daemon.socket)
    stream = events(m.listen())
    next(stream)
    daemon.process.terminate()
    assert list(stream) == []
    assert daemon.process.wait(20 * host.PATIENCE) == 0


def test_pages_from_other_origins_are_refused(make_daemon):
    daemon = make_daemon(tcp=True).start()
    with Mcp(daemon.tcp_address()) as m:
        response = m.post(m.message("ping"), headers={"Origin": "http://evil.example"})
        assert response.status == 403, response.read()
        response = m.post(m.message("ping"), headers={"Host": "evil.example"})
        assert response.status == 403, response.read()
        assert m.result("ping") == {}


def test_mcp_can_be_switched_off(make_daemon):
    daemon = make_daemon(config="mcp: {enabled: false}\n").start()
    m = Mcp(daemon.socket, start=False)
    assert m.post(m.message("initialize", {"protocolVersion": LATEST})).status == 404
    with daemon.client() as client:
        assert client.get("/mcp/tools").status == client.post("/mcp/tools/list_languages", {}).status == 404
        assert client.get("/api/v1/tools").status == 200  # part of REST
