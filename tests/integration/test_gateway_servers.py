# SPDX-License-Identifier: Apache-2.0
"""The gateway with real MCP servers: programs from npm, called from Python and JavaScript, by many sessions at once."""

import concurrent.futures
import json
import time
import os
import pathlib
import shutil
import signal
import socket
import subprocess

import pytest

from support import host
from support.gateway import Gateway, serve_http
from support.sessions import Session

CLIENTS = pathlib.Path(__file__).resolve().parent.parent / "mcp"
SERVERS = CLIENTS / "node_modules/@modelcontextprotocol"
EVERYTHING, MEMORY = SERVERS / "server-everything/dist/index.js", SERVERS / "server-memory/dist/index.js"


def is_readable_by_others(path):
    """The daemon's user runs the servers; started by root it has an id of its own."""
    if os.getuid() != 0:
        return os.access(path, os.R_OK)
    return subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "test", "-r", path], check=False).returncode == 0


pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not shutil.which("node"), reason="needs node"),
    pytest.mark.skipif(not EVERYTHING.exists() or not MEMORY.exists(), reason="the servers are not installed: tools/setup test"),
    pytest.mark.skipif(EVERYTHING.exists() and not is_readable_by_others(EVERYTHING.resolve()),
                       reason="the daemon's user cannot read tests/mcp"),
]

NODE = shutil.which("node")


@pytest.fixture(scope="module")
def gateway():
    # The memory of server-memory is a file; the daemon's user may write to /tmp only. Another daemon has another user.
    path = pathlib.Path(f"/tmp/millibox-test-memory-{os.getpid()}-{time.monotonic_ns()}.json")
    memory = {"command": [NODE, str(MEMORY.resolve())], "env": {"MEMORY_FILE_PATH": str(path)}}
    with Gateway({"everything": {"command": [NODE, str(EVERYTHING.resolve()), "stdio"]}, "memory": memory},
                 more="log_level: debug\n") as made:
        yield made
    path.unlink(missing_ok=True)


def test_servers_of_npm_are_called_from_python(gateway):
    result = gateway.value(
        """
import json
import millibox_tools
from millibox_tools import everything, memory
print(json.dumps({
    "echo": everything.echo(message="hello"),
    "sum": everything.get_sum(a=2, b=40),
    "structured": everything.get_structured_content(location="Chicago"),
    "entities": memory.create_entities(entities=[{"name": "box", "entityType": "thing", "observations": ["small"]}]),
    "found": memory.search_nodes(query="small"),
    "search": millibox_tools.search("knowledge graph entities"),
    "doc": everything.get_sum.__doc__,
}))
""",
        mcp=["everything", "memory"],
        timeout=60,
    )
    assert "hello" in result["echo"]
    assert "42" in result["sum"]
    assert "temperature" in result["structured"]
    assert "box" in json.dumps(result["found"])
    assert any(line.startswith("memory.create_entities(") for line in result["search"])
    assert "Arguments:" in result["doc"]


def test_servers_of_npm_are_called_from_javascript(gateway):
    code = """
cat > main.js <<'END'
const tools = require("millibox_tools");
(async () => {
  const said = {};
  said.servers = await tools.servers();
  said.echo = await tools.everything.echo({ message: "hi" });
  said.sum = await tools.everything["get-sum"]({ a: 1, b: 2 });
  said.search = await tools.search("sum numbers");
  said.doc = await tools.describe("everything.get-sum");
  said.denied = await tools.call("memory", "read_graph").catch((error) => [error.name, error.message]);
  said.missing = await tools.everything.nothing().catch((error) => error.name);
  console.log(JSON.stringify(said));
})();
END
node main.js
"""
    with gateway.daemon.client() as client:
        result = client.shell(code, mcp=["everything"], timeout=60)
    assert result["exit_code"] == 0, result
    said = json.loads(result["stdout"])
    assert said["servers"] == ["everything"]
    assert "hi" in said["echo"] and "3" in said["sum"]
    assert any("get_sum(" in line for line in said["search"])
    assert "a: number" in said["doc"]
    assert said["denied"] == ["Denied", "URL not in allowlist: memory"]
    assert said["missing"] == "Denied"


@pytest.mark.alone
def test_fifty_sessions_at_once_while_a_server_is_killed(gateway):
    """Each session calls until it has its answers; a call that the kill hit says so, and others go on."""
    count, calls = 50, 20
    code = f"""
import millibox_tools
from millibox_tools import everything, memory
lost = []
for i in range({calls}):
    while True:
        try:
            assert "m%d" % i in everything.echo(message="m%d" % i)
            break
        except millibox_tools.Unavailable as error:
            lost.append(str(error))
    assert "entities" in str(memory.read_graph())
lost"""

    def work(index):
        with gateway.daemon.client(timeout=240) as client:
            session = Session(client, mode="persistent", mcp=["everything", "memory"], resources={"memory": "64Mi"})
            result = session.run(code, timeout=200)
            session.delete()
            assert result["exit_code"] == 0, (index, result)
            return eval(result["result"]) if isinstance(result["result"], str) else result["result"]

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        running = [pool.submit(work, i) for i in range(count)]
        host.wait_until(lambda: gateway.calls("everything") > count, 120, "calls")
        victims = [pid for pid in gateway.server_pids() if "server-everything" in " ".join(host.cmdline(pid))]
        os.kill(victims[0], signal.SIGKILL)
        lost = [text for job in running for text in job.result()]
    assert all("it is started again, the call is not repeated" in text for text in lost), lost
    info = gateway.info("everything")
    assert info["state"] == "ready" and info["starts"] >= 2, info
    assert gateway.calls("everything") >= count * calls


@pytest.mark.parametrize("stream", [False, True], ids=["json", "events"])
def test_servers_over_http(stream):
    with serve_http(stream=stream) as server:
        headers = {"Authorization": "Bearer of-the-server"}
        with Gateway({"remote": {"url": server.url, "headers": headers}}) as gateway:
            said = gateway.ask(server.url, "echo", {"text": "over http"}, mcp=["remote"])
            assert said == {"result": {"content": [{"type": "text", "text": "over http"}]}}
            assert gateway.ask("remote", "fail", mcp=["remote"])["result"]["isError"]
            assert gateway.ask("remote", "http-error", mcp=["remote"]) == {
                "error": "MCP server 'remote' answered with HTTP 500"
            }
            assert server.authorizations == {"Bearer of-the-server"}
            # The session is lost: the gateway begins another.
            server.forget()
            assert "has ended its session" in gateway.ask("remote", "echo", {"text": "x"}, mcp=["remote"])["error"]
            assert gateway.ask("remote", "echo", {"text": "y"}, mcp=["remote"])["result"]


def test_headers_come_from_secrets():
    with serve_http() as server:
        headers = {"Authorization": "Bearer ${secret:remote-token}"}
        with Gateway({"remote": {"url": server.url, "headers": headers}}) as gateway, gateway.daemon.client() as client:
            host.wait_until(lambda: gateway.info("remote")["state"] == "broken", 10, "broken")
            said = gateway.ask("remote", "echo", {"text": "x"}, mcp=["remote"])["error"]
            assert said == (
                "Cannot connect: MCP server 'remote' needs secret 'remote-token' of tenant 'default', which is not set or "
                "cannot be read"
            )
            assert not server.authorizations

            def put(name, value):
                body = {"value": value, "hosts": ["api.example.com"]}
                answer = client.request("PUT", f"/api/v1/secrets/{name}", body=json.dumps(body), headers={"Content-Type": "application/json"})
                assert answer.status == 200, answer

            for value in ("first-value-of-it", "second-value-of-it"):
                put("remote-token", value)
                host.wait_until(lambda: f"Bearer {value}" in server.authorizations, 20, value)
                said = gateway.ask("remote", "echo", {"text": value[:5]}, mcp=["remote"])
                assert said["result"]["content"][0]["text"] == value[:5]
            # Servers are for all tenants: a secret that none of them uses does not start them again, many changes do so once a second.
            put("another", "other-value-of-it")
            begin = time.monotonic()
            for i in range(40):
                put("remote-token", f"{i}-value-of-it")
            seconds = int(time.monotonic() - begin)
            host.wait_until(lambda: "Bearer 39-value-of-it" in server.authorizations, 20, "the last value")
            assert gateway.daemon.log().count("the servers have changed") <= 2 + 2 + seconds
            assert gateway.ask("remote", "echo", {"text": "x"}, mcp=["remote"])["result"]
            assert "value-of-it" not in gateway.daemon.log()


def test_an_http_server_that_is_not_there_breaks_the_circuit():
    with socket.socket() as held:  # bound and not listening: no other program can get the port meanwhile
        held.bind(("127.0.0.1", 0))
        check_broken_circuit(f"http://127.0.0.1:{held.getsockname()[1]}/mcp")


def check_broken_circuit(url):
    with Gateway({"remote": {"url": url, "timeout": "20s"}}) as gateway:
        host.wait_until(lambda: gateway.info("remote")["state"] == "broken", 30, "broken")
        said = gateway.ask("remote", "echo", {"text": "x"}, mcp=["remote"])["error"]
        assert said.startswith("Cannot connect: MCP server 'remote' failed ") and "cannot be reached" in said
