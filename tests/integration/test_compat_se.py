# SPDX-License-Identifier: Apache-2.0
"""What the shared environment server's own tests and client check (docs/compatibility.md), for /workspace/se."""

import base64
import itertools
import json
import urllib.parse
import uuid

import pytest

from support.sessions import V1, needs_freezer

pytestmark = pytest.mark.phases("system")

SE = "/workspace/se"
names = itertools.count(1)


@pytest.fixture
def se(client):
    """The client, and an unused name; its environment ends with the test."""

    class Environment:
        def __init__(self):
            self.id = f"shared_{next(names)}"

        def get(self, verb, rest="", **kw):
            return client.get(f"{SE}/{verb}/{self.id}{rest}", **kw)

        def post(self, verb, body, rest="", **kw):
            return client.post(f"{SE}/{verb}/{self.id}{rest}", body, **kw)

        def upload(self, name, data, field="file"):
            edge = "edge-of-the-form"
            body = (f'--{edge}\r\nContent-Disposition: form-data; name="other"\r\n\r\nx\r\n--{edge}\r\n'
                    f'Content-Disposition: form-data; name="{field}"; filename="sent.bin"\r\n'
                    "Content-Type: application/octet-stream\r\n\r\n").encode() + data + f"\r\n--{edge}--\r\n".encode()
            query = f"?filename={urllib.parse.quote(name)}" if name else ""
            return client.post(f"{SE}/upload/{self.id}{query}", body,
                               headers={"Content-Type": f"multipart/form-data; boundary={edge}"})

    made = Environment()
    made.client = client
    yield made
    client.request("DELETE", f"{SE}/session/{made.id}")


def ok(answer):
    assert answer.status == 200, answer
    return answer.json


# The server's thirteen


def test_healthy(client):
    answer = ok(client.get(f"{SE}/healthy"))
    assert answer == {"status": "success", "result": "ok"}
    assert ok(client.get(f"{SE}/health"))["status"] == "healthy"


def test_create(se):
    answer = ok(se.post("session", {"size": "100M"}))
    assert answer["session_id"] == answer["result"] == se.id


def test_create_twice(se):
    ok(se.post("session", {"size": "100M"}))
    answer = se.post("session", {"size": "100M"})
    assert answer.status == 400 and "Session already exists" in answer.body.decode()
    assert answer.json["type"] == "SandboxError" and "Session already exists" in answer.json["detail"]


@pytest.mark.smoke
def test_create_file_and_list(se):
    answer = ok(se.post("create", {"content": "hello", "filename": "a/b.txt"}))
    assert answer["filename"] == "a/b.txt" and answer["size"] == 5 and answer["result"]["size"] == 5
    (folder,) = ok(se.get("files"))["files"]
    assert folder["name"] == folder["filename"] == "a" and folder["type"] == "directory"
    listed = ok(se.get("files", "?recursive=true"))["result"]["files"]
    assert [(f["name"], f["size"], f["type"]) for f in listed] == [("a", listed[0]["size"], "directory"), ("a/b.txt", 5, "file")]
    assert [f["name"] for f in ok(se.get("files", "/a?recursive=false"))["files"]] == ["b.txt"]


def test_command(se):
    answer = ok(se.post("execute", {"command": "echo", "args": ["hello", "it's"]}))
    assert answer["stdout"] == "hello it's\n" and answer["returncode"] == answer["exit_code"] == 0
    assert answer["result"]["stdout"] == "hello it's\n"
    assert ok(se.post("execute", {"command": "sh", "args": ["-c", "echo e >&2; exit 7"]}))["returncode"] == 7
    assert ok(se.post("execute", {"command": "no-such-program"}))["returncode"] == 127
    assert ok(se.post("execute", {"command": "echo one | tr a-z A-Z"}))["stdout"] == "ONE\n"


def test_code(se):
    answer = ok(se.post("execute_code", {"code": "print(1 + 2)"}))
    assert answer["stdout"] == "3\n" and answer["exit_code"] == 0
    answer = ok(se.post("execute_code", {"code": "echo $1; exit 4", "script_type": "shell", "args": ["x"]}))
    assert answer["stdout"] == "x\n" and answer["returncode"] == 4
    assert "ZeroDivisionError" in ok(se.post("execute_code", {"code": "1/0"}))["stderr"]


def test_upload_and_download(se):
    data = bytes(range(256)) * 100 + b"\r\n--edge-of-the-for"
    assert ok(se.upload("dir/up.bin", data))["size"] == len(data)
    answer = se.get("download", "/dir/up.bin")
    assert answer.status == 200 and answer.body == data
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert ok(se.upload("", b""))["filename"] == "sent.bin"
    assert se.get("download", "/sent.bin").body == b""
    assert se.get("download", "/missing").status == 404
    assert se.get("download", "/dir").status == 400
    assert se.upload("x", b"y", field="wrong").status == 400


def test_large_uploads_are_streamed(se):
    data = bytes(range(256)) * (20 << 12)  # more than a collected body may have
    assert ok(se.upload("large.bin", data))["size"] == len(data)
    assert ok(se.post("execute", {"command": "stat", "args": ["-c", "%s", "large.bin"]}))["stdout"] == f"{len(data)}\n"
    assert se.upload("../x", data).status == 400
    assert [f["name"] for f in ok(se.get("files"))["files"]] == ["large.bin"]


def test_read(se):
    text = "0123456789" * 1000
    ok(se.post("create", {"content": text, "filename": "long.txt"}))
    answer = ok(se.get("readfile", "/long.txt"))
    assert answer == {"content": text[:4096], "is_binary": False, "offset": 4096, "size": 10000, "is_eof": False,
                      "result": answer["result"]}
    answer = ok(se.get("readfile", "/long.txt?offset=9990&buffer_size=100"))
    assert (answer["content"], answer["offset"], answer["is_eof"]) == ("0123456789", 10000, True)
    answer = ok(se.get("readfile", "/long.txt?offset=20000"))
    assert (answer["content"], answer["is_eof"]) == ("", True)


def test_status(se):
    assert se.get("status").status == 404
    ok(se.post("session", {}))
    ok(se.post("create", {"content": "x", "filename": "one"}))
    answer = ok(se.get("status"))
    assert answer["id"] == se.id and answer["exists"] is True and answer["is_mounted"] is True
    assert answer["mount_point"] and answer["created_at"] and answer["files"][0]["filename"] == "one"
    assert answer["files"][0]["modified_at"]


def test_errors(se):
    ok(se.post("session", {}))
    assert se.get("readfile", "/missing.txt").status == 404
    for bad in ("/..%2Fx", "/../x", "/a/../b", "/%2e%2e/x", "/.."):
        answer = se.get("readfile", bad)
        assert answer.status == 400 and "detail" in answer.json, (bad, answer)


def test_delete(se):
    ok(se.post("create", {"content": "x", "filename": "one"}))
    answer = se.client.request("DELETE", f"{SE}/session/{se.id}")
    assert ok(answer)["status"] == "success"
    assert se.get("status").status == 404
    assert se.client.request("DELETE", f"{SE}/session/{se.id}").status == 404
    assert ok(se.get("files"))["files"] == []  # a new session


def test_cleanup_all(se, client, make):
    other = make()
    ok(se.post("session", {}))
    ok(se.post("execute", {"command": "true"}))
    assert se.id in ok(client.get(f"{SE}/workspaces"))["workspaces"]
    answer = ok(client.post(f"{SE}/cleanup-all", {"force": False}))
    assert answer["total"] >= 1 and answer["success"] >= 1 and answer["failed"] == [] and answer["skipped"] == []
    assert ok(client.get(f"{SE}/workspaces"))["workspaces"] == {}
    assert se.get("status").status == 404
    assert other.info()["state"] in ("creating", "ready")  # sessions of other dialects are not affected


# Its client


def test_environments_are_made_when_first_named(se):
    assert ok(se.post("execute_code", {"code": "open('f', 'w').write('kept')"}))["exit_code"] == 0
    assert ok(se.post("execute", {"command": "cat", "args": ["f"]}))["stdout"] == "kept"
    workspace = ok(se.client.get(f"{SE}/workspaces"))["workspaces"][se.id]
    assert workspace["mount_point"] and workspace["created_at"]


def test_only_files_persist(se):
    ok(se.post("execute_code", {"code": "x = 1\nimport os; os.environ['Y'] = '1'"}))
    answer = ok(se.post("execute_code", {"code": "import os\nprint('x' in globals(), 'Y' in os.environ)"}))
    assert answer["stdout"] == "False False\n"


def test_scripts_have_names(se):
    ok(se.post("execute_code", {"code": "print(1)", "filename": "mine"}))
    ok(se.post("execute_code", {"code": "echo 1", "filename": "d/mine.sh", "script_type": "shell"}))
    ok(se.post("execute_code", {"code": "print(2)"}))
    listed = {f["name"] for f in ok(se.get("files", "?recursive=True"))["files"]}
    assert {"mine.py", "d/mine.sh"} <= listed and any(n.startswith("script_") and n.endswith(".py") for n in listed)
    assert se.post("execute_code", {"code": "1", "filename": "../x"}).status == 400


def test_variables_can_be_read_after_the_run(se):
    code = "a = 1\nb = {'k': [1.5]}\nclass C:\n    def __str__(self): return 'cee'\nc = C()\nprint('out')"
    answer = ok(se.post("execute_code", {"code": code, "output_params": ["a", "b", "c", "missing"]}))
    assert answer["output_variables"] == {"a": 1, "b": {"k": [1.5]}, "c": "cee"} and answer["stdout"] == "out\n"
    assert "output_variables" not in ok(se.post("execute_code", {"code": code}))
    assert ok(se.post("execute_code", {"code": "1/0", "output_params": ["a"]}))["output_variables"] == {}
    assert se.post("execute_code", {"code": "A=1", "script_type": "shell", "output_params": ["A"]}).status == 400


def test_logs_of_the_server_are_not_listed(se):
    for name in ("stdout.log", "stderr.log", "other.log"):
        ok(se.post("create", {"content": "", "filename": name}))
    assert [f["name"] for f in ok(se.get("files"))["files"]] == ["other.log"]


def test_modes_are_decimal(se):
    ok(se.post("create", {"content": "echo ran", "filename": "x.sh", "mode": 0o755}))
    assert ok(se.post("execute", {"command": "stat", "args": ["-c", "%a", "x.sh"]}))["stdout"] == "755\n"
    ok(se.post("create", {"content": "", "filename": "y"}))
    assert ok(se.post("execute", {"command": "stat", "args": ["-c", "%a", "y"]}))["stdout"] == "644\n"
    for mode in (-1, 0o1777, "0644"):
        assert se.post("create", {"content": "", "filename": "z", "mode": mode}).status == 400


def test_binary_files_are_base64(se):
    ok(se.upload("b.bin", b"\xff\x00\x01"))
    answer = ok(se.get("readfile", "/b.bin"))
    assert answer["is_binary"] is True and base64.b64decode(answer["content"]) == b"\xff\x00\x01"
    ok(se.upload("not.txt", b"\xff\xfe"))
    assert ok(se.get("readfile", "/not.txt"))["is_binary"] is True


def test_characters_are_not_cut(se):
    ok(se.post("create", {"content": "aé€😀" * 10, "filename": "u.txt"}))
    got, offset = "", 0
    while True:
        answer = ok(se.get("readfile", f"/u.txt?offset={offset}&buffer_size=7"))
        got, offset = got + answer["content"], answer["offset"]
        if answer["is_eof"]:
            break
    assert got == "aé€😀" * 10


@pytest.mark.parametrize("name, kind", [
    ("a.html", "text/html"), ("a.txt", "text/plain"), ("a.md", "text/markdown"), ("a.json", "application/json"),
    ("a.xml", "application/xml"), ("a.csv", "text/csv"), ("a.png", "image/png"), ("a.JPG", "image/jpeg"),
    ("a.gif", "image/gif"), ("a.webp", "image/webp"), ("a.svg", "image/svg+xml"), ("a.ico", "image/x-icon")])
def test_previews(se, name, kind):
    ok(se.post("create", {"content": "<x>", "filename": name}))
    path = f"{SE}/files/preview/{se.id}/{name}"
    answer = se.client.get(path + f"?sid={se.id}")
    assert answer.status == 200 and answer.body == b"<x>" and answer.headers["Content-Type"].startswith(kind)
    assert answer.headers["Content-Security-Policy"] == "sandbox" and answer.headers["X-Content-Type-Options"] == "nosniff"
    assert se.client.get(path).status == 400
    assert se.client.get(f"{SE}/files/preview/{se.id}/{name}.exe?sid=x").status == 400


def test_a_script_has_its_own_name(se):
    code = "import sys\nprint(sys.argv, __file__)\ndef f():\n    raise ValueError('no')\nf()"
    done = ok(se.post("execute_code", {"code": code, "filename": "sub/mine.py", "args": ["a"]}))
    assert done["stdout"] == "['sub/mine.py', 'a'] /workspace/sub/mine.py\n"
    assert done["returncode"] == 1 and 'File "sub/mine.py", line 5, in <module>\n    f()' in done["stderr"]
    assert "main.py" not in done["stderr"] and "\x00" not in done["stderr"] and '{"name"' not in done["stderr"]
    done = ok(se.post("execute_code", {"code": "x = (", "filename": "mine"}))
    assert 'File "mine.py", line 1' in done["stderr"]
    done = ok(se.post("execute_code", {"code": "import sys; print(sys.argv[0])"}))
    assert done["stdout"].startswith("script_") and done["stdout"].endswith(".py\n")


def test_a_shell_script_has_its_own_name(se):
    done = ok(se.post("execute_code", {"code": 'echo "$0" "$1"\nno-such-command', "filename": "mine.sh", "script_type": "shell", "args": ["a b"]}))
    assert done["stdout"] == "mine.sh a b\n" and done["stderr"].startswith("mine.sh: line 2: no-such-command") and done["returncode"] == 127


def test_unknown_fields_are_ignored(se):
    made = ok(se.post("session", {"size": "50M", "allow_network": False, "cpu_quota": 2}))
    assert [w.split(":")[0] for w in made["warnings"]] == ["allow_network", "cpu_quota"]
    assert ok(se.post("execute", {"command": "true", "whatever": 1}))["warnings"] == ["whatever: ignored: no such field"]
    assert "warnings" not in ok(se.post("execute", {"command": "true"}))


def test_a_timeout_above_the_maximum_is_cut_and_told(se):
    done = ok(se.post("execute_code", {"code": "print(1)", "timeout": 3601}))
    assert done["stdout"] == "1\n" and done["warnings"][0].startswith("timeout: 3601 was requested, 3600 is granted: ")


def test_a_workspace_above_the_maximum_is_cut_and_told(se):
    made = ok(se.post("session", {"size": "100GB"}))
    assert len(made["warnings"]) == 1 and made["warnings"][0].startswith("resources.disk: 100Gi was requested, 4Gi is granted: ")


@pytest.mark.parametrize("verb, body", [
    ("session", {"size": "x"}), ("session", {"size": -1}), ("execute", {}), ("execute", {"command": 1}),
    ("execute", {"command": "a", "args": "x"}), ("execute", {"command": "a", "args": [{}]}), ("execute_code", {}),
    ("execute_code", {"code": 1}), ("execute_code", {"code": "1", "script_type": "ruby"}),
    ("execute_code", {"code": "1", "output_params": "a"}), ("execute_code", {"code": "1", "timeout": 0}),
    ("create", {"content": "x"}), ("create", {"filename": "x"}), ("create", {"content": "x", "filename": ""}),
    ("create", {"content": "x", "filename": "."}), ("download_from_efast", {"file_params": []})])
def test_bad_requests_create_nothing(se, verb, body):
    answer = se.post(verb, body)
    assert answer.status == 400 and answer.json["error_code"] == "Sandbox.InvalidParameter", answer
    assert isinstance(answer.json["detail"], str) and answer.json["detail"] == answer.json["message"]
    assert set(answer.json) >= {"type", "message", "detail", "description", "error_detail", "solution"}


def test_time_runs_out(se):
    answer = ok(se.post("execute_code", {"code": "import time; print('in', flush=True); time.sleep(60)", "timeout": 3}))
    assert answer["returncode"] == 124 and answer["stdout"] == "in\n" and answer["status"] == "timeout"
    assert ok(se.post("execute", {"command": "true"}))["returncode"] == 0


def test_memory_runs_out(se):
    code = "b = []\nwhile True: b.append(bytearray(1 << 24))"
    assert ok(se.post("execute_code", {"code": code, "timeout": 60}))["returncode"] in (137, 1)


def test_an_unreachable_document_store_is_reported(se):
    body = {"file_params": [{"docid": "d1"}, {"docid": "d2"}], "efast_url": "http://x", "save_path": "in", "token": "t"}
    answer = ok(se.post("download_from_efast", body))
    assert (answer["success_count"], answer["failed_count"], answer["total_count"]) == (0, 2, 2)
    assert [r["docid"] for r in answer["results"]] == ["d1", "d2"] and not any(r["success"] for r in answer["results"])
    assert answer["results"][0]["error"] and answer["save_path"] == "in" and answer["message"]


def test_sizes_are_kept(se):
    ok(se.post("session", {"size": "20M"}))
    code = "import os; s = os.statvfs('.'); print(s.f_blocks * s.f_frsize)"
    assert ok(se.post("execute_code", {"code": code}))["stdout"] == f"{20 << 20}\n"


def test_an_environment_is_a_session(se, client):
    ok(se.post("session", {}))
    info = client.get(f"{V1}/sessions/{se.id}").json
    assert info["mode"] == "persistent" and info["resources"]["disk"] == "100Mi"


def test_the_dialect_is_described(client):
    assert client.get("/api.json").json["paths"][f"{SE}/session/{{id}}"]


# Paths

GOOD = ["a", "a.txt", "./a", "a/b/c", "a//b", "a/", "/a", "//a", "/etc/passwd", "a b", "ünï", "文件", ".hidden", "...", "..a", "a..",
        "a..b", "a.b.c", "-x", "~", "a/./b", "x" * 255, "'q'", "%"]
BAD = ["..", "../a", "a/..", "a/../b", "./..", "./../a", "/..", "/../a", "//../a", "a/b/../../c", "a/..//b", "../../etc/passwd",
       "a/b/..", "x/../../y", "..//", "../", "./a/../b", "x" * 256, "/".join("a" * 40)]


@pytest.mark.parametrize("path", GOOD)
def test_good_paths_stay_inside(se, path):
    ok(se.post("create", {"content": "here", "filename": path}))
    assert ok(se.get("readfile", "/" + urllib.parse.quote(path, safe="")))["size"] == 4
    inside = path.strip("/").replace("//", "/")
    answer = ok(se.post("execute", {"command": "cat", "args": ["--", inside]}))
    assert answer["stdout"] == "here", answer


@pytest.mark.parametrize("path", BAD)
def test_bad_paths_are_refused_everywhere(se, path):
    quoted = urllib.parse.quote(path, safe="")
    assert se.post("create", {"content": "x", "filename": path}).status == 400
    assert se.upload(path, b"x").status == 400
    assert se.post("execute_code", {"code": "1", "filename": path}).status == 400
    for verb in ("readfile", "download", "files", "files/preview"):
        assert se.get(verb, f"/{quoted}?sid=x").status == 400, verb


def test_reading_creates_no_session(client):
    name = f"unknown{uuid.uuid4().hex}"
    assert ok(client.get(f"{SE}/files/{name}"))["files"] == []
    for verb in ("readfile", "download", "files", "files/preview"):
        assert client.get(f"{SE}/{verb}/{name}/a.txt?sid=x").status == 404, verb
    client.request("HEAD", f"{SE}/download/{name}/a.txt")
    assert client.get(f"/api/v1/sessions/{name}").status == 404
    assert name not in client.get(f"{SE}/workspaces").body.decode()


# The second version


def v2(client, code, event=None, **more):
    return client.post(f"{SE}/v2/execute_code", {"handler_code": code, "event": event or {}, "context": {}, **more})


def test_a_handler_is_called(client):
    answer = ok(v2(client, "def handler(event, context):\n    print('o')\n    return {'got': event}", {"a": 1}, extra=1))
    assert answer["stdout"] == "o\n" and answer["stderr"] == "" and answer["result"] == {"got": {"a": 1}}
    assert set(answer["metrics"]) >= {"duration_ms", "memory_peak_mb", "cpu_time_ms", "timeout_seconds"}
    assert answer["metrics"]["timeout_seconds"] == 300


@pytest.mark.parametrize("code, status, error", [
    ("def handler(event): 1 / 0", 500, "Sandbox.ExecException"), ("def handler(event): return object()", 500, "Sandbox.ExecException"),
    ("x = 1", 400, "Sandbox.InvalidParameter"), ("def handler(", 400, "Sandbox.InvalidParameter"), ("", 400, "Sandbox.InvalidParameter"),
    ("def handler(event): import os; os._exit(5)", 500, "Sandbox.ExecException")])
def test_failures_of_a_handler(client, code, status, error):
    answer = v2(client, code)
    assert answer.status == status, answer
    detail = answer.json["detail"]
    assert detail["error_code"] == error and detail["description"] and detail["error_detail"] and detail["solution"]


def test_a_handler_that_times_out(client):
    answer = v2(client, "import time\ndef handler(event): time.sleep(60)", {"__timeout": 1})
    assert answer.status == 500 and answer.json["detail"]["error_code"] == "Sandbox.ExecTimeout"
    assert answer.json["detail"]["metrics"]["timed_out"] is True


@pytest.mark.parametrize("fields", [{"event": []}, {"context": {"memory_limit_in_mb": 1}}, {"context": 5}, {"handler_code": 5}])
def test_bad_calls(client, fields):
    answer = client.post(f"{SE}/v2/execute_code", {"handler_code": "def handler(e): pass", **fields})
    assert answer.status == 400 and answer.json["detail"]["error_code"] == "Sandbox.InvalidParameter"


def test_bodies_that_are_not_json(client):
    answer = client.post(f"{SE}/v2/execute_code", "{", headers={"Content-Type": "application/json"})
    assert answer.status == 400 and json.loads(answer.body)["detail"]["error_code"] == "Sandbox.InvalidParameter"


@needs_freezer
def test_a_waiter_learns_that_the_session_is_paused(se, client):
    ok(se.post("execute_code", {"code": "1"}))
    path = f"{V1}/sessions/{se.id}"
    assert client.post(f"{path}/pause", {}).status == 200
    for verb, body in (("execute_code", {"code": "1"}), ("execute", {"command": "true"})):
        answer = se.post(verb, body)
        assert answer.status == 409 and f"is paused, so the result would not come: resume it with POST {path}/resume" in answer.json["detail"], answer
    assert client.post(f"{path}/resume", {}).status == 200
    assert ok(se.post("execute_code", {"code": "print(2)"}))["stdout"] == "2\n"


@needs_freezer
def test_a_paused_environment_is_a_conflict_that_is_described(se):
    """All that use its files or run programs; control: the same requests before."""
    from support.openapi import Description, check_answer

    calls = {"seStatus": ("GET", "status", "", None), "seFiles": ("GET", "files", "", None), "seFilesBelow": ("GET", "files", "/d", None),
             "seDownload": ("GET", "download", "/d/a.txt", None), "sePreview": ("GET", "files/preview", "/d/a.txt?sid=x", None),
             "seReadfile": ("GET", "readfile", "/d/a.txt", None), "seCreate": ("POST", "create", "", {"content": "x", "filename": "d/b"}),
             "seExecute": ("POST", "execute", "", {"command": "true"}), "seExecuteCode": ("POST", "execute_code", "", {"code": "1"})}
    operations = {operation.id: operation for operation in Description.of(se.client).operations()}
    ok(se.post("create", {"content": "hello", "filename": "d/a.txt"}))

    def statuses():
        answers = {name: se.client.request(method, path_of(verb, rest), body=body) for name, (method, verb, rest, body) in calls.items()}
        answers["seUpload"] = se.upload("u", b"x")
        for name, answer in answers.items():
            if answer.status != 200:
                check_answer(operations[name], answer)
        return {answer.status for answer in answers.values()}

    def path_of(verb, rest):
        return f"{SE}/{verb}/{se.id}{rest}"

    assert statuses() == {200}
    assert se.client.post(f"{V1}/sessions/{se.id}/pause", {}).status == 200
    assert statuses() == {409}
    assert se.client.post(f"{V1}/sessions/{se.id}/resume", {}).status == 200
