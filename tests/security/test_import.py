# SPDX-License-Identifier: Apache-2.0
"""Archives that mean harm. The importer refuses them, or keeps what they do beneath its root."""
import gzip
import io
import json
import os
import pathlib
import subprocess
import tarfile

import pytest

from support import oci

BUILD = pathlib.Path(os.environ.get("MILLIBOX_BUILD", "build")).resolve()


def run_import(roots, data, name="it"):
    """The importer's own words, and its exit status."""
    run = subprocess.run([BUILD / "millibox-import", "--roots", roots, "--name", name], input=data,
                         capture_output=True, timeout=60, check=False)
    return run.returncode, json.loads(run.stdout) if run.stdout else {}


@pytest.fixture
def places(tmp_path):
    """A directory for roots, and beside it something that must not change."""
    (tmp_path / "roots").mkdir()
    (tmp_path / "victim").write_text("untouched")
    yield tmp_path
    assert (tmp_path / "victim").read_text() == "untouched"
    assert not [p for p in (tmp_path / "roots").iterdir() if p.name.startswith(".tmp-")]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["roots", "victim"]


def refused(places, data, words):
    status, said = run_import(places / "roots", data)
    assert status != 0 and words in said.get("error", ""), said
    assert not list((places / "roots").iterdir()), "nothing of a refused image is kept"


def imported(places, data):
    status, said = run_import(places / "roots", data)
    assert status == 0, said
    return places / "roots" / "it", said


ABOVE = "../../../victim"


@pytest.mark.parametrize("layer, words", [
    ([oci.entry(ABOVE, b"mine")], "leads up"),
    ([oci.entry("a/../../b", b"mine")], "leads up"),
    ([oci.symlink("here", ".."), oci.hardlink("there", ABOVE)], "leads up"),
    ([oci.hardlink("there", "/nothing/at/all")], "directory of"),
    ([oci.symlink("link", "/etc/passwd"), oci.hardlink("there", "link")], "no file"),
    ([oci.entry("d/.wh...", b"")], "whiteout of nothing"),
    ([oci.entry("d/.wh.", b"")], "whiteout of nothing"),
    ([oci.entry("x" * 300, b"")], "leads up"),
    ([oci.entry("/".join(["d" * 200] * 30), b"")], "more than"),
])
def test_a_name_that_leads_out_is_refused(places, layer, words):
    refused(places, oci.Image([layer]).bytes(), words)


def test_unpacked_by_somebody_trusting_they_do_lead_out(tmp_path):
    """The control: the same entries are dangerous to who does not look."""
    inside = tmp_path / "a" / "b" / "c"
    inside.mkdir(parents=True)
    (tmp_path / "victim").write_text("untouched")
    data = oci.tar([oci.entry(ABOVE, b"mine")])
    (tmp_path / "t.tar").write_bytes(data)
    with tarfile.open(tmp_path / "t.tar") as archive:
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        archive.extractall(inside)
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.parametrize("target", ["..", "../../..", "/", "/etc", "../victim", "/proc/self/root", "/proc/self/cwd"])
def test_writing_through_a_planted_link_stays_inside(places, target):
    layers = [[oci.symlink("evil", target)], [oci.entry("evil/victim", b"mine"), oci.entry("evil", b"replaced")]]
    status, _ = run_import(places / "roots", oci.Image(layers).bytes())
    for path in ("/victim", "/etc/victim"):
        assert not os.path.exists(path)
    if status == 0:
        assert not (places / "roots/it/evil").is_symlink()
        assert (places / "roots/it/evil").read_bytes() == b"replaced"


def test_links_of_the_image_are_followed_as_inside_it(places):
    root, _ = imported(places, oci.Image([[oci.folder("usr/bin"), oci.symlink("bin", "usr/bin")],
                                          [oci.entry("bin/tool", b"t", 0o755)]]).bytes())
    assert (root / "usr/bin/tool").read_bytes() == b"t" and (root / "bin").is_symlink()


def test_whiteouts(places):
    root, said = imported(places, oci.Image([
        [oci.entry("a/old", b"1"), oci.entry("a/kept", b"2"), oci.entry("b/deep/er/x", b"3"), oci.entry("b/y", b"4")],
        [oci.entry("a/.wh.old"), oci.entry("b/deep/new", b"5"), oci.entry("b/.wh..wh..opq"), oci.entry("c/.wh.nothing")],
    ]).bytes())
    files = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
    assert files == ["a/kept", "b/deep/new"]
    assert said["layers"] == 2


def test_what_replaces_what(places):
    root, _ = imported(places, oci.Image([
        [oci.entry("file", b"1"), oci.folder("dir"), oci.entry("dir/x", b"1"), oci.symlink("link", "dir")],
        [oci.folder("file"), oci.entry("file/in", b"2"), oci.entry("dir", b"now a file"), oci.folder("link")],
    ]).bytes())
    assert (root / "file/in").exists() and (root / "dir").is_file()
    assert (root / "link").is_dir() and not (root / "link").is_symlink()


def test_devices_and_set_uid_bits_are_left_out(places):
    nodes = [oci.entry(n, kind=k) for n, k in
             (("null", tarfile.CHRTYPE), ("sda", tarfile.BLKTYPE), ("pipe", tarfile.FIFOTYPE))]
    root, said = imported(places, oci.Image([nodes + [oci.entry("su", b"", 0o6755), oci.entry("s", b"", 0o1600)]]).bytes())
    assert said["dropped"] == 3 and not (root / "null").exists() and not (root / "pipe").exists()
    assert (root / "su").stat().st_mode & 0o7777 == 0o777
    assert (root / "s").stat().st_mode & 0o7777 == 0o666


def test_hard_links_stay_one_file(places):
    root, _ = imported(places, oci.Image([[oci.entry("a/x", b"1"), oci.hardlink("b/y", "/a/x")]]).bytes())
    assert (root / "a/x").samefile(root / "b/y")


def image():
    return oci.Image([[oci.entry("x", b"content" * 1000)]])


def spoil(data):
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


def test_digests_are_checked(places):
    broken = image()
    digest = broken.layers[0]["digest"].split(":")[1]
    broken.blobs[digest] = spoil(broken.blobs[digest])
    refused(places, broken.bytes(), "has the digest")
    broken = image()
    broken.config["rootfs"]["diff_ids"][0] = "sha256:" + "0" * 64
    refused(places, broken.bytes(), "diff_id")
    broken = image()
    broken.layers[0]["size"] += 1
    refused(places, broken.bytes(), "size")
    broken = image()
    broken.layers[0]["digest"] = "sha256:" + "1" * 64
    refused(places, broken.bytes(), "not in the archive")
    broken = image()
    broken.config["rootfs"]["diff_ids"].append("sha256:" + "0" * 64)
    refused(places, broken.bytes(), "diff_ids")
    root, _ = imported(places, image().bytes())  # the control: unspoiled it is taken
    assert (root / "x").exists()


def test_a_damaged_layer_is_refused(places):
    for cut in (lambda d: d[:len(d) // 2], spoil):
        raw = oci.tar([oci.entry("x", os.urandom(100000))])
        it = oci.Image([raw])
        packed = gzip.compress(raw, mtime=0)
        it.layers[0] = it.add(cut(packed), "application/vnd.oci.image.layer.v1.tar+gzip")
        refused(places, it.bytes(), "layer 1")


def test_another_machines_image_is_refused(places):
    refused(places, oci.Image([[oci.entry("x")]], platform={"architecture": "s390x"}).bytes(), "not for linux/")


@pytest.mark.parametrize("data, words", [
    (b"", "archive"), (b"no archive at all", "archive"), (b"\0" * 4096, "neither"),
    (oci.tar([oci.entry("index.json", b"{")]), "index.json"),
    (oci.tar([oci.entry("index.json", b"[" * 100000)]), "index.json"),
    (oci.tar([oci.entry("index.json", b'{"manifests": []}')]), "nothing for linux"),
    (oci.tar([oci.entry("index.json", b'{"manifests": [{"digest": "sha256:zz", "size": 1}]}')]), "descriptor"),
    (oci.tar([oci.entry("manifest.json", b'[{"Config": "nowhere", "Layers": []}]')]), "configuration"),
    (oci.tar([oci.entry("index.json", b"{}"), oci.entry("index.json", b"{}")]), "twice"),
    (oci.tar([oci.entry("index.json", b" " * (5 << 20))]), "too large"),
], ids=lambda value: value if isinstance(value, str) else len(value))
def test_what_is_no_image_is_refused(places, data, words):
    refused(places, data, words)


def test_a_bomb_goes_off_in_its_limits(places):
    """Four gigabytes of zeros in four megabytes: a file may not be so large."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, compresslevel=1) as packer:
        info = tarfile.TarInfo("bomb")
        info.size = (4 << 30) + 1
        packer.write(info.tobuf(tarfile.PAX_FORMAT))
        # Only the beginning is there: what is said to follow counts as it comes.
        for _ in range(64):
            packer.write(b"\0" * (1 << 20))
    it = oci.Image([b""])
    it.layers[0] = it.add(out.getvalue(), "application/vnd.oci.image.layer.v1.tar+gzip")
    refused(places, it.bytes(), "layer 1")


def test_docker_save_is_an_image_too(places):
    root, said = imported(places, oci.docker_save([[oci.entry("x", b"1")], [oci.entry(".wh.x"), oci.entry("y")]],
                                                  {"Env": ["A=b"]}))
    assert (root / "y").exists() and not (root / "x").exists() and said["env"] == ["A=b"]


def test_an_import_does_not_replace_what_is_there(places):
    imported(places, image().bytes())
    status, _ = run_import(places / "roots", image().bytes())
    assert status != 0 and (places / "roots/it/x").exists()
