"""Facts as files of a package: in the order of their names, each with its origin."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from moeplan.errors import InputError
from moeplan.facts.files import read_fact_files, rules_of

PLAIN = {
    "title": "the title",
    "kind": "lint",
    "severity": "error",
    "silent": "no",
    "basis": "documented",
    "consequence": "c",
    "remedy": "r",
    "sources": [{"source": "a document"}],
}


def written(*ids: str) -> str:
    return json.dumps([{"id": one, **PLAIN} for one in ids])


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Return a package of two files, whose names sort against the order of writing, and a text that is no fact."""
    name = f"made_facts_{abs(hash(request.node.name))}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "b.json").write_text(written("F-2", "F-3"))
    (folder / "a.json").write_text(written("F-1"))
    (folder / "notes.txt").write_text("no fact")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_facts_and_ids(package: str) -> None:
    assert [fact.id for fact in read_fact_files(package, "made").facts] == ["F-1", "F-2", "F-3"]
    assert [(rule.id, rule.origin) for rule in rules_of(package, "made")] == [
        ("F-1", "made"),
        ("F-2", "made"),
        ("F-3", "made"),
    ]
    assert read_fact_files(package, "made").rules() == rules_of(package, "made")


def test_an_id_in_two_files_is_refused(package: str) -> None:
    folder = Path(next(path for path in sys.path if (Path(path) / package).is_dir())) / package
    (folder / "c.json").write_text(written("F-2"))
    with pytest.raises(InputError, match="F-2"):
        read_fact_files(package, "made")
