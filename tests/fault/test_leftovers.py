# SPDX-License-Identifier: Apache-2.0
"""Leftovers of an earlier engine that cannot be removed yet."""

import os
import pathlib

import pytest
from support import host

pytestmark = [pytest.mark.phases("system", "pool", "user", "subid"), pytest.mark.alone]


@pytest.fixture
def stuck(make_daemon):
    """A group that looks like a leftover of a daemon's instance and cannot be swept."""
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
    # A group with a child group stays busy, like one whose processes do not die.
    inner = pathlib.Path(homes[0]) / number / "bleftover" / "inner"
    inner.mkdir(parents=True)
    yield d, number
    os.rmdir(inner)
    d.start()
    host.wait_until(lambda: not inner.parent.exists(), 10, "swept by a later start")
    d.stop()


def test_ids_in_use_are_not_reused(stuck):
    d, number = stuck
    d.start()
    assert d.instance() != number
    assert f"instance {number} is not empty" in d.log()
    with d.client() as c:
        assert c.shell("echo fine")["stdout"] == "fine\n"
    assert d.stop() == 0
