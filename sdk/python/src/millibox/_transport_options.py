# SPDX-License-Identifier: Apache-2.0
"""Options of httpx's transports, and what its exceptions mean here."""

from __future__ import annotations

import functools
import ssl
from typing import Any, Dict, Optional, Union

import httpx

from . import _calls, errors
from ._base_errors import ApiError, ConnectError, ConnectionLost, MilliboxError
from ._endpoint import Endpoint
from ._version import __version__

#: Below the daemon's own limit for idle connections (60 s), so that no request goes into a connection that it closes.
_KEPT_S = 20.0
CONNECT_S = 10.0


def pool_limits() -> httpx.Limits:
    """No limit: each stream holds a connection, and a limit would make streams wait for each other."""
    return httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=_KEPT_S)


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
            f"could not reach the daemon at {endpoint}: {reason}; 'milliboxd' starts one, millibox.local() its own"
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


def may_repeat(error: MilliboxError, call: _calls.Call[Any]) -> bool:
    """Whether sending @call again can have no second effect: nothing was sent, the daemon refused it before it did
    anything, or a repetition changes nothing."""
    if isinstance(error, (ConnectError, errors.TooManyRequestsError)):
        return call.content is None or isinstance(call.content, bytes)
    return call.repeatable and isinstance(error, (ConnectionLost, errors.UnavailableError))
