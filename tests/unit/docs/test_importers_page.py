"""docs/importers.md shows every format that `import auto` knows, word for word and in order."""

from __future__ import annotations

from moeplan.importers.recognise import HEAD_BYTES, WHOLE_BYTES
from moeplan.importers.recognised_formats import FORMATS, SHAPES, Format
from tests.unit.docs.pages import ROOT, sections, table_rows

PAGE = ROOT / "docs" / "importers.md"
FORMS = {
    "object": "JSON object",
    "items": "JSON array",
    "lines": "JSON Lines",
    "text": "text",
    "binary": "bytes",
}


def row(one: Format) -> list[str]:
    read_by = f"`{one.command}`" if one.command else "–"
    return [one.tool, FORMS[one.shape], one.sure, read_by, one.note.replace("|", "\\|")]


def test_every_format_stands_in_the_table() -> None:
    shown = table_rows(sections(PAGE, 2)["What is recognised"])
    wanted = [row(one) for one in FORMATS]
    assert shown == [one for number, one in enumerate(wanted) if one not in wanted[:number]]
    assert set(FORMS) == set(SHAPES)


def test_the_caps_are_those_of_the_code() -> None:
    text = PAGE.read_text("utf-8")
    assert f"{WHOLE_BYTES >> 20} MiB" in text
    assert f"{HEAD_BYTES >> 10} KiB" in text
