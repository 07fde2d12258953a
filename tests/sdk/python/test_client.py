# SPDX-License-Identifier: Apache-2.0
"""Single executions, results and errors with the Python SDK."""

import asyncio
import base64
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import millibox
from millibox import errors

pytestmark = pytest.mark.phases("system")


def test_one_execution(sdk):
    result = sdk.run_code("print(6 * 7)")
    assert (result.ok, result.status, result.exit_code, result.text) == (True, "success", 0, "42\n")
    assert result.execution_id.startswith("exec_") and result.metrics["duration_ms"] > 0
    assert result.raise_for_status() is result


def test_everything_that_a_program_is_given(sdk):
    code = "import os, sys; print(sys.argv[1:], os.environ['WORD'], open('a/b').read(), sys.stdin.buffer.read())"
    result = sdk.run_code(code, args=["x"], env={"WORD": "w"}, files={"a/b": "text"}, stdin=b"\0\xff")
    assert result.stdout == "['x'] w text b'\\x00\\xff'\n"
    assert sdk.run_code("echo $0", language="shell").ok


def test_one_argument_alone_is_a_list(sdk):
    assert sdk.run_code("import sys; print(sys.argv[1:])", args="abc").stdout == "['abc']\n"


@pytest.mark.parametrize("given, text", [
    ({"stdin": 5}, "stdin: must be text or bytes, not int"),
    ({"files": {"a.bin": [1, 2]}}, "files.a.bin: must be text or bytes, not list"),
    ({"files": ["a.txt"]}, "files: must be a mapping of names to values, not list"),
    ({"env": ["A=1"]}, "env: must be a mapping of names to values, not list"),
    ({"options": "x"}, "options: must be a mapping of names to values, not str"),
], ids=lambda value: next(iter(value)) if isinstance(value, dict) else None)  # fmt: skip
def test_a_value_of_another_type_is_refused(sdk, given, text):
    with pytest.raises(TypeError, match=f"^{text}$"):
        sdk.run_code("1", **given)


def test_a_guessed_language(sdk):
    for code, language in (("import sys; from os import path; print(path.sep)", "python"), ("console.log(6 * 7)", "javascript"), ("6 * 7", "python")):
        assert sdk.run_code(code).raw["language"] == language


def test_language_options_and_file_names(sdk, box):
    options = next(row["options"] for row in sdk.languages() if row["name"] == "shell")
    assert "set_flags" in [option["name"] for option in options]
    for runs in (sdk, box):
        assert runs.run_code("false\necho on", file_name="a.sh").stdout == "on\n"
        strict = runs.run_code("false\necho on", language="shell", options={"set_flags": "-e"})
        assert (strict.stdout, strict.exit_code) == ("", 1)
        *_, end = runs.stream("echo $0; false; echo on", file_name="a.sh", options={"set_flags": "-e"})
        assert end.result.exit_code == 1 and end.result.raw["language"] == "shell"
        with pytest.raises(errors.InvalidParameterError, match="edition"):
            runs.run_code("true", language="shell", options={"edition": "2021"})
    started = box.start_code("echo on", file_name="a.sh", options={"set_flags": "-x"})
    assert started.wait().stderr == "+ echo on\n"


def test_limits(sdk):
    result = sdk.run_code("x = bytearray(200 << 20)", memory="64Mi")
    assert (result.status, result.limit) == ("failed", "memory")
    with pytest.raises(millibox.ProgramFailed, match="memory limit"):
        result.raise_for_status()


def test_a_program_that_takes_too_long(sdk):
    result = sdk.run_code("print('so far', flush=True)\nwhile True: pass", timeout=6)
    assert (result.status, result.limit, result.stdout) == ("timeout", "time", "so far\n")
    assert [denial["rule"] for denial in result.denials] == ["deadline"] and len(result.why) == 3, result.raw
    with pytest.raises(millibox.ProgramTimeout) as caught:
        result.raise_for_status()
    assert caught.value.result is result


def test_an_exception_is_data(sdk):
    result = sdk.run_code("def f(): return 1 / 0\nf()")
    assert (result.error.name, result.error.value) == ("ZeroDivisionError", "division by zero")
    assert "line 1, in f" in "\n".join(result.error.traceback)
    with pytest.raises(millibox.ProgramFailed, match="ZeroDivisionError: division by zero"):
        result.raise_for_status()


def test_values_figures_and_tables(sdk):
    value = sdk.run_code("{'a': [1, None]}")
    assert (value.json, value.value, value.text) == ({"a": [1, None]}, {"a": [1, None]}, "{'a': [1, None]}")
    figure = sdk.run_code("import matplotlib.pyplot as plt; print('drawn'); plt.plot([1]); plt.show()", timeout=60)
    assert figure.png.startswith(b"\x89PNG")
    shown = figure._repr_mimebundle_()
    assert base64.b64decode(shown["image/png"]) == figure.png and shown["text/plain"].startswith("drawn\n")
    table = sdk.run_code("import pandas; pandas.DataFrame({'a': [1]})", timeout=60)
    assert "<table" in table.html and "<table" in table._repr_mimebundle_()["text/html"]
    failed = sdk.run_code("print('x'); 1/0")._repr_mimebundle_()
    assert failed == {"text/plain": "x\nthe program's status is failed: ZeroDivisionError: division by zero"}


def test_callbacks_while_it_runs(sdk):
    seen = []
    result = sdk.run_code("import sys; print('a', flush=True); print('b', file=sys.stderr, flush=True); 7",
                          on_stdout=lambda text: seen.append(("out", text)), on_stderr=lambda text: seen.append(("err", text)),
                          on_result=lambda bundle: seen.append(("result", bundle["text/plain"])))
    assert sorted(seen) == [("err", "b\n"), ("out", "a\n"), ("result", "7")]
    assert (result.stdout, result.stderr, result.json) == ("a\n", "b\n", 7)


def test_a_stream(sdk):
    events = list(sdk.stream("import sys; sys.stdout.buffer.write(b'\\xff'); sys.stdout.flush(); 7"))
    assert [event.kind for event in events] == ["start", "stdout", "result", "end"]
    assert events[1].data == b"\xff" and events[1].text == "\ufffd"
    assert events[2].bundle == {"text/plain": "7"} and events[3].result.json == 7


def test_leaving_a_stream_ends_the_program(sdk, daemon):
    for event in sdk.stream("print(1, flush=True)\nimport time; time.sleep(600)", timeout=600):
        if event.kind == "stdout":
            break
    del event
    daemon.settle()


def test_coroutine_functions_are_callbacks(kind, sdk):
    if not kind.is_async:
        return
    seen = []

    async def on_stdout(text):
        seen.append(text)

    sdk.run_code("print(1)", on_stdout=on_stdout)
    assert seen == ["1\n"]


def test_handlers(sdk):
    code = "def handler(event, context): return {'sum': sum(event['of']), 'name': context.function_name}"
    assert sdk.call(code, {"of": [1, 2]}, context={"function_name": "adder"}) == {"sum": 3, "name": "adder"}
    with pytest.raises(millibox.ProgramFailed, match="KeyError"):
        sdk.call(code, {})


def test_the_rest_of_the_daemon(sdk):
    assert sdk.health()["status"] == "healthy"
    assert "python-basic" in [template["id"] for template in sdk.templates()]
    assert sdk.policies() and "tenant" in sdk.identity()
    assert sdk.explain(code="1", resources={"memory": "64Mi"})["allowed"] is True
    assert isinstance(sdk.pools(), list)
    assert sdk.request("GET", "/api/v1/runtimes")["runtimes"]


def test_secrets(sdk):
    made = sdk.set_secret("token", "a-secret-value", ["api.example.com"], header="X-Key", format="{value}")
    assert made["hosts"] == ["https://api.example.com:443"] and "a-secret-value" not in str(made)
    assert [found["name"] for found in sdk.secrets()] == ["token"]
    with pytest.raises(errors.ApiError, match="secret"):
        sdk.run_code("1", secrets=["token"])  # no policy allows it
    sdk.delete_secret("token")
    assert sdk.secrets() == []


def test_refusals_have_types(sdk):
    with pytest.raises(errors.InvalidParameterError) as caught:
        sdk.run_code("1", memory="lots")
    error = caught.value
    assert (error.status, error.field, error.code) == (400, "resources.memory", "Sandbox.InvalidParameter")
    assert error.request_id and error.solution and "resources.memory" in str(error)
    with pytest.raises(errors.InvalidParameterError, match="no template has"):
        sdk.run_code("1", template="none")
    with pytest.raises(errors.NotFoundError):
        sdk.execution("exec_0").info()
    with pytest.raises(errors.UnknownFieldError, match="codes"):
        sdk.request("POST", "/api/v1/execute", {"codes": "1"})


def test_over_tcp(kind, daemon):
    with kind.Client("http://%s:%d" % daemon.tcp_address()) as client:
        assert client.run_code("print(1)").text == "1\n"


def test_no_daemon(kind, tmp_path):
    with kind.Client(socket=str(tmp_path / "sock"), retries=1) as client:
        with pytest.raises(millibox.ConnectError, match="could not reach the daemon.*millibox up -d.*starts one"):
            client.health()


@pytest.mark.parametrize("options, reason", [
    ({"url": "localhost:8000"}, "not a URL"),
    ({"url": "http://a", "socket": "/b"}, "not both"),
    ({"api_key": "a\r\nb: c"}, "valid key"),
    ({"socket": "/" + "x" * 120}, "longer than"),
    ({"url": "https://a", "ca_file": "/nonexistent"}, "certificates"),
])
def test_wrong_settings(kind, options, reason):
    with pytest.raises(millibox.MilliboxError, match=reason):
        kind.Client(**options)


def test_settings_of_the_environment(kind, daemon, monkeypatch, tmp_path):
    (tmp_path / "key").write_text("mb_key\n")
    monkeypatch.setenv("MILLIBOX_API_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("MILLIBOX_SOCKET", daemon.socket)
    with kind.Client() as client:
        assert client._transport.endpoint.api_key == "mb_key"
        assert "mb_key" not in repr(client._transport.endpoint) and client._transport.endpoint.socket == daemon.socket


def test_keys(kind, make_daemon):
    served = make_daemon().start()
    with kind.Client(socket=served.socket) as client:
        key = client.request("POST", "/api/v1/keys", {"tenant": "default", "scopes": ["execute"]})["key"]
    with kind.Client(socket=served.socket, api_key=key) as client:
        assert client.run_code("print(1)").ok
    with kind.Client(socket=served.socket, api_key=key[:-1] + ("a" if key[-1] != "a" else "b")) as client:
        with pytest.raises(errors.UnauthorizedError):
            client.run_code("1")


class Scripted:
    """A server that gives each connection the next answer of a list, and counts requests. None: close without an answer."""

    def __init__(self, path, answers):
        self.requests, self.answers = [], answers
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        for answer in self.answers:
            connection, _ = self.listener.accept()
            with connection:
                self.requests.append(self.read_request(connection))
                if answer == "wait":
                    connection.recv(1)
                elif answer:
                    connection.sendall(answer)

    @staticmethod
    def read_request(connection):
        """Its method, when all of it is here."""
        data = b""
        while b"\r\n\r\n" not in data or (data.startswith(b"POST") and not data.endswith(b"{}")):
            piece = connection.recv(65536)
            assert piece, "the client gave up"
            data += piece
        return data.split(b" ")[0].decode()

    def close(self):
        self.thread.join(10)
        self.listener.close()


def answer_of(status, body, more=""):
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n{body}".encode()


FINE = answer_of(200, '{"a": 1}')
#: The daemon has begun nothing, and says when to come again.
BUSY = answer_of(429, '{"error_code": "Sandbox.TooManyRequests", "retry_after": 0}', "Retry-After: 0\r\nShould-Retry: true\r\n")
FULL = answer_of(503, '{"error_code": "Sandbox.Unavailable", "retry_after": 0}', "Retry-After: 0\r\nShould-Retry: true\r\n")
#: Time alone changes nothing, or something has begun.
NEVER = answer_of(429, '{"error_code": "Sandbox.QuotaExceeded", "retry_after": null}', "Should-Retry: false\r\n")
LOST = answer_of(503, '{"error_code": "Sandbox.AgentLost", "retry_after": null}', "Should-Retry: false\r\n")
LATE = answer_of(429, '{"error_code": "Sandbox.TooManyRequests", "retry_after": 3600}', "Retry-After: 3600\r\nShould-Retry: true\r\n")
FAILED = answer_of(500, '{"error_code": "Sandbox.InternalError"}')


@pytest.mark.parametrize("method, answers, expected", [
    ("GET", [None, FINE], {"a": 1}),
    ("DELETE", [None, None, FINE], {"a": 1}),
    ("GET", [FINE[:-3], FINE], {"a": 1}),          # the body broke
    ("POST", [FINE[:-3]], millibox.ConnectionLost),
    ("POST", [None], millibox.ConnectionLost),     # the daemon may have served it
    ("POST", [BUSY] * 9 + [FULL, FINE], {"a": 1}), # as often as the time allows
    ("GET", [FULL, None, BUSY, FINE], {"a": 1}),
    ("POST", [NEVER], errors.QuotaExceededError),
    ("GET", [LOST], errors.AgentLostError),
    ("POST", [LATE], errors.TooManyRequestsError), # after the time that the caller gives it
    ("GET", [FAILED], errors.InternalError),
    ("GET", [None] * 4, millibox.ConnectionLost),
    ("GET", [answer_of(502, "<html>a proxy's page</html>")], millibox.ApiError),
    ("GET", [answer_of(418, '{"error_code": "Sandbox.Newer", "error_detail": "d"}')], millibox.ApiError),
])
def test_what_is_sent_again(kind, tmp_path, method, answers, expected):
    path = os.path.join(tmp_path, "sock")
    server = Scripted(path, answers)
    with kind.Client(socket=path) as client:
        if isinstance(expected, dict):
            assert client.request(method, "/x", {} if method == "POST" else None) == expected
        else:
            with pytest.raises(expected):
                client.request(method, "/x", {} if method == "POST" else None)
    server.close()
    assert server.requests == [method] * len(answers)


def test_a_daemon_that_does_not_answer(kind, tmp_path):
    path = os.path.join(tmp_path, "sock")
    server = Scripted(path, ["wait"])
    with kind.Client(socket=path, timeout=0.2, retries=0) as client:
        with pytest.raises(millibox.ConnectionLost, match="in time"):
            client.health()
    server.close()


class Counting:
    """A server that answers when @together requests are there, or none came for a while; it counts them."""

    def __init__(self, path, together):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        self.lock, self.now, self.most = threading.Condition(), 0, 0
        self.together = together
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.threads.append(threading.Thread(target=self.serve, args=[connection]))
            self.threads[-1].start()

    def serve(self, connection):
        with connection:
            Scripted.read_request(connection)
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
                self.lock.notify_all()
                self.lock.wait_for(lambda: self.most >= self.together, 10)
                self.now -= 1
            connection.sendall(FINE)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(10)


def all_at_once(path, count, **options):
    """The answers of so many calls of one client at the same time: of its threads, and of a loop."""

    async def gather():
        async with millibox.AsyncClient(socket=path, **options) as client:
            return await asyncio.gather(*(client.request("GET", "/x") for _ in range(count)))

    with millibox.Client(socket=path, **options) as client, ThreadPoolExecutor(count) as pool:
        yield list(pool.map(lambda _: client.request("GET", "/x"), range(count)))
    yield asyncio.run(gather())


@pytest.mark.parametrize("connections, most", [(1, 1), (12, 3), (80, 20)])
def test_calls_wait_for_their_turn(tmp_path, connections, most):
    path = os.path.join(tmp_path, "sock")
    server = Counting(path, most)
    for answers in all_at_once(path, 30, connections=connections):
        assert answers == [{"a": 1}] * 30 and server.most == most
    server.close()


def test_a_client_serves_one_loop_after_the_other(daemon):
    client = millibox.AsyncClient(socket=daemon.socket, connections=4)

    async def work():
        answers = await asyncio.gather(*(client.run_code(f"print({i})") for i in range(12)))
        await client.aclose()
        return [answer.stdout for answer in answers]

    for _ in range(2):
        assert asyncio.run(work()) == [f"{i}\n" for i in range(12)]


def test_the_number_of_connections(kind):
    with pytest.raises(ValueError, match="connections"):
        kind.Client(socket="/x", connections=0)
