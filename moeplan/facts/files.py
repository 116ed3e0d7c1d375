"""A distribution's facts as the JSON files of one package: read whole, or for their ids alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moeplan.facts.model import FactSet
    from moeplan.model.plugin import FindingRule

__all__ = ["read_fact_files", "rules_of"]


@cache
def read_fact_files(package: str, origin: str) -> FactSet:
    """Return the facts in all JSON files of a package, in the order of the files' names.

    Args:
        package: the package that holds the files, such as ``moeplan_vllm.facts``.
        origin: the distribution whose facts they are.

    Raises:
        InputError: a file holds a malformed fact, or two hold the same id.
    """
    from moeplan.facts.model import FactSet, load_facts

    return FactSet(origin, ()).joined(*(load_facts(data, origin) for data in _contents(package)))


@cache
def rules_of(package: str, origin: str) -> tuple[FindingRule, ...]:
    """Return the ids of the same facts, as ``RuntimeInfo.rules`` wants them, without reading what the facts say."""
    from moeplan.model.plugin import FindingRule

    return tuple(FindingRule(str(row["id"]), origin) for data in _contents(package) for row in json.loads(data))


def _contents(package: str) -> Iterator[bytes]:
    folder = files(package)
    for name in sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".json")):
        yield folder.joinpath(name).read_bytes()
