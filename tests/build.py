"""Synthetic plans, evidence and policies for tests, small and typed.

``ready_case()`` is a case in which every criterion that can be proven is, and the rest is waived; a test takes it,
spoils one thing and looks at what the verdict says.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs

from moeplan.catalogue.registries import load_registry
from moeplan.evaluation.evaluate import evaluate
from moeplan.model.checkpoint import CheckpointFile, CheckpointManifest, Tensor, root_digest
from moeplan.model.deployment import Deployment, DeploymentSpec, Parallelism, RoleSpec, RuntimeIdentity
from moeplan.model.evidence import (
    Attachment,
    CheckpointDigest,
    Collector,
    EngineCounters,
    EvidenceRecord,
    Interval,
    ServingTrial,
    TrialRef,
)
from moeplan.model.plan import CheckpointRef, Criterion, Plan, Scenario
from moeplan.model.policy import Expectations, LeastBinding, Policy, Signer, Waiver, WorkloadExpectation
from moeplan.model.run_manifest import RunManifest, RunTrial
from moeplan.model.tables import ChunkGapTable, RequestTable
from moeplan.model.verdict import CriterionResult, GateResult, Verdict
from moeplan.model.verified import EvidenceSet, VerifiedRecord, VerifiedRun, VerifiedSigner
from moeplan.planning.builder import plan as make_plan
from moeplan.units import format_instant, parse_instant
from moeplan.wire.documents import identify

TEST_KEY = Path(__file__).resolve().parent / "data/published-test-key.pem"
TEST_KEY_PUBLIC = TEST_KEY.with_suffix(".pub.pem")

MS = 1_000_000
"""Nanoseconds of a millisecond."""

MODEL = "qwen3-30b-a3b"
REPOSITORY = "Qwen/Qwen3-30B-A3B"
REVISION = "ad44e777bcd18fa416d9da3bd8f70d33ebb85d39"
"""Revision of the model in registry 1.1.0."""

EXPERT_LAYERS = 2
EXPERTS = 4
"""Layers with experts of the checkpoint, and experts of each."""

NODE = "node-a"
INPUT_TOKENS = 32
OUTPUT_TOKENS = 5
CONCURRENCY = 4
TARGET_TTFT_MS = 1000
TARGET_GAP_MS = 50
CACHE_SHARE = 500
"""Declared prefix-cache share in basis points."""

HASHED_AT = "2026-03-01T08:00:00Z"
ENGINE_START = "2026-03-01T09:00:00Z"
TRIAL_START = "2026-03-01T10:00:00Z"
AT = "2026-03-02T00:00:00Z"
WAIVED_UNTIL = "2026-06-01T00:00:00Z"

WAIVED = (
    "load.ready",
    "load.ready_time",
    "load.fatal_signatures",
    "load.smoke",
    "load.environment",
    "load.deployment",
    "memory.phases",
    "memory.device_peak",
    "memory.headroom",
    "memory.host_peak",
    "memory.workload",
    "memory.kv_capacity",
    "memory.parts",
    "routing.expert_load",
    "routing.conservation",
    "routing.sample_size",
    "routing.load_ratio",
    "routing.load_ratio_peak",
    "routing.effective_experts",
    "routing.inactive_experts",
    "routing.hot_experts",
    "routing.dead_experts",
    "routing.dropped_tokens",
    "routing.dropped_tokens_sum",
    "routing.communication",
    "routing.routing_time",
    "routing.all_to_all",
    "economics.cost_inputs",
    "economics.cost",
    "resilience.failure_recorded",
    "resilience.restart",
    "resilience.interruption",
    "resilience.requests_lost",
)
"""Criteria for which no evidence exists yet."""


def digest_of(label: str) -> str:
    """Return a digest that stands for whatever ``label`` names."""
    return "sha256:" + hashlib.sha256(label.encode()).hexdigest()


RUNTIME = RuntimeIdentity("serve", "oci_image", digest_of("image"))
RUNNER = VerifiedSigner("runner", digest_of("runner key"), ("runner",))
STRANGER = VerifiedSigner("stranger", digest_of("stranger key"), ("runner",))


def make_checkpoint(
    *, repository: str | None = REPOSITORY, revision: str | None = REVISION, tensor_bytes: int = 61_064_245_248
) -> CheckpointManifest:
    """Return a checkpoint manifest of one file: two layers of four experts, and one tensor for all the rest."""
    name = "model.safetensors"
    files = (CheckpointFile(name, tensor_bytes + 8 + 128, digest_of(f"weights {tensor_bytes}")),)
    experts = tuple(
        Tensor(f"model.layers.{layer}.mlp.experts.{expert}.up_proj.weight", name, "BF16", (1,), 2)
        for layer in range(EXPERT_LAYERS)
        for expert in range(EXPERTS)
    )
    rest = tensor_bytes - 2 * len(experts)
    tensors = (*experts, Tensor("w", name, "BF16", (rest // 2,), rest))
    return CheckpointManifest(
        repository=repository,
        revision=revision,
        root=root_digest(files),
        tensor_bytes=tensor_bytes,
        index=None,
        files=files,
        tensors=tensors,
    )


def checkpoint_ref(manifest: CheckpointManifest) -> CheckpointRef:
    """Return what a plan holds of a checkpoint manifest."""
    return CheckpointRef(identify(manifest), manifest.root, manifest.tensor_bytes)


def make_scenario(**changes: Any) -> Scenario:
    """Return a small workload on 8 H200 with exact checkpoint and runtime; ``changes`` are attributes."""
    values: dict[str, Any] = {
        "model": MODEL,
        "hardware": "h200",
        "devices": 8,
        "input_tokens": INPUT_TOKENS,
        "output_tokens": OUTPUT_TOKENS,
        "concurrency": CONCURRENCY,
        "target_ttft_ms": TARGET_TTFT_MS,
        "target_inter_token_ms": TARGET_GAP_MS,
        "prefix_cache_share_basis_points": CACHE_SHARE,
        "checkpoint": checkpoint_ref(make_checkpoint()),
        "deployment": make_spec(),
    }
    return Scenario(**(values | changes))


def make_spec(runtime: RuntimeIdentity | None = RUNTIME, draft: str | None = None) -> DeploymentSpec:
    """Return a plan's deployment block with one role."""
    return DeploymentSpec(None, Parallelism(8, None, None, None), None, draft, (RoleSpec("serve", runtime),))


@lru_cache(maxsize=64)
def _planned(scenario: Scenario) -> Plan:
    return make_plan(load_registry(), scenario)


def build_plan(**changes: Any) -> Plan:
    """Return the plan of :func:`make_scenario` with ``changes``."""
    return _planned(make_scenario(**changes))


@lru_cache(maxsize=64)
def plan_identity(plan: Plan) -> str:
    """Return the digest of a plan's one form."""
    return identify(plan)


def with_criterion(plan: Plan, id: str, **changes: Any) -> Plan:
    """Return the plan with one criterion changed; the other entries stay as they are."""
    gates = []
    for gate in plan.validation_gates:
        rules = tuple(attrs.evolve(rule, **changes) if rule.id == id else rule for rule in gate.criteria)
        gates.append(attrs.evolve(gate, criteria=rules))
    return attrs.evolve(plan, validation_gates=tuple(gates))


def planned_criterion(plan: Plan, id: str) -> Criterion:
    """Return one criterion of a plan by its id."""
    return next(rule for gate in plan.validation_gates for rule in gate.criteria if rule.id == id)


@attrs.frozen
class Request:
    """One request of a synthetic trial; times in ns. ``end_ns`` of None ends it with its last chunk."""

    start_ns: int
    ttft_ns: int = 100 * MS
    gaps: tuple[int, ...] = (10 * MS,) * (OUTPUT_TOKENS - 1)
    outcome: str = "complete"
    input_tokens: int = INPUT_TOKENS
    output_tokens: int = OUTPUT_TOKENS
    usage: int = 1
    end_ns: int | None = None
    chunks: int | None = None

    @property
    def end(self) -> int:
        return self.start_ns + self.ttft_ns + sum(self.gaps) if self.end_ns is None else self.end_ns


PERIOD_NS = 200 * MS


def steady_requests(count: int = 60, *, concurrency: int = CONCURRENCY, period_ns: int = PERIOD_NS) -> list[Request]:
    """Return requests of which ``concurrency`` are in flight at any time: each ends where the next is sent."""
    starts = [index // concurrency * period_ns for index in range(count)]
    return [Request(start, end_ns=start + period_ns) for start in starts]


def make_tables(requests: Sequence[Request]) -> tuple[RequestTable, ChunkGapTable]:
    """Return the raw tables of requests given in start order; the index of each is its place."""
    rows = list(enumerate(requests))
    gaps = [(index, ordinal, gap) for index, item in rows for ordinal, gap in enumerate(item.gaps, 1)]
    table = RequestTable(
        request=array("q", range(len(rows))),
        start_ns=array("q", (item.start_ns for item in requests)),
        queue_ns=array("q", [0] * len(rows)),
        ttft_ns=array("q", (item.ttft_ns for item in requests)),
        end_ns=array("q", (item.end for item in requests)),
        chunks=array("q", (len(item.gaps) + 1 if item.chunks is None else item.chunks for item in requests)),
        input_tokens=array("q", (item.input_tokens for item in requests)),
        output_tokens=array("q", (item.output_tokens for item in requests)),
        usage=array("q", (item.usage for item in requests)),
        outcome=tuple(item.outcome for item in requests),
    )
    columns = [array("q", (row[column] for row in gaps)) for column in range(3)]
    return table, ChunkGapTable(*columns)


def make_deployment(**changes: Any) -> Deployment:
    """Return the deployment that :func:`build_plan` plans for."""
    values: dict[str, Any] = {
        "checkpoint_root": make_checkpoint().root,
        "draft_checkpoint_root": None,
        "runtimes": (RUNTIME,),
        "arguments": None,
        "environment": None,
        "manifest_set": None,
        "nodes": (NODE,),
        "accelerators": None,
    }
    return Deployment(**(values | changes))


_COLLECTOR = Collector("vllm-bench", "0.32.0", "vllm-bench", "0.1.0")


def closing_counters(requests: Sequence[Request], warmup: int = 0, cached: int | None = 0) -> EngineCounters:
    """Return engine counters that tell the client's story plus ``warmup`` requests of the planned lengths.

    A request takes the engine as long as the client; one of the warm-up 200 ms, the first token after 100.
    """
    whole = [item for item in requests if item.outcome == "complete"]
    return EngineCounters(
        requests=sum(item.outcome == "complete" for item in requests) + warmup,
        prompt_tokens=sum(item.input_tokens for item in requests) + warmup * INPUT_TOKENS,
        cached_prompt_tokens=cached,
        generation_tokens=sum(item.output_tokens for item in requests) + warmup * OUTPUT_TOKENS,
        ttft_ns=sum(item.ttft_ns for item in whole) + warmup * 100 * MS,
        e2e_ns=sum(item.end - item.start_ns for item in whole) + warmup * 200 * MS,
    )


def make_trial(
    plan: Plan,
    number: int = 1,
    requests: Sequence[Request] | None = None,
    *,
    run: str = "run-1",
    deployment: Deployment | None = None,
    signers: tuple[VerifiedSigner, ...] = (RUNNER,),
    start: str | None = None,
    engine_start: str | None = ENGINE_START,
    engine_counters: EngineCounters | str | None = "closing",
    warmup: int | None = 0,
    **payload: Any,
) -> VerifiedRecord:
    """Return a verified serving trial; its engine counters close unless others are given.

    Unless a start is given, trials follow one another: each number and each run has ten minutes of its own.
    """
    if start is None:
        slot = 4 * (number - 1) + (0 if run == "run-1" else 1 + sum(run.encode()) % 3)
        start = format_instant(parse_instant(TRIAL_START) + 600 * slot)
    rows = steady_requests() if requests is None else list(requests)
    table, gaps = make_tables(rows)
    duration = max((item.end for item in rows), default=1) or 1
    counters = closing_counters(rows, warmup or 0) if isinstance(engine_counters, str) else engine_counters
    shape: dict[str, Any] = {
        "trial": TrialRef(run, number),
        "endpoint": "/v1/completions",
        "requested_input_tokens": INPUT_TOKENS,
        "requested_output_tokens": OUTPUT_TOKENS,
        "declared_concurrency": CONCURRENCY,
        "ignore_eos": True,
        "warmup_requests": warmup,
        "warmup_input_tokens": None if warmup is None else warmup * INPUT_TOKENS,
        "warmup_output_tokens": None if warmup is None else warmup * OUTPUT_TOKENS,
        "request_count": max(1, len(rows)),
        "duration_ns": duration,
        "engine_counters": counters,
        "claims": (),
    }
    raw = {"requests": repr(rows), "chunk_gaps": repr([item.gaps for item in rows])}
    attachments = tuple(
        Attachment(
            role,
            f"attachments/{run}-{number}/{role}.parquet",
            f"{role}.parquet",
            "application/vnd.apache.parquet",
            len(text),
            digest_of(f"{run} {number} {role} {text}"),
        )
        for role, text in raw.items()
    )
    seconds = duration // 10**9 + 1
    record = EvidenceRecord(
        type="serving_trial",
        plan=plan_identity(plan),
        deployment=make_deployment() if deployment is None else deployment,
        collector=_COLLECTOR,
        interval=Interval(start, format_instant(parse_instant(start) + seconds)),
        engine_start=engine_start,
        payload=ServingTrial(**(shape | payload)),
        attachments=attachments,
    )
    return VerifiedRecord(record, identify(record), signers, table, gaps)


def make_digestion(
    plan: Plan,
    node: str = NODE,
    *,
    end: str = HASHED_AT,
    deployment: Deployment | None = None,
    signers: tuple[VerifiedSigner, ...] = (RUNNER,),
    manifest: CheckpointManifest | None = None,
) -> VerifiedRecord:
    """Return a verified record that a node's checkpoint files were hashed, ending at ``end``."""
    held = make_checkpoint() if manifest is None else manifest
    where = make_deployment() if deployment is None else deployment
    payload = CheckpointDigest(
        manifest=identify(held),
        root=where.checkpoint_root,
        node=node,
        file_count=len(held.files),
        total_bytes=sum(file.size for file in held.files),
    )
    record = EvidenceRecord(
        type="checkpoint_digest",
        plan=plan_identity(plan),
        deployment=where,
        collector=Collector("moeplan", "0.1.0", "moeplan", "0.1.0"),
        interval=Interval(end, end),
        engine_start=None,
        payload=payload,
        attachments=(),
    )
    return VerifiedRecord(record, identify(record), signers)


def make_run(
    plan: Plan,
    trials: Sequence[VerifiedRecord],
    /,
    *,
    run: str = "run-1",
    signers: tuple[VerifiedSigner, ...] = (RUNNER,),
    **changes: Any,
) -> VerifiedRun:
    """Return the verified manifest of a run that made exactly ``trials``."""
    first = trials[0].record if trials else make_trial(plan, run=run).record
    shape = first.payload
    assert isinstance(shape, ServingTrial)
    values: dict[str, Any] = {
        "run": run,
        "plan": plan_identity(plan),
        "deployment": identify(first.deployment),
        "announced": True,
        "state": "closed",
        "planned_trials": max(1, len(trials)),
        "planned_requests": shape.request_count,
        "requested_input_tokens": shape.requested_input_tokens,
        "requested_output_tokens": shape.requested_output_tokens,
        "declared_concurrency": shape.declared_concurrency,
        "warmup_requests": shape.warmup_requests,
        "trials": tuple(
            RunTrial(number, "complete", item.digest, tuple(part.digest for part in item.record.attachments))
            for number, item in enumerate(trials, 1)
        ),
    }
    manifest = RunManifest(**(values | changes))
    return VerifiedRun(manifest, identify(manifest), signers)


def make_evidence(
    records: Sequence[VerifiedRecord],
    runs: Sequence[VerifiedRun] = (),
    checkpoint: CheckpointManifest | None = None,
    *,
    listed: Sequence[str] | None = None,
) -> EvidenceSet:
    """Return an evidence set whose inventory lists everything in it, unless ``listed`` says otherwise."""
    digest = None if checkpoint is None else identify(checkpoint)
    everything = [item.digest for item in records] + [run.digest for run in runs]
    if digest is not None:
        everything.append(digest)
    return EvidenceSet(checkpoint, digest, tuple(records), tuple(runs), tuple(everything if listed is None else listed))


def make_signer(signer: VerifiedSigner = RUNNER) -> Signer:
    """Return a policy's signer. Its key text is the test key's; ``evaluate`` looks at the fingerprint alone."""
    return Signer(signer.id, signer.roles, signer.fingerprint, TEST_KEY_PUBLIC.read_text("ascii"))


def make_expectations(plan: Plan) -> Expectations:
    """Return expectations of exactly the subject that the builders here make."""
    return Expectations(
        checkpoint_roots=(make_checkpoint().root,),
        models=(plan.artifact.model_id,),
        hardware=(plan.target.hardware_id,),
        accelerators_at_most=plan.target.requested_accelerators,
        reserve_basis_points_at_least=plan.target.reserve_basis_points,
        runtimes=(RUNTIME.digest,),
        registries=(plan.registry.digest,),
        workload=WorkloadExpectation(
            plan.workload.input_tokens,
            plan.workload.output_tokens,
            plan.workload.concurrency,
            plan.workload.target_ttft_ms,
            plan.workload.target_inter_token_ms,
            plan.workload.prefix_cache_share_basis_points,
            plan.workload.availability,
        ),
    )


def make_waivers(ids: Sequence[str] = WAIVED, expires: str = WAIVED_UNTIL) -> tuple[Waiver, ...]:
    """Return one waiver a criterion."""
    return tuple(Waiver(id, "no evidence of this kind can be made yet", expires) for id in ids)


def make_policy(plan: Plan, **changes: Any) -> Policy:
    """Return a policy under which :func:`ready_case` is ready."""
    values: dict[str, Any] = {
        "expects": make_expectations(plan),
        "signers": (make_signer(),),
        "least_binding": (LeastBinding("artifact_integrity", "revision"), LeastBinding("workload_sla", "hashed")),
        "waivers": make_waivers(),
        "test_keys": True,
    }
    return Policy(**(values | changes))


@attrs.frozen
class Case:
    """The four inputs of ``evaluate``."""

    plan: Plan
    evidence: EvidenceSet
    policy: Policy
    at: str = AT

    def judge(self) -> Verdict:
        """Return the verdict."""
        return evaluate(self.plan, self.evidence, self.policy, self.at)

    def but(self, **changes: Any) -> Case:
        """Return the case with parts of it changed."""
        return attrs.evolve(self, **changes)

    def but_policy(self, **changes: Any) -> Case:
        """Return the case with parts of its policy changed."""
        return attrs.evolve(self, policy=attrs.evolve(self.policy, **changes))

    def but_evidence(self, **changes: Any) -> Case:
        """Return the case with parts of its evidence changed; what its inventory lists stays."""
        return attrs.evolve(self, evidence=attrs.evolve(self.evidence, **changes))


TrialMaker = Callable[[Plan, int], VerifiedRecord]


def case_of(
    plan: Plan,
    trial: TrialMaker = make_trial,
    /,
    *,
    trials: int = 3,
    digestions: Sequence[VerifiedRecord] | None = None,
    checkpoint: CheckpointManifest | None = None,
    policy: Policy | None = None,
    **run: Any,
) -> Case:
    """Return a case of ``trials`` trials of one run, made by ``trial(plan, number)``, with the node's hashing."""
    made = [trial(plan, number) for number in range(1, trials + 1)]
    hashed = [make_digestion(plan)] if digestions is None else list(digestions)
    manifest = make_checkpoint() if checkpoint is None else checkpoint
    runs = [make_run(plan, made, **run)]
    return Case(plan, make_evidence([*made, *hashed], runs, manifest), policy or make_policy(plan))


@lru_cache(maxsize=1)
def ready_case() -> Case:
    """Return the case that is ``ready``."""
    return case_of(build_plan())


def gate_of(verdict: Verdict, id: str) -> GateResult:
    """Return one gate of a verdict by its id."""
    return next(gate for gate in verdict.gates if gate.id == id)


def criterion_of(verdict: Verdict, id: str) -> CriterionResult:
    """Return one criterion of a verdict by its id."""
    return next(criterion for gate in verdict.gates for criterion in gate.criteria if criterion.id == id)
