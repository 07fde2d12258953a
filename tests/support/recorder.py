# SPDX-License-Identifier: Apache-2.0
"""One line per test for tools/test, which runs again what failed (tools/records.py says what is in a line)."""

import json
import os


class Recorder:
    """A plugin of pytest that appends to a file."""

    def __init__(self, path, phase):
        self._path, self._phase, self._tests = path, phase, {}

    def pytest_runtest_logreport(self, report):
        test = self._tests.setdefault(report.nodeid, {"outcome": "passed", "seconds": 0.0, "output": ""})
        test["seconds"] += getattr(report, "duration", 0)
        if report.failed:
            test["outcome"] = "failed"
            test["output"] += f"{report.when}:\n{report.longreprtext}\n" + "".join(f"-- {name}\n{text}\n" for name, text in report.sections)
        elif report.skipped and not hasattr(report, "wasxfail"):
            test["outcome"] = "skipped"
        # "???" is a worker of xdist that died.
        if report.when in ("teardown", "???"):
            self._write(report.nodeid, self._tests.pop(report.nodeid))

    def pytest_sessionfinish(self):
        """A test without a teardown was interrupted."""
        for name, test in self._tests.items():
            self._write(name, {**test, "outcome": "failed"})

    def _write(self, name, test):
        line = {"phase": self._phase, "id": name, **test, "seconds": round(test["seconds"], 3), "load": round(os.getloadavg()[0], 1)}
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
