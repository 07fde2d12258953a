# SPDX-License-Identifier: Apache-2.0
"""Installs packages of a NuGet feed (version 3) for Mono: see README.md.

Like NuGet it takes the lowest version of a dependency that all of its users accept. Packages run no code when they
are installed.
"""

import hashlib
import io
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree
import zipfile

TARGET = "/workspace/layer/nuget/lib"
LAYER_RUN = "/workspace/layer/run"
TIMEOUT_S = 30
MAX_BYTES = 512 << 20
# What Mono runs, the best first.
FRAMEWORKS = [*("net" + number for number in "48 472 471 47 462 461 46 452 451 45".split()), "netstandard2.0",
              "net40", "net40-client", "net35", "net20",
              *("netstandard1." + number for number in "6543210"), ""]
LOCKED = re.compile(r"([A-Za-z0-9._-]+)==([0-9A-Za-z.+-]+)(?:\s+--hash=sha256:([0-9a-f]{64}))?\s*$")


def fail(what):
    print(what[:190].replace("\n", " "), flush=True)
    sys.exit(1)


def get(url):
    """Return: bytes; None: the feed does not have it."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            return answer.read(MAX_BYTES)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        said = error.read(500).decode(errors="replace").strip().splitlines()
        fail(f"the registry {urllib.parse.urlsplit(url).hostname} cannot be reached: {said[-1] if said else error}")
    except OSError as error:
        fail(f"the registry {urllib.parse.urlsplit(url).hostname} cannot be reached: {error}")


def order(version):
    """A key that sorts versions; a pre-release precedes its release."""
    main, _, label = version.partition("+")[0].partition("-")
    numbers = [int(part) if part.isdigit() else 0 for part in main.split(".")] + [0] * 4
    parts = [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in label.lower().split(".")]
    return numbers[:4], label == "", parts


def normalise(version):
    """1.0 is 1.0.0, and 1.0.0.0 too."""
    main, dash, label = version.partition("+")[0].partition("-")
    parts = [str(int(part)) if part.isdigit() else part for part in main.split(".")]
    parts += ["0"] * (3 - len(parts))
    return ".".join(parts[:3] if parts[3:] in ([], ["0"]) else parts) + (dash + label.lower())


class Range:
    """NuGet's notation: "1.0" is 1.0 or later, "[1.0]" exactly that, "[1.0,2.0)" an interval."""

    def __init__(self, text):
        self.low = self.high = None
        self.low_in = self.high_in = True
        text = (text or "").replace(" ", "")
        if text[:1] in "[(" and text:
            low, comma, high = text[1:-1].partition(",")
            self.low_in, self.high_in = text[0] == "[", text[-1] == "]"
            self.low, self.high = low or None, (high if comma else low) or None
        elif text:
            self.low = text

    def has(self, version):
        key = order(version)
        if self.low and (key < order(self.low) or (key == order(self.low) and not self.low_in)):
            return False
        return not (self.high and (key > order(self.high) or (key == order(self.high) and not self.high_in)))


def framework(folder):
    """A target framework as a folder's name: ".NETFramework4.5" is net45."""
    name = folder.lower().replace(" ", "")
    name = re.sub(r"^\.netframework(\d)\.(\d)(?:\.(\d))?$", r"net\1\2\3", name)
    return re.sub(r"^\.netstandard", "netstandard", name)


class Feed:
    def __init__(self, url):
        index = get(url)
        try:
            rows = json.loads(index or b"{}")["resources"]
            found = [row["@id"] for row in rows if row["@type"].startswith("PackageBaseAddress/3")]
            self.base = found[0].rstrip("/")
        except (ValueError, KeyError, IndexError, TypeError):
            fail(f"the registry {urllib.parse.urlsplit(url).hostname} is not a NuGet feed of version 3")
        self.packages = {}  # (id, version): bytes

    def versions(self, name):
        found = get(f"{self.base}/{name.lower()}/index.json")
        if found is None:
            fail(f"cannot install {name}: the registry has no package of this name")
        return sorted(json.loads(found)["versions"], key=order)

    def package(self, name, version):
        key = name.lower(), normalise(version)
        if key not in self.packages:
            print(f"Downloading {name} {version}", file=sys.stderr, flush=True)
            data = get(f"{self.base}/{key[0]}/{key[1]}/{key[0]}.{key[1]}.nupkg")
            if data is None:
                fail(f"cannot install {name}=={version}: the registry does not have this version")
            self.packages[key] = data
        return self.packages[key]


def read_spec(name, data):
    """Return: the id as its author writes it, and {id: range} for the framework that is used."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            file = next(item for item in archive.namelist() if item.lower().endswith(".nuspec") and "/" not in item)
            root = xml.etree.ElementTree.fromstring(archive.read(file))
    except (zipfile.BadZipFile, StopIteration, xml.etree.ElementTree.ParseError) as error:
        fail(f"cannot install {name}: its package is damaged: {error}")
    for item in root.iter():
        item.tag = item.tag.rpartition("}")[2]
    needs = root.find("metadata/dependencies")
    groups = {framework(group.get("targetFramework", "")): group for group in (needs.findall("group") if needs is not None else ())}
    chosen = next((groups[word] for word in FRAMEWORKS if word in groups), needs if not groups else None)
    rows = chosen.findall("dependency") if chosen is not None else []
    return root.findtext("metadata/id") or name, {row.get("id"): row.get("version", "") for row in rows}


def resolve(feed, wanted):
    """@wanted: {id: range or None for the newest release}. Return: {lower id: (id, version)}."""
    ranges = {}  # lower id: [(who, range)]
    chosen = {}
    work = [(name, text, "the request") for name, text in wanted.items()]
    direct = {name.lower() for name in wanted}
    while work:
        name, text, user = work.pop(0)
        key = name.lower()
        if user != "the request" and key in direct:
            continue  # the request decides
        own = ranges.setdefault(key, [])
        own.append((user, Range(text)))
        if key in chosen and own[-1][1].has(chosen[key][1]):
            continue
        every = feed.versions(name)
        stable = [version for version in every if "-" not in version]
        eligible = (stable if text is None else every) or every
        good = [version for version in eligible if all(one.has(version) for _, one in own)]
        if not good:
            fail(f"cannot install {name}: no version fits {text or 'any'}, which {user} needs")
        version = good[-1] if text is None else good[0]
        proper, needs = read_spec(name, feed.package(name, version))
        chosen[key] = proper, version
        work += [(need, span, f"{proper} {version}") for need, span in needs.items()]
    return chosen


def unpack(name, data):
    """The assemblies for the best framework."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        folders = {}
        for file in archive.namelist():
            parts = urllib.parse.unquote(file).split("/")
            is_code = parts[-1].lower().endswith((".dll", ".exe"))
            if parts[0].lower() == "lib" and is_code and len(parts) in (2, 3):
                folders.setdefault(framework(parts[1]) if len(parts) == 3 else "", []).append((parts[-1], file))
        best = next((word for word in FRAMEWORKS if word in folders), None)
        if best is None and folders:
            fail(f"cannot install {name}: it is for {', '.join(sorted(folders))}, and not for what Mono has: .NET "
                 "Framework or netstandard2.0")
        for file, member in folders.get(best, ()):
            with open(os.path.join(TARGET, file), "wb") as out:
                out.write(archive.read(member))


def read_lock(text):
    """Our own lines, or packages.lock.json, whose hashes are not those of files.
    Return: {id: (version, SHA-256 or None)}."""
    if text.lstrip().startswith("{"):
        try:
            frameworks = json.loads(text)["dependencies"]
            rows = next(iter(frameworks.values()))
            return {name: (row["resolved"], None) for name, row in rows.items() if "resolved" in row}
        except (ValueError, KeyError, StopIteration, TypeError, AttributeError):
            fail("lock: not a packages.lock.json")
    rows = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            found = LOCKED.match(line)
            if not found:
                fail(f"lock: '{line.strip()[:60]}' is not NAME==VERSION --hash=sha256:...")
            rows[found.group(1)] = found.group(2), found.group(3)
    return rows


def check_hash(name, data, wanted):
    if wanted and hashlib.sha256(data).hexdigest() != wanted:
        fail(f"cannot install {name}: the hash differs from that of the lock")


def split(word):
    name, _, version = word.replace("@", "==").partition("==")
    return name, f"[{version}]" if version else None


def run_script():
    """The caller's own script, which finds the packages."""
    import subprocess

    if not os.environ["MILLIBOX_RUN"]:
        return
    os.makedirs(LAYER_RUN)
    done = subprocess.run(["/bin/sh", "-e", os.environ["MILLIBOX_RUN"]], stdin=subprocess.DEVNULL, stdout=sys.stderr,
                          env={**os.environ, "MONO_PATH": TARGET, "LAYER": LAYER_RUN}, check=False)
    if done.returncode:
        fail(f"run: the script ended with exit code {done.returncode}")


def main(words):
    feed = Feed(os.environ["MILLIBOX_REGISTRY"])
    os.makedirs(TARGET)
    if os.environ["MILLIBOX_LOCK"]:
        with open(os.environ["MILLIBOX_LOCK"], encoding="utf-8") as file:
            rows = read_lock(file.read())
        chosen = {name.lower(): (name, version) for name, (version, _) in rows.items()}
        for name, (version, digest) in rows.items():
            check_hash(f"{name}=={version}", feed.package(name, version), digest)
    else:
        chosen = resolve(feed, dict(split(word) for word in words))
    lines = []
    for key in sorted(chosen):
        name, version = chosen[key]
        data = feed.package(name, version)
        unpack(name, data)
        lines.append(f"{name}=={version} --hash=sha256:{hashlib.sha256(data).hexdigest()}\n")
    run_script()
    sys.stdout.write("# mono\n" + "".join(lines))


main(sys.argv[1:])
