# SPDX-License-Identifier: Apache-2.0
"""Sessions on the command line: values, executions, usage."""

import json
import subprocess

import pytest

from support.daemon import BUILD
from test_cli import environment, millibox

pytestmark = pytest.mark.phases("system")


@pytest.fixture
def cli(daemon):
    """A command of one or two words, then its arguments."""

    def call(command, *words, status=0, **kw):
        done = millibox(*command.split(), "--socket", daemon.socket, *words, **kw)
        assert done.returncode == status, done
        return done

    return call


@pytest.fixture
def background(daemon):
    started = []

    def call(command, *words):
        line = [str(BUILD / "millibox"), *command.split(), "--socket", daemon.socket, *words]
        started.append(subprocess.Popen(line, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
        return started[-1]

    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=20)


# session exec


@pytest.mark.parametrize(
    "code, out",
    [
        ("6*7", b"42\n"),
        ("print('a'); 6*7", b"a\n42\n"),
        ("print('a', end=''); 6*7", b"a\n42\n"),
        ("'text'", b"'text'\n"),
        ("x = 1", b""),
        ("None", b""),
    ],
)
def test_the_value_of_an_expression_is_printed(cli, py, code, out):
    done = cli("session exec", py.id, "-c", code)
    assert (done.stdout, done.stderr) == (out, b"")


def test_a_script_prints_only_what_it_prints(cli, py, tmp_path):
    (tmp_path / "a.py").write_text("import sys; sys.stdout.buffer.write(b'\\xff')")
    assert cli("session exec", py.id, f"{tmp_path}/a.py").stdout == b"\xff"


def test_arguments_and_input_are_those_of_run(cli, py):
    code = "import sys; print(sys.argv[1:], sys.stdin.read())"
    assert cli("session exec", py.id, "-c", code, "a", "--json", stdin=b"in").stdout == b"['a', '--json'] in\n"
    assert cli("session exec", "-c", code, py.id, "a", stdin=b"").stdout == b"['a'] \n"


# execution


def test_executions_are_listed_and_shown(cli, py):
    cli("session exec", py.id, "-c", "print('one')")
    cli("session exec", py.id, "-c", "import sys; sys.exit(3)", status=3)
    rows = [line.split() for line in cli("execution list", py.id).stdout.decode().splitlines()]
    assert [row[1:4] for row in rows] == [["STATUS", "EXIT", "LANGUAGE"], ["failed", "3", "python"], ["success", "0", "python"]]
    assert cli("execution list", "--status", "failed", py.id).stdout.decode().splitlines()[1].split()[0] == rows[1][0]
    shown = dict(line.split(maxsplit=1) for line in cli("execution show", rows[1][0]).stdout.decode().splitlines())
    assert (shown["status"], shown["exit_code"], shown["session_id"]) == ("failed", "3", py.id)
    assert json.loads(cli("execution show", "--json", rows[2][0]).stdout)["stdout"] == "one\n"


def test_logs_are_the_output_so_far(cli, background, py):
    process = background("session exec", py.id, "-c", "import sys; print('up', flush=True); import time; time.sleep(60)")
    assert process.stdout.readline() == b"up\n"
    execution = cli("execution list", "--status", "running", py.id).stdout.decode().splitlines()[1].split()[0]
    assert cli("execution logs", execution).stdout == b"up\n"
    following = background("execution logs", "--follow", execution)
    assert following.stdout.readline() == b"up\n"
    cli("execution cancel", execution)
    assert following.wait(20) == 0
    assert process.wait(20) == 125
    assert cli("execution logs", execution).stdout == b"up\n"
    # The session continues.
    assert cli("session exec", py.id, "-c", "6*7").stdout == b"42\n"


def test_logs_keep_the_streams_and_all_bytes(cli, py):
    cli("session exec", "-l", "shell", py.id, "-c", r"printf '\377\303'; echo err >&2")
    execution = cli("execution list", py.id).stdout.decode().splitlines()[1].split()[0]
    done = cli("execution logs", execution)
    assert (done.stdout, done.stderr) == (b"\xff\xc3", b"err\n")


def test_a_pending_execution_has_no_log(cli, background, py, client):
    first = background("session exec", py.id, "-c", "print('up', flush=True); import time; time.sleep(60)")
    assert first.stdout.readline() == b"up\n"
    queued = client.post(f"/api/v1/sessions/{py.id}/execute", {"code": "1"}).json["execution_id"]
    assert cli("execution logs", queued).stdout == b""
    cli("execution cancel", queued)
    cli("session interrupt", py.id)
    first.wait(20)


@pytest.mark.parametrize("verb", ["show", "logs", "cancel"])
def test_an_unknown_execution(cli, verb):
    assert b"no execution has this id" in cli(f"execution {verb}", "exec_none", status=125).stderr
    assert b"expected one execution id" in cli(f"execution {verb}", status=2).stderr
    assert b"not a valid execution id" in cli(f"execution {verb}", "../x", status=2).stderr


def test_an_unknown_status_is_an_error_of_the_command_line(cli, py):
    assert b"status" in cli("execution list", "--status", "nope", py.id, status=2).stderr


# stats


def test_stats_of_all_sessions_and_of_one(cli, py, sh):
    rows = [line.split() for line in cli("stats").stdout.decode().splitlines()]
    assert {py.id, sh.id} <= {row[0] for row in rows[1:]}
    assert [line.split()[0] for line in cli("stats", py.id).stdout.decode().splitlines()] == ["SESSION", py.id]
    (stats,) = json.loads(cli("stats", "--json", py.id).stdout)
    assert stats["session_id"] == py.id and stats["memory_mb"] >= 0
    assert b"no session has this id" in cli("stats", "none", status=125).stderr
