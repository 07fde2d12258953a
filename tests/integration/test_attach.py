# SPDX-License-Identifier: Apache-2.0
"""A WebSocket to an execution: input and output, orders, slow readers on both sides."""

import http.client
import json
import re

import pytest

from support import host
from support.daemon import is_sanitized
from support.sessions import V1, Session, needs_freezer
from support.websocket import BINARY, TEXT, Closed, Refused, WebSocket

pytestmark = pytest.mark.phases("system")


class Attached(WebSocket):
    """What the execution shows."""

    def __init__(self, session, execution, query="", **kw):
        super().__init__(session.client.address, f"{V1}/executions/{execution}/attach{query}", **kw)
        self.shown = b""
        self.exit = None
        self.errors = []

    def order(self, **order):
        self.send(json.dumps(order))

    def type(self, text):
        self.send(text.encode(), opcode=BINARY)

    def step(self):
        opcode, data = self.receive()
        if opcode == BINARY:
            self.shown += data
        elif opcode == TEXT:
            message = json.loads(data)
            self.exit = message.get("exit", self.exit)
            self.errors += [message["error"]] if "error" in message else []

    def until(self, text):
        while text.encode() not in self.shown:
            self.step()

    def rest(self):
        """Everything up to the close. Return: its code."""
        while True:
            try:
                self.step()
            except Closed as closed:
                return closed.code


def test_bytes_go_both_ways_until_the_exit(sh):
    execution = sh.start("printf 'a\\377b'; read line; echo got $line; exit 4", background=True, stdin_open=True)
    with Attached(sh, execution) as ws:
        while ws.shown != b"a\xffb":
            ws.step()
        ws.type("hello\n")
        assert ws.rest() == 1000
        assert ws.shown == b"a\xffbgot hello\n"
        assert ws.exit == {"status": "failed", "exit_code": 4, "signal": None}


def test_a_shell_on_a_terminal(sh):
    execution = sh.start("PS1='> ' exec bash --norc -i", tty={"rows": 24, "cols": 80}, env_vars={"TERM": "dumb"})
    with Attached(sh, execution) as ws:
        ws.until("> ")
        ws.order(resize={"rows": 30, "cols": 100})
        ws.type("stty size\n")
        ws.until("30 100")
        # Printed by the program: from then on it is the terminal's foreground.
        ws.type("sh -c 'echo re\\ady; exec sleep 1000'\n")
        ws.until("ready")
        ws.type("\x03")
        ws.until("^C")
        ws.type("echo $((6 * 7))\n")
        ws.until("\r\n42\r\n")
        # Job control: a stopped job, and a signal for what is in the foreground.
        ws.type("sh -c 'echo going; exec sleep 1000'\n")
        ws.until("\ngoing\r\n")
        ws.order(signal="TSTP")
        ws.until("Stopped")
        ws.type("kill -9 %1; disown %1; exit 5\n")  # a job that is not dead yet would keep the shell
        assert ws.rest() == 1000
        assert ws.exit["exit_code"] == 5, ws.shown
    # Who comes later reads the same, and may leave out what he has.
    with Attached(sh, execution) as again:
        assert again.rest() == 1000 and again.shown == ws.shown and again.exit == ws.exit
    with Attached(sh, execution, "?after=1000000") as late:
        assert late.rest() == 1000 and late.shown == b"" and late.exit == ws.exit


def test_wrong_orders_change_nothing(sh):
    execution = sh.start("echo up; read line; echo got $line", background=True, stdin_open=True)
    orders = ["nothing", "{}", '{"resize": 1}', '{"resize": {"rows": 0, "cols": 1}}', '{"resize": {"rows": 5, "cols": 5}}',
              '{"signal": "WINCH"}', '{"signal": 2}', '{"eof": 1}', '{"eof": true, "signal": "INT"}']
    with Attached(sh, execution) as ws:
        ws.until("up")
        for order in orders:
            ws.send(order)
        while len(ws.errors) < len(orders):
            ws.step()
        assert "no terminal" in json.dumps(ws.errors[4]) and "must be INT" in json.dumps(ws.errors[5]), ws.errors
        ws.type("on")
        ws.order(eof=True)
        assert ws.rest() == 1000
        assert ws.shown == b"up\ngot on\n"


def test_signals_reach_the_program(sh):
    execution = sh.start("trap 'echo caught; exit 6' TERM; echo up; while :; do sleep 0.01; done", background=True)
    with Attached(sh, execution) as ws:
        ws.until("up")
        ws.order(signal="TERM")
        assert ws.rest() == 1000
        assert ws.exit["exit_code"] == 6 and b"caught" in ws.shown


def test_a_client_that_does_not_read_holds_up_the_terminal_only(daemon, sh):
    """The program waits; neither the daemon nor the agent keeps what it would write."""
    execution = sh.start("i=0; while [ $i -lt 3000 ]; do head -c 20000 /dev/zero | tr '\\0' x; i=$((i + 1)); "
                         "echo $i > progress; done; echo done", tty={})
    before = host.rss_kib(daemon.pid)
    with Attached(sh, execution) as ws:
        ws.until("xx")

        def stuck():
            """Twice the same number, with work in between."""
            first = sh.run("cat progress")["stdout"]
            sh.run("sleep 0.3")
            return first == sh.run("cat progress")["stdout"] and first.strip()  # none yet, or just being written

        assert 0 < int(host.wait_until(stuck, 60, "the program waits for the client")) < 2900
        assert host.rss_kib(daemon.pid) - before < 64 * 1024
    # The client has left: nothing holds the program up.
    result = sh.result(execution, 60)
    assert result["stdout"].endswith("done\r\n")


@pytest.mark.parametrize("fields", [{"background": True}, {}], ids=["background", "queue"])
def test_a_program_that_does_not_read_holds_up_the_client(daemon, sh, fields):
    execution = sh.start("echo up; sleep 1000", stdin_open=True, **fields)
    piece = b"y" * 60000
    with Attached(sh, execution) as ws:
        ws.until("up")
        before = host.rss_kib(daemon.pid)
        ws.sock.settimeout(2)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 100_000_000:
                ws.send(piece, opcode=BINARY)
                sent += len(piece)
        assert sent < 50_000_000 and host.rss_kib(daemon.pid) - before < 32 * 1024
    assert sh.client.post(f"{V1}/executions/{execution}/cancel", {}).status == 200
    assert sh.result(execution)["status"] == "cancelled"


def test_what_is_refused(sh):
    execution = sh.start("echo on", background=True)
    sh.result(execution)
    with pytest.raises(Refused) as refused:
        Attached(sh, "exec_20200101_00000000")
    assert refused.value.status == 404
    with pytest.raises(Refused) as refused:
        Attached(sh, execution, headers={"Origin": "http://evil.example"})
    assert refused.value.status == 403
    answer = sh.client.get(f"{V1}/executions/{execution}/attach")
    assert answer.status == 426 and answer.headers["Upgrade"] == "websocket"
    assert re.search("after", repr(sh.client.get(f"{V1}/executions/{execution}/attach?after=x")))


def test_a_record_that_was_read_again_has_no_stop(make_daemon):
    """A client is behind when its execution ends; the record leaves the memory, comes back, and the client closes."""
    daemon = make_daemon(config="executions: {keep: 2}\n").start()
    with daemon.client() as client:
        session = Session(client, mode="persistent", language="shell")
        execution = session.start("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo up; read line", background=True, stdin_open=True)
        with Attached(session, execution):
            session.wait_for_output(execution, "up")
            assert client.post(f"{V1}/executions/{execution}/stdin", {"data": "\n", "end": True}).status == 200
            assert session.result(execution)["status"] == "success"
            for _ in range(4):
                session.run("true")
            assert session.result(execution)["status"] == "success"
        assert session.run("echo 42")["stdout"] == "42\n"
        assert session.delete().status == 200
        assert daemon.process.poll() is None, daemon.log()


@needs_freezer
def test_signals_to_a_paused_session_do_not_pile_up(sh, daemon):
    """The same signal waits once; the restart then has room for its own."""
    executions = [sh.start("trap 'echo usr' USR1; echo up; while :; do sleep 0.1; done", background=True) for _ in range(3)]
    with Attached(sh, executions[0]) as ws:
        ws.until("up")
        sh.act("pause")
        before = host.rss_kib(daemon.pid)
        burst = b"".join([ws.frame(json.dumps({"signal": "USR1"}).encode())] * 1000)
        for _ in range(200):
            ws.sock.sendall(burst)
        ws.order(resize={"rows": 0, "cols": 0})  # refused: what came before was handled
        while not ws.errors:
            ws.step()
        assert is_sanitized() or host.rss_kib(daemon.pid) - before < 16 * 1024
        assert sh.client.post(f"/api/v1/sandboxes/{sh.id}/restart", {}).status == 200
        ws.rest()
    assert sh.run("echo 42")["stdout"] == "42\n"


# Keys of pages, which cannot add headers


def test_a_key_may_be_offered_as_a_protocol(make_daemon):
    """The answer names the other protocol, never the key; a key of another place, a second one, or one without an upgrade is refused."""
    daemon = make_daemon(tcp=True).start()
    with daemon.client() as client:
        made = client.post(f"{V1}/keys", {"tenant": "default", "scopes": ["execute", "sessions", "read"]}).json
        key, session = made["key"], Session(client, mode="persistent")
        ident = session.start("print(input())", stdin_open=True)
        path = f"{V1}/executions/{ident}/attach"

        def connect(*protocols, **headers):
            return WebSocket(daemon.tcp_address(), path, {"Sec-WebSocket-Protocol": ", ".join(protocols), **headers})

        socket = connect("millibox", f"millibox.key.{key}")
        assert socket.headers["sec-websocket-protocol"] == "millibox"
        socket.close()
        same = connect("millibox", f"millibox.key.{key}", Authorization=f"Bearer {key}")
        same.close()
        wrong = key[:-1] + ("a" if key[-1] != "a" else "b")
        for status, protocols, headers in [
                (401, ["millibox"], {}), (401, ["millibox", f"millibox.key.{wrong}"], {}), (401, ["millibox", f"millibox.key.{key}x"], {}),
                (401, ["millibox", "millibox.key."], {}), (401, ["millibox", f"MILLIBOX.KEY.{key}"], {}), (401, ["millibox", key], {}),
                (400, [f"millibox.key.{key}", f"millibox.key.{wrong}"], {}), (400, [f"millibox.key.{key}"], {"X-API-Key": key}),
                (400, [f"millibox.key.{key}"], {"Authorization": f"Bearer {wrong}"})]:
            with pytest.raises(Refused) as refused:
                connect(*protocols, **headers)
            assert refused.value.status == status and key not in refused.value.body.decode(), (protocols, refused.value)
        connection = http.client.HTTPConnection(*daemon.tcp_address(), timeout=host.HANG_S)
        connection.request("GET", f"{V1}/sessions", headers={"Sec-WebSocket-Protocol": f"millibox, millibox.key.{key}"})
        assert connection.getresponse().status == 401
        connection.close()
        session.delete()
    assert key not in daemon.log() and key not in (daemon.home / "state/audit.log").read_text()


def test_messages_count_as_requests(make_daemon):
    """A client over its tenant's quota waits; nothing of its input is lost."""
    with make_daemon().start().client() as client:
        session = Session(client, mode="persistent", language="shell")
        execution = session.start("echo up; cat", background=True, stdin_open=True)
        with Attached(session, execution) as ws:
            ws.until("up")
            before = client.get("/metrics").body.decode()
            assert "sandbox_attached_clients 1" in before and 'sandbox_background_executions{kind="program"} 1' in before
            quotas = {"quotas": {"requests_per_second": 5, "burst": 10}}
            assert client.request("PATCH", f"{V1}/tenants/default", quotas).status == 200
            for i in range(30):
                ws.type(f"<{i}>")
            ws.until("<29>")
            host.wait_until(lambda: client.get(session.path).status == 429, 10, "they have used the quota")
            ws.order(eof=True)
            assert ws.rest() == 1000
            assert ws.shown == b"up\n" + b"".join(b"<%d>" % i for i in range(30))
            assert ws.errors == []
        text = host.wait_until(lambda: metrics_with(client, "sandbox_attached_clients 0"), 20)
        sent = sum(len(f"<{i}>") for i in range(30))
        assert f'sandbox_attach_bytes_total{{direction="in"}} {sent}' in text
        assert f'sandbox_attach_bytes_total{{direction="out"}} {sent + 3}' in text


def metrics_with(client, line):
    answer = client.get("/metrics")
    return answer.body.decode() if line in answer.body.decode() else None
