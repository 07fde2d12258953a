# SPDX-License-Identifier: Apache-2.0
"""Drives millibox-agent over its control socket, without daemon or engine.

The agent runs as PID 1 of namespaces made here, on a small root of its own; the wire is spoken by an
encoder written from docs/protocol.md, not from the C sources.
"""

import ctypes
import fcntl
import os
import select
import socket
import struct
import time

#: How long a message is waited for: only an agent that hangs takes it.
HANG_S = 60
VERSION = 5
STDIN_WINDOW = 256 * 1024
TERMINAL_WINDOW = 256 * 1024
HOST = ["SETUP", "PUT_BEGIN", "PUT_DATA", "PUT_END", "EXEC", "STDIN", "STDIN_END", "SIGNAL", "BYE"]
AGENT = ["HELLO", "STARTED", "STDIN_ROOM", "OUTPUT", "REPORT", "DENIAL", "DONE", "FAILED", "LOG"]
LATER = ["RUN", "LABEL", "ACK", "RESUME", "DESCRIBE"]
FILES = ["FILE_OPEN", "FILE_DATA", "FILE_END", "FILE_GRANT", "FILE_CANCEL", "FILE_ROOM", "FILE_ENTRY", "FILE_BYTES",
         "FILE_DONE", "FILE_FAILED", "CHANGED", "PREPARE", "READY"]
PORTS = ["PORT_OPEN", "PORT_SEND", "PORT_FINISH", "PORT_GRANT", "PORT_RESET", "PORT_OPENED", "PORT_ROOM", "PORT_BYTES",
         "PORT_FINISHED", "PORT_CLOSED", "PORT_LIST", "PORT_FOUND", "PORT_LISTED"]
BESIDE = ["BESIDE", "RESIZE", "OUTPUT_GRANT"]
TYPES = {name: number for number, name in enumerate(HOST + AGENT + LATER + FILES + PORTS + BESIDE, start=1)}
NAMES = {number: name for name, number in TYPES.items()}
FIELDS = {
    "HELLO": [("version", "I"), ("layers", "I"), ("landlock_abi", "I")],
    "STARTED": [("pid", "I"), ("injected", "B")],
    "STDIN_ROOM": [("bytes", "I")],
    "OUTPUT": [("stream", "B"), ("data", "s")],
    "REPORT": [("data", "s")],
    "DENIAL": [("kind", "B"), ("number", "I"), ("count", "Q")],
    "DONE": [
        ("signalled", "B"), ("status", "i"), ("duration_us", "Q"), ("cpu_user_us", "Q"),
        ("cpu_system_us", "Q"), ("max_rss_kib", "Q"), ("read_bytes", "Q"), ("write_bytes", "Q"),
        ("stdout_bytes", "Q"), ("stderr_bytes", "Q"), ("disk_full", "B"), ("runner_lost", "B"),
    ],
    "FAILED": [("code", "I"), ("sys", "i"), ("text", "s")],
    "LOG": [("level", "B"), ("text", "s")],
    "RESUME": [("last_id", "I"), ("count", "I")],
    "DESCRIBE": [
        ("keep", "B"), ("runner", "I"), ("stdin_open", "B"), ("stdin_room", "I"), ("stdin_bytes", "Q"),
        ("text", "s"),
    ],
    "FILE_ROOM": [("bytes", "I")],
    "FILE_ENTRY": [
        ("type", "B"), ("path", "s"), ("size", "Q"), ("mtime_ns", "Q"), ("ctime_ns", "Q"), ("inode", "Q"),
        ("mode", "I"), ("target", "s"), ("sha256", "s"),
    ],
    "FILE_BYTES": [("data", "s")],
    "FILE_DONE": [("truncated", "B"), ("entries", "Q"), ("bytes", "Q")],
    "FILE_FAILED": [("code", "I"), ("sys", "i"), ("text", "s")],
    "CHANGED": [("since_ns", "Q")],
    "READY": [("unused", "B")],
    "PORT_OPENED": [("unused", "B")],
    "PORT_ROOM": [("bytes", "I")],
    "PORT_BYTES": [("data", "s")],
    "PORT_FINISHED": [("unused", "B")],
    "PORT_CLOSED": [("sys", "i")],
    "PORT_FOUND": [("port", "H"), ("bound", "B")],
    "PORT_LISTED": [("truncated", "B")],
}

RUN, WORKSPACE = 0, 1
NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18


def u8(n):
    return struct.pack("<B", n)


def u16(n):
    return struct.pack("<H", n)


def u32(n):
    return struct.pack("<I", n)


def u64(n):
    return struct.pack("<Q", n)


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return u32(len(data)) + data


def texts(values):
    return u32(len(values)) + b"".join(text(v) for v in values)


def frame(name, payload=b"", ident=0):
    number = name if isinstance(name, int) else TYPES[name]
    return struct.pack("<IHHI", len(payload), number, 0, ident) + payload


def decode(name, payload):
    out, pos = {}, 0
    for field, kind in FIELDS[name]:
        if kind == "s":
            (length,) = struct.unpack_from("<I", payload, pos)
            out[field] = payload[pos + 4 : pos + 4 + length]
            pos += 4 + length
        else:
            (out[field],) = struct.unpack_from("<" + kind, payload, pos)
            pos += struct.calcsize("<" + kind)
    assert pos == len(payload), f"{name}: {len(payload) - pos} bytes too many"
    return out


def check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source, target, kind, flags, data=""):
    check(LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode()),
          f"mount {target}")


def build_root(agent, owner, runners):
    """A root with what the agent and a program need, on a tmpfs that ends with the namespace."""
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    root = "/mnt"
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    for name in ("usr", "dev", "proc", "etc", "run/millibox", "workspace", "tmp", "dev/shm", "dev/pts"):
        os.makedirs(f"{root}/{name}")
    mount("/usr", f"{root}/usr", "", MS_BIND | MS_REC)
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink(f"usr/{name}", f"{root}/{name}")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        with open(f"{root}/dev/{name}", "w"):
            pass
        mount(f"/dev/{name}", f"{root}/dev/{name}", "", MS_BIND)
    for name in ("workspace", "tmp", "dev/shm"):
        mount("tmpfs", f"{root}/{name}", "tmpfs", MS_NOSUID | MS_NODEV, "size=32m,nr_inodes=500")
        os.chown(f"{root}/{name}", owner, owner)
    mount("devpts", f"{root}/dev/pts", "devpts", MS_NOSUID, f"newinstance,ptmxmode=0600,mode=0600,uid={owner},gid={owner},max=32")
    for name, data in runners.items():
        os.makedirs(os.path.dirname(f"{root}/opt/millibox/runners/{name}"), exist_ok=True)
        with open(f"{root}/opt/millibox/runners/{name}", "wb") as f:
            f.write(data)
    mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV)
    binary = f"{root}/run/agent"
    with open(agent, "rb") as source, open(binary, "wb") as target:
        target.write(source.read())
    os.chmod(binary, 0o755)
    os.chroot(root)
    os.chdir("/")


def raise_loopback():
    """The engine's boxes have it, too."""
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


class Pipes:
    """Two pipes with the methods of a socket that Agent uses."""

    def __init__(self):
        self.theirs_in, self.out = os.pipe()
        self.into, self.theirs_out = os.pipe()

    def fileno(self):
        return self.into

    def sendall(self, data):
        while data:
            data = data[os.write(self.out, data):]

    def recv(self, size):
        return os.read(self.into, size)

    def close_theirs(self):
        os.close(self.theirs_in)
        os.close(self.theirs_out)

    def close(self):
        os.close(self.out)
        os.close(self.into)


class Agent:
    """One agent. @ids: the host's first id of two for agent and payload, or None for one only.
    @runners: what is in /opt/millibox/runners, by name. @kept: it outlives its daemon; the reattach socket is self.engine_end.
    @stdio: started as by a container runtime that passes no other descriptors: on a "socket" or on "pipes"."""

    def __init__(self, path, ids=None, runners=None, kept=False, stdio=None):
        self.stdio = stdio
        self.ids = ids
        self.engine_end, self._agent_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) if kept else (None, None)
        self.runners = runners or {}
        self.uid = 1000 if ids else os.getuid() or 0
        self.sock, theirs = (Pipes(), None) if stdio == "pipes" else socket.socketpair()
        go_read, go_write = os.pipe()
        ready_read, ready_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._child(path, theirs, go_read, ready_write)
        if theirs:
            theirs.close()
        else:
            self.sock.close_theirs()
        if kept:
            self._agent_end.close()
        os.close(go_read)
        os.close(ready_write)
        assert os.read(ready_read, 1) == b"r", "the namespaces could not be made"
        self._map()
        os.write(go_write, b"g")
        os.close(go_write)
        os.close(ready_read)
        self.inbox = b""

    def _map(self):
        def write(name, value):
            with open(f"/proc/{self.pid}/{name}", "w") as f:
                f.write(value)

        if self.ids:
            pair = f"0 {self.ids} 1\n1000 {self.ids + 1} 1\n"
            write("uid_map", pair)
            write("gid_map", pair)
        else:
            write("setgroups", "deny")
            write("uid_map", f"{self.uid} {os.getuid()} 1\n")
            write("gid_map", f"{self.uid} {os.getgid()} 1\n")

    def _child(self, path, sock, go_read, ready_write):
        status = 1
        try:
            # Nothing of other agents: their end would otherwise stay open as long as this one.
            streams = {sock.fileno()} if sock else {self.sock.theirs_in, self.sock.theirs_out}
            kept = streams | {go_read, ready_write} | ({self._agent_end.fileno()} if self._agent_end else set())
            for fd in set(range(3, 256)) - kept:
                os.closerange(fd, fd + 1)
            check(LIBC.unshare(NEWUSER | NEWNS | NEWPID | NEWNET | NEWIPC), "unshare")
            os.write(ready_write, b"r")
            os.read(go_read, 1)
            if self.ids:
                os.setgroups([])
                os.setresgid(0, 0, 0)
                os.setresuid(0, 0, 0)
            inner = os.fork()
            if inner == 0:
                LIBC.prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG
                build_root(path, self.uid, self.runners)
                raise_loopback()
                if self.uid and not self.ids:
                    # Executing as an ordinary id loses the right to do it later.
                    for cap in range(41):
                        LIBC.prctl(24, cap, 0, 0, 0)  # PR_CAPBSET_DROP
                if self.stdio:
                    self._execute_by_stdio(sock)
                hot = os.dup2(self._agent_end.fileno(), 200) if self._agent_end else 0
                os.dup2(sock.fileno(), 3, inheritable=True)
                os.set_inheritable(3, True)
                if hot:
                    os.dup2(hot, 4, inheritable=True)
                os.closerange(5 if hot else 4, 1024)
                os.closerange(0, 3)
                os.execve("/run/agent", ["agent", "keep"] if hot else ["agent"], {})
            _, wait = os.waitpid(inner, 0)
            status = os.waitstatus_to_exitcode(wait)
            if status < 0:
                status = 128 - status
        except BaseException as error:  # a test must see why
            os.write(2, f"harness: {error}\n".encode())
        os._exit(status)

    def _execute_by_stdio(self, sock):
        if sock:
            os.dup2(sock.fileno(), 200)
            os.dup2(os.open("/dev/null", os.O_RDWR), 201)
        else:
            os.dup2(self.sock.theirs_in, 200)
            os.dup2(self.sock.theirs_out, 201)
        os.dup2(200, 0)
        os.dup2(201, 1)
        os.dup2(201, 2)
        os.closerange(3, 1024)
        os.execve("/run/agent", ["agent", "stdio", "lacks=32768"], {})

    def reattach(self):
        """Give it a new stream, as the engine does for a new daemon. Return: its DESCRIBEs, by id."""
        self.sock.close()
        self.inbox = b""
        self.sock, theirs = socket.socketpair()
        socket.send_fds(self.engine_end, [struct.pack("<II", 0x6D62686C, 0)], [theirs.fileno()])
        theirs.close()
        self.expect("HELLO")
        resume = self.expect("RESUME")
        self.last_id = resume["last_id"]
        described = {}
        for _ in range(resume["count"]):
            name, ident, fields = self.receive()
            assert name == "DESCRIBE" and ident not in described
            described[ident] = fields
        return described

    def send(self, *frames):
        self.sock.sendall(b"".join(frames))

    def setup(self, **over):
        values = dict(version=VERSION, uid=self.uid, gid=self.uid, nofile=1024, nproc=512,
                      fsize=1 << 30, data_limit=0, landlock=0)
        values.update(over)
        return frame("SETUP", b"".join([
            u32(values["version"]), u32(values["uid"]), u32(values["gid"]), u32(values["nofile"]),
            u32(values["nproc"]), u64(values["fsize"]), u64(values["data_limit"]),
            u8(values["landlock"])]))

    @staticmethod
    def exec(argv, ident=1, env=("PATH=/usr/bin:/bin",), cwd="", out=1 << 20, err=1 << 20, drain=100,
             stdin=0, report=0, keep=0):
        return frame("EXEC", texts(argv) + texts(env) + text(cwd) + u64(out) + u64(err) + u32(drain)
                     + u8(stdin) + u32(report) + u8(keep), ident)

    @staticmethod
    def beside(argv, ident, rows=0, cols=0, env=("PATH=/usr/bin:/bin",), out=1 << 20, err=1 << 20, drain=100, stdin=0, source=""):
        """A program beside the execution; with @rows and @cols on a terminal."""
        return frame("BESIDE", texts(argv) + texts(env) + text("") + u64(TERMINAL_WINDOW if rows else out) + u64(err) + u32(drain)
                     + u8(stdin) + text(source) + u16(rows) + u16(cols), ident)

    @classmethod
    def ask(cls, code, ident, runner=1, args=(), out=1 << 20, err=1 << 20, drain=100, stdin=0, report=1 << 20):
        """Code for a resident runner: its file and the RUN."""
        data = code if isinstance(code, bytes) else code.encode()
        return cls.put(f"run{ident}", data, ident) + frame(
            "RUN", u32(runner) + text(f"run{ident}") + texts(["", *args]) + u64(out) + u64(err) + u32(drain)
            + u8(stdin) + u32(report), ident)

    @staticmethod
    def put(path, data, ident=1, place=RUN, mode=0o444, chunk=65536):
        frames = [frame("PUT_BEGIN", u8(place) + text(path) + u32(mode), ident)]
        for pos in range(0, len(data), chunk):
            frames.append(frame("PUT_DATA", text(data[pos : pos + chunk]), ident))
        frames.append(frame("PUT_END", u8(0), ident))
        return b"".join(frames)

    def receive(self, timeout=HANG_S):
        """The next message as (name, id, fields), or None at the end."""
        limit = time.monotonic() + timeout
        while True:
            if len(self.inbox) >= 12:
                length, number, zero, ident = struct.unpack_from("<IHHI", self.inbox)
                assert zero == 0 and length <= 128 * 1024
                if len(self.inbox) >= 12 + length:
                    payload = self.inbox[12 : 12 + length]
                    self.inbox = self.inbox[12 + length :]
                    return NAMES[number], ident, decode(NAMES[number], payload)
            left = limit - time.monotonic()
            ready, _, _ = select.select([self.sock], [], [], max(left, 0))
            assert ready, f"no message within {timeout} s"
            try:
                data = self.sock.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self.inbox += data

    def expect(self, name, timeout=HANG_S):
        got = self.receive(timeout)
        assert got is not None and got[0] == name, f"expected {name}, got {got}"
        return got[2]

    def collect(self, ident=1, timeout=HANG_S):
        """Everything of one execution until DONE or FAILED; nothing else may come meanwhile."""
        # Arrays grow in place: to add to bytes copies all of them, 8 GiB for 32 MiB of output.
        run = {"stdout": bytearray(), "stderr": bytearray(), "report": bytearray(), "denials": {}, "log": []}
        while True:
            got = self.receive(timeout)
            assert got is not None, f"the agent ended: {run}"
            name, of, fields = got
            if name == "LOG":
                run["log"].append(fields["text"])
                continue
            assert of == ident, f"{got} is of another execution"
            if name == "OUTPUT":
                assert fields["data"], "an empty OUTPUT"
                run[("stdout", "stderr")[fields["stream"]]] += fields["data"]
            elif name == "REPORT":
                run["report"] += fields["data"]
            elif name == "DENIAL":
                run["denials"][fields["number"]] = fields["count"]
            elif name in ("DONE", "FAILED"):
                run[name.lower()] = fields
                return {key: bytes(value) if isinstance(value, bytearray) else value for key, value in run.items()}
            else:
                run.setdefault(name.lower(), []).append(fields)

    def run(self, argv, **options):
        self.send(self.exec(argv, **options))
        return self.collect(options.get("ident", 1))

    def memory_kib(self):
        """Resident memory of PID 1, from outside."""
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as f:
            inner = f.read().split()[0]
        with open(f"/proc/{inner}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def wait(self):
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self):
        self.sock.close()
        if self.engine_end:
            self.engine_end.close()
        if self.pid:
            self.wait()
