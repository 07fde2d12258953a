# SPDX-License-Identifier: Apache-2.0
"""The compiler of the seccomp table refuses entries that make no sense."""

import errno
import os
import pathlib
import re
import subprocess

import pytest

COMPILE = os.environ["SECCOMP_COMPILE"]
TABLE = pathlib.Path(__file__).parents[3] / "src/guest/seccomp/payload.txt"


def compile_table(tmp_path, text):
    table, out = tmp_path / "table", tmp_path / "out.c"
    table.write_text(text)
    done = subprocess.run([COMPILE, table, out], capture_output=True, text=True)
    return done, out


@pytest.mark.parametrize("line, why", [
    ("allow read", "without a reason"),
    ("allow read --", "without a reason"),
    ("permit read -- typo", "unknown action"),
    ("allow reed -- typo", "unknown call"),
    ("allow newcall=600 -- beyond", "beyond the table"),
    ("error:ENOPE read -- typo", "neither a known name nor a number"),
    ("allow read int6=0 -- no such argument", "names no argument"),
    ("allow read arg0=0 -- no such kind", "neither intN nor longN"),
    ("allow read int0 -- no value", "has no '='"),
    ("allow read int0=0x100000000 -- too wide", "does not fit an int"),
    ("allow read int0&1=2 -- never", "can never hold"),
    ("allow read int0=08 -- not octal", "neither a known name nor a number"),
    ("allow read int0=1 int1=1 int2=1 int3=1 -- many", "more than 3 conditions"),
    ("allow read -- all\nrefuse read int0=1 -- hidden", "hides"),
    ("uncharged:ENOMEM read -- all\nuncharged:ENOSYS read -- hidden", "hides"),
    ("uncharged:ENOPE read -- typo", "neither a known name nor a number"),
    ("allow:ENOMEM read -- no errno", "unknown action"),
    ("allow -- what", "expected ACTION CALL"),
    ("allow " + "x" * 600 + " -- long", "line too long"),
])
def test_mistakes_in_the_table_stop_the_build(tmp_path, line, why):
    done, out = compile_table(tmp_path, line + "\n")
    assert done.returncode == 1 and why in done.stderr and not out.exists()


def test_every_rule_of_the_table_is_understood(tmp_path):
    done, out = compile_table(tmp_path, TABLE.read_text())
    assert done.returncode == 0, done.stderr
    assert out.read_text().count("static const struct sock_filter") == 5


ALLOW, NOTIFY = 0x7FFF0000, 0x7FC00000
ARCH = 0xC000003E
VMSPLICE, SETNS, IOCTL = 278, 308, 16


def err(number):
    return 0x50000 | number


class Filters:
    """The programs that were made of a table, and what they answer."""

    def __init__(self, tmp_path, text):
        done, out = compile_table(tmp_path, text)
        assert done.returncode == 0, done.stderr
        self.programs = {
            name: [tuple(int(word, 0) for word in line) for line in re.findall(r"{(\w+), (\w+), (\w+), (\w+)}", body)]
            for name, body in re.findall(r"sock_filter (\w+)\[\] = {(.*?)};", out.read_text(), re.S)}

    def ask(self, name, number, *args):
        words = [number, ARCH, 0, 0] + [half for a in [*args, *[0] * 6][:6] for half in (a & 0xFFFFFFFF, a >> 32)]
        acc = at = 0
        while True:
            code, yes, no, k = self.programs[name][at]
            at += 1
            if code == 0x20:
                acc = words[k // 4]
            elif code == 0x54:
                acc &= k
            elif code == 0x05:
                at += k
            elif code == 0x06:
                return k
            else:
                at += yes if (acc == k if code == 0x15 else acc >= k) else no


def test_rules_of_the_agent_reach_only_its_own_filter(tmp_path):
    made = Filters(tmp_path, "agent vmsplice -- test\n")
    assert made.ask("payload", VMSPLICE) == made.ask("payload_quiet", VMSPLICE) == err(errno.ENOSYS)
    assert made.ask("agent", VMSPLICE) == ALLOW
    assert made.ask("zygote", VMSPLICE) == ALLOW  # zygotes have what the agent has


def test_rules_of_zygotes_reach_only_their_own_filter(tmp_path):
    made = Filters(tmp_path, "zygote setns -- test\nrefuse setns -- test\n")
    assert made.ask("payload", SETNS) == made.ask("agent", SETNS) == NOTIFY
    assert made.ask("payload_quiet", SETNS) == err(errno.EPERM)
    assert made.ask("zygote", SETNS) == ALLOW


def test_the_payloads_filter_leaves_to_those_beneath_what_they_answer_alike(tmp_path):
    table = "agent ioctl int1=5 -- 1\nallow ioctl int1=6 -- 2\nrefuse ioctl int1=7 -- 3\nerror:ENOTTY ioctl -- 4\n"
    made = Filters(tmp_path, table)
    # (what the agent may, what both may, refused, an errno of both)
    assert [made.ask("payload", IOCTL, 0, n) for n in (5, 6, 7, 8)] == [err(errno.ENOTTY), ALLOW, NOTIFY, ALLOW]
    assert [made.ask("agent", IOCTL, 0, n) for n in (5, 6, 7, 8)] == [ALLOW, ALLOW, NOTIFY, err(errno.ENOTTY)]


def test_the_payloads_filter_has_all_rules_where_one_is_not_enough(tmp_path):
    """Whether the agent's call is the payload's too depends on an argument of which its rule says nothing."""
    made = Filters(tmp_path, "agent ioctl int1=5 -- 1\nallow ioctl int2=1 -- 2\nerror:ENOTTY ioctl -- 3\n")
    assert [made.ask("payload", IOCTL, 0, n, m) for n in (5, 6) for m in (0, 1)] == [err(errno.ENOTTY), ALLOW] * 2


def test_an_errno_of_the_payloads_own_reaches_no_other_number(tmp_path):
    """Of two errnos the upper filter's counts: next to such a call there is nothing to leave to those beneath."""
    made = Filters(tmp_path, "allow read -- 1\nagent sync -- 2\nignore sync -- 3\n")
    assert [made.ask("payload", n) for n in (161, 162, 163, 425, 0x40000000)] == [ALLOW, err(0), ALLOW, ALLOW, ALLOW]
    assert [made.ask("agent", n) for n in (162, 163, 425)] == [ALLOW, *[err(errno.ENOSYS)] * 2]


def test_an_errno_is_not_left_to_those_beneath_where_another_filter_is_between(tmp_path):
    made = Filters(tmp_path, "uncharged:ENOMEM ioctl int1=5 -- 1\nerror:ENOTTY ioctl -- 2\nallow read -- 3\n")
    assert made.ask("payload", IOCTL, 0, 5) == err(errno.ENOTTY)


def test_a_rule_that_changes_nothing_still_hides_what_comes_after_it(tmp_path):
    made = Filters(tmp_path, "allow ioctl int1=6 -- 1\nrefuse ioctl int2=1 -- 2\nallow ioctl -- 3\n")
    for name in ("payload", "agent", "zygote"):
        assert [made.ask(name, IOCTL, 0, n, m) for n in (6, 7) for m in (0, 1)] == [ALLOW, ALLOW, ALLOW, NOTIFY]


def test_rules_for_uncharged_boxes_reach_only_their_own_filter(tmp_path):
    made = compile_table(tmp_path, "uncharged:ENOMEM mmap int3=33 -- test\nallow mmap -- test\n")[1].read_text()
    others, uncharged = made.split(" uncharged[]")
    assert "0x0005000c" not in others and others.count("0x7fff0000") == 4
    assert uncharged.count("0x0005000c") == 1
