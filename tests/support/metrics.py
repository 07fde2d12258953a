# SPDX-License-Identifier: Apache-2.0
"""A strict parser of /metrics."""

import re

_SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')
TYPES = ("counter", "gauge", "histogram")


class Metrics:
    """Samples by name and labels, and the declared types."""

    def __init__(self, text):
        assert text.endswith("\n")
        self.types, self.samples = {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert kind in TYPES and name not in self.types, line
                self.types[name] = kind
            elif not line.startswith("# HELP "):
                self._take(line)

    def _take(self, line):
        match = _SAMPLE.fullmatch(line)
        assert match, f"not a sample: {line!r}"
        name, labels, value = match.groups()
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        assert name in self.types or self.types.get(base) == "histogram", f"before its type: {line!r}"
        key = (name, frozenset(_LABEL.findall(labels or "")))
        assert key not in self.samples, f"twice: {line!r}"
        self.samples[key] = float(value)

    def value(self, name, **labels):
        return self.samples.get((name, frozenset(labels.items())), 0)

    def total(self, name, **labels):
        """The sum over all series that have at least these labels."""
        wanted = set(labels.items())
        return sum(v for (n, have), v in self.samples.items() if n == name and wanted <= have)

    def label_values(self, name, label):
        return {dict(have)[label] for (n, have) in self.samples if n == name and label in dict(have)}


def read(client):
    answer = client.get("/metrics")
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Metrics(answer.body.decode())
