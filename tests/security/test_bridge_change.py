# SPDX-License-Identifier: Apache-2.0
"""What a change of a policy's ranges does to live boxes with network bridge beyond their next packet (NET-6)."""

import os
import signal
import socket

import pytest
from support import host, outside
from support.outside import OPENED, daemons, inside
from support.sessions import Session

pytestmark = [pytest.mark.phases("system"), pytest.mark.skipif(bool(outside.missing()), reason=str(outside.missing()))]

POLICIES = {
    "wide": "name: wide\nnetwork: {mode: bridge}\n",
    "kept": "name: kept\nnetwork: {mode: bridge}\n",
    "taken": "name: taken\nnetwork: {mode: bridge}\n",
    "plain": "name: plain\n",
}
NARROW = "name: taken\nnetwork: {mode: bridge, ranges: []}\n"
FEED = 7200
SUBSCRIBE = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.connect(("{OPENED}", {FEED}))
s.send(b"x")
"""
RECEIVE = """
try:
    print(s.recv(100).decode())
except OSError:
    print("nothing")
"""


def test_what_comes_in_on_an_open_connection_is_refused():
    with daemons() as (world, start):
        daemon = start(policies=POLICIES)
        with inside(world.world):
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            server.bind((OPENED, FEED))
        with server, daemon.client() as client:
            server.settimeout(host.HANG_S)
            addresses = []
            sessions = [Session(client, mode="persistent", policy=policy) for policy in ("kept", "taken")]
            for session in sessions:
                session.run(SUBSCRIBE)
                addresses.append(server.recvfrom(10)[1])

            def received():
                """By each session, right after the server has sent it something."""
                found = []
                for session, address in zip(sessions, addresses):
                    server.sendto(b"news", address)
                    found.append(session.run(RECEIVE)["stdout"])
                return found

            assert received() == ["news\n"] * 2, "control"
            (daemon.home / "policies" / "taken.yaml").write_text(NARROW)
            os.kill(daemon.pid, signal.SIGHUP)
            host.wait_until(lambda: received() == ["news\n", "nothing\n"], 5, "the feed of one session ended")


def test_boxes_lose_their_interfaces_when_the_bridge_hangs():
    """The sessions live on, and boxes without a network are made meanwhile."""
    with daemons() as (world, start):
        daemon = start(policies=POLICIES)
        bridge = daemon.helper_pid()
        with daemon.client() as client:
            sessions = [Session(client, mode="persistent", policy="taken") for _ in range(4)]
            for session in sessions:
                session.run("x = 41")
            assert len(world.links()) == 4, "control"
            os.kill(bridge, signal.SIGSTOP)
            try:
                (daemon.home / "policies" / "taken.yaml").write_text(NARROW)
                os.kill(daemon.pid, signal.SIGHUP)
                host.wait_until(lambda: world.links() == [], 15, lambda: f"interfaces gone: {world.links()}")
                assert [s.run("print(x + 1)")["stdout"] for s in sessions] == ["42\n"] * 4
                assert client.python("print(1)", policy="plain", network="none")["stdout"] == "1\n"
            finally:
                os.kill(bridge, signal.SIGCONT)
