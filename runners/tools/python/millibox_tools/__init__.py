# SPDX-License-Identifier: Apache-2.0
"""Tools of outside MCP servers, as functions.

    import millibox_tools
    print(millibox_tools.search("issues"))           # finds tools by what they do
    from millibox_tools import github
    help(github.search)                              # arguments, types, description
    github.search(query="memory leak")               # the result: text, or data if the tool returns some

servers() lists the servers of this box, tools("github") their functions. call("github", "search", {...}) returns the
whole result as the server sent it. A tool that fails raises ToolError; what the box may not call raises Denied, a
server that is not there raises Unavailable.

Everything is requested when it is used, over the socket at MCP_SOCKET_PATH: one request per connection, a message is
four bytes (its length, big-endian) and JSON.
"""

import json as _json
import keyword as _keyword
import os as _os
import socket as _socket

__all__ = ["Denied", "ToolError", "Unavailable", "call", "describe", "search", "servers", "tools"]

_LENGTH = 4
_MESSAGE_MAX = 10 * 1024 * 1024
_OWN = "millibox:tools"  # answered by the gateway itself
_cache = {}  # server: Server


class ToolError(Exception):
    """The tool or its server reports an error. `result` is the whole result, if there is one."""

    def __init__(self, text, result=None):
        super().__init__(text)
        self.result = result


class Denied(ToolError):
    """The box may not call this. `rule` says which list decides."""

    def __init__(self, text, rule=None):
        super().__init__(text)
        self.rule = rule


class Unavailable(ToolError):
    """The server is not there, or did not answer in time; the text says what happens next."""


class _Optional:
    def __repr__(self):
        return "<optional>"


_UNSET = _Optional()


def _receive(connection, count):
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise Unavailable("the gateway has closed the connection: it was restarted, or this box ends")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _ask(url, tool, arguments):
    """One request. Return: the answer, an object."""
    data = _json.dumps({"url": url, "tool": tool, "arguments": arguments}).encode()
    if len(data) > _MESSAGE_MAX:
        raise ToolError(f"the arguments have {len(data)} bytes; at most {_MESSAGE_MAX} can be sent")
    path = _os.environ.get("MCP_SOCKET_PATH", "/tmp/mcp.sock")
    with _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
        except OSError as error:
            raise Unavailable(f"{path}: {error.strerror}: this box has no tools of MCP servers") from None
        connection.sendall(len(data).to_bytes(_LENGTH, "big") + data)
        return _json.loads(_receive(connection, int.from_bytes(_receive(connection, _LENGTH), "big")))


def _request(url, tool, arguments):
    """One request. Return: its result."""
    answer = _ask(url, tool, arguments)
    if "error" not in answer:
        return answer.get("result")
    text = str(answer["error"])
    if "rule" in answer or "allowed_urls" in answer:
        raise Denied(text, answer.get("rule", "mcp.servers"))
    if text.startswith(("Cannot connect", "Timeout", "Too many")):
        raise Unavailable(text)
    raise ToolError(text)


def _identifier(name):
    """A name of Python for a name of MCP."""
    text = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    text = "_" + text if not text or text[0].isdigit() else text
    return text + "_" if _keyword.iskeyword(text) else text


_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict",
    "array": "list",
    "null": "None",
}


def _type(schema):
    """The type of a JSON schema, in Python's words."""
    if not isinstance(schema, dict):
        return "Any"
    words = schema.get("enum")
    if isinstance(words, list) and 0 < len(words) < 20 and all(isinstance(w, str) and w.isprintable() for w in words):
        return "Literal[" + ", ".join(repr(w) for w in words) + "]"
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return " | ".join(dict.fromkeys(_type(s) for s in schema[key])) or "Any"
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    names = [_TYPES.get(kind if isinstance(kind, str) else "", "Any") for kind in kinds]
    if names == ["list"] and isinstance(schema.get("items"), dict):
        return f"list[{_type(schema['items'])}]"
    return " | ".join(names)


def _text_of(result):
    """What a program wants of a result: its data, its text, or its parts."""
    if not isinstance(result, dict):
        return result
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    content = result.get("content")
    if not isinstance(content, list):
        return result
    if all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "\n".join(str(part.get("text", "")) for part in content)
    return content


class _Tool:
    """What is known of one tool."""

    def __init__(self, server, data):
        self.server, self.data = server, data
        self.name = str(data["name"])
        schema = data.get("inputSchema")
        schema = schema if isinstance(schema, dict) else {}
        properties = schema.get("properties")
        self.properties = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        self.required = [name for name in self.properties if name in required]
        # Those with a default come last, as Python wants it.
        self.order = self.required + [name for name in self.properties if name not in required]
        self.names = {}
        for name in self.order:
            word = _identifier(str(name))
            while word in self.names.values():
                word += "_"
            self.names[name] = word

    def signature(self):
        parts = []
        for name in self.order:
            rest = "" if name in self.required else " = <optional>"
            parts.append(f"{self.names[name]}: {_type(self.properties[name])}{rest}")
        return f"{_identifier(self.server.name)}.{_identifier(self.name)}({', '.join(parts)})"

    def summary(self):
        lines = str(self.data.get("description") or self.data.get("title") or "").strip().splitlines()
        return f"{self.signature()}: {lines[0][:200]}" if lines else self.signature()

    def doc(self):
        lines = [str(self.data.get("description") or self.data.get("title") or self.name).strip()]
        if self.order:
            lines += ["", "Arguments:"]
        for name in self.order:
            schema = self.properties[name]
            says = schema.get("description") if isinstance(schema, dict) else None
            has_default = isinstance(schema, dict) and "default" in schema
            default = f" (default {_json.dumps(schema['default'])})" if has_default else ""
            need = "" if name in self.required else ", optional"
            lines.append(f"    {self.names[name]}: {_type(schema)}{need}{default}" + (f": {says}" if says else ""))
        lines += ["", f"Tool {self.name!r} of MCP server {self.server.name!r}."]
        return "\n".join(lines)

    def invoke(self, values, more):
        arguments = {name: values[word] for name, word in self.names.items() if values[word] is not _UNSET}
        arguments.update(more)
        result = call(self.server.name, self.name, arguments)
        value = _text_of(result)
        if isinstance(result, dict) and result.get("isError") is True:
            raise ToolError(value if isinstance(value, str) else _json.dumps(value), result)
        return value

    def function(self):
        """A function with the tool's arguments. All words in its source are identifiers or literals made here."""
        parts = [
            f"{self.names[name]}: {_type(self.properties[name])!r}" + ("" if name in self.required else "=_unset")
            for name in self.order
        ]
        more = "more_"
        while more in self.names.values():
            more += "_"
        word = _identifier(self.name)
        values = ", ".join(f"{self.names[name]!r}: {self.names[name]}" for name in self.order)
        source = f"def {word}({', '.join([*parts, '**' + more])}):\n    return _invoke({{{values}}}, {more})\n"
        names = {"_unset": _UNSET, "_invoke": self.invoke}
        exec(compile(source, f"<{self.server.name}.{self.name}>", "exec"), names)
        made = names[word]
        made.__doc__ = self.doc()
        made.__module__ = __name__
        made.__qualname__ = f"{_identifier(self.server.name)}.{word}"
        return made


class Server:
    """The tools of one MCP server, as functions."""

    def __init__(self, name):
        self.__name__ = self.name = name
        self._tools = None

    def _load(self):
        if self._tools is None:
            found = _request(_OWN, "list", {"server": self.name})["servers"]
            if not found:
                raise Denied(f"this box may call no tool of an MCP server '{self.name}'", "mcp")
            if found[0]["state"] != "ready" and not found[0]["tools"]:
                raise Unavailable(f"MCP server '{self.name}' is {found[0]['state']}: try again later")
            tools = [_Tool(self, data) for data in found[0]["tools"] if isinstance(data, dict) and data.get("name")]
            self._tools = {_identifier(tool.name): tool for tool in tools}
        return self._tools

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        tool = self._load().get(name)
        if tool is None:
            near = ", ".join(sorted(self._load())) or "none"
            raise AttributeError(f"this box may call no tool '{name}' of MCP server '{self.name}'; it has: {near}")
        made = self.__dict__[name] = tool.function()
        return made

    def __dir__(self):
        return [*object.__dir__(self), *self._load()]

    def __repr__(self):
        return f"<tools of MCP server {self.name}>"


def servers():
    """The names of the servers that this box may call."""
    return [entry["name"] for entry in _request(_OWN, "list", {})["servers"]]


def _server(name):
    if name not in _cache:
        _cache[name] = Server(name)
    return _cache[name]


def _all_tools(server=None):
    arguments = {} if server is None else {"server": server}
    for entry in _request(_OWN, "list", arguments)["servers"]:
        for data in entry["tools"]:
            if isinstance(data, dict) and data.get("name"):
                yield _Tool(_server(entry["name"]), data)


def tools(server=None):
    """One line for each tool of a server, or of all."""
    return [tool.summary() for tool in _all_tools(server)]


def search(text, limit=10):
    """The tools that fit some words best: one line each, with arguments and what the tool does."""
    words = [word for word in text.lower().replace("_", " ").replace("-", " ").split() if word]
    found = []
    for tool in _all_tools():
        name = f"{tool.server.name} {tool.name}".lower()
        about = str(tool.data.get("description") or "").lower()
        score = sum(3 * (word in name) + (word in about) for word in words)
        if score or not words:
            found.append((-score, name, tool.summary()))
    return [line for _, _, line in sorted(found)[:limit]]


def describe(name):
    """All about one tool, by "server.tool" or "server/tool"."""
    server, _, tool = name.replace("/", ".", 1).partition(".")
    for known in _all_tools(server):
        if tool in (known.name, _identifier(known.name)):
            return known.signature() + "\n\n" + known.doc()
    raise Denied(f"this box may call no tool '{name}'", "mcp")


def call(server, tool, arguments=None):
    """Call a tool by its names. Return: the whole result, as the server sent it."""
    return _request(server, tool, arguments or {})


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    for known in servers():
        if name in (known, _identifier(known)):
            server = globals()[name] = _server(known)
            return server
    raise AttributeError(f"this box may call no MCP server '{name}'; it may call: {', '.join(servers()) or 'none'}")


def __dir__():
    return [*__all__, *(_identifier(name) for name in servers())]
