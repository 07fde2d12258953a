# SPDX-License-Identifier: Apache-2.0
"""What a result says about refusals: what, which rule, errno, how often. Applying the remedy allows it."""

import json
import os
import pathlib
import shutil
import signal
import tempfile

import pytest

from support import host
from support.daemon import Daemon
from support.sessions import Session
from support.sites import files_of, resolver, serve

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not shutil.which("curl"), reason="needs curl"),
]

HOST = "site.test"


class Net:
    """A daemon with a policy that a test edits, and a server of the test at 127.0.0.1 as site.test."""

    def __init__(self, names, port):
        self.port = port
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=Daemon.prefix_of_homes))
        self.folder.chmod(0o755)
        self.write({"network": {"mode": "allowlist", "allow": []}})
        self.daemon = Daemon(config=f"policy: {{dir: {self.folder}, default: net}}\negress: {{resolver: '{names}'}}\n")
        self.daemon.start()

    def write(self, policy):
        """YAML reads JSON."""
        self.policy = policy
        path = self.folder / "net.yaml"
        path.write_text(json.dumps({"name": "net", "extends": "default", **policy}))
        path.chmod(0o644)

    def reload(self, policy):
        before = self.daemon.log().count("reloaded")
        self.write(policy)
        os.kill(self.daemon.pid, signal.SIGHUP)
        host.wait_until(lambda: self.daemon.log().count("reloaded") > before, 10)

    def allow(self, *rules):
        self.reload({"network": {"mode": "allowlist", "allow": list(rules)}})

    def close(self):
        try:
            assert self.daemon.stop() == 0, self.daemon.log()
        finally:
            self.daemon.remove()
            shutil.rmtree(self.folder)


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "hello.txt").write_text("hello\n")
    (folder / "other.txt").write_text("other\n")
    with serve(files_of(folder)) as port, resolver(HOST) as names:
        made = Net(names, port)
        yield made
        made.close()


@pytest.fixture
def client(net):
    with net.daemon.client() as client:
        yield client


def merge(into, change):
    """@into with the keys of @change; lists grow."""
    for key, value in change.items():
        if isinstance(value, dict):
            merge(into.setdefault(key, {}), value)
        elif isinstance(value, list):
            into[key] = [*into.get(key, []), *value]
        else:
            into[key] = value
    return into


def only(result, kind):
    rows = [row for row in result["denials"] if row["kind"] == kind]
    assert len(rows) == 1, result["denials"]
    return rows[0]


@pytest.mark.parametrize("rules, url, rule, detail, remedy", [
    ([], "{host}:{port}/hello.txt", "network.allow", None, "{host}:{port}"),
    (["{host}:1"], "{host}:{port}/hello.txt", "network.allow", "{host}:1", "{host}:{port}"),
    (["POST {host}:{port}", "127.0.0.1/32:{port}"], "{host}:{port}/hello.txt", "network.allow", "GET /hello.txt",
     "GET {host}:{port}/hello.txt"),
    (["GET {host}:{port}/other.txt", "127.0.0.1/32:{port}"], "{host}:{port}/hello.txt?a=b", "network.allow",
     "GET /hello.txt?a=b", "GET {host}:{port}/hello.txt"),
    (["{host}:{port}"], "{host}:{port}/hello.txt", "network.address", "127.0.0.1: loopback", "127.0.0.1:{port}"),
    ([], "127.0.0.1:{port}/hello.txt", "network.allow", None, "127.0.0.1:{port}"),
])
def test_the_remedy_opens_what_was_refused(net, client, rules, url, rule, detail, remedy):
    def fill(text):
        return text and text.format(host=HOST, port=net.port)

    net.allow(*map(fill, rules))
    code = f"curl -s --noproxy '' -x http://127.0.0.1:3128 http://{fill(url)}"
    refused = client.shell(code)
    row = only(refused, "network")
    assert (row["rule"], row["errno"], row["count"]) == (rule, None, 1), row
    assert row["detail"] == fill(detail), row
    assert row["remedy"]["policy"] == {"network": {"allow": [fill(remedy)]}}, row
    assert row["remedy"]["policies"] == ["net"] and fill(remedy) in row["remedy"]["text"]

    changed = merge(net.policy, row["remedy"]["policy"])
    net.reload(changed)
    again = client.shell(code)
    if again["denials"]:  # the name is open now, its address is next
        row = only(again, "network")
        assert rule == "network.allow" and row["rule"] == "network.address"
        net.reload(merge(changed, row["remedy"]["policy"]))
        again = client.shell(code)
    assert (again["stdout"], again["denials"]) == ("hello\n", []), again


def test_what_no_rule_opens_has_no_machine_form(net, client):
    net.allow(HOST)
    result = client.shell("curl -s http://169.254.169.254/latest; printf 'nonsense\\r\\n\\r\\n' | "
                          "python3 -c 'import socket,sys; s=socket.create_connection((\"127.0.0.1\",3128)); "
                          "s.sendall(sys.stdin.buffer.read()); s.recv(999)'")
    rows = {row["what"]: row for row in result["denials"]}
    assert set(rows) == {"169.254.169.254:80", "?:0"}, result
    for row in rows.values():
        assert list(row["remedy"]) == ["text"], row


def test_a_tunnel_without_tls(net, client):
    net.allow(f"{HOST}:{net.port}", f"127.0.0.1/32:{net.port}")
    code = f"curl -s -p -x http://127.0.0.1:3128 http://{HOST}:{net.port}/hello.txt"
    row = only(client.shell(code), "network")
    assert row["rule"] == "network.tls"
    net.reload(merge(net.policy, row["remedy"]["policy"]))
    assert client.shell(code)["stdout"] == "hello\n"


def test_a_system_call(client):
    result = client.shell("mount -t tmpfs x /mnt; mount -t tmpfs x /mnt; true")
    row = only(result, "syscall")
    assert (row["what"], row["rule"], row["errno"], row["count"]) == ("mount", "seccomp", "EPERM", 2)
    assert list(row["remedy"]) == ["text"] and "No policy" in row["remedy"]["text"]


# Two seconds from either deadline: a daemon that is stalled at the first one may see the program's end before its timer.
TIME = ("time", "import time; time.sleep(6)", {"timeout": 4})
OUTPUT = ("output", "print('x' * 5000)", {"resources": {"max_output": "1Ki"}})
PROCESSES = ("processes", "import subprocess\nps=[subprocess.Popen(['sleep','1']) for _ in range(20)]\n[p.wait() for p in ps]",
             {"resources": {"max_processes": 16}})
DISK = ("disk", "f=open('a','wb')\nf.write(bytes(1<<20)); f.flush()", {"resources": {"disk": "1Mi"}})
MEMORY = ("memory", "x=bytearray(80<<20)\nfor i in range(0, len(x), 4096): x[i]=1", {"resources": {"memory": "64Mi"}})


@pytest.mark.parametrize("name, code, asked", [TIME, OUTPUT, PROCESSES, DISK, MEMORY],
                         ids=["time", "output", "processes", "disk", "memory"])
def test_the_remedy_of_a_limit_is_enough(net, client, name, code, asked):
    net.allow()
    if name in ("memory", "processes") and not host.is_root():
        pytest.skip("needs root: counters of control groups")
    result = client.python(code, **asked)
    rows = [row for row in result["denials"] if row["kind"] == "limit" and row["what"] == name]
    assert len(rows) == 1, result
    errno = {"processes": "EAGAIN", "disk": "ENOSPC"}.get(name)
    assert rows[0]["errno"] == errno and rows[0]["count"] >= 1
    remedy = rows[0]["remedy"]
    assert set(remedy) == {"text", "request"}, remedy
    result = client.python(code, **merge(dict(asked), remedy["request"]))
    assert result["status"] == "success" and not [r for r in result["denials"] if r["kind"] == "limit"], result


def test_a_maximum_of_the_policy_is_raised_first(net, client):
    net.reload({"limits": {"timeout": {"max": "4s"}}})
    code = TIME[1]
    remedy = only(client.python(code, timeout=20), "limit")["remedy"]
    assert remedy["policy"] == {"limits": {"timeout": {"max": 8}}} and remedy["policies"] == ["net"]
    assert remedy["request"] == {"timeout": 8}
    net.reload(merge(net.policy, remedy["policy"]))
    assert client.python(code, **remedy["request"])["status"] == "success"


def test_a_maximum_of_the_settings(make_daemon):
    with make_daemon(config="limits: {timeout: 500ms, timeout_max: 500ms}\n").start().client() as client:
        remedy = only(client.python("import time; time.sleep(9)"), "limit")["remedy"]
        assert remedy["settings"] == {"limits.timeout_max": 1} and remedy["request"] == {"timeout": 1}


@pytest.mark.skipif(not host.is_root(), reason="needs root: counters of control groups")
def test_in_a_session_limits_of_the_box_belong_to_the_session(net, client):
    net.allow()
    session = Session(client, mode="persistent", language="shell", resources={"max_processes": 16})
    try:
        result = session.run("for i in $(seq 20); do sleep 1 & done; wait")
        row = only(result, "limit")
        assert row["remedy"]["session"] == {"resources": {"max_processes": 32}}, row
        again = client.get(f"/api/v1/executions/{result['execution_id']}").json
        assert again["denials"] == result["denials"]
    finally:
        session.delete()


def test_denials_are_the_same_after_a_restart(make_daemon):
    daemon = make_daemon().start()
    with daemon.client() as client:
        session = Session(client, mode="persistent", language="shell")
        result = session.run("mount -t tmpfs x /mnt; head -c 2000 /dev/zero | tr '\\0' x; sleep 20", timeout=6,
                             resources={"max_output": 1024})
        assert {row["rule"] for row in result["denials"]} >= {"seccomp", "deadline"}, result
    assert daemon.stop() == 0
    daemon.start()
    with daemon.client() as client:
        again = client.get(f"/api/v1/executions/{result['execution_id']}").json
        assert again["denials"] == result["denials"]


# What a box used of the network, and who reads that.


def metric(client, name, *labels):
    lines = client.get("/metrics").body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name + "{") and all(label in line for label in labels))


def test_traffic_is_in_the_result_and_the_metrics(net, client):
    net.allow(f"{HOST}:{net.port}", f"127.0.0.1/32:{net.port}")
    names = (("sandbox_egress_bytes_total", 'direction="received"'), ("sandbox_egress_bytes_total", 'direction="sent"'),
             ("sandbox_egress_connections_total",), ("sandbox_egress_denials_total", 'rule="network.allow"'))
    before = [metric(client, *name) for name in names]
    result = client.shell(f"for i in 1 2 3; do curl -s http://{HOST}:{net.port}/hello.txt; done; curl -s http://other.test/")
    used = result["metrics"]
    assert result["stdout"].startswith("hello\n" * 3) and used["network_connections"] == 3, result
    assert used["network_received_bytes"] > 3 * len("hello\n") and used["network_sent_bytes"] > 3 * len("GET /hello.txt")
    grown = [metric(client, *name) - old for name, old in zip(names, before)]
    assert grown == [used["network_received_bytes"], used["network_sent_bytes"], 3, 1], grown


def test_traffic_of_a_session_is_that_of_each_execution(net, client):
    net.allow(f"{HOST}:{net.port}", f"127.0.0.1/32:{net.port}")
    session = Session(client, mode="persistent", language="shell")
    try:
        seen = [session.run(f"for i in {words}; do curl -s http://{HOST}:{net.port}/hello.txt; done")["metrics"]["network_connections"]
                for words in ("1 2", "1", "")]
        assert seen == [2, 1, 0]
    finally:
        session.delete()


def test_a_client_that_looks_names_up_itself_is_led_to_the_proxy(net, client):
    code = f"import socket; socket.getaddrinfo({HOST!r}, 80)"
    result = client.python(code)
    assert result["isolation"]["network"] == "allowlist" and result["status"] == "failed", result
    assert "no name service" in result["why"][1] and "HTTPS_PROXY" in result["why"][2], result["why"]


def test_without_a_network_nothing_is_counted(client):
    used = client.shell("true", network="none")["metrics"]
    assert not [name for name in used if name.startswith("network_")], used


DENIED = "curl -s -o /dev/null http://{}/ ; echo tried; read line"


def test_a_refusal_belongs_to_the_run_that_was_alone(net):
    session = Session(net.daemon.client(), mode="persistent", language="shell")
    background = session.start(DENIED.format("alone.test"), background=True, stdin_open=True)
    session.wait_for_output(background, "tried")
    other = session.run("true")
    assert other["denials"] == [], other
    session.client.post(f"/api/v1/executions/{background}/stdin", {"data": "\n", "end": True})
    rows = session.result(background)["denials"]
    assert [(row["what"], row["count"], row.get("shared")) for row in rows] == [("alone.test:80", 1, None)]
    session.delete()


def test_a_refusal_among_several_runs_is_shared(net):
    """The proxy knows the box, not the program: both results have the row, and the metrics count it once."""
    session = Session(net.daemon.client(), mode="persistent", language="shell")
    before = egress_denials(net)
    background = session.start("echo up; read line", background=True, stdin_open=True)
    session.wait_for_output(background, "up")
    other = session.run("curl -s -o /dev/null http://both.test/ ; curl -s -o /dev/null http://both.test/ ; true")
    assert [(row["what"], row["count"], row.get("shared")) for row in other["denials"]] == [("both.test:80", 2, True)]
    assert other["metrics"]["network_shared"] is True
    alone = session.run("true")
    assert alone["denials"] == []
    session.client.post(f"/api/v1/executions/{background}/stdin", {"data": "\n", "end": True})
    ended = session.result(background)
    assert [(row["what"], row["count"], row.get("shared")) for row in ended["denials"]] == [("both.test:80", 2, True)]
    assert egress_denials(net) - before == 2
    last = session.run("curl -s -o /dev/null http://last.test/ ; true")
    assert [(row["what"], row.get("shared")) for row in last["denials"]] == [("last.test:80", None)]
    assert "network_shared" not in last["metrics"]
    session.delete()


def egress_denials(net):
    lines = net.daemon.client().get("/metrics").body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("sandbox_egress_denials_total{"))
