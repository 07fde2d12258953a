# SPDX-License-Identifier: Apache-2.0
"""Directories as tar archives, both ways. What comes out of a sandbox is hostile: it never gets outside of its
directory."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from typing import IO, Iterator, List, Optional, Tuple

from ._base_errors import MilliboxError

CHUNK = 256 * 1024
_BLOCK = 512


class UnsafeArchive(MilliboxError):
    """An archive of a sandbox has an entry that would leave its directory."""


def pack(directory: str) -> Iterator[bytes]:
    """The content of a directory as an archive, piece by piece. Links stay links; sockets and devices are left
    out."""
    # Only makes headers; nothing is written to it.
    tar = tarfile.open(fileobj=io.BytesIO(), mode="w", format=tarfile.PAX_FORMAT)
    for path, name in _walk(directory):
        info = tar.gettarinfo(path, arcname=name)
        if info is None:
            continue
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        if info.islnk():  # each name of a file that has several is a file
            info.type, info.linkname, info.size = tarfile.REGTYPE, "", os.lstat(path).st_size
        yield info.tobuf(tarfile.PAX_FORMAT)
        if info.isreg():
            yield from _content(path, info.size)
    yield bytes(2 * _BLOCK)


def _walk(directory: str) -> Iterator[Tuple[str, str]]:
    for folder, folders, files in os.walk(directory, onerror=_raise):
        folders.sort()
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            yield path, os.path.relpath(path, directory)


def _raise(error: OSError) -> None:
    raise error


def _content(path: str, size: int) -> Iterator[bytes]:
    """Exactly @size bytes, and the padding after them. A file that shrinks meanwhile is an error."""
    left = size
    with open(path, "rb") as source:
        while left:
            piece = source.read(min(CHUNK, left))
            if not piece:
                raise MilliboxError(f"{path} became shorter while it was read")
            left -= len(piece)
            yield piece
    if size % _BLOCK:
        yield bytes(_BLOCK - size % _BLOCK)


def unpack(archive: IO[bytes], directory: str) -> int:
    """Unpack an archive of a sandbox below @directory. Return: the number of entries. No link is followed, entries
    that are neither files, directories nor links inside are refused, set-id bits are dropped."""
    os.makedirs(directory, exist_ok=True)
    root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    count = 0
    links: List[Tuple[List[str], str]] = []
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for info in tar:
                parts = _parts(info.name)
                count += bool(parts)
                if info.issym():
                    links.append((parts, info.linkname))
                elif parts:
                    _unpack_entry(tar, info, root, parts)
        # Last, so that nothing is written through one.
        for parts, target in links:
            _make_link(root, parts, target)
    finally:
        os.close(root)
    return count


def _parts(name: str) -> List[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise UnsafeArchive(f"the archive has an entry outside of its directory: {name!r}")
    return parts


def _unpack_entry(tar: tarfile.TarFile, info: tarfile.TarInfo, root: int, parts: List[str]) -> None:
    if info.isdir():
        os.close(_open_folder(root, parts))
        return
    source: Optional[IO[bytes]] = tar.extractfile(info) if info.isreg() else None
    if source is None:
        raise UnsafeArchive(f"the archive has an entry that is neither file, directory nor link: {info.name!r}")
    folder = _open_folder(root, parts[:-1])
    try:
        _replace(folder, parts[-1])
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(parts[-1], flags, 0o600, dir_fd=folder), "wb") as target:
            while True:
                piece = source.read(CHUNK)
                if not piece:
                    break
                target.write(piece)
            os.fchmod(target.fileno(), 0o755 if info.mode & 0o100 else 0o644)
    finally:
        os.close(folder)


def _open_folder(root: int, parts: List[str]) -> int:
    """A descriptor of the directory below @root, made where it is missing; no component may be a link."""
    here = os.dup(root)
    for part in parts:
        try:
            os.mkdir(part, 0o755, dir_fd=here)
        except FileExistsError:
            pass
        try:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
        except OSError as e:
            raise UnsafeArchive(f"'{'/'.join(parts)}' is not a directory: {e.strerror}") from e
        finally:
            os.close(here)
        here = below
    return here


def _replace(folder: int, name: str) -> None:
    """Remove a file or link of this name; a directory is kept, and creating the file fails."""
    try:
        if not stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
            os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass


def _is_inside(parts: List[str], target: str) -> bool:
    """Behind a name ".." could be the parent of another link's target: it is accepted only in front."""
    steps = [step for step in target.split("/") if step not in ("", ".")]
    up = next((i for i, step in enumerate(steps) if step != ".."), len(steps))
    return not target.startswith("/") and up < len(parts) and ".." not in steps[up:]


def _make_link(root: int, parts: List[str], target: str) -> None:
    if not _is_inside(parts, target):
        raise UnsafeArchive(f"the link '{'/'.join(parts)}' leads outside of its directory: {target!r}")
    folder = _open_folder(root, parts[:-1])
    try:
        _replace(folder, parts[-1])
        os.symlink(target, parts[-1], dir_fd=folder)
    finally:
        os.close(folder)
