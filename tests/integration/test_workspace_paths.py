# SPDX-License-Identifier: Apache-2.0
"""Programs see their files in /workspace: every interface accepts that name, and means the same file by "x"."""

import pytest

from support.mcp import Mcp
from test_cli import millibox

pytestmark = pytest.mark.phases("system")

V1, SE = "/api/v1", "/workspace/se"
JSON = {"Content-Type": "application/json"}


def ok(answer):
    assert answer.status in (200, 201, 204), answer
    return answer


def test_control_plane(client, py):
    files = f"{py.path}/files"
    ok(client.request("PUT", f"{files}//workspace/d/x", b"1"))
    assert client.get(f"{files}/d/x").body == client.get(f"{files}//workspace/d/x").body == b"1"
    assert [f["name"] for f in client.get(f"{files}?path=/workspace/d").json["files"]] == ["x"]
    assert [f["name"] for f in client.get(f"{files}?path=/workspace").json["files"]] == ["d"]
    ok(client.post(f"{files}/mkdir", {"path": "/workspace/e"}))
    ok(client.post(f"{files}/move", {"path": "/workspace/d/x", "to": "/workspace/e/y"}))
    ok(client.request("DELETE", f"{files}//workspace/e/y"))
    result = py.run("print(open('/workspace/given').read())", files={"/workspace/given": "2"})
    assert result["stdout"] == "2\n"
    assert client.python("print(open('given').read())", files={"/workspace/given": "3"})["stdout"] == "3\n"
    collides = client.post(f"{V1}/execute", {"language": "python", "code": "1", "files": {"a": "1", "/workspace/a": "2"}})
    assert collides.status == 400 and "collides" in collides.json["error_detail"]


@pytest.mark.parametrize("path", ["/etc/passwd", "/workspaces/x", "/workspace/../x"])
def test_other_absolute_paths_are_refused(client, py, path):
    answer = client.get(f"{py.path}/files/{path}")
    assert answer.status == 400 and answer.json["field"] == "path"
    answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", "files": {path: "1"}})
    assert answer.status == 400 and answer.json["field"].startswith("files")


def test_shared_environment(client):
    where = "paths_of_workspace"
    try:
        ok(client.post(f"{SE}/create/{where}", {"content": "here", "filename": "/workspace/d/x"}))
        assert ok(client.get(f"{SE}/download/{where}/d/x")).body == b"here"
        assert ok(client.get(f"{SE}/readfile/{where}//workspace/d/x")).json["size"] == 4
        assert "x" in ok(client.get(f"{SE}/files/{where}//workspace/d")).body.decode()
        assert ok(client.post(f"{SE}/execute/{where}", {"command": "cat", "args": ["/workspace/d/x"]})).json["stdout"] == "here"
    finally:
        client.request("DELETE", f"{SE}/session/{where}")


def test_sandboxes(client):
    path = f"{V1}/sandboxes"
    sandbox = ok(client.post(path, {"image": "python-basic"})).json["id"]
    files = f"{path}/{sandbox}/files"
    try:
        ok(client.post(files, {"path": "/workspace/d/x", "content": "here"}))
        assert ok(client.get(f"{files}/d/x")).json["content"] == ok(client.get(f"{files}//workspace/d/x")).json["content"] == "here"
        ok(client.request("DELETE", f"{files}//workspace/d/x"))
    finally:
        client.request("DELETE", f"{path}/{sandbox}")


def test_mcp(daemon):
    with Mcp(daemon.socket) as mcp:
        sandbox = mcp.call("create_sandbox")["structuredContent"]["sandbox_id"]
        assert not mcp.call("write_file", sandbox_id=sandbox, path="/workspace/workspace/x", content="deep")["isError"]
        assert not mcp.call("write_file", sandbox_id=sandbox, path="x", content="here")["isError"]
        for path, content in {"/workspace/x": "here", "x": "here", "workspace/x": "deep", "/workspace/workspace/x": "deep"}.items():
            result = mcp.call("read_file", sandbox_id=sandbox, path=path)
            assert content in result["content"][0]["text"], (path, result)
        assert mcp.call("read_file", sandbox_id=sandbox, path="/etc/passwd")["isError"]
        mcp.call("terminate_sandbox", sandbox_id=sandbox)


def test_command_line(daemon, py):
    def cli(verb, *words, **kw):
        done = millibox("file", verb, "--socket", daemon.socket, py.id, *words, **kw)
        assert done.returncode == 0, done
        return done.stdout

    cli("put", "-", "/workspace/d/x", stdin=b"here")
    assert cli("get", "/workspace/d/x") == cli("get", "d/x") == b"here"
    assert cli("ls", "/workspace") == cli("ls")
    assert b"d/x" in cli("stat", "/workspace/d/x")
    cli("mkdir", "/workspace/e")
    cli("mv", "/workspace/d/x", "/workspace/e/x")
    cli("rm", "-r", "/workspace/e")
    done = millibox("run", "--socket", daemon.socket, "-f", "/workspace/in=/dev/null", "-l", "shell", "-c", "ls")
    assert done.stdout == b"in\n"
