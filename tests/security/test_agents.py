# SPDX-License-Identifier: Apache-2.0
"""A hostile MCP or agent client: effects of one message on others and on the daemon."""

import json
import pathlib
import shutil
import tempfile

import pytest
from support.daemon import Daemon
from support.mcp import Mcp, events

pytestmark = pytest.mark.phases("system", "pool")

SLEEP = {"name": "execute_code", "arguments": {"code": "import time; time.sleep(60)", "language": "python"}}


@pytest.fixture
def mcp(daemon):
    with Mcp(daemon.socket, version="2025-03-26") as m:
        yield m


def cancel(number):
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}


def answers(mcp, messages):
    """All answers to a POST by id, in any form; the response ends with the last one."""
    response = mcp.post(messages)
    mcp.open[-1].sock.settimeout(10)  # shorter than the keep-alive interval: an endless response fails
    if response.headers["Content-Type"] == "text/event-stream":
        came = [e.json for e in events(response) if e.data]
    else:
        body = response.read()
        came = json.loads(body) if body else []
    flat = [a for c in came for a in (c if isinstance(c, list) else [c])]
    return response.status, {a["id"]: a for a in flat if "id" in a}


def test_a_batch_may_cancel_its_own_requests(mcp, daemon):
    # The request is gone when the batch registers its answer.
    slow = mcp.message("tools/call", SLEEP)
    assert answers(mcp, [slow, cancel(slow["id"])]) == (202, {})
    # All others of the batch are answered.
    first, second = mcp.message("tools/call", SLEEP), mcp.message("tools/call", SLEEP)
    quick = mcp.message("tools/call", {"name": "execute_code", "arguments": {"code": "print(42)", "language": "python"}})
    ping = mcp.message("ping")
    _, got = answers(mcp, [first, quick, cancel(first["id"]), second, ping, cancel(second["id"])])
    assert set(got) == {quick["id"], ping["id"]}
    assert got[quick["id"]]["result"]["content"][0]["text"] == "42\n"
    # The ids are free again; nothing is left to cancel.
    assert "result" in answers(mcp, [mcp.message("ping", number=first["id"])])[1][first["id"]]
    with daemon.client() as client:
        assert client.get("/healthz").status == 200


def test_a_batch_may_end_what_its_own_requests_wait_for(mcp):
    sandbox = mcp.call("create_sandbox", image="python-basic")["content"][0]["text"].split()[2]
    run = mcp.message("tools/call", {"name": "run_python", "arguments": {"sandbox_id": sandbox, "code": "import time; time.sleep(60)"}})
    read = mcp.message("tools/call", {"name": "read_file", "arguments": {"sandbox_id": sandbox, "path": "x"}})
    end = mcp.message("tools/call", {"name": "terminate_sandbox", "arguments": {"sandbox_id": sandbox}})
    _, got = answers(mcp, [run, read, end])
    assert set(got) == {run["id"], read["id"], end["id"]}
    assert got[run["id"]]["result"]["isError"] and got[read["id"]]["result"]["isError"]
    assert got[end["id"]]["result"]["isError"] is False


def test_nothing_is_kept_of_cancelled_requests(daemon):
    """Stored answers are bounded; a stream without answers would escape the bound."""
    with Mcp(daemon.socket) as m:
        quick = m.message("tools/call", {"name": "execute_code", "arguments": {"code": "1", "language": "python"}})
        number = [e.id for e in events(m.post(quick))][0]
        again = m.listen(last=number)
        assert again.status == 200 and quick["id"] in [e.json.get("id") for e in events(again) if e.data]
        slow = m.message("tools/call", SLEEP)
        response = m.post(slow)
        came = events(response)
        number = next(came).id
        assert m.notify("notifications/cancelled", {"requestId": slow["id"]}) == 202
        assert not [e for e in came if e.data]
        assert m.listen(last=number).status == 404


@pytest.mark.parametrize("uri", ["sandbox://sess_nobodys/", "sandbox://sess_nobodys/a/b", "log://sess_nobodys", "execution://exec_x/stdout"])
def test_an_unknown_resource_is_just_not_found(mcp, uri):
    """The answer frees its context: with the address sanitizer a later use ends the daemon."""
    for _ in range(3):
        assert mcp.error("resources/read", {"uri": uri})["code"] == -32002
    assert mcp.result("ping") == {}


# A sandbox's settings can be changed later, but not to values that would have been refused.

TEAM = """
name: team
extends: default
env:
  deny: ["*TOKEN*"]
"""


@pytest.fixture
def policies():
    folder = pathlib.Path(tempfile.mkdtemp(prefix=Daemon.prefix_of_homes))
    folder.chmod(0o755)
    (folder / "team.yaml").write_text(TEAM)
    (folder / "team.yaml").chmod(0o644)
    yield folder
    shutil.rmtree(folder)


def test_a_changed_environment_must_meet_the_policy(make_daemon, policies):
    daemon = make_daemon(config=f"policy: {{dir: {policies}, default: team}}\n").start()
    with daemon.client() as client:
        asked = {"image": "python-basic", "environment": {"MY_TOKEN": "s3cret"}}
        assert client.post("/api/v1/sandboxes", asked).status == 403
        made = client.post("/api/v1/sandboxes", {"image": "python-basic", "environment": {"PLAIN": "1"}})
        assert made.status == 201, made.json
        path = f"/api/v1/sandboxes/{made.json['id']}"
        for method in ("PATCH", "PUT"):
            answer = client.request(method, path, {"environment": {"MY_TOKEN": "s3cret"}})
            assert answer.status == 403 and "env.deny" in json.dumps(answer.json), answer.json
        batch = {"action": "update", "sandbox_ids": [made.json["id"]], "parameters": {"environment": {"MY_TOKEN": "x"}}}
        assert client.post("/api/v2/sandboxes:batch", batch).json["results"][0]["success"] is False
        seen = client.post(f"{path}/exec", {"command": "env"}).json["stdout"]
        assert "PLAIN=1" in seen and "TOKEN" not in seen
        # Values that the policy allows are accepted here, too.
        assert client.request("PATCH", path, {"environment": {"OTHER": "2"}}).status == 200
        seen = client.post(f"{path}/exec", {"command": "env"}).json["stdout"]
        assert "PLAIN=1" in seen and "OTHER=2" in seen


def test_small_changes_do_not_add_up_to_unbounded_metadata(client):
    made = client.post("/api/v1/sandboxes", {"image": "python-basic", "metadata": {"first": "1"}})
    path = f"/api/v1/sandboxes/{made.json['id']}"
    answers = [client.request("PATCH", path, {"metadata": {f"k{i}": "x" * 4000}}).status for i in range(8)]
    assert answers[0] == 200 and answers[-1] == 400, answers
    kept = client.get(path).json["metadata"]
    assert len(json.dumps(kept)) < 20000 and kept["first"] == "1"
    # Removing some makes room again.
    assert client.request("PATCH", path, {"metadata": {"k0": None, "k9": "x" * 3000}}).status == 200
    assert client.request("DELETE", path).status == 204
