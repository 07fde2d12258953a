# SPDX-License-Identifier: Apache-2.0
"""Reports of programs built with sanitizers.

Every process that a test starts writes its reports as files into one folder, which is looked at after each
test. Agents have neither that folder nor a stderr: the daemon logs how they end.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MILLIBOX_BUILD", ROOT / "build")).resolve()

#: How a report begins, and the line that the daemon logs when an agent ends by its own fault.
REPORT = re.compile(
    r"\w+Sanitizer: ?\w|\.[ch]:\d+:\d+: runtime error:|ERROR: Can't open file|the agent ended \((signal (?!9\))|status (?![01]\)))"
)

#: The leak checker does not work in the programs, which make themselves undumpable; unit tests use it.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
    "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1",
}


@functools.cache
def is_sanitized():
    """Whether the daemon is built with the address sanitizer, which delays freeing."""
    return b"libasan.so" in (BUILD / "milliboxd").read_bytes()


class Reports:
    """The folder of one test run."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mbxreports-"))
        self.folder.chmod(0o1777)  # daemon and boxes have ids of their own
        self.options = {name: f"{os.environ.get(name, value)}:log_path={self.folder}/report"
                        for name, value in OPTIONS.items()}

    def take(self):
        """Reports since the last call, as one text."""
        texts = []
        for path in sorted(self.folder.iterdir()):
            texts.append(path.read_text(errors="replace"))
            path.unlink()
        return "\n".join(texts)

    def remove(self):
        shutil.rmtree(self.folder)


def watch():
    """Let all processes that are started from here on report to the folder that is returned."""
    reports = Reports()
    os.environ.update(reports.options)
    start = subprocess.Popen.__init__

    def started(self, *args, env=None, **kw):
        # Added also where a test names all variables of a program.
        start(self, *args, env=None if env is None else {**reports.options, **env}, **kw)

    subprocess.Popen.__init__ = started
    return reports
