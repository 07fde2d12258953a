# SPDX-License-Identifier: Apache-2.0
"""Keeps a daemon for as long as the process that started it lives, however that ends. Usage: _supervisor.py PROGRAM
DIRECTORY

Its standard input is a pipe from that process: when it closes, the daemon is stopped and the directory removed. A
parent-death signal alone is not enough: the kernel clears it when the daemon changes its user id. Runs without this
package: python -I -S.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

#: The first SIGTERM drains boxes, the second kills them; SIGKILL is for a daemon that hangs.
_STEPS = ((signal.SIGTERM, 5.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 10.0))
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _stop(daemon: "subprocess.Popen[bytes]") -> None:
    for number, seconds in _STEPS:
        if daemon.poll() is not None:
            return
        daemon.send_signal(number)
        try:
            daemon.wait(seconds)
        except subprocess.TimeoutExpired:
            pass


def main(program: str, directory: str) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    command = [
        program,
        "--listen",
        "",
        "--socket",
        f"{directory}/sock",
        "--state-dir",
        f"{directory}/state",
        "--log-level",
        "warn",
    ]
    try:
        _run(command, f"{directory}/log")
        # The process that started it sees this, and reads the log before it closes the pipe.
        open(f"{directory}/ended", "wb").close()
        select.select([0], [], [])
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


def _run(command: "list[str]", path: str) -> None:
    """Return when the daemon has ended: by itself, or because the pipe was closed."""
    with open(path, "ab") as log:
        try:
            daemon = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_parent
            )
        except OSError as e:
            log.write(f"{command[0]}: {e.strerror}\n".encode())
            return
    select.select([0, os.pidfd_open(daemon.pid)], [], [])
    _stop(daemon)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
