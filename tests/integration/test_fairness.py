# SPDX-License-Identifier: Apache-2.0
"""A program that waits keeps nothing that others need.

Requests that are to run at the same time are only sent; the tests look at how many executions run and wait
(/readyz), and end them by closing the connections.
"""

import contextlib
import json
import pathlib
import socket

import pytest

from support import host, metrics
from support.identity import KeyClient, make_key, make_tenant
from support.sessions import Session

pytestmark = pytest.mark.phases("system", "user")

MANY = 64
#: What a daemon has by default, unlike most daemons of these tests.
WARM = {"MILLIBOX_ZYGOTES_ENABLED": "true", "MILLIBOX_POOLS_ENABLED": "true"}


class Pending:
    """A request whose answer is not awaited."""

    def __init__(self, address, path, body, key=None):
        data = json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
                 f"Content-Length: {len(data)}", "Connection: close"]
        if key:
            lines.append(f"Authorization: Bearer {key}")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(120)
        self.socket.connect(address)
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + data)

    def answer(self):
        received = b""
        while piece := self.socket.recv(65536):
            received += piece
        head, _, body = received.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)

    def close(self):
        self.socket.close()


@contextlib.contextmanager
def pending(daemon, count, code, language="shell", key=None, timeout=300):
    """Executions that have been sent; at the end they are cancelled."""
    body = {"language": language, "code": code, "timeout": timeout}
    sent = []
    try:
        for _ in range(count):
            sent.append(Pending(daemon.socket, "/api/v1/execute", body, key))
        yield sent
    finally:
        for request in sent:
            request.close()


def counts(client):
    state = client.get("/readyz").json
    return state["running"], state["queued"]


def wait_for(client, expected, seconds=60):
    host.wait_until(lambda: counts(client) == expected, seconds, lambda: f"{counts(client)} become {expected}")


def key_of(client, tenant, **quotas):
    make_tenant(client, tenant, **({"quotas": quotas} if quotas else {}))
    return make_key(client, tenant)


def test_sleeping_programs_run_at_the_same_time(make_daemon):
    """And someone else's program begins and ends meanwhile."""
    daemon = make_daemon().start()
    with daemon.client() as client:
        sleeper, other = key_of(client, "sleeper"), key_of(client, "other")
        with pending(daemon, MANY, "sleep 300", key=sleeper):
            wait_for(client, (MANY, 0))
            neighbour = KeyClient(daemon.socket, other)
            assert neighbour.python("print(42)")["stdout"] == "42\n"
            neighbour.close()
            wait_for(client, (MANY, 0))
        wait_for(client, (0, 0))


def test_a_tenant_at_its_quota_keeps_only_its_own_waiting(make_daemon):
    daemon = make_daemon().start()
    with daemon.client() as client:
        bounded, other = key_of(client, "bounded", executions=2), key_of(client, "other")
        with pending(daemon, 6, "sleep 300", key=bounded):
            wait_for(client, (2, 4))
            neighbour = KeyClient(daemon.socket, other)
            assert neighbour.shell("echo 42")["stdout"] == "42\n"
            neighbour.close()
            # Executions that wait for the quota do not keep its sessions waiting.
            own = KeyClient(daemon.socket, bounded)
            session = own.post("/api/v1/sessions", {"language": "shell", "mode": "persistent"})
            assert session.status == 201, session
            path = f"/api/v1/sessions/{session.json['id']}"
            host.wait_until(lambda: own.get(path).json["state"] == "ready", 30, "the session ready")
            assert own.request("DELETE", path).status in (200, 204)
            own.close()
            wait_for(client, (2, 4))
        wait_for(client, (0, 0))


def test_memory_that_is_short_makes_executions_wait(make_daemon):
    """No host has the reserve: without another box an execution begins all the same, else nothing ever would."""
    daemon = make_daemon(config="admission: {memory_reserve: 1Ti}\n").start()
    with daemon.client() as client, pending(daemon, 1, "sleep 300") as running:
        wait_for(client, (1, 0))
        with pending(daemon, 3, "echo 42") as waiting:
            wait_for(client, (1, 3))
            running[0].close()
            assert [request.answer()[0] for request in waiting] == [200] * 3


def audited_limits(daemon):
    # Whole lines: the last one may just be being written.
    records = [json.loads(line) for line in (daemon.home / "state" / "audit.log").read_text().split("\n")[:-1]]
    return [record["detail"]["limit"] for record in records if record["action"] == "execution.end" and record["tenant"] == "greedy"]


@pytest.mark.phases("system")
def test_a_host_short_of_memory_ends_the_largest_box_of_who_uses_most(make_daemon):
    """No host has this much available, so memory is short from the start. What uses little stays."""
    daemon = make_daemon(config="admission: {memory_reserve: 1Mi, memory_low: 1Ti}\n").start()
    fill, idle = "x = bytearray(160 << 20); import time; time.sleep(300)", "sleep 300"
    with daemon.client() as client:
        if "cgroup.memory" not in client.shell("true")["isolation"]["layers"]:
            pytest.skip("needs the memory controller")
        greedy, modest = key_of(client, "greedy"), key_of(client, "modest")
        with pending(daemon, 1, idle, key=modest), pending(daemon, 1, idle, key=greedy):
            wait_for(client, (2, 0))
            with pending(daemon, 1, fill, language="python", key=greedy) as sent:
                status, result = sent[0].answer()
            assert (status, result["status"], result["limit"]) == (200, "failed", "host_memory"), result
            assert "the host ran short of memory" in result["error_message"]
            own = KeyClient(daemon.socket, greedy)
            session = Session(own, language="python", mode="persistent")
            execution = session.start(fill)
            session.wait_for("failed", seconds=30)
            assert "the host ran short of memory" in session.info()["reason"]
            result = session.result(execution)
            assert (result["status"], result["limit"]) == ("failed", "host_memory"), result
            assert "the host ran short of memory" in result["error_message"]
            wait_for(client, (2, 0))  # what the neighbour runs, and what is small
            found = metrics.read(client)
            assert [found.value("sandbox_host_memory_ends_total", what=what) for what in ("execution", "session")] == [1, 1]
            host.wait_until(lambda: audited_limits(daemon) == ["host_memory"] * 2, 10, "both ends are in the audit log")
            own.close()


@pytest.mark.phases("system")
def test_boxes_are_in_the_cpu_group_of_their_tenant(make_daemon):
    """The groups have equal weight, so the kernel shares the processor between tenants; what a session leaves in the
    background is in the group of its tenant."""
    daemon = make_daemon().start()
    with daemon.client() as client:
        if "cgroup.cpu" not in client.shell("true")["isolation"]["layers"]:
            pytest.skip("needs the CPU controller")
        keys = {name: key_of(client, name) for name in ("alice", "Bob_2")}
        with contextlib.ExitStack() as stack:
            for name, count in (("alice", 3), ("Bob_2", 1)):
                stack.enter_context(pending(daemon, count, "sleep 300 & sleep 300", key=keys[name]))
            wait_for(client, (4, 0))  # admitted; their boxes may still be built
            host.wait_until(lambda: [count_boxes(daemon, name) for name in keys] == [3, 1], 30, "every box is in its group")
            homes = {name: tenant_group(daemon, name) for name in keys}
            weights = {home.joinpath(weight).read_text() for home in homes.values()
                       for weight in ("cpu.shares", "cpu.weight") if (home / weight).exists()}
            assert len(weights) == 1, weights
        wait_for(client, (0, 0))


@pytest.mark.vm
@pytest.mark.phases("system")
def test_a_small_quota_does_not_slow_the_zygote(make_daemon):
    """On v1 the zygote's child joins the group with the quota, not the helper that the zygote waits for; on v2, where
    there is one group, such a box uses no zygote."""
    daemon = make_daemon(env={"MILLIBOX_ZYGOTES_ENABLED": "true"}).start()
    with daemon.client() as client:
        isolation = host.wait_until(lambda: (i := client.python("0")["isolation"])["start"] == "zygote" and i, 60, "a zygote")
        if "cgroup.cpu" not in isolation["layers"]:
            pytest.skip("needs the CPU controller")
        unified = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
        expected = ("cold", "small_cpu_quota") if unified else ("zygote", None)

        # So many that the kernel stops some of them where they take the agent's ids.
        body = {"language": "python", "code": "print(42)", "timeout": 120, "resources": {"cpu": 0.05}, "receipt": "plain"}
        answers = [request.answer() for request in [Pending(daemon.socket, "/api/v1/execute", body) for _ in range(24)]]
        assert [(status, result["stdout"]) for status, result in answers] == [(200, "42\n")] * len(answers)
        started = [(result["isolation"]["start"], result["isolation"]["start_reason"]) for _, result in answers]
        assert started == [expected] * len(answers), daemon.log()
        assert client.python("0")["isolation"]["start"] == "zygote"


def count_boxes(daemon, name):
    return sum(bool(members(box)) for group in tenant_groups(daemon, name) for box in group.glob("box-*"))


def members(group):
    """Of a group that may be removed meanwhile: the engine makes some ahead, for the latest tenant."""
    try:
        return (group / "cgroup.procs").read_text()
    except OSError:
        return ""


def tenant_groups(daemon, name):
    groups = [pathlib.Path(top, daemon.instance(), f"t-{name}") for top in host.cgroup_tops()]
    return [group for group in groups if (group / "cpu.shares").exists() or (group / "cpu.weight").exists()]


def tenant_group(daemon, name):
    found = tenant_groups(daemon, name)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.alone
def test_sixty_four_sleepers_with_zygotes_run_at_the_same_time(make_daemon):
    """The load that the issue of fairness names: all run before one has ended, however long the host takes to start them."""
    daemon = make_daemon(env=WARM).start()
    with daemon.client() as client:
        client.python("0")  # the zygote is there
        with pending(daemon, MANY, "import time; time.sleep(300)", language="python"):
            wait_for(client, (MANY, 0))
        wait_for(client, (0, 0))
        with pending(daemon, MANY, "import time; time.sleep(2); print(42)", language="python") as sent:
            answers = [request.answer() for request in sent]
    assert [(status, result["stdout"]) for status, result in answers] == [(200, "42\n")] * MANY


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.phases("system")
def test_a_thousand_waiting_programs_fit_into_memory(make_daemon):
    count = 1000
    config = "http: {max_connections: 1200, max_connections_per_local_peer: 1200}\nadmission: {max_queued: 2000}\n"
    daemon = make_daemon(config=config, env=WARM).start()
    with daemon.client() as client:
        boxes = client.get("/api/v1/runtimes").json["items"][0]["max_containers"]
        if boxes < count * 5 // 4:  # an eighth is for other tenants, some are in pools
            pytest.skip(f"the engine can make {boxes} boxes: raise the limit of open files")
        with pending(daemon, count, "import time; time.sleep(300)", language="python"):
            wait_for(client, (count, 0), seconds=120)
            assert client.python("print(42)")["stdout"] == "42\n"
            assert counts(client) == (count, 0)
        wait_for(client, (0, 0), seconds=120)
