# SPDX-License-Identifier: Apache-2.0
"""Files of a session through the API: all operations, ranges, archives, streams, limits."""

import concurrent.futures
import contextlib
import hashlib
import io
import os
import socket
import tarfile
import urllib.parse

import pytest

from support import host
from support.client import Client
from support.daemon import is_sanitized
from support.sessions import NAPS, V1, needs_freezer

pytestmark = pytest.mark.phases("system", "user", "subid")

MIB = 1 << 20
# A large file: as large as is asked for, with the disk of a session limited to half its memory.
BIG = int(os.environ.get("MILLIBOX_BIG_FILE_MIB", "128")) * MIB
BIG_RESOURCES = {"memory": f"{2 * BIG // MIB + 512}Mi", "disk": f"{BIG // MIB + 64}Mi"}


class Files:
    """The files of one session."""

    def __init__(self, session, client=None):
        self.session = session
        self.client = client or session.client
        self.base = f"{session.path}/files"

    def url(self, path, **query):
        text = urllib.parse.quote(path) if isinstance(path, str) else urllib.parse.quote_from_bytes(path)
        return f"{self.base}/{text}" + (f"?{urllib.parse.urlencode(query)}" if query else "")

    def put(self, path, data, status=201, **query):
        answer = self.client.request("PUT", self.url(path, **query), body=data,
                                     headers={"Content-Type": "application/octet-stream"})
        assert answer.status == status, answer
        return answer.json

    def get(self, path, status=200, headers=None, **query):
        answer = self.client.get(self.url(path, **query), headers=headers)
        assert answer.status == status, answer
        return answer

    def list(self, status=200, **query):
        answer = self.client.get(self.base + (f"?{urllib.parse.urlencode(query)}" if query else ""))
        assert answer.status == status, answer
        return answer.json

    def names(self, **query):
        return [entry["path"] for entry in self.list(**query)["files"]]

    def stat(self, path, status=200):
        return self.get(path, status, stat="1").json

    def order(self, verb, status, **fields):
        answer = self.client.post(f"{self.base}/{verb}", fields)
        assert answer.status == status, answer
        return answer.json

    def delete(self, path, status=204, **query):
        answer = self.client.request("DELETE", self.url(path, **query))
        assert answer.status == status, answer
        return answer


@pytest.fixture
def files(py):
    return Files(py)


# One file


@pytest.mark.smoke
def test_written_files_are_readable_on_both_sides(files, py):
    made = files.put("data/in.txt", b"hello\n")
    assert made["path"] == "data/in.txt" and made["size"] == 6 and made["type"] == "file"
    assert made["container_path"] == "/workspace/data/in.txt" and made["mode"] == "0644"
    r = py.run("import os\ns = os.stat('data/in.txt')\nopen('out.bin', 'wb').write(bytes(range(256)))\n"
               "(open('data/in.txt').read(), s.st_uid == os.getuid(), oct(s.st_mode & 0o777))")
    assert r["result"] == ["hello\n", True, "0o644"]
    answer = files.get("out.bin")
    assert answer.body == bytes(range(256))
    assert answer.headers["Content-Type"] == "application/octet-stream" and answer.headers["Content-Length"] == "256"
    assert files.get("data/in.txt").headers["Content-Type"] == "text/plain; charset=utf-8"


def test_writing_replaces_the_file_and_changes_the_etag(files):
    files.put("f", b"first and long")
    before = files.get("f").headers["ETag"]
    files.put("f", b"x", mode="0755")
    after = files.get("f")
    assert after.body == b"x" and after.headers["ETag"] != before
    assert files.stat("f")["mode"] == "0755" and files.stat("f")["etag"] == after.headers["ETag"]
    assert files.get("f", 304, headers={"If-None-Match": after.headers["ETag"]}).body == b""
    assert files.names() == ["f"]  # no partial file is left


def test_an_empty_file_is_a_file(files):
    files.put("empty", b"")
    answer = files.get("empty")
    assert answer.body == b"" and answer.headers["Content-Length"] == "0"


@pytest.mark.parametrize("span, status, part", [
    ("bytes=0-0", 206, slice(0, 1)), ("bytes=10-19", 206, slice(10, 20)), ("bytes=90-", 206, slice(90, 100)),
    ("bytes=-5", 206, slice(95, 100)), ("bytes=-500", 206, slice(0, 100)), ("bytes=50-1000", 206, slice(50, 100)),
    ("bytes=0-99", 206, slice(0, 100)), ("bytes=5-4", 200, slice(0, 100)), ("lines=1-2", 200, slice(0, 100)),
    ("bytes=0-1,5-6", 200, slice(0, 100)), ("bytes=a-b", 200, slice(0, 100)),
    ("bytes=100-", 416, None), ("bytes=1000-2000", 416, None), ("bytes=-0", 416, None),
])
def test_ranges(files, span, status, part):
    data = bytes(range(100))
    files.put("r", data)
    answer = files.get("r", status, headers={"Range": span})
    if status == 416:
        assert answer.headers["Content-Range"] == "bytes */100"
        assert answer.json["error_code"] == "Sandbox.RangeNotSatisfiable"
        return
    assert answer.body == data[part]
    if status == 206:
        assert answer.headers["Content-Range"] == f"bytes {part.start}-{part.stop - 1}/100"


def test_a_stale_if_range_returns_the_whole_file(files):
    files.put("r", b"0123456789")
    etag = files.get("r").headers["ETag"]
    assert files.get("r", 206, headers={"Range": "bytes=2-3", "If-Range": etag}).body == b"23"
    assert files.get("r", 200, headers={"Range": "bytes=2-3", "If-Range": '"old"'}).body == b"0123456789"


def test_head_describes_without_a_body(files):
    files.put("h.json", b"{}" * 1000)
    answer = files.client.request("HEAD", files.url("h.json"))
    assert answer.status == 200 and answer.headers["Content-Length"] == "2000" and answer.body == b""
    assert answer.headers["Content-Type"] == "application/json" and "GMT" in answer.headers["Last-Modified"]
    assert files.client.request("HEAD", files.url("nowhere")).status == 404
    assert files.get("h.json").body == b"{}" * 1000  # the connection is still usable


def test_chunked_uploads_are_accepted(files):
    def pieces():
        for i in range(100):
            yield b"%06d\n" % i

    files.client.connection.request("PUT", files.url("chunks"), body=pieces(), encode_chunked=True,
                                    headers={"Transfer-Encoding": "chunked"})
    response = files.client.connection.getresponse()
    assert response.status == 201, response.read()
    response.read()
    assert files.get("chunks").body == b"".join(pieces())


# Names


@pytest.mark.parametrize("name", ["ü/日本.txt", "a b+c%20.txt", "-rf", "quote'\"", "#?&=", "x" * 255, "a/" * 31 + "deep"])
def test_names_of_all_kinds(files, name):
    files.put(name, name.encode())
    assert files.get(name).body == name.encode()
    entry = files.stat(name)
    assert entry["path"] == name
    assert files.client.get(entry["url"]).body == name.encode()
    files.delete(name)
    files.get(name, 404)


@pytest.mark.parametrize("name", ["../x", "a/../b", "..", "a/..", "/etc/passwd", "x" * 256, "a/" * 32 + "b", "a%00b", "a%0ab"])
def test_bad_names_are_refused(files, name):
    path = f"{files.base}/{name}" if "%" in name else files.url(name)
    for method in ("GET", "PUT", "DELETE"):
        answer = files.client.request(method, path, body=b"x" if method == "PUT" else None)
        assert answer.status == 400, (method, answer)
    assert files.names() == []


def test_names_that_are_not_utf8_are_listed_and_readable(files, py):
    py.run(r"open(b'bad\xff', 'w').write('1'); open('new\nline', 'w').write('2')")
    entries = {entry["name"]: entry for entry in files.list()["files"]}
    assert set(entries) == {"bad\ufffd", "new\nline"}
    assert files.client.get(entries["bad\ufffd"]["url"]).body == b"1"


# Directories


def test_listing_is_sorted_bounded_and_continued(files, py):
    py.run("import os\nos.makedirs('d/e')\nfor i in range(30): open(f'd/{i:02}', 'w').write('x' * i)\n"
           "os.symlink('00', 'd/link'); os.mkfifo('d/pipe')")
    whole = files.list(path="d")
    assert [e["name"] for e in whole["files"]] == [f"{i:02}" for i in range(30)] + ["e", "link", "pipe"]
    assert whole["count"] == 33 and whole["truncated"] is False and whole["next"] is None
    kinds = {e["name"]: e for e in whole["files"]}
    assert kinds["07"]["size"] == 7 and kinds["e"]["type"] == "directory" and kinds["pipe"]["type"] == "other"
    assert kinds["link"]["type"] == "link" and kinds["link"]["target"] == "00"
    seen, after = [], None
    while True:
        page = files.list(path="d", limit=10, **({"after": after} if after else {}))
        seen += [e["name"] for e in page["files"]]
        after = page["next"]
        if not page["truncated"]:
            break
    assert seen == [e["name"] for e in whole["files"]]
    assert sorted(files.names(recursive="true"))[:2] == ["d", "d/00"]
    assert files.list(recursive="true", limit=5)["truncated"] is True
    assert files.list(404, path="none")["error_code"] == "Sandbox.FileNotFound"
    assert files.list(400, path="d/00")["error_code"] == "Sandbox.InvalidParameter"
    assert files.list(400, limit=10001)["field"] == "limit"


def test_mkdir_move_remove(files, py):
    assert files.order("mkdir", 201, path="a/b/c")["type"] == "directory"
    files.order("mkdir", 201, path="a/b/c")  # as mkdir -p
    files.order("mkdir", 409, path="a/b/c", parents=False)
    files.order("mkdir", 404, path="q/r", parents=False)
    files.put("a/b/c/f", b"f")
    files.order("mkdir", 409, path="a/b/c/f")
    assert files.order("move", 200, path="a/b/c/f", to="x/y")["path"] == "x/y"
    files.put("z", b"z")
    files.order("move", 409, path="z", to="x/y")
    files.order("move", 200, path="z", to="x/y", replace=True)
    assert files.get("x/y").body == b"z"
    files.order("move", 404, path="nowhere", to="k")
    files.order("move", 400, path="a", to="a/b/inside")
    files.delete("a", 409)
    assert files.delete("a", recursive="true").body == b""
    files.delete("a", 404)
    files.delete("", 400, recursive="true")
    assert sorted(files.names(recursive="true")) == ["x", "x/y"]


def test_a_directory_is_not_a_file(files):
    files.order("mkdir", 201, path="d")
    files.get("d", 400)
    files.put("d", b"x", 400)
    files.put("d/f", b"x")
    files.put("d/f/g", b"x", 400)


# Archives


def pack(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_a_directory_is_downloaded_as_tar(files, py):
    long = "n" * 200 + "/" + "m" * 200
    py.run(f"import os\nos.makedirs('t/{'n' * 200}'); open('t/{long}', 'w').write('long'); open('t/run', 'w').write('r' * 1000)\n"
           "os.chmod('t/run', 0o750); os.symlink('run', 't/link'); os.mkfifo('t/pipe'); open('t/ü', 'w'); os.link('t/run', 't/hard')")
    answer = files.get("t", format="tar")
    assert answer.headers["Content-Type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        members = {m.name: m for m in tar.getmembers()}
        assert set(members) == {"n" * 200, long, "run", "link", "ü", "hard"}
        assert tar.extractfile("run").read() == b"r" * 1000 and members["run"].mode == 0o750
        assert tar.extractfile(long).read() == b"long" and members["link"].linkname == "run"
    assert files.client.get(f"{files.base}?format=tar").status == 200
    files.get("none", 404, format="tar")


@pytest.mark.parametrize("make_it", [
    "for i in range(40): open(f'hole/{i}', 'wb').truncate(250 << 20)",
    "open('hole/0', 'wb').truncate(250 << 20)\nfor i in range(1, 40): os.link('hole/0', f'hole/{i}')",
], ids=["holes", "names"])
def test_an_archive_is_not_larger_than_the_disk(make, make_it):
    """Forty times the disk out of nothing: refused before the first byte, while one of them is accepted."""
    session = make(resources={"disk": "256Mi", "memory": "512Mi"})
    files = Files(session)
    assert session.run(f"import os\nos.mkdir('hole')\n{make_it}")["status"] == "success"
    assert files.get("hole", 413, format="tar").json["error_code"] == "Sandbox.PayloadTooLarge"
    session.run("for i in range(1, 40): os.unlink(f'hole/{i}')")
    with tarfile.open(fileobj=io.BytesIO(files.get("hole", format="tar").body)) as tar:
        assert [(m.name, m.size) for m in tar.getmembers()] == [("0", 250 << 20)]


def test_tar_is_unpacked(files, py):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, kind, link, data in [("./", tarfile.DIRTYPE, "", b""), ("./d", tarfile.DIRTYPE, "", b""),
                                       ("./d/" + "k" * 150, tarfile.REGTYPE, "", b"long name"),
                                       ("d/f", tarfile.REGTYPE, "", b"content"), ("d/s", tarfile.SYMTYPE, "../d/f", b""),
                                       ("d/h", tarfile.LNKTYPE, "d/f", b"")]:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size, info.mode, info.mtime = kind, link, len(data), 0o640, 1_000_000_000
            tar.addfile(info, io.BytesIO(data))
    reply = files.put("in/here", out.getvalue(), 200, format="tar")
    assert reply["entries"] == 5 and reply["bytes"] == 16
    r = py.run("import os\nos.chdir('in/here'); s = os.stat('d/f')\n"
               "(open('d/s').read(), open('d/' + 'k' * 150).read(), s.st_nlink, oct(s.st_mode & 0o7777), s.st_mtime)")
    assert r["result"] == ["content", "long name", 2, "0o640", 1_000_000_000.0], r


def test_a_tree_survives_the_round_trip(files, py):
    py.run("import os, random\nrandom.seed(1)\nfor i in range(200):\n    d = f'tree/{i % 7}/{i % 3}'; os.makedirs(d, exist_ok=True)\n"
           "    open(f'{d}/{i}', 'wb').write(random.randbytes(random.randrange(3000)))")
    body = files.get("tree", format="tar").body
    files.put("copy", body, 200, format="tar")
    assert py.run("import filecmp, subprocess\nsubprocess.run(['diff', '-r', 'tree', 'copy']).returncode")["result"] == 0


@pytest.mark.parametrize("data, word", [
    (b"this is no archive" * 100, "archive"), (pack({"a": b"x" * 1000})[:700], "archive"), (b"", None),
], ids=["text", "cut", "empty"])
def test_bytes_that_are_not_an_archive_are_refused(files, data, word):
    reply = files.put("t", data, 400 if word else 200, format="tar")
    assert not word or word in reply["error_detail"], reply


# Sizes


def test_a_large_file_is_streamed_both_ways(make, daemon):
    session = make(resources=BIG_RESOURCES)
    files = Files(session)
    files.put("warm", b"w" * MIB)
    files.get("warm")
    block = os.urandom(MIB)
    digest = hashlib.sha256()
    peak = [host.rss_kib(daemon.pid)]
    before = peak[0]

    def body():
        for _ in range(BIG // MIB):
            digest.update(block)
            peak.append(host.rss_kib(daemon.pid))
            yield block

    connection = Client(daemon.socket).connection
    connection.request("PUT", files.url("big"), body=body(), headers={"Content-Length": str(BIG)})
    response = connection.getresponse()
    assert response.status == 201, response.read()
    response.read()
    connection.request("GET", files.url("big"))
    response = connection.getresponse()
    got, size = hashlib.sha256(), 0
    while data := response.read(MIB):
        got.update(data)
        size += len(data)
        peak.append(host.rss_kib(daemon.pid))
    connection.close()
    assert size == BIG and got.digest() == digest.digest()
    assert is_sanitized() or max(peak) - before < 16 * 1024, f"{before} KiB grew to {max(peak)}"


def test_an_interrupted_upload_leaves_nothing_in_the_box(files, daemon):
    files.put("kept", b"old")
    for name in ("kept", "new/file"):
        sock = socket.socket(socket.AF_UNIX if isinstance(daemon.socket, str) else socket.AF_INET)
        sock.connect(daemon.socket)
        sock.sendall(b"PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n" % files.url(name).encode())
        sock.sendall(b"x" * 3_000_000)
        host.wait_until(lambda: any(".part" in n for n in files.names(recursive="true")), 10, "the upload to begin")
        sock.close()
        host.wait_until(lambda: not any(".part" in n for n in files.names(recursive="true")), 10, "the upload to end")
    assert files.get("kept").body == b"old"
    files.get("new/file", 404)


def test_an_interrupted_download_is_abandoned(files, py, daemon):
    py.run("open('f', 'wb').truncate(200 << 20)")
    for _ in range(20):  # more than may run at a time
        with contextlib.closing(Client(daemon.socket)) as other:
            other.connection.request("GET", files.url("f"))
            response = other.connection.getresponse()
            assert response.status == 200 and len(response.read(1000)) == 1000
    host.wait_until(lambda: files.client.get(files.url("f", stat="1")).status == 200, 10, "the slots to be free")


def test_a_full_disk_is_reported_and_leaves_nothing(make):
    session = make(resources={"disk": "32Mi"})
    files = Files(session)
    files.put("half", b"h" * (20 * MIB))
    reply = files.put("more", b"m" * (20 * MIB), 507)
    assert reply["error_code"] == "Sandbox.InsufficientStorage"
    files.client.close()
    assert files.names() == ["half"]
    reply = files.put("t", pack({"a": b"x" * MIB, "b": b"x" * (20 * MIB)}), 507, format="tar")
    files.client.close()
    assert sorted(files.names(recursive="true")) == ["half", "t", "t/a"]


def test_several_streams_at_the_same_time(files, py, daemon):
    data = {f"s{i}": os.urandom(5 * MIB) for i in range(5)}

    def trip(item):
        with contextlib.closing(Client(daemon.socket)) as other:
            mine = Files(py, other)
            mine.put(*item)
            return mine.get(item[0]).body == item[1]

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        assert all(pool.map(trip, data.items()))


def test_too_many_operations_at_a_time_are_refused(files, py, daemon):
    py.run("open('f', 'wb').truncate(200 << 20)")
    others = [Client(daemon.socket) for _ in range(6)]
    for other in others:
        other.connection.request("GET", files.url("f"))
        assert other.connection.getresponse().status == 200
    assert files.get("f", 429).json["error_code"] == "Sandbox.TooManyRequests"
    for other in others:
        other.close()
    host.wait_until(lambda: files.client.get(files.url("f", stat="1")).status == 200, 10, "a free slot")


# Sessions


def test_files_do_not_wait_for_executions(files, py):
    execution = py.start("print('up', flush=True)\n" + NAPS)
    py.wait_for_output(execution, "up")
    files.put("f", b"1")
    assert files.get("f").body == b"1"
    py.act("interrupt")


@pytest.mark.parametrize("end", ["timeout", "cancel"])
def test_a_killed_execution_ends_its_children_and_not_the_upload(files, py, daemon, client, end):
    """Processes that left group, session and parents belong to the execution; an upload meanwhile does not."""
    code = ("import signal, subprocess, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "subprocess.run(['sh', '-c', '(setsid sleep 54321 &)'])\nprint('up', flush=True)\ntime.sleep(60)")
    with contextlib.closing(Client(daemon.socket)) as other:
        other.connection.putrequest("PUT", files.url("slow"))
        other.connection.putheader("Content-Type", "application/octet-stream")
        other.connection.putheader("Content-Length", "10")
        other.connection.endheaders(b"hello")
        host.wait_until(lambda: any(".part" in n for n in files.names()), 10, "the upload to begin")
        execution = py.start(code, timeout=8 if end == "timeout" else 60)  # long enough to be seen running
        py.wait_for_output(execution, "up")
        # The shell returns before its child executes "sleep".
        host.wait_until(lambda: any("54321" in host.cmdline(pid) for pid in daemon.box_pids()), 3, "its daemon")
        if end == "cancel":
            assert client.post(f"{V1}/executions/{execution}/cancel", {}).status == 200
        result = py.result(execution)
        assert result["status"] == {"timeout": "timeout", "cancel": "cancelled"}[end] and result["session_reset"]
        host.wait_until(lambda: not any("54321" in host.cmdline(pid) for pid in daemon.box_pids()), 5, "its end")
        other.connection.send(b"world")
        assert other.connection.getresponse().status == 201
    assert files.get("slow").body == b"helloworld"


def test_files_of_an_ephemeral_session_serve_its_next_execution(make):
    session = make(mode="ephemeral")
    files = Files(session)
    files.put("in.txt", b"given")
    assert session.run("print(open('in.txt').read())\nopen('out', 'w').write('x')")["stdout"] == "given\n"
    assert files.names() == []
    files.put("second", b"2")
    assert session.run("import os\nprint(os.listdir('.'))")["stdout"] == "['second']\n"
    assert session.run("import os\nprint(os.listdir('.'))")["stdout"] == "[]\n"
    assert session.info()["state"] in ("ready", "running")


@needs_freezer
def test_files_of_a_paused_session_are_refused(files, py):
    files.put("f", b"1")
    py.act("pause")
    assert files.get("f", 409).json["error_code"] == "Sandbox.StateConflict"
    files.put("g", b"1", 409)
    py.act("resume")
    assert files.names() == ["f"]


def test_states_without_files(files, py):
    files.put("f", b"1")
    py.act("terminate")
    assert files.get("f", 409).json["error_code"] == "Sandbox.StateConflict"
    files.list(409)
    assert files.client.get(f"{V1}/sessions/nobody/files").json["error_code"] == "Sandbox.SessionNotFound"
    answer = files.client.request("PUT", f"{V1}/sessions/nobody/files/x", body=b"y")
    assert answer.status == 404, answer


# Forms


def form(*fields, boundary="b0undary"):
    out = b""
    for name, filename, data in fields:
        extra = f'; filename="{filename}"' if filename is not None else ""
        out += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n'.encode()
        out += b"Content-Type: application/octet-stream\r\n\r\n" + data + b"\r\n"
    return out + f"--{boundary}--\r\n".encode()


def upload(files, body, status=200, query="", boundary="b0undary"):
    answer = files.client.request("POST", f"{files.base}/upload{query}", body=body,
                                  headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
    assert answer.status == status, answer
    return answer.json


TRICKY = b"\r\n--b0undar\r\n--b0undarx\r\r\n--\r\n" * 10


@pytest.mark.parametrize("fields, query, path", [
    ([("path", None, b"d/named.bin"), ("file", "orig.bin", TRICKY)], "", "d/named.bin"),
    ([("file", "orig.bin", TRICKY), ("path", None, b"d/behind")], "", "d/behind"),
    ([("file", "orig.bin", TRICKY)], "?path=q/x", "q/x"),
    ([("file", "orig.bin", TRICKY)], "", "orig.bin"),
    ([("file", "C/x/orig.bin", TRICKY)], "?path=dir/", "dir/orig.bin"),
], ids=["before", "behind", "query", "own", "directory"])
def test_forms_are_accepted(files, fields, query, path):
    reply = upload(files, form(*fields), query=query)
    assert reply["path"] == reply["file_path"] == path and reply["size"] == len(TRICKY)
    assert reply["session_id"] == files.session.id
    assert files.get(path).body == TRICKY
    assert [n for n in files.names(recursive="true") if "part" in n] == []


def test_a_large_form_is_streamed(files):
    data = os.urandom(20 * MIB)
    assert upload(files, form(("file", "big", data)))["size"] == len(data)
    assert files.get("big").body == data


@pytest.mark.parametrize("body, status", [
    (form(("file", "f", b"x"), ("path", None, b"/abs")), 400), (form(("path", None, b"../x"), ("file", "f", b"x")), 400),
    (form(("path", None, b"p")), 400), (form(("file", None, b"x")), 400), (form(("other", None, b"x")), 400),
    (form(("file", "f", b"x"), ("file", "g", b"y")), 400), (form(("file", "f", b"x" * 1000))[:-20], 400), (b"", 400),
    (b"--b0undary\r\nX: y\r\n\r\nz\r\n--b0undary--", 400), (b"--b0undary\r\n" + b"A" * 5000, 400),
], ids=range(10))
def test_bad_forms_are_refused_and_leave_nothing(files, body, status):
    upload(files, body, status)
    files.client.close()
    host.wait_until(lambda: files.names(recursive="true") == [], 10, f"nothing: {files.names(recursive='true')}")


def test_a_form_needs_its_type_and_has_a_limit(files):
    answer = files.client.request("POST", f"{files.base}/upload", body=b"x", headers={"Content-Type": "text/plain"})
    assert answer.status == 415, answer
    files.client.close()
    head = (f"POST {files.base}/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: {101 * MIB}\r\n"
            "Content-Type: multipart/form-data; boundary=x\r\n\r\n")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as sock:
        sock.connect(files.client.address)
        sock.sendall(head.encode())
        assert b" 413 " in sock.recv(1000)


# Artifacts


def by_path(result):
    assert not result.get("artifacts_truncated"), result
    return {a["path"]: a for a in result["artifacts"]}


def test_an_execution_lists_its_artifacts(files, py):
    assert py.run("x = 1")["artifacts"] == []
    made = by_path(py.run("import os\nos.makedirs('output'); os.makedirs('logs'); os.makedirs('.hidden')\n"
                          "open('output/a.csv', 'w').write('1,2\\n'); open('logs/x', 'w').write('x'); open('run.log', 'w')\n"
                          "open('pic.png', 'wb').write(b'p' * 1000); open('.secret', 'w'); open('.hidden/y', 'w'); os.mkfifo('pipe')\n"
                          "os.symlink('pic.png', 'link')"))
    assert {p: a["type"] for p, a in made.items()} == {
        "output/a.csv": "output", "logs/x": "log", "run.log": "log", "pic.png": "artifact"}
    assert made["pic.png"]["size"] == 1000 and made["pic.png"]["mime_type"] == "image/png"
    assert made["output/a.csv"]["sha256"] == hashlib.sha256(b"1,2\n").hexdigest() == made["output/a.csv"]["checksum"]
    assert files.client.get(made["output/a.csv"]["download_url"]).body == b"1,2\n"


def test_the_interpreters_cache_is_no_artifact(py):
    made = by_path(py.run("import os\nos.mkdir('d')\nopen('d/__init__.py', 'w').close()\nopen('m.py', 'w').close()\n"
                          "import d, m\nassert os.path.isdir('__pycache__') and os.path.isdir('d/__pycache__')\n"
                          "open('__pycache__.txt', 'w').close()"))
    assert set(made) == {"d/__init__.py", "m.py", "__pycache__.txt"}


def test_only_changed_files_are_artifacts(files, py):
    files.put("given", b"1")
    py.run("open('old', 'w').write('1')")
    assert by_path(py.run("2 + 2")) == {}
    assert set(by_path(py.run("open('new', 'w').write('1')"))) == {"new"}
    assert set(by_path(py.run("f = open('old', 'r+'); f.write('2'); f.close()"))) == {"old"}
    assert by_path(py.run("open('old').read()")) == {}


def test_files_uploaded_right_before_are_not_artifacts(files, py):
    """Nearly always within one tick of the file clock: by its time each would be an artifact."""
    py.run("1")
    for i in range(25):
        files.put(f"u{i}", b"1")
        files.order("move", 200, path=f"u{i}", to=f"m{i}")
        assert by_path(py.run("2")) == {}, i
    files.put("archive", pack({"a": b"x", "b": b"y"}), 200, format="tar")
    assert by_path(py.run("3")) == {}
    # A change by the execution right after is found, however alike the file looks.
    for i in range(25):
        files.put("same", b"1")
        assert set(by_path(py.run("f = open('same', 'r+b'); f.write(b'2'); f.close()"))) == {"same"}, i


def test_request_files_are_artifacts_only_if_changed(py):
    for i in range(10):
        assert by_path(py.run("1", files={f"g{i}": "given"})) == {}, i
        assert set(by_path(py.run("open('h', 'w').write('taken')", files={"h": "given"}))) == {"h"}, i


def test_a_one_shot_execution_lists_its_artifacts(client):
    r = client.python("open('out.txt', 'w').write('abc')", files={"in.txt": "given"})
    made = by_path(r)
    assert set(made) == {"out.txt"} and "download_url" not in made["out.txt"]
    assert made["out.txt"]["sha256"] == hashlib.sha256(b"abc").hexdigest()
    assert client.python("1")["artifacts"] == []


def test_many_and_large_artifacts_are_bounded(py):
    r = py.run("import os\nos.mkdir('d')\nfor i in range(300): open(f'd/{i}', 'w')")
    assert len(r["artifacts"]) == 256 and r["artifacts_truncated"] is True
    r = py.run("open('large', 'wb').truncate(40 << 20)")
    assert [(a["path"], a["sha256"]) for a in r["artifacts"]] == [("large", None)]


def test_artifacts_are_kept_with_the_record(py, client):
    execution = py.start("open('kept.txt', 'w').write('k')")
    py.result(execution)
    assert [a["path"] for a in client.get(f"{V1}/executions/{execution}/result").json["artifacts"]] == ["kept.txt"]
