# SPDX-License-Identifier: Apache-2.0
"""Packages of a registry on executions, sessions and templates: installed in a box of their own, found in a layer."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading

import pytest

from support import host
from support.daemon import BUILD
from support.identity import KeyClient, make_key, make_tenant
from support.sessions import read_events
from support.registry import Registry, daemon_of, needs_pip, sdist, wheel

V1 = "/api/v1"
LAYERS = f"{V1}/packages/layers"

pytestmark = [
    pytest.mark.phases("system"),
    needs_pip,
]


@pytest.fixture(scope="module")
def registry():
    made = Registry()
    made.add(wheel("tinypkg"))
    made.add(wheel("tinypkg", "2.0"))
    made.add(wheel("needy", requires=["tinypkg<2"]))
    yield made
    made.close()


@pytest.fixture(scope="module")
def daemon(registry):
    with daemon_of(registry) as made:
        yield made


@pytest.fixture
def client(daemon):
    with daemon.client() as made:
        yield made


def run(client, code, **fields):
    answer = client.post(f"{V1}/execute", {"language": "python", "code": code, **fields})
    assert answer.status == 200, answer
    return answer.json


def layers(client):
    return client.get(LAYERS).json["layers"]


def failed(answer, *words):
    assert answer.status == 422 and answer.json["error_code"] == "Sandbox.InstallFailed", answer
    for word in words:
        assert word in answer.json["error_detail"], answer.json
    return answer.json


def test_an_execution_gets_its_packages(client, registry):
    registry.asked.clear()
    done = run(client, "import tinypkg; print(tinypkg.VALUE, tinypkg.__file__)", packages=["tinypkg==1.0"])
    assert done["stdout"] == "1.0 /opt/millibox/packages/pip/tinypkg/__init__.py\n", done
    asked = list(registry.asked)
    assert asked
    done = run(client, "import tinypkg\ntinypkg.VALUE", packages=["tinypkg==1.0"])
    assert done["result"] == "1.0" and registry.asked == asked  # from the cache
    layer = next(item for item in layers(client) if item["packages"] == ["tinypkg==1.0"])
    shown = client.get(f"{LAYERS}/{layer['id']}").json
    assert "tinypkg==1.0 --hash=sha256:" in shown["lock"] and "CPython" in shown["lock"]


def test_another_execution_has_none_of_them(client):
    run(client, "1", packages=["tinypkg==1.0"])
    done = run(client, "import tinypkg")
    assert done["error"]["name"] == "ModuleNotFoundError"


def test_other_programs_of_the_box_find_them(client):
    done = run(client, "import subprocess\nsubprocess.run(['python3', '-c', 'import tinypkg; print(tinypkg.VALUE)'])", packages=["tinypkg==1.0"])
    assert done["stdout"] == "1.0\n", done


def test_a_layer_cannot_be_changed(client):
    code = "import tinypkg\ntry:\n    open(tinypkg.__file__, 'a')\nexcept OSError as e:\n    print(e.errno)"
    assert run(client, code, packages=["tinypkg==1.0"])["stdout"] in ("30\n", "13\n")


def test_compiled_files_are_used(client):
    """A layer does not keep times; an interpreter that compiled at each import would be slow."""
    code = "import tinypkg, importlib.util\nprint(tinypkg.__spec__.cached, open(tinypkg.__spec__.cached, 'rb').read(8)[4])"
    cached, flags = run(client, code, packages=["tinypkg==1.0"])["stdout"].split()
    assert cached.startswith("/opt/millibox/packages/pip/tinypkg/__pycache__/") and flags == "1"  # a hash that is not checked


def test_dependencies_come_too(client):
    done = run(client, "import needy, tinypkg\ntinypkg.VALUE", packages=["needy"])
    assert done["result"] == "1.0"


def test_the_same_resolution_shares_no_tree(client):
    """What a lock says is the word of install scripts, which the script of the template stands for."""
    spoil = "echo 'VALUE = \"spoiled\"' > /workspace/layer/pip/tinypkg/__init__.py"
    body = {"id": "spoiled", "name": "spoiled", "image": "host", "packages": ["tinypkg==2.0"], "run": spoil}
    assert client.post(f"{V1}/templates", body).status == 201
    assert run(client, "import tinypkg\ntinypkg.VALUE", packages=["tinypkg>=2.0"])["result"] == "2.0"
    both = [item for item in layers(client) if item["packages"] in (["tinypkg==2.0"], ["tinypkg>=2.0"])]
    assert len({item["lock_digest"] for item in both}) == 1 and len(both) >= 2


def test_a_lock_with_hashes(client, registry):
    run(client, "1", packages=["needy"])
    layer = next(item for item in layers(client) if item["packages"] == ["needy"])
    lock = client.get(f"{LAYERS}/{layer['id']}").json["lock"]
    done = run(client, "import needy, tinypkg\nneedy.VALUE + tinypkg.VALUE", lock=lock)
    assert done["result"] == "1.01.0"
    wrong = lock.replace("sha256:", "sha256:0000", 1)
    answer = client.post(f"{V1}/execute", {"code": "1", "language": "python", "lock": wrong[: wrong.index("0000") + 64] + wrong[wrong.index("0000") + 68:]})
    failed(answer, "hash")


def test_a_lock_of_a_session_and_of_a_template(client):
    run(client, "1", packages=["needy"])
    layer = next(item for item in layers(client) if item["packages"] == ["needy"])
    lock = client.get(f"{LAYERS}/{layer['id']}").json["lock"]
    with a_session(client, lock=lock) as session:
        assert run_in(client, session, "import needy, tinypkg\nneedy.VALUE + tinypkg.VALUE")["result"] == "1.01.0"
    made = client.post(f"{V1}/templates", {"id": "locked", "name": "locked", "image": "host", "lock": lock})
    assert made.status == 201 and made.json["lock"] == lock, made
    assert run(client, "import needy, tinypkg\nneedy.VALUE + tinypkg.VALUE", template_id="locked")["result"] == "1.01.0"
    spoiled = lock.replace("sha256:", "sha256:" + "0" * 8, 1)
    at = spoiled.index("sha256:") + len("sha256:") + 64
    spoiled = spoiled[:at] + spoiled[at + 8:]
    failed(client.post(f"{V1}/sessions", {"mode": "persistent", "lock": spoiled}), "hash")
    failed(client.post(f"{V1}/templates", {"id": "spoiled-lock", "name": "spoiled-lock", "image": "host", "lock": spoiled}), "hash")


def test_a_missing_package_is_named(client):
    answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", "packages": ["no-such-package"]})
    body = failed(answer, "no-such-package", "No matching distribution")
    assert "ERROR: No matching distribution found for no-such-package" in body["log"]


def test_a_package_that_does_not_build_is_named(client, registry):
    registry.add(sdist("brokenpkg", "raise SystemExit('this package is broken on purpose')"))
    answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", "packages": ["brokenpkg"]})
    assert "broken on purpose" in failed(answer, "brokenpkg")["log"]


@pytest.mark.parametrize("name", ["--index-url=http://x", "../x", "a b", "https://example.com/x.whl", "x;y", ""])
def test_what_is_no_name_is_refused(client, name):
    answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", "packages": ["tinypkg", name]})
    assert answer.status == 400 and answer.json["field"] == "packages[1]", answer


def test_packages_and_lock_exclude_each_other(client):
    answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", "packages": ["tinypkg"], "lock": "tinypkg==1.0"})
    assert answer.status == 400 and answer.json["field"] == "lock", answer


def test_a_language_without_a_manager(client):
    answer = client.post(f"{V1}/execute", {"language": "shell", "code": "1", "packages": ["surely-not-there"]})
    assert answer.status == 400 and answer.json["field"] == "packages[0]", answer


def test_progress_streams(client, registry):
    registry.add(wheel("streamed"))
    answer = client.post(f"{V1}/execute", {"language": "python", "code": "import streamed\nprint('ran')", "packages": ["streamed"], "stream": True})
    events = [json.loads(line) for line in answer.body.decode().splitlines() if line.startswith("{")] or [
        json.loads(line.removeprefix("data:")) for line in answer.body.decode().splitlines() if line.startswith("data:")]
    kinds = [event.get("event") or event.get("type") for event in events]
    assert kinds[0] == "install" and "start" in kinds and kinds[-1] == "end", kinds
    assert any("Successfully installed streamed" in event["data"] for event in events if "data" in event), events
    ids = [line for line in answer.body.decode().splitlines() if line.startswith("id:")]
    assert len(set(ids)) == len(ids)


def test_a_failure_after_progress_is_an_event(client, registry):
    registry.add(sdist("slowbroken", "print('working')\nraise SystemExit('broken')"))
    answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", "packages": ["slowbroken"], "stream": True})
    assert answer.status == 200 and "Sandbox.InstallFailed" in answer.body.decode(), answer


def test_layers_are_made_ahead_and_removed(client):
    made = client.post(LAYERS, {"packages": ["tinypkg==2.0", "needy==1.0"][:1], "language": "python"})
    assert made.status == 201 and made.json["manager"] == "pip", made
    path = f"{LAYERS}/{made.json['id']}"
    assert client.request("DELETE", path).status == 204
    assert client.get(path).status == 404 and client.request("DELETE", path).status == 404


def test_a_template_with_packages(client, daemon):
    made = client.post(f"{V1}/templates", {"id": "tiny", "name": "tiny", "image": "host", "language": "python", "packages": ["tinypkg"]})
    assert made.status == 201 and made.json["manager"] == "pip" and made.json["packages_bytes"] > 0, made
    assert made.json["available"] is True
    done = run(client, "import tinypkg\ntinypkg.VALUE", template_id="tiny")
    assert done["result"] == "2.0"
    layer = next(item for item in layers(client) if item["packages"] == ["tinypkg"])
    assert layer["users"] >= 1
    refused = client.request("DELETE", f"{LAYERS}/{layer['id']}")
    assert refused.status == 409, refused
    assert client.request("PUT", f"{V1}/templates/tiny", body=json.dumps({"packages": ["tinypkg==1.0"]}).encode(),
                          headers={"Content-Type": "application/json"}).status == 200
    assert run(client, "import tinypkg\ntinypkg.VALUE", template_id="tiny")["result"] == "1.0"
    assert client.request("DELETE", f"{V1}/templates/tiny").status == 204
    # A box that is being torn down still uses it.
    host.wait_until(lambda: client.request("DELETE", f"{LAYERS}/{layer['id']}").status == 204, 10, "the layer can be removed")


def test_a_template_whose_packages_fail_is_not_made(client):
    failed(client.post(f"{V1}/templates", {"id": "bad", "name": "bad", "image": "host", "packages": ["no-such-package"]}), "no-such-package")
    assert client.get(f"{V1}/templates/bad").status == 404


def test_a_bad_template_is_refused_before_anything_is_installed(client, registry):
    registry.asked.clear()
    answer = client.post(f"{V1}/templates", {"id": "python-basic", "name": "x", "image": "host", "packages": ["tinypkg>0"]})
    assert answer.status == 409 and registry.asked == [], answer


def test_they_survive_a_restart(registry):
    with daemon_of(registry) as daemon:
        with daemon.client() as client:
            client.post(f"{V1}/templates", {"id": "tiny", "name": "tiny", "image": "host", "packages": ["tinypkg==1.0"]})
            run(client, "1", packages=["needy"])
            session = client.post(f"{V1}/sessions", {"mode": "persistent", "packages": ["tinypkg==2.0"]}).json["session_id"]
            client.post(f"{V1}/sessions/{session}/execute", {"code": "import tinypkg", "wait": True})
            roots = sorted(path.name for path in (daemon.home / "state/roots").glob("pkg-*"))
        daemon.process.kill()
        daemon.process.wait()
        # What a crash in the middle of an installation leaves.
        (daemon.home / "state/roots/pkg-leftover").mkdir(mode=0o777)
        daemon.start()
        registry.asked.clear()
        with daemon.client() as client:
            assert run(client, "import tinypkg\ntinypkg.VALUE", template_id="tiny")["result"] == "1.0"
            assert run(client, "import needy\nneedy.VALUE", packages=["needy"])["result"] == "1.0"
            done = client.post(f"{V1}/sessions/{session}/execute", {"code": "import tinypkg, os\ntinypkg.VALUE + str(os.path.exists(tinypkg.__file__))", "wait": True})
            assert done.json["result"] == "2.0True", done
            assert registry.asked == []
        host.wait_until(lambda: sorted(path.name for path in (daemon.home / "state/roots").glob("pkg-*")) == roots, 20,
                        "what the crash left is removed, and nothing else")


def test_the_least_recently_used_layers_make_room(registry):
    for i in range(4):
        registry.add(wheel(f"big{i}", files={f"big{i}.py": "X = 1\n", f"big{i}.bin": "x" * 3_000_000}))
    with daemon_of(registry, packages={"max_per_tenant": "10Mi"}) as daemon, daemon.client() as client:
        for i in range(3):
            run(client, "1", packages=[f"big{i}"])
        run(client, "1", packages=["big0"])
        run(client, "1", packages=["big3"])
        assert [item["packages"][0] for item in layers(client)] == ["big2", "big0", "big3"]
        host.wait_until(lambda: len(list((daemon.home / "state/roots").glob("pkg-*"))) == 3, 20, "the tree of the fourth is gone")
        # A template keeps its layer, whatever comes.
        client.post(f"{V1}/templates", {"id": "kept", "name": "kept", "image": "host", "packages": ["big2"]})
        for i in (0, 1, 3, 0, 1, 3):
            run(client, "1", packages=[f"big{i}"])
        assert run(client, "import big2\nbig2.X", template_id="kept")["result"] == 1


def test_too_large_a_layer_is_refused(registry):
    registry.add(wheel("huge", files={"huge.py": "", "huge.bin": "x" * 3_000_000}))
    with daemon_of(registry, packages={"max_size": "1Mi"}) as daemon, daemon.client() as client:
        answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", "packages": ["huge"]})
        assert answer.status in (413, 422), answer
        assert layers(client) == []
        host.wait_until(lambda: not list((daemon.home / "state/roots").glob("pkg-*")), 60, "its tree is removed")


def test_an_unreachable_registry_is_an_error_at_once(registry):
    with daemon_of(registry, packages={"pip_url": "http://nothing.test:1/simple"}) as daemon, daemon.client() as client:
        answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", "packages": ["tinypkg"]})
        failed(answer, "nothing.test", "registry")


def test_a_registry_with_a_private_address_names_the_setting(registry):
    """And that setting opens it."""
    wanted = {"language": "python", "code": "import tinypkg\ntinypkg.VALUE", "packages": ["tinypkg==1.0"]}
    with daemon_of(registry, rules=[]) as daemon, daemon.client() as client:
        detail = failed(client.post(f"{V1}/execute", wanted), "address that is not public", "egress.pypi: ")["error_detail"]
        for language, name in (("javascript", "npm"), ("rust", "crates")):
            other = client.post(f"{V1}/packages/layers", {"language": language, "packages": ["tiny"]})
            if other.status != 503:  # the toolchain is not installed
                failed(other, f"egress.{name}: ")
    rules = json.loads(detail.partition("egress.pypi: ")[2])
    assert rules == [registry.address, f"127.0.0.1:{registry.port}"]
    # It replaces what the setting had, and so repeats that.
    for given, listed in ((["files.test:1"], True), ([f"{'x' * 50}.test:{port}" for port in range(1, 4)], False)):
        with daemon_of(registry, rules=given) as daemon, daemon.client() as client:
            detail = failed(client.post(f"{V1}/execute", wanted), "egress.pypi: ")["error_detail"]
        what, _, shown = detail.partition("egress.pypi: ")
        if listed:
            assert json.loads(shown) == [registry.address, *given, rules[1]]
        else:
            assert what.endswith("the operator adds to ") and shown == rules[1], detail
    with daemon_of(registry, rules=rules) as daemon, daemon.client() as client:
        assert run(client, wanted["code"], packages=wanted["packages"])["result"] == "1.0"


@pytest.fixture
def folder():
    """The daemon reads it as another user. It is not in pytest's folder, which every run of pytest closes to others when it starts."""
    with tempfile.TemporaryDirectory(prefix="mbxtest-") as made:
        path = pathlib.Path(made)
        path.chmod(0o755)
        yield path


def test_policies_decide_on_managers(registry, folder):
    (folder / "tight.yaml").write_text("name: tight\npackages: {allow: [npm]}\n")
    config = f"policy: {{dir: {folder}, default: tight}}\n"
    with daemon_of(registry, config) as daemon, daemon.client() as client:
        answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", "packages": ["tinypkg"]})
        assert answer.status == 403 and "packages.allow" in answer.json["error_detail"], answer


@contextlib.contextmanager
def daemon_with(registry, folder, **policies):
    """A daemon with these policies, which requests may name; "open" is the default."""
    for name, text in {"open": "", **policies}.items():
        (folder / f"{name}.yaml").write_text(f"name: {name}\n{text}\n")
    config = f"policy: {{dir: {folder}, default: open, selectable: [{', '.join(policies)}]}}\n"
    with daemon_of(registry, config) as daemon, daemon.client() as client:
        yield daemon, client


def denied(answer, word):
    assert answer.status == 403 and word in answer.json["error_detail"], answer


def test_policies_decide_on_layers_that_are_there(registry, folder):
    registry.add(wheel("roomy", files={"roomy.py": "", "roomy.bin": "x" * 2_000_000}))
    policies = {"nopip": "packages: {deny: [pip]}", "small": "packages: {max_size: 1Mi}", "wide": "packages: {max_size: 16Mi}"}
    with daemon_with(registry, folder, **policies) as (daemon, client):
        request = {"language": "python", "code": "import roomy\n1", "packages": ["roomy"]}
        assert client.post(f"{V1}/execute", request).status == 200
        registry.asked.clear()
        denied(client.post(f"{V1}/execute", {**request, "policy": "nopip"}), "packages.deny")
        small = client.post(f"{V1}/execute", {**request, "policy": "small"})
        assert small.status == 413 and "packages.max_size" in small.json["error_detail"], small
        assert client.post(f"{V1}/execute", {**request, "policy": "wide"}).status == 200  # Control.
        assert registry.asked == [] and len(layers(client)) == 1
        (folder / "open.yaml").write_text("name: open\npackages: {allow: [npm]}\n")
        before = daemon.log().count("reloaded the policies")
        os.kill(daemon.pid, signal.SIGHUP)
        host.wait_until(lambda: daemon.log().count("reloaded the policies") > before, 10, "the policies are reloaded")
        denied(client.post(f"{V1}/execute", request), "packages.allow")


def test_policies_decide_on_installations_that_run(registry, folder):
    """A request that would join the installation of another is judged by its own policy: when it comes, and by size when it ends."""
    registry.add(wheel("slowly", files={"slowly.py": "", "slowly.bin": "x" * 2_000_000}))
    gate = threading.Event()
    registry.gate = gate
    policies = {"nopip": "packages: {deny: [pip]}", "small": "packages: {max_size: 1Mi}"}
    try:
        with daemon_with(registry, folder, **policies) as (daemon, client), concurrent.futures.ThreadPoolExecutor() as pool:
            request = {"language": "python", "code": "1", "packages": ["slowly"]}

            def ask(**fields):
                with daemon.client() as other:
                    return other.post(f"{V1}/execute", {**request, **fields})

            def joined():
                return client.get("/metrics").body.count(b'sandbox_package_lookups_total{result="joined"} 1')

            registry.asked.clear()
            first = pool.submit(ask)
            host.wait_until(lambda: registry.asked, 60, "the installation runs")
            denied(client.post(f"{V1}/execute", {**request, "policy": "nopip"}), "packages.deny")
            second = pool.submit(ask, policy="small")
            host.wait_until(joined, 20, "the request has joined")
            gate.set()
            assert first.result().status == 200, first.result()
            assert second.result().status == 413 and "packages.max_size" in second.result().json["error_detail"], second.result()
    finally:
        gate.set()
        registry.gate = None


def test_the_policy_of_a_session_decides_on_its_packages(registry, folder):
    with daemon_with(registry, folder, nopip="packages: {deny: [pip]}") as (_, client):
        for policy, status in (("nopip", 403), (None, 200)):
            with a_session(client, **({"policy": policy} if policy else {})) as session:
                for path, body in (("dependencies/install", {"dependencies": [{"name": "tinypkg", "version": "1.0"}]}), ("packages", {"packages": ["tinypkg==1.0"]})):
                    answer = client.post(f"{V1}/sessions/{session}/{path}", body)
                    assert answer.status == status, answer
                    assert status == 200 or "packages.deny" in answer.json["error_detail"], answer


def test_policies_decide_on_layers_of_templates(registry, folder):
    """By the manager that installed them, which the template's owner cannot rename, and by size."""
    registry.add(wheel("spacious", files={"spacious.py": "", "spacious.bin": "x" * 2_000_000}))
    policies = {"nopip": "packages: {deny: [pip]}", "npm": "packages: {allow: [npm]}", "small": "packages: {max_size: 1Mi}", "pip": "packages: {allow: [pip]}"}
    with daemon_with(registry, folder, **policies) as (daemon, client):
        assert client.post(f"{V1}/templates", {"id": "layered", "name": "layered", "image": "host", "packages": ["spacious"]}).status == 201
        request = {"language": "python", "code": "import spacious\n1", "template_id": "layered"}
        renamed = client.request("PUT", f"{V1}/templates/layered", body={"manager": "npm"})
        assert renamed.status == 400 and renamed.json["field"] == "manager", renamed
        for path, body in ((f"{V1}/execute", request), (f"{V1}/sessions", {"mode": "persistent", "template_id": "layered"})):
            denied(client.post(path, {**body, "policy": "nopip"}), "packages.deny")
            denied(client.post(path, {**body, "policy": "npm"}), "packages.allow")
            small = client.post(path, {**body, "policy": "small"})
            assert small.status == 413 and "packages.max_size" in small.json["error_detail"], small
            assert client.post(path, {**body, "policy": "pip"}).status in (200, 201)  # Control.
        # Control: of a template without a layer there is nothing to judge.
        assert client.post(f"{V1}/execute", {"language": "python", "code": "1", "template_id": "python-basic", "policy": "nopip"}).status == 200
        ran = cli(daemon, "run", "--template", "layered", "--policy", "nopip", "-c", "1")
        assert ran.returncode != 0 and "packages.deny" in ran.stderr, ran


def test_without_managers_packages_must_be_there(registry):
    with daemon_of(registry, env={"MILLIBOX_PACKAGES_MANAGERS": ""}) as daemon, daemon.client() as client:
        answer = client.post(f"{V1}/execute", {"language": "python", "code": "1", "packages": ["tinypkg"]})
        assert answer.status == 400 and answer.json["field"] == "packages[0]", answer


def test_a_tenant_does_not_see_the_layers_of_another(registry):
    with daemon_of(registry) as daemon, daemon.client() as client:
        make_tenant(client, "other")
        stranger = KeyClient(client.address, make_key(client, "other"))
        owner = KeyClient(client.address, make_key(client, "default"))
        run(owner, "1", packages=["tinypkg==1.0"])
        own = layers(owner)
        assert len(own) == 1
        path = f"{LAYERS}/{own[0]['id']}"
        assert layers(stranger) == [] and stranger.get(path).status == 404 and stranger.request("DELETE", path).status == 404
        registry.asked.clear()
        assert run(stranger, "import tinypkg\ntinypkg.VALUE", packages=["tinypkg==1.0"])["result"] == "1.0"
        assert registry.asked  # its own installation
        assert len(list(pathlib.Path(daemon.home / "state/roots").glob("pkg-*"))) == 2


# Sessions.


@contextlib.contextmanager
def a_session(client, **fields):
    made = client.post(f"{V1}/sessions", {"mode": "persistent", **fields})
    assert made.status == 201, made
    try:
        yield made.json["session_id"]
    finally:
        client.request("DELETE", f"{V1}/sessions/{made.json['session_id']}")


def run_in(client, session, code, **fields):
    answer = client.post(f"{V1}/sessions/{session}/execute", {"code": code, "wait": True, **fields})
    assert answer.status == 200, answer
    return answer.json


def test_a_session_with_packages(client):
    with a_session(client, packages=["tinypkg==1.0"]) as session:
        assert run_in(client, session, "import tinypkg\ntinypkg.__file__")["result"] == "/opt/millibox/packages/pip/tinypkg/__init__.py"
        assert run_in(client, session, "python3 -c 'import tinypkg; print(tinypkg.VALUE)'", language="shell")["stdout"] == "1.0\n"


def test_dependencies_are_installed_into_a_living_session(client):
    with a_session(client) as session:
        run_in(client, session, "x = 41")
        path = f"{V1}/sessions/{session}/dependencies/install"
        done = client.post(path, {"dependencies": [{"name": "tinypkg", "version": "1.0"}, {"name": "needy"}], "python_package_index_url": "http://mirror.test"})
        assert done.status == 200 and done.json["dependency_install_status"] == "completed", done
        assert done.json["python_package_index_url"] == "http://mirror.test"
        installed = {item["name"]: item["version"] for item in done.json["installed_dependencies"]}
        assert installed == {"tinypkg": "1.0", "needy": "1.0"}
        result = run_in(client, session, "import tinypkg, needy\n[x + 1, tinypkg.VALUE, tinypkg.__file__]")["result"]
        assert result[:2] == [42, "1.0"] and result[2].startswith("/workspace/.local/lib/python3."), result
        refused = client.post(path, {"dependencies": [{"name": "no-such-package"}]})
        assert "no-such-package" in failed(refused, "no-such-package")["log"]
        lenient = client.post(path, {"dependencies": [{"name": "no-such-package"}], "fail_on_dependency_error": False})
        assert lenient.status == 200 and lenient.json["dependency_install_status"] == "failed", lenient
        assert run_in(client, session, "x")["result"] == 41


def install(client, session, **body):
    return client.post(f"{V1}/sessions/{session}/packages", body)


def test_packages_come_into_a_running_session(client):
    with a_session(client) as session:
        missing = run_in(client, session, "x = 41\nimport tinypkg")
        assert missing["error"]["name"] == "ModuleNotFoundError", missing
        done = install(client, session, packages=["tinypkg==1.0"])
        assert done.status == 200 and (done.json["language"], done.json["manager"], done.json["packages"]) == ("python", "pip", ["tinypkg==1.0"]), done
        assert "tinypkg==1.0 --hash=sha256:" in done.json["lock"], done
        result = run_in(client, session, "import tinypkg\n[x + 1, tinypkg.VALUE, tinypkg.__file__]")["result"]
        assert result == [42, "1.0", done.json["path"] + "/tinypkg/__init__.py"] and result[2].startswith("/workspace/.local/"), result
        # What a later program starts finds them, too, and the session lists all that was installed.
        assert install(client, session, packages=["needy"]).status == 200
        shown = run_in(client, session, "python3 -c 'import needy, tinypkg; print(needy.VALUE, tinypkg.VALUE)'", language="shell")
        assert shown["stdout"] == "1.0 1.0\n", shown
        shown = client.get(f"{V1}/sessions/{session}").json
        assert {item["name"]: item["version"] for item in shown["installed_dependencies"]} == {"tinypkg": "1.0", "needy": "1.0"}, shown


def test_a_lock_comes_into_a_running_session(client):
    run(client, "1", packages=["needy"])
    layer = next(item for item in layers(client) if item["packages"] == ["needy"])
    with a_session(client) as session:
        done = install(client, session, lock=client.get(f"{LAYERS}/{layer['id']}").json["lock"])
        assert done.status == 200 and done.json["packages"] == [] and "needy==1.0" in done.json["lock"], done
        assert run_in(client, session, "import needy, tinypkg\nneedy.VALUE + tinypkg.VALUE")["result"] == "1.01.0"


def test_what_is_installed_later_precedes_a_layer(client):
    with a_session(client, packages=["tinypkg==1.0"]) as session:
        run_in(client, session, "import os")
        assert install(client, session, packages=["tinypkg==2.0"]).status == 200
        assert run_in(client, session, "import tinypkg\ntinypkg.VALUE")["result"] == "2.0"


def test_what_the_box_has_is_not_installed(client, registry):
    registry.asked.clear()
    with a_session(client) as session:
        done = install(client, session, packages=["pip"])
        assert done.status == 200 and (done.json["lock"], done.json["path"]) == (None, None) and registry.asked == [], done


def test_progress_of_packages_for_a_session(client, registry):
    registry.add(wheel("watched"))
    with a_session(client) as session:
        path = f"{V1}/sessions/{session}/packages"
        events = list(read_events(client, "POST", path, {"packages": ["watched"], "stream": True}, "application/x-ndjson"))
        assert {event["event"] for event in events[:-1]} == {"install"} and events[-1]["event"] == "end", events
        assert "Successfully installed watched" in "".join(event["data"] for event in events[:-1])
        assert "watched==1.0" in events[-1]["result"]["lock"]
        *_, failure = read_events(client, "POST", path, {"packages": ["no-such-package"], "stream": True}, "application/x-ndjson")
        assert failure["event"] == "error" and "no-such-package" in failure["error"]["log"], failure
        assert run_in(client, session, "import watched\nwatched.VALUE")["result"] == "1.0"


def test_refused_packages_for_a_session(client):
    with a_session(client) as session:
        for body, field in (({}, "packages"), ({"packages": []}, "packages"), ({"packages": ["-x"]}, "packages[0]"), ({"packages": ["tinypkg"], "lock": "x"}, "lock"),
                            ({"packages": ["tinypkg"], "language": "klingon"}, "language"), ({"packages": ["tinypkg"], "language": "lua"}, "language"),
                            ({"packages": ["tinypkg"], "colour": "red"}, "colour")):
            answer = install(client, session, **body)
            assert answer.status == 400 and answer.json["field"] == field, answer
        answer = install(client, session, packages=["surely-not-there"], language="c")
        assert answer.status == 400 and "template" in answer.json["error_detail"], answer
        assert "no-such-package" in failed(install(client, session, packages=["no-such-package"]), "no-such-package")["log"]
        assert client.post(f"{V1}/sessions/{session}/pause", {}).status == 200
        answer = install(client, session, packages=["tinypkg"])
        assert answer.status == 409 and "resume" in answer.json["error_detail"], answer
    assert install(client, session, packages=["tinypkg"]).status == 404


def test_a_session_is_created_with_its_dependencies(client):
    with a_session(client, dependencies=[{"name": "tinypkg", "version": ">=2"}]) as session:
        assert run_in(client, session, "import tinypkg\ntinypkg.VALUE")["result"] == "2.0"
        shown = client.get(f"{V1}/sessions/{session}").json
        assert shown["dependency_install_status"] == "completed" and shown["installed_dependencies"][0]["version"] == "2.0"
    index = "https://pypi.example/simple/"
    with a_session(client, dependencies=[{"name": "tinypkg"}], python_package_index_url=index) as session:
        assert client.get(f"{V1}/sessions/{session}").json["python_package_index_url"] == index
    made = client.post(f"{V1}/sessions", {"mode": "persistent", "dependencies": [{"name": "no-such-package"}], "python_package_index_url": index})
    assert made.status == 201 and made.json["dependency_install_status"] == "installing", made
    assert made.json["dependency_install_error"] is made.json["dependency_install_completed_at"] is None
    shown = client.get(f"{V1}/sessions/{made.json['session_id']}").json
    assert shown["status"] == "failed" and shown["dependency_install_status"] == "failed", shown
    # The package manager's reason, everywhere; the setting that other hosts lack is not the cause.
    reason = shown["dependency_install_error"]
    assert "No matching distribution found for no-such-package" in reason and "packages.managers" not in reason, shown
    assert shown["reason"] == shown["error"] == reason and shown["python_package_index_url"] == index
    lenient = client.post(f"{V1}/sessions", {"dependencies": [{"name": "no-such-package"}], "fail_on_dependency_error": False}).json
    host.wait_until(lambda: client.get(f"{V1}/sessions/{lenient['session_id']}").json["status"] != "creating", 20, "its box is made")
    shown = client.get(f"{V1}/sessions/{lenient['session_id']}").json
    assert shown["status"] == "running" and shown["dependency_install_error"] == reason, shown
    client.request("DELETE", f"{V1}/sessions/{lenient['session_id']}")


# Agents.


def call(client, tool, **arguments):
    answer = client.post(f"/mcp/tools/{tool}", arguments)
    return answer


def test_install_package(client):
    with a_session(client) as session:
        done = call(client, "install_package", sandbox_id=session, packages=["tinypkg==1.0"])
        assert done.status == 200 and "tinypkg==1.0" in done.body.decode(), done
        assert run_in(client, session, "import tinypkg\ntinypkg.VALUE")["result"] == "1.0"
        refused = call(client, "install_package", sandbox_id=session, packages=["no-such-package"])
        assert "no-such-package" in refused.body.decode() and "InstallFailed" in refused.body.decode(), refused


def test_a_tool_installs_what_its_program_needs(client, registry):
    with a_session(client) as session:
        done = call(client, "run_python", sandbox_id=session, code="import needy; print(needy.VALUE)", packages=["needy"])
        assert done.status == 200 and "1.0" in done.body.decode(), done
        registry.asked.clear()
        done = call(client, "run_python", sandbox_id=session, code="import needy; print(needy.VALUE)", packages=["needy"])
        assert done.status == 200 and registry.asked == [], done


# npm.

npm = pytest.mark.skipif(not (pathlib.Path("/usr/bin/npm").exists() and pathlib.Path("/usr/bin/node").exists()), reason="needs npm below /usr")


@npm
def test_a_layer_of_npm(client, registry):
    registry.add_npm("tinyjs")
    registry.add_npm("@scope/needy", dependencies={"tinyjs": "^1.0.0"}, files={"index.js": "module.exports = 'needs ' + require('tinyjs');\n"})
    made = client.post(LAYERS, {"manager": "npm", "language": "python", "packages": ["@scope/needy==1.0.0"]})
    if made.status == 503:
        pytest.skip(f"needs JavaScript: {made.json['error_detail']}")
    assert made.status == 201 and "tinyjs" in made.json["lock"] and "# node v" in made.json["lock"], made
    lock = made.json["lock"].split("\n", 1)[1]
    again = client.post(LAYERS, {"manager": "npm", "language": "python", "lock": lock})
    assert again.status == 201, again
    missing = client.post(LAYERS, {"manager": "npm", "language": "python", "packages": ["no-such-package"]})
    failed(missing, "no-such-package")
    template = client.post(f"{V1}/templates", {"id": "js", "name": "js", "image": "host", "manager": "npm", "packages": ["@scope/needy"]})
    assert template.status == 201, template
    done = client.shell("node -e 'console.log(require(\"@scope/needy\"))'", template_id="js", resources={"memory": "1Gi"})
    assert done["stdout"] == "needs 1.0.0\n", done


@npm
def test_import_finds_a_layer_of_npm(client, registry):
    registry.add_npm("esmonly", type="module", main="index.js", exports={"import": "./index.js"}, files={"index.js": "export const answer = 42;\nexport default 'esm';\n"})
    registry.add_npm("commonjs", files={"index.js": "exports.answer = 7;\n"})
    packages = ["esmonly", "commonjs"]
    code = "import esm, { answer } from 'esmonly';\nimport { answer as other } from 'commonjs';\nconst { default: again } = await import('esmonly');\nconsole.log(esm, answer, other, again);"
    for language in ("javascript", "typescript"):
        done = client.post(f"{V1}/execute", {"language": language, "code": code, "packages": packages}).json
        assert done["stdout"] == "esm 42 7 esm\n", done
    missing = client.post(f"{V1}/execute", {"language": "javascript", "code": "import 'nothing-there'", "packages": packages}).json
    assert "nothing-there" in missing["stderr"], missing


LOADS_LATE = """var late = [x];
for (const load of [() => require('latecommon'), () => import('lateesm')])
    try { late.push((await load()).answer); } catch (e) { late.push(e.code); }
late"""


@npm
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_npm_comes_into_a_running_session(client, registry, language):
    """Also after a failed attempt to load a package."""
    registry.add_npm("latecommon", files={"index.js": "exports.answer = 7;\n"})
    registry.add_npm("lateesm", type="module", main="index.js", exports={"import": "./index.js"}, files={"index.js": "export const answer = 42;\n"})
    with a_session(client, language=language) as session:
        first = run_in(client, session, f"var x = 41;\n{LOADS_LATE}")
        assert first["result"] == [41, "MODULE_NOT_FOUND", "ERR_MODULE_NOT_FOUND"], first
        done = install(client, session, packages=["latecommon", "lateesm"])
        assert done.status == 200 and (done.json["manager"], done.json["path"]) == ("npm", "/workspace/node_modules"), done
        second = run_in(client, session, f"x += 1;\n{LOADS_LATE}")
        assert second["result"] == [42, 7, 42], second


def test_a_search_path_of_the_caller_is_added(client):
    code = "import tinypkg, own, subprocess\nprint(own.X, tinypkg.VALUE, flush=True)\nsubprocess.run(['python3', '-c', 'import tinypkg, own; print(own.X, tinypkg.VALUE)'])"
    done = run(client, code, packages=["tinypkg==1.0"], files={"lib/own.py": "X = 5\n"}, env_vars={"PYTHONPATH": "/workspace/lib"})
    assert done["stdout"] == "5 1.0\n5 1.0\n", done
    with a_session(client, packages=["tinypkg==1.0"]) as session:
        run_in(client, session, "import os; os.makedirs('lib'); open('lib/own.py', 'w').write('X = 6')")
        done = run_in(client, session, code, env_vars={"PYTHONPATH": "/workspace/lib"})
        assert done["stdout"] == "6 1.0\n6 1.0\n", done


# Scripts, and the command line.


def test_a_script_runs_after_the_installation(client):
    body = {"id": "scripted", "name": "scripted", "image": "host", "packages": ["tinypkg==1.0"],
            "run": "python3 -c 'import tinypkg; print(tinypkg.VALUE)' > \"$LAYER/made.txt\""}
    assert client.post(f"{V1}/templates", body).status == 201
    assert run(client, "print(open('/opt/millibox/packages/run/made.txt').read())", template_id="scripted")["stdout"] == "1.0\n\n"
    failed(client.post(f"{V1}/templates", {**body, "id": "bad", "name": "bad", "run": "exit 3"}), "exit code 3")


def cli(daemon, *words):
    return subprocess.run([str(BUILD / "millibox"), *words], capture_output=True, text=True, timeout=120, check=False,
                          env={"PATH": "/usr/bin:/bin", "MILLIBOX_SOCKET": daemon.socket})


def test_commands(daemon, folder):
    built = cli(daemon, "template", "build", "fromcli", "--from", "python", "--packages", "tinypkg==1.0,needy", "--run", "echo made > $LAYER/x")
    assert built.returncode == 0 and "Successfully installed" in built.stderr, built
    ran = cli(daemon, "run", "--template", "fromcli", "-c", "import tinypkg; print(tinypkg.VALUE, open('/opt/millibox/packages/run/x').read())")
    assert ran.stdout == "1.0 made\n\n", ran
    ran = cli(daemon, "run", "--package", "tinypkg==2.0", "-c", "import tinypkg; print(tinypkg.VALUE)")
    assert ran.stdout == "2.0\n", ran
    made = cli(daemon, "package", "install", "tinypkg>=1.0,needy>=1")
    assert made.returncode == 0, made
    layer = made.stdout.strip()
    assert layer in cli(daemon, "package", "list").stdout
    assert "needy==1.0" in cli(daemon, "package", "show", layer).stdout
    assert cli(daemon, "package", "rm", layer).returncode == 0
    assert layer not in cli(daemon, "package", "list").stdout
    (folder / "requirements.txt").write_text("tinypkg==1.0\n")
    (folder / "wrong.txt").write_text("no-such-package==1.0\n")
    ran = cli(daemon, "run", "--lock", str(folder / "requirements.txt"), "-c", "import tinypkg; print(tinypkg.VALUE)")
    assert ran.stdout == "1.0\n", ran
    session = cli(daemon, "session", "create", "--lock", str(folder / "requirements.txt")).stdout.strip()
    assert cli(daemon, "session", "exec", session, "-c", "import tinypkg; print(tinypkg.VALUE)").stdout == "1.0\n"
    assert cli(daemon, "session", "delete", session).returncode == 0
    session = cli(daemon, "session", "create").stdout.strip()
    installed = cli(daemon, "session", "install", session, "tinypkg==2.0", "needy>=1")
    assert installed.returncode == 125 and "tinypkg" in installed.stderr, installed
    installed = cli(daemon, "session", "install", session, "needy", "tinypkg==1.0")
    assert installed.returncode == 0 and "Successfully installed" in installed.stderr and installed.stdout == "", installed
    assert cli(daemon, "session", "exec", session, "-c", "import tinypkg; print(tinypkg.VALUE)").stdout == "1.0\n"
    assert "already" in cli(daemon, "session", "install", session, "pip").stderr
    installed = cli(daemon, "session", "install", session, "--lock", str(folder / "requirements.txt"), "--json")
    assert json.loads(installed.stdout)["manager"] == "pip", installed
    assert cli(daemon, "session", "install", session).returncode == 2
    assert cli(daemon, "session", "delete", session).returncode == 0
    missing = cli(daemon, "run", "--lock", str(folder / "wrong.txt"), "-c", "1")
    assert missing.returncode != 0 and "no-such-package" in missing.stderr, missing
    absent = cli(daemon, "run", "--lock", str(folder / "absent.txt"), "-c", "1")
    assert absent.returncode == 2 and "--lock" in absent.stderr and "No such file" in absent.stderr, absent
    both = cli(daemon, "run", "--lock", str(folder / "requirements.txt"), "--package", "tinypkg", "-c", "1")
    assert both.returncode != 0 and "--lock" in both.stderr, both
    bad = cli(daemon, "template", "build", "bad", "--packages", "no-such-package")
    assert bad.returncode != 0 and "no-such-package" in bad.stderr, bad
