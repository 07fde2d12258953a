# SPDX-License-Identifier: Apache-2.0
"""Requests in the documents of other systems. The documents are not part of this repository: MILLIBOX_UPSTREAM names a directory with
checkouts of theirs, and everything is taken from there word for word."""

import ast
import json
import os
import pathlib
import re
import shlex

BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.M | re.S)
PLACE = os.environ.get("MILLIBOX_UPSTREAM", "")


def path_of(name):
    return pathlib.Path(PLACE, name)


def blocks(name):
    """Code blocks of a document. Return: [(kind, text)], without the indentation of the block."""
    return [(kind, re.sub(f"^{indent}", "", text, flags=re.M)) for indent, kind, text in BLOCK.findall(path_of(name).read_text())]


def commands(text):
    """Commands of a block, without comments: one ends with its line, unless a quote or a backslash continues it."""
    pending = ""
    for line in text.splitlines():
        if not pending and (not line.strip() or line.startswith("#")):
            continue
        pending += line + "\n"
        try:
            shlex.split(pending)
        except ValueError:
            continue
        if not line.endswith("\\"):
            yield pending
            pending = ""


def tool_calls(name):
    """JSON objects that name a tool and its arguments."""
    if name.endswith(".json"):
        found = json.loads(path_of(name).read_text())["examples"]
        return [(item["request"]["tool"], item["request"]["parameters"]) for group in found.values() for item in group]
    made = []
    for kind, text in blocks(name):
        if kind != "json":
            continue
        try:
            item = json.loads(text)
        except ValueError:
            continue  # with comments: a fragment
        if isinstance(item, dict) and "tool" in item:
            made.append((item["tool"], item["parameters"]))
        elif isinstance(item, dict) and "tool_name" in item:
            made.append((item["tool_name"], item["arguments"]))
    return made


def collection(name):
    """Requests of a Postman collection, all of them with a JSON body. Return: [(method, path, body as text)]."""
    return [(item["request"]["method"], "/" + "/".join(item["request"]["url"]["path"]), item["request"]["body"]["raw"])
            for group in json.loads(path_of(name).read_text())["item"] for item in group["item"]]


def steps(name):
    """Blocks for the shell, in order: each uses what the ones before it made."""
    return [text for kind, text in blocks(name) if kind == "bash"]


def curl_commands(name):
    return [command for kind, text in blocks(name) if kind == "bash" and not is_script(text)
            for command in commands(text) if command.startswith("curl ") and "localhost" in command + text or "$API_BASE" in command]


def is_script(text):
    """Whether a block is a program of its own: its commands use each other's results."""
    return "=$(curl" in text


def messages(name):
    """JSON-RPC requests: lines of a block, or the argument of an echo."""
    made = []
    for kind, text in blocks(name):
        if kind != "bash":
            continue
        for found in re.findall(r"^echo '(\{.*?\})' \|", text, re.M | re.S) + re.findall(r"^(\{\"jsonrpc\".*\})$", text, re.M):
            item = json.loads(found)
            if "method" in item:
                made.append(item)
    return made


def awaited_calls(name, method):
    """Calls of @method in a Python program, with the strings that their variables have at that point. Return: [{argument: value}]."""
    values, made = {}, []
    for node in sorted((n for n in ast.walk(ast.parse(path_of(name).read_text())) if isinstance(n, (ast.Assign, ast.Call))),
                       key=lambda n: (n.lineno, isinstance(n, ast.Assign))):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            values[node.targets[0].id] = node.value.value
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == method:
            code = node.args[0]
            made.append({"code": values[code.id] if isinstance(code, ast.Name) else ast.literal_eval(code),
                         **{word.arg: ast.literal_eval(word.value) for word in node.keywords}})
    return made
