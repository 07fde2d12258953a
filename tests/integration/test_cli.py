# SPDX-License-Identifier: Apache-2.0
"""The command line against a real daemon: streams, exit statuses, messages."""

import json
import re
import shutil
import signal
import socket
import subprocess

import pytest

from support import host
from support.daemon import BUILD, ROOT

pytestmark = pytest.mark.phases("system")

needs_cgroup = pytest.mark.skipif(
    not host.is_root(), reason="an ordinary user without a delegated cgroup has rlimits only, which nothing counts"
)

def environment(**extra):
    env = {"PATH": "/usr/bin:/bin", "HOME": "/"}
    return {**env, **extra}


def millibox(*args, stdin=b"", env=None):
    """The finished process; stdout and stderr are bytes."""
    return subprocess.run(
        [str(BUILD / "millibox"), *args], input=stdin, capture_output=True, env=env or environment(), timeout=60
    )


@pytest.fixture
def run(daemon):
    def call(*args, **kw):
        return millibox("run", "--socket", daemon.socket, *args, **kw)

    return call


@pytest.fixture
def start(daemon):
    """A run in the background."""
    started = []

    def call(*args, **kw):
        process = subprocess.Popen(
            [str(BUILD / "millibox"), "run", "--socket", daemon.socket, *args],
            env=environment(),
            **{"stdin": subprocess.DEVNULL, **kw},
        )
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait(20 * host.PATIENCE)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


# Exit status and output


@pytest.mark.parametrize("code", [0, 1, 3, 124, 255])
def test_the_exit_status_is_the_programs(run, code):
    done = run("-l", "shell", "-c", f"exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


@pytest.mark.parametrize("signo", [9, 15])
def test_signal_n_is_exit_status_128_plus_n(run, signo):
    done = run("-l", "shell", "-c", f"kill -{signo} $$")
    assert done.returncode == 128 + signo


@pytest.mark.smoke
def test_both_streams_are_copied_unchanged(run):
    done = run("-c", "import sys; print('out \\u00e9\\0.'); print('err', file=sys.stderr, end='')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "out é\0.\n".encode(), b"err")


def test_no_newline_is_added(run):
    assert run("-l", "shell", "-c", "printf abc").stdout == b"abc"


def test_large_output_is_complete(run):
    done = run("--max-output", "4Mi", "-c", "print('0123456789abcdef' * 128 * 1024)")
    assert done.returncode == 0
    assert done.stdout == b"0123456789abcdef" * 128 * 1024 + b"\n"


def test_a_traceback_is_on_stderr(run):
    done = run("-c", "1 / 0")
    assert done.returncode == 1
    assert b"ZeroDivisionError" in done.stderr
    assert done.stdout == b""


def test_the_streams_keep_their_order(start):
    code = "for i in 1 2 3; do echo out$i; sleep 1; echo err$i >&2; sleep 1; done"
    process = start("-l", "shell", "-c", code, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    out, _ = process.communicate(timeout=60)
    assert out.split() == [b"out1", b"err1", b"out2", b"err2", b"out3", b"err3"]


def test_output_arrives_while_the_program_runs(start):
    process = start("-l", "shell", "-c", "echo first; sleep 60", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"first\n"
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(20 * host.PATIENCE) == 130
    assert process.stderr.read() == b""


# Input of the program


@pytest.mark.parametrize("dashes", [[], ["--"]])
def test_arguments_follow_the_program(run, tmp_path, dashes):
    code = "import sys; print(sys.argv[1:])"
    (tmp_path / "a.py").write_text(code)
    arguments = ["a", "--json", "-h", "--", ""]
    expected = b"['a', '--json', '-h', '--', '']\n"
    assert run("-c", code, *dashes, *arguments).stdout == expected
    assert run(str(tmp_path / "a.py"), *dashes, *arguments).stdout == expected
    assert run("-", *dashes, *arguments, stdin=code.encode()).stdout == expected


def test_two_dashes_end_the_options(run, tmp_path, monkeypatch):
    (tmp_path / "-c.py").write_text("import sys; print(sys.argv[1:])")
    assert run("--", str(tmp_path / "-c.py"), "-l").stdout == b"['-l']\n"
    monkeypatch.chdir(tmp_path)
    assert run("--", "-c.py", "--", "x").stdout == b"['--', 'x']\n"


def test_environment_variables(run):
    done = run("-l", "shell", "-e", "A=b=c", "--env", "E=", "-c", 'echo "[$A][$E]"')
    assert done.stdout == b"[b=c][]\n"


def test_the_environment_of_the_client_is_not_passed(run):
    done = run("-l", "shell", "-c", "env", env=environment(SECRET_OF_MINE="x"))
    assert b"SECRET_OF_MINE" not in done.stdout


def test_files_of_any_bytes(run, tmp_path):
    (tmp_path / "raw").write_bytes(bytes(range(256)))
    (tmp_path / "text").write_text("hé\n")
    done = run(
        *("-f", f"raw={tmp_path}/raw", "-f", f"d/text={tmp_path}/text"),
        *("-c", "print(open('raw', 'rb').read() == bytes(range(256)), open('d/text').read() == 'h\\u00e9\\n')"),
    )
    assert done.stdout == b"True True\n", done.stderr
    # A path alone keeps its last name.
    assert run("-f", f"{tmp_path}/text", "-c", "print(len(open('text').read()))").stdout == b"3\n"


SHOW_STDIN = "import sys; print(sys.stdin.buffer.read())"


def test_a_pipe_becomes_the_programs_standard_input(run, tmp_path):
    (tmp_path / "in").write_bytes(b"\xff\0")
    (tmp_path / "show.py").write_text(SHOW_STDIN)
    assert run("-c", SHOW_STDIN, stdin=b"mine\xff\0").stdout == b"b'mine\\xff\\x00'\n"
    assert run(f"{tmp_path}/show.py", stdin=b"mine").stdout == b"b'mine'\n"
    assert run("--stdin", "-", "-c", SHOW_STDIN, stdin=b"mine").stdout == b"b'mine'\n"
    assert run("--stdin", f"{tmp_path}/in", "-c", SHOW_STDIN, stdin=b"mine").stdout == b"b'\\xff\\x00'\n"
    assert run("--stdin", "/dev/null", "-c", SHOW_STDIN, stdin=b"mine").stdout == b"b''\n"


def test_a_redirected_file_becomes_the_programs_standard_input(start, tmp_path):
    (tmp_path / "in").write_bytes(b"of a file")
    with open(tmp_path / "in", "rb") as file:
        process = start("-c", SHOW_STDIN, stdin=file, stdout=subprocess.PIPE)
        assert process.communicate(timeout=60)[0] == b"b'of a file'\n"


def test_a_pipe_that_stays_open_is_reported(start):
    """The program cannot start before the end of its input is known."""
    process = start("-c", SHOW_STDIN, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr.readline() == b"millibox: waiting for the program's standard input, a pipe; '--stdin /dev/null' passes none\n"
    assert process.communicate(b"late", timeout=60) == (b"b'late'\n", b"")


def test_a_socket_is_not_read(start):
    """Some programs start others with a socket as standard input and never close it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = start("-c", SHOW_STDIN, stdin=theirs, stdout=subprocess.PIPE)
        assert process.communicate(timeout=60)[0] == b"b''\n"


def test_binary_output_is_copied_unchanged(run):
    """Each byte value, and a character that is cut by an event."""
    data = bytes(range(256)) * 1024
    copy = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    assert run("-c", copy, stdin=data).stdout == data
    assert run("-l", "shell", "-c", "cat", stdin=data).stdout == data
    done = run("-l", "shell", "-c", r"printf '\303'; sleep 0.2; printf '\251\377'; printf '\303' >&2")
    assert (done.stdout, done.stderr) == (b"\xc3\xa9\xff", b"\xc3")


def test_the_program_may_be_standard_input(run):
    assert run("-", stdin=b"print(6 * 7)").stdout == b"42\n"
    assert run("-", stdin=b"#!/bin/sh\necho $((6 * 7))").stdout == b"42\n"


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("a.py", "print('python')", b"python\n"),
        ("a.sh", "echo ${BASH_VERSION:+shell}", b"shell\n"),
        ("script", "#!/usr/bin/env python3\nprint('python')", b"python\n"),
        ("script", "#!/bin/bash\necho ${BASH_VERSION:+shell}", b"shell\n"),
    ],
)
def test_the_language_comes_from_name_or_first_line(run, tmp_path, name, text, expected):
    (tmp_path / name).write_text(text)
    done = run(str(tmp_path / name))
    assert (done.returncode, done.stdout) == (0, expected)


# Limits


@pytest.mark.parametrize(
    "options, language, code, status, word",
    [
        (["-t", "300ms"], "shell", "sleep 60", 124, b"time limit"),
        pytest.param(["-m", "64Mi"], "python", "x = bytearray(1 << 30)", 137, b"memory limit", marks=needs_cgroup),
        # Only a child is killed: the program continues.
        pytest.param(["-m", "64Mi"], "shell", "python3 -c 'bytearray(1 << 30)'; true", 0, b"memory limit", marks=needs_cgroup),
        pytest.param(
            *(["--processes", "16"], "shell", "for i in $(seq 64); do sleep 9 & done; wait", None, b"process limit"),
            marks=needs_cgroup,
        ),
        (["--disk", "1Mi"], "shell", "head -c 4M /dev/zero > f", 1, b"disk space"),
        (["--max-output", "1Ki"], "shell", "head -c 4096 /dev/zero | tr '\\0' x", 123, b"output was truncated"),
        # Its own status says more.
        (["--max-output", "1Ki"], "shell", "head -c 4096 /dev/zero; exit 7", 7, b"output was truncated"),
    ],
)
def test_the_limit_that_was_reached_is_named(run, options, language, code, status, word):
    done = run(*options, "-l", language, "-c", code)
    messages = [line for line in done.stderr.splitlines() if line.startswith(b"millibox: ")]
    assert len(messages) == 1 and word in messages[0], done.stderr
    if status is not None:
        assert done.returncode == status


def test_output_before_a_time_out_is_kept(run):
    done = run("-t", "3s", "-l", "shell", "-c", "echo before; sleep 60")
    assert (done.returncode, done.stdout) == (124, b"before\n")


# The result as an object


def test_json_prints_the_result_object_alone(run):
    done = run("--json", "-l", "shell", "-c", "echo out; echo err >&2; exit 3")
    result = json.loads(done.stdout)
    assert done.returncode == 3
    assert done.stderr == b""
    assert (result["status"], result["exit_code"]) == ("failed", 3)
    assert (result["stdout"], result["stderr"]) == ("out\n", "err\n")
    assert set(result["isolation"]) == {"engine", "grade", "mode", "missing"} and result["isolation"]["engine"] == "native"


def test_json_of_a_refusal_is_the_error_object(run):
    done = run("--json", "-l", "klingon", "-c", "x")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error_code"].startswith("Sandbox.")


# Failures


@pytest.mark.parametrize(
    "args, message",
    [
        (["-l", "klingon"], "--language: unknown language 'klingon'"),
        (["--memory", "1"], "--memory: must be at least 16Mi"),
        (["--processes", "1"], "--processes: must be at least 16"),
        (["-e", "LD_PRELOAD=x"], "--env: 'LD_PRELOAD'"),
        (["-f", "a/../b=/dev/null"], "--file: 'a/../b'"),
    ],
)
def test_a_value_that_the_daemon_rejects_is_reported_as_an_option(run, args, message):
    done = run(*args, "-c", "x")
    text = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    assert text.startswith(f"millibox: {message}")
    assert text.endswith("Try 'millibox run --help'.\n")
    assert "error_detail" not in text and "{" not in text


@pytest.mark.parametrize(
    "words, stdin, message",
    [
        (["secret", "set", "x"], b"12345678", "--host: must name the hosts"),
        (["secret", "set", "x", "--host", "a.example"], b"", "the value is empty"),
        (["package", "install", "--manager", "foo", "bar"], b"", "--manager: 'foo' is not a package manager; known: pip, npm,"),
        (["run", "--option", "nope=1", "-c", "1"], b"", "--option: nope: is not an option of python"),
        (["run", "-c", "1", "--xyzzy"], b"", "unknown option '--xyzzy'; put '--' before arguments of the program"),
    ],
)
def test_a_refusal_names_the_option_and_what_is_known(daemon, words, stdin, message):
    done = millibox(*words, stdin=stdin, env=environment(MILLIBOX_SOCKET=daemon.socket))
    text = done.stderr.decode()
    assert done.returncode == 2 and text.startswith(f"millibox: {message}"), text
    assert f"Try 'millibox {words[0]}" in text


def test_another_refusal_is_text_and_not_json(run):
    done = run("-", stdin=b"#" * (4 << 20))
    text = done.stderr.decode()
    assert (done.returncode, done.stdout) == (125, b"")
    assert text.startswith("millibox: ")
    assert "What to do: " in text and "Request: " in text
    assert "error_detail" not in text and "{" not in text


def test_json_has_no_more_digits_than_the_api(run):
    text = run("--json", "-c", "1").stdout.decode()
    numbers = re.findall(r'"\w+_ms": ([\d.]+)', text)
    assert numbers and all(re.fullmatch(r"\d+(\.\d{1,3})?", number) for number in numbers), numbers


def test_no_daemon_at_the_given_socket(tmp_path):
    done = millibox("run", "--socket", f"{tmp_path}/none", "-c", "1")
    assert done.returncode == 125
    assert f"{tmp_path}/none".encode() in done.stderr


def test_no_daemon_at_the_given_url(tmp_path):
    done = millibox("run", "--url", "http://127.0.0.1:1", "-c", "1")
    assert done.returncode == 125
    assert done.stderr.startswith(b"millibox: ")


def test_the_environment_selects_the_daemon(daemon):
    by_socket = millibox("run", "-c", "print(1)", env=environment(MILLIBOX_SOCKET=daemon.socket))
    address, port = daemon.tcp_address()
    by_url = millibox("run", "-c", "print(1)", env=environment(MILLIBOX_URL=f"http://{address}:{port}/"))
    assert (by_socket.returncode, by_socket.stdout) == (0, b"1\n"), by_socket.stderr
    assert (by_url.returncode, by_url.stdout) == (0, b"1\n"), by_url.stderr


@pytest.mark.parametrize(
    "args, word",
    [
        ([], b"expected a program"),
        (["-c", "x", "--handler", "a.py"], b"expected one program"),
        (["-c"], b"--code requires a value"),
        (["--timeout", "soon", "-c", "x"], b"'soon' is not a time"),
        (["--timeout", "0", "-c", "x"], b"must be greater than 0"),
        (["--mmeory", "1Gi", "-c", "x"], b"did you mean '--memory'?"),
        (["--image", "x", "-c", "x"], b"did you mean '--template'?"),
        (["-e", "novalue", "-c", "x"], b"is not NAME=VALUE"),
        (["--socket", "/a", "--url", "http://b", "-c", "x"], b"not both"),
        (["--stdin", "-", "-"], b"cannot be both"),
        (["-i", "-c", "x"], b"--interactive needs a terminal"),
        (["-i", "--json", "-c", "x"], b"--interactive cannot be combined with"),
        (["--"], b"expected a program"),
        (["--receipt", "signed", "-c", "x"], b"--receipt requires --json"),
    ],
)
def test_invalid_command_lines(args, word):
    done = millibox("run", *args)
    assert done.returncode == 2
    assert word in done.stderr
    assert b"Try 'millibox run --help'." in done.stderr
    assert done.stdout == b""


def test_what_is_not_granted_is_told(daemon, run):
    done = run("--memory", "64Mi", "--disk", "1Gi", "-c", "print(1)")
    assert done.returncode == 0 and done.stdout == b"1\n"
    assert done.stderr == b"millibox: warning: --disk: 1Gi was requested, 32Mi is granted: files are kept in memory, at most half of resources.memory\n"
    made = millibox("session", "create", "--socket", daemon.socket, "--memory", "64Gi")
    assert made.returncode == 0 and b"warning: --memory: 64Gi was requested, 8Gi is granted" in made.stderr
    assert millibox("session", "delete", "--socket", daemon.socket, made.stdout.decode().strip()).returncode == 0


@pytest.mark.parametrize("words", [("run2",), ("help", "run2")])
def test_an_unknown_command(words):
    done = millibox(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"millibox: unknown command 'run2'; did you mean 'run'?\nTry 'millibox help'.\n"


@pytest.mark.parametrize("program, code, neighbour, hint", [
    ("main.py", "import helper", "helper.py", "helper.py is beside main.py, and not in the box: add '-f {0}/helper.py', or '--dir {0}' for the whole directory"),
    ("main.js", "require('./helper')", "helper.js", "helper.js is beside main.js, and not in the box: add '-f {0}/helper.js', or '--dir {0}' for the whole directory"),
    ("main.mjs", "import './helper.mjs'", "helper.mjs", "helper.mjs is beside main.mjs, and not in the box: add '-f {0}/helper.mjs', or '--dir {0}' for the whole directory"),
])
def test_a_module_beside_the_program(run, tmp_path, program, code, neighbour, hint):
    (tmp_path / program).write_text(code)
    alone = run(str(tmp_path / program))
    assert alone.returncode == 1 and b"in the box" not in alone.stderr, alone
    (tmp_path / neighbour).write_text("")
    done = run(str(tmp_path / program))
    assert done.returncode == 1 and done.stderr.decode().endswith(f"millibox: {hint.format(tmp_path)}\n"), done
    assert run("-f", str(tmp_path / neighbour), str(tmp_path / program)).returncode == 0
    assert b"in the box" not in run("--json", str(tmp_path / program)).stderr


NO_NETWORK = "import socket; socket.create_connection(('192.0.2.1', 80))"


def test_a_program_that_lacks_a_network(daemon, run):
    done = run("-c", NO_NETWORK)
    assert done.returncode == 1 and done.stderr.endswith(b"millibox: the box has no network: '--allow HOST' lets the program reach a host\n"), done
    assert b"--allow" not in run("-c", "raise OSError('refused')").stderr
    assert b"--allow" not in run("--json", "-c", NO_NETWORK).stderr
    session = millibox("session", "create", "--socket", daemon.socket).stdout.decode().strip()
    done = millibox("session", "exec", "--socket", daemon.socket, session, "-c", NO_NETWORK)
    assert done.returncode == 1 and b"'millibox session create --allow HOST'" in done.stderr, done
    assert millibox("session", "delete", "--socket", daemon.socket, session).returncode == 0


def test_hosts_that_cannot_be_named(run):
    """A URL, an address: each says what is wrong with it."""
    done = run("--allow", "https://example.org/a", "-c", "1")
    assert done.returncode == 2 and b"leave out the scheme" in done.stderr, done
    done = run("--allow", "10.0.0.1", "-c", "1")
    assert done.returncode == 125 and b"may not name the address '10.0.0.1'" in done.stderr, done
    assert b"adds this rule to network.request of a policy" in done.stderr and b"MILLIBOX_POLICY_DEFAULT" not in done.stderr
    assert b"MILLIBOX_POLICY_DEFAULT=owner" in run("--allow", "example.org", "-c", "1").stderr


def test_a_directory_is_no_program(run, tmp_path):
    done = run(f"{tmp_path}/")
    assert done.returncode == 125 and b"Is a directory; to run a file of it beside all others: 'millibox run --dir DIR DIR/FILE'" in done.stderr, done
    done = run("--dir", str(tmp_path), str(tmp_path))
    assert done.returncode == 125 and b"Is a directory; name a file of it\n" in done.stderr, done


def test_a_missing_file(run):
    done = run("/nonexistent.py")
    assert done.returncode == 125
    assert b"/nonexistent.py: No such file" in done.stderr
    assert b"use -c to pass code" in done.stderr


@pytest.mark.parametrize("where", [("--socket", "/nonexistent/sock"), ("--url", "http://127.0.0.1:1")])
@pytest.mark.parametrize("command", [("run", "-c", "1"), ("session", "list"), ("file", "get", "sess-1", "x", "-")])
def test_an_unreachable_daemon_is_reported_with_a_remedy(command, where):
    done = millibox(*command, *where)
    assert done.returncode == 125
    assert b"cannot connect to " + where[1].encode() in done.stderr
    assert b"start milliboxd there, or omit --socket and --url, and MILLIBOX_SOCKET" in done.stderr


def test_a_missing_template(run):
    done = run("--template", "nope", "-c", "1")
    assert done.returncode == 2
    assert b"no template has the id 'nope'" in done.stderr and b"'millibox template list'" in done.stderr


# Interruption


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_the_run(daemon, start, signo):
    process = start("-l", "shell", "-c", "echo up; sleep 60", stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    assert daemon.box_pids()
    process.send_signal(signo)
    assert process.wait(20 * host.PATIENCE) == 128 + signo
    daemon.settle()


def test_a_closed_reader_cancels_the_run(daemon, start):
    process = start("-l", "shell", "-c", "while echo line; do sleep 0.01; done", stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"line\n"
    process.stdout.close()
    assert process.wait(20 * host.PATIENCE) == 128 + signal.SIGPIPE
    daemon.settle()


def test_a_signal_interrupts_a_write_to_a_stuck_reader(daemon, start):
    process = start("--max-output", "16Mi", "-c", "print('x' * 8000000)", stdout=subprocess.PIPE)
    assert process.stdout.read(1) == b"x"
    process.send_signal(signal.SIGINT)
    assert process.wait(20 * host.PATIENCE) == 130
    daemon.settle()


def test_kill_9_of_the_client_ends_the_box(daemon, start):
    process = start("-l", "shell", "-c", "echo up; sleep 60", stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    process.kill()
    process.wait(20 * host.PATIENCE)
    daemon.settle()


# doctor and box plan


@pytest.mark.phases("system", "user")
def test_doctor_has_a_remedy_for_each_missing_check(daemon):
    done = millibox("doctor", "--json", "--socket", daemon.socket)
    report = json.loads(done.stdout)
    checks = {check["name"]: check for check in report["checks"]}
    assert done.returncode == (0 if report["strict"] else 1)
    assert checks["daemon"]["value"] == f"ready at {daemon.socket}"
    assert checks["languages"]["state"] == "ok"
    assert {"python", "shell"} <= {word.split()[0] for word in checks["languages"]["value"].split(", ")}
    for check in report["checks"]:
        assert check["state"] in ("ok", "missing", "info")
        if check["state"] == "missing":
            assert check["loss"] and check["remedy"], check


@pytest.mark.phases("system", "user")
def test_doctor_agrees_with_the_daemon(daemon, client):
    """A daemon has the layers that the doctor reports."""
    report = json.loads(millibox("doctor", "--json").stdout)
    receipt = client.shell("true")["isolation"]
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert report["best_effort"] and receipt["mode"] == ("strict" if report["strict"] else "best-effort")
    for layer in receipt["missing"]:
        assert states.get(layer) != "ok", layer


@pytest.mark.phases("system", "user")
def test_doctor_on_a_host_without_user_namespaces(tmp_path):
    """Negative control: on such a host the doctor reports not strict, and no daemon starts."""
    deny = ["unshare", "--user", "--map-root-user", "sh", "-c"]
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@"'
    doctor = subprocess.run(
        [*deny, script, str(BUILD / "millibox"), "doctor", "--json"], capture_output=True, env=environment(), timeout=60
    )
    flags = ["--listen", "", "--socket", f"{tmp_path}/sock", "--state-dir", f"{tmp_path}/state"]
    daemon = subprocess.run(
        [*deny, script, str(BUILD / "milliboxd"), *flags],
        capture_output=True,
        env=environment(MILLIBOX_RUNTIME_DIR=f"{tmp_path}/run"),
        timeout=60,
    )
    report = json.loads(doctor.stdout)
    (user,) = [check for check in report["checks"] if check["name"] == "user"]
    assert (doctor.returncode, report["strict"], user["state"]) == (1, False, "missing")
    assert "max_user_namespaces" in user["remedy"]
    assert all(check.get("remedy") for check in report["checks"] if check["state"] == "missing")
    assert daemon.returncode not in (0, -signal.SIGTERM)
    assert b"cannot start" in daemon.stderr


@pytest.mark.phases("system", "user")
def test_doctor_as_text():
    done = millibox("doctor")
    text = done.stdout.decode()
    assert re.search(r"^(ok|info) +kernel ", text, re.M), text
    assert "layer" in text.splitlines()[-1]


@pytest.mark.phases("system", "user")
def test_doctor_distinguishes_optional_from_missing():
    text = millibox("doctor").stdout.decode()
    report = json.loads(millibox("doctor", "--json").stdout)
    optional = [check["name"] for check in report["checks"] if check.get("optional")]
    assert re.findall(r"^optional +(\S+)", text, re.M) == optional
    if report["strict"] and optional:
        assert f"{len(optional)} optional layer" in text.splitlines()[-1]


@pytest.mark.parametrize("command", [["doctor"], ["box", "plan"]])
def test_the_engine_path_can_be_set(command):
    done = millibox(*command, env=environment(MILLIBOX_ENGINE_PATH="/nonexistent/engine"))
    assert done.returncode == 125
    assert b"/nonexistent/engine" in done.stderr


def test_plan_prints_the_steps_in_order():
    done = millibox("box", "plan", "--memory", "64Mi", "--processes", "20")
    text = done.stdout.decode()
    steps = json.loads(millibox("box", "plan", "--memory", "64Mi", "--processes", "20", "--json").stdout)
    assert done.returncode == 0, done.stderr
    assert "64Mi" in text and "20 processes" in text
    names = [step["name"] for step in steps]
    assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))
    assert all(step["what"] for step in steps)
    order = [names.index(name) for name in ("cgroup-limit", "clone", "idmap", "pivot", "caps", "exec")]
    assert order == sorted(order)
    assert re.findall(r"^ *\d+\. (\S+)", text, re.M) == names


@pytest.mark.parametrize(
    "option, value, least", [("--memory", "1", "16Mi"), ("--disk", "1", "1Mi"), ("--cpu", "0.009", "0.01"), ("--processes", "15", "16")]
)
def test_plan_rejects_what_a_run_rejects(run, option, value, least):
    done = millibox("box", "plan", option, value)
    assert done.returncode == 2
    assert f"{option}: must be at least {least}".encode() in done.stderr
    assert f"{option}: must be at least {least}".encode() in run(option, value, "-c", "1").stderr
    assert millibox("box", "plan", option, least).returncode == 0


def test_plan_rejects_what_the_engine_rejects():
    done = millibox("box", "plan", "--processes", "4194305")
    assert done.returncode == 125
    assert done.stderr


@pytest.mark.parametrize("words", [["box", "--help"], ["box", "-h"], ["help", "box"]])
def test_help_of_a_group_is_that_of_its_commands(words):
    done = millibox(*words)
    assert done.returncode == 0
    assert done.stdout == millibox("help", "box", "plan").stdout


# Help


def test_version():
    assert re.fullmatch(rb"millibox \d+\.\d+\.\d+\n", millibox("version").stdout)
    assert millibox("--version").stdout == millibox("version").stdout


@pytest.mark.parametrize("word, hint", [("rn", b"'run'"), ("docter", b"'doctor'"), ("box", b"expected one of: plan")])
def test_unknown_commands_get_a_suggestion(word, hint):
    done = millibox(word)
    assert done.returncode == 2
    assert hint in done.stderr


@pytest.mark.parametrize(
    "words, expected",
    [
        (["millibox", "do"], ["down", "doctor"]),
        (["millibox", "run", "--mem"], ["--memory"]),
        (["millibox", "box", ""], ["plan"]),
        (["millibox", "ses"], ["session"]),
        (["millibox", "session", "re"], ["resume"]),
        (["millibox", "session", "create", "--life"], ["--lifetime"]),
        (["millibox", "file", "m"], ["mkdir", "mv"]),
        (["millibox", "file", "put", "--t"], ["--tar"]),
        (["millibox", "box", "plan", "--js"], ["--json"]),
        (["millibox", "version", "--"], ["--json", "--help"]),
    ],
)
def test_the_completion_script_completes(words, expected):
    script = millibox("completion", "bash").stdout.decode()
    line = " ".join(f"'{word}'" for word in words)
    script += f'COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _millibox; printf "%s\\n" "${{COMPREPLY[@]}}"'
    env = environment(PATH=f"{BUILD}:/usr/bin:/bin", MILLIBOX_SOCKET="/nonexistent")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.split() == expected, done.stderr


def words(daemon, *line):
    done = millibox("completion", "words", *line, env=environment(MILLIBOX_SOCKET=daemon.socket))
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().split()


def test_ids_and_templates_are_completed(daemon, client):
    session = client.post("/api/v1/sessions", {"mode": "ephemeral"}).json["session_id"]
    assert session in words(daemon, "session", "show", "")
    assert session in words(daemon, "file", "get", "")
    assert session in words(daemon, "stats", "a", "b", "")
    assert words(daemon, "file", "get", session, "") == []
    assert "python-basic" in words(daemon, "run", "--template", "")
    assert "python-basic" in words(daemon, "template", "show", "")
    assert {"python", "shell", "javascript"} <= set(words(daemon, "run", "-l", ""))
    # The daemon on the line is asked.
    assert words(daemon, "session", "show", "--socket", "/nonexistent", "") == []
    assert client.request("DELETE", f"/api/v1/sessions/{session}").status in (200, 204)


@pytest.mark.parametrize("shell, check", [("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])])
def test_there_is_a_completion_script_for_each_shell(shell, check, tmp_path):
    script = millibox("completion", shell).stdout
    assert b"completion words" in script
    if shutil.which(check[0]):
        (tmp_path / "script").write_bytes(script)
        assert subprocess.run([*check, str(tmp_path / "script")], capture_output=True, timeout=60).returncode == 0
    assert millibox("completion", "csh").returncode == 2


def test_a_full_disk_is_not_success():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [str(BUILD / "millibox"), "help"], stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60
        )
    assert done.returncode == 125
    assert b"No space left" in done.stderr


# The manual pages of the daemon and the engine match the programs (that of the client is made from its tables)


def page(name):
    return (ROOT / "docs" / "man" / f"{name}.scd").read_text()


def output_of(name, flag):
    return subprocess.run(
        [str(BUILD / name), flag], capture_output=True, text=True, env=environment(), timeout=60, check=True
    ).stdout


@pytest.mark.parametrize("program", ["milliboxd", "millibox-engine"])
def test_the_manual_has_every_option(program):
    options = set(re.findall(r"^ +(--[a-z][a-z-]*)", output_of(program, "--help"), re.M))
    lines = re.findall(r"^(\*--.*)$", page(f"{program}.8"), re.M)
    entries = {option for line in lines for option in re.findall(r"\*(--[a-z-]+)\*", line)}
    assert len(options) > 5
    assert options == entries


def test_the_manual_has_every_setting():
    keys, group = set(), ""
    for line in output_of("milliboxd", "--dump-config").splitlines():
        if match := re.match(r"([a-z_]+):\s*$", line):
            group = match[1] + "."
        elif match := re.match(r"(\s*)([a-z_]+): ", line):
            keys.add((group if match[1] else "") + match[2])
    entries = set(re.findall(r"^\*([a-z_.]+)\*$", page("millibox.yaml.5"), re.M))
    assert keys == entries


#: A program that fails, and what must name its file.
FAILING = {"deep.py": ("import sys\nprint(sys.argv[0])\n1/0\n", 'File "deep.py", line 3'),
           "deep.js": ("console.log(require('path').basename(process.argv[1]))\nthrow new Error('x')\n", "deep.js:2"),
           "deep.ts": ("console.log(process.argv[1]!.split('/').pop())\nthrow new Error('x' as string)\n", "deep.ts:2")}


@pytest.mark.parametrize("name", FAILING)
def test_a_program_has_the_name_of_its_file(daemon, tmp_path, name):
    code, words = FAILING[name]
    (tmp_path / name).write_text(code)
    for options in ([], ["--language", {"py": "python", "js": "javascript", "ts": "typescript"}[name[-2:]]]):
        done = millibox("run", "--socket", daemon.socket, *options, tmp_path / name)
        assert (done.returncode, done.stdout.decode()) == (1, name + "\n"), done
        assert words in done.stderr.decode() and "main." not in done.stderr.decode(), done


@pytest.mark.parametrize("name, code, words", [
    ("hook.py", "def handler(event):\n    return 1 / event['n']\n", 'File "hook.py", line 2'),
    ("hook.js", "exports.handler = (event) => {\n  throw new Error(event.n);\n};\n", "hook.js:2"),
])
def test_a_handler_has_the_name_of_its_file(daemon, tmp_path, name, code, words):
    """Which selects its language, too."""
    (tmp_path / name).write_text(code)
    done = millibox("run", "--socket", daemon.socket, "--event", '{"n": 0}', "--handler", tmp_path / name)
    assert done.returncode == 2, done
    assert words in done.stderr.decode() and "main." not in done.stderr.decode(), done


def test_a_handler_from_standard_input_is_python(daemon):
    done = millibox("run", "--socket", daemon.socket, "--handler", "-", stdin=b"def handler(event): return [6 * 7]")
    assert (done.returncode, done.stdout) == (0, b"[\n  42\n]\n"), done
