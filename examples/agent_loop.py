# SPDX-License-Identifier: Apache-2.0
"""An agent: a model writes code, a sandbox runs it, the model reads what it did, until the model answers in words."""

import re
import sys

import millibox

TASK = "How many primes are there below 10000?"
COUNT = "primes = [n for n in range(2, 10000) if all(n % d for d in range(2, isqrt(n) + 1))]"


class ScriptedModel:
    """Stands for a real model: its first program has a bug, and it mends what the traceback names."""

    def __init__(self):
        self.steps = [
            f"I count them.\n```python\n{COUNT}\n```",
            f"isqrt must be imported.\n```python\nfrom math import isqrt\n{COUNT}\nlen(primes)\n```",
            "There are {observation} primes below 10000.",
        ]

    def complete(self, messages):
        return self.steps.pop(0).replace("{observation}", messages[-1]["content"].strip())


def observe(result):
    """What the model is told about a program."""
    if result.error:
        return "\n".join(result.error.traceback)
    return result.text or f"(no output, status {result.status})"


def run_agent(model, task, turns=8):
    messages = [{"role": "user", "content": task}]
    with millibox.Sandbox(memory="256Mi") as box:
        for _ in range(turns):
            answer = model.complete(messages)
            messages.append({"role": "assistant", "content": answer})
            code = re.search(r"```python\n(.*?)```", answer, re.S)
            if not code:
                return answer
            observation = observe(box.run_code(code[1], timeout=10))
            print(f"--- code\n{code[1]}--- observation\n{observation}")
            messages.append({"role": "user", "content": observation})
    raise SystemExit("the model found no answer")


if __name__ == "__main__":
    sys.exit(print(run_agent(ScriptedModel(), TASK)))
