# SPDX-License-Identifier: Apache-2.0
"""The commands of README.md and docs/tour.md, from the first to the last, in a Debian that has nothing but git and make: from
source and from the packages, as root and as an ordinary user. Times are printed (pytest -rP)."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from conftest import make_root, need, unpacked
from support import host
from support.daemon import ROOT
from support.egress import Resolver
from support.registry import HOST, Registry, wheel
from support.root import entered

pytestmark = pytest.mark.phases("package")

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
PORT = 8000
#: A build on a busy machine.
LONG_S = 1800
#: How this host reaches registries.
REACH = ("PIP_", "SSL_CERT", "REQUESTS_CA", "http_proxy", "https_proxy", "no_proxy")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
#: Where no package of the root puts its own: apt brings ca-certificates along.
OWN_CERTIFICATES = "etc/host-certificates.crt"
BEST_EFFORT = {"MILLIBOX_ISOLATION": "best-effort"}


def block(page, first, kind="sh"):
    (text,) = [text for language, text in BLOCK.findall((ROOT / page).read_text()) if language == kind and text.startswith(first)]
    return text


@pytest.fixture(scope="session")
def bare_tar():
    need("mmdebstrap")
    return make_root(["git", "make"])


@pytest.fixture
def bare_root(bare_tar, tmp_path_factory):
    with unpacked(bare_tar, tmp_path_factory.mktemp("bare")) as path:
        # Names and certificates of servers are the host's.
        for source, name in (("/etc/resolv.conf", "etc/resolv.conf"), ("/etc/hosts", "etc/hosts"), (CERTIFICATES, OWN_CERTIFICATES)):
            if os.path.exists(source):
                shutil.copy(source, path / name)
        yield path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Reader:
    """Types commands in a root, as a user, in a directory, and takes the time."""

    def __init__(self, root, user="root", folder="/root", **env):
        self.root, self.user, self.folder = root, user, folder
        # Where a layer is missing, "millibox doctor" says so with its status, and the reader goes on.
        self.shell = "set -euo pipefail" if user == "root" else "set -uo pipefail"
        self.port = free_port()
        self.env = {"MILLIBOX_LISTEN": f"127.0.0.1:{self.port}", "HOME": "/root" if user == "root" else f"/home/{user}", **env,
                    **{name: value for name, value in os.environ.items() if name.startswith(REACH)}}
        if os.path.exists(CERTIFICATES):
            self.env.update(dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT"), f"/{OWN_CERTIFICATES}"))

    def words(self, text):
        text = text.replace(f"127.0.0.1:{PORT}", f"127.0.0.1:{self.port}")
        as_user = [] if self.user == "root" else ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups"]
        return [*as_user, "bash", "-c", f"{self.shell}\ncd {self.folder}\n{text}"]

    def type(self, name, text, ok=True):
        """The finished process."""
        begin = time.monotonic()
        done = self.root.run(*self.words(text), ok=False, timeout=LONG_S, **self.env)
        print(f"{time.monotonic() - begin:7.1f} s  {self.user}: {name}")
        assert not ok or done.returncode == 0, (text, done.stdout[-3000:], done.stderr[-3000:])
        return done

    def start(self, text):
        return self.root.start(*self.words(text), **self.env)

    def answers(self):
        return not subprocess.run(["curl", "-sf", f"http://127.0.0.1:{self.port}/readyz"], capture_output=True).returncode


def take_first_steps(reader, path=""):
    """What README.md and the tour show for a daemon that runs. @path: how the reader finds the programs."""
    def typed(page, first, kind="sh", change=lambda text: text):
        # The last command may be "millibox doctor", which says with its status what a user lacks; the output is checked below.
        return reader.type(f"{page}: {first}", path + change(block(page, first, kind)), ok=reader.user == "root").stdout

    assert typed("README.md", "millibox run -c").startswith("42\n")
    assert '"stdout":"42\\n"' in typed("docs/tour.md", "curl -s http://127.0.0.1:8000/api/v1/execute").replace('": "', '":"')
    lines = typed("docs/tour.md", "millibox run -c").splitlines()
    assert (lines[0], lines[2], lines[3]) == ("42", "42", "sum: 6")
    assert '"result":42' in typed("docs/tour.md", "id=$(curl").replace('": ', '":')


def take_the_rest(reader, path=""):
    def as_root(text):
        return text if reader.user == "root" else text.replace("apt-get", "sudo apt-get", 1)

    done = reader.type("docs/tour.md: pandas, a figure, files", path + as_root(block("docs/tour.md", "apt-get install")))
    assert "a.csv" in done.stdout and "a.png" in done.stdout


def make_user(root, name="alice"):
    root.run("useradd", "--create-home", "--shell", "/bin/bash", name)
    return name


def make_sudoer(root, folder):
    root.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "sudo")
    name = make_user(root)
    (folder / "etc/sudoers.d/all").write_text(f"{name} ALL=(ALL) NOPASSWD:ALL\n")
    return name


@pytest.mark.parametrize("user", ["root", "alice"])
def test_from_source(bare_root, user):
    with entered(bare_root) as root:
        root.run("apt-get", "update", "-qq")
        home = "/root" if user == "root" else f"/home/{make_sudoer(root, bare_root)}"
        subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(ROOT), f"{bare_root}{home}/millibox"], check=True)
        root.run("chown", "-R", f"{user}:", f"{home}/millibox")
        reader = Reader(root, user, f"{home}/millibox")
        begin = time.monotonic()
        daemon = reader.start(block("README.md", "make run ").partition("#")[0].strip() + f" LISTEN=127.0.0.1:{reader.port}")
        host.wait_until(lambda: daemon.poll() is not None or reader.answers(), LONG_S, "make run has ended or the daemon is ready")
        assert daemon.poll() is None, daemon.communicate()
        print(f"{time.monotonic() - begin:7.1f} s  {user}: make run, until the daemon is ready")
        path = 'export PATH="$PWD/build:$PATH"\n'
        take_first_steps(reader, path)
        take_the_rest(reader, path)
        reader.type("Python", path + ("" if user == "root" else "sudo ") + "apt-get install -y -qq python3-venv >/dev/null\n"
                    "python3 -m venv venv && venv/bin/pip install -q ./sdk/python\n"
                    f"venv/bin/python - <<'END' | grep -x 42\n{block('README.md', 'import millibox', 'python')}END\n")
        os.killpg(daemon.pid, signal.SIGINT)  # Ctrl-C
        daemon.communicate(timeout=host.HANG_S)


def copy_packages(packages, folder):
    for path in packages.values():
        shutil.copy(path, folder)


@pytest.fixture
def of_registry():
    """Variables of a daemon whose registry has a package "parrot"."""
    registry, resolver = Registry(), Resolver()
    registry.add(wheel("parrot"))
    resolver.script[HOST] = [["127.0.0.1"]]
    yield {"MILLIBOX_PACKAGES_PIP_URL": f"http://{registry.address}/simple", "MILLIBOX_EGRESS_RESOLVER": f"127.0.0.1:{resolver.port}",
           "MILLIBOX_EGRESS_PYPI": f"{registry.address},127.0.0.1/32:{registry.port}"}
    resolver.close()
    registry.close()


def test_from_the_packages(packages, bare_root, of_registry):
    with entered(bare_root) as root:
        root.run("apt-get", "update", "-qq")
        copy_packages(packages, bare_root / "root")
        reader = Reader(root, **of_registry)
        reader.type("README.md: apt-get install", "export DEBIAN_FRONTEND=noninteractive\n" +
                    block("README.md", "apt-get install ./").replace("apt-get install", "apt-get install -y -qq"))
        # What the tour types, beside Millibox.
        reader.type("apt-get install curl", "apt-get install -y -qq curl")
        take_first_steps(reader)
        take_the_rest(reader)
        assert reader.type("python3 -m pip", "python3 -m pip --version", ok=False).returncode, "the wheel installs, not the host's pip"
        done = reader.type("millibox run --package", "millibox run --package parrot -c 'import parrot; print(parrot.VALUE)'")
        assert done.stdout == "1.0\n", done
        done = reader.type("Python", f"python3 - <<'END'\n{block('README.md', 'import millibox', 'python')}END\n")
        assert done.stdout == "42\n"
        reader.type("millibox down", "millibox down")


def test_from_the_packages_as_an_ordinary_user(packages, bare_root):
    """Without a daemon of the system, without subordinate ids and groups: strict says what to do, and that works."""
    with entered(bare_root) as root:
        root.run("apt-get", "update", "-qq")
        copy_packages(packages, bare_root / "root")
        root.shell("cd /root && apt-get install -y -qq --no-install-recommends ./*.deb curl")
        user = make_user(root)
        reader = Reader(root, user, f"/home/{user}")
        done = reader.type("millibox run", "millibox run -c 'print(6 * 7)'", ok=False)
        assert done.returncode == 125 and "--isolation best-effort" in done.stderr.splitlines()[-1], done.stderr
        done = reader.type("millibox run --isolation best-effort", "millibox run --isolation best-effort -c 'print(6 * 7)'")
        assert done.stdout == "42\n"
        # The three commands, in an environment that accepts it.
        take_first_steps(Reader(root, user, f"/home/{user}", **BEST_EFFORT))
        reader.type("millibox down", "millibox down")
