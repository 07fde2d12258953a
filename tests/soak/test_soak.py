# SPDX-License-Identifier: Apache-2.0
"""A short soak for every test run; 'make soak', which is part of 'make nightly', runs for ten minutes."""

import os

import pytest
from soak import soak

pytestmark = [pytest.mark.phases("system", "user"), pytest.mark.alone]


def test_invariants_hold_under_use_and_kills(capsys):
    status = soak.main(["--seconds", os.environ.get("SOAK_SECONDS", "12"), "--clients", "3"])
    assert status == 0, capsys.readouterr().out


def test_invariants_hold_under_use(capsys):
    status = soak.main(["--seconds", "6", "--clients", "3", "--no-kills"])
    assert status == 0, capsys.readouterr().out
