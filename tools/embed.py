#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files as a table in C: embed.py OUT.c HEADER TABLE FILE...

HEADER declares TABLE as an array of struct embedded_file {name, data, len}, ended by a row without
a name. Bytes, not a string: compilers bound the length of literals.
"""
import sys
from pathlib import Path


def main(out, header, table, *files):
    text = ["/* SPDX-License-Identifier: Apache-2.0 */", f'#include "{header}"', ""]
    rows = []
    for index, file in enumerate(map(Path, files)):
        data = file.read_bytes()
        text += [f"static const unsigned char file_{index}[] = {{"]
        text += ["\t" + " ".join(f"0x{byte:02x}," for byte in data[at:at + 16]) for at in range(0, len(data), 16)]
        text += ["\t0x00,", "};", ""]
        rows += [f'\t{{"{file.name}", (const char *)file_{index}, {len(data)}}},']
    text += [f"const struct embedded_file {table}[] = {{", *rows, "\t{0},", "};", ""]
    Path(out).write_text("\n".join(text), encoding="ascii")


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
