#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the proxy of boxes adds: to a request, beside the same one without it; to a stream; and what idle connections cost. Without
boxes: this gives the orders, so that the figures are the proxy's. Can be run alone."""

import contextlib
import json
import multiprocessing
import pathlib
import socket
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from measure import Failure, interleave, percentile, summary
from support import host
from support.egress import OPEN, Resolver, connect
from support.proxy import Proxy

STREAM_BYTES = 1 << 30
CHUNK = 1 << 20
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def serve(listener):
    """GET is answered. "S" gets STREAM_BYTES; "I" is left alone."""
    block = memoryview(bytes(CHUNK))
    idle = []
    while True:
        sock, _ = listener.accept()
        first = sock.recv(4096)
        if first[:1] == b"S":
            for _ in range(STREAM_BYTES // CHUNK):
                sock.sendall(block)
        elif first[:1] == b"G":
            sock.sendall(ANSWER)
        else:
            idle.append(sock)
            continue
        sock.close()


@contextlib.contextmanager
def server():
    """Another process: the one that measures must not be slowed down by it. Gives its port."""
    with socket.create_server((OPEN, 0), backlog=4096) as listener:
        process = multiprocessing.get_context("fork").Process(target=serve, args=(listener,), daemon=True)
        process.start()
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()
            process.join()


def read_end(sock):
    data = b""
    while part := sock.recv(65536):
        data += part
    return data


def one_request(address, url, host_port):
    with socket.create_connection(address, 20) as sock:
        sock.sendall(f"GET {url} HTTP/1.1\r\nHost: {host_port}\r\n\r\n".encode())
        if not read_end(sock).endswith(b"ok"):
            raise Failure("no answer of the server")


def open_tunnel(address, target):
    sock = socket.create_connection(address, 20)
    sock.sendall(connect(target))
    if b" 200 " not in sock.recv(4096):
        raise Failure("no tunnel")
    return sock


def stream_mb_s(sock):
    block = bytearray(CHUNK)
    got = 0
    with sock:
        sock.sendall(b"S")
        start = time.perf_counter()
        while n := sock.recv_into(block):
            got += n
        took = time.perf_counter() - start
    if got != STREAM_BYTES:
        raise Failure(f"{got} of {STREAM_BYTES} bytes came")
    return got / took / 1e6


def idle_mib(proxy, address, target, count):
    before = host.rss_kib(proxy.pid())
    held = [open_tunnel(address, target) for _ in range(count)]
    for sock in held:
        sock.sendall(b"I")
    grown = (host.rss_kib(proxy.pid()) - before) / 1024
    for sock in held:
        sock.close()
    return grown


def row_egress(rounds=400, streams=5, idle=1000):
    with server() as port, contextlib.ExitStack() as stack:
        resolver = Resolver()
        stack.callback(resolver.close)
        proxy = Proxy(resolver)
        stack.callback(proxy.close)
        target = f"{OPEN}:{port}"
        address = proxy.open(1, [f"{OPEN}/32:{port}"], connections=2 * idle)
        samples = interleave({
            "direct": lambda: one_request((OPEN, port), "/", target),
            "proxy": lambda: one_request(address, f"http://{target}/", target),
        }, rounds, warm=20)  # fmt: skip
        rates = {"direct": [], "proxy": []}
        for _ in range(streams):
            rates["direct"].append(stream_mb_s(socket.create_connection((OPEN, port), 20)))
            rates["proxy"].append(stream_mb_s(open_tunnel(address, target)))
        return {
            "requests": {name: summary(found) for name, found in samples.items()},
            "added_ms": round(percentile(samples["proxy"], 50) - percentile(samples["direct"], 50), 3),
            "stream_mb_s": round(percentile(rates["proxy"], 50)),
            "stream_direct_mb_s": round(percentile(rates["direct"], 50)),
            "idle_mib": round(idle_mib(proxy, address, target, idle), 1),
        }


if __name__ == "__main__":
    print(json.dumps(row_egress(), indent=1))
