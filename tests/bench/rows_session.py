# SPDX-License-Identifier: Apache-2.0
"""Rows about live sessions: 5 and 8."""

import json
import os

import raw
import rows_cost
from measure import Failure, summary


class Sessions:
    """Some persistent Python sessions on one connection."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.connection = raw.Connection(daemon.socket)
        self.ids = []

    def grow(self, count):
        while len(self.ids) < count:
            status, body = self.connection.exchange(raw.request("POST", "/api/v1/sessions", {"mode": "persistent"}))
            if status not in (200, 201):
                raise Failure(f"session {len(self.ids)}: {status} {body[:300]!r}")
            self.ids.append(json.loads(body)["session_id"])
            self.connection.expect(self.line(self.ids[-1], "x = 0"), b'"status":"success"')

    @staticmethod
    def line(session_id, code):
        return raw.request("POST", f"/api/v1/sessions/{session_id}/execute", {"code": code, "wait": True})

    def count_up(self, which, rounds, warm=50):
        """x += 1, over and over, each answer checked. Return: ms of each after the first few."""
        data = self.line(self.ids[which], "x += 1\nx")
        self.connection.expect(self.line(self.ids[which], "x = 0"), b'"status":"success"')
        return [self.connection.expect(data, b'"result":%d' % i) for i in range(1, rounds + warm + 1)][warm:]

    def end(self):
        for session_id in self.ids:
            status, body = self.connection.exchange(raw.request("DELETE", f"/api/v1/sessions/{session_id}"))
            if status >= 300:
                raise Failure(f"delete {session_id}: {status} {body[:200]!r}")
        self.connection.close()
        self.daemon.settle(120)


def weight(daemon):
    """[boxes, their private MiB]"""
    boxes = rows_cost.boxes_of(daemon).values()
    return [len(boxes), round(sum(rows_cost.private_kib(p) for pids in boxes for p in pids) / 1024, 1)]


def row_session(daemon, rounds=1000, few=10, many=1000):
    sessions = Sessions(daemon)
    sessions.grow(few)
    first = sessions.count_up(few // 2, rounds)
    growth = []
    for count in (few, many // 4, many // 2, many):
        sessions.grow(count)
        if os.geteuid() == 0:  # only root can read it
            growth.append(weight(daemon))
    beside = sessions.count_up(many // 2, rounds)
    sessions.end()
    return {
        "few": few, "many": many, "growth": growth, "beside_few": summary(first) | {"samples": [round(s, 3) for s in first]},
        "beside_many": summary(beside), "ratio": round(summary(beside)["p50_ms"] / summary(first)["p50_ms"], 2),
    }  # fmt: skip
