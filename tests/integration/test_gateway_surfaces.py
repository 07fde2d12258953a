# SPDX-License-Identifier: Apache-2.0
"""Outside MCP servers as people, agents and operators see them: REST, command line, code mode, metrics, audit."""

import json
import subprocess

import pytest

from support import host
from support.daemon import BUILD
from support.gateway import SPEAK, Gateway
from support.identity import KeyClient, make_key, make_tenant
from support.mcp import Mcp
from support.sessions import Session

pytestmark = pytest.mark.phases("system")

#: As in test_mcp_profile.py; search_tools is one more tool.
LIST_MAX = 8400


@pytest.fixture(scope="module")
def gateway():
    policies = {"tools": 'mcp: {servers: ["*"]}', "few": 'mcp: {servers: [toy], tools: ["toy/echo"]}', "none": "mcp: {servers: []}"}
    with Gateway({"toy": "toy", "second": "toy"}, policies=policies) as made:
        made.ask("toy", "echo", {"text": "warm"})
        yield made


@pytest.fixture(scope="module")
def tenants(gateway):
    """Clients of two tenants with policies of their own."""
    with gateway.daemon.client() as admin:
        for name in ("few", "none"):
            make_tenant(admin, name, policy=name)
        return {name: KeyClient(gateway.daemon.socket, make_key(admin, name)) for name in ("few", "none")}


def test_the_api_lists_servers_and_tools(gateway):
    with gateway.daemon.client() as client:
        body = client.get("/api/v1/mcp/servers").json
        assert [server["name"] for server in body["servers"]] == ["toy", "second"] and body["total"] == 2
        toy = body["servers"][0]
        assert toy["kind"] == "stdio" and toy["state"] == "ready" and toy["url"] == "mcp://toy"
        assert "echo" in toy["tools"] and toy["calls"] >= 1 and toy["starts"] == 1
        whole = client.get("/api/v1/mcp/servers/toy").json
        assert whole["tools"][0]["inputSchema"]["required"] == ["text"]
        assert client.get("/api/v1/mcp/servers/absent").status == 404


def test_tenants_see_and_call_what_their_policies_grant(gateway, tenants):
    few, none = tenants["few"], tenants["none"]
    [toy] = few.get("/api/v1/mcp/servers").json["servers"]
    assert toy["tools"] == ["echo"] and "calls" not in toy
    assert few.get("/api/v1/mcp/servers/second").status == 404
    assert none.get("/api/v1/mcp/servers").json == {"total": 0, "servers": []}
    code = SPEAK + 'print(json.dumps([ask("toy", "echo", {"text": "x"}), ask("toy", "env"), ask("second", "echo")]))'
    said = json.loads(few.python(code, mcp=["toy"])["stdout"])
    assert "result" in said[0] and said[1]["rule"] == "mcp.tools" and "allowed_urls" in said[2]
    assert none.post("/api/v1/execute", {"language": "python", "code": "1", "mcp": ["toy"]}).status == 403


def test_the_command_line_lists_servers_and_runs_code_with_them(gateway):
    socket = ["--socket", str(gateway.daemon.socket)]
    done = subprocess.run([BUILD / "millibox", "gateway", "list", *socket], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    assert "toy" in done.stdout and "stdio" in done.stdout and "ready" in done.stdout
    code = "from millibox_tools import toy; print(toy.echo(text='from the command line'))"
    done = subprocess.run([BUILD / "millibox", "run", *socket, "--mcp", "toy/echo", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "from the command line\n", done
    done = subprocess.run([BUILD / "millibox", "run", *socket, "--mcp", "absent", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "there is no MCP server 'absent'" in done.stderr


def test_code_mode(gateway):
    """An agent finds tools and calls them in one program; the list of tools stays short."""
    with Mcp(gateway.daemon.socket) as mcp:
        tools = mcp.result("tools/list")["tools"]
        assert "search_tools" in [tool["name"] for tool in tools]
        assert len(json.dumps(tools, separators=(",", ":"))) <= LIST_MAX
        found = mcp.call("search_tools", query="add numbers")
        text = found["content"][0]["text"]
        assert text.startswith("toy.add(a: float, b: float): Adds two numbers.\n") and 'mcp: ["toy"]' in text
        code = "from millibox_tools import toy\nsum(toy.add(a=i, b=1)['sum'] for i in range(5))"
        result = mcp.call("execute_code", code=code, language="python", mcp=["toy"])
        assert not result["isError"] and result["structuredContent"]["result"] == "15", result
        session = mcp.call("manage_session", action="create", mcp=["toy"])["structuredContent"]["session_id"]
        result = mcp.call("execute_code", session_id=session, language="python", code="import millibox_tools; millibox_tools.toy.echo(text='s')")
        assert result["structuredContent"]["result"] == "'s'", result
        mcp.call("manage_session", action="end", session_id=session)
        for tool in ("search_tools", "more_tools"):  # the time of a search grows with its words
            long = mcp.call(tool, query="a " * 10000)
            assert long["isError"] and "query" in long["content"][0]["text"], long
        denied = mcp.call("execute_code", code="1", language="python", mcp=["absent"])
        assert denied["isError"] and "absent" in denied["content"][0]["text"]


def test_without_servers_there_is_no_trace_of_them(daemon):
    with Mcp(daemon.socket) as mcp:
        tools = mcp.result("tools/list")["tools"]
        assert "search_tools" not in [tool["name"] for tool in tools]
        assert not [tool["name"] for tool in tools if "mcp" in tool["inputSchema"].get("properties", {})]
    with daemon.client() as client:
        assert client.get("/api/v1/mcp/servers").json == {"total": 0, "servers": []}
    assert not [pid for pid in host.children(daemon.pid) if host.comm(pid).startswith("millibox-gatewa")]


def test_calls_are_counted_and_audited_without_arguments(gateway):
    secret = "argument-that-stays-private"
    gateway.ask("toy", "echo", {"text": secret})
    gateway.ask("toy", "env", mcp=["toy/echo"])
    with gateway.daemon.client() as client:
        text = client.get("/metrics").body.decode()
        path = client.get("/api/v1/audit").json["path"]
    assert 'sandbox_mcp_calls_total{server="toy",outcome="ok"}' in text
    assert 'sandbox_mcp_calls_total{server="toy",outcome="denied"}' in text
    assert 'sandbox_mcp_server_ready{server="toy"} 1' in text

    def records():
        with open(path) as file:
            lines = [json.loads(line) for line in file.read().split("\n")[:-1]]  # whole lines
        return [line for line in lines if line.get("action") == "mcp.call"]

    def are_written():
        return [(row["object"], row["result"]) for row in records()[-2:]] == [("toy/echo", "ok"), ("toy/env", "denied")]

    host.wait_until(are_written, 10, lambda: f"both in the audit log: {records()[-2:]}")
    found = records()
    assert found[-1]["tenant"] == "default" and found[-1]["detail"]["box"]
    assert secret not in open(path).read() and secret not in gateway.daemon.log()


def test_a_session_has_its_tools_after_a_killed_daemon(gateway):
    with gateway.daemon.client() as client:
        session = Session(client, mode="persistent", mcp=["toy/echo"])
        assert session.info()["mcp"] == ["toy/echo"]
        assert session.run("import millibox_tools as m; x = 7; m.toy.echo(text='a')")["exit_code"] == 0
    gateway.daemon.kill()
    gateway.daemon.start()
    with gateway.daemon.client() as client:
        session.client = client
        result = session.run("m.toy.echo(text='b') + str(x)")
        assert result["exit_code"] == 0 and "b7" in str(result["result"]), result
        assert "Denied" in session.run("m.call('toy', 'env')")["stderr"]
        session.delete()
