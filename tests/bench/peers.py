# SPDX-License-Identifier: Apache-2.0
"""Peers, measured in the same run if they are installed.

Each peer runs the same /usr/bin/python3 of the host. A peer that is not there, or does not work
here, is listed with the reason instead of a number.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import time

PYTHON = ["/usr/bin/python3", "-c", "print(42)"]
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


class Absent(Exception):
    """Why this peer is not measured."""


def need(program):
    if not shutil.which(program):
        raise Absent(f"{program} is not installed")
    return shutil.which(program)


def bare(_home):
    return PYTHON


def bwrap(_home):
    links = [x for name, target in LINKS.items() for x in ("--symlink", target, f"/{name}")]
    return [need("bwrap"), "--unshare-all", "--ro-bind", "/usr", "/usr", *links, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--", *PYTHON]  # fmt: skip


def bundle(home):
    """An OCI bundle whose root is the host's /usr."""
    root = home / "bundle" / "rootfs"
    for name in ("usr", "proc", "dev", "tmp", "etc"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, target in LINKS.items():
        if not (root / name).is_symlink():
            (root / name).symlink_to(target)
    spec = {
        "ociVersion": "1.0.0",
        "process": {"user": {"uid": 0, "gid": 0}, "args": PYTHON, "cwd": "/", "env": ["PATH=/usr/bin"], "noNewPrivileges": True},
        "root": {"path": "rootfs", "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
        ],
        "linux": {"namespaces": [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount")]},
    }
    (home / "bundle" / "config.json").write_text(json.dumps(spec))
    return home / "bundle"


def oci(program, *flags):
    def make(home):
        path = need(program)
        state = home / f"{program}-state"
        state.mkdir(exist_ok=True)
        # A name per start: the shell's pid.
        script = f'exec {path} --root {state} {" ".join(flags)} run --bundle {bundle(home)} b$$'
        return ["/bin/sh", "-c", script]

    return make


@contextlib.contextmanager
def dockerd(home):
    """A dockerd of our own, in its own directories, without networks."""
    need("docker")
    daemon = need("dockerd")
    sock = f"unix://{home}/docker.sock"
    log = open(home / "dockerd.log", "wb")
    process = subprocess.Popen(
        [daemon, "-H", sock, "--data-root", f"{home}/docker", "--exec-root", f"{home}/docker-exec", "--pidfile", f"{home}/docker.pid",
         "--iptables=false", "--bridge=none", "--storage-driver=vfs"], stdout=log, stderr=log)  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while subprocess.run(["docker", "-H", sock, "info"], capture_output=True).returncode != 0:
            if process.poll() is not None or time.monotonic() > deadline:
                tail = (home / "dockerd.log").read_text(errors="replace")[-300:]
                raise Absent(f"dockerd does not start here: {tail}")
            time.sleep(0.2)
        yield sock
    finally:
        process.terminate()
        process.wait(30)


def docker_image(home, sock):
    """An empty image with the links; /usr comes by a volume."""
    archive = home / "image.tar"
    with tarfile.open(archive, "w") as tar:
        for name in ("usr", "proc", "dev", "tmp", "etc"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for name, target in LINKS.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    done = subprocess.run(["docker", "-H", sock, "import", str(archive), "bench"], capture_output=True)
    if done.returncode:
        raise Absent(f"docker import: {done.stderr[-200:]!r}")


def docker(home, sock):
    docker_image(home, sock)
    return ["docker", "-H", sock, "run", "--rm", "--network", "none", "-v", "/usr:/usr:ro", "bench", *PYTHON]


# name -> maker of its argv; dockerd needs an engine around it and is handled by the caller.
PEERS = {
    "bare python3": bare,
    "bwrap": bwrap,
    "runc": oci("runc"),
    "crun": oci("crun", "--cgroup-manager=disabled"),
    "runsc": oci("runsc", "--platform=ptrace", "--ignore-cgroups", "--network=none"),
}


def versions():
    found = {}
    for name, argv in {
        "python3": ["/usr/bin/python3", "--version"],
        "bwrap": ["bwrap", "--version"],
        "runc": ["runc", "--version"],
        "runsc": ["runsc", "--version"],
        "docker": ["docker", "--version"],
    }.items():
        if shutil.which(argv[0]):
            found[name] = subprocess.run(argv, capture_output=True, text=True).stdout.splitlines()[0]
    found["kernel"] = os.uname().release
    found["cores"] = os.cpu_count()
    cpu = [l for l in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if l.startswith("model name")]
    found["cpu"] = cpu[0].split(":", 1)[1].strip() if cpu else "?"
    return found
