# SPDX-License-Identifier: Apache-2.0
"""millibox-remote as its daemon sees it: answers come when a server has given them, in any order."""

import pathlib
import re

from support.engine import BUILD, HANG_S, ROOT, Engine

CODES = re.findall(r"^ERROR_CODE\((\w+)", (pathlib.Path(ROOT) / "lib/base/error_codes.def").read_text(), re.M)


class Failed(Exception):
    """FAILED: its code and its sentence."""

    def __init__(self, fields):
        self.code, self.field, self.text = CODES[fields["code"]], fields["field"], fields["text"]
        super().__init__(f"{self.code}: {self.field} {self.text}")


class RemoteEngine(Engine):
    """@home is its caller's, and may be of several."""

    def __init__(self, sock, home, *words, handover="custody-test"):
        super().__init__(BUILD / "millibox-remote", ["--runtime", "docker", "--socket", str(sock), "--handover", handover, *words], home)
        self.events = []  # replies that nobody waited for yet

    def wait(self, matches):
        """The first reply, old or new, for which @matches(op, seq, box)."""
        for reply in self.events:
            if matches(*reply[:3]):
                self.events.remove(reply)
                return reply
        while True:
            reply = self.receive()
            assert reply, f"the engine is gone: {self.said()}"
            if matches(*reply[:3]):
                return reply
            self.events.append(reply)

    def answer(self, seq):
        reply = self.wait(lambda op, of, box: of == seq)
        if reply[0] == "FAILED":
            raise Failed(reply[3])
        return reply

    def ask(self, op, *args, **fields):
        return self.answer(self.send(op, *args, **fields))

    def freeze(self, name, frozen):
        assert self.ask("FREEZE", name, frozen=frozen)[0] == "FROZEN"

    def gone(self, name):
        """GONE without a DESTROY. Return: the wait status."""
        return self.wait(lambda op, seq, box: (op, seq, box) == ("GONE", 0, name))[3]["status"]

    def exit_status(self):
        return self.process.wait(HANG_S)

    def close(self):
        if self.process.poll() is None:
            self.end()
        self.log.close()
