# SPDX-License-Identifier: Apache-2.0
"""One client of the soak: its sessions, and every operation on them."""

import io
import json
import tarfile
import time

from support.identity import KeyClient
from support.sessions import V1

# Executions of a session before it is deleted, so that sessions come and go.
LIFE = 12
# 409: the state had changed; 404: ended and forgotten; 429: full, by design; 503: the daemon restarts, or a box died.
TOLERATED = {400, 404, 408, 409, 429, 503}
BYTES = {"Content-Type": "application/octet-stream"}
SLEEP = "import time; time.sleep({})"


class Worker:
    def __init__(self, soak, rng, number):
        self.soak, self.rng, self.number = soak, rng, number
        self.client = soak.daemon.client(timeout=60)
        self.sessions = {}  # id -> Use
        self.made = 0

    def close(self):
        self.client.close()

    def reconnect(self):
        self.client.close()
        time.sleep(0.1)
        self.client = self.soak.daemon.client(timeout=60)

    def call(self, name, method, path, body=None, headers=None, client=None):
        answer = (client or self.client).request(method, path, body=body, headers=headers)
        self.soak.count(name)
        if answer.status >= 300 and answer.status not in TOLERATED:
            self.soak.problem(f"{name}: {method} {path}: {answer}\n{self.soak.told_of(answer)}")
        return answer

    def step(self):
        if not self.sessions or (len(self.sessions) < 6 and self.rng.random() < 0.2):
            self.make()
            return
        names = list(OPERATIONS)
        operation = self.rng.choices(names, [OPERATIONS[n] for n in names])[0]
        session = self.rng.choice(list(self.sessions))
        self.sessions[session].steps += 1
        getattr(self, operation)(session)
        if session in self.sessions and self.sessions[session].steps > LIFE:
            self.rng.choices([self.delete, self.abandon, self.terminate], [7, 2, 1])[0](session)

    # Sessions.

    def make(self):
        mode = self.rng.choice(["persistent", "persistent", "ephemeral"])
        self.made += 1
        name = f"soak-{self.number}-{self.made}"
        fields = {"mode": mode, "session_id": name, "language": self.rng.choice(["python", "python", "shell"])}
        life = self.soak.life
        answer = self.call("make", "POST", f"{V1}/sessions", fields)
        if answer.status in (200, 201):
            self.sessions[name] = Use(fields["language"], mode, life)

    def delete(self, session):
        self.check_count(session)
        self.soak.forget(session)
        self.sessions.pop(session, None)
        self.call("delete", "DELETE", f"{V1}/sessions/{session}")

    def abandon(self, session):
        """Abandon a session: it must end by itself."""
        self.soak.abandoned(session)
        self.sessions.pop(session, None)

    def terminate(self, session):
        self.sessions.pop(session, None)
        answer = self.call("terminate", "POST", f"{V1}/sessions/{session}/terminate")
        if answer.status == 200 and answer.json["status"] != "terminated" and answer.json["status"] != "failed":
            self.soak.problem(f"terminate: {answer}")

    def check_count(self, session):
        """The session counts its acknowledged executions; those whose answer was cut off may count."""
        use = self.sessions[session]
        answer = self.call("count", "GET", f"{V1}/sessions/{session}")
        use.lives(self.soak.life)
        least, most = use.accepted - use.lost, use.accepted + use.doubtful
        if answer.status == 200 and not least <= answer.json["executions"] <= most:
            self.soak.problem(f"{session}: {least} to {most} executions expected of {use.answers}: {answer}")

    # Executions.

    def code(self, session, python, shell):
        return self.rng.choice(python if self.sessions[session].language == "python" else shell)

    def execute(self, name, session, code, headers=None, **fields):
        use = self.sessions[session]
        use.lives(self.soak.life)
        use.doubtful += 1
        answer = self.call(name, "POST", f"{V1}/sessions/{session}/execute", {"code": code, **fields}, headers)
        use.answers.append((name, answer.status))
        # A daemon that is stopping, or has lost the box, may have accepted it before it failed.
        use.doubtful -= answer.status < 500
        # It continues if the wait ended first.
        accepted = answer.status == 200 or (answer.status == 408 and answer.json["error_code"] == "Sandbox.ExecTimeout")
        use.accepted += accepted
        use.at_risk += accepted
        return answer

    def submit(self, name, session, code, **fields):
        """Return: the id of an acknowledged execution, which must end and stay readable; or None."""
        answer = self.execute(name, session, code, **fields)
        if answer.status != 200:
            return None
        self.sessions[session].acknowledged(self.soak.life)
        self.soak.acknowledge(answer.json["execution_id"], session)
        return answer.json["execution_id"]

    def run_sync(self, session):
        code = self.code(session, ["x = 1", "print('y' * 1000)", "1/0", "import os; os._exit(3)", "sum(range(10000))",
                                   "open('made.bin', 'wb').write(bytes(5000))"],
                         ["x=1", "echo $x", "false", "exit 3", "yes | head -c 20000", "sleep 50 & echo $!"])
        self.execute("run", session, code, wait=True, timeout=5)

    def run_async(self, session):
        code = self.code(session, ["print(1)", SLEEP.format(0.3), "raise SystemExit(2)", "while True: pass",
                                   "bytearray(1 << 30)"], ["echo 1", "sleep 0.3", "exit 2", "while :; do :; done"])
        self.submit("submit", session, code, timeout=1)

    def stream(self, session):
        accept = self.rng.choice(["application/x-ndjson", "text/event-stream"])
        self.execute("stream", session, self.code(session, ["print(1); print(2)"], ["echo 1; echo 2"]), {"Accept": accept},
                     timeout=5)

    def reattach(self, session):
        """Events of a running execution from a number on: the last one is its end."""
        code = self.code(session, ["import time\nfor i in range(5): print(i, flush=True); time.sleep(0.05)"],
                         ["for i in 1 2 3; do echo $i; sleep 0.05; done"])
        execution = self.submit("submit", session, code, timeout=5)
        if not execution:
            return
        answer = self.call("reattach", "GET", f"{V1}/executions/{execution}/events?after={self.rng.randrange(3)}",
                           headers={"Accept": "application/x-ndjson"})
        if answer.status != 200:
            return
        kinds = [json.loads(line)["event"] for line in answer.body.decode().splitlines() if line]
        if kinds and kinds[-1] not in ("end", "error"):
            raise ConnectionError("the stream was cut off")

    def stdin(self, session):
        code = self.code(session, ["print(input())"], ["read x; echo $x"])
        execution = self.submit("submit", session, code, timeout=5, stdin_open=True)
        if execution:
            self.call("stdin", "POST", f"{V1}/executions/{execution}/stdin", {"data": "word\n", "end": True})

    def cancel(self, session):
        execution = self.submit("submit", session, self.code(session, [SLEEP.format(30)], ["sleep 30"]), timeout=40)
        if execution:
            self.call("cancel", "POST", f"{V1}/executions/{execution}/cancel")

    def interrupt(self, session):
        if self.submit("submit", session, self.code(session, [SLEEP.format(3)], ["sleep 3"]), timeout=4):
            self.call("interrupt", "POST", f"{V1}/sessions/{session}/interrupt")

    def pause(self, session):
        if self.rng.random() < 0.5:
            self.submit("submit", session, self.code(session, [SLEEP.format(0.5)], ["sleep 0.5"]), timeout=5)
        self.call("pause", "POST", f"{V1}/sessions/{session}/pause")
        if self.rng.random() < 0.3:
            time.sleep(0.2)
        self.call("resume", "POST", f"{V1}/sessions/{session}/resume")

    def keepalive(self, session):
        self.call("keepalive", "POST", f"{V1}/sessions/{session}/keepalive")

    def once(self, session):
        del session
        body = self.rng.choice([
            {"language": "shell", "code": "echo hi", "timeout": 40},
            {"language": "python", "code": "print(open('f').read())", "files": {"f": "given"}, "timeout": 40},
            {"language": "python", "handler_code": "def handler(event):\n    return event['n'] + 1", "event": {"n": 1}, "timeout": 40},
        ])
        before = self.soak.attacks
        answer = self.call("once", "POST", f"{V1}/execute", body)
        if answer.status != 200 or answer.json["status"] == "success":
            return
        # Its box or program may have been killed, but only while kills are on.
        killed = answer.json["status"] == "crashed" or answer.json["signal"] == 9
        if not killed or (before % 2 == 0 and before == self.soak.attacks):
            self.soak.problem(f"once: {answer}")

    # Files.

    def files(self, session):
        base = f"{V1}/sessions/{session}/files"
        path = f"{base}/f{self.rng.randrange(4)}.bin"
        verb = self.rng.choice(["PUT", "PUT", "GET", "RANGE", "STAT", "DELETE", "LIST", "MKDIR", "MOVE", "TAR", "UNTAR"])
        calls = {
            "PUT": ("PUT", path, bytes(self.rng.randrange(20000)), BYTES),
            "GET": ("GET", path), "RANGE": ("GET", path, None, {"Range": "bytes=0-9"}), "STAT": ("GET", path + "?stat=1"),
            "DELETE": ("DELETE", path), "LIST": ("GET", base + "?recursive=1"),
            "MKDIR": ("POST", base + "/mkdir", {"path": f"d{self.rng.randrange(3)}"}),
            "MOVE": ("POST", base + "/move", {"path": "f0.bin", "to": "d0/f9.bin", "replace": True}),
            "TAR": ("GET", base + "?format=tar"), "UNTAR": ("PUT", base + "/d1?format=tar", self.archive(), BYTES),
        }
        answer = self.call(f"file {verb.lower()}", *calls[verb][:2], *calls[verb][2:])
        if verb == "TAR" and answer.status == 200:
            with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
                tar.getmembers()

    def archive(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for i in range(self.rng.randrange(1, 5)):
                info = tarfile.TarInfo(f"in/{i}")
                info.size = self.rng.randrange(3000)
                tar.addfile(info, io.BytesIO(bytes(info.size)))
        return out.getvalue()

    # The rest.

    def look(self, session):
        tail = self.rng.choice(["", "/stats", "/executions", "/status"])
        self.call("look", "GET", f"{V1}/sessions/{session}{tail}")

    def lists(self, session):
        del session
        self.call("list", "GET", self.rng.choice([
            f"{V1}/sessions?limit=20", "/metrics", f"{V1}/containers", f"{V1}/templates", "/readyz", f"{V1}/keys",
            f"{V1}/tenants", f"{V1}/policies", f"{V1}/runtimes"]))

    def template(self, session):
        """Create a template, use it in a session, check that it cannot be deleted meanwhile, delete it."""
        del session
        self.made += 1
        name = f"tpl-{self.number}-{self.made}"
        if self.call("make template", "POST", f"{V1}/templates", {"id": name, "name": name, "image": "host"}).status != 201:
            return
        user = f"soak-{self.number}-{self.made}"
        answer = self.call("make", "POST", f"{V1}/sessions", {"session_id": user, "template_id": name, "mode": "persistent"})
        if answer.status in (200, 201):
            self.call("delete template", "DELETE", f"{V1}/templates/{name}")
            self.soak.forget(user)
            self.call("delete", "DELETE", f"{V1}/sessions/{user}")
        self.call("delete template", "DELETE", f"{V1}/templates/{name}")

    def key(self, session):
        """A tenant that does not see the others, and a key that is revoked."""
        tenant = f"tenant{self.number}"
        self.call("make tenant", "POST", f"{V1}/tenants", {"name": tenant})
        answer = self.call("make key", "POST", f"{V1}/keys", {"tenant": tenant})
        if answer.status != 201:
            return
        client = KeyClient(self.soak.daemon.socket, answer.json["key"], timeout=60)
        try:
            if self.call("as tenant", "GET", f"{V1}/sessions/{session}", client=client).status not in (404, 429, 503):
                self.soak.problem(f"{tenant} sees {session}")
            self.call("as tenant", "POST", f"{V1}/execute", {"language": "shell", "code": "echo t", "timeout": 5}, client=client)
            self.call("revoke", "DELETE", f"{V1}/keys/{answer.json['id']}")
            if client.request("GET", f"{V1}/sessions").status not in (401, 429, 503):
                self.soak.problem("a revoked key is taken")
        finally:
            client.close()

    def nonsense(self, session):
        body = self.rng.choice([b"{", b'{"code": 1}', b'{"no": "such"}', b"[]"])
        answer = self.call("nonsense", "POST", f"{V1}/sessions/{session}/execute", body, {"Content-Type": "application/json"})
        if answer.status < 400:
            self.soak.problem(f"nonsense was taken: {body} {answer}")


class Use:
    """What a client knows of one of its sessions. An execution that the client waited for may not be on disk when the daemon is
    killed, since only a ticket promises that; it is once a later execution of the session is acknowledged."""

    def __init__(self, language, mode, life):
        self.language, self.mode, self.life = language, mode, life
        self.steps = self.accepted = self.doubtful = 0
        self.answers = []  # to executions
        self.at_risk = 0  # accepted by this daemon, maybe not on disk yet
        self.lost = 0  # by earlier daemons, at most

    def lives(self, life):
        """Note which daemon answers."""
        if life != self.life:
            self.life, self.lost, self.at_risk = life, self.lost + self.at_risk, 0

    def acknowledged(self, life):
        """An acknowledgement by another daemon tells nothing about earlier executions."""
        if life == self.life:
            self.at_risk = 0


OPERATIONS = {
    "run_sync": 20, "run_async": 12, "stream": 6, "reattach": 4, "stdin": 4, "cancel": 3, "interrupt": 2, "pause": 4,
    "keepalive": 2, "once": 4, "files": 14, "look": 8, "lists": 5, "template": 2, "key": 1, "nonsense": 3,
}
