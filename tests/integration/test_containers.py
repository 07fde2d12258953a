# SPDX-License-Identifier: Apache-2.0
"""Boxes as containers, drivers as runtimes, health, packages: as the control plane's clients see them."""

import re

import pytest

from support import host
from support.sessions import NAPS, V1

pytestmark = pytest.mark.phases("system", "user")

FIELDS = {"container_id", "pod_name", "runtime_type", "status", "session_id", "template_id", "node_name", "resources",
          "created_at", "uptime_seconds"}


def test_a_box_of_a_session_is_a_container(make):
    session = make()
    session.wait_for("ready")
    ident = session.info()["container_id"]
    box = session.client.get(f"{V1}/containers/{ident}").json
    assert set(box) >= FIELDS and box["session_id"] == session.id and box["status"] == "running"
    page = session.client.get(f"{V1}/containers?status=running").json
    assert ident in [c["container_id"] for c in page["containers"]] and page["total"] >= 1
    assert page["containers"] == page["items"]
    health = session.client.get(f"{V1}/containers/{ident}/health").json
    assert health["healthy"] is True and health["status"] == "healthy"


@pytest.mark.skipif(not host.is_root(), reason="an ordinary user has no freezer of his own")
def test_a_paused_session_is_a_paused_container(make):
    session = make()
    session.wait_for("ready")
    path = f"{V1}/containers/{session.info()['container_id']}"
    session.act("pause")
    assert session.client.get(path).json["status"] == "paused"
    session.act("resume")
    assert session.client.get(path).json["status"] == "running"


def test_it_is_known_as_long_as_its_session(make):
    session = make()
    session.wait_for("ready")
    path = f"{V1}/containers/{session.info()['container_id']}"
    session.act("terminate")
    assert session.client.get(path).json["status"] in ("deleting", "exited")
    session.delete()
    assert session.client.get(path).status == 404
    assert session.client.get(path + "/logs").status == 404
    assert session.client.get(path + "/health").status == 404


def test_ephemeral_sessions_have_no_lasting_container(make):
    session = make(mode="ephemeral")
    listed = session.client.get(f"{V1}/containers?limit=200").json["containers"]
    assert session.id not in [c["session_id"] for c in listed]


def test_a_session_without_a_mode_has_a_container(make):
    session = make(mode=None)
    session.wait_for("ready")
    listed = session.client.get(f"{V1}/containers?limit=200").json["containers"]
    assert session.id in [c["session_id"] for c in listed]


def test_lists_can_be_read_in_parts(make, client):
    sessions = [make() for _ in range(3)]
    for session in sessions:
        session.wait_for("ready")
    whole = client.get(f"{V1}/containers?limit=200").json
    part = client.get(f"{V1}/containers?limit=1&offset=1").json
    assert part["containers"][0]["container_id"] == whole["containers"][1]["container_id"]
    assert (part["total"], part["has_more"]) == (whole["total"], True)
    assert whole["containers"][0]["session_id"] == sessions[-1].id
    assert client.get(f"{V1}/containers?runtime_type=docker").json["total"] == 0
    assert client.get(f"{V1}/containers?runtime_type=native").json["total"] == whole["total"]
    for query in ("runtime_type=x", "status=x", "limit=0", "limit=x"):
        assert client.get(f"{V1}/containers?{query}").status == 400


def test_logs_are_the_latest_output(py):
    py.run("print('one')\nimport sys; print('two', file=sys.stderr)")
    py.run("for i in range(200): print('line', i)")
    path = f"{V1}/containers/{py.info()['container_id']}/logs"
    answer = py.client.get(path)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.body.decode().splitlines() == [f"line {i}" for i in range(100, 200)]
    lines = py.client.get(path + "?tail=1000").body.decode().splitlines()
    assert lines[:2] == ["one", "two"] and len(lines) == 202
    assert py.client.get(path + "?tail=1").body == b"line 199\n"
    assert py.client.get(path + "?tail=0").body == b""
    assert py.client.get(path + "?since=32503680000").body == b""
    assert py.client.get(path + "?since=2020-01-01T00:00:00Z&tail=1").body == b"line 199\n"
    assert py.client.get(path, headers={"Accept": "application/json"}).json["tail"] == 100
    for query in ("tail=x", "tail=-1", "since=yesterday"):
        assert py.client.get(f"{path}?{query}").status == 400
    running = py.start("print('now', flush=True)\n" + NAPS)
    py.wait_for_output(running, "now")
    assert py.client.get(path + "?tail=1").body == b"now\n"
    py.act("interrupt")
    py.result(running)


def test_logs_are_text_whatever_was_printed(py):
    py.run("import os; os.write(1, b'\\xff\\xfe' + b'x' * 3_000_000)")
    body = py.client.get(f"{V1}/containers/{py.info()['container_id']}/logs").body
    assert 0 < len(body) <= (1 << 20) + 16
    body.decode()


def test_unknown_containers_are_404(client):
    for ident in ("b" + "a" * 25, "x", "%2e%2e", "a" * 100):
        assert client.get(f"{V1}/containers/{ident}").status == 404


def test_the_driver_is_the_runtime(client):
    listed = client.get(f"{V1}/runtimes").json
    assert listed["total"] == 1 and listed["runtimes"][0]["runtime_type"] == "native"
    assert client.get(f"{V1}/runtimes/native").json["status"] == "online"
    assert client.get(f"{V1}/runtimes/native/health").json["status"] == "healthy"
    numbers = client.get(f"{V1}/runtimes/native/metrics").json
    assert numbers["running_containers"] >= 0 and numbers["max_containers"] > 0
    for path in ("docker", "docker/health", "docker/metrics"):
        assert client.get(f"{V1}/runtimes/{path}").status == 404


def test_health_in_the_control_planes_format(client):
    health = client.get(f"{V1}/health").json
    assert health["status"] == "healthy" and re.match(r"\d+\.\d+", health["version"]) and health["uptime"] >= 0
    detailed = client.get(f"{V1}/health/detailed").json
    assert set(detailed["dependencies"]) == {"database", "storage", "runtime_nodes"}
    assert client.post(f"{V1}/health/sync", {}).json["status"] == "completed"
    assert client.get("/").json["service"] == "millibox"


@pytest.mark.parametrize("path", [
    "/internal/executions/exec_1/result", "/internal/executions/exec_1/status", "/internal/executions/exec_1/heartbeat",
    "/internal/executions/exec_1/artifacts", "/internal/sessions/sess_1/container_ready",
    "/internal/sessions/sess_1/container_exited", f"{V1}/internal/containers/ready", f"{V1}/internal/containers/exited",
    f"{V1}/internal/executions/exec_1/heartbeat", f"{V1}/internal/executions/exec_1/result"])
def test_callbacks_of_executors_are_unauthorized(client, path):
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        answer = client.post(path, {"status": "success"}, headers=headers)
        assert answer.status == 401 and answer.json["error_code"] == "Internal.Unauthorized"


# Packages


def test_present_packages_count_as_installed(make):
    session = make(dependencies=[{"name": "PyTest"}, {"name": "pytest", "version": ">=1,<100"}])
    info = session.info()
    assert info["dependency_install_status"] == "completed" and info["dependency_install_error"] is None
    (found,) = info["installed_dependencies"]
    assert found["name"] == "pytest" and found["is_from_template"] is True
    assert info["requested_dependencies"] == [{"name": "pytest", "version": ">=1,<100"}]
    assert session.run("import pytest; pytest.__version__")["result"] == found["version"]


def test_missing_packages_fail_the_session_with_advice(client, make):
    body = {"id": "lacking", "dependencies": [{"name": "pytest"}, {"name": "no-such-package"}]}
    assert client.post(f"{V1}/sessions", body).status == 201
    lacking = client.get(f"{V1}/sessions/lacking").json
    assert lacking["status"] == "failed" and "use a template" in lacking["dependency_install_error"]
    assert client.request("DELETE", f"{V1}/sessions/lacking").status == 200
    session = make(dependencies=body["dependencies"], fail_on_dependency_error=False)
    info = session.info()
    assert info["dependency_install_status"] == "failed" and "no-such-package" in info["dependency_install_error"]
    assert [d["name"] for d in info["installed_dependencies"]] == ["pytest"]
    made = client.post(f"{V1}/sessions", {"dependencies": [{"name": "pytest", "version": "0.0.1"}]}).json
    assert client.get(f"{V1}/sessions/{made['id']}").json["status"] == "failed"
    client.request("DELETE", f"{V1}/sessions/{made['id']}")


def test_packages_of_a_live_session(py, sh):
    path = f"{py.path}/dependencies/install"
    answer = py.client.post(path, {"dependencies": [{"name": "pytest"}]})
    assert answer.status == 200 and answer.json["dependency_install_status"] == "completed"
    assert py.client.post(path, {"dependencies": [{"name": "no-such-package"}]}).status == 400
    assert py.info()["dependency_install_status"] == "completed"
    assert py.client.post(path, {}).status == 400
    assert py.client.post(f"{sh.path}/dependencies/install", {"dependencies": []}).status == 400
    assert py.client.post(f"{V1}/sessions/none/dependencies/install", {"dependencies": []}).status == 404
    py.act("terminate")
    assert py.client.post(path, {"dependencies": []}).status == 409


@pytest.mark.parametrize("fields, field", [
    ({"dependencies": {}}, "dependencies"), ({"dependencies": [{"name": "a"}] * 51}, "dependencies"),
    ({"dependencies": ["a"]}, "dependencies[0]"), ({"dependencies": [{"name": "a", "x": 1}]}, "dependencies[0]"),
    *(({"dependencies": [{"name": name}]}, "dependencies[0].name") for name in (
        "", "../x", "/etc/passwd", "https://x/y", "a..b", "a b", "a;b", "x" * 101, 5, "pandas2.3.3")),
    ({"dependencies": [{"name": "a", "version": "; rm"}]}, "dependencies[0].version"),
    ({"dependencies": [{"name": "pytest"}], "language": "shell"}, "dependencies"),
    ({"install_timeout": 29}, "install_timeout"), ({"install_timeout": 1801}, "install_timeout"),
    ({"fail_on_dependency_error": 1}, "fail_on_dependency_error"),
    ({"python_package_index_url": "x" * 513}, "python_package_index_url")])
def test_bad_packages_are_named(client, fields, field):
    answer = client.post(f"{V1}/sessions", fields)
    assert answer.status in (400, 422) and answer.json["field"] == field, answer
