#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Much use in little time: random operations of many clients, random kills, and then a look whether everything is
as it must be. docs/operations.md has the model of faults.

    tests/soak/soak.py [--seconds N] [--clients N] [--seed N] [--no-kills]

The seed is printed: the same one makes the same choices (not the same interleaving). Ends with 0 only if every
invariant holds:

  - every execution that was acknowledged and not deleted is found, with an end;
  - no answer has a status that nobody expects of it;
  - the daemon's memory does not grow with use;
  - the database is consistent, and knows the sessions that the API knows;
  - the audit log is whole;
  - nothing is left when the daemon has ended.
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

from support import host  # noqa: E402
from support.daemon import BUILD, Daemon, is_sanitized  # noqa: E402
from support.sessions import V1  # noqa: E402

CONFIG = """
sessions: {max: 400, idle_timeout: 60s}
admission: {max_running: 8, max_queued: 256}
executions: {keep: 20000}
limits: {memory: 64Mi, disk: 8Mi, timeout: 10s}
"""
# What a session holds before it is given up, so that sessions come and go.
LIFE = 12
# 409: the state had changed; 404: ended and forgotten; 429: full, by design; 503: it is being restarted or a box died.
TOLERATED = {400, 404, 408, 409, 429, 503}
ENDS = {"success", "failed", "timeout", "crashed", "cancelled"}
WARM_UP = 0.34
GROWTH_KIB = 24 * 1024


class Broken(Exception):
    """An invariant does not hold."""


class Soak:
    def __init__(self, args):
        self.args = args
        self.daemon = Daemon(config=CONFIG)
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.calm = threading.Event()  # no more kills
        self.acknowledged = {}  # execution id -> session id
        self.deleted = set()  # sessions
        self.counts = {}
        self.kills = {}
        self.problems = []
        self.memory = []  # (seconds since the start of this daemon's life, KiB, requests)
        self.born = time.monotonic()

    def count(self, name):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1

    def problem(self, text):
        with self.lock:
            self.problems.append(text)

    # Clients.

    def client_loop(self, number):
        rng = random.Random(f"{self.args.seed}/{number}")
        worker = Worker(self, rng, number)
        while not self.stop.is_set():
            try:
                worker.step()
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                self.count("cut off")  # the daemon is being restarted
                worker.reconnect()
            except Exception as error:  # noqa: BLE001: whatever it is, it is to be told
                self.problem(f"client {number}: {type(error).__name__}: {error}")
                worker.reconnect()
        worker.close()

    # Faults.

    def kill_loop(self):
        rng = random.Random(f"{self.args.seed}/kills")
        while not self.calm.wait(rng.uniform(1.5, 4)):
            kind = rng.choices(["agent", "daemon", "engine"], [8, 2, 1])[0]
            try:
                done = getattr(self, f"kill_{kind}")(rng)
            except AssertionError as error:
                self.problem(f"after the kill of the {kind}: {error}")
                return
            with self.lock:
                self.kills[kind] = self.kills.get(kind, 0) + done

    def kill_agent(self, rng):
        agents = [p for p in self.daemon.box_pids() if host.comm(p).startswith("millibox-agent")]
        return bool(agents) and _kill(rng.choice(agents))

    def kill_daemon(self, rng):
        del rng
        self.daemon.process.kill()
        self.restart()
        return True

    def kill_engine(self, rng):
        del rng
        engine = self.daemon.engine_pid
        # One that was taken over from a killed daemon is no child of this one, and is left alone.
        if not engine or not _kill(engine):
            return False
        self.restart()
        return True

    def restart(self):
        self.daemon.process.wait(30)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.daemon.start()
                break
            except AssertionError:
                # The engine of the one that was killed has not let go of the place yet.
                if time.monotonic() > deadline:
                    raise
        with self.lock:
            self.born = time.monotonic()
            self.memory.clear()

    def watch_memory(self):
        while not self.stop.wait(0.5):
            try:
                kib = host.rss_kib(self.daemon.pid)
            except (FileNotFoundError, ProcessLookupError):
                continue
            with self.lock:
                self.memory.append((time.monotonic() - self.born, kib))

    # The run.

    def run(self):
        self.daemon.start()
        threads = [threading.Thread(target=self.client_loop, args=(i,)) for i in range(self.args.clients)]
        threads.append(threading.Thread(target=self.watch_memory))
        killer = threading.Thread(target=self.kill_loop)
        for thread in threads:
            thread.start()
        if self.args.kills:
            killer.start()
            time.sleep(self.args.seconds * (1 - WARM_UP))
            # The last part is quiet: memory is looked at in a daemon that nobody kills.
            self.calm.set()
            killer.join()
            time.sleep(self.args.seconds * WARM_UP)
        else:
            time.sleep(self.args.seconds)
        self.stop.set()
        for thread in threads:
            thread.join(90)
        self.check()

    def check(self):
        checks = [
            self.check_acknowledged, self.check_memory, self.check_store, self.check_end, self.check_database,
            self.check_audit,
        ]
        for check in checks:
            try:
                check()
            except (Broken, AssertionError) as error:
                self.problem(f"{check.__name__}: {error}")

    def check_acknowledged(self):
        """Nothing that was acknowledged is lost, and everything ends."""
        with self.daemon.client() as client:
            for execution, session in self.acknowledged.items():
                if session in self.deleted:
                    continue
                deadline = time.monotonic() + 40
                while True:
                    answer = client.get(f"{V1}/executions/{execution}")
                    if answer.status == 200 and answer.json["status"] in ENDS:
                        break
                    if answer.status == 404:
                        raise Broken(f"{execution} of {session} was acknowledged and is not there")
                    if time.monotonic() > deadline:
                        raise Broken(f"{execution} of {session} does not end: {answer}")
                    time.sleep(0.05)

    def check_memory(self):
        """After the warm-up the daemon does not grow."""
        points = self.memory
        if is_sanitized() or len(points) < 8:
            return
        late = points[len(points) // 3 :]
        mean_t = sum(t for t, _ in late) / len(late)
        mean_k = sum(k for _, k in late) / len(late)
        spread = sum((t - mean_t) ** 2 for t, _ in late)
        slope = sum((t - mean_t) * (k - mean_k) for t, k in late) / spread if spread else 0
        growth = slope * (late[-1][0] - late[0][0])
        self.counts["memory KiB"] = late[-1][1]
        self.counts["growth KiB"] = int(growth)
        if growth > GROWTH_KIB:
            raise Broken(f"the daemon grew by {growth:.0f} KiB in {late[-1][0] - late[0][0]:.0f} s: {points[::8]}")

    def check_store(self):
        """The API's own counts agree, and everything can be deleted."""
        with self.daemon.client() as client:
            # Commits are grouped: the database may be a moment behind.
            host.wait_until(lambda: self.stored_sessions() == self.told_sessions(client), 20, "store and API agree")
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
            return db.execute("SELECT count(*) FROM sessions WHERE deleted = 0").fetchone()[0]

    @staticmethod
    def told_sessions(client):
        return client.get(f"{V1}/sessions?limit=1").json["total"]

    def database(self):
        return sqlite3.connect(f"file:{self.daemon.home / 'state' / 'millibox.db'}?mode=ro", uri=True)

    def check_end(self):
        """Nothing is left of boxes, and then nothing of the daemon."""
        self.daemon.settle(30)
        status = self.daemon.stop(60)
        if status != 0:
            raise Broken(f"the daemon ended with {status}: {self.daemon.log()[-2000:]}")
        strays = host.strays(Daemon.ours())
        if strays:
            raise Broken(f"processes are left: {strays}")

    def check_database(self):
        with self.database() as db:
            if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                raise Broken("the database is damaged")
            if db.execute("PRAGMA foreign_key_check").fetchall():
                raise Broken("rows of the database refer to nothing")
            live = db.execute("SELECT count(*) FROM sessions WHERE deleted = 0").fetchone()[0]
            if live != 0:
                raise Broken(f"{live} sessions are in the database and not in the API")

    def check_audit(self):
        said = subprocess.run(
            [str(BUILD / "millibox"), "audit", "verify", str(self.daemon.home / "state" / "audit.log")],
            capture_output=True, text=True,
        )
        if said.returncode != 0:
            raise Broken(said.stdout + said.stderr)


def _kill(pid):
    """Whether it could be: it may be gone, or have an id that an ordinary user may not signal."""
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except (ProcessLookupError, PermissionError):
        return False


class Worker:
    """One client with sessions of its own."""

    def __init__(self, soak, rng, number):
        self.soak, self.rng, self.number = soak, rng, number
        self.client = soak.daemon.client(timeout=30)
        self.sessions = {}  # id -> how often it was used
        self.made = 0

    def close(self):
        self.client.close()

    def reconnect(self):
        self.client.close()
        time.sleep(0.1)
        self.client = self.soak.daemon.client(timeout=30)

    def call(self, name, method, path, body=None, headers=None):
        answer = self.client.request(method, path, body=body, headers=headers)
        self.soak.count(name)
        if answer.status >= 300 and answer.status not in TOLERATED:
            self.soak.problem(f"{name}: {method} {path}: {answer}")
        return answer

    def step(self):
        if not self.sessions or (len(self.sessions) < 6 and self.rng.random() < 0.2):
            self.make()
            return
        names = list(OPERATIONS)
        operation = self.rng.choices(names, [OPERATIONS[n] for n in names])[0]
        session = self.rng.choice(list(self.sessions))
        self.sessions[session] += 1
        getattr(self, operation)(session)
        if self.sessions.get(session, 0) > LIFE:
            self.delete(session)

    def make(self):
        mode = self.rng.choice(["persistent", "persistent", "ephemeral"])
        self.made += 1
        name = f"soak-{self.number}-{self.made}"
        answer = self.call("make", "POST", f"{V1}/sessions", {"mode": mode, "session_id": name, "timeout": 60})
        if answer.status in (200, 201):
            self.sessions[name] = 0

    def delete(self, session):
        with self.soak.lock:
            self.soak.deleted.add(session)
        self.call("delete", "DELETE", f"{V1}/sessions/{session}")
        self.sessions.pop(session, None)

    def run_sync(self, session):
        code = self.rng.choice(["x = 1", "print('y' * 1000)", "1/0", "import os; os._exit(3)", "sum(range(10000))"])
        self.call("run", "POST", f"{V1}/sessions/{session}/execute", {"code": code, "wait": True, "timeout": 5})

    def run_async(self, session):
        code = self.rng.choice(["print(1)", "import time; time.sleep(0.3)", "raise SystemExit(2)", "while True: pass"])
        answer = self.call("submit", "POST", f"{V1}/sessions/{session}/execute", {"code": code, "timeout": 1})
        if answer.status == 200:
            with self.soak.lock:
                self.soak.acknowledged[answer.json["execution_id"]] = session

    def stream(self, session):
        self.call(
            "stream", "POST", f"{V1}/sessions/{session}/execute", {"code": "print(1); print(2)", "timeout": 5},
            headers={"Accept": self.rng.choice(["application/x-ndjson", "text/event-stream"])},
        )

    def once(self, session):
        del session
        self.call("once", "POST", f"{V1}/execute", {"language": "shell", "code": "echo hi", "timeout": 5})

    def files(self, session):
        path = f"{V1}/sessions/{session}/files/f{self.rng.randrange(4)}.bin"
        verb = self.rng.choice(["PUT", "GET", "DELETE", "LIST"])
        if verb == "PUT":
            data = bytes(self.rng.randrange(20000))
            self.call("put file", "PUT", path, data, headers={"Content-Type": "application/octet-stream"})
        elif verb == "LIST":
            self.call("list files", "GET", f"{V1}/sessions/{session}/files")
        else:
            self.call(f"{verb.lower()} file", verb, path)

    def control(self, session):
        verb = self.rng.choice(["pause", "resume", "interrupt", "keepalive"])
        self.call(verb, "POST", f"{V1}/sessions/{session}/{verb}")
        if verb == "pause":
            self.call("resume", "POST", f"{V1}/sessions/{session}/resume")

    def look(self, session):
        tail = self.rng.choice(["", "/stats", "/executions", "/status"])
        self.call("look", "GET", f"{V1}/sessions/{session}{tail}")

    def lists(self, session):
        del session
        path = self.rng.choice([f"{V1}/sessions?limit=20", "/metrics", f"{V1}/containers", f"{V1}/templates", "/readyz"])
        self.call("list", "GET", path)

    def nonsense(self, session):
        body = self.rng.choice([b"{", b'{"code": 1}', b'{"no": "such"}', b"[]"])
        answer = self.call(
            "nonsense", "POST", f"{V1}/sessions/{session}/execute", body, headers={"Content-Type": "application/json"}
        )
        if answer.status < 400:
            self.soak.problem(f"nonsense was taken: {body} {answer}")


OPERATIONS = {
    "run_sync": 20, "run_async": 12, "stream": 6, "once": 4, "files": 10, "control": 5, "look": 8, "lists": 5, "nonsense": 3,
}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**9)))
    parser.add_argument("--no-kills", dest="kills", action="store_false")
    args = parser.parse_args(argv)
    print(f"soak: seed {args.seed}, {args.seconds:g} s, {args.clients} clients, kills: {args.kills}", flush=True)
    soak = Soak(args)
    try:
        soak.run()
    finally:
        soak.daemon.remove()
    print(f"soak: {sum(v for k, v in soak.counts.items() if 'KiB' not in k)} operations: {soak.counts}")
    print(f"soak: kills: {soak.kills}; acknowledged: {len(soak.acknowledged)}; sessions deleted: {len(soak.deleted)}")
    for problem in soak.problems[:20]:
        print(f"soak: PROBLEM: {problem[:1500]}")
    print("soak: fine" if not soak.problems else f"soak: {len(soak.problems)} problems")
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
