# SPDX-License-Identifier: Apache-2.0
"""Which languages work: what a box says about a toolchain, and every list, refusal and command that depends on it."""

import json
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support import host, oci
from support.daemon import BUILD, ROOT, Daemon, is_sanitized
from support.mcp import Mcp, events
from support.sessions import V1

pytestmark = pytest.mark.phases("system")

LANGUAGES = f"{V1}/languages"
TOOLS = "/api/v1/tools"

#: The agent is executed in the box's root: statically linked it needs nothing there.
in_another_root = pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries")

#: Beside python and shell. "works" runs; "broken" has its program, which fails; "absent" has none.
MANIFESTS = {
    "works": {"program": "/bin/sh", "command": ["/bin/sh", "{source}"], "hello": "echo hello", "debian": ["dash"]},
    "broken": {"program": "/bin/cat", "command": ["/bin/cat", "{source}", "/no/such/header"], "hello": "hello",
               "debian": ["broken-tools", "libbroken-dev"]},
    "absent": {"program": "/usr/bin/millibox-has-no-such-program", "command": ["/usr/bin/millibox-has-no-such-program", "{source}"],
               "debian": ["absent-tools"], "hello": "hello"},
}
CHECKED = {"MILLIBOX_RUNNERS_CHECK": "true"}


def write_manifest(folder, name, **fields):
    folder = folder / name
    folder.mkdir(exist_ok=True)
    manifest = {"name": name, "title": name.title(), "source": "main.x", **fields}
    # JSON is YAML.
    (folder / "manifest.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in manifest.items()))


@pytest.fixture(scope="module")
def runners():
    """Few of the tree's languages, so that a check of all is short, and those of this test."""
    with tempfile.TemporaryDirectory(prefix="mbxrunners-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        for part in ("python", "shell", "compile"):
            shutil.copytree(ROOT / "runners" / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shell = folder / "shell/manifest.yaml"
        # Its option that names other shells.
        shell.write_text("".join(line for line in shell.read_text().splitlines(True) if "type: language" not in line))
        for language, fields in MANIFESTS.items():
            write_manifest(folder, language, **fields)
        yield folder


@pytest.fixture
def place():
    """A directory that the daemon's own user may read."""
    with tempfile.TemporaryDirectory(prefix="mbxplace-") as name:
        path = pathlib.Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture(scope="module")
def server(runners):
    daemon = Daemon(tcp=True, env={"MILLIBOX_RUNNERS_DIR": str(runners), **CHECKED}).start()
    yield daemon
    assert daemon.stop() == 0, daemon.log()
    daemon.remove()


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def languages(client, query=""):
    answer = client.get(LANGUAGES + query)
    assert answer.status == 200, answer
    return {row["name"]: row for row in answer.json["languages"]}


def available(client, query=""):
    return {name for name, row in languages(client, query).items() if row["available"]}


def millibox(*args, env=None, **kw):
    return subprocess.run([str(BUILD / "millibox"), *args], capture_output=True, text=True, timeout=host.HANG_S,
                          env={"PATH": "/usr/bin:/bin", "HOME": "/", **(env or {})}, stdin=subprocess.DEVNULL, **kw)


# What a list says


def test_a_request_for_a_language_asks_nothing(make_daemon, runners):
    d = make_daemon(env={"MILLIBOX_RUNNERS_DIR": str(runners), **CHECKED}).start()
    with d.client() as client:
        assert client.post(f"{V1}/execute", {"language": "works", "code": "echo 1"}).json["stdout"] == "1\n"
        assert not [row["name"] for row in languages(client, "?check=none").values() if row["checked"]]


@pytest.mark.phases("system", "user")
def test_a_language_is_available_if_its_program_runs(client):
    rows = languages(client)
    assert {name for name, row in rows.items() if row["available"]} == {"python", "shell", "works"}
    assert {name for name, row in rows.items() if row["checked"]} == {"python", "shell", "works", "broken"}
    assert rows["python"]["version"].startswith("3.") and rows["python"]["missing"] is None and rows["python"]["install"] is None
    assert rows["broken"]["missing"] == "/bin/cat: /no/such/header: No such file or directory"
    assert rows["broken"]["install"] == "apt-get install broken-tools libbroken-dev"
    assert rows["broken"]["debian_packages"] == ["broken-tools", "libbroken-dev"] and rows["broken"]["version"] is None
    assert rows["absent"]["missing"] == MANIFESTS["absent"]["program"]
    # It is remembered, and may be asked again.
    assert languages(client, "?check=none") == rows == languages(client, "?check=all")


def test_the_programs_of_the_manifests_run(make_daemon):
    """On a host that has the packages of a language, the language works."""
    if not shutil.which("dpkg-query"):
        pytest.skip("this host has no packages of Debian")
    listed = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"], capture_output=True, text=True, check=True)
    installed = {line.split()[0] for line in listed.stdout.splitlines() if line.endswith(" installed")}
    d = make_daemon(env=CHECKED).start()
    with d.client() as client:
        # A list does not wait for slow compilers on a busy machine.
        host.wait_until(lambda: all(row["checked"] for row in languages(client).values() if not (row["missing"] or "").startswith("/")),
                        120, "every toolchain has answered")
        rows = languages(client).values()
    assert any("gcc" in row["debian_packages"] for row in rows)
    assert not {row["name"]: row["missing"] for row in rows if set(row["debian_packages"]) <= installed and not row["available"]}


def test_all_lists_agree(server, client):
    there = available(client)
    mcp = Mcp(server.socket)
    listed = mcp.result("tools/list")["tools"]
    words = next(t for t in listed if t["name"] == "execute_code")["inputSchema"]["properties"]["language"]["enum"]
    assert set(words) == there
    told = mcp.result("tools/call", {"name": "list_languages", "arguments": {}})["structuredContent"]
    assert set(told["languages"]) == there and {row["name"] for row in told["details"] if row["available"]} == there
    offered = mcp.result("completion/complete", {"ref": {"type": "ref/prompt", "name": "debug_program"},
                                                 "argument": {"name": "language", "value": ""}})
    assert set(offered["completion"]["values"]) == there
    tools = client.get(f"{TOOLS}?limit=100").json["data"]
    assert set(next(t for t in tools if t["name"] == "execute_code")["schema"]["properties"]["language"]["enum"]) == there
    one = client.get(f"{TOOLS}/execute_code").json
    assert set(one["schema"]["properties"]["language"]["enum"]) == there
    names = client.get("/mcp/tools").json["tools"]
    assert set(next(t for t in names if t["name"] == "execute_code")["inputSchema"]["properties"]["language"]["enum"]) == there
    template = next(t for t in client.get(f"{V1}/templates").json["templates"] if t["id"] == "python-basic")
    assert set(template["languages"]) == there
    shown = json.loads(millibox("languages", "--json", "--socket", server.socket).stdout)["languages"]
    assert {row["name"] for row in shown if row["available"]} == there
    checks = {c["name"]: c for c in json.loads(millibox("doctor", "--json", "--socket", server.socket).stdout)["checks"]}
    assert {word.split()[0] for word in checks["languages"]["value"].split(", ")} == there
    assert checks["languages.missing"]["value"] == "absent, broken"
    assert checks["languages.missing"]["remedy"] == "millibox languages --install"


def test_a_first_list_of_tools_is_true(make_daemon, runners):
    d = make_daemon(env={"MILLIBOX_RUNNERS_DIR": str(runners), **CHECKED}).start()
    tools = Mcp(d.socket).result("tools/list")["tools"]
    words = next(t for t in tools if t["name"] == "execute_code")["inputSchema"]["properties"]["language"]["enum"]
    # A box that comes too late on a busy machine is followed by a notification.
    assert "absent" not in words and {"python", "works"} <= set(words)
    with d.client() as client:
        assert available(client) == {"python", "shell", "works"}
    tools = Mcp(d.socket).result("tools/list")["tools"]
    words = next(t for t in tools if t["name"] == "execute_code")["inputSchema"]["properties"]["language"]["enum"]
    assert set(words) == {"python", "shell", "works"}


def test_a_changed_list_of_tools_is_announced(make_daemon, runners, place):
    program = place / "tool"
    write_manifest(place, "later", program=str(program), command=[str(program), "{source}"])
    d = make_daemon(env={"MILLIBOX_RUNNERS_DIR": str(runners), "MILLIBOX_RUNNERS_DIRS": str(place)}).start()
    mcp = Mcp(d.socket)
    assert mcp.initialized["capabilities"]["tools"] == {"listChanged": True}
    stream = events(mcp.listen())
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with d.client() as client:
        assert languages(client)["later"]["available"]
        assert next(e for e in stream if e.data and "tools" in e.data).json["method"] == "notifications/tools/list_changed"


# Requests that name a language that does not work


@pytest.mark.parametrize("language, words", [
    ("absent", ("'absent' is not installed on the daemon's host", "millibox languages --install absent (apt-get install absent-tools)",
                MANIFESTS["absent"]["program"])),
    ("broken", ("'broken' does not work on the daemon's host",
                "millibox languages --install broken (apt-get install broken-tools libbroken-dev)", "/no/such/header"))])
def test_a_request_is_refused_with_the_command(client, language, words):
    languages(client)
    for path, body in ((f"{V1}/execute", {"code": "x"}), (f"{V1}/sessions", {})):
        answer = client.post(path, {"language": language, **body})
        assert answer.status == 400 and answer.json["error_code"] == "Sandbox.LanguageNotInstalled", answer
        assert answer.json["field"] == "language" and "Retry-After" not in answer.headers
        assert all(word in answer.json["error_detail"] for word in words), answer.json["error_detail"]
        assert answer.json["retry_after"] is None
        assert "retry" not in json.dumps({**answer.json, "retry_after": None}).lower().replace('"retry_after"', "")


def test_each_dialect_refuses_in_its_own_form(server, client):
    languages(client)
    session = client.post(f"{V1}/sessions", {}).json["session_id"]
    spec = client.post(f"{V1}/sessions/{session}/execute", {"language": "absent", "code": "x"})
    assert (spec.status, spec.json["error_code"]) == (400, "Sandbox.LanguageNotInstalled")
    later = client.post(f"{V1}/executions/sessions/{session}/execute", {"language": "absent", "code": "x"})
    assert later.status == 422 and later.json["detail"][0]["loc"] == ["body", "language"]
    assert "millibox languages --install absent" in later.json["detail"][0]["msg"]
    tool = client.post(f"{TOOLS}/execute_code/execute", {"arguments": {"language": "absent", "code": "x"}})
    assert tool.status == 200 and tool.json["is_error"] and "millibox languages --install absent" in tool.json["result"]
    # Clients show the text of a result, and of an HTTP error only the number.
    for name, arguments in (("execute_code", {}), ("run_code", {"sandbox_id": session})):
        named = client.post(f"/mcp/tools/{name}", {"language": "absent", "code": "x", **arguments})
        assert named.status == 200 and named.json["is_error"], named
        assert "millibox languages --install absent" in named.json["text"]
        assert name != "execute_code" or named.json["metadata"]["status"] == "setup_error"
    result = Mcp(server.socket).result("tools/call", {"name": "execute_code", "arguments": {"language": "absent", "code": "x"}})
    assert result["isError"] and "millibox languages --install absent" in result["content"][0]["text"]
    assert "tell the user" in result["content"][0]["text"]
    assert client.request("DELETE", f"{V1}/sessions/{session}").status == 200


def test_the_shared_environment_refuses_too(make_daemon, runners, place):
    """Its programs are Python and shell, so a host without Python is needed."""
    folder = place / "runners"
    shutil.copytree(runners, folder)
    manifest = folder / "python/manifest.yaml"
    manifest.write_text(manifest.read_text().replace("/usr/bin/python3", "/usr/bin/millibox-has-no-python")
                        .replace("places: ", "places: [/nonexistent/python] # "))
    d = make_daemon(env={"MILLIBOX_RUNNERS_DIR": str(folder)}).start()
    with d.client() as client:
        assert not languages(client)["python"]["available"]
        first = client.post("/workspace/se/execute_code/one", {"code": "1", "script_type": "python"})
        # Its sessions have the template of Python.
        assert first.status == 400 and "millibox languages --install python (apt-get install python3 python3-pip-whl)" in first.json["error_detail"], first
        second = client.post("/workspace/se/v2/execute_code", {"handler_code": "def handler(e): pass", "event": {}})
        assert (second.status, second.json["detail"]["error_code"]) == (400, "Sandbox.InvalidParameter")


def test_an_unknown_language_is_another_error(client):
    answer = client.post(f"{V1}/execute", {"language": "cobol", "code": "x"})
    assert (answer.status, answer.json["error_code"]) == (400, "Sandbox.InvalidParameter")
    assert "unknown language 'cobol'" in answer.json["error_detail"]


def test_only_administrators_have_all_checked_again(make_daemon, runners):
    d = make_daemon(tcp=True, env={"MILLIBOX_RUNNERS_DIR": str(runners)}).start()
    with d.client() as client:
        key = client.post(f"{V1}/keys", {"tenant": "default", "scopes": ["read"]}).json["key"]
        headers = {"Authorization": f"Bearer {key}"}
        assert client.request("GET", LANGUAGES, headers=headers).status == 200
        refused = client.request("GET", f"{LANGUAGES}?check=all", headers=headers)
        assert (refused.status, refused.json["error_code"]) == (403, "Sandbox.ScopeMissing")


# Other roots


GOOD_COMPILER = """#!/bin/sh
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
[ $# -gt 0 ] || exit 1
printf '#!/bin/sh\\necho hello\\n' >"$2"
"""
BAD_COMPILER = """#!/bin/sh
echo "main.c:1:10: fatal error: stdio.h: No such file or directory" >&2
exit 1
"""


@pytest.fixture
def root(runners, make_daemon, place):
    """A daemon with the language C, and a root with a shell and whatever the test says is its compiler."""
    folder, roots = place / "runners", place / "roots"
    shutil.copytree(runners, folder)
    shutil.copytree(ROOT / "runners/c", folder / "c")
    roots.mkdir(mode=0o755)
    image = oci.Image([oci.busybox_layer() + [oci.symlink("bin/chmod", "busybox"), oci.folder("usr/bin/"),
                                              oci.entry("usr/bin/gcc", BAD_COMPILER.encode(), 0o755)]])
    subprocess.run([BUILD / "millibox-import", "--roots", roots, "--name", "fake"], input=image.bytes(),
                   capture_output=True, timeout=host.HANG_S, check=True)
    d = make_daemon(config=f"templates:\n  dirs: [{roots}]\n", env={"MILLIBOX_RUNNERS_DIR": str(folder), **CHECKED}).start()
    with d.client() as client:
        assert client.post(f"{V1}/templates", {"id": "fake", "name": "fake", "image": "fake"}).status == 201
        yield client, roots / "fake"


@in_another_root
def test_a_compiler_that_does_not_work_is_no_language(root):
    client, path = root
    assert languages(client, "?template_id=fake&check=none")["c"]["available"]
    row = languages(client, "?template_id=fake")["c"]
    assert (row["available"], row["checked"]) == (False, True)
    assert row["missing"] == "main.c:1:10: fatal error: stdio.h: No such file or directory"
    assert "c" not in next(t for t in client.get(f"{V1}/templates").json["templates"] if t["id"] == "fake")["languages"]
    program = {"language": "c", "code": "int main(void) { return 0; }", "template_id": "fake"}
    answer = client.post(f"{V1}/execute", program)
    assert (answer.status, answer.json["error_code"]) == (400, "Sandbox.LanguageNotInstalled")
    assert "in the root of template 'fake'; its image needs: apt-get install gcc libc6-dev" in answer.json["error_detail"]
    # The daemon notices another compiler by itself.
    (path / "usr/bin/gcc").write_text(GOOD_COMPILER)
    assert client.post(f"{V1}/execute", program).json["stdout"] == "hello\n"
    row = languages(client, "?template_id=fake")["c"]
    assert (row["available"], row["checked"], row["missing"]) == (True, True, None)


# Installation


@pytest.fixture
def fake(place, runners, make_daemon):
    """A daemon with a language whose program is missing, and an apt-get that can put it there."""
    folder, more, program = place / "bin", place / "more", place / "tool"
    folder.mkdir(mode=0o755)
    more.mkdir(mode=0o755)
    write_manifest(more, "later", program=str(program), command=[str(program), "{source}"], debian=["later-tools", "liblater-dev"])
    write_manifest(more, "never", program="/nonexistent/never", command=["/nonexistent/never"], install="ask its vendor")
    # No box sees the directory of the test: the files decide.
    d = make_daemon(tcp=True, config="allowed_hosts: [0.0.0.0]\n",
                    env={"MILLIBOX_RUNNERS_DIR": str(runners), "MILLIBOX_RUNNERS_DIRS": str(more)}).start()

    log = place / "calls"
    log.touch()
    log.chmod(0o666)

    def apt_get(script="", name="apt-get"):
        file = folder / name
        file.write_text(f'#!/bin/sh\necho "{name} $*" >>{log}\n{script}\n')
        file.chmod(0o755)

    def install(*names, path=f"{folder}:/usr/bin:/bin", **kw):
        return millibox("languages", "--install", *names, *kw.pop("at", ("--socket", d.socket)), env={"PATH": path}, **kw)

    def calls():
        lines = log.read_text().splitlines()
        # How old the lists of packages are depends on the host.
        return [line for line in lines if not line.endswith("apt-get update")]

    apt_get.folder = folder
    apt_get.puts = f"touch {program}; chmod 755 {program}; echo unpacked"
    yield d, apt_get, install, calls


needs_root = pytest.mark.skipif(not host.is_root(), reason="another user needs sudo")
LATER = "apt-get install -y --no-install-recommends later-tools liblater-dev"


@needs_root
def test_a_language_is_installed_without_a_restart(fake):
    d, apt_get, install, calls = fake
    apt_get(apt_get.puts)
    done = install("later")
    assert done.returncode == 0, done.stderr
    assert calls() == [LATER]
    lines = done.stderr.splitlines()
    # The command is shown before it says anything.
    assert next(i for i, line in enumerate(lines) if line.endswith(LATER)) < lines.index("unpacked")
    assert "millibox: later" in lines[-1] and "available" in lines[-1] and done.stdout == ""
    with d.client() as client:
        assert languages(client)["later"]["available"]
    again = install("later")
    assert again.returncode == 0 and "later is available already" in again.stderr and calls() == [LATER]


@needs_root
def test_without_a_name_all_that_is_missing_is_installed(fake):
    _, apt_get, install, calls = fake
    apt_get(apt_get.puts)
    done = install()
    assert calls() == ["apt-get install -y --no-install-recommends absent-tools later-tools liblater-dev"]
    # One still is not there, and for another Debian has no package.
    assert done.returncode == 1
    assert "absent is not available to the daemon: it lacks /usr/bin/millibox-has-no-such-program" in done.stderr
    assert "never: no package of Debian has it; ask its vendor" in done.stderr


@needs_root
def test_an_installation_that_fails_says_so(fake):
    _, apt_get, install, _ = fake
    apt_get('[ "$1" != install ] || { echo "E: Unable to locate package later-tools" >&2; exit 100; }')
    done = install("later")
    assert done.returncode == 125 and "E: Unable to locate package" in done.stderr
    assert "apt-get install: exit status 100" in done.stderr


def test_without_apt_get_the_packages_are_named(fake):
    done = fake[2]("later", path="/nonexistent:bin")
    assert done.returncode == 125
    assert "there is no apt-get on this host" in done.stderr and "later-tools liblater-dev" in done.stderr


@needs_root
def test_an_ordinary_user_needs_sudo(fake):
    d, apt_get, install, calls = fake
    apt_get(apt_get.puts)
    with d.client() as client:
        key = client.post(f"{V1}/keys", {"tenant": "default", "scopes": ["read"]}).json["key"]
    user = {"user": 61987, "group": 61987, "extra_groups": [], "cwd": "/"}
    at = ("--url", f"http://127.0.0.1:{d.tcp_address()[1]}")
    alone = millibox("languages", "--install", "later", *at, env={"PATH": f"{apt_get.folder}", "MILLIBOX_API_KEY": key}, **user)
    assert alone.returncode == 125 and f"as root, run: {LATER}" in alone.stderr, alone.stderr
    apt_get('exec "$@"', "sudo")
    done = millibox("languages", "--install", "later", *at, env={"PATH": f"{apt_get.folder}:/usr/bin:/bin", "MILLIBOX_API_KEY": key}, **user)
    assert f"sudo {apt_get.folder}/{LATER}" in done.stderr and calls()[0].startswith("sudo ")


@pytest.mark.parametrize("name", ["", "localhost:x@", "127.0.0.1:1@"])
def test_the_daemon_of_another_host_is_left_alone(fake, name):
    d, apt_get, install, calls = fake
    apt_get(apt_get.puts)
    done = install("later", at=("--url", f"http://{name}0.0.0.0:{d.tcp_address()[1]}"))
    assert done.returncode == 125 and "is on another host; there run: " + LATER in done.stderr and calls() == []


def test_names_are_checked(fake):
    install = fake[2]
    done = install("latr")
    assert done.returncode == 2 and "unknown language 'latr'; did you mean 'later'?" in done.stderr
    done = millibox("languages", "later", "--socket", fake[0].socket)
    assert done.returncode == 2 and "require --install" in done.stderr
    done = install("later", "--template", "python-basic")
    assert done.returncode == 2 and "--install is for this host" in done.stderr


def test_the_list_ends_with_one_command(server):
    done = millibox("languages", "--check", "--socket", server.socket)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert "broken does not work: /bin/cat: /no/such/header: No such file or directory" in lines
    assert lines[-1] == "apt-get install -y --no-install-recommends absent-tools broken-tools libbroken-dev"


def test_the_command_explains_a_refusal(server, client):
    languages(client)
    done = millibox("run", "--socket", server.socket, "-l", "broken", "-c", "x")
    assert done.returncode == 125 and "millibox: The language is not installed." in done.stderr
    assert "millibox languages --install broken" in done.stderr and "retry" not in done.stderr


def test_one_table_names_the_packages():
    """tools/setup, the message of each language, and the installers of packages read the manifests."""
    yaml = pytest.importorskip("yaml")
    manifests = [yaml.safe_load(path.read_text()) for path in (ROOT / "runners").glob("*/manifest.yaml")]
    wanted = {package for manifest in manifests for package in manifest["debian"]}
    assert all(manifest["hello"] for manifest in manifests) and len(manifests) >= 10
    listed = subprocess.run([ROOT / "tools/setup", "--list", "languages"], capture_output=True, text=True, check=True,
                            env={"PATH": "/nonexistent:/usr/bin:/bin"}).stdout.split()
    # Node.js may be installed from elsewhere.
    assert wanted - set(listed) <= {"nodejs"}
    plan = subprocess.run(["make", "-n", "languages"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "tools/setup languages" in plan
