# SPDX-License-Identifier: Apache-2.0
"""The files of a release: who has only them can verify, install and use them; whoever changes a byte is found."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest

from conftest import CACHE, need, skip_without_mirror
from support import deb
from support.daemon import ROOT

pytestmark = pytest.mark.phases("package")

REQUIREMENTS = ROOT / "tests/package/requirements.txt"
OUT_OF_REACH = "NewConnectionError|No matching distribution found|Temporary failure|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT"
SIGNERS = "millibox.signers"


def call(*words, ok=True, **kw):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=1800, stdin=kw.pop("stdin", subprocess.DEVNULL), **kw)
    assert not ok or done.returncode == 0, done
    return done


def make_release(out, tree=ROOT, ok=True, **env):
    kept = {name: value for name, value in os.environ.items() if name not in ("SIGNING_KEY", "UNSIGNED")}
    return call(tree / "tools/make-release", *out, ok=ok, env={**kept, **env})


def make_key(folder, name="key"):
    call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name)
    return folder / name


@pytest.fixture(scope="session")
def release(packages, tmp_path_factory):
    """A directory with all files, signed. (Where files differ from the commit only --sign takes them.)"""
    need("ssh-keygen", "mmdebstrap", "npm", "readelf")
    folder = tmp_path_factory.mktemp("release")
    done = make_release([folder / "out"], ok=False, UNSIGNED="1")
    skip_without_mirror(done)
    if done.returncode and re.search(OUT_OF_REACH, done.stderr):
        pytest.skip("the registry of npm is out of reach")
    assert done.returncode == 0, done.stderr
    made = pathlib.Path(done.stdout.strip())
    assert made.parent == folder / "out" and not list(made.glob("*.sig"))
    said = make_release(["--sign", made], SIGNING_KEY=str(make_key(folder))).stderr
    (folder / SIGNERS).write_text(re.search(r"^ *(millibox namespaces=.*)$", said, re.M)[1] + "\n")
    return made


@pytest.fixture
def copy(release, tmp_path):
    """As somebody downloads it, with the line of the signer from elsewhere."""
    shutil.copytree(release, tmp_path / "got", copy_function=os.link)
    shutil.copy(release.parent.parent / SIGNERS, tmp_path / "got")
    return tmp_path / "got"


def verify(folder):
    """What docs/releases.md says. Return: the finished process."""
    (text,) = [text for text in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/releases.md").read_text(), re.S) if text.startswith("ssh-keygen -Y verify")]
    return subprocess.run(["sh", "-ec", text], cwd=folder, capture_output=True, text=True)


def change(path, at=None):
    """One byte. The file is a link to the release's."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 1
    path.unlink()
    path.write_bytes(data)


def find(folder, pattern):
    (path,) = folder.glob(pattern)
    return path


# The list and its signature


def test_every_file_is_in_the_list_and_the_list_is_signed(copy):
    names = {path.name for path in copy.iterdir()}
    listed = {line.split("  ", 1)[1] for line in (copy / "SHA256SUMS").read_text().splitlines()}
    assert names - listed == {"SHA256SUMS", "SHA256SUMS.sig", SIGNERS}
    kinds = (*(f"{name}_*.deb" for name in deb.NAMES), "millibox_*.oci.tar", "millibox-*-py3-none-any.whl", "millibox-[0-9]*.tar.gz",
             "millibox-npm-*.tgz", "millibox-*-source.tar.xz", "millibox-*.cdx.json")
    assert {find(copy, kind).name for kind in kinds} == listed
    done = verify(copy)
    assert done.returncode == 0 and done.stdout.startswith('Good "millibox-release" signature for millibox'), done
    assert done.stdout.count(": OK\n") == len(listed)


def test_who_downloads_one_file_can_verify_it(copy):
    for path in copy.iterdir():
        if not path.name.startswith(("SHA256SUMS", "millibox_", SIGNERS)):
            path.unlink()
    assert verify(copy).returncode == 0


def test_each_changed_file_is_found(copy):
    for name in [path.name for path in copy.iterdir() if path.name not in (SIGNERS, "SHA256SUMS", "SHA256SUMS.sig")]:
        path = copy / name
        change(path)
        done = verify(copy)
        assert done.returncode and f"{name}: FAILED" in done.stdout, (name, done)
        change(path)
    assert verify(copy).returncode == 0, "what was changed back is right again"


@pytest.mark.parametrize("name", ["SHA256SUMS", "SHA256SUMS.sig"])
def test_a_changed_list_or_signature_is_found(copy, name):
    change(copy / name)
    done = verify(copy)
    assert done.returncode and "OK" not in done.stdout, done


def test_another_key_and_another_purpose_are_found(copy, tmp_path):
    """The program verifies what the right key signed for this purpose; here it is not that."""
    def signed(key, namespace):
        (copy / "SHA256SUMS.sig").unlink()
        call("ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", namespace, copy / "SHA256SUMS")
        return verify(copy).returncode

    other, right = make_key(tmp_path, "other"), copy.resolve()
    assert signed(other, "millibox-release")
    (right / SIGNERS).write_text(f'millibox namespaces="millibox-release" {pathlib.Path(f"{other}.pub").read_text()}')
    assert signed(other, "file") and not signed(other, "millibox-release")


def test_a_release_that_nobody_can_verify_is_refused(tmp_path):
    """Before anything is built."""
    out = tmp_path / "out"
    for env, words in (({}, "SIGNING_KEY=FILE is missing"), ({"SIGNING_KEY": str(tmp_path / "none")}, "names no key"),
                       ({"SIGNING_KEY": "key", "UNSIGNED": "1"}, "contradict each other")):
        done = make_release([out], ok=False, **env)
        assert done.returncode == 1 and words in done.stderr and not out.exists(), done


def test_what_differs_from_the_commit_is_not_signed(tmp_path):
    need("mmdebstrap", "npm")
    call("git", "clone", "-q", "--shared", ROOT, tmp_path / "tree")
    (tmp_path / "tree/new.txt").write_text("not in the commit\n")
    for name in ("make-release", "sbom.py"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tree/tools")
    done = make_release([tmp_path / "out"], tmp_path / "tree", ok=False, SIGNING_KEY=str(make_key(tmp_path)))
    assert done.returncode == 1 and "files differ from the commit" in done.stderr and not (tmp_path / "out").exists(), done


def test_only_what_is_still_right_is_signed_later(copy, tmp_path):
    change(find(copy, "*.whl"))
    (copy / "SHA256SUMS.sig").unlink()
    done = make_release(["--sign", copy], ok=False, SIGNING_KEY=str(make_key(tmp_path)))
    assert done.returncode == 1 and not (copy / "SHA256SUMS.sig").exists(), done


# The same bytes again


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def test_packages_of_the_source_archive_are_the_same_bytes(release, tmp_path):
    """In another directory, and without git: the archive is complete."""
    if "dirty" in release.name:
        pytest.skip("files differ from the commit, which the archive has")
    call("tar", "-C", tmp_path, "-xf", find(release, "*-source.tar.xz"))
    (tree,) = (path for path in tmp_path.iterdir() if path.is_dir())
    made = deb.build(tmp_path / "out", tree)
    assert {name: sha256(path) for name, path in made.items()} == {name: sha256(find(release, f"{name}_*.deb")) for name in deb.NAMES}


def test_an_image_made_again_is_the_same_bytes(release, image):
    assert sha256(image) == sha256(find(release, "*.oci.tar"))


# Libraries


def make_venv(path):
    call("/usr/bin/python3", "-m", "venv", path)
    return path / "bin"


def pip(bin_dir, *words):
    """Without any program but Python: no compiler could be used."""
    done = call(bin_dir / "pip", "install", "-q", "--no-input", "--disable-pip-version-check", *words, ok=False,
                env={**os.environ, "PATH": str(bin_dir), "CC": "/bin/false"})
    if done.returncode and re.search(OUT_OF_REACH, done.stderr):
        pytest.skip(f"the package index does not answer: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done


@pytest.mark.parametrize("pattern", ["millibox-*.whl", "millibox-[0-9]*.tar.gz"])
def test_pip_installs_it_without_a_compiler(release, daemon, tmp_path, pattern):
    python = make_venv(tmp_path / "venv")
    pip(python, find(release, pattern))
    code = f"import millibox\nwith millibox.Client(socket={daemon.socket!r}) as client: print(client.run_code('print(6 * 7)').text, millibox.__version__)"
    text, version = call(python / "python", "-I", "-c", code, cwd=tmp_path).stdout.split()
    assert text == "42" and f"-{version}-" in find(release, "millibox-*.whl").name


def test_npm_installs_it(release, daemon, tmp_path):
    archive = find(release, "millibox-npm-*.tgz")
    call("npm", "init", "-y", cwd=tmp_path)
    call("npm", "install", "--offline", "--no-audit", "--no-fund", archive, cwd=tmp_path)
    (tmp_path / "main.mjs").write_text('import { Client, VERSION } from "millibox";\nconst client = new Client();\n'
                                       'console.log((await client.runCode("print(6 * 7)")).text.trim(), VERSION);\nawait client.close();\n')
    done = call("node", "main.mjs", cwd=tmp_path, env={**os.environ, "MILLIBOX_SOCKET": daemon.socket})
    text, version = done.stdout.split()
    assert text == "42" and archive.name == f"millibox-npm-{version}.tgz"


def load_make_release():
    loader = SourceFileLoader("make_release", str(ROOT / "tools/make-release"))
    module = module_from_spec(spec_from_loader("make_release", loader))
    loader.exec_module(module)
    return module


def test_programs_that_build_do_not_learn_where_the_key_is(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setenv("SIGNING_KEY", "/root/release-key")
    monkeypatch.setenv("MIRROR", "http://mirror")
    words = ("sh", "-c", "echo ${SIGNING_KEY-none} ${MIRROR-none}")
    assert load_make_release().run(*words) == "none http://mirror"
    # Control: other programs do.
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "/root/release-key http://mirror\n"


def test_versions_of_a_commit_are_older_than_the_releases(monkeypatch):
    from pip._vendor.packaging.version import Version

    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    versions = load_make_release().versions
    assert versions("0.1.0") == ("0.1.0", "0.1.0")
    before = "0.1.0~git970.050d869b"
    python, npm = versions(before)
    assert call("dpkg", "--compare-versions", before, "lt", "0.1.0") and Version(python) < Version("0.1.0")
    # Words after a hyphen are a version before.
    assert npm == "0.1.0-git.970.g050d869b" and versions(before + "+dirty")[1] == npm + ".dirty"
    assert str(Version(versions("0.1.0+dirty")[0])) == "0.1.0+dirty"


# The SBOM


@pytest.fixture(scope="module")
def bom(release):
    return json.loads(find(release, "*.cdx.json").read_text())


def depends(bom, pattern):
    """Names of what the file with this name consists of or needs."""
    edges = {edge["ref"]: edge["dependsOn"] for edge in bom["dependencies"]}
    (ref,) = [ref for ref in edges if re.fullmatch(pattern, ref)]
    names = {component["bom-ref"]: component["name"] for component in bom["components"]}
    return {names[other] for other in edges[ref]}


def test_it_is_cyclonedx(bom, release):
    python = CACHE / "validator"
    if not (python / "complete").exists() or (python / "complete").stat().st_mtime < REQUIREMENTS.stat().st_mtime:
        make_venv(python)
        pip(python / "bin", "-r", REQUIREMENTS)
        (python / "complete").touch()
    code = """if True:
        import sys
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator
        print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))"""
    path = find(release, "*.cdx.json")
    assert call(python / "bin/python", "-c", code, path).stdout == "None\n"
    # It refuses what is wrong.
    wrong = CACHE / "wrong.json"
    wrong.write_text(path.read_text().replace('"type": "library"', '"type": "book"', 1))
    assert "book" in call(python / "bin/python", "-c", code, wrong).stdout
    wrong.unlink()


def test_it_names_what_is_linked(bom):
    linked = depends(bom, r"millibox_.*\.deb")
    assert {"libc6", "libmicrohttpd12", "libuv1", "libsqlite3-0", "libsodium23", "python3", "adduser"} <= linked
    assert {"musl-dev", "libc6-dev"} <= linked, "the agent and the engine are static"
    assert depends(bom, r"libmillibox0_.*") >= {"libcurl3-gnutls", "libjansson4"} and "libmicrohttpd12" not in depends(bom, r"libmillibox0_.*")
    assert depends(bom, r".*\.whl") >= {"httpx", "langchain-core"} and depends(bom, r"millibox-npm-.*") == {"ai"}
    scopes = {component["name"]: component.get("scope") for component in bom["components"]}
    assert (scopes["httpx"], scopes["langchain-core"], scopes["ai"]) == ("required", "optional", "optional")


def test_it_has_every_package_of_the_image_and_every_file(bom, release):
    with tarfile.open(find(release, "*.oci.tar")) as tar:
        (manifest,) = json.load(tar.extractfile("manifest.json"))
        with tarfile.open(fileobj=tar.extractfile(manifest["Layers"][0]), mode="r|gz") as layer:
            status = next(layer.extractfile(entry).read().decode() for entry in layer if entry.name.endswith("var/lib/dpkg/status"))
    installed = {re.search(r"^Package: (.*)$", paragraph, re.M)[1] for paragraph in status.split("\n\n") if "\nStatus: install ok installed" in paragraph}
    names = {name.partition("_")[0] if name.endswith(".deb") else name for name in depends(bom, r".*\.oci\.tar")}
    assert len(installed) > 50 and names == installed
    hashes = {component["name"]: component["hashes"][0]["content"] for component in bom["components"] if "hashes" in component}
    listed = dict(reversed(line.split("  ")) for line in (release / "SHA256SUMS").read_text().splitlines())
    assert hashes == {name: digest for name, digest in listed.items() if not name.endswith(".cdx.json")}
