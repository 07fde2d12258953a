# SPDX-License-Identifier: Apache-2.0
"""A real daemon in its own directory: start, stop, and what the kernel knows about it."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from support import host, isolation, sanitizer
from support.client import Client
from support.sanitizer import BUILD, REPORT, ROOT, is_sanitized

#: How an engine that is not the default shows its name: in that of its handover socket.
NAMED = re.compile(r"custody-[a-z0-9]+--([a-z0-9-]+)")

__all__ = ["BUILD", "ROOT", "Daemon", "is_sanitized"]


class Daemon:
    #: Engine instances of this test run's daemons, with their lock files.
    instances = {}
    #: Boxes in full pools: two of each of the two usual kinds.
    SPARES = 4
    prefix_of_homes = f"mbxtest-{os.getpid()}-"

    def __init__(self, tcp=False, flags=(), env=None, config=None):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix=self.prefix_of_homes))
        # The daemon drops root; its new id must reach the socket.
        self.home.chmod(0o755)
        self.socket = str(self.home / "sock")
        self.log_path = self.home / "log"
        self.tcp = tcp
        self.port = None
        self.flags = list(flags)
        self.env = env or {}
        self.process = None
        self._engine = None
        self.restless = False  # its pools never fill
        if config is not None:
            (self.home / "millibox.yaml").write_text(config)
            self.flags += ["--config", str(self.home / "millibox.yaml")]

    def command(self):
        listen = "127.0.0.1:0" if self.tcp else ""
        return [
            str(BUILD / "milliboxd"),
            *("--listen", listen),
            *("--socket", self.socket),
            *("--state-dir", str(self.home / "state")),
            *self.flags,
        ]

    def start(self, ready=True):
        env = {"PATH": "/usr/bin:/bin", "MILLIBOX_RUNTIME_DIR": str(self.home / "run"), **isolation.environment(), **self.env}
        # No pools and zygotes by default: tests count processes and boxes.
        if not host.POOLED:
            env.setdefault("MILLIBOX_ZYGOTES_ENABLED", "false")
            env.setdefault("MILLIBOX_POOLS_ENABLED", "false")
        else:
            # A fixed number, whatever a test asks for.
            env.setdefault("MILLIBOX_POOLS_FLOOR", "2")
            env.setdefault("MILLIBOX_POOLS_MAX", str(self.SPARES))
            # None for sessions: a waiting runner looks like one that a test left behind.
            env.setdefault("MILLIBOX_POOLS_SESSION_FLOOR", "0")
        self.restless = env.get("MILLIBOX_POOLS_ENABLED") == "false"
        # No program of each language runs in a box when a test lists languages or tools.
        env.setdefault("MILLIBOX_RUNNERS_CHECK", "false")
        # No test installs from a real registry without saying so.
        env.setdefault("MILLIBOX_PACKAGES_MANAGERS", "")
        if is_sanitized():
            # It reports to stderr: its filter lets it open no file for a report.
            env = {**sanitizer.OPTIONS, **env}
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env
            )
        if ready:
            host.wait_until(self._is_ready, 20, lambda: f"daemon ready; its log: {self.log()}")
            self.instance()
        return self

    def _is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"daemon ended with {self.process.returncode}: {self.log()}")
        try:
            with self.client() as client:
                return client.get("/readyz").status == 200
        except (OSError, ConnectionError):
            return False

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def report(self):
        """The log from the first sanitizer report of daemon or engine on, or None."""
        log = self.log()
        found = REPORT.search(log)
        return log[log.rfind("\n", 0, found.start()) + 1 :] if found else None

    @property
    def pid(self):
        return self.process.pid

    @property
    def engine_pid(self):
        """The one child of the daemon, or the engine of an earlier one on the same directory."""
        if not self._is_engine(self._engine):
            self._engine = self._find_engine(self._is_engine)
        return self._engine

    @property
    def host_engine_pid(self):
        """The engine of boxes with network host, or None."""
        return self._find_engine(self._is_host_engine)

    def engine_pid_of(self, name):
        """The engine with this name, which is not the default, or None."""
        return self._find_engine(lambda pid: self._is_any_engine(pid) and NAMED.findall(" ".join(host.cmdline(pid))) == [name])

    @staticmethod
    def _find_engine(is_one):
        found = [pid for pid in host.all_pids() if is_one(pid)]
        # A child that is still building its box looks like its parent.
        above = {pid: host.proc_stat(pid) for pid in found}
        return next((pid for pid in found if above[pid] and above[pid][0] not in found), None)

    def _is_any_engine(self, pid):
        return bool(pid) and host.comm(pid).startswith("millibox-engin") and str(self.home / "run") in host.cmdline(pid)

    def _is_engine(self, pid):
        return self._is_any_engine(pid) and "--host-network" not in host.cmdline(pid) and not NAMED.search(" ".join(host.cmdline(pid)))

    def _is_host_engine(self, pid):
        return self._is_any_engine(pid) and "--host-network" in host.cmdline(pid)

    def await_proxy(self):
        """Wait for the egress proxy, whose socket comes to the daemon some time after its start."""
        starter = host.child_named(self.pid, "millibox-egress")
        host.wait_until(lambda: host.listed_children(starter), 10, "the proxy has started")

    def box_pids(self):
        """Processes below the engine, without its helper for network namespaces, zygotes and boxes of pools."""
        engine, table = self.engine_pid, host.parents()
        return [pid for pid in (host.descendants(engine, table) if engine else [])
                if not (table[pid] == engine and self._is_zygote(pid))
                and host.comm(pid) != "millibox-nets" and not host.is_spare(pid)]

    def zygote_pids(self):
        """Interpreters that the engine itself has started: those of boxes are below their agents."""
        engine = self.engine_pid
        return [pid for pid in (host.listed_children(engine) if engine else [])
                if self._is_zygote(pid) and host.is_alive(pid)]

    @staticmethod
    def _is_zygote(pid):
        return host.comm(pid) in ("millibox-zygote", "python3")

    def groups(self):
        """Groups of this daemon's boxes, without boxes of pools."""
        number = self.instance()
        found = host.box_cgroups([number], self.engine_lives) if number else []
        return [group for group in found if not host.is_spare_group(group)]

    @classmethod
    def engine_lives(cls, number):
        """Whether the engine of this run that had this instance is alive."""
        return number in cls.instances and host.is_locked(cls.instances[number])

    @classmethod
    def ours(cls):
        """Instances of this run, without those that another engine on the host has taken since."""
        return [n for n in cls.instances if cls.engine_lives(n) or not host.is_claimed(n)]

    def instance(self):
        for lock in (self.home / "run").glob("engine-*.lock"):
            number = lock.stem.split("-")[1]
            self.instances[number] = lock
            return number
        return None

    def client(self, timeout=host.HANG_S):
        return _Closing(self.socket, timeout=timeout)

    def tcp_address(self):
        """The kernel chooses the port; the log line that announces it is part of the contract."""
        for line in self.log().splitlines():
            if "http://127.0.0.1:" in line:
                tail = line.split("http://127.0.0.1:", 1)[1]
                digits = "".join(c for c in tail.split()[0] if c.isdigit())
                return ("127.0.0.1", int(digits))
        raise AssertionError(f"no address in the log: {self.log()}")

    def settle(self, seconds=15):
        """Wait until all boxes and their groups are gone."""
        host.wait_until(lambda: not self.box_pids(), seconds, "processes of boxes gone")
        host.wait_until(lambda: not self.groups(), seconds, lambda: f"groups gone: {self.groups()}")

    def end_sessions(self):
        with self.client() as c:
            for session in c.get("/api/v1/sessions?limit=1000").json["items"]:
                c.request("DELETE", f"/api/v1/sessions/{session['id']}")

    def rest(self, seconds=5):
        """Wait until its pools are full, so that counts of its descriptors can be compared: each box in a pool has some.
        Only for a while: a test's policies may leave a pool empty."""
        deadline, engine = time.monotonic() + seconds * host.PATIENCE, self.engine_pid if host.POOLED else None
        while engine and not self.restless and host.count_spares(engine) < self.SPARES:
            if time.monotonic() > deadline:
                self.restless = True
            time.sleep(0.02)

    def stop(self, seconds=20):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(seconds * host.PATIENCE)
        return self.process.returncode

    def kill(self):
        """Also wait for its helpers, which have the listeners of boxes and would accept for a daemon that is gone."""
        helpers = [pid for pid in host.descendants(self.pid) if host.comm(pid).startswith(("millibox-egress", "millibox-gatewa"))]
        self.process.kill()
        self.process.wait(20 * host.PATIENCE)
        host.wait_until(lambda: not any(map(host.is_alive, helpers)), 10, "the helpers have ended with their daemon")

    def remove(self):
        if self.process and self.process.poll() is None:
            self.kill()
        report = self.report()
        shutil.rmtree(self.home, ignore_errors=True)
        assert not report, f"sanitizer report:\n{report}"


class _Closing(Client):
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
