# SPDX-License-Identifier: Apache-2.0
"""Leftovers of an earlier engine that cannot be removed yet."""

import os
import pathlib

import pytest
from support import host

pytestmark = [pytest.mark.phases("system", "pool", "user", "subid"), pytest.mark.alone]


#: Groups in groups that a start removes; deeper ones stay, as those whose processes do not die.
DEPTH = 8


@pytest.fixture
def leftover(make_daemon):
    """A stopped daemon, its instance, and where a group would be its leftover."""
    if not host.is_root():
        pytest.skip("needs root: only then there are groups")
    d = make_daemon().start()
    with d.client() as c:
        seen = c.shell("true")
    assert seen["exit_code"] == 0
    number = d.instance()
    homes = [p for p in host.CGROUP_ROOT.glob("*/millibox") if (p / number).is_dir()]
    homes += [p for p in [host.CGROUP_ROOT / "millibox"] if (p / number).is_dir()]
    assert d.stop() == 0
    return d, number, pathlib.Path(homes[0]) / number / "bleftover"


def start_until(done, d, make_daemon):
    """Start @d, then more, until @done(one of them). An engine takes the lowest free number, and others of the host may end at
    any time: those that start first then hold the lower numbers."""
    for _ in range(20):
        d.start()
        if done(d):
            return d
        d = make_daemon()
    raise AssertionError("no engine has tried the number")


@pytest.fixture
def stuck(leftover, make_daemon):
    """A group that cannot be swept."""
    d, number, group = leftover
    inner = group.joinpath(*["inner"] * (DEPTH + 1))
    inner.mkdir(parents=True)
    yield d, number
    os.rmdir(inner)
    start_until(lambda _: not group.exists(), make_daemon(), make_daemon)


def test_groups_in_groups_are_removed(leftover, make_daemon):
    d, number, group = leftover
    group.joinpath(*["inner"] * DEPTH).mkdir(parents=True)
    d = start_until(lambda d: d.instance() == number, d, make_daemon)
    assert not group.exists(), d.log()


def test_ids_in_use_are_not_reused(stuck, make_daemon):
    d, number = stuck
    d = start_until(lambda d: f"instance {number} is not empty" in d.log(), d, make_daemon)
    assert d.instance() != number
    with d.client() as c:
        assert c.shell("echo fine")["stdout"] == "fine\n"
