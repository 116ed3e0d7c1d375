"""Each reason code has a case that produces it, and no source emits one without a next step."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import moeplan.evaluation
from moeplan.catalogue.metrics import METRICS
from moeplan.evaluation.communication import STEP_PARTS
from moeplan.evaluation.failures import EVENTS
from moeplan.evaluation.next_steps import REASONS, next_step
from moeplan.model.checkpoint import CheckpointFile, CheckpointIndex, root_digest
from moeplan.model.deployment import RuntimeIdentity
from moeplan.model.evidence import RECORD_TYPES, EngineCounters
from moeplan.model.policy import LeastBinding
from moeplan.model.run_manifest import RunObservation, RunTrial
from moeplan.model.series import SERIES_STATES
from moeplan.model.verified import VerifiedRecord
from moeplan.units import MAX_SAFE_INTEGER
from moeplan.wire.documents import identify
from tests.build import (
    AT,
    MS,
    STRANGER,
    TRIAL_START,
    Case,
    Request,
    build_plan,
    case_of,
    checkpoint_ref,
    criterion_of,
    digest_of,
    gate_of,
    make_checkpoint,
    make_deployment,
    make_digestion,
    make_evidence,
    make_policy,
    make_run,
    make_spec,
    make_trial,
    planned_criterion,
    ready_case,
    steady_requests,
    with_criterion,
)
from tests.unit.evaluation.economics_cases import ECONOMICS_REASONS, priced
from tests.unit.evaluation.handoff_cases import HANDOFF_REASONS
from tests.unit.evaluation.loaded_cases import LOADED_REASONS
from tests.unit.evaluation.loading_cases import LOADING_REASONS, LOADING_WORDS
from tests.unit.evaluation.memory_cases import MEMORY_REASONS
from tests.unit.evaluation.routing_cases import ROUTING_REASONS
from tests.unit.evaluation.service_cases import SERVICE_REASONS

PLAN = build_plan()
SLOW = 2000 * MS


def trials_with(rows: list[Request]) -> Case:
    return case_of(PLAN, lambda plan, number: make_trial(plan, number, rows))


def slow_at(rows: list[Request], places: set[int]) -> list[Request]:
    return [
        attrs.evolve(row, ttft_ns=SLOW, end_ns=row.end + 2 * SLOW) if index in places else row
        for index, row in enumerate(rows)
    ]


def each_row(**changes: Any) -> list[Request]:
    return [attrs.evolve(row, **changes) for row in steady_requests()]


def run_with(**changes: Any) -> Case:
    return case_of(PLAN, **changes)


def without_listing(case: Case, **parts: Any) -> Case:
    """Change the evidence and list only what is left."""
    evidence = attrs.evolve(case.evidence, **parts)
    return case.but(evidence=make_evidence(evidence.records, evidence.runs, evidence.checkpoint))


def second_run_of_the_same_name() -> Case:
    case = ready_case()
    trials = [item for item in case.evidence.records if item.record.type == "serving_trial"]
    other = make_run(PLAN, trials, announced=False)
    return without_listing(case, runs=(*case.evidence.runs, other))


def relabelled(plan: object, number: int) -> VerifiedRecord:
    """Return trial 1 under another number, its raw tables in files of other names."""
    first, other = make_trial(PLAN, 1), make_trial(PLAN, number)
    parts = zip(first.record.attachments, other.record.attachments, strict=True)
    attachments = tuple(attrs.evolve(mine, digest=one.digest) for one, mine in parts)
    record = attrs.evolve(other.record, attachments=attachments)
    return attrs.evolve(other, record=record, digest=digest_of(f"relabelled {number}"))


def stranger_signed(kind: str) -> Case:
    case = ready_case()
    records = tuple(
        attrs.evolve(item, signers=(STRANGER,)) if item.record.type == kind else item for item in case.evidence.records
    )
    return case.but_evidence(records=records)


def mixed() -> Case:
    other = make_deployment(arguments=("--enforce-eager",))

    def trial(plan: object, number: int) -> VerifiedRecord:
        return make_trial(PLAN, number, deployment=other if number == 2 else None)

    return case_of(PLAN, trial)


def of_nine() -> Case:
    """Keep trials of a deployment that names one accelerator more than the plan asks for."""
    nine = make_deployment(accelerators=tuple(f"gpu-{number}" for number in range(9)))
    return case_of(PLAN, lambda plan, number: make_trial(plan, number, deployment=nine), digestions=[])


def of_plan(**changes: Any) -> Case:
    """Keep the evidence of another plan."""
    return ready_case().but(plan=build_plan(**changes))


def index_disagrees() -> Case:
    manifest = make_checkpoint()
    return case_of(
        PLAN,
        checkpoint=attrs.evolve(manifest, index=CheckpointIndex("model.safetensors", manifest.tensor_bytes, False)),
    )


def tensors_not_read() -> Case:
    """Keep the weights in a format whose tensors no manifest lists."""
    files = (CheckpointFile("pytorch_model.bin", 61_064_245_248, digest_of("weights")),)
    manifest = attrs.evolve(make_checkpoint(), files=files, root=root_digest(files), tensors=(), tensor_bytes=0)
    return case_of(build_plan(checkpoint=checkpoint_ref(manifest)), checkpoint=manifest)


def other_checkpoint() -> Case:
    plan = build_plan(checkpoint=checkpoint_ref(make_checkpoint(tensor_bytes=61_064_245_250)))
    return case_of(plan)


def other_runtime() -> Case:
    image = RuntimeIdentity("serve", "oci_image", digest_of("another image"))
    return case_of(build_plan(deployment=make_spec(image)))


def gapless() -> Case:
    plan = build_plan(output_tokens=1)
    rows = each_row(gaps=(), output_tokens=1)
    return case_of(plan, lambda plan, number: make_trial(plan, number, rows))


def comparator_ge() -> Case:
    return case_of(with_criterion(PLAN, "sla.ttft_p95", comparator="ge"))


def aborted() -> Case:
    case = ready_case()
    run = case.evidence.runs[0]
    manifest = attrs.evolve(run.manifest, trials=(*run.manifest.trials, RunTrial(4, "aborted", None, ())))
    return without_listing(case, runs=(attrs.evolve(run, manifest=manifest, digest=identify(manifest)),))


def price_aborted() -> Case:
    """Keep a run that began another record of the type and left none."""
    case = priced()
    run = case.evidence.runs[0]
    manifest = attrs.evolve(run.manifest, observations=(RunObservation("price", None, ()),))
    return without_listing(case, runs=(attrs.evolve(run, manifest=manifest, digest=identify(manifest)),))


CASES: dict[str, tuple[Callable[[], Case], str, str]] = {
    "above_limit": (lambda: trials_with(each_row(ttft_ns=SLOW, end_ns=None)), "sla.ttft_p95", "fail"),
    "after_instant": (lambda: ready_case().but(at=TRIAL_START), "sla.ttft_p95", "inconclusive"),
    "batches_vary": (
        lambda: trials_with(slow_at(steady_requests(400), set(range(388, 400)))),
        "sla.ttft_p95",
        "inconclusive",
    ),
    "binding_too_weak": (
        lambda: ready_case().but_policy(least_binding=(LeastBinding("workload_sla", "loaded"),)),
        "sla.trials",
        "inconclusive",
    ),
    "bound_above_limit": (lambda: trials_with(slow_at(steady_requests(), {9, 40})), "sla.ttft_p95", "inconclusive"),
    "comparator_not_judged": (comparator_ge, "sla.ttft_p95", "inconclusive"),
    "counters_contradict": (
        lambda: case_of(
            PLAN,
            lambda plan, number: make_trial(
                plan, number, engine_counters=EngineCounters(60, 1920, MAX_SAFE_INTEGER, 300)
            ),
        ),
        "sla.prefix_cache_share",
        "inconclusive",
    ),
    "engine_start_unknown": (
        lambda: case_of(PLAN, lambda plan, number: make_trial(plan, number, engine_start=None)),
        "artifact.digest_before_execution",
        "inconclusive",
    ),
    "evidence_taken_away": (
        lambda: ready_case().but_evidence(records=ready_case().evidence.records[1:]),
        "sla.ttft_p95",
        "inconclusive",
    ),
    "index_disagrees": (index_disagrees, "artifact.files_digested", "fail"),
    "limit_not_met": (lambda: trials_with(each_row(input_tokens=31)), "sla.input_tokens", "fail"),
    "missing_evidence": (lambda: ready_case(), "memory.phases", "waived"),
    "mixed_deployments": (mixed, "sla.ttft_p95", "inconclusive"),
    "more_accelerators": (of_nine, "sla.ttft_p95", "inconclusive"),
    "no_complete_requests": (lambda: trials_with(each_row(outcome="error")), "sla.input_tokens", "inconclusive"),
    "no_engine_counters": (
        lambda: case_of(PLAN, lambda plan, number: make_trial(plan, number, engine_counters=None)),
        "sla.engine_counters",
        "inconclusive",
    ),
    "no_prompt_tokens": (
        lambda: case_of(
            PLAN, lambda plan, number: make_trial(plan, number, engine_counters=EngineCounters(60, 0, 0, 300))
        ),
        "sla.prefix_cache_share",
        "inconclusive",
    ),
    "no_server_usage": (lambda: trials_with(each_row(usage=0)), "sla.output_tokens_most", "inconclusive"),
    "no_start_times": (lambda: trials_with(each_row(start_ns=0, end_ns=9)), "sla.concurrency", "inconclusive"),
    "no_trusted_runner": (lambda: stranger_signed("serving_trial"), "sla.ttft_p95", "inconclusive"),
    "no_values": (gapless, "sla.chunk_gap_p95", "inconclusive"),
    "node_not_hashed": (
        lambda: case_of(PLAN, digestions=[make_digestion(PLAN, "node-b")]),
        "artifact.digest_before_execution",
        "inconclusive",
    ),
    "not_of_its_run": (lambda: run_with(planned_requests=61), "sla.ttft_p95", "inconclusive"),
    "other_checkpoint": (other_checkpoint, "sla.ttft_p95", "inconclusive"),
    "other_plan": (lambda: of_plan(devices=16), "sla.ttft_p95", "inconclusive"),
    "other_runtime": (other_runtime, "sla.ttft_p95", "inconclusive"),
    "plan_value_missing": (
        lambda: case_of(build_plan(prefix_cache_share_basis_points=None)),
        "sla.prefix_cache_share",
        "inconclusive",
    ),
    "revision_not_named": (
        lambda: case_of(PLAN, checkpoint=make_checkpoint(revision=None)),
        "artifact.revision_identity",
        "inconclusive",
    ),
    "run_manifest_missing": (lambda: without_listing(ready_case(), runs=()), "sla.ttft_p95", "inconclusive"),
    "run_named_twice": (second_run_of_the_same_name, "sla.trials", "inconclusive"),
    "run_not_closed": (lambda: run_with(state="open"), "sla.trials", "inconclusive"),
    "tensors_not_read": (tensors_not_read, "residency.exact_tensor_bytes", "inconclusive"),
    "too_few_samples": (lambda: trials_with(steady_requests(56)), "sla.ttft_p95", "inconclusive"),
    "too_few_trials": (lambda: case_of(PLAN, trials=2), "sla.trials", "inconclusive"),
    "trials_overlap": (
        lambda: case_of(PLAN, lambda plan, number: make_trial(plan, number, start=TRIAL_START)),
        "sla.trials",
        "inconclusive",
    ),
    "trial_aborted": (aborted, "sla.trials", "inconclusive"),
    "trial_repeated": (lambda: case_of(PLAN, relabelled), "sla.trials", "inconclusive"),
    "trials_missing": (lambda: run_with(planned_trials=4), "sla.trials", "inconclusive"),
    "warmup_undeclared": (
        lambda: case_of(PLAN, lambda plan, number: make_trial(plan, number, warmup=None)),
        "sla.engine_counters",
        "inconclusive",
    ),
    "observation_aborted": (price_aborted, "economics.cost", "inconclusive"),
    **HANDOFF_REASONS,
    **MEMORY_REASONS,
    **ROUTING_REASONS,
    **ECONOMICS_REASONS,
    **LOADING_REASONS,
    **LOADED_REASONS,
    **SERVICE_REASONS,
}


@pytest.mark.parametrize("reason", CASES)
def test_each_reason_comes_out_of_a_case(reason: str) -> None:
    make, id, outcome = CASES[reason]
    verdict = make().judge()
    found = criterion_of(verdict, id)
    assert (found.outcome, found.reason) == (outcome, reason)
    assert found.underlying != "pass"
    assert verdict.readiness == ("ready" if outcome == "waived" else verdict.readiness)
    if outcome != "waived":
        assert verdict.readiness == ("not_ready" if any(g.outcome == "fail" for g in verdict.gates) else "inconclusive")
        gate = next(gate.id for gate in verdict.gates if any(rule.id == id for rule in gate.criteria))
        assert gate_of(verdict, gate).outcome != "pass"
    assert found.next
    assert found.next != "see the reason"


def test_every_reason_has_a_case_and_no_case_is_idle() -> None:
    assert set(CASES) == {*REASONS, "missing_evidence"}


def words_of_the_sources() -> set[str]:
    """Return every text in the room that reads like a code."""
    room = Path(moeplan.evaluation.__file__).parent
    found: set[str] = set()
    for path in sorted(room.glob("*.py")):
        if path.name == "next_steps.py":
            continue
        for statement in ast.parse(path.read_text()).body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
                continue
            found |= {
                node.value for node in ast.walk(statement) if isinstance(node, ast.Constant) and type(node.value) is str
            }
    return {word for word in found if re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", word)}


NO_REASONS = {
    *METRICS,
    *RECORD_TYPES,
    *EVENTS,
    *STEP_PARTS,
    *LOADING_WORDS,
    *SERIES_STATES,
    "step_ns",
    "checkpoint_manifest",
    "input_tokens",
    "output_tokens",
    "not_verified",
    "not_ready",
    "plan_blocked",
    "unexpected_subject",
}
"""Words that look like a code and are a metric, a type of evidence, a column, or a code of the verdict itself."""


def test_what_the_sources_can_emit_has_a_next_step_and_nothing_else_has() -> None:
    assert words_of_the_sources() - NO_REASONS == {*REASONS, "missing_evidence"}


def test_the_next_step_names_the_requests_that_would_settle_it() -> None:
    verdict = trials_with(slow_at(steady_requests(), {9, 40})).judge()
    step = criterion_of(verdict, "sla.ttft_p95").next
    assert step is not None
    found = re.search(r"at least (\d+) requests a trial", step)
    assert found is not None
    assert int(found[1]) > 60


def test_a_criterion_with_many_evidence_types_still_gets_one_sentence() -> None:
    rule = attrs.evolve(planned_criterion(PLAN, "load.ready"), evidence_types=("engine_log",) * 500)
    assert len(next_step("missing_evidence", rule, None)) < 200


def test_every_case_is_judged_at_an_instant_after_its_evidence() -> None:
    assert all(item.record.interval.end < AT for item in ready_case().evidence.records)
    assert make_policy(PLAN).expects is not None
