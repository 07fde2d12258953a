# SPDX-License-Identifier: Apache-2.0
"""Runs untrusted code in isolated boxes of a Millibox daemon.

import millibox

with millibox.Sandbox() as box:
    box.run_code("x = 41")
    print(box.run_code("x + 1").text)
"""

from . import errors
from ._archive import UnsafeArchive
from ._async._client import AsyncClient
from ._async._commands import AsyncCommands
from ._async._execution import AsyncExecution, AsyncTerminal
from ._async._files import AsyncFiles
from ._async._port import AsyncPort
from ._async._sandbox import AsyncSandbox
from ._base_errors import (
    ApiError,
    ConnectError,
    ConnectionLost,
    MilliboxError,
    ProgramCancelled,
    ProgramCrashed,
    ProgramError,
    ProgramFailed,
    ProgramTimeout,
)
from ._forward import Forward
from ._local import LocalDaemon, async_local, local
from ._models import ErrorInfo, Event, FileInfo, PortInfo, Result, SandboxInfo
from ._sync._client import Client
from ._sync._commands import Commands
from ._sync._execution import Execution, Terminal
from ._sync._files import Files
from ._sync._port import Port
from ._sync._sandbox import Sandbox
from ._version import __version__

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncCommands",
    "AsyncExecution",
    "AsyncFiles",
    "AsyncPort",
    "AsyncSandbox",
    "AsyncTerminal",
    "Client",
    "Commands",
    "ConnectError",
    "ConnectionLost",
    "ErrorInfo",
    "Event",
    "Execution",
    "FileInfo",
    "Files",
    "Forward",
    "LocalDaemon",
    "MilliboxError",
    "Port",
    "PortInfo",
    "ProgramCancelled",
    "ProgramCrashed",
    "ProgramError",
    "ProgramFailed",
    "ProgramTimeout",
    "Result",
    "Sandbox",
    "SandboxInfo",
    "Terminal",
    "UnsafeArchive",
    "__version__",
    "async_local",
    "errors",
    "local",
]
