"""The caller's own files and the clock, read at the edge."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from moeplan.errors import InputError, Issue, escape
from moeplan.units import format_instant, parse_instant

if TYPE_CHECKING:
    from moeplan.model.policy import Policy
    from moeplan.model.registry import Registry

__all__ = [
    "add_at",
    "add_registries",
    "instant_or_now",
    "read_authored",
    "read_document",
    "read_policy",
    "read_registries",
    "read_site_values",
]

T = TypeVar("T")

_YAML = (".yaml", ".yml")


def read_document(path: Path | str, cls: type[T]) -> T:
    """Return the document of class ``cls`` in a JSON file of the caller's; say when it is not in canonical form."""
    from moeplan.wire.documents import load_document, size_cap
    from moeplan.wire.files import read_file

    data = read_file(path, max_bytes=size_cap(cls))
    document = load_document(data, cls, source=escape(str(path), 400))
    _note_form(path, data, document)
    return document


def _note_form(path: Path | str, data: bytes, document: object) -> None:
    from moeplan.cli.output import note
    from moeplan.digest import digest_bytes
    from moeplan.wire.documents import dump_document

    form = dump_document(document)
    if data != form:
        note(f"note: {escape(str(path), 400)} is not in canonical form; it is identified by {digest_bytes(form)}")


def read_authored(path: str, cls: type[T]) -> T:
    """Return an authored document (policy, registry), which may also be YAML."""
    if Path(path).suffix.lower() not in _YAML:
        return read_document(path, cls)
    from moeplan.wire.documents import load_value
    from moeplan.wire.files import read_file
    from moeplan.wire.yaml_text import parse_yaml_strict

    try:
        data = read_file(path)
        document = load_value(parse_yaml_strict(data), cls)
    except InputError as error:
        error.source = escape(str(path), 400)
        raise
    _note_form(path, data, document)
    return document


def read_policy(path: str) -> Policy:
    """Return the auditor's policy; a policy that accepts the published test key says so first."""
    from moeplan.model.policy import Policy

    policy = read_authored(path, Policy)
    if policy.test_keys:
        from moeplan.cli.output import note

        note("TEST KEYS: this policy accepts the published test key; its signatures prove nothing")
    return policy


def add_registries(parser: argparse.ArgumentParser) -> None:
    """Add ``--registry``, which may be given several times."""
    parser.add_argument(
        "--registry",
        action="append",
        default=[],
        metavar="FILE",
        help="a registry of your own beside the built-in ones",
    )


def read_registries(paths: Sequence[str]) -> tuple[Registry, ...]:
    """Return the auditor's own registries."""
    if not paths:
        return ()
    from moeplan.model.registry import Registry

    return tuple(read_authored(path, Registry) for path in paths)


def read_site_values(path: str | None) -> tuple[dict[str, Any], str | None]:
    """Return the JSON values of a site, whole or in part, and its digest; nothing where no file is named."""
    if path is None:
        return {}, None
    from moeplan.site.reading import read_partial_site, site_values
    from moeplan.wire.documents import identify

    site = read_partial_site(path)
    return site_values(site), identify(site)


def add_at(parser: argparse.ArgumentParser) -> None:
    """Add ``--at``."""
    parser.add_argument(
        "--at", metavar="INSTANT", help="instant of judgement, UTC such as 2026-11-30T18:00:00Z (default: now)"
    )


def instant_or_now(text: str | None) -> str:
    """Return ``--at`` in its one form, or the clock's whole second."""
    if text is None:
        return format_instant(int(time.time()))
    try:
        return format_instant(parse_instant(text))
    except InputError as error:
        issue = error.issues[0]
        raise InputError(Issue("--at", issue.code, issue.message, issue.expected, issue.got)) from None
