# SPDX-License-Identifier: Apache-2.0
"""A tenant's values stay out of pooled boxes, which have no owner yet."""

import pytest

from support import host
from support.daemon import Daemon

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")

ON = {"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_POOLS_MAX": "16"}


@pytest.fixture
def pooled():
    before, host.POOLED = host.POOLED, True
    daemon = Daemon(env={**ON, "MILLIBOX_ZYGOTES_ENABLED": "false"}).start()
    yield daemon
    daemon.stop()
    daemon.remove()
    host.POOLED = before


def prepared(client):
    return {p["id"] for p in client.get("/api/v1/pools").json["pools"] if p["prepared"]}


def run(client, **body):
    answer = client.post("/api/v1/execute", {"language": "python", "receipt": "plain", **body})
    assert answer.status == 200, answer.json
    host.wait_until(lambda: are_filled(client.get("/api/v1/pools").json), 20, "pools rest")
    return answer.json


def are_filled(pools):
    """The daemon begins to make a box only some time after one was taken."""
    return pools["making"] == 0 and all(p["ready"] or not p["target"] for p in pools["pools"])


def test_no_box_waits_with_a_tenants_variables(pooled):
    with pooled.client() as client:
        run(client, code="1")
        usual = prepared(client)
        code = "import os\nprint(os.environ['SECRET'])"
        results = [run(client, code=code, env_vars={"SECRET": "s3cret"}) for _ in range(5)]
        assert {r["stdout"] for r in results} == {"s3cret\n"}
        assert prepared(client) == usual
        # An empty box of no tenant is used.
        assert results[-1]["isolation"]["pooled"]
        # Control: a shape without own values that is requested twice is pooled.
        for _ in range(3):
            run(client, code="1", resources={"memory": "96Mi"})
        assert len(prepared(client)) == len(usual) + 1


def test_no_box_waits_with_a_templates_variables(pooled):
    with pooled.client() as client:
        made = client.post("/api/v1/templates", {"id": "with-env", "name": "x", "image": "host", "env_vars": {"SECRET": "s3cret"}})
        assert made.status == 201, made.json
        run(client, code="1")
        usual = prepared(client)
        results = [run(client, code="import os\nprint(os.environ['SECRET'])", template_id="with-env") for _ in range(5)]
        assert {r["stdout"] for r in results} == {"s3cret\n"}
        assert prepared(client) == usual
