# SPDX-License-Identifier: Apache-2.0
"""The library of a compiler: made once from a toolchain, in the background, for all tenants; those of Go and Java."""

import json
import pathlib
import shutil
import tempfile

import pytest

from support import host
from support.daemon import ROOT
from support.registry import Registry, daemon_of

V1 = "/api/v1"
LAYERS = f"{V1}/packages/layers"

pytestmark = pytest.mark.phases("system")

#: In the place of Go's: it leaves a number that no other run of it has, and whether its box has a way out.
INSTALLER = """
mkdir -p /workspace/layer/go/build
{ cat /proc/sys/kernel/random/uuid; (exec 5<>/dev/tcp/127.0.0.1/3128) 2>/dev/null && echo open || echo closed; } >/workspace/layer/go/build/made
echo "$*" >&2
echo "# $*"
"""
BROKEN = "echo 'it does not compile'; exit 1\n"
#: A compiler whose programs print what it found.
COMPILER = """#!/bin/sh
{ echo '#!/bin/sh'; echo cat "<<'END'"; cat "$2"; echo; cat /opt/millibox/packages/go/build/made 2>/dev/null || echo nothing; echo END; } >"$1"
"""


def tree(folder, installer=INSTALLER, library="std", compiler=COMPILER):
    """Runners: those of Python and shell, and a language with the installer of Go's modules."""
    folder = pathlib.Path(folder)
    folder.chmod(0o755)
    for part in ("python", "shell", "compile", "packages"):
        shutil.copytree(ROOT / "runners" / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shell = folder / "shell/manifest.yaml"
    # Its option that names other shells.
    shell.write_text("".join(line for line in shell.read_text().splitlines(True) if "type: language" not in line))
    (folder / "packages/go.sh").write_text(installer)
    (folder / "go").mkdir()
    (folder / "go/compile.sh").write_text(compiler)
    (folder / "go/compile.sh").chmod(0o755)
    manifest = {"name": "go", "title": "Go", "source": "main.go", "program": "/bin/sh", "package_manager": "go",
                "compile_command": ["{runner}/compile.sh", "{artifact}", "{sources}"], "command": ["{artifact}"],
                "compile_limits": {"memory": "128Mi"}, **({"library": library} if library else {})}
    manifest["extensions"] = ["go"]
    # JSON is YAML.
    (folder / "go/manifest.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in manifest.items()))
    return {"MILLIBOX_RUNNERS_DIR": str(folder)}


@pytest.fixture
def folder():
    """A directory that the daemon's own user may read."""
    with tempfile.TemporaryDirectory(prefix="mbxrunners-") as name:
        yield name


@pytest.fixture
def start(make_daemon, folder):
    return lambda **fields: make_daemon(env=tree(folder, **fields)).start()


def run(client, code, **fields):
    answer = client.post(f"{V1}/execute", {"language": "go", "code": code, **fields})
    assert answer.status == 200 and answer.json["exit_code"] == 0, answer
    return answer.json["stdout"].splitlines()


def layers(client):
    answer = client.get(LAYERS)
    assert answer.status == 200, answer
    return answer.json["layers"]


def made(client):
    """Wait for the library. Return: the layer."""
    host.wait_until(lambda: layers(client), host.HANG_S, "the library is made")
    [layer] = layers(client)
    return layer


def test_a_compiler_gets_its_library_once_it_is_made(start):
    d = start()
    with d.client() as client:
        assert layers(client) == []
        # The first program does not wait.
        assert run(client, "first") == ["first", "nothing"]
        layer = made(client)
        assert (layer["manager"], layer["packages"]) == ("go", ["std"])
        assert client.get(f"{LAYERS}/{layer['id']}").json["lock"] == "# std\n"
        said, number, way = run(client, "second")
        assert said == "second" and way == "closed"
        # A program whose compiler had none is not compiled again.
        assert run(client, "first") == ["first", "nothing"]
        assert run(client, "third") == ["third", number, way]
        assert len(layers(client)) == 1
    assert d.log().count("making the compiled library of go") == 1


def test_the_program_itself_does_not_see_it(start):
    d = start(compiler="#!/bin/sh\n{ echo '#!/bin/sh'; echo 'ls /opt/millibox/packages/go 2>/dev/null || echo none'; } >\"$1\"\n")
    with d.client() as client:
        assert run(client, "first") == ["none"]
        made(client)
        assert run(client, "second") == ["none"]


def test_it_stays_for_the_next_daemon(start):
    d = start()
    with d.client() as client:
        run(client, "first")
        made(client)
        seen = run(client, "second")[1:]
    assert d.stop() == 0
    d.start()
    with d.client() as client:
        assert run(client, "third") == ["third", *seen]
        # Whoever removes it gets another one.
        [layer] = layers(client)
        host.wait_until(lambda: client.request("DELETE", f"{LAYERS}/{layer['id']}").status in (200, 204), 30, "no box uses it")
        assert run(client, "fourth") == ["fourth", "nothing"]
        made(client)
        assert run(client, "fifth")[1] not in ("nothing", seen[0])


def test_sessions_have_it(start):
    d = start()
    with d.client() as client:
        run(client, "first")
        made(client)
        seen = run(client, "second")[1:]
        for mode in ("ephemeral", "workspace", "persistent"):
            ident = client.post(f"{V1}/sessions", {"language": "go", "mode": mode}).json["session_id"]
            done = client.post(f"{V1}/sessions/{ident}/execute", {"code": "here", "wait": True})
            assert done.json["stdout"].splitlines() == ["here", *seen], (mode, done)
            client.request("DELETE", f"{V1}/sessions/{ident}")


def test_all_tenants_share_it(start):
    d = start()
    with d.client() as client:
        made_tenant = client.post(f"{V1}/tenants", {"name": "other"})
        assert made_tenant.status == 201, made_tenant
        key = client.post(f"{V1}/keys", {"tenant": "other", "scopes": ["execute", "read"]})
        assert key.status == 201, key
        header = {"Authorization": f"Bearer {key.json['key']}"}

        def theirs(code):
            return client.request("POST", f"{V1}/execute", {"language": "go", "code": code}, headers=header).json["stdout"].splitlines()

        assert theirs("first") == ["first", "nothing"]
        made(client)
        assert client.get(LAYERS, headers=header).json["layers"] == []
        assert theirs("second")[1:] == run(client, "third")[1:] != ["nothing"]


def test_a_library_that_cannot_be_made_is_tried_once(start):
    d = start(installer=BROKEN)
    with d.client() as client:
        assert run(client, "first") == ["first", "nothing"]
        host.wait_until(lambda: "the compiled library of go was not made" in d.log(), 30, "it has failed")
        assert "it does not compile" in d.log()
        for number in range(3):
            assert run(client, f"again {number}") == [f"again {number}", "nothing"]
        assert layers(client) == []
    assert d.log().count("making the compiled library of go") == 1


def test_a_language_without_one_has_none(start):
    d = start(library=None)
    with d.client() as client:
        assert run(client, "first") == ["first", "nothing"]
        assert run(client, "second") == ["second", "nothing"]
        assert layers(client) == []


def test_packages_come_instead(folder):
    """And their installation has the way out that the library's has not."""
    registry = Registry()
    try:
        with daemon_of(registry, env=tree(folder)) as d, d.client() as client:
            run(client, "first")
            made(client)
            number, way = run(client, "second")[1:]
            assert way == "closed"
            own = run(client, "third", packages=["example.test/tiny"])
            assert own[2] == "open" and own[1] != number
    finally:
        registry.close()


# Go's own

GO = pathlib.Path("/usr/local/go/bin/go")
HTTP = """package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
)

func main() {
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]int{"answer": 42})
	}))
	defer served.Close()
	got, err := http.Get(served.URL)
	if err != nil {
		panic(err)
	}
	defer got.Body.Close()
	var answer map[string]int
	if err := json.NewDecoder(got.Body).Decode(&answer); err != nil {
		panic(err)
	}
	fmt.Println(answer["answer"])
}
"""


@pytest.mark.slow
@pytest.mark.skipif(not GO.exists() or bool(list(GO.parents[1].glob("pkg/*/fmt.a"))), reason="needs a Go from go.dev, 1.20 or later")
def test_the_standard_library_of_go_is_compiled_once(make_daemon, folder):
    place = pathlib.Path(folder, "tree")
    shutil.copytree(ROOT / "runners", place, ignore=shutil.ignore_patterns("__pycache__"))
    place.parent.chmod(0o755)
    for name in ("go/manifest.yaml", "packages/go.sh"):
        file = place / name
        file.write_text(file.read_text().replace("/usr/lib/go/bin", "/usr/local/go/bin"))
    d = make_daemon(env={"MILLIBOX_RUNNERS_DIR": str(place)}).start()
    with d.client() as client:
        client.connection.timeout = 600
        assert run(client, HTTP, timeout=60) == ["42"]
        host.wait_until(lambda: layers(client), 600, "the standard library is compiled")
        # -v names what is compiled: of this program that does not compile, itself alone.
        answer = client.post(f"{V1}/execute", {"language": "go", "code": HTTP.replace("42", "x"), "options": {"build_flags": "-v"}})
        assert answer.json["phase"] == "compile", answer
        lines = [line for line in answer.json["stderr"].splitlines() if "/" in line and ":" not in line]
        assert lines == [] and "undefined: x" in answer.json["stderr"], answer
        ident = client.post(f"{V1}/sessions", {"language": "go"}).json["session_id"]
        done = client.post(f"{V1}/sessions/{ident}/execute", {"code": HTTP, "wait": True, "timeout": 60})
        assert done.json["stdout"] == "42\n", done


# Java's


def compile_java(client, text):
    """A program that does not compile, so that the result has what the compiler's JVM says. Return: where it has javac from."""
    code = f"class Main {{ public static void main(String[] a) {{ {text} }} }}"
    answer = client.post(f"{V1}/execute", {"language": "java", "code": code, "options": {"extra_flags": "-J-Xlog:class+load:stderr"}})
    assert answer.json["phase"] == "compile" and answer.json["exit_code"] == 1 and "cannot find symbol" in answer.json["stderr"], answer
    assert answer.json["diagnostics"][0]["line"] == 1, answer
    [line] = [line for line in answer.json["stderr"].splitlines() if "com.sun.tools.javac.main.JavaCompiler source:" in line]
    return line.partition("source: ")[2]


@pytest.mark.slow
@pytest.mark.skipif(not pathlib.Path("/usr/bin/javac").exists(), reason="needs javac")
def test_the_compiler_of_java_starts_from_an_archive(make_daemon):
    d = make_daemon().start()
    with d.client() as client:
        assert compile_java(client, "x();") == "jrt:/jdk.compiler"
        layer = made(client)
        assert (layer["manager"], layer["packages"]) == ("maven", ["compiler"])
        assert compile_java(client, "y();").startswith("shared objects file")
        files = {"Other.java": 'package p; public class Other { public static String say() { return "hello"; } }'}
        done = client.execute("java", 'import p.Other;\npublic class Start { public static void main(String[] a) { System.out.println(Other.say() + a.length); } }',
                              files=files)
        assert done["stdout"] == "hello0\n", done
