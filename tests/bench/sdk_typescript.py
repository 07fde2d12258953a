#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the TypeScript SDK adds to raw HTTP. Usage: MILLIBOX_BUILD=build-release sdk_typescript.py [ROUNDS]

Starts a daemon, compiles the SDK and runs sdk_typescript.mjs. The status is 1 if a row misses the goal.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.daemon import Daemon  # noqa: E402


def main(rounds):
    sdk = ROOT / "sdk/typescript"
    if not (sdk / "node_modules").exists():
        sys.exit("the compiler is not installed: tools/setup test")
    daemon = Daemon(env={"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_ZYGOTES_ENABLED": "true"}).start()
    try:
        with tempfile.TemporaryDirectory() as made:
            subprocess.run(["node", sdk / "node_modules/typescript/bin/tsc", "-p", sdk, "--outDir", made], check=True)
            (Path(made) / "package.json").write_text('{"type": "module"}')
            # The tool for the AI SDK is not loaded.
            env = {**os.environ, "MILLIBOX_SOCKET": daemon.socket}
            script = Path(__file__).with_suffix(".mjs")
            return subprocess.run(["node", "--expose-gc", script, Path(made) / "index.js", str(rounds)], env=env).returncode
    finally:
        daemon.stop()
        daemon.remove()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
