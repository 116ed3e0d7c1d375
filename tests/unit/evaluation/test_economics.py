"""``economics_resilience``: cost by hand, failures by hand and by the timelines of a real engine that was killed."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import attrs
import pytest

from moeplan.evaluation.costs import cost_micros, successful_output_tokens
from moeplan.evaluation.failures import read_failure
from moeplan.model.evidence import ServingTrial
from moeplan.model.observations import Price
from moeplan.model.plan import Objectives
from tests.build import Case, Request, build_plan, criterion_of, gate_of, make_tables, make_trial
from tests.unit.evaluation.economics_cases import (
    EVENTS,
    FAULT,
    READY,
    SENT,
    SERVED,
    S,
    failed,
    make_failure,
    make_price,
    priced,
    request,
    tokenless,
)
from tests.unit.evaluation.routing_cases import case_with

COST = ceil(Fraction(2_500_000 * 8 * 10**6 * 3, 3600 * 300))
"""2.5 an hour for each of 8, for 3 s (60 requests in 15 rows of 200 ms) and 60 × 5 tokens: 55,555,556 millionths."""


def observed(case: Case, id: str) -> tuple[str, Any, str | None]:
    result = criterion_of(case.judge(), id)
    return result.outcome, result.observed, result.reason


class TestCost:
    def test_of_a_trial_by_hand(self) -> None:
        assert COST == 55_555_556
        assert observed(priced(), "economics.cost") == ("pass", COST, None)
        assert observed(priced(), "economics.cost_inputs") == ("pass", 0, None)

    def test_the_dearest_price_and_the_worst_trial_decide(self) -> None:
        plan = build_plan()
        case = priced(make_price(plan), make_price(plan, micros=5_000_000))
        assert observed(case, "economics.cost")[1] in (2 * COST, 2 * COST - 1)

    @pytest.mark.parametrize(("limit", "outcome"), [(COST, "pass"), (COST - 1, "fail")])
    def test_a_limit(self, limit: int, outcome: str) -> None:
        plan = build_plan(objectives=Objectives(cost_micros_per_million_tokens_at_most=limit))
        trials = [make_trial(plan, number) for number in (1, 2, 3)]
        found = observed(case_with(make_price(plan), *trials, plan=plan), "economics.cost")
        # Trials of no run are not believed, so what would pass is inconclusive; a failure stays one.
        assert found[:2] == ("fail" if outcome == "fail" else "inconclusive", COST)

    def test_a_price_weakens_no_binding(self) -> None:
        """The trials are bound hashed; what they cost is as well, and a price alone binds nothing."""
        assert criterion_of(priced().judge(), "economics.cost").binding == "hashed"
        assert criterion_of(priced().judge(), "sla.trials").binding == "hashed"

    def test_requests_that_failed_or_were_not_counted_add_cost_and_no_tokens(self) -> None:
        rows = [Request(0), Request(0, outcome="truncated"), Request(0, usage=0)]
        assert successful_output_tokens(make_tables(rows)[0]) == 5

    def test_rounded_up_from_the_exact_fraction(self) -> None:
        price = Price(
            currency="USD", micros_per_accelerator_hour=1, accelerators=1, dated="2026-01-01", source="a list"
        )
        trial = make_trial(build_plan()).record.payload
        assert isinstance(trial, ServingTrial)
        table = make_tables([Request(0, output_tokens=7)])[0]
        for duration in (1, 3600 * S, 3600 * S * 7 // 10**6, 3600 * S * 7 // 10**6 + 1):
            exact = Fraction(10**6 * duration, 3600 * S * 7)
            assert cost_micros(price, attrs.evolve(trial, duration_ns=duration), table) == ceil(exact)

    def test_without_a_price_the_next_step_is_to_state_one(self) -> None:
        result = criterion_of(case_with().judge(), "economics.cost_inputs")
        assert (result.outcome, result.observed, result.reason) == ("inconclusive", 1, "missing_evidence")
        assert result.next == "state the price with its date: 'moeplan import price'"
        assert observed(case_with(), "economics.cost") == ("inconclusive", None, "missing_evidence")

    def test_without_tokens_that_the_server_counted(self) -> None:
        assert observed(tokenless(), "economics.cost_inputs") == ("inconclusive", 3, "no_server_usage")
        assert observed(tokenless(), "economics.cost") == ("inconclusive", None, "no_server_usage")

    def test_a_trial_left_out_of_its_run_is_seen(self) -> None:
        case = priced()
        run = case.evidence.runs[0]
        more = attrs.evolve(run, manifest=attrs.evolve(run.manifest, planned_trials=4))
        assert observed(case.but_evidence(runs=(more,)), "economics.cost") == ("inconclusive", COST, "trials_missing")


class TestFailure:
    def test_of_a_single_worker_by_hand(self) -> None:
        verdict = failed().judge()
        shown = {result.id: result.observed for result in gate_of(verdict, "economics_resilience").criteria}
        assert shown["resilience.failure_recorded"] == 1
        assert shown["resilience.restart"] == 31
        assert shown["resilience.interruption"] == 34 * S
        assert shown["resilience.requests_lost"] == 2
        for name in ("failure_recorded", "restart", "interruption", "requests_lost"):
            assert criterion_of(verdict, f"resilience.{name}").outcome == "pass"

    def test_moments(self) -> None:
        item = make_failure(build_plan())
        assert item.requests is not None
        assert item.series is not None
        failure = read_failure(item.requests, item.series)
        assert (failure.fault_ns, failure.last_good_ns, failure.ready_ns) == (FAULT, 9 * S, READY)
        assert (failure.first_bad_ns, failure.first_good_ns, failure.served) == (FAULT + S // 10, 43 * S, 0)

    @pytest.mark.parametrize(("limit", "outcome"), [(31, "pass"), (30, "fail")])
    def test_a_limit_on_the_restart(self, limit: int, outcome: str) -> None:
        plan = build_plan(objectives=Objectives(restart_within_seconds=limit))
        assert observed(failed(plan=plan), "resilience.restart")[:2] == (outcome, 31)

    def test_high_availability(self) -> None:
        plan = build_plan(availability="ha")
        case = failed(SERVED, plan=plan)
        assert observed(case, "resilience.requests_lost") == ("pass", 0, None)
        assert observed(case, "resilience.requests_served") == ("pass", 2, None)
        assert observed(case, "resilience.interruption") == ("pass", 26 * S, None)
        lost = failed(plan=plan)
        assert observed(lost, "resilience.requests_lost") == ("fail", 2, "limit_not_met")
        assert observed(lost, "resilience.requests_served") == ("fail", 0, "limit_not_met")

    def test_a_request_that_ends_after_ready_was_not_served_during_the_failure(self) -> None:
        plan = build_plan(availability="ha")
        sent = (request(1, 9), request(11, 41), request(42, 43))
        assert observed(failed(sent, plan=plan), "resilience.requests_served") == ("fail", 0, "limit_not_met")

    @pytest.mark.parametrize(
        ("sent", "events"),
        [
            (SENT, [event for event in EVENTS if event[1] != "fault_injected"]),
            (SENT, [*EVENTS, (FAULT + 5, "fault_injected", 1, "count")]),
            (SENT, [event for event in EVENTS if event[2] not in (0, 503)]),
            (SENT, EVENTS[:-1]),
            (SENT, [*EVENTS, (50 * S, "health_status", 503, "http_status")]),
            (SENT[2:], EVENTS),
            (SENT[:-2], EVENTS),
        ],
        ids=["no fault", "two faults", "never failed", "never ready", "failed again", "no service", "not served again"],
    )
    def test_a_timeline_that_lacks_a_part_is_none(self, sent: Any, events: Any) -> None:
        case = failed(sent, events)
        assert observed(case, "resilience.failure_recorded") == ("inconclusive", 0, "timeline_incomplete")
        for name in ("restart", "interruption", "requests_lost"):
            outcome, _value, reason = observed(case, f"resilience.{name}")
            assert (outcome, reason) == ("inconclusive", "timeline_incomplete")

    def test_a_good_answer_between_two_bad_ones_is_not_ready(self) -> None:
        events = (
            *EVENTS[:-1],
            (20 * S, "health_status", 200, "http_status"),
            (21 * S, "health_status", 503, "http_status"),
        )
        case = failed(events=(*events, EVENTS[-1]))
        assert observed(case, "resilience.restart") == ("pass", 31, None)

    def test_of_two_failures_the_worse_is_shown(self) -> None:
        plan = build_plan()
        later = [*EVENTS[:-1], (READY + 2 * S, "health_status", 200, "http_status")]
        never = make_failure(plan, events=EVENTS[:-1])
        case = case_with(make_failure(plan), make_failure(plan, events=later))
        assert observed(case, "resilience.failure_recorded") == ("pass", 2, None)
        assert observed(case, "resilience.restart") == ("pass", 33, None)
        assert observed(case, "resilience.requests_lost") == ("pass", 4, None)
        spoilt = case_with(make_failure(plan), never)
        assert observed(spoilt, "resilience.restart") == ("inconclusive", None, "timeline_incomplete")

    def test_without_a_timeline_the_next_step_is_to_record_one(self) -> None:
        result = criterion_of(case_with().judge(), "resilience.restart")
        assert (result.outcome, result.reason) == ("inconclusive", "missing_evidence")
        assert result.next == "make one worker fail under load: 'moeplan collect restart'"
