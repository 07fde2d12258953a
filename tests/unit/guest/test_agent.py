# SPDX-License-Identifier: Apache-2.0
"""The agent as its host sees it: frames in, frames out, whatever the program inside does."""

import contextlib
import errno
import hashlib
import os
import pathlib
import re
import signal
import struct
import subprocess
import time

import pytest

from harness import (RUN, STDIN_WINDOW, TYPES, VERSION, WORKSPACE, Agent, frame, text, u8, u32, u64)

AGENT = os.environ["MILLIBOX_AGENT"]
ROOT = pathlib.Path(__file__).parents[3]
MIB = 1 << 20
# Two ids that no user has; an ordinary user has only the one.
IDS = 1_900_000_000 if os.getuid() == 0 else None
SANITIZED = "asan" in subprocess.run(["ldd", AGENT], capture_output=True, text=True).stdout
ERR = {name: number for number, name in enumerate(re.findall(
    r"^ERROR_CODE\((\w+)", (ROOT / "lib/base/error_codes.def").read_text(), flags=re.M))}
LAYERS = {"caps": 12, "no_new_privs": 13, "seccomp": 14, "landlock": 15, "rlimits": 16}


def can_make_namespaces():
    made = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "true"],
                          capture_output=True)
    return made.returncode == 0 or os.environ.get("MILLIBOX_MUST_WORK") == "1"


pytestmark = pytest.mark.skipif(not can_make_namespaces(), reason="no user namespaces here")


def start(ids=IDS):
    agent = Agent(AGENT, ids)
    agent.hello = agent.expect("HELLO")
    return agent


@pytest.fixture
def agent():
    made = start()
    made.send(made.setup())
    yield made
    made.close()


def sh(agent, script, ident=1, **options):
    return agent.run(["/bin/sh", "-c", script], ident=ident, **options)


def python(agent, code, ident=1, **options):
    return agent.run(["/usr/bin/python3", "-I", "-c", code], ident=ident, **options)


def test_hello_comes_first():
    agent = start()
    assert agent.hello["version"] == VERSION
    for name in ("caps", "no_new_privs", "seccomp", "rlimits"):
        assert agent.hello["layers"] & 1 << LAYERS[name], name
    assert bool(agent.hello["layers"] & 1 << LAYERS["landlock"]) == (agent.hello["landlock_abi"] > 0)
    agent.close()


@pytest.mark.parametrize("stream", ["socket", "pipes"])
def test_a_runtime_may_pass_only_the_standard_descriptors(stream):
    agent = Agent(AGENT, IDS, stdio=stream)
    assert agent.expect("HELLO")["version"] == VERSION
    agent.send(agent.setup())
    run = sh(agent, "echo out; echo err >&2; cat; readlink /proc/self/fd/*; exit 7")
    assert run["stdout"].startswith(b"out\n") and run["stderr"] == b"err\n" and run["done"]["status"] == 7
    # Neither the stream nor what the runtime left open.
    assert b"socket" not in run["stdout"] and len(run["stdout"].split()) <= 5, run["stdout"]
    data = os.urandom(3 * MIB)
    agent.send(agent.put("big", data, ident=2, place=WORKSPACE), agent.exec(["/bin/cat", "/workspace/big"], ident=2, out=4 * MIB))
    assert agent.collect(2)["stdout"] == data
    agent.close()


def test_program_runs_and_its_end_is_reported(agent):
    begin = time.monotonic()
    run = sh(agent, "echo out; echo err >&2; exit 7")
    assert run["stdout"] == b"out\n" and run["stderr"] == b"err\n"
    assert run["started"][0]["pid"] > 1
    done = run["done"]
    assert (done["signalled"], done["status"]) == (0, 7)
    assert (done["stdout_bytes"], done["stderr_bytes"]) == (4, 4)
    assert 0 < done["duration_us"] <= (time.monotonic() - begin) * 1e6 and done["max_rss_kib"] > 0
    assert done["disk_full"] == 0 and run["denials"] == {}


def test_death_by_signal_is_reported(agent):
    done = sh(agent, "kill -SEGV $$")["done"]
    assert (done["signalled"], done["status"]) == (1, signal.SIGSEGV)


def test_one_box_runs_several_programs_one_after_another(agent):
    for ident in range(1, 6):
        run = sh(agent, f"echo {ident}", ident)
        assert run["stdout"] == b"%d\n" % ident


def test_everything_may_be_sent_before_hello():
    agent = Agent(AGENT, IDS)
    agent.send(agent.setup(), agent.put("main.sh", b"echo piped"),
               agent.exec(["/bin/sh", "/run/millibox/main.sh"]))
    agent.expect("HELLO")
    assert agent.collect()["stdout"] == b"piped\n"
    agent.close()


@pytest.mark.skipif(IDS is None, reason="needs a second id")
def test_payload_has_other_ids_and_no_rights(agent):
    run = sh(agent, "id -u; id -g; grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups)' /proc/self/status")
    lines = run["stdout"].decode().split("\n")
    assert lines[:2] == ["1000", "1000"]
    status = dict(line.split(":\t") for line in lines[2:] if line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and not status["Groups"].strip()


def test_payload_starts_with_stdio_only_and_a_clean_slate(agent):
    run = python(agent, """
import os, resource, signal, sys
print(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1])
print(os.environ == {'PATH': '/usr/bin:/bin', 'LC_CTYPE': 'C.UTF-8'}, os.getcwd(), oct(os.umask(0)))
print(os.getsid(0) == os.getpid(), sys.stdin.read() == '')
bad = [s for s in range(1, 65) if s not in (2, 9, 13, 19, 25, 32, 33)
       and signal.getsignal(s) != signal.SIG_DFL]
print(bad, signal.pthread_sigmask(signal.SIG_BLOCK, []))
for name in ('CORE', 'NOFILE', 'NPROC', 'FSIZE', 'MEMLOCK', 'MSGQUEUE', 'SIGPENDING', 'RTPRIO', 'NICE'):
    print(name, *resource.getrlimit(getattr(resource, 'RLIMIT_' + name)))
""")
    lines = run["stdout"].decode().split("\n")
    assert lines[:4] == ["[0, 1, 2]", "True /workspace 0o22", "True True", "[] set()"], run
    limits = {name: (int(soft), int(hard)) for name, soft, hard in (l.split() for l in lines[4:-1])}
    assert limits["CORE"] == (1, 1) and limits["RTPRIO"] == limits["NICE"] == (0, 0)
    assert limits["NOFILE"] == (1024, 1024) and limits["FSIZE"] == (1 << 30, 1 << 30)
    assert limits["MSGQUEUE"] == (65536, 65536) and limits["SIGPENDING"][1] <= 4096


def test_a_program_that_cannot_be_executed_fails_and_the_box_continues(agent):
    for ident, (argv, cwd, sys) in enumerate([
            (["/nothing/there"], "", errno.ENOENT), (["/etc"], "", errno.EACCES),
            (["sh"], "", 0), ([], "", 0), (["/bin/sh"], "not/there", errno.ENOENT),
            (["/bin/sh"], "../etc", 0), (["/bin/sh"], "/etc", 0)], start=1):
        run = agent.run(argv, ident=ident, cwd=cwd)
        assert run["failed"]["sys"] == sys, (argv, run)
        assert run["failed"]["text"], argv
    assert sh(agent, "echo fine", 99)["stdout"] == b"fine\n"


def test_second_program_at_the_same_time_is_refused(agent):
    agent.send(agent.exec(["/bin/sleep", "30"], 1), agent.exec(["/bin/true"], 2))
    assert agent.expect("FAILED")["code"] == ERR["CONFLICT"]
    agent.expect("STARTED")
    agent.send(frame("SIGNAL", u32(signal.SIGTERM), 1))
    assert agent.collect(1)["done"]["status"] == signal.SIGTERM


def test_files_exist_before_the_program_starts(agent):
    big = os.urandom(3 * MIB)
    agent.send(agent.put("main.sh", b"sha256sum a/b/c; stat -c '%a %u %s' a/b/c a/b /run/millibox/main.sh; "
                         b"echo x > /run/millibox/main.sh; rm -f /run/millibox/main.sh"),
               agent.put("a/b/c", big, place=WORKSPACE, mode=0o4751))
    run = agent.run(["/bin/sh", "/run/millibox/main.sh"])
    out = run["stdout"].decode().split("\n")
    assert out[0].split()[0] == hashlib.sha256(big).hexdigest()
    assert out[1] == f"751 {agent.uid} {len(big)}"  # no set-id bit
    assert out[2].startswith(f"755 {agent.uid} ")
    if IDS:
        assert out[3].startswith("444 0 ")
        assert b"cannot create" in run["stderr"] and b"cannot remove" in run["stderr"]


@pytest.mark.parametrize("path", ["", "/etc/x", "a//b", "a/", "..", "a/../b", "./a", "x" * 256,
                                  "/".join("a" * 33), "a" * 5000, "a/.", "report.sock/../x"])
@pytest.mark.parametrize("place", [RUN, WORKSPACE])
def test_bad_paths_of_files_are_refused(agent, path, place):
    agent.send(agent.put(path, b"data", place=place), agent.exec(["/bin/true"]))
    assert agent.collect()["failed"]["code"] == ERR["INVALID"]
    assert sh(agent, "ls /workspace /run/millibox", 2)["done"]["status"] == 0


def test_rest_of_a_failed_execution_is_skipped(agent):
    agent.send(agent.put("..", b"x" * 200000), agent.put("fine", b"data"), agent.exec(["/bin/echo", "no"]),
               frame("STDIN", text(b"data"), 1), agent.exec(["/bin/echo", "yes"], 2))
    assert "failed" in agent.collect(1)
    assert agent.collect(2)["stdout"] == b"yes\n"


def test_files_in_run_are_new(agent):
    agent.send(agent.put("main.sh", b"true", 1), agent.exec(["/bin/true"], 1))
    agent.collect(1)
    agent.send(agent.put("main.sh", b"true", 2), agent.exec(["/bin/true"], 2))
    assert agent.collect(2)["failed"]["sys"] == errno.EEXIST


@pytest.mark.parametrize("trap", ["ln -s /tmp/target x", "mkfifo x", "touch y; ln y x", "mkdir x",
                                  "ln -s /tmp x; true", "ln -s ../../tmp x"])
def test_planted_links_and_special_files_are_not_followed(agent, trap):
    path = "x/z" if "true" in trap or ".." in trap else "x"
    sh(agent, trap)
    agent.send(agent.put(path, b"data", 2, WORKSPACE), agent.exec(["/bin/true"], 2))
    assert agent.collect(2)["failed"]["code"] == ERR["INVALID"]  # opening a pipe would never end
    assert sh(agent, "ls /tmp", 3)["stdout"] == b""


def test_file_that_does_not_fit_is_refused(agent):
    agent.send(agent.put("big", bytes(40 * MIB), place=WORKSPACE), agent.exec(["/bin/true"]))
    assert agent.collect()["failed"]["sys"] == errno.ENOSPC


def test_stdin_reaches_the_program_completely(agent):
    data = os.urandom(2 * MIB)
    agent.send(agent.exec(["/usr/bin/sha256sum"], stdin=1))
    agent.expect("STARTED")
    window, pos = STDIN_WINDOW, 0
    while pos < len(data):
        while window and pos < len(data):
            piece = data[pos : pos + min(window, 50000)]
            agent.send(frame("STDIN", text(piece), 1))
            pos, window = pos + len(piece), window - len(piece)
        if pos < len(data):
            window += agent.expect("STDIN_ROOM")["bytes"]
            assert window <= STDIN_WINDOW
    agent.send(frame("STDIN_END", u8(0), 1))
    assert agent.collect()["stdout"].split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_stdio_can_be_opened_by_name(agent):
    agent.send(agent.exec(["/bin/sh", "-c", "echo a >/proc/self/fd/1; echo b >>/proc/self/fd/2; cat /proc/self/fd/0"],
                          stdin=1), frame("STDIN", text("c"), 1), frame("STDIN_END", u8(0), 1))
    run = agent.collect()
    assert (run["stdout"], run["stderr"]) == (b"a\nc", b"b\n")


def test_program_that_does_not_read_its_stdin_costs_nothing(agent):
    agent.send(agent.exec(["/bin/sh", "-c", "exec 0<&-; echo closed; sleep 0.3"], stdin=1))
    agent.expect("STARTED")
    assert agent.expect("OUTPUT")["data"] == b"closed\n"
    agent.send(frame("STDIN", text(bytes(60000)), 1), frame("STDIN_END", u8(0), 1))
    assert agent.collect()["done"]["status"] == 0


def test_stdin_beyond_the_window_ends_the_agent(agent):
    agent.send(agent.exec(["/bin/sleep", "30"], stdin=1))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may have ended before the last one
        for _ in range(8):
            agent.send(frame("STDIN", text(bytes(65536)), 1))
    assert agent.wait() == 1


def test_output_is_cut_at_the_maximum_and_counted_beyond(agent):
    run = sh(agent, "head -c 100000 /dev/zero; head -c 70000 /dev/zero >&2", out=1000, err=69999)
    assert len(run["stdout"]) == 1000 and len(run["stderr"]) == 69999
    assert run["done"]["stdout_bytes"] == 100000 and run["done"]["stderr_bytes"] == 70000


def test_gigabyte_of_output_costs_no_memory(agent):
    before = agent.memory_kib()
    agent.send(agent.exec(["/usr/bin/head", "-c", str(1 << 30), "/dev/zero"], out=MIB))
    run = agent.collect(timeout=120)
    assert len(run["stdout"]) == MIB and run["done"]["stdout_bytes"] == 1 << 30
    assert agent.memory_kib() - before < (65536 if SANITIZED else 2048)


def test_a_host_that_does_not_read_blocks_the_program(agent):
    agent.send(agent.exec(["/usr/bin/head", "-c", str(32 * MIB), "/dev/zero"], out=64 * MIB))
    time.sleep(0.5)
    assert agent.memory_kib() < (131072 if SANITIZED else 4096)
    run = agent.collect()
    assert len(run["stdout"]) == 32 * MIB and run["done"]["status"] == 0


def test_many_tiny_writes_arrive_in_order(agent):
    run = python(agent, "import os\nfor i in range(20000): os.write(1 + i % 2, b'%d\\n' % i)")
    assert run["stdout"] == b"".join(b"%d\n" % i for i in range(0, 20000, 2))
    assert run["stderr"] == b"".join(b"%d\n" % i for i in range(1, 20000, 2))


def test_background_processes_neither_delay_the_answer_nor_survive(agent):
    # They sleep for longer than collect() waits.
    run = sh(agent, "setsid sleep 300 & (setsid sh -c 'trap \"\" TERM INT HUP; sleep 300' &); echo main")
    assert run["stdout"] == b"main\n"
    # They are killed before the next program starts, but the scheduler decides when they are dead.
    # None exits by itself in that time.
    left = python(agent, LOOK, 2)["stdout"].split()
    assert b"agent" in left and b"sleep" not in left


def test_output_in_the_pipe_at_the_end_is_not_lost(agent):
    for ident in range(1, 30):
        run = sh(agent, "printf x; printf y >&2", ident, drain=0)
        assert (run["stdout"], run["stderr"]) == (b"x", b"y")


def test_background_flood_does_not_keep_an_execution_alive(agent):
    """The flood never ends, and is silent beyond the maximum: collect() would wait in vain."""
    run = sh(agent, "yes & echo main", drain=300)
    assert run["done"]["status"] == 0


def test_orphans_are_reaped_at_once(agent):
    most = 2 + (IDS is None)
    run = python(agent, f"""
import os, time
for i in range(1000):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
def count(): return sum(1 for p in os.listdir('/proc') if p.isdigit())
end = time.monotonic() + 10
while count() > {most} and time.monotonic() < end: time.sleep(0.01)
print(count())
""")
    assert int(run["stdout"]) <= most, run


def test_signal_reaches_the_whole_execution(agent):
    agent.send(agent.exec(["/bin/sh", "-c", "setsid sleep 100 & echo up; wait"]))
    agent.expect("STARTED")
    agent.expect("OUTPUT")
    agent.send(frame("SIGNAL", u32(signal.SIGTERM), 1))
    done = agent.collect()["done"]
    assert (done["signalled"], done["status"]) == (1, signal.SIGTERM)


WRITE, FILE = 3, 900


def begin_upload(agent, name="up"):
    """A file operation that stays open until finish_upload."""
    agent.send(frame("FILE_OPEN", u8(WRITE) + u32(0) + text(name) + text("") + u64(0) + u64(1 << 20) + u32(0o644)
                     + u32(0), FILE), frame("FILE_DATA", text(b"first "), FILE))
    agent.expect("FILE_ROOM")  # once, when the bytes are in the worker's pipe


def finish_upload(agent):
    agent.send(frame("FILE_DATA", text(b"last"), FILE), frame("FILE_END", u8(0), FILE))
    while True:
        name, _, fields = agent.receive()
        assert name in ("FILE_ROOM", "FILE_ENTRY", "FILE_DONE"), (name, fields)
        if name == "FILE_DONE":
            return


def collect_beside_upload(agent, ident=1):
    """As collect; the upload gives its window back meanwhile."""
    while True:
        name, of, fields = agent.receive()
        if name == "DONE" and of == ident:
            return fields


LOOK = """
import glob, time
def names():
    for path in glob.glob('/proc/[0-9]*/comm'):
        try:
            yield open(path).read().strip()
        except OSError:
            pass
end = time.monotonic() + 20
while 'sleep' in names() and time.monotonic() < end:
    time.sleep(0.01)
print(*names())
"""
# Out of the group, the session and the family: (setsid sleep &) is a child of PID 1.
ESCAPE = "(setsid sh -c 'trap \"\" TERM INT HUP; (setsid sleep 100 &)' &); setsid sleep 100 & "


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_processes_outside_the_group_end_with_the_program_during_an_upload(agent, end):
    begin_upload(agent)
    agent.send(agent.exec(["/bin/sh", "-c", ESCAPE + "echo up; " + ("exit 0" if end == "exit" else "sleep 100")]))
    while agent.receive()[0] != "OUTPUT":
        pass
    if end == "kill":
        agent.send(frame("SIGNAL", u32(signal.SIGKILL), 1))
    collect_beside_upload(agent)
    # The upload is still open, and not even the next program's end is its end.
    left = python(agent, LOOK, 2)["stdout"].split()
    assert b"agent" in left and b"sleep" not in left
    finish_upload(agent)
    assert sh(agent, "cat up", 3)["stdout"] == b"first last"


def test_an_abandoned_upload_cleans_up_during_a_kill(agent):
    for ident in range(1, 20, 2):
        begin_upload(agent)
        agent.send(agent.exec(["/bin/sh", "-c", "until ls -a | grep -q part; do :; done; echo up; sleep 100"], ident))
        while agent.receive()[0] != "OUTPUT":
            pass
        agent.send(frame("FILE_CANCEL", u8(0), FILE), frame("SIGNAL", u32(signal.SIGKILL), ident))
        collect_beside_upload(agent, ident)
        left = sh(agent, "i=0; while ls -a | grep part && [ $i -lt 200 ]; do sleep 0.02; i=$((i+1)); done; ls -a", ident + 1)
        assert left["stdout"].split()[-2:] == [b".", b".."], left


def test_a_forking_process_ends_with_the_program_during_an_upload(agent):
    begin_upload(agent)
    agent.send(agent.exec(["/usr/bin/python3", "-I", "-c", """
import os, time
read, write = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        os.write(write, b'x')
        while True:  # the parent is gone before anybody can look at it twice
            try:
                if os.fork() > 0:
                    os._exit(0)
            except OSError:
                pass
for _ in range(4):
    os.read(read, 1)
print('up', flush=True)
time.sleep(100)
"""]))
    while agent.receive()[0] != "OUTPUT":
        pass
    agent.send(frame("SIGNAL", u32(signal.SIGKILL), 1))
    collect_beside_upload(agent)
    # Each of them would be a new pid, however short it is there.
    quiet = python(agent, """
import time
def last():
    return open('/proc/loadavg').read().split()[-1]
end = time.monotonic() + 5
before, now = None, last()
while before != now and time.monotonic() < end:
    time.sleep(0.1)
    before, now = now, last()
print(before == now)
""", 2)["stdout"]
    assert quiet == b"True\n"


def test_signal_for_another_execution_is_ignored(agent):
    agent.send(agent.exec(["/bin/sh", "-c", "sleep 0.2; echo alive"]), frame("SIGNAL", u32(9), 7))
    assert agent.collect()["stdout"] == b"alive\n"


def test_payload_cannot_harm_the_agent(agent):
    run = python(agent, """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
for sig in (9, 15, 19, 17, 11, 13):
    for pid in (1, -1):
        if pid == -1 and sig in (9, 15, 19, 11, 13): signal.signal(sig, signal.SIG_IGN) if sig not in (9, 19) else None
        if pid == 1:
            try: os.kill(pid, sig)
            except OSError: pass
for what in ('mem', 'environ', 'fd', 'maps', 'root', 'exe'):
    try: open('/proc/1/' + what, 'rb').read(); print('read', what)
    except OSError: pass
    try: os.listdir('/proc/1/' + what); print('listed', what)
    except OSError: pass
print(libc.prlimit(1, 7, None, ctypes.create_string_buffer(16)), ctypes.get_errno())
print(libc.ptrace(16, 1, 0, 0), ctypes.get_errno())
print('alive')
""")
    assert run["stdout"].decode().split("\n") == ["-1 1", "-1 1", "alive", ""], run
    assert sh(agent, "echo still", 2)["stdout"] == b"still\n"


def test_refusals_are_counted_per_call(agent):
    run = python(agent, """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    ctypes.set_errno(0)
    return libc.syscall(*(ctypes.c_long(a) for a in args)), ctypes.get_errno()
for i in range(5): print(call(165, 0, 0, 0, 0, 0))    # mount
print(call(272, 0x10000000))                          # unshare
print(call(41, 38, 5, 0))                             # socket(AF_ALG)
print(call(41, (1 << 32) | 40, 1, 0))                 # socket(AF_VSOCK), upper bit set
print(call(56, 0x10000000 | 17, 0, 0, 0, 0))          # clone(NEWUSER)
print(call(435, 0, 0))                                # clone3
print(call(425, 1, 0))                                # io_uring_setup
print(call(16, 0, (7 << 32) | 0x5412, 0))             # ioctl(TIOCSTI), upper bits set
print(call(0x40000000 | 39))                          # getpid of x32
print(call(999))
""")
    lines = run["stdout"].decode().split("\n")
    assert lines[:9] == ["(-1, 1)"] * 9, run
    assert lines[9:11] == ["(-1, 38)"] * 2 and lines[11] == "(-1, 1)", lines
    assert lines[12:14] == ["(-1, 38)"] * 2
    assert run["denials"] == {165: 5, 272: 1, 41: 2, 56: 1, 16: 1}


def test_more_kinds_of_refusals_than_are_reported(agent):
    run = python(agent, """
import ctypes
libc = ctypes.CDLL(None)
for nr in range(450):
    if nr in %r: libc.syscall(ctypes.c_long(nr), 0, 0, 0, 0, 0)
""" % (sorted({165, 166, 155, 161, 101, 310, 311, 312, 298, 321, 323, 250, 248, 249, 304, 303, 175,
               313, 176, 246, 320, 163, 179, 167, 168, 169, 103, 153, 164, 227, 159, 305, 170, 171,
               172, 173, 154, 300, 301, 279, 256, 251}),))
    assert run["done"]["status"] == 0 and len(run["denials"]) == 32


def test_flood_of_refusals_does_not_starve_the_agent(agent):
    agent.send(agent.exec(["/usr/bin/python3", "-I", "-c", """
import ctypes, os
libc = ctypes.CDLL(None)
for i in range(3): os.fork()
def flood(): libc.syscall(ctypes.c_long(165), 0, 0, 0, 0, 0)
for i in range(200): flood()
os.write(1, b'.')
while True: flood()
"""]))
    agent.expect("STARTED")
    agent.expect("OUTPUT")
    agent.send(frame("SIGNAL", u32(signal.SIGKILL), 1))
    run = agent.collect()
    assert run["done"]["signalled"] == 1 and run["denials"][165] > 100


def test_fork_bomb_leaves_the_agent_working(agent):
    # In a subshell: the shell itself would fail if the first half left it no process for the second.
    agent.send(agent.exec(["/bin/sh", "-c", "sleep 0.5 & p=$!; f() { f | f & }; (f); wait $p; echo over"]))
    assert agent.collect(timeout=60)["done"]["status"] == 0
    assert sh(agent, "echo fine", 2)["stdout"] == b"fine\n"


REPORT = """
import socket, sys, array
s = socket.socket(socket.AF_UNIX)
s.connect('/run/millibox/report.sock')
"""


def test_report_is_forwarded(agent):
    run = python(agent, REPORT + "s.sendall(b'{\"result\": 1}')", report=1000)
    assert run["report"] == b'{"result": 1}' and run["done"]["status"] == 0


def test_report_is_cut_at_its_maximum(agent):
    run = python(agent, REPORT + """
try: s.sendall(b'x' * 3000000)
except OSError: print('cut')
""", report=100000)
    assert run["report"] == b"x" * 100000 and run["stdout"] == b"cut\n"


SAY = "import socket\ns=socket.socket(socket.AF_UNIX)\ns.connect('/run/millibox/report.sock')\ns.sendall(b'%d')"


def test_payload_with_the_agents_own_id_finds_its_directory_closed():
    agent = start(ids=None)
    agent.send(agent.setup())
    for ident in (1, 2):
        agent.send(agent.put(f"main{ident}.sh", b"test -w /run/millibox && echo open; exit 0", ident))
        run = sh(agent, f". /run/millibox/main{ident}.sh", ident)
        assert run["stdout"] == b"" and run["done"]["status"] == 0, run
    # The socket of the first is in the way of nothing.
    for ident in (3, 4):
        assert python(agent, SAY % ident, ident, report=100)["report"] == b"%d" % ident
    agent.close()


def test_there_is_one_report_only_and_only_on_request(agent):
    run = python(agent, REPORT + """
s.sendall(b'one'); s.shutdown(socket.SHUT_WR); s.recv(1)  # the agent has read it
try: socket.socket(socket.AF_UNIX).connect('/run/millibox/report.sock')
except OSError: print('refused')
""", report=1000)
    assert run["report"] == b"one" and run["stdout"] == b"refused\n"
    run = python(agent, REPORT, 2, report=0)
    assert run["done"]["status"] == 1 and b"FileNotFoundError" in run["stderr"]


def test_descriptors_sent_with_a_report_are_dropped(agent):
    run = python(agent, REPORT + """
import os
r, w = os.pipe()
s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [w]))])
os.close(w); s.close()
print(os.read(r, 1) == b'')
""", report=1000)
    assert run["stdout"] == b"True\n" and run["report"] == b"x"


def test_open_report_connection_does_not_delay_the_end(agent):
    """The child sleeps for longer than collect() waits."""
    run = python(agent, REPORT + """
import os
s.sendall(b'x')
if os.fork() == 0:
    os.close(1); os.close(2)
    import time; time.sleep(300)
""", report=1000)
    assert run["report"] == b"x"


# Memory that RLIMIT_DATA does not count, or for which it is the wrong limit.
UNCOUNTED = """
import ctypes, errno, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
SIZE = 96 << 20
def look(name, work):
    try:
        print(name, 'ok' if work() >= 0 else errno.errorcode[ctypes.get_errno()])
    except OSError as e:
        print(name, errno.errorcode[e.errno])
def zero():
    fd = os.open('/dev/zero', os.O_RDWR)
    return len(mmap.mmap(fd, SIZE, flags=mmap.MAP_SHARED))
def grows():
    libc.mmap.restype = ctypes.c_ssize_t
    return libc.mmap(None, ctypes.c_size_t(SIZE), 3, 0x122, -1, ctypes.c_size_t(0))
look('private', lambda: len(mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)))
look('shared', lambda: len(mmap.mmap(-1, SIZE)))
look('grows', grows)
look('zero', zero)
look('memfd', lambda: os.memfd_create('x'))
look('shm', lambda: libc.shmget(0, ctypes.c_size_t(SIZE), 0o1600))
look('sem', lambda: libc.semget(0, 4, 0o1600))
look('msg', lambda: libc.msgget(0, 0o1600))
f = os.open('/tmp/f', os.O_RDWR | os.O_CREAT); os.ftruncate(f, 4096)
look('file', lambda: len(mmap.mmap(f, 4096)))
look('readzero', lambda: len(mmap.mmap(os.open('/dev/zero', 0), 4096, flags=mmap.MAP_PRIVATE, prot=1)))
"""


def test_memory_is_bounded_where_no_controller_counts_it():
    agent = start()
    agent.send(agent.setup(data_limit=64 * MIB))
    run = python(agent, UNCOUNTED)
    seen = dict(line.split() for line in run["stdout"].decode().splitlines())
    if not agent.hello["landlock_abi"]:
        seen.pop("zero")
    wanted = dict(private="ENOMEM", shared="ENOMEM", grows="ENOMEM", zero="EACCES", memfd="ENOSYS", shm="ENOSYS",
                  sem="ENOSYS", msg="ENOSYS", file="ok", readzero="ok")
    assert seen == {name: wanted[name] for name in seen} and len(seen) >= 9, run
    assert run["denials"] == {}
    agent.close()


def test_all_kinds_of_memory_are_allowed_where_a_controller_counts(agent):
    run = python(agent, UNCOUNTED)
    seen = dict(line.split() for line in run["stdout"].decode().splitlines())
    assert len(seen) == 10 and set(seen.values()) == {"ok"}, run


def test_full_disk_is_reported(agent):
    run = sh(agent, "head -c 40M /dev/zero > /workspace/fill; exit 3")
    assert run["done"]["disk_full"] == 1 and run["done"]["status"] == 3
    assert sh(agent, "rm /workspace/fill; cd /tmp; for i in $(seq 600); do : > $i || exit 4; done",
              2)["done"]["disk_full"] == 1


def test_landlock_matches_the_mounts(agent):
    if agent.hello["landlock_abi"] < 1:
        pytest.skip("the kernel has no Landlock")
    # The root of this test is writable for the agent's own id, which the payload shares here.
    single = start(None)
    single.send(single.setup(landlock=1))
    run = sh(single, "for d in / /etc /usr /run /run/millibox /dev; do touch $d/x 2>&1; done; "
             "for d in /workspace /tmp /dev/shm; do touch $d/x && echo ok; done; echo > /dev/null; ls /")
    out = run["stdout"].decode()
    assert out.count("ok\n") == 3 and run["done"]["status"] == 0, run
    assert sum("ermission denied" in line for line in out.split("\n")) == 6, out
    single.close()


MALFORMED = {
    "unknown type": frame(99),
    "type zero": frame(0),
    "type of the agent": frame("DONE", bytes(71)),
    "too long": struct.pack("<IHHI", 128 * 1024 + 1, TYPES["EXEC"], 0, 1),
    "reserved bytes": struct.pack("<IHHI", 1, TYPES["BYE"], 1, 0) + b"\0",
    "short message": frame("EXEC", b"\1", 1),
    "trailing bytes": frame("BYE", b"\0\0"),
    "NUL in a string": frame("PUT_BEGIN", u8(RUN) + text(b"a\0b") + u32(0o444), 1),
    "huge count": frame("EXEC", u32(0xFFFFFFFF), 1),
    "unknown place": frame("PUT_BEGIN", u8(2) + text("a") + u32(0o444), 1),
    "data without begin": frame("PUT_DATA", text(b"x"), 1),
    "end without begin": frame("PUT_END", u8(0), 1),
    "execution zero": Agent.exec(["/bin/true"], ident=0),
    "stdin after its end": Agent.exec(["/bin/sleep", "9"], stdin=1) + frame("STDIN_END", u8(0), 1)
    + frame("STDIN", text(b"late"), 1),
    "signal zero": frame("SIGNAL", u32(0), 1),
    "signal 65": frame("SIGNAL", u32(65), 1),
    "bye of an execution": frame("BYE", u8(0), 1),
    "program inside a file": frame("PUT_BEGIN", u8(RUN) + text("a") + u32(0o444), 1)
    + Agent.exec(["/bin/true"]),
}


@pytest.mark.parametrize("bad", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_frames_end_the_agent(agent, bad):
    agent.send(bad)
    assert agent.wait() == 1


def test_setup_comes_first_and_once():
    agent = start()
    agent.send(Agent.exec(["/bin/true"]))
    assert agent.wait() == 1
    agent = start()
    agent.send(agent.setup(), agent.setup())
    assert agent.wait() == 1


def test_other_version_is_refused():
    agent = start()
    agent.send(agent.setup(version=VERSION + 1))
    assert agent.expect("FAILED")["code"] == ERR["PROTOCOL"]
    assert agent.wait() == 0


@pytest.mark.parametrize("end", ["bye", "eof"])
def test_end_of_the_host_ends_everything(end):
    agent = start()
    agent.send(agent.setup(), agent.exec(["/bin/sh", "-c", "trap '' TERM HUP; setsid sleep 1000 & sleep 1000"]))
    agent.expect("STARTED")
    if end == "bye":
        agent.send(frame("BYE", u8(0)))
    else:
        agent.sock.close()
    begin = time.monotonic()
    assert agent.wait() == 0 and time.monotonic() - begin < 100  # both sleep for a thousand


def test_end_of_the_host_is_seen_even_in_the_middle_of_a_file():
    agent = start()
    agent.send(agent.setup(), frame("PUT_BEGIN", u8(WORKSPACE) + text("f") + u32(0o644), 1),
               *[frame("PUT_DATA", text(bytes(60000)), 1) for _ in range(3)])
    agent.sock.close()
    assert agent.wait() == 0


def test_frames_may_come_in_pieces(agent):
    data = agent.put("slow.sh", b"echo slow") + agent.exec(["/bin/sh", "/run/millibox/slow.sh"])
    for pos in range(len(data)):
        agent.sock.send(data[pos : pos + 1])
    assert agent.collect()["stdout"] == b"slow\n"


@pytest.mark.skipif(SANITIZED, reason="not the program that is shipped")
def test_agent_is_small_and_static():
    assert os.path.getsize(AGENT) < 300_000
    headers = subprocess.run(["readelf", "-d", AGENT], capture_output=True, text=True).stdout
    assert "no dynamic section" in headers
