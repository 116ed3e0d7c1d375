"""What a record says of a live system: log, environment, memory, experts, loaded bytes, failure, price."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from moeplan.errors import Issue
from moeplan.model.fields import boolean, choice, const, identifier, integer, nested, sequence, text

__all__ = [
    "COMPLETE_ENVIRONMENT",
    "ENVIRONMENT_PARTS",
    "MEMORY_PARTS",
    "MEMORY_PHASES",
    "CommunicationTrace",
    "EngineCounters",
    "EngineLog",
    "Environment",
    "EnvironmentFact",
    "EnvironmentGap",
    "ExpertCounts",
    "ExpertLayer",
    "FailureTimeline",
    "LoadedBytes",
    "MemoryDevice",
    "MemoryPhase",
    "MemorySeries",
    "Price",
    "QualityResult",
    "QualityTask",
    "Smoke",
]

ENVIRONMENT_PARTS = (
    "accelerator",
    "command",
    "container",
    "driver",
    "kernel_backend",
    "network",
    "operating_system",
    "packages",
    "precision",
    "runtime",
    "sharding",
    "storage",
    "topology",
    "variables",
)
"""Parts of an environment. ``kernel_backend``: which attention and expert kernels the engine chose; ``variables``: the
environment variables of the allow-list."""
COMPLETE_ENVIRONMENT = (
    "command",
    "container",
    "driver",
    "kernel_backend",
    "operating_system",
    "precision",
    "runtime",
    "sharding",
)
"""Parts without which the environment is not on record."""
MEMORY_PHASES = ("idle", "warm", "loaded")
"""idle: the engine is not running; warm: it is ready and serves nothing; loaded: the workload runs."""
MEMORY_PARTS = ("allocator", "kv_cache", "activations", "routing_buffers", "fragmentation")
"""What a record of memory must tell apart: series named ``memory_<part>_bytes``."""


@attrs.frozen
class EngineCounters:
    """Growth of the engine's own counters over a span; None where the engine exposes none.

    ``requests`` are those that finished well. ``ttft_ns`` and ``e2e_ns`` are sums over requests, of the engine's own
    clock: from arrival to first token, and to the end.
    """

    requests: int = integer()
    prompt_tokens: int = integer()
    cached_prompt_tokens: int | None = integer(optional=True)
    generation_tokens: int = integer()
    ttft_ns: int | None = integer(optional=True, default=None)
    e2e_ns: int | None = integer(optional=True, default=None)
    preemptions: int | None = integer(optional=True, default=None)
    draft_tokens: int | None = integer(optional=True, default=None)
    accepted_draft_tokens: int | None = integer(optional=True, default=None)


@attrs.frozen
class EngineLog:
    """An engine's log, read: its numeric lines are the ``series`` table, the whole log is committed to by digest.

    ``whole``: whether the log was given from the engine's first line. ``role``: which role of the deployment wrote it.
    """

    type: str = const("engine_log")
    role: str = identifier()
    engine: str = identifier()
    engine_version: str | None = text(max_length=64, optional=True)
    whole: bool = boolean()
    line_count: int = integer(ge=1)
    row_count: int = integer()


@attrs.frozen
class EnvironmentFact:
    """One fact: its part, its name, its value as short text, and what told it."""

    part: str = choice(*ENVIRONMENT_PARTS)
    name: str = identifier()
    value: str = text(max_length=400)
    source: str = identifier()


@attrs.frozen
class EnvironmentGap:
    """A part that was looked for and not found, and why."""

    part: str = choice(*ENVIRONMENT_PARTS)
    reason: str = text(max_length=400)


@attrs.frozen
class Environment:
    """The environment of one node's engine, as the engine itself sees it where ``seen_from`` says so."""

    type: str = const("environment")
    node: str = identifier()
    seen_from: str = choice("node", "engine_process", "pod")
    facts: tuple[EnvironmentFact, ...] = sequence(EnvironmentFact)
    gaps: tuple[EnvironmentGap, ...] = sequence(EnvironmentGap)

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: facts out of order or named twice."""
        keys = [(fact.part, fact.name) for fact in self.facts]
        if keys != sorted(set(keys)):
            yield Issue("$.payload.facts", "not_sorted", "facts are not in order, each once", "sorted by part, name")


@attrs.frozen
class MemoryPhase:
    """A phase marked by the run: nanoseconds from the start of the record's interval."""

    name: str = choice(*MEMORY_PHASES)
    start_ns: int = integer()
    end_ns: int = integer()


@attrs.frozen
class MemoryDevice:
    """A device whose memory was polled: ``accelerator``, or ``host`` for a node's main memory."""

    id: str = identifier()
    kind: str = choice("accelerator", "host")
    total_bytes: int | None = integer(optional=True)


@attrs.frozen
class MemorySeries:
    """Memory, power and the engine's own gauges, polled through marked phases. The values are the ``series`` table.

    ``poll_interval_ns``: how often each source was asked; a gap of more than three of them is a hole.
    """

    type: str = const("memory_series")
    poll_interval_ns: int = integer(ge=1)
    phases: tuple[MemoryPhase, ...] = sequence(MemoryPhase)
    devices: tuple[MemoryDevice, ...] = sequence(MemoryDevice, min_items=1)
    row_count: int = integer()

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: devices or phases named twice, phases that overlap or run backwards."""
        names = [device.id for device in self.devices]
        if names != sorted(set(names)):
            yield Issue("$.payload.devices", "not_sorted", "devices are not in order, each once", "sorted by id")
        last = 0
        for index, phase in enumerate(self.phases):
            if not last <= phase.start_ns < phase.end_ns:
                at = f"$.payload.phases[{index}]"
                yield Issue(at, "phases_out_of_order", "phases overlap or run backwards", f"from {last} ns on")
            last = phase.end_ns


@attrs.frozen
class ExpertLayer:
    """One mixture-of-experts layer: its number and name in the model, its experts, how many a token selects.

    ``dropped_tokens`` is None where nothing tells it; ``dropped_basis`` says what did. ``drafter``: a layer of the
    draft model. ``hash_routed``: its selections do not depend on the load.
    """

    number: int = integer(le=100_000)
    name: str = text(max_length=200)
    experts: int = integer(ge=1, le=1_000_000)
    top_k: int = integer(ge=1, le=1_000_000)
    drafter: bool = boolean()
    hash_routed: bool = boolean()
    dropped_tokens: int | None = integer(optional=True)
    dropped_basis: str | None = text(max_length=200, optional=True)


@attrs.frozen
class ExpertCounts:
    """Expert selections per layer and interval, counted in the engine. The counts are the ``experts`` table.

    ``ranks``: the processes whose counts were added up, each token counted once. ``counters``: growth of the engine's
    own counters over the same span; the counts are believed only where they agree (see ``docs/metrics.md``).
    """

    type: str = const("expert_counts")
    layers: tuple[ExpertLayer, ...] = sequence(ExpertLayer, min_items=1)
    ranks: tuple[str, ...] = identifier(many=True)
    interval_count: int = integer(ge=1)
    counters: EngineCounters | None = nested(EngineCounters, optional=True)
    row_count: int = integer()

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: layers out of order, or selecting more experts than there are."""
        numbers = [layer.number for layer in self.layers]
        if numbers != sorted(set(numbers)):
            yield Issue("$.payload.layers", "not_sorted", "layers are not in order, each once", "sorted by number")
        for index, layer in enumerate(self.layers):
            if layer.top_k > layer.experts:
                at = f"$.payload.layers[{index}].topK"
                yield Issue(at, "out_of_range", "selects more experts than there are", f"at most {layer.experts}")


@attrs.frozen
class CommunicationTrace:
    """Samples of engine steps that split time into routing, all-to-all, other collectives and the rest.

    The nanoseconds are the ``series`` table: ``step_ns``, ``routing_ns``, ``all_to_all_ns``, ``collective_ns`` of one
    subject (a rank) at one time are one sample. ``world_size`` 1 has no communication: its shares are exactly 0.
    """

    type: str = const("communication_trace")
    world_size: int = integer(ge=1)
    row_count: int = integer()


@attrs.frozen
class LoadedBytes:
    """The checkpoint's bytes were hashed in the engine while it loaded them. The digests are the ``tensors`` table.

    ``counting``: whether the same engine start also counted experts; its trials then judge no SLA.
    """

    type: str = const("loaded_bytes")
    loader: str = identifier()
    ranks: tuple[str, ...] = identifier(many=True)
    row_count: int = integer(ge=1)
    counting: bool = boolean()


@attrs.frozen
class Price:
    """A declared price: millionths of a currency unit for one accelerator for one hour, on a date, from a source."""

    type: str = const("price")
    currency: str = text(pattern=r"^[A-Z]{3}$", max_length=3)
    micros_per_accelerator_hour: int = integer(ge=1)
    accelerators: int = integer(ge=1)
    dated: str = text(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", max_length=10)
    source: str = text(max_length=400)


@attrs.frozen
class FailureTimeline:
    """One worker was made to fail under load. Requests are the ``requests`` table, events the ``series`` table.

    Events, by metric: ``fault_injected``, ``process_exited``, ``process_started``, ``health_status``.
    """

    type: str = const("failure_timeline")
    fault: str = choice("kill", "signal", "command")
    target: str = identifier()
    requested_output_tokens: int = integer(ge=1)
    duration_ns: int = integer(ge=1)
    request_count: int = integer(ge=1)
    row_count: int = integer(ge=1)


@attrs.frozen
class QualityTask:
    """One task's measure: right answers of all documents."""

    task: str = identifier()
    metric: str = identifier()
    correct: int = integer()
    documents: int = integer(ge=1)


@attrs.frozen
class QualityResult:
    """Answers of a quality harness, document by document in the ``quality`` table; the counts are recomputed."""

    type: str = const("quality_result")
    tasks: tuple[QualityTask, ...] = sequence(QualityTask, min_items=1)
    row_count: int = integer(ge=1)

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: tasks out of order or named twice."""
        keys = [(task.task, task.metric) for task in self.tasks]
        if keys != sorted(set(keys)):
            yield Issue("$.payload.tasks", "not_sorted", "tasks are not in order, each once", "sorted by task, metric")


@attrs.frozen
class Smoke:
    """One question with a deadline. ``outcome``: answered, by its end; late: the deadline passed; error: else."""

    type: str = const("smoke")
    outcome: str = choice("answered", "late", "error")
    deadline_ns: int = integer(ge=1)
    elapsed_ns: int = integer()
    http_status: int | None = integer(le=999, optional=True)
    finish_reason: str | None = identifier(optional=True)
    requested_output_tokens: int = integer(ge=1)
    output_tokens: int | None = integer(optional=True)
