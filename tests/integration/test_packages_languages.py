# SPDX-License-Identifier: Apache-2.0
"""Packages of compiled languages: crates, Go modules, artifacts of Maven, packages of NuGet. Programs are compiled and run against a
layer without a network. The registries are the test's own."""

import contextlib
import io
import pathlib
import shutil
import subprocess
import zipfile

import pytest

from support.daemon import BUILD
from support.registry import Registry, daemon_of

V1 = "/api/v1"
LAYERS = f"{V1}/packages/layers"

pytestmark = pytest.mark.phases("system")


def needs(*programs):
    missing = [program for program in programs if not pathlib.Path(program).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


rust = needs("/usr/bin/rustc", "/usr/bin/cargo")
go = needs("/usr/lib/go/bin/go")
java = needs("/usr/bin/javac", "/usr/share/maven/lib/maven-resolver-api.jar")
csharp = needs("/usr/bin/mcs", "/usr/bin/mono")


@pytest.fixture(scope="module")
def registry():
    made = Registry()
    yield made
    made.close()


@pytest.fixture(scope="module")
def daemon(registry):
    with daemon_of(registry) as made:
        yield made


@pytest.fixture
def client(daemon):
    with daemon.client() as made:
        made.connection.timeout = 180
        yield made


def run(client, language, code, **fields):
    answer = client.post(f"{V1}/execute", {"language": language, "code": code, "timeout": 60, **fields})
    assert answer.status == 200, answer
    assert answer.json["exit_code"] == 0, (answer.json["stdout"], answer.json["stderr"])
    return answer.json


def failed(answer, *words):
    assert answer.status == 422 and answer.json["error_code"] == "Sandbox.InstallFailed", answer
    for word in words:
        assert word in answer.json["error_detail"], answer.json
    return answer.json


def install(client, language, **fields):
    return client.post(LAYERS, {"language": language, **fields})


def install_again(client, registry, language, layer):
    """The lock that a layer shows gives the same packages."""
    registry.asked.clear()
    again = install(client, language, lock=layer["lock"])
    assert again.status == 201 and again.json["id"] != layer["id"] and registry.asked, again
    return again.json


# Rust.

RUST = """
use std::thread;
fn main() {
    let sums: Vec<u64> = (0..4).map(|i| thread::spawn(move || tinycrate::triple(i))).map(|t| t.join().unwrap()).collect();
    println!("{:?} {}", sums, needycrate::describe(7));
}
"""


@pytest.fixture(scope="module")
def crates(registry):
    registry.add_crate("tinycrate", files={"src/lib.rs": "pub fn triple(x: u64) -> u64 { 3 * x }\n"})
    registry.add_crate("tinycrate", "2.0.0", files={"src/lib.rs": "pub fn triple(x: u64) -> u64 { 30 * x }\n"})
    registry.add_crate("needycrate", requires={"tinycrate": "^1.0"}, features={"loud": []}, files={
        "build.rs": 'fn main() { println!("cargo:rustc-env=MADE=by a build script"); }\n',
        "src/lib.rs": 'pub fn describe(x: u64) -> String { format!("{}{} {}", tinycrate::triple(x), if cfg!(feature = "loud") { "!" } else { "" }, '
                      'env!("MADE")) }\n'})
    registry.add_crate("brokencrate", files={"src/lib.rs": "this is not rust\n"})


@rust
def test_a_rust_program_uses_crates(client, registry, crates):
    packages = ["needycrate[loud]==1.0.0", "tinycrate@1"]
    done = run(client, "rust", RUST, packages=packages)
    assert done["stdout"] == "[0, 3, 6, 9] 21! by a build script\n", done
    registry.asked.clear()
    done = run(client, "rust", RUST.replace("7", "8"), packages=packages)
    assert done["stdout"].startswith("[0, 3, 6, 9] 24!") and registry.asked == [], done
    # Without the layer the same program does not compile.
    answer = client.post(f"{V1}/execute", {"language": "rust", "code": RUST}).json
    assert answer["phase"] == "compile" and answer["exit_code"] != 0, answer


@rust
def test_a_lock_of_cargo(client, registry, crates):
    made = install(client, "rust", packages=["needycrate"])
    assert made.status == 201 and "==> Cargo.lock <==" in made.json["lock"] and "needycrate==1.0.0" in made.json["lock"], made
    install_again(client, registry, "rust", made.json)
    done = run(client, "rust", 'fn main() { println!("{}", needycrate::describe(1)); }', lock=made.json["lock"])
    assert done["stdout"] == "3 by a build script\n"
    wrong = made.json["lock"].replace('checksum = "', 'checksum = "0000')
    wrong = "\n".join(line[:-5] + '"' if line.startswith("checksum") else line for line in wrong.split("\n"))
    failed(install(client, "rust", lock=wrong), "crate", "unable to verify")
    failed(install(client, "rust", lock="==> Cargo.toml <==\n[package]\n"), "Cargo.lock")


@rust
def test_a_crate_that_fails_is_named(client, registry, crates):
    failed(install(client, "rust", packages=["no-such-crate"]), "no-such-crate")
    failed(install(client, "rust", packages=["tinycrate==9.0.0"]), "tinycrate")
    body = failed(install(client, "rust", packages=["brokencrate"]), "brokencrate")
    assert "could not compile" in body["log"], body


@rust
def test_cargo_itself_finds_the_sources(client, registry, crates):
    code = ("export CARGO_HOME=/tmp/home CARGO_TARGET_DIR=/workspace/target; mkdir -p a/src && cd a && printf 'fn main() { println!(\"{}\", tinycrate::triple(14)); }' > src/main.rs\n"
            "printf '[package]\\nname = \"a\"\\nversion = \"0.1.0\"\\n[dependencies]\\ntinycrate = \"1\"\\n' > Cargo.toml\n"
            "cargo run -q --offline --config /opt/millibox/packages/cargo/config.toml")
    made = client.post(f"{V1}/templates", {"id": "crates", "name": "crates", "image": "host", "language": "rust", "packages": ["tinycrate==1.0.0"]})
    assert made.status == 201 and made.json["manager"] == "cargo", made
    assert run(client, "shell", code, template_id="crates", resources={"memory": "1Gi"})["stdout"] == "42\n"


# Go.

GO = """package main

import (
	"fmt"
	"sync"

	"example.test/needy"
	"example.test/tiny/deep"
)

func main() {
	var group sync.WaitGroup
	results := make(chan int, 8)
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func(i int) { defer group.Done(); results <- deep.Double(i) }(i)
	}
	group.Wait()
	close(results)
	sum := 0
	for r := range results {
		sum += r
	}
	fmt.Println(sum, needy.Describe())
}
"""


@pytest.fixture(scope="module")
def modules(registry):
    for version in ("v1.0.0", "v1.1.0"):
        registry.add_go("example.test/tiny", version, {"tiny.go": f'package tiny\n\nconst Value = "{version}"\n',
                                                      "deep/deep.go": "package deep\n\nfunc Double(x int) int { return 2 * x }\n"})
    registry.add_go("example.test/needy", files={"needy.go": 'package needy\n\nimport "example.test/tiny"\n\nfunc Describe() string { return "needs " + tiny.Value }\n'},
                    requires={"example.test/tiny": "v1.0.0"})


@go
def test_a_go_program_uses_modules(client, registry, modules):
    packages = ["example.test/needy@v1.0.0", "example.test/tiny"]
    done = run(client, "go", GO, packages=packages)
    assert done["stdout"] == "56 needs v1.1.0\n", done
    registry.asked.clear()
    done = run(client, "go", GO.replace("i < 8", "i < 3"), packages=packages)
    assert done["stdout"] == "6 needs v1.1.0\n" and registry.asked == [], done
    # The cache of compiled programs tells layers apart.
    done = run(client, "go", GO, packages=["example.test/needy==1.0.0"])
    assert done["stdout"] == "56 needs v1.0.0\n", done


@go
def test_a_layer_has_nothing_of_the_toolchain(client, registry, modules):
    """Its compiled packages fit those of the toolchain: otherwise it would have a copy of what they import, 20 MiB with fmt."""
    registry.add_go("example.test/printer", files={"printer.go": 'package printer\n\nimport "fmt"\n\nfunc Print() { fmt.Println("printed") }\n'})
    made = install(client, "go", packages=["example.test/printer"])
    assert made.status == 201 and made.json["bytes"] < 8 << 20, made
    done = run(client, "go", 'package main\n\nimport "example.test/printer"\n\nfunc main() { printer.Print() }\n', packages=["example.test/printer"])
    assert done["stdout"] == "printed\n", done


@go
def test_a_lock_of_go(client, registry, modules):
    made = install(client, "go", packages=["example.test/needy"])
    assert made.status == 201 and "==> go.sum <==" in made.json["lock"] and "example.test/needy==v1.0.0" in made.json["lock"], made
    install_again(client, registry, "go", made.json)
    done = run(client, "go", GO, lock=made.json["lock"])
    assert done["stdout"] == "56 needs v1.0.0\n", done
    lines = [line if not line.startswith("example.test/tiny v1.0.0 h1:") else "example.test/tiny v1.0.0 h1:" + "A" * 43 + "="
             for line in made.json["lock"].split("\n")]
    failed(install(client, "go", lock="\n".join(lines)), "example.test/tiny@v1.0.0", "checksum mismatch")


@go
def test_a_module_that_is_missing_is_named(client, registry, modules):
    failed(install(client, "go", packages=["example.test/nothing"]), "example.test/nothing")
    failed(install(client, "go", packages=["example.test/tiny@v9.0.0"]), "example.test/tiny@v9.0.0")


# Java.

JAVA = """
import java.util.concurrent.*;
import java.util.stream.*;
import test.needy.Needy;

public class Main {
    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        var futures = IntStream.range(0, 8).mapToObj(i -> pool.submit(() -> Needy.triple(i))).collect(Collectors.toList());
        int sum = 0;
        for (Future<Integer> f : futures) sum += f.get();
        pool.shutdown();
        System.out.println(sum + " " + Needy.describe());
    }
}
"""


def jar(folder, classes, path=""):
    """Compile {class: source} to a jar."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "out").mkdir(parents=True)
    for name, source in classes.items():
        (folder / f"{name}.java").write_text(source)
    subprocess.run(["javac", "--release", "11", "-cp", path or ".", "-d", folder / "out", *folder.glob("*.java")], check=True, capture_output=True)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for file in (folder / "out").rglob("*.class"):
            archive.write(file, file.relative_to(folder / "out"))
    return data.getvalue()


@pytest.fixture(scope="module")
def artifacts(registry, tmp_path_factory):
    folder = tmp_path_factory.mktemp("jars")
    tiny = "package test.tiny;\npublic class Tiny { public static int triple(int x) { return 3 * x; } public static String version() { return \"%s\"; } }\n"
    for version in ("1.0", "1.1"):
        registry.add_maven("test.tiny", "tiny", version, jar(folder / version, {"Tiny": tiny % version}))
    source = ("package test.needy;\npublic class Needy { public static int triple(int x) { return test.tiny.Tiny.triple(x); }\n"
              "  public static String describe() { return \"needs \" + test.tiny.Tiny.version(); } }\n")
    registry.add_maven("test.needy", "needy", "1.0", jar(folder / "needy", {"Needy": source}, folder / "1.1/out"), [("test.tiny", "tiny", "1.0")])


@java
def test_a_java_program_uses_artifacts(client, registry, artifacts):
    done = run(client, "java", JAVA, packages=["test.needy:needy:1.0"])
    assert done["stdout"] == "84 needs 1.0\n", done
    registry.asked.clear()
    done = run(client, "java", JAVA.replace("8)", "3)"), packages=["test.needy:needy:1.0"])
    assert done["stdout"] == "9 needs 1.0\n" and registry.asked == [], done
    # What is named wins over what is needed, and no version means the newest.
    done = run(client, "java", JAVA, packages=["test.needy:needy", "test.tiny:tiny"])
    assert done["stdout"] == "84 needs 1.1\n", done


@java
def test_locks_of_maven(client, registry, artifacts):
    made = install(client, "java", packages=["test.needy:needy"])
    assert made.status == 201 and "test.tiny:tiny==1.0 --hash=sha256:" in made.json["lock"], made
    assert install_again(client, registry, "java", made.json)["lock_digest"] == made.json["lock_digest"]
    pom = ("<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>b</artifactId><version>1</version>"
           "<properties><tiny>1.1</tiny></properties><dependencyManagement><dependencies><dependency><groupId>test.tiny</groupId><artifactId>tiny</artifactId>"
           "<version>${tiny}</version></dependency></dependencies></dependencyManagement><dependencies><dependency><groupId>test.needy</groupId>"
           "<artifactId>needy</artifactId><version>1.0</version></dependency></dependencies></project>")
    assert run(client, "java", JAVA, lock=pom)["stdout"] == "84 needs 1.1\n"
    wrong = made.json["lock"].replace("sha256:", "sha256:0000")
    failed(install(client, "java", lock="\n".join(line[:-4] for line in wrong.split("\n"))), "hash")


@java
def test_an_artifact_that_is_missing_is_named(client, registry, artifacts):
    failed(install(client, "java", packages=["test.tiny:nothing:1.0"]), "test.tiny:nothing")
    failed(install(client, "java", packages=["test.tiny:tiny:9.0"]), "test.tiny:tiny", "9.0")


# C#.

CSHARP = """
using System;
using System.Linq;

class Program {
    static void Main() { Console.WriteLine(Enumerable.Range(0, 4).Select(i => Tiny.Numbers.Triple(i)).Sum() + " " + Needy.Words.Describe()); }
}
"""


def assembly(folder, name, source, *references):
    (folder / f"{name}.cs").write_text(source)
    subprocess.run(["mcs", "-nologo", "-target:library", *(f"-r:{item}" for item in references), f"-out:{folder}/{name}.dll", folder / f"{name}.cs"],
                   check=True, capture_output=True)
    return (folder / f"{name}.dll").read_bytes()


@pytest.fixture(scope="module")
def assemblies(registry, tmp_path_factory):
    folder = tmp_path_factory.mktemp("assemblies")
    for version in ("1.0.0", "1.5.0", "2.0.0"):
        tiny = assembly(folder, "Tiny", "namespace Tiny { public static class Numbers { public static int Triple(int x) { return 3 * x; }\n"
                        f"public static string Version() {{ return \"{version}\"; }} }} }}")
        registry.add_nuget("Tiny", version, {"lib/net45/Tiny.dll": tiny, "lib/net8.0/Tiny.dll": b"not for Mono"})
    needy = assembly(folder, "Needy", "namespace Needy { public static class Words { public static string Describe() { return \"needs \" + Tiny.Numbers.Version(); } } }",
                     folder / "Tiny.dll")
    registry.add_nuget("Needy", "1.0.0", {"lib/net45/Needy.dll": needy}, {"tiny": "[1.0.0,2.0.0)"})
    registry.add_nuget("Modern", "1.0.0", {"lib/net8.0/Modern.dll": b""})


@csharp
def test_a_csharp_program_uses_packages(client, registry, assemblies):
    done = run(client, "csharp", CSHARP, packages=["Needy==1.0.0"])
    assert done["stdout"] == "18 needs 1.0.0\n", done
    done = run(client, "csharp", CSHARP, packages=["needy", "Tiny==1.5.0"])
    assert done["stdout"] == "18 needs 1.5.0\n", done


@csharp
def test_a_lock_of_nuget(client, registry, assemblies):
    made = install(client, "csharp", packages=["Needy"])
    assert made.status == 201 and "Tiny==1.0.0 --hash=sha256:" in made.json["lock"], made
    assert install_again(client, registry, "csharp", made.json)["lock_digest"] == made.json["lock_digest"]
    lock = '{"version": 1, "dependencies": {".NETFramework,Version=v4.7.2": {"Tiny": {"type": "Direct", "requested": "[1.5.0, )", "resolved": "1.5.0"}}}}'
    assert install(client, "csharp", lock=lock).json["lock"].count("Tiny==1.5.0") == 1
    failed(install(client, "csharp", lock="Tiny==1.0.0 --hash=sha256:" + "0" * 64), "Tiny==1.0.0", "hash")


@csharp
def test_a_package_of_nuget_that_fails_is_named(client, registry, assemblies):
    failed(install(client, "csharp", packages=["Nothing"]), "Nothing")
    failed(install(client, "csharp", packages=["Tiny==9.0.0"]), "Tiny")
    failed(install(client, "csharp", packages=["Modern"]), "Modern", "net8.0")


# Sessions, agents, the command line.

LIVING = {
    "rust": (["tinycrate==1.0.0", "needycrate"], 'fn main() { println!("{} {}", tinycrate::triple(5), needycrate::describe(1)); }', "15 3 by a build script\n"),
    "go": (["example.test/tiny@v1.0.0", "example.test/needy"], 'package main\n\nimport (\n\t"example.test/needy"\n\t"example.test/tiny"\n)\n\n'
           "func main() { println(tiny.Value, needy.Describe()) }\n", "v1.0.0 needs v1.0.0\n"),
    "java": (["test.tiny:tiny:1.0", "test.needy:needy:1.0"],
             "class Main { public static void main(String[] a) { System.out.println(test.tiny.Tiny.triple(5) + test.needy.Needy.describe()); } }", "15needs 1.0\n"),
    "csharp": (["Tiny==1.0.0", "Needy"], "class P { static void Main() { System.Console.WriteLine(Tiny.Numbers.Triple(5) + Needy.Words.Describe()); } }", "15needs 1.0.0\n"),
}


@contextlib.contextmanager
def a_session(client, language, **fields):
    made = client.post(f"{V1}/sessions", {"mode": "persistent", "language": language, "resources": {"memory": "1Gi"}, **fields})
    assert made.status == 201, made
    try:
        yield made.json["session_id"]
    finally:
        client.request("DELETE", f"{V1}/sessions/{made.json['session_id']}")


def run_in(client, session, code):
    answer = client.post(f"{V1}/sessions/{session}/execute", {"code": code, "wait": True})
    assert answer.status == 200, answer
    return answer.json


@pytest.mark.parametrize("language", [pytest.param("rust", marks=rust), pytest.param("go", marks=go), pytest.param("java", marks=java), pytest.param("csharp", marks=csharp)])
def test_packages_are_installed_into_a_living_session(client, registry, crates, modules, artifacts, assemblies, language):
    """One after the other: what the first left stays."""
    packages, code, expected = LIVING[language]
    with a_session(client, language) as session:
        for package in packages:
            done = client.post("/mcp/tools/install_package", {"sandbox_id": session, "packages": [package], "language": language})
            assert done.status == 200 and not done.json["is_error"], done
        done = run_in(client, session, code)
        assert done["stdout"] + done["stderr"] == expected, (done["stdout"], done["stderr"])


@go
def test_a_session_is_created_with_modules(client, registry, modules):
    code = 'package main\n\nimport "example.test/needy"\n\nfunc main() { println(needy.Describe()) }\n'
    with a_session(client, "go", packages=["example.test/needy"]) as session:
        assert run_in(client, session, code)["stderr"] == "needs v1.0.0\n"
        # And what is installed later is found beside it.
        done = client.post("/mcp/tools/install_package", {"sandbox_id": session, "packages": ["example.test/tiny@v1.1.0"]})
        assert done.status == 200 and not done.json["is_error"], done
        assert run_in(client, session, code)["stderr"] == "needs v1.1.0\n"


def cli(daemon, *words):
    return subprocess.run([str(BUILD / "millibox"), *words], capture_output=True, text=True, timeout=180, check=False,
                          env={"PATH": "/usr/bin:/bin", "MILLIBOX_SOCKET": daemon.socket})


@go
def test_commands(daemon, registry, modules, tmp_path):
    made = cli(daemon, "package", "install", "-l", "go", "example.test/needy")
    assert made.returncode == 0, made
    lock = cli(daemon, "package", "show", made.stdout.strip()).stdout
    assert "==> go.mod <==\n" in lock, repr(lock)
    (tmp_path / "go.mod").write_text(lock[lock.index("==> go.mod <==\n") + 15 : lock.index("==> go.sum")])
    (tmp_path / "go.sum").write_text(lock[lock.index("==> go.sum <==\n") + 15 :])
    again = cli(daemon, "package", "install", "-l", "go", "--lock", f"{tmp_path}/go.mod,{tmp_path}/go.sum")
    assert again.returncode == 0 and again.stdout != made.stdout, again
    built = cli(daemon, "template", "build", "modules", "--from", "go", "--lock", f"{tmp_path}/go.mod,{tmp_path}/go.sum")
    assert built.returncode == 0, built
    ran = cli(daemon, "run", "--template", "modules", "-l", "go", "-c", GO)
    assert ran.stdout == "56 needs v1.0.0\n", ran
    missing = cli(daemon, "package", "install", "-l", "go", "--lock", f"{tmp_path}/nothing")
    assert missing.returncode != 0 and "nothing" in missing.stderr, missing


# All of them.

MANAGERS = [pytest.param("rust", "tinycrate", marks=rust), pytest.param("go", "example.test/tiny", marks=go),
            pytest.param("java", "test.tiny:tiny", marks=java), pytest.param("csharp", "Tiny", marks=csharp)]


@pytest.mark.parametrize("language, package", MANAGERS)
def test_an_unreachable_registry_is_an_error_at_once(registry, language, package):
    urls = {f"{name}_url": "http://nothing.test:1/x" for name in ("cargo", "go", "maven", "nuget")}
    with daemon_of(registry, packages=urls) as daemon, daemon.client() as client:
        failed(install(client, language, packages=[package]), "nothing.test", "registry")


@pytest.mark.parametrize("language, name", [("rust", "../x"), ("rust", "--git=x"), ("go", "https://x/y"), ("go", "-x"), ("java", "a b:c"), ("csharp", "x;y")])
def test_what_is_no_name_is_refused(client, language, name):
    answer = install(client, language, packages=[name])
    assert answer.status == 400 and answer.json["field"] == "packages[0]", answer
