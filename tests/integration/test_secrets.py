# SPDX-License-Identifier: Apache-2.0
"""Secrets: set, listed without values, used by boxes that do not have them, replaced, deleted, kept over restarts."""

import contextlib
import json
import os
import pathlib
import pty
import shutil
import signal
import stat
import subprocess

import pytest

from support import host
from support.daemon import BUILD
from support.sessions import Session
from support.sites import make_certificate, serve
from support.vault import API, FETCH, VALUE, Host, Vault

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl"),
]


@pytest.fixture(scope="module")
def vault():
    with Vault() as v:
        yield v


@pytest.fixture
def client(vault):
    with vault.daemon.client() as client:
        yield client


@pytest.fixture
def secret(vault):
    """The secret "api", until the end of a test."""
    made = vault.set("api")
    for server in (vault.plain, vault.secure, vault.other):
        server.take()
        server.key = VALUE
    yield made
    with vault.daemon.client() as client:
        client.request("DELETE", "/api/v1/secrets/api")


def fetch(client, url, secrets=("api",), headers=None, **fields):
    """What a program gets that asks for @url."""
    code = f"{FETCH}\nprint(json.dumps(fetch({url!r}, {headers or {}!r})))"
    return json.loads(client.python(code, secrets=list(secrets), **fields)["stdout"])


# The API.


def test_no_answer_has_the_value(vault, client, secret):
    assert secret["hosts"] == [vault.plain_url, vault.secure_url]
    assert (secret["mode"], secret["header"], secret["format"], secret["status"]) == (
        "header", "Authorization", "Bearer {value}", "active")  # fmt: skip
    shown = [client.get("/api/v1/secrets"), client.get("/api/v1/secrets/api")]
    assert [row["name"] for row in shown[0].json["secrets"]] == ["api"]
    assert VALUE not in json.dumps([secret, *[answer.json for answer in shown]])
    assert client.get("/api/v1/secrets/none").status == 404
    assert client.request("DELETE", "/api/v1/secrets/none").json["error_code"] == "Sandbox.SecretNotFound"


@pytest.mark.parametrize("fields, field", [
    ({}, "value"), ({"value": "short"}, "value"), ({"value": "a\r\nX: injected"}, "value"),
    ({"value": VALUE}, "hosts"), ({"value": VALUE, "hosts": []}, "hosts"), ({"value": VALUE, "hosts": ["*.a.test"]}, "hosts"),
    ({"value": VALUE, "hosts": ["10.0.0.1"]}, "hosts"), ({"value": VALUE, "hosts": ["a.test/path"]}, "hosts"),
    ({"value": VALUE, "hosts": ["a.test"], "header": "Content-Length"}, "header"),
    ({"value": VALUE, "hosts": ["a.test"], "format": "Bearer"}, "format"),
    ({"value": VALUE, "hosts": ["a.test"], "format": "{value}\nX: y"}, "format"),
    ({"value": VALUE, "hosts": ["a.test"], "env": "LD_PRELOAD"}, "env"),
    ({"value": VALUE, "hosts": ["a.test"], "mode": "query"}, "mode"),
    ({"value": VALUE, "hosts": ["a.test"], "hots": 1}, "hots"),
])  # fmt: skip
def test_a_bad_field_is_named_and_nothing_is_set(client, fields, field):
    answer = client.request("PUT", "/api/v1/secrets/bad", fields)
    assert answer.status == 400, answer
    assert field in answer.json["error_detail"] + str(answer.json.get("field")), answer
    assert VALUE not in answer.body.decode()
    assert client.get("/api/v1/secrets/bad").status == 404


def test_the_audit_log_names_the_secret(vault, client, secret):
    vault.delete("api")
    path = client.get("/api/v1/audit").json["path"]

    def text():
        return pathlib.Path(path).read_text() if host.is_root() else subprocess.run(
            [str(BUILD / "millibox"), "audit", "tail", path], capture_output=True, text=True, check=True).stdout  # fmt: skip

    # Responses do not wait for the lines.
    host.wait_until(lambda: '"secret.set"' in text() and '"secret.delete"' in text(), 10, text)
    assert VALUE not in text()


# Use.


def test_the_host_accepts_what_the_program_does_not_have(vault, client, secret):
    assert fetch(client, f"{vault.plain_url}/a")[:2] == [200, "accepted"]
    assert vault.plain.keys() == [f"Bearer {VALUE}"]
    # Control: without the secret the same program is refused.
    assert fetch(client, f"{vault.plain_url}/a", secrets=[])[:2] == [401, "refused"]
    assert vault.plain.keys() == [None]


def test_a_header_of_the_program_is_replaced(vault, client, secret):
    assert fetch(client, f"{vault.plain_url}/a", headers={"authorization": "mine"})[0] == 200
    assert vault.plain.keys() == [f"Bearer {VALUE}"]


def test_a_placeholder_is_replaced_in_its_header(vault, client):
    made = vault.set("mark", mode="placeholder", env="API_KEY")
    code = (f"{FETCH}\nkey = os.environ['API_KEY']\n"
            f"print(json.dumps([key, fetch({vault.plain_url + '/a'!r}, {{'Authorization': 'Bearer ' + key, 'X-Other': key}})]))")
    vault.plain.take()
    key, got = json.loads(client.python(code, secrets=["mark"])["stdout"])
    assert key == made["placeholder"] and got[0] == 200
    [(_, _, headers, _)] = vault.plain.take()
    assert (headers["Authorization"], headers["X-Other"]) == (f"Bearer {VALUE}", key)
    vault.delete("mark")


def test_other_hosts_and_ports_get_nothing(vault, client, secret):
    for url in (f"http://{API}:{vault.other_port}/a", f"http://other.test:{vault.other_port}/a"):
        assert fetch(client, url)[0] == 401
    assert vault.other.keys() == [None, None]


def test_a_body_passes(vault, client, secret):
    code = f"{FETCH}\nprint(fetch({vault.plain_url + '/a'!r}, {{}}, b'x' * 100000)[0])"
    assert client.python(code, secrets=["api"])["stdout"] == "200\n"
    assert len(vault.plain.take()[0][3]) == 100000


# TLS.


def test_python_trusts_the_proxy(vault, client, secret):
    assert fetch(client, f"{vault.secure_url}/a")[:2] == [200, "accepted"]
    assert vault.secure.keys() == [f"Bearer {VALUE}"]


def test_curl_and_node_trust_the_proxy(vault, client, secret):
    result = client.shell(f"curl -sS {vault.secure_url}/a && curl -sS -x socks5h://127.0.0.1:3128 -d x=1 {vault.secure_url}/b",
                          secrets=["api"])  # fmt: skip
    assert (result["stdout"], result["stderr"]) == ("acceptedaccepted", "")
    assert vault.secure.keys() == [f"Bearer {VALUE}"] * 2
    if shutil.which("node", path="/usr/bin:/usr/local/bin:/bin"):
        code = f"node -e \"require('https').get('{vault.secure_url}/a'\""
        assert client.shell(f"{code} 2>/dev/null; env | grep -c /run/millibox/ca.pem", secrets=["api"])["stdout"] == "7\n"


def test_large_bodies_pass_both_ways(vault, client, secret):
    """More than the sockets hold, so that each side waits for the other."""
    vault.secure.size = 3_000_000
    code = (f"{FETCH}\nup = fetch({vault.secure_url + '/a'!r}, {{}}, b'x' * 3000000)\n"
            f"down = fetch({vault.secure_url + '/size'!r})\nprint(up[0], down[0], len(down[1]))")
    assert client.python(code, secrets=["api"])["stdout"] == "200 200 3000000\n"
    assert [len(body) for *_, body in vault.secure.take()] == [3000000, 0]


def test_a_tunnel_without_a_secret_is_not_touched(vault, client, secret):
    """The program sees the certificate of the host, and no file of ours."""
    code = f"{FETCH}\nprint(os.path.exists('/run/millibox/ca.pem'), fetch({vault.secure_url + '/a'!r}))"
    result = client.python(code, env_vars={"SSL_CERT_FILE": "/workspace/ca.pem"}, files={"ca.pem": vault.ca.read_text()})
    assert result["stdout"].startswith("False [401, 'refused'"), result
    assert vault.secure.keys() == [None]


def test_a_host_must_prove_its_name(vault, client, secret):
    """A server with a certificate of another authority gets nothing, not even the request."""
    with serve(Host().handler(), vault.folder / "tls") as good, strange_host(vault) as (strange, port):
        vault.allow += [f"{API}:{port},{good}", f"127.0.0.1/32:{port},{good}"]
        vault.write_policy("net")
        os.kill(vault.daemon.pid, signal.SIGHUP)
        vault.set("strange", [f"{API}:{port}", f"{API}:{good}"])
        def answer():
            return [fetch(client, f"https://{API}:{p}/a", ["strange"]) for p in (port, good)]

        host.wait_until(lambda: answer()[1][0] == 200, 20, "the policy was reloaded")
        status, text, _ = answer()[0]
        assert status == 502 and "cannot prove its name" in text, text
        assert strange.take() == []
        vault.delete("strange")
        vault.allow = vault.allow[:3]
        vault.write_policy("net")
        os.kill(vault.daemon.pid, signal.SIGHUP)


@contextlib.contextmanager
def strange_host(vault):
    folder = vault.folder / "strange"
    folder.mkdir()
    make_certificate(folder, API)
    server = Host()
    with serve(server.handler(), folder) as port:
        yield server, port


# Who may use it.


def test_the_policy_decides(vault, client, secret):
    def refused(field="secrets", **fields):
        answer = client.post("/api/v1/execute", {"language": "python", "code": "1", "secrets": ["api"], **fields})
        assert answer.json["field"] == field, answer
        return answer.status, answer.json["error_detail"]

    status, why = refused(policy="none")
    assert status == 403 and "network.secrets" in why
    status, why = refused(policy="plain")
    assert status == 403 and "network.intercept" in why
    assert refused(secrets=["nothing"])[0] == 400
    assert refused(secrets=["api", "api"])[0] == 400
    assert refused(network="none")[0] == 400
    explained = client.post("/api/v1/policy/explain", {"language": "python", "secrets": ["api"], "policy": "none"}).json
    assert not explained["allowed"]


def test_secrets_belong_to_a_tenant(vault, client, secret):
    assert client.post("/api/v1/tenants", {"name": "acme", "quotas": {"secrets": 1}}).status == 201
    key = client.post("/api/v1/keys", {"tenant": "acme", "scopes": ["read", "execute", "secrets"]}).json
    acme = {"headers": {"X-API-Key": key["key"]}}
    try:
        assert client.get("/api/v1/secrets", **acme).json["secrets"] == []
        assert client.get("/api/v1/secrets/api", **acme).status == 404
        assert client.request("DELETE", "/api/v1/secrets/api", **acme).status == 404
        body = {"language": "python", "code": "1", "secrets": ["api"]}
        assert client.post("/api/v1/execute", body, **acme).status == 400
        made = {"value": "of-acme-0123456789", "hosts": [vault.plain_url]}
        assert client.request("PUT", "/api/v1/secrets/api", made, **acme).status == 200
        full = client.request("PUT", "/api/v1/secrets/second", made, **acme)
        assert (full.status, full.json["field"]) == (429, "quota.secrets")
        code = f"{FETCH}\nprint(fetch({vault.plain_url + '/a'!r})[0])"
        body = {"language": "python", "code": code, "secrets": ["api"]}
        assert client.post("/api/v1/execute", body, **acme).json["stdout"] == "401\n"
        assert vault.plain.keys() == ["Bearer of-acme-0123456789"]
        assert client.request("DELETE", "/api/v1/tenants/acme").status == 409
        assert client.request("DELETE", "/api/v1/secrets/api", **acme).status == 204
        reader = client.post("/api/v1/keys", {"tenant": "acme", "scopes": ["read", "execute"]}).json
        answer = client.request("PUT", "/api/v1/secrets/a", made, headers={"X-API-Key": reader["key"]})
        assert answer.json["error_code"] == "Sandbox.ScopeMissing"
        client.request("DELETE", f"/api/v1/keys/{reader['id']}")
    finally:
        client.request("DELETE", f"/api/v1/keys/{key['id']}")
        # The box of the last execution is removed after its answer and holds the tenant until then.
        host.wait_until(lambda: client.request("DELETE", "/api/v1/tenants/acme").status == 200, 10, "the tenant is deleted")


# Change.


def test_a_session_gets_every_change_at_once(vault, client, secret):
    session = Session(client, mode="persistent", secrets=["api"])
    assert client.get(session.path).json["secrets"] == ["api"]
    run = lambda: session.run(f"{FETCH}\nprint(fetch({vault.plain_url + '/a'!r})[0])")["stdout"]
    assert run() == "200\n"
    vault.plain.key = "another-0123456789"
    assert run() == "401\n"
    vault.set("api", value="another-0123456789")
    assert run() == "200\n"
    vault.delete("api")
    vault.plain.take()
    assert run() == "401\n"
    assert vault.plain.keys() == [None]
    session.delete()


def test_a_policy_takes_it_away(vault, client, secret):
    session = Session(client, mode="persistent", secrets=["api"], policy="net")
    run = lambda: session.run(f"{FETCH}\nprint(fetch({vault.plain_url + '/a'!r})[0])")["stdout"]
    assert run() == "200\n"
    vault.write_policy("net", secrets=[])
    os.kill(vault.daemon.pid, signal.SIGHUP)
    try:
        host.wait_until(lambda: run() == "401\n", 20, "the policy was reloaded")
    finally:
        vault.write_policy("net")
        os.kill(vault.daemon.pid, signal.SIGHUP)
    host.wait_until(lambda: run() == "200\n", 20, "the policy was reloaded again")
    session.delete()


def proxy_of(daemon):
    starters = [pid for pid in host.children(daemon.pid) if host.comm(pid).startswith("millibox-egress")]
    return next((pid for starter in starters for pid in host.children(starter)), None)


def test_a_new_proxy_has_the_secrets(vault, client, secret):
    session = Session(client, mode="persistent", secrets=["api"])
    run = lambda: session.run(f"{FETCH}\nprint(fetch({vault.plain_url + '/a'!r})[0])")["stdout"]
    assert run() == "200\n"
    secure = lambda: session.run(f"print(fetch({vault.secure_url + '/a'!r})[0])")["stdout"]
    assert secure() == "200\n"
    before = proxy_of(vault.daemon)
    os.kill(before, signal.SIGKILL)
    host.wait_until(lambda: proxy_of(vault.daemon) not in (None, before), 20, "another proxy")
    assert (run(), secure()) == ("200\n", "200\n")
    session.delete()


# The command line.


def millibox(vault, *args, **kw):
    return subprocess.run([str(BUILD / "millibox"), *args, "--socket", vault.daemon.socket], capture_output=True, text=True,
                          timeout=60, **kw)  # fmt: skip


def test_the_command_line(vault, client, tmp_path):
    done = millibox(vault, "secret", "set", "cli", "--host", vault.plain_url, input=f"{VALUE}\n")
    assert (done.returncode, done.stderr) == (0, ""), done
    vault.plain.take()
    done = millibox(vault, "run", "--secret", "cli", "-c", f"{FETCH}\nprint(fetch({vault.plain_url + '/a'!r})[0])")
    assert done.stdout == "200\n", done
    listed = millibox(vault, "secret", "list")
    assert "cli" in listed.stdout and vault.plain_url in listed.stdout and VALUE not in listed.stdout
    (tmp_path / "value").write_text("of-a-file-0123456789")
    assert millibox(vault, "secret", "set", "cli", "--file", str(tmp_path / "value")).returncode == 0
    assert fetch(client, f"{vault.plain_url}/a", secrets=["cli"])[0] == 401
    assert vault.plain.keys()[-1] == "Bearer of-a-file-0123456789"
    assert millibox(vault, "secret", "set", "cli", VALUE, input="").returncode == 2
    assert millibox(vault, "secret", "rm", "cli").returncode == 0
    assert "cli" not in millibox(vault, "secret", "list").stdout


def test_a_typed_value_is_not_shown(vault):
    controller, terminal = pty.openpty()
    process = subprocess.Popen([str(BUILD / "millibox"), "secret", "set", "typed", "--host", vault.plain_url, "--socket",
                                vault.daemon.socket], stdin=terminal, stdout=terminal, stderr=terminal)  # fmt: skip
    os.close(terminal)
    shown = b""
    while b"Value: " not in shown:
        shown += os.read(controller, 100)
    os.write(controller, VALUE.encode() + b"\n")
    try:
        while part := os.read(controller, 100):
            shown += part
    except OSError:
        pass  # the end of a terminal
    assert process.wait(host.HANG_S) == 0 and VALUE.encode() not in shown
    vault.delete("typed")


# Restart.


def test_secrets_survive_the_daemon():
    """Killed at any time, and with a new key after that."""
    with Vault() as v:
        made = v.set("api")
        state = v.daemon.home / "state"
        assert stat.S_IMODE((state / "secrets.key").stat().st_mode) == 0o600
        with v.daemon.client() as client:
            session = Session(client, mode="persistent", secrets=["api"])
        v.daemon.kill()
        v.daemon.start()
        for path in state.iterdir():
            if path.is_file():
                assert VALUE.encode() not in path.read_bytes(), path
        with v.daemon.client() as client:
            assert fetch(client, f"{v.plain_url}/a")[0] == 200
            session.client = client
            assert session.run(f"{FETCH}\nprint(fetch({v.plain_url + '/a'!r})[0])")["stdout"] == "200\n"
            assert session.run(f"print(fetch({v.secure_url + '/a'!r})[0])")["stdout"] == "200\n", "the same authority"
        before = (state / "secrets.key").read_text()
        rotate = subprocess.run([*v.daemon.command(), "--rotate-key"], capture_output=True, text=True, timeout=60, check=False)
        assert rotate.returncode == 0, rotate
        assert len((state / "secrets.key").read_text().split()) == 2
        assert v.daemon.stop() == 0
        v.daemon.start()
        after = (state / "secrets.key").read_text()
        assert len(after.split()) == 1 and after not in before
        with v.daemon.client() as client:
            assert fetch(client, f"{v.plain_url}/a")[0] == 200
            assert client.get("/api/v1/secrets/api").json["placeholder"] == made["placeholder"]
        assert v.daemon.stop() == 0
        (state / "secrets.key").unlink()
        v.daemon.start()
        with v.daemon.client() as client:
            assert client.get("/api/v1/secrets/api").json["status"] == "unusable"
            answer = client.post("/api/v1/execute", {"language": "python", "code": "1", "secrets": ["api"]})
            assert answer.status == 503 and "set it again" in answer.json["error_detail"]
        v.set("api")
        with v.daemon.client() as client:
            assert fetch(client, f"{v.plain_url}/a")[0] == 200


def test_the_key_can_be_a_credential(tmp_path):
    with Vault() as v:
        v.daemon.stop()
        (tmp_path / "secrets.key").write_text("ab" * 32 + "\n")
        v.daemon.env["CREDENTIALS_DIRECTORY"] = str(tmp_path)
        v.daemon.start()
        v.set("api")
        with v.daemon.client() as client:
            assert fetch(client, f"{v.plain_url}/a")[0] == 200
        assert v.daemon.stop() == 0
        (tmp_path / "secrets.key").write_text("cd" * 32 + "\n" + "ab" * 32 + "\n")
        v.daemon.start()
        with v.daemon.client() as client:
            assert client.get("/api/v1/secrets/api").json["status"] == "active"
        assert v.daemon.stop() == 0
        (tmp_path / "secrets.key").write_text("cd" * 32 + "\n")
        v.daemon.start()
        with v.daemon.client() as client:
            assert fetch(client, f"{v.plain_url}/a")[0] == 200
