# SPDX-License-Identifier: Apache-2.0
"""Daemons with less room than a test needs at once."""

import contextlib
import json
import socket

from support import host

#: Less room than the callers at once need: for connections, also with the 32 that are kept for a moment, in the queue, and by the rate.
CROWDED = """
http: {max_connections: 8, max_connections_per_peer: 4, max_connections_per_local_peer: 4}
admission: {max_queued: 2, max_running: 2}
quota: {requests_per_second: 200, burst: 20}
"""
#: Room for one program, and none to wait.
FULL = "admission: {max_queued: 0, max_running: 1}\n"


@contextlib.contextmanager
def busy(daemon):
    """A program fills a daemon with the settings FULL; leaving the block ends it."""
    body = json.dumps({"language": "shell", "code": "sleep 300", "timeout": 300}).encode()
    with socket.socket(socket.AF_UNIX) as caller, contextlib.closing(daemon.client()) as client:
        caller.connect(daemon.socket)
        caller.sendall(b"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        host.wait_until(lambda: client.get("/readyz").json["running"] == 1, host.HANG_S, "the program runs")
        yield
