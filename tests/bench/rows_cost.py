# SPDX-License-Identifier: Apache-2.0
"""Rows about memory, start-up, overhead and transfer: 7, 9, 10, 11, 13, 14."""

import os
import subprocess
import threading
import time

import raw
from measure import Failure, percentile, summary, timed
from rows_fresh import IMPORT_PANDAS
from support import host
from support.daemon import Daemon


def private_kib(pid):
    """Private dirty memory of a process."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("Private_Dirty:"))


def boxes_of(daemon):
    """{pid of an agent: all pids of its box}."""
    engine = daemon.engine_pid
    agents = [p for p in host.children(engine) if host.comm(p).startswith(("memfd:millibox", "millibox-agent"))]
    return {agent: [agent, *host.descendants(agent)] for agent in agents}


def maps_pandas(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        return "/pandas/" in f.read()


def look_at_boxes(daemon):
    """Private MiB of each idle Python box: plain ones, and those that have pandas."""
    plain, pandas = [], []
    for pids in boxes_of(daemon).values():
        pythons = [p for p in pids if host.comm(p).startswith("python")]
        if pythons:
            (pandas if any(map(maps_pandas, pythons)) else plain).append(sum(private_kib(p) for p in pids) / 1024)
    return plain, pandas


def row_memory(daemon, seconds=20):
    """Row 7: an idle warm Python box, agent included; beside it one of a template that has imported pandas."""
    if os.geteuid() != 0:
        return {"absent": "only root may look at the memory of boxes"}
    connection, end = raw.Connection(daemon.socket), time.monotonic() + seconds
    plain, pandas = look_at_boxes(daemon)
    while not pandas and time.monotonic() < end:
        # Pools drop kinds that are not requested: request it again, and measure when it is warm.
        if connection.exchange(IMPORT_PANDAS)[0] != 200:
            break
        time.sleep(1)
        plain, pandas = look_at_boxes(daemon)
    if not plain:
        return {"absent": "no warm Python box"}
    found = {"boxes": len(plain), "private_mib": round(percentile(plain, 50), 2), "max_mib": round(max(plain), 2)}
    if pandas:
        found |= {"pandas_mib": round(percentile(pandas, 50), 2), "pandas_times": round(percentile(pandas, 50) / percentile(plain, 50), 2)}
    return found


def row_start(rounds=10):
    """Row 9: from exec of the daemon to its first answer, and its own memory."""
    first, memory = [], []
    for _ in range(rounds):
        d = Daemon()
        start = time.perf_counter()
        d.start(ready=False)
        while True:
            try:
                with d.client() as c:
                    if c.get("/healthz").status == 200:
                        break
            except OSError:
                time.sleep(0.0005)
        first.append((time.perf_counter() - start) * 1000)
        memory.append(host.rss_kib(d.pid) / 1024)
        d.stop()
        d.remove()
    return {"first_answer": summary(first), "memory_mib": round(percentile(memory, 50), 1)}


# On one processor: those of a virtual machine can differ by more than what is measured here. A derived key, not a loop
# of the interpreter: the speed of such a loop depends by several percent on memory layout and string hashes, which
# change with each start and which all children of a warm interpreter inherit.
TIMED = """import hashlib, os, subprocess, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
t = time.perf_counter()
%s
print(time.perf_counter() - t)
"""
CPU = "hashlib.pbkdf2_hmac('sha256', b'word', b'salt', 1_000_000)"
# A call that does nothing shows the filter alone; opening, reading and closing a file is what
# programs bound by system calls do.
NOTHING = "for i in range(300_000): os.getppid()"
FILES = "for i in range(60_000):\n  f = os.open('/etc/passwd', 0); os.fstat(f); os.read(f, 4096); os.close(f)"
# The smaller the expected difference, the more rounds.
INSIDE = {"cpu": (TIMED % CPU, 4), "syscall": (TIMED % FILES, 1), "nothing": (TIMED % NOTHING, 1)}


# Everyday programs that do little but system calls, on the same tree inside and outside. For information: the row is
# judged by the loop above, the worst case.
TREE = os.path.dirname(os.__file__)
PROGRAMS = {
    "find": f"find {TREE} /usr/share/doc -newer /etc/passwd > /dev/null",
    "ls -lR": f"ls -lR {TREE} > /dev/null",
    "du": "du -s /usr/share > /dev/null",
    "tar": f"tar cf - {TREE} 2> /dev/null | cat > /dev/null",
    "grep -r": f"grep -r zzzyx {TREE} > /dev/null",
    "dd bs=512": "dd if=/dev/zero of=/dev/null bs=512 count=400000 2> /dev/null",
    "read lines": "seq 1 100000 | while read -r x; do :; done",
    "start programs": "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do /bin/true; done",
}
INSIDE |= {name: (TIMED % f"subprocess.run(['/bin/sh', '-c', {line!r}])", 1) for name, line in PROGRAMS.items()}


def run_outside(code):
    return float(subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, check=True).stdout)


def row_inside(rounds=6, daemons=4):
    """Row 10: the same program inside and outside, which times itself, one right after the other, in alternating order;
    compared in pairs, because the load of a shared machine changes within seconds."""
    pairs = {name: [] for name in INSIDE}
    for _ in range(daemons):
        daemon = Daemon(env={"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_ZYGOTES_ENABLED": "true"}).start()
        try:
            with daemon.client() as c:
                c.python("pass")
                ways = run_outside, lambda code: float(c.python(code)["stdout"])
                for turn in range(rounds):
                    for name, (code, times) in INSIDE.items():
                        for _ in range(times):
                            took = {way: way(code) for way in (ways if turn % 2 else ways[::-1])}
                            pairs[name].append(tuple(took[way] for way in ways))
            daemon.stop()
        finally:
            daemon.remove()
    return {
        name: {
            "inside_s": round(percentile([i for _, i in found], 50), 4),
            "outside_s": round(percentile([o for o, _ in found], 50), 4),
            "slower_percent": round((percentile([i / o for o, i in found], 50) - 1) * 100, 1),
        }
        for name, found in pairs.items()
    }


def receive(connection, data, length):
    """Send a request, read @length bytes of the answer, check only the first."""
    connection.sock.sendall(data)
    buffer = bytearray(1 << 20)
    head, got = b"", 0
    while b"\r\n\r\n" not in head:
        head += connection.sock.recv(65536)
    if not head.startswith(b"HTTP/1.1 200"):
        raise Failure(f"download: {head[:300]!r}")
    got = len(head) - head.index(b"\r\n\r\n") - 4
    while got < length:
        n = connection.sock.recv_into(buffer)
        if n == 0:
            raise Failure(f"download ended after {got} of {length}")
        got += n


def row_files(daemon, size=256 << 20, rounds=3):
    """Row 11: a file into a session and back, over loopback TCP."""
    block = bytes(1 << 20)
    up, down = [], []
    with daemon.client() as c:
        made = c.post("/api/v1/sessions", {"mode": "persistent", "resources": {"memory": "1Gi", "disk": "512Mi"}})
        if made.status not in (200, 201):
            raise Failure(f"session: {made}")
        path = f"/api/v1/sessions/{made.json['session_id']}/files/big"
        connection = raw.Connection(daemon.tcp_address())
        head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n".encode()

        def upload():
            connection.received = b""
            connection.sock.sendall(head)
            for _ in range(size >> 20):
                connection.sock.sendall(block)
            while (answer := connection.take()) is None:
                pass
            if answer[0] not in (200, 201, 204):
                raise Failure(f"upload: {answer}")

        for _ in range(rounds):
            up.append(size / timed(upload) / 1000)
            down.append(size / timed(lambda: receive(connection, raw.request("GET", path), size)) / 1000)
        connection.close()
        c.request("DELETE", f"/api/v1/sessions/{made.json['session_id']}")
    return {"size_mib": size >> 20, "upload_mb_s": round(max(up)), "download_mb_s": round(max(down))}


def row_many(daemon, count, parallel):
    """Rows 13 and 14: many boxes, half of them @parallel at a time; all right, nothing left, memory flat."""

    def look():
        """Mounts, groups, processes (and so namespaces), descriptors of both programs, files."""
        return (
            len(host.mounts()), daemon.groups(), host.strays(Daemon.instances), host.fd_count(daemon.pid),
            host.fd_count(daemon.engine_pid), sorted(str(p) for p in daemon.home.rglob("*")),
        )  # fmt: skip

    daemon.settle()
    before = look()
    wrong = []

    def work(share):
        with daemon.client() as c:
            for i in range(share):
                if c.shell(f"echo {i}")["stdout"] != f"{i}\n":
                    wrong.append(i)

    def spread(share):
        threads = [threading.Thread(target=work, args=(share // parallel,)) for _ in range(parallel)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    tenth = count // 10
    work(tenth)
    memory = [host.rss_kib(daemon.pid)]
    work(count // 2 - tenth)
    spread(count // 2)
    daemon.settle()
    memory.append(host.rss_kib(daemon.pid))
    after = look()
    if wrong or before != after:
        raise Failure(f"wrong answers: {len(wrong)}, host before and after: {before} {after}")
    return {
        "boxes": count, "parallel": parallel, "left_behind": 0, "rss_kib": memory,
        "growth_percent": round((memory[1] / memory[0] - 1) * 100, 1),
    }  # fmt: skip
