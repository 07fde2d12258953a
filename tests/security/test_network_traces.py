# SPDX-License-Identifier: Apache-2.0
"""NET-1, LC-4: a network namespace may be reused; the next box must find no trace of the previous one."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")

# More than the pool keeps, so that a returned namespace is among the following.
BOXES_AFTER = 40

LOOK = """
import json
seen = {}
for name in ('dev', 'snmp', 'netstat', 'snmp6', 'ip6_flowlabel', 'rt6_stats', 'igmp', 'igmp6', 'unix', 'tcp', 'udp'):
    try:
        seen[name] = open('/proc/self/net/' + name).read()
    except FileNotFoundError:
        seen[name] = None
names = [line.split()[-1] for line in (seen.pop('unix') or '').splitlines() if line.endswith(NAME)]
print(json.dumps([names, seen]))
"""

PACKET = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); s.sendto(b'x' * 99, s.getsockname()); s.recv(99)
"""
CONNECTION = """
import socket
s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); p, _ = s.accept(); p.close(); c.close()
"""
REFUSED = """
import socket
try:
    socket.create_connection(('192.0.2.1', 80), 1)
except OSError:
    pass
"""
FLOW_LABEL = """
import socket, struct
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(41, 32, socket.inet_pton(socket.AF_INET6, '::1') + struct.pack('!I', 0x12345) + struct.pack('=BBHHHI', 0, 255, 1, 0, 60, 0))
"""
# A listening socket in flight in a message to itself: no process has it, and it lives until the kernel collects it.
IN_FLIGHT = """
import array, socket
s = socket.socket(socket.AF_UNIX); s.bind('\\0' + NAME); s.listen()
a, b = socket.socketpair()
a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [s.fileno(), a.fileno(), b.fileno()]))])
"""
# Sends nothing, but the kernel creates a route.
CONNECTED = """
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.connect(('::1', 9))
"""
USES = {"connected": CONNECTED, "packet": PACKET, "connection": CONNECTION, "refused": REFUSED, "flow_label": FLOW_LABEL, "in_flight": IN_FLIGHT}


def look(client, before=""):
    answer = client.python("NAME = 'left-behind'\n" + before + LOOK)
    assert answer["exit_code"] == 0, answer
    return json.loads(answer["stdout"])


@pytest.mark.parametrize("use", USES)
def test_the_next_box_finds_nothing(daemon, use):
    with daemon.client() as client:
        untouched = look(client)
        used = look(client, USES[use])
        assert used != untouched, "control: what was done can be seen where it was done"
        for _ in range(BOXES_AFTER):
            assert look(client) == untouched


JOINS = """
import errno, socket, struct
def attempt(*option):
    s = socket.socket(socket.AF_INET6 if option[0] == 41 else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.setsockopt(*option)
        print('done')
    except OSError as e:
        print(errno.errorcode[e.errno])
attempt(0, 35, socket.inet_aton('224.0.0.251') + socket.inet_aton('127.0.0.1'))
attempt(41, 20, socket.inet_pton(socket.AF_INET6, 'ff01::fb') + struct.pack('=i', 1))
"""


def test_no_group_is_joined(daemon):
    """The kernel reports it some time after the close, when the namespace may already be another box's."""
    with daemon.client() as client:
        assert client.python(JOINS)["stdout"].split() == ["ENODEV", "ENODEV"]


def test_control_groups_can_be_joined_outside():
    outside = subprocess.run([sys.executable, "-c", JOINS], capture_output=True, text=True, check=True)
    assert outside.stdout.split()[0] == "done"


LINGER = """
import socket, struct
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 2))
print(*struct.unpack('ii', s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)))
"""


def test_closing_a_socket_blocks_no_other_box(daemon):
    """A socket in flight is closed by a kernel thread that all boxes share."""
    with daemon.client() as client:
        assert client.python(LINGER)["stdout"].split() == ["0", "0"]


def test_control_a_close_can_block_outside():
    outside = subprocess.run([sys.executable, "-c", LINGER], capture_output=True, text=True, check=True)
    assert outside.stdout.split() == ["1", "2"]
