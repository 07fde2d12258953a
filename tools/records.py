# SPDX-License-Identifier: Apache-2.0
"""What became of each test of a run, and what that means for the run.

A record is a dictionary:

    phase    unit, system, pool, user, subid, smoke, lint, package, vm, systemd
    id       what the phase's runner calls the test
    outcome  passed, failed or skipped, beside other tests
    seconds  with set-up and teardown
    load     the machine's load average when the test ended
    output   what was printed about a failure
    again    outcomes of reruns, with nothing beside them
    is_job   it stands for a job without a record of its tests, or one that failed without a failed test

A file of records has one per line, after a line about the run itself.
"""
import json
import os
import subprocess
import time
from collections import Counter
from pathlib import Path

#: In these suites a second chance would hide the race that is the bug: every rerun must pass.
STRICT = ("security/", "fault/")
STRICT_RERUNS = 3
RERUNS = 2

#: A run with more flaky tests than this fails, so that they do not become a habit.
MAX_FLAKY = 5
MAX_FLAKY_STRICT = 1
#: A phase with a larger share of failures is broken. Running them again would only cost time.
MAX_FAILED_SHARE = 0.02

KINDS = ("passed", "failed", "skipped", "flaky")
KEPT_RUNS = 100


def directory():
    """Where runs are kept: outside of the checkout, so that a fresh clone knows them too."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(os.environ.get("MILLIBOX_TEST_RECORDS") or f"{state}/millibox/tests")


def is_strict(test):
    return test["id"].startswith(STRICT)


def may_run_again(test):
    """Whether a failed test needs another rerun to be judged."""
    again = test.setdefault("again", [])
    if test.get("is_job"):
        return False
    if is_strict(test):
        return len(again) < STRICT_RERUNS and set(again) <= {"passed"}
    return len(again) < RERUNS and "passed" not in again


def kind(test):
    """One of KINDS."""
    if test["outcome"] != "failed":
        return test["outcome"]
    again = test.get("again", [])
    is_flaky = again == ["passed"] * STRICT_RERUNS if is_strict(test) else "passed" in again
    return "flaky" if is_flaky else "failed"


def broken_phases(tests):
    """Sentences about phases in which too many tests failed."""
    total = Counter(test["phase"] for test in tests if not test.get("is_job"))
    failed = Counter(test["phase"] for test in tests if test["outcome"] == "failed" and not test.get("is_job"))
    return [f"{failed[phase]} of {total[phase]} tests failed in the phase {phase}: more than {MAX_FAILED_SHARE:.0%},"
            " none runs again"
            for phase in failed if failed[phase] > MAX_FAILED_SHARE * total[phase]]


def verdict(tests, flaky_is_failure=False):
    """Sentences that say why a run failed; none: it passed."""
    counts = Counter(kind(test) for test in tests)
    strict = sum(kind(test) == "flaky" and is_strict(test) for test in tests)
    reasons = broken_phases(tests)
    if counts["failed"]:
        reasons.append(f"{counts['failed']} failed")
    if not counts["passed"]:
        reasons.append("no test passed")
    if flaky_is_failure and counts["flaky"]:
        reasons.append(f"{counts['flaky']} flaky, and MILLIBOX_FLAKY=fail makes each a failure")
    elif counts["flaky"] > MAX_FLAKY:
        reasons.append(f"{counts['flaky']} flaky: more than {MAX_FLAKY}")
    elif strict > MAX_FLAKY_STRICT:
        reasons.append(f"{strict} flaky in {' and '.join(STRICT)}: more than {MAX_FLAKY_STRICT}")
    return reasons


def sum_line(tests):
    counts = Counter(kind(test) for test in tests)
    return ", ".join(f"{counts[name]} {name}" for name in KINDS)


def read_lines(path):
    """Records that a runner wrote. The last line of one that was killed may be incomplete."""
    found = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


#: What meson calls a result, and the outcome.
MESON_OUTCOMES = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def read_meson(path, load):
    """Records of the tests in meson's testlog.json."""
    found = []
    for test in read_lines(path):
        outcome = MESON_OUTCOMES.get(test["result"], "failed")
        printed = f"{test['result']}\n{test.get('stdout') or ''}{test.get('stderr') or ''}"
        found.append({"phase": "unit", "id": test["name"].split(" / ", 1)[-1], "outcome": outcome,
                      "seconds": round(test["duration"], 3), "load": load,
                      "output": printed if outcome == "failed" else ""})
    return found


def save(tests, jobs):
    """Keep a run. @jobs: name, seconds and processor seconds of each. Return: its file."""
    where = directory()
    where.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    path = where / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{commit or 'unknown'}.jsonl"
    lines = [{"commit": commit, "time": int(time.time()), "cores": os.cpu_count(), "jobs": jobs}, *tests]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for old in sorted(where.glob("*.jsonl"))[:-KEPT_RUNS]:
        old.unlink()
    return path


def read_run(path):
    """Return: the line about the run, its records."""
    lines = read_lines(path)
    return (lines[0], lines[1:]) if lines else ({}, [])


def _test(name, outcome, again=(), phase="system"):
    return {"phase": phase, "id": name, "outcome": outcome, "seconds": 1, "load": 1, "output": "",
            "again": list(again)}


def self_test():
    """Return: how many cases there are, sentences about those that were not as expected."""
    good = [_test(f"integration/test_a.py::{i}", "passed") for i in range(1000)]

    def flaky(number, suite="integration"):
        again = ["passed"] * (1 if suite == "integration" else STRICT_RERUNS)
        return [_test(f"{suite}/test_b.py::{i}", "failed", again) for i in range(number)]

    cases = [
        ("nothing failed", good, [], "1000 passed, 0 failed, 0 skipped, 0 flaky"),
        ("one flaky", good + flaky(1), [], "1000 passed, 0 failed, 0 skipped, 1 flaky"),
        ("passed at the second rerun", good + [_test("sdk/test_c.py::x", "failed", ["failed", "passed"])], [],
         "1000 passed, 0 failed, 0 skipped, 1 flaky"),
        ("failed again", good + [_test("sdk/test_c.py::x", "failed", ["failed", "failed"])], ["1 failed"],
         "1000 passed, 1 failed, 0 skipped, 0 flaky"),
        ("security failed once of three",
         good + [_test("security/test_c.py::x", "failed", ["passed", "passed", "failed"])], ["1 failed"],
         "1000 passed, 1 failed, 0 skipped, 0 flaky"),
        ("five flaky", good + flaky(5), [], "1000 passed, 0 failed, 0 skipped, 5 flaky"),
        ("six flaky", good + flaky(6), ["6 flaky: more than 5"], "1000 passed, 0 failed, 0 skipped, 6 flaky"),
        ("one of security flaky", good + flaky(1, "security"), [], "1000 passed, 0 failed, 0 skipped, 1 flaky"),
        ("two of fault flaky", good + flaky(2, "fault"), ["2 flaky in security/ and fault/: more than 1"],
         "1000 passed, 0 failed, 0 skipped, 2 flaky"),
        ("a broken phase", good[:100] + flaky(3),
         ["3 of 103 tests failed in the phase system: more than 2%, none runs again"],
         "100 passed, 0 failed, 0 skipped, 3 flaky"),
        ("lint failed", good + flaky(1) + [{**_test("lint", "failed", phase="lint"), "is_job": True}], ["1 failed"],
         "1000 passed, 1 failed, 0 skipped, 1 flaky"),
        ("nothing ran", [_test("sdk/test_c.py::x", "skipped")], ["no test passed"],
         "0 passed, 0 failed, 1 skipped, 0 flaky"),
    ]
    wrong = [f"{name}: expected {reasons}, {line}; got {verdict(tests)}, {sum_line(tests)}"
             for name, tests, reasons, line in cases if (verdict(tests), sum_line(tests)) != (reasons, line)]
    if not verdict(good + flaky(1), flaky_is_failure=True):
        wrong.append("MILLIBOX_FLAKY=fail: a flaky test is no failure")
    reruns = [
        (_test("sdk/x", "failed"), True), (_test("sdk/x", "failed", ["failed"]), True),
        (_test("sdk/x", "failed", ["passed"]), False), (_test("sdk/x", "failed", ["failed", "failed"]), False),
        (_test("fault/x", "failed", ["passed", "passed"]), True), (_test("fault/x", "failed", ["failed"]), False),
        (_test("fault/x", "failed", ["passed"] * 3), False), ({**_test("lint", "failed"), "is_job": True}, False),
    ]
    wrong += [f"may_run_again({test['id']} {test['again']}): expected {expected}" for test, expected in reruns
              if may_run_again(test) != expected]
    return len(cases) + 1 + len(reruns), wrong
