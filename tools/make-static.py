#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A static library of one object. Usage: make-static.py OUTPUT MAP WHOLE.a [PART.a...]

The object has all of WHOLE.a and what that needs of the others. Only names that the version script MAP makes global
stay global: the rest cannot collide with names of the program that links the library.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def exported(script):
    listed = script[script.index("global:"):script.index("local:")]
    return re.findall(r"^\s*(\w+);", listed, re.M)


def main(output, script, whole, *parts):
    with tempfile.TemporaryDirectory(dir=Path(output).parent) as place:
        names, made = Path(place, "names"), Path(place, "libmillibox.o")
        names.write_text("\n".join(exported(Path(script).read_text())) + "\n")
        archives = ["--whole-archive", whole, "--no-whole-archive", "--start-group", *parts, "--end-group"]
        subprocess.run(["ld", "-r", "-o", made, *archives], check=True)
        subprocess.run(["objcopy", f"--keep-global-symbols={names}", made], check=True)
        archive = Path(place, "made.a")
        subprocess.run(["ar", "rcsD", archive, made], check=True)
        os.replace(archive, output)


if __name__ == "__main__":
    main(*sys.argv[1:])
