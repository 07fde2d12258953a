# SPDX-License-Identifier: Apache-2.0
"""The TypeScript SDK against a real daemon, with the suites of node:test beside this file. The package itself: what is generated is
current, the README is true, types are right, nothing else is needed."""

import json
import os
import re
import shutil
import signal
import subprocess
from contextlib import closing

import pytest

from support import crowd, host
from support.daemon import ROOT
from support.own_daemon import home, ours
from support.registry import Registry, daemon_of, wheel

pytestmark = pytest.mark.phases("system")
__all__ = ["home"]

SDK = ROOT / "sdk/typescript"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.M | re.S)


def snippets(path):
    """TypeScript and JavaScript blocks, and the text blocks after them: what they print, or None."""
    blocks = BLOCK.findall(path.read_text())
    for (kind, code), following in zip(blocks, [*blocks[1:], ("", "")]):
        if kind in ("ts", "js"):
            yield code, following[1] if following[0] == "text" else None


README = [*snippets(SDK / "README.md"), *((code, "42\n") for code, _ in snippets(ROOT / "README.md"))]
STRICT = ["--strict", "--target", "es2022", "--skipLibCheck"]


def environment(daemon):
    return {"MILLIBOX_SOCKET": daemon.socket, "MILLIBOX_TEST_URL": "http://%s:%d" % daemon.tcp_address(),
            "MILLIBOX_TEST_ROOT": "1" if host.is_root() else ""}


@pytest.mark.parametrize("suite", ["client", "sandbox", "files", "connections", "ports", "terminal", "browser", "ai"])
def test_suite(workshop, daemon, suite):
    shown = workshop.node("--test", f"{suite}.test.mjs", **environment(daemon))
    assert int(re.search(r"^# pass (\d+)", shown, re.M)[1]) > 0 and "# fail 0" in shown, shown


def test_packages(workshop):
    with closing(Registry()) as registry:
        for made in (wheel("tinypkg"), wheel("watched"), wheel("needy", requires=["tinypkg<2"])):
            registry.add(made)
        with daemon_of(registry) as served:
            shown = workshop.node("--test", "packages.test.mjs", MILLIBOX_SOCKET=served.socket)
    assert "# fail 0" in shown, shown


def test_the_daemon_restarts_in_between(workshop, make_daemon):
    """The script asks for restarts, and goes on when they are done."""
    served = make_daemon().start()
    command = ["node", "restart.mjs"]
    env = {**os.environ, "MILLIBOX_SOCKET": served.socket}
    with subprocess.Popen(command, cwd=workshop.path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as script:
        lines = []
        for line in script.stdout:
            lines.append(line.strip())
            if lines[-1] == "restart":
                served.kill()
                served.start()
                script.stdin.write("restarted\n")
                script.stdin.flush()
    assert script.returncode == 0, lines
    assert lines.count("restart") == 2 and lines[-1] == "done", lines


def test_keys(workshop, make_daemon):
    served = make_daemon().start()
    assert workshop.node("keys.mjs", MILLIBOX_SOCKET=served.socket) == "1\nUnauthorizedError\n"


@pytest.mark.parametrize("mode, shown", [("settings", "done\n"), ("shared", "42\n42\n"), ("wrong", "done\n")])
def test_a_daemon_of_the_process(workshop, home, mode, shown):
    """The fixture waits until nothing of it is left."""
    assert workshop.node("local.mjs", mode) == shown


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_leaves_no_daemon(workshop, home, number):
    process = subprocess.Popen(["node", "local.mjs", "wait"], cwd=workshop.path, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    assert "milliboxd" in ours(home)
    process.send_signal(number)
    process.communicate(timeout=60)


def test_nothing_is_lost_in_a_crowd(workshop, make_daemon):
    """Whatever is refused was not begun, and is sent again: the daemon runs each program once."""
    served = make_daemon(config=crowd.CROWDED).start()
    assert workshop.node("crowd.mjs", 60, MILLIBOX_SOCKET=served.socket) == "60 60\n"


@pytest.mark.alone
def test_a_hundred_sandboxes_at_once(workshop, daemon):
    assert workshop.node("hundred.mjs", MILLIBOX_SOCKET=daemon.socket) == "100\n"
    daemon.settle()


@pytest.mark.alone
@pytest.mark.slow
def test_a_file_of_a_gigabyte(workshop, make_daemon):
    """Files of a box are kept in memory, and each copy in /workspace counts."""
    free = host.available_memory()
    if free < 4 << 30:
        pytest.skip(f"the host has {free >> 20} MiB of free memory, and 4096 are needed")
    served = make_daemon().start()
    shown = workshop.node("gigabyte.mjs", timeout=300, MILLIBOX_SOCKET=served.socket)
    written, read, peak = (int(word) for word in shown.split())
    assert written == read == 1 << 30 and peak < 400 << 10, shown


# The package itself.


def test_generated_files_are_current(workshop):
    done = workshop.run("node", SDK / "generate.mjs", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_version_is_the_daemons():
    version = json.loads((SDK / "package.json").read_text())["version"]
    assert f"version: '{version}'" in (ROOT / "meson.build").read_text()
    assert f'VERSION = "{version}"' in (SDK / "src/version.ts").read_text()


def test_it_needs_nothing():
    package = json.loads((SDK / "package.json").read_text())
    assert "dependencies" not in package and package["peerDependenciesMeta"] == {"ai": {"optional": True}}
    pinned = json.loads((SDK / "package-lock.json").read_text())["packages"][""]
    assert pinned["devDependencies"] == package["devDependencies"]


def node_types(libraries):
    return ["--module", "nodenext", "--lib", libraries, "--types", "node", "--typeRoots", SDK / "node_modules/@types"]


def test_types_for_users(workshop):
    """A strict program compiles, with and without the types of Node.js; wrong uses do not."""
    options = ["--noEmit", "--exactOptionalPropertyTypes", "--strict", "--target", "es2022"]
    assert workshop.tsc(*options, *node_types("es2022,esnext.disposable"), "types.ts") == ""
    browser = ["--lib", "es2022,dom", "--module", "esnext", "--moduleResolution", "bundler"]
    assert workshop.tsc(*options, *browser, "types_browser.ts") == ""
    # The compiler refuses such a comment before a line that compiles.
    assert (workshop.path / "types.ts").read_text().count("@ts-expect-error") >= 4


def test_the_readme(workshop, daemon):
    """All blocks, and that of the main README, compile strictly, and print what the blocks after them say."""
    names = [f"readme{number}.ts" for number in range(len(README))]
    for name, (code, _) in zip(names, README):
        (workshop.path / name).write_text(code)
    assert workshop.tsc(*STRICT, *node_types("es2022,esnext.disposable,dom"), *names) == ""
    printed = [workshop.node(name.replace(".ts", ".js"), MILLIBOX_SOCKET=daemon.socket) for name in names]
    assert printed == [expected or "" for _, expected in README] and len(printed) >= 7


def test_the_example(workshop, daemon):
    shutil.copy(ROOT / "examples" / "pipeline.ts", workshop.path)
    assert workshop.tsc(*STRICT, *node_types("es2022"), "pipeline.ts") == ""
    shown = workshop.node("pipeline.js", MILLIBOX_SOCKET=daemon.socket)
    assert "C finds percentiles: 3 lines" in shown and "| /cart | 100 | 56 | 101 |" in shown


def test_browsers_get_no_modules_of_node(workshop):
    """All that the browser's entry point loads."""
    dist = workshop.path / "node_modules/millibox/dist"
    seen, left = set(), [dist / "browser.js"]
    while left:
        path = left.pop()
        seen.add(path)
        names = re.findall(r'from "([^"]+)"', path.read_text())
        assert all(name.startswith(".") for name in names), (path, names)
        left += [found for name in names if (found := (path.parent / name).resolve()) not in seen]
    assert {path.name for path in seen} >= {"http.js", "client.js"} and not any("node" in path.relative_to(dist).parts for path in seen)
    # The control: the other entry point has such modules.
    assert 'from "node:http"' in (dist / "node/http.js").read_text()
