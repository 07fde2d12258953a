# SPDX-License-Identifier: Apache-2.0
"""Sessions and API descriptions for the tests of this folder."""

import pytest

from support.sessions import Session


@pytest.fixture
def make(client):
    """Sessions, deleted with the test."""
    made = []

    def create(**fields):
        fields.setdefault("mode", "persistent")
        made.append(Session(client, **fields))
        return made[-1]

    yield create
    for session in made:
        assert session.delete().status in (200, 404)


@pytest.fixture
def py(make):
    return make()


@pytest.fixture
def sh(make):
    return make(language="shell")


@pytest.fixture(scope="module")
def bench(daemon):
    """Calls the operations of the description; what it creates is deleted with the module."""
    from support.openapi import Bench, Description  # needs jsonschema, which the guest of test-vm lacks

    with daemon.client() as client:
        bench = Bench(client, Description.of(client))
        yield bench
        bench.clean()
