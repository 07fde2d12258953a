#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A working day in minutes: random operations of many clients, random kills, and checks of invariants throughout.
docs/operations.md has the fault model and the numbers of a run.

    tests/soak/soak.py [--seconds N] [--clients N] [--seed N] [--no-kills] [--hours H]

Idle time-outs, lifetimes and retention are shortened by --hours / --seconds, so that each expires as often as in that
many hours with the default settings; clients do not pause. The seed is printed: the same one makes the same choices,
but not the same interleaving. Exits with 0 only if every invariant holds:

  - every acknowledged execution ends, in one state that never changes, and is readable until retention removes it;
  - a session counts its acknowledged executions; an abandoned session ends by itself;
  - every answer has an expected status;
  - memory and descriptors of daemon and engine do not grow with use;
  - no process, group, mount or file is left behind;
  - the database is consistent, has the sessions that the API lists, and no orphaned rows;
  - the audit log is complete.
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import host  # noqa: E402
from support.daemon import BUILD, Daemon, is_sanitized  # noqa: E402
from support.metrics import Metrics  # noqa: E402
from support.sessions import V1  # noqa: E402
from worker import Worker  # noqa: E402

# The daemon's defaults in seconds, and the shortest value that works in a short run.
CLOCKS = {"idle": (15 * 60, 3), "lifetime": (4 * 3600, 20), "executions": (3 * 3600, 45), "sessions": (3600, 12)}
CONFIG = """
sessions: {{max: 400, idle_timeout: {idle}s, lifetime: {lifetime}s, survive: 60s}}
admission: {{max_running: 8, max_queued: 256}}
executions: {{keep: 500}}
limits: {{memory: 64Mi, disk: 8Mi, timeout: 10s}}
retention: {{executions: {executions}s, sessions: {sessions}s}}
"""
ENDS = {"success", "failed", "timeout", "crashed", "cancelled"}
GONE = {"terminated", "failed", "completed"}
QUIET = 0.34  # the last part has no kills, so that memory is measured in programs that are not restarted
GROWTH_KIB = {"daemon": 24 * 1024, "engine": 2 * 1024}
# From acknowledgement to end: queue, run time, a restart.
PATIENCE = 60
# What the daemon keeps in its state directory, with the files that SQLite puts beside its own.
STATE_FILES = ("millibox.db", "lock", "roots", "audit.log", "secrets.key", "receipt.key")

# Rows of lists, and the counts that triggers keep of them.
COUNTED = "SELECT {names}, {word}, no >> 10, count(*) FROM {table} GROUP BY {names}, {word}, no >> 10"
COUNTS = [
    (COUNTED.format(names="tenant", word="state", table="sessions WHERE deleted = 0"),
     "SELECT * FROM session_counts WHERE state <> ''"),
    (COUNTED.format(names="tenant", word="''", table="sessions WHERE deleted = 0"),
     "SELECT * FROM session_counts WHERE state = ''"),
    (COUNTED.format(names="tenant, session_id, session_ms", word="status", table="executions"),
     "SELECT * FROM execution_counts WHERE status <> ''"),
    (COUNTED.format(names="tenant, session_id, session_ms", word="''", table="executions"),
     "SELECT * FROM execution_counts WHERE status = ''"),
]


class Broken(Exception):
    """An invariant does not hold."""


def compressed(hours, seconds):
    """The settings of a day that takes @seconds."""
    factor = max(hours * 3600 / seconds, 1)
    return factor, {name: max(round(real / factor), least) for name, (real, least) in CLOCKS.items()}


class Series:
    """Memory of one program over its life."""

    def __init__(self, pid):
        self.pid, self.points, self.born = pid, [], time.monotonic()

    def growth(self):
        """Growth in KiB after the first third, by the slope of all points."""
        late = self.points[len(self.points) // 3 :]
        if len(late) < 8:
            return None
        mean_t = sum(t for t, _ in late) / len(late)
        mean_k = sum(k for _, k in late) / len(late)
        spread = sum((t - mean_t) ** 2 for t, _ in late)
        slope = sum((t - mean_t) * (k - mean_k) for t, k in late) / spread if spread else 0
        return slope * (late[-1][0] - late[0][0])


class Soak:
    def __init__(self, args):
        self.args = args
        self.factor, self.clocks = compressed(args.hours, args.seconds)
        self.daemon = Daemon(config=CONFIG.format(**self.clocks))
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.calm = threading.Event()  # no more kills
        self.restarting = threading.Lock()
        self.open = {}  # acknowledged executions without an end: id -> (session, when)
        self.ended = {}  # id -> (session, status, when)
        self.left = {}  # abandoned sessions: id -> when
        self.deleted = set()
        self.counts, self.kills, self.checks = {}, {}, {}
        self.problems = []
        self.memory = {}  # name -> Series of the program that lives
        self.baseline = None
        self.life = 0  # how often the daemon was started again
        self.attacks = 0  # odd while something is being killed

    def count(self, name, into="counts"):
        with self.lock:
            table = getattr(self, into)
            table[name] = table.get(name, 0) + 1

    def problem(self, text):
        with self.lock:
            self.problems.append(text)

    def told_of(self, answer):
        """Lines about an id in the log of the daemon that gave it; the next daemon has another log."""
        ident = answer.headers.get("X-Request-ID") or "-"
        lines = [line for line in self.daemon.log().splitlines() if ident in line or "level=err" in line]
        return "\n".join(lines[-12:])

    # Called by clients.

    def acknowledge(self, execution, session):
        with self.lock:
            self.open[execution] = (session, time.monotonic())

    def forget(self, session):
        with self.lock:
            self.deleted.add(session)

    def abandoned(self, session):
        with self.lock:
            self.left[session] = time.monotonic()

    def client_loop(self, number):
        rng = random.Random(f"{self.args.seed}/{number}")
        worker = Worker(self, rng, number)
        while not self.stop.is_set():
            try:
                worker.step()
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                self.count("cut off")  # the daemon is being restarted
                worker.reconnect()
            except Exception as error:  # noqa: BLE001: any error is reported
                self.problem(f"client {number}: {type(error).__name__}: {error}")
                worker.reconnect()
        worker.close()

    # Faults.

    def kill_loop(self):
        rng = random.Random(f"{self.args.seed}/kills")
        pace = max(self.args.seconds / 200, 1)
        while not self.calm.wait(rng.uniform(0.5 * pace, 1.5 * pace)):
            kind = rng.choices(["agent", "runner", "helper", "daemon", "engine"], [8, 8, 1, 4, 2])[0]
            self.attacks += 1
            try:
                done = getattr(self, f"kill_{kind}")(rng)
            except AssertionError as error:
                self.problem(f"after the kill of the {kind}: {error}")
                return
            self.attacks += 1
            if done:
                self.count(done, "kills")

    def boxes(self):
        """The first process of each box, and all the others."""
        engine, pids = self.daemon.engine_pid, self.daemon.box_pids()
        inits = [p for p in pids if (host.proc_stat(p) or (0,))[0] == engine]
        return inits, [p for p in pids if p not in inits]

    def kill_agent(self, rng):
        agents, _ = self.boxes()
        return "agent" if agents and _kill(rng.choice(agents)) else None

    def kill_runner(self, rng):
        _, inside = self.boxes()
        return "process in a box" if inside and _kill(rng.choice(inside)) else None

    def kill_helper(self, rng):
        del rng
        engine = self.daemon.engine_pid
        nets = [p for p in host.descendants(engine) if host.comm(p) == "millibox-nets"] if engine else []
        return "helper of the engine" if nets and _kill(nets[0]) else None

    def kill_daemon(self, rng):
        del rng
        self.daemon.process.kill()
        self.restart()
        return "daemon"

    def kill_engine(self, rng):
        del rng
        engine = self.daemon.engine_pid
        stat = host.proc_stat(engine) if engine else None
        adopted = stat and stat[0] != self.daemon.pid
        if not engine or not _kill(engine):
            return None
        self.restart()
        return "engine that was taken over" if adopted else "engine"

    def restart(self):
        self.life += 1
        with self.restarting:
            try:
                self.daemon.process.wait(30)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"the daemon does not end: {self.daemon.log()[-2000:]}") from None
            deadline = time.monotonic() + 60
            while True:
                try:
                    self.daemon.start()
                    break
                except AssertionError:
                    # The killed daemon's engine still holds the directory.
                    if time.monotonic() > deadline:
                        raise
        with self.lock:
            self.memory.clear()

    # Invariants, all along.

    def watch_memory(self):
        while not self.stop.wait(0.5):
            for name, pid in (("daemon", self.daemon.pid), ("engine", self.daemon.engine_pid)):
                try:
                    kib = host.rss_kib(pid) if pid else 0
                except (FileNotFoundError, ProcessLookupError):
                    continue
                with self.lock:
                    series = self.memory.get(name)
                    if not series or series.pid != pid:
                        series = self.memory[name] = Series(pid)
                    series.points.append((time.monotonic() - series.born, kib))

    def check_loop(self):
        """Executions end once, abandoned sessions end, and there are no more boxes than sessions allow."""
        client = self.daemon.client(timeout=60)
        rng = random.Random(f"{self.args.seed}/checks")
        while not self.stop.wait(0.2):
            try:
                self.check_open(client)
                self.check_ended(client, rng)
                self.check_left(client)
                self.check_boxes(client)
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                client.close()
                time.sleep(0.2)
                client = self.daemon.client(timeout=60)
            except Exception as error:  # noqa: BLE001
                self.problem(f"check: {type(error).__name__}: {error}")
        client.close()

    def is_deleted(self, session):
        with self.lock:
            return session in self.deleted

    def check_open(self, client):
        with self.lock:
            items = list(self.open.items())
        for execution, (session, since) in items:
            if self.is_deleted(session):
                self.drop(execution)
                continue
            answer = client.get(f"{V1}/executions/{execution}")
            self.count("execution", "checks")
            if answer.status == 200 and answer.json["status"] in ENDS:
                with self.lock:
                    self.ended[execution] = (session, answer.json["status"], time.monotonic())
                self.drop(execution)
            elif answer.status == 404 and not self.is_deleted(session):
                self.problem(f"{execution} of {session} was acknowledged and is not there")
                self.drop(execution)
            elif time.monotonic() - since > PATIENCE + self.clocks["idle"]:
                self.problem(f"{execution} of {session} does not end: {answer}")
                self.drop(execution)

    def drop(self, execution):
        with self.lock:
            self.open.pop(execution, None)

    def check_ended(self, client, rng):
        """Read some ended executions again: the same end until retention removes them."""
        with self.lock:
            items = list(self.ended.items())
        for execution, (session, status, since) in rng.sample(items, min(len(items), 5)):
            age = time.monotonic() - since
            answer = client.get(f"{V1}/executions/{execution}")
            self.count("ended execution", "checks")
            if answer.status == 200 and answer.json["status"] != status:
                self.problem(f"{execution} was {status} and is now {answer}")
            elif answer.status == 404 and age < self.clocks["executions"] - 10 and not self.is_deleted(session):
                self.problem(f"{execution} of {session} was forgotten after {age:.0f} s")
            elif answer.status == 200 and age > self.clocks["executions"] + PATIENCE:
                self.problem(f"{execution} is there after {age:.0f} s")
            if answer.status == 404:
                self.count("deleted execution" if self.is_deleted(session) else "expired execution", "checks")
                with self.lock:
                    self.ended.pop(execution, None)

    def check_left(self, client):
        with self.lock:
            items = list(self.left.items())
        for session, since in items:
            answer = client.get(f"{V1}/sessions/{session}")
            age = time.monotonic() - since
            if answer.status == 404 or (answer.status == 200 and answer.json["status"] in GONE):
                reason = "expired session" if answer.status == 404 else "session ended by itself"
                self.count(reason, "checks")
                with self.lock:
                    self.left.pop(session, None)
            elif age > self.clocks["idle"] + PATIENCE:
                self.problem(f"{session} was abandoned {age:.0f} s ago and lives: {answer}")
                with self.lock:
                    self.left.pop(session, None)

    def check_boxes(self, client):
        """Every box belongs to a living session or a running execution, or is ending."""
        with self.restarting:
            inits, _ = self.boxes()
            metrics = Metrics(client.get("/metrics").body.decode())
        most = metrics.value("sandbox_sessions_active") + metrics.value("sandbox_executions_running") + 48
        self.count("boxes", "checks")
        self.counts["most boxes"] = max(self.counts.get("most boxes", 0), len(inits))
        if len(inits) > most:
            self.problem(f"{len(inits)} boxes live, of {most:.0f} at most")

    # The run.

    def run(self):
        self.daemon.start()
        self.baseline = self.first_look()
        threads = [threading.Thread(target=self.client_loop, args=(i,)) for i in range(self.args.clients)]
        threads += [threading.Thread(target=self.watch_memory), threading.Thread(target=self.check_loop)]
        killer = threading.Thread(target=self.kill_loop)
        for thread in threads:
            thread.start()
        if self.args.kills:
            killer.start()
            time.sleep(self.args.seconds * (1 - QUIET))
            self.calm.set()
            killer.join()
            time.sleep(self.args.seconds * QUIET)
        else:
            time.sleep(self.args.seconds)
        self.stop.set()
        for thread in threads:
            thread.join(90)
        self.check()

    def first_look(self):
        """Sockets to the daemon's helpers come some time after its start: look until nothing changes."""
        looks = [self.look()]
        while len(looks) < 10 or any(look != looks[-1] for look in looks[-10:]):
            assert len(looks) < 1000, looks[-10:]
            time.sleep(0.03)
            looks.append(self.look())
        return looks[-1]

    def look(self):
        """Descriptors of both programs and mounts of the engine, of an idle daemon."""
        engine = self.daemon.engine_pid
        if not host.is_root():
            return {}  # only root can read them
        mounts = len(pathlib.Path(f"/proc/{engine}/mountinfo").read_text().splitlines())
        return {"daemon fds": host.fd_count(self.daemon.pid), "mounts": mounts, "engine fds": host.fd_count(engine)}

    def check(self):
        checks = [
            self.check_acknowledged, self.check_memory, self.check_store, self.check_idle, self.check_end,
            self.check_database, self.check_files, self.check_audit,
        ]
        for check in checks:
            try:
                check()
            except (Broken, AssertionError, OSError, http.client.HTTPException, subprocess.TimeoutExpired) as error:
                self.problem(f"{check.__name__}: {type(error).__name__}: {error}")

    def check_acknowledged(self):
        """Nothing that was acknowledged is lost, and everything ends."""
        with self.daemon.client() as client:
            deadline = time.monotonic() + PATIENCE
            while self.open and time.monotonic() < deadline:
                self.check_open(client)
                time.sleep(0.1)
        if self.open:
            raise Broken(f"without an end: {list(self.open.items())[:10]}")

    def check_memory(self):
        """After a warm-up neither program grows."""
        for name, series in self.memory.items():
            growth = series.growth()
            if is_sanitized() or growth is None:
                continue
            seconds = series.points[-1][0]
            self.counts[f"{name} KiB"] = series.points[-1][1]
            self.counts[f"{name} growth KiB"] = int(growth)
            if growth > GROWTH_KIB[name]:
                raise Broken(f"the {name} grew by {growth:.0f} KiB in {seconds:.0f} s: {series.points[::8]}")

    def check_store(self):
        """The API's own counts agree, and everything can be deleted."""
        with self.daemon.client() as client:
            # Commits are grouped and retention continues: the database may lag.
            host.wait_until(lambda: self.stored_sessions() == self.told_sessions(client), 30, "store and API agree")
            while True:
                page = client.get(f"{V1}/sessions?limit=200").json
                if not page["sessions"]:
                    break
                for session in page["sessions"]:
                    answer = client.request("DELETE", f"{V1}/sessions/{session['session_id']}")
                    if answer.status not in (200, 404):
                        raise Broken(f"cannot delete {session['session_id']}: {answer}")
            if page["total"] != 0:
                raise Broken(f"an empty list has {page['total']}")

    def stored_sessions(self):
        with self.database() as db:
            return db.execute("SELECT count(*) FROM sessions WHERE deleted = 0 AND tenant = 'default'").fetchone()[0]

    @staticmethod
    def told_sessions(client):
        return client.get(f"{V1}/sessions?limit=1").json["total"]

    def database(self):
        return sqlite3.connect(f"file:{self.daemon.home / 'state' / 'millibox.db'}?mode=ro", uri=True)

    def check_idle(self):
        """With everything deleted, the daemon is as it was at the start."""
        self.daemon.settle(60)
        with self.daemon.client() as client:
            def idle():
                metrics = Metrics(client.get("/metrics").body.decode())
                names = ("sandbox_sessions_active", "sandbox_executions_running", "sandbox_executions_queued")
                return not any(metrics.value(name) for name in names)

            host.wait_until(idle, 20, lambda: client.get("/metrics").body.decode())
        host.wait_until(lambda: all(v <= self.baseline[k] + 8 for k, v in self.look().items()), 30,
                        lambda: f"{self.look()} instead of {self.baseline}")

    def check_end(self):
        """The daemon stops cleanly and leaves no process."""
        status = self.daemon.stop(60)
        if status != 0:
            raise Broken(f"the daemon ended with {status}: {self.daemon.log()[-2000:]}")
        strays = host.strays(Daemon.ours())
        if strays:
            raise Broken(f"processes are left: {strays}")

    def check_database(self):
        with self.database() as db:
            def number(query):
                return db.execute(query).fetchone()[0]

            if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                raise Broken("the database is damaged")
            if db.execute("PRAGMA foreign_key_check").fetchall():
                raise Broken("rows of the database refer to nothing")
            live = number("SELECT count(*) FROM sessions WHERE deleted = 0 AND tenant = 'default'")
            if live != 0:
                raise Broken(f"{live} sessions are in the database and not in the API")
            open_ = number("SELECT count(*) FROM executions e WHERE completed_ms IS NULL AND EXISTS (SELECT 1 FROM sessions s"
                           " WHERE s.tenant = e.tenant AND s.id = e.session_id AND s.created_ms = e.session_ms AND s.deleted = 0)")
            if open_ != 0:
                raise Broken(f"{open_} executions of the database have no end")
            for made, kept in COUNTS:
                wrong = db.execute(f"{made} EXCEPT {kept}").fetchall() + db.execute(f"{kept} EXCEPT {made}").fetchall()
                if wrong:
                    raise Broken(f"counts of lists are not what is there: {wrong[:5]}")
            self.counts["rows KiB"] = (self.daemon.home / "state" / "millibox.db").stat().st_size // 1024

    def check_files(self):
        """The runtime directory is empty, the state directory has only the daemon's files."""
        run = [p.name for p in (self.daemon.home / "run").iterdir()]
        state = [p.name for p in (self.daemon.home / "state").iterdir() if not p.name.startswith(STATE_FILES)]
        roots = [p.name for p in (self.daemon.home / "state" / "roots").iterdir()]
        if run or state or roots:
            raise Broken(f"left: {run} {state} {roots}")

    def check_audit(self):
        said = subprocess.run(
            [str(BUILD / "millibox"), "audit", "verify", str(self.daemon.home / "state" / "audit.log")],
            capture_output=True, text=True,
        )
        if said.returncode != 0:
            raise Broken(said.stdout + said.stderr)

    def tell(self):
        done = {k: v for k, v in self.counts.items() if "KiB" not in k and k != "most boxes"}
        sizes = {k: v for k, v in self.counts.items() if k not in done}
        print(f"soak: {sum(done.values())} operations: {done}")
        print(f"soak: sessions made: {done.get('make', 0)}, deleted: {len(self.deleted)}; sizes: {sizes}")
        print(f"soak: kills: {self.kills}; checks: {self.checks}")
        for problem in self.problems[:20]:
            print(f"soak: PROBLEM: {problem[:4000]}")
        print("soak: fine" if not self.problems else f"soak: {len(self.problems)} problems", flush=True)


def _kill(pid):
    """Return: False if it is gone, or has an id that an ordinary user may not signal."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    # A killed process stays visible for a moment.
    host.wait_until(lambda: not host.is_alive(pid), 30, f"the end of {pid}")
    return True


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--hours", type=float, default=8, help="what the seconds stand for")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**9)))
    parser.add_argument("--no-kills", dest="kills", action="store_false")
    args = parser.parse_args(argv)
    soak = Soak(args)
    print(f"soak: seed {args.seed}, {args.hours:g} h in {args.seconds:g} s, {args.clients} clients, kills: {args.kills};"
          f" seconds of clocks: {soak.clocks}", flush=True)
    try:
        soak.run()
    finally:
        if soak.problems:
            print(f"soak: the end of the daemon's log: {soak.daemon.log()[-4000:]}")
        soak.tell()
        soak.daemon.remove()
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
