# SPDX-License-Identifier: Apache-2.0
"""Packages that a program installs for itself, without a network: into the user's site directory of its box."""

import base64
import io
import zipfile

import pytest

pytestmark = [
    pytest.mark.phases("system", "pool"),
    pytest.mark.skipif("not __import__('os').path.exists('/usr/bin/pip')", reason="the host has no pip"),
]

WHEEL = "daypkg-1.0-py3-none-any.whl"


def wheel(name="daypkg", value="1"):
    """A wheel with one module."""
    info = f"{name}-1.0.dist-info"
    members = {
        f"{name}/__init__.py": f"VALUE = {value}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    members[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*members, f"{info}/RECORD"])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in members.items():
            archive.writestr(path, text)
    return {"base64": base64.b64encode(out.getvalue()).decode()}


INSTALL = """
import subprocess, sys
try:
    import daypkg
except ImportError:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "./daypkg-1.0-py3-none-any.whl"], check=True)
import daypkg
print(daypkg.VALUE, daypkg.__file__)
"""
PLACE = "/workspace/.local/lib/python"


def test_a_wheel_is_installed_by_one_execution_and_used_by_the_next(py):
    done = py.run(f"pip install --no-index ./{WHEEL}", language="shell", files={WHEEL: wheel()}, timeout=60)
    assert done["exit_code"] == 0, done
    done = py.run("import daypkg\ndaypkg.VALUE, daypkg.__file__")
    assert done["result"][0] == 1 and done["result"][1].startswith(PLACE), done
    assert py.run("python3 -c 'import daypkg; print(daypkg.VALUE)'", language="shell")["stdout"] == "1\n"


def test_a_program_installs_what_it_lacks(py, client):
    done = py.run(INSTALL, files={WHEEL: wheel()}, timeout=60)
    assert done["stdout"].startswith(f"1 {PLACE}"), done
    done = client.python(INSTALL, files={WHEEL: wheel()}, timeout=60)
    assert done["stdout"].startswith(f"1 {PLACE}"), done


def test_an_installed_package_precedes_that_of_the_host(py):
    """As in any Python with a user site."""
    name = "yaml-1.0-py3-none-any.whl"
    done = py.run(f"pip install --no-index ./{name}", language="shell", files={name: wheel("yaml", "'mine'")}, timeout=60)
    assert done["exit_code"] == 0, done
    assert py.run("import yaml\nyaml.VALUE")["result"] == "mine"


def test_the_module_path_of_a_session_without_packages_is_unchanged(py):
    done = py.run("import sys\n[p for p in sys.path if '.local' in p]")
    assert done["result"] == []
    with_error = py.run("import no_such_module")
    assert with_error["error"]["name"] == "ModuleNotFoundError"


def test_a_package_that_is_not_there_fails_at_once(py):
    """Without a network there is nothing to retry."""
    done = py.run("pip install no-such-package-here", language="shell", timeout=60)
    assert done["exit_code"] == 1 and "Retrying" not in done["stderr"], done
    assert "No matching distribution" in done["stderr"]
