# SPDX-License-Identifier: Apache-2.0
"""The command line without a daemon: it starts its own and leaves nothing behind."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile

import pytest

from support import host, isolation
from support.daemon import BUILD

pytestmark = pytest.mark.phases("system", "user")


@pytest.fixture
def home():
    """A host without a daemon, and a directory with a path short enough for sockets."""
    if pathlib.Path("/run/millibox/millibox.sock").exists():
        pytest.skip("a daemon may listen at the default socket")
    with tempfile.TemporaryDirectory(prefix="mbxcli-") as path:
        (pathlib.Path(path) / "tmp").mkdir()
        yield pathlib.Path(path)


def environment(home, **extra):
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "XDG_RUNTIME_DIR": str(home),
        "MILLIBOX_RUNTIME_DIR": str(home / "run"),
        **isolation.environment(),
    }
    return {**env, **extra}


@pytest.fixture
def start(home):
    started = []

    def call(*args, **extra):
        process = subprocess.Popen(
            [str(BUILD / "millibox"), "run", *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home, **extra),
        )
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=host.HANG_S)


def ours(home):
    """Names of the processes with this test's directory in their arguments or environment."""
    found = []
    for pid in host.all_pids():
        words = b""
        for name in ("cmdline", "environ"):
            try:
                words += pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                pass
        if str(home).encode() in words and pid != os.getpid():
            found.append(host.comm(pid))
    return sorted(found)


@pytest.fixture
def nothing_stays(home):
    yield
    assert not list((home / "tmp").iterdir())
    assert not ours(home)


def test_a_run_without_a_daemon(home, nothing_stays, start):
    process = start("-c", "print(6 * 7); raise SystemExit(3)")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (3, b"42\n", b"")


def test_languages_without_a_daemon(home, nothing_stays):
    done = subprocess.run([str(BUILD / "millibox"), "languages"], capture_output=True, text=True, timeout=host.HANG_S,
                          env=environment(home, MILLIBOX_RUNNERS_CHECK="false"), stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert re.search(r"^python +Python 3 +yes +3\.", done.stdout, re.M), done.stdout


def test_several_at_the_same_time(home, nothing_stays, start):
    processes = [start("-l", "shell", "-c", f"echo {i}; exit {i}") for i in range(4)]
    ends = [(p.communicate(timeout=60)[0], p.returncode) for p in processes]
    assert ends == [(f"{i}\n".encode(), i) for i in range(4)]


def test_its_settings_come_from_the_environment(home, nothing_stays, start):
    process = start("-l", "shell", "-c", "sleep 60", MILLIBOX_LIMITS_TIMEOUT="200ms")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 124
    assert b"time limit" in err


def test_a_daemon_that_cannot_start_explains_why(home, nothing_stays, start):
    process = start("-c", "1", MILLIBOX_LIMITS_MEMORY="lots")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (125, b"")
    assert b"limits.memory" in err.lower().replace(b"_", b".")
    assert b"milliboxd did not start" in err
    assert b"doctor" not in err, "not a fault of the host"


def test_a_missing_agent_is_not_a_fault_of_the_host(home, nothing_stays, start):
    process = start("-c", "1", MILLIBOX_AGENT_PATH="/nonexistent/agent")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 125
    assert b"/nonexistent/agent" in err and b"doctor" not in err


def test_a_failing_engine_points_to_the_doctor(home, nothing_stays, start):
    process = start("-c", "1", MILLIBOX_ENGINE_PATH="/bin/false")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 125
    assert b"run 'millibox doctor'" in err


def test_the_last_line_names_what_the_host_needs(home, nothing_stays, start, tmp_path):
    """A probe of a host that lacks what every box needs."""
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\n"
                      "[ \"$1\" = --probe ] || exit 1\n"
                      "printf 'user\\tmissing\\trefused\\napparmor_userns\\tmissing\\trestricted\\n'\n")  # fmt: skip
    engine.chmod(0o755)
    process = start("-c", "1", MILLIBOX_ENGINE_PATH=str(engine))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 125
    last = err.decode().splitlines()[-1]
    assert last.startswith("millibox: milliboxd did not start") and "apparmor_restrict_unprivileged_userns=0" in last, last


@pytest.mark.phases("user")
@pytest.mark.parametrize("command", [["run", "-c", "print(1)"], ["mcp"]], ids=lambda words: words[0])
def test_an_ordinary_user_reads_the_remedy_in_the_last_line(home, nothing_stays, command):
    """Strict is the default, and such a user lacks layers. What the last line says, works."""
    env = {name: value for name, value in environment(home).items() if name != "MILLIBOX_ISOLATION"}

    def call(*words, **extra):
        return subprocess.run([str(BUILD / "millibox"), *words], input=b"", capture_output=True, timeout=60, env={**env, **extra})

    refused = call(*command)
    last = refused.stderr.decode().splitlines()[-1]
    assert (refused.returncode, refused.stdout) == (125, b"")
    assert "--isolation best-effort" in last and "MILLIBOX_ISOLATION=best-effort" in last, last
    # A command is offered only where it works: systemd delegates v2 groups.
    delegates = pathlib.Path("/run/systemd/system").exists() and pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
    assert delegates or b"systemd-run" not in refused.stderr, refused.stderr
    assert call(*command[:1], "--isolation", "strict", *command[1:]).returncode == 125
    assert call(*command[:1], "--isolation", "best-effort", *command[1:]).returncode == 0
    assert call(*command, MILLIBOX_ISOLATION="best-effort").returncode == 0
    # The option has precedence.
    assert call(*command[:1], "--isolation", "strict", *command[1:], MILLIBOX_ISOLATION="best-effort").returncode == 125


@pytest.mark.parametrize("command", [["run", "-c", "1"], ["run", "--dir", ".", "-c", "1"], ["mcp"]])
def test_isolation_is_one_of_two_words(home, command):
    done = subprocess.run([str(BUILD / "millibox"), *command[:1], "--isolation", "most", *command[1:]], input=b"", capture_output=True,
                          timeout=60, env=environment(home))  # fmt: skip
    assert done.returncode == 2 and b"'most' is neither strict nor best-effort" in done.stderr, done


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_cleans_up_before_it_exits(home, nothing_stays, start, signo):
    process = start("-l", "shell", "-c", "echo up; sleep 60")
    assert process.stdout.readline() == b"up\n"
    assert list((home / "tmp").iterdir())
    process.send_signal(signo)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signo


def test_a_killed_run_leaves_nothing(home, start):
    process = start("-l", "shell", "-c", "echo up; sleep 60")
    assert process.stdout.readline() == b"up\n"
    # The client, the supervisor, the daemon and the engine run now: a positive control.
    assert ours(home).count("millibox") == 2
    assert {"milliboxd", "millibox-engine"} <= set(ours(home))
    process.kill()
    process.communicate(timeout=60)
    host.wait_until(lambda: not list((home / "tmp").iterdir()), 20, "directory removed")
    host.wait_until(lambda: not ours(home), 20, f"processes gone: {ours(home)}")


def test_its_directory_is_private(home, nothing_stays, start):
    process = start("-l", "shell", "-c", "echo up; sleep 60")
    assert process.stdout.readline() == b"up\n"
    (directory,) = (home / "tmp").iterdir()
    assert directory.stat().st_mode & 0o777 == 0o700
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)


def test_pipes_of_the_caller_are_not_held_open(home, start):
    """The supervisor briefly outlives a killed client; the reader of the client's output must not wait."""
    process = start("-l", "shell", "-c", "echo up; sleep 60")
    assert process.stdout.readline() == b"up\n"
    process.kill()
    assert process.stdout.read() == b""
    process.communicate(timeout=60)
    host.wait_until(lambda: not list((home / "tmp").iterdir()), 20, "directory removed")
    host.wait_until(lambda: not ours(home), 20, "processes gone")


def test_a_long_temporary_directory_is_not_used(home, nothing_stays, start):
    """A socket path is limited in length; /tmp is used instead."""
    long = home / ("x" * 100)
    long.mkdir()
    process = start("-c", "print(1)", TMPDIR=str(long))
    assert process.communicate(timeout=60) == (b"1\n", b"")
    assert not list(long.iterdir())
