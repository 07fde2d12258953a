# SPDX-License-Identifier: Apache-2.0
"""Named policies: explain matches what is granted, a refusal names its rule and creates nothing, and SIGHUP loads a
new set completely or not at all."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from support import host, isolation
from support.daemon import BUILD, ROOT, Daemon

pytestmark = pytest.mark.phases("system")

EXPLAIN = "/api/v1/policy/explain"
TEAM = """
name: team
description: Ours
extends: default
limits:
  timeout: {default: 5s, max: 20s}
  memory: {default: 64Mi, max: 128Mi, on_exceed: refuse}
  output: {default: 64, max: 100, on_overflow: kill}
languages:
  deny: [shell]
env:
  deny: ["*TOKEN*"]
"""


@pytest.fixture
def policies():
    """Folders of policies that the daemon can still read as its own user."""
    made = []

    def create(**files):
        made.append(pathlib.Path(tempfile.mkdtemp(prefix=Daemon.prefix_of_homes)))
        made[-1].chmod(0o755)
        for name, text in files.items():
            write(made[-1], name, text)
        return made[-1]

    yield create
    for folder in made:
        shutil.rmtree(folder)


def write(folder, name, text):
    (folder / f"{name}.yaml").write_text(text)
    (folder / f"{name}.yaml").chmod(0o644)


def config_of(folder, default="default", selectable="strict"):
    return f"policy: {{dir: {folder}, default: {default}, selectable: [{selectable}]}}\n"


def explain(client, **body):
    body.setdefault("language", "python")
    answer = client.post(EXPLAIN, body)
    assert answer.status == 200, answer.json
    return answer.json


def hang_up(daemon, word):
    """Send SIGHUP and return what the log says."""
    before = daemon.log().count(word)
    os.kill(daemon.pid, signal.SIGHUP)
    host.wait_until(lambda: daemon.log().count(word) > before, 10, f"'{word}' in the log: {daemon.log()}")


# Built-in policies.


@pytest.mark.smoke
def test_the_shipped_policies_are_listed_with_every_rule(client):
    heads = {p["name"]: p for p in client.get("/api/v1/policies").json["policies"]}
    assert set(heads) == {"default", "owner", "strict", "permissive"}
    assert heads["default"]["yours"] and not heads["strict"]["yours"]
    assert heads["strict"]["selectable"] and not heads["permissive"]["selectable"]
    strict = client.get("/api/v1/policies/strict").json
    rules = {rule["path"]: rule for rule in strict["rules"]}
    assert rules["limits.memory.max"]["value"] == "256Mi" and rules["limits.memory.max"]["policy"] == "strict"
    assert rules["network.mode"]["value"] == "none" and rules["network.mode"]["policy"] == "default"
    text = (ROOT / "data/policies/strict.yaml").read_text().splitlines()
    assert "256Mi" in text[rules["limits.memory.max"]["line"] - 1]
    for name in ("nobody", "Strict", "..", "x" * 70):
        assert client.get(f"/api/v1/policies/{name}").status == 404


def test_settings_decide_where_no_policy_does(client):
    explained = explain(client)
    assert explained["allowed"] and explained["policy"] == "default" and explained["chosen"] is None and explained["refusal"] is None
    limits = explained["grants"]["limits"]
    assert limits["memory"]["granted"] == "512Mi"
    assert limits["memory"]["rule"]["text"] == "setting: limits.memory"
    assert limits["timeout"]["granted"] == 30
    assert explained["grants"]["network"]["granted"] == "none"
    assert explained["grants"]["network"]["rule"]["text"] == "policy default: network.mode"
    explained = explain(client, resources={"memory": "100Gi"}, timeout=7)["grants"]["limits"]
    assert explained["memory"]["requested"] == "100Gi" and explained["memory"]["granted"] == "8Gi"
    assert explained["memory"]["rule"]["text"] == "setting: limits.memory_max"
    assert explained["timeout"]["granted"] == 7 and explained["timeout"]["rule"]["by"] == "request"


def test_a_request_may_select_strict_only(client):
    body = {"language": "python", "code": "print(1)"}
    assert client.post("/api/v1/execute", {**body, "policy": "strict"}).json["status"] == "success"
    assert client.post("/api/v1/execute", {**body, "policy": "default"}).status == 200
    for name in ("permissive", "nobody"):
        answer = client.post("/api/v1/execute", {**body, "policy": name})
        assert answer.status == 403 and answer.json["error_code"] == "Sandbox.PolicyDenied"
        assert answer.json["field"] == "policy" and "selectable: default, strict" in answer.json["error_detail"]
    answer = client.post("/api/v1/execute", {**body, "policy": "strict", "resources": {"memory": "512Mi"}})
    assert answer.status == 403
    assert "policy strict: limits.memory.max: 512Mi is above the maximum of 256Mi" in answer.json["error_detail"]


def memory_of(client, **fields):
    """The memory that the kernel grants: how far a bytearray can grow, in MiB."""
    code = (
        "import resource\nblocks = []\n"
        "for i in range(64):\n    blocks.append(bytearray(16 << 20))\n    print(16 * (i + 1), flush=True)\n"
    )
    result = client.post("/api/v1/execute", {"language": "python", "code": code, **fields}).json
    lines = result["stdout"].split()
    return result, int(lines[-1]) if lines else 0


@pytest.mark.phases("system", "user")
def test_explain_matches_what_a_run_gets(client):
    strict = explain(client, policy="strict")["grants"]["limits"]
    assert strict["memory"]["granted"] == "128Mi" and strict["max_processes"]["granted"] == 32
    result, grown = memory_of(client, policy="strict")
    # Without a controller an ordinary user's program is refused the memory, and lives.
    assert grown < 128 and (result["limit"] == "memory" or not host.is_root())
    result, grown = memory_of(client)  # negative control: the default policy grants more
    assert grown > 128
    body = {"language": "python", "code": "import time\ntime.sleep(30)", "policy": "strict", "timeout": 0.5}
    assert explain(client, policy="strict", timeout=0.5)["grants"]["limits"]["timeout"]["granted"] == 0.5
    result = client.post("/api/v1/execute", body).json
    assert result["status"] == "timeout" and result["limit"] == "time"


def test_output_beyond_the_limit_ends_the_program_under_strict(client):
    code = "import sys, time\nsys.stdout.write('x' * (1 << 19))\nsys.stdout.flush()\ntime.sleep(55)\nprint('end')"
    body = {"language": "python", "code": code, "timeout": 50, "resources": {"max_output": "256Ki"}}
    result = client.post("/api/v1/execute", {**body, "policy": "strict"}).json
    assert result["status"] == "failed" and result["limit"] == "output" and result["signal"] == 9, result["status"]
    assert len(result["stdout"]) == 256 * 1024 and result["metrics"]["duration_ms"] < 40_000
    # negative control: without the rule the program runs to its end
    result = client.post("/api/v1/execute", {**body, "code": code.replace("55", "0.1")}).json
    assert result["status"] == "success" and result["stdout_truncated"]


def test_a_session_that_overflows_is_interrupted_and_keeps_its_variables(make):
    session = make(policy="strict")
    assert session.info()["policy"] == "strict"
    session.run("kept = 41")
    result = session.run("while True: print('y' * 1000)")
    assert result["status"] == "failed" and result["limit"] == "output"
    assert not result["session_reset"]
    assert session.run("kept + 1")["results"][0]["text/plain"] == "42"


@pytest.mark.parametrize("network", ["allowlist", "bridge", "host"])
def test_network_is_refused_by_its_rule(client, network):
    body = {"language": "python", "code": "1", "network": network}
    answer = client.post("/api/v1/execute", body)
    assert answer.status == 403 and answer.json["field"] == "network"
    assert "policy default: network.mode" in answer.json["error_detail"]
    assert client.post("/api/v1/sessions", {"network": network}).status == 403
    explained = explain(client, network=network)
    assert not explained["allowed"] and explained["grants"] is None
    assert explained["rule"]["text"] == "policy default: network.mode" and explained["refusal"]["field"] == "network"
    assert client.post("/api/v1/execute", {**body, "network": "none"}).status == 200


@pytest.mark.phases("system", "user")
def test_a_refused_request_creates_nothing(daemon, client):
    before = {s["id"] for s in client.get("/api/v1/sessions").json["sessions"]}
    for body in ({"policy": "permissive"}, {"network": "host"}, {"policy": "strict", "lifetime": 7200}):
        assert client.post("/api/v1/sessions", {"mode": "persistent", "session_id": "never", **body}).status == 403
        assert client.get("/api/v1/sessions/never").status == 404
    assert {s["id"] for s in client.get("/api/v1/sessions").json["sessions"]} == before
    assert not daemon.box_pids()
    # negative control: an allowed request creates a box
    assert client.post("/api/v1/sessions", {"mode": "persistent", "session_id": "never"}).status == 201
    host.wait_until(daemon.box_pids, 10, "a box")
    assert client.request("DELETE", "/api/v1/sessions/never").status == 200


@pytest.mark.phases("system", "user")
def test_explaining_creates_nothing(daemon, client):
    explained = explain(client, kind="session", mode="persistent", session_id="ghost")
    assert explained["allowed"] and explained["kind"] == "session"
    assert explained["grants"]["limits"]["lifetime"]["granted"] == 4 * 3600
    assert explained["grants"]["limits"]["timeout"]["rule"]["path"] == "sessions.idle_timeout"
    assert client.get("/api/v1/sessions/ghost").status == 404 and not daemon.box_pids()


@pytest.mark.parametrize(
    "body, field",
    [
        ({"language": "python", "kind": "both"}, "kind"), ({"language": "python", "kind": 5}, "kind"),
        ({"language": "python", "kind": "session\0"}, "kind"), ({"kind": "session", "code": "1"}, "code"),
        ({"language": "python", "lifetime": 5}, "lifetime"), ({"language": "python", "timeout": "x"}, "timeout"),
        ({"language": 5}, "language"), ({"language": "python", "policy": "Not A Name"}, "policy"),
    ],
)  # fmt: skip
def test_malformed_explain_requests_are_errors(client, body, field):
    answer = client.post(EXPLAIN, body)
    assert answer.status == 400 and field in json.dumps(answer.json)


def test_an_unknown_language_can_be_explained(client):
    explained = explain(client, language="cobol")
    assert not explained["allowed"] and explained["rule"] is None and explained["refusal"]["field"] == "language"


# Custom policies.


def test_a_tenants_policy_is_enforced_rule_by_rule(make_daemon, policies):
    daemon = make_daemon(config=config_of(policies(team=TEAM), default="team")).start()
    with daemon.client() as client:
        refused = [
            ({"language": "shell"}, "policy team: languages.deny"),
            ({"language": "sh"}, "policy team: languages.deny"),
            ({"env_vars": {"MY_TOKEN": "s3cret"}}, "policy team: env.deny"),
            ({"resources": {"memory": "129Mi"}}, "policy team: limits.memory.max"),
        ]
        for fields, rule in refused:
            body = {"language": "python", "code": "1", **fields}
            answer = client.post("/api/v1/execute", body)
            assert answer.status == 403 and rule in answer.json["error_detail"], answer.json
            assert "s3cret" not in json.dumps(answer.json)
            assert explain(client, **fields)["rule"]["text"] == rule
        assert "s3cret" not in daemon.log()
        explained = explain(client, timeout=60)["grants"]["limits"]
        assert explained["timeout"]["granted"] == 20 and explained["timeout"]["rule"]["text"] == "policy team: limits.timeout.max"
        assert explained["timeout"]["rule"]["line"] == 6
        result = client.post("/api/v1/execute", {"language": "python", "code": "print('z' * 80)"}).json
        assert result["limit"] == "output" and len(result["stdout"]) == 64


def test_a_policy_may_allow_ephemeral_sessions_only(make_daemon, policies):
    """Who asks for no mode gets less than the default, and reads it."""
    folder = policies(brief="name: brief\nsessions: {modes: [ephemeral]}\n")
    with make_daemon(config=config_of(folder, default="brief")).start().client() as client:
        given = client.post("/api/v1/sessions", {}).json
        assert given["mode"] == "ephemeral" and "files do not stay" in given["warnings"][0], given
        assert "warnings" not in client.post("/api/v1/sessions", {"mode": "ephemeral"}).json
        refused = client.post("/api/v1/sessions", {"mode": "workspace"})
        assert refused.status == 403 and "policy brief: sessions.modes" in refused.json["error_detail"], refused


@pytest.mark.phases("system", "user")
def test_unsupported_driver_features_are_refused_and_not_ignored(make_daemon, policies):
    asks = {
        "mount": "name: mount\nmounts: ['/srv:/srv']\n",
        "net": "name: net\nnetwork: {mode: bridge}\n",
    }
    daemon = make_daemon(config=config_of(policies(**asks), selectable="mount, net")).start()
    with daemon.client() as client:
        body = {"language": "python", "code": "1"}
        answer = client.post("/api/v1/execute", {**body, "policy": "mount"})
        assert answer.status == 503 and "policy mount: mounts" in answer.json["error_detail"]
        # the tenant's own policy grants none, so naming one that grants more changes nothing
        assert client.post("/api/v1/execute", {**body, "policy": "net"}).status == 200
    daemon = make_daemon(config=config_of(policies(**asks), default="net")).start()
    with daemon.client() as client:
        answer = client.post("/api/v1/execute", body)
        assert answer.status == 503 and "driver: network" in answer.json["error_detail"]
        assert client.post("/api/v1/execute", {**body, "network": "none"}).status == 200


LISTED = """
name: listed
network: {mode: allowlist, allow: [api.example.com, "*.example.org:8443"], intercept: true}
"""
SHORTER = """
name: shorter
network: {mode: allowlist, allow: [api.example.com, other.example.net]}
"""


def test_explain_shows_the_whole_network_policy(make_daemon, policies):
    folder = policies(listed=LISTED, shorter=SHORTER)
    daemon = make_daemon(config=config_of(folder, default="listed", selectable="shorter")).start()
    with daemon.client() as client:
        reach = explain(client)["grants"]["reach"]
        assert {name: (grant["requested"], grant["granted"], grant["rule"]["text"]) for name, grant in reach.items()} == {
            "allow": (None, ["api.example.com", "*.example.org:8443"], "policy listed: network.allow"),
            "secrets": (None, [], "policy listed: network.secrets"),
            "intercept": (None, True, "policy listed: network.intercept"),
        }
        reach = explain(client, kind="session", policy="shorter")["grants"]["reach"]
        assert {name: (grant["granted"], grant["rule"]["policy"]) for name, grant in reach.items()} == {
            "allow": (["api.example.com"], "listed"), "secrets": ([], "shorter"), "intercept": (False, "shorter"),
        }  # fmt: skip
        assert explain(client, network="none")["grants"]["reach"] == {}
    shown = millibox("policy", "explain", daemon=daemon)
    assert shown.returncode == 0 and "[" not in shown.stdout and "{" not in shown.stdout, shown
    lines = shown.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  allow "))
    assert lines[at].split(maxsplit=3) == ["allow", "-", "api.example.com", "policy listed: network.allow"]
    assert lines[at + 1].split() == ["*.example.org:8443"]
    assert lines[at + 2].split(maxsplit=3) == ["secrets", "-", "none", "policy listed: network.secrets"]


# Reloading.


def test_sighup_loads_a_new_set_and_sessions_keep_theirs(make_daemon, policies):
    folder = policies(team=TEAM)
    daemon = make_daemon(config=config_of(folder, default="team")).start()
    with daemon.client() as client:
        made = client.post("/api/v1/sessions", {"mode": "persistent", "session_id": "old"})
        assert made.status == 201 and made.json["policy"] == "team" and made.json["resources"]["memory"] == "64Mi"
        write(folder, "team", TEAM.replace("64Mi", "96Mi").replace("[shell]", "[python]"))
        hang_up(daemon, "reloaded the policies")
        assert client.post("/api/v1/execute", {"language": "python", "code": "1"}).status == 403
        assert client.post("/api/v1/execute", {"language": "shell", "code": "true"}).json["status"] == "success"
        assert explain(client, language="shell")["grants"]["limits"]["memory"]["granted"] == "96Mi"
        # a session keeps what it was granted and denied: language, memory
        run = client.post("/api/v1/sessions/old/execute", {"code": "6 * 7", "wait": True})
        assert run.status == 200 and run.json["results"][0]["text/plain"] == "42"
        run = client.post("/api/v1/sessions/old/execute", {"code": "true", "language": "shell", "wait": True})
        assert run.status == 403 and "policy team: languages.deny" in run.json["error_detail"]
        assert client.get("/api/v1/sessions/old").json["resources"]["memory"] == "64Mi"
        assert client.request("DELETE", "/api/v1/sessions/old").status == 200


def test_sighup_with_an_error_keeps_the_old_set(make_daemon, policies):
    folder = policies(team=TEAM)
    daemon = make_daemon(config=config_of(folder, default="team")).start()
    with daemon.client() as client:
        write(folder, "team", TEAM.replace("5s", "6s"))
        write(folder, "other", "name: other\nlimits:\n  memory: {maximum: 1Gi}\n")
        hang_up(daemon, "the old policies stay")
        assert "other.yaml:3" in daemon.log() and "limits.memory.max" in daemon.log()
        assert explain(client)["grants"]["limits"]["timeout"]["granted"] == 5
        assert client.get("/api/v1/policies/other").status == 404
        (folder / "team.yaml").unlink()
        (folder / "other.yaml").unlink()
        hang_up(daemon, "there is no policy 'team'")
        assert explain(client)["grants"]["limits"]["timeout"]["granted"] == 5
        write(folder, "team", TEAM.replace("5s", "6s"))
        hang_up(daemon, "reloaded the policies")
        assert explain(client)["grants"]["limits"]["timeout"]["granted"] == 6
    assert daemon.process.poll() is None


@pytest.mark.phases("system", "user")
@pytest.mark.parametrize(
    "files, settings, message",
    [
        ({"bad": "name: bad\nlimit: 5\n"}, {}, "bad.yaml:2: 'limit' is not a key of a policy"),
        ({}, {"default": "nobody"}, "policy.default: there is no policy 'nobody'"),
        ({}, {"selectable": "nobody"}, "policy.selectable: there is no policy 'nobody'"),
    ],
)
def test_a_daemon_does_not_start_on_bad_policies(policies, tmp_path, files, settings, message):
    (tmp_path / "c.yaml").write_text(config_of(policies(**files), **settings))
    command = [str(BUILD / "milliboxd"), "--config", str(tmp_path / "c.yaml"), "--state-dir", str(tmp_path / "s"), "--isolation", isolation.mode()]
    for more in (["--check-config"], ["--socket", str(tmp_path / "sock"), "--listen", ""]):
        ended = subprocess.run(command + more, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 3 and message in ended.stderr, ended.stderr
    (tmp_path / "c.yaml").write_text(config_of(policies()))
    assert subprocess.run(command + ["--check-config"], capture_output=True, timeout=60).returncode == 0


# The command line.


def millibox(*words, daemon=None, env=None):
    more = ["--socket", daemon.socket] if daemon else []
    command = [str(BUILD / "millibox"), *words, *more]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin", **(env or {})}
    )


def test_the_command_line_explains(daemon):
    explained = millibox("policy", "explain", "--memory", "100Gi", "-t", "7", daemon=daemon)
    assert explained.returncode == 0 and explained.stderr == ""
    rows = {line.split()[0]: line.split(maxsplit=3) for line in explained.stdout.splitlines()}
    assert rows["memory"][1:] == ["100Gi", "8Gi", "setting: limits.memory_max"]
    assert rows["timeout"][1:3] == ["7", "7"] and rows["timeout"][3].startswith("request")
    assert rows["disk"][3] == "built-in rule: half of resources.memory"
    explained = millibox("policy", "explain", "--policy", "strict", "--memory", "1Gi", daemon=daemon)
    assert explained.returncode == 1 and "policy strict: limits.memory.max" in explained.stderr
    explained = millibox("policy", "explain", "--session", "--lifetime", "10m", "--json", daemon=daemon)
    assert json.loads(explained.stdout)["grants"]["limits"]["lifetime"]["granted"] == 600
    assert millibox("policy", "explain", "--lifetime", "10m", daemon=daemon).returncode == 2
    assert millibox("policy", "explain", "--network", "lan", daemon=daemon).returncode == 2


def test_the_command_line_lists_and_shows(daemon):
    explained = millibox("policy", "list", daemon=daemon)
    assert [line.split()[:2] for line in explained.stdout.splitlines()[1:]] == [
        ["default", "yours"], ["owner", "-"], ["permissive", "-"], ["strict", "selectable"],
    ]  # fmt: skip
    explained = millibox("policy", "show", "strict", daemon=daemon)
    assert any(
        line.split()[:2] == ["limits.memory.max", "256Mi"] and "(strict, line" in line
        for line in explained.stdout.splitlines()
    )
    assert millibox("policy", "show", "nobody", daemon=daemon).returncode == 125
    assert millibox("policy", "show", "../x", daemon=daemon).returncode == 2


def test_the_command_line_runs_under_a_policy(daemon):
    run = millibox("run", "-c", "print(1)", "--policy", "strict", "--network", "none", daemon=daemon)
    assert run.returncode == 0 and run.stdout == "1\n"
    run = millibox("run", "-c", "print(1)", "--policy", "strict", "--memory", "1Gi", daemon=daemon)
    assert run.returncode == 125 and "policy strict: limits.memory.max" in run.stderr
    assert "network.mode" in millibox("run", "-c", "1", "--network", "host", daemon=daemon).stderr


def test_the_command_line_checks_files_without_a_daemon(policies):
    folder = policies(team=TEAM, child="name: child\nextends: team\n", bad="name: bad\nlimits:\n  cpu: {max: many}\n")
    checked = millibox("policy", "check", str(folder / "team.yaml"), str(folder / "child.yaml"))
    assert checked.returncode == 0 and checked.stdout.count(": ok") == 2, checked.stderr
    for name, reason in (("bad", "bad.yaml:3: 'limits.cpu.max' must be a number of cores"),
                         ("child", "child.yaml:2: 'extends' names a policy that does not exist"),
                         ("none", "none.yaml': No such file or directory")):
        checked = millibox("policy", "check", str(folder / f"{name}.yaml"))
        assert checked.returncode == 1 and reason in checked.stderr and ": ok" not in checked.stdout
        assert checked.stderr.startswith("millibox: ")
    for file in sorted((ROOT / "data/policies").glob("*.yaml")):
        assert millibox("policy", "check", str(file)).returncode == 0
    assert millibox("policy", "check").returncode == 2


# Tenants.


@pytest.mark.phases("system", "user")
def test_each_tenant_has_its_policy_and_sees_no_other(make_daemon, policies):
    daemon = make_daemon(config=config_of(policies(team=TEAM)), tcp=True).start()
    with daemon.client() as client:
        assert client.post("/api/v1/tenants", {"name": "acme", "policy": "nobody"}).status == 400
        assert client.post("/api/v1/tenants", {"name": "acme", "policy": "team"}).status == 201
        key = client.post("/api/v1/keys", {"tenant": "acme"}).json["key"]
        acme = {"headers": {"Authorization": f"Bearer {key}"}}
        body = {"language": "shell", "code": "true"}
        assert client.post("/api/v1/execute", body, **acme).status == 403
        assert explain_as(client, acme, body)["policy"] == "team"
        listed = client.get("/api/v1/policies", **acme).json["policies"]
        assert {p["name"] for p in listed} == {"team", "strict"}
        assert client.get("/api/v1/policies/permissive", **acme).status == 404
        # its own and strict both apply: the smaller value
        explained = explain_as(client, acme, {"language": "python", "policy": "strict"})["grants"]["limits"]
        assert explained["max_output"]["granted"] == "100" and explained["max_processes"]["granted"] == 32
        assert explained["max_output"]["rule"]["text"] == "policy team: limits.output.max"
        assert explained["memory"]["granted"] == "128Mi" and explained["memory"]["rule"]["policy"] == "strict"
        patched = client.request("PATCH", "/api/v1/tenants/acme", {"policy": "nobody"})
        assert patched.status == 400 and patched.json["field"] == "policy"
        assert client.request("PATCH", "/api/v1/tenants/acme", {"policy": "default"}).status == 200
        assert client.post("/api/v1/execute", body, **acme).json["status"] == "success"


def explain_as(client, who, body):
    answer = client.post(EXPLAIN, body, **who)
    assert answer.status == 200, answer.json
    return answer.json
