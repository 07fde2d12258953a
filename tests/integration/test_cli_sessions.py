# SPDX-License-Identifier: Apache-2.0
"""Sessions on the command line: values, executions, usage."""

import json
import subprocess

import pytest

from support import host
from support.daemon import BUILD
from support.sessions import NAPS
from test_cli import FAILING, environment, millibox

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
        process.communicate(timeout=host.HANG_S)


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


def test_a_module_beside_the_program_of_a_session(cli, py, tmp_path):
    (tmp_path / "a.py").write_text("import helper")
    (tmp_path / "helper.py").write_text("")
    done = cli("session exec", py.id, f"{tmp_path}/a.py", status=1)
    assert done.stderr.decode().endswith(f"millibox: helper.py is beside a.py, and not in the box: add '-f {tmp_path}/helper.py'\n"), done
    assert "millibox cp DIR SESSION:" in cli("session exec", py.id, str(tmp_path), status=125).stderr.decode()


def test_arguments_and_input_are_those_of_run(cli, py, tmp_path):
    code = "import sys; print(sys.argv[1:], sys.stdin.read())"
    assert cli("session exec", py.id, "-c", code, "a", "--json", stdin=b"in").stdout == b"['a', '--json'] in\n"
    assert cli("session exec", "-c", code, py.id, "a", stdin=b"").stdout == b"['a'] \n"
    (tmp_path / "a.py").write_text(code)
    assert cli("session exec", py.id, "--", f"{tmp_path}/a.py", "--json", stdin=b"in").stdout == b"['--json'] in\n"


@pytest.fixture(params=["persistent", "ephemeral"])
def session(cli, request):
    id = cli("session create", "--mode", request.param).stdout.decode().strip()
    yield id
    cli("session delete", id)


@pytest.mark.parametrize("name", FAILING)
def test_a_program_in_a_session_has_the_name_of_its_file(cli, session, tmp_path, name):
    code, words = FAILING[name]
    (tmp_path / name).write_text(code)
    for _ in range(2):
        done = cli("session exec", session, f"{tmp_path}/{name}", status=1)
        said = done.stderr.decode()
        assert done.stdout.decode() == name + "\n", done
        assert words in said and code.splitlines()[-1] in said, done
        assert not any(other in said for other in ("main.", "run1.", "cell")), done


@pytest.mark.parametrize("name, words", [
    ("my file (1).py", 'File "my file (1).py", line 3'),
    ("my file (1).js", "/workspace/my%20file%20%281%29.js:2\nthrow"),
    ("a:b.ts", "/workspace/a%3Ab.ts:2\nthrow"),
    ("a\nb.js", "/workspace/a%0Ab.js:2\nthrow"),
    ("Session.post.js", "/workspace/Session.post.js:2\nthrow"),
    ("node:inspector:1:1.js", "/workspace/node%3Ainspector%3A1%3A1.js:2\nthrow"),
    ("a.d.ts", "/workspace/a.d.ts:2\nthrow"),
])
def test_names_of_programs_with_blanks_and_marks(cli, py, tmp_path, name, words):
    """Node.js writes them so in URLs."""
    (tmp_path / name).write_text(FAILING["deep." + name[-2:]][0])
    for done in (cli("session exec", py.id, tmp_path / name, status=1), cli("run", tmp_path / name, status=1)):
        assert done.stdout.decode() == name + "\n" and words in done.stderr.decode(), done


def test_the_name_of_a_program_is_not_run(cli, py, tmp_path):
    (tmp_path / "a\nb.js").write_text("console.log('ran')\n")
    for command in (("session exec", py.id), ("run",)):
        assert cli(*command, tmp_path / "a\nb.js").stdout == b"ran\n"


def test_code_after_a_file_has_no_name_of_a_file(cli, py, tmp_path):
    (tmp_path / "a.py").write_text("import sys; print(sys.argv[0], __file__)")
    assert cli("session exec", py.id, f"{tmp_path}/a.py").stdout == b"a.py /workspace/a.py\n"
    done = cli("session exec", py.id, "-c", "import sys; print(sys.argv[0], __file__)\n1/0", status=1)
    assert done.stdout == b"main.py /workspace/main.py\n" and b'File "<cell 2>", line 2' in done.stderr, done


def test_tracebacks_show_the_latest_file_of_a_name(cli, py, tmp_path):
    for divisor in ("0", "(1 - 1)"):
        (tmp_path / "a.py").write_text(f"def f():\n    return 1 / {divisor}\nf()\n")
        said = cli("session exec", py.id, f"{tmp_path}/a.py", status=1).stderr.decode()
        assert f"    return 1 / {divisor}\n" in said, said


def test_a_background_run_has_the_name_of_its_file(cli, py, tmp_path):
    (tmp_path / "late.py").write_text("1/0")
    execution = cli("session exec", "--background", py.id, f"{tmp_path}/late.py").stdout.decode().strip()
    assert b'File "late.py", line 1' in cli("execution logs", "--follow", execution).stderr


def test_checked_typescript_has_the_name_of_its_file(cli, session, tmp_path):
    """The compiler gets the code without what the runner reads after it."""
    (tmp_path / "deep.ts").write_text(FAILING["deep.ts"][0])
    done = cli("session exec", "--option", "check=true", session, f"{tmp_path}/deep.ts", status=1)
    assert done.stdout == b"deep.ts\n" and b"deep.ts:2" in done.stderr, done


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
    assert following.wait(20 * host.PATIENCE) == 0
    assert process.wait(20 * host.PATIENCE) == 125
    assert cli("execution logs", execution).stdout == b"up\n"
    # The session continues.
    assert cli("session exec", py.id, "-c", "6*7").stdout == b"42\n"


def test_logs_keep_the_streams_and_all_bytes(cli, py):
    cli("session exec", "-l", "shell", py.id, "-c", r"printf '\377\303'; echo err >&2")
    execution = cli("execution list", py.id).stdout.decode().splitlines()[1].split()[0]
    done = cli("execution logs", execution)
    assert (done.stdout, done.stderr) == (b"\xff\xc3", b"err\n")


def test_a_pending_execution_has_no_log(cli, background, py, client):
    first = background("session exec", py.id, "-c", "print('up', flush=True)\n" + NAPS)
    assert first.stdout.readline() == b"up\n"
    queued = client.post(f"/api/v1/sessions/{py.id}/execute", {"code": "1"}).json["execution_id"]
    assert cli("execution logs", queued).stdout == b""
    cli("execution cancel", queued)
    cli("session interrupt", py.id)
    first.wait(20 * host.PATIENCE)


@pytest.mark.parametrize("verb", ["show", "logs", "cancel"])
def test_an_unknown_execution(cli, verb):
    assert b"no execution has this id" in cli(f"execution {verb}", "exec_none", status=125).stderr
    assert b"expected one execution id" in cli(f"execution {verb}", status=2).stderr
    assert b"not a valid execution id" in cli(f"execution {verb}", "../x", status=2).stderr


def test_the_logs_of_a_session_are_those_of_its_latest_execution(cli, py):
    done = cli("logs", py.id)
    assert done.stdout == b"" and b"has no executions yet" in done.stderr, done
    for word in ("one", "two"):
        cli("session exec", py.id, "-c", f"import sys; print({word!r}); print('err', file=sys.stderr)")
    for command in ("logs", "execution logs"):
        done = cli(command, py.id)
        assert (done.stdout, done.stderr) == (b"two\n", b"err\n"), done
    execution = cli("session exec", "--background", py.id, "-c", "input(); print('late')", stdin=b"x\n").stdout
    assert cli("logs", "--follow", py.id).stdout == b"late\n"
    assert cli("logs", execution.decode().strip()).stdout == b"late\n"


def test_logs_of_what_is_not_there(cli):
    done = cli("logs", "nothing", status=125)
    assert b"no execution has this id" in done.stderr and b"'millibox execution list SESSION'" in done.stderr, done


def test_an_unknown_status_is_an_error_of_the_command_line(cli, py):
    assert b"status" in cli("execution list", "--status", "nope", py.id, status=2).stderr


# session create, session show


@pytest.mark.parametrize("given, meant", [("name", "id"), ("image", "template"), ("ttl", "lifetime")])
def test_words_of_other_programs_are_understood(cli, given, meant):
    for words in ([f"--{given}", "x"], [f"--{given}=x"]):
        assert f"did you mean '--{meant}'?" in cli("session create", *words, status=2).stderr.decode()


def test_a_word_of_an_option_that_a_command_lacks_is_not_suggested(cli):
    assert b"did you mean" not in cli("session list", "--image", "x", status=2).stderr


def lines(out):
    return dict(line.split(maxsplit=1) for line in out.decode().splitlines())


def test_parts_of_a_session_are_shown_as_text(cli):
    id = cli("session create", "--memory", "256Mi", "--disk", "64Mi", "-e", "A=1", "-e", "B=two words").stdout.decode().strip()
    shown = lines(cli("session show", id).stdout)
    assert shown["resources"] == "cpu 1, memory 256Mi, disk 64Mi, max_processes 128" and shown["env_vars"] == "A=1, B=two words", shown
    assert not any(mark in text for text in shown.values() for mark in '{["'), shown
    cli("session delete", id)


def test_a_session_without_variables_shows_none(cli, py):
    assert "env_vars" not in lines(cli("session show", py.id).stdout)


def test_parts_of_an_execution_are_shown_as_text(cli, py):
    execution = py.run("open('a', 'w'); open('b', 'w'); {'k': [1]}")["execution_id"]
    shown = lines(cli("execution show", execution).stdout)
    assert sorted(shown["artifacts"].split(", ")) == ["a", "b"] and "duration_ms " in shown["metrics"], shown
    assert "null" not in shown["metrics"] and shown["result"] == '{"k": [1]}', shown


def test_a_name_of_a_file_is_no_other_line_and_no_other_file(cli, py):
    name = "a, b\nstatus   forged\x1b[2J\u202e"
    execution = py.run(f"open({name!r}, 'w'); open('c', 'w')")["execution_id"]
    shown = lines(cli("execution show", execution).stdout)
    assert shown["status"] == "success", shown
    assert shown["artifacts"] in (r'"a, b\nstatus   forged\u001B[2J?", c', r'c, "a, b\nstatus   forged\u001B[2J?"'), shown


def test_a_value_of_a_variable_is_no_other_variable(cli):
    id = cli("session create", "-e", "A=1, B=2", "-e", "C=x\ny", "-e", 'D="q"').stdout.decode().strip()
    assert lines(cli("session show", id).stdout)["env_vars"] == r'A="1, B=2", C=x y, D="\"q\""'
    cli("session delete", id)


# stats


def test_stats_of_all_sessions_and_of_one(cli, py, sh):
    py.run("1"), sh.run("true")  # both have their boxes
    rows = [line.split() for line in cli("stats").stdout.decode().splitlines()]
    assert {py.id, sh.id} <= {row[0] for row in rows[1:]}
    assert [line.split()[0] for line in cli("stats", py.id).stdout.decode().splitlines()] == ["SESSION", py.id]
    (stats,) = json.loads(cli("stats", "--json", py.id).stdout)
    assert stats["session_id"] == py.id and stats["memory_mb"] >= 0
    missing = cli("stats", "none", status=125)
    assert b"no session has this id" in missing.stderr and missing.stdout == b""


def test_words_of_other_tools_name_the_same_commands(cli):
    session = cli("session create").stdout.decode().strip()
    for listed in ("session ls", "session list"):
        assert session in cli(listed).stdout.decode()
    assert b"python-basic" in cli("template ls").stdout
    cli("session rm", session)


def test_a_run_beside_the_queue_is_counted(cli):
    session = cli("session create").stdout.decode().strip()
    cli("session exec", "--background", session, "-c", NAPS)
    listed = json.loads(cli("session list", "--json").stdout)["sessions"]
    assert [row["background"] for row in listed if row["session_id"] == session] == [1]
    assert json.loads(cli("stats", "--json", session).stdout)[0]["background"] == 1
    assert b"BACKGROUND" in cli("session list").stdout and b"BACKGROUND" in cli("stats").stdout
    cli("session delete", session)
