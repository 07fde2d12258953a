# SPDX-License-Identifier: Apache-2.0
"""No sanitizer report goes unread: controls of the fixtures, with any build."""

import subprocess

import pytest

from support import host, sanitizer
from support.daemon import Daemon

pytestmark = pytest.mark.phases("system")

FAULTS = {
    "address": ("int *p = malloc(4); free(p); return *(volatile int *)p;", "AddressSanitizer: heap-use-after-free"),
    "undefined": ("volatile int n = 2147483647; n = n + argc; return n;", "runtime error: signed integer overflow"),
}


def compile_c(folder, body, *options):
    source, program = folder / "it.c", folder / "it"
    source.write_text("#include <stdlib.h>\nint main(int argc, char **argv) { (void)argc; (void)argv; " + body + " }\n")
    subprocess.run(["gcc", *options, "-o", str(program), str(source)], check=True)
    folder.chmod(0o755)
    return program


@pytest.fixture
def watched(monkeypatch):
    """Reports of what these tests start, apart from those that would fail them."""
    for name in sanitizer.OPTIONS:
        monkeypatch.setenv(name, sanitizer.OPTIONS[name])
    monkeypatch.setattr(subprocess.Popen, "__init__", subprocess.Popen.__init__)
    reports = sanitizer.watch()
    yield reports
    reports.remove()


@pytest.mark.parametrize("env", [None, {}, {"PATH": "/usr/bin:/bin"}], ids=["inherited", "none", "own"])
@pytest.mark.parametrize("kind", FAULTS)
def test_a_program_with_unread_stderr_is_reported(kind, env, watched, tmp_path):
    body, said = FAULTS[kind]
    program = compile_c(tmp_path, body, "-g", f"-fsanitize={kind}", f"-fno-sanitize-recover={kind}")
    done = subprocess.run([str(program)], stderr=subprocess.DEVNULL, env=env)
    assert done.returncode == -6  # aborted
    report = watched.take()
    assert said in report and sanitizer.REPORT.search(report)
    assert watched.take() == ""  # reported once


def test_a_program_without_a_fault_reports_nothing(watched, tmp_path):
    program = compile_c(tmp_path, "return 0;", "-fsanitize=address,undefined")
    assert subprocess.run([str(program)], env={}).returncode == 0
    assert watched.take() == ""


def ask_agent(program, said=""):
    """The daemon whose box had this agent; it has ended, after it has logged what is @said."""
    d = Daemon(env={"MILLIBOX_AGENT_PATH": str(program)}).start()
    with d.client() as c:
        answer = c.post("/api/v1/execute", {"language": "shell", "code": "true"})
        assert (answer.status, answer.json["error_code"]) == (503, "Sandbox.AgentLost")
    # The response does not wait for the engine, which reports how the agent ended.
    host.wait_until(lambda: said in d.log(), 10, d.log)
    assert d.stop() == 0
    return d


@pytest.mark.parametrize(("body", "end"), [("return 99;", "status 99"), ("__builtin_trap();", "signal 4")])
def test_a_faulty_agent_fails_the_test_of_its_box(body, end, tmp_path):
    """It has no stderr: its end is in the daemon's log."""
    d = ask_agent(compile_c(tmp_path, body, "-static"), f"the agent ended ({end}")
    with pytest.raises(AssertionError, match=f"the agent ended .{end}"):
        d.remove()


@pytest.mark.parametrize("body", ["return 0;", "return 1;"])
def test_an_agent_that_gives_up_is_not_a_fault(body, tmp_path):
    d = ask_agent(compile_c(tmp_path, body, "-static"))
    d.remove()


@pytest.mark.parametrize(
    "line",
    [
        "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010",
        "../src/core/x.c:12:3: runtime error: null pointer passed as argument 1",
    ],
)
def test_a_sanitizer_report_fails_the_test_of_its_daemon(line):
    """Control of Daemon.remove: also of a daemon that lived on after it."""
    d = Daemon()
    d.log_path.write_text(f"info: listening\n{line}\n    #0 in f\n")
    with pytest.raises(AssertionError) as said:
        d.remove()
    assert line in str(said.value) and "listening" not in str(said.value)
    assert not d.home.exists()
    quiet = Daemon()
    quiet.log_path.write_text("info: an error: at run time\n")
    quiet.remove()
