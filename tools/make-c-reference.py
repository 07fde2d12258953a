#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""docs/sdk/c.md from the comments of src/client/millibox.h. Usage: make-c-reference.py --check | --write

The comment of the header that begins with DOC is the introduction, a one-line comment on its own begins a section, and
"/** name - text */" describes the declaration after it. With --check the status is 1 if the file is not current.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "src/client/millibox.h"
TARGET = ROOT / "docs/sdk/c.md"

HEAD = """<!-- Made by tools/make-c-reference.py from src/client/millibox.h; do not edit. -->
# C library: reference

[sdk/c/README.md](../../sdk/c/README.md) is the introduction.

"""

PIECE = re.compile(
    r"/\*\*(?P<doc>.*?)\*/|/\*(?P<plain>.*?)\*/|^(?P<code>[a-z][^#;{]*(?:\{[^}]*\})?[^;]*;)", re.S | re.M)


def words(comment):
    """The text of a comment as paragraphs of one line."""
    lines = [re.sub(r"^\s*\* ?", "", line).strip() for line in comment.strip().splitlines()]
    return [" ".join(part.split()) for part in "\n".join(lines).split("\n\n")]


def marked(text):
    """Names of functions, arguments and variables as code."""
    text = re.sub(r"@(\w+)|(millibox_error_\*)", lambda m: f"`{m[1] or m[2]}`", text)
    text = re.sub(r"(?<![`\w])(millibox_\w+|MILLIBOX_\w+)(?!\*)\b(?![`*])", r"`\1`", text)
    return text.replace("|", "\\|")


def introduction(paragraphs):
    for paragraph in paragraphs:
        title, dot, rest = paragraph.partition(". ")
        yield f"**{title}.** {marked(rest)}\n" if dot and " " not in title else marked(paragraph) + "\n"


def row(code, doc):
    signature = " ".join(code.rstrip(";").split())
    return f"| `{signature}` | {marked(doc)} |"


def reference(header):
    header = re.sub(r"#ifdef __cplusplus.*?#endif", "", header, flags=re.S)
    out, doc, rows = [], "", False
    for piece in PIECE.finditer(header):
        if piece["plain"] is not None:
            paragraphs = words(piece["plain"])
            if paragraphs[0].startswith("DOC: "):
                out += introduction([paragraphs[0][5:], *paragraphs[1:]])
            elif "SPDX" not in paragraphs[0]:
                out.append(f"## {paragraphs[0]}\n\n| | |\n| --- | --- |")
        elif piece["doc"] is not None:
            doc = " ".join(words(piece["doc"])).partition(" - ")[2]
            doc = doc[:1].upper() + doc[1:]
        elif not re.fullmatch(r"struct \w+;", piece["code"]):
            out.append(row(piece["code"], doc))
            doc, rows = "", True
    assert rows, "the header was not read"
    # A blank line before each section.
    return HEAD + re.sub(r"\n## ", "\n\n## ", "\n".join(out)) + "\n"


def main(mode):
    made = reference(HEADER.read_text())
    if mode == "--write":
        TARGET.write_text(made)
    elif not TARGET.exists() or TARGET.read_text() != made:
        print(f"{TARGET.relative_to(ROOT)} is not current: run tools/make-c-reference.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "--check"))
