# SPDX-License-Identifier: Apache-2.0
"""layer/sitecustomize.py hides what the host has, also what its files *.pth have loaded before."""

import json
import pathlib
import subprocess

FILE = pathlib.Path(__file__).parents[3] / "runners/python/layer/sitecustomize.py"
HOSTS = "/usr/lib/python3/dist-packages"
PLANT = f"""
import json, sys, types
path = {str(FILE)!r}
def plant(name, **names):
    sys.modules[name] = module = types.ModuleType(name)
    module.__dict__.update(names)
    return module
class Finder:
    find_spec = staticmethod(lambda name, path=None, target=None: None)
Finder.__module__ = "planted_hack"
plant("planted_hack", __file__="{HOSTS}/planted_hack.py")
plant("planted_ns", __path__=["{HOSTS}/planted_ns"])
plant("planted_own", __file__="/opt/millibox/packages/pip/planted_own.py")
sys.modules["planted_odd"] = None
sys.meta_path.insert(0, Finder())
sys.path += ["{HOSTS}", "/usr/local/lib/python3.11/dist-packages/an.egg", "/workspace/.local/lib/python3.11/site-packages", "/opt/millibox/packages/pip"]
"""


def python(code):
    done = subprocess.run(["/usr/bin/python3", "-I", "-S", "-c", PLANT + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_places_modules_and_finders_of_the_host_are_hidden():
    found = python("""
names = {"__name__": "any"}
exec(open(path).read(), names)
names["hide"]()
print(json.dumps([[p for p in sys.path if "-packages" in p or "packages/" in p], [n for n in sys.modules if n.startswith("planted")],
    [type(f).__module__ for f in sys.meta_path if type(f).__module__ == "planted_hack"], names["hidden"]]))
""")
    assert found == [["/workspace/.local/lib/python3.11/site-packages", "/opt/millibox/packages/pip"], ["planted_own", "planted_odd"], [],
                     [HOSTS, "/usr/local/lib/python3.11/dist-packages/an.egg"]]


def test_programs_of_the_host_see_all():
    found = python("""
names = {"__name__": "any"}
exec(open(path).read(), names)
print(json.dumps([name for name in ("/usr/bin/meson", "/bin/x", "/usr/bin/pip", "/usr/local/bin/pip3.11", "/usr/bin/pipx", "-c", "-m", "", "main.py", "/workspace/usr/x", "/usr2/x")
    if names["is_program_of_host"](name)]))
""")
    assert found == ["/usr/bin/meson", "/bin/x", "/usr/bin/pipx"]


def test_a_broken_module_of_the_same_name_is_reported(tmp_path):
    """As Python itself does."""
    (tmp_path / "sitecustomize.py").write_text("import no_such_module\n")
    done = subprocess.run(["/usr/bin/python3", "-c", "print('went on')"], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": f"{FILE.parent}:{tmp_path}"})
    assert "no_such_module" in done.stderr and done.stdout == "went on\n", done
