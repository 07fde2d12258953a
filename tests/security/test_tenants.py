# SPDX-License-Identifier: Apache-2.0
"""Two tenants attack each other through every route that the API describes.

For each operation of docs/api/openapi.yaml that has an id in its path, Bob asks for what Alice has. He must
get what he gets for an id that does not exist, byte by byte but for the request's own id, and nothing of Alice's
may change. The owner's own request, last, shows that the path was right. An operation that is in none of the
tables below fails: a new route needs a row that says whose things it is about.
"""

import contextlib
import json
import pathlib
import re

import pytest
import yaml

from support import host, oci
from support.client import Client
from support.identity import V1, KeyClient, make_key, make_tenant
from support.registry import Registry, daemon_of, wheel
from support.sessions import Session

pytestmark = pytest.mark.phases("system", "pool")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = yaml.safe_load((ROOT / "docs/api/openapi.yaml").read_text())

#: What the id of a path is of, by the beginning of the path; the first that fits counts.
OWNED = (
    ("/api/v1/executions/sessions/{id}", "session"),
    ("/api/v1/sessions/{id}", "session"),
    ("/api/v1/executions/{id}", "execution"),
    ("/api/v1/containers/{id}", "container"),
    ("/api/v1/templates/{id}", "template"),
    ("/api/v1/imports/{id}", "import"),
    ("/api/v1/packages/layers/{id}", "layer"),
    ("/api/v1/secrets/{id}", "secret"),
    *((f"{base}/sandboxes/{{id}}", "session") for base in ("/api/v1", "/api/v2", "/api")),
    *(
        (f"/workspace/se/{verb}/{{id}}", "environment")
        for verb in (
            "session", "status", "upload", "download", "create", "files/preview", "files", "readfile", "execute",
            "execute_code", "download_from_efast",
        )
    ),
)
#: Here an unknown id is created: the caller gets something of his own.
MAKERS = {
    *(("POST", f"/workspace/se/{verb}/{{id}}") for verb in ("session", "upload", "create", "execute", "execute_code")),
}
#: The same, of things that are not environments; a test of their own.
NAMERS = {("PUT", "/api/v1/secrets/{id}")}
#: For an unknown id the list is empty, and nothing is created.
EMPTY = {"/workspace/se/files/{id}"}
#: Refused for another reason than the id, for everybody and before it is looked at.
REFUSED = {"/workspace/se/download_from_efast/{id}", "/workspace/se/files/preview/{id}/{path}"}
#: Lists: what is in them must be the tenant's own.
LISTS = {
    "/api/v1/sessions", "/api/v1/containers", "/api/v1/templates", "/api/v1/imports", "/api/v1/packages/layers", "/api/v1/secrets", "/workspace/se/workspaces",
    *(f"{base}/sandboxes" for base in ("/api/v1", "/api/v2", "/api")),
}
#: The daemon's administration: no tenant's key reaches it.
ADMIN = ("/api/v1/keys", "/api/v1/tenants", "/api/v1/audit", "/api/v1/pools", "/metrics")
#: What is everybody's: nothing in them is a tenant's. The reason is the value.
SHARED = {
    "/": "what this is",
    "/healthz": "no key needed",
    "/readyz": "no key needed; numbers of the own tenant",
    "/openapi.json": "the description",
    "/api.json": "the description",
    "/api/v1/health": "of the daemon",
    "/api/v1/health/detailed": "of the daemon",
    "/api/v1/health/sync": "numbers of the own tenant",
    "/api/v1/runtimes": "drivers are everybody's, numbers are of the own tenant",
    "/api/v1/runtimes/{id}": "drivers are everybody's, numbers are of the own tenant",
    "/api/v1/runtimes/{id}/health": "drivers are everybody's",
    "/api/v1/runtimes/{id}/metrics": "numbers of the own tenant",
    "/api/v1/policies": "policies are the daemon's",
    "/api/v1/policies/{id}": "policies are the daemon's",
    "/api/v1/templates/import": "makes a template of the one who asks",
    "/api/v1/policy/explain": "names nothing of a tenant but a template, see below",
    "/api/v1/execute": "names nothing of a tenant but a template, see below",
    "/api/v1/identity": "of the one who asks",
    "/api/v1/internal/{path}": "refused for everybody",
    "/internal/{path}": "refused for everybody",
    "/health": "of the daemon",
    "/info": "of the daemon",
    "/api/openapi.json": "the description",
    "/api/docs": "the description",
    **{
        f"{base}/tools{rest}": "tools are everybody's; what their arguments name, see below"
        for base in ("/api/v1", "/api/v2", "/api", "/mcp")
        for rest in ("", "/{id}", "/{id}/execute")
    },
    **{
        f"{base}/{rest}": "prompts are everybody's; resources, see below"
        for base in ("/api/v1", "/api/v2", "/api")
        for rest in ("prompts", "prompts/{id}", "resources", "resources/{path}")
    },
    **{f"{base}/sandboxes:batch": "what it names in its body, see below" for base in ("/api/v2", "/api")},
    "/mcp/ws": "a session of the one who connects",
    "/mcp": "its sessions are named by a header: the tests of MCP ask for another tenant's",
    "/workspace/se/healthy": "of the daemon",
    "/workspace/se/health": "of the daemon",
    "/workspace/se/v2/execute_code": "names nothing of a tenant",
    "/workspace/se/cleanup-all": "ends what is of the one who asks, see below",
    "/api/v1/languages": "of the daemon",
    "/api/v1/daemon": "of the daemon; where its log is, only its owner learns, see test_cli_up.py",
    "/api/v1/receipts/key": "the public key of the daemon",
    "/api/v1/mcp/servers": "the operator's; the policy chooses, see test_gateway_surfaces.py",
    "/api/v1/mcp/servers/{id}": "the operator's; the policy chooses, see test_gateway_surfaces.py",
}
METHODS = ("get", "post", "put", "patch", "delete")
#: None of these exists. The shapes are those of real ones.
UNKNOWN = {
    "session": "sess_zzzzzzzzzzzzzzzz",
    "execution": "exec_20200101_zzzzzzzz",
    "container": "b" + "z" * 25,
    "template": "nobodys-template",
    "import": "nobodys-import",
    "layer": "0" * 24,
    "secret": "nobodys-secret",
    "environment": "nobodys-environment",
}
SECRET = "alices-secret-7391"
SCOPES = ["read", "execute", "sessions", "files", "templates", "policy", "secrets"]
FORM = """--line
Content-Disposition: form-data; name="file"; filename="own.txt"

bytes
--line--
"""


def operations():
    for path, item in SPEC["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def owned(path):
    for prefix, kind in OWNED:
        if path == prefix or path.startswith(prefix + "/"):
            return kind
    return None


def is_admin(path):
    return any(path == p or path.startswith(p + "/") for p in ADMIN)


ATTACKS = [(m, p) for m, p, _ in operations() if owned(p) and (m, p) not in MAKERS | NAMERS]


def resolve(schema):
    while "$ref" in schema:
        node = SPEC
        for part in schema["$ref"].split("/")[1:]:
            node = node[part]
        schema = node
    return schema


def sample(schema):
    """The minimal body that the schema accepts."""
    schema = resolve(schema)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for joined in ("allOf", "oneOf", "anyOf"):
        if joined in schema and "properties" not in schema:
            return sample(schema[joined][0])
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: sample(properties[name]) for name in schema.get("required", [])}
    return {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": []}[kind]


def body_of(method, path):
    operation = SPEC["paths"][path][method.lower()]
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        return json.dumps(sample(content["application/json"]["schema"])), "application/json"
    if "multipart/form-data" in content:
        return FORM.replace("\n", "\r\n"), "multipart/form-data; boundary=line"
    for kind in content:
        return "bytes", kind
    return None, None


def ask(client, method, path, ident, query=""):
    target = path.replace("{id}", ident)
    for name in ("{path}", "{filename}", "{file_path}", "{name}"):
        target = target.replace(name, "secret.txt")
    target = target.replace("{port}", "8000")
    assert "{" not in target, f"how is {path} filled in?"
    body, kind = body_of(method, path)
    return client.request(method, target + query, body=body, headers={"Content-Type": kind} if kind else {})


def essence(answer):
    """What a caller can see, without what is specific to the request."""
    headers = {k.lower(): v for k, v in answer.headers.items()}
    for of_the_request in ("x-request-id", "date", "x-process-time", "content-length"):
        headers.pop(of_the_request, None)
    return answer.status, headers, stable(json.loads(answer.body))


def same(answer, ident):
    """The essence, with the requested id replaced."""
    return json.dumps(essence(answer)).replace(ident, "ID")


class World:
    """Alice has one of everything; Bob has a key."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.admin = daemon.client()
        for name in ("alice", "bob", "carol"):
            make_tenant(self.admin, name, quotas={"requests_per_second": 0})  # the tests send many requests
        self.keys = {name: make_key(self.admin, name, scopes=SCOPES) for name in ("alice", "bob", "carol")}
        self.alice = self.client("alice")
        self.bob = self.client("bob")
        self.session = Session(self.alice, mode="persistent", id="alices-own", agent_id="agent-1")
        self.session.run(f"open('secret.txt', 'w').write('{SECRET}'); print('{SECRET}'); x = 1")
        self.execution = self.session.start("input()", stdin_open=True, timeout=3600)  # the tests of all routes take a while
        host.wait_until(
            lambda: self.alice.get(f"{V1}/executions/{self.execution}/status").json["status"] == "running",
            20,
            "Alice's execution runs",
        )
        self.template = self.make_template(self.alice)
        self.make_environment(self.alice, "alices-environment")
        self.held = oci.HeldImport(daemon.tcp_address(), "alices-import", self.keys["alice"])
        host.wait_until(lambda: self.alice.get(f"{V1}/imports").json["total"] == 1, 20, "Alice's import is under way")
        self.ids = {
            "environment": "alices-environment",
            "session": self.session.id,
            "execution": self.execution,
            "container": self.session.info()["container_id"],
            "template": self.template,
            "import": "alices-import",
            "secret": self.make_secret(self.alice, SECRET),
            "layer": self.alice.post(f"{V1}/packages/layers", {"packages": ["alicespkg"]}).json["id"],
        }

    def client(self, name):
        return KeyClient(self.daemon.tcp_address(), self.keys[name])

    @staticmethod
    def make_template(client):
        answer = client.post(f"{V1}/templates", {"id": "alices-template", "name": "alices-template", "image": "host"})
        assert answer.status == 201, answer
        return "alices-template"

    @staticmethod
    def make_secret(client, value):
        answer = client.request("PUT", f"{V1}/secrets/alices-key", {"value": value, "hosts": ["api.test"]})
        assert answer.status == 200, answer
        return answer.json["name"]

    @staticmethod
    def make_environment(client, ident):
        answer = client.post(f"/workspace/se/session/{ident}", {})
        assert answer.status in (200, 201), answer
        answer = client.post(f"/workspace/se/create/{ident}", {"filename": "secret.txt", "content": SECRET})
        assert answer.status in (200, 201), answer

    def state(self):
        """All that Alice can see of her own resources."""
        sid, eid = self.ids["session"], self.ids["execution"]
        paths = (
            f"{V1}/sessions",
            f"{V1}/sessions/{sid}",
            f"{V1}/sessions/{sid}/executions",
            f"{V1}/executions/{eid}/status",
            f"{V1}/templates/{self.ids['template']}",
            f"{V1}/containers",
            f"{V1}/imports",
            f"{V1}/secrets",
        )
        answers = {path: self.alice.get(path) for path in paths}
        assert all(answer.status == 200 for answer in answers.values()), answers
        return {path: stable(answer.json) for path, answer in answers.items()}

    def close(self):
        self.held.close()
        for client in (self.admin, self.alice, self.bob):
            client.close()


def stable(value):
    """Without fields that change with time."""
    if isinstance(value, dict):
        moving = {"request_id", "timestamp", "uptime", "uptime_seconds", "usage", "stats", "duration_ms", "execution_time"}
        return {k: stable(v) for k, v in value.items() if k not in moving}
    if isinstance(value, list):
        return [stable(v) for v in value]
    return value


@pytest.fixture(scope="module")
def world():
    registry = Registry()
    registry.add(wheel("alicespkg"))
    with daemon_of(registry, "http:\n  request_timeout: 1h\n", tcp=True) as d:  # an import that waits
        w = World(d)
        yield w
        w.close()
        assert not any(key in d.log() for key in w.keys.values())
    registry.close()


def test_every_operation_is_in_a_table():
    missing = [
        f"{method} {path}"
        for method, path, _ in operations()
        if not (owned(path) or path in LISTS or path in SHARED or is_admin(path))
    ]
    assert not missing, f"say in this file whose things these are about: {missing}"


def test_every_object_is_owned_or_declared_shared():
    for _, path, _ in operations():
        if "{" in path:
            assert owned(path) or path in SHARED or is_admin(path), path


def test_every_operation_needs_a_key(world):
    """API-3. Control: with Alice's key every other path is served, see below."""
    served = set()
    for method, path, _ in operations():
        with contextlib.closing(Client(world.daemon.tcp_address())) as stranger:
            answer = ask(stranger, method, path, UNKNOWN[owned(path) or "session"])
        if answer.status != 401:
            served.add((path, answer.status))
    assert served == {("/healthz", 200), ("/readyz", 200)}


@pytest.mark.parametrize("method,path", ATTACKS, ids=lambda v: v.strip("/"))
def test_another_tenants_objects_do_not_exist(world, method, path):
    kind = owned(path)
    before = world.state()
    stranger = ask(world.bob, method, path, UNKNOWN[kind])
    answer = ask(world.bob, method, path, world.ids[kind])
    assert answer.status == (200 if method == "GET" and path in EMPTY else 404) or path in REFUSED, answer
    assert same(answer, world.ids[kind]) == same(stranger, UNKNOWN[kind])
    assert world.state() == before
    assert SECRET.encode() not in answer.body


@pytest.mark.parametrize("path", sorted(LISTS))
def test_lists_show_nothing_of_another_tenant(world, path):
    mine = world.alice.get(path)
    theirs = world.bob.get(path)
    assert mine.status == theirs.status == 200
    for ident in world.ids.values():
        assert ident not in theirs.body.decode(), theirs
    assert any(ident in mine.body.decode() for ident in world.ids.values()), mine


@pytest.mark.parametrize("path", [p for _, p, _ in operations() if "{" not in p and p in SHARED])
def test_shared_objects_reveal_no_tenant(world, path):
    if "get" in SPEC["paths"][path]:
        text = world.bob.get(path).body.decode()
        assert "alice" not in text
        for ident in world.ids.values():
            assert ident not in text


@pytest.mark.parametrize(
    "method,path", [(m, p) for m, p, _ in operations() if is_admin(p)], ids=lambda v: v.strip("/")
)
def test_no_tenants_key_administers(world, method, path):
    answer = ask(world.bob, method, path, "alice")
    assert answer.status == 403, answer
    assert answer.json["error_code"] == "Sandbox.ScopeMissing"
    assert ask(world.admin, "GET", f"{V1}/tenants/{{id}}", "alice").status == 200


def test_names_are_per_tenant(world):
    """Bob uses every name that Alice has, and gets his own resources."""
    session = Session(world.bob, mode="persistent", id=world.ids["session"], agent_id="agent-1")
    with contextlib.closing(world.client("bob")) as bob:
        assert session.info()["container_id"] != world.ids["container"]
        assert session.run("import os; print(os.path.exists('secret.txt'), 'x' in dir())")["stdout"] == "False False\n"
        assert session.delete().status == 200
        assert bob.get(f"{V1}/sessions/{session.id}").status == 404
    assert world.session.info()["status"] == "running"


@pytest.mark.parametrize("method,path", sorted(MAKERS), ids=lambda v: v.strip("/"))
def test_implicitly_created_objects_are_the_callers(world, method, path):
    """Carol requests Alice's environment where unknown ones are created, and deletes all that she has."""
    ident = world.ids["environment"]
    with contextlib.closing(world.client("carol")) as carol:
        before = world.state()
        answer = ask(carol, method, path, ident)
        assert answer.status in (200, 201, 400, 404), answer
        assert SECRET.encode() not in answer.body
        files = carol.get(f"/workspace/se/files/{ident}")
        assert b"secret.txt" not in files.body, files
        assert carol.post("/workspace/se/cleanup-all", {}).status == 200
        assert carol.get(f"/workspace/se/status/{ident}").status == 404
        assert world.state() == before


def test_a_secret_of_the_same_name_is_the_callers(world):
    """Bob sets, changes and deletes a secret that has the name of Alice's."""
    before = world.state()
    with contextlib.closing(world.client("bob")) as bob:
        name = world.make_secret(bob, "bobs-own-value-0123456789")
        assert name == world.ids["secret"]
        assert world.state() == before
        assert bob.request("DELETE", f"{V1}/secrets/{name}").status == 204
        assert bob.get(f"{V1}/secrets/{name}").status == 404
    assert world.state() == before


@pytest.mark.parametrize("path", ["/api/v1/execute", "/api/v1/sessions", "/api/v1/policy/explain"])
def test_another_tenants_template_is_unknown(world, path):
    body = {"code": "print(1)", "language": "python"} if path != "/api/v1/sessions" else {}
    answers = [
        world.bob.post(path, {**body, "template_id": template})
        for template in (world.ids["template"], UNKNOWN["template"])
    ]
    assert answers[0].status >= 400 or answers[0].json["allowed"] is False, answers
    texts = [
        json.dumps(essence(answer)[2]).replace(template, "TEMPLATE")
        for answer, template in zip(answers, (world.ids["template"], UNKNOWN["template"]))
    ]
    assert texts[0] == texts[1]


def tool_calls(client, ident):
    """Calls of every tool that names a sandbox, for this one: path and body."""
    for tool in client.get("/mcp/tools").json["tools"]:
        schema = tool["inputSchema"]
        named = {"sandbox_id", "session_id"} & set(schema["properties"])
        if not named or tool["name"] == "create_sandbox":
            continue
        arguments = {name: sample(schema["properties"][name]) for name in schema.get("required", [])}
        arguments.update(dict.fromkeys(named, ident))
        if tool["name"] == "manage_session":  # create makes a session of the caller's own
            arguments["action"] = "end"
        if "path" in arguments:
            arguments["path"] = "secret.txt"
        yield f"/mcp/tools/{tool['name']}", arguments
        for base in ("/api/v1", "/api/v2", "/api"):
            yield f"{base}/tools/{tool['name']}/execute", {"arguments": arguments}


def timeless(text):
    """Without what differs from call to call."""
    return re.sub(r'"(execution_id|duration)": ("[^"]*"|[0-9.e+-]+)', "", text)


def test_tools_reach_nothing_of_another_tenant(world):
    before = world.state()
    calls = zip(tool_calls(world.bob, world.ids["session"]), tool_calls(world.bob, UNKNOWN["session"]))
    asked = 0
    for (path, theirs), (_, nobodys) in calls:
        answer, stranger = world.bob.post(path, theirs), world.bob.post(path, nobodys)
        # Clients of this dialect show the text of a 200 only.
        assert answer.status == 404 or answer.json["is_error"] and b"no sandbox has the id" in answer.body, (path, answer)
        assert timeless(same(answer, world.ids["session"])) == timeless(same(stranger, UNKNOWN["session"]))
        asked += 1
    assert asked > 50
    assert world.state() == before


@pytest.mark.parametrize("action", ["start", "stop", "restart", "delete", "update", "exec", "code"])
def test_a_batch_reaches_nothing_of_another_tenant(world, action):
    before = world.state()
    parameters = {"command": "cat secret.txt", "code": "cat secret.txt", "language": "shell", "name": "bobs"}
    answers = [
        world.bob.post("/api/v2/sandboxes:batch", {
            "action": action, "sandbox_ids": [ident], "parameters": parameters, "options": {"continue_on_error": True}})
        for ident in (world.ids["session"], UNKNOWN["session"])
    ]
    assert answers[0].status == 200 and answers[0].json["summary"]["succeeded"] == 0
    assert answers[0].json["results"][0]["error"]["code"] == 404
    assert same(answers[0], world.ids["session"]) == same(answers[1], UNKNOWN["session"])
    assert world.state() == before


@pytest.mark.parametrize("uri", ["sandbox://SESSION/secret.txt", "log://SESSION", "execution://EXECUTION/stdout", "template://TEMPLATE"])
def test_another_tenants_resources_do_not_exist(world, uri):
    def named(ids):
        return uri.replace("SESSION", ids["session"]).replace("EXECUTION", ids["execution"]).replace("TEMPLATE", ids["template"])

    for base in ("/api/v1", "/api/v2", "/api"):
        answer, stranger = (world.bob.get(f"{base}/resources/{named(ids)}") for ids in (world.ids, UNKNOWN))
        assert answer.status == stranger.status == 404, (answer, stranger)
        assert SECRET not in answer.body.decode()
    mine = world.alice.get(f"/api/v1/resources/{named(world.ids)}")  # the control
    assert mine.status == 200, mine


def test_lists_of_resources_are_the_tenants_own(world):
    theirs, mine = (client.get("/api/v1/resources?page_size=100").body.decode() for client in (world.bob, world.alice))
    for kind in ("session", "template"):
        assert world.ids[kind] not in theirs and world.ids[kind] in mine


def test_control_the_owners_tools_reach_it(world):
    answer = world.alice.post("/mcp/tools/read_file", {"sandbox_id": world.ids["session"], "path": "secret.txt"})
    assert answer.status == 200 and answer.json["metadata"]["content"] == SECRET, answer
    answer = world.alice.post("/api/v2/sandboxes:batch", {"action": "start", "sandbox_ids": [world.ids["session"]]})
    assert answer.json["summary"]["succeeded"] == 1, answer


def test_files_are_unchanged(world):
    for path in (f"/workspace/se/download/{world.ids['environment']}/secret.txt",):
        assert world.alice.get(path).body.decode().count(SECRET) == 1


def test_the_owners_own_requests_are_served(world):
    """Control: with Alice's key the same paths exist. Deletions come last."""
    endings = ("cancel", "restart")
    whole = ("/api/v1/sessions/{id}", "/workspace/se/session/{id}")
    last = lambda a: "terminate" in a[1] or (a[0] == "DELETE" and a[1] in whole)
    order = sorted(ATTACKS, key=lambda a: (last(a), a[0] == "DELETE", any(e in a[1] for e in endings)))
    served = set()
    gone = {f"{base}/sandboxes/{{id}}" for base in ("/api/v1", "/api/v2", "/api")}
    for method, path in order:
        if path.endswith(("/events", "/execute-sync", "/exec", "/code")) or method == "DELETE" and path in gone:
            continue  # they wait for running programs; one way to end those is enough
        kind = owned(path)
        answer = ask(world.alice, method, path, world.ids[kind])
        assert not (answer.status == 404 and is_about_id(answer)), (method, path, answer)
        served.add((method, path))
    assert len(served) > len(ATTACKS) * 0.8


def is_about_id(answer):
    words = ("SessionNotFound", "ExecutionNotFound", "TemplateNotFound", "ContainerNotFound")
    return any(word in answer.body.decode() for word in words)
