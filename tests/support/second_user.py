# SPDX-License-Identifier: Apache-2.0
"""Requests of another user of the host, who shares nothing with the daemon's. Only root can become somebody else."""

import json
import subprocess

from support.host import HANG_S

#: Neither a user of the host nor in the range of the boxes.
UID = 61987

#: Needs nothing but the standard library, and no file of the test run: the other user may not be able to read them.
_ASK = """
import http.client, json, socket, sys
address, requests, patience = json.loads(sys.argv[1])
def connect():
    if isinstance(address, str):
        connection = http.client.HTTPConnection("localhost", timeout=patience)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(patience)
        connection.sock.connect(address)
        return connection
    return http.client.HTTPConnection(*address, timeout=patience)
answers = []
for method, path, body, headers in requests:
    try:
        connection = connect()
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        answers.append([response.status, response.read().decode(errors="replace")])
        connection.close()
    except OSError as error:
        answers.append([0, type(error).__name__])
print(json.dumps(answers))
"""


def ask(address, requests, uid=UID, groups=()):
    """Send requests (method, path, body, headers), each over a connection of its own. Return: a status and a text for
    each; status 0 with the name of the exception if it could not be sent."""
    output = subprocess.run(
        ["/usr/bin/python3", "-I", "-c", _ASK, json.dumps([address, [list(r) for r in requests], HANG_S])],
        user=uid, group=uid, extra_groups=list(groups), cwd="/", env={}, check=True, capture_output=True, timeout=2 * HANG_S, text=True,
    ).stdout  # fmt: skip
    return [tuple(answer) for answer in json.loads(output)]
