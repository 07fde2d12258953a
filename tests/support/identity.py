# SPDX-License-Identifier: Apache-2.0
"""Tenants and keys."""

from support.client import Client
from support.host import HANG_S

V1 = "/api/v1"


class KeyClient(Client):
    """A client that sends a key with every request."""

    def __init__(self, address, key, timeout=HANG_S):
        super().__init__(address, timeout=timeout)
        self.key = key

    def request(self, method, path, body=None, headers=None):
        headers = {"Authorization": f"Bearer {self.key}", **(headers or {})}
        return super().request(method, path, body=body, headers=headers)


def make_tenant(admin, name, **fields):
    answer = admin.post(f"{V1}/tenants", {"name": name, **fields})
    assert answer.status == 201, answer
    return answer.json


def make_key(admin, tenant, **fields):
    """The text of a new key."""
    answer = admin.post(f"{V1}/keys", {"tenant": tenant, **fields})
    assert answer.status == 201, answer
    return answer.json["key"]
