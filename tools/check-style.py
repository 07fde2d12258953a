#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of docs/style.md that a script can check: sizes, complexity, banned calls, headers.

    check-style.py [ROOT]       check every file that git knows or would add
    check-style.py --self-test  check on made-up files that each fault is found

tools/style-exceptions.txt lists "path rule" pairs that are excused, each with its reason. The list
may only shrink: an entry that excuses nothing is a fault itself.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FILE_LINES, HEADER_LINES = 800, 300
# A header for programs of others, which is the one of its library and has its reference.
PUBLIC_LINES, PUBLIC_MARK = 500, '#ifdef __cplusplus'
# Columns. Rows of tables do not count: lists (.def), initialisers, and what a comment has taken
# from clang-format; nor do tests, which carry tables, whole programs and requests as literals.
LINE_COLUMNS = {".c": 100, ".h": 100, ".py": 120, ".ts": 120}
TABLE_ROW = re.compile(r"^\s*[{[]|\},?$")
FUNCTION_LINES, COMPLEXITY = 80, 15

CODE = {".c", ".h", ".def"}
# Files that carry an SPDX line: what people write, not data.
SPDX = CODE | {".py", ".ts", ".mjs", ".sh", ".build", ".yaml", ".service", ".scd"}
SPDX_TAG = "SPDX-License-Identifier: Apache-2.0"

# Calls with one home. Rule, files where it is at home, pattern, what to do instead. dup2 and dup3
# make none: they put a descriptor where a new program expects it. The addon links nothing of ours.
MAKERS = ("open|openat|openat2|creat|socket|socketpair|pipe|pipe2|accept|accept4|dup|eventfd|"
          "epoll_create|epoll_create1|memfd_create|signalfd|timerfd_create|inotify_init|"
          "inotify_init1|pidfd_open|fopen|fdopen|opendir|mkstemp|mkostemp")
CALLS = [
    ("descriptor", {"lib/base/fd.c", "src/addon/node.c"}, MAKERS, "make descriptors through base/fd.h"),
    ("number", {"lib/base/parse.c", "lib/json/json_dump.c"}, "strtou?ll?|strto(?:f|d|ld|imax|umax)|v?[fs]?scanf",
     "parse numbers through base/parse.h"),
    ("json", {"lib/json/json_dump.c"}, "json_dumps|json_dumpb|json_dumpf|json_dumpfd|json_dump_file|json_dump_callback",
     "write JSON through json/json_dump.h"),
    ("exit", set(), "exit|quick_exit", "only a main.c ends its process"),
]
CALL_PATTERNS = [(rule, homes, re.compile(rf"(?<![\w.>*])({names})\s*\("), advice)
                 for rule, homes, names, advice in CALLS]

TEXT_RULES = [
    ("todo", re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b(?!\w)"), "finish it, or remove it"),
    ("machine-path", re.compile(r"(?<![\w/])/(?:home|Users)/\w+"), "names a home directory"),
]


def strip_c(text):
    """@text without comments, strings and characters; line numbers stay."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    return pattern.sub(lambda m: "\n" * m[0].count("\n") or " ", text)


def is_product(path):
    return path.parts[0] in ("lib", "src")


def check_sizes(path, lines):
    limit = HEADER_LINES if path.suffix == ".h" else FILE_LINES
    if path.suffix == ".h" and PUBLIC_MARK in lines:
        limit = PUBLIC_LINES
    if len(lines) > limit:
        yield 1, "file-size", f"{len(lines)} lines, at most {limit}"
    columns = LINE_COLUMNS.get(path.suffix)
    if not columns or path.parts[0] == "tests":
        return
    by_hand = False
    for number, line in enumerate(lines, 1):
        by_hand = "clang-format off" in line or (by_hand and "clang-format on" not in line)
        if len(line.expandtabs(8)) > columns and not by_hand and not TABLE_ROW.search(line):
            yield number, "line-length", f"longer than {columns} columns"


def check_calls(path, text):
    """Calls and words in C code outside their home."""
    for number, line in enumerate(strip_c(text).splitlines(), 1):
        for rule, homes, pattern, advice in CALL_PATTERNS:
            found = pattern.search(line)
            if found and str(path) not in homes and not (rule == "exit" and path.name == "main.c"):
                yield number, rule, f"{found[1]}(): {advice}"


def check_text(path, text, root):
    if path.suffix in SPDX or path.name in ("Makefile", "meson.build"):
        if SPDX_TAG not in "\n".join(text.splitlines()[:3]):
            yield 1, "spdx", f"the first lines do not say '{SPDX_TAG}'"
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "last-line", "no newline at the end"
    here = f"{root}/" if len(root.parts) > 2 else None
    for number, line in enumerate(text.splitlines(), 1):
        if line != line.rstrip() and path.suffix != ".md":
            yield number, "trailing-space", "spaces at the end of the line"
        if here and here in line:
            yield number, "machine-path", "names the directory of this checkout"
        for rule, pattern, advice in TEXT_RULES:
            # Tests try foreign paths on purpose; this file spells the rules.
            if pattern.search(line) and path.name != "check-style.py" and (
                    rule != "machine-path" or path.parts[0] != "tests"):
                yield number, rule, advice


def check_functions(root, paths):
    """Length and complexity of each function, by pmccabe."""
    if not paths:
        return
    if not shutil.which("pmccabe"):
        yield Path("tools"), 1, "tool", "pmccabe is missing: run tools/setup test"
        return
    output = subprocess.run(["pmccabe", *map(str, paths)], cwd=root, text=True, check=True,
                            stdout=subprocess.PIPE).stdout
    for row in output.splitlines():
        complexity, _, _, first, length, place, name = row.split(None, 6)
        path = Path(place.split("(")[0])
        name = name.removeprefix(":").strip()
        if int(complexity) > COMPLEXITY:
            yield path, first, "complexity", f"{name}: complexity {complexity}, at most {COMPLEXITY}"
        if int(length) > FUNCTION_LINES:
            yield path, first, "function-size", f"{name}: {length} lines, at most {FUNCTION_LINES}"


def check_header(path, lines):
    if path.suffix == ".h" and "#pragma once" not in lines[:5]:
        yield 1, "pragma-once", "a header begins with its licence and '#pragma once'"


def check_file(root, path):
    """Yields (line, rule, message) for one file; skips what is not text."""
    try:
        text = (root / path).read_text()
    except UnicodeDecodeError:
        return
    yield from check_text(path, text, root)
    if path.suffix in CODE or path.suffix in (".py", ".ts"):
        yield from check_sizes(path, text.splitlines())
    if path.suffix in (".c", ".h"):
        yield from check_header(path, text.splitlines())
        if is_product(path):
            yield from check_calls(path, text)


def tree_files(root):
    """Files that git tracks or would add; without git, everything outside build directories."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    git = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if git.returncode == 0 and git.stdout:
        names = git.stdout.decode().split("\0")[:-1]
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*")]
    skip = re.compile(r"^(build|\.git/|tests/fuzz/corpus/|LICENSE)")
    return sorted(Path(n) for n in names if not skip.match(n) and (root / n).is_file()
                  and not (root / n).is_symlink())


def check_names(paths):
    """pytest knows modules by their bare names; two of the same name end the whole run."""
    known = {}
    for path in paths:
        if path.name.startswith("test_") and path.suffix == ".py" and "unit" not in path.parts:
            first = known.setdefault(path.name, path)
            if first != path:
                yield path, 1, "test-name", f"{first} has this name already"


def check_tree(root):
    """Yields every fault as (path, line, rule, message)."""
    paths = tree_files(root)
    for path in paths:
        for line, rule, message in check_file(root, path):
            yield path, line, rule, message
    yield from check_names(paths)
    yield from check_functions(root, [p for p in paths if p.suffix == ".c" and is_product(p)])


def load_exceptions(root):
    file = root / "tools/style-exceptions.txt"
    rows = file.read_text().splitlines() if file.exists() else []
    return {tuple(r.split()[:2]) for r in rows if r.strip() and not r.startswith("#")}


def report(root):
    """Faults as lines of text, without the excused ones, with exceptions that excuse nothing."""
    excused, used, out = load_exceptions(root), set(), []
    for path, line, rule, message in check_tree(root):
        if (str(path), rule) in excused:
            used.add((str(path), rule))
        else:
            out.append(f"{path}:{line}: {rule}: {message}")
    out += [f"tools/style-exceptions.txt: '{p} {r}' excuses nothing: remove it"
            for p, r in sorted(excused - used)]
    return out


HEAD = f"/* {SPDX_TAG} */\n"
LONG = "int f(void)\n{\n" + "\tg();\n" * 90 + "}\n"
TANGLED = "int f(int a)\n{\n" + "\tif (a)\n\t\ta++;\n" * 16 + "\treturn a;\n}\n"
# Name of the case, path, content, the rule that must be broken ("" for none).
CASES = [
    ("clean file", "src/core/a.c", HEAD + "int a;\n", ""),
    ("no licence", "src/core/a.c", "int a;\n", "spdx"),
    ("long file", "src/core/a.c", HEAD + "int a;\n" * 800, "file-size"),
    ("long header", "src/core/a.h", HEAD + "#pragma once\n" + "int a;\n" * 300, "file-size"),
    ("public header", "src/core/a.h", HEAD + "#pragma once\n#ifdef __cplusplus\n" + "int a;\n" * 400, ""),
    ("long public header", "src/core/a.h", HEAD + "#pragma once\n#ifdef __cplusplus\n" + "int a;\n" * 500, "file-size"),
    ("long line", "src/core/a.c", HEAD + "int " + "a" * 100 + ";\n", "line-length"),
    ("long row of a table", "src/core/a.c", HEAD + "\t{" + "a" * 100 + "},\n", ""),
    ("header without pragma", "src/core/a.h", HEAD + "int a;\n", "pragma-once"),
    ("raw open", "src/core/a.c", HEAD + "int a = open(p, 0);\n", "descriptor"),
    ("raw openat", "src/core/a.c", HEAD + "int a = openat(d, p, 0);\n", "descriptor"),
    ("open at home", "lib/base/fd.c", HEAD + "int a = open(p, 0);\n", ""),
    ("open in a comment", "src/core/a.c", HEAD + "/* open() */ char *b = \"open(\";\n", ""),
    ("a member named open", "src/core/a.c", HEAD + "int a = ops->open(p) + fd_open(p);\n", ""),
    ("strtol", "src/core/a.c", HEAD + "long a = strtol(p, 0, 10);\n", "number"),
    ("json_dumps", "src/core/a.c", HEAD + "char *a = json_dumps(j, 0);\n", "json"),
    ("exit", "src/core/a.c", HEAD + "void f(void)\n{\n\texit(1);\n}\n", "exit"),
    ("_exit in a child", "src/core/a.c", HEAD + "void f(void)\n{\n\t_exit(1);\n}\n", ""),
    ("long function", "src/core/a.c", HEAD + LONG, "function-size"),
    ("tangled function", "src/core/a.c", HEAD + TANGLED, "complexity"),
    ("unfinished", "src/core/a.c", HEAD + "/* TO" + "DO: later */\n", "todo"),
    ("trailing space", "src/core/a.c", HEAD + "int a; \n", "trailing-space"),
    ("useless exception", "tools/style-exceptions.txt", "src/a.c exit  because\n", "excuses"),
]


def self_test():
    failed = 0
    for name, path, content, rule in CASES:
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / path
            file.parent.mkdir(parents=True)
            file.write_text(content)
            faults = report(Path(scratch))
        if not (len(faults) == 1 and rule in faults[0] if rule else not faults):
            print(f"self-test '{name}': expected {rule or 'no fault'!r}, got {faults}")
            failed += 1
    if len(list(check_names([Path("tests/a/test_x.py"), Path("tests/b/test_x.py")]))) != 1:
        print("self-test: tests of the same name are not found")
        failed += 1
    print(f"check-style: {len(CASES) - failed} of {len(CASES)} cases as expected")
    return 1 if failed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    faults = report(root)
    print("\n".join(faults) if faults else "check-style: fine")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
