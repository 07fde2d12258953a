# SPDX-License-Identifier: Apache-2.0
"""The container image under runc, crun and dockerd, with the privileges that docs/containers.md names and with fewer."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tarfile
import tempfile

import pytest

from conftest import need
from support import host
from support.daemon import ROOT

pytestmark = pytest.mark.phases("package")

CONTAINER = ROOT / "deploy/container"
#: For a daemon without root and capabilities.
USER_ENV = {"HOME": "/tmp", "MILLIBOX_ISOLATION": "best-effort"}
BEST_EFFORT_LACKS = ["cgroup.memory", "cgroup.pids", "cgroup.cpu", "uid_range"]


def blob(image, digest):
    with tarfile.open(image) as tar:
        return tar.extractfile("blobs/" + digest.replace(":", "/")).read()


def read_json(image, name):
    with tarfile.open(image) as tar:
        return json.load(tar.extractfile(name))


def test_it_is_an_oci_layout_and_what_docker_loads(image):
    (manifest,) = read_json(image, "index.json")["manifests"]
    data = blob(image, manifest["digest"])
    assert manifest["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}" and manifest["size"] == len(data)
    content = json.loads(data)
    config = json.loads(blob(image, content["config"]["digest"]))
    assert config["config"]["Entrypoint"] == ["/usr/libexec/millibox/container-start"] and config["os"] == "linux"
    commit = subprocess.run([ROOT / "tools/version", "--commit"], capture_output=True, text=True).stdout.strip()
    assert config["config"]["Labels"]["org.opencontainers.image.revision"] == commit
    (layer,) = content["layers"]
    (docker,) = read_json(image, "manifest.json")
    assert docker["Layers"] == ["blobs/" + layer["digest"].replace(":", "/")] and "millibox:latest" in docker["RepoTags"]
    with tarfile.open(image) as tar:
        assert {(entry.uid, entry.gid, entry.mtime) for entry in tar} == {(0, 0, tar.getmembers()[0].mtime)}


def test_both_engines_refuse_the_same_calls():
    docker = json.loads((CONTAINER / "seccomp.json").read_text())
    runtime = json.loads((CONTAINER / "config.json").read_text())["linux"]["seccomp"]
    assert docker["syscalls"] == runtime["syscalls"] and docker["defaultAction"] == runtime["defaultAction"]


def test_it_brings_the_settings_for_engines(rootfs, docker):
    for path in (CONTAINER / "seccomp.json", CONTAINER / "config.json"):
        inside = f"usr/share/millibox/container/{path.name}"
        assert (rootfs / inside).read_text() == path.read_text()
        done = subprocess.run([*docker, "run", "--rm", "--network", "none", "--entrypoint", "cat", "millibox", f"/{inside}"], capture_output=True, text=True)
        assert done.stdout == path.read_text(), done


# Runtimes: runc and crun


@pytest.fixture(scope="session")
def rootfs(image, tmp_path_factory):
    content = json.loads(blob(image, read_json(image, "index.json")["manifests"][0]["digest"]))
    path = tmp_path_factory.mktemp("bundle") / "rootfs"
    path.mkdir()
    with tarfile.open(image) as tar:
        layer = tar.extractfile("blobs/" + content["layers"][0]["digest"].replace(":", "/"))
        subprocess.run(["tar", "-C", str(path), "-xzf", "-"], input=layer.read(), check=True)
    for above in (path, *list(path.parents)[:3]):
        above.chmod(above.stat().st_mode | 0o055)
    yield path
    subprocess.run(["rm", "-rf", "--one-file-system", str(path)], check=True)


class Container:
    """Of runc or crun, or of docker."""

    def __init__(self, process, inside):
        self.process, self.inside = process, inside

    def run(self, *words, ok=True):
        done = subprocess.run([*self.inside, *words], capture_output=True, text=True, timeout=host.HANG_S, stdin=subprocess.DEVNULL)
        assert not ok or done.returncode == 0, done
        return done.stdout

    def is_ready(self):
        if self.process.poll() is not None:
            log = self.process.communicate()[0]
            # crun, where cgroup v2 has some controllers beside those of v1.
            pytest.skip(log.strip()) if "cgroups in hybrid mode not supported" in log else pytest.fail(log)
        return not subprocess.run([*self.inside, "millibox", "status"], capture_output=True, stdin=subprocess.DEVNULL).returncode

    def status(self):
        return json.loads(self.run("millibox", "status", "--json"))


@pytest.fixture
def bundle(rootfs):
    """Start a container with the settings of deploy/container/config.json, changed by a function."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mbxoci-")))

        def start(runtime, change=lambda config: None):
            need(runtime)
            config = json.loads((CONTAINER / "config.json").read_text())
            config["root"]["path"] = str(rootfs)
            # A hard limit above this process's is not its to give.
            limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            config["process"]["rlimits"] = [{"type": "RLIMIT_NOFILE", "hard": limit, "soft": limit}]
            change(config)
            (folder / "config.json").write_text(json.dumps(config))
            name = f"mbx{os.urandom(4).hex()}"
            command = [runtime, "--root", str(folder / "state")]
            process = subprocess.Popen([*command, "run", "-b", str(folder), name], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

            def end():
                subprocess.run([*command, "kill", name, "KILL"], capture_output=True)
                process.communicate(timeout=host.HANG_S)
                subprocess.run([*command, "delete", "-f", name], capture_output=True)

            stack.callback(end)
            return Container(process, [*command, "exec", *environment(config), name])

        yield start


def environment(config):
    return [word for value in config["process"]["env"] for word in ("--env", value)]


def unprivileged(config):
    """No root, no capability, no group to write to."""
    config["process"] |= {"user": {"uid": 1234, "gid": 1234}, "capabilities": {}}
    config["process"]["env"] += [f"{name}={value}" for name, value in USER_ENV.items()]
    for mount in config["mounts"]:
        mount["options"] = ["ro" if option == "rw" else option for option in mount["options"]]


def use(container):
    host.wait_until(container.is_ready, host.HANG_S, "ready")
    assert container.run("millibox", "run", "-c", "print(6 * 7)") == "42\n"
    session = container.run("millibox", "session", "create").strip()
    assert container.run("millibox", "session", "exec", session, "-c", "6 * 7") == "42\n"
    return container.status()["isolation"]


@pytest.mark.parametrize("runtime", ["runc", "crun"])
def test_strict_in_a_bundle(bundle, runtime):
    container = bundle(runtime)
    assert use(container) == {"mode": "strict", "missing": []}
    # The limits are the kernel's.
    assert "memory limit" in subprocess.run([*container.inside, "millibox", "run", "-m", "64Mi", "-c", "x = bytearray(300 << 20)"],
                                            capture_output=True, text=True, timeout=host.HANG_S).stderr
    # PID 1 reaps what boxes leave.
    assert "Z" not in container.run("sh", "-c", "cut -d' ' -f3 /proc/[0-9]*/stat")


@pytest.mark.parametrize("runtime", ["runc", "crun"])
def test_best_effort_without_any_privilege(bundle, runtime):
    isolation = use(bundle(runtime, unprivileged))
    assert isolation["mode"] == "best-effort" and isolation["missing"] == BEST_EFFORT_LACKS


def refusal(container):
    """What a daemon that cannot start says."""
    out, _ = container.process.communicate(timeout=host.HANG_S)
    assert container.process.returncode, out
    return out


def test_strict_refuses_where_groups_are_read_only_for_good(bundle):
    """Without CAP_SYS_ADMIN nothing makes them writable; the daemon names what is missing."""
    def change(config):
        unprivileged(config)
        config["process"]["env"].append("MILLIBOX_ISOLATION=strict")

    out = refusal(bundle("runc", change))
    assert "isolation is strict and the host lacks" in out and "cgroup.memory" in out


NEEDED = json.loads((CONTAINER / "config.json").read_text())["process"]["capabilities"]["bounding"]


@pytest.mark.parametrize("capability", sorted(set(NEEDED) - {"CAP_KILL", "CAP_DAC_OVERRIDE"}))
def test_each_capability_is_needed_to_start(bundle, capability):
    """The other two: ending processes of boxes that have other ids, and passing directories of the daemon's id."""
    def change(config):
        for names in config["process"]["capabilities"].values():
            if capability in names:
                names.remove(capability)

    assert "cannot start" in refusal(bundle("runc", change))


def test_a_masked_proc_is_refused(bundle):
    def change(config):
        config["linux"]["maskedPaths"] = ["/proc/kcore", "/proc/keys"]

    assert "cannot start" in refusal(bundle("runc", change))


# Docker


@pytest.fixture(scope="module")
def docker(image, tmp_path_factory):
    """The beginning of a docker command, for a dockerd of our own with the image."""
    need("dockerd", "docker", "containerd")
    with tempfile.TemporaryDirectory(prefix="mbxdk-") as folder, open(f"{folder}/log", "w") as log:
        address = f"unix://{folder}/sock"
        process = subprocess.Popen(["dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--data-root", f"{folder}/data", "--exec-root",
                                    f"{folder}/exec", "--pidfile", f"{folder}/pid", "-H", address], stdout=log, stderr=log)
        try:
            command = ["docker", "-H", address]
            host.wait_until(lambda: process.poll() is not None or not subprocess.run([*command, "info"], capture_output=True).returncode,
                            host.HANG_S, "dockerd is ready")
            if process.poll() is not None:
                pytest.skip("dockerd does not start here: " + pathlib.Path(log.name).read_text().strip().splitlines()[-1])
            subprocess.run([*command, "load", "-i", str(image)], check=True, capture_output=True)
            yield command
        finally:
            process.terminate()
            process.wait(host.HANG_S)
            shutil.rmtree(f"{folder}/data", ignore_errors=True)


def documented(first):
    """Words of the command in docs/containers.md that begins so, without what names the image."""
    (block,) = [block for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/containers.md").read_text(), re.S) if block.startswith(first)]
    (command,) = [line for line in block.replace("\\\n", " ").splitlines() if re.match("docker run.* --cap-drop ", line)]
    words = command.partition("#")[0].split()
    assert words[:2] == ["docker", "run"] and words[-1].startswith("millibox"), words
    return words[2:-1]


@contextlib.contextmanager
def dockered(docker, words):
    words = [word.replace("seccomp=", f"seccomp={CONTAINER}/") for word in words if word not in ("-d", "--detach")]
    skipped = {"--name": 1, "-v": 1, "--volume": 1, "-p": 1}
    kept = []
    while words:
        word = words.pop(0)
        if word in skipped:
            words = words[skipped[word]:]
        else:
            kept.append(word)
    name = f"mbx{os.urandom(4).hex()}"
    process = subprocess.Popen([*docker, "run", "--rm", "--network", "none", "--name", name, *kept, "millibox"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield Container(process, [*docker, "exec", name])
    finally:
        subprocess.run([*docker, "rm", "-f", name], capture_output=True)
        process.communicate(timeout=host.HANG_S)


def test_strict_under_docker(docker):
    with dockered(docker, documented("docker load")) as container:
        assert use(container) == {"mode": "strict", "missing": []}


def test_the_containers_limits_hold_for_all_boxes(docker):
    with dockered(docker, [*documented("docker load"), "--memory", "256m"]) as container:
        host.wait_until(container.is_ready, host.HANG_S, "ready")
        # The box may use 2 GiB, its container may not.
        done = subprocess.run([*container.inside, "millibox", "run", "-m", "2Gi", "-c", "x = bytearray(600 << 20)"],
                              capture_output=True, text=True, timeout=host.HANG_S)
        assert done.returncode, done
        assert container.run("millibox", "run", "-c", "print(6 * 7)") == "42\n"


def test_best_effort_under_docker(docker):
    with dockered(docker, documented("docker run --name best-effort")) as container:
        isolation = use(container)
        assert isolation["mode"] == "best-effort" and isolation["missing"] == BEST_EFFORT_LACKS
