from __future__ import annotations

import json
from typing import Any

import pytest

from moeplan.errors import InputError, VerificationError
from moeplan.signing.statement import EVIDENCE_PREDICATE, INDEX_PREDICATE, make_statement, parse_statement

DIGEST = "sha256:" + "ab" * 32
PAYLOAD = (
    b'{"_type":"https://in-toto.io/Statement/v1","predicate":{"a":[true,null],"b":1},'
    b'"predicateType":"https://moeplan.dev/attestation/evidence/v1",'
    b'"subject":[{"digest":{"sha256":"' + b"ab" * 32 + b'"},"name":"evidence/trial-1.json"}]}'
)


def made(**changes: Any) -> bytes:
    """PAYLOAD with members replaced, in canonical form by another implementation (ASCII only, so sorting suffices)."""
    value = {**json.loads(PAYLOAD), **changes}
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def refused(payload: bytes, predicate_type: str = EVIDENCE_PREDICATE) -> tuple[str, str]:
    with pytest.raises(VerificationError) as caught:
        parse_statement(payload, predicate_type)
    return caught.value.issues[0].code, caught.value.issues[0].path


def test_exact_bytes() -> None:
    predicate = {"b": 1, "a": [True, None]}
    assert make_statement([("evidence/trial-1.json", DIGEST)], EVIDENCE_PREDICATE, predicate) == PAYLOAD
    assert made() == PAYLOAD


def test_parse_gives_back_what_was_made() -> None:
    statement = parse_statement(PAYLOAD, EVIDENCE_PREDICATE)
    assert [(item.name, item.digest) for item in statement.subject] == [("evidence/trial-1.json", DIGEST)]
    assert statement.predicate == {"a": [True, None], "b": 1}
    assert statement.predicate_type == EVIDENCE_PREDICATE


def test_several_subjects_keep_their_order() -> None:
    subjects = [("b", DIGEST), ("a", "sha256:" + "01" * 32)]
    statement = parse_statement(make_statement(subjects, INDEX_PREDICATE, {}), INDEX_PREDICATE)
    assert [(item.name, item.digest) for item in statement.subject] == subjects


@pytest.mark.parametrize(
    ("subjects", "predicate_type", "predicate"),
    [
        ([], EVIDENCE_PREDICATE, {}),
        ([("a", DIGEST), ("a", DIGEST)], EVIDENCE_PREDICATE, {}),
        ([("a", "sha256:AB")], EVIDENCE_PREDICATE, {}),
        ([("a", "ab" * 32)], EVIDENCE_PREDICATE, {}),
        ([("", DIGEST)], EVIDENCE_PREDICATE, {}),
        ([("a\n", DIGEST)], EVIDENCE_PREDICATE, {}),
        ([("a", DIGEST)], "evidence", {}),
        ([("a", DIGEST)], EVIDENCE_PREDICATE, []),
        ([("a", DIGEST)], EVIDENCE_PREDICATE, {"x": 1.5}),
        ([("a", DIGEST)], EVIDENCE_PREDICATE, {"x": 2**53}),
        ([("a", DIGEST)], EVIDENCE_PREDICATE, {"x": b"bytes"}),
        ([("a", DIGEST)], EVIDENCE_PREDICATE, {"x": "\ud800"}),
        ([("a", DIGEST)], EVIDENCE_PREDICATE, {1: "x"}),
    ],
)
def test_make_refuses(subjects: Any, predicate_type: str, predicate: Any) -> None:
    with pytest.raises(InputError):
        make_statement(subjects, predicate_type, predicate)


def test_another_predicate_type_refused() -> None:
    assert refused(PAYLOAD, INDEX_PREDICATE) == ("predicate_type", "$.predicateType")


@pytest.mark.parametrize(
    "payload",
    [
        PAYLOAD + b"\n",
        PAYLOAD.replace(b":1}", b": 1}"),
        PAYLOAD.replace(b'"a":[true,null],"b":1', b'"b":1,"a":[true,null]'),
        PAYLOAD.replace(b'"name":"evidence', b'"name":"\\u0065vidence'),
    ],
)
def test_other_layout_refused(payload: bytes) -> None:
    assert payload != PAYLOAD
    assert refused(payload)[0] == "statement_not_canonical"


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        (b"", "$"),
        (b"[]", "$"),
        (b"\xef\xbb\xbf" + PAYLOAD, "$"),
        (made(extra=1), "$"),
        (made(_type="https://in-toto.io/Statement/v0.1"), "$._type"),
        (made(_type=None), "$._type"),
        (made(subject=[]), "$.subject"),
        (made(subject={}), "$.subject"),
        (made(subject=["a"]), "$.subject[0]"),
        (made(subject=[{"name": "a", "digest": {"sha256": "ab" * 32}, "uri": "b"}]), "$.subject[0]"),
        (made(subject=[{"name": "a", "digest": {}}]), "$.subject[0].digest"),
        (made(subject=[{"name": "a", "digest": {"sha256": "ab" * 32, "sha512": "00"}}]), "$.subject[0].digest"),
        (made(subject=[{"name": "a", "digest": {"sha256": "AB" * 32}}]), "$.subject[0].digest.sha256"),
        (made(subject=[{"name": "a", "digest": {"sha256": 1}}]), "$.subject[0].digest.sha256"),
        (made(subject=[{"name": 1, "digest": {"sha256": "ab" * 32}}]), "$.name"),
        (made(subject=[{"name": "a", "digest": {"sha256": "ab" * 32}}] * 2), "$.subject"),
        (made(predicate=[]), "$.predicate"),
        (made(predicate={"x": 1.0}), "$.predicate.x"),
        (made(predicateType=1), "$.predicateType"),
        (PAYLOAD.replace(b'"b":1', b'"b":1,"b":1'), "$.predicate.b"),
    ],
)
def test_other_forms_refused(payload: bytes, path: str) -> None:
    assert refused(payload) == ("statement_malformed", path)
