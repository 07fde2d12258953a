# SPDX-License-Identifier: Apache-2.0
"""The shell's session.py, driven over its request channel as the agent would, without an agent."""

import os
import pathlib
import time

import pytest

from rig import Session

RUNNER = pathlib.Path(__file__).parents[3] / "runners/shell/session.py"
ENV = {"PATH": "/usr/bin:/bin", "GIVEN": "1"}


@pytest.fixture
def session(tmp_path):
    made = Session(tmp_path, ["/usr/bin/python3", "-I", "-S", "-X", "utf8", RUNNER], ENV)
    yield made
    made.close()


STATE = "x=1; a=(1 'b c'); declare -A m=([k]=v); f() { echo f$x; }; cd /tmp; export E='5 6'; shopt -s extglob; readonly R=2\n"
ASK = 'f; echo "${a[1]} ${m[k]} $PWD $E $R $-"; shopt extglob; sh -c \'echo "$E"\''
SHOWN = "f1\nb c v /tmp 5 6 2 hB\nextglob        \ton\n5 6\n"


def test_state_stays_between_runs(session):
    assert session.run(STATE).code == 0
    done = session.run(ASK)
    assert (done.code, done.out, done.err) == (0, SHOWN, "")


@pytest.mark.parametrize("end, code", [
    ("exit 3", 3), ("exit", 0), ("set -e; false; set +e", 1), ("${nothing:?words}", 1), ("kill -TERM $$; sleep 1", 143),
    ("f2() { exit 9; }; f2 | cat; f2", 9), ("set -u; echo $nothing", 1),
])
def test_state_survives_the_end_of_the_shell(session, end, code):
    session.run(STATE)
    assert session.run(end).code == code
    done = session.run("set +eu\n" + ASK)
    assert (done.code, done.out, done.err) == (0, SHOWN, "")
    assert session.run("exit 5").code == 5 and session.run("echo $x").out == "1\n"


def test_code_runs_as_a_program_would(session):
    done = session.run('echo "$0 $# $1 $2"; read a; read b || echo end; echo "$a"; echo err >&2; return 7', "one", "two\n'3'",
                       stdin=b"typed\n")
    assert (done.code, done.out, done.err) == (7, "bash 2 one two\n'3'\nend\ntyped\n", "err\n")
    assert session.run("echo $#").out == "0\n"


def test_environment_is_the_given_one(session):
    names = {line.split("=")[0] for line in session.run("env").out.splitlines()}
    assert names == {"PATH", "GIVEN", "PWD", "SHLVL", "_"}
    assert session.run("ls /proc/self/fd").out.split() == ["0", "1", "2", "3"]  # the last one is the listing itself


def test_a_syntax_error_is_reported(session):
    done = session.run("echo before\nif (")
    assert done.code == 2 and "syntax error" in done.err
    assert session.run("echo fine").out == "fine\n"


@pytest.mark.parametrize("code", [
    "echo up; sleep 30; echo no", "echo up; while :; do :; done", "echo up; g() { sleep 30; }; g; echo no",
    "echo up; read x </dev/zero", "echo up; sleep 30 | cat; echo no",
])
def test_interrupt_ends_the_run_only(session, code):
    session.run(STATE)
    out, err = session.begin(code)
    assert os.read(out, 3) == b"up\n"
    time.sleep(0.05)
    session.interrupt()
    done = session.finish(out, err)  # which times out before the code would end
    assert done.code == 130 and "no" not in done.out
    assert session.run(ASK).out.startswith("f1\nb c v ")


def bash_of(session):
    return pathlib.Path(f"/proc/{session.process.pid}/task/{session.process.pid}/children").read_text().split()


def test_interrupt_between_runs_is_survived(session):
    session.run(STATE)
    for _ in range(5):
        before = bash_of(session)
        session.interrupt()
        end = time.monotonic() + 20
        while bash_of(session) in ([], before) and time.monotonic() < end:  # until another one has replaced it
            time.sleep(0.005)
        assert session.run("f").out == "f1\n"


def test_background_jobs_stay(session):
    assert session.run("sleep 50 >/dev/null 2>&1 & echo $!").code == 0
    done = session.run("jobs -p | wc -l; kill %1; wait %1; echo $?")
    assert done.out == "1\n143\n"


def test_redirections_of_the_shell_end_with_the_run(session):
    assert session.run("exec >/dev/null; echo no").out == ""
    assert session.run("exec 2>&1 0</dev/null; echo yes; echo too >&2").out == "yes\ntoo\n"
    done = session.run("echo out; echo err >&2; cat", stdin=b"in")
    assert (done.out, done.err) == ("out\nin", "err\n")


def test_shell_that_could_not_save_its_state_ends_the_runner(session):
    session.run("trap 'echo bye' EXIT")
    assert session.run("exit 4") is None and session.process.wait(5) == 4


@pytest.mark.parametrize("code, status", [("kill -KILL $$", -9), ("exec sh -c 'exit 6'", 6)])
def test_a_silent_end_of_the_shell_ends_the_runner(session, code, status):
    assert session.run(code) is None and session.process.wait(5) == status


def test_end_of_the_channel_ends_the_runner(session):
    session.run(":")
    session.channel.close()
    assert session.process.wait(5) == 0


def test_variables_of_a_run_are_set_for_that_run_only(session):
    assert session.run("A=old; echo \"[$A]\"").out == "[old]\n"
    assert session.run("echo \"[$A$B]\"; printenv A", env=["A=it's = new", "B=\n"]).out == "[it's = new\n]\nit's = new\n"
    assert session.run("echo \"[$A${B-unset}]\"; printenv A").out == "[oldunset]\n"
    assert session.run("C=3; unset A; f() { echo f; }", env=["A=1"]).code == 0
    assert session.run("echo $A $C; f").out == "old 3\nf\n"
    # Also if bash exits in between.
    assert session.run("D=4; exit 5", env=["A=1", "Z=1"]).code == 5
    assert session.run("echo $A $D ${Z-unset}").out == "old 4 unset\n"
