# SPDX-License-Identifier: Apache-2.0
"""A minimal HTTP client, so that the server is measured.

Requests are bytes made beforehand, answers are read until their declared length and compared with
what they must hold. One thread keeps any number of connections busy.
"""

import json
import select
import socket
import time

from measure import Failure


def request(method, path, body=None):
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def execution(language, code, **fields):
    return request("POST", "/api/v1/execute", {"language": language, "code": code, **fields})


class Connection:
    """One keep-alive connection."""

    def __init__(self, address):
        self.sock = socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX)
        self.sock.connect(address)
        if isinstance(address, tuple):
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""

    def send(self, data):
        self.received = b""
        self.sock.sendall(data)

    def take(self):
        """Return: (status, body) once complete, else None."""
        chunk = self.sock.recv(1 << 16)
        if not chunk:
            raise Failure(f"connection closed after {self.received[:200]!r}")
        self.received += chunk
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = self.received[:end].lower()
        at = head.index(b"content-length:") + 15
        length = int(head[at:].split(b"\r\n", 1)[0])
        if len(self.received) < end + 4 + length:
            return None
        return int(head[9:12]), self.received[end + 4 :]

    def exchange(self, data):
        self.send(data)
        while (answer := self.take()) is None:
            pass
        return answer

    def expect(self, data, part):
        """One exchange whose answer must be 200 and hold @part. Return: ms."""
        start = time.perf_counter()
        status, body = self.exchange(data)
        ms = (time.perf_counter() - start) * 1000
        if status != 200 or part not in body:
            raise Failure(f"expected {part!r}: {status} {body[:400]!r}")
        return ms

    def close(self):
        self.sock.close()


def keep_busy(address, connections, seconds, data, part, each=None):
    """Keep @connections busy: each sends again when it is answered. Return: ms of every answer.

    @each is called about every 20 ms, between answers.
    """
    everyone = {}
    poll = select.epoll()
    samples = []
    now = time.perf_counter()
    end, again = now + seconds, now
    for _ in range(connections):
        c = Connection(address)
        everyone[c.sock.fileno()] = [c, now]
        poll.register(c.sock.fileno(), select.EPOLLIN)
        c.send(data)
    waiting = connections
    while waiting:
        for fd, _ in poll.poll(0.02):
            c, since = everyone[fd]
            answer = c.take()
            if answer is None:
                continue
            now = time.perf_counter()
            if answer[0] != 200 or part not in answer[1]:
                raise Failure(f"expected {part!r}: {answer[0]} {answer[1][:400]!r}")
            samples.append((now - since) * 1000)
            if now < end:
                everyone[fd][1] = now
                c.send(data)
            else:
                waiting -= 1
        if each and time.perf_counter() >= again:
            each()
            again = time.perf_counter() + 0.02
    for c, _ in everyone.values():
        c.close()
    return samples


def all_at_once(address, count, data, part):
    """Send @count requests, each on its own connection, before reading any answer. Return: ms until the last one."""
    everyone = [Connection(address) for _ in range(count)]
    start = time.perf_counter()
    for c in everyone:
        c.send(data)
    for c in everyone:
        while (answer := c.take()) is None:
            pass
        if answer[0] != 200 or part not in answer[1]:
            raise Failure(f"expected {part!r}: {answer[0]} {answer[1][:400]!r}")
    ms = (time.perf_counter() - start) * 1000
    for c in everyone:
        c.close()
    return ms
