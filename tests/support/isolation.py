# SPDX-License-Identifier: Apache-2.0
"""Which isolation the daemons of a test run can have. Strict is the default of the daemon and of the tests; an ordinary
user who lacks a required layer asks for best-effort by name."""

import functools
import json
import os
import subprocess

from support.sanitizer import BUILD


@functools.cache
def doctor():
    """What 'millibox doctor' reports about this host and user."""
    done = subprocess.run([str(BUILD / "millibox"), "doctor", "--json"], capture_output=True, timeout=60,
                          env={"PATH": "/usr/bin:/bin", "HOME": "/"})  # fmt: skip
    return json.loads(done.stdout)


@functools.cache
def is_strict():
    """Root has every layer, or its tests fail."""
    return os.geteuid() == 0 or doctor()["strict"]


def mode():
    return "strict" if is_strict() else "best-effort"


def environment():
    """Variables of a daemon that is to run programs."""
    return {} if is_strict() else {"MILLIBOX_ISOLATION": "best-effort"}
