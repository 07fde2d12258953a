# SPDX-License-Identifier: Apache-2.0
"""Row 16: fresh JavaScript from a pool against bare node, and a line in a live JavaScript session."""

import json
import shutil
import time

import raw
from measure import Failure, command, summary, timed

LOG_42 = raw.execution("javascript", "console.log(42)")
ANSWER = b'"stdout":"42\\n"'
NODE = "/usr/bin/node"


def pool_is_full(connection):
    _, body = connection.exchange(raw.request("GET", "/api/v1/pools"))
    return any(pool["language"] == "javascript" and pool["ready"] > 0 for pool in json.loads(body)["pools"])


def wait_for_pool(connection, seconds=20):
    end = time.monotonic() + seconds
    while not pool_is_full(connection):
        if time.monotonic() > end:
            raise Failure("no pool of JavaScript boxes was made")
        time.sleep(0.01)


def row_fresh(address, rounds):
    """Each round starts both once. A box is requested when one is ready: a process of Node.js takes longer to start than
    a program to run, so that callers without pauses would measure the refilling."""
    connection = raw.Connection(address)
    bare = command([NODE, "-e", "console.log(42)"], "42\n")
    samples = {"millibox": [], "bare node": []}
    for _ in range(5):
        connection.expect(LOG_42, ANSWER)
    for _ in range(rounds):
        wait_for_pool(connection)
        samples["millibox"].append(connection.expect(LOG_42, ANSWER))
        samples["bare node"].append(timed(bare))
    connection.close()
    return {name: summary(values) for name, values in samples.items()}


def row_line(address, rounds, warm=50):
    connection = raw.Connection(address)
    status, body = connection.exchange(raw.request("POST", "/api/v1/sessions", {"mode": "persistent", "language": "javascript"}))
    if status not in (200, 201):
        raise Failure(f"session: {status} {body[:300]!r}")
    path = "/api/v1/sessions/" + json.loads(body)["session_id"]
    connection.expect(raw.request("POST", path + "/execute", {"code": "let x = 0", "wait": True}), b'"status":"success"')
    data = raw.request("POST", path + "/execute", {"code": "x += 1", "wait": True})
    samples = [connection.expect(data, b'"result":%d' % i) for i in range(1, rounds + warm + 1)][warm:]
    connection.exchange(raw.request("DELETE", path))
    connection.close()
    return summary(samples)


def row_javascript(pooled, rounds=60, lines=1000):
    """None where there is no Node.js."""
    if not shutil.which(NODE):
        return None
    return {"fresh": row_fresh(pooled.socket, rounds), "line": row_line(pooled.socket, lines)}
