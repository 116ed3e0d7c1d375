"""Statements are pure: the same inputs give the same bytes, written a second time here by hand."""

from __future__ import annotations

import hashlib
import json

import attrs
import pytest

from moeplan.attest.statements import evidence_statement, index_statement, verdict_statement
from moeplan.errors import InputError
from moeplan.wire.converter import unstructure
from moeplan.wire.documents import dump_document
from tests.build import RUNTIME, build_plan, digest_of, make_checkpoint, make_evidence, make_run, make_trial, ready_case

PLAN = build_plan()
TRIAL = make_trial(PLAN)
HEAD = '"predicateType":"https://moeplan.dev/attestation/{kind}/v1","subject":[{subject}]}}'


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def subject(name: str, hex_digits: str) -> str:
    return f'{{"digest":{{"sha256":"{hex_digits}"}},"name":"{name}"}}'


def by_hand(kind: str, predicate: str, *subjects: str) -> bytes:
    head = HEAD.format(kind=kind, subject=",".join(subjects))
    return f'{{"_type":"https://in-toto.io/Statement/v1","predicate":{predicate},{head}'.encode()


def test_an_evidence_statement_byte_for_byte() -> None:
    data = dump_document(TRIAL.record)
    deployment = "sha256:" + sha(dump_document(TRIAL.record.deployment))
    predicate = f'{{"deployment":"{deployment}","document":"evidence_record","plan":"{TRIAL.record.plan}"}}'
    found = evidence_statement("evidence/a.json", data, TRIAL.record)
    assert found == by_hand("evidence", predicate, subject("evidence/a.json", sha(data)))


def test_a_run_manifest_names_its_deployment_by_digest() -> None:
    manifest = make_run(PLAN, [TRIAL]).manifest
    data = dump_document(manifest)
    predicate = f'{{"deployment":"{manifest.deployment}","document":"run_manifest","plan":"{manifest.plan}"}}'
    found = evidence_statement("evidence/run.json", data, manifest)
    assert found == by_hand("evidence", predicate, subject("evidence/run.json", sha(data)))


def test_the_subject_is_the_file_as_it_lies() -> None:
    found = json.loads(evidence_statement("evidence/a.json", b"other bytes", TRIAL.record))
    assert found["subject"][0]["digest"]["sha256"] == sha(b"other bytes")


def test_an_index_lists_what_was_there_in_name_order() -> None:
    entries = [(f"evidence-{number:016x}-1.sigstore.json", digest_of(str(number))) for number in range(4)]
    predicate = ",".join(f'{{"name":"{name}","payload":"{payload}"}}' for name, payload in entries)
    expected = by_hand("index", f'{{"attestations":[{predicate}]}}', subject("bundle.json", sha(b"inventory\n")))
    assert index_statement(b"inventory\n", entries) == expected
    assert index_statement(b"inventory\n", reversed(entries)) == expected
    empty = by_hand("index", '{"attestations":[]}', subject("bundle.json", sha(b"inventory\n")))
    assert index_statement(b"inventory\n", []) == empty


@pytest.mark.parametrize("name", ["index-0123456789abcdef-1.sigstore.json", "evidence.json", ""])
def test_an_index_lists_evidence_and_verdicts_only(name: str) -> None:
    with pytest.raises(InputError):
        index_statement(b"{}\n", [(name, digest_of("payload"))])


def test_a_verdict_is_about_plan_checkpoint_and_runtimes() -> None:
    verdict = ready_case().judge()
    found = json.loads(verdict_statement(verdict))
    assert found["predicate"] == {"verdict": unstructure(verdict)}
    subjects = [(item["name"], "sha256:" + item["digest"]["sha256"]) for item in found["subject"]]
    assert subjects == [
        ("plan.json", "sha256:" + sha(dump_document(PLAN))),
        ("checkpoint", make_checkpoint().root),
        ("runtime-1", RUNTIME.digest),
    ]
    assert verdict_statement(verdict) == verdict_statement(ready_case().judge())


def test_a_verdict_without_evidence_is_about_the_plan_alone() -> None:
    case = ready_case().but(plan=build_plan(checkpoint=None), evidence=make_evidence([]))
    found = json.loads(verdict_statement(case.judge()))
    assert [item["name"] for item in found["subject"]] == ["plan.json"]


def test_another_verdict_is_another_statement() -> None:
    verdict = ready_case().judge()
    assert verdict_statement(attrs.evolve(verdict, readiness="not_ready")) != verdict_statement(verdict)
