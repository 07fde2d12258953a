# SPDX-License-Identifier: Apache-2.0
"""C# by the SDK of .NET, in an image that has one: the host's, else that of Ubuntu's archive. Mono is in test_languages.py."""

import gzip
import hashlib
import pathlib
import shutil
import subprocess
import urllib.error
import urllib.request

import pytest

from integration import test_languages as programs
from support import oci
from support.daemon import Daemon, is_sanitized
from support.identity import V1

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(is_sanitized(), reason="a sanitized agent needs the host's libraries"),
]

ARCHIVE = "https://archive.ubuntu.com/ubuntu"
INDEX = f"{ARCHIVE}/dists/jammy-updates/main/binary-amd64/Packages.gz"
PACKAGES = ("dotnet-host-8.0", "dotnet-hostfxr-8.0", "dotnet-runtime-8.0", "dotnet-targeting-pack-8.0", "dotnet-sdk-8.0")
HOMES = ("/usr/lib/dotnet", "/usr/share/dotnet", "/usr/local/share/dotnet")
#: What csharp/toolchain.sh uses of an SDK, and what these parts load.
PARTS = ("dotnet", "host", "shared/Microsoft.NETCore.App", "packs/Microsoft.NETCore.App.Ref/*/ref", "sdk/*/Roslyn/bincore")
TOOLS = ("dirname", "sort", "tail", "cut", "ln", "chmod", "kill")


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()
    except (urllib.error.URLError, TimeoutError) as error:
        pytest.skip(f"no SDK of .NET is in {', '.join(HOMES)}, and {url} does not answer: {error}")


def unpack(folder):
    """The SDK of the archive, below @folder."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("no SDK of .NET is installed, and there is no dpkg-deb to unpack one")
    rows = {}
    for text in gzip.decompress(fetch(INDEX)).decode().split("\n\n"):
        row = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line and not line.startswith(" "))
        if row.get("Package") in PACKAGES:
            rows[row["Package"]] = row
    assert set(rows) == set(PACKAGES), rows
    for name, row in rows.items():
        data = fetch(f"{ARCHIVE}/{row['Filename']}")
        assert hashlib.sha256(data).hexdigest() == row["SHA256"], name
        (folder / "package.deb").write_bytes(data)
        subprocess.run(["dpkg-deb", "-x", folder / "package.deb", folder], check=True)
    return folder / "usr/lib/dotnet"


def find_sdk(folder):
    for home in map(pathlib.Path, HOMES):
        if all(any(home.glob(part)) for part in PARTS):
            return home
    return unpack(folder)


def dotnet_layer(home):
    """An SDK at /usr/lib/dotnet, with the host's C library."""
    layer = [*oci.busybox_layer(), *(oci.symlink(f"bin/{tool}", "busybox") for tool in TOOLS)]
    layer += [oci.folder(f"{name}/") for name in ("lib", "lib64", "usr/lib", "usr/lib/dotnet")]
    files = [path for part in PARTS for top in home.glob(part) for path in ([top] if top.is_file() else sorted(top.rglob("*")))]
    # The hashes of the compiler are those of OpenSSL, which it loads by name.
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.split()
    libraries = {word for word in known if word.startswith("/") and word.endswith(("/libssl.so.3", "/libcrypto.so.3"))}
    if len(libraries) < 2:
        pytest.skip("the compiler of .NET needs OpenSSL 3")
    for path in filter(pathlib.Path.is_file, files):
        layer.append(oci.entry(f"usr/lib/dotnet/{path.relative_to(home)}", path.read_bytes(), 0o755))
        if path.name in ("dotnet", "libhostfxr.so", "libhostpolicy.so", "libcoreclr.so", "libclrjit.so", "libSystem.Native.so"):
            text = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout
            if "not found" in text:
                pytest.skip(f"the host's libraries are too old for this SDK of .NET: {text}")
            libraries |= {word for word in text.split() if word.startswith("/")}
    return layer + [oci.entry(path.lstrip("/"), pathlib.Path(path).resolve().read_bytes(), 0o755) for path in sorted(libraries)]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    image = oci.Image([dotnet_layer(find_sdk(tmp_path_factory.mktemp("sdk")))]).bytes()
    daemon = Daemon().start()
    try:
        with daemon.client(timeout=300) as made:
            answer = made.request("POST", f"{V1}/templates/import?id=net", body=image, headers={"Content-Type": "application/x-tar"})
            assert answer.status == 201 and "csharp" in answer.json["languages"], answer
            yield made
        assert daemon.stop() == 0, daemon.log()
    finally:
        daemon.remove()


def run(client, code, options=None, **fields):
    body = {"language": "csharp", "code": code, "template_id": "net", "timeout": 60, "options": options or {}, **fields}
    answer = client.post(f"{V1}/execute", body)
    assert answer.status == 200, answer
    return answer.json


def test_the_box_has_net_and_not_mono(client):
    result = run(client, "System.Console.WriteLine(System.Runtime.InteropServices.RuntimeInformation.FrameworkDescription);")
    assert result["stdout"].startswith(".NET ") and result["exit_code"] == 0, result
    shown = {item["name"]: item for item in client.get(f"{V1}/languages?template_id=net").json["languages"]}
    assert shown["csharp"]["available"] and not shown["java"]["available"]


@pytest.mark.parametrize("mode", programs.CHECKS)
def test_behaves_like_every_language(client, mode):
    more = {"timeout": 2} if mode == "timeout" else {"timeout": 60, "resources": {"max_output": "2Mi"}}
    result = programs.run(client, "csharp", mode, template_id="net", **more)
    wanted = programs.CHECKS[mode]
    assert {key: result.get(key) for key in wanted} == wanted, result["stderr"][:500]


def test_an_uncaught_error(client):
    failed = programs.run(client, "csharp", "error", template_id="net")
    assert failed["status"] == "failed" and "on purpose" in failed["stderr"], failed


def test_is_bounded(client):
    memory = programs.run(client, "csharp", "memory", template_id="net", timeout=30, resources={"memory": "192Mi"})
    assert memory["status"] != "success" and (memory["limit"] == "memory" or memory["exit_code"]), memory
    forks = programs.run(client, "csharp", "fork", template_id="net", timeout=3, resources={"max_processes": 64})
    assert forks["status"] != "success" and (forks["metrics"]["processes_peak"] or 0) <= 64, forks


def test_thirty_tasks_have_their_known_answers(client):
    code = (programs.PROGRAMS / "tasks/tasks.cs").read_text()
    assert run(client, code)["stdout"].split("\n") == (programs.PROGRAMS / "tasks/answers.txt").read_text().split("\n")


def test_compile_errors_are_diagnostics(client):
    result = run(client, programs.LANGUAGES["csharp"][2])
    first = result["diagnostics"][0]
    assert result["phase"] == "compile" and (first["file"], first["line"], first["severity"], first["code"]) == ("main.cs", 2, "error", "CS0103"), result


def test_unchanged_programs_are_not_compiled_again(client):
    code = 'System.Console.WriteLine("once");'
    assert [run(client, code)["compile"]["cached"] for _ in range(2)] == [False, True]


NULLABLE = "class A { static void Main() { string? s = null; System.Console.WriteLine(s == null); } }"


@pytest.mark.parametrize("options, code, stdout", [
    ({"nullable": "enable", "langversion": "12"}, NULLABLE, "True\n"),
    ({"implicit_usings": "true"}, 'Console.WriteLine(Enumerable.Range(1, 3).Sum());', "6\n"),
    ({"framework": "net8.0"}, 'record P(int X); class A { static void Main() { System.Console.WriteLine(new P(4)); } }', "P { X = 4 }\n"),
    ({"unsafe": "true"}, "unsafe class A { static void Main() { int x = 7; int* p = &x; System.Console.WriteLine(*p); } }", "7\n"),
    ({"main_class": "B"}, 'class A { static void Main() { } } class B { static void Main() { System.Console.WriteLine("B"); } }', "B\n"),
])  # fmt: skip
def test_options(client, options, code, stdout):
    if "framework" in options:
        version = run(client, "System.Console.WriteLine(System.Environment.Version.ToString(2));")["stdout"].strip()
        options = {"framework": f"net{version}"}
    result = run(client, code, options)
    assert result["stdout"] == stdout, result


def test_warnings_of_nullable_references(client):
    result = run(client, "class A { static void Main() { string s = null; System.Console.WriteLine(s == null); } }", {"nullable": "enable"})
    assert (result["stdout"], result["phase"]) == ("True\n", "run") and result["diagnostics"][0]["code"] == "CS8600", result


def test_another_framework_is_refused(client):
    result = run(client, NULLABLE, {"framework": "net5.0"})
    assert result["phase"] == "compile" and "options.framework: the box has .NET" in result["stderr"], result
