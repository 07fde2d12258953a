# SPDX-License-Identifier: Apache-2.0
"""Resident runners: their runs, their channel, and what happens when they break the protocol."""

import hashlib
import itertools
import json
import os
import signal
import time

import pytest

from harness import STDIN_WINDOW, WORKSPACE, Agent, frame, text, texts, u8, u32, u64
from test_agent import (AGENT, ERR, IDS, LOOK, MIB, ROOT, SANITIZED, begin_upload, can_make_namespaces,
                        collect_beside_upload, finish_upload, sh)

pytestmark = pytest.mark.skipif(not can_make_namespaces(), reason="no user namespaces here")
FILES = ("python/session.py", "python/report.py", "python/handler.py", "shell/session.py")
FOLDER = "/opt/millibox/runners"
PYTHON = ["/usr/bin/python3", "-I", "-X", "utf8", f"{FOLDER}/python/session.py"]
SHELL = ["/usr/bin/python3", "-I", "-S", "-X", "utf8", f"{FOLDER}/shell/session.py"]
# Speaks the channel by hand: each run's file is code that has it as `channel`, `ident` and `fds`.
RAW = ["/usr/bin/python3", "-I", "-c", """
import os, socket, time
channel = socket.socket(fileno=3)
while True:
    data, fds, _, _ = socket.recv_fds(channel, 1 << 17, 3)
    if not data: os._exit(0)
    ident, path = data.split(b'\\0')[0].split(b' ')[1:]
    exec(open(path).read())
    for fd in fds: os.close(fd)
    channel.send(b'done %s 0' % ident)
"""]


def make(ids=IDS, **over):
    agent = Agent(AGENT, ids, {name: (ROOT / "runners" / name).read_bytes() for name in FILES})
    agent.expect("HELLO")
    agent.send(agent.setup(**over))
    return agent


@pytest.fixture
def agent():
    made = make()
    yield made
    made.close()


def keep(agent, argv, ident=1):
    agent.send(agent.exec(argv, ident, keep=1))
    assert agent.expect("STARTED")["pid"] > 1
    return agent


@pytest.fixture
def python(agent):
    return keep(agent, PYTHON)


def run(agent, code, ident, **options):
    agent.send(agent.ask(code, ident, **options))
    return agent.collect(ident)


def result(done):
    return json.loads(done["report"])["result"]


def test_variables_stay_between_runs(python):
    assert run(python, "x = 1", 2)["done"]["status"] == 0
    run(python, "x += 1", 3)
    begin = time.monotonic()
    done = run(python, "import os\nprint('out', x)\nprint('err', file=__import__('sys').stderr)\n(x, os.getuid())", 4)
    assert done["stdout"] == b"out 2\n" and done["stderr"] == b"err\n" and result(done) == [2, python.uid]
    assert len(done["started"]) == 1 and done["denials"] == {}
    facts = done["done"]
    assert (facts["signalled"], facts["status"], facts["stdout_bytes"], facts["stderr_bytes"]) == (0, 0, 6, 4)
    assert facts["runner_lost"] == 0
    assert 0 < facts["duration_us"] <= (time.monotonic() - begin) * 1e6


def test_everything_may_be_sent_at_once(agent):
    agent.send(agent.exec(PYTHON, 1, keep=1), agent.ask("print(6 * 7)", 2))
    assert agent.receive()[:2] == ("STARTED", 1)
    assert agent.collect(2)["stdout"] == b"42\n"


def test_state_of_a_shell_stays(agent):
    keep(agent, SHELL)
    run(agent, "x=5; cd /tmp; f() { echo f$x; }", 2)
    done = run(agent, 'f; pwd; echo "$1" >&2; cat; exit 3', 3, args=["a b"])
    assert (done["stdout"], done["stderr"], done["done"]["status"]) == (b"f5\n/tmp\n", b"a b\n", 3)
    assert run(agent, "f", 4)["stdout"] == b"f5\n"


def test_two_runners_live_side_by_side(agent):
    keep(agent, PYTHON, 1)
    keep(agent, SHELL, 2)
    run(agent, "x = 'py'", 3, runner=1)
    run(agent, "x=sh", 4, runner=2)
    assert run(agent, "print(x)", 5, runner=1)["stdout"] == b"py\n"
    assert run(agent, "echo $x", 6, runner=2)["stdout"] == b"sh\n"
    # The end of one is not that of the other.
    agent.send(frame("SIGNAL", u32(signal.SIGKILL), 1))
    assert agent.collect(1)["done"]["status"] == signal.SIGKILL
    assert run(agent, "echo $x", 7, runner=2)["stdout"] == b"sh\n"
    # Nor is an execution of the ordinary kind.
    agent.send(agent.exec(["/bin/sh", "-c", "sleep 50 & echo once"], 8))
    assert agent.collect(8)["stdout"] == b"once\n"
    end = time.monotonic() + 20
    for ident in itertools.count(9):  # it is killed after the answer
        left = run(agent, "echo $x; cat /proc/[0-9]*/comm 2>/dev/null | grep -c sleep", ident, runner=2)["stdout"]
        if left == b"sh\n0\n" or time.monotonic() > end:
            break
        time.sleep(0.02)
    assert left == b"sh\n0\n"


def test_there_are_four_places(agent):
    for ident in range(1, 5):
        keep(agent, SHELL, ident)
    agent.send(agent.exec(SHELL, 5, keep=1))
    assert agent.collect(5)["failed"]["code"] == ERR["CONFLICT"]
    agent.send(frame("SIGNAL", u32(signal.SIGKILL), 2))
    assert agent.collect(2)["done"]["signalled"] == 1
    keep(agent, SHELL, 6)
    assert run(agent, "echo new", 7, runner=6)["stdout"] == b"new\n"


def test_one_run_at_a_time(python):
    python.send(python.ask("import time\nprint('up')\nwhile True: time.sleep(0.05)", 2))
    assert python.expect("STARTED") and python.expect("OUTPUT")["data"] == b"up\n"
    python.send(python.ask("print(1)", 3))
    assert python.collect(3)["failed"]["code"] == ERR["CONFLICT"]
    python.send(python.exec(["/bin/true"], 4))
    assert python.collect(4)["failed"]["code"] == ERR["CONFLICT"]
    python.send(frame("SIGNAL", u32(signal.SIGINT), 2))
    assert python.collect(2)["done"]["status"] == 130
    assert run(python, "import os; os.listdir('/run/millibox')", 5)["report"].startswith(b'{"result":["run5"]')


@pytest.mark.parametrize("target", [1, 2])
def test_interrupt_ends_the_run_only(python, target):
    run(python, "x = 5", 9)
    python.send(python.ask("print('up')\nwhile True: pass", 2))
    assert python.expect("STARTED") and python.expect("OUTPUT")["data"] == b"up\n"
    python.send(frame("SIGNAL", u32(signal.SIGINT), target))
    done = python.collect(2)
    assert done["done"]["status"] == 130 and b"KeyboardInterrupt" in done["stderr"]
    assert done["done"]["cpu_user_us"] > 0
    assert result(run(python, "x", 3)) == 5


def test_stdin_reaches_the_run_completely(python):
    data = os.urandom(MIB)
    python.send(python.ask("import hashlib, sys\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())", 2, stdin=1))
    python.expect("STARTED")
    window, pos = STDIN_WINDOW, 0
    while pos < len(data):
        while window and pos < len(data):
            piece = data[pos : pos + min(window, 50000)]
            python.send(frame("STDIN", text(piece), 2))
            pos, window = pos + len(piece), window - len(piece)
        if pos < len(data):
            window += python.expect("STDIN_ROOM")["bytes"]
    python.send(frame("STDIN_END", u8(0), 2))
    assert python.collect(2)["stdout"].strip().decode() == hashlib.sha256(data).hexdigest()
    # What the last run did not read is not for the next one.
    python.send(python.ask("input()", 3, stdin=1), frame("STDIN", text(b"a\nb\n"), 3), frame("STDIN_END", u8(0), 3))
    assert result(python.collect(3)) == "a"
    python.send(python.ask("input()", 4, stdin=1), frame("STDIN", text(b"c\n"), 4))
    assert result(python.collect(4)) == "c"
    assert b"EOFError" in run(python, "input()", 5)["stderr"]


def test_output_is_cut_at_the_maximum_of_the_run(python):
    done = run(python, "print('x' * 100000, end='')", 2, out=1000)
    assert len(done["stdout"]) == 1000 and done["done"]["stdout_bytes"] == 100000
    assert len(run(python, "print('x' * 100000, end='')", 3, out=50000)["stdout"]) == 50000


def test_gigabyte_of_output_costs_no_memory(python):
    run(python, "", 2)
    before = python.memory_kib()
    done = run(python, "import os\nb = bytes(1 << 20)\nfor i in range(256): os.write(1, b)", 3, out=MIB)
    assert len(done["stdout"]) == MIB and done["done"]["stdout_bytes"] == 256 * MIB
    assert python.memory_kib() - before < (65536 if SANITIZED else 2048)


def test_report_is_cut_at_its_maximum(python):
    done = run(python, "'y' * 5000", 2, report=100)
    assert len(done["report"]) == 100 and done["report"].startswith(b'{"result":"yyy')
    assert run(python, "'y'", 3, report=0)["report"] == b""
    big = run(python, "'z' * 60000", 4)
    assert result(big) == "z" * 60000 and len(big["report"]) > 120000


def test_refusals_are_counted_per_run(python):
    call = "import ctypes\nfor i in range(%d): ctypes.CDLL(None).syscall(ctypes.c_long(165), 0, 0, 0, 0, 0)"
    assert run(python, call % 3, 2)["denials"] == {165: 3}
    assert run(python, call % 0, 3)["denials"] == {}
    assert run(python, call % 2, 4)["denials"] == {165: 2}


@pytest.mark.parametrize("code, signalled, status", [
    ("import os; print('said', flush=True); os._exit(9)", 0, 9),
    ("import os; print('said', flush=True); os.kill(os.getpid(), 11)", 1, 11),
    ("import os, time; print('said', flush=True); os.close(3); time.sleep(30)", 1, 9),
    ("import os, time; print('said', flush=True); os.dup2(0, 3); time.sleep(30)", 1, 9),
    ("import os; print('said', flush=True); os.execv('/bin/sleep', ['sleep', '30'])", 1, 9),
])
def test_end_of_the_runner_is_reported_for_its_run_and_itself(python, code, signalled, status):
    python.send(python.ask(code, 2))
    done = python.collect(2)
    assert done["stdout"] == b"said\n"
    assert (done["done"]["signalled"], done["done"]["status"], done["done"]["runner_lost"]) == (signalled, status, 1)
    done = python.collect(1)["done"]
    assert (done["signalled"], done["status"], done["runner_lost"]) == (signalled, status, 0)
    # The box goes on, with another runner and the same files.
    assert run(python, "1", 3)["failed"]["code"] == ERR["NOT_FOUND"]
    keep(python, PYTHON, 4)
    assert result(run(python, "6 * 7", 5, runner=4)) == 42
    assert json.loads(run(python, "import os; os.listdir('/run/millibox')", 6, runner=4)["report"])["result"] == ["run6"]


def test_end_of_an_idle_runner_is_reported(python):
    run(python, "import threading, os, time\nthreading.Thread(target=lambda: (time.sleep(0.2), os._exit(5))).start()", 2)
    assert python.collect(1)["done"]["status"] == 5


@pytest.mark.parametrize("target", [1, 2])
def test_killing_a_runner_kills_what_it_started(python, target):
    python.send(python.ask("""
import os, signal, subprocess, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen(['sleep', '100'])
subprocess.Popen(['setsid', 'sh', '-c', 'trap "" TERM INT HUP; sleep 100'])
print('up'); time.sleep(100)
""", 2))
    assert python.expect("STARTED") and python.expect("OUTPUT")["data"] == b"up\n"
    python.send(frame("SIGNAL", u32(signal.SIGINT), 2), frame("SIGNAL", u32(signal.SIGKILL), target))
    assert python.collect(2)["done"]["status"] == signal.SIGKILL
    assert python.collect(1)["done"]["status"] == signal.SIGKILL
    left = python.run(["/usr/bin/python3", "-I", "-c", LOOK], ident=3)["stdout"].split()
    assert b"agent" in left and b"sleep" not in left


def test_killing_a_runner_during_an_upload_kills_what_it_started_and_not_the_upload(python):
    begin_upload(python)
    python.send(python.ask("""
import subprocess, time
subprocess.run(['sh', '-c', '(setsid sleep 100 &)'])
print('up'); time.sleep(100)
""", 2))
    while python.receive()[0] != "OUTPUT":
        pass
    python.send(frame("SIGNAL", u32(signal.SIGKILL), 1))
    assert collect_beside_upload(python, 2)["status"] == signal.SIGKILL
    assert python.collect(1)["done"]["status"] == signal.SIGKILL
    left = python.run(["/usr/bin/python3", "-I", "-c", LOOK], ident=3)["stdout"].split()
    assert b"agent" in left and b"sleep" not in left
    finish_upload(python)


def test_processes_of_a_run_live_on_and_their_output_is_discarded(python):
    done = run(python, """
import os, subprocess, time
said, say = os.pipe()
child = subprocess.Popen(
    ['sh', '-c', f'echo early; echo >&{say}; read x; while echo late; do sleep 0.01; done; echo never >&2'],
    stdin=subprocess.PIPE, pass_fds=[say])
assert os.read(said, 1)
""", 2)
    assert done["stdout"] == b"early\n"
    done = run(python, "child.stdin.write(b'go\\n'); child.stdin.flush(); time.sleep(0.2)\nprint('mine', child.poll())", 3)
    assert (done["stdout"], done["stderr"]) == (b"mine None\n", b"")
    # Nor does a flood of it hold anything up.
    run(python, "flood = subprocess.Popen(['yes'])", 4)
    assert run(python, "time.sleep(0.1); print(flood.poll(), child.poll())", 5)["stdout"] == b"None None\n"


def test_many_runs_leave_nothing_in_the_agent(python):
    for ident in range(2, 60):
        run(python, "import subprocess; p = subprocess.Popen(['sleep', '100'])", ident, drain=0)
    assert run(python, "print('fine')", 100)["stdout"] == b"fine\n"
    with open(f"/proc/{python.pid}/task/{python.pid}/children") as f:
        inner = f.read().split()[0]
    assert len(os.listdir(f"/proc/{inner}/fd")) < 40


SPEAK = {
    "nonsense": "channel.send(b'nonsense')",
    "empty": "channel.send(b'')",
    "another id": "channel.send(b'done 77 0')",
    "no code": "channel.send(b'done %s' % ident)",
    "code too large": "channel.send(b'done %s 256' % ident)",
    "negative code": "channel.send(b'done %s -1' % ident)",
    "leading zero": "channel.send(b'done 0%s 0' % ident)",
    "huge id": "channel.send(b'done 99999999999999999999 0')",
    "trailing byte": "channel.send(b'done %s 0\\n' % ident)",
    "NUL": "channel.send(b'done %s 0\\0' % ident)",
    "done twice": "channel.send(b'done %s 0' % ident)",
    "report after done": "channel.send(b'done %s 0' % ident); channel.send(b'report %s\\nx' % ident)",
    "report of another": "channel.send(b'report 77\\nx')",
    "report without line": "channel.send(b'report %s' % ident)",
    "report too long": "channel.send(b'report %s\\n' % ident + bytes((60 << 10) + 1))",
    "message too long": "channel.send(b'report %s\\n' % ident + bytes(100000))",
}


@pytest.mark.parametrize("code", SPEAK.values(), ids=SPEAK.keys())
def test_runner_that_breaks_the_rules_is_killed(agent, code):
    keep(agent, RAW)
    assert run(agent, "channel.send(b'report %s\\nall is well' % ident)", 2)["report"] == b"all is well"
    agent.send(agent.ask(code + "\ntime.sleep(0.2)", 3))
    done = agent.collect(3)["done"]
    if "done %s 0'" in code:  # the answer was one; what came after it was not
        assert (done["signalled"], done["status"], done["runner_lost"]) == (0, 0, 0)
    else:
        assert (done["signalled"], done["status"], done["runner_lost"]) == (1, 9, 1)
    assert agent.collect(1)["done"]["status"] == 9


def test_runner_that_sends_unrequested_is_killed(agent):
    agent.send(agent.exec(["/usr/bin/python3", "-I", "-c", "import os, time; os.write(3, b'done 2 0'); time.sleep(30)"],
                          keep=1))
    agent.expect("STARTED")
    assert agent.collect(1)["done"]["status"] == 9


def test_flood_of_reports_does_not_starve_the_agent(agent):
    keep(agent, RAW)
    agent.send(agent.ask("""
def flood(): channel.send(b'report %s\\n' % ident + bytes(1000))
for i in range(1000): flood()
os.write(fds[1], b'.')
while True: flood()
""", 2, report=5000))
    agent.expect("STARTED")
    reported = b""
    while (got := agent.receive())[0] != "OUTPUT":
        reported += got[2]["data"]
    agent.send(frame("SIGNAL", u32(signal.SIGKILL), 1))
    done = agent.collect(2)
    assert len(reported + done["report"]) == 5000 and done["done"]["status"] == 9


def test_runner_that_does_not_read_costs_nothing(agent):
    agent.send(agent.exec(["/bin/sleep", "100"], keep=1))
    agent.expect("STARTED")
    agent.send(agent.ask("", 2), frame("SIGNAL", u32(signal.SIGKILL), 2))
    assert agent.collect(2)["done"]["status"] == 9
    assert agent.collect(1)["done"]["status"] == 9


def test_descriptors_sent_by_a_runner_are_dropped(agent):
    keep(agent, RAW)
    done = run(agent, """
import array
r, w = os.pipe()
channel.sendmsg([b'report %s\\nx' % ident], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [w] * 3))])
os.close(w)
os.write(fds[1], b'end' if os.read(r, 1) == b'' else b'taken')
""", 2)
    assert done["stdout"] == b"end" and done["report"] == b"x"


def test_runner_has_its_channel_and_nothing_else(agent):
    agent.send(agent.exec(["/usr/bin/python3", "-I", "-c", """
import os, socket
found = {fd: os.readlink(f'/proc/self/fd/{fd}') for fd in range(64) if os.path.lexists(f'/proc/self/fd/{fd}')}
channel = socket.socket(fileno=3)
data, fds, _, _ = socket.recv_fds(channel, 1 << 17, 3)
status = dict(l.split(':\\t') for l in open('/proc/self/status').read().split('\\n') if ':\\t' in l)
os.write(fds[1], repr([sorted(found), [found[i] for i in range(3)], os.getcwd(), os.getsid(0) == os.getpid(),
    status['Seccomp'].strip(), status['NoNewPrivs'].strip(), int(status['CapEff'], 16), int(channel.type)]).encode())
os.write(fds[1], repr(data).encode())
channel.send(b'done 2 0')
"""], keep=1))
    agent.expect("STARTED")
    out = run(agent, "", 2, args=["a", "", "b\nc"])["stdout"].decode()
    reported, request = out[: out.index("]b'") + 1], out[out.index("]b'") + 1 :]
    null = "/dev/null"
    assert json.loads(reported.replace("'", '"').replace("True", "true")) == [
        [0, 1, 2, 3], [null] * 3, "/workspace", True, "2", "1", 0, 5], out
    assert request == repr(b"run 2 /run/millibox/run2\0\0a\0\0b\nc\0")


def test_a_runner_that_cannot_be_executed_fails_its_run(agent):
    agent.send(agent.exec(["/nothing/there"], 1, keep=1), agent.ask("1", 2))
    failed = {agent.receive()[1:2] for _ in range(2)}
    assert failed == {(1,), (2,)} or failed == {(2,), (1,)}
    assert sh(agent, "ls /run/millibox", 3)["stdout"] == b""


def test_bad_runs_are_refused(python):
    for ident, (source, args, code) in enumerate([
            ("", [], "INVALID"), ("a/b", [], "INVALID"), ("..", [], "INVALID"), ("run", ["x" * 80000], "TOO_LARGE")], 10):
        python.send(frame("RUN", u32(1) + text(source) + texts(args) + u64(1) + u64(1) + u32(1) + u8(0) + u32(0), ident))
        assert python.collect(ident)["failed"]["code"] == ERR[code]
    assert run(python, "1", 30, runner=9)["failed"]["code"] == ERR["NOT_FOUND"]
    assert run(python, "print(1)", 31)["stdout"] == b"1\n"


def test_rest_of_a_failed_run_is_skipped(python):
    python.send(python.put("..", b"x", 2), python.ask("print(1)", 2), python.ask("print(2)", 3))
    assert "failed" in python.collect(2)
    assert python.collect(3)["stdout"] == b"2\n"


@pytest.mark.parametrize("bad", [
    frame("RUN", b"\1", 2), frame("RUN", u32(1) + text("a\0b") + texts([]) + u64(1) + u64(1) + u32(1) + u8(0) + u32(0), 2),
    frame("RUN", u32(1) + text("a") + texts([]) + u64(1) + u64(1) + u32(1) + u8(0) + u32(0) + b"x", 2),
    frame("RUN", u32(1) + text("a") + texts([]) + u64(1) + u64(1) + u32(1) + u8(0) + u32(0), 0),
    frame("PUT_BEGIN", u8(0) + text("a") + u32(0o444), 2)
    + frame("RUN", u32(1) + text("a") + texts([]) + u64(1) + u64(1) + u32(1) + u8(0) + u32(0), 2),
], ids=["short", "NUL", "trailing", "zero", "inside a file"])
def test_malformed_runs_end_the_agent(python, bad):
    python.send(bad)
    assert python.wait() == 1


def test_files_of_a_run_exist_before_it(python):
    python.send(python.put("data/in.txt", b"put", 2, WORKSPACE, 0o644), python.ask("open('data/in.txt').read()", 2))
    assert result(python.collect(2)) == "put"


def test_full_disk_is_reported(python):
    assert run(python, "open('fill', 'wb').write(bytes(40 << 20))", 2)["done"]["disk_full"] == 1
    assert run(python, "import os; os.remove('fill')", 3)["done"]["disk_full"] == 0


@pytest.mark.parametrize("over", [{}, {"data_limit": 1 << 30}], ids=["counted", "uncounted"])
@pytest.mark.parametrize("ids", [IDS, None], ids=["own id", "one id"])
def test_it_works_wherever_a_box_can_be(ids, over):
    agent = make(ids, **over)
    keep(agent, PYTHON)
    keep(agent, SHELL, 2)
    run(agent, "x = 20", 3)
    assert result(run(agent, "x + 1", 4)) == 21
    run(agent, "x=30; exit 3", 5, runner=2)
    assert run(agent, "echo $x", 6, runner=2)["stdout"] == b"30\n"
    assert run(agent, "ls /run/millibox", 7, runner=2)["stdout"] == b"run7\n"
    agent.close()


def test_failing_runner_does_not_stop_a_file_of_another(agent):
    begin, *rest = agent.ask("1", 2, runner=1), agent.exec(["/bin/echo", "fine"], 3)
    agent.send(agent.exec(["/nothing/there"], 1, keep=1), begin[:60])
    assert agent.receive()[:2] == ("FAILED", 1)
    agent.send(begin[60:], *rest)
    assert agent.collect(2)["failed"]["code"] == ERR["NOT_FOUND"]
    assert agent.collect(3)["stdout"] == b"fine\n"


@pytest.mark.parametrize("end", ["bye", "eof"])
def test_end_of_the_host_ends_runners_too(end):
    agent = make()
    keep(agent, PYTHON)
    run(agent, "import subprocess; subprocess.Popen(['setsid', 'sleep', '1000'])", 2)
    if end == "bye":
        agent.send(frame("BYE", u8(0)))
    else:
        agent.sock.close()
    assert agent.wait() == 0


def test_a_run_waits_for_nothing(python):
    """No other process holds its pipes: their end is its own, and what a background process would be waited for
    is longer than a test waits."""
    run(python, "x = 0", 2, drain=600_000)
    for ident in range(3, 203):
        run(python, "x += 1", ident, drain=600_000)
    assert result(run(python, "x", 300)) == 200
