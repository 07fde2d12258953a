# SPDX-License-Identifier: Apache-2.0
"""OUT-1, FA-3, XT-2: large results of a program or tenant do not make the daemon large or slow."""

import os

import pytest

from support import oci
from support.sessions import V1, Session

pytestmark = pytest.mark.phases("system", "pool")

# Control characters grow sixfold in JSON; link targets are reported as well.
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


def cpu_seconds(pid):
    """CPU time of a process, which other load on the host does not lengthen."""
    with open(f"/proc/{pid}/stat") as stat:
        user, system = stat.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("part, query", [("\x01", "?recursive=true&limit=10000"),
                                         ("p", "?limit=10000&path=" + "/".join(["p" * 250] * 14))])
def test_a_listing_of_long_names_is_cut(daemon, box, part, query):
    code = LONG_NAMES.replace("COUNT", "6000").replace("PART", repr(part))
    assert box.run(code)["stdout"] == "6000\n"
    before = peak_bytes(daemon.pid)
    answer = box.client.get(f"{box.path}/files{query}")
    assert answer.status == 200 and answer.json["truncated"] is True, answer.status
    assert answer.json["count"] > 100  # control: truncated, not refused
    assert len(answer.body) < 100 << 20
    assert peak_bytes(daemon.pid) - before < 200 << 20


@pytest.mark.alone
def test_scanning_a_large_image_blocks_no_other_caller(daemon):
    """Many Python directories with many packages each; the daemon looks up a missing one."""
    many = [oci.entry(f"big/site-packages/p{i}") for i in range(5000)]
    links = [oci.symlink(f"usr/lib/python3.{i}", "../../big") for i in range(5000)]
    image = oci.Image([[*oci.busybox_layer(), *many, *links]]).bytes()
    with daemon.client() as client:
        made = client.request("POST", f"{V1}/templates/import?id=long", body=image,
                              headers={"Content-Type": "application/x-tar"})
        assert made.status == 201, made
        before = cpu_seconds(daemon.pid)
        changed = client.request("PUT", f"{V1}/templates/long", body=b'{"packages": ["nothing", "none"]}',
                                 headers={"Content-Type": "application/json"})
        assert changed.status == 400 and changed.json["field"] == "packages[0]", changed
        assert cpu_seconds(daemon.pid) - before < 3  # without a bound: 100 million names
        assert client.request("DELETE", f"{V1}/templates/long").status == 204
