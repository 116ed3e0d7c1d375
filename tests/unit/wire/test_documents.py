"""Loading and dumping: the order of the stages, the one form, and identities that sha256sum shows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from moeplan.errors import InputError, UnsupportedError
from moeplan.model.checkpoint import CheckpointManifest
from moeplan.model.evidence import EvidenceRecord
from moeplan.model.policy import Policy
from moeplan.wire import documents
from moeplan.wire.documents import (
    dump_document,
    identify,
    load_document,
    load_value,
    require_canonical,
    size_cap,
    structure_document,
)

VALID = Path(__file__).parents[2] / "conformance" / "corpus" / "valid"
POLICY = (VALID / "policy-empty.json").read_bytes()


def _codes(data: bytes, cls: type) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_document(data, cls)
    return [issue.code for issue in caught.value.issues]


def test_the_one_form_by_hand() -> None:
    document = load_document(POLICY, Policy)
    assert dump_document(document) == (
        b'{"expects":null,"kind":"policy","leastBinding":[],"schemaVersion":"1.0.0","signers":[],"testKeys":false,'
        b'"waivers":[]}\n'
    )
    assert identify(document) == "sha256:" + hashlib.sha256(POLICY).hexdigest()


def test_text_beyond_ascii_is_written_as_it_is() -> None:
    data = (VALID / "checkpoint_manifest-small.json").read_bytes()
    assert "tokenizer/größe.json".encode() in data
    document = load_document(data, CheckpointManifest)
    assert document.files[2].name == "tokenizer/größe.json"
    assert dump_document(document) == data


@pytest.mark.parametrize(
    "other",
    [POLICY[:-1], POLICY + b"\n", b" " + POLICY, POLICY.replace(b",", b", "), json.dumps(json.loads(POLICY)).encode(),
     POLICY.replace(b'"policy"', b'"polic\\u0079"'), POLICY.replace(b"\n", b"\r\n")],
)  # fmt: skip
def test_any_other_layout_loads_but_is_not_canonical(other: bytes) -> None:
    document = load_document(other, Policy)
    assert document == load_document(POLICY, Policy)
    with pytest.raises(InputError) as caught:
        require_canonical(other, document)
    assert caught.value.issues[0].code == "not_canonical"
    require_canonical(POLICY, document)


def test_stages_come_in_order() -> None:
    """Size, strict JSON, head, schema, cross-field rules: the first that finds a fault speaks."""
    assert _codes(b"{" * 100, Policy) == ["too_deep"]
    assert _codes(POLICY.replace(b"false", b"NaN"), Policy) == ["not_a_number"]
    assert _codes(POLICY.replace(b"false", b"NaN"), EvidenceRecord) == ["not_a_number"]
    assert _codes(POLICY, EvidenceRecord) == ["unsupported_kind"]
    assert _codes(POLICY.replace(b'"signers":[]', b'"signers":7'), Policy) == ["wrong_type"]
    data = (VALID / "evidence_record-serving-trial.json").read_bytes()
    late = data.replace(b'"end":"2026-11-30T17:30:49Z"', b'"end":"2026-11-30T17:29:48Z"')
    assert _codes(late, EvidenceRecord)[0] == "interval_reversed"
    assert _codes(late.replace(b'"number":1', b'"number":0'), EvidenceRecord) == ["invalid_value"]


def test_each_kind_has_its_own_size_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (size_cap(Policy), size_cap(CheckpointManifest)) == (32 << 20, 512 << 20)
    monkeypatch.setitem(documents._LARGER, "policy", len(POLICY))
    load_document(POLICY, Policy)
    monkeypatch.setitem(documents._LARGER, "policy", len(POLICY) - 1)
    assert _codes(POLICY, Policy) == ["too_large"]


def test_another_kind_or_version_is_unsupported() -> None:
    for data, code in (
        (POLICY.replace(b'"policy"', b'"site"'), "unsupported_kind"),
        (POLICY.replace(b'"policy"', b"null"), "unsupported_kind"),
        (POLICY.replace(b'"1.0.0"', b'"1.1.0"'), "unsupported_version"),
        (POLICY.replace(b'"1.0.0"', b"1"), "unsupported_version"),
        (b"{}", "unsupported_kind"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            load_document(data, Policy)
        assert caught.value.issues[0].code == code


@pytest.mark.parametrize("data", [b"[]", b"null", b"7", b'"policy"', b"true"])
def test_a_document_is_an_object(data: bytes) -> None:
    assert _codes(data, Policy) == ["wrong_type"]


def test_the_source_is_named() -> None:
    with pytest.raises(InputError) as caught:
        load_document(b"{", Policy, source="policy.json")
    assert caught.value.source == "policy.json"
    assert caught.value.to_json()["error"]["source"] == "policy.json"


def test_by_the_model_alone() -> None:
    value = json.loads(POLICY)
    assert structure_document(value, Policy) == load_value(value, Policy)
    with pytest.raises(InputError):
        structure_document(value | {"testKeys": 0}, Policy)
    with pytest.raises(UnsupportedError):
        structure_document(value | {"kind": "plan"}, Policy)
    full = json.loads((VALID / "policy-full.json").read_bytes())
    with pytest.raises(InputError) as caught:
        structure_document(full | {"waivers": full["waivers"] * 2}, Policy)
    assert caught.value.issues[0].code == "duplicate_name"
