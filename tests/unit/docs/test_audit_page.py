"""docs/audit.md has one section a step, in order, and names each error that the audit's own rooms raise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from moeplan.auditing.steps import STEP_NAMES
from tests.unit.docs.pages import ROOT, sections

_PAGE = ROOT / "docs/audit.md"
_SOURCES = (
    "auditing/*.py",
    "attest/attestations.py",
    "attest/trust.py",
    "bundle/archive.py",
    "bundle/container.py",
    "bundle/directory.py",
    "bundle/inventory.py",
    "bundle/ustar.py",
    "model/series.py",
    "model/tables.py",
    "signing/sigstore_bundle.py",
    "signing/statement.py",
    "wire/parquet_footer.py",
)
_MAKERS = {"Issue", "fault", "_fault", "_raise", "_error"}
_WRITING = {"duplicate_name", "wrong_type"}
"""Raised where a statement is made, and turned into another code where one is read."""


def _codes() -> Iterator[str]:
    import moeplan

    package = Path(moeplan.__file__).parent
    for pattern in _SOURCES:
        for path in package.glob(pattern):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MAKERS:
                    code = node.args[1] if len(node.args) > 1 else None
                    if isinstance(code, ast.Constant) and re.fullmatch("[a-z_]+", str(code.value)):
                        yield str(code.value)


def test_one_section_a_step_in_their_order() -> None:
    titles = [title for title in sections(_PAGE, 3) if re.match(r"[0-9]+ ", title)]
    assert titles == [f"{number} {name}" for number, name in enumerate(STEP_NAMES, 1)]


def test_each_step_says_what_it_refuses_what_holds_by_then_and_how_to_check_it() -> None:
    for title, text in sections(_PAGE, 3).items():
        marks = re.findall(r"^- (Refuses|By then|By hand):", text, re.MULTILINE)
        assert marks == ["Refuses", "By then", "By hand"], title


def test_every_error_of_the_audits_rooms_is_named_by_some_step() -> None:
    told = set(re.findall("`([a-z_]+)`", "".join(sections(_PAGE, 3).values())))
    raised = set(_codes()) - _WRITING
    assert len(raised) > 40
    assert raised - told == set()
