# SPDX-License-Identifier: Apache-2.0
"""codomyrmex: what its documents and tests expect of the tool execute_code, by its own path and by MCP."""

import pytest

pytestmark = pytest.mark.phases("system")

KEYS = {"stdout": str, "stderr": str, "exit_code": int, "execution_time": (int, float), "status": str}


@pytest.fixture
def client(daemon):
    """Compilers take long on a busy host."""
    with daemon.client(timeout=180) as made:
        yield made


@pytest.fixture
def execute(client):
    """Call the tool; no program, and no lack of one, is an HTTP error. Return: its result."""

    def call(**arguments):
        answer = client.post("/mcp/tools/execute_code", arguments)
        assert answer.status == 200, answer
        result = answer.json["metadata"]
        for key, kind in KEYS.items():
            assert isinstance(result[key], kind), (key, result)
        assert "error_message" in result
        return result

    return call


# Its documented examples, word for word; the prompt of input() is part of the output.

EXAMPLES = {
    "simple": (
        {"language": "python", "timeout": 10, "code": """
print("Hello, World!")
x = 5
y = 7
print(f"Sum: {x + y}")
"""}, "Hello, World!\nSum: 12\n"),
    "input": (
        {"language": "python", "code": "name = input('Enter your name: ')\nprint(f'Hello, {name}!')", "stdin": "Alice", "timeout": 10},
        "Enter your name: Hello, Alice!\n"),
    "tutorial": (
        {"language": "python", "stdin": "CodomyrmexDev", "timeout": 10,
         "code": "name = input(\"Enter your name: \")\nprint(f\"Hello, {name}, from the Python sandbox!\")\n"
                 "for i in range(1, 4):\n    print(f\"Python count: {i}\")"},
        "Enter your name: Hello, CodomyrmexDev, from the Python sandbox!\nPython count: 1\nPython count: 2\nPython count: 3\n"),
    "own example": (
        {"language": "python", "stdin": "Test User", "timeout": 10, "code": """
print("Hello from the sandbox!")
name = input("Enter your name: ")
print(f"Hello, {name}!")
    """}, "Hello from the sandbox!\nEnter your name: Hello, Test User!\n"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_codomyrmex_examples(execute, name):
    arguments, printed = EXAMPLES[name]
    result = execute(**arguments)
    assert (result["status"], result["exit_code"], result["stdout"], result["stderr"]) == ("success", 0, printed, ""), result
    assert result["error_message"] is None and result["execution_time"] > 0


#: Every language that it names: the sum of the two numbers of its input. A public class of Java may have any name.
LANGUAGES = {
    "python": "print(sum(map(int, input().split())))",
    "javascript": "console.log(require('fs').readFileSync(0, 'utf8').split(' ').map(Number).reduce((a, b) => a + b));",
    "bash": "read -r a b; echo $((a + b))",
    "java": "import java.util.*;\npublic class Code {\n  public static void main(String[] args) {\n    Scanner in = new Scanner(System.in);\n"
            "    System.out.println(in.nextInt() + in.nextInt());\n  }\n}\n",
    "c": '#include <stdio.h>\nint main(void) { int a, b; return scanf("%d %d", &a, &b) == 2 ? !printf("%d\\n", a + b) : 1; }\n',
    "cpp": "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b << '\\n'; }\n",
    "go": 'package main\nimport "fmt"\nfunc main() { var a, b int; fmt.Scan(&a, &b); fmt.Println(a + b) }\n',
    "rust": "fn main() {\n  let mut line = String::new();\n  std::io::stdin().read_line(&mut line).unwrap();\n"
            "  println!(\"{}\", line.split_whitespace().map(|n| n.parse::<i32>().unwrap()).sum::<i32>());\n}\n",
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_codomyrmex_languages(client, execute, language):
    found = {name: item for item in client.get("/api/v1/languages").json["languages"] for name in (item["name"], *item["aliases"])}
    if not found[language]["available"]:
        pytest.skip(f"{found[language]['missing']} is not installed")
    result = execute(language=language, code=LANGUAGES[language], stdin="19 23\n", timeout=120)
    assert (result["status"], result["exit_code"], result["stdout"]) == ("success", 0, "42\n"), result


def test_codomyrmex_shell_script(execute):
    result = execute(language="bash", code="""
#!/bin/bash
echo "Current directory:"
pwd
echo "Files:"
ls -la
echo "Environment variables:"
env | grep PATH
""")
    assert result["status"] == "success" and "Current directory:\n/workspace\n" in result["stdout"] and "PATH=" in result["stdout"], result


def test_codomyrmex_error(execute):
    result = execute(language="python", code="print(\"Preparing to divide...\")\nx = 10\ny = 0\nresult = x / y \nprint(f\"Result: {result}\")", timeout=30)
    assert result["status"] == "execution_error" and result["exit_code"] == 1 and result["stdout"] == "Preparing to divide...\n"
    assert "line 4" in result["stderr"] and "ZeroDivisionError: division by zero" in result["stderr"] and result["error_message"]
    assert execute(language="bash", code="exit 3")["status"] == "execution_error"


def test_codomyrmex_timeout(execute):
    result = execute(language="python", timeout=3, code="import time\nprint(\"Starting long task...\")\nwhile True:\n    time.sleep(0.5)")
    assert (result["status"], result["exit_code"], result["stdout"]) == ("timeout", -1, "Starting long task...\n")
    assert result["error_message"] == "Execution timed out after 3 seconds."


@pytest.mark.parametrize("timeout, note", [(0, None), (-5, None), (None, None), (1, None), (300, None), (301, None),
                                           (100000, "timeout: 100000 was requested, 3600 is granted"), (1e300, "timeout")])
def test_codomyrmex_timeouts_are_clamped(client, execute, timeout, note):
    """It never refuses a time-out: 0 is one second, none is the default. The text names what is cut."""
    result = execute(language="bash", code="echo 1", timeout=timeout)  # begins within a second on a busy host, too
    assert result["status"] == "success" and result["stdout"] == "1\n", result
    if note:
        text = client.post("/mcp/tools/execute_code", {"language": "bash", "code": "true", "timeout": timeout}).json["text"]
        assert note in text, text


@pytest.mark.parametrize("arguments, stderr, words", [
    ({"language": "cobol", "code": "x"}, "Unsupported language: cobol", "not supported"),
    ({"language": "Python!", "code": "x"}, "Unsupported language: Python!", "not supported"),
    ({"language": "python", "code": ""}, None, "non-empty string"),
    ({"language": "python", "code": None}, None, "code"),
    ({"language": "python", "code": 7}, None, "code"),
    ({"language": "python"}, None, "code"),
    ({"language": "python", "code": "1", "session_id": "user123_project_alpha"}, None, "user123_project_alpha"),
])
def test_codomyrmex_setup_errors(execute, arguments, stderr, words):
    """What cannot be started is a result as well."""
    result = execute(**arguments)
    assert (result["status"], result["exit_code"], result["stdout"], result["execution_time"]) == ("setup_error", -1, "", 0)
    assert words in result["error_message"] and result["stderr"] == (stderr or result["error_message"]), result
