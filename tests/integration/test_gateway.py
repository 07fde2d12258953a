# SPDX-License-Identifier: Apache-2.0
"""Code in boxes calls tools of outside MCP servers."""

import contextlib
import json
import os
import signal
import subprocess

import pytest

from support import host
from support.daemon import BUILD
from support.gateway import SPEAK, Gateway
from support.sessions import Session

pytestmark = pytest.mark.phases("system", "user")


@pytest.fixture(scope="module")
def gateway():
    policies = {
        "tools": 'mcp: {servers: ["*"]}',
        "few": 'mcp: {servers: [toy], tools: ["toy/echo", "toy/a*"]}',
        "without": "mcp: {servers: []}",
    }
    with Gateway({"toy": {"env": {"TOKEN": "of-the-server"}}, "second-one": "toy"}, policies=policies) as made:
        yield made


@contextlib.contextmanager
def opened(gateway, **fields):
    """A persistent session with the tools of toy."""
    with gateway.daemon.client() as client:
        session = Session(client, mode="persistent", **{"mcp": ["toy"], **fields})
        yield session
        session.delete()


def value(session, code):
    """The value of the last line."""
    result = session.run(code)
    assert result["exit_code"] == 0, result
    return result["result"]


def test_tools_are_functions_of_python(gateway):
    result = gateway.value(
        """
import inspect, json
import millibox_tools
from millibox_tools import toy
signature = inspect.signature(toy.echo)
print(json.dumps({
    "servers": millibox_tools.servers(),
    "echo": toy.echo(text="hi", times=2),
    "add": toy.add(a=1, b=2.5),
    "class": toy.class_(from_="x", a_b="y"),
    "types": {name: p.annotation for name, p in signature.parameters.items() if name != "more_"},
    "doc": toy.echo.__doc__,
    "search": millibox_tools.search("numbers"),
    "second": millibox_tools.second_one.echo(text="2"),
    "whole": millibox_tools.call("toy", "echo", {"text": "w"}),
    "describe": millibox_tools.describe("toy.add"),
}))
""",
        mcp=["toy", "second-one"],
    )
    assert result["servers"] == ["toy", "second-one"]
    assert result["echo"] == "hihi"
    assert result["add"] == {"sum": 3.5}
    assert json.loads(result["class"]) == {"from": "x", "a-b": "y"}
    assert result["types"]["text"] == "str" and result["types"]["times"] == "int"
    assert "Returns its text." in result["doc"] and "what to return" in result["doc"]
    assert result["search"][0].startswith("toy.add(a: float, b: float)") or result["search"][0].startswith("second_one.add")
    assert result["second"] == "2"
    assert result["whole"] == {"content": [{"type": "text", "text": "w"}]}
    assert "Adds two numbers." in result["describe"]


def test_errors_are_exceptions_that_say_why(gateway):
    result = gateway.value(
        """
import json, millibox_tools as m
said = {}
def attempt(name, what):
    try:
        what()
    except Exception as error:
        said[name] = [type(error).__name__, str(error)]
attempt("fail", lambda: m.toy.fail())
attempt("tool", lambda: m.toy.nothing)
attempt("denied", lambda: m.call("toy", "env"))
attempt("server", lambda: m.nothing)
attempt("url", lambda: m.call("second-one", "echo"))
attempt("missing", lambda: m.toy.echo())
print(json.dumps(said))
""",
        mcp=["toy/fail", "toy/echo"],
    )
    assert result["fail"] == ["ToolError", "it failed"]
    assert result["tool"][0] == "AttributeError" and "echo, fail" in result["tool"][1]
    assert result["denied"] == ["Denied", "Tool not in allowlist: toy/env (rule mcp)"]
    assert result["server"][0] == "AttributeError" and "it may call: toy" in result["server"][1]
    assert result["url"] == ["Denied", "URL not in allowlist: second-one"]
    assert result["missing"][0] == "TypeError"


def test_a_box_without_a_list_has_no_socket_and_no_module(gateway):
    code = """
import json, os
try:
    import millibox_tools
    there = True
except ImportError:
    there = False
print(json.dumps([os.path.exists("/tmp/mcp.sock"), there, [v for v in os.environ if "MCP" in v or "TOOLS" in v]]))
"""
    assert gateway.value(code, mcp=None) == [False, False, []]
    assert gateway.value(code)[:2] == [True, True]


def test_the_socket_speaks_frames(gateway):
    said = gateway.value(
        SPEAK
        + """
import os, stat
status = os.stat("/tmp/mcp.sock")
print(json.dumps({
    "mode": [stat.S_ISSOCK(status.st_mode), oct(status.st_mode & 0o777)],
    "ok": ask("mcp://toy", "echo", {"text": "\\u00e9\\n"}),
    "half": speak(frame({"url": "toy", "tool": "echo", "arguments": {"text": "h"}}), end=True),
    "denied": ask("https://elsewhere.example/mcp", "echo"),
    "no url": speak(frame({"tool": "echo"})),
    "no tool": speak(frame({"url": "toy"})),
    "no json": speak(frame(b"{'url': 1}")),
    "incomplete": speak(frame(b"{}")[:5], end=True),
    "large": speak((10 * 1024 * 1024 + 1).to_bytes(4, "big")),
    "unknown": ask("toy", "nothing"),
    "failed": ask("toy", "fail"),
    "list": [t["name"] for t in ask("millibox:tools", "list", {"server": "toy"})["result"]["servers"][0]["tools"]],
}))
"""
    )
    assert said["mode"] == [True, "0o666"]
    assert said["ok"] == {"result": {"content": [{"type": "text", "text": "\u00e9\n"}]}}
    assert said["half"]["result"]["content"][0]["text"] == "h"
    assert said["denied"] == {
        "error": "URL not in allowlist: https://elsewhere.example/mcp",
        "allowed_urls": ["mcp://toy"],
    }
    errors = {key: value["error"] for key, value in said.items() if isinstance(value, dict) and "error" in value}
    assert errors["no url"] == "Missing 'url' in request"
    assert errors["no tool"] == "Missing 'tool' in request"
    assert errors["no json"].startswith("Invalid JSON")
    assert errors["incomplete"].startswith("Incomplete message")
    assert errors["large"].startswith("Message too large")
    assert errors["unknown"] == "MCP server 'toy' refused the call: no tool 'nothing'"
    assert said["failed"]["result"]["isError"] is True
    assert "echo" in said["list"]


def test_policies_decide(gateway):
    with gateway.daemon.client() as client:
        for mcp, policy, status, words in [
            (["toy"], "without", 403, "mcp.servers"),
            (["second-one"], "few", 403, "mcp.servers"),
            (["toy/env"], "few", 403, "mcp.tools"),
            (["nothing"], "tools", 400, "there is no MCP server 'nothing'"),
            (["to y"], "tools", 400, "is not SERVER"),
            (["*"], "tools", 400, "is not SERVER"),
        ]:
            answer = client.post("/api/v1/execute", {"language": "python", "code": "1", "mcp": mcp, "policy": policy})
            assert answer.status == status, answer
            assert words in answer.json["error_detail"]
    assert gateway.ask("toy", "echo", {"text": "x"}, policy="few")["result"]
    said = gateway.ask("toy", "env", policy="few")
    assert said == {"error": "Tool not in allowlist: toy/env (rule mcp.tools)", "rule": "mcp.tools"}


def test_denied_calls_are_in_the_result_with_a_remedy(gateway):
    code = SPEAK + 'ask("toy", "env"); ask("toy", "env"); ask("toy", "die"); ask("absent", "echo")'
    result = gateway.run(code, mcp=["toy/echo"])
    rows = {row["what"]: row for row in result["denials"]}
    assert {what: (row["kind"], row["rule"], row["count"]) for what, row in rows.items()} == {
        "toy/env": ("mcp_tool", "mcp", 2),
        "toy/die": ("mcp_tool", "mcp", 1),
        "absent": ("mcp_tool", "mcp.servers", 1),
    }
    assert rows["toy/env"]["remedy"]["request"] == {"mcp": ["toy/env"]}
    result = gateway.run(SPEAK + 'ask("toy", "env")', policy="few")
    [row] = result["denials"]
    assert row["rule"] == "mcp.tools" and row["remedy"]["policy"] == {"mcp": {"tools": ["toy/env"]}}


def test_a_session_keeps_its_tools_and_gets_new_lists(gateway):
    with opened(gateway, policy="few") as session:
        assert value(session, "from millibox_tools import toy; toy.echo(text='a')") == "a"
        said = """
import millibox_tools
try:
    said = millibox_tools.call("toy", "env") and "ok"
except Exception as error:
    said = str(error)
said"""
        assert value(session, said).startswith("Tool not in allowlist: toy/env")
        gateway.change_policy("few", 'mcp: {servers: [toy], tools: ["toy/env"]}')
        assert value(session, said) == "ok"
        assert "Tool not in allowlist" in session.run("toy.echo(text='a')")["stderr"]
        gateway.change_policy("few", 'mcp: {servers: [toy], tools: ["toy/echo", "toy/a*"]}')


def test_servers_have_their_variables_and_boxes_do_not(gateway):
    result = gateway.value(
        """
import json, os
from millibox_tools import toy
print(json.dumps([json.loads(toy.env()), dict(os.environ)]))
"""
    )
    assert result[0]["TOKEN"] == "of-the-server"
    assert "of-the-server" not in json.dumps(result[1])
    assert not [name for name in result[0] if name.startswith("MILLIBOX")]


def test_a_killed_server_is_started_again(gateway):
    assert gateway.ask("toy", "die")["error"] == (
        "Cannot connect: MCP server 'toy' has ended with status 3 while it worked on the call; it is started again, "
        "the call is not repeated"
    )
    # The next call waits for the start.
    assert gateway.ask("toy", "echo", {"text": "again"})["result"]["content"][0]["text"] == "again"


def test_a_killed_gateway_is_started_again_and_sessions_live_on(gateway):
    with opened(gateway) as session:
        assert value(session, "from millibox_tools import toy; x = 1; toy.echo(text='a')") == "a"
        os.kill(gateway.gateway_pid(), signal.SIGKILL)
        assert value(session, "toy.echo(text='b') + str(x)") == "b1"


def test_a_list_of_tools_that_is_too_deep_is_named():
    """In the log, and where the operator looks for the reason; another server's tools work."""
    with Gateway({"toy": "toy", "deep": {"env": {"TOY_DEPTH": "100"}}}) as gateway:
        host.wait_until(lambda: "more than 64 levels" in (gateway.info("deep")["detail"] or ""), 20, lambda: gateway.info("deep"))
        listed = subprocess.run([str(BUILD / "millibox"), "gateway", "list", "--socket", gateway.daemon.socket], capture_output=True, text=True, check=True)
        assert "more than 64 levels" in listed.stdout, listed
        assert "deep sent a message of more than 64 levels (tools/list)" in gateway.daemon.log()
        assert gateway.ask("toy", "add", {"a": 1, "b": 2})["result"]["structuredContent"] == {"sum": 3}, "control"
