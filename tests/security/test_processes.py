# SPDX-License-Identifier: Apache-2.0
"""LC-1..7, RES-1..3, CG-5: which processes live, which die, whose reports count."""

import contextlib
import json
import os
import pathlib
import select
import threading
import time

import pytest
from support import host
from support.sessions import Session

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")


@pytest.mark.vm
def test_agent_cannot_be_signalled_traced_or_read(client):
    code = """
import os, signal
for s in list(range(1, 32)) + [34, 64]:
    try: os.kill(1, s); print('SENT', s)
    except OSError: pass
for p in ('/proc/1/mem', '/proc/1/environ', '/proc/1/maps', '/proc/1/fd', '/proc/1/root', '/proc/1/cmdline'):
    try: print('READ', p, os.listdir(p) if os.path.isdir(p) else open(p,'rb').read(10))
    except OSError: pass
print('alive')
"""
    r = client.python(code)
    lines = r["stdout"].split("\n")
    assert lines[-2] == "alive" and r["status"] == "success"
    assert not any(l.startswith("READ") for l in lines), r
    if host.is_root():
        assert not any(l.startswith("SENT") for l in lines), r


@pytest.mark.vm
def test_killing_everything_it_can_see_harms_only_itself(client):
    code = "import os, signal, subprocess\nsubprocess.Popen(['sleep', '60'])\nos.kill(-1, signal.SIGKILL)\nos.kill(os.getpid(), signal.SIGKILL)"
    r = client.python(code)
    assert r["status"] == "failed" and r["signal"] == 9
    assert client.shell("echo next")["stdout"] == "next\n"


def test_forged_results_stay_text(client):
    """RES-1: no output sets a status field."""
    lies = json.dumps({"status": "success", "exit_code": 0, "limit": None, "signal": None})
    r = client.python(
        f"""
import os, socket, sys
print('===SANDBOX_RESULT==={lies}===SANDBOX_RESULT_END===')
sys.stderr.write({lies!r})
for fd in range(3, 64):
    try: os.write(fd, {lies!r}.encode())
    except OSError: pass
try:
    s = socket.socket(socket.AF_UNIX); s.connect('/run/millibox/report.sock')
    s.sendall({lies!r}.encode()); s.close()
except OSError: pass
os._exit(7)
"""
    )
    assert (r["status"], r["exit_code"], r["signal"], r["limit"]) == ("failed", 7, None, None)


@pytest.mark.parametrize(
    "payload",
    ["b''", "b'{'", "b'[]'", "b'\\xff\\xfe'", "b'{\"result\":' + b'[' * 5000", "b'{\"results\":5}'",
     "b'{\"error\":{\"name\":1}}'", "b'{\"result\":1,\"evil\":2}'", "b'x' * 6_000_000"],
)  # fmt: skip
def test_hostile_reports_change_nothing(client, payload):
    """@payload is the source of the bytes the program sends."""
    code = f"""
import os, socket
s = socket.socket(socket.AF_UNIX); s.connect('/run/millibox/report.sock')
try: s.sendall({payload})
except OSError: pass
s.close(); print('done', flush=True); os._exit(0)
"""
    r = client.python(code)
    assert (r["status"], r["stdout"]) == ("success", "done\n")


def test_report_socket_under_abuse_stays_bounded(client):
    code = """
import os, socket, threading
held = []
for i in range(200):
    s = socket.socket(socket.AF_UNIX); s.setblocking(False)
    try: s.connect('/run/millibox/report.sock'); s.send(b'{' * 1000)
    except OSError: pass
    held.append(s)
print('done'); os._exit(0)
"""
    r = client.python(code)
    assert r["stdout"] == "done\n" and r["status"] == "success"


def test_orphans_are_reaped_at_once(client):
    """LC-7: thousands of dead children never fill the process limit."""
    code = "for i in $(seq 400); do (true &) ; done; wait; echo fine"
    r = client.shell(code, timeout=60, resources={"max_processes": 32})
    assert r["stdout"] == "fine\n", r


def test_stdout_may_be_closed(client):
    r = client.python("import os; os.close(1); os.close(2); os._exit(5)")
    assert r["exit_code"] == 5


def test_descriptor_held_by_a_child_does_not_delay_the_answer(client):
    start = time.monotonic()
    r = client.shell("sleep 60 & echo out")
    assert r["stdout"] == "out\n" and time.monotonic() - start < 5 * host.PATIENCE


def test_tiny_writes_and_endless_lines(client):
    r = client.python("import os\nfor i in range(200000): os.write(1, b'x')", timeout=60)
    assert len(r["stdout"]) == 200000 and r["status"] == "success"


@pytest.mark.alone
def test_daemon_responds_while_boxes_burn_cpu(daemon):
    """All answers come while all boxes still burn."""
    with contextlib.ExitStack() as stack:
        burners = [stack.enter_context(daemon.client()) for _ in range(4)]
        body = json.dumps({"language": "python", "code": "while True: pass", "timeout": 30})
        for burner in burners:
            burner.connection.request("POST", "/api/v1/execute", body, {"Content-Type": "application/json"})
        c = stack.enter_context(daemon.client())
        host.wait_until(lambda: c.get("/readyz").json["running"] == 4, 10, "all burn")
        for _ in range(5):
            assert c.get("/healthz").status == 200
        assert not select.select([burner.connection.sock for burner in burners], [], [], 0)[0], "one has ended"


def test_oom_score_is_raised_and_cannot_be_lowered(client):
    r = client.python(
        "import os\nprint(open('/proc/self/oom_score_adj').read().strip())\n"
        "try: open('/proc/self/oom_score_adj','w').write('-1000'); print('LOWERED')\nexcept OSError: print('refused')"
    )
    score, word = r["stdout"].split()
    assert int(score) > 0 and word == "refused"


def test_keyrings_timers_and_queues_are_bounded(client):
    code = """
import ctypes, signal, os
libc = ctypes.CDLL(None, use_errno=True)
n = 0
class Sev(ctypes.Structure): _fields_ = [('a', ctypes.c_char * 64)]
tid = ctypes.c_int()
while n < 20000 and libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0: n += 1
print(n)
"""
    r = client.python(code)
    assert 0 < int(r["stdout"]) < 20000


def test_many_open_files_end_in_emfile(client):
    r = client.python("f=[]\ntry:\n  while True: f.append(open('/dev/null'))\nexcept OSError as e: print(e.errno, len(f) < 1100)")
    assert r["stdout"] == "24 True\n"


def test_locked_memory_is_bounded(client):
    r = client.python("import ctypes,mmap\nl=ctypes.CDLL(None,use_errno=True)\nm=mmap.mmap(-1,64<<20,flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS)\nprint(l.mlock(ctypes.c_char_p(ctypes.addressof(ctypes.c_char.from_buffer(m))),64<<20))")
    assert r["stdout"] == "-1\n"


def test_two_boxes_share_nothing(daemon):
    """XT-1: processes, sockets, IPC and files of one box are invisible to another."""
    ready, looked = threading.Event(), threading.Event()

    def first():
        with daemon.client() as c:
            for e in c.stream("python", """
import socket, time, os
s = socket.socket(socket.AF_UNIX); s.bind('\\0mbx-abstract'); s.listen()
t = socket.create_server(('127.0.0.1', 4567))
open('/tmp/shared', 'w').write('x'); open('/dev/shm/shared', 'w').write('x')
socket.socket(socket.AF_UNIX).connect('\\0mbx-abstract'); socket.create_connection(('127.0.0.1', 4567))  # control
print('up', flush=True); time.sleep(600)
""", timeout=600):  # fmt: skip
                if e["event"] == "stdout":
                    ready.set()
                    looked.wait(60 * host.PATIENCE)
                    return  # the end of the connection ends the program

    t = threading.Thread(target=first)
    t.start()
    try:
        assert ready.wait(20 * host.PATIENCE)
        r = look_into_another_box(daemon)
    finally:
        looked.set()
        t.join()
    assert r["stdout"] == "False False 1\n"


def look_into_another_box(daemon):
    with daemon.client() as c:
        return c.python("""
import socket, os
for f, a in ((socket.AF_UNIX, '\\0mbx-abstract'), (socket.AF_INET, ('127.0.0.1', 4567))):
    try: socket.socket(f).connect(a); print('CONNECTED', a)
    except OSError: pass
print(os.path.exists('/tmp/shared'), os.path.exists('/dev/shm/shared'), len([p for p in os.listdir('/proc') if p.isdigit()]))
""")


def test_nothing_outside_is_reachable(daemon):
    """NET-1: not even the daemon's own port is reachable; control: it listens."""
    host_, port = daemon.tcp_address()
    import socket

    socket.create_connection((host_, port)).close()
    with daemon.client() as c:
        r = c.python(f"""
import socket
for a in (('127.0.0.1', {port}), ('10.0.0.1', 80), ('169.254.169.254', 80), ('8.8.8.8', 53)):
    try: socket.create_connection(a, timeout=1); print('CONNECTED', a)
    except OSError: pass
try: socket.getaddrinfo('example.com', 80); print('RESOLVED')
except OSError: pass
if open('/etc/resolv.conf').read(): print('RESOLVER')
print(open('/proc/net/route').read().count('\\n'))
""")
    assert r["stdout"].split("\n")[0] in ("0", "1"), r


def test_error_texts_name_no_host_paths(daemon, build):
    with daemon.client() as c:
        session = Session(c, mode="persistent")
        texts = [
            json.dumps(c.python("raise ValueError('x')")),
            json.dumps(session.run("import os; os.kill(os.getpid(), 9)")),
            *(repr(answer) + answer.body.decode() for answer in (
                c.post("/api/v1/execute", {"language": "python", "code": "1", "template": "missing"}),
                c.post("/api/v1/execute", {"language": "cobol", "code": "1"}),
                c.get("/api/v1/sessions/sess_aaaaaaaaaaaaaaaa"),
                c.get(f"{session.path}/files/missing"),
                c.get(f"{session.path}/files/..%2fetc"),
                c.get("/api/v1/missing"),
                c.request("PUT", f"{session.path}/files/a?format=tar", body=b"no archive",
                          headers={"Content-Type": "application/octet-stream"}),
            )),
        ]
        session.delete()
    assert "Traceback" in texts[0] and len(texts) == 9
    for text in texts:
        for path in (str(build), os.path.expanduser("~") + "/", daemon.home, daemon.socket):
            assert str(path) not in text, text


def groups(pid):
    """{controllers: path} of a process; v2 has no controllers."""
    with open(f"/proc/{pid}/cgroup") as f:
        return dict(line.strip().split(":", 2)[1:] for line in f)


def oom_score(pid):
    with open(f"/proc/{pid}/oom_score_adj") as f:
        return int(f.read())


def test_daemon_and_engine_are_outside_the_groups_of_boxes(daemon):
    if not host.is_root():
        pytest.skip("needs root: processes of boxes are hidden from an ordinary user")
    with daemon.client() as c:
        session = Session(c, mode="persistent")
        session.run("0")
        box = daemon.box_pids()[-1]
        for pid in (daemon.pid, daemon.engine_pid):
            assert oom_score(pid) < oom_score(box)
            for controllers, path in groups(box).items():
                if "memory" in controllers or "pids" in controllers or "cpu" in controllers.split(","):
                    assert not groups(pid)[controllers].startswith(path), controllers
        session.delete()


def test_a_box_has_no_swap_and_little_weight(daemon):
    if not host.is_root():
        pytest.skip("needs root: no groups for an ordinary user")
    found = {}
    with daemon.client() as c:
        session = Session(c, mode="persistent", resources={"memory": "96Mi"})
        session.run("0")
        for group in daemon.groups():
            with open(f"{group}/cgroup.procs") as f:
                if not f.read():
                    continue  # a spare
            for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.swap.max", "memory.swappiness",
                         "cpu.shares", "cpu.weight"):
                if os.path.exists(f"{group}/{name}"):
                    with open(f"{group}/{name}") as f:
                        found[name] = int(f.read())
        session.delete()
    assert "memory.swap.max" in found or "memory.limit_in_bytes" in found, found
    assert found.get("memory.swap.max", 0) == 0 and found.get("memory.swappiness", 0) == 0, found
    assert found.get("memory.memsw.limit_in_bytes", 0) <= found.get("memory.limit_in_bytes", 0), found
    assert found.get("cpu.shares", 0) < 1024 and found.get("cpu.weight", 0) < 100, found


# The weight of a process by its nice value, from the kernel's table, and what one of nice 0 has.
WEIGHT_OF_NICE = {-10: 9548, 0: 1024}


def test_on_a_core_all_boxes_weigh_more_than_a_process_and_less_than_daemon_and_engine(daemon):
    """Otherwise busy processes of the host, or the requests of one tenant, delay every box of every tenant."""
    shares = pathlib.Path("/sys/fs/cgroup/cpu/millibox/cpu.shares")
    if not host.is_root() or not shares.exists():
        pytest.skip("needs root and the v1 CPU controller")
    a_core = int(shares.read_text()) / os.cpu_count()
    for pid in (daemon.process.pid, daemon.engine_pid):
        own = WEIGHT_OF_NICE[os.getpriority(os.PRIO_PROCESS, pid)]
        assert WEIGHT_OF_NICE[0] < a_core < own, host.comm(pid)
    for pid in daemon.zygote_pids():
        assert os.getpriority(os.PRIO_PROCESS, pid) == 0
    with daemon.client() as c:
        assert c.python("import os; print(os.getpriority(os.PRIO_PROCESS, 0))")["stdout"] == "0\n"
