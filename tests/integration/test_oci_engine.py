# SPDX-License-Identifier: Apache-2.0
"""millibox-oci starts the real runtimes: what its boxes are, what they leave, and what happens if a runtime is not what it should be."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest

from support import host
from support.engine import BUILD, EGRESS, GATEWAY, KEEP, MIB, REQUIRE_CGROUP, Engine, harness

pytestmark = pytest.mark.phases("system")

PROGRAMS = {"bwrap": "bwrap", "runc": "runc", "crun": "crun", "runsc": "runsc"}
NAMESPACE = ["bwrap", "runc", "crun"]
STRICT = {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup_ns", "cgroup.memory", "cgroup.pids", "cgroup.cpu", "uid_range"}
AGENT = {"caps", "no_new_privs", "seccomp", "rlimits"}


def has(program):
    return shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is not None


def runtimes(names):
    """Parameters for those that this release has: see "optional" in tools/setup."""
    return [pytest.param(name, marks=pytest.mark.skipif(not has(PROGRAMS[name]), reason=f"{PROGRAMS[name]} is not installed")) for name in names]


@pytest.fixture
def start(tmp_path):
    """Engines that are closed with the test."""
    made = []

    def make(runtime, *words, program=BUILD / "millibox-oci", before=(), **fields):
        made.append(Engine(program, [*before, "--runtime", runtime, *words], **fields))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


@pytest.fixture(params=runtimes(PROGRAMS))
def runtime(request):
    return request.param


@pytest.fixture
def engine(start, runtime):
    return start(runtime)


def groups_of(engine, name="box-"):
    """Groups of boxes in all trees of the instance that this engine's log names; of one box by its name. Two that no box uses yet may be
    among them."""
    number = re.search(r"instance (\d+), ", engine.said())[1]
    return [path for top in host.cgroup_tops() for path in host.instance_groups(f"{top}/{number}")
            if path.split("/")[-1].startswith(name) and (name == "box-" or path.endswith(f"/{name}"))]


def group_name(box):
    return pathlib.Path(os.readlink(f"/proc/self/fd/{box.fds['pids']}")).name


def processes_in(groups):
    return {int(pid) for path in groups for pid in pathlib.Path(path, "cgroup.procs").read_text().split()}


def processes_below(pid):
    """A process and its descendants."""
    parents, found = host.parents(), {pid}
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def test_probe_says_what_the_runtime_is(engine, runtime):
    found = engine.probe()
    said = subprocess.run([shutil.which(PROGRAMS[runtime], path="/usr/sbin:/usr/bin"), "--version"], capture_output=True, text=True).stdout
    assert found["runtime"] == runtime and found["release"] and found["release"] in said
    assert found["grade"] == ("gvisor" if runtime == "runsc" else "namespace")
    assert STRICT | AGENT <= found["layers"]
    assert {"egress", "freeze", "packages"} <= found["features"] and not {"zygote", "bridge"} & found["features"]
    assert ("gateway" in found["features"]) == (runtime != "runsc")


def test_program_runs_as_the_payload_in_a_container(engine):
    box = engine.create("one", flags=REQUIRE_CGROUP).begin()
    run = box.shell("echo out; echo err >&2; id -u; cat /proc/1/comm; pwd; exit 7")
    assert run["stdout"].split() in ([b"out", b"1000", b"millibox-agent", b"/workspace"], [b"out", b"1000", b"/workspace"])
    assert b"err\n" in run["stderr"] and run["done"]["status"] == 7
    assert engine.destroy("one") == {"status": 9, "leftovers": 0}
    assert box.has_ended()


@pytest.mark.phases("user", "subid")
def test_an_ordinary_user_gets_boxes_or_the_remedy(engine, runtime):
    op, _, _, fields, _ = engine.ask("PROBE")
    if op == "FAILED":
        assert runtime in ("runc", "runsc") and "needs more than one id: start as root, or as root run: usermod --add-subuids" in fields["text"]
        return
    assert fields["daemon_uid"] == 0 and (runtime not in ("runc", "runsc") or "uid_range" in fields["layers"])
    box = engine.create("one").begin()
    run = box.shell("id -u; touch /workspace/a && echo /workspace/*; touch /usr/x")
    assert run["stdout"] == b"1000\n/workspace/a\n" and b"cannot touch" in run["stderr"]
    engine.destroy("one")


def test_layers_are_measured_in_the_box_or_vouched_for(engine, runtime):
    box = engine.create("one").begin()
    assert STRICT <= box.fields["layers"]
    assert {"pid", "mnt", "ipc", "uts"} <= box.fields["vouched"] and not {"user", "net", "uid_range"} & box.fields["vouched"]
    hello = box.hello["layers"]
    assert all(hello & 1 << bit for bit in (12, 13, 14, 16)), hello
    # The kernel's own word, where the kernel is the host's.
    status = box.shell("cat /proc/self/status")["stdout"].decode()
    fields = dict(re.findall(r"^(\w+):\s+(\w+)", status, flags=re.M))
    assert all(int(fields[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd"))
    if runtime != "runsc":
        assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


@pytest.mark.parametrize("runtime", runtimes(NAMESPACE))
def test_namespaces_are_neither_the_hosts_nor_the_runtimes(engine):
    box = engine.create("one").begin()
    kinds = ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"]
    inside = box.shell(f"for k in {' '.join(kinds)}; do readlink /proc/self/ns/$k; done")["stdout"].decode().split()
    assert len(inside) == len(kinds)
    assert all(os.readlink(f"/proc/self/ns/{kind}") != own for kind, own in zip(kinds, inside))


def descriptors(pid):
    return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]


def test_what_waits_for_a_runtime_holds_nothing_of_the_engine(engine):
    """It is a copy of the engine that the runtime could look into: same ids, same capabilities."""
    for name in ("one", "two"):
        engine.create(name).begin()
    waiting = [pid for pid in processes_in(groups_of(engine)) if host.comm(pid) == "millibox-oci"]
    assert len(waiting) == 2
    for pid in waiting:
        held = descriptors(pid)
        assert all(re.match(r"(pipe|socket|anon_inode):|/dev/null|/memfd:millibox-description|/usr/s?bin/", name) for name in held), held
        assert len([name for name in held if name.startswith("socket:")]) <= 2
        # Undumpable: its files belong to root of the host, not to the box.
        assert os.stat(f"/proc/{pid}/mem").st_uid == 0
    # Control: the engine has its boxes' groups.
    assert any("cgroup" in name for pid in processes_below(engine.process.pid) - set(waiting) for name in descriptors(pid))


def test_root_is_read_only_and_the_workspace_is_not(engine):
    box = engine.create("one").begin()
    # Without ls, which needs more of statx() than gVisor of 2022 has.
    run = box.shell("touch /workspace/a /tmp/b /dev/shm/c && echo fine; touch /usr/x /etc/x /opt/x /x /run/x; echo /workspace/* /home* /root* /boot* /srv*")
    assert run["stdout"] == b"fine\n/workspace/a /home* /root* /boot* /srv*\n"
    assert run["stderr"].count(b"cannot touch") == 5, run["stderr"]


@pytest.mark.parametrize("runtime", runtimes(NAMESPACE))
def test_files_of_the_kernel_are_masked(engine):
    box = engine.create("one").begin()
    run = box.shell("cat /proc/kcore /proc/kallsyms /proc/timer_list /proc/keys | wc -c; ls -A /proc/fs /proc/irq | grep -cv :; "
                    "echo x > /proc/self/oom_score_adj; echo 1 > /proc/sys/kernel/panic")
    assert run["stdout"].split()[0] == b"0"
    assert b"oom_score_adj" in run["stderr"] and b"panic" in run["stderr"]


def test_memory_is_limited(engine):
    box = engine.create("one", limits={"memory": 96 * MIB, "workspace": MIB, "tmp": MIB, "shm": MIB}, flags=REQUIRE_CGROUP).begin()
    box.send(box.exec(["/usr/bin/python3", "-c", "b = bytearray(1 << 30); print(len(b))"]))
    # The kernel ends the program, or under gVisor the whole box.
    ended = box.receive()
    while ended and ended[0] not in ("DONE", "FAILED"):
        ended = box.receive()
    assert ended is None or ended[2]["signalled"], ended
    engine.destroy("one")


@pytest.mark.parametrize("runtime", runtimes(NAMESPACE))
def test_processes_are_limited_and_counted(engine):
    box = engine.create("one", limits={"pids": 16}, flags=REQUIRE_CGROUP).begin()
    run = box.run(["/usr/bin/python3", "-c", "import os, time\nn = 0\ntry:\n    while os.fork():\n        n += 1\nexcept OSError:\n    print(n)\nelse:\n    time.sleep(60)"])
    # The agent and the program count too; what the runtime keeps running does not.
    assert 12 <= int(run["stdout"]) <= 15
    assert int(box.counter("pids", "pids.max")) in (17, 18)


def test_disk_is_limited(engine):
    box = engine.create("one", limits={"workspace": MIB, "workspace_inodes": 100}).begin()
    assert b"No space left" in box.shell("head -c 8000000 /dev/zero > /workspace/big")["stderr"]
    assert b"No space left" in box.shell("rm -f big; for i in $(seq 200); do : > $i; done")["stderr"]


def test_network_is_empty(engine):
    box = engine.create("one").begin()
    run = box.run(["/usr/bin/python3", "-c", "import socket\nfor a in ('1.1.1.1', '10.0.0.1'):\n    s = socket.socket(); s.settimeout(5)\n"
                   "    try: s.connect((a, 80)); print('connected')\n    except OSError as e: print('no')"])
    assert run["stdout"] == b"no\nno\n"


def test_egress_listens_on_loopback(engine):
    box = engine.create("one", flags=EGRESS).begin()
    listener = socket.socket(fileno=box.fds.pop("network"))
    listener.setblocking(True)
    listener.settimeout(60)
    box.send(box.exec(["/usr/bin/python3", "-c", "import socket\ns = socket.create_connection(('127.0.0.1', 3128), 60)\n"
                       "s.sendall(b'hello')\nprint(s.recv(9).decode())"]))
    client, _ = listener.accept()
    assert client.recv(5) == b"hello"
    client.sendall(b"proxied")
    client.close()
    assert box.collect()["stdout"] == b"proxied\n"
    listener.close()


@pytest.mark.parametrize("runtime", runtimes(NAMESPACE))
def test_gateway_listens_in_tmp(engine):
    box = engine.create("one", flags=GATEWAY).begin()
    listener = socket.socket(fileno=box.fds.pop("gateway"))
    listener.setblocking(True)
    listener.settimeout(60)
    box.send(box.exec(["/usr/bin/python3", "-c", "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('/tmp/mcp.sock')\ns.sendall(b'tool')"]))
    assert listener.accept()[0].recv(4) == b"tool"
    listener.close()
    box.collect()


@pytest.mark.parametrize("runtime", runtimes(["runsc"]))
def test_what_gvisor_lacks_is_refused(engine):
    for flag, what in (GATEWAY, "tools of MCP servers"), (KEEP, "outlive the daemon"):
        op, _, _, fields, _ = engine.ask("CREATE", "one", limits={}, flags=flag)
        assert op == "FAILED" and what in fields["text"]
    assert engine.ask("DESTROY", "one")[0] == "GONE"


def test_programs_get_terminals(engine, runtime):
    # As for native boxes: those of sessions, which outlive the daemon where they can.
    box = engine.create("one", flags=0 if runtime == "runsc" else KEEP).begin()
    label = b"" if runtime == "runsc" else harness.frame("LABEL", harness.text("words"), 5)
    box.send(label, box.beside(["/bin/sh", "-c", "tty; stty size; exit 4"], 5, rows=30, cols=90))
    run = box.collect(5)
    assert run["stdout"] == b"/dev/pts/0\r\n30 90\r\n" and run["done"]["status"] == 4


def test_a_frozen_box_does_nothing_until_it_is_thawed(engine):
    box = engine.create("one").begin()
    box.send(box.exec(["/bin/sh", "-c", "while read line; do echo $line; done"], stdin=1))
    assert box.receive()[0] == "STARTED"
    assert engine.ask("FREEZE", "one", frozen=1)[0] == "FROZEN"
    assert set(frozen_states(box, engine)) == {True}
    assert engine.ask("FREEZE", "one", frozen=0)[0] == "FROZEN"
    engine.destroy("one")


def frozen_states(box, engine):
    """Of each group of the box that can be frozen."""
    for path in groups_of(engine, group_name(box)):
        for name, word in ("cgroup.events", "frozen 1"), ("freezer.state", "FROZEN"):
            file = pathlib.Path(path, name)
            if file.exists():
                yield word in file.read_text()


def test_many_boxes_at_once(engine, runtime):
    count = 3 if runtime == "runsc" else 8
    boxes = [engine.create(f"b{n}") for n in range(count)]
    for n, box in enumerate(boxes):
        box.begin().send(box.exec(["/bin/sh", "-c", f"echo {n} > /workspace/n; cat /workspace/n"]))
    assert [int(box.collect()["stdout"]) for box in boxes] == list(range(count))
    assert len({box.fields["host_uid"] for box in boxes}) == count


def test_destroy_leaves_nothing(engine):
    before = set(host.mounts())
    for _ in range(3):
        box = engine.create("again").begin()
        box.send(box.exec(["/bin/sh", "-c", "sleep 1000 & setsid sleep 1000 & sleep 1000"]))
        assert box.receive()[0] == "STARTED"
        group = group_name(box)
        assert groups_of(engine, group)
        engine.destroy("again")
        assert box.has_ended() and not groups_of(engine, group)
    assert set(host.mounts()) == before
    assert engine.end() == 0
    assert not list(pathlib.Path(engine.home, "run").iterdir())


@pytest.mark.parametrize("victim", ["guard", "engine"])
def test_a_killed_engine_leaves_nothing_after_the_next_start(start, runtime, victim):
    first = start(runtime)
    box = first.create("one").begin()
    box.send(box.exec(["/bin/sh", "-c", "sleep 1000 & sleep 1000"]))
    assert box.receive()[0] == "STARTED"
    ours = processes_below(first.process.pid)
    assert len(ours) >= 4
    children = [pid for pid, parent in host.parents().items() if parent == first.process.pid]
    os.kill(first.process.pid if victim == "guard" else children[0], signal.SIGKILL)
    first.process.wait(60)
    host.wait_until(lambda: not ours & set(host.parents()), 60, "processes end")
    assert box.has_ended()
    second = start(runtime, home=first.home)
    second.probe()
    assert not processes_in(groups_of(first))
    second.create("one").begin().shell("true")
    assert second.end() == 0
    assert not list(pathlib.Path(first.home, "run").iterdir())


def test_a_killed_runtime_ends_its_box_and_no_other(engine):
    one, two = engine.create("one").begin(), engine.create("two").begin()
    assert two.shell("true")["done"]["status"] == 0
    mine = processes_in(groups_of(engine, group_name(one)))
    assert mine and mine <= processes_below(engine.process.pid)
    for pid in sorted(mine, reverse=True):
        with contextlib.suppress(ProcessLookupError):  # each takes others with it
            os.kill(pid, signal.SIGKILL)
    assert one.has_ended()
    assert two.shell("echo here")["stdout"] == b"here\n"
    # A killed box is no fault of the agent: see is_fault() in the driver.
    assert engine.destroy("one")["status"] in (0, 1 << 8, signal.SIGKILL)


@pytest.mark.parametrize("runtime", runtimes(NAMESPACE))
def test_a_kept_box_gets_a_new_stream(start, runtime):
    engine = start(runtime, "--handover", "custody-test", "--lease", "60000")
    box = engine.create("one", flags=KEEP).begin()
    box.send(harness.frame("LABEL", harness.text("words"), 1), box.exec(["/bin/sh", "-c", "sleep 1000"], keep=1))
    assert box.receive()[0] == "STARTED"
    engine.sock.close()
    box.sock.close()
    engine.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    engine.sock.connect(f"{engine.home}/run/custody-test")
    engine.probe()
    op, _, name, fields, fds = engine.ask("ADOPT")
    assert (op, name) == ("KEPT", "one")
    assert engine.receive()[0] == "ADOPTED"
    box.sock = socket.socket(fileno=fds[0])
    box.inbox = b""
    box.expect("HELLO")
    assert box.expect("RESUME")["count"] == 1
    for fd in fds[1:]:
        os.close(fd)
    engine.destroy("one")


# What is wrong with the runtime.


def failure(engine):
    """Why the engine does not serve."""
    op, _, _, fields, _ = engine.ask("PROBE")
    assert op == "FAILED"
    assert engine.receive() is None and engine.process.wait(60) == 1
    return fields["text"]


def test_a_missing_runtime_names_its_package(start, tmp_path):
    # Hidden from this engine only, in a mount namespace of its own.
    hide = ["--mount", "/bin/sh", "-c", 'mount --bind "$0" /usr/bin && exec "$@"', str(tmp_path), str(BUILD / "millibox-oci")]
    engine = start("crun", program="/usr/bin/unshare", before=hide)
    assert failure(engine) == "crun is not installed: apt-get install crun"


def test_a_runtime_that_is_another_program(start):
    assert "does not say that it is runc: apt-get install --reinstall runc" in failure(start("runc", "--binary", "/usr/bin/sleep"))


@pytest.mark.parametrize("path, text", [("/nowhere/runc", "/nowhere/runc"), ("runc", "not an absolute path"), ("/etc", "not a program"),
                                        ("/etc/passwd", "not a program")])
def test_a_runtime_that_is_no_program(start, path, text):
    assert text in failure(start("runc", "--binary", path))


def test_a_runtime_that_others_may_write(start, tmp_path):
    tmp_path.chmod(0o755)
    copy = tmp_path / "runc"
    shutil.copy("/usr/bin/true", copy)
    copy.chmod(0o777)
    assert "others than this user and root may write to it" in failure(start("runc", "--binary", str(copy)))


def test_an_unknown_runtime_names_those_there_are(start):
    assert failure(start("lxc")) == "there is no runtime 'lxc': there are bwrap, runc, crun, runsc"


def make_runtime(tmp_path, body):
    """A program that calls itself runc, and then does something else."""
    tmp_path.chmod(0o755)
    source = tmp_path / "runtime.c"
    source.write_text("#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\nint main(int argc, char **argv)\n{\n"
                      "if (argc > 1 && strcmp(argv[1], \"--version\") == 0) { puts(\"runc version 9\"); return 0; }\n" + body + "}\n")
    subprocess.run(["cc", "-o", str(tmp_path / "runtime"), str(source)], check=True)
    return str(tmp_path / "runtime")


def create_fails(engine):
    assert engine.probe()["release"] == "9"
    op, _, _, _, fds = engine.ask("CREATE", "one", limits={})
    assert op == "CREATED"
    for fd in fds:
        os.close(fd)
    op, seq, name, fields, _ = engine.receive()
    assert (op, seq, name) == ("FAILED", 0, "one")
    assert engine.receive()[0] == "GONE"
    assert not processes_in(groups_of(engine))
    return fields["text"]


def test_a_runtime_that_fails_is_quoted(start, tmp_path):
    program = make_runtime(tmp_path, "fputs(\"no \\033[31mluck\", stderr); return 3;")
    text = create_fails(start("runc", "--binary", program))
    assert "runc ended (status 3) before the agent ran: no  [31mluck" in text


def test_a_runtime_that_reports_success_without_an_agent(start, tmp_path):
    assert "before the agent ran: it said nothing" in create_fails(start("runc", "--binary", make_runtime(tmp_path, "return 0;")))


def test_a_runtime_that_prints_for_ever_fills_nothing(start, tmp_path):
    program = make_runtime(tmp_path, "for (int i = 0; i < 1000000; i++) puts(\"a long line that nobody reads, again and again\"); return 1;")
    assert len(create_fails(start("runc", "--binary", program))) < 240


@pytest.mark.slow
def test_a_runtime_that_hangs_is_killed(start, tmp_path):
    engine = start("runc", "--binary", make_runtime(tmp_path, "for (;;) pause();"))
    assert "runc did not build the box in time" in create_fails(engine)
