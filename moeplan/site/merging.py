"""Take what probes found into a site file: nulls are filled, and nothing that differs is overwritten unasked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import attrs

from moeplan.errors import InputError, escape
from moeplan.model.site_probe import ProbedDirectory, SiteProbe
from moeplan.site.line_edits import Path, edit_lines, rewrite
from moeplan.site.reading import parse_site_text
from moeplan.wire.converter import unstructure

__all__ = ["Difference", "Merged", "merge_probes"]

_SHORT_NAME = re.compile(r"\b(MI[0-9]{3}[AX]?|[ABHL][0-9]{2,3}|G?B[0-9]{3}|GH200)\b", re.IGNORECASE)
"""Short names within what drivers call accelerators: ``NVIDIA H200``, ``AMD Instinct MI355X``."""


@attrs.frozen
class Difference:
    """A value of the site that a probe contradicts; ``probe`` is shown as text, and ``settled`` where it was taken."""

    path: str
    site: str
    probe: str
    settled: bool


@attrs.frozen
class Merged:
    """A site file with what was found put in.

    Attributes:
        data: the file's new bytes.
        filled: paths of the values that were put in.
        differences: what a probe contradicts.
        notes: what could not be placed, one sentence each.
        kept_comments: False where the file had to be written anew.
    """

    data: bytes
    filled: tuple[str, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    kept_comments: bool


@attrs.frozen
class _Offer:
    """A value that a probe has for a place; ``fits`` are values of the site that say the same in other words."""

    path: Path
    value: Any
    only_where_asked: bool = False
    agrees: Any = None
    takeable: bool = True


def merge_probes(data: bytes, probes: Sequence[SiteProbe], *, prefer_probe: bool = False) -> Merged:
    """Return the site file in ``data`` with what the probes found.

    A null is filled. On nodes, keys that are missing are added too. A value that differs stands and is a difference,
    unless ``prefer_probe``. Of two probes of one node the later one counts.

    Args:
        data: a site as people write it, filled in or not.
        probes: in the order in which they were made.
        prefer_probe: let the probes' values replace differing ones.

    Raises:
        InputError: the file is neither YAML nor JSON.
    """
    site = parse_site_text(data)
    wanted = deepcopy(site)
    notes: list[str] = []
    changes: dict[Path, Any] = {}
    filled: list[str] = []
    differences: list[Difference] = []
    for offer in _offers(wanted, _latest(probes), probes, notes):
        there, current = _at(wanted, offer.path)
        if not there and offer.only_where_asked:
            continue
        if current is None:
            filled.append(_shown(offer.path))
        else:
            if current == offer.value or (offer.agrees is not None and offer.agrees(current)):
                continue
            taken = prefer_probe and offer.takeable
            shown = escape(str(current), 100), escape(str(offer.value), 100)
            differences.append(Difference(_shown(offer.path), *shown, taken))
            if not taken:
                continue
        _put(wanted, offer.path, offer.value)
        changes[offer.path] = offer.value
    if not isinstance(site.get("nodes"), list) or not site["nodes"]:
        changes = {path: value for path, value in changes.items() if path[0] != "nodes"}
        changes |= {("nodes",): wanted["nodes"]} if wanted.get("nodes") != site.get("nodes") else {}
    edited = edit_lines(data, changes)
    kept = edited is not None and _holds(edited, wanted)
    made = edited if edited is not None and kept else rewrite(data, wanted)
    commented = not data.lstrip().startswith(b"{")
    return Merged(made, tuple(filled), tuple(differences), tuple(notes), kept or not commented)


def _holds(data: bytes, wanted: dict[str, Any]) -> bool:
    """Return whether an edited file says what it should; an edit that broke it is no edit."""
    try:
        return parse_site_text(data) == wanted
    except InputError:
        return False


def _shown(path: Path) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _at(value: Any, path: Path) -> tuple[bool, Any]:
    """Return whether a path is written, and its value."""
    for step in path:
        if isinstance(value, dict):
            inside = step in value
        else:
            inside = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if not inside:
            return False, None
        value = value[step]
    return True, value


def _put(value: Any, path: Path, new: Any) -> None:
    for step in path[:-1]:
        if isinstance(value, dict) and not isinstance(value.get(step), dict | list):
            value[step] = {}
        value = value[step]
    if isinstance(value, list) and path[-1] == len(value):
        value.append(new)
    else:
        value[path[-1]] = new


def _latest(probes: Sequence[SiteProbe]) -> dict[str, tuple[dict[str, Any], dict[str, ProbedDirectory]]]:
    """Return the values and directories of each node, by its name, in the order of the names."""
    nodes: dict[str, tuple[dict[str, Any], dict[str, ProbedDirectory]]] = {}
    for probe in probes:
        for node in probe.nodes:
            values, directories = nodes.setdefault(node.values.name, ({}, {}))
            values.update(unstructure(node.values))
            directories.update({one.path: one for one in node.directories})
    return dict(sorted(nodes.items()))


def _offers(
    site: dict[str, Any], nodes: dict[str, Any], probes: Sequence[SiteProbe], notes: list[str]
) -> Iterator[_Offer]:
    placed = _placed(site, nodes, notes)
    for index, name in placed.items():
        yield from _node_offers(site, index, *nodes[name])
    # Nodes that the site does not name say nothing of it; where no node has a name yet, each may be one of its nodes.
    listed = site.get("nodes")
    others = isinstance(listed, list) and listed and all(_name_of(entry) is not None for entry in listed)
    chosen = placed.values() if placed or others else nodes
    yield from _common_offers([nodes[name] for name in chosen])
    versions = [probe.kubernetes.version for probe in probes if probe.kubernetes and probe.kubernetes.version]
    if versions:
        yield _Offer(("kubernetes", "version"), versions[-1], True, _same_version(versions[-1]))


def _placed(site: dict[str, Any], nodes: dict[str, Any], notes: list[str]) -> dict[int, str]:
    """Return which node of the site each probed node is, by its place; a site without nodes gets them all."""
    listed = site.get("nodes")
    if isinstance(listed, int):
        notes.append("nodes is a count; write the nodes as a list to have their values put in")
        return {}
    if not isinstance(listed, list) or not listed:
        if nodes:
            site["nodes"] = []
        return dict(enumerate(nodes))
    names = [_name_of(entry) for entry in listed]
    placed = {index: name for index, name in enumerate(names) if name is not None and name in nodes}
    nameless = [index for index, name in enumerate(names) if name is None]
    left = [name for name in nodes if name not in placed.values()]
    if len(nameless) == 1 and len(left) == 1:
        placed[nameless[0]] = left.pop()
    elif nameless and left:
        notes.append(
            f"which node is which cannot be told: name them in the site; probed were {escape(', '.join(left))}"
        )
    elif left:
        notes.append(f"the site has no node {escape(', '.join(left))}")
    return dict(sorted(placed.items()))


def _name_of(entry: Any) -> str | None:
    name = entry.get("name") if isinstance(entry, dict) else None
    return None if name is None else str(name)


def _node_offers(
    site: dict[str, Any], index: int, values: dict[str, Any], directories: dict[str, ProbedDirectory]
) -> Iterator[_Offer]:
    base: Path = ("nodes", index)
    if _at(site, base)[1] is None:
        yield _Offer(base, {"name": values["name"]})
    for key, value in values.items():
        yield _Offer((*base, key), value, False, _agreement(key, value))
    there = [one for one in directories.values() if one.exists]
    path = _at(site, (*base, "modelDirectory"))[1]
    if path is None and len(there) == 1:
        path = there[0].path
        yield _Offer((*base, "modelDirectory"), path)
    found = directories.get(path) if isinstance(path, str) else None
    if found is not None and not found.exists:
        yield _Offer((*base, "modelDirectory"), "no such directory on the node", takeable=False)
    elif found is not None and found.storage is not None:
        for key, value in unstructure(found.storage).items():
            yield _Offer((*base, "storage", key), value)


def _common_offers(nodes: Sequence[tuple[dict[str, Any], dict[str, ProbedDirectory]]]) -> Iterator[_Offer]:
    """Yield what stands at the top of a site, where all nodes say the same."""
    for path, key in (
        (("acceleratorsPerNode",), "accelerators"),
        (("driver",), "driver"),
        (("network", "gidIndex"), "gidIndex"),
        (("network", "rdmaDevices"), "rdmaDevices"),
        (("network", "interface"), "networkInterface"),
    ):
        value = _alike([values.get(key) for values, _directories in nodes])
        if value is not None and value != 0:
            yield _Offer(path, value, True, _agreement(key, value))
    model = _alike([values.get("acceleratorModel") for values, _directories in nodes])
    short = _SHORT_NAME.search(model) if model else None
    if short is not None:
        yield _Offer(("hardware",), short[0].lower(), True, lambda current: True)
    storage = _alike([_storage_word(directories) for _values, directories in nodes])
    if storage is not None:
        yield _Offer(("modelStorage",), storage, True, lambda current: _is_local(current) == _is_local(storage))


def _alike(values: Sequence[Any]) -> Any:
    """Return what all values are, or None where they differ or one is not known."""
    return values[0] if values and all(value == values[0] for value in values) else None


def _storage_word(directories: dict[str, ProbedDirectory]) -> str | None:
    """Return how ``modelStorage`` says what the one directory of a node lies on."""
    there = [one.storage for one in directories.values() if one.exists and one.storage is not None]
    if len(there) != 1 or there[0].filesystem is None or there[0].local is None:
        return None
    return f"local-{there[0].filesystem}" if there[0].local else there[0].filesystem


def _is_local(word: Any) -> bool:
    return str(word).startswith("local")


def _agreement(key: str, found: Any) -> Any:
    """Return what tells whether another value of the site is no contradiction to what was found."""
    if key == "driver":
        return _same_version(found)
    if key == "networkInterface":  # the default route's need not be the one that the nodes should talk over
        return lambda written: True
    if key == "rdmaDevices":  # a site may use some of them
        return lambda written: isinstance(written, list) and bool(written) and set(map(str, written)) <= set(found)
    return None


def _same_version(found: Any) -> Any:
    """Return what tells whether a written version says the same less exactly: ``580`` for ``580.65.06``."""

    def agrees(written: Any) -> bool:
        short, long = str(written).removeprefix("v"), str(found).removeprefix("v")
        return short == long or long.startswith(f"{short}.")

    return agrees
