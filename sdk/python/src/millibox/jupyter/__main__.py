# SPDX-License-Identifier: Apache-2.0
"""The command of the kernel: `install`, or what Jupyter starts. See `--help`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import List

_ABOUT = """A Jupyter kernel whose cells run in an isolated sandbox of a Millibox daemon.

  python -m millibox.jupyter install    put "Millibox" into Jupyter's list of kernels
  jupyter lab                           then choose it there
  jupyter console --kernel millibox

The kernel uses the daemon of MILLIBOX_SOCKET or MILLIBOX_URL, that of the user or of the system, or starts its own.
Cells may have !commands, %cd, %pwd, %env, %time, %timeit, %pip and the cell magics %%bash, %%sh, %%time, %%writefile.
`%pip install NAME` installs from the daemon's registry."""


def install(given: argparse.Namespace) -> int:
    """Write the kernel's description where Jupyter looks for it."""
    from jupyter_client.kernelspec import KernelSpecManager

    prefix = sys.prefix if given.sys_prefix else given.prefix
    spec = {
        "argv": [sys.executable, "-m", "millibox.jupyter", "-f", "{connection_file}"],
        "display_name": given.display_name,
        "language": "python",
        "interrupt_mode": "signal",
    }
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.json").write_text(json.dumps(spec, indent=1))
        Path(folder).chmod(0o755)
        made = KernelSpecManager().install_kernel_spec(folder, given.name, user=prefix is None, prefix=prefix)
    print(f"installed the kernel '{given.display_name}' in {made}")
    return 0


def run_kernel(words: List[str]) -> int:
    """Jupyter's own options may follow the file."""
    from ipykernel.kernelapp import IPKernelApp

    from .kernel import MilliboxKernel

    IPKernelApp.launch_instance(argv=words, kernel_class=MilliboxKernel)
    return 0


def main() -> int:
    words = sys.argv[1:]
    parser = argparse.ArgumentParser(
        prog="python -m millibox.jupyter", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-f", metavar="FILE", help="be the kernel of this connection file; Jupyter does that")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    command = commands.add_parser("install", help="put the kernel into Jupyter's list")
    where = command.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for this user (the default)")
    where.add_argument("--sys-prefix", action="store_true", help="into this environment")
    where.add_argument("--prefix", help="below this directory")
    command.add_argument("--name", default="millibox", help="the kernel's name (default: millibox)")
    command.add_argument("--display-name", default="Millibox", help="as Jupyter lists it (default: Millibox)")
    command.set_defaults(run=install)
    if any(word == "-f" or word.startswith("-f=") for word in words):
        return run_kernel(words)
    given = parser.parse_args(words)
    if "run" not in given:
        parser.error("expected a command: install")
    return int(given.run(given))


if __name__ == "__main__":
    sys.exit(main())
