# SPDX-License-Identifier: Apache-2.0
"""kill -9 of anything at any time: nothing leaks, the next start is clean."""

import os
import random
import signal
import threading

import pytest
from support import host

pytestmark = [pytest.mark.phases("system", "pool", "user", "subid"), pytest.mark.vm]


def quiet(fn):
    """Ignores the error that a caller gets when its daemon is killed."""
    try:
        return fn()
    except Exception:
        return None


def busy(daemon, count=4, code="echo begun; sleep 100"):
    def work():
        c = daemon.client(timeout=20)
        quiet(lambda: c.shell(code, timeout=100))
        c.close()

    threads = [threading.Thread(target=work) for _ in range(count)]
    for t in threads:
        t.start()
    host.wait_until(lambda: sum(host.comm(p) == "sleep" for p in daemon.box_pids()) >= 1, 20, "boxes run")
    return threads


def alive(pids):
    """Processes that are alive, zombies excluded."""
    return [p for p in pids if host.is_alive(p)]


def runs_again(d, threads):
    """The next start of a killed daemon serves requests."""
    for t in threads:
        t.join()
    d.start()
    d.settle()
    with d.client() as c:
        assert c.shell("echo again")["stdout"] == "again\n"


def everything_is_gone(daemon, pids):
    host.wait_until(lambda: not alive(pids), 10, lambda: f"processes gone: {[(p, host.comm(p)) for p in alive(pids)]}")


def test_daemon_killed_ends_engine_and_boxes(make_daemon):
    d = make_daemon().start()
    threads = busy(d)
    pids = host.descendants(d.pid)
    d.kill()
    everything_is_gone(d, pids)
    host.wait_until(lambda: not d.groups(), 10, "groups gone")
    for t in threads:
        t.join()


@pytest.mark.smoke
def test_engine_killed_ends_boxes_and_daemon(make_daemon):
    d = make_daemon().start()
    threads = busy(d)
    pids = host.descendants(d.pid)
    os.kill(d.engine_pid, signal.SIGKILL)
    assert d.process.wait(10 * host.PATIENCE) != 0
    assert "engine" in d.log()
    everything_is_gone(d, pids)
    runs_again(d, threads)


def test_both_killed_leave_nothing_after_the_next_start(make_daemon):
    d = make_daemon().start()
    threads = busy(d)
    pids = host.descendants(d.pid)
    engine = d.engine_pid
    os.kill(engine, signal.SIGSTOP)
    d.kill()
    os.kill(engine, signal.SIGKILL)
    everything_is_gone(d, pids)
    runs_again(d, threads)


def agent_of_sleep(daemon):
    """The agent of the box in which "sleep" runs, not of one that is being made."""
    def find():
        table = host.parents()
        return next((p for p in daemon.box_pids() if table.get(p) == daemon.engine_pid
                     and any(host.comm(child) == "sleep" for child in host.descendants(p, table))), None)

    return host.wait_until(find, 10, "sleep runs")


def test_agent_killed_is_a_crash_of_that_box_only(make_daemon):
    if not host.is_root():
        pytest.skip("needs root: the agent of a box has another id than we")
    d = make_daemon().start()
    with d.client() as c:
        events = c.stream("shell", "echo begun; sleep 100", timeout=100)
        # From here on its agent has passed on the output.
        next(event for event in events if event.get("data") == "begun\n")
        os.kill(agent_of_sleep(d), signal.SIGKILL)
        result = list(events)[-1]["result"]
    assert result["status"] == "crashed"
    assert result["stdout"] == "begun\n"
    with d.client() as c:
        assert c.shell("echo fine")["stdout"] == "fine\n"
    d.settle()


def test_stopped_agent_does_not_stop_the_clock(make_daemon):
    if not host.is_root():
        pytest.skip("needs root: the agent of a box has another id than we")
    d = make_daemon().start()
    with d.client() as c:
        events = c.stream("shell", "echo on; exec sleep 100", timeout=60 if host.SLOW else 5)
        # From here on its agent has reported that it runs.
        next(event for event in events if event.get("data") == "on\n")
        os.kill(agent_of_sleep(d), signal.SIGSTOP)
        assert list(events)[-1]["result"]["status"] == "timeout"
    d.settle()


ROUNDS = int(os.environ.get("MILLIBOX_KILL_ROUNDS", "40"))


@pytest.mark.slow
def test_kills_at_random_moments_leave_no_trace(make_daemon):
    """Daemon, engine or an agent, at a random moment of a stream of short and long runs."""
    rng = random.Random(20261115)
    d = make_daemon()
    for round_ in range(ROUNDS):
        if not d.process or d.process.poll() is not None:
            d.start()
        stop = threading.Event()

        def work():
            while not stop.is_set():
                c = d.client(timeout=5)
                if quiet(lambda: c.shell(rng.choice(["true", "sleep 0.05", "sleep 5"]), timeout=1)) is None:
                    stop.set()
                c.close()

        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads:
            t.start()
        stop.wait(rng.uniform(0.0, 0.15))
        victims = [d.pid, d.engine_pid or d.pid] + (d.box_pids()[:4] if host.is_root() else [])
        victim = rng.choice(victims)
        below = host.descendants(d.pid)
        quiet(lambda: os.kill(victim, signal.SIGKILL))
        stop.set()
        for t in threads:
            t.join()
        if victim in (victims[0], victims[1]):
            host.wait_until(lambda: d.process.poll() is not None, 10, "daemon ended")
            everything_is_gone(d, below)
    if d.process.poll() is not None:
        d.start()
    d.settle()
    with d.client() as c:
        assert c.python("print(1)")["stdout"] == "1\n"
    assert d.stop() == 0
