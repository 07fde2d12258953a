# SPDX-License-Identifier: Apache-2.0
"""Sandboxes with the Python SDK: every method, cancellation, files both ways."""

import asyncio
import io
import os
import tarfile

import pytest

import millibox
from millibox import _archive, errors

from support import host
from support.sessions import needs_freezer

pytestmark = pytest.mark.phases("system")


def test_variables_stay_in_every_language(box):
    assert box.run_code("x = 41").ok
    assert box.run("y=5; cd /tmp").ok
    assert box.run("echo $y $PWD").stdout == "5 /tmp\n"
    assert box.run_code("x + 1").json == 42


def test_a_sandbox_ends_with_its_block(kind, sdk):
    with kind.Sandbox(sdk, id="mine", language="shell", memory="64Mi", env={"A": "b"}, idle_timeout=60, lifetime=120) as made:
        assert made.id == "mine" and made.info().state in ("creating", "ready")
        assert made.run_code("echo $A").text == "b\n"
        assert made.info().raw["resources"]["memory"] == "64Mi"
        assert [found.id for found in sdk.sandboxes()] == ["mine"]
    assert made.kill() is False
    with pytest.raises(errors.SessionNotFoundError):
        made.info()


def test_a_second_handle_leaves_it_alive(kind, sdk, box):
    box.run_code("x = 7")
    with kind.connect(box.id, sdk) as other:
        assert other.run_code("x").json == 7
    assert box.run_code("x").json == 7
    with pytest.raises(errors.SessionNotFoundError):
        kind.connect("nothing", sdk)


def test_without_a_block(kind, sdk):
    made = kind.Sandbox(sdk)
    with pytest.raises(millibox.MilliboxError, match="not started"):
        made.run_code("1")
    made.start()
    assert made.run_code("2").json == 2
    assert made.kill() is True


def test_its_own_client(kind, daemon, monkeypatch):
    monkeypatch.setenv("MILLIBOX_SOCKET", daemon.socket)
    with kind.Sandbox() as made:
        assert made.run_code("3").json == 3


def test_a_refused_sandbox(kind, sdk):
    with pytest.raises(errors.InvalidParameterError, match="no template has"):
        with kind.Sandbox(sdk, template="none"):
            pass
    with kind.Sandbox(sdk, memory="64Ti") as made:
        assert any("memory" in text for text in made.warnings)


def test_events_and_handles(box, sdk):
    events = list(box.stream("print('a')\n7"))
    assert [event.kind for event in events] == ["pending", "start", "stdout", "result", "end"]
    execution = sdk.execution(events[0].execution_id)
    assert [event.kind for event in execution.events(after=2)] == ["result", "end"]
    assert execution.result().json == execution.wait().json == 7
    assert execution.status() == "success" and execution.info()["code"] == "print('a')\n7"
    assert box.executions()[0]["execution_id"] == execution.id


def test_input_of_a_running_program(box):
    execution = box.start_code("import sys\nfor line in sys.stdin: print('got', line.strip(), flush=True)", stdin_open=True)
    for event in execution.events():
        if event.kind == "start":
            execution.send_stdin("one\n")
        if event.kind == "stdout" and "one" in event.text:
            with pytest.raises(errors.StateConflictError):
                execution.result()
            execution.send_stdin(b"two\n")
            execution.close_stdin()
    assert execution.wait().stdout == "got one\ngot two\n"
    assert execution.kill() is False


def test_commands_in_the_background(box):
    server = box.commands.start("echo up; while read line; do echo got $line; done; exit 3", stdin=True)
    shown = iter(server)
    assert next(shown) == "up\n"
    # Neither waits for the other, and each has its own shell.
    assert box.commands.run("x=1; echo beside").stdout == "beside\n"
    other = box.commands.start("echo ${x-unset}; echo err >&2")
    assert other.wait().stdout == "unset\n" and "err\n" in other.output()
    server.stdin("a\n")
    assert next(shown) == "got a\n"
    assert server.output() == "up\ngot a\n" and server.status() == "running"
    server.close_stdin()
    assert list(shown) == [] and server.wait().exit_code == 3
    assert server.kill() is False


def test_a_terminal(box):
    terminal = box.pty("PS1='> ' exec bash --norc -i", rows=20, cols=70, env={"TERM": "dumb"})
    seen = ""

    def until(text):
        nonlocal seen
        while text not in seen:
            seen += next(shown)
        seen = seen.split(text, 1)[1]

    shown = iter(terminal)
    until("> ")
    terminal.send("stty size\n")
    until("20 70\r\n> ")
    terminal.resize(30, 100)
    terminal.send("stty size; cat\n")
    until("30 100\r\n")
    # A shell may miss the signal while it starts a program; this one has answered.
    terminal.send("going\n")
    until("going\r\ngoing\r\n")
    terminal.send("\x03")
    until("> ")
    terminal.send("exit 4\n")
    assert terminal.wait().exit_code == 4
    again = box.pty("sleep 600")
    assert again.kill() is True and again.wait().status == "cancelled"


def test_commands(box):
    failed = box.commands.run("cat; exit 3", stdin="in", env={"A": "b"}, on_stdout=lambda text: None)
    assert (failed.exit_code, failed.stdout, failed.ok) == (3, "in", False)
    assert box.commands.run(["printf", "%s|", "a b", "$A"]).stdout == "a b|$A|"
    execution = box.commands.start("read line; echo got $line", stdin=True, timeout=60)
    execution.send_stdin("x\n")
    seen = []
    assert execution.wait(on_stdout=seen.append).stdout == "".join(seen) == "got x\n"


def test_killing_a_command(box):
    execution = box.commands.start("echo started; exec sleep 600", timeout=600)
    for event in execution.events():
        if event.kind == "stdout":
            assert execution.kill() is True
    result = execution.wait()
    assert result.status == "cancelled"
    with pytest.raises(millibox.ProgramCancelled):
        result.raise_for_status()


def test_a_command_beside_others(box):
    """Commands run one after the other; a server must run beside them."""
    code = "import socket; s = socket.create_server(('', 8081)); open('/workspace/up', 'w')\nwhile True: s.accept()[0].sendall(b'hello')"
    group = box.commands.detach(["python3", "-c", code], log="/workspace/server.log")
    host.wait_until(lambda: box.files.exists("up"), 20, "the server")
    assert box.run_code("import socket; socket.create_connection(('127.0.0.1', 8081)).recv(9)").text == "b'hello'"
    assert box.commands.kill(group) is True
    host.wait_until(lambda: not box.commands.kill(group), 20, "its end")


def test_an_interrupted_caller_cancels_the_program(kind, box):
    """Ctrl-C, or a cancelled task."""
    def interrupt(text):
        raise asyncio.CancelledError if kind.is_async else KeyboardInterrupt

    with pytest.raises(asyncio.CancelledError if kind.is_async else KeyboardInterrupt):
        box.run_code("x = 1; print('running', flush=True); import time; time.sleep(600)", timeout=600, on_stdout=interrupt)
    execution = box.executions()[0]
    host.wait_until(lambda: box.executions()[0]["status"] != "running", 20, "its end")
    assert box.executions()[0]["status"] == "cancelled", execution


def test_a_failing_callback_does_not_cancel(box, sdk):
    with pytest.raises(ZeroDivisionError):
        box.run_code("print(1, flush=True); 5", on_stdout=lambda text: 1 / 0)
    assert sdk.execution(box.executions()[0]["execution_id"]).wait().json == 5


def test_a_program_that_takes_too_long_keeps_variables(box):
    box.run_code("x = 1")
    assert box.run_code("import time; time.sleep(600)", timeout=1).status == "timeout"
    assert box.run_code("x").json == 1


@needs_freezer
def test_pause_and_resume(box):
    box.run_code("x = 1")
    assert box.pause().state == "paused"
    execution = box.start_code("x")
    assert box.resume().state in ("ready", "running")
    assert execution.wait().json == 1


def test_the_rest_of_a_sandbox(box):
    assert box.stats()["executions"] == 0
    assert box.keepalive().id == box.id
    execution = box.start_code("print(1, flush=True)\nimport time\nwhile True: time.sleep(0.05)", timeout=600)
    for event in execution.events():
        if event.kind == "stdout":
            box.interrupt()
    assert execution.wait().error.name == "KeyboardInterrupt"
    assert box.call("def handler(event): return event['a']", {"a": 4}) == 4
    assert "sess_" in repr(box) or "Blocking" in repr(box)


def test_files(box):
    files = box.files
    assert files.write("a/ü b.txt", "text").size == 4
    assert files.write("/workspace/a/bytes", b"\0\1\2\3", mode=0o755).mode == 0o755
    assert files.write("a/pieces", iter([b"12", b"34"])).size == 4
    assert files.write("a/file", io.BytesIO(b"file")).size == 4
    assert (files.read_text("a/ü b.txt"), files.read("a/bytes", 1, 2), files.read("a/bytes", 2)) == ("text", b"\1\2", b"\2\3")
    assert (files.read("a/bytes", 9), files.read("a/bytes", 0, 0)) == (b"", b"")
    assert [found.name for found in files.list("a")] == ["bytes", "file", "pieces", "ü b.txt"]
    assert {found.path for found in files.list(recursive=True)} >= {"a", "a/file"}
    assert b"".join(files.stream("a/pieces")) == b"1234"
    assert files.mkdir("b/c").is_dir and files.mkdir("b/c").is_dir
    with pytest.raises(errors.ApiError):
        files.mkdir("b", parents=False)
    assert files.move("a/file", "b/moved").path == "b/moved"
    with pytest.raises(errors.StateConflictError):
        files.move("a/bytes", "b/moved")
    assert files.move("a/bytes", "b/moved", replace=True).size == 4
    assert (files.exists("b/moved"), files.exists("a/file"), files.stat("b").type) == (True, False, "directory")
    files.remove("b/moved")
    with pytest.raises(errors.ApiError):
        files.remove("b")
    files.remove("b", recursive=True)
    with pytest.raises(errors.FileNotFoundError):
        files.remove("b")
    with pytest.raises(millibox.MilliboxError, match="must not contain"):
        files.read("../etc/passwd")


def test_many_files_are_listed_in_pages(box):
    box.run("mkdir many; cd many; seq -f f%04g 1500 | xargs touch").raise_for_status()
    assert [found.name for found in box.files.list("many")] == [f"f{number:04}" for number in range(1, 1501)]


def test_directories_both_ways(box, tmp_path):
    source = tmp_path / "source"
    (source / "empty").mkdir(parents=True)
    (source / "deep" / ("d" * 120)).mkdir(parents=True)
    (source / "deep" / ("d" * 120) / "ünï").write_bytes(os.urandom(100_000))
    (source / "run.sh").write_text("echo ran")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("run.sh")
    os.link(source / "run.sh", source / "second")
    box.upload(source)
    assert box.run("cd /workspace/source && ./run.sh && ./link && ./second").stdout == "ran\n" * 3
    box.download("source", tmp_path / "back")
    names = sorted(str(path.relative_to(source)) for path in source.rglob("*"))
    assert names == sorted(str(path.relative_to(tmp_path / "back")) for path in (tmp_path / "back").rglob("*"))
    for name in names:
        if (source / name).is_file():
            assert (source / name).read_bytes() == (tmp_path / "back" / name).read_bytes()
    assert os.readlink(tmp_path / "back/link") == "run.sh" and os.access(tmp_path / "back/run.sh", os.X_OK)


def test_single_files_both_ways(box, tmp_path):
    (tmp_path / "a").write_bytes(b"content")
    box.upload(str(tmp_path / "a"), "x/y")
    box.download("x/y", tmp_path / "b")
    (tmp_path / "into").mkdir()
    box.download("x/y", tmp_path / "into")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "into/y").read_bytes() == b"content"
    with pytest.raises(errors.FileNotFoundError):
        box.download("none", tmp_path / "c")
    with pytest.raises(FileNotFoundError):
        box.upload(tmp_path / "none")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "into"]


def test_a_large_file(box, tmp_path):
    size = 48 << 20
    with open(tmp_path / "large", "wb") as file:
        for number in range(size // 65536):
            file.write(number.to_bytes(4, "big") * 16384)
    box.upload(tmp_path / "large")
    box.download("large", tmp_path / "back")
    assert (tmp_path / "large").read_bytes() == (tmp_path / "back").read_bytes()


def test_links_out_of_a_sandbox_are_refused(box, tmp_path):
    box.run("mkdir out; ln -s /etc/passwd out/link; echo x > out/file").raise_for_status()
    with pytest.raises(millibox.UnsafeArchive, match="leads outside"):
        box.download("out", tmp_path / "back")
    assert not os.path.lexists(tmp_path / "back/link")


def hostile(*entries):
    """An archive with entries of a name, a type and a target or content."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, kind, data in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o4777
            if kind == tarfile.REGTYPE:
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            else:
                info.linkname = data
                tar.addfile(info)
    archive.seek(0)
    return archive


@pytest.mark.parametrize("entries", [
    [("../out", tarfile.REGTYPE, b"x")],
    [("/tmp/out", tarfile.REGTYPE, b"x")],
    [("a", tarfile.SYMTYPE, "/etc")],
    [("a/b", tarfile.SYMTYPE, "../../x")],
    [("a", tarfile.SYMTYPE, "b/../../x")],
    [("a/b/up", tarfile.SYMTYPE, "../.."), ("c", tarfile.SYMTYPE, "a/b/up/../outside")],
    [("a", tarfile.LNKTYPE, "/etc/passwd")],
    [("a", tarfile.CHRTYPE, "")],
    [("a", tarfile.FIFOTYPE, "")],
    [("there/file", tarfile.REGTYPE, b"x")],
], ids=str)
def test_hostile_archives(tmp_path, entries):
    """What a sandbox sends never gets outside of the directory; a link that is there already is not followed."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "into").mkdir()
    (tmp_path / "into/there").symlink_to(tmp_path / "outside")
    with pytest.raises(millibox.UnsafeArchive):
        _archive.unpack(hostile(*entries), str(tmp_path / "into"))
    assert not list((tmp_path / "outside").iterdir()) and not (tmp_path / "out").exists()


def test_a_link_and_then_a_file_through_it(tmp_path):
    (tmp_path / "outside").write_text("as before")
    archive = hostile(("a", tarfile.SYMTYPE, "b"), ("a", tarfile.REGTYPE, b"new"), ("b", tarfile.REGTYPE, b"b"))
    _archive.unpack(archive, str(tmp_path / "into"))
    assert (tmp_path / "into/b").read_text() == "b" and os.stat(tmp_path / "into/b").st_mode & 0o7777 == 0o755
