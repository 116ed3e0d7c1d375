"""Hypothesis strategies for whole cases of ``evaluate``: mostly sound, with up to three faults anywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import attrs
from hypothesis import strategies as st

from moeplan.model.checkpoint import CheckpointIndex, CheckpointManifest
from moeplan.model.deployment import Deployment, RuntimeIdentity
from moeplan.model.evidence import EngineCounters
from moeplan.model.plan import BINDINGS, GATE_IDS, Objectives, Plan
from moeplan.model.policy import LeastBinding, Policy, Signer
from moeplan.model.run_manifest import RunObservation, RunTrial
from moeplan.model.verified import VerifiedRecord, VerifiedRun, VerifiedSigner
from tests.build import (
    AT,
    MS,
    RUNNER,
    STRANGER,
    TRIAL_START,
    WAIVED,
    WAIVED_UNTIL,
    Case,
    Request,
    build_plan,
    checkpoint_ref,
    digest_of,
    make_checkpoint,
    make_deployment,
    make_digestion,
    make_evidence,
    make_expectations,
    make_policy,
    make_run,
    make_signer,
    make_spec,
    make_trial,
    make_waivers,
    steady_requests,
)
from tests.property.observation_cases import (
    SOUND_BOUND,
    SOUND_LAST,
    SOUND_LOADING,
    SOUND_WATCHED,
    ObservationRecipe,
    observation_recipes,
)
from tests.property.service_cases import PAYLOADS, SOUND_QUALITY
from tests.unit.evaluation.service_cases import quality_plan, rising

SECOND = VerifiedSigner("second", digest_of("second key"), ("runner",))
SIGNERS: dict[str, tuple[VerifiedSigner, ...]] = {
    "runner": (RUNNER,),
    "nobody": (),
    "stranger": (STRANGER,),
    "two": (SECOND, RUNNER),
}


def _slow(count: int, places: set[int], ttft_ms: int = 2000) -> list[Request]:
    rows = steady_requests(count)
    return [
        attrs.evolve(row, ttft_ns=ttft_ms * MS, end_ns=row.end + 2 * ttft_ms * MS) if index in places else row
        for index, row in enumerate(rows)
    ]


def _each(**changes: Any) -> list[Request]:
    return [attrs.evolve(row, **changes) for row in steady_requests()]


ROWS: dict[str, list[Request]] = {
    "steady": steady_requests(),
    "long": steady_requests(120),
    "two_slow": _slow(60, {7, 41}),
    "slow": _slow(60, set(range(0, 60, 5))),
    "rising": rising(),
    "short": steady_requests(36),
    "drift": _slow(400, set(range(388, 400))),
    "gaps_slow": _each(gaps=(10 * MS, 60 * MS, 10 * MS, 10 * MS)),
    "failed": [*steady_requests()[:-1], attrs.evolve(steady_requests()[-1], outcome="error")],
    "all_failed": _each(outcome="truncated"),
    "few": steady_requests(8),
    "one_by_one": steady_requests(60, concurrency=1),
    "no_usage": _each(usage=0),
    "short_prompts": _each(input_tokens=31),
    "gapless": _each(gaps=()),
    "none": [],
}
DEPLOYMENTS: dict[str, Deployment] = {
    "planned": make_deployment(),
    "arguments": make_deployment(arguments=("--enforce-eager",)),
    "checkpoint": make_deployment(checkpoint_root=digest_of("another root")),
    "runtime": make_deployment(runtimes=(RuntimeIdentity("serve", "oci_image", digest_of("another image")),)),
    "nodes": make_deployment(nodes=("node-a", "node-b")),
    "unnamed": make_deployment(nodes=None),
}
COUNTERS: dict[str, EngineCounters | str | None] = {
    "closing": "closing",
    "none": None,
    "open": EngineCounters(1, 2, 1, 3),
    "contradicting": EngineCounters(60, 1, 2**53 - 1, 300),
    "empty": EngineCounters(0, 0, 0, 0),
    "without_times": EngineCounters(60, 1920, 0, 300),
    "quick": EngineCounters(60, 1920, 0, 300, ttft_ns=MS, e2e_ns=MS),
    "long_warm_up": EngineCounters(63, 2016, 0, 315, ttft_ns=36_000 * MS, e2e_ns=72_000 * MS),
}
HASHED = ("2026-03-01T08:00:00Z", "2026-03-01T08:59:59Z", "2026-03-01T09:30:00Z", "2026-03-03T00:00:00Z")
RUN_FAULTS = (
    "missing",
    "open",
    "more_planned",
    "aborted",
    "unsigned",
    "twice",
    "other_plan",
    "other_shape",
    "empty",
    "begun",
)


def _plans() -> dict[str, Callable[[], Plan]]:
    larger = make_checkpoint(tensor_bytes=2_000_000_000_000)
    return {
        "exact": build_plan,
        "open_runtime": lambda: build_plan(deployment=make_spec(None)),
        "no_checkpoint": lambda: build_plan(checkpoint=None),
        "no_cache_share": lambda: build_plan(prefix_cache_share_basis_points=None),
        "quality": quality_plan,
        "goodput": lambda: build_plan(objectives=Objectives(goodput_basis_points_at_least=9900)),
        "draft": lambda: build_plan(deployment=make_spec(draft=digest_of("draft"))),
        "too_large": lambda: build_plan(checkpoint=checkpoint_ref(larger)),
        "highly_available": lambda: build_plan(availability="ha"),
        "limited": lambda: build_plan(objectives=Objectives(3600, None, 15_000, 60_000_000, 31)),
    }


PLANS = _plans()


@lru_cache(maxsize=1)
def checkpoints() -> dict[str, CheckpointManifest | None]:
    """Return the checkpoint manifests a case may have, by name."""
    good = make_checkpoint()
    disagreeing = CheckpointIndex("model.safetensors", good.tensor_bytes + 2, False)
    return {
        "good": good,
        "none": None,
        "unnamed": make_checkpoint(revision=None),
        "other": make_checkpoint(tensor_bytes=61_064_245_250),
        "disagrees": attrs.evolve(good, index=disagreeing),
    }


@attrs.frozen
class TrialRecipe:
    """One trial to be made."""

    rows: str = "steady"
    run: str = "run-1"
    signers: str = "runner"
    deployment: str = "planned"
    engine_start: str | None = "2026-03-01T09:00:00Z"
    counters: str = "closing"
    warmup: int | None = 0
    payload: str = "plain"


@attrs.frozen
class HashRecipe:
    """One hashing of a node to be made."""

    node: str = "node-a"
    end: str = HASHED[0]
    signers: str = "runner"
    deployment: str = "planned"


@attrs.frozen
class Recipe:
    """A case before it is made, so that the same evidence can be made for another plan."""

    plan: str
    trials: tuple[TrialRecipe, ...]
    hashings: tuple[HashRecipe, ...]
    runs: tuple[tuple[str, str], ...]
    checkpoint: str
    listing: str
    repeat: bool
    policy_signers: tuple[str, ...]
    least_binding: tuple[LeastBinding, ...]
    waived: tuple[str, ...]
    expects: bool
    at: str
    observed: tuple[ObservationRecipe, ...] = ()
    logged: bool = False

    def build(self, plan: Plan | None = None) -> Case:
        """Return the case, for ``plan`` where one is given."""
        planned = PLANS[self.plan]() if plan is None else plan
        trials = self._trials(planned)
        hashings = [
            make_digestion(planned, h.node, end=h.end, signers=SIGNERS[h.signers], deployment=DEPLOYMENTS[h.deployment])
            for h in self.hashings
        ]
        seen = [item.build(planned, SIGNERS, DEPLOYMENTS) for item in self.observed]
        by_run = {name: [item for item, of in trials if of == name] for name in sorted({of for _, of in trials})}
        runs = [run for name, items in by_run.items() for run in self._runs(planned, name, items, seen)]
        records = [*(item for item, _ in trials), *hashings, *seen]
        evidence = make_evidence(records, runs, checkpoints()[self.checkpoint])
        if self.listing == "ghost":
            evidence = attrs.evolve(evidence, listed=(*evidence.listed, digest_of("ghost")))
        if self.repeat:
            evidence = attrs.evolve(evidence, records=evidence.records * 2, runs=evidence.runs * 2)
        return Case(planned, evidence, self._policy(planned), self.at)

    def _trials(self, plan: Plan) -> list[tuple[VerifiedRecord, str]]:
        made: list[tuple[VerifiedRecord, str]] = []
        for recipe in self.trials:
            number = 1 + sum(of == recipe.run for _, of in made)
            item = make_trial(
                plan,
                number,
                ROWS[recipe.rows],
                run=recipe.run,
                deployment=DEPLOYMENTS[recipe.deployment],
                signers=SIGNERS[recipe.signers],
                engine_start=recipe.engine_start,
                engine_counters=COUNTERS[recipe.counters],
                warmup=recipe.warmup,
                **PAYLOADS[recipe.payload],
            )
            made.append((item, recipe.run))
        return made

    def _runs(
        self, plan: Plan, name: str, items: list[VerifiedRecord], seen: list[VerifiedRecord]
    ) -> list[VerifiedRun]:
        fault = dict(self.runs).get(name, "none")
        logged: dict[str, Any] = {"observations": _listed(seen)} if self.logged else {}
        whole = make_run(plan, items, run=name, **logged)
        if fault == "missing":
            return []
        if fault == "unsigned":
            return [attrs.evolve(whole, signers=())]
        faults: dict[str, dict[str, Any]] = {
            "open": {"state": "open"},
            "more_planned": {"planned_trials": len(items) + 1},
            "aborted": {"trials": (*whole.manifest.trials, RunTrial(len(items) + 1, "aborted", None, ()))},
            "other_plan": {"plan": digest_of("another plan")},
            "other_shape": {"planned_requests": 7},
            "empty": {"trials": ()},
            "begun": {"observations": (RunObservation("price", None, ()), *_listed(seen))},
        }
        made = [make_run(plan, items, run=name, **(logged | faults.get(fault, {})))]
        if fault == "twice":
            made.append(make_run(plan, items, run=name, announced=False, **logged))
        return made

    def _policy(self, plan: Plan) -> Policy:
        signers: list[Signer] = []
        if "runner" in self.policy_signers:
            signers.append(make_signer(RUNNER))
        if "second" in self.policy_signers:
            signers.append(make_signer(SECOND))
        if "packer" in self.policy_signers:
            signers.append(make_signer(attrs.evolve(STRANGER, roles=("packer",))))
        return make_policy(
            plan,
            expects=make_expectations(plan) if self.expects else None,
            signers=tuple(signers),
            least_binding=self.least_binding,
            waivers=make_waivers(self.waived),
        )


def _listed(seen: list[VerifiedRecord]) -> tuple[RunObservation, ...]:
    return tuple(
        RunObservation(item.record.type, item.digest, tuple(part.digest for part in item.record.attachments))
        for item in seen
    )


SOUND = Recipe(
    plan="exact",
    trials=(TrialRecipe(),) * 3,
    hashings=(HashRecipe(),),
    runs=(),
    checkpoint="good",
    listing="whole",
    repeat=False,
    policy_signers=("runner",),
    least_binding=(LeastBinding("workload_sla", "hashed"),),
    waived=WAIVED,
    expects=True,
    at=AT,
)

LOADED = attrs.evolve(SOUND, observed=SOUND_LOADING, waived=tuple(id for id in WAIVED if not id.startswith("load.")))
"""As the sound case, with what ``runtime_load`` needs instead of its waivers."""
LAST = attrs.evolve(
    SOUND,
    observed=SOUND_LAST,
    waived=tuple(id for id in WAIVED if not id.startswith(("routing.", "economics.", "resilience."))),
)
"""As the sound case, with what the two last gates need instead of their waivers."""

WATCHED = attrs.evolve(SOUND, observed=SOUND_WATCHED, waived=tuple(id for id in WAIVED if not id.startswith("memory.")))
"""As the sound case, with what ``memory_envelope`` needs instead of its waivers."""

BOUND = attrs.evolve(SOUND, observed=SOUND_BOUND, least_binding=(LeastBinding("workload_sla", "loaded"),))
"""As the sound case, bound as strongly as can be and as the policy demands."""
QUALITY = attrs.evolve(
    SOUND,
    plan="quality",
    observed=tuple(ObservationRecipe(name) for name in SOUND_QUALITY),
)
"""As the sound case, for a plan with a quality task."""

EVERYTHING = tuple(rule.id for gate in build_plan().validation_gates for rule in gate.criteria)

_trial_faults: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.sampled_from(sorted(ROWS)).map(lambda value: {"rows": value}),
    st.sampled_from(sorted(SIGNERS)).map(lambda value: {"signers": value}),
    st.sampled_from(sorted(DEPLOYMENTS)).map(lambda value: {"deployment": value}),
    st.sampled_from(sorted(COUNTERS)).map(lambda value: {"counters": value}),
    st.sampled_from(sorted(PAYLOADS)).map(lambda value: {"payload": value}),
    st.sampled_from([{"engine_start": None}, {"warmup": None}, {"warmup": 3}, {"run": "run-2"}]),
)
_hashings = st.builds(
    HashRecipe,
    node=st.sampled_from(["node-a", "node-b"]),
    end=st.sampled_from(HASHED),
    signers=st.sampled_from(sorted(SIGNERS)),
    deployment=st.sampled_from(["planned", "planned", "planned", "nodes", "arguments"]),
)
_bindings = st.dictionaries(st.sampled_from(GATE_IDS), st.sampled_from(BINDINGS)).map(
    lambda given: tuple(LeastBinding(gate, word) for gate, word in sorted(given.items()))
)
_waived = st.one_of(
    st.sampled_from([(), EVERYTHING, LOADED.waived, WATCHED.waived, LAST.waived, (*WAIVED, "sla.failed_requests")]),
    st.sets(st.sampled_from(EVERYTHING)).map(lambda ids: tuple(sorted(ids))),
)


@st.composite
def _with_trial_fault(draw: st.DrawFn, recipe: Recipe) -> Recipe:
    if not recipe.trials:
        return recipe
    fault, one = draw(_trial_faults), draw(st.booleans())
    place = draw(st.integers(0, len(recipe.trials) - 1))
    trials = tuple(
        attrs.evolve(trial, **fault) if not one or number == place else trial
        for number, trial in enumerate(recipe.trials)
    )
    hashings = recipe.hashings
    if "deployment" in fault and not one:
        hashings = tuple(attrs.evolve(item, deployment=fault["deployment"]) for item in hashings)
    return attrs.evolve(recipe, trials=trials, hashings=hashings)


@st.composite
def _with_fault(draw: st.DrawFn, recipe: Recipe) -> Recipe:
    kinds = ["trial", "trial", "trial", "hashing", "run", "rest", "rest", "policy", "policy", "observed", "observed"]
    kind = draw(st.sampled_from(kinds))
    if kind == "trial":
        return draw(_with_trial_fault(recipe))
    if kind == "hashing":
        return attrs.evolve(recipe, hashings=tuple(draw(st.lists(_hashings, max_size=3))))
    if kind == "observed":
        return attrs.evolve(recipe, observed=draw(observation_recipes()), logged=draw(st.booleans()))
    if kind == "run":
        fault = (draw(st.sampled_from(["run-1", "run-2"])), draw(st.sampled_from(RUN_FAULTS)))
        return attrs.evolve(recipe, runs=(*recipe.runs, fault))
    if kind == "rest":
        change: dict[str, Any] = draw(
            st.one_of(
                st.sampled_from(sorted(PLANS)).map(lambda value: {"plan": value}),
                st.sampled_from(sorted(checkpoints())).map(lambda value: {"checkpoint": value}),
                st.integers(0, 4).map(lambda count: {"trials": (TrialRecipe(),) * count}),
                st.sampled_from([{"listing": "ghost"}, {"repeat": True}, {"at": TRIAL_START}, {"at": WAIVED_UNTIL}]),
            )
        )
        return attrs.evolve(recipe, **change)
    signers = st.sets(st.sampled_from(["runner", "second", "packer"])).map(lambda names: tuple(sorted(names)))
    change = draw(
        st.one_of(
            signers.map(lambda value: {"policy_signers": value}),
            _bindings.map(lambda value: {"least_binding": value}),
            _waived.map(lambda value: {"waived": value}),
            st.just({"expects": False}),
        )
    )
    return attrs.evolve(recipe, **change)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """Return a recipe with none to four faults."""
    recipe = draw(st.sampled_from([SOUND, SOUND, LOADED, WATCHED, LAST, BOUND, QUALITY]))
    for _ in range(draw(st.integers(0, 4))):
        recipe = draw(_with_fault(recipe))
    return recipe
