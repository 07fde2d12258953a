# SPDX-License-Identifier: Apache-2.0
"""The file commands: uploads and downloads of any size, listings, and failures that leave nothing behind."""

import hashlib
import io
import json
import os
import signal
import subprocess
import tarfile

import pytest

from support import host
from support.daemon import BUILD, is_sanitized
from test_cli import environment, millibox

pytestmark = pytest.mark.phases("system")

MIB = 1 << 20


@pytest.fixture
def cli(daemon):
    def call(verb, *words, status=0, **kw):
        done = millibox("file", verb, "--socket", daemon.socket, *words, **kw)
        assert done.returncode == status, done
        return done

    return call


@pytest.fixture
def start(daemon):
    """A command in the background."""
    started = []

    def call(verb, *words, **kw):
        command = [str(BUILD / "millibox"), "file", verb, "--socket", daemon.socket, *words]
        started.append(subprocess.Popen(command, env=environment(), **kw))
        return started[-1]

    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait(20 * host.PATIENCE)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


# Upload and download


def test_a_file_is_uploaded_and_downloaded(cli, py, tmp_path):
    data = bytes(range(256)) * 100
    (tmp_path / "in").write_bytes(data)
    done = cli("put", py.id, f"{tmp_path}/in", "d/there")
    assert (done.stdout, done.stderr) == (b"", b"")
    assert py.run("import os; (len(open('d/there', 'rb').read()), oct(os.stat('d/there').st_mode & 0o777))")["result"] == [25600, "0o644"]
    assert cli("get", py.id, "d/there").stdout == data
    assert cli("get", py.id, "d/there", "-").stdout == data
    (tmp_path / "out").write_bytes(b"what was there, and is longer" * 2000)
    assert cli("get", py.id, "d/there", f"{tmp_path}/out").stdout == b""
    assert (tmp_path / "out").read_bytes() == data
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]


def test_standard_input_and_permissions(cli, py):
    answer = json.loads(cli("put", "--json", "-m", "755", py.id, "-", "run.sh", stdin=b"echo hi\n").stdout)
    assert answer["path"] == "run.sh" and answer["size"] == 8 and answer["mode"] == "0755"
    cli("put", py.id, "-", "empty", stdin=b"")
    assert cli("get", py.id, "empty").stdout == b""
    done = cli("put", "--mode", "9", py.id, "-", "x", stdin=b"", status=2)
    assert b"mode" in done.stderr


def test_a_path_with_a_trailing_slash_is_a_directory(cli, py, tmp_path):
    (tmp_path / "name.txt").write_bytes(b"n")
    cli("put", py.id, f"{tmp_path}/name.txt", "into/")
    assert cli("get", py.id, "into/name.txt").stdout == b"n"
    assert b"no name" in cli("put", py.id, "-", "into/", status=2).stderr


def test_without_a_path_a_file_keeps_its_name(cli, py, tmp_path):
    (tmp_path / "name.txt").write_bytes(b"n")
    cli("put", py.id, f"{tmp_path}/name.txt")
    assert cli("get", py.id, "name.txt").stdout == b"n"
    assert b"no name" in cli("put", py.id, "-", status=2).stderr
    cli("put", py.id, f"{tmp_path}/name.txt", "d/")
    for verb in ("get", "cat"):
        assert b"use 'millibox file get -r' for a tar archive of it" in cli(verb, py.id, "d", status=2).stderr


def test_a_file_is_printed_as_it_is(cli, py):
    data = bytes(range(256)) * 5000
    cli("put", py.id, "-", "d/there", stdin=data)
    for path in ("d/there", "/workspace/d/there"):
        done = cli("cat", py.id, path)
        assert (done.stdout, done.stderr) == (data, b""), path
    assert b"expected a session and a path in it" in cli("cat", py.id, "d/there", "more", status=2).stderr
    assert b"'millibox file ls SESSION' lists the files" in cli("cat", py.id, "none", status=125).stderr


@pytest.mark.parametrize("name", ["mkdir", "move", "upload", "ü b+c%20#?&=", "-x", "a/./b"])
def test_names_of_all_kinds(cli, py, name):
    cli("put", py.id, "-", "./" + name, stdin=name.encode())
    assert cli("get", py.id, "./" + name).stdout == name.encode()
    assert json.loads(cli("stat", "--json", py.id, "./" + name).stdout)["path"] == name.replace("/./", "/")
    cli("rm", py.id, "./" + name)
    cli("get", py.id, "./" + name, status=125)


@pytest.mark.parametrize("path", ["../x", "a/../b", "/etc/passwd"])
def test_paths_outside_the_workspace_are_rejected_and_not_rewritten(cli, py, path):
    cli("put", py.id, "-", "b", stdin=b"b")
    for verb, words in [("get", [path]), ("put", ["-", path]), ("rm", [path]), ("stat", [path]), ("mkdir", [path]),
                        ("mv", ["b", path]), ("ls", [path])]:
        assert b"path" in cli(verb, py.id, *words, status=2).stderr or verb == "mv"
    assert cli("get", py.id, "b").stdout == b"b"


# Listing


def test_ls_and_stat(cli, py):
    py.run("import os\nos.makedirs('d/e')\nfor n in 'abc': open(f'd/{n}', 'w').write(n * 7)\nos.symlink('a', 'd/link')\n"
           "open('d/z\\x1b[31m', 'w')")
    lines = cli("ls", py.id, "d").stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == ["file", "file", "file", "directory", "link", "file"]
    assert lines[0].split()[1:3] == ["0644", "7"] and lines[0].endswith(" a") and lines[4].endswith(" link -> a")
    assert lines[5].endswith(" z?[31m")
    answer = json.loads(cli("ls", "--json", py.id, "d").stdout)
    assert [f["name"] for f in answer["files"]] == ["a", "b", "c", "e", "link", "z\x1b[31m"]
    assert cli("ls", py.id).stdout.decode().split()[-1] == "d"
    assert {line.split()[4] for line in cli("ls", "-r", py.id).stdout.decode().splitlines()} >= {"d", "d/e", "d/a"}
    done = cli("ls", "-n", "2", py.id, "d")
    assert len(done.stdout.splitlines()) == 2 and b"--after 'b'" in done.stderr
    assert cli("ls", "--after", "link", py.id, "d").stdout.decode().split()[-1] == "z?[31m"
    assert b"--limit" in cli("ls", "-r", "-n", "2", py.id).stderr
    assert cli("stat", py.id, "d/c").stdout.decode().split()[-1] == "d/c"


def test_a_failing_path_does_not_stop_the_others(cli, py):
    cli("mkdir", py.id, "a/b/c", "d", "d")
    done = cli("stat", py.id, "a", "none", "d", status=125)
    assert [line.split()[-1] for line in done.stdout.decode().splitlines()] == ["a", "d"] and b"none" in done.stderr
    cli("rm", py.id, "a", status=125)
    cli("rm", "-r", py.id, "none", "a", "d", status=125)
    assert cli("ls", py.id).stdout == b""


def test_hints_name_options_of_the_command(cli, py):
    cli("mkdir", py.id, "d")
    cli("put", py.id, "-", "d/x", stdin=b"1")
    cli("put", py.id, "-", "y", stdin=b"1")
    assert b"What to do: use -r " in cli("rm", py.id, "d", status=125).stderr
    assert b"What to do: use --replace " in cli("mv", py.id, "y", "d/x", status=125).stderr
    cli("mv", "--replace", py.id, "y", "d/x")
    cli("rm", "-r", py.id, "d")


def test_mv(cli, py):
    cli("put", py.id, "-", "a", stdin=b"a")
    cli("put", py.id, "-", "b", stdin=b"b")
    cli("mv", py.id, "a", "b", status=125)
    assert cli("get", py.id, "b").stdout == b"b"
    cli("mv", "-f", py.id, "a", "b")
    cli("mv", py.id, "b", "new/c")
    assert cli("get", py.id, "new/c").stdout == b"a"


# Directories


def test_a_directory_is_uploaded_and_downloaded_as_tar(cli, py, tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(50):
            info = tarfile.TarInfo(f"t/{i % 5}/{i}")
            info.size = i * 100
            tar.addfile(info, io.BytesIO(b"x" * info.size))
    (tmp_path / "in.tar").write_bytes(out.getvalue())
    answer = json.loads(cli("put", "--json", "--tar", f"{tmp_path}/in.tar", py.id, "here").stdout)
    assert answer["entries"] == 50 and answer["path"] == "here"
    cli("put", "--tar", "-", py.id, ".", stdin=out.getvalue())
    cli("get", "-r", py.id, "here/t", f"{tmp_path}/out.tar")
    for got in (tmp_path / "out.tar").read_bytes(), cli("get", "-r", py.id, "t").stdout:
        with tarfile.open(fileobj=io.BytesIO(got)) as tar:
            assert {m.name: m.size for m in tar if m.isfile()} == {f"{i % 5}/{i}": i * 100 for i in range(50)}
    assert b"archive" in cli("put", "--tar", "-", py.id, "no", stdin=b"this is none" * 100, status=2).stderr


# Sizes


def peak_kib(process):
    """The peak resident set of the process; 0 if it has exited."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            return max((int(line.split()[1]) for line in status if line.startswith("VmHWM")), default=0)
    except ProcessLookupError:
        return 0


def test_large_files_are_streamed_in_constant_memory(make, start, cli, tmp_path):
    session = make(resources={"memory": "512Mi", "disk": "200Mi"})
    block, size = os.urandom(MIB), 128 * MIB
    up = start("put", session.id, "-", "big", stdin=subprocess.PIPE)
    for _ in range(size // MIB):
        up.stdin.write(block)
    up.stdin.flush()
    seen = peak_kib(up)  # nearly all data has passed through, and it waits for EOF
    assert seen > 0
    up.stdin.close()
    assert up.wait(60 * host.PATIENCE) == 0
    assert json.loads(cli("stat", "--json", session.id, "big").stdout)["size"] == size
    down = start("get", session.id, "big", stdout=subprocess.PIPE)
    digest, left = hashlib.sha256(), size
    while left > MIB:
        data = down.stdout.read(MIB)
        digest.update(data)
        left -= len(data)
    late = peak_kib(down)  # likewise: the last chunk is larger than a pipe
    assert late > 0
    digest.update(down.stdout.read())
    assert down.wait(60 * host.PATIENCE) == 0
    assert digest.digest() == hashlib.sha256(block * (size // MIB)).digest()
    assert is_sanitized() or max(seen, late) < 32 * 1024, (seen, late)


# Failures


def test_a_full_box_disk_is_reported_and_leaves_nothing(make, cli, tmp_path):
    session = make(resources={"disk": "32Mi"})
    cli("put", session.id, "-", "kept", stdin=b"old")
    with open(tmp_path / "large", "wb") as large:
        large.truncate(100 * MIB)
    done = cli("put", session.id, f"{tmp_path}/large", "kept", status=125)
    assert b"Request: " in done.stderr and b"disk of the box is full" in done.stderr, done
    assert cli("get", session.id, "kept").stdout == b"old"
    assert cli("ls", session.id).stdout.decode().split()[-1] == "kept"


def test_an_interrupted_upload_leaves_nothing(start, cli, py):
    up = start("put", py.id, "-", "f", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    up.stdin.write(b"x" * MIB)
    up.stdin.flush()
    host.wait_until(lambda: b".part" in cli("ls", py.id).stdout, 10, "the upload to start")
    up.send_signal(signal.SIGINT)
    assert up.wait(20 * host.PATIENCE) == 130 and up.stderr.read() == b""
    host.wait_until(lambda: cli("ls", py.id).stdout == b"", 10, "the partial file to be removed")


def test_a_failed_download_keeps_the_old_file(cli, start, make, tmp_path):
    session = make(resources={"memory": "2Gi", "disk": "1000Mi"})
    (tmp_path / "f").write_bytes(b"mine")
    done = cli("get", session.id, "none", f"{tmp_path}/f", status=125)
    assert b"none" in done.stderr and done.stdout == b""
    # Sparse, and far larger than all buffers on the way.
    assert session.run("open('large', 'wb').truncate(900 << 20)")["result"] == 900 << 20
    down = start("get", session.id, "large", f"{tmp_path}/f", stderr=subprocess.PIPE)
    host.wait_until(lambda: any(p.stat().st_size > MIB for p in tmp_path.glob("f.*.part")), 10, "the download to start")
    down.send_signal(signal.SIGSTOP)
    session.delete()
    down.send_signal(signal.SIGCONT)
    assert down.wait(20 * host.PATIENCE) == 125 and down.stderr.read() != b""
    assert [p.name for p in tmp_path.iterdir()] == ["f"] and (tmp_path / "f").read_bytes() == b"mine"


def test_a_closed_reader_ends_the_download(start, py):
    assert py.run("open('large', 'wb').truncate(200 << 20)")["result"] == 200 << 20
    down = start("get", py.id, "large", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert len(down.stdout.read(1000)) == 1000
    down.stdout.close()
    assert down.wait(20 * host.PATIENCE) == 128 + signal.SIGPIPE
    assert down.stderr.read() == b""


def test_a_full_local_disk_is_reported(cli, py):
    cli("put", py.id, "-", "f", stdin=b"x" * 100)
    assert b"No space left" in cli("get", py.id, "f", "/dev/full", status=125).stderr
    assert os.path.exists("/dev/full")  # it was written to, not replaced


def test_invalid_command_lines(cli, py, tmp_path):
    for verb, words in [("ls", []), ("get", [py.id]), ("put", [py.id, "-"]), ("mv", [py.id, "a"]), ("rm", [py.id]),
                        ("put", ["--tar", "-", py.id, "a", "b"]), ("put", ["--tar", "-", "-m", "644", py.id, "a"]),
                        ("put", [py.id, f"{tmp_path}/none", "a"]), ("put", [py.id, str(tmp_path), "a"]),
                        ("get", [py.id, "a", f"{tmp_path}/no/where"]), ("get", [py.id, "a", str(tmp_path)]),
                        ("ls", ["a/b"]), ("mkdir", ["..", "a"]), ("ls", ["-r", "--after", "a", py.id])]:
        done = cli(verb, *words, status=2)
        assert b"--help" in done.stderr and done.stdout == b"", done
    done = cli("ls", "nobody", status=125)
    assert b"session" in done.stderr.lower()
