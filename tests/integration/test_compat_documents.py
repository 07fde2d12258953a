# SPDX-License-Identifier: Apache-2.0
"""Every request in the documents of the systems that Millibox replaces, as it stands there, against a daemon. What is replaced: host
and port, ids that the documents invented, paths of local files. The documents are needed: see support/documents.py.

A row of OTHERWISE is a call that does not end as documented, with the words of the answer that tell why."""

import json
import os
import re
import socket
import subprocess
import sys

import pytest

from support import documents
from support.daemon import BUILD, ROOT
from support.documents import PLACE, path_of

pytestmark = [pytest.mark.phases("system"),
              pytest.mark.skipif(not PLACE, reason="MILLIBOX_UPSTREAM names no directory with the documents of the other systems")]

RUNNER = "mcp-server/"
TOOLS = ["docs/api/tools/create_sandbox.md", "docs/api/tools/run_python.md", "docs/api/tools/run_javascript.md", "docs/api/README.md",
         "examples/language_examples.json"]
CURL = [RUNNER + "docs/guides/quick-start.md", RUNNER + "docs/getting-started.md", "sandbox/README.md", "sandbox/docs/api/README.md",
        "sandbox/specs/001-control-plane/quickstart.md"]
MESSAGES = [RUNNER + "docs/guides/quick-start.md", RUNNER + "docs/getting-started.md"]
COLLECTION = "docs/examples/postman_collection.json"
TUTORIALS = ["docs/tutorials/data-science-workflow.md", "docs/tutorials/web-development.md"]
QUICKSTART = "sandbox/specs/001-control-plane/quickstart.md"
SHARED = "sandbox/sandbox-runtime/examples/shared_env_example.py"
USAGE = "codomyrmex/code_execution_sandbox/USAGE_EXAMPLES.md"
TUTORIAL = "codomyrmex/code_execution_sandbox/docs/tutorials/execute_code_tutorial.md"

#: Hosts of the registries, by the name of the rules in the settings.
REGISTRIES = {"pypi": ["pypi.org", "files.pythonhosted.org"], "npm": ["registry.npmjs.org"],
              "crates": ["index.crates.io", "static.crates.io"], "golang": ["proxy.golang.org", "sum.golang.org"]}

NO_NETWORK = "Name or service not known|ENOTFOUND|EAI_AGAIN|name resolution"
#: (document, number of the call): why it ends otherwise, words of its answer.
OTHERWISE = {
    ("docs/api/tools/run_python.md", 2): ("boxes have no network", NO_NETWORK),
    ("docs/api/tools/run_javascript.md", 1): ("express 5, today's version, has no _router", "reading 'stack'"),
    ("docs/api/tools/run_javascript.md", 2): ("boxes have no network", NO_NETWORK),
    ("examples/language_examples.json", 2): ("boxes have no network", NO_NETWORK),
    ("examples/language_examples.json", 10): ("the program uses fmt and does not import it", "undefined: fmt"),
    ("examples/language_examples.json", 12): ("the list has one string with two packages and stray quotes", "must be the name of a package"),
    ("examples/language_examples.json", 17): ("nuget is not among the test's managers", "packages.managers lacks nuget"),
    ("examples/language_examples.json", 19): ("nothing installs packages of the system into a sandbox", "it has no package manager"),
}


def reachable(host):
    """Rules for a registry, with its address where that is not public. Return: [] if it does not answer."""
    try:
        address = socket.getaddrinfo(host, 443, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
        socket.create_connection((address, 443), 5).close()
    except OSError:
        return []
    return [host, f"{address}/32"]


@pytest.fixture(scope="module")
def served():
    """A daemon that may install from the registries that answer."""
    from support.daemon import Daemon

    egress = {name: sorted({rule for host in hosts for rule in reachable(host)}) for name, hosts in REGISTRIES.items()}
    daemon = Daemon(tcp=True, config=f"egress: {json.dumps({name: rules for name, rules in egress.items() if rules})}\n",
                    env={"MILLIBOX_PACKAGES_MANAGERS": "pip,npm,cargo,go"})
    daemon.registries = {name for name, rules in egress.items() if rules}
    try:
        yield daemon.start()
        assert daemon.stop() == 0, daemon.log()
    finally:
        daemon.remove()


@pytest.fixture
def client(served):
    with served.client() as made:
        made.connection.timeout = 600
        yield made


@pytest.fixture
def box(client):
    """As large as the packages of the examples need."""
    made = client.post("/mcp/tools/create_sandbox", {"image": "python:3.11", "memory_limit": "4G"}).json["metadata"]["sandbox_id"]
    yield made
    client.post("/mcp/tools/terminate_sandbox", {"sandbox_id": made})


def cases(names, find):
    return [pytest.param(name, number, id=f"{name.rsplit('/', 1)[-1]}-{number}")
            for name in names for number in range(len(find(name)) if PLACE else 1)]


def needs_registry(served, tool, arguments):
    name = {"run_javascript": "npm", "run_typescript": "npm", "run_go": "golang", "run_rust": "crates", "run_python": "pypi"}.get(tool)
    if arguments.get("packages") and name and name not in served.registries:
        pytest.skip(f"the registry {REGISTRIES[name][0]} does not answer")


def judge(answer, key, otherwise):
    why, words = otherwise.get(key, (None, None))
    assert answer["is_error"] is bool(why), (why, answer)
    assert not words or re.search(words, answer["text"]), (why, answer["text"][-2000:])


def forget(client, text):
    """Delete the sandboxes that an answer names."""
    for found in set(re.findall(r"sess_\w+", text)):
        client.request("DELETE", f"/api/v1/sessions/{found}")


@pytest.mark.parametrize("name, number", cases(TOOLS, lambda name: documents.tool_calls(RUNNER + name)))
def test_tools(served, client, box, name, number):
    tool, arguments = documents.tool_calls(RUNNER + name)[number]
    needs_registry(served, tool, arguments)
    if "sandbox_id" in arguments:
        arguments["sandbox_id"] = box
    answer = client.post(f"/mcp/tools/{tool}", arguments)
    assert answer.status == 200, answer
    judge(answer.json, (name, number), OTHERWISE)
    if tool == "create_sandbox":
        forget(client, answer.body.decode())


@pytest.fixture
def control(client, tmp_path):
    """What the documents of the control plane refer to. Return: replacements."""
    session = client.post("/api/v1/sessions", {"template_id": "python-basic", "mode": "persistent"}).json
    path = f"/api/v1/sessions/{session['session_id']}"
    run = client.post(f"{path}/execute", {"code": "print(1)", "language": "python", "wait": True}).json
    (tmp_path / "main.py").write_text("print(1)\n")
    (tmp_path / "input.csv").write_text("a,b\n")
    for name in ("output/result.csv", "src/old.py"):
        assert client.request("PUT", f"{path}/files/{name}", body=b"a,b\n").status < 300
    container = client.get(path).json["container_id"]
    yield {"sess_abc123def4567890": session["session_id"], "{session_id}": session["session_id"], "a1b2c3d4e5f6": container,
           "exec_20260106_abc12345": run["execution_id"], "/path/to/input.csv": str(tmp_path / "input.csv"), "@main.py": f"@{tmp_path}/main.py"}
    client.request("DELETE", path)


def run_shell(served, tmp_path, text, timeout, env=None):
    """Run it as it stands, with the daemon's address."""
    address = "%s:%d" % served.tcp_address()
    env = {**os.environ, "API_BASE": f"http://{address}/api/v1", "API_TOKEN": "your-access-token-here", **(env or {})}
    return subprocess.run(["bash", "-c", re.sub(r"localhost:(8000|8080)", address, text)], capture_output=True, text=True, cwd=tmp_path,
                          env=env, timeout=timeout)


def shell(served, tmp_path, text, timeout=120):
    """Return: what it printed."""
    done = run_shell(served, tmp_path, text, timeout)
    assert done.returncode == 0, done
    return done.stdout


#: (document, number): words of an answer that is not as documented.
CURL_OTHERWISE = {
    ("sandbox/docs/api/README.md", 0): "python3.11-datascience",  # the later version has no such template either
    (RUNNER + "docs/getting-started.md", 3): NO_NETWORK,
}


@pytest.mark.parametrize("name, number", cases(CURL, documents.curl_commands))
def test_curl(served, client, box, control, tmp_path, name, number):
    command = documents.curl_commands(name)[number]
    for word, real in {**control, "YOUR_SANDBOX_ID": box}.items():
        command = command.replace(word, real)
    if '"packages"' in command:
        needs_registry(served, re.search(r"/(run_\w+)", command)[1], {"packages": [1]})
    printed = shell(served, tmp_path, command.rstrip() + " -s -w '\\n%{http_code}'", timeout=300)
    body, status = printed.rsplit("\n", 1)
    words = CURL_OTHERWISE.get((name, number))
    failed = int(status) >= 300 or '"is_error":true' in body.replace(" ", "")
    assert failed is bool(words) and re.search(words or "", body), printed[-3000:]
    if "create_sandbox" in command:
        forget(client, body)


NESTED_QUOTES = "SyntaxError: f-string"
#: (document, number of the request): why it ends otherwise, words of its answer.
COLLECTION_OTHERWISE = {
    (COLLECTION, 3): ("quotes nested in an f-string are Python 3.12", NESTED_QUOTES),
    (COLLECTION, 5): ("boxes have no network", NO_NETWORK),
    (COLLECTION, 7): ("express 5, today's version, has no _router", "reading 'stack'"),
}


@pytest.mark.parametrize("name, number", cases([COLLECTION], lambda name: documents.collection(RUNNER + name)))
def test_collection(served, client, box, name, number):
    """With the collection's own checks: `text` and `is_error` in every answer, a new sandbox has an id and is running. The daemon has no
    keys, and the collection sends one all the same."""
    method, path, text = documents.collection(RUNNER + name)[number]
    body = json.loads(text.replace("{{sandbox_id}}", box))
    tool = path.rsplit("/", 1)[-1]
    needs_registry(served, tool, body)
    if tool in ("read_file", "download_file"):  # what the request before it uploads
        client.post("/mcp/tools/upload_file", {"sandbox_id": box, "path": body["path"], "content": "x"})
    answer = client.request(method, path, body, headers={"X-API-Key": "your-api-key-here"})
    assert answer.status == 200 and {"text", "is_error"} <= set(answer.json), answer
    judge(answer.json, (name, number), COLLECTION_OTHERWISE)
    if tool == "create_sandbox":
        assert answer.json["metadata"]["status"] == "running"
        forget(client, answer.json["metadata"]["sandbox_id"])


#: A refusal, a failed program, or what the tutorials' own programs print of a failure.
FAILED = re.compile(r'^status [^2]|"is_error": ?true|❌|Health check failed', re.M)
#: (document, number of the step): words of its output. The steps that follow a failed one fail with it.
STEPS_OTHERWISE = {
    **{(TUTORIALS[0], number): NESTED_QUOTES for number in (2, 4, 5, 7)},
    **{(TUTORIALS[0], number): f"No such file or directory: '/workspace/{name}.csv'"
       for number, name in ((3, "sales_data"), (6, "sales_data_cleaned"), (8, "sales_data_cleaned"))},
    (TUTORIALS[0], 9): "FILE_NOT_FOUND",  # files of the steps above
    (TUTORIALS[1], 10): "EXECUTION_TIMEOUT",  # npm waits for a registry: boxes have no network
    (TUTORIALS[1], 11): "Health check failed: .*ECONNREFUSED",  # the server lacks the modules of the step before
    (TUTORIALS[1], 22): "syntax error near unexpected token",  # an apostrophe ends the shell's string
    (TUTORIALS[1], 23): "Backend not responding: .*ECONNREFUSED",
    (TUTORIALS[1], 28): "The body is not valid JSON",  # as above: curl gets a part of the body
    (TUTORIALS[1], 29): "FILE_NOT_FOUND",  # one of 25 files: that of step 22
}


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorial(served, client, tmp_path, name):
    """All steps in the sandbox that the first one creates, as a reader would enter them."""
    (tmp_path / ".curlrc").write_text('silent\nwrite-out = "\\nstatus %{http_code}\\n"\n')
    box, found = "", {}
    for number, text in enumerate(documents.steps(RUNNER + name)):
        place = tmp_path / str(number)
        place.mkdir()
        done = run_shell(served, place, text.replace("YOUR_SANDBOX_ID", box), timeout=600, env={"CURL_HOME": str(tmp_path)})
        box = box or re.search(r"sess_\w+", done.stdout)[0]
        printed = done.stdout + done.stderr + "".join(path.read_text() for path in place.iterdir())
        if done.returncode or FAILED.search(printed):
            found[name, number] = printed
    forget(client, box)
    wanted = {key: words for key, words in STEPS_OTHERWISE.items() if key[0] == name}
    ends = {key: text[-3000:] for key, text in found.items()}
    assert wanted.keys() == found.keys(), ends
    assert [key for key, words in wanted.items() if not re.search(words, found[key])] == [], ends


def python_with(module):
    """A Python of this host that has @module, or a reason to skip."""
    for python in (sys.executable, "python3", "/usr/bin/python3"):
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0:
            return python
    pytest.skip(f"no Python of this host has {module}")


def test_workflow_script(served, tmp_path):
    """The whole script: it polls until the status is a word that it knows."""
    text, = (text for kind, text in documents.blocks(QUICKSTART) if kind == "bash" and documents.is_script(text))
    printed = shell(served, tmp_path, text)
    assert '"result": 42' in printed and "Created session: sess_" in printed, printed


def test_workflow_program(served, tmp_path):
    """The client in the document, with its own loop."""
    text, = (text for kind, text in documents.blocks(QUICKSTART) if kind == "python")
    (tmp_path / "client.py").write_text(text.replace("localhost:8000", "%s:%d" % served.tcp_address()))
    printed = subprocess.run([python_with("requests"), tmp_path / "client.py"], capture_output=True, text=True, timeout=60)
    assert printed.returncode == 0 and "{'result': 42}" in printed.stdout, printed


INITIALIZE = {"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": {
    "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}


def talk(served, *messages):
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    done = subprocess.run([BUILD / "millibox", "mcp"], input=lines, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "MILLIBOX_SOCKET": served.socket})
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name, number", cases(MESSAGES, documents.messages))
def test_messages(served, client, box, name, number):
    """On standard input of the server's program, which is `millibox mcp` here. The documents leave out the message that opens a
    connection; the original refuses them without it, too."""
    message = documents.messages(name)[number]
    arguments = message["params"].get("arguments", {})
    needs_registry(served, message["params"].get("name"), arguments)
    if "sandbox_id" in arguments:
        arguments["sandbox_id"] = box
    if message["params"].get("name") == "read_file":
        client.post("/mcp/tools/write_file", {"sandbox_id": box, "path": "/workspace/hello.txt", "content": "x"})
    alone = talk(served, message)
    assert alone[0]["error"]["code"] == -32600, alone
    answer = talk(served, INITIALIZE, message)[-1]
    assert answer["id"] == message["id"] and not answer["result"].get("isError"), answer
    forget(client, json.dumps(answer))


@pytest.mark.parametrize("number", range(len(documents.awaited_calls(SHARED, "execute_code")) if PLACE else 1))
def test_shared_environment_programs(client, number):
    """All of them, the two analyses with pandas and matplotlib included; they print in Chinese."""
    call = documents.awaited_calls(SHARED, "execute_code")[number]
    for module in ("pandas", "matplotlib"):
        if f"import {module}" in call["code"] and subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], capture_output=True).returncode:
            pytest.skip(f"the host has no {module}")
    answer = client.post(f"/workspace/se/execute_code/example-{number}", {"script_type": "python", **call})
    assert answer.status == 200, answer
    done = answer.json["result"]
    raises = "1/0" in call["code"]
    assert (done["returncode"], "ZeroDivisionError" in done["stderr"]) == (int(raises), raises), done
    titles = re.findall(r'print\(f?"(?:\\n)?(=== [^({"]*[^({" ])', call["code"])
    assert all(title in done["stdout"] for title in titles) and (len(titles) > 5 or "pandas" not in call["code"]), done
    client.request("DELETE", f"/workspace/se/session/example-{number}")


def analyses():
    return [call["code"] for call in documents.awaited_calls(SHARED, "execute_code") if "pandas" in call["code"]] if PLACE else [None]


@pytest.mark.parametrize("number", range(len(analyses())))
def test_shared_environment_programs_with_packages_of_a_registry(served, client, box, number):
    """The same analyses where the root has no packages: they are installed into the sandbox."""
    packages = ["pandas==2.2.3", "matplotlib==3.9.2"]
    needs_registry(served, "run_python", {"packages": packages})
    answer = client.post("/mcp/tools/run_python", {"sandbox_id": box, "code": analyses()[number], "packages": packages, "timeout": 120})
    assert answer.status == 200 and not answer.json["is_error"], answer
    assert len(re.findall("^=== ", answer.json["metadata"]["stdout"], re.M)) >= 6, answer


@pytest.mark.parametrize("number", range(len(documents.tool_calls(TUTORIAL)) if PLACE else 1))
def test_codomyrmex_tutorial(client, number):
    tool, arguments = documents.tool_calls(TUTORIAL)[number]
    result = client.post(f"/mcp/tools/{tool}", arguments).json["metadata"]
    kind = "timeout" if "while True" in arguments["code"] else "execution_error" if "x / y" in arguments["code"] else "success"
    assert result["status"] == kind and result["stdout"], result


@pytest.mark.parametrize("number", range(len(documents.blocks(USAGE)) if PLACE else 1))
def test_codomyrmex_programs(served, tmp_path, number):
    """Whole programs; the module that they import is the one for compatibility."""
    kind, text = documents.blocks(USAGE)[number]
    if kind != "python":
        pytest.skip("not a program: output, or a command of the shell")
    if "SUPPORTED_LANGUAGES" in text:
        pytest.skip("it lists container images, which Millibox does not have")
    (tmp_path / "code_execution_sandbox.py").write_text("from millibox.compat.codomyrmex import execute_code\n")
    (tmp_path / "program.py").write_text(text)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}/sdk/python/src", "MILLIBOX_SOCKET": served.socket}
    done = subprocess.run([python_with("httpx"), tmp_path / "program.py"], capture_output=True, text=True, env=env, timeout=60)
    wanted = {"while True": "Status: timeout", "10 / 0": "Status: execution_error", "safely": "'success': True"}
    words = next((words for part, words in wanted.items() if part in text), "Status: success")
    assert done.returncode == 0 and words in done.stdout, done


def test_the_table_has_every_call():
    """docs/compatibility.md: the calls of each document, and how many of them end as documented."""
    page = (ROOT / "docs/compatibility.md").read_text()
    rows = {(document, name): (int(calls), int(same)) for document, calls, same, name in
            re.findall(r"^\| [^|]+ \| ([^|,]+)[^|]* \| (\d+) \| (\d+) \|[^|]*\| test_compat_documents\.py::(\w+) \|$", page, re.M)}

    def found(calls, others, name):
        return len(calls), len(calls) - sum(key[0] == name for key in others)

    for name in TOOLS:
        assert rows[name, "test_tools"] == found(documents.tool_calls(RUNNER + name), OTHERWISE, name), name
    assert rows[COLLECTION, "test_collection"] == found(documents.collection(RUNNER + COLLECTION), COLLECTION_OTHERWISE, COLLECTION)
    for name in TUTORIALS:
        assert rows[name, "test_tutorial"] == found(documents.steps(RUNNER + name), STEPS_OTHERWISE, name), name
    for name in CURL:
        assert rows[name.split("/", 1)[1], "test_curl"] == found(documents.curl_commands(name), CURL_OTHERWISE, name), name
    for name in MESSAGES:
        assert rows[name.split("/", 1)[1], "test_messages"] == found(documents.messages(name), {}, name), name
    assert rows["sandbox-runtime/examples/shared_env_example.py", "test_shared_environment_programs"][0] == len(documents.awaited_calls(SHARED, "execute_code"))
    assert rows["USAGE_EXAMPLES.md", "test_codomyrmex_programs"][0] == sum(kind == "python" for kind, _ in documents.blocks(USAGE))
    assert rows["docs/tutorials/execute_code_tutorial.md", "test_codomyrmex_tutorial"][0] == len(documents.tool_calls(TUTORIAL))


def test_every_document_is_there():
    missing = [name for name in (*(RUNNER + name for name in (*TOOLS, COLLECTION, *TUTORIALS)), *CURL, SHARED, USAGE, TUTORIAL) if not path_of(name).exists()]
    assert missing == []
