# SPDX-License-Identifier: Apache-2.0
"""docs/security-rules.md is complete: it has every rule of the threat model, and the tests it names exist."""

import re

import pytest
from support.daemon import ROOT

pytestmark = pytest.mark.phases("system")

PAGE = (ROOT / "docs/security-rules.md").read_text()
MODEL = (ROOT / "docs/threat-model.md").read_text()
FAMILIES = "API BLD CG FA FD FS ID IM LC LL NET NS OUT RES SC SEC XT ZY".split()
RULE = rf"\b(?:{'|'.join(FAMILIES)})-\d+"
VERDICTS = ("yes", "in part: ", "no: ", "not applicable: ")


def rows(text=PAGE):
    """(rule, the other cells) of each row of the tables."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if len(cells) == 5 and re.match(RULE, cells[0]):
            yield cells[0], cells[1:]


def rules_in(text):
    """Ids in a text; `SC-1 … SC-9` and `FA-1 to FA-7` mean those between, too."""
    found = set(re.findall(RULE, text))
    for family, first, last in re.findall(r"\b([A-Z]+)-(\d+) (?:…|to) \1-(\d+)", text):
        found |= {f"{family}-{number}" for number in range(int(first), int(last) + 1)}
    return found


def names_in(text):
    return re.findall(r"`([\w/]+/test_\w+\.(?:py|c))::(\w+)`", text)


def exists(path, name):
    file = ROOT / "tests" / path
    definition = rf"^def {name}\(" if path.endswith(".py") else rf"^static void {name}\(void \*\*"
    return file.is_file() and re.search(definition, file.read_text(), re.MULTILINE) is not None


def test_every_rule_of_the_threat_model_has_a_row():
    listed = {rule for first, _ in rows() for rule in re.findall(RULE, first)}
    assert len(listed) > 80
    assert sorted(rules_in(MODEL) - listed) == []


def test_every_family_is_without_a_gap():
    listed = {rule for first, _ in rows() for rule in re.findall(RULE, first)}
    for family in FAMILIES:
        numbers = sorted(int(rule.split("-")[1]) for rule in listed if rule.startswith(family + "-"))
        assert numbers == list(range(1, len(numbers) + 1)), family


def test_the_tests_it_names_exist():
    named = set(names_in(PAGE))
    assert len(named) > 200
    assert sorted(f"{path}::{name}" for path, name in named if not exists(path, name)) == []


def test_every_row_names_a_test_and_a_verdict():
    for rule, (_, shown, control, holds) in rows():
        assert names_in(shown), rule
        assert control in ("–", "inside") or names_in(control), rule
        assert holds.startswith(VERDICTS), (rule, holds)
        if holds.startswith(("in part", "no:")):
            assert re.search(r"\]\([\w/-]+\.md", holds), f"{rule}: no page says so"


def test_control_a_missing_test_and_a_missing_rule_are_detected():
    assert not exists("security/test_planted.py", "test_that_nobody_wrote")
    assert not exists("security/test_nothing.py", "test_one_execution_does_not_run_what_was_planted")
    assert rules_in("SC-1 … SC-3, XT-1") == {"SC-1", "SC-2", "SC-3", "XT-1"}
    assert len(list(rows("| XT-9 | demand | `a/test_b.py::c` | – | yes |"))) == 1
