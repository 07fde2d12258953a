# SPDX-License-Identifier: Apache-2.0
"""The installed systemd unit."""

import re
import shutil
import subprocess

import pytest
from support.daemon import BUILD

pytestmark = pytest.mark.phases("system")

UNIT = BUILD / "deploy" / "systemd" / "milliboxd.service"


def test_systemd_accepts_the_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    # Neither the programs nor the manual page are installed.
    text = re.sub(r"ExecStart=\S+/milliboxd", f"ExecStart={BUILD}/milliboxd", UNIT.read_text())
    text = re.sub(r"Documentation=.*\n", "", text)
    unit = tmp_path / "milliboxd.service"
    unit.write_text(text)
    said = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    ours = [line for line in (said.stdout + said.stderr).splitlines() if "milliboxd" in line]
    assert not ours, ours
    broken = tmp_path / "broken.service"
    broken.write_text(text.replace("Type=notify", "Typ=notify").replace("KillMode=process", "KillMode=sometimes"))
    said = subprocess.run(["systemd-analyze", "verify", "--man=no", str(broken)], capture_output=True, text=True)
    assert "Typ" in said.stderr and "kill mode" in said.stderr


def exposure(unit):
    said = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)], capture_output=True, text=True
    )
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said.stdout)
    assert found, said
    return float(found.group(1))


def test_the_unit_drops_what_the_engine_does_not_need(tmp_path):
    """By systemd's own score, where 10 means no restrictions. An engine needs root, mounts and namespaces."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    bare = tmp_path / "bare.service"
    bare.write_text("[Service]\nExecStart=/bin/true\n")
    assert exposure(UNIT) < 7 < 9 < exposure(bare)


def test_a_killed_daemon_keeps_its_boxes():
    settings = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if "=" in line and line[0] != "#")
    assert settings["KillMode"] == "process" and settings["RuntimeDirectoryPreserve"] == "restart"
    assert settings["Restart"] == "always"
