# SPDX-License-Identifier: Apache-2.0
"""SandboxRunner's client, as far as the daemon sees it."""


def ok(answer, status=200):
    assert answer.status == status, answer
    return answer.json if answer.body else None


class Runner:
    """Sends what the client sends, and reads only what it reads."""

    def __init__(self, client):
        self.client = client

    def ask(self, tool, **arguments):
        return self.client.post(f"/mcp/tools/{tool}", arguments)

    def call(self, tool, **arguments):
        answer = ok(self.ask(tool, **arguments))
        assert isinstance(answer["text"], str) and isinstance(answer["is_error"], bool)
        assert isinstance(answer["metadata"], dict)
        return answer

    def done(self, tool, **arguments):
        answer = self.call(tool, **arguments)
        assert not answer["is_error"], answer
        return answer["metadata"]

    def run(self, tool, **arguments):
        """run_*: every key of a result has its original type."""
        answer = self.call(tool, **{"packages": [], "files": {}, "options": {}, "environment": {}, "timeout": 30, **arguments})
        types = {"language": str, "exit_code": int, "stdout": str, "stderr": str, "duration": float, "timed_out": bool}
        for key, kind in types.items():
            assert type(answer["metadata"][key]) is kind, (key, answer["metadata"][key])
        return answer
