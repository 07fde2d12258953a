# SPDX-License-Identifier: Apache-2.0
"""libmillibox: programs compiled against an installed tree, with pkg-config, statically and dynamically, and a real daemon."""

import contextlib
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from support import crowd, host
from support.cutter import Cutter
from support.daemon import BUILD, ROOT, is_sanitized
from support.registry import Registry, daemon_of, wheel

pytestmark = pytest.mark.phases("system")

HERE = Path(__file__).parent
HEADER = ROOT / "src/client/millibox.h"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
#: A sanitized library needs a sanitized program. Elsewhere the static program has it, for the memory of both.
SANITIZE = ["-fsanitize=address,undefined"]


def run(*command, **kw):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **kw)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


class Tree:
    """What "make install" installs, in a directory of its own."""

    def __init__(self, place):
        self.place = place
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--tags", "devel,runtime", "--destdir", place)
        found, = place.rglob("millibox.pc")
        self.pc, self.lib = found.parent, found.parent.parent
        self.prefix = next(path for path in (place, *place.rglob("*")) if (path / "include/millibox.h").exists())

    def config(self, *words):
        env = {**os.environ, "PKG_CONFIG_LIBDIR": str(self.pc)}
        return run("pkg-config", f"--define-variable=prefix={self.prefix}", *words, "millibox", env=env).split()

    def compile(self, source, name, static=False, flags=()):
        compiler = ["g++", "-std=c++17"] if source.suffix == ".cc" else ["gcc", "-std=c99"]
        if static:
            libs = ["-l:libmillibox.a" if word == "-lmillibox" else word for word in self.config("--static", "--libs")]
        else:
            libs = [*self.config("--libs"), f"-Wl,-rpath,{self.lib}"]
        program = self.place / name
        run(*compiler, *STRICT, *flags, *self.config("--cflags"), source, "-o", program, *libs, "-pthread")
        return program


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def shared(tree):
    return tree.compile(HERE / "library.c", "shared", flags=SANITIZE if is_sanitized() else [])


@pytest.fixture(scope="module")
def static(tree):
    """With a leak check of the program and the library."""
    return tree.compile(HERE / "library.c", "static", static=True, flags=[*SANITIZE, "-g"])


@pytest.fixture(scope="module")
def connections(tree):
    return tree.compile(HERE / "connections.c", "connections", static=True, flags=[*SANITIZE, "-g"])


@pytest.fixture(scope="module")
def operations(tree):
    return tree.compile(HERE / "operations.c", "operations", static=True, flags=[*SANITIZE, "-g"])


def env_of(daemon):
    return {**os.environ, "MILLIBOX_SOCKET": daemon.socket}


@pytest.mark.parametrize("case", ["run", "results", "streams", "sessions", "files", "cancel", "wrong", "nulls"])
def test_every_function(static, daemon, case):
    assert run(static, case, env=env_of(daemon)) == "done\n"


@pytest.mark.parametrize("case", ["find", "executions", "trees", "cancel_on", "install", "nulls"])
def test_operations_of_programs_such_as_the_command_line(operations, daemon, case):
    assert run(operations, case, env=env_of(daemon)) == "done\n"


def test_packages_of_a_registry(operations):
    with contextlib.closing(Registry()) as registry:
        registry.add(wheel("tinypkg"))
        with daemon_of(registry) as daemon:
            assert run(operations, "registry", env=env_of(daemon)) == "done\n"


def test_a_program_without_standard_input(static, daemon):
    """The library's own descriptors get its number."""
    assert run("sh", "-c", f"exec '{static}' cancel <&-", env=env_of(daemon)) == "done\n"


def test_the_shared_library(shared, daemon):
    assert "libmillibox.so.0" in run("ldd", shared)
    for case in "run", "sessions", "files":
        assert run(shared, case, env=env_of(daemon)) == "done\n"


def test_cplusplus(tree, daemon):
    flags = SANITIZE if is_sanitized() else []
    for static in True, False:
        program = tree.compile(HERE / "library.cc", f"cplusplus-{static}", static=static, flags=flags)
        assert run(program, env=env_of(daemon)) == "from the box\n42\n"


def up_and_down(connections, daemon, place, mebibytes):
    large, back = place / "large", place / "large.back"
    piece = bytes(range(256)) * 4096
    with open(large, "wb") as file:
        for _ in range(mebibytes):
            file.write(piece)
    assert run(connections, "large", large, env=env_of(daemon)) == "done\n"
    with open(back, "rb") as file:
        assert all(file.read(1 << 20) == piece for _ in range(mebibytes)) and not file.read(1)


def test_a_large_file(connections, daemon, tmp_path):
    up_and_down(connections, daemon, tmp_path, 100)


@pytest.mark.alone
@pytest.mark.slow
def test_a_file_of_a_gigabyte(connections, make_daemon, tmp_path):
    free = host.available_memory()
    if free < 6 << 30:
        pytest.skip(f"the host has {free >> 20} MiB of free memory, and 6144 are needed")
    up_and_down(connections, make_daemon().start(), tmp_path, 1024)


def test_a_daemon_that_never_answers(connections, tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "sock"))
        listener.listen()
        assert run(connections, "silent", tmp_path / "sock") == "done\n"


def test_the_daemon_restarts_in_between(connections, make_daemon):
    served = make_daemon().start()
    with subprocess.Popen([connections, "restart"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=env_of(served)) as program:
        for _ in range(3):
            assert program.stdout.readline() == "restart\n", program.stderr.read()
            served.kill()
            served.start()
            print(file=program.stdin, flush=True)
        out, err = program.communicate(timeout=120)
    assert (program.returncode, out) == (0, "done\n"), err


@pytest.mark.parametrize("limits", [(6000,), (6000, 700, 4000, 1500), (13000,)])
def test_a_broken_stream_loses_and_repeats_nothing(connections, daemon, tmp_path, limits):
    """The library keeps its connection: the first limit includes the session."""
    proxy = Cutter(daemon.socket, str(tmp_path / "sock"), limits)
    try:
        assert run(connections, "cut", env={**os.environ, "MILLIBOX_SOCKET": str(tmp_path / "sock")}) == "done\n"
        assert proxy.cuts == len(limits)
    finally:
        proxy.close()


def test_a_broken_stream_without_patience(connections, daemon, tmp_path):
    proxy = Cutter(daemon.socket, str(tmp_path / "sock"), [6000])
    try:
        assert run(connections, "lose", env={**os.environ, "MILLIBOX_SOCKET": str(tmp_path / "sock")}) == "done\n"
        assert proxy.cuts == 1
    finally:
        proxy.close()


def test_nothing_is_lost_in_a_crowd(connections, make_daemon):
    """Whatever is refused was not begun, and is sent again: the daemon runs each program once."""
    served = make_daemon(config=crowd.CROWDED).start()
    assert run(connections, "crowd", 60, env=env_of(served)) == "done\n"


def test_without_patience_a_crowd_is_refused(connections, make_daemon):
    served = make_daemon(config=crowd.FULL).start()
    with crowd.busy(served):
        assert run(connections, "impatient", env=env_of(served)) == "done\n"


@pytest.mark.alone
def test_a_hundred_sessions_in_threads(connections, daemon):
    assert run(connections, "many", 100, env=env_of(daemon)) == "done\n"
    daemon.settle()


def snippets():
    """Programs of the README, and what they print."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```\n", (ROOT / "sdk/c/README.md").read_text(), re.M | re.S)
    found = [(code, after[1]) for (kind, code), after in zip(blocks, blocks[1:]) if kind == "c" and after[0] == "text"]
    assert len(found) == sum(kind == "c" for kind, _ in blocks)
    return found


def test_the_readme(tree, daemon):
    for number, (code, expected) in enumerate(snippets()):
        source = tree.place / f"readme{number}.c"
        source.write_text(code)
        program = tree.compile(source, f"readme{number}", static=True, flags=SANITIZE)
        assert run(program, env=env_of(daemon)) == expected


def test_the_reference_is_current():
    run("/usr/bin/python3", ROOT / "tools/make-c-reference.py", "--check")


def declared():
    text = re.sub(r"/\*.*?\*/|^typedef .*?;", "", HEADER.read_text(), flags=re.S | re.M)
    return set(re.findall(r"\b(millibox_\w+)\(", text))


def symbols(*words):
    return {line.split()[-1].split("@")[0] for line in run("nm", *words).splitlines() if len(line.split()) == 3}


def test_only_the_functions_of_the_header_are_exported(tree):
    assert len(declared()) > 60
    assert symbols("-D", "--defined-only", tree.lib / "libmillibox.so") - {"MILLIBOX_0.1"} == declared()
    assert symbols("-g", "--defined-only", tree.lib / "libmillibox.a") == declared()
    assert "libmillibox.so.0]" in run("readelf", "-d", tree.lib / "libmillibox.so")


def test_every_function_is_tested():
    source = "".join(path.read_text() for path in HERE.glob("*.[ch]"))
    assert not [name for name in declared() if f"{name}(" not in source]


def test_the_header_is_c99_and_cplusplus98(tmp_path):
    for compiler, suffix, standard in (("gcc", "c", "c99"), ("gcc", "c", "c17"), ("g++", "cc", "c++98"), ("g++", "cc", "c++20")):
        source = tmp_path / f"x.{suffix}"
        source.write_text("#include <millibox.h>\nint main(void) { return millibox_version() == 0; }\n")
        run(compiler, f"-std={standard}", *STRICT, f"-I{HEADER.parent}", "-fsyntax-only", source)
