#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make-man.py TABLES.json IN.scd (--check OUT.scd | --write OUT.scd) - make docs/man/millibox.1.scd.

TABLES.json is what build/tools/cli-tables prints: the commands with their options, and the exit statuses,
from the tables that millibox itself uses for parsing, --help and completion. IN.scd (millibox.1.in.scd) is
the page with what no table has. Lines of IN.scd that begin with "@":

    @synopsis               a line for each command
    @exit-status            an entry for each exit status
    @commands               a section for each command: usage, summary, text and options of the tables
    @about COMMAND          the lines up to the next "@" follow the text of that command
    @about COMMAND --OPTION ... follow the help of that option; without COMMAND, in all sections
    @end                    of the last @about

More than one COMMAND: with commas between.

A command needs no @about. One that names no command or option of the tables is an error.
"""

import argparse
import json
import re
import sys
import textwrap

HEAD = """; Made by "make man" from the tables of src/cli and millibox.1.in.scd, which is the file to edit.
"""


def escape(text):
    return re.sub(r"([\\_*])", r"\\\1", text)


def plain(text, placeholders=()):
    """A text of the tables as scdoc: options and quoted commands bold, placeholders underlined."""
    names = "".join(rf"|(?<![\w-]){re.escape(name)}(?![\w-])" for name in placeholders)
    parts = re.split(rf"((?<![\w-])--?[a-z][a-z-]*\b|'millibox [^']*'{names})", text)
    return "".join(escape(part) if not i % 2 else f"_{escape(part)}_" if part in placeholders
                   else f"*{escape(part.strip(chr(39)))}*" for i, part in enumerate(parts))


def wrap(text):
    return textwrap.fill(text, 140, break_long_words=False, break_on_hyphens=False)


def sentence(text):
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def arguments(text):
    """The usage line: what the caller replaces is underlined, what he types is bold."""
    return re.sub(r"[A-Z][A-Z:/]*|--?[a-z]*", lambda m: f"_{m[0]}_" if m[0][0].isupper() else f"*{m[0]}*", text)


def usage(command):
    words = ["[_option_...]"] if command["options"] else []
    return " ".join(words + ([arguments(command["arguments"])] if command["arguments"] else []))


def placeholders(command):
    return sorted(set(re.findall(r"[A-Z]{2,}", command["arguments"])), key=len, reverse=True)


def option_entry(option, details):
    letter = f"*-{option['letter']}*, " if option["letter"] else ""
    value = f" _{escape(option['value'])}_" if option["value"] else ""
    names = [option["value"]] if option["value"] and option["value"].isalpha() and len(option["value"]) > 1 else []
    text = sentence(plain(option["help"], names))
    lines = [f"{letter}*--{option['name']}*{value}", f"\t{text}"]
    return "\n".join(lines + [f"\t{line.strip()}" for detail in details for line in detail.splitlines()])


def section(command, about):
    name = command["name"]
    text = [wrap(plain(line, placeholders(command))) for line in (command["text"] or "").splitlines()]
    parts = [f"# {name.upper()}", f"*millibox {name}* {usage(command)}".strip(),
             sentence(plain(command["summary"])), *text, *about.pop((name, None), [])]
    for option in command["options"]:
        details = [part for key in ((name, option["name"]), (None, option["name"])) for part in about.get(key, [])]
        parts.append(option_entry(option, details))
    return "\n\n".join(parts)


def synopsis(commands):
    return "++\n".join(f"*millibox* *{c['name']}* {usage(c)}".strip() for c in commands)


def exit_statuses(rows):
    return "\n\n".join(f"*{escape(row['status'])}*\n\t{plain(row['meaning'])}" for row in rows)


def read_template(text):
    """The page as a list of texts and marks, and the notes of @about: {(command, option): [text]}."""
    page, about = [], {}
    for i, part in enumerate(re.split(r"^@(.*)\n", text, flags=re.M)):
        if i % 2:
            page.append(("mark", part))
        elif page and page[-1][1].startswith("about "):
            words = page.pop()[1].split()[1:]
            option = words.pop()[2:] if words[-1].startswith("--") else None
            for command in " ".join(words).split(", "):
                about.setdefault((command or None, option), []).append(part.strip())
        else:
            page.append(("text", part))
    return page, about


def unknown(commands, about):
    """Notes that no section shows."""
    rows = {(c["name"], o["name"]) for c in commands for o in c["options"]}
    rows |= {(None, option) for _, option in rows} | {(c["name"], None) for c in commands}
    return sorted(" ".join([key[0] or "", "--" + key[1] if key[1] else ""]).strip() for key in about if key not in rows)


def make(tables, template):
    page, about = read_template(template)
    commands = tables["commands"]
    if wrong := unknown(commands, about):
        raise ValueError(f"@about names what does not exist: {', '.join(wrong)}")
    marks = {
        "synopsis": lambda: synopsis(commands),
        "exit-status": lambda: exit_statuses(tables["exit_statuses"]),
        "end": lambda: "",
        "commands": lambda: "\n\n".join(section(command, about) for command in commands),
    }
    text = "".join(part if kind == "text" else marks[part]() + "\n\n" for kind, part in page)
    text = re.sub(r"(\n; SPDX.*\n)", lambda m: m[1] + HEAD, text, count=1)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip("\n") + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tables")
    parser.add_argument("template")
    parser.add_argument("--check")
    parser.add_argument("--write")
    args = parser.parse_args()
    with open(args.tables, encoding="utf-8") as tables, open(args.template, encoding="utf-8") as template:
        try:
            text = make(json.load(tables), template.read())
        except (ValueError, KeyError) as problem:
            sys.exit(f"{args.template}: {problem}")
    if args.write:
        with open(args.write, "w", encoding="utf-8") as out:
            out.write(text)
    if args.check:
        with open(args.check, encoding="utf-8") as have:
            if have.read() != text:
                sys.exit(f"{args.check} differs from the tables: run 'make man'")


if __name__ == "__main__":
    main()
