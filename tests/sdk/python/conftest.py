# SPDX-License-Identifier: Apache-2.0
"""The Python SDK against a real daemon. Most tests run twice: with the synchronous and with the asynchronous client."""

import asyncio
import inspect
import sys

import pytest

from support.daemon import ROOT

sys.path.insert(0, str(ROOT / "sdk/python/src"))

import millibox  # noqa: E402


class Blocking:
    """An asynchronous object that can be used like its synchronous twin."""

    def __init__(self, loop, inner):
        self._loop, self._inner = loop, inner

    def _wrap(self, value):
        return Blocking(self._loop, value) if type(value).__name__.startswith("Async") else value

    def _settle(self, value):
        if inspect.isasyncgen(value):
            return self._drain(value)
        return self._wrap(self._loop.run_until_complete(value) if inspect.isawaitable(value) else value)

    def _drain(self, generator):
        try:
            while True:
                try:
                    yield self._loop.run_until_complete(generator.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run_until_complete(generator.aclose())

    def __getattr__(self, name):
        value = getattr(self._inner, "aclose" if name == "close" else name)
        if callable(value) and not type(value).__name__.startswith("Async"):
            return lambda *args, **kw: self._settle(value(*args, **kw))
        return self._wrap(value)

    def __iter__(self):
        return self._settle(self._inner.__aiter__())

    def __enter__(self):
        return self._settle(self._inner.__aenter__())

    def __exit__(self, *exc):
        return self._settle(self._inner.__aexit__(*exc))


class Kind:
    """The names of one of the two clients."""

    def __init__(self, loop=None):
        self.loop = loop

    @property
    def is_async(self):
        return self.loop is not None

    def Client(self, *args, **kw):
        return Blocking(self.loop, millibox.AsyncClient(*args, **kw)) if self.is_async else millibox.Client(*args, **kw)

    def Sandbox(self, client=None, **kw):
        if not self.is_async:
            return millibox.Sandbox(client, **kw)
        return Blocking(self.loop, millibox.AsyncSandbox(client._inner if client else None, **kw))

    def connect(self, id, client):
        if not self.is_async:
            return millibox.Sandbox.connect(id, client)
        return Blocking(self.loop, self.loop.run_until_complete(millibox.AsyncSandbox.connect(id, client._inner)))

    def attach(self, id, client):
        """A handle of a sandbox, without a request."""
        made = self.Sandbox(client)
        inner = made._inner if self.is_async else made
        inner._owns_session = False
        inner._attach(millibox.SandboxInfo(id, "ready", None, None, "", {}))
        return made


@pytest.fixture(params=["sync", "async"])
def kind(request):
    if request.param == "sync":
        yield Kind()
        return
    loop = asyncio.new_event_loop()
    yield Kind(loop)
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@pytest.fixture
def sdk(kind, daemon):
    """A client of the module's daemon."""
    with kind.Client(socket=daemon.socket) as client:
        yield client


@pytest.fixture
def box(kind, sdk):
    with kind.Sandbox(sdk) as made:
        yield made
