# SPDX-License-Identifier: Apache-2.0
"""All examples do what their README says."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from support import host
from support.daemon import BUILD, ROOT, is_sanitized

pytestmark = pytest.mark.phases("system")

EXAMPLES = ROOT / "examples"


@pytest.fixture
def env(daemon):
    return {**os.environ, "MILLIBOX_SOCKET": daemon.socket, "PYTHONPATH": str(ROOT / "sdk/python/src")}


@pytest.fixture
def run(env, tmp_path):
    def call(name, *words):
        done = subprocess.run([sys.executable, str(EXAMPLES / name), *words], capture_output=True, text=True, env=env, timeout=120,
                              cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@pytest.fixture
def patient(tmp_path):
    """A copy of an example with a longer limit: a busy host may need more than a second to start an interpreter."""
    def copy(name, limit, longer):
        text = (EXAMPLES / name).read_text()
        assert text.count(limit) == 1, f"{name}: {limit}"
        (tmp_path / name).write_text(text.replace(limit, longer))
        return tmp_path / name

    return copy


def test_all_are_listed_and_tested():
    names = {path.name for path in EXAMPLES.iterdir()} - {"README.md"}
    listed = set(re.findall(r"^\| \[([\w.]+)\]", (EXAMPLES / "README.md").read_text(), re.M))
    tests = [Path(__file__), ROOT / "tests/sdk/typescript/test_sdk_typescript.py"]
    text = "".join(path.read_text() for path in tests)
    assert names == listed and all(f'"{name}"' in text for name in names)


def test_an_agent_loop(run):
    shown = run("agent_loop.py")
    assert "NameError: name 'isqrt' is not defined" in shown and shown.endswith("There are 1229 primes below 10000.\n")


def test_data_analysis(run, tmp_path):
    shown = run("data_analysis.py", "figure.png")
    assert re.search(r"total \d+, best month \d+", shown) and (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_grading(run, patient):
    shown = run(patient("grading.py", "timeout=1,", "timeout=4,"))
    rows = {tuple(line.split(None, 2)[1:]) for line in shown.splitlines()[:-1]}
    assert ("right", "passed") in rows and ("wrong", "wrong answer") in rows and ("crashes", "failed: RuntimeError") in rows
    assert ("endless", "time limit") in rows and ("greedy", "memory limit") in rows and ("cheats", "failed: FileNotFoundError") in rows
    assert not [row for row in rows if row[0] != "right" and row[1] == "passed"], rows


def test_a_lambda_handler(run):
    assert run("lambda_handler.py") == "{'words': 4, 'longest': 'untrusted', 'left': True}\nKeyError: 'text'\n"


def test_a_service_that_runs_plugins(env):
    def ask(method, path, body):
        try:
            with urllib.request.urlopen(urllib.request.Request(url + path, data=body.encode(), method=method), timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    command = [sys.executable, str(EXAMPLES / "plugin_service.py"), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as service:
        try:
            url = service.stdout.readline().strip()
            assert ask("POST", "ann", "x") == (404, "no such plugin")
            assert ask("PUT", "ann", "def transform(text): return text.upper()") == (201, "installed")
            assert ask("PUT", "bob", "def transform(text): return open('/workspace/secret').read()") == (201, "installed")
            assert ask("POST", "ann", "loud") == (200, "LOUD")
            assert ask("POST", "bob", "x")[0] == 422
            assert ask("PUT", "ann", "while True: pass") == (400, "the plugin does not load: time")
            assert ask("POST", "ann", "still there") == (200, "STILL THERE")
            assert ask("PUT", "ann", "") == (400, "the plugin does not load: code: must not be empty")
            assert ask("PUT", "a-b", "1")[0] == 400
        finally:
            service.send_signal(signal.SIGINT)
            assert service.wait(host.HANG_S) == 0


def test_a_judge_in_c(env, tmp_path, patient):
    """With the libraries of the build; tests/sdk/c has the installed ones."""
    program, judge = tmp_path / "program.py", tmp_path / "judge"
    flags = ["-fsanitize=address,undefined"] if is_sanitized() else []
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags, f"-I{ROOT}/src/client",
                    str(patient("judge.c", '"timeout", 1)', '"timeout", 6)')), "-o", judge, str(BUILD / "src/client/libmillibox.a"),
                    "-lcurl", "-ljansson"], check=True)
    program.write_text("n = int(input())\nif n == 5: 1 / 0\nwhile n == 4: pass\nprint(n * n if n != 3 else 8)\n")
    done = subprocess.run([judge, program, "12=144", "3=9", "4=16", "5=25"], capture_output=True, text=True, env=env, timeout=60)
    assert (done.returncode, done.stdout) == (2, "12: passed\n3: wrong answer\n4: time\n5: failed\n1 of 4\n"), done.stderr


def test_http_in_ten_lines_of_shell(daemon):
    script = EXAMPLES / "http.sh"
    lines = [line for line in script.read_text().splitlines() if not line.startswith(("#", "set"))]
    assert len(lines) <= 10
    done = subprocess.run(["sh", str(script)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "MILLIBOX_URL": "http://%s:%d" % daemon.tcp_address()})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:4] == ["42", "", "success", "success"] and "\n42\n" in done.stdout
