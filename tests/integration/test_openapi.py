# SPDX-License-Identifier: Apache-2.0
"""The description is served, and the server follows it: every operation is called, and its status and body match."""

import pytest
from support.daemon import Daemon
from support.openapi import CONFIG, check_answer

pytestmark = pytest.mark.phases("system")

#: Installing needs a registry: its own tests have one.
REFUSED = {"refuseInternal": 401, "refuseInternalSpec": 401, "mcpSocket": 426, "connectPort": 426, "executionAttach": 426,
           "createPackageLayer": 400}


@pytest.fixture(scope="module")
def daemon():
    d = Daemon(config=CONFIG).start()
    yield d
    assert d.stop() == 0, d.log()
    d.remove()


def test_the_description_is_served_under_both_names(client):
    first, second = client.get("/openapi.json"), client.get("/api.json")
    assert first.status == second.status == 200 and first.body == second.body
    assert first.headers["Content-Type"] == "application/json"
    assert first.json["openapi"].startswith("3.1") and first.json["paths"]["/openapi.json"]["get"]


def test_every_body_has_a_type_that_generators_of_clients_know(bench):
    """They leave an operation out if all types of its body are others."""
    known = {"application/json", "application/octet-stream", "multipart/form-data"}
    for operation in bench.description.operations():
        content = operation.node.get("requestBody", {}).get("content", {})
        assert not content or known & content.keys(), operation


def is_generated(operation):
    """Bodies that are not JSON, and MCP sessions, have their own tests."""
    if operation.path == "/mcp":
        return False
    content = operation.node.get("requestBody", {}).get("content", {})
    return not content or "application/json" in content


@pytest.mark.smoke
def test_every_operation_matches_its_description(bench):
    done = 0
    for operation in bench.description.operations():
        if not is_generated(operation) or operation.path.startswith("/workspace/se") or not bench.can(operation):
            continue
        try:
            answer = bench.send(operation, bench.path(operation), bench.body(operation))
            expected = REFUSED.get(operation.id)
            assert answer.status == expected if expected else answer.status < 300, (operation, answer)
            check_answer(operation, answer)
            done += 1
        finally:
            bench.clean()
    assert done > 40


def test_missing_objects_match_their_description(bench):
    for operation in bench.description.operations():
        if "{id}" not in operation.path or not is_generated(operation) or operation.path.startswith("/workspace/se"):
            continue
        if operation.id == "setSecret":  # makes one
            continue
        path = operation.path.replace("{id}", "nobody").replace("{path}", "a").replace("{port}", "8000")
        answer = bench.send(operation, path, bench.body(operation))
        assert answer.status == 404, (operation, answer)
        check_answer(operation, answer)


def test_control_a_false_description_is_detected(bench):
    """Control of the tests above."""
    operation = next(o for o in bench.description.operations() if o.id == "healthz")
    answer = bench.send(operation, "/healthz")
    check_answer(operation, answer)
    schema = operation.schema_of(200, "application/json")
    with pytest.raises(AssertionError):
        bench.description.validate(schema, {"status": "well"}, "control")
    with pytest.raises(AssertionError):
        bench.description.validate(schema, {}, "control")
    answer.status = 299
    with pytest.raises(AssertionError):
        check_answer(operation, answer)
