# SPDX-License-Identifier: Apache-2.0
"""kill -9 at every step of making a box: of the daemon, of the engine, of what becomes the box.

strace stops the process that has just entered a step; then somebody is killed. A first run without
any stop tells at which system call each step begins, so this knows no numbers."""

import json
import os
import re
import signal
import subprocess
import threading
import time

import pytest
from support import host
from support.daemon import BUILD

pytestmark = [pytest.mark.phases("system", "pool"), pytest.mark.skipif(not host.is_root(), reason="needs root: engine and boxes are not ours to trace")]

ENGINE, BOX = "engine", "box"
#: Calls are counted: there may be no box but that of the request. With MILLIBOX_TEST_POOL=1 zygotes are there all the same.
ONE_BOX = {"MILLIBOX_POOLS_ENABLED": "false"}

#: Where each step of the plan shows: who does it, and the first system call that is its own.
STEPS = {
    "reserve": (ENGINE, r"recvmsg\("),
    "cgroup-make": (ENGINE, r"mkdirat\("),
    "cgroup-limit": (ENGINE, r'openat\(\d+, "(memory\.limit_in_bytes|memory\.max|pids\.max)"'),
    "channels": (ENGINE, r"socketpair\("),
    "net": (ENGINE, r"setns\("),
    "clone": (ENGINE, r"clone3\("),
    "idmap": (ENGINE, r'openat\(\d+, "uid_map", O_RDWR'),
    "oom-score": (ENGINE, r'openat\(\d+, "oom_score_adj"'),
    "release": (ENGINE, r'sendto\(\d+, "\\0", 1,'),
    "deathsig": (BOX, r"prctl\(PR_SET_PDEATHSIG"),
    "cgroup-join": (BOX, r'write\(\d+, "0", 1'),
    "cgroup-verify": (BOX, r'openat\(AT_FDCWD, "/proc/self/cgroup"'),
    "wait": (BOX, r"recvfrom\("),
    "become": (BOX, r"setresgid\("),
    "session": (BOX, r"setsid\("),
    "cgroup-ns": (BOX, r"unshare\(CLONE_NEWCGROUP"),
    "time-ns": (BOX, r"unshare\(CLONE_NEWTIME"),
    "nesting": (BOX, r'openat\(AT_FDCWD, "/proc/sys/user/max_user_namespaces"'),
    "hostname": (BOX, r"sethostname\("),
    "root": (BOX, r"open_tree\("),
    "writable": (BOX, r'mount\("tmpfs", "workspace"'),
    "proc": (BOX, r'mount\("proc"'),
    "masks": (BOX, r'mount\("/mask/'),
    "pivot": (BOX, r"pivot_root\("),
    "rlimits": (BOX, r"prlimit64\("),
    "descriptors": (BOX, r'openat\(AT_FDCWD, "/dev/null"'),
    "caps": (BOX, r"prctl\(PR_CAPBSET_DROP"),
    "exec": (BOX, r"execveat\("),
}

#: The agent's own way from there to the program.
AGENT_STEPS = {
    "agent-filter": (BOX, r"seccomp\("),
    "agent-ruleset": (BOX, r"landlock_create_ruleset\(\{"),
    "agent-program": (BOX, r'openat\(\d+, "main\.sh"'),
    "agent-fork": (BOX, r"(fork|clone|vfork)\("),
    "agent-end": (BOX, r"statfs\("),
}

ALL_STEPS = {**STEPS, **AGENT_STEPS}
LINE = re.compile(r"^(\d+) +((\w+)\(.*)")


def plan():
    out = subprocess.run([str(BUILD / "millibox"), "box", "plan", "--json"], capture_output=True, check=True).stdout
    return [step["name"] for step in json.loads(out)]


def test_every_step_of_the_plan_is_tested():
    assert set(plan()) <= set(STEPS)


class Trace:
    """strace of an engine and all its descendants."""

    def __init__(self, daemon, inject=None):
        self.path = daemon.home / "strace"
        self.engine = daemon.engine_pid
        self.releaser = None
        command = ["strace", "-f", "-q", "-s", "64", "-o", str(self.path), "-p", str(self.engine)]
        self.process = subprocess.Popen(
            command + (["-e", f"inject={inject}"] if inject else []),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        host.wait_until(self.is_attached, 10, "strace attached")

    def is_attached(self):
        assert self.process.poll() is None, self.process.stderr.read()
        # Its first line: the engine has a tracer before strace sees its calls.
        return self.path.exists() and self.path.stat().st_size > 0

    def calls(self):
        """(who, name, call), in order; the engine's first child is the box."""
        found, box = [], None
        for line in self.path.read_text(errors="replace").splitlines():
            m = LINE.match(line)
            if not m:
                continue
            pid = int(m[1])
            if pid != self.engine and box is None:
                box = pid
            if pid in (self.engine, box):
                found.append((ENGINE if pid == self.engine else BOX, m[3], m[2]))
        return found

    def stopped(self):
        """Processes stopped by strace, each once per stop."""
        text = self.path.read_text(errors="replace")
        return [int(pid) for pid in re.findall(r"^(\d+) +--- stopped by SIGSTOP ---", text, re.M)]

    def release(self):
        """Continue all stopped processes, also those that will still be stopped."""
        self.ended = threading.Event()

        def work():
            while not self.ended.wait(0.01):
                for pid in [p for p in set(self.stopped()) if host.proc_stat(p)]:
                    go_on(pid)

        self.releaser = threading.Thread(target=work)
        self.releaser.start()

    def end(self):
        if self.releaser:
            self.ended.set()
            self.releaser.join()
        self.process.terminate()
        self.process.wait(10 * host.PATIENCE)
        self.process.stderr.close()
        # A stop that strace caused as it ended is not in its file.
        for pid in {self.engine, *host.descendants(self.engine), *self.stopped()}:
            go_on(pid)


def go_on(pid):
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


def is_box_of(engine, pid):
    stat = host.proc_stat(pid)
    return bool(stat) and stat[0] == engine and host.comm(pid) != "millibox-nets"


def request(daemon, answers):
    def work():
        try:
            with daemon.client(timeout=20 * host.PATIENCE) as c:
                answers.append(c.post("/api/v1/execute", {"language": "shell", "code": "true", "timeout": 60}))
        except Exception as e:  # the callee was just killed
            answers.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.fixture(scope="module")
def places():
    """step -> (who, system call, which one of that kind)."""
    from support.daemon import Daemon

    d = Daemon(env=ONE_BOX).start()
    trace = Trace(d)
    with d.client() as c:
        assert c.shell("true")["status"] == "success"
    d.settle()
    trace.end()
    calls = trace.calls()
    assert d.stop() == 0
    d.remove()
    found = {}
    for step, (who, pattern) in ALL_STEPS.items():
        mine = [(name, call) for role, name, call in calls if role == who]
        at = next((i for i, (_, call) in enumerate(mine) if re.match(pattern, call)), None)
        if at is not None:
            name = mine[at][0]
            found[step] = (who, name, sum(n == name for n, _ in mine[: at + 1]))
    return found


def stop_at(daemon, place):
    """Run a request until @place, where the process of that step is stopped."""
    who, name, when = place
    trace = Trace(daemon, f"{name}:signal=SIGSTOP:when={when}")
    answers = []
    thread = request(daemon, answers)
    seen = 0
    deadline = time.monotonic() + 20 * host.PATIENCE
    while time.monotonic() < deadline:
        stops = trace.stopped()
        for pid in stops[seen:]:
            if (ENGINE if pid == trace.engine else BOX) == who and (who == ENGINE or is_box_of(trace.engine, pid)):
                return trace, thread, answers
            go_on(pid)  # another process made as many calls of that kind
        seen = len(stops)
        time.sleep(0.002)
    raise AssertionError(f"no process came to {place}: {trace.path.read_text()[-2000:]}")


def kill(daemon, victim, trace):
    engine = trace.engine
    if victim == "daemon":
        daemon.kill()
    else:
        boxes = [p for p in host.descendants(engine) if is_box_of(engine, p)]
        for pid in [engine] if victim == "engine" else boxes:
            os.kill(pid, signal.SIGKILL)
    trace.release()


def check(daemon, victim, answers, pids):
    if victim == "box":
        answer = answers[0]
        assert not isinstance(answer, Exception), answer
        assert answer.status >= 500 or answer.json["status"] in ("crashed", "failed", "success")
    else:
        if victim == "engine":
            assert daemon.process.wait(20 * host.PATIENCE) != 0
        host.wait_until(
            lambda: not any(map(host.is_alive, pids)),
            10,
            lambda: f"all gone after {victim}: {[(p, host.comm(p), host.proc_stat(p)) for p in pids]}",
        )
        daemon.start()
    daemon.settle()
    with daemon.client() as c:
        assert c.shell("echo again")["stdout"] == "again\n"
    daemon.settle()


@pytest.mark.parametrize("step", ALL_STEPS)
def test_killed_at(step, places, make_daemon):
    if step not in places:
        assert step in STEPS and step not in plan(), f"nothing in the trace is {step}"
        pytest.skip(f"{step} is no step of the plan on this host")
    victims = ["daemon", "engine"] + (["box"] if places[step][0] == BOX else [])
    for victim in victims:
        d = make_daemon(env=ONE_BOX).start()
        trace, thread, answers = stop_at(d, places[step])
        pids = host.descendants(d.pid)
        kill(d, victim, trace)
        thread.join(30 * host.PATIENCE)
        assert not thread.is_alive()
        trace.end()
        check(d, victim, answers, pids)
        assert d.stop() == 0, d.log()
