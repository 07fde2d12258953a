# SPDX-License-Identifier: Apache-2.0
"""Where the daemon is: arguments, the environment, or the default socket, in the order of the command line."""

from __future__ import annotations

import os
import re
import socket as sockets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping, Optional

from ._base_errors import MilliboxError

SYSTEM_SOCKET = "/run/millibox/millibox.sock"
#: Fills only the Host header of requests over a Unix socket; every daemon accepts it.
UNIX_URL = "http://localhost"
_KEY = re.compile(r"[A-Za-z0-9_.~+/=-]{1,200}")
#: A socket's path must fit into sun_path.
_SOCKET_MAX = 107


@dataclass(frozen=True)
class Endpoint:
    """An address and the credentials for it."""

    url: str
    socket: Optional[str] = None
    #: False: the default socket, where a daemon may or may not listen.
    chosen: bool = True
    api_key: Optional[str] = field(default=None, repr=False)
    ca_file: Optional[str] = None

    def __str__(self) -> str:
        return self.socket or self.url


def find_endpoint(
    url: Optional[str] = None,
    socket: Optional[str] = None,
    api_key: Optional[str] = None,
    ca_file: Optional[str] = None,
    environ: Optional[Mapping[str, str]] = None,
) -> Endpoint:
    """Arguments win over MILLIBOX_SOCKET, MILLIBOX_URL, MILLIBOX_API_KEY, MILLIBOX_API_KEY_FILE and
    MILLIBOX_CA_FILE."""
    env = os.environ if environ is None else environ
    key = _check_key(api_key, "api_key") if api_key else _key_of(env)
    ca = ca_file or env.get("MILLIBOX_CA_FILE") or None
    if url and socket:
        raise MilliboxError("give url or socket, not both")
    if not url and not socket:
        socket = env.get("MILLIBOX_SOCKET") or None
        url = None if socket else env.get("MILLIBOX_URL") or None
    if url:
        return Endpoint(_check_url(url), None, True, key, ca)
    if socket:
        return Endpoint(UNIX_URL, _check_socket(socket), True, key, ca)
    return Endpoint(UNIX_URL, _check_socket(_default_socket(env)), False, key, ca)


def _default_socket(env: Mapping[str, str]) -> str:
    uid = os.geteuid()
    if uid == 0:
        return SYSTEM_SOCKET
    runtime = env.get("XDG_RUNTIME_DIR", "")
    own = f"{runtime}/millibox/millibox.sock" if runtime.startswith("/") else f"/tmp/millibox-{uid}/millibox.sock"
    # Without a daemon of this user, that of the system.
    if not is_served(own) and _is_directory_of(SYSTEM_SOCKET, 0) and _accepts(SYSTEM_SOCKET):
        return SYSTEM_SOCKET
    return own


def is_served(path: str) -> bool:
    """Whether a daemon that this user can trust listens at a default socket."""
    # Any user can create /tmp/millibox-UID and read code that is sent to a socket there.
    if path.startswith("/tmp/") and not _is_directory_of(path, os.geteuid()):
        return False
    return _accepts(path)


def check_trusted(endpoint: Endpoint) -> None:
    """Refuse a default socket in a directory that another user could have made."""
    path = endpoint.socket
    if endpoint.chosen or not path or not path.startswith("/tmp/") or not os.path.lexists(os.path.dirname(path)):
        return
    if not _is_directory_of(path, os.geteuid()):
        raise MilliboxError(
            f"{os.path.dirname(path)} belongs to another user, or others may write to it; remove it, or name the"
            " socket with MILLIBOX_SOCKET"
        )


def _is_directory_of(path: str, owner: int) -> bool:
    try:
        found = os.lstat(os.path.dirname(path))
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == owner and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _accepts(path: str) -> bool:
    with sockets.socket(sockets.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


def _check_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise MilliboxError(f"'{url}' is not a URL such as http://127.0.0.1:8000")
    return url.rstrip("/")


def _check_socket(path: str) -> str:
    if len(os.fsencode(path)) > _SOCKET_MAX:
        raise MilliboxError(f"the path of the socket is longer than {_SOCKET_MAX} bytes: {path}")
    return path


def _key_of(env: Mapping[str, str]) -> Optional[str]:
    if env.get("MILLIBOX_API_KEY"):
        return _check_key(env["MILLIBOX_API_KEY"], "MILLIBOX_API_KEY")
    path = env.get("MILLIBOX_API_KEY_FILE")
    if not path:
        return None
    try:
        return _check_key(Path(path).read_text().strip(), path)
    except OSError as e:
        raise MilliboxError(f"could not read the key from {path}: {e.strerror}") from e


def _check_key(key: str, origin: str) -> str:
    # It becomes part of a header.
    if not _KEY.fullmatch(key):
        raise MilliboxError(f"{origin} does not contain a valid key")
    return key
