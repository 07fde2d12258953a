# SPDX-License-Identifier: Apache-2.0
"""A daemon's end of an engine (src/engine/engine.h): starts its program, sends requests, takes descriptors."""

import array
import ctypes
import enum
import os
import pathlib
import re
import select
import socket
import subprocess
import sys

from support.host import HANG_S

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/unit/guest"))
from harness import Agent  # noqa: E402

HEADER = (ROOT / "src/engine/engine.h").read_text()
MIB = 1 << 20


def enumeration(prefix, text):
    """Values of an enum whose members are in order, one per line or with a value of their own."""
    names = re.findall(rf"\b{prefix}_([A-Z_]+),", text)
    return {name: number for number, name in enumerate(names)}


Op = enum.IntEnum("Op", enumeration("ENGINE", re.search(r"enum engine_op \{(.*?)\};", HEADER, re.S)[1]))
Fd = enum.IntEnum("Fd", enumeration("ENGINE_FD", re.search(r"enum engine_fd \{(.*?)\};", HEADER, re.S)[1]))
FLAG = {name: 1 << int(bit) for name, bit in re.findall(r"ENGINE_FLAG_([A-Z_]+) =\s*1u << (\d+)", HEADER)}
CAN = {name: 1 << int(bit) for name, bit in re.findall(r"ENGINE_CAN_([A-Z_]+) = 1u << (\d+)", HEADER)}
LAYERS = re.findall(r"\bLAYER_([A-Z_]+),", re.search(
    r"enum wire_layer \{(.*?)\};", (ROOT / "src/wire/layer.h").read_text(), re.S)[1])
CODES = re.findall(r"^ERROR_CODE\((\w+)", (ROOT / "lib/base/error_codes.def").read_text(), re.M)
LEN = {name: int(value) for name, value in re.findall(r"#define ENGINE_([A-Z]+)_LEN\s+(\d+)", HEADER)}


class Limits(ctypes.Structure):
    _fields_ = ([(name, ctypes.c_uint64) for name in ("memory", "workspace", "tmp", "shm")] +
                [(name, ctypes.c_uint32) for name in ("workspace_inodes", "tmp_inodes", "pids", "cpu_millicores")])


class Request(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint32), ("seq", ctypes.c_uint32), ("box_id", ctypes.c_char * LEN["ID"]),
                ("limits", Limits), ("flags", ctypes.c_uint32), ("frozen", ctypes.c_uint32),
                ("root", ctypes.c_char * LEN["ROOT"]), ("packages", ctypes.c_char * LEN["ROOT"]),
                ("tenant", ctypes.c_char * LEN["TENANT"]), ("zygote", ctypes.c_uint8),
                ("ranges", ctypes.c_uint16), ("unused", ctypes.c_uint8 * 2)]


class Probe(ctypes.Structure):
    _fields_ = ([(name, ctypes.c_uint32) for name in (
        "layers", "cgroup", "ids", "landlock_abi", "uid", "gid", "daemon_uid", "boxes_max")] +
                [("identity", ctypes.c_uint64), ("features", ctypes.c_uint32), ("grade", ctypes.c_uint32),
                 ("runtime", ctypes.c_char * LEN["RUNTIME"]), ("release", ctypes.c_char * LEN["RELEASE"])])


class Created(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in (
        "fds", "layers", "vouched", "host_uid", "pid", "uid", "gid", "frozen", "start")]


class Gone(ctypes.Structure):
    _fields_ = [("wait_status", ctypes.c_int32), ("leftovers", ctypes.c_uint32)]


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("sys", ctypes.c_int), ("retry_s", ctypes.c_uint),
                ("field", ctypes.c_char * 64), ("msg", ctypes.c_char * 240)]


class Union(ctypes.Union):
    _fields_ = [("probe", Probe), ("created", Created), ("gone", Gone), ("error", Error)]


class Reply(ctypes.Structure):
    _anonymous_ = ["u"]
    _fields_ = [("op", ctypes.c_uint32), ("seq", ctypes.c_uint32), ("box_id", ctypes.c_char * LEN["ID"]),
                ("u", Union)]


class Failed(Exception):
    """FAILED: its code and its sentence."""

    def __init__(self, error):
        self.code = CODES[error.code]
        self.field = error.field.decode()
        self.text = error.msg.decode()
        super().__init__(f"{self.code}: {self.field} {self.text}")


def limits(**changes):
    values = {"memory": 256 * MIB, "workspace": 64 * MIB, "tmp": 32 * MIB, "shm": 16 * MIB,
              "workspace_inodes": 5000, "tmp_inodes": 2000, "pids": 64, "cpu_millicores": 1000}
    return Limits(**{**values, **changes})


class Engine:
    """A running engine and the daemon's socket to it."""

    def __init__(self, argv, log=None, **options):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.seq = 0
        self.agents = []  # whose streams must stay open
        self.events = []  # replies that nobody waited for yet, with their descriptors

        def arrange():
            os.dup2(theirs.fileno(), 3, inheritable=True)

        self.process = subprocess.Popen(argv, env={}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=log, pass_fds=(3, theirs.fileno()), preexec_fn=arrange, **options)
        theirs.close()

    def send(self, op, box_id="", **fields):
        self.seq += 1
        self.socket.send(bytes(Request(op=op, seq=self.seq, box_id=box_id.encode(), **fields)))
        return self.seq

    def receive(self):
        """One reply and its descriptors. EOFError: the engine is gone."""
        ready, _, _ = select.select([self.socket], [], [], HANG_S)
        assert ready, "the engine does not answer"
        fds = array.array("i")
        try:
            data, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(16 * fds.itemsize))
        except ConnectionResetError:
            data, ancillary = b"", []
        if not data:
            raise EOFError
        for level, kind, text in ancillary:
            assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
            fds.frombytes(text[:len(text) - len(text) % fds.itemsize])
        assert len(data) == ctypes.sizeof(Reply)
        return Reply.from_buffer_copy(data), list(fds)

    def wait(self, matches):
        """The first reply, old or new, for which @matches; the others stay."""
        for number, (reply, fds) in enumerate(self.events):
            if matches(reply):
                del self.events[number]
                return reply, fds
        while True:
            reply, fds = self.receive()
            if matches(reply):
                return reply, fds
            self.events.append((reply, fds))

    def answer(self, seq):
        reply, fds = self.wait(lambda r: r.seq == seq)
        if reply.op == Op.FAILED:
            raise Failed(reply.error)
        return reply, fds

    def probe(self):
        reply, fds = self.answer(self.send(Op.PROBE))
        assert reply.op == Op.PROBED
        for fd in fds:
            os.close(fd)
        return reply.probe

    def create(self, box_id, **fields):
        """Return: what was created, and the stream to its agent."""
        fields.setdefault("limits", limits())
        reply, fds = self.answer(self.send(Op.CREATE, box_id, **fields))
        assert reply.op == Op.CREATED and reply.created.fds & 1
        for fd in fds[1:]:
            os.close(fd)
        return reply.created, socket.socket(fileno=fds[0])

    def destroy(self, box_id):
        reply, _ = self.answer(self.send(Op.DESTROY, box_id))
        assert reply.op == Op.GONE
        return reply.gone

    def freeze(self, box_id, frozen):
        reply, _ = self.answer(self.send(Op.FREEZE, box_id, frozen=frozen))
        assert reply.op == Op.FROZEN

    def gone(self, box_id):
        """GONE without a DESTROY."""
        reply, _ = self.wait(lambda r: r.op == Op.GONE and r.box_id == box_id.encode() and r.seq == 0)
        return reply.gone

    def close(self):
        """As a daemon that ends. Return: the exit status."""
        self.socket.close()
        for _, fds in self.events:
            for fd in fds:
                os.close(fd)
        return self.process.wait(HANG_S)


class BoxAgent(Agent):
    """The agent of a box, over the stream that the engine passed on."""

    def __init__(self, stream, uid):
        self.sock, self.uid, self.inbox, self.pid, self.engine_end = stream, uid, b"", 0, None
        self.hello = self.expect("HELLO")
        self.send(self.setup())
