"""Load and dump documents: size cap, strict JSON, schema, model, cross-field rules; errors name the JSON path."""

from __future__ import annotations

from typing import Any, TypeVar

from moeplan.digest import digest_bytes
from moeplan.errors import InputError, Issue, UnsupportedError, escape
from moeplan.wire.canonical import canonical_line
from moeplan.wire.converter import structure, unstructure
from moeplan.wire.schemas import check_schema, head_of
from moeplan.wire.strict_json import MAX_BYTES, parse_strict

__all__ = [
    "dump_document",
    "identify",
    "load_document",
    "load_value",
    "require_canonical",
    "size_cap",
    "structure_document",
]

T = TypeVar("T")

_CLASSES = (
    ("registry", "Registry"),
    ("plan", "Plan"),
    ("checkpoint", "CheckpointManifest"),
    ("evidence", "EvidenceRecord"),
    ("run_manifest", "RunManifest"),
    ("policy", "Policy"),
    ("inventory", "EvidenceBundle"),
    ("verdict", "Verdict"),
    ("compatibility", "CompatibilityReport"),
    ("site", "Site"),
    ("site_probe", "SiteProbe"),
    ("manifest_set", "ManifestSet"),
)
"""Module of ``moeplan.model`` and name of every document class."""

DOCUMENTS: tuple[type, ...]
"""Every document class of this release; each has a checked-in schema. Imported when it is first asked for: a command
needs the classes it reads, and making all of them takes longer than making a plan."""

_LARGER = {"checkpoint_manifest": 512 << 20}
"""Kinds whose size cap is not the default: a trillion-parameter checkpoint lists hundreds of thousands of tensors."""


def __getattr__(name: str) -> Any:
    if name != "DOCUMENTS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    made = tuple(getattr(import_module(f"moeplan.model.{module}"), cls) for module, cls in _CLASSES)
    globals()["DOCUMENTS"] = made
    return made


def size_cap(cls: type) -> int:
    """Return the most bytes a document of class ``cls`` may have."""
    return _LARGER.get(head_of(cls)[0], MAX_BYTES)


def load_document(data: bytes, cls: type[T], *, source: str | None = None) -> T:
    """Return the document of class ``cls`` in ``data`` (strict JSON, in any layout).

    Args:
        data: the bytes as received.
        cls: the document class expected.
        source: where the bytes came from, for messages.

    Raises:
        UnsupportedError: the kind or version is another.
        InputError: every fault of the first stage that finds any, with JSON paths.
    """
    try:
        return load_value(parse_strict(data, max_bytes=size_cap(cls)), cls)
    except InputError as error:
        error.source = source
        raise


def load_value(value: Any, cls: type[T]) -> T:
    """Return parsed strict JSON as a document of class ``cls``; raises as :func:`load_document`."""
    _check_head(value, cls)
    check_schema(value, *head_of(cls))
    return structure_document(value, cls)


def structure_document(value: Any, cls: type[T]) -> T:
    """Return parsed strict JSON as a document of class ``cls`` by the model alone, without its schema.

    For data the package itself ships; everything else goes through :func:`load_document`.
    """
    _check_head(value, cls)
    document = structure(value, cls)
    check = getattr(document, "faults", None)
    issues = tuple(check()) if check is not None else ()
    if issues:
        raise InputError(*issues)
    return document


def _check_head(value: Any, cls: type) -> None:
    if type(value) is not dict:
        raise InputError(Issue("$", "wrong_type", "not a document", "a JSON object", escape(repr(value), 60)))
    for key, wanted in zip(("kind", "schemaVersion"), head_of(cls), strict=True):
        got = value.get(key)
        if got != wanted:
            raise UnsupportedError(
                Issue(
                    f"$.{key}",
                    "unsupported_kind" if key == "kind" else "unsupported_version",
                    f"{key} is not one this reads here",
                    repr(wanted),
                    escape(repr(got), 60),
                )
            )


def dump_document(document: Any) -> bytes:
    """Return a document in its one form: RFC 8785 and one LF."""
    return canonical_line(unstructure(document))


def identify(document: Any) -> str:
    """Return a document's identity: the digest of its one form."""
    return digest_bytes(dump_document(document))


def require_canonical(data: bytes, document: Any) -> None:
    """Refuse bytes that are not the one form of the document they hold.

    Raises:
        InputError: code ``not_canonical``.
    """
    if data != dump_document(document):
        raise InputError(
            Issue(
                "$",
                "not_canonical",
                "bytes are not in canonical form",
                "RFC 8785 and one LF",
                None,
                "write it again with moeplan; inside an evidence bundle only this form is accepted",
            )
        )
