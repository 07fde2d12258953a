# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md is true: its paths are served, and the tests it names exist."""

import re

import pytest
from support.daemon import ROOT

pytestmark = pytest.mark.phases("system")

PAGE = (ROOT / "docs/compatibility.md").read_text()
ROWS = re.findall(r"^\| `(GET|POST|PUT|PATCH|DELETE) (/\S*)` \|(.*)$", PAGE, re.MULTILINE)


def test_every_path_of_the_table_is_described_by_the_daemon(client):
    paths = client.get("/openapi.json").json["paths"]
    assert len(ROWS) > 50
    missing = [f"{method} {path}" for method, path, _ in ROWS
               if method.lower() not in paths.get(path.replace("{path...}", "{path}"), {})]
    assert missing == []


def test_every_path_of_the_shared_environment_is_in_the_table(client):
    served = {(method.upper(), path) for path, item in client.get("/openapi.json").json["paths"].items()
              if path.startswith("/workspace/se/") for method in item if method != "parameters"}
    assert served == {(m, p.replace("{path...}", "{path}")) for m, p, _ in ROWS if p.startswith("/workspace/se/")}


def test_every_path_of_the_sandbox_runner_is_in_the_table(client):
    """One version each: the others repeat the rows."""
    listed = {(m, p.replace("{path...}", "{path}")) for m, p, _ in ROWS}
    served = {(method.upper(), path) for path, item in client.get("/openapi.json").json["paths"].items()
              for method in item if re.match(r"(/api(/v[12])?/(sandboxes|tools|resources|prompts)\b|/mcp/tools)", path)}
    assert len(served) > 60
    for method, path in served:
        versions = {re.sub(r"^/api(/v[12])?/", f"/api/{v}/", path) for v in ("v1", "v2")} if path.startswith("/api/") else {path}
        assert any((method, p) in listed for p in versions), f"{method} {path}"
        assert all((method, p) in served for p in versions if (method, p) in listed)


EXAMPLES = re.findall(r"^\| [^|]+ \| [^|]+ \| (\d+) \| (\d+) \|([^|]*)\| (test_\w+\.py)::(\w+) \|$", PAGE, re.MULTILINE)


def test_the_table_of_examples_adds_up():
    """Each row names a test that exists, and a reason for every call that does not end as documented."""
    section = PAGE.split("## Documented examples")[1].split("\n## ")[0]
    assert len(EXAMPLES) == sum(line.startswith("| ") for line in section.splitlines()) - 2 > 15
    for calls, same, reasons, file, name in EXAMPLES:
        found = [path for path in (ROOT / "tests").glob(f"**/{file}") if re.search(rf"^def {name}\(", path.read_text(), re.MULTILINE)]
        assert len(found) == 1, f"{file}::{name}"
        assert int(calls) - int(same) == sum(int(number) for number in re.findall(r"\b(\d+): ", reasons)), reasons


def test_the_tests_it_names_exist():
    named = {name for _, _, rest in ROWS for name in re.findall(r"test_\w+\.py", rest)}
    assert named and [name for name in sorted(named) if not any((ROOT / "tests").glob(f"*/{name}"))] == []
    assert all(re.search(r"test_\w+\.py", rest) for _, _, rest in ROWS)
