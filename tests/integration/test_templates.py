# SPDX-License-Identifier: Apache-2.0
"""Templates through a real daemon: definitions, what boxes contain, what survives."""

import pathlib
import subprocess
import tempfile

import pytest

from support import host, oci
from support.daemon import BUILD, Daemon, is_sanitized
from support.sessions import V1, Session

pytestmark = pytest.mark.phases("system")

TEMPLATES = f"{V1}/templates"

#: The agent is executed in the box's root: statically linked it needs nothing there.
in_another_root = pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries")


def import_image(directory, name, data):
    run = subprocess.run([BUILD / "millibox-import", "--roots", directory, "--name", name], input=data,
                         capture_output=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout


@pytest.fixture(scope="module")
def roots():
    """A directory of the operator: a shell, and a separate Python."""
    with tempfile.TemporaryDirectory(prefix="mbxroots-") as directory:
        path = pathlib.Path(directory)
        path.chmod(0o755)
        import_image(path, "bb", oci.Image([oci.busybox_layer() + [oci.entry("srv/gone", b"")]]).bytes())
        # Links where mount points will be: the box must not follow them.
        import_image(path, "evil", oci.Image([oci.busybox_layer() + [
            oci.symlink("proc", "/etc"), oci.symlink("tmp", "../../../../tmp"), oci.symlink("workspace", "/"),
            oci.symlink("run", "/"), oci.symlink("dev", "bin"), oci.entry("opt", b"a file")]]).bytes())
        import_image(path, "py", oci.Image([oci.busybox_layer(), oci.python_layer()]).bytes())
        yield path


@pytest.fixture(scope="module")
def server(roots):
    daemon = Daemon(config=f"templates:\n  dirs: [{roots}]\n").start()
    yield daemon
    daemon.stop()
    daemon.remove()


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


@pytest.fixture
def template(client):
    """Templates, deleted with the test."""
    made = []

    def create(status=201, **fields):
        fields.setdefault("name", fields.get("id"))
        answer = client.post(TEMPLATES, fields)
        assert answer.status == status, answer
        if status == 201:
            made.append(fields["id"])
        return answer.json

    yield create
    for name in made:
        assert client.request("DELETE", f"{TEMPLATES}/{name}").status in (204, 404)


def run(client, template_id, code, language="shell", **fields):
    answer = client.post(f"{V1}/execute", {"language": language, "code": code, "template_id": template_id, "receipt": "plain", **fields})
    assert answer.status == 200, answer
    return answer.json


# Definitions


def test_built_in_templates_exist_and_cannot_be_changed(client):
    answer = client.get(TEMPLATES).json
    assert answer["templates"] == answer["items"] and answer["total"] >= 4 and answer["offset"] == 0
    by_id = {t["id"]: t for t in answer["items"]}
    assert by_id["python-basic"]["available"] and by_id["shell"]["available"]
    assert by_id["python-basic"]["built_in"] and by_id["python-basic"]["root"] == "host"
    has_node = next(row["available"] for row in client.get(f"{V1}/languages").json["languages"] if row["name"] == "javascript")
    assert by_id["nodejs-basic"]["available"] == has_node and by_id["nodejs-basic"]["language"] == "javascript"
    assert has_node or "not installed" in by_id["nodejs-basic"]["reason"]
    science = by_id["python-datascience"]
    installed = subprocess.run(["/usr/bin/python3", "-c", "import numpy, pandas, matplotlib"],
                               capture_output=True, check=False).returncode == 0
    assert science["available"] == installed
    assert science["preload"] == ["numpy", "pandas", "matplotlib.pyplot"] and by_id["python-basic"]["preload"] == []
    assert installed or "apt-get install" in science["reason"]
    assert client.request("PUT", f"{TEMPLATES}/shell", body={"name": "mine"}).status == 403
    assert client.request("DELETE", f"{TEMPLATES}/shell").status == 403
    done = client.post(f"{V1}/execute", {"code": "console.log(6 * 7)", "language": "javascript", "template_id": "nodejs-basic"})
    assert (done.status, done.json.get("stdout")) == (200, "42\n") if has_node else done.status == 400


@pytest.mark.smoke
def test_create_show_change_list_delete(client, template):
    made = template(id="mine", name="Mine", image_url="host", default_cpu_cores=0.5, default_memory_mb=256,
                    default_disk_mb=256, default_timeout=120, default_env_vars={"A": "1"}, runtime_type="python3.11",
                    security_context={"run_as": 1000})
    assert made["image"] == made["image_url"] == "host" and made["available"] and not made["built_in"]
    assert made["default_resources"] == {"cpu": "0.5", "memory": "256Mi", "disk": "256Mi", "max_processes": None}
    assert made["default_env_vars"] == {"A": "1"} and made["security_context"] == {"run_as": 1000}
    assert client.get(f"{TEMPLATES}/mine").json == made
    changed = client.request("PUT", f"{TEMPLATES}/mine", body={"description": "new", "env_vars": {}})
    assert changed.status == 200 and changed.json["description"] == "new" and changed.json["name"] == "Mine"
    assert changed.json["env_vars"] == {} and changed.json["default_memory_mb"] == 256
    assert "mine" in [t["id"] for t in client.get(f"{TEMPLATES}?limit=200").json["items"]]
    gone = client.request("DELETE", f"{TEMPLATES}/mine")
    assert gone.status == 204 and gone.body == b""
    assert client.get(f"{TEMPLATES}/mine").status == 404
    assert client.request("DELETE", f"{TEMPLATES}/mine").status == 404
    assert client.request("PUT", f"{TEMPLATES}/mine", body={"name": "x"}).status == 404


@pytest.mark.parametrize("fields, field", [
    ({"name": "x", "image": "host"}, "id"), ({"id": "x", "image": "host"}, "name"), ({"id": "x", "name": "x"}, "image"),
    ({"id": "x", "name": "x", "image": ""}, "image"), ({"id": "x", "name": "", "image": "host"}, "name"),
    ({"id": "a/b", "name": "x", "image": "host"}, "id"), ({"id": "x" * 65, "name": "x", "image": "host"}, "id"),
    ({"id": "x", "name": "x", "image": "host", "image_url": "host"}, "image_url"),
    ({"id": "x", "name": "x", "image": "host", "default_cpu_cores": 4.1}, "default_cpu_cores"),
    ({"id": "x", "name": "x", "image": "host", "default_memory_mb": 127}, "default_memory_mb"),
    ({"id": "x", "name": "x", "image": "host", "default_disk_mb": 51201}, "default_disk_mb"),
    ({"id": "x", "name": "x", "image": "host", "default_timeout": 59}, "default_timeout"),
    ({"id": "x", "name": "x", "image": "host", "default_resources": {"memory": "lots"}}, "default_resources.memory"),
    ({"id": "x", "name": "x", "image": "host", "env_vars": {"LD_PRELOAD": "x"}}, "default_env_vars"),
    ({"id": "x", "name": "x", "image": "host", "packages": ["surely-not-there"]}, "packages[0]"),
    ({"id": "x", "name": "x", "image": "host", "packages": ["../../etc"]}, "packages[0]"),
    ({"id": "x", "name": "x", "image": "host", "preload": ["os; evil"]}, "preload[0]"),
])
def test_invalid_fields_are_named_and_change_nothing(client, fields, field):
    before = client.get(TEMPLATES).json["total"]
    answer = client.post(TEMPLATES, fields)
    assert answer.status in (400, 422) and answer.json["field"] == field, answer
    assert client.get(TEMPLATES).json["total"] == before


def test_ids_and_names_are_unique(client, template):
    template(id="one", name="One", image="host")
    template(409, id="one", name="Other", image="host")
    template(409, id="two", name="One", image="host")
    template(409, id="shell", name="Other", image="host")
    template(id="two", name="Two", image="host")
    assert client.request("PUT", f"{TEMPLATES}/two", body={"name": "One"}).status == 409
    assert client.request("PUT", f"{TEMPLATES}/two", body={"id": "one"}).json["field"] == "id"


def test_a_missing_image_is_reported(client, template):
    made = template(id="far", image="python:3.11-slim", pre_installed_packages=["numpy"])
    assert not made["available"] and made["root"] == "missing" and "import it from a tar" in made["reason"]
    refused = client.post(f"{V1}/sessions", {"template_id": "far"})
    assert refused.status == 400 and refused.json["field"] == "template_id"
    assert client.post(f"{V1}/sessions", {"template_id": "nobody-has-it"}).json["field"] == "template_id"


# Contents of boxes


def test_template_defaults_apply_where_the_request_has_none(client, template):
    template(id="small", image="host", default_resources={"memory": "64Mi", "disk": "1Gi", "cpu": "0.5"},
             env_vars={"GREETING": "hello", "OTHER": "template"}, default_timeout=77)
    session = Session(client, template_id="small", mode="persistent", env_vars={"OTHER": "session"})
    try:
        info = client.get(f"{V1}/sessions/{session.id}").json
        assert info["template_id"] == "small" and info["timeout"] == 77
        # The default is clamped to the available memory.
        assert info["resources"]["memory"] == "64Mi" and info["resources"]["disk"] == "32Mi"
        assert session.run("import os; os.environ['GREETING'], os.environ['OTHER']")["result"] == ["hello", "session"]
    finally:
        session.delete()
    r = run(client, "small", "echo $GREETING $OTHER", env_vars={"OTHER": "execution"})
    assert r["stdout"] == "hello execution\n"
    assert client.get(f"{V1}/sessions/{session.id}").status == 404


def test_a_template_in_use_is_not_deleted(client, template):
    template(id="used", image="host")
    session = Session(client, template_id="used", mode="ephemeral")
    assert client.get(f"{TEMPLATES}/used").json["sessions"] == 1
    refused = client.request("DELETE", f"{TEMPLATES}/used")
    assert refused.status == 400 and refused.json["error_code"] == "Sandbox.TemplateInUse"
    assert "1 session" in refused.json["error_detail"]
    session.delete()
    assert client.get(f"{TEMPLATES}/used").json["sessions"] == 0
    assert client.request("DELETE", f"{TEMPLATES}/used").status == 204


@in_another_root
def test_a_root_of_its_own(client, template):
    made = template(id="busy", image="bb")
    assert made["root"] == "directory" and made["available"] and made["languages"] == ["shell"]
    r = run(client, "busy", "id -u; ls /usr; ls /; cat /etc/passwd | grep user; ls /dev; echo > /workspace/x && echo ok")
    assert r["status"] == "success" and r["stdout"].startswith("1000\n"), r
    names = r["stdout"].split()
    assert {"bin", "proc", "dev", "tmp", "workspace", "null", "ok"} <= set(names) and "lib64" not in names
    refused = client.post(f"{V1}/execute", {"language": "python", "code": "1", "template_id": "busy"})
    assert refused.status == 400 and refused.json["field"] == "language", refused


@in_another_root
def test_changes_to_image_files_stay_in_the_box(client, template, roots):
    template(id="busy", image="bb")
    code = ("echo mine > /var/mine && cat /var/mine; echo more >> /root/secret && cat /root/secret; rm /srv/gone && ls /srv; "
            "mkdir /root/bin && echo made; cp /bin/busybox /root/bin/busybox && /root/bin/busybox echo runs")
    for _ in range(2):
        r = run(client, "busy", code)
        assert r["stdout"] == "mine\nof root\nmore\nmade\nruns\n", r
    assert (roots / "bb/root/secret").read_text() == "of root\n" and (roots / "bb/srv/gone").exists()
    assert not (roots / "bb/var/mine").exists()


@in_another_root
def test_writes_count_as_disk(client, template):
    template(id="busy", image="bb")
    r = run(client, "busy", "dd if=/dev/zero of=/srv/big bs=65536 count=1000; echo $?",
            resources={"memory": "64Mi", "disk": "8Mi"})
    assert "No space left" in r["stderr"] and r["limit"] in ("disk", None), r


@in_another_root
def test_links_at_mount_points_lead_nowhere(client, template):
    template(id="evil", image="evil")
    r = run(client, "evil", "ls -d /proc/1 /dev/null /run/millibox; touch /tmp/x /workspace/x && ls /workspace; readlink /tmp")
    assert r["stdout"] == "/dev/null\n/proc/1\n/run/millibox\nx\n" or "/dev/null" in r["stdout"], r
    assert "x\n" in r["stdout"] and not pathlib.Path("/tmp/x").exists()


@in_another_root
def test_another_root_has_no_zygote_and_reports_it(roots):
    """Another C library, another Python: zygotes are the host's. Executed, with the reason, also in sessions."""
    d = Daemon(config=f"templates:\n  dirs: [{roots}]\n", env={"MILLIBOX_ZYGOTES_ENABLED": "true", "MILLIBOX_POOLS_ENABLED": "false"}).start()
    try:
        with d.client() as client:
            host.wait_until(lambda: client.python("1")["isolation"]["start"] == "zygote", 20, "control: the host's has one")
            assert client.post(TEMPLATES, {"id": "snake", "name": "snake", "image": "py", "language": "python"}).status == 201
            session = Session(client, template_id="snake", mode="persistent")
            for result in (run(client, "snake", "6 * 7", language="python"), session.run("6 * 7")):
                assert result["result"] == 42
                isolation = result["isolation"]
                assert (isolation["start"], isolation["start_reason"]) == ("cold", "root_has_no_zygote")
            session.delete()
    finally:
        d.stop()
        d.remove()


@in_another_root
def test_python_of_another_root(client, template):
    made = template(id="snake", image="py", language="python", preload=["json"])
    assert made["languages"] == ["python", "shell"]
    r = run(client, "snake", "import sys, json\nprint(sys.executable, json.dumps([1]))\n6 * 7", language="python")
    assert r["stdout"] == "/usr/local/bin/python3 [1]\n" and r["result"] == 42, r
    session = Session(client, template_id="snake", mode="persistent")
    try:
        session.run("x = 41")
        assert session.run("x + 1")["result"] == 42
        assert session.run("open('/var/mine.py', 'w').write('y = 1')")["result"] == 5
    finally:
        session.delete()


def test_modules_are_preloaded(client, template):
    template(id="ready", image="host", preload=["colorsys", "no_such_module"])
    session = Session(client, template_id="ready", mode="persistent")
    try:
        first = session.run("import sys; 'colorsys' in sys.modules")
        assert first["result"] is True and first["stderr"] == "preload: cannot import no_such_module: ModuleNotFoundError\n"
        assert session.run("1")["stderr"] == ""
    finally:
        session.delete()


# Survival


@in_another_root
def test_templates_survive_a_restart(roots):
    daemon = Daemon(config=f"templates:\n  dirs: [{roots}]\n").start()
    try:
        with daemon.client() as client:
            made = client.post(TEMPLATES, {"id": "kept", "name": "Kept", "image": "bb", "env_vars": {"A": "1"},
                                           "packages": [], "default_timeout": 60}).json
            assert client.post(TEMPLATES, {"id": "gone", "name": "Gone", "image": "host"}).status == 201
            assert client.request("DELETE", f"{TEMPLATES}/gone").status == 204
        assert daemon.stop() == 0
        daemon.start()
        with daemon.client() as client:
            assert client.get(f"{TEMPLATES}/kept").json == made
            assert client.get(f"{TEMPLATES}/gone").status == 404
            assert run(client, "kept", "echo $A")["stdout"] == "1\n"
    finally:
        daemon.stop()
        daemon.remove()


@pytest.mark.parametrize("mode", ["persistent", "ephemeral"])
def test_a_session_keeps_its_template_as_it_was(mode):
    """A changed template affects only later sessions, before and after a kill of the daemon."""
    daemon = Daemon().start()
    template = {"id": "mine", "name": "Mine", "image": "host", "env_vars": {"A": "old"}, "preload": ["fractions"]}
    look = "import os, sys; [os.environ['A'], 'fractions' in sys.modules]"
    preloads = mode == "persistent"  # only a resident runner preloads
    try:
        with daemon.client() as client:
            assert client.post(TEMPLATES, template).status == 201
            sessions = [Session(client, mode=mode, template_id="mine") for _ in range(2)]
            assert sessions[0].run(look)["result"] == ["old", preloads]  # nothing has started in the other yet
            changed = {"env_vars": {"A": "new"}, "preload": []}
            assert client.request("PUT", f"{TEMPLATES}/mine", changed).status == 200
            sessions[0].start("1")  # written, with all before it
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            for session in sessions:
                session.client = client
                assert session.run(look)["result"] == ["old", preloads]
            later = Session(client, mode=mode, template_id="mine")
            assert later.run(look)["result"] == ["new", False]
            assert client.get(f"{TEMPLATES}/mine").json["env_vars"] == {"A": "new"}
            for session in [*sessions, later]:
                assert session.delete().status == 200
    finally:
        daemon.stop()
        daemon.remove()


def test_a_missing_directory_is_an_invalid_setting():
    daemon = Daemon(config="templates:\n  dirs: [/no/such/place]\n")
    daemon.start(ready=False)
    assert daemon.process.wait(20 * host.PATIENCE) != 0 and "templates.dirs" in daemon.log()
    daemon.remove()


@in_another_root
def test_an_image_is_imported_and_removed_with_its_template(roots):
    image = oci.Image([oci.busybox_layer(), [oci.entry("etc/mine", b"layer"), oci.entry("root/.wh.secret")]],
                      {"Env": ["GREETING=from the image", "LD_PRELOAD=evil"], "Cmd": ["/bin/sh"]}).bytes()
    tar = {"Content-Type": "application/x-tar"}
    daemon = Daemon(config=f"templates:\n  dirs: [{roots}]\n").start()
    kept = daemon.home / "state/roots"
    try:
        with daemon.client() as client:
            made = client.request("POST", f"{TEMPLATES}/import?id=img&name=My+image", body=image, headers=tar)
            assert made.status == 201 and made.json["root"] == "image" and made.json["available"], made
            assert made.json["env_vars"] == {"GREETING": "from the image"} and made.json["image_config"]["layers"] == 2
            assert client.request("POST", f"{TEMPLATES}/import?id=img", body=image, headers=tar).status == 409
        with daemon.client() as client:
            assert run(client, "img", "echo $GREETING; cat /etc/mine; ls /root")["stdout"] == "from the image\nlayer"
            bad = client.request("POST", f"{TEMPLATES}/import?id=bad", body=image[:100000], headers=tar)
            assert bad.status == 400 and client.get(f"{TEMPLATES}/bad").status == 404, bad
        with daemon.client() as client:
            assert client.request("POST", f"{TEMPLATES}/import", body=b"", headers=tar).json["field"] == "id"
        assert daemon.stop() == 0
        (kept / ".tmp-left").mkdir()
        (kept / "img-nobodys").mkdir()
        daemon.start()
        host.wait_until(lambda: len(list(kept.iterdir())) == 1, 10, "leftovers gone")
        with daemon.client() as client:
            assert client.post(TEMPLATES, {"id": "on", "name": "On", "image": "img"}).json["root"] == "image"
            assert client.request("DELETE", f"{TEMPLATES}/img").status == 400
            assert run(client, "on", "cat /etc/mine")["stdout"] == "layer"
            assert client.request("DELETE", f"{TEMPLATES}/on").status == 204
            assert client.request("DELETE", f"{TEMPLATES}/img").status == 204
        host.wait_until(lambda: not list(kept.iterdir()), 10, "the root gone with its template")
    finally:
        daemon.stop()
        daemon.remove()


# The command line


@in_another_root
def test_the_command_line(server, tmp_path):
    def millibox(*words, status=0):
        done = subprocess.run([BUILD / "millibox", *words, "--socket", server.socket], capture_output=True, text=True,
                              timeout=60, check=False)
        assert done.returncode == status, done
        return done.stdout + done.stderr

    assert "python-basic" in millibox("template", "list")
    millibox("template", "create", "cli", "--image", "bb", "--memory", "64Mi", "--env", "A=b c")
    shown = dict(line.split(None, 1) for line in millibox("template", "show", "cli").splitlines())
    assert (shown["root"], shown["memory"], shown["cpu"], shown["timeout"]) == ("directory", "64Mi", "-", "-")
    assert millibox("run", "--template", "cli", "--language", "shell", "--code", "echo $A; ls /usr") == "b c\n"
    millibox("template", "update", "cli", "--description", "from the command line")
    assert "from the command line" in millibox("template", "show", "cli")
    millibox("template", "delete", "cli")
    assert "no template" in millibox("template", "show", "cli", status=125)
    assert "cannot be used yet" in millibox("template", "create", "far", "--image", "nowhere")
    millibox("template", "delete", "far")
    (tmp_path / "box.tar").write_bytes(oci.docker_save([oci.busybox_layer()]))
    millibox("template", "import", str(tmp_path / "box.tar"), "--name", "A box")
    assert "image" in millibox("template", "show", "box")
    assert millibox("run", "--template", "box", "--language", "shell", "--code", "cat /root/secret") == "of root\n"
    millibox("template", "delete", "box")
