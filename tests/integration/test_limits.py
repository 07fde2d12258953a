# SPDX-License-Identifier: Apache-2.0
"""Each limit ends what exceeds it, is named, and is distinguished by the kernel's counters."""

import threading
import time

import pytest
from support import host

pytestmark = [pytest.mark.phases("system", "user"), pytest.mark.vm]

# A gigabyte; less on an emulated machine.
FLOOD = 64 << 20 if host.SLOW else 1 << 30
# Programs that end by themselves: a busy host may take long.
PATIENCE_S = 240

needs_cgroup = pytest.mark.skipif(
    not host.is_root(), reason="an ordinary user without a delegated cgroup has rlimits only"
)


def took(action):
    """Seconds."""
    start = time.monotonic()
    action()
    return time.monotonic() - start


@pytest.fixture
def patient(daemon):
    """A client that waits longer than any program runs."""
    with daemon.client(timeout=2 * PATIENCE_S) as c:
        yield c


@pytest.mark.parametrize(
    "language,code",
    [
        ("python", "import time; print('begun', flush=True); time.sleep(100)"),
        ("python", "print('begun', flush=True)\nwhile True: pass"),
        ("shell", "echo begun; trap '' INT TERM HUP; while :; do sleep 1; done"),
        ("shell", "echo begun; kill -STOP $$"),
        ("python", "import os,signal\nprint('begun', flush=True)\nfor s in range(1,65):\n  try: signal.signal(s, signal.SIG_IGN)\n  except Exception: pass\nwhile True: pass"),
    ],
)
def test_time_out_ends_everything_and_keeps_output(client, language, code):
    # None of them ends by itself before the client gives up. Time enough to start on a slow machine:
    alone = took(lambda: client.execute(language, "true" if language == "shell" else "0"))
    r = client.execute(language, code, timeout=max(5, round(5 * alone)))
    assert (r["status"], r["limit"]) == ("timeout", "time")
    assert r["stdout"] == "begun\n"


@needs_cgroup
def test_memory_bomb_is_reported_as_memory(client):
    r = client.python("x = bytearray(10**6)\nwhile True: x += bytearray(10**7)", resources={"memory": "64Mi"})
    assert (r["status"], r["limit"]) == ("failed", "memory")
    assert r["signal"] == 9
    assert 50 <= r["metrics"]["memory_peak_mb"] <= 65


@needs_cgroup
def test_memory_of_children_counts(client):
    code = "import os, time\nfor i in range(8):\n  if os.fork() == 0:\n    x = bytearray(20_000_000); time.sleep(100)\nos.wait(); raise SystemExit(1)"
    r = client.python(code, resources={"memory": "96Mi"}, timeout=20)
    assert r["limit"] == "memory"


def test_memory_by_rlimit_when_there_is_no_group(client):
    r = client.python("x = bytearray(400_000_000)", resources={"memory": "64Mi"})
    assert r["status"] == "failed"
    assert r["limit"] == "memory" or r["error"]["name"] == "MemoryError"


def test_fork_bomb_is_reported_as_processes(client):
    code = "import os, time\nwhile True:\n  if os.fork() == 0: time.sleep(60)"
    r = client.python(code, timeout=20, resources={"max_processes": 32})
    assert r["status"] == "failed"
    if host.is_root():
        assert r["limit"] == "processes"
        assert r["metrics"]["processes_peak"] <= 32
        assert any(d["kind"] == "limit" and d["what"] == "processes" for d in r["denials"])
    assert r["error"]["name"] == "BlockingIOError"


@pytest.mark.alone
def test_thread_bomb_ends(client):
    code = "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()"
    r = client.python(code, timeout=5, resources={"max_processes": 32})
    assert r["status"] in ("failed", "timeout")
    if host.is_root():
        assert 16 < r["metrics"]["processes_peak"] <= 32, r["metrics"]  # threads count


def test_shell_fork_bomb_leaves_nothing(client):
    r = client.shell(":(){ :|:& };:; sleep 5", timeout=2)
    assert r["status"] in ("failed", "timeout", "success")


@pytest.mark.parametrize("place", ["/workspace", "/tmp", "/dev/shm"])
def test_disk_filler_is_reported_as_disk(client, place):
    r = client.shell(f"dd if=/dev/zero of={place}/fill bs=1M count=1000", resources={"disk": "16Mi"})
    assert (r["status"], r["limit"]) == ("failed", "disk"), r
    assert "No space left" in r["stderr"]


def test_inodes_run_out_too(patient):
    code = "n = 0\nwhile True:\n  open(f'/workspace/f{n}', 'w').close(); n += 1"
    r = patient.python(code, timeout=PATIENCE_S)
    assert (r["status"], r["limit"]) == ("failed", "disk")
    assert "No space left" in r["stderr"]


def test_sparse_growth_and_fallocate_are_bounded(client):
    r = client.shell("fallocate -l 1G /workspace/big", resources={"disk": "16Mi"})
    assert r["status"] == "failed"


def test_output_flood_is_cut_not_killed(patient):
    code = f"import os\nb = b'x' * 65536\nfor i in range({FLOOD >> 16}): os.write(1, b)\nos.write(2, b'end')"
    r = patient.python(code, timeout=PATIENCE_S)
    assert (r["status"], r["exit_code"]) == ("success", 0)
    assert r["limit"] == "output"
    assert r["stdout_truncated"] is True and "stderr_truncated" not in r
    assert len(r["stdout"]) == 1 << 20
    assert r["metrics"]["stdout_bytes"] == FLOOD
    assert r["stderr"] == "end"


def test_output_limit_can_be_requested(client):
    r = client.shell("head -c 5000 /dev/zero | tr '\\0' x", resources={"max_output": 100})
    assert len(r["stdout"]) == 100 and r["stdout_truncated"]


@pytest.mark.alone
def test_cpu_quota_holds(client):
    if not host.is_root():
        pytest.skip("no cpu controller for an ordinary user without a delegated cgroup")
    code = "import time\nt=time.monotonic(); c=time.process_time()\nwhile time.monotonic()-t < 2: pass\nprint(time.process_time()-c)"
    r = client.python(code, resources={"cpu": "0.25"})
    assert float(r["stdout"]) < 1.0


def test_usage_is_counted(client):
    r = client.python("x = bytearray(50_000_000)\nn=0\nfor i in range(3_000_000): n += i")
    m = r["metrics"]
    assert m["cpu_time_ms"] > 20
    assert m["memory_peak_mb"] is None or m["memory_peak_mb"] > 45
    assert m["processes_peak"] is None or m["processes_peak"] >= 1


def test_limits_above_the_maximum_are_clamped(make_daemon):
    d = make_daemon(config="limits:\n  timeout_max: 1s\n  timeout: 1s\n").start()
    with d.client() as c:
        r = c.shell("sleep 10", timeout=100)
        assert r["status"] == "timeout"


@pytest.mark.alone
def test_everything_bad_at_once_beside_a_good_one(daemon):
    """Fork bomb, memory bomb, disk filler, flooder, hidden sleeper, and one that kills all it sees."""
    small = {"max_processes": 64, "memory": "64Mi", "disk": "16Mi"}
    bad = {
        "processes": ("python", "import os, time\nwhile True:\n  if os.fork() == 0: time.sleep(60)"),
        "memory": ("python", "x = []\nwhile True: x.append(bytearray(10**6))"),
        "disk": ("shell", "dd if=/dev/zero of=/workspace/f bs=1M"),
        "output": ("python", f"import os\nb=b'x'*65536\nfor i in range({FLOOD >> 16}): os.write(1,b)"),
        None: ("shell", "(setsid sleep 600 >/dev/null 2>&1 &) ; exit 0"),
        "killer": ("shell", "kill -STOP -1; kill -KILL -1; exit 0"),
    }
    results = {}

    def work(key):
        with daemon.client(timeout=2 * PATIENCE_S) as c:
            results[key] = c.execute(*bad[key], timeout=PATIENCE_S, resources=small)

    def good(c, number):
        assert c.python(f"print({number})")["stdout"] == f"{number}\n"

    threads = [threading.Thread(target=work, args=(k,)) for k in bad]
    with daemon.client() as c:
        alone = took(lambda: good(c, 0))
        for t in threads:
            t.start()
        worst = max(took(lambda: good(c, i)) for i in range(10))
        assert c.get("/healthz").status == 200
    for t in threads:
        t.join()
    # Promptly: beside six greedy boxes, on a machine as fast as this one.
    assert worst < 5 + 20 * alone
    for key in ("disk", "output", None):
        assert results[key]["limit"] == key, results[key]
    if host.is_root():
        for key in ("processes", "memory"):
            assert results[key]["limit"] == key, results[key]
    assert results["killer"]["status"] in ("failed", "success")
