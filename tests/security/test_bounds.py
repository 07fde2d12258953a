# SPDX-License-Identifier: Apache-2.0
"""OUT-1, FA-3, XT-2: what a program or a tenant makes large does not make the daemon large or slow."""

import pytest

from support.sessions import Session

# Names of control characters grow sixfold as JSON, those of links are told as well.
LONG_NAMES = """
import os
part = PART * 250
here = os.open('.', os.O_RDONLY | os.O_DIRECTORY)
for level in range(14):
    os.mkdir(part, dir_fd=here)
    here = os.open(part, os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
for i in range(COUNT):
    os.symlink('\\x02' * 4000, '\\x03' * 240 + f'{i:05}', dir_fd=here)
print(len(os.listdir(here)))
"""


@pytest.fixture
def box(client):
    session = Session(client, mode="persistent")
    yield session
    assert session.delete().status == 200


def peak_bytes(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))


@pytest.mark.parametrize("part, query", [("\x01", "?recursive=true&limit=10000"),
                                         ("p", "?limit=10000&path=" + "/".join(["p" * 250] * 14))])
def test_a_listing_of_long_names_is_cut(daemon, box, part, query):
    code = LONG_NAMES.replace("COUNT", "6000").replace("PART", repr(part))
    assert box.run(code)["stdout"] == "6000\n"
    before = peak_bytes(daemon.pid)
    answer = box.client.get(f"{box.path}/files{query}")
    assert answer.status == 200 and answer.json["truncated"] is True, answer.status
    assert answer.json["count"] > 100  # the control: it is cut, not refused
    assert len(answer.body) < 100 << 20
    assert peak_bytes(daemon.pid) - before < 200 << 20
