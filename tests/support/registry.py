# SPDX-License-Identifier: Apache-2.0
"""Registries of packages that a test fills: those of pip, npm, cargo, go, Maven and NuGet, on loopback, and daemons that use them."""

import base64
import contextlib
import hashlib
import http.server
import io
import json
import subprocess
import tarfile
import threading
import zipfile

import pytest

from support.daemon import Daemon
from support.egress import Resolver

HOST = "registry.test"

#: Of tests in which the pip of the host installs.
needs_pip = pytest.mark.skipif(subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0,
                               reason="needs pip of /usr/bin/python3")


def wheel(name, version="1.0", files=None, requires=()):
    """A wheel of pure Python: (file name, bytes). @files: {path: text}; default: a module with VALUE."""
    files = files if files is not None else {f"{name}/__init__.py": f"VALUE = {version!r}\n"}
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {item}\n" for item in requires)
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*content, f"{info}/RECORD"))
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in {**content, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return f"{name}-{version}-py3-none-any.whl", data.getvalue()


def tar_of(files):
    """{path: text} as tar.gz."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            body = text.encode()
            entry.size, entry.mode = len(body), 0o755
            archive.addfile(entry, io.BytesIO(body))
    return data.getvalue()


def sdist(name, setup, version="1.0"):
    """A source distribution whose setup.py runs @setup when it is installed."""
    files = {f"{name}-{version}/setup.py": setup, f"{name}-{version}/PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
    return f"{name}-{version}.tar.gz", tar_of(files)


class Registry:
    """Serves the packages that were added. @asked: the paths that were requested."""

    def __init__(self, address="127.0.0.1"):
        self.files = {}  # name of a file: bytes
        self.packages = {}  # pip: name: [file]
        self.npm = {}  # name: {version: (file, package.json)}
        self.static = {"/go/": b"", "/maven2/": b"", "/debian/": b""}  # path: bytes, of registries that are files
        self.versions = {}  # folder: [version]
        self.asked = []
        self.gate = None  # an event: files wait for it
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                registry.asked.append(self.path)
                if registry.gate and self.path.startswith("/files/"):
                    registry.gate.wait(60)
                kind, body = registry.answer(self.path, self.headers.get("Host", ""))
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def do_POST(self):
                length = int(self.headers.get("Content-Length", 0))
                registry.asked.append(f"POST {self.path} {self.rfile.read(length)[:200]!r}")
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"{HOST}:{self.port}"

    def answer(self, path, host):
        if path in self.static:
            return "application/octet-stream", self.static[path]
        if path.startswith("/files/"):
            return "application/octet-stream", self.files.get(path.removeprefix("/files/"))
        if path.startswith("/simple/"):
            listed = self.packages.get(path.removeprefix("/simple/").strip("/"))
            links = [f'<a href="/files/{name}#sha256={hashlib.sha256(self.files[name]).hexdigest()}">{name}</a>' for name in listed or ()]
            return "text/html", f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode() if listed else None
        found = self.npm.get(path.removeprefix("/npm/").replace("%2f", "/"))
        return "application/json", json.dumps(self._packument(found, host)).encode() if found else None

    @staticmethod
    def _packument(versions, host):
        name = next(iter(versions.values()))[1]["name"]
        return {"name": name, "dist-tags": {"latest": list(versions)[-1]}, "versions": {
            version: {**package, "dist": {"tarball": f"http://{host}/files/{file}", "integrity": integrity}}
            for version, (file, package, integrity) in versions.items()}}

    def add(self, file):
        """A wheel or source distribution."""
        name, data = file
        self.files[name] = data
        self.packages.setdefault(name.split("-")[0].lower().replace("_", "-"), []).append(name)

    def add_npm(self, name, version="1.0.0", files=None, **package):
        """A package of npm. @package: more of package.json."""
        whole = {"name": name, "version": version, "main": "index.js", **package}
        files = files or {"index.js": f"module.exports = {json.dumps(version)};\n"}
        data = tar_of({"package/package.json": json.dumps(whole), **{f"package/{path}": text for path, text in files.items()}})
        file = f"{name.replace('/', '-').lstrip('@')}-{version}.tgz"
        self.files[file] = data
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        self.npm.setdefault(name, {})[version] = (file, whole, integrity)

    def add_crate(self, name, version="1.0.0", files=None, requires=None, features=None):
        """A crate. @files: {path: text}; default: a library with VALUE. @requires: {name: requirement}."""
        requires, features = requires or {}, features or {}
        manifest = f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2018"\n[dependencies]\n' + "".join(
            f'{need} = "{span}"\n' for need, span in requires.items()) + "[features]\n" + "".join(
            f"{feature} = {json.dumps(needs)}\n" for feature, needs in features.items())
        files = {"Cargo.toml": manifest, **(files or {"src/lib.rs": f'pub const VALUE: &str = "{version}";\n'})}
        data = tar_of({f"{name}-{version}/{path}": text for path, text in files.items()})
        needs = [{"name": need, "req": span, "features": [], "optional": False, "default_features": True, "target": None, "kind": "normal"}
                 for need, span in requires.items()]
        row = {"name": name, "vers": version, "deps": needs, "cksum": hashlib.sha256(data).hexdigest(), "features": features, "yanked": False}
        place = {1: f"1/{name}", 2: f"2/{name}", 3: f"3/{name[0]}/{name}"}.get(len(name), f"{name[:2]}/{name[2:4]}/{name}")
        rows = self.static.setdefault(f"/crates/{place}", b"")
        self.static[f"/crates/{place}"] = rows + json.dumps(row).encode() + b"\n"
        self.static["/crates/config.json"] = json.dumps({"dl": f"http://{self.address}/crates/dl"}).encode()
        self.static[f"/crates/dl/{name}/{version}/download"] = data

    def add_go(self, module, version="v1.0.0", files=None, requires=None):
        """A Go module, in lower case. @files: {path: text}; default: a package with Value. @requires: {module: version}."""
        last = module.rpartition("/")[2]
        files = files or {f"{last}.go": f'package {last}\n\nconst Value = "{version}"\n'}
        mod = f"module {module}\n\ngo 1.18\n" + "".join(f"\nrequire {need} {span}\n" for need, span in (requires or {}).items())
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for path, text in {"go.mod": mod, **files}.items():
                archive.writestr(f"{module}@{version}/{path}", text)
        base = f"/go/{module}/@v"
        self.static[f"{base}/list"] = self.static.get(f"{base}/list", b"") + f"{version}\n".encode()
        self.static[f"{base}/{version}.info"] = json.dumps({"Version": version, "Time": "2026-01-01T00:00:00Z"}).encode()
        self.static[f"{base}/{version}.mod"] = mod.encode()
        self.static[f"{base}/{version}.zip"] = data.getvalue()

    def add_maven(self, group, artifact, version="1.0", jar=b"", requires=()):
        """An artifact of Maven. @jar: bytes. @requires: [(group, artifact, version)]."""
        needs = "".join(f"<dependency><groupId>{g}</groupId><artifactId>{a}</artifactId><version>{v}</version></dependency>" for g, a, v in requires)
        pom = (f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
               f"<version>{version}</version><dependencies>{needs}</dependencies></project>")
        folder = f"/maven2/{group.replace('.', '/')}/{artifact}"
        versions = self.versions.setdefault(folder, [])
        versions.append(version)
        listed = "".join(f"<version>{item}</version>" for item in versions)
        about = (f"<metadata><groupId>{group}</groupId><artifactId>{artifact}</artifactId><versioning><latest>{version}</latest>"
                 f"<release>{version}</release><versions>{listed}</versions></versioning></metadata>")
        for path, data in ((f"{folder}/{version}/{artifact}-{version}.pom", pom.encode()), (f"{folder}/{version}/{artifact}-{version}.jar", jar),
                           (f"{folder}/maven-metadata.xml", about.encode())):
            self.static[path] = data
            self.static[path + ".sha1"] = hashlib.sha1(data).hexdigest().encode()

    def add_nuget(self, name, version="1.0.0", files=None, requires=None):
        """A package of NuGet. @files: {path: bytes}, like lib/net45/x.dll. @requires: {id: range}."""
        needs = "".join(f'<dependency id="{need}" version="{span}" />' for need, span in (requires or {}).items())
        spec = (f'<?xml version="1.0"?><package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd"><metadata><id>{name}</id>'
                f'<version>{version}</version><dependencies><group targetFramework=".NETFramework4.5">{needs}</group></dependencies></metadata></package>')
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for path, body in {f"{name}.nuspec": spec.encode(), **(files or {})}.items():
                archive.writestr(path, body)
        base = f"/nuget/flat/{name.lower()}"
        versions = self.versions.setdefault(base, [])
        versions.append(version)
        self.static["/nuget/index.json"] = json.dumps({"version": "3.0.0", "resources": [
            {"@id": f"http://{self.address}/nuget/flat/", "@type": "PackageBaseAddress/3.0.0"}]}).encode()
        self.static[f"{base}/index.json"] = json.dumps({"versions": versions}).encode()
        self.static[f"{base}/{version}/{name.lower()}.{version}.nupkg"] = data.getvalue()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def daemon_of(registry, config="", packages=None, env=None, rules=None, **options):
    """A daemon that installs from @registry. @packages: more settings of packages.*; @rules: what egress.pypi ... open, by default
    the registry."""
    resolver = Resolver()
    resolver.script[HOST] = [["127.0.0.1"]]
    rules = [registry.address, f"127.0.0.1/32:{registry.port}"] if rules is None else rules
    places = {"pip": "simple", "npm": "npm/", "cargo": "crates/", "go": "go", "maven": "maven2/", "nuget": "nuget/index.json",
              "apt": "debian/"}
    settings = {**{f"{manager}_url": f"http://{registry.address}/{place}" for manager, place in places.items()},
                "timeout": "120s", **(packages or {})}
    egress = {"resolver": f"127.0.0.1:{resolver.port}",
              **{name: rules for name in ("pypi", "npm", "crates", "golang", "maven", "nuget", "debian")}}
    daemon = Daemon(config=f"packages: {json.dumps(settings)}\negress: {json.dumps(egress)}\n{config}",
                    env={"MILLIBOX_PACKAGES_MANAGERS": ",".join(places), **(env or {})}, **options)
    try:
        yield daemon.start()
        assert daemon.stop() == 0, daemon.log()
    finally:
        daemon.remove()
        resolver.close()
