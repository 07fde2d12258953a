# SPDX-License-Identifier: Apache-2.0
"""FA-1..7: the file API against a program in the box that plants links, races, special files and names."""

import concurrent.futures
import contextlib
import http.client
import io
import os
import tarfile
import time
import urllib.parse

import pytest

from support import host
from support.client import Client
from support.sessions import Session

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")

OUTSIDE = b"root:x:0:0"  # start of /etc/passwd in a box


@pytest.fixture
def box(client):
    session = Session(client, mode="persistent")
    yield session
    assert session.delete().status == 200


def call(box, method, path, body=None, client=None, query=""):
    text = urllib.parse.quote(path)
    return (client or box.client).request(method, f"{box.path}/files/{text}{query}", body=body,
                                          headers={"Content-Type": "application/octet-stream"})


def listing(box, query=""):
    answer = box.client.get(f"{box.path}/files{query}")
    assert answer.status == 200, answer
    return answer.json


@pytest.mark.parametrize("target", ["/etc/passwd", "../etc/passwd", "/proc/1/environ", "/proc/self/exe", "/run/millibox",
                                    "/dev/zero", "../../../../etc/passwd", "/workspace/inside"])
def test_links_that_lead_out_are_not_followed(box, target):
    r = box.run(f"import os\nopen('inside', 'w').write('in')\nos.symlink({target!r}, 'link'); os.symlink('/', 'top')\n"
                "os.symlink('inside', 'near')\nprint(open('/etc/passwd').read(10))")
    assert r["stdout"].encode().startswith(OUTSIDE)  # control: the program itself can read it
    answer = call(box, "GET", "link")
    assert answer.status == 400 and OUTSIDE not in answer.body, answer
    assert call(box, "GET", "top/etc/passwd").status == 400
    assert call(box, "PUT", "top/tmp/x", b"x").status == 400
    assert call(box, "DELETE", "top/tmp", query="?recursive=true").status == 400
    assert call(box, "GET", "near").body == b"in"  # control: a link inside is followed
    assert call(box, "PUT", "link", b"mine").status == 201  # replaces the link, not its target
    assert call(box, "GET", "link").body == b"mine"
    assert box.run("open('inside').read()")["result"] == "in"


def test_special_files_block_nothing(box):
    box.run("import os, socket\nos.mkfifo('pipe'); s = socket.socket(socket.AF_UNIX); s.bind('sock'); os.mkdir('dir')")
    begin = time.monotonic()
    for name in ("pipe", "sock", "dir"):
        assert call(box, "GET", name).status == 400
    assert call(box, "PUT", "pipe", b"x").status == 201  # replaced, never opened
    assert time.monotonic() - begin < 5 * host.PATIENCE
    assert call(box, "GET", "pipe").body == b"x"


RACE = """
import os, threading
os.makedirs('real', exist_ok=True); open('real/f', 'w').write('inside')
def flip():
    while not os.path.exists('stop'):
        try:
            os.rename('real', 'away'); os.symlink('/etc', 'real')
            os.unlink('real'); os.rename('away', 'real')
        except OSError: pass
t = threading.Thread(target=flip, daemon=True); t.start()
"""


def test_a_flipping_directory_leads_nowhere(box):
    box.run(RACE + "os.symlink('/etc', 'etc')\nprint(open('etc/passwd').read(10))")
    end = time.monotonic() + 4

    def attack(kind):
        seen = set()
        with contextlib.closing(Client(box.client.address)) as other:
            while time.monotonic() < end:
                if kind == "read":
                    answer = call(box, "GET", "real/passwd", client=other)
                elif kind == "write":
                    answer = call(box, "PUT", "real/written", b"x", client=other)
                elif kind == "list":
                    answer = other.get(f"{box.path}/files?path=real")
                else:
                    answer = other.get(f"{box.path}/files?format=tar")
                assert OUTSIDE not in answer.body and b'"passwd"' not in answer.body, answer
                seen.add(answer.status)
        return seen

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(attack, ["read", "write", "list", "tar"]))
    assert all(s <= {200, 201, 400, 404, 409, 429} for s in statuses), statuses
    box.run("open('stop', 'w')")


def test_control_the_race_works(box):
    """Control: careless name resolution is led outside."""
    r = box.run(RACE + "hits = 0\nfor i in range(200000):\n    try:\n        hits += open('real/passwd').read(4) == 'root'\n"
                "    except OSError: pass\n    if hits: break\nopen('stop', 'w')\nhits", timeout=30)
    assert r["result"] > 0, r


def test_hard_links_are_not_written_through(box):
    box.run("import os\nopen('a', 'w').write('a'); os.link('a', 'b')")
    assert call(box, "PUT", "b", b"new").status == 201
    assert box.run("open('a').read() + open('b').read()")["result"] == "anew"


def test_a_deep_tree_is_walked_within_bounds_and_removed(box):
    box.run("import os\nos.mkdir('deep'); os.chdir('deep')\n"
            "for i in range(3000):\n    os.mkdir('n' * 100); os.chdir('n' * 100)\nopen('end', 'w'); os.chdir('/workspace')")
    whole = listing(box, "?recursive=true&limit=10000")
    assert whole["truncated"] is True and whole["count"] <= 40
    with contextlib.suppress(OSError, http.client.HTTPException):  # disconnected, or refused at once
        assert call(box, "GET", "", query="?format=tar").status == 413
    box.client.close()
    assert call(box, "DELETE", "deep", query="?recursive=true").status == 204
    assert listing(box)["files"] == []


def test_a_tree_without_rights_is_removed(box):
    box.run("import os\nos.makedirs('a/b/c'); open('a/b/c/f', 'w'); os.chmod('a/b/c', 0); os.chmod('a/b', 0o500)")
    assert call(box, "DELETE", "a", query="?recursive=true").status == 204


def test_a_huge_directory_is_listed_in_part(box):
    box.run("import os\nos.mkdir('many')\nfor i in range(15000): open(f'many/{i:06}', 'w')")
    page = listing(box, "?path=many&limit=100")
    assert [f["name"] for f in page["files"]] == [f"{i:06}" for i in range(100)] and page["truncated"]
    assert listing(box, "?path=many&limit=10000")["count"] == 10000
    assert call(box, "DELETE", "many", query="?recursive=true").status == 204


def test_hostile_names_are_only_names(box):
    names = [b"new\nline", b"\x1b[31m", b"\xff\xfe", b"'\"; rm -rf", b"-rf", b"%2e%2e", b"\xe2\x80\xae"]
    box.run(f"for n in {names!r}: open(n, 'w').write('x')")
    page = listing(box)
    assert page["count"] == len(names)
    for entry in page["files"]:
        raw = urllib.parse.unquote_to_bytes(entry["url"])
        served = box.client.get(entry["url"]).status
        assert served == (400 if b"\n" in raw or b"\x1b" in raw else 200), entry
    answer = call(box, "GET", "", query="?format=tar")
    with tarfile.open(fileobj=io.BytesIO(answer.body), errors="surrogateescape") as tar:
        assert {os.fsencode(m.name) for m in tar.getmembers()} == set(names)


def entry(name, kind=tarfile.REGTYPE, link="", data=b""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    return info, io.BytesIO(data)


@pytest.mark.parametrize("entries", [
    [entry("/abs", data=b"x")], [entry("../up", data=b"x")], [entry("a/../../up", data=b"x")],
    [entry("s", tarfile.SYMTYPE, "/etc")], [entry("s", tarfile.SYMTYPE, "../..")], [entry("d/s", tarfile.SYMTYPE, "../../x")],
    [entry("h", tarfile.LNKTYPE, "/etc/passwd")], [entry("h", tarfile.LNKTYPE, "../x")],
    [entry("dev", tarfile.CHRTYPE)], [entry("blk", tarfile.BLKTYPE)], [entry("fifo", tarfile.FIFOTYPE)],
    [entry("in", tarfile.SYMTYPE, "."), entry("in/x", data=b"x")],
    [entry("/".join("d" * 40), data=b"x")],
], ids=range(13))
def test_archives_do_not_lead_out(box, entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(*entry("good", data=b"g"))
        for info, data in entries:
            data.seek(0)
            tar.addfile(info, data)
    answer = call(box, "PUT", "t", out.getvalue(), query="?format=tar")
    assert answer.status == 400, answer
    assert call(box, "GET", "t/good").body == b"g"  # control: the archive itself is valid
    assert box.run("import os\n[n for n in ('/abs', '/up', '/workspace/up', '/x') if os.path.lexists(n)]")["result"] == []


def test_links_that_were_there_are_not_followed_by_archives(box):
    box.run("import os\nos.makedirs('t'); os.symlink('/tmp', 't/d'); os.symlink('/tmp/target', 't/f')")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(*entry("f", data=b"mine"))
        tar.addfile(*entry("d/x", data=b"x"))
    assert call(box, "PUT", "t", out.getvalue(), query="?format=tar").status == 400
    assert box.run("import os\n(os.path.lexists('/tmp/x'), os.path.lexists('/tmp/target'), open('t/f').read())")["result"] == [
        False, False, "mine"]


HUNT = """
import os, threading
open('f', 'wb').truncate(100 << 20)
killed = refused = 0
def hunt():
    global killed, refused
    while not os.path.exists('stop'):
        own = {int(name) for name in os.listdir('/proc/self/task')}
        for p in set(range(2, 500)) - own:
            try:
                os.kill(p, 9)
                killed += 1
            except PermissionError:
                refused += 1
            except OSError:
                pass
hunter = threading.Thread(target=hunt, daemon=True)
hunter.start()
"""


def test_a_program_that_kills_the_worker_harms_only_its_files(box):
    """The worker is hidden in /proc, but its pid can be guessed. With Landlock signal scopes the signal is
    refused; otherwise the worker dies."""
    box.run(HUNT)
    whole = 0
    for _ in range(10):
        with contextlib.closing(Client(box.client.address)) as other:
            with contextlib.suppress(OSError, http.client.HTTPException):  # disconnected in the middle of the file
                whole += len(call(box, "GET", "f", client=other).body) == 100 << 20
    counted = box.run("open('stop', 'w').close()\nhunter.join()\nprint(killed, refused)")
    assert counted["status"] == "success", counted
    killed, refused = map(int, counted["stdout"].split())
    assert killed + refused > 0, "it came to no worker"
    assert killed or whole == 10
    assert call(box, "PUT", "after", b"fine").status == 201
    assert call(box, "GET", "after").body == b"fine"
