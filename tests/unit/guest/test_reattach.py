# SPDX-License-Identifier: Apache-2.0
"""A box that outlives its daemon: what its agent keeps and replays to the next one."""

import json
import os
import signal
import socket
import struct

import pytest

from harness import STDIN_WINDOW, WORKSPACE, Agent, frame, text, u8, u32
from test_agent import AGENT, IDS, ROOT, can_make_namespaces
from test_resident import FILES, PYTHON, RAW, SHELL

pytestmark = pytest.mark.skipif(not can_make_namespaces(), reason="no user namespaces here")


def make(ids=IDS):
    agent = Agent(AGENT, ids, {name: (ROOT / "runners" / name).read_bytes() for name in FILES}, kept=True)
    agent.expect("HELLO")
    agent.send(agent.setup())
    return agent


@pytest.fixture
def agent():
    made = make()
    yield made
    made.close()


def sh(script):
    return ["/bin/sh", "-c", script]


def label(ident, words="label"):
    return frame("LABEL", text(words), ident)


def ack(ident):
    return frame("ACK", u8(0), ident)


def keep(agent, argv=PYTHON, ident=1, words="python"):
    agent.send(label(ident, words), agent.exec(argv, ident, keep=1))
    assert agent.expect("STARTED")["pid"] > 1
    return agent


def ask(agent, code, ident, words=None, **options):
    agent.send(label(ident, words or f"run{ident}"), agent.ask(code, ident, **options))


def run(agent, code, ident, **options):
    ask(agent, code, ident, **options)
    return agent.collect(ident)


def frames_until_done(agent, ident):
    """(name, id, fields) of everything up to DONE of @ident."""
    frames = []
    while not frames or frames[-1][:2] != ("DONE", ident):
        frames.append(agent.receive())
        assert frames[-1] is not None
    return frames


def test_variables_outlive_the_stream(agent):
    keep(agent)
    run(agent, "x = 41", 2)
    agent.send(ack(2))
    described = agent.reattach()
    assert {i: (d["keep"], d["text"]) for i, d in described.items()} == {1: (1, b"python")}
    assert agent.last_id == 2
    assert agent.receive()[:2] == ("STARTED", 1)
    assert run(agent, "print(x + 1)", 3)["stdout"] == b"42\n"


def test_a_run_continues_and_is_replayed(agent):
    keep(agent)
    ask(agent, "import sys, time\nprint('one', flush=True)\nsys.stdin.readline()\nprint('two', flush=True)\n"
               "time.sleep(0.3)\nprint('three', flush=True)\n5", 2, "exec_a", stdin=1)
    assert agent.receive()[:2] == ("STARTED", 2)
    first = agent.receive()
    assert first == ("OUTPUT", 2, {"stream": 0, "data": b"one\n"})
    agent.send(frame("STDIN", text(b"go\n"), 2))
    described = agent.reattach()
    assert described[2]["text"] == b"exec_a" and described[2]["runner"] == 1 and not described[2]["keep"]
    # What was sent last may have come or not: a reader that continues learns how much did.
    assert described[2]["stdin_open"] == 1 and described[2]["stdin_bytes"] in (0, 3)
    assert described[2]["stdin_room"] in (STDIN_WINDOW, STDIN_WINDOW - 3)
    agent.send(frame("STDIN", text(b"go\n"), 2))
    frames = [f for f in frames_until_done(agent, 2) if f[0] != "STDIN_ROOM"]
    assert [f[:2] for f in frames[:2]] == [("STARTED", 1), ("STARTED", 2)] and frames[2] == first
    outputs = [f[2]["data"] for f in frames if f[0] == "OUTPUT"]
    assert outputs[0] == b"one\n" and b"".join(outputs) == b"one\ntwo\nthree\n"
    report = b"".join(f[2]["data"] for f in frames if f[0] == "REPORT")
    assert json.loads(report)["result"] == 5
    # Sent once more, byte for byte, until it is acknowledged.
    agent.reattach()
    assert [f for f in frames_until_done(agent, 2) if f[0] != "STDIN_ROOM"] == frames
    agent.send(ack(2))
    assert list(agent.reattach()) == [1]


def test_programs_do_not_block_without_a_reader(agent):
    keep(agent, SHELL, words="shell")
    # More than all buffers on the way together, and still within what was granted.
    ask(agent, "head -c 3000000 /dev/zero | tr '\\0' 'x'", 2, out=4 << 20, words="run")
    agent.expect("STARTED")
    agent.sock.close()
    agent.reattach()
    frames = [("", 0, {})]
    while sum(len(f[2]["data"]) for f in frames if f[0] == "OUTPUT") < 3000000:
        frames.append(agent.receive())
    frames += frames_until_done(agent, 2)
    out = b"".join(f[2]["data"] for f in frames if f[0] == "OUTPUT" and f[2]["stream"] == 0)
    assert out == b"x" * 3000000 and frames[-1][2]["stdout_bytes"] == 3000000


def test_output_beyond_the_maximum_is_counted_without_a_host(agent):
    keep(agent, SHELL, words="shell")
    ask(agent, "head -c 300000 /dev/zero", 2, out=1000)
    agent.expect("STARTED")
    agent.reattach()
    frames = frames_until_done(agent, 2)
    assert sum(len(f[2]["data"]) for f in frames if f[0] == "OUTPUT") == 1000
    assert frames[-1][2]["stdout_bytes"] == 300000


def test_the_end_of_a_runner_is_not_silent(agent):
    keep(agent)
    run(agent, "x = 1", 2)
    agent.send(ack(2), frame("SIGNAL", u32(signal.SIGKILL), 1))
    assert agent.collect(1)["done"]["signalled"] == 1
    described = agent.reattach()
    assert described[1]["keep"] == 1
    assert agent.receive()[:2] == ("STARTED", 1)
    assert agent.receive()[:2] == ("DONE", 1)
    agent.send(ack(1))
    assert agent.reattach() == {}


def test_a_lost_run_comes_before_its_runner(agent):
    keep(agent)
    ask(agent, "import os, time\ntime.sleep(0.2)\nos._exit(3)", 2)
    agent.expect("STARTED")
    agent.sock.close()
    assert agent.reattach()[2]["stdin_open"] == 0
    order = [agent.receive()[:2] for _ in range(4)]
    assert order == [("STARTED", 1), ("STARTED", 2), ("DONE", 2), ("DONE", 1)]


def test_half_a_frame_of_the_old_stream_is_never_continued(agent):
    keep(agent)
    whole = label(2) + agent.ask("print('no')", 2)
    agent.send(whole[: len(whole) - 7])
    agent.reattach()
    assert agent.receive()[:2] == ("STARTED", 1)
    assert agent.last_id == 2
    assert run(agent, "print('yes')", 3)["stdout"] == b"yes\n"


def test_an_incomplete_file_of_the_old_stream_is_dropped(agent):
    keep(agent)
    agent.send(label(2), frame("PUT_BEGIN", u8(WORKSPACE) + text("half") + u32(0o644), 2),
               frame("PUT_DATA", text(b"x" * 1000), 2))
    assert list(agent.reattach()) == [1]
    agent.expect("STARTED")
    done = run(agent, "import os\nprint(os.path.exists('half') and open('half').read())", 3)
    assert done["stdout"] in (b"False\n", b"\n", b"x" * 1000 + b"\n")
    # And the place is free for another.
    agent.send(label(4), agent.put("whole", b"abc", 4, WORKSPACE, 0o644), agent.ask("print(open('whole').read())", 4))
    assert agent.collect(4)["stdout"] == b"abc\n"


def test_programs_of_their_own_are_kept_too(agent):
    agent.send(label(1, "exec_b"), agent.exec(sh("echo up; sleep 0.2; echo down"), 1))
    assert agent.receive()[:2] == ("STARTED", 1)
    assert agent.reattach()[1]["text"] == b"exec_b"
    assert agent.collect(1)["stdout"] == b"up\ndown\n"


def test_a_failure_is_replayed(agent):
    agent.send(label(1), agent.exec(["/nothing"], 1))
    assert "failed" in agent.collect(1)
    agent.reattach()
    assert "failed" in agent.collect(1)
    agent.send(ack(1))
    assert agent.reattach() == {}


@pytest.mark.parametrize("breach", [
    lambda a: a.exec(sh("true"), 1),
    lambda a: label(1, ""),
    lambda a: label(1, "x" * 65),
    lambda a: label(1) + label(1),
    lambda a: label(1) + ack(1),
    lambda a: b"".join(label(i) for i in range(1, 258)),
], ids=["no label", "empty", "long", "twice", "early ack", "too many"])
def test_breaches_end_the_agent(agent, breach):
    agent.send(breach(agent))
    while agent.receive() is not None:
        pass
    assert agent.wait() == 1


def test_label_needs_a_reattach_socket():
    agent = Agent(AGENT, IDS)
    agent.expect("HELLO")
    agent.send(agent.setup(), label(1))
    assert agent.receive()[0] == "LOG" and agent.receive() is None
    assert agent.wait() == 1
    agent.close()


def test_before_setup_nothing_is_kept():
    agent = Agent(AGENT, IDS, kept=True)
    agent.expect("HELLO")
    agent.sock.close()
    assert agent.wait() == 0
    agent.close()


def test_the_end_of_the_engine_is_the_end(agent):
    keep(agent)
    agent.sock.close()
    agent.engine_end.close()
    assert agent.wait() == 0


@pytest.mark.parametrize("words, fds", [(b"", 1), (b"x" * 8, 1), (struct.pack("<II", 0x6D62686C, 0), 0),
                                        (struct.pack("<II", 0x6D62686C, 0), 2)])
def test_malformed_messages_of_the_engine(agent, words, fds):
    keep(agent)
    ends = [os.open("/dev/null", os.O_RDONLY) for _ in range(fds)]
    if words or fds:
        socket.send_fds(agent.engine_end, [words or b"y"], ends)
    for fd in ends:
        os.close(fd)
    assert agent.wait() != 0


def test_payload_has_neither_descriptor(agent):
    keep(agent, RAW, words="raw")
    ask(agent, "os.write(fds[1], ' '.join(sorted(os.listdir('/proc/self/fd'), key=int)).encode())\n"
               "links = [os.readlink('/proc/self/fd/' + n) for n in ('3',)]\n"
               "os.write(fds[2], ' '.join(links).encode())\n"
               "try:\n    os.listdir('/proc/1/fd')\n    os.write(fds[2], b' reached')\n"
               "except OSError:\n    pass", 2)
    done = agent.collect(2)
    # stdio, the channel, three of this run, and the listing itself.
    assert done["stdout"] == b"0 1 2 3 4 5 6 7" and b"reached" not in done["stderr"]


def test_one_id_is_enough():
    agent = make(ids=None)
    keep(agent)
    run(agent, "x = 7", 2)
    agent.reattach()
    frames_until_done(agent, 2)
    # Names of descriptors may be seen where the payload is the same user; what they are may not.
    done = run(agent, "import os\nfor fd in '34':\n    for f in os.readlink, lambda p: os.open(p, os.O_RDWR):\n"
                      "        try:\n            print(f('/proc/1/fd/' + fd))\n        except OSError:\n"
                      "            print('no', x)", 3)
    assert done["stdout"] == b"no 7\n" * 4
    agent.close()
