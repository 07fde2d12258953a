# SPDX-License-Identifier: Apache-2.0
"""python -m millibox.jupyter install [--user | --sys-prefix | --prefix DIR] [--name NAME] [--display-name TEXT]

Without a word it is the kernel itself, which Jupyter starts with -f and a file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import List


def install(words: List[str]) -> int:
    """Write the kernel's description where Jupyter looks for it."""
    from jupyter_client.kernelspec import KernelSpecManager

    parser = argparse.ArgumentParser(prog="python -m millibox.jupyter install")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for this user (the default)")
    where.add_argument("--sys-prefix", action="store_true", help="into this environment")
    where.add_argument("--prefix", help="below this directory")
    parser.add_argument("--name", default="millibox", help="the kernel's name (default: millibox)")
    parser.add_argument("--display-name", default="Millibox", help="as Jupyter lists it (default: Millibox)")
    given = parser.parse_args(words)
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


def main() -> int:
    if sys.argv[1:2] == ["install"]:
        return install(sys.argv[2:])
    from ipykernel.kernelapp import IPKernelApp

    from .kernel import MilliboxKernel

    IPKernelApp.launch_instance(kernel_class=MilliboxKernel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
