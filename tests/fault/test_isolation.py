# SPDX-License-Identifier: Apache-2.0
"""The setting `isolation`: strict, the default, executes nothing while a required layer is missing, for every user who starts the
daemon, and names the remedy. best-effort is asked for by name; the log and every receipt say so."""

import json
import os
import pathlib
import re
import subprocess

import pytest
from support import host, isolation
from support.daemon import BUILD, ROOT, Daemon
from support.mcp import Mcp

pytestmark = pytest.mark.phases("system", "user", "subid")

CGROUPS = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = ["memory", "pids", "cpu"]

only_root = pytest.mark.phases("system")
needs_root = pytest.mark.skipif(not host.is_root(), reason="needs root: hides a controller of the host")
needs_v1 = pytest.mark.skipif(not (CGROUPS / "memory").is_dir(), reason="needs cgroup v1: its controllers can be hidden one by one")
only_user = pytest.mark.phases("user", "subid")


class Without(Daemon):
    """A daemon on a host that lacks some controllers. Its own user lacks others if it is an ordinary one."""

    def __init__(self, *controllers, **kwargs):
        super().__init__(**kwargs)
        self.without, self.before = controllers, []

    def command(self):
        if not self.without:
            return [*self.before, *super().command()]
        # A controller whose mount is covered is not there for the engine.
        cover = " && ".join(f"mount -t tmpfs none {CGROUPS / name}" for name in self.without)
        return ["unshare", "--mount", "sh", "-c", f'{cover} && exec "$@"', "sh", *super().command()]

    def ends(self):
        """Its exit status, and its log."""
        self.start(ready=False)
        return self.process.wait(20 * host.PATIENCE), self.log()


@pytest.fixture
def without():
    made = []

    def make(*controllers, **kwargs):
        made.append(Without(*controllers, **kwargs))
        return made[-1]

    yield make
    for d in made:
        d.remove()


def lacking():
    """Layers that strict requires and this user lacks."""
    return [] if host.is_root() else [c["name"] for c in isolation.doctor()["checks"]
                                      if c["state"] == "missing" and c["name"] not in ("cgroup.io", "landlock", "time")]


def refuses(d, layers):
    """It ends without having served, and names each layer with its remedy."""
    status, log = d.ends()
    assert status == 7, log
    assert "listening on" not in log and not os.path.exists(d.socket)
    (error,) = [line for line in log.splitlines() if "cannot start" in line]
    assert "isolation is strict" in error and "isolation: best-effort" in error, error
    for layer in layers:
        assert layer in error
        (line,) = [line for line in log.splitlines() if f"lacks {layer}:" in line]
        assert re.search(r"remedy: \w", line), line


@only_root
@needs_root
@needs_v1
@pytest.mark.parametrize("layers", [[name] for name in CONTROLLERS] + [CONTROLLERS], ids="+".join)
def test_root_without_a_controller_is_refused(without, layers):
    refuses(without(*layers), [f"cgroup.{name}" for name in layers])


@only_root
@needs_root
@needs_v1
def test_root_without_a_controller_runs_by_name(without):
    """Also the negative control of the test above: nothing else keeps that daemon from running."""
    d = without("memory", flags=["--isolation", "best-effort"]).start()
    with d.client() as client:
        receipt = client.shell("true")["isolation"]
    assert receipt["mode"] == "best-effort" and receipt["missing"] == ["cgroup.memory"]
    assert "level=warn" in next(line for line in d.log().splitlines() if "isolation: best-effort" in line)


def test_an_ordinary_user_is_refused_like_root(without):
    """The default and its name mean the same."""
    if not lacking():
        assert host.is_root() or isolation.doctor()["strict"]
        with without().start().client() as client:
            assert client.shell("true")["isolation"]["mode"] == "strict"
        return
    refuses(without(env={"MILLIBOX_ISOLATION": "strict"}), lacking())
    unset = without()
    unset.before = ["env", "-u", "MILLIBOX_ISOLATION"]
    refuses(unset, lacking())


@pytest.mark.parametrize("how", ["flag", "environment", "file"])
def test_best_effort_is_asked_for_by_name(without, how):
    ways = {
        "flag": {"flags": ["--isolation", "best-effort"], "env": {"MILLIBOX_ISOLATION": "strict"}},
        "environment": {"env": {"MILLIBOX_ISOLATION": "best-effort"}, "config": "isolation: strict\n"},
        "file": {"config": "isolation: best-effort\n"},
    }
    d = without(**ways[how]).start()
    with d.client() as client:
        assert client.shell("true")["isolation"]["mode"] == "best-effort"
    (line,) = [line for line in d.log().splitlines() if "isolation: best-effort" in line]
    assert "level=warn" in line
    for layer in lacking():
        assert f"this host lacks {layer}:" in d.log()


@pytest.mark.parametrize("mode", ["strict", "best-effort"] if isolation.is_strict() else ["best-effort"])
def test_every_receipt_says_so(without, mode):
    d = without(flags=["--isolation", mode]).start()
    with d.client() as client:
        once = client.shell("true")
        session = client.post("/api/v1/sessions", {"mode": "persistent", "language": "python"}).json["session_id"]
        kept = client.post(f"/api/v1/sessions/{session}/execute", {"code": "1", "wait": True}).json
        stored = client.get(f"/api/v1/executions/{kept['execution_id']}/result").json
        late = client.post("/api/v1/execute", {"language": "shell", "code": "sleep 9", "timeout": 0.2}).json
        receipts = [r["isolation"] for r in (once, kept, stored, late)]
        (runtime,) = client.get("/api/v1/runtimes").json["runtimes"]
        metrics = client.get("/metrics").body.decode()
    with Mcp(d.socket) as mcp:
        receipts.append(mcp.call("run_python", sandbox_id=session, code="print(1)")["structuredContent"]["isolation"])
        assert mcp.call("execute_code", code="print(1)")["structuredContent"].get("isolation", "strict") == mode
    shown = subprocess.run([BUILD / "millibox", "run", "--json", "--socket", d.socket, "-c", "1"], capture_output=True, check=True,
                           env={"PATH": "/usr/bin:/bin", "HOME": "/"})  # fmt: skip
    receipts.append(json.loads(shown.stdout)["isolation"])
    assert [r["mode"] for r in receipts] == [mode] * len(receipts)
    assert all(set(lacking()) <= set(r["missing"]) for r in receipts)
    assert runtime["isolation"] == mode
    assert f'millibox_isolation_info{{mode="{mode}"}} 1' in metrics
    assert d.stop() == 0, d.log()  # a thread of the daemon writes the audit log
    audited = [json.loads(line) for line in (d.home / "state" / "audit.log").read_text().split("\n")[:-1]] if host.is_root() else None
    if audited is not None:
        said = [e["object"] for e in audited if e.get("action") == "daemon.isolation"]
        assert said == (["best-effort"] if mode == "best-effort" else [])


@only_user
def test_a_strict_daemon_leaves_boxes_of_a_best_effort_one(without):
    """A session whose box lacks a layer does not continue under a strict daemon."""
    if not lacking():
        pytest.skip("needs a user who lacks a required layer")
    d = without(env={"MILLIBOX_ISOLATION": "best-effort"}).start()
    with d.client() as client:
        session = client.post("/api/v1/sessions", {"mode": "persistent", "language": "python"}).json["session_id"]
        client.post(f"/api/v1/sessions/{session}/execute", {"code": "x = 41", "wait": True})
    d.kill()
    d.flags += ["--isolation", "strict"]
    status, log = d.ends()
    assert status == 7 and "isolation is strict" in log
    # The boxes wait for a daemon that may use them.
    d.flags += ["--isolation", "best-effort"]
    d.start()
    with d.client() as client:
        again = client.post(f"/api/v1/sessions/{session}/execute", {"code": "print(x + 1)", "wait": True}).json
        assert again["stdout"] == "42\n"
        client.request("DELETE", f"/api/v1/sessions/{session}")


def settings(home):
    """Of a daemon that `make run` starts."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "MILLIBOX_STATE_DIR": f"{home}/state",
            "MILLIBOX_RUNTIME_DIR": f"{home}/run", "MILLIBOX_SOCKET": f"{home}/sock"}  # fmt: skip


def test_make_run_says_which_one_it_starts(without):
    """What `make run` executes after the build."""
    home = without().home
    path, env, expected = home / "log", settings(home), isolation.mode()
    with path.open("wb") as log:
        process = subprocess.Popen([ROOT / "tools/run", BUILD, "127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
    try:
        host.wait_until(lambda: process.poll() is not None or "listening on" in path.read_text(), 30, path.read_text)
        text = path.read_text()
        assert process.poll() is None, text
        shown, logged = text.split("milliboxd will listen", 1)
        assert f"isolation: {expected} (" in shown and f"isolation: {expected}" in logged
        for layer in lacking():
            found = re.search(rf"^missing +{re.escape(layer)} .*\n +loss: .*\n +remedy: +\w", shown, re.M)
            assert found, shown
        if lacking():
            assert "sudo make run" in shown and "ISOLATION=strict" in shown
    finally:
        process.terminate()
        process.wait(20 * host.PATIENCE)


@only_user
def test_make_run_refuses_where_strict_is_demanded(without):
    if not lacking():
        pytest.skip("needs a user who lacks a required layer")
    done = subprocess.run([ROOT / "tools/run", BUILD, "127.0.0.1:0", "strict"], capture_output=True, text=True, timeout=30 * host.PATIENCE,
                          env=settings(without().home))  # fmt: skip
    assert done.returncode == 7 and "isolation is strict" in done.stderr and "remedy:" in done.stderr
