"""Evidence records and run manifests: what was observed, by what, on which deployment, with the raw data by digest."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from moeplan.errors import Issue
from moeplan.model.deployment import Deployment
from moeplan.model.fields import (
    boolean,
    choice,
    const,
    digest,
    identifier,
    instant,
    integer,
    nested,
    sequence,
    text,
)
from moeplan.model.observations import (
    CommunicationTrace,
    EngineCounters,
    EngineLog,
    Environment,
    ExpertCounts,
    FailureTimeline,
    LoadedBytes,
    MemorySeries,
    Price,
    QualityResult,
    Smoke,
)
from moeplan.units import NS_PER_S, parse_instant

__all__ = [
    "ATTACHMENT_ROLES",
    "RAW_TABLES",
    "RECORD_PATH",
    "RECORD_TYPES",
    "TABLE_ROLES",
    "Attachment",
    "CheckpointDigest",
    "Claim",
    "ClientLoad",
    "Collector",
    "EngineCounters",
    "EvidenceRecord",
    "Interval",
    "Preflight",
    "PreflightHost",
    "ReportedSummary",
    "ServingTrial",
    "TrialRef",
]

RECORD_TYPES = (
    "serving_trial",
    "checkpoint_digest",
    "preflight",
    "engine_log",
    "environment",
    "memory_series",
    "expert_counts",
    "communication_trace",
    "loaded_bytes",
    "price",
    "failure_timeline",
    "quality_result",
    "smoke",
    "reported_summary",
)
TABLE_ROLES = ("requests", "chunk_gaps", "preflight", "series", "experts", "tensors", "quality")
"""Attachments that are raw tables: always enclosed, read by their closed schemas."""
ATTACHMENT_ROLES = (*TABLE_ROLES, "tool_output", "tool_summary", "metrics_before", "metrics_after", "log", "trace")
RAW_TABLES = {
    "serving_trial": ("requests", "chunk_gaps"),
    "checkpoint_digest": (),
    "preflight": ("preflight",),
    "engine_log": ("series",),
    "environment": (),
    "memory_series": ("series",),
    "expert_counts": ("experts",),
    "communication_trace": ("series",),
    "loaded_bytes": ("tensors",),
    "price": (),
    "failure_timeline": ("requests", "series"),
    "quality_result": ("quality",),
    "smoke": (),
    "reported_summary": (),
}
"""The raw tables that a record of each type needs, one of each. A ``checkpoint_digest`` may add ``tensors``."""
ATTACHMENT_PATH = r"^attachments/[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$"
RECORD_PATH = r"^evidence/[A-Za-z0-9][A-Za-z0-9._-]*\.json$"
"""Where a record lies in an evidence bundle."""
_SERVED = ("serving_trial", "expert_counts", "loaded_bytes", "quality_result", "smoke")
"""Types of which every observation is later than the engine's start."""


@attrs.frozen
class Collector:
    """The tool whose output this is, and the importer that read it; each with its version."""

    tool: str = identifier()
    tool_version: str | None = text(max_length=64, optional=True)
    importer: str = identifier()
    importer_version: str = text(max_length=64)


@attrs.frozen
class Interval:
    """When it was observed: whole seconds UTC that enclose every observation."""

    start: str = instant()
    end: str = instant()


@attrs.frozen
class Attachment:
    """A file beside the record, by digest; ``path`` is null where it is committed to but not enclosed."""

    role: str = choice(*ATTACHMENT_ROLES)
    path: str | None = text(pattern=ATTACHMENT_PATH, max_length=512, optional=True)
    name: str = text(max_length=200)
    media_type: str = text(pattern=r"^[a-z0-9.+-]+/[a-z0-9.+-]+$", max_length=100)
    size: int = integer()
    digest: str = digest()


@attrs.frozen
class Claim:
    """A figure the tool reported of itself, as the decimal text it wrote. Never decides."""

    name: str = text(max_length=100)
    value: str = text(pattern=r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$", max_length=64)


@attrs.frozen
class TrialRef:
    """Which trial of which run a record is."""

    run: str = identifier()
    number: int = integer(ge=1, le=100_000)


@attrs.frozen
class ClientLoad:
    """What the client itself needed: processor time over wall time, and how late it sent and read, at p99."""

    cpu_ns: int = integer()
    wall_ns: int = integer(ge=1)
    loop_lag_p99_ns: int = integer()


@attrs.frozen
class ServingTrial:
    """One trial of a load tool against a serving endpoint. Raw observations are the two Parquet attachments.

    ``requested_*``, ``warmup_*`` and ``declared_concurrency`` are stated inputs; the tool's file does not hold them.
    ``schedule``: how requests were sent; ``path``: what lay between client and engine, as it was stated. ``client``:
    None where the tool does not measure itself.
    """

    type: str = const("serving_trial")
    trial: TrialRef = nested(TrialRef)
    endpoint: str = text(max_length=200)
    requested_input_tokens: int = integer(ge=1)
    requested_output_tokens: int = integer(ge=1)
    declared_concurrency: int | None = integer(ge=1, optional=True)
    ignore_eos: bool = boolean()
    warmup_requests: int | None = integer(optional=True)
    warmup_input_tokens: int | None = integer(optional=True)
    warmup_output_tokens: int | None = integer(optional=True)
    request_count: int = integer(ge=1)
    duration_ns: int = integer(ge=1)
    engine_counters: EngineCounters | None = nested(EngineCounters, optional=True)
    claims: tuple[Claim, ...] = sequence(Claim)
    schedule: str | None = choice("closed", "poisson", "constant", "trace", optional=True, default=None)
    path: str | None = choice("direct", "service", "port_forward", optional=True, default=None)
    client: ClientLoad | None = nested(ClientLoad, optional=True, default=None)


@attrs.frozen
class CheckpointDigest:
    """The checkpoint's files were hashed on one node, through the mount that serves."""

    type: str = const("checkpoint_digest")
    manifest: str = digest()
    root: str = digest()
    node: str = identifier()
    file_count: int = integer(ge=1)
    total_bytes: int = integer()


@attrs.frozen
class PreflightHost:
    """One host of a preflight: its name in the tool's file, and when the file was written, as instant."""

    name: str = text(max_length=200)
    generated: str = instant()


@attrs.frozen
class Preflight:
    """A preflight tool looked at hosts before anything was served. The raw values are the Parquet attachment.

    It says nothing about the checkpoint: that the named deployment is to run on these hosts is declared.
    ``read_by`` names the plugin that read the tool's files, with its version.
    """

    type: str = const("preflight")
    format: str = identifier()
    read_by: str = text(pattern=r"^[a-z0-9][a-z0-9._@+-]{0,127}$", max_length=128)
    row_count: int = integer()
    hosts: tuple[PreflightHost, ...] = sequence(PreflightHost, min_items=1)
    claims: tuple[Claim, ...] = sequence(Claim)


@attrs.frozen
class ReportedSummary:
    """Figures that a tool reports of a run whose raw data its file does not hold. They satisfy no criterion.

    ``format``: what the file is; ``concurrency``: the cap in it. The claims keep the file's names and its units.
    """

    type: str = const("reported_summary")
    format: str = identifier()
    model: str | None = text(max_length=200, optional=True)
    concurrency: int | None = integer(ge=1, optional=True)
    claims: tuple[Claim, ...] = sequence(Claim, min_items=1)


_PAYLOADS = (
    ServingTrial,
    CheckpointDigest,
    Preflight,
    EngineLog,
    Environment,
    MemorySeries,
    ExpertCounts,
    CommunicationTrace,
    LoadedBytes,
    Price,
    FailureTimeline,
    QualityResult,
    Smoke,
    ReportedSummary,
)


@attrs.frozen
class EvidenceRecord:
    """One observation set: type, deployment, collector, interval, engine start, payload, attachments by digest."""

    kind: str = const("evidence_record")
    schema_version: str = const("1.0.0")
    type: str = choice(*RECORD_TYPES)
    plan: str = digest()
    deployment: Deployment = nested(Deployment)
    collector: Collector = nested(Collector)
    interval: Interval = nested(Interval)
    engine_start: str | None = instant(optional=True)
    payload: (
        ServingTrial
        | CheckpointDigest
        | Preflight
        | EngineLog
        | Environment
        | MemorySeries
        | ExpertCounts
        | CommunicationTrace
        | LoadedBytes
        | Price
        | FailureTimeline
        | QualityResult
        | Smoke
        | ReportedSummary
    ) = nested(_PAYLOADS)
    attachments: tuple[Attachment, ...] = sequence(Attachment)

    @property
    def duration_ns(self) -> int:
        """Length of the interval in nanoseconds; no raw time of the record lies beyond it."""
        return (parse_instant(self.interval.end) - parse_instant(self.interval.start)) * NS_PER_S

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows."""
        if self.type != self.payload.type:
            yield Issue("$.type", "type_mismatch", "type is not the payload's", self.payload.type, self.type)
            return
        start, end = parse_instant(self.interval.start), parse_instant(self.interval.end)
        if end < start:
            yield Issue("$.interval.end", "interval_reversed", "ends before it starts", "an instant not before start")
        if self.engine_start is not None and self.type in _SERVED and parse_instant(self.engine_start) > end:
            yield Issue("$.engineStart", "engine_start_late", "engine started after the record", "an earlier instant")
        yield from self._table_faults()
        yield from self._payload_faults(start, end)

    def _table_faults(self) -> Iterator[Issue]:
        roles = [attachment.role for attachment in self.attachments if attachment.role in TABLE_ROLES]
        wanted = RAW_TABLES[self.type]
        spare = ("tensors",) if self.type == "checkpoint_digest" else ()
        if any(roles.count(role) != 1 for role in wanted):
            tables = " and ".join(wanted)
            yield Issue(
                "$.attachments", "attachment_missing", f"needs one table of {tables}", "exactly one", str(roles)
            )
        foreign = sorted({role for role in roles if role not in (*wanted, *spare)})
        if foreign or len(roles) > len(set(roles)):
            yield Issue("$.attachments", "attachment_foreign", "tables that this type has not", str(wanted), str(roles))
        for index, attachment in enumerate(self.attachments):
            if attachment.role in TABLE_ROLES and attachment.path is None:
                yield Issue(f"$.attachments[{index}].path", "not_enclosed", "raw tables must be enclosed", "a path")

    def _payload_faults(self, start: int, end: int) -> Iterator[Issue]:
        payload = self.payload
        if isinstance(payload, ServingTrial | FailureTimeline) and payload.duration_ns > (end - start) * NS_PER_S:
            limit = f"at most {end - start} s"
            yield Issue("$.payload.durationNs", "outside_interval", "longer than the interval", limit)
        if isinstance(payload, CheckpointDigest) and payload.root != self.deployment.checkpoint_root:
            yield Issue("$.payload.root", "root_mismatch", "not the deployment's checkpoint", "its checkpointRoot")
        if isinstance(payload, Preflight):
            yield from self._preflight_faults(payload, start, end)
        if isinstance(payload, LoadedBytes | ExpertCounts) and self.engine_start is None:
            yield Issue("$.engineStart", "engine_start_missing", "seen in one engine start", "its instant")
        if isinstance(payload, MemorySeries) and payload.phases and payload.phases[-1].end_ns > self.duration_ns:
            yield Issue("$.payload.phases", "outside_interval", "phases leave the interval", f"{end - start} s")
        if isinstance(payload, Environment | MemorySeries | ExpertCounts | QualityResult):
            yield from payload.faults()

    def _preflight_faults(self, payload: Preflight, start: int, end: int) -> Iterator[Issue]:
        names = [host.name for host in payload.hosts]
        if names != sorted(set(names)):
            yield Issue("$.payload.hosts", "not_sorted", "hosts are not in order, each once", "sorted by name")
        for index, host in enumerate(payload.hosts):
            if not start <= parse_instant(host.generated) <= end:
                at = f"$.payload.hosts[{index}].generated"
                yield Issue(at, "outside_interval", "written outside the interval", "an instant within it")
