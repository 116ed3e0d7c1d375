"""docs/facts.md names every operator, space and key there is."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from moeplan.facts.conditions import OPERATORS
from moeplan.facts.fields import SPACES
from moeplan.facts.model import BASES, EACH, Fact
from moeplan.model.fields import camel
from tests.unit.docs.pages import sections, table_rows

PAGE = Path(__file__).parents[3] / "docs" / "facts.md"


def test_spaces() -> None:
    rows = table_rows(sections(PAGE, 2)["Fields"])
    assert {name.strip("`"): meaning for name, meaning in rows} == SPACES


def test_operators() -> None:
    named = re.findall(r"`([a-z-]+)`", "".join(name for name, _ in table_rows(sections(PAGE, 2)["Conditions"])))
    assert sorted(named) == sorted([*OPERATORS, "absent", "present"])


def test_keys() -> None:
    text = PAGE.read_text("utf-8")
    keys = {camel(field.name) for field in attrs.fields(Fact)} - {"at"}
    named = set(re.findall(r"[`\"]([A-Za-z]+)", text))
    assert keys <= named, keys - named
    assert set(EACH) | {basis.split("-")[0] for basis in BASES} <= named
