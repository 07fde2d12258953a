# SPDX-License-Identifier: Apache-2.0
"""sandbox-run, compatible with SandboxRunner: flags, formats, exit statuses."""

import json
import os
import signal
import subprocess

import pytest
import yaml

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
    ("script.py", "--format", "xml"), ("script.py", "other.py"), ("script.py", "-c", '{"memory_limit_in_mb": 1}')])
def test_invalid_command_lines(run, args):
    assert run(*args).returncode == 1


def test_version_and_settings_file(run):
    assert run("--version").stdout == "sandbox-run 1.0.0\n"
    (run.folder / ".sandboxrc.json").write_text('{"cli": {"default_format": "json", "default_timeout": 1}}')
    assert json.loads(run("script.py").stdout)["exit_code"] == 0
    assert run("script.py", code="import time\ndef handler(event): time.sleep(30)").returncode == 4


def test_interrupt(run, daemon):
    (run.folder / "script.py").write_text("import time\ndef handler(event): time.sleep(30)")
    (run.folder / "fifo").touch()
    process = subprocess.Popen([str(run.program), "script.py", "--socket", daemon.socket], cwd=run.folder,
                               stdout=subprocess.PIPE, text=True, env={**os.environ, "HOME": str(run.folder)})
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    process.stdout.close()


@pytest.mark.parametrize("form", ["pretty", "json", "yaml"])
def test_a_time_out_is_named(run, form):
    done = run("script.py", "-t", "1", "--format", form, code="def handler(event):\n    while True: pass")
    assert done.returncode == 4 and "Execution timed out" in done.stdout
    assert "reached its time limit" in done.stderr
    failed = run("script.py", "--format", form, code="def handler(event): 1 / 0")
    assert failed.returncode == 1 and "timed out" not in failed.stdout + failed.stderr
