#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make-openapi.py TABLES.json IN.yaml [--check OUT.yaml | --write OUT.yaml] - make docs/api/openapi.yaml.

TABLES.json is what build/tools/openapi-tables prints: the routes of every dialect with their query
parameters, and the schemas of their request bodies, all from the tables that the daemon itself uses.
IN.yaml (docs/api/openapi.in.yaml) has what no table says: prose, paths, headers and responses; its head
explains the notation.

A route without an operation, an operation without a route, a request that both describe, and a query
parameter in IN.yaml are errors.
"""

import argparse
import json
import re
import sys

import yaml

HEAD = """# SPDX-License-Identifier: Apache-2.0
# Made by "make openapi" from the tables of the API and openapi.in.yaml, which is the file to edit.
"""
PLAIN = {"string", "integer", "number", "boolean", "object", "array", "null"}
# A mapping with one of these keys is JSON schema as it is.
KEYWORDS = {"type", "const", "enum", "$ref", "oneOf", "anyOf", "allOf", "items", "properties", "pattern", "description"}
PAGE = {"items": None, "total": "integer", "limit": "integer", "offset": "integer", "has_more": "boolean"}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Statuses of every route of a dialect, and the component that describes them. "id" is added for paths
# with {id}, "body" for JSON bodies.
ERRORS = {
    "v1": {"all": "400 401 403 405 413 429 503", "id": "404", "body": "415", "is": "ApiError"},
    "mcp": {"all": "400 401 403 404 405", "is": "McpError"},
    "se": {"all": "400 401 403 404 405 413 429 503", "body": "415", "is": "SeError"},
    "sandboxes": {"all": "400 401 403 404 405 409 413 415 429 503 507", "is": "SandboxError"},
    "sandboxes_tool": {"all": "400 401 403 404 405 413 415 429 500 503 507", "is": "ToolError"},
}
ERRORS["se_v2"], ERRORS["sandboxes_about"] = ERRORS["se"], ERRORS["v1"]
# The tag of a dialect's operations. Those of v1 that the control plane has too have both tags: a program that is
# generated from one tag can be complete without the others.
TAGS = {"mcp": "mcp", "se": "compat-shared-environment", "se_v2": "compat-shared-environment"}
TAGS.update(dict.fromkeys(("sandboxes", "sandboxes_tool", "sandboxes_about"), "compat-sandboxrunner"))
OWN, SHARED = "millibox", "compat-control-plane"
ALIASES = {"/api.json": "compat-shared-environment", "/api/openapi.json": "compat-sandboxrunner"}
BUSY = {"ApiError": "Busy"}  # of 429 and 503, which have Retry-After
# Routes that several versions serve are described under the first.
VERSIONS = {"/api/v2/": "V2", "/api/": "Unversioned"}


def reference(kind, name):
    return {"$ref": f"#/components/{kind}/{name}"}


def named_type(text):
    """ "string", "time or null", "list of Key", "a | b", "Key"."""
    if text.startswith("list of "):
        return {"type": "array", "items": named_type(text.removeprefix("list of "))}
    if " | " in text:
        return {"enum": text.split(" | ")}
    name, null = text.removesuffix(" or null"), text.endswith(" or null")
    if name == "any":
        return {}
    if name == "time":
        return {"type": ["string", "null"] if null else "string", "format": "date-time"}
    if name in PLAIN:
        return {"type": [name, "null"] if null else name}
    if not re.fullmatch(r"[A-Z]\w*", text):
        raise ValueError(f"{text!r} is not a type")
    return reference("schemas", text)


def object_schema(members, optional):
    schema = {"type": "object"}
    if members:
        schema["required"] = list(members)
    typed = {name: node for name, node in members.items() if node != "any"}
    if typed or optional:
        schema["properties"] = {name: expand(node) for name, node in {**typed, **optional}.items()}
    return schema


def expand(node):
    """A schema in the notation of IN.yaml as JSON schema."""
    if isinstance(node, str):
        return named_type(node)
    described = {"description": node["description"]} if "description" in node else {}
    if isinstance(node.get("object"), dict):
        return {**described, **object_schema(node["object"], node.get("optional", {}))}
    if "list" in node:
        return {**described, "type": "array", "items": expand(node["list"])}
    for key in ("allOf", "anyOf", "oneOf"):
        if key in node:
            return {**node, key: [expand(part) for part in node[key]]}
    if len(node) == 1 and not KEYWORDS & set(node):
        ((name, text),) = node.items()
        return {"description": text, **named_type(name)}
    return node


def page_schema(members):
    ((name, item),) = members.items()
    if name == "data":
        data = object_schema({}, {"data": f"list of {item}"})
        return {"allOf": [reference("schemas", "SandboxPage"), data]}
    return object_schema({name: f"list of {item}", **PAGE, "items": f"list of {item}"}, {})


def content_of(node):
    content = {}
    if "schema" in node:
        content["application/json"] = {"schema": expand(node["schema"])}
    if "stream" in node:
        for kind in ("application/x-ndjson", "text/event-stream"):
            content[kind] = {"schema": expand(node["stream"])}
    for kind, schema in node.get("content", {}).items():
        content[kind] = {"schema": expand(schema)}
    return content


def response(node):
    if isinstance(node, str):
        return {"description": node}
    if "description" not in node:
        ((schema, text),) = node.items()
        node = {"schema": schema, "description": text}
    answer = {"description": node["description"]}
    if "headers" in node:
        answer["headers"] = node["headers"]
    content = content_of(node)
    return {**answer, "content": content} if content else answer


def statuses(route, path, operation):
    rule = ERRORS[route["dialect"]]
    codes = rule["all"].split()
    if route["public"]:
        codes = [code for code in codes if code not in ("401", "429")]
    if "{id}" in path:
        codes += rule.get("id", "").split()
    if route["body"] == "json":
        codes += rule.get("body", "").split()
    found = {code: rule["is"] for code in codes}
    more = operation.get("errors", {})
    found.update(dict.fromkeys(more.split(), rule["is"]) if isinstance(more, str) else more)
    answers = {}
    for code, name in found.items():
        name = BUSY.get(name, name) if code in ("429", "503") else name
        answers[code] = reference("responses", name)
    for code, node in operation.items():
        if isinstance(code, int):
            answers[str(code)] = response(node)
    return dict(sorted(answers.items()))


def parameters(route, path, operation, unversioned):
    found = operation.get("parameters", [])
    found = [node if isinstance(node, dict) else reference("parameters", node) for node in found]
    own = {node["$ref"].rsplit("/", 1)[-1] for node in found if "$ref" in node}
    first = [reference("parameters", "Id")] if "{id}" in path else []
    if "{path}" in path and not own & {"FilePath"}:
        first.append(reference("parameters", "Path"))
    if unversioned:
        first.append(reference("parameters", "ApiVersion"))
    return first + found + route["query"]


def request(route, operation, where):
    if route["request"]:
        if "request" in operation:
            raise ValueError(f"{where}: its request is described by a table already")
        schema = reference("schemas", route["request"])
        return {"required": route["body"] == "json", "content": {"application/json": {"schema": schema}}}
    if "request" not in operation:
        if route["body"] in ("json", "stream", "any"):
            raise ValueError(f"{where}: nothing describes its request")
        return None
    node = operation["request"]
    content = {node.get("type", "application/json"): {"schema": expand(node["schema"])}}
    return {"required": node.get("required", True), "content": content}


def find_operation(operations, method, path):
    """Return: the operation, the name of its version, and whether only the second version has it."""
    if f"{method} {path}" in operations:
        return operations[f"{method} {path}"], "", False
    for prefix, suffix in VERSIONS.items():
        for first in ("/api/v1/", "/api/v2/"):
            same = f"{method} {first}{path.removeprefix(prefix)}"
            if path.startswith(prefix) and same in operations:
                return operations[same], suffix, suffix == "Unversioned" and first == "/api/v2/"
    raise ValueError(f"{method} {path}: no operation describes it")


def tags(route):
    if route["dialect"] != "v1":
        return [TAGS[route["dialect"]]]
    return [OWN] * (not route["compat"]) + [SHARED] * route["shared"] or [ALIASES[route["path"]]]


def describe(route, operations):
    path = route["path"].replace("{path...}", "{path}")
    where = f"{route['method']} {path}"
    operation, suffix, versioned = find_operation(operations, route["method"], path)
    node = {"tags": tags(route), "summary": route["summary"], "operationId": operation["id"] + suffix}
    if "description" in operation:
        node["description"] = operation["description"]
    found = parameters(route, path, operation, versioned)
    if found:
        node["parameters"] = found
    body = request(route, operation, where)
    if body:
        node["requestBody"] = body
    node["responses"] = statuses(route, path, operation)
    return path, node


def refuse_queries(source):
    """Parameters of a query are described by the tables of the routes."""
    described = [*source["parameters"].values()]
    for operation in source["operations"].values():
        described += [node for node in operation.get("parameters", []) if isinstance(node, dict)]
    for node in described:
        if node["in"] == "query":
            raise ValueError(f"{node['name']}: a query parameter belongs into the table of its route")


def make(tables, source):
    refuse_queries(source)
    operations = source["operations"]
    paths = {}
    for route in tables["routes"]:
        path, node = describe(route, operations)
        paths.setdefault(path, {})[route["method"].lower()] = node
    for name in operations:
        method, path = name.split(" ", 1)
        if method not in METHODS or method.lower() not in paths.get(path, {}):
            raise ValueError(f"{name}: there is no such route")
    schemas = dict(tables["schemas"])
    twice = set(schemas) & (set(source["schemas"]) | set(source["pages"]))
    if twice:
        raise ValueError(f"described by a table already: {sorted(twice)}")
    schemas.update({name: expand(node) for name, node in source["schemas"].items()})
    schemas.update({name: page_schema(node) for name, node in source["pages"].items()})
    return {
        **{key: source[key] for key in ("openapi", "info", "tags", "security", "servers")},
        "paths": paths,
        "components": {
            "securitySchemes": source["securitySchemes"],
            "parameters": source["parameters"],
            "responses": {name: response(node) for name, node in source["responses"].items()},
            "schemas": dict(sorted(schemas.items())),
        },
    }


class _Dumper(yaml.SafeDumper):
    """Text of several lines stays readable; nothing is written as an alias."""

    def ignore_aliases(self, data):
        return True


def _represent_text(dumper, text):
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text.strip() else None)


_Dumper.add_representer(str, _represent_text)


def dump(document):
    style = {"sort_keys": False, "width": 120, "allow_unicode": True, "default_flow_style": None}
    return HEAD + yaml.dump(document, Dumper=_Dumper, **style)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables")
    parser.add_argument("source")
    parser.add_argument("--check", metavar="OUT.yaml")
    parser.add_argument("--write", metavar="OUT.yaml")
    args = parser.parse_args()
    with open(args.tables, encoding="utf-8") as file:
        tables = json.load(file)
    with open(args.source, encoding="utf-8") as file:
        source = yaml.safe_load(file)
    try:
        text = dump(make(tables, source))
    except (ValueError, KeyError) as error:
        sys.exit(f"{args.source}: {error}")
    if args.write:
        with open(args.write, "w", encoding="utf-8") as file:
            file.write(text)
    elif args.check:
        with open(args.check, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit(f"{args.check} is not what the tables and {args.source} give: run 'make openapi'")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
