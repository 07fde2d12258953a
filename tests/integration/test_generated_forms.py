# SPDX-License-Identifier: Apache-2.0
"""Bad input beyond JSON bodies of one caller: list items, query and header parameters, forms and archives, objects in
the wrong state, objects of another tenant, and all of /workspace/se. As in test_generated.py everything is generated
from the description, none is a 5xx, and nothing changes."""

import contextlib
import io
import re
import tarfile
import urllib.parse

import pytest
from support import host
from support.client import Client
from support.daemon import Daemon
from support.identity import KeyClient, make_key, make_tenant
from support.openapi import Bench, Description, unique
from support.sessions import V1
from test_generated import SE, Case, Still, beyond, each, fields, generated, put, types_of, variants, wait_for_servers, wrong_types

pytestmark = pytest.mark.phases("system")

REFUSED = (400, 403, 404, 405, 409, 413, 415, 416, 422)
BOUNDARY = "line-of-the-test"


@pytest.fixture(scope="module")
def daemon():
    d = Daemon(tcp=True, config="limits: {memory: 256Mi, disk: 16Mi}\ngateway: {servers: {bench: {command: [/bin/true], env: {X: \"${secret:absent/none}\"}}}}\n").start()
    wait_for_servers(d)
    yield d
    assert d.stop() == 0, d.log()
    d.remove()


@pytest.fixture(scope="module")
def shared_bench(daemon):
    with daemon.client() as client:
        yield Bench(client, Description.of(client))


@pytest.fixture
def bench(shared_bench):
    yield shared_bench
    shared_bench.client.connection.close()
    shared_bench.clean()


def operation_of(bench, name):
    return next(o for o in bench.description.operations() if o.id == name)


# Items of lists and of objects with free names.


def item_places(bench, schema, place=()):
    """(place, schema of an item, one good item) of every list and of every object with free names."""
    for part in variants(bench, schema):
        items = part.get("items")
        free = part.get("additionalProperties")
        if isinstance(items, dict):
            yield place, items, "list"
        if isinstance(free, dict) and place:
            yield place, free, "object"
        for name, node in part.get("properties", {}).items():
            yield from item_places(bench, node, (*place, name))


def test_an_invalid_list_item(bench):
    """The error names the list or the item."""
    for case in each(bench, lambda o: o.body_schema is not None):
        for place, schema, kind in item_places(bench, case.operation.body_schema):
            bad = wrong_types(bench, schema) + beyond(bench, schema)
            for value in bad:
                body = put(case.good, place, [value] if kind == "list" else {"NAME": value})
                if body is not None:
                    case.refuse(body, ".".join(place))
            case.count += 1  # the body may have no list


# Queries and headers.


def bad_words(bench, schema):
    """Texts that are not valid for a parameter."""
    schema = bench.description.resolve(schema)
    kinds = types_of(schema)
    if kinds <= {"integer", "number"}:
        numbers = [str(v) for v in beyond(bench, schema)]
        return numbers + ["abc", "", "1e9x", "0x10", "9" * 400, "1 ", "+1", "-", "1,0"]
    if kinds == {"boolean"}:
        return ["maybe", "2", "TRUE ", "truefalse"]
    if "enum" in schema or "pattern" in schema or "maxLength" in schema or schema.get("minLength"):
        return [str(v) for v in beyond(bench, schema) if "\0" not in str(v)]
    return []


def good_words(bench, operation):
    """Values of the required parameters."""
    made = {"id": lambda: unique("gen-"), "name": lambda: "x"}
    return {p["name"]: made.get(p["name"], lambda: "x")() for p in operation.parameters("query") if p.get("required")}


def good_headers(operation, kind=None):
    """Headers without which the path does not exist: some paths exist only in the second version."""
    versions = {p["name"]: "v2" for p in operation.parameters("header") if p["name"] == "API-Version"}
    return {**versions, **({"Content-Type": kind} if kind else {})}


def all_operations(bench):
    return [o for o in bench.description.operations() if bench.can(o)]


def place_of(bench, operation):
    if operation.path.startswith("/workspace/se"):
        name = unique("gen-")
        made = bench.client.post(f"/workspace/se/create/{name}", {"filename": "a", "content": "x"})
        assert made.status < 300, made
        return operation.path.replace("{id}", name).replace("{path}", "a")
    return bench.path(operation)


def has_words(bench, operation):
    return any(bad_words(bench, p["schema"]) for p in operation.parameters("query"))


def content_of(operation):
    """A body that is not the reason for a refusal, and its media type."""
    for kind, body in (("multipart/form-data", form()), ("application/octet-stream", b"x")):
        if kind in operation.node.get("requestBody", {}).get("content", {}):
            return body, f"{kind}; boundary={BOUNDARY}" if "form" in kind else kind
    return None, None


def test_parameters_of_queries(bench):
    """Of every operation that restricts them."""
    count = 0
    for operation in all_operations(bench):
        if not has_words(bench, operation):
            continue
        path, body = place_of(bench, operation), bench.body(operation)
        raw, kind = content_of(operation)
        still = Still(bench)
        for parameter in operation.parameters("query"):
            for word in bad_words(bench, parameter["schema"]):
                query = urllib.parse.urlencode({**good_words(bench, operation), parameter["name"]: word})
                answer = bench.client.request(operation.method, f"{path}?{query}", body=raw if raw else body, headers=good_headers(operation, kind))
                what = (operation, parameter["name"], word[:40], answer)
                assert answer.status in (400, 413, 422), what
                # Lines that are too long are refused unparsed.
                if answer.status != 413:
                    assert answer.json.get("field", parameter["name"]) == parameter["name"], what
                bench.client.connection.close()  # a refusal before the body may end the connection
                count += 1
        still.check(operation)
        bench.clean()
    assert count > 100


def test_invalid_text_in_queries(bench):
    """Bytes that are not UTF-8, and NUL, are never treated as text."""
    for operation in all_operations(bench):
        for parameter in operation.parameters("query"):
            if "string" not in types_of(bench.description.resolve(parameter["schema"])):
                continue
            path, (raw, kind) = place_of(bench, operation), content_of(operation)
            still = Still(bench)
            for word in ("%FF", "%00", "a%ED%A0%80b", "%C3%28", "%0a"):
                query = urllib.parse.urlencode({k: v for k, v in good_words(bench, operation).items() if k != parameter["name"]})
                answer = bench.client.request(
                    operation.method,
                    f"{path}?{query}&{parameter['name']}={word}",
                    body=raw or bench.body(operation),
                    headers={"Content-Type": kind} if kind else None,
                )
                assert answer.status < 500, (operation, parameter["name"], word, answer)
                bench.client.connection.close()
            if operation.method == "GET":
                still.check(operation)
            bench.clean()


def test_parameters_of_headers(bench):
    for operation in all_operations(bench):
        for parameter in operation.parameters("header"):
            path, (raw, kind) = place_of(bench, operation), content_of(operation)
            for word in bad_words(bench, parameter["schema"]):
                if word.strip() == word:
                    headers = {**good_headers(operation, kind), parameter["name"]: word}
                    answer = bench.client.request(operation.method, path, body=raw or bench.body(operation), headers=headers)
                    assert answer.status == 400, (operation, parameter["name"], word, answer)
                    # MCP's errors are JSON-RPC's.
                    error = answer.json.get("error", {}).get("data") if "jsonrpc" in answer.json else answer.json
                    assert error["field"] == parameter["name"], (operation, word, answer)
                    bench.client.connection.close()
    bench.clean()


# Forms, files and archives.


def form(disposition='form-data; name="file"; filename="own.txt"', data=b"bytes", boundary=BOUNDARY, end=True, headers=b""):
    head = f"--{boundary}\r\nContent-Disposition: {disposition}\r\n".encode() + headers + b"\r\n"
    return head + data + (f"\r\n--{boundary}--\r\n".encode() if end else b"")


BAD_FORMS = {
    "empty": b"",
    "no form": b"just bytes",
    "only the end": f"--{BOUNDARY}--\r\n".encode(),
    "cut off in the data": form(end=False),
    "cut off in the header": f"--{BOUNDARY}\r\nContent-Dispo".encode(),
    "another boundary": form(boundary="other"),
    "no name": form("form-data"),
    "another field": form('form-data; name="other"; filename="x"'),
    "no disposition": f"--{BOUNDARY}\r\n\r\nx\r\n--{BOUNDARY}--\r\n".encode(),
    "another disposition": form('attachment; filename="x"'),
    "a name with a NUL": form('form-data; name="file"; filename="a\0b"'),
    "a name that is too long": form(f'form-data; name="file"; filename="{"x" * 5000}"'),
    "a huge header": form(headers=b"X-Long: " + b"x" * 100_000 + b"\r\n"),
    "many headers": form(headers=b"X-H: 1\r\n" * 10_000),
    "binary": bytes(range(256)) * 40,
}
KINDS = ("application/json", "text/plain", "multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=x", "")


def files_of(bench, path):
    """The files of the workspace that @path names; None if it names none."""
    if "/resources/" in path:
        return None
    box = re.match(r"/api(?:/v[12])?/(?:sandboxes|sessions)/([^/]+)", path)
    if box:
        return bench.client.get(f"{V1}/sessions/{box[1]}/files?recursive=true").json
    name = path.removeprefix("/workspace/se/").removeprefix("files/preview/").split("/")
    name = name[0] if "preview" in path else name[1]
    return bench.client.get(f"/workspace/se/files/{name}?recursive=true").json


def uploads(bench):
    for operation in bench.description.operations():
        if "multipart/form-data" in operation.node.get("requestBody", {}).get("content", {}):
            yield operation


def strip(value):
    """Without what reading changes."""
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if k not in ("timestamp", "accessed_at", "request_id")}
    return [strip(v) for v in value] if isinstance(value, list) else value


def refuse_form(bench, operation, path, body, kind, what):
    answer = bench.client.request(operation.method, path, body=body, headers={"Content-Type": kind} if kind else None)
    assert answer.status in (400, 413, 415, 422), (operation, what, answer)
    bench.client.connection.close()


def test_invalid_forms(bench):
    found = 0
    for operation in uploads(bench):
        path = place_of(bench, operation)
        before, still = strip(files_of(bench, path)), Still(bench)
        for name, body in BAD_FORMS.items():
            refuse_form(bench, operation, path, body, f"multipart/form-data; boundary={BOUNDARY}", name)
        for kind in KINDS:
            refuse_form(bench, operation, path, form(), kind, kind)
        still.check(operation)
        assert strip(files_of(bench, path)) == before, operation
        # Control: a good form is accepted.
        good = bench.client.request(
            operation.method, path, body=form(), headers={"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        )
        assert good.status < 300 and strip(files_of(bench, path)) != before, good
        bench.clean()
        found += 1
    assert found == 2


def tar(name="f", kind=tarfile.REGTYPE, link="", data=b"data"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = kind, link, len(data) if kind == tarfile.REGTYPE else 0
        archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


BAD_TARS = {
    "no archive": b"just bytes",
    "binary": bytes(range(256)) * 40,
    "cut off in the header": tar()[:300],
    "cut off in the data": tar(data=b"x" * 4000)[:1024],
    "a wrong sum": tar()[:148] + b"0000000\0" + tar()[156:],
    "a path that leads out": tar("../../out"),
    "a device": tar(kind=tarfile.CHRTYPE),
}


def test_invalid_archives(bench):
    """Into a directory of a session, and as an image."""
    write = operation_of(bench, "writeFile")
    session = bench.session()
    path = write.path.replace("{id}", session.id).replace("{path}", "dir")
    before, still = strip(files_of(bench, path)), Still(bench)
    for name, body in BAD_TARS.items():
        answer = bench.client.request("PUT", f"{path}?format=tar", body=body, headers={"Content-Type": "application/x-tar"})
        assert answer.status in (400, 413, 415, 422), (name, answer)
        bench.client.connection.close()
    still.check(write)
    left = [f for f in strip(files_of(bench, path))["files"] if f not in before["files"]]
    assert [f for f in left if f.get("type") != "directory"] == [], left
    bench.clean()


def test_invalid_images(bench):
    operation = operation_of(bench, "importTemplate")
    still = Still(bench)
    for name, body in {**BAD_TARS, "empty": b"", "an archive of something else": tar("manifest.jso")}.items():
        path = f"{operation.path}?id={unique('gen-')}&name=x"
        answer = bench.client.request("POST", path, body=body, headers={"Content-Type": "application/x-tar"})
        assert answer.status in (400, 413, 415, 422), (name, answer)
        bench.client.connection.close()
    for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
        answer = bench.client.request("POST", f"{operation.path}?id=gen-x", body=tar(), headers={"Content-Type": kind})
        assert answer.status in (400, 415), (kind, answer)
        bench.client.connection.close()
    still.check(operation)


# Wrong states.

#: Idempotent, or read-only: repeating is not an error.
HARMLESS = {"terminateSession", "deleteSession"}


def session_operations(bench):
    for operation in bench.description.operations():
        if operation.path.startswith((f"{V1}/sessions/{{id}}", f"{V1}/executions/sessions/{{id}}")) and bench.can(operation):
            yield operation


def test_operations_refused_for_an_ended_session(bench):
    count = 0
    for operation in session_operations(bench):
        if operation.id in HARMLESS:
            continue
        session = bench.session()
        session.act("terminate")
        host.wait_until(lambda: session.info()["container_id"] is None, 10, "its box is gone")
        path = operation.path.replace("{id}", session.id).replace("{path}", "a")
        body, kind = content_of(operation)
        still = Still(bench)
        answer = bench.client.request(
            operation.method, path, body=body or bench.body(operation), headers={"Content-Type": kind} if kind else None
        )
        looks = operation.method == "GET" and "/files" not in operation.path
        if not looks:
            assert answer.status == 409 and answer.json["error_code"] == "Sandbox.StateConflict", (operation, answer)
            count += 1
        assert answer.status < 500, (operation, answer)
        still.check(operation)
        bench.client.connection.close()
        bench.clean()
    assert count >= 12


def test_operations_refused_for_an_ended_execution(bench):
    for name in ("executionStdin", "cancelExecution"):
        operation = operation_of(bench, name)
        execution = bench.session().run("print(1)")["execution_id"]
        still = Still(bench)
        answer = bench.client.request("POST", operation.path.replace("{id}", execution), body=bench.body(operation))
        assert answer.status == 409 and answer.json["error_code"] == "Sandbox.StateConflict", (operation, answer)
        still.check(operation)
        bench.clean()


def test_operations_refused_for_objects_in_use_or_built_in(bench):
    template = bench._template()
    bench.session(template_id=template)
    still = Still(bench)
    for method, path, body, codes in (
        ("DELETE", f"{V1}/templates/{template}", None, ("Sandbox.TemplateInUse",)),
        ("DELETE", f"{V1}/templates/python-basic", None, None),
        ("PUT", f"{V1}/templates/python-basic", {"name": "mine"}, None),
        ("DELETE", f"{V1}/tenants/default", None, ("Sandbox.StateConflict",)),
        ("POST", f"{V1}/templates", {"id": template, "name": "twice", "image": "host"}, None),
        ("POST", f"{V1}/tenants", {"name": "default"}, ("Sandbox.StateConflict",)),
    ):
        answer = bench.client.request(method, path, body=body)
        assert 400 <= answer.status < 500, (method, path, answer)
        assert codes is None or answer.json["error_code"] in codes, (method, path, answer)
    still.check("what is in use")
    bench.clean()


# All of /workspace/se.


def se_operations(bench):
    return [o for o in bench.description.operations() if o.path.startswith("/workspace/se")]


def test_the_other_dialect_and_values_beyond_their_bounds(bench):
    count = 0
    for operation in se_operations(bench):
        if operation.id not in SE:
            continue
        still = Still(bench)
        for place, schema in fields(bench, operation.body_schema):
            for value in beyond(bench, schema):
                path = operation.path.replace("{id}", unique("gen-"))
                answer = bench.client.request(operation.method, path, body=put(SE[operation.id], place, value))
                assert 400 <= answer.status < 500, (operation, place, str(value)[:60], answer)
                assert place[-1] in str(answer.json), (operation, place, answer)
                count += 1
        still.check(operation)
    assert count > 0


def test_the_other_dialect_and_bodies_that_are_not_objects(bench):
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    huge = b'{"x":"' + b"x" * (9 << 20) + b'"}'
    for operation in se_operations(bench):
        if operation.body_schema is None:
            continue
        still = Still(bench)
        bad = [b"{", b"[]", b"1", b'"x"', b"null", b"{}{}", b"\xff\xfe", b'{"a":1,"a":2}', b'{"a":NaN}', deep]
        for body in bad + ([huge] if operation.id in SE else []):
            path = operation.path.replace("{id}", unique("gen-"))
            answer = bench.client.request(operation.method, path, body=body, headers={"Content-Type": "application/json"})
            assert answer.status in REFUSED, (operation, body[:20], answer)
            bench.client.connection.close()
        for kind in ("text/plain", "application/xml"):
            answer = bench.client.request(operation.method, path, body=b"no object", headers={"Content-Type": kind})
            assert answer.status in (400, 403, 404, 415), (operation, kind, answer)
            bench.client.connection.close()
        still.check(operation)


def test_the_other_dialect_and_missing_fields(bench):
    for operation in se_operations(bench):
        if operation.id not in SE:
            continue
        required = bench.description.resolve(operation.body_schema).get("required", [])
        still = Still(bench)
        for name in required:
            path = operation.path.replace("{id}", unique("gen-"))
            answer = bench.client.request(operation.method, path, body={k: v for k, v in SE[operation.id].items() if k != name})
            assert answer.status == 400 and name in str(answer.json), (operation, name, answer)
        still.check(operation)


BAD_NAMES = ["x" * 65, "x" * 4000, "%2e%2e", "a%20b", "%F0%9F%92%A3", "'--", "%00", "a%0Ab"]


def test_the_other_dialect_and_invalid_names(bench):
    for operation in se_operations(bench):
        if "{id}" not in operation.path:
            continue
        still = Still(bench)
        for bad in BAD_NAMES:
            path = operation.path.replace("{id}", bad).replace("{path}", "a")
            body, kind = content_of(operation)
            answer = bench.client.request(
                operation.method, path, body=body or SE.get(operation.id), headers={"Content-Type": kind} if kind else None
            )
            assert answer.status in REFUSED, (operation, bad[:20], answer)
            bench.client.connection.close()
        still.check(operation)


BAD_PATHS = ["../../etc/passwd", "..", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "a/../../..", "x" * 5000, "a%00b", "%0a"]


def test_paths_outside_or_missing(bench):
    """Of every operation of both dialects that has a path parameter."""
    for operation in all_operations(bench):
        if "{path}" not in operation.path or "internal" in operation.path:
            continue
        concrete = place_of(bench, operation)
        before, still = strip(files_of(bench, concrete)), Still(bench)
        for bad in BAD_PATHS:
            path = f"{concrete.removesuffix('/a')}/{bad}"
            body, kind = content_of(operation)
            answer = bench.client.request(operation.method, path, body=body, headers={"Content-Type": kind} if kind else None)
            assert answer.status in REFUSED, (operation, bad[:40], answer)
            assert b"root:" not in answer.body
            bench.client.connection.close()
        still.check(operation)
        assert strip(files_of(bench, concrete)) == before, operation
        bench.clean()


# Objects of another tenant. tests/security/test_tenants.py compares byte by byte, and lists.

#: Not owned by a tenant.
SHARED = ("/api/v1/runtimes", "/api/v1/tools", "/api/v2/tools", "/api/tools", "/mcp/tools", "/api/v2/prompts", "/api/prompts", "/api/v1/prompts", "/api/v1/policies", "/api/v1/internal", "/internal")
ADMIN = ("/api/v1/keys", "/api/v1/tenants")


def test_objects_of_another_tenant(bench, daemon):
    """Last: from the first key on, every other caller needs one."""
    make_tenant(bench.client, "gen-other")
    key = make_key(bench.client, "gen-other")
    count = 0
    with contextlib.closing(KeyClient(daemon.socket, key)) as other:
        for operation in generated(bench):
            if "{id}" not in operation.path or operation.path.startswith(SHARED):
                continue
            case = Case(bench, operation)
            still = Still(bench)
            answer = other.request(operation.method, case.path, body=case.good)
            # A key that was made without a list of scopes may not change secrets.
            is_barred = operation.path.startswith(ADMIN) or operation.name in ("setSecret", "deleteSecret")
            expected = 403 if is_barred else 404
            assert answer.status == expected, (operation, answer)
            still.check(operation)
            other.connection.close()
            bench.clean()
            count += 1
        assert count > 25
        with contextlib.closing(Client(daemon.tcp_address())) as stranger:
            for operation in generated(bench):
                path = operation.path.replace("{id}", "x").replace("{path}", "a")
                assert stranger.request(operation.method, path, body=bench.body(operation)).status == 401, operation
                stranger.connection.close()
    assert bench.client.request("DELETE", f"{V1}/keys/{key.split('_')[1]}").status < 300
    assert bench.client.request("DELETE", f"{V1}/tenants/gen-other").status < 300
