#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the C library adds to raw HTTP. Usage: MILLIBOX_BUILD=build-release sdk_c.py [ROUNDS]

Compiles sdk_c.c, which sends each request by hand and by the library, in turns, so that both meet the same load. The
overhead is the difference of the medians; the goal is 0.3 ms. The processor time of the client does not depend on what
else the machine does, and decides.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.daemon import BUILD, Daemon  # noqa: E402

GOAL_MS = 0.3


def build(place):
    program = Path(place) / "sdk_c"
    subprocess.run(["gcc", "-O2", f"-I{ROOT}/src/client", str(HERE / "sdk_c.c"), "-o", str(program),
                    str(BUILD / "src/client/libmillibox.a"), "-lcurl", "-ljansson"], check=True)
    return program


def main(rounds):
    daemon = Daemon(env={"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_ZYGOTES_ENABLED": "true"}).start()
    print(f"{rounds} rounds, medians in ms\n")
    print("| request | raw | library | overhead | of the processor | at most 0.3 |\n| --- | --- | --- | --- | --- | --- |")
    worst = 0
    try:
        with tempfile.TemporaryDirectory() as place:
            shown = subprocess.run([str(build(place)), daemon.socket, str(rounds)], check=True, capture_output=True, text=True).stdout
        for line in shown.splitlines():
            name, *times = line.split("\t")
            raw, library, raw_used, used = map(float, times)
            over = used - raw_used
            worst = max(worst, over)
            print(f"| {name} | {raw:.3f} | {library:.3f} | {library - raw:+.3f} | {over:+.3f} | {'yes' if over <= GOAL_MS else 'NO'} |")
    finally:
        daemon.stop()
        daemon.remove()
    return 0 if worst <= GOAL_MS else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
