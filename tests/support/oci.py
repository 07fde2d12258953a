# SPDX-License-Identifier: Apache-2.0
"""Image archives, made from scratch: the same bytes every time."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import subprocess
import tarfile

from support.client import Client

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def entry(name, data=b"", mode=0o644, kind=tarfile.REGTYPE, link=""):
    """One entry of a layer."""
    info = tarfile.TarInfo(name)
    info.mode, info.type, info.linkname = mode, kind, link
    info.size = len(data) if kind == tarfile.REGTYPE else 0
    return info, data


def folder(name, mode=0o755):
    return entry(name, mode=mode, kind=tarfile.DIRTYPE)


def symlink(name, target):
    return entry(name, kind=tarfile.SYMTYPE, link=target)


def hardlink(name, target):
    return entry(name, kind=tarfile.LNKTYPE, link=target)


def tar(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Image:
    """An OCI layout; tests may damage its parts before bytes() puts them together."""

    def __init__(self, layers, config=None, compress="gzip", platform=None):
        self.blobs, self.layers, diff_ids = {}, [], []
        for layer in layers:
            raw = layer if isinstance(layer, bytes) else tar(layer)
            diff_ids.append("sha256:" + sha256(raw))
            packed = gzip.compress(raw, 1, mtime=0) if compress == "gzip" else raw
            self.layers.append(self.add(packed, f"application/vnd.oci.image.layer.v1.tar{'+gzip' if compress else ''}"))
        self.config = {"architecture": ARCHITECTURE, "os": "linux", "config": config or {},
                       "rootfs": {"type": "layers", "diff_ids": diff_ids}, **(platform or {})}

    def add(self, data, media):
        digest = sha256(data)
        self.blobs[digest] = data
        return {"mediaType": media, "digest": "sha256:" + digest, "size": len(data)}

    def files(self):
        config = self.add(json.dumps(self.config).encode(), "application/vnd.oci.image.config.v1+json")
        manifest = self.add(json.dumps({"schemaVersion": 2, "config": config, "layers": self.layers}).encode(),
                            "application/vnd.oci.image.manifest.v1+json")
        index = {"schemaVersion": 2, "manifests": [manifest]}
        yield "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode()
        for digest, data in self.blobs.items():
            yield "blobs/sha256/" + digest, data
        yield "index.json", json.dumps(index).encode()

    def bytes(self):
        return tar([entry(name, data) for name, data in self.files()])


def docker_save(layers, config=None):
    """The form of `docker save`: manifest.json, and layers by name."""
    raw = [tar(layer) for layer in layers]
    text = json.dumps({"architecture": ARCHITECTURE, "os": "linux", "config": config or {},
                       "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(r) for r in raw]}}).encode()
    names = [f"{sha256(r)}/layer.tar" for r in raw]
    manifest = [{"Config": sha256(text) + ".json", "RepoTags": ["test:latest"], "Layers": names}]
    return tar([entry(n, r) for n, r in zip(names, raw)]
               + [entry(sha256(text) + ".json", text), entry("manifest.json", json.dumps(manifest).encode())])


def busybox_layer():
    """A shell and what it needs: one static program."""
    data = pathlib.Path("/bin/busybox").read_bytes()
    tools = "sh cat echo ls rm mkdir touch id cp mv grep sleep env pwd dd wc readlink find".split()
    return [folder("bin/"), entry("bin/busybox", data, 0o4755), folder("etc/"), folder("usr/"), folder("root/", 0o700),
            entry("root/secret", b"of root\n", 0o600)] + [symlink(f"bin/{t}", "busybox") for t in tools]


def python_layer():
    """The host's Python under /usr/local/bin, with its library and what both are linked against."""
    version = subprocess.run(["/usr/bin/python3", "-c", "import sys; print('python%d.%d' % sys.version_info[:2])"],
                             capture_output=True, text=True, check=True).stdout.strip()
    layer = [folder("usr/local/bin/"), folder("lib64/"), folder("lib/"), folder("usr/lib/")]
    program = pathlib.Path("/usr/bin/python3").resolve()
    layer.append(entry("usr/local/bin/python3", program.read_bytes(), 0o755))
    needed = {program, *pathlib.Path(f"/usr/lib/{version}/lib-dynload").glob("*.so")}
    libraries = set()
    for binary in needed:
        text = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False).stdout
        libraries |= {word for word in text.split() if word.startswith("/")}
    for library in sorted(libraries):
        layer.append(entry(library.lstrip("/"), pathlib.Path(library).resolve().read_bytes(), 0o755))
    top = pathlib.Path(f"/usr/lib/{version}")
    skipped = {"__pycache__", "test", "idlelib", "tkinter", "ensurepip", "lib2to3", "pydoc_data"}
    for path in sorted(top.rglob("*")):
        if skipped & set(path.parts) or path.is_symlink() or not path.is_file():
            continue
        # Where /usr/local/bin/python3 looks for it: beside its own prefix.
        layer.append(entry("usr/local/lib/" + str(path.relative_to("/usr/lib")), path.read_bytes()))
    return layer


class HeldImport:
    """An import that stalls: only the beginning of the announced archive is sent."""

    def __init__(self, address, ident, key=None, begin=None, total=1 << 20):
        self.id = ident
        self.connection = Client(address).connection
        self.connection.putrequest("POST", f"/api/v1/templates/import?id={ident}")
        for name, value in (("Content-Type", "application/x-tar"), ("Content-Length", str(total))):
            self.connection.putheader(name, value)
        if key:
            self.connection.putheader("Authorization", f"Bearer {key}")
        self.connection.endheaders()
        # Stop inside an entry: the end of an archive would end the import.
        self.connection.send(begin or tar([entry("long", bytes(4096))])[:1024])

    def close(self):
        self.connection.close()
