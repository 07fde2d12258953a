# SPDX-License-Identifier: Apache-2.0
"""What the control plane's own tests check (docs/compatibility.md)."""

import concurrent.futures
import contextlib
import re
import time

import pytest

from support import host
from support.client import Client
from support.sessions import V1

pytestmark = pytest.mark.phases("system")

STDLIB = ("json re math datetime collections itertools functools random string hashlib base64 uuid os sys io time "
          "decimal fractions statistics textwrap csv pathlib tempfile typing enum dataclasses").split()


@pytest.fixture
def session(make):
    """As its clients create one: without a mode."""
    return make(mode=None)


def by_name(session, verb="execute-sync"):
    return f"{V1}/executions/sessions/{session.id}/{verb}"


def sync(session, code, query="", **fields):
    body = {"code": code, "language": "python", "event": {}, **fields}
    answer = session.client.post(by_name(session) + query, body)
    assert answer.status == 200, answer
    return answer.json


# The contract


def test_a_session_is_created(client):
    answer = client.post(f"{V1}/sessions", {"timeout": 300, "resources": {"cpu": "1", "memory": "512Mi", "disk": "256Mi"}})
    assert answer.status == 201
    made = answer.json
    assert re.fullmatch(r"sess_[a-z0-9]{16}", made["session_id"]) and made["status"] == "creating"
    assert made["id"] == made["session_id"] and made["timeout"] == 300
    got = client.get(f"{V1}/sessions/{made['session_id']}").json
    for field in ("template_id", "status", "runtime_type", "runtime_node", "container_id", "pod_name", "workspace_path",
                  "resources", "env_vars", "timeout", "created_at", "updated_at", "resource_limit", "language_runtime",
                  "last_activity_at", "completed_at", "requested_dependencies", "installed_dependencies",
                  "dependency_install_status", "dependency_install_error", "dependency_install_started_at",
                  "dependency_install_completed_at"):
        assert field in got, field
    assert set(got["resources"]) >= {"cpu", "memory", "disk", "max_processes"}
    gone = client.request("DELETE", f"{V1}/sessions/{made['session_id']}")
    assert gone.status == 200 and gone.json["message"]


def test_an_unknown_session_has_its_own_error(client):
    for path in ("", "/executions", "/status", "/result"):
        answer = client.get(f"{V1}/sessions/sess_0000000000000000{path}")
        assert answer.status == 404 and answer.json["error_code"] == "Sandbox.SessionNotFound"
        assert answer.json["description"] and answer.json["error_detail"] and answer.json["solution"]
    assert client.request("DELETE", f"{V1}/sessions/sess_0000000000000000").status == 404
    answer = client.get(f"{V1}/executions/exec_20260101_00000000")
    assert answer.status == 404 and answer.json["error_code"] == "Sandbox.ExecutionNotFound"


def test_sessions_are_listed_in_both_forms(client, make):
    for _ in range(3):
        make(mode="ephemeral")
    page = client.get(f"{V1}/sessions?limit=2").json
    assert page["sessions"] == page["items"] and len(page["items"]) == 2
    assert page["total"] >= 3 and page["limit"] == 2 and page["offset"] == 0 and page["has_more"] is True
    assert client.get(f"{V1}/sessions?limit=300").json["limit"] == 200


@pytest.mark.smoke
def test_an_execution_is_submitted(session):
    answer = session.client.post(f"{session.path}/execute", {"code": "print(1)", "language": "python"})
    assert answer.status == 200 and answer.json["status"] in ("pending", "submitted") and answer.json["submitted_at"]
    ident = answer.json["execution_id"]
    assert re.fullmatch(r"exec_[0-9]{8}_[a-z0-9]{8}", ident)
    result = session.result(ident)
    for field in ("execution_id", "status", "stdout", "stderr", "exit_code", "execution_time", "return_value", "artifacts",
                  "id", "session_id", "code", "language", "timeout", "error_message", "retry_count", "created_at",
                  "started_at", "completed_at"):
        assert field in result, field
    assert set(result["metrics"]) >= {"duration_ms", "cpu_time_ms", "peak_memory_mb", "io_read_bytes", "io_write_bytes"}
    status = session.client.get(f"{V1}/executions/{ident}/status").json
    assert set(status) >= {"execution_id", "session_id", "status", "created_at", "completed_at"}
    assert status["status"] == status["state"] == "completed" and result["status"] == "success"
    page = session.client.get(f"{session.path}/executions").json
    assert page["executions"] == page["items"] and page["total"] == 1


def test_null_is_absent(client, session):
    """Clients send what they were not given as null."""
    made = client.post(f"{V1}/sessions", {"template_id": "python-basic", "resources": None, "env_vars": None, "timeout": None, "dependencies": None})
    assert made.status == 201, made
    client.request("DELETE", f"{V1}/sessions/{made.json['session_id']}")
    body = {"code": "print(1)", "language": "python", "timeout": None, "event": {}, "env_vars": None, "stdin": None, "wait": True}
    assert client.post(f"{session.path}/execute", body).json["stdout"] == "1\n"
    # What is required stays required.
    assert client.post(by_name(session, "execute"), {"code": "print(1)", "language": None}).status == 422
    assert client.post(by_name(session, "execute"), {"code": None, "language": "python"}).status == 422


def test_the_later_paths(session):
    answer = session.client.post(by_name(session, "execute"), {"code": "print(1)", "language": "python"})
    assert answer.status == 201 and set(answer.json) >= {"execution_id", "session_id", "status", "created_at"}
    # Its clients wait for this word, in results too.
    result = session.result(answer.json["execution_id"])
    status = session.client.get(f"{V1}/executions/{answer.json['execution_id']}/status").json
    assert result["status"] == status["status"] == status["state"] == "completed"
    done = session.client.post(by_name(session), {"code": "print(2)", "language": "python"}).json
    assert (done["status"], done["stdout"]) == ("completed", "2\n")
    failed = session.client.post(by_name(session), {"code": "1 / 0", "language": "python"}).json
    assert failed["status"] not in ("completed", "success"), failed
    page = session.client.get(by_name(session, "executions")).json
    assert set(page) >= {"items", "total", "limit", "offset"} and page["total"] == 3


# Errors


@pytest.mark.parametrize("query", ["poll_interval=0.05", "poll_interval=11", "sync_timeout=9", "sync_timeout=3601", "poll_interval=x"])
def test_bounds_of_waiting(session, query):
    answer = session.client.post(by_name(session) + "?" + query, {"code": "1", "language": "python"})
    assert answer.status == 422 and answer.json["field"] == query.partition("=")[0]


@pytest.mark.parametrize("body", [
    {"language": "python"}, {"code": "1"}, {"code": "1", "language": "cobol"}, {"code": "", "language": "python"},
    {"code": 1, "language": "python"}, {"code": "1", "language": "python", "timeout": 0},
    {"code": "1", "language": "python", "timeout": 3601}])
@pytest.mark.parametrize("verb", ["execute", "execute-sync"])
def test_bad_executions_are_unprocessable(session, body, verb):
    assert session.client.post(by_name(session, verb), body).status == 422
    if "language" in body:
        assert session.client.post(f"{session.path}/execute", body).status == 400


@pytest.mark.parametrize("stored", [False, True])
def test_returned_numbers_are_exact(session, stored):
    """In the answer, in the record, and in what was written to a stream; a whole float stays a float."""
    numbers = [0.1, 0.1 + 0.2, 1 / 3, 3.141592653589793, 2.0, -0.0, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, 12345678901234560.0,
               9223372036854775807, -1]
    done = sync(session, f"def handler(event):\n    return [{', '.join(map(repr, numbers))}, event['x']]", event={"x": 0.1 + 0.2})
    if stored:
        done = session.client.get(f"{V1}/executions/{done['execution_id']}/result").json
    for got, wanted in zip(done["return_value"], [*numbers, 0.1 + 0.2], strict=True):
        assert repr(got) == repr(wanted)
    assert not any(re.search(r"\d{18}", str(value)) for value in done["metrics"].values() if isinstance(value, float)), done["metrics"]


def test_executions_of_an_unknown_session(client):
    for path in (f"{V1}/sessions/none/execute", f"{V1}/executions/sessions/none/execute", f"{V1}/executions/sessions/none/execute-sync"):
        assert client.post(path, {"code": "1", "language": "python"}).status == 404


def test_callers_may_choose_ids(client, make):
    make(mode="ephemeral", id="mine-1")
    answer = client.post(f"{V1}/sessions", {"id": "mine-1"})
    assert answer.status == 409
    assert client.post(f"{V1}/sessions", {"id": "x" * 65}).status == 422
    assert client.post(f"{V1}/sessions", {"id": "a/b"}).status == 422


# Fields


TEMPLATE = {"id": "fields", "name": "Fields (test)", "image_url": "sandbox-template-python-basic:latest",
            "runtime_type": "python3.11", "default_cpu_cores": 1.0, "default_memory_mb": 512, "default_disk_mb": 1024}


@pytest.fixture
def template(client):
    """Creates a template; removed afterwards."""
    made = []

    def create(**fields):
        answer = client.post(f"{V1}/templates", {**TEMPLATE, **fields})
        if answer.status == 201:
            made.append(answer.json["id"])
        return answer

    yield create
    for one in made:
        assert client.request("DELETE", f"{V1}/templates/{one}").status == 204


@pytest.mark.parametrize("name", ["default_timeout", "default_timeout_sec", "timeout_sec"])
def test_names_of_the_timeout_of_a_template(client, template, name):
    made = template(**{name: 120}, is_active=True)
    assert made.status == 201, made
    assert made.json["default_timeout_sec"] == made.json["default_timeout"] == 120 and made.json["is_active"] is True
    assert client.request("PUT", f"{V1}/templates/fields", {name: 180}).json["default_timeout_sec"] == 180


@pytest.mark.parametrize("name", ["timeout", "timeout_sec", "default_timeout_sec"])
def test_names_of_the_timeout_of_a_session(make, name):
    assert make(mode="ephemeral", **{name: 120}).info()["timeout"] == 120


def test_a_value_with_two_names_is_given_once(client, template):
    assert client.post(f"{V1}/sessions", {"timeout": 60, "timeout_sec": 61}).json["field"] == "timeout_sec"
    assert template(default_timeout=60, default_timeout_sec=61).json["field"] == "default_timeout_sec"


def test_unknown_fields_are_ignored_and_listed(client, template):
    made = template(colour="red", default_memry_mb=1)
    assert made.status == 201
    assert [w.split(":")[0] for w in made.json["warnings"][:2]] == ["colour", "default_memry_mb"]
    assert "did you mean 'default_memory_mb'" in made.json["warnings"][1]
    changed = client.request("PUT", f"{V1}/templates/fields", {"colour": "blue", "description": "new"})
    assert changed.json["description"] == "new" and changed.json["warnings"][0] == "colour: ignored: no such field"
    session = client.post(f"{V1}/sessions", {"priority": 1, "resources": {"gpu": 1}})
    assert session.status == 201
    assert [w.split(":")[0] for w in session.json["warnings"]] == ["priority", "resources.gpu"]
    path = f"{V1}/sessions/{session.json['id']}"
    assert "warnings" not in client.get(path).json
    for run in ({"wait": True}, {"async_mode": True}):
        answer = client.post(f"{path}/execute", {"code": "print(1)", "retries": 3, **run})
        assert answer.status == 200 and answer.json["warnings"][0].startswith("retries: "), answer
    stream = client.post(f"{path}/execute", {"code": "print(1)", "retries": 3}, headers={"Accept": "application/x-ndjson"})
    assert b'"warnings":["retries: ' in stream.body.splitlines()[-1]
    for verb in ("execute", "execute-sync"):
        answer = client.post(f"{V1}/executions/sessions/{session.json['id']}/{verb}",
                             {"code": "print(1)", "language": "python", "retries": 3})
        assert answer.status < 300 and answer.json["warnings"][0].startswith("retries: "), answer
    ended = client.post(f"{path}/terminate", {"reason": "done"})
    assert ended.json["status"] == "terminated" and ended.json["warnings"][0].startswith("reason: ")


def test_unknown_fields_are_errors_where_the_path_is_only_ours(client):
    code = {"language": "python", "code": "1", "colour": "red"}
    assert client.post(f"{V1}/execute", code).json["error_code"] == "Sandbox.UnknownField"
    assert client.post(f"{V1}/policy/explain", {"kind": "session", "colour": "red"}).json["error_code"] == "Sandbox.UnknownField"


def test_many_unknown_fields_make_a_short_list(make):
    made = make(**{f"x{i}": i for i in range(1000)}).created
    assert made.status == 201 and len(made.json["warnings"]) == 17 and made.json["warnings"][-1].startswith("more fields")


def test_malformed_bodies_are_422_with_its_detail(client, template):
    for path, body, field in (("sessions", {"timeout": "x"}, "timeout"), ("sessions", {"resources": {"memory": []}}, "resources.memory"),
                              ("templates", {"id": "x"}, "name"), ("templates", {**TEMPLATE, "image_url": ""}, "image_url")):
        answer = client.post(f"{V1}/{path}", body)
        assert answer.status == 422 and answer.json["field"] == field, answer
        detail = answer.json["detail"][0]
        assert detail["loc"] == ["body", *field.split(".")] and detail["msg"] and detail["type"] in ("missing", "value_error")
    assert client.post(f"{V1}/templates", {k: v for k, v in TEMPLATE.items() if k != "image_url"}).status == 422
    late = client.post(f"{V1}/executions/sessions/none/execute-sync?poll_interval=99", {"code": "1", "language": "python"})
    assert late.status == 404 or late.json["detail"][0]["loc"] == ["query", "poll_interval"]
    assert isinstance(client.get(f"{V1}/sessions/none").json["detail"], str)


@pytest.mark.parametrize("runtime", ["python3.11", "nodejs20", "java17", "go1.21"])
def test_its_runtimes(template, runtime):
    assert template(runtime_type=runtime).json["runtime_type"] == runtime


@pytest.mark.parametrize("runtime", ["python3.10", "nodejs18", "java11", "go1.20", "ruby3.0", "invalid", ""])
def test_other_runtimes_are_422(template, runtime):
    answer = template(runtime_type=runtime)
    assert answer.status == 422 and answer.json["field"] == "runtime_type"


def test_template_ids_may_have_dots(client, template):
    assert template(id="python3.11-baseline").status == 201
    assert client.get(f"{V1}/templates/python3.11-baseline").json["id"] == "python3.11-baseline"
    for bad in (".", "..", ".hidden", "a/b"):
        assert template(id=bad).status in (400, 422), bad


def test_its_image_stands_for_the_root_of_the_host(client, template, make):
    made = template(image_url="registry.example:5000/a/sandbox-template-python-basic:v1.2").json
    assert made["available"] and made["root"] == "host" and "nothing is pulled" in made["warnings"][0]
    session = make(mode="ephemeral", template_id="fields")
    assert sync(session, "def handler(event): return 5")["return_value"] == 5
    session.delete()
    assert not template(id="other", name="Other", image_url="my-sandbox-template-python-basic:v1").json["available"]


# Limits


HALF = "files are kept in memory, at most half of resources.memory"


@pytest.mark.parametrize("sizes", [("512Mi", "1Gi"), ("512MB", "1GB"), ("512m", "1g"), (512 << 20, 1 << 30)])
def test_its_default_limits_work(client, make, sizes):
    """Its clients send them with every session; files are memory here."""
    made = client.post(f"{V1}/sessions", {"timeout": 300, "cpu": "1", "memory": sizes[0], "disk": sizes[1], "env_vars": {}})
    assert made.status == 201, made
    assert made.json["resources"]["memory"] == "512Mi" and made.json["resources"]["disk"] == "256Mi"
    assert made.json["limits"] == {"disk": {"requested": "1Gi", "granted": "256Mi", "reason": HALF}}
    assert made.json["warnings"] == [f"resources.disk: 1Gi was requested, 256Mi is granted: {HALF}"]
    assert client.request("DELETE", f"{V1}/sessions/{made.json['id']}").status == 200


def test_every_limit_above_the_maximum_is_cut_and_told(client):
    made = client.post(f"{V1}/sessions", {"resources": {"memory": "64Gi", "cpu": 1000, "max_processes": 100000},
                                          "timeout": 604800, "lifetime": 604800}).json
    assert set(made["limits"]) >= {"memory", "cpu", "max_processes"}
    assert made["limits"]["memory"] == {"requested": "64Gi", "granted": "8Gi", "reason": "the operator's maximum (limits.memory_max)"}
    assert made["limits"]["cpu"]["reason"].startswith("the host has ")
    assert len(made["warnings"]) == len(made["limits"])
    again = client.get(f"{V1}/sessions/{made['id']}").json
    assert again["resources"]["memory"] == "8Gi" and "warnings" not in again
    client.request("DELETE", f"{V1}/sessions/{made['id']}")


def test_what_is_granted_as_requested_has_no_warning(client, make):
    made = client.post(f"{V1}/sessions", {"resources": {"memory": "64Mi", "disk": "32Mi", "cpu": "0.5"}, "timeout": 60}).json
    assert "limits" not in made and "warnings" not in made
    done = client.post(f"{V1}/sessions/{made['id']}/execute", {"code": "1", "wait": True}).json
    assert "limits" not in done and "warnings" not in done
    client.request("DELETE", f"{V1}/sessions/{made['id']}")


def test_a_timeout_in_an_event_above_the_maximum_is_cut_and_told(session):
    done = sync(session, "def handler(event): return event", event={"__timeout": 5000, "a": 1})
    assert done["return_value"] == {"a": 1} and done["timeout"] == 3600
    assert done["limits"] == {"timeout": {"requested": "5000", "granted": "3600", "reason": "the operator's maximum (limits.timeout_max)"}}
    assert done["warnings"][0].startswith("timeout: 5000 was requested, 3600 is granted")
    assert session.client.get(f"{V1}/executions/{done['execution_id']}/result").json["limits"] == done["limits"]


# Its words


@pytest.mark.parametrize("mode", [None, "ephemeral", "persistent"])
def test_a_started_session_is_running_in_a_container(client, make, mode):
    session = make(mode=mode)
    session.wait_for("ready")
    got = session.info()
    assert got["status"] == "running" and got["state"] == "ready" and got["container_id"]
    box = client.get(f"{V1}/containers/{got['container_id']}").json
    assert (box["id"], box["session_id"], box["status"]) == (got["container_id"], session.id, "running")
    assert client.get(f"{V1}/containers/{got['container_id']}/logs").status == 200
    listed = client.get(f"{V1}/sessions?status=running").json
    assert session.id in [s["id"] for s in listed["items"]] and {s["status"] for s in listed["items"]} == {"running"}
    assert listed["total"] == len(listed["items"]) and not listed["has_more"]
    assert session.id in [s["id"] for s in client.get(f"{V1}/sessions?status=ready").json["items"]]
    session.act("terminate")
    assert session.info()["status"] == "terminated"
    assert session.id not in [s["id"] for s in client.get(f"{V1}/sessions?status=running").json["items"]]


def test_sessions_of_a_template(client, template, make):
    template(id="python3.11-baseline")
    mine = [make(mode="ephemeral", template_id="python3.11-baseline") for _ in range(3)]
    other = make(mode="ephemeral")
    listed = client.get(f"{V1}/sessions?template_id=python3.11-baseline").json
    assert [s["id"] for s in listed["items"]] == [s.id for s in reversed(mine)] and listed["total"] == 3
    page = client.get(f"{V1}/sessions?template_id=python3.11-baseline&limit=2&offset=1&status=running").json
    assert [s["id"] for s in page["items"]] == [mine[1].id, mine[0].id] and page["total"] == 3 and not page["has_more"]
    assert client.get(f"{V1}/sessions?template_id=none").json["items"] == []
    assert other.id in [s["id"] for s in client.get(f"{V1}/sessions?template_id=python-basic").json["items"]]
    for session in mine:
        session.delete()


def test_a_missing_package_fails_the_session(client):
    made = client.post(f"{V1}/sessions", {"dependencies": [{"name": "fastapi", "version": "==0.13.5"}], "install_timeout": 120,
                                          "python_package_index_url": "https://pypi.example/simple/"})
    assert made.status == 201, made
    assert made.json["status"] == "creating" and made.json["dependency_install_status"] == "installing"
    assert made.json["requested_dependencies"] == [{"name": "fastapi", "version": "==0.13.5"}]
    assert made.json["python_package_index_url"] == "https://pypi.example/simple/"
    got = client.get(f"{V1}/sessions/{made.json['id']}").json
    assert got["status"] == "failed" and got["dependency_install_status"] == "failed" and got["installed_dependencies"] == []
    assert "fastapi==0.13.5" in got["dependency_install_error"] and got["error"] == got["message"] == got["dependency_install_error"]
    assert got["dependency_install_started_at"] and got["dependency_install_completed_at"]
    assert client.post(f"{V1}/sessions/{got['id']}/execute", {"code": "1"}).status == 409
    gone = client.request("DELETE", f"{V1}/sessions/{got['id']}")
    assert gone.status == 200 and gone.json["status"] == "terminated"
    kept = client.post(f"{V1}/sessions", {"dependencies": [{"name": "fastapi", "version": "0.13.5"}], "fail_on_dependency_error": False})
    host.wait_until(lambda: client.get(f"{V1}/sessions/{kept.json['id']}").json["status"] != "creating", 20, "its box is made")
    got = client.get(f"{V1}/sessions/{kept.json['id']}").json
    assert got["status"] == "running" and got["dependency_install_status"] == "failed" and "fastapi==0.13.5" in got["dependency_install_error"]
    client.request("DELETE", f"{V1}/sessions/{got['id']}")


def test_a_session_without_packages_has_installed_them(session):
    got = session.info()
    assert got["dependency_install_status"] == "completed" and got["installed_dependencies"] == [] and got["dependency_install_error"] is None


# Handlers


HANDLER = 'def handler(event):\n    return {"event": event}'


@pytest.mark.parametrize("mode", [None, "ephemeral", "persistent"])
def test_a_handler_without_an_event_is_called_with_an_empty_one(make, mode):
    session = make(mode=mode)
    done = session.client.post(by_name(session), {"code": HANDLER, "language": "python", "timeout": 10}).json
    assert done["status"] == "completed" and done["return_value"] == {"event": {}}
    failed = session.client.post(by_name(session), {"code": "def handler(event):\n    return 1 / 0", "language": "python"}).json
    assert failed["status"] == "failed" and failed["exit_code"] == 2 and "ZeroDivisionError" in failed["stderr"]


def test_a_handler_on_the_path_of_the_first_version(make):
    unnamed, ephemeral, persistent = make(mode=None), make(mode="ephemeral"), make(mode="persistent")
    run = {"code": HANDLER, "wait": True}
    for session in (unnamed, ephemeral):
        assert session.client.post(f"{V1}/sessions/{session.id}/execute", run).json["return_value"] == {"event": {}}
    # A persistent session is an interpreter: a definition is only that.
    assert persistent.client.post(f"{V1}/sessions/{persistent.id}/execute", run).json["return_value"] is None


@pytest.mark.parametrize("code, value", [
    ("6 * 7", 42), ("x = 1", None), ("def handler(): return 5", None), ("def handler(a, b, c): return 5", None),
    ("def handler(event, context): return context.function_version", "$LATEST"), ("def handler(event, context, limit=3): return limit", 3),
    ("def handler(event): return 5\nhandler(1)", 5), ("from os.path import join as handler", None), ("handler = len", None),
    ("async def other(event): return 5", None)])
@pytest.mark.parametrize("mode", [None, "ephemeral", "persistent"])
def test_only_a_handler_that_the_code_defines_is_called(make, mode, code, value):
    session = make(mode=mode)
    done = session.client.post(by_name(session), {"code": code, "language": "python"}).json
    assert done["status"] == "completed" and done["return_value"] == value, done


@pytest.mark.parametrize("file", [{}, {"file_name": "same.py"}], ids=["cell", "file"])
def test_a_handler_of_an_earlier_run_is_not_called_again(make, file):
    session = make(mode="persistent")
    for code, value in ((HANDLER, {"event": {}}), ("x = 1", None), (HANDLER, {"event": {}})):
        assert session.client.post(by_name(session), {"code": code, "language": "python", **file}).json["return_value"] == value


def test_shell_code_needs_no_handler(session):
    done = session.client.post(by_name(session), {"code": "handler() { echo no; }\necho yes", "language": "shell"}).json
    assert done["status"] == "completed" and done["stdout"] == "yes\n"


@pytest.mark.parametrize("code", ["def handler(event):\n    return 1 / 0", "def handler(event): raise ValueError(event)", "1 / 0", "x = ("])
@pytest.mark.parametrize("mode", [None, "ephemeral", "persistent"])
def test_the_event_does_not_leak_into_tracebacks(make, mode, code):
    """Code without a newline at its end: the request follows it in the file."""
    session = make(mode=mode)
    done = sync(session, code, event={"secret": "canary"})
    assert done["status"] == "failed" and done["stderr"]
    shown = done["stderr"] + repr(done["error"])
    assert "\x00" not in shown and '{"event"' not in shown and '"context"' not in shown, shown
    assert code.splitlines()[-1].strip() in done["stderr"]


# Programs


@pytest.mark.parametrize("value", [{"a": 1}, [1, "two"], "text", 42, 1.5, {"n": {"e": {"s": ["t"]}}}, "h\u00e9llo \u4e16\u754c",
                                   [{"i": i} for i in range(400)], None, True])
def test_what_a_handler_returns(session, value):
    r = sync(session, f"def handler(event):\n    return {value!r}")
    assert r["status"] == "completed" and r["return_value"] == value and r["exit_code"] == 0


def test_an_event_reaches_a_handler_of_one_or_two_parameters(session):
    assert sync(session, "def handler(event): return event['n'] * 2", event={"n": 21})["return_value"] == 42
    assert sync(session, "def handler(event, context): return event['n'] * 2", event={"n": 21})["return_value"] == 42


def test_the_standard_library_is_available(session):
    code = f"import importlib\ndef handler(event):\n    return [importlib.import_module(m).__name__ for m in {STDLIB}]"
    assert len(STDLIB) == 26 and sync(session, code)["return_value"] == STDLIB


def test_output_and_warnings_are_kept(session):
    r = sync(session, "import sys, warnings\ndef handler(event):\n    print('out'); print('err', file=sys.stderr)\n"
                      "    warnings.warn('careful')\n    return 1")
    assert r["stdout"] == "out\n" and "err\n" in r["stderr"] and "careful" in r["stderr"] and r["status"] == "completed"


@pytest.mark.parametrize("body, name", [
    ("1 / 0", "ZeroDivisionError"), ("'a' + 1", "TypeError"), ("None.x", "AttributeError"), ("raise Mine('so')", "Mine")])
def test_exceptions_are_named(session, body, name):
    r = sync(session, f"class Mine(Exception): pass\ndef handler(event):\n    {body}")
    assert r["status"] == "failed" and r["exit_code"] != 0 and name in r["stderr"]
    assert name in r["error_message"]


def test_an_empty_handler_and_none(session):
    assert sync(session, "def handler(event):\n    pass")["return_value"] is None
    r = sync(session, "x = 1")
    assert r["status"] == "failed" and "handler" in r["stderr"]


def test_time_runs_out(session):
    """Not before its time; and before the handler's own end, with which it would be a success."""
    begun = time.monotonic()
    r = sync(session, "import time\ndef handler(event): time.sleep(20)", timeout=5)
    assert r["status"] == "timeout" and time.monotonic() - begun >= 5


def test_a_wait_can_end_before_the_execution(session):
    with contextlib.closing(Client(session.client.address)) as other:
        answer = other.post(by_name(session) + "?sync_timeout=10&poll_interval=1",
                            {"code": "import time; time.sleep(30)", "language": "python"})
    assert answer.status == 408 and answer.json["error_code"] == "Sandbox.ExecTimeout"


def test_async_mode_false_waits(session):
    answer = session.client.post(f"{session.path}/execute", {"code": "print(2)", "language": "python", "async_mode": False})
    assert answer.json["stdout"] == "2\n"


def test_several_executions_and_sessions_at_once(make, daemon):
    sessions = [make(mode="ephemeral") for _ in range(4)]

    def run(pair):
        number, session = pair
        with contextlib.closing(Client(daemon.socket)) as client:
            session.client = client
            return [sync(session, f"def handler(event): return {number} * 10 + {i}")["return_value"] for i in range(3)]

    clients = [session.client for session in sessions]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, enumerate(sessions)))
    for session, client in zip(sessions, clients):
        session.client = client
    assert results == [[n * 10 + i for i in range(3)] for n in range(4)]


def test_variables_of_the_session(make):
    session = make(mode="ephemeral", env_vars={"KEY": "value", "N": 5})
    assert sync(session, "import os\ndef handler(event): return [os.environ['KEY'], os.environ['N']]")["return_value"] == ["value", "5"]


def test_shell_too(session):
    answer = session.client.post(by_name(session), {"code": "echo hi; exit 3", "language": "shell"})
    assert answer.json["stdout"] == "hi\n" and answer.json["exit_code"] == 3 and answer.json["status"] == "failed"


def test_terminate_is_soft_idempotent_and_removes_the_container(make):
    session = make()
    session.wait_for("ready")
    box = session.info()["container_id"]
    ident = session.start("print(1)")
    session.result(ident)
    for _ in range(2):
        assert session.act("terminate")["status"] == "terminated"
    assert session.client.get(f"{V1}/executions/{ident}/result").json["stdout"] == "1\n"
    assert session.client.get(f"{V1}/containers/{box}").json["status"] in ("deleting", "exited")
    assert session.info()["completed_at"]


# Templates


def test_templates_are_made_changed_used_and_deleted(client, make):
    spec = {"id": "mine", "name": "My template", "image": "host",
            "default_resources": {"cpu": "1", "memory": "512Mi", "disk": "128Mi"}}
    answer = client.post(f"{V1}/templates", spec)
    assert answer.status == 201, answer
    try:
        assert answer.json["id"] == "mine" and answer.json["name"] == "My template"
        assert client.post(f"{V1}/templates", spec).status == 409
        assert client.post(f"{V1}/templates", {**spec, "id": "other"}).status == 409  # the name
        assert client.get(f"{V1}/templates/mine").json["name"] == "My template"
        assert "mine" in client.get(f"{V1}/templates").body.decode()
        assert client.request("PUT", f"{V1}/templates/mine", {"name": "Renamed"}).json["name"] == "Renamed"
        session = make(mode="ephemeral", template_id="mine")
        assert session.info()["template_id"] == "mine"
        assert sync(session, "def handler(event): return 5")["return_value"] == 5
        assert client.request("DELETE", f"{V1}/templates/mine").status in (400, 409)  # in use
        session.delete()
    finally:
        assert client.request("DELETE", f"{V1}/templates/mine").status in (200, 204)
    assert client.get(f"{V1}/templates/mine").status == 404


def test_bad_templates_and_unknown_ones(client):
    for body in ({}, {"id": "x", "name": "x", "image": ""}, {"id": "../x", "name": "x", "image": "host"}):
        assert client.post(f"{V1}/templates", body).status in (400, 422), body
    assert client.post(f"{V1}/sessions", {"template_id": "no-such-template"}).status in (400, 404)
    for method in ("GET", "DELETE"):
        assert client.request(method, f"{V1}/templates/no-such-template").status == 404
