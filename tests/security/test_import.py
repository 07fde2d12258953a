# SPDX-License-Identifier: Apache-2.0
"""Hostile archives. The importer refuses them or contains their effects in the root."""
import gzip
import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tarfile

import pytest

from support import host, oci
from support.daemon import Daemon

pytestmark = pytest.mark.phases("system", "user", "subid")

BUILD = pathlib.Path(os.environ.get("MILLIBOX_BUILD", "build")).resolve()


def run_import(roots, data, *options, name="it"):
    """The importer's output and exit status."""
    run = subprocess.run([BUILD / "millibox-import", "--roots", roots, "--name", name, *options], input=data,
                         capture_output=True, timeout=60, check=False)
    return run.returncode, json.loads(run.stdout) if run.stdout else {}


@pytest.fixture
def places(tmp_path):
    """A directory for roots, and files beside it that must not change."""
    (tmp_path / "roots").mkdir()
    (tmp_path / "victim").write_text("untouched")
    yield tmp_path
    assert (tmp_path / "victim").read_text() == "untouched"
    assert not [p for p in (tmp_path / "roots").iterdir() if p.name.startswith(".tmp-")]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["roots", "victim"]


def refused(places, data, words, *options):
    status, said = run_import(places / "roots", data, *options)
    assert status != 0 and words in said.get("error", ""), said
    assert not list((places / "roots").iterdir()), "nothing of a refused image is kept"
    return said


def imported(places, data, *options):
    status, said = run_import(places / "roots", data, *options)
    assert status == 0, said
    return places / "roots" / "it", said


ABOVE = "../../../victim"


@pytest.mark.parametrize("layer, words", [
    ([oci.entry(ABOVE, b"mine")], "with '..'"),
    ([oci.entry("a/../../b", b"mine")], "with '..'"),
    ([oci.symlink("here", ".."), oci.hardlink("there", ABOVE)], "with '..'"),
    ([oci.hardlink("there", "/nothing/at/all")], "directory of"),
    ([oci.symlink("link", "/etc/passwd"), oci.hardlink("there", "link")], "non-regular file"),
    ([oci.entry("d/.wh...", b"")], "whiteout without a name"),
    ([oci.entry("d/.wh.", b"")], "whiteout without a name"),
    ([oci.entry("x" * 300, b"")], "with '..'"),
    ([oci.entry("/".join(["d" * 200] * 30), b"")], "more than"),
])
def test_a_name_that_leads_out_is_refused(places, layer, words):
    refused(places, oci.Image([layer]).bytes(), words)


def test_control_a_trusting_unpacker_lets_them_lead_out(tmp_path):
    """Control: the same entries are dangerous to a careless extractor."""
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


def test_entries_replace_earlier_ones(places):
    root, _ = imported(places, oci.Image([
        [oci.entry("file", b"1"), oci.folder("dir"), oci.entry("dir/x", b"1"), oci.symlink("link", "dir")],
        [oci.folder("file"), oci.entry("file/in", b"2"), oci.entry("dir", b"now a file"), oci.folder("link")],
    ]).bytes())
    assert (root / "file/in").exists() and (root / "dir").is_file()
    assert (root / "link").is_dir() and not (root / "link").is_symlink()


def test_devices_and_set_uid_bits_are_dropped(places):
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
    root, _ = imported(places, image().bytes())  # control: the intact image is accepted
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
    (oci.tar([oci.entry("index.json", b'{"manifests": []}')]), "no manifest for linux"),
    (oci.tar([oci.entry("index.json", b'{"manifests": [{"digest": "sha256:zz", "size": 1}]}')]), "descriptor"),
    (oci.tar([oci.entry("manifest.json", b'[{"Config": "nowhere", "Layers": []}]')]), "configuration"),
    (oci.tar([oci.entry("index.json", b"{}"), oci.entry("index.json", b"{}")]), "twice"),
    (oci.tar([oci.entry("index.json", b" " * (5 << 20))]), "too large"),
], ids=lambda value: value if isinstance(value, str) else len(value))
def test_bytes_that_are_not_an_image_are_refused(places, data, words):
    refused(places, data, words)


def test_a_bomb_goes_off_in_its_limits(places):
    """Four gigabytes of zeros in four megabytes: a file may not be so large."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, compresslevel=1) as packer:
        info = tarfile.TarInfo("bomb")
        info.size = (4 << 30) + 1
        packer.write(info.tobuf(tarfile.PAX_FORMAT))
        # Only the start is present: the declared rest counts as it is read.
        for _ in range(64):
            packer.write(b"\0" * (1 << 20))
    it = oci.Image([b""])
    it.layers[0] = it.add(out.getvalue(), "application/vnd.oci.image.layer.v1.tar+gzip")
    refused(places, it.bytes(), "layer 1")


def test_docker_save_is_an_image_too(places):
    root, said = imported(places, oci.docker_save([[oci.entry("x", b"1")], [oci.entry(".wh.x"), oci.entry("y")]],
                                                  {"Env": ["A=b"]}))
    assert (root / "y").exists() and not (root / "x").exists() and said["env"] == ["A=b"]


def test_an_import_replaces_no_existing_root(places):
    imported(places, image().bytes())
    status, _ = run_import(places / "roots", image().bytes())
    assert status != 0 and (places / "roots/it/x").exists()


# Bombs: small input that becomes large, many, deep or long. Each has a control within the limits.


def packed(raw, data, kind):
    """An image with one layer: @data, which unpacks to @raw."""
    it = oci.Image([raw])
    it.layers[0] = it.add(data, f"application/vnd.oci.image.layer.v1.tar+{kind}")
    return it.bytes()


def zeros(size, after=b""):
    return oci.tar([oci.entry("zeros", bytes(size))]) + after


def zstd(raw):
    """A handmade zstd frame: runs of one byte take four bytes each, the rest is stored."""
    out, block = bytearray(b"\x28\xb5\x2f\xfd\x00\x38"), 64 << 10  # no checksum, a window of 128 KiB
    for at in range(0, len(raw), block):
        part, last = raw[at:at + block], at + block >= len(raw)
        runs = part == part[:1] * len(part)
        out += ((len(part) << 3) | (2 if runs else 0) | last).to_bytes(3, "little") + (part[:1] if runs else part)
    return bytes(out)


PACKERS = {"gzip": lambda raw: gzip.compress(raw, 9, mtime=0), "zstd": zstd}


@pytest.mark.parametrize("kind", sorted(PACKERS))
def test_a_layer_that_grows_is_refused_where_it_exceeds(places, kind):
    raw = zeros(20 << 20)
    data = PACKERS[kind](raw)
    assert len(data) < len(raw) // 200, "it is a bomb"
    for option, limit in (("--max-file", "file"), ("--max-root", "root")):
        assert refused(places, packed(raw, data, kind), "too large", option, "1Mi")["limit"] == limit
    root, said = imported(places, packed(raw, data, kind), "--max-file", "21Mi")
    assert (root / "zeros").stat().st_size == 20 << 20 == said["bytes"]


@pytest.mark.parametrize("kind", sorted(PACKERS))
def test_bytes_after_the_end_of_a_layer_count(places, kind):
    """A bomb after the end of the archive: it is part of the digest, so it is read."""
    raw = zeros(10, after=bytes(20 << 20))
    data = PACKERS[kind](raw)
    assert refused(places, packed(raw, data, kind), "too large", "--max-root", "1Mi", "--max-entries", "10")["limit"] == "root"
    imported(places, packed(raw, data, kind))


@pytest.mark.parametrize("kind", sorted(PACKERS))
def test_an_archive_that_grows_is_refused(places, kind):
    files = [oci.entry(name, content) for name, content in image().files()]
    whole = oci.tar([oci.entry("unused", bytes(20 << 20))] + files)
    data = PACKERS[kind](whole)
    assert len(data) < len(whole) // 100
    assert refused(places, data, "archive has more", "--max-archive", "1Mi")["limit"] == "archive"
    imported(places, data, "--max-archive", "32Mi")


def test_a_frame_that_needs_much_memory_is_refused(places):
    raw = zeros(10)
    data = bytearray(zstd(raw))
    imported(places, packed(raw, bytes(data), "zstd"))
    data[5] = 0xF8  # a window of 2^41 bytes
    (places / "roots/it").rename(places / "roots/first")
    status, said = run_import(places / "roots", packed(raw, bytes(data), "zstd"))
    assert status != 0 and "layer 1" in said["error"], said
    assert [p.name for p in (places / "roots").iterdir()] == ["first"]


@pytest.mark.parametrize("data", [zstd(zeros(5000))[:200], zstd(zeros(5000))[:5], gzip.compress(zeros(5000))[:40], b"\x1f\x8b",
                                  b"BZh91AY&SY" + bytes(100), b"\xfd7zXZ\0" + bytes(100)], ids=range(6))
def test_a_layer_that_is_cut_or_of_another_kind_is_refused(places, data):
    refused(places, packed(zeros(5000), data, "gzip"), "layer 1")


def test_many_entries(places):
    many = oci.Image([[oci.entry(f"d{n % 10}/f{n}") for n in range(400)]]).bytes()
    assert refused(places, many, "more than 399 entries", "--max-entries", "399")["limit"] == "entries"
    root, said = imported(places, many, "--max-entries", "400")
    assert said["entries"] == 400 and sum(1 for p in root.rglob("*") if p.is_file()) == 400


def test_a_directory_that_is_opaque_many_times_is_cleared_once(places):
    """Ten thousand markers over as many files would take minutes if each looked at all of them."""
    files = [oci.entry(f"d/f{n}") for n in range(10000)]
    markers = [oci.entry("d/.wh..wh..opq")] * 10000
    links = [entry for n in range(200) for entry in (oci.symlink(f"l{n}", "d"), oci.entry(f"l{n}/.wh..wh..opq"))]
    root, _ = imported(places, oci.Image([[oci.entry("d/old")], files + markers + links]).bytes())
    assert len(list((root / "d").iterdir())) == 10000 and not (root / "d/old").exists()


def test_entries_of_all_layers_count_together(places):
    layers = [[oci.entry(f"f{n}") for n in range(10)]] * 3
    refused(places, oci.Image(layers).bytes(), "layer 3: more than 29 entries", "--max-entries", "29")
    imported(places, oci.Image(layers).bytes(), "--max-entries", "30")


def test_many_files_and_directories_in_the_archive_itself(places):
    files = [oci.entry(name, content) for name, content in image().files()]
    refused(places, oci.tar([oci.entry(f"f{n}") for n in range(4097)]), "more than 4096 files")
    # Directories have no content; their headers count.
    folders = oci.tar([oci.folder(f"d{n}") for n in range(3000)] + files)
    assert refused(places, folders, "archive has more", "--max-archive", "1Mi")["limit"] == "archive"
    imported(places, folders, "--max-archive", "4Mi")


def test_many_layers(places):
    layers = [[oci.entry(f"f{n}")] for n in range(20)]
    assert refused(places, oci.Image(layers).bytes(), "more than 19 layers", "--max-layers", "19")["limit"] == "layers"
    assert imported(places, oci.Image(layers).bytes(), "--max-layers", "20")[1]["layers"] == 20


def deep(levels):
    """Deeper than a path can be long: each step continues where the previous step's link leads."""
    step, entries = "/".join(["d"] * 100), []
    for n in range(levels // 100):
        above = f"l{n - 1}/" if n else ""
        entries += [oci.folder(above + step), oci.symlink(f"l{n}", above + step)]
    return oci.Image([entries]).bytes()


def test_a_tree_that_is_too_deep_is_refused_and_removed(places):
    refused(places, deep(600), "measure the root")
    root, _ = imported(places, deep(200))
    assert (root / ("d/" * 199)).is_dir()


def test_a_deep_root_is_removed_completely(places):
    """Control: such a tree, made by another program, is removed at the next start."""
    left = places / "roots/.tmp-left"
    left.mkdir()
    at = os.open(left, os.O_RDONLY)
    for _ in range(700):
        os.mkdir("d" * 200, dir_fd=at)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        server = subprocess.Popen([BUILD / "millibox-import", "--roots", places / "roots"], stdin=subprocess.DEVNULL,
                                  preexec_fn=lambda: os.dup2(theirs.fileno(), 3), pass_fds=[3])
        theirs.close()
        host.wait_until(lambda: not left.exists(), 30, "what was left is gone")
    assert server.wait(host.HANG_S) == 0


def test_long_names(places):
    root, _ = imported(places, oci.Image([[oci.entry("n" * 255, b"1"), oci.entry("/".join(["p" * 250] * 16), b"2")]]).bytes())
    assert (root / ("n" * 255)).read_bytes() == b"1"
    shutil.rmtree(root)
    for name in ("n" * 256, "/".join(["p" * 250] * 17), "n" * (1 << 20)):
        status, _ = run_import(places / "roots", oci.Image([[oci.entry(name)]]).bytes())
        assert status != 0 and not list((places / "roots").iterdir())
    # A pax record that declares a name of a gigabyte.
    info = tarfile.TarInfo("long")
    info.type, info.size = tarfile.XHDTYPE, 1 << 30
    refused(places, oci.Image([info.tobuf() + bytes(4096)]).bytes(), "layer 1")


def sparse(real_size):
    """One block of data, and holes up to the declared size."""
    table = b"1\n0\n512\n"
    data = table.ljust(512, b"\0") + b"s" * 512
    info = tarfile.TarInfo("GNUSparseFile.0/sparse")
    info.size = len(data)
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "sparse",
                        "GNU.sparse.realsize": str(real_size)}
    return oci.Image([info.tobuf(tarfile.PAX_FORMAT) + data + bytes(10240)]).bytes()


def test_holes_of_a_sparse_file_are_bytes(places):
    root, _ = imported(places, sparse(5000))
    assert (root / "sparse").read_bytes() == b"s" * 512 + bytes(4488)
    shutil.rmtree(root)
    for size in (5 << 30, 1 << 50, (1 << 63) - 1):
        assert refused(places, sparse(size), "too large")["limit"] == "file"


def test_false_sizes(places):
    """False sizes in headers: missing data is not made up, excess data is not read."""
    def lying(size):
        info = tarfile.TarInfo("liar")
        info.size = size
        return oci.Image([info.tobuf(tarfile.GNU_FORMAT) + b"x" * 1024]).bytes()

    imported(places, lying(1024))
    (places / "roots/it").rename(places / "roots/first")
    for size in (1 << 20, 5 << 30, (1 << 62) + 1):
        status, said = run_import(places / "roots", lying(size))
        assert status != 0 and "layer 1" in said["error"], said
    assert [p.name for p in (places / "roots").iterdir()] == ["first"]


def test_a_hard_link_through_a_link_stays_inside(places):
    for target in ("..", "/", "../..", "/proc/self/root"):
        refused(places, oci.Image([[oci.symlink("up", target), oci.hardlink("mine", "up/victim")]]).bytes(), "layer 1")
    root, _ = imported(places, oci.Image([[oci.entry("victim", b"inside"), oci.symlink("up", ".."),
                                           oci.hardlink("mine", "up/victim")]]).bytes())
    assert (root / "mine").read_bytes() == b"inside"


@pytest.mark.parametrize("target", ["..", "../..", "/", "/tmp", "."])
@pytest.mark.parametrize("name", [".wh.victim", ".wh..wh..opq", ".wh.roots"])
def test_whiteouts_through_a_link_remove_nothing_outside(places, target, name):
    """The fixture checks what is outside. Control: inside, the links work."""
    layers = [[oci.symlink("up", target), oci.entry("victim", b"inside"), oci.entry("tmp/victim", b"inside")],
              [oci.entry(f"up/{name}")]]
    root, _ = imported(places, oci.Image(layers).bytes())
    gone = (root / ("tmp/victim" if target == "/tmp" else "victim")).exists()
    assert gone == (name == ".wh.roots")


def test_control_another_unpacker_keeps_special_bits(tmp_path):
    """Control of test_devices_and_set_uid_bits_are_dropped: the archive contains them."""
    (tmp_path / "t.tar").write_bytes(oci.tar([oci.entry("su", b"", 0o6755)]))
    with tarfile.open(tmp_path / "t.tar") as archive:
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        archive.extractall(tmp_path)
    assert (tmp_path / "su").stat().st_mode & 0o6000


def test_a_configuration_with_another_digest_than_its_name_is_refused(places):
    data = oci.docker_save([[oci.entry("x")]])
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = [(m, archive.extractfile(m).read()) for m in archive.getmembers()]
    spoiled = [(m, d.replace(b"linux", b"linux ") if m.name.endswith(".json") and m.name != "manifest.json" else d)
               for m, d in files]
    refused(places, oci.tar([oci.entry(m.name, d) for m, d in spoiled]), "has the digest")
    imported(places, oci.tar([oci.entry(m.name, d) for m, d in files]))


@pytest.mark.parametrize("option", ["--max-root=0", "--max-file=x", "--max-entries=-1", "--max-layers=", "--surprise=1"])
def test_invalid_limits_are_refused(places, option):
    run = subprocess.run([BUILD / "millibox-import", "--roots", places / "roots", "--name", "it", option], input=b"",
                         capture_output=True, timeout=60, check=False)
    assert run.returncode == 2 and b"usage" in run.stderr


# CG-6: imports are work for tenants outside boxes


def group_file(pid, controller, name):
    """The content of a file in a process's group."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for top in (f"/sys/fs/cgroup/{controllers}", "/sys/fs/cgroup") if controller in controllers.split(",") or not controllers else ():
            file = pathlib.Path(top + path) / name
            if file.exists():
                return file.read_text().strip()
    return None


@pytest.mark.vm
@pytest.mark.skipif(not host.is_root(), reason="needs root: an ordinary user may have no groups")
def test_imports_have_a_group_with_limits():
    daemon = Daemon(config="imports:\n  max: 2\n  memory: 96Mi\n").start()
    try:
        importer = host.child_named(daemon.pid, "millibox-import")
        held = oci.HeldImport(daemon.socket, "held")
        try:
            host.wait_until(lambda: [c for p in host.children(importer) for c in host.children(p)], 10, "the process that unpacks")
            handler = host.children(importer)[0]
            for pid in (importer, handler, *host.children(handler)):
                memory = group_file(pid, "memory", "memory.limit_in_bytes") or group_file(pid, "memory", "memory.max")
                assert int(memory) == 2 * 96 << 20, memory
                assert int(group_file(pid, "pids", "pids.max")) == 256
                assert "/import" in pathlib.Path(f"/proc/{pid}/cgroup").read_text()
            host.wait_until(lambda: [pathlib.Path(f"/proc/{p}/oom_score_adj").read_text() for p in host.children(handler)] == ["1000\n"],
                            10, "the process that unpacks has raised its score")
            assert "/import" not in pathlib.Path(f"/proc/{daemon.pid}/cgroup").read_text(), "control: the daemon has another"
        finally:
            held.close()
    finally:
        assert daemon.stop() == 0, daemon.log()
        daemon.remove()
