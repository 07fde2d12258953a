# SPDX-License-Identifier: Apache-2.0
"""The description is served, and it is one."""


def test_the_description_is_served_under_both_names(client):
    first, second = client.get("/openapi.json"), client.get("/api.json")
    assert first.status == second.status == 200 and first.body == second.body
    assert first.headers["Content-Type"] == "application/json"
    assert first.json["openapi"].startswith("3.1") and first.json["paths"]["/openapi.json"]["get"]
