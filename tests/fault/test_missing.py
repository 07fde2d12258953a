# SPDX-License-Identifier: Apache-2.0
"""A required mechanism is missing or fails: the run is refused with a reason, nothing is executed and
nothing is left. Optional mechanisms are listed as missing in the receipt."""

import errno
import json
import os
import pathlib
import subprocess

import pytest
from support import host, oci
from support.daemon import Daemon, is_sanitized
from support.foreign_daemon import ContainerDaemon

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")


@pytest.fixture(scope="session")
def deny(tmp_path_factory):
    directory = tmp_path_factory.mktemp("deny")
    path = directory / "deny"
    source = pathlib.Path(__file__).with_name("deny.c")
    subprocess.run(["cc", "-O1", "-o", str(path), str(source), "-lseccomp"], check=True)
    return path


class DeniedDaemon(Daemon):
    """The daemon, and so its engine and agents, with some system calls failing."""

    prefix = ()

    def command(self):
        return [*self.prefix, *super().command()]


def outcome_of(d):
    """('refused to start', log) or ('served', answer)."""
    d.start(ready=False)
    try:
        host.wait_until(lambda: d.process.poll() is not None or _answers(d), 20, "ends or answers")
        if d.process.poll() is not None:
            return "refused to start", d.log()
        with d.client() as c:
            return "served", c.post("/api/v1/execute", {"language": "shell", "code": "echo ran", "receipt": "plain"})
    finally:
        if d.process.poll() is None:
            d.stop()


def _answers(d):
    try:
        with d.client() as c:
            return c.get("/healthz").status == 200
    except OSError:
        return False


REQUIRED = ["clone3", "unshare", "open_tree", "move_mount", "fsopen", "fsmount", "mount_setattr", "pivot_root", "execveat", "seccomp", "setresuid", "capset", "sethostname", "umount2", "socketpair", "memfd_create"]


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM])
@pytest.mark.parametrize("call", REQUIRED)
def test_without_a_required_call_nothing_runs(deny, call, error):
    if call == "setresuid" and not host.is_root():
        pytest.skip("needs root: with a single id no id is changed")
    d = DeniedDaemon()
    d.prefix = (str(deny), str(error), call)
    try:
        how, what = outcome_of(d)
        if how == "served":
            assert what.status == 503, (call, what)
            body = what.json
            assert body["error_code"].startswith("Sandbox.") and body["error_detail"]
            assert "ran" not in body.get("stdout", "")
        else:
            assert d.process.returncode != 0
            assert what.strip(), "it must say why"
        host.wait_until(lambda: not d.groups(), 10, "groups gone")
    finally:
        d.remove()


def test_without_landlock_the_receipt_lacks_it(deny):
    d = DeniedDaemon()
    d.prefix = (str(deny), str(errno.ENOSYS), "landlock_create_ruleset,landlock_add_rule,landlock_restrict_self")
    try:
        how, answer = outcome_of(d)
        if how == "refused to start" and not host.is_root() and "newuidmap" in answer:
            pytest.skip("needs no subordinate ids: the wrapper sets no_new_privs, which keeps the set-uid helper newuidmap from working")
        assert how == "served" and answer.status == 200, answer
        result = answer.json
        assert result["stdout"] == "ran\n"
        assert "landlock" in result["isolation"]["missing"] and "landlock" not in result["isolation"]["layers"]
    finally:
        d.remove()


@pytest.mark.skipif(not host.is_root(), reason="needs root: with a single id it is refused for another reason")
def test_without_landlock_network_host_is_refused(deny):
    """Programs would reach abstract Unix sockets of the host."""
    for setting, expected in (("true", "refused to start"), ("false", "served")):
        d = DeniedDaemon(env={"MILLIBOX_HOST_NETWORK_ENABLED": setting})
        d.prefix = (str(deny), str(errno.ENOSYS), "landlock_create_ruleset,landlock_add_rule,landlock_restrict_self")
        try:
            how, what = outcome_of(d)
            assert how == expected, (setting, what)
            assert setting == "false" or "network host needs Landlock" in what, what
        finally:
            d.remove()


def test_a_zygotes_child_that_cannot_enter_its_box_says_why(deny):
    """The program is executed instead. Only such a child makes this call."""
    d = DeniedDaemon(env={"MILLIBOX_ZYGOTES_ENABLED": "true"})
    d.prefix = (str(deny), str(errno.EACCES), "setns:1=0x80")
    try:
        d.start(ready=False)
        host.wait_until(lambda: d.process.poll() is not None or _answers(d), 20, "ends or answers")
        if not host.is_root() and "newuidmap" in d.log():
            pytest.skip("needs no subordinate ids: the wrapper sets no_new_privs, which keeps the set-uid helper newuidmap from working")
        with d.client() as client:
            # A child that ended before the agent wrote to it may be known by that alone; most give their reason.
            def is_told():
                assert client.python("print(42)")["stdout"] == "42\n"
                return "unavailable (enter the box's time namespace: Permission denied)" in d.log()

            host.wait_until(is_told, 30, lambda: f"the reason of a zygote's child: {d.log()}")
        assert d.stop() == 0, d.log()
    finally:
        d.remove()


def _import(roots, *prefix):
    build = pathlib.Path(os.environ.get("MILLIBOX_BUILD", "build")).resolve()
    run = subprocess.run([*prefix, build / "millibox-import", "--roots", roots, "--name", "it"],
                         input=oci.Image([[oci.entry("file", b"text")]]).bytes(), capture_output=True, timeout=60, check=False)
    return run.returncode, json.loads(run.stdout)


def test_without_landlock_no_image_is_imported(deny, tmp_path):
    status, said = _import(tmp_path, deny, str(errno.ENOSYS), "landlock_create_ruleset")
    assert status != 0 and "Landlock" in said["error"] and said["code"] == "Sandbox.Unavailable", said
    assert not list(tmp_path.iterdir())
    status, said = _import(tmp_path)
    assert status == 0 and (tmp_path / "it" / "file").read_text() == "text", said


def _without_cgroups():
    return ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]


def test_root_without_cgroups_is_refused_when_strict():
    if not host.is_root():
        pytest.skip("needs root: hides the cgroup mounts")
    d = DeniedDaemon()
    d.prefix = _without_cgroups()
    try:
        how, what = outcome_of(d)
        text = what if how == "refused to start" else what.body.decode()
        assert how == "refused to start" or what.status == 503
        assert "cgroup" in text, text
    finally:
        d.remove()


def test_root_without_cgroups_runs_when_not_strict_and_reports_it():
    if not host.is_root():
        pytest.skip("needs root: hides the cgroup mounts")
    d = DeniedDaemon(config="isolation: best-effort\n")
    d.prefix = _without_cgroups()
    try:
        how, answer = outcome_of(d)
        assert how == "served" and answer.status == 200, answer
        assert {"cgroup.memory", "cgroup.pids", "cgroup.cpu"} <= set(answer.json["isolation"]["missing"])
    finally:
        d.remove()


def test_state_directory_on_a_full_disk_is_reported(make_daemon):
    if not host.is_root():
        pytest.skip("needs root: mounts a file system of its own")
    d = make_daemon()
    full = d.home / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=1", "none", str(full)], check=True)
    try:
        r = subprocess.run([str(d.command()[0]), "--listen", "", "--socket", d.socket, "--state-dir", str(full / "state")],
                           capture_output=True, text=True, timeout=20 * host.PATIENCE,
                           env={"MILLIBOX_RUNTIME_DIR": str(d.home / "run"), "PATH": "/usr/bin"})  # fmt: skip
        assert r.returncode != 0
        assert "No space left" in r.stderr and "state" in r.stderr
    finally:
        subprocess.run(["umount", str(full)], check=True)


def test_missing_agent_is_reported(make_daemon):
    d = make_daemon(env={"MILLIBOX_AGENT_PATH": "/nonexistent/agent"})
    how, what = outcome_of(d)
    assert how == "refused to start" and "/nonexistent/agent" in what


def test_missing_engine_is_reported(make_daemon):
    d = make_daemon(env={"MILLIBOX_ENGINE_PATH": "/nonexistent/engine"})
    how, what = outcome_of(d)
    assert how == "refused to start" and "/nonexistent/engine" in what


def test_missing_runners_are_reported(make_daemon):
    d = make_daemon(env={"MILLIBOX_RUNNERS_DIR": "/nonexistent/runners"})
    how, what = outcome_of(d)
    assert how == "refused to start" and "/nonexistent/runners" in what


def test_an_importer_that_does_not_start_is_noticed(tmp_path):
    """It is looked for beside the engine. A script cannot be run by a descriptor that is closed at exec."""
    build = pathlib.Path(os.environ.get("MILLIBOX_BUILD", "build")).resolve()
    tmp_path.chmod(0o755)
    for program in build.glob("millibox-*"):
        if program.is_file() and program.name != "millibox-import":
            (tmp_path / program.name).symlink_to(program)
    (tmp_path / "millibox-import").write_text("#!/bin/sh\n")
    (tmp_path / "millibox-import").chmod(0o755)
    d = Daemon(env={"MILLIBOX_ENGINE_PATH": str(tmp_path / "millibox-engine")})
    try:
        d.start()
        assert "millibox-import ended when it was started" in d.log()
        with d.client() as client:
            answer = client.request("POST", "/api/v1/templates/import?id=it", body=b"x", headers={"Content-Type": "application/x-tar"})
            assert answer.status >= 500, answer
            assert client.shell("echo 42")["stdout"] == "42\n"
        assert d.stop() == 0
    finally:
        d.remove()


@pytest.mark.skipif(not host.is_root() or is_sanitized(), reason="needs root: makes a user namespace with many ids")
@pytest.mark.phases("system")
@pytest.mark.parametrize("count", [65536, 4096])
def test_root_of_a_container_uses_the_ids_that_it_has(count):
    """There uid_base is not mapped, and files of the host's file systems cannot be given other ids."""
    d = ContainerDaemon(count, env={"MILLIBOX_ISOLATION": "best-effort"})
    try:
        d.start(ready=False)
        host.wait_until(lambda: d.process.poll() is not None or _answers(d), 30, "ends or answers")
        if count == 4096:
            assert "give the container 65536 ids, or set uid_base" in d.log() and d.process.returncode != 0
            return
        with d.client() as client:
            result = client.python("import os; print(os.getuid(), open('/proc/self/uid_map').read().split())")
            assert result["stdout"].startswith("1000 "), result
            assert "uid_range" in result["isolation"]["layers"]
        assert d.stop() == 0, d.log()
    finally:
        d.remove()
