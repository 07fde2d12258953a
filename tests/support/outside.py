# SPDX-License-Identifier: Apache-2.0
"""A host and an outside world of a test's own, for boxes with network bridge: two network namespaces with a cable between
them. The daemon runs in the first; servers listen in the second. Nothing of this machine's own network is touched."""

import contextlib
import ctypes
import functools
import os
import socket
import subprocess
import threading

from support import host
from support.daemon import Daemon

#: Addresses of the outside world. PUBLIC counts as public for the rules, the others do not.
PUBLIC, PRIVATE, OPENED, METADATA, OTHER = "9.9.9.9", "10.1.0.9", "10.2.0.9", "169.254.169.254", "192.168.7.9"
#: The host's own end of the cable, and its gateway.
OWN, GATEWAY = "9.9.9.1", "9.9.9.9"
SUBNET = "100.96.0.0/24"
BOX_GATEWAY = "100.96.0.1"
PORT = 7000

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


@functools.cache
def missing():
    """Why the tests of this file cannot run, or None."""
    if not host.is_root():
        return "needs root: it makes interfaces"
    if not os.path.exists("/usr/sbin/nft"):
        return "needs /usr/sbin/nft"
    # Other processes of the same test run try this, too.
    name = f"mbxp{os.getpid()}"
    made = subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}x"], capture_output=True, text=True)
    if made.returncode:
        return f"the kernel makes no veth: {made.stderr.strip()}"
    subprocess.run(["ip", "link", "del", name], check=True)
    return None


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


@contextlib.contextmanager
def inside(pid):
    """This thread in the network namespace of process @pid."""
    with open("/proc/thread-self/ns/net") as home, open(f"/proc/{pid}/ns/net") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            if libc.setns(home.fileno(), CLONE_NEWNET) < 0:
                os._exit(1)


class Outside:
    """@host and @world are processes that keep the two namespaces: names would be mounts."""

    def __init__(self):
        self._keepers = []
        self.host = self.world = None
        self.seen = []  # (server address, client address) of TCP connections, (bytes, client address) of datagrams
        self._sockets = []

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        self.host, self.world = self._keep(), self._keep()
        for pid in (self.host, self.world):
            self.ip(pid, "link", "set", "lo", "up")
        self.ip(self.host, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", str(self.world))
        self.ip(self.host, "addr", "add", f"{OWN}/24", "dev", "cable")
        self.ip(self.host, "link", "set", "cable", "up")
        self.ip(self.world, "link", "set", "cable", "up")
        for address in (PUBLIC, PRIVATE, OPENED, METADATA, OTHER):
            self.ip(self.world, "addr", "add", f"{address}/{24 if address == PUBLIC else 32}", "dev", "cable")
        self.ip(self.host, "route", "add", "default", "via", GATEWAY)
        self.forward(True)
        self.listen(self.host, OWN)
        # One socket for each: a datagram's answer comes from the address that was asked.
        for address in (PUBLIC, PRIVATE, OPENED, METADATA, OTHER):
            self.listen(self.world, address)

    def _keep(self):
        keeper = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self._keepers.append(keeper)
        home = os.readlink("/proc/self/ns/net")
        host.wait_until(lambda: os.readlink(f"/proc/{keeper.pid}/ns/net") != home, 10, "a network namespace")
        return keeper.pid

    @staticmethod
    def enter(pid):
        """Not ip-netns(8), which would hide the cgroups."""
        return ["nsenter", f"--net=/proc/{pid}/ns/net"]

    def ip(self, pid, *args):
        return run(*self.enter(pid), "ip", *args).stdout

    def batch(self, *commands):
        """Commands of ip(8) on the host."""
        subprocess.run([*self.enter(self.host), "ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)

    def nft(self, *args):
        return run(*self.enter(self.host), "nft", *args, check=False).stdout

    def forward(self, on):
        run(*self.enter(self.host), "sysctl", "-q", "-w", f"net.ipv4.ip_forward={int(on)}")

    def listen(self, pid, address, port=PORT):
        """Answers every connection with the address it came from."""
        with inside(pid):
            server = socket.create_server((address, port))
            datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            datagrams.bind((address, port))
        self._sockets += [server, datagrams]
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()
        threading.Thread(target=self._echo, args=(datagrams,), daemon=True).start()

    def _accept(self, server):
        with contextlib.suppress(OSError):
            while True:
                connection, peer = server.accept()
                self.seen.append((connection.getsockname()[0], peer[0]))
                with connection:
                    connection.sendall(f"reached from {peer[0]}".encode())

    def _echo(self, datagrams):
        with contextlib.suppress(OSError):
            while True:
                data, peer = datagrams.recvfrom(2048)
                if not peer:  # shut down
                    return
                self.seen.append((data, peer[0]))
                datagrams.sendto(f"reached from {peer[0]}".encode(), peer)

    def links(self):
        """Interfaces of boxes on the host."""
        text = self.ip(self.host, "-o", "link", "show")
        return [line.split(": ")[1].split("@")[0] for line in text.splitlines() if ": millibox" in line]

    def entries(self):
        """Connections that the host's kernel tracks."""
        return int(run(*self.enter(self.host), "cat", "/proc/sys/net/netfilter/nf_conntrack_count").stdout)

    def traces(self):
        """What millibox-bridge makes on the host."""
        tables = [line for line in self.nft("list", "tables").splitlines() if "millibox" in line]
        routes = [line for line in self.ip(self.host, "route", "show").splitlines() if "blackhole" in line]
        return self.links() + tables + routes

    def __exit__(self, *exc):
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for keeper in self._keepers:
            keeper.kill()
            keeper.wait()


class BridgeDaemon(Daemon):
    """A daemon in the network namespace of @outside's host."""

    POLICY = "name: {name}\nnetwork: {{mode: {mode}}}\n"

    def __init__(self, outside, policies=None, before=(), **more):
        super().__init__(**more)
        self.before = before  # words of a command that starts the daemon
        self.outside = outside
        policies = policies or {"net": self.POLICY.format(name="net", mode="bridge")}
        (self.home / "policies").mkdir()
        for name, text in policies.items():
            (self.home / "policies" / f"{name}.yaml").write_text(text)
        settings = {"policy.dir": self.home / "policies", "policy.default": next(iter(policies)),
                    "policy.selectable": ",".join(policies), "bridge.enabled": "true", "bridge.subnet": SUBNET,
                    "bridge.allow": "10.2.0.0/16"}  # fmt: skip
        self.env = {**{f"MILLIBOX_{key.replace('.', '_').upper()}": str(value) for key, value in settings.items()}, **self.env}

    def command(self):
        return [*self.outside.enter(self.outside.host), *self.before, *super().command()]

    def helper_pid(self):
        """millibox-bridge of this daemon: the one in its network namespace."""
        net = os.stat(f"/proc/{self.outside.host}/ns/net").st_ino
        for pid in host.all_pids():
            with contextlib.suppress(OSError):
                if host.comm(pid) == "millibox-bridge" and os.stat(f"/proc/{pid}/ns/net").st_ino == net:
                    return pid
        return None

    def execute(self, code, language="python", **more):
        with self.client() as client:
            return client.post("/api/v1/execute", {"language": language, "code": code, "receipt": "plain", **more})


@contextlib.contextmanager
def daemons():
    """A world, and a function that starts a daemon in it; all have ended afterwards, and nothing of them is left there."""
    with Outside() as world:
        started = []

        def start(ready=True, **more):
            started.append(BridgeDaemon(world, **more))
            return started[-1].start(ready)

        try:
            yield world, start
            for daemon in started:
                if daemon.process.poll() is None:
                    assert daemon.stop() == 0
            assert world.traces() == []
        finally:
            for daemon in started:
                daemon.remove()
