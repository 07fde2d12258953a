# SPDX-License-Identifier: Apache-2.0
"""millibox-remote with a real Docker Engine, at the socket where the daemon would be: boxes as containers, their limits, what is left
of them, and what becomes of a server that is away, slow, or no Docker at all."""

import contextlib
import io
import os
import pathlib
import shutil
import signal
import tarfile
import tempfile

import pytest

from support import host
from support.daemon import is_sanitized
from support.docker import CAN_RUN, WHY_NOT, Docker, impostor
from support.engine import EGRESS, IMAGE, LAYERS, MIB, PACKAGES, REQUEST, Box, names
from support.remote import Failed, RemoteEngine

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.slow,
    pytest.mark.skipif(not CAN_RUN, reason=WHY_NOT),
    # It would look for its libraries in places that the box does not have.
    pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries"),
]

UID_BASE = 1_900_000_000
needs_runsc = pytest.mark.skipif(not shutil.which("runsc"), reason="gVisor is not installed (apt-get install runsc)")
PROC = pathlib.Path("/proc")


@pytest.fixture(scope="module")
def docker():
    made = Docker()
    yield made
    made.close()


@pytest.fixture
def place():
    """The runtime directory of a daemon."""
    with tempfile.TemporaryDirectory(prefix="mb-remote-", dir="/tmp") as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


@pytest.fixture
def start(docker, place):
    """Start an engine; all are ended."""
    engines = []

    def start_one(*words, sock=docker.socket, handover="custody-test"):
        engines.append(RemoteEngine(sock, place, *words, handover=handover))
        return engines[-1]

    yield start_one
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(start):
    made = start()
    made.probe()
    return made


def box(engine, name, **fields):
    made = engine.create(name, **fields).begin()
    made.layers = names(made.hello["layers"], LAYERS)
    return made


def sh(agent, script, **options):
    run = agent.run(["/bin/sh", "-c", script], **options)
    assert "done" in run, run
    return run


def is_empty(docker):
    return not docker.containers()


def test_probe_says_what_boxes_will_have(start):
    probe = start().probe()
    assert (probe["runtime"], probe["grade"], probe["identity"]) == ("docker", "namespace", 1)
    assert probe["release"][:2].isdigit() and probe["features"] == {"image", "packages", "freeze"}
    assert probe["layers"] >= {"pid", "mnt", "net", "ipc", "uts", "caps", "no_new_privs", "seccomp", "cgroup.memory", "cgroup.pids"}
    assert probe["daemon_uid"] > UID_BASE + probe["boxes_max"]


def test_a_program_runs_without_rights_network_or_a_place_to_write(engine, docker):
    agent = box(engine, "b1")
    assert agent.fields["vouched"] >= {"pid", "net", "cgroup.memory"}
    assert agent.layers >= {"caps", "no_new_privs", "seccomp", "rlimits"}
    said = sh(agent, """
        id -u; id -un; grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups)' /proc/self/status | tr -d '\\n'; echo
        for f in /x /usr/x /etc/x /opt/millibox/x /opt/millibox/runners/x; do touch $f 2>&1; done | grep -c 'Read-only file system'
        touch /workspace/x /tmp/x && echo written; ls /sys/class/net; cat /proc/1/environ 2>&1""")["stdout"].decode().splitlines()
    assert said[0] == str(agent.uid) and said[1] == "user"
    assert set(said[2].replace("\t", "").split(":")) >= {"0000000000000000CapPrm"} and "NoNewPrivs:\t1" in said[2]
    assert said[2].count("0000000000000000") == 5
    assert said[3:6] == ["5", "written", "lo"] and "Permission denied" in said[6]
    assert list(docker.containers()) == [next(iter(docker.containers()))]
    assert engine.destroy("b1")["status"] == signal.SIGKILL
    assert is_empty(docker)


def test_negative_control_a_container_without_our_settings_has_them(docker):
    """What the test above looks for is there in a container as Docker makes it."""
    with open(shutil.which("busybox"), "rb") as f:
        data = f.read()
    docker.load_image("control:1", tar_of({"bin/sh": data}))
    body = {"Image": "control:1", "Cmd": ["/bin/sh", "-c", "echo x >/x && grep CapEff /proc/self/status"], "Tty": True}
    assert docker.call("POST", "/containers/create?name=control", body)[0] == 201
    docker.call("POST", "/containers/control/start")
    docker.call("POST", "/containers/control/wait")
    said = docker.call("GET", "/containers/control/logs?stdout=1&stderr=1")[1]
    docker.call("DELETE", "/containers/control?force=1")
    docker.call("DELETE", "/images/control:1?force=1")
    assert b"CapEff" in said and b"0000000000000000" not in said


def test_container_is_described_as_documented(engine, docker):
    box(engine, "described", limits={"memory": 100 * MIB, "pids": 33, "cpu": 250})
    (name,) = docker.containers()
    found = docker.call("GET", f"/containers/{name}/json")[1]
    config, host_config = found["Config"], found["HostConfig"]
    assert name.endswith("-described") and config["Labels"]["millibox.box"] == "described"
    assert config["User"].startswith("19000") and not config["Tty"] and config["OpenStdin"] and config["StdinOnce"]
    expected = {"NetworkMode": "none", "CapAdd": None, "CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"], "Privileged": False,
                "ReadonlyRootfs": True, "Memory": 100 * MIB, "MemorySwap": 100 * MIB, "PidsLimit": 33, "NanoCpus": 250_000_000,
                "AutoRemove": True, "IpcMode": "private", "Init": False}
    assert {key: host_config[key] for key in expected} == expected
    assert host_config["LogConfig"]["Type"] == "none" and host_config["RestartPolicy"]["Name"] == "no"
    assert all(mount["RW"] is False for mount in found["Mounts"])
    engine.destroy("described")


def test_limits_are_those_of_the_kernel(engine):
    agent = box(engine, "limited", limits={"memory": 64 * MIB, "workspace": 4 * MIB, "pids": 20})
    hungry = agent.run(["/usr/bin/python3", "-c", "x = bytearray(200 << 20)"])["done"]
    assert (hungry["signalled"], hungry["status"]) == (1, signal.SIGKILL)
    full = sh(agent, "dd if=/dev/zero of=/workspace/f bs=1M count=9 2>&1", ident=2)
    assert b"No space left" in full["stdout"]
    many = sh(agent, "for i in $(seq 40); do sleep 60 & done 2>&1", ident=3)
    assert b"fork" in many["stdout"] or b"fork" in many["stderr"]
    engine.destroy("limited")


def test_counters_are_those_of_the_container(engine):
    agent = box(engine, "counted", limits={"memory": 256 * MIB})
    agent.run(["/usr/bin/python3", "-c", "x = bytearray(100 << 20)"])
    is_v2 = (host.CGROUP_ROOT / "cgroup.controllers").exists()
    assert int(agent.counter("memory", "memory.peak" if is_v2 else "memory.max_usage_in_bytes")) > 100 * MIB
    assert int(agent.counter("pids", "pids.current")) >= 1
    assert set(agent.fds) == {"memory", "pids", "cpu"}
    engine.destroy("counted")


def test_a_small_box_can_do_what_the_large_one_did(engine):
    """The control of the test above: only the limits differ."""
    agent = box(engine, "large", limits={"memory": 512 * MIB, "workspace": 16 * MIB, "pids": 100})
    assert agent.run(["/usr/bin/python3", "-c", "x = bytearray(200 << 20)"])["done"]["status"] == 0
    assert sh(agent, "dd if=/dev/zero of=/workspace/f bs=1M count=9", ident=2)["done"]["status"] == 0
    assert sh(agent, "for i in $(seq 40); do sleep 0.1 & done; wait", ident=3)["done"]["status"] == 0
    engine.destroy("large")


def test_boxes_have_different_ids(engine):
    one, other = box(engine, "one"), box(engine, "other")
    assert one.uid != other.uid and min(one.uid, other.uid) > UID_BASE
    for name in ("one", "other"):
        engine.destroy(name)


def test_much_data_passes_in_both_directions(engine):
    agent = box(engine, "data", limits={"memory": 512 * MIB, "workspace": 64 * MIB})
    data = os.urandom(12 * MIB)
    agent.send(agent.put("blob", data, place=1))
    run = sh(agent, "cat blob blob", out=64 * MIB)
    assert run["stdout"] == data * 2
    engine.destroy("data")


def test_freeze_stops_a_box_and_thaw_goes_on(engine, docker):
    agent = box(engine, "cold")
    agent.send(agent.exec(["/bin/sh", "-c", "while :; do echo x; sleep 0.01; done"]))
    agent.expect("STARTED")
    engine.freeze("cold", 1)
    assert [c["State"] for c in docker.containers().values()] == ["paused"]
    engine.freeze("cold", 0)
    assert [c["State"] for c in docker.containers().values()] == ["running"]
    for _ in range(3):
        agent.expect("OUTPUT")
    # A frozen box can be removed.
    engine.freeze("cold", 1)
    engine.destroy("cold")
    assert is_empty(docker)


def test_destroy_may_overtake_the_creation(engine, docker):
    created = engine.send("CREATE", "early", limits={})
    assert engine.ask("DESTROY", "early")[0] == "GONE"
    assert not [reply for reply in engine.events if reply[1] == created]
    host.wait_until(lambda: is_empty(docker))
    # Its name is free again.
    box(engine, "early")
    engine.destroy("early")


def test_end_of_the_container_is_the_end_of_the_box(engine, docker):
    agent = box(engine, "killed")
    (name,) = docker.containers()
    assert docker.call("POST", f"/containers/{name}/kill")[0] == 204
    assert engine.gone("killed") == signal.SIGKILL
    assert agent.receive() is None
    assert is_empty(docker)


def test_agent_that_loses_its_daemon_ends(engine, docker):
    agent = box(engine, "left")
    agent.sock.close()
    engine.gone("left")
    assert is_empty(docker)


def test_nothing_is_left_when_the_daemon_ends(start, docker):
    engine = start()
    engine.probe()
    box(engine, "a")
    engine.send("CREATE", "b", limits={})
    assert engine.end() == 0
    assert is_empty(docker)


def test_killed_engine_leaves_nothing_and_its_successor_removes_only_its_own(start, docker):
    first, other = start(), start(handover="custody-other")
    first.probe()
    other.probe()
    box(first, "running")
    box(first, "frozen")
    box(other, "foreign")
    first.freeze("frozen", 1)
    first.process.kill()
    # Its streams have ended, and so have agents that can notice it.
    host.wait_until(lambda: len(docker.containers()) == 2, 30)
    # A name that looks like ours, without the label; a label on something else.
    control = {"Image": next(iter(docker.images())), "Entrypoint": ["/none"]}
    assert docker.call("POST", "/containers/create?name=millibox-0000-x", control)[0] == 201
    (mine,) = [c for name, c in docker.containers().items() if name.endswith("-frozen")]
    labelled = {**control, "Labels": mine["Labels"]}
    assert docker.call("POST", "/containers/create?name=labelled", labelled)[0] == 201
    second = start()
    second.probe()
    left = set(docker.containers(label=None))
    assert {name for name in left if not name.endswith("-foreign")} == {"millibox-0000-x", "labelled"}
    assert len(left) == 3
    for name in ("millibox-0000-x", "labelled"):
        docker.call("DELETE", f"/containers/{name}")
    other.destroy("foreign")


def test_requests_are_checked(engine):
    with pytest.raises(Failed, match="UNAVAILABLE|INVALID") as refused:
        engine.create("net", flags=EGRESS)
    assert "no network" in refused.value.text
    for fields, words in ((dict(limits={"memory": 1}), "limits.memory_bytes"),
                          (dict(limits={"memory": 5 * MIB}), "Docker gives at least"),
                          (dict(flags=1 << 30), "flag"),
                          (dict(flags=IMAGE, root="../etc"), "root"),
                          (dict(flags=IMAGE, root="missing"), "root"),
                          (dict(flags=PACKAGES, packages="missing"), "packages")):
        with pytest.raises(Failed) as refused:
            engine.create("bad", **fields)
        assert words in f"{refused.value.field} {refused.value.text}"
    for name in ("../x", "UPPER", "a/b", "a?force=1"):
        with pytest.raises(Failed):
            engine.create(name)
    engine.sock.send(b"short")
    engine.sock.send(bytes(REQUEST.size + 9))
    box(engine, "fine")
    engine.destroy("fine")


def tar_of(files, links=()):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755
            tar.addfile(info, io.BytesIO(content))
        for name, target in dict(links).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return data.getvalue()


def make_root(roots, name="base"):
    """A hostile one: links where the box needs directories, set-id bits, a device."""
    root = roots / name
    for path in ("bin", "etc", "deep/er"):
        (root / path).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for applet in ("sh", "cat", "ls", "id", "stat", "touch"):
        (root / "bin" / applet).symlink_to("busybox")
    (root / "workspace").symlink_to("/etc")
    (root / "run").symlink_to("deep")
    (root / "etc/passwd").write_text("root::0:0:::\n")
    (root / "deep/er/file").write_text("from the root")
    (root / "deep/secret").write_text("of root")
    (root / "deep/secret").chmod(0o600)
    (root / "set").write_text("x")
    (root / "set").chmod(0o6755)
    (root / "deep" / ("long" * 50)).write_text("a long name")
    os.mkfifo(root / "fifo")
    roots.chmod(0o755)
    return root


def test_root_becomes_an_image_once(start, docker, place):
    roots = place / "roots"
    roots.mkdir()
    root = make_root(roots)
    engine = start("--roots", str(roots))
    engine.probe()
    fields = dict(flags=IMAGE, root="base")
    # Both wait for the same import.
    first, second = (engine.send("CREATE", name, limits={}, **fields) for name in ("one", "two"))
    agents = []
    for seq in (first, second):
        _, _, _, found, fds = engine.answer(seq)
        agents.append(Box(found, {"agent": fds[0]}).begin())
    engine.boxes += agents
    said = sh(agents[0], "cat /deep/er/file; echo; cat /deep/secret 2>&1; ls -a / | tr '\\n' ' '; stat -c %a /set; ls /usr 2>&1; id -un;"
              "touch /workspace/x && echo written; cat /deep/long*")["stdout"].decode().splitlines()
    assert said[0] == "from the root" and "Permission denied" in said[1]
    assert "fifo" not in said[2].split() and "workspace" in said[2].split()
    assert said[2].endswith("755") or "755" in said[3]
    assert "user" in said and "written" in said and said[-1] == "a long name"
    made = {tag: image for tag, image in docker.images().items() if tag.startswith("millibox/")}
    for name in ("one", "two"):
        engine.destroy(name)
    engine.close()
    again = start("--roots", str(roots))
    again.probe()
    box(again, "three", **fields)
    again.destroy("three")
    now = docker.images()
    assert {tag: now[tag]["Id"] for tag in made} == {tag: image["Id"] for tag, image in made.items()}
    # Somebody removes it: the next box imports it again.
    for tag in made:
        docker.call("DELETE", f"/images/{tag}?force=1")
    box(again, "four", **fields)
    again.destroy("four")
    # A changed root is another image.
    os.utime(root)
    box(again, "five", **fields)
    assert len(set(docker.images()) - set(made)) >= 1
    again.destroy("five")
    again.close()
    # Images of what is no more are removed, those of others are not.
    shutil.rmtree(root)
    docker.load_image("foreign:1", tar_of({"bin/x": b""}), [f"LABEL millibox.instance={next(iter(made)).split('/')[1].split(':')[0]}"])
    last = start("--roots", str(roots))
    last.probe()
    host.wait_until(lambda: not [tag for tag in docker.images() if tag.split(":")[0] in {m.split(":")[0] for m in made}])
    assert "foreign:1" in docker.images()
    docker.call("DELETE", "/images/foreign:1")


def test_image_by_name(start, docker):
    with open(shutil.which("busybox"), "rb") as f:
        busybox = f.read()
    docker.load_image("named:1", tar_of({"bin/busybox": busybox}, {"bin/sh": "busybox", "bin/echo": "busybox"}))
    docker.load_image("volumes:1", tar_of({"bin/busybox": busybox}), ["VOLUME /data"])
    engine = start("--image", "named:1")
    engine.probe()
    agent = box(engine, "named")
    assert sh(agent, "echo from the image")["stdout"] == b"from the image\n"
    engine.destroy("named")
    for image, words in (("missing:1", "docker pull missing:1"), ("volumes:1", "VOLUME")):
        other = start("--image", image)
        other.probe()
        with pytest.raises(Failed) as refused:
            other.create("none")
        assert refused.value.code == "UNAVAILABLE" and words in refused.value.text
    for image in ("named:1", "volumes:1"):
        docker.call("DELETE", f"/images/{image}?force=1")


def test_packages_are_mounted(start, place):
    roots = place / "roots"
    (roots / "layer").mkdir(parents=True)
    (roots / "layer/file").write_text("a package")
    (roots / "link").symlink_to("/etc")
    engine = start("--roots", str(roots))
    engine.probe()
    agent = box(engine, "packed", flags=PACKAGES, packages="layer")
    said = sh(agent, "cat /opt/millibox/packages/file; touch /opt/millibox/packages/x 2>&1")["stdout"]
    assert said.startswith(b"a package") and b"Read-only" in said
    engine.destroy("packed")
    with pytest.raises(Failed, match="packages"):
        engine.create("linked", flags=PACKAGES, packages="link")


@needs_runsc
def test_a_runtime_that_opens_the_agents_pipes_to_programs_has_no_boxes(start, docker):
    """gVisor as Docker's runtime: the agent looks before it says HELLO. The control is every other test: with runc it starts."""
    engine = start("--container-runtime", "runsc")
    assert engine.probe()["grade"] == "gvisor"
    agent = engine.create("g")
    assert b"open the pipes of the agent" in agent.expect("LOG")["text"]
    engine.destroy("g")
    assert is_empty(docker)


def test_unknown_runtime_is_refused_before_anything_starts(start):
    with pytest.raises(Failed) as refused:
        start("--container-runtime", "nothing").probe()
    assert refused.value.code == "UNAVAILABLE" and "/etc/docker/daemon.json" in refused.value.text


HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>"
ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"



def flood():
    yield ENDLESS + b'{"ApiVersion": "'
    while True:
        yield b"1" * 65536


@pytest.mark.parametrize("answer, words", [
    (HTML, "not a Docker Engine"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "not a Docker Engine"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n" + b'{"ApiVersion": "1.12"}', "at least 1.40"),
    (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "not a Docker Engine"),
    (b"\0\1\2 what is this", "does not answer"),
    (b"", "does not answer"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100000, "not a Docker Engine"),
    (flood, "does not answer"),
], ids=["html", "empty-object", "old", "not-found", "garbage", "closes", "deep", "endless"])
def test_what_is_no_docker_is_refused_with_a_sentence(start, answer, words):
    with impostor(answer) as path:
        engine = start(sock=path)
        with pytest.raises(Failed) as refused:
            engine.probe()
        assert refused.value.code == "UNAVAILABLE" and words in refused.value.text
        assert engine.exit_status() == 1


def test_missing_server_is_refused_with_the_remedy(start, place):
    (place / "file").write_text("")
    (place / "file").chmod(0o666)
    for sock, words in ((place / "none", "apt-get install docker.io"), (place / "file", "systemctl start docker")):
        engine = start(sock=sock)
        with pytest.raises(Failed) as refused:
            engine.probe()
        assert refused.value.code == "UNAVAILABLE" and words in refused.value.text
        assert engine.exit_status() == 1


def test_server_that_hangs_is_given_up(start, docker):
    docker.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(Failed) as refused:
            start().probe()
    finally:
        docker.process.send_signal(signal.SIGCONT)
    assert refused.value.code == "UNAVAILABLE" and "timed out" in refused.value.text


def test_program_is_confined(engine):
    pid = engine.process.pid
    status = dict(line.split(":\t") for line in (PROC / str(pid) / "status").read_text().splitlines() if ":\t" in line)
    assert set(status["Uid"].split()) == {str(UID_BASE)}
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert int(status["CapEff"], 16) == 1 << 2 and int(status["CapBnd"], 16) == 0  # CAP_DAC_READ_SEARCH


def test_killed_dockerd_fails_what_it_has_and_recovers(start, docker):
    engine = start()
    engine.probe()
    agent = box(engine, "lost")
    docker.kill()
    assert agent.receive() is None
    with pytest.raises(Failed) as refused:
        engine.create("meanwhile")
    assert refused.value.code == "UNAVAILABLE" and "Docker" in refused.value.text
    docker.start()
    # GONE promises that nothing is left, so it waits for the server.
    engine.gone("lost")

    def works():
        with contextlib.suppress(Failed):
            box(engine, "later")
            return True
        return False

    host.wait_until(works, 60)
    engine.destroy("later")
    host.wait_until(lambda: is_empty(docker), 30)
