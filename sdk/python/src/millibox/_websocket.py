# SPDX-License-Identifier: Apache-2.0
"""Frames of a WebSocket (RFC 6455), the client's side. Pure: bytes in, bytes out."""

from __future__ import annotations

import base64
import hashlib
import os
import struct
from typing import Dict, List, Mapping, Optional, Tuple

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MORE, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
NORMAL = 1000
#: The daemon's messages have less.
_MESSAGE_MAX = 1 << 24
_HEAD_MAX = 1 << 16


#: Status, headers by lower-case name, and what follows the head.
Head = Tuple[int, Dict[str, str], bytes]


def new_key() -> str:
    return base64.b64encode(os.urandom(16)).decode()


def request_head(path: str, headers: Mapping[str, str], key: str) -> bytes:
    """The request for an upgrade."""
    fields = {
        **headers,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
    }
    return (f"GET {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items()) + "\r\n").encode()


def parse_head(data: bytes) -> Optional[Head]:
    """None: it is not complete. ValueError: no HTTP."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        if len(data) > _HEAD_MAX:
            raise ValueError("the answer is not HTTP")
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise ValueError("the answer is not HTTP")
    fields = (line.partition(":") for line in lines)
    return int(words[1]), {name.lower(): value.strip() for name, _, value in fields}, rest


def is_upgrade(status: int, headers: Mapping[str, str], key: str) -> bool:
    proof = base64.b64encode(hashlib.sha1(key.encode() + MAGIC).digest()).decode()
    return status == 101 and headers.get("sec-websocket-accept") == proof


def encode(opcode: int, data: bytes) -> bytes:
    """One masked frame."""
    first = 0x80 | opcode
    if len(data) < 126:
        head = struct.pack("!BB", first, 0x80 | len(data))
    elif len(data) < 1 << 16:
        head = struct.pack("!BBH", first, 0x80 | 126, len(data))
    else:
        head = struct.pack("!BBQ", first, 0x80 | 127, len(data))
    mask = os.urandom(4)
    pad = (mask * (len(data) // 4 + 1))[: len(data)]
    return head + mask + (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(len(data), "big")


def close_code(data: bytes) -> Optional[int]:
    return int.from_bytes(data[:2], "big") if len(data) >= 2 else None


class Frames:
    """The server's frames, from bytes as they come."""

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray(data)

    def feed(self, data: bytes) -> None:
        self._data += data

    def take(self) -> List[Tuple[int, bytes]]:
        """Complete frames: opcode (that of MORE for the rest of a message) and payload."""
        found: List[Tuple[int, bytes]] = []
        while True:
            frame = self._next()
            if frame is None:
                return found
            found.append(frame)

    def _next(self) -> Optional[Tuple[int, bytes]]:
        data = self._data
        if len(data) < 2:
            return None
        length, at = data[1] & 0x7F, 2
        if length == 126:
            length, at = int.from_bytes(data[2:4], "big"), 4
        elif length == 127:
            length, at = int.from_bytes(data[2:10], "big"), 10
        if length > _MESSAGE_MAX:
            raise ValueError("a message is too long")
        if len(data) < at or len(data) < at + length:
            return None
        frame = data[0] & 0x0F, bytes(data[at : at + length])
        del data[: at + length]
        return frame
