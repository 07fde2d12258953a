# SPDX-License-Identifier: Apache-2.0
"""A hostile client of MCP and of the dialects for agents: what one message does to another, and to the daemon."""

import json

import pytest
from support.mcp import Mcp, events

SLEEP = {"name": "execute_code", "arguments": {"code": "import time; time.sleep(60)", "language": "python"}}


@pytest.fixture
def mcp(daemon):
    with Mcp(daemon.socket, version="2025-03-26") as m:
        yield m


def cancel(number):
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}


def answers(mcp, messages):
    """Every answer to a POST, by its id, whichever way they come; the response ends with the last one."""
    response = mcp.post(messages)
    mcp.open[-1].sock.settimeout(10)  # less than signs of life are apart: one that never ends fails
    if response.headers["Content-Type"] == "text/event-stream":
        came = [e.json for e in events(response) if e.data]
    else:
        body = response.read()
        came = json.loads(body) if body else []
    flat = [a for c in came for a in (c if isinstance(c, list) else [c])]
    return response.status, {a["id"]: a for a in flat if "id" in a}


def test_a_batch_may_cancel_its_own_requests(mcp, daemon):
    # The request is gone when the batch comes to say where its answer is to go.
    slow = mcp.message("tools/call", SLEEP)
    assert answers(mcp, [slow, cancel(slow["id"])]) == (202, {})
    # The others of the batch are answered; those that were not cancelled too.
    first, second = mcp.message("tools/call", SLEEP), mcp.message("tools/call", SLEEP)
    quick = mcp.message("tools/call", {"name": "execute_code", "arguments": {"code": "print(42)", "language": "python"}})
    ping = mcp.message("ping")
    _, got = answers(mcp, [first, quick, cancel(first["id"]), second, ping, cancel(second["id"])])
    assert set(got) == {quick["id"], ping["id"]}
    assert got[quick["id"]]["result"]["content"][0]["text"] == "42\n"
    # Ids are free again, and nothing is left to be cancelled.
    assert "result" in answers(mcp, [mcp.message("ping", number=first["id"])])[1][first["id"]]
    with daemon.client() as client:
        assert client.get("/healthz").status == 200


def test_a_batch_may_end_what_its_own_requests_wait_for(mcp):
    sandbox = mcp.call("create_sandbox", image="python-basic")["content"][0]["text"].split()[1]
    run = mcp.message("tools/call", {"name": "run_python", "arguments": {"sandbox_id": sandbox, "code": "import time; time.sleep(60)"}})
    read = mcp.message("tools/call", {"name": "read_file", "arguments": {"sandbox_id": sandbox, "path": "x"}})
    end = mcp.message("tools/call", {"name": "terminate_sandbox", "arguments": {"sandbox_id": sandbox}})
    _, got = answers(mcp, [run, read, end])
    assert set(got) == {run["id"], read["id"], end["id"]}
    assert got[run["id"]]["result"]["isError"] and got[read["id"]]["result"]["isError"]
    assert got[end["id"]]["result"]["isError"] is False
