"""The strongest binding: bytes hashed in the engine that served, against the files; and what speaks against it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest

from moeplan.model.policy import LeastBinding
from moeplan.model.run_manifest import RunObservation
from moeplan.model.verified import VerifiedRecord
from moeplan.wire.documents import identify
from tests.build import (
    STRANGER,
    Case,
    build_plan,
    criterion_of,
    digest_of,
    gate_of,
    make_deployment,
    make_digestion,
    make_evidence,
    ready_case,
)
from tests.unit.evaluation.loaded_cases import (
    CONTENTS,
    NOTHING,
    Row,
    loaded_case,
    make_loaded,
    make_tensor_digestion,
    tensor_rows,
)

PLAN = build_plan()
W_BYTES, W_DIGEST = CONTENTS["w"]
WHOLE = tensor_rows()
HALVES = [
    [("tp0", *row[1:]) for row in WHOLE[: len(WHOLE) // 2 + 1]],
    [("tp1", *row[1:]) for row in WHOLE[len(WHOLE) // 2 :]],
]


def binding(case: Case) -> str | None:
    return criterion_of(case.judge(), "sla.ttft_p95").binding


def loads(*tables: Sequence[Row]) -> list[VerifiedRecord]:
    return [make_loaded(PLAN, rows) for rows in tables]


def test_what_the_engine_loaded_is_what_the_files_hold() -> None:
    case = loaded_case().but_policy(least_binding=(LeastBinding("workload_sla", "loaded"),))
    verdict = case.judge()
    assert criterion_of(verdict, "sla.ttft_p95").binding == "loaded"
    assert verdict.readiness == "ready"
    root = criterion_of(verdict, "artifact.files_digested")
    assert (root.outcome, len(root.evidence)) == ("pass", 3)


def test_without_the_probe_nothing_is_worse_than_hashed() -> None:
    assert binding(loaded_case([])) == "hashed"
    assert loaded_case([]).judge().readiness == "ready"
    assert binding(ready_case()) == "hashed"


@pytest.mark.parametrize("records", [loads([*HALVES[0], *HALVES[1]]), loads(*HALVES)])
def test_ranks_together_load_the_whole(records: list[VerifiedRecord]) -> None:
    """With expert parallelism a rank reads its own experts only."""
    assert binding(loaded_case(records)) == "loaded"
    assert binding(loaded_case(records[:-1] if len(records) > 1 else loads(HALVES[0]))) == "hashed"


@pytest.mark.parametrize(
    "rows",
    [
        tensor_rows(w=None),
        tensor_rows(w=(W_BYTES, NOTHING)),
        [*WHOLE, ("tp0", "more", 2, digest_of("more"))],
    ],
)
def test_a_tensor_missing_emptied_or_unknown_binds_as_without_the_probe(rows: list[Row]) -> None:
    case = loaded_case(loads(rows))
    assert binding(case) == "hashed"
    assert criterion_of(case.judge(), "artifact.files_digested").outcome == "pass"


@pytest.mark.parametrize("rows", [tensor_rows(w=(W_BYTES, digest_of("x"))), tensor_rows(w=(W_BYTES - 2, W_DIGEST))])
@pytest.mark.parametrize("signers", [None, (STRANGER,), ()])
def test_other_bytes_fail_the_artifact_whoever_says_so(rows: list[Row], signers: tuple[()] | None) -> None:
    record = make_loaded(PLAN, rows)
    case = loaded_case([make_loaded(PLAN), record if signers is None else attrs.evolve(record, signers=signers)])
    verdict = case.judge()
    assert gate_of(verdict, "artifact_integrity").outcome == "fail"
    assert criterion_of(verdict, "artifact.files_digested").reason == "loaded_bytes_differ"
    assert verdict.readiness == "not_ready"
    assert binding(case) == "hashed"


def test_one_rank_that_read_other_bytes_than_the_next_fails() -> None:
    rows = [*WHOLE, ("tp1", "w", W_BYTES, digest_of("other"))]
    verdict = loaded_case(loads(rows)).judge()
    assert criterion_of(verdict, "artifact.files_digested").reason == "loaded_bytes_differ"


def test_two_nodes_whose_files_differ_fail() -> None:
    other = [("files", *row[1:]) for row in tensor_rows(w=(W_BYTES, digest_of("other")))]
    digestions = [make_tensor_digestion(PLAN), make_tensor_digestion(PLAN, other, node="node-b")]
    verdict = loaded_case(None, digestions).judge()
    assert criterion_of(verdict, "artifact.files_digested").reason == "loaded_bytes_differ"


@pytest.mark.parametrize(
    "case",
    [
        loaded_case([make_loaded(PLAN, engine_start="2026-03-01T09:00:01Z")]),
        loaded_case([make_loaded(PLAN, signers=(STRANGER,))]),
        loaded_case([make_loaded(PLAN), make_loaded(PLAN, [*WHOLE, ("tp1", "x", 1, digest_of("x"))], signers=())]),
        loaded_case(None, [make_digestion(PLAN)]),
        loaded_case(None, [make_digestion(PLAN), make_tensor_digestion(PLAN, signers=(STRANGER,))]),
        loaded_case(None, [make_tensor_digestion(PLAN, [("files", *row[1:]) for row in tensor_rows(w=None)])]),
    ],
    ids=["another start", "stranger", "unsigned doubt", "no tensors", "stranger's tensors", "files not whole"],
)
def test_what_does_not_show_it_leaves_it_hashed(case: Case) -> None:
    assert binding(case) == "hashed"
    assert criterion_of(case.judge(), "artifact.files_digested").outcome == "pass"


def test_records_of_another_deployment_decide_nothing() -> None:
    rows = tensor_rows(w=(W_BYTES, digest_of("x")))
    case = loaded_case([make_loaded(PLAN, rows, deployment=make_deployment(arguments=("--x",)))])
    root = criterion_of(case.judge(), "artifact.files_digested")
    assert (root.outcome, root.reason) == ("inconclusive", "mixed_deployments")


def test_a_loading_that_was_begun_and_left_no_record_leaves_it_hashed() -> None:
    case = loaded_case()
    run = case.evidence.runs[0]
    manifest = attrs.evolve(run.manifest, observations=(RunObservation("loaded_bytes", None, ()),))
    begun = attrs.evolve(run, manifest=manifest, digest=identify(manifest))
    assert (
        binding(case.but(evidence=make_evidence(case.evidence.records, (begun,), case.evidence.checkpoint))) == "hashed"
    )


def test_taking_the_record_away_never_improves() -> None:
    case = loaded_case(loads(tensor_rows(w=(W_BYTES, digest_of("x")))))
    kept = tuple(item for item in case.evidence.records if item.record.type != "loaded_bytes")
    assert case.but_evidence(records=kept).judge().readiness == "inconclusive"
    whole = loaded_case().but_policy(least_binding=(LeastBinding("workload_sla", "loaded"),))
    assert whole.but_evidence(records=kept).judge().readiness == "inconclusive"
