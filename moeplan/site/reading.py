"""Read a site as people write it: YAML or JSON, whole or in part; what is not filled in is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.site import Site
from moeplan.wire.converter import unstructure
from moeplan.wire.documents import load_value
from moeplan.wire.files import read_file
from moeplan.wire.strict_json import child, parse_strict
from moeplan.wire.yaml_text import MAX_YAML_BYTES, parse_yaml_strict

__all__ = ["load_site", "parse_partial_site", "parse_site_text", "read_partial_site", "read_site", "site_values"]

_TEXT_KEYS = frozenset(("driver", "engineVersion"))
"""Keys whose text looks like a number, so that a person leaves the quotes out: ``driver: 580``."""


def load_site(data: bytes, *, source: str | None = None) -> Site:
    """Return the site in ``data``: YAML or JSON with ``kind`` and ``schemaVersion``.

    Args:
        data: the bytes as received.
        source: where they came from, for messages.

    Raises:
        InputError: malformed; or keys are ``null``, each named with code ``unfilled_value``.
    """
    return _load(data, {}, source)


def parse_partial_site(data: bytes, *, source: str | None = None) -> Site:
    """Return the site in ``data``, which need not say ``kind`` and ``schemaVersion``; as :func:`load_site`.

    For commands that look at manifests and take whatever of a site there is.
    """
    return _load(data, {"kind": "site", "schemaVersion": "1.0.0"}, source)


def read_site(path: Path | str) -> Site:
    """Return the site in a file; raises as :func:`load_site`, and StoreError where it cannot be read."""
    return load_site(read_file(path, max_bytes=MAX_YAML_BYTES), source=escape(str(path), 400))


def read_partial_site(path: Path | str) -> Site:
    """Return the site in a file, whole or in part; raises as :func:`read_site`."""
    return parse_partial_site(read_file(path, max_bytes=MAX_YAML_BYTES), source=escape(str(path), 400))


def site_values(site: Site) -> dict[str, Any]:
    """Return a site as the JSON values that plugins get: camelCase keys, what is not set left out."""
    values: dict[str, Any] = unstructure(site)
    return values


def parse_site_text(data: bytes) -> dict[str, Any]:
    """Return the mapping in ``data`` as it is written, with its nulls, not held against the model.

    Raises:
        InputError: neither YAML nor JSON, or no mapping.
    """
    value = _parse(data)
    if type(value) is not dict:
        raise InputError(Issue("$", "wrong_type", "not a site", "a mapping of keys to values", escape(repr(value), 60)))
    return {key: _as_text(key, item) for key, item in value.items()}


def _load(data: bytes, head: dict[str, str], source: str | None) -> Site:
    try:
        value = head | parse_site_text(data)
        unfilled = [
            Issue(
                path, "unfilled_value", "not filled in", "a value", "null", "fill it in; 'moeplan site probe' may help"
            )
            for path in _nulls(value, "$")
        ]
        if unfilled and value.get("kind") in (None, "site"):  # of another document its kind is told, not its nulls
            raise InputError(*unfilled)
        return load_value(value, Site)
    except InputError as error:
        error.source = source
        raise


def _parse(data: bytes) -> Any:
    """Return the JSON values of a text that may be either; what begins as JSON is told of as JSON."""
    try:
        if not data.lstrip().startswith(b"{"):
            return parse_yaml_strict(data)
        try:
            return parse_strict(data, max_bytes=MAX_YAML_BYTES)
        except InputError as error:
            try:  # a YAML mapping in braces
                return parse_yaml_strict(data)
            except InputError:
                raise error from None
    except InputError as error:
        raise InputError(*(_in_quotes(issue) for issue in error.issues)) from None


def _in_quotes(issue: Issue) -> Issue:
    """Return a fraction's fault with what helps here: a version or a price is text."""
    return attrs.evolve(issue, next="put it in quotes") if issue.code == "not_an_integer" else issue


def _as_text(key: str, value: Any) -> Any:
    if key == "nodes" and type(value) is list:
        return [_as_node(node) for node in value]
    return str(value) if key in _TEXT_KEYS and type(value) is int else value


def _as_node(node: Any) -> Any:
    """Return an entry of ``nodes``; a bare name is a node of which nothing else is told."""
    if type(node) is dict:
        return {key: _as_text(key, value) for key, value in node.items()}
    return {"name": node} if type(node) is str else node


def _nulls(value: Any, path: str) -> Iterator[str]:
    if value is None:
        yield path
    elif type(value) is dict:
        for key, item in value.items():
            yield from _nulls(item, child(path, key))
    elif type(value) is list:
        for index, item in enumerate(value):
            yield from _nulls(item, f"{path}[{index}]")
