"""The deployment validation plan: a calculated claim and the protocol that would prove it."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from moeplan.errors import Issue
from moeplan.model.deployment import DeploymentSpec
from moeplan.model.fields import (
    boolean,
    choice,
    const,
    digest,
    identifier,
    integer,
    limit_value,
    nested,
    sequence,
    text,
)

__all__ = [
    "BINDINGS",
    "GATE_IDS",
    "GENERATOR_PATTERN",
    "NO_OBJECTIVES",
    "RUNTIME_PATTERN",
    "Artifact",
    "CheckpointRef",
    "Criterion",
    "Dimension",
    "Dimensions",
    "EvidencePolicy",
    "Gate",
    "NextAction",
    "Objectives",
    "Plan",
    "QualityReference",
    "Readiness",
    "RegistryRef",
    "Reproducibility",
    "Residency",
    "SampleNeed",
    "Scenario",
    "Target",
    "Workload",
    "quality_criterion",
]

GATE_IDS = (
    "artifact_integrity",
    "static_residency",
    "runtime_load",
    "memory_envelope",
    "workload_sla",
    "routing_health",
    "economics_resilience",
)
"""The seven gates in their order."""

BINDINGS = ("declared", "revision", "hashed", "loaded")
"""How strongly evidence is tied to the checkpoint, weakest first."""

GENERATOR_PATTERN = r"^[a-z0-9.-]{1,32}/[0-9A-Za-z.+-]{1,31}$"
"""Name and release of what made a document: its sentences are that release's wording."""

RUNTIME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
"""The name of an engine or of a plugin."""
_COUNT_MAX = 10**9
_ID_MAX = 128


@attrs.frozen
class CheckpointRef:
    """The exact checkpoint a plan was made for: identity of its manifest, its root digest, its tensor bytes."""

    manifest: str = digest()
    root: str = digest()
    tensor_bytes: int = integer()


@attrs.frozen
class QualityReference:
    """What a quality task scored elsewhere, and by how many basis points the share of right answers may be lower."""

    task: str = identifier()
    metric: str = identifier()
    correct: int = integer()
    documents: int = integer(ge=1)
    margin_basis_points: int = integer(le=10_000)


def quality_criterion(reference: QualityReference) -> str:
    """Return the id of the criterion that holds a task against its reference."""
    return f"sla.quality.{reference.task}.{reference.metric}"


@attrs.frozen
class Objectives:
    """What is asked of the deployment beside its workload. Null: the value is reported and not limited.

    ``goodput_basis_points_at_least``: share of requests that meet both latency targets. ``expert_load_ratio…``: the
    busiest expert's selections over the mean, of the worst layer, in basis points, over the run and its worst stretch.
    ``cost_micros…``: millionths of the price's currency for a million successful output tokens.
    ``energy_millijoules…`` is not even reported where it is not asked for: not every site measures power.
    """

    ready_within_seconds: int = integer(ge=1, le=86_400, default=3600)
    goodput_basis_points_at_least: int | None = integer(le=10_000, optional=True, default=None)
    expert_load_ratio_basis_points_at_most: int | None = integer(ge=10_000, optional=True, default=None)
    cost_micros_per_million_tokens_at_most: int | None = integer(ge=1, optional=True, default=None)
    restart_within_seconds: int | None = integer(ge=1, optional=True, default=None)
    energy_millijoules_per_token_at_most: int | None = integer(ge=1, optional=True, default=None)
    quality: tuple[QualityReference, ...] = sequence(QualityReference, default=())

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: quality references out of order, or more right answers than documents."""
        keys = [(item.task, item.metric) for item in self.quality]
        if keys != sorted(set(keys)):
            yield Issue("$.objectives.quality", "not_sorted", "not in order, each once", "sorted by task, metric")
        ids = [quality_criterion(item) for item in self.quality]
        if any(len(id) > _ID_MAX for id in ids) or len(set(ids)) < len(ids):
            expected = (
                f"task and metric of at most {_ID_MAX - len('sla.quality..')} characters together, each pair told apart"
            )
            yield Issue("$.objectives.quality", "criterion_id", "task and metric give no criterion id", expected)
        for index, item in enumerate(self.quality):
            if item.correct > item.documents:
                at = f"$.objectives.quality[{index}].correct"
                yield Issue(at, "out_of_range", "more right answers than documents", f"at most {item.documents}")


NO_OBJECTIVES = Objectives()
"""Ready within an hour; all else is reported."""


@attrs.frozen
class Scenario:
    """What is asked: model, hardware and workload by value, before look-up.

    ``reserve_basis_points`` and ``devices_per_node`` of None take the registry's defaults.
    ``prefix_cache_share_basis_points`` is the largest share of prompt tokens the workload expects to come
    from the prefix cache; None leaves it undeclared.
    """

    model: str = text(max_length=200)
    hardware: str = text(max_length=200)
    devices: int = integer(ge=1, le=1_000_000)
    devices_per_node: int | None = integer(ge=1, le=100_000, optional=True, default=None)
    reserve_basis_points: int | None = integer(le=9999, optional=True, default=None)
    runtime: str = text(pattern=r"^[^\u0000-\u001f\u007f-\u009f]*$", min_length=0, max_length=128, default="vllm")
    input_tokens: int = integer(ge=1, le=_COUNT_MAX, default=4096)
    output_tokens: int = integer(ge=1, le=_COUNT_MAX, default=1024)
    concurrency: int = integer(ge=1, le=_COUNT_MAX, default=1)
    target_ttft_ms: int = integer(ge=1, le=_COUNT_MAX, default=1000)
    target_inter_token_ms: int = integer(ge=1, le=_COUNT_MAX, default=50)
    availability: str = choice("single", "ha", default="single")
    prefix_cache_share_basis_points: int | None = integer(le=10_000, optional=True, default=None)
    checkpoint: CheckpointRef | None = nested(CheckpointRef, optional=True, default=None)
    deployment: DeploymentSpec | None = nested(DeploymentSpec, optional=True, default=None)
    objectives: Objectives = nested(Objectives, default=NO_OBJECTIVES)


@attrs.frozen
class Artifact:
    """The model at its pinned revision, and the exact checkpoint where one was digested."""

    model_id: str = identifier()
    model_name: str = text(max_length=200)
    repository: str = text(max_length=200)
    revision: str = text(max_length=71)
    manifest_url: str | None = text(max_length=1024, optional=True)
    checkpoint: CheckpointRef | None = nested(CheckpointRef, optional=True)


@attrs.frozen
class Target:
    """The accelerators asked for; the reserve in basis points of each device's memory."""

    hardware_id: str = identifier()
    hardware_name: str = text(max_length=200)
    runtime: str = text(pattern=RUNTIME_PATTERN, max_length=64)
    requested_accelerators: int = integer(ge=1)
    accelerators_per_node: int = integer(ge=1)
    reserve_basis_points: int = integer(le=9999)


@attrs.frozen
class Workload:
    """What is to be served: tokens a request, requests in flight, targets in milliseconds."""

    input_tokens: int = integer(ge=1)
    output_tokens: int = integer(ge=1)
    concurrency: int = integer(ge=1)
    target_ttft_ms: int = integer(ge=1)
    target_inter_token_ms: int = integer(ge=1)
    availability: str = choice("single", "ha")
    prefix_cache_share_basis_points: int | None = integer(le=10_000, optional=True)


@attrs.frozen
class EvidencePolicy:
    """What kind of claim the plan itself is."""

    result_class: str = choice("calculated")
    measured_performance_available: bool = boolean()
    statement: str = text()


@attrs.frozen
class Readiness:
    """Whether validation is worth starting."""

    status: str = choice("validation_required", "blocked")
    reason: str = text()
    static_residency: str = choice("pass", "fail", "unknown")
    runtime_compatibility: str = choice("supported", "unsupported", "unknown")


@attrs.frozen
class Dimension:
    """One of load, run, scale and economics: what is known and what is not."""

    status: str = choice("blocked", "conditional", "unknown")
    evidence_class: str = choice("calculated", "unknown")
    summary: str = text()
    known: tuple[str, ...] = text(many=True)
    unknown: tuple[str, ...] = text(many=True)


@attrs.frozen
class Dimensions:
    """The four dimensions of a decision."""

    load: Dimension = nested(Dimension)
    run: Dimension = nested(Dimension)
    scale: Dimension = nested(Dimension)
    economics: Dimension = nested(Dimension)


@attrs.frozen
class SampleNeed:
    """The least independent requests a trial needs for a bound on a quantile, and the time they take.

    ``seconds`` assumes every request takes exactly its targets (TTFT + (output tokens - 1) × inter-token time) at the
    planned concurrency, rounded up.
    """

    requests: int = integer(ge=1)
    seconds: int = integer()


@attrs.frozen
class Criterion:
    """One machine-checkable rule of a gate. ``clause`` names the acceptance sentence it belongs to."""

    id: str = identifier()
    metric: str = identifier()
    aggregation: str = choice("exact", "each_trial", "p95_each_trial", "sum", "all_records")
    comparator: str = choice("le", "ge", "eq", "reported")
    limit: int | str | None = limit_value()
    unit: str = identifier()
    evidence_types: tuple[str, ...] = identifier(many=True)
    min_binding: str = choice(*BINDINGS)
    on_missing: str = choice("inconclusive")
    contributed_by: str = text(pattern=r"^[a-z0-9][a-z0-9._@+-]{0,127}$", max_length=128)
    clause: str = identifier()
    samples: SampleNeed | None = nested(SampleNeed, optional=True)


@attrs.frozen
class Gate:
    """One of the seven ordered gates; the acceptance sentences are rendered from the criteria."""

    id: str = choice(*GATE_IDS)
    order: int = integer(ge=1, le=7)
    status: str = choice("required", "blocked", "calculated_pass")
    title: str = text()
    objective: str = text()
    acceptance_criteria: tuple[str, ...] = text(many=True)
    required_evidence: tuple[str, ...] = text(many=True)
    criteria: tuple[Criterion, ...] = sequence(Criterion, min_items=1)


@attrs.frozen
class NextAction:
    """The next step."""

    code: str = choice(
        "increase_capacity",
        "execute_validation",
        "resolve_artifact_size",
        "resolve_accelerator_memory",
        "change_unsupported_configuration",
    )
    summary: str = text()


@attrs.frozen
class Reproducibility:
    """How to make this plan again."""

    cli: str = text()
    api_path: str = text()
    assumptions: tuple[str, ...] = text(many=True)


@attrs.frozen
class RegistryRef:
    """The registry the plan's claims come from."""

    version: str = text(max_length=64)
    digest: str = digest()


@attrs.frozen
class Residency:
    """The static floor in exact integers; None where tensor bytes or device memory are unknown.

    ``usable_bytes_per_accelerator`` = floor(device bytes × (10000 - reserve) / 10000).
    """

    status: str = choice("pass", "fail", "unknown")
    tensor_bytes: int | None = integer(optional=True)
    tensor_bytes_from: str = choice("registry", "checkpoint_manifest", "unknown")
    bytes_per_accelerator: int | None = integer(optional=True)
    usable_bytes_per_accelerator: int | None = integer(optional=True)
    usable_bytes_requested: int | None = integer(optional=True)
    minimum_accelerators: int | None = integer(optional=True)
    rounded_accelerators: int | None = integer(optional=True)
    rounded_nodes: int | None = integer(optional=True)


@attrs.frozen
class Plan:
    """A deployment validation plan, form 1.1.0."""

    kind: str = const("deployment_validation_plan")
    schema_version: str = const("1.1.0")
    generator: str = text(pattern=GENERATOR_PATTERN, max_length=64)
    scenario_key: str = text(max_length=1024)
    registry: RegistryRef = nested(RegistryRef)
    artifact: Artifact = nested(Artifact)
    target: Target = nested(Target)
    workload: Workload = nested(Workload)
    objectives: Objectives = nested(Objectives)
    deployment: DeploymentSpec = nested(DeploymentSpec)
    evidence_policy: EvidencePolicy = nested(EvidencePolicy)
    readiness: Readiness = nested(Readiness)
    residency: Residency = nested(Residency)
    dimensions: Dimensions = nested(Dimensions)
    risks: tuple[str, ...] = text(many=True)
    validation_gates: tuple[Gate, ...] = sequence(Gate, min_items=7, max_items=7)
    next_action: NextAction = nested(NextAction)
    reproducibility: Reproducibility = nested(Reproducibility)

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: gates out of order, criterion ids used twice."""
        yield from self.objectives.faults()
        seen: set[str] = set()
        for index, (gate, wanted) in enumerate(zip(self.validation_gates, GATE_IDS, strict=False)):
            if gate.id != wanted or gate.order != index + 1:
                yield Issue(f"$.validationGates[{index}].id", "gate_order", "gate out of order", wanted, gate.id)
            for number, criterion in enumerate(gate.criteria):
                if criterion.id in seen:
                    path = f"$.validationGates[{index}].criteria[{number}].id"
                    yield Issue(path, "duplicate_criterion", "criterion id used twice", "unique ids", criterion.id)
                seen.add(criterion.id)
