# SPDX-License-Identifier: Apache-2.0
"""A daemon of this process, for hosts where none runs."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Dict, List, Mapping, Optional

from ._async._client import AsyncClient
from ._base_errors import MilliboxError
from ._endpoint import _accepts, find_endpoint, is_served
from ._sync._client import Client

#: For sanitizers and emulated processors; a daemon that cannot start ends much sooner.
_READY_S = 60.0
_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: No later daemon reads this one's state.
_SETTINGS = {"MILLIBOX_SESSIONS_SURVIVE": "0", "MILLIBOX_STORE_VOLATILE": "true", "MILLIBOX_AUDIT_ENABLED": "false"}
#: Its only client is its owner, who may name hosts; the environment or a setting may name another policy.
_DEFAULTS = {"MILLIBOX_POLICY_DEFAULT": "owner"}
#: For the client, not for the daemon.
_OURS = ("MILLIBOX_API_KEY", "MILLIBOX_API_KEY_FILE", "MILLIBOX_URL", "MILLIBOX_SOCKET", "MILLIBOX_CA_FILE")


class LocalDaemon:
    """A daemon with a private socket. It ends with `stop`, or with this process, even if that is killed.

    - @program: path of `milliboxd`; by default MILLIBOX_DAEMON, then the one in PATH.
    - @settings: settings by their names, such as `{"isolation": "best-effort", "limits.timeout": "10s"}`.
    """

    def __init__(self, program: Optional[str] = None, settings: Optional[Mapping[str, str]] = None) -> None:
        self._program = program or _find_program()
        self._directory = tempfile.mkdtemp(prefix="millibox-")
        # A daemon of root gives up its ids and must reach its files; what it keeps there is closed to others.
        os.chmod(self._directory, 0o711)
        #: Path of its Unix socket.
        self.socket = f"{self._directory}/sock"
        script = str(Path(__file__).with_name("_supervisor.py"))
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", script, self._program, self._directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(settings or {}),
            start_new_session=True,
            cwd="/",
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_S
        while not _accepts(self.socket):
            ended = self._supervisor.poll() is not None or os.path.exists(f"{self._directory}/ended")
            if ended or time.monotonic() > deadline:
                raise MilliboxError(f"{self._program} did not start:\n{self.log()}")
            time.sleep(0.005)

    def log(self) -> str:
        """What it has logged: warnings and errors."""
        try:
            return Path(self._directory, "log").read_text(errors="replace")[-8192:]
        except OSError:
            return ""

    def stop(self) -> None:
        """End it and remove its files."""
        if self._supervisor.stdin and not self._supervisor.stdin.closed:
            self._supervisor.stdin.close()
        try:
            self._supervisor.wait(30)
        except subprocess.TimeoutExpired:
            self._supervisor.send_signal(signal.SIGKILL)
            self._supervisor.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> LocalDaemon:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def _find_program() -> str:
    named = os.environ.get("MILLIBOX_DAEMON")
    found = named or shutil.which("milliboxd") or shutil.which("milliboxd", path=_FOLDERS)
    if not found:
        raise MilliboxError("milliboxd is not installed: neither MILLIBOX_DAEMON nor PATH has it")
    return os.path.abspath(found)


def _environment(settings: Mapping[str, str]) -> Dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("HOME", "XDG_RUNTIME_DIR") or (name.startswith("MILLIBOX_") and name not in _OURS)
    }
    given = {"MILLIBOX_" + name.replace(".", "_").upper(): str(value) for name, value in settings.items()}
    return {"PATH": _FOLDERS, **_DEFAULTS, **kept, **_SETTINGS, **given}


_lock = threading.Lock()
_shared: List[LocalDaemon] = []


def _shared_daemon() -> LocalDaemon:
    """One for the whole process."""
    with _lock:
        if not _shared:
            _shared.append(LocalDaemon())
            atexit.register(_shared[0].stop)
        return _shared[0]


def _served_socket() -> Optional[str]:
    """The socket of a daemon that runs, or None."""
    path = find_endpoint().socket
    return path if path and is_served(path) else None


def local(program: Optional[str] = None, settings: Optional[Mapping[str, str]] = None) -> Client:
    """A client of the daemon at the default socket, or, where none runs, of one that this process starts and that
    ends with it. With @program or @settings it is always a new one, which ends with the client. Where
    MILLIBOX_SOCKET or MILLIBOX_URL names a daemon, that one is used."""
    if program is None and settings is None:
        return Client() if find_endpoint().chosen else Client(socket=_served_socket() or _shared_daemon().socket)
    daemon = LocalDaemon(program, settings)
    client = Client(socket=daemon.socket)
    client._on_close.append(daemon.stop)
    return client


def async_local(program: Optional[str] = None, settings: Optional[Mapping[str, str]] = None) -> AsyncClient:
    """`local` for asynchronous programs. The call itself waits until the daemon is ready."""
    if program is None and settings is None:
        return (
            AsyncClient()
            if find_endpoint().chosen
            else AsyncClient(socket=_served_socket() or _shared_daemon().socket)
        )
    daemon = LocalDaemon(program, settings)
    client = AsyncClient(socket=daemon.socket)
    client._on_close.append(daemon.stop)
    return client
