# SPDX-License-Identifier: Apache-2.0
"""Bad input for every route, generated from the description: wrong types, missing and unknown fields, values out of
range, bad ids, wrong media types and methods. Each is a 4xx with the right code and the field's name, none is a 5xx,
and nothing changes. Control: a good request for each route, and boundary values, are accepted."""

import copy
import json
import re

import pytest
from support import host, metrics
from support.daemon import Daemon
from support.openapi import CONFIG, unique
from support.sessions import V1

pytestmark = pytest.mark.phases("system")

# One of each JSON type; 1.5 is a number but not an integer.
SAMPLES = {"null": None, "boolean": True, "integer": 7, "number": 1.5, "string": "text", "array": [], "object": {}}
CANONICAL = "/api/v1"
# Operations under other prefixes that do not repeat rows.
FURTHER = {"batchSandboxes", "sandboxLogs", "sandboxMetrics", "callTool", "toolNames"}
BAD_IDS = ["nobody", "x" * 65, "x" * 4000, "%2e%2e", "a%20b", "%F0%9F%92%A3", "-" * 64, "a%2Fb", "'--", "{id}"]
# Codes that mean "this request is invalid".
WRONG = {"Sandbox.InvalidParameter", "Sandbox.UnknownField", "Sandbox.InvalidJson"}
# Answers in another format: they are called and must not fail, but name no field.
LOOSE = {"refuseInternal", "refuseInternalSpec"}
# Without fields, but clients of the original send some: they are ignored.
IGNORE = {"terminateSession"}


@pytest.fixture(scope="module")
def daemon():
    d = Daemon(config=CONFIG).start()
    wait_for_servers(d)
    yield d
    assert d.stop() == 0, d.log()
    d.remove()


def wait_for_servers(daemon):
    """The state of the MCP server, which is listed, changes for the last time some time after the start."""
    with daemon.client() as client:
        host.wait_until(lambda: client.get(f"{V1}/mcp/servers/bench").json["state"] == "broken", 20, "the MCP server is broken")


#: WebSockets: any other request is a 426, see test_openapi.py.
SOCKETS = {"connectPort", "executionAttach"}


def generated(bench):
    """Operations with a JSON body, or none. In /workspace/se unknown fields are ignored and errors have another form."""
    return [
        o
        for o in bench.description.operations()
        if (o.path.startswith(CANONICAL) or o.id in FURTHER)
        and bench.can(o)
        and o.id not in LOOSE | SOCKETS
        and ("requestBody" not in o.node or o.body_schema is not None)
    ]


def difference(a, b, place=""):
    """Where two values first differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {**a, **b}:
            if a.get(key) != b.get(key):
                return difference(a.get(key), b.get(key), f"{place}.{key}")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            if x != y:
                return difference(x, y, f"{place}[{i}]")
    return f"{place}: {str(a)[:200]} -> {str(b)[:200]}"


class Still:
    """A snapshot of all lists and counters."""

    VOLATILE = {"uptime_seconds", "uptime", "timestamp", "last_activity_at", "updated_at", "last_used_at", "last_heartbeat_at", "usage", "load"}

    def __init__(self, bench):
        self.bench = bench
        host.wait_until(self._are_imports_at_rest, 10, "imports are those of this case, and have what was sent")
        self.before = self._look()

    def _are_imports_at_rest(self):
        """A closed one is listed until the daemon has noticed; the bytes of a new one are counted after it is listed."""
        listed = self.bench.client.get(f"{V1}/imports").json["items"]
        return sorted((item["id"], item["received_bytes"] > 0) for item in listed) == sorted((held.id, True) for held in self.bench.imports)

    def _look(self):
        lists = {}
        for operation in self.bench.description.operations():
            if operation.method == "GET" and operation.id.startswith("list") and "{" not in operation.path:
                lists[operation.path] = self._strip(self.bench.client.get(operation.path).json)
        now = metrics.read(self.bench.client)
        counts = {n: now.total(n) for n in ("sandbox_sessions_total", "sandbox_executions_total", "application_errors_total")}
        return lists, counts

    def _strip(self, value):
        if isinstance(value, dict):
            return {k: self._strip(v) for k, v in value.items() if k not in self.VOLATILE}
        return [self._strip(v) for v in value] if isinstance(value, list) else value

    def check(self, what):
        after = self._look()
        for lists, now in ((self.before[0], after[0]), (self.before[1], after[1])):
            for name, value in lists.items():
                assert now[name] == value, f"{what} changed {name}: {difference(value, now[name])}"


def variants(bench, schema):
    """The plain schemas that a value may match."""
    schema = bench.description.resolve(schema)
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return [v for part in schema[key] for v in variants(bench, part)]
    return [schema]


def types_of(schema):
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    else:
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if values is None:
            return set(SAMPLES)
        names = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string"}
        kinds = [names[type(value)] for value in values]
    return set(kinds) | ({"integer"} if "number" in kinds else set())


def wrong_types(bench, schema):
    allowed = set().union(*(types_of(v) for v in variants(bench, schema)))
    # Null means "absent" in most places: the tests of the routes cover it.
    return [value for kind, value in SAMPLES.items() if kind not in allowed and kind != "null"]


def step(schema):
    return 1 if "integer" in types_of(schema) and "number" not in types_of(schema) else 0.0001


def told_apart(parts):
    """Of several forms those that differ by type: only then it is certain which is meant."""
    return [p for p in parts if not any(types_of(p) & types_of(q) for q in parts if q is not p)]


def beyond(bench, schema):
    """Values of the right type outside their range."""
    out = []
    parts = variants(bench, schema)
    for part in told_apart(parts):
        if "minimum" in part:
            out += [part["minimum"] - step(part), -(2**63), -1e300]
        if "exclusiveMinimum" in part:
            out += [part["exclusiveMinimum"], part["exclusiveMinimum"] - 1]
        if "maximum" in part:
            out += [part["maximum"] + (1 if part["maximum"] > 1000 else step(part)), 2**63 - 1, 1e300]
        if part.get("minLength", 0) > 0:
            out.append("a" * (part["minLength"] - 1))
        if "maxLength" in part:
            out.append("a" * (part["maxLength"] + 1))
        if "pattern" in part:
            out += [v for v in ("/", "a b", "x" * 10000, "\u00e9", "a\u0000b") if not re.search(part["pattern"], v)]
        if "enum" in part or "const" in part:
            out += ["no such word", "", "x" * 10000]
        if "maxItems" in part:
            out.append([bench.description.make(part["items"])] * (part["maxItems"] + 1))
        if part.get("minItems", 0) > 0:
            out.append([])
    # Integers have no fractions.
    kinds = set().union(*(types_of(v) for v in parts))
    if "integer" in kinds and "number" not in kinds and "string" not in kinds:
        out.append(1.5)
    return [v for v in out if not (isinstance(v, float) and v != v)]


def within(bench, schema):
    """Boundary values."""
    out = []
    parts = variants(bench, schema)
    for part in told_apart(parts):
        out += [part[key] for key in ("minimum", "maximum") if key in part]
        out += ["a" * part[key] for key in ("minLength", "maxLength") if part.get(key)]
    return out


def fields(bench, schema, place=()):
    """(path, schema) of every property, deeply."""
    for part in variants(bench, schema):
        for name, node in part.get("properties", {}).items():
            yield (*place, name), node
            yield from fields(bench, node, (*place, name))


def closed_objects(bench, schema, place=()):
    """Places of objects that reject other fields."""
    for part in variants(bench, schema):
        if part.get("additionalProperties") is False:
            yield place
        for name, node in part.get("properties", {}).items():
            yield from closed_objects(bench, node, (*place, name))


# Aliases: only one of them may be given.
ALIASES = [
    {"code", "handler_code"},
    {"id", "session_id"},
    {"image", "image_url"},
    {"env_vars", "default_env_vars"},
    {"packages", "pre_installed_packages"},
    {"timeout", "timeout_sec", "default_timeout_sec", "default_timeout"},
]


def put(body, place, value):
    """The body with another value at the place; None if the body has no such place."""
    body = copy.deepcopy(body)
    for names in ALIASES:
        if place[0] in names:
            body = {k: v for k, v in body.items() if k not in names}
    if place[0] in ("event", "context") and "code" in body:
        body["handler_code"] = "def handler(event): pass"
        del body["code"]
    if "handler_code" in body or place[0] == "handler_code":
        body["language"] = "python"
    node = body
    for name in place[:-1]:
        node = node.setdefault(name, {})
        if not isinstance(node, dict):
            return None
    node[place[-1]] = value
    return body


def names(named, field):
    """Whether the named field is the invalid one, a part of it, or an alias."""
    meant = {field}
    for same in ALIASES:
        if field in same:
            meant |= same
    part = any(named == m or named.startswith((f"{m}.", f"{m}[")) for m in meant)
    # For a value with several forms the whole is named.
    return part or bool(named) and field.startswith(f"{named}.")


class Case:
    """One operation with a valid path, and a way to send bad requests to it."""

    def __init__(self, bench, operation):
        self.bench, self.operation = bench, operation
        self.path = bench.path(operation)
        self.good = bench.body(operation)
        self.count = 0

    def refuse(self, body=None, field=None, path=None, codes=WRONG, headers=None, statuses=(400, 413, 422)):
        answer = self.bench.client.request(self.operation.method, path or self.path, body=body, headers=headers)
        what = f"{self.operation} {str(path or '')[-80:]} {json.dumps(body)[:300] if not isinstance(body, bytes) else body[:80]}"
        assert answer.status in statuses, f"{what}: {answer}"
        assert answer.json["error_code"] in codes, f"{what}: {answer}"
        assert answer.json["request_id" if "request_id" in answer.json else "error_code"], answer
        if field is not None:
            named = answer.json.get("field") or ""
            assert names(named, field), f"{what}: names {named!r}, not {field!r}: {answer}"
        self.count += 1


#: A look asks for every list of the API, which takes longer than most cases.
CASES_PER_LOOK = 8


def each(bench, wanted=lambda operation: True):
    """Runs cases one after the other and checks after every few that nothing has changed since the first of them."""
    with bench.sharing():
        cases = [Case(bench, operation) for operation in filter(wanted, generated(bench))]
        for first in range(0, len(cases), CASES_PER_LOOK):
            some = cases[first : first + CASES_PER_LOOK]
            still = Still(bench)
            yield from some
            still.check(f"one of {[case.operation for case in some]}")
    assert sum(case.count for case in cases) > 0


def has_body(operation):
    return operation.body_schema is not None


def test_a_field_of_the_wrong_type(bench):
    for case in each(bench, has_body):
        for place, schema in fields(bench, case.operation.body_schema):
            for value in wrong_types(bench, schema):
                body = put(case.good, place, value)
                if body is not None:
                    case.refuse(body, ".".join(place))


def test_a_value_beyond_its_bounds(bench):
    for case in each(bench, has_body):
        for place, schema in fields(bench, case.operation.body_schema):
            for value in beyond(bench, schema):
                body = put(case.good, place, value)
                if body is not None:
                    case.refuse(body, ".".join(place))


def test_a_missing_required_field(bench):
    for case in each(bench, has_body):
        for name in bench.description.resolve(case.operation.body_schema).get("required", []):
            case.refuse({k: v for k, v in case.good.items() if k != name}, name)


def test_an_unknown_field(bench):
    for case in each(bench, has_body):
        for place in closed_objects(bench, case.operation.body_schema):
            body = put(case.good, (*place, "no_such_field"), 1)
            if body is not None:
                case.refuse(body, codes={"Sandbox.UnknownField"} if not place else WRONG)


def test_a_body_that_is_not_an_object(bench):
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    for case in each(bench, has_body):
        for body in (b"", b"{", b"[]", b"1", b'"x"', b"null", b"{}{}", b"\xff\xfe", b'{"a":1,"a":2}', b"{'a':1}", b'{"a":NaN}', deep, b" " * 100):
            case.refuse(body, headers={"Content-Type": "application/json"})


def test_an_oversized_body(bench):
    huge = b'{"x":"' + b"x" * (9 << 20) + b'"}'
    for case in each(bench, has_body):
        answer = bench.client.request(case.operation.method, case.path, body=huge, headers={"Content-Type": "application/json"})
        assert answer.status == 413, (case.operation, answer)
        bench.client.connection.close()
        case.count += 1


def test_a_body_of_the_wrong_kind(bench):
    for case in each(bench, has_body):
        for kind in ("text/plain", "application/xml", "application/x-www-form-urlencoded", "application/json; charset=latin-1"):
            case.refuse(b"{}", codes={"Sandbox.UnsupportedMediaType"}, headers={"Content-Type": kind}, statuses=(415,))
            bench.client.connection.close()


def test_an_unexpected_body(bench):
    for case in each(bench, lambda o: not has_body(o) and o.id not in IGNORE):
        case.refuse({"surprise": 1}, codes=WRONG | {"Sandbox.PayloadTooLarge"}, statuses=(400, 413))
        bench.client.connection.close()


def test_query_parameters(bench):
    for case in each(bench, lambda o: any("minimum" in p["schema"] for p in o.parameters("query"))):
        for parameter in case.operation.parameters("query"):
            schema = bench.description.resolve(parameter["schema"])
            bad = [str(v) for v in beyond(bench, schema)] if "minimum" in schema else []
            bad += ["abc", "", "1e9x", "0x10", "9" * 400] if types_of(schema) <= {"integer", "number"} else []
            for value in bad:
                case.refuse(case.good, parameter["name"], path=f"{case.path}?{parameter['name']}={value}")


def test_unknown_ids(bench):
    for case in each(bench, lambda o: "{id}" in o.path and o.name != "setSecret"):  # which creates it
        for bad in BAD_IDS:
            path = case.operation.path.replace("{id}", bad).replace("{path}", "a")
            answer = bench.client.request(case.operation.method, path, body=case.good)
            assert answer.status in (400, 404), (case.operation, bad, answer)
            case.count += 1


def is_one_of(path, described):
    """/templates/import is also the template "import"."""
    pattern = re.escape(described).replace(r"\{id\}", "[^/]+").replace(r"\{path\}", ".+")
    return re.fullmatch(pattern, path) is not None


def test_methods_not_allowed(bench):
    methods = {}
    for operation in bench.description.operations():
        methods.setdefault(operation.path, set()).add(operation.method)
    still = Still(bench)
    for path, have in methods.items():
        concrete = path.replace("{id}", "nobody").replace("{path}", "a")
        served = set().union(*(of for other, of in methods.items() if is_one_of(concrete, other)))
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} - served:
            answer = bench.client.request(method, concrete)
            assert answer.status in (400, 404, 405), (method, path, answer)
            if answer.status == 405:
                assert have <= set(answer.headers["Allow"].replace(" ", "").split(",")), (path, answer.headers["Allow"])
    still.check("wrong methods")


STATES = {
    "pauseSession": ("terminated",),
    "resumeSession": ("terminated", "ready"),
    "interruptSession": ("terminated", "ready"),
    "keepSessionAlive": ("terminated",),
    "executeInSession": ("terminated",),
    "submitExecution": ("terminated",),
    "executeSync": ("terminated",),
    "latestResult": (),
}


@pytest.mark.parametrize("name", [name for name, states in STATES.items() if states])
def test_states_that_do_not_allow_it(bench, name):
    operation = next(o for o in bench.description.operations() if o.id == name)
    for state in STATES[name] if bench.can(operation) else ():
        session = bench.session()
        if state == "terminated":
            session.act("terminate")
            host.wait_until(lambda: session.info()["container_id"] is None, 10, "its box is gone")
        still = Still(bench)
        answer = bench.client.request("POST", operation.path.replace("{id}", session.id), body=bench.body(operation))
        assert answer.status == 409 and answer.json["error_code"] == "Sandbox.StateConflict", (operation, state, answer)
        still.check(operation)
        bench.clean()


# A text of the right length is not enough.
HAVE_A_FORM = [("setSecret", "format")]


def test_control_good_requests_and_boundary_values_are_accepted(bench):
    taken = 0
    for operation in generated(bench):
        try:
            answer = bench.send(operation, bench.path(operation), bench.body(operation))
            assert answer.status < 300, (operation, answer)
            taken += 1
            for place, schema in fields(bench, operation.body_schema) if has_body(operation) else ():
                # A name that is well-formed need not be an engine's.
                if (operation.name, *place) in HAVE_A_FORM or place == ("engine",):
                    continue
                for value in within(bench, schema):
                    body = put(bench.body(operation), place, value)
                    answer = bench.send(operation, bench.path(operation), body)
                    named = answer.json.get("field") if answer.status >= 400 else None
                    assert answer.status < 500 and named != ".".join(place), (operation, place, value, answer)
        finally:
            bench.clean()
    assert taken > 30


def test_control_a_change_is_detected(bench):
    still = Still(bench)
    assert bench.client.post(f"{V1}/sessions", {"session_id": "gen-control"}).status == 201
    with pytest.raises(AssertionError):
        still.check("control")
    bench.clean()


# The shared environment server's dialect: unknown fields are ignored, errors have its own format.
SE = {
    "seSessionCreate": {},
    "seCreate": {"filename": "a.txt", "content": "x"},
    "seExecute": {"command": "true", "args": []},
    "seExecuteCode": {"code": "print(1)"},
    "seV2ExecuteCode": {"handler_code": "def handler(event):\n    return 1", "event": {}},
    "seCleanupAll": {"force": False},
}


def test_the_other_dialect_refuses_wrong_types_and_ignores_unknown_fields(bench):
    done = 0
    for operation in bench.description.operations():
        if operation.id not in SE:
            assert not operation.path.startswith("/workspace/se") or operation.body_schema is None or "efast" in operation.path
            continue
        good = SE[operation.id]
        still = Still(bench)
        for place, schema in fields(bench, operation.body_schema):
            for value in wrong_types(bench, schema):
                path = operation.path.replace("{id}", unique("gen-"))
                answer = bench.client.request(operation.method, path, body=put(good, place, value))
                assert 400 <= answer.status < 500, (operation, place, value, answer)
        still.check(operation)
        path = operation.path.replace("{id}", unique("gen-"))
        answer = bench.client.request(operation.method, path, body={**good, "no_such_field": 1})
        assert answer.status < 300, (operation, answer)
        bench.clean()
        done += 1
    assert done == len(SE)
