# SPDX-License-Identifier: Apache-2.0
"""What SandboxRunner's own tests and its Python client check (docs/compatibility.md), for its dialect."""

import base64
import contextlib
import json
import re

import pytest

from support import host
from support.daemon import Daemon
from support.sandboxes import Runner, ok
from support.sessions import V1, Session, needs_freezer

pytestmark = pytest.mark.phases("system")

API = ("/api/v1", "/api/v2", "/api")


@contextlib.contextmanager
def sandbox(client, base="/api/v1", **fields):
    made = ok(client.post(f"{base}/sandboxes", {"image": "ubuntu:22.04", **fields}), 201)
    try:
        yield f"{base}/sandboxes/{made['id']}"
    finally:
        assert client.request("DELETE", f"/api/v1/sandboxes/{made['id']}").status in (204, 404)


def refused(answer, status, field=None, words=""):
    """An error in the dialect's form, which also has the canonical fields."""
    assert answer.status == status, answer
    error = answer.json["error"]
    assert error["code"] == status and error["message"] and error["timestamp"].endswith("Z"), answer
    assert error["request_id"] == answer.json["request_id"] == answer.headers["X-Request-ID"]
    assert words in error["details"] and answer.json["error_code"], answer
    if field:
        assert answer.json["field"] == field, answer


# The client: it posts bare arguments to /mcp/tools/{tool} and reads text, is_error and metadata.


@pytest.fixture
def runner(client):
    return Runner(client)


@pytest.fixture
def box(runner):
    """The id of a sandbox created by the client."""
    made = runner.done("create_sandbox", image="python:3.11", workspace_dir="/workspace", network_mode="none")
    yield made["sandbox_id"]
    runner.ask("terminate_sandbox", sandbox_id=made["sandbox_id"])


def test_client_creates_lists_and_terminates(runner):
    made = runner.done("create_sandbox", image="ubuntu:22.04", workspace_dir="/workspace", network_mode="none",
                       environment={"COLOUR": "blue"}, cpu_limit="1.0", memory_limit="128M", disk_limit="16M")
    assert made["container_id"] and made["status"] == "running" and made["created_at"]
    assert made["config"]["image"] == "ubuntu:22.04" and made["config"]["environment"] == {"COLOUR": "blue"}
    listed = runner.done("list_sandboxes")
    mine = [s for s in listed["sandboxes"] if s["id"] == made["sandbox_id"]]
    assert mine and {"id", "container_id", "status", "working_dir", "created_at"} <= set(mine[0])
    assert listed["total_count"] == len(listed["sandboxes"]) == listed["running_count"] + listed["stopped_count"]
    assert runner.run("run_shell", sandbox_id=made["sandbox_id"], code="echo $COLOUR")["metadata"]["stdout"] == "blue\n"
    runner.done("terminate_sandbox", sandbox_id=made["sandbox_id"])
    assert made["sandbox_id"] not in [s["id"] for s in runner.done("list_sandboxes")["sandboxes"]]


@pytest.mark.parametrize("tool, language, code", [
    ("run_python", "python", "print(6 * 7)"),
    ("run_shell", "shell", "echo $((6 * 7))"),
    ("run_generic", "python", "import sys\nprint(6 * 7, file=sys.stdout)"),
])
def test_client_runs_programs(runner, box, tool, language, code):
    answer = runner.run(tool, sandbox_id=box, code=code)
    reply = answer["metadata"]
    assert not answer["is_error"] and reply["exit_code"] == 0 and reply["stdout"] == "42\n" and reply["stderr"] == ""
    assert reply["language"] == language and not reply["timed_out"] and 0 < reply["duration"] < 30
    assert reply["packages_installed"] == []


@pytest.mark.smoke
def test_client_runs_commands(runner, box):
    reply = runner.call("exec_command", sandbox_id=box, command="pwd; echo $A >&2; exit 3", working_dir="/workspace",
                                            environment={"A": "b"}, timeout=30)
    assert reply["is_error"]
    reply = reply["metadata"]
    assert (reply["exit_code"], reply["stdout"], reply["stderr"]) == (3, "/workspace\n", "b\n")
    assert reply["command"].startswith("pwd") and reply["working_dir"] == "/workspace"
    assert reply["stdout_size"] == 11 and reply["stderr_size"] == 2 and reply["output_truncated"] is False
    assert reply["execution_time_ms"] > 0


@pytest.mark.parametrize("code, name", [
    ("print(1 / 0)", "EXECUTION_FAILED"),
    ("print(", "PYTHON_SYNTAX_ERROR"),
    ("import no_such_module", "MODULE_NOT_FOUND"),
    ("raise MemoryError", "MEMORY_ERROR"),
    ("import time\nprint('begun', flush=True)\ntime.sleep(60)", "EXECUTION_TIMEOUT"),
])
def test_client_learns_how_a_program_failed(runner, box, code, name):
    """Failed code is a result with status 200, never an HTTP error."""
    answer = runner.run("run_python", sandbox_id=box, code=code, timeout=3 if name == "EXECUTION_TIMEOUT" else 60)
    reply = answer["metadata"]
    assert answer["is_error"] and reply["code"] == name and reply["details"], answer
    assert reply["timed_out"] == (name == "EXECUTION_TIMEOUT")
    if reply["timed_out"]:
        assert reply["stdout"] == "begun\n" and reply["exit_code"] == -1


def test_client_gets_complete_output(runner, box):
    """The text is for a model's context; the client's fields are not shortened."""
    answer = runner.run("run_python", sandbox_id=box, code="print('x' * 300000)")
    assert answer["metadata"]["stdout"] == "x" * 300000 + "\n" and not answer["metadata"]["output_truncated"]
    assert len(answer["text"]) < 100000


def test_client_sends_files_and_input(runner, box):
    answer = runner.run("run_python", sandbox_id=box, code="print(open('data/a.txt').read() + input())",
                        files={"data/a.txt": "one "}, stdin="two\n")
    assert answer["metadata"]["stdout"] == "one two\n"


@pytest.mark.parametrize("upload, download", [("upload_file", "download_file"), ("write_file", "read_file")])
def test_client_moves_files(runner, box, upload, download):
    runner.done(upload, sandbox_id=box, path="/workspace/t.txt", content="Hello", encoding="utf8")
    reply = runner.done(download, sandbox_id=box, path="/workspace/t.txt", encoding="utf8")
    assert {k: reply[k] for k in ("path", "size", "encoding", "content")} == {
        "path": "/workspace/t.txt", "size": 5, "encoding": "utf8", "content": "Hello"}
    data = bytes(range(256))
    runner.done(upload, sandbox_id=box, path="b.bin", content=base64.b64encode(data).decode(), encoding="base64")
    reply = runner.done(download, sandbox_id=box, path="/workspace/b.bin", encoding="base64")
    assert base64.b64decode(reply["content"]) == data


def test_client_lists_files(runner, box):
    runner.done("write_file", sandbox_id=box, path="d/t.txt", content="Hello", encoding="utf8")
    reply = runner.done("list_files", sandbox_id=box, path="/workspace", recursive=True)
    assert reply["path"] == "/workspace" and reply["total_count"] == 2
    by_name = {f["name"]: f for f in reply["files"]}
    assert by_name["d"]["is_dir"] and not by_name["t.txt"]["is_dir"]
    assert by_name["t.txt"]["path"] == "/workspace/d/t.txt" and by_name["t.txt"]["size"] == 5
    assert by_name["t.txt"]["mode"] == "0644" and by_name["t.txt"]["modified"].endswith("Z")


def test_client_learns_why_a_call_failed(runner, box):
    """Calls that raise through is_error: code and details are in the metadata."""
    for tool, arguments, code in (
        ("create_sandbox", {"image": "no-such-image:1"}, "IMAGE_NOT_FOUND"),
        ("read_file", {"sandbox_id": box, "path": "nobody"}, "FILE_NOT_FOUND"),
    ):
        answer = runner.call(tool, **arguments)
        assert answer["is_error"] and answer["text"], answer
        assert answer["metadata"]["code"] == code and answer["metadata"]["details"], answer
        assert answer["metadata"]["message"] and answer["metadata"]["context"]["request_id"]


@pytest.mark.parametrize("tool, arguments, status, code", [
    ("run_python", {"code": "1"}, 400, "INVALID_PARAMETERS"),
    ("run_python", {"sandbox_id": "BOX", "code": 7}, 400, "INVALID_PARAMETERS"),
    ("run_python", {"sandbox_id": "BOX", "code": "1", "bogus": 1}, 400, "INVALID_PARAMETERS"),
    ("run_python", {"sandbox_id": "BOX", "code": "1", "timeout": 301}, 400, "INVALID_PARAMETERS"),
    ("run_python", {"sandbox_id": "12345678-1234-1234-1234-123456789abc", "code": "1"}, 404, "SANDBOX_NOT_FOUND"),
    ("terminate_sandbox", {"sandbox_id": "nobody"}, 404, "SANDBOX_NOT_FOUND"),
    ("no_such_tool", {}, 404, "TOOL_NOT_FOUND"),
])
def test_invalid_calls_are_http_errors(runner, box, tool, arguments, status, code):
    arguments = {k: box if v == "BOX" else v for k, v in arguments.items()}
    answer = runner.ask(tool, **arguments)
    assert answer.status == status, answer
    reply = answer.json
    assert reply["code"] == code and reply["message"] and reply["details"] and reply["context"]["request_id"]
    assert reply["is_error"] is True and reply["metadata"]["code"] == code and reply["text"]


def test_a_body_that_is_not_an_object(client):
    for body in (b"", b"[]", b"nonsense"):
        answer = client.request("POST", "/mcp/tools/list_sandboxes", body=body, headers={"Content-Type": "application/json"})
        assert answer.status == 400 and answer.json["code"] == "INVALID_PARAMETERS", answer


def test_tools_are_listed(client):
    reply = ok(client.get("/mcp/tools"))
    names = {t["name"] for t in reply["tools"]}
    assert reply["total_count"] == len(reply["tools"])
    assert {"create_sandbox", "list_sandboxes", "terminate_sandbox", "exec_command", "run_code", "upload_file", "write_file", "download_file",
            "read_file", "list_files", "run_generic"} <= names
    # Only languages that the host has; the others can be called, and the error says what is missing.
    there = {item["name"] for item in client.get("/api/v1/languages").json["languages"] if item["available"]}
    assert {n.removeprefix("run_") for n in names if n.startswith("run_")} - {"code", "generic"} <= there
    assert {"run_python", "run_shell", "run_code", "run_generic"} <= names
    assert all(t["inputSchema"]["additionalProperties"] is False for t in reply["tools"])


def test_a_disabled_tool_is_missing():
    d = Daemon(config="mcp: {disabled_tools: [exec_command]}\n").start()
    with d.client() as client:
        assert client.post("/mcp/tools/exec_command", {}).status == 404
        assert "exec_command" not in {t["name"] for t in ok(client.get("/mcp/tools"))["tools"]}
        with sandbox(client) as path:
            refused(client.post(f"{path}/exec", {"command": "true"}), 403, words="disabled")
            assert ok(client.post(f"{path}/code", {"code": "true", "language": "shell"}))["exit_code"] == 0
    assert d.stop() == 0, d.log()
    d.remove()


# REST: the requests of the server's own tests.


@pytest.mark.parametrize("base", API)
def test_create_get_list_delete(client, base):
    before = ok(client.get(f"{base}/sandboxes"))["total"]
    made = client.post(f"{base}/sandboxes", {"name": "test-sandbox", "image": "ubuntu:22.04", "metadata": {"team": "red"},
                                             "resources": {"cpu": "1.0", "memory": "1G"}, "unknown": "ignored"})
    reply = ok(made, 201)
    assert made.headers["API-Version"] == ("v2" if base.endswith("v2") else "v1")
    assert (reply["name"], reply["image"]) == ("test-sandbox", "ubuntu:22.04") and reply["created_at"] and reply["status"] in ("creating", "running")
    assert reply["resources"]["memory"] == "1Gi" and reply["metadata"] == {"team": "red", "name": "test-sandbox"}
    path = f"{base}/sandboxes/{reply['id']}"
    shown = ok(client.get(path))
    assert shown["id"] == reply["id"] and shown["name"] == "test-sandbox"
    listed = ok(client.get(f"{base}/sandboxes"))
    assert listed["total"] == before + 1 and reply["id"] in [s["id"] for s in listed["data"]] and listed["timestamp"]
    gone = client.request("DELETE", path)
    assert gone.status == 204 and gone.body == b""
    refused(client.get(path), 404, words="no sandbox")
    assert "not found" in client.get(path).json["error"]["message"]
    assert ok(client.get(f"{base}/sandboxes"))["total"] == before


@pytest.mark.parametrize("body, field", [
    ({"name": "x"}, "image"),
    ({"image": ""}, "image"),
    ({"image": "no-such-image"}, "image"),
    ({"image": "ubuntu:22.04", "name": "n" * 129}, "name"),
    ({"image": "ubuntu:22.04", "metadata": {"a": "x" * 20000}}, "metadata"),
    ({"image": "ubuntu:22.04", "resources": {"memory": "lots"}}, "resources.memory"),
    ({"image": "ubuntu:22.04", "environment": {"A=B": "1"}}, "environment"),
    ({"image": "ubuntu:22.04", "ttl": True}, "ttl"),
    ({"image": "ubuntu:22.04", "ttl": 0}, "ttl"),
])
def test_invalid_sandboxes_are_refused(client, body, field):
    before = ok(client.get("/api/v1/sandboxes"))["total"]
    answer = client.post("/api/v1/sandboxes", body)
    refused(answer, 404 if body.get("image") == "no-such-image" else 400)
    assert (answer.json["field"] or "").startswith(field), answer
    assert ok(client.get("/api/v1/sandboxes"))["total"] == before


@pytest.mark.parametrize("ttl", [7200, 7200.0, 7200 * 10**9, "2h"])
def test_time_to_live_in_every_form(client, ttl):
    with sandbox(client, ttl=ttl) as path:
        session = ok(client.get(f"{V1}/sessions/{path.split('/')[-1]}"))
        assert session["lifetime"] == 7200 and session["timeout"] == 7200
        assert ok(client.get(path))["expires_at"] > ok(client.get(path))["created_at"]


def test_sandboxes_of_other_dialects_are_sandboxes(client):
    session = Session(client, mode="persistent", session_id="not-by-runner")
    reply = ok(client.get("/api/v1/sandboxes/not-by-runner"))
    assert reply["name"] == "" and reply["image"] == "python-basic"
    session.act("terminate")
    refused(client.get("/api/v1/sandboxes/not-by-runner"), 404)
    assert session.delete().status == 200


@pytest.fixture
def four(client):
    """The sandboxes of the filter tests."""
    with contextlib.ExitStack() as stack:
        rows = [("prod-web", "debian:12"), ("dev-api", "python:3.9"), ("prod-db", "ubuntu:22.04"), ("test-env", "ubuntu:20.04")]
        paths = [stack.enter_context(sandbox(client, name=name, image=image)) for name, image in rows]
        for path in paths:
            host.wait_until(lambda path=path: ok(client.get(path))["status"] == "running", 20, "it runs")
        yield dict(zip((name for name, _ in rows), paths))


def names(client, query):
    return [s["name"] for s in ok(client.get(f"/api/v1/sandboxes?{query}"))["data"]]


def test_filters(client, four):
    assert sorted(names(client, "filter_name=prod")) == ["prod-db", "prod-web"]
    assert sorted(names(client, "filter_image=ubuntu")) == ["prod-db", "test-env"]
    assert names(client, "filter_image=ubuntu&filter_name=test") == ["test-env"]
    assert set(four) <= set(names(client, "filter_status=running"))
    assert names(client, "filter_status=error&filter_name=prod") == []
    assert names(client, f"filter_id={four['dev-api'].split('/')[-1]}") == ["dev-api"]


def test_sorting(client, four):
    every = sorted(four)
    assert names(client, "sort_by=name&filter_name=-") == every
    assert names(client, "sort_by=name&sort_order=desc&filter_name=-") == every[::-1]
    assert names(client, "sort_by=created_at&filter_name=-") == list(four)
    assert names(client, "filter_name=-") == list(four)[::-1]
    refused(client.get("/api/v1/sandboxes?sort_by=colour"), 400, "sort_by")
    refused(client.get("/api/v1/sandboxes?sort_order=down"), 400, "sort_order")


def test_pages(client, four):
    first = ok(client.get("/api/v1/sandboxes?filter_name=-&sort_by=name&page_size=3"))
    assert len(first["data"]) == 3 and first["total"] == 4
    assert first["pagination"] == {"page_size": 3, "page_offset": 0, "has_next": True, "has_prev": False, "next_offset": 3, "prev_offset": None}
    rest = ok(client.get("/api/v1/sandboxes?filter_name=-&sort_by=name&page_size=3&page_offset=3"))
    assert [s["name"] for s in first["data"] + rest["data"]] == sorted(four)
    assert rest["pagination"]["has_prev"] and not rest["pagination"]["has_next"]
    assert ok(client.get("/api/v1/sandboxes"))["pagination"]["page_size"] == 20
    assert ok(client.get("/api/v1/sandboxes?page_size=1000"))["pagination"]["page_size"] == 100
    for bad in ("page_size=0", "page_size=x", "page_offset=-1"):
        refused(client.get(f"/api/v1/sandboxes?{bad}"), 400, bad.split("=")[0])


# Versions.


@pytest.mark.parametrize("path, headers, version", [
    ("/api/v1/sandboxes", {}, "v1"),
    ("/api/v2/sandboxes", {}, "v2"),
    ("/api/sandboxes", {}, "v1"),
    ("/api/sandboxes", {"API-Version": "v2"}, "v2"),
    ("/api/sandboxes", {"API-Version": "2"}, "v2"),
    ("/api/sandboxes", {"Accept": "application/vnd.sandboxrunner.v2+json"}, "v2"),
    ("/api/sandboxes", {"Accept": "application/vnd.sandboxrunner.v1+json", "API-Version": "v2"}, "v1"),
    ("/api/v1/sandboxes", {"API-Version": "v999"}, "v1"),
    ("/api/v1/sandboxes", {"Accept": "application/vnd.sandboxrunner.v2+json"}, "v1"),
])
def test_versions(client, path, headers, version):
    answer = client.get(path, headers=headers)
    assert ok(answer)["version"] == version and answer.headers["API-Version"] == version


@pytest.mark.parametrize("headers, field", [
    ({"API-Version": "v3"}, "API-Version"),
    ({"API-Version": "v22"}, "API-Version"),
    ({"Accept": "application/vnd.sandboxrunner.v9+json"}, "Accept"),
])
def test_unknown_versions(client, headers, field):
    refused(client.get("/api/sandboxes", headers=headers), 400, field)


def test_features_of_the_second_version_only(client):
    with sandbox(client, "/api/v2") as path:
        short = path.replace("/v2", "")
        for what in ("logs", "metrics"):
            ok(client.get(f"{path}/{what}"))
            ok(client.get(f"{short}/{what}", headers={"API-Version": "v2"}))
            refused(client.get(f"{short}/{what}"), 404, words="version 2")
            assert client.get(f"{path.replace('v2', 'v1')}/{what}").status == 404
        body = {"action": "start", "sandbox_ids": [path.split("/")[-1]]}
        ok(client.post("/api/sandboxes:batch", body, headers={"API-Version": "v2"}))
        assert client.post("/api/sandboxes:batch", body).status == 404


# Changing, stopping, starting.


def test_put_and_patch(client):
    with sandbox(client, name="old", metadata={"a": 1, "b": 2}, environment={"X": "1", "Y": "2"}) as path:
        reply = ok(client.request("PATCH", path, body={"name": "new", "metadata": {"b": None, "c": 3}, "environment": {"X": None, "Z": "3"}}))
        assert reply["name"] == "new" and reply["metadata"] == {"a": 1, "c": 3, "name": "new"}
        assert reply["environment"] == {"Y": "2", "Z": "3"}
        reply = ok(client.request("PUT", path, body={"metadata": {"d": 4}, "environment": {"W": "0"}}))
        assert reply["name"] == "new" and reply["metadata"] == {"d": 4, "name": "new"} and reply["environment"] == {"W": "0"}
        assert ok(client.post(f"{path}/exec", {"command": "echo [$W$Y]"}))["stdout"] == "[0]\n"
        assert ok(client.request("PUT", path, body={"resources": reply["resources"]}))["name"] == "new"
        before = ok(client.get(path))
        for body, field in (({"resources": {"memory": "64Mi"}, "name": "x"}, "resources"), ({"name": 5}, "name"),
                            ({"environment": {"A=B": "1"}, "name": "x"}, "environment"), ({"metadata": [], "name": "x"}, "metadata")):
            answer = client.request("PATCH", path, body=body)
            refused(answer, 400)
            assert answer.json["field"].startswith(field)
        assert ok(client.get(path)) == before


def test_written_data_outlives_the_daemon(tmp_path):
    d = Daemon().start()
    with d.client() as client:
        made = ok(client.post("/api/v1/sandboxes", {"image": "ubuntu:22.04", "name": "kept", "metadata": {"a": 1}}), 201)
        ok(client.request("PATCH", f"/api/v1/sandboxes/{made['id']}", body={"environment": {"V": "w"}}))
    assert d.stop() == 0, d.log()
    d.start()
    with d.client() as client:
        rows = [s for s in ok(client.get("/api/v1/sandboxes"))["data"] if s["id"] == made["id"]]
        if rows:  # where boxes outlive the daemon
            assert rows[0]["name"] == "kept" and rows[0]["environment"] == {"V": "w"} and rows[0]["image"] == "ubuntu:22.04"
        session = ok(client.get(f"{V1}/sessions/{made['id']}"))
        assert session["env_vars"] == ({"V": "w"} if rows else {})  # ended sessions keep none
    assert d.stop() == 0, d.log()
    d.remove()


@needs_freezer
def test_stop_and_start(client, runner):
    with sandbox(client) as path:
        ident = path.split("/")[-1]
        assert ok(client.post(f"{path}/exec", {"command": "echo 1"}))["exit_code"] == 0
        for _ in range(2):  # idempotent
            assert ok(client.post(f"{path}/stop", {}))["status"] == "stopped"
        refused(client.post(f"{path}/exec", {"command": "true"}), 409, words=f"stopped: POST {path}/start")
        answer = runner.call("exec_command", sandbox_id=ident, command="true")
        assert answer["is_error"] and answer["metadata"]["code"] == "CONTAINER_NOT_RUNNING"
        assert ident in [s["id"] for s in ok(client.get("/api/v1/sandboxes?filter_status=stopped"))["data"]]
        for _ in range(2):
            assert ok(client.post(f"{path}/start", {}))["status"] == "running"
        assert ok(client.post(f"{path}/exec", {"command": "echo 2"}))["stdout"] == "2\n"


def test_restart_keeps_files_only(client):
    with sandbox(client) as path:
        session = path.split("/")[-1]
        run = lambda code: ok(client.post(f"{V1}/sessions/{session}/execute", {"code": code, "wait": True}))
        assert run("open('f', 'w').write('x'); a = 1")["status"] == "success"
        assert run("a")["result"] == 1
        waiting = ok(client.post(f"{V1}/sessions/{session}/execute", {"code": "while True: pass"}))["execution_id"]
        host.wait_until(lambda: ok(client.get(f"{V1}/executions/{waiting}/status"))["status"] == "running", 20, "it runs")
        assert ok(client.post(f"{path}/restart", {}))["status"] == "running"
        host.wait_until(lambda: ok(client.get(f"{V1}/executions/{waiting}/status"))["status"] == "cancelled", 20, "it was cancelled")
        after = run("import os; print(os.path.exists('f'), 'a' in globals())")
        assert after["stdout"] == "True False\n"


# Files.


def test_files(client):
    with sandbox(client) as path:
        made = ok(client.post(f"{path}/files", {"path": "/workspace/dir/test.txt", "content": "file content", "permissions": "0600"}), 201)
        assert made["path"] == "/workspace/dir/test.txt" and made["size"] == 12
        refused(client.post(f"{path}/files", {"path": "dir/test.txt", "content": "x"}), 409, words="overwrite")
        ok(client.post(f"{path}/files", {"path": "dir/test.txt", "content": "ZmlsZQ==", "encoding": "base64", "overwrite": True}), 201)
        read = ok(client.get(f"{path}/files/dir/test.txt"))
        assert read["path"] == "dir/test.txt" and read["content"] == "file" and read["encoding"] == "utf8" and read["size"] == 4
        ok(client.request("PUT", f"{path}/files/dir/test.txt", body={"content": base64.b64encode(b"\xff\0").decode(), "encoding": "base64"}))
        read = ok(client.get(f"{path}/files/dir/test.txt"))
        assert read["encoding"] == "base64" and base64.b64decode(read["content"]) == b"\xff\0"
        listed = ok(client.get(f"{path}/files?path=/"))
        assert listed["path"] == "/" and [(f["name"], f["is_dir"]) for f in listed["files"]] == [("dir", True)]
        listed = ok(client.get(f"{path}/files?path=/workspace&recursive=true"))
        assert [f["path"] for f in listed["files"]] == ["/workspace/dir", "/workspace/dir/test.txt"] and listed["total"] == 2
        assert client.request("DELETE", f"{path}/files/dir").status == 409
        assert client.request("DELETE", f"{path}/files/dir/test.txt").status == 204
        refused(client.get(f"{path}/files/dir/test.txt"), 404)
        assert client.request("DELETE", f"{path}/files/dir?recursive=true").status == 204


@pytest.mark.parametrize("bad", ["/etc/passwd", "../x", "a/../../x"])
def test_paths_outside_are_refused(client, bad):
    with sandbox(client) as path:
        refused(client.post(f"{path}/files", {"path": bad, "content": "x"}), 400, "path")
        refused(client.get(f"{path}/files?path={bad}"), 400, "path")


def test_bad_contents_are_refused(client):
    with sandbox(client) as path:
        for body, field in (({"path": "a"}, "content"), ({"content": "x"}, "path"), ({"path": "a", "content": "%", "encoding": "base64"}, "content"),
                            ({"path": "a", "content": "x", "encoding": "latin1"}, "encoding"), ({"path": "a", "content": "x", "permissions": "9"}, "permissions")):
            refused(client.post(f"{path}/files", body), 400, field)
        assert ok(client.get(f"{path}/files"))["files"] == []


# Programs.


def test_exec(client):
    with sandbox(client) as path:
        reply = ok(client.post(f"{path}/exec", {"command": "printf '%s,' \"$@\" x; cat; echo $V >&2; exit 4", "environment": {"V": "v"}, "input": "in"}))
        assert (reply["exit_code"], reply["stdout"], reply["stderr"]) == (4, "x,in", "v\n")
        assert isinstance(reply["duration"], int) and reply["duration"] > 0 and reply["timestamp"]
        reply = ok(client.post(f"{path}/exec", {"command": "printf '<%s>'", "args": ["it's", "$HOME", "a b; c", ""]}))
        assert reply["stdout"] == "<it's><$HOME><a b; c><>"
        reply = ok(client.post(f"{path}/exec", {"command": "sleep 60", "timeout": 10**9}))
        assert reply["timed_out"] and reply["exit_code"] == -1 and reply["duration"] < 30 * 10**9
        for body, field in (({}, "command"), ({"command": "true", "timeout": 301}, "timeout"), ({"command": "true", "timeout": []}, "timeout"),
                            ({"command": "true", "working_dir": "/etc"}, "working_dir")):
            refused(client.post(f"{path}/exec", body), 400, field)


def test_code(client):
    with sandbox(client) as path:
        reply = ok(client.post(f"{path}/code", {"code": "print(1)", "language": "python"}))
        assert reply["output"] == "1\n" and reply["error"] == "" and reply["exit_code"] == 0 and reply["language"] == "python"
        assert ok(client.post(f"{path}/code", {"code": "echo $0", "filename": "a.sh"}))["language"] == "shell"
        assert ok(client.post(f"{path}/code", {"code": "import os\nprint(os.getpid() > 0)"}))["output"] == "True\n"
        reply = ok(client.post(f"{path}/code", {"code": "1 / 0", "filename": "a.py"}))
        assert reply["exit_code"] == 1 and "ZeroDivisionError" in reply["error"]
        refused(client.post(f"{path}/code", {"code": "x", "language": "cobol"}), 400, "language")
        refused(client.post(f"{path}/code", {"code": "x", "language": "python", "packages": ["no-such-package-at-all"]}), 400, "packages")


def test_events(client):
    with sandbox(client) as path:
        answer = client.post(f"{path}/exec", {"command": "echo one; echo two >&2; exit 3", "stream": True})
        assert answer.status == 200 and answer.headers["Content-Type"] == "application/x-ndjson"
        events = [json.loads(line) for line in answer.body.splitlines()]
        assert {(e["event"], e.get("data")) for e in events[:-1]} == {("stdout", "one\n"), ("stderr", "two\n")}
        assert events[-1]["event"] == "end" and events[-1]["result"]["exit_code"] == 3
        answer = client.post(f"{path}/code", {"code": "print(1)", "language": "python"}, headers={"Accept": "text/event-stream"})
        assert answer.body.startswith(b"id: 1\nevent: stdout\ndata: ") and b"event: end" in answer.body
        refused(client.post(f"{path}/exec", {"stream": True}), 400, "command")
        answer = client.post("/mcp/tools/exec_command", {"sandbox_id": path.split("/")[-1], "command": "echo 1"},
                             headers={"Accept": "application/x-ndjson"})
        assert json.loads(answer.body.splitlines()[-1])["result"]["metadata"]["stdout"] == "1\n"


def test_a_disconnected_client_ends_its_command(daemon, client):
    with sandbox(client) as path:
        other = daemon.client()
        other.connection.request("POST", f"{path}/exec", body=json.dumps({"command": "echo up; sleep 300", "stream": True}),
                                 headers={"Content-Type": "application/json"})
        assert b"up" in other.connection.getresponse().readline()
        other.close()
        session = f"{V1}/sessions/{path.split('/')[-1]}"
        host.wait_until(lambda: ok(client.get(f"{session}/status"))["status"] == "cancelled", 20, "it was ended")


# Tools with an envelope.


def test_tools_are_shown_and_executed(client):
    reply = ok(client.get("/api/v1/tools?page_size=100"))
    assert reply["total"] == len(reply["data"]) > 15
    assert {"name", "description", "schema", "version", "category"} <= set(reply["data"][0])
    assert [t["name"] for t in ok(client.get("/api/v1/tools?filter_name=run_python"))["data"]] == ["run_python"]
    one = ok(client.get("/api/v2/tools/read_file"))
    assert one["category"] == "files" and one["schema"]["required"] == ["sandbox_id", "path"]
    refused(client.get("/api/v1/tools/nobody"), 404)
    with sandbox(client) as path:
        answer = ok(client.post("/api/v1/tools/exec_command/execute", {"arguments": {"sandbox_id": path.split("/")[-1], "command": "echo hi; exit 2"}}))
        assert answer["is_error"] and answer["result"].startswith("hi\n") and answer["metadata"]["exit_code"] == 2
        assert answer["execution_id"].startswith("exec_") and answer["duration"] > 0 and answer["timestamp"]
        answer = ok(client.post("/api/v1/tools/exec_command/execute", {"arguments": {"sandbox_id": path.split("/")[-1], "command": "sleep 60"},
                                                                        "options": {"timeout": 0.5}}))
        assert answer["metadata"]["timed_out"]
        answer = ok(client.post("/api/v1/tools/read_file/execute", {"arguments": {"sandbox_id": path.split("/")[-1], "path": "none"}}))
        assert answer["is_error"] and answer["metadata"]["code"] == "FILE_NOT_FOUND"
    for body, field in (({"arguments": []}, "arguments"), ({"arguments": {"bogus": 1}}, "bogus"), ({"options": {"async": True}}, "options.async"),
                        ({"options": {"retry_policy": {"max_retries": 1}}}, "options.retry_policy")):
        refused(client.post("/api/v1/tools/list_sandboxes/execute", body), 400, field)
    refused(client.post("/api/v1/tools/nobody/execute", {}), 404)


# Resources and prompts: MCP's, by REST.


def test_names_of_limits_and_what_is_granted(client):
    reply = client.post("/api/v1/sandboxes", {"image": "ubuntu:22.04", "resources": {"cpu_limit": "1.0", "memory_limit": "512MB",
                                                                                       "disk_limit": "1GB", "gpu": 1}, "colour": "red"})
    assert reply.status == 201, reply
    made = reply.json
    assert made["resources"]["memory"] == "512Mi" and made["limits"]["disk"]["granted"] == "256Mi"
    assert [w.split(":")[0] for w in made["warnings"]] == ["colour", "resources.gpu", "resources.disk"]
    assert client.request("DELETE", f"/api/v1/sandboxes/{made['id']}").status == 204


def test_resources(client):
    with sandbox(client) as path:
        ident = path.split("/")[-1]
        ok(client.post(f"{path}/files", {"path": "a b.txt", "content": "text"}), 201)
        ok(client.post(f"{path}/files", {"path": "b.bin", "content": "/w==", "encoding": "base64"}), 201)
        reply = ok(client.get("/api/v1/resources?page_size=100"))
        by_uri = {r["uri"]: r for r in reply["data"]}
        assert reply["total"] == len(reply["data"]) and f"sandbox://{ident}/a%20b.txt" in by_uri and "template://python-basic" in by_uri
        assert by_uri[f"sandbox://{ident}/a%20b.txt"]["size"] == 4 and by_uri[f"sandbox://{ident}/a%20b.txt"]["mime_type"] == "text/plain"
        read = ok(client.get(f"/api/v1/resources/sandbox://{ident}/a%2520b.txt"))
        assert (read["content"], read["encoding"], read["mime_type"]) == ("text", "utf8", "text/plain")
        read = ok(client.get(f"/api/v2/resources/sandbox%3A%2F%2F{ident}%2Fb.bin"))
        assert (read["content"], read["encoding"]) == ("/w==", "base64")
        assert json.loads(ok(client.get("/api/resources/template://python-basic"))["content"])["id"] == "python-basic"
        for bad in (f"sandbox://{ident}/nothing", "sandbox://nobody/a", "nonsense", "file:///etc/passwd"):
            refused(client.get(f"/api/v1/resources/{bad}"), 404)
    refused(client.get("/api/v1/resources?page_size=x"), 400, "page_size")


def test_prompts(client):
    reply = ok(client.get("/api/v1/prompts"))
    assert reply["total"] == 3 and {"name", "description", "arguments"} <= set(reply["data"][0])
    one = ok(client.get("/api/v2/prompts/debug_program"))
    assert [a["name"] for a in one["arguments"] if a["required"]] == ["code"] and "messages" not in one
    filled = ok(client.get("/api/v1/prompts/debug_program?code=print%281%29"))
    assert filled["messages"][0]["role"] == "user" and "print(1)" in filled["messages"][0]["content"]
    refused(client.get("/api/v1/prompts/debug_program?language=python"), 400)
    refused(client.get("/api/v1/prompts/nobody"), 404)


# Many at once.


def batch(client, action, ids, parameters=None, **options):
    return client.post("/api/v2/sandboxes:batch", {"action": action, "sandbox_ids": ids, "parameters": parameters or {}, "options": options})


def test_batch(client):
    with sandbox(client) as a, sandbox(client) as b, sandbox(client) as c:
        ids = [path.split("/")[-1] for path in (a, b, c)]
        reply = ok(batch(client, "exec", ids, {"command": "echo hi"}, max_concurrency=2))
        assert reply["summary"] == {"total": 3, "succeeded": 3, "failed": 0} and reply["timestamp"]
        assert [(r["sandbox_id"], r["success"], r["result"]["stdout"], r["error"]) for r in reply["results"]] == [(i, True, "hi\n", None) for i in ids]
        reply = ok(batch(client, "code", ids, {"code": "print(2)", "language": "python"}))
        assert [r["result"]["output"] for r in reply["results"]] == ["2\n"] * 3
        reply = ok(batch(client, "update", ids, {"name": "same"}))
        assert [r["result"]["name"] for r in reply["results"]] == ["same"] * 3
        reply = ok(batch(client, "exec", [ids[0], "nobody", *ids[1:]], {"command": "true"}, continue_on_error=True))
        assert [r["success"] for r in reply["results"]] == [True, False, True, True] and reply["summary"]["failed"] == 1
        assert reply["results"][1]["error"]["code"] == 404
        reply = ok(batch(client, "restart", ["nobody", *ids]))
        assert [r["success"] for r in reply["results"]] == [False] * 4 and "not tried" in reply["results"][3]["error"]["details"]
        reply = ok(batch(client, "delete", [*ids, ids[0]], continue_on_error=True))
        assert [r["success"] for r in reply["results"]] == [True, True, True, False]
        assert client.get(a).status == 404


@pytest.mark.parametrize("body, field", [
    ({"sandbox_ids": ["x"]}, "action"),
    ({"action": "explode", "sandbox_ids": ["x"]}, "action"),
    ({"action": "stop"}, "sandbox_ids"),
    ({"action": "stop", "sandbox_ids": []}, "sandbox_ids"),
    ({"action": "stop", "sandbox_ids": ["x"] * 101}, "sandbox_ids"),
    ({"action": "stop", "sandbox_ids": [1]}, "sandbox_ids"),
    ({"action": "exec", "sandbox_ids": ["x"]}, "parameters.command"),
    ({"action": "exec", "sandbox_ids": ["x"], "parameters": {"command": 1}}, "parameters.command"),
    ({"action": "stop", "sandbox_ids": ["x"], "options": {"max_concurrency": -1}}, "options.max_concurrency"),
])
def test_batches_refused_as_a_whole(client, body, field):
    refused(client.post("/api/v2/sandboxes:batch", body), 400, field)


def test_a_disconnected_client_ends_its_batch(daemon, client):
    with sandbox(client) as a, sandbox(client) as b:
        ids = [path.split("/")[-1] for path in (a, b)]
        other = daemon.client()
        other.connection.request("POST", "/api/v2/sandboxes:batch", headers={"Content-Type": "application/json"}, body=json.dumps(
            {"action": "exec", "sandbox_ids": ids, "parameters": {"command": "echo up; sleep 300"}, "options": {"max_concurrency": 1}}))
        state = lambda i: ok(client.get(f"{V1}/sessions/{i}/status"))["status"]
        host.wait_until(lambda: client.get(f"{V1}/sessions/{ids[0]}/status").status == 200 and state(ids[0]) == "running", 20, "the first runs")
        other.close()
        host.wait_until(lambda: state(ids[0]) == "cancelled", 20, "it was ended")
        assert client.get(f"{V1}/sessions/{ids[1]}/executions").json["total"] == 0  # never started


# Logs and metrics.


def test_logs(client):
    with sandbox(client, "/api/v2") as path:
        ok(client.post(f"{path}/exec", {"command": "echo one; echo two; echo three >&2"}))
        reply = ok(client.get(f"{path}/logs"))
        lines = [(e["source"], e["level"], e["message"]) for e in reply["logs"] if e["source"] != "system"]
        assert lines == [("stdout", "info", "one"), ("stdout", "info", "two"), ("stderr", "error", "three")]
        assert reply["sandbox_id"] == path.split("/")[-1] and reply["total"] == len(reply["logs"])
        assert ("system", "ready") in [(e["source"], e["message"]) for e in reply["logs"]]
        assert [e["timestamp"] for e in reply["logs"]] == sorted(e["timestamp"] for e in reply["logs"])
        assert reply["start_time"] == reply["logs"][0]["timestamp"] and reply["end_time"] == reply["logs"][-1]["timestamp"]
        assert [e["message"] for e in ok(client.get(f"{path}/logs?source=stdout&tail=1"))["logs"]] == ["two"]
        assert ok(client.get(f"{path}/logs?tail=0"))["logs"] == []
        refused(client.get(f"{path}/logs?source=nowhere"), 400, "source")
        refused(client.get(f"{path}/logs?tail=x"), 400, "tail")


def test_long_logs_are_cut(client):
    with sandbox(client, "/api/v2") as path:
        ok(client.post(f"{path}/exec", {"command": "seq 5000; head -c 10000 /dev/zero | tr '\\0' x; echo"}))
        reply = ok(client.get(f"{path}/logs?source=stdout&tail=100000"))["logs"]
        assert len(reply) == 1000 and reply[-1]["message"] == "x" * 4096 and reply[-2]["message"] == "5000"


def test_metrics_of_a_sandbox(client):
    with sandbox(client, "/api/v2", resources={"cpu": "1", "memory": "128Mi", "disk": "16Mi"}) as path:
        ok(client.post(f"{path}/exec", {"command": "true"}))
        reply = ok(client.get(f"{path}/metrics"))
        assert reply["sandbox_id"] == path.split("/")[-1] and reply["uptime"] > 0 and reply["last_updated"]
        assert reply["memory"]["total"] == 128 << 20 and reply["disk"]["total"] == 16 << 20 and reply["cpu"]["cores"] == 1
        assert reply["network"]["bytes_sent"] == 0 and reply["memory"]["swap"]["total"] == 0


# The daemon itself.


def test_health_info_metrics(client):
    reply = ok(client.get("/health"))
    assert reply["status"] == "ok" and reply["version"] and reply["uptime"] >= 0 and reply["timestamp"]
    assert ok(client.get("/info"))["endpoints"]["tools"] == "/mcp/tools"
    reply = ok(client.get("/metrics", headers={"Accept": "application/json"}))
    assert {"requests_total", "average_duration_us", "active_connections", "websocket_connections", "errors_total", "bytes_served",
            "compression_ratio", "timestamp"} <= set(reply)


def test_description_and_page(client):
    reply = client.get("/api/openapi.json")
    assert ok(reply)["paths"] and reply.json["components"] and reply.headers["Content-Type"] == "application/json"
    page = client.get("/api/docs")
    assert page.status == 200 and page.headers["Content-Type"] == "text/html"
    text = page.body.decode()
    assert "Swagger" in text and "/api/openapi.json" in text and "<script" not in text
    for path in reply.json["paths"]:
        assert f"<code>{path}</code>" in text


def test_missing_objects(client):
    assert client.get("/api/v1/nonexistent").status == 404
    refused(client.get("/api/v2/nonexistent"), 404)
    refused(client.request("TRACE", "/api/v1/sandboxes"), 405)
    answer = client.post("/api/v1/sandboxes", b"invalid json", headers={"Content-Type": "application/json"})
    refused(answer, 400)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", answer.json["request_id"])
