# SPDX-License-Identifier: Apache-2.0
"""The gateway against code that tries to reach what it may not, to harm others, or to be another box. Each attempt has a
control that shows that the way it uses works."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from support import host
from support.gateway import SPEAK, TOY, Gateway, serve_http
from support.mcp import Mcp
from support.identity import KeyClient, make_key, make_tenant
from support.sessions import Session

pytestmark = pytest.mark.phases("system")

SECRET = "sesame-of-the-server"


@pytest.fixture(scope="module")
def gateway():
    policies = {"tools": 'mcp: {servers: ["*"]}', "few": "mcp: {servers: [toy]}"}
    settings = {"call_timeout": "5s", "max_calls": 4, "max_calls_per_tenant": 6}
    servers = {"toy": {"env": {"TOKEN": SECRET}}, "other": "toy"}
    with Gateway(servers, policies=policies, settings=settings) as made:
        # Calls wait for a server that starts, but not longer than their time.
        for name in servers:
            host.wait_until(lambda name=name: made.info(name)["state"] == "ready", 20, f"{name} is ready")
        yield made


def echo(gateway, **fields):
    """The control: an ordinary call."""
    return gateway.ask("toy", "echo", {"text": "ok"}, **fields)["result"]["content"][0]["text"]


def test_a_tool_that_is_not_listed_is_refused_whatever_its_spelling(gateway):
    spellings = ["env", "Env", "env/", "./env", "echo/../env", "env\\u0000", "e\\u006ev", "*", "env ", "toy/env", ""]
    said = gateway.value(
        SPEAK
        + f"""
print(json.dumps([speak(frame(('{{"url":"toy","tool":"%s","arguments":{{}}}}' % name).encode())) for name in {spellings!r}]))
""",
        mcp=["toy/echo"],
    )
    assert all("error" in answer and SECRET not in json.dumps(answer) for answer in said), said
    assert said[0] == {"error": "Tool not in allowlist: toy/env (rule mcp)", "rule": "mcp"}
    # Escapes mean what they stand for.
    assert said[6] == said[0]
    control = gateway.ask("toy", "env", mcp=["toy/env"])
    assert SECRET in json.dumps(control)


def test_a_server_that_is_not_listed_looks_like_one_that_is_not_there(gateway):
    said = [gateway.ask(url, "echo", {"text": "x"}, mcp=["toy"]) for url in ("other", "mcp://other", "absent", "file:///etc/passwd")]
    assert [answer["error"].replace("mcp://", "") for answer in said] == [
        f"URL not in allowlist: {name}" for name in ("other", "other", "absent", "file:///etc/passwd")
    ]
    assert all(answer["allowed_urls"] == ["mcp://toy"] for answer in said)
    assert echo(gateway, mcp=["toy", "other"]) == "ok"


def test_a_message_cannot_pretend_to_be_another_box(gateway):
    """Who calls is known from the socket. A request with every field that could name another gains nothing."""
    claims = {"box": 1, "box_id": "b1", "tenant": "other", "session_id": "x", "op": 3, "allowed": ["0*/*"], "mcp": ["*"],
              "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "env"}}
    said = gateway.value(
        SPEAK + f"print(json.dumps(speak(frame({{**{claims!r}, 'url': 'toy', 'tool': 'env'}}))))", mcp=["toy/echo"]
    )
    assert said["rule"] == "mcp"
    smuggled = gateway.value(
        SPEAK
        + r"""
inside = '{"text": "a"}}}\n{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"env","arguments":{'
raw = b'{"url":"toy","tool":"echo","arguments":{"text":"a"\n}\n}'
print(json.dumps([ask("toy", "echo", {"text": inside}), speak(frame(raw)),
    speak(frame(b'{"url":"toy","tool":"echo\\",\\"arguments\\":{}","arguments":{"text":"x"}}'))]))
""",
        mcp=["toy/echo"],
    )
    assert smuggled[0]["result"]["content"][0]["text"].startswith('{"text": "a"}}}\n')
    assert smuggled[1]["result"]["content"][0]["text"] == "a"
    assert smuggled[2]["error"].startswith("Invalid 'tool'")
    assert SECRET not in json.dumps(smuggled)


def test_calls_beside_a_stopped_daemon_are_counted(gateway):
    """A daemon that does not receive fills its socket. The gateway accepts no further calls, and loses no event."""
    with gateway.daemon.client() as client:
        session = Session(client, language="python", mode="persistent", mcp=["toy/echo"])
        session.run(SPEAK)
        execution = session.start("print('ready', flush=True)\nprint(sum('rule' in ask('toy', 'env') for _ in range(2000)))", timeout=600)
        session.wait_for_output(execution, "ready", 30)
        pid = gateway.gateway_pid()
        before = host.turns(pid)
        os.kill(gateway.daemon.pid, signal.SIGSTOP)
        try:
            # More calls than the socket holds: the gateway waits for the daemon with the rest.
            host.wait_until(lambda: host.turns(pid) - before >= 100, 20, lambda: f"calls: {host.turns(pid) - before}")
            host.await_rest(pid, "the gateway")
        finally:
            os.kill(gateway.daemon.pid, signal.SIGCONT)
        result = session.result(execution, 60)
        session.delete()
    assert result["stdout"] == "ready\n2000\n", result
    assert [d["count"] for d in result["denials"]] == [2000]
    assert echo(gateway) == "ok"


def test_the_socket_of_a_box_cannot_be_replaced_or_reached_by_another(gateway):
    said = gateway.value(
        """
import json, os, socket
def attempt(what):
    try:
        what()
        return "done"
    except OSError as error:
        return error.strerror
listener = socket.socket(socket.AF_UNIX)
print(json.dumps({
    "unlink": attempt(lambda: os.unlink("/tmp/mcp.sock")),
    "rename": attempt(lambda: os.rename("/tmp/mcp.sock", "/tmp/x")),
    "chmod": attempt(lambda: os.chmod("/tmp/mcp.sock", 0)),
    "bind": attempt(lambda: listener.bind("/tmp/mcp.sock")),
    "own": attempt(lambda: socket.socket(socket.AF_UNIX).bind("/tmp/own.sock")),
    "sockets": [name for name in os.listdir("/tmp") if name.endswith(".sock")],
}))
"""
    )
    assert said["unlink"] == said["rename"] == said["chmod"] == "Operation not permitted"
    assert said["bind"] == "Address already in use"
    assert said["own"] == "done" and "mcp.sock" in said["sockets"]


def test_oversized_and_half_open_messages_are_bounded(gateway):
    said = gateway.value(
        SPEAK
        + """
import time
too_large = speak((0xffffffff).to_bytes(4, "big") + b"x" * 100000)
exactly = speak(frame(b" " * (10 * 1024 * 1024)))
beyond = speak(frame(b" " * (10 * 1024 * 1024 + 1)))
empty = speak(frame(b""))
nothing = speak(b"", end=True)
deep = speak(frame(b"[" * 1000000))
half = [socket.socket(socket.AF_UNIX) for _ in range(3)]
for s in half:
    s.connect("/tmp/mcp.sock")
    s.sendall(b"\\0\\0")
control = ask("toy", "echo", {"text": "ok"})
print(json.dumps([too_large, exactly, beyond, empty, nothing, deep, control]))
""",
        timeout=60,
    )
    errors = [answer.get("error", "") for answer in said[:-1]]
    assert errors[0].startswith("Message too large") and errors[2].startswith("Message too large")
    assert errors[1].startswith("Invalid JSON") and errors[3].startswith("Invalid JSON") and errors[5].startswith("Invalid JSON")
    assert errors[4].startswith("Incomplete message")
    assert said[-1]["result"]


def test_bytes_in_memory_are_bounded_per_box():
    with Gateway({"toy": "toy"}, settings={"max_bytes": "1Mi"}) as gateway:
        said = gateway.value(
            SPEAK
            + """
small = ask("toy", "echo", {"text": "x" * 1000})
large = ask("toy", "echo", {"text": "x" * (2 << 20)})
result = ask("toy", "big", {"bytes": 2 << 20})
print(json.dumps([list(small), large, result]))
"""
        )
    assert said[0] == ["result"]
    assert said[1]["error"].startswith("Too many bytes") and said[2]["error"].startswith("Too many bytes")


def test_the_tenant_that_holds_most_waits_when_memory_is_short():
    """A quarter of 256 MiB is for calls, so 70 % of it are 45 MiB: one tenant holds that much, and another is served."""
    settings = {"memory": "256Mi", "max_bytes": "1Gi", "max_bytes_per_tenant": "1Gi", "max_calls": 32, "call_timeout": "600s"}
    with Gateway({"toy": "toy"}, settings=settings) as gateway, gateway.daemon.client() as client:
        make_tenant(client, "other")
        other = KeyClient(gateway.daemon.socket, make_key(client, "other"))
        greedy = Session(client, mode="persistent", language="python", mcp=["toy"])
        greedy.run(SPEAK + """
import select
held = []
data = frame({"url": "toy", "tool": "sleep", "arguments": {"seconds": 600, "pad": "x" * (9 << 20)}})
for _ in range(8):
    s = socket.socket(socket.AF_UNIX)
    s.connect("/tmp/mcp.sock")
    s.setblocking(False)
    held.append([s, memoryview(data)])
def push():
    # Return: how many were taken whole.
    for pair in held:
        try:
            while pair[1]:
                pair[1] = pair[1][pair[0].send(pair[1]):]
        except OSError:
            pass
    return sum(not rest for _, rest in held)
def refused():
    return len(select.select([s for s, _ in held], [], [], 0)[0])
""")
        host.wait_until(lambda: greedy.run("push()")["result"] >= 4, 20, "calls of the first tenant")
        host.await_rest(gateway.gateway_pid(), "the gateway")
        assert 0 < greedy.run("refused()")["result"] < 6, "the others wait for their tool"
        before = gateway.gateway_pid()
        said = other.python(SPEAK + 'print(len(ask("toy", "echo", {"text": "x" * (5 << 20)})["result"]["content"][0]["text"]))', mcp=["toy"])
        assert said["stdout"] == f"{5 << 20}\n", said
        assert gateway.gateway_pid() == before
        greedy.delete()


def test_a_flood_of_one_box_does_not_keep_others_from_their_tools(gateway):
    """It holds all calls of its own; what is more waits in its own queue."""
    flood = SPEAK + """
import time
held = []
for i in range(300):
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    try:
        s.connect("/tmp/mcp.sock")
    except BlockingIOError:
        break
    s.send(frame({"url": "toy", "tool": "sleep", "arguments": {"seconds": 60}}))
    held.append(s)
print("held", len(held), flush=True)
time.sleep(60)
"""
    with gateway.daemon.client() as client:
        session = Session(client, mode="persistent", mcp=["toy"])
        execution = session.start(flood)
        session.wait_for_output(execution, "held")
        assert echo(gateway) == "ok"
        before = host.fd_count(gateway.gateway_pid())
        assert before < 200, before
        session.delete()
    host.wait_until(lambda: host.fd_count(gateway.gateway_pid()) < before, 10, "connections end with their box")
    assert echo(gateway) == "ok"


def test_tenants_take_turns_at_a_server():
    """One tenant has filled the queue of a server that answers one call at a time. The other's call is answered before all of those."""
    many = 20
    fill = SPEAK + f"""
import time
held = [socket.socket(socket.AF_UNIX) for _ in range({many})]
for s in held:
    s.connect("/tmp/mcp.sock")
    s.sendall(frame({{"url": "toy", "tool": "sleep", "arguments": {{"seconds": 1}}}}))
held[0].recv(1)
print("answered", flush=True)
time.sleep(60)
"""
    with Gateway({"toy": {"max_calls": 1}}, settings={"call_timeout": "60s", "max_calls": 2 * many}) as gateway:
        with gateway.daemon.client() as client:
            make_tenant(client, "other")
            other = KeyClient(gateway.daemon.socket, make_key(client, "other"))
            session = Session(client, mode="persistent", mcp=["toy"])
            execution = session.start(fill)
            session.wait_for_output(execution, "answered")
            said = other.python(SPEAK + 'print(json.dumps(ask("toy", "echo", {"text": "ok"})))', mcp=["toy"], timeout=60)
            assert json.loads(said["stdout"])["result"]["content"][0]["text"] == "ok", said
            assert gateway.calls("toy") < many
            session.delete()


def test_calls_end_with_their_box():
    """The server learns that the answer is not wanted, long before its time is over."""
    def cancelled(gateway):
        return json.loads(gateway.ask("toy", "cancelled")["result"]["content"][0]["text"])

    code = SPEAK + """
import time
s = socket.socket(socket.AF_UNIX)
s.connect("/tmp/mcp.sock")
s.sendall(frame({"url": "toy", "tool": "sleep", "arguments": {"seconds": 300}}))
print("sent", flush=True)
time.sleep(600)
"""
    with Gateway({"toy": "toy"}, settings={"call_timeout": "600s"}) as gateway:
        with gateway.daemon.client() as client:
            session = Session(client, mode="persistent", mcp=["toy"])
            session.wait_for_output(session.start(code, timeout=600), "sent")
            assert cancelled(gateway) == []
            session.delete()
        host.wait_until(lambda: cancelled(gateway), 10, "cancelled")


def test_calls_have_a_time_limit_and_a_slow_server_is_not_restarted(gateway):
    starts = gateway.info("toy")["starts"]
    said = gateway.ask("toy", "sleep", {"seconds": 20})
    assert said["error"] == "Timeout: MCP server 'toy' did not answer within 5s"
    assert echo(gateway) == "ok"
    assert gateway.info("toy")["starts"] == starts


HOSTILE = {
    "not json": "\x00\xff\xfe garbage",
    "no utf-8": '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}',
    "deep": "[" * 100000,
    "another's id": '{"jsonrpc":"2.0","id":999999,"result":{}}',
    "id as text": '{"jsonrpc":"2.0","id":"ID","result":{}}',
    "negative id": '{"jsonrpc":"2.0","id":-1,"result":{}}',
    "id twice": '{"jsonrpc":"2.0","id":ID,"id":1,"result":{}}',
    "no result": '{"jsonrpc":"2.0","id":ID}',
    "odd error": '{"jsonrpc":"2.0","id":ID,"error":[1,2]}',
    "requests": '{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage","params":{}}',
    "long": "x" * (11 << 20),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_answers_with_hostile_bytes_harm_nobody(gateway, kind):
    pid, servers = gateway.gateway_pid(), sorted(gateway.server_pids())
    said = gateway.ask("toy", "raw", {"line": HOSTILE[kind] if kind != "long" else "x"}) if kind != "long" else None
    if kind == "long":
        said = gateway.ask("toy", "big", {"bytes": 11 << 20})
        assert said["error"].startswith("Message too large")
    elif kind in ("no result", "odd error"):
        assert said["error"] == "MCP server 'toy' refused the call: no reason given"
    else:
        assert said["error"].startswith("Timeout"), said
    assert echo(gateway) == "ok"
    assert (gateway.gateway_pid(), sorted(gateway.server_pids())) == (pid, servers)


def test_a_server_that_always_has_new_tools_is_not_asked_all_the_time(gateway):
    """The daemon parses every list."""
    before = int(gateway.ask("toy", "lists")["result"]["content"][0]["text"])
    news = '{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\n' * 2000
    begin = time.monotonic()
    assert gateway.ask("toy", "raw", {"line": news + '{"jsonrpc": "2.0", "id": ID, "result": {"ok": 1}}'}) == {"result": {"ok": 1}}
    asked = host.wait_until(lambda: int(gateway.ask("toy", "lists")["result"]["content"][0]["text"]) - before, 10, "control: it is asked")
    assert asked <= 2 + (time.monotonic() - begin), asked


def test_streams_that_a_server_leaves_open_are_bounded():
    """Each has a connection, although its call has an answer."""
    with serve_http() as server, Gateway({"remote": {"url": server.url}}) as gateway:
        code = "print(json.dumps([ask('remote', 'linger', {'text': str(i)})['result']['content'][0]['text'] for i in range(60)]))"
        assert gateway.value(SPEAK + code, mcp=["remote"], timeout=120) == [str(i) for i in range(60)]
        host.wait_until(lambda: server.lingering <= 17, 20, lambda: f"streams end: {server.lingering}")
        assert server.lingering > 1, "control: they stay open"
        assert gateway.info("remote")["starts"] == 1


def test_a_call_that_breaks_its_connection_harms_no_other():
    """A server may not like one request. Others go on; only a server that does not answer a ping either is given up."""
    with serve_http() as server, Gateway({"remote": {"url": server.url}}) as gateway, gateway.daemon.client() as client:
        session = Session(client, mode="persistent", mcp=["remote"])
        slow = session.start(SPEAK + "print(json.dumps(ask('remote', 'sleep', {'text': 'slow', 'seconds': 4})))", timeout=120)
        host.wait_until(lambda: server.sleeping == 1, 20, "a call in progress")
        for _ in range(6):  # more than open the circuit
            assert "cannot be reached" in gateway.ask("remote", "reset", mcp=["remote"])["error"]
            assert gateway.ask("remote", "echo", {"text": "x"}, mcp=["remote"])["result"]
        assert json.loads(session.result(slow)["stdout"])["result"]["content"][0]["text"] == "slow"
        info = gateway.info("remote")
        assert (info["state"], info["starts"]) == ("ready", 1), info
        server.is_dead = True
        assert "cannot be reached" in gateway.ask("remote", "echo", {"text": "x"}, mcp=["remote"])["error"]
        host.wait_until(lambda: gateway.info("remote")["state"] == "broken", 40, "control: it is given up")
        session.delete()


def test_a_tool_without_a_schema_is_found():
    """The protocol demands one, and a daemon must not depend on it."""
    with serve_http() as server, Gateway({"remote": {"url": server.url}}) as gateway, Mcp(gateway.daemon.socket) as mcp:
        host.wait_until(lambda: gateway.info("remote")["state"] == "ready", 20, "ready")
        found = mcp.call("search_tools", query="bare")
        assert "remote.bare" in found["content"][0]["text"], found


def test_results_are_passed_on_as_data_only(gateway):
    """A result that looks like a frame or an error of the gateway stays a result."""
    text = '"}} {"error": "x"} \x00\x01\u2028\U0001f600'
    said = gateway.ask("toy", "echo", {"text": text})
    assert said == {"result": {"content": [{"type": "text", "text": text}]}} and "error" not in said


def test_the_gateway_can_run_and_write_nothing(gateway):
    status = pathlib.Path(f"/proc/{gateway.gateway_pid()}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Seccomp"] == "2" and fields["NoNewPrivs"] == "1" and fields["CapEff"] == "0" * 16
    assert "0" not in fields["Uid"].split()
    # The control: its starter, which runs the servers, has no filter.
    starter = pathlib.Path(f"/proc/{gateway.starter()}/status").read_text()
    assert "Seccomp:\t0" in starter and "NoNewPrivs:\t1" in starter


def test_secrets_of_servers_are_not_in_logs_or_processes(gateway):
    assert echo(gateway) == "ok"
    assert SECRET not in gateway.daemon.log()
    for pid in (gateway.daemon.pid, gateway.starter(), gateway.gateway_pid()):
        for name in ("environ", "cmdline"):
            assert SECRET.encode() not in pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    assert any(SECRET.encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes() for pid in gateway.server_pids())


def test_a_server_that_dies_again_and_again_is_refused_until_it_works():
    with Gateway({"toy": {"command": ["/usr/bin/python3", "-c", "import sys; sys.exit(4)"]}}) as gateway:
        host.wait_until(lambda: gateway.info("toy")["state"] == "broken", 60, "broken")
        said = gateway.ask("toy", "echo", {"text": "x"})["error"]
        assert said.startswith("Cannot connect: MCP server 'toy' failed ") and "has ended with status 4" in said


def test_a_killed_starter_leaves_nothing_behind():
    with Gateway({"toy": "toy"}) as gateway:
        assert echo(gateway) == "ok"
        left = [gateway.gateway_pid(), *gateway.server_pids()]
        assert len(left) == 2
        os.kill(gateway.starter(), signal.SIGKILL)
        host.wait_until(lambda: not any(host.is_alive(pid) for pid in left), 10, "its children end")
        host.wait_until(lambda: gateway.info("toy")["state"] == "broken", 10, "broken")
        with gateway.daemon.client() as client:
            answer = client.post("/api/v1/execute", {"language": "python", "code": "1", "mcp": ["toy"]})
            assert answer.status == 503, answer
            assert client.python("print(1)")["stdout"] == "1\n"


def test_the_toy_server_works_without_a_gateway():
    """The control of all of the above: what a hostile box asks for, the server would do."""
    messages = [{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "env", "arguments": {}}}]
    done = subprocess.run([sys.executable, TOY], input="".join(json.dumps(m) + "\n" for m in messages), env={"TOKEN": SECRET},
                          capture_output=True, text=True, timeout=30, check=True)
    assert SECRET in done.stdout
