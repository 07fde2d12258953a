# SPDX-License-Identifier: Apache-2.0
"""sandbox-run, like the command of sandbox-runtime: flags, formats, exit statuses."""

import json
import os
import pty
import signal
import subprocess

import pytest
import yaml

from support import host
from support.daemon import BUILD

pytestmark = pytest.mark.phases("system")

GOOD = "def handler(event, context):\n    print('out')\n    return {'got': event, 'name': context.function_name}\n"


@pytest.fixture
def run(daemon, tmp_path):
    """sandbox-run by its own name, in a separate directory."""
    program = tmp_path / "sandbox-run"
    program.symlink_to(BUILD / "millibox")

    def call(*args, code=GOOD, env=None, socket=daemon.socket):
        (tmp_path / "script.py").write_text(code)
        return subprocess.run([str(program), *args, "--socket", socket], cwd=tmp_path, capture_output=True, text=True,
                              timeout=60, env={**os.environ, "HOME": str(tmp_path), **(env or {})})

    call.folder = tmp_path
    call.program = program
    return call


def test_pretty(run):
    done = run("script.py", "-e", '{"a": 1}', "-c", '{"function_name": "f"}')
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert lines[0] == "Executing: script.py" and lines[1] == "-" * 50 and "Execution successful" in lines[2]
    assert "STDOUT:\nout\n" in done.stdout and '"got": {' in done.stdout and "METRICS" not in done.stdout
    assert not run("script.py", "-q").stdout.startswith("Executing")
    assert "Memory Peak" in run("script.py", "--profile").stdout
    verbose = run("script.py", "-v").stdout
    assert "Exit Code: 0" in verbose and "Result Type: dict" in verbose and "Timestamp" in verbose


def test_json_yaml_and_files(run):
    (run.folder / "event.json").write_text('{"b": 2}')
    done = run("script.py", "-f", "event.json", "--format", "json")
    printed = json.loads(done.stdout)
    assert printed["exit_code"] == 0 and printed["stdout"] == "out\n" and printed["result"]["got"] == {"b": 2}
    assert set(printed["metrics"]) == {"duration_ms", "cpu_time_ms", "memory_peak_mb"}
    assert yaml.safe_load(run("script.py", "--format", "yaml").stdout)["result"]["name"] == "unknown-function"
    done = run("script.py", "--format", "json", "-o", "out.json")
    assert done.stdout == "" and json.loads((run.folder / "out.json").read_text())["exit_code"] == 0


@pytest.mark.parametrize("code, status", [
    (GOOD, 0), ("def handler(event): raise ValueError('x')", 1), ("def handler(event): return object()", 1),
    ("def handler(", 3), ("x = 1", 3), ("import sys\ndef handler(event): sys.exit(42)", 42),
    ("import os, signal\ndef handler(event): os.kill(os.getpid(), signal.SIGKILL)", 137)])
def test_exit_statuses(run, code, status):
    assert run("script.py", code=code).returncode == status


def test_time_outs_missing_files_and_no_daemon(run):
    assert run("script.py", "-t", "1", code="import time\ndef handler(event): time.sleep(30)").returncode == 4
    assert run("script.py", "-e", '{"__timeout": 1}', code="import time\ndef handler(event): time.sleep(30)").returncode == 4
    assert run("missing.py").returncode == 2
    assert run("script.py", "-f", "missing.json").returncode == 2
    assert run("script.py", socket="/nonexistent/socket").returncode == 5


@pytest.mark.parametrize("args", [
    ("script.txt",), ("script.py", "-e", "[]"), ("script.py", "-e", "{"), ("script.py", "-e", "{}", "-f", "x"),
    ("script.py", "--format", "xml"), ("script.py", "--log-level", "EBUG"), ("script.py", "-c", "{}", "--context-file", "x"),
    ("script.py", "-c", "1"), ("script.py", "other.py"), ("script.py", "-c", '{"memory_limit_in_mb": 1}')])
def test_invalid_command_lines(run, args):
    assert run(*args).returncode == 1


def test_version_and_settings_file(run):
    assert run("--version").stdout == "sandbox-run 1.0.0\n"
    (run.folder / ".sandboxrc.json").write_text('{"cli": {"default_format": "json", "default_timeout": 60}}')
    assert json.loads(run("script.py").stdout)["exit_code"] == 0
    (run.folder / ".sandboxrc.json").write_text('{"cli": {"default_format": "json", "default_timeout": 1}}')
    assert run("script.py", code="import time\ndef handler(event): time.sleep(30)").returncode == 4


def test_settings_of_the_box(run):
    """Memory is in KiB; SandboxRunner's 10 processes are raised to the minimum."""
    code = "def handler(event):\n    return len(bytearray(event['size']))\n"
    (run.folder / ".sandboxrc.json").write_text(json.dumps({"sandbox": {
        "allow_network": False, "cpu_quota": 300, "memory_limit": 65536, "max_idle_time": 60, "max_user_progress": 10, "max_task_count": 10}}))
    assert run("script.py", "-e", '{"size": 1000}', code=code).returncode == 0
    killed = run("script.py", "-e", '{"size": 200000000}', code=code)
    assert killed.returncode in (1, 137) and ("MemoryError" in killed.stdout or "memory limit" in killed.stderr), killed
    (run.folder / ".sandboxrc.json").unlink()
    assert run("script.py", "-e", '{"size": 200000000}', code=code).returncode == 0
    (run.folder / ".sandboxrc.json").write_text('{"sandbox": {"allow_network": true}}')
    refused = run("script.py", "-e", '{"size": 1}', code=code)
    assert refused.returncode != 0 and "network" in refused.stderr, refused


def test_settings_are_found_at_home_after_the_working_directory(run, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / ".sandboxrc.json").write_text('{"cli": {"default_format": "json", "show_profile": true}, "logging": {"level": "DEBUG"}}')
    assert json.loads(run("script.py", env={"HOME": str(home)}).stdout)["exit_code"] == 0
    assert "METRICS" in run("script.py", "--format", "pretty", env={"HOME": str(home)}).stdout
    (run.folder / ".sandboxrc.json").write_text('{"cli": {"default_format": "yaml"}}')
    assert run("script.py", env={"HOME": str(home)}).stdout.startswith("exit_code: 0\n")
    (run.folder / ".sandboxrc.json").write_text("[")
    odd = run("script.py", env={"HOME": str(home)})
    assert odd.returncode == 0 and "ignoring .sandboxrc.json" in odd.stderr


def on_terminal(run, *args, env=None):
    """What the program prints to a terminal."""
    parent, child = pty.openpty()
    full = {**os.environ, "HOME": str(run.folder), "TERM": "xterm", **(env or {})}
    with subprocess.Popen([str(run.program), *args], cwd=run.folder, stdout=child, stdin=subprocess.DEVNULL, env=full):
        os.close(child)
        text = b""
        while True:
            try:
                text += os.read(parent, 65536)
            except OSError:
                break
    os.close(parent)
    return text.decode()


def test_colours_are_for_terminals(run, daemon):
    words = ("script.py", "--socket", daemon.socket)
    assert "\033" not in run("script.py").stdout
    green = "\033[32m\u2713 Execution successful\033[0m"
    assert green in on_terminal(run, *words)
    assert "\033" not in on_terminal(run, *words, env={"NO_COLOR": "1"})
    assert "\033" not in on_terminal(run, *words, env={"TERM": "dumb"})
    (run.folder / ".sandboxrc.json").write_text('{"cli": {"enable_colors": false}}')
    assert "\033" not in on_terminal(run, *words)


CONTEXT = """def handler(event, context):
    return {name: getattr(context, name) for name in event["names"]} | {"left": context.get_remaining_time_in_millis()}
"""
CONTEXT_JS = """exports.handler = async (event, context) => {
  const found = {left: context.get_remaining_time_in_millis()};
  for (const name of event.names) found[name] = context[name];
  return found;
};
"""


@pytest.mark.parametrize("name, code", [("script.py", CONTEXT), ("script.js", CONTEXT_JS)], ids=["python", "javascript"])
def test_the_lambda_context(run, name, code):
    given = {"function_name": "f", "function_version": "7", "memory_limit_in_mb": 512, "log_group_name": "/logs", "remaining_time_in_millis": 5000}
    made = ["request_id", "log_stream_name", "invoked_function_arn"]
    event = json.dumps({"names": [n for n in given if n != "remaining_time_in_millis"] + made})
    (run.folder / "context.json").write_text(json.dumps(given))
    (run.folder / name).write_text(code)
    done = run(name, "-e", event, "--context-file", "context.json", "--format", "json", code=code)
    assert done.returncode == 0, done
    result = json.loads(done.stdout)["result"]
    left = given.pop("remaining_time_in_millis")
    assert 0 < result.pop("left") <= left
    assert {n: result.pop(n) for n in given} == given
    assert set(result) == set(made) and all(result.values())


@pytest.mark.parametrize("name, code, status, result", [
    ("a.js", "exports.handler = (event) => ({got: event.a});", 0, {"got": 1}),
    ("a.js", "exports.handler = async (event) => { await null; return event.a + 1; };", 0, 2),
    ("a.js", "module.exports.handler = (event, context) => context.function_name;", 0, "unknown-function"),
    ("a.js", "function handler(event) { return [event.a]; }", 0, [1]),
    ("a.mjs", "export const handler = async (event) => event;", 0, {"a": 1}),
    ("a.cjs", "exports.handler = () => null;", 0, None),
    ("a.js", "exports.handler = () => { throw new Error('no'); };", 1, None),
    ("a.js", "exports.handler = async () => { throw new TypeError('no'); };", 1, None),
    ("a.js", "exports.handler = (", 3, None),
    ("a.js", "const x = 1;", 3, None),
    ("a.js", "exports.handler = () => process.exit(42);", 42, None),
    ("a.js", "exports.handler = () => { for (;;); };", 4, None),
])
def test_javascript_handlers(run, name, code, status, result):
    (run.folder / name).write_text(code)
    done = run(name, "-e", '{"a": 1}', "--format", "json", "-t", "2" if status == 4 else "60")
    assert done.returncode == status, done
    shown = json.loads(done.stdout)
    assert (shown["exit_code"], shown["result"]) == (status, result)


def test_interrupt(run, daemon):
    (run.folder / "script.py").write_text("import time\ndef handler(event): time.sleep(30)")
    process = subprocess.Popen([str(run.program), "script.py", "--socket", daemon.socket], cwd=run.folder,
                               stdout=subprocess.PIPE, text=True, env={**os.environ, "HOME": str(run.folder)})
    host.wait_until(daemon.box_pids, 20, "it runs")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=host.HANG_S) == 130
    process.stdout.close()


@pytest.mark.parametrize("form", ["pretty", "json", "yaml"])
def test_a_time_out_is_named(run, form):
    done = run("script.py", "-t", "1", "--format", form, code="def handler(event):\n    while True: pass")
    assert done.returncode == 4 and "Execution timed out" in done.stdout
    assert "reached its time limit" in done.stderr
    failed = run("script.py", "--format", form, code="def handler(event): 1 / 0")
    assert failed.returncode == 1 and "timed out" not in failed.stdout + failed.stderr


# The examples of its manual.

HELLO = "def handler(event):\n    name = event.get(\"name\", \"World\")\n    return {\"message\": f\"Hello, {name}!\"}\n"
MATH = """def handler(event):
    operation = event.get("operation", "sum")
    numbers = event.get("numbers", [])

    if operation == "sum":
        result = sum(numbers)
    elif operation == "average":
        result = sum(numbers) / len(numbers) if numbers else 0
    else:
        raise ValueError(f"Unknown operation: {operation}")

    return {"operation": operation, "result": result}
"""


@pytest.mark.parametrize("code, event, result", [
    (HELLO, '{"name": "Alice"}', {"message": "Hello, Alice!"}),
    (HELLO, "{}", {"message": "Hello, World!"}),
    (MATH, '{"operation": "average", "numbers": [1, 2, 3, 4, 5]}', {"operation": "average", "result": 3.0}),
    (MATH, '{"operation": "average", "numbers": [0.1, 0.2]}', {"operation": "average", "result": 0.15000000000000002}),
])
def test_examples_of_the_manual(run, code, event, result):
    done = run("script.py", "--event", event, "--format", "json", code=code)
    assert done.returncode == 0 and json.loads(done.stdout)["result"] == result, done
    shown = run("script.py", "--event", event, "--verbose", code=code).stdout
    assert "RESULT:" in shown and "Duration:" in shown and "Memory Peak:" in shown


def test_the_manuals_example_of_an_error(run):
    done = run("script.py", code="def handler(event):\n    raise ValueError(\"This is a test error\")\n")
    assert done.returncode == 1 and "This is a test error" in done.stdout + done.stderr
