# SPDX-License-Identifier: Apache-2.0
"""SandboxRunner's documented examples and what its client shows, for its dialect."""

import pytest

from support.sandboxes import Runner, ok
from support.sessions import V1, Session

pytestmark = pytest.mark.phases("system")


@pytest.fixture
def runner(client):
    return Runner(client)


@pytest.fixture
def box(runner):
    made = runner.done("create_sandbox", image="python:3.11", workspace_dir="/workspace", network_mode="none")
    yield made["sandbox_id"]
    runner.ask("terminate_sandbox", sandbox_id=made["sandbox_id"])


# Its documented examples, word for word.

CREATE = {
    "ubuntu": {"image": "ubuntu:22.04", "workspace_dir": "/workspace"},
    "python": {"image": "python:3.11", "workspace_dir": "/app", "cpu_limit": "2.0", "memory_limit": "2G", "disk_limit": "5G",
               "environment": {"PYTHONPATH": "/app", "PYTHONUNBUFFERED": "1", "PIP_NO_CACHE_DIR": "1"}},
    "node": {"image": "node:18", "cpu_limit": "1.5", "memory_limit": "1G", "network_mode": "bridge",
             "environment": {"NODE_ENV": "development", "NPM_CONFIG_CACHE": "/tmp/.npm"}},
    "large": {"image": "ubuntu:22.04", "cpu_limit": "8.0", "memory_limit": "16G", "disk_limit": "100G",
              "environment": {"OMP_NUM_THREADS": "8", "MALLOC_ARENA_MAX": "2"}},
    "minimal": {"image": "alpine:3.18", "cpu_limit": "0.5", "memory_limit": "256M", "disk_limit": "1G", "network_mode": "none"},
    "variables": {"environment": {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": "/workspace", "NODE_ENV": "development",
                                  "DATABASE_URL": "sqlite:///workspace/app.db"}},
    "settings": {"environment": {"TZ": "UTC", "LANG": "C.UTF-8", "TMPDIR": "/tmp", "HOME": "/workspace"}},
    "quick start": {"image": "python:3.11", "memory_limit": "1G"},
    "data science": {"image": "python:3.11-slim", "memory_limit": "2G", "cpu_limit": "2.0", "workspace_dir": "/workspace/datascience"},
    "web": {"image": "node:18-slim", "memory_limit": "3G", "cpu_limit": "2.0", "network_mode": "bridge",
            "environment": {"NODE_ENV": "development", "PORT": "3000"}},
    "go": {"image": "golang:1.21"},
    "rust": {"image": "rust:1.70"},
    "registry": {"image": "docker.io/library/python:3.11"},
    "digest": {"image": "python@sha256:" + 64 * "0"},
    "libraries": {"image": "python:3.11", "environment": {"LD_LIBRARY_PATH": "/workspace/lib"}},
}


@pytest.mark.parametrize("name", CREATE)
def test_client_creates_as_in_the_documents(runner, name):
    """Each was refused or is close to one that was: the image, bridge, the directory, a variable, a limit."""
    asked = CREATE[name]
    answer = runner.call("create_sandbox", **asked)
    made = answer["metadata"]
    try:
        assert not answer["is_error"], answer
        assert made["image"] == asked.get("image", "ubuntu:22.04") and made["workspace_dir"] == "/workspace"
        assert made["config"]["environment"] == asked.get("environment", {})
        warnings = " ".join(made.get("warnings", []))
        if asked.get("network_mode") == "bridge":
            assert made["config"]["network_mode"] == "none"
            assert "network_mode: 'bridge' was requested, the policy grants 'none'" in warnings and warnings in answer["text"].replace("\n", " ")
        if asked.get("workspace_dir", "/workspace") != "/workspace":
            assert f"workspace_dir: '{asked['workspace_dir']}' was requested; files are in /workspace" in warnings
        if name == "large":
            assert set(made["limits"]) >= {"memory", "disk"} and "100Gi was requested" in answer["text"], made["limits"]
        done = runner.run("run_python", sandbox_id=made["sandbox_id"], code="print(6 * 7)")
        assert done["metadata"]["stdout"] == "42\n", done
    finally:
        runner.ask("terminate_sandbox", sandbox_id=made["sandbox_id"])


RUN = {
    "simple": ({"code": "print('Hello, World!')\nprint(f'2 + 2 = {2 + 2}')"}, "Hello, World!\n2 + 2 = 4\n"),
    "files": ({"code": "from calculator import Calculator\nfrom data_processor import process_data\n\ncalc = Calculator()\n"
                       "result = calc.add(10, 5)\nprint(f'10 + 5 = {result}')\n\ndata = [1, 2, 3, 4, 5]\n"
                       "processed = process_data(data)\nprint(f'Processed data: {processed}')",
               "files": {"calculator.py": "class Calculator:\n    def add(self, a, b):\n        return a + b\n    \n"
                                          "    def multiply(self, a, b):\n        return a * b",
                         "data_processor.py": "def process_data(data):\n    return [x * 2 for x in data]"}},
              "10 + 5 = 15\nProcessed data: [2, 4, 6, 8, 10]\n"),
    "input": ({"code": "name = input('Enter your name: ')\nage = int(input('Enter your age: '))\ncity = input('Enter your city: ')\n\n"
                       "print(f'Hello {name}!')\nprint(f'You are {age} years old and live in {city}.')\n\nif age >= 18:\n"
                       "    print('You are an adult.')\nelse:\n    print(f'You will be an adult in {18 - age} years.')",
               "stdin": "Alice\n25\nNew York\n"},
              "Enter your name: Enter your age: Enter your city: Hello Alice!\nYou are 25 years old and live in New York.\n"
              "You are an adult.\n"),
    "variables": ({"code": "import os, sys\nprint('/workspace/lib' in sys.path, sys.dont_write_bytecode, os.environ['MPLBACKEND'])",
                   "environment": {"PYTHONPATH": "/workspace:/workspace/lib", "PYTHONUNBUFFERED": "1",
                                   "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg", "NUMBA_DISABLE_JIT": "1"}},
                  "True True Agg\n"),
    "venv": ({"code": "print('Flask app created successfully')", "options": {"use_venv": "true"}}, "Flask app created successfully\n"),
}


@pytest.mark.parametrize("name", RUN)
def test_client_runs_as_in_the_documents(runner, box, name):
    arguments, printed = RUN[name]
    answer = runner.run("run_python", sandbox_id=box, **arguments)
    assert not answer["is_error"] and answer["metadata"]["stdout"] == printed, answer


@pytest.mark.parametrize("tool, arguments, code, words", [
    ("create_sandbox", {"image": "ghcr.io/someone/image:1"}, "IMAGE_NOT_FOUND", "pulls no images"),
    ("create_sandbox", {"environment": {"LD_PRELOAD": "/x.so"}}, "INVALID_PARAMETERS", "'LD_PRELOAD' changes how programs are loaded"),
    ("run_python", {"code": "1", "environment": {"PYTHONSTARTUP": "/x"}}, "INVALID_PARAMETERS", "'PYTHONSTARTUP'"),
    ("run_python", {"code": "1", "packages": ["no-such-package-at-all"]}, "PACKAGE_INSTALL_FAILED", "no-such-package-at-all"),
    ("run_python", {"code": "1", "options": {"python_cmd": "python2"}}, "INVALID_PARAMETERS", "python_cmd"),
    ("run_shell", {"code": "1", "packages": ["curl"]}, "PACKAGE_INSTALL_FAILED", "packages"),
    ("run_generic", {"code": "1", "language": "cobol"}, "INVALID_PARAMETERS", "'cobol' is not supported"),
    ("exec_command", {"command": "ls", "working_dir": "/etc"}, "INVALID_PARAMETERS", "working_dir"),
])
def test_client_shows_why_a_call_was_refused(runner, box, tool, arguments, code, words):
    """Of an HTTP error the client shows only its number, of a result its text."""
    if tool != "create_sandbox":
        arguments = {"sandbox_id": box, **arguments}
    answer = runner.call(tool, **arguments)
    assert answer["is_error"] and words in answer["text"] and "millibox " not in answer["text"], answer
    assert answer["metadata"]["code"] == code and words in answer["metadata"]["details"], answer


def test_bridge_is_what_the_policy_grants(client):
    """In REST as well; Millibox's own dialect refuses what a policy does not grant."""
    made = ok(client.post("/api/v1/sandboxes", {"image": "node:18", "network_mode": "bridge"}), 201)
    assert made["config"]["network_mode"] == "none" and "'bridge' was requested" in made["warnings"][0]
    client.request("DELETE", f"/api/v1/sandboxes/{made['id']}")
    assert client.post(f"{V1}/sessions", {"network": "bridge"}).status == 403


def test_libraries_are_found_by_their_variable(client):
    """Loaders read it at the start: a program that has it is not forked from a warm interpreter."""
    code = "import os, subprocess\nprint(os.environ['LD_LIBRARY_PATH'], subprocess.check_output(['sh', '-c', 'echo $LD_LIBRARY_PATH']))"
    answer = ok(client.post("/api/v1/execute", {"code": code, "language": "python", "receipt": "plain", "env_vars": {"LD_LIBRARY_PATH": "/workspace/lib"}}))
    assert answer["stdout"] == "/workspace/lib b'/workspace/lib\\n'\n" and answer["isolation"]["start"] == "cold", answer


def test_modules_are_found_by_their_variable_in_sessions(client):
    """Of the session, and of one execution."""
    session = Session(client, mode="persistent", env_vars={"PYTHONPATH": "/workspace/a", "PYTHONUNBUFFERED": "1"})
    for name in "ab":
        assert client.request("PUT", f"{session.path}/files/{name}/in_{name}.py", body=f"WHERE = '{name}'".encode()).status < 300
    assert session.run("import in_a\nin_a.WHERE")["result"] == "a"
    assert session.run("import in_b\nin_b.WHERE", env_vars={"PYTHONPATH": "/workspace/b"})["result"] == "b"
    done = session.run("import sys\nprint('x', end='')\n[p for p in sys.path if p.startswith('/workspace')]")
    assert done["result"] == ["/workspace", "/workspace/a"] and done["stdout"] == "x", done
    session.delete()
