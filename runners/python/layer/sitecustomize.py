# SPDX-License-Identifier: Apache-2.0
"""In a box with packages of its own, Python finds these, the user's and the standard library, as in a virtual
environment. What the host has was built for other versions.

PYTHONPATH leads here, so every interpreter of the box imports this file when it starts; the runners, which are
isolated, call hide().
"""
import sys

# A virtual environment has them too.
TOOLS = "pip", "setuptools", "_distutils_hack", "pkg_resources", "wheel"
hidden = []


class Tools:
    """The last finder."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is None and name in TOOLS:
            return sys.modules["_frozen_importlib_external"].PathFinder.find_spec(name, hidden, target)

    @staticmethod
    def find_distributions(context):
        """For importlib.metadata: setuptools finds its own commands as entry points. Who names a place, like pip, does
        not look here."""
        if "path" in vars(context):
            return
        from importlib.metadata import DistributionFinder, MetadataPathFinder

        for found in MetadataPathFinder.find_distributions(DistributionFinder.Context(name=context.name, path=hidden)):
            if found.metadata["Name"] in TOOLS:
                yield found


def is_hosts(place):
    return place.startswith("/usr/") and "-packages" in place


def place_of(module):
    names = getattr(module, "__dict__", {})
    return str(names.get("__file__") or next(iter(names.get("__path__") or ()), ""))


def hide():
    """Also what files named *.pth have loaded from there."""
    hidden[:] = [place for place in sys.path if is_hosts(place)]
    sys.path[:] = [place for place in sys.path if place not in hidden]
    loaded = [name for name, module in sys.modules.items() if is_hosts(place_of(module))]
    for name in loaded:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ not in loaded]
    sys.meta_path.append(Tools)


def is_program_of_host(path):
    """Programs of the host need its packages. pip installs for the programs of the box."""
    name = path.rpartition("/")[2].rstrip("0123456789.")
    return path.startswith(("/usr/", "/bin/", "/sbin/")) and name != "pip"


def start():
    """Then let the next module of this name run, if there is one."""
    if not is_program_of_host(next(iter(sys.argv), "")):
        hide()
    sys.path.remove(__file__.rpartition("/")[0])
    own = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError as error:
        sys.modules[__name__] = own
        if error.name != __name__:
            raise


if __name__ == "sitecustomize":
    start()
