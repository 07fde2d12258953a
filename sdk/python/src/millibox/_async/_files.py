# SPDX-License-Identifier: Apache-2.0
"""Files of a sandbox."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from typing import IO, Any, AsyncIterator, BinaryIO, Iterable, Iterator, List, Optional, Union

from .. import _archive, _calls, errors
from .._models import FileInfo
from . import _io
from ._transport import AsyncTransport

Writable = Union[str, bytes, BinaryIO, Iterable[bytes]]


class AsyncFiles:
    """Files below `/workspace` of a sandbox. Paths are relative to it, or begin with `/workspace`."""

    def __init__(self, transport: AsyncTransport, id: str) -> None:
        self._transport = transport
        self._id = id

    async def read(self, path: str, offset: int = 0, length: Optional[int] = None) -> bytes:
        """The content of a file, or a part of it."""
        if length == 0:
            return b""
        try:
            return await self._transport.call(_calls.file_read(self._id, path, offset, length))
        except errors.RangeNotSatisfiableError:
            return b""

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """The content of a file as text."""
        return (await self.read(path)).decode(encoding)

    async def stream(self, path: str) -> AsyncIterator[bytes]:
        """The content of a file, piece by piece."""
        async with _io.closing(self._transport.pieces(_calls.file_read(self._id, path))) as pieces:
            async for piece in pieces:
                yield piece

    async def write(self, path: str, data: Writable, mode: Optional[int] = None) -> FileInfo:
        """Write a file: text, bytes, an open binary file or pieces. Missing directories are created; the file is
        replaced at once when all is there."""
        content = data.encode() if isinstance(data, str) else data
        if not isinstance(content, bytes) and hasattr(content, "read"):
            content = _pieces_of(content)
        return await self._transport.call(_calls.file_write(self._id, path, content, mode))

    async def list(self, path: str = "", recursive: bool = False) -> List[FileInfo]:
        """Entries of a directory, in the order of their names; with @recursive, everything below it."""
        found: List[FileInfo] = []
        after: Optional[str] = None
        while True:
            answer = await self._transport.call(_calls.file_list(self._id, path, recursive, after))
            found += [FileInfo.of(raw) for raw in answer["files"]]
            after = answer.get("next")
            if not answer.get("truncated") or after is None:
                return found

    async def stat(self, path: str) -> FileInfo:
        """The entry itself; links are not followed."""
        return await self._transport.call(_calls.file_stat(self._id, path))

    async def exists(self, path: str) -> bool:
        """Whether there is an entry."""
        try:
            await self.stat(path)
        except errors.FileNotFoundError:
            return False
        return True

    async def move(self, path: str, to: str, replace: bool = False) -> FileInfo:
        """Move a file or directory. What is at @to is a conflict, or replaced."""
        return await self._transport.call(_calls.file_move(self._id, path, to, replace))

    async def mkdir(self, path: str, parents: bool = True) -> FileInfo:
        """Create a directory; with @parents also missing ones above it, and one that exists is no error."""
        return await self._transport.call(_calls.file_mkdir(self._id, path, parents))

    async def remove(self, path: str, recursive: bool = False) -> None:
        """Remove a file, or a directory: with its content if @recursive."""
        await self._transport.call(_calls.file_remove(self._id, path, recursive))

    async def upload(self, local: Union[str, "os.PathLike[str]"], path: Optional[str] = None) -> None:
        """Copy a local file or directory into the sandbox; by default under its own name. A directory's content
        goes into the directory @path; links stay links."""
        name = os.fspath(local)
        target = os.path.basename(os.path.abspath(name)) if path is None else path
        if os.path.isdir(name):
            await self._transport.call(_calls.tar_write(self._id, target, _archive.pack(name)))
            return
        with open(name, "rb") as source:
            mode = 0o755 if os.fstat(source.fileno()).st_mode & 0o100 else 0o644
            await self.write(target, source, mode)

    async def download(self, path: str, local: Union[str, "os.PathLike[str]"]) -> None:
        """Copy a file or directory of the sandbox to the local path. A file appears at once when all is there.
        Nothing of a directory gets outside of @local: links out of it are an error (`UnsafeArchive`)."""
        name = os.fspath(local)
        if (await self.stat(path)).is_dir:
            with tempfile.TemporaryFile() as archive:
                await self._save(_calls.tar_read(self._id, path), archive)
                archive.seek(0)
                await _io.in_thread(_archive.unpack, archive, name)
            return
        if os.path.isdir(name):
            name = os.path.join(name, os.path.basename(path))
        partial = os.path.join(os.path.dirname(os.path.abspath(name)), f".millibox-{secrets.token_hex(8)}")
        try:
            with open(partial, "xb") as target:
                await self._save(_calls.file_read(self._id, path), target)
            os.replace(partial, name)
        except BaseException:
            with suppress(OSError):
                os.unlink(partial)
            raise

    async def _save(self, call: _calls.Call[bytes], target: IO[bytes]) -> None:
        async with _io.closing(self._transport.pieces(call)) as pieces:
            async for piece in pieces:
                await _io.in_thread(target.write, piece)


def _pieces_of(source: Any) -> Iterator[bytes]:
    while True:
        piece = source.read(_archive.CHUNK)
        if not piece:
            return
        yield piece
