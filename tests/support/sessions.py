# SPDX-License-Identifier: Apache-2.0
"""Sessions and the events of their executions."""

import contextlib
import json

import pytest

from support import host
from support.client import Client

V1 = "/api/v1"
#: A program that waits to be interrupted. A signal right before a long call would not end that call: its handler runs after it.
NAPS = "import time\nwhile True: time.sleep(0.05)"
needs_freezer = pytest.mark.skipif(not host.is_root(), reason="an ordinary user has no freezer")


class Session:
    """One session and the connection it is used by."""

    def __init__(self, client, **fields):
        self.client = client
        answer = client.post(f"{V1}/sessions", fields)
        assert answer.status in (200, 201), answer
        self.created = answer
        self.id = answer.json["session_id"]
        self.path = f"{V1}/sessions/{self.id}"

    def run(self, code, **fields):
        """Run code and wait for its result, with all that it says of its isolation."""
        answer = self.client.post(f"{self.path}/execute", {"code": code, "wait": True, "receipt": "plain", **fields})
        assert answer.status == 200, answer
        return answer.json

    def start(self, code, **fields):
        """Start code. Return: the execution's id."""
        answer = self.client.post(f"{self.path}/execute", {"code": code, "receipt": "plain", **fields})
        assert answer.status == 200, answer
        assert answer.json["status"] == "pending"
        return answer.json["execution_id"]

    def act(self, verb, status=200):
        answer = self.client.post(f"{self.path}/{verb}", {})
        assert answer.status == status, answer
        return answer.json

    def info(self):
        return self.client.get(self.path).json

    def wait_for(self, *states, seconds=10):
        host.wait_until(lambda: self.info()["state"] in states, seconds, f"{states}: {self.info()}")

    def result(self, execution_id, seconds=20):
        """The result of an execution once it has ended."""

        def ended():
            answer = self.client.get(f"{V1}/executions/{execution_id}/result")
            assert answer.status in (200, 409), answer
            return answer.json if answer.status == 200 else None

        return host.wait_until(ended, seconds, f"end of {execution_id}")

    def wait_for_output(self, execution_id, text, seconds=10):
        """Return once the running execution has printed @text."""
        shown = ""
        with contextlib.closing(Client(self.client.address)) as other:
            for event in events(other, execution_id):
                shown += event["data"] if event["event"] == "stdout" else ""
                if text in shown:
                    return
        raise AssertionError(f"{execution_id} ended without {text!r}: {shown!r}")

    def delete(self):
        return self.client.request("DELETE", self.path)


def events(client, execution_id, after=None, accept="application/x-ndjson"):
    """Events of an execution, as objects."""
    query = "" if after is None else f"?after={after}"
    return read_events(client, "GET", f"{V1}/executions/{execution_id}/events{query}", None, accept)


def read_events(client, method, path, body, accept):
    headers = {"Accept": accept}
    if body is not None:
        headers["Content-Type"] = "application/json"
        body = json.dumps(body).encode()
    client.connection.request(method, path, body=body, headers=headers)
    response = client.connection.getresponse()
    assert response.status == 200, response.read()
    assert response.headers["Content-Type"] == accept
    for line in response:
        line = line.decode().rstrip("\n")
        if accept == "text/event-stream" and line.startswith("data: "):
            yield json.loads(line[6:])
        elif accept != "text/event-stream" and line:
            yield json.loads(line)


def text_of(stream, name="stdout"):
    return "".join(event["data"] for event in stream if event["event"] == name)
