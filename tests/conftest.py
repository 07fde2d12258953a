# SPDX-License-Identifier: Apache-2.0
"""Fixtures and phases of all pytest suites. A test must leave nothing behind."""

import os
import pathlib
import signal
import sys
import tempfile

import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import host, sanitizer  # noqa: E402
from support.daemon import BUILD, Daemon  # noqa: E402
from support.recorder import Recorder  # noqa: E402


#: The phases of tools/test that run pytest: as the caller, on boxes of pools, as an ordinary user, as one with subordinate ids; of
#: packages and images, which takes minutes and is not for every change.
PHASES = ("system", "pool", "user", "subid", "package")

MARKERS = [
    'phases(*names): the phases of tools/test in which a test runs. Every module has one, as part of its pytestmark; a function may'
    ' have its own. "user" and "subid" are for what depends on the privilege of the daemon, "pool" for what depends on how a box is made',
    "alone: measures time or loads the machine, so nothing else may run at the same time",
    "smoke: run by 'make quick'; about twenty, each a short walk through most layers",
    "vm: also run on a pure cgroup v2 kernel by 'make test-vm'",
    "systemd: run only by 'make test-vm', in a machine with systemd as its init",
    "slow: takes more than a few seconds",
    "boxes: makes boxes, in a suite whose requests are refused",
]


def pytest_configure(config):
    for line in MARKERS:
        config.addinivalue_line("markers", line)
    record = os.environ.get("MILLIBOX_TEST_RECORD")
    # A worker of xdist sends its reports to the process that started it.
    if record and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(record, os.environ.get("MILLIBOX_TEST_PHASE") or "smoke"))
    if host.is_root():
        host.separate_mounts()
    # A job in the background of a shell ignores it, and so would every program that a test starts and interrupts.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config, items):
    """Leave out what is for another phase, and tests of the systemd unit outside of the machine that tools/test-vm boots."""
    refuse_undeclared(items)
    phase = os.environ.get("MILLIBOX_TEST_PHASE")

    def is_elsewhere(item):
        if item.get_closest_marker("systemd") and "MILLIBOX_SYSTEMD" not in os.environ:
            return True
        return bool(phase) and phase not in item.get_closest_marker("phases").args

    left_out = {item for item in items if is_elsewhere(item)}
    config.hook.pytest_deselected(items=list(left_out))
    seconds = seconds_of_modules(phase)
    items[:] = sorted((item for item in items if item not in left_out), key=lambda item: -seconds.get(module_of(item), 0))


def module_of(item):
    return item.nodeid.partition("::")[0]


def seconds_of_modules(phase):
    """What tests/longest.txt says about a phase. The longest modules begin, so that the last worker does not end long after the others."""
    rows = (line.split() for line in (pathlib.Path(__file__).parent / "longest.txt").read_text().splitlines() if line[:1] != "#")
    return {module: float(seconds) for seconds, of_phase, module in rows if of_phase == phase}


def refuse_undeclared(items):
    """A module that does not say in which phases it runs, or names one that does not exist, is an error."""
    for module in {item.getparent(pytest.Module) for item in items}:
        names = [name for mark in module.iter_markers("phases") for name in mark.args]
        if not names or not set(names) <= set(PHASES):
            raise pytest.UsageError(f"{module.nodeid}: add pytest.mark.phases(...) to its pytestmark, with some of {PHASES}"
                                    f" (see CONTRIBUTING.md); it has {names}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """With MILLIBOX_MUST_WORK=1 a skip is a failure."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("MILLIBOX_MUST_WORK") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped with MILLIBOX_MUST_WORK=1: {report.longrepr}"


#: Waiting long costs time only where something is left.
PATIENCE_S = 60


def _witness():
    """A set of facts about this run's daemons; a fact that is new after a test is left over. Other daemons on the host,
    and tests that run at the same time, do not show here: root has a mount namespace of its own (see pytest_configure),
    an ordinary user can mount nothing outside of one."""
    ours = Daemon.ours()
    homes = Daemon.prefix_of_homes
    groups = [group for group in host.box_cgroups(ours, Daemon.engine_lives) if not host.is_spare_group(group)]
    return {
        *(("mount", line) for line in host.mounts() if host.is_root() or homes in line),
        *(("cgroup", path) for path in groups),
        *(("process", stray) for stray in host.strays(ours, homes) if not host.is_spare(stray[0])),
        *(("file", str(path)) for path in pathlib.Path(tempfile.gettempdir()).glob(homes + "*")),
    }


@pytest.fixture(scope="session", autouse=True)
def reports():
    """Sanitizer reports of all programs that tests start; None: the build has no sanitizers."""
    if not sanitizer.is_sanitized():
        yield None
        return
    found = sanitizer.watch()
    yield found
    # Daemons that several tests share end after the last of them.
    text = found.take()
    found.remove()
    assert not text, f"sanitizer report:\n{text}"


@pytest.fixture(autouse=True)
def nothing_is_said(reports):
    """Fail on a report even where no test checks the program's exit status."""
    yield
    text = reports.take() if reports else ""
    assert not text, f"sanitizer report:\n{text}"


@pytest.fixture(autouse=True)
def nothing_is_left(request, reports):
    """Mounts, cgroups, processes and temporary files of a test are gone when it ends."""
    shared = request.getfixturevalue("daemon") if "daemon" in request.fixturenames else None
    if shared:
        shared.settle()
        shared.rest()
        _await_helpers(shared)
    before = _witness()
    descriptors = _descriptors(shared)
    yield
    if shared and shared.process.poll() is None:
        try:
            shared.settle()
        except AssertionError:
            # The tests that follow would fail for what this one left.
            shared.end_sessions()
            raise
        shared.rest()
        host.wait_until(
            lambda: _descriptors(shared) <= descriptors, PATIENCE_S, "descriptors of the daemon given back"
        )
    host.wait_until(lambda: not _witness() - before, PATIENCE_S, lambda: f"nothing left: {_witness() - before}")


def _await_helpers(daemon):
    """Sockets to the daemon's helpers come some time after its start: wait until their number stays the same."""
    if getattr(daemon, "is_steady", False) or daemon.process.poll() is not None:
        return
    daemon.await_proxy()
    readings = []
    while len(readings) < 10 or len(set(readings[-10:])) > 1:
        readings.append(_descriptors(daemon)[0])
        assert len(readings) < 1000, readings
        time.sleep(0.03)
    daemon.is_steady = True


def _descriptors(daemon):
    if not daemon or daemon.process.poll() is not None:
        return (0, 0)
    try:
        # The engine keeps a socket, a pidfd and a mount namespace of each zygote.
        return (host.fd_count(daemon.pid), host.fd_count(daemon.engine_pid) - 3 * len(daemon.zygote_pids()))
    except PermissionError:
        # An undumpable process hides its descriptors even from its own user.
        return (0, 0)


@pytest.fixture(scope="module")
def daemon():
    """One daemon for a module's tests, with default settings."""
    d = Daemon(tcp=True).start()
    yield d
    assert d.process.poll() is None, f"the daemon died: {d.log()}"
    assert d.stop() == 0, d.log()
    d.remove()


@pytest.fixture
def client(daemon):
    with daemon.client() as c:
        yield c


@pytest.fixture
def make_daemon():
    """Daemons with their own settings, stopped and removed with the test."""
    made = []

    def make(**kw):
        d = Daemon(**kw)
        made.append(d)
        return d

    yield make
    codes = [d.stop() for d in made if d.process and d.process.poll() is None]
    for d in made:
        d.remove()
    assert not any(codes), f"daemons ended with {codes}"


@pytest.fixture(scope="session")
def build():
    return BUILD
