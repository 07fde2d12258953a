# SPDX-License-Identifier: Apache-2.0
"""Which tests a word stands for, and which a changed file concerns."""
import ast
import fnmatch
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
SUITES = ["integration", "security", "fault", "soak", "sdk", "package"]
CONCERNS = TESTS / "concerns.txt"


def modules():
    """All modules of the pytest suites."""
    return [path for suite in SUITES for path in sorted((TESTS / suite).rglob("test_*.py"))]


def name_of(path):
    """What pytest calls a module."""
    return str(path.relative_to(TESTS))


def phases_of(text):
    """The phases that a module's source names, for itself or for one of its tests."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "phases":
            found |= {word.value for word in node.args if isinstance(word, ast.Constant)}
    return found


def modules_of(phase, mark=None):
    """The modules with tests of a phase (None: of any), and with a mark: to read all takes longer than some phases."""
    found = []
    for path in modules():
        text = path.read_text()
        if (mark is None or f"mark.{mark}" in text) and (phase is None or phase in phases_of(text)):
            found.append(f"tests/{name_of(path)}")
    return found


def choose_unit_tests(names, wanted):
    """Names of unit tests that @wanted stands for: that name itself; otherwise those below it as a folder, and those
    with the same last word that have its other words before it, in this order."""
    def split(name):
        return re.split(r"[ /-]", name)

    words = split(wanted)
    exact = [name for name in names if split(name) == words]
    if exact:
        return exact

    def has_words(name):
        rest = iter(split(name))
        return all(word in rest for word in words)

    return [name for name in names
            if split(name)[:len(words)] == words or (split(name)[-1] == words[-1] and has_words(name))]


def find_pytest(wanted):
    """Path below tests/ of a module, folder or test (MODULE::NAME), or None."""
    module, colons, name = wanted.removeprefix("tests/").partition("::")
    if (TESTS / module).exists() and not module.startswith("unit"):
        return f"tests/{module}{colons}{name}"
    stem = module.removesuffix(".py")
    for path in modules():
        short = name_of(path).removesuffix(".py")
        if f"/{short}".endswith((f"/{stem}", f"/test_{stem}")):
            return f"tests/{short}.py{colons}{name}"
    return None


def changed_files():
    """What differs from the last commit; on a clean tree, what that commit changed."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()

    return git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard") \
        or git("diff", "--name-only", "HEAD~1", "HEAD")


def read_concerns(text=None):
    """Rows of tests/concerns.txt: a pattern of paths, patterns of modules."""
    lines = (CONCERNS.read_text() if text is None else text).splitlines()
    rows = [line.partition(":") for line in lines if line and not line.startswith("#")]
    return [(path.strip(), words.split()) for path, _, words in rows]


def concerned(files, rows, sources):
    """The modules that changed @files concern. @sources: text of each module by name."""
    found = set()
    for file in files:
        if file.startswith("tests/support/"):
            stem = Path(file).stem
            uses = re.compile(rf"\bsupport(\.{stem}\b| import .*\b{stem}\b)")
            found |= {name for name, text in sources.items() if uses.search(text)}
        elif file.removeprefix("tests/") in sources:
            found.add(file.removeprefix("tests/"))
        else:
            patterns = [word for path, words in rows if fnmatch.fnmatch(file, path) for word in words]
            found |= {name for name in sources if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}
    return sorted(found)


def concerned_units(files, names):
    """The unit tests that changed @files concern: those named like the file; for a header, its folder's."""
    found = []
    for file in files:
        path = Path(file)
        parts = path.with_suffix("").parts
        if parts[0] in ("lib", "src"):
            words = parts[1:]
        elif parts[:2] == ("tests", "unit"):
            words = (*parts[2:-1], parts[-1].removeprefix("test_"))
        else:
            continue
        own = choose_unit_tests(names, "/".join(words)) if path.suffix == ".c" else []
        found += own or choose_unit_tests(names, "/".join(words[:-1]) or words[0])
    return sorted(set(found))


def changed(names):
    """Return: unit tests and modules that the changed files concern."""
    files = changed_files()
    sources = {name_of(path): path.read_text() for path in modules()}
    return concerned_units(files, names), [f"tests/{name}" for name in concerned(files, read_concerns(), sources)]


UNIT_NAMES = ["base fd", "core/pool/pool", "core/pool/demand", "guest-agent", "http ws", "api/mcp/rpc", "replay ws",
              "core/poolside"]
#: What "one" is asked for, and the unit tests that it finds.
CHOICES = [
    ("base/fd", ["base fd"]),
    ("fd", ["base fd"]),
    ("guest/agent", ["guest-agent"]),
    ("core/pool", ["core/pool/pool", "core/pool/demand"]),
    ("core/demand", ["core/pool/demand"]),
    ("api/rpc", ["api/mcp/rpc"]),
    ("ws", ["http ws", "replay ws"]),
    ("http/ws", ["http ws"]),
    ("core/none", []),
]
#: A changed file, the unit tests and the modules that it concerns.
ROWS = [("src/core/pool/*", ["integration/test_pool*.py"]), ("src/*", ["fault/*"])]
SOURCES = {"integration/test_pool.py": "from support import host, oci",
           "fault/test_kills.py": "from support.proxy import Proxy"}
CONCERNED = [
    ("src/core/pool/pool.c", ["core/pool/pool"], ["fault/test_kills.py", "integration/test_pool.py"]),
    ("src/core/pool/pool.h", ["core/pool/demand", "core/pool/pool"],
     ["fault/test_kills.py", "integration/test_pool.py"]),
    ("lib/base/fd.c", ["base fd"], []),
    ("tests/unit/core/pool/test_demand.c", ["core/pool/demand"], []),
    ("tests/support/oci.py", [], ["integration/test_pool.py"]),
    ("tests/support/proxy.py", [], ["fault/test_kills.py"]),
    ("tests/fault/test_kills.py", [], ["fault/test_kills.py"]),
    ("README.md", [], []),
]


def check_concerns():
    """Sentences about rows that match nothing, folders without a row, and modules that no row names."""
    rows = read_concerns()
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    if not files:
        return []
    names = [name_of(path) for path in modules()]
    wrong = [f"concerns.txt: no file matches '{path}'" for path, _ in rows if not fnmatch.filter(files, path)]
    wrong += [f"concerns.txt: no module matches '{word}'" for _, words in rows for word in words
              if not fnmatch.filter(names, word)]
    wrong += [f"concerns.txt: no row is for {name}" for name in names
              if not any(fnmatch.fnmatch(name, word) for _, words in rows for word in words)]
    wrong += [f"concerns.txt: no row is for {file}" for file in files
              if file.startswith(("lib/", "src/", "runners/")) and not file.endswith((".md", "meson.build"))
              and not any(fnmatch.fnmatch(file, path) for path, _ in rows)]
    return wrong


def self_test():
    """Return: how many cases there are, sentences about those that were not as expected."""
    wrong = check_concerns()
    for wanted, expected in CHOICES:
        chosen = choose_unit_tests(UNIT_NAMES, wanted)
        if chosen != expected:
            wrong.append(f"{wanted!r}: expected {expected}, got {chosen}")
    for file, units, names in CONCERNED:
        got = concerned_units([file], UNIT_NAMES), concerned([file], ROWS, SOURCES)
        if got != (units, names):
            wrong.append(f"{file}: expected {units}, {names}; got {got}")
    if phases_of('pytestmark = [pytest.mark.phases("system", "user"), pytest.mark.alone]') != {"system", "user"}:
        wrong.append("phases_of: a list of marks")
    return len(CHOICES) + len(CONCERNED) + 2, wrong
