# SPDX-License-Identifier: Apache-2.0
"""Packages of a layer beside those that the host has by chance: as in a virtual environment, programs do not find the latter.

The host's are real: this module writes some, with names of its own, to where the host's Python looks.
"""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from support import host
from support.daemon import BUILD
from support.registry import Registry, daemon_of, needs_pip, sdist, wheel

V1 = "/api/v1"
PYTHON = "/usr/bin/python3"
#: Of this run: the host is everyone's.
DEP, BROKEN = f"mbxdep{os.getpid()}", f"mbxbroken{os.getpid()}"

pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not host.is_root(), reason="only root installs packages on the host"),
    needs_pip,
]

#: A package that uses another where there is one, and copes without: as pandas does with bottleneck.
MODERN = f"""
try:
    import {BROKEN}
    FAST = True
except ImportError:
    FAST = False
"""


def place_files(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="module", autouse=True)
def host_packages():
    version = subprocess.run([PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True, check=True)
    folder = pathlib.Path(f"/usr/local/lib/python{version.stdout.strip()}/dist-packages")
    program = pathlib.Path(f"/usr/local/bin/{DEP}")
    place_files(folder, {
        f"{BROKEN}.py": "raise AttributeError('built for another version')\n",
        f"{DEP}/__init__.py": "VALUE = 'of the host'\n",
        f"{DEP}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {DEP}\nVersion: 1.0\n",
    })
    program.write_text(f"#!{PYTHON}\nimport {DEP}\nprint({DEP}.VALUE)\n")
    program.chmod(0o755)
    yield
    program.unlink()
    (folder / f"{BROKEN}.py").unlink()
    for name in (DEP, f"{DEP}-1.0.dist-info"):
        shutil.rmtree(folder / name)


@pytest.fixture(scope="module")
def registry():
    made = Registry()
    made.add(wheel("modern", files={"modern.py": MODERN}))
    made.add(wheel(DEP))
    made.add(wheel("needy", files={"needy.py": f"from {DEP} import VALUE\n"}, requires=[DEP]))
    made.add(wheel("tinypkg"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def daemon(registry):
    with daemon_of(registry) as made:
        yield made


@pytest.fixture
def client(daemon):
    with daemon.client() as made:
        yield made


def run(client, code, language="python", **fields):
    answer = client.post(f"{V1}/execute", {"language": language, "code": code, "receipt": "plain", **fields})
    assert answer.status == 200, answer
    return answer.json


def run_in_session(client, code, *calls, **fields):
    """In a session that is made for it. @calls: made before, as (path, body)."""
    made = client.post(f"{V1}/sessions", {"mode": "persistent", **fields})
    assert made.status == 201, made
    path = f"{V1}/sessions/{made.json['session_id']}"
    try:
        for name, body in calls:
            answer = client.post(f"{path}/{name}", body)
            assert answer.status == 200, answer
        answer = client.post(f"{path}/execute", {"code": code, "wait": True})
        assert answer.status == 200, answer
        return answer.json
    finally:
        client.request("DELETE", path)


def make_template(client, name, **fields):
    made = client.post(f"{V1}/templates", {"id": name, "name": name, "image": "host", "language": "python", **fields})
    assert made.status == 201, made
    return name


def test_a_program_without_packages_finds_those_of_the_host(client):
    """Control: of the tests below."""
    assert run(client, f"import {DEP}\n{DEP}.VALUE")["result"] == "of the host"
    done = run(client, f"import {BROKEN}")
    assert done["error"]["name"] == "AttributeError", done


def test_an_optional_package_of_the_host_is_not_found(client):
    assert run(client, "import modern\nmodern.FAST", packages=["modern"])["result"] is False
    name = make_template(client, "modern", packages=["modern"], preload=["modern"])
    assert run(client, "import modern\nmodern.FAST", template_id=name)["result"] is False
    done = run_in_session(client, f"import modern, importlib.util\n[modern.FAST, importlib.util.find_spec('{DEP}')]", template_id=name)
    assert done["result"] == [False, None], done


def test_nor_by_boxes_that_are_warm(registry):
    """A zygote has started as a program without packages does."""
    env = {"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_ZYGOTES_ENABLED": "true", "MILLIBOX_POOLS_FLOOR": "0"}
    with daemon_of(registry, env=env) as daemon, daemon.client() as client:
        name = make_template(client, "warm", packages=["modern"], preload=["modern"])
        code = f"import importlib.util, modern, sys\n[modern.FAST, importlib.util.find_spec('{DEP}'), [p for p in sys.path if 'dist-packages' in p]]"

        def is_warm():
            done = run(client, code, template_id=name)
            assert done["result"] == [False, None, []], done
            return done["isolation"]["pooled"]

        host.wait_until(is_warm, 60, "a program runs in a pooled box")
        daemon.restless = True


def test_what_the_host_has_satisfies_no_requirement(client):
    done = run(client, f"import needy, {DEP}\n[needy.VALUE, {DEP}.__file__]", packages=["needy"])
    assert done["result"] == ["1.0", f"/opt/millibox/packages/pip/{DEP}/__init__.py"], done
    layers = client.get(f"{V1}/packages/layers").json["layers"]
    layer = next(layer for layer in layers if layer["packages"] == ["needy"])
    assert f"{DEP}==1.0 --hash=sha256:" in client.get(f"{V1}/packages/layers/{layer['id']}").json["lock"]


CHILDREN = f"""
import subprocess, sys
find = "import importlib.util as u, tinypkg; print(tinypkg.VALUE, u.find_spec('{DEP}'))"
for words in ([sys.executable, "-c", find], ["python3", "-c", find], ["{DEP}"], ["pip", "list", "--format=freeze"], [sys.executable, "-m", "pip", "list", "--format=freeze"]):
    done = subprocess.run(words, capture_output=True, text=True)
    print(done.stdout.strip() or done.stderr)
"""


def test_interpreters_that_a_program_starts_find_the_same(client):
    """A program of the host finds what it needs; pip is one, but installs for those of the box."""
    done = run(client, CHILDREN, packages=["tinypkg"], timeout=60)
    assert done["stdout"].splitlines() == ["1.0 None", "1.0 None", "of the host", "tinypkg==1.0", "tinypkg==1.0"], done


def test_what_a_virtual_environment_begins_with_is_there(client):
    done = run(client, "import pip, setuptools, pkg_resources, distutils.core\n[pip.__name__, setuptools.__name__]", packages=["tinypkg"])
    assert done["result"] == ["pip", "setuptools"], done


def test_a_module_of_the_program_that_is_called_sitecustomize_runs_too(client):
    code = "import subprocess\nprint(subprocess.run(['python3', '-c', 'import tinypkg'], capture_output=True, text=True).stdout)"
    done = run(client, code, packages=["tinypkg"], files={"lib/sitecustomize.py": "print('mine')\n"}, env_vars={"PYTHONPATH": "/workspace/lib"})
    assert done["stdout"] == "mine\n\n", done


def test_a_template_may_show_packages_of_the_host(client, daemon):
    code = f"import {DEP}, tinypkg\n[{DEP}.VALUE, tinypkg.VALUE]"
    name = make_template(client, "both", packages=["tinypkg"], system_packages=True)
    assert client.get(f"{V1}/templates/{name}").json["system_packages"] is True
    assert run(client, code, template_id=name)["result"] == ["of the host", "1.0"]
    # More packages come beside them.
    assert run(client, code + " + [__import__('modern').__file__[:13]]", template_id=name, packages=["modern"])["error"]["name"] == "AttributeError"
    changed = client.request("PUT", f"{V1}/templates/{name}", body=json.dumps({"system_packages": False}).encode(), headers={"Content-Type": "application/json"})
    assert changed.status == 200 and changed.json["system_packages"] is False, changed
    assert run(client, code, template_id=name)["error"]["name"] == "ModuleNotFoundError"
    env = {"PATH": "/usr/bin:/bin", "MILLIBOX_SOCKET": daemon.socket}

    def cli(*words):
        return subprocess.run([BUILD / "millibox", *words], capture_output=True, text=True, timeout=120, check=False, env=env)

    assert cli("template", "update", name, "--system-packages", "yes").returncode == 0
    assert run(client, code, template_id=name)["result"] == ["of the host", "1.0"]
    assert "host packages yes" in cli("template", "show", name).stdout
    built = cli("template", "build", "built", "--packages", "tinypkg", "--system-packages", "yes")
    assert built.returncode == 0 and run(client, code, template_id="built")["result"] == ["of the host", "1.0"], built
    wrong = cli("template", "update", name, "--system-packages", "maybe")
    assert wrong.returncode == 2 and "--system-packages" in wrong.stderr and "yes or no" in wrong.stderr, wrong


def test_packages_of_a_request_come_beside_those_of_its_template(client):
    """Their layer replaces that of the template, and hides what the template's were on the host."""
    both = f"import modern, {DEP}\n[modern.FAST, {DEP}.VALUE]"
    layered = make_template(client, "layered", packages=["needy"], run="echo made > \"$LAYER/made\"")
    made = "import needy, os\n[needy.VALUE, os.path.exists('/opt/millibox/packages/run/made')]"
    assert run(client, made, template_id=layered)["result"] == ["1.0", True]
    assert run(client, made.replace("import ", "import modern, "), template_id=layered, packages=["modern"])["result"] == ["1.0", True]
    assert run(client, both, template_id=layered, packages=["modern", DEP])["result"] == [False, "1.0"]
    # The host has what this one names, so there is no layer.
    bare = make_template(client, "bare", packages=[DEP])
    assert run(client, f"import {DEP}\n{DEP}.VALUE", template_id=bare)["result"] == "of the host"
    assert run(client, both, template_id=bare, packages=["modern"])["result"] == [False, "1.0"]
    for fields in ({"packages": ["modern"]}, {"dependencies": [{"name": "modern"}]}, {"dependencies": [{"name": "modern"}, {"name": DEP}]}):
        assert run_in_session(client, both, template_id=layered, **fields)["result"] == [False, "1.0"]
    assert run_in_session(client, f"import {DEP}\n{DEP}.VALUE", template_id=layered, dependencies=[{"name": DEP}])["result"] == "1.0"


def test_a_package_that_a_request_names_precedes_that_of_its_template(client, registry):
    registry.add(wheel("tinypkg", "2.0"))
    name = make_template(client, "old", packages=["tinypkg==1.0", "modern"])
    code = "import tinypkg, modern\n[tinypkg.VALUE, modern.FAST]"
    assert run(client, code, template_id=name)["result"] == ["1.0", False]
    assert run(client, code, template_id=name, packages=["TinyPkg==2.0"])["result"] == ["2.0", False]


def test_a_live_session_keeps_what_it_found(client):
    """Installing into it is like installing for the user: what the host has stays."""
    install = "dependencies/install", {"dependencies": [{"name": "tinypkg", "version": "1.0"}]}
    done = run_in_session(client, f"import {DEP}, tinypkg\n[{DEP}.VALUE, tinypkg.VALUE]", install)
    assert done["result"] == ["of the host", "1.0"], done


@pytest.mark.skipif(not (pathlib.Path("/usr/bin/npm").exists() and pathlib.Path("/usr/bin/node").exists()), reason="needs npm below /usr")
def test_nor_are_global_modules_of_node(client, registry):
    """Of programs in a box with packages. A `node` that a program starts searches as always."""
    registry.add_npm("tinyjs")
    folder = pathlib.Path("/usr/lib/node")
    had = folder.exists()
    place_files(folder, {f"{DEP}.js": "module.exports = 'of the host';\n"})
    code = f"let found = null; try {{ found = require('{DEP}'); }} catch {{}} [found, require('fs').existsSync('/usr')]"
    try:
        for language in ("javascript", "typescript"):
            assert run(client, code, language)["result"] == ["of the host", True]  # Control.
            assert run(client, code, language, packages=["tinyjs"])["result"] == [None, True]
            done = run(client, "require('tinyjs')", language, packages=["tinyjs"])
            assert done["result"] == "1.0.0", done
        name = make_template(client, "js", language="javascript", packages=["tinyjs"], system_packages=True)
        assert run(client, code, "javascript", template_id=name)["result"] == ["of the host", True]
    finally:
        (folder / f"{DEP}.js").unlink()
        if not had:
            folder.rmdir()


@pytest.mark.skipif(subprocess.run([PYTHON, "-c", "import setuptools, wheel"], capture_output=True, check=False).returncode != 0,
                    reason="needs setuptools and wheel of /usr/bin/python3")
def test_setuptools_of_the_host_has_its_commands(client, registry):
    """They are entry points of its metadata, by which a source distribution is built. The metadata of other packages stay hidden."""
    registry.add(sdist("built", "from setuptools import setup\nsetup(name='built', version='1.0', py_modules=[])\n"))
    code = ("from importlib.metadata import distributions, version\n"
            f"print(version('setuptools') > '', {DEP!r} in {{one.name for one in distributions()}})")
    assert run(client, code)["stdout"] == "True True\n"
    assert run(client, code, packages=["built"])["stdout"] == "True False\n"
