# SPDX-License-Identifier: Apache-2.0
"""Options of httpx's transports, and what its exceptions mean here."""

from __future__ import annotations

import errno
import functools
import random
import ssl
import time
from typing import Any, Dict, Optional, Union

import httpx

from . import _calls, errors
from ._base_errors import ApiError, ConnectError, ConnectionLost, MilliboxError
from ._endpoint import Endpoint
from ._version import __version__

#: Below the daemon's own limit for idle connections (60 s), so that no request goes into a connection that it closes.
_KEPT_S = 20.0
CONNECT_S = 10.0


#: Pauses before a request is sent again: between attempts to reach a daemon, and at a crowded socket.
_RETRY_S = 0.1
_CROWD_S = 1.0


def pool_limits() -> httpx.Limits:
    """No limit here, but see `call_limit`: a caller may read many streams in turns, which would wait for each other."""
    return httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=_KEPT_S)


def call_limit(connections: int, waits: bool) -> int:
    """How many calls may be on their way: of those that wait for programs, and of all others, so that one that ends a
    program never waits for it."""
    if connections < 1:
        raise ValueError("connections must be 1 or more")
    return connections if waits else max(connections // 4, 1)


def ssl_context(endpoint: Endpoint) -> Union[bool, ssl.SSLContext]:
    if not endpoint.url.startswith("https://"):
        return False
    try:
        return ssl.create_default_context(cafile=endpoint.ca_file)
    except OSError as e:
        raise MilliboxError(f"could not read the certificates in {endpoint.ca_file}: {e}") from e


#: Sandboxes are used more than once, and parsing a URL takes a third of the time of a request.
make_url = functools.lru_cache(maxsize=512)(httpx.URL)


def base_headers(endpoint: Endpoint) -> Dict[str, str]:
    # Requests go to httpx's transport directly, which adds nothing.
    headers = {
        "Host": httpx.URL(endpoint.url).netloc.decode(),
        "User-Agent": f"millibox-python/{__version__}",
        "Accept": "*/*",
    }
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    return headers


def time_limits(call: _calls.Call[Any], seconds: float) -> Dict[str, Optional[float]]:
    """A program may take as long as its own limit allows; bytes of a file have as long as each is on its way."""
    return {
        "connect": min(CONNECT_S, seconds),
        "read": None if call.waits else seconds,
        "write": seconds,
        "pool": None,
    }


def translate(error: httpx.TransportError, endpoint: Endpoint) -> MilliboxError:
    """The exception of this package for one of httpx."""
    reason = str(error) or type(error).__name__
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        return ConnectError(
            f"could not reach the daemon at {endpoint}: {reason}; 'millibox up -d' starts one, millibox.local() its own"
        )
    if isinstance(error, httpx.TimeoutException):
        return ConnectionLost(f"the daemon at {endpoint} did not answer in time ({reason})")
    return ConnectionLost(f"the connection to the daemon at {endpoint} broke: {reason}")


def api_error(status: int, headers: httpx.Headers, body: bytes) -> ApiError:
    return errors.from_answer(status, errors.read_body(body), _number(headers.get("Retry-After")))


def _number(text: Optional[str]) -> Optional[float]:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


class Attempts:
    """When one call is sent again: only where that can have no second effect."""

    def __init__(self, call: _calls.Call[Any], retries: int, busy_timeout: float) -> None:
        self._call = call
        self._retries = retries
        self._count = 0
        self._until = time.monotonic() + busy_timeout

    def pause(self, error: MilliboxError) -> Optional[float]:
        """Seconds to wait before the call is sent again; None: it is not."""
        if isinstance(error, ApiError) and error.should_retry:
            # Whatever answers: no loop without a pause.
            return self._within(max(error.retry_after or 0.0, _RETRY_S))
        if _is_crowded(error):
            return self._within(_CROWD_S)
        if self._count == self._retries or not self._is_safe(error):
            return None
        self._count += 1
        return _RETRY_S * self._count

    def _within(self, seconds: float) -> Optional[float]:
        # All who were refused together would come back together.
        seconds *= random.uniform(1.0, 1.5)
        return seconds if self._is_whole() and time.monotonic() + seconds <= self._until else None

    def _is_safe(self, error: MilliboxError) -> bool:
        """Nothing was sent, or a repetition changes nothing."""
        if isinstance(error, ConnectError):
            return self._is_whole()
        return self._call.repeatable and isinstance(error, ConnectionLost)

    def _is_whole(self) -> bool:
        """A stream that was read in part cannot be sent again."""
        return self._call.content is None or isinstance(self._call.content, bytes)


def _is_crowded(error: MilliboxError) -> bool:
    """Whether so many connections wait for the daemon that the kernel takes no further ones."""
    cause: Optional[BaseException] = error if isinstance(error, ConnectError) else None
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    return isinstance(cause, OSError) and cause.errno == errno.EAGAIN
