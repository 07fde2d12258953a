# SPDX-License-Identifier: Apache-2.0
"""A cell as the pieces that the kernel runs one after the other. `!` and `%` are translated by IPython; installations
are the daemon's work, so a cell is cut at them."""

from __future__ import annotations

import ast
import io
import re
import shlex
import tokenize
from dataclasses import dataclass, field
from typing import Iterator, List, Optional, Union

from IPython.core.inputtransformer2 import TransformerManager

#: Cell magics that the kernel handles.
CELL_MAGIC = re.compile(r"%%(bash|sh|time)[ \t]*(?:\n|$)")
_PIP_COMMAND = re.compile(r"\s*(?:python3?\s+-m\s+)?pip3?\s+(install\b[^;|&<>$`(){}]*)$")
#: Options of pip that change nothing here.
_IDLE = (
    "--break-system-packages",
    "--disable-pip-version-check",
    "--no-cache-dir",
    "--no-input",
    "--prefer-binary",
    "--user",
    "-v",
)

#: What may follow the last word of a program.
_BLANK = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.DEDENT, tokenize.ENDMARKER)
_transformer = TransformerManager()


class UsageError(Exception):
    """An installation that cannot be done this way."""


@dataclass
class Program:
    """Code, with the lines that it has in the cell."""

    code: str
    language: str = "python"
    is_timed: bool = False


@dataclass
class Installation:
    """A line `%pip install ...`, or `!pip install ...`."""

    packages: List[str] = field(default_factory=list)
    #: Files in the sandbox.
    requirements: List[str] = field(default_factory=list)
    is_quiet: bool = False
    upgrades: bool = False


Piece = Union[Program, Installation]


def pieces(cell: str) -> Iterator[Piece]:
    """Raise UsageError before any piece."""
    magic = CELL_MAGIC.match(cell)
    body = cell[magic.end() :] if magic else cell
    if magic and magic[1] != "time":
        return iter([Program(body, "shell")])
    found = list(_cut(_translate(body)))
    for piece in found:
        if magic and isinstance(piece, Program):
            piece.code, piece.is_timed = "\n" + piece.code, True
    return iter(found)


def _translate(cell: str) -> str:
    try:
        return str(_transformer.transform_cell(cell))
    except SyntaxError:  # the sandbox says what is wrong
        return cell


def hides_value(code: str) -> bool:
    """Whether it ends with a semicolon, as IPython lets a cell hide its value."""
    try:
        found = [token for token in tokenize.generate_tokens(io.StringIO(code).readline) if token.type not in _BLANK]
    except (tokenize.TokenError, SyntaxError):
        return False
    return bool(found) and found[-1].string == ";"


def check_complete(code: str) -> "tuple[str, Optional[int]]":
    """For consoles: `complete`, `incomplete` with an indentation, or `invalid`."""
    status, indent = _transformer.check_complete(code)
    return str(status), indent


def _cut(code: str) -> Iterator[Piece]:
    try:
        statements = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield Program(code)
        return
    lines = code.splitlines(keepends=True)
    start = 0
    for statement in statements:
        line = _pip_line(statement)
        if line is None:
            continue
        yield from _program(lines, start, statement.lineno - 1)
        yield _installation(line)
        start = statement.end_lineno or statement.lineno
    yield from _program(lines, start, len(lines))


def _program(lines: List[str], start: int, end: int) -> Iterator[Program]:
    code = "".join(lines[start:end])
    if code.strip():
        yield Program("\n" * start + code)


def _pip_line(statement: ast.stmt) -> Optional[str]:
    """The words after `pip` of `get_ipython().run_line_magic("pip", "install ...")`, or of the same as a command."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    given = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    if ast.unparse(call.func.value) != "get_ipython()" or len(given) != len(call.args):
        return None
    if call.func.attr == "run_line_magic" and given[:1] == ["pip"] and given[1].split()[:1] == ["install"]:
        return given[1]
    found = _PIP_COMMAND.match(given[0]) if call.func.attr == "system" and given else None
    return found[1] if found else None


def _installation(line: str) -> Installation:
    made = Installation()
    try:
        words = iter(shlex.split(line, comments=True)[1:])
    except ValueError as e:
        raise UsageError(f"%pip install: {e}") from e
    for word in words:
        if word in ("-q", "-qq", "--quiet"):
            made.is_quiet = True
        elif word in ("-U", "--upgrade"):
            made.upgrades = True
        elif word in ("-r", "--requirement"):
            made.requirements.append(next(words, ""))
        elif word.startswith("--requirement="):
            made.requirements.append(word.partition("=")[2])
        elif word.startswith("-") and word not in _IDLE:
            raise UsageError(
                f"%pip install: {word} has no meaning here: the daemon installs from the registry of its operator"
            )
        elif not word.startswith("-"):
            made.packages.append(word)
    if not made.packages and not all(made.requirements or [""]):
        raise UsageError("%pip install: expected a package, like numpy==2.1, or -r FILE")
    return made
