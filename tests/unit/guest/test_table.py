# SPDX-License-Identifier: Apache-2.0
"""The compiler of the seccomp table refuses what nobody can have meant."""

import os
import pathlib
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


def test_rules_of_the_agent_reach_only_its_own_filter(tmp_path):
    made = compile_table(tmp_path, "agent vmsplice -- test\n")[1].read_text()
    assert "0x7fff0000" not in made.split(" agent[]")[0]  # SECCOMP_RET_ALLOW
    assert made.split(" uncharged[]")[0].count("0x7fff0000") == 2  # zygotes have what the agent has


def test_rules_of_zygotes_reach_only_their_own_filter(tmp_path):
    made = compile_table(tmp_path, "zygote setns -- test\nrefuse setns -- test\n")[1].read_text()
    assert "0x7fff0000" not in made.split(" zygote[]")[0]
    assert made.split(" zygote[]")[1].split(" uncharged[]")[0].count("0x7fff0000") == 1


def test_rules_for_uncharged_boxes_reach_only_their_own_filter(tmp_path):
    made = compile_table(tmp_path, "uncharged:ENOMEM mmap int3=33 -- test\nallow mmap -- test\n")[1].read_text()
    others, uncharged = made.split(" uncharged[]")
    assert "0x0005000c" not in others and others.count("0x7fff0000") == 4
    assert uncharged.count("0x0005000c") == 1
