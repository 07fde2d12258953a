# SPDX-License-Identifier: Apache-2.0
"""SandboxRunner's tools for languages: each with all fields that its schema has, and the options that it documents, as strings."""

import pytest

from support.sandboxes import Runner

pytestmark = pytest.mark.phases("system")

#: Tool: options, program, a second file. Each program prints the answer of the file, a variable, and its input.
TOOLS = {
    "run_python": ({"use_venv": "false", "python_cmd": "python3"},
                   "import os, other\nprint(other.answer, os.environ['WORD'], input())", {"other.py": "answer = 42\n"}),
    "run_javascript": ({}, "const { answer } = require('./other.js');\nconsole.log(answer, process.env.WORD, require('fs').readFileSync(0, 'utf8').trim());",
                       {"other.js": "exports.answer = 42;\n"}),
    "run_typescript": ({"target": "ES2020"},
                       "import { answer } from './other';\nconst n: number = answer;\nconsole.log(n, process.env.WORD, require('fs').readFileSync(0, 'utf8').trim());",
                       {"other.ts": "export const answer: number = 42;\n"}),
    "run_go": ({"module_name": "main", "build_flags": "-tags=blue", "go_version": "1.19"},
               "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n\tvar line string\n\tfmt.Scanln(&line)\n\tfmt.Println(answer, os.Getenv(\"WORD\"), line)\n}\n",
               {"other.go": "package main\n\nconst answer = 42\n"}),
    "run_rust": ({"edition": "2021", "release": "true", "features": "blue"},
                 "mod other;\nfn main() {\n    let mut line = String::new();\n    std::io::stdin().read_line(&mut line).unwrap();\n"
                 "    println!(\"{} {} {}\", other::ANSWER, std::env::var(\"WORD\").unwrap(), line.trim());\n}\n",
                 {"other.rs": "pub const ANSWER: u32 = 42;\n"}),
    "run_java": ({"java_version": "17", "main_class": "Main", "build_tool": "maven"},
                 "import java.util.*;\npublic class Main {\n    public static void main(String[] args) {\n"
                 "        System.out.println(Other.ANSWER + \" \" + System.getenv(\"WORD\") + \" \" + new Scanner(System.in).nextLine());\n    }\n}\n",
                 {"Other.java": "class Other { static final int ANSWER = 42; }\n"}),
    "run_cpp": ({"std": "c++17", "compiler": "g++", "optimization": "O2", "extra_flags": "-Wall"},
                "#include \"other.h\"\n#include <cstdlib>\n#include <iostream>\nint main() {\n    std::string line;\n    std::getline(std::cin, line);\n"
                "    std::cout << answer << ' ' << std::getenv(\"WORD\") << ' ' << line << '\\n';\n}\n",
                {"other.h": "constexpr int answer = 42;\n"}),
    "run_csharp": ({"nullable": "disable", "implicit_usings": "false"},
                   "using System;\nclass Program {\n    static void Main() {\n"
                   "        Console.WriteLine(Other.Answer + \" \" + Environment.GetEnvironmentVariable(\"WORD\") + \" \" + Console.ReadLine());\n    }\n}\n",
                   {"other.cs": "static class Other { public const int Answer = 42; }\n"}),
    "run_shell": ({"shell": "bash", "set_flags": "-eu"}, ". ./other.sh\nread -r line\necho $answer $WORD $line", {"other.sh": "answer=42\n"}),
}  # fmt: skip


@pytest.fixture
def client(daemon):
    """Compilers take long on a busy host."""
    with daemon.client(timeout=180) as made:
        yield made


@pytest.fixture
def runner(client):
    return Runner(client)


@pytest.fixture
def box(runner):
    made = runner.done("create_sandbox")
    yield made["sandbox_id"]
    runner.ask("terminate_sandbox", sandbox_id=made["sandbox_id"])


def skip_if_missing(client, language):
    found = {item["name"]: item for item in client.get("/api/v1/languages").json["languages"]}
    if not found[language]["available"]:
        pytest.skip(f"{found[language]['missing']} is not installed")


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_runs_its_language(client, runner, box, tool):
    language = tool.removeprefix("run_")
    skip_if_missing(client, language)
    options, code, files = TOOLS[tool]
    common = {"sandbox_id": box, "files": files, "environment": {"WORD": "dog"}, "stdin": "cat\n", "working_dir": "/workspace", "timeout": 120}
    ran = runner.run(tool, code=code, options=options, **common)
    assert (ran["metadata"]["stdout"], ran["metadata"]["exit_code"], ran["is_error"]) == ("42 dog cat\n", 0, False), ran
    assert ran["metadata"]["language"] == language
    # Without its name the language is found.
    found = runner.run("run_generic", code=code, **common)
    assert (found["metadata"]["language"], found["metadata"]["stdout"]) == (language, "42 dog cat\n"), found
    named = runner.run("run_generic", code=code, language=language, **common)
    assert named["metadata"]["stdout"] == "42 dog cat\n", named


def test_a_failed_build_is_an_error_with_the_compilers_words(client, runner, box):
    skip_if_missing(client, "cpp")
    failed = runner.run("run_cpp", sandbox_id=box, code="int main() { return y; }", timeout=60)
    assert failed["is_error"] and failed["metadata"]["exit_code"] != 0
    assert "was not declared" in failed["metadata"]["stderr"], failed


@pytest.mark.parametrize("name,language", [("a.py", "python"), ("a.rb", "ruby"), ("dir/a.lua", "lua"), ("a.sh", "shell"), ("a.txt", "python")])
def test_a_file_name_tells_the_language(client, box, name, language):
    skip_if_missing(client, language)
    answer = client.post(f"/api/v1/sandboxes/{box}/code", {"code": "x = 1", "filename": name})
    assert answer.status == 200 and answer.json["language"] == language, answer.json
