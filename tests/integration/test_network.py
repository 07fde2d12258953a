# SPDX-License-Identifier: Apache-2.0
"""Boxes with network "allowlist": ordinary clients reach the hosts of the rules, and a denial says what was refused."""

import base64
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import zipfile

import pytest

from support import host
from support.mcp import Mcp
from support.registry import needs_pip
from support.sessions import Session
from support.sites import daemon_with, files_of, make_certificate, policy, resolver, serve

pytestmark = [
    pytest.mark.phases("system", "user"),
    pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl"),
]

#: The test servers are on the host's loopback under this name.
HOST = "site.test"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Files for every client, served over TLS."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "hello.txt").write_text("hello\n")
    make_wheel(folder / "simple/tinypkg")
    make_go_module(folder / "go/example.test/tiny")
    make_git(folder)
    make_maven(folder / "maven")
    return folder


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    make_certificate(folder, HOST)
    return folder


@pytest.fixture(scope="module")
def server(site, certificates):
    with serve(files_of(site), certificates) as port:
        make_npm(site / "npm/tinypkg", port)
        make_crate(site / "crates", port)
        yield port


@pytest.fixture(scope="module")
def daemon(server):
    rules = [f"{HOST}:{server}", f"127.0.0.1/32:{server}"]
    with resolver(HOST) as names, daemon_with(rules, config=f"egress: {{resolver: '{names}'}}\n") as daemon:
        yield daemon


@pytest.fixture
def client(daemon):
    with daemon.client() as client:
        yield client


def make_wheel(folder):
    folder.mkdir(parents=True)
    record = {"tinypkg.py": b"ANSWER = 42\n",
              "tinypkg-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tinypkg\nVersion: 1.0\n",
              "tinypkg-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    rows = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                   for name, data in record.items())
    name = "tinypkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder / name, "w") as wheel:
        for path, data in record.items():
            wheel.writestr(path, data)
        wheel.writestr("tinypkg-1.0.dist-info/RECORD", rows + "tinypkg-1.0.dist-info/RECORD,,\n")
    (folder / "index.html").write_text(f'<a href="{name}">{name}</a>')


def make_npm(folder, port):
    folder.mkdir(parents=True)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in (("package.json", '{"name": "tinypkg", "version": "1.0.0"}'), ("index.js", "module.exports = 42\n")):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    (folder / "tinypkg.tgz").write_bytes(data.getvalue())
    dist = {"tarball": f"https://{HOST}:{port}/npm/tinypkg/tinypkg.tgz", "shasum": hashlib.sha1(data.getvalue()).hexdigest()}
    about = {"name": "tinypkg", "dist-tags": {"latest": "1.0.0"},
             "versions": {"1.0.0": {"name": "tinypkg", "version": "1.0.0", "dist": dist}}}
    (folder / "index.html").write_text(json.dumps(about))


def make_go_module(folder):
    at = folder / "@v"
    at.mkdir(parents=True)
    (at / "list").write_text("v1.0.0\n")
    (at / "v1.0.0.info").write_text('{"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}')
    (at / "v1.0.0.mod").write_text("module example.test/tiny\n")
    with zipfile.ZipFile(at / "v1.0.0.zip", "w") as archive:
        archive.writestr("example.test/tiny@v1.0.0/go.mod", "module example.test/tiny\n")
        archive.writestr("example.test/tiny@v1.0.0/tiny.go", "package tiny\n\nconst Answer = 42\n")


def make_crate(folder, port):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in (("Cargo.toml", '[package]\nname = "tinypkg"\nversion = "1.0.0"\n'), ("src/lib.rs", "pub const ANSWER: u8 = 42;\n")):
            entry = tarfile.TarInfo(f"tinypkg-1.0.0/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    row = {"name": "tinypkg", "vers": "1.0.0", "deps": [], "cksum": hashlib.sha256(data.getvalue()).hexdigest(), "features": {}, "yanked": False}
    for path, body in (("config.json", json.dumps({"dl": f"https://{HOST}:{port}/crates/dl"}).encode()), ("ti/ny/tinypkg", json.dumps(row).encode()),
                       ("dl/tinypkg/1.0.0/download", data.getvalue())):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(body)


def make_maven(folder):
    """A parent of a project, which Maven fetches before it does anything."""
    place = folder / "test/parent/1/parent-1.pom"
    place.parent.mkdir(parents=True)
    place.write_text("<project><modelVersion>4.0.0</modelVersion><groupId>test</groupId><artifactId>parent</artifactId><version>1</version>"
                     "<packaging>pom</packaging><properties><answer>42</answer></properties></project>")
    (place.parent / "parent-1.pom.sha1").write_text(hashlib.sha1(place.read_bytes()).hexdigest())


def make_git(folder):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.test", *words], check=True, capture_output=True,
                       cwd=folder)

    git("init", "-q", "work")
    (folder / "work/answer").write_text("42\n")
    git("-C", "work", "add", "answer")
    git("-C", "work", "commit", "-qm", "answer")
    git("clone", "-q", "--bare", "work", "tiny.git")
    git("-C", "tiny.git", "update-server-info")


def run(client, certificates, code, **body):
    files = {"ca.pem": (certificates / "cert.pem").read_text()}
    answer = client.post("/api/v1/execute", {"language": "shell", "code": code, "files": files, "timeout": 120, **body})
    assert answer.status == 200, answer.json
    return answer.json


def brief(denials):
    return [(row["kind"], row["what"], row["rule"], row["count"]) for row in denials]


def in_box(name, *others):
    """The path of a program that boxes have too, or a reason to skip."""
    for place in ("/usr/local/bin", "/usr/bin", "/bin", *others):
        if pathlib.Path(place, name).exists():
            return f"{place}/{name}"
    return pytest.skip(f"needs {name} below /usr")


# Clients against servers of the test, over TLS.


def test_curl(client, certificates, server):
    result = run(client, certificates, f"curl -sS --cacert ca.pem https://{HOST}:{server}/hello.txt")
    assert (result["stdout"], result["stderr"], result["denials"]) == ("hello\n", "", [])


def test_curl_over_socks(client, certificates, server):
    code = f"curl -sS --cacert ca.pem -x socks5h://127.0.0.1:3128 https://{HOST}:{server}/hello.txt"
    result = run(client, certificates, code)
    assert (result["stdout"], result["stderr"]) == ("hello\n", "")


def test_python_reads_the_variables(client, certificates, server):
    code = ("import ssl, urllib.request as r\n"
            "context = ssl.create_default_context(cafile='ca.pem')\n"
            f"print(r.urlopen('https://{HOST}:{server}/hello.txt', context=context).read())")
    assert run(client, certificates, code, language="python")["stdout"] == "b'hello\\n'\n"


@needs_pip
def test_pip(client, certificates, server):
    code = (f"/usr/bin/python3 -m pip install -q --target lib --cert ca.pem --index-url https://{HOST}:{server}/simple tinypkg"
            " && PYTHONPATH=lib /usr/bin/python3 -c 'import tinypkg; print(tinypkg.ANSWER)'")
    result = run(client, certificates, code)
    assert result["stdout"] == "42\n", result


#: docs/network.md shows this. Any version of Node.js can do it.
TUNNEL = """
const http = require('node:http'), https = require('node:https');
const target = `${host}:${port}`;
http.request({ host: '127.0.0.1', port: 3128, method: 'CONNECT', path: target, headers: { host: target } })
  .on('connect', (answer, socket) => https.get({ host, path, socket, agent: false }, (r) => r.pipe(process.stdout)))
  .end();
"""


def test_node_through_a_tunnel(client, certificates, server):
    node = in_box("node")
    start = f"const host = '{HOST}', port = {server}, path = '/hello.txt';"
    code = f"cat > a.cjs <<'END'\n{start}{TUNNEL}END\nNODE_EXTRA_CA_CERTS=ca.pem {node} a.cjs"
    result = run(client, certificates, code, resources={"memory": "1Gi"})
    assert result["stdout"] == "hello\n", result


#: Node.js 24 does it by itself; in 20 the runner makes it so.
FETCH = """
import http from 'node:http';
const here = http.createServer((request, answer) => answer.end('of the box')).listen(0, '127.0.0.1');
await new Promise((resolve) => here.once('listening', resolve));
for (const url of [`https://SITE/hello.txt`, `http://127.0.0.1:${here.address().port}/`]) console.log((await (await fetch(url)).text()).trim());
for (const url of ['https://other.test/', 'http://other.test/'])
  console.log(await fetch(url).then((answer) => `${answer.status}`, (error) => error.message));
here.close();
"""


@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_fetch_of_node(client, certificates, server, language):
    in_box("node")
    if not client.get("/api/v1/languages?check=none").json["languages"]:
        pytest.skip("no language")
    result = run(client, certificates, FETCH.replace("SITE", f"{HOST}:{server}"), language=language, resources={"memory": "1Gi"},
                 env_vars={"NODE_EXTRA_CA_CERTS": "/workspace/ca.pem"})
    assert result["stdout"] == "hello\nof the box\nfetch failed\n403\n", result
    assert {row["what"] for row in result["denials"]} == {"other.test:443", "other.test:80"}


JAVA = """
import java.net.*;
class Main {
    public static void main(String[] args) throws Exception {
        for (String url : new String[] {"https://other.test/", "http://other.test/"})
            try { new URL(url).openStream(); } catch (Exception e) { System.out.println(e.getMessage()); }
        System.err.print("");
    }
}
"""


def test_url_of_java(client, certificates):
    """Java looks up no name: the proxy gets the request and says what it thinks of it."""
    in_box("javac")
    result = run(client, certificates, JAVA, language="java")
    assert {row["what"] for row in result["denials"]} == {"other.test:443", "other.test:80"}, result
    assert result["stdout"].count("403") == 2 and result["stderr"] == "", result


def test_npm(client, certificates, server):
    npm = in_box("npm")
    code = (f"{npm} install --silent --cafile ca.pem --registry https://{HOST}:{server}/npm tinypkg"
            " && node -p 'require(\"tinypkg\")'")
    result = run(client, certificates, code, resources={"memory": "1Gi"})
    assert result["stdout"] == "42\n", result


def test_go(client, certificates, server):
    go = in_box("go", "/usr/local/go/bin", "/usr/lib/go/bin")
    code = f"mkdir m && cd m && {go} mod init t 2>/dev/null && {go} get example.test/tiny && cat go.sum | wc -l"
    env = {"GOPROXY": f"https://{HOST}:{server}/go", "GONOSUMDB": "*", "GONOSUMCHECK": "1", "SSL_CERT_FILE": "/workspace/ca.pem",
           "GOCACHE": "/tmp/cache", "GOPATH": "/workspace/gopath"}
    result = run(client, certificates, code, env_vars=env, resources={"memory": "1Gi"})
    assert result["stdout"] == "2\n", (result["stderr"], result["denials"])


def test_cargo(client, certificates, server):
    cargo, _ = in_box("cargo"), in_box("rustc")
    # A sparse index is stable since 1.68.
    sparse = "RUSTC_BOOTSTRAP=1 cargo -Z sparse-registry" if b" 1.6" in subprocess.check_output([cargo, "--version"]) else "cargo"
    code = ("mkdir -p home m/src && cd m && echo 'fn main() {}' >src/main.rs\n"
            "printf '[package]\\nname = \"m\"\\nversion = \"1.0.0\"\\n[dependencies]\\ntinypkg = \"1\"\\n' >Cargo.toml\n"
            f"printf '[source.crates-io]\\nreplace-with = \"site\"\\n[source.site]\\nregistry = \"sparse+https://{HOST}:{server}/crates/\"\\n' >../home/config.toml\n"
            f"{sparse} vendor -q --respect-source-config && cat vendor/tinypkg/src/lib.rs")
    env = {"CARGO_HTTP_CAINFO": "/workspace/ca.pem", "CARGO_HOME": "/workspace/home"}
    result = run(client, certificates, code, env_vars=env, resources={"memory": "1Gi"})
    assert result["stdout"].endswith("pub const ANSWER: u8 = 42;\n"), (result["stderr"], result["denials"])


MAVEN = """
keytool -importcert -noprompt -alias site -file ca.pem -keystore trust -storepass changeit 2>/dev/null
java -XX:TieredStopAtLevel=1 $MAVEN_OPTS -Djavax.net.ssl.trustStore=trust -Djavax.net.ssl.trustStorePassword=changeit -Dclassworlds.conf=m2.conf \\
    -Dmaven.home=/usr/share/maven -Dmaven.multiModuleProjectDirectory=/workspace -cp /usr/share/maven/boot/plexus-classworlds*.jar \\
    org.codehaus.plexus.classworlds.launcher.Launcher -q -B -Dmaven.repo.local=repository validate && grep -c answer repository/test/parent/1/parent-1.pom
"""


def test_maven(client, certificates, server):
    in_box("java")
    if not pathlib.Path("/usr/share/maven/boot").exists():
        pytest.skip("needs /usr/share/maven")
    pom = ("<project><modelVersion>4.0.0</modelVersion><parent><groupId>test</groupId><artifactId>parent</artifactId><version>1</version><relativePath/></parent>"
           "<artifactId>m</artifactId><packaging>pom</packaging><repositories><repository><id>central</id>"
           f"<url>https://{HOST}:{server}/maven</url></repository></repositories></project>")
    # Boxes do not have Debian's /etc/maven.
    conf = "main is org.apache.maven.cli.MavenCli from plexus.core\n[plexus.core]\nload ${maven.home}/lib/*.jar\n"
    files = {"ca.pem": (certificates / "cert.pem").read_text(), "pom.xml": pom, "m2.conf": conf}
    result = run(client, certificates, MAVEN, files=files, resources={"memory": "1Gi"})
    assert result["stdout"].endswith("1\n"), (result["stdout"], result["stderr"], result["denials"])


def test_git(client, certificates, server):
    code = f"git clone -q https://{HOST}:{server}/tiny.git out && cat out/answer"
    result = run(client, certificates, code, env_vars={"GIT_SSL_CAINFO": "/workspace/ca.pem"})
    assert result["stdout"] == "42\n", result


# Clients against the registries of this host.


def registry_rules(*names):
    """The sets @names, and rules for addresses that are not public where a mirror has such."""
    hosts = {"pypi": "pypi.org", "npm": "registry.npmjs.org", "crates": "index.crates.io"}
    rules = list(names)
    for name in names:
        try:
            address = socket.getaddrinfo(hosts[name], 443, type=socket.SOCK_STREAM)[0][4][0]
            socket.create_connection((address, 443), 20).close()
        except OSError as error:
            pytest.skip(f"needs the registry {name}: {error}")
        rules.append(f"{address}/32" if ":" not in address else f"[{address}/128]")
    return rules


@pytest.mark.phases("system")
def test_the_registries_of_this_host(certificates):
    npm, cargo = in_box("npm"), in_box("cargo")
    with daemon_with(registry_rules("pypi", "npm", "crates")) as daemon, daemon.client() as client:
        result = run(client, certificates, "/usr/bin/python3 -m pip download -q --no-deps -d d six && ls d")
        assert result["stdout"].startswith("six-"), result
        result = run(client, certificates, f"{npm} view left-pad version", resources={"memory": "1Gi"})
        assert result["stdout"].strip() == "1.3.0", result
        code = ("mkdir -p home m/src && cd m && echo 'fn main() {}' >src/main.rs && printf '[package]\\nname = \"m\"\\nversion = \"1.0.0\"\\n"
                "[dependencies]\\nitoa = \"=1.0.9\"\\n' >Cargo.toml\n"
                f"RUSTC_BOOTSTRAP=1 {cargo} -Z sparse-registry vendor -q >/dev/null && ls vendor")
        result = run(client, certificates, code, env_vars={"CARGO_HOME": "/workspace/home"}, resources={"memory": "1Gi"})
        assert result["stdout"] == "itoa\n", result
        result = run(client, certificates, "curl -sS https://example.com/")
        assert result["exit_code"] != 0
        assert brief(result["denials"]) == [("network", "example.com:443", "network.allow", 1)]


# What is refused.


def test_a_denial_names_what_was_refused(client, certificates, server):
    code = ("for i in 1 2 3; do curl -s https://example.com/; done\n"
            f"curl -s http://{HOST}:{server + 1}/; curl -s http://10.0.0.1/")
    denials = run(client, certificates, code)["denials"]
    assert brief(denials) == [
        ("network", "example.com:443", "network.allow", 3),
        ("network", f"{HOST}:{server + 1}", "network.allow", 1),
        ("network", "10.0.0.1:80", "network.allow", 1),
    ]


def test_the_program_reads_why(client, certificates):
    result = run(client, certificates, "curl -s http://example.com/ -w '%{http_code}'; curl -sS https://example.com/")
    assert result["stdout"] == "millibox: example.com is not on the allowlist\n403"
    assert "403" in result["stderr"]


def test_a_request_may_ask_for_no_network(client, certificates, server):
    result = run(client, certificates, f"env | grep -ci _proxy; curl -sS https://{HOST}:{server}/hello.txt", network="none")
    assert result["stdout"].splitlines()[0] == "0"
    assert result["exit_code"] != 0 and result["denials"] == []


def test_other_networks_are_refused(client):
    for network in ("bridge", "host"):
        answer = client.post("/api/v1/execute", {"language": "shell", "code": "true", "network": network})
        assert answer.status == 403 and f"network '{network}' is not allowed" in answer.json["error_detail"], answer.json


def test_the_default_is_no_network(make_daemon):
    with make_daemon().start().client() as client:
        answer = client.post("/api/v1/execute", {"language": "shell", "code": "true", "network": "allowlist"})
        assert answer.status == 403, answer.json
        assert client.shell("env | grep -ci proxy; ls /proc/net/dev && wc -l < /proc/net/tcp")["stdout"].split()[0] == "0"


def test_a_bad_rule_is_an_error_at_start(tmp_path):
    for rule in ("http://example.com", "example.com:0", "*", "169.254.169.254/32"):
        with pytest.raises(AssertionError, match="network.allow"), daemon_with([rule]):
            pass


# Hosts that a request names.

ASK = "import socket; s = socket.create_connection(('127.0.0.1', 3128)); s.sendall(b'CONNECT {0} HTTP/1.1\\r\\nHost: {0}\\r\\n\\r\\n'); print(s.recv(100)[9:12])"


def test_a_request_names_fewer_hosts_than_its_policy(client, server):
    site = f"{HOST}:{server}"
    for hosts, status in (([site, f"127.0.0.1/32:{server}"], "200"), ([f"127.0.0.1/32:{server}"], "403"), ([], "403")):
        result = client.execute("python", ASK.format(site), network_allow=hosts)
        assert result["stdout"] == f"b'{status}'\n", (hosts, result)
    refused = client.post("/api/v1/execute", {"language": "python", "code": "1", "network_allow": ["other.test"]})
    assert (refused.status, refused.json["field"]) == (403, "network_allow") and "network.request" in refused.json["error_detail"]
    both = client.post("/api/v1/execute", {"language": "python", "code": "1", "network_allow": [site], "network": "none"})
    assert (both.status, both.json["field"]) == (400, "network_allow")


def test_a_tool_names_fewer_hosts_than_its_policy(daemon, server):
    site, address = f"{HOST}:{server}", f"127.0.0.1/32:{server}"
    code = {"language": "python", "code": ASK.format(site)}

    def printed(m, **more):
        result = m.call("execute_code", **code, **more)
        assert not result["isError"], result
        return result["structuredContent"]["output"]

    with Mcp(daemon.socket) as m:
        assert printed(m) == printed(m, network_allow=[site, address]) == "b'200'\n"
        assert printed(m, network_allow=[address]) == "b'403'\n"
        for tool in ("manage_session", "create_sandbox"):
            more = {"action": "create"} if tool == "manage_session" else {}
            for hosts, status in (([site, address], "200"), ([address], "403")):
                session = m.call(tool, network_allow=hosts, **more)["structuredContent"]["session_id"]
                assert printed(m, session_id=session) == f"b'{status}'\n", hosts
                # The box has its hosts already; to ignore the request would give more than it names.
                for late in (m.call("execute_code", **code, session_id=session, network_allow=[site]),
                             m.call("exec_command", command="true", session_id=session, network_allow=[])):
                    assert late["isError"] and late["structuredContent"]["field"] == "network_allow", late
                m.call("manage_session", action="end", session_id=session)
            refused = m.call(tool, network_allow=["other.test"], **more)
            assert refused["isError"] and refused["structuredContent"]["field"] == "network_allow", refused
        assert "network_allow" in m.call("more_tools", query="execute_code")["structuredContent"]["output"]


def test_a_session_keeps_the_hosts_that_it_named(server):
    """Across a restart, and after a change of the policy it reaches those that are still granted."""
    rules = [f"{HOST}:{server}", f"127.0.0.1/32:{server}"]
    with resolver(HOST) as names, daemon_with([*rules, "*.test"], config=f"egress: {{resolver: '{names}'}}\n") as daemon:
        with daemon.client() as client:
            session = Session(client, mode="persistent", network_allow=rules)
            assert client.get(f"/api/v1/sessions/{session.id}").json["network_allow"] == rules
            assert session.run(ASK.format(rules[0]))["stdout"] == "b'200'\n"
            assert session.run(ASK.format("other.test:80"))["stdout"] == "b'403'\n"
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            session.client = client
            assert client.get(f"/api/v1/sessions/{session.id}").json["network_allow"] == rules
            for texts, status in ((rules, "200"), (rules[1:], "403"), (rules, "200")):
                reload_policy(daemon, texts)
                assert session.run(ASK.format(rules[0]))["stdout"] == f"b'{status}'\n", daemon.log()
            assert client.request("DELETE", f"/api/v1/sessions/{session.id}").status in (200, 204)


# Sessions.


def test_a_session_reaches_the_host_across_a_restart(server):
    rules = [f"{HOST}:{server}", f"127.0.0.1/32:{server}"]
    with resolver(HOST) as names, daemon_with(rules, config=f"egress: {{resolver: '{names}'}}\n") as daemon:
        use_across_a_restart(daemon, server)


def use_across_a_restart(daemon, server):
    code = ("import socket; s = socket.create_connection(('127.0.0.1', 3128)); "
            f"s.sendall(b'CONNECT {HOST}:{server} HTTP/1.1\\r\\nHost: {HOST}:{server}\\r\\n\\r\\n'); print(s.recv(100)[:12])")
    with daemon.client() as client:
        session = Session(client, mode="persistent")
        assert session.run(code)["stdout"] == "b'HTTP/1.1 200'\n"
        refused = session.run("import urllib.request as r\ntry: r.urlopen('http://example.com/')\nexcept Exception as e: print(e.code)")
        assert refused["stdout"] == "403\n" and [d["what"] for d in refused["denials"]] == ["example.com:80"]
    daemon.kill()
    daemon.start()
    with daemon.client() as client:
        answer = client.post(f"/api/v1/sessions/{session.id}/execute", {"code": code, "wait": True})
        assert answer.status == 200 and answer.json["stdout"] == "b'HTTP/1.1 200'\n", answer.json
        assert client.request("DELETE", f"/api/v1/sessions/{session.id}").status in (200, 204)


def test_rules_change_while_a_session_lives(server):
    rules = [f"{HOST}:{server}", f"127.0.0.1/32:{server}"]
    code = ("import socket; s = socket.create_connection(('127.0.0.1', 3128)); "
            f"s.sendall(b'CONNECT {HOST}:{server} HTTP/1.1\\r\\nHost: {HOST}:{server}\\r\\n\\r\\n'); print(s.recv(100)[9:12])")
    with resolver(HOST) as names, daemon_with(rules, config=f"egress: {{resolver: '{names}'}}\n") as daemon:
        with daemon.client() as client:
            session = Session(client, mode="persistent")
            assert session.run(code)["stdout"] == "b'200'\n"
            assert session.run("open_one = s\ns.settimeout(20)")["exit_code"] == 0
            for texts, status in (([], "b'403'\n"), (rules, "b'200'\n")):
                reload_policy(daemon, texts)
                assert session.run(code)["stdout"] == status, daemon.log()
            # The connection that the rules refused meanwhile is over.
            assert session.run("print(open_one.recv(10))")["stdout"] == "b''\n"


def test_a_session_without_a_network_has_none_after_a_restart(server):
    with daemon_with([f"{HOST}:{server}"]) as daemon:
        with daemon.client() as client:
            session = Session(client, mode="persistent", network="none")
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            assert client.get(session.path).json["network"] == "none"
            answer = client.post(f"{session.path}/execute", {"code": "import os; print('HTTP_PROXY' in os.environ)", "wait": True})
            assert answer.json["stdout"] == "False\n"
            assert client.request("DELETE", session.path).status in (200, 204)


def reload_policy(daemon, rules):
    folder = pathlib.Path(re.search(r"dir: (\S+),", (daemon.home / "millibox.yaml").read_text()).group(1))
    before = daemon.log().count("reloaded")
    (folder / "net.yaml").write_text(policy(rules))
    os.kill(daemon.pid, signal.SIGHUP)
    host.wait_until(lambda: daemon.log().count("reloaded") > before, 10, lambda: f"reloaded: {daemon.log()}")


def test_the_proxy_is_started_again(daemon, client, certificates, server):
    starter = host.child_named(daemon.pid, "millibox-egress")
    [proxy] = host.wait_until(lambda: host.children(starter), 10, "the starter has started the proxy")
    code = f"curl -sS --cacert ca.pem https://{HOST}:{server}/hello.txt"
    assert run(client, certificates, code)["stdout"] == "hello\n"
    subprocess.run(["kill", "-9", str(proxy)], check=True)
    assert run(client, certificates, code)["stdout"] == "hello\n"
    host.wait_until(lambda: host.children(starter) not in ([], [proxy]), 10, "another proxy")


def test_a_new_proxy_gets_the_sockets_of_many_boxes(server):
    """With long rules, a few boxes fill the socket to a proxy that has just started."""
    rules = [f"{HOST}:{server}", f"127.0.0.1/32:{server}", *(f"{'x' * 60}.{'y' * 60}.{i}.test" for i in range(200))]
    code = f"curl -s -o /dev/null -w '%{{http_connect}}' https://{HOST}:{server}/; true"
    with resolver(HOST) as names, daemon_with(rules, config=f"egress: {{resolver: '{names}'}}\n") as daemon:
        with daemon.client() as client:
            sessions = [Session(client, mode="persistent", language="shell", resources={"memory": "32Mi", "disk": "1Mi"})
                        for _ in range(24)]
            for session in sessions:
                assert session.run("true")["exit_code"] == 0
            starter = host.child_named(daemon.pid, "millibox-egress")
            [proxy] = host.wait_until(lambda: host.children(starter), 10, "the starter has started the proxy")
            subprocess.run(["kill", "-9", str(proxy)], check=True)
            assert [session.run(code)["stdout"] for session in sessions] == ["200"] * len(sessions)


def test_without_a_proxy_a_network_is_refused(server):
    with daemon_with([f"{HOST}:{server}"]) as daemon, daemon.client() as client:
        starter = host.child_named(daemon.pid, "millibox-egress")
        [proxy] = host.wait_until(lambda: host.children(starter), 10, "the starter has started the proxy")
        subprocess.run(["kill", "-9", str(starter), str(proxy)], check=True)
        host.wait_until(lambda: "no network until a restart" in daemon.log(), 10, "the log says so")
        answer = client.post("/api/v1/execute", {"language": "shell", "code": "true"})
        assert answer.status == 503 and "network 'allowlist'" in answer.json["error_detail"], answer.json
        assert client.shell("echo 42", network="none")["stdout"] == "42\n"
