# SPDX-License-Identifier: Apache-2.0
"""The compatibility modules: every call that the originals document, and what their tests check."""

import asyncio
import base64

import pytest

import millibox
from millibox.compat import codomyrmex, rayai, sandbox_runtime, sandboxrunner

from support import host
from support.sessions import needs_freezer

pytestmark = pytest.mark.phases("system")


@pytest.fixture
def server(daemon, monkeypatch):
    """The modules find the daemon by the environment."""
    monkeypatch.setenv("MILLIBOX_SOCKET", daemon.socket)
    with millibox.Client() as client:
        rayai.connect(client)
        codomyrmex.connect(client)
        yield client
    rayai._clients.clear()
    codomyrmex._clients.clear()


# rayai


@pytest.fixture
def session(server):
    yield "test-session"
    assert rayai.cleanup_session("test-session") == {"status": "success", "session_id": "test-session"}


def test_rayai_prints(session):
    result = rayai.execute_code("print('Hello, World!')", session_id=session)
    assert result == {"status": "success", "stdout": "Hello, World!\n", "stderr": "", "exit_code": 0,
                      "execution_id": "test-session_1"}
    assert rayai.execute_shell("echo hi", session_id=session)["execution_id"] == "test-session_shell_2"


def test_rayai_errors_are_results(session):
    result = rayai.execute_code("1 / 0", session_id=session)
    assert (result["status"], result["exit_code"] != 0) == ("error", True) and "ZeroDivisionError" in result["stderr"]
    assert rayai.execute_shell("exit 3", session_id=session)["exit_code"] == 3


def test_rayai_keeps_variables_imports_and_functions(session):
    rayai.execute_code("import math\nx = 42\ndef twice(n): return 2 * n", session_id=session)
    assert rayai.execute_code("print(x, math.pi > 3, twice(x))", session_id=session)["stdout"] == "42 True 84\n"
    assert rayai.execute_code("print('''it's''')", session_id=session)["stdout"] == "it's\n"


def test_rayai_sessions_are_separate(session):
    rayai.execute_code("x = 'a'", session_id=session)
    rayai.execute_code("x = 'b'", session_id="other")
    assert rayai.execute_code("print(x)", session_id=session)["stdout"] == "a\n"
    assert rayai.cleanup_session("other")["status"] == "success"


def test_rayai_uploads(session):
    assert rayai.upload_file("data.txt", b"content", session) == {
        "status": "error", "error": "Session test-session not found", "error_type": "ValueError"}
    rayai.execute_code("1", session_id=session)
    assert rayai.upload_file("data.txt", b"\0content", session) == {"status": "success", "path": "data.txt", "size": 8}
    assert rayai.execute_code("print(open('data.txt', 'rb').read())", session_id=session)["stdout"] == "b'\\x00content'\n"
    assert rayai.execute_shell("wc -c < data.txt", session_id=session)["stdout"] == "8\n"


def test_rayai_time_limits(session):
    result = rayai.execute_code("import time; time.sleep(60)", session_id=session, timeout=1)
    assert (result["error"], result["error_type"]) == ("Execution timed out after 1 seconds", "TimeoutError")
    result = rayai.execute_shell("sleep 60", session_id=session, timeout=1)
    assert result["error"] == "Shell execution timed out after 1 seconds"
    assert rayai.execute_shell("pgrep sleep", session_id=session)["exit_code"] == 1


def test_rayai_counts(session):
    assert rayai.get_session_stats(session)["container_status"] == "none"
    for _ in range(3):
        rayai.execute_code("1", session_id=session)
    stats = rayai.get_session_stats(session)
    assert (stats["session_id"], stats["execution_count"], stats["container_status"]) == (session, 3, "running")
    assert stats["created_at"] > 1e9 and stats["uptime"] >= 0


def test_rayai_environment_and_own_sessions(session, server):
    code = "import os; print(os.environ['WORD'])"
    assert rayai.execute_code(code, session_id=session, environment={"WORD": "w"})["stdout"] == "w\n"
    made = rayai.execute_code("1")["execution_id"].rsplit("_", 1)[0]
    assert made.startswith("session-") and rayai.cleanup_session(made)["status"] == "success"


@pytest.mark.parametrize("options, field", [
    ({"volumes": {"/etc": {"bind": "/x", "mode": "ro"}}}, "volumes"), ({"dockerfile": "FROM x"}, "dockerfile"),
    ({"mcp_allowlist": ["http://a"]}, "mcp_allowlist"), ({"image": "none:1"}, "template"),
])
def test_rayai_refusals_name_the_argument(session, options, field):
    result = rayai.execute_code("1", session_id=session, **options)
    assert result["status"] == "error" and field in result["error"], result


def test_rayai_documented_calls(session):
    """As in the documentation of its module, in order; what they print is there, too. The Dockerfile is refused by name."""
    run, shell = rayai.execute_code, rayai.execute_shell
    hello, listing = run("print('Hello!')"), shell("ls -la")
    assert hello["stdout"] == "Hello!\n" and listing["status"] == "success"
    for made in (hello["execution_id"].rsplit("_", 1)[0], listing["execution_id"].rsplit("_shell_", 1)[0]):
        assert rayai.cleanup_session(made)["status"] == "success"
    run("x = 5", session_id="user-123")
    assert run("print(x)", session_id="user-123")["stdout"] == "5\n"
    shell("echo 'test' > /tmp/file.txt", session_id="user-123")
    assert run("print(open('/tmp/file.txt').read())", session_id="user-123")["stdout"] == "test\n\n"
    assert rayai.cleanup_session("user-123")["status"] == "success"
    made = run("import pandas; print(pandas.__version__)", dockerfile="FROM python:3.11-slim\nRUN pip install pandas\n", session_id=session)
    assert made["status"] == "error" and "dockerfile" in made["error"]


# codomyrmex


def test_codomyrmex_answers(server):
    answer = codomyrmex.execute_code(language="python", code="print(input())", stdin="in")
    assert answer.pop("execution_time") > 0
    assert answer == {"stdout": "in\n", "stderr": "", "exit_code": 0, "status": "success", "error_message": None}
    assert codomyrmex.execute_code("bash", "echo $((6 * 7))", session_id="../x")["stdout"] == "42\n"


@pytest.mark.parametrize("language, code, word", [
    ("Python", "1", "not supported"), ("cobol", "1", "not supported"), ("python", "", "non-empty"), ("python", None, "non-empty")])
def test_codomyrmex_setup_errors(server, language, code, word):
    answer = codomyrmex.execute_code(language, code)
    assert (answer["status"], answer["exit_code"]) == ("setup_error", -1) and word in answer["error_message"]


def test_codomyrmex_failures(server):
    answer = codomyrmex.execute_code("python", "while True: pass", timeout=0)
    assert (answer["status"], answer["exit_code"]) == ("timeout", -1)
    assert answer["error_message"] == "Execution timed out after 1 seconds."
    # A busy host may need more than a second to start an interpreter.
    answer = codomyrmex.execute_code("python", "print('so far', flush=True)\nwhile True: pass", timeout=6)
    assert (answer["status"], answer["stdout"]) == ("timeout", "so far\n")
    answer = codomyrmex.execute_code("python", "raise SystemExit(3)")
    assert (answer["status"], answer["exit_code"]) == ("execution_error", 3)
    assert "ValueError" in codomyrmex.execute_code("python", "raise ValueError('x')")["error_message"]


def test_codomyrmex_without_a_daemon(tmp_path):
    with millibox.Client(socket=str(tmp_path / "none"), retries=0) as client:
        codomyrmex.connect(client)
        assert codomyrmex.execute_code("python", "1")["status"] == "setup_error"
    codomyrmex._clients.clear()


def test_codomyrmex_limits(server):
    limits = codomyrmex.ExecutionLimits(time_limit=10, memory_limit=64, max_output_chars=1000)
    answer = codomyrmex.execute_with_limits("python", "print('x' * 5000)", limits)
    assert len(answer["stdout"]) < 1100 and "cut at 1000" in answer["stdout"]
    assert answer["limits_applied"]["memory_limit_mb"] == 64 and answer["resource_usage"]["memory_peak_mb"] > 0
    assert codomyrmex.sandbox_process_isolation("python", "x = bytearray(200 << 20)", limits)["status"] == "execution_error"
    for wrong in ({"time_limit": 0}, {"time_limit": 301}, {"memory_limit": 0}, {"cpu_limit": 5}, {"max_output_chars": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            codomyrmex.ExecutionLimits(**wrong)


def test_codomyrmex_validators():
    valid, timeout = codomyrmex.validate_session_id, codomyrmex.validate_timeout
    assert [valid(x) for x in ("a_-1", "x" * 64, "x" * 65, "", "a.b", "a b", 3, None)] == ["a_-1", "x" * 64] + [None] * 6
    assert [timeout(x) for x in (None, 0, 1, 300, 301, -5)] == [30, 1, 1, 300, 300, 1]
    assert codomyrmex.validate_language("rust") and not codomyrmex.validate_language("Rust")


# SandboxRunner


def test_sandboxrunner_first_example(daemon):
    client = sandboxrunner.SandboxRunner(base_url="http://%s:%d" % daemon.tcp_address())
    sandbox = client.create_sandbox(image="python:3.11")
    result = sandbox.run_python("print('Hello, World!')")
    assert (result.stdout, result.success, result.language, result.timed_out) == ("Hello, World!\n", True, "python", False)
    sandbox.terminate()
    with pytest.raises(sandboxrunner.SandboxNotFoundError):
        sandbox.status


def test_sandboxrunner_second_example(server, capsys):
    client = sandboxrunner.SandboxRunner()
    with client.create_sandbox(image="python:3.11", memory_limit="1G") as sandbox:
        result = sandbox.run_python(code="import numpy as np\nprint(f'Array sum: {np.sum(np.array([1, 2, 3, 4, 5]))}')",
                                    packages=["numpy"])
        assert result.success, result
        result.print_output()
        assert "STDOUT:\nArray sum: 15\n" in capsys.readouterr().out
        sandbox.write_file("/workspace/test.txt", "Hello, World!")
        assert sandbox.read_file("/workspace/test.txt") == "Hello, World!"
        assert [(found.name, found.is_dir) for found in sandbox.list_files("/workspace")] == [("test.txt", False)]
        assert sandbox.status in [status.value for status in sandboxrunner.SandboxStatus]


def test_sandboxrunner_everything_else(server):
    client = sandboxrunner.SandboxRunner()
    with sandboxrunner.create_sandbox(environment={"A": "b"}, cpu_limit="1.0", disk_limit="64M") as sandbox:
        assert sandbox.id in [found.id for found in client.list_sandboxes()]
        assert sandbox.exec_command("mkdir d").success
        assert sandbox.exec_command("echo $A; pwd", working_dir="/workspace/d").stdout == "b\n/workspace/d\n"
        failed = sandbox.run_shell("echo no >&2; exit 3", environment={"X": "y"})
        assert (failed.is_error, failed.success, failed.exit_code, failed.stderr) == (True, False, 3, "no\n")
        assert sandbox.run_python("print(input(), open('a/b').read())", files={"a/b": "c"}, stdin="in").stdout == "in c\n"
        assert client.run_python(sandbox.id, "print(1)", working_dir="/workspace/d").stdout == "1\n"
        late = sandbox.run_python("while True: pass", timeout=1)
        assert late.timed_out and late.is_error
        sandbox.upload_file("bytes", base64.b64encode(b"\0\xff").decode(), encoding="base64")
        assert base64.b64decode(sandbox.download_file("bytes", encoding="base64")) == b"\0\xff"
        with pytest.raises(sandboxrunner.ExecutionError):
            sandbox.read_file("none")
    with pytest.raises(sandboxrunner.SandboxRunnerError):
        client.terminate_sandbox("00000000-0000-4000-8000-000000000000")
    with pytest.raises(sandboxrunner.SandboxRunnerError):
        client.create_sandbox(image="no-such-image:1")
    assert sandboxrunner.quick_python("print(6 * 7)").stdout == "42\n"


def test_sandboxrunner_errors(tmp_path):
    with pytest.raises(sandboxrunner.SandboxRunnerError, match="verified"):
        sandboxrunner.SandboxRunner(verify_ssl=False)
    with pytest.raises(sandboxrunner.APIError):
        sandboxrunner.SandboxRunner("http://127.0.0.1:1").list_sandboxes()


@needs_freezer
def test_sandboxrunner_a_stopped_sandbox(server):
    with sandboxrunner.create_sandbox() as sandbox:
        assert sandbox.run_shell("true").success
        server.request("POST", f"/api/v1/sandboxes/{sandbox.id}/stop", {})
        assert sandbox.status == sandboxrunner.SandboxStatus.STOPPED.value


# sandbox-runtime


def test_sandbox_runtime_guide(server, capsys):
    async def main():
        client = sandbox_runtime.SandboxClient()
        await client.create_session(session_id="test_session")
        code = "def handler(event):\n    return {'message': f\"Hello, {event['name']}!\"}\nprint(handler({'name': 'Sandbox'}))"
        result = await client.execute_code(session_id="test_session", code=code)
        print("Exit Code:", result.exit_code)
        print("Output:", result.stdout)
        await client.close_session(session_id="test_session")
        await client.close()

    asyncio.run(main())
    assert capsys.readouterr().out == "Exit Code: 0\nOutput: {'message': 'Hello, Sandbox!'}\n\n"


def test_sandbox_runtime_every_call(daemon, tmp_path):
    async def main():
        url = "http://%s:%d" % daemon.tcp_address()
        async with sandbox_runtime.SharedEnvSandbox("shared-1", servers=[url]) as box:
            assert await box.create_session(size="20M") == "shared-1"
            with pytest.raises(sandbox_runtime.SandboxError, match="Session already exists") as caught:
                await box.create_session()
            assert caught.value.context["status"] == 400 and '"context"' in str(caught.value)
            assert (await box.create_file("print(1 + 2)", "a.py", mode=0o755))["size"] == 12
            assert (await box.execute("python3", "a.py"))["stdout"] == "3\n"
            done = await box.execute_code("x = [1]\nimport sys; print(sys.argv[1])", args=["arg"], output_params=["x", "no"])
            assert (done["stdout"], done["returncode"], done["output_variables"]) == ("arg\n", 0, {"x": [1]})
            assert (await box.execute_code("exit 3", script_type="shell"))["returncode"] == 3
            data = bytes(range(256)) * 1000
            (tmp_path / "up").write_bytes(data)
            assert (await box.upload_file(tmp_path / "up", "d/ü p"))["size"] == len(data)
            assert await box.download_file("d/ü p", tmp_path / "new/down") is True
            assert (tmp_path / "new/down").read_bytes() == data
            assert "a.py" in [found["filename"] for found in await box.list_files()]
            assert any("ü p" in found["filename"] for found in await box.list_files(recursive=True))
            part = await box.read_file("a.py", offset=0, buffer_size=5)
            assert (part["content"], part["offset"], part["is_eof"]) == ("print", 5, False)
            assert (await box.get_status())["exists"] is True
            with pytest.raises(sandbox_runtime.SandboxError, match="not found|No such"):
                await box.download_file("none", tmp_path / "none")
            with pytest.raises(sandbox_runtime.SandboxError, match="File not found"):
                await box.upload_file(tmp_path / "none")
            answer = await box.download_from_efast(file_params=[{"docid": "d"}], efast_url="http://e", save_path="", token="t")
            assert answer["failed_count"] == 1
            assert await box.delete_session() is True

    asyncio.run(main())


def test_sandbox_runtime_servers():
    servers = ["http://a", "http://b", "http://c"]
    chosen = {sandbox_runtime.SharedEnvSandbox("same", servers=servers)._dialect.client._transport.endpoint.url for _ in range(5)}
    assert len(chosen) == 1
    turns = [sandbox_runtime._choose(servers, "round_robin", "x") for _ in range(3)]
    assert sorted(turns) == servers and sandbox_runtime._choose(servers, "random", "x") in servers
    with pytest.raises(ValueError, match="k8s"):
        sandbox_runtime.SharedEnvSandbox("x", server_selector_type="k8s")
    with pytest.raises(ValueError, match="session_id"):
        sandbox_runtime.SharedEnvSandbox("")


def test_sandbox_runtime_without_a_daemon():
    async def main():
        async with sandbox_runtime.SharedEnvSandbox("x", servers=["http://127.0.0.1:1"]) as box:
            with pytest.raises(sandbox_runtime.SandboxError, match="Network request failed"):
                await box.get_status()

    asyncio.run(main())


def test_compat_leaves_no_session(server):
    host.wait_until(lambda: not server.sandboxes("ready"), 10, "no session")
