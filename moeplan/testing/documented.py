"""Where a reader finds what an id means: the fact it is the id of, or the description of its distribution."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from moeplan.model.plugin import FindingRule

__all__ = ["facts_of", "undocumented"]

_MOST_BYTES = 16 << 20


def undocumented(rules: Iterable[FindingRule], module: str) -> list[str]:
    """Return the ids that neither a fact nor the description of the distribution that defines them tells of.

    A fact is documentation: it has a title, what happens otherwise, a remedy and sources, and ``moeplan`` shows them.

    Args:
        rules: the ids with the distribution that defines each.
        module: the module that the plugin's entry point names.
    """
    found: dict[str, tuple[set[str], str]] = {}
    missing = []
    for rule in rules:
        if rule.origin not in found:
            facts = {str(row["id"]) for row in facts_of(rule.origin, module)}
            found[rule.origin] = facts, _description(rule.origin)
        facts, description = found[rule.origin]
        if rule.id not in facts and not _names(description, rule.id):
            missing.append(rule.id)
    return missing


def facts_of(origin: str, module: str) -> Iterator[dict[str, Any]]:
    """Yield the facts in the JSON files of a distribution's package, as they are written."""
    for directory in _packages(origin, module):
        for path in sorted(directory.rglob("*.json")):
            if path.stat().st_size > _MOST_BYTES:
                continue
            try:
                rows = json.loads(path.read_bytes())
            except (ValueError, RecursionError):
                continue
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, dict) and "id" in row and "sources" in row:
                    yield row


def _packages(origin: str, module: str) -> set[Path]:
    """Return the directories of the packages of a distribution: by its name, or the plugin's where it is the same."""
    top = module.partition(":")[0].split(".")[0]
    names = {_package_name(origin), *([top] if _is_own(origin, top) else [])}
    specs = [find_spec(name) for name in sorted(names)]
    return {Path(path) for spec in specs if spec is not None for path in spec.submodule_search_locations or ()}


def _package_name(distribution_name: str) -> str:
    return distribution_name.replace("-", "_").replace(".", "_").lower()


def _is_own(origin: str, package: str) -> bool:
    """Return whether a package belongs to the distribution: its name says so, or the list of its files."""
    try:
        files = distribution(origin).files or ()
    except PackageNotFoundError:
        return False
    return any(file.parts[:1] == (package,) for file in files)


def _description(origin: str) -> str:
    try:
        text = distribution(origin).metadata.get_payload()  # type: ignore[attr-defined]
    except PackageNotFoundError:
        return ""
    return text if isinstance(text, str) else ""


def _names(text: str, one: str) -> bool:
    words = "".join(c if c.isalnum() or c in "._-" else " " for c in text).split()
    return one in {word.strip(".") for word in words}
