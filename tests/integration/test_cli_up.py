# SPDX-License-Identifier: Apache-2.0
"""millibox up, down and status: a daemon for the commands of a user, and what they say about it."""

import json
import pathlib
import signal
import socket
import subprocess
import tempfile

import pytest

from support import host, isolation
from support.daemon import BUILD, is_sanitized
from support.identity import make_key
from support.own_daemon import ours

pytestmark = pytest.mark.phases("system", "user")


class Home:
    """A user's directory and environment; its daemon listens at a socket in it."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.chmod(0o755)
        self.log, self.socket = self.path / "log", self.path / "sock"
        self.env = {
            "PATH": "/usr/bin:/bin", "HOME": path, "MILLIBOX_SOCKET": str(self.socket), "MILLIBOX_RUNTIME_DIR": f"{path}/run",
            "MILLIBOX_STATE_DIR": f"{path}/state", "MILLIBOX_LISTEN": "", "MILLIBOX_POOLS_ENABLED": "false",
            "MILLIBOX_ZYGOTES_ENABLED": "false", **isolation.environment(),
        }  # fmt: skip

    def start(self, *words, **extra):
        return subprocess.Popen([str(BUILD / "millibox"), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env={**self.env, **extra})

    def call(self, *words, **extra):
        """(exit status, output, errors)"""
        process = self.start(*words, **extra)
        out, err = process.communicate(timeout=host.HANG_S)
        return process.returncode, out, err

    def up(self, *words, **extra):
        status, out, err = self.call("up", "-d", "--log", str(self.log), "--json", *words, **extra)
        assert status == 0, (status, out, err, self.log.exists() and self.log.read_text())
        return json.loads(out)

    def status(self):
        status, out, _ = self.call("status", "--json")
        return status, json.loads(out)


@pytest.fixture
def home():
    with tempfile.TemporaryDirectory(prefix="mbxup-") as path:
        made = Home(path)
        yield made
        made.call("down", "--now")
        host.wait_until(lambda: not ours(made.path), host.HANG_S, lambda: f"no process left: {ours(made.path)}")


def test_a_daemon_in_the_background(home):
    assert home.status() == (1, {"running": False, "ready": False, "socket": str(home.socket)})
    assert home.call("status") == (1, "", f"millibox: no daemon listens at {home.socket}; 'millibox up -d' starts one\n")
    shown = home.up()
    assert host.comm(shown["pid"]) == "milliboxd"
    facts = {"running": True, "ready": True, "socket": str(home.socket), "log": str(home.log), "version": home.call("version")[1].split()[1]}
    assert {key: shown[key] for key in facts} == facts and shown["isolation"]["mode"] == isolation.mode()
    assert home.log.stat().st_mode & 0o777 == 0o600 and "listening on" in home.log.read_text()
    # Commands use it, and it outlives them.
    session = home.call("session", "create")[1].strip()
    assert home.call("session", "exec", session, "-c", "6 * 7")[:2] == (0, "42\n")
    status, again = home.status()
    assert status == 0 and again["pid"] == shown["pid"] and again["uptime_seconds"] >= shown["uptime_seconds"]
    text = home.call("status")[1]
    assert [line.split()[0] for line in text.splitlines() if not line.startswith("missing")] == \
        ["daemon", "socket", "pid", "version", "isolation", "since", "log"], text
    assert home.call("down")[0] == 0
    assert not home.socket.exists() and not host.is_alive(shown["pid"]) and home.status()[0] == 1
    # There is nothing left to do.
    assert home.call("down") == (0, "", f"millibox: no daemon listens at {home.socket}\n")


def test_it_does_not_start_twice(home):
    shown = home.up()
    # The same is asked for: fine. Something else is.
    status, out, err = home.call("up", "-d", "--json")
    assert status == 0 and json.loads(out)["pid"] == shown["pid"] and "runs already" in err
    for words in (["-d", "--isolation", "best-effort"], ["-d", "--listen", "127.0.0.1:0"], []):
        status, out, err = home.call("up", *words)
        assert (status, out) == (125, "") and "listens at" in err and "millibox down" in err
    assert home.status()[1]["pid"] == shown["pid"]


def test_a_daemon_that_listens_has_its_own_isolation(home):
    assert home.call("up", "-d", "--isolation", "best-effort")[0] == 0
    for words in ([], ["--isolation", "best-effort"]):
        assert home.call("run", *words, "-c", "print(1)")[:2] == (0, "1\n")
    status, out, err = home.call("run", "--isolation", "strict", "-c", "print(1)")
    assert (status, out) == (125, "") and "the daemon that listens has best-effort, not strict" in err


def test_a_daemon_in_the_foreground(home):
    process = home.start("up")
    lines = iter(process.stderr.readline, "")
    assert any("listening on" in line for line in lines)
    # Ready: the socket accepts before, but nothing is between this process and the daemon.
    assert host.comm(process.pid) == "milliboxd"
    host.wait_until(lambda: home.status()[0] == 0, host.HANG_S, "ready")
    assert home.status()[1]["log"] is None, "its standard error is a pipe"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=host.HANG_S)
    assert process.returncode == 0


@pytest.mark.parametrize("words", [["--log", "x"], ["--json"]])
def test_options_of_the_background_need_it(home, words):
    status, out, err = home.call("up", *words)
    assert (status, out) == (2, "") and "require --detach" in err


def test_its_settings_are_those_of_file_and_options(home):
    home.path.joinpath("m.yaml").write_text(f"socket: {home.path}/other\nlimits: {{timeout: 7s}}\n")
    del home.env["MILLIBOX_SOCKET"]
    if not host.is_root():
        home.env["XDG_RUNTIME_DIR"] = f"{home.path}/xdg"
    status, out, err = home.call("up", "-d", "--json", "--log", str(home.log), "--config", str(home.path / "m.yaml"))
    assert status == 0 and json.loads(out)["socket"] == f"{home.path}/other", (out, err)
    # Commands do not find it by themselves.
    assert f"export MILLIBOX_SOCKET={home.path}/other" in err
    home.env["MILLIBOX_SOCKET"] = f"{home.path}/other"
    asked = json.loads(home.call("policy", "explain", "--json")[1])
    assert asked["grants"]["limits"]["timeout"]["granted"] == 7


def test_a_relative_log_is_in_the_working_directory(home):
    done = subprocess.run([str(BUILD / "millibox"), "up", "-d", "--json", "--log", "a.log"], cwd=home.path, env=home.env,
                          capture_output=True, text=True, timeout=host.HANG_S)
    assert json.loads(done.stdout)["log"] == f"{home.path}/a.log"


@pytest.mark.phases("user")
def test_a_users_log_is_in_the_state_directory(home):
    status, out, err = home.call("up", "-d", "--json")
    assert status == 0 and json.loads(out)["log"] == f"{home.path}/state/milliboxd.log", err


def test_a_wrong_setting_is_named(home):
    status, out, err = home.call("up", "-d", "--log", str(home.log), MILLIBOX_LIMITS_MEMORY="lots")
    assert (status, out) == (2, "") and "limits.memory" in err.lower().replace("_", ".")
    status, out, err = home.call("up", "-d", "--isolation", "perhaps")
    assert (status, out) == (2, "") and "isolation" in err
    status, out, err = home.call("up", "--config", "/nonexistent/m.yaml")
    assert (status, out) == (2, "") and "/nonexistent/m.yaml" in err


def test_a_daemon_that_does_not_start_shows_its_log(home):
    home.log.write_text("of an earlier one\n")
    status, out, err = home.call("up", "-d", "--log", str(home.log), MILLIBOX_ENGINE_PATH="/bin/false")
    assert (status, out) == (125, "") and "run 'millibox doctor'" in err and "milliboxd did not start" in err
    assert "start the engine /bin/false" in err and "earlier" not in err
    assert home.log.read_text().startswith("of an earlier one\n")


@pytest.mark.phases("user")
def test_an_ordinary_user_reads_the_remedy_in_the_last_line(home):
    """Strict is the default, and such a user lacks layers. What the last line says, works."""
    home.env.pop("MILLIBOX_ISOLATION", None)
    status, out, err = home.call("up", "-d", "--log", str(home.log))
    last = err.splitlines()[-1]
    assert (status, out) == (125, "") and "--isolation best-effort" in last and "MILLIBOX_ISOLATION=best-effort" in last, err
    assert home.up("--isolation", "best-effort")["isolation"]["mode"] == "best-effort"


def test_a_log_behind_a_link_is_not_written(home):
    (home.path / "target").write_text("")
    home.log.symlink_to(home.path / "target")
    status, _, err = home.call("up", "-d", "--log", str(home.log))
    assert status == 125 and str(home.log) in err and not (home.path / "target").read_text()


def test_an_interrupted_start_leaves_nothing(home):
    engine = home.path / "engine"
    engine.write_text(f"#!/bin/sh\ntouch {home.path}/started\nexec sleep 1000\n")
    engine.chmod(0o755)
    process = home.start("up", "-d", "--log", str(home.log), MILLIBOX_ENGINE_PATH=str(engine))
    host.wait_until((home.path / "started").exists, host.HANG_S, "the engine was started")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=host.HANG_S)[0] == "" and process.returncode == 130


SLEEP = ["-l", "shell", "-c", "echo up; sleep 600"]


def test_down_lets_executions_end_and_now_kills_them(home):
    home.up()
    running = home.start("run", *SLEEP)
    assert running.stdout.readline() == "up\n"
    patient = home.start("down")
    assert "'millibox down --now' kills them" in patient.stderr.readline()
    assert running.poll() is None
    patient.send_signal(signal.SIGINT)
    patient.communicate(timeout=host.HANG_S)
    assert patient.returncode == 130, "Ctrl-C ends the wait only"
    assert home.call("down", "--now")[0] == 0
    running.communicate(timeout=host.HANG_S)
    assert running.returncode == 125


def test_down_ends_nothing_else(home):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(home.socket))
        other.listen()
        status, out, err = home.call("down")
    assert (status, out) == (2, "") and "is not milliboxd" in err
    home.socket.unlink()
    status, _, err = home.call("down", MILLIBOX_SOCKET="", MILLIBOX_URL="http://127.0.0.1:1")
    assert status == 2 and "names no process" in err


def test_only_the_operator_sees_the_log(make_daemon):
    daemon = make_daemon().start()
    with daemon.client() as client:
        assert client.get("/api/v1/daemon").json["log"] == str(daemon.log_path)
        key = make_key(client, "default", scopes=["read"])
        answer = client.get("/api/v1/daemon", headers={"Authorization": f"Bearer {key}"}).json
    assert answer["log"] is None and answer["isolation"]["mode"] == isolation.mode()
    assert ("missing" in answer["isolation"]) and answer["ready"] is True


# Commands without a daemon


@pytest.fixture
def alone(home):
    """No daemon listens at the default socket, and none is named."""
    if pathlib.Path("/run/millibox/millibox.sock").exists():
        pytest.skip("a daemon may listen at the default socket")
    for name in ("MILLIBOX_SOCKET", "MILLIBOX_LISTEN", "MILLIBOX_STATE_DIR"):
        del home.env[name]
    (home.path / "tmp").mkdir()
    home.env |= {"TMPDIR": f"{home.path}/tmp", "XDG_RUNTIME_DIR": str(home.path)}
    yield home
    assert not list((home.path / "tmp").iterdir())


def test_a_command_without_lasting_effect_starts_its_own(alone):
    assert '"python"' in alone.call("languages", "--json")[1]
    assert "GRANTED" in alone.call("policy", "explain")[1]
    (alone.path / "dir").mkdir()
    status, out, err = alone.call("run", "--dir", str(alone.path / "dir"), "--diff", "-c", "open('new', 'w')")
    assert status == 0 and "new" in out, (out, err)
    process = subprocess.run([str(BUILD / "millibox"), "repl", "--language", "shell"], input="echo $((6 * 7))\n", text=True,
                             capture_output=True, env=alone.env, timeout=host.HANG_S)
    assert process.returncode == 0 and "42" in process.stdout, process


@pytest.mark.parametrize("words", [["session", "create"], ["session", "list"], ["repl", "sess_0000000000000000"], ["top", "-n", "1"],
                                   ["template", "list"], ["package", "list"], ["execution", "list", "sess_0000000000000000"]])
def test_a_command_with_lasting_effect_asks_for_a_daemon(alone, words):
    status, out, err = alone.call(*words)
    assert (status, out) == (125, "") and "start one with 'millibox up -d'" in err


@pytest.mark.skipif(is_sanitized(), reason="reports of a daemon that is killed in its start are lost")
def test_an_interrupted_start_of_its_own_is_no_error(alone):
    engine = alone.path / "engine"
    engine.write_text(f"#!/bin/sh\ntouch {alone.path}/started\nexec sleep 1000\n")
    engine.chmod(0o755)
    for words in (["repl"], ["run", "-c", "1"], ["run", "--dir", str(alone.path), "-c", "1"], ["mcp"]):
        (alone.path / "started").unlink(missing_ok=True)
        process = alone.start(*words, MILLIBOX_ENGINE_PATH=str(engine))
        host.wait_until((alone.path / "started").exists, host.HANG_S, "the engine was started")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=host.HANG_S) == ("", "") and process.returncode == 130, words
