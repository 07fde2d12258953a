# SPDX-License-Identifier: Apache-2.0
"""The description of the API as tests use it: operations, schemas, and a good request for each of them.

A route that is added needs nothing here unless its path names a new kind of thing, or its body cannot be made
up from its schema: then the tests that use this say which line is missing.
"""

import contextlib
import functools
import itertools
import json

import jsonschema
from support import host, metrics, oci
from support.sessions import V1, Session

METHODS = ("get", "post", "put", "patch", "delete")
#: Longer than any test: a program that a test keeps running does not end by itself.
LONG_S = 3000
_numbers = itertools.count()


class Operation:
    def __init__(self, description, path, method, node):
        self.description, self.path, self.method, self.node = description, path, method.upper(), node
        self.id = node["operationId"]

    def __repr__(self):
        return f"{self.method} {self.path}"

    @property
    def name(self):
        """The id without the version."""
        for version in VERSIONS:
            if self.id.endswith(version):
                return self.id.removesuffix(version)
        return self.id

    @property
    def body_schema(self):
        """The schema of the JSON body, or None."""
        content = self.node.get("requestBody", {}).get("content", {})
        return content.get("application/json", {}).get("schema")

    @property
    def example(self):
        content = self.node.get("requestBody", {}).get("content", {})
        return content.get("application/json", {}).get("example")

    def parameters(self, where):
        found = [self.description.resolve(p) for p in self.node.get("parameters", [])]
        return [p for p in found if p["in"] == where]

    def schema_of(self, status, content_type):
        """The schema of an answer's body, or None."""
        response = self.node["responses"].get(str(status))
        assert response is not None, f"{self}: status {status} is not described"
        content = self.description.resolve(response).get("content", {})
        if not content:
            return None
        assert content_type in content, f"{self}: {status} as {content_type} is not described"
        return content[content_type].get("schema")


class Description:
    def __init__(self, document):
        self.document = document
        self._resolver = jsonschema.RefResolver("", document)

    @classmethod
    def of(cls, client):
        answer = client.get("/openapi.json")
        assert answer.status == 200, answer
        return cls(answer.json)

    def operations(self):
        return [
            Operation(self, path, method, node)
            for path, item in self.document["paths"].items()
            for method, node in item.items()
            if method in METHODS
        ]

    def resolve(self, node):
        while "$ref" in node:
            more = {key: value for key, value in node.items() if key != "$ref"}
            found = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            node = {**found, **more}
        return node

    def validate(self, schema, value, what):
        errors = list(jsonschema.Draft202012Validator(schema, resolver=self._resolver).iter_errors(value))
        assert not errors, f"{what}: {errors[0].json_path}: {errors[0].message[:500]}"

    def make(self, schema):
        """The smallest value that the schema allows."""
        schema = self.resolve(schema)
        for key in ("default", "const"):
            if key in schema:
                return schema[key]
        for key in ("examples", "enum"):
            if schema.get(key):
                return schema[key][0]
        for key in ("oneOf", "anyOf"):
            if key in schema:
                return self.make(schema[key][0])
        kind = schema.get("type", "object")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "object":
            return {name: self.make(schema["properties"][name]) for name in schema.get("required", [])}
        if kind == "array":
            return [self.make(schema["items"])] * schema.get("minItems", 0)
        if kind in ("integer", "number"):
            return schema.get("minimum", 1)
        return {"string": "a" * max(1, schema.get("minLength", 1)), "boolean": True, "null": None}[kind]


def unique(prefix):
    return f"{prefix}{next(_numbers)}"


# Bodies that cannot be derived from the schema.
BODIES = {
    "execute": lambda: {"language": "shell", "code": "true"},
    "createSession": lambda: {"session_id": unique("gen-"), "timeout": 100},
    "executeInSession": lambda: {"code": "1", "timeout": 10},
    "submitExecution": lambda: {"code": "1", "language": "python", "timeout": 10},
    "executeSync": lambda: {"code": "1", "language": "python", "timeout": 10},
    "executionStdin": lambda: {"data": "x", "end": False},
    "explainPolicy": lambda: {"language": "shell"},
    "createTemplate": lambda: {"id": unique("tpl-"), "name": unique("Template "), "image": "host"},
    "updateTemplate": lambda: {"name": unique("Template ")},
    "installDependencies": lambda: {"dependencies": []},
    "installPackages": lambda: {"packages": ["pip"]},
    "createTenant": lambda: {"name": unique("ten-")},
    "createKey": lambda: {"tenant": "default", "name": "a key"},
    "changeTenant": lambda: {"policy": ""},
    "makeDirectory": lambda: {"path": unique("d")},
    "moveFile": lambda: {"path": "a", "to": unique("m")},
    "createSandbox": lambda: {"image": "ubuntu:22.04", "name": unique("gen-")},
    "uploadSandboxFile": lambda: {"path": unique("f"), "content": "x"},
    "execInSandbox": lambda: {"command": "true"},
    "runInSandbox": lambda: {"code": "true", "language": "shell"},
    "batchSandboxes": lambda: {"action": "start", "sandbox_ids": ["nobody"]},
}
# The same operations under other versions of their path.
BASES = (V1, "/api/v2", "/api")
VERSIONS = ("V2", "Unversioned")


# Of the daemon that a Bench uses: one MCP server, which never starts, and time for an upload that many cases share.
CONFIG = """
http: {request_timeout: 1h}
limits: {memory: 256Mi, disk: 16Mi}
gateway: {servers: {bench: {command: [/bin/true], env: {X: "${secret:absent/none}"}}}}
"""


class Bench:
    """Creates what an operation needs, and deletes it afterwards."""

    def __init__(self, client, description):
        self.client, self.description = client, description
        self.sessions, self.templates, self.tenants, self.keys, self.secrets = [], [], [], [], []
        self.imports = []
        self._shared = None

    @contextlib.contextmanager
    def sharing(self):
        """Operations within use the same objects, one of each kind: for requests that must not change any."""
        self._shared = {}
        try:
            yield
        finally:
            self._shared = None
            self.clean()

    @functools.cached_property
    def freezes(self):
        """Whether the daemon can pause boxes: an ordinary user has no freezer."""
        session = self.session()
        answer = self.client.post(f"{session.path}/pause", {})
        assert answer.status in (200, 503), answer
        self.clean()
        return answer.status == 200

    def can(self, operation):
        if operation.name in ("createPackageLayer", "showPackageLayer", "deletePackageLayer"):  # test_packages.py has a registry
            return False
        return operation.name not in ("pauseSession", "resumeSession", "stopSandbox") or self.freezes

    def session(self, mode="persistent", **fields):
        session = Session(self.client, mode=mode, session_id=unique("bench-"), **fields)
        self.sessions.append(session)
        if mode == "persistent":
            session.wait_for("ready")
        return session

    def _idle(self):
        return self.session().id

    def _paused(self):
        session = self.session()
        session.act("pause")
        return session.id

    def _busy(self):
        session = self.session()
        execution = session.start("import sys; print('up', flush=True); sys.stdin.read()", stdin_open=True, timeout=LONG_S)
        session.wait_for_output(execution, "up")
        return session, execution

    def _terminal(self):
        session = self.session()
        execution = session.start("print('up', flush=True); input()", tty={"rows": 24, "cols": 80}, timeout=LONG_S)
        session.wait_for_output(execution, "up")
        return execution

    def _used(self):
        session = self.session()
        session.run("print(1)")
        return session.id

    def _with_file(self):
        session = self.session()
        assert session.run("open('/workspace/a', 'w').write('x')")["status"] == "success"
        return session.id

    def _ended_execution(self):
        return self.session().run("print(1)")["execution_id"]

    def _container(self):
        return self.session().info()["container_id"]

    def _template(self):
        body = BODIES["createTemplate"]()
        assert self.client.post(f"{V1}/templates", body).status == 201
        self.templates.append(body["id"])
        return body["id"]

    def _import(self):
        held = oci.HeldImport(self.client.address, unique("bench-"))
        self.imports.append(held)
        found = f"{V1}/imports/{held.id}"
        host.wait_until(lambda: self.client.get(found).status == 200, 10, "the import is under way")
        return held.id

    def _tenant(self):
        name = unique("bench-")
        assert self.client.post(f"{V1}/tenants", {"name": name}).status == 201
        self.tenants.append(name)
        return name

    def _key(self):
        answer = self.client.post(f"{V1}/keys", {"tenant": "default"})
        assert answer.status == 201, answer
        key = answer.json.get("key_id") or answer.json["id"]
        self.keys.append(key)
        return key

    def _secret(self):
        name = unique("bench-")
        body = {"value": "0123456789abcdef", "hosts": ["api.test"]}
        assert self.client.request("PUT", f"{V1}/secrets/{name}", body).status == 200
        self.secrets.append(name)
        return name

    def _runtime(self):
        return self.client.get(f"{V1}/runtimes").json["items"][0]["id"]

    def _policy(self):
        return "default"

    def _mcp_server(self):
        return "bench"

    def _prompt(self):
        return "debug_program"

    def _tool(self):
        return "list_sandboxes"

    # By operation, otherwise by the beginning of the path.
    PLACES = {
        "resumeSession": _paused,
        "interruptSession": lambda self: self._busy()[0].id,
        "latestStatus": _used,
        "latestResult": _used,
        "cancelExecution": lambda self: self._busy()[1],
        "executionStdin": lambda self: self._busy()[1],
        "executionResize": _terminal,
    }
    PREFIXES = {
        f"{V1}/sessions/": _idle,
        f"{V1}/executions/sessions/": _idle,
        f"{V1}/executions/": _ended_execution,
        f"{V1}/containers/": _container,
        f"{V1}/runtimes/": _runtime,
        f"{V1}/templates/": _template,
        f"{V1}/imports/": _import,
        f"{V1}/policies/": _policy,
        f"{V1}/mcp/servers/": _mcp_server,
        f"{V1}/tenants/": _tenant,
        f"{V1}/keys/": _key,
        f"{V1}/secrets/": _secret,
        **dict.fromkeys([f"{base}/sandboxes/" for base in BASES], _idle),
        **dict.fromkeys([f"{base}/prompts/" for base in BASES], _prompt),
        **dict.fromkeys([f"{base}/tools/" for base in (*BASES, "/mcp")], _tool),
    }

    def path(self, operation):
        """The operation's path with an id that exists, in a state that allows the operation."""
        path = operation.path.replace("{path}", "template://python-basic" if "/resources/" in operation.path else "a")
        path = path.replace("{port}", "8000")
        if "{id}" not in path:
            return path
        make = self.PLACES.get(operation.name)
        if make is None and "/files" in path:
            make = Bench._with_file
        for prefix in sorted(self.PREFIXES, key=len, reverse=True):
            if make is None and path.startswith(prefix):
                make = self.PREFIXES[prefix]
        assert make, f"{operation}: say in support/openapi.py how to make one"
        return path.replace("{id}", self._made_by(make))

    def _made_by(self, make):
        if self._shared is None:
            return make(self)
        if make not in self._shared:
            self._shared[make] = make(self)
        return self._shared[make]

    def body(self, operation):
        if operation.body_schema is None:
            return None
        if operation.name in BODIES:
            return BODIES[operation.name]()
        if operation.example is not None:
            return operation.example
        return self.description.make(operation.body_schema)

    def send(self, operation, path, body=None, headers=None):
        if body is None and operation.method in ("POST", "PUT", "PATCH") and operation.body_schema is not None:
            body = {}
        if operation.parameters("header") and operation.id.endswith("Unversioned"):
            headers = {"API-Version": "v2", **(headers or {})}
        return self.client.request(operation.method, path, body=body, headers=headers)

    def clean(self):
        """Delete what was created."""
        for session in self.client.get(f"{V1}/sessions?limit=200").json["sessions"]:
            if session["session_id"].startswith(("bench-", "gen-")):
                self.client.request("DELETE", f"{V1}/sessions/{session['session_id']}")
        for sandbox in self.client.get(f"{V1}/sandboxes?page_size=100").json["data"]:
            if sandbox["name"]:
                self.client.request("DELETE", f"{V1}/sessions/{sandbox['id']}")
        for kind, names in (("keys", self.keys), ("templates", self.templates), ("tenants", self.tenants),
                            ("secrets", self.secrets)):  # fmt: skip
            for name in names:
                self.client.request("DELETE", f"{V1}/{kind}/{name}")
            names.clear()
        self.sessions.clear()
        for held in self.imports:
            held.close()
        self.imports.clear()
        host.wait_until(lambda: metrics.read(self.client).value("sandbox_containers") == 0, 10, "boxes gone")


def check_answer(operation, answer):
    """Check that the status is described and that the body matches its schema."""
    content_type = (answer.headers["Content-Type"] or "").split(";")[0]
    schema = operation.schema_of(answer.status, content_type)
    if schema is None:
        return
    if content_type in ("application/x-ndjson", "text/event-stream"):
        values = [json.loads(line) for line in answer.body.decode().splitlines() if line]
    else:
        values = [answer.json] if content_type == "application/json" else [answer.body.decode()]
    for value in values:
        operation.description.validate(schema, value, f"{operation}: {answer.status}")

