# SPDX-License-Identifier: Apache-2.0
"""Tools, resources and prompts of MCP in the full profile; test_mcp_profile.py has the default one."""

import base64
import hashlib
import json
import pathlib

import jsonschema
import pytest
from support import host, metrics
from support.daemon import Daemon
from support.mcp import Mcp, events
from support.sessions import NAPS, V1, needs_freezer

pytestmark = pytest.mark.phases("system")
NODE = pathlib.Path("/usr/bin/node")


@pytest.fixture(scope="module")
def daemon():
    d = Daemon(tcp=True, config="tools: {profile: full}\n").start()
    yield d
    assert d.process.poll() is None, f"the daemon died: {d.log()}"
    assert d.stop() == 0, d.log()
    d.remove()


@pytest.fixture
def mcp(daemon):
    with Mcp(daemon.socket) as m:
        yield m


@pytest.fixture
def sandbox(mcp):
    sid = mcp.call("create_sandbox")["structuredContent"]["sandbox_id"]
    yield sid
    mcp.call("terminate_sandbox", sandbox_id=sid)


def text(result):
    return result["content"][0]["text"]


def good(result):
    assert not result["isError"], result
    return result["structuredContent"]


def refused(result, code, *words):
    assert result["isError"], result
    assert result["structuredContent"]["code"] == code, result
    for word in words:
        assert word in text(result), result
    return result["structuredContent"]


# The table.


def test_every_tool_is_described(mcp):
    for tool in mcp.result("tools/list")["tools"]:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
        assert tool["inputSchema"]["additionalProperties"] is False
        assert len(tool["description"]) > 40 and tool["title"]
        hints = tool["annotations"]
        assert not (hints["readOnlyHint"] and hints["destructiveHint"]), tool["name"]
        assert hints["openWorldHint"] is False


def test_results_match_the_schemas(mcp, sandbox):
    schemas = {t["name"]: t["outputSchema"] for t in mcp.result("tools/list")["tools"]}
    calls = [
        ("execute_code", {"code": "print(1)"}),
        ("execute_code", {"code": "1/0", "language": "python"}),
        ("execute_code", {"code": "x" * 2, "session_id": "nobody"}),
        ("exec_command", {"sandbox_id": sandbox, "command": "exit 3"}),
        ("write_file", {"sandbox_id": sandbox, "path": "a", "content": "b"}),
        ("read_file", {"sandbox_id": sandbox, "path": "a"}),
        ("read_file", {"sandbox_id": sandbox, "path": "nope"}),
        ("list_files", {"sandbox_id": sandbox}),
        ("list_sandboxes", {}),
        ("list_languages", {}),
        ("interrupt", {"sandbox_id": sandbox}),
    ]
    for name, arguments in calls:
        result = mcp.call(name, **arguments)
        jsonschema.validate(result["structuredContent"], schemas[name])
        assert result["content"][0]["type"] == "text" and text(result)


def test_operators_choose_the_tools(make_daemon):
    config = "mcp: {enabled_tools: [execute_code, interrupt, list_languages], disabled_tools: [interrupt]}\n"
    daemon = make_daemon(config=config).start()
    with Mcp(daemon.socket) as m:
        assert [t["name"] for t in m.result("tools/list")["tools"]] == ["execute_code", "list_languages"]
        assert m.error("tools/call", {"name": "interrupt", "arguments": {}})["code"] == -32602
        assert m.error("tools/call", {"name": "create_sandbox", "arguments": {}})["code"] == -32602
        assert text(m.call("execute_code", code="echo 1")) == "1\n"


def test_a_disabled_tool_has_no_other_name(make_daemon):
    daemon = make_daemon(config="mcp: {disabled_tools: [create_sandbox]}\n").start()
    with Mcp(daemon.socket) as m:
        assert "create_sandbox is disabled here" in text(m.call("manage_session", action="create"))
        assert not m.call("manage_session", action="list").get("isError")


def test_an_unknown_tool_cannot_be_enabled(make_daemon):
    daemon = make_daemon(config="mcp: {disabled_tools: [exec_comand]}\n")
    daemon.start(ready=False)
    assert daemon.process.wait(host.HANG_S) != 0
    assert "exec_command" in daemon.log()


# execute_code, in both forms.


def test_code_without_anything_else(mcp):
    result = good(mcp.call("execute_code", code="print(6 * 7)"))
    assert (result["status"], result["stdout"], result["exit_code"], result["language"]) == ("success", "42\n", 0, "python")
    assert good(mcp.call("execute_code", code="echo $((6*7))"))["language"] == "shell"


def test_the_form_without_sessions(mcp):
    failed = mcp.call("execute_code", language="python", code="import sys\nsys.exit(3)")
    assert failed["isError"] and failed["structuredContent"]["status"] == "execution_error"
    assert failed["structuredContent"]["outcome"] == "failed" and failed["structuredContent"]["exit_code"] == 3
    late = mcp.call("execute_code", language="python", code="print('early', flush=True)\nwhile True: pass", timeout=6)
    body = late["structuredContent"]
    assert late["isError"] and body["status"] == "timeout" and body["timed_out"] and body["exit_code"] == -1
    assert body["stdout"] == "early\n" and "timed out after" in text(late)
    fed = good(mcp.call("execute_code", language="python", code="print(input()[::-1])", stdin="abc\n"))
    assert fed["stdout"] == "cba\n"


def test_the_form_with_sessions(mcp, sandbox):
    assert good(mcp.call("execute_code", session_id=sandbox, code="x = 41"))["status"] == "success"
    assert "42" in text(mcp.call("execute_code", session_id=sandbox, code="x + 1"))
    failed = mcp.call("execute_code", session_id=sandbox, code="undefined_name")
    assert failed["structuredContent"]["status"] == "failed"
    assert "NameError" in text(failed) and failed["structuredContent"]["error"]["name"] == "NameError"
    handled = good(mcp.call("execute_code", session_id=sandbox, code="def handler(event, context):\n    return event['n'] * 2", event={"n": 21}))
    assert handled["return_value"] == 42
    refused(mcp.call("execute_code", session_id="nobody", code="1"), "Sandbox.SessionNotFound", "nobody")


def test_files_arguments_and_variables(mcp):
    code = "import os, sys\nprint(open('d/in.txt').read(), sys.argv[1:], os.environ['A'])"
    result = good(mcp.call("execute_code", language="python", code=code, files={"d/in.txt": "hi"}, args=["x"], env_vars={"A": "b"}))
    assert result["stdout"] == "hi ['x'] b\n"


def test_wrong_arguments_are_results_that_name_the_field(mcp, sandbox):
    for arguments, field in (
        ({}, "code"),
        ({"code": 1}, "code"),
        ({"code": "x", "timeout": "soon"}, "timeout"),
        ({"code": "x", "language": "cobol"}, "language"),
        ({"code": "x", "nonsense": 1}, "nonsense"),
        ({"code": "x", "env_vars": {"a=b": "c"}}, "env_vars.a=b"),
        ({"code": "x", "files": {"a": 1}}, "files.a"),
        ({"code": ""}, "code"),
    ):
        result = mcp.call("execute_code", **arguments)
        assert result["isError"] and result["structuredContent"]["field"] == field, (arguments, result)
    wrong = mcp.call("exec_command", sandbox_id=sandbox, command="pwd", working_dir="/etc")
    refused(wrong, "Sandbox.InvalidParameter", "working_dir", "/workspace")
    refused(mcp.call("exec_command", sandbox_id=sandbox, command="", timeout=5), "Sandbox.InvalidParameter", "command")
    wrong = mcp.call("run_python", sandbox_id=sandbox, code="1", environment={"a=b": "c"})
    assert wrong["structuredContent"]["field"] == "environment.a=b"


# Programs in sandboxes.


def test_files_persist_and_variables_do_not(mcp, sandbox):
    assert good(mcp.call("run_python", sandbox_id=sandbox, code="x = 1\nopen('f', 'w').write('y')"))["exit_code"] == 0
    result = mcp.call("run_code", sandbox_id=sandbox, code="print(open('f').read())\nprint(x)")
    assert result["isError"] and result["structuredContent"]["stdout"] == "y\n" and "NameError" in text(result)
    made = mcp.call("exec_command", sandbox_id=sandbox, command="mkdir d; echo $V; exit 4", environment={"V": "w"})
    body = made["structuredContent"]
    assert made["isError"] and (body["stdout"], body["exit_code"], body["command"]) == ("w\n", 4, "mkdir d; echo $V; exit 4")
    assert good(mcp.call("exec_command", sandbox_id=sandbox, command="pwd", working_dir="d"))["stdout"] == "/workspace/d\n"
    refused(mcp.call("exec_command", sandbox_id=sandbox, command="pwd", working_dir="nowhere"), "Sandbox.InvalidParameter", "nowhere")


def test_options_and_packages(mcp, sandbox):
    strict = mcp.call("run_shell", sandbox_id=sandbox, code="false\necho on", options={"set_flags": "-e"})
    assert strict["isError"] and strict["structuredContent"]["stdout"] == ""
    assert good(mcp.call("run_shell", sandbox_id=sandbox, code="false\necho on"))["stdout"] == "on\n"
    refused(mcp.call("run_shell", sandbox_id=sandbox, code="true", options={"set_flags": "-e; id"}), "Sandbox.InvalidParameter", "set_flags")
    refused(mcp.call("run_python", sandbox_id=sandbox, code="1", options={"use_venv": "maybe"}), "Sandbox.InvalidParameter", "use_venv")
    refused(mcp.call("run_python", sandbox_id=sandbox, code="1", options={"edition": "2021"}), "Sandbox.InvalidParameter", "edition")
    refused(mcp.call("run_python", sandbox_id=sandbox, code="1", packages=["no-such-package"]), "Sandbox.InvalidParameter", "no-such-package", "template", "packages.managers lacks pip")
    refused(mcp.call("run_shell", sandbox_id=sandbox, code="1", packages=["jq"]), "Sandbox.InvalidParameter", "packages", "no package manager")


@pytest.mark.skipif(not NODE.exists(), reason=f"there is no {NODE}, and boxes see no other")
def test_packages_of_a_manager_that_is_not_enabled(mcp, sandbox):
    refused(mcp.call("run_javascript", sandbox_id=sandbox, code="1", packages=["left-pad"]), "Sandbox.InvalidParameter", "packages.managers lacks npm")


@needs_freezer
def test_a_waiter_learns_that_the_session_is_paused(mcp, sandbox, client):
    good(mcp.call("execute_code", session_id=sandbox, code="x = 1"))
    assert client.post(f"{V1}/sessions/{sandbox}/pause", {}).status == 200
    for tool, arguments in (("execute_code", {"session_id": sandbox, "code": "x"}), ("exec_command", {"sandbox_id": sandbox, "command": "true"})):
        refused(mcp.call(tool, **arguments), "Sandbox.StateConflict", f"{sandbox} is paused by its user", "no tool does")
    assert client.post(f"{V1}/sessions/{sandbox}/resume", {}).status == 200
    assert good(mcp.call("execute_code", session_id=sandbox, code="x + 1"))["result"] == 2


def test_a_missing_language_error_lists_the_available_ones(mcp, sandbox):
    listed = good(mcp.call("list_languages"))
    assert {"python", "shell"} <= set(listed["languages"])
    for details in listed["details"]:
        assert details["available"] == (details["name"] in listed["languages"]) == (details["missing"] is None)
        tool = f"run_{details['name']}"
        if details["available"] or tool == "run_c":
            continue
        answer = mcp.call(tool, sandbox_id=sandbox, code="x")
        refused(answer, "Sandbox.InvalidParameter", "python")


def test_an_interrupt_ends_the_program_and_not_the_sandbox(daemon, mcp, sandbox):
    message = mcp.message("tools/call", {"name": "execute_code", "arguments": {"session_id": sandbox, "code": "y = 1\nprint('on', flush=True)\n" + NAPS}, "_meta": {"progressToken": 1}})
    stream = events(mcp.post(message))
    next(e for e in stream if e.data)
    assert good(mcp.call("interrupt", sandbox_id=sandbox))["status"] == "interrupted"
    ended = [e.json for e in stream if e.data][-1]["result"]
    assert ended["isError"] and "KeyboardInterrupt" in text(ended)
    assert "1" in text(mcp.call("execute_code", session_id=sandbox, code="y"))
    refused(mcp.call("interrupt", sandbox_id=sandbox), "Sandbox.StateConflict")


def test_sandboxes(mcp):
    made = good(mcp.call("create_sandbox", image="python:3.11", environment={"A": "b"}, memory_limit="256Mi", disk_limit="64Mi", cpu_limit="0.5", session_id="mine"))
    assert made["sandbox_id"] == made["session_id"] == "mine" and made["container_id"] and made["created_at"]
    assert made["config"]["resources"]["memory"] == "256Mi" and made["config"]["environment"] == {"A": "b"}
    listed = good(mcp.call("list_sandboxes"))
    assert [s["id"] for s in listed["sandboxes"]] == ["mine"] and listed["total_count"] == listed["running_count"] == 1
    assert good(mcp.call("exec_command", sandbox_id="mine", command="echo $A"))["stdout"] == "b\n"
    again = refused(mcp.call("create_sandbox", session_id="mine"), "Sandbox.StateConflict")
    assert "mine" in again["details"]
    assert good(mcp.call("terminate_sandbox", sandbox_id="mine"))["status"] == "terminated"
    assert good(mcp.call("terminate_sandbox", sandbox_id="mine"))  # idempotent
    refused(mcp.call("exec_command", sandbox_id="mine", command="id"), "Sandbox.StateConflict")
    refused(mcp.call("create_sandbox", image="registry.example/x:1"), "Sandbox.TemplateNotFound", "pulls no images")
    wrong = refused(mcp.call("create_sandbox", memory_limit="much"), "Sandbox.InvalidParameter")
    assert wrong["field"] == "memory_limit"
    assert refused(mcp.call("create_sandbox", disk_limit=None), "Sandbox.InvalidParameter")["field"] == "disk_limit"
    denied = mcp.call("create_sandbox", network_mode="host")
    refused(denied, "Sandbox.PolicyDenied", "network", "allowed: none")


# Files.


def test_files_are_written_and_read(mcp, sandbox):
    data = bytes(range(256))
    wrote = good(mcp.call("upload_file", sandbox_id=sandbox, path="/workspace/a/b.bin", content=base64.b64encode(data).decode(), encoding="base64", validate_checksum=True))
    assert wrote["size"] == 256 and wrote["checksum"] == hashlib.sha256(data).hexdigest()
    read = good(mcp.call("download_file", sandbox_id=sandbox, path="a/b.bin", encoding="base64"))
    assert base64.b64decode(read["content"]) == data and read["size"] == 256 and read["truncated"] is False
    refused(mcp.call("read_file", sandbox_id=sandbox, path="a/b.bin"), "Sandbox.InvalidParameter", "base64")
    refused(mcp.call("read_file", sandbox_id=sandbox, path="a/none"), "Sandbox.FileNotFound")
    good(mcp.call("write_file", sandbox_id=sandbox, path="t.txt", content="äöü" * 100))
    part = good(mcp.call("read_file", sandbox_id=sandbox, path="t.txt", max_size=5))
    assert part["content"] == "äö" and part["truncated"] is True and part["size"] == 600
    for bad in ("../x", "/etc/passwd", "a/../../x"):
        refused(mcp.call("read_file", sandbox_id=sandbox, path=bad), "Sandbox.InvalidParameter")
        refused(mcp.call("write_file", sandbox_id=sandbox, path=bad, content=""), "Sandbox.InvalidParameter")
    refused(mcp.call("write_file", sandbox_id=sandbox, path="x", content="!", encoding="base64"), "Sandbox.InvalidParameter", "base64")


def test_existing_files_can_be_kept(mcp, sandbox):
    good(mcp.call("write_file", sandbox_id=sandbox, path="f", content="one", create_backup=True))
    good(mcp.call("write_file", sandbox_id=sandbox, path="f", content="two", create_backup=True, mode="0755"))
    assert good(mcp.call("read_file", sandbox_id=sandbox, path="f.bak"))["content"] == "one"
    refused(mcp.call("write_file", sandbox_id=sandbox, path="f", content="three", force_overwrite=False), "Sandbox.StateConflict")
    refused(mcp.call("write_file", sandbox_id=sandbox, path="f", content="x", validate_checksum="00"), "Sandbox.InvalidParameter")
    listed = good(mcp.call("list_files", sandbox_id=sandbox))
    files = {f["name"]: f for f in listed["files"]}
    assert files["f"]["size"] == 3 and files["f"]["mode"] == "0755" and files["f"]["path"] == "/workspace/f"
    assert listed["total_count"] == 2 and not files["f"]["is_dir"]


def test_images_are_returned(mcp, sandbox):
    drawn = mcp.call("execute_code", session_id=sandbox, code="import matplotlib.pyplot as p\np.plot([1, 2])\np.savefig('x.png')\np.show()")
    image = next(item for item in drawn["content"] if item["type"] == "image")
    assert image["mimeType"] == "image/png" and base64.b64decode(image["data"]).startswith(b"\x89PNG")
    assert "image/png" not in json.dumps(drawn["structuredContent"]["results"])
    link = next(item for item in drawn["content"] if item["type"] == "resource_link")
    assert link["uri"] == f"sandbox://{sandbox}/x.png" and link["mimeType"] == "image/png"
    shown = mcp.call("read_file", sandbox_id=sandbox, path="x.png")
    assert shown["content"][1]["type"] == "image"
    read = mcp.result("resources/read", {"uri": link["uri"]})["contents"][0]
    assert base64.b64decode(read["blob"]).startswith(b"\x89PNG")


# Long output, limits, denials.


@pytest.mark.parametrize("in_session", [False, True])
def test_long_output_is_shortened_and_can_be_read(mcp, sandbox, in_session):
    where = {"session_id": sandbox} if in_session else {}
    result = mcp.call("execute_code", language="python", code="for i in range(20000): print('line', i)", **where)
    body = good(result)
    whole = "".join(f"line {i}\n" for i in range(20000))
    assert len(text(result)) < 20000 and text(result).startswith("line 0\n") and "line 19999\n" in text(result)
    assert body["output_truncated"] and body["stdout_size"] == len(whole) and f"of {len(whole)} bytes left out" in text(result)
    link = next(item for item in result["content"] if item["type"] == "resource_link")
    assert link["uri"] in text(result) and link["size"] == len(whole)
    assert mcp.result("resources/read", {"uri": link["uri"]})["contents"][0]["text"] == whole
    with pytest.raises(AssertionError):
        mcp.result("resources/read", {"uri": link["uri"].replace("stdout", "secret")})


def test_what_is_not_granted_is_told(mcp):
    made = mcp.call("create_sandbox", memory_limit="64Mi", disk_limit="1Gi")
    assert "[disk: 1Gi was requested, 32Mi is granted: files are kept in memory" in made["content"][0]["text"]
    assert mcp.call("terminate_sandbox", sandbox_id=made["structuredContent"]["sandbox_id"])["isError"] is False


def test_limits_and_denials_come_with_advice(mcp):
    greedy = mcp.call("execute_code", language="python", code="x = bytearray(3 << 30)")
    assert greedy["isError"] and "memory" in text(greedy).lower()
    denied = mcp.call("execute_code", language="shell", code="mount -t tmpfs x /mnt; true")
    assert "mount" in text(denied) and "seccomp" in text(denied) and denied["structuredContent"]["denials"][0]["what"] == "mount"


def test_empty_output_is_stated(mcp):
    assert text(mcp.call("execute_code", language="python", code="x = 1")) == "(no output)\n"


def test_calls_are_counted_and_audited(make_daemon):
    daemon = make_daemon().start()
    with Mcp(daemon.socket) as m, daemon.client() as client:
        m.call("execute_code", language="python", code="1")
        m.call("execute_code", language="python", code="1/0")
        m.call("execute_code", code=5)
        now = metrics.read(client)
        for how in ("ok", "error", "refused"):
            assert now.value("sandbox_operations_total", tool="execute_code", result=how) == 1
        sid = m.call("create_sandbox")["structuredContent"]["sandbox_id"]
        m.call("terminate_sandbox", sandbox_id=sid)
    daemon.stop()
    actions = [json.loads(line)["action"] for line in (daemon.home / "state" / "audit.log").read_text().splitlines()]
    assert actions.count("execution.end") == 2 and "session.create" in actions


# Resources, prompts, completions.


def test_resources_are_listed_in_pages(mcp, sandbox):
    mcp.call("write_file", sandbox_id=sandbox, path="a b/c.csv", content="1")
    found, cursor = {}, None
    while True:
        page = mcp.result("resources/list", {"cursor": cursor} if cursor else {})
        found.update({r["uri"]: r for r in page["resources"]})
        cursor = page.get("nextCursor")
        if not cursor:
            break
    assert {"template://python-basic", "policy://default", f"sandbox://{sandbox}/", f"log://{sandbox}"} <= set(found)
    assert found[f"sandbox://{sandbox}/a%20b/c.csv"]["mimeType"] == "text/csv"
    for uri in found:
        contents = mcp.result("resources/read", {"uri": uri})["contents"]
        assert contents[0]["uri"] == uri
    templates = mcp.result("resources/templates/list")["resourceTemplates"]
    assert "sandbox://{id}/{path}" in [t["uriTemplate"] for t in templates]


def test_missing_resources_cannot_be_read(mcp, sandbox):
    for uri in ("sandbox://nobody/x", f"sandbox://{sandbox}/none", f"sandbox://{sandbox}/../x", "execution://nobody/stdout", "log://nobody", "template://none", "policy://none", "file:///etc/passwd", "x"):
        assert mcp.error("resources/read", {"uri": uri})["code"] == -32002, uri
    assert mcp.error("resources/read", {})["code"] == -32602


def test_prompts_are_rendered(mcp):
    prompts = {p["name"]: p for p in mcp.result("prompts/list")["prompts"]}
    assert set(prompts) == {"analyse_data_file", "debug_program", "write_and_run_tests"}
    got = mcp.result("prompts/get", {"name": "analyse_data_file", "arguments": {"path": "{path}.csv", "sandbox_id": "s"}})
    said = got["messages"][0]["content"]["text"]
    assert "{path}.csv" in said and "{question}" not in said and got["messages"][0]["role"] == "user"
    assert mcp.error("prompts/get", {"name": "analyse_data_file", "arguments": {"path": "x"}})["code"] == -32602


def test_names_are_completed(mcp, sandbox):
    def complete(ref, name, value):
        return mcp.result("completion/complete", {"ref": ref, "argument": {"name": name, "value": value}})["completion"]["values"]

    assert complete({"type": "ref/prompt", "name": "debug_program"}, "language", "py") == ["python"]
    assert complete({"type": "ref/resource", "uri": "sandbox://{id}/{path}"}, "id", sandbox[:7]) == [sandbox]
    assert "python-basic" in complete({"type": "ref/resource", "uri": "template://{id}"}, "id", "python")
    assert complete({"type": "ref/resource", "uri": "execution://{id}/{stream}"}, "stream", "") == ["stdout", "stderr"]
    assert complete({"type": "ref/prompt", "name": "none"}, "x", "") == []
    assert mcp.error("completion/complete", {"ref": {}})["code"] == -32602


def test_logging_has_a_level(mcp):
    mcp.call("execute_code", language="python", code="1/0")
    assert any(h["method"] == "notifications/message" and h["params"]["level"] == "warning" for h in mcp.heard)
    mcp.result("logging/setLevel", {"level": "error"})
    mcp.call("execute_code", language="python", code="1/0")
    assert not mcp.heard
