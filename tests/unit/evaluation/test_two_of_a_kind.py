"""Two records of one kind, of which one is worse: the better one is never the one that counts."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from moeplan.model.deployment import Parallelism
from moeplan.model.memory_metrics import USED
from moeplan.model.observations import Price
from moeplan.model.plan import Plan
from moeplan.model.run_manifest import RunObservation
from moeplan.model.verified import VerifiedRecord
from tests.build import (
    Case,
    build_plan,
    case_of,
    criterion_of,
    make_deployment,
    make_digestion,
    make_evidence,
    make_policy,
    make_run,
    make_spec,
    make_trial,
    ready_case,
)
from tests.build_observations import make_observation
from tests.unit.evaluation.economics_cases import make_price, priced
from tests.unit.evaluation.loading_cases import (
    DRAFT,
    LOG_ROWS,
    LogRow,
    S,
    case_with,
    drafted,
    make_environment,
    make_log,
)
from tests.unit.evaluation.memory_cases import DEVICES, make_memory, watched

PLAN = build_plan()


def judged(case: Case, id: str) -> tuple[str, Any, str | None]:
    result = criterion_of(case.judge(), id)
    return result.underlying, result.observed, result.reason


def with_records(case: Case, *records: VerifiedRecord) -> Case:
    held = case.evidence
    return case.but(evidence=make_evidence([*held.records, *records], held.runs, held.checkpoint))


class TestStartsOfOneLog:
    def case(self, *more: LogRow, **spec: Any) -> Case:
        plan = build_plan(deployment=attrs.evolve(make_spec(), **spec))
        return case_with(make_log(plan, (*LOG_ROWS, *more)), plan=plan)

    def test_experts_spread_in_the_second_start_alone(self) -> None:
        again = (
            (70 * S, "api-server", "engine_state", "starting"),
            (71 * S, "api-server", "expert_parallel_enabled", 1),
        )
        found = judged(self.case(*again, parallelism=Parallelism(8, None, 1, 8)), "load.deployment")
        assert found == ("fail", 1, "limit_not_met")

    def test_quantized_in_the_second_start_alone(self) -> None:
        found = judged(self.case((71 * S, "engine-core", "quantization", "fp8"), precision="fp8"), "load.deployment")
        assert found == ("fail", 1, "limit_not_met")


def test_of_two_logs_the_one_without_drafts_counts() -> None:
    silent = tuple(row for row in LOG_ROWS if row[2] != "speculation")
    case = drafted(None, rows=(*silent, (90 * S, "api-server", "draft_tokens", 9)))
    assert judged(case, "load.speculation") == ("pass", 9, None)
    other = make_log(
        case.plan,
        (*silent, (90 * S, "api-server", "draft_tokens", 0)),
        deployment=make_deployment(draft_checkpoint_root=DRAFT),
    )
    assert judged(with_records(case, other), "load.speculation") == ("fail", 0, "limit_not_met")


class TestEngineStarts:
    @pytest.mark.parametrize(
        ("log_start", "named", "reason"),
        [
            ("2026-03-01T09:00:00Z", "2026-03-01T09:00:00Z", None),
            ("2026-03-01T09:00:00Z", None, None),
            ("2026-03-01T08:30:00Z", None, "log_of_other_start"),
            ("2026-03-01T09:00:10Z", "2026-03-01T09:00:10Z", None),
            ("2026-03-01T09:30:00Z", "2026-03-01T09:30:00Z", "log_of_other_start"),
        ],
    )
    def test_a_log_is_of_the_start_that_served(self, log_start: str, named: str | None, reason: str | None) -> None:
        log = make_log(PLAN, start=log_start, engine_start=named)
        assert judged(case_with(log), "load.fatal_signatures")[2] == reason

    def test_trials_without_a_known_start_may_be_of_any_log(self) -> None:
        case = case_of(PLAN, lambda plan, number: make_trial(plan, number, engine_start=None))
        log = make_log(PLAN, start="2026-03-01T08:30:00Z")
        assert judged(with_records(case, log), "load.fatal_signatures") == ("pass", 0, None)


class TestRunsOfTrials:
    def open_run(self, case: Case) -> Case:
        trials = [item for item in case.evidence.records if item.record.type == "serving_trial"]
        runs = [make_run(PLAN, trials, state="open")]
        return case.but(evidence=make_evidence(case.evidence.records, runs, case.evidence.checkpoint))

    def test_memory_under_trials_of_an_open_run_shows_nothing(self) -> None:
        case = watched(make_memory(PLAN))
        assert judged(case, "memory.workload")[0] == "pass"
        assert judged(self.open_run(case), "memory.workload")[::2] == ("inconclusive", "run_not_closed")

    @pytest.mark.parametrize(
        ("type", "id"),
        [("serving_trial", "sla.failed_requests"), ("checkpoint_digest", "artifact.digest_before_execution")],
    )
    def test_an_observation_that_was_begun_and_left_no_record(self, type: str, id: str) -> None:
        case = ready_case()
        trials = [item for item in case.evidence.records if item.record.type == "serving_trial"]
        run = make_run(PLAN, trials, observations=(RunObservation(type, None, ()),))
        begun = case.but(evidence=make_evidence(case.evidence.records, [run], case.evidence.checkpoint))
        assert judged(begun, id)[::2] == ("inconclusive", "observation_aborted")


class TestAccelerators:
    def case(self, count: int) -> Case:
        deployment = make_deployment(accelerators=tuple(f"gpu-{number}" for number in range(count)))

        def trial(plan: Plan, number: int) -> VerifiedRecord:
            return make_trial(plan, number, deployment=deployment)

        case = case_of(PLAN, trial, digestions=[make_digestion(PLAN, deployment=deployment)])
        return with_records(case, make_price(PLAN, deployment=deployment))

    def test_as_many_as_planned(self) -> None:
        assert judged(self.case(8), "sla.ttft_p95")[0] == judged(self.case(8), "economics.cost")[0] == "pass"

    @pytest.mark.parametrize("id", ["sla.ttft_p95", "economics.cost"])
    def test_what_sixteen_show_says_nothing_of_eight(self, id: str) -> None:
        assert judged(self.case(16), id)[::2] == ("inconclusive", "more_accelerators")
        assert self.case(16).judge().readiness == "inconclusive"


@pytest.mark.parametrize(("dated", "outcome"), [("2026-03-02", "pass"), ("2026-03-03", "inconclusive")])
def test_a_price_of_later_than_the_instant_is_none(dated: str, outcome: str) -> None:
    payload = make_price(PLAN).record.payload
    assert isinstance(payload, Price)
    payload = attrs.evolve(payload, dated=dated)
    price = make_observation(PLAN, payload, engine_start=None)
    assert judged(priced(price), "economics.cost")[::2] == (outcome, None if outcome == "pass" else "after_instant")


def test_a_slow_beat_elsewhere_closes_no_hole() -> None:
    rows = [
        (at * S, device.id, USED, 100 * S, "bytes")
        for at in range(241)
        for device in DEVICES
        if device.id != "gpu-2" or not 120 < at < 140
    ]
    holed, slow = make_memory(PLAN, rows, beat=S), make_memory(PLAN, start="2026-03-01T12:00:00Z", beat=10 * S)
    assert judged(watched(holed), "memory.phases") == ("inconclusive", 2, "series_has_hole")
    assert judged(watched(holed, slow), "memory.phases") == ("inconclusive", 2, "series_has_hole")


def test_an_environment_of_unknown_nodes_is_not_complete() -> None:
    somewhere = make_deployment(nodes=None)
    records = [make_environment(PLAN, deployment=somewhere), make_log(PLAN, deployment=somewhere)]
    case = Case(PLAN, make_evidence(records), make_policy(PLAN))
    assert judged(case, "load.environment") == ("inconclusive", 0, "environment_incomplete")
