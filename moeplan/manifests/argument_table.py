"""What an engine's arguments are called, which kind each is, which versions know it: data, checked strictly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import attrs
from packaging.version import Version

from moeplan.errors import InputError, Issue, escape
from moeplan.manifests.versions import VersionRange, parse_range

__all__ = ["KINDS", "ArgumentSpec", "ArgumentTable", "parse_argument_table", "plain_name"]

KINDS = ("flag", "value", "json", "list")
_KEYS = frozenset(("name", "aliases", "kind", "versions"))


@attrs.frozen
class ArgumentSpec:
    """One argument.

    Attributes:
        name: its canonical name, ``--tensor-parallel-size``.
        aliases: other names, ``-tp``.
        kind: ``flag`` (also ``--no-…``), ``value``, ``json`` (also dotted), or ``list`` (one or more values).
        versions: the engine versions that know it.
    """

    name: str
    aliases: tuple[str, ...]
    kind: str
    versions: VersionRange

    def exists_in(self, version: Version | None) -> bool | None:
        """Return whether an engine version knows the argument; None where that is not known."""
        return self.versions.contains(version)


@attrs.frozen
class ArgumentTable:
    """The arguments of one engine."""

    specs: tuple[ArgumentSpec, ...]
    _by_name: Mapping[str, ArgumentSpec] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        found = {name: spec for spec in self.specs for name in (spec.name, *spec.aliases)}
        object.__setattr__(self, "_by_name", found)

    def find(self, name: str) -> ArgumentSpec | None:
        """Return the argument of this name or alias; underscores count as dashes after ``--``."""
        return self._by_name.get(plain_name(name))

    def near(self, name: str) -> tuple[str, ...]:
        """Return up to three names like an unknown one, the likest first."""
        return tuple(get_close_matches(plain_name(name)[:80], list(self._by_name), 3, 0.7))


def plain_name(name: str) -> str:
    """Return a long option's name with dashes for underscores; short ones stay as they are."""
    return "--" + name[2:].replace("_", "-") if name.startswith("--") else name


def parse_argument_table(rows: Iterable[Mapping[str, Any]]) -> ArgumentTable:
    """Return the table in ``rows``: mappings with ``name``, ``kind``, and where needed ``aliases`` and ``versions``.

    Raises:
        InputError: every fault: unknown keys or kinds, names that are none or occur twice, ranges that are none.
    """
    issues: list[Issue] = []
    specs = [spec for number, row in enumerate(rows) for spec in _row(row, f"$[{number}]", issues)]
    seen: set[str] = set()
    for number, spec in enumerate(specs):
        for name in (spec.name, *spec.aliases):
            if name in seen:
                issues.append(Issue(f"$[{number}]", "duplicate_name", "name given twice", "each name once", name))
            seen.add(name)
    if issues:
        raise InputError(*issues)
    return ArgumentTable(tuple(specs))


def _row(row: Mapping[str, Any], path: str, issues: list[Issue]) -> Iterator[ArgumentSpec]:
    before = len(issues)
    for key in sorted(set(row) - _KEYS):
        issues.append(Issue(path, "unknown_key", "unknown key", ", ".join(sorted(_KEYS)), escape(key, 60)))
    name, kind, aliases = row.get("name"), row.get("kind"), row.get("aliases", ())
    if kind not in KINDS:
        issues.append(
            Issue(f"{path}.kind", "invalid_value", "no kind", "one of " + ", ".join(KINDS), escape(repr(kind), 40))
        )
    for text in (name, *aliases):
        if not isinstance(text, str) or not text.startswith("-") or text != plain_name(text) or "=" in text:
            got = escape(repr(text), 60)
            issues.append(Issue(f"{path}.name", "invalid_value", "no option's name", "such as --max-model-len", got))
    try:
        versions = parse_range(row.get("versions", ""), f"{path}.versions")
    except InputError as error:
        issues.extend(error.issues)
        return
    if len(issues) == before and isinstance(name, str) and isinstance(kind, str):
        yield ArgumentSpec(name, tuple(aliases), kind, versions)
