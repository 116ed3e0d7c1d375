"""Verdicts of whole cases: what is ready, what blocks, what is waived, what was taken away."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest

from moeplan.errors import InputError
from moeplan.evaluation.evaluate import evaluate
from moeplan.model.checkpoint import CheckpointIndex
from moeplan.model.deployment import RuntimeIdentity
from moeplan.model.evidence import EngineCounters, ServingTrial, TrialRef
from moeplan.model.plan import GATE_IDS, Plan
from moeplan.model.verified import EvidenceSet, Inspection, VerifiedRecord
from moeplan.units import MAX_SAFE_INTEGER
from moeplan.wire.documents import dump_document, identify, load_document
from tests.build import (
    AT,
    MS,
    RUNNER,
    RUNTIME,
    STRANGER,
    WAIVED,
    WAIVED_UNTIL,
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
    make_signer,
    make_spec,
    make_trial,
    make_waivers,
    ready_case,
    steady_requests,
    with_criterion,
)

PLAN = build_plan()
AFTER_START = "2026-03-01T09:00:01Z"


def failing_trial(plan: Plan, number: int) -> VerifiedRecord:
    """Return a trial of which the second has requests that failed."""
    rows = steady_requests()
    if number == 2:
        rows[5] = attrs.evolve(rows[5], outcome="error")
    return make_trial(plan, number, rows)


def hashed_late(**changes: Any) -> Case:
    """Return a case whose checkpoint was hashed one second after the engine had started."""
    return case_of(PLAN, digestions=[make_digestion(PLAN, end=AFTER_START, **changes)])


def outcomes(case: Case) -> dict[str, str]:
    return {gate.id: gate.outcome for gate in case.judge().gates}


def test_the_ready_case_is_ready_and_its_inputs_are_valid_documents() -> None:
    case = ready_case()
    verdict = case.judge()
    assert verdict.readiness == "ready"
    assert verdict.reasons == ()
    documents = [
        case.plan,
        case.policy,
        case.evidence.checkpoint,
        *(item.record for item in case.evidence.records),
        *(run.manifest for run in case.evidence.runs),
        verdict,
    ]
    for document in documents:
        assert load_document(dump_document(document), type(document)) == document
    passed = [c.id for gate in verdict.gates for c in gate.criteria if c.outcome == "pass"]
    waived = [c.id for gate in verdict.gates for c in gate.criteria if c.outcome == "waived"]
    everything = [rule.id for gate in case.plan.validation_gates for rule in gate.criteria]
    assert sorted(waived) == sorted(WAIVED)
    assert sorted(passed) == sorted(set(everything) - set(WAIVED))


def test_the_verdict_names_what_it_rests_on() -> None:
    case = ready_case()
    verdict = case.judge()
    evidence = case.evidence
    assert evidence.checkpoint_digest is not None
    everything = {item.digest for item in evidence.records} | {run.digest for run in evidence.runs}
    assert verdict.evidence == tuple(sorted(everything | {evidence.checkpoint_digest}))
    assert case.but_evidence(listed=()).judge().evidence == verdict.evidence
    assert (verdict.plan, verdict.policy, verdict.at) == (identify(case.plan), identify(case.policy), AT)
    trials = [item for item in evidence.records if isinstance(item.record.payload, ServingTrial)]
    assert criterion_of(verdict, "sla.ttft_p95").evidence == tuple(item.digest for item in trials)


def test_unverified_evidence_is_refused() -> None:
    case = ready_case()
    for other in (None, (), object.__new__(Inspection)):
        with pytest.raises(InputError) as caught:
            evaluate(case.plan, cast(EvidenceSet, other), case.policy, AT)
        assert caught.value.issues[0].code == "not_verified"


@pytest.mark.parametrize("at", ["", "2026-03-02", "2026-13-01T00:00:00Z", "2026-03-02T00:00:00+00:00"])
def test_no_instant_is_refused(at: str) -> None:
    with pytest.raises(InputError) as caught:
        ready_case().but(at=at).judge()
    assert caught.value.issues[0].code == "invalid_instant"


def test_a_trial_without_its_tables_cannot_be_made() -> None:
    record = make_trial(PLAN).record
    with pytest.raises(InputError) as caught:
        VerifiedRecord(record, digest_of("x"), (RUNNER,))
    assert caught.value.issues[0].code == "tables_missing"


def test_without_evidence_everything_but_the_calculated_floor_is_inconclusive() -> None:
    verdict = Case(PLAN, make_evidence([]), make_policy(PLAN, waivers=())).judge()
    passed = [c.id for gate in verdict.gates for c in gate.criteria if c.outcome != "inconclusive"]
    assert passed == ["residency.planned_floor"]
    assert [gate.outcome for gate in verdict.gates] == ["inconclusive"] * 7
    reasons = {c.reason for gate in verdict.gates for c in gate.criteria if c.outcome == "inconclusive"}
    assert reasons == {"missing_evidence"}


class TestGates:
    def test_a_failed_gate_blocks_those_after_it_and_their_criteria_are_shown(self) -> None:
        verdict = case_of(PLAN, failing_trial).judge()
        found = [gate.outcome for gate in verdict.gates]
        assert found == ["pass", "pass", "pass", "pass", "fail", "blocked", "blocked"]
        assert verdict.readiness == "not_ready"
        assert {c.outcome for c in gate_of(verdict, "routing_health").criteria} == {"waived"}

    def test_a_failed_first_gate_blocks_six(self) -> None:
        assert list(outcomes(hashed_late()).values()) == ["fail", *["blocked"] * 6]

    def test_an_inconclusive_gate_blocks_nothing(self) -> None:
        case = ready_case().but_policy(waivers=make_waivers(tuple(id for id in WAIVED if id != "load.ready")))
        found = outcomes(case)
        assert found["runtime_load"] == "inconclusive"
        assert [found[id] for id in GATE_IDS if id != "runtime_load"] == ["pass"] * 6
        assert case.judge().readiness == "inconclusive"

    def test_two_failed_gates_show_the_later_one_as_blocked(self) -> None:
        case = case_of(PLAN, failing_trial, digestions=[make_digestion(PLAN, end=AFTER_START)])
        verdict = case.judge()
        assert gate_of(verdict, "workload_sla").outcome == "blocked"
        assert criterion_of(verdict, "sla.failed_requests").outcome == "fail"


class TestTrials:
    def test_one_failed_trial_of_three_fails_and_each_is_shown(self) -> None:
        found = criterion_of(case_of(PLAN, failing_trial).judge(), "sla.failed_requests")
        assert (found.outcome, found.observed, found.reason) == ("fail", 1, "limit_not_met")
        assert [trial.outcome for trial in found.trials] == ["pass", "fail", "pass"]
        assert [trial.observed for trial in found.trials] == [0, 1, 0]

    def test_the_worst_observation_is_the_greatest_for_at_most_and_the_least_for_at_least(self) -> None:
        def trial(plan: Plan, number: int) -> VerifiedRecord:
            rows = [
                attrs.evolve(row, ttft_ns=number * 10 * MS, input_tokens=31 + number, end_ns=row.end)
                for row in steady_requests()
            ]
            return make_trial(plan, number, rows)

        verdict = case_of(PLAN, trial).judge()
        assert criterion_of(verdict, "sla.ttft_p95").observed == 30 * MS
        assert criterion_of(verdict, "sla.input_tokens").observed == 32
        assert verdict.readiness == "ready"

    def test_there_is_no_worst_observation_where_a_trial_has_none(self) -> None:
        def trial(plan: Plan, number: int) -> VerifiedRecord:
            return make_trial(plan, number, engine_counters=None if number == 3 else "closing")

        found = criterion_of(case_of(PLAN, trial).judge(), "sla.engine_counters")
        assert (found.outcome, found.observed) == ("inconclusive", None)

    def test_the_same_trial_three_times_is_one_trial(self) -> None:
        case = case_of(PLAN, trials=1)
        one, hashing = case.evidence.records
        found = criterion_of(case.but_evidence(records=(one, one, hashing, one)).judge(), "sla.trials")
        assert (found.outcome, found.observed, found.reason) == ("inconclusive", 1, "too_few_trials")

    def test_a_record_given_twice_has_the_signers_of_both(self) -> None:
        case = ready_case()
        unsigned = tuple(attrs.evolve(item, signers=()) for item in case.evidence.records)
        assert case.but_evidence(records=unsigned).judge().readiness == "inconclusive"
        for both in (unsigned + case.evidence.records, case.evidence.records + unsigned):
            assert dump_document(case.but_evidence(records=both).judge()) == dump_document(case.judge())

    def test_a_trial_of_another_run_is_not_of_this_one(self) -> None:
        case = ready_case()
        trial = case.evidence.records[0]
        assert isinstance(trial.record.payload, ServingTrial)
        payload = attrs.evolve(trial.record.payload, trial=TrialRef("run-2", 1))
        record = attrs.evolve(trial.record, payload=payload)
        moved = attrs.evolve(trial, record=record)
        found = criterion_of(case.but_evidence(records=(moved, *case.evidence.records[1:])).judge(), "sla.ttft_p95")
        assert (found.outcome, found.reason) == ("inconclusive", "run_manifest_missing")

    def test_a_run_manifest_without_a_trusted_runner_is_none(self) -> None:
        case = ready_case()
        runs = tuple(attrs.evolve(run, signers=(STRANGER,)) for run in case.evidence.runs)
        found = criterion_of(case.but_evidence(runs=runs).judge(), "sla.ttft_p95")
        assert (found.outcome, found.reason) == ("inconclusive", "no_trusted_runner")

    def test_a_run_made_for_another_plan_is_inconclusive(self) -> None:
        case = ready_case()
        run = case.evidence.runs[0]
        manifest = attrs.evolve(run.manifest, plan=digest_of("another plan"))
        found = criterion_of(case.but_evidence(runs=(attrs.evolve(run, manifest=manifest),)).judge(), "sla.ttft_p95")
        assert (found.outcome, found.reason) == ("inconclusive", "other_plan")

    @pytest.mark.parametrize(
        "changes",
        [
            {"deployment": digest_of("another deployment")},
            {"planned_requests": 59},
            {"requested_input_tokens": 33},
            {"requested_output_tokens": 4},
            {"declared_concurrency": None},
            {"warmup_requests": None},
        ],
    )
    def test_a_run_manifest_of_another_shape_is_not_the_trials(self, changes: dict[str, Any]) -> None:
        assert self.reason_with(**changes) == "not_of_its_run"

    def test_a_run_manifest_lists_number_record_and_files(self) -> None:
        first, second, third = ready_case().evidence.runs[0].manifest.trials
        swapped = (attrs.evolve(second, number=1), attrs.evolve(first, number=2), third)
        assert self.reason_with(trials=swapped) == "not_of_its_run"
        fewer = (attrs.evolve(first, files=first.files[:1]), second, third)
        assert self.reason_with(trials=fewer) == "not_of_its_run"
        more = (attrs.evolve(first, files=(*first.files, digest_of("lost file"))), second, third)
        assert self.reason_with(trials=more) == "not_of_its_run"
        twice = (first, second, third, attrs.evolve(third, number=4))
        assert self.reason_with(trials=twice) == "not_of_its_run"
        assert self.reason_with(trials=(first, second)) == "not_of_its_run"
        assert self.reason_with() is None

    def reason_with(self, **changes: Any) -> str | None:
        case = ready_case()
        run = case.evidence.runs[0]
        manifest = attrs.evolve(run.manifest, **changes)
        return criterion_of(
            case.but_evidence(runs=(attrs.evolve(run, manifest=manifest),)).judge(), "sla.trials"
        ).reason

    def test_a_draft_checkpoint_is_the_plans_or_none(self) -> None:
        draft = digest_of("draft")
        where = make_deployment(draft_checkpoint_root=draft)
        planned = build_plan(deployment=make_spec(draft=draft))
        for plan, deployment, outcome in (
            (planned, where, "pass"),
            (planned, make_deployment(), "inconclusive"),
            (PLAN, where, "inconclusive"),
        ):
            trials = [make_trial(plan, number, deployment=deployment) for number in (1, 2, 3)]
            case = case_of(
                plan,
                lambda _plan, number, trials=trials: trials[number - 1],  # type: ignore[misc]
                digestions=[make_digestion(plan, deployment=deployment)],
            )
            found = criterion_of(case.judge(), "sla.ttft_p95")
            assert (found.outcome, found.reason) == (outcome, None if outcome == "pass" else "other_checkpoint")

    def test_evidence_counts_from_the_instant_at_which_it_ended(self) -> None:
        ends = max(item.record.interval.end for item in ready_case().evidence.records)
        assert criterion_of(ready_case().but(at=ends).judge(), "sla.ttft_p95").outcome == "pass"

    def test_an_index_that_disagrees_says_nothing_of_the_revision(self) -> None:
        manifest = make_checkpoint()
        index = CheckpointIndex("model.safetensors", None, False)
        verdict = case_of(PLAN, checkpoint=attrs.evolve(manifest, index=index)).judge()
        assert criterion_of(verdict, "artifact.revision_identity").outcome == "pass"
        assert criterion_of(verdict, "artifact.files_digested").outcome == "fail"
        assert criterion_of(verdict, "residency.exact_tensor_bytes").outcome == "fail"


class TestDigestLead:
    def lead(self, case: Case) -> tuple[str, Any, str | None]:
        found = criterion_of(case.judge(), "artifact.digest_before_execution")
        return found.outcome, found.observed, found.reason

    def test_it_is_the_seconds_from_hashing_to_the_engines_start(self) -> None:
        assert self.lead(ready_case()) == ("pass", 3600, None)
        assert self.lead(hashed_late()) == ("fail", -1, "limit_not_met")
        assert self.lead(case_of(PLAN, digestions=[make_digestion(PLAN, end="2026-03-01T09:00:00Z")]))[:2] == (
            "pass",
            0,
        )

    def test_the_latest_hashing_before_the_start_counts(self) -> None:
        ends = ["2026-03-01T07:00:00Z", "2026-03-01T08:59:50Z", "2026-03-01T09:30:00Z"]
        for order in (ends, ends[::-1]):
            hashed = [make_digestion(PLAN, end=end) for end in order]
            assert self.lead(case_of(PLAN, digestions=hashed)) == ("pass", 10, None)

    def test_every_node_is_needed(self) -> None:
        where = make_deployment(nodes=("node-a", "node-b"))

        def trial(plan: Plan, number: int) -> VerifiedRecord:
            return make_trial(plan, number, deployment=where)

        both = [make_digestion(PLAN, node, deployment=where) for node in ("node-a", "node-b")]
        assert self.lead(case_of(PLAN, trial, digestions=both))[0] == "pass"
        assert self.lead(case_of(PLAN, trial, digestions=both[:1])) == ("inconclusive", None, "node_not_hashed")

    def test_unnamed_nodes_are_not_hashed(self) -> None:
        for nodes in (None, ()):
            where = make_deployment(nodes=nodes)
            case = case_of(
                PLAN,
                lambda plan, number, where=where: make_trial(plan, number, deployment=where),  # type: ignore[misc]
                digestions=[make_digestion(PLAN, deployment=where)],
            )
            assert self.lead(case) == ("inconclusive", None, "node_not_hashed")


class TestWaivers:
    def test_a_waiver_shows_the_underlying_outcome(self) -> None:
        case = case_of(PLAN, failing_trial).but_policy(waivers=make_waivers((*WAIVED, "sla.failed_requests")))
        verdict = case.judge()
        found = criterion_of(verdict, "sla.failed_requests")
        assert (found.outcome, found.underlying, found.observed, found.reason) == ("waived", "fail", 1, "limit_not_met")
        assert gate_of(verdict, "workload_sla").outcome == "inconclusive"
        assert criterion_of(verdict, "sla.ttft_p95").reason == "bound_above_limit"

    def test_it_expires_at_its_instant(self) -> None:
        before = ready_case().but(at="2026-05-31T23:59:59Z").judge()
        at = ready_case().but(at=WAIVED_UNTIL).judge()
        assert before.readiness == "ready"
        assert at.readiness == "inconclusive"
        assert criterion_of(at, "load.ready").outcome == "inconclusive"

    def test_it_is_for_one_criterion_only(self) -> None:
        verdict = ready_case().but_policy(waivers=make_waivers(("load.ready",))).judge()
        assert criterion_of(verdict, "load.ready").outcome == "waived"
        assert criterion_of(verdict, "load.environment").outcome == "inconclusive"

    def test_no_waiver_lets_a_gate_pass_from_which_evidence_was_taken(self) -> None:
        every = tuple(rule.id for gate in PLAN.validation_gates for rule in gate.criteria)
        case = ready_case().but_policy(waivers=make_waivers(every))
        assert case.judge().readiness == "ready"
        less = case.but_evidence(records=case.evidence.records[1:]).judge()
        assert {gate.outcome for gate in less.gates} == {"inconclusive"}
        assert less.readiness == "inconclusive"

    def test_no_waiver_makes_a_blocked_plan_ready(self) -> None:
        manifest = make_checkpoint(tensor_bytes=2_000_000_000_000)
        plan = build_plan(checkpoint=checkpoint_ref(manifest))
        every = tuple(rule.id for gate in plan.validation_gates for rule in gate.criteria)
        verdict = case_of(plan, policy=make_policy(plan, waivers=make_waivers(every))).judge()
        assert {gate.outcome for gate in verdict.gates} == {"pass"}
        assert verdict.readiness == "not_ready"
        assert "plan_blocked" in [reason.code for reason in verdict.reasons]


class TestTakenAway:
    def test_each_listed_thing_that_is_gone_is_seen(self) -> None:
        case = ready_case()
        evidence = case.evidence
        for number in range(len(evidence.records)):
            less = evidence.records[:number] + evidence.records[number + 1 :]
            self.check(case.but_evidence(records=less))
        self.check(case.but_evidence(runs=()))
        self.check(case.but_evidence(checkpoint=None, checkpoint_digest=None))
        self.check(case.but_evidence(checkpoint=None))
        self.check(case.but_evidence(listed=(*evidence.listed, digest_of("never seen"))))

    def test_a_trial_that_only_its_run_lists_is_seen(self) -> None:
        case = ready_case()
        first, *rest = case.evidence.records
        listed = tuple(digest for digest in case.evidence.listed if digest != first.digest)
        self.check(case.but_evidence(records=tuple(rest), listed=listed))

    def check(self, case: Case) -> None:
        verdict = case.judge()
        assert verdict.readiness == "inconclusive"
        assert "evidence_taken_away" in [reason.code for reason in verdict.reasons]
        assert {gate.outcome for gate in verdict.gates} == {"inconclusive"}
        assert all(c.underlying != "pass" for gate in verdict.gates for c in gate.criteria)

    def test_taking_the_failed_trial_away_does_not_pass(self) -> None:
        case = case_of(PLAN, failing_trial)
        less = tuple(item for number, item in enumerate(case.evidence.records) if number != 1)
        self.check(case.but_evidence(records=less))

    def test_taking_another_away_leaves_the_failure(self) -> None:
        case = case_of(PLAN, failing_trial)
        verdict = case.but_evidence(records=case.evidence.records[1:]).judge()
        assert verdict.readiness == "not_ready"
        assert criterion_of(verdict, "sla.failed_requests").outcome == "fail"

    def test_taking_a_signature_away_unblocks_nothing(self) -> None:
        """A failing first gate blocks the second; were it inconclusive for want of a signer, the second would pass."""
        signed, unsigned = hashed_late(), hashed_late(signers=())
        assert outcomes(signed) == outcomes(unsigned)
        assert outcomes(unsigned)["static_residency"] == "blocked"
        stranger = signed.but_policy(signers=(make_signer(STRANGER),))
        assert outcomes(stranger) == outcomes(signed)


class TestTotal:
    """Inputs at the edge of what is valid still give a verdict."""

    @pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "0999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"])
    def test_any_instant(self, at: str) -> None:
        assert ready_case().but(at=at).judge().at == at

    def test_a_plan_with_the_longest_reason(self) -> None:
        readiness = attrs.evolve(PLAN.readiness, status="blocked", reason="x" * 4096)
        assert ready_case().but(plan=attrs.evolve(PLAN, readiness=readiness)).judge().readiness == "not_ready"

    def test_a_criterion_with_many_evidence_types(self) -> None:
        plan = with_criterion(PLAN, "load.ready", evidence_types=("serving_trial", "engine_log") * 300)
        assert case_of(plan, trials=0, digestions=[]).judge().readiness == "inconclusive"

    def test_a_criterion_of_an_unknown_metric(self) -> None:
        plan = with_criterion(PLAN, "load.ready", metric="plugin.metric", evidence_types=("plugin_type",))
        found = criterion_of(case_of(plan).but_policy(waivers=()).judge(), "load.ready")
        assert (found.outcome, found.reason, found.method) == (
            "inconclusive",
            "missing_evidence",
            "not known to this release",
        )

    @pytest.mark.parametrize("comparator", ["le", "ge", "eq"])
    @pytest.mark.parametrize("limit", [None, 0, -MAX_SAFE_INTEGER, MAX_SAFE_INTEGER, "", "ready"])
    def test_criteria_with_odd_limits(self, comparator: str, limit: int | str | None) -> None:
        plan = PLAN
        for gate in PLAN.validation_gates:
            for rule in gate.criteria:
                plan = with_criterion(plan, rule.id, comparator=comparator, limit=limit)
        verdict = case_of(plan).judge()
        assert verdict.readiness != "ready"
        if limit is None:
            assert {c.underlying for gate in verdict.gates for c in gate.criteria} == {"inconclusive"}

    def test_a_trial_in_which_everything_failed_at_once(self) -> None:
        rows = [Request(0, 0, (), "error", 0, 0, 0, end_ns=0, chunks=0)] * 3
        verdict = case_of(PLAN, lambda plan, number: make_trial(plan, number, rows)).judge()
        assert verdict.readiness == "not_ready"

    def test_counters_at_the_end_of_exact_integers(self) -> None:
        top = EngineCounters(MAX_SAFE_INTEGER, 1, MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
        verdict = case_of(PLAN, lambda plan, number: make_trial(plan, number, engine_counters=top)).judge()
        assert verdict.readiness == "not_ready"

    def test_an_extra_image_is_judged_and_not_expected(self) -> None:
        sidecar = RuntimeIdentity("sidecar", "oci_image", digest_of("sidecar"))
        where = make_deployment(runtimes=(RUNTIME, sidecar))
        case = case_of(
            PLAN,
            lambda plan, number: make_trial(plan, number, deployment=where),
            digestions=[make_digestion(PLAN, deployment=where)],
        )
        verdict = case.judge()
        assert [reason.code for reason in verdict.reasons] == ["unexpected_subject"]
        assert verdict.readiness == "inconclusive"
