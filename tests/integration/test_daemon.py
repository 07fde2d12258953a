# SPDX-License-Identifier: Apache-2.0
"""The daemon from the operator's view: start, settings, stop."""

import os
import pathlib
import shutil
import signal
import subprocess
import threading

import pytest
from support import host, isolation
from support.daemon import BUILD, ROOT, is_sanitized

pytestmark = pytest.mark.phases("system", "user")


def run(*args, env=None):
    return subprocess.run(
        [str(BUILD / "milliboxd"), *args], capture_output=True, text=True, timeout=30 * host.PATIENCE,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **isolation.environment(), **(env or {})},
    )  # fmt: skip


def test_help_and_version():
    help_text = run("--help")
    assert help_text.returncode == 0
    for flag in ("--config", "--listen", "--socket", "--state-dir", "--log-level", "--log-format", "--check-config", "--dump-config"):
        assert flag in help_text.stdout
    assert run("--version").stdout.startswith("milliboxd ")


def test_unknown_flag_is_a_usage_error():
    r = run("--frobnicate")
    assert r.returncode == 2 and "--frobnicate" in r.stderr


def test_dumped_config_is_accepted(tmp_path):
    dump = run("--dump-config")
    assert dump.returncode == 0
    path = tmp_path / "c.yaml"
    path.write_text(dump.stdout)
    assert run("--check-config", "--config", str(path)).returncode == 0
    assert run("--dump-config", "--config", str(path)).stdout == dump.stdout


@pytest.mark.parametrize(
    "text,words",
    [
        ("listen: 127.0.0.1:8000\nlimits:\n  timeoutt: 3s\n", ["3", "timeoutt", "timeout"]),
        ("limits:\n  timeout: soon\n", ["2", "timeout"]),
        ("limits:\n  timeout: -1\n", ["2", "timeout"]),
        ("limits: [1, 2]\n", ["limits"]),
        ("limits:\n  timeout: 3s\n  timeout: 4s\n", ["3", "timeout"]),
        ("isolation: perhaps\n", ["1", "isolation", "strict or best-effort"]),
        ("a: [\n", []),
        ("\tx: 1\n", []),
    ],
)
def test_a_config_error_names_its_line(tmp_path, text, words):
    path = tmp_path / "millibox.yaml"
    path.write_text(text)
    r = run("--check-config", "--config", str(path))
    assert r.returncode != 0
    assert str(path) in r.stderr or path.name in r.stderr
    for word in words:
        assert word in r.stderr, r.stderr


def test_an_unknown_user_is_a_wrong_setting(tmp_path):
    path = tmp_path / "millibox.yaml"
    path.write_text("user: nosuchuser\n")
    r = run("--check-config", "--config", str(path))
    assert r.returncode == 3 and "nosuchuser" in r.stderr
    path.write_text("user: nobody\n")
    assert run("--check-config", "--config", str(path)).returncode == 0


def test_the_dumped_log_level_is_accepted(tmp_path):
    dump = run("--dump-config", "--log-level", "error")
    path = tmp_path / "c.yaml"
    path.write_text(dump.stdout)
    assert "log_level: error\n" in dump.stdout
    assert run("--check-config", "--config", str(path)).returncode == 0


def test_missing_config_is_reported():
    r = run("--check-config", "--config", "/nonexistent/x.yaml")
    assert r.returncode != 0 and "/nonexistent/x.yaml" in r.stderr


def test_environment_overrides_the_file(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("limits:\n  timeout: 3s\n")
    r = run("--dump-config", "--config", str(path), env={"MILLIBOX_LIMITS_TIMEOUT": "7s"})
    line = next(l for l in r.stdout.splitlines() if l.strip().startswith("timeout:"))
    assert "7" in line
    r = run("--check-config", env={"MILLIBOX_LIMITS_TIMEOUT": "never"})
    assert r.returncode != 0 and "MILLIBOX_LIMITS_TIMEOUT" in r.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_listening_beyond_loopback_without_keys_is_refused(tmp_path, address):
    r = run("--listen", address, "--socket", "", "--state-dir", str(tmp_path / "s"))
    assert r.returncode != 0
    assert "loopback" in r.stderr
    state = tmp_path / "t"
    checked = run("--check-config", "--listen", address, "--socket", "", "--state-dir", str(state))
    assert checked.returncode == 3 and "loopback" in checked.stderr and not state.exists()
    assert run("--create-key", "--state-dir", str(state)).returncode == 0
    before = sorted((path.name, path.stat().st_mtime_ns) for path in state.iterdir())
    keyed = run("--check-config", "--listen", address, "--socket", "", "--state-dir", str(state))
    assert keyed.returncode == 0, keyed.stderr
    assert sorted((path.name, path.stat().st_mtime_ns) for path in state.iterdir()) == before


def test_port_in_use_is_reported(make_daemon, tmp_path):
    d = make_daemon(tcp=True).start()
    port = d.tcp_address()[1]
    r = run("--listen", f"127.0.0.1:{port}", "--socket", "", "--state-dir", str(tmp_path / "s"), env={"MILLIBOX_RUNTIME_DIR": str(tmp_path / "r")})
    assert r.returncode != 0 and f"127.0.0.1:{port} is in use by another program; choose another with --listen" in r.stderr


@pytest.mark.skipif(not host.is_root(), reason="only root becomes another user")
def test_a_state_directory_out_of_reach_is_reported(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o700)
    r = run("--listen", "127.0.0.1:0", "--socket", "", "--state-dir", str(tmp_path / "closed/state"), env={"MILLIBOX_RUNTIME_DIR": str(tmp_path / "r")})
    assert r.returncode == 4
    assert "the daemon runs as user" in r.stderr and "chmod o+x" in r.stderr and "another --state-dir" in r.stderr


def test_parents_of_the_state_directory_are_made_searchable(make_daemon):
    d = make_daemon()
    state = d.home / "new" / "deep" / "state"
    d.flags += ["--state-dir", str(state)]
    d.start()
    assert state.is_dir()


def test_second_daemon_on_the_same_state_is_refused(make_daemon):
    d = make_daemon().start()
    r = run("--listen", "", "--socket", str(d.home / "sock2"), "--state-dir", str(d.home / "state"), env={"MILLIBOX_RUNTIME_DIR": str(d.home / "run")})
    assert r.returncode == 4
    assert "in use by another daemon, or by the milliboxd-guard of a killed one" in r.stderr
    assert "give this daemon its own --state-dir, --socket and --listen" in r.stderr
    r = run("--listen", "", "--socket", d.socket, "--state-dir", str(d.home / "state2"), env={"MILLIBOX_RUNTIME_DIR": str(d.home / "run")})
    assert r.returncode != 0 and "sock" in r.stderr


def test_two_daemons_run_side_by_side(make_daemon):
    a, b = make_daemon().start(), make_daemon().start()
    with a.client() as ca, b.client() as cb:
        assert ca.shell("echo a")["stdout"] == "a\n"
        assert cb.shell("echo b")["stdout"] == "b\n"


def test_two_daemons_never_share_host_ids(make_daemon):
    if not host.is_root():
        pytest.skip("needs root: only then boxes have host ids of their own")
    daemons = [make_daemon().start(), make_daemon().start()]
    clients, threads = [], []
    for d in daemons:
        clients.append(d.client())
        threads.append(threading.Thread(target=clients[-1].shell, args=("sleep 60",)))
        threads[-1].start()
    seen = []
    for d in daemons:
        pid = host.wait_until(lambda: next((p for p in d.box_pids() if host.comm(p) == "sleep"), None), 10, "sleep runs")
        seen.append(host.ids(pid))
        os.kill(pid, signal.SIGKILL)
    for t in threads:
        t.join()
    for c in clients:
        c.close()
    assert seen[0] != seen[1]
    assert all(uid >= 1879048192 for uid, _ in seen)


def test_sigterm_lets_running_work_end(make_daemon):
    d = make_daemon(config="admission: {drain_timeout: 60s}\n").start()
    got = []

    def work():
        with d.client() as c:
            got.append(c.shell("echo start; sleep 5; echo end"))

    t = threading.Thread(target=work)
    t.start()
    host.wait_until(lambda: any(host.comm(p) == "sleep" for p in d.box_pids()), 10, "running")
    assert d.stop() == 0
    t.join()
    assert got[0]["stdout"] == "start\nend\n"
    assert not os.path.exists(d.socket)


def test_second_sigterm_ends_at_once(make_daemon):
    d = make_daemon(config="admission: {drain_timeout: 600s}\n").start()
    t = threading.Thread(target=lambda: _ignore(lambda: d.client().shell("sleep 100", timeout=100)))
    t.start()
    host.wait_until(lambda: any(host.comm(p) == "sleep" for p in d.box_pids()), 10, "running")
    d.process.send_signal(signal.SIGTERM)
    host.wait_until(lambda: "stopping" in d.log(), 10, "the first is known")  # the kernel merges two pending signals of one kind
    d.process.send_signal(signal.SIGTERM)
    d.process.wait(20 * host.PATIENCE)  # without the second it would wait for the program
    t.join()


def _ignore(fn):
    try:
        fn()
    except Exception:
        pass


def test_daemon_holds_no_privilege(daemon):
    threads = sorted(pathlib.Path(f"/proc/{daemon.pid}/task").iterdir())
    assert len(threads) == 3  # of the loop, the store and the audit log
    for thread in threads:
        lines = (thread / "status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        assert status["CapEff"].strip("0") == "" and status["CapPrm"].strip("0") == ""
        assert status["NoNewPrivs"].strip() == "1"
        assert status["Seccomp"].strip() == "2"
        if host.is_root():
            assert int(status["Uid"].split()[0]) != 0
            assert not status["Groups"].strip()


def test_json_log(make_daemon):
    import json

    d = make_daemon(flags=["--log-format", "json"]).start()
    d.stop()
    for line in d.log().splitlines():
        assert {"level", "msg"} <= set(json.loads(line))


def test_user_code_and_output_are_never_logged(make_daemon):
    d = make_daemon(flags=["--log-level", "debug"]).start()
    with d.client() as c:
        c.python("print('sekrit-out'); import sys; print('sekrit-err', file=sys.stderr)", stdin="sekrit-in", env_vars={"A": "sekrit-env"})
    d.stop()
    assert "sekrit" not in d.log()


def test_daemon_memory_is_flat(make_daemon):
    if is_sanitized():
        pytest.skip("the address sanitizer keeps what was freed")
    d = make_daemon().start()
    with d.client() as c:
        for _ in range(100):
            c.shell("echo warm")
        before = host.rss_kib(d.pid)
        for _ in range(400):
            c.shell("echo steady")
        d.settle()
        assert host.rss_kib(d.pid) <= before * 1.05 + 512


def test_control_a_live_box_counts_as_left_over(daemon):
    """Control of nothing_is_left: it detects a live box."""
    t = threading.Thread(target=lambda: daemon.client().shell("sleep 60"))
    t.start()
    sleeper = host.wait_until(lambda: next((p for p in daemon.box_pids() if host.comm(p) == "sleep"), None), 10, "running")
    if host.is_root():
        assert daemon.groups()
        assert host.strays({daemon.instance()})
    os.kill(sleeper, signal.SIGKILL)
    t.join()


@pytest.mark.skipif(not host.is_root(), reason="others keep their id")
def test_it_runs_from_a_directory_of_root(make_daemon, tmp_path):
    """As from a checkout in root's home: the daemon has another id when it starts its last program."""
    closed = tmp_path / "closed"
    (closed / "build").mkdir(parents=True)
    closed.chmod(0o700)
    for name in ("milliboxd", "millibox-engine", "millibox-agent", "millibox-import", "millibox-egress", "millibox-zygote.so"):
        shutil.copy(BUILD / name, closed / "build" / name)
    for name in ("runners", "data"):
        shutil.copytree(ROOT / name, closed / name)
    d = make_daemon()
    usual = d.command()
    d.command = lambda: [str(closed / "build" / "milliboxd"), *usual[1:]]
    d.start()
    with d.client() as client:
        assert client.python("print(42)")["stdout"] == "42\n"


@pytest.mark.skipif(not host.is_root(), reason="only root can give a program to somebody else")
def test_programs_of_another_user_beside_the_daemon_are_not_used(tmp_path):
    for name in "milliboxd", "millibox-engine", "millibox-agent":
        shutil.copy(BUILD / name, tmp_path / name)

    def start():
        return subprocess.run([tmp_path / "milliboxd", "--dump-config"], capture_output=True, text=True, check=False)

    ours = f'engine_path: "{tmp_path}/millibox-engine"'
    before = start()
    assert ours in before.stdout and "is not used" not in before.stderr
    os.chown(tmp_path / "millibox-engine", 65500, 65500)
    after = start()
    assert ours not in after.stdout
    assert f"{tmp_path}/millibox-engine is not used: its owner is neither this user nor root" in after.stderr
