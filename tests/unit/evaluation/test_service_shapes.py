"""Time per token, goodput, steadiness, length, client and warm-up of a trial, by hand and from the recorded trials."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from pathlib import Path
from statistics import median_low
from typing import Any

import attrs
import numpy as np
import pytest

from moeplan.evaluation.steady import drift_basis_points
from moeplan.evaluation.trial_shapes import TRIAL_SHAPES, Trial, tpot_groups
from moeplan.importers.trial import TrialInputs
from moeplan.importers.vllm_bench import import_vllm_bench
from moeplan.model.evidence import ClientLoad, EngineCounters, ServingTrial
from moeplan.model.plan import Objectives, Workload
from tests.build import (
    CONCURRENCY,
    ENGINE_START,
    MS,
    Request,
    build_plan,
    case_of,
    closing_counters,
    criterion_of,
    digest_of,
    make_deployment,
    make_evidence,
    make_spec,
    make_trial,
    planned_criterion,
    steady_requests,
)
from tests.unit.evaluation.loaded_cases import loaded_case, make_loaded
from tests.unit.evaluation.routing_cases import make_counts
from tests.unit.evaluation.service_cases import rising, trial_case, warm_case

PLAN = build_plan()
TRIALS = Path(__file__).resolve().parents[3] / "demo" / "trials"
WORKLOAD = Workload(128, 64, 4, 200, 50, "single", 2500)


def trial_of(rows: Sequence[Request], workload: Workload = PLAN.workload, **payload: Any) -> Trial:
    item = make_trial(PLAN, 1, rows, **payload)
    assert isinstance(item.record.payload, ServingTrial)
    assert item.requests is not None
    assert item.chunk_gaps is not None
    return Trial(item.requests, item.chunk_gaps, item.record.payload, workload)


def shown(name: str, rows: Sequence[Request], **payload: Any) -> tuple[int | None, str | None]:
    return TRIAL_SHAPES[name](trial_of(rows, **payload))


class TestTimePerToken:
    def test_by_hand(self) -> None:
        rows = [
            Request(0, gaps=(10, 20, 31), output_tokens=5),  # 61 ns over 4 tokens: 15.25
            Request(1, gaps=(), output_tokens=1),
            Request(2, gaps=(8,), output_tokens=9, outcome="error"),
            Request(3, gaps=(), output_tokens=5, end_ns=10**9),  # all in one chunk
        ]
        sample = tpot_groups(trial_of(rows))
        assert sample is not None
        assert [(list(group.values), group.lost) for group in sample] == [([16], 0), ([], 0), ([], 1), ([0], 0)]

    def test_rows_in_another_order_than_their_indexes(self) -> None:
        trial = trial_of([Request(0, gaps=(10,), output_tokens=2), Request(1, gaps=(30,), output_tokens=2)])
        turned = attrs.evolve(trial.requests, request=array("q", [1, 0]))
        sample = tpot_groups(attrs.evolve(trial, requests=turned))
        assert sample is not None
        assert [list(group.values) for group in sample] == [[30], [10]]

    def test_tokens_that_the_server_did_not_count_tell_nothing(self) -> None:
        assert tpot_groups(trial_of([Request(0, usage=0)])) is None
        found = criterion_of(
            trial_case([attrs.evolve(row, usage=0) for row in steady_requests()]).judge(), "sla.tpot_p95"
        )
        assert (found.outcome, found.reason) == ("inconclusive", "no_server_usage")

    def test_reported_beside_the_gaps_without_speculation_and_limited_with_it(self) -> None:
        rules = [planned_criterion(PLAN, id) for id in ("sla.chunk_gap_p95", "sla.tpot_p95")]
        assert [(rule.comparator, rule.limit) for rule in rules] == [("le", 50 * MS), ("reported", None)]
        draft = digest_of("draft")
        plan = build_plan(deployment=make_spec(draft=draft))
        rules = [planned_criterion(plan, id) for id in ("sla.chunk_gap_p95", "sla.tpot_p95")]
        assert [(rule.comparator, rule.limit) for rule in rules] == [("reported", None), ("le", 50 * MS)]
        # Five tokens in two chunks 100 ms apart: 25 ms a token, though the gap is above its limit.
        rows = [attrs.evolve(row, gaps=(100 * MS,)) for row in steady_requests()]
        deployment = make_deployment(draft_checkpoint_root=draft)

        def judged(planned: Any, id: str) -> tuple[str, int | str | None]:
            made = case_of(planned, lambda p, n: make_trial(p, n, rows, deployment=deployment))
            found = criterion_of(made.judge(), id)
            return found.underlying, found.observed

        assert judged(plan, "sla.tpot_p95")[1] == 25 * MS
        assert judged(plan, "sla.chunk_gap_p95")[1] == 100 * MS
        sentences = plan.validation_gates[4].acceptance_criteria
        assert "P95 of a request's time per output token stays within 50 ms." in sentences

    def test_a_reported_quantile_among_lost_values_is_not_known(self) -> None:
        rows = [attrs.evolve(row, outcome="error") if n % 10 == 0 else row for n, row in enumerate(steady_requests())]
        found = criterion_of(trial_case(rows).judge(), "sla.tpot_p95")
        assert (found.outcome, found.observed, found.reason) == ("inconclusive", None, "no_values")

    def test_reported_shows_point_and_bound(self) -> None:
        found = criterion_of(case_of(PLAN).judge(), "sla.tpot_p95")
        assert (found.outcome, found.observed, found.limit) == ("pass", 10 * MS, None)
        assert [(one.bound, one.samples) for one in found.trials] == [(10 * MS, 60)] * 3


class TestGoodput:
    def test_by_hand(self) -> None:
        """Of seven: two good, one late, one slow by a nanosecond, one failed, one of one token, one exactly on both."""
        limit = 50 * MS
        rows = [
            Request(0),
            Request(1, ttft_ns=1000 * MS + 1),
            Request(2, gaps=(limit, limit, limit, limit + 1)),
            Request(3, outcome="truncated"),
            Request(4, gaps=(), output_tokens=1),
            Request(5, ttft_ns=1000 * MS, gaps=(limit,) * 4),
            Request(6),
        ]
        assert shown("goodput_basis_points", rows) == (4 * 10_000 // 7, None)

    @pytest.mark.parametrize(("least", "outcome"), [(9833, "pass"), (9834, "fail")])
    def test_against_an_objective(self, least: int, outcome: str) -> None:
        """59 of 60 are 9833 basis points."""
        plan = build_plan(objectives=Objectives(goodput_basis_points_at_least=least))
        rows = [attrs.evolve(row, ttft_ns=1001 * MS) if n == 5 else row for n, row in enumerate(steady_requests())]
        rows = [attrs.evolve(row, end_ns=max(row.end, row.start_ns + row.ttft_ns + sum(row.gaps))) for row in rows]
        found = criterion_of(trial_case(rows, plan).judge(), "sla.goodput")
        assert (found.outcome, found.observed) == (outcome, 9833)
        assert any("98.33" in text or "98.34" in text for text in plan.validation_gates[4].acceptance_criteria)

    def test_without_usage_or_requests(self) -> None:
        assert shown("goodput_basis_points", [Request(0, usage=0)]) == (None, "no_server_usage")
        assert shown("goodput_basis_points", []) == (None, "no_values")


class TestSteady:
    def test_by_hand(self) -> None:
        """Quarters 1 2 9 | 4 5 6 | 7 7 7 | 1 1 5: medians 2, 5, 7, 1; 6 over 5, the sixth of twelve."""
        assert drift_basis_points(np.array([1, 2, 9, 4, 5, 6, 7, 7, 7, 1, 1, 5])) == 12_000
        assert drift_basis_points(np.array([3, 3, 3, 4])) == 3334
        assert drift_basis_points(np.array([1, 1, 1])) is None
        assert drift_basis_points(np.array([0, 0, 0, 4])) is None

    def test_a_queue_that_builds_up_is_not_steady(self) -> None:
        """120 requests, each 1 ms longer than the last: quarter medians 214 and 304 ms, 259 of all."""
        assert shown("steady_state_drift_basis_points", rising()) == (3475, None)
        found = criterion_of(trial_case(rising()).judge(), "sla.steady_state")
        assert (found.outcome, found.reason, found.observed) == ("inconclusive", "not_steady", 3475)
        assert criterion_of(trial_case(rising(step_ns=MS // 2)).judge(), "sla.steady_state").outcome == "pass"

    def test_equal_starts_tell_no_order(self) -> None:
        rows = [attrs.evolve(row, start_ns=0) for row in steady_requests()]
        assert shown("steady_state_drift_basis_points", rows) == (None, "no_start_times")


class TestLength:
    @pytest.mark.parametrize(("count", "outcome"), [(40, "pass"), (39, "inconclusive")])
    def test_ten_requests_a_stream(self, count: int, outcome: str) -> None:
        found = criterion_of(trial_case(steady_requests(count)).judge(), "sla.length")
        assert (found.outcome, found.observed) == (outcome, count // CONCURRENCY)

    def test_failed_requests_and_more_streams_than_planned(self) -> None:
        rows = [attrs.evolve(row, outcome="error") if n < 21 else row for n, row in enumerate(steady_requests(61))]
        assert shown("requests_per_stream", rows) == (10, None)
        assert shown("requests_per_stream", rows, declared_concurrency=8) == (5, None)


class TestClient:
    def overhead(self, e2e_ns: int | None, requests: int = 60, **payload: Any) -> tuple[int | None, str | None]:
        rows = steady_requests()
        counters = EngineCounters(requests, 1920, 0, 300, ttft_ns=0, e2e_ns=e2e_ns)
        return shown("client_overhead_basis_points", rows, engine_counters=counters, **payload)

    def test_by_hand(self) -> None:
        """60 requests of 200 ms each for the client."""
        assert self.overhead(60 * 200 * MS) == (0, None)
        assert self.overhead(60 * 190 * MS) == (527, None)  # 200 / 190 - 1 = 5.263 %
        assert self.overhead(60 * 250 * MS) == (0, None)
        assert self.overhead(120 * 100 * MS, 120) == (10_000, None)
        assert self.overhead(None) == self.overhead(0) == (None, "client_not_observed")
        assert self.overhead(1, 0) == (None, "client_not_observed")

    @pytest.mark.parametrize(
        ("load", "strained"),
        [((80, 100, 10 * MS), False), ((81, 100, 0), True), ((0, 100, 10 * MS + 1), True)],
    )
    def test_the_client_s_own_load(self, load: tuple[int, int, int], strained: bool) -> None:
        found = criterion_of(trial_case(client=ClientLoad(*load)).judge(), "sla.client")
        assert found.outcome == ("inconclusive" if strained else "pass")
        assert found.reason == ("client_bottleneck" if strained else None)

    def test_beyond_a_tenth_nothing_is_shown(self) -> None:
        counters = attrs.evolve(closing_counters(steady_requests()), e2e_ns=60 * 180 * MS)
        found = criterion_of(trial_case(engine_counters=counters).judge(), "sla.client")
        assert (found.outcome, found.reason, found.observed) == ("inconclusive", "client_bottleneck", 1112)


class TestWarmup:
    def test_none_is_the_plain_share_of_late_requests(self) -> None:
        rows = [
            attrs.evolve(row, ttft_ns=1001 * MS, end_ns=None) if n < 2 else row
            for n, row in enumerate(steady_requests())
        ]
        assert shown("warmup_late_share_basis_points", rows) == (334, None)

    def test_as_many_as_the_time_allows_and_no_more_than_there_were(self) -> None:
        """3.9 s of first tokens hold three of more than a second; 6.0 s in all hold five of 1.2 s."""

        def share(warmup: int, ttft_ms: int, e2e_ms: int) -> int | str | None:
            case = warm_case(steady_requests(), warmup, ttft_ms * MS, e2e_ms * MS)
            return criterion_of(case.judge(), "sla.warmup").observed

        assert share(10, 3900, 0) == ceil(Fraction(3 * 10_000, 63))
        assert share(10, 3900, 6000) == ceil(Fraction(5 * 10_000, 65))
        assert share(4, 3900, 6000) == ceil(Fraction(4 * 10_000, 64))
        assert share(4, -3900, -6000) == 0

    def test_slow_requests_called_warm_up_are_seen(self) -> None:
        rows = steady_requests(200)
        slow = [attrs.evolve(row, ttft_ns=2000 * MS, end_ns=row.start_ns + 2100 * MS) for row in rows[:20]]
        hidden = [item.ttft_ns for item in slow]
        case = warm_case(rows[20:], 20, sum(hidden), sum(item.end - item.start_ns for item in slow))
        verdict = case.judge()
        assert criterion_of(verdict, "sla.ttft_p95").outcome == "pass"
        found = criterion_of(verdict, "sla.warmup")
        assert (found.outcome, found.reason, found.observed) == ("inconclusive", "warmup_hides", 1000)


class TestFitness:
    @pytest.mark.parametrize("ttft_ms", [100, 5000])
    def test_a_port_forward_judges_nothing_good_or_bad(self, ttft_ms: int) -> None:
        rows = [attrs.evolve(row, ttft_ns=ttft_ms * MS, end_ns=None) for row in steady_requests()]
        verdict = trial_case(rows, path="port_forward").judge()
        gate = verdict.gates[4]
        assert {(rule.outcome, rule.reason) for rule in gate.criteria} == {("inconclusive", "port_forward")}
        assert all(trial.outcome == "inconclusive" for rule in gate.criteria for trial in rule.trials)
        assert all(rule.outcome == "pass" for rule in trial_case(path="service").judge().gates[4].criteria)

    def test_one_of_three_through_a_port_forward(self) -> None:
        case = case_of(PLAN, lambda p, n: make_trial(p, n, path="port_forward" if n == 2 else "direct"))
        found = criterion_of(case.judge(), "sla.ttft_p95")
        assert [(trial.outcome, trial.reason) for trial in found.trials] == [
            ("pass", None),
            ("inconclusive", "port_forward"),
            ("pass", None),
        ]
        assert found.outcome == "inconclusive"

    @pytest.mark.parametrize("signed", [True, False])
    def test_counting_in_the_start_that_served(self, signed: bool) -> None:
        def case(start: str) -> str | None:
            counts = make_counts(PLAN, engine_start=start)
            if not signed:
                counts = attrs.evolve(counts, signers=())
            made = case_of(PLAN)
            whole = make_evidence([*made.evidence.records, counts], made.evidence.runs, made.evidence.checkpoint)
            return criterion_of(made.but(evidence=whole).judge(), "sla.ttft_p95").reason

        assert case(ENGINE_START) == "counting_on"
        assert case("2026-03-01T19:00:00Z") is None

    def test_a_loading_that_says_it_counted(self) -> None:
        for start, reason in ((ENGINE_START, "counting_on"), ("2026-03-01T19:00:00Z", None)):
            loaded = make_loaded(PLAN, counting=True, engine_start=start, start="2026-03-01T20:00:00Z")
            assert criterion_of(loaded_case([loaded]).judge(), "sla.trials").reason == reason


class TestRecordedTrials:
    """Against Python's own statistics over the tool's file, in nanoseconds as the importer rounds them."""

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_same_as_the_tool_s_file(self, number: int) -> None:
        data = (TRIALS / f"trial-{number}.json").read_bytes()
        raw = json.loads(data)
        read = import_vllm_bench(data, INPUTS)
        order = sorted(range(240), key=lambda i: (raw["start_times"][i], i))
        spans = [sum(round(gap * 10**9) for gap in raw["itls"][i]) for i in order]
        first = [round(raw["ttfts"][i] * 10**9) for i in order]
        steps = [raw["output_lens"][i] - 1 for i in order]
        whole = make_trial(PLAN, 1).record.payload
        assert isinstance(whole, ServingTrial)
        counters = EngineCounters(256, 1, 1, 1, ttft_ns=10**9, e2e_ns=256 * 250 * MS)
        payload = attrs.evolve(whole, engine_counters=counters, declared_concurrency=4, warmup_requests=16)
        trial = Trial(read.requests, read.chunk_gaps, payload, WORKLOAD)
        sample = tpot_groups(trial)
        assert sample is not None
        assert list(sample.column) == [ceil(Fraction(span, step)) for span, step in zip(spans, steps, strict=True)]
        good = sum(
            ttft <= 200 * MS and span <= 50 * MS * step for ttft, span, step in zip(first, spans, steps, strict=True)
        )
        assert TRIAL_SHAPES["goodput_basis_points"](trial) == (good * 10_000 // 240, None)
        durations = [end - start for start, end in zip(read.requests.start_ns, read.requests.end_ns, strict=True)]
        assert all(abs(took - ttft - span) <= 1 for took, ttft, span in zip(durations, first, spans, strict=True))
        quarters = [median_low(durations[60 * part : 60 * part + 60]) for part in range(4)]
        drift = ceil(Fraction((max(quarters) - min(quarters)) * 10_000, median_low(durations)))
        assert (drift <= 2500) is (number == 2)
        assert TRIAL_SHAPES["steady_state_drift_basis_points"](trial) == (drift, None)
        assert TRIAL_SHAPES["requests_per_stream"](trial) == (60, None)
        share = max(ceil(Fraction(sum(durations) * 10_000, 240 * 250 * MS)) - 10_000, 0)
        assert TRIAL_SHAPES["client_overhead_basis_points"](trial) == (share, None)


INPUTS = TrialInputs(
    requested_input_tokens=128,
    requested_output_tokens=64,
    concurrency=4,
    ignore_eos=True,
    warmup_requests=16,
)
