"""What a plan lacks, counted by hand on the reference bundle and on made directories."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs
import pytest

from moeplan.errors import InputError, StoreError
from moeplan.model.plan import Plan
from moeplan.model.run_manifest import RunManifest
from moeplan.wire.documents import dump_document, load_document
from moeplan.workflows.status import find_records, status
from moeplan.workflows.status_steps import step_for
from tests.unit.docs.options import documented_parsers

ROOT = Path(__file__).resolve().parents[3]
BUNDLE = ROOT / "evidence/tiny-moe-cpu/bundle"


@pytest.fixture
def plan() -> Plan:
    return load_document((BUNDLE / "plan.json").read_bytes(), Plan)


def test_the_reference_bundle_has_trials_and_a_manifest_and_lacks_the_rest(plan: Plan) -> None:
    seen = status(plan, find_records([BUNDLE]))
    states = {item.criterion: item for item in seen.criteria}
    assert states["sla.ttft_p95"].state == "evidence"
    assert [Path(path).name[-12:] for path in states["sla.ttft_p95"].records] == [
        "trial-1.json", "trial-2.json", "trial-3.json",
    ]  # fmt: skip
    assert states["artifact.revision_identity"].records == (str(BUNDLE / "checkpoint.json"),)
    assert states["artifact.digest_before_execution"].lacks == ("checkpoint_digest",)
    assert states["memory.phases"].state == "missing"
    assert states["residency.planned_floor"].state == "evidence"  # asks for none
    assert {step.type for step in seen.steps} >= {"checkpoint_digest", "engine_log", "memory_series", "price"}
    assert seen.minutes == sum(step.minutes for step in seen.steps)
    assert (seen.deployments, seen.interrupted, seen.other_plan) == (1, (), ())


def test_minutes_of_trials_are_the_plans_own_need(plan: Plan) -> None:
    """59 requests, four at once, each 200 ms + 63 × 50 ms: 15 × 3.35 s = 50.25 s, 51 a trial, three of them."""
    command, minutes = step_for(plan, "serving_trial")
    assert minutes == 3
    assert "--input-tokens 128 --output-tokens 64 --concurrency 4" in command


def test_every_type_a_criterion_asks_for_has_a_command_that_its_parser_takes(plan: Plan) -> None:
    """With numbers for the words in capitals, since some are to be numbers."""
    kinds = {kind for gate in plan.validation_gates for item in gate.criteria for kind in item.evidence_types}
    parsers = documented_parsers()
    for kind in {*kinds, "loaded_bytes", "quality_result"}:
        words = step_for(plan, kind)[0].partition("  #")[0].split()
        assert (words[0], len(words) > 5) == ("moeplan", True), kind
        given = ["1" if word.isupper() else word for word in words[3:]]
        parsers[" ".join(words[1:3])].parse_args(given)


def test_what_was_interrupted_or_is_another_plans_is_named(plan: Plan, tmp_path: Path) -> None:
    shutil.copytree(BUNDLE / "evidence", tmp_path / "evidence")
    [path] = [item for item in (tmp_path / "evidence").glob("run-*.json") if "trial" not in item.name]
    run = load_document(path.read_bytes(), RunManifest)
    path.write_bytes(dump_document(attrs.evolve(run, state="open")))
    assert status(plan, find_records([tmp_path])).interrupted == (str(path),)
    path.write_bytes(dump_document(attrs.evolve(run, plan="sha256:" + "0" * 64)))
    assert status(plan, find_records([tmp_path])).other_plan == (str(path),)


def test_a_malformed_record_and_a_missing_directory_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"kind":"evidence_record"}')
    (tmp_path / "b.json").write_text("no json, though it says evidence_record")
    with pytest.raises(InputError) as caught:
        find_records([tmp_path])
    assert all("a.json" in issue.path for issue in caught.value.issues)
    with pytest.raises(StoreError, match="no directory"):
        find_records([tmp_path / "none"])
