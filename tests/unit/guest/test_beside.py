# SPDX-License-Identifier: Apache-2.0
"""Programs beside the execution, with pipes or on a terminal: docs/protocol.md, 28 to 30."""

import errno
import itertools
import signal
import time

import pytest

from harness import TERMINAL_WINDOW, Agent, frame, text, u8, u16, u32
from test_agent import AGENT, ERR, IDS, can_make_namespaces
from test_agent import sh as execute

pytestmark = pytest.mark.skipif(not can_make_namespaces(), reason="no user namespaces here")
MAX = 16
# Until something comes on stdin: the test decides when it ends.
WAIT = "echo up; read line; echo $line"
# Fills a terminal without changing its bytes, and shows when the last one was taken.
FILL = "stty -opost; head -c %d /dev/zero; stty -echo; echo end; read line"


def start(ids=IDS, kept=False):
    agent = Agent(AGENT, ids, kept=kept)
    agent.expect("HELLO")
    agent.send(agent.setup())
    return agent


@pytest.fixture
def agent():
    made = start()
    yield made
    made.close()


def sh(script):
    return ["/bin/sh", "-c", script]


def grant(count, ident):
    return frame("OUTPUT_GRANT", u32(count), ident)


def resize(rows, cols, ident):
    return frame("RESIZE", u16(rows) + u16(cols), ident)


def type_(data, ident):
    return frame("STDIN", text(data), ident)


class Seen:
    """Everything that came, by execution."""

    def __init__(self, agent):
        self.agent, self.runs = agent, {}

    def of(self, ident):
        return self.runs.setdefault(ident, {"started": False, "stdout": b"", "stderr": b"", "report": b"", "end": None, "fields": None})

    def take(self, timeout=10):
        got = self.agent.receive(timeout)
        assert got is not None, f"the agent ended: {self.runs}"
        name, ident, fields = got
        run = self.of(ident)
        assert run["end"] is None, f"{got} after the end"
        if name == "STARTED":
            run["started"] = True
        elif name == "OUTPUT":
            assert run["started"] and fields["data"]
            run[("stdout", "stderr")[fields["stream"]]] += fields["data"]
        elif name == "REPORT":
            run["report"] += fields["data"]
        elif name in ("DONE", "FAILED"):
            run["end"], run["fields"] = name, fields
        else:
            assert name in ("STDIN_ROOM", "DENIAL", "CHANGED"), got

    def until(self, found):
        while not found():
            self.take()

    def until_shown(self, ident, data):
        self.until(lambda: data in self.of(ident)["stdout"])

    def until_end(self, ident, end="DONE"):
        self.until(lambda: self.of(ident)["end"])
        assert self.of(ident)["end"] == end, self.of(ident)
        return self.of(ident)

    def bytes(self, ident):
        return len(self.of(ident)["stdout"])


@pytest.fixture
def seen(agent):
    return Seen(agent)


def test_a_program_starts_beside_the_execution(agent, seen):
    agent.send(agent.exec(sh(WAIT), 1, stdin=1))
    seen.until_shown(1, b"up")
    agent.send(agent.beside(sh("echo out; echo err >&2; exit 3"), 2))
    run = seen.until_end(2)
    assert (run["stdout"], run["stderr"], run["fields"]["status"]) == (b"out\n", b"err\n", 3)
    assert (run["fields"]["stdout_bytes"], run["fields"]["stderr_bytes"]) == (4, 4)
    assert run["fields"]["max_rss_kib"] > 0
    agent.send(type_(b"later\n", 1))
    assert seen.until_end(1)["stdout"] == b"up\nlater\n"


def test_two_run_at_once_and_the_end_of_one_ends_no_other(agent, seen):
    agent.send(agent.beside(sh(WAIT), 1, stdin=1), agent.beside(sh(WAIT), 2, stdin=1))
    seen.until_shown(1, b"up")
    seen.until_shown(2, b"up")
    # Neither does the end of an execution.
    agent.send(agent.exec(sh("echo over"), 3))
    assert seen.until_end(3)["stdout"] == b"over\n"
    agent.send(type_(b"two\n", 2))
    assert seen.until_end(2)["stdout"] == b"up\ntwo\n"
    agent.send(type_(b"one\n", 1))
    assert seen.until_end(1)["stdout"] == b"up\none\n"


@pytest.mark.parametrize("rows", [0, 24])
def test_a_kill_ends_its_session_and_no_other(agent, seen, rows):
    family = "set -m; sleep 1000 & (trap '' HUP TERM; sleep 1000) & echo $$; wait"
    agent.send(agent.beside(sh(WAIT), 1, stdin=1), agent.beside(sh(family), 2, rows, 2 * rows))
    seen.until_shown(1, b"up")
    seen.until_shown(2, b"\n")
    leader = int(seen.of(2)["stdout"].split()[0])
    look = f"for p in /proc/[0-9]*; do set -- $(sed 's/.*) //' $p/stat 2>/dev/null); [ \"$4\" = {leader} ] && echo $p; done; exit 0"
    agent.send(agent.exec(sh(look), 3))
    assert len(seen.until_end(3)["stdout"].split()) >= 3, "the search finds the processes"
    agent.send(frame("SIGNAL", u32(signal.SIGKILL), 2))
    end = seen.until_end(2)["fields"]
    assert (end["signalled"], end["status"]) == (1, signal.SIGKILL)
    # They are killed; the kernel decides when they are gone.
    end, left = time.monotonic() + 20, None
    for ident in itertools.count(4):
        agent.send(agent.exec(sh(look), ident))
        left = seen.until_end(ident)["stdout"]
        if not left or time.monotonic() > end:
            break
    assert left == b""
    agent.send(type_(b"alive\n", 1))
    assert seen.until_end(1)["stdout"] == b"up\nalive\n"


def test_a_program_that_does_not_exist_fails_alone(agent, seen):
    agent.send(agent.beside(sh(WAIT), 1, stdin=1), agent.beside(["/no/such"], 2), agent.beside(["/no/such"], 3, 24, 80))
    for ident in (2, 3):
        assert seen.until_end(ident, "FAILED")["fields"]["sys"] == errno.ENOENT
        assert not seen.of(ident)["started"]
    agent.send(type_(b"on\n", 1))
    assert seen.until_end(1)["stdout"] == b"up\non\n"


def test_more_than_the_maximum_is_refused_until_one_ends(agent, seen):
    for ident in range(1, MAX + 1):
        agent.send(agent.beside(sh(WAIT), ident, stdin=1))
    agent.send(agent.beside(["/bin/true"], MAX + 1))
    assert seen.until_end(MAX + 1, "FAILED")["fields"]["code"] == ERR["BUSY"]
    for ident in range(1, MAX + 1):
        seen.until_shown(ident, b"up")
    # The refused one is nothing to the others, nor to an execution.
    agent.send(agent.exec(["/bin/true"], MAX + 2), type_(b"bye\n", 7))
    seen.until_end(MAX + 2)
    seen.until_end(7)
    agent.send(agent.beside(sh("echo in its place"), MAX + 3))
    assert seen.until_end(MAX + 3)["stdout"] == b"in its place\n"


def test_output_of_pipes_is_cut_at_its_maximum(agent, seen):
    agent.send(agent.beside(sh("head -c 100000 /dev/zero; head -c 5000 /dev/zero >&2"), 1, out=1000, err=10))
    run = seen.until_end(1)
    assert (len(run["stdout"]), len(run["stderr"])) == (1000, 10)
    assert (run["fields"]["stdout_bytes"], run["fields"]["stderr_bytes"]) == (100000, 5000)


def test_its_source_is_removed_at_its_end(agent, seen):
    agent.send(agent.put("main.sh", b"echo from the file; read line", 1),
               agent.beside(["/bin/sh", "/run/millibox/main.sh"], 1, stdin=1, source="main.sh"))
    seen.until_shown(1, b"file")
    agent.send(agent.exec(sh("ls /run/millibox"), 2))
    assert b"main.sh" in seen.until_end(2)["stdout"]
    agent.send(type_(b"\n", 1))
    seen.until_end(1)
    agent.send(agent.exec(sh("ls /run/millibox"), 3))
    assert seen.until_end(3)["stdout"] == b""


@pytest.mark.parametrize("source", ["../etc/passwd", "a/b", ".", "..", "x" * 300])
def test_a_source_elsewhere_is_refused(agent, seen, source):
    agent.send(agent.beside(["/bin/true"], 1, source=source))
    seen.until_end(1, "FAILED")
    assert execute(agent, "echo fine", 2)["stdout"] == b"fine\n"


@pytest.mark.parametrize("ids", [IDS, None])
def test_a_terminal_has_its_size_and_gets_another(ids):
    agent = start(ids)
    seen = Seen(agent)
    agent.send(agent.beside(sh("trap 'stty size' WINCH; tty; stty size; while :; do read line && exit 0; done"), 1, 24, 80))
    seen.until_shown(1, b"24 80\r\n")
    assert seen.of(1)["stdout"] == b"/dev/pts/0\r\n24 80\r\n"
    agent.send(resize(50, 132, 1))
    # The shell runs the trap after its read.
    agent.send(type_(b"\n", 1))
    seen.until_shown(1, b"50 132")
    agent.send(frame("SIGNAL", u32(signal.SIGKILL), 1))
    seen.until_end(1)
    agent.close()


def test_input_of_a_terminal_is_typed(agent, seen):
    agent.send(agent.beside(sh("echo up; cat; echo over"), 1, 24, 80))
    seen.until_shown(1, b"up")
    agent.send(type_(b"word\n", 1))
    seen.until_shown(1, b"word\r\nword\r\n")
    agent.send(type_(b"\x04", 1))
    assert seen.until_end(1)["stdout"].endswith(b"over\r\n")


def test_typed_interrupts_and_signals_reach_the_foreground(agent, seen):
    agent.send(agent.beside(sh("set -m; trap 'echo shell' INT USR1; sh -c 'trap \"echo job; exit\" INT USR1; echo up; "
                               "while :; do sleep 0.05; done'; read line"), 1, 24, 80))
    seen.until_shown(1, b"up")
    agent.send(frame("SIGNAL", u32(signal.SIGUSR1), 1))
    seen.until_shown(1, b"job")
    assert b"shell" not in seen.of(1)["stdout"]
    agent.send(type_(b"\n", 1))
    seen.until_end(1)
    agent.send(agent.beside(sh("trap 'echo caught; exit 5' INT; echo up; while :; do sleep 0.05; done"), 2, 24, 80))
    seen.until_shown(2, b"up")
    agent.send(type_(b"\x03", 2))
    assert seen.until_end(2)["fields"]["status"] == 5


def test_output_of_a_terminal_stays_within_its_window(agent, seen):
    size = 3 * TERMINAL_WINDOW
    agent.send(agent.beside(sh(FILL % size), 1, 24, 80))
    seen.until(lambda: seen.bytes(1) >= TERMINAL_WINDOW)
    # Other messages come meanwhile, of this one none: its program waits.
    for ident in (2, 3):
        agent.send(agent.exec(["/bin/true"], ident))
        seen.until_end(ident)
    assert seen.bytes(1) == TERMINAL_WINDOW
    agent.send(grant(1, 1))
    seen.until(lambda: seen.bytes(1) > TERMINAL_WINDOW)
    agent.send(agent.exec(["/bin/true"], 4))
    seen.until_end(4)
    assert seen.bytes(1) == TERMINAL_WINDOW + 1
    agent.send(grant(TERMINAL_WINDOW, 1))
    seen.until(lambda: seen.bytes(1) > 2 * TERMINAL_WINDOW)
    agent.send(grant(TERMINAL_WINDOW - 10, 1), grant(10, 1))
    seen.until(lambda: seen.bytes(1) > size)
    agent.send(grant(TERMINAL_WINDOW, 1))
    seen.until_shown(1, b"end\n")
    assert seen.bytes(1) == size + len(b"end\n")
    agent.send(type_(b"\n", 1))
    assert seen.until_end(1)["fields"]["stdout_bytes"] == seen.bytes(1)


def test_a_full_window_delays_neither_others_nor_its_end(agent, seen):
    agent.send(agent.beside(sh(FILL % (2 * TERMINAL_WINDOW)), 1, 24, 80), agent.beside(sh(WAIT), 2, 24, 80))
    seen.until(lambda: seen.bytes(1) >= TERMINAL_WINDOW)
    seen.until_shown(2, b"up")
    agent.send(frame("SIGNAL", u32(signal.SIGKILL), 1))
    seen.until_end(1)
    # What the terminal held follows; at most another window.
    assert TERMINAL_WINDOW <= seen.bytes(1) <= 2 * TERMINAL_WINDOW
    agent.send(type_(b"on\n", 2))
    seen.until_end(2)


def test_messages_for_ended_and_unknown_programs_are_ignored(agent, seen):
    agent.send(agent.beside(["/bin/true"], 1, 24, 80))
    seen.until_end(1)
    for ident in (1, 77):
        agent.send(grant(TERMINAL_WINDOW, ident), grant(0xFFFFFFFF, ident), resize(9, 9, ident), type_(b"x", ident),
                   frame("SIGNAL", u32(9), ident))
    assert execute(agent, "echo fine", 2)["stdout"] == b"fine\n"


def test_a_size_for_pipes_is_ignored(agent, seen):
    agent.send(agent.beside(sh(WAIT), 1, stdin=1), resize(9, 9, 1), agent.exec(sh(WAIT), 2, stdin=1), resize(9, 9, 2))
    for ident in (1, 2):
        seen.until_shown(ident, b"up")
        agent.send(type_(b"fine\n", ident))
        assert seen.until_end(ident)["stdout"] == b"up\nfine\n"


MAKE = """
import os
made = []
try:
    while True:
        made.append(os.open('/dev/pts/ptmx', os.O_RDWR | os.O_NOCTTY))
except OSError as error:
    print(len(made), error.strerror, flush=True)
input()
"""


@pytest.mark.parametrize("ids", sorted({IDS, None}, key=str))
def test_terminals_are_the_agents_to_make(ids):
    """With one id for both, they are the payload's as well, up to the maximum of the box."""
    agent = start(ids)
    seen = Seen(agent)
    agent.send(agent.beside(["/usr/bin/python3", "-I", "-c", MAKE], 1, 24, 80))
    seen.until_shown(1, b"\n")
    assert seen.of(1)["stdout"] == (b"0 Permission denied\r\n" if ids else b"31 No space left on device\r\n")
    # The next one is refused only while there is none left.
    agent.send(agent.beside(sh("tty"), 2, 24, 80))
    run = seen.until_end(2, "DONE" if ids else "FAILED")
    assert ids or run["fields"]["sys"] == errno.ENOSPC
    agent.send(type_(b"\n", 1))
    seen.until_end(1)
    agent.send(agent.beside(sh("tty"), 3, 24, 80))
    assert b"/dev/pts/" in seen.until_end(3)["stdout"]
    agent.close()


CONNECT = """
import os, socket, sys
if sys.argv[2] != 'main':
    if os.fork():
        os.wait()
        sys.exit()
    if sys.argv[2] == 'leave':
        os.setsid()
s = socket.socket(socket.AF_UNIX)
s.connect('/run/millibox/report.sock')
try:
    s.sendall(sys.argv[1].encode())
    s.shutdown(socket.SHUT_WR)
    s.recv(1)  # until the agent has read or refused it
except OSError:
    pass
print('over', flush=True)
"""
REPORTER = ["/usr/bin/python3", "-I", "-c", "input()\n" + CONNECT]


@pytest.mark.parametrize("who", ["main", "child"])
@pytest.mark.parametrize("stranger", ["main", "child", "leave"])
def test_only_the_execution_itself_reports(agent, seen, who, stranger):
    agent.send(agent.beside(["/bin/sleep", "1000"], 1), agent.exec([*REPORTER, "mine", who], 2, stdin=1, report=1000))
    seen.until(lambda: seen.of(2)["started"])
    agent.send(agent.beside(["/usr/bin/python3", "-I", "-c", CONNECT, "forged", stranger], 3))
    seen.until_end(3)
    assert seen.of(2)["report"] == b""
    agent.send(type_(b"\n", 2))
    assert seen.until_end(2)["report"] == b"mine"


def test_without_programs_beside_any_process_reports(agent, seen):
    """The control: what was refused above is taken from the same kind of process."""
    agent.send(agent.exec(["/usr/bin/python3", "-I", "-c", CONNECT, "taken", "leave"], 2, report=1000))
    assert seen.until_end(2)["report"] == b"taken"


def test_the_end_of_the_host_ends_all():
    agent = start()
    seen = Seen(agent)
    agent.send(agent.beside(sh("trap '' HUP TERM INT; echo up; sleep 1000"), 1, 24, 80),
               agent.beside(sh("trap '' HUP TERM INT; echo up; sleep 1000"), 2))
    seen.until_shown(1, b"up")
    seen.until_shown(2, b"up")
    agent.send(frame("BYE", u8(0)))
    assert agent.wait() == 0


def test_a_new_host_gets_a_whole_window():
    agent = start(kept=True)
    seen = Seen(agent)
    agent.send(frame("LABEL", text("a"), 1), agent.beside(sh(FILL % (3 * TERMINAL_WINDOW)), 1, 24, 80))
    seen.until(lambda: seen.bytes(1) >= TERMINAL_WINDOW)
    described = agent.reattach()
    assert described[1]["text"] == b"a"
    seen = Seen(agent)
    seen.until(lambda: seen.bytes(1) >= TERMINAL_WINDOW)
    agent.send(frame("LABEL", text("b"), 2), agent.exec(["/bin/true"], 2))
    seen.until_end(2)
    assert seen.bytes(1) == TERMINAL_WINDOW
    agent.send(grant(TERMINAL_WINDOW, 1))
    seen.until(lambda: seen.bytes(1) > TERMINAL_WINDOW)
    agent.close()


PIPES = Agent.beside(["/bin/sleep", "9"], 1)
TERMINAL = Agent.beside(["/bin/sleep", "9"], 1, 24, 80)
MALFORMED = {
    "rows without columns": Agent.beside(["/bin/true"], 1, 24, 0),
    "columns without rows": Agent.beside(["/bin/true"], 1, 0, 80),
    "beside of no execution": Agent.beside(["/bin/true"], 0),
    "short beside": frame("BESIDE", b"\1", 1),
    "trailing bytes": frame("BESIDE", Agent.beside(["/bin/true"], 1)[12:] + b"\0", 1),
    "inside a file": frame("PUT_BEGIN", u8(0) + text("a") + u32(0o444), 1) + Agent.beside(["/bin/true"], 1),
    "an id in use": PIPES + PIPES,
    "the id of the execution": Agent.exec(["/bin/sleep", "9"], 1) + PIPES,
    "size zero": TERMINAL + resize(0, 80, 1),
    "size zero of nothing": resize(24, 0, 7),
    "size of no execution": resize(24, 80, 0),
    "grant of zero": TERMINAL + grant(0, 1),
    "grant beyond the window": TERMINAL + grant(1, 1),
    "largest grant": TERMINAL + grant(0xFFFFFFFF, 1),
    "grant for pipes": PIPES + grant(1, 1),
    "grant of no execution": grant(1, 0),
    "short grant": frame("OUTPUT_GRANT", b"\1", 1),
}


@pytest.mark.parametrize("bad", MALFORMED.values(), ids=MALFORMED.keys())
def test_violations_end_the_agent(agent, bad):
    agent.send(bad)
    assert agent.wait() == 1
