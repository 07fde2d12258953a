# SPDX-License-Identifier: Apache-2.0
"""millibox cp: files and directories, both ways; a hostile session gains nothing."""

import json
import os
import stat

import pytest

from test_cli import millibox

pytestmark = pytest.mark.phases("system")


@pytest.fixture
def cp(daemon):
    def call(source, target, status=0, options=()):
        done = millibox("cp", "--socket", daemon.socket, *options, str(source), str(target))
        assert done.returncode == status, done
        return done

    return call


def listing(root):
    """{relative name: content, or where a link points}"""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def test_a_file_goes_in_and_comes_out(cp, sh, tmp_path):
    source = tmp_path / "tool.sh"
    source.write_bytes(b"#!/bin/sh\necho \xff\n")
    source.chmod(0o755)
    cp(source, f"{sh.id}:bin/")
    cp(source, f"{sh.id}:renamed")
    assert sh.run("ls -l bin/tool.sh renamed | cut -c1-10")["stdout"] == "-rwxr-xr-x\n-rwxr-xr-x\n"
    cp(f"{sh.id}:bin/tool.sh", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    (tmp_path / "dir").mkdir()
    cp(f"{sh.id}:bin/tool.sh", tmp_path / "dir")
    assert (tmp_path / "dir/tool.sh").read_bytes() == source.read_bytes()


def test_what_was_copied_is_json(cp, sh, tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/b").write_bytes(b"123")
    done = json.loads(cp(tmp_path / "a", f"{sh.id}:in/", options=["--json"]).stdout)
    assert done == {"session_id": sh.id, "path": "in/a", "local_path": str(tmp_path / "a"), "type": "file", "bytes": 5}
    done = json.loads(cp(f"{sh.id}:in/a", tmp_path / "back", options=["--json"]).stdout)
    assert done == {"session_id": sh.id, "path": "in/a", "local_path": str(tmp_path / "back"), "type": "file", "bytes": 5}
    done = json.loads(cp(tmp_path / "d", f"{sh.id}:d", options=["--json"]).stdout)
    assert done.pop("bytes") > 3 and done == {"session_id": sh.id, "path": "d", "local_path": str(tmp_path / "d"), "type": "directory"}
    done = json.loads(cp(f"{sh.id}:d", tmp_path / "e", options=["--json"]).stdout)
    assert done["type"] == "directory" and (tmp_path / "e/b").read_bytes() == b"123"


def test_a_directory_goes_in_and_comes_out(cp, sh, tmp_path):
    source = tmp_path / "src"
    (source / "deep/er").mkdir(parents=True)
    (source / "a.txt").write_text("a")
    (source / "deep/er/big").write_bytes(os.urandom(3 << 20))
    (source / "link").symlink_to("a.txt")
    cp(source, f"{sh.id}:copy")
    cp(source, f"{sh.id}:into/")
    assert sh.run("find copy into -type f | sort")["stdout"].split() == [
        "copy/a.txt", "copy/deep/er/big", "into/src/a.txt", "into/src/deep/er/big"]
    cp(f"{sh.id}:copy", tmp_path / "out")
    assert listing(tmp_path / "out") == listing(source)
    cp(f"{sh.id}:copy", tmp_path / "again", options=["-r"])  # as a user of cp writes it
    assert listing(tmp_path / "again") == listing(source)


def test_a_hostile_directory_writes_nothing_outside(cp, py, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a").symlink_to(victim)  # was there before: replaced, not followed
    py.run(f"""
import os
os.makedirs("d/sub")
open("d/a", "w").write("theirs")
os.symlink({str(tmp_path)!r}, "d/escape")
open("d/sub/tool", "w").write("x")
os.chmod("d/sub/tool", 0o6777)
os.mkfifo("d/pipe")
""")
    cp(f"{py.id}:d", tmp_path / "out")
    # The directory has a name of its own below an existing one.
    got = tmp_path / "out/d"
    assert (got / "a").read_text() == "theirs" and victim.read_text() == "mine"
    assert os.readlink(got / "escape") == str(tmp_path)  # as a link, not followed
    assert not (got / "pipe").exists()
    assert stat.S_IMODE((got / "sub/tool").stat().st_mode) & 0o7000 == 0


def test_links_do_not_lead_a_second_copy_outside(cp, py, tmp_path):
    """The first copy leaves a link; the second has a directory of its name with a file in it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    py.run(f"import os; os.mkdir('d'); os.symlink({str(outside)!r}, 'd/x')")
    cp(f"{py.id}:d", tmp_path / "out")
    assert (tmp_path / "out/x").is_symlink()
    py.run("import os; os.unlink('d/x'); os.mkdir('d/x'); open('d/x/file', 'w').write('theirs')")
    cp(f"{py.id}:d/", tmp_path / "out2")  # control: the archive really has the file
    assert (tmp_path / "out2/x/file").read_text() == "theirs"
    cp(f"{py.id}:d/", f"{tmp_path}/out2/")
    (tmp_path / "again").mkdir()
    (tmp_path / "again/d").mkdir()
    (tmp_path / "again/d/x").symlink_to(outside)
    cp(f"{py.id}:d", tmp_path / "again")
    assert list(outside.iterdir()) == []
    assert (tmp_path / "again/d/x/file").read_text() == "theirs"


def test_wrong_use_is_explained(cp, sh, tmp_path):
    assert b"SESSION:PATH" in cp(tmp_path, tmp_path, status=2).stderr
    assert b"SESSION:PATH" in cp(f"{sh.id}:a", f"{sh.id}:b", status=2).stderr
    assert b"No such file" in cp(tmp_path / "none", f"{sh.id}:x", status=2).stderr
    assert cp(f"{sh.id}:none", tmp_path / "x", status=125).stderr
    assert b"no session" in cp("nosuch:none", tmp_path / "x", status=125).stderr
    assert not (tmp_path / "x").exists()
