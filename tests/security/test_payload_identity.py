# SPDX-License-Identifier: Apache-2.0
"""ID-1..6, NS-1, NS-3: who the payload is, seen from inside and from the host."""

import json
import os
import signal
import threading

import pytest
from support import host

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")

STATUS = """
import json, os, resource
s = dict(l.split(':\\t',1) for l in open('/proc/self/status').read().splitlines() if ':\\t' in l)
print(json.dumps({
 'uid': os.getresuid(), 'gid': os.getresgid(), 'groups': os.getgroups(), 'status': s,
 'limits': {n: resource.getrlimit(getattr(resource, 'RLIMIT_' + n)) for n in
   ('CORE','NOFILE','NPROC','FSIZE','MEMLOCK','MSGQUEUE','SIGPENDING','RTPRIO','NICE')},
 'ns': {n: os.readlink('/proc/self/ns/' + n) for n in ('user','pid','mnt','net','ipc','uts','cgroup','time')},
 'uid_map': open('/proc/self/uid_map').read().split(), 'setgroups': open('/proc/self/setgroups').read().strip(),
 'pid': os.getpid(), 'ppid': os.getppid(), 'host': os.uname().nodename, 'uptime': float(open('/proc/uptime').read().split()[0]),
 'cgroup': open('/proc/self/cgroup').read(),
}))
"""


@pytest.fixture(scope="module")
def me(daemon):
    with daemon.client() as c:
        r = c.python(STATUS)
        assert r["exit_code"] == 0, r
        return json.loads(r["stdout"])


@pytest.mark.smoke
def test_payload_has_no_id_of_the_host(me):
    assert me["uid"] == [1000] * 3 and me["gid"] == [1000] * 3


@pytest.mark.smoke
def test_all_five_capability_sets_are_empty(me):
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert me["status"][name].strip("0") == "", name


def test_control_capabilities_exist_outside():
    if not host.is_root():
        pytest.skip("needs root: an ordinary user has no capabilities to lose")
    assert open("/proc/self/status").read().split("CapBnd:\t")[1].split()[0].strip("0") != ""


def test_no_new_privileges_and_filter_are_on(me):
    assert me["status"]["NoNewPrivs"] == "1"
    assert me["status"]["Seccomp"] == "2"


def test_no_supplementary_groups(me):
    assert [g for g in me["groups"] if g != 1000] == []
    assert me["setgroups"] == "deny"


def test_hard_limits_are_as_promised(me):
    limits = {k: tuple(v) for k, v in me["limits"].items()}
    assert limits["CORE"] == (1, 1)  # no dump, also where a program handles them
    assert limits["NOFILE"][1] <= 1024
    assert limits["RTPRIO"] == (0, 0) and limits["NICE"][1] in (0, 20)
    assert limits["MSGQUEUE"][1] <= 65536
    assert 0 < limits["SIGPENDING"][1] <= 8192
    assert limits["MEMLOCK"][1] <= 8 << 20
    assert 0 < limits["FSIZE"][1] <= 1 << 30
    assert 0 < limits["NPROC"][1] < 1 << 22  # -1: no limit


def test_every_namespace_is_its_own(me):
    for name, link in me["ns"].items():
        assert link != os.readlink(f"/proc/self/ns/{name}"), name


def test_hostname_and_uptime_reveal_nothing(me):
    assert me["host"] != os.uname().nodename
    assert me["uptime"] < float(open("/proc/uptime").read().split()[0]) or me["uptime"] < 60


def test_own_group_is_the_root_of_what_it_sees(me):
    for line in me["cgroup"].splitlines():
        assert line.split(":", 2)[2] == "/", line


def test_two_boxes_at_once_have_two_host_ids(daemon):
    if not host.is_root():
        pytest.skip("needs root: only then boxes have host ids of their own")
    threads = [threading.Thread(target=lambda: _run(daemon, "sleep 600", timeout=600)) for _ in range(2)]
    for t in threads:
        t.start()
    pids = host.wait_until(lambda: (p := [p for p in daemon.box_pids() if host.comm(p) == "sleep"]) and len(p) == 2 and p, 10, "two run")
    seen = {host.ids(p) for p in pids}
    # Read from the host, the second column is of host ids.
    mapped = [int(word) for p in pids for word in open(f"/proc/{p}/uid_map").read().split()[1::3]]
    for p in pids:
        os.kill(p, signal.SIGKILL)
    for t in threads:
        t.join()
    assert len(seen) == 2
    assert all(uid >= 1879048192 and gid >= 1879048192 for uid, gid in seen)
    assert mapped and min(mapped) >= 1879048192, mapped


def _run(daemon, code, **fields):
    with daemon.client() as c:
        c.shell(code, **fields)


def test_set_uid_programs_have_no_effect(client):
    r = client.shell("cp /usr/bin/id ./id 2>/dev/null; chmod u+s ./id; ./id -u; for f in /usr/bin/su /usr/bin/mount; do test -u $f && echo suid; done; su -c id root </dev/null 2>&1 | grep -c uid=0; true")
    lines = r["stdout"].split()
    assert lines[0] == "1000"
    assert lines[-1] == "0"


def test_no_nested_namespaces_by_limit_too(client):
    """NS-2 twice: the filter refuses, and the namespace's own limit is zero."""
    r = client.shell("cat /proc/sys/user/max_user_namespaces; unshare -U true 2>&1; echo $?")
    assert r["stdout"].splitlines()[0] == "0"
    assert r["stdout"].splitlines()[-1] != "0"
