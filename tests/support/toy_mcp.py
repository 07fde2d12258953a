# SPDX-License-Identifier: Apache-2.0
"""A small MCP server on stdin and stdout, for tests of the gateway: it does what a tool's arguments say, also badly."""

import json
import os
import sys
import threading
import time

TOOLS = [
    {"name": "echo", "description": "Returns its text.\nAll of it.",
     "inputSchema": {"type": "object", "required": ["text"],
                     "properties": {"text": {"type": "string", "description": "what to return"},
                                    "times": {"type": "integer", "default": 1}}}},
    {"name": "add", "description": "Adds two numbers.",
     "inputSchema": {"type": "object", "required": ["a", "b"],
                     "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}},
    {"name": "env", "description": "The variables of the server.", "inputSchema": {"type": "object"}},
    {"name": "sleep", "description": "Waits.", "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}}},
    {"name": "big", "description": "Many bytes.", "inputSchema": {"type": "object", "properties": {"bytes": {"type": "integer"}}}},
    {"name": "raw", "description": "Writes a line as it is.", "inputSchema": {"type": "object", "properties": {"line": {"type": "string"}}}},
    {"name": "die", "description": "Ends the server.", "inputSchema": {"type": "object"}},
    {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}},
    {"name": "cancelled", "description": "Ids of cancelled requests.", "inputSchema": {"type": "object"}},
    {"name": "class", "description": "A name that Python has.",
     "inputSchema": {"type": "object", "properties": {"from": {"type": "string"}, "a-b": {"enum": ["x", "y"]}}}},
]

lock = threading.Lock()
cancelled, lists = [], []


def send(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def call(ident, name, arguments):
    if name == "echo":
        return text(arguments["text"] * arguments.get("times", 1))
    if name == "add":
        total = arguments["a"] + arguments["b"]
        return {**text(str(total)), "structuredContent": {"sum": total}}
    if name == "env":
        return text(json.dumps(dict(os.environ)))
    if name == "sleep":
        time.sleep(arguments["seconds"])
        return text("slept")
    if name == "big":
        return text("x" * arguments["bytes"])
    if name == "raw":
        with lock:
            sys.stdout.buffer.write(arguments["line"].replace("ID", str(ident)).encode("latin-1") + b"\n")
            sys.stdout.flush()
        return None
    if name == "die":
        os._exit(3)
    if name == "fail":
        return {**text("it failed"), "isError": True}
    if name == "lists":  # how often its tools were asked for
        return text(str(len(lists)))
    if name == "cancelled":
        return text(json.dumps(cancelled))
    if name == "class":
        return text(json.dumps(arguments))
    return KeyError(name)


def answer(message):
    ident, method = message.get("id"), message.get("method")
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "toy", "version": "1"}}
    elif method == "tools/list":
        lists.append(ident)
        result = {"tools": TOOLS}
        if depth := int(os.environ.get("TOY_DEPTH", "0")):
            schema = {"type": "object"}
            for _ in range(depth):
                schema = {"properties": schema}
            result = {"tools": [{"name": "deep", "inputSchema": schema}]}
    elif method == "tools/call":
        result = call(ident, message["params"]["name"], message["params"].get("arguments", {}))
    elif method == "notifications/cancelled":
        cancelled.append(message["params"]["requestId"])
        return
    else:
        result = {}
    if ident is None or result is None:
        return
    if isinstance(result, KeyError):
        send({"jsonrpc": "2.0", "id": ident, "error": {"code": -32602, "message": f"no tool {result}"}})
    else:
        send({"jsonrpc": "2.0", "id": ident, "result": result})


for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") == "tools/call" and request["params"]["name"] == "sleep":
        threading.Thread(target=answer, args=(request,), daemon=True).start()
    else:
        answer(request)
