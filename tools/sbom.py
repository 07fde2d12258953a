# SPDX-License-Identifier: Apache-2.0
"""The software bill of materials of a release: a document of CycloneDX 1.6 that says what each of its files is made of.

It is read from the files themselves, not from a list that someone keeps:

    Debian package   libraries that its programs link, as packages of the host that built them; for static programs the
                     archives that the linker reads, when it links them again; what "Depends" names beside them
    image            the database of dpkg in it
    Python, npm      what the metadata requires, with the range instead of a version, as the release has no copy of it
"""
import datetime
import functools
import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import tarfile
import tempfile
import uuid
import zipfile
from pathlib import Path
from urllib.parse import quote

LICENSE = [{"license": {"id": "Apache-2.0"}}]
#: Which of our files the SBOM calls what.
KINDS = {".deb": "application", ".tar": "container", ".xz": "file", ".whl": "library", ".gz": "library",
         ".tgz": "library"}
ELF = b"\x7fELF"


def output(*words, cwd=None):
    return subprocess.run([str(word) for word in words], cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


class Bom:
    """Components by reference, and what each depends on."""

    def __init__(self):
        self.components, self.edges = {}, {}

    def add(self, ref, kind, name, **facts):
        """Return: @ref."""
        self.components.setdefault(ref, {"type": kind, "bom-ref": ref, "name": name, **facts})
        return ref

    def add_file(self, path, version):
        """One of the release; what else is known of it follows."""
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        # Most of an image is not ours.
        license = {} if path.suffix == ".tar" else {"licenses": LICENSE}
        return self.add(path.name, KINDS[path.suffix], path.name, version=version,
                        hashes=[{"alg": "SHA-256", "content": digest}], **license)

    def add_required(self, ecosystem, name, requirement, scope="required"):
        """What a file asks for, and the release does not have."""
        namespace = "deb/debian" if ecosystem == "deb" else ecosystem
        return self.add(f"{ecosystem}:{name}", "library", name, scope=scope, purl=f"pkg:{namespace}/{quote(name)}",
                        properties=[{"name": "millibox:requirement", "value": requirement or "any version"}])

    def add_package(self, fields):
        """Of Debian, with the fields of its database."""
        name, version, architecture = fields["Package"], fields["Version"], fields["Architecture"]
        source, _, source_version = fields.get("Source", name).partition(" ")
        system = platform.freedesktop_os_release()
        words = {"arch": architecture, "distro": f"{system['ID']}-{system['VERSION_ID']}"}
        if source != name:
            words["upstream"] = source + (f"@{source_version.strip('()')}" if source_version else "")
        qualifiers = "&".join(f"{key}={quote(word, '')}" for key, word in words.items())
        purl = f"pkg:deb/{system['ID']}/{quote(name)}@{quote(version)}?{qualifiers}"
        return self.add(purl, "library", name, version=version, purl=purl)

    def depend(self, ref, *others):
        self.edges.setdefault(ref, set()).update(set(others) - {ref})

    def document(self, version, epoch):
        moment = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        whole = {"type": "application", "bom-ref": "millibox", "name": "millibox", "version": version,
                 "licenses": LICENSE}
        known = sorted(self.components)
        edges = {ref: sorted(self.edges.get(ref, ())) for ref in [whole["bom-ref"], *known]}
        body = {
            "metadata": {"timestamp": moment, "component": whole},
            "components": [self.components[ref] for ref in known],
            "dependencies": [{"ref": ref, "dependsOn": others} for ref, others in edges.items()],
        }
        # The same content has the same number.
        serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
        return {"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX",
                "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1, **body}


# Debian packages


def paragraphs(text):
    """{field: value} of each paragraph of a control file, without continued lines."""
    for paragraph in text.split("\n\n"):
        fields = dict(re.findall(r"(?m)^([\w-]+): *(.*)$", paragraph))
        if fields:
            yield fields


@functools.cache
def owner(path):
    """Fields of this host's package that has a file. The database may know its path from before /lib was a link."""
    real = os.path.realpath(path)
    for name in (real, real.removeprefix("/usr")):
        found = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            package = found.stdout.partition(": ")[0].partition(",")[0]
            return next(paragraphs(output("dpkg-query", "-s", package)))
    raise LookupError(f"no package of this host has {path}")


@functools.cache
def libraries():
    """{name: path} of the libraries that the loader finds."""
    listed = output("/sbin/ldconfig", "-p")
    wanted = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(platform.machine(), "")
    return dict(reversed(re.findall(rf"^\t(\S+) \([^)]*{wanted}[^)]*\) => (\S+)$", listed, re.M)))


def needed(path):
    """Names of libraries that a program or library links."""
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", output("readelf", "-d", "-W", path))


def static_parts(build, name):
    """Files of this host that the linker reads for a program without libraries, when it links it again."""
    command = shlex.split(output("ninja", "-C", build, "-t", "commands", name).splitlines()[-1])
    with tempfile.TemporaryDirectory(prefix="millibox-link-") as scratch:
        command[command.index("-o") + 1] = f"{scratch}/out"
        done = subprocess.run([*command, "-Wl,--trace"], cwd=build, check=True, capture_output=True, text=True)
    return {word for word in done.stdout.split() if word.startswith("/usr/") and word.endswith((".a", ".o"))}


def add_deb(bom, path, ours, build):
    fields = next(paragraphs(output("dpkg-deb", "-f", path)))
    ref = bom.add_file(path, fields["Version"])
    linked = set()
    with tempfile.TemporaryDirectory(prefix="millibox-deb-") as folder:
        output("dpkg-deb", "-x", path, folder)
        for file in sorted(Path(folder).rglob("*")):
            if file.is_symlink() or not file.is_file() or file.read_bytes()[:4] != ELF:
                continue
            names = [name for name in needed(file) if not name.startswith(("libmillibox.", "ld-linux"))]
            parts = [libraries()[name] for name in names] or static_parts(build, file.name)
            linked |= {bom.add_package(owner(part)) for part in parts}
    bom.depend(ref, *linked)
    have = {bom.components[other]["name"] for other in linked}
    for word in filter(None, re.split(r",\s*", fields.get("Depends", ""))):
        name, requirement = re.match(r"([\w.+-]+)(?::\w+)?\s*(.*)", word.partition("|")[0]).groups()
        if name in ours:
            bom.depend(ref, ours[name])
        elif name not in have:
            bom.depend(ref, bom.add_required("deb", name, requirement.strip("() ")))


# The image


def add_image(bom, path, version, ours):
    ref = bom.add_file(path, version)
    with tarfile.open(path) as tar:
        manifest = json.load(tar.extractfile("manifest.json"))
        with tarfile.open(fileobj=tar.extractfile(manifest[0]["Layers"][0]), mode="r|gz") as layer:
            status = next(layer.extractfile(entry).read().decode() for entry in layer
                          if entry.name.lstrip("./") == "var/lib/dpkg/status")
    for fields in paragraphs(status):
        if fields["Status"].endswith(" installed"):
            bom.depend(ref, ours.get(fields["Package"]) or bom.add_package(fields))


# Packages of Python and npm


def add_python(bom, path, metadata):
    ref = bom.add_file(path, re.search(r"(?m)^Version: (.*)$", metadata)[1])
    for word in re.findall(r"(?m)^Requires-Dist: (.*)$", metadata):
        required, _, marker = word.partition(";")
        name, requirement = re.match(r"([\w.-]+)\s*(.*)", required.strip()).groups()
        scope = "optional" if "extra" in marker else "required"
        bom.depend(ref, bom.add_required("pypi", name.lower(), requirement.strip("() "), scope))


def add_npm(bom, path):
    with tarfile.open(path) as tar:
        package = json.load(tar.extractfile("package/package.json"))
    ref = bom.add_file(path, package["version"])
    optional = package.get("peerDependenciesMeta", {})
    for kind in ("dependencies", "peerDependencies"):
        for name, requirement in package.get(kind, {}).items():
            scope = "optional" if optional.get(name, {}).get("optional") else "required"
            bom.depend(ref, bom.add_required("npm", name, requirement, scope))


def read_member(tar, ending):
    with tarfile.open(tar) as archive:
        (entry,) = [entry for entry in archive if entry.name.count("/") == 1 and entry.name.endswith(ending)]
        return archive.extractfile(entry).read().decode()


def read_wheel(path):
    with zipfile.ZipFile(path) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        return wheel.read(name).decode()


def make(version, epoch, build, files):
    """The document. @build: the build directory of the Debian packages."""
    bom = Bom()
    ours = {path.name.partition("_")[0]: path.name for path in files if path.suffix == ".deb"}
    for path in files:
        match path.suffix:
            case ".deb":
                add_deb(bom, path, ours, build)
            case ".tar":
                add_image(bom, path, version, ours)
            case ".whl":
                add_python(bom, path, read_wheel(path))
            case ".gz":
                add_python(bom, path, read_member(path, "/PKG-INFO"))
            case ".tgz":
                add_npm(bom, path)
            case _:
                bom.add_file(path, version)
    bom.depend("millibox", *(path.name for path in files))
    return bom.document(version, epoch)
