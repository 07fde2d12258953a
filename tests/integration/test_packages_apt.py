# SPDX-License-Identifier: Apache-2.0
"""Packages of Debian on a template with an image: resolved by the image's apt, unpacked into a layer. The archive is the test's own, and
signed; the image is made of the host's apt and dpkg."""

import hashlib
import os
import pathlib
import shutil
import socket
import subprocess

import pytest

from support import oci
from support.daemon import BUILD, Daemon
from support.registry import Registry, daemon_of

V1 = "/api/v1"
LAYERS = f"{V1}/packages/layers"
PROGRAMS = """bash awk expr base64 stat cat sed grep sort cut tr find mkdir mktemp readlink ln sha256sum cmp tee rm cp chmod head tail env uname touch mv dirname
basename id ls apt-get apt-config apt-key dpkg dpkg-deb gpgv tar gzip xz""".split()

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not all(shutil.which(name) for name in (*PROGRAMS, "gpg", "gpgconf")), reason="needs apt, dpkg and gpg"),
]


def libraries_of(files):
    found = set()
    for file in files:
        text = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False).stdout
        found |= {word for word in text.split() if word.startswith("/")}
    return found


STATUS = b"Package: base\nStatus: install ok installed\nArchitecture: all\nMaintainer: t <t@example.test>\nVersion: 1\nDescription: base\n\n"


def apt_layer(files):
    """A root with a shell, apt and dpkg. @files: {path: bytes}, more of them."""
    programs = [pathlib.Path(shutil.which(name, path="/usr/bin:/bin")) for name in PROGRAMS]
    programs += [pathlib.Path("/usr/lib/apt/methods", name) for name in ("http", "gpgv", "store", "copy", "file")]
    layer = [oci.folder(f"{name}/") for name in ("usr", "usr/bin", "usr/lib", "usr/lib/apt", "usr/lib/apt/methods", "etc", "etc/apt", "etc/apt/trusted.gpg.d",
                                                 "etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d", "var", "var/lib", "var/lib/dpkg", "lib64", "lib")]
    layer += [oci.symlink("bin", "usr/bin"), oci.symlink("usr/bin/sh", "bash")]
    for file in programs:
        layer.append(oci.entry(f"usr/{str(file).removeprefix('/usr/').removeprefix('/')}", file.resolve().read_bytes(), 0o755))
    layer += [oci.folder("usr/share/"), oci.folder("usr/share/dpkg/")]
    layer += [oci.entry(str(file).lstrip("/"), file.read_bytes()) for file in pathlib.Path("/usr/share/dpkg").glob("*table")]
    for file in sorted(libraries_of(programs)):
        layer.append(oci.entry(file.lstrip("/"), pathlib.Path(file).resolve().read_bytes(), 0o755))
    return layer + [oci.entry(path, data) for path, data in files.items()]


def import_image(client, files):
    made = client.request("POST", f"{V1}/templates/import?id=debian", body=oci.Image([apt_layer(files)]).bytes(), headers={"Content-Type": "application/x-tar"})
    assert made.status == 201, made


class Archive:
    """dists/testing/main of a signed archive."""

    def __init__(self, folder, registry):
        self.folder, self.registry, self.rows = folder, registry, []
        self.env = {**os.environ, "GNUPGHOME": str(folder / "keys")}
        (folder / "keys").mkdir(mode=0o700)
        self.gpg("--quick-generate-key", "--passphrase", "", "test@example.test", "ed25519", "sign")
        self.key = self.gpg("--export")
        self.architecture = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()

    def gpg(self, *words, data=b""):
        return subprocess.run(["gpg", "--batch", "--pinentry-mode", "loopback", *words], input=data, env=self.env, check=True, capture_output=True).stdout

    def add(self, name, files, version="1.0", depends=""):
        root = self.folder / f"{name}-{version}"
        control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: t <t@example.test>\n" + (
            f"Depends: {depends}\n" if depends else "") + f"Description: {name}\n"
        for path, text in {"DEBIAN/control": control, "DEBIAN/postinst": "#!/bin/sh\ntouch /workspace/ran\n", **files}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
            (root / path).chmod(0o755)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, f"{root}.deb"], check=True, capture_output=True)
        data = pathlib.Path(f"{root}.deb").read_bytes()
        self.registry.static[f"/debian/pool/{name}-{version}.deb"] = data
        self.rows.append(control + f"Filename: pool/{name}-{version}.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n")

    def publish(self):
        listed = "\n".join(self.rows).encode()
        path = f"main/binary-{self.architecture}/Packages"
        release = (f"Origin: test\nSuite: testing\nCodename: testing\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nArchitectures: {self.architecture}\n"
                   f"Components: main\nSHA256:\n {hashlib.sha256(listed).hexdigest()} {len(listed)} {path}\n")
        self.registry.static[f"/debian/dists/testing/{path}"] = listed
        self.registry.static["/debian/dists/testing/InRelease"] = self.gpg("--clearsign", data=release.encode())

    def close(self):
        subprocess.run(["gpgconf", "--kill", "all"], env=self.env, check=False)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    registry = Registry()
    made = Archive(tmp_path_factory.mktemp("archive"), registry)
    made.add("tinylib", {"usr/share/tinylib/words": "hello from a library\n"})
    made.add("tinytool", {"usr/bin/tinytool": "#!/bin/sh\ncat ${0%/usr/bin/*}/usr/share/tinylib/words\n"}, depends="base, tinylib")
    made.add("hopeless", {"usr/bin/hopeless": ""}, depends="not-in-the-archive")
    made.add("modern", {"usr/bin/modern": ""}, depends="libc6 (>= 99)")
    made.add("libc6", {"usr/lib/libc": ""}, version="99")
    made.publish()
    yield made
    made.close()
    registry.close()


@pytest.fixture(scope="module")
def daemon(archive):
    with daemon_of(archive.registry) as daemon:
        with daemon.client() as client:
            import_image(client, {"etc/apt/trusted.gpg.d/test.gpg": archive.key, "var/lib/dpkg/status": STATUS,
                                  "etc/os-release": b'PRETTY_NAME="Test GNU/Linux"\nVERSION_CODENAME=testing\n'})
        yield daemon


def install(client, **fields):
    return client.post(LAYERS, {"manager": "apt", "template_id": "debian", **fields})


def failed(answer, *words):
    assert answer.status == 422 and answer.json["error_code"] == "Sandbox.InstallFailed", answer
    for word in words:
        assert word in answer.json["error_detail"], answer.json


def test_a_template_with_packages_of_debian(daemon):
    command = [str(BUILD / "millibox"), "template", "build", "tools", "--from", "debian", "--apt", "tinytool"]
    built = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env={"PATH": "/usr/bin:/bin", "MILLIBOX_SOCKET": daemon.socket})
    assert built.returncode == 0, built
    with daemon.client() as client:
        done = client.shell("tinytool; ls /workspace", template_id="tools")
        assert done["stdout"] == "hello from a library\n", done  # and no script of the package ran
        assert client.get(f"{V1}/templates/tools").json["manager"] == "apt"


def test_a_lock_of_apt(daemon):
    with daemon.client() as client:
        made = install(client, packages=["tinytool==1.0"])
        assert made.status == 201 and "tinylib==1.0 --hash=sha256:" in made.json["lock"] and "Test GNU/Linux" in made.json["lock"], made
        again = install(client, lock=made.json["lock"])
        assert again.status == 201 and again.json["lock_digest"] == made.json["lock_digest"], again
        wrong = "\n".join(line[:-4] + "0000" if "tinylib" in line else line for line in made.json["lock"].split("\n"))
        failed(install(client, lock=wrong), "tinylib", "hash")


def test_what_a_lock_of_apt_does_not_pin_is_refused(daemon):
    with daemon.client() as client:
        lock = install(client, packages=["tinytool==1.0"]).json["lock"]
        lines = [line for line in lock.split("\n") if "==" in line]
        library, tool = sorted(lines)
        zeros = "sha256:" + "0" * 64
        # However the line is written, its hash is checked.
        for line in (library.replace(" --", "  --"), library.replace("==", ":all=="), f"  {library}"):
            assert install(client, lock=f"{line}\n{tool}").status == 201, line
            failed(install(client, lock=f"{line[:line.index('sha256:')]}{zeros}\n{tool}"), "tinylib", "hash")
        failed(install(client, lock=tool), "tinylib==1.0", "lock does not have it")
        failed(install(client, lock=f"tinylib==1.0\n{tool}"), "tinylib==1.0", "--hash")
        failed(install(client, lock=f"{library} --hash=md5:0\n{tool}"), "md5")


@pytest.mark.parametrize("word", ["-oAPT::Get::AllowUnauthenticated==1", "--allow-downgrades==1", "./x==1", "tinylib==1/../x", "TinyLib==1"])
def test_a_word_of_a_lock_is_no_option(daemon, word):
    with daemon.client() as client:
        failed(install(client, lock=f"{word} --hash=sha256:{'0' * 64}\n"), word, "is not NAME==VERSION")


def test_a_package_that_cannot_be_installed_is_named(daemon):
    with daemon.client() as client:
        failed(install(client, packages=["nothing-there"]), "nothing-there")
        failed(install(client, packages=["hopeless"]), "hopeless")
        failed(install(client, packages=["modern"]), "libc6 99")
        failed(client.post(LAYERS, {"manager": "apt", "packages": ["tinytool"]}), "images")  # the host's root


def test_a_signature_is_checked(daemon, archive):
    path = "/debian/dists/testing/InRelease"
    good = archive.registry.static[path]
    archive.registry.static[path] = good.replace(b"Origin: test", b"Origin: evil")
    try:
        with daemon.client() as client:
            failed(install(client, packages=["tinylib"]), "InRelease")
    finally:
        archive.registry.static[path] = good
    with daemon.client() as client:  # Control.
        assert install(client, packages=["tinylib"]).status == 201


def test_a_package_of_the_public_archive():
    """With the host's sources, keys and list of packages, which has everything that the program needs."""
    release = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines() if "=" in line)
    keys = list(pathlib.Path("/etc/apt/trusted.gpg.d").glob("debian-archive-*-stable.asc")) + list(pathlib.Path("/etc/apt/trusted.gpg.d").glob("debian-archive-*-automatic.asc"))
    if release.get("ID") != "debian" or not keys:
        pytest.skip("needs a Debian host with the keys of its archive")
    try:
        address = socket.getaddrinfo("deb.debian.org", 80, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
        socket.create_connection((address, 80), 20).close()
    except OSError as error:
        pytest.skip(f"deb.debian.org does not answer: {error}")
    files = {f"etc/apt/trusted.gpg.d/{key.name}": key.read_bytes() for key in keys}
    files["etc/apt/sources.list"] = f"deb http://deb.debian.org/debian {release['VERSION_CODENAME']} main\n".encode()
    files["var/lib/dpkg/status"] = pathlib.Path("/var/lib/dpkg/status").read_bytes()
    files["etc/os-release"] = pathlib.Path("/etc/os-release").read_bytes()
    if b"\nPackage: hello\n" in files["var/lib/dpkg/status"]:
        pytest.skip("the package hello is installed on this host")
    daemon = Daemon(config=f"egress: {{debian: [deb.debian.org, {address}/32]}}\n", env={"MILLIBOX_PACKAGES_MANAGERS": "apt"}).start()
    try:
        with daemon.client() as client:
            client.connection.timeout = 300
            import_image(client, files)
            made = client.post(f"{V1}/templates", {"id": "greeting", "name": "greeting", "image": "debian", "manager": "apt", "packages": ["hello"]})
            assert made.status == 201, made
            assert client.shell("hello", template_id="greeting")["stdout"] == "Hello, world!\n"
        assert daemon.stop() == 0
    finally:
        daemon.remove()
