# SPDX-License-Identifier: Apache-2.0
"""The installed unit, started by systemd itself: tools/test-vm --systemd boots a machine for it. Uses systemctl as an
operator would, and checks from outside: processes, groups, the journal."""

import json
import os
import pathlib
import signal
import subprocess

import pytest
from support import host

pytestmark = [pytest.mark.phases("system"), pytest.mark.systemd]

SLOW = 120  # the machine is emulated
UNIT = "milliboxd.service"
# /etc of the machine is read-only; these two are writable there (tools/test-vm).
ENVIRONMENT = pathlib.Path("/etc/default/milliboxd")
CONFIG = pathlib.Path("/usr/local/etc/millibox/millibox.yaml")
GROUPS = pathlib.Path("/sys/fs/cgroup/millibox")


def run(*words, ok=True):
    done = subprocess.run(words, capture_output=True, text=True, timeout=SLOW)
    assert not ok or done.returncode == 0, (words, done.stdout, done.stderr, journal())
    return done.stdout


def journal():
    return subprocess.run(["journalctl", "-u", UNIT, "-o", "cat", "--no-pager"], capture_output=True, text=True).stdout[-4000:]


def systemctl(*words, **kwargs):
    return run("systemctl", *words, **kwargs)


def show(name):
    return systemctl("show", "-P", name, UNIT).strip()


def millibox(*words, **kwargs):
    return run("/usr/local/bin/millibox", *words, **kwargs)


def is_ready():
    return "ready at" in run("/usr/local/bin/millibox", "doctor", ok=False)


def start(**settings):
    """With settings in the environment file, as an operator sets them. The unit has Type=notify: when systemctl returns,
    the daemon serves."""
    settings = {"MILLIBOX_LIMITS_TIMEOUT": f"{SLOW - 10}s", **settings}
    ENVIRONMENT.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    systemctl("start", UNIT)
    assert is_ready(), journal()


def engines():
    """Without their children, which have the same name until they execute something."""
    named = {pid for pid in host.all_pids() if host.comm(pid).startswith("millibox-engin")}
    return [pid for pid in named if (host.proc_stat(pid) or (0,))[0] not in named]


def ours():
    return [host.comm(pid) for pid in host.all_pids() if host.comm(pid).startswith("millibox")]


def wait_until_nothing_is_left():
    host.wait_until(lambda: not ours(), SLOW, lambda: f"processes are left: {ours()}")
    assert not [str(p) for p in GROUPS.glob("*/*") if p.is_dir()], "groups of boxes are left"
    assert not pathlib.Path("/run/millibox").exists()


@pytest.fixture(autouse=True)
def stopped():
    yield
    CONFIG.write_text("")
    systemctl("stop", UNIT, ok=False)
    systemctl("reset-failed", UNIT, ok=False)
    host.wait_until(lambda: not ours(), SLOW, lambda: f"processes are left: {ours()}")


def new_session():
    """A session with state to lose."""
    session = millibox("session", "create", "--mode", "persistent", "--language", "python").split()[0]
    millibox("session", "exec", session, "-c", "x = 41")
    return session


def test_it_starts_runs_code_strictly_and_stops():
    start()
    assert show("ActiveState") == "active" and show("NRestarts") == "0"
    assert millibox("run", "-c", "print(6 * 7)") == "42\n"
    result = json.loads(millibox("run", "--json", "--receipt", "plain", "-c", "print(1)"))
    assert {"cgroup.memory", "cgroup.pids", "cgroup.cpu", "cgroup.io", "uid_range"} <= set(result["isolation"]["layers"])
    # The kernel enforces the limit, in the box's own group.
    greedy = json.loads(millibox("run", "--json", "-m", "64Mi", "-c", "x = bytearray(300 << 20)", ok=False))
    assert greedy["limit"] == "memory", greedy
    main = int(show("MainPID"))
    assert host.comm(main) == "milliboxd" and os.stat(f"/proc/{main}").st_uid != 0
    systemctl("stop", UNIT)
    assert show("Result") == "success" and show("ExecMainStatus") == "0"
    wait_until_nothing_is_left()


def test_zygotes_start_under_the_unit():
    """Also a check of its capabilities and restrictions: a zygote needs most of what the engine can do."""
    start()
    starts = []

    def is_warm():
        starts.append(json.loads(millibox("run", "--json", "--receipt", "plain", "-c", "print(1)"))["isolation"])
        return starts[-1]["start"] == "zygote"

    host.wait_until(is_warm, SLOW, lambda: f"{starts[-1:]} {journal()}")
    assert starts[-1]["mode"] == "strict" and starts[-1]["missing"] == []


def test_the_unit_is_sound_and_has_no_more_than_it_needs():
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", UNIT], capture_output=True, text=True, timeout=SLOW)
    about_it = [line for line in done.stderr.splitlines() if "milliboxd" in line]
    assert done.returncode == 0 and not about_it, done
    start()
    assert show("Type") == "notify"
    status = pathlib.Path(f"/proc/{show('MainPID')}/status").read_text()
    assert "CapEff:\t0000000000000000" in status
    for pid in engines():
        # Host ids of the engine and its guard; none of ours is root with a capability there.
        assert os.stat(f"/proc/{pid}").st_uid != 0 or "CapEff:\t0000000000000000" in pathlib.Path(f"/proc/{pid}/status").read_text()


def test_the_configuration_file_and_the_environment_file_count():
    CONFIG.write_text("log_format: json\nlog_level: error\n")
    start(MILLIBOX_LOG_LEVEL="info")
    # The variable overrides the file's level, and the file's format holds.
    def levels():
        return [json.loads(line)["level"] for line in journal().splitlines() if line.startswith("{") and "listening on" in line]

    host.wait_until(levels, SLOW, journal)
    assert levels() == ["info"], journal()


def test_a_wrong_configuration_is_reported_and_not_retried():
    CONFIG.write_text("isolation: perhaps\n")
    ENVIRONMENT.write_text("")
    assert subprocess.run(["systemctl", "start", UNIT], capture_output=True, timeout=SLOW).returncode != 0
    assert show("ActiveState") == "failed" and show("NRestarts") == "0"
    host.wait_until(lambda: "millibox.yaml:1: 'isolation' must be strict or best-effort" in journal(), SLOW, journal)


def test_reload_loads_the_policies():
    start()
    main = show("MainPID")
    systemctl("reload", UNIT)
    host.wait_until(lambda: "reloaded the policies" in journal(), SLOW, journal)
    assert show("MainPID") == main and show("ActiveState") == "active"


def test_a_restart_that_keeps_sessions():
    start(MILLIBOX_SESSIONS_KEEP_ON_STOP="true")
    session, (engine,) = new_session(), engines()
    systemctl("restart", UNIT)
    host.wait_until(is_ready, SLOW, journal)
    assert engines() == [engine]
    assert millibox("session", "exec", session, "-c", "print(x + 1)") == "42\n"
    assert show("NRestarts") == "0"
    # After a stop no daemon follows: nothing waits for the lease to end.
    systemctl("stop", UNIT)
    wait_until_nothing_is_left()


def test_a_restart_that_keeps_no_sessions():
    start()
    session, (engine,) = new_session(), engines()
    systemctl("restart", UNIT)
    host.wait_until(is_ready, SLOW, journal)
    assert engine not in engines()
    assert "print" not in millibox("session", "exec", session, "-c", "print(x + 1)", ok=False)


def test_a_killed_daemon_is_restarted_and_resumes():
    start()
    session, (engine,), main = new_session(), engines(), int(show("MainPID"))
    os.kill(main, signal.SIGKILL)
    host.wait_until(lambda: show("MainPID") not in ("0", str(main)) and is_ready(), SLOW, journal)
    assert show("NRestarts") == "1" and engines() == [engine]
    assert millibox("session", "exec", session, "-c", "print(x + 1)") == "42\n"


def test_a_killed_engine_ends_the_daemon_and_both_are_restarted():
    start()
    (engine,), main = engines(), show("MainPID")
    os.kill(engine, signal.SIGKILL)
    host.wait_until(lambda: show("MainPID") not in ("0", main) and is_ready(), SLOW, journal)
    assert engine not in engines() and len(engines()) == 1
    assert millibox("run", "-c", "print(42)") == "42\n"
