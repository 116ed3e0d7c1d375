"""in-toto Statement v1: which files are meant (subject), and what is said of them (predicate)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import attrs

from moeplan.digest import hex_of
from moeplan.errors import InputError, Issue, VerificationError, escape
from moeplan.model.fields import const, digest, sequence, text
from moeplan.wire.canonical import canonical_bytes
from moeplan.wire.strict_json import parse_strict

__all__ = [
    "EVIDENCE_PREDICATE",
    "INDEX_PREDICATE",
    "STATEMENT_TYPE",
    "VERDICT_PREDICATE",
    "ResourceDescriptor",
    "Statement",
    "make_statement",
    "parse_statement",
]

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
"""Source: in-toto attestation framework v1, ``spec/v1/statement.md``."""

EVIDENCE_PREDICATE = "https://moeplan.dev/attestation/evidence/v1"
"""One evidence record, signed by who measured it. Subject: the record's file."""

INDEX_PREDICATE = "https://moeplan.dev/attestation/index/v1"
"""An evidence bundle as packed, signed by who packed it. Subject: ``bundle.json``."""

VERDICT_PREDICATE = "https://moeplan.dev/attestation/verdict/v1"
"""A readiness verdict, signed by who issued it. Subjects: the plan, the checkpoint root, the runtime identities."""

_KEYS = {"_type", "subject", "predicateType", "predicate"}
_HEX = re.compile(r"[0-9a-f]{64}")


@attrs.frozen
class ResourceDescriptor:
    """One subject: a name, and the digest of the bytes it stands for (``sha256:…``; on the wire a DigestSet)."""

    name: str = text(max_length=1024)
    digest: str = digest()


def _object(_instance: object, _attribute: object, value: object) -> None:
    if type(value) is not dict or not all(type(key) is str for key in value):
        raise InputError(Issue("$.predicate", "wrong_type", "predicate is not an object", "a JSON object"))


@attrs.frozen
class Statement:
    """A statement: subjects each named once, the predicate's type, the predicate as parsed JSON."""

    subject: tuple[ResourceDescriptor, ...] = sequence(ResourceDescriptor, min_items=1)
    predicate_type: str = text(pattern=r"^https://[!-~]+$", max_length=400)
    predicate: dict[str, Any] = attrs.field(validator=_object, kw_only=True)
    type: str = const(STATEMENT_TYPE)

    def __attrs_post_init__(self) -> None:
        """Refuse a subject named twice: a verifier would have to choose."""
        names = [subject.name for subject in self.subject]
        if len(names) != len(set(names)):
            raise InputError(Issue("$.subject", "duplicate_name", "a subject named more than once", "each name once"))


def make_statement(subjects: Sequence[tuple[str, str]], predicate_type: str, predicate: dict[str, Any]) -> bytes:
    """Return a statement's payload: RFC 8785 bytes, without a final LF.

    Args:
        subjects: at least one (name, ``sha256:…`` digest of the file as it lies).
        predicate_type: the predicate's URI.
        predicate: a JSON object of text, exact integers, booleans, null, lists and objects.

    Raises:
        InputError: no subject, a name given twice, a malformed digest, or a value that strict JSON refuses.
    """
    statement = Statement(
        subject=tuple(ResourceDescriptor(name=name, digest=digest) for name, digest in subjects),
        predicate_type=predicate_type,
        predicate=predicate,
    )
    try:
        payload = _payload(statement)
        same = parse_strict(payload) == _plain(statement)
    except ValueError:  # what RFC 8785 has no form for: large integers, objects of other types
        same = False
    if not same:
        raise InputError(
            Issue("$.predicate", "wrong_type", "predicate is not plain JSON", "text, exact integers, lists")
        )
    return payload


def parse_statement(payload: bytes, predicate_type: str) -> Statement:
    """Return the statement in ``payload``, or refuse it. Says nothing about who signed it.

    Raises:
        VerificationError: ``statement_malformed``; ``predicate_type`` where it is about something else;
            ``statement_not_canonical`` where the bytes are not its RFC 8785 form.
    """
    try:
        statement = _parse(parse_strict(payload))
    except InputError as error:
        raise VerificationError(*(attrs.evolve(issue, code="statement_malformed") for issue in error.issues)) from None
    if statement.predicate_type != predicate_type:
        got = escape(statement.predicate_type)
        raise VerificationError(
            Issue("$.predicateType", "predicate_type", "predicate of another type", predicate_type, got)
        )
    if _payload(statement) != payload:
        raise VerificationError(
            Issue("$", "statement_not_canonical", "statement is not in canonical form", "RFC 8785, no final LF")
        )
    return statement


def _plain(statement: Statement) -> dict[str, Any]:
    return {
        "_type": statement.type,
        "subject": [{"name": item.name, "digest": {"sha256": hex_of(item.digest)}} for item in statement.subject],
        "predicateType": statement.predicate_type,
        "predicate": statement.predicate,
    }


def _payload(statement: Statement) -> bytes:
    return canonical_bytes(_plain(statement))


def _parse(value: Any) -> Statement:
    if type(value) is not dict or set(value) != _KEYS:
        raise _malformed("$", "statement of another form", "exactly " + ", ".join(sorted(_KEYS)))
    if value["_type"] != STATEMENT_TYPE:
        raise _malformed("$._type", "not a statement of version 1", STATEMENT_TYPE)
    subjects = value["subject"]
    if type(subjects) is not list or not subjects:
        raise _malformed("$.subject", "no subject", "a list of at least one")
    return Statement(
        subject=tuple(_subject(item, f"$.subject[{index}]") for index, item in enumerate(subjects)),
        predicate_type=value["predicateType"],
        predicate=value["predicate"],
    )


def _subject(item: Any, path: str) -> ResourceDescriptor:
    if type(item) is not dict or set(item) != {"name", "digest"}:
        raise _malformed(path, "subject of another form", "exactly name and digest")
    found = item["digest"]
    if type(found) is not dict or set(found) != {"sha256"}:
        raise _malformed(f"{path}.digest", "digest set of another form", "exactly sha256")
    digits = found["sha256"]
    if type(digits) is not str or _HEX.fullmatch(digits) is None:
        raise _malformed(f"{path}.digest.sha256", "not a SHA-256", "64 lower-case hex digits")
    return ResourceDescriptor(name=item["name"], digest="sha256:" + digits)


def _malformed(path: str, message: str, expected: str) -> InputError:
    return InputError(Issue(path, "statement_malformed", message, expected))
