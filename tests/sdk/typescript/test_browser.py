# SPDX-License-Identifier: Apache-2.0
"""The TypeScript SDK in a real browser: a page of a server of the test's own imports the built package and talks to a daemon, which
knows the page's origin or not, with and without keys."""

import contextlib
import http.server
import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import urllib.parse

import pytest

from support import host

BROWSER = shutil.which("chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"]
PAGE = b'<!doctype html><meta charset="utf-8"><title>Millibox</title><script type="module" src="/page.mjs"></script>'
PATIENCE_S = 120 * host.PATIENCE

pytestmark = [pytest.mark.phases("system"),
              pytest.mark.skipif(BROWSER is None, reason="chromium is not installed: tools/setup test")]


class Site:
    """Serves the page and the package, and receives the outcomes."""

    def __init__(self, workshop):
        site, dist = self, workshop.path / "node_modules/millibox/dist"
        self.posted = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = urllib.parse.urlsplit(self.path).path
                files = {"/page.mjs": workshop.path / "page.mjs"}
                if path.startswith("/millibox/"):
                    files[path] = dist / path.removeprefix("/millibox/")
                kind = "text/html" if path == "/" else "text/javascript"
                found = path == "/" or (path in files and files[path].is_file())
                body = PAGE if path == "/" else files[path].read_bytes() if found else b""
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                site.posted.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def make_site(workshop):
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(contextlib.closing(Site(workshop)))


def visit(site, home, daemon, groups, key=""):
    """Open the page in a browser with an empty profile. Return: {name: "passed", or what went wrong}."""
    query = urllib.parse.urlencode({"url": "http://%s:%d" % daemon.tcp_address(), "groups": groups, "key": key})
    # A group of its own: the browser has many processes.
    browser = subprocess.Popen([BROWSER, *FLAGS, f"--user-data-dir={home}/profile", f"{site.origin}/?{query}"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=open(home / "browser.log", "wb"), start_new_session=True,
                               env={**os.environ, "HOME": str(home)})
    try:
        posted = site.posted.get(timeout=PATIENCE_S)
    except queue.Empty:
        pytest.fail(f"the page did not report: {(home / 'browser.log').read_text()[-3000:]}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(browser.pid, signal.SIGKILL)
        browser.wait()
    assert "Chrome/" in posted["agent"]
    return posted["outcomes"]


def check(outcomes, least):
    assert len(outcomes) >= least and set(outcomes.values()) == {"passed"}, "\n".join(f"{k}: {v}" for k, v in outcomes.items())


def test_a_page_without_keys(make_site, make_daemon, tmp_path):
    """Everything that the package offers in browsers, WebSockets included."""
    site = make_site()
    daemon = make_daemon(tcp=True, env={"MILLIBOX_ALLOWED_ORIGINS": site.origin}).start()
    check(visit(site, tmp_path, daemon, "http,sockets"), 12)


def test_a_page_with_a_key(make_site, make_daemon, tmp_path):
    site = make_site()
    daemon = make_daemon(tcp=True, env={"MILLIBOX_ALLOWED_ORIGINS": site.origin}).start()
    with daemon.client() as client:
        key = client.post("/api/v1/keys", {"tenant": "default", "scopes": ["execute", "sessions", "files", "read"]}).json["key"]
    check(visit(site, tmp_path, daemon, "http,sockets,key", key), 13)


def test_a_page_of_another_origin_gets_nothing(make_site, make_daemon, tmp_path):
    """The control: the same page, from an origin that the daemon does not know. The other site's pages are served."""
    known, stranger = make_site(), make_site()
    daemon = make_daemon(tcp=True, env={"MILLIBOX_ALLOWED_ORIGINS": known.origin}).start()
    check(visit(stranger, tmp_path, daemon, "stranger"), 1)

    def refused():
        lines = (daemon.home / "state/audit.log").read_text().splitlines(keepends=True)
        return any(json.loads(line)["action"] == "request.refuse" for line in lines if line.endswith("\n"))

    host.wait_until(refused, 10, "a line of the audit log, which a thread of the daemon writes")
