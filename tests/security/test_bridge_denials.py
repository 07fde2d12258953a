# SPDX-License-Identifier: Apache-2.0
"""What boxes with network bridge may not reach is in denials[], with what would allow it, and only in those of the box that
tried. The host and the outside world are network namespaces of the test's own."""

import errno
import signal

import pytest
from support import host, outside
from support.outside import BOX_GATEWAY, METADATA, OPENED, OTHER, OWN, PORT, PRIVATE, PUBLIC, daemons
from support.sessions import Session

pytestmark = [pytest.mark.phases("system"), pytest.mark.skipif(bool(outside.missing()), reason=str(outside.missing()))]

CONNECT = """
import socket
for address in ADDRESSES:
    print(socket.socket().connect_ex((address, PORT)))
"""
OWN_ADDRESS = """
import fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print(socket.inet_ntoa(fcntl.ioctl(s, 0x8915, struct.pack("256s", b"eth0"))[20:24]))
"""
DATAGRAM = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("ADDRESS", PORT))
s.send(b"x")
try:
    s.settimeout(10)
    print(s.recv(100))
except OSError as e:
    print(e.errno)
"""


@pytest.fixture(scope="module")
def pair():
    with daemons() as (world, start):
        yield world, start()


@pytest.fixture
def net(pair):
    return pair[1]


def connect(*addresses):
    return CONNECT.replace("ADDRESSES", repr(addresses)).replace("PORT", str(PORT))


def ask(daemon, code, **more):
    answer = daemon.execute(code, **more)
    assert answer.status == 200 and answer.json["exit_code"] == 0, answer
    return answer.json


def rows(result):
    return [(d["kind"], d["what"], d["rule"], d["errno"], d["count"]) for d in result["denials"]]


def row(address, rule, count=1):
    return ("network", f"{address}:{PORT}", rule, "EHOSTUNREACH", count)


def test_a_refused_destination_is_a_denial_and_an_allowed_one_is_none(net):
    result = ask(net, connect(PUBLIC, OPENED))
    assert result["stdout"].split() == ["0", "0"] and result["denials"] == [], "control"
    result = ask(net, connect(PUBLIC, PRIVATE, OPENED, PRIVATE, OTHER))
    refused = str(errno.EHOSTUNREACH)
    assert result["stdout"].split() == ["0", refused, "0", refused, refused]
    assert rows(result) == [row(PRIVATE, "bridge.allow", 2), row(OTHER, "bridge.allow")]
    first = result["denials"][0]
    assert first["detail"] == "TCP" and "shared" not in first
    assert first["remedy"] == {"text": f'Add "{PRIVATE}" to bridge.allow of the settings.', "settings": {"bridge.allow": [PRIVATE]}}
    result = ask(net, DATAGRAM.replace("ADDRESS", PRIVATE).replace("PORT", str(PORT)))
    assert result["stdout"].strip() == refused
    assert rows(result) == [row(PRIVATE, "bridge.allow")] and result["denials"][0]["detail"] == "UDP"


def test_what_nothing_opens_has_a_reason_and_no_change(net):
    with net.client() as client:
        other = Session(client, language="python", mode="persistent")
        refused = (METADATA, OWN, BOX_GATEWAY, other.run(OWN_ADDRESS)["stdout"].strip())
        result = ask(net, connect(*refused))
        assert other.run("1")["denials"] == []
        other.delete()
    assert rows(result) == [row(address, "network.address") for address in refused]
    assert all(list(d["remedy"]) == ["text"] for d in result["denials"])
    texts = [d["remedy"]["text"] for d in result["denials"]]
    assert texts[0] == "No setting opens this address." and "does not reach the host" in texts[1] == texts[2]
    assert texts[3] == "Boxes do not reach each other."


def test_a_run_that_is_stopped_has_them_too(net):
    result = net.execute(connect(PRIVATE) + "import time\ntime.sleep(60)", timeout=3).json
    assert result["status"] == "timeout" and rows(result)[0] == row(PRIVATE, "bridge.allow"), result


def test_the_remedy_of_a_narrow_policy_allows_it():
    def policy(name, ranges):
        return f"name: {name}\nnetwork: {{mode: bridge, ranges: [{ranges}]}}\n"

    with daemons() as (_, start):
        daemon = start(policies={"narrow": policy("narrow", ""), "wide": policy("wide", "10.2.0.0/16")})
        result = ask(daemon, connect(OPENED, PRIVATE))
        assert rows(result) == [row(OPENED, "network.ranges"), row(PRIVATE, "bridge.allow")]
        remedy = result["denials"][0]["remedy"]
        assert remedy == {"text": 'Add "10.2.0.0/16" to network.ranges of policy narrow.',
                          "policy": {"network": {"ranges": ["10.2.0.0/16"]}}, "policies": ["narrow"]}  # fmt: skip
        assert result["denials"][1]["remedy"]["settings"] == {"bridge.allow": [PRIVATE]}
        assert result["denials"][1]["remedy"]["policy"] == {"network": {"ranges": [PRIVATE]}}
        (daemon.home / "policies" / "narrow.yaml").write_text(policy("narrow", *remedy["policy"]["network"]["ranges"]))
        daemon.process.send_signal(signal.SIGHUP)
        host.wait_until(lambda: ask(daemon, connect(OPENED))["denials"] == [], 10, "the remedy applied")


def test_sessions_have_each_their_own(net):
    with net.client() as client:
        sessions = [Session(client, language="python", mode="persistent") for _ in range(2)]
        first, second = sessions
        assert rows(first.run(connect(PRIVATE))) == [row(PRIVATE, "bridge.allow")]
        assert second.run(connect(PUBLIC))["denials"] == []
        assert first.run(connect(PUBLIC))["denials"] == [], "the earlier run has it"
        assert rows(second.run(connect(OTHER, OTHER))) == [row(OTHER, "bridge.allow", 2)]
        result = first.run(connect(METADATA) + "raise SystemExit(3)")
        assert result["exit_code"] == 3 and result["why"][1:] == [
            f"Rule network.address refused {METADATA}:{PORT} (TCP) with EHOSTUNREACH, 1 time.", "No setting opens this address."], result  # fmt: skip
        assert client.get(f"/api/v1/executions/{result['execution_id']}/why").json["why"] == result["why"]
        for session in sessions:
            session.delete()


#: As many refused destinations as it can, without waiting for answers.
FLOOD = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end, n = time.monotonic() + 2, 0
while time.monotonic() < end:
    try:
        s.sendto(b"x", (f"10.1.{n >> 8 & 255}.{n & 255}", 1 + n % 60000))
    except OSError:
        pass  # a refusal of an earlier one
    n += 1
print(n)
"""


def test_a_flood_is_bounded_and_takes_nothing_from_others(net):
    with net.client() as client:
        flooding = Session(client, language="python", mode="persistent")
        beside = flooding.start(FLOOD)
        for _ in range(5):
            assert rows(ask(net, connect(PRIVATE))) == [row(PRIVATE, "bridge.allow")]
        result = flooding.result(beside)
        assert int(result["stdout"]) > 1000 and 0 < len(result["denials"]) <= 32, result
        assert {d["rule"] for d in result["denials"]} == {"bridge.allow"}
        flooding.delete()


def test_a_session_keeps_its_denials_when_the_daemon_is_killed():
    with daemons() as (_, start):
        daemon = start()
        with daemon.client() as client:
            session = Session(client, language="python", mode="persistent")
            assert rows(session.run(connect(PRIVATE))) == [row(PRIVATE, "bridge.allow")]
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            session.client = client
            assert session.run(connect(PUBLIC))["denials"] == [], "control"
            assert rows(session.run(connect(OTHER))) == [row(OTHER, "bridge.allow")]
