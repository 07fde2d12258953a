# SPDX-License-Identifier: Apache-2.0
"""Every language: the same behaviour, compile steps, the cache, options, and a language that is only a manifest.

languages/ has one program per language. Its first argument is what it does, so that a compiled program is
compiled once. `python3 tests/integration/test_languages.py` writes the table of docs/languages.md, test_the_documented_table_is_complete
reads it.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import pytest
from support import oci
from support.daemon import BUILD, Daemon, is_sanitized
from support.identity import KeyClient, make_key, make_tenant
from support.mcp import Mcp

pytestmark = pytest.mark.phases("system")

PROGRAMS = pathlib.Path(__file__).parent / "languages"
#: Types are checked on request; then errors are those of a compiler.
CHECKED = {"typescript": {"check": True}}
SORTED = "2150302059 4294963722\n"

#: Language: program, other files, code that does not compile (None: it is interpreted).
LANGUAGES = {
    "python": ("main.py", ["util.py"], None),
    "javascript": ("main.js", ["util.js"], None),
    "typescript": ("main.ts", ["util.ts"], "const x: number = 1;\nconst z: string = x;\n"),
    "shell": ("main.sh", ["util.sh"], None),
    "dash": ("main.sh", ["util.sh"], None),
    "zsh": ("main.sh", ["util.sh"], None),
    "fish": ("main.fish", ["util.fish"], None),
    "c": ("main.c", ["util.h", "util.c"], "int main(void) {\n  return y;\n}\n"),
    "cpp": ("main.cpp", ["util.cpp"], "int main() {\n  return y;\n}\n"),
    "go": ("main.go", ["util.go"], "package main\nfunc main() { y() }\n"),
    "rust": ("main.rs", ["util.rs"], "fn main() {\n  y();\n}\n"),
    "java": ("Main.java", ["Util.java"], "class Main { public static void main(String[] a) {\n  y();\n} }\n"),
    "csharp": ("main.cs", ["util.cs"], "class P { static void Main() {\n  y();\n} }\n"),
    "ruby": ("main.rb", ["util.rb"], None),
    "php": ("main.php", ["util.php"], None),
    "perl": ("main.pl", ["util.pm"], None),
    "lua": ("main.lua", ["util.lua"], None),
    "r": ("main.r", ["util.r"], None),
}
#: A program of one file.
HELLO = {
    "python": "print('hello')",
    "javascript": "console.log('hello')",
    "typescript": "const word: string = 'hello';\nconsole.log(word)",
    **dict.fromkeys(("shell", "dash", "zsh", "fish"), "echo hello"),
    "c": '#include <stdio.h>\nint main(void) { puts("hello"); }',
    "cpp": '#include <iostream>\nint main() { std::cout << "hello\\n"; }',
    "go": 'package main\nimport "fmt"\nfunc main() { fmt.Println("hello") }',
    "rust": 'fn main() { println!("hello"); }',
    "java": 'class Main { public static void main(String[] a) { System.out.println("hello"); } }',
    "csharp": 'class P { static void Main() { System.Console.WriteLine("hello"); } }',
    "ruby": "puts 'hello'",
    "php": '<?php echo "hello\\n";',
    "perl": 'print "hello\\n";',
    "lua": 'print("hello")',
    "r": 'cat("hello\\n")',
}
#: What the program of each check must give: fields of the result.
CHECKS = {
    "hello": {"stdout": "hello 42\n", "exit_code": 0, "status": "success"},
    "stdin": {"stdout": "one\ntwo\n", "exit_code": 0},
    "env": {"stdout": "dog /workspace\n", "exit_code": 0},
    "args": {"stdout": "[a b][é☃][][-x]from a file\n", "exit_code": 0},
    "signal": {"status": "failed", "signal": 9},
    "exit": {"exit_code": 3, "status": "failed", "stdout": ""},
    "unicode": {"stdout": "grüße 日本語 🎉\n", "exit_code": 0},
    "output": {"stdout": ("x" * 63 + "\n") * 16384, "exit_code": 0, "stdout_truncated": None},
    "sort": {"stdout": SORTED, "exit_code": 0},
    "timeout": {"status": "timeout", "limit": "time"},
}


@pytest.fixture
def client(daemon):
    """On a busy host a compiler and its program together may take more than the usual minute."""
    with daemon.client(timeout=240) as made:
        yield made


def request(language, mode, **more):
    name, files, _ = LANGUAGES[language]
    body = {
        "language": language,
        "code": (PROGRAMS / name).read_text(),
        "files": {**{file: (PROGRAMS / file).read_text() for file in files}, "data.txt": "from a file\n"},
        "args": [mode, "a b", "é☃", "", "-x"],
        "stdin": "one\ntwo\n",
        "env_vars": {"WORD": "dog"},
        **more,
    }
    return body


def skip_if_missing(client, language):
    found = {item["name"]: item for item in client.get("/api/v1/languages").json["languages"]}
    if language not in found:
        pytest.skip(f"no runner is named {language}")
    if not found[language]["available"]:
        pytest.skip(f"{found[language]['missing']} is not installed")


def run(client, language, mode, **more):
    return client.post("/api/v1/execute", request(language, mode, **more)).json


def compile_wrong(client, language):
    body = {"language": language, "code": LANGUAGES[language][2], "options": CHECKED.get(language, {})}
    return client.post("/api/v1/execute", body).json


def says_hello(client, language):
    result = client.post("/api/v1/execute", {"language": language, "code": HELLO[language], "timeout": 60}).json
    return (result["stdout"], result["exit_code"], result["status"]) == ("hello\n", 0, "success")


def trimmed(text):
    return "\n".join(line.rstrip() for line in text.split("\n"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_behaves_like_every_language(client, language):
    skip_if_missing(client, language)
    assert says_hello(client, language)
    for mode, wanted in CHECKS.items():
        more = {"timeout": 1} if mode == "timeout" else {"timeout": 60, "resources": {"max_output": "2Mi"}}
        result = run(client, language, mode, **more)
        got = {key: trimmed(result[key]) if key == "stdout" else result.get(key) for key in wanted}
        assert got == wanted, (language, mode, result["stderr"][:500])
    failed = run(client, language, "error")
    assert failed["status"] == "failed" and failed["exit_code"] not in (0, None)
    assert failed["stderr"] or failed["signal"] == 6  # C: abort()


@pytest.mark.parametrize("language", LANGUAGES)
def test_is_bounded(client, language):
    skip_if_missing(client, language)
    memory = run(client, language, "memory", timeout=30, resources={"memory": "192Mi"})
    assert memory["status"] != "success" and (memory["limit"] == "memory" or memory["exit_code"]), memory
    forks = run(client, language, "fork", timeout=1.5, resources={"max_processes": 64})
    assert forks["status"] != "success" and (forks["metrics"]["processes_peak"] or 0) <= 64, forks
    assert client.python("print(1)")["stdout"] == "1\n"


@pytest.mark.parametrize("language", [name for name, row in LANGUAGES.items() if row[2]])
def test_compile_errors_are_diagnostics(client, language):
    skip_if_missing(client, language)
    result = compile_wrong(client, language)
    assert (result["phase"], result["status"], result["stdout"]) == ("compile", "failed", "")
    assert result["exit_code"] not in (0, None) and result["compile"]["succeeded"] is False
    first = result["diagnostics"][0]
    assert first["line"] == 2 and first["column"] and first["severity"] == "error" and first["message"], result
    assert first["file"] == LANGUAGES[language][0]


@pytest.mark.parametrize("language", [name for name, row in LANGUAGES.items() if row[2]])
def test_unchanged_programs_are_not_compiled_again(client, language):
    skip_if_missing(client, language)
    options = CHECKED.get(language, {})
    run(client, language, "hello", options=options)
    again = run(client, language, "exit", options=options)
    assert again["compile"]["cached"] is True and again["phase"] == "run" and again["exit_code"] == 3
    changed = run(client, language, "hello", options=options, files={
        **request(language, "hello")["files"], "other.txt": "a file is part of what was compiled"})
    assert changed["compile"]["cached"] is False and changed["stdout"] == "hello 42\n"


TASKS = {
    "python": "tasks.py", "javascript": "tasks.js", "typescript": "tasks.ts", "shell": "tasks.sh", "go": "tasks.go", "rust": "tasks.rs",
    "java": "Tasks.java", "c": "tasks.c", "cpp": "tasks.cpp", "csharp": "tasks.cs"}  # fmt: skip


@pytest.mark.parametrize("language", TASKS)
def test_thirty_tasks_have_their_known_answers(client, language):
    """One program per language solves all of them, so that it is compiled once. No answer is computed here."""
    skip_if_missing(client, language)
    code = (PROGRAMS / "tasks" / TASKS[language]).read_text()
    result = client.execute(language, code, options=CHECKED.get(language, {}), timeout=60)
    answers = (PROGRAMS / "tasks" / "answers.txt").read_text().splitlines()
    assert len(answers) == 30 and result["exit_code"] == 0, result["stderr"]
    assert dict(line.split(" ", 1) for line in result["stdout"].splitlines()) == dict(line.split(" ", 1) for line in answers)


def test_options_change_the_build(client):
    code = '#include <cstdio>\nint main() { std::printf("%ld\\n", __cplusplus); }'
    for std, value in (("c++17", "201703\n"), ("c++20", "202002\n"), ("c++17", "201703\n")):
        result = client.execute("cpp", code, options={"std": std})
        assert result["stdout"] == value, result
    refused = client.post("/api/v1/execute", {"language": "cpp", "code": code, "options": {"std": "c++3"}})
    assert refused.status == 400 and refused.json["field"] == "options.std" and "c++20" in refused.json["error_detail"]
    unknown = client.post("/api/v1/execute", {"language": "cpp", "code": code, "options": {"speed": "9"}})
    assert unknown.status == 400 and unknown.json["field"] == "options.speed"
    flags = client.execute("c", '#include <stdio.h>\nint main() { puts(NAME); }', options={"extra_flags": '-DNAME="x" -Wall'})
    assert flags["stdout"] == "x\n"


def test_compiler_has_its_own_limits(client):
    # The program's time does not bound the compiler, nor the compiler's memory the program.
    long = "constexpr int f() { int s = 0; for (int i = 0; i < 1000; i++) for (int k = 0; k < 1000; k++) s += k & 1; return s; }\n"
    result = client.execute("cpp", long + "int main() { constexpr int v = f(); return v == 500000 ? 5 : 6; }", timeout=1)
    assert (result["exit_code"], result["phase"]) == (5, "run"), result
    small = client.execute("c", '#include <stdlib.h>\n#include <string.h>\nint main() { for (;;) memset(malloc(1 << 20), 1, 1 << 20); }',
                           resources={"memory": "32Mi"}, timeout=20)
    assert small["limit"] == "memory" and small["phase"] == "run"


def test_sessions_compile_with_their_files(client):
    for mode in ("persistent", "ephemeral"):
        session = client.post("/api/v1/sessions", {"mode": mode}).json["session_id"]
        path = f"/api/v1/sessions/{session}/execute"
        code = '#include <stdio.h>\n#include "a.h"\nint main() { int x; return scanf("%d", &x) == 1 ? x + A : 1; }'
        first = client.post(path, {"language": "c", "code": code, "wait": True, "stdin": "4", "files": {"a.h": "#define A 1\n"}}).json
        assert (first["exit_code"], first["phase"]) == (5, "run"), first
        if mode == "persistent":
            kept = client.post(path, {"language": "c", "code": code, "wait": True, "stdin": "5"}).json
            assert kept["exit_code"] == 6, kept
        bad = client.post(path, {"language": "c", "code": "int main() { return y; }", "wait": True}).json
        assert bad["phase"] == "compile" and bad["diagnostics"][0]["line"] == 1
        client.request("DELETE", f"/api/v1/sessions/{session}")


def test_tenants_do_not_share_compiled_programs(make_daemon):
    d = make_daemon(tcp=True).start()
    code = "int main() { return 7; }"

    def as_tenant(name):
        subprocess.run([BUILD / "millibox", "tenant", "create", name, "--socket", d.socket], check=True, capture_output=True)
        made = subprocess.run([BUILD / "millibox", "key", "create", "--tenant", name, "--json", "--socket", d.socket],
                              check=True, capture_output=True, text=True)
        return {"Authorization": "Bearer " + json.loads(made.stdout)["key"]}

    with d.client() as c:
        headers = [as_tenant("one"), as_tenant("two")]
        cached = [c.post("/api/v1/execute", {"language": "c", "code": code}, headers=h).json["compile"]["cached"]
                  for h in (headers[0], headers[0], headers[1], headers[1])]
    assert cached == [False, True, False, True]


RANGES = """
#include <algorithm>
#include <concepts>
#include <iostream>
#include <ranges>
#include <string>
#include <vector>
template <std::integral T> constexpr T square(T x) { return x * x; }
struct person { std::string name; int age; auto operator<=>(const person &) const = default; };
int main() {
    std::vector<person> people{{"Ann", 31}, {"Bob", 17}, {"Cy", 64}, {"Di", 12}};
    std::ranges::sort(people, {}, &person::age);
    for (const auto &name : people | std::views::filter([](const auto &p) { return p.age >= 18; }) | std::views::transform(&person::name)) std::cout << name << ' ';
    for (int n : std::views::iota(1) | std::views::transform(square<int>) | std::views::filter([](int n) { return n % 2; }) | std::views::take(4)) std::cout << n << ' ';
    auto words = std::string{"a,bc,def"};
    for (auto part : words | std::views::split(',')) std::cout << std::ranges::distance(part);
    std::cout << ' ' << (person{"A", 1} < person{"A", 2}) << std::endl;
}
"""


def test_cpp_20_with_ranges(client):
    skip_if_missing(client, "cpp")
    result = client.execute("cpp", RANGES, options={"std": "c++20"}, timeout=60)
    assert result["stdout"] == "Ann Cy 1 9 25 49 123 1\n", result["stderr"]


def test_tenants_share_compiled_programs_if_both_policies_allow_it(make_daemon):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=Daemon.prefix_of_homes))
    folder.chmod(0o755)
    (folder / "own.yaml").write_text("name: own\n")
    (folder / "shared.yaml").write_text("name: shared\nbuilds: {share: all}\n")
    d = make_daemon(tcp=True, config=f"policy: {{dir: {folder}, default: own}}\n").start()
    try:
        with d.client() as admin:
            clients = {}
            for name, policy in (("one", "shared"), ("two", "shared"), ("three", "own")):
                make_tenant(admin, name)
                assert admin.request("PATCH", f"/api/v1/tenants/{name}", body={"policy": policy}).status == 200
                clients[name] = KeyClient(d.tcp_address(), make_key(admin, name))
            body = {"language": "c", "code": "int main(void) { return 8; }"}
            runs = [(name, clients[name].post("/api/v1/execute", body).json) for name in ("one", "two", "three", "three", "one")]
        assert all(result["exit_code"] == 8 for _, result in runs), runs
        assert [(name, result["compile"]["cached"]) for name, result in runs] == [
            ("one", False), ("two", True), ("three", False), ("three", True), ("one", True)]  # fmt: skip
    finally:
        shutil.rmtree(folder)


def test_a_changed_toolchain_compiles_again(make_daemon):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=Daemon.prefix_of_homes))
    folder.chmod(0o755)
    try:
        (folder / "toyc").mkdir()
        (folder / "library").write_text("first")
        (folder / "toyc" / "manifest.yaml").write_text(
            "name: toyc\ntitle: Toy\nsource: main.toy\nprogram: /usr/bin/cp\ncompile_command: [/usr/bin/cp, '{source}', '{artifact}']\n"
            f"command: [/usr/bin/rev, '{{artifact}}']\nneeds: [{folder}/library]\n")
        d = make_daemon(env={"MILLIBOX_RUNNERS_DIRS": str(folder)}).start()
        with d.client() as c:
            cached = []
            for text in ("", "", "second", ""):
                if text:
                    (folder / "library").write_text(text)
                result = c.execute("toyc", "abc\n")
                assert result["stdout"] == "cba\n", result
                cached.append(result["compile"]["cached"])
        assert cached == [False, True, False, True]
    finally:
        shutil.rmtree(folder)


#: Without a language: what runs.
GUESSED = {
    "import sys; from os import path; print(path.__name__)": "python",
    "print('const x = 1; console.log(x)')": "python",
    "6 * 7": "python",
    "console.log([1, 2].map(x => x * 2))": "javascript",
    "const n: number = 5; console.log(n)": "typescript",
    "cat <<EOF\nimport os; print(os)\nEOF": "shell",
}


def test_every_client_gets_the_same_guess(daemon, client):
    """One place decides: those of the SDKs are in tests/sdk."""
    mcp = Mcp(daemon.socket)
    for code, language in GUESSED.items():
        body = {"code": code, "default_language": "python"}
        ran = client.post("/api/v1/execute", body)
        assert ran.status == 200 and ran.json["language"] == language, (code, ran)
        shown = subprocess.run([BUILD / "millibox", "run", "--json", "--socket", daemon.socket, "-c", code], capture_output=True, text=True, check=False)
        assert json.loads(shown.stdout)["language"] == language, (code, shown)
        assert mcp.call("execute_code", code=code)["structuredContent"]["language"] == language, code
    unsure = client.post("/api/v1/execute", {"code": "6 * 7"})
    assert unsure.status == 400 and unsure.json["field"] == "language" and "python" in unsure.json["error_detail"], unsure


TOY = """\
name: toy
aliases: [toylang]
title: Toy
source: main.toy
extensions: [toy]
interpreters: [toyc]
hints: ["6 ^begin toy{end}"]
program: /usr/bin/rev
version_command: [/usr/bin/env, echo, "toy 1.2.3"]
command: [/usr/bin/rev, "{source}"]
"""


def test_language_is_a_folder(make_daemon, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "manifest.yaml").write_text(TOY)
    d = make_daemon(env={"MILLIBOX_RUNNERS_DIRS": str(tmp_path)}).start()
    with d.client() as c:
        listed = {item["name"]: item for item in c.get("/api/v1/languages").json["languages"]}
        assert listed["toy"]["available"] and "python" in listed
        assert c.execute("toylang", "abc\n")["stdout"] == "cba\n"
        # Without a language: by extension, first line, and typical text.
        for body in ({"code": "abc\n", "file_name": "dir/a.toy"}, {"code": "#!/usr/bin/env toyc2\n"}, {"code": "begin toy\n"}):
            result = c.post("/api/v1/execute", body).json
            assert (result["language"], result["stdout"]) == ("toy", body["code"][:-1][::-1] + "\n"), result
        session = c.post("/api/v1/sessions", {"mode": "persistent"}).json["session_id"]
        ran = c.post(f"/api/v1/sessions/{session}/execute", {"code": "abc\n", "file_name": "a.toy", "wait": True}).json
        assert (ran["language"], ran["stdout"]) == ("toy", "cba\n"), ran
    mcp = Mcp(d.socket)
    assert mcp.call("execute_code", code="begin toy")["structuredContent"]["language"] == "toy"
    assert "toy" in mcp.call("list_languages")["structuredContent"]["languages"]
    assert "cba" in mcp.call("execute_code", code="abc", language="toy")["content"][0]["text"]
    cli = [BUILD / "millibox"]
    shown = subprocess.run([*cli, "languages", "--socket", d.socket], check=True, capture_output=True, text=True).stdout
    assert "toy" in shown
    ran = subprocess.run([*cli, "run", "--socket", d.socket, "--language", "toy", "-c", "abc"], check=True,
                         capture_output=True, text=True)
    assert ran.stdout.strip() == "cba"
    (tmp_path / "program.toy").write_text("xyz\n")
    ran = subprocess.run([*cli, "run", "--socket", d.socket, tmp_path / "program.toy"], check=True, capture_output=True, text=True)
    assert ran.stdout == "zyx\n"


def test_uncertain_language_is_refused_with_candidates(client):
    for code, candidates in (("x = 5", "python"), ("let x = 5", "javascript, rust"), ("zzz zzz", "available: ")):
        refused = client.post("/api/v1/execute", {"code": code})
        assert refused.status == 400 and refused.json["field"] == "language", refused.json
        assert candidates in refused.json["error_detail"] and "default_language" in refused.json["error_detail"], refused.json
    ran = client.post("/api/v1/execute", {"code": "x = 5\nx * 2", "default_language": "python"}).json
    assert (ran["language"], ran["result"]) == ("python", 10)
    unknown = client.post("/api/v1/execute", {"code": "x", "default_language": "klingon"})
    assert unknown.status == 400 and unknown.json["field"] == "default_language"


def test_missing_toolchain_says_what_to_install(make_daemon, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "manifest.yaml").write_text(
        TOY.replace("/usr/bin/rev", "/usr/bin/no-such-toy") + "install: install the package toy\n")
    d = make_daemon(env={"MILLIBOX_RUNNERS_DIRS": str(tmp_path)}).start()
    with d.client() as c:
        listed = {item["name"]: item for item in c.get("/api/v1/languages").json["languages"]}
        assert listed["toy"]["available"] is False and listed["toy"]["install"] == "install the package toy"
        refused = c.post("/api/v1/execute", {"language": "toy", "code": "abc"})
        assert (refused.status, refused.json["error_code"], refused.json["field"]) == (400, "Sandbox.LanguageNotInstalled", "language"), refused
        assert "install the package toy" in refused.json["error_detail"]
    listed = Mcp(d.socket).call("list_languages")
    assert "toy" not in listed["structuredContent"]["languages"]
    assert "toy (Toy): not available, lacks /usr/bin/no-such-toy; install the package toy\n" in listed["content"][0]["text"]
    shown = subprocess.run([BUILD / "millibox", "languages", "--socket", d.socket], check=True, capture_output=True, text=True).stdout
    assert next(line for line in shown.splitlines() if line.startswith("toy ")).endswith("install the package toy")


@pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries")
def test_languages_of_a_template(make_daemon):
    d = make_daemon(config="tools: {profile: full}\n").start()

    def cli(*words):
        return subprocess.run([BUILD / "millibox", "languages", "--socket", d.socket, *words], check=False, capture_output=True, text=True)

    with d.client() as c:
        made = c.request("POST", "/api/v1/templates/import?id=small", body=oci.Image([oci.busybox_layer()]).bytes(),
                         headers={"Content-Type": "application/x-tar"})
        assert made.status == 201, made
        rest = {item["name"]: item for item in c.get("/api/v1/languages?template_id=small").json["languages"]}
        on_host = {item["name"] for item in c.get("/api/v1/languages").json["languages"] if item["available"]}
        assert c.get("/api/v1/languages?template_id=nothing").status == 404
    available = {name for name, item in rest.items() if item["available"]}
    assert "shell" in available and "python" not in available and "python" in on_host, rest
    assert rest["python"]["missing"] == "/usr/bin/python3" and rest["python"]["install"]
    mcp = Mcp(d.socket)
    listed = mcp.call("list_languages", template="small")
    assert set(listed["structuredContent"]["languages"]) == available
    assert "python (Python 3): not available, lacks /usr/bin/python3" in listed["content"][0]["text"]
    assert set(mcp.call("list_languages")["structuredContent"]["languages"]) == on_host
    unknown = mcp.call("list_languages", template="nothing")
    assert unknown["isError"] and "template" in unknown["content"][0]["text"], unknown
    lines = cli("--template", "small").stdout.splitlines()
    assert {line.split()[0] for line in lines[1:] if " yes " in line} == available, lines
    assert rest["python"]["install"] in next(line for line in lines if line.startswith("python "))
    missing = cli("--template", "nothing")
    assert missing.returncode != 0 and "no template has this id" in missing.stderr, missing


DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "languages.md"
TITLES = ("language", "version", "hello", "two files", "stdin", "exit 3", "error", "time-out", "memory", "fork bomb", "Unicode", "1 MB", "sort 10⁶",
          "compile error", "cold ms", "cached ms", "warm ms")  # fmt: skip


def block(name):
    """The lines of a generated part of the document, and the text around them."""
    head, begin, rest = DOCUMENT.read_text().partition(f"<!-- {name} -->\n")
    lines, end, tail = rest.partition(f"<!-- end of {name} -->\n")
    assert begin and end, name
    return lines.splitlines(), head + begin, end + tail


def write_block(name, lines):
    _, head, tail = block(name)
    DOCUMENT.write_text(head + "\n".join(lines) + "\n" + tail)


def test_the_documented_table_is_complete():
    """Every manifest has a row, every behaviour a column, and nothing in it failed when it was written."""
    titles, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in block("table")[0])
    assert tuple(titles) == TITLES
    manifests = {path.parent.name for path in (DOCUMENT.parents[1] / "runners").glob("*/manifest.yaml")}
    assert {row[0] for row in rows} == manifests == set(LANGUAGES) == set(HELLO)
    for row in rows:
        shown = dict(zip(titles, row))
        times = [shown.pop(name) for name in ("cold ms", "cached ms", "warm ms")]
        assert all(int(value) > 0 for value in times), row
        assert shown.pop("compile error") == ("yes" if LANGUAGES[row[0]][2] else "-"), row
        assert {shown[name] for name in titles[2:] if name in shown} == {"yes"}, row


def cell(ok):
    return "yes" if ok else "no"


def measure(client, language):
    """One row of the table: the first run, the same again (compiled already), and the best of five more (pools may have a box)."""
    row, times = [], []
    for _ in range(7):
        begin = time.perf_counter()
        result = run(client, language, "hello", timeout=120)
        times.append((time.perf_counter() - begin) * 1000)
    row += [cell(says_hello(client, language)), cell(result["stdout"].split() == ["hello", "42"])]
    for mode in ("stdin", "exit", "error", "timeout", "memory", "fork", "unicode", "output", "sort"):
        more = {"timeout": 2} if mode in ("timeout", "fork") else {"timeout": 60}
        if mode == "memory":
            more["resources"] = {"memory": "192Mi"}
        result = run(client, language, mode, **more)
        wanted = CHECKS.get(mode, {})
        row.append(cell(all(trimmed(result[k]) == v if k == "stdout" else result.get(k) == v for k, v in wanted.items())
                        and (mode not in ("error", "memory", "fork") or result["status"] != "success")))
    broken = LANGUAGES[language][2]
    if broken:
        result = compile_wrong(client, language)
        row.append(cell(result["phase"] == "compile" and result["diagnostics"]))
    else:
        row.append("-")
    return row + [f"{times[0]:.0f}", f"{times[1]:.0f}", f"{min(times[2:]):.0f}"]


def write_table():
    d = Daemon(env={"MILLIBOX_POOLS_ENABLED": "true"}).start()
    lines = []
    try:
        with d.client(timeout=300) as c:
            found = {item["name"]: item for item in c.get("/api/v1/languages").json["languages"]}
            for language in LANGUAGES:
                if found.get(language, {}).get("available"):
                    lines.append(f"| {language} | {found[language]['version'] or ''} | " + " | ".join(measure(c, language)) + " |")
    finally:
        d.stop()
        d.remove()
    write_block("table", ["| " + " | ".join(TITLES) + " |", "|" + " --- |" * len(TITLES), *lines])


if __name__ == "__main__":
    sys.exit(write_table())
