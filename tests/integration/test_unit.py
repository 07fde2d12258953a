# SPDX-License-Identifier: Apache-2.0
"""The systemd unit that is installed."""

import re
import shutil
import subprocess

import pytest
from support.daemon import BUILD

UNIT = BUILD / "deploy" / "systemd" / "milliboxd.service"


def test_systemd_takes_it(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    # The programs are not installed; the page of the manual neither.
    text = re.sub(r"ExecStart=\S+/milliboxd", f"ExecStart={BUILD}/milliboxd", UNIT.read_text())
    text = re.sub(r"Documentation=.*\n", "", text)
    unit = tmp_path / "milliboxd.service"
    unit.write_text(text)
    said = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    ours = [line for line in (said.stdout + said.stderr).splitlines() if "milliboxd" in line]
    assert not ours, ours
    broken = tmp_path / "broken.service"
    broken.write_text(text.replace("Type=simple", "Typ=simple").replace("KillMode=process", "KillMode=sometimes"))
    said = subprocess.run(["systemd-analyze", "verify", "--man=no", str(broken)], capture_output=True, text=True)
    assert "Typ" in said.stderr and "kill mode" in said.stderr


def test_a_killed_daemon_keeps_its_boxes():
    settings = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if "=" in line and line[0] != "#")
    assert settings["KillMode"] == "process" and settings["RuntimeDirectoryPreserve"] == "restart"
    assert settings["Restart"] == "always"
