# SPDX-License-Identifier: Apache-2.0
"""A Docker Engine of the tests' own: its own data, its own socket, no network; and one that is none."""

import contextlib
import http.client
import json
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.parse

from support import host

CAN_RUN = host.is_root() and all(shutil.which(name) for name in ("dockerd", "containerd", "runc"))
WHY_NOT = "needs root and Docker (apt-get install docker.io)"


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("docker", timeout=host.HANG_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Docker:
    """A dockerd below a directory of its own."""

    def __init__(self):
        # Short, for its sockets have bounded names; a namespace of containerd has no "_".
        self.place = pathlib.Path("/tmp", "mb-docker-" + secrets.token_hex(6))
        self.place.mkdir(mode=0o755)
        self.socket = str(self.place / "sock")
        self.process = None
        self.start()

    def start(self):
        place = self.place
        argv = ["dockerd", "--data-root", place / "data", "--exec-root", place / "exec", "--pidfile", place / "pid",
                "--host", f"unix://{self.socket}", "--iptables=false", "--ip6tables=false", "--bridge=none", "--ip-masq=false",
                "--ip-forward=false", "--userland-proxy=false", "--exec-opt", "native.cgroupdriver=cgroupfs",
                "--containerd-namespace", place.name, "--containerd-plugins-namespace", place.name + "-plugins",
                "--cgroup-parent", "/" + place.name]
        # Boxes have no network, so gVisor needs none of its own.
        runtimes = {"runsc": {"path": shutil.which("runsc"), "runtimeArgs": ["--network=none"]}} if shutil.which("runsc") else {}
        (place / "daemon.json").write_text(json.dumps({"runtimes": runtimes}))
        argv += ["--config-file", place / "daemon.json"]
        with open(place / "log", "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        host.wait_until(self.is_up, 30, "dockerd answers")

    def is_up(self):
        assert self.process.poll() is None, (self.place / "log").read_text()[-2000:]
        try:
            return self.call("GET", "/_ping")[0] == 200
        except OSError:
            return False

    def kill(self):
        """As a crash: no container is told."""
        self.process.kill()
        self.process.wait()
        # containerd dies with it; nobody may have reaped that yet, and dockerd would wait for it.
        (self.place / "exec/containerd/containerd.pid").unlink()

    def call(self, method, path, body=None, kind="application/json"):
        """Return: status, and what the answer says."""
        connection = Connection(self.socket)
        try:
            data = json.dumps(body).encode() if kind == "application/json" and body is not None else body
            connection.request(method, path, data, {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text) if text else None
        except ValueError:
            return answer.status, text

    def containers(self, label="millibox.instance"):
        filters = urllib.parse.quote(json.dumps({"label": [label]} if label else {}))
        status, found = self.call("GET", f"/containers/json?all=1&filters={filters}")
        assert status == 200
        return {names["Names"][0][1:]: names for names in found}

    def images(self):
        return {tag: image for image in self.call("GET", "/images/json")[1] for tag in image["RepoTags"] or []}

    def load_image(self, name, archive, changes=()):
        repo, tag = name.split(":")
        query = [("fromSrc", "-"), ("repo", repo), ("tag", tag), *(("changes", c) for c in changes)]
        status, text = self.call("POST", "/images/create?" + urllib.parse.urlencode(query), archive, "application/x-tar")
        assert status == 200, text

    def close(self):
        for name in self.containers(label=None):
            self.call("DELETE", f"/containers/{name}?force=1&v=1")
        self.process.terminate()
        self.process.wait(host.HANG_S)
        for line in reversed(pathlib.Path("/proc/self/mounts").read_text().splitlines()):
            if line.split()[1].startswith(str(self.place)):
                subprocess.run(["umount", "-l", line.split()[1]], check=True)
        for tree in [host.CGROUP_ROOT, *host.CGROUP_ROOT.iterdir()]:
            group = tree / self.place.name
            if group.is_dir():
                for child in [*sorted(group.rglob("*"), reverse=True), group]:
                    if child.is_dir():
                        child.rmdir()
        shutil.rmtree(self.place)


@contextlib.contextmanager
def impostor(answer):
    """A Unix socket whose server sends @answer to whatever it is asked, and closes. Yields its path."""
    with tempfile.TemporaryDirectory(prefix="mb-", dir="/tmp") as place:
        path = os.path.join(place, "sock")
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        os.chmod(path, 0o777)
        os.chmod(place, 0o755)
        server.listen()

        def serve():
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client, contextlib.suppress(OSError):
                    client.recv(65536)
                    for piece in [answer] if isinstance(answer, bytes) else answer():
                        client.sendall(piece)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield path
        finally:
            server.shutdown(socket.SHUT_RDWR)
            server.close()
            thread.join()


