# SPDX-License-Identifier: Apache-2.0
"""Every option that a manifest of runners/ has: what it changes, and what it refuses."""

import pathlib
import subprocess

import pytest
import yaml
from support.daemon import BUILD
from support.sessions import Session

pytestmark = pytest.mark.phases("system")

RUNNERS = pathlib.Path(__file__).parents[2] / "runners"
STD = "#include <stdio.h>\nint main() { printf(\"%ld %d\\n\", __STDC_VERSION__, __OPTIMIZE__ + 0); }"
SPEED = "#include <stdio.h>\n#ifndef __OPTIMIZE__\n#define __OPTIMIZE__ 0\n#endif\nint main() { printf(\"%d\\n\", __OPTIMIZE__); }"
CPP = "#include <cstdio>\n#ifdef __clang__\n#define NAME \"clang\"\n#else\n#define NAME \"gcc\"\n#endif\nint main() { std::puts(NAME); }"
UNUSED = "int main() { int unused; return 0; }"
MAINS = "class A { static void Main() { System.Console.WriteLine(1); } }\nclass B { static void Main() { System.Console.WriteLine(2); } }"
JAVAS = ("class A { public static void main(String[] a) { System.out.println(1); } }\n"
         "class B { public static void main(String[] a) { System.out.println(2); } }")
VAR = "class Main { public static void main(String[] a) { var x = 5; System.out.println(x); } }"
GENERIC = "package main\nfunc f[T any](x T) T { return x }\nfunc main() { println(f(1)) }"

#: Language, options, code, wanted: output, or part of a message of the compiler.
ROWS = [
    ("c", {"std": "c99"}, STD.replace(" %d", "").replace(", __OPTIMIZE__ + 0", ""), "199901\n"),
    ("c", {"std": "c17"}, STD.replace(" %d", "").replace(", __OPTIMIZE__ + 0", ""), "201710\n"),
    ("c", {"optimization": "O0"}, SPEED, "0\n"),
    ("c", {"optimization": "O2"}, SPEED, "1\n"),
    ("c", {"extra_flags": "-DA=4 -DB=2"}, "#include <stdio.h>\nint main() { printf(\"%d%d\\n\", A, B); }", "42\n"),
    ("cpp", {"compiler": "g++"}, CPP, "gcc\n"),
    ("cpp", {"compiler": "clang++"}, CPP, "clang\n"),
    ("cpp", {"optimization": "O0"}, SPEED, "0\n"),
    ("cpp", {"extra_flags": "-DNAME2=7"}, "#include <cstdio>\nint main() { std::printf(\"%d\\n\", NAME2); }", "7\n"),
    ("go", {"build_flags": "-tags=special"}, "package main\nfunc main() { println(name) }", None),
    ("go", {"go_version": "1.17"}, GENERIC, "requires go1.18 or later"),
    ("go", {"go_version": "1.18"}, GENERIC, ""),
    ("go", {"module_name": "example.com/a"}, "package main\nimport (\"fmt\"; \"runtime/debug\")\n"
     "func main() { i, _ := debug.ReadBuildInfo(); fmt.Println(i.Main.Path) }", "example.com/a\n"),
    ("rust", {"edition": "2015"}, "fn main() { let async = 5; println!(\"{}\", async); }", "5\n"),
    ("rust", {"edition": "2018"}, "fn main() { let async = 5; println!(\"{}\", async); }", "expected identifier"),
    ("rust", {"release": "true"}, "fn main() { println!(\"{}\", cfg!(debug_assertions)); }", "false\n"),
    ("rust", {"release": "false"}, "fn main() { println!(\"{}\", cfg!(debug_assertions)); }", "true\n"),
    ("rust", {"features": "blue"}, "fn main() { println!(\"{}\", cfg!(feature = \"blue\")); }", "true\n"),
    ("rust", {"extra_flags": "--cfg fast"}, "fn main() { println!(\"{}\", cfg!(fast)); }", "true\n"),
    ("java", {"main_class": "B"}, JAVAS, "2\n"),
    ("java", {"main_class": "A"}, JAVAS, "1\n"),
    ("java", {"release": "8"}, VAR, "cannot find symbol"),
    ("java", {"java_version": "11", "build_tool": "maven"}, VAR, "5\n"),
    ("java", {"extra_flags": "-Xlint:all -Werror"}, VAR.replace("var x = 5", "java.util.List x = new java.util.ArrayList()"), "raw"),
    ("java", {"classpath": "lib"}, "class Main { public static void main(String[] a) { System.out.println(new extra.Thing()); } }", None),
    ("java", {"preview": "true", "release": "17"},
     "class Main { public static void main(String[] a) { Object o = 5; System.out.println(switch (o) { case Integer i -> i + 1; default -> 0; }); } }", "6\n"),
    ("csharp", {"main_class": "B"}, MAINS, "2\n"),
    ("csharp", {"main_class": "A", "optimize": "false"}, MAINS, "1\n"),
    ("csharp", {"langversion": "6"}, "class A { static void Main() { var (a, b) = (1, 2); } }", "C# 6"),
    ("csharp", {"unsafe": "true"}, "class A { static unsafe void Main() { int x = 5; int* p = &x; System.Console.WriteLine(*p); } }", "5\n"),
    ("csharp", {"unsafe": "false"}, "class A { static unsafe void Main() { } }", "unsafe"),
    ("csharp", {"framework": "net1.0"}, MAINS, "options.framework: the box has "),
    ("csharp", {"references": "System.Numerics"}, "class A { static void Main() { System.Console.WriteLine(new System.Numerics.BigInteger(7)); } }", "7\n"),
    ("typescript", {"target": "ES2017"}, "const f = (a?: { b: string }): string => a?.b ?? 'none';\nconsole.log(String(f).includes('?.'), f())", "false none\n"),
    ("typescript", {"target": "ES2022"}, "const f = (a?: { b: string }): string => a?.b ?? 'none';\nconsole.log(String(f).includes('?.'), f())", "true none\n"),
    ("python", {"python_cmd": "python3", "use_venv": "false"}, "print(7)", "7\n"),
    ("shell", {"shell": "bash"}, "echo ${BASH_VERSION:+yes}", "yes\n"),
    ("shell", {"shell": "dash"}, "echo ${BASH_VERSION:-no}", "no\n"),
    ("shell", {"shell": "zsh"}, "echo ${ZSH_VERSION:+yes}", "yes\n"),
    ("shell", {"shell": "fish"}, "set -l x 7\necho $x", "7\n"),
    ("shell", {"set_flags": "-e"}, "false\necho reached", ""),
    ("ruby", {"warnings": "true"}, "p(/a/ == $VERBOSE, $VERBOSE)", "false\ntrue\n"),
    ("perl", {"warnings": "true"}, "print $^W, \"\\n\";", "1\n"),
    ("php", {"settings": "precision=3"}, "<?php echo 3.14159, \"\\n\";", "3.14\n"),
]  # fmt: skip
FILES = {"-tags=special": {"other.go": "//go:build special\n\npackage main\n\nconst name = \"special\"\n"}}


@pytest.fixture
def client(daemon):
    """On a busy host a compiler and its program together may take more than the usual minute."""
    with daemon.client(timeout=240) as made:
        yield made


def run(client, language, code, options, **more):
    found = {item["name"]: item for item in client.get("/api/v1/languages").json["languages"]}
    if not found[language]["available"]:
        pytest.skip(f"{found[language]['missing']} is not installed")
    return client.execute(language, code, options=options, **more)


@pytest.mark.parametrize("language", sorted({row[0] for row in ROWS}))
def test_option_changes_the_program(client, language):
    for _, options, code, wanted in (row for row in ROWS if row[0] == language and row[3] is not None):
        if options.get("compiler") == "clang++" and not pathlib.Path("/usr/bin/clang++").exists():
            continue  # test_a_compiler_that_is_missing
        result = run(client, language, code, options, timeout=60)
        if wanted.endswith("\n"):
            assert (result["stdout"], result["exit_code"]) == (wanted, 0), (options, result["stderr"])
        elif wanted:
            assert result["phase"] == "compile" and wanted in result["stderr"], (options, result)
        else:
            assert result["stdout"] == "" and (result["exit_code"] == 0) == (language != "shell"), (options, result)


def test_options_that_need_files(client):
    tagged = run(client, "go", "package main\nfunc main() { print(name) }", {"build_flags": "-tags=special"}, files=FILES["-tags=special"], timeout=60)
    assert tagged["stderr"] == "special", tagged
    plain = run(client, "go", "package main\nfunc main() { print(name) }", {}, files=FILES["-tags=special"], timeout=60)
    assert plain["phase"] == "compile" and "undefined: name" in plain["stderr"]
    # A class that only the class path has.
    main = "class Main { public static void main(String[] a) { System.out.println(extra.Thing.NAME); } }"
    sources = {"lib/extra/Thing.java": "package extra; public class Thing { public static final String NAME = \"thing\"; }"}
    found = run(client, "java", main, {"classpath": "lib"}, files=sources, timeout=60)
    assert (found["stdout"], found["exit_code"]) == ("thing\n", 0), found["stderr"]


def test_warnings_are_diagnostics_of_a_program_that_runs(client):
    for language in ("c", "cpp"):
        quiet = run(client, language, UNUSED, {})
        assert quiet["exit_code"] == 0 and quiet["diagnostics"] in ([], None)
        loud = run(client, language, UNUSED, {"warnings": True})
        assert loud["exit_code"] == 0 and loud["diagnostics"][0]["severity"] == "warning", loud
        assert (loud["diagnostics"][0]["line"], loud["phase"]) == (1, "run")


WRONG = "interface A { b: number }\nconst a: A = { b: 'x' };\nconsole.log(a.b);\n"


def skip_without_compiler():
    if not any((pathlib.Path(place) / "typescript/lib/typescript.js").exists()
               for place in ("/usr/share/nodejs", "/usr/lib/node_modules", "/usr/local/lib/node_modules")):
        pytest.skip("the package node-typescript is not installed")


def test_types_are_checked_on_request(client):
    skip_without_compiler()
    unchecked = run(client, "typescript", WRONG, {})
    assert (unchecked["stdout"], unchecked.get("phase")) == ("x\n", None), unchecked
    checked = run(client, "typescript", WRONG, {"check": True})
    assert (checked["phase"], checked["status"], checked["stdout"]) == ("compile", "failed", "")
    assert checked["diagnostics"] == [
        {"file": "main.ts", "line": 2, "column": 16, "severity": "error", "code": "TS2322", "message": "Type 'string' is not assignable to type 'number'."}]
    right = WRONG.replace("'x'", "5")
    first = run(client, "typescript", right, {"check": "true"})
    again = run(client, "typescript", right, {"check": "true"})
    assert (first["stdout"], first["phase"], first["compile"]["cached"]) == ("5\n", "run", False), first
    assert (again["stdout"], again["compile"]["cached"]) == ("5\n", True)
    # Other files have their own positions, and errors at run time those of the TypeScript.
    files = {"util.ts": "export const f = (x: number): number => x;\n\nexport const g: string = f(1);\n"}
    other = run(client, "typescript", "import { f } from './util';\nconsole.log(f(2));", {"check": True}, files=files)
    assert [(d["file"], d["line"], d["code"]) for d in other["diagnostics"]] == [("util.ts", 3, "TS2322")], other
    thrown = run(client, "typescript", "type A = number;\nconst a: A = 1;\nthrow new Error(String(a));", {"check": True})
    assert thrown["phase"] == "run" and thrown["error"]["traceback"][0] == "/workspace/main.ts:3", thrown


def test_a_configuration_of_the_request_counts(client):
    skip_without_compiler()
    code = "function f(x) { return x; }\nconsole.log(f(1));"
    strict = run(client, "typescript", code, {"check": True})
    assert strict["diagnostics"][0]["code"] == "TS7006"
    for name, options in (("tsconfig.json", {}), ("loose.json", {"tsconfig": "loose.json"})):
        loose = run(client, "typescript", code, {"check": True, **options}, files={name: '{"compilerOptions": {"strict": false}}'})
        assert loose["stdout"] == "1\n", loose
    missing = run(client, "typescript", code, {"check": True, "tsconfig": "none.json"})
    assert missing["diagnostics"][0]["code"] == "TS5058"


@pytest.fixture
def session(client, request):
    made = Session(client, mode="persistent", **request.param)
    yield made
    made.delete()


@pytest.mark.parametrize("session", [{"language": "typescript"}], indirect=True)
def test_types_are_checked_in_a_session(session):
    skip_without_compiler()
    wrong = session.run(WRONG, options={"check": True})
    assert wrong["phase"] == "compile" and wrong["diagnostics"][0]["line"] == 2, wrong
    right = session.run(WRONG.replace("'x'", "5"), options={"check": True})
    assert (right["stdout"], right["phase"]) == ("5\n", "run"), right


#: Language, option, whether earlier versions are accepted as well, a program that prints 1.
VERSIONS = [
    ("javascript", "node_version", False, "console.log(1)"),
    ("typescript", "node_version", False, "console.log(1)"),
    ("go", "go_version", True, "package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }"),
    ("java", "java_version", True, "class Main { public static void main(String[] a) { System.out.println(1); } }"),
    ("java", "release", True, "class Main { public static void main(String[] a) { System.out.println(1); } }"),
]


@pytest.mark.parametrize("language, option, earlier, code", VERSIONS, ids=lambda value: value if str(value).isidentifier() else "")
def test_a_version_that_is_not_installed_is_refused(client, language, option, earlier, code):
    version = {item["name"]: item["version"] for item in client.get("/api/v1/languages").json["languages"]}[language]
    if not version:
        pytest.skip(f"{language} is not installed")
    parts = version.lstrip("v").split(".")
    has, later, before = {"go": (".".join(parts[:2]), "9.9", "1.18"), "java": (parts[0], "21", "8")}.get(language, (parts[0], parts[0] + "0", "1"))
    assert run(client, language, code, {option: has}, timeout=60)["stdout"] == "1\n"
    if earlier:
        assert run(client, language, code, {option: before}, timeout=60)["stdout"] == "1\n"
        answer = client.post("/api/v1/execute", {"language": language, "code": code, "options": {option: "v" + before}})
        assert (answer.status, answer.json.get("field")) == (400, f"options.{option}"), answer
    assert option != "node_version" or run(client, language, code, {option: "v" + has})["stdout"] == "1\n"
    for value in (later,) if earlier else (later, before):
        answer = client.post("/api/v1/execute", {"language": language, "code": code, "options": {option: value}})
        assert (answer.status, answer.json["field"]) == (400, f"options.{option}"), answer
        assert version in answer.json["error_detail"] and f"not {value}" in answer.json["error_detail"], answer
        session = Session(client, mode="persistent")
        refused = client.post(f"{session.path}/execute", {"language": language, "code": code, "options": {option: value}, "wait": True})
        assert (refused.status, refused.json["field"]) == (400, f"options.{option}"), refused
        tool = client.post(f"/mcp/tools/run_{language}", {"sandbox_id": session.id, "code": code, "options": {option: value}})
        assert tool.json["is_error"] and f"options.{option}" in tool.json["text"] and version in tool.json["text"], tool
        session.delete()


@pytest.mark.parametrize("language, option, earlier, code", VERSIONS[:3], ids=lambda value: value if str(value).isidentifier() else "")
def test_the_runner_refuses_a_version_as_well(make_daemon, language, option, earlier, code):
    """The daemon learns the versions when someone asks for them."""
    with make_daemon().start().client() as client:
        done = client.execute(language, code, options={option: "99.1"}, timeout=60)
        assert done["exit_code"] == 1 and f"options.{option}: the box has " in done["stderr"] and "not 99.1" in done["stderr"], done


@pytest.mark.parametrize("session", [{"language": "python"}], indirect=True)
def test_a_virtual_environment_is_an_interpreter(client, session):
    made = session.run("import venv\nvenv.create('venv', with_pip=False)")
    assert made["status"] == "success", made
    ran = session.run("import sys\nprint(sys.prefix)", options={"interpreter": "/workspace/venv/bin/python3"})
    assert ran["stdout"] == "/workspace/venv\n", ran
    refused = client.post(f"{session.path}/execute", {"code": "1", "options": {"interpreter": "venv/bin/python3"}, "wait": True})
    assert refused.status == 400 and refused.json["field"] == "options.interpreter"


def test_nullable_references_need_the_sdk_of_net(client):
    code = "class A { static void Main() { string? s = null; Console.WriteLine(s == null); } }"
    sdk = any(pathlib.Path(place).exists() for place in yaml.safe_load((RUNNERS / "csharp/manifest.yaml").read_text())["places"][:3])
    if sdk or pathlib.Path("/usr/bin/dotnet").exists():
        assert run(client, "csharp", "using System;\n" + code, {"nullable": "enable"}, timeout=60)["stdout"] == "True\n"
        return
    for name, value in (("nullable", "enable"), ("implicit_usings", "true")):
        refused = run(client, "csharp", code, {name: value})
        assert refused["phase"] == "compile" and f"options.{name}: Mono's compiler has no" in refused["stderr"], refused
    plain = run(client, "csharp", "class A { static void Main() { } }", {"nullable": "disable", "implicit_usings": "false", "framework": "mono"})
    assert plain["exit_code"] == 0, plain


def test_the_command_line_has_options(client):
    def cli(*words):
        return subprocess.run([BUILD / "millibox", "run", "--socket", client.address, *words], capture_output=True, text=True, check=False)

    ran = cli("--language", "shell", "--option", "shell=dash", "--option", "set_flags=-u", "-c", "echo ${BASH_VERSION:-no} $-")
    assert ran.stdout.startswith("no ") and "u" in ran.stdout, ran
    refused = cli("--language", "shell", "--option", "shell", "-c", "true")
    assert refused.returncode == 2 and "--option: 'shell' is not NAME=VALUE" in refused.stderr, refused


def test_every_option_is_refused_if_wrong_and_tested_here(client):
    tested = {(language, name) for language, options, _, _ in ROWS for name in options} | {
        ("c", "warnings"), ("cpp", "warnings"), ("cpp", "std"), ("typescript", "check"), ("typescript", "tsconfig"),
        ("typescript", "node_version"), ("javascript", "node_version"), ("python", "interpreter"), ("csharp", "nullable"), ("csharp", "implicit_usings")}  # fmt: skip
    for manifest in RUNNERS.glob("*/manifest.yaml"):
        language = yaml.safe_load(manifest.read_text())
        for name, option in language.get("options", {}).items():
            assert (language["name"], name) in tested, f"no test has option {name} of {language['name']}"
            wrong = "maybe" if option.get("type") == "bool" else "no-such-value" if "values" in option or "version" in option.get("type", "") else "a\nb"
            answer = client.post("/api/v1/execute", {"language": language["name"], "code": "1", "options": {name: wrong}})
            assert (answer.status, answer.json["field"]) in ((400, f"options.{name}"), (503, None)), answer.json
