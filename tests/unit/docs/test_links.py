"""Every page is reached from the README's list, and every link between pages leads to something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.docs.pages import PAGES, ROOT

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[tuple[Path, str]]:
    """Return file and anchor of each link of a page that stays in the repository."""
    found = []
    for target in _LINK.findall(_FENCED.sub("", page.read_text("utf-8"))):
        if not target.startswith(("http://", "https://")):
            file, _, anchor = target.partition("#")
            found.append(((page.parent / file).resolve() if file else page, anchor))
    return found


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives a page's headings."""
    titles = re.findall(r"^#+ (.*)$", _FENCED.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_something(page: Path) -> None:
    for file, anchor in links(page):
        assert file.exists(), file
        assert not anchor or anchor in anchors(file), f"{file}#{anchor}"


def test_the_readme_lists_every_page() -> None:
    listed = {file for file, _ in links(ROOT / "README.md")}
    assert set(PAGES) - {ROOT / "README.md"} <= listed
