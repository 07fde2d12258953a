#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gen-openapi.py IN.yaml OUT.c - the API's description as the daemon serves it: JSON, in a C array.

The YAML is what people read and edit, and the only source. References that lead nowhere, names that
are used twice and values that JSON does not have are errors of the build.
"""

import json
import sys

import yaml

PER_LINE = 24


def _no_duplicates(loader, node, deep=False):
    keys = [key.value for key, _ in node.value]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        raise ValueError(f"line {node.start_mark.line + 1}: twice: {sorted(map(str, twice))}")
    loader.flatten_mapping(node)  # "<<": what is merged comes first, and gives way
    return {loader.construct_object(key, deep=deep): loader.construct_object(value, deep=True) for key, value in node.value}


class _Loader(yaml.SafeLoader):
    """Keys are unique; what looks like a date stays text, as in JSON."""


_Loader.add_constructor("tag:yaml.org,2002:map", _no_duplicates)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _resolve(document, reference):
    node = document
    for part in reference.removeprefix("#/").split("/"):
        node = node[part.replace("~1", "/").replace("~0", "~")]
    return node


def _walk(document, node):
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            try:
                _resolve(document, reference)
            except (KeyError, TypeError):
                raise ValueError(f"{reference} leads nowhere") from None
        for value in node.values():
            _walk(document, value)
    elif isinstance(node, list):
        for value in node:
            _walk(document, value)


def _check(document):
    _walk(document, document)
    seen = set()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            name = operation["operationId"]
            if name in seen:
                raise ValueError(f"{method} {path}: operationId {name} is there twice")
            seen.add(name)


def load(path):
    with open(path, encoding="utf-8") as file:
        document = yaml.load(file, _Loader)
    _check(document)
    return document


def _source(data):
    lines = [", ".join(str(byte) for byte in data[at : at + PER_LINE]) for at in range(0, len(data), PER_LINE)]
    return (
        "/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by tools/gen-openapi.py. */\n"
        '#include "api/openapi.h"\n\n'
        "const unsigned char openapi_json[] = {\n\t" + ",\n\t".join(lines) + "};\n"
        "const size_t openapi_json_len = sizeof(openapi_json);\n"
    )


def main():
    _, source, target = sys.argv
    try:
        text = json.dumps(load(source), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, yaml.YAMLError) as error:
        sys.exit(f"{source}: {error}")
    with open(target, "w", encoding="utf-8") as file:
        file.write(_source(f"{text}\n".encode()))


if __name__ == "__main__":
    main()
