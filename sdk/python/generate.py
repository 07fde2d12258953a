#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what is made of other files. Usage: generate.py [--check]

errors.py        one class for each error code, from lib/base/error_codes.def
_sync/*.py       the synchronous client, from the asynchronous one
docs/sdk/python.md   the reference, from docstrings

With --check nothing is written; the status is 1 if a file is not what it should be.
"""

import ast
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGE = HERE / "src/millibox"
MADE = "# Made by sdk/python/generate.py from {}; do not edit.\n"

# ---- errors.py

CODE = re.compile(r'ERROR_CODE\((\w+),\s*(\d+),\s*(-?\d+),\s*"([^"]+)",\s*"((?:[^"\\]|\\.)*)"')

ERRORS_HEAD = '''
"""One exception for each error code of the daemon."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional, Type

from ._base_errors import ApiError as ApiError
'''

ERRORS_TAIL = '''

#: The class of each code.
CLASSES: Dict[str, Type[ApiError]] = {{
{classes}
}}

#: The HTTP status of each code.
STATUS: Dict[str, int] = {{
{statuses}
}}


def from_answer(status: int, body: Mapping[str, Any], retry_after: Optional[float] = None) -> ApiError:
    """The exception for an error body. A code that this version does not know is an `ApiError`."""
    return CLASSES.get(str(body.get("error_code")), ApiError)(status, body, retry_after)


def read_body(body: bytes) -> Dict[str, Any]:
    """An error body; one that is none, such as a proxy's page, becomes the detail of an error without a code."""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {{"error_detail": body[:500].decode(errors="replace").strip()}}
'''


def class_name(text):
    name = text.split(".")[-1]
    return name if name.endswith("Error") else name + "Error"


def make_errors():
    source = (ROOT / "lib/base/error_codes.def").read_text()
    codes = [
        (text, int(status), describe) for word, status, _, text, describe in CODE.findall(source) if word != "NONE"
    ]
    names = [class_name(text) for text, _, _ in codes]
    assert len(set(names)) == len(names) > 20, "two codes have one class, or the list was not read"
    # Classes after their bases: "not found" is the base of all that were not found.
    codes.sort(key=lambda code: code[0] != "Sandbox.NotFound")
    out = [MADE.format("lib/base/error_codes.def"), "# SPDX-License-Identifier: Apache-2.0", ERRORS_HEAD]
    for text, status, describe in codes:
        base = "NotFoundError" if status == 404 and text != "Sandbox.NotFound" else "ApiError"
        out.append(f'\n\nclass {class_name(text)}({base}):\n    """{describe}"""\n\n    code = "{text}"\n')
    classes = "\n".join(f'    "{text}": {class_name(text)},' for text, _, _ in codes)
    statuses = "\n".join(f'    "{text}": {status},' for text, status, _ in codes)
    out.append(ERRORS_TAIL.format(classes=classes, statuses=statuses))
    return {PACKAGE / "errors.py": "".join(out)}


# ---- _sync

#: In their order; whole words unless they end with another sign.
WORDS = [
    (r"\basync def\b", "def"),
    (r"\basync with\b", "with"),
    (r"\basync for\b", "for"),
    (r"\bawait ", ""),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\b__a(?=enter__|exit__|iter__)", "__"),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\bhandle_async_request\b", "handle_request"),
    (r"\b_async\b", "_sync"),
]


def make_sync():
    made = {}
    for path in sorted((PACKAGE / "_async").glob("*.py")):
        if path.name in ("__init__.py", "_io.py"):
            continue
        text = path.read_text()
        for pattern, word in WORDS:
            text = re.sub(pattern, word, text)
        text = re.sub(r"\bIterator, (.*)\bIterator\b(.*)", once_imported, text)
        made[PACKAGE / "_sync" / path.name] = MADE.format(f"_async/{path.name}") + text
    return made


def once_imported(line):
    """An import that names Iterator twice: it had both kinds."""
    return f"{line[1]}Iterator{line[2]}"


# ---- docs/sdk/python.md

#: Modules of the reference, and the classes and functions that they define for users.
REFERENCE = [
    ("_sync/_client.py", ["Client"]),
    ("_sync/_sandbox.py", ["Sandbox"]),
    ("_sync/_files.py", ["Files"]),
    ("_sync/_commands.py", ["Commands"]),
    ("_sync/_execution.py", ["Execution", "Terminal"]),
    ("_sync/_port.py", ["Port"]),
    ("_forward.py", ["Forward"]),
    ("_local.py", ["local", "LocalDaemon"]),
    ("_models.py", ["Result", "ErrorInfo", "Event", "FileInfo", "PortInfo", "SandboxInfo"]),
    ("_base_errors.py", None),
]

REFERENCE_HEAD = """<!-- Made by sdk/python/generate.py from docstrings; do not edit. -->
# Python SDK: reference

[sdk/python/README.md](../../sdk/python/README.md) is the introduction. `AsyncClient`, `AsyncSandbox`, `AsyncFiles`,
`AsyncCommands`, `AsyncExecution`, `AsyncTerminal`, `AsyncPort` and `async_local` have the same methods as the classes
below, to be awaited (`aclose` instead of `close`); iterators are asynchronous, and callbacks may be coroutine
functions. In signatures, `*` precedes arguments that must be named.
"""


def doc(node):
    text = ast.get_docstring(node)
    return re.sub(r"@(\w+)", r"`\1`", text) if text else ""


def signature(node):
    """Names, types and defaults; without self and quotes."""
    text = ast.unparse(node.args)
    text = re.sub(r"^(self|cls)(, )?", "", text).replace("'os.PathLike[str]'", "os.PathLike[str]")
    return f"({text})" + (
        f" -> {ast.unparse(node.returns)}" if node.returns and ast.unparse(node.returns) != "None" else ""
    )


def describe(node, depth):
    lines = [f"\n{'#' * depth} {node.name}\n"]
    if isinstance(node, ast.FunctionDef):
        return [*lines, f"```python\n{node.name}{signature(node)}\n```\n", doc(node)]
    bases = [ast.unparse(base) for base in node.bases]
    article = "An" if bases and bases[0][0] in "AEIOU" else "A"
    lines.append((f"{article} `{bases[0]}`. " if bases else "") + doc(node))
    functions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    lines += [
        f"\n```python\n{node.name}{signature(item)}\n```"
        for item in functions
        if item.name == "__init__" and doc(node)
    ]
    fields = [item for item in node.body if isinstance(item, ast.AnnAssign) and item.simple and not bases]
    if fields:
        lines.append("\nFields: " + ", ".join(f"`{ast.unparse(item.target)}`" for item in fields) + ".")
    public = [item for item in functions if not item.name.startswith("_") and doc(item)]
    rows = [
        (f"`{item.name}`" if is_property(item) else f"`{item.name}{signature(item)}`", one_line(doc(item)))
        for item in public
    ]
    if rows:
        lines.append("\n| | |\n| --- | --- |\n" + "\n".join(f"| {cell(a)} | {cell(b)} |" for a, b in rows))
    return lines


def one_line(text):
    """For a cell: items of a list begin new lines."""
    return " ".join(re.sub(r"\n\s*- ", "<br>- ", text).split())


def cell(text):
    return text.replace("|", "\\|")


def is_property(node):
    return any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)


def make_reference(sources):
    lines = [REFERENCE_HEAD]
    for name, wanted in REFERENCE:
        path = PACKAGE / name
        tree = ast.parse(sources.get(path) or path.read_text())
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and (wanted is None or node.name in wanted):
                lines += describe(node, 2)
    errors = ast.parse(sources[PACKAGE / "errors.py"])
    lines.append("\n## millibox.errors\n\nSubclasses of `ApiError`:\n\n| class | code | |\n| --- | --- | --- |")
    for node in errors.body:
        if isinstance(node, ast.ClassDef):
            code = next(ast.literal_eval(item.value) for item in node.body if isinstance(item, ast.Assign))
            lines.append(f"| `{node.name}` | {code} | {doc(node)} |")
    return {ROOT / "docs/sdk/python.md": "\n".join(lines) + "\n"}


def main():
    made = {**make_errors(), **make_sync()}
    made.update(make_reference(made))
    old = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in old:
            print(f"{path.relative_to(ROOT)} is not current: run sdk/python/generate.py")
        return 1 if old else 0
    for path in old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
