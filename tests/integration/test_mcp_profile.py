# SPDX-License-Identifier: Apache-2.0
"""The default profile of the tools: what a model reads costs few tokens, and nothing else is lost."""

import json
import re

import jsonschema
import pytest
from support import host
from support.mcp import Mcp

pytestmark = pytest.mark.phases("system")

TOOLS = ["execute_code", "exec_command", "read_file", "write_file", "list_files", "manage_session", "read_output", "more_tools"]
#: Characters of the list as JSON. cl100k and o200k make at least 4.2 characters one token of it: docs/mcp.md.
LIST_MAX = 7500


@pytest.fixture
def mcp(daemon):
    with Mcp(daemon.socket) as m:
        yield m


@pytest.fixture
def session(mcp):
    sid = good(mcp.call("manage_session", action="create"))["session_id"]
    yield sid
    mcp.call("manage_session", action="end", session_id=sid)


def text(result):
    return result["content"][0]["text"]


def good(result):
    assert not result["isError"], result
    return result["structuredContent"]


def refused(result, *words):
    assert result["isError"], result
    for word in words:
        assert word in text(result), result


def test_what_is_missing_has_the_name_that_the_list_shows(mcp):
    refused(mcp.call("read_file", path="a"), "session_id: is missing")
    assert mcp.call("list_files")["structuredContent"]["field"] == "session_id"


def test_a_denial_is_counted_in_words(mcp):
    refused(mcp.call("exec_command", command="sleep 5", timeout=0.2), "denied by rule deadline: more time (1 time)")


def test_what_the_output_hints_at_is_said(mcp, session):
    """In a session the exception is in no output."""
    look = "import socket; socket.gethostbyname('example.com')"
    for arguments in ({}, {"session_id": session}):
        result = mcp.call("execute_code", language="python", code=look, **arguments)
        refused(result, "[Rule network.mode: the box has no network", "network_allow")
        assert "Rule network.mode" in result["structuredContent"]["error"]
    # What succeeded, and what hints at nothing, is not explained.
    for code in (look.replace("socket.gethost", "print('Name or service not known'); 1 or socket.gethost"), "1 / 0"):
        assert "Rule" not in text(mcp.call("execute_code", language="python", code=code))


# The list.


def test_the_list_is_short(mcp):
    tools = mcp.result("tools/list")["tools"]
    assert [t["name"] for t in tools] == TOOLS
    assert len(json.dumps(tools, separators=(",", ":"))) <= LIST_MAX
    assert len(mcp.initialized["instructions"]) < 400
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["annotations"].get("openWorldHint") is False


def test_every_listed_argument_and_choice_is_accepted(mcp, session):
    """Each word of each enum, in a call that is otherwise right."""
    calls = {
        "execute_code": {"code": "1"}, "exec_command": {"command": "true"}, "read_file": {"path": "a"},
        "write_file": {"path": "a", "content": "YQ=="}, "list_files": {},
    }  # fmt: skip
    asked = 0
    for tool in mcp.result("tools/list")["tools"]:
        for name, schema in tool["inputSchema"]["properties"].items():
            for word in schema.get("enum", []):
                arguments = {"session_id": session, **calls.get(tool["name"], {}), name: word}
                if tool["name"] == "manage_session":
                    arguments = {"action": "create", name: word}
                if tool["name"] == "read_output":
                    arguments = {"execution_id": "x", name: word}
                result = mcp.call(tool["name"], **arguments)
                asked += 1
                if result["isError"]:
                    assert result["structuredContent"].get("field") not in (name,), result
                elif arguments.get("action") == "create":
                    mcp.call("manage_session", action="end", session_id=result["structuredContent"]["session_id"])
    assert asked >= 12
    assert not mcp.call("write_file", session_id=session, path="b", content="b")["isError"]


def test_the_full_profile_lists_everything_that_the_host_has(make_daemon, daemon):
    full = make_daemon(config="tools: {profile: full}\n").start()
    with Mcp(full.socket) as m, full.client() as client:
        tools = {t["name"]: t for t in m.result("tools/list")["tools"]}
        assert tools == {t["name"]: t for t in client.get("/mcp/tools").json["tools"]}
        languages = good(m.call("list_languages"))["languages"]
    assert set(TOOLS) < set(tools) and {"create_sandbox", "run_python", "run_shell"} < set(tools)
    for language in ("go", "csharp", "rust"):
        assert (f"run_{language}" in tools) == (language in languages)
    for tool in tools.values():
        rows = tool["inputSchema"]["properties"]
        assert rows.get("language", {}).get("enum", languages) == languages
        assert rows.get("network_mode", {}).get("enum", ["none"]) == ["none"] and "network_allow" not in rows
    with daemon.client() as client:  # REST lists them in either profile
        assert {t["name"] for t in client.get("/mcp/tools").json["tools"]} == set(tools)


def test_what_tools_say_of_the_network_is_what_the_policy_grants(make_daemon, mcp, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "net.yaml").write_text("name: net\nextends: default\nnetwork: {mode: allowlist, allow: [open.test]}\n")
    (tmp_path / "net.yaml").chmod(0o644)
    look = "import os; 'HTTPS_PROXY' in os.environ"
    open_daemon = make_daemon(config=f"policy: {{dir: {tmp_path}, default: net}}\n").start()
    with Mcp(open_daemon.socket) as m:
        for found, words, network, proxy in (
            (m, "reach only hosts that the policy allows", "allowlist", True),
            (mcp, "without network", "none", False),
        ):
            assert words in found.initialized["instructions"]
            assert ("network_allow" in text(found.call("more_tools", query="create_sandbox"))) == proxy
            made = found.call("manage_session", action="create")
            assert f"network {network}" in text(made)
            session_id = good(made)["session_id"]
            for arguments in ({}, {"session_id": session_id}):
                assert good(found.call("execute_code", language="python", code=look, **arguments))["result"] == str(proxy)
            found.call("manage_session", action="end", session_id=session_id)


def test_a_profile_must_exist(make_daemon):
    daemon = make_daemon(config="tools: {profile: short}\n")
    daemon.start(ready=False)
    assert daemon.process.wait(host.HANG_S) != 0
    assert "default or full" in daemon.log()


def test_tools_chosen_by_the_operator_are_listed(make_daemon):
    daemon = make_daemon(config="mcp: {enabled_tools: [execute_code, run_python, run_go]}\n").start()
    with Mcp(daemon.socket) as m:
        listed = [t["name"] for t in m.result("tools/list")["tools"]]
    with daemon.client() as client:
        languages = {item["name"]: item["available"] for item in client.get("/api/v1/languages").json["languages"]}
    assert listed == ["execute_code", "run_python", *(["run_go"] if languages["go"] else [])]


# Results.


def test_a_trivial_result_is_short(mcp):
    ran = good(mcp.call("execute_code", code="print(42)"))
    assert ran == {"status": "success", "output": "42\n", "language": "python"}
    assert good(mcp.call("execute_code", code="6 * 7"))["result"] == "42"


def test_a_client_that_shows_only_the_structure_shows_output_and_error(mcp, session):
    failed = mcp.call("execute_code", code="print(1)\nraise ValueError('x')", language="python")["structuredContent"]
    assert failed["status"] == "failed" and failed["output"].startswith("1\n[stderr]\nTraceback") and failed["error"] == "ValueError: x"
    failed = mcp.call("execute_code", code="print(1)\n1 / 0", session_id=session)["structuredContent"]
    assert failed["output"].startswith("1\n[stderr]\nTraceback") and failed["error"] == "ZeroDivisionError: division by zero"
    late = mcp.call("execute_code", code="while True: pass", language="python", timeout=0.3)["structuredContent"]
    assert (late["status"], late["limit"]) == ("timeout", "time") and "timed out" in late["error"] and "larger timeout" in late["error"]
    code = mcp.call("exec_command", command="echo no >&2; exit 3")["structuredContent"]
    assert code == {"status": "failed", "output": "[stderr]\nno\n", "error": "Exit code 3.", "language": "shell"}
    wrong = mcp.call("read_file", session_id=session, path="nope")["structuredContent"]
    assert wrong["status"] == "error" and wrong["code"] == "Sandbox.FileNotFound" and "nope" in wrong["error"]


def test_a_lowered_limit_is_in_the_structure(make_daemon):
    daemon = make_daemon(config="limits: {timeout_max: 5s, timeout: 5s}\n").start()
    with Mcp(daemon.socket) as m:
        assert "5" in good(m.call("execute_code", code="print(1)", timeout=60))["warnings"]


def test_files_and_binary_content_are_in_the_structure(mcp, session):
    made = good(mcp.call("exec_command", session_id=session, command="printf '\\377' > b; echo 42 > t"))
    assert sorted(made["files"]) == ["b", "t"]
    assert good(mcp.call("read_file", session_id=session, path="t"))["output"] == "42\n"
    assert good(mcp.call("read_file", session_id=session, path="b", encoding="base64"))["content"] == "/w=="


def test_results_match_the_schemas(mcp, session):
    schemas = {t["name"]: t.get("outputSchema") for t in mcp.result("tools/list")["tools"]}
    for name, arguments in (
        ("execute_code", {"code": "print(1)"}), ("execute_code", {"code": "1/0", "language": "python"}), ("execute_code", {"code": 1}),
        ("exec_command", {"command": "exit 3", "session_id": session}), ("write_file", {"session_id": session, "path": "a", "content": "b"}),
        ("read_file", {"session_id": session, "path": "a"}), ("manage_session", {"action": "list"}),
        ("more_tools", {"call": "run_python", "arguments": {"sandbox_id": session, "code": "1"}}),
    ):  # fmt: skip
        result = mcp.call(name, **arguments)["structuredContent"]
        jsonschema.validate(result, schemas[name] or {})
        assert "output" in result or "error" in result


def test_tools_that_are_not_listed_keep_their_results(mcp, session):
    ran = good(mcp.call("run_python", sandbox_id=session, code="print(6 * 7)"))
    assert ran["stdout"] == "42\n" and ran["exit_code"] == 0 and "metrics" in ran


# The tools that only this profile needs.


def test_a_session_has_one_tool(mcp):
    sid = good(mcp.call("manage_session", action="create", template="shell", session_id="mine"))["session_id"]
    assert sid == "mine" and "mine" in text(mcp.call("manage_session", action="list"))
    good(mcp.call("write_file", session_id=sid, path="a", content="42"))
    assert text(mcp.call("exec_command", session_id=sid, command="cat a")) == "42\n"
    # The older name of the argument is accepted too.
    assert text(mcp.call("read_file", sandbox_id=sid, path="a")) == "42"
    refused(mcp.call("manage_session", action="interrupt"), "session_id", "missing")
    good(mcp.call("manage_session", action="end", session_id=sid))
    refused(mcp.call("read_file", session_id="nobody", path="a"), "no session has the id 'nobody'")
    refused(mcp.call("manage_session", action="create", session_id="a b"), "session_id")


def test_errors_name_tools_and_arguments(mcp, session):
    refused(mcp.call("read_file", session_id="nobody", path="a"), "Call manage_session")
    refused(mcp.call("read_file", session_id=session, path="nope"), "Call list_files")
    refused(mcp.call("execute_code", code="1", sesion_id="x"), "did you mean 'session_id'?", "more_tools")
    refused(mcp.call("read_output", execution_id="exec_none"), "execution_id")
    refused(mcp.call("execute_code", code="1", language="pyhton"), "language", "available: ", "python", "shell")


def test_a_command_needs_no_session(mcp):
    assert text(mcp.call("exec_command", command="echo $((6 * 7))")) == "42\n"


def test_long_output_is_read_in_pages(mcp, session):
    code = "for i in range(9000): print(f'line {i} \\u20ac')"
    whole = "".join(f"line {i} \u20ac\n" for i in range(9000))
    for arguments in ({}, {"session_id": session}):
        cut = mcp.call("execute_code", code=code, language="python", **arguments)
        ident = re.search(r'execution_id "(\w+)"', good(cut)["output"])[1]
        assert "left out at offset" in text(cut) and f'read_output, execution_id "{ident}"' in text(cut)
        pages, offset = "", 0
        while offset is not None:
            page = good(mcp.call("read_output", execution_id=ident, offset=offset))
            pages, offset = pages + page["output"], page.get("next_offset")
        assert pages == whole
    assert good(mcp.call("read_output", execution_id=ident, stream="stderr"))["output"] == ""
    refused(mcp.call("read_output", execution_id=ident, offset=10**9), "offset", "beyond the end")
    refused(mcp.call("read_output", execution_id="exec_none"), "exec_none")


def test_a_long_file_is_read_in_parts(mcp, session):
    good(mcp.call("write_file", session_id=session, path="long", content="0123456789" * 9000))
    assert "read_file with another offset" in text(mcp.call("read_file", session_id=session, path="long"))
    assert text(mcp.call("read_file", session_id=session, path="long", offset=89995)) == "56789"


def test_more_tools_are_found_and_called(mcp, session):
    every = {line.split(":")[0] for line in good(mcp.call("more_tools"))["output"].splitlines()}
    assert {"run_python", "create_sandbox", "list_languages", "execute_code"} <= every
    found = good(mcp.call("more_tools", query="run packages"))["output"]
    assert {"run_python", "run_shell", "run_generic"} <= set(re.findall(r"^(\w+):", found, re.MULTILINE))
    assert '  packages: array. Packages that the program needs, as "numpy"' in found and "  code: string, required" in found
    ran = mcp.call("more_tools", call="run_python", arguments={"sandbox_id": session, "code": "print(6 * 7)"})
    assert text(ran) == "42\n"
    # A tool that is not in the list can be called by its name as well.
    assert text(mcp.call("run_python", sandbox_id=session, code="print(6 * 7)")) == "42\n"
    refused(mcp.call("more_tools", call="run_pyton"), "did you mean 'run_python'?")
    refused(mcp.call("more_tools", call="more_tools"), "call")
    assert "did you mean 'run_python'?" in mcp.error("tools/call", {"name": "run_pyton"})["message"]
    assert mcp.error("tools/call", {"name": "run_command"})["message"] == f"no tool 'run_command'; use one of: {', '.join(TOOLS)}"
    assert text(mcp.call("more_tools", query="teleport")).startswith("No tool matches")
