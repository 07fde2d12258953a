# SPDX-License-Identifier: Apache-2.0
"""Imported images: quotas, lifetime of roots, progress of imports."""

import contextlib
import gzip
import os
import subprocess
import tarfile

import pytest

from support import host, metrics, oci
from support.daemon import BUILD, is_sanitized
from support.identity import V1, KeyClient, make_key, make_tenant
from support.sessions import Session

pytestmark = pytest.mark.phases("system", "user")

TEMPLATES = f"{V1}/templates"
TAR = {"Content-Type": "application/x-tar"}

in_another_root = pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries")


def image(*extra):
    return oci.Image([oci.busybox_layer() + list(extra)]).bytes()


def small(size=1000):
    """An image that no box can use, with no more bytes than these."""
    return oci.Image([[oci.entry("x", os.urandom(size))]]).bytes()


def do_import(client, ident, data):
    return client.request("POST", f"{TEMPLATES}/import?id={ident}", body=data, headers=TAR)


def imported(client, ident, data):
    made = do_import(client, ident, data)
    assert made.status == 201 and made.json["root"] == "image", made
    return made.json


def update(client, ident, **fields):
    changed = client.request("PUT", f"{TEMPLATES}/{ident}", body=fields)
    assert changed.status == 200, changed
    return changed.json


def roots(daemon):
    return sorted(p.name for p in (daemon.home / "state/roots").iterdir())


@pytest.fixture
def daemon(make_daemon):
    return make_daemon(tcp=True).start()


@pytest.fixture
def alice(daemon):
    with daemon.client() as admin:
        make_tenant(admin, "alice")
        key = make_key(admin, "alice")
    with contextlib.closing(KeyClient(daemon.tcp_address(), key)) as client:
        yield client


def quotas(daemon, **values):
    with daemon.client() as admin:
        answer = admin.request("PATCH", f"{V1}/tenants/alice", body={"quotas": values})
        assert answer.status == 200, answer


def usage(daemon):
    with daemon.client() as admin:
        return admin.get(f"{V1}/tenants/alice").json["usage"]


def bytes_of(size):
    """A size as the API reports it."""
    units = {"Ki": 10, "Mi": 20, "Gi": 30}
    return int(size[:-2]) << units[size[-2:]] if isinstance(size, str) and size[-2:] in units else int(size)


def expect_quota(answer, name):
    assert answer.status == 429 and answer.json["field"] == f"quota.{name}", answer
    assert answer.json["error_code"] == "Sandbox.QuotaExceeded"


# Plain roots


@in_another_root
@pytest.mark.boxes
@pytest.mark.parametrize("pack", [bytes, lambda data: gzip.compress(data, 1)])
@pytest.mark.parametrize("first", [oci.folder("./"), oci.entry(".dockerenv"), oci.folder("bin/")])
def test_a_plain_root_is_a_template(make_daemon, first, pack):
    """What tar makes of a directory, and docker export of a container."""
    data = oci.tar([first, *oci.busybox_layer(), oci.entry("etc/mine", b"plain"), oci.hardlink("etc/other", "etc/mine"),
                    oci.entry("dev/null", kind=tarfile.CHRTYPE)])
    with make_daemon().start().client() as client:
        made = imported(client, "plain", pack(data))
        assert made["image_config"]["digest"] == "sha256:" + oci.sha256(data), made
        assert made["image_config"]["layers"] == 1 and made["image_config"]["dropped"] == 1 and made["image_config"]["env"] == []
        done = client.post(f"{V1}/execute", {"language": "shell", "code": "cat /etc/other; ls -l /bin/busybox", "template_id": "plain"}).json
        assert done["stdout"].startswith("plain-rwx"), "set-uid bits are dropped"


@pytest.mark.parametrize("entries, words", [
    ([oci.folder("bin/"), oci.entry("../out", b"x")], "'..'"),
    ([oci.folder("bin/"), oci.symlink("bin/up", "/.."), oci.entry("bin/up/../../../out", b"x")], "'..'"),
    ([oci.entry("README", b"x"), oci.folder("bin/")], "nor a root file system"),
])
def test_bad_roots_are_refused(daemon, alice, entries, words):
    answer = do_import(alice, "bad", oci.tar(entries))
    assert answer.status == 400 and words in answer.json["error_detail"], answer
    assert alice.get(f"{TEMPLATES}/bad").status == 404
    host.wait_until(lambda: roots(daemon) == [], 10, "nothing of it is left")


@pytest.mark.parametrize("limits, entries, setting", [
    ("root: 1Mi", [oci.folder("usr/"), oci.entry("usr/a", bytes(600_000)), oci.entry("usr/b", bytes(600_000))], "imports.root"),
    ("entries: 10", [oci.entry(f"etc/{n}") for n in range(11)], "imports.entries"),
])
def test_roots_have_the_limits_of_images(make_daemon, limits, entries, setting):
    with make_daemon(config=f"imports:\n  {limits}\n").start().client() as client:
        answer = do_import(client, "big", oci.tar(entries))
        assert answer.status == 413 and answer.json["field"] == setting, answer


# Quotas


def test_templates_of_a_tenant_are_counted(daemon, alice):
    quotas(daemon, templates=2)
    for n in range(2):
        assert alice.post(TEMPLATES, {"id": f"t{n}", "name": f"T{n}", "image": "host"}).status == 201
    expect_quota(alice.post(TEMPLATES, {"id": "t2", "name": "T2", "image": "host"}), "templates")
    assert alice.get(f"{TEMPLATES}/t2").status == 404 and usage(daemon)["templates"] == 2
    # An import is refused before a byte of it is read.
    held = oci.HeldImport(daemon.tcp_address(), "t2", alice.key)
    answer = held.connection.getresponse()
    assert answer.status == 429 and b"quota.templates" in answer.read()
    held.close()
    update(alice, "t0", description="changing one makes none")
    # Other tenants are not affected; the default tenant has no limit.
    with daemon.client() as other:
        assert other.post(TEMPLATES, {"id": "t2", "name": "T2", "image": "host"}).status == 201
    assert alice.request("DELETE", f"{TEMPLATES}/t0").status == 204
    assert alice.post(TEMPLATES, {"id": "t2", "name": "T2", "image": "host"}).status == 201
    daemon.stop()
    daemon.start()
    assert usage(daemon)["templates"] == 2


def test_image_bytes_of_a_tenant_are_counted(daemon, alice):
    quotas(daemon, images="1Mi")
    made = imported(alice, "one", small(600_000))
    on_disk = made["image_config"]["disk_bytes"]
    assert 600_000 <= on_disk <= 700_000
    assert bytes_of(alice.get(f"{V1}/identity").json["usage"]["images"]) == on_disk
    expect_quota(do_import(alice, "two", small(600_000)), "images")
    # Many small files use more disk than bytes: known at the end, and freed.
    expect_quota(do_import(alice, "two", oci.Image([[oci.entry(f"f{n}", b"x") for n in range(200)]]).bytes()), "images")
    assert alice.get(f"{TEMPLATES}/two").status == 404
    host.wait_until(lambda: len(roots(daemon)) == 1, 10, "nothing of the refused ones is left")
    # A template on the same image uses no more.
    assert alice.post(TEMPLATES, {"id": "on", "name": "On", "image": "one"}).status == 201
    assert bytes_of(usage(daemon)["images"]) == on_disk
    daemon.stop()
    daemon.start()
    assert bytes_of(usage(daemon)["images"]) == on_disk and usage(daemon)["templates"] == 2
    with daemon.client() as admin:
        numbers = metrics.read(admin)
        assert numbers.value("sandbox_images") == 1 and numbers.value("sandbox_image_bytes") == on_disk
        assert numbers.value("sandbox_templates") == 2
    quotas(daemon, images=1000)
    with contextlib.closing(KeyClient(daemon.socket, alice.key)) as again:
        expect_quota(do_import(again, "two", small()), "images")
        for ident in ("on", "one"):
            assert again.request("DELETE", f"{TEMPLATES}/{ident}").status == 204
        host.wait_until(lambda: not roots(daemon), 10, "the root is gone")
        assert usage(daemon)["images"] == 0


def test_a_tenant_with_templates_is_not_deleted(daemon, alice):
    assert alice.post(TEMPLATES, {"id": "t", "name": "T", "image": "host"}).status == 201
    with daemon.client() as admin:
        assert admin.request("DELETE", f"{V1}/keys/{alice.key.split('_')[1]}").status == 200
        refused = admin.request("DELETE", f"{V1}/tenants/alice")
        assert refused.status == 409 and "templates" in refused.json["error_detail"], refused
        key = make_key(admin, "alice")
        with contextlib.closing(KeyClient(daemon.tcp_address(), key)) as again:
            assert again.request("DELETE", f"{TEMPLATES}/t").status == 204
        assert admin.request("DELETE", f"{V1}/keys/{key.split('_')[1]}").status == 200
        assert admin.request("DELETE", f"{V1}/tenants/alice").status == 200


def test_quotas_from_the_command_line(daemon, alice):
    def millibox(*words):
        done = subprocess.run([BUILD / "millibox", *words, "--socket", daemon.socket], capture_output=True, text=True,
                              timeout=60, check=False)
        assert done.returncode == 0, done
        return done.stdout

    millibox("tenant", "set", "alice", "--templates", "1", "--images", "5Mi")
    assert alice.post(TEMPLATES, {"id": "t", "name": "T", "image": "host"}).status == 201
    shown = {line.split()[0]: line.split()[1:] for line in millibox("tenant", "show", "alice").splitlines()}
    assert shown["templates"] == ["1", "used", "1"] and shown["images"] == ["5Mi", "used", "0"], shown
    millibox("tenant", "set", "alice", "--templates", "default", "--images", "0")
    limits = alice.get(f"{V1}/identity").json["limits"]
    assert limits["templates"] == 64 and limits["images"] == 0


# Lifetime of a root


@in_another_root
@pytest.mark.boxes
def test_a_root_is_removed_with_its_last_box(make_daemon):
    daemon = make_daemon(config="sessions:\n  survive: 60s\n").start()
    with daemon.client() as client:
        imported(client, "img", image(oci.entry("etc/mine", b"old")))
        assert len(roots(daemon)) == 1
        session = Session(client, template_id="img", mode="persistent", language="shell")
        session.wait_for("ready")
        update(client, "img", image="host")
        assert session.run("cat /etc/mine")["stdout"] == "old", "its box stands on what it was made of"
        assert len(roots(daemon)) == 1
    # The next daemon knows it: the box lives, and so does its root.
    daemon.kill()
    daemon.start()
    with daemon.client() as client:
        session.client = client
        assert session.run("cat /etc/mine; ls /bin/busybox")["stdout"] == "old/bin/busybox\n"
        assert len(roots(daemon)) == 1
        assert session.delete().status == 200
        host.wait_until(lambda: not roots(daemon), 10, "the root is gone with the box")
        assert client.get(f"{TEMPLATES}/img").json["root"] == "host"


@in_another_root
@pytest.mark.boxes
def test_a_root_stays_while_an_execution_runs_on_it(make_daemon):
    daemon = make_daemon().start()
    with daemon.client() as client, daemon.client() as other:
        imported(client, "img", image(oci.entry("etc/mine", b"old")))
        events = client.stream("shell", "while cat /etc/mine; do sleep 0.05; done", template_id="img")
        assert any("old" in e.get("data", "") for e in events), "it runs"
        assert other.request("DELETE", f"{TEMPLATES}/img").status == 204
        assert len(roots(daemon)) == 1
        later = (e for e in events if "old" in e.get("data", ""))
        assert all(next(later) for _ in range(5)), "it still finds its files"
        client.close()
        host.wait_until(lambda: not roots(daemon), 10, "the root is gone with the execution")


@in_another_root
def test_without_boxes_a_root_is_removed_at_once(make_daemon):
    daemon = make_daemon().start()
    with daemon.client() as client:
        imported(client, "img", image())
        assert client.post(TEMPLATES, {"id": "on", "name": "On", "image": "img"}).status == 201
        update(client, "img", image="host")
        assert client.get(f"{TEMPLATES}/on").json["root"] == "image" and len(roots(daemon)) == 1
        update(client, "on", image="host")
        host.wait_until(lambda: not roots(daemon), 10, "the root is gone")


# Limits are settings


@pytest.mark.parametrize("setting, data, detail", [
    ("archive: 1Mi", lambda: small(2 << 20), "imports.archive"),
    ("root: 1Mi", lambda: oci.Image([[oci.entry(n, bytes(600_000)) for n in "ab"]]).bytes(), "imports.root"),
    ("file: 100Ki", lambda: small(200_000), "imports.file"),
    ("entries: 10", lambda: oci.Image([[oci.entry(f"f{n}") for n in range(11)]]).bytes(), "imports.entries"),
    ("layers: 2", lambda: oci.Image([[oci.entry("f")]] * 3).bytes(), "imports.layers"),
])
def test_limits_of_imports_are_settings(make_daemon, setting, data, detail):
    daemon = make_daemon(config=f"imports:\n  {setting}\n").start()
    with daemon.client() as client:
        refused = do_import(client, "x", data())
        assert refused.status == 413 and refused.json["field"] == detail, refused
    with daemon.client() as client:
        assert client.get(f"{TEMPLATES}/x").status == 404
        host.wait_until(lambda: not roots(daemon), 10, "nothing is left")
        imported(client, "x", small(1000))  # control: an image that fits is accepted


def import_states(client):
    return {item["id"]: item["state"] for item in client.get(f"{V1}/imports").json["items"]}


def test_concurrent_imports_are_a_setting(make_daemon):
    """One more than may run waits, and no byte of it is read; one more than may wait is refused."""
    daemon = make_daemon(config="imports:\n  max_per_tenant: 1\n  max_queued: 2\n").start()
    data = small()
    with daemon.client() as client:
        held = oci.HeldImport(daemon.socket, "one")
        host.wait_until(lambda: import_states(client) == {"one": "receiving"}, 10, "it is under way")
        waits = oci.HeldImport(daemon.socket, "two", begin=data, total=len(data))
        leaves = oci.HeldImport(daemon.socket, "three", begin=data, total=len(data))
        host.wait_until(lambda: import_states(client) == {"one": "receiving", "two": "waiting", "three": "waiting"}, 10, "two wait")
        assert client.get(f"{V1}/imports/two").json["received_bytes"] == 0
        assert metrics.read(client).value("sandbox_imports_waiting") == 2
        refused = do_import(client, "four", b"x" * 2000)
        assert refused.status == 429 and "1 imports are running and 2 waiting" in refused.json["error_detail"], refused
        leaves.close()
        host.wait_until(lambda: "three" not in import_states(client), 10, "a client that left does not wait")
        held.close()
        answer = waits.connection.getresponse()
        assert answer.status == 201, answer.read()
        waits.close()
        host.wait_until(lambda: import_states(client) == {}, 10, "nothing is under way")


def test_imports_of_other_tenants_wait_for_their_turn(make_daemon):
    """A third tenant is not refused while two tenants import, and is next although others have waited longer."""
    daemon = make_daemon(config="imports: {max: 2, max_per_tenant: 2}\n").start()
    data = small()
    with daemon.client() as client:
        keys = {}
        for name in ("greedy", "modest"):
            make_tenant(client, name)
            keys[name] = make_key(client, name)
        greedy, modest = (KeyClient(daemon.socket, keys[name]) for name in ("greedy", "modest"))
        held = [oci.HeldImport(daemon.socket, f"g{i}", key=keys["greedy"]) for i in range(4)]
        host.wait_until(lambda: sorted(import_states(greedy).values()) == ["receiving"] * 2 + ["waiting"] * 2, 10, "two wait")
        running = {name for name, state in import_states(greedy).items() if state == "receiving"}
        mine = oci.HeldImport(daemon.socket, "mine", begin=data[:1000], total=len(data), key=keys["modest"])
        host.wait_until(lambda: import_states(modest) == {"mine": "waiting"}, 10, "it waits")
        for one in held:  # of the two places, the first is for one that has waited longer
            if one.id in running:
                one.close()
        host.wait_until(lambda: import_states(modest) == {"mine": "receiving"}, 10, "it has its turn")
        host.wait_until(lambda: sorted(import_states(greedy).values()) == ["receiving", "waiting"], 10, "and one of theirs")
        mine.connection.send(data[1000:])
        answer = mine.connection.getresponse()
        assert answer.status == 201, answer.read()
        for one in (*held, mine, greedy, modest):
            one.close()
        host.wait_until(lambda: metrics.read(client).value("sandbox_imports_running") == 0, 10, "nothing is under way")


# Progress


def test_an_import_reports_progress(daemon):
    data = small(300_000)
    with daemon.client() as client:
        held = oci.HeldImport(daemon.socket, "slow", begin=data[:200_000], total=len(data))
        found = f"{V1}/imports/slow"
        host.wait_until(lambda: client.get(found).status == 200, 10, "it is under way")
        host.wait_until(lambda: client.get(found).json["received_bytes"] == 200_000, 10, "what came is counted")
        seen = client.get(found).json
        assert seen["state"] == "receiving" and seen["total_bytes"] == len(data) and seen["layers"] is None
        assert client.get(f"{V1}/imports").json["items"] == [seen]
        assert client.get(f"{V1}/imports?status=unpacking").json["items"] == []
        assert metrics.read(client).value("sandbox_imports_running") == 1
        shown = subprocess.run([BUILD / "millibox", "template", "imports", "--socket", daemon.socket], text=True,
                               capture_output=True, timeout=60, check=True).stdout
        assert "slow" in shown and "receiving" in shown and "200000" in shown, shown
        held.connection.send(data[200_000:])
        answer = held.connection.getresponse()
        assert answer.status == 201, answer.read()
        held.close()
        assert client.get(found).json["error_code"] == "Sandbox.ImportNotFound"
        assert client.get(f"{TEMPLATES}/slow").json["image_config"]["layers"] == 1
        assert metrics.read(client).value("sandbox_imports_total", result="done") == 1


def test_a_disconnected_client_ends_its_import(daemon):
    with daemon.client() as client:
        held = oci.HeldImport(daemon.socket, "left")
        host.wait_until(lambda: client.get(f"{V1}/imports/left").status == 200, 10, "it is under way")
        held.close()
        host.wait_until(lambda: client.get(f"{V1}/imports/left").status == 404, 10, "it is not")
        host.wait_until(lambda: not roots(daemon), 10, "nothing is left")
        assert metrics.read(client).value("sandbox_imports_total", result="cancelled") == 1


def test_the_command_line_shows_progress(daemon, tmp_path):
    (tmp_path / "one.tar").write_bytes(small(5_000_000))

    def run_import(*options):
        done = subprocess.run([BUILD / "millibox", "template", "import", str(tmp_path / "one.tar"), "--socket", daemon.socket,
                               *options], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and done.stdout == options[1] + "\n", done
        return done.stderr

    shown = run_import("--id", "shown", "--progress")
    assert "imported 1 layers, 1 entries, 4.8 MiB on disk" in shown, shown
    assert "imported" not in run_import("--id", "silent")
