# SPDX-License-Identifier: Apache-2.0
"""A web service that runs the plugins of its users. Each user has a sandbox: what one plugin does, another cannot see.

PUT /plugins/USER with Python that defines transform(text), then POST /plugins/USER with a text.
Usage: plugin_service.py [PORT]
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import millibox

CALL = "transform(open('/workspace/input').read())"


class Plugins:
    """The sandboxes of the users."""

    def __init__(self, client):
        self.client, self.boxes, self.lock = client, {}, threading.Lock()

    def install(self, user, code):
        """Load a plugin into a new sandbox; the one before ends when the new one works."""
        box = millibox.Sandbox(self.client, memory="128Mi").start()
        try:
            result = box.run_code(code, timeout=5)
            reason = None if result.ok else result.limit or result.error
        except millibox.ApiError as e:
            reason = e.detail
        if reason:
            box.kill()
            return 400, f"the plugin does not load: {reason}"
        with self.lock:
            before, self.boxes[user] = self.boxes.get(user), box
        if before:
            before.kill()
        return 201, "installed"

    def call(self, user, text):
        with self.lock:
            box = self.boxes.get(user)
        if not box:
            return 404, "no such plugin"
        box.files.write("input", text)
        result = box.run_code(CALL, timeout=2)
        return (200, str(result.value)) if result.ok else (422, f"the plugin failed: {result.limit or result.error}")

    def close(self):
        for box in self.boxes.values():
            box.kill()


def make_handler(plugins):
    class Handler(BaseHTTPRequestHandler):
        def serve(self, work):
            user = self.path.rsplit("/", 1)[-1]
            length = int(self.headers.get("Content-Length", 0))
            if not self.path.startswith("/plugins/") or not user.isalnum() or length > 65536:
                return self.answer(400, "use /plugins/USER, and at most 64 KiB")
            return self.answer(*work(user, self.rfile.read(length).decode(errors="replace")))

        def answer(self, status, text):
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self):
            self.serve(plugins.install)

        def do_POST(self):
            self.serve(plugins.call)

        def log_message(self, *args):
            pass

    return Handler


def main(port):
    with millibox.Client() as client:
        plugins = Plugins(client)
        server = ThreadingHTTPServer(("127.0.0.1", port), make_handler(plugins))
        print(f"http://127.0.0.1:{server.server_port}/plugins/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.server_close()
        finally:
            plugins.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8090)
