"""The InferaDeployment resource as its definition has it: keys, kinds of values, required ones.

Source: Infera 5890f7f, ``deploy/operator/config/crd/bases/infera.amd.com_inferadeployments.yaml``, v1alpha1; the keys
of ``extraPodSpec`` are those of Kubernetes' PodSpec and Container. What other facts name (roles, text in environments,
quantities) is left to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from moeplan.errors import escape
from moeplan.facts.judge import Hit, Rule
from moeplan.facts.launches import Scene
from moeplan_infera.reading import infera_documents, mapping, place_of

__all__ = ["RULES", "faults_of"]

_KINDS: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "list": (list, tuple),
    "object": (Mapping,),
}
_Steps = tuple[str | int, ...]


@cache
def _definition() -> Any:
    return json.loads(files("moeplan_infera").joinpath("inferadeployment.json").read_bytes())


def faults_of(document: Any) -> Iterator[tuple[_Steps, str]]:
    """Yield what in an InferaDeployment is not as its definition has it: the steps to it, and what is wrong."""
    spec = mapping(document).get("spec")
    if not isinstance(spec, Mapping):
        yield ("spec",), "an InferaDeployment needs a spec with services"
        return
    yield from _object(spec, "spec", ("spec",))


def _object(what: Mapping[str, Any], name: str, steps: _Steps) -> Iterator[tuple[_Steps, str]]:
    keys = _definition()[name]["keys"]
    for required in _definition()[name].get("required", ()):
        if required not in what:
            yield steps, f"{required} is missing"
    for key, given in what.items():
        rule = keys.get(key)
        if rule is None:
            near = get_close_matches(key, list(keys), 1, 0.7)
            yield (*steps, key), f"{escape(str(key), 60)} is no key here" + (f"; {near[0]} is" if near else "")
        elif given is not None:
            yield from _value(given, rule, (*steps, key))


def _value(given: Any, rule: str | list[str], steps: _Steps) -> Iterator[tuple[_Steps, str]]:
    if isinstance(rule, list):
        if given not in rule:
            yield steps, f"{steps[-1]} is {escape(str(given), 60)}, not one of {', '.join(rule)}"
        return
    kind, _, name = rule.partition(" ")
    if kind in ("map", "items"):
        if not _is_kind(given, "object" if kind == "map" else "list"):
            yield steps, f"{steps[-1]} is not {'an object' if kind == 'map' else 'a list'}"
            return
        entries: Any = given.items() if kind == "map" else enumerate(given)
        for key, item in entries:
            if isinstance(item, Mapping):
                yield from _object(item, name, (*steps, key))
            else:
                yield (*steps, key), f"{key} is not an object"
        return
    if not _is_kind(given, kind):
        yield steps, f"{steps[-1]} is {escape(str(given), 60)}, not {kind}"
    elif name:
        yield from _object(given, name, steps)


def _is_kind(given: Any, kind: str) -> bool:
    if kind == "any":
        return True
    return isinstance(given, _KINDS[kind]) and (kind == "boolean") is isinstance(given, bool)


def _off_schema(scene: Scene) -> Iterator[Hit]:
    for subject in infera_documents(scene):
        for steps, message in faults_of(None if subject.document is None else subject.document.value):
            yield Hit(place_of(subject, *steps), message, subject)


RULES: Mapping[str, Rule] = {"R-OPR-017": _off_schema}
"""Fact id → rule."""
