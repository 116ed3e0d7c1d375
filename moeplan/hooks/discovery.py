"""What plugins are installed, from the metadata of distributions; nothing of a plugin is imported.

The model's larger modules are imported only where there is a failure to tell: plugins are found before all else, so
that their processes start while the host imports the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.fields import PLUGIN_PATTERN, VERSION_PATTERN

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from moeplan.model.plugin import PluginFailure

__all__ = ["LOAD", "PluginEntry", "find_plugins"]

GROUP = "moeplan"
LOAD = "load"
"""Stands for the hook in a failure from before any hook was called."""


@attrs.frozen
class PluginEntry:
    """An entry point of the group, with the distribution it belongs to."""

    name: str
    value: str
    distribution: str
    version: str


def find_plugins(allow: Collection[str] | None = None) -> tuple[tuple[PluginEntry, ...], tuple[PluginFailure, ...]]:
    """Return the plugins in the order of their names, and what of the metadata cannot be used.

    Two plugins of one name are both refused: nothing tells which one is meant.

    Args:
        allow: names of the only plugins wanted; None wants all.

    Raises:
        InputError: a name of ``allow`` is not installed.
    """
    entries: list[PluginEntry] = []
    failures: list[PluginFailure] = []
    for found in _scan():
        if isinstance(found, PluginEntry):
            entries.append(found)
        else:
            failures.append(found)
    if allow is not None:
        _check_allowed(allow, {entry.name for entry in entries} | {failure.plugin for failure in failures})
        entries = [entry for entry in entries if entry.name in allow]
        failures = [failure for failure in failures if failure.plugin in allow]
    kept = []
    for entry in sorted(entries, key=lambda entry: (entry.name, entry.distribution)):
        same = sorted(other.distribution for other in entries if other.name == entry.name)
        if len(same) == 1:
            kept.append(entry)
        else:
            told = f"{len(same)} plugins have this name, of {', '.join(same)}; uninstall all but one"
            failures.append(_failure(entry.name, entry.version, "duplicate_name", told))
    return tuple(kept), tuple(failures)


def _check_allowed(allow: Collection[str], names: set[str]) -> None:
    from difflib import get_close_matches

    issues = []
    for name in sorted(set(allow) - names):
        near = get_close_matches(name, names, 1)
        step = f"did you mean {escape(near[0], 100)!r}?" if near else "see 'moeplan plugins'"
        wanted = f"one of {escape(', '.join(sorted(names)))}" if names else "an installed plugin; none is"
        issues.append(Issue("plugin", "unknown_plugin", "no such plugin", wanted, repr(escape(name, 60)), step))
    if issues:
        raise InputError(*issues)


def _scan() -> Iterator[PluginEntry | PluginFailure]:
    from importlib.metadata import distributions

    seen: set[str] = set()
    for distribution in distributions():
        try:
            listed = distribution.read_text("entry_points.txt") or ""
        except Exception:  # one that cannot be read at all may be any package's, not only a plugin's
            continue
        if not re.search(rf"^\s*\[\s*{GROUP}\s*\]", listed, re.MULTILINE):
            continue
        name, version = _identity(distribution)
        # As for an import, the first on the path stands before others of the same distribution.
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key not in seen:
            seen.add(key)
            yield from _entries(distribution, name, version)


def _identity(distribution: Distribution) -> tuple[str, str]:
    try:
        return str(distribution.metadata["Name"]), str(distribution.version)
    except Exception:
        return "?", "?"


def _entries(distribution: Distribution, name: str, version: str) -> Iterator[PluginEntry | PluginFailure]:
    shown = escape(name, 100) or "?"
    try:
        points = [point for point in distribution.entry_points if point.group == GROUP]
    except Exception as error:
        told = f"the entry points of distribution {shown} cannot be read: {type(error).__name__}"
        yield _failure(shown, version, "unreadable_metadata", told)
        return
    for point in points:
        if re.fullmatch(PLUGIN_PATTERN[1:-1], point.name) and re.fullmatch(VERSION_PATTERN[1:-1], version):
            yield PluginEntry(point.name, point.value, shown, version)
        else:
            told = f"name or version of this plugin of distribution {shown} has characters that are not allowed"
            yield _failure(point.name, version, "invalid_name", told)


def _failure(name: str, version: str, code: str, told: str) -> PluginFailure:
    from moeplan.model.plugin import PluginFailure

    return PluginFailure(escape(name, 100) or "?", escape(version, 100) or None, LOAD, code, escape(told, 1000))
