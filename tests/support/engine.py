# SPDX-License-Identifier: Apache-2.0
"""An engine as its daemon sees it (src/engine/engine.h): a program started with a socket, requests and replies as fixed structs."""

import errno
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

from support.sanitizer import BUILD, ROOT

sys.path.insert(0, str(ROOT / "tests/unit/guest"))

import harness  # noqa: E402

#: How long a message is waited for: only an engine that hangs takes it.
HANG_S = 60
OPS = ["NONE", "PROBE", "CREATE", "DESTROY", "FREEZE", "PROBED", "CREATED", "FROZEN", "FAILED", "GONE", "ADOPT", "END", "KEPT",
       "ADOPTED", "ZYGOTE", "CLAIM", "REACH"]
OP = {name: number for number, name in enumerate(OPS)}
FDS = ["agent", "pidfd", "kill", "memory", "pids", "cpu", "network", "gateway", "refusals"]
LAYERS = ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup_ns", "time", "cgroup.memory", "cgroup.pids", "cgroup.cpu", "uid_range", "caps",
          "no_new_privs", "seccomp", "landlock", "rlimits", "cgroup.io"]
GRADES = ["namespace", "gvisor", "vm"]
FEATURES = ["image", "packages", "zygote", "egress", "gateway", "bridge", "freeze", "keep"]
REQUIRE_CGROUP, EXEC_TMP, KEEP, IMAGE, SPARE, EGRESS, GATEWAY, PACKAGES, BRIDGE = (1 << n for n in range(9))
MIB = 1 << 20
LIMITS = {"memory": 256 * MIB, "workspace": 32 * MIB, "tmp": 16 * MIB, "shm": 8 * MIB, "workspace_inodes": 1000, "tmp_inodes": 500,
          "pids": 64, "cpu": 1000}
REQUEST = struct.Struct("<II32s4Q4III65s65s65sBH2x")
ERROR = struct.Struct("<IiI64s240s")
HEAD = struct.Struct("<II32s")


def names(mask, words):
    return {word for bit, word in enumerate(words) if mask & 1 << bit}


def string(data):
    return data.split(b"\0", 1)[0].decode()


class Box(harness.Agent):
    """The agent of a box over the socket that came with CREATED, and the other descriptors by name."""

    def __init__(self, fields, fds):
        self.fields, self.fds = fields, fds
        self.sock = socket.socket(fileno=fds.pop("agent"))
        self.engine_end, self.pid, self.inbox = None, 0, b""
        self.uid, self.ids = fields["uid"], True

    def begin(self):
        self.hello = self.expect("HELLO")
        self.send(self.setup())
        return self

    def shell(self, script, ident=1, **options):
        return self.run(["/bin/sh", "-c", script], ident=ident, **options)

    def counter(self, which, file):
        fd = os.open(file, os.O_RDONLY, dir_fd=self.fds[which])
        with open(fd) as f:
            return f.read().strip()

    def has_ended(self, timeout=HANG_S):
        return bool(select.select([self.fds["pidfd"]], [], [], timeout)[0])

    def close(self):
        super().close()
        while self.fds:
            os.close(self.fds.popitem()[1])


class Engine:
    """A program that serves an engine's socket."""

    def __init__(self, program, words=(), home=None):
        self.home = home or tempfile.mkdtemp(prefix=f"mbxtest-{os.getpid()}-engine-")
        self.seq = 0
        self.boxes = []
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.log = open(f"{self.home}/log", "ab+")
        words = [*words, "--agent", str(BUILD / "millibox-agent"), "--runners", str(ROOT / "runners"), "--runtime-dir", f"{self.home}/run",
                 "--uid-base", "1900000000", "--log-level", "debug", "--log-format", "text", "--max-memory", str(1 << 40),
                 "--max-disk", str(1 << 40), "--max-pids", "10000", "--max-cpu", "0", "--identity", "1"]
        self.process = subprocess.Popen(
            [str(program), *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log, env={},
            pass_fds=(3,), preexec_fn=lambda: os.dup2(theirs.fileno(), 3, inheritable=True))  # fmt: skip
        theirs.close()

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def send(self, op, box="", limits=None, flags=0, frozen=0, root="", packages="", tenant=""):
        self.seq += 1
        values = [0] * 8 if limits is None else [{**LIMITS, **limits}[name] for name in LIMITS]
        self.sock.send(REQUEST.pack(OP[op], self.seq, box.encode(), *values, flags, frozen, root.encode(), packages.encode(),
                                    tenant.encode(), 0, 0))
        return self.seq

    def receive(self, timeout=HANG_S):
        """The next reply as (op, seq, box, fields, descriptors), or None at the end."""
        assert select.select([self.sock], [], [], timeout)[0], f"no reply within {timeout} s: {self.said()}"
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, 4096, 16)
        except OSError as error:
            assert error.errno == errno.ECONNRESET
            return None
        if not data:
            return None
        op, seq, box = HEAD.unpack_from(data)
        return OPS[op], seq, string(box), self.decode(OPS[op], data), fds

    @staticmethod
    def decode(op, data):
        at = HEAD.size
        if op == "PROBED":
            keys = ("layers", "cgroup", "ids", "landlock_abi", "uid", "gid", "daemon_uid", "boxes_max", "identity", "features", "grade",
                    "runtime", "release")
            found = dict(zip(keys, struct.unpack_from("<8IQII32s64s", data, at)))
            return {**found, "layers": names(found["layers"], LAYERS), "features": names(found["features"], FEATURES),
                    "grade": GRADES[found["grade"]], "runtime": string(found["runtime"]), "release": string(found["release"])}
        if op in ("CREATED", "KEPT"):
            keys = ("fds", "layers", "vouched", "host_uid", "pid", "uid", "gid", "frozen", "start")
            found = dict(zip(keys, struct.unpack_from("<9I", data, at)))
            return {**found, "layers": names(found["layers"], LAYERS), "vouched": names(found["vouched"], LAYERS)}
        if op == "FAILED":
            code, number, _, field, text = ERROR.unpack_from(data, at)
            return {"code": code, "sys": number, "field": string(field), "text": string(text)}
        if op == "GONE":
            return dict(zip(("status", "leftovers"), struct.unpack_from("<iI", data, at)))
        return {}

    def ask(self, op, *args, **fields):
        """Send and return the answer to it, which must be the next reply."""
        seq = self.send(op, *args, **fields)
        answer = self.receive()
        assert answer and answer[1] == seq, (answer, self.said())
        return answer

    def probe(self):
        op, _, _, fields, _ = self.ask("PROBE")
        assert op == "PROBED", fields
        return fields

    def create(self, name, limits=None, **fields):
        """A box whose agent runs and is set up."""
        op, _, _, found, fds = self.ask("CREATE", name, limits=limits or {}, **fields)
        assert op == "CREATED", found
        # By bit, lowest first.
        box = Box(found, dict(zip((word for bit, word in enumerate(FDS) if found["fds"] & 1 << bit), fds)))
        self.boxes.append(box)
        return box

    def destroy(self, name):
        op, _, _, fields, _ = self.ask("DESTROY", name)
        assert op == "GONE", fields
        return fields

    def end(self):
        """As when the daemon goes. Return: exit status."""
        for box in self.boxes:
            box.close()
        self.boxes = []
        self.sock.close()
        return self.process.wait(HANG_S)

    def kill(self):
        """The process that was started, which is the guard: all others end with it."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(HANG_S)

    def close(self):
        if self.process.poll() is None:
            self.end()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)
