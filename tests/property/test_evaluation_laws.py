"""The laws of ``evaluate``: total, deterministic, blind to order, and nothing is improved by taking away."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

import attrs
import pytest
from hypothesis import HealthCheck, assume, example, find, given, settings
from hypothesis import strategies as st

from moeplan.evaluation.batches import Group
from moeplan.evaluation.quantiles import judge_quantile
from moeplan.model.plan import BINDINGS, GATE_IDS, Criterion
from moeplan.model.policy import LeastBinding
from moeplan.model.verdict import Verdict
from moeplan.model.verified import EvidenceSet
from moeplan.wire.documents import dump_document, load_document
from tests.build import Case, planned_criterion, with_criterion
from tests.property.evidence_cases import EVERYTHING, HASHED, SOUND, HashRecipe, Recipe, TrialRecipe, recipes

T = TypeVar("T")
GOOD = ("pass", "waived")
LAW = settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])


ONE_FAILED = attrs.evolve(SOUND, trials=(TrialRecipe(rows="failed"), TrialRecipe(), TrialRecipe(), TrialRecipe()))
HASHED_LATE = attrs.evolve(SOUND, hashings=(HashRecipe(end=HASHED[2]),))
TWO_RUNS = attrs.evolve(
    SOUND,
    trials=(TrialRecipe(), TrialRecipe(), TrialRecipe(run="run-2")),
    runs=(("run-1", "open"), ("run-2", "aborted")),
)


def good_of(verdict: Verdict) -> set[str]:
    """Return everything in a verdict that is as good as it can be."""
    found = {f"criterion {c.id}" for gate in verdict.gates for c in gate.criteria if c.outcome in GOOD}
    found |= {f"underlying {c.id}" for gate in verdict.gates for c in gate.criteria if c.underlying == "pass"}
    found |= {f"gate {gate.id}" for gate in verdict.gates if gate.outcome == "pass"}
    return found | ({"readiness"} if verdict.readiness == "ready" else set())


def assert_not_improved(before: Case, after: Case) -> None:
    assert good_of(after.judge()) - good_of(before.judge()) == set()


@st.composite
def lessened(draw: st.DrawFn, case: Case) -> Case:
    """Return the case with some of its evidence, signatures or trusted signers taken away; the inventory stays."""
    evidence = case.evidence
    keep = draw(st.sampled_from(["all but one", "some", "all"]))
    records, runs = list(evidence.records), list(evidence.runs)
    if keep == "all but one" and records + runs:
        place = draw(st.integers(0, len(records) + len(runs) - 1))
        records = [item for number, item in enumerate(records) if number != place]
        runs = [run for number, run in enumerate(runs) if number + len(evidence.records) != place]
    elif keep == "some":
        records = [item for item in records if draw(st.booleans())]
        runs = [run for run in runs if draw(st.booleans())]
    if draw(st.booleans()):
        types = ("serving_trial", "checkpoint_digest", "expert_counts", "failure_timeline", "price", "loaded_bytes")
        less = draw(st.sampled_from([*types, "runs", "one"]))
        records = [
            attrs.evolve(item, signers=item.signers[1:]) if less in (item.record.type, "one") else item
            for item in records
        ]
        runs = [attrs.evolve(run, signers=()) if less == "runs" else run for run in runs]
    policy = case.policy
    if draw(st.integers(0, 3)) == 0:
        policy = attrs.evolve(policy, signers=tuple(item for item in policy.signers if draw(st.booleans())))
    changed = attrs.evolve(evidence, records=tuple(records), runs=tuple(runs))
    if draw(st.integers(0, 3)) == 0:
        changed = attrs.evolve(changed, checkpoint=None, checkpoint_digest=None)
    return case.but(evidence=without_listings(draw, evidence, changed), policy=policy)


def _logged(evidence: EvidenceSet) -> set[str | None]:
    """Return the records that the run manifests list."""
    trials = {trial.record for run in evidence.runs for trial in run.manifest.trials}
    return trials | {part.record for run in evidence.runs for part in run.manifest.observations}


def without_listings(draw: st.DrawFn, before: EvidenceSet, after: EvidenceSet) -> EvidenceSet:
    """Take what a run manifest that stays lists out of the inventory too, at times."""
    if draw(st.booleans()):
        return after
    by_runs = _logged(after)
    here = {item.digest for item in after.records}
    gone = {item.digest for item in before.records} & by_runs - here
    return attrs.evolve(after, listed=tuple(digest for digest in after.listed if digest not in gone))


@LAW
@given(recipes())
def test_evaluate_is_total_and_deterministic(recipe: Recipe) -> None:
    first, second = recipe.build().judge(), recipe.build().judge()
    written = dump_document(first)
    assert written == dump_document(second)
    assert load_document(written, Verdict) == first


@LAW
@given(recipes(), st.randoms(use_true_random=False))
@example(TWO_RUNS, random.Random(0))
@example(attrs.evolve(SOUND, runs=(("run-1", "twice"),)), random.Random(1))
def test_order_does_not_matter(recipe: Recipe, rng: random.Random) -> None:
    case = recipe.build()
    evidence = case.evidence

    def shuffled(items: tuple[T, ...]) -> tuple[T, ...]:
        mixed = list(items)
        rng.shuffle(mixed)
        return tuple(mixed)

    records = tuple(attrs.evolve(item, signers=shuffled(item.signers)) for item in evidence.records)
    other = attrs.evolve(
        evidence,
        records=shuffled(records),
        runs=shuffled(evidence.runs),
        listed=shuffled(evidence.listed),
    )
    backwards = attrs.evolve(evidence, records=evidence.records[::-1], runs=evidence.runs[::-1])
    written = dump_document(case.judge())
    assert dump_document(case.but(evidence=other).judge()) == written
    assert dump_document(case.but(evidence=backwards).judge()) == written


@settings(LAW, max_examples=200)
@given(st.data())
def test_nothing_is_improved_by_taking_several_things_away(data: st.DataObject) -> None:
    case = data.draw(recipes()).build()
    assert_not_improved(case, data.draw(lessened(case)))


def single_steps(case: Case) -> Iterator[Case]:
    """Yield the case with each one thing taken away: a document, its listing too where a run lists it, a signature."""
    evidence, policy = case.evidence, case.policy
    by_runs = _logged(evidence)
    for item in evidence.records:
        less = tuple(other for other in evidence.records if other is not item)
        yield case.but_evidence(records=less)
        if item.digest in by_runs:
            listed = tuple(digest for digest in evidence.listed if digest != item.digest)
            yield case.but_evidence(records=less, listed=listed)
        if item.signers:
            unsigned = attrs.evolve(item, signers=item.signers[1:])
            yield case.but_evidence(records=(*less, unsigned))
    for run in evidence.runs:
        others = tuple(other for other in evidence.runs if other is not run)
        yield case.but_evidence(runs=others)
        yield case.but_evidence(runs=(*others, attrs.evolve(run, signers=())))
    yield case.but_evidence(checkpoint=None, checkpoint_digest=None)
    for signer in policy.signers:
        yield case.but_policy(signers=tuple(other for other in policy.signers if other is not signer))


@settings(LAW, max_examples=80)
@given(recipes())
@example(ONE_FAILED)
@example(attrs.evolve(ONE_FAILED, waived=EVERYTHING))
@example(HASHED_LATE)
@example(attrs.evolve(SOUND, trials=(TrialRecipe(), TrialRecipe(), TrialRecipe(deployment="arguments"))))
@example(attrs.evolve(SOUND, runs=(("run-1", "twice"),)))
@example(attrs.evolve(SOUND, checkpoint="other"))
def test_nothing_is_improved_by_taking_one_thing_away(recipe: Recipe) -> None:
    before = recipe.build()
    had = good_of(before.judge())
    for after in single_steps(before):
        assert good_of(after.judge()) - had == set()


def tightened(draw: st.DrawFn, rule: Criterion) -> int:
    limit = rule.limit
    assert type(limit) is int
    seen = (0, 1, 3, 4, 5, 30, 31, 32, 10_000, 14_999, 15_000, 55_555_555, 10**7, 10**8, 6 * 10**7, 2 * 10**9, 3600)
    if rule.comparator == "ge":
        return draw(st.one_of(st.integers(limit, limit + 5), st.sampled_from([n for n in seen if n > limit])))
    below = [n for n in seen if n < limit] or [limit]
    return draw(st.one_of(st.integers(max(limit - 5, 0), limit), st.sampled_from(below)))


@LAW
@given(st.data())
def test_tightening_a_limit_never_improves(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    before = recipe.build()
    judged = [
        rule
        for gate in before.plan.validation_gates
        for rule in gate.criteria
        if type(rule.limit) is int and rule.comparator != "eq"
    ]
    rule = data.draw(st.sampled_from(judged))
    limit = data.draw(st.composite(lambda draw: tightened(draw, rule))())
    after = recipe.build(with_criterion(before.plan, rule.id, limit=limit))
    assert_not_improved(before, after)


@LAW
@given(st.data())
def test_demanding_a_stronger_binding_never_improves(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    before = recipe.build()
    stronger = data.draw(st.sampled_from(BINDINGS))
    if data.draw(st.booleans()):
        rule = planned_criterion(before.plan, data.draw(st.sampled_from(EVERYTHING)))
        assume(BINDINGS.index(stronger) >= BINDINGS.index(rule.min_binding))
        after = recipe.build(with_criterion(before.plan, rule.id, min_binding=stronger))
    else:
        gate = data.draw(st.sampled_from(GATE_IDS))
        assume(BINDINGS.index(stronger) >= BINDINGS.index(before.policy.binding_for(gate)))
        others = tuple(item for item in before.policy.least_binding if item.gate != gate)
        after = before.but_policy(least_binding=(*others, LeastBinding(gate, stronger)))
    assert_not_improved(before, after)


@LAW
@given(st.data())
def test_removing_waivers_or_expectations_never_improves(data: st.DataObject) -> None:
    before = data.draw(recipes()).build()
    kept = tuple(waiver for waiver in before.policy.waivers if data.draw(st.booleans()))
    assert_not_improved(before, before.but_policy(waivers=kept))
    assert_not_improved(before, before.but_policy(expects=None))
    assert before.but_policy(expects=None).judge().readiness != "ready"


@settings(max_examples=150)
@given(st.data())
def test_a_tighter_limit_never_makes_a_quantile_pass(data: st.DataObject) -> None:
    """Twenty batches of shares near the boundary; a few have their high values at a lower level than the rest."""
    size = data.draw(st.sampled_from([60, 600, 4000]))
    usual = data.draw(st.integers(size * 9 // 200, size // 20))
    odd = data.draw(st.integers(0, 3))
    groups = []
    for batch in range(20):
        high = usual - data.draw(st.integers(0, min(usual, 2)))
        values = ((200 if batch < odd else 300,) * high) + (10,) * (size - high)
        groups += [Group(values[start::4]) for start in range(4)]
    order = ("fail", "inconclusive", "pass")
    found = [order.index(judge_quantile(groups, 95, limit).outcome) for limit in (5, 150, 250, 350)]
    assert found == sorted(found)


@pytest.mark.parametrize("readiness", ["ready", "not_ready", "inconclusive"])
def test_the_strategy_reaches_every_readiness(readiness: str) -> None:
    found = find(recipes(), lambda recipe: recipe.build().judge().readiness == readiness)
    assert found.build().judge().readiness == readiness


def test_the_strategy_makes_many_different_verdicts() -> None:
    """Laws over cases that all come out the same would prove nothing."""
    seen: Counter[str] = Counter()

    @settings(max_examples=150, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(recipes())
    def collect(recipe: Recipe) -> None:
        verdict = recipe.build().judge()
        seen[verdict.readiness] += 1
        seen.update({c.reason for gate in verdict.gates for c in gate.criteria if c.reason is not None})
        seen.update({gate.outcome for gate in verdict.gates})

    collect()
    assert all(seen[word] >= 10 for word in ("ready", "not_ready", "inconclusive", "blocked", "fail", "pass"))
    assert len(seen) > 25
