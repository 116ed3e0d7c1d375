"""Every evidence bundle under ``evidence/`` is verified, judged again and compared byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeplan.auditing.audit import audit
from moeplan.model.policy import Policy
from moeplan.model.verdict import Verdict
from moeplan.wire.documents import dump_document, load_document

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence"
REFERENCES = sorted(path.parent for path in EVIDENCE.glob("*/policy.json"))


def test_there_is_reference_evidence() -> None:
    assert [path.name for path in REFERENCES] == sorted(path.name for path in EVIDENCE.iterdir() if path.is_dir())
    assert REFERENCES


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda path: path.name)
def test_the_verdict_is_recomputed(reference: Path) -> None:
    policy = load_document((reference / "policy.json").read_bytes(), Policy)
    wanted = (reference / "verdict.json").read_bytes()
    verdict = load_document(wanted, Verdict)
    done = audit(reference / "bundle", policy, verdict.at)
    assert done.ok, done.error
    assert [item.outcome for item in done.reproductions] == ["reproduced"]
    assert done.own is not None
    assert dump_document(done.own) == wanted


def test_the_demonstration_makes_the_reference_bundle(demo: Path) -> None:
    reference = EVIDENCE / "tiny-moe-cpu"
    for name in ("policy.json", "verdict.json"):
        assert (demo / name).read_bytes() == (reference / name).read_bytes()
    made = {str(p.relative_to(demo / "bundle")): p.read_bytes() for p in (demo / "bundle").rglob("*") if p.is_file()}
    kept = {
        str(p.relative_to(reference / "bundle")): p.read_bytes()
        for p in (reference / "bundle").rglob("*")
        if p.is_file()
    }
    assert made.keys() == kept.keys()
    assert [name for name in made if made[name] != kept[name]] == []
