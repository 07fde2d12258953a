# SPDX-License-Identifier: Apache-2.0
"""POST /api/v1/execute through every layer, and its result object."""

import base64
import json
import re
import subprocess
import threading
import time

import pytest
from support import host
from support.daemon import BUILD
from support.mcp import Mcp
from support.sessions import Session

pytestmark = pytest.mark.phases("system", "user", "subid")

RESULT_FIELDS = {
    "execution_id", "status", "exit_code", "signal", "language", "stdout", "stderr", "result", "results", "error", "metrics",
    "limit", "denials", "why", "artifacts", "isolation",
}  # fmt: skip
METRIC_FIELDS = {"duration_ms", "start_ms", "queue_ms", "cpu_time_ms", "memory_peak_mb", "processes_peak", "stdout_bytes"}
COUNTED = {"io_read_bytes", "io_write_bytes"}  # where the host counts them, if there were any


@pytest.mark.smoke
def test_result_object_is_complete(client):
    r = client.python("print(42)")
    assert set(r) == RESULT_FIELDS
    assert set(r["metrics"]) - COUNTED == METRIC_FIELDS
    assert re.fullmatch(r"exec_[0-9]{8}_[a-z0-9]{8}", r["execution_id"])
    assert (r["status"], r["exit_code"], r["signal"], r["limit"]) == ("success", 0, None, None)
    assert (r["stdout"], r["stderr"]) == ("42\n", "")
    assert r["metrics"]["stdout_bytes"] == 3
    assert r["metrics"]["duration_ms"] > 0
    assert r["isolation"]["engine"] == "native"
    assert {"user", "pid", "mnt", "net", "ipc", "uts", "seccomp"} <= set(r["isolation"]["layers"])
    assert r["artifacts"] == []


def of_names(value):
    """Names that mean the same: none may be in an answer twice."""
    names = set(value) | set(value.get("metrics", ()))
    return [pair for pair in (("duration_ms", "execution_time"), ("memory_peak_mb", "peak_memory_mb"), ("error_detail", "message"),
                              ("error_detail", "detail"), ("description", "error"), ("sha256", "checksum")) if set(pair) <= names]


@pytest.mark.smoke
def test_a_plain_result_is_brief(client):
    """And ends with a newline: a terminal shows its prompt below."""
    body = {"language": "python", "code": "print(42)"}
    answer = client.post("/api/v1/execute", body)
    isolation = answer.json["isolation"]
    assert list(isolation) == ["engine", "grade", "mode", "missing"], isolation
    host_lacks = len(json.dumps(isolation["missing"], separators=(",", ":"))) - len("[]")
    assert len(answer.body) - host_lacks - len(isolation["mode"]) + len("strict") <= 500, answer
    assert answer.body.endswith(b"}\n") and answer.body.count(b"\n") == 1
    assert answer.json == client.post("/api/v1/execute", {**body, "receipt": "none"}).json | {
        name: answer.json[name] for name in ("execution_id", "metrics")}
    assert not of_names(answer.json)
    whole = client.post("/api/v1/execute", {**body, "receipt": "plain"})
    assert len(whole.body) > len(answer.body) + 400 and set(isolation) < set(whole.json["isolation"])
    assert "receipt" not in whole.json
    kept = client.post("/api/v1/execute", {**body, "code": "open('x', 'w').write('y')"}).json
    assert set(kept["artifacts"][0]) == {"path", "size", "mime_type", "type", "created_at", "sha256"}


def test_a_sessions_result_says_as_much_as_was_requested(client):
    """Also when it is read again."""
    session = Session(client, mode="persistent")
    for form, whole in (("none", False), ("plain", True), ("signed", True)):
        result = session.run("42", receipt=form)
        again = client.get(f"/api/v1/executions/{result['execution_id']}").json
        assert again["isolation"] == result["isolation"] and ("receipt" in again) == (form == "signed")
        assert ("layers" in result["isolation"]) == whole, form
    session.delete()


def test_errors_say_each_thing_once_on_our_own_paths(client):
    """Clients of the control plane read other names, on its paths."""
    own = client.post("/api/v1/execute", {"language": "python", "code": "1", "timeout": -1})
    assert own.status == 400 and not of_names(own.json) and own.body.endswith(b"}\n"), own
    shared = client.get("/api/v1/sessions/nobody")
    assert shared.status == 404 and {"error", "message", "detail", "error_detail"} <= set(shared.json), shared


@pytest.mark.smoke
def test_shell_runs(client):
    r = client.shell("echo out; echo err >&2; exit 3")
    assert (r["status"], r["exit_code"], r["stdout"], r["stderr"]) == ("failed", 3, "out\n", "err\n")


@pytest.mark.parametrize("alias,code", [("python3", "print(1)"), ("bash", "echo 1"), ("sh", "echo 1")])
def test_aliases_name_the_same_language(client, alias, code):
    assert client.execute(alias, code)["stdout"] == "1\n"


@pytest.mark.smoke
def test_exit_codes_are_the_programs(client):
    for code in (0, 1, 2, 42, 255):
        r = client.python(f"import sys; sys.exit({code})")
        assert r["exit_code"] == code
        assert r["status"] == ("success" if code == 0 else "failed")


def test_signal_is_reported(client):
    r = client.shell("kill -SEGV $$")
    assert (r["status"], r["signal"], r["exit_code"]) == ("failed", 11, 139)


def test_exception_is_structured(client):
    r = client.python("def f():\n    return 1/0\nf()\n")
    assert r["status"] == "failed" and r["exit_code"] == 1
    assert r["error"]["name"] == "ZeroDivisionError"
    assert r["error"]["value"] == "division by zero"
    assert "ZeroDivisionError" in r["stderr"] and "return 1/0" in r["stderr"]
    assert not any("/opt/millibox" in line for line in r["error"]["traceback"])


def test_last_expression_is_the_result(client):
    r = client.python("x = 20\nx * 2 + 2")
    assert r["result"] == 42
    assert r["results"][0]["text/plain"] == "42"
    assert r["stdout"] == ""


def test_stdin_args_env_and_files_reach_the_program(client):
    r = client.python(
        "import os, sys\nprint(sys.stdin.read(), sys.argv[1:], os.environ['COLOUR'], open('d/a.txt').read(),"
        " open('b.bin','rb').read())",
        stdin="line\n",
        args=["-x", "two words"],
        env_vars={"COLOUR": "blue"},
        files={"d/a.txt": "text", "b.bin": {"base64": base64.b64encode(b"\x00\xff").decode()}},
    )
    assert r["stdout"] == "line\n ['-x', 'two words'] blue text b'\\x00\\xff'\n"


def test_a_shell_gets_its_user_from_the_password_file(client):
    """Bash need not read the file itself: the same answer, a tenth of a millisecond earlier."""
    r = client.shell('echo "$SHELL"; sed -n "s/^user:.*://p" /etc/passwd')
    assert r["stdout"] == "/bin/sh\n/bin/sh\n"


def test_stdin_is_empty_when_not_given(client):
    assert client.shell("cat | wc -c", timeout=30)["stdout"].strip() == "0"


def test_large_stdin_arrives_complete(client):
    text = "0123456789abcdef" * (64 * 1024 * 3)
    r = client.shell("wc -c; sleep 0", stdin=text)
    assert r["stdout"].strip() == str(len(text))


def test_unread_stdin_does_no_harm(client):
    r = client.shell("exec true", stdin="x" * 3_000_000)
    assert r["status"] == "success"


def test_output_is_always_valid_text(client):
    r = client.python("import os; os.write(1, b'a\\xff\\xe2\\x82b\\x00c'); os.write(2, bytes(range(128,160)))")
    assert r["stdout"] == "a\ufffd\ufffdb\x00c"
    assert r["metrics"]["stdout_bytes"] == 7
    assert set(r["stderr"]) == {"\ufffd"}


def test_unicode_comes_back_as_sent(client):
    text = "héllo ∀ 😀"
    assert client.python(f"print({text!r})")["stdout"] == text + "\n"


def test_stream_shows_output_while_the_program_runs(client):
    events = client.stream("python", "import sys\nprint('first', flush=True)\nsys.stdin.readline()\nimport time; time.sleep(3)\nprint('last')")
    seen = []
    arrived = {}
    for event in events:
        seen.append(event["event"])
        if event["event"] == "stdout":
            arrived[event["data"]] = time.monotonic()
        if event["event"] == "end":
            assert event["result"]["stdout"] == "first\nlast\n"
    assert seen[0] == "start" and seen[-1] == "end"
    assert arrived["last\n"] - arrived["first\n"] > 0.5


def test_stream_as_server_sent_events(daemon):
    with daemon.client() as c:
        c.connection.request(
            "POST", "/api/v1/execute",
            body=json.dumps({"language": "shell", "code": "echo hi"}),
            headers={"Content-Type": "application/json", "Accept": "text/event-stream"},
        )  # fmt: skip
        response = c.connection.getresponse()
        assert response.headers["Content-Type"].startswith("text/event-stream")
        text = response.read().decode()
    names = re.findall(r"^event: (\w+)$", text, re.M)
    assert names[0] == "start" and "stdout" in names and names[-1] == "end"


def test_stream_never_cuts_a_character(client):
    code = "import os, time\nfor b in '€'.encode()*3:\n    os.write(1, bytes([b])); time.sleep(0.01)"
    data = "".join(e["data"] for e in client.stream("python", code) if e["event"] == "stdout")
    assert data == "€€€"


@pytest.mark.alone
def test_many_concurrent_runs_are_correct(daemon):
    wrong = []

    def work(i):
        with daemon.client() as c:
            for k in range(5):
                r = c.python(f"print({i} * 1000 + {k})")
                if r["stdout"] != f"{i * 1000 + k}\n":
                    wrong.append(r)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_background_child_neither_delays_nor_survives(client):
    start = time.monotonic()
    r = client.shell("setsid sleep 300 & (sleep 301 &) ; echo done", timeout=60)
    assert r["stdout"] == "done\n" and r["status"] == "success"
    assert time.monotonic() - start < 10 * host.PATIENCE


def test_a_disconnected_client_ends_its_run(daemon):
    c = daemon.client()
    c.connection.request(
        "POST", "/api/v1/execute",
        body=json.dumps({"language": "shell", "code": "sleep 3000", "timeout": 3600}),
        headers={"Content-Type": "application/json"},
    )  # fmt: skip
    host.wait_until(lambda: any(host.comm(p) == "sleep" for p in daemon.box_pids()), 10, "running")
    c.connection.sock.close()
    c.close()
    daemon.settle()


#: What Matplotlib logs if making its cache of fonts takes more than five seconds, as on a busy host.
FONTS = "Matplotlib is building the font cache; this may take a moment.\n"


def test_figures_are_returned_unrequested(client):
    r = client.python("import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()\n5", timeout=60, resources={"memory": "1Gi"})
    assert (r["status"], r["result"], r["stderr"].replace(FONTS, "")) == ("success", 5, ""), r
    assert r["results"][-1] == {"text/plain": "5"}
    pictures = [base64.b64decode(b["image/png"]) for b in r["results"][:-1]]
    assert len(pictures) == 1 and pictures[0].startswith(b"\x89PNG\r\n\x1a\n") and len(pictures[0]) > 2000
    # None of them is the result value.
    r = client.python("import matplotlib.pyplot as plt\nfigure = plt.figure()\nNone", timeout=60, resources={"memory": "1Gi"})
    assert r["result"] is None and [sorted(b) for b in r["results"]] == [["image/png", "text/plain"]]


SHOWN = """class Table:
    def _repr_html_(self): return '<b>t</b>'
    def __repr__(self): return 'a table'
display({'a': 1}, Table())
"""


@pytest.mark.parametrize("end, last", [("", []), ("7", [{"text/plain": "7"}]), ("import sys; sys.exit(0)", []), ("1/0", [])])
def test_what_a_program_displays(client, end, last):
    r = client.python(SHOWN + end)
    assert r["results"] == [{"text/plain": "{'a': 1}", "application/json": '{"a":1}'}, {"text/plain": "a table", "text/html": "<b>t</b>"}, *last], r
    assert r["status"] == ("failed" if end == "1/0" else "success") and r["result"] == (7 if end == "7" else None), r


def test_what_a_handler_displays(client):
    r = client.post("/api/v1/execute", {"handler_code": "def handler(event):\n    display('shown')\n    return event['x']", "event": {"x": 7}}).json
    assert (r["result"], r["results"]) == (7, [{"text/plain": "'shown'"}]), r


def test_what_does_not_fit_is_printed(client):
    """As text: nothing that a program displays is lost."""
    r = client.python("for n in range(250): display(n)")
    assert len(r["results"]) == 200 and r["stdout"] == "".join(f"{n}\n" for n in range(200, 250)), r
    r = client.python("class Big:\n    def _repr_html_(self): return 'x' * 500_000\n    def __repr__(self): return 'big'\nfor _ in range(4): display(Big())\n'the value'")
    assert [len(b.get("text/html", "")) for b in r["results"]] == [500_000, 500_000, 0] and r["stdout"] == "big\nbig\n" and r["result"] == "the value", r["stdout"]


@pytest.mark.parametrize("instead", ["None", "{}", "5"])
def test_a_program_may_break_sys_modules(client, instead):
    """The runner's search for figures after the run does not depend on it."""
    r = client.python(f"import sys\nprint(6 * 7)\nsys.modules = {instead}\n")
    assert (r["exit_code"], r["stdout"], r["error"]) == (0, "42\n", None), r


@pytest.mark.parametrize(
    ("code", "language"),
    [("x=[0]*3", "python"), ("a=5\nb=6\na*b", "python"), ('{"a":1}', "python"), ('raise ValueError("x")', "python"),
     ("echo $((6*7))", "shell"), ("ls -l", "shell"), ("#!/bin/sh\nx=1", "shell")],
)  # fmt: skip
def test_code_without_a_language_is_python_unless_another_is_certain(client, code, language):
    """One decision for REST, MCP and the command line; the result names the language that ran."""
    assert client.post("/api/v1/execute", {"code": code}).json["language"] == language
    with Mcp(client.address) as mcp:
        assert mcp.call("execute_code", code=code)["structuredContent"]["language"] == language
    shown = subprocess.run([BUILD / "millibox", "run", "--json", "--socket", client.address, "-c", code], capture_output=True, check=False)
    assert json.loads(shown.stdout)["language"] == language
